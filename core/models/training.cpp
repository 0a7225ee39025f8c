// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"

#include "core/autodiff/differentiate.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace meshwright {

namespace {

std::size_t layerCount(const MlpModel& model)
{
    return model.layers.size() - 1;
}

struct Parameter {
    std::string name;
    TensorType type;
    std::int64_t fanIn = 1;
    Initializer initializer = Initializer::Zeros;
};

std::vector<Parameter> parametersOf(const MlpModel& model, const TrainingOptions& options)
{
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < layerCount(model); ++i) {
        const std::int64_t in = model.layers[i];
        const std::int64_t out = model.layers[i + 1];
        parameters.push_back({fmt::format("layers.{}.w", i), {options.parameterType, {in, out}}, in, options.weightInit});
        if (model.bias)
            parameters.push_back({fmt::format("layers.{}.b", i), {options.parameterType, {out}}, in, options.biasInit});
    }
    return parameters;
}

class MlpTraining {
public:
    MlpTraining(const MlpModel& model, const TrainingOptions& options)
        : m_model(model)
        , m_options(options)
        , m_parameters(parametersOf(model, options))
        , m_lossType(byteSize(options.parameterType) < byteSize(DType::F32) ? DType::F32 : options.parameterType)
    {
    }

    Result<Program> build()
    {
        if (Problems problems = constraintProblems(); !problems.empty())
            return problems;
        Program program;
        program.functions.push_back(initFunction());
        const Function loss = lossFunction();
        std::vector<std::size_t> wrt;
        for (std::size_t i = 0; i < m_parameters.size(); ++i)
            wrt.push_back(i);
        auto derivative = differentiate(loss, wrt, {0});
        if (!derivative)
            return derivative.error();
        program.functions.push_back(loss);
        program.functions.push_back(derivative->forward);
        program.functions.push_back(derivative->backward);
        program.functions.push_back(stepFunction(*derivative));
        program.functions.push_back(evaluateFunction(loss));
        return program;
    }

private:
    Problems constraintProblems() const
    {
        std::vector<std::string> known;
        for (std::size_t i = 0; i < layerCount(m_model); ++i) {
            known.push_back(fmt::format("act.layers.{}", i));
            if (i + 1 < layerCount(m_model))
                known.push_back(fmt::format("act.layers.{}.activated", i));
        }
        Problems problems;
        for (const auto& [name, constraint] : m_options.constraints) {
            if (std::find(known.begin(), known.end(), name) == known.end())
                problems.push_back({"MW1312", fmt::format("there is no activation \"{}\" in the model", name),
                    suggestion(name, known), Place{{}, 0, 0, constraint.origin}});
            else if (constraint.sharding.dims.size() != 2)
                problems.push_back({"MW1308",
                    fmt::format("the sharding of {}: {} dimensions for a value of rank 2", name, constraint.sharding.dims.size()),
                    {}, Place{{}, 0, 0, constraint.origin}});
        }
        return problems;
    }

    std::vector<ValueId> parameterArguments(Builder& builder) const
    {
        std::vector<ValueId> arguments;
        for (const Parameter& parameter : m_parameters)
            arguments.push_back(builder.argument(parameter.type, parameter.name, Role::Parameter));
        return arguments;
    }

    std::pair<ValueId, ValueId> batchArguments(Builder& builder) const
    {
        const ValueId x
            = builder.argument({m_options.parameterType, {m_options.batch, m_model.layers.front()}}, "x", Role::Input);
        const ValueId y = builder.argument({m_options.parameterType, {m_options.batch, m_model.layers.back()}}, "y", Role::Input);
        return {x, y};
    }

    Function initFunction() const;
    Function lossFunction() const;
    ValueId layer(Builder& builder, ValueId input, std::size_t index, std::span<const ValueId> parameters) const;
    ValueId constrained(Builder& builder, ValueId value, const std::string& name) const;
    ValueId lossOf(Builder& builder, ValueId predictions, ValueId y) const;
    ValueId logSoftmax(Builder& builder, ValueId predictions) const;
    ValueId accuracy(Builder& builder, ValueId predictions, ValueId y) const;
    Function stepFunction(const Differentiated& derivative) const;
    Function evaluateFunction(const Function& loss) const;

