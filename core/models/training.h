// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace meshwright {

enum class Activation : std::uint8_t { Relu, Tanh };
enum class LossKind : std::uint8_t {
    SumSquared, ///< mean over the batch of the sum over outputs of (prediction - y)^2
    MeanSquared, ///< mean over all elements
    CrossEntropy, ///< mean over the batch of -sum(y log softmax(prediction)); y one-hot or probabilities
};
enum class Initializer : std::uint8_t { NormalOverSqrtFanIn, LecunNormal, HeNormal, Normal, Zeros, Ones };

/// A multilayer perceptron. layers = [inputs, hidden .., outputs]; the activation stands between layers, not after the last.
struct MlpModel {
    std::vector<std::int64_t> layers;
    Activation activation = Activation::Relu;
    bool bias = true;
    LossKind loss = LossKind::CrossEntropy;

    friend bool operator==(const MlpModel&, const MlpModel&) = default;
};

struct SgdOptimizer {
    double learningRate = 0.01;
    double momentum = 0.0;

    friend bool operator==(const SgdOptimizer&, const SgdOptimizer&) = default;
};
struct AdamOptimizer {
    double learningRate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;

    friend bool operator==(const AdamOptimizer&, const AdamOptimizer&) = default;
};
/// Gradients only.
struct NoOptimizer {
    friend bool operator==(const NoOptimizer&, const NoOptimizer&) = default;
};
using Optimizer = std::variant<SgdOptimizer, AdamOptimizer, NoOptimizer>;

struct TrainingOptions {
    std::int64_t batch = 1;
    DType parameterType = DType::F32;
    DType matmulType = DType::F32; ///< operands of products are rounded to this
    Initializer weightInit = Initializer::LecunNormal;
    Initializer biasInit = Initializer::Zeros;
    bool partitionableRandom = true; ///< JAX's threefry mode
    Optimizer optimizer = SgdOptimizer{};
    /// Values inside the program that the user constrains: "act.layers.1" -> the layout and where it was written.
    std::map<std::string, ConstraintAttributes> constraints;
};

/// The functions of a training program, all in one Program without shardings except the constraints:
/// - "init": (key u32[2]) -> parameters, optimiser states (phase Init)
/// - "loss": (parameters.., x, y) -> loss, predictions (phase Forward); "loss.fwd", "loss.bwd" its derivative
/// - "step": (parameters.., optimiser states.., x, y) -> new parameters.., new optimiser states.., loss, accuracy
///   (phases Forward, Backward, Update, Metrics), each new parameter and state donated into its old one
/// - "evaluate": (parameters.., x, y) -> loss, accuracy
/// Names: "layers.i.w" [in, out], "layers.i.b" [out], "x" [batch, in], "y" [batch, out], "act.layers.i" (output of layer i after
/// bias, before the activation), "act.layers.i.activated", "grad.NAME", "opt.m.NAME", "opt.v.NAME", "opt.step" (Adam's count), "loss", "accuracy".
/// Parameter, gradient, moments and updated parameter form a sharding group in "step".
/// With NoOptimizer "step" gives the gradients in place of new parameters.
///
/// Problems: MW1401 to be reported by the study reader beforehand are preconditions here: at least two layer sizes, all >= 1, batch >= 1.
Result<Program> buildMlpTraining(const MlpModel& model, const TrainingOptions& options);

/// The names of parameters and optimiser states, in the order of the functions' arguments.
std::vector<std::string> parameterNames(const MlpModel& model);
std::vector<std::string> optimizerStateNames(const MlpModel& model, const Optimizer& optimizer);

/// Takes the value named `name` (an argument of `function`, or a gradient, a new state or an activation in it) out of its sharding group,
/// as a spec on `opt.*` or `grad.*` asks.
void leaveShardingGroup(Function& function, ValueId value);

} // namespace meshwright
