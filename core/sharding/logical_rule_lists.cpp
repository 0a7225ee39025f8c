// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/logical_axes.h"

#include "core/support/text.h"

#include <array>
#include <map>

namespace meshwright {

namespace {

/// A logical name and its targets, in order of precedence: targets are separated by `|`, the axes of one by spaces; `-` is not an axis. Axes are
/// written by the letters of a list's `axes`.
struct ShortRule {
    const char* name;
    const char* targets;
};

/// One letter or more for each mesh axis.
struct ShortAxis {
    const char* letters;
    const char* name;
};

/// AI-Hypercomputer/maxtext, src/MaxText/configs/base.yml (`mesh_axes`, `logical_axis_rules`) at commit 003b4169.
constexpr std::array<ShortAxis, 12> kMaxTextAxes = {{{"d", "data"}, {"st", "stage"}, {"f", "fsdp"}, {"ft", "fsdp_transpose"},
    {"sq", "sequence"}, {"c", "context"}, {"ca", "context_autoregressive"}, {"t", "tensor"}, {"tt", "tensor_transpose"},
    {"ts", "tensor_sequence"}, {"e", "expert"}, {"a", "autoregressive"}}};

constexpr std::array<ShortRule, 61> kMaxTextRules = {{
    {"activation_batch", "d f ft e"},
    {"activation_batch_no_exp", "d f ft"},
    {"activation_embed_and_logits_batch", "d st f ft e"},
    {"activation_embed_and_logits_batch_sequence", "d st f ft sq c e"},
    {"activation_heads", "t tt sq ts a"},
    {"activation_kv_heads", "t tt sq ts"},
    {"activation_length", "sq c e|c e"},
    {"activation_attn_length", "sq c e|c e"},
    {"activation_attn_length_no_exp", "sq c|c"},
    {"activation_length_no_exp", "sq c|c"},
    {"activation_norm_length", "ts c sq"},
    {"activation_q_length", "c e"},
    {"activation_q_length_no_exp", "c"},
    {"prefill_activation_length", "sq c"},
    {"prefill_activation_norm_length", "ts c sq"},
    {"activation_kv_length", "-"},
    {"activation_attn_embed", "t tt"},
    {"activation_embed", "t tt"},
    {"activation_mlp", "t tt ts"},
    {"activation_kv", "t tt ts"},
    {"activation_prefill_kv_batch", "d f ft e"},
    {"activation_kv_batch", "d f ft e"},
    {"activation_kv_batch_no_exp", "d f ft"},
    {"activation_kv_head_dim", "t tt ts"},
    {"activation_vocab", "t tt ts|t tt|ts|sq c"},
    {"activation_stage", "st"},
    {"activation_exp", "e"},
    {"decode_batch", "d f ft e"},
    {"decode_length", "sq"},
    {"mlp", "ft t ts a"},
    {"mlp_no_fsdp", "t ts a"},
    {"vocab", "t tt ts a"},
    {"heads", "t tt ts a"},
    {"q_heads", "t tt ts a"},
    {"kv_heads", "t tt ts a"},
    {"embed", "f ft sq tt c e|f sq tt c e|f ft sq c e|f sq c e"},
    {"embed_no_exp", "f ft sq tt c|f sq tt c|f ft sq c|f sq c"},
    {"embed_tensor_transpose", "tt"},
    {"q_lora", "f ft sq c tt e|f sq c tt e|f ft sq c e|f sq c e"},
    {"q_lora_up_proj", "-"},
    {"kv_lora", "f ft sq c tt e|f sq c tt e|f ft sq c e|f sq c e"},
    {"kv_lora_up_proj", "-"},
    {"norm", "t tt"},
    {"layers", "st"},
    {"qkv", "-"},
    {"kv", "-"},
    {"kv_head_dim", "-"},
    {"cache_batch_prefill", "-"},
    {"cache_batch", "-"},
    {"cache_heads_none", "-"},
    {"cache_heads", "a t tt ts|a t ts"},
    {"cache_kv", "-"},
    {"cache_sequence", "-"},
    {"exp", "e"},
    {"exp_with_fsdp", "f"},
    {"paged_kv_heads", "t"},
    {"num_pages", "-"},
    {"tokens_per_page", "-"},
    {"paged_kv_head_dim_size", "-"},
    {"dense_layers", "-"},
    {"moe_layers", "-"},
}};

template <std::size_t Axes, std::size_t Rules>
LogicalRuleList listOf(
    const char* name, const char* title, const std::array<ShortAxis, Axes>& axes, const std::array<ShortRule, Rules>& rules)
{
    LogicalRuleList list{name, title, {}, {}};
    std::map<std::string, std::string, std::less<>> nameOf;
    for (const ShortAxis& axis : axes) {
        list.meshAxes.emplace_back(axis.name);
        nameOf[axis.letters] = axis.name;
    }
    for (const ShortRule& rule : rules) {
        for (const std::string& target : split(rule.targets, '|')) {
            LogicalRule full{rule.name, {}};
            for (const std::string& letters : split(target, ' ')) {
                if (letters != "-")
                    full.target.axes.push_back(nameOf.at(letters));
            }
            list.rules.push_back(std::move(full));
        }
    }
    return list;
}

const std::vector<LogicalRuleList>& lists()
{
    static const std::vector<LogicalRuleList> kLists = {listOf("maxtext", "MaxText's base.yml", kMaxTextAxes, kMaxTextRules)};
    return kLists;
}

} // namespace

const LogicalRuleList* findLogicalRuleList(std::string_view name)
{
    for (const LogicalRuleList& list : lists()) {
        if (list.name == name)
            return &list;
    }
    return nullptr;
}

std::vector<std::string> logicalRuleListNames()
{
    std::vector<std::string> names;
    for (const LogicalRuleList& list : lists())
        names.push_back(list.name);
    return names;
}

} // namespace meshwright
