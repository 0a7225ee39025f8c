// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

// Modules, functions and meshes in the form that all ops have in common: "op"() <{properties}> ({ region }) {attributes} : () -> ().

/// `"builtin.module"() <{sym_name = "jit_f"}> ({`. What stands behind the functions is read here too: it says who wrote them.
bool Parser::parseGenericModule()
{
    advance();
    std::optional<std::size_t> region;
    if (!parseGenericHead(m_module.attributes, region))
        return false;
    if (!region)
        return expected("'({' and the functions of the module");
    const std::size_t body = m_token.offset;
    if (const std::size_t end = balancedEnd(*region); end != std::string_view::npos) {
        jump(end);
        if (m_token.is('{') && !parseDictionary(m_module.attributes, '}'))
            return false;
        jump(body);
    }
    m_module.isOurs = m_module.attributes.find("mw.version") != nullptr;
    if (const SyntaxAttribute* name = m_module.attributes.find("sym_name"))
        m_module.name = name->text;
    return true;
}

/// `() <{..}> ({` behind the name of an op without operands; `region` is where its region's parenthesis is, if it has one.
bool Parser::parseGenericHead(SyntaxAttribute& attributes, std::optional<std::size_t>& region)
{
    if (!expect('(') || !expect(')'))
        return false;
    if (accept('<') && !((m_token.is('{') ? parseDictionary(attributes, '}') : expected("'{'")) && expect('>')))
        return false;
    if (!m_token.is('('))
        return true;
    region = m_token.offset;
    advance();
    return expect('{');
}

/// `}) {..} : () -> ()`: the end of what `parseGenericHead` begins.
bool Parser::parseGenericTail(SyntaxAttribute& attributes, bool hasRegion)
{
    if (hasRegion && !(expect('}') && expect(')')))
        return false;
    return (!m_token.is('{') || parseDictionary(attributes, '}')) && parseNothing();
}

/// The same of a module, whose attributes are read already.
bool Parser::skipGenericTail()
{
    if (!expect('}') || !expect(')'))
        return false;
    if (const std::size_t end = m_token.is('{') ? balancedEnd(m_token.offset) : std::string_view::npos;
        end != std::string_view::npos)
        jump(end);
    return parseNothing();
}

/// `: () -> ()`
bool Parser::parseNothing()
{
    SyntaxList<SyntaxType> types;
    return expect(':') && parseFunctionType(types, types);
}

/// `"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()`
bool Parser::parseGenericMesh()
{
    const std::size_t start = m_token.offset;
    advance();
    SyntaxAttribute attributes;
    std::optional<std::size_t> region;
    if (!parseGenericHead(attributes, region) || !parseGenericTail(attributes, region.has_value()) || !parseLocation())
        return false;
    const SyntaxAttribute* name = attributes.find("sym_name");
    const SyntaxAttribute* mesh = attributes.find("mesh");
    if (name == nullptr || mesh == nullptr)
        return m_problems.report("MW1326", start, fmt::format("sdy.mesh needs {}", name == nullptr ? "sym_name" : "mesh"));
    if (!isNewMesh(name->text, name->offset))
        return false;
    const std::size_t behind = m_token.offset;
    jump(mesh->offset);
    if (m_token.kind != TokenKind::Hash || m_token.text != "sdy.mesh")
        return expected("#sdy.mesh<..>");
    advance();
    std::int32_t index = 0;
    const bool good = parseMesh(name->text, mesh->offset, index);
    jump(behind);
    return good;
}

/// `"func.func"() <{function_type = (..) -> .., sym_name = "main"}> ({ ^bb0(%arg0: ..): .. }) {..} : () -> ()`
bool Parser::parseGenericFunction(SyntaxFunction& function)
{
    function.start = m_token.offset;
    beginFunction();
    advance();
    SyntaxAttribute attributes;
    std::optional<std::size_t> region;
    if (!parseGenericHead(attributes, region))
        return false;
    function.isDeclaration = !region || m_token.is('}');
    if (!function.isDeclaration) {
        if (m_token.kind == TokenKind::Label) {
            advance();
            if (accept('(') && !parseArgumentList(function))
                return false;
            if (!expect(':'))
                return false;
        }
        if (!parseOps(function.body))
            return false;
    }
    if (!parseGenericTail(attributes, region.has_value()) || !parseLocation())
        return false;
    function.valueCount = m_valueCount;
    function.end = m_previousEnd;
    const std::size_t behind = m_token.offset;
    const bool good = nameFunction(function, attributes) && typeFunction(function, attributes);
    jump(behind);
    return good;
}

/// Takes the name and the function's own attributes from those of the generic form.
bool Parser::nameFunction(SyntaxFunction& function, const SyntaxAttribute& attributes)
{
    function.offset = function.start;
    function.attributes.kind = SyntaxAttribute::Kind::Dictionary;
    for (std::size_t i = 0; i < attributes.keys.size(); ++i) {
        const std::string_view key = attributes.keys[i];
        const SyntaxAttribute& value = attributes.items[i];
        if (key == "sym_name") {
            function.name = value.text;
            function.offset = value.offset;
        } else if (key == "sym_visibility") {
            function.isPrivate = value.text != "public";
        } else if (key != "function_type" && key != "arg_attrs" && key != "res_attrs") {
            function.attributes.keys.push_back(attributes.keys[i]);
            function.attributes.items.push_back(value);
        }
    }
    return function.name.empty() ? m_problems.report("MW1326", function.start, "func.func needs sym_name")
                                 : isNewFunction(function);
}

/// Takes the types of the results, and what stands beside arguments and results, from the attributes of the generic form.
bool Parser::typeFunction(SyntaxFunction& function, const SyntaxAttribute& attributes)
{
    const SyntaxAttribute* type = attributes.find("function_type");
    if (type == nullptr)
        return m_problems.report("MW1326", function.start, "func.func needs function_type");
    jump(type->offset);
    SyntaxList<SyntaxType> arguments;
    if (!parseFunctionType(arguments, function.resultTypes))
        return false;
    if (function.isDeclaration)
        return true;
    const SyntaxList<SyntaxType>& own = function.body.argumentTypes;
    const auto same
        = [](const SyntaxType& a, const SyntaxType& b) { return a.unsupported == b.unsupported && a.type() == b.type(); };
    if (!std::equal(own.begin(), own.end(), arguments.begin(), arguments.end(), same))
        return m_problems.report(
            "MW1325", type->offset, fmt::format("function_type of @{} has other arguments than its block", function.name));
    function.resultAttributes.resize(function.resultTypes.size());
    const auto take = [&](const char* key, std::size_t count, const auto& into) {
        const SyntaxAttribute* list = attributes.find(key);
        if (list == nullptr)
            return true;
        if (list->items.size() != count)
            return m_problems.report("MW1326", list->offset,
                fmt::format("{} of @{} has {} entries, not {}", key, function.name, list->items.size(), count));
        for (std::size_t i = 0; i < count; ++i)
            into(i) = list->items[i];
        return true;
    };
    return take("arg_attrs", function.arguments.size(), [&](std::size_t i) -> SyntaxAttribute& {
        return function.arguments[i].attributes;
    }) && take("res_attrs", function.resultTypes.size(), [&](std::size_t i) -> SyntaxAttribute& {
        return function.resultAttributes[i];
    });
}

} // namespace meshwright
