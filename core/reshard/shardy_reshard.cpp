// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/reshard_steps.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

using AxesPerDim = std::vector<AxisRefs>;

/// What of an axis fits into a capacity, and what is left of it.
struct FittedAxis {
    AxisRef within;
    std::optional<AxisRef> rest;
};

/// The major part of an axis that fits; `capacity` is divided by it. Nothing when neither divides the other.
std::optional<FittedAxis> fitInto(const AxisRef& axis, std::int64_t& capacity)
{
    if (capacity <= 1 || (axis.size % capacity != 0 && capacity % axis.size != 0))
        return std::nullopt;
    if (capacity >= axis.size) {
        capacity /= axis.size;
        return FittedAxis{axis, std::nullopt};
    }
    const FittedAxis fitted{{axis.axis, axis.pre, capacity}, AxisRef{axis.axis, axis.pre * capacity, axis.size / capacity}};
    capacity = 1;
    return fitted;
}

bool sizesDivide(const AxisRef& a, const AxisRef& b)
{
    return a.size % b.size == 0 || b.size % a.size == 0;
}

/// Shardy's way from one layout to another.
class ShardySequence {
public:
    ShardySequence(const ReshardedArray& array, const TensorSharding& from, const Mesh& fromMesh, const TensorSharding& to,
        const Mesh& toMesh, const AxisRefs& parts)
        : m_array(array)
        , m_fromMesh(fromMesh)
        , m_toMesh(toMesh)
        , m_toMeshIndex(to.mesh)
        , m_reordered(fromMesh == toMesh)
        , m_layout(from)
    {
        for (std::size_t dim = 0; dim < from.dims.size(); ++dim) {
            AxisRefs in = cutInto(from.dims[dim].axes, parts);
            AxisRefs out = cutInto(to.dims[dim].axes, parts);
            const auto [a, b] = std::mismatch(in.begin(), in.end(), out.begin(), out.end());
            in.erase(in.begin(), a);
            out.erase(out.begin(), b);
            m_difference.held.insert(in.begin(), in.end());
            m_difference.in.push_back(std::move(in));
            m_difference.out.push_back(std::move(out));
        }
        findPlaces();
        m_room.assign(rank(), 1);
        for (DimSharding& dim : m_layout.dims)
            dim.open = false;
        m_layout.replicated.clear();
    }

    std::vector<ReshardStep> run()
    {
        for (int round = 0; round < 2 && !isDone(); ++round) {
            slice();
            permute();
            moveAll(false);
            moveAll(true);
            gather(false);
        }
        // Sizes that share no divisor can leave something over.
        if (!isDone()) {
            gather(true);
            sliceRest();
        }
        return std::move(m_steps);
    }

private:
    struct Place {
        std::size_t dim = 0;
        std::size_t index = 0;
    };

    /// What still differs, after the axes that are already right.
    struct Difference {
        AxesPerDim in; ///< the axes that each dimension has
        AxesPerDim out; ///< those that it should have
        std::set<AxisRef> held; ///< all of `in`
        std::map<AxisRef, Place> placeOf; ///< in `out`
    };

    std::size_t rank() const { return m_layout.dims.size(); }

    bool isDone() const
    {
        const auto empty = [](const AxisRefs& axes) { return axes.empty(); };
        return m_reordered && std::all_of(m_difference.in.begin(), m_difference.in.end(), empty)
            && std::all_of(m_difference.out.begin(), m_difference.out.end(), empty);
    }

    const Mesh& mesh() const { return m_reordered ? m_toMesh : m_fromMesh; }
    AxisRefs& current(std::size_t dim) { return m_layout.dims[dim].axes; }

    void findPlaces()
    {
        m_difference.placeOf.clear();
        for (std::size_t dim = 0; dim < m_difference.out.size(); ++dim) {
            for (std::size_t index = 0; index < m_difference.out[dim].size(); ++index)
                m_difference.placeOf[m_difference.out[dim][index]] = {dim, index};
        }
    }

