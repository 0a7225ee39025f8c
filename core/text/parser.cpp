// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/parser.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright {

namespace {

/// `ml_program.global` rather than a misspelt `func.fun`: not of a dialect whose ops are known at this place.
bool isDialect(std::string_view name)
{
    return !name.starts_with("func.") && !name.starts_with("sdy.") && !name.starts_with("stablehlo.");
}

} // namespace

const SyntaxAttribute* SyntaxAttribute::find(std::string_view key) const
{
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] == key)
            return &items[i];
    }
    return nullptr;
}

const SyntaxAttribute* SyntaxOp::find(std::string_view key) const
{
    for (const SyntaxEntry& entry : attributes) {
        if (entry.name == key)
            return &entry.value;
    }
    return nullptr;
}

const SyntaxAttribute* SyntaxOp::findEither(std::string_view pretty, std::string_view generic) const
{
    const SyntaxAttribute* attribute = find(pretty);
    return attribute != nullptr ? attribute : find(generic);
}

bool Parser::expected(std::string_view what)
{
    const char bad
        = m_token.kind == TokenKind::Bad && !m_token.text.empty() ? m_token.text.front() : ' '; // a sigil alone has no text
    if (bad == '"')
        return m_problems.report("MW1320", m_token.offset, "the string has no end on its line");
    if (static_cast<unsigned char>(bad) < 0x20)
        return m_problems.report("MW1320", m_token.offset,
            fmt::format("expected {}, found a byte of value {}", what, static_cast<int>(bad)), "the file is not text");
    const bool isEnd = m_token.kind == TokenKind::End;
    return m_problems.report("MW1320", m_token.offset,
        fmt::format("expected {}, found {}{}{}", what, isEnd ? "" : "'", tokenName(m_token), isEnd ? "" : "'"));
}

bool Parser::expect(char punctuation)
{
    return accept(punctuation) || expected(fmt::format("'{}'", punctuation));
}

bool Parser::expectWord(std::string_view word)
{
    return acceptWord(word) || expected(fmt::format("'{}'", word));
}

bool Parser::accept(char punctuation)
{
    if (!m_token.is(punctuation))
        return false;
    advance();
    return true;
}

bool Parser::acceptWord(std::string_view word)
{
    if (!m_token.isWord(word))
        return false;
    advance();
    return true;
}

void Parser::jump(std::size_t position)
{
    m_lexer.setPosition(position);
    advance();
}

/// The position behind the bracket that closes the one at `open`, minding strings, comments and arrows; npos when nothing does.
std::size_t Parser::balancedEnd(std::size_t open) const
{
    const std::string_view text = m_lexer.text();
    std::size_t depth = 0;
    for (std::size_t at = open; at < text.size(); ++at) {
        switch (text[at]) {
        case '"':
            for (++at; at < text.size() && text[at] != '"'; ++at)
                at += text[at] == '\\' ? 1U : 0U;
            break;
        case '/':
            if (at + 1 < text.size() && text[at + 1] == '/')
                at = std::min(text.find('\n', at), text.size());
            break;
        case '(':
        case '[':
        case '{':
        case '<':
            ++depth;
            break;
        case '>':
            if (at > 0 && text[at - 1] == '-')
                break;
            [[fallthrough]];
        case ')':
        case ']':
        case '}':
            if (--depth == 0)
                return at + 1;
            break;
        default:
            break;
        }
    }
    return std::string_view::npos;
}

