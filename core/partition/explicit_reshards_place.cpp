// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/reshard_inserter.h"

#include "core/reshard/reshard_steps.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace meshwright {

std::optional<std::int32_t> ReshardInserter::commonMesh(const std::vector<MaybeSharding>& shardings) const
{
    const Mesh* axesOf = nullptr;
    std::optional<std::int32_t> common;
    for (const bool split : {true, false}) {
        for (const MaybeSharding& sharding : shardings) {
            if (!sharding || splitsNothing(sharding) == split || (!split && axesOf != nullptr))
                continue;
            if (axesOf != nullptr && axesOf->axes() != meshOf(*sharding).axes())
                return std::nullopt;
            if (axesOf == nullptr)
                common = sharding->mesh;
            axesOf = &meshOf(*sharding);
        }
    }
    std::map<std::int32_t, int> counts;
    int most = 0;
    for (const MaybeSharding& sharding : shardings) {
        if (splitsNothing(sharding))
            continue;
        if (++counts[sharding->mesh] > most) {
            most = counts[sharding->mesh];
            common = sharding->mesh;
        }
    }
    if (axesOf == nullptr || axesOf->axes().empty())
        return std::nullopt;
    return common;
}

ReshardInserter::Placed ReshardInserter::place(OpId id, const OpShardingRule& rule, const std::vector<ValueId>& operands)
{
    const Op& op = m_source[id];
    std::vector<MaybeSharding> shardings;
    std::vector<std::int64_t> elements;
    ShardingProjection projection;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        shardings.push_back(shardingOf(operands[i]));
        elements.push_back(m_target[operands[i]].type.elements());
        projection.operands.push_back(project(shardings.back(), rule.operands[i], rule, MissingSharding::Closed));
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        shardings.push_back(m_source[op.results[i]].sharding);
        elements.push_back(m_source[op.results[i]].type.elements());
        projection.results.push_back(project(shardings.back(), rule.results[i], rule, MissingSharding::Closed));
    }
    Placed placed;
    const auto mesh = commonMesh(shardings);
    if (!mesh)
        return placed;
    placed.mesh = *mesh;
    if (!isFullFor(op)) {
        if (op.kind == OpKind::DotGeneral)
            preferOperandsOfDot(rule, projection, elements, shardings, placed);
        reduceDeclared(op, rule, projection, placed);
        return placed;
    }
    const auto agreed = agreedFactorAxes(projection, rule);
    const AxesPerFactor axes = agreed ? *agreed
        : hasOverflow(projection) && op.kind == OpKind::Reshape
        ? redistributed(projection, rule)
        : chooseFactorAxes(projection, rule, elements, m_meshes[static_cast<std::size_t>(*mesh)].mesh);
    for (std::size_t i = 0; i < shardings.size(); ++i) {
        const bool isOperand = i < operands.size();
        auto& list = isOperand ? placed.operands : placed.results;
        const std::size_t index = isOperand ? i : i - operands.size();
        const DimFactors& dims = isOperand ? rule.operands[index] : rule.results[index];
        TensorFactorShardings& tensor = isOperand ? projection.operands[index] : projection.results[index];
        list.push_back(relaid(shardings[i], tensor, dims, rule, axes, *mesh));
    }
    setReduced(op, rule, axes, placed);
    return placed;
}

ReshardInserter::MaybeSharding ReshardInserter::relaid(const MaybeSharding& sharding, TensorFactorShardings& tensor,
    const DimFactors& dims, const OpShardingRule& rule, const AxesPerFactor& axes, std::int32_t mesh) const
{
    const bool otherOrder = !splitsNothing(sharding)
        && meshOf(*sharding).deviceOrder() != m_meshes[static_cast<std::size_t>(mesh)].mesh.deviceOrder();
    bool changed = otherOrder;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        auto& factor = tensor.factors[f];
        if (!factor || (factor->axes == axes[f] && factor->overflow.empty()))
            continue;
        changed = true;
        factor->axes = axes[f];
        factor->overflow.clear();
    }
    if (!changed)
        return std::nullopt;
    TensorSharding layout = backProject(tensor, dims, rule, sharding ? sharding : replicated(dims.size(), mesh), mesh);
    layout.mesh = mesh;
    for (DimSharding& dim : layout.dims)
        dim.priority = 0;
    // Where the factors differ only in what no sharding can say, nothing moves.
    if (!otherOrder && isSameLayout(sharding, layout))
        return std::nullopt;
    return layout;
}

void ReshardInserter::setReduced(const Op& op, const OpShardingRule& rule, const AxesPerFactor& axes, Placed& placed) const
{
    if (op.results.empty())
        return;
    AxisRefs reduced;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        if (rule.factors[f].kind == FactorKind::Reduction)
            reduced.insert(reduced.end(), axes[f].begin(), axes[f].end());
    }
    placed.reduced = withoutAxes(reduced, unreducedOf(m_source[op.results.front()].sharding));
}

bool ReshardInserter::isFullFor(const Op& op) const
{
    return m_full || (op.kind == OpKind::Concatenate && std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
        return m_source[operand].sharding != m_source[op.results.front()].sharding;
    }));
}

