// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/reshard.h"

#include "core/reshard/padding.h"
#include "core/reshard/reshard_steps.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <queue>

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

/// A search that goes on for longer than this is not worth what it could still save.
constexpr std::size_t kMostSettled = 6'000;

/// A shortest path over layouts made of given parts of axes.
class Search {
public:
    Search(const ReshardedArray& array, const TensorSharding& from, const TensorSharding& to, const Mesh& mesh, AxisRefs parts,
        const CollectiveCost& cost)
        : m_array(array)
        , m_from(from)
        , m_to(to)
        , m_mesh(mesh)
        , m_cost(cost)
        , m_atoms(std::move(parts))
        , m_start(stateOf(from))
        , m_goal(stateOf(to))
    {
    }

    /// The cheapest way that costs no more than `costLimit` and has no layout of more than `byteLimit` on one device.
    std::optional<ReshardPlan> cheapest(double costLimit, std::int64_t byteLimit)
    {
        m_costLimit = costLimit;
        m_byteLimit = byteLimit;
        auto path = shortestPath();
        if (!path)
            return std::nullopt;
        std::vector<ReshardStep> steps;
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
            steps.push_back(stepOf(edge, at, next));
            at = std::move(next);
        }
        return planOf(std::move(steps), m_array, m_from, m_mesh, m_cost);
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
        TensorSharding sharding = TensorSharding::replicatedOf(rank());
        sharding.mesh = m_to.mesh;
        for (std::size_t dim = 0; dim < rank(); ++dim)
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

    std::size_t rank() const { return m_array.shape.size(); }

    std::int64_t localBytesOf(const State& state) const
    {
        std::int64_t bytes = m_array.elementBytes;
        for (std::size_t dim = 0; dim < rank(); ++dim)
            bytes *= (m_array.shape[dim] + pieces(state.dims[dim]) - 1) / pieces(state.dims[dim]);
        return bytes;
    }

    bool divides(const State& state, std::size_t dim) const { return m_array.shape[dim] % pieces(state.dims[dim]) == 0; }

    bool isUsed(const State& state, int atom) const
    {
        const auto has
            = [&](const std::vector<int>& atoms) { return std::find(atoms.begin(), atoms.end(), atom) != atoms.end(); };
        return has(state.unreduced) || std::any_of(state.dims.begin(), state.dims.end(), has);
    }

    /// The axes that take part, as `stepOf` has them.
    AxisRefs axesOfEdge(const Edge& edge, const State& before, const State& after) const
    {
        if (edge.kind == OpKind::AllReduce)
            return axesOf(edge.axes);
        if (edge.kind == OpKind::CollectivePermute)
            return permutedAxes(shardingOf(before), shardingOf(after), true);
        AxisRefs axes;
        for (const auto& atoms : edge.perDim) {
            const AxisRefs dim = axesOf(atoms);
            axes.insert(axes.end(), dim.begin(), dim.end());
        }
        return axes;
    }

    double costOf(const Edge& edge, const State& before, const State& after) const
    {
        return collectiveCost(m_cost, edge.kind, axesOfEdge(edge, before, after),
            localBytesOf(edge.kind == OpKind::AllGather ? after : before), m_mesh);
    }

    ReshardStep stepOf(const Edge& edge, const State& before, const State& after) const
    {
        CollectiveAttributes attributes;
        if (edge.kind == OpKind::AllReduce)
            attributes.axes = axesOf(edge.axes);
        else if (edge.kind == OpKind::AllToAll)
            attributes.moves = {AxisMove{axesOf(edge.perDim[edge.from]), edge.from, edge.to}};
        else if (edge.kind != OpKind::CollectivePermute) {
            for (const auto& atoms : edge.perDim)
                attributes.perDim.push_back(axesOf(atoms));
        }
        return reshardStep(edge.kind, std::move(attributes), m_array, shardingOf(before), m_mesh, shardingOf(after), m_mesh);
    }

    using Edges = std::vector<std::pair<Edge, State>>;

