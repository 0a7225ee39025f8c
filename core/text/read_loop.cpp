// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/checked.h"
#include "core/text/function_reader.h"
#include "core/text/notation.h"
#include "core/text/op_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace meshwright {

namespace {

using Kind = SyntaxAttribute::Kind;
constexpr int kDeepestTrace = 20;

std::optional<std::int64_t> scalarInteger(const ConstantAttributes& constant)
{
    const auto* value = std::get_if<std::int64_t>(&constant.data.value);
    if (value == nullptr || !constant.type.shape.empty() || !isInteger(constant.type.dtype))
        return std::nullopt;
    return *value;
}

/// a + b * c.
std::optional<std::int64_t> checkedMultiplyAdd(std::int64_t a, std::int64_t b, std::int64_t c)
{
    const auto product = checkedMultiply(b, c);
    std::int64_t sum = 0;
    if (!product || __builtin_add_overflow(a, *product, &sum))
        return std::nullopt;
    return sum;
}

} // namespace

// What a while counts: found in the text alone, before its body is read -------------------------------------------------------

const FunctionReader::Definitions& FunctionReader::definitionsOf(const SyntaxRegion& region)
{
    const auto [at, isNew] = m_definitions.try_emplace(&region);
    if (isNew) {
        for (const SyntaxOp& op : region.ops) {
            for (std::int32_t i = 0; i < op.resultCount; ++i)
                at->second.emplace(op.firstResult + i, &op);
        }
    }
    return at->second;
}

const SyntaxFunction* FunctionReader::calleeOf(const SyntaxOp& op) const
{
    const SyntaxAttribute* name = op.name == "call" || op.name == "func.call" ? op.find("callee") : nullptr;
    const auto found = name == nullptr ? m_functions.end() : m_functions.find(name->text);
    const bool fits = found != m_functions.end() && found->second->body.arguments.size() == op.operands.size()
        && !found->second->body.ops.empty()
        && found->second->body.ops.back().operands.size() == static_cast<std::size_t>(op.resultCount);
    return fits ? found->second : nullptr;
}

std::optional<std::int64_t> FunctionReader::constantIn(const SyntaxRegion& region, const SyntaxUse& use, const Bindings* outside)
{
    const Definitions& definitions = definitionsOf(region);
    if (const auto found = definitions.find(use.value); found != definitions.end()) {
        const SyntaxAttribute* value = opKindOf(found->second->name) == OpKind::Constant ? found->second->find("value") : nullptr;
        return value == nullptr ? std::nullopt : scalarInteger(value->constant);
    }
    if (outside == nullptr || use.value < 0)
        return std::nullopt;
    const auto affine = affineOf((*outside)[static_cast<std::size_t>(use.value)], true);
    return affine && affine->scale == 0 ? std::optional(affine->offset) : std::nullopt;
}

/// By how much the value lies above the region's argument, when it is that argument plus a constant; calls are looked into.
std::optional<std::int64_t> FunctionReader::stepOf(
    const SyntaxRegion& region, const SyntaxUse& use, std::int32_t argument, const Bindings* outside, int level)
{
    if (use.value == argument)
        return 0;
    const Definitions& definitions = definitionsOf(region);
    const auto found = definitions.find(use.value);
    if (found == definitions.end() || level > kDeepestTrace)
        return std::nullopt;
    const SyntaxOp& op = *found->second;
    const auto kind = opKindOf(op.name);
    if ((kind == OpKind::Add || kind == OpKind::Subtract) && op.operands.size() == 2) {
        for (const std::size_t constantAt : {std::size_t{1}, std::size_t{0}}) {
            const auto constant = constantIn(region, op.operands[constantAt], outside);
            if (!constant || (kind == OpKind::Subtract && constantAt == 0))
                continue;
            const auto step = stepOf(region, op.operands[1 - constantAt], argument, outside, level + 1);
            return step ? checkedMultiplyAdd(*step, kind == OpKind::Add ? 1 : -1, *constant) : std::nullopt;
        }
        return std::nullopt;
    }
    const SyntaxFunction* callee = calleeOf(op);
    if (callee == nullptr)
        return std::nullopt;
    const SyntaxUse& returned = callee->body.ops.back().operands[static_cast<std::size_t>(use.value - op.firstResult)];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const auto inside = stepOf(callee->body, returned, callee->body.arguments[i], nullptr, level + 1);
        if (!inside)
            continue;
        const auto before = stepOf(region, op.operands[i], argument, outside, level + 1);
        return before ? checkedMultiplyAdd(*before, 1, *inside) : std::nullopt;
    }
    return std::nullopt;
}

