// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/hlo/loops.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <algorithm>
#include <memory>

namespace meshwright {

namespace {

/// Where a value is looked for: in a computation, which a fusion or a call entered from another one.
struct Scope {
    const HloComputation* computation = nullptr;
    const HloInstruction* caller = nullptr; ///< null: not entered
    std::shared_ptr<const Scope> outer = {};
};

struct Value {
    const HloInstruction* instruction = nullptr;
    std::shared_ptr<const Scope> scope = {};
};

bool isPlain(std::string_view opcode)
{
    return opcode == "copy" || opcode == "bitcast" || opcode == "convert" || opcode == "reshape";
}

class Counter {
public:
    explicit Counter(const HloModule& module)
        : m_module(module)
    {
    }

    std::optional<std::int64_t> turns(const HloComputation& computation, const HloInstruction& loop) const
    {
        const HloComputation* condition = hloCalled(m_module, loop.find("condition"));
        const HloComputation* body = hloCalled(m_module, loop.find("body"));
        if (condition == nullptr || body == nullptr || loop.operands.empty())
            return std::nullopt;
        const Value test = root(condition);
        if (test.instruction == nullptr || test.instruction->opcode != "compare" || test.instruction->operands.size() != 2)
            return std::nullopt;
        std::string_view direction = test.instruction->find("direction");
        auto counter = carried(operand(test, 0));
        auto bound = integer(operand(test, 1));
        if (!counter) {
            counter = carried(operand(test, 1));
            bound = integer(operand(test, 0));
            direction = direction == "LT" ? "GT"
                : direction == "GT"       ? "LT"
                : direction == "LE"       ? "GE"
                : direction == "GE"       ? "LE"
                                          : direction;
        }
        if (!counter || !bound)
            return std::nullopt;
        const auto start = integer(element(find(scopeOf(&computation), loop.operands.front()), *counter));
        const auto step = stepOf(element(root(body), *counter), *counter);
        return start && step ? turns(*start, *step, *bound, direction) : std::nullopt;
    }

private:
    static constexpr int kMostSteps = 64;

    static std::shared_ptr<const Scope> scopeOf(const HloComputation* computation)
    {
        return std::make_shared<const Scope>(Scope{computation, nullptr, nullptr});
    }

    static std::optional<std::int64_t> turns(
        std::int64_t start, std::int64_t step, std::int64_t bound, std::string_view direction)
    {
        const bool goesUp = direction == "LT" || direction == "LE";
        const bool isStrict = direction == "LT" || direction == "GT" || direction == "NE";
        if (direction != "NE" && (goesUp ? step <= 0 : step >= 0 || (direction != "GT" && direction != "GE")))
            return std::nullopt;
        if (step == 0)
            return std::nullopt;
        constexpr std::int64_t kMost = std::int64_t{1} << 61; // so that nothing below overflows
        for (const std::int64_t number : {start, step, bound}) {
            if (number < -kMost || number > kMost)
                return std::nullopt;
        }
        const std::int64_t way = (bound - start) * (step < 0 ? -1 : 1) + (isStrict ? 0 : 1);
        const std::int64_t stride = step < 0 ? -step : step;
        if (direction == "NE" && (way < 0 || way % stride != 0))
            return std::nullopt;
        return way <= 0 ? 0 : ceilDiv(way, stride);
    }

    Value find(const std::shared_ptr<const Scope>& scope, std::string_view name) const
    {
        return followed({scope->computation->find(name), scope});
    }

    Value operand(const Value& value, std::size_t which) const
    {
        if (value.instruction == nullptr || which >= value.instruction->operands.size())
            return {};
        return find(value.scope, value.instruction->operands[which]);
    }

    Value root(const HloComputation* computation) const { return followed({computation->root(), scopeOf(computation)}); }

