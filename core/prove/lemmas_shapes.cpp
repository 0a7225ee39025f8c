// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

std::optional<Standing> transposeLemma(Site& site, std::size_t)
{
    Standing made = *site.operands[0];
    const auto& permutation = site.op.as<TransposeAttributes>().permutation;
    for (std::size_t dim = 0; dim < permutation.size(); ++dim)
        made.dims[dim] = site.operands[0]->dims[permutation[dim]];
    return made;
}

std::optional<Standing> broadcastLemma(Site& site, std::size_t)
{
    const auto& broadcast = site.op.as<BroadcastAttributes>();
    const Standing& operand = *site.operands[0];
    Standing made = operand;
    made.dims.assign(broadcast.shape.size(), {});
    for (std::size_t dim = 0; dim < broadcast.dims.size(); ++dim) {
        const std::int64_t size = site.local(0)[dim];
        const std::size_t to = broadcast.dims[dim];
        if (size == broadcast.shape[to])
            made.dims[to] = operand.dims[dim];
        else if (size != 1 || operand.dims[dim].from >= 0) // one element of several is not the only one
            return site.refuse(fmt::format("dimension {} of the operand is one piece of several, and is expanded", dim));
    }
    return made;
}

namespace {

/// The dimensions of a reshape's operand and result that have the same elements: from .. fromEnd of one, to .. toEnd of the other.
struct Regrouping {
    std::size_t from = 0;
    std::size_t fromEnd = 0;
    std::size_t to = 0;
    std::size_t toEnd = 0;
};

/// The finest grouping by which both the whole shapes and the local ones agree; nothing when the numbers of elements differ.
std::optional<std::vector<Regrouping>> regroupings(const Shape& a, const Shape& localA, const Shape& b, const Shape& localB)
{
    std::vector<Regrouping> groups;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() || j < b.size()) {
        Regrouping group{i, i, j, j};
        std::int64_t sizeA = 1;
        std::int64_t sizeB = 1;
        std::int64_t pieceA = 1;
        std::int64_t pieceB = 1;
        do {
            const bool left = i < a.size() && (j == b.size() || sizeA < sizeB || (sizeA == sizeB && pieceA <= pieceB));
            if (left && (i < a.size())) {
                sizeA *= a[i];
                pieceA *= localA[i++];
            } else if (j < b.size()) {
                sizeB *= b[j];
                pieceB *= localB[j++];
            } else {
                return std::nullopt;
            }
        } while (sizeA != sizeB || pieceA != pieceB);
        group.fromEnd = i;
        group.toEnd = j;
        groups.push_back(group);
    }
    return groups;
}

/// The places of elements, major to minor: parts of mesh axes and of the flat local index, neighbours merged.
struct Digit {
    AxisRefs axes; ///< or
    std::int64_t local = 1;
    friend bool operator==(const Digit&, const Digit&) = default;
};

std::vector<Digit> digitsOf(const std::vector<StandingDim>& dims, const Shape& local, std::size_t first, std::size_t end)
{
    std::vector<Digit> digits;
    for (std::size_t dim = first; dim < end; ++dim) {
        if (!dims[dim].axes.empty()) {
            if (digits.empty() || digits.back().axes.empty())
                digits.push_back({dims[dim].axes, 1});
            else
                digits.back().axes = followedBy(digits.back().axes, dims[dim].axes);
        }
        if (local[dim] != 1) {
            if (digits.empty() || !digits.back().axes.empty())
                digits.push_back({{}, local[dim]});
            else
                digits.back().local *= local[dim];
        }
    }
    return digits;
}

/// A reshape that only adds and removes dimensions of size 1 leaves every other dimension what it is. `isUnit` of the operand's dimensions:
/// those of one element that is all there is.
std::optional<Standing> withOtherUnits(const Site& site, const Shape* whole)
{
    const Standing& operand = *site.operands[0];
    const Shape& from = site.local(0);
    const Shape& to = site.localResult();
    Standing made = operand;
    made.dims.assign(to.size(), {});
    std::size_t at = 0;
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        const bool isReal = operand.dims[dim].from >= 0;
        if (!isReal && from[dim] == 1)
            continue;
        const std::int64_t size
            = isReal ? site.walk.globals[operand.global].shape[static_cast<std::size_t>(operand.dims[dim].from)] : 0;
        const auto fits = [&](std::size_t other) {
            return to[other] == from[dim] && (!isReal || from[dim] > 1 || whole == nullptr || (*whole)[other] == size);
        };
        while (at < to.size() && !fits(at)) {
            if (to[at] != 1)
                return std::nullopt;
            ++at;
        }
        if (at == to.size())
            return std::nullopt;
        made.dims[at++] = operand.dims[dim];
    }
    for (; at < to.size(); ++at) {
        if (to[at] != 1)
            return std::nullopt;
    }
    return made;
}

} // namespace