    const MlpModel& m_model;
    const TrainingOptions& m_options;
    std::vector<Parameter> m_parameters;
    DType m_lossType;
};

Function MlpTraining::initFunction() const
{
    Function init;
    init.name = "init";
    Builder builder(init);
    builder.setPhase(Phase::Init);
    std::vector<ValueId> keys;
    for (const Parameter& parameter : m_parameters)
        keys.push_back(isRandom(parameter.initializer) ? builder.argument({DType::U32, {2}}, "key." + parameter.name, Role::Input)
                                                       : ValueId{});

    std::vector<ValueId> results;
    std::vector<std::string> names = parameterNames(m_model);
    for (std::size_t i = 0; i < m_parameters.size(); ++i) {
        const Parameter& parameter = m_parameters[i];
        results.push_back(builder.named(
            initialized(builder, parameter.initializer, keys[i], parameter.type, parameter.fanIn, m_options.partitionableRandom),
            parameter.name));
        init[results.back()].role = Role::Parameter;
    }
    std::size_t state = 0;
    for (const std::string& name : optimizerStateNames(m_model, m_options.optimizer)) {
        const TensorType type
            = name == "opt.step" ? TensorType{DType::F32, {}} : m_parameters[state++ % m_parameters.size()].type;
        results.push_back(builder.named(builder.splat(type, 0.0), name));
        init[results.back()].role = Role::OptimizerState;
        names.push_back(name);
    }
    builder.setResults(std::move(results), std::move(names));
    return init;
}

ValueId MlpTraining::constrained(Builder& builder, ValueId value, const std::string& name) const
{
    if (const auto found = m_options.constraints.find(name); found != m_options.constraints.end())
        value = builder.constrain(value, found->second.sharding, found->second.origin);
    return builder.named(value, name);
}

ValueId MlpTraining::layer(Builder& builder, ValueId input, std::size_t index, std::span<const ValueId> parameters) const
{
    const std::size_t perLayer = m_model.bias ? 2 : 1;
    DotAttributes attributes;
    attributes.lhsContracting = {1};
    attributes.rhsContracting = {0};
    attributes.resultType = m_lossType;
    attributes.operandType = m_options.matmulType;
    const ValueId product = builder.dot(input, parameters[perLayer * index], std::move(attributes));
    builder.named(product, fmt::format("act.layers.{}.product", index));
    ValueId value = builder.convert(product, m_options.parameterType);
    if (m_model.bias)
        value = builder.binary(
            OpKind::Add, value, builder.broadcast(parameters[perLayer * index + 1], builder.type(value).shape, {1}));
    return constrained(builder, value, fmt::format("act.layers.{}", index));
}

/// log of the softmax over the last dimension. It is shifted by the row's maximum rounded down, which keeps exp in range as the maximum
/// itself does; and as floor is flat, no gradient flows through the shift (in exact arithmetic it has none).
ValueId MlpTraining::logSoftmax(Builder& builder, ValueId predictions) const
{
    const Shape shape = builder.type(predictions).shape;
    const ValueId shift = builder.unary(OpKind::Floor, builder.reduce(ReduceKind::Max, predictions, {1}));
    const ValueId shifted = builder.binary(OpKind::Subtract, predictions, builder.broadcast(shift, shape, {0}));
    const ValueId sum = builder.reduce(ReduceKind::Sum, builder.unary(OpKind::Exp, shifted), {1});
    return builder.binary(OpKind::Subtract, shifted, builder.broadcast(builder.unary(OpKind::Log, sum), shape, {0}));
}

ValueId MlpTraining::lossOf(Builder& builder, ValueId predictions, ValueId y) const
{
    ValueId terms;
    auto divisor = static_cast<double>(m_options.batch);
    if (m_model.loss == LossKind::CrossEntropy) {
        // The minus sign goes into the divisor.
        terms = builder.binary(OpKind::Multiply, y, logSoftmax(builder, predictions));
        divisor = -divisor;
    } else {
        const ValueId difference = builder.binary(OpKind::Subtract, predictions, y);
        terms = builder.binary(OpKind::Multiply, difference, difference);
        if (m_model.loss == LossKind::MeanSquared)
            divisor *= static_cast<double>(m_model.layers.back());
    }
    const ValueId total = builder.named(builder.reduce(ReduceKind::Sum, terms, {0, 1}), "loss.sum");
    return builder.binary(OpKind::Divide, total, builder.splat({m_lossType, {}}, divisor));
}

