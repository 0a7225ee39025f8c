// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/chakra/folder.h"
#include "sim/chakra/trace.h"
#include "sim/cost/device_cost.h"
#include "sim/network/ticks.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace meshwright::sim {

/// A node of a trace, as far as a replay needs it.
struct TraceNode {
    enum class Kind : std::uint8_t {
        Nothing, ///< takes no time: metadata, a collective of one rank, a message to oneself
        Compute,
        Host, ///< computing of the rank's CPU (`is_cpu_op`), beside its device
        Collective,
        Send,
        Receive,
    };
    Kind kind = Kind::Nothing;
    ChakraCollective collective = ChakraCollective::AllReduce;
    std::uint32_t name = 0; ///< into TraceSet::names
    std::uint32_t rank = 0;
    std::uint32_t channel = 0; ///< Collective: into TraceSet::groups; Send, Receive: into TraceSet::channels
    std::uint64_t id = 0; ///< in its file
    Ticks ticks = 0; ///< Compute, Host
    bool isEstimated = false; ///< Compute: the trace has no time for it, `ticks` are by FLOPs and bytes
    double flops = 0.0;
    std::int64_t bytes = 0; ///< read and written, or `comm_size`
};

/// How fast something is computed whose trace says what, but not how long.
struct TraceRates {
    double flopsPerSecond = 0.0;
    double bytesPerSecond = 0.0;
};

/// The traces of all ranks of a step, one after the other.
class TraceSet {
public:
    static constexpr double kMostSeconds = 1e6; ///< of all nodes together; ticks hold a hundred times that

    /// A group of ranks that do collectives together.
    struct Group {
        std::string name;
        std::vector<std::int64_t> ranks;
        std::int64_t checkedFor = -1; ///< the last rank that was found among them
    };
    /// Messages of one tag from one rank to another.
    struct Channel {
        std::int64_t from = 0;
        std::int64_t to = 0;
        std::int64_t tag = 0;

        friend auto operator<=>(const Channel&, const Channel&) = default;
    };

    TraceSet(ProcessGroups groups, TraceRates rates)
        : m_processGroups(std::move(groups))
        , m_rates(rates)
    {
    }

    /// The trace of the next rank; `file` names it in problems.
    /// Problems: MW1768 a group that is not there or that the rank is not a part of, a message that neither begins nor ends here; MW1769 nodes that wait for each other;
    /// MW1784 a size, a kind of collective or a time that cannot be.
    Result<Done> add(const ChakraTrace& trace, const std::string& file);

    /// After the last rank. Problems: MW1768 a rank that there is none of.
    Result<Done> finish();

    std::size_t ranks() const { return m_firstNode.size() - 1; }
    std::size_t size() const { return m_nodes.size(); }
    const TraceNode& node(std::size_t node) const { return m_nodes[node]; }

    /// The rank's nodes are numbers from one on, each with what it waits for (numbers likewise).
    std::uint32_t firstNode(std::size_t rank) const { return m_firstNode[rank]; }
    std::span<const std::uint32_t> dependencies(std::size_t node) const
    {
        return std::span(m_dependencies).subspan(m_firstDependency[node], m_firstDependency[node + 1] - m_firstDependency[node]);
    }

    /// The rank's nodes in an order in which they could be done: what the file has first goes first.
    std::span<const std::uint32_t> order(std::size_t rank) const
    {
        return std::span(m_order).subspan(m_firstNode[rank], m_firstNode[rank + 1] - m_firstNode[rank]);
    }

    const std::vector<std::string>& names() const { return m_names; }
    const std::vector<Group>& groups() const { return m_groups; } ///< the first: all ranks
    const std::vector<Channel>& channels() const { return m_channels; }
    const std::string& file(std::size_t rank) const { return m_files[rank]; }
    double seconds() const { return m_seconds; } ///< of computing, all nodes together

private:
    Result<TraceNode> read(const ChakraNode& node);
    Result<Done> readCollective(const ChakraNode& node, TraceNode& to);
    Result<Done> readMessage(const ChakraNode& node, TraceNode& to);
    Result<Done> readTime(const ChakraNode& node, TraceNode& to) const;
    Result<std::int64_t> sizeOf(const ChakraNode& node) const;
    Result<std::uint32_t> groupOf(const ChakraNode& node);
    Result<Done> sortRank(std::uint32_t first, const std::string& file);
    std::uint32_t nameOf(const std::string& name);

    ProcessGroups m_processGroups;
    TraceRates m_rates;
    std::vector<TraceNode> m_nodes;
    std::vector<std::uint32_t> m_firstNode{0};
    std::vector<std::uint32_t> m_dependencies;
    std::vector<std::uint32_t> m_firstDependency{0};
    std::vector<std::uint32_t> m_order;
    std::vector<std::string> m_names;
    std::map<std::string, std::uint32_t> m_numberOfName;
    std::vector<Group> m_groups{Group{}};
    std::map<std::string, std::uint32_t> m_numberOfGroup;
    std::vector<Channel> m_channels;
    std::map<Channel, std::uint32_t> m_numberOfChannel;
    std::vector<std::string> m_files;
    double m_seconds = 0.0;
};

} // namespace meshwright::sim
