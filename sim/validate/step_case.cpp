// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/step_case.h"

#include "core/support/pattern.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

namespace meshwright::sim {

namespace {

constexpr double kImbalance = 1.1; ///< tokens of the busiest rank over the mean where routing is trained and nothing is said

bool holds(const std::string& text, const char* part)
{
    return text.find(part) != std::string::npos;
}

std::int64_t whole(const Record& record, const char* path, std::int64_t otherwise)
{
    return static_cast<std::int64_t>(std::llround(record.numberOr(path, static_cast<double>(otherwise))));
}

MathFormat formatOf(const std::string& dtype)
{
    if (holds(dtype, "fp4"))
        return MathFormat::Fp4;
    if (holds(dtype, "fp8") || holds(dtype, "float8") || holds(dtype, "current scaling"))
        return MathFormat::Fp8;
    if (holds(dtype, "int8"))
        return MathFormat::Int8;
    if (holds(dtype, "fp16"))
        return MathFormat::Fp16;
    if (!holds(dtype, "bf16") && (holds(dtype, "fp32") || holds(dtype, "f32")))
        return MathFormat::Fp32;
    return MathFormat::Bf16;
}

Result<const Chip*> chipOf(const Record& record, const Catalogue& catalogue)
{
    // The part that a topology names (`V100-SXM2-16GB`) beats the system's key.
    static const Pattern kPart(R"(([A-Z]+\d+-SXM\d*-\d+)GB)", Pattern::Letters::InEitherCase);
    if (const auto part = kPart.firstIn(record.text("topology"))) {
        if (const auto found = catalogue.find(lowerCase("nvidia-" + part->groups[1] + "gb")))
            return found->chip;
    }
    const std::string name = record.text("system");
    if (const auto found = catalogue.find(name))
        return found->chip;
    // Words in another order or with more than the key: the shortest chip of the catalogue that has all letters and figures of the first words.
    std::vector<std::string> words;
    static const Pattern kWord(R"([a-z]+\d+[a-z]*|\d+gb?|sxm\d*|v\d+[a-z]*|hbm\d*e?|\d+w|pcie)");
    static const Pattern kApart(R"((\d)\s+gb)");
    for (const Pattern::Match& word : kWord.allIn(kApart.replacedIn(lowerCase(name), "$1gb")))
        words.push_back(word.groups[0]);
    for (std::size_t count = words.size(); count > 0; --count) {
        const Chip* shortest = nullptr;
        for (const Chip& chip : catalogue.chips()) {
            const bool all = std::all_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count),
                [&](const std::string& word) { return holds(chip.key, word.c_str()); });
            if (all && (shortest == nullptr || chip.key.size() < shortest->key.size()))
                shortest = &chip;
        }
        if (shortest != nullptr)
            return shortest;
    }
    return lacking(fmt::format("the catalogue has no chip \"{}\"", name));
}

std::vector<std::int64_t> sliceOf(const std::string& topology, std::int64_t chips)
{
    for (const std::vector<std::int64_t>& sizes : sizesIn(topology)) {
        if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()) == chips)
            return sizes;
    }
    return {};
}

