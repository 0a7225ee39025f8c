// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/program/program.h"
#include "sim/simulate/step_part.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// A part of a step or of a device's memory.
struct NamedShare {
    std::string name; ///< "compute", "all-reduce over tensor"; "weights"
    double amount = 0.0; ///< seconds, or bytes
    StepPart part = {}; ///< of a step
};

/// How a plan's pipeline goes.
struct PipelinePlan {
    std::int64_t stages = 1;
    std::int64_t chunks = 1; ///< of one stage
    double microbatches = 1.0; ///< of one step
    std::string schedule = "none"; ///< "gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2"; "none": one stage
};

/// One way to lay out training, and what the cost model says of it.
struct FoundPlan {
    std::string hardware; ///< "h100x64"
    std::int64_t chips = 0;
    std::string kind = {}; ///< of a transformer's plan, by what it splits: "FSDP", "ZeRO-1 + tensor + pipeline"
    std::vector<MeshAxis> mesh; ///< major to minor: the last axis joins neighbours; axes of size 1 are left out
    std::vector<std::pair<std::string, std::string>> specs; ///< array (as studies name it) and its PartitionSpec
    PipelinePlan pipeline;
    std::string recompute; ///< policy; empty where there is none to choose
    std::int64_t lossChunks = 1; ///< parts of a sequence whose logits are made one after the other
    double microbatch = 0.0; ///< sequences of a data rank in one pass; 0: none to choose
    int zeroStage = 0;
    bool sequenceParallel = false;
    bool exchangesHeads = false; ///< over the context axis (Ulysses); else keys and values go round
    bool gathersContext = false; ///< each device of the context axis gathers all keys and values; no search looks for that
    double modelSeconds = 0.0; ///< step time by the cost model that was searched: an estimate
    std::optional<double> simulatedSeconds = {}; ///< step time by the simulator, where it ran
    std::size_t candidate = 0; ///< of a transformer's plan: its number in the space that it was found in
    double peakBytes = 0.0; ///< of the device that needs most, without what the runtime keeps
    double capacityBytes = 0.0;
    bool fits = false;
    double mfu = 0.0; ///< model FLOPs over what the devices could do in that time
    std::optional<double> dollarsPerStep = {};
    std::string boundBy;
    std::vector<std::string> why; ///< sentences: what bounds it and, but for the best, what it loses by
    std::vector<NamedShare> time; ///< seconds; they add up to the step: the simulated one where there is one
    std::vector<NamedShare>
        memory; ///< bytes; with "reserve", what the runtime keeps, where it is known, they add up to peakBytes and that
    std::vector<NamedShare> live = {}; ///< bytes: the largest values at the simulated peak
    std::shared_ptr<const Program> program = {}; ///< of a search through a program's ops: that program with the plan's layouts

    double seconds() const { return simulatedSeconds.value_or(modelSeconds); } ///< of a step
    double usableBytes() const; ///< of a device: without what the runtime keeps
};

/// What the simulator says of a plan, written as a study.
struct PlanTrial {
    double seconds = 0.0; ///< of a step
    double peakBytes = 0.0; ///< of the device that needs most, without what the runtime keeps
    double reserveBytes = 0.0; ///< what the runtime keeps
    double capacityBytes = 0.0;
    bool fits = false;
    double mfu = 0.0;
    std::string boundBy;
    std::vector<NamedShare> time; ///< seconds; they add up to `seconds`
    std::vector<NamedShare> memory; ///< bytes by what they are for at the peak, and "reserve"
    std::vector<NamedShare> live; ///< bytes: the largest values there
};

struct SearchMachine;

/// Nothing, and why not, where a plan cannot be simulated. May be called by several threads at once.
using PlanSimulator
    = std::function<std::optional<PlanTrial>(const FoundPlan& plan, const SearchMachine& machine, std::string& whyNot)>;

/// The same for a search on one machine.
using PlanTest = std::function<std::optional<PlanTrial>(const FoundPlan& plan)>;

/// What computing takes one device of a layout whose states are split among all devices; of a pipeline, a device of the stage that computes longest.
struct ComputeFloor {
    double microbatchSeconds = 0.0; ///< forward and backward through all its layers, without any waiting
    double updateSeconds = 0.0; ///< of the optimizer
    bool fits = true; ///< there is room for so few microbatches as were simulated
    std::int64_t stage = 0; ///< of a pipeline: that it is of
};

/// Simulates such a layout with the batch that few microbatches a step make; nothing where it cannot be, or was stopped. May be called by several threads
/// at once.
using FloorSimulator = std::function<std::optional<ComputeFloor>(const FoundPlan& layout, const SearchMachine& machine)>;

/// What one microbatch more takes a layout without a pipeline, as gradients are summed after the last.
struct PassTime {
    double computeSeconds = 0.0; ///< with adding up gradients
    double waitSeconds = 0.0; ///< for collectives
};

/// Likewise.
using PassSimulator = std::function<std::optional<PassTime>(const FoundPlan& layout, const SearchMachine& machine)>;

struct SearchWork;

