// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/reshard.h"

#include "core/reshard/padding.h"
#include "core/reshard/reshard_steps.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>

namespace meshwright {

namespace {

/// A layout on the way: for each dimension its atoms, major to minor, and the atoms that are unreduced. Atoms are indices into a
/// list of axis parts none of which overlap.
struct State {
    std::vector<std::vector<int>> dims;
    std::vector<int> unreduced; ///< ascending

    friend auto operator<=>(const State&, const State&) = default;
};

/// A state in one word, for tables of them: words are ordered as their states are. Of each dimension the atoms, counted from 1, and a 0 behind them.
using Word = std::string;

/// What leads from one state to the next: one collective over atoms.
struct Edge {
    OpKind kind = OpKind::AllGather;
    std::string atoms; ///< as in a word: those that leave or join dimension `dim`; AllReduce: that are reduced; none of a permute
    std::size_t dim = 0;
    std::size_t to = 0; ///< AllToAll
};

char letterOf(int atom)
{
    return static_cast<char>(atom + 1);
}

int atomOf(char letter)
{
    return static_cast<unsigned char>(letter) - 1;
}

std::string lettersOf(const std::vector<int>& atoms)
{
    std::string letters;
    for (const int atom : atoms)
        letters += letterOf(atom);
    return letters;
}

std::vector<int> atomsOf(const std::string& letters)
{
    std::vector<int> atoms;
    for (const char letter : letters)
        atoms.push_back(atomOf(letter));
    return atoms;
}

/// Several edges over atoms of different dimensions as one collective.
struct JoinedEdge {
    OpKind kind = OpKind::AllGather;
    std::vector<std::vector<int>> perDim;
    Edge first;
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
            JoinedEdge edge = joined((*path)[i].first);
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
    JoinedEdge joined(const Edge& edge) const
    {
        JoinedEdge made{edge.kind, std::vector<std::vector<int>>(rank()), edge};
        if (edge.kind != OpKind::AllReduce && edge.kind != OpKind::CollectivePermute)
            made.perDim[edge.dim] = atomsOf(edge.atoms);
        return made;
    }

    static void joinPerDim(JoinedEdge& edge, const Edge& later)
    {
        auto& atoms = edge.perDim[later.dim];
        const std::vector<int> more = atomsOf(later.atoms);
        // Gathered atoms leave the minor end: what leaves later was more major.
        atoms.insert(edge.kind == OpKind::AllGather ? atoms.begin() : atoms.end(), more.begin(), more.end());
    }

    /// Into `word` the word of a state with `keep` atoms of dimension `dim`, and `more` at the end of dimension `to`.
    static void spell(const State& state, std::size_t dim, std::size_t keep, std::size_t to, const std::string& more, Word& word)
    {
        word.clear();
        for (std::size_t i = 0; i < state.dims.size(); ++i) {
            const std::size_t count = i == dim ? keep : state.dims[i].size();
            for (std::size_t atom = 0; atom < count; ++atom)
                word += letterOf(state.dims[i][atom]);
            if (i == to)
                word += more;
            word += '\0';
        }
        for (const int atom : state.unreduced)
            word += letterOf(atom);
    }

    static Word wordOf(const State& state)
    {
        Word word;
        spell(state, state.dims.size(), 0, state.dims.size(), {}, word);
        return word;
    }

    State stateOf(const Word& word) const
    {
        State state;
        state.dims.resize(rank());
        std::size_t dim = 0;
        for (const char atom : word) {
            if (atom == '\0')
                ++dim;
            else
                (dim < rank() ? state.dims[dim] : state.unreduced).push_back(atomOf(atom));
        }
        return state;
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

    /// One dimension of a device's piece when the array is cut into so many along it.
    std::int64_t pieceSize(std::size_t dim, std::int64_t count) const { return (m_array.shape[dim] + count - 1) / count; }

    bool divides(std::size_t dim, std::int64_t count) const { return m_array.shape[dim] % count == 0; }

    bool isUsed(const State& state, int atom) const
    {
        const auto has
            = [&](const std::vector<int>& atoms) { return std::find(atoms.begin(), atoms.end(), atom) != atoms.end(); };
        return has(state.unreduced) || std::any_of(state.dims.begin(), state.dims.end(), has);
    }

    double costOf(OpKind kind, const AxisRefs& axes, std::int64_t bytes) const
    {
        return collectiveCost(m_cost, kind, axes, bytes, m_mesh);
    }

    ReshardStep stepOf(const JoinedEdge& edge, const State& before, const State& after) const
    {
        CollectiveAttributes attributes;
        if (edge.kind == OpKind::AllReduce)
            attributes.axes = axesOf(atomsOf(edge.first.atoms));
        else if (edge.kind == OpKind::AllToAll)
            attributes.moves = {AxisMove{axesOf(atomsOf(edge.first.atoms)), edge.first.dim, edge.first.to}};
        else if (edge.kind != OpKind::CollectivePermute) {
            for (const auto& atoms : edge.perDim)
                attributes.perDim.push_back(axesOf(atoms));
        }
        return reshardStep(edge.kind, std::move(attributes), m_array, shardingOf(before), m_mesh, shardingOf(after), m_mesh);
    }

    /// A state that is looked at, and what is asked of it for every edge.
    struct Here {
        State state;
        std::vector<std::int64_t> counts; ///< pieces along each dimension
        std::vector<std::int64_t> sizes; ///< of one device's piece
        std::int64_t bytes = 0;
    };

    Here hereOf(const Word& word) const
    {
        Here here{stateOf(word), {}, {}, 0};
        here.bytes = localBytesOf(here.state);
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            here.counts.push_back(pieces(here.state.dims[dim]));
            here.sizes.push_back(pieceSize(dim, here.counts.back()));
        }
        return here;
    }

