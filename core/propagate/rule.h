// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

inline bool contains(const std::vector<std::size_t>& dims, std::size_t dim)
{
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

/// What sharding a factor costs.
enum class FactorKind : std::uint8_t {
    PassThrough, ///< nothing, when all tensors agree
    Reduction, ///< results become partial
    Permutation, ///< a halo exchange or permute
    NeedReplication, ///< not possible: the op needs it whole
};

struct Factor {
    std::int64_t size = 1;
    FactorKind kind = FactorKind::PassThrough;
    bool blocked = false; ///< propagation never goes along it

    friend bool operator==(const Factor&, const Factor&) = default;
};

/// For each dimension of a tensor, its factors, major to minor, as indices into OpShardingRule::factors.
using DimFactors = std::vector<std::vector<std::size_t>>;

/// Which dimensions of an op's operands and results go together: `([i, k], [k, j])->([i, j])`.
/// Source: openxla/shardy, docs/propagation.md.
struct OpShardingRule {
    std::vector<Factor> factors;
    std::vector<DimFactors> operands;
    std::vector<DimFactors> results;

    friend bool operator==(const OpShardingRule&, const OpShardingRule&) = default;
};

/// Reads a rule as Shardy writes it, `([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}`, also with `, custom` behind it and in
/// `#sdy.op_sharding_rule<..>`. Nothing when it is not of that form, when a factor has no size, or a kind or a tensor names an unknown factor.
std::optional<OpShardingRule> parseRule(std::string_view text);

/// The rule of an op from its kind, attributes and types; the one place that knows them. Nothing for ops that propagation does not
/// pass through by a rule (constants without dimensions, ops with blocks, collectives, ops that are not known).
std::optional<OpShardingRule> shardingRule(
    OpKind kind, const OpAttributes& attributes, std::span<const TensorType> operands, std::span<const TensorType> results);

/// The same where the op stands, whose neighbours can matter; a rule that the user attached to it (`sdy.sharding_rule`) is its rule.
/// `conservative`: nothing goes along dimensions whose sizes change.
std::optional<OpShardingRule> shardingRule(const Function& function, OpId op, bool conservative = false);

/// The same without what the user attached: what the op really does. Nothing for ops that only their users know.
std::optional<OpShardingRule> ownShardingRule(const Function& function, OpId op, bool conservative = false);

/// True for ops to which the user attached a rule of their own (`sdy.sharding_rule = .. custom`).
bool hasCustomRule(const Op& op);

} // namespace meshwright
