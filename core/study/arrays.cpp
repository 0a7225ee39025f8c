// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/arrays.h"

#include "core/models/array_name.h"
#include "core/study/logical_names.h"
#include "core/support/checked.h"
#include "core/support/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace meshwright {

namespace {

StudyArray studyArray(const ModelArray& array)
{
    const bool isActivation = array.kind == ModelArray::Kind::Activation;
    return {array.name, isActivation ? StudyArray::Kind::Activation : StudyArray::Kind::Parameter, array.shape, array.meaning};
}

void addRenamed(
    std::vector<StudyArray>& arrays, const std::vector<StudyArray>& parameters, ArrayName::Family family, StudyArray::Kind kind)
{
    for (const StudyArray& parameter : parameters)
        arrays.push_back({ArrayName{family, parameter.name}.text(), kind, parameter.shape, parameter.meaning});
}

const std::int64_t* axisSize(const std::vector<MeshAxis>& mesh, const std::string& name)
{
    const auto axis = std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis& a) { return a.name == name; });
    return axis == mesh.end() ? nullptr : &axis->size;
}

/// The dimension that `largestDivisibleDim` picks.
std::optional<std::size_t> largestDivisible(const MatchRule& rule, const StudyArray& array, const std::vector<MeshAxis>& mesh)
{
    std::int64_t pieces = 1;
    for (const auto& axes : rule.spec.dims) {
        for (const std::string& axis : axes) {
            const std::int64_t* size = axisSize(mesh, axis);
            pieces = checkedMultiply(pieces, size != nullptr ? *size : 1).value_or(0);
        }
    }
    std::optional<std::size_t> best;
    for (std::size_t dim = 0; dim < array.shape.size(); ++dim) {
        if (pieces >= 1 && array.shape[dim] % pieces == 0 && (!best || array.shape[dim] > array.shape[*best]))
            best = dim;
    }
    return best;
}

/// x and y.
std::vector<StudyArray> batchArrays(const Study& study)
{
    StudyArray x{"x", StudyArray::Kind::Input, {study.batch}, {DimRole::Batch}};
    StudyArray y{"y", x.kind, x.shape, x.meaning};
    const auto add = [](StudyArray& array, std::int64_t size, DimMeaning meaning) {
        array.shape.push_back(size);
        array.meaning.push_back(meaning);
    };
    if (const TransformerModel* transformer = study.transformer()) {
        add(x, transformer->sequence, DimRole::Sequence);
        if (transformer->predict == Prediction::EveryToken)
            add(y, transformer->sequence, DimRole::Sequence);
    } else {
        const std::vector<std::int64_t>& layers = study.mlp()->layers;
        add(x, layers.front(), DimRole::LayerInputs);
        add(y, layers.back(), {DimRole::LayerOutputs, std::ssize(layers) - 2});
    }
    return {std::move(x), std::move(y)};
}

} // namespace

std::vector<StudyArray> studyArrays(const Study& study)
{
    const TransformerModel* transformer = study.transformer();
    const MlpModel* mlp = study.mlp();
    if (transformer != nullptr ? !sizeProblems(*transformer).empty() : mlp == nullptr || mlp->layers.size() < 2)
        return {};
    std::vector<StudyArray> parameters;
    for (const ModelArray& array : transformer != nullptr ? transformerParameters(*transformer) : mlpParameters(*mlp))
        parameters.push_back(studyArray(array));
    std::vector<StudyArray> arrays = parameters;
    for (const ArrayName::Family family : stateFamilies(study.optimizer))
        addRenamed(arrays, parameters, family, StudyArray::Kind::OptimizerState);
    for (std::string& name : scalarStates(study.optimizer))
        arrays.push_back({std::move(name), StudyArray::Kind::OptimizerState, {}, {}});
    addRenamed(arrays, parameters, ArrayName::Family::Gradient, StudyArray::Kind::Gradient);
    std::ranges::move(batchArrays(study), std::back_inserter(arrays));
    for (const ModelArray& array :
        transformer != nullptr ? transformerActivations(*transformer, study.batch) : mlpActivations(*mlp, study.batch))
        arrays.push_back(studyArray(array));
    return arrays;
}

bool globMatches(std::string_view glob, std::string_view name)
{
    std::size_t g = 0;
    std::size_t n = 0;
    std::size_t star = std::string_view::npos;
    std::size_t retry = 0;
    while (n < name.size()) {
        if (g < glob.size() && glob[g] == '*') {
            star = g++;
            retry = n;
        } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
            ++g;
            ++n;
        } else if (star != std::string_view::npos) {
            g = star + 1;
            n = ++retry;
        } else {
            return false;
        }
    }
    while (g < glob.size() && glob[g] == '*')
        ++g;
    return g == glob.size();
}

