// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include "core/program/other_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

namespace {

/// The start indices along the dimensions that are cut, which all devices must agree on.
bool addStarts(Site& site, std::size_t first, const std::vector<std::size_t>& cut, std::string& text, std::uint64_t& varies)
{
    for (const std::size_t dim : cut) {
        const Standing& start = *site.operands[first + dim];
        if (!start.isUniform()) {
            site.refuse("a start index is a partial result");
            return false;
        }
        text += fmt::format(" {} at {}", dim, start.global);
        varies |= site.walk.globals[start.global].varies;
    }
    return true;
}

} // namespace

std::optional<Standing> dynamicSliceLemma(Site& site, std::size_t)
{
    const Framed operand = framed(site, 0);
    const Shape& sizes = site.localResult();
    std::vector<std::size_t> cut;
    Shape shape = operand.shape;
    std::vector<StandingDim> dims = operand.dims;
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
        if (sizes[dim] == operand.local[dim])
            continue;
        if (operand.isCopy(dim)) { // equal wherever it begins
            shape[dim] = sizes[dim];
            dims[dim] = {};
            continue;
        }
        if (!operand.isWhole(dim))
            return site.refuse(fmt::format("dimension {} is split, and it takes a part of each piece", dim));
        cut.push_back(dim);
        shape[dim] = sizes[dim];
        dims[dim].fill = kNoGlobal;
    }
    if (cut.empty()) {
        Standing made = *site.operands[0];
        return made;
    }
    std::string text = "dynamic slice";
    std::uint64_t varies = site.walk.globals[operand.global].varies;
    if (!addStarts(site, 1, cut, text, varies))
        return std::nullopt;
    Framed before = operand;
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
        if (before.isCopy(dim))
            before.shape[dim] = shape[dim];
    }
    text += fmt::format(" {} {}", shape, before.text());
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(), varies);
    Standing made = standingOf(global, shape, dims, sizes, operand.mesh);
    made.partial = operand.partial;
    made.kind = operand.kind;
    return made;
}

std::optional<Standing> dynamicUpdateLemma(Site& site, std::size_t)
{
    Framed operand = framed(site, 0);
    Framed update = framed(site, 1);
    std::vector<std::size_t> cut;
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
        if (operand.local[dim] == update.local[dim]) {
            adopt(update, dim, operand, dim);
            adopt(operand, dim, update, dim);
            if (!sameAlong(operand, dim, update, dim))
                return site.refuse(fmt::format("its operands are split differently along dimension {}", dim));
            continue;
        }
        for (Framed* array : {&operand, &update}) {
            if (array->isCopy(dim)) {
                array->unclaim(dim);
            }
            if (!array->isWhole(dim))
                return site.refuse(fmt::format("dimension {} is split, and it changes a part of each piece", dim));
        }
        cut.push_back(dim);
    }
    if (operand.partial != update.partial || (!operand.partial.empty() && operand.kind != update.kind))
        return site.refuse("one of its operands is a partial result");
    std::string text = "dynamic update";
    std::uint64_t varies = site.walk.globals[operand.global].varies | site.walk.globals[update.global].varies;
    if (!addStarts(site, 2, cut, text, varies))
        return std::nullopt;
    text += fmt::format(" {} {}", operand.text(), update.text());
    const GlobalId global = site.walk.globals.number(std::move(text), operand.shape, site.dtype(), varies);
    for (StandingDim& dim : operand.dims)
        dim.fill = kNoGlobal;
    Standing made = standingOf(global, operand.shape, operand.dims, operand.local, site.mesh());
    made.partial = operand.partial;
    made.kind = operand.kind;
    if (!disjoint(made.partial, placeAxes(made)))
        return site.refuse("a partial operand is split over the same axes as another one");
    return made;
}

