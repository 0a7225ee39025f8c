// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/shape_rules.h"

#include "core/program/other_op.h"
#include "core/program/shape_problems.h"
#include "core/support/checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace meshwright {

Problem wrongCount(std::string_view name, const std::string& needed, std::size_t given)
{
    return {"MW1301", fmt::format("{}: needs {}, got {}", name, needed, given)};
}

Problem wrongShape(std::string_view name, const std::string& what)
{
    return {"MW1302", fmt::format("{}: {}", name, what)};
}

Problem wrongType(std::string_view name, const std::string& what)
{
    return {"MW1303", fmt::format("{}: {}", name, what)};
}

Problem wrongAttribute(std::string_view name, const std::string& what)
{
    return {"MW1304", fmt::format("{}: {}", name, what)};
}

bool areDims(const std::vector<std::size_t>& dims, std::size_t rank)
{
    const std::set<std::size_t> distinct(dims.begin(), dims.end());
    return distinct.size() == dims.size() && (distinct.empty() || *distinct.rbegin() < rank);
}

Result<ResultTypes> checkedType(std::string_view name, const TensorType& type)
{
    if (std::any_of(type.shape.begin(), type.shape.end(), [](std::int64_t size) { return size < 0; }))
        return wrongAttribute(name, fmt::format("{} has a negative size", typeText(type)));
    const auto elements = checkedProduct(type.shape);
    if (!elements || !checkedMultiply(*elements, byteSize(type.dtype)))
        return wrongAttribute(name, fmt::format("{} does not fit 64 bits", typeText(type)));
    return ResultTypes{type};
}

namespace {

using Types = ResultTypes;
using Operands = OperandTypes;

std::optional<std::size_t> partsOperandCount(OpKind kind)
{
    switch (kind) {
    case OpKind::Slice:
    case OpKind::Reverse:
        return 1U;
    case OpKind::Pad:
    case OpKind::Gather:
        return 2U;
    case OpKind::Scatter:
        return 3U;
    default:
        return std::nullopt;
    }
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
    case OpClass::Parts:
        return partsOperandCount(kind);
    case OpClass::Binary:
        return 2U;
    case OpClass::Ternary:
        return 3U;
    case OpClass::Contraction:
        return kind == OpKind::DotGeneral ? 2U : 1U;
    case OpClass::Barrier:
    case OpClass::Control:
    case OpClass::Other:
        return std::nullopt;
    case OpClass::Transfer:
        return kind == OpKind::Send ? 1U : 0U;
    }
    return std::nullopt;
}

Result<Types> constantTypes(const ConstantAttributes& attributes)
{
    auto types = checkedType(opName(OpKind::Constant), attributes.type);
    const auto* blob = std::get_if<std::shared_ptr<const std::string>>(&attributes.data.value);
    const std::int64_t given = blob != nullptr && *blob != nullptr ? static_cast<std::int64_t>((*blob)->size()) : -1;
    const bool isComplexSplat = isComplex(attributes.type.dtype) && given == byteSize(attributes.type.dtype);
    if (types && given >= 0 && given != attributes.type.bytes() && !isComplexSplat)
        return wrongAttribute(opName(OpKind::Constant),
            fmt::format("{} needs {} bytes of data", typeText(attributes.type), attributes.type.bytes()));
    return types;
}

ElementTypes elementTypesOf(DType dtype)
{
    return isFloating(dtype)   ? kFloats
        : isInteger(dtype)     ? kIntegers
        : isComplex(dtype)     ? kComplexes
        : dtype == DType::Pred ? kTruths
                               : kNoType;
}

/// One or two operands of one type, which the op's row knows.
Result<Types> elementwiseTypes(OpKind kind, const OpAttributes& attributes, Operands operands)
{
    const OpInfo& info = opInfo(kind);
    const TensorType& type = operands.front();
    const TensorType& last = operands.back();
    if (type.shape != last.shape)
        return wrongShape(opName(kind), fmt::format("the operands' shapes differ: {} and {}", typeText(type), typeText(last)));
    if (type.dtype != last.dtype)
        return wrongType(
            opName(kind), fmt::format("the operands' element types differ: {} and {}", typeText(type), typeText(last)));
    const DType dtype = type.dtype;
    const bool isHalfOfNone = info.makes == ElementResult::Complex && dtype != DType::F32 && dtype != DType::F64;
    if ((info.takes & elementTypesOf(dtype)) == 0 || isHalfOfNone)
        return wrongType(opName(kind), fmt::format("not for elements of type {}", dtypeName(dtype)));
    switch (info.makes) {
    case ElementResult::Same:
        break;
    case ElementResult::Real:
        return Types{TensorType{realType(dtype), type.shape}};
    case ElementResult::Complex:
        return Types{TensorType{dtype == DType::F32 ? DType::C64 : DType::C128, type.shape}};
    case ElementResult::Truth:
        return Types{TensorType{DType::Pred, type.shape}};
    case ElementResult::Named: {
        const DType named = std::get<ConvertAttributes>(attributes).dtype;
        if (kind == OpKind::BitcastConvert && byteSize(named) != byteSize(dtype))
            return wrongType(opName(kind), fmt::format("{} and {} differ in size", dtypeName(dtype), dtypeName(named)));
        return Types{TensorType{named, type.shape}};
    }
    }
    return Types{type};
}

