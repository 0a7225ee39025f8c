// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/function_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

void FunctionWriter::lowerOther(const Op& op, LineRegion& region)
{
    const auto& other = op.as<OtherAttributes>();
    const std::size_t own = op.operands.size() - other.captures;
    Line line{{}, textsOf(op.operands, own), 0, 0, NameHint::Number, {}};
    const std::size_t dot = other.name.find('.');
    const std::string dialect = other.name.substr(0, dot == std::string::npos ? 0 : dot);
    for (const BlockId body : op.bodies)
        line.regions.push_back(lowerBody(op, body, m_function[body].arguments.size() - other.captures,
            dialect.empty() || dialect == "chlo" ? "stablehlo.return" : dialect + ".return"));
    if (const KeptAttribute* verbatim = findAttribute(other.attributes, {}))
        line.text = other.name + verbatim->text;
    else if (auto pretty = otherText(op, other, line))
        line.text = *std::move(pretty);
    else
        line.text = genericText(op, other);
    line.text += locationOf(op);
    addLine(region, op, std::move(line));
}

std::string FunctionWriter::genericText(const Op& op, const OtherAttributes& other) const
{
    AttributeList properties;
    AttributeList attributes = attributesOf(op);
    for (const KeptAttribute& attribute : other.attributes)
        (attribute.isProperty ? properties : attributes).add(attribute.name, attribute.text);
    const std::size_t own = op.operands.size() - other.captures;
    std::string text = fmt::format("\"{}\"({})", other.name, uses(own));
    if (!properties.empty())
        text += fmt::format(" <{}>", properties.text());
    if (!op.bodies.empty())
        text += fmt::format(" ({})", fmt::join(std::vector<std::string_view>(op.bodies.size(), kLabelled), ", "));
    return fmt::format("{}{} : {}", text, attributes.optionalText(), functional(op, own));
}

std::optional<std::string> FunctionWriter::otherText(const Op& op, const OtherAttributes& other, Line& line) const
{
    const std::size_t own = op.operands.size() - other.captures;
    const bool isStableHlo = other.name.starts_with("stablehlo.");
    const OtherClass known = otherClass(other);
    std::vector<std::string_view> shown; // attributes that the form itself has
    std::string text;
    std::string types = functional(op, own);
    const auto textOf = [&](const char* key) {
        const KeptAttribute* attribute = findAttribute(other.attributes, key);
        return attribute == nullptr ? std::string() : attribute->text;
    };
    const auto integers
        = [&](const char* key) { return fmt::format("[{}]", fmt::join(integersAt(other.attributes, key), ", ")); };
    const auto has = [&](std::initializer_list<const char*> keys) {
        shown.assign(keys.begin(), keys.end());
        return std::all_of(
            keys.begin(), keys.end(), [&](const char* key) { return findAttribute(other.attributes, key) != nullptr; });
    };
    if (op.kind == OpKind::VariadicReduce && isStableHlo && op.bodies.size() == 1 && has({"dimensions"})) {
        reduceText(op, other, line, text);
        return fmt::format("{}{} : {}{}", text, restOf(op, other, shown), types, reducerText(op, line));
    }
    if (!op.bodies.empty() || op.results.empty() || (known != OtherClass::Elementwise && !isStableHlo))
        return std::nullopt;
    if (op.kind == OpKind::CustomCall && has({"call_target_name"})) {
        text = fmt::format("{} {}({})", other.name, symbolText(callTarget(other)), uses(own));
    } else if (op.kind == OpKind::Fft && has({"fft_type", "fft_length"})) {
        text = fmt::format(
            "{} {}, type = {}, length = {}", other.name, kUse, wordAt(other.attributes, "fft_type"), integers("fft_length"));
    } else if (op.kind == OpKind::Cholesky && has({"lower"})) {
        text = fmt::format("{} {}, lower = {}", other.name, kUse, textOf("lower"));
        types = tensorText(type(op.results.front()));
    } else if (op.kind == OpKind::RngBitGenerator && has({"rng_algorithm"})) {
        text = fmt::format("{} {}, algorithm = {}", other.name, kUse, wordAt(other.attributes, "rng_algorithm"));
    } else if (op.kind == OpKind::Rng && has({"rng_distribution"})) {
        text = fmt::format("{} {}, distribution = {}", other.name, uses(own), wordAt(other.attributes, "rng_distribution"));
    } else if (op.kind == OpKind::Convolution && has({"dimension_numbers"})) {
        text = convolutionText(other, shown);
    } else if (op.kind == OpKind::BitcastRegroup) {
        text = fmt::format("{} {}", other.name, kUse);
    } else if (known == OtherClass::Elementwise && other.attributes.empty() && own > 0 && own < 4) {
        text = fmt::format("{} {}", other.name, uses(own));
        types = isStableHlo ? sameOrFunctional(op)
            : own == 1      ? fmt::format("{} -> {}", tensorText(type(op.operands.front())), tensorText(type(op.results.front())))
                            : types;
    } else {
        return std::nullopt;
    }
    return fmt::format("{}{} : {}", text, restOf(op, other, shown), types);
}

