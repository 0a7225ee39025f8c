// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/chakra/joined_step.h"

#include "core/support/units.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/range/iterator_range.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace meshwright::sim {

namespace {

/// From each event to those that cannot begin before it is over.
using FollowingEvents = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
    boost::no_property, std::uint32_t, std::uint32_t>;

constexpr std::size_t kFamiliesTried = 64; ///< the latest of one shape; where so many overlap, groups are not axes of a mesh

CollectiveKind networkKind(ChakraCollective collective)
{
    switch (collective) {
    case ChakraCollective::AllGather:
        return CollectiveKind::AllGather;
    case ChakraCollective::ReduceScatter:
    case ChakraCollective::ReduceScatterBlock:
        return CollectiveKind::ReduceScatter;
    case ChakraCollective::AllToAll:
        return CollectiveKind::AllToAll;
    case ChakraCollective::Broadcast:
    case ChakraCollective::Reduce: // the same way back
        return CollectiveKind::Broadcast;
    default:
        return CollectiveKind::AllReduce;
    }
}

/// Groups that can be on the machine as groups along the same axes of a mesh are.
bool alike(const std::vector<GroupAxis>& a, const std::vector<GroupAxis>& b)
{
    const auto isScattered
        = [](const std::vector<GroupAxis>& axes) { return !axes.empty() && axes.front().kind == GroupKind::Scattered; };
    return a == b || (isScattered(a) && isScattered(b) && a.front().size == b.front().size);
}

Problem disagree(std::string message, const char* fix, const std::string& file)
{
    return {"MW1768", std::move(message), fix, Place{file}};
}

} // namespace

std::uint32_t JoinedStep::newEvent()
{
    m_events.emplace_back();
    return static_cast<std::uint32_t>(m_events.size() - 1);
}

Result<Done> JoinedStep::join()
{
    m_eventOf.assign(m_traces.size(), kNothing);
    m_messageOf.assign(m_traces.size(), kNothing);
    if (auto joined = joinCollectives(); !joined)
        return joined.error();
    if (auto joined = joinMessages(); !joined)
        return joined.error();
    for (std::uint32_t& event : m_eventOf) {
        if (event == kNothing)
            event = newEvent();
    }
    joinMembers();
    if (auto made = makeFamilies(); !made)
        return made.error();
    if (auto made = makeSites(); !made)
        return made.error();
    return play();
}

Result<Done> JoinedStep::joinCollectives()
{
    m_eventsOfGroup.resize(m_traces.groups().size());
    std::vector<std::uint32_t> firstOf; // of events: the node that was first
    std::vector<std::uint32_t> membersOf;
    std::vector<std::uint32_t> done(m_traces.groups().size(), 0);
    for (std::size_t rank = 0; rank < m_traces.ranks(); ++rank) {
        for (const std::uint32_t node : m_traces.order(rank)) {
            const TraceNode& own = m_traces.node(node);
            if (own.kind != TraceNode::Kind::Collective)
                continue;
            std::vector<std::uint32_t>& events = m_eventsOfGroup[own.channel];
            const std::uint32_t number = done[own.channel]++;
            if (number == events.size()) {
                events.push_back(newEvent());
                firstOf.push_back(node);
                membersOf.push_back(0);
            }
            m_eventOf[node] = events[number];
            ++membersOf[events[number]];
            const TraceNode& first = m_traces.node(firstOf[events[number]]);
            if (first.collective != own.collective || first.bytes != own.bytes)
                return disagree(
                    fmt::format(
                        "collective {} of the group \"{}\" moves {} bytes by kind {} in node {} of rank {}, and {} by kind "
                        "{} in node {} of rank {}",
                        number, m_traces.groups()[own.channel].name, first.bytes, static_cast<int>(first.collective), first.id,
                        first.rank, own.bytes, static_cast<int>(own.collective), own.id, own.rank),
                    "all ranks of a group do the same collectives in the same order", m_traces.file(rank));
        }
        for (const std::uint32_t node : m_traces.order(rank))
            done[m_traces.node(node).kind == TraceNode::Kind::Collective ? m_traces.node(node).channel : 0] = 0;
    }
    m_collectives = static_cast<std::int64_t>(m_events.size());
    for (std::size_t event = 0; event < firstOf.size(); ++event) {
        const TraceNode& first = m_traces.node(firstOf[event]);
        const TraceSet::Group& group = m_traces.groups()[first.channel];
        if (membersOf[event] != group.ranks.size())
            return disagree(fmt::format("{} of the {} ranks of the group \"{}\" take part in node {} of rank {}",
                                membersOf[event], group.ranks.size(), group.name, first.id, first.rank),
                "all ranks of a group do the same collectives in the same order", m_traces.file(first.rank));
    }
    return Done{};
}

