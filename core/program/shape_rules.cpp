// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/shape_rules.h"

#include "core/support/checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

using Types = std::vector<TensorType>;
using Operands = std::span<const TensorType>;

Problem wrongShape(OpKind kind, const std::string& what)
{
    return {"MW1302", fmt::format("{}: {}", opName(kind), what)};
}

Problem wrongType(OpKind kind, const std::string& what)
{
    return {"MW1303", fmt::format("{}: {}", opName(kind), what)};
}

Problem wrongAttribute(OpKind kind, const std::string& what)
{
    return {"MW1304", fmt::format("{}: {}", opName(kind), what)};
}

std::optional<std::size_t> operandCount(OpKind kind)
{
    switch (opInfo(kind).opClass) {
    case OpClass::Leaf:
        return kind == OpKind::RandomBits ? 1U : 0U;
    case OpClass::Unary:
    case OpClass::Shaping:
    case OpClass::Constraint:
    case OpClass::Collective:
        return 1U;
    case OpClass::Binary:
        return 2U;
    case OpClass::Ternary:
        return 3U;
    case OpClass::Contraction:
        return kind == OpKind::DotGeneral ? 2U : 1U;
    case OpClass::Control:
        return std::nullopt;
    case OpClass::Transfer:
        return kind == OpKind::Send ? 1U : 0U;
    }
    return std::nullopt;
}

/// Distinct and each below `rank`.
bool areDims(const std::vector<std::size_t>& dims, std::size_t rank)
{
    const std::set<std::size_t> distinct(dims.begin(), dims.end());
    return distinct.size() == dims.size() && (distinct.empty() || *distinct.rbegin() < rank);
}

Result<Types> checkedType(OpKind kind, const TensorType& type)
{
    if (std::any_of(type.shape.begin(), type.shape.end(), [](std::int64_t size) { return size < 0; }))
        return wrongAttribute(kind, fmt::format("{} has a negative size", typeText(type)));
    const auto elements = checkedProduct(type.shape);
    if (!elements || !checkedMultiply(*elements, byteSize(type.dtype)))
        return wrongAttribute(kind, fmt::format("{} does not fit 64 bits", typeText(type)));
    return Types{type};
}

Result<Types> constantTypes(const ConstantAttributes& attributes)
{
    auto types = checkedType(OpKind::Constant, attributes.type);
    const auto* blob = std::get_if<std::shared_ptr<const std::string>>(&attributes.data.value);
    if (types && blob != nullptr && (*blob == nullptr || static_cast<std::int64_t>((*blob)->size()) != attributes.type.bytes()))
        return wrongAttribute(
            OpKind::Constant, fmt::format("{} needs {} bytes of data", typeText(attributes.type), attributes.type.bytes()));
    return types;
}

Result<Types> unaryTypes(OpKind kind, const OpAttributes& attributes, const TensorType& operand)
{
    if (kind == OpKind::Convert || kind == OpKind::BitcastConvert) {
        const DType dtype = std::get<ConvertAttributes>(attributes).dtype;
        if (kind == OpKind::BitcastConvert && byteSize(dtype) != byteSize(operand.dtype))
            return wrongType(kind, fmt::format("{} and {} differ in size", dtypeName(operand.dtype), dtypeName(dtype)));
        return Types{TensorType{dtype, operand.shape}};
    }
    const bool anyType = kind == OpKind::Negate || kind == OpKind::Abs || kind == OpKind::Sign;
    const bool fits
        = kind == OpKind::Not ? !isFloating(operand.dtype) : isFloating(operand.dtype) || (anyType && isInteger(operand.dtype));
    if (!fits)
        return wrongType(kind, fmt::format("not for elements of type {}", dtypeName(operand.dtype)));
    return Types{operand};
}

