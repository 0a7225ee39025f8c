// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/known_numbers.h"
#include "core/prove/lemmas.h"

#include "core/sharding/shard_indices.h"

#include <fmt/format.h>

#include <algorithm>

// Devices exchange the elements along a split dimension that an op needs of other pieces: what each has is then a window of the dimension.
namespace meshwright {

namespace {

constexpr std::int64_t kMostPlaces = std::int64_t{1} << 21; ///< pieces times elements that are looked at one by one

std::int64_t sizeOf(const Walk& walk, const Standing& standing, std::size_t dim)
{
    return walk.globals[standing.global].shape[static_cast<std::size_t>(standing.dims[dim].from)];
}

/// What a device's dimension has, as a window.
Window windowOf(const Walk& walk, const Standing& standing, std::size_t dim, std::int64_t local)
{
    const StandingDim& along = standing.dims[dim];
    if (along.window)
        return *along.window;
    const std::int64_t size = sizeOf(walk, standing, dim);
    Window window;
    for (std::int64_t piece = 0; piece < shardCount(along.axes); ++piece) {
        auto& runs = window.emplace_back();
        const std::int64_t length = std::min(local, size - piece * local);
        if (length > 0)
            runs.push_back({0, length, piece * local});
    }
    return window;
}

/// Runs in order, neighbours that continue each other as one.
void tidy(Window& window)
{
    for (std::vector<Run>& runs : window) {
        std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.at < b.at; });
        std::vector<Run> merged;
        for (const Run& run : runs) {
            if (run.length <= 0)
                continue;
            if (!merged.empty() && merged.back().at + merged.back().length == run.at
                && merged.back().start + merged.back().length == run.start)
                merged.back().length += run.length;
            else
                merged.push_back(run);
        }
        runs = std::move(merged);
    }
}

/// The devices have their pieces, and with `isExact` nothing else.
bool covers(const Window& window, std::int64_t local, std::int64_t size, bool isExact)
{
    bool covered = local * static_cast<std::int64_t>(window.size()) >= size;
    for (std::size_t piece = 0; piece < window.size() && covered; ++piece) {
        const std::int64_t begin = static_cast<std::int64_t>(piece) * local;
        const std::int64_t wanted = std::min(local, size - begin);
        if (wanted <= 0) {
            covered = !isExact || window[piece].empty();
            continue;
        }
        covered = std::any_of(window[piece].begin(), window[piece].end(), [&](const Run& run) {
            return run.at <= 0 && run.start - run.at == begin
                && (isExact ? run.length == wanted && window[piece].size() == 1 : run.at + run.length >= wanted);
        });
    }
    return covered;
}

/// The standing with this window along a dimension; without one where the devices have their pieces.
Standing withWindow(
    const Walk& walk, Standing standing, std::size_t dim, AxisRefs axes, Window window, std::int64_t local, GlobalId fill)
{
    tidy(window);
    StandingDim& along = standing.dims[dim];
    const std::int64_t size = sizeOf(walk, standing, dim);
    const bool isPlain = covers(window, local, size, true);
    along.axes = std::move(axes);
    along.fill = isPlain ? kNoGlobal : fill;
    along.window = isPlain ? nullptr : std::make_shared<const Window>(std::move(window));
    if (isPlain)
        standing.mesh = 0;
    return standing;
}

bool isSplit(const StandingDim& along)
{
    return along.from >= 0 && (!along.axes.empty() || along.window);
}

bool hasPlace(const Walk& walk, const Standing& standing, std::size_t dim, std::int64_t local)
{
    const StandingDim& along = standing.dims[dim];
    return standing.isWhole() && standing.mesh == 0 && along.from >= 0 && shardCount(along.axes) * local <= kMostPlaces
        && sizeOf(walk, standing, dim) > 0;
}

