// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/factor_propagation.h"

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

/// As `overlaps`, but axes of size 1 overlap themselves too.
bool collides(const AxisRef& a, const AxisRef& b)
{
    return a == b || overlaps(a, b);
}

bool covers(const AxisRef& whole, const AxisRef& part)
{
    return whole == part || (whole.axis == part.axis && whole.pre <= part.pre && part.pre * part.size <= whole.pre * whole.size);
}

std::optional<AxisRef> withoutReservedAxes(AxisRef axis, const TensorFactorShardings& tensor)
{
    const auto left = prefixWithoutOverlap(axis, tensor.replicated);
    return left ? prefixWithoutOverlap(*left, tensor.unreduced) : left;
}

/// The part of an axis that a tensor with the factor can have at this place, `before` pieces into it.
std::optional<AxisRef> prefixWithinFactor(
    AxisRef axis, const TensorFactorShardings& tensor, const FactorSharding& factor, std::int64_t before, std::int64_t size)
{
    const auto left = withoutReservedAxes(axis, tensor);
    if (!left)
        return std::nullopt;
    for (const AxisRef& held : factor.axes) {
        if (covers(held, *left))
            return left;
    }
    if (!factor.closed && factor.overflow.empty()) {
        if (factor.minorMost)
            return left;
        const std::int64_t common = size % before == 0 ? std::gcd(size / before, left->size) : 1;
        if (common == left->size)
            return left;
        if (common > 1)
            return AxisRef{left->axis, left->pre, common};
    }
    if (!factor.axes.empty() && isPrefixOf(factor.axes.back(), *left))
        return factor.axes.back();
    return std::nullopt;
}

/// The part of an axis that no other factor of the tensor uses.
std::optional<AxisRef> prefixAcrossFactors(AxisRef axis, const TensorFactorShardings& tensor, std::size_t factor)
{
    std::optional<AxisRef> left = axis;
    for (std::size_t other = 0; left && other < tensor.factors.size(); ++other) {
        if (other == factor || !tensor.factors[other])
            continue;
        left = prefixWithoutOverlap(*left, tensor.factors[other]->axes);
        if (left)
            left = prefixWithoutOverlap(*left, tensor.factors[other]->overflow);
    }
    return left;
}

/// Shortens `axes` at the first axis that `keep` does not keep whole; `keep` is also told how many pieces come before.
template <typename Keep>
void truncateAxes(AxisRefs& axes, const FactorFlow& flow, const Keep& keep)
{
    std::int64_t before = 1;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::optional<AxisRef> kept = keep(axes[i], before);
        const bool isPart = kept && *kept != wholeAxis(*flow.mesh, static_cast<std::size_t>(kept->axis));
        if (!kept || (flow.conservative && isPart)) {
            axes.resize(i);
            return;
        }
        if (*kept != axes[i]) {
            axes[i] = *kept;
            axes.resize(i + 1);
            return;
        }
        before *= axes[i].size;
    }
}

bool startUpdate(const FactorFlow& flow, std::span<TensorFactorShardings> tensors, FactorScratch& scratch)
{
    const std::size_t factors = flow.rule->factors.size();
    scratch.axes.resize(std::max(scratch.axes.size(), factors));
    scratch.updated.assign(tensors.size() * factors, 0);
    bool any = false;
    for (std::size_t factor = 0; factor < factors; ++factor) {
        compatibleMajorAxes(scratch.axes[factor], tensors, flow.operandCount, factor, flow.directions[factor]);
        any = any || !scratch.axes[factor].empty();
    }
    return any;
}

} // namespace

void mergeCompatibleAxes(AxisRefs& axes, bool& canExpand, const AxisRefs& more)
{
    std::size_t i = 0;
    const auto stopAfter = [&](std::size_t kept) {
        axes.resize(kept);
        canExpand = false;
    };
    for (; i < axes.size() && i < more.size(); ++i) {
        if (axes[i] == more[i])
            continue;
        if (isPrefixOf(more[i], axes[i])) {
            if (i + 1 < more.size()) {
                axes[i] = more[i];
                return stopAfter(i + 1);
            }
        } else if (isPrefixOf(axes[i], more[i])) {
            if (!canExpand || i + 1 < axes.size())
                return stopAfter(i + 1);
            axes[i] = more[i];
        } else {
            return stopAfter(i);
        }
    }
    if (canExpand)
        axes.insert(axes.end(), more.begin() + static_cast<std::ptrdiff_t>(i), more.end());
}

void compatibleMajorAxes(AxisRefs& axes, std::span<const TensorFactorShardings> tensors, std::size_t operandCount,
    std::size_t factor, FactorDirection direction)
{
    axes.clear();
    if (direction == FactorDirection::None)
        return;
    bool canExpand = true;
    const auto fold = [&](std::span<const TensorFactorShardings> group) {
        for (const TensorFactorShardings& tensor : group) {
            if (tensor.factors[factor])
                mergeCompatibleAxes(axes, canExpand, tensor.factors[factor]->axes);
        }
    };
    const auto operands = tensors.first(operandCount);
    const auto results = tensors.subspan(operandCount);
    fold(direction == FactorDirection::Backward ? results : operands);
    if (direction != FactorDirection::Both)
        canExpand = false;
    fold(direction == FactorDirection::Backward ? operands : results);
}

