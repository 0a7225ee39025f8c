// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/other_op.h"
#include "core/propagate/explicit_reshape.h"
#include "core/propagate/explicit_types.h"
#include "core/propagate/rule.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace meshwright {

namespace {

using DimAxes = std::vector<AxisRefs>; ///< of each dimension

DimAxes axesOf(const TensorSharding& sharding)
{
    DimAxes axes;
    for (const DimSharding& dim : sharding.dims)
        axes.push_back(dim.axes);
    return axes;
}

TensorSharding shardingWith(DimAxes axes, std::int32_t mesh)
{
    TensorSharding sharding = TensorSharding::replicatedOf(axes.size());
    for (std::size_t dim = 0; dim < axes.size(); ++dim)
        sharding.dims[dim].axes = std::move(axes[dim]);
    sharding.mesh = mesh;
    return sharding;
}

bool overlapAny(const AxisRefs& a, const AxisRefs& b)
{
    return std::any_of(a.begin(), a.end(), [&](const AxisRef& one) {
        return std::any_of(b.begin(), b.end(), [&](const AxisRef& other) { return one == other || overlaps(one, other); });
    });
}

bool usesAny(const DimAxes& dims, const AxisRefs& axes)
{
    return std::any_of(dims.begin(), dims.end(), [&](const AxisRefs& dim) { return overlapAny(dim, axes); });
}

/// The first axis that splits two dimensions.
std::optional<AxisRef> duplicateIn(const DimAxes& dims)
{
    AxisRefs seen;
    for (const AxisRefs& dim : dims) {
        for (const AxisRef& axis : dim) {
            if (overlapAny(seen, {axis}))
                return axis;
            seen.push_back(axis);
        }
    }
    return std::nullopt;
}

bool divides(const DimAxes& dims, const Shape& shape)
{
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        if (shape[dim] % shardCount(dims[dim]) != 0)
            return false;
    }
    return true;
}

