// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/rule.h"

#include <optional>
#include <vector>

namespace meshwright {

/// How one tensor splits one factor.
struct FactorSharding {
    AxisRefs axes; ///< major to minor
    AxisRefs overflow; ///< axes that did not fit the factor (co-prime sizes)
    bool closed = false;
    bool minorMost = false; ///< the last factor of its dimension

    friend bool operator==(const FactorSharding&, const FactorSharding&) = default;
};

/// One tensor's sharding seen by factors: an entry for each factor, nothing for factors that the tensor does not have.
struct TensorFactorShardings {
    std::vector<std::optional<FactorSharding>> factors;
    AxisRefs replicated;
    AxisRefs unreduced;
};

/// The shardings of an op's tensors, seen by factors.
struct ShardingProjection {
    std::vector<TensorFactorShardings> operands;
    std::vector<TensorFactorShardings> results;
};

/// What a missing sharding means.
enum class MissingSharding : std::uint8_t { Open, Closed };

/// Projects the sharding of one tensor from its dimensions to the factors of the rule.
/// Source: openxla/shardy, shardy/dialect/sdy/transforms/propagation/sharding_projection.h.
TensorFactorShardings project(
    const std::optional<TensorSharding>& sharding, const DimFactors& dims, const OpShardingRule& rule, MissingSharding missing);

/// The same into storage that is used again and again.
void projectInto(TensorFactorShardings& out, const std::optional<TensorSharding>& sharding, const DimFactors& dims,
    const OpShardingRule& rule, MissingSharding missing);

/// Projects the shardings of all operands and results of an op.
ShardingProjection project(const Function& function, OpId op, const OpShardingRule& rule, MissingSharding missing);

/// The axes of one dimension from those of its factors (2.2): up to the first factor that is not fully split, or that has overflow.
AxisRefs backProjectDim(const TensorFactorShardings& factors, const std::vector<std::size_t>& dim, const OpShardingRule& rule);

/// The sharding of a tensor with these factor shardings (2.2). `like` gives the rest: openness and priorities of its dimensions,
/// the mesh, unreduced kind; its absence means all dimensions open.
TensorSharding backProject(const TensorFactorShardings& factors, const DimFactors& dims, const OpShardingRule& rule,
    const std::optional<TensorSharding>& like, std::int32_t mesh);

} // namespace meshwright
