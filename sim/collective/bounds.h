// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

/// What no schedule of a collective of n devices can beat, in seconds. B = `arrayBytes` as in ring.h; every rate is one way, in
/// bytes per second. Preconditions: n >= 1, B >= 0, rates > 0.
///
/// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, "Collective communication: theory, practice, and experience",
/// Concurrency and Computation 19(13), 2007; the cut arguments are worked out beside each function.
namespace meshwright::sim {

/// Each of n devices must receive (n-1)/n B, over `totalBytesPerSecond` = the sum of all links that enter a device: (n-1) B / total.
double allGatherTrafficBound(double arrayBytes, std::int64_t n, double totalBytesPerSecond);

/// Unless switches add up: 2 (n-1) B / total.
double allReduceTrafficBound(double arrayBytes, std::int64_t n, double totalBytesPerSecond);

/// A device that receives at `entering` must get (n-1)/n B of an all-gather (and must send as much in a reduce-scatter).
double allGatherDeviceBound(double arrayBytes, std::int64_t n, double enteringBytesPerSecond);

/// On a network where every device sends at `leaving`, without adding switches: 2 (n-1)/n B / leaving.
double allReduceDeviceBound(double arrayBytes, std::int64_t n, double leavingBytesPerSecond);

/// Two sides of `side` and n - `side` devices joined by `cut` each way. All-gather: max(|S|, |S'|)/n B / cut.
double allGatherCutBound(double arrayBytes, std::int64_t n, std::int64_t side, double cutBytesPerSecond);

/// Each side needs what the other adds up: B / cut; holds when switches add up, too.
double allReduceCutBound(double arrayBytes, double cutBytesPerSecond);

/// All-to-all: |S| |S'| B / (n cut).
double allToAllCutBound(double arrayBytes, std::int64_t n, std::int64_t side, double cutBytesPerSecond);

/// Any all-to-one-or-all pattern must cross the network once: diameter * alpha.
double latencyBound(double diameterHops, double hopSeconds);

} // namespace meshwright::sim
