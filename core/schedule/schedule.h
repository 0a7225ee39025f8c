// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/program/pipeline_order.h"
#include "core/support/result.h"

#include <string>
#include <vector>

namespace meshwright {

enum class Stream : std::uint8_t { Compute, Collectives, ToHost, ToDevice };

enum class InstructionKind : std::uint8_t {
    Compute, ///< one op, or several element-wise ops in one pass over the data
    CollectiveStart, ///< from here the collective may move data; its operand must not be written before it is done. Streams to the host and back carry
    ///< moves in the same way (placement.h), except with SchedulePolicy::Host, where moves are copies that are computed
    CollectiveDone, ///< the result may be read from here
    Loop, ///< `body` runs as often as its Repeat op says
    Blocks, ///< of a While: the condition, then the body, for as long as the condition holds; of a Case: one of the branches
};

/// One step of what every device does, in one total order for all of them: collectives of a group meet in the order of their starts.
struct Instruction {
    InstructionKind kind = InstructionKind::Compute;
    Stream stream = Stream::Compute;
    std::vector<OpId> ops; ///< in program order; all but Compute have one
    std::vector<ValueId> reads; ///< values from outside the instruction; constants that were folded into it are not listed
    std::vector<ValueId> writes; ///< values that something outside reads, or results
    std::vector<OpId>
        update; ///< CollectiveDone: element-wise ops on the result that are done in the same pass over the data, by one device of
    ///< the group for all; the collective's own result never is in memory then. `reads` and `writes` are of both.
    std::vector<Instruction> body; ///< Loop
    int turn
        = 0; ///< in a body: for which turn this is done, seen from the one in which it stands. 1: for the next one, and ahead of the first for
    ///< that one, and not in the last; -1: for the one before, and not in the first, and behind the last for that one
    std::vector<std::vector<Instruction>> blocks; ///< Blocks: one list for each block of the op
};

/// What memory is used for.
enum class MemoryKind : std::uint8_t { Parameter, OptimizerState, Gradient, Input, Activation, Collective, Temporary };
const char* memoryKindName(MemoryKind kind);

/// A stretch of a device's arena and how long it is in use.
struct Buffer {
    std::int64_t offset = 0; ///< bytes from the arena's start, a multiple of kBufferAlignment
    std::int64_t bytes = 0;
    MemoryKind kind = MemoryKind::Temporary;
    ValueId
        value; ///< the first value that lives in it; others may follow in place. Invalid: a loop's stretch, which holds its blocks' buffers
    std::size_t first = 0; ///< index of the first instruction of the function's list during which it is in use; arguments: 0
    std::size_t last = 0; ///< index of the last one; what outlives the function: the number of instructions
    int depth = 0; ///< in how many stretches it lies: in the next one behind it of one less, which counts for it
    bool onHost = false; ///< lies in the host's memory: `offset` counts from the beginning of the host's arena
    bool atPeak = false; ///< in use when its function, or the turn of a loop that makes it, needs most of the device's memory
};

inline constexpr std::int64_t kBufferAlignment = 64;

/// Where every value lives. The buffers of a loop's body lie in one stretch that is in use while the Loop instruction runs.
struct BufferPlan {
    std::vector<Buffer> buffers;
    std::vector<std::int32_t> bufferOf; ///< for each value: index into buffers; -1: never in memory (folded or fused away)
    std::int64_t arenaBytes = 0; ///< the arena's size: the high-water mark of the offsets
    std::int64_t peakLiveBytes = 0; ///< the largest sum of buffers in use at one instruction; <= arenaBytes
    std::size_t peakInstruction = 0;
    std::int64_t hostBytes = 0; ///< of the arena for this device in its host's memory
};

/// A result whose value could not be computed in the place of the argument that it is donated into: it is copied there at the end. It is
/// no argument in whose place another result is to be (the partitioner copies such a result beforehand).
struct FinalCopy {
    ValueId from;
    ValueId to; ///< an argument
};

struct ScheduledFunction {
    DeviceFunction device;
    std::vector<Instruction> instructions;
    BufferPlan buffers;
    std::vector<FinalCopy> finalCopies;
};

/// Whose habits a schedule follows.
enum class SchedulePolicy : std::uint8_t {
    Host, ///< our virtual devices: element-wise chains fused, also with the all-reduce that they follow; collectives are done before their first use,
    ///< or earlier where the operands of those under way would take more memory than the two largest
    Overlapped, ///< as XLA on an accelerator: the same fusion; collectives are done before their first use, or earlier beyond the three largest,
    ///< also across the turns of a loop
    Eager, ///< op by op, nothing fused, each collective done where it starts
};
const char* schedulePolicyName(SchedulePolicy policy);

/// What a device of a pipeline stage is to do next.
enum class TaskKind : std::uint8_t {
    Whole, ///< without pipelining: a function call
    Forward,
    Backward, ///< both its parts
    BackwardInput,
    BackwardWeight,
    ShareGradients, ///< gives the other stages what this one knows of the gradients of parameters that they have too
    TotalGradients, ///< adds up what all of these know
    ShareNorm, ///< adds up, over all stages, what each knows of the norm of all gradients
    Update,
};

/// The function of a stage that carries out such tasks: "forward.0", "backward.0", "weights.0", "shared", "total", "norm", "update".
/// Precondition: not Whole.
std::string functionOf(TaskKind kind, std::size_t chunk = 0);

/// True for what a stage does once in a step, after all microbatches.
inline bool isOncePerStep(TaskKind kind)
{
    return kind >= TaskKind::ShareGradients;
}

struct Task {
    std::size_t stage = 0;
    std::size_t chunk = 0; ///< of an interleaved schedule
    std::size_t microbatch = 0;
    TaskKind kind = TaskKind::Whole;
    std::string function; ///< that carries it out

