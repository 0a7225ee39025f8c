// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/lints.h"

#include "core/models/array_name.h"
#include "core/study/pipeline_choice.h"
#include "core/study/spec_findings.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// The settings by which a study fixes what a lint found in its step.
class StudyFixes {
public:
    StudyFixes(const Study& study, const StudyArrays& arrays, const Function& step)
        : m_study(study)
        , m_arrays(arrays)
        , m_step(step)
    {
        for (const StudyPhase& phase : study.phases)
            m_meshes.push_back(phase.mesh);
        if (m_meshes.empty())
            m_meshes.push_back(study.mesh);
    }

    std::vector<std::string> settingsFor(const Problem& problem) const
    {
        const std::string& path = problem.place.path;
        if (!m_study.trains())
            return {};
        if (problem.id == "MW1270")
            return batchOver(path.substr(path.find('.') + 1));
        if (problem.id == "MW1272" || problem.id == "MW1276")
            return path.starts_with("sharding.") && path.ends_with(".out") ? std::vector<std::string>{path + "="}
                                                                           : std::vector<std::string>();
        if (problem.id == "MW1274")
            return likeItsParameter(path);
        if (problem.id == "MW1275")
            return likeTheOthers(path);
        if (problem.id == "MW1277" && m_study.mesh.size() == 1)
            return batchOver(m_study.mesh.front().name);
        return {};
    }

private:
    bool fits(const PartitionSpec& spec, const Shape& shape) const { return withFittingAxes(spec, shape, m_meshes) == spec; }

    /// Inputs and targets split over one more axis, if the batch divides.
    std::vector<std::string> batchOver(const std::string& axis) const
    {
        std::vector<std::string> settings;
        for (const StudyArray& array : m_arrays.all) {
            if (array.kind != StudyArray::Kind::Input)
                continue;
            const AssignedSpec* given = m_arrays.assignedTo(array.name);
            PartitionSpec spec = given != nullptr ? given->spec : PartitionSpec();
            spec.dims.resize(array.shape.size());
            spec.dims.front().push_back(axis);
            if (!fits(spec, array.shape))
                return {};
            settings.push_back(fmt::format("{}={}", ownSpecPath(m_study, array.name), specText(spec)));
        }
        return settings;
    }

    /// The sharding of an argument of the step as a spec.
    std::optional<PartitionSpec> specOf(const std::string& name) const
    {
        const auto value = m_step.findValue(name);
        const auto mesh = meshOf(m_study);
        if (!value || !m_step[*value].sharding || !mesh)
            return std::nullopt;
        return toSpec(*m_step[*value].sharding, *mesh);
    }

    std::vector<std::string> likeItsParameter(const std::string& state) const
    {
        const ArrayName name = arrayNameOf(state);
        const auto spec = name.isState() ? specOf(name.base) : std::nullopt;
        if (!spec)
            return {};
        return {fmt::format("{}={}", ownSpecPath(m_study, state), specText(*spec))};
    }

    /// Split along the largest dimension that divides by the axes of the largest parameter that is sharded.
    std::vector<std::string> likeTheOthers(const std::string& name) const
    {
        std::vector<std::string> axes;
        std::int64_t largest = 0;
        const StudyArray* array = nullptr;
        for (const StudyArray& one : m_arrays.all) {
            if (one.name == name)
                array = &one;
            const auto spec = one.kind == StudyArray::Kind::Parameter ? specOf(one.name) : std::nullopt;
            const auto split = spec
                ? std::find_if(spec->dims.begin(), spec->dims.end(), [](const auto& names) { return !names.empty(); })
                : decltype(spec->dims.begin())();
            if (spec && split != spec->dims.end() && elementCount(one.shape) > largest) {
                largest = elementCount(one.shape);
                axes = *split;
            }
        }
        if (array == nullptr || axes.empty())
            return {};
        const PartitionSpec spec = ruleSpec({"*", 0, true, PartitionSpec{{axes}}}, *array, m_study.mesh);
        if (spec.dims.empty() || !fits(spec, array->shape))
            return {};
        return {fmt::format("{}={}", ownSpecPath(m_study, name), specText(spec))};
    }

    const Study& m_study;
    const StudyArrays& m_arrays;
    const Function& m_step;
    std::vector<std::vector<MeshAxis>> m_meshes;
};

} // namespace

Problems lintStudy(const Study& study, const StudyArrays& arrays, const LintedFunction& step)
{
    Problems problems = lintFunction(step);
    if (isPipelined(study.pipeline)) // of a step in one piece only what its axes are for holds for one in stages
        std::erase_if(problems, [&](const Problem& problem) {
            return problem.id != "MW1270" || problem.place.path == "mesh." + study.pipeline.axis;
        });
    const StudyFixes fixes(study, arrays, step.propagated);
    for (Problem& problem : problems) {
        problem.fixSettings = fixes.settingsFor(problem);
        const std::string path = problem.place.path;
        const bool isPath = path.starts_with("mesh.") || path.starts_with("sharding.");
        problem.place = study.placeOf(isPath ? path : ownSpecPath(study, path));
        if (problem.place.path.empty())
            problem.place.path = path;
    }
    return problems;
}

} // namespace meshwright
