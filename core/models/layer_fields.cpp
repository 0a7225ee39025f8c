// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/layer_fields.h"

#include "core/support/checked.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

namespace meshwright {

namespace {

using Json = FieldReader::Json;

/// What a layer's name says of it.
struct LayerWord {
    std::string_view word;
    MixerKind mixer;
    bool hasWindow = false;
    enum class Feed : std::uint8_t { Usual, Dense, Experts } feed = Feed::Usual;
};
using Feed = LayerWord::Feed;

/// As files call layers; letters and signs are those of Megatron's patterns.
constexpr std::array kWords = {LayerWord{"full_attention", MixerKind::Attention}, LayerWord{"attention", MixerKind::Attention},
    LayerWord{"chunked_attention", MixerKind::Attention}, LayerWord{"global", MixerKind::Attention},
    LayerWord{"full", MixerKind::Attention}, LayerWord{"attn", MixerKind::Attention}, LayerWord{"mla", MixerKind::Attention},
    LayerWord{"*", MixerKind::Attention}, LayerWord{"0", MixerKind::Attention},
    LayerWord{"sliding_attention", MixerKind::Attention, true}, LayerWord{"local", MixerKind::Attention, true},
    LayerWord{"sliding", MixerKind::Attention, true}, LayerWord{"swa", MixerKind::Attention, true},
    LayerWord{"1", MixerKind::Attention, true}, LayerWord{"linear_attention", MixerKind::DeltaRule},
    LayerWord{"gated_deltanet", MixerKind::DeltaRule}, LayerWord{"gdn", MixerKind::DeltaRule},
    LayerWord{"kda", MixerKind::DeltaRule}, LayerWord{"mamba", MixerKind::StateSpace}, LayerWord{"mamba2", MixerKind::StateSpace},
    LayerWord{"ssm", MixerKind::StateSpace}, LayerWord{"M", MixerKind::StateSpace},
    LayerWord{"mlp", MixerKind::None, false, Feed::Dense}, LayerWord{"-", MixerKind::None, false, Feed::Dense},
    LayerWord{"dense", MixerKind::None, false, Feed::Dense}, LayerWord{"moe", MixerKind::None, false, Feed::Experts},
    LayerWord{"E", MixerKind::None, false, Feed::Experts}, LayerWord{"sparse", MixerKind::None, false, Feed::Experts}};

const LayerWord* wordNamed(std::string_view word)
{
    const auto* known = std::find_if(kWords.begin(), kWords.end(), [&](const LayerWord& one) { return one.word == word; });
    return known == kWords.end() ? nullptr : known;
}

void refuseKind(FieldReader& reader, const std::string& word)
{
    reader.refuse("MW1351", "layer_types", fmt::format("the kind \"{}\" of layers is not known", word));
}

const Json* objectIn(FieldReader& reader, const char* name)
{
    const Json* field = reader.find(name);
    return field != nullptr && field->is_object() ? field : nullptr;
}

std::vector<std::int64_t> numbersIn(const Json& object, const char* name)
{
    std::vector<std::int64_t> numbers;
    const auto list = object.find(name);
    if (list == object.end() || !list->is_array())
        return numbers;
    for (const Json& entry : *list) {
        if (entry.is_number_integer())
            numbers.push_back(entry.get<std::int64_t>());
    }
    return numbers;
}

/// `{"kda_layers": [1, 2, 3, 5], "full_attn_layers": [4]}`, which count from 1.
std::vector<std::string> wordsOfLists(const Json& lists)
{
    std::vector<std::string> words;
    for (const auto& [list, word] : {std::pair{"kda_layers", "kda"}, {"linear_attn_layers", "linear_attention"},
             {"mamba_layers", "mamba"}, {"full_attn_layers", "full_attention"}}) {
        for (const std::int64_t number : numbersIn(lists, list)) {
            if (number < 1 || number > kMostTransformerLayers)
                continue;
            words.resize(std::max(words.size(), static_cast<std::size_t>(number)));
            words[static_cast<std::size_t>(number - 1)] = word;
        }
    }
    return words;
}

/// `[[["global", "local"], 16]]`: words, and how many times they come one after the other (GPT-Neo).
std::vector<std::string> wordsOfTypes(FieldReader& reader)
{
    std::vector<std::string> words;
    const Json* types = reader.find("attention_types");
    if (types == nullptr || !types->is_array())
        return words;
    for (const Json& turn : *types) {
        const bool isTurn = turn.is_array() && turn.size() == 2 && turn[0].is_array() && turn[1].is_number_unsigned();
        const std::uint64_t count = isTurn ? std::min<std::uint64_t>(turn[1].get<std::uint64_t>(), kMostTransformerLayers) : 0;
        for (std::uint64_t i = 0; i < count && words.size() < kMostTransformerLayers; ++i) {
            for (const Json& word : turn[0])
                words.push_back(word.is_string() ? word.get<std::string>() : std::string());
        }
    }
    return words;
}

/// Which layers have experts, of a model that has some.
std::vector<bool> layersWithExperts(FieldReader& reader, std::int64_t layers)
{
    const std::int64_t dense = reader.size({"first_k_dense_replace", "moe_layer_start_index"}, 0, 0);
    std::vector<bool> has(static_cast<std::size_t>(layers));
    for (std::size_t i = 0; i < has.size(); ++i)
        has[i] = static_cast<std::int64_t>(i) >= dense;
    const auto listed = [&](const char* field, std::string_view without) {
        const std::vector<std::string> words = reader.words(field);
        for (std::size_t i = 0; i < std::min(words.size(), has.size()); ++i)
            has[i] = words[i] != without;
    };
    listed("mlp_layer_types", "dense");
    const Json* frequency = reader.find("moe_layer_freq");
    if (frequency != nullptr && frequency->is_array())
        listed("moe_layer_freq", "0");
    const auto everyNth = [&](const std::string& field, std::int64_t phase) { // layers i with (i + phase) % n = 0
        const Json* step = reader.find(field);
        if (step == nullptr || step->is_array())
            return;
        const std::int64_t n = reader.size(field, 1);
        for (std::size_t i = 0; i < has.size(); ++i)
            has[i] = has[i] && (static_cast<std::int64_t>(i) + phase) % n == 0;
    };
    everyNth("moe_layer_freq", 0);
    everyNth("decoder_sparse_step", 1);
    everyNth("interleave_moe_layer_step", 1);
    everyNth("moe_layer_frequency", 1);
    if (const std::int64_t period = reader.size("expert_layer_period", 0, 0); period > 0)
        everyNth("expert_layer_period", period - reader.size("expert_layer_offset", 0, 0) % period);
    for (const std::string& only : reader.words("mlp_only_layers")) {
        for (std::size_t i = 0; i < has.size(); ++i)
            has[i] = has[i] && std::to_string(i) != only;
    }
    return has;
}

/// The sizes of a recurrence, from the top of the file or from an object of its own.
void readDeltaRule(FieldReader& outer, TransformerConfig& c, bool perKey)
{
    static const Json kNone = Json::object();
    Problems problems;
    const Json* object = objectIn(outer, "linear_attn_config");
    FieldReader inner(object != nullptr ? *object : kNone, problems);
    const auto needed = [&](FieldReader::Names top, FieldReader::Names own) {
        const std::string name = inner.nameOf(own);
        return inner.find(name) != nullptr ? inner.size(name, 1) : outer.neededSize(top);
    };
    c.stateHeads = needed({"linear_num_value_heads", "linear_num_heads"}, {"num_value_heads", "num_heads"});
    c.stateKeyDim = needed({"linear_key_head_dim", "linear_head_dim"}, {"key_head_dim", "head_dim"});
    c.stateKeyHeads = inner.size({"num_key_heads"}, outer.size({"linear_num_key_heads"}, c.stateHeads));
    c.stateValueDim = inner.size({"value_head_dim"}, outer.size({"linear_value_head_dim"}, c.stateKeyDim));
    c.convolution
        = inner.size({"short_conv_kernel_size", "conv_kernel"}, outer.size({"linear_conv_kernel_dim", "conv_size"}, 4, 0), 0);
    c.decayRank = perKey ? c.stateKeyDim : 0; // as the library's layer has it
    c.gateRank = perKey && !inner.flag("use_full_rank_gate", false) ? c.stateValueDim : 0;
    for (const Problem& problem : problems)
        outer.refuse("MW1352", "linear_attn_config", "linear_attn_config: " + problem.message, problem.fix);
}

void readStateSpace(FieldReader& reader, TransformerConfig& c)
{
    if (reader.find("mamba_dt_rank") != nullptr) // of Mamba 1, whose states have no heads
        return reader.refuse("MW1351", "mamba_dt_rank", "mamba_dt_rank: layers of Mamba 1 are not known, those of Mamba 2 are");
    c.stateKeyDim = reader.neededSize({"ssm_state_size", "mamba_d_state", "state_size"});
    c.stateValueDim = reader.neededSize({"mamba_head_dim", "mamba_d_head", "mamba_headdim"});
    const std::string heads = reader.nameOf({"mamba_num_heads", "mamba_n_heads", "n_mamba_heads"});
    const std::int64_t expansion = reader.size({"expand", "mamba_expand"}, 2);
    const auto inner = checkedProduct(std::array{expansion, c.hidden});
    c.stateHeads = reader.size(heads, std::max<std::int64_t>(1, inner.value_or(1) / c.stateValueDim));
    c.stateKeyHeads = reader.size({"mamba_n_groups", "n_groups", "mamba_ngroups"}, 1);
    c.convolution = reader.size({"conv_kernel", "mamba_d_conv"}, 4, 0);
}

/// Heads that layers with a window, or those without, have of their own.
void readOwnHeads(FieldReader& reader, bool hasWindow, TransformerConfig& c)
{
    if (hasWindow) {
        c.heads = reader.size("swa_num_attention_heads", c.heads);
        c.keyValueHeads = reader.size("swa_num_key_value_heads", c.keyValueHeads);
        c.headDim = reader.size("swa_head_dim", c.headDim);
        c.valueHeadDim = reader.size("swa_v_head_dim", c.valueHeadDim, 0);
        return;
    }
    c.keyValueHeads = reader.size("num_global_key_value_heads", c.keyValueHeads);
    c.headDim = reader.size("global_head_dim", c.headDim);
    c.keysAsValues = reader.flag("attention_k_eq_v", false);
}

/// Windows over keys as they are, and behind those keys of many tokens each (DeepSeek-V4). The smallest ratio of several is the one that overlaps and
/// has an index.
void readCompression(FieldReader& reader, std::vector<TransformerConfig>& layers)
{
    const Json* field = reader.find("compress_ratios");
    if (field == nullptr || !field->is_array())
        return;
    std::vector<std::int64_t> ratios;
    for (const Json& entry : *field)
        ratios.push_back(
            entry.is_number_integer() ? std::clamp(entry.get<std::int64_t>(), std::int64_t{0}, kLargestTransformerSize) : 0);
    if (ratios.size() < layers.size())
        return reader.refuse("MW1353", "compress_ratios",
            fmt::format("compress_ratios has {} layers, and the model {}", ratios.size(), layers.size()));
    ratios.resize(layers.size());
    std::int64_t least = 0;
    for (const std::int64_t ratio : ratios)
        least = ratio > 0 && (least == 0 || ratio < least) ? ratio : least;
    const std::int64_t indexHeads = reader.size("index_n_heads", 0, 0);
    const std::int64_t indexDim = indexHeads > 0 ? reader.neededSize({"index_head_dim"}) : 0;
    const std::int64_t indexKeys = indexHeads > 0 ? reader.neededSize({"index_topk"}) : 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        TransformerConfig& c = layers[i];
        c.keysAsValues = true;
        c.compression = ratios[i];
        if (ratios[i] == 0 || ratios[i] != least || indexHeads == 0)
            continue;
        c.compressionOverlap = 2;
        c.indexHeads = indexHeads;
        c.indexHeadDim = indexDim;
        c.indexKeys = indexKeys;
    }
}

/// `[{"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 2.6, "no_op": false}}, ..]`: layers that a search left or made smaller.
/// Source: DeciLM's configuration (the width is a multiple of 256).
void readBlocks(FieldReader& reader, std::vector<TransformerConfig>& layers)
{
    const Json* blocks = reader.find("block_configs");
    if (blocks == nullptr || !blocks->is_array())
        return;
    if (blocks->size() != layers.size())
        return reader.refuse("MW1353", "block_configs",
            fmt::format("block_configs has {} layers, and the model {}", blocks->size(), layers.size()));
    Problems problems;
    const Json none = Json::object();
    const auto part = [&](const Json& block, const char* name) -> const Json& {
        const auto found = block.is_object() ? block.find(name) : block.end();
        return found != block.end() && found->is_object() ? *found : none;
    };
    for (std::size_t i = 0; i < layers.size(); ++i) {
        TransformerConfig& c = layers[i];
        FieldReader attention(part((*blocks)[i], "attention"), problems);
        FieldReader ffn(part((*blocks)[i], "ffn"), problems);
        if (attention.flag("replace_with_linear", false) || ffn.flag("replace_with_linear", false))
            return reader.refuse("MW1351", "block_configs", fmt::format("layer {} has one matrix in place of a block", i));
        if (attention.flag("no_op", false))
            c.mixer = MixerKind::None;
        c.keyValueHeads
            = attention.size("num_key_value_heads", std::max<std::int64_t>(1, c.heads / attention.size("n_heads_in_group", 1)));
        c.slidingWindow = attention.size({"window_length", "sliding_window_length"}, 0, 0);
        if (const double multiple = ffn.number("ffn_mult", 0.0); multiple > 0.0) {
            const double width = 2.0 * multiple * static_cast<double>(c.hidden) / 3.0;
            c.ffn = width < static_cast<double>(kLargestTransformerSize) ? ceilDiv(static_cast<std::int64_t>(width), 256) * 256
                                                                         : kLargestTransformerSize;
        }
        c.ffn = ffn.size("intermediate_size", c.ffn);
        if (ffn.flag("no_op", false))
            c.ffn = c.experts = 0;
    }
    for (const Problem& problem : problems)
        reader.refuse("MW1352", "block_configs", "block_configs: " + problem.message, problem.fix);
    std::erase_if(layers, [](const TransformerConfig& c) { return c.mixer == MixerKind::None && !c.hasFeedForward(); });
}

/// Layers that differ only in windows, and in leading ones without experts, are sizes of one; others are kinds.
void setLayers(TransformerConfig& c, const std::vector<TransformerConfig>& layers)
{
    const auto alike = [](TransformerConfig one) {
        one.slidingWindow = one.experts = 0;
        return one;
    };
    const auto hasExperts = [](const TransformerConfig& one) { return one.experts > 0; };
    const TransformerConfig first = alike(layers.front());
    const auto sparse = std::find_if(layers.begin(), layers.end(), hasExperts);
    std::int64_t window = 0;
    std::int64_t windowed = 0;
    bool isOne = std::all_of(sparse, layers.end(), hasExperts);
    for (const TransformerConfig& one : layers) {
        isOne = isOne && alike(one) == first && (window == 0 || one.slidingWindow == 0 || one.slidingWindow == window);
        window = std::max(window, one.slidingWindow);
        windowed += one.slidingWindow > 0 ? 1 : 0;
    }
    const auto count = static_cast<std::int64_t>(layers.size());
    if (isOne) {
        const std::int64_t experts = c.experts;
        c = layers.front();
        c.experts = experts;
        c.layers = count;
        c.denseLayers = experts > 0 ? sparse - layers.begin() : 0;
        c.slidingWindow = window;
        c.slidingWindowLayers = windowed < count ? windowed : 0;
        return;
    }
    c.layers = count;
    for (const TransformerConfig& one : layers) {
        const auto same = [&](TransformerConfig kind) {
            kind.layers = one.layers;
            return kind == one;
        };
        const auto kind = std::find_if(c.kinds.begin(), c.kinds.end(), same);
        c.pattern.push_back(kind - c.kinds.begin());
        if (kind == c.kinds.end()) {
            c.kinds.push_back(one);
            c.kinds.back().layers = 0;
        }
        ++c.kinds[static_cast<std::size_t>(c.pattern.back())].layers;
    }
}

} // namespace

