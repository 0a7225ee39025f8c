// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training_program.h"

#include "core/program/builder.h"
#include "core/program/transform.h"

#include <algorithm>
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

class TrainingFunctions {
public:
    TrainingFunctions(const TrainedModel& model, const Optimizer& optimizer, bool partitionableRandom)
        : m_model(model)
        , m_optimizer(optimizer)
        , m_partitionableRandom(partitionableRandom)
        , m_names(namesOf(model.parameters))
        , m_stateNames(optimizerStateNames(m_names, optimizer))
    {
    }

    Result<Program> build() const
    {
        std::vector<std::size_t> wrt(m_model.parameters.size());
        std::iota(wrt.begin(), wrt.end(), std::size_t{0});
        auto derivative = differentiate(m_model.loss, wrt, {0}, m_model.again);
        if (!derivative)
            return derivative.error();
        Program program;
        program.functions.push_back(initFunction());
        program.functions.push_back(m_model.loss);
        program.functions.push_back(derivative->forward);
        program.functions.push_back(derivative->backward);
        program.functions.push_back(stepFunction(*derivative));
        program.functions.push_back(evaluateFunction());
        return program;
    }

private:
    TensorType stateType(std::size_t state) const
    {
        if (m_stateNames[state] == "opt.step")
            return {DType::F32, {}};
        return m_model.parameters[state % m_model.parameters.size()].type;
    }

    Function initFunction() const;
    Function stepFunction(const Differentiated& derivative) const;
    void addUpdates(Builder& builder, const std::vector<ValueId>& parameters, const std::vector<ValueId>& states,
        const std::vector<ValueId>& gradients, std::vector<ValueId>& results) const;
    Function evaluateFunction() const;

    const TrainedModel& m_model;
    const Optimizer& m_optimizer;
    bool m_partitionableRandom;
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
    for (const ModelParameter& parameter : m_model.parameters)
        keys.push_back(isRandom(parameter.initializer) ? builder.argument({DType::U32, {2}}, "key." + parameter.name, Role::Input)
                                                       : ValueId{});

    std::vector<ValueId> results;
    for (std::size_t i = 0; i < m_model.parameters.size(); ++i) {
        const ModelParameter& parameter = m_model.parameters[i];
        results.push_back(builder.named(
            initialized(builder, parameter.initializer, keys[i], parameter.type, parameter.fanIn, m_partitionableRandom),
            parameter.name));
        init[results.back()].role = Role::Parameter;
    }
    std::vector<std::string> names = m_names;
    for (std::size_t i = 0; i < m_stateNames.size(); ++i) {
        results.push_back(builder.named(builder.splat(stateType(i), 0.0), m_stateNames[i]));
        init[results.back()].role = Role::OptimizerState;
        names.push_back(m_stateNames[i]);
    }
    builder.setResults(std::move(results), std::move(names));
    return init;
}

Function TrainingFunctions::stepFunction(const Differentiated& derivative) const
{
    Function step;
    step.name = "step";
    Builder builder(step);
    const std::vector<ValueId> parameters = parameterArguments(builder, m_model.parameters);
    std::vector<ValueId> states;
    for (std::size_t i = 0; i < m_stateNames.size(); ++i)
        states.push_back(builder.argument(stateType(i), m_stateNames[i], Role::OptimizerState));
    const auto [x, y] = batchArguments(builder, m_model.x, m_model.y);

    std::vector<ValueId> operands = parameters;
    operands.insert(operands.end(), {x, y});
    const std::vector<ValueId> forward = inlineCall(builder, derivative.forward, operands);
    builder.setPhase(Phase::Backward);
    std::vector<ValueId> backwardOperands(forward.begin() + 2, forward.end());
    backwardOperands.push_back(builder.splat({m_model.lossType, {}}, 1.0));
    const std::vector<ValueId> gradients = inlineCall(builder, derivative.backward, backwardOperands);

    std::vector<ValueId> results;
    std::vector<std::string> names;
    if (std::holds_alternative<NoOptimizer>(m_optimizer)) {
        results = gradients;
        for (const std::string& name : m_names)
            names.push_back("grad." + name);
        for (std::size_t i = 0; i < parameters.size(); ++i)
            step.shardingGroups.push_back({parameters[i], gradients[i]});
    } else {
        builder.setPhase(Phase::Update);
        addUpdates(builder, parameters, states, gradients, results);
        for (const auto* list : {&m_names, &m_stateNames}) {
            for (const std::string& name : *list)
                names.push_back("new." + name);
        }
        for (std::size_t i = 0; i < results.size(); ++i)
            step.donations.push_back({i, i});
    }
    builder.setPhase(Phase::Metrics);
    results.push_back(forward[0]);
    results.push_back(m_model.accuracy(builder, forward[1], y));
    names.insert(names.end(), {"loss", "accuracy"});
    builder.setResults(std::move(results), std::move(names));
    return step;
}

