// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/differentiate.h"
#include "core/models/training.h"
#include "core/program/builder.h"

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
    std::string rowOf = {}; ///< the array [rows, ..] whose row it begins as, and whose key it is drawn with; empty: none
    std::int64_t row = 0;
    std::int64_t rows = 0;
};

std::vector<ModelParameter> modelParameters(std::span<const ModelArray> arrays, const TrainingOptions& options);

/// MW1312 a constraint names none of these activations, MW1308 its rank is another.
Problems constraintProblems(std::span<const ModelArray> activations, const TrainingOptions& options);

/// What a model adds to the functions that all trainings have.
struct TrainedModel {
    std::vector<ModelParameter> parameters;
    TensorType x; ///< of a microbatch
    TensorType y;
    /// "loss": (parameters.., x, y) -> loss, predictions and, where there is no `accuracy`, the accuracy; the loss is a mean over the microbatch.
    Function loss;
    DType lossType = DType::F32;
    std::function<ValueId(Builder&, ValueId predictions, ValueId y)>
        accuracy; ///< a scalar of the loss' type; none: "loss" gives it
    std::function<ValueId(Builder&, ValueId predictions)> shown; ///< what "evaluate" gives of the predictions; none: all
    ResidualChoice residualOf; ///< of ops of "loss"
    Function evaluated; ///< with masks: "loss" without them
    Function part; ///< with masks, of a pipeline's microbatch: "loss" with masks of MaskRows::Part
    std::int64_t masks = 0; ///< of dropout, whose keys are the last argument of "loss"
};

/// Arguments for the parameters, in their order.
std::vector<ValueId> parameterArguments(Builder& builder, std::span<const ModelParameter> parameters);

/// The arguments x and y.
std::pair<ValueId, ValueId> batchArguments(Builder& builder, const TensorType& x, const TensorType& y);

/// Which rows the masks of a loss are for: it has no masks, those of its own rows, or of one stretch of a step's rows.
enum class MaskRows : std::uint8_t { None, All, Part };

/// What dropout's masks are made of.
struct Masks {
    ValueId keys; ///< ui32[masks, 2]; invalid: nothing is left out
    ValueId part; ///< s32: the stretch; invalid: masks are of the value's own rows
    ValueId isOn; ///< ui32, with `part`: 0 where nothing is left out
};

/// The arguments "dropout.keys" and, of a part, "dropout.part" and "dropout.on".
Masks maskArguments(Builder& builder, MaskRows rows, std::int64_t masks);

/// `value` where mask number `mask` keeps an element, over the probability of that; 0 elsewhere.
/// The mask is jax.random.bernoulli(key, 1 - dropout, shape): jax/_src/random.py (uniform numbers below the probability).
ValueId dropped(Builder& builder, ValueId value, const Masks& masks, std::int64_t mask, const TrainingOptions& options);

/// Of a parameter's states and of what of it is updated: that of the parameter, or of its master.
DType updatedType(DType parameter, const Optimizer& optimizer);

/// The names of optimiser states for parameters of these names, in the order of the functions' arguments.
std::vector<std::string> optimizerStateNames(std::span<const std::string> parameters, const Optimizer& optimizer);

/// log of the softmax over the last dimension. It is shifted by the maximum rounded down, which keeps exp in range as the maximum itself
/// does; and as floor is flat, no gradient flows through the shift (in exact arithmetic it has none).
ValueId logSoftmax(Builder& builder, ValueId values);

/// The sum of the squares of all elements of all of `values`, a scalar of this type. Values of one rank stand side by side, so that partial sums
/// over the same axes are reduced together. Precondition: there are values.
ValueId sumOfSquares(Builder& builder, std::vector<ValueId> values, DType type);

/// A gradient in another type, which has its role then. What a loop gives row by row gets it inside of the loop, so that rows can still be added where they are made.
/// Precondition: nothing reads the gradient yet.
ValueId convertedWhereMade(Builder& builder, ValueId gradient, DType dtype);

/// The functions "init", "loss", "loss.fwd", "loss.bwd", "step" and "evaluate" of a training, as training.h describes them.
/// Of the options only the optimiser, dropout's seed, gradientNorm and partitionableRandom are read. Problems: those of `differentiate`.
Result<Program> trainingProgram(const TrainedModel& model, const TrainingOptions& options);

} // namespace meshwright
