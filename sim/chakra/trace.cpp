// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/chakra/trace.h"

#include "core/support/find.h"
#include "sim/chakra/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace meshwright::sim {

namespace {

// Numbers of fields in et_def.proto.
constexpr std::uint32_t kMetadataVersion = 1;
constexpr std::uint32_t kMetadataAttribute = 2;
constexpr std::uint32_t kNodeId = 1;
constexpr std::uint32_t kNodeName = 2;
constexpr std::uint32_t kNodeType = 3;
constexpr std::uint32_t kNodeControl = 4;
constexpr std::uint32_t kNodeData = 5;
constexpr std::uint32_t kNodeStart = 6;
constexpr std::uint32_t kNodeDuration = 7;
constexpr std::uint32_t kNodeInputs = 8;
constexpr std::uint32_t kNodeAttribute = 10;
constexpr std::uint32_t kInputValues = 1;
constexpr std::uint32_t kAttributeName = 1;
constexpr std::uint32_t kDouble = 3;
constexpr std::uint32_t kFloat = 5;
constexpr std::uint32_t kInt32 = 7;
constexpr std::uint32_t kInt64 = 9;
constexpr std::uint32_t kUint32 = 11;
constexpr std::uint32_t kUint64 = 13;
constexpr std::uint32_t kBool = 27;
constexpr std::uint32_t kString = 29;

std::string attributeBytes(const ChakraAttribute& attribute)
{
    WireWriter writer;
    writer.bytes(kAttributeName, attribute.name);
    if (const auto* flag = std::get_if<bool>(&attribute.value))
        writer.varint(kBool, *flag ? 1 : 0);
    else if (const auto* small = std::get_if<std::int32_t>(&attribute.value))
        writer.varint(kInt32, static_cast<std::uint64_t>(std::int64_t{*small})); // negative ones are ten bytes long
    else if (const auto* whole = std::get_if<std::int64_t>(&attribute.value))
        writer.varint(kInt64, static_cast<std::uint64_t>(*whole));
    else if (const auto* count = std::get_if<std::uint64_t>(&attribute.value))
        writer.varint(kUint64, *count);
    else if (const auto* real = std::get_if<double>(&attribute.value))
        writer.fixed64(kDouble, *real);
    else
        writer.bytes(kString, std::get<std::string>(attribute.value));
    return writer.text();
}

/// Numbers of 0 and empty texts are left out, as the format has it.
std::string nodeBytes(const ChakraNode& node)
{
    WireWriter writer;
    const auto number = [&](std::uint32_t field, std::uint64_t value) {
        if (value != 0)
            writer.varint(field, value);
    };
    number(kNodeId, node.id);
    if (!node.name.empty())
        writer.bytes(kNodeName, node.name);
    number(kNodeType, static_cast<std::uint64_t>(node.type));
    const auto list = [&](std::uint32_t field, const std::vector<std::uint64_t>& values) {
        std::string packed;
        for (const std::uint64_t value : values) {
            WireWriter one;
            one.varint(1, value);
            packed += one.text().substr(1); // without its key
        }
        if (!values.empty())
            writer.bytes(field, packed);
    };
    list(kNodeControl, node.controlDependencies);
    list(kNodeData, node.dataDependencies);
    number(kNodeStart, node.startMicros);
    number(kNodeDuration, node.durationMicros);
    if (!node.inputs.empty()) {
        WireWriter inputs;
        inputs.bytes(kInputValues, node.inputs);
        writer.bytes(kNodeInputs, inputs.text());
    }
    for (const ChakraAttribute& attribute : node.attributes)
        writer.bytes(kNodeAttribute, attributeBytes(attribute));
    return writer.text();
}

bool readText(const WireField& field, std::string& to)
{
    to = std::string(field.bytes);
    return field.type == WireType::Bytes;
}

bool readNumber(const WireField& field, std::uint64_t& to)
{
    to = field.value;
    return field.type == WireType::Varint;
}

/// Numbers one after the other in one field, or a field for each.
bool readNumbers(const WireField& field, std::vector<std::uint64_t>& to)
{
    if (field.type == WireType::Varint) {
        to.push_back(field.value);
        return true;
    }
    WireReader packed(field.bytes);
    while (field.type == WireType::Bytes && !packed.atEnd()) {
        const auto value = packed.varint();
        if (!value)
            return false;
        to.push_back(*value);
    }
    return field.type == WireType::Bytes;
}

/// An attribute of a kind that is not known, a list say, is left out.
bool readAttribute(const WireField& outer, std::vector<ChakraAttribute>& to)
{
    if (outer.type != WireType::Bytes)
        return false;
    ChakraAttribute attribute;
    bool known = false;
    for (WireReader reader(outer.bytes); !reader.atEnd();) {
        const auto field = reader.field();
        if (!field)
            return false;
        const std::uint32_t number = field->number;
        const bool isVarint = field->type == WireType::Varint;
        const bool isReal = number == kDouble ? field->type == WireType::Fixed64 : field->type == WireType::Fixed32;
        if (number == kAttributeName) {
            if (!readText(*field, attribute.name))
                return false;
            continue;
        }
        known = true;
        if (number == kBool && isVarint)
            attribute.value = field->value != 0;
        else if (number == kInt32 && isVarint)
            attribute.value = static_cast<std::int32_t>(field->value & 0xffffffffU);
        else if (number == kInt64 && isVarint)
            attribute.value = static_cast<std::int64_t>(field->value);
        else if ((number == kUint64 || number == kUint32) && isVarint)
            attribute.value = field->value;
        else if ((number == kDouble || number == kFloat) && isReal)
            attribute.value = field->real();
        else if (number == kString && field->type == WireType::Bytes)
            attribute.value = std::string(field->bytes);
        else
            known = false;
    }
    if (known)
        to.push_back(std::move(attribute));
    return true;
}

bool readMetadata(std::string_view text, ChakraTrace& trace)
{
    trace.version.clear();
    for (WireReader reader(text); !reader.atEnd();) {
        const auto field = reader.field();
        const bool good = field
            && (field->number == kMetadataVersion         ? readText(*field, trace.version)
                    : field->number == kMetadataAttribute ? readAttribute(*field, trace.attributes)
                                                          : true);
        if (!good)
            return false;
    }
    return true;
}

/// Of metadata, whose type stands before its inputs; of all else it is only looked whether they can be read.
bool readInputs(const WireField& outer, ChakraNode& node)
{
    if (outer.type != WireType::Bytes)
        return false;
    for (WireReader reader(outer.bytes); !reader.atEnd();) {
        const auto field = reader.field();
        if (!field)
            return false;
        if (field->number == kInputValues && field->type == WireType::Bytes && node.type == ChakraNodeType::Metadata)
            node.inputs = std::string(field->bytes);
    }
    return true;
}

bool readNodeField(const WireField& field, ChakraNode& node)
{
    std::uint64_t type = 0;
    switch (field.number) {
    case kNodeId:
        return readNumber(field, node.id);
    case kNodeName:
        return readText(field, node.name);
    case kNodeType:
        if (!readNumber(field, type))
            return false;
        node.type = type <= static_cast<std::uint64_t>(ChakraNodeType::Collective) ? static_cast<ChakraNodeType>(type)
                                                                                   : ChakraNodeType::Metadata;
        return true;
    case kNodeControl:
        return readNumbers(field, node.controlDependencies);
    case kNodeData:
        return readNumbers(field, node.dataDependencies);
    case kNodeStart:
        return readNumber(field, node.startMicros);
    case kNodeDuration:
        return readNumber(field, node.durationMicros);
    case kNodeInputs:
        return readInputs(field, node);
    case kNodeAttribute:
        return readAttribute(field, node.attributes);
    default:
        return true;
    }
}

bool readNode(std::string_view text, ChakraNode& node)
{
    for (WireReader reader(text); !reader.atEnd();) {
        const auto field = reader.field();
        if (!field || !readNodeField(*field, node))
            return false;
    }
    return true;
}

Problem notATrace(const std::string& file, std::string message, const char* fix)
{
    return {"MW1766", std::move(message), fix, Place{file}};
}

Result<Done> checkGraph(const ChakraTrace& trace, const std::string& file)
{
    std::vector<std::uint64_t> ids;
    ids.reserve(trace.nodes.size());
    for (const ChakraNode& node : trace.nodes)
        ids.push_back(node.id);
    std::ranges::sort(ids);
    if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
        return notATrace(file, fmt::format("two nodes have the number {}", *twice), "give each a number of its own");
    for (const ChakraNode& node : trace.nodes) {
        for (const auto* list : {&node.controlDependencies, &node.dataDependencies}) {
            for (const std::uint64_t other : *list) {
                if (!std::ranges::binary_search(ids, other))
                    return notATrace(file, fmt::format("node {} waits for node {}, which is not there", node.id, other),
                        "write the whole trace");
            }
        }
    }
    return Done{};
}

const ChakraAttribute* find(const ChakraNode& node, std::string_view name)
{
    return findBy(node.attributes, name, &ChakraAttribute::name);
}

} // namespace

