// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/text.h"
#include "core/text/op_table.h"
#include "core/text/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace meshwright {

namespace {

constexpr int kDeepestRegion = 64;

} // namespace

void Parser::define(std::string_view name, std::size_t offset, std::int32_t first, std::int32_t count)
{
    if (m_names.emplace(name, Definition{first, count}).second)
        m_defined.push_back(name);
    else
        m_problems.report("MW1324", offset, fmt::format("%{} is defined already", name));
}

void Parser::closeScope(std::size_t mark)
{
    while (m_defined.size() > mark) {
        m_names.erase(m_defined.back());
        m_defined.pop_back();
    }
}

bool Parser::parseUse(SyntaxUse& use)
{
    if (m_token.kind != TokenKind::Value)
        return expected("a value with '%'");
    const Token name = m_token;
    use.offset = name.offset;
    std::size_t end = m_lexer.position();
    advance();
    std::int64_t index = 0;
    if (m_token.kind == TokenKind::Hash && m_token.offset == name.offset + 1 + name.text.size()) {
        const auto parsed = meshwright::parseInteger(m_token.text);
        if (!parsed || *parsed < 0)
            return expected("the number of a result");
        index = *parsed;
        end = m_lexer.position();
        advance();
    }
    const auto found = m_names.find(name.text);
    if (found == m_names.end()) {
        m_problems.report("MW1323", name.offset, fmt::format("%{} is not defined here", name.text));
        return true;
    }
    if (index >= found->second.count) {
        m_problems.report(
            "MW1323", name.offset, fmt::format("%{} has {} results, there is no #{}", name.text, found->second.count, index));
        return true;
    }
    use.value = found->second.first + static_cast<std::int32_t>(index);
    use.length = static_cast<std::uint32_t>(end - name.offset);
    return true;
}

bool Parser::parseUses(SyntaxList<SyntaxUse>& uses, char close)
{
    while (!m_token.is(close)) {
        uses.emplace_back();
        if (!parseUse(uses.back()))
            return false;
        if (!accept(','))
            break;
    }
    return expect(close);
}

bool Parser::parseOps(SyntaxRegion& region)
{
    if (m_depth >= kDeepestRegion)
        return m_problems.report("MW1320", m_token.offset, fmt::format("regions are nested more than {} deep", kDeepestRegion));
    ++m_depth;
    const std::size_t mark = m_defined.size();
    while (!m_token.is('}') && m_token.kind != TokenKind::End && !m_problems.full())
        parseOp(region);
    closeScope(mark);
    --m_depth;
    return true;
}

void Parser::parseOp(SyntaxRegion& region)
{
    SyntaxOp op;
    const std::size_t start = m_token.offset;
    std::vector<std::pair<Token, std::int32_t>> names;
    const int depth = m_depth;
    bool good = parseResultNames(names);
    for (const auto& [name, count] : names)
        op.resultCount += count;
    good = good && parseOpBody(op);
    m_depth = depth;
    if (!good) {
        op.broken = true;
        recover(start);
    }
    op.firstResult = m_valueCount;
    std::int32_t next = m_valueCount;
    m_valueCount += op.resultCount;
    for (const auto& [name, count] : names) {
        define(name.text, name.offset, next, count);
        next += count;
    }
    region.ops.push_back(std::move(op));
}

bool Parser::parseResultNames(std::vector<std::pair<Token, std::int32_t>>& names)
{
    constexpr std::int64_t kMostResults = 1 << 20;
    if (m_token.kind != TokenKind::Value)
        return true;
    do {
        if (m_token.kind != TokenKind::Value)
            return expected("a result with '%'");
        names.emplace_back(m_token, 1);
        advance();
        if (accept(':')) {
            const std::size_t offset = m_token.offset;
            std::int64_t count = 0;
            if (!parseInteger(count))
                return false;
            if (count < 1 || count > kMostResults)
                return m_problems.report("MW1320", offset, fmt::format("{} is not a number of results", count));
            names.back().second = static_cast<std::int32_t>(count);
        }
    } while (accept(','));
    return expect('=');
}

