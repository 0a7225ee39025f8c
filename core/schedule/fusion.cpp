// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/fusion.h"

#include "core/program/eight_bits.h"
#include "core/program/transform.h"
#include "core/support/stop_scope.h"

#include <algorithm>
#include <optional>
#include <set>

namespace meshwright {

namespace {

constexpr auto kNoPosition = static_cast<std::size_t>(-1);

class Fuser {
public:
    Fuser(const Function& function, BlockId block, Fusion fusion)
        : m_function(function)
        , m_block(function[block])
        , m_fuse(fusion != Fusion::None)
        , m_joinsReductions(fusion == Fusion::Reductions)
        , m_positionOf(function.ops.size(), kNoPosition)
        , m_groupOf(m_block.ops.size())
        , m_uses(useCounts(function))
    {
        for (std::size_t i = 0; i < m_block.ops.size(); ++i) {
            m_positionOf[m_block.ops[i].at()] = i;
            m_groupOf[i] = i;
            m_cheap.push_back(isSpread(i));
            m_members.push_back({i});
            m_needs.push_back(needsOf(i));
            noteCollectives(i);
            m_order.push_back(i);
            m_placeOf.push_back(i);
        }
    }

    std::vector<FusionNode> run()
    {
        if (m_fuse) {
            for (std::size_t i = 0; i < m_block.ops.size(); ++i) {
                heedStop();
                if (isFusable(i) || (m_joinsReductions && opAt(i).kind == OpKind::Reduce))
                    joinProducers(i);
                else
                    joinRandomBits(i);
            }
        }
        return nodes();
    }

private:
    const Op& opAt(std::size_t position) const { return m_function[m_block.ops[position]]; }

    /// Made again in every node that needs it rather than kept in memory.
    bool isCheap(std::size_t position) const { return m_cheap[position]; }

    /// True for splats, iotas, broadcasts, and for what is made of such values alone in a simple way, as a mask of labels is.
    bool isSpread(std::size_t position) const
    {
        const Op& op = opAt(position);
        if (op.kind == OpKind::Constant)
            return op.as<ConstantAttributes>().data.isSplat();
        if (m_fuse && (op.kind == OpKind::Iota || op.kind == OpKind::BroadcastInDim))
            return true;
        return m_joinsReductions && isFusable(position) && opInfo(op.kind).cost == ElementCost::Simple
            && std::all_of(op.operands.begin(), op.operands.end(), [this](ValueId operand) {
                   const std::size_t producer = producerOf(operand);
                   return producer != kNoPosition && m_cheap[producer];
               });
    }

    /// Keeps its carries where its results lie.
    static bool isLoop(OpKind kind) { return kind == OpKind::Repeat || kind == OpKind::While; }

    /// Makes all of its results together: what nobody reads needs a place too.
    static bool writesAll(OpKind kind) { return isKept(kind); }

    bool isFusable(std::size_t position) const { return isElementwise(opAt(position).kind); }

    const Shape& shapeAt(std::size_t position) const { return m_function[opAt(position).results.front()].type.shape; }

    std::size_t producerOf(ValueId value) const
    {
        const OpId producer = m_function[value].producer;
        return producer.valid() ? m_positionOf[producer.at()] : kNoPosition;
    }

    /// The ops whose results an op needs in memory or in its node: cheap ones are seen through. Those before it must have theirs.
    std::vector<std::size_t> needsOf(std::size_t position) const
    {
        std::set<std::size_t> needs;
        for (const ValueId operand : opAt(position).operands) {
            const std::size_t producer = producerOf(operand);
            if (producer == kNoPosition)
                continue;
            if (isCheap(producer))
                needs.insert(m_needs[producer].begin(), m_needs[producer].end());
            else
                needs.insert(producer);
        }
        return {needs.begin(), needs.end()};
    }

    /// The shape that a pass over its operands goes through.
    const Shape& passOf(std::size_t position) const
    {
        const Op& op = opAt(position);
        return op.kind == OpKind::Reduce ? m_function[op.operands.front()].type.shape : shapeAt(position);
    }

