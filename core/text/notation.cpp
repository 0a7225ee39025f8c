// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/notation.h"

#include "core/support/text.h"
#include "core/text/number.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstring>

namespace meshwright {

static_assert(std::endian::native == std::endian::little, "hexadecimal constants are little-endian in the text");

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\')
            out += "\\\\";
        else if (byte >= 0x20 && byte < 0x7F && c != '"')
            out += c;
        else
            out += fmt::format("\\{:02X}", byte);
    }
    return out + "\"";
}

std::string symbolText(std::string_view name)
{
    const auto isPlain
        = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' || c == '-'; };
    const bool bare = !name.empty() && (std::isalpha(static_cast<unsigned char>(name.front())) != 0 || name.front() == '_')
        && std::all_of(name.begin(), name.end(), isPlain);
    return bare ? fmt::format("@{}", name) : "@" + quoted(name);
}

std::string tensorText(const TensorType& type)
{
    if (type.dtype == DType::Token)
        return "!stablehlo.token";
    std::string out = "tensor<";
    for (const std::int64_t size : type.shape)
        out += fmt::format("{}x", size);
    return out + dtypeName(type.dtype) + ">";
}

std::string axisListText(const AxisRefs& axes, const Mesh& mesh)
{
    std::vector<std::string> texts;
    for (const AxisRef& axis : axes)
        texts.push_back(axisText(axis, mesh));
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

std::string shardingText(const TensorSharding& sharding, const std::vector<NamedMesh>& meshes)
{
    const NamedMesh& named = meshes.at(static_cast<std::size_t>(sharding.mesh));
    if (named.isMaximal)
        return fmt::format("<{}, []>", symbolText(named.name));
    if (sharding.unreduced.empty() || sharding.unreducedKind == ReduceKind::Sum)
        return fmt::format("<{}, {}>", symbolText(named.name), shardyText(sharding, named.mesh));
    TensorSharding rest = sharding;
    rest.unreduced.clear();
    return fmt::format("<{}, {}, unreduced={}{}>", symbolText(named.name), shardyText(rest, named.mesh),
        reduceKindName(sharding.unreducedKind), axisListText(sharding.unreduced, named.mesh));
}

namespace {

template <typename Read>
void appendNested(std::string& out, const Shape& shape, std::size_t dim, std::size_t& next, const Read& read)
{
    if (dim == shape.size()) {
        read(out, next++);
        return;
    }
    out += '[';
    for (std::int64_t i = 0; i < shape[dim]; ++i) {
        if (i > 0)
            out += ", ";
        appendNested(out, shape, dim + 1, next, read);
    }
    out += ']';
}

std::uint64_t elementBits(const std::string& data, std::size_t index, std::size_t bytes)
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, data.data() + index * bytes, bytes);
    return bits;
}

/// The low bytes of `bits` as a number with the type's sign.
std::int64_t withSign(std::uint64_t bits, DType dtype)
{
    const auto shift = static_cast<unsigned>(64 - 8 * byteSize(dtype));
    if (isUnsigned(dtype) || dtype == DType::Pred)
        return static_cast<std::int64_t>(bits);
    return static_cast<std::int64_t>(bits << shift) >> shift;
}

void appendElement(std::string& out, const std::string& data, std::size_t index, DType dtype)
{
    if (isComplex(dtype)) {
        const DType real = realType(dtype);
        const auto half = static_cast<std::size_t>(byteSize(real));
        out += fmt::format("({},{})", floatText(floatFromBits(elementBits(data, 2 * index, half), real), real),
            floatText(floatFromBits(elementBits(data, 2 * index + 1, half), real), real));
        return;
    }
    const std::uint64_t bits = elementBits(data, index, static_cast<std::size_t>(byteSize(dtype)));
    if (isFloating(dtype))
        out += floatText(floatFromBits(bits, dtype), dtype);
    else
        appendIntegerText(out, withSign(bits, dtype), dtype);
}

} // namespace

std::string denseText(const ConstantAttributes& constant)
{
    const TensorType& type = constant.type;
    if (constant.data.isElided())
        return "dense_resource<__elided__>";
    std::string out = "dense<";
    if (const auto* value = std::get_if<double>(&constant.data.value)) {
        out += floatText(*value, type.dtype);
    } else if (const auto* integer = std::get_if<std::int64_t>(&constant.data.value)) {
        if (isFloating(type.dtype))
            out += floatText(static_cast<double>(*integer), type.dtype);
        else
            appendIntegerText(out, *integer, type.dtype);
    } else {
        const std::string& data = **std::get_if<std::shared_ptr<const std::string>>(&constant.data.value);
        const auto bytes = static_cast<std::size_t>(byteSize(type.dtype));
        const std::size_t count = data.size() / bytes;
        constexpr std::size_t kLongestList = 100; // MLIR's default
        if (count == 0)
            return "dense<>";
        if (isComplex(type.dtype) && count == 1) { // a splat
            appendElement(out, data, 0, type.dtype);
        } else if ((count > kLongestList && type.dtype != DType::Pred) || type.shape.empty()) {
            constexpr std::string_view kDigits = "0123456789ABCDEF";
            out.reserve(out.size() + 2 * data.size() + 8);
            out += "\"0x";
            for (const char c : data) {
                out += kDigits[static_cast<unsigned char>(c) >> 4];
                out += kDigits[static_cast<unsigned char>(c) & 15];
            }
            out += '"';
        } else {
            std::size_t next = 0;
            appendNested(out, type.shape, 0, next,
                [&](std::string& to, std::size_t index) { appendElement(to, data, index, type.dtype); });
        }
    }
    return out + ">";
}

