// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/op_graph.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace meshwright::sim {

namespace {

constexpr double kMostChoices = 256.0; ///< of one op, before scattered sums are left out

/// A factor that cannot be split as it is, because of how a tensor's dimensions are made of factors.
std::optional<std::size_t> misfit(
    const DimFactors& dims, const OpShardingRule& rule, const std::vector<std::uint32_t>& factors, const auto& pieces)
{
    for (const auto& dim : dims) {
        bool full = true;
        std::uint32_t before = 0;
        for (const std::size_t factor : dim) {
            const std::uint32_t axes = factors[factor];
            const std::int64_t size = rule.factors[factor].size;
            if (axes != 0) {
                const bool ordered = before == 0 || before < (axes & (~axes + 1));
                if (!full || !ordered || size % pieces(axes) != 0)
                    return factor;
                before = axes;
            }
            full = full && pieces(axes) == size;
        }
    }
    return std::nullopt;
}

} // namespace

/// The layout of a tensor under a split; nothing where it cannot have one.
std::optional<GridLayout> OpGraph::laidOut(const DimFactors& dims, const OpShardingRule& rule, const Split& split) const
{
    if (misfit(dims, rule, split.factors, [&](std::uint32_t axes) { return pieces(axes); }))
        return std::nullopt;
    GridLayout layout(dims.size(), 0U);
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        for (const std::size_t factor : dims[dim])
            layout[dim] |= split.factors[factor];
    }
    return layout;
}

bool OpGraph::lays(const OpShardingRule& rule, Split& split) const
{
    split.operands.clear();
    split.results.clear();
    for (const DimFactors& dims : rule.operands) {
        auto layout = laidOut(dims, rule, split);
        if (!layout)
            return false;
        split.operands.push_back(*std::move(layout));
    }
    for (const DimFactors& dims : rule.results) {
        auto layout = laidOut(dims, rule, split);
        if (!layout)
            return false;
        split.results.push_back(*std::move(layout));
    }
    split.partial = 0;
    for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
        if (rule.factors[factor].kind == FactorKind::Reduction)
            split.partial |= split.factors[factor];
    }
    return true;
}

/// Every way to split an op: each axis on one factor or on none, and where sums over it go.
std::vector<OpGraph::Split> OpGraph::splitsOf(const OpShardingRule& rule, const Shape& result, bool reduces) const
{
    struct Option {
        std::size_t factor;
        std::optional<std::size_t> landing;
    };
    const std::size_t axes = m_mesh.axes().size();
    const std::size_t largest = static_cast<std::size_t>(std::max_element(result.begin(), result.end()) - result.begin());
    std::vector<Option> options;
    for (const int landings : {2, 1, 0}) {
        options.clear();
        for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
            const Factor& one = rule.factors[factor];
            const bool sums = one.kind == FactorKind::Reduction;
            if (one.size <= 1 || (one.kind != FactorKind::PassThrough && !(sums && reduces)))
                continue;
            options.push_back({factor, std::nullopt});
            for (std::size_t dim = 0; sums && landings > 0 && dim < result.size(); ++dim) {
                if (landings == 2 || dim == largest)
                    options.push_back({factor, dim});
            }
        }
        if (std::pow(static_cast<double>(options.size() + 1), static_cast<double>(axes)) <= kMostChoices)
            break;
    }
    std::vector<Split> splits;
    std::vector<std::size_t> picks(axes, 0); // 0: none
    while (true) {
        Split split;
        split.factors.assign(rule.factors.size(), 0U);
        GridLayout landing(result.size(), 0U);
        for (std::size_t axis = 0; axis < axes; ++axis) {
            if (picks[axis] == 0)
                continue;
            const Option& option = options[picks[axis] - 1];
            split.factors[option.factor] |= 1U << axis;
            if (option.landing)
                landing[*option.landing] |= 1U << axis;
        }
        if (lays(rule, split)) {
            split.landing = split.results.front();
            bool divides = true;
            for (std::size_t dim = 0; dim < result.size(); ++dim) {
                split.landing[dim] |= landing[dim];
                divides = divides && result[dim] % pieces(split.landing[dim]) == 0;
            }
            if (divides)
                splits.push_back(std::move(split));
        }
        std::size_t at = 0;
        while (at < axes && ++picks[at] > (m_mesh.axes()[at].size > 1 ? options.size() : 0))
            picks[at++] = 0;
        if (at == axes)
            return splits;
    }
}

/// How an op is split when one of its operands keeps its layout. Axes over which the op cannot be split are dropped.
OpGraph::Split OpGraph::splitBy(const OpShardingRule& rule, std::size_t leader, const GridLayout& layout, bool reduces) const
{
    Split split;
    split.factors.assign(rule.factors.size(), 0U);
    const DimFactors& dims = rule.operands[leader];
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        std::size_t at = 0;
        std::int64_t left = rule.factors[dims[dim].front()].size;
        bool fits = true;
        forEachAxis(layout[dim], [&](std::size_t axis) {
            while (left == 1 && at + 1 < dims[dim].size())
                left = rule.factors[dims[dim][++at]].size;
            const std::int64_t size = m_mesh.axes()[axis].size;
            fits = fits && left % size == 0;
            if (!fits)
                return;
            split.factors[dims[dim][at]] |= 1U << axis;
            left /= size;
        });
    }
    for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
        const FactorKind kind = rule.factors[factor].kind;
        if (kind == FactorKind::NeedReplication || kind == FactorKind::Permutation || (kind == FactorKind::Reduction && !reduces))
            split.factors[factor] = 0;
    }
    const auto count = [&](std::uint32_t axes) { return pieces(axes); };
    for (const auto* tensors : {&rule.operands, &rule.results}) {
        for (const DimFactors& tensor : *tensors) {
            while (const auto factor = misfit(tensor, rule, split.factors, count))
                split.factors[*factor] = 0;
        }
    }
    while (!lays(rule, split)) {
        // What one tensor gave up may have been what another built upon.
        for (const auto* tensors : {&rule.operands, &rule.results}) {
            for (const DimFactors& tensor : *tensors) {
                if (const auto factor = misfit(tensor, rule, split.factors, count))
                    split.factors[*factor] = 0;
            }
        }
    }
    if (!split.results.empty())
        split.landing = split.results.front();
    return split;
}

} // namespace meshwright::sim