/// The parts of local elements [first, first + length) of runs, which lie at `to` afterwards.
Window movedRuns(const Window& window, std::int64_t first, std::int64_t length, std::int64_t to)
{
    Window moved;
    for (const std::vector<Run>& runs : window) {
        auto& kept = moved.emplace_back();
        for (const Run& run : runs) {
            const std::int64_t begin = std::max(run.at, first);
            const std::int64_t end = std::min(run.at + run.length, first + length);
            if (begin < end)
                kept.push_back({begin - first + to, end - begin, run.start + begin - run.at});
        }
    }
    return moved;
}

/// The value as one that is made of its elements, once or several times: each is where the pieces of that one have it, if they do.
/// `embeddings` are into one value; `local` is the size of the device's dimension.
std::optional<Standing> embedded(const Walk& walk, const Standing& standing, std::size_t dim,
    const std::vector<const Embedding*>& embeddings, std::int64_t local)
{
    const StandingDim& along = standing.dims[dim];
    const Embedding& first = *embeddings.front();
    if ((first.isOfSeveral ? dim : static_cast<std::size_t>(along.from)) != first.dim)
        return std::nullopt;
    if (first.isOfSeveral && standing.dims.size() != walk.globals[first.whole].shape.size())
        return std::nullopt; // copies along a dimension that the whole does not have
    Standing made = standing;
    made.global = first.whole;
    int last = -1;
    for (std::size_t d = 0; d < made.dims.size() && first.isOfSeveral; ++d) {
        int& from = made.dims[d].from;
        if (from >= 0 ? from <= last : walk.globals[first.whole].shape[d] != 1)
            return std::nullopt;
        last = std::max(last, from);
        from = from >= 0 ? static_cast<int>(d) : from; // the parts' own dimensions are in the order of the whole's
    }
    Window window;
    std::int64_t piece = 0;
    const std::int64_t size = walk.globals[first.whole].shape[first.dim];
    for (const std::vector<Run>& runs : windowOf(walk, standing, dim, local)) {
        auto& kept = window.emplace_back();
        std::vector<bool> has(static_cast<std::size_t>(local), false);
        for (const Run& run : runs) {
            for (std::int64_t i = run.at; i < run.at + run.length; ++i) {
                has[static_cast<std::size_t>(i)] = true;
                std::optional<std::int64_t> place;
                for (const Embedding* embedding : embeddings) {
                    const std::int64_t distance = run.start + i - run.at - embedding->start;
                    const std::int64_t element = distance / embedding->stride;
                    const bool isIn = distance % embedding->stride == 0 && element >= 0 && element < embedding->count;
                    if (isIn && (!place || element + embedding->at == piece * local + i))
                        place = element + embedding->at;
                }
                if (place)
                    kept.push_back({i, 1, *place});
            }
        }
        // Behind the window lies what the value is padded with.
        for (std::int64_t i = 0; i < local && first.filler != kNoGlobal && along.fill == first.filler; ++i) {
            const std::int64_t index = piece * local + i;
            const bool isFiller = index < size && (index < first.at || index >= first.at + first.count);
            if (!has[static_cast<std::size_t>(i)] && isFiller) {
                kept.push_back({i, 1, index});
                keepOnlyFill(made, first.filler);
            }
        }
        ++piece;
    }
    return withWindow(walk, std::move(made), dim, along.axes, std::move(window), local, kNoGlobal);
}

/// What a dimension of copies is to be a part of something: pieces of an array of as many copies as is claimed, or the only element.
Standing placed(const Walk& walk, ValueId value, Standing standing, std::size_t dim)
{
    if (standing.dims[dim].from >= 0 || !standing.isWhole())
        return standing;
    const Framed array = framed(walk, value, standing);
    const bool isUnit = array.shape[dim] == 1;
    if (!isUnit && (array.dims[dim].axes.empty() || array.mesh != 0))
        return standing;
    if (!isUnit || !ownsUnit(walk.globals, standing.global, standing.dims, dim)) {
        const Framed all = filled(walk, array, true);
        standing = standingOf(all.global, all.shape, all.dims, all.local, all.mesh);
    }
    if (isUnit)
        standing.dims[dim].from = static_cast<int>(dim);
    return standing;
}

