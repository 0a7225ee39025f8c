// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/spec_findings.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

Problem unknownAxis(const std::string& axis, const std::vector<std::string>& names)
{
    return {"MW1102", fmt::format("unknown axis name: \"{}\"", axis),
        names.empty() ? fmt::format("add the axis to the mesh: mesh: {{{}: 2}}", axis) : suggestion(axis, names), {},
        Severity::Error, names.empty() ? "the study has no mesh axes" : "the mesh has the axes " + join(names, ", ")};
}

} // namespace

std::vector<SpecFinding> axisFindings(const PartitionSpec& spec, const std::vector<std::string>& names)
{
    std::vector<SpecFinding> findings;
    std::set<std::string> seen;
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
        for (std::size_t i = 0; i < spec.dims[dim].size(); ++i) {
            const std::string& axis = spec.dims[dim][i];
            if (!contains(names, axis))
                findings.push_back({unknownAxis(axis, names), dim, i});
            else if (!seen.insert(axis).second)
                findings.push_back({axisUsedTwice(axis, spec), dim, i});
        }
    }
    return findings;
}

std::int64_t piecesOf(const std::vector<std::string>& axes, const std::vector<MeshAxis>& mesh)
{
    std::int64_t pieces = 1;
    for (const std::string& name : axes) {
        const auto axis = std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis& a) { return a.name == name; });
        if (axis != mesh.end())
            pieces *= axis->size; // a mesh is small: checked
    }
    return pieces;
}

std::vector<SpecFinding> fitFindings(
    const PartitionSpec& spec, const StudyArray& array, const std::vector<MeshAxis>& mesh, const std::string& where)
{
    const std::size_t rank = array.shape.size();
    if (spec.dims.size() > rank) {
        std::vector<std::string> meanings;
        std::ranges::transform(array.meaning, std::back_inserter(meanings), &DimMeaning::text);
        const std::string dims = rank == 0 ? "a scalar" : join(meanings, ", ");
        const std::string has = rank == 1 && !dims.empty()
            ? "one dimension, " + dims
            : fmt::format("rank {}{}", rank, dims.empty() ? "" : fmt::format(" ({})", dims));
        return {
            {{"MW1101",
                 fmt::format("the spec {} has {} entries, but \"{}\" has {}", specText(spec), spec.dims.size(), array.name, has),
                 fmt::format("give at most {} {}", rank, rank == 1 ? "entry" : "entries"), {}, Severity::Error,
                 "at most one entry for each dimension"},
                rank, std::nullopt}};
    }
    std::vector<SpecFinding> findings;
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
        const std::int64_t pieces = piecesOf(spec.dims[dim], mesh);
        const std::int64_t size = array.shape[dim];
        if (size % pieces == 0)
            continue;
        findings.push_back({notDivisible({.dim = dim,
                                .size = size,
                                .pieces = pieces,
                                .array = fmt::format("\"{}\"", array.name),
                                .meaning = dim < array.meaning.size() ? array.meaning[dim].text() : std::string(),
                                .where = where,
                                .cutBy = fmt::format("{} ({}) {}", spec.dims[dim].size() == 1 ? "mesh axis" : "mesh axes",
                                    join(spec.dims[dim], ", "), spec.dims[dim].size() == 1 ? "cuts" : "cut")}),
            dim, std::nullopt});
    }
    return findings;
}

PartitionSpec withKnownAxes(const PartitionSpec& spec, const std::vector<std::string>& names)
{
    PartitionSpec corrected;
    std::set<std::string> used;
    for (const auto& axes : spec.dims) {
        corrected.dims.emplace_back();
        for (const std::string& axis : axes) {
            const std::string name = contains(names, axis) ? axis : nearestName(axis, names).value_or(axis);
            if (used.insert(name).second)
                corrected.dims.back().push_back(name);
        }
    }
    return corrected;
}

PartitionSpec withFittingAxes(const PartitionSpec& spec, const Shape& shape, std::span<const std::vector<MeshAxis>> meshes)
{
    PartitionSpec fitting = spec;
    fitting.dims.resize(std::min(spec.dims.size(), shape.size()));
    for (std::size_t dim = 0; dim < fitting.dims.size(); ++dim) {
        std::vector<std::string>& axes = fitting.dims[dim];
        const auto divides = [&](const std::vector<MeshAxis>& mesh) { return shape[dim] % piecesOf(axes, mesh) == 0; };
        while (!axes.empty() && !std::all_of(meshes.begin(), meshes.end(), divides))
            axes.pop_back(); // the minor axes go first
    }
    return fitting;
}

} // namespace meshwright
