// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training_program.h"
#include "core/program/builder.h"

#include <fmt/format.h>

#include <cassert>
#include <limits>
#include <utility>

namespace meshwright {

namespace {

std::size_t layerCount(const MlpModel& model)
{
    return model.layers.size() - 1;
}

class MlpTraining {
public:
    MlpTraining(const MlpModel& model, const TrainingOptions& options)
        : m_model(model)
        , m_options(options)
        , m_parameters(modelParameters(mlpParameters(model), options))
        , m_lossType(byteSize(options.parameterType) < byteSize(DType::F32) ? DType::F32 : options.parameterType)
    {
    }

    Result<Program> build()
    {
        if (Problems problems = constraintProblems(mlpActivations(m_model, m_options.batch), m_options); !problems.empty())
            return problems;
        TrainedModel trained{m_parameters, {m_options.parameterType, {m_options.batch, m_model.layers.front()}},
            {m_options.parameterType, {m_options.batch, m_model.layers.back()}}, {}, m_lossType, {}, {}, {}, {}, {}, 0};
        if (m_options.dropout > 0.0)
            trained.masks = static_cast<std::int64_t>(layerCount(m_model)) - 1;
        trained.loss = lossFunction(trained, trained.masks > 0 ? MaskRows::All : MaskRows::None);
        if (trained.masks > 0)
            trained.evaluated = lossFunction(trained, MaskRows::None);
        if (trained.masks > 0 && m_options.pipelineMicrobatches > 0)
            trained.part = lossFunction(trained, MaskRows::Part);
        trained.accuracy = [this](Builder& builder, ValueId predictions, ValueId y) {
            return accuracy(builder, builder.convert(predictions, m_lossType), builder.convert(y, m_lossType));
        };
        return trainingProgram(trained, m_options);
    }

private:
    Function lossFunction(const TrainedModel& trained, MaskRows rows) const;
    ValueId layer(Builder& builder, ValueId input, std::size_t index, std::span<const ValueId> parameters) const;
    ValueId constrained(Builder& builder, ValueId value, const std::string& name) const;
    ValueId lossOf(Builder& builder, ValueId predictions, ValueId y) const;
    ValueId accuracy(Builder& builder, ValueId predictions, ValueId y) const;

    const MlpModel& m_model;
    const TrainingOptions& m_options;
    std::vector<ModelParameter> m_parameters;
    DType m_lossType;
};

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

Function MlpTraining::lossFunction(const TrainedModel& trained, MaskRows rows) const
{
    Function loss;
    loss.name = "loss";
    Builder builder(loss);
    const std::vector<ValueId> parameters = parameterArguments(builder, m_parameters);
    const auto [x, y] = batchArguments(builder, trained.x, trained.y);
    const Masks masks = maskArguments(builder, rows, trained.masks);
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
        if (masks.keys.valid())
            value = dropped(builder, value, masks, static_cast<std::int64_t>(i), m_options);
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

} // namespace

std::vector<ModelArray> mlpParameters(const MlpModel& model)
{
    std::vector<ModelArray> arrays;
    for (std::size_t i = 0; i < layerCount(model); ++i) {
        const auto number = static_cast<std::int64_t>(i);
        const std::int64_t in = model.layers[i];
        const std::int64_t out = model.layers[i + 1];
        arrays.push_back({fmt::format("layers.{}.w", i), {in, out},
            {{DimRole::LayerInputs, number}, {DimRole::LayerOutputs, number}}, in, ModelArray::Kind::Weight});
        if (model.bias)
            arrays.push_back(
                {fmt::format("layers.{}.b", i), {out}, {{DimRole::LayerOutputs, number}}, in, ModelArray::Kind::Bias});
    }
    return arrays;
}

std::vector<ModelArray> mlpActivations(const MlpModel& model, std::int64_t batch)
{
    std::vector<ModelArray> arrays;
    for (std::size_t i = 0; i < layerCount(model); ++i) {
        ModelArray array{fmt::format("act.layers.{}", i), {batch, model.layers[i + 1]},
            {DimRole::Batch, {DimRole::LayerOutputs, static_cast<std::int64_t>(i)}}, 1, ModelArray::Kind::Activation};
        arrays.push_back(array);
        array.name += ".activated";
        if (i + 1 < layerCount(model))
            arrays.push_back(std::move(array));
    }
    return arrays;
}

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
    const std::vector<ModelParameter> parameters = modelParameters(mlpParameters(model), options);
    std::vector<std::pair<std::string, RandomKey>> keys;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (isRandom(parameters[i].initializer))
            keys.emplace_back(
                "key." + parameters[i].name, splitKey(layers[1 + i / perLayer], 2, options.partitionableRandom)[i % perLayer]);
    }
    return keys;
}

} // namespace meshwright