std::optional<double> ChakraNode::number(std::string_view attribute) const
{
    const ChakraAttribute* found = find(*this, attribute);
    if (found == nullptr)
        return std::nullopt;
    return std::visit(
        [](const auto& value) -> std::optional<double> {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
                return static_cast<double>(value);
            else
                return std::nullopt;
        },
        found->value);
}

std::optional<std::int64_t> ChakraNode::integer(std::string_view attribute) const
{
    const auto value = number(attribute);
    constexpr double kMost = 9.0e18; // below 2^63
    if (!value || !(std::abs(*value) <= kMost) || *value != std::floor(*value))
        return std::nullopt;
    const ChakraAttribute* found = find(*this, attribute);
    if (const auto* whole = std::get_if<std::int64_t>(&found->value))
        return *whole;
    if (const auto* count = std::get_if<std::uint64_t>(&found->value))
        return static_cast<std::int64_t>(*count);
    return static_cast<std::int64_t>(*value);
}

std::optional<std::string> ChakraNode::text(std::string_view attribute) const
{
    const ChakraAttribute* found = find(*this, attribute);
    const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
    return text == nullptr ? std::nullopt : std::optional(*text);
}

bool ChakraNode::flag(std::string_view attribute, bool absent) const
{
    const auto value = number(attribute);
    return value ? *value != 0.0 : absent;
}

