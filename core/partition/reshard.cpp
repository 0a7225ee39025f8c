// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/reshard.h"

#include "core/sharding/layout.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>

namespace meshwright {

namespace {

/// A layout on the way: for each dimension its atoms, major to minor, and the atoms that are unreduced. Atoms are indices into a
/// list of axis parts none of which overlap.
struct State {
    std::vector<std::vector<int>> dims;
    std::vector<int> unreduced; ///< ascending

    friend auto operator<=>(const State&, const State&) = default;
};

/// What leads from one state to the next: one collective over atoms.
struct Edge {
    OpKind kind = OpKind::AllGather;
    std::vector<std::vector<int>> perDim;
    std::vector<int> axes; ///< AllReduce
    std::size_t from = 0; ///< AllToAll
    std::size_t to = 0;
};

/// Cuts the axes of both layouts so that any two parts are equal or disjoint.
AxisRefs atomsOf(const TensorSharding& from, const TensorSharding& to, const Mesh& mesh)
{
    std::vector<std::set<std::int64_t>> cuts(mesh.axes().size());
    std::vector<std::pair<std::size_t, std::pair<std::int64_t, std::int64_t>>> covered;
    const auto add = [&](const AxisRefs& axes) {
        for (const AxisRef& axis : axes) {
            cuts[static_cast<std::size_t>(axis.axis)].insert({axis.pre, axis.pre * axis.size});
            covered.push_back({static_cast<std::size_t>(axis.axis), {axis.pre, axis.pre * axis.size}});
        }
    };
    for (const TensorSharding* sharding : {&from, &to}) {
        for (const DimSharding& dim : sharding->dims)
            add(dim.axes);
        add(sharding->unreduced);
    }
    AxisRefs atoms;
    for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
        for (auto cut = cuts[axis].begin(); cut != cuts[axis].end() && std::next(cut) != cuts[axis].end(); ++cut) {
            const std::int64_t start = *cut;
            const std::int64_t end = *std::next(cut);
            const bool used = std::any_of(covered.begin(), covered.end(),
                [&](const auto& part) { return part.first == axis && part.second.first <= start && end <= part.second.second; });
            if (used)
                atoms.push_back({static_cast<std::int32_t>(axis), start, end / start});
        }
    }
    return atoms;
}

class Planner {
public:
    Planner(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to, const Mesh& mesh,
        const CollectiveCost& cost)
        : m_shape(shape)
        , m_elementBytes(elementBytes)
        , m_from(from)
        , m_to(to)
        , m_mesh(mesh)
        , m_cost(cost)
        , m_atoms(atomsOf(from, to, mesh))
        , m_start(stateOf(from))
        , m_goal(stateOf(to))
        , m_byteLimit(std::max(localBytes(m_start), localBytes(m_goal)))
    {
    }

    ReshardPlan plan()
    {
        auto path = shortestPath();
        if (!path) {
            m_byteLimit = std::numeric_limits<
                std::int64_t>::max(); // sizes that share no divisor: a larger layout on the way is unavoidable
            path = shortestPath();
        }
        assert(path); // gathering everything, then slicing, always leads there
        ReshardPlan plan;
        State at = m_start;
        for (std::size_t i = 0; i < path->size(); ++i) {
            // Neighbouring gathers, and neighbouring slices, are one collective over several dimensions.
            Edge edge = (*path)[i].first;
            State next = (*path)[i].second;
            while (i + 1 < path->size() && edge.kind == (*path)[i + 1].first.kind
                && (edge.kind == OpKind::AllGather || edge.kind == OpKind::AllSlice)) {
                ++i;
                joinPerDim(edge, (*path)[i].first);
                next = (*path)[i].second;
            }
            plan.steps.push_back(stepOf(edge, at, next));
            plan.cost += costOf(edge, at, next);
            plan.peakBytes = std::max(plan.peakBytes, localBytes(at) + localBytes(next));
            at = std::move(next);
        }
        return plan;
    }

private:
    static void joinPerDim(Edge& edge, const Edge& later)
    {
        for (std::size_t dim = 0; dim < edge.perDim.size(); ++dim) {
            auto& atoms = edge.perDim[dim];
            // Gathered atoms leave the minor end: what leaves later was more major.
            atoms.insert(
                edge.kind == OpKind::AllGather ? atoms.begin() : atoms.end(), later.perDim[dim].begin(), later.perDim[dim].end());
        }
    }

    std::int64_t sizeOf(int atom) const { return m_atoms[static_cast<std::size_t>(atom)].size; }

