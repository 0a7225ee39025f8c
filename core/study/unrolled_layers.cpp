// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/unrolled_layers.h"

#include "core/models/transformer_layers.h"
#include "core/study/arrays.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

/// Where the name of an array of a run of layers goes on behind "layers"; npos for other arrays.
std::size_t behindLayers(const std::string& name, const LayerRun& run)
{
    for (const char* family : {"", "opt.m.", "opt.v.", "grad.", "act."}) {
        const std::string begin = family + run.prefix;
        if (name == begin || name.starts_with(begin + "."))
            return begin.size();
    }
    return std::string::npos;
}

} // namespace

Result<Study> withUnrolledLayers(const Study& study)
{
    const TransformerModel& looped = *study.transformer();
    assert(!looped.unrolled);
    Problems problems;
    Study unrolled = study;
    unrolled.sharding = {};
    for (const AssignedSpec& assigned : assignedSpecs(study)) {
        const std::string& name = assigned.array.name;
        bool isOfLayers = false;
        for (const LayerRun& run : layerRuns(looped.config)) {
            const std::size_t behind = behindLayers(name, run);
            if (behind == std::string::npos)
                continue;
            isOfLayers = true;
            PartitionSpec spec = assigned.spec;
            if (assigned.array.kind != StudyArray::Kind::Activation && !spec.dims.empty()) { // activations are of one layer
                if (!spec.dims.front().empty() && spec.dims.front() != std::vector{study.pipeline.axis})
                    problems.push_back({"MW1546", fmt::format("{} is split over its layers, which pipeline stages have", name),
                        "leave the first entry of its spec out: None", study.placeOf(assigned.path)});
                spec.dims.erase(spec.dims.begin());
            }
            for (std::int64_t layer = 0; layer < run.count; ++layer)
                unrolled.sharding.entries.push_back(
                    {fmt::format("{}.{}{}", name.substr(0, behind), layer, name.substr(behind)), spec, assigned.path});
        }
        if (!isOfLayers)
            unrolled.sharding.entries.push_back({name, assigned.spec, assigned.path});
    }
    auto& model = std::get<TransformerModel>(unrolled.model);
    model.unrolled = true;
    model.beginsAsLoop = true;
    if (!problems.empty())
        return problems;
    return unrolled;
}

} // namespace meshwright