Result<Types> selectTypes(Operands operands)
{
    if (operands[0].dtype != DType::Pred)
        return wrongType(opName(OpKind::Select), fmt::format("the predicate is {}, not i1", typeText(operands[0])));
    if (operands[0].shape != operands[1].shape || operands[1] != operands[2])
        return wrongShape(opName(OpKind::Select),
            fmt::format(
                "the operands differ: {}, {} and {}", typeText(operands[0]), typeText(operands[1]), typeText(operands[2])));
    return Types{operands[1]};
}

Result<Types> clampTypes(Operands operands)
{
    const TensorType& type = operands[1];
    if (operands[0] != type || operands[2] != type)
        return wrongShape(opName(OpKind::Clamp),
            fmt::format("the operands differ: {}, {} and {}", typeText(operands[0]), typeText(type), typeText(operands[2])));
    if (!isFloating(type.dtype) && !isInteger(type.dtype))
        return wrongType(opName(OpKind::Clamp), fmt::format("not for elements of type {}", dtypeName(type.dtype)));
    return Types{type};
}

Result<Types> broadcastTypes(const BroadcastAttributes& attributes, const TensorType& operand)
{
    if (attributes.dims.size() != operand.shape.size() || !areDims(attributes.dims, attributes.shape.size()))
        return wrongAttribute(opName(OpKind::BroadcastInDim),
            fmt::format("dims [{}] do not place {} in a shape of rank {}", fmt::join(attributes.dims, ", "), typeText(operand),
                attributes.shape.size()));
    for (std::size_t i = 0; i < attributes.dims.size(); ++i) {
        const std::int64_t target = attributes.shape[attributes.dims[i]];
        if (operand.shape[i] != 1 && operand.shape[i] != target)
            return wrongShape(
                opName(OpKind::BroadcastInDim), fmt::format("dim {} of {} cannot become {}", i, typeText(operand), target));
    }
    return checkedType(opName(OpKind::BroadcastInDim), {operand.dtype, attributes.shape});
}

Result<Types> reshapeTypes(const ReshapeAttributes& attributes, const TensorType& operand)
{
    auto types = checkedType(opName(OpKind::Reshape), {operand.dtype, attributes.shape});
    if (types && elementCount(attributes.shape) != operand.elements())
        return wrongShape(opName(OpKind::Reshape),
            fmt::format("{} has {} elements, {} has {}", typeText(operand), operand.elements(), shapeText(attributes.shape),
                elementCount(attributes.shape)));
    return types;
}

Result<Types> transposeTypes(const TransposeAttributes& attributes, const TensorType& operand)
{
    const auto& permutation = attributes.permutation;
    if (permutation.size() != operand.shape.size() || !areDims(permutation, operand.shape.size()))
        return wrongAttribute(opName(OpKind::Transpose),
            fmt::format("[{}] is not a permutation of the dimensions of {}", fmt::join(permutation, ", "), typeText(operand)));
    TensorType result{operand.dtype, {}};
    for (const std::size_t dim : permutation)
        result.shape.push_back(operand.shape[dim]);
    return Types{result};
}

