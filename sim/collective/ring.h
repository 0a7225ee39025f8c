// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/topology.h"

#include <cstdint>

/// Collectives over one axis of k devices, in the alpha-beta model with cut-through: a message of b bytes over h hops takes
/// `h alpha + b / w`; alpha = link.latencySeconds, w = link.bytesPerSecond, one direction. B = `arrayBytes` is the full array: the
/// operand of an all-reduce or reduce-scatter, the result of an all-gather, what each device holds before an all-to-all, the message
/// of a permute. All results are seconds, 0 for k = 1.
/// Preconditions: k >= 1, B >= 0, w > 0, alpha >= 0.
///
/// Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
/// 2005 (rings); jax-ml/scaling-book, sharding.md (both directions, lines).
namespace meshwright::sim {

/// Whether a ring sends one way round or both ways at once (each half of the data).
enum class Directions : std::uint8_t { One, Both };

/// A ring. One: (k-1)(alpha + B/(k w)). Both: floor(k/2) alpha + (k-1)/(2k) B/w. A reduce-scatter takes the same.
double ringAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions);

/// One: (k-1) alpha + (k-1)/2 B/w. Both: floor(k/2) alpha + k B/(8w) for even k, (k^2-1) B/(8 k w) for odd k.
double ringAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link, Directions directions);

/// Every device sends B to the one `shift` further, one way round: s (alpha + B/w). Precondition: 0 <= shift < k.
double ringPermuteSeconds(double arrayBytes, std::int64_t k, std::int64_t shift, const LinkSpec& link);

/// A line (no wraparound), both directions busy: (k-1)(alpha + B/(k w)), for its end devices have one link. Twice a ring.
double lineAllGatherSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link);

/// (k-1) alpha + k B/(4w) for even k, (k^2-1) B/(4 k w) for odd k. Twice a ring.
double lineAllToAllSeconds(double arrayBytes, std::int64_t k, const LinkSpec& link);

} // namespace meshwright::sim