Result<Done> JoinedStep::joinMessages()
{
    std::vector<std::vector<std::uint32_t>> sends(m_traces.channels().size());
    std::vector<std::vector<std::uint32_t>> receives(m_traces.channels().size());
    for (std::size_t rank = 0; rank < m_traces.ranks(); ++rank) {
        for (const std::uint32_t node : m_traces.order(rank)) {
            const TraceNode& own = m_traces.node(node);
            if (own.kind == TraceNode::Kind::Send)
                sends[own.channel].push_back(node);
            else if (own.kind == TraceNode::Kind::Receive)
                receives[own.channel].push_back(node);
        }
    }
    m_eventsOfChannel.resize(sends.size());
    for (std::size_t channel = 0; channel < sends.size(); ++channel) {
        const std::size_t both = std::min(sends[channel].size(), receives[channel].size());
        if (sends[channel].size() != receives[channel].size()) {
            const TraceNode& alone = m_traces.node(sends[channel].size() > both ? sends[channel][both] : receives[channel][both]);
            const bool isSend = alone.kind == TraceNode::Kind::Send;
            const TraceSet::Channel& way = m_traces.channels()[channel];
            return disagree(
                fmt::format("node {} of rank {} {} rank {}, which does not {} it (tag {})", alone.id, alone.rank,
                    isSend ? "sends to" : "receives from", isSend ? way.to : way.from, isSend ? "receive" : "send", way.tag),
                "write both ends of each message, with the same tag", m_traces.file(alone.rank));
        }
        for (std::size_t i = 0; i < both; ++i) {
            const TraceNode& from = m_traces.node(sends[channel][i]);
            const TraceNode& to = m_traces.node(receives[channel][i]);
            if (from.bytes != to.bytes)
                return disagree(fmt::format("node {} of rank {} sends {} bytes, and node {} of rank {} receives {}", from.id,
                                    from.rank, from.bytes, to.id, to.rank, to.bytes),
                    "write the same size at both ends", m_traces.file(from.rank));
            const std::uint32_t event = newEvent();
            m_events[event].receiver = receives[channel][i];
            m_eventOf[sends[channel][i]] = event;
            m_messageOf[receives[channel][i]] = event;
            m_eventsOfChannel[channel].push_back(event);
        }
        m_messages += static_cast<std::int64_t>(both);
    }
    return Done{};
}

void JoinedStep::joinMembers()
{
    for (const std::uint32_t event : m_eventOf)
        ++m_events[event].members;
    std::uint32_t first = 0;
    for (Event& event : m_events) {
        event.firstMember = first;
        first += event.members;
        event.members = 0;
    }
    m_members.resize(m_eventOf.size());
    for (std::uint32_t node = 0; node < m_eventOf.size(); ++node) {
        Event& event = m_events[m_eventOf[node]];
        m_members[event.firstMember + event.members++] = node;
    }
}

/// The first of the families that it fits in; a new one otherwise.
std::uint32_t JoinedStep::familyOf(Families& families, Family alone)
{
    const std::vector<std::uint32_t>& members = alone.groups->members;
    std::vector<std::int64_t> shape = alone.way;
    shape.push_back(alone.groups->size);
    std::vector<std::uint32_t>& known = families.alike[shape];
    for (std::size_t i = known.size() - std::min(known.size(), kFamiliesTried); i < known.size(); ++i) {
        Family& family = families.all[known[i]];
        const bool fits = alike(family.axes, alone.axes)
            && std::ranges::none_of(members, [&](std::uint32_t device) { return family.taken[device]; });
        if (!fits)
            continue;
        for (const std::uint32_t device : members)
            family.taken[device] = true;
        family.groups->members.insert(family.groups->members.end(), members.begin(), members.end());
        return known[i];
    }
    alone.taken.assign(m_traces.ranks(), false);
    for (const std::uint32_t device : members)
        alone.taken[device] = true;
    known.push_back(static_cast<std::uint32_t>(families.all.size()));
    families.all.push_back(std::move(alone));
    return known.back();
}

