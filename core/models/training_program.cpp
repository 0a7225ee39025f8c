// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training_program.h"

#include "core/models/optimizer_update.h"
#include "core/program/builder.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>

namespace meshwright {

namespace {

std::vector<std::string> namesOf(std::span<const ModelParameter> parameters)
{
    std::vector<std::string> names;
    for (const ModelParameter& parameter : parameters)
        names.push_back(parameter.name);
    return names;
}

/// The norm of all gradients together, a scalar of this type. The gradients are `scale` (f32; invalid: 1) times too large.
ValueId globalNorm(Builder& builder, const std::vector<ValueId>& gradients, DType type, ValueId scale)
{
    ValueId norm = builder.unary(OpKind::Sqrt, sumOfSquares(builder, gradients, type));
    if (scale.valid())
        norm = builder.binary(OpKind::Divide, norm, builder.convert(scale, type));
    builder.named(norm, "grad_norm");
    builder.function()[norm].role = Role::Metric;
    return norm;
}

/// The scale of the loss, f32; invalid where it is always 1. `states` are the scalar ones.
ValueId lossScaleOf(Builder& builder, const LossScale& scale, std::span<const ValueId> states)
{
    if (scale.isDynamic())
        return states[states.size() - 2];
    return scale.isPlain() ? ValueId{} : builder.splat({DType::F32, {}}, scale.scale);
}

/// What follows a step's `scale`, of which there were `goodSteps` before, if this one is `good` (a truth value) and if not; and the good steps then.
std::pair<ValueId, ValueId> nextLossScale(
    Builder& builder, const LossScale& choice, ValueId scale, ValueId goodSteps, ValueId good)
{
    constexpr double kLeast = 0x1p-126; // the smallest normal number of f32
    constexpr double kMost = 0x1p127;
    const auto scalar = [&](double value) { return builder.splat({DType::F32, {}}, value); };
    const ValueId counted = builder.binary(OpKind::Add, goodSteps, scalar(1.0));
    const ValueId stays = builder.compare(CompareDirection::Less, counted, scalar(static_cast<double>(choice.growthSteps)));
    const ValueId doubled = builder.binary(OpKind::Minimum, builder.binary(OpKind::Multiply, scale, scalar(2.0)), scalar(kMost));
    const ValueId halved = builder.binary(OpKind::Maximum, builder.binary(OpKind::Multiply, scale, scalar(0.5)), scalar(kLeast));
    return {builder.select(good, builder.select(stays, scale, doubled), halved),
        builder.select(builder.binary(OpKind::And, good, stays), counted, scalar(0.0))};
}

class TrainingFunctions {
public:
    TrainingFunctions(const TrainedModel& model, const TrainingOptions& options)
        : m_model(model)
        , m_options(options)
        , m_optimizer(options.optimizer)
        , m_names(namesOf(model.parameters))
        , m_stateNames(optimizerStateNames(m_names, options.optimizer))
    {
    }

    Result<Program> build() const
    {
        std::vector<std::size_t> wrt(m_model.parameters.size());
        std::iota(wrt.begin(), wrt.end(), std::size_t{0});
        auto derivative = differentiate(m_model.loss, wrt, {0}, m_model.residualOf);
        if (!derivative)
            return derivative.error();
        Program program;
        program.functions.push_back(initFunction());
        program.functions.push_back(m_model.loss);
        program.functions.push_back(derivative->forward);
        program.functions.push_back(derivative->backward);
        program.functions.push_back(stepFunction(*derivative));
        program.functions.push_back(evaluateFunction());
        if (m_model.masks > 0 && m_options.pipelineMicrobatches > 0)
            program.functions.push_back(microbatchFunction());
        return program;
    }

private:
    TensorType stateType(std::size_t state) const
    {
        if (state >= momentsOf(m_optimizer) * m_model.parameters.size())
            return {DType::F32, {}};
        return updatedType(state % m_model.parameters.size());
    }

