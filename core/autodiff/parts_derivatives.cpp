// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/parts_derivatives.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace meshwright {

namespace {

class PartsDerivative {
public:
    PartsDerivative(const DerivativeContext& context, ValueId cotangent)
        : m_context(context)
        , m_op(context.op)
        , m_b(context.backward)
        , m_ct(cotangent)
        , m_result(context.op.operands.size())
    {
    }

    std::vector<ValueId> take() { return std::move(m_result); }

private:
    bool wants(std::size_t operand) const { return m_context.wanted[operand]; }
    ValueId primal(std::size_t operand) { return m_context.primal(m_op.operands[operand]); }
    const TensorType& operandType(std::size_t operand) const { return m_context.forward[m_op.operands[operand]].type; }
    const Shape& resultShape() const { return m_context.forward[m_op.results.front()].type.shape; }
    ValueId zeros(std::size_t operand) { return m_b.splat(operandType(operand), 0.0); }
    ValueId scalarZero() { return m_b.splat({m_b.type(m_ct).dtype, {}}, 0.0); }

    /// The op's operands from `first` on (where a part begins) behind these.
    std::vector<ValueId> withStarts(std::vector<ValueId> operands, std::size_t first)
    {
        for (std::size_t i = first; i < m_op.operands.size(); ++i)
            operands.push_back(primal(i));
        return operands;
    }

public:
    void reverse() { m_result[0] = m_b.add(OpKind::Reverse, {m_ct}, m_op.attributes); }
    void dynamicSlice() { m_result[0] = m_b.add(OpKind::DynamicUpdateSlice, withStarts({zeros(0), m_ct}, 1)); }

    void dynamicUpdateSlice()
    {
        if (wants(0))
            m_result[0] = m_b.add(OpKind::DynamicUpdateSlice, withStarts({m_ct, zeros(1)}, 2));
        if (wants(1))
            m_result[1] = m_b.add(OpKind::DynamicSlice, withStarts({m_ct}, 2), DynamicSliceAttributes{operandType(1).shape});
    }

    /// Zeros before, behind and between the elements of the slice.
    void slice()
    {
        const auto& attributes = m_op.as<SliceAttributes>();
        const Shape& whole = operandType(0).shape;
        PadAttributes pad;
        for (std::size_t dim = 0; dim < whole.size(); ++dim) {
            const std::int64_t taken = resultShape()[dim];
            const std::int64_t reach = taken == 0 ? 0 : (taken - 1) * attributes.strides[dim] + 1;
            pad.low.push_back(attributes.starts[dim]);
            pad.high.push_back(whole[dim] - attributes.starts[dim] - reach);
            pad.interior.push_back(attributes.strides[dim] - 1);
        }
        m_result[0] = m_b.add(OpKind::Pad, {m_ct, scalarZero()}, std::move(pad));
    }

    /// The elements that were the operand's; what is left belongs to the value that was put between them.
    void pad()
    {
        const auto& attributes = m_op.as<PadAttributes>();
        const Shape& shape = operandType(0).shape;
        PadAttributes back; // takes away what was added, and gives zeros for what was taken away
        SliceAttributes steps;
        bool cuts = false;
        bool skips = false;
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            back.low.push_back(-attributes.low[dim]);
            back.high.push_back(-attributes.high[dim]);
            back.interior.push_back(0);
            cuts = cuts || attributes.low[dim] != 0 || attributes.high[dim] != 0;
            const std::int64_t step = attributes.interior[dim] + 1;
            steps.starts.push_back(0);
            steps.limits.push_back(shape[dim] == 0 ? 0 : (shape[dim] - 1) * step + 1);
            steps.strides.push_back(step);
            skips = skips || step != 1;
        }
        ValueId own = cuts ? m_b.add(OpKind::Pad, {m_ct, scalarZero()}, std::move(back)) : m_ct;
        if (skips)
            own = m_b.add(OpKind::Slice, {own}, std::move(steps));
        m_result[0] = own;
        if (!wants(1))
            return;
        const auto sum = [&](ValueId value) {
            std::vector<std::size_t> all(m_b.type(value).shape.size());
            std::iota(all.begin(), all.end(), std::size_t{0});
            return m_b.reduce(ReduceKind::Sum, value, std::move(all));
        };
        m_result[1] = m_b.binary(OpKind::Subtract, sum(m_ct), sum(own));
    }

