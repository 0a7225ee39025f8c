// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"

#include "core/program/complex_splat.h"
#include "core/program/other_op.h"
#include "core/program/shape_rules.h"
#include "core/support/stop_scope.h"

#include <numeric>

namespace meshwright {

Builder::Builder(Function& function)
    : m_function(function)
{
    if (m_function.blocks.empty())
        m_function.blocks.emplace_back();
}

ValueId Builder::argument(TensorType type, std::string name, Role role)
{
    const ValueId id(m_function.values.size());
    Value value;
    value.type = std::move(type);
    value.name = std::move(name);
    value.role = role;
    value.block = m_block;
    value.index = m_function[m_block].arguments.size();
    m_function.values.push_back(std::move(value));
    m_function[m_block].arguments.push_back(id);
    return id;
}

void Builder::setResults(std::vector<ValueId> results, std::vector<std::string> names)
{
    assert(names.empty() || names.size() == results.size());
    m_function[m_block].results = std::move(results);
    if (m_block.index == 0)
        m_function.resultNames = std::move(names);
}

OpId Builder::append(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes)
{
    heedStop(); // all that makes programs comes here
    const OpId id(m_function.ops.size());
    Op op;
    op.kind = kind == OpKind::Other ? keptKind(std::get<OtherAttributes>(attributes)) : kind;
    op.phase = m_phase;
    op.operands = std::move(operands);
    op.attributes = std::move(attributes);
    op.block = m_block;
    m_function.ops.push_back(std::move(op));
    m_function[m_block].ops.push_back(id);
    return id;
}

ValueId Builder::addResult(OpId op, TensorType type)
{
    const ValueId id(m_function.values.size());
    Value value;
    value.type = std::move(type);
    value.block = m_function[op].block;
    value.producer = op;
    value.index = m_function[op].results.size();
    m_function.values.push_back(std::move(value));
    m_function[op].results.push_back(id);
    return id;
}

std::vector<ValueId> Builder::addMany(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes)
{
    std::vector<TensorType> types;
    for (const ValueId operand : operands)
        types.push_back(type(operand));
    std::vector<TensorType> results = valueOf(resultTypes(kind, attributes, types));
    const OpId op = append(kind, std::move(operands), std::move(attributes));
    for (TensorType& result : results)
        addResult(op, std::move(result));
    return m_function[op].results;
}

ValueId Builder::add(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes)
{
    const std::vector<ValueId> results = addMany(kind, std::move(operands), std::move(attributes));
    assert(results.size() == 1);
    return results.front();
}

ValueId Builder::splat(TensorType type, double value)
{
    ConstantData data;
    if (isComplex(type.dtype))
        data = complexSplat(type.dtype, value);
    else if (isFloating(type.dtype))
        data.value = value;
    else
        data.value = static_cast<std::int64_t>(value);
    return add(OpKind::Constant, {}, ConstantAttributes{std::move(type), std::move(data)});
}

ValueId Builder::iota(TensorType type, std::size_t dim)
{
    return add(OpKind::Iota, {}, IotaAttributes{std::move(type), dim});
}

ValueId Builder::convert(ValueId operand, DType dtype)
{
    return type(operand).dtype == dtype ? operand : add(OpKind::Convert, {operand}, ConvertAttributes{dtype});
}

ValueId Builder::compare(CompareDirection direction, ValueId lhs, ValueId rhs)
{
    return add(OpKind::Compare, {lhs, rhs}, CompareAttributes{direction});
}

ValueId Builder::select(ValueId predicate, ValueId onTrue, ValueId onFalse)
{
    return add(OpKind::Select, {predicate, onTrue, onFalse});
}

ValueId Builder::broadcast(ValueId operand, Shape shape, std::vector<std::size_t> dims)
{
    return add(OpKind::BroadcastInDim, {operand}, BroadcastAttributes{std::move(shape), std::move(dims)});
}

ValueId Builder::broadcastScalar(ValueId scalar, const Shape& shape)
{
    assert(type(scalar).shape.empty());
    return shape.empty() ? scalar : broadcast(scalar, shape, {});
}

ValueId Builder::reshape(ValueId operand, Shape shape)
{
    return type(operand).shape == shape ? operand : add(OpKind::Reshape, {operand}, ReshapeAttributes{std::move(shape)});
}

ValueId Builder::transpose(ValueId operand, std::vector<std::size_t> permutation)
{
    return add(OpKind::Transpose, {operand}, TransposeAttributes{std::move(permutation)});
}

ValueId Builder::reduce(ReduceKind kind, ValueId operand, std::vector<std::size_t> dims)
{
    return dims.empty() ? operand : add(OpKind::Reduce, {operand}, ReduceAttributes{kind, std::move(dims)});
}

ValueId Builder::matmul(ValueId lhs, ValueId rhs, DType operandType)
{
    DotAttributes attributes;
    attributes.lhsContracting = {type(lhs).shape.size() - 1};
    attributes.rhsContracting = {0};
    attributes.resultType = type(lhs).dtype;
    attributes.operandType = operandType;
    return dot(lhs, rhs, std::move(attributes));
}

ValueId Builder::dot(ValueId lhs, ValueId rhs, DotAttributes attributes)
{
    return add(OpKind::DotGeneral, {lhs, rhs}, std::move(attributes));
}

ValueId Builder::constrain(ValueId operand, TensorSharding sharding, std::string origin)
{
    const ValueId result = add(OpKind::ShardingConstraint, {operand}, ConstraintAttributes{sharding, origin});
    m_function[result].sharding = std::move(sharding);
    m_function[result].annotation = std::move(origin);
    return result;
}

OpId Builder::beginOp(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes)
{
    return append(kind, std::move(operands), std::move(attributes));
}

std::vector<ValueId> Builder::beginBody(OpId op, std::span<const TensorType> arguments)
{
    m_block = BlockId(m_function.blocks.size());
    m_function.blocks.emplace_back();
    m_function[op].bodies.push_back(m_block);
    for (const TensorType& each : arguments)
        argument(each);
    return m_function[m_block].arguments;
}

std::vector<ValueId> Builder::endOp(OpId op, const std::vector<TensorType>& results)
{
    m_block = m_function[op].block;
    for (const TensorType& result : results)
        addResult(op, result);
    return m_function[op].results;
}

OpId Builder::beginRepeat(RepeatAttributes attributes, std::vector<ValueId> operands)
{
    std::vector<TensorType> types;
    for (const ValueId operand : operands)
        types.push_back(type(operand));
    assert(resultTypes(OpKind::Repeat, attributes, types).has_value());

    const OpId op = beginOp(OpKind::Repeat, std::move(operands), attributes);
    for (std::size_t i = attributes.carries; i < attributes.carries + attributes.stacked; ++i)
        types[i].shape.erase(types[i].shape.begin());
    beginBody(op, types);
    return op;
}

std::vector<ValueId> Builder::endRepeat(OpId repeat)
{
    const auto attributes = m_function[repeat].as<RepeatAttributes>();
    const std::vector<ValueId> yielded = m_function[m_function[repeat].bodies.front()].results;
    assert(yielded.size() >= attributes.carries);
    std::vector<TensorType> results;
    for (std::size_t i = 0; i < yielded.size(); ++i) {
        results.push_back(type(yielded[i]));
        if (i >= attributes.carries)
            results.back().shape.insert(results.back().shape.begin(), attributes.count);
    }
    return endOp(repeat, results);
}

ValueId Builder::named(ValueId value, std::string name)
{
    m_function[value].name = std::move(name);
    return value;
}

} // namespace meshwright
