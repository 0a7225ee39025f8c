// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/factor_choice.h"

#include "core/propagate/factor_propagation.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace meshwright {

namespace {

std::vector<const TensorFactorShardings*> tensorsOf(const ShardingProjection& projection)
{
    std::vector<const TensorFactorShardings*> tensors;
    for (const auto* list : {&projection.operands, &projection.results}) {
        for (const TensorFactorShardings& tensor : *list)
            tensors.push_back(&tensor);
    }
    return tensors;
}

std::vector<const DimFactors*> dimsOf(const OpShardingRule& rule)
{
    std::vector<const DimFactors*> dims;
    for (const auto* list : {&rule.operands, &rule.results}) {
        for (const DimFactors& tensor : *list)
            dims.push_back(&tensor);
    }
    return dims;
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

/// What the longest common start of two lists is; the last axis may be a part of both lists'.
AxisRefs commonPrefix(const AxisRefs& a, const AxisRefs& b)
{
    AxisRefs common;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (a[i] == b[i]) {
            common.push_back(a[i]);
            continue;
        }
        if (a[i].axis == b[i].axis && a[i].pre == b[i].pre)
            common.push_back(isPrefixOf(a[i], b[i]) ? a[i] : b[i]);
        break;
    }
    return common;
}

/// A factor with axes that some tensor has for it.
struct Candidate {
    std::size_t factor = 0;
    AxisRefs axes;
    std::int64_t elements = 0; ///< of all tensors that have these axes
    std::int64_t largest = 0; ///< of one tensor with the factor, as it is split so far
    std::int64_t added = 1; ///< pieces that the choice would add
};

class Competition {
public:
    Competition(const ShardingProjection& projection, const OpShardingRule& rule, std::span<const std::int64_t> elements,
        const Mesh& mesh)
        : m_rule(rule)
        , m_tensors(tensorsOf(projection))
        , m_elements(elements)
        , m_mesh(mesh)
        , m_chosen(rule.factors.size())
        , m_waitsFor(rule.factors.size())
    {
        for (const DimFactors* dims : dimsOf(rule)) {
            for (const auto& factors : *dims) {
                for (std::size_t i = 1; i < factors.size(); ++i)
                    m_waitsFor[factors[i]].insert(factors[i - 1]);
            }
        }
        for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
            for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
                const auto& sharding = m_tensors[tensor]->factors[factor];
                if (sharding)
                    addPrefixes(factor, sharding->axes, m_elements[tensor]);
            }
        }
    }

    AxesPerFactor run()
    {
        while (const Candidate* best = bestValid()) {
            const Candidate winner = *best;
            m_chosen[winner.factor] = winner.axes;
            if (shardCount(winner.axes) == m_rule.factors[winner.factor].size) {
                for (auto& factors : m_waitsFor)
                    factors.erase(winner.factor);
            }
            cutOthers(winner);
            measureTensors();
        }
        return std::move(m_chosen);
    }