bool contains(const std::vector<std::size_t>& dims, std::size_t dim)
{
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

/// The rules, for one op.
class ExplicitRules {
public:
    explicit ExplicitRules(const ExplicitOp& op)
        : m_op(op)
    {
        for (const ExplicitSharding& sharding : op.operands) {
            if (sharding)
                m_mesh = sharding->mesh;
        }
        if (op.out)
            m_mesh = op.out->mesh;
    }

    ExplicitAnswer answer()
    {
        const bool anyKnown = std::any_of(
            m_op.operands.begin(), m_op.operands.end(), [](const ExplicitSharding& one) { return one.has_value(); });
        if (m_op.out && takesOutSharding(m_op.kind, m_op.attributes)) {
            if (checkUnreducedOut() && checkUnreducedOperands())
                give(*m_op.out);
        } else if (!anyKnown) {
            m_answer.results.assign(m_op.resultTypes.size(), std::nullopt);
        } else if (checkUnreducedOperands()) {
            infer();
        }
        return std::move(m_answer);
    }

private:
    // --- answers

    void give(const TensorSharding& sharding)
    {
        m_answer.results.assign(m_op.resultTypes.size(), sharding);
        for (ExplicitSharding& result : m_answer.results) {
            for (DimSharding& dim : result->dims) {
                dim.open = false;
                dim.priority = 0;
            }
        }
    }

    void fail(const char* id, std::string message, std::string fix)
    {
        m_answer.results.clear();
        m_answer.problem = Problem{id, std::move(message), std::move(fix)};
    }

    /// A result without doubt, unless it has an axis twice.
    void give(DimAxes dims)
    {
        const auto twice = duplicateIn(dims);
        TensorSharding sharding = shardingWith(std::move(dims), m_mesh);
        sharding.unreduced = m_unreduced;
        sharding.unreducedKind = m_unreducedKind;
        if (!twice)
            return give(sharding);
        fail("MW1256",
            fmt::format("A single NamedSharding spec specification can map every mesh axis to at most one positional dimension, "
                        "but {} of "
                        "the result has duplicate entries for `{}`",
                specOf(sharding), axisName(*twice)),
            takesOutSharding(m_op.kind, m_op.attributes) ? "give the op an out_sharding, or reshard an operand"
                                                         : "reshard an operand");
        chooseWithoutDuplicates(axesOf(sharding));
    }

    std::string specOf(const TensorSharding& sharding) const
    {
        TensorSharding placement = sharding;
        placement.unreduced.clear();
        const auto spec = toSpec(placement, m_op.mesh);
        return spec ? specText(*spec) : shardyText(placement, m_op.mesh);
    }

    std::string specOf(const DimAxes& dims) const { return specOf(shardingWith(dims, m_mesh)); }

    std::string operandSpecs() const
    {
        std::vector<std::string> specs;
        for (std::size_t i = 0; i < m_op.operands.size(); ++i) {
            if (m_op.operands[i] && !m_op.operandTypes[i].shape.empty())
                specs.push_back(specOf(*m_op.operands[i]));
        }
        return join(specs, ", ");
    }

    DimAxes operandAxes(std::size_t operand) const
    {
        const ExplicitSharding& sharding = m_op.operands[operand];
        return sharding ? axesOf(*sharding) : DimAxes(m_op.operandTypes[operand].shape.size());
    }

    /// Adds a choice, if every dimension divides and no axis is used twice anywhere.
    void choose(DimAxes result, std::vector<ExplicitSharding> operands, std::optional<TensorSharding> computed = {})
    {
        if (duplicateIn(result) || !divides(result, m_op.resultTypes.front().shape))
            return;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            if (operands[i] && (duplicateIn(axesOf(*operands[i])) || !divides(axesOf(*operands[i]), m_op.operandTypes[i].shape)))
                return;
        }
        ExplicitChoice choice;
        choice.result = shardingWith(std::move(result), m_mesh);
        choice.computed = computed ? *std::move(computed) : choice.result;
        choice.operands = std::move(operands);
        m_answer.choices.push_back(std::move(choice));
    }

    // --- partial sums

    bool isLinear() const
    {
        switch (m_op.kind) {
        case OpKind::Negate:
        case OpKind::Convert:
        case OpKind::BroadcastInDim:
        case OpKind::Reshape:
        case OpKind::Transpose:
        case OpKind::Concatenate:
        case OpKind::Slice:
        case OpKind::DynamicSlice:
        case OpKind::Reverse:
        case OpKind::OptimizationBarrier:
        case OpKind::PropagationBarrier:
            return true;
        case OpKind::Reduce:
            return std::get_if<ReduceAttributes>(&m_op.attributes)->kind == ReduceKind::Sum;
        default:
            return false;
        }
    }

    std::string axisName(const AxisRef& axis) const
    {
        const auto index = static_cast<std::size_t>(axis.axis);
        return axis == wholeAxis(m_op.mesh, index) ? m_op.mesh.axes()[index].name : axisText(axis, m_op.mesh);
    }

    std::string axisNames(const AxisRefs& axes) const
    {
        std::vector<std::string> names;
        for (const AxisRef& axis : axes)
            names.push_back(axisName(axis));
        return fmt::format("{{{}}}", join(names, ", "));
    }

    const AxisRefs& unreducedOf(std::size_t operand) const
    {
        static const AxisRefs kNone;
        return m_op.operands[operand] ? m_op.operands[operand]->unreduced : kNone;
    }

    /// What the operands' partial sums make of the result's, where the op is linear in them.
    bool checkUnreducedOperands()
    {
        const auto partial = std::find_if(m_op.operands.begin(), m_op.operands.end(),
            [](const ExplicitSharding& one) { return one && !one->unreduced.empty(); });
        if (partial == m_op.operands.end())
            return true;
        m_unreducedKind = (*partial)->unreducedKind;
        const std::string fix = "reduce it first: reshard it to its spec without unreduced axes";
        const auto refuse = [&](std::string message) {
            fail("MW1258", std::move(message), fix);
            return false;
        };
        if (m_op.kind == OpKind::DotGeneral)
            return refuse(fmt::format("lhs or rhs passed to dot_general cannot be unreduced. Got lhs={} and rhs={}",
                axisNames(unreducedOf(0)), axisNames(unreducedOf(1))));
        if (m_op.kind == OpKind::Add || m_op.kind == OpKind::Subtract) {
            const char* name = m_op.kind == OpKind::Add ? "add" : "sub";
            if (unreducedOf(0).empty() || unreducedOf(1).empty()) {
                const char* partialSide = unreducedOf(1).empty() ? "lhs" : "rhs";
                return refuse(
                    fmt::format("{} is unreduced while {} is not. `{}` operation does not allow this because there will be "
                                "implicit communication. Please reduce {} via `reshard` before calling `{}`.",
                        partialSide, unreducedOf(1).empty() ? "rhs" : "lhs", name, partialSide, name));
            }
            if (unreducedOf(0) != unreducedOf(1))
                return refuse(fmt::format("lhs and rhs to `{}` must be unreduced along the same mesh axes. Got lhs={}, rhs={}",
                    name, axisNames(unreducedOf(0)), axisNames(unreducedOf(1))));
        } else if (m_op.kind == OpKind::Multiply) {
            if (!unreducedOf(0).empty() && !unreducedOf(1).empty())
                return refuse(fmt::format("lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs={}, rhs={}",
                    axisNames(unreducedOf(0)), axisNames(unreducedOf(1))));
            const std::size_t whole = unreducedOf(0).empty() ? 0 : 1;
            if (usesAny(operandAxes(whole), (*partial)->unreduced))
                return refuse(fmt::format("{} should be reduced along the same axes {} is unreduced on. Got lhs={} and rhs={}",
                    whole == 0 ? "LHS" : "RHS", whole == 0 ? "RHS" : "LHS", specOf(operandAxes(0)), specOf(operandAxes(1))));
        } else if (!isLinear()) {
            return refuse(fmt::format("unreduced rule for {} is not implemented: an operand is a partial sum over {}", opText(),
                axisNames((*partial)->unreduced)));
        }
        m_unreduced = (*partial)->unreduced;
        return true;
    }

    /// An out_sharding may leave partial what the op sums over.
    bool checkUnreducedOut()
    {
        const AxisRefs& wanted = m_op.out->unreduced;
        if (wanted.empty())
            return true;
        AxisRefs summed;
        if (const auto* dot = std::get_if<DotAttributes>(&m_op.attributes)) {
            const DimAxes lhs = operandAxes(0);
            const DimAxes rhs = operandAxes(1);
            for (std::size_t i = 0; i < dot->lhsContracting.size(); ++i) {
                const AxisRefs& left = lhs[dot->lhsContracting[i]];
                if (left != rhs[dot->rhsContracting[i]]) {
                    fail("MW1258",
                        fmt::format("lhs and rhs contracting dims should be sharded identically when out_sharding provided to "
                                    "dot_general "
                                    "mentions unreduced_axes. Got {} and {}",
                            specOf(lhs), specOf(rhs)),
                        "reshard one of them");
                    return false;
                }
                summed.insert(summed.end(), left.begin(), left.end());
            }
            std::sort(summed.begin(), summed.end());
            if (summed == wanted)
                return true;
            fail("MW1258",
                fmt::format("out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced axes={} and "
                            "contracting "
                            "axes {}",
                    axisNames(wanted), axisNames(summed)),
                fmt::format("write unreduced={}", axisNames(summed)));
            return false;
        }
        if (const auto* reduce = std::get_if<ReduceAttributes>(&m_op.attributes)) {
            const DimAxes operand = operandAxes(0);
            for (const std::size_t dim : reduce->dims)
                summed.insert(summed.end(), operand[dim].begin(), operand[dim].end());
        }
        summed.insert(summed.end(), unreducedOf(0).begin(), unreducedOf(0).end());
        const bool all = std::all_of(wanted.begin(), wanted.end(),
            [&](const AxisRef& axis) { return std::find(summed.begin(), summed.end(), axis) != summed.end(); });
        if (all)
            return true;
        fail("MW1258",
            fmt::format(
                "out_sharding's unreduced axes should be in operand's specs that were summed over. Got unreduced axes={}, summed "
                "over {}",
                axisNames(wanted), axisNames(summed)),
            "name only axes that the op sums over");
        return false;
    }

    std::string opText() const
    {
        const auto* other = std::get_if<OtherAttributes>(&m_op.attributes);
        return other != nullptr ? std::string(baseName(other->name)) : std::string(opName(m_op.kind));
    }

    // --- the rules

    void infer()
    {
        if (isElementwise(m_op.kind))
            return m_op.kind == OpKind::Select ? select() : m_op.kind == OpKind::Clamp ? likeOperand(1) : broadcasting();
        switch (m_op.kind) {
        case OpKind::BroadcastInDim:
            return broadcastInDim();
        case OpKind::Reshape:
            return reshape();
        case OpKind::Transpose:
            return transpose();
        case OpKind::Slice:
            return resized("slicing", sameDims());
        case OpKind::Pad:
            return resized("padding", sameDims());
        case OpKind::DynamicSlice:
            return resized("dynamic_slice", sameDims());
        case OpKind::DynamicUpdateSlice:
            return alike(0, 2, "dynamic_update_slice operand sharding must be equal to update sharding");
        case OpKind::Concatenate:
            return alike(0, m_op.operands.size(), "All operands should have the same sharding");
        case OpKind::Reverse:
        case OpKind::PropagationBarrier:
            return likeOperand(0);
        case OpKind::OptimizationBarrier:
            m_answer.results.assign(m_op.operands.begin(), m_op.operands.end());
            return;
        case OpKind::Gather:
            return gather();
        case OpKind::Scatter:
            return scatter();
        case OpKind::Reduce:
            return reduce();
        case OpKind::DotGeneral:
            return dot();
        case OpKind::Other:
            return other();
        default:
            return unknown();
        }
    }

    void likeOperand(std::size_t operand)
    {
        if (m_op.operands[operand])
            return give(operandAxes(operand));
        broadcasting();
    }

    /// JAX's `broadcasting_sharding_rule`: operands agree, or all but one say nothing.
    void broadcasting()
    {
        const std::size_t rank = m_op.resultTypes.front().shape.size();
        DimAxes result(rank);
        bool clash = false;
        for (std::size_t dim = 0; dim < rank; ++dim) {
            for (std::size_t i = 0; i < m_op.operands.size(); ++i) {
                if (!m_op.operands[i] || m_op.operandTypes[i].shape.size() != rank)
                    continue;
                const AxisRefs& axes = m_op.operands[i]->dims[dim].axes;
                if (axes.empty())
                    continue;
                clash = clash || (!result[dim].empty() && result[dim] != axes);
                if (result[dim].empty())
                    result[dim] = axes;
            }
        }
        if (!clash)
            return give(std::move(result));
        fail("MW1250", fmt::format("{} got incompatible shardings for broadcasting: {}.", opText(), operandSpecs()),
            "reshard an operand");
        chooseOneForAll(0, m_op.operands.size());
    }

    /// Each operand's own sharding for all of them, completed by what the others say; and all whole where they differ.
    void chooseOneForAll(std::size_t first, std::size_t count)
    {
        const std::size_t rank = m_op.resultTypes.front().shape.size();
        std::vector<DimAxes> given;
        for (std::size_t i = first; i < first + count; ++i) {
            if (m_op.operands[i] && m_op.operandTypes[i].shape.size() == rank)
                given.push_back(operandAxes(i));
        }
        std::vector<DimAxes> wanted = given;
        for (DimAxes& own : wanted) {
            for (std::size_t dim = 0; dim < rank; ++dim) {
                for (const DimAxes& more : given) {
                    if (own[dim].empty() && !usesAny(own, more[dim]))
                        own[dim] = more[dim];
                }
            }
        }
        wanted.insert(wanted.end(), given.begin(), given.end());
        DimAxes common = given.front();
        for (std::size_t dim = 0; dim < rank; ++dim) {
            const bool same
                = std::all_of(given.begin(), given.end(), [&](const DimAxes& one) { return one[dim] == common[dim]; });
            if (!same)
                common[dim].clear();
        }
        wanted.push_back(common);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            if (std::find(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(i), wanted[i])
                != wanted.begin() + static_cast<std::ptrdiff_t>(i))
                continue;
            std::vector<ExplicitSharding> operands(m_op.operands.begin(), m_op.operands.end());
            for (std::size_t operand = 0; operand < operands.size(); ++operand) {
                const bool takesPart = operand >= first && operand < first + count
                    && m_op.operandTypes[operand].shape.size() == rank && operands[operand];
                if (takesPart
                    || (operands[operand] && m_op.operandTypes[operand].shape.size() == rank && m_op.kind == OpKind::Select))
                    operands[operand] = shardingWith(wanted[i], m_mesh);
            }
            choose(wanted[i], std::move(operands));
        }
    }

    /// Operands first .. first + count - 1 have one sharding, which is the result's.
    void alike(std::size_t first, std::size_t count, const char* message)
    {
        const TensorSharding* one = nullptr;
        for (std::size_t i = first; i < first + count; ++i) {
            const ExplicitSharding& sharding = m_op.operands[i];
            if (!sharding)
                continue;
            if (one == nullptr)
                one = &*sharding;
            if (axesOf(*one) == axesOf(*sharding) && one->unreduced == sharding->unreduced)
                continue;
            fail("MW1251", fmt::format("{}. Got shardings {}", message, operandSpecs()), "reshard the others to one of these");
            return chooseOneForAll(first, count);
        }
        if (one == nullptr) // only what stands beside them is known: start indices, a predicate
            return give(DimAxes(m_op.resultTypes.front().shape.size()));
        give(axesOf(*one));
    }

    void select()
    {
        const bool hasCases = m_op.operands[1] || m_op.operands[2];
        if (!hasCases)
            return m_op.operandTypes[0].shape.empty() ? give(DimAxes(m_op.resultTypes.front().shape.size())) : likeOperand(0);
        alike(1, 2, "select cases must have the same shardings");
        if (m_answer.problem || !m_op.operands[0] || m_op.operandTypes[0].shape.empty())
            return;
        const DimAxes cases = operandAxes(m_op.operands[1] ? 1 : 2);
        if (operandAxes(0) == cases)
            return;
        fail("MW1251",
            fmt::format(
                "select `which` must be scalar or have the same sharding as cases, got `which` sharding {} but case sharding {}.",
                specOf(operandAxes(0)), specOf(cases)),
            "reshard the predicate");
        chooseOneForAll(0, 3);
    }

    void broadcastInDim()
    {
        const auto& broadcast = *std::get_if<BroadcastAttributes>(&m_op.attributes);
        const DimAxes operand = operandAxes(0);
        DimAxes result(broadcast.shape.size());
        for (std::size_t dim = 0; dim < broadcast.dims.size(); ++dim)
            result[broadcast.dims[dim]] = operand[dim];
        give(std::move(result));
    }

    void transpose()
    {
        const DimAxes operand = operandAxes(0);
        DimAxes result;
        for (const std::size_t dim : std::get_if<TransposeAttributes>(&m_op.attributes)->permutation)
            result.push_back(operand[dim]);
        give(std::move(result));
    }

    void reduce()
    {
        const auto& dims = std::get_if<ReduceAttributes>(&m_op.attributes)->dims;
        const DimAxes operand = operandAxes(0);
        DimAxes result;
        for (std::size_t dim = 0; dim < operand.size(); ++dim) {
            if (!contains(dims, dim))
                result.push_back(operand[dim]);
        }
        give(std::move(result));
    }

    void reshape()
    {
        const Shape& from = m_op.operandTypes[0].shape;
        const Shape& to = m_op.resultTypes[0].shape;
        const DimAxes operand = operandAxes(0);
        if (auto result = explicitReshape(from, operand, to))
            return give(*std::move(result));
        fail("MW1254",
            fmt::format(
                "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of "
                "jax.lax.reshape. Got operand type: {} with {}, new sizes: ({})",
                typeText(m_op.operandTypes[0]), specOf(operand), fmt::join(to, ", ")),
            "give the reshape an out_sharding, or reshard its operand");
        for (const DimAxes& taken : reshapeOperands(from, operand, to)) {
            const auto made = explicitReshape(from, taken, to);
            if (!made)
                continue;
            const TensorSharding computed = shardingWith(*made, m_mesh);
            choose(*made, {shardingWith(taken, m_mesh)}, computed);
            // What was gathered may be sliced again.
            AxisRefs missing;
            for (const AxisRefs& axes : operand)
                for (const AxisRef& axis : axes)
                    if (!usesAny(*made, {axis}))
                        missing.push_back(axis);
            for (std::size_t dim = 0; dim < to.size() && !missing.empty(); ++dim) {
                DimAxes sliced = *made;
                sliced[dim].insert(sliced[dim].end(), missing.begin(), missing.end());
                choose(std::move(sliced), {shardingWith(taken, m_mesh)}, computed);
            }
        }
    }

    std::vector<std::size_t> sameDims() const
    {
        std::vector<std::size_t> dims(m_op.operandTypes[0].shape.size());
        std::iota(dims.begin(), dims.end(), std::size_t{0});
        return dims;
    }

    /// The operand's sharding, if dimensions of another size still divide. `dimOf`: of each operand dimension the result's.
    void resized(const char* what, const std::vector<std::size_t>& dimOf)
    {
        if (!m_op.operands[0]) // only start indices or a padding value are known
            return give(DimAxes(m_op.resultTypes.front().shape.size()));
        const Shape& from = m_op.operandTypes[0].shape;
        const Shape& to = m_op.resultTypes[0].shape;
        const DimAxes operand = operandAxes(0);
        DimAxes result(to.size());
        DimAxes gathered = operand;
        std::string wrong;
        for (std::size_t dim = 0; dim < dimOf.size(); ++dim) {
            const std::int64_t pieces = shardCount(operand[dim]);
            result[dimOf[dim]] = operand[dim];
            if (from[dim] == to[dimOf[dim]] || operand[dim].empty() || to[dimOf[dim]] % pieces == 0)
                continue;
            gathered[dim].clear();
            if (wrong.empty())
                wrong = fmt::format(
                    "{} on sharded dims where out dim ({}) is not divisible by mesh axes ({}) with spec ({}) is not "
                    "implemented. Got input type={} with {} and output shape=({})",
                    what, to[dimOf[dim]], pieces, axisNames(operand[dim]), typeText(m_op.operandTypes[0]), specOf(operand),
                    fmt::join(to, ", "));
        }
        if (wrong.empty())
            return give(std::move(result));
        fail("MW1255", std::move(wrong), "reshard the operand so that the dimension is whole");
        DimAxes whole(to.size());
        for (std::size_t dim = 0; dim < dimOf.size(); ++dim)
            whole[dimOf[dim]] = gathered[dim];
        std::vector<ExplicitSharding> operands(m_op.operands.begin(), m_op.operands.end());
        operands[0] = shardingWith(gathered, m_mesh);
        choose(std::move(whole), std::move(operands));
    }

    // --- contractions

    struct DotSides {
        DimAxes lhs;
        DimAxes rhs;
    };

    static DimAxes dotResult(const DotAttributes& dot, const DotSides& sides)
    {
        DimAxes result;
        for (const std::size_t dim : dot.lhsBatch)
            result.push_back(sides.lhs[dim]);
        for (std::size_t dim = 0; dim < sides.lhs.size(); ++dim) {
            if (!contains(dot.lhsBatch, dim) && !contains(dot.lhsContracting, dim))
                result.push_back(sides.lhs[dim]);
        }
        for (std::size_t dim = 0; dim < sides.rhs.size(); ++dim) {
            if (!contains(dot.rhsBatch, dim) && !contains(dot.rhsContracting, dim))
                result.push_back(sides.rhs[dim]);
        }
        return result;
    }

    static DimAxes picked(const DimAxes& dims, const std::vector<std::size_t>& which)
    {
        DimAxes axes;
        for (const std::size_t dim : which)
            axes.push_back(dims[dim]);
        return axes;
    }

    /// As JAX prints the specs of some dimensions: `('x', None)`.
    std::string specsText(const DimAxes& dims) const { return specOf(dims).substr(1); }

    void dot()
    {
        const auto& dot = *std::get_if<DotAttributes>(&m_op.attributes);
        const DotSides sides = {operandAxes(0), operandAxes(1)};
        const DimAxes lhsBatch = picked(sides.lhs, dot.lhsBatch);
        const DimAxes rhsBatch = picked(sides.rhs, dot.rhsBatch);
        const DimAxes lhsSummed = picked(sides.lhs, dot.lhsContracting);
        const DimAxes rhsSummed = picked(sides.rhs, dot.rhsContracting);
        // A constant is wherever its partner is.
        const bool bothKnown = m_op.operands[0] && m_op.operands[1];
        if (bothKnown && lhsBatch != rhsBatch) {
            fail("MW1253",
                fmt::format("dot_general requires lhs batch dimensions and rhs batch dimensions to have the same sharding, got "
                            "{} and {}.",
                    specsText(lhsBatch), specsText(rhsBatch)),
                "reshard one of them, or give the op an out_sharding");
            return chooseForDot(dot, sides);
        }
        bool both = false;
        for (std::size_t i = 0; i < lhsSummed.size(); ++i)
            both = both || (!lhsSummed[i].empty() && !rhsSummed[i].empty());
        if (both) {
            fail("MW1252",
                fmt::format(
                    "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify the "
                    "output sharding via the `out_sharding` parameter. Got lhs_contracting_spec={} and rhs_contracting_spec={}",
                    specsText(lhsSummed), specsText(rhsSummed)),
                "give the op an out_sharding");
            return chooseForDot(dot, sides);
        }
        DotSides settled = sides;
        for (std::size_t i = 0; i < dot.lhsBatch.size(); ++i) {
            if (!m_op.operands[0])
                settled.lhs[dot.lhsBatch[i]] = rhsBatch[i];
        }
        give(dotResult(dot, settled));
    }

    /// Whose sharding a shared dimension takes in a choice.
    enum class Side : std::uint8_t { Left, Right, Neither };
    static constexpr std::array kSides = {Side::Left, Side::Right, Side::Neither};

    static void agree(DotSides& sides, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right, Side side)
    {
        for (std::size_t i = 0; i < left.size(); ++i) {
            AxisRefs& l = sides.lhs[left[i]];
            AxisRefs& r = sides.rhs[right[i]];
            const AxisRefs wanted = l == r ? l : side == Side::Left ? l : side == Side::Right ? r : AxisRefs();
            l = wanted;
            r = wanted;
        }
    }

    /// Takes from one side's own dimensions the axes that the other side's own dimensions have too.
    static void dropShared(
        DimAxes& from, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& summed, const AxisRefs& taken)
    {
        for (std::size_t dim = 0; dim < from.size(); ++dim) {
            if (!contains(batch, dim) && !contains(summed, dim) && overlapAny(from[dim], taken))
                from[dim].clear();
        }
    }

    static AxisRefs ownAxes(const DimAxes& dims, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& summed)
    {
        AxisRefs own;
        for (std::size_t dim = 0; dim < dims.size(); ++dim) {
            if (!contains(batch, dim) && !contains(summed, dim))
                own.insert(own.end(), dims[dim].begin(), dims[dim].end());
        }
        return own;
    }

    void chooseForDot(const DotAttributes& dot, const DotSides& given)
    {
        for (const Side batch : kSides) {
            for (const Side summed : kSides) {
                for (const Side own : {Side::Left, Side::Right}) {
                    DotSides sides = given;
                    agree(sides, dot.lhsBatch, dot.rhsBatch, batch);
                    agree(sides, dot.lhsContracting, dot.rhsContracting, summed);
                    if (own == Side::Left)
                        dropShared(
                            sides.rhs, dot.rhsBatch, dot.rhsContracting, ownAxes(sides.lhs, dot.lhsBatch, dot.lhsContracting));
                    else
                        dropShared(
                            sides.lhs, dot.lhsBatch, dot.lhsContracting, ownAxes(sides.rhs, dot.rhsBatch, dot.rhsContracting));
                    chooseSums(dot, sides, sides.lhs == given.lhs && sides.rhs == given.rhs);
                }
            }
        }
        // With the contraction whole as well.
        DotSides sides = given;
        for (const std::size_t dim : dot.lhsContracting)
            sides.lhs[dim].clear();
        for (const std::size_t dim : dot.rhsContracting)
            sides.rhs[dim].clear();
        agree(sides, dot.lhsBatch, dot.rhsBatch, Side::Left);
        dropShared(sides.rhs, dot.rhsBatch, dot.rhsContracting, ownAxes(sides.lhs, dot.lhsBatch, dot.lhsContracting));
        chooseSums(dot, sides, false);
    }

    /// What may become of the partial sums over the contraction: the whole sum everywhere, a piece of it along one of the dimensions, or,
    /// of the operands as they are, nothing yet.
    void chooseSums(const DotAttributes& dot, const DotSides& sides, bool untouched)
    {
        AxisRefs summed;
        for (const std::size_t dim : dot.lhsContracting)
            summed.insert(summed.end(), sides.lhs[dim].begin(), sides.lhs[dim].end());
        const DimAxes dims = dotResult(dot, sides);
        if (duplicateIn(sides.lhs) || duplicateIn(sides.rhs) || duplicateIn(dims) || usesAny(dims, summed))
            return;
        std::sort(summed.begin(), summed.end());
        TensorSharding computed = shardingWith(dims, m_mesh);
        computed.unreduced = summed;
        const std::vector<ExplicitSharding> operands = {shardingWith(sides.lhs, m_mesh), shardingWith(sides.rhs, m_mesh)};
        chooseOnce(dims, operands, computed);
        if (summed.empty())
            return;
        for (std::size_t dim = 0; dim < dims.size(); ++dim) {
            DimAxes scattered = dims;
            scattered[dim].insert(scattered[dim].end(), summed.begin(), summed.end());
            chooseOnce(std::move(scattered), operands, computed);
        }
        const std::size_t before = m_answer.choices.size();
        if (untouched)
            chooseOnce(dims, operands, computed, true);
        if (m_answer.choices.size() > before)
            m_answer.choices.back().result.unreduced = summed;
    }

    void chooseOnce(
        DimAxes result, const std::vector<ExplicitSharding>& operands, const TensorSharding& computed, bool partial = false)
    {
        const TensorSharding wanted = shardingWith(result, m_mesh);
        const bool known
            = !partial && std::any_of(m_answer.choices.begin(), m_answer.choices.end(), [&](const ExplicitChoice& choice) {
                  return choice.result == wanted && choice.operands == operands && choice.computed == computed;
              });
        if (!known)
            choose(std::move(result), operands, computed);
    }

    /// A result that has an axis twice: it goes to one of the dimensions, and the operands that bring the other are gathered.
    void chooseWithoutDuplicates(const DimAxes& result)
    {
        if (const auto* dot = std::get_if<DotAttributes>(&m_op.attributes))
            return chooseForDot(*dot, {operandAxes(0), operandAxes(1)});
        for (std::size_t kept = 0; kept < result.size(); ++kept) {
            DimAxes dims = result;
            for (std::size_t dim = 0; dim < dims.size(); ++dim) {
                if (dim != kept && overlapAny(dims[dim], result[kept]))
                    dims[dim].clear();
            }
            if (dims == result || duplicateIn(dims))
                continue;
            std::vector<ExplicitSharding> operands(m_op.operands.begin(), m_op.operands.end());
            for (std::size_t i = 0; i < operands.size(); ++i) {
                if (operands[i] && operands[i]->dims.size() == dims.size())
                    operands[i] = shardingWith(dims, m_mesh);
            }
            choose(std::move(dims), std::move(operands));
        }
    }

    // --- indexing

    /// How the dimensions of a gather's or a scatter's arrays go together; `slices` is the gather's result or the updates.
    struct Indexing {
        std::vector<std::size_t> operandWindow; ///< dimensions of the operand that the windows have, in order
        std::vector<std::size_t> sliceBatch; ///< dimensions of `slices` that run along the indices', in order
        std::vector<std::size_t> indexDims; ///< the dimensions of the indices without that of the index vectors
    };

    static Indexing indexingOf(const IndexingDims& dims, std::size_t operandRank, std::size_t indicesRank, std::size_t sliceRank)
    {
        Indexing indexing;
        for (std::size_t dim = 0; dim < operandRank; ++dim) {
            if (!contains(dims.collapsed, dim) && !contains(dims.operandBatch, dim))
                indexing.operandWindow.push_back(dim);
        }
        for (std::size_t dim = 0; dim < sliceRank; ++dim) {
            if (!contains(dims.window, dim))
                indexing.sliceBatch.push_back(dim);
        }
        for (std::size_t dim = 0; dim < indicesRank; ++dim) {
            if (dim != dims.indexVectorDim)
                indexing.indexDims.push_back(dim);
        }
        return indexing;
    }

    /// True when all that say something say the same.
    static bool resolves(std::initializer_list<const AxisRefs*> axes)
    {
        const AxisRefs* one = nullptr;
        for (const AxisRefs* each : axes) {
            if (each->empty())
                continue;
            if (one != nullptr && *one != *each)
                return false;
            one = each;
        }
        return true;
    }

    /// JAX's `_gather_spec_computation`.
    std::optional<DimAxes> gatherResult(const DimAxes& operand, const DimAxes& indices) const
    {
        const auto& attributes = *std::get_if<GatherAttributes>(&m_op.attributes);
        const IndexingDims& dims = attributes.dims;
        const std::size_t rank = m_op.resultTypes[0].shape.size();
        const Indexing indexing = indexingOf(dims, operand.size(), indices.size(), rank);
        for (const std::size_t dim : dims.indexMap) {
            if (attributes.sliceSizes[dim] != m_op.operandTypes[0].shape[dim] && !operand[dim].empty())
                return std::nullopt;
        }
        for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
            if (!resolves({&operand[dims.operandBatch[i]], &indices[dims.indicesBatch[i]]}))
                return std::nullopt;
        }
        for (std::size_t dim = 0; dim < indices.size(); ++dim) {
            if (!contains(dims.indicesBatch, dim) && !indices[dim].empty())
                return std::nullopt;
        }
        DimAxes result(rank);
        for (std::size_t i = 0; i < dims.window.size() && i < indexing.operandWindow.size(); ++i)
            result[dims.window[i]] = operand[indexing.operandWindow[i]];
        for (std::size_t i = 0; i < indexing.sliceBatch.size() && i < indexing.indexDims.size(); ++i)
            result[indexing.sliceBatch[i]] = indices[indexing.indexDims[i]];
        for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
            const auto at = std::find(indexing.indexDims.begin(), indexing.indexDims.end(), dims.indicesBatch[i]);
            if (at == indexing.indexDims.end())
                continue;
            AxisRefs& axes = result[indexing.sliceBatch[static_cast<std::size_t>(at - indexing.indexDims.begin())]];
            if (axes.empty())
                axes = operand[dims.operandBatch[i]];
        }
        return result;
    }

    void gather()
    {
        const DimAxes operand = operandAxes(0);
        const DimAxes indices = operandAxes(1);
        if (auto result = gatherResult(operand, indices))
            return give(*std::move(result));
        fail("MW1257",
            fmt::format(
                "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding could "
                "not be resolved unambiguously (or would require collectives on inputs). Got operand={} {}, indices={} {}",
                typeText(m_op.operandTypes[0]), specOf(operand), typeText(m_op.operandTypes[1]), specOf(indices)),
            "give the indexing an out_sharding, or reshard what is indexed");
        chooseByRule();
    }

    /// JAX's `_scatter_spec_computation`.
    std::optional<DimAxes> scatterResult(const DimAxes& operand, const DimAxes& indices, const DimAxes& updates) const
    {
        const IndexingDims& dims = std::get_if<ScatterAttributes>(&m_op.attributes)->dims;
        const Indexing indexing = indexingOf(dims, operand.size(), indices.size(), updates.size());
        const auto updateDimOf = [&](std::size_t indicesDim) {
            const auto at = std::find(indexing.indexDims.begin(), indexing.indexDims.end(), indicesDim);
            return indexing.sliceBatch[static_cast<std::size_t>(at - indexing.indexDims.begin())];
        };
        DimAxes result = operand;
        std::vector<std::size_t> updateBatch;
        for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
            const std::size_t updateDim = updateDimOf(dims.indicesBatch[i]);
            updateBatch.push_back(updateDim);
            AxisRefs& own = result[dims.operandBatch[i]];
            if (!resolves({&own, &indices[dims.indicesBatch[i]], &updates[updateDim]}))
                return std::nullopt;
            for (const AxisRefs* more : {&indices[dims.indicesBatch[i]], &updates[updateDim]}) {
                if (own.empty())
                    own = *more;
            }
        }
        for (std::size_t i = 0; i < dims.window.size() && i < indexing.operandWindow.size(); ++i) {
            const AxisRefs& update = updates[dims.window[i]];
            const AxisRefs& own = operand[indexing.operandWindow[i]];
            const bool full = m_op.operandTypes[2].shape[dims.window[i]] == m_op.operandTypes[0].shape[indexing.operandWindow[i]];
            if (!(full && update == own) && !(update.empty() && own.empty()))
                return std::nullopt;
        }
        for (const std::size_t dim : dims.collapsed) {
            if (!operand[dim].empty())
                return std::nullopt;
        }
        for (std::size_t dim = 0; dim < updates.size(); ++dim) {
            if (!contains(updateBatch, dim) && !contains(dims.window, dim) && !updates[dim].empty())
                return std::nullopt;
        }
        for (std::size_t dim = 0; dim < indices.size(); ++dim) {
            if (!contains(dims.indicesBatch, dim) && !indices[dim].empty())
                return std::nullopt;
        }
        return result;
    }

    void scatter()
    {
        const DimAxes operand = operandAxes(0);
        if (auto result = scatterResult(operand, operandAxes(1), operandAxes(2)))
            return give(*std::move(result));
        fail("MW1257",
            fmt::format(
                "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as out "
                "sharding could not be resolved unambiguously (or would require collectives on inputs). Got operand={}, "
                "indices={}, updates={}",
                specOf(operand), specOf(operandAxes(1)), specOf(operandAxes(2))),
            "give the update an out_sharding, or reshard what it works on");
        chooseByRule();
    }

    // --- other ops

    void other()
    {
        const auto& other = *std::get_if<OtherAttributes>(&m_op.attributes);
        const std::string_view name = baseName(other.name);
        if (otherClass(other) == OtherClass::Elementwise)
            return broadcasting();
        if (name == "convolution")
            return convolution(other);
        if (name == "reduce_window")
            return resized("reduce_window", sameDims());
        if (name == "sort" && !m_op.operands.empty()) {
            alike(0, m_op.operands.size(), "All operands should have the same sharding");
            return;
        }
        unknown();
    }

    void convolution(const OtherAttributes& other)
    {
        const auto dims = convolutionDims(other.attributes);
        if (!dims)
            return unknown();
        const DimAxes kernel = operandAxes(1);
        const bool kernelWhole = std::all_of(kernel.begin(), kernel.end(), [](const AxisRefs& axes) { return axes.empty(); });
        if (kernelWhole && operandAxes(0)[dims->input.inner].empty()) {
            std::vector<std::size_t> dimOf(operandAxes(0).size());
            dimOf[dims->input.outer] = dims->result.outer;
            dimOf[dims->input.inner] = dims->result.inner;
            for (std::size_t i = 0; i < dims->input.spatial.size(); ++i)
                dimOf[dims->input.spatial[i]] = dims->result.spatial[i];
            return resized("conv_general_dilated", dimOf);
        }
        fail("MW1257",
            fmt::format("Please specify out_sharding to conv_general_dilated: only a kernel that is replicated and an input "
                        "whose features "
                        "are whole are without doubt. Got lhs {} and rhs {}",
                specOf(operandAxes(0)), specOf(kernel)),
            "give the convolution an out_sharding, or reshard its operands");
        chooseByRule();
    }

    void unknown()
    {
        const bool anySharded = std::any_of(m_op.operands.begin(), m_op.operands.end(), [](const ExplicitSharding& one) {
            return one
                && std::any_of(one->dims.begin(), one->dims.end(), [](const DimSharding& dim) { return !dim.axes.empty(); });
        });
        if (!anySharded) {
            for (const TensorType& type : m_op.resultTypes)
                m_answer.results.push_back(shardingWith(DimAxes(type.shape.size()), m_mesh));
            return;
        }
        fail("MW1257", fmt::format("sharding rule for {} is not implemented: its operands are {}", opText(), operandSpecs()),
            "make its operands whole, or work around it with jax.sharding.auto_axes(.., out_sharding=..)");
        if (m_op.resultTypes.size() == 1)
            chooseByRule();
    }

    /// By the dimensions that go together: each operand as it is where that is possible, and whole where it is not; sums over what is
    /// contracted. One choice with the sums, one without, and everything whole.
    void chooseByRule()
    {
        const auto rule = shardingRule(m_op.kind, m_op.attributes, m_op.operandTypes, m_op.resultTypes);
        if (rule) {
            chooseByRule(*rule, true);
            chooseByRule(*rule, false);
        }
        std::vector<ExplicitSharding> whole;
        for (const TensorType& type : m_op.operandTypes)
            whole.push_back(shardingWith(DimAxes(type.shape.size()), m_mesh));
        choose(DimAxes(m_op.resultTypes.front().shape.size()), std::move(whole));
    }

    void chooseByRule(const OpShardingRule& rule, bool sums)
    {
        DimAxes axes(rule.factors.size()); // of each factor
        AxisRefs used;
        for (std::size_t i = 0; i < m_op.operands.size() && i < rule.operands.size(); ++i) {
            const DimAxes own = operandAxes(i);
            for (std::size_t dim = 0; dim < own.size(); ++dim) {
                const auto& factors = rule.operands[i][dim];
                if (factors.size() != 1 || own[dim].empty() || overlapAny(used, own[dim]) || !axes[factors.front()].empty())
                    continue;
                const Factor& factor = rule.factors[factors.front()];
                const bool allowed = factor.kind == FactorKind::PassThrough || (sums && factor.kind == FactorKind::Reduction);
                if (!allowed || factor.size % shardCount(own[dim]) != 0)
                    continue;
                axes[factors.front()] = own[dim];
                used.insert(used.end(), own[dim].begin(), own[dim].end());
            }
        }
        const auto dimsOf = [&](const DimFactors& factors) {
            DimAxes dims;
            for (const auto& dim : factors)
                dims.push_back(dim.size() == 1 ? axes[dim.front()] : AxisRefs());
            return dims;
        };
        std::vector<ExplicitSharding> operands;
        for (const DimFactors& factors : rule.operands)
            operands.push_back(shardingWith(dimsOf(factors), m_mesh));
        TensorSharding computed = shardingWith(dimsOf(rule.results.front()), m_mesh);
        for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
            if (rule.factors[factor].kind == FactorKind::Reduction)
                computed.unreduced.insert(computed.unreduced.end(), axes[factor].begin(), axes[factor].end());
        }
        std::sort(computed.unreduced.begin(), computed.unreduced.end());
        operands.resize(m_op.operands.size());
        choose(axesOf(computed), std::move(operands), computed);
    }

    const ExplicitOp& m_op;
    std::int32_t m_mesh = 0;
    AxisRefs m_unreduced;
    ReduceKind m_unreducedKind = ReduceKind::Sum;
    ExplicitAnswer m_answer;
};

} // namespace

