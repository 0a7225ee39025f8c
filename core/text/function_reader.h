// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/text/report.h"
#include "core/text/syntax.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace meshwright {

/// What a value of the text stands for while a function is read.
struct Binding {
    enum class Kind : std::uint8_t {
        Unknown, ///< a problem was reported where it is made
        Value,
        Index, ///< scale * step + offset in the loop `frame`; a constant when scale is 0
        Truth, ///< offset: 0 or 1
        Stacked, ///< a stacked operand as a whole; `value` is the body's argument for one step
        Slice, ///< one step's slice with its leading 1; `value` is the body's argument
        Buffer, ///< a stacked result before this step; offset: which of the loop's arguments
        Written, ///< the same with this step's slice, `value`, in its place
    };

    Kind kind = Kind::Unknown;
    int frame = 0; ///< the loop, counted from the outermost (1), whose body it lives in; 0: the function
    ValueId value;
    std::int64_t scale = 0;
    std::int64_t offset = 0;
    TensorType type; ///< of all but Value
};

/// What fits a sharding of another rank to a value of this one.
std::string entriesFix(std::size_t rank);

/// Turns the syntax of one function, and of what it calls, into a Function. Part of `readProgram`.
class FunctionReader {
public:
    FunctionReader(const SyntaxModule& module, std::string_view text, TextProblems& problems)
        : m_module(module)
        , m_text(text)
        , m_problems(problems)
        , m_builder(m_function)
    {
        for (const SyntaxFunction& function : module.functions)
            m_functions.emplace(function.name, &function);
    }

    /// The function; what is wrong with it goes to the problems.
    Function read(const SyntaxFunction& syntax);

    /// An op of which nothing is known: where it stands first, and how often there are such.
    struct UnknownOp {
        std::size_t offset = 0;
        std::size_t count = 0;
    };
    const std::map<std::string, UnknownOp>& unknownOps() const { return m_unknown; }

    /// Where each op of the function that was read stands.
    const std::vector<std::size_t>& opOffsets() const { return m_opOffsets; }

private:
    using Bindings = std::vector<Binding>; ///< of the values of one syntax function, in one of its calls

    /// A block that is being read: the body of a counted loop, or a block of another op.
    struct Frame {
        BlockId outer;
        BlockId body;
        std::int64_t count = 0; ///< of a counted loop; 0: none
        bool isIsolated = false; ///< nothing from outside is seen in it
        bool mustCarry = false; ///< what seemed to be a stacked result is used otherwise
        std::size_t offset = 0;
        std::optional<bool> reversed;
        std::map<ValueId, ValueId> invariants; ///< from outside to the body's argument, or to a copy of a constant
        std::map<ValueId, ValueId> slices;
        std::vector<ValueId> stackedOperands;
        std::vector<ValueId> stackedArguments;
        std::vector<ValueId> invariantOperands;
        std::vector<ValueId> invariantArguments;
        ValueId counter; ///< the body's argument with the number of the step, if one was needed
        std::size_t counterPosition = 0; ///< among the stacked operands
    };

    /// What a while's arguments are.
    enum class LoopRole : std::uint8_t { Index, Carry, Stacked, Invariant, Output };

    struct LoopPlan {
        std::int64_t count = 0;
        bool isExplicit = false; ///< written by us: the arguments' order says what they are
        std::vector<LoopRole> roles;
        std::vector<Binding> initial; ///< of the arguments
        std::vector<std::int64_t> steps; ///< of indices
    };

    /// A block of an op, as it was read.
    struct BlockRead {
        BlockId block;
        std::vector<ValueId> yielded;
        std::vector<ValueId> captured; ///< values outside, and ..
        std::vector<ValueId> arguments; ///< .. the block's arguments that stand for them
    };

    // Functions, regions, calls (reader.cpp)
    void readArguments(const SyntaxFunction& syntax, Bindings& bindings);
    void readResults(const SyntaxFunction& syntax, const std::optional<Bindings>& results);
    void readDonations(const SyntaxFunction& syntax);
    std::optional<Bindings> readRegion(const SyntaxRegion& region, Bindings& bindings, std::size_t offset);
    void readOp(const SyntaxOp& op, Bindings& bindings);
    void readKnown(const SyntaxOp& op, Bindings& bindings);
    void readCall(const SyntaxOp& op, Bindings& bindings);
    void eraseConsumed();
    void readNotes(const SyntaxAttribute& notes, ValueId value);
    bool readTiles(const SyntaxAttribute& attributes, ValueId value);
    bool readTiledConstraint(const SyntaxOp& op, Bindings& bindings);
    void setSharding(ValueId value, TensorSharding sharding, std::size_t offset);
    void fillMaximal(TensorSharding& sharding, const TensorType& type) const;
    std::string_view textOf(const SyntaxUse& use) const { return m_text.substr(use.offset, use.length); }

