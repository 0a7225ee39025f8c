// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "core/kernels/products.h"
#include "core/kernels/tile_table.h"
#include "core/kernels/transposition.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace meshwright {

namespace {

using Dims = std::vector<std::size_t>;

Shape stepsOf(const Shape& shape)
{
    Shape steps(shape.size());
    std::int64_t step = 1;
    for (std::size_t dim = shape.size(); dim-- > 0;) {
        steps[dim] = step;
        step *= shape[dim];
    }
    return steps;
}

std::int64_t sizeOf(const Shape& shape, const Dims& dims)
{
    return std::accumulate(
        dims.begin(), dims.end(), std::int64_t{1}, [&](std::int64_t size, std::size_t dim) { return size * shape[dim]; });
}

/// The step between neighbours when `dims`, in this order, are counted as one; nothing when that is not a single step.
std::optional<std::int64_t> commonStep(const Shape& shape, const Dims& dims)
{
    const Shape steps = stepsOf(shape);
    std::optional<std::int64_t> step;
    std::int64_t inner = 1;
    for (std::size_t i = dims.size(); i-- > 0;) {
        if (shape[dims[i]] == 1)
            continue;
        if (!step)
            step = steps[dims[i]];
        else if (steps[dims[i]] != *step * inner)
            return std::nullopt;
        inner *= shape[dims[i]];
    }
    return step.value_or(0); // 0: a single element, any step will do
}

/// One side of the product as a batch of matrices [rows, columns] in memory.
struct Side {
    bool direct = false; ///< read where it lies; else transposed into [batch, rows, columns] first
    std::vector<std::size_t> permutation; ///< that does this
    std::int64_t stride = 0;
    bool transposed = false;
    Shape batchSteps; ///< one for each batch dimension
};

Side sideOf(const Shape& shape, const Dims& batch, const Dims& rows, const Dims& columns)
{
    const std::int64_t rowCount = sizeOf(shape, rows);
    const std::int64_t columnCount = sizeOf(shape, columns);
    const auto rowStep = commonStep(shape, rows);
    const auto columnStep = commonStep(shape, columns);
    const Shape steps = stepsOf(shape);
    Side side;
    for (const std::size_t dim : batch)
        side.batchSteps.push_back(steps[dim]);
    if (rowStep && columnStep) {
        // A stride must be at least the length of what it steps over, even where there is only one row.
        const bool isRowMajor
            = (*columnStep == 1 || columnCount == 1) && (rowCount == 1 || *rowStep >= std::max<std::int64_t>(columnCount, 1));
        const bool isColumnMajor
            = (*rowStep == 1 || rowCount == 1) && (columnCount == 1 || *columnStep >= std::max<std::int64_t>(rowCount, 1));
        if (isRowMajor || isColumnMajor) {
            side.direct = true;
            side.transposed = !isRowMajor;
            side.stride = isRowMajor ? (rowCount == 1 ? columnCount : *rowStep) : (columnCount == 1 ? rowCount : *columnStep);
            side.stride = std::max<std::int64_t>(side.stride, 1);
            return side;
        }
    }
    side.permutation = batch;
    side.permutation.insert(side.permutation.end(), rows.begin(), rows.end());
    side.permutation.insert(side.permutation.end(), columns.begin(), columns.end());
    side.stride = std::max<std::int64_t>(columnCount, 1);
    std::int64_t step = rowCount * columnCount;
    for (std::size_t i = batch.size(); i-- > 0;) {
        side.batchSteps[i] = step;
        step *= shape[batch[i]];
    }
    return side;
}

Dims freeDims(std::size_t rank, const Dims& batch, const Dims& contracting)
{
    Dims dims;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        if (std::find(batch.begin(), batch.end(), dim) == batch.end()
            && std::find(contracting.begin(), contracting.end(), dim) == contracting.end())
            dims.push_back(dim);
    }
    return dims;
}

/// The contracting dimensions of both sides in the order in which `by` has them ascending.
void orderContracting(const Dims& by, Dims& lhs, Dims& rhs)
{
    Dims order(by.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const Dims key = by;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key[a] < key[b]; });
    const Dims oldLhs = lhs;
    const Dims oldRhs = rhs;
    for (std::size_t i = 0; i < order.size(); ++i) {
        lhs[i] = oldLhs[order[i]];
        rhs[i] = oldRhs[order[i]];
    }
}