Function MlpTraining::lossFunction() const
{
    Function loss;
    loss.name = "loss";
    Builder builder(loss);
    const std::vector<ValueId> parameters = parameterArguments(builder);
    const auto [x, y] = batchArguments(builder);
    ValueId value = x;
    for (std::size_t i = 0; i < layerCount(m_model); ++i) {
        value = layer(builder, value, i, parameters);
        if (i + 1 == layerCount(m_model))
            break;
        if (m_model.activation == Activation::Tanh) {
            value = builder.unary(OpKind::Tanh, value);
        } else {
            const ValueId zero = builder.splat(TensorType(builder.type(value)), 0.0);
            value = builder.select(builder.compare(CompareDirection::Greater, value, zero), value, zero);
        }
        value = constrained(builder, value, fmt::format("act.layers.{}.activated", i));
    }
    const ValueId result = lossOf(builder, builder.convert(value, m_lossType), builder.convert(y, m_lossType));
    builder.named(result, "loss");
    loss[result].role = Role::Metric;
    builder.setResults({result, value}, {"loss", "predictions"});
    return loss;
}

ValueId MlpTraining::accuracy(Builder& builder, ValueId predictions, ValueId y) const
{
    const TensorType type = builder.type(predictions);
    const ValueId isLabel = builder.compare(
        CompareDirection::Equal, y, builder.broadcast(builder.reduce(ReduceKind::Max, y, {1}), type.shape, {0}));
    const ValueId lowest = builder.splat(TensorType(type), -std::numeric_limits<double>::infinity());
    const ValueId atLabel = builder.reduce(ReduceKind::Max, builder.select(isLabel, predictions, lowest), {1});
    const ValueId isRight = builder.compare(CompareDirection::Equal, atLabel, builder.reduce(ReduceKind::Max, predictions, {1}));
    const ValueId count
        = builder.named(builder.reduce(ReduceKind::Sum, builder.convert(isRight, m_lossType), {0}), "accuracy.count");
    const ValueId fraction
        = builder.binary(OpKind::Divide, count, builder.splat({m_lossType, {}}, static_cast<double>(m_options.batch)));
    builder.function()[fraction].role = Role::Metric;
    return builder.named(fraction, "accuracy");
}

/// Adds the update of one optimiser to a step function, tensor by tensor.
class Update {
public:
    Update(Builder& builder, const Optimizer& optimizer, ValueId oldStep)
        : m_b(builder)
        , m_optimizer(optimizer)
    {
        if (const auto* adam = std::get_if<AdamOptimizer>(&optimizer)) {
            // p - rate m^ / (sqrt(v^) + eps) with m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t): the scalars once for all tensors.
            newStep = m_b.binary(OpKind::Add, oldStep, scalar(1.0));
            m_rate = m_b.binary(OpKind::Divide, scalar(adam->learningRate), bias(adam->beta1));
            m_secondBias = m_b.binary(OpKind::Divide, scalar(1.0), bias(adam->beta2));
        }
    }

    /// The new parameter; `first` and `second` are replaced by the new moments where the optimiser has them.
    ValueId operator()(ValueId parameter, ValueId gradient, ValueId& first, ValueId& second)
    {
        m_type = m_b.type(parameter);
        if (const auto* sgd = std::get_if<SgdOptimizer>(&m_optimizer)) {
            if (first.valid())
                gradient = first = plus(times(splat(sgd->momentum), first), gradient);
            return m_b.binary(OpKind::Subtract, parameter, times(splat(sgd->learningRate), gradient));
        }
        const AdamOptimizer& adam = std::get<AdamOptimizer>(m_optimizer);
        first = plus(times(splat(adam.beta1), first), times(splat(1.0 - adam.beta1), gradient));
        second = plus(times(splat(adam.beta2), second), times(splat(1.0 - adam.beta2), times(gradient, gradient)));
        const ValueId root = m_b.unary(OpKind::Sqrt, times(second, spread(m_secondBias)));
        const ValueId direction = m_b.binary(OpKind::Divide, first, plus(root, splat(adam.epsilon)));
        return m_b.binary(OpKind::Subtract, parameter, times(spread(m_rate), direction));
    }

