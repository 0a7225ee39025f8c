// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/event_queue.h"
#include "sim/network/routed_collective.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace meshwright::sim {

/// Collectives in flight as messages, beside other events of a queue; what `FluidEngine` is for flows.
///
/// A link carries one message after the other, in the order in which they were sent towards it; a message of b bytes over links of
/// w takes b/w and the latency of its hops once (cut-through), and holds each link for b/w, not for the latency. A message takes its
/// place in the queue of every link on its way when it is sent. Devices start the next phase of a collective by themselves when they
/// have received everything of the one before.
///
/// Preconditions: the collectives were routed on the links; of one group of one collective one call is in flight at a time.
class MessageEngine {
public:
    /// Events of the engine have this bit in Event::what.
    static constexpr std::uint32_t kBit = 0x80000000U;

    /// Both must outlive the engine. The queue may hold other events, without kBit.
    MessageEngine(const MachineLinks& links, EventQueue& queue);
    ~MessageEngine();

    /// A collective that may begin; it must outlive the engine. They are numbered from 0.
    void add(const RoutedCollective& collective);

    /// All devices of one group begin at a time that is not before the queue's; `node` and `iteration` are given back when the last of
    /// them is done.
    void begin(std::uint32_t collective, std::uint32_t group, std::uint32_t node, std::uint32_t iteration, Ticks start);

    /// One member of a group that was begun by `expect` is ready.
    void expect(std::uint32_t collective, std::uint32_t group, std::uint32_t node, std::uint32_t iteration);
    void beginMember(std::uint32_t collective, std::uint32_t member, Ticks start);

    /// An event with kBit has come.
    void handle(const Event& event);

    struct Finished {
        std::uint32_t node = 0;
        std::uint32_t iteration = 0;
    };
    /// What ended since this was last emptied.
    std::vector<Finished>& finished();

    std::int64_t messages() const;

private:
    class Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace meshwright::sim
