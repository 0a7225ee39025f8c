// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/fft_derivative.h"

#include "core/program/other_op.h"

#include <algorithm>
#include <string>

namespace meshwright {

namespace {

/// Writes transforms beside one of the forward function, over the same dimensions.
class Transforms {
public:
    explicit Transforms(const DerivativeContext& context)
        : m_context(context)
        , m_builder(context.backward)
        , m_attributes(context.op.as<OtherAttributes>().attributes)
        , m_type(wordAt(m_attributes, "fft_type"))
    {
        const auto lengths = integersAt(m_attributes, "fft_length");
        m_lengths.assign(lengths.begin(), lengths.end());
    }

    std::vector<ValueId> run()
    {
        const double points = pointCount();
        if (m_type == "FFT")
            return scaled(transformed("IFFT", {cotangent(0), cotangent(1)}, operandShape(), 2), points);
        if (m_type == "IFFT")
            return scaled(transformed("FFT", {cotangent(0), cotangent(1)}, operandShape(), 2), 1.0 / points);
        if (m_type == "RFFT") // what was left out has no cotangent
            return scaled(
                {transformed("IFFT", {widened(cotangent(0)), widened(cotangent(1))}, operandShape(), 2).front()}, points);
        // Each number that stands for itself and for the conjugate that was left out counts twice.
        std::vector<ValueId> made = transformed("RFFT", {cotangent(0)}, operandShape(), 2);
        const ValueId weights = timesCounted(made.front(), points);
        for (ValueId& part : made)
            part = m_builder.binary(OpKind::Multiply, part, weights);
        return made;
    }

private:
    const Shape& operandShape() const { return m_context.forward[m_context.op.operands.front()].type.shape; }

    double pointCount() const
    {
        double points = 1.0;
        for (const std::int64_t length : m_lengths)
            points *= static_cast<double>(length);
        return points;
    }

    ValueId cotangent(std::size_t result)
    {
        const ValueId given = m_context.cotangents[result];
        return given.valid() ? given : m_builder.splat(TensorType(m_context.forward[m_context.op.results[result]].type), 0.0);
    }

    std::vector<ValueId> transformed(
        const std::string& type, std::vector<ValueId> operands, const Shape& shape, std::size_t parts)
    {
        OtherAttributes attributes{m_context.op.as<OtherAttributes>().name, m_attributes, {}, 0};
        KeptAttribute& word = *std::ranges::find(attributes.attributes, "fft_type", &KeptAttribute::name);
        word.text.replace(word.text.find(m_type), m_type.size(), type);
        const DType dtype = m_builder.type(operands.front()).dtype;
        attributes.results.assign(parts, {dtype, shape});
        return m_builder.addMany(OpKind::Other, std::move(operands), std::move(attributes));
    }

    std::vector<ValueId> scaled(std::vector<ValueId> parts, double by)
    {
        for (ValueId& part : parts)
            part = m_builder.binary(OpKind::Multiply, part, m_builder.splat(TensorType(m_builder.type(part)), by));
        return parts;
    }

    /// With zeros for the numbers that a transform of real ones leaves out.
    ValueId widened(ValueId half)
    {
        const TensorType type = m_builder.type(half);
        Shape none(type.shape.size(), 0);
        Shape high = none;
        high.back() = m_lengths.back() - type.shape.back();
        return m_builder.add(OpKind::Pad, {half, m_builder.splat({type.dtype, {}}, 0.0)}, PadAttributes{none, high, none});
    }

    /// 1 or 2 over `points`: how often each number of a half counts.
    ValueId timesCounted(ValueId half, double points)
    {
        const TensorType type = m_builder.type(half);
        const TensorType places{DType::S32, type.shape};
        const ValueId place = m_builder.iota(places, type.shape.size() - 1);
        const auto isAt = [&](std::int64_t index) {
            return m_builder.compare(CompareDirection::Equal, place, m_builder.splat(places, static_cast<double>(index)));
        };
        ValueId isAlone = isAt(0);
        if (m_lengths.back() % 2 == 0)
            isAlone = m_builder.binary(OpKind::Or, isAlone, isAt(m_lengths.back() / 2));
        return m_builder.select(isAlone, m_builder.splat(type, 1.0 / points), m_builder.splat(type, 2.0 / points));
    }

    const DerivativeContext& m_context;
    Builder& m_builder;
    KeptAttributes m_attributes;
    std::vector<std::int64_t> m_lengths;
    std::string m_type;
};

} // namespace

std::vector<ValueId> fftCotangents(const DerivativeContext& context)
{
    return Transforms(context).run();
}

} // namespace meshwright
