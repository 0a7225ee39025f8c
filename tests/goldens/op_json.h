// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/transform.h"
#include "core/text/program_text.h"
#include "tests/goldens/golden_runner.h"

#include <optional>

/// Reads the ops that golden cases hold: each is written as MLIR text and read by our reader.
namespace meshwright::goldens {

/// Nothing for values that are not tensors (tokens).
inline std::optional<TensorType> typeOf(const Json& json)
{
    if (!json.contains("shape") || json.at("shape").is_null())
        return std::nullopt;
    const auto dtype = parseDType(json.value("dtype", std::string("f32")));
    return TensorType{dtype.value_or(DType::F32), json.at("shape").get<Shape>()};
}

inline std::string tensorText(const TensorType& type)
{
    return fmt::format("tensor<{}{}{}>", fmt::join(type.shape, "x"), type.shape.empty() ? "" : "x", dtypeName(type.dtype));
}

inline std::string typeList(const std::vector<TensorType>& types)
{
    std::vector<std::string> texts;
    for (const TensorType& type : types)
        texts.push_back(tensorText(type));
    return fmt::format("({})", fmt::join(texts, ", "));
}

/// A value of an attribute; what the cases have as text is MLIR's already.
inline std::string attributeText(const Json& value)
{
    if (value.is_string())
        return value.get<std::string>();
    if (value.is_array()) {
        std::vector<std::string> items;
        for (const Json& item : value)
            items.push_back(attributeText(item));
        return fmt::format("[{}]", fmt::join(items, ", "));
    }
    if (value.is_object()) {
        std::vector<std::string> entries;
        for (const auto& [key, item] : value.items())
            entries.push_back(fmt::format("{} = {}", key, attributeText(item)));
        return fmt::format("{}", fmt::join(entries, ", "));
    }
    return value.dump();
}

/// The attributes of an op, by the names of the generic form.
/// `notes` come last.
inline std::string attributesText(const std::string& op, const Json& attrs, const Json& rule, const std::string& notes)
{
    const std::map<std::string, std::string> names
        = {{"concatenate.dim", "dimension"}, {"reverse.dims", "dimensions"}, {"broadcast_in_dim.dims", "broadcast_dimensions"},
            {"transpose.dims", "permutation"}, {"dynamic_slice.sizes", "slice_sizes"}, {"pad.low", "edge_padding_low"},
            {"pad.high", "edge_padding_high"}, {"pad.interior", "interior_padding"}, {"iota.dim", "iota_dimension"}};
    std::vector<std::string> entries;
    const auto add
        = [&](const std::string& name, const std::string& text) { entries.push_back(fmt::format("{} = {}", name, text)); };
    for (const auto& [key, value] : attrs.items()) {
        const auto renamed = names.find(op + "." + key);
        if (key == "ranges") {
            std::vector<std::vector<std::int64_t>> parts(3);
            for (const Json& range : value) {
                parts[0].push_back(range.at(0));
                parts[1].push_back(range.at(1));
                parts[2].push_back(range.size() > 2 ? range.at(2).get<std::int64_t>() : 1);
            }
            add("start_indices", fmt::format("array<i64: {}>", fmt::join(parts[0], ", ")));
            add("limit_indices", fmt::format("array<i64: {}>", fmt::join(parts[1], ", ")));
            add("strides", fmt::format("array<i64: {}>", fmt::join(parts[2], ", ")));
        } else if (key == "target") {
            add("call_target_name", fmt::format("\"{}\"", value.get<std::string>()));
        } else if (key == "dim_numbers") {
            add("dimension_numbers", fmt::format("#stablehlo.conv<{}>", value.get<std::string>()));
        } else if (value.is_object()) {
            add(key, fmt::format("#stablehlo.{}<{}>", op, attributeText(value)));
        } else if (key != "window" && key != "reducer") {
            add(renamed == names.end() ? key : renamed->second, attributeText(value));
        }
    }
    if (rule.is_string())
        add("sdy.sharding_rule", fmt::format("#sdy.op_sharding_rule<{}>", rule.get<std::string>()));
    if (!notes.empty())
        entries.push_back(notes);
    return entries.empty() ? std::string() : fmt::format(" {{{}}}", fmt::join(entries, ", "));
}

/// Blocks that combine elements, as many as the op needs; a case says of them at most the name of the op that combines.
inline std::string regionsText(
    const std::string& op, const Json& attrs, const std::vector<TensorType>& operands, std::size_t results)
{
    const bool combines
        = op == "reduce" || op == "reduce_window" || op == "scatter" || op == "all_reduce" || op == "reduce_scatter";
    if (!combines && op != "select_and_scatter" && op != "sort")
        return {};
    // Several arrays combine by different ops, so that no rule takes them for a sum, unless the case names the op.
    const std::string named = attrs.value("reducer", std::string());
    const auto block = [&](const char* combiner) {
        std::vector<std::string> arguments;
        std::vector<std::string> lines;
        std::vector<std::string> made;
        std::vector<TensorType> types;
        for (std::size_t side = 0; side < 2; ++side) {
            for (std::size_t i = 0; i < results; ++i)
                arguments.push_back(fmt::format("%b{}: {}", side * results + i, tensorText({operands[i].dtype, {}})));
        }
        for (std::size_t i = 0; i < results; ++i) {
            const TensorType type{operands[i].dtype, {}};
            const std::string name = !named.empty() ? named : i % 2 == 0 ? combiner : "maximum";
            lines.push_back(fmt::format("%r{} = stablehlo.{} %b{}, %b{} : {}\n", i, name, i, results + i, tensorText(type)));
            made.push_back(fmt::format("%r{}", i));
            types.push_back(type);
        }
        return fmt::format("{{\n^bb0({}):\n{}\"stablehlo.return\"({}) : {} -> ()\n}}", fmt::join(arguments, ", "),
            fmt::join(lines, ""), fmt::join(made, ", "), typeList(types));
    };
    const auto compare = [&](std::size_t arguments) {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < arguments; ++i)
            names.push_back(fmt::format("%c{}: {}", i, tensorText({operands[i / 2].dtype, {}})));
        return fmt::format(
            "{{\n^bb0({}):\n%p = stablehlo.compare LT, %c0, %c1 : ({}, {}) -> tensor<i1>\n\"stablehlo.return\"(%p) : "
            "(tensor<i1>) -> ()\n}}",
            fmt::join(names, ", "), tensorText({operands[0].dtype, {}}), tensorText({operands[0].dtype, {}}));
    };
    if (op == "sort")
        return fmt::format(" ({})", compare(2 * results));
    if (op == "select_and_scatter")
        return fmt::format(" ({}, {})", compare(2), block("add"));
    return fmt::format(" ({})", block("add"));
}

