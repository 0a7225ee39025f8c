// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/propagate/rule.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace meshwright {

// What the files of the sharding rules share.

/// Collects the factors of one rule.
class RuleBuilder {
public:
    using Types = std::span<const TensorType>;

    RuleBuilder(Types operands, Types results)
    {
        for (const TensorType& type : operands)
            m_rule.operands.emplace_back(type.shape.size());
        for (const TensorType& type : results)
            m_rule.results.emplace_back(type.shape.size());
    }

    std::size_t factor(std::int64_t size, FactorKind kind = FactorKind::PassThrough, bool blocked = false)
    {
        m_rule.factors.push_back({size, kind, blocked});
        return m_rule.factors.size() - 1;
    }

    void addToOperand(std::size_t operand, std::size_t dim, std::size_t factor)
    {
        m_rule.operands[operand][dim].push_back(factor);
    }
    void addToResult(std::size_t dim, std::size_t factor) { addToResult(0, dim, factor); }
    void addToResult(std::size_t result, std::size_t dim, std::size_t factor) { m_rule.results[result][dim].push_back(factor); }
    void addToOperands(std::size_t dim, std::size_t factor) { addToAll(m_rule.operands, dim, factor); }
    void addToResults(std::size_t dim, std::size_t factor) { addToAll(m_rule.results, dim, factor); }

    /// A factor along dimension `dim` of every array.
    void pointwise(std::size_t dim, std::int64_t size, FactorKind kind = FactorKind::PassThrough, bool blocked = false)
    {
        const std::size_t made = factor(size, kind, blocked);
        addToOperands(dim, made);
        addToResults(dim, made);
    }

    /// Factors of their own, which must be whole, for every dimension of an operand.
    void needWhole(std::size_t operand, const Shape& shape)
    {
        for (std::size_t dim = 0; dim < shape.size(); ++dim)
            addToOperand(operand, dim, factor(shape[dim], FactorKind::NeedReplication, true));
    }

    /// Dimensions that are still without a factor get one of size 1: nothing goes along them.
    OpShardingRule finish()
    {
        fill(m_rule.operands);
        fill(m_rule.results);
        return std::move(m_rule);
    }

private:
    static void addToAll(std::vector<DimFactors>& tensors, std::size_t dim, std::size_t factor)
    {
        for (DimFactors& dims : tensors) {
            if (!dims.empty()) // a scalar goes with every element
                dims[dim].push_back(factor);
        }
    }
    void fill(std::vector<DimFactors>& tensors)
    {
        for (DimFactors& dims : tensors) {
            for (auto& factors : dims) {
                if (factors.empty())
                    factors.push_back(factor(1));
            }
        }
    }

    OpShardingRule m_rule;
};

/// What a rule depends on besides the op: what surrounds it, and how careful to be.
struct RuleContext {
    bool conservative = false; ///< nothing goes along dimensions whose sizes change
    bool joinsSlices = false; ///< a concatenation whose operands are all slices, or all parts of one array
    bool feedsRandomBits = false; ///< a result is the state of a random generator
    bool startsAreConstant = false; ///< of a dynamic_update_slice, whose place is known therefore
    std::optional<ReduceKind> combiner; ///< of a kept reduce or scatter
};

/// The rules of the kinds from Slice to Scatter.
std::optional<OpShardingRule> partsRule(OpKind kind, const OpAttributes& attributes, std::span<const TensorType> operands,
    std::span<const TensorType> results, const RuleContext& context);

/// The rule of a scatter of several arrays: inputs, indices, updates. `combines`: updates of one place may be made apart.
OpShardingRule scatterRule(
    const IndexingDims& dims, std::span<const TensorType> operands, std::span<const TensorType> results, bool combines);

/// The rules of kept ops, by their names; nothing for those that propagation does not pass through.
std::optional<OpShardingRule> otherRule(OpKind kind, const OtherAttributes& other, std::span<const TensorType> operands,
    std::span<const TensorType> results, const RuleContext& context);

} // namespace meshwright