/// True when the value is the region's argument with a slice written into it; calls are looked into.
bool FunctionReader::isWritten(const SyntaxRegion& region, const SyntaxUse& use, std::int32_t argument, int level)
{
    const Definitions& definitions = definitionsOf(region);
    const auto found = definitions.find(use.value);
    if (found == definitions.end() || level > kDeepestTrace)
        return false;
    const SyntaxOp& op = *found->second;
    if (op.name == "stablehlo.dynamic_update_slice")
        return !op.operands.empty() && op.operands.front().value == argument;
    const SyntaxFunction* callee = calleeOf(op);
    if (callee == nullptr)
        return false;
    const SyntaxUse& returned = callee->body.ops.back().operands[static_cast<std::size_t>(use.value - op.firstResult)];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (op.operands[i].value == argument && isWritten(callee->body, returned, callee->body.arguments[i], level + 1))
            return true;
    }
    return false;
}

/// The number that the condition's value is, whatever the turn; nothing where it changes.
std::optional<std::int64_t> FunctionReader::boundIn(const SyntaxOp& op, const SyntaxUse& bound, const Bindings& bindings)
{
    const auto& arguments = op.regions[0].arguments;
    const auto at = static_cast<std::size_t>(std::find(arguments.begin(), arguments.end(), bound.value) - arguments.begin());
    if (at == arguments.size())
        return constantIn(op.regions[0], bound, &bindings);
    const SyntaxRegion& body = op.regions[1];
    const auto initial
        = op.operands[at].value < 0 ? std::nullopt : affineOf(bindings[static_cast<std::size_t>(op.operands[at].value)], false);
    const auto step = stepOf(body, body.ops.back().operands[at], body.arguments[at], &bindings, 0);
    return initial && initial->scale == 0 && step && *step == 0 ? std::optional(initial->offset) : std::nullopt;
}

namespace {

/// How often a counter that goes from `first` in steps is as the condition asks, before it is not; nothing where that
/// never comes.
std::optional<std::int64_t> turnsOf(std::string_view direction, std::int64_t first, std::int64_t step, std::int64_t limit)
{
    const bool isInclusive = direction == "LE" || direction == "GE";
    const bool goesUp = direction == "LT" || direction == "LE";
    const bool goesDown = direction == "GT" || direction == "GE";
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    const auto distance = checkedMultiplyAdd(limit, -1, first);
    if (!distance || *distance == kLeast || step == 0 || step == kLeast || (!goesUp && !goesDown && direction != "NE"))
        return std::nullopt;
    if (direction == "NE")
        return *distance % step == 0 && *distance / step >= 0 ? std::optional(*distance / step) : std::nullopt;
    // In the direction of the steps.
    const auto ahead = checkedMultiplyAdd(isInclusive ? 1 : 0, goesUp ? 1 : -1, *distance);
    if (!ahead || *ahead <= 0)
        return ahead ? std::optional<std::int64_t>(0) : std::nullopt;
    return goesUp == (step > 0) ? std::optional(ceilDiv(*ahead, std::abs(step))) : std::nullopt;
}

/// True when the type has the number.
bool holds(DType dtype, std::int64_t number)
{
    const std::int64_t bits = 8 * byteSize(dtype);
    if (isUnsigned(dtype))
        return number >= 0 && (bits == 64 || number >> bits == 0);
    return bits == 64 || (number >> (bits - 1) == 0 || number >> (bits - 1) == -1);
}

} // namespace

/// The condition's counter, of those that it compares, and how often it holds; nothing when it is not of that form.
std::optional<FunctionReader::Counter> FunctionReader::counterOf(const SyntaxOp& op, const Bindings& bindings)
{
    const SyntaxRegion& condition = op.regions[0];
    const SyntaxRegion& body = op.regions[1];
    if (condition.ops.empty() || condition.ops.back().operands.size() != 1)
        return std::nullopt;
    const Definitions& definitions = definitionsOf(condition);
    const auto found = definitions.find(condition.ops.back().operands.front().value);
    if (found == definitions.end() || opKindOf(found->second->name) != OpKind::Compare || found->second->operands.size() != 2)
        return std::nullopt;
    const SyntaxOp& compare = *found->second;
    const SyntaxAttribute* attribute = compare.find("comparison_direction");
    std::string_view direction = attribute != nullptr ? std::string_view(attribute->text)
        : compare.words.empty()                       ? std::string_view()
                                                      : compare.words.front();
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        if (side == 1) // seen from the other side
            direction = direction == "LT" ? "GT"
                : direction == "GT"       ? "LT"
                : direction == "LE"       ? "GE"
                : direction == "GE"       ? "LE"
                                          : direction;
        const auto at = static_cast<std::size_t>(
            std::find(condition.arguments.begin(), condition.arguments.end(), compare.operands[side].value)
            - condition.arguments.begin());
        if (at == condition.arguments.size() || op.operands[at].value < 0)
            continue;
        const auto limit = boundIn(op, compare.operands[1 - side], bindings);
        const auto first = affineOf(bindings[static_cast<std::size_t>(op.operands[at].value)], false);
        const auto step = stepOf(body, body.ops.back().operands[at], body.arguments[at], &bindings, 0);
        if (!limit || !first || first->scale != 0 || !step)
            continue;
        const auto turns = turnsOf(direction, first->offset, *step, *limit);
        const auto end = turns ? checkedMultiplyAdd(first->offset, *turns, *step) : std::nullopt;
        if (end && holds(typeOf(bindings[static_cast<std::size_t>(op.operands[at].value)]).dtype, *end)) // else it begins again
            return Counter{at, *turns};
    }
    return std::nullopt;
}

