// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/routed_collective.h"

#include <cstdint>
#include <span>
#include <vector>

namespace meshwright::sim {

/// A collective that all its devices begin at a time.
struct StartedCollective {
    const RoutedCollective* collective = nullptr;
    Ticks start = 0;
    const std::vector<Ticks>* ready = nullptr; ///< when each member of `groups` is ready, after `start`; null: all at once
};

struct MessageRun {
    std::vector<Ticks> ends; ///< of each collective: when the last of its devices has received everything
    std::int64_t messages = 0;
    std::int64_t events = 0;
};

/// Runs collectives message by message.
///
/// A link carries one message after the other, in the order in which they were sent towards it; a message of b bytes over links of
/// w takes b/w and the latency of its hops once (cut-through), and holds each link for b/w, not for the latency. A message takes its
/// place in the queue of every link on its way when it is sent. Devices start the next phase of a collective by themselves when they
/// have received everything of the one before.
///
/// Preconditions: the collectives were routed on `links`.
MessageRun runMessages(std::span<const StartedCollective> collectives, const MachineLinks& links);

} // namespace meshwright::sim
