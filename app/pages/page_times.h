// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/pages/page_process.h"

namespace meshwright::pages {

/// What the programs of each cell would take on the machine, one after the other, each as the simulator predicts it: `simulatedSeconds` of the cells
/// that ran. A cell with a program that cannot be simulated gets none, and a note that says why. Equal programs are simulated once.
void addSimulatedTimes(PageRun& run, const sim::Machine& machine);

} // namespace meshwright::pages
