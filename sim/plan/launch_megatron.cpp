// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/launch_reader.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/transformer/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string_view>

namespace meshwright::sim {

void LaunchReader::readMegatronExperts()
{
    TransformerConfig& c = m_asked.model;
    LaunchOptions& o = m_options;
    c.experts = o.size("num-experts", 0, 0);
    if (c.experts == 0)
        return;
    c.expertsPerToken = o.size("moe-router-topk", 2);
    c.expertFfn = o.size("moe-ffn-hidden-size", c.ffn);
    if (const LaunchOption* shared = o.find("moe-shared-expert-intermediate-size")) {
        const std::int64_t width = o.size(shared->name, c.expertFfn);
        if (width % c.expertFfn != 0)
            o.refuse(
                *shared, fmt::format("{} is not a multiple of the experts' width {}", width, c.expertFfn), "give a multiple");
        c.sharedExperts = width / c.expertFfn;
    }
    const LaunchOption* frequency = o.find("moe-layer-freq");
    if (frequency != nullptr && frequency->value != "1" && frequency->value != fmt::format("[1]*{}", c.layers)) {
        // ([0]*3+[1]*58): the first layers are dense, and the others are not.
        std::string text = frequency->value;
        std::erase_if(text, [](char letter) { return std::string_view("()[] '\"").find(letter) != std::string_view::npos; });
        const std::vector<std::string> parts = split(text, '+');
        const auto times = [&](std::size_t part, char what) -> std::int64_t {
            return part < parts.size() && parts[part].size() > 2 && parts[part].front() == what && parts[part][1] == '*'
                ? parseInteger(std::string_view(parts[part]).substr(2)).value_or(-1)
                : -1;
        };
        const std::int64_t dense = times(0, '0');
        if (parts.size() != 2 || dense < 0 || times(1, '1') != c.layers - dense)
            o.refuse(*frequency, "only dense layers before all that have experts are known", "write it as ([0]*3+[1]*58)");
        else
            c.denseLayers = dense;
    }
}

void LaunchReader::readMegatronModel()
{
    TransformerConfig& c = m_asked.model;
    LaunchOptions& o = m_options;
    c.name = std::filesystem::path(m_file).stem().string();
    c.layers = o.neededSize("num-layers");
    c.hidden = o.neededSize("hidden-size");
    c.heads = o.neededSize("num-attention-heads");
    const LaunchOption* activation = nullptr;
    for (const char* name : {"swiglu", "squared-relu", "quick-geglu"}) {
        if (o.has(name) && activation != nullptr)
            o.refuse(*o.find(name), fmt::format("beside {}", o.spelled(activation->name)), "leave one of them out");
        else if (o.has(name))
            activation = o.find(name);
    }
    c.gatedFfn = o.has("swiglu") || o.has("quick-geglu");
    if (o.has("quick-geglu"))
        m_notes.emplace_back("--quick-geglu: as costly as --swiglu, which it is taken for");
    c.ffn = o.size("ffn-hidden-size", c.gatedFfn ? std::max<std::int64_t>(64, 8 * c.hidden / 3 / 64 * 64) : 4 * c.hidden);
    const LaunchOption* heads = o.find("num-attention-heads");
    if (heads != nullptr && o.find("kv-channels") == nullptr && c.hidden % c.heads != 0)
        o.refuse(*heads, fmt::format("{} heads do not divide the hidden size {}", c.heads, c.hidden),
            "a divisor, or --kv-channels with the width of a head");
    c.headDim = o.size("kv-channels", std::max<std::int64_t>(1, c.hidden / c.heads));
    c.keyValueHeads = o.has("group-query-attention") ? o.size("num-query-groups", 1) : c.heads;
    c.maxPositions = o.size("max-position-embeddings", m_asked.sequence);
    c.norm = o.word("normalization", "LayerNorm") == "RMSNorm" ? NormKind::RmsNorm : NormKind::LayerNorm;
    c.activation = c.gatedFfn   ? TransformerActivation::Silu
        : o.has("squared-relu") ? TransformerActivation::Relu
                                : TransformerActivation::GeluTanh; // as it fuses it with the bias
    const std::string positions
        = o.has("use-rotary-position-embeddings") ? "rope" : o.word("position-embedding-type", "learned_absolute");
    c.position = positions == "none"      ? PositionKind::None
        : positions == "learned_absolute" ? PositionKind::Learned
                                          : PositionKind::Rotary;
    c.rotaryBase = o.number("rotary-base", 10000.0);
    c.rotaryFraction = o.number("rotary-percent", 1.0);
    c.tiedEmbeddings = !o.has("untie-embeddings-and-output-weights");
    c.ffnBias = c.outputBias = !o.has("disable-bias-linear");
    c.attentionBias = c.ffnBias || o.has("add-qkv-bias");
    c.queryKeyNorm = o.has("qk-layernorm");
    c.normEpsilon = o.number("norm-epsilon", 1e-5);
    if (o.has("multi-latent-attention")) {
        c.keyValueRank = o.size("kv-lora-rank", 32);
        c.queryRank = o.find("q-lora-rank") != nullptr ? o.size("q-lora-rank", 1) : 0;
        c.headDim = o.size("qk-head-dim", 128);
        c.latentRotaryDim = o.size("qk-pos-emb-head-dim", 64);
        c.valueHeadDim = o.size("v-head-dim", 128);
        c.keyValueHeads = c.heads;
        c.queryKeyNorm = false;
    }
    if (const LaunchOption* window = o.find("window-size")) {
        std::string text = window->value;
        std::erase_if(text, [](char letter) { return std::string_view("()\"' ").find(letter) != std::string_view::npos; });
        if (const auto keys = parseInteger(text.substr(0, text.find(','))))
            c.slidingWindow = *keys + 1;
        const LaunchOption* skips = o.find("window-attn-skip-freq"); // every so many layers one without a window
        if (skips != nullptr && parseInteger(skips->value))
            c.slidingWindowLayers = c.layers - c.layers / o.size(skips->name, 1);
        else if (skips != nullptr)
            o.refuse(*skips, "a list of layers is not known", "write how many layers lie between two without a window");
    }
    readMegatronExperts();
    const std::string tokenizer = o.word("tokenizer-type", "");
    if (o.find("vocab-size") != nullptr) {
        c.vocabulary = o.size("vocab-size", 1);
    } else if (o.find("padded-vocab-size") != nullptr) {
        c.vocabulary = o.size("padded-vocab-size", 1);
    } else if (tokenizer == "Llama2Tokenizer") {
        c.vocabulary = 32000;
        m_notes.emplace_back("vocabulary: the 32,000 tokens of Llama 2's tokenizer");
    } else if (tokenizer == "GPT2BPETokenizer" || (tokenizer.empty() && o.find("vocab-file") != nullptr)) {
        c.vocabulary = 50257;
        m_notes.emplace_back("vocabulary: GPT-2's 50,257 tokens, whose file the line names");
    } else {
        c.vocabulary = o.neededSize("vocab-size");
    }
}

/// Selective recomputation of modules, as what is kept beside them.
/// Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (recompute_modules, August 2026).
void LaunchReader::readMegatronModules(const LaunchOption& option)
{
    static constexpr auto kModules = std::to_array<std::string_view>({"core_attn", "layernorm", "mla_up_proj", "mlp", "moe"});
    std::set<std::string> modules;
    std::istringstream words(option.value);
    for (std::string word; words >> word;) {
        if (std::ranges::find(kModules, word) == kModules.end()) {
            m_options.refuse(
                option, fmt::format("the module \"{}\" is not known", word), "core_attn, layernorm, mla_up_proj, mlp or moe");
            return;
        }
        modules.insert(std::move(word));
    }
    const TransformerConfig& c = m_asked.model;
    if (c.experts > 0 && !modules.contains("moe")) {
        m_options.refuse(option, "of experts only all of them (moe) can be made again here", "add moe");
        return;
    }
    std::vector<std::string> kept = {"attention"};
    const auto keepUnless = [&](std::string_view module, std::initializer_list<const char*> values) {
        if (!modules.contains(std::string(module)))
            kept.insert(kept.end(), values.begin(), values.end());
    };
    keepUnless("layernorm", {"attention.input", "ffn.input"});
    keepUnless("mla_up_proj", {"attention.q", "attention.k", "attention.v"});
    keepUnless("core_attn", {"attention.mixed"});
    if (c.experts == 0 || c.denseLayers > 0) {
        keepUnless("mlp", {"ffn.up", "ffn.hidden"});
        if (c.gatedFfn)
            keepUnless("mlp", {"ffn.gate"});
    }
    m_settings.push_back(fmt::format("recompute={{keep: [{}]}}", join(kept, ", ")));
    if (modules.contains("mla_up_proj") && c.keyValueRank > 0)
        m_notes.emplace_back("--recompute-modules mla_up_proj: the products before it, into the latents, are made again as well");
}

/// How context ranks exchange keys and values: one word, or one for each layer.
/// Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (cp_comm_type, August 2026).
void LaunchReader::readMegatronContext()
{
    std::istringstream words(m_options.word("cp-comm-type", "p2p"));
    std::set<std::string> exchanges;
    for (std::string word; words >> word;)
        exchanges.insert(std::move(word));
    for (const std::string& exchange : exchanges) {
        if (exchange != "p2p" && exchange != "a2a" && exchange != "all_gather" && exchange != "a2a+p2p") {
            m_options.refuse(
                *m_options.find("cp-comm-type"), fmt::format("\"{}\" is not known", exchange), "p2p, a2a or all_gather");
            return;
        }
    }
    m_asked.exchangesHeads = exchanges == std::set<std::string>{"a2a"};
    m_asked.gathersContext = exchanges == std::set<std::string>{"all_gather"};
    if (m_asked.context > 1 && (exchanges.size() > 1 || exchanges.contains("a2a+p2p")))
        m_notes.push_back(fmt::format("--cp-comm-type {}: taken as p2p, a ring", m_options.word("cp-comm-type", "")));
}

/// Source: NVIDIA/Megatron-LM, megatron/training/arguments.py, and core/transformer/transformer_config.py for the defaults.
void LaunchReader::readMegatron()
{
    LaunchOptions& o = m_options;
    LaunchedTraining& a = m_asked;
    a.sequence = o.neededSize("seq-length");
    if (m_modelFile.empty())
        readMegatronModel();
    a.tensor = o.size("tensor-model-parallel-size", 1);
    a.pipeline = o.size("pipeline-model-parallel-size", 1);
    a.context = o.size("context-parallel-size", 1);
    a.expert = o.size("expert-model-parallel-size", 1);
    // The table of tokens is padded so that all tensor ranks have as many rows.
    const std::int64_t multiple = o.size("make-vocab-size-divisible-by", 128) * a.tensor;
    if (o.find("padded-vocab-size") == nullptr && multiple > 0)
        a.model.vocabulary = ceilDiv(a.model.vocabulary, multiple) * multiple;
    if (const LaunchOption* tensor = o.find("expert-tensor-parallel-size");
        tensor != nullptr && o.size(tensor->name, a.tensor) != a.tensor)
        o.refuse(*tensor, "experts split otherwise than the layers are not known", "leave it out: as many as tensor ranks");
    a.microbatch = o.neededSize("micro-batch-size");
    a.globalBatch = o.size("global-batch-size", 0, 0);
    a.sequenceParallel = o.has("sequence-parallel") && a.tensor > 1;
    if (o.has("bf16") && o.has("fp16"))
        o.refuse(*o.find("fp16"), "beside --bf16", "leave one of them out");
    a.format = o.has("bf16") ? MathFormat::Bf16 : o.has("fp16") ? MathFormat::Fp16 : MathFormat::Fp32;
    a.masters = a.format != MathFormat::Fp32;
    if (o.has("accumulate-allreduce-grads-in-fp32") || (a.format == MathFormat::Bf16 && !o.has("grad-reduce-in-bf16")))
        m_settings.emplace_back("dtype.gradients=f32");
    else if (a.format != MathFormat::Fp32)
        m_settings.push_back(fmt::format("dtype.gradients={}", a.format == MathFormat::Bf16 ? "bf16" : "f16"));
    if (std::max(o.number("hidden-dropout", 0.1), o.number("attention-dropout", 0.1)) > 0.0)
        m_notes.emplace_back("dropout is left out: 0.1, unless --hidden-dropout and --attention-dropout say another");
    if (const LaunchOption* format = o.find("fp8-format") != nullptr ? o.find("fp8-format") : o.find("fp8")) {
        a.format = MathFormat::Fp8;
        const std::string recipe = o.word("fp8-recipe", "delayed");
        a.recipe = recipe == "delayed" ? Fp8Recipe::Delayed : recipe == "tensorwise" ? Fp8Recipe::Current : Fp8Recipe::Blockwise;
        if (recipe != "delayed" && recipe != "tensorwise" && recipe != "blockwise")
            m_notes.push_back(
                fmt::format("{} {}: priced as blockwise, which it comes nearest to", o.spelled("fp8-recipe"), recipe));
        o.know({format->name});
    }
    // The older names are those of Megatron-LM before 3.0 and of Megatron-DeepSpeed.
    const bool isOldFull = o.has("checkpoint-activations") || o.has("activations-checkpoint-method");
    a.recompute = o.has("recompute-activations") ? "selective" : o.word("recompute-granularity", isOldFull ? "full" : "none");
    if (a.recompute != "none" && a.recompute != "selective" && a.recompute != "full")
        o.refuse(*o.find("recompute-granularity"), fmt::format("\"{}\" is not known", a.recompute), "selective or full");
    if (a.recompute == "full" && o.word("recompute-method", "uniform") == "block"
        && o.size("recompute-num-layers", 1) < a.model.layers / std::max<std::int64_t>(1, a.pipeline))
        o.refuse(*o.find("recompute-method"), "recomputation of some layers of a stage is not known",
            "uniform, or all layers of a stage");
    if (a.recompute == "full" && o.size("recompute-num-layers", 1) > 1)
        m_notes.emplace_back("--recompute-num-layers: taken as 1: each layer's input is kept");
    if (const std::string modules = o.word("recompute-modules", "core_attn");
        a.recompute == "selective" && modules != "core_attn")
        readMegatronModules(*o.find("recompute-modules"));
    readMegatronContext();
    if (o.has("use-megatron-fsdp") || o.has("use-custom-fsdp") || o.has("use-torch-fsdp2")) {
        const std::string strategy
            = o.has("use-torch-fsdp2") ? "optim_grads_params" : o.word("data-parallel-sharding-strategy", "optim_grads_params");
        a.zero = strategy == "no_shard" ? 0 : strategy == "optim" ? 1 : strategy == "optim_grads" ? 2 : 3;
    } else if (o.has("deepspeed")) { // of Megatron-DeepSpeed
        const std::int64_t stage = o.size("zero-stage", 0, 0);
        a.zero = static_cast<int>(std::min<std::int64_t>(stage, 3));
        if (stage > 3)
            o.refuse(*o.find("zero-stage"), fmt::format("{} is not a stage of ZeRO", stage), "0, 1, 2 or 3");
        else if (o.find("zero-stage") == nullptr)
            o.refuse(*o.find("deepspeed"), "the stage of ZeRO is in DeepSpeed's own configuration, which is not read",
                "add --zero-stage N, the stage in that file");
        o.know({"deepspeed_config", "deepspeed-activation-checkpointing", "no-pipeline-parallel"});
    } else if (o.has("use-distributed-optimizer"))
        a.zero = 1;
    a.shards = a.zero == 3 ? -o.size("num-distributed-optimizer-instances", 1) : 1; // so many copies
    const bool countsEmbedding = o.has("account-for-embedding-in-pipeline-split");
    if (countsEmbedding != o.has("account-for-loss-in-pipeline-split"))
        o.refuse(*o.find(countsEmbedding ? "account-for-embedding-in-pipeline-split" : "account-for-loss-in-pipeline-split"),
            "only one of the ends counts as a layer", "give both options, or neither");
    const std::int64_t layersToShare = a.model.layers + (countsEmbedding ? 2 : 0);
    a.layersToShare = layersToShare;
    if (o.find("num-layers-per-virtual-pipeline-stage") != nullptr) {
        const std::int64_t layers = o.size("num-layers-per-virtual-pipeline-stage", 1) * a.pipeline;
        if (layersToShare % layers != 0)
            impossible(fmt::format("{} layers are not cut into pieces of {} on each of {} stages", a.model.layers,
                           layers / a.pipeline, a.pipeline),
                "choose a divisor of the layers of a stage");
        a.chunks = std::max<std::int64_t>(1, layersToShare / layers);
    } else
        a.chunks = o.size("num-virtual-stages-per-pipeline-rank", 1);
    if (a.chunks > 1 && a.pipeline == 1)
        impossible(fmt::format("{} pieces of each stage are interleaved without a pipeline, which Megatron-LM refuses", a.chunks),
            "leave the pieces out, or give --pipeline-model-parallel-size");
    if (a.chunks > 1)
        a.schedule = "interleaved";
    for (const auto& [option, stage] :
        {std::pair{"decoder-first-pipeline-num-layers", std::int64_t{0}}, {"decoder-last-pipeline-num-layers", a.pipeline - 1}}) {
        const std::int64_t own = layersOfChunk(a.model.layers, a.pipeline, stage);
        if (o.find(option) == nullptr)
            continue;
        if (a.chunks > 1 || o.size(option, own) != own)
            o.refuse(*o.find(option), "layers are shared out in another way here", fmt::format("{}, without interleaving", own));
        a.layersToShare = 0; // as they are
    }
    o.refuseAll({"mtp-num-layers", "pipeline-model-parallel-layout", "cpu-offloading", "optimizer-cpu-offload", "fp4-format",
        "fp4-param", "moe-layer-recompute", "moe-expert-capacity-factor", "use-checkpoint-args",
        "use-mp-args-from-checkpoint-args", "yaml-cfg", "spec", "heterogeneous-layers-config-path",
        "heterogeneous-layers-config-encoded-json", "experimental-attention-variant", "linear-attention-freq",
        "attention-output-gate", "hybrid-layer-pattern", "hybrid-override-pattern", "is-hybrid-model", "moe-latent-size",
        "distribute-saved-activations", "torch-fsdp2-no-reshard-after-forward", "hierarchical-context-parallel-sizes",
        "encoder-num-layers", "retro-add-retriever"});
    // What Megatron-LM's users set in nearly all that they publish, which the stack's constants are of.
    o.know({"overlap-grad-reduce", "overlap-param-gather", "transformer-impl", "use-mcore-models", "attention-backend",
        "use-flash-attn", "tp-comm-overlap", "attention-softmax-in-fp32", "cross-entropy-loss-fusion",
        "cross-entropy-fusion-impl", "moe-token-dispatcher-type", "moe-grouped-gemm", "moe-permute-fusion",
        "fp8-amax-history-len", "fp8-amax-compute-algo", "fp8-margin", "fp8-interval", "recompute-method", "recompute-num-layers",
        "num-query-groups"});
    readOptimizer("optimizer", "adam", "adam", o.number("sgd-momentum", 0.9));
    static constexpr auto kHarmless = std::to_array<std::string_view>({"data-path", "data-args", "data-cache", "per-split-data",
        "train-data", "valid-data", "test-data", "split", "mock-data", "tokenizer-", "tiktoken-", "vocab-file", "vocab-extra",
        "merge-file", "num-workers", "dataloader", "no-create-attention-mask", "create-attention-mask", "reset-", "eod-mask",
        "seed", "init-method", "lr", "min-lr", "override-opt", "use-checkpoint-opt", "weight-decay", "start-weight", "end-weight",
        "clip-grad", "adam-", "train-iters", "train-samples", "eval-", "exit-", "log-", "logging-", "tensorboard", "wandb",
        "timing-log", "save", "load", "ckpt-", "dist-ckpt", "no-load", "no-save", "async-save", "finetune", "auto-detect-ckpt",
        "distributed-", "no-initialization", "profile", "use-pytorch-profiler", "pytorch-profiler", "record-memory", "manual-gc",
        "check-", "no-check", "enable-one-logger", "moe-aux-loss", "moe-router-load", "moe-z-loss", "calculate-per-token",
        "decoupled-", "empty-unused", "no-mmap", "apply-layernorm-1p", "use-legacy", "train-sync"});
    o.noteUnread(kHarmless, m_notes);
}

} // namespace meshwright::sim
