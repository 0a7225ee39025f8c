// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/layers_apart.h"

#include "core/models/array_name.h"
#include "core/models/transformer_layers.h"
#include "core/study/arrays.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

bool isOf(const LayerRun& run, const std::string& array)
{
    return array == run.prefix || array.starts_with(run.prefix + ".");
}

/// What the arrays of a run's layers are called in a model that has its layers apart, in runs of its own, in place of the run's prefix.
std::vector<std::string> prefixesOf(const LayerRun& run, const TransformerModel& apart, const std::vector<LayerRun>& parts)
{
    std::vector<std::string> prefixes;
    for (const LayerRun& part : parts) {
        if (!run.has(part.first))
            continue;
        for (std::int64_t i = 0; i < (apart.unrolled ? part.count : 1); ++i)
            prefixes.push_back(layerName(apart, part, i));
    }
    return prefixes;
}

/// The study with another form of its model, in which layers are apart; its specs are written for them.
Result<Study> withModel(const Study& study, TransformerModel apart)
{
    const TransformerModel& looped = *study.transformer();
    assert(!looped.unrolled && looped.cuts.empty());
    const std::vector<LayerRun> runs = layerRuns(looped);
    const std::vector<LayerRun> parts = layerRuns(apart);
    Problems problems;
    Study changed = study;
    changed.sharding = {};
    for (const AssignedSpec& assigned : assignedSpecs(study)) {
        const ArrayName name = arrayNameOf(assigned.array.name);
        const bool isStacked = assigned.array.kind != StudyArray::Kind::Activation; // activations are of one layer
        bool isOfLayers = false;
        for (const LayerRun& run : runs) {
            if (!isOf(run, name.base))
                continue;
            isOfLayers = true;
            PartitionSpec spec = assigned.spec;
            if (isStacked && !spec.dims.empty()) {
                if (!spec.dims.front().empty() && spec.dims.front() != std::vector{study.pipeline.axis})
                    problems.push_back(
                        {"MW1546", fmt::format("{} is split over its layers, which pipeline stages have", name.text()),
                            "leave the first entry of its spec out: None", study.placeOf(assigned.path)});
                spec.dims.front().clear();
                if (apart.unrolled)
                    spec.dims.erase(spec.dims.begin());
            }
            for (const std::string& prefix : prefixesOf(run, apart, parts))
                changed.sharding.entries.push_back(
                    {ArrayName{name.family, prefix + name.base.substr(run.prefix.size())}.text(), spec, assigned.path});
        }
        if (!isOfLayers)
            changed.sharding.entries.push_back({name.text(), assigned.spec, assigned.path});
    }
    changed.model = std::move(apart);
    if (!problems.empty())
        return problems;
    return changed;
}

} // namespace

Result<Study> withUnrolledLayers(const Study& study)
{
    TransformerModel unrolled = *study.transformer();
    unrolled.unrolled = true;
    unrolled.beginsAsLoop = true;
    return withModel(study, std::move(unrolled));
}

Result<Study> withCutLoops(const Study& study, std::vector<std::int64_t> cuts)
{
    TransformerModel cut = *study.transformer();
    cut.cuts = std::move(cuts);
    return withModel(study, std::move(cut));
}

} // namespace meshwright
