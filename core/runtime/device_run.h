// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/runtime/device_arrays.h"
#include "core/runtime/executor.h"
#include "core/runtime/loaded_instructions.h"

namespace meshwright {

/// How often a collective ran on one device, and with how much payload.
struct Count {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;
};

/// What one device counts and records.
struct alignas(64) DeviceLog {
    std::vector<Count> counts; ///< by counter
    std::vector<Recorded> records; ///< of this run
    std::vector<Recorded> completeRecords; ///< of the last recorded run that was not stopped
};

/// What the devices of a run have in common.
struct RunSite {
    const ScheduledFunction& scheduled;
    const LoadedInstructions& instructions;
    DeviceArrays& arrays;
    RendezvousTable& meeting;
    LoadedFunction::RunOptions options = {};
    double began = 0.0; ///< wall, when all devices could have begun; 0: not known
};

/// Runs a function once on one of its devices. Problems: as `LoadedFunction::run`.
Result<Done> runOnDevice(const RunSite& site, std::int64_t device, DeviceLog& log);

} // namespace meshwright