std::string FunctionWriter::restOf(const Op& op, const OtherAttributes& other, const std::vector<std::string_view>& shown) const
{
    AttributeList attributes = attributesOf(op);
    for (const KeptAttribute& attribute : other.attributes) {
        if (std::find(shown.begin(), shown.end(), attribute.name) == shown.end())
            attributes.add(attribute.name, attribute.text);
    }
    return attributes.optionalText();
}

void FunctionWriter::reduceText(const Op& op, const OtherAttributes& other, Line& line, std::string& text) const
{
    const std::size_t count = op.results.size();
    std::vector<std::string> pairs(count, fmt::format("({0} init: {0})", kUse));
    text = fmt::format("{}{} across dimensions = [{}]", other.name, fmt::join(pairs, ", "),
        fmt::join(integersAt(other.attributes, "dimensions"), ", "));
    line.operands = interleaved({line.operands.begin(), line.operands.begin() + static_cast<std::ptrdiff_t>(count)},
        {line.operands.begin() + static_cast<std::ptrdiff_t>(count), line.operands.end()});
}

std::string FunctionWriter::reducerText(const Op& op, Line& line) const
{
    const LineRegion& block = line.regions.front();
    const std::size_t count = op.results.size();
    std::string text = "\n  reducer";
    for (std::size_t i = 0; i < count; ++i) {
        text += fmt::format("({0}: {1}, {0}: {2}) ", kUse, block.types[i], block.types[count + i]);
        line.operands.insert(line.operands.end(), {block.arguments[i], block.arguments[count + i]});
    }
    return fmt::format("{} {}", text, kBlock);
}

std::string FunctionWriter::convolutionText(const OtherAttributes& other, std::vector<std::string_view>& shown)
{
    const std::string numbers = findAttribute(other.attributes, "dimension_numbers")->text;
    const std::size_t open = numbers.find('<');
    const std::size_t from = open == std::string::npos ? 0 : open + 1;
    std::vector<std::string> window;
    const auto add = [&](const char* key, const char* name, const auto& format) {
        const auto integers = integersAt(other.attributes, key);
        if (!integers.empty()) {
            window.push_back(fmt::format("{} = [{}]", name, fmt::join(format(integers), ", ")));
            shown.push_back(key);
        }
    };
    const auto plain
        = [](std::span<const std::int64_t> integers) { return std::vector<std::int64_t>(integers.begin(), integers.end()); };
    const auto pairs = [](std::span<const std::int64_t> integers) {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i + 1 < integers.size(); i += 2)
            texts.push_back(fmt::format("[{}, {}]", integers[i], integers[i + 1]));
        return texts;
    };
    const auto truths = [](std::span<const std::int64_t> integers) {
        std::vector<std::string> texts;
        for (const std::int64_t integer : integers)
            texts.push_back(integer != 0 ? "true" : "false");
        return texts;
    };
    add("window_strides", "stride", plain);
    add("padding", "pad", pairs);
    add("lhs_dilation", "lhs_dilate", plain);
    add("rhs_dilation", "rhs_dilate", plain);
    add("window_reversal", "reverse", truths);
    return fmt::format("{}({}) dim_numbers = {}, window = {{{}}}", other.name, uses(2),
        numbers.substr(from,
            numbers.rfind('>') == std::string::npos || open == std::string::npos ? std::string::npos : numbers.rfind('>') - from),
        fmt::join(window, ", "));
}

} // namespace meshwright