    /// Takes the last axes of a dimension off the layout; they may be parts of the axes in its list.
    void dropMinor(std::size_t dim, AxisRefs::const_iterator first, AxisRefs::const_iterator last)
    {
        AxisRefs& axes = current(dim);
        while (last != first) {
            --last;
            if (axes.back().size == last->size)
                axes.pop_back();
            else
                axes.back().size /= last->size;
        }
    }

    void emit(OpKind kind, CollectiveAttributes attributes, const TensorSharding& before, const Mesh& beforeMesh)
    {
        m_steps.push_back(reshardStep(kind, std::move(attributes), m_array, before, beforeMesh, m_layout, mesh()));
    }

    void emitPerDim(OpKind kind, AxesPerDim perDim, const TensorSharding& before)
    {
        if (std::all_of(perDim.begin(), perDim.end(), [](const AxisRefs& axes) { return axes.empty(); }))
            return;
        CollectiveAttributes attributes;
        attributes.perDim = std::move(perDim);
        emit(kind, std::move(attributes), before, mesh());
    }

    /// An axis that a capacity cut in two is cut in the wanted layout too.
    void splitWanted(const FittedAxis& fitted)
    {
        const AxisRef whole{fitted.within.axis, fitted.within.pre, fitted.within.size * fitted.rest->size};
        for (AxisRefs& axes : m_difference.out) {
            const auto found = std::find(axes.begin(), axes.end(), whole);
            if (found == axes.end())
                continue;
            *found = *fitted.rest;
            axes.insert(found, fitted.within);
        }
    }

    /// Gives a dimension as many of the axes as its room allows. Those that do not divide the room are passed over.
    template <typename Placed>
    void fill(std::size_t dim, AxisRefs& available, bool atFront, Placed placed)
    {
        AxisRefs& in = m_difference.in[dim];
        auto at = atFront ? std::ptrdiff_t{0} : std::ssize(in);
        for (std::size_t i = 0; i < available.size() && m_room[dim] > 1;) {
            const auto fitted = fitInto(available[i], m_room[dim]);
            if (!fitted) {
                ++i;
                continue;
            }
            available.erase(available.begin() + static_cast<std::ptrdiff_t>(i));
            in.insert(in.begin() + at++, fitted->within);
            m_difference.held.insert(fitted->within);
            placed(fitted->within, dim);
            if (fitted->rest) {
                splitWanted(*fitted);
                available.insert(available.begin(), *fitted->rest);
                ++i;
            }
        }
    }

    // ---- all-slice

    /// Axes to slice where a later all-to-all will take them from, so that they need not be put in order by a permute.
    AxisRefs toSliceBeforeMove(std::size_t source)
    {
        const AxisRefs& in = m_difference.in[source];
        if (in.empty() || !m_difference.out[source].empty())
            return {};
        const auto place = m_difference.placeOf.find(in.back());
        if (place == m_difference.placeOf.end() || !m_difference.in[place->second.dim].empty())
            return {};
        const std::size_t target = place->second.dim;
        const AxisRefs& out = m_difference.out[target];
        const auto start = std::find(out.begin(), out.end(), in.back()) + 1;
        if (start == out.end() || m_difference.held.contains(*start))
            return {};

        // The end of `in` must be what stands before `start`, and nothing else of `in` may go to the same dimension.
        auto inAt = in.rbegin();
        std::int64_t moved = 1;
        for (auto outAt = std::make_reverse_iterator(start); inAt != in.rend() && outAt != out.rend() && *inAt == *outAt;
             ++inAt, ++outAt)
            moved *= inAt->size;
        for (; inAt != in.rend(); ++inAt) {
            const auto other = m_difference.placeOf.find(*inAt);
            if (other != m_difference.placeOf.end() && other->second.dim == target)
                return {};
        }
        AxisRefs sliced;
        for (auto axis = start; axis != out.end() && !m_difference.held.contains(*axis); ++axis)
            sliced.push_back(*axis);
        if (m_array.shape[source] % (shardCount(current(source)) * shardCount(sliced)) != 0)
            return {};
        m_room[target] /= moved * shardCount(sliced);
        return sliced;
    }

