// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/config_fields.h"

#include "core/models/layer_fields.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

namespace meshwright {

bool FieldReader::has(const std::string& name)
{
    m_asked.insert(name);
    return m_json.contains(name);
}

const FieldReader::Json* FieldReader::find(const std::string& name)
{
    m_asked.insert(name);
    const auto found = m_json.find(name);
    return found == m_json.end() || found->is_null() ? nullptr : &*found;
}

std::string FieldReader::nameOf(Names names)
{
    std::string first;
    for (const char* name : names) {
        if (find(name) != nullptr && first.empty())
            first = name;
    }
    return first.empty() ? *names.begin() : first;
}

std::int64_t FieldReader::size(const std::string& name, std::int64_t absent, std::int64_t least)
{
    const Json* field = find(name);
    if (!field)
        return absent;
    if (field->is_array() && !field->empty()
        && std::ranges::all_of(*field, [&](const Json& one) { return one == field->front(); }))
        field = &field->front(); // one for each layer, and all of them alike
    if (field->is_number_unsigned() || field->is_number_integer()) {
        const bool tooLarge
            = field->is_number_unsigned() && field->get<std::uint64_t>() > static_cast<std::uint64_t>(kLargestTransformerSize);
        if (!tooLarge && field->get<std::int64_t>() >= least && field->get<std::int64_t>() <= kLargestTransformerSize)
            return field->get<std::int64_t>();
    } else if (field->is_number_float()) { // 2048.0, as programs write that count in floats
        const double value = field->get<double>();
        if (value == std::floor(value) && value >= static_cast<double>(least)
            && value <= static_cast<double>(kLargestTransformerSize))
            return static_cast<std::int64_t>(value);
    }
    complain(name, fmt::format("a whole number from {} to 2^40", least), *field);
    return absent;
}

std::int64_t FieldReader::neededSize(Names names)
{
    const std::string name = nameOf(names);
    if (!find(name))
        m_missing.push_back(name);
    return size(name, 1);
}

void FieldReader::refuseMissing()
{
    if (m_missing.empty())
        return;
    std::vector<std::string> quoted;
    for (const std::string& name : m_missing)
        quoted.push_back("\"" + name + "\"");
    refuse("MW1352", m_missing.front(), fmt::format("{} {} missing", join(quoted, ", "), quoted.size() == 1 ? "is" : "are"),
        "add what the model's own config.json has; a model that has none is not a decoder with attention: only those are read");
}

double FieldReader::number(const std::string& name, double absent)
{
    const Json* field = find(name);
    if (!field)
        return absent;
    if (field->is_number() && std::isfinite(field->get<double>()))
        return field->get<double>();
    complain(name, "a number", *field);
    return absent;
}

bool FieldReader::flag(const std::string& name, bool absent)
{
    const Json* field = find(name);
    if (!field)
        return absent;
    if (field->is_boolean())
        return field->get<bool>();
    complain(name, "true or false", *field);
    return absent;
}

std::string FieldReader::word(const std::string& name, const std::string& absent)
{
    const Json* field = find(name);
    if (!field)
        return absent;
    if (field->is_string())
        return field->get<std::string>();
    complain(name, "a text", *field);
    return absent;
}

std::vector<std::string> FieldReader::words(const std::string& name)
{
    const Json* field = find(name);
    std::vector<std::string> list;
    if (field != nullptr && field->is_string()) {
        for (const char letter : field->get<std::string>())
            list.emplace_back(1, letter);
    } else if (field != nullptr && field->is_array()) {
        for (const Json& entry : *field)
            list.push_back(
                entry.is_string() ? entry.get<std::string>() : entry.dump(-1, ' ', true, Json::error_handler_t::replace));
    }
    return list;
}

void FieldReader::complain(const std::string& name, const std::string& wanted, const Json& field)
{
    std::string got = field.dump(-1, ' ', true, Json::error_handler_t::replace);
    constexpr std::size_t kShown = 40;
    if (got.size() > kShown)
        got = got.substr(0, kShown) + "…";
    refuse("MW1352", name, fmt::format("\"{}\" must be {}, got: {}", name, wanted, got),
        "give the value that the model's own config.json has");
}

void FieldReader::refuse(const char* id, const std::string& name, std::string message, std::string fix)
{
    m_problems.push_back({id, std::move(message), std::move(fix), {.path = name}});
}

namespace {

/// Numbers that change neither the sizes of a model nor what its products cost: tokens with a meaning, initial values, dropout, losses of routers,
/// scales of scores, limits of activations, generation of text, further tokens that are predicted, and what older libraries write.
constexpr std::array kInert = {"activation_situ_beta", "activation_situ_linear_beta", "attention_chunk_size", "attention_dropout",
    "attention_multiplier", "attention_probs_dropout_prob", "attention_value_scale", "attn_pdrop", "attn_res_block_size",
    "aux_loss_alpha", "begin_suppress_tokens", "bos_token_id", "chunk_size", "chunk_size_feed_forward", "classifier_dropout",
    "compress_rope_theta", "decoder_start_token_id", "diversity_penalty", "emb_pdrop", "embd_pdrop", "embed_dropout",
    "embedding_dropout", "embedding_multiplier", "encoder_no_repeat_ngram_size", "eos_token_id", "ep_size", "expand",
    "full_attention_interval", "global_rope_theta", "hc_eps", "hc_sinkhorn_iters", "hidden_dropout", "hidden_dropout_prob",
    "ignore_index", "initial_context_length", "initializer_range", "length_penalty", "linear_attn_config.gate_lower_bound",
    "local_rope_theta", "logit_scale", "logits_scaling", "mamba_expand", "max_length", "max_window_layers", "min_length",
    "mlp_dropout", "moe_loss_weight", "moe_router_scaling_factor", "mtp_num_hidden_layers", "mtp_transformer_layers", "n_group",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_expert_group", "num_hash_layers", "num_logits_to_keep",
    "num_mtp_modules", "num_nextn_predict_layers", "num_return_sequences", "pad_token_id", "pretraining_tp", "repetition_penalty",
    "resid_pdrop", "residual_dropout", "residual_multiplier", "rope_parameters.attention_factor", "rope_parameters.beta_fast",
    "rope_parameters.beta_slow", "rope_parameters.factor", "rope_parameters.high_freq_factor", "rope_parameters.low_freq_factor",
    "rope_parameters.mrope_section", "rope_parameters.mscale", "rope_parameters.mscale_all_dim",
    "rope_parameters.original_max_position_embeddings", "routed_scaling_factor", "router_aux_loss_coef", "router_jitter_noise",
    "sep_token_id", "swa_rope_theta", "swiglu_alpha", "swiglu_limit", "temperature", "time_step_floor", "time_step_limit",
    "time_step_max", "time_step_min", "time_step_rank", "top_k", "top_p", "topk_group", "typical_p",
    "vision_soft_tokens_per_image", "vocab_size_per_layer_input"};

/// Objects without a number that does: how positions beyond those of training are turned, how stored weights are packed, names of classes, and what
/// a note says is left out: towers beside the language model, indices of sparse attention.
constexpr std::array kInertObjects
    = {"rope_scaling", "quantization_config", "vision_config", "audio_config", "label2id", "generation_config",
        "task_specific_params", "rope_parameters.full_attention", "rope_parameters.sliding_attention", "sparse_attention_config"};

/// Flags that, set, change neither: what a run returns, how scores and routers are scaled and rounded, which kernels compute.
constexpr std::array kInertFlags = {"add_bos_token", "apply_residual_connection_post_layernorm", "attention_softmax_in_fp32",
    "clean_up_tokenization_spaces", "do_layer_norm_before", "do_sample", "early_stopping", "enable_lm_head_fp32",
    "fp32_residual_connection", "is_causal", "is_decoder", "layer_norm_elementwise_affine", "mamba_conv_bias", "mamba_rms_norm",
    "masked_softmax_fusion", "moe_router_enable_expert_bias", "mrope_interleaved", "multi_query_attention", "norm_topk_prob",
    "original_rope", "output_attentions", "output_hidden_states", "output_router_logits", "output_scores", "post_layer_norm",
    "remove_invalid_values", "return_dict", "return_dict_in_generate", "rmsnorm", "rope_interleave", "rope_interleaved",
    "rope_traditional", "scale_attention_softmax_in_fp32", "scale_attn_weights", "scale_embedding", "slow_but_exact",
    "torchscript", "trust_remote_code", "use_bfloat16", "use_cache", "use_conv_bias", "use_dynamic_ntk", "use_expert_bias",
    "use_flash_attn", "use_logn_attn", "use_mamba_kernels", "use_mixed_mlp_moe", "use_mrope", "use_routing_bias"};

constexpr int kMostInside = 8;

/// Numbers inside of objects that are read.
constexpr std::array kReadInside
    = {"rope_parameters.rope_theta", "rope_parameters.partial_rotary_factor", "linear_attn_config.kda_layers",
        "linear_attn_config.linear_attn_layers", "linear_attn_config.mamba_layers", "linear_attn_config.full_attn_layers",
        "linear_attn_config.num_heads", "linear_attn_config.num_value_heads", "linear_attn_config.num_key_heads",
        "linear_attn_config.head_dim", "linear_attn_config.key_head_dim", "linear_attn_config.value_head_dim",
        "linear_attn_config.short_conv_kernel_size", "linear_attn_config.conv_kernel", "linear_attn_config.use_full_rank_gate"};

/// Numbers of an object, lists of numbers, and flags that are set, by their paths; `deep`: objects inside of each other.
void addFields(
    const FieldReader::Json& object, const std::string& prefix, std::vector<std::string>& paths, int deep = kMostInside)
{
    if (deep == 0)
        return;
    for (const auto& [name, value] : object.items()) {
        const std::string path = prefix + name;
        if (value.is_number() || value == true || (value.is_array() && !value.empty() && value.front().is_number()))
            paths.push_back(path);
        else if (value.is_object())
            addFields(value, path + ".", paths, deep - 1);
    }
}

bool isIn(std::span<const char* const> names, std::string_view name)
{
    return std::ranges::find(names, name) != names.end();
}

} // namespace

bool isInertField(std::string_view path)
{
    if (isIn(kInert, path) || isIn(kInertFlags, path) || path.ends_with("_token_id") || path.ends_with("_token_index"))
        return true;
    for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
        if (isIn(kInertObjects, path.substr(0, dot)))
            return true;
    }
    return false;
}