namespace {

/// The dimensions of an array of slices (a gather's result, a scatter's updates) that run along the operand, with those of the operand.
std::vector<std::pair<std::size_t, std::size_t>> windowDims(const IndexingDims& dims, std::size_t operandRank)
{
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::size_t next = 0;
    for (std::size_t dim = 0; dim < operandRank && next < dims.window.size(); ++dim) {
        if (!contains(dims.collapsed, dim) && !contains(dims.operandBatch, dim))
            pairs.emplace_back(dims.window[next++], dim);
    }
    return pairs;
}

/// Those that run along the indices, with those of the indices.
std::vector<std::pair<std::size_t, std::size_t>> indexDims(
    const IndexingDims& dims, std::size_t slicesRank, std::size_t indicesRank)
{
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::size_t next = 0;
    for (std::size_t dim = 0; dim < slicesRank; ++dim) {
        if (contains(dims.window, dim))
            continue;
        next += next == dims.indexVectorDim ? 1 : 0;
        if (next < indicesRank)
            pairs.emplace_back(dim, next++);
    }
    return pairs;
}

/// What gathers and scatters ask of their operand and their indices alike. `sizes` are of the slices that devices take.
bool fitsIndexing(Site& site, Framed& operand, Framed& indices, const IndexingDims& dims, const Shape& sizes,
    const std::vector<std::size_t>& lookedUp)
{
    const auto fail = [&](std::string why) {
        site.refuse(std::move(why));
        return false;
    };
    if (!indices.partial.empty())
        return fail("its indices are a partial result");
    if (dims.indexVectorDim < indices.dims.size() && !indices.isWhole(dims.indexVectorDim)
        && !indices.isCopy(dims.indexVectorDim))
        return fail("the index vectors are split");
    for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
        adopt(indices, dims.indicesBatch[i], operand, dims.operandBatch[i]);
        adopt(operand, dims.operandBatch[i], indices, dims.indicesBatch[i]);
        if (!sameAlong(operand, dims.operandBatch[i], indices, dims.indicesBatch[i]))
            return fail(fmt::format("operand and indices are split differently along batch dimension {}", i));
    }
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
        if (contains(dims.operandBatch, dim) || contains(lookedUp, dim))
            continue;
        const bool isAll = sizes[dim] == operand.local[dim] && !operand.dims[dim].window;
        const bool isOnlyOne = contains(dims.collapsed, dim) && !operand.dims[dim].axes.empty();
        if ((!isAll || isOnlyOne) && !operand.isWhole(dim)) {
            if (operand.isCopy(dim)) {
                operand.unclaim(dim);
                continue;
            }
            return fail(fmt::format("dimension {} is split, and it takes a part of each piece", dim));
        }
    }
    return true;
}

} // namespace

std::optional<Standing> gathered(Site& site, const Standing& indicesStanding, ValueId indicesValue,
    const GatherAttributes& gather, const std::vector<std::size_t>& lookedUp)
{
    Framed operand = framed(site, 0);
    Framed indices = framed(site.walk, indicesValue, indicesStanding);
    if (!fitsIndexing(site, operand, indices, gather.dims, gather.sliceSizes, lookedUp))
        return std::nullopt;
    const Shape& local = site.localResult();
    Shape shape(local.size(), 0);
    std::vector<StandingDim> dims(local.size());
    Shape sizes = gather.sliceSizes;
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
        if (sizes[dim] == operand.local[dim] && !contains(gather.dims.collapsed, dim) && !contains(gather.dims.operandBatch, dim)
            && !contains(lookedUp, dim))
            sizes[dim] = operand.shape[dim];
    }
    for (const auto& [to, from] : windowDims(gather.dims, operand.dims.size())) {
        shape[to] = sizes[from];
        if (sizes[from] == operand.shape[from] && !contains(lookedUp, from))
            dims[to] = operand.dims[from];
        dims[to].fill = kNoGlobal;
    }
    for (const auto& [to, from] : indexDims(gather.dims, local.size(), indices.dims.size())) {
        shape[to] = indices.shape[from];
        dims[to] = indices.dims[from];
        dims[to].fill = kNoGlobal;
    }
    const GlobalId global = site.walk.globals.number(
        fmt::format("gather {} {} {} {}", indexingText(gather.dims), sizes, operand.text(), indices.text()), shape, site.dtype(),
        site.walk.globals[operand.global].varies | site.walk.globals[indices.global].varies);
    Standing made = standingOf(global, shape, dims, local, site.mesh());
    made.partial = operand.partial;
    made.kind = operand.kind;
    if (!made.partial.empty() && !disjoint(made.partial, placeAxes(made)))
        return site.refuse("its operand is partial over an axis that splits its indices");
    return made;
}