    DType gradientType(std::size_t parameter) const { return m_options.gradientType.value_or(updatedType(parameter).dtype); }

    /// In the gradients' type.
    ValueId gradientOf(Builder& builder, ValueId made, std::size_t parameter) const
    {
        builder.named(made, fmt::format("grad.{}.made", m_names[parameter]));
        return builder.named(convertedWhereMade(builder, made, gradientType(parameter)), "grad." + m_names[parameter]);
    }

    bool hasMasters() const { return updateChoices(m_optimizer) != nullptr && updateChoices(m_optimizer)->masters; }

    TensorType updatedType(std::size_t parameter) const
    {
        const TensorType& type = m_model.parameters[parameter].type;
        return {meshwright::updatedType(type.dtype, m_optimizer), type.shape};
    }

    /// What a batch gives.
    struct Outcome {
        ValueId loss;
        ValueId accuracy;
        std::vector<ValueId> gradients; ///< of "step"
        ValueId shown; ///< of "evaluate"
    };
    /// x, y and what "step" alone has.
    struct Rows {
        ValueId x;
        ValueId y;
        ValueId keys = {}; ///< of dropout's masks, [masks, 2]; invalid: none
        ValueId lossScale = {}; ///< f32; invalid: 1
    };

    Function initFunction() const;
    Function stepFunction(const Differentiated& derivative) const;
    Outcome derived(
        Builder& builder, const Differentiated& derivative, const std::vector<ValueId>& parameters, const Rows& rows) const;
    Outcome evaluated(Builder& builder, const Function& loss, const std::vector<ValueId>& operands, ValueId y) const;
    ValueId drawnKeys(Builder& builder, ValueId step) const;
    struct OldValues;
    struct NewValues;
    NewValues updated(Builder& builder, const OldValues& old, const std::vector<ValueId>& gradients, ValueId norm) const;
    Function evaluateFunction() const;
    Function microbatchFunction() const;