/// What one device computes in all layers for one more sequence, forward and backward, by the simulator: seconds. Nothing where they cannot be simulated.
using LayerTimer = std::function<std::optional<double>(const SearchWork& work, const SearchMachine& machine)>;

/// A layout that people know by a name, at its best.
struct TemplateScore {
    std::string name; ///< "FSDP", "Megatron: tensor in the host, pipeline, data"
    std::string mesh; ///< of its best plan; empty: it has none here
    bool fits = false;
    double seconds = 0.0; ///< of a step, by SearchResult::areAnswersSimulated; 0: not known, or it has no plan
    double loss = 0.0; ///< of step time against the best plan: 0.38 is 38 % slower
    std::string why;
};

/// The best plan that makes one choice otherwise.
struct OtherChoice {
    std::string choice; ///< of the best plan: "tensor=8"
    std::string other; ///< "tensor=4"
    double seconds = 0.0; ///< of a step, by SearchResult::areAnswersSimulated
    double loss = 0.0;
    std::string why;
};

/// What a search went through.
struct EnumeratedSpace {
    std::vector<std::pair<std::string, std::string>> choices; ///< "recompute" and "none, selective, full"
    std::vector<std::string> leftOut; ///< what a study can say besides
};

/// What a search found. Everything but the wall-clock fields is the same for any number of threads, unless it was cut short.
struct SearchResult {
    std::string about; ///< what was searched, in one line
    EnumeratedSpace space;
    std::vector<FoundPlan> plans; ///< that fit, the quickest first: simulated ones, then estimated ones; one for each mesh
    std::vector<FoundPlan> front; ///< that no other beats in step time, memory, chips and price at once
    std::vector<TemplateScore> templates;
    std::vector<OtherChoice> others;
    bool areAnswersSimulated
        = false; ///< `front`, `templates`, `others` and `memoryNotes` are of simulated steps, else of estimates
    std::optional<double> secondsPerGib = {}; ///< what a step would gain for each GiB more on a device; nothing: not known
    std::vector<std::string> memoryNotes; ///< the same in words
    std::vector<std::string> whyNone; ///< why no layout is legal, where fixed choices exclude all
    std::vector<std::string> changes; ///< that would make a plan fit, when none does
    std::vector<std::string> assumptions;
    std::int64_t simulated = 0; ///< layouts
    std::vector<std::string> notSimulated = {}; ///< layouts that were not, though they are told of or came near it, and why
    double lowerBoundSeconds = 0.0; ///< no plan of the space has a shorter step; `isGapSimulated` says which. 0: not known
    double gap = 0.0; ///< (best - lower bound) / best
    bool isGapSimulated = false; ///< of simulated steps, else of the estimate's
    std::int64_t floors = 0; ///< layouts of which parts were simulated, for the bound
    std::int64_t candidates = 0;
    std::int64_t pruned = 0; ///< never estimated in full: by a bound of their memory or their time
    std::int64_t prunedByMemory = 0; ///< of them
    bool complete = true; ///< false: stopped before all was looked at or pruned
    double wallSeconds = 0.0; ///< measured
    double firstPlanSeconds = 0.0; ///< measured: until the first plan that fits
};

/// What is said where a machine has no price: none is made up.
inline constexpr const char* kNoPrice
    = "no price: give one with --price, or as dollars_per_hour of the chip in a hardware file, to compare by money too";

/// Dollars of one step.
inline double dollarsOf(double seconds, std::int64_t chips, double dollarsPerChipHour)
{
    return seconds / 3600.0 * static_cast<double>(chips) * dollarsPerChipHour;
}

/// How far a search is.
struct SearchProgress {
    std::int64_t looked = 0;
    std::int64_t candidates = 0;
    double bestSeconds = 0.0; ///< 0: none yet
    double lowerBoundSeconds = 0.0;
    std::size_t simulated = 0; ///< layouts, behind the search
};

struct SearchOptions {
    std::size_t top = 5; ///< meshes that are told of; with `simulate`, that are tried
    unsigned threads = 0; ///< 0: one for each core
    std::stop_token stop = {}; ///< asked, by somebody or by the clock (TimedStop): what there is so far
    std::function<void(const SearchProgress&)> progress = {};
    PlanSimulator simulate
        = {}; ///< of a transformer's plans; null: the plans of its quickest meshes by the estimate are all that is told
    bool explains
        = true; ///< with `simulate`: templates, and plans with more and less memory are simulated too, however long they take
    FloorSimulator floor
        = {}; ///< with `simulate`: what a bound of simulated steps is made of (plan_proof.h); null: there is none
    PassSimulator pass = {}; ///< with `gap`, for closer bounds; null: they are of computing alone
    std::optional<double> gap = {}; ///< with `floor`: plans are simulated until no other can be quicker by more than this share
    LayerTimer layerTime = {}; ///< what estimates of layers with experts or states are held against; null: they stand as they are
    std::vector<MeshAxis> mesh = {}; ///< of a program's search: this one alone; empty: all meshes
    std::optional<std::chrono::steady_clock::time_point> deadline = {}; ///< no simulation begins that would end behind it
};

} // namespace meshwright::sim
