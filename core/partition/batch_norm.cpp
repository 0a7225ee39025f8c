// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/batch_norm.h"

#include "core/program/builder.h"
#include "core/program/other_op.h"
#include "core/program/transform.h"

#include <algorithm>
#include <cstdlib>

namespace meshwright {

namespace {

bool isBatchNorm(const Op& op)
{
    return op.kind == OpKind::BatchNormTraining || op.kind == OpKind::BatchNormInference || op.kind == OpKind::BatchNormGrad;
}

/// Writes what stands for one op to the end of the builder's block.
class Expansion {
public:
    Expansion(Builder& builder, const Op& op)
        : m_builder(builder)
        , m_operands(op.operands)
        , m_type(builder.type(op.operands.front()))
        , m_feature(static_cast<std::size_t>(integerAt(op.as<OtherAttributes>().attributes, "feature_index").value_or(0)))
    {
        const KeptAttribute* epsilon = findAttribute(op.as<OtherAttributes>().attributes, "epsilon");
        m_epsilon = epsilon != nullptr ? std::strtod(epsilon->text.c_str(), nullptr) : 0.0;
        m_wide = byteSize(m_type.dtype) < byteSize(DType::F32) ? DType::F32 : m_type.dtype;
        m_count = 1.0;
        for (std::size_t dim = 0; dim < m_type.shape.size(); ++dim) {
            if (dim == m_feature)
                continue;
            m_others.push_back(dim);
            m_count *= static_cast<double>(m_type.shape[dim]);
        }
    }

    std::vector<ValueId> training()
    {
        const ValueId mean = scaled(sum(operand(0)), 1.0 / m_count);
        const ValueId centered = minus(operand(0), spread(mean));
        const ValueId variance = scaled(sum(times(centered, centered)), 1.0 / m_count);
        const ValueId factor = times(inverseDeviation(variance), operand(1));
        return narrowed({plus(times(centered, spread(factor)), spread(operand(2))), mean, variance});
    }

    std::vector<ValueId> inference()
    {
        const ValueId factor = times(inverseDeviation(operand(4)), operand(1));
        const ValueId centered = minus(operand(0), spread(operand(3)));
        return narrowed({plus(times(centered, spread(factor)), spread(operand(2)))});
    }

    /// Of the operand, the scale and the offset, by operand, scale, mean, variance and the gradient of the result.
    std::vector<ValueId> gradient()
    {
        const ValueId gradient = operand(4);
        const ValueId centered = minus(operand(0), spread(operand(2)));
        const ValueId inverse = inverseDeviation(operand(3));
        const ValueId ofOffset = sum(gradient);
        const ValueId along = sum(times(gradient, centered));
        const ValueId ofScale = times(along, inverse);
        const ValueId drift = scaled(times(along, times(inverse, inverse)), 1.0 / m_count);
        const ValueId level = scaled(ofOffset, 1.0 / m_count);
        const ValueId rest = minus(minus(gradient, spread(level)), times(centered, spread(drift)));
        return narrowed({times(rest, spread(times(operand(1), inverse))), ofScale, ofOffset});
    }

private:
    ValueId operand(std::size_t i) { return m_builder.convert(m_operands[i], m_wide); }
    ValueId plus(ValueId a, ValueId b) { return m_builder.binary(OpKind::Add, a, b); }
    ValueId minus(ValueId a, ValueId b) { return m_builder.binary(OpKind::Subtract, a, b); }
    ValueId times(ValueId a, ValueId b) { return m_builder.binary(OpKind::Multiply, a, b); }
    ValueId sum(ValueId a) { return m_builder.reduce(ReduceKind::Sum, a, m_others); }
    ValueId spread(ValueId feature) { return m_builder.broadcast(feature, m_type.shape, {m_feature}); }

    ValueId constant(ValueId like, double value)
    {
        const Shape shape = m_builder.type(like).shape;
        return m_builder.broadcastScalar(m_builder.splat({m_wide, {}}, value), shape);
    }
    ValueId scaled(ValueId a, double factor) { return times(a, constant(a, factor)); }

    ValueId inverseDeviation(ValueId variance)
    {
        return m_builder.unary(OpKind::Rsqrt, plus(variance, constant(variance, m_epsilon)));
    }

    std::vector<ValueId> narrowed(std::vector<ValueId> results)
    {
        for (ValueId& result : results)
            result = m_builder.convert(result, m_type.dtype);
        return results;
    }

    Builder& m_builder;
    std::vector<ValueId> m_operands;
    TensorType m_type; ///< of the operand
    std::size_t m_feature;
    std::vector<std::size_t> m_others; ///< all other dimensions
    DType m_wide = DType::F32;
    double m_epsilon = 0.0;
    double m_count = 1.0; ///< elements of each feature
};

} // namespace

void expandBatchNorms(Function& function)
{
    Builder builder(function);
    const std::size_t blocks = function.blocks.size();
    for (std::size_t b = 0; b < blocks; ++b) {
        const BlockId block(b);
        const std::vector<OpId> ops = function[block].ops;
        if (std::none_of(ops.begin(), ops.end(), [&](OpId id) { return isBatchNorm(function[id]); }))
            continue;
        function[block].ops.clear();
        builder.setBlock(block);
        for (const OpId id : ops) {
            const Op op = function[id];
            if (!isBatchNorm(op)) {
                function[block].ops.push_back(id);
                continue;
            }
            builder.setPhase(op.phase);
            Expansion expansion(builder, op);
            const std::vector<ValueId> made = op.kind == OpKind::BatchNormTraining ? expansion.training()
                : op.kind == OpKind::BatchNormInference                            ? expansion.inference()
                                                                                   : expansion.gradient();
            for (std::size_t i = 0; i < op.results.size(); ++i) {
                const Value& old = function[op.results[i]];
                Value& value = function[made[i]];
                value.name = old.name;
                value.role = old.role;
                value.sharding = old.sharding;
                value.annotation = old.annotation;
                replaceUses(function, op.results[i], made[i]);
            }
        }
    }
}

} // namespace meshwright
