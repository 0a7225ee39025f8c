// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/collective/ring.h"

#include <cstdint>
#include <span>

/// Collectives over several axes of a torus or mesh, n = product of the lengths. Symbols, units and preconditions as in ring.h.
/// Groups that differ along other axes use other links, so all of them run at once without conflict.
namespace meshwright::sim {

/// One axis of a group.
struct TorusAxis {
    std::int64_t length = 1;
    bool wraps = false;
    LinkSpec link;
};

/// One axis after the other: a reduce-scatter takes the axes in the given order, an all-gather in the reverse one; the axis at place
/// i works on B / (product of the lengths before it). With equal links and one direction on rings
/// `sum_i (k_i-1)(alpha + B/(w prod_{j<=i} k_j))`, whose bandwidth part is (n-1)/n B/w whatever the order. `directions` matters on
/// axes that wrap; others are lines.
double torusAllGatherSeconds(double arrayBytes, std::span<const TorusAxis> axes, Directions directions);

/// All D axes at once: B is cut in D parts, and part p takes the axes in the order rotated by p, both ways on rings. Phases are in
/// lock-step: the sum over phases of the slowest part. For equal rings D floor(k/2) alpha + (n-1)/n B/(2 D w), which no schedule beats.
double torusAllGatherAtOnceSeconds(double arrayBytes, std::span<const TorusAxis> axes);

/// Dimension order, both ways: the busiest axis rules. For even lengths max_i of k_i B/(8w) on rings, k_i B/(4w) on lines; latencies add.
double torusAllToAllSeconds(double arrayBytes, std::span<const TorusAxis> axes);

/// A pipelined tree along one axis after the other, m chunks, both ways on rings: H = sum (k_i-1) hops,
/// sum (k_i-1) alpha_i + (H-1+m) B/(m w'), w' the least over the axes of 2w (ring) or w (line).
double torusBroadcastSeconds(double arrayBytes, std::span<const TorusAxis> axes, std::int64_t chunks);

} // namespace meshwright::sim
