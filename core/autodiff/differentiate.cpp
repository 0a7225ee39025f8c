// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"

#include "core/autodiff/custom_derivative.h"
#include "core/autodiff/derivatives.h"
#include "core/autodiff/varying.h"
#include "core/program/placement.h"
#include "core/program/shape_rules.h"
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
            } else if (const CustomDerivative custom = customDerivative(op); custom.results > 0) {
                const auto first = op.operands.begin() + static_cast<std::ptrdiff_t>(custom.results);
                for (std::size_t i = 0;
                     i < custom.results && any(m_varied, {first, first + static_cast<std::ptrdiff_t>(custom.inputs)}); ++i)
                    mark(m_varied, op.results[i]);
            } else if (op.kind == OpKind::Computation) {
                const Block& body = m_function[op.bodies.front()];
                markAlike(m_varied, op.operands, body.arguments, op.operands.size());
                markVaried(op.bodies.front());
                markAlike(m_varied, body.results, op.results, op.results.size());
            } else if (op.kind == OpKind::Case) {
                const std::vector<ValueId> used(op.operands.begin() + 1, op.operands.end());
                for (const BlockId branch : op.bodies) {
                    markAlike(m_varied, used, m_function[branch].arguments, used.size());
                    markVaried(branch);
                    markAlike(m_varied, m_function[branch].results, op.results, op.results.size());
                }
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
            } else if (const CustomDerivative custom = customDerivative(op); custom.results > 0) {
                const auto last = op.results.begin() + static_cast<std::ptrdiff_t>(custom.results);
                for (std::size_t i = 0; i < custom.inputs && any(m_useful, {op.results.begin(), last}); ++i)
                    mark(m_useful, op.operands[custom.results + i]);
            } else if (op.kind == OpKind::Computation) {
                const Block& body = m_function[op.bodies.front()];
                markAlike(m_useful, op.results, body.results, op.results.size());
                markUseful(op.bodies.front());
                markAlike(m_useful, body.arguments, op.operands, op.operands.size());
            } else if (op.kind == OpKind::Case) {
                for (const BlockId branch : op.bodies) {
                    markAlike(m_useful, op.results, m_function[branch].results, op.results.size());
                    markUseful(branch);
                    for (std::size_t i = 1; i < op.operands.size(); ++i)
                        markAlike(m_useful, {m_function[branch].arguments[i - 1]}, {op.operands[i]}, 1);
                }
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

std::int32_t meshIndexOf(const ComputationAttributes& computation)
{
    const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
    return shardings.empty() ? 0 : shardings.front().mesh;
}

/// The type of the whole that pieces of this type make, split over the manual axes of the sharding.
TensorType wholeOf(TensorType piece, const TensorSharding& sharding, const std::vector<std::int32_t>& manualAxes)
{
    for (std::size_t dim = 0; dim < piece.shape.size(); ++dim) {
        for (const AxisRef& axis : sharding.dims[dim].axes) {
            if (std::binary_search(manualAxes.begin(), manualAxes.end(), axis.axis))
                piece.shape[dim] *= axis.size;
        }
    }
    return piece;
}

/// Where a block stands.
struct Surroundings {
    const std::vector<NamedMesh>& meshes;
    const ResidualChoice& residualOf;
    std::size_t ops = 0; ///< of the function; later ones are ours, of which `residualOf` knows nothing
    const Mesh* manual = nullptr; ///< of the manual computation around it; none: it is in none
    OpId loop = {}; ///< the Repeat whose body the block is, if it is one

    Residual residual(OpId op) const { return residualOf && op.valid() && op.at() < ops ? residualOf(op) : Residual::Kept; }
};

/// A seeded result of a block, and what its cotangent is multiplied with.
struct Seed {
    std::size_t result = 0;
    double scale = 1.0;
};

/// The backward run of one block, as a function: (residuals.., cotangents of the seeded results) -> cotangents of the wanted arguments.
class BlockReverse {
public:
    /// `forward` is given further results where a backward Repeat or computation needs values from inside a forward one.
    BlockReverse(Function& forward, const Activity& active, BlockId block, const std::vector<Seed>& seeds,
        const Surroundings& surroundings)
        : m_forward(forward)
        , m_active(active)
        , m_block(block)
        , m_surroundings(surroundings)
        , m_builder(m_backward)
        , m_cotangents(forward.values.size())
    {
        m_builder.setPhase(Phase::Backward);
        for (const Seed& seed : seeds) {
            const ValueId value = m_forward[block].results[seed.result];
            const ValueId argument = m_builder.argument(m_forward[value].type, {}, Role::Gradient);
            m_seedArguments.push_back(argument);
            accumulate(value,
                seed.scale == 1.0
                    ? argument
                    : m_builder.binary(OpKind::Multiply, argument, m_builder.splat(m_forward[value].type, seed.scale)));
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
        sum = sum.valid() ? addedCotangents(m_builder, sum, cotangent, m_surroundings.manual) : cotangent;
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
        if (m_surroundings.residual(id) == Residual::Whole)
            makeAgain(op.results.front());
        if (op.kind == OpKind::Repeat)
            return reverseRepeat(id);
        if (op.kind == OpKind::Case)
            return reverseCase(id);
        if (customDerivative(op).results > 0)
            return reverseCustom(id);
        if (op.kind == OpKind::Computation)
            return reverseComputation(id);
        DerivativeContext context{
            m_forward, op, m_builder, {}, [this](ValueId value) { return primal(value); }, m_surroundings.manual};
        for (const ValueId operand : op.operands)
            context.wanted.push_back(m_active(operand));
        const std::vector<ValueId> cotangents = operandCotangents(context, cotangent(op.results.front()));
        for (std::size_t i = 0; i < cotangents.size(); ++i) {
            if (cotangents[i].valid())
                accumulate(op.operands[i], cotangents[i]);
        }
    }

    static bool isCheap(OpKind kind)
    {
        const OpClass opClass = opInfo(kind).opClass;
        return kind == OpKind::Constant || kind == OpKind::Iota || opClass == OpClass::Shaping
            || (isElementwise(kind) && opClass != OpClass::Constraint);
    }

    /// True for what is made, element by element or by changes of shape, of values that have fewer elements together: they are the smaller residuals.
    /// Constants and iotas count as nothing. A mask of labels is made of the labels, a broadcast of what it spreads.
    bool isMadeOfLess(ValueId value) const
    {
        const std::int64_t own = m_forward[value].type.elements();
        std::int64_t read = 0;
        std::set<ValueId> seen = {value};
        for (std::vector<ValueId> open = {value}; !open.empty();) {
            const Value& next = m_forward[open.back()];
            open.pop_back();
            if (!next.producer.valid() || !isCheap(m_forward[next.producer].kind)) {
                read += next.type.elements();
                if (read >= own)
                    return false;
                continue;
            }
            for (const ValueId operand : m_forward[next.producer].operands) {
                if (seen.insert(operand).second)
                    open.push_back(operand);
            }
        }
        return true;
    }

    bool isCarriedOutAgain(ValueId value) const
    {
        const OpId producer = m_forward[value].producer;
        const Residual residual = m_surroundings.residual(producer);
        return (residual == Residual::Again || residual == Residual::Whole)
            && (m_forward[producer].bodies.empty() || m_forward[producer].kind == OpKind::Repeat);
    }

    /// Of a Repeat, what its iterations begin with: what it ends with is read by other ops.
    bool isOffloaded(ValueId value) const
    {
        const OpId producer = m_forward[value].producer;
        if (producer.valid())
            return m_forward[producer].bodies.empty() && m_surroundings.residual(producer) == Residual::Offloaded;
        const OpId loop = m_surroundings.loop;
        return loop.valid() && m_surroundings.residual(loop) == Residual::Offloaded
            && m_forward[value].index < m_forward[loop].as<RepeatAttributes>().carries;
    }

    /// The forward value moved to the host's memory, for the backward run to move back.
    ValueId broughtBack(ValueId value)
    {
        const TensorType type = m_forward[value].type;
        Builder forward(m_forward);
        forward.setBlock(m_block);
        const ValueId host = forward.add(OpKind::Other, {value}, moveCall(Placement::Host, type));
        const ValueId residual = m_builder.argument(type, {}, m_forward[value].role);
        m_residuals.emplace(host, residual);
        return m_builder.add(OpKind::Other, {residual}, moveCall(Placement::Device, type));
    }

    /// The name of a forward value, where no value of the backward run has it yet.
    std::string nameOnce(ValueId value)
    {
        const std::string& name = m_forward[value].name;
        return !name.empty() && m_names.insert(name).second ? name : std::string();
    }

    ValueId primal(ValueId value)
    {
        if (const auto known = m_primals.find(value); known != m_primals.end())
            return known->second;
        if (const OpId producer = m_forward[value].producer; producer.valid() && isVaried(m_forward[producer]))
            return m_primals[value] = primal(m_forward[producer].operands.front());
        ValueId here;
        if (isCarriedOutAgain(value) && m_forward[m_forward[value].producer].kind == OpKind::Repeat) {
            runAgain(m_forward[value].producer);
            here = m_primals[value];
        } else if (isMadeOfLess(value) || isCarriedOutAgain(value)) {
            const Op op = m_forward[m_forward[value].producer];
            std::vector<ValueId> operands;
            for (const ValueId operand : op.operands)
                operands.push_back(primal(operand));
            const std::vector<ValueId> made = m_builder.addMany(op.kind, std::move(operands), op.attributes);
            for (std::size_t i = 0; i < made.size(); ++i)
                m_primals[op.results[i]] = made[i];
            here = m_primals[value];
        } else if (isOffloaded(value)) {
            here = m_builder.named(broughtBack(value), nameOnce(value));
        } else {
            here = m_builder.argument(m_forward[value].type, nameOnce(value), m_forward[value].role);
            m_residuals.emplace(value, here);
        }
        return m_primals[value] = here;
    }

    /// Makes a forward value though nothing here reads it: its cotangent waits for it.
    void makeAgain(ValueId value)
    {
        const std::vector<ValueId> passed = m_builder.addMany(OpKind::OptimizationBarrier, {cotangent(value), primal(value)}, {});
        setKeepsUnread(m_backward[m_backward[passed.front()].producer]);
        m_cotangents[value.at()] = passed.front();
    }

    ValueId zeros(ValueId forwardValue) { return m_builder.splat(m_forward[forwardValue].type, 0.0); }

    void reverseRepeat(OpId id);
    ValueId stackedResidual(OpId repeat, ValueId inner);
    void reverseCase(OpId id);
    ValueId branchResidual(OpId id, BlockId branch, ValueId inner);
    ValueId furtherResult(OpId id, TensorType type, Role role);
    void runAgain(OpId repeat);

    /// What a backward computation takes: values of this block, and how they lie.
    struct ComputationInput {
        ValueId value;
        std::optional<TensorSharding> sharding; ///< none: a named computation that says nothing
    };
    void reverseComputation(OpId id);
    void reverseCustom(OpId id);
    ComputationInput computationResidual(OpId computation, ValueId inner);
    std::vector<Seed> computationSeeds(const Op& op, const std::vector<AxisSet>& varying, const Mesh& mesh) const;
    ValueId singleElement(BlockId block, ValueId scalar);
    std::vector<ValueId> addManual(const ComputationAttributes& forward, const std::vector<ComputationInput>& inputs,
        const Function& body, const std::vector<std::size_t>& wanted);

    Function& m_forward;
    const Activity& m_active;
    BlockId m_block;
    const Surroundings& m_surroundings;
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
    body.results.push_back(inner);
    TensorType type = m_forward[inner].type;
    type.shape.insert(type.shape.begin(), attributes.count);
    return furtherResult(repeat, std::move(type), m_forward[inner].role);
}

/// One more result of a forward op; its blocks are the caller's.
ValueId BlockReverse::furtherResult(OpId id, TensorType type, Role role)
{
    Value result;
    result.type = std::move(type);
    result.role = role;
    result.block = m_block;
    result.producer = id;
    result.index = m_forward[id].results.size();
    const ValueId made(m_forward.values.size());
    m_forward.values.push_back(std::move(result));
    m_forward[id].results.push_back(made);
    return made;
}

/// A value inside a branch as a result of the Case: zeros where another branch is taken.
ValueId BlockReverse::branchResidual(OpId id, BlockId branch, ValueId inner)
{
    const auto& known = m_forward[branch].results;
    if (const auto at = std::ranges::find(known, inner); at != known.end())
        return m_forward[id].results[static_cast<std::size_t>(at - known.begin())];
    Builder forward(m_forward);
    for (const BlockId body : std::vector<BlockId>(m_forward[id].bodies)) {
        forward.setBlock(body);
        const ValueId given = body == branch ? inner : forward.splat(m_forward[inner].type, 0.0);
        m_forward[body].results.push_back(given);
    }
    return furtherResult(id, m_forward[inner].type, m_forward[inner].role);
}

/// A Case in the other direction: the branch that was taken gives the cotangents of what it used.
void BlockReverse::reverseCase(OpId id)
{
    const Op op = m_forward[id];
    std::vector<Seed> seeds;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        if (cotangent(op.results[i]).valid())
            seeds.push_back({i});
    }
    std::vector<std::size_t> wanted;
    std::vector<TensorType> results;
    for (std::size_t i = 1; i < op.operands.size(); ++i) {
        if (m_active(op.operands[i])) {
            wanted.push_back(i);
            results.push_back(m_forward[op.operands[i]].type);
        }
    }

    Surroundings inside = m_surroundings;
    inside.loop = {};
    std::vector<ValueId> operands = {primal(op.operands.front())};
    std::vector<std::pair<Function, std::vector<std::size_t>>> branches; // each with the operands that it takes first
    for (const BlockId branch : op.bodies) {
        BlockReverse inner(m_forward, m_active, branch, seeds, inside);
        const std::vector<ValueId> arguments = m_forward[branch].arguments;
        std::vector<ValueId> made;
        for (const std::size_t i : wanted) {
            const ValueId known = inner.cotangent(arguments[i - 1]);
            made.push_back(known.valid() ? known : inner.zeros(arguments[i - 1]));
        }
        auto [function, residuals] = inner.finish(std::move(made));
        std::vector<std::size_t> places;
        for (const ValueId residual : residuals) {
            const auto argument = static_cast<std::size_t>(std::ranges::find(arguments, residual) - arguments.begin());
            places.push_back(operands.size());
            operands.push_back(
                primal(argument < arguments.size() ? op.operands[argument + 1] : branchResidual(id, branch, residual)));
        }
        branches.emplace_back(std::move(function), std::move(places));
    }
    const std::size_t firstSeed = operands.size();
    for (const Seed& seed : seeds)
        operands.push_back(cotangent(op.results[seed.result]));

    std::vector<TensorType> types;
    for (std::size_t i = 1; i < operands.size(); ++i)
        types.push_back(m_builder.type(operands[i]));
    const OpId reversed = m_builder.beginOp(OpKind::Case, operands, {});
    for (const auto& [function, places] : branches) {
        const std::vector<ValueId> arguments = m_builder.beginBody(reversed, types);
        std::vector<ValueId> call;
        for (const std::size_t place : places)
            call.push_back(arguments[place - 1]);
        call.insert(call.end(), arguments.begin() + static_cast<std::ptrdiff_t>(firstSeed - 1), arguments.end());
        m_builder.setResults(inlineCall(m_builder, function, call));
    }
    const std::vector<ValueId> cotangents = m_builder.endOp(reversed, results);
    for (std::size_t i = 0; i < wanted.size(); ++i)
        accumulate(op.operands[wanted[i]], cotangents[i]);
}

/// A forward Repeat once more, beside its reverse: what that takes of each turn are results of it.
void BlockReverse::runAgain(OpId id)
{
    const Block body = m_forward[m_forward[id].bodies.front()];
    const auto attributes = m_forward[id].as<RepeatAttributes>();
    std::vector<Seed> seeds; // all that may have a cotangent
    for (std::size_t i = 0; i < body.results.size(); ++i) {
        if (m_active(body.results[i]))
            seeds.push_back({i});
    }
    BlockReverse inner(m_forward, m_active, m_forward[id].bodies.front(), seeds, m_surroundings);
    for (const ValueId residual : inner.finish({}).second) {
        const auto argument = static_cast<std::size_t>(std::ranges::find(body.arguments, residual) - body.arguments.begin());
        if (argument < attributes.carries || argument == body.arguments.size())
            stackedResidual(id, residual);
    }

    std::vector<ValueId> mapping(m_forward.values.size());
    for (const ValueId operand : m_forward[id].operands)
        mapping[operand.at()] = primal(operand);
    const std::size_t firstOp = m_backward.ops.size();
    const std::size_t firstValue = m_backward.values.size();
    copyOp(m_builder, m_forward, id, mapping);
    for (std::size_t op = firstOp; op < m_backward.ops.size(); ++op)
        m_backward.ops[op].phase = Phase::Backward;
    for (std::size_t value = firstValue; value < m_backward.values.size(); ++value)
        m_backward.values[value].name.clear(); // the forward values' own
    for (const ValueId result : m_forward[id].results)
        m_primals[result] = mapping[result.at()];
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
    std::vector<Seed> seeds; // results of the body with a cotangent
    for (std::size_t i = 0; i < attributes.carries; ++i) {
        if (m_active(body.results[i]))
            seeds.push_back({i});
        if (m_active(body.results[i]) || m_active(body.arguments[i]))
            carries.push_back(i);
    }
    const std::size_t seededCarries = seeds.size();
    for (std::size_t i = attributes.carries; i < op.results.size(); ++i) {
        if (cotangent(op.results[i]).valid())
            seeds.push_back({i});
    }
    std::vector<std::size_t> stacked;
    std::vector<std::size_t> invariants;
    for (std::size_t i = attributes.carries; i < body.arguments.size(); ++i) {
        if (m_active(body.arguments[i]))
            (i < firstInvariant ? stacked : invariants).push_back(i);
    }

    Surroundings inside = m_surroundings;
    inside.loop = id;
    BlockReverse inner(m_forward, m_active, op.bodies.front(), seeds, inside);
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
        slices.push_back(cotangent(op.results[seeds[i].result]));
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
            call.push_back(arguments[static_cast<std::size_t>(
                std::find(carries.begin(), carries.end(), seeds[i].result) - carries.begin())]);
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

/// A value of one element for a scalar, appended to a forward block.
ValueId BlockReverse::singleElement(BlockId block, ValueId scalar)
{
    Builder forward(m_forward);
    forward.setBlock(block);
    return forward.add(OpKind::Reshape, {scalar}, ReshapeAttributes{{1}});
}

/// A value inside a computation as one of its results. Of a manual one, what differs over some axes is put together along dimension 0.
BlockReverse::ComputationInput BlockReverse::computationResidual(OpId id, ValueId inner)
{
    const BlockId body = m_forward[id].bodies.front();
    std::optional<TensorSharding> sharding;
    if (isManual(m_forward[id]) || !m_forward[id].as<ComputationAttributes>().outShardings.empty()) {
        sharding = TensorSharding::openOf(m_forward[inner].type.shape.size());
        sharding->mesh = meshIndexOf(m_forward[id].as<ComputationAttributes>());
    }
    TensorType type = m_forward[inner].type;
    if (isManual(m_forward[id])) {
        const Mesh& mesh = m_surroundings.meshes[static_cast<std::size_t>(sharding->mesh)].mesh;
        const AxisSet axes = varyingAxes(m_forward, id, mesh)[inner.at()];
        if (!axes.empty() && type.shape.empty()) {
            inner = singleElement(body, inner);
            type = m_forward[inner].type;
            sharding->dims.resize(1);
        }
        for (const std::int32_t axis : axes)
            sharding->dims.front().axes.push_back(wholeAxis(mesh, static_cast<std::size_t>(axis)));
        for (const std::int32_t axis : axes)
            type.shape.front() *= mesh.axes()[static_cast<std::size_t>(axis)].size;
    }
    const ValueId made = furtherResult(id, std::move(type), m_forward[inner].role);
    m_forward[body].results.push_back(inner);
    if (sharding)
        m_forward[id].as<ComputationAttributes>().outShardings.push_back(*sharding);
    return {made, sharding};
}

/// The results with a cotangent. A result that is to be the same on several devices, and of which that is not known, counts on each of
/// them for its share.
std::vector<Seed> BlockReverse::computationSeeds(const Op& op, const std::vector<AxisSet>& varying, const Mesh& mesh) const
{
    std::vector<Seed> seeds;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        if (!cotangent(op.results[i]).valid())
            continue;
        Seed seed{i};
        if (isManual(op)) {
            AxisSet shared = varying[m_forward[op.bodies.front()].results[i].at()];
            for (const DimSharding& dim : op.as<ComputationAttributes>().outShardings[i].dims) {
                for (const AxisRef& axis : dim.axes)
                    shared.erase(axis.axis);
            }
            for (const std::int32_t axis : shared)
                seed.scale /= static_cast<double>(mesh.axes()[static_cast<std::size_t>(axis)].size);
        }
        seeds.push_back(seed);
    }
    return seeds;
}

/// A computation in the other direction: it takes the values that it reads and the cotangents of the results, and gives the cotangents of
/// the operands, each as it lies in the forward one.
void BlockReverse::reverseComputation(OpId id)
{
    const Op op = m_forward[id];
    const auto& computation = op.as<ComputationAttributes>();
    const Block body = m_forward[op.bodies.front()];
    const bool manual = isManual(op);
    static const Mesh kNoMesh;
    const Mesh& mesh = manual ? m_surroundings.meshes[static_cast<std::size_t>(meshIndexOf(computation))].mesh : kNoMesh;
    const Surroundings inside{
        m_surroundings.meshes, m_surroundings.residualOf, m_surroundings.ops, manual ? &mesh : m_surroundings.manual};
    const std::vector<Seed> seeds
        = computationSeeds(op, manual ? varyingAxes(m_forward, id, mesh) : std::vector<AxisSet>(), mesh);

    BlockReverse inner(m_forward, m_active, op.bodies.front(), seeds, inside);
    std::vector<std::size_t> wanted;
    std::vector<ValueId> innerResults;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
        if (!m_active(body.arguments[i]))
            continue;
        wanted.push_back(i);
        const ValueId known = inner.cotangent(body.arguments[i]);
        innerResults.push_back(known.valid() ? known : inner.zeros(body.arguments[i]));
    }
    auto [innerFunction, residuals] = inner.finish(std::move(innerResults));

    const auto shardingAt = [](const std::vector<TensorSharding>& shardings, std::size_t i) {
        return shardings.empty() ? std::nullopt : std::optional(shardings[i]);
    };
    std::vector<ComputationInput> inputs;
    for (const ValueId residual : residuals) {
        const auto argument = static_cast<std::size_t>(
            std::find(body.arguments.begin(), body.arguments.end(), residual) - body.arguments.begin());
        if (argument < body.arguments.size()) {
            inputs.push_back({primal(op.operands[argument]), shardingAt(computation.inShardings, argument)});
        } else {
            const ComputationInput made = computationResidual(id, residual);
            inputs.push_back({primal(made.value), made.sharding});
        }
    }
    for (const Seed& seed : seeds)
        inputs.push_back({cotangent(op.results[seed.result]), shardingAt(computation.outShardings, seed.result)});

    std::vector<ValueId> results;
    if (manual) {
        results = addManual(computation, inputs, innerFunction, wanted);
    } else {
        std::vector<ValueId> operands;
        for (const ComputationInput& input : inputs)
            operands.push_back(input.value);
        results = inlineCall(m_builder, innerFunction, operands);
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
        accumulate(op.operands[wanted[i]], results[i]);
}

/// What the rule says, from the cotangents of the values.
void BlockReverse::reverseCustom(OpId id)
{
    const Op op = m_forward[id];
    const CustomDerivative custom = customDerivative(op);
    const Block body = m_forward[op.bodies.front()];
    const std::size_t firstCotangent = op.operands.size() - custom.results;
    std::vector<ValueId> mapping(m_forward.values.size());
    for (std::size_t i = custom.results + custom.inputs; i < op.operands.size(); ++i) {
        if (i < firstCotangent) {
            mapping[body.arguments[i].at()] = primal(op.operands[i]);
        } else {
            const ValueId result = op.results[i - firstCotangent];
            mapping[body.arguments[i].at()] = cotangent(result).valid() ? cotangent(result) : zeros(result);
        }
    }
    const std::size_t firstOp = m_backward.ops.size();
    for (const OpId inner : body.ops)
        copyOp(m_builder, m_forward, inner, mapping);
    for (std::size_t at = firstOp; at < m_backward.ops.size(); ++at)
        m_backward.ops[at].phase = Phase::Backward;
    for (std::size_t i = 0; i < custom.inputs; ++i) {
        if (const ValueId input = op.operands[custom.results + i]; m_active(input))
            accumulate(input, mapping[body.results[custom.results + i].at()]);
    }
}

/// A manual computation of the backward run, whose body is `body`.
std::vector<ValueId> BlockReverse::addManual(const ComputationAttributes& forward, const std::vector<ComputationInput>& inputs,
    const Function& body, const std::vector<std::size_t>& wanted)
{
    ComputationAttributes computation;
    computation.manualAxes = forward.manualAxes;
    std::vector<ValueId> operands;
    std::vector<TensorType> pieces;
    for (const ComputationInput& input : inputs) {
        operands.push_back(input.value);
        computation.inShardings.push_back(*input.sharding);
        pieces.push_back(manualPiece(m_builder.type(input.value), *input.sharding, computation.manualAxes).value());
    }
    std::vector<TensorType> results;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        computation.outShardings.push_back(forward.inShardings[wanted[i]]);
        results.push_back(wholeOf(body[body.results()[i]].type, computation.outShardings.back(), computation.manualAxes));
    }
    const OpId op = m_builder.beginOp(OpKind::Computation, std::move(operands), std::move(computation));
    std::vector<ValueId> arguments = m_builder.beginBody(op, pieces);
    for (std::size_t i = 0; i < arguments.size(); ++i)
        arguments[i] = m_builder.reshape(arguments[i], body[body.arguments()[i]].type.shape);
    m_builder.setResults(inlineCall(m_builder, body, arguments));
    return m_builder.endOp(op, results);
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

/// Looks at every op on the way for one without a derivative, and at manual computations for what spoils theirs.
class DerivativeCheck {
public:
    DerivativeCheck(const Function& function, const Activity& active, const std::vector<NamedMesh>& meshes)
        : m_function(function)
        , m_active(active)
        , m_meshes(meshes)
    {
    }

    Problems run()
    {
        visit(kBody, nullptr);
        return std::move(m_problems);
    }

private:
    void visit(BlockId block, const Mesh* manual)
    {
        for (const OpId id : m_function[block].ops) {
            const Op& op = m_function[id];
            const bool isOfStatistics = op.kind == OpKind::Attention && m_active(op.results[1]);
            const bool isUnknown = isOfStatistics || differentiability(m_function, op) == Differentiability::Unknown
                || (isBodyCollective(op) && manual == nullptr) || (isManual(op) && m_meshes.empty());
            if (isUnknown && isOnTheWay(op))
                report(op);
            if (isBodyCollective(op) && manual != nullptr) {
                if (const auto collective = bodyCollective(m_function, op, *manual); !collective)
                    append(m_problems, collective.error());
            }
            if (customDerivative(op).results > 0)
                continue; // the rule itself is only carried out
            const Mesh* inside = manual;
            if (isManual(op) && !m_meshes.empty())
                inside = &m_meshes[static_cast<std::size_t>(meshIndexOf(op.as<ComputationAttributes>()))].mesh;
            for (const BlockId body : op.bodies)
                visit(body, inside);
        }
    }

    bool isOnTheWay(const Op& op) const
    {
        const auto isActive = [this](ValueId value) { return m_active(value); };
        return std::any_of(op.operands.begin(), op.operands.end(), isActive)
            && std::any_of(op.results.begin(), op.results.end(), isActive);
    }

    void report(const Op& op)
    {
        if (m_reported.insert(std::string(opName(op))).second)
            m_problems.push_back({"MW1310",
                fmt::format("no derivative is known for {}, which makes {} in \"{}\"", opName(op),
                    valueText(m_function, op.results.front()), m_function.name),
                "keep it out of what the loss depends on, or differentiate before the program is partitioned"});
    }

    const Function& m_function;
    const Activity& m_active;
    const std::vector<NamedMesh>& m_meshes;
    std::set<std::string> m_reported;
    Problems m_problems;
};

/// All manual computations say where values become different from device to device.
void varyAll(Function& function, const Activity& active, const std::vector<NamedMesh>& meshes)
{
    std::vector<OpId> computations;
    forEachOp(function, [&](OpId id) {
        if (isManual(function[id]))
            computations.push_back(id);
    });
    for (const OpId id : computations)
        insertVaried(function, id, meshes[static_cast<std::size_t>(meshIndexOf(function[id].as<ComputationAttributes>()))].mesh,
            [&active](ValueId value) { return active(value); });
}

std::string nameOr(const std::string& name, const std::string& other, std::size_t index)
{
    return name.empty() ? fmt::format("{}{}", other, index) : name;
}

} // namespace

Result<Differentiated> differentiate(const Function& function, const std::vector<std::size_t>& wrt,
    const std::vector<std::size_t>& seeds, const ResidualChoice& residualOf, const std::vector<NamedMesh>& meshes)
{
    if (Problems problems = problemsOf(function, wrt, seeds); !problems.empty())
        return problems;
    Function forward = function;
    const bool manual = hasManualComputation(function);
    {
        const Activity activeBefore(function, wrt, seeds);
        if (Problems problems = DerivativeCheck(function, activeBefore, meshes).run(); !problems.empty())
            return problems;
        if (manual && !meshes.empty())
            varyAll(forward, activeBefore, meshes);
    }
    const Function varied = forward; // what `active` speaks of
    const Activity active(varied, wrt, seeds);

    const Surroundings outside{meshes, residualOf, function.ops.size()};
    std::vector<Seed> seeded;
    for (const std::size_t seed : seeds)
        seeded.push_back({seed});
    BlockReverse reverse(forward, active, kBody, seeded, outside);
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
    if (manual) {
        eraseVaried(forward);
        eraseDeadOps(backward); // sums over devices that became others
    }
    return Differentiated{compacted(std::move(forward)), compacted(std::move(backward))};
}

} // namespace meshwright