/// False, and a problem, when the values of the loop, its results and what its blocks take and give differ in number.
bool FunctionReader::isWellFormed(const SyntaxOp& op)
{
    const std::size_t count = op.operands.size();
    const bool good = op.regions.size() == 2 && op.regions[0].arguments.size() == count && op.regions[1].arguments.size() == count
        && !op.regions[0].ops.empty() && !op.regions[1].ops.empty() && op.regions[1].ops.back().operands.size() == count
        && op.resultCount == static_cast<std::int32_t>(count) && opSyntax(op.regions[1].ops.back().name) == OpSyntax::Return;
    return good
        || m_problems.report("MW1328", op.offset, "the loop's values, its results and what its body returns differ in number");
}

/// What the loop does, when it is a counted one.
std::optional<FunctionReader::LoopPlan> FunctionReader::planOf(const SyntaxOp& op, const Bindings& bindings)
{
    const auto counter = counterOf(op, bindings);
    if (!counter)
        return std::nullopt;
    LoopPlan plan;
    plan.count = counter->turns;
    plan.isExplicit = op.find("mw.carries") != nullptr && op.find("mw.stacked") != nullptr && counter->at == 0;
    planRoles(op, bindings, plan);
    return plan;
}

void FunctionReader::planRoles(const SyntaxOp& op, const Bindings& bindings, LoopPlan& plan)
{
    const SyntaxRegion& body = op.regions[1];
    std::int64_t carriesEnd = 0;
    std::int64_t stackedEnd = 0;
    if (plan.isExplicit) {
        const auto count = static_cast<std::int64_t>(op.operands.size());
        carriesEnd = 1 + std::clamp<std::int64_t>(op.find("mw.carries")->integer, 0, count);
        stackedEnd = carriesEnd + std::clamp<std::int64_t>(op.find("mw.stacked")->integer, 0, count);
    }
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const Binding& initial = bindings[static_cast<std::size_t>(op.operands[i].value)];
        const SyntaxUse& next = body.ops.back().operands[i];
        const auto step = stepOf(body, next, body.arguments[i], &bindings, 0);
        const auto start = affineOf(initial, false);
        const auto position = static_cast<std::int64_t>(i);
        plan.initial.push_back(initial);
        plan.steps.push_back(step.value_or(0));
        LoopRole role = LoopRole::Carry;
        if (plan.isExplicit && i > 0 && position < stackedEnd)
            role = position < carriesEnd ? LoopRole::Carry : LoopRole::Stacked;
        else if (step && *step != 0 && start && start->scale == 0)
            role = LoopRole::Index;
        else if (step && *step == 0)
            role = LoopRole::Invariant;
        else if (!m_carryAll.contains(&op) && isWritten(body, next, body.arguments[i], 0))
            role = LoopRole::Output;
        plan.roles.push_back(role);
    }
}

// Reading a loop ---------------------------------------------------------------------------------------------------------------

