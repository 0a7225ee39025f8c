// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/launch_reader.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/cost/recomputation.h"
#include "sim/plan/maxtext_values.h"
#include "sim/search/search_request.h"
#include "sim/search/transformer_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

namespace meshwright::sim {

void LaunchReader::readMaxTextModel()
{
    LaunchOptions& o = m_options;
    const LaunchOption* name = o.find("model_name");
    if (name != nullptr && name->value != "default") {
        // llama3.1-8b has llama3-8b's sizes.
        std::string text = lowerCase(name->value);
        std::replace(text.begin(), text.end(), '-', '_');
        for (const char* minor : {"llama3.1", "llama3.3"}) {
            if (text.starts_with(minor))
                text.replace(0, 8, "llama3");
        }
        static const std::array<std::pair<const char*, const char*>, 4> kOthers = {{{"deepseek3_671b", "deepseek_v3"},
            {"deepseek2_236b", "deepseek_v2"}, {"deepseek2_16b", "deepseek_v2_lite"}, {"qwen2.5_7b", "qwen2_7b"}}};
        for (const auto& [theirs, ours] : kOthers) {
            if (text == theirs)
                text = ours;
        }
        takeModel(text, *name);
        if (text == "mistral_7b") { // MaxText's has no window
            m_asked.model.slidingWindow = 0;
            m_asked.model.rotaryBase = 1e6;
        }
        if (text == "gpt3_175b") { // MaxText's has more rows in both tables
            m_asked.model.vocabulary = 50304;
            m_asked.model.maxPositions = 16384;
        }
        overrideMaxTextModel(*name);
        return;
    }
    TransformerConfig& c = m_asked.model;
    c.name = std::filesystem::path(m_file).stem().string();
    c.layers = o.size("base_num_decoder_layers", 16);
    c.hidden = o.size("base_emb_dim", 2048);
    c.heads = o.size("base_num_query_heads", 16);
    c.keyValueHeads = o.size("base_num_kv_heads", 16);
    c.headDim = o.size("head_dim", 128);
    c.ffn = o.size("base_mlp_dim", 7168);
    c.gatedFfn = true;
    c.vocabulary = o.size("vocab_size", 32000);
    c.rotaryBase = o.number("rope_max_timescale", 10000.0);
    c.tiedEmbeddings = o.has("logits_via_embedding");
    c.maxPositions = m_asked.sequence;
    c.experts = o.size("num_experts", 1);
    c.experts = c.experts > 1 ? c.experts : 0;
    c.expertsPerToken = c.experts > 0 ? o.size("num_experts_per_tok", 1) : 0;
    c.expertFfn = c.experts > 0 ? o.size("base_moe_mlp_dim", c.ffn) : 0;
    std::int64_t doublings = 0; // of the whole model
    for (std::int64_t scale = o.size("global_parameter_scale", 1); scale > 1; scale /= 2)
        ++doublings;
    if (o.size("global_parameter_scale", 1) != std::int64_t{1} << doublings)
        o.refuse(*o.find("global_parameter_scale"), "it is not a power of two", "write a power of two");
    const std::int64_t wide = doublings / 3 + (doublings % 3 > 0 ? 1 : 0);
    for (std::int64_t* size : {&c.heads, &c.keyValueHeads, &c.ffn, &c.expertFfn})
        *size <<= wide;
    c.hidden <<= doublings / 3 + (doublings % 3 > 1 ? 1 : 0);
    c.layers <<= doublings / 3;
    o.refuseAll(
        {"mtp_num_layers", "attention_type", "shared_experts", "use_qk_norm", "mlp_activations", "first_num_dense_layers"});
    if (const std::string block = o.word("decoder_block", "llama2");
        block != "llama2" && block != "mistral" && block != "mixtral" && block != "default")
        o.refuse(*o.find("decoder_block"), fmt::format("blocks of \"{}\" are not known by that name", block),
            "give the model's configuration: --set model.transformer.config=config.json");
}

/// Sizes beside a named model, which MaxText takes where it is told to.
void LaunchReader::overrideMaxTextModel(const LaunchOption& name)
{
    LaunchOptions& o = m_options;
    TransformerConfig& c = m_asked.model;
    const bool overrides = o.has("override_model_config");
    const std::array<std::pair<const char*, std::int64_t*>, 8> sizes = {{{"base_num_decoder_layers", &c.layers},
        {"base_emb_dim", &c.hidden}, {"base_num_query_heads", &c.heads}, {"base_num_kv_heads", &c.keyValueHeads},
        {"head_dim", &c.headDim}, {"base_mlp_dim", &c.ffn}, {"vocab_size", &c.vocabulary}, {"num_experts", &c.experts}}};
    for (const auto& [option, size] : sizes) {
        if (const LaunchOption* given = o.find(option); given != nullptr && overrides)
            *size = o.size(option, *size);
        else if (given != nullptr)
            o.refuse(
                *given, fmt::format("model_name={} says it too", name.value), "leave it out, or add override_model_config=true");
    }
    o.refuseAll({"global_parameter_scale", "mtp_num_layers"});
}

/// The devices along each axis: inside of slices (or hosts of GPUs), and over them. Of either kind one axis may be -1, what the others leave.
std::map<std::string, std::int64_t> LaunchReader::maxTextMesh()
{
    const bool isTpu = m_machine.chip.chipClass == ChipClass::Tpu;
    const std::int64_t parts
        = isTpu ? m_machine.cluster.slices : m_machine.chips / chipsOfHost(m_machine.chips, fastChips(m_machine));
    std::map<std::string, std::int64_t> mesh;
    for (const bool isInside : {true, false}) {
        const std::int64_t devices = isInside ? m_devices / parts : parts;
        const std::string kind = isInside ? "ici" : "dcn";
        std::int64_t product = 1;
        std::vector<std::string> takers;
        for (const char* axis : {"data", "fsdp", "fsdp_transpose", "tensor", "context", "expert", "pipeline"}) {
            const std::int64_t usual = std::string_view(axis) == (isInside ? "fsdp" : "data") ? -1 : 1;
            const std::int64_t size = m_options.size(fmt::format("{}_{}_parallelism", kind, axis), usual, -1);
            mesh.try_emplace(axis, 1);
            if (size < 1)
                takers.emplace_back(axis);
            else
                product = checkedMultiply(product, size).value_or(std::numeric_limits<std::int64_t>::max());
            if (size > 1)
                mesh[axis] = checkedMultiply(mesh[axis], size).value_or(1); // of products that fit no machine a problem follows
        }
        const char* part = isTpu ? "slice" : "host";
        const std::string what = isInside ? fmt::format("a {} has {} devices", part, devices)
                                          : fmt::format("the machine has {} {}{}", devices, part, devices == 1 ? "" : "s");
        if (takers.size() > 1)
            impossible(fmt::format("of the {} axes {} are to take what is left", kind, join(takers, " and ")), "leave -1 to one");
        else if (takers.empty() ? product != devices : devices % product != 0)
            impossible(fmt::format("the {} axes make {}, and {}", kind, product, what), "give --hw the machine of the line");
        else if (!takers.empty())
            mesh[takers.front()] *= devices / product;
    }
    // The batch and the weights are split over both; along which dimension of a weight changes neither bytes nor steps.
    if (const std::int64_t transposed = mesh["fsdp_transpose"]; transposed > 1) {
        m_notes.push_back(fmt::format("fsdp_transpose {} is taken as a part of fsdp: weights are split as far", transposed));
        mesh["fsdp"] = checkedMultiply(mesh["fsdp"], transposed).value_or(1);
    }
    for (const char* axis : {"sequence", "tensor_transpose", "tensor_sequence", "autoregressive", "context_autoregressive",
             "context_usp_ulysses", "diloco"}) {
        for (const char* kind : {"ici", "dcn"}) {
            const std::string name = fmt::format("{}_{}_parallelism", kind, axis);
            if (m_options.size(name, 1, -1) != 1)
                m_options.refuse(*m_options.find(name), "no plan splits anything along this axis",
                    "use data, fsdp, tensor, context, expert or pipeline");
        }
    }
    return mesh;
}

/// Source: AI-Hypercomputer/maxtext, src/maxtext/configs/types.py (RematPolicy), layers/decoders.py (get_remat_policy, set_remat_policy), August 2026.
void LaunchReader::readMaxTextPolicy()
{
    LaunchOptions& o = m_options;
    std::string& policy = m_asked.recompute;
    policy = o.word("remat_policy", "full");
    static const std::array<std::pair<const char*, const char*>, 4> kOthers
        = {{{"minimal_flash", "minimal_with_context"}, {"minimal_with_quantization", "minimal"},
            {"minimal_with_context_and_quantization", "minimal_with_context"}, {"none", "full"}}};
    for (const auto& [theirs, ours] : kOthers) {
        if (policy != theirs)
            continue;
        m_notes.push_back(policy == "none"
                ? std::string("remat_policy=none: MaxText wraps each layer all the same, and makes all of it again, "
                              "as with full")
                : fmt::format("remat_policy={}: taken as {}", policy, ours));
        policy = ours;
        break;
    }
    const std::vector<const char*>& tensors = maxTextTensors();
    if (policy != "custom") {
        for (const char* tensor : tensors)
            o.know({tensor}); // which only that policy reads
        if (!recomputationOf(policy) || policy.starts_with("selective"))
            o.refuse(*o.find("remat_policy"), fmt::format("\"{}\" is not known", policy),
                "full, minimal, minimal_with_context, save_qkv_proj and the like");
        return;
    }
    std::vector<std::string> kept;
    std::vector<std::string> offloaded;
    for (const char* tensor : tensors) {
        const LaunchOption* option = o.find(tensor);
        const std::string where = option != nullptr ? lowerCase(option->value) : "remat";
        if (where == "remat"
            || (where == "device" && std::string_view(tensor) == "decoder_layer_input")) // which is kept in any case
            continue;
        const std::vector<std::string> values = valuesOfMaxText(tensor, m_asked.model.gatedFfn);
        if (where != "device" && where != "offload")
            o.refuse(*option, fmt::format("\"{}\" is not known", option->value), "remat, device or offload");
        else if (values.empty())
            m_notes.push_back(fmt::format("{}={} is not read: no layer here has such a value", tensor, where));
        std::vector<std::string>& to = where == "device" ? kept : offloaded;
        to.insert(to.end(), values.begin(), values.end());
    }
    if (kept.empty() && offloaded.empty())
        policy = "full";
    else
        m_settings.push_back(offloaded.empty()
                ? fmt::format("recompute={{keep: [{}]}}", join(kept, ", "))
                : fmt::format("recompute={{keep: [{}], offload: [{}]}}", join(kept, ", "), join(offloaded, ", ")));
}

/// One of these words, of which the first is MaxText's own choice.
std::string LaunchReader::word(std::string_view name, std::initializer_list<std::string_view> words)
{
    const std::string usual(*words.begin());
    std::string value = lowerCase(m_options.word(name, usual));
    if (std::ranges::find(words, value) != words.end())
        return value;
    constexpr std::size_t kMostNamed = 4;
    std::vector<std::string> known;
    for (const std::string_view one : words)
        known.emplace_back(one);
    std::erase(known, "");
    known.resize(std::min(known.size(), kMostNamed));
    m_options.refuse(*m_options.find(name), fmt::format("\"{}\" is not known", value), fmt::format("use {}", join(known, ", ")));
    return usual;
}

/// Source: AI-Hypercomputer/maxtext, src/maxtext/configs/base.yml and types.py.
void LaunchReader::readMaxText()
{
    LaunchOptions& o = m_options;
    LaunchedTraining& a = m_asked;
    a.sequence = o.size("max_target_length", 2048);
    if (m_modelFile.empty())
        readMaxTextModel();
    const std::map<std::string, std::int64_t> mesh = maxTextMesh();
    a.tensor = mesh.at("tensor");
    a.pipeline = mesh.at("pipeline");
    a.expert = mesh.at("expert");
    a.context = mesh.at("context");
    a.shards = mesh.at("fsdp") * a.expert;
    a.zero = a.shards > 1 ? 3 : 0;
    const std::int64_t ranks = mesh.at("data") * a.shards;
    const std::int64_t accumulated = o.size("gradient_accumulation_steps", 1);
    const double ofDevice = o.number("per_device_batch_size", 12.0);
    const double sequences = ofDevice * asDouble(m_devices) * asDouble(accumulated);
    if (!(sequences >= 1.0))
        o.refuse(*o.find("per_device_batch_size"),
            fmt::format("{:g} sequences on each of {} devices are less than one", ofDevice, m_devices), "a larger number");
    a.globalBatch = static_cast<std::int64_t>(std::clamp(sequences, 1.0, 0x1p40));
    std::int64_t passes = accumulated;
    if (a.pipeline > 1) {
        passes = o.size("num_pipeline_microbatches", -1, -1);
        passes = passes > 0 ? passes : a.pipeline;
        const std::int64_t layers = o.size("num_layers_per_pipeline_stage", 1) * a.pipeline;
        a.chunks = std::max<std::int64_t>(1, a.model.layers / layers);
        a.schedule = a.chunks > 1 ? "interleaved" : "gpipe";
    }
    a.microbatch = std::max<std::int64_t>(1, a.globalBatch / checkedMultiply(ranks, passes).value_or(a.globalBatch));
    const std::string strategy = word("context_parallel_strategy", {"all_gather", "ring", "ulysses"});
    a.exchangesHeads = strategy == "ulysses";
    a.gathersContext = strategy == "all_gather";
    a.sequenceParallel = a.tensor > 1; // its rules split activations over tensor
    readMaxTextPolicy();
    takeLossChunks(o.size("num_vocab_tiling", 1));
    if (word("dtype", {"bfloat16", "float32"}) == "float32")
        a.format = MathFormat::Fp32;
    if (word("weight_dtype", {"float32", "bfloat16"}) == "bfloat16")
        m_settings.emplace_back("dtype.parameters=bf16");
    if (o.word("attention", "autoselected") == "dot_product")
        m_settings.emplace_back("model.transformer.attention=plain");
    readOptimizer("opt_type", "adamw", "adam_pax", 0.0);
    if (const LaunchOption* capacity = o.find("capacity_factor"); capacity != nullptr && o.number("capacity_factor", -1.0) > 0.0)
        o.refuse(*capacity, "tokens beyond it are dropped, which no plan of Meshwright's does", "leave it out");
    o.refuseAll(
        {"optimizer_memory_host_offload", "parameter_memory_host_offload", "shard_optimizer_over_data", "custom_mesh_and_rule"});
    const std::string kind = word("quantization",
        {"", "fp8", "int8", "int4", "fp4", "intmp", "fp8_e5m2", "fp8_e4m3", "nanoo_fp8", "fp8_nanoo", "fp8_gpu", "fp8_full",
            "te_fp8_delayedscaling", "te_fp8_currentscaling", "te_mxfp8", "te_nvfp4", "te_nvfp4_no_rht"});
    if (kind.find("fp8") != std::string::npos)
        a.format = MathFormat::Fp8;
    else if (!kind.empty())
        m_notes.push_back(fmt::format("quantization={}: priced as bf16", kind));
    o.know({"hardware", "scan_layers", "use_iota_embed", "sparse_matmul", "megablox", "override_model_config", "compile_topology",
        "compile_topology_num_slices", "allow_split_physical_axes", "shardy"});
    static constexpr auto kHarmless = std::to_array<std::string_view>({"run_name", "base_output_directory", "dataset_", "steps",
        "tokenizer_", "hf_", "enable_checkpoint", "async_checkpoint", "checkpoint_", "save_", "load_", "log_", "metrics_",
        "profile", "skip_first", "upload_", "enable_data", "data_shuffle", "learning_rate", "adam_", "warmup", "cosine", "eval_",
        "enable_goodput", "monitor_", "gcs_", "enable_tensorboard", "use_vertex", "vertex", "tensorboard", "reuse_example_batch",
        "packing", "init_weights", "jax_cache", "enable_single_replica", "generate_", "enable_emergency", "decode_", "prompt",
        "local_checkpoint", "colocated", "grain_", "num_epoch", "max_prefill", "async", "test_", "sharding_tolerance", "tfds_",
        "compiled_trainstep", "enable_orbax"});
    o.noteUnread(kHarmless, m_notes);
}

} // namespace meshwright::sim
