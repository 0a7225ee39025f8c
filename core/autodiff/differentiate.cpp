// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"

#include "core/autodiff/derivatives.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace meshwright {

namespace {

constexpr BlockId kBody{std::int32_t{0}};

/// Which values a backward run has to do with: those that depend on an argument in question and that a seeded result depends on.
/// Values added to the function later count as inactive.
class Activity {
public:
    Activity(const Function& function, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds)
        : m_function(function)
        , m_varied(function.values.size(), false)
        , m_useful(function.values.size(), false)
    {
        for (const std::size_t argument : wrt)
            mark(m_varied, function.arguments()[argument]);
        markVaried(kBody);
        for (const std::size_t result : seeds)
            mark(m_useful, function.results()[result]);
        markUseful(kBody);
    }

    bool operator()(ValueId value) const { return value.at() < m_varied.size() && m_varied[value.at()] && m_useful[value.at()]; }

private:
    bool mark(std::vector<bool>& marks, ValueId value)
    {
        if (marks[value.at()] || !isFloating(m_function[value].type.dtype))
            return false;
        marks[value.at()] = true;
        return true;
    }

    static bool any(const std::vector<bool>& marks, const std::vector<ValueId>& values)
    {
        return std::any_of(values.begin(), values.end(), [&](ValueId value) { return marks[value.at()]; });
    }

    /// Marks each of `to` whose partner in `from` is marked; true when that changed one.
    bool markAlike(std::vector<bool>& marks, const std::vector<ValueId>& from, const std::vector<ValueId>& to, std::size_t count)
    {
        bool changed = false;
        for (std::size_t i = 0; i < count; ++i)
            changed = (marks[from[i].at()] && mark(marks, to[i])) || changed;
        return changed;
    }

    void markVaried(BlockId block)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            if (op.kind == OpKind::Repeat) {
                const Block& body = m_function[op.bodies.front()];
                markAlike(m_varied, op.operands, body.arguments, op.operands.size());
                do
                    markVaried(op.bodies.front());
                while (markAlike(m_varied, body.results, body.arguments, op.as<RepeatAttributes>().carries));
                markAlike(m_varied, body.results, op.results, op.results.size());
            } else if (any(m_varied, op.operands) && differentiability(m_function, op) != Differentiability::Flat) {
                for (const ValueId result : op.results)
                    mark(m_varied, result);
            }
        }
    }

    void markUseful(BlockId block)
    {
        const auto& ops = m_function[block].ops;
        for (auto at = ops.rbegin(); at != ops.rend(); ++at) {
            const Op& op = m_function[*at];
            if (op.kind == OpKind::Repeat) {
                const Block& body = m_function[op.bodies.front()];
                markAlike(m_useful, op.results, body.results, op.results.size());
                do
                    markUseful(op.bodies.front());
                while (markAlike(m_useful, body.arguments, body.results, op.as<RepeatAttributes>().carries));
                markAlike(m_useful, body.arguments, op.operands, op.operands.size());
            } else if (any(m_useful, op.results) && differentiability(m_function, op) != Differentiability::Flat) {
                for (const ValueId operand : op.operands)
                    mark(m_useful, operand);
            }
        }
    }

    const Function& m_function;
    std::vector<bool> m_varied;
    std::vector<bool> m_useful;
};

/// The backward run of one block, as a function: (residuals.., cotangents of the seeded results) -> cotangents of the wanted arguments.
class BlockReverse {
public:
    /// `forward` is given further stacked results where a backward Repeat needs values from inside a forward one.
    BlockReverse(Function& forward, const Activity& active, const CarriedOutAgain& again, BlockId block,
        const std::vector<std::size_t>& seeds)
        : m_forward(forward)
        , m_active(active)
        , m_again(again)
        , m_block(block)
        , m_builder(m_backward)
        , m_cotangents(forward.values.size())
    {
        m_builder.setPhase(Phase::Backward);
        for (const std::size_t seed : seeds) {
            const ValueId value = m_forward[block].results[seed];
            const ValueId argument = m_builder.argument(m_forward[value].type, {}, Role::Gradient);
            m_seedArguments.push_back(argument);
            accumulate(value, argument);
        }
        const std::vector<OpId> ops = m_forward[block].ops;
        for (auto at = ops.rbegin(); at != ops.rend(); ++at)
            reverse(*at);
    }

