// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/chakra/folder.h"
#include "sim/chakra/trace.h"
#include "sim/hardware/machine.h"
#include "sim/simulate/network_sites.h"
#include "sim/simulate/simulation.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A step that was read from traces and run on a machine.
struct ReplayedStep {
    Simulation simulation; ///< nothing is known of memory
    std::int64_t ranks = 0;
    std::int64_t nodes = 0; ///< of all ranks
    std::int64_t collectives = 0; ///< each once, however many ranks take part
    std::int64_t messages = 0;
};

/// Runs the traces of a step on a machine, rank r on its device r, collectives and messages through its network as `NetworkSites` has it.
///
/// Computing takes what its node says (`duration_ps`, else `duration_micros`); where that is nothing, what its FLOPs and bytes take on the machine in
/// bf16. Memory nodes likewise; collectives and messages take what the network makes of their sizes, whatever their nodes say. All else takes no time.
/// A message begins when its sender is ready, and what comes before the receiver waits for it does not hold it up.
///
/// What Meshwright wrote comes out as it was simulated, to the rounding of each step of a collective, but for: permutes (see StepTraces), messages
/// whose pairs share links (here they slow each other), schedules in which a stage begins its next step early, groups whose places on a torus axis are
/// not evenly spaced, and a mesh on a part of the machine, whose devices are numbered afresh.
///
/// Problems: those of TraceSet, JoinedStep and NetworkSites::work; MW1720 more ranks than devices, MW1730, MW1783 no traces.
Result<ReplayedStep> replayTraces(const std::vector<ChakraTrace>& traces, const ProcessGroups& groups, const Machine& machine,
    const CostOptions& cost, const NetworkOptions& network);

/// The same from files, one at a time in memory. Problems: also those of `findChakraFolder` and `readChakra`.
Result<ReplayedStep> replayFolder(
    const std::filesystem::path& folder, const Machine& machine, const CostOptions& cost, const NetworkOptions& network);

} // namespace meshwright::sim
