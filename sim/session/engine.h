// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"
#include "core/prove/prove.h"
#include "core/study/arrays.h"
#include "core/train/trainer.h"
#include "sim/collective/placement.h"
#include "sim/report/results.h"
#include "sim/session/study_data.h"
#include "sim/session/study_machine.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::sim {

/// The program of one phase of a study, with layouts and on shards.
struct BuiltPhase {
    Study study; ///< of this phase: its mesh, its steps
    StudyArrays arrays; ///< of this phase
    Program program; ///< with the study's shardings only
    PartitionedProgram partitioned;
    std::string mainFunction; ///< what one step runs: "step", or the program file's function
    Problems warnings; ///< about a program file; MW1465 8-bit products are scaled in another way than the study says
};

/// A study's program with none of the study's shardings: as it was written or built.
struct PlainProgram {
    Program program;
    std::string mainFunction; ///< as in BuiltPhase
    MatmulPrecision unstated = MatmulPrecision::Highest; ///< see CostOptions
    Problems warnings;
};

/// Problems: those of the study's parts, of `readProgram`, and MW1732.
Result<PlainProgram> plainProgramOf(const Study& study);

/// The step of a program that has its shardings already, simulated as a study's would be. Problems: those of `propagateAndPartition` and `simulate`.
Result<Simulation> simulateProgram(
    const Program& program, const std::string& function, const Machine& machine, const CostOptions& cost);

/// Builds, propagates and partitions one phase (0 for a study without phases).
///
/// Problems: those of the study's parts, of `readProgram` for a program file (MW1732 when it has several functions and the study names none),
/// of `propagate` and `partition`; places are the study's.
Result<BuiltPhase> buildPhase(const Study& study, std::size_t phase = 0);

/// The mesh on the machine, with places in the study. Problems: those of `placeMesh`.
Result<MeshPlacement> placementOf(const Study& study, const Mesh& mesh, const Machine& machine);

/// The step of a built phase in the order in which an accelerator runs it.
ScheduledFunction scheduleStep(const BuiltPhase& built);

/// The stages and tasks of a built phase whose study has a pipeline, with ops for each layer of their own; null of others. Problems: those of
/// `withUnrolledLayers` and `pipelineOf`.
Result<std::shared_ptr<const TrainingPhase>> pipelineOfPhase(const BuiltPhase& built, const std::stop_token& stop = {});

/// Simulates a scheduled step; of a study with a pipeline, its stages and tasks. Problems: those of `simulate`.
/// `stop` is heeded all along, here and in `pipelineOfPhase`: then the problem is `stoppedProblem`.
Result<SimulatedStudy> simulateStep(const BuiltPhase& built, const ScheduledFunction& scheduled, const TrainingPhase* pipeline,
    const Machine& machine, const SimulationExtras& extras = {}, const std::stop_token& stop = {});

/// Whether a device program computes its program (`prove`), with the measured time. Worth nothing once `stop` was asked for, as those below.
Proof proofOf(const PartitionedProgram& partitioned, const std::stop_token& stop = {});

/// The same of a phase as it is simulated: of its pipeline, where it has one.
Proof proofOf(const BuiltPhase& built, const TrainingPhase* pipeline = nullptr, const std::stop_token& stop = {});

/// The same of what a training really runs, all phases together.
Proof proofOf(std::span<const TrainingPhase> phases, const std::stop_token& stop = {});

/// What leads from a study to the simulation of its step. What problems prevent is null, the rest is there.
struct StepParts {
    std::shared_ptr<const Machine> machine; ///< null: no hardware, or none that exists
    bool machineIsLargeEnough = false; ///< for all meshes of the study
    std::shared_ptr<const BuiltPhase> built; ///< of the first phase
    std::shared_ptr<const ScheduledFunction> scheduled; ///< the step as an accelerator would run it
    std::shared_ptr<const TrainingPhase> pipeline; ///< its stages and tasks; null: the study has no pipeline
    std::shared_ptr<const Proof> proof; ///< of what was built; null: nobody asked
    std::shared_ptr<const MeshPlacement> placement; ///< null without a machine that is large enough
    Problems problems; ///< warnings included
};

/// Finds the machine. Problems: those of `machineOf`, `checkMeshFits` and `checkFormat`.
void findMachine(StepParts& parts, const Study& study, const Catalogue& catalogue);

/// Builds, schedules, places and simulates one step of a study (of its first phase) as far as the study and the machine that was found for it
/// allow. Nothing when problems prevent it, there is no machine for it, or
/// `stop` was asked for.
/// Problems: those of `buildPhase`, `placementOf`, and `simulateStep`.
std::optional<SimulatedStudy> predictStep(
    StepParts& parts, const Study& study, const SimulationExtras& extras = {}, const std::stop_token& stop = {});

/// What `predictStep` simulates, and no more: of a transformer's pipeline the step that is not cut is not built. Of the parts only the problems are there.
std::optional<SimulatedStudy> predictFigures(
    StepParts& parts, const Study& study, const SimulationExtras& extras = {}, const std::stop_token& stop = {});

/// Finds what `predictStep` built to compute its program, or not; nothing where nothing was built, or `stop` was asked for.
void proveStep(StepParts& parts, const std::stop_token& stop = {});

/// Simulates one step of a study (of its first phase).
/// Problems: those of `findMachine` and `predictStep`.
/// `proves`: the result's proof.
Result<SimulatedStudy> simulateStudy(
    const Study& study, const Catalogue& catalogue, const SimulationExtras& extras = {}, bool proves = false);