    void slice()
    {
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            const std::int64_t out = shardCount(m_difference.out[dim]);
            m_room[dim] = out / std::gcd(shardCount(m_difference.in[dim]), out);
        }
        const TensorSharding before = m_layout;
        AxesPerDim sliced(rank());
        const auto take = [&](const AxisRef& axis, std::size_t dim) {
            appendMerging(sliced[dim], axis);
            appendMerging(current(dim), axis);
        };
        for (std::size_t source = 0; source < rank(); ++source) {
            for (const AxisRef& axis : toSliceBeforeMove(source)) {
                m_difference.in[source].push_back(axis);
                m_difference.held.insert(axis);
                take(axis, source);
            }
        }
        AxisRefs homeless;
        for (std::size_t dim = 0; dim < rank(); ++dim)
            sliceAtHome(dim, homeless, take);
        for (std::size_t dim = 0; dim < rank(); ++dim)
            fill(dim, homeless, false, take);
        findPlaces();
        emitPerDim(OpKind::AllSlice, std::move(sliced), before);
    }

    /// Slices free axes of a dimension at that dimension; those without room are left for others.
    template <typename Take>
    void sliceAtHome(std::size_t dim, AxisRefs& homeless, Take take)
    {
        AxisRefs& out = m_difference.out[dim];
        for (std::size_t i = 0; i < out.size();) {
            const AxisRef axis = out[i];
            if (m_difference.held.contains(axis)) {
                ++i;
                continue;
            }
            const auto fitted = fitInto(axis, m_room[dim]);
            if (!fitted) {
                homeless.push_back(axis);
                ++i;
                continue;
            }
            take(fitted->within, dim);
            if (m_difference.in[dim].empty() && i == 0) {
                out.erase(out.begin());
            } else {
                m_difference.held.insert(fitted->within);
                m_difference.in[dim].push_back(fitted->within);
                out[i++] = fitted->within;
            }
            if (fitted->rest) {
                out.insert(out.begin() + static_cast<std::ptrdiff_t>(i++), *fitted->rest);
                homeless.push_back(*fitted->rest);
            }
        }
    }

    // ---- collective-permute

    /// Some dimension has axes in the wrong order, or axes that others could replace.
    bool shouldPermute() const
    {
        std::optional<AxisRef> toDrop;
        std::optional<AxisRef> toAdd;
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            if (!m_difference.in[dim].empty() && !m_difference.out[dim].empty()
                && sizesDivide(m_difference.in[dim].front(), m_difference.out[dim].front()))
                return true;
            for (const AxisRef& axis : m_difference.out[dim]) {
                if (!m_difference.held.contains(axis))
                    toAdd = axis;
            }
            if (isOutOfOrder(dim, toDrop))
                return true;
        }
        return toAdd && toDrop && sizesDivide(*toAdd, *toDrop);
    }

    /// The axes that go to one dimension do not follow each other as they do there, or one that is to be gathered stands behind one that moves.
    bool isOutOfOrder(std::size_t dim, std::optional<AxisRef>& toDrop) const
    {
        std::optional<std::size_t> lastDim;
        std::size_t lastIndex = 0;
        std::set<std::size_t> seen;
        for (const AxisRef& axis : m_difference.in[dim]) {
            std::optional<std::size_t> target;
            if (const auto place = m_difference.placeOf.find(axis); place != m_difference.placeOf.end()) {
                target = place->second.dim;
                const bool follows = lastDim == target && place->second.index == lastIndex + 1;
                if ((*target == dim || seen.contains(*target)) && !follows)
                    return true;
                seen.insert(*target);
                lastIndex = place->second.index;
            } else if (lastDim && m_difference.out[dim].empty()) {
                return true;
            } else {
                toDrop = axis;
            }
            lastDim = target;
        }
        return false;
    }

    void permute()
    {
        const TensorSharding before = m_layout;
        const Mesh& beforeMesh = mesh();
        bool assigned = false;
        if (shouldPermute()) {
            const Difference difference = m_difference;
            assigned = reassign();
            if (!assigned) {
                m_difference = difference;
                m_layout = before;
            }
        }
        if (!assigned && m_reordered)
            return;
        m_reordered = true;
        m_layout.mesh = m_toMeshIndex;
        emit(OpKind::CollectivePermute, {}, before, beforeMesh);
    }

    /// Gives every dimension the same number of pieces made of other axes: first those that belong there, then those that are wanted
    /// elsewhere, then, in front of them, those that will be gathered. False when the sizes do not work out, so that a dimension would
    /// have fewer pieces: Shardy's verifier refuses such a permute.
    bool reassign()
    {
        AxisRefs wanted;
        AxesPerDim unwanted(rank());
        m_difference.held.clear();
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            AxisRefs& in = m_difference.in[dim];
            AxisRefs& out = m_difference.out[dim];
            const std::int64_t pieces = shardCount(in);
            m_room[dim] = pieces;
            dropMinor(dim, in.begin(), in.end());
            while (m_room[dim] > 1 && !out.empty()) {
                const auto fitted = fitInto(out.front(), m_room[dim]);
                if (!fitted)
                    break;
                out.erase(out.begin());
                appendMerging(current(dim), fitted->within);
                if (fitted->rest)
                    out.insert(out.begin(), *fitted->rest);
            }
            wanted.insert(wanted.end(), out.begin(), out.end());
            unwanted[dim] = unwantedOf(dim, pieces / m_room[dim]);
            in.clear();
        }
        const auto nothing = [](const AxisRef&, std::size_t) {};
        for (std::size_t dim = 0; dim < rank(); ++dim)
            fill(dim, wanted, false, nothing);
        for (std::size_t dim = 0; dim < rank(); ++dim)
            fill(dim, unwanted[dim], true, nothing);
        AxisRefs left;
        for (const AxisRefs& axes : unwanted)
            left.insert(left.end(), axes.begin(), axes.end());
        for (std::size_t dim = 0; dim < rank(); ++dim)
            fill(dim, left, true, nothing);
        findPlaces();
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            for (const AxisRef& axis : m_difference.in[dim])
                appendMerging(current(dim), axis);
        }
        return std::all_of(m_room.begin(), m_room.end(), [](std::int64_t room) { return room == 1; });
    }

    /// The axes of a dimension that nothing wants, those first that can stay where they are: past the `replaced` pieces.
    AxisRefs unwantedOf(std::size_t dim, std::int64_t replaced) const
    {
        AxisRefs axes = m_difference.in[dim];
        std::erase_if(axes, [&](const AxisRef& axis) { return m_difference.placeOf.contains(axis); });
        AxisRefs late;
        while (replaced > 1 && !axes.empty()) {
            const auto fitted = fitInto(axes.front(), replaced);
            if (!fitted)
                break;
            axes.erase(axes.begin());
            late.push_back(fitted->within);
            if (fitted->rest)
                axes.insert(axes.begin(), *fitted->rest);
        }
        axes.insert(axes.end(), late.begin(), late.end());
        return axes;
    }

    // ---- all-to-all

    void moveAll(bool anyOrder)
    {
        for (std::size_t source = 0; source < rank(); ++source) {
            while (moveFrom(source, anyOrder)) { }
        }
    }

    /// Moves the longest end of a dimension whose axes all go to one other dimension.
    bool moveFrom(std::size_t source, bool anyOrder)
    {
        AxisRefs& in = m_difference.in[source];
        std::optional<std::size_t> target;
        auto first = in.end();
        while (first != in.begin()) {
            const auto place = m_difference.placeOf.find(*std::prev(first));
            if (place == m_difference.placeOf.end() || place->second.dim == source || (target && place->second.dim != *target))
                break;
            target = place->second.dim;
            --first;
        }
        if (!target)
            return false;
        AxisRefs& wanted = m_difference.out[*target];
        const bool inOrder = in.end() - first <= std::ssize(wanted) && std::equal(first, in.end(), wanted.begin());
        if (!anyOrder && !inOrder)
            return false;

        const TensorSharding before = m_layout;
        const AxisRefs moved(first, in.end());
        dropMinor(source, first, in.end());
        in.erase(first, in.end());
        AxisMove move{{}, source, *target};
        for (const AxisRef& axis : moved) {
            appendMerging(move.axes, axis);
            appendMerging(current(*target), axis);
            if (m_difference.in[*target].empty() && wanted.front() == axis) {
                wanted.erase(wanted.begin());
                m_difference.held.erase(axis);
            } else {
                m_difference.in[*target].push_back(axis);
            }
        }
        CollectiveAttributes attributes;
        attributes.moves = {std::move(move)};
        emit(OpKind::AllToAll, std::move(attributes), before, mesh());
        return true;
    }

    // ---- all-gather

    /// Gathers the end of every dimension that nothing wants, or all that is not in its place.
    void gather(bool all)
    {
        const TensorSharding before = m_layout;
        AxesPerDim gathered(rank());
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            AxisRefs& in = m_difference.in[dim];
            auto first = in.end();
            while (first != in.begin() && (all || !m_difference.placeOf.contains(*std::prev(first))))
                --first;
            dropMinor(dim, first, in.end());
            for (auto axis = first; axis != in.end(); ++axis) {
                appendMerging(gathered[dim], *axis);
                m_difference.held.erase(*axis);
            }
            in.erase(first, in.end());
        }
        emitPerDim(OpKind::AllGather, std::move(gathered), before);
    }

    void sliceRest()
    {
        const TensorSharding before = m_layout;
        AxesPerDim sliced(rank());
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            for (const AxisRef& axis : m_difference.out[dim]) {
                appendMerging(sliced[dim], axis);
                appendMerging(current(dim), axis);
            }
            m_difference.out[dim].clear();
        }
        emitPerDim(OpKind::AllSlice, std::move(sliced), before);
    }

    const ReshardedArray& m_array;
    const Mesh& m_fromMesh;
    const Mesh& m_toMesh;
    std::int32_t m_toMeshIndex;
    bool m_reordered; ///< the layout is on `to`'s mesh
    TensorSharding m_layout;
    Difference m_difference;
    std::vector<std::int64_t> m_room; ///< by how much a dimension may still be split
    std::vector<ReshardStep> m_steps;
};