Result<Done> JoinedStep::makeFamilies()
{
    for (std::size_t number = 0; number < m_traces.groups().size(); ++number) {
        m_familyOfGroup.push_back(kNothing);
        if (m_eventsOfGroup[number].empty())
            continue;
        const std::vector<std::int64_t>& ranks = m_traces.groups()[number].ranks;
        Family alone;
        alone.groups = std::make_shared<DeviceGroups>();
        alone.groups->size = static_cast<std::uint32_t>(ranks.size());
        for (const std::int64_t rank : ranks)
            alone.groups->members.push_back(static_cast<std::uint32_t>(rank));
        alone.axes = m_placement.groupAxesOfDevices({ranks});
        m_familyOfGroup.back() = familyOf(m_groupFamilies, std::move(alone));
        if (m_groupFamilies.all.size() > kMostFamilies)
            return Problem{"MW1767", fmt::format("more than {} groups overlap each other", kMostFamilies),
                "give ranks that do the same collectives one group"};
    }
    const Topology& topology = m_placement.topology();
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> familyOfPair; // whatever the tag
    for (const TraceSet::Channel& channel : m_traces.channels()) {
        const auto [known, isNew] = familyOfPair.try_emplace({channel.from, channel.to}, 0);
        if (isNew) {
            Family alone;
            alone.groups = std::make_shared<DeviceGroups>();
            alone.groups->size = 2;
            alone.groups->members = {static_cast<std::uint32_t>(channel.from), static_cast<std::uint32_t>(channel.to)};
            for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
                const std::int64_t length = topology.axes()[axis].length;
                const std::int64_t ahead = topology.coordinate(channel.to, axis) - topology.coordinate(channel.from, axis);
                const bool wraps = topology.axes()[axis].wraps;
                const bool isNear = topology.axes()[axis].kind == AxisKind::Torus;
                alone.way.push_back(!isNear ? (ahead != 0 ? 1 : 0) : wraps ? (ahead + length) % length : ahead);
            }
            known->second = familyOf(m_pairFamilies, std::move(alone));
        }
        m_familyOfChannel.push_back(known->second);
    }
    return Done{};
}

std::string JoinedStep::textOf(const DeviceGroups& groups) const
{
    constexpr std::uint32_t kShown = 4;
    if (groups.size == m_traces.ranks())
        return "all ranks";
    const auto first = groups.members.begin();
    return fmt::format("{} as {}{}", groups.size, fmt::join(first, first + std::min(groups.size, kShown), ","),
        groups.size > kShown ? ",.." : "");
}

Result<Done> JoinedStep::makeSites()
{
    m_firstSite = static_cast<std::uint32_t>(m_sites.sites());
    std::map<std::tuple<bool, std::uint32_t, ChakraCollective, std::int64_t>, std::uint32_t> known;
    double members = 0.0;
    double seconds = m_traces.seconds();
    for (std::uint32_t number = 0; number < m_events.size(); ++number) {
        Event& event = m_events[number];
        const TraceNode& node = m_traces.node(m_members[event.firstMember]);
        const bool isMessage = node.kind == TraceNode::Kind::Send;
        if (!isMessage && node.kind != TraceNode::Kind::Collective) {
            event.ticks = node.ticks;
            continue;
        }
        const std::uint32_t family = isMessage ? m_familyOfChannel[node.channel] : m_familyOfGroup[node.channel];
        const auto [site, isNew] = known.try_emplace({isMessage, family, node.collective, node.bytes}, 0);
        if (isNew) {
            const std::shared_ptr<const DeviceGroups> groups = (isMessage ? m_pairFamilies : m_groupFamilies).all[family].groups;
            members += static_cast<double>(groups->members.size());
            if (known.size() > kMostSites || members > kMostMembers)
                return Problem{"MW1767",
                    fmt::format("the step has more than {} different collectives and pairs of messages", known.size() - 1),
                    "give the traces of fewer steps", Place{m_traces.file(node.rank)}};
            const std::int64_t parts = node.collective == ChakraCollective::AllGather ? groups->size : 1;
            site->second = isMessage ? m_sites.addMessages(groups, node.bytes)
                                     : m_sites.add(networkKind(node.collective), groups, node.bytes * parts);
            m_textOfSite.push_back(textOf(*groups));
        }
        event.site = site->second;
        event.ticks = ticksOf(m_sites.estimate(event.site).seconds);
        seconds += secondsOf(event.ticks);
        if (seconds > TraceSet::kMostSeconds)
            return Problem{"MW1784",
                fmt::format("all nodes together take more than {:.0f} days", TraceSet::kMostSeconds / kSecondsPerDay),
                "write sizes in bytes, durations in microseconds", Place{m_traces.file(node.rank)}};
    }
    return Done{};
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> JoinedStep::edges() const
{
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::uint32_t node = 0; node < m_eventOf.size(); ++node) {
        for (const std::uint32_t other : m_traces.dependencies(node))
            edges.emplace_back(m_eventOf[other], m_eventOf[node]);
        if (m_messageOf[node] != kNothing)
            edges.emplace_back(m_messageOf[node], m_eventOf[node]);
    }
    for (const auto* chains : {&m_eventsOfGroup, &m_eventsOfChannel}) {
        for (const std::vector<std::uint32_t>& chain : *chains) {
            for (std::size_t i = 1; i < chain.size(); ++i)
                edges.emplace_back(chain[i - 1], chain[i]);
        }
    }
    return edges;
}

