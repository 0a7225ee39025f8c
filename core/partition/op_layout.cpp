// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/op_layout.h"

#include "core/propagate/projection.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace meshwright {

namespace {

bool startsWith(const AxisRefs& axes, const AxisRefs& prefix)
{
    return prefix.size() <= axes.size() && std::equal(prefix.begin(), prefix.end(), axes.begin());
}

bool anyOverlap(const AxisRefs& a, const AxisRefs& b)
{
    return std::any_of(a.begin(), a.end(),
        [&](const AxisRef& x) { return std::any_of(b.begin(), b.end(), [&](const AxisRef& y) { return overlaps(x, y); }); });
}

/// The longest prefix that divides the factor and overlaps nothing in `taken`.
AxisRefs usablePrefix(const AxisRefs& axes, std::int64_t factorSize, const AxisRefs& taken)
{
    AxisRefs usable;
    std::int64_t pieces = 1;
    for (const AxisRef& axis : axes) {
        if (factorSize % (pieces * axis.size) != 0 || anyOverlap({axis}, taken))
            break;
        pieces *= axis.size;
        usable.push_back(axis);
    }
    return usable;
}

/// One operand or result of the op, as the choice sees it.
struct Tensor {
    ValueId value;
    const DimFactors* dims = nullptr;
    std::vector<AxisRefs> factorAxes; ///< empty for factors that it does not have
    std::vector<bool> has;
    std::int64_t elements = 0;
};

std::vector<Tensor> tensorsOf(const Function& function, OpId id, const OpShardingRule& rule)
{
    const Op& op = function[id];
    const ShardingProjection projection = project(function, id, rule, MissingSharding::Closed);
    std::vector<Tensor> tensors;
    std::set<ValueId> seen;
    const auto add = [&](ValueId value, const TensorFactorShardings& shardings, const DimFactors& dims) {
        Tensor tensor{value, &dims, {}, {}, function[value].type.elements()};
        for (std::size_t f = 0; f < rule.factors.size(); ++f) {
            const auto& sharding = shardings.factors[f];
            tensor.has.push_back(sharding.has_value());
            tensor.factorAxes.push_back(sharding ? usablePrefix(sharding->axes, rule.factors[f].size, {}) : AxisRefs{});
        }
        tensors.push_back(std::move(tensor));
    };
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        add(op.operands[i], projection.operands[i], rule.operands[i]);
    for (std::size_t i = 0; i < op.results.size(); ++i)
        add(op.results[i], projection.results[i], rule.results[i]);
    return tensors;
}

int precedence(FactorKind kind)
{
    switch (kind) {
    case FactorKind::PassThrough:
        return 3;
    case FactorKind::Reduction:
        return 2;
    case FactorKind::Permutation:
        return 1;
    case FactorKind::NeedReplication:
        return 0;
    }
    return 0;
}

class Chooser {
public:
    Chooser(const Function& function, OpId op, const OpShardingRule& rule)
        : m_function(function)
        , m_op(function[op])
        , m_rule(rule)
        , m_tensors(tensorsOf(function, op, rule))
    {
    }

    OpLayout choose()
    {
        OpLayout layout;
        layout.factorAxes.resize(m_rule.factors.size());
        if (!agreed(layout.factorAxes)) {
            layout.factorAxes.assign(m_rule.factors.size(), {});
            if (!preferOneOfTwo(layout.factorAxes))
                greedy(layout.factorAxes);
            layout.reason = explain(layout.factorAxes);
        }
        for (std::size_t f = 0; f < m_rule.factors.size(); ++f) {
            if (m_rule.factors[f].kind == FactorKind::Reduction)
                layout.reduced.insert(layout.reduced.end(), layout.factorAxes[f].begin(), layout.factorAxes[f].end());
        }
        return layout;
    }

private:
    /// All tensors agree on every factor, no axis is on two factors, and nothing that must be whole is split.
    bool agreed(std::vector<AxisRefs>& chosen) const
    {
        for (std::size_t f = 0; f < m_rule.factors.size(); ++f) {
            bool first = true;
            for (const Tensor& tensor : m_tensors) {
                if (!tensor.has[f])
                    continue;
                if (!first && tensor.factorAxes[f] != chosen[f])
                    return false;
                chosen[f] = tensor.factorAxes[f];
                first = false;
            }
            if (m_rule.factors[f].kind == FactorKind::NeedReplication && !chosen[f].empty())
                return false;
            for (std::size_t g = 0; g < f; ++g) {
                if (anyOverlap(chosen[f], chosen[g]))
                    return false;
            }
        }
        return true;
    }

