// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/array_name.h"
#include "core/models/initializers.h"
#include "core/models/model_array.h"
#include "core/program/eight_bits.h"
#include "core/program/program.h"
#include "core/support/result.h"
#include "core/support/threefry.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace meshwright {

enum class Activation : std::uint8_t {
    Relu, ///< select(x > 0, x, 0): its derivative at 0 is 0, as that of jax.nn.relu
    Tanh,
};
enum class LossKind : std::uint8_t {
    SumSquared, ///< mean over the batch of the sum over outputs of (prediction - y)^2
    MeanSquared, ///< mean over all elements
    CrossEntropy, ///< mean over the batch of -sum(y log softmax(prediction)); y one-hot or probabilities
};

/// A multilayer perceptron. layers = [inputs, hidden .., outputs]; the activation stands between layers, not after the last.
struct MlpModel {
    std::vector<std::int64_t> layers;
    Activation activation = Activation::Relu;
    bool bias = true;
    LossKind loss = LossKind::CrossEntropy;

    friend bool operator==(const MlpModel&, const MlpModel&) = default;
};

/// Its parameters, in the order of the program's arguments, and the values that a constraint may name (see buildMlpTraining).
std::vector<ModelArray> mlpParameters(const MlpModel& model);
std::vector<ModelArray> mlpActivations(const MlpModel& model, std::int64_t batch);

/// How the learning rate goes over the steps t = 0, 1, ..: up from 0 to the peak P in `warmupSteps` steps W (rate P t / W), then down to the final rate
/// F at step `decaySteps` T, the warm-up counted in, where it stays. With s = min((t - W) / (T - W), 1): linear P + (F - P) s, cosine
/// F + (P - F) (1 + cos(pi s)) / 2. Source: optax, optax/schedules/_schedule.py (warmup_cosine_decay_schedule, linear_schedule).
struct LearningRateSchedule {
    enum class Kind : std::uint8_t { Constant, Linear, Cosine };
    Kind kind = Kind::Constant;
    std::int64_t warmupSteps = 0; ///< >= 0
    std::int64_t decaySteps = 0; ///< > warmupSteps; 0, of a study only: all steps of the training
    double finalRate = 0.0; ///< >= 0; of a constant one without meaning

    bool isPlain() const { return kind == Kind::Constant && warmupSteps == 0; }
    friend bool operator==(const LearningRateSchedule&, const LearningRateSchedule&) = default;
};

/// A factor on the loss that the backward run begins with and the update takes out of the gradients, so that small ones do not vanish in 16 bits
/// (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2).
struct LossScale {
    static constexpr std::int64_t kUsualGrowthSteps = 2000;
    static constexpr double kUsualFirst = 65536.0;

    double scale = 1.0; ///< > 0; a dynamic one's first
    /// A dynamic scale halves when the gradients' norm is not finite, and that step leaves parameters and states as they are; it doubles after so
    /// many good steps in a row, within f32's normal numbers. 0: fixed. Source: flax, flax/training/dynamic_scale.py.
    std::int64_t growthSteps = 0;

    static LossScale dynamic() { return {kUsualFirst, kUsualGrowthSteps}; }
    bool isDynamic() const { return growthSteps > 0; }
    bool isPlain() const { return scale == 1.0 && !isDynamic(); }
    friend bool operator==(const LossScale&, const LossScale&) = default;
};

/// What all optimisers may have.
struct UpdateChoices {
    /// Decoupled: besides its step a parameter p loses rate * weightDecay * p (Loshchilov and Hutter, "Decoupled Weight Decay
    /// Regularization", ICLR 2019). All parameters decay, biases too, as in optax and PyTorch.
    double weightDecay = 0.0;
    double clipNorm = 0.0; ///< gradients of a larger global norm are scaled down to it, as by optax.clip_by_global_norm; 0: never
    LearningRateSchedule schedule = {};
    LossScale lossScale = {};
    /// Each parameter of 16 bits has a state "opt.master.NAME" in f32, which is updated; the parameter is that, rounded. Gradients and moments are f32
    /// (Micikevicius et al., "Mixed Precision Training", arXiv:1710.03740, section 3.1).
    bool masters = false;
    bool countsSteps = false; ///< the step's number is a state even if the update has no need of it