bool Parser::parseOpBody(SyntaxOp& op)
{
    op.offset = m_token.offset;
    const bool generic = m_token.kind == TokenKind::String;
    if (m_token.kind != TokenKind::Word && !generic)
        return expected("an op");
    op.name = generic ? m_token.text.substr(1, m_token.text.size() - 2) : m_token.text;
    const bool isKnown = isReadableOp(op.name);
    const bool isName = std::all_of(op.name.begin(), op.name.end(),
        [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '$'; });
    if (!isName)
        return expected("the name of an op");
    if (!isKnown && op.name.find('.') == std::string_view::npos) {
        const std::vector<std::string> names = readableOps();
        return m_problems.report(
            "MW1321", op.offset, fmt::format("{} is not an op", op.name.substr(0, 80)), suggestion(op.name, names).substr(0, 80));
    }
    advance();
    if (!(generic ? parseGeneric(op) : isKnown ? parsePretty(op) : parseVerbatim(op)))
        return false;
    op.end = m_previousEnd;
    return parseLocation(&op.location);
}

bool Parser::parseGeneric(SyntaxOp& op)
{
    if (!expect('(') || !parseUses(op.operands, ')'))
        return false;
    if (m_token.is('<')) { // properties: <{..}>
        advance();
        if (!parseOpAttributes(op, true) || !expect('>'))
            return false;
    }
    if (accept('(')) {
        do {
            op.regions.emplace_back();
            if (!expect('{') || !parseRegion(op.regions.back()) || !expect('}'))
                return false;
        } while (accept(','));
        if (!expect(')'))
            return false;
    }
    if (m_token.is('{') && !parseOpAttributes(op))
        return false;
    return parseTypes(op);
}

/// An op of a form of its own that is not known: its operands are the values in it, its types stand behind the last colon.
bool Parser::parseVerbatim(SyntaxOp& op)
{
    op.isVerbatim = true;
    std::size_t types = 0;
    std::size_t end = 0;
    if (!findVerbatimEnd(op, types, end))
        return false;
    if (types == 0)
        return m_problems.report("MW1321", op.offset, fmt::format("{} is not known, and shows no types", op.name.substr(0, 80)),
            "write it in the generic form: \"op\"(%a) : (type) -> type");
    jump(types);
    if (!parseTypes(op))
        return false;
    if (m_previousEnd > end || (m_token.kind != TokenKind::End && m_token.offset < end))
        return m_problems.report("MW1321", op.offset, fmt::format("{} is not known, nor are its types", op.name.substr(0, 80)),
            "write it in the generic form: \"op\"(%a) : (type) -> type");
    return true;
}

/// Walks to the end of the op: of its line, outside of brackets. `types` is where its last colon outside of brackets is, 0 for none.
bool Parser::findVerbatimEnd(SyntaxOp& op, std::size_t& types, std::size_t& end)
{
    const std::string_view text = m_lexer.text();
    std::size_t depth = 0;
    end = m_previousEnd;
    while (m_token.kind != TokenKind::End) {
        const bool onNewLine = text.substr(m_previousEnd, m_token.offset - m_previousEnd).find('\n') != std::string_view::npos;
        const bool goesOn = m_token.is('{') || m_token.is(':'); // attributes, or types, on a line of their own
        if (depth == 0 && ((onNewLine && !goesOn) || m_token.is('}') || m_token.isWord("loc")))
            return true;
        if (m_token.kind == TokenKind::Bad)
            return expected("the rest of the op");
        if (m_token.kind == TokenKind::Label)
            return m_problems.report("MW1321", op.offset, fmt::format("{} is not known, and has blocks", op.name.substr(0, 80)),
                "write it in the generic form: \"op\"(%a) ({ blocks }) : (type) -> type");
        if (m_token.kind == TokenKind::Value) {
            op.operands.emplace_back();
            if (!parseUse(op.operands.back()))
                return false;
            if (m_token.is('=') || (depth > 0 && m_token.is(':')))
                return m_problems.report("MW1321", op.offset,
                    fmt::format("{} is not known, and has blocks", op.name.substr(0, 80)),
                    "write it in the generic form: \"op\"(%a) ({ blocks }) : (type) -> type");
            end = m_previousEnd;
            continue;
        }
        if (m_token.is('(') || m_token.is('[') || m_token.is('{') || m_token.is('<'))
            ++depth;
        if (m_token.is(')') || m_token.is(']') || m_token.is('}') || m_token.is('>')) {
            if (depth == 0)
                return expected("the end of the op");
            --depth;
        }
        if (depth == 0 && m_token.is(':'))
            types = m_token.offset;
        advance();
        end = m_previousEnd;
    }
    return true;
}

