// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/max_min.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace meshwright::sim {

namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

} // namespace

MaxMinNetwork::MaxMinNetwork(std::vector<double> capacity)
{
    m_links.reserve(capacity.size());
    for (const double bytesPerSecond : capacity) {
        Link link;
        link.capacity = bytesPerSecond;
        link.firstNode = kNone;
        m_links.push_back(link);
    }
}

void MaxMinNetwork::touch(std::uint32_t link)
{
    if (m_links[link].touched)
        return;
    m_links[link].touched = true;
    m_touched.push_back(link);
}

std::uint32_t MaxMinNetwork::start(std::span<const LinkUse> uses, double limit)
{
    assert(limit > 0.0);
    std::uint32_t id = 0;
    if (m_freeFlows.empty()) {
        id = static_cast<std::uint32_t>(m_flows.size());
        m_flows.emplace_back();
    } else {
        id = m_freeFlows.back();
        m_freeFlows.pop_back();
        m_flows[id] = {};
    }
    Flow& flow = m_flows[id];
    flow.limit = limit;
    flow.firstNode = kNone;
    if (uses.empty())
        m_lonely.push_back(id);
    for (const LinkUse& use : uses) {
        assert(use.amount > 0 && m_links[use.link].capacity > 0.0);
        std::uint32_t place = 0;
        if (m_freeNodes.empty()) {
            place = static_cast<std::uint32_t>(m_nodes.size());
            m_nodes.emplace_back();
        } else {
            place = m_freeNodes.back();
            m_freeNodes.pop_back();
        }
        Link& link = m_links[use.link];
        m_nodes[place] = {id, use.link, flow.firstNode, link.firstNode, kNone, use.amount};
        if (link.firstNode != kNone)
            m_nodes[link.firstNode].previousOnLink = place;
        link.firstNode = place;
        flow.firstNode = place;
        touch(use.link);
    }
    return id;
}

void MaxMinNetwork::stop(std::uint32_t flow)
{
    for (std::uint32_t place = m_flows[flow].firstNode; place != kNone;) {
        const Node& node = m_nodes[place];
        const std::uint32_t next = node.nextOfFlow;
        if (node.previousOnLink == kNone)
            m_links[node.link].firstNode = node.nextOnLink;
        else
            m_nodes[node.previousOnLink].nextOnLink = node.nextOnLink;
        if (node.nextOnLink != kNone)
            m_nodes[node.nextOnLink].previousOnLink = node.previousOnLink;
        touch(node.link);
        m_freeNodes.push_back(place);
        place = next;
    }
    m_freeFlows.push_back(flow);
}

/// The links and flows that are joined to a link.
void MaxMinNetwork::collect(std::uint32_t from)
{
    m_componentLinks.assign(1, from);
    m_componentFlows.clear();
    m_links[from].seen = m_fill;
    for (std::size_t i = 0; i < m_componentLinks.size(); ++i) {
        Link& link = m_links[m_componentLinks[i]];
        link.left = link.capacity;
        link.growing = 0;
        link.stopped = 0;
        for (std::uint32_t place = link.firstNode; place != kNone; place = m_nodes[place].nextOnLink) {
            link.growing += m_nodes[place].amount;
            Flow& flow = m_flows[m_nodes[place].flow];
            if (flow.seen == m_fill)
                continue;
            flow.seen = m_fill;
            m_componentFlows.push_back(m_nodes[place].flow);
            for (std::uint32_t own = flow.firstNode; own != kNone; own = m_nodes[own].nextOfFlow) {
                Link& other = m_links[m_nodes[own].link];
                if (other.seen != m_fill) {
                    other.seen = m_fill;
                    m_componentLinks.push_back(m_nodes[own].link);
                }
            }
        }
    }
}

void MaxMinNetwork::freeze(std::uint32_t id, double level)
{
    Flow& flow = m_flows[id];
    flow.frozen = true;
    flow.newRate = level;
    for (std::uint32_t place = flow.firstNode; place != kNone; place = m_nodes[place].nextOfFlow)
        m_links[m_nodes[place].link].stopped += m_nodes[place].amount;
}

/// Progressive filling of the component at hand. What a link has left is reduced once a level, by whole amounts.
void MaxMinNetwork::fill()
{
    m_filled += static_cast<std::int64_t>(m_componentFlows.size());
    m_growingFlows = m_componentFlows;
    for (const std::uint32_t id : m_componentFlows)
        m_flows[id].frozen = false;
    const auto levelOf = [](const Link& link) { return link.left * kWholeLink / static_cast<double>(link.growing); };
    while (!m_growingFlows.empty()) {
        double level = std::numeric_limits<double>::infinity();
        for (const std::uint32_t id : m_componentLinks) {
            if (m_links[id].growing > 0)
                level = std::min(level, levelOf(m_links[id]));
        }
        for (const std::uint32_t id : m_growingFlows)
            level = std::min(level, m_flows[id].limit);
        for (const std::uint32_t id : m_growingFlows) {
            if (m_flows[id].limit == level)
                freeze(id, level);
        }
        for (const std::uint32_t id : m_componentLinks) {
            const Link& link = m_links[id];
            if (link.growing == 0 || levelOf(link) != level)
                continue;
            for (std::uint32_t place = link.firstNode; place != kNone; place = m_nodes[place].nextOnLink) {
                if (!m_flows[m_nodes[place].flow].frozen)
                    freeze(m_nodes[place].flow, level);
            }
        }
        for (const std::uint32_t id : m_componentLinks) {
            Link& link = m_links[id];
            if (link.stopped == 0)
                continue;
            link.left = std::max(0.0, link.left - level * (static_cast<double>(link.stopped) / kWholeLink));
            link.growing -= link.stopped;
            link.stopped = 0;
        }
        std::erase_if(m_growingFlows, [&](std::uint32_t id) { return m_flows[id].frozen; });
    }
    for (const std::uint32_t id : m_componentFlows) {
        Flow& flow = m_flows[id];
        if (flow.newRate != flow.rate) {
            flow.rate = flow.newRate;
            m_changed.push_back(id);
        }
    }
}

void MaxMinNetwork::settle()
{
    m_changed.clear();
    ++m_fill;
    for (const std::uint32_t link : m_touched) {
        m_links[link].touched = false;
        if (m_links[link].seen == m_fill || m_links[link].firstNode == kNone)
            continue;
        collect(link);
        fill();
    }
    m_touched.clear();
    for (const std::uint32_t flow : m_lonely) {
        m_flows[flow].rate = m_flows[flow].limit;
        m_changed.push_back(flow);
    }
    m_lonely.clear();
}

} // namespace meshwright::sim