    /// It hands gradients on to the piece before, and takes them from the piece behind.
    bool passesGradients() const { return kind == TaskKind::Backward || kind == TaskKind::BackwardInput; }
    bool passesActivations() const { return kind == TaskKind::Forward; }
    bool passesOn() const { return passesGradients() || passesActivations(); }
};

/// A model cut into stages * chunks pieces, which batches pass in `microbatches` parts. Piece k is chunk k / stages of stage k % stages.
struct PipelineShape {
    std::int64_t stages = 1; ///< >= 1
    std::int64_t chunks = 1; ///< of each stage; >= 1
    std::int64_t microbatches = 1; ///< >= 1; with several chunks a multiple of the stages
    PipelineOrder order = PipelineOrder::OneForwardOneBackward;

    std::int64_t pieces() const { return stages * chunks; }
    std::int64_t pieceOf(const Task& task) const
    {
        return static_cast<std::int64_t>(task.chunk) * stages + static_cast<std::int64_t>(task.stage);
    }
};

struct ScheduledStage {
    std::vector<NamedMesh> meshes;
    std::vector<ScheduledFunction> functions;

    const ScheduledFunction* find(std::string_view name) const;
    const ScheduledFunction* find(TaskKind kind, std::size_t chunk = 0) const { return find(functionOf(kind, chunk)); }
    const Mesh& mesh() const { return meshes.front().mesh; }
};

struct ScheduledProgram {
    std::vector<ScheduledStage> stages;
    std::vector<Task> tasks; ///< of one training step, in the order in which each stage takes its own
    PipelineShape pipeline;
    SchedulePolicy policy = SchedulePolicy::Host;
    std::string collectiveCost;
};

/// True for a training that is cut into a pipeline.
inline bool isPipelined(const ScheduledProgram& scheduled)
{
    return !scheduled.tasks.empty() && scheduled.tasks.front().kind != TaskKind::Whole;
}

/// Where arguments and results are: in places of the arena, or in memory that the caller gives (`LoadedFunction::placeArgument`), so that the arena, its
/// peak and offsets are of the values between them alone.
enum class ArgumentPlace : std::uint8_t { Arena, Callers };

/// Orders, fuses and places one function.
ScheduledFunction schedule(DeviceFunction function, SchedulePolicy policy, ArgumentPlace place = ArgumentPlace::Arena);
ScheduledProgram schedule(const DeviceProgram& program, SchedulePolicy policy);

/// Bytes in use by kind at each instruction (index = instruction).
struct MemoryMoment {
    std::vector<std::int64_t> bytesByKind; ///< index: MemoryKind
    std::int64_t total = 0;
    std::int64_t hostBytes = 0; ///< in the host's memory, not part of the total
};
std::vector<MemoryMoment> memoryOverTime(const ScheduledFunction& function);

} // namespace meshwright