    /// What a value is behind copies, fusions, calls and their parameters.
    Value followed(Value value) const
    {
        for (int step = 0; step < kMostSteps && value.instruction != nullptr; ++step) {
            const HloInstruction& at = *value.instruction;
            if (isPlain(at.opcode) && !at.operands.empty()) {
                value.instruction = value.scope->computation->find(at.operands.front());
            } else if (at.opcode == "fusion" || at.opcode == "call") {
                const HloComputation* inner = hloCalled(m_module, at.find(at.opcode == "call" ? "to_apply" : "calls"));
                if (inner == nullptr)
                    return value;
                value = {inner->root(), std::make_shared<const Scope>(Scope{inner, &at, value.scope})};
            } else if (at.opcode == "parameter" && value.scope->caller != nullptr) {
                const auto number = at.operands.empty() ? std::nullopt : parseInteger(at.operands.front());
                const auto& given = value.scope->caller->operands;
                if (!number || *number < 0 || static_cast<std::size_t>(*number) >= given.size())
                    return {};
                const std::string_view name = given[static_cast<std::size_t>(*number)];
                value = {value.scope->outer->computation->find(name), value.scope->outer};
            } else {
                return value;
            }
        }
        return value;
    }

    /// Which element of the loop's state a value is.
    std::optional<std::size_t> carried(const Value& value) const
    {
        if (value.instruction == nullptr)
            return std::nullopt;
        const auto isState = [](const Value& one) {
            return one.instruction != nullptr && one.instruction->opcode == "parameter" && one.scope->caller == nullptr;
        };
        if (isState(value) && !value.instruction->shape.isTuple)
            return 0; // a loop that carries one value
        if (value.instruction->opcode != "get-tuple-element" || !isState(operand(value, 0)))
            return std::nullopt;
        const auto index = parseInteger(value.instruction->find("index"));
        return index && *index >= 0 ? std::optional(static_cast<std::size_t>(*index)) : std::nullopt;
    }

    Value element(const Value& value, std::size_t which) const
    {
        if (value.instruction == nullptr || !value.instruction->shape.isTuple)
            return value;
        return value.instruction->opcode == "tuple" ? operand(value, which) : Value{};
    }

    static std::optional<std::int64_t> integer(const Value& value)
    {
        if (value.instruction == nullptr || value.instruction->opcode != "constant" || value.instruction->operands.empty())
            return std::nullopt;
        return parseInteger(value.instruction->operands.front());
    }

    /// What a turn adds to the counter.
    std::optional<std::int64_t> stepOf(const Value& next, std::size_t counter) const
    {
        if (next.instruction == nullptr)
            return std::nullopt;
        const bool isDifference = next.instruction->opcode == "subtract";
        if (next.instruction->opcode != "add" && !isDifference)
            return std::nullopt;
        const Value first = operand(next, 0);
        const Value second = operand(next, 1);
        if (carried(first) == counter) {
            const auto step = integer(second);
            return step && isDifference ? (*step == INT64_MIN ? std::nullopt : std::optional(-*step)) : step;
        }
        return carried(second) == counter && !isDifference ? integer(first) : std::nullopt;
    }

    const HloModule& m_module;
};

/// `{"known_trip_count":{"n":"12"}}`, also inside a string with escaped quotes.
std::optional<std::int64_t> knownTripCount(std::string_view config)
{
    const std::size_t known = config.find("known_trip_count");
    if (known == std::string_view::npos)
        return std::nullopt;
    const std::size_t digits = config.find_first_of("0123456789", known);
    const std::size_t closed = config.find('}', known);
    if (digits == std::string_view::npos || closed == std::string_view::npos || digits > closed)
        return std::nullopt;
    const std::size_t end = std::min(config.find_first_not_of("0123456789", digits), config.size());
    return parseInteger(config.substr(digits, end - digits));
}

} // namespace

const HloComputation* hloCalled(const HloModule& module, std::string_view name)
{
    if (name.starts_with('%'))
        name.remove_prefix(1);
    const auto found = module.index.find(name);
    return found == module.index.end() ? nullptr : &module.computations[found->second];
}

std::optional<std::int64_t> hloTripCount(const HloModule& module, const HloComputation& computation, const HloInstruction& loop)
{
    if (const auto known = knownTripCount(loop.find("backend_config")))
        return known;
    return Counter(module).turns(computation, loop);
}

} // namespace meshwright
