// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/fix_program.h"

#include "core/diagnose/lints.h"
#include "core/program/every_sharding.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace meshwright {

namespace {

/// A lint, and the function that it is of.
struct Found {
    std::size_t function = 0;
    Lint lint;
};

std::vector<Found> lintsIn(const PartitionedProgram& partitioned)
{
    std::vector<Found> found;
    const DeviceStage& stage = partitioned.device.stages.front();
    for (std::size_t f = 0; f < partitioned.propagated.functions.size(); ++f) {
        const Function& function = partitioned.propagated.functions[f];
        const DeviceFunction* device = stage.find(function.name);
        if (device == nullptr || stage.meshes.empty())
            continue;
        for (Lint& lint : lintsOf({function, *device, stage.meshes})) {
            lint.problem.place.path = function.name + ": " + lint.problem.place.path;
            found.push_back({f, std::move(lint)});
        }
    }
    return found;
}

/// The constraints of a function, in program order.
std::vector<OpId> constraintsOf(const Function& function)
{
    std::vector<OpId> constraints;
    forEachOp(function, [&](OpId id) {
        if (function[id].kind == OpKind::ShardingConstraint)
            constraints.push_back(id);
    });
    return constraints;
}

/// The mesh of all shardings of a program; nothing when there are several. Lints speak of the one on which it is partitioned.
std::optional<std::int32_t> onlyMesh(Program program)
{
    std::set<std::int32_t> meshes;
    forEachSharding(program, [&](const TensorSharding& sharding) { meshes.insert(sharding.mesh); });
    return meshes.size() == 1 ? std::optional(*meshes.begin()) : std::nullopt;
}

/// An edit with its layouts on this mesh.
ProgramEdit onMesh(ProgramEdit edit, std::int32_t mesh)
{
    for (auto* layouts : {&edit.layouts, &edit.arguments, &edit.results}) {
        for (auto& [place, layout] : *layouts)
            layout.mesh = mesh;
    }
    return edit;
}

void apply(Function& function, const ProgramEdit& edit)
{
    const std::vector<OpId> constraints = constraintsOf(function);
    for (const auto& [number, layout] : edit.layouts) {
        Op& op = function[constraints[number]];
        op.as<ConstraintAttributes>().sharding = layout;
        function[op.results.front()].sharding = layout;
    }
    for (const std::size_t number : edit.constraints) {
        const OpId id = constraints[number];
        replaceUses(function, function[id].results.front(), function[id].operands.front());
        std::erase(function[function[id].block].ops, id);
    }
    for (const auto& [index, layout] : edit.arguments)
        function[function.arguments()[index]].sharding = layout;
    for (const auto& [index, layout] : edit.results) {
        function.resultShardings.resize(function.results().size());
        function.resultShardings[index] = layout;
    }
    function = compacted(std::move(function));
}

bool same(const Found& a, const Found& b)
{
    return a.function == b.function && a.lint.problem.id == b.lint.problem.id && a.lint.problem.message == b.lint.problem.message;
}

/// True when the lint is gone and nothing came in its place.
bool removesLint(const Found& lint, const std::vector<Found>& before, const std::vector<Found>& after)
{
    return after.size() < before.size()
        && std::none_of(after.begin(), after.end(), [&](const Found& each) { return same(each, lint); });
}

/// The program with the first of a lint's edits that fixes it; nothing when none does.
std::optional<Program> withFix(
    const Program& program, const Found& found, const Function& propagated, const std::vector<Found>& before)
{
    const auto mesh = onlyMesh(program);
    if (!mesh || constraintsOf(program.functions[found.function]).size() != constraintsOf(propagated).size())
        return std::nullopt;
    for (const ProgramEdit& edit : found.lint.edits) {
        Program edited = program;
        apply(edited.functions[found.function], onMesh(edit, *mesh));
        const auto tried = propagateAndPartition(edited);
        if (tried && removesLint(found, before, lintsIn(*tried)))
            return edited;
    }
    return std::nullopt;
}

} // namespace

Problems lintProgram(const PartitionedProgram& partitioned)
{
    Problems problems;
    for (Found& found : lintsIn(partitioned)) {
        Problem& problem = problems.emplace_back(std::move(found.lint.problem));
        if (found.lint.edits.empty() && !found.lint.noEdit.empty())
            problem.fix += fmt::format(" (check --fix leaves it: {})", found.lint.noEdit);
    }
    for (const DeviceFunction& device : partitioned.device.stages.front().functions) {
        for (Problem warning : device.warnings) {
            warning.place.path = device.function.name;
            problems.push_back(std::move(warning));
        }
    }
    return problems;
}

FixedProgram fixedProgram(Program program)
{
    FixedProgram fixed{std::move(program), {}};
    for (bool again = true; again;) {
        again = false;
        const auto partitioned = propagateAndPartition(fixed.program);
        if (!partitioned)
            return fixed;
        const std::vector<Found> before = lintsIn(*partitioned);
        for (const Found& found : before) {
            auto edited = withFix(fixed.program, found, partitioned->propagated.functions[found.function], before);
            if (!edited)
                continue;
            fixed.program = *std::move(edited);
            fixed.fixed.push_back(found.lint.problem);
            again = true;
            break;
        }
    }
    return fixed;
}

} // namespace meshwright