    std::vector<int> atomsWithin(const AxisRefs& axes) const
    {
        std::vector<int> result;
        for (const AxisRef& axis : axes) {
            for (std::size_t i = 0; i < m_atoms.size(); ++i) {
                if (overlaps(m_atoms[i], axis))
                    result.push_back(static_cast<int>(i));
            }
        }
        return result;
    }

    State stateOf(const TensorSharding& sharding) const
    {
        State state;
        for (const DimSharding& dim : sharding.dims)
            state.dims.push_back(atomsWithin(dim.axes));
        state.unreduced = atomsWithin(sharding.unreduced);
        std::sort(state.unreduced.begin(), state.unreduced.end());
        return state;
    }

    AxisRefs axesOf(const std::vector<int>& atoms) const
    {
        AxisRefs axes;
        for (const int atom : atoms)
            appendMerging(axes, m_atoms[static_cast<std::size_t>(atom)]);
        return axes;
    }

    TensorSharding shardingOf(const State& state) const
    {
        TensorSharding sharding = TensorSharding::replicatedOf(m_shape.size());
        sharding.mesh = m_to.mesh;
        for (std::size_t dim = 0; dim < m_shape.size(); ++dim)
            sharding.dims[dim].axes = axesOf(state.dims[dim]);
        sharding.unreduced = axesOf(state.unreduced);
        sharding.unreducedKind = m_from.unreducedKind;
        return sharding;
    }

    std::int64_t pieces(const std::vector<int>& atoms) const
    {
        std::int64_t count = 1;
        for (const int atom : atoms)
            count *= sizeOf(atom);
        return count;
    }

    std::int64_t localBytes(const State& state) const
    {
        std::int64_t bytes = m_elementBytes;
        for (std::size_t dim = 0; dim < m_shape.size(); ++dim)
            bytes *= (m_shape[dim] + pieces(state.dims[dim]) - 1) / pieces(state.dims[dim]);
        return bytes;
    }

    bool divides(const State& state, std::size_t dim) const { return m_shape[dim] % pieces(state.dims[dim]) == 0; }

    bool isUsed(const State& state, int atom) const
    {
        const auto has
            = [&](const std::vector<int>& atoms) { return std::find(atoms.begin(), atoms.end(), atom) != atoms.end(); };
        return has(state.unreduced) || std::any_of(state.dims.begin(), state.dims.end(), has);
    }

    double costOf(const Edge& edge, const State& before, const State& after) const
    {
        const ReshardStep step = stepOf(edge, before, after);
        const std::int64_t group
            = step.kind == OpKind::CollectivePermute ? m_mesh.deviceCount() : shardCount(step.attributes.axes);
        return m_cost.cost({step.kind, step.attributes.axes, group, step.bytesPerDevice});
    }

    ReshardStep stepOf(const Edge& edge, const State& before, const State& after) const
    {
        ReshardStep step;
        step.kind = edge.kind;
        step.result = shardingOf(after);
        step.bytesPerDevice = localBytes(edge.kind == OpKind::AllGather ? after : before);
        CollectiveAttributes& attributes = step.attributes;
        attributes.kind = m_from.unreducedKind;
        switch (edge.kind) {
        case OpKind::AllReduce:
            attributes.axes = axesOf(edge.axes);
            break;
        case OpKind::AllToAll:
            attributes.moves = {AxisMove{axesOf(edge.perDim[edge.from]), edge.from, edge.to}};
            attributes.axes = attributes.moves.front().axes;
            break;
        case OpKind::CollectivePermute: {
            const TensorSharding from = shardingOf(before);
            attributes.resultShape = localShape(m_shape, step.result);
            attributes.sources = permuteSources(m_shape, from, step.result, m_mesh);
            attributes.axes = changedAxes(from, step.result);
            break;
        }
        default:
            for (const auto& atoms : edge.perDim) {
                attributes.perDim.push_back(axesOf(atoms));
                for (const AxisRef& axis : attributes.perDim.back())
                    attributes.axes.push_back(axis);
            }
        }
        return step;
    }

    /// The axes of the dimensions that a permute re-assigns, in mesh order.
    AxisRefs changedAxes(const TensorSharding& from, const TensorSharding& to) const
    {
        std::set<int> changed;
        const State a = stateOf(from);
        const State b = stateOf(to);
        for (std::size_t dim = 0; dim < m_shape.size(); ++dim) {
            if (a.dims[dim] == b.dims[dim])
                continue;
            changed.insert(a.dims[dim].begin(), a.dims[dim].end());
            changed.insert(b.dims[dim].begin(), b.dims[dim].end());
        }
        return axesOf({changed.begin(), changed.end()});
    }