Result<Done> readModel(const Record& record, const StackTraits& traits, TrainingPlan& plan)
{
    TransformerConfig& model = plan.model;
    model.name = "record";
    for (const char* path : {"model.layers", "model.hidden", "model.heads", "model.seq"}) {
        if (!record.number(path))
            return lacking(fmt::format("the source gives no {}", std::string(path).substr(6)));
    }
    model.layers = whole(record, "model.layers", 0);
    model.hidden = whole(record, "model.hidden", 0);
    model.heads = whole(record, "model.heads", 1);
    model.keyValueHeads = whole(record, "model.kv_heads", model.heads);
    model.headDim = whole(record, "model.head_dim", model.hidden / std::max<std::int64_t>(1, model.heads));
    model.ffn = whole(record, "model.ffn", 4 * model.hidden);
    model.gatedFfn = record.numberOr("model.gated_mlp", 0.0) != 0.0;
    model.vocabulary = whole(record, "model.vocab", 50304);
    model.tiedEmbeddings = record.numberOr("model.tied_embeddings", model.gatedFfn ? 0.0 : 1.0) != 0.0;
    plan.work.sequence = whole(record, "model.seq", 0);
    model.maxPositions = plan.work.sequence;
    model.experts = whole(record, "model.experts", 0);
    model.expertsPerToken = whole(record, "model.experts_per_token", 0);
    model.expertFfn = whole(record, "model.moe_ffn", model.ffn);
    model.sharedExperts = whole(record, "model.shared_experts", 0);
    if (model.experts > 0 && record.number("model.moe_layers"))
        model.denseLayers = std::max<std::int64_t>(0, model.layers - whole(record, "model.moe_layers", model.layers));
    if (record.number("model.dense_layers"))
        model.denseLayers = whole(record, "model.dense_layers", 0);
    model.slidingWindow = whole(record, "model.window", 0);
    plan.details.windowLayers = whole(record, "model.window_layers", 0);
    plan.details.sharedFfn = whole(record, "model.shared_ffn", 0);
    plan.details.queryRank = whole(record, "model.q_lora_rank", 0);
    plan.details.keyValueRank = whole(record, "model.kv_lora_rank", 0);
    plan.details.ropeHeadDim = whole(record, "model.qk_rope_head_dim", 0);
    plan.details.valueHeadDim = whole(record, "model.v_head_dim", 0);
    if (record.number("model.qk_nope_head_dim"))
        model.headDim = whole(record, "model.qk_nope_head_dim", model.headDim);
    // Gated models are of LLaMA's kind: RMS norms, rotary positions, no biases. The others are of GPT's.
    model.norm = model.gatedFfn ? NormKind::RmsNorm : NormKind::LayerNorm;
    model.position = model.gatedFfn                 ? PositionKind::Rotary
        : record.text("model.positions") == "alibi" ? PositionKind::None
                                                    : PositionKind::Learned;
    model.activation = model.gatedFfn ? TransformerActivation::Silu : TransformerActivation::GeluTanh;
    model.attentionBias = model.outputBias = model.ffnBias = !model.gatedFfn;
    plan.details.dropout = traits.dropout && !model.gatedFfn;
    plan.details.parallelBlock = traits.parallelBlock;
    plan.details.dispatchesByProduct = traits.dispatchesByProduct;
    return Done{};
}

void readWork(const Record& record, const StackTraits& traits, TrainingWork& work)
{
    const std::string dtype = lowerCase(record.text("dtype"));
    work.format = formatOf(dtype);
    if (holds(dtype, "rowwise"))
        work.recipe = Fp8Recipe::Rowwise;
    work.activationFormat = holds(dtype, "fp16") ? MathFormat::Fp16 : MathFormat::Bf16;
    const auto stated = recomputationInWords(record.text("recompute"));
    work.recompute = stated ? *stated : recomputationOf(traits.recompute).value_or(Recomputation{});
    work.attention = traits.attention;
    work.fusedNorms = traits.fusedNorms;
    work.fusedRotary = traits.fusedRotary;
    work.fusedElementwise = traits.fusedElementwise;
    work.lossKernels = traits.lossKernels;
    const std::string software = lowerCase(record.text("software"));
    if ((traits.compilesNarrow && bytesPerElement(work.format) <= 1.0) || record.numberOr("compile", 0.0) != 0.0
        || holds(software, "compile") || holds(lowerCase(record.text("notes")), "torch.compile")) {
        work.fusedNorms = work.fusedRotary = work.fusedElementwise = true;
        work.lossKernels = LossKernels::Fused;
    }
    // Software that names its kernels.
    const auto at = software.find("kernel: ");
    if (at == std::string::npos || at + 8 >= software.size())
        return;
    const std::string kernel = software.substr(at + 8);
    work.attention = holds(kernel, "attention2") ? AttentionKernel::Flash2
        : holds(kernel, "flash")                 ? AttentionKernel::Flash1
        : holds(kernel, "fused")                 ? AttentionKernel::FusedSoftmax
        : holds(kernel, "torch")                 ? AttentionKernel::Unfused
                                                 : traits.attention;
    work.fusedNorms = holds(kernel, "rms");
}