bool isInAnotherOrder(const StudyArray& array)
{
    return dimOf(DimRole::HeadsOfEach, array.meaning).has_value();
}

bool globCatches(std::string_view glob, const StudyArray& array)
{
    if (glob == array.name)
        return true;
    if (array.shape.empty() || !globMatches(glob, array.name))
        return false;
    if (array.kind == StudyArray::Kind::Parameter)
        return true;
    if (isInAnotherOrder(array) && !glob.ends_with(std::string_view(array.name).substr(array.name.rfind('.'))))
        return false;
    const std::string_view family = std::string_view(array.name).substr(0, array.name.find('.') + 1); // "opt."; nothing for "x"
    return !family.empty() && glob.substr(0, glob.find_first_of("*?")).starts_with(family);
}

bool ruleCatches(const MatchRule& rule, const StudyArray& array, const std::vector<MeshAxis>& mesh)
{
    if (!globCatches(rule.glob, array))
        return false;
    if (elementCount(array.shape) < rule.minElements)
        return false;
    return !rule.largestDivisibleDim || largestDivisible(rule, array, mesh).has_value();
}

PartitionSpec ruleSpec(const MatchRule& rule, const StudyArray& array, const std::vector<MeshAxis>& mesh)
{
    if (!rule.largestDivisibleDim)
        return rule.spec;
    PartitionSpec spec;
    const auto dim = largestDivisible(rule, array, mesh);
    if (dim && !rule.spec.dims.empty()) {
        spec.dims.resize(*dim + 1);
        spec.dims.back() = rule.spec.dims.front();
    }
    return spec;
}

std::vector<AssignedSpec> assignedSpecs(const Study& study, const std::vector<StudyArray>& arrays)
{
    const StudySharding& sharding = study.sharding;
    std::unordered_map<std::string_view, const ShardingEntry*> byName;
    std::vector<const ShardingEntry*> globs;
    for (const ShardingEntry& entry : sharding.entries) {
        byName.emplace(entry.name, &entry);
        if (entry.name.find_first_of("*?") != std::string::npos)
            globs.push_back(&entry);
    }

    std::vector<AssignedSpec> assigned;
    for (const StudyArray& array : arrays) {
        const ShardingEntry* entry = nullptr;
        if (const auto named = byName.find(array.name); named != byName.end()) {
            entry = named->second;
        } else {
            const auto glob
                = std::find_if(globs.begin(), globs.end(), [&](const ShardingEntry* e) { return globCatches(e->name, array); });
            entry = glob == globs.end() ? nullptr : *glob;
        }
        if (entry != nullptr) {
            assigned.push_back({array, entry->spec, entry->path, std::nullopt});
            continue;
        }
        const auto rule = std::find_if(
            sharding.match.begin(), sharding.match.end(), [&](const MatchRule& r) { return ruleCatches(r, array, study.mesh); });
        if (rule != sharding.match.end()) {
            const auto index = static_cast<std::size_t>(rule - sharding.match.begin());
            assigned.push_back({array, ruleSpec(*rule, array, study.mesh), fmt::format("sharding.match[{}]", index), index});
        } else if (auto ruled = ruledSpec(array, study)) {
            assigned.push_back({array, std::move(ruled->spec), "sharding.rules", std::nullopt, std::move(ruled->trace)});
        }
    }
    return assigned;
}

std::vector<AssignedSpec> assignedSpecs(const Study& study)
{
    return assignedSpecs(study, studyArrays(study));
}

const AssignedSpec* StudyArrays::assignedTo(const std::string& name) const
{
    return findBy(assigned, name, [](const AssignedSpec& one) -> const std::string& { return one.array.name; });
}

StudyArrays arraysOf(const Study& study)
{
    StudyArrays arrays{studyArrays(study), {}};
    arrays.assigned = assignedSpecs(study, arrays.all);
    return arrays;
}

std::string arrayOfEntry(const std::string& name)
{
    constexpr std::string_view kOut = ".out";
    const bool isOutput = name.starts_with("layers.") && name.ends_with(kOut);
    return isOutput ? ArrayName{ArrayName::Family::Activation, name.substr(0, name.size() - kOut.size())}.text() : name;
}

std::string ownSpecPath(const Study& study, const std::string& array)
{
    if (array.empty()) // a value without a name
        return {};
    const auto& entries = study.sharding.entries;
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const ShardingEntry& one) { return one.name == array; });
    return entry == entries.end() ? "sharding." + array : entry->path;
}

} // namespace meshwright
