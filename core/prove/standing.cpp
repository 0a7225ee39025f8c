// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/standing.h"

#include <algorithm>

namespace meshwright {

bool Standing::isUniform() const
{
    return partial.empty() && std::all_of(dims.begin(), dims.end(), [](const StandingDim& dim) { return dim.from < 0; });
}

AxisRefs canonical(const AxisRefs& axes)
{
    AxisRefs merged;
    for (const AxisRef& axis : axes) {
        if (axis.size > 1)
            appendMerging(merged, axis);
    }
    return merged;
}

AxisRefs canonicalSet(AxisRefs axes)
{
    std::sort(axes.begin(), axes.end());
    return canonical(axes);
}

bool disjoint(const AxisRefs& a, const AxisRefs& b)
{
    return areIndependent(canonical(a), canonical(b));
}

AxisRefs placeAxes(const Standing& standing)
{
    AxisRefs axes;
    for (const StandingDim& dim : standing.dims) {
        if (dim.from >= 0)
            axes.insert(axes.end(), dim.axes.begin(), dim.axes.end());
    }
    return axes;
}

bool hasMesh(const Standing& standing)
{
    return !standing.partial.empty() || !placeAxes(standing).empty();
}

std::optional<std::int32_t> commonMesh(const std::vector<const Standing*>& standings)
{
    std::optional<std::int32_t> mesh;
    for (const Standing* standing : standings) {
        if (!hasMesh(*standing))
            continue;
        if (mesh && *mesh != standing->mesh)
            return std::nullopt;
        mesh = standing->mesh;
    }
    return mesh.value_or(0);
}

std::optional<AxisRefs> withoutEnd(const AxisRefs& axes, const AxisRefs& removed)
{
    AxisRefs left = axes;
    AxisRefs right = removed;
    while (!right.empty()) {
        AxisRef& minor = right.back();
        if (minor.size == 1) {
            right.pop_back();
            continue;
        }
        while (!left.empty() && left.back().size == 1)
            left.pop_back();
        if (left.empty())
            return std::nullopt;
        AxisRef& own = left.back();
        const std::int64_t size = std::min(own.size, minor.size);
        if (own.axis != minor.axis || own.pre * own.size != minor.pre * minor.size || own.size % size != 0
            || minor.size % size != 0)
            return std::nullopt;
        own.size /= size;
        minor.size /= size;
    }
    return canonical(left);
}

std::optional<AxisRefs> withoutStart(const AxisRefs& axes, const AxisRefs& first)
{
    AxisRefs left = canonical(axes);
    const AxisRefs start = canonical(first);
    for (std::size_t i = 0; i < start.size(); ++i) {
        if (left.empty() || left.front().axis != start[i].axis || left.front().pre != start[i].pre)
            return std::nullopt;
        AxisRef& own = left.front();
        if (own.size == start[i].size) {
            left.erase(left.begin());
            continue;
        }
        if (i + 1 < start.size() || own.size % start[i].size != 0)
            return std::nullopt;
        own = {own.axis, own.pre * start[i].size, own.size / start[i].size};
    }
    return left;
}

AxisRefs followedBy(AxisRefs axes, const AxisRefs& more)
{
    axes.insert(axes.end(), more.begin(), more.end());
    return canonical(axes);
}

std::optional<AxisRefs> setWithout(const AxisRefs& all, const AxisRefs& removed)
{
    AxisRefs left;
    const AxisRefs taken = canonical(removed);
    for (const AxisRef& axis : all) {
        // The parts of this axis that are taken, major to minor, and what is between them.
        AxisRefs own;
        for (const AxisRef& part : taken) {
            if (part.axis == axis.axis && part.pre >= axis.pre && part.pre * part.size <= axis.pre * axis.size)
                own.push_back(part);
        }
        std::sort(own.begin(), own.end());
        std::int64_t pre = axis.pre;
        for (const AxisRef& part : own) {
            if (part.pre % pre != 0)
                return std::nullopt;
            left.push_back({axis.axis, pre, part.pre / pre});
            pre = part.pre * part.size;
        }
        if (axis.pre * axis.size % pre != 0)
            return std::nullopt;
        left.push_back({axis.axis, pre, axis.pre * axis.size / pre});
    }
    left = canonicalSet(left);
    if (shardCount(left) * shardCount(taken) != shardCount(all))
        return std::nullopt;
    return left;
}

void keepOnlyFill(Standing& standing, GlobalId filler)
{
    for (StandingDim& dim : standing.dims)
        dim.fill = dim.fill == filler ? filler : kNoGlobal;
}

bool isIdempotent(ReduceKind kind)
{
    return kind != ReduceKind::Sum && kind != ReduceKind::Product;
}

} // namespace meshwright