void FunctionReader::readWhile(const SyntaxOp& op, Bindings& bindings)
{
    std::vector<TensorType> types;
    for (const SyntaxUse& operand : op.operands) {
        if (operand.value < 0 || bindings[static_cast<std::size_t>(operand.value)].kind == Binding::Kind::Unknown)
            return;
        types.push_back(typeOf(bindings[static_cast<std::size_t>(operand.value)]));
    }
    if (op.operandTypes.size() != types.size()) {
        m_problems.report(
            "MW1325", op.offset, fmt::format("the loop has {} values but {} types", types.size(), op.operandTypes.size()));
        return;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (!checkType(op.operandTypes[i], types[i], textOf(op.operands[i])))
            return;
    }
    if (!isWellFormed(op))
        return;
    const std::size_t before = m_problems.size();
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto plan = planOf(op, bindings);
        if (!plan)
            return readPlainWhile(op, bindings);
        if (plan->count < 1) {
            for (std::size_t i = 0; i < plan->initial.size(); ++i)
                bindings[static_cast<std::size_t>(op.firstResult) + i] = plan->initial[i];
            return;
        }
        if (readCounted(op, *plan, types, bindings) || !m_carryAll.contains(&op))
            return;
        m_problems.forgetFrom(before);
    }
}

/// False when the loop has to be read again without stacked results.
bool FunctionReader::readCounted(
    const SyntaxOp& op, const LoopPlan& plan, const std::vector<TensorType>& types, Bindings& bindings)
{
    std::vector<ValueId> initial(plan.initial.size());
    RepeatAttributes attributes;
    attributes.count = plan.count;
    std::vector<ValueId> carries;
    for (std::size_t i = 0; i < initial.size(); ++i) {
        const LoopRole role = plan.roles[i];
        if (role == LoopRole::Carry || role == LoopRole::Stacked || (role == LoopRole::Invariant && plan.isExplicit)) {
            initial[i] = use(plan.initial[i], op.operands[i].offset);
            if (!initial[i].valid())
                return true;
        } else if (plan.initial[i].kind == Binding::Kind::Value) { // kept only if something else uses it
            consume(plan.initial[i].value);
        }
        if (role == LoopRole::Carry)
            carries.push_back(initial[i]);
        if (role == LoopRole::Stacked && (types[i].shape.empty() || types[i].shape.front() != plan.count)) {
            m_problems.report("MW1325", op.operands[i].offset,
                fmt::format("a stacked operand of {} steps is {}", plan.count, typeText(types[i])));
            return true;
        }
    }
    attributes.carries = carries.size();
    Frame frame;
    frame.outer = m_builder.block();
    frame.count = plan.count;
    if (plan.isExplicit)
        frame.reversed = op.find("mw.reversed") != nullptr;
    const OpId repeat = m_builder.beginRepeat(attributes, std::move(carries));
    frame.body = m_builder.block();
    m_frames.push_back(std::move(frame));
    bindLoopArguments(op, plan, initial, bindings);

    const auto yielded = readRegion(op.regions[1], bindings, op.offset);
    if (!yielded || !yieldLoop(op, plan, *yielded) || m_frames.back().mustCarry) {
        const bool again = m_frames.back().mustCarry && m_carryAll.insert(&op).second;
        m_frames.pop_back();
        drop(repeat);
        return !again;
    }
    closeLoop(op, repeat);
    bindLoopResults(op, plan, repeat, bindings);
    return true;
}

void FunctionReader::bindLoopArguments(
    const SyntaxOp& op, const LoopPlan& plan, const std::vector<ValueId>& initial, Bindings& bindings)
{
    Frame& frame = m_frames.back();
    std::size_t carry = 0;
    for (std::size_t i = 0; i < plan.roles.size(); ++i) {
        Binding& binding = bindings[static_cast<std::size_t>(op.regions[1].arguments[i])];
        binding = Binding();
        binding.frame = depth();
        binding.type = typeOf(plan.initial[i]);
        switch (plan.roles[i]) {
        case LoopRole::Index:
            binding.kind = Binding::Kind::Index;
            binding.scale = plan.steps[i];
            binding.offset = affineOf(plan.initial[i], true)->offset;
            break;
        case LoopRole::Carry:
            binding = bind(m_function[frame.body].arguments[carry++]);
            break;
        case LoopRole::Stacked: {
            TensorType slice = binding.type;
            slice.shape.erase(slice.shape.begin());
            binding.kind = Binding::Kind::Stacked;
            binding.value = m_builder.argument(std::move(slice));
            frame.stackedOperands.push_back(initial[i]);
            frame.stackedArguments.push_back(binding.value);
            break;
        }
        case LoopRole::Invariant:
            if (!plan.isExplicit) {
                binding = plan.initial[i];
                break;
            }
            binding = bind(m_builder.argument(binding.type));
            frame.invariantOperands.push_back(initial[i]);
            frame.invariantArguments.push_back(binding.value);
            break;
        case LoopRole::Output:
            binding.kind = Binding::Kind::Buffer;
            binding.offset = static_cast<std::int64_t>(i);
            break;
        }
    }
}