/// `%a: type, %b: type)` behind an open parenthesis: arguments that the region defines.
bool Parser::parseRegionArguments(SyntaxRegion& region)
{
    while (!m_token.is(')')) {
        const Token name = m_token;
        SyntaxType type;
        if (name.kind != TokenKind::Value)
            return expected("an argument with '%'");
        advance();
        if (!expect(':') || !parseType(type) || !parseLocation())
            return false;
        define(name.text, name.offset, m_valueCount, 1);
        region.arguments.push_back(m_valueCount++);
        region.argumentTypes.push_back(std::move(type));
        if (!accept(','))
            break;
    }
    return expect(')');
}

/// A region of the generic form, with a label before it when it has arguments.
bool Parser::parseRegion(SyntaxRegion& region)
{
    const std::size_t mark = m_defined.size();
    if (m_token.kind == TokenKind::Label) {
        advance();
        if (accept('(') && !parseRegionArguments(region))
            return false;
        if (!expect(':'))
            return false;
    }
    return parseBlock(region, mark);
}

/// The ops of a region; what was defined since `mark` is forgotten behind it.
bool Parser::parseBlock(SyntaxRegion& region, std::size_t mark)
{
    const bool good = parseOps(region);
    closeScope(mark);
    return good;
}

bool Parser::parsePretty(SyntaxOp& op)
{
    switch (opSyntax(op.name)) {
    case OpSyntax::Constant:
        return parseConstant(op);
    case OpSyntax::Reduce:
        return parseReduce(op);
    case OpSyntax::While:
        return parseWhile(op);
    case OpSyntax::Return:
        return parseReturn(op);
    case OpSyntax::Computation:
        return parseComputation(op);
    case OpSyntax::Collective:
        return parseCollectiveAxes(op) && parseItems(op) && parseTypes(op);
    case OpSyntax::Items:
        break;
    }
    return parseItems(op) && parseTypes(op);
}

/// What most ops have between their name and their types: values, enumerators and `key = value`, separated by commas.
bool Parser::parseItems(SyntaxOp& op)
{
    while (!m_token.is(':')) {
        if (m_token.is(',')) {
            advance();
            continue;
        }
        if (!parseItem(op))
            return false;
    }
    return true;
}

bool Parser::parseItem(SyntaxOp& op)
{
    if (m_token.kind == TokenKind::Value) {
        op.operands.emplace_back();
        return parseUse(op.operands.back());
    }
    if (m_token.kind == TokenKind::Word)
        return parseKeyword(op);
    if (m_token.is('{'))
        return parseOpAttributes(op);
    if (accept('(')) {
        while (!m_token.is(')')) {
            if (m_token.is(','))
                advance();
            else if (!parseItem(op))
                return false;
        }
        return expect(')');
    }
    if (const char next = m_token.is('[') ? m_lexer.peek() : ' '; next == ']' || (next >= '0' && next <= '9'))
        return parseRanges(op);
    if (m_token.kind == TokenKind::Symbol)
        return parseAttribute(addAttribute(op, "callee"), false);
    if (m_token.kind == TokenKind::String)
        return parseAttribute(addAttribute(op, "name"), false);
    if (m_token.is('<')) {
        SyntaxAttribute& sharding = addAttribute(op, "sharding");
        sharding.kind = SyntaxAttribute::Kind::Shardings;
        sharding.offset = m_token.offset;
        return parseSharding(sharding.shardings);
    }
    return expected("an operand, an attribute or ':'");
}

SyntaxAttribute& Parser::addAttribute(SyntaxOp& op, std::string_view name)
{
    SyntaxEntry& entry = op.attributes.emplace_back();
    entry.name = name;
    entry.isKeyword = true;
    return entry.value;
}

