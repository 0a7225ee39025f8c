// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/label.h"

#include "core/program/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

std::string opLabel(std::string_view op, const std::string& made)
{
    const bool says = made.starts_with(op) && (made.size() == op.size() || made[op.size()] == '(');
    return says ? made : fmt::format("{} {}", op, made);
}

std::string instructionLabel(const Function& function, const Instruction& instruction)
{
    const Op& op = function[instruction.ops.back()];
    if (isCollective(op.kind)) {
        const Cause& cause = op.as<CollectiveAttributes>().cause;
        const std::string name
            = fmt::format("{} {}", opName(op.kind), cause.value.empty() ? valueText(function, op.operands.front()) : cause.value);
        if (instruction.update.empty())
            return name;
        return fmt::format(
            "{}, fused with {} ({} ops)", name, valueText(function, instruction.writes.front()), instruction.update.size());
    }
    if (const auto memory = movedTo(op))
        return *memory == Placement::Host ? fmt::format("to host {}", valueText(function, op.operands.front()))
                                          : fmt::format("from host {}", valueText(function, op.results.front()));
    if (instruction.writes.empty() && op.results.empty())
        return std::string(opName(op));
    const auto named = std::ranges::find_if(instruction.writes, [&](ValueId value) { return !function[value].name.empty(); });
    const ValueId made = instruction.writes.empty() ? op.results.front()
        : named == instruction.writes.end()         ? instruction.writes.front()
                                                    : *named;
    if (instruction.ops.size() == 1)
        return opLabel(opName(op), valueText(function, made));
    return fmt::format("fused {} ({} ops)", valueText(function, made), instruction.ops.size());
}

std::string taskLabel(const Task& task, const PipelineShape& shape)
{
    if (isOncePerStep(task.kind))
        return task.function;
    const char* what = task.kind == TaskKind::Forward ? "forward"
        : task.kind == TaskKind::BackwardInput        ? "input gradient"
        : task.kind == TaskKind::BackwardWeight       ? "weight gradients"
                                                      : "backward";
    return fmt::format(
        "{}{}, microbatch {}", what, shape.chunks > 1 ? fmt::format(", chunk {}", task.chunk) : "", task.microbatch);
}

SliceCategory categoryOf(OpKind kind)
{
    switch (kind) {
    case OpKind::AllReduce:
        return SliceCategory::AllReduce;
    case OpKind::AllGather:
        return SliceCategory::AllGather;
    case OpKind::ReduceScatter:
        return SliceCategory::ReduceScatter;
    case OpKind::AllToAll:
        return SliceCategory::AllToAll;
    case OpKind::CollectivePermute:
        return SliceCategory::Permute;
    default:
        return SliceCategory::Compute;
    }
}

} // namespace meshwright