std::string chakraNodeBytes(const ChakraNode& node)
{
    return nodeBytes(node);
}

std::string chakraAttributeField(const ChakraAttribute& attribute)
{
    WireWriter writer;
    writer.bytes(kNodeAttribute, attributeBytes(attribute));
    return writer.text();
}

void appendChakraDuration(std::string& node, std::int64_t picoseconds)
{
    constexpr std::int64_t kMicrosecond = 1'000'000;
    WireWriter writer;
    if (const std::int64_t micros = (picoseconds + kMicrosecond / 2) / kMicrosecond; micros > 0)
        writer.varint(kNodeDuration, static_cast<std::uint64_t>(micros));
    node += writer.text();
    node += chakraAttributeField({kChakraPicoseconds, picoseconds});
}

void appendChakraMessage(std::string& file, std::string_view message)
{
    WireWriter::appendDelimited(file, message);
}

std::string writeChakra(const ChakraTrace& trace)
{
    WireWriter metadata;
    if (!trace.version.empty())
        metadata.bytes(kMetadataVersion, trace.version);
    for (const ChakraAttribute& attribute : trace.attributes)
        metadata.bytes(kMetadataAttribute, attributeBytes(attribute));
    std::string bytes;
    WireWriter::appendDelimited(bytes, metadata.text());
    for (const ChakraNode& node : trace.nodes)
        WireWriter::appendDelimited(bytes, nodeBytes(node));
    return bytes;
}

Result<ChakraTrace> readChakra(std::string_view bytes, const std::string& file, std::size_t mostNodes)
{
    constexpr const char* kForm = "a Chakra trace (.et) begins with its metadata, then has node after node";
    ChakraTrace trace;
    WireReader reader(bytes);
    if (reader.atEnd())
        return notATrace(file, "the file is empty", kForm);
    for (std::size_t message = 0; !reader.atEnd(); ++message) {
        const std::size_t at = bytes.size() - reader.left();
        const auto text = reader.delimited();
        if (!text)
            return notATrace(file, fmt::format("the file ends in the middle of a message, at byte {}", at), kForm);
        if (message > mostNodes)
            return Problem{"MW1767", fmt::format("the traces have more than {} nodes in all", kMostChakraNodes),
                "give the traces of fewer ranks or of fewer steps", Place{file}};
        if (message == 0 && !readMetadata(*text, trace))
            return notATrace(file, "the first message is not metadata", kForm);
        if (message > 0 && !readNode(*text, trace.nodes.emplace_back()))
            return notATrace(file, fmt::format("message {} is not a node, at byte {}", message, at), kForm);
    }
    if (auto good = checkGraph(trace, file); !good)
        return good.error();
    return trace;
}

} // namespace meshwright::sim