    ValueId newStep; ///< Adam's count; invalid for others

private:
    ValueId scalar(double value) { return m_b.splat({DType::F32, {}}, value); }
    ValueId bias(double beta)
    {
        return m_b.binary(OpKind::Subtract, scalar(1.0), m_b.binary(OpKind::Power, scalar(beta), newStep));
    }
    ValueId splat(double value) { return m_b.splat(m_type, value); }
    ValueId spread(ValueId value) { return m_b.broadcastScalar(m_b.convert(value, m_type.dtype), m_type.shape); }
    ValueId plus(ValueId a, ValueId b) { return m_b.binary(OpKind::Add, a, b); }
    ValueId times(ValueId a, ValueId b) { return m_b.binary(OpKind::Multiply, a, b); }

    Builder& m_b;
    const Optimizer& m_optimizer;
    TensorType m_type;
    ValueId m_rate;
    ValueId m_secondBias;
};

Function MlpTraining::stepFunction(const Differentiated& derivative) const
{
    Function step;
    step.name = "step";
    Builder builder(step);
    const std::vector<ValueId> parameters = parameterArguments(builder);
    const std::vector<std::string> stateNames = optimizerStateNames(m_model, m_options.optimizer);
    std::vector<ValueId> states;
    ValueId oldStep;
    for (const std::string& name : stateNames) {
        const bool isCount = name == "opt.step";
        const TensorType type = isCount ? TensorType{DType::F32, {}} : m_parameters[states.size() % m_parameters.size()].type;
        states.push_back(builder.argument(type, name, Role::OptimizerState));
        if (isCount)
            oldStep = states.back();
    }
    const auto [x, y] = batchArguments(builder);

    std::vector<ValueId> operands = parameters;
    operands.insert(operands.end(), {x, y});
    const std::vector<ValueId> forward = inlineCall(builder, derivative.forward, operands);
    builder.setPhase(Phase::Backward);
    std::vector<ValueId> backwardOperands(forward.begin() + 2, forward.end());
    backwardOperands.push_back(builder.splat({m_lossType, {}}, 1.0));
    const std::vector<ValueId> gradients = inlineCall(builder, derivative.backward, backwardOperands);

    std::vector<ValueId> results;
    std::vector<std::string> names;
    if (std::holds_alternative<NoOptimizer>(m_options.optimizer)) {
        results = gradients;
        for (const Parameter& parameter : m_parameters)
            names.push_back("grad." + parameter.name);
        for (std::size_t i = 0; i < parameters.size(); ++i)
            step.shardingGroups.push_back({parameters[i], gradients[i]});
    } else {
        builder.setPhase(Phase::Update);
        Update update(builder, m_options.optimizer, oldStep);
        std::vector<ValueId> newStates = states;
        const std::size_t moments = states.size() / parameters.size(); // 0, 1 or 2
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            std::vector<ValueId> group = {parameters[i], gradients[i]};
            ValueId none;
            ValueId& first = moments > 0 ? newStates[i] : none;
            ValueId& second = moments > 1 ? newStates[parameters.size() + i] : none;
            results.push_back(builder.named(update(parameters[i], gradients[i], first, second), "new." + m_parameters[i].name));
            step[results.back()].role = Role::Parameter;
            group.push_back(results.back());
            for (std::size_t moment = 0; moment < moments; ++moment) {
                group.push_back(states[moment * parameters.size() + i]);
                group.push_back(newStates[moment * parameters.size() + i]);
            }
            step.shardingGroups.push_back(std::move(group));
        }
        if (update.newStep.valid())
            newStates.back() = update.newStep;
        for (std::size_t i = 0; i < newStates.size(); ++i) {
            builder.named(newStates[i], "new." + stateNames[i]);
            step[newStates[i]].role = Role::OptimizerState;
        }
        results.insert(results.end(), newStates.begin(), newStates.end());
        for (const std::string& name : parameterNames(m_model))
            names.push_back("new." + name);
        for (const std::string& name : stateNames)
            names.push_back("new." + name);
        for (std::size_t i = 0; i < results.size(); ++i)
            step.donations.push_back({i, i});
    }
    builder.setPhase(Phase::Metrics);
    results.push_back(forward[0]);
    results.push_back(accuracy(builder, builder.convert(forward[1], m_lossType), builder.convert(y, m_lossType)));
    names.insert(names.end(), {"loss", "accuracy"});
    builder.setResults(std::move(results), std::move(names));
    return step;
}