Result<Types> reduceTypes(const ReduceAttributes& attributes, const TensorType& operand)
{
    if (!areDims(attributes.dims, operand.shape.size()) || !std::is_sorted(attributes.dims.begin(), attributes.dims.end()))
        return wrongAttribute(opName(OpKind::Reduce),
            fmt::format("[{}] are not ascending dimensions of {}", fmt::join(attributes.dims, ", "), typeText(operand)));
    const bool isLogic = attributes.kind == ReduceKind::And || attributes.kind == ReduceKind::Or;
    const bool isOrdered = attributes.kind == ReduceKind::Max || attributes.kind == ReduceKind::Min;
    if ((isLogic && !isInteger(operand.dtype) && operand.dtype != DType::Pred) || (!isLogic && operand.dtype == DType::Pred)
        || (isOrdered && isComplex(operand.dtype)) || operand.dtype == DType::Token)
        return wrongType(opName(OpKind::Reduce),
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
        return wrongAttribute(opName(OpKind::DotGeneral),
            fmt::format("the batch and contracting dimensions do not fit {} and {}", typeText(lhs), typeText(rhs)));
    if (!isFloating(lhs.dtype) && !isInteger(lhs.dtype) && !isComplex(lhs.dtype))
        return wrongType(opName(OpKind::DotGeneral), fmt::format("not for elements of type {}", dtypeName(lhs.dtype)));
    if (lhs.dtype != rhs.dtype)
        return wrongType(opName(OpKind::DotGeneral),
            fmt::format("the operands' element types differ: {} and {}", typeText(lhs), typeText(rhs)));

    TensorType result{attributes.resultType, {}};
    for (std::size_t i = 0; i < lhsUsed.size(); ++i) {
        if (lhs.shape[lhsUsed[i]] != rhs.shape[rhsUsed[i]])
            return wrongShape(opName(OpKind::DotGeneral),
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
    return checkedType(opName(OpKind::DotGeneral), result);
}

Result<Types> collectiveTypes(OpKind kind, const CollectiveAttributes& attributes, const TensorType& operand)
{
    TensorType result = operand;
    const std::size_t rank = operand.shape.size();
    if (attributes.pieces && attributes.resultShape.size() != rank)
        return wrongAttribute(
            opName(kind), fmt::format("a result of rank {} from {}", attributes.resultShape.size(), typeText(operand)));
    if (attributes.pieces)
        return Types{{operand.dtype, attributes.resultShape}};
    switch (kind) {
    case OpKind::AllGather:
    case OpKind::AllSlice:
    case OpKind::ReduceScatter:
        if (attributes.perDim.size() != rank)
            return wrongAttribute(opName(kind),
                fmt::format("axes for {} dimensions, {} has {}", attributes.perDim.size(), typeText(operand), rank));
        for (std::size_t dim = 0; dim < rank; ++dim) {
            const std::int64_t count = shardCount(attributes.perDim[dim]);
            result.shape[dim] = kind == OpKind::AllGather ? result.shape[dim] * count : ceilDiv(result.shape[dim], count);
        }
        break;
    case OpKind::AllToAll:
        for (const AxisMove& move : attributes.moves) {
            if (move.from >= rank || move.to >= rank || move.from == move.to)
                return wrongAttribute(opName(kind),
                    fmt::format("cannot move axes from dim {} to dim {} of {}", move.from, move.to, typeText(operand)));
            result.shape[move.from] *= shardCount(move.axes);
            result.shape[move.to] = ceilDiv(result.shape[move.to], shardCount(move.axes));
        }
        break;
    case OpKind::CollectivePermute:
    case OpKind::Reshard:
        if (attributes.resultShape.size() != rank)
            return wrongAttribute(
                opName(kind), fmt::format("a result of rank {} from {}", attributes.resultShape.size(), typeText(operand)));
        result.shape = attributes.resultShape;
        break;
    default:
        break;
    }
    return Types{result};
}

/// Of ops with blocks only what does not need the blocks is checked; their results follow from the blocks.
Result<Types> controlTypes(OpKind kind, const OpAttributes& attributes, Operands operands)
{
    if (kind == OpKind::While && std::get<WhileAttributes>(attributes).carries > operands.size())
        return wrongCount(
            opName(kind), fmt::format("{} carries", std::get<WhileAttributes>(attributes).carries), operands.size());
    if (kind == OpKind::Case) {
        if (operands.empty())
            return wrongCount(opName(kind), "at least one operand", 0);
        if (operands[0] != TensorType{DType::S32, {}} && operands[0] != TensorType{DType::Pred, {}})
            return wrongType(opName(kind), fmt::format("the branch is chosen by {}, not i32[] or i1[]", typeText(operands[0])));
    }
    if (kind == OpKind::Computation) {
        const auto& computation = std::get<ComputationAttributes>(attributes);
        if (!computation.inShardings.empty() && computation.inShardings.size() != operands.size())
            return wrongCount(opName(kind), fmt::format("{} operands, as it has in_shardings", computation.inShardings.size()),
                operands.size());
        for (std::size_t i = 0; i < computation.inShardings.size(); ++i) {
            if (computation.inShardings[i].dims.size() != operands[i].shape.size())
                return wrongAttribute(opName(kind),
                    fmt::format("in_sharding {} has {} dimensions for {}", i, computation.inShardings[i].dims.size(),
                        typeText(operands[i])));
        }
    }
    return Types{};
}

Result<Types> repeatTypes(const RepeatAttributes& attributes, Operands operands)
{
    if (attributes.count < 1)
        return wrongAttribute(opName(OpKind::Repeat), fmt::format("the count must be at least 1, got {}", attributes.count));
    if (attributes.carries + attributes.stacked > operands.size())
        return Problem{"MW1301",
            fmt::format("repeat: {} carries and {} stacked operands, but {} operands", attributes.carries, attributes.stacked,
                operands.size())};
    for (std::size_t i = attributes.carries; i < attributes.carries + attributes.stacked; ++i) {
        if (operands[i].shape.empty() || operands[i].shape.front() != attributes.count)
            return wrongShape(opName(OpKind::Repeat),
                fmt::format("stacked operand {} is {}: dim 0 must be the count {}", i, typeText(operands[i]), attributes.count));
    }
    return Types{};
}

} // namespace

std::optional<TensorType> manualPiece(
    TensorType type, const TensorSharding& sharding, const std::vector<std::int32_t>& manualAxes)
{
    for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
        for (const AxisRef& axis : sharding.dims[dim].axes) {
            if (!std::binary_search(manualAxes.begin(), manualAxes.end(), axis.axis))
                continue;
            if (type.shape[dim] % axis.size != 0)
                return std::nullopt;
            type.shape[dim] /= axis.size;
        }
    }
    return type;
}

TensorSharding withoutManualAxes(TensorSharding sharding, const std::vector<std::int32_t>& manualAxes)
{
    const auto drop = [&](AxisRefs& axes) {
        std::erase_if(
            axes, [&](const AxisRef& axis) { return std::binary_search(manualAxes.begin(), manualAxes.end(), axis.axis); });
    };
    for (DimSharding& dim : sharding.dims)
        drop(dim.axes);
    drop(sharding.replicated);
    drop(sharding.unreduced);
    return sharding;
}

Result<Types> resultTypes(OpKind kind, const OpAttributes& attributes, Operands operands)
{
    if (const auto count = operandCount(kind); count && *count != operands.size())
        return wrongCount(opName(kind), fmt::format("{} operands", *count), operands.size());

    const OpClass opClass = opInfo(kind).opClass;
    const bool computes = opClass == OpClass::Unary || opClass == OpClass::Binary || opClass == OpClass::Ternary
        || opClass == OpClass::Shaping || opClass == OpClass::Parts || opClass == OpClass::Contraction;
    if (computes
        && std::any_of(operands.begin(), operands.end(), [](const TensorType& type) { return type.dtype == DType::Token; }))
        return wrongType(opName(kind), "a token is not an array");
    switch (opClass) {
    case OpClass::Leaf:
        if (kind == OpKind::Constant)
            return constantTypes(std::get<ConstantAttributes>(attributes));
        if (kind == OpKind::Iota) {
            const auto& iota = std::get<IotaAttributes>(attributes);
            if (iota.dim >= iota.type.shape.size())
                return wrongAttribute(opName(kind), fmt::format("{} has no dim {}", typeText(iota.type), iota.dim));
            return checkedType(opName(kind), iota.type);
        }
        if (operands[0] != TensorType{DType::U32, {2}})
            return wrongType(opName(kind), fmt::format("the key is {}, not ui32[2]", typeText(operands[0])));
        if (const TensorType& type = std::get<RandomBitsAttributes>(attributes).type; type.dtype != DType::U32)
            return wrongType(opName(kind), fmt::format("makes ui32, not {}", typeText(type)));
        return checkedType(opName(kind), std::get<RandomBitsAttributes>(attributes).type);
    case OpClass::Unary:
    case OpClass::Binary:
        return elementwiseTypes(kind, attributes, operands);
    case OpClass::Ternary:
        return kind == OpKind::Select ? selectTypes(operands) : clampTypes(operands);
    case OpClass::Parts:
        return partsTypes(kind, attributes, operands);
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
    case OpClass::Barrier:
        return Types(operands.begin(), operands.end());
    case OpClass::Control:
        return kind == OpKind::Repeat ? repeatTypes(std::get<RepeatAttributes>(attributes), operands)
                                      : controlTypes(kind, attributes, operands);
    case OpClass::Collective:
        return collectiveTypes(kind, std::get<CollectiveAttributes>(attributes), operands[0]);
    case OpClass::Transfer:
        return kind == OpKind::Send ? Types{} : Types{std::get<TransferAttributes>(attributes).type};
    case OpClass::Other: {
        const auto& other = std::get<OtherAttributes>(attributes);
        if (auto problem = otherProblem(other, operands))
            return *std::move(problem);
        return other.results;
    }
    }
    return Types{};
}

} // namespace meshwright