class DotKernel final : public Kernel {
public:
    DotKernel(const Function& function, const Op& op)
        : m_lhs(op.operands[0])
        , m_rhs(op.operands[1])
        , m_result(op.results[0])
        , m_lhsType(function[m_lhs].type)
        , m_rhsType(function[m_rhs].type)
        , m_resultType(function[m_result].type)
        , m_operandType(op.as<DotAttributes>().operandType)
    {
        const auto& attributes = op.as<DotAttributes>();
        const Dims lhsFree = freeDims(m_lhsType.shape.size(), attributes.lhsBatch, attributes.lhsContracting);
        const Dims rhsFree = freeDims(m_rhsType.shape.size(), attributes.rhsBatch, attributes.rhsContracting);
        Dims lhsContracting = attributes.lhsContracting;
        Dims rhsContracting = attributes.rhsContracting;
        const auto makeSides = [&] {
            m_lhsSide = sideOf(m_lhsType.shape, attributes.lhsBatch, lhsFree, lhsContracting);
            m_rhsSide = sideOf(m_rhsType.shape, attributes.rhsBatch, rhsContracting, rhsFree);
        };
        orderContracting(attributes.lhsContracting, lhsContracting, rhsContracting);
        makeSides();
        if (!m_lhsSide.direct || !m_rhsSide.direct) { // the other side's order may need no copy
            const Dims keptLhs = lhsContracting;
            const Dims keptRhs = rhsContracting;
            const int copies = static_cast<int>(!m_lhsSide.direct) + static_cast<int>(!m_rhsSide.direct);
            orderContracting(rhsContracting, lhsContracting, rhsContracting);
            makeSides();
            if (static_cast<int>(!m_lhsSide.direct) + static_cast<int>(!m_rhsSide.direct) > copies) {
                lhsContracting = keptLhs;
                rhsContracting = keptRhs;
                makeSides();
            }
        }
        for (const std::size_t dim : attributes.lhsBatch)
            m_batch.push_back(m_lhsType.shape[dim]);
        m_m = sizeOf(m_lhsType.shape, lhsFree);
        m_n = sizeOf(m_rhsType.shape, rhsFree);
        m_k = sizeOf(m_lhsType.shape, lhsContracting);
        const Lane resultLane = laneOf(m_resultType.dtype);
        const Lane operandLane = laneOf(m_lhsType.dtype);
        m_lane = resultLane == Lane::F64 || operandLane == Lane::F64 ? Lane::F64
            : resultLane == Lane::F32 || operandLane == Lane::F32    ? Lane::F32
                                                                     : resultLane;
        m_isBfloat16 = m_lane == Lane::F32 && isBfloat16(m_lhsType.dtype) && isBfloat16(m_rhsType.dtype);
    }

    void run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const override
    {
        const bool isDirect = laneType(m_lane) == m_resultType.dtype;
        std::byte* result = isDirect ? addresses[m_result.at()] : scratch.allocate(m_resultType.elements() * laneBytes(m_lane));
        if (m_isBfloat16 && multipliesBfloat16())
            multiplyAll(bfloat16Operand(addresses[m_lhs.at()], m_lhsType, m_lhsSide, scratch, stop),
                bfloat16Operand(addresses[m_rhs.at()], m_rhsType, m_rhsSide, scratch, stop), reinterpret_cast<float*>(result),
                stop);
        else if (m_lane == Lane::F32)
            multiplyPrepared<float>(addresses, result, scratch, stop);
        else if (m_lane == Lane::F64)
            multiplyPrepared<double>(addresses, result, scratch, stop);
        else if (laneBytes(m_lane) == 4)
            multiplyPrepared<std::uint32_t>(addresses, result, scratch, stop);
        else
            multiplyPrepared<std::uint64_t>(addresses, result, scratch, stop);
        if (!isDirect)
            narrowed(addresses[m_result.at()], result, scratch, stop);
        scratch.reset();
    }

private:
    /// True when an operand of this type has bfloat16's values, or is rounded to them, and to no others.
    bool isBfloat16(DType dtype) const
    {
        if (m_operandType == DType::BF16)
            return dtype == DType::BF16 || dtype == DType::F32;
        return dtype == DType::BF16 && !isNarrow(m_operandType);
    }

    /// One step over all elements, which may be many, in stretches between which it can be stopped.
    static void pass(TileStep step, std::byte* out, std::int64_t outBytes, const std::byte* in, std::int64_t inBytes,
        std::int64_t count, const StopFlag& stop)
    {
        constexpr std::int64_t kStretch = std::int64_t{1} << 20;
        for (std::int64_t first = 0; first < count && !stop.isSet(); first += kStretch)
            step(out + first * outBytes, in + first * inBytes, nullptr, nullptr, std::min(kStretch, count - first));
    }

    /// The operand as elements of the lane, rounded to the operand type, in an order that the product takes.
    const std::byte* prepared(
        const std::byte* data, const TensorType& type, const Side& side, Scratch& scratch, const StopFlag& stop) const
    {
        const TileTable& table = tileTable();
        const std::int64_t count = type.elements();
        if (isNarrow(type.dtype)) {
            std::byte* wide = scratch.allocate(count * 4);
            pass(table.load(type.dtype), wide, 4, data, byteSize(type.dtype), count, stop);
            data = wide;
        }
        const bool rounds
            = isNarrow(m_operandType) && isFloating(m_operandType) && m_operandType != type.dtype && isFloating(type.dtype);
        if (rounds) {
            const std::byte* single = data;
            if (laneOf(type.dtype) == Lane::F64) {
                std::byte* copy = scratch.allocate(count * 4);
                pass(table.convert(Lane::F64, DType::F32), copy, 4, data, 8, count, stop);
                single = copy;
            }
            std::byte* narrow = scratch.allocate(count * 2);
            pass(table.store(m_operandType), narrow, 2, single, 4, count, stop);
            std::byte* rounded = scratch.allocate(count * 4);
            pass(table.load(m_operandType), rounded, 4, narrow, 2, count, stop);
            data = rounded;
        }
        const Lane lane = rounds ? Lane::F32 : laneOf(type.dtype);
        if (lane != m_lane) {
            std::byte* converted = scratch.allocate(count * laneBytes(m_lane));
            pass(table.convert(lane, laneType(m_lane)), converted, laneBytes(m_lane), data, laneBytes(lane), count, stop);
            data = converted;
        }
        return ordered(data, type, side, laneBytes(m_lane), scratch, stop);
    }