std::optional<Standing> gatherLemma(Site& site, std::size_t)
{
    return gathered(site, *site.operands[1], site.value(1), site.op.as<GatherAttributes>(), {});
}

namespace {

/// What a scatter does: of one array by a known reduction, or of several by a block.
struct Scattering {
    IndexingDims dims;
    std::optional<ReduceKind> combiner;
    bool isPut = false; ///< an update takes the place of what was there
    std::size_t arrays = 1;
    std::string text;
};

std::optional<Scattering> scatteringOf(const Site& site)
{
    if (site.op.kind == OpKind::Scatter) {
        const auto& scatter = site.op.as<ScatterAttributes>();
        return Scattering{
            scatter.dims, scatter.combiner, !scatter.combiner, 1, scatter.combiner ? reduceKindName(*scatter.combiner) : "put"};
    }
    const auto dims = numbersOfScatter(site.op);
    if (!dims || site.op.as<OtherAttributes>().captures > 0)
        return std::nullopt;
    return Scattering{*dims, std::nullopt, false, site.op.results.size(), attributesText(site.walk, site.op)};
}

/// Arrays that lie alike: the first one's layout, copies following the others. False when they differ.
bool joined(const Site& site, std::size_t first, std::size_t count, std::vector<Framed>& arrays)
{
    for (std::size_t i = 0; i < count; ++i)
        arrays.push_back(framed(site, first + i));
    Framed& front = arrays.front();
    for (std::size_t dim = 0; dim < front.dims.size(); ++dim) {
        for (const Framed& array : arrays) {
            if (!array.isCopy(dim))
                adopt(front, dim, array, dim);
        }
        for (const Framed& array : arrays) {
            if (!array.isCopy(dim) && !sameAlong(front, dim, array, dim))
                return false;
        }
    }
    return true;
}

/// The elements of all arrays, laid out like the first one.
bool addTexts(std::vector<Framed>& arrays, std::string& text)
{
    for (Framed& array : arrays) {
        for (std::size_t dim = 0; dim < array.dims.size(); ++dim) {
            adopt(array, dim, arrays.front(), dim);
            if (!sameAlong(array, dim, arrays.front(), dim))
                return false;
        }
        text += " " + array.text();
    }
    return true;
}

} // namespace

std::optional<IndexingDims> numbersOfScatter(const Op& scatter)
{
    return scatter.kind == OpKind::Scatter ? std::optional(scatter.as<ScatterAttributes>().dims)
                                           : indexingDims(scatter.as<OtherAttributes>().attributes, true);
}