    const TrainedModel& m_model;
    const TrainingOptions& m_options;
    const Optimizer& m_optimizer;
    std::vector<std::string> m_names;
    std::vector<std::string> m_stateNames;
};

Function TrainingFunctions::initFunction() const
{
    Function init;
    init.name = "init";
    Builder builder(init);
    builder.setPhase(Phase::Init);
    std::vector<ValueId> keys;
    std::map<std::string, ValueId> known;
    for (const ModelParameter& parameter : m_model.parameters) {
        ValueId& key = known[parameter.rowOf.empty() ? parameter.name : parameter.rowOf];
        if (!key.valid() && isRandom(parameter.initializer))
            key = builder.argument(
                {DType::U32, {2}}, "key." + (parameter.rowOf.empty() ? parameter.name : parameter.rowOf), Role::Input);
        keys.push_back(key);
    }

    std::vector<ValueId> results;
    for (std::size_t i = 0; i < m_model.parameters.size(); ++i) {
        const ModelParameter& parameter = m_model.parameters[i];
        Stretch row{parameter.rows, {}};
        if (parameter.rows > 0 && keys[i].valid())
            row.number = builder.splat({DType::S32, {}}, static_cast<double>(parameter.row));
        results.push_back(builder.named(initialized(builder, parameter.initializer, keys[i], parameter.type, parameter.fanIn,
                                            m_options.partitionableRandom, row),
            parameter.name));
        init[results.back()].role = Role::Parameter;
    }
    std::vector<std::string> names = m_names;
    for (std::size_t i = 0; i < m_stateNames.size(); ++i) {
        const double first = m_stateNames[i] == "opt.loss_scale" ? updateChoices(m_optimizer)->lossScale.scale : 0.0;
        const bool isMaster = arrayNameOf(m_stateNames[i]).family == ArrayName::Family::Master;
        const ValueId begin = isMaster ? builder.convert(results[i % m_model.parameters.size()], stateType(i).dtype)
                                       : builder.splat(stateType(i), first);
        results.push_back(builder.named(begin, m_stateNames[i]));
        init[results.back()].role = Role::OptimizerState;
        names.push_back(m_stateNames[i]);
    }
    builder.setResults(std::move(results), std::move(names));
    return init;
}

/// Loss, accuracy and gradients.
TrainingFunctions::Outcome TrainingFunctions::derived(
    Builder& builder, const Differentiated& derivative, const std::vector<ValueId>& parameters, const Rows& rows) const
{
    std::vector<ValueId> operands = parameters;
    operands.insert(operands.end(), {rows.x, rows.y});
    if (rows.keys.valid())
        operands.push_back(rows.keys);
    const std::vector<ValueId> forward = inlineCall(builder, derivative.forward, operands);
    builder.setPhase(Phase::Metrics);
    Outcome outcome;
    outcome.loss = forward[0];
    outcome.accuracy
        = m_model.accuracy ? m_model.accuracy(builder, forward[1], rows.y) : forward[2]; // predictions need not be kept
    builder.setPhase(Phase::Backward);
    std::vector<ValueId> backwardOperands(
        forward.begin() + static_cast<std::ptrdiff_t>(m_model.loss.results().size()), forward.end());
    backwardOperands.push_back(
        rows.lossScale.valid() ? builder.convert(rows.lossScale, m_model.lossType) : builder.splat({m_model.lossType, {}}, 1.0));
    outcome.gradients = inlineCall(builder, derivative.backward, backwardOperands);
    for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
        if (gradientType(i) != m_model.parameters[i].type.dtype)
            outcome.gradients[i] = gradientOf(builder, outcome.gradients[i], i);
    }
    return outcome;
}

/// What the loss alone gives of its arguments, without gradients.
TrainingFunctions::Outcome TrainingFunctions::evaluated(
    Builder& builder, const Function& loss, const std::vector<ValueId>& operands, ValueId y) const
{
    const std::vector<ValueId> forward = inlineCall(builder, loss, operands);
    builder.setPhase(Phase::Metrics);
    Outcome outcome;
    outcome.loss = forward[0];
    outcome.accuracy = m_model.accuracy ? m_model.accuracy(builder, forward[1], y) : forward[2];
    outcome.shown = m_model.shown ? m_model.shown(builder, forward[1]) : forward[1];
    return outcome;
}

/// The keys of all masks of a step: [masks, 2].
ValueId TrainingFunctions::drawnKeys(Builder& builder, ValueId step) const
{
    constexpr std::uint32_t kTag = 0x64726f70; // so that masks have nothing to do with initial values
    const auto seed = static_cast<std::uint32_t>(m_options.dropoutSeed ^ (m_options.dropoutSeed >> 32)) ^ kTag;
    builder.setPhase(Phase::Forward);
    const ValueId first = builder.splat({DType::U32, {1}}, static_cast<double>(seed));
    const ValueId second = builder.reshape(builder.convert(step, DType::U32), {1});
    const ValueId key = builder.add(OpKind::Concatenate, {first, second}, ConcatenateAttributes{0});
    const TensorType type{DType::U32, {m_model.masks, 2}};
    return builder.add(OpKind::RandomBits, {key}, RandomBitsAttributes{type, m_options.partitionableRandom});
}

/// A step's arguments.
struct TrainingFunctions::OldValues {
    std::vector<ValueId> parameters;
    std::vector<ValueId> states;
    std::span<const ValueId> scalars; ///< the last ones of the states
    ValueId step; ///< invalid: not counted
    ValueId lossScale; ///< f32; invalid: always 1
};

/// Its results.
struct TrainingFunctions::NewValues {
    std::vector<ValueId> parameters;
    std::vector<ValueId> states;
    std::vector<std::pair<std::string, ValueId>> metrics; ///< of a dynamic loss scale
};

Function TrainingFunctions::stepFunction(const Differentiated& derivative) const
{
    Function step;
    step.name = "step";
    Builder builder(step);
    OldValues old;
    old.parameters = parameterArguments(builder, m_model.parameters);
    for (std::size_t i = 0; i < m_stateNames.size(); ++i)
        old.states.push_back(builder.argument(stateType(i), m_stateNames[i], Role::OptimizerState));
    old.scalars = std::span(old.states).subspan(momentsOf(m_optimizer) * old.parameters.size());
    if (countsSteps(m_optimizer))
        old.step = old.scalars.front();
    const auto [x, y] = batchArguments(builder, m_model.x, m_model.y);
    const UpdateChoices* choices = updateChoices(m_optimizer);
    const LossScale scaling = choices != nullptr ? choices->lossScale : LossScale{};
    old.lossScale = lossScaleOf(builder, scaling, old.scalars);
    const ValueId keys = m_model.masks > 0 ? drawnKeys(builder, old.step) : ValueId{};
    const Outcome outcome = derived(builder, derivative, old.parameters, {x, y, keys, old.lossScale});
    const std::vector<ValueId>& gradients = outcome.gradients;

    const bool needsNorm = choices != nullptr && (choices->clipNorm > 0.0 || scaling.isDynamic());
    builder.setPhase(needsNorm ? Phase::Update : Phase::Metrics);
    const ValueId norm
        = needsNorm || m_options.gradientNorm ? globalNorm(builder, gradients, m_model.lossType, old.lossScale) : ValueId{};

    std::vector<ValueId> results;
    std::vector<std::string> names;
    NewValues replaced;
    if (choices == nullptr) {
        results = gradients;
        for (const std::string& name : m_names)
            names.push_back("grad." + name);
        for (std::size_t i = 0; i < old.parameters.size(); ++i)
            step.shardingGroups.push_back({old.parameters[i], gradients[i]});
    } else {
        builder.setPhase(Phase::Update);
        replaced = updated(builder, old, gradients, norm);
        results = replaced.parameters;
        results.insert(results.end(), replaced.states.begin(), replaced.states.end());
        for (const auto* list : {&m_names, &m_stateNames}) {
            for (const std::string& name : *list)
                names.push_back("new." + name);
        }
        for (std::size_t i = 0; i < results.size(); ++i)
            step.donations.push_back({i, i});
    }
    builder.setPhase(Phase::Metrics);
    results.push_back(outcome.loss);
    results.push_back(outcome.accuracy);
    names.insert(names.end(), {"loss", "accuracy"});
    if (m_options.gradientNorm)
        replaced.metrics.insert(replaced.metrics.begin(), {"grad_norm", norm});
    for (const auto& [name, metric] : replaced.metrics) {
        results.push_back(metric);
        names.push_back(name);
    }
    builder.setResults(std::move(results), std::move(names));
    eraseDeadOps(step); // predictions that nobody reads
    return step;
}

TrainingFunctions::NewValues TrainingFunctions::updated(
    Builder& builder, const OldValues& old, const std::vector<ValueId>& gradients, ValueId norm) const
{
    Function& step = builder.function();
    const LossScale& scaling = updateChoices(m_optimizer)->lossScale;
    const ValueId good = scaling.isDynamic() ? builder.unary(OpKind::IsFinite, norm) : ValueId{};
    const auto whereGood = [&](ValueId replaced, ValueId kept) {
        if (!good.valid() || replaced == kept)
            return replaced;
        return builder.select(builder.broadcastScalar(good, TensorType(builder.type(kept)).shape), replaced, kept);
    };
    OptimizerUpdate update(builder, m_optimizer, old.step, norm, old.lossScale);
    NewValues replaced;
    replaced.states = old.states;
    const std::size_t parameters = old.parameters.size();
    const std::size_t moments = momentsOf(m_optimizer);
    for (std::size_t i = 0; i < parameters; ++i) {
        std::vector<ValueId> group = {old.parameters[i], gradients[i]};
        const ValueId gradient = builder.convert(gradients[i], updatedType(i).dtype);
        ValueId none;
        const std::size_t own = moments - (hasMasters() ? 1 : 0);
        ValueId& first = own > 0 ? replaced.states[i] : none;
        ValueId& second = own > 1 ? replaced.states[parameters + i] : none;
        ValueId parameter;
        if (hasMasters()) {
            ValueId& master = replaced.states[own * parameters + i];
            master = update(master, gradient, first, second);
            parameter = builder.convert(master, m_model.parameters[i].type.dtype);
        } else {
            parameter = update(old.parameters[i], gradient, first, second);
        }
        replaced.parameters.push_back(builder.named(whereGood(parameter, old.parameters[i]), "new." + m_names[i]));
        step[replaced.parameters.back()].role = Role::Parameter;
        group.push_back(replaced.parameters.back());
        for (std::size_t state = i; state < moments * parameters; state += parameters) {
            replaced.states[state] = whereGood(replaced.states[state], old.states[state]);
            group.push_back(old.states[state]);
            group.push_back(replaced.states[state]);
        }
        step.shardingGroups.push_back(std::move(group));
    }
    if (old.step.valid())
        replaced.states[moments * parameters] = whereGood(update.newStep(), old.step);
    if (scaling.isDynamic()) {
        const auto [scale, goodSteps] = nextLossScale(builder, scaling, old.lossScale, old.scalars.back(), good);
        std::copy_n(std::array{scale, goodSteps}.begin(), 2, replaced.states.end() - 2);
        const TensorType scalar{DType::F32, {}};
        replaced.metrics = {{"loss_scale", old.lossScale},
            {"skipped", builder.select(good, builder.splat(scalar, 0.0), builder.splat(scalar, 1.0))}};
        if (update.rate().valid())
            replaced.metrics.emplace_back("learning_rate", update.rate());
    }
    for (std::size_t i = 0; i < replaced.states.size(); ++i) {
        builder.named(replaced.states[i], "new." + m_stateNames[i]);
        step[replaced.states[i]].role = Role::OptimizerState;
    }
    return replaced;
}

Function TrainingFunctions::evaluateFunction() const
{
    Function evaluate;
    evaluate.name = "evaluate";
    Builder builder(evaluate);
    std::vector<ValueId> operands = parameterArguments(builder, m_model.parameters);
    const auto [x, y] = batchArguments(builder, m_model.x, m_model.y);
    operands.insert(operands.end(), {x, y});
    const Outcome outcome = evaluated(builder, m_model.masks > 0 ? m_model.evaluated : m_model.loss, operands, y);
    builder.setResults({outcome.loss, outcome.accuracy, outcome.shown}, {"loss", "accuracy", "predictions"});
    return evaluate;
}

Function TrainingFunctions::microbatchFunction() const
{
    Function microbatch;
    microbatch.name = "microbatch";
    Builder builder(microbatch);
    std::vector<ValueId> operands = parameterArguments(builder, m_model.parameters);
    const ValueId step = builder.argument({DType::F32, {}}, "opt.step", Role::OptimizerState);
    const auto [x, y] = batchArguments(builder, m_model.x, m_model.y);
    const ValueId part = builder.argument({DType::S32, {}}, "dropout.part", Role::Input);
    const ValueId isOn = builder.argument({DType::U32, {}}, "dropout.on", Role::Input);
    const ValueId keys = drawnKeys(builder, step);
    operands.insert(operands.end(), {x, y, keys, part, isOn});
    const Outcome outcome = evaluated(builder, m_model.part, operands, y);
    builder.setResults({outcome.loss, outcome.accuracy, outcome.shown}, {"loss", "accuracy", "predictions"});
    return microbatch;
}

} // namespace

Result<Program> trainingProgram(const TrainedModel& model, const TrainingOptions& options)
{
    assert(model.masks == 0 || countsSteps(options.optimizer));
    return TrainingFunctions(model, options).build();
}

} // namespace meshwright