void appendSingleLine(std::string& out, std::string_view text)
{
    bool inString = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        const auto isControl = [&](std::size_t i) { return static_cast<unsigned char>(text[i]) < 0x20; };
        if (inString && c == '\\' && at + 1 < text.size() && isControl(at + 1))
            continue; // what it escapes is written as a number
        if (inString && isControl(at)) {
            out += fmt::format("\\{:02X}", static_cast<unsigned char>(c));
            continue;
        }
        const bool isBlank = isControl(at);
        const bool isComment = !inString && text.substr(at).starts_with("//");
        if (!isBlank && !isComment) {
            const bool isEscaped = inString && c == '\\' && at + 1 < text.size();
            inString = inString != (c == '"');
            out += c;
            if (isEscaped)
                out += text[++at];
            continue;
        }
        if (isComment)
            at = std::min(text.find('\n', at), text.size());
        while (at + 1 < text.size() && (text[at + 1] == ' ' || isControl(at + 1)))
            ++at;
        out += ' ';
    }
}

std::string singleLine(std::string_view text)
{
    std::string out;
    appendSingleLine(out, trimmed(text));
    return std::string(trimmed(out));
}

std::string attributeKey(std::string_view name)
{
    const bool bare = !name.empty() && (std::isalpha(static_cast<unsigned char>(name.front())) != 0 || name.front() == '_')
        && std::all_of(name.begin(), name.end(),
            [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.'; });
    return bare ? std::string(name) : fmt::format("\"{}\"", name); // as it stood between its quotes
}

void AttributeList::add(const KeptAttributes& kept)
{
    for (const KeptAttribute& attribute : kept)
        add(attribute.name, attribute.text);
}

std::string AttributeList::text() const
{
    auto entries = m_entries;
    std::sort(entries.begin(), entries.end());
    std::string out = "{";
    for (const auto& [name, value] : entries) {
        if (out.size() > 1)
            out += ", ";
        out += attributeKey(name);
        if (!value.empty())
            out += " = " + value;
    }
    return out + "}";
}

namespace {

constexpr std::array kRoleKeywords = {"activation", "parameter", "gradient", "optimizer_state", "input", "metric"};

/// The enumerator, of the first `count`, whose name is `text`.
template <typename Enum, typename Name>
std::optional<Enum> findEnum(std::string_view text, std::size_t count, const Name& name)
{
    for (std::size_t i = 0; i < count; ++i) {
        if (text == name(static_cast<Enum>(i)))
            return static_cast<Enum>(i);
    }
    return std::nullopt;
}

} // namespace

const char* roleKeyword(Role role)
{
    return kRoleKeywords[static_cast<std::size_t>(role)];
}

std::optional<Role> parseRoleKeyword(std::string_view text)
{
    return findEnum<Role>(text, kRoleKeywords.size(), roleKeyword);
}

std::optional<Phase> parsePhaseKeyword(std::string_view text)
{
    return findEnum<Phase>(text, static_cast<std::size_t>(Phase::Metrics) + 1, phaseName);
}

std::optional<ReduceKind> parseReduceKindKeyword(std::string_view text)
{
    return findEnum<ReduceKind>(text, static_cast<std::size_t>(ReduceKind::Or) + 1, reduceKindName);
}

OpKind combinerOf(ReduceKind kind)
{
    constexpr std::array kKinds = {OpKind::Add, OpKind::Maximum, OpKind::Minimum, OpKind::Multiply, OpKind::And, OpKind::Or};
    return kKinds[static_cast<std::size_t>(kind)];
}

AxisRefs impliedAxes(OpKind kind, const CollectiveAttributes& attributes)
{
    AxisRefs axes;
    if (kind == OpKind::AllToAll) {
        for (const AxisMove& move : attributes.moves)
            axes.insert(axes.end(), move.axes.begin(), move.axes.end());
    } else if (kind != OpKind::AllReduce) {
        for (const AxisRefs& dim : attributes.perDim)
            axes.insert(axes.end(), dim.begin(), dim.end());
    }
    return axes;
}

std::string dialectName(OpKind kind)
{
    return opInfo(kind).hasDialect() ? opInfo(kind).text : std::string();
}

} // namespace meshwright
