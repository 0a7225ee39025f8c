// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/maxtext_values.h"

#include <array>

namespace meshwright::sim {

namespace {

/// A value of a layer and MaxText's name for it.
struct NamedValue {
    const char* value;
    const char* gated; ///< empty: there is none
    const char* plain; ///< in blocks without a gate
};

constexpr std::array kValues
    = {NamedValue{"input", "decoder_layer_input", "decoder_layer_input"}, NamedValue{"attention.q", "query_proj", "query_proj"},
        NamedValue{"attention.k", "key_proj", "key_proj"}, NamedValue{"attention.v", "value_proj", "value_proj"},
        NamedValue{"attention.mixed", "context", "context"}, NamedValue{"attention", "out_proj", "out_proj"},
        NamedValue{"ffn.gate", "mlpwi_0", ""}, NamedValue{"ffn.up", "mlpwi_1", "mlpwi_0"}, NamedValue{"ffn", "mlpwo", "mlpwo"}};

} // namespace

std::string maxTextTensor(std::string_view value, bool isGated)
{
    for (const NamedValue& one : kValues) {
        if (value == one.value)
            return isGated ? one.gated : one.plain;
    }
    return {};
}

std::vector<std::string> valuesOfMaxText(std::string_view tensor, bool isGated)
{
    if (tensor == "qkv_proj")
        return {"attention.q", "attention.k", "attention.v"};
    if (tensor == "kv_proj")
        return {"attention.k", "attention.v"};
    if (tensor == "mlpwi")
        return isGated ? std::vector<std::string>{"ffn.gate", "ffn.up"} : std::vector<std::string>{"ffn.up"};
    for (const NamedValue& one : kValues) {
        if (!tensor.empty() && tensor == std::string_view(isGated ? one.gated : one.plain))
            return {one.value};
    }
    return {};
}

const std::vector<const char*>& maxTextTensors()
{
    static const std::vector<const char*> kTensors = {"decoder_layer_input", "indexer_cutoff_threshold", "context", "mlpwi",
        "mlpwi_0", "mlpwi_1", "mlpwo", "moe_mlpwi_0", "moe_mlpwi_1", "moe_mlpwo", "query_proj", "key_proj", "value_proj",
        "kv_proj", "qkv_proj", "out_proj", "query_wa_proj", "kv_wa_proj", "mla_q", "mla_kv", "attention_out", "engram"};
    return kTensors;
}

} // namespace meshwright::sim
