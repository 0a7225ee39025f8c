// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_memory.h"
#include "sim/report/results.h"

namespace meshwright::sim {

/// How a kind of memory is drawn: no two alike, by colour and hatch.
DrawnMemoryKind drawnMemoryKind(MemoryKind kind);

/// The memory of a device over a simulated step, for `drawMemory`: kinds that last longest at the bottom, those that are never in use left out.
MemoryDrawing memoryPicture(const Simulation& simulation);

/// `Peak 9.10 GiB of 14.4 GiB usable (16.0 GiB − 1.60 GiB reserve): fits, 5.30 GiB free`, or `...: does not fit, 3.20 GiB too much`.
std::string memorySentence(const Simulation& simulation);

} // namespace meshwright::sim
