// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/shape_problems.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

namespace {

using Dims = std::vector<std::size_t>;

bool contains(const Dims& dims, std::size_t dim)
{
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

Dims together(Dims a, const Dims& b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Result<ResultTypes> sliceTypes(const SliceAttributes& slice, const TensorType& operand)
{
    const std::size_t rank = operand.shape.size();
    if (slice.starts.size() != rank || slice.limits.size() != rank || slice.strides.size() != rank)
        return wrongAttribute(
            "slice", fmt::format("needs a start, a limit and a stride for each dimension of {}", typeText(operand)));
    TensorType result = operand;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        const std::int64_t start = slice.starts[dim];
        const std::int64_t limit = slice.limits[dim];
        if (start < 0 || limit < start || limit > operand.shape[dim] || slice.strides[dim] < 1)
            return wrongAttribute("slice",
                fmt::format("{}:{}:{} is not a part of dim {} of {}", start, limit, slice.strides[dim], dim, typeText(operand)));
        result.shape[dim] = limit == start ? 0 : (limit - start - 1) / slice.strides[dim] + 1;
    }
    return ResultTypes{std::move(result)};
}

Result<ResultTypes> padTypes(const PadAttributes& pad, const TensorType& operand, const TensorType& value)
{
    const std::size_t rank = operand.shape.size();
    if (value != TensorType{operand.dtype, {}})
        return wrongType("pad", fmt::format("the value is {}, not {}", typeText(value), typeText({operand.dtype, {}})));
    if (pad.low.size() != rank || pad.high.size() != rank || pad.interior.size() != rank)
        return wrongAttribute("pad", fmt::format("needs low, high and interior for each dimension of {}", typeText(operand)));
    TensorType result = operand;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        std::int64_t between = 0;
        std::int64_t size = operand.shape[dim];
        const bool fits = pad.interior[dim] >= 0
            && !__builtin_mul_overflow(std::max<std::int64_t>(size - 1, 0), pad.interior[dim], &between)
            && !__builtin_add_overflow(size, between, &size) && !__builtin_add_overflow(size, pad.low[dim], &size)
            && !__builtin_add_overflow(size, pad.high[dim], &size) && size >= 0;
        if (!fits)
            return wrongAttribute("pad",
                fmt::format("dim {} of {} cannot be padded by {}, {} and {} between", dim, typeText(operand), pad.low[dim],
                    pad.high[dim], pad.interior[dim]));
        result.shape[dim] = size;
    }
    return checkedType("pad", result);
}

Result<ResultTypes> concatenateTypes(const ConcatenateAttributes& concatenate, OperandTypes operands)
{
    if (operands.empty())
        return wrongCount("concatenate", "at least one operand", 0);
    TensorType result = operands.front();
    if (concatenate.dim >= result.shape.size())
        return wrongAttribute("concatenate", fmt::format("{} has no dim {}", typeText(result), concatenate.dim));
    for (std::size_t i = 1; i < operands.size(); ++i) {
        Shape other = operands[i].shape;
        if (operands[i].dtype != result.dtype)
            return wrongType("concatenate",
                fmt::format("the operands' element types differ: {} and {}", typeText(operands.front()), typeText(operands[i])));
        if (other.size() != result.shape.size()
            || __builtin_add_overflow(result.shape[concatenate.dim], other[concatenate.dim], &other[concatenate.dim]))
            return wrongShape(
                "concatenate", fmt::format("{} does not fit {}", typeText(operands[i]), typeText(operands.front())));
        result.shape[concatenate.dim] = other[concatenate.dim];
        if (other != result.shape)
            return wrongShape("concatenate",
                fmt::format(
                    "{} and {} differ in more than dim {}", typeText(operands.front()), typeText(operands[i]), concatenate.dim));
    }
    return checkedType("concatenate", result);
}

/// One scalar integer for each dimension of the operand, from operand `first` on; all of one type.
std::optional<Problem> startProblem(std::string_view name, OperandTypes operands, std::size_t first)
{
    const std::size_t rank = operands.front().shape.size();
    if (operands.size() != first + rank)
        return wrongCount(name, fmt::format("{} operands: a start for each dimension", first + rank), operands.size());
    for (std::size_t i = first; i < operands.size(); ++i) {
        if (!operands[i].shape.empty() || !isInteger(operands[i].dtype) || operands[i].dtype != operands[first].dtype)
            return wrongType(
                name, fmt::format("start {} is {}, not a scalar integer like the others", i - first, typeText(operands[i])));
    }
    return std::nullopt;
}

Result<ResultTypes> dynamicSliceTypes(const DynamicSliceAttributes& slice, OperandTypes operands)
{
    if (operands.empty())
        return wrongCount("dynamic_slice", "at least one operand", 0);
    if (auto problem = startProblem("dynamic_slice", operands, 1))
        return *std::move(problem);
    const TensorType& operand = operands.front();
    bool fits = slice.sizes.size() == operand.shape.size();
    for (std::size_t dim = 0; fits && dim < slice.sizes.size(); ++dim)
        fits = slice.sizes[dim] >= 0 && slice.sizes[dim] <= operand.shape[dim];
    if (!fits)
        return wrongAttribute("dynamic_slice", fmt::format("{} has no part of {}", typeText(operand), shapeText(slice.sizes)));
    return ResultTypes{{operand.dtype, slice.sizes}};
}

Result<ResultTypes> updateTypes(OperandTypes operands)
{
    if (operands.size() < 2)
        return wrongCount("dynamic_update_slice", "at least two operands", operands.size());
    if (auto problem = startProblem("dynamic_update_slice", operands, 2))
        return *std::move(problem);
    const TensorType& operand = operands[0];
    const TensorType& update = operands[1];
    if (operand.dtype != update.dtype)
        return wrongType("dynamic_update_slice",
            fmt::format("the operands' element types differ: {} and {}", typeText(operand), typeText(update)));
    bool fits = operand.shape.size() == update.shape.size();
    for (std::size_t dim = 0; fits && dim < operand.shape.size(); ++dim)
        fits = update.shape[dim] <= operand.shape[dim];
    if (!fits)
        return wrongShape("dynamic_update_slice", fmt::format("{} has no part of {}", typeText(operand), typeText(update)));
    return ResultTypes{operand};
}

/// What is wrong with the dimension numbers of a gather or a scatter; `slices` is the rank of the slices' array.
std::optional<Problem> indexingProblem(
    std::string_view name, const IndexingDims& dims, const TensorType& operand, const TensorType& indices, std::size_t slices)
{
    const std::size_t rank = operand.shape.size();
    const std::size_t indicesRank = indices.shape.size();
    const Dims hidden = together(dims.collapsed, dims.operandBatch);
    if (!isInteger(indices.dtype))
        return wrongType(name, fmt::format("the indices are {}", typeText(indices)));
    if (dims.indexVectorDim > indicesRank)
        return wrongAttribute(name, fmt::format("{} has no dim {} with index vectors", typeText(indices), dims.indexVectorDim));
    if (!areDims(hidden, rank) || !areDims(dims.window, slices) || !std::is_sorted(dims.window.begin(), dims.window.end())
        || !areDims(together(dims.indexMap, dims.operandBatch), rank) || !areDims(dims.indicesBatch, indicesRank)
        || contains(dims.indicesBatch, dims.indexVectorDim) || dims.indicesBatch.size() != dims.operandBatch.size()
        || dims.window.size() + hidden.size() != rank)
        return wrongAttribute(
            name, fmt::format("its dimension numbers do not fit {} and {}", typeText(operand), typeText(indices)));
    const std::int64_t length = dims.indexVectorDim == indicesRank ? 1 : indices.shape[dims.indexVectorDim];
    if (length != static_cast<std::int64_t>(dims.indexMap.size()))
        return wrongAttribute(name, fmt::format("index vectors of {} for {} mapped dimensions", length, dims.indexMap.size()));
    for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
        if (operand.shape[dims.operandBatch[i]] != indices.shape[dims.indicesBatch[i]])
            return wrongShape(name,
                fmt::format("batch dim {} of {} and {} of {} differ", dims.operandBatch[i], typeText(operand),
                    dims.indicesBatch[i], typeText(indices)));
    }
    return std::nullopt;
}