    /// The cotangent of a forward value; invalid when nothing reaches it.
    ValueId cotangent(ValueId value) const { return value.at() < m_cotangents.size() ? m_cotangents[value.at()] : ValueId{}; }
    bool isNameless(ValueId value) const { return m_backward[value].producer.valid() && m_backward[value].name.empty(); }
    Builder& builder() { return m_builder; }
    const std::vector<ValueId>& seedArguments() const { return m_seedArguments; }

    /// The finished function, and the forward values that its first arguments stand for.
    std::pair<Function, std::vector<ValueId>> finish(std::vector<ValueId> results)
    {
        std::vector<ValueId> arguments;
        std::vector<ValueId> residuals;
        for (const auto& [value, argument] : m_residuals) {
            residuals.push_back(value);
            arguments.push_back(argument);
        }
        arguments.insert(arguments.end(), m_seedArguments.begin(), m_seedArguments.end());
        for (std::size_t i = 0; i < arguments.size(); ++i)
            m_backward[arguments[i]].index = i;
        m_backward.body().arguments = std::move(arguments);
        m_backward.body().results = std::move(results);
        return {std::move(m_backward), std::move(residuals)};
    }

private:
    void accumulate(ValueId value, ValueId cotangent)
    {
        ValueId& sum = m_cotangents[value.at()];
        sum = sum.valid() ? m_builder.binary(OpKind::Add, sum, cotangent) : cotangent;
    }

    /// Once every use of a named value has been reversed, its cotangent is known by that name: "grad.act.layers.1".
    void nameCotangent(ValueId value)
    {
        const ValueId sum = cotangent(value);
        const std::string& name = m_forward[value].name;
        if (sum.valid() && !name.empty() && m_backward[sum].producer.valid() && m_backward[sum].name.empty())
            m_builder.named(sum, "grad." + name);
    }

    void reverse(OpId id)
    {
        const Op op = m_forward[id]; // a copy: the forward function may grow
        const auto reached = [&](ValueId result) { return cotangent(result).valid(); };
        const auto isActive = [&](ValueId operand) { return m_active(operand); };
        if (std::none_of(op.results.begin(), op.results.end(), reached)
            || std::none_of(op.operands.begin(), op.operands.end(), isActive))
            return;
        nameCotangent(op.results.front());
        if (op.kind == OpKind::Repeat)
            return reverseRepeat(id);
        DerivativeContext context{m_forward, op, m_builder, {}, [this](ValueId value) { return primal(value); }};
        for (const ValueId operand : op.operands)
            context.wanted.push_back(m_active(operand));
        const std::vector<ValueId> cotangents = operandCotangents(context, cotangent(op.results.front()));
        for (std::size_t i = 0; i < cotangents.size(); ++i) {
            if (cotangents[i].valid())
                accumulate(op.operands[i], cotangents[i]);
        }
    }

    /// True for constants, iotas, and what is made of them element by element or by a change of shape.
    bool isFromNothing(ValueId value) const
    {
        const OpId producer = m_forward[value].producer;
        if (!producer.valid())
            return false;
        const Op& op = m_forward[producer];
        if (op.kind == OpKind::Constant || op.kind == OpKind::Iota)
            return true;
        if (op.kind == OpKind::ShardingConstraint || !(isElementwise(op.kind) || opInfo(op.kind).opClass == OpClass::Shaping))
            return false;
        return std::all_of(op.operands.begin(), op.operands.end(), [this](ValueId operand) { return isFromNothing(operand); });
    }

    /// A broadcast that makes something larger is made again from what it spreads: that is the smaller residual.
    bool isSpreading(ValueId value) const
    {
        const OpId producer = m_forward[value].producer;
        if (!producer.valid() || m_forward[producer].kind != OpKind::BroadcastInDim)
            return false;
        return m_forward[m_forward[producer].operands.front()].type.elements() < m_forward[value].type.elements();
    }