    using Edges = std::vector<std::pair<Edge, State>>;

    Edge edgeOn(OpKind kind) const
    {
        Edge edge;
        edge.kind = kind;
        edge.perDim.resize(m_shape.size());
        return edge;
    }

    void addSlices(const State& state, Edges& edges) const
    {
        for (int atom = 0; atom < static_cast<int>(m_atoms.size()); ++atom) {
            if (isUsed(state, atom) || !isUsed(m_goal, atom))
                continue;
            for (std::size_t dim = 0; dim < m_shape.size(); ++dim) {
                State next = state;
                next.dims[dim].push_back(atom);
                if (!divides(next, dim))
                    continue;
                Edge edge = edgeOn(OpKind::AllSlice);
                edge.perDim[dim] = {atom};
                edges.emplace_back(std::move(edge), std::move(next));
            }
        }
    }

    void addGathersAndMoves(const State& state, Edges& edges) const
    {
        for (std::size_t dim = 0; dim < m_shape.size(); ++dim) {
            for (std::size_t keep = 0; keep < state.dims[dim].size(); ++keep) {
                const auto cut = state.dims[dim].begin() + static_cast<std::ptrdiff_t>(keep);
                const std::vector<int> suffix(cut, state.dims[dim].end());
                State without = state;
                without.dims[dim].resize(keep);
                Edge gather = edgeOn(OpKind::AllGather);
                gather.perDim[dim] = suffix;
                edges.emplace_back(std::move(gather), without);
                for (std::size_t to = 0; to < m_shape.size(); ++to) {
                    State next = without;
                    next.dims[to].insert(next.dims[to].end(), suffix.begin(), suffix.end());
                    if (to == dim || !divides(next, to))
                        continue;
                    Edge move = edgeOn(OpKind::AllToAll);
                    move.perDim[dim] = suffix;
                    move.from = dim;
                    move.to = to;
                    edges.emplace_back(std::move(move), std::move(next));
                }
            }
        }
    }

    void addReductions(const State& state, Edges& edges) const
    {
        std::vector<int> toReduce;
        for (const int atom : state.unreduced) {
            if (std::find(m_goal.unreduced.begin(), m_goal.unreduced.end(), atom) == m_goal.unreduced.end())
                toReduce.push_back(atom);
        }
        if (toReduce.empty())
            return;
        const auto without = [&](const std::vector<int>& reduced) {
            State next = state;
            std::erase_if(
                next.unreduced, [&](int atom) { return std::find(reduced.begin(), reduced.end(), atom) != reduced.end(); });
            return next;
        };
        Edge all = edgeOn(OpKind::AllReduce);
        all.axes = toReduce;
        edges.emplace_back(all, without(toReduce));
        for (const int atom : toReduce) {
            for (std::size_t dim = 0; dim < m_shape.size(); ++dim) {
                State next = without({atom});
                next.dims[dim].push_back(atom);
                if (!divides(next, dim))
                    continue;
                Edge scatter = edgeOn(OpKind::ReduceScatter);
                scatter.perDim[dim] = {atom};
                edges.emplace_back(std::move(scatter), std::move(next));
            }
        }
        addScattersOfRuns(state, toReduce, without, edges);
    }

    /// A reduce-scatter over several atoms at once, onto the goal's next atoms of one dimension.
    template <typename Without>
    void addScattersOfRuns(const State& state, const std::vector<int>& toReduce, const Without& without, Edges& edges) const
    {
        for (std::size_t dim = 0; dim < m_shape.size(); ++dim) {
            const auto& have = state.dims[dim];
            const auto& want = m_goal.dims[dim];
            if (have.size() >= want.size() || !std::equal(have.begin(), have.end(), want.begin()))
                continue;
            std::vector<int> run;
            for (std::size_t i = have.size();
                 i < want.size() && std::find(toReduce.begin(), toReduce.end(), want[i]) != toReduce.end(); ++i)
                run.push_back(want[i]);
            if (run.size() < 2)
                continue;
            State next = without(run);
            next.dims[dim].insert(next.dims[dim].end(), run.begin(), run.end());
            Edge scatter = edgeOn(OpKind::ReduceScatter);
            scatter.perDim[dim] = run;
            edges.emplace_back(std::move(scatter), std::move(next));
        }
    }

