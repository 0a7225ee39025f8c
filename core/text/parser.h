// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/lexer.h"
#include "core/text/report.h"
#include "core/text/syntax.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace meshwright {

/// Text to syntax: modules, functions and ops in MLIR's pretty and generic forms. Part of `readProgram`, which says what is wrong;
/// after a problem reading goes on with the next op. Time and memory are linear in the text.
class Parser {
public:
    Parser(std::string_view text, TextProblems& problems)
        : m_lexer(text)
        , m_problems(problems)
    {
    }

    SyntaxModule parseModule();

private:
    struct Definition {
        std::int32_t first = 0;
        std::int32_t count = 1;
    };

    // Tokens (parser.cpp)
    void advance()
    {
        m_previousEnd = m_lexer.position();
        m_token = m_lexer.next();
    }
    bool expected(std::string_view what);
    bool expect(char punctuation);
    bool expectWord(std::string_view word);
    bool accept(char punctuation);
    bool acceptWord(std::string_view word);
    void jump(std::size_t position);
    std::size_t balancedEnd(std::size_t open) const;
    std::size_t nextTopLevel(std::size_t from) const;
    void recover(std::size_t start);
    std::size_t lineEnd(std::size_t from) const;
    bool parseLocation(std::string_view* location = nullptr);
    bool parseSymbol(std::string& name);
    bool parseInteger(std::int64_t& value);

    // The module and its functions (parser.cpp)
    bool parseModuleHeader(bool& braced, bool& generic);
    bool parseTopLevel(std::string& aliases);
    bool keepLines(std::string& into);
    bool parseMeshOp();
    bool isNewMesh(std::string_view name, std::size_t offset);
    bool isNewFunction(const SyntaxFunction& function);
    bool parseFunction(SyntaxFunction& function);
    void beginFunction();
    bool parseArgumentList(SyntaxFunction& function);
    bool parseArguments(SyntaxFunction& function);
    bool parseResults(SyntaxFunction& function);

    // The same in the generic form (parser_generic.cpp)
    bool parseGenericModule();
    bool parseGenericHead(SyntaxAttribute& attributes, std::optional<std::size_t>& region);
    bool parseGenericTail(SyntaxAttribute& attributes, bool hasRegion);
    bool skipGenericTail();
    bool parseNothing();
    bool parseGenericMesh();
    bool parseGenericFunction(SyntaxFunction& function);
    bool nameFunction(SyntaxFunction& function, const SyntaxAttribute& attributes);
    bool typeFunction(SyntaxFunction& function, const SyntaxAttribute& attributes);

    // Ops (parser_op.cpp)
    void define(std::string_view name, std::size_t offset, std::int32_t first, std::int32_t count);
    void closeScope(std::size_t mark);
    bool parseUse(SyntaxUse& use);
    bool parseUses(SyntaxList<SyntaxUse>& uses, char close);
    bool parseOps(SyntaxRegion& region);
    void parseOp(SyntaxRegion& region);
    bool parseResultNames(std::vector<std::pair<Token, std::int32_t>>& names);
    bool parseOpBody(SyntaxOp& op);
    bool parseGeneric(SyntaxOp& op);
    bool parseRegionArguments(SyntaxRegion& region);
    bool parseRegion(SyntaxRegion& region);
    bool parseBlock(SyntaxRegion& region, std::size_t mark);
    bool parsePretty(SyntaxOp& op);
    bool parseVerbatim(SyntaxOp& op);
    bool findVerbatimEnd(SyntaxOp& op, std::size_t& types, std::size_t& end);
    bool parseItem(SyntaxOp& op);
    bool parseItems(SyntaxOp& op);
    bool parseKeyword(SyntaxOp& op);
    bool parseRanges(SyntaxOp& op);
    bool parseConvolution(SyntaxOp& op);
    bool parseComputation(SyntaxOp& op);
    bool parseConstant(SyntaxOp& op);
    bool parseReduce(SyntaxOp& op);
    bool parseReducer(SyntaxOp& op);
    bool parseWhile(SyntaxOp& op);
    bool parseReturn(SyntaxOp& op);
    bool parseCollectiveAxes(SyntaxOp& op);
    bool parseAxisLists(SyntaxAttribute& lists);
    bool parseOpAttributes(SyntaxOp& op, bool areProperties = false);
    SyntaxAttribute& addAttribute(SyntaxOp& op, std::string_view name);
    bool parseTypes(SyntaxOp& op);
    bool parseFunctionType(SyntaxList<SyntaxType>& operands, SyntaxList<SyntaxType>& results);
    bool parseTypeList(SyntaxList<SyntaxType>& types, char close);

    // Attributes and types (parser_attribute.cpp)
    bool parseType(SyntaxType& type);
    bool parseTensor(SyntaxType& type);
    bool parseAttribute(SyntaxAttribute& attribute, bool typed);
    bool parseAttributeValue(SyntaxAttribute& attribute, bool typed);
    bool parseAlias(SyntaxAttribute& attribute, std::string_view name);
    bool parseNumber(SyntaxAttribute& attribute, bool typed);
    bool parseWordAttribute(SyntaxAttribute& attribute);
    bool parseHashAttribute(SyntaxAttribute& attribute);
    bool parseList(SyntaxAttribute& attribute, char close);
    bool parseDictionary(SyntaxAttribute& attribute, char close);
    bool parseDense(SyntaxAttribute& attribute);
    bool parseSharding(std::vector<TensorSharding>& shardings);
    bool parseShardingMesh(std::int32_t& mesh);
    bool hasMesh(std::string_view name, std::int32_t& mesh) const;
    void readMeshesBehind(std::string_view name);
    bool parseMesh(std::string name, std::size_t offset, std::int32_t& index);
    bool parseAngles(std::string_view& inside);
    bool reportPart(const Problems& problems, std::size_t start, std::size_t offset);
    bool parseAxes(SyntaxAttribute& axes);
    std::string_view resource(std::string_view name);

    Lexer m_lexer;
    Token m_token;
    std::size_t m_previousEnd = 0; ///< behind the token before
    TextProblems& m_problems;
    SyntaxModule m_module;

    std::unordered_map<std::string_view, Definition> m_names; ///< what the current function has defined so far, in open regions
    std::vector<std::string_view> m_defined; ///< the same names in order, so that a region's can be dropped
    std::unordered_map<std::string_view, std::size_t> m_aliases; ///< where `#name = ..` says what it stands for
    bool m_inAlias = false; ///< reading what one stands for, in which others stand for nothing
    std::unordered_map<std::string_view, std::string_view> m_resources; ///< the data at the end of the text, by name
    bool m_hasResources = false; ///< has looked for them
    std::unordered_map<std::size_t, std::size_t>
        m_meshEnds; ///< of meshes that stand behind their use: where each begins and ends
    std::size_t m_meshesReadTo = 0; ///< no others are before this place
    std::unordered_map<std::string_view, const TensorType*> m_types; ///< of the module, by what stands in their brackets
    std::int32_t m_valueCount = 0;
    int m_depth = 0; ///< of regions and attributes within one another
};

/// The axes of an axis list relative to a mesh; what is wrong goes to `problems` (MW1330).
AxisRefs resolvedAxes(const SyntaxAttribute& axes, const Mesh& mesh, TextProblems& problems);

/// Reads the body of `dense<..>` for elements of `type`. False (and MW1327) when it does not fit.
bool parseDenseBody(
    std::string_view body, std::size_t offset, const TensorType& type, ConstantData& data, TextProblems& problems);

/// A string literal (with its quotes) without its escapes.
std::string unescaped(std::string_view literal);

} // namespace meshwright