    bool isCarriedOutAgain(ValueId value) const
    {
        const OpId producer = m_forward[value].producer;
        return m_again && producer.valid() && m_forward[producer].results.size() == 1 && m_forward[producer].bodies.empty()
            && m_again(producer);
    }

    ValueId primal(ValueId value)
    {
        if (const auto known = m_primals.find(value); known != m_primals.end())
            return known->second;
        ValueId here;
        if (isFromNothing(value) || isSpreading(value) || isCarriedOutAgain(value)) {
            const Op op = m_forward[m_forward[value].producer];
            std::vector<ValueId> operands;
            for (const ValueId operand : op.operands)
                operands.push_back(primal(operand));
            here = m_builder.add(op.kind, std::move(operands), op.attributes);
        } else {
            const Value& original = m_forward[value];
            const bool isNew = !original.name.empty() && m_names.insert(original.name).second;
            here = m_builder.argument(original.type, isNew ? original.name : std::string(), original.role);
            m_residuals.emplace(value, here);
        }
        return m_primals[value] = here;
    }

    ValueId zeros(ValueId forwardValue) { return m_builder.splat(m_forward[forwardValue].type, 0.0); }

    void reverseRepeat(OpId id);
    ValueId stackedResidual(OpId repeat, ValueId inner);

    Function& m_forward;
    const Activity& m_active;
    const CarriedOutAgain& m_again;
    BlockId m_block;
    Function m_backward;
    Builder m_builder;
    std::vector<ValueId> m_cotangents; ///< by forward value
    std::map<ValueId, ValueId> m_primals; ///< forward value -> backward value
    std::map<ValueId, ValueId> m_residuals; ///< forward value -> backward argument
    std::vector<ValueId> m_seedArguments;
    std::set<std::string> m_names;
};

/// The stacked values that `inner` (of the body of `repeat`) takes, one for each iteration.
ValueId BlockReverse::stackedResidual(OpId repeat, ValueId inner)
{
    const auto attributes = m_forward[repeat].as<RepeatAttributes>();
    Block& body = m_forward[m_forward[repeat].bodies.front()];
    for (std::size_t i = attributes.carries; i < body.results.size(); ++i) {
        if (body.results[i] == inner)
            return m_forward[repeat].results[i];
    }
    Value stacked;
    stacked.type = m_forward[inner].type;
    stacked.type.shape.insert(stacked.type.shape.begin(), attributes.count);
    stacked.role = m_forward[inner].role;
    stacked.block = m_block;
    stacked.producer = repeat;
    stacked.index = body.results.size();
    const ValueId result(m_forward.values.size());
    m_forward.values.push_back(std::move(stacked));
    m_forward[repeat].results.push_back(result);
    body.results.push_back(inner);
    return result;
}