/// The standing itself, and as values that are made of its elements along a dimension.
Standings views(const Walk& walk, const Standing& standing, std::size_t dim, std::int64_t local)
{
    Standings all{standing};
    if (!hasPlace(walk, standing, dim, local))
        return all;
    const std::vector<Embedding>& embeddings = walk.globals[standing.global].embeddings;
    for (std::size_t i = 0; i < embeddings.size(); ++i) {
        std::vector<const Embedding*> into{&embeddings[i]};
        for (std::size_t other = 0; other < embeddings.size(); ++other) {
            const bool isAlike = other != i && embeddings[other].whole == embeddings[i].whole
                && embeddings[other].dim == embeddings[i].dim && embeddings[other].stride == embeddings[i].stride;
            if (isAlike)
                into.push_back(&embeddings[other]);
        }
        if (auto made = embedded(walk, standing, dim, into, local))
            all.push_back(*std::move(made));
    }
    return all;
}

/// What has become pieces of something that the source has, or of the value itself with more besides.
void addViews(const Walk& walk, const Op& op, std::size_t dim, Standings& standings)
{
    const std::int64_t local = walk.local(op.results[0])[dim];
    const std::size_t count = standings.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (!isSplit(standings[i].dims[dim]))
            continue;
        const StandingDim& along = standings[i].dims[dim];
        if (along.window && covers(*along.window, local, sizeOf(walk, standings[i], dim), false)) {
            Standing& plain = standings.emplace_back(Standing(standings[i]));
            plain.dims[dim].window = nullptr;
            plain.dims[dim].fill = kNoGlobal;
            plain.mesh = 0;
        }
        for (Standing& view : views(walk, Standing(standings[i]), dim, local)) {
            if (!view.dims[dim].window && view.global != standings[i].global)
                standings.push_back(std::move(view));
        }
    }
}

const std::vector<Run>& runsOf(const Window& window, std::int64_t piece)
{
    return window[window.size() == 1 ? 0 : static_cast<std::size_t>(piece)];
}

/// slice: every stride-th element of [start, limit) along one dimension.
Standings sliced(const Walk& walk, const Standings& operands, std::size_t dim, std::int64_t local, std::int64_t start,
    std::int64_t stride, std::int64_t count)
{
    Standings made;
    for (const Standing& operand : operands) {
        const StandingDim& along = operand.dims[dim];
        if (along.from < 0) {
            made.push_back(operand);
            continue;
        }
        if (!isSplit(along) || !hasPlace(walk, operand, dim, local)) {
            const std::int64_t size = along.from >= 0 ? sizeOf(walk, operand, dim) : 0;
            if (isSplit(along) || local != size)
                continue;
            Standing cut = operand;
            cut.global = walk.globals.changed(
                operand.global, "slice", {static_cast<std::size_t>(along.from), sliceText(start, count, stride), count});
            cut.dims[dim] = count == 1 ? StandingDim() : along;
            made.push_back(std::move(cut));
            continue;
        }
        const Window window = windowOf(walk, operand, dim, local);
        if (stride == 1) {
            made.push_back(withWindow(walk, operand, dim, along.axes, movedRuns(window, start, count, 0), count,
                along.window ? along.fill : kNoGlobal));
            continue;
        }
        for (const Embedding& embedding : walk.globals[operand.global].embeddings) {
            if (embedding.stride != stride || embedding.dim != static_cast<std::size_t>(along.from))
                continue;
            Window taken;
            for (const std::vector<Run>& runs : window) {
                auto& kept = taken.emplace_back();
                for (const Run& run : runs) {
                    for (std::int64_t j = 0; j < count; ++j) {
                        const std::int64_t i = start + j * stride;
                        const std::int64_t element = run.start + i - run.at - embedding.start;
                        if (i >= run.at && i < run.at + run.length && element >= 0 && element % stride == 0
                            && element / stride < embedding.count)
                            kept.push_back({j, 1, element / stride + embedding.at});
                    }
                }
            }
            Standing cut = operand;
            cut.global = embedding.whole;
            made.push_back(withWindow(walk, std::move(cut), dim, along.axes, std::move(taken), count, kNoGlobal));
        }
    }
    return made;
}

