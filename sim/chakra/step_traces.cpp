// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/chakra/step_traces.h"

#include "core/support/version.h"
#include "sim/chakra/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace meshwright::sim {

namespace {

ChakraCollective collectiveOf(OpKind kind)
{
    switch (kind) {
    case OpKind::AllGather:
        return ChakraCollective::AllGather;
    case OpKind::ReduceScatter:
        return ChakraCollective::ReduceScatter;
    case OpKind::AllToAll:
        return ChakraCollective::AllToAll;
    default:
        return ChakraCollective::AllReduce;
    }
}

std::int64_t wholeNumber(double value)
{
    constexpr double kMost = 9.0e18; // below 2^63
    return static_cast<std::int64_t>(std::round(std::clamp(value, 0.0, kMost)));
}

} // namespace

Result<StepTraces> StepTraces::create(const StepGraph& graph)
{
    StepTraces traces;
    traces.m_devices = graph.devices;
    traces.m_stageOf = graph.stageOf;
    traces.m_speed = graph.speed;
    for (const StepGraph::Use& use : graph.uses)
        traces.m_splitOfUse.push_back(traces.splitOf(use.groups));
    for (const std::vector<StepGraph::Op>& ops : graph.stages) {
        std::vector<std::vector<std::uint64_t>> nodesOf;
        std::vector<Node>& nodes = traces.m_stages.emplace_back();
        for (const StepGraph::Op& op : ops)
            traces.addOp(graph, op, nodesOf, nodes);
    }
    for (const std::uint32_t stage : traces.m_stageOf)
        traces.m_nodes += graph.tooLong ? 0 : static_cast<std::int64_t>(traces.m_stages[stage].size());
    if (graph.tooLong || traces.m_nodes > static_cast<std::int64_t>(kMostChakraNodes))
        return Problem{"MW1767",
            graph.tooLong
                ? fmt::format("one device does more than {} operations in this step", StepGraph::kMostOps)
                : fmt::format("{} ranks have {} nodes in all, more than {}", traces.ranks(), traces.m_nodes, kMostChakraNodes),
            "write the step of a smaller mesh, of fewer layers or microbatches"};
    return traces;
}

/// The groups as ranks; made once for each way of splitting.
std::uint32_t StepTraces::splitOf(const DeviceGroups& devices)
{
    Split split;
    split.groups.size = devices.size;
    split.placeOf.assign(m_devices.size(), 0);
    for (const std::uint32_t device : devices.members) {
        const auto rank = static_cast<std::uint32_t>(std::ranges::lower_bound(m_devices, device) - m_devices.begin());
        split.placeOf[rank] = static_cast<std::uint32_t>(split.groups.members.size());
        split.groups.members.push_back(rank);
    }
    const auto same = std::ranges::find_if(m_splits, [&](const Split& other) {
        return other.groups.size == split.groups.size && other.groups.members == split.groups.members;
    });
    if (same != m_splits.end())
        return static_cast<std::uint32_t>(same - m_splits.begin());
    m_splits.push_back(std::move(split));
    return static_cast<std::uint32_t>(m_splits.size() - 1);
}

/// Names count from 1: to ASTRA-sim "0", and no name, are all ranks in their order.
void StepTraces::nameGroups(Split& split)
{
    if (!split.names.empty())
        return;
    std::vector<std::uint32_t> all(ranks());
    std::iota(all.begin(), all.end(), 0U);
    for (std::size_t group = 0; group < split.groups.count(); ++group)
        split.names.push_back(split.groups.members == all && split.groups.count() == 1 ? "" : std::to_string(++m_groups));
}

