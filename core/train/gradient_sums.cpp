// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/gradient_sums.h"

#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/schedule/stage_array.h"

namespace meshwright {

namespace {

/// Copies of device functions, op by op, that keep the whole arrays' shapes.
class DeviceCopy {
public:
    DeviceCopy(DeviceFunction& target, const DeviceFunction& source)
        : m_target(target)
        , m_source(source)
        , m_builder(target.function)
        , m_mapping(source.function.values.size())
    {
    }

    Builder& builder() { return m_builder; }
    ValueId operator[](ValueId value) const { return m_mapping[value.at()]; }
    void set(ValueId value, ValueId copy) { m_mapping[value.at()] = copy; }

    /// A new argument that lies like a value of the source.
    ValueId argumentLike(ValueId value, std::string name, Role role)
    {
        const ValueId argument = m_builder.argument(m_source.function[value].type, std::move(name), role);
        m_target.function[argument].sharding = m_source.function[value].sharding;
        note(argument, m_source.globalShapes[value.at()]);
        return argument;
    }

    void copyAll()
    {
        for (const OpId op : m_source.function.body().ops)
            copyOp(m_builder, m_source.function, op, m_mapping);
        for (std::size_t value = 0; value < m_mapping.size(); ++value) {
            if (m_mapping[value].valid())
                note(m_mapping[value], m_source.globalShapes[value]);
        }
    }

    /// What ops of the source make of a partial value of it.
    ValueId partly(ValueId value, const std::vector<OpId>& ops)
    {
        ValueId made = m_mapping[value.at()];
        for (const OpId id : ops) {
            const Op& op = m_source.function[id];
            const AxisRefs unreduced = m_target.function[made].sharding->unreduced;
            made = m_builder.add(op.kind, {made}, op.attributes);
            Value& copied = m_target.function[made];
            copied.sharding = m_source.function[op.results.front()].sharding;
            copied.sharding->unreduced = unreduced;
            note(made, m_source.globalShapes[op.results.front().at()]);
        }
        return made;
    }

    void note(ValueId value, Shape whole) // not a reference: it may be one of the list
    {
        m_target.globalShapes.resize(m_target.function.values.size());
        m_target.globalShapes[value.at()] = std::move(whole);
    }

private:
    DeviceFunction& m_target;
    const DeviceFunction& m_source;
    Builder m_builder;
    std::vector<ValueId> m_mapping;
};

std::string sumOf(const std::string& parameter)
{
    return StageArray{StageArray::Kind::GradientSum, parameter}.text();
}

} // namespace

GradientPart partOf(const Function& backward, std::size_t result)
{
    const ValueId gradient = backward.results()[result];
    GradientPart part{stageArrayOf(backward.resultNames[result]).name, gradient, {}, *backward[gradient].sharding};
    TensorSharding layout = part.layout;
    std::vector<OpId> ops;
    for (ValueId value = gradient;;) {
        const OpId producer = backward[value].producer;
        if (!producer.valid() || backward[producer].operands.empty())
            return part;
        const Op& op = backward[producer];
        value = op.operands.front();
        if (op.kind == OpKind::AllReduce && op.as<CollectiveAttributes>().kind == ReduceKind::Sum) {
            layout.unreduced = backward[value].sharding->unreduced;
            part = {part.parameter, value, ops, layout};
        } else if (op.kind == OpKind::Reshape || op.kind == OpKind::Transpose
            || (op.kind == OpKind::Convert && isFloating(backward[value].type.dtype))) {
            ops.insert(ops.begin(), producer);
        } else if (ops.empty() && isCollective(op.kind) && op.kind != OpKind::AllReduce && op.kind != OpKind::ReduceScatter) {
            layout = *backward[value].sharding; // the update moves it
        } else {
            return part;
        }
    }
}

DeviceFunction accumulating(const DeviceFunction& backward, const std::vector<GradientPart>& parts)
{
    const Function& source = backward.function;
    DeviceFunction target;
    target.function.name = source.name;
    DeviceCopy copy(target, backward);
    for (const ValueId argument : source.arguments())
        copy.set(argument, copy.argumentLike(argument, source[argument].name, source[argument].role));
    std::vector<ValueId> sums;
    for (const GradientPart& part : parts) {
        sums.push_back(copy.argumentLike(
            part.ops.empty() ? part.value : source[part.ops.back()].results.front(), sumOf(part.parameter), Role::Gradient));
        target.function[sums.back()].sharding = part.layout;
    }
    copy.copyAll();
    std::vector<ValueId> results;
    std::vector<std::string> names;
    Builder& builder = copy.builder();
    builder.setPhase(Phase::Backward);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const ValueId sum = builder.binary(OpKind::Add, sums[i], copy.partly(parts[i].value, parts[i].ops));
        copy.note(sum, target.globalShapes[sums[i].at()]);
        Value& made = target.function[sum];
        made.sharding = parts[i].layout;
        made.name = sumOf("new." + parts[i].parameter);
        made.role = Role::Gradient;
        target.function.donations.push_back({source.arguments().size() + i, results.size()});
        results.push_back(sum);
        names.push_back(sumOf(parts[i].parameter));
    }
    for (std::size_t i = 0; i < source.results().size(); ++i) {
        if (stageArrayOf(source.resultNames[i]).kind == StageArray::Kind::Gradient)
            continue;
        results.push_back(copy[source.results()[i]]);
        names.push_back(source.resultNames[i]);
    }
    builder.setResults(std::move(results), std::move(names));
    eraseDeadOps(target.function);
    target.globalShapes.resize(target.function.values.size());
    return target;
}

} // namespace meshwright
