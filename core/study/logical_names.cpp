// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/logical_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace meshwright {

namespace {

constexpr std::array<std::pair<DimRole, const char*>, 13> kNameOfRole = {{{DimRole::Batch, "batch"},
    {DimRole::Sequence, "length"}, {DimRole::Vocabulary, "vocab"}, {DimRole::Hidden, "embed"}, {DimRole::Ffn, "mlp"},
    {DimRole::ExpertFfn, "mlp"}, {DimRole::SharedFfn, "mlp"}, {DimRole::Heads, "heads"}, {DimRole::KeyValueHeads, "kv_heads"},
    {DimRole::HeadSize, "kv"}, {DimRole::Experts, "exp"}, {DimRole::Layers, "layers"}, {DimRole::Positions, "positions"}}};

std::string nameOf(const DimMeaning& meaning)
{
    if (meaning.role == DimRole::LayerInputs)
        return meaning.layer % 2 == 0 ? "embed" : "hidden";
    if (meaning.role == DimRole::LayerOutputs) // the width before the next layer
        return nameOf({DimRole::LayerInputs, meaning.layer + 1});
    const auto* found = std::ranges::find(kNameOfRole, meaning.role, [](const auto& entry) { return entry.first; });
    return found == kNameOfRole.end() ? "" : found->second;
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
    for (const DimMeaning& meaning : array.meaning)
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