Standings slicedWindows(const Walk& walk, const Op& op)
{
    const auto& slice = op.as<SliceAttributes>();
    const Shape& local = walk.local(op.operands[0]);
    const auto isCut
        = [&](std::size_t dim) { return slice.starts[dim] != 0 || slice.strides[dim] != 1 || slice.limits[dim] != local[dim]; };
    Standings made = asArrays(walk, op.operands[0]);
    if (std::none_of(made.begin(), made.end(),
            [](const Standing& standing) { return std::any_of(standing.dims.begin(), standing.dims.end(), isSplit); }))
        return {};
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        if (!isCut(dim))
            continue;
        made = sliced(walk, made, dim, local[dim], slice.starts[dim], slice.strides[dim], walk.local(op.results[0])[dim]);
    }
    return made;
}

/// pad along a dimension of which each device has a window, or the whole: what is padded is left open, or is the filler.
std::optional<Standing> paddedWindow(const Walk& walk, const Standing& standing, std::size_t dim, std::int64_t local,
    std::int64_t after, std::int64_t low, GlobalId filler)
{
    const StandingDim& along = standing.dims[dim];
    if (!hasPlace(walk, standing, dim, local) || after * shardCount(along.axes) > kMostPlaces)
        return std::nullopt;
    const Window window = windowOf(walk, standing, dim, local);
    const std::int64_t first = std::max<std::int64_t>(0, -low);
    const bool isFull = std::all_of(window.begin(), window.end(), [&](const std::vector<Run>& runs) {
        std::int64_t length = 0;
        for (const Run& run : runs)
            length += run.length;
        return length == local;
    });
    Window moved = movedRuns(window, first, after, std::max<std::int64_t>(0, low));
    moved = movedRuns(moved, 0, after, 0);
    return withWindow(
        walk, standing, dim, along.axes, std::move(moved), after, isFull || along.fill == filler ? filler : kNoGlobal);
}

Standings paddedWindows(const Walk& walk, const Op& op)
{
    const auto& pad = op.as<PadAttributes>();
    const Shape& local = walk.local(op.operands[0]);
    const Shape& after = walk.local(op.results[0]);
    GlobalId filler = kNoGlobal;
    for (const Standing& standing : walk.standings[op.operands[1].at()])
        filler = standing.isUniform() ? standing.global : filler;
    if (filler == kNoGlobal)
        return {};
    Standings made = walk.standings[op.operands[0].at()];
    std::erase_if(made, [](const Standing& standing) { return !standing.isWhole(); });
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        if (pad.low[dim] == 0 && pad.high[dim] == 0 && pad.interior[dim] == 0)
            continue;
        Standings padded;
        for (const Standing& before : made) {
            const Standing standing = placed(walk, op.operands[0], before, dim);
            const StandingDim& along = standing.dims[dim];
            const bool isAll = along.from >= 0 && !isSplit(along) && sizeOf(walk, standing, dim) == local[dim];
            if (isAll) {
                Standing& larger = padded.emplace_back(standing);
                larger.global = walk.globals.changed(standing.global, fmt::format("pad with {} of", filler),
                    {static_cast<std::size_t>(along.from), padText(pad.low[dim], pad.high[dim], pad.interior[dim]), after[dim]},
                    walk.globals[filler].varies);
                larger.dims[dim].fill = kNoGlobal;
                keepOnlyFill(larger, filler);
            }
            const bool mayBePart = isSplit(along) || (isAll && !walk.globals[standing.global].embeddings.empty());
            if (pad.interior[dim] == 0 && mayBePart) {
                if (auto window = paddedWindow(walk, standing, dim, local[dim], after[dim], pad.low[dim], filler))
                    padded.push_back(*std::move(window));
            }
        }
        made = std::move(padded);
    }
    return made;
}