    Edge edgeOn(OpKind kind) const
    {
        Edge edge;
        edge.kind = kind;
        edge.perDim.resize(rank());
        return edge;
    }

    /// Slices cost nothing, so all that can be made would be looked at before anything else: of the orders in which free atoms can follow
    /// each other on a dimension only those are tried that need no permute later, and one for all others.
    void addSlices(const State& state, Edges& edges) const
    {
        int firstFree = -1;
        for (int atom = static_cast<int>(m_atoms.size()) - 1; atom >= 0; --atom) {
            if (isUsed(m_goal, atom) && !isUsed(state, atom))
                firstFree = atom;
        }
        for (int atom = firstFree; atom >= 0 && atom < static_cast<int>(m_atoms.size()); ++atom) {
            if (isUsed(state, atom) || !isUsed(m_goal, atom))
                continue;
            for (std::size_t dim = 0; dim < rank(); ++dim) {
                if (atom != firstFree && !follows(state.dims[dim], atom, dim))
                    continue;
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

    /// In the goal the atom comes next on this dimension, or right after the dimension's last one.
    bool follows(const std::vector<int>& atoms, int atom, std::size_t dim) const
    {
        const auto& home = m_goal.dims[dim];
        if (atoms.size() < home.size() && home[atoms.size()] == atom && std::equal(atoms.begin(), atoms.end(), home.begin()))
            return true;
        return !atoms.empty() && std::any_of(m_goal.dims.begin(), m_goal.dims.end(), [&](const auto& wanted) {
            const int pair[] = {atoms.back(), atom};
            return std::search(wanted.begin(), wanted.end(), std::begin(pair), std::end(pair)) != wanted.end();
        });
    }

    void addGathersAndMoves(const State& state, Edges& edges) const
    {
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            const bool inPlace = isPrefix(state.dims[dim], m_goal.dims[dim]);
            for (std::size_t keep = 0; keep < state.dims[dim].size(); ++keep) {
                const auto cut = state.dims[dim].begin() + static_cast<std::ptrdiff_t>(keep);
                const std::vector<int> suffix(cut, state.dims[dim].end());
                State without = state;
                without.dims[dim].resize(keep);
                Edge gather = edgeOn(OpKind::AllGather);
                gather.perDim[dim] = suffix;
                edges.emplace_back(std::move(gather), without);
                for (std::size_t to = 0; to < rank(); ++to) {
                    State next = without;
                    next.dims[to].insert(next.dims[to].end(), suffix.begin(), suffix.end());
                    if (to == dim || (inPlace && !isWorthMoving(suffix, to)) || !divides(next, to))
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

    static bool isPrefix(const std::vector<int>& atoms, const std::vector<int>& of)
    {
        return atoms.size() <= of.size() && std::equal(atoms.begin(), atoms.end(), of.begin());
    }

    /// For atoms that are in their places: all of them are wanted there too, or none of them anywhere, so that moving them away can uncover others.
    bool isWorthMoving(const std::vector<int>& atoms, std::size_t to) const
    {
        const auto& home = m_goal.dims[to];
        const auto wantedThere = [&](int atom) { return std::find(home.begin(), home.end(), atom) != home.end(); };
        return std::all_of(atoms.begin(), atoms.end(), wantedThere)
            || std::none_of(atoms.begin(), atoms.end(), [&](int atom) { return isUsed(m_goal, atom); });
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
            for (std::size_t dim = 0; dim < rank(); ++dim) {
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
        for (std::size_t dim = 0; dim < rank(); ++dim) {
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

    /// Permutes that put as many of the goal's atoms where they belong as the pieces allow, keeping every dimension's piece count. Atoms
    /// that will be gathered stand either behind those that are still to be moved on, or before them.
    void addPermutes(const State& state, Edges& edges) const
    {
        for (const bool gatheredLast : {true, false}) {
            auto next = permuted(state, gatheredLast);
            if (!next || *next == state || (!edges.empty() && edges.back().second == *next))
                continue;
            edges.emplace_back(edgeOn(OpKind::CollectivePermute), *std::move(next));
        }
    }

    std::optional<State> permuted(const State& state, bool gatheredLast) const
    {
        State next = state;
        std::vector<std::int64_t> room;
        for (auto& dim : next.dims) {
            room.push_back(pieces(dim));
            dim.clear();
        }
        const auto put = [&](std::size_t dim, int atom, std::size_t at) {
            if (isUsed(next, atom) || room[dim] % sizeOf(atom) != 0)
                return false;
            next.dims[dim].insert(next.dims[dim].begin() + static_cast<std::ptrdiff_t>(at), atom);
            room[dim] /= sizeOf(atom);
            return true;
        };
        std::vector<std::size_t> placed;
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            for (const int atom : m_goal.dims[dim]) {
                if (!put(dim, atom, next.dims[dim].size()))
                    break;
            }
            placed.push_back(next.dims[dim].size());
        }
        const auto fill = [&](bool atEnd, const auto& usable) {
            for (std::size_t dim = 0; dim < rank(); ++dim) {
                std::size_t at = placed[dim];
                for (int atom = 0; atom < static_cast<int>(m_atoms.size()); ++atom) {
                    if (room[dim] > 1 && usable(atom) && put(dim, atom, atEnd ? next.dims[dim].size() : at))
                        ++at;
                }
            }
        };
        fill(true, [&](int atom) { return isUsed(m_goal, atom); });
        fill(gatheredLast, [&](int atom) { return isUsed(state, atom); });
        if (std::any_of(room.begin(), room.end(), [](std::int64_t left) { return left != 1; }))
            return std::nullopt;
        return next;
    }

    Edges edgesFrom(const State& state) const
    {
        Edges edges;
        addSlices(state, edges);
        addGathersAndMoves(state, edges);
        addReductions(state, edges);
        addPermutes(state, edges);
        std::erase_if(edges, [&](const auto& edge) { return localBytesOf(edge.second) > m_byteLimit; });
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
        std::size_t settled = 0;
        reached[m_start] = {};
        queue.emplace(0.0, m_start);
        while (!queue.empty()) {
            const auto [cost, state] = queue.top();
            queue.pop();
            Reached& here = reached[state];
            if (here.settled)
                continue;
            here.settled = true;
            if (state == m_goal || ++settled == kMostSettled)
                break;
            for (auto& [edge, next] : edgesFrom(state)) {
                const double nextCost = cost + costOf(edge, state, next);
                if (nextCost > m_costLimit)
                    continue;
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

    const ReshardedArray& m_array;
    const TensorSharding& m_from;
    const TensorSharding& m_to;
    const Mesh& m_mesh;
    const CollectiveCost& m_cost;
    AxisRefs m_atoms;
    State m_start;
    State m_goal;
    double m_costLimit = 0.0;
    std::int64_t m_byteLimit = 0;
};

std::int64_t largestLayout(const ReshardPlan& plan, const ReshardedArray& array)
{
    std::int64_t largest = 0;
    for (const ReshardStep& step : plan.steps)
        largest = std::max(largest, localBytes(array.shape, array.elementBytes, step.result));
    return largest;
}

/// True when no step makes pieces of different sizes: devices run no others.
bool isRunnable(const ReshardPlan& plan, const Shape& shape, const TensorSharding& from, const TensorSharding& to)
{
    return !isEven(from, shape) || !isEven(to, shape)
        || std::all_of(plan.steps.begin(), plan.steps.end(), [&](const ReshardStep& step) { return isEven(step.result, shape); });
}

/// The cheaper one, then the one with fewer steps, then the first.
ReshardPlan cheaperOf(ReshardPlan a, ReshardPlan b)
{
    return std::tuple(b.cost, b.steps.size()) < std::tuple(a.cost, a.steps.size()) ? std::move(b) : std::move(a);
}

void append(std::vector<std::int64_t>& key, const AxisRefs& axes)
{
    key.push_back(static_cast<std::int64_t>(axes.size()));
    for (const AxisRef& axis : axes)
        key.insert(key.end(), {axis.axis, axis.pre, axis.size});
}

void append(std::vector<std::int64_t>& key, const TensorSharding& sharding)
{
    for (const DimSharding& dim : sharding.dims)
        append(key, dim.axes);
    append(key, sharding.unreduced);
    key.insert(key.end(), {sharding.mesh, static_cast<std::int64_t>(sharding.unreducedKind)});
}

} // namespace

ReshardPlan planReshard(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to,
    const Mesh& mesh, const CollectiveCost& cost)
{
    const ReshardedArray array{shape, elementBytes};
    ReshardPlan shardy = *planShardyReshard(shape, elementBytes, from, mesh, to, mesh, cost);
    if (shardy.steps.empty())
        return shardy;

    // Shardy cuts axes where the numbers of pieces differ; a search over those parts too can find its way and better ones.
    AxisRefs named = axesNamed(from, to);
    auto parts = commonParts(named);
    for (const ReshardStep& step : shardy.steps) {
        const AxisRefs more = axesNamed(step.result, step.result);
        named.insert(named.end(), more.begin(), more.end());
    }
    if (auto finer = commonParts(named))
        parts = std::move(finer);
    const bool runsAsInShardy = isRunnable(shardy, shape, from, to);
    if (!parts)
        return runsAsInShardy ? std::move(shardy) : planByFullGather(shape, elementBytes, from, to, mesh, cost);

    Search search(array, from, to, mesh, *std::move(parts), cost);
    const std::int64_t byteLimit = std::max(localBytes(shape, elementBytes, from), localBytes(shape, elementBytes, to));
    if (runsAsInShardy && largestLayout(shardy, array) <= byteLimit) {
        auto best = search.cheapest(shardy.cost, byteLimit);
        return best ? cheaperOf(*std::move(best), std::move(shardy)) : std::move(shardy);
    }
    constexpr double kAnyCost = std::numeric_limits<double>::infinity();
    if (auto best = search.cheapest(kAnyCost, byteLimit))
        return *std::move(best);
    ReshardPlan other = runsAsInShardy ? std::move(shardy) : planByFullGather(shape, elementBytes, from, to, mesh, cost);
    auto best = search.cheapest(kAnyCost, std::numeric_limits<std::int64_t>::max());
    return best ? cheaperOf(*std::move(best), std::move(other)) : std::move(other);
}

ReshardPlan planByFullGather(const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to,
    const Mesh& mesh, const CollectiveCost& cost)
{
    TensorSharding whole = TensorSharding::replicatedOf(shape.size());
    whole.mesh = from.mesh;
    whole.unreduced = to.unreduced;
    whole.unreducedKind = to.unreducedKind;
    ReshardPlan gathered = *planShardyReshard(shape, elementBytes, from, mesh, whole, mesh, cost);
    ReshardPlan sliced = *planShardyReshard(shape, elementBytes, whole, mesh, to, mesh, cost);
    std::vector<ReshardStep> steps = std::move(gathered.steps);
    steps.insert(steps.end(), sliced.steps.begin(), sliced.steps.end());
    return planOf(std::move(steps), {shape, elementBytes}, from, mesh, cost);
}

const ReshardPlan& ReshardPlanner::plan(
    const Shape& shape, std::int64_t elementBytes, const TensorSharding& from, const TensorSharding& to, const Mesh& mesh)
{
    std::vector<std::int64_t> key = shape;
    key.push_back(elementBytes);
    append(key, from);
    append(key, to);
    const auto [entry, isNew] = m_plans.try_emplace(std::move(key));
    if (isNew && m_style == ReshardStyle::Shardy)
        entry->second = *planShardyReshard(shape, elementBytes, from, mesh, to, mesh, m_cost);
    if (isNew && (m_style != ReshardStyle::Shardy || !isRunnable(entry->second, shape, from, to)))
        entry->second = planReshard(shape, elementBytes, from, to, mesh, m_cost);
    return entry->second;
}

} // namespace meshwright
