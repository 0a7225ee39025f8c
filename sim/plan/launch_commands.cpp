// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/launch_commands.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/cost/gradient_sums.h"
#include "sim/plan/maxtext_values.h"
#include "sim/search/search_request.h"
#include "sim/transformer/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

namespace meshwright::sim {

namespace {

/// The policies of MaxText that have the names of `recomputationOf`.
constexpr auto kMaxTextPolicies = std::to_array<const char*>(
    {"full", "minimal", "minimal_with_context", "save_dot_with_context_except_mlp", "save_dot_except_mlpwi",
        "save_dot_except_mlp", "save_qkv_proj", "save_out_proj", "qkv_proj_offloaded", "minimal_offloaded"});

/// A framework's options for what optimizers have, each with what stands before its value. Empty: it has none.
struct OptimizerNames {
    const char* clipNorm;
    const char* weightDecay = "";
    const char* beta1 = "";
    const char* beta2 = "";
    const char* epsilon = "";
};

/// What commands are made of.
class Launch {
public:
    Launch(const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine, const LaunchChoices& choices)
        : m_plan(plan)
        , m_c(work.model)
        , m_work(work)
        , m_devices(machine.cluster.devices)
        , m_choices(choices)
        , m_stack(machine.stack)
    {
        const std::int64_t chips = chipsOfHost(machine.chips, fastChips(machine));
        m_perHost = chips * machine.chip.devicesPerChip;
        m_hosts = std::max<std::int64_t>(1, m_devices / std::max<std::int64_t>(1, m_perHost));
        m_narrowGradients = choices.narrowGradients.value_or(
            work.masters && sumsGradientsIn16Bits(machine.traits, work.format != MathFormat::Fp16));
        m_isTpu = machine.chip.chipClass == ChipClass::Tpu;
        m_parts = m_isTpu ? machine.cluster.slices : m_hosts;
    }

    LaunchCommand maxText();
    LaunchCommand torchTitan();
    LaunchCommand megatron();
    LaunchCommand accelerate();

    /// Why no layout splits the sequence so; empty: one does.
    std::string unevenSequence() const
    {
        const std::int64_t parts = m_plan.sequenceParallel ? axis("tensor") * axis("context") : 1;
        return m_work.sequence % parts == 0
            ? std::string()
            : fmt::format("sequence parallelism over tensor {}{} does not divide sequences of {} tokens", axis("tensor"),
                axis("context") > 1 ? fmt::format(" and context {}", axis("context")) : std::string(), m_work.sequence);
    }

private:
    std::int64_t axis(std::string_view name) const
    {
        const auto found
            = std::find_if(m_plan.mesh.begin(), m_plan.mesh.end(), [&](const MeshAxis& one) { return one.name == name; });
        return found == m_plan.mesh.end() ? 1 : found->size;
    }
    std::int64_t dataRanks() const { return axis("data") * axis("fsdp") * axis("expert"); }
    bool isRecompute(std::string_view policy) const { return m_plan.recompute == policy; }
    /// Megatron-LM makes norms and dense blocks again, and keeps the rest.
    bool keepsMegatronContext() const { return isRecompute("save_dot_with_context_except_mlp") && m_c.experts == 0; }
    std::int64_t microbatch() const { return std::llround(m_plan.microbatch); }
    std::int64_t microbatches() const { return std::llround(m_plan.pipeline.microbatches); }
    std::string torchrun() const { return fmt::format("torchrun --nnodes {} --nproc-per-node {}", m_hosts, m_perHost); }
    bool hasLlamasBlocks() const;
    std::string maxTextModel() const;
    Result<std::string> maxTextPolicy() const;
    std::string missingInTorchTitan() const;
    Result<std::string> titanChunks() const;
    std::string missingInMegatron() const;
    std::string optimizerOptions(const OptimizerNames& names) const;
    static LaunchCommand none(const char* framework, std::string why) { return {framework, {}, std::move(why)}; }