std::optional<Standing> scattered(Site& site, std::size_t result, const Standing& indicesStanding, ValueId indicesValue,
    const std::vector<std::size_t>& lookedUp)
{
    const auto scatter = scatteringOf(site);
    if (!scatter)
        return site.refuse("its dimensions are not followed");
    const IndexingDims& dims = scatter->dims;
    const std::size_t arrays = scatter->arrays;
    std::vector<Framed> allOperands;
    std::vector<Framed> allUpdates;
    if (!joined(site, 0, arrays, allOperands) || !joined(site, arrays + 1, arrays, allUpdates))
        return site.refuse("its arrays are split differently");
    Framed& operand = allOperands.front();
    Framed& updates = allUpdates.front();
    Framed indices = framed(site.walk, indicesValue, indicesStanding);
    Shape sizes(operand.dims.size(), 1);
    for (const auto& [from, to] : windowDims(dims, operand.dims.size()))
        sizes[to] = updates.local[from];
    if (!fitsIndexing(site, operand, indices, dims, sizes, lookedUp))
        return std::nullopt;
    for (const auto& [from, to] : windowDims(dims, operand.dims.size())) {
        if (sizes[to] != operand.local[to] || contains(lookedUp, to)) {
            if (updates.isCopy(from))
                updates.unclaim(from);
            if (!updates.isWhole(from))
                return site.refuse(fmt::format("its updates are split along dimension {}", from));
            continue;
        }
        adopt(updates, from, operand, to);
        adopt(operand, to, updates, from);
        if (!sameAlong(operand, to, updates, from))
            return site.refuse(fmt::format("its updates are split differently along dimension {}", from));
    }
    AxisRefs spread; // over which the updates are: each device adds its own
    for (const auto& [to, from] : indexDims(dims, updates.dims.size(), indices.dims.size())) {
        if (updates.isCopy(to))
            adopt(updates, to, indices, from);
        else
            adopt(indices, from, updates, to);
        if (!sameAlong(updates, to, indices, from))
            return site.refuse(fmt::format("its updates and its indices are split differently along dimension {}", to));
        const auto batch = std::find(dims.indicesBatch.begin(), dims.indicesBatch.end(), from);
        if (batch != dims.indicesBatch.end()) { // indices that are copies may lie as either of the others, which must lie alike
            const std::size_t along = dims.operandBatch[static_cast<std::size_t>(batch - dims.indicesBatch.begin())];
            adopt(operand, along, updates, to);
            if (!sameAlong(operand, along, updates, to))
                return site.refuse(fmt::format("operand and updates are split differently along batch dimension {}", along));
            continue;
        }
        if (!updates.isEven(to))
            return site.refuse(fmt::format("its updates end in padding along dimension {}", to));
        spread.insert(spread.end(), updates.dims[to].axes.begin(), updates.dims[to].axes.end());
    }
    const bool addsParts = scatter->combiner && arrays == 1 && updates.kind == *scatter->combiner
        && !variesAlong(site.walk, indices.global, updates.partial); // each device adds its part, at the places of all
    if (addsParts)
        spread.insert(spread.end(), updates.partial.begin(), updates.partial.end());
    else if (std::ranges::any_of(allUpdates, [](const Framed& array) { return !array.partial.empty(); }))
        return site.refuse("its updates are a partial result");
    spread = canonicalSet(spread);
    std::uint64_t varies = site.walk.globals[indices.global].varies;
    for (std::size_t i = 0; i < arrays; ++i) {
        if (arrays > 1 && !allOperands[i].partial.empty())
            return site.refuse("one of several operands is a partial result");
        varies |= site.walk.globals[allOperands[i].global].varies | site.walk.globals[allUpdates[i].global].varies;
    }
    if (!spread.empty() && !scatter->combiner)
        return site.refuse(scatter->isPut ? "the last update counts, and its updates are split"
                                          : "no reduction of its is known, and its updates are split");
    if (scatter->combiner) {
        const bool isPartial = operand.partial == spread && (spread.empty() || operand.kind == *scatter->combiner);
        if (!isPartial && !(operand.partial.empty() && canBePartial(site.walk, *site.operands[0], *scatter->combiner)))
            return site.refuse(
                "its operand is not partial over the axes that split its updates: it would be counted several times");
    } else if (!operand.partial.empty()) {
        return site.refuse("its operand is a partial result");
    }
    std::string text = fmt::format("scatter {} {} {} {}", result, indexingText(dims), scatter->text, indices.text());
    if (!addTexts(allOperands, text) || !addTexts(allUpdates, text))
        return site.refuse("its arrays are split differently");
    const GlobalId global = site.walk.globals.number(std::move(text), operand.shape, site.dtype(result), varies);
    for (StandingDim& dim : operand.dims)
        dim.fill = kNoGlobal;
    Standing made = standingOf(global, operand.shape, operand.dims, operand.local, site.mesh());
    if (!disjoint(spread, placeAxes(made)))
        return site.refuse("an axis splits its updates and its result");
    made.partial = spread;
    made.kind = scatter->combiner.value_or(ReduceKind::Sum);
    return made;
}

std::optional<Standing> scatterLemma(Site& site, std::size_t result)
{
    const std::size_t indices = site.op.results.size();
    return scattered(site, result, *site.operands[indices], site.value(indices), {});
}

} // namespace meshwright