Result<Done> readLayout(const Record& record, const StackTraits& traits, const Chip& chip, StepCase& stepCase, TrainingPlan& plan)
{
    ParallelLayout& layout = plan.layout;
    const auto degree = [&](const char* name) {
        return std::max<std::int64_t>(1, whole(record, (std::string("parallel.") + name).c_str(), 1));
    };
    layout.tp = degree("tp");
    layout.pp = degree("pp");
    layout.cp = degree("cp");
    layout.ep = degree("ep");
    layout.slices = degree("slices");
    const auto chips = whole(record, "chips", 0);
    if (chips < 1)
        return lacking("the source gives no number of chips");
    std::int64_t devices = chips;
    if (chip.chipClass == ChipClass::Tpu && chip.devicesPerChip > 1) {
        devices *= chip.devicesPerChip;
        if (layout.cp > 1)
            layout.cp *= chip.devicesPerChip;
    }
    const std::int64_t others = layout.tp * layout.pp * layout.cp;
    if (devices % others != 0)
        return lacking(fmt::format("{} devices are not divisible by tp x pp x cp = {}", devices, others));
    layout.dp = devices / others;
    layout.zeroStage = static_cast<int>(
        record.numberOr("parallel.zero_stage", record.number("parallel.fsdp_shard_degree") ? 3.0 : traits.zeroStage));
    const auto shard = whole(record, "parallel.fsdp_shard_degree", 0);
    if (shard > 0)
        layout.shardDegree = std::clamp<std::int64_t>(shard * (devices / chips), 1, layout.dp * layout.cp);
    else if (layout.slices > 1)
        layout.shardDegree = std::max<std::int64_t>(1, layout.dp * layout.cp / layout.slices);
    if (layout.shardDegree > 0 && layout.dp * layout.cp % layout.shardDegree != 0)
        layout.shardDegree = 0;
    layout.sequenceParallel = layout.tp > 1
        && record.numberOr("parallel.sequence_parallel",
               record.numberOr("parallel.megatron_sequence_parallel", traits.sequenceParallel ? 1.0 : 0.0))
            != 0.0;
    layout.asyncTensorParallel = record.numberOr("parallel.async_tp", traits.asyncTensorParallel ? 1.0 : 0.0) != 0.0;
    layout.dispatchesOnceAHost = traits.dispatchesOnceAHost;
    layout.gathersContext = traits.gathersContext;
    layout.gathersNarrow = traits.gathersNarrow;
    const std::string schedule = lowerCase(record.text("parallel.schedule"));
    layout.virtualStages = degree("virtual_pipeline");
    if (layout.pp == 1)
        layout.virtualStages = 1;
    layout.schedule = layout.virtualStages > 1 ? PipelineOrder::Interleaved
        : holds(schedule, "gpipe")             ? PipelineOrder::GPipe
                                               : PipelineOrder::OneForwardOneBackward;
    ClusterChoice& cluster = stepCase.cluster;
    cluster.devices = devices;
    cluster.slices = layout.slices;
    if (chip.chipClass == ChipClass::Tpu)
        cluster.slice = sliceOf(record.text("topology"), chips / layout.slices);
    const double perHost = record.numberOr("per_node", std::min(8.0, static_cast<double>(chip.fastDomain.value_or(8))));
    if (chip.chipClass == ChipClass::Gpu)
        cluster.networkBytesPerSecond = networkRateOf(record.text("topology"), perHost);
    // NCCL reads a GPU's memory through InfiniBand's and RoCE's verbs (GPUDirect); Omni-Path has no such path in it.
    cluster.stagesThroughHost = holds(lowerCase(record.text("topology")), "omni-path");
    if (record.number("per_node"))
        cluster.fastDomain = static_cast<std::int64_t>(perHost);
    return Done{};
}

/// The microbatches, chunks and policies of recomputation that the source may mean.
void addPlans(const Record& record, const Chip& chip, const TrainingPlan& plan, StepCase& stepCase)
{
    const ParallelLayout& layout = plan.layout;
    const double perRank = static_cast<double>(plan.work.globalBatch) / static_cast<double>(layout.dp);
    std::vector<double> sizes;
    if (chip.chipClass == ChipClass::Tpu && layout.pp == 1 && !record.number("parallel.gradient_accumulation_steps"))
        sizes = {perRank};
    else if (const auto stated = record.number("microbatch_sequences"))
        sizes = {std::min(*stated, std::max(perRank, 1e-3))};
    else if (perRank <= 1.0)
        sizes = {perRank};
    else {
        for (const double size : {1.0, 2.0, 4.0, 8.0, 16.0}) {
            if (size <= perRank)
                sizes.push_back(size);
        }
    }
    std::vector<std::int64_t> chunks = {layout.virtualStages};
    const bool unstated = layout.pp > 1 && layout.virtualStages == 1 && !record.number("parallel.virtual_pipeline")
        && holds(lowerCase(record.text("parallel.schedule")), "interleaved");
    for (const std::int64_t more : {2, 3, 4, 8}) {
        if (unstated && (plan.model.layers % (layout.pp * more) == 0 || (plan.model.layers + 2) % (layout.pp * more) == 0))
            chunks.push_back(more);
    }
    std::vector<Recomputation> policies = {plan.work.recompute};
    if (lowerCase(record.text("recompute")).starts_with("selective or none"))
        policies.push_back(Recomputation{});
    for (const double size : sizes) {
        for (const std::int64_t count : chunks) {
            for (const Recomputation& policy : policies) {
                TrainingPlan one = plan;
                one.work.microbatch = size;
                one.work.recompute = policy;
                one.layout.virtualStages = count;
                if (count > 1)
                    one.layout.schedule = PipelineOrder::Interleaved;
                stepCase.plans.push_back(std::move(one));
            }
        }
    }
}