private:
    void addPrefixes(std::size_t factor, const AxisRefs& axes, std::int64_t elements)
    {
        for (std::size_t n = axes.size(); n > 0; --n) {
            AxisRefs prefix(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(n));
            auto found = std::find_if(m_open.begin(), m_open.end(),
                [&](const Candidate& candidate) { return candidate.factor == factor && candidate.axes == prefix; });
            if (found == m_open.end()) {
                const std::int64_t pieces = shardCount(prefix);
                found = m_open.insert(m_open.end(), {factor, std::move(prefix), 0, 0, pieces});
            }
            found->elements += elements;
            found->largest = std::max(found->largest, elements);
        }
    }

    /// As lists are ordered where nothing else decides: by names, parts of one axis by where they begin.
    auto nameKey(const Candidate& candidate) const
    {
        std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> key;
        for (const AxisRef& axis : candidate.axes) {
            const MeshAxis& whole = m_mesh.axes()[static_cast<std::size_t>(axis.axis)];
            const bool isWhole = axis.size == whole.size;
            key.emplace_back(whole.name, isWhole ? 0 : axis.pre, isWhole ? 0 : axis.size);
        }
        return key;
    }

    bool isBetter(const Candidate& a, const Candidate& b) const
    {
        const auto score = [&](const Candidate& c) {
            return std::tuple(c.elements, precedence(m_rule.factors[c.factor].kind), c.largest, c.added, c.factor);
        };
        if (score(a) != score(b))
            return score(a) > score(b);
        return nameKey(a) > nameKey(b);
    }

    const Candidate* bestValid() const
    {
        const Candidate* best = nullptr;
        for (const Candidate& candidate : m_open) {
            if (m_waitsFor[candidate.factor].empty() && (best == nullptr || isBetter(candidate, *best)))
                best = &candidate;
        }
        return best;
    }

    /// Keeps what extends the winner on its factor, and of other factors what it leaves.
    void cutOthers(const Candidate& winner)
    {
        std::erase_if(m_open, [&](Candidate& candidate) {
            if (candidate.factor == winner.factor) {
                if (!isStrictPrefix(winner.axes, candidate.axes))
                    return true;
            } else {
                AxisRefs left = prefixWithout(candidate.axes, winner.axes);
                if (left != candidate.axes && left == m_chosen[candidate.factor])
                    return true;
                candidate.axes = std::move(left);
            }
            candidate.added = shardCount(candidate.axes) / shardCount(m_chosen[candidate.factor]);
            return false;
        });
    }

    void measureTensors()
    {
        for (Candidate& candidate : m_open)
            candidate.largest = 0;
        for (std::size_t tensor = 0; tensor < m_tensors.size(); ++tensor) {
            const auto& factors = m_tensors[tensor]->factors;
            std::int64_t local = m_elements[tensor];
            for (std::size_t factor = 0; factor < factors.size(); ++factor) {
                if (factors[factor])
                    local /= shardCount(m_chosen[factor]);
            }
            for (Candidate& candidate : m_open) {
                if (factors[candidate.factor])
                    candidate.largest = std::max(candidate.largest, local);
            }
        }
    }

    const OpShardingRule& m_rule;
    std::vector<const TensorFactorShardings*> m_tensors;
    std::span<const std::int64_t> m_elements;
    const Mesh& m_mesh;
    AxesPerFactor m_chosen;
    std::vector<std::set<std::size_t>> m_waitsFor; ///< for each factor the more major ones that are not split up yet
    std::vector<Candidate> m_open;
};

std::vector<std::size_t> arraysOf(const OpShardingRule& rule)
{
    const auto dims = dimsOf(rule);
    std::vector<std::size_t> arrays;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (!dims[i]->empty())
            arrays.push_back(i);
    }
    return arrays;
}

bool hasOneFactorADim(const OpShardingRule& rule)
{
    const auto dims = dimsOf(rule);
    return std::all_of(dims.begin(), dims.end(), [](const DimFactors* tensor) {
        return std::all_of(tensor->begin(), tensor->end(), [](const auto& factors) { return factors.size() <= 1; });
    });
}

/// Of two arrays one keeps its layout, and only the other is brought to it.
AxesPerFactor preferOneOf(std::size_t first, std::size_t second, const ShardingProjection& projection, const OpShardingRule& rule,
    std::span<const std::int64_t> elements)
{
    const auto tensors = tensorsOf(projection);
    const auto rank = [&](std::size_t tensor) {
        bool permutes = false;
        std::int64_t pieces = 1;
        for (std::size_t f = 0; f < rule.factors.size(); ++f) {
            const auto& sharding = tensors[tensor]->factors[f];
            if (!sharding)
                continue;
            permutes = permutes || (rule.factors[f].kind == FactorKind::Permutation && !sharding->axes.empty());
            pieces *= shardCount(sharding->axes) * shardCount(sharding->overflow);
        }
        return std::tuple(!permutes, elements[tensor], pieces);
    };
    if (rank(second) > rank(first))
        std::swap(first, second);
    AxesPerFactor chosen(rule.factors.size());
    AxisRefs taken;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        if (const auto& sharding = tensors[first]->factors[f]) {
            chosen[f] = sharding->axes;
            taken.insert(taken.end(), sharding->axes.begin(), sharding->axes.end());
        }
    }
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        const auto& sharding = tensors[second]->factors[f];
        if (sharding && !tensors[first]->factors[f])
            chosen[f] = prefixWithout(sharding->axes, taken);
    }
    return chosen;
}

