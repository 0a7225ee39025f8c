// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "core/kernels/strides.h"
#include "core/kernels/tile_table.h"
#include "core/program/transform.h"

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

/// Calls `visit` with the offsets of every row (along the last dimension) of a box, in two arrays that are walked with their own steps.
template <typename Visit>
void forEachRow(const Shape& box, std::int64_t a, const Shape& stepsA, std::int64_t b, const Shape& stepsB, const Visit& visit)
{
    if (std::find(box.begin(), box.end(), 0) != box.end())
        return;
    const std::size_t outer = box.empty() ? 0 : box.size() - 1;
    Shape index(outer, 0);
    for (;;) {
        visit(a, b);
        std::size_t dim = outer;
        for (; dim > 0; --dim) {
            a += stepsA[dim - 1];
            b += stepsB[dim - 1];
            if (++index[dim - 1] < box[dim - 1])
                break;
            a -= box[dim - 1] * stepsA[dim - 1];
            b -= box[dim - 1] * stepsB[dim - 1];
            index[dim - 1] = 0;
        }
        if (dim == 0)
            return;
    }
}

void copyElement(std::byte* to, const std::byte* from, std::int64_t width)
{
    switch (width) {
    case 1:
        *to = *from;
        return;
    case 4:
        std::memcpy(to, from, 4);
        return;
    default:
        std::memcpy(to, from, static_cast<std::size_t>(width));
    }
}

/// A box of elements, taken from one array and put into another, each with offsets and steps counted in elements.
struct BoxCopy {
    Shape box;
    std::int64_t from = 0;
    Shape fromSteps;
    std::int64_t to = 0;
    Shape toSteps;

    void run(std::byte* target, const std::byte* source, std::int64_t width, const StopFlag& stop, std::int64_t moreFrom = 0,
        std::int64_t moreTo = 0) const
    {
        const std::int64_t row = box.empty() ? 1 : box.back();
        const std::int64_t fromStep = box.empty() ? 1 : fromSteps.back();
        const std::int64_t toStep = box.empty() ? 1 : toSteps.back();
        forEachRow(box, from + moreFrom, fromSteps, to + moreTo, toSteps, [&](std::int64_t a, std::int64_t b) {
            if (stop.isSet())
                return;
            if (fromStep == 1 && toStep == 1) {
                std::memcpy(target + b * width, source + a * width, static_cast<std::size_t>(row * width));
                return;
            }
            for (std::int64_t i = 0; i < row; ++i)
                copyElement(target + (b + i * toStep) * width, source + (a + i * fromStep) * width, width);
        });
    }
};

Shape scaled(Shape strides, const Shape& by)
{
    for (std::size_t dim = 0; dim < strides.size(); ++dim)
        strides[dim] *= by[dim];
    return strides;
}

std::int64_t inner(const Shape& a, const Shape& b)
{
    std::int64_t sum = 0;
    for (std::size_t dim = 0; dim < a.size(); ++dim)
        sum += a[dim] * b[dim];
    return sum;
}

BoxCopy sliceCopy(const SliceAttributes& slice, const Shape& from, const Shape& to)
{
    const Shape strides = stridesOf(from);
    return {to, inner(slice.starts, strides), scaled(strides, slice.strides), 0, stridesOf(to)};
}

BoxCopy reverseCopy(const std::vector<std::size_t>& dims, const Shape& shape)
{
    const Shape strides = stridesOf(shape);
    BoxCopy copy{shape, 0, strides, 0, strides};
    for (const std::size_t dim : dims) {
        copy.from += (shape[dim] - 1) * strides[dim];
        copy.fromSteps[dim] = -strides[dim];
    }
    return copy;
}