Result<TensorSharding> explicitSharding(const PartitionSpec& spec, std::size_t rank, const Mesh& mesh, bool dropSizeOne)
{
    auto sharding = toTensorSharding(spec, rank, mesh);
    if (!sharding || dropSizeOne)
        return sharding;
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
        AxisRefs& axes = sharding->dims[dim].axes;
        axes.clear();
        for (const std::string& name : spec.dims[dim]) {
            for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
                if (mesh.axes()[axis].name == name)
                    axes.push_back(wholeAxis(mesh, axis));
            }
        }
    }
    return sharding;
}

bool takesOutSharding(OpKind kind, const OpAttributes& attributes)
{
    switch (kind) {
    case OpKind::Constant:
    case OpKind::Iota:
    case OpKind::RandomBits:
    case OpKind::BroadcastInDim:
    case OpKind::Reshape:
    case OpKind::DotGeneral:
    case OpKind::Gather:
    case OpKind::Scatter:
        return true;
    case OpKind::Reduce:
        return std::get_if<ReduceAttributes>(&attributes)->kind == ReduceKind::Sum;
    case OpKind::Other: {
        const auto* other = std::get_if<OtherAttributes>(&attributes);
        return other != nullptr && baseName(other->name) == "convolution";
    }
    default:
        return false;
    }
}

ExplicitAnswer explicitTypes(const ExplicitOp& op)
{
    return ExplicitRules(op).answer();
}

} // namespace meshwright
