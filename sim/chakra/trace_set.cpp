// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/chakra/trace_set.h"

#include "core/support/units.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/range/iterator_range.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

namespace meshwright::sim {

namespace {

/// From what comes before to what waits for it.
using FollowerGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
    boost::no_property, std::uint32_t, std::uint32_t>;

Problem disagree(std::string message, const char* fix)
{
    return {"MW1768", std::move(message), fix};
}

Problem cannotBe(std::string message, const char* fix)
{
    return {"MW1784", std::move(message), fix};
}

} // namespace

std::uint32_t TraceSet::nameOf(const std::string& name)
{
    const auto [found, isNew] = m_numberOfName.try_emplace(name, static_cast<std::uint32_t>(m_names.size()));
    if (isNew)
        m_names.push_back(name);
    return found->second;
}

/// Bytes of communication.
Result<std::int64_t> TraceSet::sizeOf(const ChakraNode& node) const
{
    constexpr std::int64_t kMost = std::int64_t{1} << 40; // a terabyte; all that a group of millions holds fits 63 bits
    const auto size = node.integer("comm_size");
    if (!size || *size < 0 || *size > kMost)
        return cannotBe(fmt::format("node {} has no comm_size from 0 to 2^40 bytes", node.id), "write how many bytes it moves");
    return *size;
}

/// `pg_name`, or `comm_group` as older writers have it; none, and "0", are all ranks.
Result<std::uint32_t> TraceSet::groupOf(const ChakraNode& node)
{
    std::string name;
    for (const char* attribute : {"comm_group", "pg_name"}) {
        if (const auto text = node.text(attribute))
            name = *text;
        else if (const auto number = node.integer(attribute))
            name = std::to_string(*number);
    }
    if (name.empty() || name == "0")
        return std::uint32_t{0};
    const auto known = m_numberOfGroup.find(name);
    if (known != m_numberOfGroup.end() && m_groups[known->second].checkedFor == static_cast<std::int64_t>(ranks()))
        return known->second;
    const auto found = m_processGroups.find(name);
    if (found == m_processGroups.end())
        return disagree(fmt::format("node {} is of the group \"{}\", which is not defined", node.id, name),
            "list the ranks of each group in comm_groups.json beside the traces");
    if (found->second.empty())
        return std::uint32_t{0};
    const auto rank = static_cast<std::int64_t>(ranks());
    if (std::ranges::count(found->second, rank) == 0)
        return disagree(fmt::format("node {} is of the group \"{}\", which does not contain rank {}", node.id, name, rank),
            "list all ranks of the group in comm_groups.json");
    const auto [number, isNew] = m_numberOfGroup.try_emplace(name, static_cast<std::uint32_t>(m_groups.size()));
    if (isNew)
        m_groups.push_back({name, found->second});
    m_groups[number->second].checkedFor = rank;
    return number->second;
}

Result<Done> TraceSet::readCollective(const ChakraNode& node, TraceNode& to)
{
    const auto type = node.integer("comm_type");
    if (!type || *type < 0 || *type > static_cast<std::int64_t>(ChakraCollective::Barrier))
        return cannotBe(fmt::format("node {} has no comm_type of 0 to 9", node.id), "write which collective it is");
    to.collective = static_cast<ChakraCollective>(*type);
    if (to.collective == ChakraCollective::Gather || to.collective == ChakraCollective::Scatter)
        return cannotBe(fmt::format("node {} gathers to one rank or scatters from one, which is not simulated", node.id),
            "write it as messages");
    if (to.collective == ChakraCollective::ReduceScatterBlock)
        to.collective = ChakraCollective::ReduceScatter;
    const auto size = to.collective == ChakraCollective::Barrier ? Result<std::int64_t>(0) : sizeOf(node);
    if (!size)
        return size.error();
    to.bytes = *size;
    const auto group = groupOf(node);
    if (!group)
        return group.error();
    to.channel = *group;
    to.kind = *group > 0 && m_groups[*group].ranks.size() == 1 ? TraceNode::Kind::Nothing : TraceNode::Kind::Collective;
    return Done{};
}

Result<Done> TraceSet::readMessage(const ChakraNode& node, TraceNode& to)
{
    const bool sends = node.type == ChakraNodeType::Send;
    const auto own = static_cast<std::int64_t>(ranks());
    const auto from = sends ? node.integer("comm_src").value_or(own) : node.integer("comm_src");
    const auto to_ = sends ? node.integer("comm_dst") : node.integer("comm_dst").value_or(own);
    if (!from || !to_ || (sends ? *from : *to_) != own || *from < 0 || *to_ < 0)
        return disagree(fmt::format("node {} of rank {} does not name the rank that it {}", node.id, own,
                            sends ? "sends to" : "receives from"),
            "write comm_src and comm_dst");
    const auto size = sizeOf(node);
    if (!size)
        return size.error();
    to.bytes = *size;
    if (*from == *to_)
        return Done{};
    const Channel channel{*from, *to_, node.integer("comm_tag").value_or(0)};
    const auto [number, isNew] = m_numberOfChannel.try_emplace(channel, static_cast<std::uint32_t>(m_channels.size()));
    if (isNew)
        m_channels.push_back(channel);
    to.channel = number->second;
    to.kind = sends ? TraceNode::Kind::Send : TraceNode::Kind::Receive;
    return Done{};
}

/// As the trace has it; where it has no time, by FLOPs and bytes.
Result<Done> TraceSet::readTime(const ChakraNode& node, TraceNode& to) const
{
    constexpr double kMicrosecond = 1e-6;
    double seconds = static_cast<double>(node.durationMicros) * kMicrosecond;
    const auto exact = node.integer(kChakraPicoseconds);
    if (exact && *exact >= 0 && std::abs(secondsOf(*exact) - seconds) <= kMicrosecond) {
        to.ticks = *exact;
        return Done{};
    }
    to.isEstimated = node.durationMicros == 0 && to.kind == TraceNode::Kind::Compute;
    if (to.isEstimated)
        seconds = std::max(to.flops / m_rates.flopsPerSecond, static_cast<double>(to.bytes) / m_rates.bytesPerSecond);
    if (!(seconds <= kMostSeconds))
        return cannotBe(fmt::format("node {} takes {:.3g} seconds", node.id, seconds), "write durations in microseconds");
    to.ticks = ticksOf(seconds);
    return Done{};
}

Result<TraceNode> TraceSet::read(const ChakraNode& node)
{
    TraceNode result;
    result.id = node.id;
    result.rank = static_cast<std::uint32_t>(ranks());
    result.name = nameOf(node.name);
    Result<Done> good = Done{};
    switch (node.type) {
    case ChakraNodeType::Collective:
        good = readCollective(node, result);
        break;
    case ChakraNodeType::Send:
    case ChakraNodeType::Receive:
        good = readMessage(node, result);
        break;
    case ChakraNodeType::Compute:
    case ChakraNodeType::MemoryLoad:
    case ChakraNodeType::MemoryStore: {
        result.kind = node.flag("is_cpu_op", false) ? TraceNode::Kind::Host : TraceNode::Kind::Compute;
        constexpr double kMostFlops = 1e30;
        result.flops = std::min(kMostFlops, std::max(0.0, node.number("num_ops").value_or(0.0)));
        result.bytes = std::max<std::int64_t>(0, node.integer("tensor_size").value_or(0));
        good = readTime(node, result);
        break;
    }
    case ChakraNodeType::Invalid:
    case ChakraNodeType::Metadata:
        break;
    }
    if (!good)
        return good.error();
    return result;
}

Result<Done> TraceSet::add(const ChakraTrace& trace, const std::string& file)
{
    const auto first = static_cast<std::uint32_t>(m_nodes.size());
    std::vector<std::pair<std::uint64_t, std::uint32_t>> numbers; // of ids
    for (const ChakraNode& node : trace.nodes)
        addPyTorchGroups(node.inputs, m_processGroups);
    for (const ChakraNode& node : trace.nodes) {
        auto read = this->read(node);
        if (!read)
            return inFile(read.error(), file);
        numbers.emplace_back(node.id, static_cast<std::uint32_t>(m_nodes.size()));
        m_seconds += secondsOf(read->ticks);
        m_nodes.push_back(*std::move(read));
    }
    if (m_seconds > kMostSeconds)
        return cannotBe(fmt::format("all nodes together take more than {:.0f} days", kMostSeconds / kSecondsPerDay),
            "write durations in microseconds");
    std::ranges::sort(numbers);
    for (const ChakraNode& node : trace.nodes) {
        for (const auto* list : {&node.controlDependencies, &node.dataDependencies}) {
            for (const std::uint64_t id : *list)
                m_dependencies.push_back(
                    std::ranges::lower_bound(numbers, id, {}, &std::pair<std::uint64_t, std::uint32_t>::first)->second);
        }
        m_firstDependency.push_back(static_cast<std::uint32_t>(m_dependencies.size()));
    }
    m_files.push_back(file);
    m_firstNode.push_back(static_cast<std::uint32_t>(m_nodes.size()));
    return sortRank(first, file);
}

Result<Done> TraceSet::sortRank(std::uint32_t first, const std::string& file)
{
    const auto count = static_cast<std::uint32_t>(m_nodes.size()) - first;
    std::vector<std::uint32_t> waits(count, 0);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::uint32_t node = 0; node < count; ++node) {
        waits[node] = static_cast<std::uint32_t>(dependencies(first + node).size());
        for (const std::uint32_t other : dependencies(first + node))
            edges.emplace_back(other - first, node);
    }
    const FollowerGraph graph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), count);
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t node = 0; node < count; ++node) {
        if (waits[node] == 0)
            ready.push(node);
    }
    const std::size_t before = m_order.size();
    while (!ready.empty()) {
        const std::uint32_t node = ready.top();
        ready.pop();
        m_order.push_back(first + node);
        for (const std::uint32_t follower : boost::make_iterator_range(boost::adjacent_vertices(node, graph))) {
            if (--waits[follower] == 0)
                ready.push(follower);
        }
    }
    if (m_order.size() - before == count)
        return Done{};
    const auto stuck
        = static_cast<std::uint32_t>(std::ranges::find_if(waits, [](std::uint32_t left) { return left > 0; }) - waits.begin());
    return Problem{"MW1769", fmt::format("node {} waits for itself, over the nodes that it waits for", m_nodes[first + stuck].id),
        "take one of the dependencies out", Place{file}};
}

Result<Done> TraceSet::finish()
{
    const auto count = static_cast<std::int64_t>(ranks());
    for (std::int64_t rank = 0; rank < count; ++rank)
        m_groups.front().ranks.push_back(rank);
    for (const Group& group : m_groups) {
        for (const std::int64_t rank : group.ranks) {
            if (rank >= count)
                return disagree(fmt::format("the group \"{}\" has rank {}, which has no trace", group.name, rank),
                    "give the traces of all ranks");
        }
    }
    for (const Channel& channel : m_channels) {
        if (channel.from >= count || channel.to >= count)
            return disagree(fmt::format("rank {} sends to rank {}, and there are traces of ranks 0 to {}", channel.from,
                                channel.to, count - 1),
                "give the traces of all ranks");
    }
    if (count == 1) {
        for (TraceNode& node : m_nodes) {
            if (node.kind == TraceNode::Kind::Collective)
                node.kind = TraceNode::Kind::Nothing;
        }
    }
    return Done{};
}

} // namespace meshwright::sim
