// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/launch_reader.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/cost/recomputation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace meshwright::sim {

namespace {

/// The models of torchtitan's registry that come with Meshwright.
std::string titanModel(std::string name, const std::string& flavor)
{
    const std::string both = lowerCase(name + "_" + flavor);
    if (both == "deepseek_v3_671b")
        return "deepseek_v3";
    if (both == "deepseek_v3_16b")
        return "deepseek_v2_lite";
    return both;
}

} // namespace

/// The schedule and the pieces, which only a pipeline has: the registry's configurations name a schedule without one, too.
/// Source: pytorch/torchtitan, torchtitan/distributed/pipeline_parallel.py (August 2026): the embedding and the head count as so many layers each.
void LaunchReader::readTitanPipeline()
{
    LaunchOptions& o = m_options;
    LaunchedTraining& a = m_asked;
    const std::string said = o.word("parallelism.pipeline_parallel_schedule", "1F1B");
    const LaunchOption* layers = o.find("parallelism.pipeline_parallel_layers_per_stage");
    const std::int64_t ends = o.size("parallelism.pipeline_parallel_first_stage_less_layers", 1, 0)
        + o.size("parallelism.pipeline_parallel_last_stage_less_layers", 1, 0);
    if (a.pipeline <= 1)
        return;
    const std::string schedule = lowerCase(said);
    a.schedule = schedule == "gpipe" ? "gpipe" : schedule == "interleaved1f1b" ? "interleaved" : "1f1b";
    if (schedule != "gpipe" && schedule != "interleaved1f1b" && schedule != "1f1b")
        m_notes.push_back(fmt::format("the pipeline's schedule {} is taken as 1F1B", said));
    if (a.schedule == "interleaved")
        a.chunks = 2; // of each stage, where the line does not say the layers of one
    if (layers == nullptr)
        return;
    const std::int64_t pieces = ceilDiv(a.model.layers + ends, o.size(layers->name, 1));
    if (pieces % a.pipeline != 0)
        impossible(fmt::format("{} layers and {} for the ends make {} pieces of {}, which {} stages do not share evenly",
                       a.model.layers, ends, pieces, layers->value, a.pipeline),
            "choose layers of a stage so that they do");
    a.chunks = std::max<std::int64_t>(1, pieces / a.pipeline);
}

/// The registry's configurations wrap their loss, which the line may cut otherwise.
/// Source: pytorch/torchtitan, torchtitan/components/loss.py (ChunkedLossWrapper) and models/*/config_registry.py (August 2026).
void LaunchReader::readTitanLoss(bool isRegistered)
{
    constexpr std::int64_t kUsualChunks = 8;
    const LaunchOption* given = m_options.find("loss.num_chunks");
    const std::int64_t chunks = m_options.size("loss.num_chunks", isRegistered ? kUsualChunks : 1);
    if (isRegistered && (given == nullptr || given->line == 0))
        m_notes.push_back(fmt::format("assumed: the loss in {} chunks of a sequence, as torchtitan's registry has it", chunks));
    takeLossChunks(chunks);
}