/// Appends the new parameters, then the new states, to `results`.
void TrainingFunctions::addUpdates(Builder& builder, const std::vector<ValueId>& parameters, const std::vector<ValueId>& states,
    const std::vector<ValueId>& gradients, std::vector<ValueId>& results) const
{
    Function& step = builder.function();
    const bool hasCount = !m_stateNames.empty() && m_stateNames.back() == "opt.step";
    Update update(builder, m_optimizer, hasCount ? states.back() : ValueId{});
    std::vector<ValueId> newStates = states;
    const std::size_t moments = states.size() / parameters.size(); // 0, 1 or 2
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        std::vector<ValueId> group = {parameters[i], gradients[i]};
        ValueId none;
        ValueId& first = moments > 0 ? newStates[i] : none;
        ValueId& second = moments > 1 ? newStates[parameters.size() + i] : none;
        results.push_back(builder.named(update(parameters[i], gradients[i], first, second), "new." + m_names[i]));
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
        builder.named(newStates[i], "new." + m_stateNames[i]);
        step[newStates[i]].role = Role::OptimizerState;
    }
    results.insert(results.end(), newStates.begin(), newStates.end());
}

Function TrainingFunctions::evaluateFunction() const
{
    Function evaluate;
    evaluate.name = "evaluate";
    Builder builder(evaluate);
    std::vector<ValueId> operands = parameterArguments(builder, m_model.parameters);
    const auto [x, y] = batchArguments(builder, m_model.x, m_model.y);
    operands.insert(operands.end(), {x, y});
    const std::vector<ValueId> forward = inlineCall(builder, m_model.loss, operands);
    builder.setPhase(Phase::Metrics);
    const ValueId right = m_model.accuracy(builder, forward[1], y);
    const ValueId shown = m_model.shown ? m_model.shown(builder, forward[1]) : forward[1];
    builder.setResults({forward[0], right, shown}, {"loss", "accuracy", "predictions"});
    return evaluate;
}

} // namespace

std::vector<ValueId> parameterArguments(Builder& builder, std::span<const ModelParameter> parameters)
{
    std::vector<ValueId> arguments;
    for (const ModelParameter& parameter : parameters)
        arguments.push_back(builder.argument(parameter.type, parameter.name, Role::Parameter));
    return arguments;
}

std::pair<ValueId, ValueId> batchArguments(Builder& builder, const TensorType& x, const TensorType& y)
{
    const ValueId first = builder.argument(x, "x", Role::Input);
    return {first, builder.argument(y, "y", Role::Input)};
}

std::vector<std::string> optimizerStateNames(std::span<const std::string> parameters, const Optimizer& optimizer)
{
    std::vector<std::string> prefixes;
    const bool isAdam = std::holds_alternative<AdamOptimizer>(optimizer);
    if (const auto* sgd = std::get_if<SgdOptimizer>(&optimizer); isAdam || (sgd != nullptr && sgd->momentum != 0.0))
        prefixes.emplace_back("opt.m.");
    if (isAdam)
        prefixes.emplace_back("opt.v.");
    std::vector<std::string> names;
    for (const std::string& prefix : prefixes) {
        for (const std::string& name : parameters)
            names.push_back(prefix + name);
    }
    if (isAdam)
        names.emplace_back("opt.step");
    return names;
}

ValueId logSoftmax(Builder& builder, ValueId values)
{
    const Shape shape = builder.type(values).shape;
    const std::size_t last = shape.size() - 1;
    std::vector<std::size_t> rows(last);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    const ValueId shift = builder.unary(OpKind::Floor, builder.reduce(ReduceKind::Max, values, {last}));
    const ValueId shifted = builder.binary(OpKind::Subtract, values, builder.broadcast(shift, shape, rows));
    const ValueId sum = builder.reduce(ReduceKind::Sum, builder.unary(OpKind::Exp, shifted), {last});
    return builder.binary(OpKind::Subtract, shifted, builder.broadcast(builder.unary(OpKind::Log, sum), shape, rows));
}

Result<Program> trainingProgram(const TrainedModel& model, const Optimizer& optimizer, bool partitionableRandom)
{
    return TrainingFunctions(model, optimizer, partitionableRandom).build();
}

} // namespace meshwright
