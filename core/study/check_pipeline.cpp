// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/check_pipeline.h"

#include "core/study/arrays.h"
#include "core/study/pipeline_choice.h"
#include "core/support/counted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

class PipelineCheck {
public:
    explicit PipelineCheck(const Study& study)
        : m_study(study)
        , m_pipeline(study.pipeline)
    {
    }

    Problems run()
    {
        if (!isPipelined(m_pipeline) || std::holds_alternative<std::monostate>(m_study.model))
            return {};
        if (!m_study.trains()) {
            report(
                "MW1469", "a program file is not cut into a pipeline", "write pipeline: {stages: 1}", "pipeline", {"pipeline="});
            return std::move(m_problems);
        }
        checkAxis(m_study.mesh, "mesh");
        for (std::size_t i = 0; i < m_study.phases.size(); ++i)
            checkAxis(m_study.phases[i].mesh, fmt::format("phases[{}].mesh", i));
        checkMicrobatches();
        checkSchedule();
        checkLayers();
        checkTasks();
        if (m_pipeline.stages > 1)
            checkSpecs();
        return std::move(m_problems);
    }

private:
    void report(
        const char* id, std::string message, std::string fix, const std::string& path, std::vector<std::string> fixSettings)
    {
        Problem problem{id, std::move(message), std::move(fix), m_study.placeOf(path)};
        problem.fixSettings = std::move(fixSettings);
        m_problems.push_back(std::move(problem));
    }

    void checkAxis(const std::vector<MeshAxis>& mesh, const std::string& path)
    {
        if (m_pipeline.stages == 1 && m_pipeline.axis.empty())
            return;
        const auto axis
            = std::find_if(mesh.begin(), mesh.end(), [this](const MeshAxis& other) { return other.name == m_pipeline.axis; });
        const std::int64_t size = axis == mesh.end() ? 1 : axis->size;
        if (size == m_pipeline.stages)
            return;
        if (m_pipeline.axis.empty())
            report("MW1460", fmt::format("{} stages, but no mesh axis for them", m_pipeline.stages),
                fmt::format("name it: pipeline: {{axis: pipe, ..}}, and give the mesh an axis pipe of {}", m_pipeline.stages),
                "pipeline", {"pipeline.axis=pipe", fmt::format("mesh.pipe={}", m_pipeline.stages)});
        else
            report("MW1460",
                fmt::format("{} stages over the axis \"{}\", which has size {}", m_pipeline.stages, m_pipeline.axis, size),
                "give the axis as many devices as there are stages", path,
                {fmt::format("{}.{}={}", path, m_pipeline.axis, m_pipeline.stages)});
    }

    void checkMicrobatches()
    {
        if (m_study.train.accumulate > 1)
            report("MW1466", "train.accumulate splits the batch that the pipeline already splits",
                "leave it out: the pipeline also accumulates the gradients of its microbatches", "train.accumulate",
                {"train.accumulate=1"});
        if (m_study.batch >= 1 && m_study.batch % m_pipeline.microbatches != 0)
            report("MW1461",
                fmt::format("a batch of {} is not divisible by {} microbatches", m_study.batch, m_pipeline.microbatches),
                "use a number that divides the batch", "pipeline.microbatches",
                {fmt::format("pipeline.microbatches={}", std::gcd(m_study.batch, m_pipeline.microbatches))});
    }

    void checkTasks()
    {
        const std::int64_t pieces = pieceCount(m_pipeline);
        if (pieces <= kMostPipelineTasks && pieces * m_pipeline.microbatches <= kMostPipelineTasks)
            return;
        report("MW1467",
            fmt::format("{} microbatches on {} stages of {} chunks are more than the {} tasks that a step may have",
                m_pipeline.microbatches, m_pipeline.stages, m_pipeline.chunks, kMostPipelineTasks),
            "use fewer microbatches, stages or chunks", "pipeline.microbatches", {});
    }

