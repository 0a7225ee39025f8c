// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/models/transformer_config.h"
#include "sim/hardware/machine.h"
#include "sim/search/search.h"
#include "sim/transformer/step.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// What is to be trained.
struct SearchWork {
    TransformerConfig model;
    std::int64_t sequence = 0; ///< tokens
    std::int64_t globalBatch = 0; ///< sequences of one step
    MathFormat format = MathFormat::Bf16;
    Fp8Recipe recipe = Fp8Recipe::None; ///< of 8-bit products
    bool masters = false; ///< parameters have 16 bits, and 32-bit copies that the optimizer updates
    std::vector<std::string> ignoredKeys = {}; ///< of the model's file: numbers and flags whose meaning is not known
};

/// Where.
struct SearchMachine {
    std::string name; ///< "h100x64"
    Chip chip;
    std::int64_t chips = 0;
    ClusterChoice cluster;
    std::string stack = {}; ///< as a study calls it; empty: the usual one on the chip
    StackConstants constants;
    StackTraits traits;
    std::optional<double> dollarsPerChipHour = {};
    double layerFactor = 1.0; ///< what a layer's computing takes, of what the estimate says
    std::shared_ptr<const Machine> links = {}; ///< of one slice, to tell on which links mesh axes lie; null: not told
};

/// Chips of a host, or of what else shares the fast links.
std::int64_t fastChips(const SearchMachine& machine);

/// The most chips of a slice; nothing where a chip has no slices, or none is the largest.
std::optional<std::int64_t> largestSlice(const Chip& chip);

/// Whether slices are as large as the machine's, or the network between its hosts is known.
bool canBeBuilt(const SearchMachine& machine);

/// A choice that is not the search's to make: "tensor" and "8", "recompute" and "full".
struct FixedChoice {
    std::string name; ///< one of `fixedChoiceNames`
    std::string value;
};
/// The choices where "host" is said for a number: as many ranks as the machine's fast links join, over what tensors and contexts are split.
std::vector<FixedChoice> onMachine(std::vector<FixedChoice> choices, const SearchMachine& machine);
/// data, fsdp, expert, context, tensor, pipeline, microbatch, chunks, zero, recompute, schedule.
const std::vector<std::string>& fixedChoiceNames();

/// Whether tensor parallelism of this degree splits the heads and the feed-forward width of all layers evenly.
bool splitsHeads(const TransformerConfig& model, std::int64_t tensor);

/// What a plan splits along an axis of its mesh, from major to minor.
enum class AxisRole : std::uint8_t { Pipeline, Data, Fsdp, Expert, Context, Tensor };
inline constexpr std::array kAxisRoles
    = {AxisRole::Pipeline, AxisRole::Data, AxisRole::Fsdp, AxisRole::Expert, AxisRole::Context, AxisRole::Tensor};
/// What plans call such an axis: "pipeline", "data", "fsdp" and so on.
const char* axisRoleName(AxisRole role);

/// One layout of a space: degrees and choices. Sizes of the mesh: pipeline x data x fsdp x expert x context x tensor = devices, of which expert is
/// taken from fsdp, or else from data.
struct Candidate {
    std::int32_t pp = 1;
    std::int32_t dp = 1; ///< data x fsdp x expert
    std::int32_t fsdp = 1; ///< of dp, with ZeRO stage 3: over how many weights are split (experts among them)
    std::int32_t ep = 1;
    std::int32_t cp = 1;
    std::int32_t tp = 1;
    std::int32_t chunks = 1;
    std::int32_t microbatch = 1;
    std::uint8_t zero = 0;
    std::uint8_t recompute = 0; ///< index into TransformerSpace::recomputations
    PipelineOrder schedule = PipelineOrder::OneForwardOneBackward;
    bool sequenceParallel = false;
    bool ulysses = false;
    std::uint32_t layer = 0; ///< index of the costs that it shares with others
    double seconds = 0.0; ///< no less is possible in the cost model
    double bytes = 0.0; ///< likewise
};