namespace {

/// True when the partitioner takes the dimensions for what they are in a standing.
bool hasClaimedSizes(const Site& site, const Standing& standing, const Shape& claimed)
{
    for (std::size_t dim = 0; dim < standing.dims.size(); ++dim) {
        const int from = standing.dims[dim].from;
        const std::int64_t size
            = from >= 0 ? site.walk.globals[standing.global].shape[static_cast<std::size_t>(from)] : std::int64_t{1};
        if (claimed[dim] != size && (from >= 0 || site.localResult()[dim] == 1))
            return false;
    }
    return true;
}

std::optional<Standing> regrouped(Site& site, const Shape* claimed, std::optional<std::size_t> longer = {});

/// What is exchanged later is claimed with its padding: the first and the last dimensions that are the operand's have its sizes.
Shape withSizesOf(const Site& site, Shape claimed)
{
    const Framed operand = framed(site, 0);
    const auto& layout = site.walk.function[site.op.results[0]].sharding;
    const std::size_t count = std::min(operand.dims.size(), claimed.size());
    const auto isSame = [&](std::size_t from, std::size_t to) {
        return operand.local[from] == site.localResult()[to] && operand.dims[from].axes == canonical(layout->dims[to].axes);
    };
    if (!layout || layout->dims.size() != claimed.size())
        return claimed;
    std::size_t first = 0;
    for (; first < count && isSame(first, first); ++first)
        claimed[first] = operand.shape[first];
    for (std::size_t last = 1; last + first <= count; ++last) {
        if (!isSame(operand.dims.size() - last, claimed.size() - last))
            break;
        claimed[claimed.size() - last] = operand.shape[operand.dims.size() - last];
    }
    return claimed;
}

} // namespace

std::optional<Standing> reshapeLemma(Site& site, std::size_t)
{
    const ValueId result = site.op.results[0];
    const Shape* claimed = site.walk.isSource() ? nullptr : &(*site.walk.wholes)[result.at()];
    if (claimed != nullptr && claimed->size() != site.localResult().size())
        claimed = nullptr;
    const auto withUnits = [&](const Shape* claim) {
        auto made = withOtherUnits(site, claim);
        return made && (claim == nullptr || hasClaimedSizes(site, *made, *claim)) ? made : std::nullopt;
    };
    if (auto made = withUnits(claimed))
        return made;
    if (auto made = regrouped(site, claimed))
        return made;
    const std::string refusal = site.refusal;
    if (claimed != nullptr) {
        if (const Shape own = withSizesOf(site, *claimed); own != *claimed) {
            if (auto made = withUnits(&own))
                return made;
            if (auto made = regrouped(site, &own))
                return made;
        }
    }
    // What one microbatch claims is said of all: one dimension is so many times as long, one that stays a dimension rather than a part of another.
    const std::int64_t all = elementCount(framed(site, 0).shape);
    const std::int64_t own = claimed != nullptr ? elementCount(*claimed) : 0;
    const bool isOfAll = own > 0 && all > own && all % own == 0;
    for (const bool onlyUnits : {true, false}) {
        for (std::size_t dim = 0; isOfAll && dim < claimed->size(); ++dim) {
            Shape longer = *claimed;
            longer[dim] *= all / own;
            if (auto made = onlyUnits ? withUnits(&longer) : regrouped(site, &longer, dim))
                return made;
        }
    }
    site.refuse(refusal);
    return withOtherUnits(site, claimed);
}

