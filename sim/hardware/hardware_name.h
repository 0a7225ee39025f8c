// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/machine.h"

namespace meshwright::sim {

/// The choice that a name such as `v5e-64` or `h100x64` in `choice.chip` means: the chip, and the most compact slice (or the hosts) of that many
/// chips. As Google names them, `v4-16` counts cores, two a chip. A name of the catalogue is left as it is.
/// Problems: MW1701 the name is no chip's, MW1914 the number of chips is none, is given twice (by name and by topology or hosts), or no slice has it.
Result<HardwareChoice> namedChoice(const Catalogue& catalogue, const HardwareChoice& choice);

} // namespace meshwright::sim
