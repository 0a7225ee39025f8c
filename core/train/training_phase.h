// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/program/program.h"
#include "core/schedule/schedule.h"

#include <cstdint>
#include <optional>

namespace meshwright {

/// A stretch of training under one layout.
struct TrainingPhase {
    std::int64_t steps = 1;
    Program program; ///< of `buildMlpTraining`, with the study's shardings
    ScheduledProgram scheduled; ///< the same, on shards
};

/// Collectives of a step as the devices counted them.
struct CountedCollective {
    CollectiveUse use; ///< as predicted
    std::int64_t calls = 0; ///< counted over all steps
    std::int64_t totalPayloadBytes = 0; ///< counted payload of one device over all steps
    std::optional<std::size_t> stage = {}; ///< of a pipeline: that does it, or sends it; nothing: all devices do
};

} // namespace meshwright