Result<Types> binaryTypes(OpKind kind, const TensorType& lhs, const TensorType& rhs)
{
    if (lhs.shape != rhs.shape)
        return wrongShape(kind, fmt::format("the operands' shapes differ: {} and {}", typeText(lhs), typeText(rhs)));
    if (lhs.dtype != rhs.dtype)
        return wrongType(kind, fmt::format("the operands' element types differ: {} and {}", typeText(lhs), typeText(rhs)));
    const bool isLogic = kind == OpKind::And || kind == OpKind::Or || kind == OpKind::Xor;
    const bool isShift = kind == OpKind::ShiftLeft || kind == OpKind::ShiftRightLogical;
    if ((isLogic && isFloating(lhs.dtype)) || (isShift && !isInteger(lhs.dtype))
        || (!isLogic && kind != OpKind::Compare && lhs.dtype == DType::Pred))
        return wrongType(kind, fmt::format("not for elements of type {}", dtypeName(lhs.dtype)));
    return Types{kind == OpKind::Compare ? TensorType{DType::Pred, lhs.shape} : lhs};
}

Result<Types> selectTypes(Operands operands)
{
    if (operands[0].dtype != DType::Pred)
        return wrongType(OpKind::Select, fmt::format("the predicate is {}, not i1", typeText(operands[0])));
    if (operands[0].shape != operands[1].shape || operands[1] != operands[2])
        return wrongShape(OpKind::Select,
            fmt::format(
                "the operands differ: {}, {} and {}", typeText(operands[0]), typeText(operands[1]), typeText(operands[2])));
    return Types{operands[1]};
}

Result<Types> broadcastTypes(const BroadcastAttributes& attributes, const TensorType& operand)
{
    if (attributes.dims.size() != operand.shape.size() || !areDims(attributes.dims, attributes.shape.size()))
        return wrongAttribute(OpKind::BroadcastInDim,
            fmt::format("dims [{}] do not place {} in a shape of rank {}", fmt::join(attributes.dims, ", "), typeText(operand),
                attributes.shape.size()));
    for (std::size_t i = 0; i < attributes.dims.size(); ++i) {
        const std::int64_t target = attributes.shape[attributes.dims[i]];
        if (operand.shape[i] != 1 && operand.shape[i] != target)
            return wrongShape(OpKind::BroadcastInDim, fmt::format("dim {} of {} cannot become {}", i, typeText(operand), target));
    }
    return checkedType(OpKind::BroadcastInDim, {operand.dtype, attributes.shape});
}

Result<Types> reshapeTypes(const ReshapeAttributes& attributes, const TensorType& operand)
{
    auto types = checkedType(OpKind::Reshape, {operand.dtype, attributes.shape});
    if (types && elementCount(attributes.shape) != operand.elements())
        return wrongShape(OpKind::Reshape,
            fmt::format("{} has {} elements, {} has {}", typeText(operand), operand.elements(), shapeText(attributes.shape),
                elementCount(attributes.shape)));
    return types;
}

Result<Types> transposeTypes(const TransposeAttributes& attributes, const TensorType& operand)
{
    const auto& permutation = attributes.permutation;
    if (permutation.size() != operand.shape.size() || !areDims(permutation, operand.shape.size()))
        return wrongAttribute(OpKind::Transpose,
            fmt::format("[{}] is no permutation of the dimensions of {}", fmt::join(permutation, ", "), typeText(operand)));
    TensorType result{operand.dtype, {}};
    for (const std::size_t dim : permutation)
        result.shape.push_back(operand.shape[dim]);
    return Types{result};
}

Result<Types> reduceTypes(const ReduceAttributes& attributes, const TensorType& operand)
{
    if (!areDims(attributes.dims, operand.shape.size()) || !std::is_sorted(attributes.dims.begin(), attributes.dims.end()))
        return wrongAttribute(OpKind::Reduce,
            fmt::format("[{}] are no ascending dimensions of {}", fmt::join(attributes.dims, ", "), typeText(operand)));
    const bool isLogic = attributes.kind == ReduceKind::And || attributes.kind == ReduceKind::Or;
    if ((isLogic && isFloating(operand.dtype)) || (!isLogic && operand.dtype == DType::Pred))
        return wrongType(OpKind::Reduce,
            fmt::format("{} is not for elements of type {}", reduceKindName(attributes.kind), dtypeName(operand.dtype)));
    TensorType result{operand.dtype, {}};
    for (std::size_t dim = 0; dim < operand.shape.size(); ++dim) {
        if (!std::binary_search(attributes.dims.begin(), attributes.dims.end(), dim))
            result.shape.push_back(operand.shape[dim]);
    }
    return Types{result};
}