void StepTraces::addOp(
    const StepGraph& graph, const StepGraph::Op& op, std::vector<std::vector<std::uint64_t>>& nodesOf, std::vector<Node>& nodes)
{
    using Kind = StepGraph::Op::Kind;
    std::vector<std::uint64_t>& made = nodesOf.emplace_back();
    ChakraNode node;
    node.name = op.name;
    for (const std::uint32_t other : op.after)
        node.dataDependencies.insert(node.dataDependencies.end(), nodesOf[other].begin(), nodesOf[other].end());
    node.attributes.push_back({"is_cpu_op", op.isHost});
    const auto add = [&](ChakraNodeType type, Node::Own own, std::vector<ChakraAttribute> more) {
        ChakraNode one = node;
        one.id = nodes.size();
        one.type = type;
        one.attributes.insert(one.attributes.end(), more.begin(), more.end());
        made.push_back(one.id);
        nodes.push_back({chakraNodeBytes(one), own, op.ticks, op.kind == Kind::Compute ? 0 : m_splitOfUse[op.use]});
    };
    const StepGraph::Use* use = op.kind == Kind::Compute ? nullptr : &graph.uses[op.use];
    if (use == nullptr || use->groups.size <= 1) {
        add(ChakraNodeType::Compute, Node::Own::Time,
            {{"num_ops", wholeNumber(op.flops)},
                {"tensor_size", static_cast<std::uint64_t>(std::max<std::int64_t>(0, op.bytes))}});
        return;
    }
    const bool isPermute = op.kind == Kind::Collective && use->kind == OpKind::CollectivePermute;
    if (op.kind == Kind::Collective && !isPermute) {
        nameGroups(m_splits[m_splitOfUse[op.use]]);
        const std::int64_t parts = use->kind == OpKind::AllGather ? use->groups.size : 1;
        add(ChakraNodeType::Collective, Node::Own::Group,
            {{"comm_type", static_cast<std::int64_t>(collectiveOf(use->kind))}, {"comm_size", use->payloadBytes / parts}});
        return;
    }
    const auto next = static_cast<std::int32_t>(m_tags.size());
    const std::vector<ChakraAttribute> message{
        {"comm_size", use->payloadBytes}, {"comm_tag", m_tags.try_emplace({op.use, op.meeting}, next).first->second}};
    if (op.kind != Kind::Receive)
        add(ChakraNodeType::Send, Node::Own::To, message);
    if (op.kind != Kind::Send)
        add(ChakraNodeType::Receive, Node::Own::From, message);
}

/// The other end of a rank's message.
std::int64_t StepTraces::peerOf(const Node& node, std::size_t rank) const
{
    const Split& split = m_splits[node.split];
    const std::uint32_t size = split.groups.size;
    const std::uint32_t first = split.groupOf(rank) * size;
    const std::uint32_t place = split.placeOf[rank] - first;
    const std::uint32_t away = node.own == Node::Own::To ? size / 2 : size - size / 2;
    return split.groups.members[first + (place + away) % size];
}

std::string StepTraces::bytesOf(std::size_t rank) const
{
    ChakraTrace head;
    head.attributes = {{"generator", std::string("meshwright ") + kVersion}};
    std::string file = writeChakra(head);
    std::string message;
    for (const Node& node : m_stages[m_stageOf[rank]]) {
        message = node.bytes;
        switch (node.own) {
        case Node::Own::Nothing:
            break;
        case Node::Own::Time: {
            const auto ticks = static_cast<std::int64_t>(std::llround(static_cast<double>(node.ticks) / m_speed[rank]));
            appendChakraDuration(message, ticks);
            break;
        }
        case Node::Own::Group:
            if (const Split& split = m_splits[node.split]; !split.names[split.groupOf(rank)].empty())
                message += chakraAttributeField({"pg_name", split.names[split.groupOf(rank)]});
            break;
        case Node::Own::To:
        case Node::Own::From: {
            const auto own = static_cast<std::int32_t>(rank);
            const auto peer = static_cast<std::int32_t>(peerOf(node, rank));
            message += chakraAttributeField({"comm_src", node.own == Node::Own::To ? own : peer});
            message += chakraAttributeField({"comm_dst", node.own == Node::Own::To ? peer : own});
            break;
        }
        }
        appendChakraMessage(file, message);
    }
    return file;
}

std::string StepTraces::groupsJson() const
{
    std::vector<std::string> lines;
    for (const Split& split : m_splits) {
        for (std::size_t group = 0; group < split.names.size(); ++group) {
            if (split.names[group].empty())
                continue;
            const auto first = split.groups.members.begin() + static_cast<std::ptrdiff_t>(group * split.groups.size);
            lines.push_back(fmt::format("  \"{}\": [{}]", split.names[group], fmt::join(first, first + split.groups.size, ", ")));
        }
    }
    return lines.empty() ? "{}\n" : fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
}

} // namespace meshwright::sim
