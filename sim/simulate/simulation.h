// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/pipeline_uses.h"
#include "core/schedule/schedule.h"
#include "core/timeline/timeline.h"
#include "sim/hardware/machine.h"
#include "sim/simulate/instruction_work.h"
#include "sim/simulate/network_sites.h"
#include "sim/simulate/step_part.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

struct StepGraph;

/// One collective of a simulated step.
struct SimulatedCollective {
    CollectiveUse use; ///< its op is not valid in a pipeline, whose stages have functions of their own
    std::string label; ///< as timelines call it: "all_reduce grad.layers.0.w"
    std::int64_t wireBytes = 0; ///< sent by one device in one call
    double secondsPerCall = 0.0; ///< the mean of its calls
    double seconds = 0.0; ///< all calls, from when all devices of a group were ready
    double aloneSecondsPerCall = 0.0; ///< by the closed form: with its links for itself, and whole
    double lowerBoundSeconds = 0.0; ///< of a call: no schedule on these links is faster
    double exposedSeconds = 0.0; ///< of them, what computing waited for
    std::string algorithm;
    std::string formula; ///< with its inputs
    std::optional<std::size_t> stage = {}; ///< of a pipeline: that does it, or sends it
    std::optional<std::size_t> to = {}; ///< the stage that it is sent to
};

/// One move over the link to the host's memory, as often as it comes.
struct SimulatedMove {
    std::string label; ///< as timelines call it: "to host act.layers.attention.q"
    bool toHost = false; ///< else back to the device
    std::int64_t bytes = 0; ///< of one device in one call
    std::int64_t count = 0;
    double seconds = 0.0; ///< all calls
    double exposedSeconds = 0.0; ///< of them, what computing waited for
};

/// Bytes in use on one device from a moment on.
struct MemoryPoint {
    double seconds = 0.0;
    std::vector<std::int64_t> bytesByKind; ///< index: MemoryKind
    std::int64_t total = 0;
    std::int64_t hostBytes = 0; ///< in the host's memory, not part of the total
};

/// What a step would take on some hardware. Times are those of one device, the one that computes longest: where all devices do the same, one
/// stands for all; where some are slow, the slowest; of a pipeline, one of the longest stage.
struct Simulation {
    double stepSeconds = 0.0; ///< of the whole machine
    double callSeconds
        = 0.0; ///< one step called from the host and waited for; in a training that runs on, calls hide behind steps
    CostOptions cost; ///< by which kernels were timed
    double computeSeconds = 0.0; ///< busy computing
    double launchSeconds = 0.0; ///< waiting for the host to start a kernel
    double productSeconds = 0.0; ///< of computeSeconds: instructions that are a product
    double updateSeconds = 0.0; ///< of computeSeconds: instructions of the optimizer
    double productFlopsPerDevice = 0.0; ///< of those products
    double otherTrafficBytes = 0.0; ///< read and written by the other computing instructions
    double exposedSeconds = 0.0; ///< waiting for collectives and for moves over the host's link
    double hostExposedSeconds = 0.0; ///< of exposedSeconds: for moves over the host's link
    double bubbleSeconds = 0.0; ///< waiting for other pipeline stages
    double stackSeconds
        = 0.0; ///< of a software stack that was asked for: between steps, and what a slow host among so many is expected to cost
    double collectiveSeconds = 0.0; ///< all collectives, hidden or not
    double contentionSeconds = 0.0; ///< of collectiveSeconds: what sharing links with each other, and faulty links, cost
    double modelFlops = 0.0; ///< of the whole step on all devices: the model's own products, whatever the program does besides
    double mfu = 0.0; ///< modelFlops / (step * devices * peak of the products' type)
    double peakFlopsPerSecond = 0.0; ///< of one device, as mfu takes it
    std::string peakHow; ///< which figure that is
    std::int64_t peakBytes = 0; ///< of the buffer plan, per device
    std::size_t peakInstruction = 0;
    std::int64_t capacityBytes = 0; ///< of a device
    std::int64_t reserveBytes = 0; ///< of it, kept for the runtime and fragmentation
    bool fits = false; ///< peak <= capacity - reserve
    StepPart
        boundBy; ///< what computing takes most time for, the collective that is waited for longest, the host's link, or the bubble
    std::vector<SimulatedCollective> collectives; ///< of the device whose times these are
    std::vector<StageUse>
        otherStages; ///< of a pipeline: the collectives and messages of other stages, in which that device has no part
    std::size_t stage = 0; ///< of a pipeline, whose times these are
    std::size_t peakStage = 0; ///< of a pipeline, whose memory `peakBytes` is
    std::vector<SimulatedMove> moves;
    double hostLinkBytesPerSecond = 0.0; ///< of one device to its host's memory, one way; 0: nothing is moved there
    std::int64_t hostBytes = 0; ///< of the host's memory, for one device; of a pipeline, of the stage that needs most there
    std::vector<MemoryPoint> memory; ///< of a pipeline, of `peakStage`
    Timeline timeline{
        Clock::Simulated}; ///< of one device for each stage and each speed that devices have; empty unless it was asked for
    std::string machine; ///< what it was simulated on
    std::vector<std::string> assumptions; ///< figures that are not from a source
    std::int64_t events = 0;
    std::int64_t classes = 1; ///< groups of devices that do the same, as far as the simulation had to look
};

