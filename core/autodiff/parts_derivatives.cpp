// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/parts_derivatives.h"

#include <algorithm>
#include <cstring>
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

    std::vector<ValueId> run()
    {
        switch (m_op.kind) {
        case OpKind::Slice:
            slice();
            break;
        case OpKind::Pad:
            pad();
            break;
        case OpKind::Concatenate:
            concatenate();
            break;
        case OpKind::Reverse:
            m_result[0] = m_b.add(OpKind::Reverse, {m_ct}, m_op.attributes);
            break;
        case OpKind::DynamicSlice:
            m_result[0] = m_b.add(OpKind::DynamicUpdateSlice, withStarts({zeros(0), m_ct}, 1));
            break;
        case OpKind::DynamicUpdateSlice:
            if (wants(0))
                m_result[0] = m_b.add(OpKind::DynamicUpdateSlice, withStarts({m_ct, zeros(1)}, 2));
            if (wants(1))
                m_result[1] = m_b.add(OpKind::DynamicSlice, withStarts({m_ct}, 2), DynamicSliceAttributes{operandType(1).shape});
            break;
        case OpKind::Gather:
            gather();
            break;
        default:
            assert(!"no derivative");
        }
        return m_result;
    }

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
        m_result[0] = m_b.add(OpKind::Scatter, {zeros(0), clampedIndices(attributes), m_ct},
            ScatterAttributes{attributes.dims, ReduceKind::Sum, attributes.sorted, false});
    }

    /// A gather moves slices that would reach over an end back inside; a scatter would leave them out.
    ValueId clampedIndices(const GatherAttributes& gather)
    {
        const ValueId indices = primal(1);
        const TensorType type = m_b.type(indices);
        std::vector<std::int64_t> last;
        for (const std::size_t dim : gather.dims.indexMap)
            last.push_back(operandType(0).shape[dim] - gather.sliceSizes[dim]);
        const bool same = std::all_of(last.begin(), last.end(), [&](std::int64_t each) { return each == last.front(); });
        const auto limit = [&](std::int64_t value) {
            return m_b.add(OpKind::Constant, {}, ConstantAttributes{{type.dtype, {}}, {value}});
        };
        ValueId limits;
        if (same) {
            limits = m_b.broadcastScalar(limit(last.empty() ? 0 : last.front()), type.shape);
        } else { // one for each entry of an index vector
            std::vector<ValueId> each;
            for (const std::int64_t value : last)
                each.push_back(m_b.broadcastScalar(limit(value), {1}));
            limits = m_b.broadcast(m_b.add(OpKind::Concatenate, std::move(each), ConcatenateAttributes{0}), type.shape,
                {gather.dims.indexVectorDim});
        }
        return m_b.add(OpKind::Clamp, {m_b.broadcastScalar(limit(0), type.shape), indices, limits});
    }

    const DerivativeContext& m_context;
    const Op& m_op;
    Builder& m_b;
    ValueId m_ct;
    std::vector<ValueId> m_result;
};

} // namespace

bool hasPartsDerivative(OpKind kind)
{
    return opInfo(kind).opClass == OpClass::Parts && kind != OpKind::Scatter;
}

std::vector<ValueId> partsCotangents(const DerivativeContext& context, ValueId cotangent)
{
    return PartsDerivative(context, cotangent).run();
}

} // namespace meshwright