/// Goes on behind the op that starts at `start`: at the next line outside its braces, or before the brace that closes its region.
void Parser::recover(std::size_t start)
{
    const std::string_view text = m_lexer.text();
    std::size_t depth = 0;
    std::size_t at = start;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '"') {
            const std::size_t stop = text.find_first_of("\"\n", at + 1);
            at = std::min(stop, text.size() - 1);
        } else if (c == '/' && at + 1 < text.size() && text[at + 1] == '/') {
            at = std::min(text.find('\n', at), text.size()) - 1;
        } else if (c == '{') {
            ++depth;
        } else if (c == '}') {
            if (depth == 0)
                break;
            --depth;
        } else if (c == '\n' && depth == 0) {
            const std::size_t next = text.find_first_not_of(" \t\r\n", at);
            const std::string_view rest = text.substr(std::min(next, text.size()));
            if (!rest.starts_with("cond ") && !rest.starts_with("cond{") && !rest.starts_with("reducer"))
                break;
        }
    }
    jump(std::min(at, text.size()));
}

/// The first line behind `from` that begins a function, a mesh or an alias; the end of the text when none does.
std::size_t Parser::nextTopLevel(std::size_t from) const
{
    const std::string_view text = m_lexer.text();
    constexpr std::array<std::string_view, 5> kBegins = {"func.func", "\"func.func\"", "sdy.mesh", "\"sdy.mesh\"", "#"};
    for (std::size_t line = text.find('\n', from); line != std::string_view::npos; line = text.find('\n', line + 1)) {
        const std::size_t first = std::min(text.find_first_not_of(" \t\r\n", line), text.size());
        const std::string_view rest = text.substr(first);
        if (std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view begins) { return rest.starts_with(begins); }))
            return first;
    }
    return text.size();
}

/// The end of the line, not looking into brackets and strings; npos when a bracket has no end.
std::size_t Parser::lineEnd(std::size_t from) const
{
    const std::string_view text = m_lexer.text();
    std::size_t at = from;
    while (at < text.size() && text[at] != '\n') {
        const bool opens = text[at] == '(' || text[at] == '[' || text[at] == '{' || text[at] == '<';
        if (text[at] == '"') {
            at = std::min(text.find_first_of("\"\n", at + 1), text.size());
            if (at == text.size() || text[at] == '\n')
                break; // nothing closes it on its line
        }
        at = opens ? balancedEnd(at) : at + 1;
    }
    return at;
}

/// `loc(..)`, if there is one.
bool Parser::parseLocation(std::string_view* location)
{
    if (!m_token.isWord("loc"))
        return true;
    const std::size_t start = m_token.offset;
    advance();
    if (!m_token.is('('))
        return expected("'('");
    const std::size_t end = balancedEnd(m_token.offset);
    if (end == std::string_view::npos) {
        jump(m_lexer.text().size());
        return expected("')'");
    }
    if (location != nullptr)
        *location = m_lexer.text().substr(start, end - start);
    jump(end);
    return true;
}

bool Parser::parseSymbol(std::string& name)
{
    if (m_token.kind != TokenKind::Symbol)
        return expected("a name with '@'");
    name = m_token.text.front() == '"' ? unescaped(m_token.text) : std::string(m_token.text);
    advance();
    return true;
}

bool Parser::parseInteger(std::int64_t& value)
{
    if (m_token.kind != TokenKind::Integer)
        return expected("an integer");
    const auto parsed = meshwright::parseInteger(m_token.text);
    if (!parsed)
        return m_problems.report("MW1320", m_token.offset, fmt::format("{} does not fit 64 bits", m_token.text));
    value = *parsed;
    advance();
    return true;
}

SyntaxModule Parser::parseModule()
{
    advance();
    while (m_token.kind == TokenKind::Hash)
        keepLines(m_module.aliases);
    bool braced = false;
    bool generic = false;
    if (!parseModuleHeader(braced, generic))
        return std::move(m_module);
    while (m_token.kind != TokenKind::End && !(braced && m_token.is('}')) && !m_problems.full()) {
        const std::size_t start = m_token.offset;
        if (!parseTopLevel(braced ? m_module.rest : m_module.trailer) && m_token.offset <= start
            && m_token.kind != TokenKind::End)
            jump(start + 1);
    }
    const bool isCut = m_token.kind == TokenKind::End && !m_problems.empty(); // what was skipped had the brace
    if (braced && !isCut && (generic ? skipGenericTail() : expect('}')))
        parseLocation();
    while (m_token.kind == TokenKind::Hash || m_lexer.text().substr(m_token.offset).starts_with("{-#"))
        keepLines(m_module.trailer);
    if (m_token.kind != TokenKind::End && m_problems.empty())
        expected("the end of the text");
    return std::move(m_module);
}