/// Gives an event its place in the turns of its ranks.
void JoinedStep::take(std::uint32_t number, std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>& meetings)
{
    Event& event = m_events[number];
    const std::uint32_t first = m_members[event.firstMember];
    if (event.site != kNothing)
        event.meeting = meetings[{event.site, m_traces.node(first).rank}]++; // a rank is in one group of a site
    for (std::uint32_t i = 0; i < event.members; ++i) {
        const std::uint32_t node = m_members[event.firstMember + i];
        m_turns[m_traces.node(node).rank].push_back({node, false});
    }
    if (event.receiver != kNothing)
        m_turns[m_traces.node(event.receiver).rank].push_back({event.receiver, true});
}

Result<Done> JoinedStep::play()
{
    const auto needs = edges();
    std::vector<std::uint32_t> waits(m_events.size(), 0);
    for (const auto& edge : needs)
        ++waits[edge.second];
    const FollowingEvents graph(
        boost::edges_are_unsorted_multi_pass, needs.begin(), needs.end(), static_cast<std::uint32_t>(m_events.size()));

    using Ready = std::tuple<Ticks, std::uint32_t, std::uint32_t>; // when, place in the file, event
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    std::vector<Ticks> readyAt(m_events.size(), 0);
    const auto push = [&](std::uint32_t event) {
        const std::uint32_t node = m_members[m_events[event].firstMember];
        ready.push({readyAt[event], node - m_traces.firstNode(m_traces.node(node).rank), event});
    };
    for (std::uint32_t event = 0; event < m_events.size(); ++event) {
        if (waits[event] == 0)
            push(event);
    }
    m_turns.resize(m_traces.ranks());
    std::vector<Ticks> freeAt(2 * m_traces.ranks(), 0); // of each rank: its device, its host
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> meetings;
    std::size_t taken = 0;
    for (; !ready.empty(); ++taken) {
        const std::uint32_t event = std::get<2>(ready.top());
        ready.pop();
        take(event, meetings);
        Ticks end = std::min(kLongestTicks, readyAt[event] + m_events[event].ticks);
        const TraceNode& node = m_traces.node(m_members[m_events[event].firstMember]);
        if (node.kind == TraceNode::Kind::Compute || node.kind == TraceNode::Kind::Host) {
            Ticks& free = freeAt[2 * node.rank + (node.kind == TraceNode::Kind::Host ? 1 : 0)];
            end = free = std::min(kLongestTicks, std::max(free, readyAt[event]) + m_events[event].ticks);
        }
        for (const std::uint32_t follower : boost::make_iterator_range(boost::adjacent_vertices(event, graph))) {
            readyAt[follower] = std::max(readyAt[follower], end);
            if (--waits[follower] == 0)
                push(follower);
        }
    }
    if (taken == m_events.size())
        return Done{};
    const auto stuck = std::ranges::find_if(waits, [](std::uint32_t left) { return left > 0; }) - waits.begin();
    const TraceNode& node = m_traces.node(m_members[m_events[static_cast<std::size_t>(stuck)].firstMember]);
    return Problem{"MW1769", fmt::format("ranks wait for each other: node {} of rank {} can never begin", node.id, node.rank),
        "let all ranks do their collectives in one order", Place{m_traces.file(node.rank)}};
}

} // namespace meshwright::sim
