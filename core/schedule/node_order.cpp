// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/node_order.h"

#include "core/program/placement.h"
#include "core/support/stop_scope.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/range/iterator_range.hpp>

#include <algorithm>
#include <cassert>
#include <optional>
#include <set>

namespace meshwright {

Stream streamOf(const Function& function, const FusionNode& node, SchedulePolicy policy)
{
    const Op& op = function[node.ops.front()];
    if (isCollective(op.kind))
        return op.kind == OpKind::AllSlice ? Stream::Compute : Stream::Collectives;
    const auto memory = policy == SchedulePolicy::Host ? std::nullopt : movedTo(op);
    return !memory ? Stream::Compute : *memory == Placement::Host ? Stream::ToHost : Stream::ToDevice;
}

namespace {

/// What flows between nodes: for each value that a node reads, in the order of its reads, an edge from the node that writes it.
using NodeFlow = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

NodeFlow nodeFlow(const std::vector<FusionNode>& nodes, std::size_t values)
{
    std::vector<std::size_t> writer(values, nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (const ValueId value : nodes[n].writes)
            writer[value.at()] = n;
    }
    NodeFlow flow(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (const ValueId value : nodes[n].reads) {
            if (writer[value.at()] < nodes.size())
                boost::add_edge(writer[value.at()], n, flow);
        }
    }
    return flow;
}

class Orderer {
public:
    Orderer(const Function& function, BlockId block, SchedulePolicy policy, const RepeatAttributes* loop,
        const std::vector<FusionNode>& nodes)
        : m_function(function)
        , m_block(block)
        , m_policy(policy)
        , m_loop(loop)
        , m_nodes(nodes)
        , m_isAhead(nodes.size(), false)
        , m_flow(nodeFlow(nodes, function.values.size()))
    {
        for (const FusionNode& node : nodes)
            m_operations.push_back(productOperations(node));
    }

    /// A topological order of the nodes that takes the ready node with the smallest wish. What is ahead is read in the next turn.
    ///
    /// With overlap, a node that would wait for a collective lets ready products go first, until they have taken about as long as the collective (as
    /// XLA's latency hiding scheduler does, and Megatron-LM, whose products for weights run beside the collectives of activations). Products only: what
    /// they read is there already, so this takes no more memory than their results do.
    NodeOrder run()
    {
        const std::vector<double> wish = wishes();
        std::vector<std::size_t> missing(m_nodes.size());
        using Entry = std::pair<double, std::size_t>;
        std::set<Entry> ready;
        std::set<Entry> readyProducts; // of them
        const auto add = [&](std::size_t n) {
            ready.emplace(wish[n], n);
            if (m_policy == SchedulePolicy::Overlapped && isProduct(n))
                readyProducts.emplace(wish[n], n);
        };
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            const auto makers = makersOf(n);
            missing[n] = static_cast<std::size_t>(
                std::count_if(makers.begin(), makers.end(), [&](std::size_t maker) { return m_isAhead[maker] == m_isAhead[n]; }));
            if (missing[n] == 0)
                add(n);
        }
        double now = 0.0; // in operations, as the two below
        double streamFree = 0.0; // when the collectives so far are done
        std::vector<double> arrives(m_nodes.size(), 0.0); // the result of each collective
        const auto needed = [&](std::size_t n) {
            double latest = 0.0;
            for (const std::size_t maker : makersOf(n))
                latest = std::max(latest, m_isAhead[maker] == m_isAhead[n] ? arrives[maker] : 0.0);
            return latest;
        };
        const auto next = [&] {
            const std::size_t first = ready.begin()->second;
            if (needed(first) <= now)
                return first;
            const auto product = std::find_if(readyProducts.begin(), readyProducts.end(), [&](const Entry& entry) {
                return opOf(m_nodes[entry.second]).phase == opOf(m_nodes[first]).phase && needed(entry.second) <= now;
            });
            if (product == readyProducts.end())
                return first;
            return std::find_if(ready.begin(), ready.find(*product), [&](const Entry& entry) {
                return needed(entry.second) <= now;
            })->second;
        };
        NodeOrder result;
        while (!ready.empty()) {
            heedStop();
            const std::size_t n = next();
            ready.erase({wish[n], n});
            readyProducts.erase({wish[n], n});
            result.nodes.push_back(n);
            if (streamOf(m_function, m_nodes[n], m_policy) == Stream::Collectives) {
                streamFree = std::max(streamFree, now) + kOperationsPerByte * static_cast<double>(payloadBytes(m_nodes[n]));
                arrives[n] = streamFree;
            } else if (opInfo(opOf(m_nodes[n]).kind).opClass == OpClass::Control) {
                now = std::max(now, streamFree); // takes long
            } else {
                now = std::max(now, needed(n)) + m_operations[n];
            }
            for (const std::size_t reader : boost::make_iterator_range(boost::adjacent_vertices(n, m_flow))) {
                if (m_isAhead[n] == m_isAhead[reader] && --missing[reader] == 0)
                    add(reader);
            }
        }
        assert(result.nodes.size() == m_nodes.size());
        result.isAhead = m_isAhead;
        return result;
    }

private:
    const Op& opOf(const FusionNode& node) const { return m_function[node.ops.front()]; }

