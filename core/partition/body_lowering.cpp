// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/body_lowering.h"

#include "core/partition/device_program.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

AxisRefs wholeAxes(const std::vector<std::int32_t>& axes, const Mesh& mesh)
{
    AxisRefs refs;
    for (const std::int32_t axis : axes)
        refs.push_back(wholeAxis(mesh, static_cast<std::size_t>(axis)));
    return refs;
}

void settle(Function& function, BlockId block, std::int32_t mesh)
{
    const auto place = [&](ValueId value) {
        auto& sharding = function[value].sharding;
        if (sharding && sharding->isReplicated() && sharding->unreduced.empty())
            sharding->mesh = mesh;
    };
    std::for_each(function[block].arguments.begin(), function[block].arguments.end(), place);
    for (const OpId op : function[block].ops) {
        std::for_each(function[op].results.begin(), function[op].results.end(), place);
        for (const BlockId body : function[op].bodies)
            settle(function, body, mesh);
    }
}

} // namespace

CollectiveAttributes loweredCollective(const BodyCollective& collective, const Mesh& mesh, Shape result, std::string value)
{
    CollectiveAttributes attributes;
    attributes.kind = collective.reduction;
    attributes.sources = collective.sources;
    attributes.resultShape = std::move(result);
    attributes.pieces = PieceExchange{collective.split, collective.join, {}};
    if (auto axes = collective.sources.empty() ? axesOfGroups(collective.groups, mesh) : std::nullopt) {
        attributes.axes = *std::move(axes);
    } else {
        attributes.axes = wholeAxes(axesTouched(collective, mesh), mesh);
        attributes.pieces->groups = collective.groups;
    }
    attributes.cause.value = std::move(value);
    attributes.cause.op = "manual_computation";
    attributes.cause.reason = fmt::format("the program itself asks for it, over {}",
        attributes.axes.empty() ? std::string("no axis") : axesText(attributes.axes, mesh));
    return attributes;
}

std::optional<Problem> crossesAutomaticAxes(
    const BodyCollective& collective, const Op& op, const std::vector<std::int32_t>& manualAxes, const Mesh& mesh)
{
    std::vector<std::int32_t> automatic;
    for (const std::int32_t axis : axesTouched(collective, mesh)) {
        if (!std::binary_search(manualAxes.begin(), manualAxes.end(), axis))
            automatic.push_back(axis);
    }
    if (automatic.empty())
        return std::nullopt;
    return Problem{"MW1262",
        fmt::format("{} in a manual computation moves data along {}, which is not one of its manual axes {}", opName(op),
            axesText(wholeAxes(automatic, mesh), mesh), axesText(wholeAxes(manualAxes, mesh), mesh)),
        "add the axis to manual_axes, or list only devices that differ along the manual axes"};
}

Function withBodiesOnTheirMeshes(Function function)
{
    forEachOp(Function(function), [&](OpId id) {
        const Op& op = function[id];
        if (!isManual(op))
            return;
        const auto& computation = op.as<ComputationAttributes>();
        const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
        if (!shardings.empty())
            settle(function, op.bodies.front(), shardings.front().mesh);
    });
    return function;
}

} // namespace meshwright