    /// With exactly two arrays, one keeps its layout and only the other is brought to it.
    bool preferOneOfTwo(std::vector<AxisRefs>& chosen) const
    {
        std::vector<const Tensor*> arrays;
        for (const Tensor& tensor : m_tensors) {
            if (!m_function[tensor.value].type.shape.empty())
                arrays.push_back(&tensor);
        }
        const bool simple = std::all_of(m_rule.factors.begin(), m_rule.factors.end(), [](const Factor& factor) {
            return factor.kind != FactorKind::NeedReplication;
        }) && std::all_of(m_tensors.begin(), m_tensors.end(), [](const Tensor& tensor) {
            return std::all_of(tensor.dims->begin(), tensor.dims->end(), [](const auto& factors) { return factors.size() <= 1; });
        });
        if (arrays.size() != 2 || !simple)
            return false;

        const auto rank = [&](const Tensor& tensor) {
            bool permutes = false;
            std::int64_t shards = 1;
            for (std::size_t f = 0; f < m_rule.factors.size(); ++f) {
                permutes = permutes || (m_rule.factors[f].kind == FactorKind::Permutation && !tensor.factorAxes[f].empty());
                shards *= shardCount(tensor.factorAxes[f]);
            }
            return std::tuple(!permutes, tensor.elements, shards);
        };
        const bool secondWins = rank(*arrays[1]) > rank(*arrays[0]);
        const Tensor& kept = *arrays[secondWins ? 1 : 0];
        const Tensor& other = *arrays[secondWins ? 0 : 1];
        AxisRefs taken;
        for (std::size_t f = 0; f < m_rule.factors.size(); ++f) {
            if (kept.has[f])
                chosen[f] = usablePrefix(kept.factorAxes[f], m_rule.factors[f].size, taken);
            taken.insert(taken.end(), chosen[f].begin(), chosen[f].end());
        }
        for (std::size_t f = 0; f < m_rule.factors.size(); ++f) {
            if (kept.has[f] || !other.has[f])
                continue;
            chosen[f] = usablePrefix(other.factorAxes[f], m_rule.factors[f].size, taken);
            taken.insert(taken.end(), chosen[f].begin(), chosen[f].end());
        }
        return true;
    }

    struct Candidate {
        std::size_t factor = 0;
        AxisRefs axes;
    };

    /// Every factor with every prefix of a list that some tensor has for it.
    std::vector<Candidate> candidates() const
    {
        std::vector<Candidate> all;
        for (std::size_t f = 0; f < m_rule.factors.size(); ++f) {
            for (const Tensor& tensor : m_tensors) {
                for (std::size_t n = 1; n <= tensor.factorAxes[f].size(); ++n) {
                    const AxisRefs axes(
                        tensor.factorAxes[f].begin(), tensor.factorAxes[f].begin() + static_cast<std::ptrdiff_t>(n));
                    const bool known = std::any_of(
                        all.begin(), all.end(), [&](const Candidate& c) { return c.factor == f && c.axes == axes; });
                    if (!known && m_rule.factors[f].kind != FactorKind::NeedReplication)
                        all.push_back({f, axes});
                }
            }
        }
        return all;
    }

    /// The elements of the tensors that already have this prefix.
    std::int64_t elementsWith(const Candidate& candidate) const
    {
        std::int64_t elements = 0;
        for (const Tensor& tensor : m_tensors) {
            if (tensor.has[candidate.factor] && startsWith(tensor.factorAxes[candidate.factor], candidate.axes))
                elements += tensor.elements;
        }
        return elements;
    }