    friend bool operator==(const UpdateChoices&, const UpdateChoices&) = default;
};

struct SgdOptimizer {
    double learningRate = 0.01;
    double momentum = 0.0;
    UpdateChoices update = {};

    friend bool operator==(const SgdOptimizer&, const SgdOptimizer&) = default;
};
struct AdamOptimizer {
    double learningRate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    UpdateChoices update = {};
    bool isAdamW = false; ///< of its name only: Adam has no weight decay

    /// AdamW with the weight decay that optax gives it.
    static AdamOptimizer adamW()
    {
        AdamOptimizer optimizer;
        optimizer.update.weightDecay = 1e-4;
        optimizer.isAdamW = true;
        return optimizer;
    }

    friend bool operator==(const AdamOptimizer&, const AdamOptimizer&) = default;
};
/// Gradients only.
struct NoOptimizer {
    friend bool operator==(const NoOptimizer&, const NoOptimizer&) = default;
};
using Optimizer = std::variant<SgdOptimizer, AdamOptimizer, NoOptimizer>;

/// "sgd", "adam", "adamw" or "none", as a study names it.
const char* optimizerName(const Optimizer& optimizer);

/// Null for NoOptimizer.
const UpdateChoices* updateChoices(const Optimizer& optimizer);
UpdateChoices* updateChoices(Optimizer& optimizer);

/// The learning rate of step 0, 1, ..; 0 for NoOptimizer. Precondition: step >= 0.
double learningRateAt(const Optimizer& optimizer, std::int64_t step);

/// True when the step's number is one of the states ("opt.step"): Adam needs it, every learning rate that changes, and dropout.
bool countsSteps(const Optimizer& optimizer);
/// The states that are one f32 number each, in the order of the functions' arguments, behind the moments: "opt.step" (see countsSteps), and of a dynamic
/// loss scale "opt.loss_scale" and "opt.good_steps" (in a row, since the scale last changed).
std::vector<std::string> scalarStates(const Optimizer& optimizer);
/// The states of its shape that each parameter has: of SGD with momentum the first moment, of Adam both, and last the master.
std::vector<ArrayName::Family> stateFamilies(const Optimizer& optimizer);
inline std::size_t momentsOf(const Optimizer& optimizer)
{
    return stateFamilies(optimizer).size();
}

struct TrainingOptions {
    std::int64_t batch = 1;
    /// The probability that an element is left out of what a hidden layer (of a transformer: the embedding and each block) passes on in training;
    /// what stays is divided by 1 - dropout. Which elements depends on the seed, the step and the element's place in the whole array, so all
    /// layouts leave out the same. 0 <= dropout < 1; the optimizer counts steps where it is not 0.
    double dropout = 0.0;
    std::uint64_t dropoutSeed = 0;
    /// > 0: the batch is one of so many equal stretches of a step's rows, which a pipeline takes one after the other; with dropout there is then
    /// the function "microbatch".
    std::int64_t pipelineMicrobatches = 0;
    bool gradientNorm = false; ///< "step" also gives "grad_norm", the gradients' norm before clipping
    DType parameterType = DType::F32;
    DType matmulType = DType::F32; ///< operands of products are rounded to this
    /// Of transformers: products with the weights of layers are of numbers rounded to 8 bits (eight_bits.h); attention's core, routers and the head are not.
    std::optional<SharedScale> eightBits = {};
    DType activationType = DType::F32; ///< of transformers; an MLP's activations have the parameter type
    /// In which gradients are added up over microbatches and summed over devices; nothing: what is updated.
    std::optional<DType> gradientType = {};
    Initializer weightInit = Initializer::LecunNormal;
    Initializer biasInit = Initializer::Zeros;
    bool partitionableRandom = true; ///< JAX's threefry mode
    Optimizer optimizer = SgdOptimizer{};
    /// Values inside the program that the user constrains: "act.layers.1" -> the layout and where it was written.
    std::map<std::string, ConstraintAttributes> constraints;
};

