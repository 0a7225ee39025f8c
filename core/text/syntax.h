// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/text/syntax_arena.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

// What stands in the text, before it is known what it means. Views point into the text.

/// An attribute's value.
struct SyntaxAttribute {
    enum class Kind : std::uint8_t {
        Unit,
        Bool,
        Integer,
        Float,
        String,
        Symbol,
        Word, ///< a bare word or an enumerator: LT, DEFAULT, f32
        List, ///< [..], array<i64: ..>; `a x b` is a list of two
        Dictionary, ///< {..}, and the parameters in <..> of #stablehlo.dot and the like
        Dense,
        Ranges, ///< [0:4, 0:8:2]: Lists of three integers
        Axes, ///< {"x", "y":(1)2}, unresolved: String items, integer and second are (pre)size, 0 for whole axes
        Moves, ///< {"x"}: 0->1, ..: Axes items, integer and second are the dimensions
        Shardings, ///< of #sdy.sharding, #sdy.sharding_per_value
        Other, ///< skipped
    };

    Kind kind = Kind::Unit;
    std::size_t offset = 0;
    std::size_t end = 0; ///< behind its last character
    std::int64_t integer = 0;
    std::int64_t second = 0;
    std::string text; ///< of strings (without escapes), symbols and words
    SyntaxList<SyntaxAttribute> items; ///< of lists, dictionaries, axes
    SyntaxList<std::string> keys; ///< of dictionaries, one for each item
    std::vector<TensorSharding> shardings;
    ConstantAttributes constant; ///< Dense

    const SyntaxAttribute* find(std::string_view key) const;
};

/// A type; `unsupported` has its text when no TensorType can say it.
struct SyntaxType {
    const TensorType* known = &kNothing; ///< of the module's types
    std::string_view unsupported;
    std::size_t offset = 0;

    const TensorType& type() const { return *known; }

    static const TensorType kNothing;
};
inline const TensorType SyntaxType::kNothing;

/// A value of a function: results of ops and arguments of blocks are numbered together. None when it was not defined.
struct SyntaxUse {
    std::int32_t value = -1;
    std::uint32_t length = 0; ///< of its text, for messages
    std::size_t offset = 0;
};

struct SyntaxRegion;

/// An attribute of an op.
struct SyntaxEntry {
    std::string_view name; ///< as it stands, without quotes
    SyntaxAttribute value;
    bool isProperty = false; ///< between <{ and }>
    bool isKeyword = false; ///< not in a dictionary: of the op's own form
};

struct SyntaxOp {
    std::string_view name; ///< "stablehlo.add", "call", "return"
    std::size_t offset = 0;
    std::int32_t firstResult = 0;
    std::int32_t resultCount = 0;
    bool broken = false; ///< a problem was reported; nothing but name and results is known
    bool hasArrow = false; ///< the types are `(operands) -> results`; else `operandTypes` has what stands there
    bool isVerbatim = false; ///< of a form that is not known: the text from `offset` to `end` is all there is
    std::size_t end = 0; ///< behind its last character, the location excluded
    std::string_view location; ///< `loc(..)`
    SyntaxList<SyntaxUse> operands;
    SyntaxList<std::string_view> words; ///< enumerators among the operands: LT, SIGNED; of reduce: the op it applies
    SyntaxList<SyntaxEntry> attributes;
    SyntaxList<SyntaxType> operandTypes;
    SyntaxList<SyntaxType> resultTypes;
    SyntaxList<SyntaxRegion> regions;

    const SyntaxAttribute* find(std::string_view key) const;
    const SyntaxAttribute* findEither(std::string_view pretty, std::string_view generic) const; ///< under its name in either form
};

struct SyntaxRegion {
    SyntaxList<std::int32_t> arguments;
    SyntaxList<SyntaxType> argumentTypes;
    std::vector<SyntaxOp> ops;
};

struct SyntaxFunction {
    struct Argument {
        std::string_view name;
        std::string location; ///< the name in loc("..")
        SyntaxAttribute attributes; ///< a dictionary
    };

    std::string name;
    std::size_t offset = 0;
    std::size_t start = 0; ///< of the whole function in the text
    std::size_t end = 0;
    bool isPrivate = false;
    bool isDeclaration = false; ///< has no body
    std::vector<Argument> arguments;
    SyntaxList<SyntaxType> resultTypes;
    std::vector<SyntaxAttribute> resultAttributes; ///< dictionaries
    SyntaxAttribute attributes; ///< a dictionary
    SyntaxRegion body;
    std::int32_t valueCount = 0;
};

struct SyntaxModule {
    bool isOurs = false; ///< has mw.version
    std::string name;
    SyntaxAttribute attributes; ///< a dictionary
    std::string aliases; ///< lines before the module
    std::string rest; ///< what is in the module besides meshes and functions
    std::string trailer; ///< lines behind it
    std::vector<NamedMesh> meshes;
    std::vector<SyntaxFunction> functions;
    std::int32_t tileMesh = -1; ///< the mesh of shardings in XLA's tiled form, if there are any
    std::deque<TensorType> types; ///< every one that occurs, once
};

} // namespace meshwright
