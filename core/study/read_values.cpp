// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/check_spec.h"
#include "core/study/study_reader.h"
#include "core/support/quantity.h"
#include "core/support/text.h"

namespace meshwright {

namespace {

bool isDigits(std::string_view text)
{
    if (text.starts_with('-') || text.starts_with('+'))
        text.remove_prefix(1);
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// True for what YAML, JSON, C and Python write for numbers that are none, and for numbers too large for a double.
bool isNotFinite(std::string_view text)
{
    if (text.starts_with('-') || text.starts_with('+'))
        text.remove_prefix(1);
    if (text.starts_with('.'))
        text.remove_prefix(1);
    const std::string lower = lowerCase(text);
    if (lower == "nan" || lower == "inf" || lower == "infinity")
        return true;
    const bool numeric
        = !lower.empty() && lower.find_first_not_of("0123456789.e+-") == std::string::npos && lower[0] >= '0' && lower[0] <= '9';
    return numeric && lower.find('e') != std::string::npos && lower.back() >= '0' && lower.back() <= '9' && !parseNumber(lower);
}

} // namespace

std::optional<std::int64_t> StudyReader::integer(const DocNode& node, const std::string& path)
{
    if (node.kind == DocNode::Kind::Scalar && !node.quoted) {
        if (const auto value = parseInteger(node.text.starts_with('+') ? std::string_view(node.text).substr(1) : node.text))
            return value;
        if (const auto value = parseCount(node.text)) // 4k, 1M
            return value;
        if (isDigits(node.text)) {
            report("MW1401", fmt::format("{} does not fit 64 bits", node.text), fmt::format("give at most {}", kLargestDimension),
                node.place(path));
            return std::nullopt;
        }
        if (isNotFinite(node.text)) {
            report("MW1424", fmt::format("\"{}\" is not a finite number", node.text), "give an integer", node.place(path));
            return std::nullopt;
        }
    }
    wrongKind(node, path, "an integer");
    if (node.kind == DocNode::Kind::Scalar && parseInteger(node.text))
        problems.back().fixSettings = {path + "=" + node.text}; // without its quotes
    return std::nullopt;
}

std::optional<double> StudyReader::number(const DocNode& node, const std::string& path)
{
    if (node.kind == DocNode::Kind::Scalar && !node.quoted) {
        if (const auto value = parseNumber(node.text.starts_with('+') ? std::string_view(node.text).substr(1) : node.text))
            return value;
        if (isNotFinite(node.text)) {
            report("MW1424", fmt::format("\"{}\" is not a finite number", node.text), "give a number such as 0.01",
                node.place(path));
            return std::nullopt;
        }
    }
    wrongKind(node, path, "a number");
    if (node.kind == DocNode::Kind::Scalar && parseNumber(node.text))
        problems.back().fixSettings = {path + "=" + node.text}; // without its quotes
    return std::nullopt;
}

std::optional<bool> StudyReader::truth(const DocNode& node, const std::string& path)
{
    if (node.kind == DocNode::Kind::Scalar && !node.quoted) {
        if (node.text == "true" || node.text == "True")
            return true;
        if (node.text == "false" || node.text == "False")
            return false;
    }
    wrongKind(node, path, "true or false");
    return std::nullopt;
}

std::optional<std::string> StudyReader::text(const DocNode& node, const std::string& path, const char* expected)
{
    if (node.kind == DocNode::Kind::Scalar)
        return node.text;
    wrongKind(node, path, expected);
    return std::nullopt;
}

std::optional<std::vector<std::int64_t>> StudyReader::integers(const DocNode& node, const std::string& path, const char* expected)
{
    if (node.kind != DocNode::Kind::List) {
        wrongKind(node, path, expected);
        return std::nullopt;
    }
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
        const std::string entryPath = fmt::format("{}[{}]", path, i);
        study.places.at[entryPath] = node.entries[i].value.place(entryPath);
        if (const auto value = integer(node.entries[i].value, entryPath))
            values.push_back(*value);
    }
    if (values.size() != node.entries.size())
        return std::nullopt;
    return values;
}

/// One entry of a spec, or what a logical axis stands for: null, a name, or a list of names.
std::optional<std::vector<std::string>> StudyReader::axesOf(const DocNode& node, const std::string& path)
{
    std::vector<std::string> axes;
    if (node.kind == DocNode::Kind::Null || (node.kind == DocNode::Kind::Scalar && !node.quoted && node.text == "None"))
        return axes;
    if (node.kind == DocNode::Kind::Scalar)
        return std::vector<std::string>{node.text};
    if (node.kind == DocNode::Kind::List) {
        for (const DocEntry& entry : node.entries) {
            if (entry.value.kind != DocNode::Kind::Scalar) {
                wrongKind(entry.value, path, "the name of a mesh axis");
                return std::nullopt;
            }
            axes.push_back(entry.value.text);
        }
        return axes;
    }
    wrongKind(node, path, "a mesh axis, a list of mesh axes, or null");
    return std::nullopt;
}

std::optional<PartitionSpec> StudyReader::spec(const DocNode& node, const std::string& path)
{
    study.places.at[path] = node.place(path);
    if (node.kind == DocNode::Kind::Scalar) {
        auto parsed = parseTypedSpec(node.text, study.mesh, study.deviceOrder);
        if (parsed)
            return *std::move(parsed);
        for (Problem problem : parsed.error()) {
            const int inside = std::max(0, problem.place.column - 1) + (node.quoted ? 1 : 0);
            problem.place = node.place(path);
            if (problem.place.line > 0)
                problem.place.column += inside;
            problems.push_back(std::move(problem));
        }
        return std::nullopt;
    }
    if (node.kind != DocNode::Kind::List) {
        wrongKind(node, path, "a PartitionSpec", "write \"P('data', None)\", or a list such as [data, null]; [] replicates");
        return std::nullopt;
    }
    PartitionSpec read;
    for (const DocEntry& entry : node.entries) {
        auto axes = axesOf(entry.value, path);
        if (!axes)
            return std::nullopt;
        read.dims.push_back(*std::move(axes));
    }
    return read;
}

std::optional<StudyReader::Choice> StudyReader::choice(
    const DocNode& node, const std::string& path, const std::vector<std::string>& kinds)
{
    if (node.kind == DocNode::Kind::Scalar) {
        if (std::find(kinds.begin(), kinds.end(), node.text) != kinds.end())
            return Choice{node.text, nullptr};
        unknownName(node, path, kinds);
        return std::nullopt;
    }
    Fields fields(*this, node, path);
    std::vector<Choice> given;
    for (const std::string& kind : kinds) {
        const DocNode* value = fields.take(kind.c_str());
        if (value != nullptr || (node.kind == DocNode::Kind::Map && node.find(kind) != nullptr))
            given.push_back({kind, value});
    }
    fields.close();
    if (node.kind != DocNode::Kind::Map)
        return std::nullopt;
    if (given.size() == 1)
        return given.front();
    if (given.empty() && !node.entries.empty())
        return std::nullopt; // the key that is there in its place is reported
    std::vector<std::string> names;
    for (const Choice& one : given)
        names.push_back(one.kind);
    report("MW1427",
        fmt::format("\"{}\" has {}", path, given.empty() ? std::string("no kind") : join(names, " and ") + " at once"),
        "give exactly one of: " + join(kinds, ", "), node.place(path));
    return std::nullopt;
}

} // namespace meshwright