/// Sets what the body yields: the next carries, then the slices of the stacked results.
bool FunctionReader::yieldLoop(const SyntaxOp& op, const LoopPlan& plan, const Bindings& yielded)
{
    const SyntaxList<SyntaxUse>& returned = op.regions[1].ops.back().operands;
    std::vector<ValueId> carries;
    std::vector<ValueId> outputs;
    for (std::size_t i = 0; i < plan.roles.size(); ++i) {
        if (yielded[i].kind == Binding::Kind::Unknown)
            return false;
        const TensorType type = typeOf(plan.initial[i]);
        if (typeOf(yielded[i]) != type)
            return m_problems.report("MW1325", returned[i].offset,
                fmt::format("the loop's value {} changes from {} to {}", i, typeText(type), typeText(typeOf(yielded[i]))));
        if (plan.roles[i] == LoopRole::Carry) {
            carries.push_back(use(yielded[i], returned[i].offset));
            if (!carries.back().valid())
                return false;
        } else if (plan.roles[i] == LoopRole::Output) {
            if (yielded[i].kind != Binding::Kind::Written || yielded[i].offset != static_cast<std::int64_t>(i)
                || yielded[i].frame != depth()) {
                m_frames.back().mustCarry = true;
                return false;
            }
            outputs.push_back(yielded[i].value);
        }
    }
    carries.insert(carries.end(), outputs.begin(), outputs.end());
    m_builder.setResults(std::move(carries));
    return true;
}

/// Brings operands and arguments, which were found in any order, into Repeat's order, and gives the op its results.
void FunctionReader::closeLoop(const SyntaxOp& op, OpId repeat)
{
    Frame frame = std::move(m_frames.back());
    m_frames.pop_back();
    m_builder.setBlock(frame.outer);
    if (frame.counter.valid())
        makeCounterOperand(frame);

    auto& attributes = m_function[repeat].as<RepeatAttributes>();
    attributes.stacked = frame.stackedOperands.size();
    attributes.reversed = frame.reversed.value_or(false);
    Op& made = m_function[repeat];
    made.operands.insert(made.operands.end(), frame.stackedOperands.begin(), frame.stackedOperands.end());
    made.operands.insert(made.operands.end(), frame.invariantOperands.begin(), frame.invariantOperands.end());
    std::vector<ValueId>& arguments = m_function[frame.body].arguments;
    arguments.resize(attributes.carries);
    arguments.insert(arguments.end(), frame.stackedArguments.begin(), frame.stackedArguments.end());
    arguments.insert(arguments.end(), frame.invariantArguments.begin(), frame.invariantArguments.end());
    for (std::size_t i = 0; i < arguments.size(); ++i)
        m_function[arguments[i]].index = i;
    m_builder.endRepeat(repeat);
    readLoopNotes(op, "mw.arguments", m_function[frame.body].arguments);
    readLoopNotes(op, "mw.results", m_function[repeat].results);
    m_function[repeat].kept = keptText(op, OpKind::Repeat);
}

/// 0, 1, 2 and so on, or the other way round when slices are taken from the end, made right before the loop.
void FunctionReader::makeCounterOperand(Frame& frame)
{
    const std::size_t before = m_function[frame.outer].ops.size();
    const TensorType type{m_function[frame.counter].type.dtype, {frame.count}};
    ValueId steps = m_builder.iota(type, 0);
    if (frame.reversed.value_or(false))
        steps = m_builder.binary(
            OpKind::Subtract, m_builder.add(OpKind::Constant, {}, ConstantAttributes{type, {frame.count - 1}}), steps);
    std::vector<OpId>& ops = m_function[frame.outer].ops;
    std::rotate(
        ops.begin() + static_cast<std::ptrdiff_t>(before) - 1, ops.begin() + static_cast<std::ptrdiff_t>(before), ops.end());
    frame.stackedOperands[frame.counterPosition] = steps;
}

void FunctionReader::bindLoopResults(const SyntaxOp& op, const LoopPlan& plan, OpId repeat, Bindings& bindings)
{
    const std::vector<ValueId>& results = m_function[repeat].results;
    std::size_t carry = 0;
    std::size_t output = m_function[repeat].as<RepeatAttributes>().carries;
    for (std::size_t i = 0; i < plan.roles.size(); ++i) {
        Binding& binding = bindings[static_cast<std::size_t>(op.firstResult) + i];
        if (plan.roles[i] == LoopRole::Carry) {
            binding = bind(results[carry++]);
        } else if (plan.roles[i] == LoopRole::Output) {
            binding = bind(results[output++]);
        } else if (plan.roles[i] == LoopRole::Index) {
            const auto last = checkedMultiplyAdd(affineOf(plan.initial[i], false)->offset, plan.steps[i], plan.count);
            binding.kind = last ? Binding::Kind::Index : Binding::Kind::Unknown;
            binding.frame = depth();
            binding.scale = 0;
            binding.offset = last.value_or(0);
            binding.type = typeOf(plan.initial[i]);
        } else {
            binding = plan.initial[i];
        }
    }
    if (plan.isExplicit || op.find("mw.results") != nullptr)
        return;
    std::vector<ValueId> values(plan.roles.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (plan.roles[i] == LoopRole::Carry || plan.roles[i] == LoopRole::Output)
            values[i] = bindings[static_cast<std::size_t>(op.firstResult) + i].value;
    }
    setShardings(op, values, "results");
}