    void concatenate()
    {
        const std::size_t along = m_op.as<ConcatenateAttributes>().dim;
        std::int64_t start = 0;
        for (std::size_t i = 0; i < m_op.operands.size(); ++i) {
            const std::int64_t size = operandType(i).shape[along];
            if (wants(i)) {
                SliceAttributes part{Shape(resultShape().size(), 0), resultShape(), Shape(resultShape().size(), 1)};
                part.starts[along] = start;
                part.limits[along] = start + size;
                m_result[i] = size == resultShape()[along] ? m_ct : m_b.add(OpKind::Slice, {m_ct}, std::move(part));
            }
            start += size;
        }
    }

    void gather()
    {
        const auto& attributes = m_op.as<GatherAttributes>();
        // A gather moves slices that would reach over an end back inside; a scatter would leave them out.
        const ValueId indices = clamped(attributes.dims, primal(1), operandType(0).shape, attributes.sliceSizes);
        m_result[0] = m_b.add(OpKind::Scatter, {zeros(0), indices, m_ct},
            ScatterAttributes{attributes.dims, ReduceKind::Sum, attributes.sorted, false});
    }

private:
    /// One constant for each entry of an index vector, at every index.
    ValueId spread(const IndexingDims& dims, const TensorType& indices, const std::vector<std::int64_t>& entries)
    {
        const bool same = std::all_of(entries.begin(), entries.end(), [&](std::int64_t each) { return each == entries.front(); });
        const auto scalar = [&](std::int64_t value) {
            return m_b.add(OpKind::Constant, {}, ConstantAttributes{{indices.dtype, {}}, {value}});
        };
        if (same)
            return m_b.broadcastScalar(scalar(entries.empty() ? 0 : entries.front()), indices.shape);
        std::vector<ValueId> each;
        for (const std::int64_t value : entries)
            each.push_back(m_b.broadcastScalar(scalar(value), {1}));
        return m_b.broadcast(
            m_b.add(OpKind::Concatenate, std::move(each), ConcatenateAttributes{0}), indices.shape, {dims.indexVectorDim});
    }

    /// The indices, moved so that slices of these sizes lie inside of the whole.
    ValueId clamped(const IndexingDims& dims, ValueId indices, const Shape& whole, const Shape& sizes)
    {
        std::vector<std::int64_t> last;
        for (const std::size_t dim : dims.indexMap)
            last.push_back(whole[dim] - sizes[dim]);
        const TensorType type = m_b.type(indices);
        return m_b.add(OpKind::Clamp, {spread(dims, type, {0}), indices, spread(dims, type, last)});
    }

    // ---- scatter

    /// The sizes of a scatter's slices, along each dimension of the operand.
    Shape scatteredSizes(const IndexingDims& dims) const
    {
        Shape sizes;
        std::size_t window = 0;
        for (std::size_t dim = 0; dim < operandType(0).shape.size(); ++dim) {
            const auto lacks
                = [dim](const std::vector<std::size_t>& list) { return std::find(list.begin(), list.end(), dim) != list.end(); };
            sizes.push_back(lacks(dims.collapsed) || lacks(dims.operandBatch) ? 1 : operandType(2).shape[dims.window[window++]]);
        }
        return sizes;
    }

    ValueId where(ValueId condition, ValueId value)
    {
        return m_b.select(condition, value, m_b.splat(TensorType(m_b.type(value)), 0.0));
    }

