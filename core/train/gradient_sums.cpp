// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/gradient_sums.h"

#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/schedule/stage_array.h"

#include <algorithm>
#include <string>
#include <vector>

namespace meshwright {

namespace {

/// What one device makes of a gradient.
struct GradientPart {
    std::string parameter;
    ValueId value; ///< in the backward function, or in the body of a loop of it
    std::vector<OpId> ops; ///< conversions and changes of shape that make it what is added up
    TensorSharding layout; ///< of that, in a loop of what all turns make: partial over the axes of the reduction that is put off
    OpId loop; ///< a Repeat that makes a row of the gradient in each turn; invalid for others
    std::size_t result = 0; ///< of the loop's
};

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

    static std::string sumOf(const std::string& parameter) { return StageArray{StageArray::Kind::GradientSum, parameter}.text(); }

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

    /// An argument for the sum of a part, which lies like it.
    ValueId sumArgument(const GradientPart& part)
    {
        const ValueId like = part.ops.empty() ? part.value : m_source.function[part.ops.back()].results.front();
        const ValueId sum = argumentLike(like, sumOf(part.parameter), Role::Gradient);
        Value& argument = m_target.function[sum];
        argument.sharding = part.layout;
        if (part.loop.valid()) {
            const std::int64_t turns = m_source.function[part.loop].as<RepeatAttributes>().count;
            argument.type.shape.insert(argument.type.shape.begin(), turns);
            Shape whole = m_target.globalShapes[sum.at()];
            whole.insert(whole.begin(), turns);
            note(sum, whole);
        }
        return sum;
    }

    /// Adds a part to its sum.
    ValueId added(const GradientPart& part, ValueId sum)
    {
        if (part.loop.valid())
            return addedInLoop(part, sum);
        return addedHere(part, sum, part.layout, m_target.globalShapes[sum.at()]);
    }

    void note(ValueId value, Shape whole) // not a reference: it may be one of the list
    {
        m_target.globalShapes.resize(m_target.function.values.size());
        m_target.globalShapes[value.at()] = std::move(whole);
    }

private:
    ValueId addedHere(const GradientPart& part, ValueId sum, const TensorSharding& layout, Shape whole)
    {
        const ValueId made = m_builder.binary(OpKind::Add, sum, partly(part.value, part.ops));
        m_target.function[made].sharding = layout;
        note(made, std::move(whole));
        return made;
    }

    /// Each turn of the loop adds its row of the gradient to that of the sum.
    ValueId addedInLoop(const GradientPart& part, ValueId sum)
    {
        Function& function = m_target.function;
        const ValueId stack = m_mapping[m_source.function[part.loop].results[part.result].at()];
        Op& loop = function[function[stack].producer];
        auto attributes = loop.as<RepeatAttributes>();
        const std::size_t at = attributes.carries + attributes.stacked++;
        loop.attributes = attributes;
        loop.operands.insert(loop.operands.begin() + static_cast<std::ptrdiff_t>(at), sum);
        TensorType type = function[sum].type;
        type.shape.erase(type.shape.begin());
        TensorSharding layout = part.layout;
        layout.dims.erase(layout.dims.begin());
        Shape whole = m_target.globalShapes[sum.at()];
        note(stack, whole);
        whole.erase(whole.begin());
        const BlockId body = loop.bodies.front();
        m_builder.setBlock(body);
        const ValueId row = m_builder.argument(std::move(type), {}, Role::Gradient);
        function[row].sharding = layout;
        note(row, whole);
        std::vector<ValueId>& arguments = function[body].arguments;
        std::rotate(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end() - 1, arguments.end());
        for (std::size_t i = at; i < arguments.size(); ++i)
            function[arguments[i]].index = i;
        const ValueId made = addedHere(part, row, layout, whole);
        function[made].role = Role::Gradient;
        function[body].results[part.result] = made;
        m_builder.setBlock(BlockId(std::int32_t{0}));
        function[stack].type = function[sum].type;
        function[stack].sharding = part.layout;
        return stack;
    }

    DeviceFunction& m_target;
    const DeviceFunction& m_source;
    Builder m_builder;
    std::vector<ValueId> m_mapping;
};

/// From where on a value is made by a sum over devices, and of how many.
void findReduction(const Function& backward, GradientPart& part)
{
    TensorSharding layout = part.layout;
    std::vector<OpId> ops;
    const BlockId block = backward[part.value].block;
    for (ValueId value = part.value;;) {
        const OpId producer = backward[value].producer;
        if (!producer.valid() || backward[producer].operands.empty() || backward[producer].block != block)
            return;
        const Op& op = backward[producer];
        value = op.operands.front();
        if (op.kind == OpKind::AllReduce && op.as<CollectiveAttributes>().kind == ReduceKind::Sum) {
            layout.unreduced = backward[value].sharding->unreduced;
            part.value = value;
            part.ops = ops;
            part.layout = layout;
        } else if (op.kind == OpKind::Reshape || op.kind == OpKind::Transpose
            || (op.kind == OpKind::Convert && isFloating(backward[value].type.dtype))) {
            ops.insert(ops.begin(), producer);
        } else if (ops.empty() && isCollective(op.kind) && op.kind != OpKind::AllReduce && op.kind != OpKind::ReduceScatter) {
            layout = *backward[value].sharding; // the update moves it
        } else {
            return;
        }
    }
}

/// The part of a gradient, which is a result of the function; the gradient itself where nothing sums it over devices at the end.
GradientPart partOf(const Function& backward, std::size_t result)
{
    const ValueId gradient = backward.results()[result];
    GradientPart part{stageArrayOf(backward.resultNames[result]).name, gradient, {}, *backward[gradient].sharding, OpId(), 0};
    const OpId maker = backward[gradient].producer;
    const bool isStacked = maker.valid() && backward[maker].kind == OpKind::Repeat
        && backward[gradient].index >= backward[maker].as<RepeatAttributes>().carries;
    if (!isStacked) {
        findReduction(backward, part);
        return part;
    }
    const DimSharding layers = part.layout.dims.front();
    part.loop = maker;
    part.result = backward[gradient].index;
    part.value = backward[backward[maker].bodies.front()].results[part.result];
    part.layout = *backward[part.value].sharding;
    findReduction(backward, part);
    part.layout.dims.insert(part.layout.dims.begin(), layers);
    return part;
}

} // namespace

DeviceFunction accumulating(const DeviceFunction& backward)
{
    const Function& source = backward.function;
    std::vector<GradientPart> parts;
    for (std::size_t i = 0; i < source.results().size(); ++i) {
        if (stageArrayOf(source.resultNames[i]).kind == StageArray::Kind::Gradient)
            parts.push_back(partOf(source, i));
    }
    DeviceFunction target;
    target.function.name = source.name;
    DeviceCopy copy(target, backward);
    for (const ValueId argument : source.arguments())
        copy.set(argument, copy.argumentLike(argument, source[argument].name, source[argument].role));
    std::vector<ValueId> sums;
    for (const GradientPart& part : parts)
        sums.push_back(copy.sumArgument(part));
    copy.copyAll();
    std::vector<ValueId> results;
    std::vector<std::string> names;
    Builder& builder = copy.builder();
    builder.setPhase(Phase::Backward);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const ValueId sum = copy.added(parts[i], sums[i]);
        Value& made = target.function[sum];
        made.name = DeviceCopy::sumOf("new." + parts[i].parameter);
        made.role = Role::Gradient;
        target.function.donations.push_back({source.arguments().size() + i, results.size()});
        results.push_back(sum);
        names.push_back(DeviceCopy::sumOf(parts[i].parameter));
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
