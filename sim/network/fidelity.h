// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

} // namespace meshwright::sim
