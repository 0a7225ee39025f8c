// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/runtime/executor.h"
#include "core/train/training_phase.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace meshwright {

class LoadedPipeline;

/// "init", "step" or "evaluate" of a training phase on virtual devices, with the arguments and results of the whole function, whether every
/// device runs all of it or the devices of a pipeline's stages their parts. The functions of one pipelined phase share their arrays, so that
/// nothing needs to be copied between them. Methods are those of `LoadedFunction`.
class TrainingFunction {
public:
    /// Loads one function of a phase. `pipeline` is that of the phase, when it is one and has been loaded, and is set to it.
    /// Problems: those of `LoadedFunction::load`.
    static Result<std::unique_ptr<TrainingFunction>> load(
        const TrainingPhase& phase, std::string_view name, VirtualDevices& devices, std::shared_ptr<LoadedPipeline>& pipeline);
    virtual ~TrainingFunction() = default;

    virtual Result<Done> writeArgument(std::size_t argument, const HostArray& whole) = 0;
    virtual HostArray readArgument(std::size_t argument) const = 0;
    virtual HostArray readResult(std::size_t result) const = 0;
    virtual std::map<IndexBox, std::vector<std::int64_t>> piecesOfArgument(std::size_t argument) const = 0;
    virtual HostArray readArgumentPiece(
        std::size_t argument, std::int64_t device, Ranks::Readers readers = Ranks::Readers::First) const = 0;
    virtual void writeArgumentPiece(std::size_t argument, std::int64_t device, const HostArray& piece) = 0;
    virtual bool writesHere(
        std::size_t argument, std::int64_t device) const = 0; ///< whether writing a piece has something to do in this process
    virtual std::string layoutText(std::size_t argument) const = 0; ///< as Shardy writes it
    virtual Result<std::int64_t> copyFromArgument(
        std::size_t argument, const TrainingFunction& from, std::size_t sourceArgument, const std::stop_token& stop);
    virtual Result<std::int64_t> copyFromResult(
        std::size_t argument, const TrainingFunction& from, std::size_t sourceResult, const std::stop_token& stop)
        = 0;
    virtual Result<Done> run(const LoadedFunction::RunOptions& options) = 0;
    virtual std::int64_t arenaBytes() const = 0;
    virtual std::vector<CountedCollective> collectives() const = 0; ///< as predicted, and as counted
    virtual Timeline measured() const = 0;
    virtual Timeline virtualTimeline() const = 0;
    virtual Timeline typicalTimeline() const = 0;
};

/// The collectives of a function that ran, in program order, each with the calls that were counted of it. Those not counted are left out.
std::vector<CountedCollective> countedCollectives(
    const DeviceFunction& function, const Mesh& mesh, const std::vector<CountedCalls>& counted);

/// Where an argument or a result of a function stands. Precondition: there is one of that name.
std::size_t argumentIndexOf(const Function& function, std::string_view name);
std::size_t resultIndexOf(const Function& function, std::string_view name);

/// The arguments that come before x and y: parameters and states in "step", parameters in "evaluate".
std::size_t stateCount(const Function& function);

/// The value of a result without dimensions of `loaded`, which computes `function`.
double scalarResultOf(const TrainingFunction& loaded, const Function& function, std::string_view name);

/// The stage that holds an argument of a phase's "step", and how it lies there.
struct HeldArgument {
    const ScheduledStage* stage = nullptr;
    const Value* value = nullptr;
};
HeldArgument heldArgument(const TrainingPhase& phase, std::size_t argument);

/// The mesh of all stages together.
const Mesh& wholeMesh(const TrainingPhase& phase);

} // namespace meshwright