    /// How many collectives follow each other up to an op, and which values they move.
    void noteCollectives(std::size_t position)
    {
        const bool moves = isCollective(opAt(position).kind) && opAt(position).kind != OpKind::AllSlice;
        std::size_t before = 0;
        for (const std::size_t needed : m_needs[position]) {
            before = std::max(before, m_collectivesBefore[needed]);
            m_isMoved[needed] = m_isMoved[needed] || moves;
        }
        m_collectivesBefore.push_back(before + (moves ? 1 : 0));
        m_isMoved.push_back(false);
    }

    /// True where one node of both would hold up a collective: it moves what `earlier` makes, which would wait for a collective that `later` needs.
    bool holdsUp(std::size_t earlier, std::size_t later) const
    {
        return m_isMoved[earlier] && m_collectivesBefore[earlier] < m_collectivesBefore[later];
    }

    void joinProducers(std::size_t position)
    {
        for (const ValueId operand : opAt(position).operands) {
            const std::size_t producer = producerOf(operand);
            if (producer == kNoPosition || isCheap(producer) || !isFusable(producer) || shapeAt(producer) != passOf(position))
                continue;
            if (!m_joinsReductions || !holdsUp(m_groupOf[producer], m_groupOf[position]))
                join(m_groupOf[producer], m_groupOf[position]);
        }
    }

    /// A part of random bits that nobody else wants is drawn alone.
    void joinRandomBits(std::size_t position)
    {
        const Op& part = opAt(position);
        if (part.kind != OpKind::DynamicSlice || m_function[part.operands.back()].type.dtype != DType::S32)
            return;
        const std::size_t producer = producerOf(part.operands.front());
        if (producer == kNoPosition || opAt(producer).kind != OpKind::RandomBits || m_uses[part.operands.front().at()] != 1)
            return;
        join(m_groupOf[producer], m_groupOf[position]);
    }

    /// The groups that `later` needs and that stand behind `earlier` in the order: what both as one group must come after. Nothing when one of
    /// them needs `earlier`, so that the joined group would need itself, or when they are too many to look at for every pair of ops.
    std::optional<std::set<std::size_t>> between(std::size_t earlier, std::size_t later) const
    {
        constexpr std::size_t kMost = 1000;
        std::set<std::size_t> found;
        std::vector<std::size_t> open{later};
        while (!open.empty()) {
            const std::size_t group = open.back();
            open.pop_back();
            for (const std::size_t member : m_members[group]) {
                for (const std::size_t needed : m_needs[member]) {
                    const std::size_t other = m_groupOf[needed];
                    if (other == earlier && group != later)
                        return std::nullopt;
                    if (m_placeOf[other] <= m_placeOf[earlier] || other == later || !found.insert(other).second)
                        continue;
                    if (found.size() > kMost)
                        return std::nullopt;
                    open.push_back(other);
                }
            }
        }
        return found;
    }

    /// Makes one group of two, unless some other group needs a member of it and is needed by one.
    void join(std::size_t a, std::size_t b)
    {
        if (a == b)
            return;
        const auto [earlier, later] = m_placeOf[a] < m_placeOf[b] ? std::pair(a, b) : std::pair(b, a);
        const auto first = between(earlier, later);
        if (!first)
            return;
        auto& members = m_members[earlier];
        const auto own = static_cast<std::ptrdiff_t>(members.size());
        members.insert(members.end(), m_members[later].begin(), m_members[later].end());
        if (members[static_cast<std::size_t>(own)] < members[static_cast<std::size_t>(own) - 1])
            std::inplace_merge(members.begin(), members.begin() + own, members.end());
        for (const std::size_t member : m_members[later])
            m_groupOf[member] = earlier;
        m_members[later].clear();
        m_collectivesBefore[earlier] = std::max(m_collectivesBefore[earlier], m_collectivesBefore[later]);
        m_isMoved[earlier] = m_isMoved[earlier] || m_isMoved[later];
        if (first->empty())
            return;
        const auto at = [&](std::size_t group) { return m_order.begin() + static_cast<std::ptrdiff_t>(m_placeOf[group]); };
        const auto begin = at(earlier);
        const auto end = at(later) + 1;
        std::stable_partition(begin, end, [&](std::size_t group) { return first->contains(group); });
        for (auto moved = begin; moved != end; ++moved)
            m_placeOf[*moved] = static_cast<std::size_t>(moved - m_order.begin());
    }

