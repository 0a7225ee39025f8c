// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/runtime/executor.h"
#include "core/schedule/pipeline_uses.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// A training step whose stages lie on groups of devices of their own and that runs by its task list: each stage's devices go through the
/// stage's tasks one after the other, receive what a task needs from the stages beside them, and send on what it made. Sends do not wait.
///
/// Functions of a stage, by name (C: the chunk), each with the values that they share by the names of arguments and results:
/// - "init": (keys..) -> the stage's arrays
/// - "forward.C": (parameters.., "x" or "in", "y" on the last piece) -> "out", or "loss", "accuracy", "predictions" on the last piece; residuals
/// - "backward.C": (what it reads of these, "ct.out" but on the last piece, "acc.NAME" sums of gradients) -> the sums, each donated, and "ct.in"
/// - where the order splits the backward pass, "backward.C" gives "ct.in" and "residual.w.N" in place of the sums, and
///   "weights.C": (what it reads of all these, "acc.NAME") -> the sums, each donated
/// - "shared" and "total", on stages that have parameters which other stages have too: ("acc.NAME") -> what it knows of their gradients, and
///   (this, what the others know) -> "grad.NAME". Between the two the stages give each other theirs, see StageArray
/// - "norm", where the update or the metrics need the norm of all gradients: ("acc.NAME") -> gradients "grad.NAME", "norm.part", the sum of
///   their squares. The stages add up their parts, in the order of the stages, to "norm.squared" on all of them
/// - "update": (parameters.., states.., "acc.NAME", or "grad.NAME" and "norm.squared") -> new ones, each donated; metrics
/// "dropout.part" is which microbatch it is, "dropout.on" 1 in training steps and 0 in runForward.
/// Parameters, states, sums: one each. "x", "y", "loss", "accuracy", "predictions": one for each microbatch. All others: one for each microbatch
/// that is between its forward and its backward task. "out" goes to "in" of the next piece, "ct.in" to "ct.out" of the one before, from
/// position k of a stage to position k of the other, so they have the same layout.
///
/// In a job of several processes (`VirtualDevicesOptions::ranks`) each of them loads the same pipeline, has the memory of its own devices, and
/// calls what follows together with the others; what ends the job shows in `Ranks::failure`, and what was read is undefined then. All get what
/// is read, but where it says otherwise.
class LoadedPipeline {
public:
    /// `mesh` is that of all stages together; position k of it is virtual device k. Copies what it needs; `devices` must outlive it.
    /// Problems: those of `LoadedFunction::load`.
    static Result<std::unique_ptr<LoadedPipeline>> load(
        const ScheduledProgram& scheduled, const Mesh& mesh, VirtualDevices& devices);
    ~LoadedPipeline();

    // ---- arrays that stay: parameters and states, between runs only; precondition: the name is one of them

    std::map<IndexBox, std::vector<std::int64_t>> piecesOf(
        const std::string& array) const; ///< and the virtual devices that hold each
    HostArray readPiece(
        const std::string& array, std::int64_t device, Ranks::Readers readers = Ranks::Readers::First) const; ///< for the readers
    void writePiece(const std::string& array, std::int64_t device, const HostArray& piece); ///< those that are not here: nothing

    /// True when `writePiece` has something to write in this process: the device is here, or one of another stage that shares the array.
    bool writesHere(const std::string& array, std::int64_t device) const;
    HostArray read(const std::string& array) const; ///< the whole
    const TensorSharding& layoutOf(const std::string& array) const;

    // ---- running

    /// Runs all stages' "init". `keys` are values of its arguments by name.
    Result<Done> initialise(const std::map<std::string, HostArray>& keys, const std::stop_token& stop);

    /// Cuts a batch into microbatches, and these to the devices.
    void writeBatch(const HostArray& x, const HostArray& y);

    /// One training step, or the forward tasks alone. Problems: as `LoadedFunction::run`.
    Result<Done> run(const LoadedFunction::RunOptions& options);
    Result<Done> runForward(const LoadedFunction::RunOptions& options);

    /// Of the last run: the mean over microbatches of "loss" or "accuracy"; all rows of "predictions".
    double mean(const std::string& result) const;
    HostArray predictions() const;

    // ---- what happened

    /// Calls and payload in all training steps, by stage and function.
    struct Counted {
        std::size_t stage = 0;
        std::string function;
        std::vector<CountedCalls> calls;
    };
    std::vector<Counted> countedCalls() const;

    /// What a device of a stage has sent in all complete training steps.
    struct Transfers {
        /// Messages, and their bytes, of the stage's device that sends the most of the kind to the other stage.
        struct Sent {
            std::int64_t messages = 0;
            std::int64_t bytes = 0;

            void add(const Sent& more)
            {
                messages += more.messages;
                bytes += more.bytes;
            }
        };
        explicit Transfers(std::size_t stages = 0)
            : sent(kStageMessages * stages)
        {
        }
        Sent& of(StageMessage what, std::size_t to) { return sent[to * kStageMessages + static_cast<std::size_t>(what)]; }

        std::vector<Sent> sent; ///< by stage that it is sent to, by kind
        std::int64_t norms = 0; ///< sums of "norm.part" over the stages, whose messages are none of these
    };
    std::vector<Transfers> transfers() const; ///< by stage

    /// The last complete recorded step. Rows of every device: "compute", "collectives", "transfers". The timelines are the first process's:
    /// empty on the others.
    Timeline measured() const;

    /// The same with a core for every device: a task begins when its device is free and its message has come, which takes no time. With
    /// `taskSeconds` each task takes that long instead of what was measured.
    using TaskSeconds = std::function<double(const Task&)>;
    Timeline virtualTimeline(const TaskSeconds& taskSeconds = {}) const;

    /// The same of a typical step, see LoadedFunction::typicalTimeline; empty when none was recorded. Of several processes the last step's.
    Timeline typicalTimeline() const;

private:
    class Implementation;
    explicit LoadedPipeline(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> m_implementation;
};

/// What a device of each stage needs while it trains, in bytes: the stage's arrays, those of each microbatch as often as microbatches are under way,
/// and the largest arena of its functions.
std::vector<std::int64_t> plannedStageBytes(const ScheduledProgram& scheduled);

} // namespace meshwright
