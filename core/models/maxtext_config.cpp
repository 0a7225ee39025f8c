// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/maxtext_config.h"

#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

namespace meshwright {

namespace {

using Json = nlohmann::json;
using Names = std::pair<const char*, const char*>; ///< MaxText's, Hugging Face's

constexpr std::array kAlways = {Names{"base_emb_dim", "hidden_size"}, Names{"base_num_query_heads", "num_attention_heads"},
    Names{"base_num_kv_heads", "num_key_value_heads"}, Names{"base_num_decoder_layers", "num_hidden_layers"},
    Names{"base_mlp_dim", "intermediate_size"}, Names{"head_dim", "head_dim"}, Names{"vocab_size", "vocab_size"},
    Names{"logits_via_embedding", "tie_word_embeddings"}, Names{"normalization_layer_epsilon", "rms_norm_eps"},
    Names{"rope_max_timescale", "rope_theta"}, Names{"max_position_embeddings", "max_position_embeddings"},
    Names{"use_qk_norm", "use_qk_norm"}, Names{"attention_bias", "attention_bias"}};
constexpr std::array kOfExperts = {Names{"num_experts", "num_local_experts"}, Names{"num_experts_per_tok", "num_experts_per_tok"},
    Names{"base_moe_mlp_dim", "moe_intermediate_size"}, Names{"shared_experts", "n_shared_experts"},
    Names{"first_num_dense_layers", "first_k_dense_replace"}};
constexpr std::array kOfLatentAttention
    = {Names{"q_lora_rank", "q_lora_rank"}, Names{"kv_lora_rank", "kv_lora_rank"}, Names{"qk_nope_head_dim", "qk_nope_head_dim"},
        Names{"qk_rope_head_dim", "qk_rope_head_dim"}, Names{"v_head_dim", "v_head_dim"}};
constexpr std::array kOfWindows = {Names{"sliding_window_size", "sliding_window"}};

/// The value behind `key:` without its comment.
std::string_view valueOf(std::string_view line)
{
    const char quote = line.empty() ? '\0' : line.front();
    if (quote == '"' || quote == '\'')
        return line.substr(0, line.find(quote, 1) == std::string_view::npos ? line.size() : line.find(quote, 1) + 1);
    return trimmed(line.substr(0, line.starts_with('#') ? 0 : line.find(" #")));
}

std::string unquoted(std::string_view text)
{
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
        text = text.substr(1, text.size() - 2);
    return std::string(text);
}

/// A number (`500_000` too), a truth value, a list of words, or a word.
Json jsonOf(std::string_view value)
{
    std::string digits(value);
    std::erase(digits, '_');
    if (const auto integer = parseInteger(digits))
        return *integer;
    if (const auto number = parseNumber(digits))
        return *number;
    if (value == "true" || value == "True" || value == "false" || value == "False")
        return value.front() == 't' || value.front() == 'T';
    if (value.size() < 2 || value.front() != '[' || value.back() != ']')
        return unquoted(value);
    Json list = Json::array();
    for (const std::string& part : split(std::string(value.substr(1, value.size() - 2)), ','))
        list.push_back(unquoted(trimmed(part)));
    return list;
}

std::map<std::string, Json> linesOf(std::string_view text, std::vector<std::string>& notes)
{
    std::map<std::string, Json> lines;
    for (const std::string& line : split(std::string(text), '\n')) {
        const std::size_t colon = line.find(':');
        if (line.empty() || colon == std::string::npos || line.front() == '#' || line.front() == ' ' || line.front() == '\t')
            continue;
        const std::string_view value = valueOf(trimmed(std::string_view(line).substr(colon + 1)));
        if (value.empty())
            continue;
        const std::string key = line.substr(0, colon);
        if (!lines.insert_or_assign(key, jsonOf(value)).second)
            notes.push_back(fmt::format("\"{}\" is given twice: the last one counts", key));
    }
    return lines;
}

/// What a list of activations means: the products of all of them are one block, and `linear` beside another one gates it.
std::string activationOf(const Json& activations)
{
    const std::string first = activations.is_array() && !activations.empty() && activations.front().is_string()
        ? activations.front().get<std::string>()
        : std::string("silu");
    const bool isGated = !activations.is_array() || activations.size() > 1;
    if (first == "gelu")
        return isGated ? "gelu_pytorch_tanh" : "gelu_new";
    return first == "swish" ? "silu" : first;
}

} // namespace

bool isMaxTextConfig(std::string_view text)
{
    constexpr std::string_view kKey = "base_emb_dim:";
    return text.starts_with(kKey) || text.find(std::string("\n") + std::string(kKey)) != std::string_view::npos;
}

Json fieldsOfMaxText(std::string_view text, std::vector<std::string>& notes)
{
    std::map<std::string, Json> lines = linesOf(text, notes);
    Json fields = Json::object();
    const auto take = [&](std::span<const Names> names, bool isUsed) {
        for (const auto& [from, to] : names) {
            const auto line = lines.find(from);
            if (line == lines.end())
                continue;
            const bool isUnset = line->second.is_number() && line->second.get<double>() < 0.0; // -1
            if (isUsed && !isUnset)
                fields[to] = line->second;
            lines.erase(line);
        }
    };
    const auto isAbove = [&](const char* key, double least) {
        const auto line = lines.find(key);
        return line != lines.end() && line->second.is_number() && line->second.get<double>() > least;
    };
    const auto attention = lines.find("attention_type");
    const bool isLatent = attention != lines.end() && attention->second == "mla";
    if (!isAbove("q_lora_rank", 0.0))
        lines.erase("q_lora_rank");
    take(kAlways, true);
    take(kOfExperts, isAbove("num_experts", 1.0));
    take(kOfLatentAttention, isLatent);
    take(kOfWindows, isAbove("sliding_window_size", 0.0));
    if (const auto activations = lines.find("mlp_activations"); activations != lines.end())
        fields["hidden_act"] = activationOf(activations->second);
    std::vector<std::string> ignored;
    for (const auto& [key, value] : lines) {
        if (value.is_number() || value == true)
            ignored.push_back(key);
    }
    constexpr std::size_t kMostNamed = 12; // base.yml has hundreds
    if (!ignored.empty())
        notes.push_back("ignored: " + join(std::span(ignored).first(std::min(ignored.size(), kMostNamed)), ", ")
            + (ignored.size() > kMostNamed ? fmt::format(" and {} more", ignored.size() - kMostNamed) : ""));
    return fields;
}

} // namespace meshwright
