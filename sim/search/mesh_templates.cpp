// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/mesh_templates.h"

#include "core/models/array_name.h"
#include "core/sharding/partition_spec.h"
#include "core/study/arrays.h"
#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/search/search_request.h"
#include "sim/search/transformer_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace meshwright::sim {

namespace {

constexpr std::int64_t kPassesOfAStage = 4; ///< microbatches for each stage, where nobody says: the bubble is a fifth then

/// What a mesh axis of this name splits; nothing: the name does not say it.
std::optional<AxisRole> roleOfName(const std::string& axis)
{
    using enum AxisRole;
    static const std::map<std::string, AxisRole> roles
        = {{"data", Data}, {"dp", Data}, {"batch", Data}, {"replica", Data}, {"dp_replicate", Data}, {"fsdp", Fsdp},
            {"zero", Fsdp}, {"shard", Fsdp}, {"dp_shard", Fsdp}, {"expert", Expert}, {"experts", Expert}, {"ep", Expert},
            {"context", Context}, {"cp", Context}, {"sequence", Context}, {"seq", Context}, {"tensor", Tensor}, {"model", Tensor},
            {"tp", Tensor}, {"mp", Tensor}, {"pipeline", Pipeline}, {"pipe", Pipeline}, {"pp", Pipeline}, {"stage", Pipeline}};
    const auto found = roles.find(axis);
    return found == roles.end() ? std::nullopt : std::optional(found->second);
}

/// The axes of a mesh by their roles, in mesh order.
struct Reading {
    std::map<AxisRole, std::vector<MeshAxis>> axes;

