// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/propagate/rule.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// How one op is computed on shards: the axes that split each factor of its rule.
struct OpLayout {
    std::vector<AxisRefs> factorAxes; ///< one list for each factor
    AxisRefs reduced; ///< axes of reduction factors: over these every result is partial
    std::string reason; ///< when tensors disagreed: which of them kept its layout, and why; otherwise empty
};

/// How the parts are combined that devices make of an op's results over the axes of its reduction factors; nothing for ops that have no such
/// factors.
std::optional<ReduceKind> reductionOf(const Function& function, const Op& op);

/// Chooses the axes of every factor so that the op can be computed on what each device has: as its tensors lie, or where they disagree as
/// `chooseFactorAxes` says. Axes that do not divide a factor are left out, but for those factors that may be `padded`, of which every
/// piece is to begin with an element.
OpLayout chooseOpLayout(
    const Function& function, OpId op, const OpShardingRule& rule, const Mesh& mesh, const std::vector<bool>& padded = {});

/// The layout that a tensor of the op has under the chosen axes.
TensorSharding layoutUnder(const OpLayout& layout, const DimFactors& dims, const OpShardingRule& rule, std::int32_t mesh);

} // namespace meshwright