    // Values (reader.cpp)
    TensorType typeOf(const Binding& binding) const;
    Binding bind(ValueId value) const;
    ValueId use(const Binding& binding, std::size_t offset);
    ValueId useIndex(const Binding& binding);
    ValueId imported(ValueId value, int frame);
    ValueId importInto(Frame& frame, ValueId value);
    int depth() const { return static_cast<int>(m_frames.size()); }
    void consume(ValueId value) { m_consumed.push_back(value); }

    // Single ops (read_op.cpp)
    bool checkType(const SyntaxType& type, const TensorType& actual, std::string_view what);
    bool checkOperandType(const SyntaxType& type, const TensorType& actual, const SyntaxUse& use);
    bool checkResultType(const SyntaxOp& op, const SyntaxType& type, const TensorType& actual, std::size_t index);
    bool checkOperandTypes(const SyntaxOp& op, const std::vector<TensorType>& types);
    const TensorType* resultType(const SyntaxOp& op);
    std::optional<std::vector<std::size_t>> dimsOf(const SyntaxOp& op, const SyntaxAttribute* attribute, std::string_view what);
    void readKind(const SyntaxOp& op, OpKind kind, Bindings& bindings);
    bool makeAttributes(const SyntaxOp& op, OpKind kind, const std::vector<TensorType>& types, OpAttributes& attributes);
    bool makeDot(const SyntaxOp& op, const std::vector<TensorType>& types, DotAttributes& dot);
    bool makeCompare(const SyntaxOp& op, const TensorType& type, CompareAttributes& compare);
    bool checkEnumerators(const SyntaxOp& op);
    bool readLists(const SyntaxOp& op, OpAttributes& attributes);
    bool readNumbers(const SyntaxOp& op, OpAttributes& attributes);
    bool readWholeCollective(const SyntaxOp& op, ValueId operand, OpKind& kind, OpAttributes& attributes);
    bool makeCollective(const SyntaxOp& op, OpKind kind, const TensorType& operand, CollectiveAttributes& collective);
    void readPieces(const SyntaxOp& op, const SyntaxAttribute& dims, CollectiveAttributes& collective);
    void readCollectiveNotes(const SyntaxOp& op, const Mesh& mesh, CollectiveAttributes& collective);
    void readReduce(const SyntaxOp& op, Bindings& bindings);
    static bool takesScalarsOf(const SyntaxOp& op, DType dtype);
    std::optional<ReduceKind> reduceKindOf(const SyntaxOp& op);
    bool readCustomCall(const SyntaxOp& op, Bindings& bindings);
    void checkVariance(const Function& function);
    void readGroup(const SyntaxOp& op, Bindings& bindings);
    void readDataFlowEdge(const SyntaxOp& op, Bindings& bindings);
    bool add(const SyntaxOp& op, OpKind kind, std::vector<ValueId> operands, OpAttributes attributes, Bindings& bindings);
    bool add(const SyntaxOp& op, OpKind kind, std::vector<ValueId> operands, std::span<const TensorType> types,
        OpAttributes attributes, Bindings& bindings);
    void finish(const SyntaxOp& op, OpKind kind, const std::vector<ValueId>& results);
    void finishOne(const SyntaxOp& op, OpKind kind, ValueId result);
    void setShardings(const SyntaxOp& op, const std::vector<ValueId>& values, const char* what);
    std::shared_ptr<const KeptText> keptText(const SyntaxOp& op, OpKind kind) const;
    bool useOperands(
        const SyntaxOp& op, const Bindings& bindings, std::vector<ValueId>& operands, std::vector<TensorType>& types);
    bool fits(const SyntaxOp& op, OpKind kind, const OpAttributes& attributes, std::span<const TensorType> operands,
        std::vector<TensorType>& results);

