// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/machine.h"

#include <cstdint>
#include <optional>
#include <string>

namespace meshwright::sim {

/// A machine's name as people write it, in the catalogue's order: `512xH100` and `H100 x 512` are `H100x512`, `2 slices of v5e-256` are
/// `v5e-256x2`, `4 x GB200 NVL72` is `GB200 NVL72x4`, `8 nodes of 8 H100`, `8x8 H100`, `64 H100` and `H100:64` are `H100x64`, `1k H100` is
/// `H100x1024`. Other names are left as they are.
std::string catalogueOrder(const std::string& name);

/// What the name of a machine says.
struct MachineName {
    ChipMatch match;
    std::string chip; ///< the part of the name that names the chip or the instance, as it is written
    std::optional<std::int64_t> chips = {}; ///< of one slice, or of all hosts, >= 1; nothing: the name does not say
    std::int64_t slices = 1; ///< >= 1
    bool countsCores = false; ///< the name counts cores, two a chip; `chips` does not
};

/// Reads `h100`, `h100x64`, `64 x A100-40GB`, `v5e-64`, `v5e-256x2` (slices) and `p5.48xlarge x 64` (instances; alone it is one). As Google names
/// them, `v4-16` counts cores, two a chip.
/// Problems: MW1701 the name is no chip's or instance's, MW1914 its number is none, or an odd number of cores.
Result<MachineName> readMachineName(const Catalogue& catalogue, const std::string& name);

/// The choice that a name in `choice.chip` means (`readMachineName`): the chip, and the most compact slice (or the hosts) of that many chips. A chip's
/// name alone is left as it is; an instance's alone is one instance, unless the choice says how many hosts.
/// Problems: those of `readMachineName`; MW1914 the number of chips is given twice (by name and by topology or hosts), no slice has it, or it is of
/// several slices.
Result<HardwareChoice> namedChoice(const Catalogue& catalogue, const HardwareChoice& choice);

/// The machine of a name (`readMachineName`) in the catalogue that comes with Meshwright. Problems: those of `Catalogue::load` and `buildMachine`.
Result<Machine> machineNamed(const std::string& name);

} // namespace meshwright::sim
