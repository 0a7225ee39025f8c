// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/training.h"
#include "core/program/builder.h"

namespace meshwright {

/// Adds the update of one optimiser to a step function, tensor by tensor, with its learning rate, weight decay and clipping. Formulas: training.h.
class OptimizerUpdate {
public:
    /// `oldStep` and `norm` are read where the optimiser counts steps and clips. The gradients are `scale` (f32; invalid: 1) times too large.
    /// Precondition: the optimiser is not NoOptimizer. It outlives this.
    OptimizerUpdate(Builder& builder, const Optimizer& optimizer, ValueId oldStep, ValueId norm, ValueId scale);

    /// The new parameter; `first` and `second` are replaced by the new moments where the optimiser has them.
    ValueId operator()(ValueId parameter, ValueId gradient, ValueId& first, ValueId& second);

    ValueId newStep() const { return m_newStep; } ///< the count of steps; invalid where there is none
    ValueId rate() const { return m_rate; } ///< the learning rate; invalid where it is always the same

private:
    ValueId scalar(double value) { return m_b.splat({DType::F32, {}}, value); }
    ValueId bias(double beta);
    ValueId kept(ValueId parameter);
    ValueId scaled(ValueId gradient);
    ValueId spreadRate() { return m_rate.valid() ? spread(m_rate) : splat(m_peak); }
    ValueId splat(double value) { return m_b.splat(m_type, value); }
    ValueId spread(ValueId value) { return m_b.broadcastScalar(m_b.convert(value, m_type.dtype), m_type.shape); }
    ValueId plus(ValueId a, ValueId b) { return m_b.binary(OpKind::Add, a, b); }
    ValueId times(ValueId a, ValueId b) { return m_b.binary(OpKind::Multiply, a, b); }

    Builder& m_b;
    const Optimizer& m_optimizer;
    const UpdateChoices& m_choices;
    double m_peak = 0.0; ///< the learning rate as it is written
    TensorType m_type; ///< of the tensor at hand
    ValueId m_newStep;
    ValueId m_rate; ///< of a rate that changes
    ValueId m_firstRate; ///< Adam's, for its first moment
    ValueId m_secondBias;
    ValueId m_kept; ///< of weight decay under a rate that changes
    ValueId m_factor; ///< for all gradients
};

} // namespace meshwright
