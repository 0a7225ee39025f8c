// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/shardy_text.h"
#include "core/support/checked.h"
#include "core/support/text.h"
#include "core/text/notation.h"
#include "core/text/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace meshwright {

namespace {

constexpr int kDeepestAttribute = 64;
using Kind = SyntaxAttribute::Kind;

int hexDigit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

} // namespace

std::string unescaped(std::string_view literal)
{
    std::string out;
    const std::string_view body = literal.substr(1, literal.size() - 2);
    for (std::size_t i = 0; i < body.size(); ++i) {
        if (body[i] != '\\' || i + 1 == body.size()) {
            out += body[i];
        } else if (i + 2 < body.size() && hexDigit(body[i + 1]) >= 0 && hexDigit(body[i + 2]) >= 0) {
            out += static_cast<char>(hexDigit(body[i + 1]) * 16 + hexDigit(body[i + 2]));
            i += 2;
        } else {
            const char c = body[++i];
            out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
    }
    return out;
}

bool Parser::parseType(SyntaxType& type)
{
    type.offset = m_token.offset;
    if (m_token.isWord("tensor") && m_lexer.peek() == '<')
        return parseTensor(type);
    if (m_token.kind == TokenKind::Type && m_token.text == "stablehlo.token") {
        static const TensorType kToken{DType::Token, {}};
        type.known = &kToken;
        advance();
        return true;
    }
    if (m_token.kind != TokenKind::Word && m_token.kind != TokenKind::Type)
        return expected("a type");
    std::size_t end = m_lexer.position();
    if (m_lexer.peek() == '<')
        end = balancedEnd(m_lexer.position());
    if (end == std::string_view::npos) {
        jump(m_lexer.text().size());
        return expected("'>'");
    }
    type.unsupported = m_lexer.text().substr(type.offset, end - type.offset);
    jump(end);
    return true;
}

/// `tensor<64x256xf32>`, character by character: a dimension list is not a sequence of tokens.
bool Parser::parseTensor(SyntaxType& type)
{
    const std::string_view text = m_lexer.text();
    const std::size_t open = text.find('<', m_lexer.position());
    const std::size_t close = std::min(text.find_first_of("<>", open + 1), text.size());
    const std::string_view body = text.substr(open + 1, close - open - 1);
    if (const auto found = m_types.find(body); found != m_types.end() && close < text.size() && text[close] == '>') {
        type.known = found->second;
        jump(close + 1);
        return true;
    }
    TensorType read;
    const char* const last = text.data() + text.size();
    const char* at = body.data();
    while (at != last && *at >= '0' && *at <= '9') {
        std::int64_t size = 0;
        const auto [end, error] = std::from_chars(at, last, size);
        if (error != std::errc())
            return m_problems.report("MW1322", static_cast<std::size_t>(at - text.data()), "the size does not fit 64 bits");
        read.shape.push_back(size);
        at = end;
        if (at == last || *at != 'x')
            break;
        ++at;
    }
    const char* word = at;
    const auto isNamePart = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    while (at != last && isNamePart(*at))
        ++at;
    if (at != last && *at == '<' && std::string_view(word, static_cast<std::size_t>(at - word)) == "complex") {
        ++at;
        while (at != last && isNamePart(*at))
            ++at;
        at += at != last && *at == '>' ? 1 : 0;
    }
    const std::string_view name(word, static_cast<std::size_t>(at - word));
    const auto dtype = parseDType(name);
    if (dtype && dtypeName(*dtype) == name && at != last && *at == '>') {
        read.dtype = *dtype;
        const auto elements = checkedProduct(read.shape);
        const std::size_t end = static_cast<std::size_t>(at - text.data());
        jump(end + 1);
        if (!elements || !checkedMultiply(*elements, byteSize(*dtype)))
            return m_problems.report("MW1322", type.offset, fmt::format("{} does not fit 64 bits", typeText(read)));
        m_module.types.push_back(std::move(read));
        type.known = &m_module.types.back();
        if (end == close)
            m_types.emplace(body, type.known);
        return true;
    }
    const std::size_t end = balancedEnd(open);
    if (end == std::string_view::npos || text.substr(open, end - open).find('\n') != std::string_view::npos) {
        jump(static_cast<std::size_t>(at - text.data()));
        return expected("an element type and '>'");
    }
    type.unsupported = text.substr(type.offset, end - type.offset);
    jump(end);
    return true;
}

bool Parser::parseAttribute(SyntaxAttribute& attribute, bool typed)
{
    const std::size_t start = m_token.offset;
    if (!parseAttributeValue(attribute, typed))
        return false;
    if (attribute.end > attribute.offset) // where an alias says what it stands for
        return true;
    attribute.offset = start;
    attribute.end = m_previousEnd;
    return true;
}

bool Parser::parseAttributeValue(SyntaxAttribute& attribute, bool typed)
{
    attribute.offset = m_token.offset;
    if (m_depth >= kDeepestAttribute)
        return m_problems.report(
            "MW1320", m_token.offset, fmt::format("attributes are nested more than {} deep", kDeepestAttribute));
    switch (m_token.kind) {
    case TokenKind::String:
        attribute.kind = Kind::String;
        attribute.text = unescaped(m_token.text);
        advance();
        return true;
    case TokenKind::Integer:
    case TokenKind::Float:
        return parseNumber(attribute, typed);
    case TokenKind::Symbol:
        attribute.kind = Kind::Symbol;
        return parseSymbol(attribute.text);
    case TokenKind::Word:
        return parseWordAttribute(attribute);
    case TokenKind::Hash:
        return parseHashAttribute(attribute);
    case TokenKind::Type: {
        SyntaxType type;
        attribute.kind = Kind::Other;
        return parseType(type);
    }
    default:
        break;
    }
    if (m_token.is('['))
        return parseList(attribute, ']');
    if (m_token.is('{'))
        return parseDictionary(attribute, '}');
    if (m_token.is('(')) { // a function's type
        SyntaxList<SyntaxType> types;
        attribute.kind = Kind::Other;
        return parseFunctionType(types, types);
    }
    if (m_token.is('<')) {
        if (m_lexer.peek() != '@' && !m_lexer.text().substr(m_lexer.position()).starts_with("mesh<"))
            return parseDictionary(attribute, '>');
        attribute.kind = Kind::Shardings;
        return parseSharding(attribute.shardings);
    }
    return expected("an attribute");
}

bool Parser::parseNumber(SyntaxAttribute& attribute, bool typed)
{
    attribute.kind = m_token.kind == TokenKind::Integer ? Kind::Integer : Kind::Float;
    if (attribute.kind == Kind::Integer) {
        const auto value = meshwright::parseInteger(m_token.text);
        attribute.integer = value.value_or(0);
        if (!value)
            attribute.kind = Kind::Other; // hexadecimal, or too large: bits of something that is not read here
    }
    advance();
    SyntaxType type;
    return !typed || !accept(':') || parseType(type);
}

bool Parser::parseWordAttribute(SyntaxAttribute& attribute)
{
    if (m_token.isWord("dense"))
        return parseDense(attribute);
    if (m_token.isWord("dense_resource"))
        return parseDense(attribute);
    if (m_token.isWord("array") && m_lexer.peek() == '<') { // array<i64: 1, 2>
        advance();
        advance();
        if (m_token.kind != TokenKind::Word)
            return expected("an element type");
        advance();
        if (m_token.is('>')) {
            attribute.kind = Kind::List;
            advance();
            return true;
        }
        return m_token.is(':') ? parseList(attribute, '>') : expected("':'");
    }
    if (m_token.isWord("tensor") || m_lexer.peek() == '<') { // a type, an affine map
        SyntaxType type;
        attribute.kind = Kind::Other;
        return parseType(type);
    }
    attribute.kind = m_token.text == "true" || m_token.text == "false" ? Kind::Bool
        : m_token.text == "unit"                                       ? Kind::Unit
                                                                       : Kind::Word;
    attribute.integer = m_token.text == "true" ? 1 : 0;
    attribute.text = m_token.text;
    advance();
    return true;
}

/// `#sdy.sharding<..>`, `#stablehlo<precision DEFAULT>`, `#stablehlo.dot<..>`, or anything else with a dialect's name.
bool Parser::parseHashAttribute(SyntaxAttribute& attribute)
{
    const Token name = m_token;
    if (m_lexer.peek() != '<') {
        advance();
        return parseAlias(attribute, name.text);
    }
    advance();
    if (name.text == "sdy.sharding") {
        attribute.kind = Kind::Shardings;
        return parseSharding(attribute.shardings);
    }
    if (name.text == "sdy.sharding_per_value") {
        attribute.kind = Kind::Shardings;
        advance();
        if (!expect('['))
            return false;
        while (!m_token.is(']')) {
            if (!parseSharding(attribute.shardings))
                return false;
            if (!accept(','))
                break;
        }
        return expect(']') && expect('>');
    }
    const std::size_t open = m_token.offset;
    const std::size_t end = balancedEnd(open);
    if (end == std::string_view::npos) {
        jump(m_lexer.text().size());
        return expected("'>'");
    }
    advance();
    const bool isList = m_token.isWord("axis_ref_list") || m_token.isWord("manual_axes");
    const bool areLists = m_token.isWord("list_of_axis_ref_lists") || m_token.isWord("all_to_all_param_list");
    const bool isEnumerator = (name.text == "stablehlo" || name.text == "sdy" || name.text == "mhlo" || name.text == "chlo")
        && m_token.kind == TokenKind::Word;
    if (name.text.starts_with("stablehlo.") && m_token.kind == TokenKind::Word && m_lexer.peek() == '=') {
        jump(open); // #stablehlo.gather<offset_dims = [1], ..>
        return parseDictionary(attribute, '>');
    }
    advance();
    if (isList)
        return parseAxes(attribute) && expect('>');
    if (areLists)
        return parseAxisLists(attribute) && expect('>');
    attribute.kind = Kind::Other;
    if (isEnumerator && m_token.kind == TokenKind::Word) {
        attribute.kind = Kind::Word;
        attribute.text = m_token.text;
    }
    jump(end);
    return true;
}

/// What an alias before the module stands for; of others (`#loc`) nothing but the name matters.
bool Parser::parseAlias(SyntaxAttribute& attribute, std::string_view name)
{
    attribute.kind = Kind::Other;
    const auto found = m_aliases.find(name);
    if (found == m_aliases.end() || m_inAlias)
        return true;
    const std::size_t after = m_previousEnd;
    m_inAlias = true;
    jump(found->second);
    const bool good = parseAttribute(attribute, true);
    m_inAlias = false;
    jump(after);
    return good;
}

bool Parser::parseList(SyntaxAttribute& attribute, char close)
{
    attribute.kind = Kind::List;
    ++m_depth;
    advance();
    while (!m_token.is(close)) {
        if (!parseAttribute(attribute.items.emplace_back(), true))
            return false;
        if (!accept(','))
            break;
    }
    --m_depth;
    return expect(close);
}

bool Parser::parseDictionary(SyntaxAttribute& attribute, char close)
{
    attribute.kind = Kind::Dictionary;
    ++m_depth;
    advance();
    while (!m_token.is(close)) {
        if (m_token.kind != TokenKind::Word && m_token.kind != TokenKind::String)
            return expected("an attribute's name");
        attribute.keys.push_back(m_token.kind == TokenKind::String ? unescaped(m_token.text) : std::string(m_token.text));
        attribute.items.emplace_back();
        attribute.items.back().offset = m_token.offset;
        advance();
        if (accept('=') && !parseAttribute(attribute.items.back(), true))
            return false;
        if (!accept(','))
            break;
    }
    --m_depth;
    return expect(close);
}

/// `dense<..> : tensor<..>`; the data are read when the type is known. Those of `dense_resource<..>` stand at the end of the text, or nowhere.
bool Parser::parseDense(SyntaxAttribute& attribute)
{
    const std::string_view text = m_lexer.text();
    const bool isElsewhere = m_token.isWord("dense_resource");
    attribute.kind = Kind::Dense;
    if (m_lexer.peek() != '<') {
        advance();
        return expected("'<'");
    }
    const std::size_t start = text.find('<', m_lexer.position()) + 1;
    std::size_t from = text.find_first_not_of(" \n\t", start);
    if (from != std::string_view::npos && text[from] == '"')
        from = text.find('"', from + 1);
    const std::size_t end = from == std::string_view::npos ? from : text.find('>', from);
    if (end == std::string_view::npos) {
        jump(text.size());
        return expected("'>' after the constant's data");
    }
    jump(end + 1);
    SyntaxType type;
    if (!expect(':') || !parseType(type))
        return false;
    if (!type.unsupported.empty() || type.type().dtype == DType::Token) { // tensor<2xindex>, in layouts of custom calls
        attribute.kind = Kind::Other;
        attribute.text = type.unsupported.empty() ? "a token" : type.unsupported;
        return true;
    }
    attribute.constant.type = type.type();
    if (isElsewhere) {
        attribute.constant.data.value = std::shared_ptr<const std::string>();
        const std::string_view blob = resource(trimmed(text.substr(start, end - start)));
        constexpr std::size_t kHead = 10; // 0x and the four bytes of the alignment
        if (blob.size() <= kHead)
            return true; // left out of the text
        const std::string body = fmt::format("\"0x{}\"", blob.substr(kHead));
        return parseDenseBody(body, start, attribute.constant.type, attribute.constant.data, m_problems);
    }
    return parseDenseBody(text.substr(start, end - start), start, attribute.constant.type, attribute.constant.data, m_problems);
}

/// The hexadecimal digits that the resources at the end of the text have for a name; empty when they have none.
std::string_view Parser::resource(std::string_view name)
{
    const std::string_view text = m_lexer.text();
    if (!m_hasResources) {
        m_hasResources = true;
        std::size_t at = text.rfind("{-#");
        while (at != std::string_view::npos && (at = text.find("\"0x", at)) != std::string_view::npos) {
            const std::size_t end = text.find('"', at + 1);
            const std::size_t colon = text.find_last_not_of(" \t\n", at - 1);
            if (end == std::string_view::npos || colon == 0 || text[colon] != ':')
                break;
            const std::size_t before = text.find_last_of(" \t\n{,", colon - 1);
            m_resources.emplace(text.substr(before + 1, colon - before - 1), text.substr(at + 1, end - at - 1));
            at = end + 1;
        }
    }
    const auto found = m_resources.find(name);
    return found == m_resources.end() ? std::string_view() : found->second;
}

bool Parser::parseAxes(SyntaxAttribute& axes)
{
    axes.kind = Kind::Axes;
    axes.offset = m_token.offset;
    if (!expect('{'))
        return false;
    while (!m_token.is('}')) {
        if (m_token.kind != TokenKind::String)
            return expected("an axis in quotes");
        SyntaxAttribute& axis = axes.items.emplace_back();
        axis.offset = m_token.offset;
        axis.text = unescaped(m_token.text);
        advance();
        if (accept(':') && !(expect('(') && parseInteger(axis.integer) && expect(')') && parseInteger(axis.second)))
            return false;
        if (!accept(','))
            break;
    }
    return expect('}');
}

AxisRefs resolvedAxes(const SyntaxAttribute& axes, const Mesh& mesh, TextProblems& problems)
{
    AxisRefs refs;
    for (const SyntaxAttribute& axis : axes.items) {
        const auto index = mesh.findAxis(axis.text);
        if (!index) {
            problems.report("MW1330", axis.offset, fmt::format("the mesh has no axis \"{}\"", axis.text),
                suggestion(axis.text, mesh.axisNames()));
            continue;
        }
        AxisRef ref = wholeAxis(mesh, *index);
        if (axis.integer != 0 || axis.second != 0) {
            const auto product = checkedMultiply(axis.integer, axis.second);
            if (axis.integer < 1 || axis.second < 2 || !product || ref.size % *product != 0) {
                problems.report("MW1330", axis.offset,
                    fmt::format(
                        "({}){} does not divide the axis \"{}\" of size {}", axis.integer, axis.second, axis.text, ref.size),
                    fmt::format("the product of the two numbers must divide {}, and the second is at least 2", ref.size));
                continue;
            }
            ref.pre = axis.integer;
            ref.size = axis.second;
        }
        refs.push_back(ref);
    }
    return refs;
}

/// Problems of a part of the text that begins at `start`; those without a column are of the whole, at `offset`.
bool Parser::reportPart(const Problems& problems, std::size_t start, std::size_t offset)
{
    for (const Problem& problem : problems) {
        const int column = problem.place.column;
        m_problems.report(Problems{problem}, column > 1 ? start + static_cast<std::size_t>(column - 1) : offset);
    }
    return false;
}

bool Parser::parseMesh(std::string name, std::size_t offset, std::int32_t& index)
{
    if (m_token.kind == TokenKind::Hash && m_token.text == "sdy.mesh")
        advance();
    std::string_view inside;
    if (!parseAngles(inside))
        return false;
    auto read = parseShardyMesh(inside);
    if (!read)
        return reportPart(read.error(), static_cast<std::size_t>(inside.data() - m_lexer.text().data()), offset);
    auto& [mesh, isMaximal] = *read;
    if (!m_module.isOurs && !isMaximal) { // ids in Shardy's text are those of a program's devices
        std::vector<DeviceId> ids = mesh.deviceOrder();
        std::sort(ids.begin(), ids.end());
        if (ids.back() != mesh.deviceCount() - 1)
            return m_problems.report("MW1115", offset,
                fmt::format("the ids of {} devices go from {} to {}", ids.size(), ids.front(), ids.back()),
                fmt::format("list each of 0 to {} once", mesh.deviceCount() - 1));
    }
    if (name.empty()) { // written where it is used: one of the meshes, or a new one
        for (std::size_t i = 0; i < m_module.meshes.size(); ++i) {
            if (m_module.meshes[i].mesh == mesh && m_module.meshes[i].isMaximal == isMaximal) {
                index = static_cast<std::int32_t>(i);
                return true;
            }
        }
        name = fmt::format("inlined_mesh_{}", m_module.meshes.size());
    }
    index = static_cast<std::int32_t>(m_module.meshes.size());
    m_module.meshes.push_back({std::move(name), std::move(mesh), isMaximal});
    return true;
}

/// What stands in angle brackets, which are stepped over.
bool Parser::parseAngles(std::string_view& inside)
{
    if (!m_token.is('<'))
        return expected("'<'");
    const std::size_t start = m_token.offset + 1;
    const std::size_t end = balancedEnd(m_token.offset);
    if (end == std::string_view::npos) {
        jump(m_lexer.text().size());
        return expected("'>'");
    }
    inside = m_lexer.text().substr(start, end - 1 - start);
    jump(end);
    return true;
}

bool Parser::parseShardingMesh(std::int32_t& mesh)
{
    const std::size_t offset = m_token.offset;
    if (acceptWord("mesh") || m_token.kind == TokenKind::Hash)
        return parseMesh({}, offset, mesh);
    std::string name;
    if (!parseSymbol(name))
        return false;
    if (!hasMesh(name, mesh))
        readMeshesBehind(name);
    if (hasMesh(name, mesh))
        return true;
    std::vector<std::string> names;
    for (const NamedMesh& named : m_module.meshes)
        names.push_back(named.name);
    return m_problems.report("MW1330", offset, fmt::format("unknown mesh @{}", name), suggestion(name, names));
}

bool Parser::hasMesh(std::string_view name, std::int32_t& mesh) const
{
    for (std::size_t i = 0; i < m_module.meshes.size(); ++i) {
        if (m_module.meshes[i].name == name) {
            mesh = static_cast<std::int32_t>(i);
            return true;
        }
    }
    return false;
}

/// Reads meshes that stand behind their use, up to the one of this name. They are stepped over when their turn comes.
void Parser::readMeshesBehind(std::string_view name)
{
    constexpr std::string_view kOp = "sdy.mesh ";
    const std::string_view text = m_lexer.text();
    const std::size_t here = m_token.offset;
    const std::size_t before = m_previousEnd;
    std::int32_t mesh = 0;
    for (std::size_t at = std::max(here, m_meshesReadTo); (at = text.find(kOp, at)) != std::string_view::npos; at += kOp.size()) {
        const std::size_t line = text.find_last_of("\n", at) + 1; // npos + 1 is the start of the text
        if (!trimmed(text.substr(line, at - line)).empty() || m_meshEnds.contains(at))
            continue;
        jump(at);
        parseMeshOp();
        m_meshEnds[at] = m_previousEnd;
        m_meshesReadTo = at + kOp.size();
        if (hasMesh(name, mesh))
            break;
    }
    jump(here);
    m_previousEnd = before;
}

/// `<@mesh, [{"data"}, {?}], replicated={"x"}, unreduced={"y"}>`: the mesh here, the rest as every notation of Shardy's.
bool Parser::parseSharding(std::vector<TensorSharding>& shardings)
{
    if (m_token.kind == TokenKind::Hash && m_token.text == "sdy.sharding")
        advance();
    if (!m_token.is('<'))
        return expected("'<'");
    const std::size_t offset = m_token.offset;
    const std::size_t end = balancedEnd(offset);
    if (end == std::string_view::npos) {
        jump(m_lexer.text().size());
        return expected("'>'");
    }
    advance();
    std::int32_t mesh = 0;
    if (!parseShardingMesh(mesh))
        return false;
    if (!m_token.is(','))
        return expected("','");
    const std::size_t start = m_token.offset + 1;
    const NamedMesh& named = m_module.meshes[static_cast<std::size_t>(mesh)];
    auto sharding = parseShardy(m_lexer.text().substr(start, end - 1 - start), named.mesh, named.isMaximal);
    jump(end);
    if (!sharding)
        return reportPart(sharding.error(), start, offset);
    if (!m_module.isOurs) { // Shardy drops axes of size 1 too
        for (DimSharding& dim : sharding->dims)
            std::erase_if(dim.axes, [](const AxisRef& axis) { return axis.size == 1; });
    }
    sharding->mesh = mesh;
    shardings.push_back(*std::move(sharding));
    return true;
}

} // namespace meshwright