struct TrainChoices {
    bool verify = false;
    bool prove = false; ///< result.proof
    bool record = false;
    bool typical = false; ///< result.typicalTime
    std::function<void()> besides = {}; ///< called now and then between the steps that are repeated for it
    bool keepParameters = false;
    int permits = 0;
    std::optional<std::int64_t> memoryBytes = {}; ///< that there are for the devices; nothing: what this computer has free
    std::optional<std::int64_t> deviceMemoryBytes = {}; ///< that each device may use; nothing: any amount
    std::optional<CheckpointPlan> checkpoints = {};
    FaultOptions faults = {};
    double stallSeconds = 600.0; ///< how long devices wait for one that does not arrive; 0: for ever
    EngineKind engine = EngineKind::Auto; ///< what the devices are
    std::shared_ptr<Ranks> ranks = {}; ///< processes that train together; null: this one alone
    std::filesystem::path resume = {}; ///< a checkpoint, or a folder of them, to go on from; empty: from the first step
};

/// What the layouts of a phase waste (`lintStudy`), with places in the study. A study of very many arrays is not looked at so closely.
Problems lintsOfPhase(const Study& study, const BuiltPhase& phase);

/// The phases of a study, ready for a Trainer. Problems: those of `buildPhase`, `withUnrolledLayers`, `checkPipelineFits`, `pipelineOf` and
/// `checkRunnable`; MW1733 the model is a program file, which has no training.
Result<std::vector<TrainingPhase>> trainingPhases(const Study& study);

/// What `trainStudy` refuses of a study on any computer: the problems of its phases and of its data. `built`: its phases, where that is known already.
/// Makes no phases that are there, and no arrays.
Problems untrainable(const Study& study, std::span<const std::shared_ptr<const BuiltPhase>> built);

/// The seed, the keys of the initial values, the checkpoint to go on from and the choices. Problems: those of `trainingOptions` and
/// `CheckpointReader::open`.
Result<TrainerOptions> trainerOptions(const Study& study, const TrainChoices& choices);

/// The seed, the optimizer and the settings that a checkpoint of this study's training says it was made with.
SavedState trainedAs(const Study& study);

/// Whether planned arenas leave a tenth of the memory that there is (nothing: unknown) for all else. Problems: MW1630.
Result<Done> checkMemory(std::int64_t plannedBytes, std::optional<std::int64_t> memoryBytes);

/// The same training on one device: no mesh, no specs, no pipeline, the phases' steps together. Initial values and batches are the same.
Study unshardedStudy(Study study);

/// Really trains a study on virtual devices. A stop is heeded as by `Trainer`.
/// Problems: MW1554 the processes of a job have different studies; those of `trainingPhases`, `trainerOptions`, `checkMemory`, `checkDeviceMemory`, `datasetOf` and `train`.
Result<TrainingResult> trainStudy(const Study& study, const TrainChoices& choices,
    const std::function<void(const TrainingProgress&)>& progress, const std::stop_token& stop);

/// One function of a program, ready to be loaded on devices.
struct PreparedRun {
    Program program; ///< with this function alone, on real numbers
    std::optional<Function> onComplex; ///< the function itself, where it has complex values
    PartitionedProgram partitioned;
};

/// What `runProgram` runs, and what it refuses of a program on any computer. `gradient`: see RunChoices.
/// Problems: those of `withGradients`, `withComplexPairs`, `propagateAndPartition` and `checkRunnable`.
Result<PreparedRun> prepareRun(const Program& program, const std::string& function, bool gradient = false);

/// Several runs, timed.
struct TimingChoices {
    int repetitions = 0; ///< none: no times are taken
    int runs = 0; ///< in each repetition
};

struct RunChoices {
    std::uint64_t seed = 0; ///< arguments are standard normal (integers: 0 to 9), drawn from it
    bool verify = false;
    bool prove = false; ///< result.proof
    int permits = 0;
    std::optional<std::int64_t> deviceMemoryBytes = {}; ///< that each device may use; nothing: any amount
    std::optional<std::vector<HostArray>> arguments = {}; ///< whole arrays; absent: drawn
    bool gradient = false; ///< also of the sum of the floating results, by each floating argument
    TimingChoices timing = {};
    FaultOptions faults = {}; ///< of the first run, whose step is 0
    double stallSeconds = 600.0; ///< how long devices wait for one that does not arrive; 0: for ever
    std::shared_ptr<Ranks> ranks = {}; ///< processes that run it together; null: this one alone
    EngineKind engine = EngineKind::Auto; ///< what the devices are
};

/// Wall times of one run, in seconds.
struct RunTimes {
    TimingChoices taken;
    double best = 0.0; ///< the fastest repetition's mean
    double mean = 0.0;
    double unshardedBest = 0.0; ///< of the unsharded program, timed alike
    std::string unshardedHow; ///< "on one device"
};

/// What a program gave on virtual devices.
struct RunResult {
    Mesh mesh;
    std::vector<std::string> names; ///< of the results
    std::vector<HostArray> results; ///< whole arrays
    std::vector<std::string> layouts; ///< of the results: "P('a', 'b')"
    std::vector<CountedCollective> collectives;
    double seconds = 0.0; ///< measured
    std::int64_t arenaBytes = 0;
    std::optional<Verification> verification;
    std::optional<Proof> proof;
    std::optional<RunTimes> times;
    Problems warnings; ///< MW1270 a mesh axis that nothing uses, MW1536 devices differ in what should be equal
};

/// Partitions one function of a program and runs it, sharded over the program's mesh. Of several processes all call it and get the results; the
/// first one alone verifies and has times.
/// Problems: those of `withGradients`, `propagateAndPartition`, `checkDeviceMemory`, the runtime and `evaluate`; MW1534 another number of arguments than the
/// function takes, MW1535 an argument of another type, MW1554 the processes of a job have different programs, arguments or choices.
Result<RunResult> runProgram(
    const Program& program, const std::string& function, const RunChoices& choices, std::stop_token stop);

} // namespace meshwright::sim