void ReshardInserter::reduceDeclared(
    const Op& op, const OpShardingRule& rule, const ShardingProjection& projection, Placed& placed) const
{
    if (op.results.empty() || unreducedOf(m_source[op.results.front()].sharding).empty())
        return;
    AxesPerFactor axes(rule.factors.size());
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        for (const TensorFactorShardings& operand : projection.operands) {
            if (operand.factors[f])
                axes[f] = operand.factors[f]->axes;
        }
    }
    setReduced(op, rule, axes, placed);
}

void ReshardInserter::preferOperandsOfDot(const OpShardingRule& rule, ShardingProjection& projection,
    const std::vector<std::int64_t>& elements, const std::vector<MaybeSharding>& shardings, Placed& placed) const
{
    if (!shardings[2])
        return;
    const auto& lhs = projection.operands[0].factors;
    const auto& rhs = projection.operands[1].factors;
    auto& result = projection.results[0].factors;
    std::optional<std::size_t> conflict;
    AxisRefs wanted;
    AxisRefs reduced;
    AxisRefs free;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        const bool both = lhs[f] && rhs[f];
        const AxisRefs& axes = lhs[f] ? lhs[f]->axes : rhs[f]->axes;
        if (both && lhs[f]->axes != rhs[f]->axes)
            return;
        if (both && rule.factors[f].kind == FactorKind::Reduction) {
            reduced.insert(reduced.end(), axes.begin(), axes.end());
            continue;
        }
        if (!both) {
            for (const AxisRef& axis : axes) {
                if (std::any_of(free.begin(), free.end(), [&](const AxisRef& other) { return overlaps(axis, other); }))
                    return;
                free.push_back(axis);
            }
        }
        if (result[f]->axes == axes)
            continue;
        const std::int64_t operandElements = both ? std::max(elements[0], elements[1]) : lhs[f] ? elements[0] : elements[1];
        if (axes.empty() || conflict || elements[2] > operandElements)
            return;
        conflict = f;
        wanted = axes;
    }
    if (!conflict || result[*conflict]->axes.empty() || result[*conflict]->axes != reduced)
        return;
    result[*conflict]->axes = wanted;
    placed.results = {backProject(projection.results[0], rule.results[0], rule, shardings[2], shardings[2]->mesh)};
}

bool ReshardInserter::hasOverflow(const ShardingProjection& projection)
{
    const auto overflows = [](const TensorFactorShardings& tensor) {
        return std::any_of(
            tensor.factors.begin(), tensor.factors.end(), [](const auto& factor) { return factor && !factor->overflow.empty(); });
    };
    return std::any_of(projection.operands.begin(), projection.operands.end(), overflows)
        || std::any_of(projection.results.begin(), projection.results.end(), overflows);
}

AxisRefs ReshardInserter::allAxes(const TensorFactorShardings& tensor)
{
    AxisRefs axes;
    for (const auto& factor : tensor.factors) {
        if (!factor)
            continue;
        axes.insert(axes.end(), factor->axes.begin(), factor->axes.end());
        axes.insert(axes.end(), factor->overflow.begin(), factor->overflow.end());
    }
    return axes;
}

AxesPerFactor ReshardInserter::redistributed(ShardingProjection projection, const OpShardingRule& rule)
{
    TensorFactorShardings& operand = projection.operands[0];
    TensorFactorShardings& result = projection.results[0];
    const AxisRefs before = allAxes(operand);
    const AxisRefs after = allAxes(result);
    const AxisRefs& axes = shardCount(before) >= shardCount(after) ? before : after;
    redistribute(operand, rule.operands[0], rule, axes);
    redistribute(result, rule.results[0], rule, axes);
    ShardingProjection legal;
    const std::size_t ranks[] = {rule.operands[0].size(), rule.results[0].size()};
    legal.operands = {project(backProject(operand, rule.operands[0], rule, TensorSharding::replicatedOf(ranks[0]), 0),
        rule.operands[0], rule, MissingSharding::Closed)};
    legal.results = {project(backProject(result, rule.results[0], rule, TensorSharding::replicatedOf(ranks[1]), 0),
        rule.results[0], rule, MissingSharding::Closed)};
    AxesPerFactor common;
    for (std::size_t f = 0; f < rule.factors.size(); ++f)
        common.push_back(commonFactorPrefix(legal, f));
    return common;
}

void ReshardInserter::redistribute(
    TensorFactorShardings& tensor, const DimFactors& dims, const OpShardingRule& rule, const AxisRefs& axes)
{
    std::vector<std::pair<FactorSharding*, std::int64_t>> factors; // and what of its size is not split yet
    for (const auto& dim : dims) {
        for (const std::size_t index : dim) {
            FactorSharding& factor = *tensor.factors[index];
            factor.axes.clear();
            factor.overflow.clear();
            factors.emplace_back(&factor, rule.factors[index].size);
        }
    }
    for (AxisRef axis : axes) {
        for (auto& [factor, rest] : factors) {
            const std::int64_t common = std::gcd(rest, axis.size);
            if (common == 1)
                continue;
            factor->axes.push_back({axis.axis, axis.pre, common});
            rest /= common;
            axis = {axis.axis, axis.pre * common, axis.size / common};
        }
    }
}

} // namespace meshwright
