// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training_program.h"

#include "core/models/optimizer_update.h"
#include "core/program/builder.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

namespace meshwright {

std::vector<ModelParameter> modelParameters(std::span<const ModelArray> arrays, const TrainingOptions& options)
{
    std::vector<ModelParameter> parameters;
    for (const ModelArray& array : arrays) {
        const Initializer initializer = array.kind == ModelArray::Kind::Scale ? Initializer::Ones
            : array.kind == ModelArray::Kind::Bias                            ? options.biasInit
                                                                              : options.weightInit;
        parameters.push_back({array.name, {options.parameterType, array.shape}, array.fanIn, initializer});
    }
    return parameters;
}

Problems constraintProblems(std::span<const ModelArray> activations, const TrainingOptions& options)
{
    std::vector<std::string> names;
    for (const ModelArray& array : activations)
        names.push_back(array.name);
    Problems problems;
    for (const auto& [name, constraint] : options.constraints) {
        const auto found = std::find(names.begin(), names.end(), name);
        const Place place{.path = constraint.origin};
        if (found == names.end()) {
            problems.push_back(
                {"MW1312", fmt::format("there is no activation \"{}\" in the model", name), suggestion(name, names), place});
            continue;
        }
        const std::size_t rank = activations[static_cast<std::size_t>(found - names.begin())].shape.size();
        if (constraint.sharding.dims.size() != rank)
            problems.push_back({"MW1308",
                fmt::format(
                    "the sharding of {}: {} dimensions for a value of rank {}", name, constraint.sharding.dims.size(), rank),
                {}, place});
    }
    return problems;
}

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

Masks maskArguments(Builder& builder, MaskRows rows, std::int64_t masks)
{
    if (rows == MaskRows::None)
        return {};
    Masks made;
    made.keys = builder.argument({DType::U32, {masks, 2}}, "dropout.keys", Role::Input);
    if (rows == MaskRows::Part) {
        made.part = builder.argument({DType::S32, {}}, "dropout.part", Role::Input);
        made.isOn = builder.argument({DType::U32, {}}, "dropout.on", Role::Input);
    }
    return made;
}

ValueId dropped(Builder& builder, ValueId value, const Masks& masks, std::int64_t mask, const TrainingOptions& options)
{
    constexpr double kFractions = 8388608.0; // numbers that jax.random.uniform draws: multiples of 2^-23 below 1
    constexpr double kShift = 32 - 23;
    const TensorType type = builder.type(value);
    const TensorType words{DType::U32, type.shape};
    const double kept = 1.0 - options.dropout;
    const SliceAttributes row{{mask, 0}, {mask + 1, 2}, {1, 1}};
    const ValueId key = builder.reshape(builder.add(OpKind::Slice, {masks.keys}, row), {2});
    const Stretch stretch{masks.part.valid() ? options.pipelineMicrobatches : 0, masks.part};
    const ValueId bits = randomWords(builder, key, type.shape, options.partitionableRandom, stretch);
    const ValueId drawn = builder.binary(OpKind::ShiftRightLogical, bits, builder.splat(words, kShift));
    const double below = std::ceil(static_cast<double>(static_cast<float>(kept)) * kFractions);
    const ValueId stays = builder.compare(CompareDirection::Less, drawn, builder.splat(words, below));
    const ValueId scaled = builder.binary(OpKind::Multiply, value, builder.splat(type, 1.0 / kept));
    const ValueId made = builder.select(stays, scaled, builder.splat(type, 0.0));
    if (!masks.isOn.valid())
        return made;
    const ValueId isOn = builder.compare(CompareDirection::NotEqual, masks.isOn, builder.splat({DType::U32, {}}, 0.0));
    return builder.select(builder.broadcastScalar(isOn, type.shape), made, value);
}

DType updatedType(DType parameter, const Optimizer& optimizer)
{
    const UpdateChoices* update = updateChoices(optimizer);
    const bool hasMaster = update != nullptr && update->masters && byteSize(parameter) < byteSize(DType::F32);
    return hasMaster ? DType::F32 : parameter;
}

std::vector<std::string> optimizerStateNames(std::span<const std::string> parameters, const Optimizer& optimizer)
{
    std::vector<std::string> names;
    for (const ArrayName::Family family : stateFamilies(optimizer)) {
        for (const std::string& name : parameters)
            names.push_back(ArrayName{family, name}.text());
    }
    for (std::string& name : scalarStates(optimizer))
        names.push_back(std::move(name));
    return names;
}

ValueId convertedWhereMade(Builder& builder, ValueId gradient, DType dtype)
{
    Function& function = builder.function();
    const OpId loop = function[gradient].producer;
    const std::size_t result = function[gradient].index;
    const bool isRows
        = loop.valid() && function[loop].kind == OpKind::Repeat && result >= function[loop].as<RepeatAttributes>().carries;
    if (function[gradient].type.dtype == dtype)
        return gradient;
    if (!isRows) {
        const ValueId converted = builder.convert(gradient, dtype);
        std::swap(function[converted].role, function[gradient].role);
        return converted;
    }
    const BlockId body = function[loop].bodies.front();
    const BlockId before = builder.block();
    builder.setBlock(body);
    const ValueId row = function[body].results[result];
    const ValueId converted = convertedWhereMade(builder, row, dtype);
    std::swap(function[converted].name, function[row].name);
    builder.setBlock(before);
    function[body].results[result] = converted;
    function[gradient].type.dtype = dtype;
    return gradient;
}

ValueId sumOfSquares(Builder& builder, std::vector<ValueId> values, DType type)
{
    std::stable_sort(values.begin(), values.end(),
        [&](ValueId a, ValueId b) { return builder.type(a).shape.size() > builder.type(b).shape.size(); });
    ValueId sum;
    for (const ValueId value : values) {
        const ValueId wide = builder.convert(value, type);
        std::vector<std::size_t> dims(builder.type(wide).shape.size());
        std::iota(dims.begin(), dims.end(), std::size_t{0});
        ValueId squares = builder.binary(OpKind::Multiply, wide, wide);
        if (!dims.empty())
            squares = builder.reduce(ReduceKind::Sum, squares, dims);
        sum = sum.valid() ? builder.binary(OpKind::Add, sum, squares) : squares;
    }
    return sum;
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

} // namespace meshwright
