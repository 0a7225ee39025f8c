// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/differentiate.h"
#include "core/models/training.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// A parameter of a model, and how it begins.
struct ModelParameter {
    std::string name;
    TensorType type;
    std::int64_t fanIn = 1;
    Initializer initializer = Initializer::Zeros;
};

/// What a model adds to the functions that all trainings have.
struct TrainedModel {
    std::vector<ModelParameter> parameters;
    TensorType x; ///< of a microbatch
    TensorType y;
    Function loss; ///< "loss": (parameters.., x, y) -> loss, predictions; the loss is a mean over the microbatch
    DType lossType = DType::F32;
    std::function<ValueId(Builder&, ValueId predictions, ValueId y)> accuracy; ///< a scalar of the loss' type
    std::function<ValueId(Builder&, ValueId predictions)> shown; ///< what "evaluate" gives of the predictions; none: all
    std::function<bool(OpId)> again; ///< ops of "loss" that the backward run carries out again; none: no op
    Function evaluated; ///< with masks: "loss" without them
    std::int64_t masks = 0; ///< of dropout, whose keys are the last argument of "loss"
};

/// Arguments for the parameters, in their order.
std::vector<ValueId> parameterArguments(Builder& builder, std::span<const ModelParameter> parameters);

/// The arguments x and y.
std::pair<ValueId, ValueId> batchArguments(Builder& builder, const TensorType& x, const TensorType& y);

/// The argument with the keys of dropout's masks, ui32[masks, 2]; and the key of one of them, ui32[2].
ValueId maskKeys(Builder& builder, std::int64_t masks);
ValueId maskKey(Builder& builder, ValueId keys, std::int64_t mask);

/// `value` where the key's mask keeps an element, over the probability of that; 0 elsewhere.
/// The mask is jax.random.bernoulli(key, 1 - dropout, shape): jax/_src/random.py (uniform numbers below the probability).
ValueId dropped(Builder& builder, ValueId value, ValueId key, const TrainingOptions& options);

/// The names of optimiser states for parameters of these names, in the order of the functions' arguments.
std::vector<std::string> optimizerStateNames(std::span<const std::string> parameters, const Optimizer& optimizer);

/// log of the softmax over the last dimension. It is shifted by the maximum rounded down, which keeps exp in range as the maximum itself
/// does; and as floor is flat, no gradient flows through the shift (in exact arithmetic it has none).
ValueId logSoftmax(Builder& builder, ValueId values);

/// The sum of the squares of all elements of all of `values`, a scalar of this type. Values of one rank stand side by side, so that partial sums
/// over the same axes are reduced together. Precondition: there are values.
ValueId sumOfSquares(Builder& builder, std::vector<ValueId> values, DType type);

/// The options for the functions of one microbatch: its rows are the batch.
TrainingOptions microbatchOptions(TrainingOptions options);

/// The functions "init", "loss", "loss.fwd", "loss.bwd", "step" and "evaluate" of a training, as training.h describes them.
/// Of the options only the optimiser, microbatches, dropout's seed, gradientNorm and partitionableRandom are read. Problems: those of `differentiate`.
Result<Program> trainingProgram(const TrainedModel& model, const TrainingOptions& options);

} // namespace meshwright