/// The sizes of the slices' array: those of the indices without their vectors, and `window` at the window dimensions.
Shape slicesShape(const IndexingDims& dims, const TensorType& indices, const Shape& window)
{
    const std::size_t rank = dims.window.size() + indices.shape.size() - (dims.indexVectorDim < indices.shape.size() ? 1 : 0);
    Shape shape;
    std::size_t batch = 0;
    std::size_t next = 0;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        if (contains(dims.window, dim)) {
            shape.push_back(next < window.size() ? window[next] : 0);
            ++next;
            continue;
        }
        batch += batch == dims.indexVectorDim ? 1 : 0;
        shape.push_back(batch < indices.shape.size() ? indices.shape[batch] : 0);
        ++batch;
    }
    return shape;
}

Result<ResultTypes> gatherTypes(const GatherAttributes& gather, const TensorType& operand, const TensorType& indices)
{
    const std::size_t indicesRank = indices.shape.size();
    const std::size_t batch = indicesRank - (gather.dims.indexVectorDim < indicesRank ? 1 : 0);
    if (auto problem = indexingProblem("gather", gather.dims, operand, indices, batch + gather.dims.window.size()))
        return *std::move(problem);
    if (gather.sliceSizes.size() != operand.shape.size())
        return wrongAttribute("gather", fmt::format("{} slice sizes for {}", gather.sliceSizes.size(), typeText(operand)));
    Shape window;
    for (std::size_t dim = 0; dim < operand.shape.size(); ++dim) {
        const std::int64_t size = gather.sliceSizes[dim];
        const bool hidden = contains(gather.dims.collapsed, dim) || contains(gather.dims.operandBatch, dim);
        if (size < 0 || size > operand.shape[dim] || (hidden && size > 1))
            return wrongAttribute("gather", fmt::format("dim {} of {} has no slices of {}", dim, typeText(operand), size));
        if (!hidden)
            window.push_back(size);
    }
    return checkedType("gather", {operand.dtype, slicesShape(gather.dims, indices, window)});
}