/// Source: pytorch/torchtitan, torchtitan/config/configs.py; before 2026 torchtitan/config/job_config.py.
void LaunchReader::readTorchtitan()
{
    LaunchOptions& o = m_options;
    LaunchedTraining& a = m_asked;
    const LaunchOption* config = o.find("config");
    const LaunchOption* flavor = o.find("model.flavor");
    if (config != nullptr && m_modelFile.empty()) {
        const std::size_t dash = config->value.rfind('_');
        takeModel(titanModel(config->value.substr(0, dash), config->value.substr(dash + 1)), *config);
    } else if (flavor != nullptr && m_modelFile.empty()) {
        takeModel(titanModel(o.word("model.name", "llama3"), flavor->value), *flavor);
    } else if (m_modelFile.empty()) {
        o.problems.push_back({"MW1494", "the line does not say the model: neither --config nor --model.flavor",
            "add --module llama3 --config llama3_8b", o.place()});
    }
    a.sequence
        = o.find("training.seq_len") != nullptr ? o.size("training.seq_len", 2048) : o.size("training.max_context_length", 2048);
    a.tensor = o.size("parallelism.tensor_parallel_degree", 1);
    a.pipeline = o.size("parallelism.pipeline_parallel_degree", 1);
    a.context = o.size("parallelism.context_parallel_degree", 1);
    a.expert = o.size("parallelism.expert_parallel_degree", 1);
    const std::int64_t copies = o.size("parallelism.data_parallel_replicate_degree", 1);
    const std::int64_t shards = o.size("parallelism.data_parallel_shard_degree", -1, -1);
    a.shards = shards < 1 ? -copies : shards;
    if (shards > 0 && checkedProduct(std::array{copies, shards, a.tensor, a.pipeline, a.context}) != m_devices)
        impossible(fmt::format("{} copies x {} shards x tensor {} x pipeline {} x context {} are not the {} devices", copies,
                       shards, a.tensor, a.pipeline, a.context, m_devices),
            "give --hw as many, or --parallelism.data_parallel_shard_degree -1");
    const std::string reshards = o.word("parallelism.fsdp_reshard_after_forward", "default");
    const bool keeps = reshards == "never" || (reshards == "default" && a.pipeline > 1);
    a.zero = shards == 1 ? 0 : keeps ? 2 : 3;
    a.sequenceParallel = a.tensor > 1 && !o.has("parallelism.no_enable_sequence_parallel")
        && o.word("parallelism.enable_sequence_parallel", "true") != "false";
    readTitanPipeline();
    // A rank's microbatch: in sequences, or in tokens. A pipeline's are parts of it.
    const std::int64_t dataRanks
        = std::max<std::int64_t>(1, m_devices / checkedProduct(std::array{a.tensor, a.pipeline, a.context}).value_or(m_devices));
    if (o.find("training.num_tokens_per_microbatch_per_dp_rank") != nullptr || o.find("training.local_batch_size") == nullptr) {
        const std::int64_t usual = o.find("training.seq_len") != nullptr ? 8 * a.sequence : 16384;
        const std::int64_t tokens = o.size("training.num_tokens_per_microbatch_per_dp_rank", usual);
        a.microbatch = std::max<std::int64_t>(1, tokens / a.sequence);
    } else
        a.microbatch = o.size("training.local_batch_size", 8);
    readTitanLoss(config != nullptr);
    const bool isOld = o.find("training.local_batch_size") != nullptr || o.find("training.seq_len") != nullptr; // before 2026
    const std::int64_t passes = o.size("parallelism.num_pp_microbatches", 1);
    const std::int64_t tokens = o.size("training.num_tokens_per_train_step", -1, -1);
    const std::int64_t sequences = o.size("training.global_batch_size", -1, -1);
    a.globalBatch = tokens > 0 ? tokens / a.sequence
        : sequences > 0        ? sequences
                        : checkedProduct(std::array{a.microbatch, a.pipeline > 1 && !isOld ? passes : 1, dataRanks}).value_or(0);
    if (a.pipeline > 1 && isOld) // the rank's batch is cut into microbatches of so many sequences
        a.microbatch = std::min(a.microbatch, o.size("parallelism.pipeline_parallel_microbatch_size", 1));
    const LaunchOption* mode = o.find("activation-checkpoint");
    if (mode == nullptr)
        mode = o.find("activation_checkpoint");
    if (mode == nullptr)
        mode = o.find("activation_checkpoint.mode");
    o.know({"activation_checkpoint.mode"});
    a.recompute = mode != nullptr ? mode->value : "selective";
    const LaunchOption* every = o.find("activation_checkpoint.selective_ac_option");
    if (a.recompute != "none" && a.recompute != "selective" && a.recompute != "full")
        o.refuse(*mode, fmt::format("\"{}\" is not known", a.recompute), "none, selective or full");
    else if (a.recompute == "selective" && every != nullptr && every->value != "op")
        o.refuse(
            *every, fmt::format("recomputation of every layer of {} is not known", every->value), "op, or mode full or none");
    else if (a.recompute == "selective")
        a.recompute = "selective_op";
    const std::string converters = o.word("model.converters", "") + (config != nullptr ? config->value : "")
        + (o.has("float8.enable_float8_linear") ? "float8" : "");
    if (converters.find("float8") != std::string::npos) {
        a.format = MathFormat::Fp8;
        const std::string recipe
            = o.word("quantize.linear.float8.recipe_name", o.word("float8.recipe_name", isOld ? "tensorwise" : "rowwise"));
        a.recipe = recipe == "tensorwise" ? Fp8Recipe::Current : Fp8Recipe::Rowwise;
    }
    if (o.word("training.mixed_precision_param", "bfloat16") == "float32")
        a.format = MathFormat::Fp32;
    if (o.word("training.dtype", "float32") == "bfloat16")
        m_settings.emplace_back("dtype.parameters=bf16");
    if (a.expert > 1 && (a.tensor > 1 || a.context > 1))
        o.refuse(*o.find("parallelism.expert_parallel_degree"),
            "experts go over ranks of tensors and sequences as well, which no plan of Meshwright's does",
            "leave tensor and context degrees 1 beside it");
    readOptimizer("optimizer.name", "adamw", "adam", 0.0);
    o.refuseAll(
        {"training.enable_cpu_offload", "parallelism.pipeline_parallel_schedule_csv", "parallelism.module_fqns_per_model_part"});
    o.know({"module", "model.name", "training.disable_cuda_graphs", "parallelism.enable_async_tensor_parallel",
        "training.mixed_precision_reduce", "parallelism.spmd_backend", "optimizer.implementation"});
    static constexpr auto kHarmless
        = std::to_array<std::string_view>({"job.", "metrics.", "checkpoint.", "profiling.", "profiler.", "comm.", "lr_scheduler.",
            "optimizer.lr", "optimizer.beta", "optimizer.eps", "optimizer.weight_decay", "optimizer.early_step", "validator.",
            "validation.", "debug.", "fault_tolerance.", "training.steps", "training.dataset", "training.seed",
            "training.gc_freq", "training.max_norm", "dataloader.", "hf_assets_path", "model.hf_assets_path", "compile."});
    o.noteUnread(kHarmless, m_notes);
}

} // namespace meshwright::sim
