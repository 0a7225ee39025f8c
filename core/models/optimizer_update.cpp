// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/optimizer_update.h"

#include <algorithm>
#include <numbers>

namespace meshwright {

namespace {

/// The learning rate of a schedule that is not plain, at step `step` (f32), as learningRateAt has it.
ValueId scheduledRate(Builder& builder, const Optimizer& optimizer, double peak, ValueId step)
{
    const LearningRateSchedule& schedule = updateChoices(optimizer)->schedule;
    const auto scalar = [&](double value) { return builder.splat({DType::F32, {}}, value); };
    const auto plus = [&](ValueId a, ValueId b) { return builder.binary(OpKind::Add, a, b); };
    const auto times = [&](ValueId a, ValueId b) { return builder.binary(OpKind::Multiply, a, b); };
    const auto warmup = static_cast<double>(schedule.warmupSteps);
    ValueId rate = scalar(peak);
    if (schedule.kind != LearningRateSchedule::Kind::Constant) {
        const auto span = static_cast<double>(std::max<std::int64_t>(1, schedule.decaySteps - schedule.warmupSteps));
        const ValueId passed = builder.binary(OpKind::Subtract, step, scalar(warmup));
        const ValueId done = builder.binary(OpKind::Minimum, builder.binary(OpKind::Divide, passed, scalar(span)), scalar(1.0));
        if (schedule.kind == LearningRateSchedule::Kind::Linear) {
            rate = plus(rate, times(scalar(schedule.finalRate - peak), done));
        } else {
            const ValueId cosine = builder.unary(OpKind::Cosine, times(scalar(std::numbers::pi), done));
            rate = plus(scalar(schedule.finalRate), times(scalar(0.5 * (peak - schedule.finalRate)), plus(scalar(1.0), cosine)));
        }
    }
    if (schedule.warmupSteps > 0)
        rate = builder.select(
            builder.compare(CompareDirection::Less, step, scalar(warmup)), times(scalar(peak / warmup), step), rate);
    return builder.named(rate, "learning_rate");
}

} // namespace

OptimizerUpdate::OptimizerUpdate(Builder& builder, const Optimizer& optimizer, ValueId oldStep, ValueId norm, ValueId scale)
    : m_b(builder)
    , m_optimizer(optimizer)
    , m_choices(*updateChoices(optimizer))
{
    const auto* adam = std::get_if<AdamOptimizer>(&optimizer);
    m_peak = adam != nullptr ? adam->learningRate : std::get<SgdOptimizer>(optimizer).learningRate;
    if (countsSteps(optimizer))
        m_newStep = m_b.binary(OpKind::Add, oldStep, scalar(1.0));
    if (!m_choices.schedule.isPlain())
        m_rate = scheduledRate(m_b, optimizer, m_peak, oldStep);
    if (adam != nullptr) {
        // p - rate m^ / (sqrt(v^) + eps) with m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t): the scalars once for all tensors.
        m_firstRate = m_b.binary(OpKind::Divide, m_rate.valid() ? m_rate : scalar(m_peak), bias(adam->beta1));
        m_secondBias = m_b.binary(OpKind::Divide, scalar(1.0), bias(adam->beta2));
    }
    if (m_choices.weightDecay != 0.0 && m_rate.valid())
        m_kept = m_b.binary(OpKind::Subtract, scalar(1.0), m_b.binary(OpKind::Multiply, m_rate, scalar(m_choices.weightDecay)));
    if (m_choices.clipNorm > 0.0) {
        const ValueId most = m_b.splat(TensorType(m_b.type(norm)), m_choices.clipNorm);
        m_factor = m_b.select(m_b.compare(CompareDirection::Less, norm, most), m_b.splat(TensorType(m_b.type(norm)), 1.0),
            m_b.binary(OpKind::Divide, most, norm));
    }
    if (scale.valid()) {
        const ValueId unscaled = m_b.binary(OpKind::Divide, scalar(1.0), scale);
        m_factor = m_factor.valid()
            ? m_b.binary(OpKind::Multiply, m_factor, m_b.convert(unscaled, TensorType(m_b.type(m_factor)).dtype))
            : unscaled;
    }
}

ValueId OptimizerUpdate::operator()(ValueId parameter, ValueId gradient, ValueId& first, ValueId& second)
{
    m_type = m_b.type(parameter);
    if (m_factor.valid())
        gradient = scaled(gradient);
    if (std::holds_alternative<SgdOptimizer>(m_optimizer)) {
        if (first.valid())
            gradient = first = plus(times(splat(std::get<SgdOptimizer>(m_optimizer).momentum), first), gradient);
        return m_b.binary(OpKind::Subtract, kept(parameter), times(spreadRate(), gradient));
    }
    const AdamOptimizer& adam = std::get<AdamOptimizer>(m_optimizer);
    first = plus(times(splat(adam.beta1), first), times(splat(1.0 - adam.beta1), gradient));
    second = plus(times(splat(adam.beta2), second), times(splat(1.0 - adam.beta2), times(gradient, gradient)));
    const ValueId root = m_b.unary(OpKind::Sqrt, times(second, spread(m_secondBias)));
    const ValueId direction = m_b.binary(OpKind::Divide, first, plus(root, splat(adam.epsilon)));
    return m_b.binary(OpKind::Subtract, kept(parameter), times(spread(m_firstRate), direction));
}

ValueId OptimizerUpdate::bias(double beta)
{
    return m_b.binary(OpKind::Subtract, scalar(1.0), m_b.binary(OpKind::Power, scalar(beta), m_newStep));
}

/// What weight decay leaves of a parameter.
ValueId OptimizerUpdate::kept(ValueId parameter)
{
    if (m_choices.weightDecay == 0.0)
        return parameter;
    return times(m_kept.valid() ? spread(m_kept) : splat(1.0 - m_peak * m_choices.weightDecay), parameter);
}

/// In f32 at least: what is taken out of 16-bit gradients may be larger than all of their numbers.
ValueId OptimizerUpdate::scaled(ValueId gradient)
{
    const DType wide = byteSize(m_type.dtype) < byteSize(DType::F32) ? DType::F32 : m_type.dtype;
    const ValueId factor = m_b.broadcastScalar(m_b.convert(m_factor, wide), m_type.shape);
    return m_b.convert(times(m_b.convert(gradient, wide), factor), m_type.dtype);
}

} // namespace meshwright