void FunctionReader::readLoopNotes(const SyntaxOp& op, std::string_view key, const std::vector<ValueId>& values)
{
    const SyntaxAttribute* notes = op.find(key);
    if (notes == nullptr)
        return;
    if (notes->items.size() != values.size()) {
        m_problems.report(
            "MW1326", notes->offset, fmt::format("{} has {} entries for {} values", key, notes->items.size(), values.size()));
        return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        readNotes(notes->items[i], values[i]);
        if (const SyntaxAttribute* sharding = notes->items[i].find("sdy.sharding");
            sharding != nullptr && sharding->shardings.size() == 1)
            setSharding(values[i], sharding->shardings.front(), sharding->offset);
    }
}

// Slices of one step -----------------------------------------------------------------------------------------------------------

/// True when the operands from `first` on are the indices of this step along dimension 0 and of everything along the others.
bool FunctionReader::isStepIndex(const SyntaxOp& op, const Bindings& bindings, std::size_t first, bool& reversed)
{
    for (std::size_t i = first; i < op.operands.size(); ++i) {
        const auto index
            = op.operands[i].value < 0 ? std::nullopt : affineOf(bindings[static_cast<std::size_t>(op.operands[i].value)], true);
        if (!index)
            return false;
        if (i > first) {
            if (index->scale != 0 || index->offset != 0)
                return false;
            continue;
        }
        reversed = index->scale == -1;
        const std::int64_t start = reversed ? m_frames.back().count - 1 : 0;
        if ((index->scale != 1 && !reversed) || index->offset != start || index->frame != depth())
            return false;
    }
    return op.operands.size() > first;
}

/// All slices of one loop are taken in one direction; false for the other one.
bool FunctionReader::direct(bool reversed)
{
    std::optional<bool>& direction = m_frames.back().reversed;
    if (direction && *direction != reversed)
        return false;
    direction = reversed;
    return true;
}

void FunctionReader::readSlice(const SyntaxOp& op, Bindings& bindings)
{
    for (const SyntaxUse& operand : op.operands) {
        if (operand.value < 0 || bindings[static_cast<std::size_t>(operand.value)].kind == Binding::Kind::Unknown)
            return;
    }
    const SyntaxAttribute* sizes = op.find("sizes") != nullptr ? op.find("sizes") : op.find("slice_sizes");
    const auto dims = dimsOf(op, sizes, "its sizes");
    const TensorType* declared = resultType(op);
    if (!dims || declared == nullptr || op.operands.empty())
        return;
    const Binding whole = bindings[static_cast<std::size_t>(op.operands.front().value)];
    const TensorType type = typeOf(whole);
    TensorType part = type;
    if (!part.shape.empty())
        part.shape.front() = 1;
    const bool outside = whole.kind == Binding::Kind::Stacked || (whole.kind == Binding::Kind::Value && whole.frame < depth());
    bool reversed = false;
    const bool isStep = !m_frames.empty() && m_frames.back().count > 0 && outside && !type.shape.empty()
        && type.shape.front() == m_frames.back().count && op.operands.size() == 1 + type.shape.size()
        && std::equal(dims->begin(), dims->end(), part.shape.begin(), part.shape.end(),
            [](std::size_t a, std::int64_t b) { return static_cast<std::int64_t>(a) == b; })
        && isStepIndex(op, bindings, 1, reversed) && *declared == part && direct(reversed);
    if (!isStep)
        return readKind(op, OpKind::DynamicSlice, bindings);
    Binding slice;
    slice.kind = Binding::Kind::Slice;
    slice.frame = depth();
    slice.type = part;
    slice.value = whole.value;
    if (whole.kind == Binding::Kind::Value) {
        ValueId outer = whole.value;
        for (int frame = whole.frame; frame + 1 < depth() && outer.valid(); ++frame)
            outer = importInto(m_frames[static_cast<std::size_t>(frame)], outer);
        if (!outer.valid())
            return;
        Frame& frame = m_frames.back();
        const auto [at, isNew] = frame.slices.try_emplace(outer);
        if (isNew) {
            const BlockId current = m_builder.block();
            m_builder.setBlock(frame.body);
            at->second = m_builder.argument({type.dtype, Shape(type.shape.begin() + 1, type.shape.end())});
            m_builder.setBlock(current);
            frame.stackedOperands.push_back(outer);
            frame.stackedArguments.push_back(at->second);
        }
        slice.value = at->second;
    }
    bindings[static_cast<std::size_t>(op.firstResult)] = slice;
}