    boost::iterator_range<NodeFlow::inv_adjacency_iterator> makersOf(std::size_t n) const
    {
        return boost::make_iterator_range(boost::inv_adjacent_vertices(n, m_flow));
    }

    /// The place where each node should stand, in block positions. Reductions of partial sums, and moves to the host, follow what makes them at once, so
    /// that they run beside the rest of the pass; moves back begin earlier (fetchAhead); with overlap gathers begin early enough (gatherInTime), those of
    /// parameters earlier (gatherAhead), in a loop also in the turn before (m_isAhead), and products for weights follow reductions (sumsBesideProducts).
    std::vector<double> wishes()
    {
        std::vector<double> wish;
        for (const FusionNode& node : m_nodes)
            wish.push_back(static_cast<double>(node.position));
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            const bool leaves = movedTo(opOf(m_nodes[n])) == Placement::Host;
            if ((isReduction(n) || leaves) && boost::in_degree(n, m_flow) > 0) {
                const std::size_t maker = *boost::inv_adjacent_vertices(n, m_flow).first;
                wish[n] = std::max(wish[maker], lastReadOfOverwritten(n)) + 0.5;
            } else if (leaves) { // an argument of the block
                wish[n] = 0.0;
            }
        }
        if (m_policy == SchedulePolicy::Overlapped) {
            gatherInTime(wish);
            gatherAhead(wish);
            fetchAhead(wish);
            sumsBesideProducts(wish);
        }
        return wish;
    }

    bool isReduction(std::size_t n) const
    {
        const OpKind kind = opOf(m_nodes[n]).kind;
        return kind == OpKind::AllReduce || kind == OpKind::ReduceScatter;
    }