    /// In every dimension all factors more major than the candidate's must be split fully, or the pieces would be strided.
    bool isValid(const Candidate& candidate, const std::vector<AxisRefs>& chosen) const
    {
        for (const Tensor& tensor : m_tensors) {
            for (const auto& factors : *tensor.dims) {
                for (const std::size_t factor : factors) {
                    if (factor == candidate.factor)
                        break;
                    const bool below = std::find(factors.begin(), factors.end(), candidate.factor) != factors.end();
                    if (below && shardCount(chosen[factor]) < m_rule.factors[factor].size)
                        return false;
                }
            }
        }
        return true;
    }

    void greedy(std::vector<AxisRefs>& chosen) const
    {
        std::vector<Candidate> open = candidates();
        while (!open.empty()) {
            const Candidate* best = nullptr;
            std::tuple<std::int64_t, int, std::int64_t, std::int64_t> bestScore;
            for (const Candidate& candidate : open) {
                if (!isValid(candidate, chosen))
                    continue;
                const std::int64_t added = shardCount(candidate.axes) / shardCount(chosen[candidate.factor]);
                const std::tuple score(elementsWith(candidate), precedence(m_rule.factors[candidate.factor].kind), added,
                    -static_cast<std::int64_t>(candidate.factor));
                if (best == nullptr || score > bestScore) {
                    best = &candidate;
                    bestScore = score;
                }
            }
            if (best == nullptr)
                return;
            const Candidate taken = *best;
            chosen[taken.factor] = taken.axes;
            std::vector<Candidate> left;
            for (Candidate& candidate : open) {
                if (candidate.factor == taken.factor) {
                    if (candidate.axes.size() > taken.axes.size() && startsWith(candidate.axes, taken.axes))
                        left.push_back(std::move(candidate));
                    continue;
                }
                candidate.axes = usablePrefix(candidate.axes, m_rule.factors[candidate.factor].size, taken.axes);
                if (candidate.axes.size() > chosen[candidate.factor].size())
                    left.push_back(std::move(candidate));
            }
            open = std::move(left);
        }
    }

    /// Which tensors keep their layouts and which give way, with the numbers that decided.
    std::string explain(const std::vector<AxisRefs>& chosen) const
    {
        std::vector<std::string> kept;
        std::vector<std::string> moved;
        std::int64_t keptElements = 0;
        std::int64_t movedElements = 0;
        std::set<ValueId> seen;
        for (const Tensor& tensor : m_tensors) {
            bool keeps = true;
            for (std::size_t f = 0; f < m_rule.factors.size(); ++f)
                keeps = keeps && (!tensor.has[f] || tensor.factorAxes[f] == chosen[f]);
            if (!seen.insert(tensor.value).second || tensor.elements <= 1)
                continue;
            const bool isResult = m_function[tensor.value].producer.valid()
                && std::find(m_op.results.begin(), m_op.results.end(), tensor.value) != m_op.results.end();
            const std::string& name = m_function[tensor.value].name;
            (keeps ? kept : moved).push_back(!name.empty() ? name : isResult ? "the result" : "an operand");
            (keeps ? keptElements : movedElements) += tensor.elements;
        }
        if (kept.empty() || moved.empty())
            return {};
        return fmt::format("{} {} ({} elements), {} {} ({})", join(kept, " and "),
            kept.size() == 1 ? "stays as it lies" : "stay as they lie", formatCount(static_cast<double>(keptElements)),
            join(moved, " and "), moved.size() == 1 ? "moves" : "move", formatCount(static_cast<double>(movedElements)));
    }

    const Function& m_function;
    const Op& m_op;
    const OpShardingRule& m_rule;
    std::vector<Tensor> m_tensors;
};

} // namespace

OpLayout chooseOpLayout(const Function& function, OpId op, const OpShardingRule& rule)
{
    return Chooser(function, op, rule).choose();
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