Result<ResultTypes> scatterTypes(
    const ScatterAttributes& scatter, const TensorType& operand, const TensorType& indices, const TensorType& updates)
{
    if (operand.dtype != updates.dtype)
        return wrongType("scatter",
            fmt::format(
                "the element types of the operand and the updates differ: {} and {}", typeText(operand), typeText(updates)));
    if (auto problem = indexingProblem("scatter", scatter.dims, operand, indices, updates.shape.size()))
        return *std::move(problem);
    Shape window;
    for (std::size_t dim = 0; dim < operand.shape.size(); ++dim) {
        if (!contains(scatter.dims.collapsed, dim) && !contains(scatter.dims.operandBatch, dim))
            window.push_back(operand.shape[dim]);
    }
    Shape given;
    for (std::size_t i = 0; i < scatter.dims.window.size(); ++i)
        given.push_back(updates.shape[scatter.dims.window[i]]);
    bool fits = slicesShape(scatter.dims, indices, given) == updates.shape;
    for (std::size_t i = 0; fits && i < given.size(); ++i)
        fits = given[i] <= window[i];
    if (!fits)
        return wrongShape(
            "scatter", fmt::format("updates of {} do not fit {} at {}", typeText(updates), typeText(operand), typeText(indices)));
    return ResultTypes{operand};
}

} // namespace

Result<ResultTypes> partsTypes(OpKind kind, const OpAttributes& attributes, OperandTypes operands)
{
    switch (kind) {
    case OpKind::Slice:
        return sliceTypes(std::get<SliceAttributes>(attributes), operands[0]);
    case OpKind::Pad:
        return padTypes(std::get<PadAttributes>(attributes), operands[0], operands[1]);
    case OpKind::Concatenate:
        return concatenateTypes(std::get<ConcatenateAttributes>(attributes), operands);
    case OpKind::Reverse: {
        const auto& dims = std::get<ReverseAttributes>(attributes).dims;
        if (!areDims(dims, operands[0].shape.size()))
            return wrongAttribute(
                "reverse", fmt::format("[{}] are not dimensions of {}", fmt::join(dims, ", "), typeText(operands[0])));
        return ResultTypes{operands[0]};
    }
    case OpKind::DynamicSlice:
        return dynamicSliceTypes(std::get<DynamicSliceAttributes>(attributes), operands);
    case OpKind::DynamicUpdateSlice:
        return updateTypes(operands);
    case OpKind::Gather:
        return gatherTypes(std::get<GatherAttributes>(attributes), operands[0], operands[1]);
    default:
        assert(kind == OpKind::Scatter);
        return scatterTypes(std::get<ScatterAttributes>(attributes), operands[0], operands[1], operands[2]);
    }
}

} // namespace meshwright