/// Rows of an expert over the mean, where tokens beyond are dropped: a field, or words among the notes.
double capacityOf(const Record& record)
{
    if (const auto stated = record.number("model.capacity_factor"))
        return *stated;
    static const Pattern kWords(R"(capacity factor\s+(\d+(?:\.\d+)?))", Pattern::Letters::InEitherCase);
    const auto found = kWords.firstIn(record.text("notes"));
    return found ? parseNumber(found->groups[1]).value_or(0.0) : 0.0;
}

void readMeasured(const Record& record, const TrainingPlan& plan, StepCase& stepCase)
{
    const std::string outcome = record.text("measured.outcome");
    const double tokens = static_cast<double>(plan.work.globalBatch) * static_cast<double>(plan.work.sequence);
    stepCase.flops = tokens * modelFlopsPerToken(plan.model, plan.work.sequence, AttentionCount::Full);
    if (outcome == "out_of_memory")
        stepCase.outOfMemory = true;
    if (!outcome.empty())
        return;
    if (const auto seconds = record.number("measured.step_time_s"))
        stepCase.measuredSeconds = seconds;
    else if (const auto derived = record.number("derived.step_time_s"))
        stepCase.measuredSeconds = derived;
    else if (const auto rate = record.number("measured.tokens_per_s_per_chip"))
        stepCase.measuredSeconds = tokens / (*rate * record.numberOr("chips", 1.0));
    else if (const auto tera = record.number("measured.tflops_per_chip"))
        stepCase.measuredSeconds = stepCase.flops / (*tera * 1e12 * record.numberOr("chips", 1.0));
    if (stepCase.measuredSeconds)
        stepCase.outOfMemory = false;
}

} // namespace

std::optional<Recomputation> recomputationInWords(const std::string& words)
{
    const std::string text = lowerCase(words);
    if (text.empty() || text.starts_with("not stated"))
        return std::nullopt;
    if (text.starts_with("none"))
        return recomputationOf("none");
    if (text.starts_with("selective (per op"))
        return recomputationOf("selective_op");
    if (text.starts_with("selective"))
        return recomputationOf("selective");
    if (text.starts_with("full"))
        return recomputationOf("full");
    if (text.starts_with("qkv_proj offloaded"))
        return recomputationOf("qkv_proj_offloaded");
    if (text.starts_with("minimal_with_context"))
        return recomputationOf("minimal_with_context");
    if (text.starts_with("minimal"))
        return recomputationOf(holds(text, "offload") ? "minimal_offloaded" : "minimal");
    if (text.starts_with("custom")) {
        // A list of what is kept, on the device or the host; the rest is computed again.
        Recomputation recomputation = *recomputationOf("full");
        if (holds(text, "qkv"))
            recomputation.qkv = 0.0;
        if (holds(text, "out"))
            recomputation.attentionOut
                = holds(text, "out and qkv") || holds(text, "qkv/out") || holds(text, "out_proj") ? 0.0 : 1.0;
        if (holds(text, "context"))
            recomputation.attention = 0.0;
        if (holds(text, "mlpwo"))
            recomputation.ffnOut = 0.0;
        if (holds(text, "mlpwi"))
            recomputation.ffnIn = 0.0;
        recomputation.layerInputOnly = recomputation.qkv > 0.0 && recomputation.ffnIn > 0.0 && recomputation.ffnOut > 0.0;
        recomputation.offloaded = holds(text, "offload") ? 1.0 : 0.0;
        recomputation.offloadsInput = recomputation.offloaded > 0.0;
        return recomputation;
    }
    return recomputationOf(text);
}

