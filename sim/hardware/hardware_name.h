// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/machine.h"

#include <string>

namespace meshwright::sim {

/// A machine's name as people write it, in the catalogue's order: `512xH100` and `H100 x 512` are `H100x512`, `2 slices of v5e-256` are
/// `v5e-256x2`. Other names are left as they are.
std::string catalogueOrder(const std::string& name);

/// The choice that a name such as `v5e-64` or `h100x64` in `choice.chip` means: the chip, and the most compact slice (or the hosts) of that many
/// chips; `512xH100` is taken too (`catalogueOrder`). As Google names them, `v4-16` counts cores, two a chip. A name of the catalogue is left as it is.
/// Problems: MW1701 the name is no chip's, MW1914 the number of chips is none, is given twice (by name and by topology or hosts), or no slice has it.
Result<HardwareChoice> namedChoice(const Catalogue& catalogue, const HardwareChoice& choice);

} // namespace meshwright::sim