bool Parser::parseModuleHeader(bool& braced, bool& generic)
{
    generic = m_token.kind == TokenKind::String && m_token.text == "\"builtin.module\"";
    if (generic) {
        braced = true;
        return parseGenericModule();
    }
    if (!m_token.isWord("module") && !m_token.isWord("builtin.module"))
        return true;
    advance();
    if (m_token.kind == TokenKind::Symbol && !parseSymbol(m_module.name))
        return false;
    if (acceptWord("attributes")) {
        if (!parseAttribute(m_module.attributes, true))
            return false;
        m_module.isOurs = m_module.attributes.find("mw.version") != nullptr;
    }
    braced = true;
    return expect('{');
}

/// Keeps an alias, a resource or an op that is not a function, with its line end. False when it has no end.
bool Parser::keepLines(std::string& into)
{
    const std::string_view text = m_lexer.text();
    const std::size_t start = m_token.offset;
    std::size_t end = lineEnd(start);
    if (text.substr(start).starts_with("{-#")) {
        const std::size_t close = text.find("#-}", start);
        end = close == std::string_view::npos ? text.size() : close + 3;
    }
    if (end == std::string_view::npos) {
        jump(text.size());
        return expected("a closing bracket");
    }
    if (m_token.kind == TokenKind::Hash) {
        const std::size_t value = text.find('=', start);
        m_aliases.emplace(m_token.text, value == std::string_view::npos ? end : std::min(value + 1, end));
    }
    into += trimmed(text.substr(start, end - start));
    into += '\n';
    jump(end);
    return true;
}

bool Parser::parseTopLevel(std::string& aliases)
{
    const std::size_t start = m_token.offset;
    bool good = false;
    if (m_token.kind == TokenKind::Hash) {
        return keepLines(aliases);
    }
    const bool isGeneric = m_token.kind == TokenKind::String;
    const std::string_view name = isGeneric ? m_token.text.substr(1, m_token.text.size() - 2)
        : m_token.kind == TokenKind::Word   ? m_token.text
                                            : std::string_view();
    if (const auto known = m_meshEnds.find(start); known != m_meshEnds.end()) {
        jump(known->second);
        return true;
    }
    if (name == "sdy.mesh") {
        good = isGeneric ? parseGenericMesh() : parseMeshOp();
    } else if (name == "func.func") {
        SyntaxFunction function;
        good = isGeneric ? parseGenericFunction(function) : parseFunction(function);
        if (good && function.isDeclaration)
            m_module.rest += std::string(m_lexer.text().substr(function.start, function.end - function.start)) + "\n";
        else if (good)
            m_module.functions.push_back(std::move(function));
    } else if (name.find('.') != std::string_view::npos && isDialect(name)) {
        return keepLines(m_module.rest);
    } else {
        expected("'func.func' or 'sdy.mesh'");
    }
    if (!good) {
        m_depth = 0;
        jump(nextTopLevel(std::max(start + 1, m_token.offset)));
    }
    return good;
}

/// False, and said, when a mesh has the name already.
bool Parser::isNewMesh(std::string_view name, std::size_t offset)
{
    for (const NamedMesh& other : m_module.meshes) {
        if (other.name == name)
            return m_problems.report("MW1324", offset, fmt::format("the mesh @{} is already defined", name));
    }
    return true;
}

bool Parser::parseMeshOp()
{
    advance();
    std::string name;
    const std::size_t offset = m_token.offset;
    if (!parseSymbol(name) || !expect('=') || !isNewMesh(name, offset))
        return false;
    std::int32_t index = 0;
    SyntaxAttribute attributes; // of other dialects: stablehlo.mesh
    return parseMesh(std::move(name), offset, index) && (!m_token.is('{') || parseAttribute(attributes, false))
        && parseLocation();
}

