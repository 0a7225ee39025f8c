// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/event_queue.h"
#include "sim/network/max_min.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// One line of one lane, as a flow: it waits for its latency, then moves its volume at the rate that it gets.
struct FlowTemplate {
    Ticks latency = 0;
    double volumeBytes = 0.0;
    double limitBytesPerSecond = 0.0; ///< however idle the links are
    std::uint32_t firstUse = 0; ///< into FluidSet::uses
    std::uint32_t useCount = 0;
};

/// Everything that can flow, and over what.
struct FluidSet {
    std::vector<double> capacity; ///< of each link, bytes per second
    std::vector<LinkUse> uses;
    std::vector<FlowTemplate> flows;
    /// For each collective its phases, each the flows from the first to before the last; they run together, phases one after another.
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> collectives;
};

/// Collectives in flight as flows that share links max-min fair.
class FluidEngine {
public:
    /// Events of the engine have this bit in Event::what.
    static constexpr std::uint32_t kBit = 0x80000000U;

    /// Both must outlive the engine. The queue may hold other events, without kBit.
    FluidEngine(const FluidSet& set, EventQueue& queue);

    /// Starts one of the set's collectives; `node` and `iteration` are given back when it is over.
    void begin(std::uint32_t collective, std::uint32_t node, std::uint32_t iteration, Ticks now);

    /// An event with kBit has come.
    void handle(const Event& event);

    /// To be called when all events of this time have been handled. It may push others, of this time too.
    void settle(Ticks now);

    struct Finished {
        std::uint32_t node = 0;
        std::uint32_t iteration = 0;
    };
    /// What ended since this was last emptied.
    std::vector<Finished>& finished() { return m_finished; }

    /// Appends all that is in flight, relative to a time and an iteration: equal numbers continue equally.
    void describe(Ticks now, std::uint32_t iteration, std::vector<std::int64_t>& out) const;

    /// Moves all that is in flight, but for the queue's events.
    void shift(Ticks by, std::uint32_t iterations);

private:
    static constexpr std::uint32_t kLatencyBit = 0x40000000U;

    struct Instance {
        std::uint32_t collective = 0;
        std::uint32_t phase = 0;
        std::uint32_t flowsLeft = 0; ///< 0: free
        std::uint32_t node = 0;
        std::uint32_t iteration = 0;
    };
    struct Flow {
        std::uint32_t instance = 0;
        std::uint32_t index = 0; ///< into FluidSet::flows
        std::uint32_t generation = 0; ///< of the event that ends it; others are stale
        std::uint32_t inNetwork = 0;
        double remaining = 0.0;
        double rate = 0.0;
        Ticks since = 0; ///< the rate
        Ticks due = 0; ///< of its event
        std::uint8_t state = 0; ///< 0 free, 1 in its latency, 2 moving
    };

    void beginPhase(std::uint32_t instance, Ticks now);
    void endFlow(std::uint32_t flow, Ticks now);

    const FluidSet& m_set;
    EventQueue& m_queue;
    MaxMinNetwork m_network;
    std::vector<Instance> m_instances;
    std::vector<std::uint32_t> m_freeInstances;
    std::vector<Flow> m_flows;
    std::vector<std::uint32_t> m_freeFlows;
    std::vector<std::uint32_t> m_flowOf; ///< for each flow of the network
    std::vector<Finished> m_finished;
    bool m_dirty = false;
};

} // namespace meshwright::sim