namespace {

/// The elements of an array in their order, as `Framed::text` says it. Of a reshape: those of what it is made of.
std::string elementsText(const GlobalValues& globals, const Framed& array)
{
    const GlobalValue& value = globals[array.global];
    std::size_t next = 0; // of the value's dimensions; those of size 1 may be missing
    for (const StandingDim& dim : array.dims) {
        while (next < value.shape.size() && dim.from > static_cast<int>(next) && value.shape[next] == 1)
            ++next;
        if (dim.from != static_cast<int>(next++))
            return array.text();
    }
    const bool isAll = std::all_of(value.shape.begin() + static_cast<std::ptrdiff_t>(std::min(next, value.shape.size())),
        value.shape.end(), [](std::int64_t size) { return size == 1; });
    return value.reshaped.empty() || !isAll ? array.text() : value.reshaped;
}

/// Adds to a dimension, as its major ones, the axes that split the operand and no dimension of the result.
void addMissingAxes(const Framed& operand, std::vector<StandingDim>& dims, std::size_t longer)
{
    AxisRefs missing;
    for (const StandingDim& along : operand.dims) {
        for (const AxisRef& axis : along.axes) {
            if (std::all_of(dims.begin(), dims.end(), [&](const StandingDim& dim) { return disjoint(dim.axes, {axis}); }))
                missing.push_back(axis);
        }
    }
    dims[longer].axes = canonical(followedBy(missing, dims[longer].axes));
}

/// `longer`: the dimension that is longer than claimed.
std::optional<Standing> regrouped(Site& site, const Shape* claimed, std::optional<std::size_t> longer)
{
    const ValueId result = site.op.results[0];
    Framed operand = framed(site, 0);
    const Shape& local = site.localResult();
    const Shape shape = claimed != nullptr ? *claimed : local;
    std::vector<StandingDim> dims(shape.size());
    const auto& layout = site.walk.function[result].sharding;
    for (std::size_t dim = 0; dim < dims.size() && !site.walk.isSource() && layout && layout->dims.size() == dims.size(); ++dim)
        dims[dim].axes = canonical(layout->dims[dim].axes);
    if (longer)
        addMissingAxes(operand, dims, *longer);
    const auto groups = regroupings(operand.shape, operand.local, shape, local);
    if (!groups)
        return site.refuse(fmt::format("the claimed shape {} has other elements than {}", shape, operand.shape));
    for (const Regrouping& group : *groups) {
        const bool isSame = group.fromEnd - group.from == 1 && group.toEnd - group.to == 1;
        if (isSame) {
            dims[group.to] = operand.dims[group.from];
            continue;
        }
        for (std::size_t dim = group.from; dim < group.fromEnd; ++dim) {
            if (!operand.isEven(dim))
                return site.refuse(fmt::format("dimension {} ends in padding", dim));
        }
        for (std::size_t dim = group.to; dim < group.toEnd; ++dim) {
            if (local[dim] * shardCount(dims[dim].axes) != shape[dim])
                return site.refuse(fmt::format("dimension {} of the result would end in padding", dim));
        }
        if (digitsOf(operand.dims, operand.local, group.from, group.fromEnd) != digitsOf(dims, local, group.to, group.toEnd))
            return site.refuse(fmt::format("the pieces of {} are not pieces of {}", operand.shape, shape));
    }
    GlobalValues& globals = site.walk.globals;
    const std::string elements = elementsText(globals, operand);
    const GlobalId global
        = globals.number(fmt::format("reshape {} {}", shape, elements), shape, site.dtype(), globals[operand.global].varies);
    globals[global].reshaped = elements;
    Standing made = standingOf(global, shape, dims, local, operand.mesh);
    made.partial = operand.partial;
    made.kind = operand.kind;
    return made;
}

} // namespace

std::string sliceText(std::int64_t start, std::int64_t count, std::int64_t stride)
{
    return fmt::format("{}+{}*{}", start, count, count > 1 ? stride : 1);
}

std::string padText(std::int64_t low, std::int64_t high, std::int64_t interior)
{
    return fmt::format("{} {} {}", low, high, interior);
}

namespace {

/// A change of one dimension, and what of the elements it keeps.
struct Step {
    DimChange change;
    Embedding embedding; ///< count 0: nothing is said
};

/// The value after all changes. In the source, every value on the way, in any order, is noted as one that is made of the elements.
GlobalId changedBy(
    const Site& site, GlobalId of, const std::string& name, const std::vector<Step>& steps, std::uint64_t varies = 0)
{
    GlobalValues& globals = site.walk.globals;
    const auto afterSome = [&](std::size_t some) {
        GlobalId value = of;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if ((some >> i & 1U) != 0)
                value = globals.changed(value, name, steps[i].change, varies);
        }
        return value;
    };
    const std::size_t all = (std::size_t{1} << steps.size()) - 1;
    for (std::size_t some = 0; site.walk.isSource() && some < all && steps.size() <= 4; ++some) {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if ((some >> i & 1U) != 0 || steps[i].embedding.count == 0)
                continue;
            Embedding embedding = steps[i].embedding;
            embedding.whole = afterSome(some | std::size_t{1} << i);
            globals.embed(afterSome(some), embedding);
        }
    }
    return afterSome(all);
}

} // namespace