std::optional<AxisRef> prefixWithoutOverlap(AxisRef axis, const AxisRefs& others)
{
    for (const AxisRef& other : others) {
        if (!overlaps(axis, other) && !areIndependent(axis, other))
            return std::nullopt;
        if (!collides(axis, other))
            continue;
        if (other.pre <= axis.pre || other.pre % axis.pre != 0 || axis.size % (other.pre / axis.pre) != 0)
            return std::nullopt;
        axis.size = other.pre / axis.pre;
    }
    return axis;
}

bool isStrictPrefix(const AxisRefs& shorter, const AxisRefs& longer)
{
    if (shorter.size() > longer.size())
        return false;
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        if (shorter[i] == longer[i])
            continue;
        return i + 1 == shorter.size() && isPrefixOf(shorter[i], longer[i]);
    }
    return shorter.size() < longer.size();
}

bool propagateBasic(const FactorFlow& flow, std::span<TensorFactorShardings> tensors, FactorScratch& scratch)
{
    if (!startUpdate(flow, tensors, scratch))
        return false;
    const std::size_t factors = flow.rule->factors.size();
    bool any = false;
    for (std::size_t factor = 0; factor < factors; ++factor) {
        AxisRefs& axes = scratch.axes[factor];
        if (axes.empty())
            continue;
        const auto keep = [&](AxisRef axis, std::int64_t before) {
            std::optional<AxisRef> left = axis;
            for (std::size_t t = 0; left && t < tensors.size(); ++t) {
                left = prefixAcrossFactors(*left, tensors[t], factor);
                if (left && tensors[t].factors[factor])
                    left = prefixWithinFactor(
                        *left, tensors[t], *tensors[t].factors[factor], before, flow.rule->factors[factor].size);
            }
            return left;
        };
        truncateAxes(axes, flow, keep);
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            auto& own = tensors[t].factors[factor];
            if (own && isStrictPrefix(own->axes, axes)) {
                own->axes = axes;
                scratch.updated[t * factors + factor] = 1;
                any = true;
            }
        }
    }
    return any;
}

namespace {

/// Whose axes of each factor they are: the largest tensor that already has all of them. Sets the order of the factors.
void orderBySource(const FactorFlow& flow, std::span<const TensorFactorShardings> tensors, FactorScratch& scratch)
{
    const std::size_t factors = flow.rule->factors.size();
    scratch.order.clear();
    scratch.source.assign(factors, tensors.size());
    scratch.sourceSize.assign(factors, -1);
    for (std::size_t factor = 0; factor < factors; ++factor) {
        const AxisRefs& axes = scratch.axes[factor];
        if (axes.empty())
            continue;
        scratch.order.push_back(factor);
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            const auto& own = tensors[t].factors[factor];
            if (own && flow.elements[t] > scratch.sourceSize[factor] && (own->axes == axes || isStrictPrefix(axes, own->axes))) {
                scratch.source[factor] = t;
                scratch.sourceSize[factor] = flow.elements[t];
            }
        }
    }
    std::sort(scratch.order.begin(), scratch.order.end(), [&](std::size_t a, std::size_t b) {
        if (scratch.sourceSize[a] != scratch.sourceSize[b])
            return scratch.sourceSize[a] > scratch.sourceSize[b];
        if (flow.elementwise) {
            const std::int64_t shardsA = shardCount(scratch.axes[a]);
            const std::int64_t shardsB = shardCount(scratch.axes[b]);
            if (shardsA != shardsB)
                return shardsA > shardsB;
        }
        return std::pair(scratch.source[a], a) < std::pair(scratch.source[b], b);
    });
}

} // namespace

bool propagateAggressive(const FactorFlow& flow, std::span<TensorFactorShardings> tensors, FactorScratch& scratch)
{
    if (!startUpdate(flow, tensors, scratch))
        return false;
    orderBySource(flow, tensors, scratch);
    const std::size_t factors = flow.rule->factors.size();
    bool any = false;
    AxisRefs axes;
    const auto updateTensor = [&](std::size_t t) {
        for (const std::size_t factor : scratch.order) {
            auto& own = tensors[t].factors[factor];
            if (!own || !isStrictPrefix(own->axes, scratch.axes[factor]))
                continue;
            axes = scratch.axes[factor];
            truncateAxes(axes, flow, [&](AxisRef axis, std::int64_t before) {
                return prefixWithinFactor(axis, tensors[t], *own, before, flow.rule->factors[factor].size);
            });
            if (!isStrictPrefix(own->axes, axes))
                continue;
            truncateAxes(axes, flow, [&](AxisRef axis, std::int64_t) { return prefixAcrossFactors(axis, tensors[t], factor); });
            if (flow.elementwise && t < flow.operandCount && flow.operandCount < tensors.size()) {
                // No operand is split for another operand's sake alone.
                const auto& result = tensors[flow.operandCount].factors[factor];
                if (result && isStrictPrefix(result->axes, axes))
                    axes = result->axes;
            }
            if (isStrictPrefix(own->axes, axes)) {
                own->axes = axes;
                scratch.updated[t * factors + factor] = 1;
                any = true;
            }
        }
    };
    for (std::size_t t = flow.operandCount; t < tensors.size(); ++t)
        updateTensor(t);
    for (std::size_t t = 0; t < flow.operandCount; ++t)
        updateTensor(t);
    return any;
}

} // namespace meshwright
