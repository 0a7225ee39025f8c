// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/comparable_of.h"

#include "core/program/transform.h"
#include "core/schedule/pipeline_uses.h"
#include "sim/compare/step_change.h"
#include "sim/session/pipeline_arrays.h"
#include "sim/session/verdict.h"

#include <fmt/format.h>

#include <set>

namespace meshwright::sim {

namespace {

std::vector<ComparedCollective> collectivesOf(const std::vector<CollectiveUse>& uses)
{
    std::vector<ComparedCollective> collectives;
    for (const CollectiveUse& use : uses)
        collectives.push_back({opName(use.kind), use.axes, phaseName(use.phase), use.cause.value, use.cause.reason,
            use.cause.annotation, use.count, use.count * use.payloadBytes, {}});
    return collectives;
}

std::vector<ComparedCollective> collectivesOf(const std::vector<StageUse>& uses)
{
    std::vector<ComparedCollective> collectives;
    for (const StageUse& one : uses) {
        collectives.push_back(std::move(collectivesOf(std::vector{one.use}).front()));
        collectives.back().stage = static_cast<std::int64_t>(one.stage);
    }
    return collectives;
}

void addSimulation(Comparable& comparable, const Simulation& simulation)
{
    comparable.figures.push_back(stepTimeFigure(simulation.stepSeconds));
    comparable.figures.push_back({"compute_s", "compute", Quantity::Seconds, simulation.computeSeconds});
    comparable.figures.push_back(
        {"exposed_communication_s", "exposed communication", Quantity::Seconds, simulation.exposedSeconds});
    comparable.figures.push_back({"bubble_s", "bubble", Quantity::Seconds, simulation.bubbleSeconds});
    comparable.figures.push_back(peakBytesFigure(static_cast<double>(simulation.peakBytes)));
    comparable.fits = simulation.fits;
    comparable.boundBy = simulation.boundBy.text();
}

class ArrayList {
public:
    explicit ArrayList(const std::vector<NamedMesh>& meshes)
        : m_meshes(meshes)
    {
    }

    void add(const Value& value, const std::string& name)
    {
        if (name.empty() || !value.sharding || value.type.dtype == DType::Token || !m_names.insert(name).second)
            return;
        ComparedArray array;
        array.name = name;
        array.dtype = dtypeName(value.type.dtype);
        array.shape = value.type.shape;
        array.spec = layoutText(*value.sharding, m_meshes.at(static_cast<std::size_t>(value.sharding->mesh)).mesh);
        array.pieceElements = elementCount(localShape(value.type.shape, *value.sharding));
        array.pieceBytes = *array.pieceElements * byteSize(value.type.dtype);
        arrays.push_back(std::move(array));
    }

    std::vector<ComparedArray> arrays;

private:
    const std::vector<NamedMesh>& m_meshes;
    std::set<std::string> m_names;
};

} // namespace

std::vector<ComparedArray> comparedArrays(const Function& function, const std::vector<NamedMesh>& meshes)
{
    ArrayList list(meshes);
    const auto addAll = [&](const std::vector<ValueId>& ids, const char* kind) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const Value& value = function[ids[i]];
            list.add(value, value.name.empty() ? fmt::format("{}{}", kind, i) : value.name);
        }
    };
    addAll(function.arguments(), "arg");
    for (const ValueId id : namedValues(function))
        list.add(function[id], function[id].name);
    addAll(function.results(), "result");
    return std::move(list.arrays);
}

std::vector<ComparedArray> comparedArrays(const ScheduledProgram& pipeline)
{
    std::vector<ComparedArray> compared;
    for (const PipelineArray& array : arraysOf(pipeline)) {
        ComparedArray& one = compared.emplace_back();
        one.name = array.name;
        one.dtype = dtypeName(array.type.dtype);
        one.shape = array.type.shape;
        one.spec = array.spec;
        one.pieceElements = elementCount(localShape(array.type.shape, array.sharding));
        one.pieceBytes = *one.pieceElements * byteSize(array.type.dtype);
        if (pipeline.stages.size() > 1)
            one.stages.assign(array.stages.begin(), array.stages.end());
    }
    return compared;
}

Comparable comparableOf(const Analysis& analysis)
{
    const BuiltPhase& built = *analysis.built;
    const DeviceStage& stage = built.partitioned.device.stages.front();
    Comparable comparable;
    comparable.kind = "study";
    comparable.file = analysis.source.file;
    comparable.mesh = analysis.mesh().axes();
    if (analysis.pipeline) {
        const ScheduledProgram& pipeline = analysis.pipeline->scheduled;
        comparable.arrays = comparedArrays(pipeline);
        comparable.collectives = collectivesOf(meshwright::collectivesOf(pipeline, built.study.pipeline.axis));
    } else {
        comparable.arrays = comparedArrays(*built.partitioned.propagated.find(built.mainFunction), stage.meshes);
        comparable.collectives = collectivesOf(meshwright::collectivesOf(*stage.find(built.mainFunction), analysis.mesh()));
    }
    if (analysis.simulated)
        addSimulation(comparable, analysis.simulated->simulation);
    comparable.problems = analysis.problems;
    return comparable;
}

Result<Comparable> comparableOf(Program program, const std::string& file)
{
    if (program.meshes.empty())
        return noMesh(file);
    const auto partitioned = propagateAndPartition(std::move(program));
    if (!partitioned)
        return inFile(partitioned.error(), file);
    const DeviceStage& stage = partitioned->device.stages.front();
    Comparable comparable;
    comparable.kind = "program";
    comparable.file = file;
    comparable.mesh = stage.mesh().axes();
    comparable.arrays.emplace();
    comparable.collectives.emplace();
    const std::vector<Function>& functions = partitioned->propagated.functions;
    for (const Function& function : functions) {
        for (ComparedArray& array : comparedArrays(function, stage.meshes)) {
            if (functions.size() > 1)
                array.name = function.name + ": " + array.name;
            comparable.arrays->push_back(std::move(array));
        }
        const DeviceFunction* device = stage.find(function.name);
        if (device == nullptr)
            continue;
        for (ComparedCollective& use : collectivesOf(meshwright::collectivesOf(*device, stage.mesh()))) {
            if (functions.size() > 1)
                use.value = function.name + ": " + use.value;
            comparable.collectives->push_back(std::move(use));
        }
    }
    return comparable;
}

Comparison compareStudies(const Analysis& before, const Analysis& after)
{
    Comparison comparison = compare(comparableOf(before), comparableOf(after));
    if (before.simulated && after.simulated)
        comparison.sentence = explainStepChange(before.simulated->simulation, after.simulated->simulation).sentence;
    return comparison;
}

} // namespace meshwright::sim