std::optional<Standing> sliceLemma(Site& site, std::size_t)
{
    const auto& slice = site.op.as<SliceAttributes>();
    Standing made = *site.operands[0];
    std::vector<Step> steps;
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim) {
        StandingDim& along = made.dims[dim];
        const std::int64_t local = site.local(0)[dim];
        if (along.from < 0 || site.localResult()[dim] == local)
            continue;
        const auto from = static_cast<std::size_t>(along.from);
        const std::int64_t size = site.walk.globals[made.global].shape[from];
        if (along.window || !along.axes.empty())
            return site.refuse(fmt::format("dimension {} is split, and it takes a part of each piece", dim));
        if (slice.starts[dim] == 0 && slice.strides[dim] == 1 && slice.limits[dim] >= size)
            continue; // cuts only what is behind the end
        if (slice.limits[dim] > size)
            return site.refuse(fmt::format("it takes elements behind the end of dimension {}", dim));
        const std::int64_t count = site.localResult()[dim];
        steps.push_back({{from, sliceText(slice.starts[dim], count, slice.strides[dim]), count},
            {kNoGlobal, from, slice.starts[dim], slice.strides[dim], count, 0}});
        along.fill = kNoGlobal;
        if (count == 1)
            along = {};
    }
    made.global = changedBy(site, made.global, "slice", steps);
    return made;
}

std::optional<Standing> reverseLemma(Site& site, std::size_t)
{
    Standing made = *site.operands[0];
    std::vector<Step> steps;
    for (const std::size_t dim : site.op.as<ReverseAttributes>().dims) {
        const StandingDim& along = made.dims[dim];
        if (along.from < 0)
            continue;
        const auto from = static_cast<std::size_t>(along.from);
        const std::int64_t size = site.walk.globals[made.global].shape[from];
        if (along.window || !along.axes.empty() || site.local(0)[dim] != size)
            return site.refuse(fmt::format("dimension {} is split", dim));
        if (!isAlongCopies(site.walk.globals[made.global], along))
            steps.push_back({{from, "all", size}, {}});
    }
    made.global = changedBy(site, made.global, "reverse", steps);
    return made;
}

namespace {

/// Whether the dimension keeps its elements, all of them and in their places.
bool isPadded(const PadAttributes& pad, std::size_t dim)
{
    return pad.low[dim] != 0 || pad.high[dim] != 0 || pad.interior[dim] != 0;
}

} // namespace

/// More room behind the last element is not a change of the value; on devices this is how pieces of one size are made.
std::optional<Standing> withMoreRoom(const Site& site)
{
    const auto& pad = site.op.as<PadAttributes>();
    Standing made = *site.operands[0];
    const Standing& filler = *site.operands[1];
    bool padsCopies = false;
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim)
        padsCopies = padsCopies || (isPadded(pad, dim) && made.dims[dim].from < 0);
    if (padsCopies && made.isWhole()) {
        const Framed all = filled(site.walk, framed(site, 0), true);
        made = standingOf(all.global, all.shape, all.dims, all.local, all.mesh);
    }
    for (std::size_t dim = 0; dim < made.dims.size(); ++dim) {
        if (!isPadded(pad, dim))
            continue;
        StandingDim& along = made.dims[dim];
        if (along.from < 0 || along.window || !along.axes.empty() || pad.low[dim] != 0 || pad.interior[dim] != 0)
            return std::nullopt;
        const std::int64_t size = site.walk.globals[made.global].shape[static_cast<std::size_t>(along.from)];
        if (site.localResult()[dim] < size)
            return std::nullopt;
        if (site.local(0)[dim] == size)
            along.fill = filler.isUniform() ? filler.global : kNoGlobal;
        else if (pad.high[dim] > 0 && !(filler.isUniform() && filler.global == along.fill))
            along.fill = kNoGlobal;
    }
    return made;
}