/// The layout in which no dimension is split over an axis that both layouts cut in ways that no grid has.
TensorSharding withoutClashes(const TensorSharding& from, const TensorSharding& to)
{
    std::map<std::int32_t, AxisRefs> byAxis;
    for (const AxisRef& axis : axesNamed(from, to))
        byAxis[axis.axis].push_back(axis);
    TensorSharding middle = from;
    for (const auto& [axis, refs] : byAxis) {
        if (commonParts(refs))
            continue;
        const auto clashes = [axis = axis](const AxisRef& ref) { return ref.axis == axis; };
        for (DimSharding& dim : middle.dims)
            dim.axes.erase(std::find_if(dim.axes.begin(), dim.axes.end(), clashes), dim.axes.end());
        std::erase_if(middle.unreduced, [&](const AxisRef& ref) {
            return clashes(ref) && std::find(to.unreduced.begin(), to.unreduced.end(), ref) == to.unreduced.end();
        });
    }
    return middle;
}

/// The axes that a slice after the reduction of `reduced` can scatter over: of every dimension the longest prefix that was reduced.
AxesPerDim scatterable(const AxesPerDim& sliced, const AxisRefs& reduced)
{
    AxesPerDim scattered;
    for (const AxisRefs& axes : sliced) {
        AxisRefs named = axes;
        named.insert(named.end(), reduced.begin(), reduced.end());
        const auto parts = commonParts(named);
        AxisRefs prefix;
        for (const AxisRef& part : parts ? cutInto(axes, *parts) : AxisRefs{}) {
            if (std::none_of(reduced.begin(), reduced.end(), [&](const AxisRef& axis) { return overlaps(axis, part); }))
                break;
            appendMerging(prefix, part);
        }
        scattered.push_back(std::move(prefix));
    }
    return scattered;
}