Result<Types> dotTypes(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs)
{
    const auto together = [](std::vector<std::size_t> a, const std::vector<std::size_t>& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    };
    const auto lhsUsed = together(attributes.lhsBatch, attributes.lhsContracting);
    const auto rhsUsed = together(attributes.rhsBatch, attributes.rhsContracting);
    if (!areDims(lhsUsed, lhs.shape.size()) || !areDims(rhsUsed, rhs.shape.size())
        || attributes.lhsBatch.size() != attributes.rhsBatch.size()
        || attributes.lhsContracting.size() != attributes.rhsContracting.size())
        return wrongAttribute(OpKind::DotGeneral,
            fmt::format("the batch and contracting dimensions do not fit {} and {}", typeText(lhs), typeText(rhs)));
    if (!isFloating(lhs.dtype) && !isInteger(lhs.dtype))
        return wrongType(OpKind::DotGeneral, fmt::format("not for elements of type {}", dtypeName(lhs.dtype)));
    if (lhs.dtype != rhs.dtype)
        return wrongType(
            OpKind::DotGeneral, fmt::format("the operands' element types differ: {} and {}", typeText(lhs), typeText(rhs)));

    TensorType result{attributes.resultType, {}};
    for (std::size_t i = 0; i < lhsUsed.size(); ++i) {
        if (lhs.shape[lhsUsed[i]] != rhs.shape[rhsUsed[i]])
            return wrongShape(OpKind::DotGeneral,
                fmt::format("dim {} of {} and dim {} of {} differ", lhsUsed[i], typeText(lhs), rhsUsed[i], typeText(rhs)));
        if (i < attributes.lhsBatch.size())
            result.shape.push_back(lhs.shape[lhsUsed[i]]);
    }
    const auto addFree = [&](const TensorType& operand, const std::vector<std::size_t>& used) {
        for (std::size_t dim = 0; dim < operand.shape.size(); ++dim) {
            if (std::find(used.begin(), used.end(), dim) == used.end())
                result.shape.push_back(operand.shape[dim]);
        }
    };
    addFree(lhs, lhsUsed);
    addFree(rhs, rhsUsed);
    return checkedType(OpKind::DotGeneral, result);
}

Result<Types> collectiveTypes(OpKind kind, const CollectiveAttributes& attributes, const TensorType& operand)
{
    TensorType result = operand;
    const std::size_t rank = operand.shape.size();
    switch (kind) {
    case OpKind::AllGather:
    case OpKind::AllSlice:
    case OpKind::ReduceScatter:
        if (attributes.perDim.size() != rank)
            return wrongAttribute(
                kind, fmt::format("axes for {} dimensions, {} has {}", attributes.perDim.size(), typeText(operand), rank));
        for (std::size_t dim = 0; dim < rank; ++dim) {
            const std::int64_t count = shardCount(attributes.perDim[dim]);
            result.shape[dim] = kind == OpKind::AllGather ? result.shape[dim] * count : ceilDiv(result.shape[dim], count);
        }
        break;
    case OpKind::AllToAll:
        for (const AxisMove& move : attributes.moves) {
            if (move.from >= rank || move.to >= rank || move.from == move.to)
                return wrongAttribute(
                    kind, fmt::format("cannot move axes from dim {} to dim {} of {}", move.from, move.to, typeText(operand)));
            result.shape[move.from] *= shardCount(move.axes);
            result.shape[move.to] = ceilDiv(result.shape[move.to], shardCount(move.axes));
        }
        break;
    case OpKind::CollectivePermute:
    case OpKind::Reshard:
        if (attributes.resultShape.size() != rank)
            return wrongAttribute(
                kind, fmt::format("a result of rank {} from {}", attributes.resultShape.size(), typeText(operand)));
        result.shape = attributes.resultShape;
        break;
    default:
        break;
    }
    return Types{result};
}

