// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/program.h"

#include "core/program/eight_bits.h"
#include "core/support/find.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

std::optional<ValueId> Function::findValue(std::string_view wanted) const
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i].name == wanted)
            return ValueId(i);
    }
    return std::nullopt;
}

std::string_view opName(const Op& op)
{
    return isKept(op.kind) ? std::string_view(op.as<OtherAttributes>().name) : std::string_view(opName(op.kind));
}

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
    if (value.block == BlockId(std::int32_t{0}))
        return id;
    const auto loop = std::ranges::find_if(function.ops,
        [&](const Op& op) { return op.kind == OpKind::Repeat && std::ranges::find(op.bodies, value.block) != op.bodies.end(); });
    return loop == function.ops.end() ? id : loop->operands[value.index];
}

/// What has the elements of a value, before copies of it were made in other shapes, types and layouts, and outside of loops.
ValueId behindCopies(const Function& function, ValueId id)
{
    while (function[id].name.empty()) {
        ValueId next = throughLoop(function, id);
        if (const OpId producer = function[id].producer; next == id && producer.valid()) {
            const Op& op = function[producer];
            const OpClass kind = opInfo(op.kind).opClass;
            if (op.kind == OpKind::Convert || kind == OpClass::Shaping || kind == OpClass::Constraint)
                next = op.operands[kind == OpClass::Constraint ? function[id].index : 0];
        }
        if (next == id)
            break;
        id = next;
    }
    return id;
}

/// "x, .." of an op whose first operand with a name is x; "from x" where x is the nearest name among the first operands behind it; empty: none is near.
std::string operandsText(const Function& function, const Op& op)
{
    constexpr int kFar = 8;
    for (const ValueId operand : op.operands) {
        if (const std::string& name = function[behindCopies(function, operand)].name; !name.empty())
            return name + ", ..";
    }
    const Op* maker = &op;
    for (int step = 0; step < kFar && !maker->operands.empty(); ++step) {
        const Value& value = function[behindCopies(function, maker->operands.front())];
        if (!value.name.empty())
            return "from " + value.name;
        if (!value.producer.valid())
            break;
        maker = &function[value.producer];
    }
    return {};
}

} // namespace

std::string valueText(const Function& function, ValueId value)
{
    ValueId made = value;
    for (ValueId same = value; function[made].name.empty() && (same = throughLoop(function, made)) != made;)
        made = same;
    const Value& shown = function[made];
    if (!shown.name.empty())
        return shown.name;
    if (!shown.producer.valid())
        return shown.block == BlockId(std::int32_t{0}) ? fmt::format("%arg{}", shown.index) : "a block's argument";
    if (const auto part = eightBitPartOf(function, made); part && part->source != made && part->source != value)
        return eightBitText(part->part, valueText(function, part->source));
    const std::string op(opName(function[shown.producer]));
    const std::string operands = operandsText(function, function[shown.producer]);
    return operands.empty() ? op : fmt::format("{}({})", op, operands);
}

const Function* Program::find(std::string_view name) const
{
    return findBy(functions, name, &Function::name);
}

Function* Program::find(std::string_view name)
{
    return findBy(functions, name, &Function::name);
}

} // namespace meshwright
