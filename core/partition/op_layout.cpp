// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/op_layout.h"

#include "core/partition/factor_choice.h"
#include "core/program/other_op.h"
#include "core/program/truth_values.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

/// The longest prefix that divides the factor, or with `padded` makes no more pieces than it has elements.
AxisRefs usablePrefix(const AxisRefs& axes, std::int64_t factorSize, bool padded)
{
    AxisRefs usable;
    std::int64_t pieces = 1;
    for (const AxisRef& axis : axes) {
        pieces *= axis.size;
        if (factorSize % pieces != 0 && (!padded || factorSize < pieces))
            break;
        usable.push_back(axis);
    }
    return usable;
}

class Chooser {
public:
    Chooser(const Function& function, OpId op, const OpShardingRule& rule, const Mesh& mesh, const std::vector<bool>& padded)
        : m_function(function)
        , m_op(function[op])
        , m_rule(rule)
        , m_mesh(mesh)
        , m_projection(project(function, op, rule, MissingSharding::Closed))
    {
        for (auto* tensors : {&m_projection.operands, &m_projection.results}) {
            for (TensorFactorShardings& tensor : *tensors) {
                for (std::size_t f = 0; f < rule.factors.size(); ++f) {
                    if (!tensor.factors[f])
                        continue;
                    tensor.factors[f]->axes
                        = usablePrefix(tensor.factors[f]->axes, rule.factors[f].size, !padded.empty() && padded[f]);
                    tensor.factors[f]->overflow.clear();
                }
            }
        }
        for (const auto* values : {&m_op.operands, &m_op.results})
            m_values.insert(m_values.end(), values->begin(), values->end());
    }

    OpLayout choose()
    {
        OpLayout layout;
        if (auto agreed = agreedFactorAxes(m_projection, m_rule)) {
            layout.factorAxes = *std::move(agreed);
        } else {
            std::vector<std::int64_t> elements;
            for (const ValueId value : m_values)
                elements.push_back(m_function[value].type.elements());
            layout.factorAxes = chooseFactorAxes(m_projection, m_rule, elements, m_mesh);
            layout.reason = explain(layout.factorAxes);
        }
        dropUnreachable(layout.factorAxes);
        for (std::size_t f = 0; f < m_rule.factors.size(); ++f) {
            if (m_rule.factors[f].kind == FactorKind::Reduction)
                layout.reduced.insert(layout.reduced.end(), layout.factorAxes[f].begin(), layout.factorAxes[f].end());
        }
        return layout;
    }

private:
    const TensorFactorShardings& tensor(std::size_t index) const
    {
        const std::size_t operands = m_projection.operands.size();
        return index < operands ? m_projection.operands[index] : m_projection.results[index - operands];
    }

    /// A factor behind one that is not split up would make strided views, which no layout says: nothing splits it in any tensor.
    void dropUnreachable(AxesPerFactor& chosen) const
    {
        for (bool changed = true; changed;) {
            changed = false;
            for (const auto* tensors : {&m_rule.operands, &m_rule.results}) {
                for (const DimFactors& dims : *tensors) {
                    for (const auto& factors : dims)
                        changed = dropBehindRest(factors, chosen) || changed;
                }
            }
        }
    }

    bool dropBehindRest(const std::vector<std::size_t>& factors, AxesPerFactor& chosen) const
    {
        bool isSplitUp = true;
        bool changed = false;
        for (const std::size_t factor : factors) {
            if (!isSplitUp && !chosen[factor].empty()) {
                chosen[factor].clear();
                changed = true;
            }
            isSplitUp = isSplitUp && shardCount(chosen[factor]) == m_rule.factors[factor].size;
        }
        return changed;
    }

    /// Which tensors keep their layouts and which give way, with the numbers that decided.
    std::string explain(const AxesPerFactor& chosen) const
    {
        std::vector<std::string> kept;
        std::vector<std::string> moved;
        std::int64_t keptElements = 0;
        std::int64_t movedElements = 0;
        std::set<ValueId> seen;
        for (std::size_t i = 0; i < m_values.size(); ++i) {
            bool keeps = true;
            for (std::size_t f = 0; f < m_rule.factors.size(); ++f)
                keeps = keeps && (!tensor(i).factors[f] || tensor(i).factors[f]->axes == chosen[f]);
            const std::int64_t elements = m_function[m_values[i]].type.elements();
            if (!seen.insert(m_values[i]).second || elements <= 1)
                continue;
            const std::string& name = m_function[m_values[i]].name;
            const bool isResult = i >= m_op.operands.size();
            (keeps ? kept : moved).push_back(!name.empty() ? name : isResult ? "the result" : "an operand");
            (keeps ? keptElements : movedElements) += elements;
        }
        if (kept.empty() || moved.empty())
            return {};
        return fmt::format("{} {} ({} elements), {} {} ({})", join(kept, " and "),
            kept.size() == 1 ? "keeps its sharding" : "keep their shardings", formatCount(static_cast<double>(keptElements)),
            join(moved, " and "), moved.size() == 1 ? "moves" : "move", formatCount(static_cast<double>(movedElements)));
    }

    const Function& m_function;
    const Op& m_op;
    const OpShardingRule& m_rule;
    const Mesh& m_mesh;
    ShardingProjection m_projection; ///< with axes that divide their factors only
    std::vector<ValueId> m_values; ///< operands, then results
};

/// By what the op itself combines.
std::optional<ReduceKind> combinationIn(const Function& function, const Op& op)
{
    switch (op.kind) {
    case OpKind::DotGeneral:
    case OpKind::AttentionGrad: // of keys and values, over queries and heads
    case OpKind::Gather: // of the rows that a device has
    case OpKind::DynamicSlice:
    case OpKind::Convolution:
        return ReduceKind::Sum;
    case OpKind::Reduce:
        return op.as<ReduceAttributes>().kind;
    case OpKind::Scatter:
        return op.as<ScatterAttributes>().combiner;
    case OpKind::VariadicReduce:
    case OpKind::VariadicScatter:
        return op.bodies.empty() ? std::nullopt : combinerIn(function, op.bodies.back());
    default:
        return std::nullopt;
    }
}

} // namespace

std::optional<ReduceKind> reductionOf(const Function& function, const Op& op)
{
    auto kind = combinationIn(function, op);
    const auto isOfTruths = [&](ValueId result) { return function[result].type.dtype == DType::Pred; };
    const auto truths = std::count_if(op.results.begin(), op.results.end(), isOfTruths);
    if (!kind || truths == 0 || onTruths(*kind) == *kind)
        return kind;
    return truths == std::ssize(op.results) ? std::optional(onTruths(*kind)) : std::nullopt; // numbers beside them go another way
}

OpLayout chooseOpLayout(
    const Function& function, OpId op, const OpShardingRule& rule, const Mesh& mesh, const std::vector<bool>& padded)
{
    return Chooser(function, op, rule, mesh, padded).choose();
}

TensorSharding layoutUnder(const OpLayout& layout, const DimFactors& dims, const OpShardingRule& rule, std::int32_t mesh)
{
    TensorSharding sharding = TensorSharding::replicatedOf(dims.size());
    sharding.mesh = mesh;
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        for (const std::size_t factor : dims[dim]) {
            for (const AxisRef& axis : layout.factorAxes[factor])
                appendMerging(sharding.dims[dim].axes, axis);
            if (shardCount(layout.factorAxes[factor]) < rule.factors[factor].size)
                break;
        }
    }
    return sharding;
}

} // namespace meshwright