    /// Adds the cheap ops that feed `position` to the node's ops.
    void addCheap(std::size_t position, std::set<std::size_t>& positions) const
    {
        for (const ValueId operand : opAt(position).operands) {
            const std::size_t producer = producerOf(operand);
            if (producer != kNoPosition && isCheap(producer) && positions.insert(producer).second)
                addCheap(producer, positions);
        }
    }

    /// Cheap values that an op outside every element-wise node, or the end of the block, wants in memory.
    std::set<std::size_t> cheapInMemory() const
    {
        std::set<std::size_t> wanted;
        const auto want = [&](ValueId value) {
            const std::size_t producer = producerOf(value);
            if (producer != kNoPosition && isCheap(producer))
                wanted.insert(producer);
        };
        for (std::size_t i = 0; i < m_block.ops.size(); ++i) {
            if (!isCheap(i) && !(m_fuse && isPass(i)))
                std::for_each(opAt(i).operands.begin(), opAt(i).operands.end(), want);
        }
        std::for_each(m_block.results.begin(), m_block.results.end(), want);
        return wanted;
    }

    bool isPass(std::size_t position) const
    {
        return isFusable(position) || (m_joinsReductions && opAt(position).kind == OpKind::Reduce);
    }

    FusionNode nodeOf(std::set<std::size_t> positions, const std::vector<std::size_t>& members) const
    {
        const bool takesCheap
            = isCheap(members.front()) || (m_fuse && isPass(members.front())) || positions.size() > members.size();
        if (takesCheap) {
            for (const std::size_t position : std::vector<std::size_t>(positions.begin(), positions.end()))
                addCheap(position, positions);
        }
        FusionNode node;
        node.position = members.back();
        for (const std::size_t position : positions)
            node.ops.push_back(m_block.ops[position]);
        for (const std::size_t position : positions) {
            for (const ValueId operand : opAt(position).operands) {
                const std::size_t producer = producerOf(operand);
                const bool inside = producer != kNoPosition && positions.contains(producer);
                if (!inside && std::find(node.reads.begin(), node.reads.end(), operand) == node.reads.end())
                    node.reads.push_back(operand);
            }
        }
        return node;
    }

    /// Adds what others make of values in memory that are not larger, in a simple way: it is made again rather than written and read.
    void makeAgain(std::set<std::size_t>& positions) const
    {
        std::vector<std::size_t> open(positions.begin(), positions.end());
        while (!open.empty()) {
            const std::size_t member = open.back();
            open.pop_back();
            for (const ValueId operand : opAt(member).operands) {
                const std::size_t producer = producerOf(operand);
                if (producer == kNoPosition || isCheap(producer) || positions.contains(producer) || !isFusable(producer)
                    || opInfo(opAt(producer).kind).cost != ElementCost::Simple)
                    continue;
                std::int64_t bytes = 0;
                bool isInMemory = true;
                for (const ValueId source : opAt(producer).operands) {
                    const std::size_t maker = producerOf(source);
                    if (maker != kNoPosition && isCheap(maker))
                        continue;
                    bytes += m_function[source].type.bytes();
                    isInMemory = isInMemory && (maker == kNoPosition || m_groupOf[maker] != m_groupOf[producer]);
                }
                if (isInMemory && bytes <= m_function[operand].type.bytes() && positions.insert(producer).second)
                    open.push_back(producer);
            }
        }
    }

    /// A product widens operands of 8 bits on their way in.
    void widenAgain(std::size_t product, std::set<std::size_t>& positions) const
    {
        for (ValueId operand : opAt(product).operands) {
            const ValueId source = eightBitSource(m_function, operand);
            std::vector<std::size_t> way;
            std::size_t producer = source.valid() ? producerOf(operand) : kNoPosition;
            while (operand != source && producer != kNoPosition && (isFusable(producer) || isShaping(producer))) {
                way.push_back(producer);
                operand = opAt(producer).operands.front();
                producer = producerOf(operand);
            }
            if (source.valid() && operand == source)
                positions.insert(way.begin(), way.end());
        }
    }