Result<Types> repeatTypes(const RepeatAttributes& attributes, Operands operands)
{
    if (attributes.count < 1)
        return wrongAttribute(OpKind::Repeat, fmt::format("the count must be at least 1, got {}", attributes.count));
    if (attributes.carries + attributes.stacked > operands.size())
        return Problem{"MW1301",
            fmt::format("repeat: {} carries and {} stacked operands, but {} operands", attributes.carries, attributes.stacked,
                operands.size())};
    for (std::size_t i = attributes.carries; i < attributes.carries + attributes.stacked; ++i) {
        if (operands[i].shape.empty() || operands[i].shape.front() != attributes.count)
            return wrongShape(OpKind::Repeat,
                fmt::format("stacked operand {} is {}: dim 0 must be the count {}", i, typeText(operands[i]), attributes.count));
    }
    return Types{};
}

} // namespace

Result<Types> resultTypes(OpKind kind, const OpAttributes& attributes, Operands operands)
{
    if (const auto count = operandCount(kind); count && *count != operands.size())
        return Problem{"MW1301", fmt::format("{}: needs {} operands, got {}", opName(kind), *count, operands.size())};

    switch (opInfo(kind).opClass) {
    case OpClass::Leaf:
        if (kind == OpKind::Constant)
            return constantTypes(std::get<ConstantAttributes>(attributes));
        if (kind == OpKind::Iota) {
            const auto& iota = std::get<IotaAttributes>(attributes);
            if (iota.dim >= iota.type.shape.size())
                return wrongAttribute(kind, fmt::format("{} has no dim {}", typeText(iota.type), iota.dim));
            return checkedType(kind, iota.type);
        }
        if (operands[0] != TensorType{DType::U32, {2}})
            return wrongType(kind, fmt::format("the key is {}, not ui32[2]", typeText(operands[0])));
        if (const TensorType& type = std::get<RandomBitsAttributes>(attributes).type; type.dtype != DType::U32)
            return wrongType(kind, fmt::format("makes ui32, not {}", typeText(type)));
        return checkedType(kind, std::get<RandomBitsAttributes>(attributes).type);
    case OpClass::Unary:
        return unaryTypes(kind, attributes, operands[0]);
    case OpClass::Binary:
        return binaryTypes(kind, operands[0], operands[1]);
    case OpClass::Ternary:
        return selectTypes(operands);
    case OpClass::Shaping:
        if (kind == OpKind::BroadcastInDim)
            return broadcastTypes(std::get<BroadcastAttributes>(attributes), operands[0]);
        if (kind == OpKind::Reshape)
            return reshapeTypes(std::get<ReshapeAttributes>(attributes), operands[0]);
        return transposeTypes(std::get<TransposeAttributes>(attributes), operands[0]);
    case OpClass::Contraction:
        if (kind == OpKind::Reduce)
            return reduceTypes(std::get<ReduceAttributes>(attributes), operands[0]);
        return dotTypes(std::get<DotAttributes>(attributes), operands[0], operands[1]);
    case OpClass::Constraint:
        return Types{operands[0]};
    case OpClass::Control:
        return repeatTypes(std::get<RepeatAttributes>(attributes), operands);
    case OpClass::Collective:
        return collectiveTypes(kind, std::get<CollectiveAttributes>(attributes), operands[0]);
    case OpClass::Transfer:
        return kind == OpKind::Send ? Types{} : Types{std::get<TransferAttributes>(attributes).type};
    }
    return Types{};
}

} // namespace meshwright
