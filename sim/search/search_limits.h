// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/units.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

/// What the searches have in common: limits, and when a result is worth telling.
namespace meshwright::sim {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();
inline constexpr double kRounding = 4e-16; ///< of a sum, for each of its terms: a bound must not be above what it bounds
inline constexpr double kUsableShare = 0.90; ///< of a device's memory: the rest is the runtime's
inline constexpr double kMoreMemory = 1.25; ///< "with a quarter more memory"
inline constexpr double kAsQuick = 1.0005; ///< up to so many times as long
inline constexpr double kWonBack = 1.5; ///< a part that grows by so many times the loss is won back elsewhere
inline constexpr double kFrontStep = 0.02; ///< the front lists savings of memory above this share
inline constexpr std::int64_t kMostChips = 1 << 17;
inline constexpr std::size_t kOthers = 12; ///< layers or ops, those that take most, whose next best choice is told

inline constexpr std::size_t kTestedMeshes
    = 8; ///< of an MLP or a program, the quickest by the estimate: the plan of each is simulated
inline constexpr std::size_t kTestedOps
    = 20'000; ///< of all plans of an MLP or a program that are simulated, but always of these meshes
inline constexpr std::size_t kMostTests = 64; ///< plans of a small one

/// From so many sequences to twice as many grows what is held against the estimate of layers: as on expert ranks, which get the tokens of many, each expert
/// has rows enough to wait for its products. For few rows it waits for its weights, however many they are, and the growth says nothing.
inline constexpr std::int64_t kManySequences = 16;

/// How many plans of so many ops are simulated.
inline constexpr std::size_t testsOf(std::size_t ops)
{
    return std::clamp(kTestedOps / std::max<std::size_t>(1, ops), kTestedMeshes, kMostTests);
}

} // namespace meshwright::sim