    /// One permute that puts as many of the goal's atoms where they belong as the pieces allow, keeping every dimension's piece count.
    void addPermute(const State& state, Edges& edges) const
    {
        State next = state;
        for (auto& dim : next.dims)
            dim.clear();
        std::vector<std::int64_t> room;
        for (const auto& dim : state.dims)
            room.push_back(pieces(dim));
        const auto put = [&](std::size_t dim, int atom) {
            if (isUsed(next, atom) || room[dim] % sizeOf(atom) != 0)
                return false;
            next.dims[dim].push_back(atom);
            room[dim] /= sizeOf(atom);
            return true;
        };
        for (std::size_t dim = 0; dim < m_shape.size(); ++dim) {
            for (const int atom : m_goal.dims[dim]) {
                if (!put(dim, atom))
                    break;
            }
        }
        const auto fill = [&](const auto& usable) {
            for (std::size_t dim = 0; dim < m_shape.size(); ++dim) {
                for (int atom = 0; atom < static_cast<int>(m_atoms.size()); ++atom) {
                    if (room[dim] > 1 && usable(atom))
                        put(dim, atom);
                }
            }
        };
        fill([&](int atom) { return isUsed(m_goal, atom); });
        fill([&](int atom) { return isUsed(state, atom); });
        const bool full = std::all_of(room.begin(), room.end(), [](std::int64_t left) { return left == 1; });
        if (full && next != state)
            edges.emplace_back(edgeOn(OpKind::CollectivePermute), std::move(next));
    }

    Edges edgesFrom(const State& state) const
    {
        Edges edges;
        addSlices(state, edges);
        addGathersAndMoves(state, edges);
        addReductions(state, edges);
        addPermute(state, edges);
        std::erase_if(edges, [&](const auto& edge) { return localBytes(edge.second) > m_byteLimit; });
        return edges;
    }

    std::optional<Edges> shortestPath() const
    {
        struct Reached {
            double cost = 0.0;
            State before;
            Edge edge;
            bool settled = false;
        };
        using Entry = std::pair<double, State>;
        std::map<State, Reached> reached;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
        reached[m_start] = {};
        queue.emplace(0.0, m_start);
        while (!queue.empty()) {
            const auto [cost, state] = queue.top();
            queue.pop();
            Reached& here = reached[state];
            if (here.settled)
                continue;
            here.settled = true;
            if (state == m_goal)
                break;
            for (auto& [edge, next] : edgesFrom(state)) {
                const double nextCost = cost + costOf(edge, state, next);
                const auto found = reached.find(next);
                if (found != reached.end() && found->second.cost <= nextCost)
                    continue;
                reached[next] = {nextCost, state, edge};
                queue.emplace(nextCost, next);
            }
        }
        if (!reached.contains(m_goal))
            return std::nullopt;
        Edges path;
        for (State at = m_goal; at != m_start; at = reached[at].before)
            path.emplace_back(reached[at].edge, at);
        std::reverse(path.begin(), path.end());
        return path;
    }

    const Shape& m_shape;
    std::int64_t m_elementBytes;
    const TensorSharding& m_from;
    const TensorSharding& m_to;
    const Mesh& m_mesh;
    const CollectiveCost& m_cost;
    AxisRefs m_atoms;
    State m_start;
    State m_goal;
    std::int64_t m_byteLimit;
};

} // namespace

ReshardPlan planReshard(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to,
    const Mesh& mesh, const CollectiveCost& cost)
{
    return Planner(shape, elementBytes, from, to, mesh, cost).plan();
}

std::vector<std::int64_t> permuteSources(
    const Shape& shape, const TensorSharding& from, const TensorSharding& to, const Mesh& mesh)
{
    std::map<IndexBox, std::vector<std::int64_t>> holders;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        holders[shardBox(shape, from, mesh, position)].push_back(position);

    const auto count = static_cast<std::size_t>(mesh.deviceCount());
    std::vector<std::int64_t> sources(count, -1);
    const auto take = [&](std::int64_t receiver, auto wanted) {
        auto& candidates = holders[shardBox(shape, to, mesh, receiver)];
        const auto found = std::find_if(candidates.begin(), candidates.end(), wanted);
        if (found == candidates.end())
            return;
        sources[static_cast<std::size_t>(receiver)] = *found;
        candidates.erase(found);
    };
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        take(position, [&](std::int64_t holder) { return holder == position; });
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
        if (sources[static_cast<std::size_t>(position)] < 0)
            take(position, [](std::int64_t) { return true; });
    }
    return sources;
}

} // namespace meshwright
