// SPDX-License-Identifier: GPL-3.0-or-later
// The reverse of ops with blocks: Repeat, Case, computations.
#include "core/autodiff/block_reverse.h"

#include "core/autodiff/custom_derivative.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

std::int32_t meshIndexOf(const ComputationAttributes& computation)
{
    const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
    return shardings.empty() ? 0 : shardings.front().mesh;
}

namespace {

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

} // namespace

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

} // namespace meshwright