std::optional<Standing> padLemma(Site& site, std::size_t)
{
    const auto& pad = site.op.as<PadAttributes>();
    Framed operand = framed(site, 0);
    const Standing& filler = *site.operands[1];
    if (!filler.isUniform())
        return site.refuse("what it pads with is a partial result");
    if (!operand.partial.empty() && !(operand.kind == ReduceKind::Sum && site.walk.globals.isZero(filler.global)))
        return site.refuse("a partial result is padded with something other than the identity of its reduction");
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
        if (!isPadded(pad, dim) || !operand.isCopy(dim))
            continue;
        operand.unclaim(dim);
    }
    // A dimension of one element may be one of the value's own.
    const auto isOwn = [&](std::size_t dim) {
        return operand.shape[dim] == 1 && ownsUnit(site.walk.globals, operand.global, operand.dims, dim);
    };
    bool padsCopies = false;
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim)
        padsCopies = padsCopies || (isPadded(pad, dim) && operand.isCopy(dim) && !isOwn(dim));
    if (padsCopies)
        operand = filled(site.walk, operand, true);
    Standing made = *site.operands[0];
    made.global = operand.global;
    made.mesh = operand.mesh;
    std::vector<Step> steps;
    for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
        if (padsCopies)
            made.dims[dim] = operand.dims[dim];
        if (!isPadded(pad, dim))
            continue;
        if (!operand.isWhole(dim))
            return site.refuse(fmt::format("dimension {} is split or ends in padding", dim));
        StandingDim& along = made.dims[dim];
        along.fill = kNoGlobal;
        if (along.from < 0)
            along.from = static_cast<int>(dim);
        const auto from = static_cast<std::size_t>(along.from);
        const std::int64_t size = site.localResult()[dim];
        const std::int64_t first = std::max<std::int64_t>(0, -pad.low[dim]); // that is not cut off
        const std::int64_t end = std::min(operand.shape[dim], size - pad.low[dim]);
        steps.push_back({{from, padText(pad.low[dim], pad.high[dim], pad.interior[dim]), size},
            {kNoGlobal, from, first, 1, pad.interior[dim] == 0 ? std::max<std::int64_t>(0, end - first) : 0, first + pad.low[dim],
                filler.global}});
        if (size == 1)
            along = {};
    }
    made.global = changedBy(
        site, made.global, fmt::format("pad with {} of", filler.global), steps, site.walk.globals[filler.global].varies);
    keepOnlyFill(made, filler.global);
    return made;
}

std::optional<Standing> concatenateLemma(Site& site, std::size_t)
{
    const std::size_t dim = site.op.as<ConcatenateAttributes>().dim;
    std::vector<Framed> parts;
    for (std::size_t i = 0; i < site.operands.size(); ++i)
        parts.push_back(framed(site, i));
    Framed first = parts.front();
    for (std::size_t other = 0; other < first.dims.size(); ++other) { // copies follow the others
        for (Framed& part : parts) {
            if (other != dim && first.isCopy(other) && !part.isCopy(other))
                adopt(first, other, part, other);
        }
    }
    std::string text = fmt::format("concatenate {}", dim);
    std::uint64_t varies = 0;
    Shape shape = first.shape;
    shape[dim] = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Framed& part = parts[i];
        for (std::size_t other = 0; other < first.dims.size(); ++other) {
            if (other == dim)
                continue;
            adopt(part, other, first, other);
            if (!sameAlong(part, other, first, other) && !(part.shape[other] == first.shape[other] && part.isCopy(other)))
                return site.refuse(fmt::format("operand {} is split differently along dimension {}", i, other));
        }
        if (part.isCopy(dim)) {
            part.unclaim(dim);
        }
        if (!part.isWhole(dim))
            return site.refuse(fmt::format("operand {} is split along dimension {}", i, dim));
        part = filled(site.walk, part);
        if (part.partial != parts.front().partial || (!part.partial.empty() && part.kind != parts.front().kind))
            return site.refuse("its operands are partial over different axes");
        shape[dim] += part.shape[dim];
        text += " " + part.text();
        varies |= site.walk.globals[part.global].varies;
    }
    std::vector<StandingDim> dims = first.dims;
    dims[dim] = {};
    for (StandingDim& along : dims)
        along.fill = kNoGlobal;
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(), varies);
    Standing made = standingOf(global, shape, dims, site.localResult(), site.mesh());
    made.partial = parts.front().partial;
    made.kind = parts.front().kind;
    if (!disjoint(made.partial, placeAxes(made)))
        return site.refuse("a partial operand is split over the same axes as another one");
    std::int64_t at = 0;
    for (Framed& part : parts) {
        if (site.walk.isSource() && part.isCopy(dim) && !ownsUnit(site.walk.globals, part.global, part.dims, dim))
            part = filled(site.walk, part, true);
        bool isInOrder = site.walk.isSource(); // its own dimensions, which need not be as many
        int last = -1;
        for (std::size_t other = 0; other < part.dims.size(); ++other) {
            isInOrder = isInOrder && (part.isCopy(other) ? part.shape[other] == 1 : part.dims[other].from > last);
            last = std::max(last, part.dims[other].from);
        }
        if (isInOrder)
            site.walk.globals.embed(part.global, {global, dim, 0, 1, part.shape[dim], at, kNoGlobal, true});
        at += part.shape[dim];
    }
    return made;
}

} // namespace meshwright