/// Each device takes a part of its dimension that begins at a known place.
Standings ownWindows(const Walk& walk, const Op& op)
{
    const Shape& local = walk.local(op.operands[0]);
    const Shape& after = walk.local(op.results[0]);
    std::optional<std::size_t> cut;
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        if (local[dim] == after[dim])
            continue;
        if (cut)
            return {};
        cut = dim;
    }
    const auto begins = cut ? knownNumbers(walk, op.operands[1 + *cut]) : std::nullopt;
    if (!begins || (begins->dim >= 0 && begins->at[0].size() != 1))
        return {};
    Standings made;
    for (const Standing& standing : walk.standings[op.operands[0].at()]) {
        const StandingDim& along = standing.dims[*cut];
        if (!hasPlace(walk, standing, *cut, local[*cut])
            || (!along.axes.empty() && !begins->axes.empty() && along.axes != begins->axes))
            continue;
        const AxisRefs axes = along.axes.empty() ? begins->axes : along.axes;
        if (along.axes.empty() && !disjoint(axes, placeAxes(standing)))
            continue;
        const Window window = windowOf(walk, standing, *cut, local[*cut]);
        Window taken;
        for (std::int64_t piece = 0; piece < shardCount(axes); ++piece) {
            const std::int64_t begin = std::clamp<std::int64_t>((*begins)(piece, 0), 0, local[*cut] - after[*cut]);
            taken.push_back(movedRuns({runsOf(window, piece)}, begin, after[*cut], 0)[0]);
        }
        made.push_back(
            withWindow(walk, standing, *cut, axes, std::move(taken), after[*cut], along.window ? along.fill : kNoGlobal));
    }
    return made;
}

/// By piece number along the axes, that of the sender's piece (-1: none sends); empty where it differs between receivers, or where sender and
/// receiver have different pieces along other axes.
std::vector<std::int64_t> piecesFrom(
    const std::vector<std::int64_t>& sources, const AxisRefs& axes, const std::vector<AxisRefs>& others, const Mesh& mesh)
{
    constexpr std::size_t kAskedSingly = 64; // where other pieces differ, they mostly do so at once: no list of all is made then
    for (std::size_t receiver = 0; receiver < std::min(kAskedSingly, sources.size()); ++receiver) {
        const auto differs = [&](const AxisRefs& beside) {
            return shardIndex(sources[receiver], beside, mesh) != shardIndex(static_cast<std::int64_t>(receiver), beside, mesh);
        };
        if (sources[receiver] >= mesh.deviceCount()
            || (sources[receiver] >= 0 && std::any_of(others.begin(), others.end(), differs)))
            return {};
    }
    AxisRefs beside; // pieces are the same along all others when they are along all these axes
    for (const AxisRefs& other : others)
        beside.insert(beside.end(), other.begin(), other.end());
    const std::vector<std::int64_t> besideOf = shardIndices(beside, mesh);
    const std::vector<std::int64_t> pieceOf = shardIndices(axes, mesh);
    std::vector<std::int64_t> from(static_cast<std::size_t>(shardCount(axes)), -2);
    for (std::size_t receiver = 0; receiver < pieceOf.size(); ++receiver) {
        if (sources[receiver] >= mesh.deviceCount())
            return {};
        const auto sender = static_cast<std::size_t>(std::max<std::int64_t>(0, sources[receiver]));
        auto& known = from[static_cast<std::size_t>(pieceOf[receiver])];
        const std::int64_t piece = sources[receiver] < 0 ? -1 : pieceOf[sender];
        if ((known != -2 && known != piece) || (sources[receiver] >= 0 && besideOf[sender] != besideOf[receiver]))
            return {};
        known = piece;
    }
    return from;
}