    const FoundPlan& m_plan;
    const TransformerConfig& m_c;
    const SearchWork& m_work;
    std::int64_t m_devices;
    const LaunchChoices& m_choices;
    std::string m_stack;
    std::int64_t m_perHost = 1;
    std::int64_t m_hosts = 1;
    std::int64_t m_parts = 1; ///< slices, or hosts of GPUs: what MaxText's dcn axes go over
    bool m_isTpu = false;
    bool m_narrowGradients = false; ///< summed in 16 bits
};

/// Norms, gates, rotations and heads as Llama has them, or Mixtral with its experts.
bool Launch::hasLlamasBlocks() const
{
    const bool isPlainAttention = m_c.mixer == MixerKind::Attention && m_c.keyValueRank == 0 && m_c.slidingWindow == 0
        && m_c.rotaryFraction == 1.0 && !m_c.queryKeyNorm && !m_c.attentionBias && !m_c.outputBias && m_c.attentionSoftcap == 0.0;
    const bool isPlainBlock = m_c.gatedFfn && m_c.activation == TransformerActivation::Silu && !m_c.ffnBias && !m_c.parallelBlock
        && !m_c.postNorms && !m_c.ffnBesideExperts;
    return isPlainAttention && isPlainBlock && m_c.norm == NormKind::RmsNorm && m_c.position == PositionKind::Rotary
        && m_c.logitSoftcap == 0.0 && !m_c.embeddingScale && m_c.sharedExperts == 0 && (m_c.experts == 0 || m_c.denseLayers == 0);
}

/// What Megatron-LM has no option for; empty: it has the model.
std::string Launch::missingInMegatron() const
{
    if (m_c.gatedFfn && m_c.activation != TransformerActivation::Silu)
        return "gated blocks of another function than SiLU";
    if (!m_c.gatedFfn && m_c.activation != TransformerActivation::Gelu && m_c.activation != TransformerActivation::GeluTanh)
        return "blocks of another function than GELU";
    if (m_c.parallelBlock)
        return "attention beside the feed-forward block";
    if (m_c.postNorms || m_c.embeddingScale || m_c.attentionSoftcap > 0.0 || m_c.logitSoftcap > 0.0 || m_c.queryScale > 0.0)
        return "Gemma's norms, scales and caps";
    if (m_c.slidingWindow > 0 && m_c.slidingWindowLayers > 0)
        return "windows of some layers";
    if (m_c.ffnBesideExperts || m_c.expertHidden > 0 || m_c.outputGate || m_c.keysAsValues || m_c.compression > 0
        || m_c.outputRank > 0 || m_c.residualStreams > 0 || m_c.mixer != MixerKind::Attention)
        return "layers other than attention with a feed-forward block or experts";
    if (m_c.attentionBias != m_c.ffnBias && !(m_c.attentionBias && !m_c.ffnBias && !m_c.outputBias))
        return "biases of some products";
    const std::int64_t tensor = axis("tensor");
    if (m_c.experts > 0 && tensor > 1 && !m_plan.sequenceParallel)
        return fmt::format("experts beside tensor {} without sequence parallelism", tensor);
    if (m_c.keyValueRank == 0 && m_c.keyValueHeads % tensor != 0 && tensor % m_c.keyValueHeads != 0)
        return fmt::format(
            "tensor {}, which neither divides {} key and value heads nor is a multiple", tensor, m_c.keyValueHeads);
    const std::int64_t groups = std::max<std::int64_t>(1, m_c.keyValueHeads / tensor);
    if (const std::int64_t context = axis("context");
        m_plan.exchangesHeads && (groups % context != 0 || m_c.heads / tensor % context != 0))
        return fmt::format(
            "heads exchanged among context {}, which does not divide {} heads and {} query groups of a tensor rank", context,
            m_c.heads / tensor, groups);
    return {};
}

/// What the study's optimizer says. What it does not say is the framework's own choice.
std::string Launch::optimizerOptions(const OptimizerNames& names) const
{
    std::string text;
    const auto add = [&](const char* name, double value, double usual) {
        if (*name != '\0' && value != usual)
            text += fmt::format(" {}{:g}", name, value);
    };
    if (const UpdateChoices* update = updateChoices(m_choices.optimizer)) {
        add(names.clipNorm, update->clipNorm, 0.0);
        add(names.weightDecay, update->weightDecay, 0.0);
    }
    if (const auto* adam = std::get_if<AdamOptimizer>(&m_choices.optimizer)) {
        const AdamOptimizer usual;
        add(names.beta1, adam->beta1, usual.beta1);
        add(names.beta2, adam->beta2, usual.beta2);
        add(names.epsilon, adam->epsilon, usual.epsilon);
    }
    return text;
}

/// The model by its sizes, where its blocks are Llama's or Mixtral's; else by the name of a model file.
std::string Launch::maxTextModel() const
{
    if (!hasLlamasBlocks())
        return " model_name=MODEL";
    std::string text
        = fmt::format(" base_num_decoder_layers={} base_emb_dim={} base_num_query_heads={} base_num_kv_heads={} head_dim={} "
                      "base_mlp_dim={} vocab_size={} rope_max_timescale={:.0f}",
            m_c.layers, m_c.hidden, m_c.heads, m_c.keyValueHeads, m_c.headDim, m_c.experts > 0 ? m_c.expertFfn : m_c.ffn,
            m_c.vocabulary, m_c.rotaryBase);
    if (m_c.tiedEmbeddings)
        text += " logits_via_embedding=true";
    if (m_c.experts > 0)
        text += fmt::format(" decoder_block=mixtral num_experts={} num_experts_per_tok={} base_moe_mlp_dim={}", m_c.experts,
            m_c.expertsPerToken, m_c.expertFfn);
    return text;
}

/// `remat_policy=..` with what it keeps by name. A problem has no id: its message is why there is none.
/// Source: AI-Hypercomputer/maxtext, src/maxtext/configs/types.py (RematPolicy), layers/decoders.py (get_remat_policy), August 2026.
Result<std::string> Launch::maxTextPolicy() const
{
    for (const char* policy : kMaxTextPolicies) {
        if (isRecompute(policy))
            return "remat_policy=" + m_plan.recompute;
    }
    if (isRecompute("save_context"))
        return std::string("remat_policy=custom context=device");
    if (!isRecompute("custom"))
        return Problem{{}, fmt::format("MaxText has no remat_policy that is \"{}\"", m_plan.recompute)};
    std::string text = "remat_policy=custom";
    for (const auto& [values, where] : {std::pair{&m_choices.kept, "device"}, {&m_choices.offloaded, "offload"}}) {
        for (const std::string& value : *values) {
            const std::string tensor = maxTextTensor(value, m_c.gatedFfn);
            if (tensor.empty())
                return Problem{{}, fmt::format("MaxText's remat_policy has no name for the value {} of a layer", value)};
            text += fmt::format(" {}={}", tensor, where);
        }
    }
    return text;
}

/// Source: AI-Hypercomputer/maxtext, src/maxtext/configs/base.yml (August 2026: model, parallelism, pipeline, remat_policy).
LaunchCommand Launch::maxText()
{
    const char* name = "maxtext";
    if (m_plan.zeroStage == 1 || m_plan.zeroStage == 2)
        return none(name, "MaxText splits weights, gradients and moments together");
    if (axis("context") > 1 && m_plan.exchangesHeads && !m_isTpu)
        return none(name, "MaxText exchanges heads over the context axis (Ulysses) on TPUs only");
    const auto* sgd = std::get_if<SgdOptimizer>(&m_choices.optimizer);
    if (sgd != nullptr && sgd->momentum != 0.0)
        return none(name, "MaxText's sgd has no momentum");
    const Result<std::string> policy = maxTextPolicy();
    if (!policy)
        return none(name, policy.error().front().message);
    if (m_plan.pipeline.stages > 1 && (m_plan.pipeline.schedule == "1f1b" || m_plan.pipeline.schedule.starts_with("zb")))
        return none(name, fmt::format("MaxText has no pipeline schedule \"{}\"", m_plan.pipeline.schedule));
    std::string text = "python3 -m maxtext.trainers.pre_train.train" + maxTextModel() + (m_isTpu ? "" : " hardware=gpu");
    std::int64_t parts = m_parts; // still to be divided among axes, the outermost first
    for (const MeshAxis& axis : m_plan.mesh) {
        const std::int64_t outer = std::gcd(parts, axis.size);
        const std::int64_t inner = axis.size / outer;
        parts /= outer;
        if (parts > 1 && inner > 1) // an axis farther in would have to cross what this one does not
            break;
        if (outer > 1)
            text += fmt::format(" dcn_{}_parallelism={}", axis.name, outer);
        if (inner > 1 || axis.name == "fsdp")
            text += fmt::format(" ici_{}_parallelism={}", axis.name, inner);
    }
    if (parts > 1)
        return none(name, fmt::format("the mesh's axes do not divide into {} {}", m_parts, m_isTpu ? "slices" : "hosts"));
    if (axis("fsdp") == 1)
        text += " ici_fsdp_parallelism=1"; // it takes what is left otherwise
    const bool isPiped = m_plan.pipeline.stages > 1;
    const double passes = isPiped ? 1.0 : m_plan.pipeline.microbatches;
    text += fmt::format(" max_target_length={} per_device_batch_size={:g}", m_work.sequence,
        static_cast<double>(m_work.globalBatch) / static_cast<double>(m_devices) / passes);
    if (isPiped)
        text += fmt::format(" num_pipeline_microbatches={} num_layers_per_pipeline_stage={}", microbatches(),
            m_c.layers / std::max<std::int64_t>(1, m_plan.pipeline.stages * m_plan.pipeline.chunks));
    else if (microbatches() > 1)
        text += fmt::format(" gradient_accumulation_steps={}", microbatches());
    if (m_work.format == MathFormat::Fp8)
        text += " quantization=fp8";
    if (m_choices.narrowWeights)
        text += " weight_dtype=bfloat16";
    if (axis("context") > 1 && m_plan.exchangesHeads)
        text += " context_parallel_strategy=ulysses";
    else if (axis("context") > 1 && !m_plan.gathersContext) // all_gather unless it is said
        text += m_isTpu ? " context_parallel_strategy=ring attention=flash use_tokamax_splash=true"
                        : " context_parallel_strategy=ring";
    text += optimizerOptions({"gradient_clipping_threshold=", "adam_weight_decay=", "adam_b1=", "adam_b2=", "adam_eps="});
    if (sgd != nullptr)
        text += " opt_type=sgd";
    if (m_plan.lossChunks > 1)
        text += fmt::format(" num_vocab_tiling={}", m_plan.lossChunks);
    return {name, text + " " + *policy, {}};
}

/// The model in torchtitan's registry, by its sizes.
struct RegisteredModel {
    const char* module;
    const char* config;
    std::int64_t layers;
    std::int64_t hidden;
    std::int64_t experts;
};

/// Source: pytorch/torchtitan, torchtitan/models/*/config_registry.py (August 2026).
std::string titanModel(const TransformerConfig& model)
{
    static constexpr std::array kModels = {RegisteredModel{"llama3", "llama3_8b", 32, 4096, 0},
        RegisteredModel{"llama3", "llama3_70b", 80, 8192, 0}, RegisteredModel{"llama3", "llama3_405b", 126, 16384, 0},
        RegisteredModel{"qwen3", "qwen3_0_6b", 28, 1024, 0}, RegisteredModel{"qwen3", "qwen3_1_7b", 28, 2048, 0},
        RegisteredModel{"qwen3", "qwen3_14b", 40, 5120, 0}, RegisteredModel{"qwen3", "qwen3_32b", 64, 5120, 0},
        RegisteredModel{"qwen3", "qwen3_30b_a3b", 48, 2048, 128}, RegisteredModel{"deepseek_v3", "deepseek_v3_16b", 27, 2048, 64},
        RegisteredModel{"deepseek_v3", "deepseek_v3_671b", 61, 7168, 256},
        RegisteredModel{"gpt_oss", "gpt_oss_20b", 24, 2880, 32}, RegisteredModel{"gpt_oss", "gpt_oss_120b", 36, 2880, 128}};
    const auto isIt = [&](const RegisteredModel& one) {
        // Qwen 3 normalises heads, and both have vocabularies of their own: others of these sizes are other models.
        const bool isKind = std::string_view(one.module) == "qwen3" ? model.vocabulary == 151936 && model.queryKeyNorm
            : std::string_view(one.module) == "llama3"              ? model.vocabulary == 128256 && !model.queryKeyNorm
            : std::string_view(one.module) == "deepseek_v3"         ? model.keyValueRank > 0
                                                                    : model.slidingWindow > 0;
        return isKind && one.layers == model.layers && one.hidden == model.hidden && one.experts == model.experts;
    };
    const auto found = std::ranges::find_if(kModels, isIt);
    return found == kModels.end() ? std::string("--module MODULE --config CONFIG")
                                  : fmt::format("--module {} --config {}", found->module, found->config);
}

/// What torchtitan refuses before it trains; empty: nothing. Its layers of a pipeline's pieces are others' business.
/// Source: pytorch/torchtitan, torchtitan/distributed/parallel_dims.py, models/common/decoder.py (August 2026).
std::string Launch::missingInTorchTitan() const
{
    const std::int64_t split = m_plan.zeroStage == 3 ? axis("fsdp") * axis("expert") : m_plan.zeroStage == 2 ? dataRanks() : 1;
    if (split * axis("context") * axis("tensor") % axis("expert") != 0)
        return fmt::format(
            "torchtitan's experts go over ranks that split weights, tensors or sequences, and expert {} does not divide {}",
            axis("expert"), split * axis("context") * axis("tensor"));
    if (axis("tensor") > 1 && m_c.keyValueRank == 0 && m_c.keyValueHeads % axis("tensor") != 0)
        return fmt::format("torchtitan's tensor degree divides the key and value heads, and {} does not divide {}",
            axis("tensor"), m_c.keyValueHeads);
    if (m_c.tiedEmbeddings && axis("pipeline") > 1)
        return "torchtitan has no pipeline for tied embeddings";
    if (axis("context") > 1 && m_plan.exchangesHeads)
        return "torchtitan's context parallelism does not exchange heads (Ulysses)";
    if (axis("context") > 1 && m_c.slidingWindow > 0)
        return "torchtitan's attention with windows has no context parallelism";
    return {};
}

/// The option for layers of a pipeline's pieces; empty where torchtitan's default of two chunks a stage is the plan's. A problem has no id: its message is
/// why there is none. torchtitan counts the embedding and the head as a layer each, and rounds up.
/// Source: pytorch/torchtitan, torchtitan/distributed/pipeline_parallel.py (August 2026).
Result<std::string> Launch::titanChunks() const
{
    const std::int64_t pieces = m_plan.pipeline.stages * m_plan.pipeline.chunks;
    if (m_plan.pipeline.schedule != "interleaved" || m_plan.pipeline.chunks == 2)
        return std::string();
    const std::int64_t ofPiece = ceilDiv(m_c.layers + 2, pieces);
    if (ceilDiv(m_c.layers + 2, ofPiece) != pieces)
        return Problem{{}, fmt::format("torchtitan does not divide {} layers among {} pieces", m_c.layers, pieces)};
    return fmt::format(" --parallelism.pipeline_parallel_layers_per_stage {}", ofPiece);
}

/// Source: pytorch/torchtitan, torchtitan/config/configs.py, trainer.py, distributed/activation_checkpoint.py (August 2026).
LaunchCommand Launch::torchTitan()
{
    const char* name = "torchtitan";
    if (m_isTpu)
        return none(name, "torchtitan trains on GPUs");
    if (m_plan.zeroStage == 1)
        return none(name, "torchtitan splits gradients with moments (ZeRO-2) or weights as well (ZeRO-3)");
    if (m_work.format == MathFormat::Fp8)
        return none(name, "torchtitan's products in 8 bits are of its registered configurations, not of the line");
    // Its selective mode keeps every second product, which a line of it is read as.
    const std::string mode = isRecompute("selective_op") ? "selective" : m_plan.recompute;
    if (mode != "none" && mode != "selective" && mode != "full")
        return none(name, fmt::format("torchtitan has no activation-checkpoint \"{}\"", m_plan.recompute));
    if (std::string missing = missingInTorchTitan(); !missing.empty())
        return none(name, std::move(missing));
    const Result<std::string> chunks = titanChunks();
    if (!chunks)
        return none(name, chunks.error().front().message);
    const std::int64_t shards = m_plan.zeroStage == 3 ? axis("fsdp") * axis("expert") : m_plan.zeroStage == 2 ? dataRanks() : 1;
    std::string text = fmt::format("{} -m torchtitan.train {} --parallelism.data_parallel_replicate_degree {} "
                                   "--parallelism.data_parallel_shard_degree {} --parallelism.tensor_parallel_degree {} "
                                   "--parallelism.context_parallel_degree {} --parallelism.pipeline_parallel_degree {}",
        torchrun(), titanModel(m_c), dataRanks() / shards, shards, axis("tensor"), axis("context"), axis("pipeline"));
    if (m_c.experts > 0) // the registry's configurations have degrees of their own
        text += fmt::format(" --parallelism.expert_parallel_degree {}", axis("expert"));
    if (axis("tensor") > 1 && !m_plan.sequenceParallel)
        text += " --parallelism.no-enable-sequence-parallel";
    if (m_plan.zeroStage == 2)
        text += " --parallelism.fsdp_reshard_after_forward never";
    if (m_plan.pipeline.stages > 1) {
        const std::string& schedule = m_plan.pipeline.schedule;
        if (schedule.starts_with("zb"))
            return none(name, fmt::format("torchtitan has no pipeline schedule \"{}\"", schedule));
        text += fmt::format(" --parallelism.pipeline_parallel_schedule {} --parallelism.num_pp_microbatches {}",
            schedule == "gpipe"      ? "GPipe"
                : schedule == "1f1b" ? "1F1B"
                                     : "Interleaved1F1B",
            microbatches());
        text += *chunks;
    }
    if (m_choices.narrowWeights)
        text += " --training.dtype bfloat16";
    text += optimizerOptions({"--training.max_norm "});
    if (m_plan.pipeline.stages > 1 || axis("expert") > 1)
        text += " --training.disable_cuda_graphs"; // which have neither
    return {name,
        text
            + fmt::format(" --training.max_context_length {} --training.num_tokens_per_microbatch_per_dp_rank {} "
                          "--training.num_tokens_per_train_step {} --loss.num_chunks {} activation-checkpoint:{}",
                m_work.sequence, microbatch() * m_work.sequence, m_work.globalBatch * m_work.sequence, m_plan.lossChunks, mode),
        {}};
}

/// Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (August 2026).
LaunchCommand Launch::megatron()
{
    const char* name = "megatron";
    if (m_isTpu)
        return none(name, "Megatron-LM trains on GPUs");
    if (m_plan.recompute != "none" && m_plan.recompute != "selective" && m_plan.recompute != "full" && !keepsMegatronContext())
        return none(name, fmt::format("Megatron-LM has no recomputation \"{}\"", m_plan.recompute));
    if (m_plan.zeroStage >= 2 && axis("pipeline") > 1)
        return none(name, "Megatron-LM splits weights and gradients without a pipeline only");
    const std::string& schedule = m_plan.pipeline.schedule;
    if (m_plan.pipeline.stages > 1 && schedule != "1f1b" && schedule != "interleaved")
        return none(name, fmt::format("Megatron-LM has no pipeline schedule \"{}\"", schedule));
    if (const std::string missing = missingInMegatron(); !missing.empty())
        return none(name, "Megatron-LM has no options for " + missing);
    // What validate_args stops at: its FSDP with one connection, tensors and sequences over devices (before Blackwell) with more than one.
    const bool isFsdp = m_plan.zeroStage >= 2;
    const char* connections = isFsdp                ? "CUDA_DEVICE_MAX_CONNECTIONS=8 " // as many as when it is not set
        : axis("tensor") > 1 || axis("context") > 1 ? "CUDA_DEVICE_MAX_CONNECTIONS=1 "
                                                    : "";
    std::string text = connections
        + fmt::format("{} pretrain_gpt.py --num-layers {} --hidden-size {} --num-attention-heads {} --kv-channels {} "
                      "--ffn-hidden-size {} --seq-length {} --max-position-embeddings {} --vocab-size {}",
            torchrun(), m_c.layers, m_c.hidden, m_c.heads, m_c.headDim, m_c.ffn, m_work.sequence, m_work.sequence,
            m_c.vocabulary);
    const auto option = [&](bool given, const std::string& flag) { text += given ? " " + flag : std::string(); };
    option(m_c.keyValueHeads != m_c.heads && m_c.keyValueRank == 0,
        fmt::format("--group-query-attention --num-query-groups {}", m_c.keyValueHeads));
    option(m_c.gatedFfn && m_c.activation == TransformerActivation::Silu, "--swiglu");
    option(m_c.norm == NormKind::RmsNorm, "--normalization RMSNorm");
    option(
        m_c.position == PositionKind::Rotary, fmt::format("--position-embedding-type rope --rotary-base {:.0f}", m_c.rotaryBase));
    option(m_c.position == PositionKind::Rotary && m_c.rotaryFraction < 1.0,
        fmt::format("--rotary-percent {:g}", m_c.rotaryFraction));
    option(m_c.position == PositionKind::None, "--position-embedding-type none");
    option(!m_c.tiedEmbeddings, "--untie-embeddings-and-output-weights");
    option(!m_c.ffnBias, "--disable-bias-linear");
    option(m_c.attentionBias && !m_c.ffnBias, "--add-qkv-bias");
    option(m_c.queryKeyNorm, "--qk-layernorm");
    option(m_c.slidingWindow > 0, fmt::format("--window-size {},0", m_c.slidingWindow - 1));
    option(m_c.keyValueRank > 0,
        fmt::format("--multi-latent-attention --kv-lora-rank {} --qk-head-dim {} --qk-pos-emb-head-dim {} --v-head-dim {}{}",
            m_c.keyValueRank, m_c.headDim, m_c.latentRotaryDim, m_c.valueHeadDim > 0 ? m_c.valueHeadDim : m_c.headDim,
            m_c.queryRank > 0 ? fmt::format(" --q-lora-rank {}", m_c.queryRank) : std::string()));
    option(m_c.experts > 0,
        fmt::format("--num-experts {} --moe-router-topk {} --moe-ffn-hidden-size {} --expert-model-parallel-size {}", m_c.experts,
            m_c.expertsPerToken, m_c.expertFfn, axis("expert")));
    option(m_c.sharedExperts > 0, fmt::format("--moe-shared-expert-intermediate-size {}", m_c.sharedExperts * m_c.expertFfn));
    option(m_c.denseLayers > 0, fmt::format("--moe-layer-freq '([0]*{}+[1]*{})'", m_c.denseLayers, m_c.layers - m_c.denseLayers));
    text += fmt::format(" --tensor-model-parallel-size {} --pipeline-model-parallel-size {} --context-parallel-size {} "
                        "--micro-batch-size {} --global-batch-size {}",
        axis("tensor"), axis("pipeline"), axis("context"), microbatch(), m_work.globalBatch);
    const bool isHalf = m_work.format == MathFormat::Fp16;
    option(m_work.format != MathFormat::Fp32, isHalf ? "--fp16" : "--bf16");
    if (m_work.recipe == Fp8Recipe::Rowwise)
        return none(name, "Megatron-LM has no 8-bit recipe with a scale for each row");
    option(m_work.format == MathFormat::Fp8,
        fmt::format("--fp8-format hybrid --fp8-recipe {}",
            m_work.recipe == Fp8Recipe::Delayed         ? "delayed"
                : m_work.recipe == Fp8Recipe::Blockwise ? "blockwise"
                                                        : "tensorwise"));
    option(!isHalf && m_work.format != MathFormat::Fp32 && m_narrowGradients, "--grad-reduce-in-bf16");
    text += fmt::format(" --attention-dropout 0 --hidden-dropout {:g}", m_choices.dropout); // 0.1 unless it is said
    option(m_plan.sequenceParallel, "--sequence-parallel");
    option(axis("context") > 1 && m_plan.exchangesHeads, "--cp-comm-type a2a"); // p2p unless it is said
    option(axis("context") > 1 && m_plan.gathersContext, "--cp-comm-type all_gather");
    option(m_stack == "megatron", "--transformer-impl local"); // else Transformer Engine's
    text += optimizerOptions({"--clip-grad ", "--weight-decay ", "--adam-beta1 ", "--adam-beta2 ", "--adam-eps "});
    const auto* sgd = std::get_if<SgdOptimizer>(&m_choices.optimizer);
    if (sgd != nullptr) // adam, and 0.9, unless it is said
        text += fmt::format(" --optimizer sgd --sgd-momentum {:g}", sgd->momentum);
    const bool hasStates = m_work.masters || !stateFamilies(m_choices.optimizer).empty();
    option(m_plan.zeroStage == 1 && hasStates, "--use-distributed-optimizer");
    option(m_plan.zeroStage >= 2,
        fmt::format("--use-megatron-fsdp --ckpt-format fsdp_dtensor --data-parallel-sharding-strategy {}",
            m_plan.zeroStage == 2 ? "optim_grads" : "optim_grads_params"));
    option(m_plan.zeroStage == 3 && axis("data") > 1, fmt::format("--num-distributed-optimizer-instances {}", axis("data")));
    const std::int64_t pieces = m_plan.pipeline.stages * m_plan.pipeline.chunks;
    const bool isEven = m_c.layers % pieces == 0;
    const bool countsEnds = !isEven && (m_c.layers + 2) % pieces == 0; // embedding and loss count as a layer each
    if (!isEven && !countsEnds && m_plan.pipeline.chunks > 1)
        return none(name, fmt::format("Megatron-LM does not divide {} layers among {} pieces", m_c.layers, pieces));
    option(schedule == "interleaved",
        fmt::format("--num-layers-per-virtual-pipeline-stage {}", (m_c.layers + (countsEnds ? 2 : 0)) / pieces));
    option(countsEnds, "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split");
    if (!isEven && !countsEnds) { // as many layers on each of the other stages
        const auto layersOf = [&](std::int64_t stage) { return layersOfChunk(m_c.layers, pieces, stage); };
        const bool firstIsOwn = pieces > 2 && layersOf(0) != layersOf(1);
        for (std::int64_t stage = 2; stage + 1 < pieces; ++stage) {
            if (layersOf(stage) != layersOf(1))
                return none(name, fmt::format("Megatron-LM does not divide {} layers among {} stages", m_c.layers, pieces));
        }
        option(firstIsOwn || pieces == 2, fmt::format("--decoder-first-pipeline-num-layers {}", layersOf(0)));
        option(!firstIsOwn || layersOf(pieces - 1) != layersOf(1),
            fmt::format("--decoder-last-pipeline-num-layers {}", layersOf(pieces - 1)));
    }
    option(isRecompute("full"), "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
    option(isRecompute("selective"), "--recompute-granularity selective");
    option(keepsMegatronContext(), "--recompute-granularity selective --recompute-modules layernorm mlp");
    return {name, text, {}};
}

/// Source: huggingface/accelerate, src/accelerate/commands/launch.py (July 2026).
LaunchCommand Launch::accelerate()
{
    const char* name = "accelerate";
    if (axis("tensor") > 1 || axis("context") > 1 || axis("expert") > 1 || axis("pipeline") > 1)
        return none(name, "accelerate's launcher splits data, and with FSDP the weights, alone");
    if (m_isTpu)
        return none(name, "this launcher is written for GPUs");
    std::string text
        = fmt::format("accelerate launch --num_machines {} --num_processes {} --mixed_precision bf16", m_hosts, m_devices);
    if (m_plan.zeroStage == 0)
        text += " --multi_gpu";
    else if (m_plan.zeroStage == 1)
        text += " --use_deepspeed --zero_stage 1";
    else
        text += fmt::format(" --use_fsdp --fsdp_sharding_strategy {}",
            m_plan.zeroStage == 2  ? "SHARD_GRAD_OP"
                : axis("data") > 1 ? "HYBRID_SHARD"
                                   : "FULL_SHARD");
    if (m_plan.recompute == "full")
        text += m_plan.zeroStage >= 2 ? " --fsdp_activation_checkpointing true" : "";
    else if (m_plan.recompute != "none")
        return none(name, fmt::format("accelerate has no recomputation \"{}\"", m_plan.recompute));
    return {name,
        text
            + fmt::format(
                " train.py --per_device_train_batch_size {} --gradient_accumulation_steps {}", microbatch(), microbatches())
            + (m_plan.recompute == "full" && m_plan.zeroStage < 2 ? " --gradient_checkpointing" : ""),
        {}};
}

} // namespace

std::vector<LaunchCommand> launchCommands(
    const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine, const LaunchChoices& choices)
{
    if (!work.model.kinds.empty()) {
        std::vector<LaunchCommand> none;
        for (const char* framework : {"maxtext", "torchtitan", "megatron", "accelerate"})
            none.push_back({framework, {}, "layers of several kinds are the model's own code, which no option states"});
        return none;
    }
    Launch launch(plan, work, machine, choices);
    if (const std::string uneven = launch.unevenSequence(); !uneven.empty()) {
        std::vector<LaunchCommand> none;
        for (const char* framework : {"maxtext", "torchtitan", "megatron", "accelerate"})
            none.push_back({framework, {}, uneven});
        return none;
    }
    return {launch.maxText(), launch.torchTitan(), launch.megatron(), launch.accelerate()};
}

} // namespace meshwright::sim