std::optional<double> networkRateOf(const std::string& topology, double devicesPerHost)
{
    static const Pattern kSeveral(
        R"((\d+)\s*x\s*(?:HDR\s+|NDR\s+)?(\d+)\s*Gb/s[^,;()]*per node)", Pattern::Letters::InEitherCase);
    static const Pattern kLinks(
        R"((\d+)\s+(?:x\s+)?(?:[A-Za-z-]+\s+)?(\d+)\s*Gb/s[^,;()]*per node)", Pattern::Letters::InEitherCase);
    static const Pattern kEach(R"((\d+)\s*Gb/s[^,;()]*per GPU)", Pattern::Letters::InEitherCase);
    static const Pattern kNode(R"((\d+)\s*Gb/s[^,;()]*(?:per node|between nodes))", Pattern::Letters::InEitherCase);
    std::optional<Pattern::Match> found;
    const auto isFound = [&](const Pattern& pattern) { return (found = pattern.firstIn(topology)).has_value(); };
    const auto figure = [&](std::size_t group) { return static_cast<double>(parseInteger(found->groups[group]).value_or(0)); };
    double gigabits = 0.0;
    if (isFound(kSeveral) || isFound(kLinks))
        gigabits = figure(1) * figure(2) / devicesPerHost;
    else if (isFound(kEach))
        gigabits = figure(1);
    else if (isFound(kNode))
        gigabits = figure(1) / devicesPerHost;
    return gigabits > 0.0 ? std::optional(gigabits * 1e9 / 8.0) : std::nullopt;
}

std::vector<std::vector<std::int64_t>> sizesIn(const std::string& topology)
{
    static const Pattern kSizes(R"((\d+)x(\d+)(?:x(\d+))?)");
    constexpr std::int64_t kLongestSide = 1 << 20;
    std::vector<std::vector<std::int64_t>> found;
    for (const Pattern::Match& match : kSizes.allIn(topology)) {
        std::vector<std::int64_t> sizes;
        for (std::size_t i = 1; i < match.groups.size() && !match.groups[i].empty(); ++i)
            sizes.push_back(parseInteger(match.groups[i]).value_or(0));
        if (std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 1 && size <= kLongestSide; }))
            found.push_back(std::move(sizes));
    }
    return found;
}

Result<StepCase> stepCaseOf(const Record& record, const Catalogue& catalogue, const Calibration& calibration)
{
    StepCase stepCase;
    const auto chip = chipOf(record, catalogue);
    if (!chip)
        return chip.error();
    stepCase.chip = *chip;
    stepCase.stack = calibration.stackOf(record.file, record.text("software"));
    const StackTraits& traits = calibration.traits(stepCase.stack);
    const std::string outcome = record.text("measured.outcome");
    if (!outcome.empty() && outcome != "out_of_memory")
        return lacking(fmt::format("it did not run: {}", outcome));
    TrainingPlan plan;
    const auto model = readModel(record, traits, plan);
    if (!model)
        return model.error();
    readWork(record, traits, plan.work);
    const auto layout = readLayout(record, traits, **chip, stepCase, plan);
    if (!layout)
        return layout.error();
    double batch = record.numberOr("global_batch_sequences", 0.0);
    if (batch <= 0.0 && record.number("local_batch"))
        batch = *record.number("local_batch") * static_cast<double>(plan.layout.dp);
    if (batch <= 0.0 && record.number("microbatch_sequences"))
        batch = *record.number("microbatch_sequences") * static_cast<double>(plan.layout.dp)
            * record.numberOr("parallel.gradient_accumulation_steps", 1.0);
    if (batch < 1.0)
        return lacking("the source gives no batch");
    plan.work.globalBatch = std::llround(batch);
    plan.layout.expertImbalance = plan.model.experts > 0 && !holds(record.text("notes"), "force-balanced") ? kImbalance : 1.0;
    plan.details.expertCapacity = capacityOf(record);
    addPlans(record, **chip, plan, stepCase);
    const auto checked = checkPlan(stepCase.plans.front());
    if (!checked)
        return checked.error();
    readMeasured(record, plan, stepCase);
    if (!stepCase.measuredSeconds && !stepCase.outOfMemory)
        return lacking("the source gives no time");
    return stepCase;
}

} // namespace meshwright::sim