/// `piecesFrom` of the pieces along `axes`, which are those of dimension `dim`, beside the standing's other dimensions, what devices differ in, and the parts
/// of sums.
const std::vector<std::int64_t>& piecesFrom(const Walk& walk, const std::vector<std::int64_t>& sources, const Standing& standing,
    std::optional<std::size_t> dim, const AxisRefs& axes)
{
    const Mesh& mesh = walk.mesh();
    std::string question = fmt::format("pieces of {}", axesKey(axes));
    std::vector<AxisRefs> others;
    const auto add = [&](const AxisRefs& beside) {
        others.push_back(beside);
        question += fmt::format(" beside {}", axesKey(beside));
    };
    for (std::size_t other = 0; other < standing.dims.size(); ++other) {
        if (other != dim && standing.dims[other].from >= 0 && !standing.dims[other].axes.empty())
            add(standing.dims[other].axes);
    }
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        if (variesAlong(walk, standing.global, {wholeAxis(mesh, axis)}))
            add({wholeAxis(mesh, axis)});
    }
    if (!standing.isWhole())
        add(standing.partial);
    return walk.ofTable(sources, std::move(question), [&] { return piecesFrom(sources, axes, others, mesh); });
}

/// Devices take the pieces of others along one split dimension, by a table that is the same for all other places; or what they have themselves.
Standings permutedWindows(const Walk& walk, const Op& op)
{
    const auto& attributes = op.as<CollectiveAttributes>();
    const auto& layout = walk.function[op.operands[0]].sharding;
    const Mesh& mesh = walk.mesh();
    const auto& sources = attributes.sources;
    if (!attributes.pieces || !layout || layout->mesh != 0 || sources.size() != static_cast<std::size_t>(mesh.deviceCount())
        || !sendsWithinGroups(walk, attributes, mesh))
        return {};
    const Shape& local = walk.local(op.operands[0]);
    Standings made;
    for (const Standing& whole : walk.standings[op.operands[0].at()]) {
        const bool isOnMesh = whole.isWhole() && (!hasMesh(whole) || whole.mesh == 0);
        if (isOnMesh && piecesFrom(walk, sources, whole, std::nullopt, {}) == std::vector<std::int64_t>{0})
            made.push_back(whole);
        for (std::size_t dim = 0; dim < whole.dims.size(); ++dim) {
            const Standing standing = placed(walk, op.operands[0], whole, dim);
            const StandingDim& along = standing.dims[dim];
            Standing total = standing;
            total.partial.clear();
            if (!isSplit(along) || along.axes.empty() || !hasPlace(walk, total, dim, local[dim]))
                continue;
            const std::vector<std::int64_t>& from = piecesFrom(walk, sources, standing, dim, along.axes);
            if (from.empty())
                continue;
            const Window window = windowOf(walk, standing, dim, local[dim]);
            Window taken;
            for (const std::int64_t piece : from)
                taken.push_back(piece < 0 ? std::vector<Run>() : window[static_cast<std::size_t>(piece)]);
            made.push_back(withWindow(walk, standing, dim, along.axes, std::move(taken), local[dim], kNoGlobal));
        }
    }
    return made;
}

/// Of elements of two values that differ along one dimension only: what is behind the other dimensions' ends, where it is the same.
void keepCommonFills(Standing& standing, const Standing& other)
{
    for (std::size_t dim = 0; dim < standing.dims.size(); ++dim) {
        if (standing.dims[dim].fill != other.dims[dim].fill)
            standing.dims[dim].fill = kNoGlobal;
    }
}

/// True when two standings differ along one dimension only.
bool differAlong(const Standing& a, const Standing& b, std::size_t dim)
{
    if (a.global != b.global || a.mesh != b.mesh || !a.isWhole() || !b.isWhole())
        return false;
    for (std::size_t other = 0; other < a.dims.size(); ++other) {
        const StandingDim& x = a.dims[other];
        const StandingDim& y = b.dims[other];
        if (x.from != y.from || (other != dim && x.from >= 0 && (x.axes != y.axes || x.window != y.window)))
            return false;
    }
    return true;
}