/// An all-reduce and the slice after it as one reduce-scatter, where the slice uses up all reduced axes.
void fuseReduction(std::vector<ReshardStep>& steps, const ReshardedArray& array, const TensorSharding& from, const Mesh& mesh)
{
    if (steps.size() < 2 || steps[0].kind != OpKind::AllReduce || steps[1].kind != OpKind::AllSlice)
        return;
    const AxesPerDim& sliced = steps[1].attributes.perDim;
    CollectiveAttributes scatter;
    scatter.perDim = scatterable(sliced, steps[0].attributes.axes);
    AxisRefs used;
    for (const AxisRefs& axes : scatter.perDim)
        used.insert(used.end(), axes.begin(), axes.end());
    if (!withoutAxes(steps[0].attributes.axes, used).empty())
        return;
    TensorSharding scattered = steps[0].result;
    CollectiveAttributes rest;
    bool more = false;
    for (std::size_t dim = 0; dim < sliced.size(); ++dim) {
        for (const AxisRef& axis : scatter.perDim[dim])
            appendMerging(scattered.dims[dim].axes, axis);
        const auto split = takeMajor(sliced[dim], shardCount(scatter.perDim[dim]));
        assert(split);
        more = more || !split->left.empty();
        rest.perDim.push_back(split->left);
    }
    std::vector<ReshardStep> fused = {reshardStep(OpKind::ReduceScatter, std::move(scatter), array, from, mesh, scattered, mesh)};
    if (more)
        fused.push_back(reshardStep(OpKind::AllSlice, std::move(rest), array, scattered, mesh, steps[1].result, mesh));
    fused.insert(fused.end(), steps.begin() + 2, steps.end());
    steps = std::move(fused);
}

