// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/yaml_text.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright {

namespace {

constexpr std::size_t kLongestLine = 110;

bool isNullWord(std::string_view text)
{
    return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// True when the text reads as itself without quotes.
bool isPlain(std::string_view text, bool inFlow)
{
    if (isNullWord(text) || isBlank(text.front()) || isBlank(text.back()) || text.back() == ':')
        return false;
    constexpr std::string_view kIndicators = ",[]{}#&*!|>'\"%@`";
    if (kIndicators.find(text.front()) != std::string_view::npos)
        return false;
    const bool startsMark = text.front() == '-' || text.front() == '?' || text.front() == ':';
    if (startsMark && (text.size() == 1 || isBlank(text[1]) || inFlow || text.starts_with("---")))
        return false;
    if (text.starts_with("..."))
        return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool separates = (text[i] == ':' && i + 1 < text.size() && isBlank(text[i + 1]))
            || (text[i] == '#' && i > 0 && isBlank(text[i - 1]));
        if (byte < 0x20U || byte == 0x7FU || separates)
            return false;
        if (inFlow && std::string_view(",[]{}").find(text[i]) != std::string_view::npos)
            return false;
    }
    return true;
}

std::string inSingleQuotes(std::string_view text)
{
    std::string out = "'";
    for (const char c : text)
        out += c == '\'' ? std::string("''") : std::string(1, c);
    return out + "'";
}

bool hasControls(std::string_view text)
{
    return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7F; });
}

std::string scalarText(const DocNode& scalar, const YamlStyle& style)
{
    const std::string& text = scalar.text;
    const bool special = isMoreThanText(text);
    if (special && !scalar.quoted)
        return text;
    const bool wantsQuotes = special || style.json || style.quote != '\0' || !isPlain(text, style.inFlow);
    if (!wantsQuotes)
        return text;
    // What was in single quotes stays so, unless quotes inside would have to be doubled.
    const bool single = style.quote == '\'' && text.find('\'') == std::string::npos && !hasControls(text);
    return single ? inSingleQuotes(text) : inQuotes(text);
}

std::string listText(const DocNode& list, const YamlStyle& inside)
{
    std::vector<std::string> parts;
    for (const DocEntry& entry : list.entries)
        parts.push_back(list.kind == DocNode::Kind::Map ? entryText(entry, inside) : valueText(entry.value, inside));
    return join(parts, ", ");
}

/// The entries of a collection, each on lines of its own behind `indent` spaces.
void writeBlock(const DocNode& node, std::size_t indent, std::string& out)
{
    const std::string margin(indent, ' ');
    for (const DocEntry& entry : node.entries) {
        const std::string name = node.kind == DocNode::Kind::Map ? keyText(entry.key) + ":" : std::string("-");
        const std::string line = valueText(entry.value, YamlStyle{});
        const bool ownLines = isCollection(entry.value)
            && (entry.key == "sharding"
                || (node.kind == DocNode::Kind::Map && margin.size() + name.size() + line.size() > kLongestLine));
        out += margin + name;
        if (ownLines) {
            out += '\n';
            writeBlock(entry.value, indent + 2, out);
        } else {
            out += fmt::format(" {}\n", line);
        }
    }
}

} // namespace

bool isBlank(char c)
{
    return c == ' ' || c == '\t';
}

bool isCollection(const DocNode& node)
{
    return (node.kind == DocNode::Kind::Map || node.kind == DocNode::Kind::List) && !node.entries.empty();
}

std::string inQuotes(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (static_cast<unsigned char>(c) < 0x20U || c == 0x7F)
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out + "\"";
}

std::string keyText(const std::string& name)
{
    const bool plain = !name.empty() && ((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'))
        && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*") == std::string::npos
        && !isMoreThanText(name);
    return plain ? name : inQuotes(name);
}

std::string namesText(const std::vector<std::string>& names)
{
    std::vector<std::string> keys;
    std::transform(names.begin(), names.end(), std::back_inserter(keys), keyText);
    return keys.empty() ? "null" : keys.size() == 1 ? keys.front() : fmt::format("[{}]", join(keys, ", "));
}

bool isMoreThanText(std::string_view scalar)
{
    constexpr std::array kWords = {"true", "True", "TRUE", "false", "False", "FALSE", "None"};
    if (isNullWord(scalar) || std::find(kWords.begin(), kWords.end(), scalar) != kWords.end())
        return true;
    if (scalar.front() == '+' || scalar.front() == '-')
        scalar.remove_prefix(1);
    if (scalar.starts_with('.'))
        scalar.remove_prefix(1);
    const bool numeric = !scalar.empty() && scalar.front() >= '0' && scalar.front() <= '9'
        && scalar.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
    const std::string lower = lowerCase(scalar);
    return numeric || lower == "nan" || lower == "inf" || lower == "infinity";
}

std::string valueText(const DocNode& node, const YamlStyle& style)
{
    YamlStyle inside = style;
    inside.inFlow = true;
    inside.quote = '\0';
    switch (node.kind) {
    case DocNode::Kind::Null:
        return "null";
    case DocNode::Kind::Scalar:
        return scalarText(node, style);
    case DocNode::Kind::List:
        return "[" + listText(node, inside) + "]";
    case DocNode::Kind::Map:
        return "{" + listText(node, inside) + "}";
    }
    return {};
}

std::string entryText(const DocEntry& entry, const YamlStyle& style)
{
    return fmt::format("{}: {}", style.json ? inQuotes(entry.key) : keyText(entry.key), valueText(entry.value, style));
}

std::string documentText(const DocNode& root)
{
    std::string out;
    if (root.kind == DocNode::Kind::Map && !root.entries.empty())
        writeBlock(root, 0, out);
    else
        out = valueText(root, YamlStyle{}) + "\n";
    return out;
}

} // namespace meshwright