Standings viewsOf(const Walk& walk, ValueId value, std::size_t dim)
{
    Standings all;
    for (const Standing& standing : walk.standings[value.at()]) {
        const Standing own = placed(walk, value, standing, dim);
        if (own.dims[dim].from < 0)
            continue;
        for (Standing& view : views(walk, own, dim, walk.local(value)[dim]))
            all.push_back(std::move(view));
    }
    return all;
}

/// select(mask, a, b): of two windows of one value.
Standings selectedWindows(const Walk& walk, const Op& op)
{
    const auto mask = knownNumbers(walk, op.operands[0]);
    if (!mask)
        return {};
    Standings made;
    const Shape& local = walk.local(op.results[0]);
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        if (mask->dim >= 0 && static_cast<std::size_t>(mask->dim) != dim)
            continue;
        for (const Standing& a : viewsOf(walk, op.operands[1], dim)) {
            const StandingDim& along = a.dims[dim];
            const bool isNew = along.axes.empty() && !mask->axes.empty(); // each device takes its own of what all have
            const bool fits = hasPlace(walk, a, dim, local[dim])
                && (isNew ? disjoint(mask->axes, placeAxes(a)) : mask->axes.empty() || mask->axes == along.axes);
            if (!fits || shardCount(mask->axes) * local[dim] > kMostPlaces)
                continue;
            const AxisRefs& axes = isNew ? mask->axes : along.axes;
            const Window ofA = windowOf(walk, a, dim, local[dim]);
            const auto chosen = [&](const Window& window, bool value) {
                Window kept;
                for (std::int64_t piece = 0; piece < shardCount(axes); ++piece) {
                    auto& runs = kept.emplace_back();
                    for (const Run& run : runsOf(window, piece)) {
                        for (std::int64_t i = 0; i < run.length; ++i) {
                            if (((*mask)(piece, run.at + i) != 0) == value)
                                runs.push_back({run.at + i, 1, run.start + i});
                        }
                    }
                }
                tidy(kept);
                return kept;
            };
            for (const Standing& filler : walk.standings[op.operands[2].at()]) {
                if (!filler.isUniform())
                    continue;
                // Outside of the window there is the filler where the mask is true for no other element.
                const Window kept = chosen(ofA, true);
                bool isFilled = true;
                for (std::size_t piece = 0; piece < kept.size(); ++piece) {
                    std::int64_t ones = 0;
                    std::int64_t covered = 0;
                    for (std::int64_t i = 0; i < local[dim]; ++i)
                        ones += (*mask)(static_cast<std::int64_t>(piece), i) != 0 ? 1 : 0;
                    for (const Run& run : kept[piece])
                        covered += run.length;
                    isFilled = isFilled && ones == covered;
                }
                made.push_back(withWindow(walk, a, dim, axes, kept, local[dim], isFilled ? filler.global : kNoGlobal));
            }
            for (const Standing& b : viewsOf(walk, op.operands[2], dim)) {
                if (!differAlong(a, b, dim) || (b.dims[dim].axes != axes && !(isNew && b.dims[dim].axes.empty()))
                    || !hasPlace(walk, b, dim, local[dim]))
                    continue;
                Window both = chosen(ofA, true);
                const Window rest = chosen(windowOf(walk, b, dim, local[dim]), false);
                for (std::size_t piece = 0; piece < both.size(); ++piece)
                    both[piece].insert(both[piece].end(), rest[piece].begin(), rest[piece].end());
                made.push_back(withWindow(walk, a, dim, axes, std::move(both), local[dim], kNoGlobal));
                keepCommonFills(made.back(), b);
            }
        }
    }
    return made;
}