    /// What lies in `whole` where the updates go, and zeros where they go nowhere: a scatter leaves out what lies outside.
    ValueId takenBack(ValueId whole)
    {
        const auto& attributes = m_op.as<ScatterAttributes>();
        const IndexingDims& dims = attributes.dims;
        const Shape sizes = scatteredSizes(dims);
        Shape shape = operandType(0).shape;
        ValueId indices = primal(1);
        if (byteSize(m_b.type(indices).dtype) < byteSize(DType::S32))
            indices = m_b.convert(indices, DType::S32);

        // Room for slices that lie partly outside.
        PadAttributes room{Shape(shape.size(), 0), Shape(shape.size(), 0), Shape(shape.size(), 0)};
        std::vector<std::int64_t> moved;
        for (const std::size_t dim : dims.indexMap) {
            moved.push_back(sizes[dim] - 1);
            room.low[dim] = room.high[dim] = sizes[dim] - 1;
            shape[dim] += 2 * (sizes[dim] - 1);
        }
        if (std::any_of(moved.begin(), moved.end(), [](std::int64_t each) { return each > 0; })) {
            whole = m_b.add(OpKind::Pad, {whole, m_b.splat({m_b.type(whole).dtype, {}}, 0.0)}, std::move(room));
            indices = m_b.binary(OpKind::Add, indices, spread(dims, TensorType(m_b.type(indices)), moved));
        }
        ValueId inside = m_b.compare(CompareDirection::Equal, indices, clamped(dims, indices, shape, sizes));
        if (dims.indexVectorDim < m_b.type(indices).shape.size())
            inside = m_b.reduce(ReduceKind::And, inside, {dims.indexVectorDim});
        std::vector<std::size_t> along;
        for (std::size_t dim = 0; dim < operandType(2).shape.size(); ++dim) {
            if (std::find(dims.window.begin(), dims.window.end(), dim) == dims.window.end())
                along.push_back(dim);
        }
        const ValueId taken = m_b.add(OpKind::Gather, {whole, indices}, GatherAttributes{dims, sizes, attributes.sorted});
        return where(m_b.broadcast(inside, operandType(2).shape, std::move(along)), taken);
    }

public:
    void scatter()
    {
        if (!m_op.as<ScatterAttributes>().combiner)
            return replaced();
        m_result[0] = m_ct;
        if (wants(2))
            m_result[2] = takenBack(m_ct);
    }

private:
    /// Of several updates of one element the last one counts. Who that is, the numbers of the updates tell when they are scattered alike.
    /// Source: jax-ml/jax, jax/_src/lax/slicing.py (`_scatter_jvp`).
    void replaced()
    {
        const TensorType updates = operandType(2);
        const DType dtype = updates.elements() < std::numeric_limits<std::int32_t>::max() ? DType::S32 : DType::S64;
        const auto number = [&](const Shape& shape, double value) { return m_b.splat({dtype, shape}, value); };
        const ValueId counted = m_b.reshape(m_b.iota({dtype, {updates.elements()}}, 0), updates.shape);
        const ValueId numbers = m_b.binary(OpKind::Add, counted, number(updates.shape, 1.0));
        const Shape& shape = operandType(0).shape;
        const ValueId winners = m_b.add(OpKind::Scatter, {number(shape, 0.0), primal(1), numbers}, m_op.as<ScatterAttributes>());
        if (wants(0))
            m_result[0] = where(m_b.compare(CompareDirection::Equal, winners, number(shape, 0.0)), m_ct);
        if (wants(2))
            m_result[2] = where(m_b.compare(CompareDirection::Equal, takenBack(winners), numbers), takenBack(m_ct));
    }

    const DerivativeContext& m_context;
    const Op& m_op;
    Builder& m_b;
    ValueId m_ct;
    std::vector<ValueId> m_result;
};

constexpr std::pair<OpKind, void (PartsDerivative::*)()> kParts[] = {{OpKind::Slice, &PartsDerivative::slice},
    {OpKind::Pad, &PartsDerivative::pad}, {OpKind::Concatenate, &PartsDerivative::concatenate},
    {OpKind::Reverse, &PartsDerivative::reverse}, {OpKind::DynamicSlice, &PartsDerivative::dynamicSlice},
    {OpKind::DynamicUpdateSlice, &PartsDerivative::dynamicUpdateSlice}, {OpKind::Gather, &PartsDerivative::gather},
    {OpKind::Scatter, &PartsDerivative::scatter}};

constexpr auto partsRow(OpKind kind)
{
    return std::find_if(std::begin(kParts), std::end(kParts), [&](const auto& row) { return row.first == kind; });
}
static_assert(std::all_of(kOpTable.begin(), kOpTable.end(),
                  [](const OpInfo& info) { return info.opClass != OpClass::Parts || partsRow(info.kind) != std::end(kParts); }),
    "every kind of parts of arrays has its derivative");

} // namespace

bool hasPartsDerivative(const Op& op)
{
    if (op.kind != OpKind::Scatter)
        return opInfo(op.kind).opClass == OpClass::Parts;
    const auto& combiner = op.as<ScatterAttributes>().combiner;
    return !combiner || combiner == ReduceKind::Sum;
}

std::vector<ValueId> partsCotangents(const DerivativeContext& context, ValueId cotangent)
{
    PartsDerivative derivative(context, cotangent);
    (derivative.*partsRow(context.op.kind)->second)();
    return derivative.take();
}

} // namespace meshwright