/// The elements that padding leaves, with their places.
BoxCopy padCopy(const PadAttributes& pad, const Shape& from, const Shape& to)
{
    const Shape fromStrides = stridesOf(from);
    const Shape toStrides = stridesOf(to);
    BoxCopy copy{from, 0, fromStrides, 0, toStrides};
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        const std::int64_t step = pad.interior[dim] + 1;
        const std::int64_t first = pad.low[dim] < 0 ? (-pad.low[dim] + step - 1) / step : 0;
        const std::int64_t last = to[dim] - 1 - pad.low[dim]; // the place, from the first element's, that nothing may be beyond
        const std::int64_t count = last < 0 ? 0 : std::min(from[dim], last / step + 1);
        copy.box[dim] = std::max<std::int64_t>(count - first, 0);
        copy.from += first * fromStrides[dim];
        copy.to += (pad.low[dim] + first * step) * toStrides[dim];
        copy.toSteps[dim] = toStrides[dim] * step;
    }
    return copy;
}

/// Slice, Reverse, Concatenate, Pad: boxes whose places are known.
class BoxKernel final : public Kernel {
public:
    BoxKernel(const Function& function, const Op& op)
        : m_result(op.results[0])
        , m_width(byteSize(function[m_result].type.dtype))
    {
        const Shape& to = function[m_result].type.shape;
        const Shape& from = function[op.operands[0]].type.shape;
        switch (op.kind) {
        case OpKind::Slice:
            add(op.operands[0], sliceCopy(op.as<SliceAttributes>(), from, to));
            break;
        case OpKind::Reverse:
            add(op.operands[0], reverseCopy(op.as<ReverseAttributes>().dims, to));
            break;
        case OpKind::Pad:
            m_fill = op.operands[1];
            m_count = function[m_result].type.elements();
            add(op.operands[0], padCopy(op.as<PadAttributes>(), from, to));
            break;
        default: {
            const std::size_t along = op.as<ConcatenateAttributes>().dim;
            const Shape strides = stridesOf(to);
            std::int64_t start = 0;
            for (const ValueId operand : op.operands) {
                const Shape& shape = function[operand].type.shape;
                add(operand, {shape, 0, stridesOf(shape), start * strides[along], strides});
                start += shape[along];
            }
        }
        }
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        std::byte* target = addresses[m_result.at()];
        for (std::int64_t i = 0; i < m_count; ++i)
            copyElement(target + i * m_width, addresses[m_fill.at()], m_width);
        for (const auto& [source, copy] : m_copies)
            copy.run(target, addresses[source.at()], m_width, stop);
    }

private:
    void add(ValueId source, BoxCopy copy) { m_copies.emplace_back(source, std::move(copy)); }

    ValueId m_result;
    std::int64_t m_width;
    ValueId m_fill; ///< Pad: the value, at all `m_count` elements first
    std::int64_t m_count = 0;
    std::vector<std::pair<ValueId, BoxCopy>> m_copies;
};

std::int64_t readIndex(DType dtype, const std::byte* at)
{
    std::uint64_t bits = 0;
    const auto size = static_cast<std::size_t>(byteSize(dtype));
    std::memcpy(&bits, at, size); // little-endian
    const auto unused = static_cast<unsigned>(64 - 8 * size);
    return isUnsigned(dtype) ? static_cast<std::int64_t>(bits) : static_cast<std::int64_t>(bits << unused) >> unused;
}

/// DynamicSlice and DynamicUpdateSlice: the place is read when they run, and moved inside the array.
class DynamicKernel final : public Kernel {
public:
    DynamicKernel(const Function& function, const Op& op)
        : m_op(op)
        , m_isUpdate(op.kind == OpKind::DynamicUpdateSlice)
        , m_type(function[op.operands[0]].type)
        , m_strides(stridesOf(m_type.shape))
    {
        const Shape& part = function[m_isUpdate ? op.operands[1] : op.results[0]].type.shape;
        m_copy = {part, 0, m_isUpdate ? stridesOf(part) : m_strides, 0, m_isUpdate ? m_strides : stridesOf(part)};
        const std::size_t first = m_isUpdate ? 2 : 1;
        for (std::size_t dim = 0; dim < part.size(); ++dim)
            m_starts.push_back(
                {op.operands[first + dim], function[op.operands[first + dim]].type.dtype, m_type.shape[dim] - part[dim]});
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        std::int64_t offset = 0;
        for (std::size_t dim = 0; dim < m_starts.size(); ++dim)
            offset += std::clamp<std::int64_t>(
                          readIndex(m_starts[dim].dtype, addresses[m_starts[dim].value.at()]), 0, m_starts[dim].most)
                * m_strides[dim];
        std::byte* result = addresses[m_op.results[0].at()];
        const std::byte* operand = addresses[m_op.operands[0].at()];
        const std::int64_t width = byteSize(m_type.dtype);
        if (!m_isUpdate)
            return m_copy.run(result, operand, width, stop, offset, 0);
        if (result != operand && m_type.bytes() > 0)
            std::memcpy(result, operand, static_cast<std::size_t>(m_type.bytes()));
        m_copy.run(result, addresses[m_op.operands[1].at()], width, stop, 0, offset);
    }

private:
    struct Start {
        ValueId value;
        DType dtype = DType::S32;
        std::int64_t most = 0;
    };

