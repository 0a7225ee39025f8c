// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/regrouping.h"

#include "core/partition/factor_choice.h"
#include "core/program/builder.h"
#include "core/propagate/projection.h"

#include <algorithm>

namespace meshwright {

namespace {

/// The axes of each factor; nothing where a factor does not divide by its axes, or has too many.
std::optional<AxesPerFactor> evenAxes(const Value& value, const DimFactors& dims, const OpShardingRule& rule)
{
    if (!value.sharding || !value.sharding->unreduced.empty())
        return std::nullopt;
    const TensorFactorShardings projected = project(value.sharding, dims, rule, MissingSharding::Closed);
    AxesPerFactor axes(rule.factors.size());
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        const auto& factor = projected.factors[f];
        if (!factor && rule.factors[f].size > 1)
            return std::nullopt; // the other side has it alone
        if (!factor)
            continue;
        if (!factor->overflow.empty() || rule.factors[f].size % shardCount(factor->axes) != 0)
            return std::nullopt;
        axes[f] = factor->axes;
    }
    return axes;
}

/// False where a factor is split behind one that is not split up: its pieces would be strided.
bool isLayout(const AxesPerFactor& axes, const DimFactors& dims, const OpShardingRule& rule)
{
    return std::all_of(dims.begin(), dims.end(), [&](const std::vector<std::size_t>& dim) {
        bool isSplitUp = true;
        for (const std::size_t factor : dim) {
            if (!isSplitUp && !axes[factor].empty())
                return false;
            isSplitUp = isSplitUp && shardCount(axes[factor]) == rule.factors[factor].size;
        }
        return true;
    });
}

/// The operand in the shape of the factors, as it lies; nothing where the reshape needs no such step.
struct Step {
    Shape shape;
    TensorSharding sharding;
};
std::optional<Step> stepFor(const Function& function, OpId id)
{
    const Op& op = function[id];
    const Value& from = function[op.operands.front()];
    const Value& to = function[op.results.front()];
    const auto rule = shardingRule(function, id);
    if (!rule || from.type.elements() == 0)
        return std::nullopt;
    const auto before = evenAxes(from, rule->operands.front(), *rule);
    const auto after = evenAxes(to, rule->results.front(), *rule);
    if (!before || !after || from.sharding->mesh != to.sharding->mesh)
        return std::nullopt;
    if (isLayout(*before, rule->results.front(), *rule) || isLayout(*after, rule->operands.front(), *rule))
        return std::nullopt; // moved on one side
    Step step;
    step.sharding = TensorSharding::replicatedOf(0);
    step.sharding.mesh = from.sharding->mesh;
    for (const std::vector<std::size_t>& dim : rule->operands.front()) {
        for (const std::size_t factor : dim) {
            if (rule->factors[factor].size == 1)
                continue;
            step.shape.push_back(rule->factors[factor].size);
            step.sharding.dims.emplace_back().axes = (*before)[factor];
        }
    }
    return step;
}

} // namespace

std::optional<Function> withSplitRegroupings(const Function& function)
{
    std::optional<Function> made;
    for (std::size_t b = 0; b < function.blocks.size(); ++b) {
        const std::vector<OpId>& ops = function[BlockId(b)].ops;
        for (std::size_t i = 0, added = 0; i < ops.size(); ++i) {
            const Op& op = function[ops[i]];
            const auto step = op.kind == OpKind::Reshape ? stepFor(function, ops[i]) : std::nullopt;
            if (!step)
                continue;
            if (!made)
                made = function;
            Builder builder(*made);
            builder.setBlock(BlockId(b));
            builder.setPhase(op.phase);
            const ValueId factored = builder.reshape(op.operands.front(), step->shape);
            (*made)[factored].sharding = step->sharding;
            (*made)[ops[i]].operands.front() = factored;
            auto& order = (*made)[BlockId(b)].ops; // the new op is last: to where it is needed
            std::rotate(order.begin() + static_cast<std::ptrdiff_t>(i + added++), order.end() - 1, order.end());
        }
    }
    return made;
}

} // namespace meshwright