/// What is wanted of a simulated step besides its figures.
struct SimulationExtras {
    StepGraph* graph = nullptr; ///< gets the step written out
    bool timeline = false; ///< `Simulation::timeline`
    const StackTraits* traits = nullptr; ///< of the software, in place of those that the study's stack has
    const StackConstants* constants = nullptr; ///< likewise
    std::optional<double> modelFlops = {}; ///< of the model's own products; nothing: all of the unsharded function
};

/// FLOPs of all products of a function on whole arrays, a multiply-add counting two; loops count as often as they run. Of fused attention those that
/// masks leave, without the scores that its derivative computes again.
double productFlops(const Function& function);

/// Runs the schedule of one function on the machine: a stream that computes in order, and for the axes of each collective a stream that carries
/// collectives in order; a collective starts when both its stream and everything before it in the schedule are ready on all devices of
/// its group, and its CollectiveDone waits for it. Collectives in flight share links, as the fidelity has it (see `NetworkSites`).
/// `unsharded` is the same function before partitioning, for its FLOPs.
///
/// Moves to the host's memory and back go over the chip's host link, a stream for each direction; one takes as long as its bytes take there.
///
/// Devices that are slow compute so much longer; the others wait for them in every collective.
///
/// Problems: those of `placeMesh` (the mesh does not fit the machine), MW1730 the chip has no figure for a type that the program multiplies,
/// MW1740 a forced algorithm that no collective can take, MW1741 a failed link leaves no way between two devices, MW1755 values are kept in the host's memory, and the catalogue has no
/// bandwidth of the chip's link to it.
Result<Simulation> simulate(const ScheduledFunction& function, const Mesh& mesh, const Function& unsharded,
    const Machine& machine, const CostOptions& options, const NetworkOptions& network = {}, const SimulationExtras& extras = {});

/// Runs the tasks of a pipeline that is scheduled with SchedulePolicy::Overlapped: each stage takes its own in order, on devices of its own along `axis` of the mesh; what pieces pass each other is sent as
/// soon as it is made and every device's to its partner in the other stage, forward and backward on streams of their own.
///
/// `bubbleSeconds` is what the longest stage waits for others. Memory is that of the stage that needs most: its arrays, what its microbatches under
/// way keep, and the largest of its functions' working memory.
/// Problems: as above.
Result<Simulation> simulate(const ScheduledProgram& pipeline, const Mesh& mesh, const std::string& axis,
    const Function& unsharded, const Machine& machine, const CostOptions& options, const NetworkOptions& network = {},
    const SimulationExtras& extras = {});

/// One row of a table of memory in use at the peak: the values that are live there, largest first; those of loops in the turn that needs most.
struct LiveValue {
    std::string name;
    MemoryKind kind = MemoryKind::Temporary;
    std::int64_t bytes = 0;
};
std::vector<LiveValue> liveAtPeak(const ScheduledFunction& function);

/// The same of a pipeline's stage that needs most, all its microbatches under way.
std::vector<LiveValue> liveAtPeak(const ScheduledProgram& pipeline);

} // namespace meshwright::sim
