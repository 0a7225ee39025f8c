// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/logical_names.h"

#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace meshwright {

namespace {

constexpr std::array<std::pair<const char*, const char*>, 13> kNameOfMeaning = {{{"batch", "batch"}, {"sequence", "length"},
    {"vocabulary", "vocab"}, {"hidden", "embed"}, {"ffn", "mlp"}, {"ffn of an expert", "mlp"},
    {"ffn of the shared experts", "mlp"}, {"heads", "heads"}, {"key and value heads", "kv_heads"}, {"head size", "kv"},
    {"experts", "exp"}, {"layers", "layers"}, {"positions", "positions"}}};

/// "inputs of layer 3" is the width before layer 3, "outputs of layer 3" that before layer 4.
std::optional<std::int64_t> mlpWidth(std::string_view meaning)
{
    for (const auto& [start, offset] :
        {std::pair<std::string_view, std::int64_t>{"inputs of layer ", 0}, {"outputs of layer ", 1}}) {
        if (!meaning.starts_with(start))
            continue;
        if (const auto layer = parseInteger(meaning.substr(start.size())))
            return *layer + offset;
    }
    return std::nullopt;
}

std::string nameOf(const std::string& meaning)
{
    if (const auto width = mlpWidth(meaning))
        return *width % 2 == 0 ? "embed" : "hidden";
    const auto* found
        = std::find_if(kNameOfMeaning.begin(), kNameOfMeaning.end(), [&](const auto& entry) { return entry.first == meaning; });
    return found == kNameOfMeaning.end() ? std::string() : found->second;
}

bool hasName(const LogicalNames& names, const char* name)
{
    return std::any_of(names.begin(), names.end(), [&](const LogicalName& one) { return one.name == name; });
}

/// Source: AI-Hypercomputer/maxtext, the logical names that its layers give to kernels and to the values that they constrain.
void toMaxText(LogicalNames& names, const StudyArray& array)
{
    const bool isParameter = array.kind == StudyArray::Kind::Parameter;
    const bool hasExperts = hasName(names, "exp");
    const bool isLogits = hasName(names, "vocab");
    const bool isStream = hasName(names, "embed");
    for (LogicalName& name : names) {
        if (name.name == "hidden")
            name.name = "mlp";
        if (name.name.empty() || name.name == "positions")
            name.name.clear();
        else if (isParameter)
            name.name = name.name == "embed" && array.name.ends_with(".scale") ? "norm"
                : name.name == "embed" && hasExperts                           ? "embed_no_exp"
                                                                               : name.name;
        else if (name.name == "batch" && isLogits)
            name.name = "activation_embed_and_logits_batch";
        else if (name.name == "length")
            name.name = isLogits ? "activation_length_no_exp" : isStream ? "activation_norm_length" : "activation_length";
        else
            name.name = "activation_" + name.name;
    }
}

} // namespace

LogicalNames logicalNamesOf(const StudyArray& array, const std::string& ruleList)
{
    LogicalNames names;
    for (const std::string& meaning : array.meaning)
        names.push_back({nameOf(meaning), false});
    if (ruleList == "maxtext")
        toMaxText(names, array);
    return names;
}

std::optional<RuledSpec> ruledSpec(const StudyArray& array, const Study& study)
{
    const bool follows = array.kind == StudyArray::Kind::OptimizerState || array.kind == StudyArray::Kind::Gradient;
    if (study.sharding.rules.empty() || follows || isInAnotherOrder(array) || array.meaning.empty())
        return std::nullopt;
    auto decision = linenAxes(logicalNamesOf(array, study.sharding.ruleList), study.sharding.rules);
    const auto applied = [](const LogicalStep& step) { return step.verdict == LogicalVerdict::Applied; };
    if (!decision || std::none_of(decision->trace.begin(), decision->trace.end(), applied))
        return std::nullopt;
    RuledSpec ruled;
    for (JaxSpec::Entry& entry : decision->spec.dims)
        ruled.spec.dims.push_back(std::move(entry.axes));
    if (!study.sharding.ruleList.empty()) {
        const auto isAbsent = [&](const std::string& axis) {
            return std::none_of(study.mesh.begin(), study.mesh.end(), [&](const MeshAxis& known) { return known.name == axis; });
        };
        for (auto& axes : ruled.spec.dims)
            std::erase_if(axes, isAbsent);
    }
    ruled.trace = std::move(decision->trace);
    std::erase_if(ruled.trace, [](const LogicalStep& step) { return step.verdict == LogicalVerdict::NameAbsent; });
    return ruled;
}

} // namespace meshwright