    void checkSchedule()
    {
        const bool interleaved = m_pipeline.schedule == PipelineOrder::Interleaved;
        if (m_pipeline.chunks > 1 && !interleaved)
            report("MW1463",
                fmt::format(
                    "{} chunks on each stage, but the schedule {} has one", m_pipeline.chunks, scheduleName(m_pipeline.schedule)),
                "write schedule: interleaved, or chunks: 1", "pipeline.chunks", {"pipeline.schedule=interleaved"});
        if (m_pipeline.chunks == 1 && interleaved)
            report("MW1463", "an interleaved schedule needs several chunks of layers on each stage, but there is one",
                "write chunks: 2, or schedule: 1f1b", "pipeline.schedule", {"pipeline.schedule=1f1b"});
        const std::int64_t stages = m_pipeline.stages;
        if (m_pipeline.chunks > 1 && interleaved && m_pipeline.microbatches % stages != 0)
            report("MW1463",
                fmt::format("an interleaved schedule takes microbatches in rounds of {}, but there are {}", stages,
                    m_pipeline.microbatches),
                "use a multiple of the stages", "pipeline.microbatches",
                {fmt::format("pipeline.microbatches={}", (m_pipeline.microbatches / stages + 1) * stages)});
    }

    void checkLayers()
    {
        const std::int64_t layers = m_study.transformer() != nullptr
            ? m_study.transformer()->config.layers
            : static_cast<std::int64_t>(m_study.mlp()->layers.size()) - 1;
        if (layers < 1)
            return; // said elsewhere
        const std::int64_t pieces = pieceCount(m_pipeline);
        const bool hasEnds = m_study.transformer() != nullptr; // embedding and head, which may be pieces of their own
        const std::string cut = m_pipeline.chunks > 1
            ? fmt::format("{} stages of {} chunks", m_pipeline.stages, m_pipeline.chunks)
            : fmt::format("{} stages", m_pipeline.stages);
        if (pieces > layers + (hasEnds ? 2 : 0)) {
            report("MW1462",
                fmt::format("{} for a model of {}{}", cut, counted(layers, "layer"), hasEnds ? ", an embedding and a head" : ""),
                "use fewer stages or chunks, or more layers", "pipeline.stages", {});
            return;
        }
        PipelineChoice even = m_pipeline;
        even.layers.clear();
        const std::string list = fmt::format("pipeline.layers=[{}]", fmt::join(layersOfPieces(even, layers), ", "));
        if (m_pipeline.layers.empty()) {
            if (layers % pieces != 0)
                report("MW1462", fmt::format("{} layers cannot be split evenly into {}", layers, cut),
                    "say how many layers each has: " + list, "pipeline.stages", {list});
            return;
        }
        const std::int64_t sum = std::accumulate(m_pipeline.layers.begin(), m_pipeline.layers.end(), std::int64_t{0});
        bool allHaveSome = true;
        for (std::size_t piece = 0; piece < m_pipeline.layers.size(); ++piece) {
            const bool isEnd = piece == 0 || piece + 1 == m_pipeline.layers.size();
            allHaveSome = allHaveSome && m_pipeline.layers[piece] >= (hasEnds && isEnd ? 0 : 1);
        }
        if (static_cast<std::int64_t>(m_pipeline.layers.size()) != pieces || sum != layers || !allHaveSome)
            report("MW1462",
                fmt::format("pipeline.layers has {} numbers with the sum {}, for {} and {} layers", m_pipeline.layers.size(), sum,
                    cut, layers),
                hasEnds ? "give each stage (each chunk of each, in the order of the layers) at least one layer; the first and "
                          "the last may have the embedding and the head alone"
                        : "give each stage (each chunk of each, in the order of the layers) at least one layer",
                "pipeline.layers", {list});
    }

    void checkSpecs()
    {
        std::vector<std::string> seen;
        for (const AssignedSpec& assigned : assignedSpecs(m_study)) {
            // A loop's stacked layers split over the stages are what the stages hold.
            const bool isStacked = !assigned.array.meaning.empty() && assigned.array.meaning.front().role == DimRole::Layers;
            const auto first = assigned.spec.dims.begin() + (isStacked && !assigned.spec.dims.empty() ? 1 : 0);
            const bool uses = std::any_of(first, assigned.spec.dims.end(), [this](const auto& axes) {
                return std::any_of(axes.begin(), axes.end(), [this](const auto& axis) { return axis == m_pipeline.axis; });
            });
            if (!uses || std::find(seen.begin(), seen.end(), assigned.path) != seen.end())
                continue;
            seen.push_back(assigned.path);
            report("MW1464",
                fmt::format("{} is split over \"{}\", the axis of the pipeline's stages", assigned.array.name, m_pipeline.axis),
                "a stage's arrays are on its own devices: leave the axis out", assigned.path, {});
        }
    }

    const Study& m_study;
    const PipelineChoice& m_pipeline;
    Problems m_problems;
};

} // namespace

Problems checkPipelineFits(const Study& study)
{
    return PipelineCheck(study).run();
}

} // namespace meshwright
