// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/projection.h"

#include <span>
#include <vector>

namespace meshwright {

/// For each factor of a rule the axes that split it, major to minor.
using AxesPerFactor = std::vector<AxisRefs>;

/// The axes of every factor when the op can be computed on shards as its tensors lie: they agree on every factor, factors that need
/// to be whole are whole, and no axis splits two factors. Nothing otherwise.
std::optional<AxesPerFactor> agreedFactorAxes(const ShardingProjection& projection, const OpShardingRule& rule);

/// Axes for every factor by which the op can be computed on shards, when its tensors disagree.
///
/// Of exactly two arrays whose dimensions have one factor each, the better one keeps its layout: without split permutation factors, then
/// the larger, then that in more pieces, then the first. Otherwise the prefixes of all lists compete: the most elements that already lie so,
/// then pass-through before reduction before permutation, the largest such tensor as it is split so far, the most new pieces; each winner cuts what the
/// others share with it. A factor is split only when all more major ones of its dimensions are split up. What factors that must be whole have
/// won goes, where all arrays have them, to batch dimensions that it divides.
///
/// `elements` are those of the operands, then of the results. The mesh names the axes, whose names decide last.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/export/explicit_reshards_util.cc (`findCommonAxes`).
AxesPerFactor chooseFactorAxes(
    const ShardingProjection& projection, const OpShardingRule& rule, std::span<const std::int64_t> elements, const Mesh& mesh);

/// The longest prefix of a list that overlaps nothing in `taken`; its last axis may be a part of the list's.
AxisRefs prefixWithout(const AxisRefs& axes, const AxisRefs& taken);

/// The longest list that every tensor with the factor begins with.
AxisRefs commonFactorPrefix(const ShardingProjection& projection, std::size_t factor);

} // namespace meshwright