    /// The elements in an order that the product takes.
    static const std::byte* ordered(const std::byte* data, const TensorType& type, const Side& side, std::int64_t elementBytes,
        Scratch& scratch, const StopFlag& stop)
    {
        if (side.direct)
            return data;
        std::byte* moved = scratch.allocate(type.elements() * elementBytes);
        transposeArray(moved, data, type.shape, side.permutation, elementBytes, stop);
        return moved;
    }

    /// The operand as it is stored, for products that round it.
    static Bfloat16Operand bfloat16Operand(
        const std::byte* data, const TensorType& type, const Side& side, Scratch& scratch, const StopFlag& stop)
    {
        data = ordered(data, type, side, byteSize(type.dtype), scratch, stop);
        if (type.dtype == DType::BF16)
            return Bfloat16Operand(
                MatrixView<const std::uint16_t>{reinterpret_cast<const std::uint16_t*>(data), side.stride, side.transposed});
        return Bfloat16Operand(MatrixView<const float>{reinterpret_cast<const float*>(data), side.stride, side.transposed});
    }

    void narrowed(std::byte* target, const std::byte* source, Scratch& scratch, const StopFlag& stop) const
    {
        const std::int64_t count = m_resultType.elements();
        const Lane resultLane = laneOf(m_resultType.dtype);
        if (resultLane != m_lane) {
            std::byte* converted = isNarrow(m_resultType.dtype) ? scratch.allocate(count * laneBytes(resultLane)) : target;
            pass(tileTable().convert(m_lane, m_resultType.dtype), converted, laneBytes(resultLane), source, laneBytes(m_lane),
                count, stop);
            source = converted;
        }
        if (isNarrow(m_resultType.dtype))
            pass(tileTable().store(m_resultType.dtype), target, byteSize(m_resultType.dtype), source, laneBytes(resultLane),
                count, stop);
    }

    template <typename T>
    void multiplyPrepared(Addresses addresses, std::byte* result, Scratch& scratch, const StopFlag& stop) const
    {
        const auto view = [&](ValueId value, const TensorType& type, const Side& side) {
            const std::byte* data = prepared(addresses[value.at()], type, side, scratch, stop);
            return MatrixView<const T>{reinterpret_cast<const T*>(data), side.stride, side.transposed};
        };
        const auto lhs = view(m_lhs, m_lhsType, m_lhsSide);
        const auto rhs = view(m_rhs, m_rhsType, m_rhsSide);
        multiplyAll(lhs, rhs, reinterpret_cast<T*>(result), stop);
    }

    /// The products of the whole batch.
    template <typename Operand, typename T>
    void multiplyAll(Operand lhs, Operand rhs, T* result, const StopFlag& stop) const
    {
        std::int64_t batches = 1;
        for (const std::int64_t size : m_batch)
            batches *= size;
        for (std::int64_t batch = 0; batch < batches && !stop.isSet(); ++batch) {
            std::int64_t lhsAt = 0;
            std::int64_t rhsAt = 0;
            std::int64_t rest = batch;
            for (std::size_t dim = m_batch.size(); dim-- > 0; rest /= m_batch[dim]) {
                lhsAt += rest % m_batch[dim] * m_lhsSide.batchSteps[dim];
                rhsAt += rest % m_batch[dim] * m_rhsSide.batchSteps[dim];
            }
            multiply(m_m, m_n, m_k, shifted(lhs, lhsAt), shifted(rhs, rhsAt),
                MatrixView<T>{result + batch * m_m * m_n, std::max<std::int64_t>(m_n, 1), false}, {&stop});
        }
    }

    ValueId m_lhs;
    ValueId m_rhs;
    ValueId m_result;
    TensorType m_lhsType;
    TensorType m_rhsType;
    TensorType m_resultType;
    DType m_operandType;
    Side m_lhsSide;
    Side m_rhsSide;
    Shape m_batch;
    std::int64_t m_m = 0;
    std::int64_t m_n = 0;
    std::int64_t m_k = 0;
    Lane m_lane = Lane::F32;
    bool m_isBfloat16 = false; ///< both operands have bfloat16's values, once rounded
};

} // namespace

std::unique_ptr<const Kernel> makeDotKernel(const Function& function, OpId op)
{
    return std::make_unique<DotKernel>(function, function[op]);
}

} // namespace meshwright
