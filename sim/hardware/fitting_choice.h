// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/machine.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// The choice next to `wanted` that `buildMachine` accepts and that has at least `devices` devices: the chip of the nearest name; the topology or
/// the hosts as they are where they do, else the most compact of so many chips, in as many slices. Fewer devices only where a name means a part of one chip.
/// Nothing when no name is near or the chip has no slice so large. Precondition: devices >= 1.
std::optional<HardwareChoice> fittingChoice(const Catalogue& catalogue, const HardwareChoice& wanted, std::int64_t devices);

/// The most chips that one host has where nobody says: those of an instance or of the fast links; on PCIe the slots of a common host.
std::int64_t largestHost(const Chip& chip);

/// Settings of a study (`path=value`) that make the hardware `to` where it is `from`.
std::vector<std::string> hardwareSettings(const HardwareChoice& from, const HardwareChoice& to);

/// `4x2`; empty without sizes.
std::string topologyText(const std::vector<std::int64_t>& sizes);

} // namespace meshwright::sim
