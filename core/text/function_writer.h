// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/other_op.h"
#include "core/program/program.h"
#include "core/text/line_tree.h"
#include "core/text/notation.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// Marks in a line's text, behind which the printer puts what they stand for.
inline constexpr std::string_view kUse = "\x01";
inline constexpr std::string_view kBlock = "\x02";
inline constexpr std::string_view kLabelled = "\x03";
static_assert(kUse.front() == kOperandMark && kBlock.front() == kRegionMark && kLabelled.front() == kLabelMark);

/// As many uses, with commas between them.
std::string uses(std::size_t count);

/// Turns one function into lines, then prints them. Part of `writeFunction`.
class FunctionWriter {
public:
    FunctionWriter(const Program& program, const Function& function)
        : m_program(program)
        , m_function(function)
        , m_textOf(function.values.size(), 0)
    {
    }

    /// Appends the function's text; gives the name of every value in it.
    std::vector<std::string> write(std::string& out);

private:
    TextValue newValue() { return m_nextValue++; }
    std::string shardingOf(const TensorSharding& sharding) const { return shardingText(sharding, m_program.meshes); }
    const Mesh& meshFor(const Op& op) const;
    const TensorType& type(ValueId value) const { return m_function[value].type; }

    // The header -----------------------------------------------------------------------------------------------------------

    /// True when each argument is given away at most once, in the order of the arguments: then attributes of arguments say it all.
    bool donationsAreOrdered() const;
    std::string argumentsText() const;
    std::string resultsText() const;
    std::string functionAttributes() const;

    // Attributes -----------------------------------------------------------------------------------------------------------

    /// What is known of a value but its type and its sharding.
    static void addNotes(AttributeList& attributes, const Value& value);
    static void addPhase(AttributeList& attributes, const Op& op);

    /// The attributes of an op that say what is known of it and its results, and those that are kept.
    AttributeList attributesOf(const Op& op) const;

    /// For Shardy, which wants a sharding for every result when one has it.
    void addShardings(AttributeList& attributes, const std::vector<ValueId>& values) const;
    static std::string locationOf(const Op& op);

    /// A list of dictionaries, one for each value: all that is known of the values of a loop.
    std::string notesList(const std::vector<ValueId>& values) const;

    // Lines ----------------------------------------------------------------------------------------------------------------

    TextValue add(LineRegion& region, std::string text, std::vector<TextValue> operands, NameHint hint = NameHint::Number);

    TextValue addConstant(LineRegion& region, const ConstantAttributes& constant, const std::string& attributes = {},
        const std::string& location = {});

    TextValue addCounter(LineRegion& region, DType dtype, std::int64_t value);
    void addStatement(LineRegion& region, std::string text, std::vector<TextValue> operands);
    void lowerBlock(const Block& block, LineRegion& region);
    void lowerReturn(const char* name, const std::vector<ValueId>& values, LineRegion& region);
    void addReturn(const char* name, std::vector<TextValue> values, const std::vector<TensorType>& types, LineRegion& region);

    /// `(tensor<..>, tensor<..>) -> tensor<..>`.
    std::string functional(const Op& op) const { return functional(op, op.operands.size()); }

    /// The same of the first `count` operands.
    std::string functional(const Op& op, std::size_t count) const;

    /// The one type when operand and result have the same, as most element-wise ops print.
    std::string sameOrFunctional(const Op& op) const;
    void lowerOp(const Op& op, LineRegion& region);

    /// Adds the line, which makes the results of the op.
    void addLine(LineRegion& region, const Op& op, Line line);

    /// A block that combines two elements, or takes the second one.
    LineRegion combinerRegion(std::optional<ReduceKind> kind, DType dtype);
    std::string opText(const Op& op, const std::string& attributes) const;

    /// `name = [1, 2]`, left out when the list is empty.
    static std::string dimsText(const char* name, const std::vector<std::size_t>& numbers);
    static std::string listsText(OpAttributes attributes);
    static std::string numbersText(const OpAttributes& attributes);
    std::string typesText(const Op& op) const;
    std::string partsText(const Op& op, const std::string& name, const std::string& attributes) const;
    std::string dotText(const Op& op, const std::string& attributes) const;

    /// Ops that name their result's sharding give it to the result too; these attributes say where the result differs.
    void addResultSharding(AttributeList& attributes, const Op& op, const TensorSharding& named) const;
    std::string constraintText(const Op& op) const;
    std::string transferText(const Op& op) const;
    std::string collectiveText(const Op& op) const;

    // Repeat ---------------------------------------------------------------------------------------------------------------

    /// One step's part of a stacked array: its index along dimension 0, and zeros.
    std::vector<TextValue> sliceIndices(TextValue index, TextValue zero, std::size_t rank);
    static TensorType withLeadingOne(TensorType slice);

    /// A counted while, in the order counter, carries, stacked operands, invariants, stacked results.
    void lowerRepeat(const Op& op, LineRegion& region);

    /// `stablehlo.while(%iterArg = %0) : type attributes {..}` and its two blocks.
    static std::string whileText(const std::vector<TensorType>& types, const std::string& attributes);
    static std::vector<TextValue> interleaved(const std::vector<TextValue>& a, const std::vector<TextValue>& b);
    static std::string typeList(const std::vector<TensorType>& types);
    std::string repeatAttributes(const Op& op, const std::vector<TensorType>& types) const;
    std::vector<TextValue> newArguments(std::size_t count);
    LineRegion conditionOf(const std::vector<TensorType>& types, std::int64_t count);
    LineRegion bodyOf(const Op& op, const Block& block, const std::vector<TensorType>& types);

    // Other ops with blocks, and kept ones -----------------------------------------------------------------------------------

    /// A block whose first `own` arguments are its own; the others stand for the last operands of the op.
    LineRegion lowerBody(const Op& op, BlockId id, std::size_t own, const std::string& returns);
    std::vector<TextValue> textsOf(const std::vector<ValueId>& values, std::size_t count) const;
    void lowerWhile(const Op& op, LineRegion& region);
    void lowerWithBlocks(const Op& op, LineRegion& region);
    void lowerCase(const Op& op, LineRegion& region);
    std::string shardingList(const char* name, const std::vector<TensorSharding>& shardings) const;
    void lowerComputation(const Op& op, LineRegion& region);
    void lowerOther(const Op& op, LineRegion& region);
    std::string genericText(const Op& op, const OtherAttributes& other) const;

    /// The form of its own that MLIR prints a kept op in; nothing where that is the generic one.
    std::optional<std::string> otherText(const Op& op, const OtherAttributes& other, Line& line) const;

    /// The attributes that a form does not show by itself.
    std::string restOf(const Op& op, const OtherAttributes& other, const std::vector<std::string_view>& shown) const;

    /// `stablehlo.reduce(%0 init: %1), (%2 init: %3) across dimensions = [1]`.
    void reduceText(const Op& op, const OtherAttributes& other, Line& line, std::string& text) const;

    /// Its block on a line of its own, with a pair of arguments for each operand.
    std::string reducerText(const Op& op, Line& line) const;
    static std::string convolutionText(const OtherAttributes& other, std::vector<std::string_view>& shown);

    const Program& m_program;
    const Function& m_function;
    std::vector<TextValue> m_textOf; ///< of every value of the function
    TextValue m_nextValue = 0;
};

} // namespace meshwright