    std::int64_t size(AxisRole role) const
    {
        std::int64_t product = 1;
        const auto found = axes.find(role);
        for (const MeshAxis& axis : found == axes.end() ? std::vector<MeshAxis>{} : found->second)
            product *= axis.size;
        return product;
    }
    std::string names(std::initializer_list<AxisRole> roles) const
    {
        std::vector<std::string> named;
        for (const AxisRole role : roles) {
            if (const auto found = axes.find(role); found != axes.end()) {
                for (const MeshAxis& axis : found->second)
                    named.push_back(axis.name);
            }
        }
        return join(named, " and ");
    }
};

/// Whether the model has something for such an axis to split.
bool hasUse(const Study& study, AxisRole role)
{
    const TransformerModel* model = study.transformer();
    switch (role) {
    case AxisRole::Expert:
        return model != nullptr && model->config.experts > 0;
    case AxisRole::Context:
        return model != nullptr;
    default:
        return true;
    }
}

/// The ways to read a study's mesh: by the names of its axes and, where some say nothing, the last of them as a tensor axis.
std::vector<Reading> readingsOf(const Study& study)
{
    std::vector<MeshAxis> axes;
    std::ranges::copy_if(study.mesh, std::back_inserter(axes), [](const MeshAxis& axis) { return axis.size > 1; });
    const auto read = [&](const MeshAxis* tensor) {
        Reading reading;
        for (const MeshAxis& axis : axes) {
            std::optional<AxisRole> role
                = axis.name == study.pipeline.axis && study.pipeline.stages > 1 ? AxisRole::Pipeline : roleOfName(axis.name);
            if (&axis == tensor)
                role = AxisRole::Tensor;
            else if (!role || !hasUse(study, *role))
                role = AxisRole::Data;
            reading.axes[*role].push_back(axis);
        }
        return reading;
    };
    std::vector<Reading> readings = {read(nullptr)};
    const auto unknown
        = std::find_if(axes.rbegin(), axes.rend(), [](const MeshAxis& axis) { return !roleOfName(axis.name).has_value(); });
    if (unknown != axes.rend() && !readings.front().axes.contains(AxisRole::Tensor))
        readings.push_back(read(&*unknown));
    return readings;
}

/// A plan on a mesh, and the axes as such a plan uses them.
struct NamedReading {
    std::string name; ///< as `parseFixed` takes it
    Reading reading;
    std::uint8_t zero = 0; ///< the stage of ZeRO
    bool sequenceParallel = false;
};

/// The data and fsdp axes of a mesh as a plan has them: weights are split over all of them, over the last (HSDP), or over none.
Reading withShards(const Reading& mesh, std::size_t shards)
{
    Reading reading = mesh;
    std::vector<MeshAxis>& data = reading.axes[AxisRole::Data];
    std::vector<MeshAxis>& fsdp = reading.axes[AxisRole::Fsdp];
    data.insert(data.end(), fsdp.begin(), fsdp.end());
    fsdp.assign(data.end() - static_cast<std::ptrdiff_t>(shards), data.end());
    data.resize(data.size() - shards);
    std::erase_if(reading.axes, [](const auto& one) { return one.second.empty(); });
    return reading;
}

std::vector<NamedReading> namedReadings(const Reading& mesh)
{
    std::string degrees;
    for (const auto& [role, word] :
        {std::pair{AxisRole::Tensor, "TP"}, {AxisRole::Pipeline, "PP"}, {AxisRole::Context, "CP"}, {AxisRole::Expert, "EP"}}) {
        if (mesh.size(role) > 1)
            degrees += fmt::format("{}{} {}", degrees.empty() ? "" : " + ", word, mesh.size(role));
    }
    const auto named = [&](const std::string& name) {
        return degrees.empty() ? name : name.empty() ? degrees : name + " + " + degrees;
    };
    const Reading plain = withShards(mesh, 0);
    const auto batch = plain.axes.find(AxisRole::Data);
    const std::size_t batchAxes = batch == plain.axes.end() ? 0 : batch->second.size();
    if (batchAxes == 0 && mesh.size(AxisRole::Context) * mesh.size(AxisRole::Expert) == 1)
        return {{named(""), plain}};
    std::vector<NamedReading> plans;
    plans.push_back({named("DDP"), plain});
    plans.push_back({named("ZeRO-1"), plain, 1});
    plans.push_back({named("ZeRO-2"), plain, 2});
    plans.push_back({named("FSDP"), withShards(mesh, batchAxes), 3});
    if (batchAxes > 1)
        plans.push_back({named(fmt::format("HSDP fsdp={}", batch->second.back().size)), withShards(mesh, 1), 3});
    if (mesh.size(AxisRole::Tensor) > 1 && mesh.size(AxisRole::Context) * mesh.size(AxisRole::Expert) == 1)
        plans.push_back({named("Megatron"), plain, 1, true});
    return plans;
}

/// The candidate of the search that a plan is on a mesh.
Candidate candidateOf(const NamedReading& plan)
{
    const auto size = [&](AxisRole role) { return static_cast<std::int32_t>(plan.reading.size(role)); };
    Candidate candidate;
    candidate.pp = size(AxisRole::Pipeline);
    candidate.tp = size(AxisRole::Tensor);
    candidate.cp = size(AxisRole::Context);
    candidate.ep = size(AxisRole::Expert);
    candidate.dp = size(AxisRole::Data) * size(AxisRole::Fsdp) * candidate.ep;
    candidate.zero = plan.zero;
    candidate.fsdp = candidate.zero >= 3 ? size(AxisRole::Fsdp) * candidate.ep : 1;
    candidate.sequenceParallel = plan.sequenceParallel;
    return candidate;
}

using Specs = std::vector<std::pair<std::string, std::string>>;

/// An MLP's: Megatron pairs over tensor, and rows or columns over what splits weights or states.
Specs specsOf(const Candidate& candidate, const MlpModel& model)
{
    const std::string batch = candidate.zero >= 3 && candidate.dp != candidate.fsdp ? "('data', 'fsdp')"
        : candidate.zero >= 3                                                       ? "'fsdp'"
                                                                                    : "'data'";
    const std::string rows = candidate.dp > 1 ? batch : "None";
    const auto isPaired = [&](std::size_t layer) { // a last layer without a partner stays whole
        return candidate.tp > 1 && (layer % 2 == 1 || layer + 2 < model.layers.size());
    };
    const auto weight = [&](std::size_t layer, const char* shards, std::int64_t parts) {
        std::array<std::int64_t, 2> sizes = {model.layers[layer], model.layers[layer + 1]};
        std::array<std::vector<std::string>, 2> axes;
        if (isPaired(layer)) {
            const std::size_t dim = layer % 2 == 0 ? 1 : 0;
            axes[dim].emplace_back("'tensor'");
            sizes[dim] /= candidate.tp;
        }
        if (parts > 1) {
            if (const auto dim = static_cast<std::size_t>(
                    std::ranges::find_if(sizes, [&](std::int64_t size) { return size % parts == 0; }) - sizes.begin());
                dim < sizes.size())
                axes[dim].emplace_back(shards);
        }
        const auto entry = [](const std::vector<std::string>& one) {
            return one.empty() ? std::string("None") : one.size() == 1 ? one.front() : fmt::format("({})", join(one, ", "));
        };
        return fmt::format("P({}, {})", entry(axes[0]), entry(axes[1]));
    };
    Specs specs = {{"x", fmt::format("P({}, None)", rows)}, {"y", fmt::format("P({}, None)", rows)}};
    const auto addWeights = [&](ArrayName::Family family, const char* shards, std::int64_t parts) {
        for (std::size_t layer = 0; layer + 1 < model.layers.size(); ++layer) {
            specs.emplace_back(ArrayName{family, fmt::format("layers.{}.w", layer)}.text(), weight(layer, shards, parts));
            if (model.bias && isPaired(layer) && layer % 2 == 0 && family == ArrayName::Family::Own)
                specs.emplace_back(fmt::format("layers.{}.b", layer), "P('tensor')");
        }
    };
    addWeights(ArrayName::Family::Own, "'fsdp'", candidate.zero >= 3 ? candidate.fsdp : 1);
    if (candidate.zero == 2)
        addWeights(ArrayName::Family::Gradient, "'data'", candidate.dp);
    return specs;
}

/// The optimizer's states of an MLP, split over the data axis as the weights' first dimension that divides.
void addStates(Specs& specs, const Study& study, const Candidate& candidate)
{
    if (study.mlp() == nullptr || candidate.zero < 1 || candidate.zero > 2)
        return;
    Candidate sharded = candidate;
    sharded.zero = 2;
    for (const auto& [name, spec] : specsOf(sharded, *study.mlp())) {
        if (const ArrayName array = arrayNameOf(name); array.family == ArrayName::Family::Gradient)
            specs.emplace_back(ArrayName{ArrayName::Family::Momentum, array.base}.text(), spec);
    }
}

/// The axes of the search's names as the mesh calls them.
PartitionSpec onMesh(const PartitionSpec& spec, const Reading& reading)
{
    PartitionSpec own;
    for (const std::vector<std::string>& dim : spec.dims) {
        std::vector<std::string>& axes = own.dims.emplace_back();
        for (const std::string& axis : dim) {
            for (const MeshAxis& one : reading.axes.at(*roleOfName(axis)))
                axes.push_back(one.name);
        }
    }
    return own;
}

std::string splitsText(const Candidate& candidate, const Reading& reading, bool isMlp)
{
    using enum AxisRole;
    std::vector<std::string> parts;
    const std::string batch = reading.names({Data, Fsdp, Expert});
    const std::string shards = reading.names({Fsdp, Expert, Context});
    const std::string states = reading.names({Data, Expert, Context});
    if (candidate.zero >= 3 && shards == batch) {
        parts.push_back("batch and weights over " + batch);
    } else {
        if (!batch.empty())
            parts.push_back("batch over " + batch);
        if (candidate.zero >= 3)
            parts.push_back("weights over " + shards);
    }
    if (candidate.zero == 1 || candidate.zero == 2)
        parts.push_back((candidate.zero == 1 ? "optimizer states over " : "optimizer states and gradients over ") + states);
    if (candidate.tp > 1)
        parts.push_back((isMlp ? "pairs of layers over " : "heads and feed-forward over ") + reading.names({Tensor})
            + (candidate.sequenceParallel && !isMlp ? ", sequence between them" : ""));
    if (candidate.cp > 1)
        parts.push_back("sequence over " + reading.names({Context}));
    if (candidate.ep > 1)
        parts.push_back("experts over " + reading.names({Expert}));
    if (candidate.pp > 1)
        parts.push_back("layers in stages over " + reading.names({Pipeline}));
    return join(parts, "; ");
}

/// The layers of each stage, where they are not as many everywhere; empty: they are, or some stage would have none.
std::vector<std::int64_t> unevenStages(const Study& study, std::int64_t stages)
{
    const TransformerModel* model = study.transformer();
    const std::int64_t layers
        = model != nullptr ? model->config.layers : static_cast<std::int64_t>(study.mlp()->layers.size()) - 1;
    std::vector<std::int64_t> counts;
    for (std::int64_t stage = 0; stage < stages && layers % stages != 0 && layers > stages; ++stage)
        counts.push_back(layersOfChunk(layers, stages, stage));
    return counts;
}

/// Stages and microbatches, where the study does not say them.
void addPipeline(std::vector<std::string>& settings, const Study& study, const Candidate& candidate, const Reading& reading)
{
    if (candidate.pp == 1 || study.pipeline.stages > 1)
        return;
    std::int64_t microbatches = std::max<std::int64_t>(1, study.batch / candidate.dp);
    while (
        microbatches > 1 && (microbatches > kPassesOfAStage * candidate.pp || study.batch % (microbatches * candidate.dp) != 0))
        --microbatches;
    const std::vector<std::int64_t> layers = unevenStages(study, candidate.pp);
    settings.push_back(fmt::format("pipeline={{axis: {}, stages: {}, microbatches: {}, schedule: 1f1b{}}}",
        reading.axes.at(AxisRole::Pipeline).front().name, candidate.pp, microbatches,
        layers.empty() ? std::string() : fmt::format(", layers: [{}]", fmt::join(layers, ", "))));
}

/// A ring in zigzag order, where the study does not say how parts of a sequence meet, and experts that take from each part.
void addContext(std::vector<std::string>& settings, const Study& study, const Candidate& candidate)
{
    const TransformerModel* model = study.transformer();
    if (model == nullptr)
        return;
    if (const std::int64_t groups = dispatchGroups(candidate.cp, candidate.tp, candidate.sequenceParallel);
        groups > 1 && model->config.experts > 0 && model->dispatchGroups == 1)
        settings.push_back(fmt::format("model.transformer.dispatch_groups={}", groups));
    if (candidate.cp == 1)
        return;
    if (model->attention != AttentionOp::Fused || model->context != ContextExchange::Gather)
        return;
    TransformerModel ring = *model;
    ring.zigzag = candidate.cp;
    settings.push_back(fmt::format("model.transformer.attention={{context: ring{}}}",
        hasErrors(sizeProblems(ring)) ? std::string() : fmt::format(", zigzag: {}", ring.zigzag)));
}

bool fits(const Study& study, const Specs& specs, const Candidate& candidate, const Reading& reading)
{
    if (const TransformerModel* model = study.transformer(); model != nullptr
        && (!splitsHeads(model->config, candidate.tp) || (candidate.cp > 1 && model->sequence % (2 * candidate.cp) != 0)))
        return false;
    Study other = study;
    if (auto* model = std::get_if<TransformerModel>(&other.model); model != nullptr && model->config.experts > 0)
        model->dispatchGroups
            = std::max(model->dispatchGroups, dispatchGroups(candidate.cp, candidate.tp, candidate.sequenceParallel));
    for (const auto& [array, spec] : specs)
        other.sharding.entries.push_back({array, valueOf(parseSpec(spec)), "sharding." + array});
    if (candidate.pp > 1 && study.pipeline.stages == 1) {
        if (reading.axes.at(AxisRole::Pipeline).size() > 1)
            return false;
        other.pipeline.axis = reading.axes.at(AxisRole::Pipeline).front().name;
        other.pipeline.stages = candidate.pp;
        other.pipeline.layers = unevenStages(study, candidate.pp);
    }
    return !hasErrors(checkStudy(other));
}

} // namespace