/// A Repeat in the other direction. It carries the cotangents of the forward carries and the sums of those of the invariants; it takes
/// the cotangents of the stacked results and the residuals of each iteration; it gives the cotangents of the stacked operands.
void BlockReverse::reverseRepeat(OpId id)
{
    const Op op = m_forward[id];
    const auto attributes = op.as<RepeatAttributes>();
    const Block body = m_forward[op.bodies.front()];
    const std::size_t firstInvariant = attributes.carries + attributes.stacked;

    std::vector<std::size_t> carries; // whose cotangents the loop carries
    std::vector<std::size_t> seeds; // results of the body with a cotangent
    for (std::size_t i = 0; i < attributes.carries; ++i) {
        if (m_active(body.results[i]))
            seeds.push_back(i);
        if (m_active(body.results[i]) || m_active(body.arguments[i]))
            carries.push_back(i);
    }
    const std::size_t seededCarries = seeds.size();
    for (std::size_t i = attributes.carries; i < op.results.size(); ++i) {
        if (cotangent(op.results[i]).valid())
            seeds.push_back(i);
    }
    std::vector<std::size_t> stacked;
    std::vector<std::size_t> invariants;
    for (std::size_t i = attributes.carries; i < body.arguments.size(); ++i) {
        if (m_active(body.arguments[i]))
            (i < firstInvariant ? stacked : invariants).push_back(i);
    }

    BlockReverse inner(m_forward, m_active, m_again, op.bodies.front(), seeds);
    std::vector<ValueId> innerResults;
    const auto innerCotangent = [&](std::size_t argument) {
        const ValueId known = inner.cotangent(body.arguments[argument]);
        const std::string& whole = m_forward[op.operands[argument]].name;
        const bool isNamed = known.valid() && argument >= attributes.carries && !whole.empty();
        if (isNamed && inner.isNameless(known) && m_names.insert(whole + ".each").second) // another loop may take the same array
            inner.builder().named(known, fmt::format("grad.{}.each", whole));
        innerResults.push_back(known.valid() ? known : inner.zeros(body.arguments[argument]));
    };
    for (const auto& list : {carries, stacked, invariants})
        std::for_each(list.begin(), list.end(), innerCotangent);
    const auto [innerFunction, residuals] = inner.finish(std::move(innerResults));

    // What the loop takes: carries, then stacked, then invariants.
    std::vector<ValueId> initial;
    for (const std::size_t i : carries) {
        const ValueId known = cotangent(op.results[i]);
        initial.push_back(known.valid() ? known : zeros(op.results[i]));
    }
    for (const std::size_t i : invariants)
        initial.push_back(zeros(op.operands[i]));
    std::vector<ValueId> slices;
    for (std::size_t i = seededCarries; i < seeds.size(); ++i)
        slices.push_back(cotangent(op.results[seeds[i]]));
    std::vector<ValueId> constant;
    std::vector<std::pair<bool, std::size_t>> residualPlace; // among the stacked ones, or among the invariants
    for (const ValueId residual : residuals) {
        const auto argument = static_cast<std::size_t>(
            std::find(body.arguments.begin(), body.arguments.end(), residual) - body.arguments.begin());
        const bool isInvariant = argument >= firstInvariant && argument < body.arguments.size();
        if (isInvariant) {
            constant.push_back(primal(op.operands[argument]));
        } else {
            const bool isSlice = argument >= attributes.carries && argument < firstInvariant;
            slices.push_back(primal(isSlice ? op.operands[argument] : stackedResidual(id, residual)));
        }
        residualPlace.emplace_back(!isInvariant, isInvariant ? constant.size() - 1 : slices.size() - 1);
    }

    std::vector<ValueId> operands = initial;
    operands.insert(operands.end(), slices.begin(), slices.end());
    operands.insert(operands.end(), constant.begin(), constant.end());
    const OpId repeat = m_builder.beginRepeat({attributes.count, initial.size(), slices.size(), !attributes.reversed}, operands);
    const std::vector<ValueId> arguments = m_backward[m_builder.block()].arguments;
    std::vector<ValueId> call;
    for (const auto& [isSlice, place] : residualPlace)
        call.push_back(arguments[initial.size() + (isSlice ? place : slices.size() + place)]);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        if (i < seededCarries)
            call.push_back(
                arguments[static_cast<std::size_t>(std::find(carries.begin(), carries.end(), seeds[i]) - carries.begin())]);
        else
            call.push_back(arguments[initial.size() + i - seededCarries]);
    }
    const std::vector<ValueId> made = inlineCall(m_builder, innerFunction, call);

    const auto firstStacked = made.begin() + static_cast<std::ptrdiff_t>(carries.size());
    std::vector<ValueId> yielded(made.begin(), firstStacked);
    for (std::size_t i = 0; i < invariants.size(); ++i)
        yielded.push_back(
            m_builder.binary(OpKind::Add, arguments[carries.size() + i], made[carries.size() + stacked.size() + i]));
    yielded.insert(yielded.end(), firstStacked, firstStacked + static_cast<std::ptrdiff_t>(stacked.size()));
    m_builder.setResults(std::move(yielded));
    const std::vector<ValueId> results = m_builder.endRepeat(repeat);

    for (std::size_t i = 0; i < carries.size(); ++i) {
        if (m_active(op.operands[carries[i]]))
            accumulate(op.operands[carries[i]], results[i]);
    }
    for (std::size_t i = 0; i < invariants.size(); ++i)
        accumulate(op.operands[invariants[i]], results[carries.size() + i]);
    for (std::size_t i = 0; i < stacked.size(); ++i)
        accumulate(op.operands[stacked[i]], results[initial.size() + i]);
}