bool Parser::parseFunction(SyntaxFunction& function)
{
    function.start = m_token.offset;
    advance();
    if (m_token.isWord("public") || m_token.isWord("private") || m_token.isWord("nested")) {
        function.isPrivate = !m_token.isWord("public");
        advance();
    }
    function.offset = m_token.offset;
    if (!parseSymbol(function.name) || !isNewFunction(function))
        return false;
    beginFunction();
    if (!parseArguments(function) || !parseResults(function))
        return false;
    if (acceptWord("attributes") && !parseAttribute(function.attributes, true))
        return false;
    function.isDeclaration = !m_token.is('{') && function.isPrivate;
    if (!function.isDeclaration && !(expect('{') && parseOps(function.body) && expect('}') && parseLocation()))
        return false;
    function.valueCount = m_valueCount;
    function.end = m_previousEnd;
    return true;
}

/// False, and said, when another has its name already.
bool Parser::isNewFunction(const SyntaxFunction& function)
{
    for (const SyntaxFunction& other : m_module.functions) {
        if (other.name == function.name)
            return m_problems.report(
                "MW1324", function.offset, fmt::format("the function @{} is already defined", function.name));
    }
    return true;
}

void Parser::beginFunction()
{
    m_names.clear();
    m_defined.clear();
    m_valueCount = 0;
}

bool Parser::parseArguments(SyntaxFunction& function)
{
    const std::size_t open = m_token.offset;
    if (!expect('('))
        return false;
    if (!m_token.is(')') && m_token.kind != TokenKind::Value && function.isPrivate) { // of a declaration: types only
        const std::size_t end = balancedEnd(open);
        if (end == std::string_view::npos)
            return expected("')'");
        jump(end);
        return true;
    }
    return parseArgumentList(function);
}

/// `%arg0: tensor<4xf32> {..} loc("x"), ..)` behind the parenthesis.
bool Parser::parseArgumentList(SyntaxFunction& function)
{
    while (!m_token.is(')')) {
        if (m_token.kind != TokenKind::Value)
            return expected("an argument with '%'");
        SyntaxFunction::Argument argument;
        argument.name = m_token.text;
        define(m_token.text, m_token.offset, m_valueCount, 1);
        function.body.arguments.push_back(m_valueCount++);
        advance();
        SyntaxType type;
        if (!expect(':') || !parseType(type))
            return false;
        if (m_token.is('{') && !parseAttribute(argument.attributes, true))
            return false;
        std::string_view location;
        if (!parseLocation(&location))
            return false;
        if (const std::size_t quote = location.find('"'); quote != std::string_view::npos && quote == location.find('(') + 1)
            argument.location = unescaped(location.substr(quote, location.find('"', quote + 1) - quote + 1));
        function.body.argumentTypes.push_back(std::move(type));
        function.arguments.push_back(std::move(argument));
        if (!accept(','))
            break;
    }
    return expect(')');
}

bool Parser::parseResults(SyntaxFunction& function)
{
    if (m_token.kind != TokenKind::Arrow)
        return true;
    advance();
    const auto parseOne = [&] {
        SyntaxType type;
        SyntaxAttribute attributes;
        attributes.kind = SyntaxAttribute::Kind::Dictionary;
        if (!parseType(type))
            return false;
        function.resultTypes.push_back(std::move(type));
        function.resultAttributes.push_back(std::move(attributes));
        return true;
    };
    if (!accept('('))
        return parseOne();
    while (!m_token.is(')')) {
        if (!parseOne())
            return false;
        if (m_token.is('{') && !parseAttribute(function.resultAttributes.back(), true))
            return false;
        if (!accept(','))
            break;
    }
    return expect(')');
}

} // namespace meshwright