    bool isShaping(std::size_t position) const { return opInfo(opAt(position).kind).opClass == OpClass::Shaping; }

    /// Takes out passes that all readers make again.
    void dropUnread(std::vector<FusionNode>& nodes, std::vector<std::vector<std::size_t>>& own) const
    {
        std::size_t kept = 0;
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            if (nodes[n].writes.empty() && isPass(own[n].front()))
                continue;
            if (kept != n) {
                nodes[kept] = std::move(nodes[n]);
                own[kept] = std::move(own[n]);
            }
            ++kept;
        }
        nodes.resize(kept);
        own.resize(kept);
    }

    std::vector<FusionNode> nodes() const
    {
        const std::set<std::size_t> inMemory = cheapInMemory();
        std::vector<FusionNode> result;
        std::vector<std::vector<std::size_t>> own; // the positions whose results each node may write
        for (std::size_t i = 0; i < m_block.ops.size(); ++i) {
            const auto& members = m_members[m_groupOf[i]];
            if (members.back() != i || (isCheap(i) && !inMemory.contains(i)))
                continue;
            std::set<std::size_t> positions(members.begin(), members.end());
            if (m_joinsReductions && isPass(members.front()))
                makeAgain(positions);
            if (m_joinsReductions && opAt(i).kind == OpKind::DotGeneral)
                widenAgain(i, positions);
            result.push_back(nodeOf(std::move(positions), members));
            own.push_back(members);
        }

        for (std::size_t before = 0; before != result.size();) {
            before = result.size();
            std::set<ValueId> wanted(m_block.results.begin(), m_block.results.end());
            for (const FusionNode& node : result)
                wanted.insert(node.reads.begin(), node.reads.end());
            for (std::size_t n = 0; n < result.size(); ++n) {
                result[n].writes.clear();
                for (const std::size_t position : own[n]) {
                    const auto& values = opAt(position).results;
                    const auto isWanted = [&](ValueId value) { return wanted.contains(value); };
                    const bool all = writesAll(opAt(position).kind) && std::any_of(values.begin(), values.end(), isWanted);
                    std::copy_if(values.begin(), values.end(), std::back_inserter(result[n].writes),
                        [&](ValueId value) { return all || isLoop(opAt(position).kind) || isWanted(value); });
                }
            }
            if (m_joinsReductions)
                dropUnread(result, own);
        }
        return result;
    }

    const Function& m_function;
    const Block& m_block;
    bool m_fuse;
    bool m_joinsReductions;
    std::vector<std::size_t> m_positionOf; ///< by op
    std::vector<std::size_t> m_groupOf; ///< by position
    std::vector<bool> m_cheap; ///< by position, see isSpread
    std::vector<std::size_t> m_uses; ///< of each value
    std::vector<std::vector<std::size_t>> m_members; ///< by group, ascending; empty: joined into another
    std::vector<std::vector<std::size_t>> m_needs; ///< by position: the positions it needs, see `needsOf`
    std::vector<std::size_t> m_collectivesBefore; ///< by group: the most that follow each other up to a member
    std::vector<bool> m_isMoved; ///< by group: a collective reads what a member makes
    std::vector<std::size_t> m_order; ///< groups, each behind all that it needs, and what is left of those joined into another
    std::vector<std::size_t> m_placeOf; ///< by group: in the order
};

} // namespace

std::vector<FusionNode> fusionNodes(const Function& function, BlockId block, Fusion fusion)
{
    return Fuser(function, block, fusion).run();
}

bool isReadPointwise(const Function& function, const FusionNode& node, ValueId value)
{
    return std::all_of(node.ops.begin(), node.ops.end(), [&](OpId id) {
        const Op& op = function[id];
        return isElementwise(op.kind) || std::find(op.operands.begin(), op.operands.end(), value) == op.operands.end();
    });
}

} // namespace meshwright