/// `"stablehlo.name"(%a, %b) ({ .. }) {.., notes} : (types) -> (types)`.
inline std::string opText(const std::string& name, const Json& attrs, const Json& rule, const std::vector<std::string>& operands,
    const std::vector<TensorType>& operandTypes, const std::vector<TensorType>& resultTypes, const std::string& notes = {})
{
    if (name == "propagation_barrier")
        return fmt::format("sdy.propagation_barrier {} allowed_direction={} : {}", operands.front(),
            attrs.at("allowed_direction").get<std::string>(), tensorText(resultTypes.front()));
    const std::string own = name.find('.') == std::string::npos ? "stablehlo." + name : name;
    if (name == "convolution" && attrs.contains("window")) { // its window is in its own form
        Json rest = attrs;
        rest.erase("window");
        rest.erase("dim_numbers");
        return fmt::format("{}({}) dim_numbers = {}, window = {}{} : {} -> {}", own, fmt::join(operands, ", "),
            attrs.at("dim_numbers").get<std::string>(), attrs.at("window").get<std::string>(),
            attributesText(name, rest, rule, notes), typeList(operandTypes), tensorText(resultTypes.front()));
    }
    if (name == "dot_general") {
        const auto lists = [&](const char* key) {
            return attrs.contains(key)
                ? fmt::format(", {} = {} x {}", key, attributeText(attrs.at(key).at(0)), attributeText(attrs.at(key).at(1)))
                : std::string();
        };
        return fmt::format("{} {}{}{}{} : {} -> {}", own, fmt::join(operands, ", "), lists("batching_dims"),
            lists("contracting_dims"), attributesText(name, Json::object(), rule, notes), typeList(operandTypes),
            tensorText(resultTypes.front()));
    }
    return fmt::format("\"{}\"({}){}{} : {} -> {}", own, fmt::join(operands, ", "),
        regionsText(name, attrs, operandTypes, resultTypes.size()), attributesText(name, attrs, rule, notes),
        typeList(operandTypes), typeList(resultTypes));
}

/// How a value is named in the text: `%0#1` is the second result of an op that makes two.
inline std::string valueName(const std::string& name)
{
    std::string made = "%v" + name;
    std::replace(made.begin(), made.end(), '#', '_');
    return made;
}

/// Constants that reductions start with: identities of addition, so that a reduction is one op.
inline std::string startText(const std::string& name, const TensorType& type)
{
    return fmt::format("{} = stablehlo.constant dense<{}> : {}\n", name, isFloating(type.dtype) ? "0.0" : "0", tensorText(type));
}

} // namespace meshwright::goldens
