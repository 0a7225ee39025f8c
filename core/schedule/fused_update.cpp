// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/fused_update.h"

#include "core/schedule/device_dependence.h"

#include <algorithm>
#include <map>

namespace meshwright {

namespace {

constexpr auto kNoNode = static_cast<std::size_t>(-1);

/// True for a pass whose every stretch can be computed by itself: element-wise ops, and leaves that are constant or spread from memory.
bool canBeCut(const Function& function, const FusionNode& pass)
{
    const auto isRead = [&](ValueId value) { return std::find(pass.reads.begin(), pass.reads.end(), value) != pass.reads.end(); };
    bool computes = false;
    for (const OpId id : pass.ops) {
        const Op& op = function[id];
        computes = computes || isElementwise(op.kind);
        if (isElementwise(op.kind))
            continue;
        if (op.kind == OpKind::Constant && op.as<ConstantAttributes>().data.isSplat())
            continue;
        if (op.kind != OpKind::BroadcastInDim)
            return false;
        const OpId source = function[op.operands[0]].producer;
        if (!isRead(op.operands[0]) && !(source.valid() && function[source].kind == OpKind::Constant))
            return false;
    }
    return computes;
}

class UpdateFuser {
public:
    UpdateFuser(const Function& function, BlockId block, std::vector<FusionNode> nodes)
        : m_function(function)
        , m_block(function[block])
        , m_nodes(std::move(nodes))
        , m_dependence(function)
        , m_isJoined(m_nodes.size(), false)
    {
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            for (const ValueId read : m_nodes[n].reads) {
                const auto [at, isNew] = m_readerOf.try_emplace(read, n);
                if (!isNew)
                    at->second = kNoNode; // several
            }
        }
        for (const ValueId result : m_block.results)
            m_readerOf[result] = kNoNode;
    }

    std::vector<FusionNode> run()
    {
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            const std::size_t pass = passOf(n);
            if (pass != kNoNode)
                join(n, pass);
        }
        std::vector<FusionNode> remaining;
        for (std::size_t n = 0; n < m_nodes.size(); ++n) {
            if (!m_isJoined[n])
                remaining.push_back(std::move(m_nodes[n]));
        }
        return remaining;
    }

private:
    /// The node that can be done together with this all-reduce, or kNoNode.
    std::size_t passOf(std::size_t reduction) const
    {
        const FusionNode& node = m_nodes[reduction];
        const Op& op = m_function[node.ops.front()];
        if (op.kind != OpKind::AllReduce || op.as<CollectiveAttributes>().pieces)
            return kNoNode;
        const ValueId sum = op.results.front();
        const auto reader = m_readerOf.find(sum);
        if (!m_function[sum].sharding || reader == m_readerOf.end() || reader->second == kNoNode || m_isJoined[reader->second])
            return kNoNode;
        const FusionNode& pass = m_nodes[reader->second];
        const AxisRefs& axes = op.as<CollectiveAttributes>().axes;
        const std::int32_t mesh = m_function[sum].sharding->mesh;
        const bool fits = canBeCut(m_function, pass) && isReadPointwise(m_function, pass, sum)
            && std::all_of(
                pass.reads.begin(), pass.reads.end(), [&](ValueId v) { return m_dependence.isEqualOver(v, axes, mesh); });
        return fits ? reader->second : kNoNode;
    }

    void join(std::size_t reduction, std::size_t pass)
    {
        FusionNode& node = m_nodes[reduction];
        const FusionNode& from = m_nodes[pass];
        const ValueId sum = m_function[node.ops.front()].results.front();
        node.update = from.ops;
        node.writes = from.writes;
        for (const ValueId read : from.reads) {
            if (read != sum && std::find(node.reads.begin(), node.reads.end(), read) == node.reads.end())
                node.reads.push_back(read);
        }
        m_isJoined[pass] = true;
    }

    const Function& m_function;
    const Block& m_block;
    std::vector<FusionNode> m_nodes;
    DeviceDependence m_dependence;
    std::vector<bool> m_isJoined; ///< by node: it is done with an all-reduce
    std::map<ValueId, std::size_t> m_readerOf; ///< the only node that reads a value; kNoNode: more than one, or a result
};

} // namespace

std::vector<FusionNode> withFusedUpdates(const Function& function, BlockId block, std::vector<FusionNode> nodes)
{
    return UpdateFuser(function, block, std::move(nodes)).run();
}

} // namespace meshwright