/// Every legal layout of one model on one machine, with proven bounds of time and memory.
///
/// Legal: tensor divides heads and feed-forward width, context half the sequence, pipeline (with chunks) cuts layers evenly or leaves two short
/// ones at the ends, data divides the batch, expert the experts; microbatches are whole, and come in rounds of the stages where they interleave.
///
/// Bounds: a stage does its microbatches one after the other, and the pipeline fills before and empties behind it; layers take what the cost model
/// gives them; only what hides behind computation is left out. Memory: states and kept activations of the first and of the last stage.
class TransformerSpace {
public:
    /// Preconditions: sizes of `work` >= 1, `transformerProblems` has nothing against the model, the machine has devices.
    /// Stops early, `cutShort`, when `stop` asks.
    TransformerSpace(const SearchWork& work, const SearchMachine& machine, const std::vector<FixedChoice>& fixed,
        unsigned threads, const std::stop_token& stop);

    const std::vector<Candidate>& candidates() const { return m_candidates; } ///< by their bound of time
    bool cutShort() const { return m_cutShort; }
    const SearchMachine& machine() const { return m_machine; }
    const SearchWork& work() const { return m_work; }

    /// What the estimate says of one more sequence's computing in all layers, on one device: seconds, forward and backward, without `layerFactor`.
    static double layerSeconds(const SearchWork& work, const SearchMachine& machine);

    /// The plan of a candidate, for the cost model. `plan` comes from `emptyPlan`, and may be used again.
    TrainingPlan emptyPlan() const;
    void apply(const Candidate& candidate, TrainingPlan& plan) const;

    EnumeratedSpace described() const;
    /// Parts of a sequence whose logits are made one after the other: 1, but for logits that would fill much of a device's memory.
    std::int64_t lossChunks(const Candidate& candidate) const;
    const char* recomputeName(const Candidate& candidate) const { return m_recomputations[candidate.recompute].first; }

private:
    /// What candidates have in common: times of a layer's passes and of the ends, and what is kept.
    struct SharedCost {
        double forward = 0.0;
        double backward = 0.0;
        double embeddingForward = 0.0;
        double embeddingBackward = 0.0;
        double headForward = 0.0;
        double headBackward = 0.0;
        double keptBytes = 0.0;
        double logitBytes = 0.0;
    };
    struct Chunking {
        std::int32_t chunks;
        PipelineOrder schedule;
    };
    struct Fixed {
        std::map<std::string, std::int64_t, std::less<>> numbers;
        std::string recompute;
        std::string schedule;
        bool allows(const char* name, std::int64_t value) const;
    };

    void enumerate(const std::stop_token& stop);
    void addLayouts(Candidate candidate, const std::stop_token& stop);
    void addStates(Candidate candidate, std::int64_t microbatches);
    void addChunks(const Candidate& candidate, std::int64_t microbatches);
    std::uint32_t sharedIndex(const Candidate& candidate, std::int64_t microbatches);
    SharedCost sharedCost(const Candidate& candidate, TrainingPlan& plan, const StepModel& model) const;
    void bound(Candidate& candidate, TrainingPlan& plan, const StepModel& model) const;
    /// No pipeline of these passes and ends takes less.
    double pipelineSeconds(const TrainingPlan& plan, const SharedCost& shared, double layerSeconds) const;

    SearchWork m_work;
    SearchMachine m_machine;
    double m_capacityBytes; ///< of a device
    Fixed m_fixed;
    std::vector<std::pair<const char*, Recomputation>> m_recomputations;
    std::vector<Candidate> m_candidates;
    std::vector<Candidate> m_sharedOf; ///< a candidate for each of m_shared
    std::vector<SharedCost> m_shared;
    std::map<std::array<std::int32_t, 9>, std::uint32_t> m_sharedIndex;
    bool m_cutShort = false;
};

/// How long a candidate's axis of a role is.
std::int64_t axisSize(const Candidate& candidate, AxisRole role);

/// The mesh of a candidate, major to minor, without axes of size 1 (but one, when all are).
std::vector<MeshAxis> meshOf(const Candidate& candidate);

} // namespace meshwright::sim
