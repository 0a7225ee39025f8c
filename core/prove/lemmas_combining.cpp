// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

namespace {

/// Behind the last element there is what changes nothing.
bool isMasked(const Site& site, const Framed& array, std::size_t dim, ReduceKind kind)
{
    return array.isEven(dim)
        || (array.isCopy(dim) ? isIdempotent(kind) : site.walk.globals.isIdentity(array.dims[dim].fill, kind));
}

} // namespace

std::optional<Standing> reduceLemma(Site& site, std::size_t)
{
    const auto& reduce = site.op.as<ReduceAttributes>();
    const Framed operand = framed(site, 0);
    AxisRefs reduced;
    Shape shape;
    std::vector<StandingDim> dims;
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
        const StandingDim& along = operand.dims[dim];
        if (!contains(reduce.dims, dim)) {
            shape.push_back(operand.shape[dim]);
            dims.push_back(along);
            dims.back().fill = kNoGlobal;
            continue;
        }
        if (along.window)
            return site.refuse(fmt::format("of dimension {} devices have windows, not pieces", dim));
        if (!isMasked(site, operand, dim, reduce.kind))
            return site.refuse(fmt::format("dimension {} ends in padding that is not masked", dim));
        if (!disjoint(reduced, along.axes))
            return site.refuse("two of its dimensions are split over one axis");
        reduced.insert(reduced.end(), along.axes.begin(), along.axes.end());
    }
    if (!operand.partial.empty() && operand.kind != reduce.kind)
        return site.refuse(fmt::format("its operand is a partial {}", reduceKindName(operand.kind)));
    const GlobalId global
        = site.walk.globals.number(fmt::format("reduce {} {} {}", reduceKindName(reduce.kind), reduce.dims, operand.text()),
            shape, site.dtype(), site.walk.globals[operand.global].varies);
    Standing made = standingOf(global, shape, dims, site.localResult(), operand.mesh);
    if (!disjoint(reduced, operand.partial) || !disjoint(reduced, placeAxes(made)))
        return site.refuse("an axis that splits a reduced dimension splits another one too");
    made.partial = reduced;
    made.partial.insert(made.partial.end(), operand.partial.begin(), operand.partial.end());
    made.partial = canonicalSet(made.partial);
    made.kind = reduce.kind;
    return made;
}

std::optional<Standing> dotLemma(Site& site, std::size_t)
{
    const auto& dot = site.op.as<DotAttributes>();
    Framed lhs = framed(site, 0);
    Framed rhs = framed(site, 1);
    if (!lhs.partial.empty() && !rhs.partial.empty())
        return site.refuse("both operands are partial results");
    AxisRefs partial = lhs.partial.empty() ? rhs.partial : lhs.partial;
    if (!partial.empty() && (lhs.partial.empty() ? rhs.kind : lhs.kind) != ReduceKind::Sum)
        return site.refuse("an operand is partial by another reduction than a sum");
    Shape shape;
    std::vector<StandingDim> dims;
    const auto keep = [&](const Framed& array, std::size_t dim) {
        shape.push_back(array.shape[dim]);
        dims.push_back(array.dims[dim]);
        dims.back().fill = kNoGlobal;
    };
    const auto match = [&](std::size_t l, std::size_t r) {
        if (lhs.isCopy(l))
            adopt(lhs, l, rhs, r);
        else
            adopt(rhs, r, lhs, l);
        return sameAlong(lhs, l, rhs, r);
    };
    for (std::size_t i = 0; i < dot.lhsBatch.size(); ++i) {
        if (!match(dot.lhsBatch[i], dot.rhsBatch[i]))
            return site.refuse(fmt::format("its operands are split differently along batch dimension {}", i));
        keep(lhs, dot.lhsBatch[i]);
    }
    for (std::size_t i = 0; i < dot.lhsContracting.size(); ++i) {
        const std::size_t l = dot.lhsContracting[i];
        const std::size_t r = dot.rhsContracting[i];
        if (!match(l, r) || lhs.dims[l].window)
            return site.refuse(fmt::format("its operands are split differently along contracted dimension {}", i));
        if (!lhs.isEven(l) && (!isMasked(site, lhs, l, ReduceKind::Sum) || !isMasked(site, rhs, r, ReduceKind::Sum)))
            return site.refuse(fmt::format("contracted dimension {} ends in padding that is not masked", i));
        if (!disjoint(partial, lhs.dims[l].axes))
            return site.refuse("an axis splits two of the dimensions that it contracts");
        partial.insert(partial.end(), lhs.dims[l].axes.begin(), lhs.dims[l].axes.end());
    }
    for (const bool isLeft : {true, false}) {
        const Framed& array = isLeft ? lhs : rhs;
        for (std::size_t dim = 0; dim < array.dims.size(); ++dim) {
            if (!contains(isLeft ? dot.lhsBatch : dot.rhsBatch, dim)
                && !contains(isLeft ? dot.lhsContracting : dot.rhsContracting, dim))
                keep(array, dim);
        }
    }
    const GlobalId global
        = site.walk.globals.number(fmt::format("dot {} {} {}", attributesText(site.walk, site.op), lhs.text(), rhs.text()), shape,
            site.dtype(), site.walk.globals[lhs.global].varies | site.walk.globals[rhs.global].varies);
    Standing made = standingOf(global, shape, dims, site.localResult(), site.mesh());
    if (!disjoint(partial, placeAxes(made)))
        return site.refuse("an axis that splits a contracted dimension splits another one too");
    made.partial = canonicalSet(partial);
    made.kind = ReduceKind::Sum;
    return made;
}

} // namespace meshwright
