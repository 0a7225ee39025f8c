// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/device_program.h"

#include "core/partition/reshard_passes.h"
#include "core/program/transform.h"
#include "core/support/find.h"
#include "core/support/text.h"

namespace meshwright {

const DeviceFunction* DeviceStage::find(std::string_view name) const
{
    return findBy(functions, name, [](const DeviceFunction& f) -> const std::string& { return f.function.name; });
}

namespace {

/// What a collective's payload is: its operand, an all-gather's result.
const Value& payloadOf(const Function& function, OpId id)
{
    const Op& op = function[id];
    return function[op.kind == OpKind::AllGather ? op.results.front() : op.operands.front()];
}

} // namespace

std::int64_t payloadBytes(const Function& function, OpId id)
{
    return payloadOf(function, id).type.bytes();
}

std::string axesText(const AxisRefs& axes, const Mesh& mesh, const std::string& between)
{
    std::vector<std::string> names;
    for (const AxisRef& axis : axes) {
        const auto index = static_cast<std::size_t>(axis.axis);
        names.push_back(axis == wholeAxis(mesh, index) ? mesh.axes()[index].name : axisText(axis, mesh));
    }
    return join(names, between);
}

std::vector<CollectiveUse> collectivesOf(const Function& function, const std::function<const Mesh&(const Value&)>& meshOf,
    const std::function<std::int64_t(const Value&)>& bytesOf)
{
    std::vector<CollectiveUse> uses;
    const auto visitBlock = [&](const auto& self, BlockId block, std::int64_t times) -> void {
        for (const OpId id : function[block].ops) {
            const Op& op = function[id];
            for (const BlockId body : op.bodies)
                self(self, body, times * blockRuns(op));
            if (!isCollective(op.kind) || op.kind == OpKind::AllSlice || makesPartialSum(op))
                continue;
            const auto& attributes = op.as<CollectiveAttributes>();
            const bool listed = attributes.pieces && !attributes.pieces->groups.empty();
            const std::int64_t size
                = listed ? static_cast<std::int64_t>(attributes.pieces->groups.front().size()) : shardCount(attributes.axes);
            uses.push_back({id, op.kind, axesText(attributes.axes, meshOf(function[op.results.front()])), size, times,
                bytesOf(payloadOf(function, id)), op.phase, attributes.cause});
        }
    };
    visitBlock(visitBlock, BlockId(std::int32_t{0}), 1);
    return uses;
}

std::vector<CollectiveUse> collectivesOf(const DeviceFunction& device, const Mesh& mesh)
{
    return collectivesOf(
        device.function, [&](const Value&) -> const Mesh& { return mesh; },
        [](const Value& value) { return value.type.bytes(); });
}

} // namespace meshwright
