// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/varying_results.h"

#include "core/program/body_collective.h"
#include "core/program/other_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace meshwright {

namespace {

/// What devices along an axis, or a part of one, have of a value. Of an op's operands the last of these decides.
enum class Along : std::uint8_t { Same, Different, Unknown };

class AxisVariance {
public:
    AxisVariance(const Function& function, const Op& computation, const Mesh& mesh, AxisRef part)
        : m_function(function)
        , m_computation(computation)
        , m_mesh(mesh)
        , m_part(part)
        , m_along(function.values.size(), Along::Unknown)
    {
    }

    /// Of each result of the body.
    std::vector<Along> run()
    {
        const auto& inShardings = m_computation.as<ComputationAttributes>().inShardings;
        const Block& body = m_function[m_computation.bodies.front()];
        for (std::size_t i = 0; i < body.arguments.size() && i < inShardings.size(); ++i)
            at(body.arguments[i]) = names(inShardings[i], m_part) ? Along::Different : Along::Same;
        visit(body);
        std::vector<Along> results;
        for (const ValueId result : body.results)
            results.push_back(at(result));
        return results;
    }

    static bool names(const TensorSharding& sharding, const AxisRef& part)
    {
        bool has = false;
        forEachAxis(sharding, [&](const AxisRef& ref) {
            has = has || (ref.axis == part.axis && ref.pre <= part.pre && part.pre * part.size <= ref.pre * ref.size);
        });
        return has;
    }

    template <typename Visit>
    static void forEachAxis(const TensorSharding& sharding, const Visit& visit)
    {
        std::ranges::for_each(sharding.unreduced, visit);
        for (const DimSharding& dim : sharding.dims)
            std::ranges::for_each(dim.axes, visit);
    }

private:
    Along& at(ValueId value) { return m_along[value.at()]; }

    void visit(const Block& block)
    {
        for (const OpId id : block.ops) {
            const Op& op = m_function[id];
            if (op.kind == OpKind::Computation) {
                visitComputation(op);
                continue;
            }
            for (const ValueId result : op.results)
                at(result) = made(op);
        }
    }

    /// One inside, named or manual over other axes: along this one its body is nothing but ops.
    void visitComputation(const Op& op)
    {
        const Block& body = m_function[op.bodies.front()];
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            at(body.arguments[i]) = at(op.operands[i]);
        visit(body);
        for (std::size_t i = 0; i < op.results.size(); ++i)
            at(op.results[i]) = at(body.results[i]);
    }

    Along made(const Op& op)
    {
        if (isPartitionId(op))
            return Along::Different;
        if (const auto axes = axesOfPlace(m_function, op, m_mesh))
            return std::find(axes->begin(), axes->end(), m_part.axis) == axes->end() ? Along::Same : Along::Different;
        Along operands = Along::Same;
        for (const ValueId operand : op.operands)
            operands = std::max(operands, at(operand));
        if (isBodyCollective(op))
            return exchanged(op, operands);
        if (mayExchange(op))
            return Along::Unknown;
        // What loops and branches make of the same everywhere is the same, but for device ids and collectives in them.
        return op.bodies.empty() ? operands : Along::Unknown;
    }

    /// Devices may get from it what others have, in a way that is not followed here.
    static bool mayExchange(const Op& op)
    {
        return op.kind == OpKind::OwnBroadcast || op.kind == OpKind::CrossReplicaSum || op.kind == OpKind::CustomCall
            || (isKept(op.kind) && hasEffect(op.as<OtherAttributes>()));
    }

    Along exchanged(const Op& op, Along operands) const
    {
        const auto collective = bodyCollective(m_function, op, m_mesh);
        if (!collective)
            return Along::Unknown;
        const std::vector<std::int32_t> touched = axesTouched(*collective, m_mesh);
        if (std::find(touched.begin(), touched.end(), m_part.axis) == touched.end())
            return operands;
        const bool makesEqual = collective->kind == OpKind::AllReduce || collective->kind == OpKind::AllGather;
        return makesEqual && axesOfGroups(collective->groups, m_mesh) ? Along::Same : Along::Unknown;
    }

    const Function& m_function;
    const Op& m_computation;
    const Mesh& m_mesh;
    AxisRef m_part;
    std::vector<Along> m_along; ///< by value
};

/// The parts of an axis that a computation's shardings tell apart, each by itself; the whole axis where they do not divide each other.
AxisRefs partsOf(const ComputationAttributes& computation, const Mesh& mesh, std::int32_t axis)
{
    const AxisRef whole = wholeAxis(mesh, static_cast<std::size_t>(axis));
    std::set<std::int64_t> ends{1, whole.size};
    for (const auto* shardings : {&computation.inShardings, &computation.outShardings}) {
        for (const TensorSharding& sharding : *shardings)
            AxisVariance::forEachAxis(sharding, [&](const AxisRef& ref) {
                if (ref.axis == axis)
                    ends.insert({ref.pre, ref.pre * ref.size});
            });
    }
    AxisRefs parts;
    for (auto end = ends.begin(); std::next(end) != ends.end(); ++end) {
        if (*std::next(end) % *end != 0)
            return {whole};
        parts.push_back({axis, *end, *std::next(end) / *end});
    }
    return parts;
}

} // namespace

Problems varyingResults(const Function& function, const Op& computation, const Mesh& mesh)
{
    const auto& attributes = computation.as<ComputationAttributes>();
    Problems problems;
    AxisRefs parts;
    for (const std::int32_t axis : attributes.manualAxes) {
        if (mesh.axes()[static_cast<std::size_t>(axis)].size > 1)
            std::ranges::copy(partsOf(attributes, mesh, axis), std::back_inserter(parts));
    }
    for (const AxisRef& part : parts) {
        const std::vector<Along> results = AxisVariance(function, computation, mesh, part).run();
        for (std::size_t i = 0; i < results.size() && i < attributes.outShardings.size(); ++i) {
            const TensorSharding& out = attributes.outShardings[i];
            if (results[i] != Along::Different || AxisVariance::names(out, part))
                continue;
            const MeshAxis& axis = mesh.axes()[static_cast<std::size_t>(part.axis)];
            const std::string name = part.size == axis.size ? axis.name : axisText(part, mesh);
            problems.push_back({"MW1266",
                fmt::format(
                    "result {} of a manual computation differs along {}, and its out_sharding {} says that all {} devices "
                    "along it have the same",
                    i, name, layoutText(out, mesh), part.size),
                fmt::format("sum or gather it over {0} (jax.lax.psum, jax.lax.all_gather), or name {0} in its out_spec", name),
                {}, Severity::Error,
                "what leaves a manual computation is equal along the axes that its out_sharding leaves out"});
        }
    }
    return problems;
}

} // namespace meshwright