std::vector<std::string> layerWords(FieldReader& reader)
{
    for (const char* field :
        {"layer_types", "layers_block_type", "hybrid_override_pattern", "hybrid_layer_pattern", "block_types"}) {
        std::vector<std::string> words = reader.words(field);
        std::erase(words, "|"); // between stages
        if (!words.empty())
            return words;
    }
    if (const std::vector<std::string> words = wordsOfTypes(reader); !words.empty())
        return words;
    const std::vector<std::string> kinds = reader.words("attn_type_list"); // MiniMax: 1 for attention, 0 for another kind
    if (std::any_of(kinds.begin(), kinds.end(), [](const std::string& kind) { return kind != "1"; }))
        reader.refuse("MW1351", "attn_type_list", "attn_type_list has layers of lightning attention, which are not known");
    const Json* lists = objectIn(reader, "linear_attn_config");
    if (lists != nullptr)
        return wordsOfLists(*lists);
    // Every n-th layer is of attention that sees all; the others have a recurrence or a window.
    const bool isRecurrent = reader.find("linear_num_value_heads") != nullptr;
    const std::string field = isRecurrent ? "full_attention_interval" : "sliding_window_pattern";
    const std::int64_t step = reader.size(field, 0, 0);
    const std::int64_t period = reader.size({"attn_layer_period", "global_attn_every_n_layers"}, 0, 0);
    const char* others
        = reader.find("global_attn_every_n_layers") != nullptr ? "sliding_attention" : "mamba"; // ModernBERT, Jamba
    const std::int64_t layers = step == 0 && period == 0
        ? 0
        : std::min(reader.size({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, 1), kMostTransformerLayers);
    std::vector<std::string> words;
    for (std::int64_t i = 1; i <= layers && step > 0; ++i)
        words.emplace_back(i % step == 0 ? "full_attention" : isRecurrent ? "linear_attention" : "sliding_attention");
    for (std::int64_t i = 0; i < layers && period > 0; ++i)
        words.emplace_back(i % period == reader.size("attn_layer_offset", 0, 0) % period ? "attention" : others);
    if (words.empty() && reader.find("state_size") != nullptr)
        reader.refuse("MW1351", "state_size", "state_size: layers of a state space without a block behind each are not known");
    for (const char* states : {"ssm_state_size", "mamba_d_state", "lru_width"}) {
        if (words.empty() && reader.find(states) != nullptr)
            reader.refuse("MW1351", states,
                fmt::format("{}: no list says which layers have a state, and layers of both are not known", states));
    }
    return words;
}

std::optional<std::int64_t> windowedLayers(FieldReader& reader, std::int64_t layers)
{
    const std::vector<std::string> words = reader.words("layer_types");
    if (words.empty())
        return std::nullopt;
    std::int64_t windowed = 0;
    for (const std::string& word : words) {
        const LayerWord* known = wordNamed(word);
        if (known == nullptr || known->mixer != MixerKind::Attention) {
            refuseKind(reader, word);
            return std::nullopt;
        }
        windowed += known->hasWindow ? 1 : 0;
    }
    if (const auto count = static_cast<std::int64_t>(words.size()); count != layers) {
        reader.refuse("MW1353", "layer_types", fmt::format("{} kinds of layers for {} layers", count, layers));
        return std::nullopt;
    }
    return windowed;
}

void readExperts(FieldReader& reader, TransformerConfig& c)
{
    c.experts = reader.size({"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"}, 0, 0);
    if (c.experts <= 1) {
        c.experts = 0;
        return;
    }
    c.expertsPerToken = reader.size(
        {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_top_k", "moe_topk", "moe_k"},
        1);
    c.expertFfn = reader.size("moe_intermediate_size", c.ffn);
    c.sharedExperts
        = reader.size({"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"}, 0, 0);
    const std::int64_t sharedFfn = reader.size({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                                                   "share_expert_dim", "shared_intermediate_size"},
        0, 0);
    if (sharedFfn % c.expertFfn != 0)
        reader.refuse("MW1353", "shared_expert_intermediate_size",
            fmt::format("a shared expert {} wide is not a multiple of an expert's {}", sharedFfn, c.expertFfn));
    else if (sharedFfn > 0)
        c.sharedExperts = std::max<std::int64_t>(c.sharedExperts, 1) * (sharedFfn / c.expertFfn);
    c.expertHidden = reader.size({"moe_latent_size", "routed_expert_hidden_size"}, 0, 0);
    c.ffnBesideExperts = reader.flag("enable_moe_block", false);
    c.ffn = reader.size({"dense_intermediate_size", "intermediate_size_mlp"}, c.ffn);
}

void readLayers(FieldReader& reader, TransformerConfig& c, std::vector<std::string> words)
{
    for (const char* field : {"hidden_size_per_layer_input", "num_kv_shared_layers"}) {
        if (reader.size(field, 0, 0) > 0)
            return reader.refuse(
                "MW1351", field, fmt::format("{}: layers that share keys or have a table of tokens each are not known", field));
    }
    if (reader.flag("use_cla", false) && reader.size("cla_share_factor", 1) > 1)
        return reader.refuse("MW1351", "cla_share_factor", "cla_share_factor: layers that share keys are not known");
    const std::int64_t stated = reader.find("attention_types") != nullptr
        ? reader.size("window_size", 256, 0)
        : reader.size({"sliding_window", "sliding_window_size", "local_attention"}, 0, 0);
    const std::int64_t window = reader.flag("use_sliding_window", true) ? stated : 0;
    c.outputGate = reader.flag({"attn_output_gate", "attention_output_gate", "mla_use_output_gate"}, false);
    c.outputRank = reader.size("o_lora_rank", 0, 0);
    c.outputGroups = c.outputRank > 0 ? reader.size("o_groups", 1) : 0;
    c.residualStreams = reader.size("hc_mult", 0, 0);
    if (c.layers < 1 || c.layers > kMostTransformerLayers)
        return; // transformerProblems says so

    const auto total = static_cast<std::size_t>(c.layers);
    const bool saysNothing = words.empty();
    if (saysNothing)
        words = {"attention"};
    for (const std::string& word : words) {
        if (wordNamed(word) == nullptr)
            return refuseKind(reader, word);
    }
    if (words.size() < total && total % words.size() != 0)
        return reader.refuse("MW1353", "layer_types", fmt::format("{} kinds of layers for {} layers", words.size(), total));
    // A list that names feed-forward blocks beside attention has one block a layer.
    bool hasBlocks = false;
    bool hasMixers = false;
    std::map<std::string, TransformerConfig> mixers;
    for (const std::string& word : words) {
        const auto* known = wordNamed(word);
        (known->mixer == MixerKind::None ? hasBlocks : hasMixers) = true;
        if (mixers.contains(word))
            continue;
        TransformerConfig& layer = mixers.emplace(word, c).first->second;
        layer.mixer = known->mixer;
        if (layer.mixer == MixerKind::Attention) {
            layer.slidingWindow = known->hasWindow || saysNothing ? window : 0;
            readOwnHeads(reader, known->hasWindow, layer);
        } else if (layer.mixer == MixerKind::DeltaRule) {
            readDeltaRule(reader, layer, word == "kda");
        } else if (layer.mixer == MixerKind::StateSpace) {
            readStateSpace(reader, layer);
        }
    }
    const bool hasDenseBeside = reader.flag("parallel_attn_mlp_res", false); // Arctic: a block as wide as the residual
    const std::vector<bool> experts = c.experts > 0 ? layersWithExperts(reader, c.layers) : std::vector<bool>(total, false);
    std::vector<TransformerConfig> layers;
    for (std::size_t i = 0; i < total; ++i) {
        const std::string& word = words[i % words.size()];
        TransformerConfig& layer = layers.emplace_back(mixers.at(word));
        const Feed feed = wordNamed(word)->feed;
        const bool isSparse = feed == Feed::Usual ? experts[i] : feed == Feed::Experts;
        const bool isBare = hasBlocks && hasMixers && feed == Feed::Usual;
        layer.experts = isSparse && !isBare ? c.experts : 0;
        if (hasDenseBeside && layer.experts > 0) {
            layer.ffnBesideExperts = true;
            layer.ffn = c.hidden;
        }
        if (!hasMixers)
            layer.mixer = MixerKind::Attention;
        else if (isBare || feed == Feed::Experts)
            layer.ffn = 0;
    }
    readCompression(reader, layers);
    readBlocks(reader, layers);
    if (!layers.empty())
        setLayers(c, layers);
}

} // namespace meshwright