std::vector<std::string> FieldReader::ignoredFields() const
{
    std::vector<std::string> paths;
    addFields(m_json, {}, paths);
    const auto kinds = m_json.find("layer_types");
    if (kinds != m_json.end() && kinds->is_array() && !kinds->empty() && !kinds->front().is_number())
        paths.emplace_back("layer_types");
    std::erase_if(paths, [&](const std::string& path) {
        const bool isInside = path.find('.') != std::string::npos;
        return isInertField(path) || (isInside ? isIn(kReadInside, path) : m_asked.contains(path));
    });
    return paths;
}

void noteIgnored(const FieldReader& reader, std::vector<std::string>& notes, std::vector<std::string>& ignored)
{
    const std::vector<std::string> found = reader.ignoredFields();
    if (!found.empty())
        notes.push_back("ignored: " + join(found, ", "));
    ignored.insert(ignored.end(), found.begin(), found.end());
}

TransformerActivation activationOf(FieldReader& reader, const std::string& field, const std::string& absent)
{
    static const std::map<std::string, TransformerActivation, std::less<>> kActivations
        = {{"gelu", TransformerActivation::Gelu}, {"gelu_new", TransformerActivation::GeluTanh},
            {"gelu_pytorch_tanh", TransformerActivation::GeluTanh}, {"gelu_fast", TransformerActivation::GeluTanh},
            {"silu", TransformerActivation::Silu}, {"swish", TransformerActivation::Silu}, {"relu", TransformerActivation::Relu}};
    const std::string name = reader.word(field, absent);
    const auto found = kActivations.find(name);
    if (found != kActivations.end())
        return found->second;
    reader.complain(field, "gelu, gelu_new, gelu_pytorch_tanh, silu or relu", name);
    return TransformerActivation::Gelu;
}

