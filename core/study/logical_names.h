// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/arrays.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// What an array's dimensions are called in logical axis rules, from what they mean. A dimension of no name is None.
///
/// Names: batch, length (the sequence), vocab, embed (the width between the blocks of a transformer; of an MLP's widths the first, third and so on),
/// hidden (an MLP's other widths), mlp (inside a transformer's feed-forward block), heads, kv_heads, kv (the size of a head), exp, layers (the stacked
/// layers of a loop), positions.
///
/// For the built-in list "maxtext" those of MaxText: mlp for hidden, norm for scales, embed_no_exp beside experts, and in values that are not parameters
/// activation_batch, activation_length, activation_embed and so on.
LogicalNames logicalNamesOf(const StudyArray& array, const std::string& ruleList);

/// A spec that logical axis rules gave, and how.
struct RuledSpec {
    PartitionSpec spec;
    std::vector<LogicalStep> trace; ///< without the rules for names that the array has not
};

/// What a study's logical axis rules say of an array, as Linen applies them; nothing when they do not reach it (optimiser states and gradients follow
/// their parameters), or no rule applied to any of its dimensions. Axes of a built-in list that the mesh lacks count as axes of size 1.
std::optional<RuledSpec> ruledSpec(const StudyArray& array, const Study& study);

} // namespace meshwright
