// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/support/result.h"
#include "core/train/training_function.h"
#include "core/train/training_phase.h"

#include <filesystem>
#include <functional>
#include <stop_token>
#include <vector>

namespace meshwright {

/// What a device reads of a checkpoint to hold its pieces of a phase's state.
struct RestoreShare {
    DeviceId device = 0;
    std::vector<ReadFromFile> files; ///< one entry for each file, in the checkpoint's order
};

/// Who reads what when a phase goes on from a checkpoint, whatever the layouts are on either side. Devices in mesh order.
/// Problems: MW1646 the checkpoint lacks an array of the phase, or has it in another type or shape.
Result<std::vector<RestoreShare>> restorePlan(const CheckpointReader& checkpoint, const TrainingPhase& phase);

/// Writes a checkpoint's arrays anew, in the layouts of a phase, to a folder of checkpoints. Returns the new one's path.
/// Problems: those of `restorePlan`, `CheckpointReader::read` and `CheckpointFolder`.
Result<std::filesystem::path> convertCheckpoint(
    CheckpointReader& checkpoint, const TrainingPhase& phase, const std::filesystem::path& folder);

/// Why a checkpoint is of another training than one with this seed, optimizer ("": not known) and settings; empty when it is not.
/// Problems: those of `restorePlan`, MW1646 the checkpoint was made with another optimizer or setting, MW1647 with another seed.
Problems otherTrainingProblems(const TrainingPhase& phase, const CheckpointReader& checkpoint, const SavedState& own);

/// Why a training cannot go on from a checkpoint; empty when it can.
/// Problems: those of `otherTrainingProblems`, MW1647 it has more steps than the training.
Problems resumeProblems(const std::vector<TrainingPhase>& phases, const CheckpointReader& checkpoint, const SavedState& own);

/// A step from which the state of a training is sharded differently.
struct LayoutSwitch {
    std::int64_t step = 0; ///< the first in the new layout
    std::string what; ///< "mesh data=8,model=1 → data=4,model=2", "resumed: 3 arrays sharded differently"

    friend bool operator==(const LayoutSwitch&, const LayoutSwitch&) = default;
};

/// Those between phases, and the one where a training goes on from a checkpoint (null: it does not); a checkpoint of the same layout is "resumed".
std::vector<LayoutSwitch> layoutSwitches(const std::vector<TrainingPhase>& phases, const CheckpointReader* resumed);

/// Gives every device that is in this process its pieces of a checkpoint's arrays. Precondition: `restorePlan` finds no problem.
/// Problems: those of `CheckpointReader::read`; VirtualDevices::interrupted() when `stop` was asked for.
Result<Done> restoreState(
    CheckpointReader& checkpoint, const Function& function, TrainingFunction& step, const std::stop_token& stop);

/// The state of a phase's loaded "step", to be written; `isSound` is asked after each piece that was read, and `notFinite` told the name of the array
/// of each that has NaN or infinity. All must outlive the arrays.
std::vector<ArrayToSave> arraysToSave(const Function& function, const TrainingFunction& step,
    const std::function<Result<Done>()>& isSound, const std::function<void(const std::string&)>& notFinite);

} // namespace meshwright
