// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/simulate/step_graph.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// A simulated step as Chakra traces, one for each rank: rank r is the r-th device of the mesh by the machine's numbers.
///
/// Computing is a COMP_NODE with its time on that device (`duration_micros`, rounded), FLOPs (`num_ops`) and bytes (`tensor_size`); a collective a
/// COMM_COLL_NODE whose `comm_size` is what a rank puts in (of an all-gather its own part), as ASTRA-sim takes it, and whose `pg_name` is a
/// group of comm_groups.json (all ranks have none); what pipeline stages pass each other COMM_SEND_NODE and COMM_RECV_NODE. Of a permute it
/// is not known who sends to whom: each rank sends to the one half a group further. All dependencies are data_deps; nodes are in an order in which they could run.
class StepTraces {
public:
    /// Problems: MW1767 more than kMostChakraNodes nodes in all ranks, or StepGraph::tooLong.
    static Result<StepTraces> create(const StepGraph& graph);

    std::size_t ranks() const { return m_stageOf.size(); }
    std::int64_t nodes() const { return m_nodes; } ///< of all ranks

    /// The bytes of a rank's file.
    std::string bytesOf(std::size_t rank) const;

    /// comm_groups.json: `{"1": [0, 1], "2": [2, 3]}`.
    std::string groupsJson() const;

private:
    /// A node as all ranks of a stage have it, and what is each rank's own.
    struct Node {
        std::string bytes;
        enum class Own : std::uint8_t { Nothing, Time, Group, To, From } own = Own::Nothing;
        Ticks ticks = 0; ///< Time: at full speed
        std::uint32_t split = 0; ///< Group, To, From: into m_splits
    };
    /// How ranks are split in groups.
    struct Split {
        DeviceGroups groups; ///< of ranks
        std::vector<std::uint32_t> placeOf; ///< in `groups.members`, for each rank
        std::vector<std::string> names; ///< of groups, as `pg_name`; empty: not needed

        std::uint32_t groupOf(std::size_t rank) const { return placeOf[rank] / groups.size; }
    };

    std::uint32_t splitOf(const DeviceGroups& devices);
    void nameGroups(Split& split);
    void addOp(const StepGraph& graph, const StepGraph::Op& op, std::vector<std::vector<std::uint64_t>>& nodesOf,
        std::vector<Node>& nodes);
    std::int64_t peerOf(const Node& node, std::size_t rank) const;

    std::vector<std::uint32_t> m_devices;
    std::vector<std::uint32_t> m_stageOf; ///< for each rank
    std::vector<double> m_speed; ///< likewise
    std::vector<std::vector<Node>> m_stages;
    std::vector<Split> m_splits;
    std::vector<std::uint32_t> m_splitOfUse;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> m_tags; ///< of messages, by use and meeting
    std::int64_t m_nodes = 0;
    std::int64_t m_groups = 0; ///< that have names
};

} // namespace meshwright::sim
