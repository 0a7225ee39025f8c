// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/block_reverse.h"

#include "core/autodiff/custom_derivative.h"
#include "core/autodiff/derivatives.h"
#include "core/program/placement.h"
#include "core/program/transform.h"

#include <algorithm>

namespace meshwright {

BlockReverse::BlockReverse(
    Function& forward, const Activity& active, BlockId block, const std::vector<Seed>& seeds, const Surroundings& surroundings)
    : m_forward(forward)
    , m_active(active)
    , m_block(block)
    , m_surroundings(surroundings)
    , m_builder(m_backward)
    , m_cotangents(forward.values.size())
{
    m_builder.setPhase(Phase::Backward);
    for (const Seed& seed : seeds) {
        const ValueId value = m_forward[block].results[seed.result];
        const ValueId argument = m_builder.argument(m_forward[value].type, {}, Role::Gradient);
        m_seedArguments.push_back(argument);
        accumulate(value,
            seed.scale == 1.0 ? argument
                              : m_builder.binary(OpKind::Multiply, argument, m_builder.splat(m_forward[value].type, seed.scale)));
    }
    const std::vector<OpId> ops = m_forward[block].ops;
    for (auto at = ops.rbegin(); at != ops.rend(); ++at)
        reverse(*at);
}

std::pair<Function, std::vector<ValueId>> BlockReverse::finish(std::vector<ValueId> results)
{
    std::vector<ValueId> arguments;
    std::vector<ValueId> residuals;
    for (const auto& [value, argument] : m_residuals) {
        residuals.push_back(value);
        arguments.push_back(argument);
    }
    arguments.insert(arguments.end(), m_seedArguments.begin(), m_seedArguments.end());
    for (std::size_t i = 0; i < arguments.size(); ++i)
        m_backward[arguments[i]].index = i;
    m_backward.body().arguments = std::move(arguments);
    m_backward.body().results = std::move(results);
    return {std::move(m_backward), std::move(residuals)};
}

void BlockReverse::accumulate(ValueId value, ValueId cotangent)
{
    ValueId& sum = m_cotangents[value.at()];
    sum = sum.valid() ? addedCotangents(m_builder, sum, cotangent, m_surroundings.manual) : cotangent;
}

void BlockReverse::nameCotangent(ValueId value)
{
    const ValueId sum = cotangent(value);
    const std::string& name = m_forward[value].name;
    if (sum.valid() && !name.empty() && m_backward[sum].producer.valid() && m_backward[sum].name.empty())
        m_builder.named(sum, "grad." + name);
}

void BlockReverse::reverse(OpId id)
{
    const Op op = m_forward[id]; // a copy: the forward function may grow
    const auto reached = [&](ValueId result) { return cotangent(result).valid(); };
    const auto isActive = [&](ValueId operand) { return m_active(operand); };
    if (std::none_of(op.results.begin(), op.results.end(), reached)
        || std::none_of(op.operands.begin(), op.operands.end(), isActive))
        return;
    nameCotangent(op.results.front());
    if (m_surroundings.residual(id) == Residual::Whole)
        makeAgain(op.results.front());
    if (op.kind == OpKind::Repeat)
        return reverseRepeat(id);
    if (op.kind == OpKind::Case)
        return reverseCase(id);
    if (customDerivative(op).results > 0)
        return reverseCustom(id);
    if (op.kind == OpKind::Computation)
        return reverseComputation(id);
    DerivativeContext context{
        m_forward, op, m_builder, {}, [this](ValueId value) { return primal(value); }, m_surroundings.manual};
    for (const ValueId operand : op.operands)
        context.wanted.push_back(m_active(operand));
    for (const ValueId result : op.results)
        context.cotangents.push_back(cotangent(result));
    const std::vector<ValueId> cotangents = operandCotangents(context, cotangent(op.results.front()));
    for (std::size_t i = 0; i < cotangents.size(); ++i) {
        if (cotangents[i].valid())
            accumulate(op.operands[i], cotangents[i]);
    }
}

bool BlockReverse::isCheap(OpKind kind)
{
    const OpClass opClass = opInfo(kind).opClass;
    return kind == OpKind::Constant || kind == OpKind::Iota || opClass == OpClass::Shaping
        || (isElementwise(kind) && opClass != OpClass::Constraint);
}

bool BlockReverse::isMadeOfLess(ValueId value) const
{
    const std::int64_t own = m_forward[value].type.elements();
    std::int64_t read = 0;
    std::set<ValueId> seen = {value};
    for (std::vector<ValueId> open = {value}; !open.empty();) {
        const Value& next = m_forward[open.back()];
        open.pop_back();
        if (!next.producer.valid() || !isCheap(m_forward[next.producer].kind)) {
            read += next.type.elements();
            if (read >= own)
                return false;
            continue;
        }
        for (const ValueId operand : m_forward[next.producer].operands) {
            if (seen.insert(operand).second)
                open.push_back(operand);
        }
    }
    return true;
}

bool BlockReverse::isCarriedOutAgain(ValueId value) const
{
    const OpId producer = m_forward[value].producer;
    const Residual residual = m_surroundings.residual(producer);
    return (residual == Residual::Again || residual == Residual::Whole)
        && (m_forward[producer].bodies.empty() || m_forward[producer].kind == OpKind::Repeat);
}

bool BlockReverse::isOffloaded(ValueId value) const
{
    const OpId producer = m_forward[value].producer;
    if (producer.valid())
        return m_forward[producer].bodies.empty() && m_surroundings.residual(producer) == Residual::Offloaded;
    const OpId loop = m_surroundings.loop;
    return loop.valid() && m_surroundings.residual(loop) == Residual::Offloaded
        && m_forward[value].index < m_forward[loop].as<RepeatAttributes>().carries;
}

ValueId BlockReverse::broughtBack(ValueId value)
{
    const TensorType type = m_forward[value].type;
    Builder forward(m_forward);
    forward.setBlock(m_block);
    const ValueId host = forward.add(OpKind::Other, {value}, moveCall(Placement::Host, type));
    const ValueId residual = m_builder.argument(type, {}, m_forward[value].role);
    m_residuals.emplace(host, residual);
    return m_builder.add(OpKind::Other, {residual}, moveCall(Placement::Device, type));
}

std::string BlockReverse::nameOnce(ValueId value)
{
    const std::string& name = m_forward[value].name;
    return !name.empty() && m_names.insert(name).second ? name : std::string();
}

ValueId BlockReverse::primal(ValueId value)
{
    if (const auto known = m_primals.find(value); known != m_primals.end())
        return known->second;
    if (const OpId producer = m_forward[value].producer; producer.valid() && isVaried(m_forward[producer]))
        return m_primals[value] = primal(m_forward[producer].operands.front());
    ValueId here;
    if (isCarriedOutAgain(value) && m_forward[m_forward[value].producer].kind == OpKind::Repeat) {
        runAgain(m_forward[value].producer);
        here = m_primals[value];
    } else if (isMadeOfLess(value) || isCarriedOutAgain(value)) {
        const Op op = m_forward[m_forward[value].producer];
        std::vector<ValueId> operands;
        for (const ValueId operand : op.operands)
            operands.push_back(primal(operand));
        const std::vector<ValueId> made = m_builder.addMany(op.kind, std::move(operands), op.attributes);
        for (std::size_t i = 0; i < made.size(); ++i)
            m_primals[op.results[i]] = made[i];
        here = m_primals[value];
    } else if (isOffloaded(value)) {
        here = m_builder.named(broughtBack(value), nameOnce(value));
    } else {
        here = m_builder.argument(m_forward[value].type, nameOnce(value), m_forward[value].role);
        m_residuals.emplace(value, here);
    }
    return m_primals[value] = here;
}

void BlockReverse::makeAgain(ValueId value)
{
    const std::vector<ValueId> passed = m_builder.addMany(OpKind::OptimizationBarrier, {cotangent(value), primal(value)}, {});
    setStaysOnDevices(m_backward[m_backward[passed.front()].producer]);
    m_cotangents[value.at()] = passed.front();
}

} // namespace meshwright