    Op m_op;
    bool m_isUpdate;
    TensorType m_type;
    Shape m_strides;
    BoxCopy m_copy;
    std::vector<Start> m_starts;
};

/// Where the slices of a gather or a scatter lie: one for each index vector.
class IndexedSlices {
public:
    IndexedSlices(const IndexingDims& dims, const Shape& operand, const TensorType& indices, const Shape& slices)
        : m_operand(operand)
        , m_operandStrides(stridesOf(operand))
        , m_indicesType(indices)
        , m_indexMap(dims.indexMap)
    {
        const auto has = [](const std::vector<std::size_t>& list, std::size_t dim) {
            return std::find(list.begin(), list.end(), dim) != list.end();
        };
        const Shape indicesStrides = stridesOf(indices.shape);
        const Shape slicesStrides = stridesOf(slices);
        m_vectorStep = dims.indexVectorDim < indices.shape.size() ? indicesStrides[dims.indexVectorDim] : 0;
        std::size_t indicesDim = 0;
        std::size_t operandDim = 0;
        for (std::size_t dim = 0; dim < slices.size(); ++dim) {
            if (!has(dims.window, dim)) {
                indicesDim += indicesDim == dims.indexVectorDim ? 1 : 0;
                const auto batch = std::find(dims.indicesBatch.begin(), dims.indicesBatch.end(), indicesDim);
                batches.push_back(slices[dim]);
                m_batchIndices.push_back(indicesStrides[indicesDim]);
                m_batchSlices.push_back(slicesStrides[dim]);
                m_batchOperand.push_back(batch == dims.indicesBatch.end()
                        ? m_operand.size()
                        : dims.operandBatch[static_cast<std::size_t>(batch - dims.indicesBatch.begin())]);
                ++indicesDim;
                continue;
            }
            while (has(dims.collapsed, operandDim) || has(dims.operandBatch, operandDim))
                ++operandDim;
            window.push_back(slices[dim]);
            windowOperand.push_back(operandDim++);
            windowSlices.push_back(slicesStrides[dim]);
        }
    }

    Shape batches; ///< sizes of the slices' dimensions that run along the indices
    Shape window; ///< sizes of the others ..
    std::vector<std::size_t> windowOperand; ///< .. the operand's dimensions they run along ..
    Shape windowSlices; ///< .. and their strides in the slices' array

    /// Calls `visit` with the start of each slice in the operand (before it is moved inside) and the offset of its first element in the
    /// slices' array.
    template <typename Visit>
    void forEach(const std::byte* indices, const Visit& visit) const
    {
        const std::int64_t count = elementCount(batches);
        const std::int64_t width = byteSize(m_indicesType.dtype);
        Shape start(m_operand.size(), 0);
        for (std::int64_t flat = 0; flat < count; ++flat) {
            std::int64_t rest = flat;
            std::int64_t indexOffset = 0;
            std::int64_t sliceOffset = 0;
            std::fill(start.begin(), start.end(), 0);
            for (std::size_t dim = batches.size(); dim-- > 0;) {
                const std::int64_t at = rest % batches[dim];
                rest /= batches[dim];
                indexOffset += at * m_batchIndices[dim];
                sliceOffset += at * m_batchSlices[dim];
                if (m_batchOperand[dim] < m_operand.size())
                    start[m_batchOperand[dim]] = at;
            }
            for (std::size_t i = 0; i < m_indexMap.size(); ++i)
                start[m_indexMap[i]] = readIndex(
                    m_indicesType.dtype, indices + (indexOffset + static_cast<std::int64_t>(i) * m_vectorStep) * width);
            visit(start, sliceOffset);
        }
    }