/// What a slice takes: `[0:4, 0:8:2]`.
bool Parser::parseRanges(SyntaxOp& op)
{
    SyntaxAttribute& ranges = addAttribute(op, "ranges");
    ranges.kind = SyntaxAttribute::Kind::Ranges;
    ranges.offset = m_token.offset;
    advance();
    while (!m_token.is(']')) {
        SyntaxAttribute& range = ranges.items.emplace_back();
        range.kind = SyntaxAttribute::Kind::List;
        for (int i = 0; i < 3; ++i) {
            SyntaxAttribute& bound = range.items.emplace_back();
            bound.kind = SyntaxAttribute::Kind::Integer;
            bound.integer = 1; // the stride that need not be there
            if (i > 0 && !accept(':')) {
                if (i == 2)
                    break;
                return expected("':'");
            }
            if (!parseInteger(bound.integer))
                return false;
        }
        if (!accept(','))
            break;
    }
    return expect(']');
}

/// `LT`, `dim = 0`, `contracting_dims = [1] x [0]`.
bool Parser::parseKeyword(SyntaxOp& op)
{
    const Token word = m_token;
    advance();
    if (!accept('=')) {
        op.words.push_back(word.text);
        return true;
    }
    if (word.text == "dim_numbers")
        return parseConvolution(op);
    SyntaxAttribute value;
    if (!parseAttribute(value, false))
        return false;
    if (acceptWord("x")) {
        SyntaxAttribute both;
        both.kind = SyntaxAttribute::Kind::List;
        both.offset = value.offset;
        both.items.push_back(std::move(value));
        both.items.emplace_back();
        if (!parseAttribute(both.items.back(), false))
            return false;
        both.end = both.items.back().end;
        value = std::move(both);
    }
    addAttribute(op, word.text) = std::move(value);
    return true;
}

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, which is not a sequence of tokens.
bool Parser::parseConvolution(SyntaxOp& op)
{
    const std::string_view text = m_lexer.text();
    SyntaxAttribute& numbers = addAttribute(op, "dim_numbers");
    numbers.kind = SyntaxAttribute::Kind::Word;
    numbers.offset = m_token.offset;
    std::size_t end = m_token.offset;
    for (int i = 0; i < 3 && end != std::string_view::npos; ++i) {
        const std::size_t open = text.find_first_not_of(" \n\tx->", end);
        end = open == std::string_view::npos || text[open] != '[' ? std::string_view::npos : balancedEnd(open);
    }
    if (end == std::string_view::npos)
        return expected("dimension numbers: [..]x[..]->[..]");
    numbers.text = text.substr(numbers.offset, end - numbers.offset);
    jump(end);
    numbers.end = end;
    return true;
}

/// `(%arg0) in_shardings=[..] out_shardings=[..] manual_axes={..} (%arg1: tensor<..>) { .. } : (tensor<..>) -> tensor<..>`; a named
/// one has its name in <> first.
bool Parser::parseComputation(SyntaxOp& op)
{
    if (accept('<')) {
        if (m_token.kind != TokenKind::String)
            return expected("the computation's name in quotes");
        if (!parseAttribute(addAttribute(op, "name"), false) || !expect('>'))
            return false;
    }
    if (!expect('(') || !parseUses(op.operands, ')'))
        return false;
    while (m_token.kind == TokenKind::Word) {
        const Token word = m_token;
        const bool areAxes = word.text == "manual_axes";
        if (!areAxes && word.text != "in_shardings" && word.text != "out_shardings")
            return expected("in_shardings, out_shardings or manual_axes");
        advance();
        SyntaxAttribute& value = addAttribute(op, word.text);
        value.offset = m_token.offset;
        if (!expect('='))
            return false;
        if (areAxes) {
            if (!parseAxes(value))
                return false;
            continue;
        }
        value.kind = SyntaxAttribute::Kind::Shardings;
        if (!expect('['))
            return false;
        while (!m_token.is(']')) {
            if (!parseSharding(value.shardings))
                return false;
            if (!accept(','))
                break;
        }
        if (!expect(']'))
            return false;
    }
    op.regions.emplace_back();
    SyntaxRegion& region = op.regions.back();
    const std::size_t mark = m_defined.size();
    if (!expect('(') || !parseRegionArguments(region) || !expect('{') || !parseBlock(region, mark) || !expect('}'))
        return false;
    if (m_token.is('{') && !parseOpAttributes(op))
        return false;
    return parseTypes(op);
}

