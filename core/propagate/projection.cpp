// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/projection.h"

#include <numeric>

namespace meshwright {

namespace {

/// Hands out the axes of one dimension, major to minor, and splits them where a factor takes only a part.
class AxisFeed {
public:
    explicit AxisFeed(const AxisRefs& axes)
        : m_axes(axes)
    {
        load();
    }

    bool empty() const { return m_next > m_axes.size(); }
    const AxisRef& head() const { return m_head; }

    /// The major part of `size` pieces of the head. Precondition: size divides the head's.
    AxisRef take(std::int64_t size)
    {
        const AxisRef taken{m_head.axis, m_head.pre, size};
        if (size == m_head.size)
            load();
        else
            m_head = {m_head.axis, m_head.pre * size, m_head.size / size};
        return taken;
    }

    void takeAll(AxisRefs& into)
    {
        while (!empty())
            into.push_back(take(m_head.size));
    }

private:
    void load()
    {
        if (m_next < m_axes.size())
            m_head = m_axes[m_next];
        ++m_next;
    }

    const AxisRefs& m_axes;
    std::size_t m_next = 0; ///< the axis after the head; past the size: nothing is left
    AxisRef m_head;
};

FactorSharding& freshFactor(std::optional<FactorSharding>& slot)
{
    if (!slot)
        slot.emplace();
    slot->axes.clear();
    slot->overflow.clear();
    slot->closed = false;
    slot->minorMost = false;
    return *slot;
}

void projectDim(
    const AxisRefs& axes, bool open, const std::vector<std::size_t>& dim, const OpShardingRule& rule, TensorFactorShardings& out)
{
    AxisFeed feed(axes);
    bool overflown = false;
    for (std::size_t i = 0; i < dim.size(); ++i) {
        FactorSharding& factor = freshFactor(out.factors[dim[i]]);
        factor.minorMost = i + 1 == dim.size();
        factor.closed = !open || overflown;
        if (factor.minorMost) {
            feed.takeAll(factor.axes);
            continue;
        }
        std::int64_t rest = rule.factors[dim[i]].size;
        while (!feed.empty()) {
            const std::int64_t common = std::gcd(rest, feed.head().size);
            if (common == 1 && feed.head().size != 1)
                break;
            factor.axes.push_back(feed.take(common));
            rest /= common;
        }
        if (rest > 1 && !feed.empty()) {
            feed.takeAll(factor.overflow);
            overflown = true;
        }
    }
}

} // namespace

void projectInto(TensorFactorShardings& out, const std::optional<TensorSharding>& sharding, const DimFactors& dims,
    const OpShardingRule& rule, MissingSharding missing)
{
    static const AxisRefs kNone;
    out.factors.resize(rule.factors.size());
    // Entries of factors that the tensor has are filled anew; the others must go.
    std::size_t present = 0;
    for (const auto& dim : dims)
        present += dim.size();
    if (present < rule.factors.size()) {
        for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
            bool has = false;
            for (const auto& dim : dims)
                has = has || std::find(dim.begin(), dim.end(), factor) != dim.end();
            if (!has)
                out.factors[factor].reset();
        }
    }
    out.replicated.clear();
    out.unreduced.clear();
    if (sharding) {
        assert(sharding->dims.size() == dims.size());
        out.replicated.assign(sharding->replicated.begin(), sharding->replicated.end());
        out.unreduced.assign(sharding->unreduced.begin(), sharding->unreduced.end());
    }
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
        projectDim(sharding ? sharding->dims[dim].axes : kNone,
            sharding ? sharding->dims[dim].open : missing == MissingSharding::Open, dims[dim], rule, out);
}

TensorFactorShardings project(
    const std::optional<TensorSharding>& sharding, const DimFactors& dims, const OpShardingRule& rule, MissingSharding missing)
{
    TensorFactorShardings out;
    projectInto(out, sharding, dims, rule, missing);
    return out;
}

ShardingProjection project(const Function& function, OpId op, const OpShardingRule& rule, MissingSharding missing)
{
    ShardingProjection projection;
    for (std::size_t i = 0; i < rule.operands.size(); ++i)
        projection.operands.push_back(project(function[function[op].operands[i]].sharding, rule.operands[i], rule, missing));
    for (std::size_t i = 0; i < rule.results.size(); ++i)
        projection.results.push_back(project(function[function[op].results[i]].sharding, rule.results[i], rule, missing));
    return projection;
}

AxisRefs backProjectDim(const TensorFactorShardings& factors, const std::vector<std::size_t>& dim, const OpShardingRule& rule)
{
    AxisRefs axes;
    for (const std::size_t index : dim) {
        const FactorSharding& factor = *factors.factors[index];
        for (const AxisRef& axis : factor.axes)
            appendMerging(axes, axis);
        for (const AxisRef& axis : factor.overflow)
            appendMerging(axes, axis);
        // A more minor factor would make a strided view, which a sharding cannot say.
        if (!factor.overflow.empty() || shardCount(factor.axes) < rule.factors[index].size)
            break;
    }
    return axes;
}

TensorSharding backProject(const TensorFactorShardings& factors, const DimFactors& dims, const OpShardingRule& rule,
    const std::optional<TensorSharding>& like, std::int32_t mesh)
{
    TensorSharding sharding = like ? *like : TensorSharding::openOf(dims.size());
    if (!like)
        sharding.mesh = mesh;
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
        sharding.dims[dim].axes = backProjectDim(factors, dims[dim], rule);
    sharding.replicated = factors.replicated;
    sharding.unreduced = factors.unreduced;
    return sharding;
}

} // namespace meshwright