std::vector<MeshTemplate> meshTemplates(const Study& study)
{
    const bool hasSpecs = !study.sharding.entries.empty() || !study.sharding.match.empty() || !study.sharding.rules.empty();
    if (hasSpecs || !study.trains() || !study.phases.empty())
        return {};
    const bool hasStates = std::ranges::any_of(
        studyArrays(study), [](const StudyArray& array) { return array.kind == StudyArray::Kind::OptimizerState; });
    std::vector<MeshTemplate> templates;
    for (const Reading& mesh : readingsOf(study)) {
        if (mesh.axes.empty())
            return {};
        for (const NamedReading& plan : namedReadings(mesh)) {
            const Candidate candidate = candidateOf(plan);
            if ((candidate.zero == 1 || candidate.zero == 2) && !hasStates)
                continue;
            Specs searched = study.mlp() != nullptr ? specsOf(candidate, *study.mlp()) : specsOf(candidate, *study.transformer());
            addStates(searched, study, candidate);
            MeshTemplate found{plan.name, splitsText(candidate, plan.reading, study.mlp() != nullptr), {}, {}};
            StudySharding sharding;
            for (const auto& [array, spec] : searched)
                sharding.entries.push_back({array, onMesh(valueOf(parseSpec(spec)), plan.reading)});
            giveSpecsOfMoments(sharding, study.optimizer);
            for (const ShardingEntry& entry : sharding.entries)
                found.specs.emplace_back(entry.name, specText(entry.spec));
            const bool isKnown = std::ranges::any_of(
                templates, [&](const MeshTemplate& known) { return known.name == found.name || known.specs == found.specs; });
            if (isKnown || !fits(study, found.specs, candidate, plan.reading))
                continue;
            for (const auto& [array, spec] : found.specs)
                found.settings.push_back(fmt::format("sharding.{}={}", array, spec));
            found.settings.emplace_back("sharding.match=[{path: \"*\", spec: []}]");
            addPipeline(found.settings, study, candidate, plan.reading);
            addContext(found.settings, study, candidate);
            templates.push_back(std::move(found));
        }
    }
    return templates;
}

Result<MeshTemplate> templateNamed(const std::vector<MeshTemplate>& templates, const std::string& plan)
{
    const std::vector<std::string> wanted = planWords(plan);
    std::vector<std::string> names;
    std::vector<const MeshTemplate*> found;
    for (const MeshTemplate& one : templates) {
        names.push_back(one.name);
        const std::vector<std::string> words = planWords(one.name);
        if (words == wanted)
            return one;
        if (std::ranges::all_of(wanted, [&](const std::string& word) { return std::ranges::find(words, word) != words.end(); }))
            found.push_back(&one);
    }
    if (found.size() == 1 && !wanted.empty())
        return *found.front();
    return Problem{"MW1938",
        found.size() > 1    ? fmt::format("\"{}\" is {} plans on this mesh", plan, found.size())
            : names.empty() ? fmt::format("no plan can be put into this study: \"{}\"", plan)
                            : fmt::format("\"{}\" is not a plan that fits this model and mesh", plan),
        names.empty() ? std::string(
            "plans are for an MLP or a transformer without specs, on a mesh whose axes divide its batch, heads and widths")
                      : "one of: " + join(names, "; ")};
}

} // namespace meshwright::sim