/// Windows of one value, one behind the other.
Standings joinedWindows(const Walk& walk, const Op& op)
{
    const std::size_t dim = op.as<ConcatenateAttributes>().dim;
    Standings made;
    const std::int64_t local = walk.local(op.results[0])[dim];
    for (Standing& first : viewsOf(walk, op.operands[0], dim)) {
        if (!isSplit(first.dims[dim]) || !hasPlace(walk, first, dim, local))
            continue;
        Window joined = windowOf(walk, first, dim, walk.local(op.operands[0])[dim]);
        std::int64_t at = walk.local(op.operands[0])[dim];
        bool fits = true;
        for (std::size_t i = 1; i < op.operands.size() && fits; ++i) {
            const Standings parts = viewsOf(walk, op.operands[i], dim);
            const std::int64_t size = walk.local(op.operands[i])[dim];
            const auto part = std::find_if(parts.begin(), parts.end(), [&](const Standing& other) {
                return differAlong(first, other, dim) && other.dims[dim].axes == first.dims[dim].axes;
            });
            fits = part != parts.end();
            if (!fits)
                break;
            const Window more = movedRuns(windowOf(walk, *part, dim, size), 0, size, at);
            for (std::size_t piece = 0; piece < joined.size(); ++piece)
                joined[piece].insert(joined[piece].end(), more[piece].begin(), more[piece].end());
            keepCommonFills(first, *part);
            at += size;
        }
        if (fits)
            made.push_back(withWindow(walk, first, dim, first.dims[dim].axes, std::move(joined), local, kNoGlobal));
    }
    return made;
}

Standings reversedWindows(const Walk& walk, const Op& op)
{
    Standings made = walk.standings[op.operands[0].at()];
    const Shape& local = walk.local(op.operands[0]);
    for (const std::size_t dim : op.as<ReverseAttributes>().dims) {
        Standings reversed;
        for (const Standing& standing : made) {
            const StandingDim& along = standing.dims[dim];
            if (along.from < 0) {
                reversed.push_back(standing);
                continue;
            }
            const auto from = static_cast<std::size_t>(along.from);
            if (!isSplit(along)) {
                Standing whole = standing;
                if (sizeOf(walk, standing, dim) == local[dim]) {
                    whole.global = walk.globals.changed(standing.global, "reverse", {from, "all", local[dim]});
                    reversed.push_back(std::move(whole));
                }
                continue;
            }
            if (!hasPlace(walk, standing, dim, local[dim]))
                continue;
            Window window = windowOf(walk, standing, dim, local[dim]);
            const std::int64_t size = sizeOf(walk, standing, dim);
            for (std::vector<Run>& runs : window) {
                for (Run& run : runs)
                    run = {local[dim] - run.at - run.length, run.length, size - run.start - run.length};
            }
            Standing turned = standing;
            turned.global = walk.globals.changed(standing.global, "reverse", {from, "all", size});
            reversed.push_back(withWindow(walk, std::move(turned), dim, along.axes, std::move(window), local[dim], kNoGlobal));
        }
        made = std::move(reversed);
    }
    return made;
}

Standings madeWindows(const Walk& walk, const Op& op)
{
    switch (op.kind) {
    case OpKind::Slice:
        return slicedWindows(walk, op);
    case OpKind::Pad:
        return paddedWindows(walk, op);
    case OpKind::DynamicSlice:
        return ownWindows(walk, op);
    case OpKind::CollectivePermute:
        return permutedWindows(walk, op);
    case OpKind::Select:
        return selectedWindows(walk, op);
    case OpKind::Concatenate:
        return joinedWindows(walk, op);
    case OpKind::Reverse:
        return reversedWindows(walk, op);
    case OpKind::Reshape: // a copy
        return walk.local(op.operands[0]) == walk.local(op.results[0]) ? walk.standings[op.operands[0].at()] : Standings();
    default:
        return {};
    }
}

} // namespace

Standings windowStandings(const Walk& walk, const Op& op, Standings made)
{
    for (Standing& standing : madeWindows(walk, op))
        made.push_back(std::move(standing));
    for (std::size_t dim = 0; !made.empty() && dim < made.front().dims.size(); ++dim)
        addViews(walk, op, dim, made);
    return made;
}

} // namespace meshwright