bool Parser::parseConstant(SyntaxOp& op)
{
    if (m_token.is('(')) // `stablehlo.constant() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>`, without quotes
        return parseGeneric(op);
    if (m_token.is('{') && !parseOpAttributes(op))
        return false;
    SyntaxAttribute value;
    if (!parseAttribute(value, true))
        return false;
    if (value.kind == SyntaxAttribute::Kind::Other && !value.text.empty())
        return m_problems.report("MW1322", value.offset, fmt::format("constants of type {} are not supported", value.text));
    if (value.kind != SyntaxAttribute::Kind::Dense)
        return m_problems.report("MW1327", value.offset, "expected a constant: dense<..>");
    addAttribute(op, "value") = std::move(value);
    return true;
}

/// `(%0 init: %cst) applies stablehlo.add across dimensions = [1]`, or without `applies` and with a reducer at the end.
bool Parser::parseReduce(SyntaxOp& op)
{
    SyntaxList<SyntaxUse> initial;
    do {
        op.operands.emplace_back();
        initial.emplace_back();
        if (!expect('(') || !parseUse(op.operands.back()) || !expectWord("init") || !expect(':') || !parseUse(initial.back())
            || !expect(')'))
            return false;
    } while (accept(','));
    op.operands.insert(op.operands.end(), initial.begin(), initial.end());
    const std::size_t pairs = op.operands.size() / 2;
    const bool applies = acceptWord("applies");
    if (applies) {
        if (m_token.kind != TokenKind::Word)
            return expected("the op that combines two elements");
        op.words.push_back(m_token.text);
        advance();
    }
    if (!expectWord("across") || !m_token.isWord("dimensions"))
        return expected("'across dimensions'");
    if (!parseKeyword(op) || (m_token.is('{') && !parseOpAttributes(op)) || !parseTypes(op))
        return false;
    if (applies || !m_token.isWord("reducer"))
        return true;
    if (!parseReducer(op))
        return false;
    // The text has a pair of arguments for each operand; the block has first all left ones, then all right ones.
    SyntaxRegion& region = op.regions.back();
    if (region.arguments.size() == 2 * pairs && pairs > 1) {
        const auto arguments = region.arguments;
        const auto types = region.argumentTypes;
        for (std::size_t i = 0; i < pairs; ++i) {
            for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
                region.arguments[side * pairs + i] = arguments[2 * i + side];
                region.argumentTypes[side * pairs + i] = types[2 * i + side];
            }
        }
    }
    return true;
}

/// `reducer(%arg1: tensor<f32>, %arg2: tensor<f32>) { .. }`; of several operands each has its own pair of arguments.
bool Parser::parseReducer(SyntaxOp& op)
{
    advance();
    op.regions.emplace_back();
    SyntaxRegion& region = op.regions.back();
    const std::size_t mark = m_defined.size();
    while (accept('(')) {
        if (!parseRegionArguments(region))
            return false;
    }
    return expect('{') && parseBlock(region, mark) && expect('}');
}

bool Parser::parseWhile(SyntaxOp& op)
{
    std::vector<Token> names;
    if (!expect('('))
        return false;
    while (!m_token.is(')')) {
        if (m_token.kind != TokenKind::Value)
            return expected("an argument with '%'");
        names.push_back(m_token);
        advance();
        op.operands.emplace_back();
        if (!expect('=') || !parseUse(op.operands.back()))
            return false;
        if (!accept(','))
            break;
    }
    if (!expect(')'))
        return false;
    if (!names.empty() && !parseTypes(op))
        return false;
    if (acceptWord("attributes") && !parseOpAttributes(op))
        return false;
    for (const char* label : {"cond", "do"}) {
        if (!expectWord(label) || !expect('{'))
            return false;
        op.regions.emplace_back();
        SyntaxRegion& region = op.regions.back();
        const std::size_t mark = m_defined.size();
        for (const Token& name : names) {
            define(name.text, name.offset, m_valueCount, 1);
            region.arguments.push_back(m_valueCount++);
        }
        region.argumentTypes = op.operandTypes;
        if (!parseBlock(region, mark) || !expect('}'))
            return false;
    }
    return true;
}

bool Parser::parseReturn(SyntaxOp& op)
{
    if (m_token.is('{') && !parseOpAttributes(op))
        return false;
    if (m_token.kind != TokenKind::Value)
        return true;
    do {
        op.operands.emplace_back();
        if (!parseUse(op.operands.back()))
            return false;
    } while (accept(','));
    return (!m_token.is('{') || parseOpAttributes(op)) && parseTypes(op);
}