/// The functions of a training program, all in one Program without shardings except the constraints:
/// - "init": (one key ui32[2] for each random tensor, named "key.NAME") -> parameters.., optimiser states.. (phase Init)
/// - "loss": (parameters.., x, y) -> loss, predictions (phase Forward), and the accuracy where the loss is taken in chunks; "loss.fwd", "loss.bwd" its derivative by the parameters
/// - "step": (parameters.., optimiser states.., x, y) -> new parameters.., new optimiser states.., loss, accuracy
///   (phases Forward, Backward, Update, Metrics), each new parameter and state donated into its old one
/// - "evaluate": (parameters.., x, y) -> loss, accuracy, predictions
/// - "microbatch", see pipelineMicrobatches: (parameters.., opt.step, x, y, dropout.part s32[], dropout.on ui32[]) -> the same, where masks are
///   those of stretch `dropout.part` in the mask of all the step's rows; where `dropout.on` is 0 nothing is left out
/// Names: "layers.i.w" [in, out], "layers.i.b" [out], "x" [batch, in], "y" [batch, out], "act.layers.i" (output of layer i after
/// bias, before the activation), "act.layers.i.activated", "grad.NAME", "new.NAME" (the updated parameter or state), "opt.m.NAME",
/// "opt.v.NAME", those of `scalarStates` ("opt.step" counts the steps that changed parameters), "loss", "accuracy", "grad_norm", "learning_rate" (where it changes).
/// Parameter, gradient, moments and updated parameter and moments form a sharding group in "step".
/// With dropout the keys of its masks are one more argument of "loss", "dropout.keys" ui32[masks, 2]; "step" draws them, of each step
/// `jax.random.bits(key, (masks, 2))` where the key's words are the seed's (its halves' XOR, with 0x64726f70) and the step's number; an element stays
/// where jax.random.bernoulli(its mask's key, 1 - dropout) says so. "evaluate" leaves nothing out.
/// With a loss scale other than 1 "grad.NAME" is scaled, and "grad_norm" is not. With a dynamic one "step" also gives "loss_scale" (this step's),
/// "skipped" (1 where the norm was not finite, else 0) and, where it changes, "learning_rate".
/// With NoOptimizer "step" gives the gradients in place of new parameters.
///
/// Parameters, moments, x, y and activations have the parameter type; products accumulate in f32 at least, and loss and accuracy are
/// computed in f32 at least. SGD: m' = momentum m + g, p' = p - rate m' (without momentum: g for m'). Adam: Kingma and Ba, "Adam",
/// ICLR 2015, algorithm 1. Clipping by the norm g comes first, gradients g' = g min(1, clipNorm / |g|), where |g| is over all parameters.
/// Accuracy is the fraction of rows whose prediction at the label (the place of y's largest value) is the
/// largest of the row; a tie for the largest counts as right.
///
/// Problems: MW1312 a constraint names no activation of the model, MW1308 a constraint whose rank is not 2. Preconditions (the study
/// reader reports them): at least two layer sizes, all >= 1, batch >= 1, a floating parameter type.
Result<Program> buildMlpTraining(const MlpModel& model, const TrainingOptions& options);

/// The keys that "init" takes, in the order of its arguments, drawn from one key as JAX's MLP examples draw them:
/// `_, *keys = split(key, layers + 1)`, then for each layer `k1, k2 = split(k)`, k1 for the weight and k2 for the bias.
std::vector<std::pair<std::string, RandomKey>> initKeys(
    const MlpModel& model, const TrainingOptions& options, const RandomKey& key);

/// Takes values (arguments of `function`, gradients or new states in it) out of their sharding groups, as a spec on `opt.*` or
/// `grad.*` asks. Of an optimiser state that is updated, old and new leave together and form a group of their own.
void leaveShardingGroups(Function& function, std::span<const ValueId> values);

} // namespace meshwright