bool splitsNothing(const TensorSharding& sharding)
{
    return std::all_of(sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.axes.empty(); });
}

} // namespace

std::optional<ReshardPlan> planShardyReshard(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from,
    const Mesh& fromMesh, const TensorSharding& to, const Mesh& toMesh, const CollectiveCost& cost)
{
    const ReshardedArray array{shape, elementBytes};
    TensorSharding at = layoutOnly(from);
    TensorSharding goal = layoutOnly(to);
    const Mesh* goalMesh = &toMesh;
    if (splitsNothing(goal)) {
        goal.mesh = at.mesh;
        goalMesh = &fromMesh;
    }
    if (fromMesh.axes() != goalMesh->axes() || fromMesh.deviceCount() != toMesh.deviceCount())
        return std::nullopt;

    std::vector<ReshardStep> steps;
    if (AxisRefs reduced = withoutAxes(at.unreduced, goal.unreduced); !reduced.empty()) {
        CollectiveAttributes attributes;
        attributes.axes = std::move(reduced);
        const TensorSharding before = at;
        at.unreduced = goal.unreduced;
        steps.push_back(reshardStep(OpKind::AllReduce, std::move(attributes), array, before, fromMesh, at, fromMesh));
    }
    const auto add = [&](const TensorSharding& next, const Mesh& nextMesh) {
        const auto parts = commonParts(axesNamed(at, next));
        assert(parts);
        auto more = ShardySequence(array, at, fromMesh, next, nextMesh, *parts).run();
        steps.insert(steps.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
        at = next;
    };
    if (!commonParts(axesNamed(at, goal)))
        add(withoutClashes(at, goal), fromMesh);
    add(goal, *goalMesh);
    fuseReduction(steps, array, layoutOnly(from), fromMesh);
    return planOf(std::move(steps), array, from, fromMesh, cost);
}

} // namespace meshwright
