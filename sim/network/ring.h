// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/topology.h"

#include <cstdint>
#include <span>

/// Collectives over one axis of k devices, in the alpha-beta model with cut-through: a message of b bytes over h hops takes
/// `h alpha + b / w`; alpha = link.latencySeconds, w = link.bytesPerSecond, one direction. B = `arrayBytes` is the full array: the
/// operand of an all-reduce or reduce-scatter, the result of an all-gather, what each device holds before an all-to-all, the message
/// of a broadcast or permute. All results are seconds, 0 for k = 1.
/// Preconditions: k >= 1, B >= 0, w > 0, alpha >= 0, chunks >= 1.
///
/// Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
/// 2005 (rings); jax-ml/scaling-book, sharding.md (both directions, lines).
namespace meshwright::sim {

/// Whether a ring sends one way round or both ways at once (each half of the data).
enum class Directions : std::uint8_t { One, Both };

/// A ring. One: (k-1)(alpha + B/(k w)). Both: floor(k/2) alpha + (k-1)/(2k) B/w. A reduce-scatter takes the same.
double ringAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions);

/// Reduce-scatter, then all-gather: twice the above.
double ringAllReduceSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions);

/// One: (k-1) alpha + (k-1)/2 B/w. Both: floor(k/2) alpha + k B/(8w) for even k, (k^2-1) B/(8 k w) for odd k.
double ringAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions);

/// A pipelined chain of m chunks. One: (k-1) alpha + (k-2+m) B/(m w). Both: half of the data each way round, B/2 for B.
double ringBroadcastSeconds(double arrayBytes, std::int64_t k, std::int64_t chunks, const LinkSpec& link, Directions directions);

/// Every device sends B to the one `shift` further. One: s (alpha + B/w) with alpha counted once a hop. Both: (k-s)/k of it forward,
/// the rest backward: max(s, k-s) alpha + s (k-s)/k B/w. Precondition: 0 <= shift < k.
double ringPermuteSeconds(double arrayBytes, std::int64_t k, std::int64_t shift, const LinkSpec& link, Directions directions);

/// How a ring over links of unequal length advances: in lock-step (or waiting for delivery), or sending as soon as it can.
enum class RingSends : std::uint8_t { Waiting, Eager };

/// An all-reduce one way round when the hop from place i to the next has `hops[i]` links:
/// 2(k-1)(h alpha + B/(k w)), h the longest hop when waiting and the mean hop when eager (about).
double unequalRingAllReduceSeconds(double arrayBytes, std::span<const std::int64_t> hops, const LinkSpec& link, RingSends sends);

/// A line (no wraparound), both directions busy: (k-1)(alpha + B/(k w)), for its end devices have one link. Twice a ring.
double lineAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link);

/// Reduce-scatter, then all-gather: twice the above.
double lineAllReduceSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link);

/// A chain of m chunks reduced to one end and broadcast back on the other direction: 2(k-1)(alpha + B/(m w)) + (m-1) B/(m w);
/// B/w for many chunks, which no schedule beats.
double lineChainAllReduceSeconds(double arrayBytes, std::int64_t k, std::int64_t chunks, const LinkSpec& link);

/// (k-1) alpha + k B/(4w) for even k, (k^2-1) B/(4 k w) for odd k. Twice a ring.
double lineAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link);

/// From one end: (k-1) alpha + (k-2+m) B/(m w).
double lineBroadcastSeconds(double arrayBytes, std::int64_t k, std::int64_t chunks, const LinkSpec& link);

/// Cyclic shift by one; the last device's message travels back over the line: (k-1) alpha + B/w.
double lineShiftSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link);

/// A logical ring folded on a line (even places out, odd ones back), one way round: two links a hop, no extra bandwidth:
/// (k-1)(2 alpha + B/(k w)) for k >= 3.
double foldedRingAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link);

} // namespace meshwright::sim
