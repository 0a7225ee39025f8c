// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/messages.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// How closely the network is looked at. Where nothing contends all three agree, to a tick (a picosecond) for each step.
enum class Fidelity : std::uint8_t {
    Closed, ///< formulas; collectives do not see each other
    Fluid, ///< flows that share links max-min fair
    Message, ///< every message an event, links first come first served
};

/// "closed", "fluid" or "message".
const char* fidelityName(Fidelity fidelity);
std::optional<Fidelity> findFidelity(std::string_view name);

struct NetworkRun {
    std::vector<Ticks> ends; ///< of each collective
    std::int64_t events = 0;
    std::int64_t messages = 0; ///< Message only
    std::int64_t classes = 0; ///< Fluid only: of devices
};

/// When collectives end that start at given times on the same machine.
/// Preconditions: the collectives were routed on `links`; only Fidelity::Message heeds `StartedCollective::ready`.
NetworkRun runCollectives(std::span<const StartedCollective> collectives, const MachineLinks& links, Fidelity fidelity);

} // namespace meshwright::sim
