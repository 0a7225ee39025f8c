// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/scalar_block.h"

#include "core/kernels/host_array.h"

namespace meshwright {

std::optional<ScalarBlock> ScalarBlock::create(const Function& function, BlockId id)
{
    const Block& block = function[id];
    ScalarBlock made;
    std::vector<std::size_t> slotOf(function.values.size());
    for (const ValueId argument : block.arguments) {
        const TensorType& type = function[argument].type;
        if (!type.shape.empty() || !isComputable(type.dtype))
            return std::nullopt;
        slotOf[argument.at()] = made.newSlot();
        made.m_arguments.push_back(type.dtype);
    }
    for (const OpId op : block.ops) {
        if (!made.add(function, function[op], slotOf))
            return std::nullopt;
    }
    for (const ValueId result : block.results)
        made.m_results.push_back({slotOf[result.at()], function[result].type.dtype});
    return made;
}

std::size_t ScalarBlock::newSlot()
{
    m_initial.push_back(0);
    return m_initial.size() - 1;
}

bool ScalarBlock::addConstant(const Op& op, std::vector<std::size_t>& slotOf)
{
    const auto& constant = op.as<ConstantAttributes>();
    if (constant.data.isElided())
        return false;
    HostArray element(constant.type);
    if (const auto* value = std::get_if<double>(&constant.data.value))
        element = HostArray::filled(constant.type, *value);
    else if (const auto* integer = std::get_if<std::int64_t>(&constant.data.value))
        std::memcpy(element.data(), integer, static_cast<std::size_t>(element.bytes())); // the low bytes, as integers are cut
    else
        element = HostArray::fromBytes(constant.type, std::as_bytes(std::span(*std::get<2>(constant.data.value))));
    slotOf[op.results.front().at()] = newSlot();
    read(constant.type.dtype, slot(m_initial, slotOf[op.results.front().at()]), element.data());
    return true;
}

bool ScalarBlock::add(const Function& function, const Op& op, std::vector<std::size_t>& slotOf)
{
    if (op.results.size() != 1)
        return false;
    const TensorType& type = function[op.results.front()].type;
    if (!type.shape.empty() || !isComputable(type.dtype))
        return false;
    if (op.kind == OpKind::Constant)
        return addConstant(op, slotOf);
    if (op.kind == OpKind::Reshape || op.kind == OpKind::BroadcastInDim) {
        slotOf[op.results.front().at()] = slotOf[op.operands.front().at()];
        return true;
    }
    if (op.operands.empty() || op.operands.size() > 3 || !isElementwise(op.kind))
        return false;
    const Lane lane = laneOf(function[op.operands.front()].type.dtype);
    Step step;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        step.operands[i] = slotOf[op.operands[i].at()];
    switch (op.kind) {
    case OpKind::Compare:
        step.step = tileTable().compare(op.as<CompareAttributes>(), lane);
        break;
    case OpKind::Select:
        step.step = tileTable().select(laneBytes(laneOf(type.dtype)));
        break;
    case OpKind::Convert:
        step.step = tileTable().convert(lane, type.dtype);
        break;
    case OpKind::Clamp:
    case OpKind::BitcastConvert:
        return false;
    default: {
        std::size_t next = op.operands.size();
        forEachNumber(op.attributes, [&](const auto&, std::int64_t number) {
            step.operands[next++] = newSlot();
            m_initial.back() = static_cast<std::uint64_t>(number); // its low bytes are first
        });
        step.step = tileTable().op(op.kind, function[op.operands.front()].type.dtype);
    }
    }
    if (step.step == nullptr)
        return false;
    if (isNarrow(type.dtype)) {
        step.narrow = tileTable().store(type.dtype);
        step.widen = tileTable().load(type.dtype);
    }
    step.out = newSlot();
    slotOf[op.results.front().at()] = step.out;
    m_steps.push_back(step);
    return true;
}

void ScalarBlock::run(std::vector<std::uint64_t>& memory) const
{
    for (const Step& step : m_steps) {
        std::byte* out = slot(memory, step.out);
        step.step(out, slot(memory, step.operands[0]), slot(memory, step.operands[1]), slot(memory, step.operands[2]), 1);
        if (step.narrow != nullptr) {
            std::uint64_t rounded = 0;
            step.narrow(reinterpret_cast<std::byte*>(&rounded), out, nullptr, nullptr, 1);
            step.widen(out, reinterpret_cast<const std::byte*>(&rounded), nullptr, nullptr, 1);
        }
    }
}

void ScalarBlock::store(std::vector<std::uint64_t>& memory, std::size_t result, std::byte* to) const
{
    const Result& of = m_results[result];
    if (isNarrow(of.dtype))
        tileTable().store(of.dtype)(to, slot(memory, of.slot), nullptr, nullptr, 1);
    else
        std::memcpy(to, slot(memory, of.slot), static_cast<std::size_t>(byteSize(of.dtype)));
}

} // namespace meshwright