std::int64_t evenHeadDim(FieldReader& reader, Problems& problems, const TransformerConfig& c)
{
    if (!reader.isGood() || c.hidden % c.heads == 0)
        return c.hidden / c.heads;
    const bool isGiven = reader.find(reader.nameOf({"hidden_size", "n_embd", "n_embed", "d_model", "dim"})) != nullptr;
    problems.push_back({"MW1353",
        fmt::format("hidden size {}{} is not divisible by {} heads", c.hidden,
            isGiven ? "" : ", as its kind of model has it where the file does not say it,", c.heads),
        isGiven ? "give head_dim, the size of a head, where it is not hidden size / heads" : "give hidden_size",
        {.path = "hidden"}});
    return c.hidden / c.heads;
}

double rotaryNumber(
    FieldReader& reader, Problems& problems, const std::string& topName, const std::string& innerName, double absent)
{
    const double top = reader.number(topName, absent);
    const FieldReader::Json* inner = reader.find("rope_parameters");
    return inner && inner->is_object() ? FieldReader(*inner, problems).number(innerName, top) : top;
}

namespace {

void readLatent(FieldReader& reader, TransformerConfig& c)
{
    c.keyValueRank = reader.size("kv_lora_rank", 0, 0);
    c.queryRank = reader.size("q_lora_rank", 0, 0);
    if (c.keyValueRank == 0) {
        if (const std::int64_t values = reader.size("v_head_dim", c.headDim); values != c.headDim)
            c.valueHeadDim = values;
        if (const std::int64_t turned = reader.size("qk_rope_head_dim", 0, 0); turned > 0)
            c.rotaryFraction = std::min(1.0, static_cast<double>(turned) / static_cast<double>(c.headDim));
        return;
    }
    c.headDim = reader.neededSize({"qk_nope_head_dim"});
    c.latentRotaryDim = reader.neededSize({"qk_rope_head_dim"});
    c.valueHeadDim = reader.size("v_head_dim", c.headDim);
    reader.find("qk_head_dim"); // the sum of both
}

/// Products that have a bias.
struct Biases {
    bool attention = false; ///< queries, keys and values
    bool output = false;
    bool ffn = false;
};
constexpr Biases kAllBiases{true, true, true};

/// What the class of a kind of model has where its files say nothing. Sizes of 0 are in every file.
/// Source: the configuration and model classes of the transformers library.
struct ModelKind {
    std::array<std::string_view, 4> types; ///< model_type; none: all kinds that are not below
    NormKind norm = NormKind::RmsNorm;
    PositionKind position = PositionKind::Rotary;
    std::string_view activation = "silu";
    bool isGated = true;
    Biases biases = {};
    bool isParallel = false; ///< TransformerConfig::parallelBlock
    bool isTied = false;
    bool hasOneKeyHead = false;
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t heads = 0;
    std::int64_t keyValueHeads = 0;
    std::int64_t headDim = 0;
    std::int64_t ffn = 0;
    std::int64_t vocabulary = 0;
    std::int64_t windowStep = 0; ///< every so many layers one has no window

