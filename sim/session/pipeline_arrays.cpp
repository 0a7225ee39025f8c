// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/pipeline_arrays.h"

#include "core/program/transform.h"
#include "core/schedule/stage_array.h"

#include <map>

namespace meshwright::sim {

namespace {

/// False for what functions of stages hand each other.
bool isOfTheModel(const std::string& name)
{
    switch (stageArrayOf(name).kind) {
    case StageArray::Kind::Model:
    case StageArray::Kind::Gradient:
    case StageArray::Kind::GradientSum:
    case StageArray::Kind::Batch:
    case StageArray::Kind::Metric:
        return true;
    default:
        return false;
    }
}

class ArrayCollector {
public:
    explicit ArrayCollector(const ScheduledProgram& pipeline)
        : m_pipeline(pipeline)
    {
    }

    std::vector<PipelineArray> collect()
    {
        for (std::size_t stage = 0; stage < m_pipeline.stages.size(); ++stage) {
            for (const ScheduledFunction& function : m_pipeline.stages[stage].functions) {
                if (function.device.function.name == "init")
                    continue;
                for (const ValueId id : namedValues(function.device.function))
                    add(function.device, id, stage);
            }
        }
        return std::move(m_arrays);
    }

private:
    void add(const DeviceFunction& device, ValueId id, std::size_t stage)
    {
        const Value& value = device.function[id];
        if (value.type.dtype == DType::Token || !isOfTheModel(value.name))
            return;
        const auto [place, isNew] = m_placeOf.try_emplace(value.name, m_arrays.size());
        if (!isNew) {
            std::vector<std::size_t>& stages = m_arrays[place->second].stages;
            if (stages.back() != stage)
                stages.push_back(stage);
            return;
        }
        const Mesh& mesh = m_pipeline.stages[stage].meshes.at(static_cast<std::size_t>(value.sharding->mesh)).mesh;
        m_arrays.push_back({value.name, value.role, {value.type.dtype, device.globalShapes[id.at()]}, *value.sharding,
            layoutText(*value.sharding, mesh), value.annotation, {stage}, &mesh});
    }

    const ScheduledProgram& m_pipeline;
    std::vector<PipelineArray> m_arrays;
    std::map<std::string, std::size_t> m_placeOf; ///< by name
};

} // namespace

std::vector<PipelineArray> arraysOf(const ScheduledProgram& pipeline)
{
    return ArrayCollector(pipeline).collect();
}

} // namespace meshwright::sim