    const Shape& operandStrides() const { return m_operandStrides; }

private:
    Shape m_operand;
    Shape m_operandStrides;
    TensorType m_indicesType;
    std::vector<std::size_t> m_indexMap;
    std::int64_t m_vectorStep = 0;
    Shape m_batchIndices;
    Shape m_batchSlices;
    std::vector<std::size_t> m_batchOperand; ///< the operand's rank: none
};

class GatherKernel final : public Kernel {
public:
    GatherKernel(const Function& function, const Op& op)
        : m_op(op)
        , m_shape(function[op.operands[0]].type.shape)
        , m_sizes(op.as<GatherAttributes>().sliceSizes)
        , m_width(byteSize(function[op.operands[0]].type.dtype))
        , m_slices(op.as<GatherAttributes>().dims, m_shape, function[op.operands[1]].type, function[op.results[0]].type.shape)
    {
        Shape steps;
        for (const std::size_t dim : m_slices.windowOperand)
            steps.push_back(m_slices.operandStrides()[dim]);
        m_copy = {m_slices.window, 0, std::move(steps), 0, m_slices.windowSlices};
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const std::byte* operand = addresses[m_op.operands[0].at()];
        std::byte* result = addresses[m_op.results[0].at()];
        m_slices.forEach(addresses[m_op.operands[1].at()], [&](const Shape& start, std::int64_t to) {
            std::int64_t from = 0;
            for (std::size_t dim = 0; dim < start.size(); ++dim)
                from += std::clamp<std::int64_t>(start[dim], 0, m_shape[dim] - m_sizes[dim]) * m_slices.operandStrides()[dim];
            m_copy.run(result, operand, m_width, stop, from, to);
        });
    }

private:
    Op m_op;
    Shape m_shape;
    Shape m_sizes;
    std::int64_t m_width;
    IndexedSlices m_slices;
    BoxCopy m_copy;
};

/// Updates in the order of their indices; what would lie outside of the operand is left out. Narrow types are combined wide, and rounded
/// once.
class ScatterKernel final : public Kernel {
public:
    ScatterKernel(const Function& function, const Op& op)
        : m_op(op)
        , m_type(function[op.operands[0]].type)
        , m_updates(function[op.operands[2]].type.elements())
        , m_combiner(op.as<ScatterAttributes>().combiner)
        , m_slices(
              op.as<ScatterAttributes>().dims, m_type.shape, function[op.operands[1]].type, function[op.operands[2]].type.shape)
    {
        for (const std::size_t dim : m_slices.windowOperand)
            m_steps.push_back(m_slices.operandStrides()[dim]);
    }