Function MlpTraining::evaluateFunction(const Function& loss) const
{
    Function evaluate;
    evaluate.name = "evaluate";
    Builder builder(evaluate);
    std::vector<ValueId> operands = parameterArguments(builder);
    const auto [x, y] = batchArguments(builder);
    operands.insert(operands.end(), {x, y});
    const std::vector<ValueId> forward = inlineCall(builder, loss, operands);
    builder.setPhase(Phase::Metrics);
    const ValueId right = accuracy(builder, builder.convert(forward[1], m_lossType), builder.convert(y, m_lossType));
    builder.setResults({forward[0], right, forward[1]}, {"loss", "accuracy", "predictions"});
    return evaluate;
}

} // namespace

Result<Program> buildMlpTraining(const MlpModel& model, const TrainingOptions& options)
{
    assert(model.layers.size() >= 2 && options.batch >= 1 && isFloating(options.parameterType));
    return MlpTraining(model, options).build();
}

std::vector<std::pair<std::string, RandomKey>> initKeys(
    const MlpModel& model, const TrainingOptions& options, const RandomKey& key)
{
    const std::vector<RandomKey> layers = splitKey(key, layerCount(model) + 1, options.partitionableRandom);
    const std::size_t perLayer = model.bias ? 2 : 1;
    const std::vector<Parameter> parameters = parametersOf(model, options);
    std::vector<std::pair<std::string, RandomKey>> keys;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (isRandom(parameters[i].initializer))
            keys.emplace_back(
                "key." + parameters[i].name, splitKey(layers[1 + i / perLayer], 2, options.partitionableRandom)[i % perLayer]);
    }
    return keys;
}

const char* optimizerName(const Optimizer& optimizer)
{
    constexpr std::array kNames = {"sgd", "adam", "none"};
    static_assert(kNames.size() == std::variant_size_v<Optimizer>);
    return kNames[optimizer.index()];
}

std::vector<std::string> parameterNames(const MlpModel& model)
{
    std::vector<std::string> names;
    for (const Parameter& parameter : parametersOf(model, {}))
        names.push_back(parameter.name);
    return names;
}

std::vector<std::string> optimizerStateNames(const MlpModel& model, const Optimizer& optimizer)
{
    std::vector<std::string> prefixes;
    const bool isAdam = std::holds_alternative<AdamOptimizer>(optimizer);
    if (const auto* sgd = std::get_if<SgdOptimizer>(&optimizer); isAdam || (sgd != nullptr && sgd->momentum != 0.0))
        prefixes.emplace_back("opt.m.");
    if (isAdam)
        prefixes.emplace_back("opt.v.");
    std::vector<std::string> names;
    for (const std::string& prefix : prefixes) {
        for (const std::string& name : parameterNames(model))
            names.push_back(prefix + name);
    }
    if (isAdam)
        names.emplace_back("opt.step");
    return names;
}

void leaveShardingGroup(Function& function, ValueId value)
{
    // An optimiser state and what replaces it lie alike: they leave together.
    std::vector<ValueId> leaving = {value};
    for (const Donation& donation : function.donations) {
        const ValueId argument = function.arguments()[donation.argument];
        const ValueId result = function.results()[donation.result];
        if (function[argument].role == Role::OptimizerState && (argument == value || result == value))
            leaving = {argument, result};
    }
    bool hasLeft = false;
    for (auto& group : function.shardingGroups)
        hasLeft = std::erase_if(
                      group, [&](ValueId member) { return std::find(leaving.begin(), leaving.end(), member) != leaving.end(); })
                > 0
            || hasLeft;
    std::erase_if(function.shardingGroups, [](const auto& group) { return group.size() < 2; });
    if (hasLeft && leaving.size() > 1)
        function.shardingGroups.push_back(std::move(leaving));
}

} // namespace meshwright
