// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/collectives.h"
#include "core/kernels/kernel.h"
#include "core/runtime/recording.h"
#include "core/schedule/schedule.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace meshwright {

inline constexpr std::size_t kNoCounter = static_cast<std::size_t>(-1);

/// How the values of a Repeat op and of its body share memory: the carries live in the place of the results; slices and what stays
/// the same are read where they are. Of a While likewise; `conditionArguments` are those of its condition.
struct LoopPlan {
    RepeatAttributes attributes;
    std::vector<ValueId> operands;
    std::vector<ValueId> results;
    std::vector<ValueId> arguments; ///< of the body
    std::vector<ValueId> yields; ///< of the body
    std::vector<std::int64_t> yieldBytes; ///< of a carry, or of one slice
    std::vector<std::int64_t> sliceBytes; ///< of each stacked operand
    std::vector<bool> direct; ///< for each yield: a slice that the body writes straight into the stack
    std::vector<ValueId> conditionArguments; ///< While
    ValueId condition; ///< While: a truth value
};

/// A Case: which branch is taken, and what goes in and out of each.
struct BranchPlan {
    ValueId which;
    bool isTruth = false; ///< true: the first one; else a number, and the last branch stands for all that are out of range
    std::vector<ValueId> operands; ///< that the branches use
    std::vector<ValueId> results;
    std::vector<std::int64_t> resultBytes;
    std::vector<std::vector<ValueId>> arguments; ///< of each branch
    std::vector<std::vector<ValueId>> yields; ///< of each branch
};

/// An instruction made ready for the devices.
struct Ready {
    InstructionKind kind = InstructionKind::Compute;
    const Instruction* instruction = nullptr; ///< of the schedule
    std::uint32_t description = 0;
    std::vector<std::shared_ptr<const Kernel>> kernels; ///< one for all devices, or one for each
    std::shared_ptr<const Kernel> withNext
        = {}; ///< does the next instruction's work too, and leaves out what only that one reads; null: none
    std::unique_ptr<Collective> collective;
    std::size_t counter = kNoCounter; ///< of a collective that moves data
    bool goesOn = false; ///< a collective that is finished by a later instruction
    const Collective* waitsFor = nullptr; ///< that started earlier
    std::vector<std::pair<ValueId, std::int64_t>> uses; ///< values that it reads and writes in memory, and their bytes
    std::optional<LoopPlan> loop;
    std::optional<BranchPlan> branches;
    std::vector<Ready> body; ///< of a loop
    std::vector<std::vector<Ready>> blocks; ///< a While's condition, the branches of a Case
};

/// A function's instructions made ready.
struct LoadedInstructions {
    std::vector<Ready> list;
    std::vector<OpId> counterOps; ///< collectives that are counted, by counter
    std::vector<RecordedInstruction> descriptions;
};

/// Makes the kernels and collectives of a function for devices that meet at `meeting`. All arguments must outlive the result.
/// Problems: MW1511 a collective's layouts do not fit its groups, MW1512 an op whose part depends on the device has no layout.
Result<LoadedInstructions> loadInstructions(
    const ScheduledFunction& scheduled, const DevicePositions& positions, RendezvousTable& meeting);

} // namespace meshwright