Problems problemsOf(const Function& function, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds)
{
    Problems problems;
    const auto checkFloating = [&](const char* what, ValueId value) {
        if (!isFloating(function[value].type.dtype))
            problems.push_back({"MW1311",
                fmt::format("{} {} of \"{}\" is {}: only floating values have derivatives", what, valueText(function, value),
                    function.name, typeText(function[value].type)),
                "differentiate by floating arguments only"});
    };
    for (const std::size_t argument : wrt)
        checkFloating("argument", function.arguments()[argument]);
    for (const std::size_t result : seeds)
        checkFloating("result", function.results()[result]);
    return problems;
}

Problems unknownDerivatives(const Function& function, const Activity& active)
{
    Problems problems;
    std::set<std::string> reported;
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        const bool isOnTheWay = std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId value) { return active(value); })
            && std::any_of(op.results.begin(), op.results.end(), [&](ValueId value) { return active(value); });
        if (isOnTheWay && differentiability(function, op) == Differentiability::Unknown
            && reported.insert(std::string(opName(op))).second)
            problems.push_back({"MW1310",
                fmt::format("no derivative is known for {}, which makes {} in \"{}\"", opName(op),
                    valueText(function, op.results.front()), function.name),
                "keep it out of what the loss depends on, or differentiate before the program is partitioned"});
    });
    return problems;
}

std::string nameOr(const std::string& name, const std::string& other, std::size_t index)
{
    return name.empty() ? fmt::format("{}{}", other, index) : name;
}

} // namespace

Result<Differentiated> differentiate(const Function& function, const std::vector<std::size_t>& wrt,
    const std::vector<std::size_t>& seeds, const CarriedOutAgain& again)
{
    if (Problems problems = problemsOf(function, wrt, seeds); !problems.empty())
        return problems;
    Function forward = function;
    const Activity active(function, wrt, seeds);
    if (Problems problems = unknownDerivatives(function, active); !problems.empty())
        return problems;

    BlockReverse reverse(forward, active, again, kBody, seeds);
    Builder& builder = reverse.builder();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        const std::string name = function.resultNames.empty() ? std::string() : function.resultNames[seeds[i]];
        builder.named(reverse.seedArguments()[i], "ct." + nameOr(name, "", seeds[i]));
    }
    std::vector<ValueId> gradients;
    std::vector<std::string> gradientNames;
    for (const std::size_t index : wrt) {
        const ValueId argument = function.arguments()[index];
        ValueId gradient = reverse.cotangent(argument);
        if (!gradient.valid())
            gradient = builder.splat(function[argument].type, 0.0);
        // Each gradient is a value of its own, so that it can have a name and a layout: the identity where two would be one.
        const bool isTaken = !builder.function()[gradient].producer.valid()
            || std::find(gradients.begin(), gradients.end(), gradient) != gradients.end();
        if (isTaken)
            gradient = builder.add(OpKind::Reshape, {gradient}, ReshapeAttributes{function[argument].type.shape});
        gradientNames.push_back("grad." + nameOr(function[argument].name, "", index));
        builder.named(gradient, gradientNames.back());
        builder.function()[gradient].role = Role::Gradient;
        gradients.push_back(gradient);
    }
    auto [backward, residuals] = reverse.finish(std::move(gradients));
    backward.name = function.name + ".bwd";
    backward.resultNames = std::move(gradientNames);

    forward.name = function.name + ".fwd";
    forward.donations.clear();
    for (std::size_t i = 0; i < residuals.size(); ++i) {
        forward.body().results.push_back(residuals[i]);
        if (!forward.resultNames.empty())
            forward.resultNames.push_back(fmt::format("residual.{}", nameOr(forward[residuals[i]].name, "", i)));
        if (!forward.resultShardings.empty())
            forward.resultShardings.emplace_back();
    }
    return Differentiated{compacted(std::move(forward)), compacted(std::move(backward))};
}

} // namespace meshwright
