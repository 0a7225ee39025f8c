// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"
#include "tests/goldens/golden_runner.h"

#include <optional>

/// Reads the ops that golden cases hold, as far as the program has them.
namespace meshwright::goldens {

/// Nothing for values that are no tensors (tokens).
inline std::optional<TensorType> typeOf(const Json& json)
{
    if (!json.contains("shape") || json.at("shape").is_null())
        return std::nullopt;
    const auto dtype = parseDType(json.value("dtype", std::string("f32")));
    return TensorType{dtype.value_or(DType::F32), json.at("shape").get<Shape>()};
}

struct OpParts {
    OpKind kind = OpKind::Add;
    OpAttributes attributes;
    std::vector<std::size_t> operands; ///< which of the operands our op takes
};

/// The op of our program that stands for a case's; nothing when there is none.
inline std::optional<OpParts> opOf(
    const std::string& name, const Json& attrs, const std::vector<TensorType>& operands, const std::vector<TensorType>& results)
{
    using Dims = std::vector<std::size_t>;
    OpParts parts;
    for (std::size_t i = 0; i < operands.size(); ++i)
        parts.operands.push_back(i);
    if (name == "dot") {
        parts.kind = OpKind::DotGeneral;
        DotAttributes dot;
        dot.lhsContracting = {operands[0].shape.size() - 1};
        dot.rhsContracting = {0};
        dot.resultType = results[0].dtype;
        parts.attributes = dot;
        return parts;
    }
    const auto kind = parseOpKind(name);
    if (!kind || isCollective(*kind) || results.size() != 1)
        return std::nullopt;
    parts.kind = *kind;
    switch (*kind) {
    case OpKind::Constant:
        parts.attributes = ConstantAttributes{results[0],
            {isFloating(results[0].dtype) ? decltype(ConstantData::value)(1.0) : decltype(ConstantData::value)(std::int64_t{1})}};
        return parts;
    case OpKind::BroadcastInDim:
        parts.attributes = BroadcastAttributes{results[0].shape, attrs.at("dims").get<Dims>()};
        return parts;
    case OpKind::Reshape:
        parts.attributes = ReshapeAttributes{results[0].shape};
        return parts;
    case OpKind::Transpose:
        parts.attributes = TransposeAttributes{attrs.at("dims").get<Dims>()};
        return parts;
    case OpKind::Reduce: // the initial value is an operand there, part of the kind here
        if (operands.size() != 2)
            return std::nullopt;
        parts.attributes = ReduceAttributes{ReduceKind::Sum, attrs.at("dimensions").get<Dims>()};
        parts.operands = {0};
        return parts;
    case OpKind::DotGeneral: {
        DotAttributes dot;
        dot.lhsContracting = attrs.at("contracting_dims").at(0).get<Dims>();
        dot.rhsContracting = attrs.at("contracting_dims").at(1).get<Dims>();
        if (attrs.contains("batching_dims")) {
            dot.lhsBatch = attrs.at("batching_dims").at(0).get<Dims>();
            dot.rhsBatch = attrs.at("batching_dims").at(1).get<Dims>();
        }
        dot.resultType = results[0].dtype;
        parts.attributes = dot;
        return parts;
    }
    case OpKind::Convert:
    case OpKind::BitcastConvert:
        if (operands[0].shape != results[0].shape)
            return std::nullopt;
        parts.attributes = ConvertAttributes{results[0].dtype};
        return parts;
    default:
        if (!isElementwise(*kind))
            return std::nullopt;
        return parts;
    }
}

} // namespace meshwright::goldens
