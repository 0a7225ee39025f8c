// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/gradient_sums.h"

#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/schedule/stage_array.h"

#include <algorithm>
#include <map>
#include <memory>

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

    /// A new argument like a value of the source.
    ValueId argumentLike(ValueId value, std::string name, Role role)
    {
        const ValueId argument = m_builder.argument(m_source.function[value].type, std::move(name), role);
        m_target.function[argument].sharding = m_source.function[value].sharding;
        note(argument, m_source.globalShapes[value.at()]);
        return argument;
    }

    /// True when the target has all that an op of the source reads.
    bool canCopy(OpId op) const
    {
        const auto& operands = m_source.function[op].operands;
        return std::all_of(operands.begin(), operands.end(), [&](ValueId operand) { return m_mapping[operand.at()].valid(); });
    }

    void copy(OpId op)
    {
        copyOp(m_builder, m_source.function, op, m_mapping);
        for (std::size_t value = 0; value < m_mapping.size(); ++value) {
            if (m_mapping[value].valid())
                note(m_mapping[value], m_source.globalShapes[value]);
        }
    }

    void note(ValueId value, const Shape& whole)
    {
        m_target.globalShapes.resize(m_target.function.values.size());
        m_target.globalShapes[value.at()] = whole;
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

Reduction reductionOf(const Function& backward, std::size_t result)
{
    Reduction reduction{stageArrayOf(backward.resultNames[result]).name, backward.results()[result], {}};
    std::vector<OpId> ops;
    std::size_t kept = 0;
    for (ValueId value = reduction.part;;) {
        const OpId producer = backward[value].producer;
        if (!producer.valid() || !isCollective(backward[producer].kind))
            break;
        const Op& op = backward[producer];
        const bool reduces = op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter;
        if (reduces && op.as<CollectiveAttributes>().kind != ReduceKind::Sum)
            break;
        ops.push_back(producer);
        value = op.operands.front();
        if (reduces) {
            kept = ops.size();
            reduction.part = value;
        }
    }
    ops.resize(kept); // collectives before the first reduction stay where they are
    reduction.ops.assign(ops.rbegin(), ops.rend());
    return reduction;
}

DeviceFunction accumulating(const DeviceFunction& backward, const std::vector<Reduction>& reductions)
{
    const Function& source = backward.function;
    DeviceFunction target;
    target.function.name = source.name;
    DeviceCopy copy(target, backward);
    for (const ValueId argument : source.arguments())
        copy.set(argument, copy.argumentLike(argument, source[argument].name, source[argument].role));
    std::vector<ValueId> sums;
    for (const Reduction& reduction : reductions)
        sums.push_back(copy.argumentLike(reduction.part, sumOf(reduction.name), Role::Gradient));
    for (const OpId op : source.body().ops)
        copy.copy(op);
    std::vector<ValueId> results;
    std::vector<std::string> names;
    copy.builder().setPhase(Phase::Backward);
    for (std::size_t i = 0; i < reductions.size(); ++i) {
        const ValueId sum = copy.builder().binary(OpKind::Add, sums[i], copy[reductions[i].part]);
        target.function[sum].sharding = source[reductions[i].part].sharding;
        target.function[sum].name = sumOf("new." + reductions[i].name);
        target.function[sum].role = Role::Gradient;
        copy.note(sum, backward.globalShapes[reductions[i].part.at()]);
        target.function.donations.push_back({source.arguments().size() + i, results.size()});
        results.push_back(sum);
        names.push_back(sumOf(reductions[i].name));
    }
    for (std::size_t i = 0; i < source.results().size(); ++i) {
        if (stageArrayOf(source.resultNames[i]).kind == StageArray::Kind::Gradient)
            continue;
        results.push_back(copy[source.results()[i]]);
        names.push_back(source.resultNames[i]);
    }
    copy.builder().setResults(std::move(results), std::move(names));
    eraseDeadOps(target.function);
    target.globalShapes.resize(target.function.values.size());
    return target;
}

std::optional<DeviceFunction> reducing(const DeviceFunction& function, const std::vector<ReducedPiece>& pieces)
{
    const Function& source = function.function;
    DeviceFunction target;
    target.function.name = source.name;
    std::vector<std::pair<std::string, ValueId>> gradients;
    // Arguments first, then what they are reduced by.
    std::vector<std::pair<const Reduction*, std::unique_ptr<DeviceCopy>>> pending;
    DeviceCopy copy(target, function);
    std::map<std::string, std::pair<const DeviceFunction*, const Reduction*>> byName;
    for (const auto& [backward, reductions] : pieces) {
        for (const Reduction& reduction : reductions)
            byName[StageArray{StageArray::Kind::Gradient, reduction.name}.text()] = {backward, &reduction};
    }
    for (const ValueId argument : source.arguments()) {
        const auto found = byName.find(source[argument].name);
        if (found == byName.end()) {
            copy.set(argument, copy.argumentLike(argument, source[argument].name, source[argument].role));
            continue;
        }
        const auto& [backward, reduction] = found->second;
        auto own = std::make_unique<DeviceCopy>(target, *backward);
        own->set(reduction->part, own->argumentLike(reduction->part, sumOf(reduction->name), Role::Gradient));
        gradients.emplace_back(source[argument].name, argument);
        pending.emplace_back(reduction, std::move(own));
    }
    for (std::size_t i = 0; i < pending.size(); ++i) {
        auto& [reduction, own] = pending[i];
        ValueId value = (*own)[reduction->part];
        for (const OpId op : reduction->ops) {
            if (!own->canCopy(op))
                return std::nullopt;
            own->copy(op);
            value = (*own)[byName[gradients[i].first].first->function[op].results.front()];
        }
        copy.set(gradients[i].second, value);
    }
    for (const OpId op : source.body().ops) {
        if (!copy.canCopy(op))
            return std::nullopt;
        copy.copy(op);
    }
    std::vector<ValueId> results;
    for (const ValueId result : source.results())
        results.push_back(copy[result]);
    copy.builder().setResults(std::move(results), source.resultNames);
    target.function.donations = source.donations;
    eraseDeadOps(target.function);
    target.globalShapes.resize(target.function.values.size());
    return target;
}

} // namespace meshwright