    bool isKnown() const { return !types.front().empty(); }
};

constexpr NormKind kLayerNorm = NormKind::LayerNorm;
constexpr PositionKind kLearned = PositionKind::Learned;
constexpr PositionKind kUntrained = PositionKind::None; // ALiBi, or sines
constexpr std::array kModelKinds = {
    ModelKind{{"bert", "roberta", "xlm-roberta", "camembert"}, kLayerNorm, kLearned, "gelu", false, kAllBiases, false, true},
    ModelKind{{"bloom"}, kLayerNorm, kUntrained, "gelu_new", false, kAllBiases, false, true},
    ModelKind{{"codegen", "gptj"}, kLayerNorm, PositionKind::Rotary, "gelu_new", false, {.ffn = true}, true},
    ModelKind{{"cohere", "cohere2"}, kLayerNorm, PositionKind::Rotary, "silu", true, {}, true, true},
    ModelKind{{"dbrx", "stablelm"}, kLayerNorm},
    ModelKind{{"falcon"}, kLayerNorm, PositionKind::Rotary, "gelu", false, {}, true, true, true},
    ModelKind{{"gemma3", "gemma3_text"}, NormKind::RmsNorm, PositionKind::Rotary, "gelu_pytorch_tanh", true, {}, false, true,
        false, 26, 2304, 8, 4, 256, 9216, 262208, 6},
    ModelKind{{"gpt_bigcode"}, kLayerNorm, kLearned, "gelu_pytorch_tanh", false, kAllBiases, false, true, true},
    ModelKind{{"gpt_neo"}, kLayerNorm, kLearned, "gelu_new", false, {.output = true, .ffn = true}, false, true},
    ModelKind{{"gpt_neox_japanese"}, kLayerNorm, PositionKind::Rotary, "gelu", false, {}, false, true},
    ModelKind{{"gpt_oss"}, NormKind::RmsNorm, PositionKind::Rotary, "silu", true, kAllBiases},
    ModelKind{{"modernbert"}, kLayerNorm, PositionKind::Rotary, "gelu", true, {}, false, true},
    ModelKind{{"mpt"}, kLayerNorm, kUntrained, "gelu", false, {}, false, true},
    ModelKind{{"nemotron"}, kLayerNorm, PositionKind::Rotary, "relu2", false},
    ModelKind{{"opt"}, kLayerNorm, kLearned, "relu", false, kAllBiases, false, true},
    ModelKind{{"persimmon"}, kLayerNorm, PositionKind::Rotary, "relu2", false, kAllBiases},
    ModelKind{{"phi"}, kLayerNorm, PositionKind::Rotary, "gelu_new", false, kAllBiases, true}, ModelKind{{"phimoe"}, kLayerNorm},
    ModelKind{{"phi3small"}, kLayerNorm, PositionKind::Rotary, "gegelu", true, kAllBiases, false, true},
    ModelKind{{"qwen", "qwen2_moe"}, NormKind::RmsNorm, PositionKind::Rotary, "silu", true, {.attention = true}},
    ModelKind{{"starcoder2"}, kLayerNorm, PositionKind::Rotary, "gelu_pytorch_tanh", false, kAllBiases, false, true},
    ModelKind{{"xglm"}, kLayerNorm, kUntrained, "gelu", false, kAllBiases, false, true}};

/// Kinds that normalise each head's queries and keys where no field says so, and those with norms behind both blocks of a layer, too. A norm of all
/// heads together (OLMo) costs the same.
constexpr std::array kQueryKeyNorms = {"gemma3", "gemma3_text", "olmo2", "olmo3", "olmoe", "flex_olmo", "exaone4", "dots1"};
constexpr std::array kPostNorms = {"gemma3", "gemma3_text", "glm4"};

ModelKind kindOf(std::string_view type)
{
    const auto* known = std::ranges::find_if(kModelKinds,
        [&](const ModelKind& kind) { return !type.empty() && std::ranges::find(kind.types, type) != kind.types.end(); });
    if (known != kModelKinds.end())
        return *known;
    ModelKind other{};
    other.isTied
        = std::ranges::any_of(std::array{"cohere", "gemma", "smollm"}, [&](const char* all) { return type.starts_with(all); });
    return other;
}

/// By the file, whose words and flags are those of many kinds.
PositionKind positionOf(FieldReader& reader, const ModelKind& kind)
{
    static const std::map<std::string, PositionKind, std::less<>> kTypes
        = {{"absolute", kLearned}, {"learned", kLearned}, {"learned_absolute", kLearned}, {"alibi", kUntrained},
            {"none", kUntrained}, {"nope", kUntrained}, {"rope", PositionKind::Rotary}, {"rotary", PositionKind::Rotary}};
    const auto type = kTypes.find(reader.word("position_embedding_type", ""));
    const bool isLearned = reader.flag("learned_pos_emb", true);
    if (reader.flag("alibi", false))
        return kUntrained;
    if (reader.find("alibi") != nullptr && kind.position == kUntrained)
        return isLearned ? kLearned : kUntrained;
    const bool isAlwaysRotary = kind.isKnown() && kind.position == PositionKind::Rotary; // its class does not read the word
    return type != kTypes.end() && !isAlwaysRotary ? type->second : kind.position;
}

bool isLayerNorm(FieldReader& reader, const ModelKind& kind)
{
    const std::string type = reader.word("norm_type", "");
    if (type.find("norm") != std::string::npos)
        return type.find("layer") != std::string::npos;
    return kind.norm == kLayerNorm
        || (reader.find("rms_norm_eps") == nullptr
            && (reader.find("layer_norm_eps") != nullptr || reader.find("layer_norm_epsilon") != nullptr));
}

void readBiases(FieldReader& reader, const ModelKind& kind, TransformerConfig& c)
{
    Biases absent = kind.biases;
    if (reader.find("no_bias") != nullptr)
        absent = reader.flag("no_bias", true) ? Biases{} : kAllBiases;
    c.attentionBias
        = reader.flag({"attention_bias", "qkv_bias", "add_qkv_bias", "use_bias", "bias", "enable_bias"}, absent.attention);
    c.outputBias = reader.flag({"attention_out_bias", "attention_bias", "use_bias", "bias", "enable_bias"}, absent.output);
    c.ffnBias = reader.flag({"mlp_bias", "use_bias", "bias", "enable_bias"}, absent.ffn);
}

/// Heads, key and value heads, and their size.
void readHeads(FieldReader& reader, Problems& problems, const ModelKind& kind, TransformerConfig& c)
{
    const std::string keyHeads = reader.nameOf(
        {"num_key_value_heads", "num_attention_groups", "num_kv_heads", "n_kv_heads", "kv_n_heads", "multi_query_group_num"});
    const std::int64_t stated = reader.size(keyHeads, kind.keyValueHeads > 0 ? kind.keyValueHeads : c.heads);
    const bool hasOne = reader.flag("multi_query", kind.hasOneKeyHead && reader.find(keyHeads) == nullptr);
    const bool countsGroups
        = reader.flag("new_decoder_architecture", false); // Falcon, whose older models state heads that they lack
    c.keyValueHeads = hasOne && !countsGroups ? 1 : stated;
    const std::string headDim = reader.nameOf({"head_dim", "attention_head_dim", "kv_channels"});
    const bool isLatent = reader.find("kv_lora_rank") != nullptr; // has head sizes of its own
    if (reader.find(headDim) != nullptr || kind.headDim > 0 || isLatent)
        c.headDim = reader.size(headDim, std::max<std::int64_t>(1, kind.headDim));
    else
        c.headDim = evenHeadDim(reader, problems, c);
}

void noteOthers(FieldReader& reader, std::vector<std::string>& notes)
{
    if (reader.find("compress_ratios") == nullptr
        && (reader.find("index_topk") != nullptr || reader.find("sparse_attention_config") != nullptr))
        notes.push_back("sparse attention is taken as dense: its index is left out");
    for (const char* field : {"index_n_heads", "index_head_dim", "index_topk_freq", "index_skip_topk_offset"})
        static_cast<void>(reader.find(field));
}

} // namespace

