// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/fluid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <span>

namespace meshwright::sim {

FluidEngine::FluidEngine(const FluidSet& set, EventQueue& queue)
    : m_set(set)
    , m_queue(queue)
    , m_network(set.capacity)
{
}

void FluidEngine::begin(std::uint32_t collective, std::uint32_t node, std::uint32_t iteration, Ticks now)
{
    std::uint32_t id = 0;
    if (m_freeInstances.empty()) {
        id = static_cast<std::uint32_t>(m_instances.size());
        m_instances.emplace_back();
    } else {
        id = m_freeInstances.back();
        m_freeInstances.pop_back();
    }
    m_instances[id] = {collective, 0, 0, node, iteration};
    beginPhase(id, now);
}

void FluidEngine::beginPhase(std::uint32_t id, Ticks now)
{
    Instance& instance = m_instances[id];
    const auto& phases = m_set.collectives[instance.collective];
    while (instance.phase < phases.size() && phases[instance.phase].first == phases[instance.phase].second)
        ++instance.phase;
    if (instance.phase == phases.size()) {
        m_finished.push_back({instance.node, instance.iteration});
        m_freeInstances.push_back(id);
        return;
    }
    const auto [first, last] = phases[instance.phase];
    instance.flowsLeft = last - first;
    for (std::uint32_t index = first; index < last; ++index) {
        std::uint32_t slot = 0;
        if (m_freeFlows.empty()) {
            slot = static_cast<std::uint32_t>(m_flows.size());
            m_flows.emplace_back();
        } else {
            slot = m_freeFlows.back();
            m_freeFlows.pop_back();
        }
        Flow& flow = m_flows[slot];
        flow.instance = id;
        flow.index = index;
        ++flow.generation;
        flow.remaining = m_set.flows[index].volumeBytes;
        flow.rate = 0.0;
        flow.since = now;
        flow.due = now + m_set.flows[index].latency;
        flow.state = 1;
        m_queue.push(flow.due, kBit | kLatencyBit | slot, flow.generation);
    }
}

void FluidEngine::handle(const Event& event)
{
    const std::uint32_t slot = event.what & ~(kBit | kLatencyBit);
    Flow& flow = m_flows[slot];
    if (event.which != flow.generation)
        return; // its rate has changed since
    if (flow.state == 2) {
        m_network.stop(flow.inNetwork);
        m_dirty = true;
        endFlow(slot, event.time);
        return;
    }
    if (flow.remaining <= 0.0) {
        endFlow(slot, event.time);
        return;
    }
    const FlowTemplate& shape = m_set.flows[flow.index];
    flow.state = 2;
    flow.since = event.time;
    flow.inNetwork = m_network.start(std::span(m_set.uses).subspan(shape.firstUse, shape.useCount), shape.limitBytesPerSecond);
    if (m_flowOf.size() <= flow.inNetwork)
        m_flowOf.resize(flow.inNetwork + 1);
    m_flowOf[flow.inNetwork] = slot;
    m_dirty = true;
}

void FluidEngine::endFlow(std::uint32_t slot, Ticks now)
{
    Flow& flow = m_flows[slot];
    flow.state = 0;
    ++flow.generation;
    m_freeFlows.push_back(slot);
    Instance& instance = m_instances[flow.instance];
    if (--instance.flowsLeft > 0)
        return;
    ++instance.phase;
    beginPhase(flow.instance, now);
}

void FluidEngine::settle(Ticks now)
{
    if (!m_dirty)
        return;
    m_dirty = false;
    m_network.settle();
    for (const std::uint32_t changed : m_network.changed()) {
        Flow& flow = m_flows[m_flowOf[changed]];
        flow.remaining = std::max(0.0, flow.remaining - flow.rate * secondsOf(now - flow.since));
        flow.since = now;
        flow.rate = m_network.rate(changed);
        assert(flow.rate > 0.0);
        flow.due = now + ticksOf(flow.remaining / flow.rate);
        ++flow.generation;
        m_queue.push(flow.due, kBit | m_flowOf[changed], flow.generation);
    }
}

void FluidEngine::describe(Ticks now, std::uint32_t iteration, std::vector<std::int64_t>& out) const
{
    using Row = std::array<std::int64_t, 9>;
    std::vector<Row> rows;
    for (const Flow& flow : m_flows) {
        if (flow.state == 0)
            continue;
        const Instance& instance = m_instances[flow.instance];
        rows.push_back({instance.node, static_cast<std::int64_t>(instance.iteration) - iteration, instance.phase, flow.index,
            flow.state, std::bit_cast<std::int64_t>(flow.remaining), std::bit_cast<std::int64_t>(flow.rate), flow.since - now,
            flow.due - now});
    }
    std::ranges::sort(rows);
    out.push_back(static_cast<std::int64_t>(rows.size()));
    for (const Row& row : rows)
        out.insert(out.end(), row.begin(), row.end());
}

void FluidEngine::shift(Ticks by, std::uint32_t iterations)
{
    for (Flow& flow : m_flows) {
        flow.since += by;
        flow.due += by;
    }
    for (Instance& instance : m_instances)
        instance.iteration += iterations;
}

} // namespace meshwright::sim