void FunctionReader::readUpdate(const SyntaxOp& op, Bindings& bindings)
{
    for (const SyntaxUse& operand : op.operands) {
        if (operand.value < 0 || bindings[static_cast<std::size_t>(operand.value)].kind == Binding::Kind::Unknown)
            return;
    }
    const Binding buffer = op.operands.size() < 2 ? Binding() : bindings[static_cast<std::size_t>(op.operands.front().value)];
    if (buffer.kind != Binding::Kind::Buffer && buffer.kind != Binding::Kind::Written)
        return readKind(op, OpKind::DynamicUpdateSlice, bindings);
    bool reversed = false;
    TensorType part = buffer.type;
    if (!part.shape.empty())
        part.shape.front() = 1;
    const Binding& update = bindings[static_cast<std::size_t>(op.operands[1].value)];
    const bool isStep = buffer.kind == Binding::Kind::Buffer && buffer.frame == depth() && !buffer.type.shape.empty()
        && buffer.type.shape.front() == m_frames.back().count && op.operands.size() == 2 + buffer.type.shape.size()
        && isStepIndex(op, bindings, 2, reversed) && typeOf(update) == part && direct(reversed);
    if (!isStep) {
        m_frames[static_cast<std::size_t>(buffer.frame) - 1].mustCarry = true;
        return;
    }
    Binding written = buffer;
    written.kind = Binding::Kind::Written;
    if (update.kind == Binding::Kind::Slice) {
        written.value = imported(update.value, update.frame);
    } else {
        const ValueId value = use(update, op.operands[1].offset);
        if (!value.valid())
            return;
        // What only adds the leading 1 is undone.
        const Shape slice(part.shape.begin() + 1, part.shape.end());
        const OpId producer = m_function[value].producer;
        const bool adds = producer.valid()
            && (m_function[producer].kind == OpKind::Reshape || m_function[producer].kind == OpKind::BroadcastInDim)
            && m_function[m_function[producer].operands.front()].type.shape == slice;
        bool inOrder = adds;
        if (adds && m_function[producer].kind == OpKind::BroadcastInDim) {
            const auto& dims = m_function[producer].as<BroadcastAttributes>().dims;
            for (std::size_t i = 0; i < dims.size(); ++i)
                inOrder = inOrder && dims[i] == i + 1;
        }
        if (inOrder)
            consume(value);
        written.value = inOrder ? m_function[producer].operands.front() : m_builder.reshape(value, slice);
    }
    bindings[static_cast<std::size_t>(op.firstResult)] = written;
}

// Arithmetic on the number of the step -----------------------------------------------------------------------------------------

std::optional<FunctionReader::Affine> FunctionReader::affineOf(const Binding& binding, bool consumes)
{
    if (binding.kind == Binding::Kind::Index)
        return Affine{binding.scale, binding.offset, binding.frame};
    if (binding.kind != Binding::Kind::Value)
        return std::nullopt;
    const OpId producer = m_function[binding.value].producer;
    if (!producer.valid() || m_function[producer].kind != OpKind::Constant)
        return std::nullopt;
    const auto value = scalarInteger(m_function[producer].as<ConstantAttributes>());
    if (!value)
        return std::nullopt;
    if (consumes)
        consume(binding.value);
    return Affine{0, *value, 0};
}