/// What a collective of Shardy's starts with: `{"x"}`, `[{"x"}, {}]` or `[{"x"}: 0->1]`.
bool Parser::parseCollectiveAxes(SyntaxOp& op)
{
    if (m_token.kind == TokenKind::Word) { // how values are combined: max
        op.words.push_back(m_token.text);
        advance();
    }
    SyntaxAttribute axes;
    axes.offset = m_token.offset;
    if (!(m_token.is('{') ? parseAxes(axes) : parseAxisLists(axes)))
        return false;
    addAttribute(op, "axes") = std::move(axes);
    return true;
}

/// `[{"x"}, {}]`, or `[{"x"}: 0->1]`, whose items are moves.
bool Parser::parseAxisLists(SyntaxAttribute& lists)
{
    lists.kind = SyntaxAttribute::Kind::List;
    if (!expect('['))
        return false;
    while (!m_token.is(']')) {
        SyntaxAttribute& item = lists.items.emplace_back();
        if (!parseAxes(item))
            return false;
        if (accept(':')) {
            SyntaxAttribute move;
            move.kind = SyntaxAttribute::Kind::Moves;
            if (!parseInteger(move.integer))
                return false;
            if (m_token.kind != TokenKind::Arrow)
                return expected("'->'");
            advance();
            if (!parseInteger(move.second))
                return false;
            move.items.push_back(std::move(item));
            item = std::move(move);
        }
        if (!accept(','))
            break;
    }
    return expect(']');
}

/// `{name = value, name}`. What is not read anywhere is kept as its place in the text.
bool Parser::parseOpAttributes(SyntaxOp& op, bool areProperties)
{
    const bool keepsAll = !opKindOf(op.name);
    if (!expect('{'))
        return false;
    while (!m_token.is('}')) {
        if (m_token.kind != TokenKind::Word && m_token.kind != TokenKind::String)
            return expected("an attribute's name");
        SyntaxEntry& entry = op.attributes.emplace_back();
        entry.name = m_token.kind == TokenKind::String ? m_token.text.substr(1, m_token.text.size() - 2) : m_token.text;
        entry.isProperty = areProperties;
        entry.value.offset = m_token.offset;
        advance();
        if (accept('=') && !parseAttribute(entry.value, true))
            return false;
        if (!keepsAll && !isReadAttribute(entry.name)) {
            SyntaxAttribute place;
            place.kind = entry.value.kind == SyntaxAttribute::Kind::Unit ? entry.value.kind : SyntaxAttribute::Kind::Other;
            place.offset = entry.value.offset;
            place.end = entry.value.end;
            entry.value = std::move(place);
        }
        if (!accept(','))
            break;
    }
    return expect('}');
}

bool Parser::parseTypes(SyntaxOp& op)
{
    if (!expect(':'))
        return false;
    if (m_token.is('(')) {
        op.hasArrow = true;
        return parseFunctionType(op.operandTypes, op.resultTypes);
    }
    do {
        if (!parseType(op.operandTypes.emplace_back()))
            return false;
    } while (accept(','));
    if (m_token.kind != TokenKind::Arrow)
        return true;
    advance();
    op.hasArrow = true;
    if (accept('('))
        return parseTypeList(op.resultTypes, ')');
    return parseType(op.resultTypes.emplace_back());
}

/// `(tensor<4xf32>) -> tensor<f32>`, or with the results in parentheses too.
bool Parser::parseFunctionType(SyntaxList<SyntaxType>& operands, SyntaxList<SyntaxType>& results)
{
    if (!expect('(') || !parseTypeList(operands, ')'))
        return false;
    if (m_token.kind != TokenKind::Arrow)
        return expected("'->'");
    advance();
    return accept('(') ? parseTypeList(results, ')') : parseType(results.emplace_back());
}

bool Parser::parseTypeList(SyntaxList<SyntaxType>& types, char close)
{
    while (!m_token.is(close)) {
        if (!parseType(types.emplace_back()))
            return false;
        if (!accept(','))
            break;
    }
    return expect(close);
}

} // namespace meshwright
