// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/explicit_reshape.h"

#include <algorithm>

namespace meshwright {

namespace {

using DimAxes = std::vector<AxisRefs>;

bool allWhole(const DimAxes& axes)
{
    return std::all_of(axes.begin(), axes.end(), [](const AxisRefs& one) { return one.empty(); });
}

Shape withoutOnes(const Shape& shape)
{
    Shape sizes;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(sizes), [](std::int64_t size) { return size != 1; });
    return sizes;
}

/// Which dimensions of the coarser shape each run of the finer one makes: how many dimensions the run has.
/// Nothing when the shapes are not of that form, or more than one run has several.
std::optional<std::vector<std::size_t>> runsOf(const Shape& coarse, const Shape& fine)
{
    if (fine.size() <= coarse.size())
        return std::nullopt;
    std::vector<std::size_t> runs;
    std::size_t at = 0;
    std::size_t several = 0;
    for (const std::int64_t size : coarse) {
        std::size_t length = 0;
        std::int64_t product = 1;
        while (at + length < fine.size() && product < size)
            product *= fine[at + length++];
        if (product != size || length == 0)
            return std::nullopt;
        several += length > 1 ? 1 : 0;
        runs.push_back(length);
        at += length;
    }
    return at == fine.size() && several == 1 ? std::optional(runs) : std::nullopt;
}

/// Deals axes out over dimensions, major to minor: each takes axes until it is used up. Nothing when an axis does not divide what is
/// left of its dimension, or some are left over.
std::optional<DimAxes> dealt(const AxisRefs& axes, const Shape& sizes)
{
    DimAxes dims(sizes.size());
    std::size_t next = 0;
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
        for (std::int64_t rest = sizes[dim]; rest > 1 && next < axes.size(); ++next) {
            if (rest % axes[next].size != 0)
                return std::nullopt;
            rest /= axes[next].size;
            dims[dim].push_back(axes[next]);
        }
    }
    return next == axes.size() ? std::optional(dims) : std::nullopt;
}

/// The axes of dimensions that become one, in order; nothing when a whole dimension stands before a split one.
std::optional<AxisRefs> merged(const DimAxes& axes, std::size_t first, std::size_t count)
{
    AxisRefs all;
    bool gap = false;
    for (std::size_t dim = first; dim < first + count; ++dim) {
        if (gap && !axes[dim].empty())
            return std::nullopt;
        gap = gap || axes[dim].empty();
        all.insert(all.end(), axes[dim].begin(), axes[dim].end());
    }
    return all;
}

/// The rule for shapes without dimensions of size 1.
std::optional<DimAxes> reshaped(const Shape& from, const DimAxes& axes, const Shape& to)
{
    if (from == to)
        return axes;
    DimAxes result;
    if (const auto splits = runsOf(from, to)) {
        for (std::size_t dim = 0, at = 0; dim < from.size(); at += (*splits)[dim++]) {
            if ((*splits)[dim] == 1) {
                result.push_back(axes[dim]);
                continue;
            }
            const auto begin = to.begin() + static_cast<std::ptrdiff_t>(at);
            const auto parts = dealt(axes[dim], Shape(begin, begin + static_cast<std::ptrdiff_t>((*splits)[dim])));
            if (!parts)
                return std::nullopt;
            result.insert(result.end(), parts->begin(), parts->end());
        }
        return result;
    }
    const auto merges = runsOf(to, from);
    if (!merges)
        return std::nullopt;
    for (std::size_t dim = 0, at = 0; dim < to.size(); at += (*merges)[dim++]) {
        const auto all = merged(axes, at, (*merges)[dim]);
        if (!all)
            return std::nullopt;
        const auto one = (*merges)[dim] == 1 ? std::optional(DimAxes{*all}) : dealt(*all, {to[dim]});
        if (!one)
            return std::nullopt;
        result.push_back(one->front());
    }
    return result;
}

} // namespace

std::optional<std::vector<AxisRefs>> explicitReshape(const Shape& from, const std::vector<AxisRefs>& axes, const Shape& to)
{
    if (allWhole(axes))
        return DimAxes(to.size());
    DimAxes large;
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        if (from[dim] != 1)
            large.push_back(axes[dim]);
    }
    const auto made = reshaped(withoutOnes(from), large, withoutOnes(to));
    if (!made)
        return std::nullopt;
    DimAxes result;
    auto next = made->begin();
    for (const std::int64_t size : to)
        result.push_back(size == 1 ? AxisRefs() : *next++);
    return result;
}

std::vector<std::vector<AxisRefs>> reshapeOperands(const Shape& from, const std::vector<AxisRefs>& axes, const Shape& to)
{
    std::vector<DimAxes> candidates;
    const auto consider = [&](DimAxes dims) {
        if (dims != axes && explicitReshape(from, dims, to)
            && std::find(candidates.begin(), candidates.end(), dims) == candidates.end())
            candidates.push_back(std::move(dims));
    };
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        if (axes[dim].empty())
            continue;
        DimAxes gathered = axes;
        gathered[dim].clear();
        consider(gathered);
        for (std::size_t other = 0; other < from.size(); ++other) {
            DimAxes moved = gathered;
            moved[other].insert(moved[other].end(), axes[dim].begin(), axes[dim].end());
            if (other != dim && from[other] % shardCount(moved[other]) == 0)
                consider(std::move(moved));
        }
    }
    consider(DimAxes(from.size()));
    return candidates;
}

} // namespace meshwright
