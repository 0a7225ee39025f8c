// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/label.h"

#include "core/program/eight_bits.h"
#include "core/program/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// The value that stands for this one outside of a loop, and inside of one: what a body's argument is given first, what a turn gives. Itself, where
/// there is none.
ValueId throughLoop(const Function& function, ValueId id)
{
    const Value& value = function[id];
    if (value.producer.valid()) {
        const Op& op = function[value.producer];
        return op.kind == OpKind::Repeat ? function[op.bodies.front()].results[value.index] : id;
    }
    const auto loop = std::ranges::find_if(function.ops,
        [&](const Op& op) { return op.kind == OpKind::Repeat && std::ranges::find(op.bodies, value.block) != op.bodies.end(); });
    return loop == function.ops.end() ? id : loop->operands[value.index];
}

/// The nearest name among the first operands behind a value; empty where there is none near.
std::string nameBehind(const Function& function, ValueId id)
{
    constexpr int kFar = 8;
    for (int step = 0; step < kFar; ++step) {
        if (!function[id].name.empty())
            return function[id].name;
        const ValueId same = throughLoop(function, id);
        const OpId producer = function[id].producer;
        if (same == id && (!producer.valid() || function[producer].operands.empty()))
            return {};
        id = same != id ? same : function[producer].operands.front();
    }
    return {};
}

/// A value's name; of what is rounded to 8 bits what part it is.
std::string madeText(const Function& function, ValueId value)
{
    const auto part = function[value].name.empty() ? eightBitPartOf(function, value) : std::nullopt;
    return part && part->source != value ? eightBitText(part->part, bufferLabel(function, part->source))
                                         : valueText(function, value);
}

} // namespace

std::string bufferLabel(const Function& function, ValueId id)
{
    if (!function[id].name.empty())
        return function[id].name;
    const std::string name = nameBehind(function, id);
    ValueId made = id;
    for (ValueId same = throughLoop(function, made); same != made; same = throughLoop(function, made))
        made = same;
    if (!function[made].producer.valid())
        return name.empty() ? "an argument" : name;
    if (const auto part = eightBitPartOf(function, made); part && part->source != made && part->source != id)
        return eightBitText(part->part, bufferLabel(function, part->source));
    const std::string op(opName(function[function[made].producer]));
    return name.empty() || function[made].name == name ? (name.empty() ? op : name) : fmt::format("{}({}, ..)", op, name);
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
        return opName(op.kind);
    const ValueId made = instruction.writes.empty() ? op.results.front() : instruction.writes.front();
    if (instruction.ops.size() == 1)
        return fmt::format("{} {}", opName(op.kind), madeText(function, made));
    return fmt::format("fused {} ({} ops)", madeText(function, made), instruction.ops.size());
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