    // Ops that are kept, parts of arrays, ops with blocks (read_other.cpp)
    KeptAttribute keptAttribute(const SyntaxEntry& entry) const;
    KeptAttributes ownAttributes(const SyntaxOp& op) const;
    bool makeParts(const SyntaxOp& op, OpKind kind, OpAttributes& attributes);
    bool checkWindow(const SyntaxOp& op);
    void promote(const SyntaxOp& op, OpKind kind, std::vector<ValueId>& operands, std::vector<TensorType>& types);
    bool addCombiner(const SyntaxOp& op, OpId id, DType dtype);
    void addRegrouping(const SyntaxOp& op, ValueId operand, OtherAttributes other, Bindings& bindings);
    void readOther(const SyntaxOp& op, Bindings& bindings);
    std::string verbatimText(const SyntaxOp& op) const;
    std::optional<std::vector<TensorType>> declaredResults(const SyntaxOp& op);
    bool readBlock(const SyntaxOp& op, const SyntaxRegion& region, OpId id, const std::vector<TensorType>& arguments,
        bool isIsolated, Bindings& bindings, BlockRead& read);
    std::size_t shareCaptures(OpId op, std::vector<BlockRead>& blocks);
    void finishBlocks(const SyntaxOp& op, OpId id, const std::vector<TensorType>& results, Bindings& bindings);
    void finishBlocks(const SyntaxOp& op, OpId id, const std::vector<ValueId>& values, Bindings& bindings);
    void drop(OpId op);
    void readPlainWhile(const SyntaxOp& op, Bindings& bindings);
    void readCase(const SyntaxOp& op, Bindings& bindings);
    void readComputation(const SyntaxOp& op, Bindings& bindings);
    bool makeComputation(const SyntaxOp& op, const std::vector<TensorType>& operands, const std::vector<TensorType>& results,
        ComputationAttributes& attributes);
    void readScatter(const SyntaxOp& op, Bindings& bindings);

    // Loops (read_loop.cpp)
    using Definitions = std::unordered_map<std::int32_t, const SyntaxOp*>;
    const Definitions& definitionsOf(const SyntaxRegion& region);
    std::optional<std::int64_t> constantIn(const SyntaxRegion& region, const SyntaxUse& use, const Bindings* outside);
    std::optional<std::int64_t> stepOf(
        const SyntaxRegion& region, const SyntaxUse& use, std::int32_t argument, const Bindings* outside, int level);
    bool isWritten(const SyntaxRegion& region, const SyntaxUse& use, std::int32_t argument, int level);
    const SyntaxFunction* calleeOf(const SyntaxOp& op) const;
    /// What a loop counts: one of its values, which is as the condition asks so many times.
    struct Counter {
        std::size_t at = 0;
        std::int64_t turns = 0;
    };
    std::optional<std::int64_t> boundIn(const SyntaxOp& op, const SyntaxUse& bound, const Bindings& bindings);
    std::optional<Counter> counterOf(const SyntaxOp& op, const Bindings& bindings);
    void planRoles(const SyntaxOp& op, const Bindings& bindings, LoopPlan& plan);
    bool isWellFormed(const SyntaxOp& op);
    std::optional<LoopPlan> planOf(const SyntaxOp& op, const Bindings& bindings);
    void readWhile(const SyntaxOp& op, Bindings& bindings);
    bool readCounted(const SyntaxOp& op, const LoopPlan& plan, const std::vector<TensorType>& types, Bindings& bindings);
    void bindLoopArguments(const SyntaxOp& op, const LoopPlan& plan, const std::vector<ValueId>& initial, Bindings& bindings);
    bool yieldLoop(const SyntaxOp& op, const LoopPlan& plan, const Bindings& yielded);
    void closeLoop(const SyntaxOp& op, OpId repeat);
    void makeCounterOperand(Frame& frame);
    void bindLoopResults(const SyntaxOp& op, const LoopPlan& plan, OpId repeat, Bindings& bindings);
    void readLoopNotes(const SyntaxOp& op, std::string_view key, const std::vector<ValueId>& values);
    void readSlice(const SyntaxOp& op, Bindings& bindings);
    void readUpdate(const SyntaxOp& op, Bindings& bindings);
    bool isStepIndex(const SyntaxOp& op, const Bindings& bindings, std::size_t first, bool& reversed);
    bool direct(bool reversed);
    struct Affine {
        std::int64_t scale = 0;
        std::int64_t offset = 0;
        int frame = 0;
    };
    std::optional<Affine> affineOf(const Binding& binding, bool consumes);
    bool foldIndex(const SyntaxOp& op, OpKind kind, Bindings& bindings);
    std::optional<bool> compareAlways(CompareDirection direction, const Affine& lhs, const Affine& rhs) const;

    const SyntaxModule& m_module;
    std::string_view m_text;
    TextProblems& m_problems;
    std::unordered_map<std::string_view, const SyntaxFunction*> m_functions;

    Function m_function;
    Builder m_builder;
    std::vector<Frame> m_frames;
    std::vector<const SyntaxFunction*> m_calls; ///< being read, outermost first
    std::vector<ValueId> m_consumed; ///< read for what they say; not kept unless something else uses them
    std::map<std::int64_t, std::vector<ValueId>> m_groups;
    std::unordered_map<const SyntaxRegion*, Definitions> m_definitions;
    std::set<const SyntaxOp*> m_carryAll; ///< loops without stacked results
    std::map<std::string, UnknownOp> m_unknown;
    std::size_t m_opsRead = 0;
    std::vector<std::size_t> m_opOffsets; ///< of each op made so far, then of those that are left
    std::size_t m_opOffset = 0; ///< of the op that is being read
};

} // namespace meshwright