/// Whether a comparison comes out the same in every step.
std::optional<bool> FunctionReader::compareAlways(CompareDirection direction, const Affine& lhs, const Affine& rhs) const
{
    const auto scale = checkedMultiplyAdd(lhs.scale, -1, rhs.scale);
    const auto first = checkedMultiplyAdd(lhs.offset, -1, rhs.offset);
    if (!scale || !first)
        return std::nullopt;
    std::optional<std::int64_t> last = first;
    if (*scale != 0)
        last = checkedMultiplyAdd(
            *first, *scale, m_frames[static_cast<std::size_t>(std::max(lhs.frame, rhs.frame)) - 1].count - 1);
    if (!last)
        return std::nullopt;
    const auto [low, high] = std::minmax(*first, *last);
    const auto decide = [](bool always, bool never) {
        return always ? std::optional(true) : never ? std::optional(false) : std::nullopt;
    };
    switch (direction) {
    case CompareDirection::Equal:
        return decide(low == 0 && high == 0, low > 0 || high < 0);
    case CompareDirection::NotEqual:
        return decide(low > 0 || high < 0, low == 0 && high == 0);
    case CompareDirection::Less:
        return decide(high < 0, low >= 0);
    case CompareDirection::LessEqual:
        return decide(high <= 0, low > 0);
    case CompareDirection::Greater:
        return decide(low > 0, high <= 0);
    case CompareDirection::GreaterEqual:
        return decide(low >= 0, high < 0);
    }
    return std::nullopt;
}

/// Works out an op on the number of the step without making it, where that is possible; false when it has to be made.
bool FunctionReader::foldIndex(const SyntaxOp& op, OpKind kind, Bindings& bindings)
{
    std::vector<Binding> operands;
    bool any = false;
    for (const SyntaxUse& operand : op.operands) {
        if (operand.value < 0 || operands.size() == 3)
            return false;
        operands.push_back(bindings[static_cast<std::size_t>(operand.value)]);
        any = any || operands.back().kind == Binding::Kind::Index || operands.back().kind == Binding::Kind::Truth
            || operands.back().kind == Binding::Kind::Slice;
    }
    if (!any || op.resultCount != 1)
        return false;
    Binding& result = bindings[static_cast<std::size_t>(op.firstResult)];
    if (kind == OpKind::Reshape && operands.front().kind == Binding::Kind::Slice) {
        const TensorType* declared = resultType(op);
        if (declared == nullptr || *declared != m_function[operands.front().value].type)
            return false;
        result = operands.front();
        result.kind = Binding::Kind::Value;
        return true;
    }
    if (kind == OpKind::Select && operands.size() == 3 && operands[0].kind == Binding::Kind::Truth) {
        result = operands[operands[0].offset != 0 ? 1 : 2];
        return true;
    }
    std::vector<Affine> terms;
    for (const Binding& operand : operands) {
        const auto term = affineOf(operand, false);
        if (!term)
            return false;
        terms.push_back(*term);
    }
    const TensorType* declared = resultType(op);
    if (declared == nullptr)
        return true;
    Binding folded;
    folded.kind = Binding::Kind::Index;
    folded.type = *declared;
    std::optional<std::int64_t> scale;
    std::optional<std::int64_t> offset;
    if (kind == OpKind::Convert && terms.size() == 1) {
        if (!isInteger(declared->dtype))
            return false;
        scale = terms[0].scale;
        offset = terms[0].offset;
    } else if (terms.size() != 2 || (terms[0].scale != 0 && terms[1].scale != 0 && terms[0].frame != terms[1].frame)) {
        return false;
    } else if (kind == OpKind::Compare) {
        CompareAttributes compare;
        if (!makeCompare(op, operands.front().type, compare))
            return true;
        const auto truth = compareAlways(compare.direction, terms[0], terms[1]);
        if (!truth)
            return false;
        folded.kind = Binding::Kind::Truth;
        scale = 0;
        offset = *truth ? 1 : 0;
    } else if (typeOf(operands[0]) != *declared || typeOf(operands[1]) != *declared) {
        return false;
    } else if (kind == OpKind::Add || kind == OpKind::Subtract) {
        const std::int64_t sign = kind == OpKind::Add ? 1 : -1;
        scale = checkedMultiplyAdd(terms[0].scale, sign, terms[1].scale);
        offset = checkedMultiplyAdd(terms[0].offset, sign, terms[1].offset);
    } else if (kind == OpKind::Multiply && (terms[0].scale == 0 || terms[1].scale == 0)) {
        const Affine& moving = terms[0].scale == 0 ? terms[1] : terms[0];
        const Affine& fixed = terms[0].scale == 0 ? terms[0] : terms[1];
        scale = checkedMultiply(moving.scale, fixed.offset);
        offset = checkedMultiply(moving.offset, fixed.offset);
    }
    if (!scale || !offset)
        return false;
    for (const Binding& operand : operands)
        affineOf(operand, true);
    folded.scale = *scale;
    folded.offset = *offset;
    folded.frame = 0;
    for (const Affine& term : terms)
        folded.frame = std::max(folded.frame, term.scale != 0 ? term.frame : 0);
    if (folded.scale == 0)
        folded.frame = depth();
    result = std::move(folded);
    return true;
}

} // namespace meshwright