void readByFields(FieldReader& reader, Problems& problems, TransformerConfig& c, std::vector<std::string>& notes,
    std::vector<std::string>& ignored)
{
    const std::string family = reader.word("model_type", "");
    const ModelKind kind = kindOf(family);
    const auto needed = [&](FieldReader::Names names, std::int64_t absent) {
        const std::string name = reader.nameOf(names);
        if (absent == 0 || reader.find(name) != nullptr)
            return reader.neededSize(names);
        notes.push_back(fmt::format("\"{}\" is not given: {}, as its kind of model has it", name, absent));
        return absent;
    };
    std::vector<std::string> kinds = layerWords(reader);
    const bool saysLayers = reader.find(reader.nameOf({"num_hidden_layers", "n_layer", "num_layers", "n_layers"})) != nullptr;
    c.layers = kinds.empty() || saysLayers ? needed({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, kind.layers)
                                           : static_cast<std::int64_t>(kinds.size());
    const bool hasStep = kinds.empty() && kind.windowStep > 0;
    for (std::int64_t i = 1; hasStep && i <= std::min(c.layers, kMostTransformerLayers); ++i)
        kinds.emplace_back(i % kind.windowStep == 0 ? "full_attention" : "sliding_attention");
    c.hidden = needed({"hidden_size", "n_embd", "n_embed", "d_model", "dim"}, kind.hidden);
    c.heads = needed({"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"}, kind.heads);
    readHeads(reader, problems, kind, c);
    const std::string width
        = reader.nameOf({"intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", "ff_intermediate_size"});
    const bool saysWidth
        = reader.has(width) || reader.has("moe_intermediate_size") || kind.ffn > 0; // null too: each layer has its own
    const std::int64_t ratio = reader.size({"expansion_ratio", "intermediate_multiple_size"}, 4);
    const std::int64_t wide = checkedProduct(std::array{ratio, c.hidden}).value_or(kLargestTransformerSize);
    c.ffn = reader.size(width, kind.ffn > 0 ? kind.ffn : std::min(wide, kLargestTransformerSize));
    c.vocabulary = needed({"vocab_size", "padded_vocab_size"}, kind.vocabulary);
    c.maxPositions = reader.size({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"}, 2048);
    if (family == "qwen") // counts the gate's columns, too
        c.ffn = std::max<std::int64_t>(1, c.ffn / 2);
    c.tiedEmbeddings = reader.flag("tie_word_embeddings", kind.isTied);
    if (reader.find("tie_word_embeddings") == nullptr && c.tiedEmbeddings)
        notes.emplace_back("\"tie_word_embeddings\" is not given: true, as its kind of model has it");

    const std::string activation = reader.nameOf({"hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act"});
    const std::string name = reader.word(activation, std::string(kind.activation));
    // Others that the library knows, by the one of ours that costs most nearly the same.
    static const std::map<std::string, std::pair<TransformerActivation, const char*>, std::less<>> kNear
        = {{"relu2", {TransformerActivation::Relu, "relu: its square costs the same"}},
            {"gegelu", {TransformerActivation::Gelu, "gelu: its limits cost about nothing"}},
            {"gelu_10", {TransformerActivation::Gelu, "gelu: its limits cost about nothing"}},
            {"quick_gelu", {TransformerActivation::Silu, "silu: only a factor differs"}}};
    if (const auto near = kNear.find(name); near != kNear.end()) {
        c.activation = near->second.first;
        notes.push_back(fmt::format("the activation is taken as {}", near->second.second));
    } else if (name == "swigluoai" || name == "situ") {
        c.activation = TransformerActivation::Silu;
    } else {
        c.activation = activationOf(reader, activation, name);
    }

    c.norm = isLayerNorm(reader, kind) ? kLayerNorm : NormKind::RmsNorm;
    // As models are: gates came with RMS norms and with widths that are not multiples of the hidden size.
    c.gatedFfn = kind.isGated && saysWidth && !name.starts_with("relu") && name != "gelu_new"
        && (kind.isKnown() || c.norm != kLayerNorm || !name.starts_with("gelu"));
    c.normEpsilon = reader.number(
        reader.nameOf({"rms_norm_eps", "layernorm_epsilon", "norm_eps", "norm_epsilon", "layer_norm_eps", "layer_norm_epsilon"}),
        1e-5);
    readBiases(reader, kind, c);
    c.parallelBlock = reader.flag({"parallel_attn", "use_parallel_residual"}, kind.isParallel);
    c.queryKeyNorm = reader.flag({"use_qk_norm", "qk_norm", "qk_layernorm"}, false) || family.starts_with("qwen3")
        || isIn(kQueryKeyNorms, family);
    c.postNorms = isIn(kPostNorms, family);

    c.queryScale = reader.number("query_pre_attn_scalar", 0.0);
    c.attentionSoftcap = reader.number("attn_logit_softcapping", 0.0);
    c.logitSoftcap = reader.number("final_logit_softcapping", 0.0);
    c.position = positionOf(reader, kind);
    c.rotaryBase = rotaryNumber(reader, problems, "rope_theta", "rope_theta", 10000.0);
    c.rotaryFraction = rotaryNumber(reader, problems, "partial_rotary_factor", "partial_rotary_factor", 1.0);
    if (const std::int64_t rotated = reader.size("rotary_dim", 0, 0); rotated > 0)
        c.rotaryFraction = static_cast<double>(rotated) / static_cast<double>(c.headDim);
    // Pairs are turned: an odd number of dims in a file that rounds it is the pair below.
    c.rotaryFraction = 2.0 * std::floor(c.rotaryFraction * static_cast<double>(c.headDim) / 2.0) / static_cast<double>(c.headDim);
    readLatent(reader, c);
    if (c.keyValueRank > 0) {
        c.rotaryFraction = 1.0;
        c.queryKeyNorm = false;
        c.attentionBias = c.outputBias = false;
    }
    readExperts(reader, c);
    if (c.experts > 0 && family.starts_with("llama4"))
        c.sharedExperts = std::max<std::int64_t>(c.sharedExperts, 1); // the library's layer always has one, of an expert's width
    readLayers(reader, c, kinds);
    noteOthers(reader, notes);

    reader.refuseMissing();
    for (const char* field : {"name", "_name_or_path", "rope_scaling"})
        static_cast<void>(reader.find(field));
    noteIgnored(reader, notes, ignored);
}

} // namespace meshwright