    /// The bytes with other numbers of pieces along two dimensions.
    std::int64_t bytesWith(
        const Here& here, std::size_t dim, std::int64_t count, std::size_t other, std::int64_t otherCount) const
    {
        std::int64_t bytes = m_array.elementBytes;
        for (std::size_t i = 0; i < rank(); ++i)
            bytes *= i == dim ? pieceSize(i, count) : i == other ? pieceSize(i, otherCount) : here.sizes[i];
        return bytes;
    }

    template <typename Visit>
    void visitState(const Here& here, Edge edge, const State& next, const Visit& visit)
    {
        const double cost = costOf(edge.kind,
            edge.kind == OpKind::CollectivePermute ? permutedAxes(shardingOf(here.state), shardingOf(next), true)
                                                   : axesOf(atomsOf(edge.atoms)),
            here.bytes);
        spell(next, rank(), 0, rank(), {}, m_word);
        visit(std::move(edge), localBytesOf(next), cost);
    }

    /// Slices cost nothing, so all that can be made would be looked at before anything else: of the orders in which free atoms can follow
    /// each other on a dimension only those are tried that need no permute later, and one for all others.
    template <typename Visit>
    void visitSlices(const Here& here, const Visit& visit)
    {
        const State& state = here.state;
        int firstFree = -1;
        for (int atom = static_cast<int>(m_atoms.size()) - 1; atom >= 0; --atom) {
            if (isUsed(m_goal, atom) && !isUsed(state, atom))
                firstFree = atom;
        }
        for (int atom = firstFree; atom >= 0 && atom < static_cast<int>(m_atoms.size()); ++atom) {
            if (isUsed(state, atom) || !isUsed(m_goal, atom))
                continue;
            const double cost = costOf(OpKind::AllSlice, axesOf({atom}), here.bytes);
            for (std::size_t dim = 0; dim < rank(); ++dim) {
                const std::int64_t count = here.counts[dim] * sizeOf(atom);
                if ((atom != firstFree && !follows(state.dims[dim], atom, dim)) || !divides(dim, count))
                    continue;
                const std::string letter(1, letterOf(atom));
                spell(state, rank(), 0, dim, letter, m_word);
                visit(Edge{OpKind::AllSlice, letter, dim, 0}, bytesWith(here, dim, count, rank(), 0), cost);
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

    template <typename Visit>
    void visitGathersAndMoves(const Here& here, const Visit& visit)
    {
        const State& state = here.state;
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            const bool inPlace = isPrefix(state.dims[dim], m_goal.dims[dim]);
            for (std::size_t keep = 0; keep < state.dims[dim].size(); ++keep) {
                const auto cut = state.dims[dim].begin() + static_cast<std::ptrdiff_t>(keep);
                const std::vector<int> suffix(cut, state.dims[dim].end());
                const AxisRefs axes = axesOf(suffix);
                const std::int64_t moved = pieces(suffix);
                const std::int64_t kept = here.counts[dim] / moved;
                const std::int64_t gathered = bytesWith(here, dim, kept, rank(), 0);
                const std::string letters = lettersOf(suffix);
                spell(state, dim, keep, rank(), {}, m_word);
                visit(Edge{OpKind::AllGather, letters, dim, 0}, gathered, costOf(OpKind::AllGather, axes, gathered));
                const double cost = costOf(OpKind::AllToAll, axes, here.bytes);
                for (std::size_t to = 0; to < rank(); ++to) {
                    const std::int64_t count = here.counts[to] * moved;
                    if (to == dim || (inPlace && !isWorthMoving(suffix, to)) || !divides(to, count))
                        continue;
                    spell(state, dim, keep, to, letters, m_word);
                    visit(Edge{OpKind::AllToAll, letters, dim, to}, bytesWith(here, dim, kept, to, count), cost);
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

    template <typename Visit>
    void visitReductions(const Here& here, const Visit& visit)
    {
        const State& state = here.state;
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
        visitState(here, {OpKind::AllReduce, lettersOf(toReduce), 0, 0}, without(toReduce), visit);
        for (const int atom : toReduce) {
            for (std::size_t dim = 0; dim < rank(); ++dim) {
                if (!divides(dim, here.counts[dim] * sizeOf(atom)))
                    continue;
                State next = without({atom});
                next.dims[dim].push_back(atom);
                visitState(here, {OpKind::ReduceScatter, lettersOf({atom}), dim, 0}, next, visit);
            }
        }
        visitScattersOfRuns(here, toReduce, without, visit);
    }

    /// A reduce-scatter over several atoms at once, onto the goal's next atoms of one dimension.
    template <typename Without, typename Visit>
    void visitScattersOfRuns(const Here& here, const std::vector<int>& toReduce, const Without& without, const Visit& visit)
    {
        for (std::size_t dim = 0; dim < rank(); ++dim) {
            const auto& have = here.state.dims[dim];
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
            visitState(here, {OpKind::ReduceScatter, lettersOf(run), dim, 0}, next, visit);
        }
    }

    /// Permutes that put as many of the goal's atoms where they belong as the pieces allow, keeping every dimension's piece count. Atoms
    /// that will be gathered stand either behind those that are still to be moved on, or before them.
    template <typename Visit>
    void visitPermutes(const Here& here, const Visit& visit)
    {
        for (const bool gatheredLast : {true, false}) {
            auto next = permuted(here.state, gatheredLast);
            if (next && *next != here.state && m_word != wordOf(*next)) // the last one that was visited
                visitState(here, {OpKind::CollectivePermute, {}, 0, 0}, *next, visit);
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

    /// Visits each edge from a state with the bytes of a device's piece behind it and its cost, while `m_word` spells the state that it leads to.
    template <typename Visit>
    void visitFrom(const Word& word, const Visit& visit)
    {
        const Here here = hereOf(word);
        m_word.clear();
        visitSlices(here, visit);
        visitGathersAndMoves(here, visit);
        visitReductions(here, visit);
        visitPermutes(here, visit);
    }

    std::optional<std::vector<std::pair<Edge, State>>> shortestPath()
    {
        struct Reached {
            const Word* word = nullptr; ///< a key of the table, which stays where it is
            double cost = 0.0;
            std::size_t before = 0;
            Edge edge;
            bool settled = false;
        };
        struct Entry {
            double cost = 0.0;
            const Word* word = nullptr;
            std::size_t at = 0;
            bool operator>(const Entry& other) const { return cost != other.cost ? cost > other.cost : *word > *other.word; }
        };
        std::unordered_map<Word, std::size_t> numbers;
        std::vector<Reached> reached;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
        const Word goal = wordOf(m_goal);
        const auto start = numbers.emplace(wordOf(m_start), 0).first;
        reached.push_back({&start->first, 0.0, 0, {}, false});
        queue.push({0.0, &start->first, 0});
        std::size_t settled = 0;
        while (!queue.empty()) {
            const Entry here = queue.top();
            queue.pop();
            if (reached[here.at].settled)
                continue;
            reached[here.at].settled = true;
            if (*here.word == goal || ++settled == kMostSettled)
                break;
            visitFrom(*here.word, [&](Edge edge, std::int64_t bytes, double cost) {
                const double nextCost = here.cost + cost;
                if (bytes > m_byteLimit || nextCost > m_costLimit)
                    return;
                const auto [found, isNew] = numbers.try_emplace(m_word, reached.size());
                if (isNew)
                    reached.push_back({&found->first, nextCost, here.at, std::move(edge), false});
                else if (Reached& known = reached[found->second]; known.cost > nextCost)
                    known = {&found->first, nextCost, here.at, std::move(edge), false};
                else
                    return;
                queue.push({nextCost, &found->first, found->second});
            });
        }
        const auto found = numbers.find(goal);
        if (found == numbers.end())
            return std::nullopt;
        std::vector<std::pair<Edge, State>> path;
        for (std::size_t at = found->second; at != 0; at = reached[at].before)
            path.emplace_back(reached[at].edge, stateOf(*reached[at].word));
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
    Word m_word;
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