    void run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const override
    {
        std::byte* result = addresses[m_op.results[0].at()];
        const std::byte* operand = addresses[m_op.operands[0].at()];
        const std::byte* updates = addresses[m_op.operands[2].at()];
        const std::int64_t elements = m_type.elements();
        const bool widens = m_combiner && isNarrow(m_type.dtype);
        const std::int64_t width = widens ? laneBytes(laneOf(m_type.dtype)) : byteSize(m_type.dtype);
        std::byte* target = result;
        if (widens) {
            target = scratch.allocate(elements * width);
            std::byte* wide = scratch.allocate(m_updates * width);
            tileTable().load(m_type.dtype)(target, operand, nullptr, nullptr, elements);
            tileTable().load(m_type.dtype)(wide, updates, nullptr, nullptr, m_updates);
            updates = wide;
        } else if (result != operand && elements > 0) {
            std::memcpy(result, operand, static_cast<std::size_t>(m_type.bytes()));
        }
        const TileStep combine = m_combiner ? tileTable().combine(*m_combiner, laneOf(m_type.dtype)) : nullptr;
        m_slices.forEach(addresses[m_op.operands[1].at()],
            [&](const Shape& start, std::int64_t from) { addSlice(target, updates, start, from, width, combine, stop); });
        if (widens)
            tileTable().store(m_type.dtype)(result, target, nullptr, nullptr, elements);
        scratch.reset();
    }

private:
    void addSlice(std::byte* target, const std::byte* updates, const Shape& start, std::int64_t from, std::int64_t width,
        TileStep combine, const StopFlag& stop) const
    {
        // The part of the window that lies inside.
        Shape box = m_slices.window;
        std::int64_t to = 0;
        for (std::size_t dim = 0; dim < start.size(); ++dim) {
            const auto at = std::find(m_slices.windowOperand.begin(), m_slices.windowOperand.end(), dim);
            if (at == m_slices.windowOperand.end()) {
                if (start[dim] < 0 || start[dim] >= m_type.shape[dim])
                    return;
                to += start[dim] * m_slices.operandStrides()[dim];
                continue;
            }
            const auto i = static_cast<std::size_t>(at - m_slices.windowOperand.begin());
            const std::int64_t begin = std::clamp<std::int64_t>(start[dim], 0, m_type.shape[dim]);
            const std::int64_t skipped
                = start[dim] < 0 ? std::min(-(start[dim] + 1), box[i]) + (-(start[dim] + 1) < box[i] ? 1 : 0) : 0;
            box[i] = std::max<std::int64_t>(std::min(box[i] - skipped, m_type.shape[dim] - begin), 0);
            from += skipped * m_slices.windowSlices[i];
            to += begin * m_slices.operandStrides()[dim];
        }
        const BoxCopy copy{box, from, m_slices.windowSlices, to, m_steps};
        if (combine == nullptr)
            return copy.run(target, updates, width, stop);
        const std::int64_t row = box.empty() ? 1 : box.back();
        const std::int64_t fromStep = box.empty() ? 1 : m_slices.windowSlices.back();
        const std::int64_t toStep = box.empty() ? 1 : m_steps.back();
        forEachRow(box, from, m_slices.windowSlices, to, m_steps, [&](std::int64_t a, std::int64_t b) {
            if (stop.isSet())
                return;
            const bool isRun = fromStep == 1 && toStep == 1;
            for (std::int64_t i = 0; i < (isRun ? 1 : row); ++i) {
                std::byte* out = target + (b + i * toStep) * width;
                combine(out, out, updates + (a + i * fromStep) * width, nullptr, isRun ? row : 1);
            }
        });
    }

    Op m_op;
    TensorType m_type;
    std::int64_t m_updates;
    std::optional<ReduceKind> m_combiner;
    IndexedSlices m_slices;
    Shape m_steps;
};

/// Each operand becomes its result.
class BarrierKernel final : public Kernel {
public:
    BarrierKernel(const Function& function, const Op& op)
    {
        const std::vector<std::size_t> uses = useCounts(function);
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (uses[op.results[i].at()] > 0) // what nobody reads has no place
                m_pairs.push_back({op.operands[i], op.results[i], function[op.results[i]].type.bytes()});
        }
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        for (const Pair& pair : m_pairs) {
            if (pair.bytes > 0 && !stop.isSet())
                std::memmove(addresses[pair.to.at()], addresses[pair.from.at()], static_cast<std::size_t>(pair.bytes));
        }
    }

private:
    struct Pair {
        ValueId from;
        ValueId to;
        std::int64_t bytes = 0;
    };
    std::vector<Pair> m_pairs;
};

} // namespace

std::unique_ptr<const Kernel> makePartsKernel(const Function& function, OpId id)
{
    const Op& op = function[id];
    switch (op.kind) {
    case OpKind::Gather:
        return std::make_unique<GatherKernel>(function, op);
    case OpKind::Scatter:
        return std::make_unique<ScatterKernel>(function, op);
    case OpKind::DynamicSlice:
    case OpKind::DynamicUpdateSlice:
        return std::make_unique<DynamicKernel>(function, op);
    case OpKind::OptimizationBarrier:
        return std::make_unique<BarrierKernel>(function, op);
    default:
        return std::make_unique<BoxKernel>(function, op);
    }
}

} // namespace meshwright