bool isInAllArrays(std::size_t factor, const ShardingProjection& projection, const OpShardingRule& rule)
{
    const auto tensors = tensorsOf(projection);
    const auto arrays = arraysOf(rule);
    return std::all_of(arrays.begin(), arrays.end(), [&](std::size_t i) { return tensors[i]->factors[factor].has_value(); });
}

/// Appends axes one after the other to batch factors, as long as they divide what is left of them.
void giveToBatch(const AxisRefs& axes, const ShardingProjection& projection, const OpShardingRule& rule, AxesPerFactor& chosen)
{
    std::size_t next = 0;
    for (std::size_t f = 0; f < rule.factors.size() && next < axes.size(); ++f) {
        const std::int64_t size = rule.factors[f].size;
        if (rule.factors[f].kind != FactorKind::PassThrough || !isInAllArrays(f, projection, rule) || size == 0
            || size % shardCount(chosen[f]) != 0)
            continue;
        std::int64_t room = size / shardCount(chosen[f]);
        for (; next < axes.size() && room % axes[next].size == 0; ++next) {
            appendMerging(chosen[f], axes[next]);
            room /= axes[next].size;
        }
    }
}

} // namespace

AxisRefs prefixWithout(const AxisRefs& axes, const AxisRefs& taken)
{
    AxisRefs kept;
    for (const AxisRef& axis : axes) {
        const auto left = prefixWithoutOverlap(axis, taken);
        if (left)
            kept.push_back(*left);
        if (left != axis)
            break;
    }
    return kept;
}

AxisRefs commonFactorPrefix(const ShardingProjection& projection, std::size_t factor)
{
    std::optional<AxisRefs> common;
    for (const TensorFactorShardings* tensor : tensorsOf(projection)) {
        if (const auto& sharding = tensor->factors[factor])
            common = common ? commonPrefix(*common, sharding->axes) : sharding->axes;
    }
    return common.value_or(AxisRefs{});
}

std::optional<AxesPerFactor> agreedFactorAxes(const ShardingProjection& projection, const OpShardingRule& rule)
{
    AxesPerFactor agreed(rule.factors.size());
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        bool first = true;
        for (const TensorFactorShardings* tensor : tensorsOf(projection)) {
            const auto& sharding = tensor->factors[f];
            if (!sharding)
                continue;
            if (!sharding->overflow.empty() || (!first && sharding->axes != agreed[f]))
                return std::nullopt;
            agreed[f] = sharding->axes;
            first = false;
        }
        if (rule.factors[f].kind == FactorKind::NeedReplication && !agreed[f].empty())
            return std::nullopt;
        for (std::size_t g = 0; g < f; ++g) {
            if (!areIndependent(agreed[f], agreed[g]))
                return std::nullopt;
        }
    }
    return agreed;
}

AxesPerFactor chooseFactorAxes(
    const ShardingProjection& projection, const OpShardingRule& rule, std::span<const std::int64_t> elements, const Mesh& mesh)
{
    const auto needsWhole = [](const Factor& factor) { return factor.kind == FactorKind::NeedReplication; };
    const auto arrays = arraysOf(rule);
    if (arrays.size() == 2 && hasOneFactorADim(rule) && std::none_of(rule.factors.begin(), rule.factors.end(), needsWhole))
        return preferOneOf(arrays[0], arrays[1], projection, rule, elements);

    AxesPerFactor chosen = Competition(projection, rule, elements, mesh).run();
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        if (!needsWhole(rule.factors[f]))
            continue;
        const AxisRefs won = std::exchange(chosen[f], {});
        if (isInAllArrays(f, projection, rule))
            giveToBatch(won, projection, rule, chosen);
    }
    return chosen;
}

} // namespace meshwright