    /// A gather begins so early that the products up to its first use take twice as long as it does, but not before the gather is used that comes before
    /// it in its phase and is not much smaller: so its result takes memory no longer than needed.
    void gatherInTime(std::vector<double>& wish) const
    {
        std::vector<std::size_t> before; // gathers of this phase
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            const FusionNode& node = m_nodes[n];
            if (opOf(node).kind != OpKind::AllGather)
                continue;
            if (!before.empty() && opOf(m_nodes[before.back()]).phase != opOf(node).phase)
                before.clear();
            const auto large = std::find_if(before.rbegin(), before.rend(),
                [&](std::size_t other) { return 2 * resultBytes(m_nodes[other]) >= resultBytes(node); });
            if (large != before.rend()) {
                const double first = firstUse(n);
                const double least = firstUse(*large);
                double operations = 2.0 * kOperationsPerByte * static_cast<double>(resultBytes(node));
                double place = first;
                for (std::size_t m = firstFrom(first); m-- > 0 && operations > 0.0 && positionOf(m) >= least;) {
                    operations -= m_operations[m];
                    place = positionOf(m);
                }
                beginBy(n, place - 0.5, wish);
            }
            before.push_back(n);
        }
    }

    /// Of two products that read the same gradient the one for the input goes first, and the one for the weights beside the reduction of its sums.
    void sumsBesideProducts(std::vector<double>& wish) const
    {
        for (std::size_t sum = 0; sum < m_nodes.size(); ++sum) {
            if (!isReduction(sum))
                continue;
            std::set<std::size_t> before; // what the reduction needs, up to products
            std::vector<std::size_t> products; // whose sums it reduces
            visitMakers(sum, [&](std::size_t maker) {
                before.insert(maker);
                const bool isSummed = isProduct(maker) && opOf(m_nodes[maker]).phase == opOf(m_nodes[sum]).phase;
                if (isSummed)
                    products.push_back(maker);
                return !isSummed && isLight(maker);
            });
            for (const std::size_t product : products) {
                for (const std::size_t maker : makersOf(product)) {
                    for (const std::size_t other : boost::make_iterator_range(boost::adjacent_vertices(maker, m_flow))) {
                        if (isProduct(other) && !before.contains(other) && opOf(m_nodes[other]).phase == opOf(m_nodes[sum]).phase
                            && !readsParameter(other) && !needs(sum, other))
                            wish[other] = std::max(wish[other], wish[sum] + 0.25);
                    }
                }
            }
        }
    }

    /// True for a product with a parameter, as it is or made ready and gathered: not one for weights.
    bool readsParameter(std::size_t product) const
    {
        bool isRead = isParameterRead(product);
        visitMakers(product, [&](std::size_t maker) {
            const bool makesReady = isLight(maker) || opOf(m_nodes[maker]).kind == OpKind::AllGather;
            isRead = isRead || (makesReady && isParameterRead(maker));
            return makesReady && !isRead;
        });
        return isRead;
    }

    bool isParameterRead(std::size_t n) const
    {
        return std::ranges::any_of(m_nodes[n].reads,
            [this](ValueId value) { return !m_function[value].producer.valid() && m_function[value].role == Role::Parameter; });
    }

    /// True where `later` needs what `earlier` makes.
    bool needs(std::size_t later, std::size_t earlier) const
    {
        bool isNeeded = false;
        visitMakers(later, [&](std::size_t maker) {
            isNeeded = isNeeded || maker == earlier;
            return !isNeeded && maker > earlier;
        });
        return isNeeded;
    }

    /// Visits what a node needs, each once, behind its readers. `goesOn` is called with each and says whether to visit what that needs, too.
    template <typename GoesOn>
    void visitMakers(std::size_t node, GoesOn goesOn) const
    {
        std::set<std::size_t> seen;
        std::vector<std::size_t> open{node};
        while (!open.empty()) {
            const std::size_t n = open.back();
            open.pop_back();
            for (const std::size_t maker : makersOf(n)) {
                if (seen.insert(maker).second && goesOn(maker))
                    open.push_back(maker);
            }
        }
    }

    /// Wishes that a node stand no later than `place`, and so the element-wise work that it needs, such as an activation that is made again: up to
    /// products and what else takes long or moves data.
    void beginBy(std::size_t n, double place, std::vector<double>& wish) const
    {
        if (wish[n] <= place)
            return;
        wish[n] = place;
        for (const std::size_t maker : makersOf(n)) {
            if (isLight(maker))
                beginBy(maker, place, wish);
        }
    }

    bool isProduct(std::size_t n) const { return m_operations[n] > 0.0; }

    /// Element-wise work, and what only says where things are.
    bool isLight(std::size_t n) const
    {
        const auto& ops = m_nodes[n].ops;
        return std::all_of(ops.begin(), ops.end(), [this](OpId op) {
            const OpKind kind = m_function[op].kind;
            const OpClass opClass = opInfo(kind).opClass;
            return isElementwise(kind) || kind == OpKind::Reduce || opClass == OpClass::Shaping || opClass == OpClass::Leaf
                || opClass == OpClass::Constraint;
        });
    }

    /// Moves back from the host begin while others are used: in a loop when the turn before begins to use its own, and else when the last but one is used,
    /// the first two as soon as their phase begins.
    void fetchAhead(std::vector<double>& wish)
    {
        std::vector<std::size_t> moves;
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            if (streamOf(m_function, m_nodes[n], m_policy) == Stream::ToDevice)
                moves.push_back(n);
        }
        std::stable_sort(moves.begin(), moves.end(), [this](std::size_t a, std::size_t b) { return firstUse(a) < firstUse(b); });
        for (std::size_t i = 0; i < moves.size(); ++i) {
            const std::size_t n = moves[i];
            if (m_loop != nullptr && makersOf(n).empty() && isOfAnyTurn(n, {})) {
                m_isAhead[n] = true;
                wish[n] = firstUse(n);
            } else {
                wish[n] = i < 2 ? beginOfPhase(opOf(m_nodes[n]).phase) : firstUse(moves[i - 2]);
            }
        }
    }

    /// The position of the first node of a phase.
    double beginOfPhase(Phase phase) const
    {
        const auto first
            = std::find_if(m_nodes.begin(), m_nodes.end(), [&](const FusionNode& node) { return opOf(node).phase == phase; });
        return static_cast<double>(first->position);
    }

    /// Gathers of what is there from the beginning, such as parameters, wait for nothing but memory: at most three of the largest are gathered ahead of
    /// their use, as frameworks fetch the next layer beside this one (FSDP, arXiv:2304.11277, section 3.3.2): in a loop, also in the turn before.
    void gatherAhead(std::vector<double>& wish)
    {
        std::vector<std::size_t> gathers;
        std::vector<std::vector<std::size_t>> preparations;
        std::int64_t most = 0;
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            if (opOf(m_nodes[n]).kind != OpKind::AllGather)
                continue;
            if (auto preparation = preparationOf(n)) {
                gathers.push_back(n);
                preparations.push_back(std::move(*preparation));
                most = std::max(most, resultBytes(m_nodes[n]));
            }
        }
        // A loop's gathers are gone through twice: those of the second turn may begin in the first.
        const std::size_t turns = m_loop != nullptr ? 2 : 1;
        const double turnLength = static_cast<double>(m_function[m_block].ops.size());
        std::size_t oldest = 0;
        std::int64_t ahead = 0;
        double begin = 0.0;
        for (std::size_t i = 0; i < turns * gathers.size(); ++i) {
            const std::size_t n = gathers[i % gathers.size()];
            const auto& preparation = preparations[i % gathers.size()];
            ahead += resultBytes(m_nodes[n]);
            for (; ahead > 3 * most; ++oldest) {
                const std::size_t before = gathers[oldest % gathers.size()];
                ahead -= resultBytes(m_nodes[before]);
                begin = std::max(begin, firstUse(before) + (oldest < gathers.size() ? 0.0 : turnLength));
            }
            if (i < (turns - 1) * gathers.size())
                continue;
            if (turns > 1 && begin < turnLength && isOfAnyTurn(n, preparation)) {
                m_isAhead[n] = true;
                wish[n] = std::max(begin, firstUse(n)); // not two turns ahead
            } else {
                wish[n] = std::min(wish[n], turns > 1 ? std::max(0.0, begin - turnLength) : begin);
            }
            for (const std::size_t maker : preparation) {
                m_isAhead[maker] = m_isAhead[n];
                wish[maker] = m_isAhead[n] ? wish[n] : std::min(wish[maker], wish[n]);
            }
        }
    }

    /// The nodes before a gather, if they make an argument ready, such as a parameter: casts, reshapes, slices.
    std::optional<std::vector<std::size_t>> preparationOf(std::size_t gather) const
    {
        const auto isReadying = [&](OpId op) {
            const OpKind kind = m_function[op].kind;
            const OpClass opClass = opInfo(kind).opClass;
            return kind == OpKind::Convert || kind == OpKind::AllSlice || opClass == OpClass::Shaping || opClass == OpClass::Leaf
                || opClass == OpClass::Constraint;
        };
        std::vector<std::size_t> before;
        bool isReady = true;
        visitMakers(gather, [&](std::size_t maker) {
            before.push_back(maker);
            isReady = isReady && std::ranges::all_of(m_nodes[maker].ops, isReadying);
            return isReady;
        });
        return isReady ? std::optional(std::move(before)) : std::nullopt;
    }

    /// True for what is made of rows and constants of a loop alone, and by what nothing else reads: by nothing that the turn before makes.
    bool isOfAnyTurn(std::size_t gather, const std::vector<std::size_t>& preparation) const
    {
        const auto& arguments = m_function[m_block].arguments;
        const auto end = arguments.begin() + static_cast<std::ptrdiff_t>(m_loop->carries);
        const auto readsCarry = [&](std::size_t n) {
            return std::find_first_of(m_nodes[n].reads.begin(), m_nodes[n].reads.end(), arguments.begin(), end)
                != m_nodes[n].reads.end();
        };
        return !readsCarry(gather) && std::all_of(preparation.begin(), preparation.end(), [&](std::size_t maker) {
            return !readsCarry(maker) && boost::out_degree(maker, m_flow) == 1;
        });
    }

    /// Of a collective.
    std::int64_t resultBytes(const FusionNode& node) const { return m_function[opOf(node).results.front()].type.bytes(); }

    /// Of a collective: the larger of what a device gives and gets.
    std::int64_t payloadBytes(const FusionNode& node) const
    {
        return std::max(resultBytes(node), m_function[opOf(node).operands.front()].type.bytes());
    }

    /// In the block.
    double positionOf(std::size_t n) const { return static_cast<double>(m_nodes[n].position); }

    /// The first node that stands at a position or behind it.
    std::size_t firstFrom(double position) const
    {
        const auto first = std::ranges::lower_bound(
            m_nodes, position, {}, [](const FusionNode& node) { return static_cast<double>(node.position); });
        return static_cast<std::size_t>(first - m_nodes.begin());
    }

    /// The position of the first node that reads what a node makes; its own where none does.
    double firstUse(std::size_t n) const
    {
        const auto readers = boost::make_iterator_range(boost::adjacent_vertices(n, m_flow));
        return positionOf(readers.empty() ? n : *std::min_element(readers.begin(), readers.end()));
    }

    /// Where the arguments are read last whose place a fused update's results are to take; 0 when there are none.
    double lastReadOfOverwritten(std::size_t n) const
    {
        double last = 0.0;
        if (m_nodes[n].update.empty() || m_block != BlockId(std::int32_t{0}))
            return last;
        for (const Donation& donation : m_function.donations) {
            const ValueId result = m_function[m_block].results[donation.result];
            const auto& writes = m_nodes[n].writes;
            if (std::find(writes.begin(), writes.end(), result) == writes.end())
                continue;
            const ValueId argument = m_function[m_block].arguments[donation.argument];
            for (std::size_t other = 0; other < m_nodes.size(); ++other) {
                const auto& reads = m_nodes[other].reads;
                if (other != n && std::find(reads.begin(), reads.end(), argument) != reads.end())
                    last = std::max(last, positionOf(other));
            }
        }
        return last;
    }

    /// Operations that an accelerator does while one byte of a collective arrives, roughly: an H100 2,200 (989 TFLOP/s beside 450 GB/s of NVLink), a
    /// TPU v5p 765 (459 TFLOP/s, 600 GB/s of ICI). It only says how much work may go first, see `run`.
    static constexpr double kOperationsPerByte = 2000.0;

    /// Operations of a product; 0 for all else.
    double productOperations(const FusionNode& node) const
    {
        const auto product = std::find_if(
            node.ops.begin(), node.ops.end(), [this](OpId op) { return m_function[op].kind == OpKind::DotGeneral; });
        if (product == node.ops.end())
            return 0.0;
        const Op& op = m_function[*product];
        double operations = 2.0 * static_cast<double>(m_function[op.results.front()].type.elements());
        const Shape& lhs = m_function[op.operands.front()].type.shape;
        for (const std::size_t dim : op.as<DotAttributes>().lhsContracting)
            operations *= static_cast<double>(lhs[dim]);
        return operations;
    }

    const Function& m_function;
    BlockId m_block;
    SchedulePolicy m_policy;
    const RepeatAttributes* m_loop;
    const std::vector<FusionNode>& m_nodes;
    std::vector<double> m_operations; ///< for each node: of its product
    std::vector<bool> m_isAhead; ///< for each node: done for the next turn
    NodeFlow m_flow;
};

} // namespace

NodeOrder orderOf(const Function& function, BlockId block, SchedulePolicy policy, const RepeatAttributes* loop,
    const std::vector<FusionNode>& nodes)
{
    return Orderer(function, block, policy, loop, nodes).run();
}

} // namespace meshwright
