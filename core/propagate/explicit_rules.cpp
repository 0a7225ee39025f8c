// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/explicit_rules.h"

#include "core/program/other_op.h"
#include "core/propagate/explicit_reshape.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace meshwright {

ExplicitAnswer ExplicitRules::answer()
{
    const bool anyKnown
        = std::any_of(m_op.operands.begin(), m_op.operands.end(), [](const ExplicitSharding& one) { return one.has_value(); });
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

void ExplicitRules::give(const TensorSharding& sharding)
{
    m_answer.results.assign(m_op.resultTypes.size(), sharding);
    for (ExplicitSharding& result : m_answer.results) {
        for (DimSharding& dim : result->dims) {
            dim.open = false;
            dim.priority = 0;
        }
    }
}

void ExplicitRules::fail(const char* id, std::string message, std::string fix)
{
    m_answer.results.clear();
    m_answer.problem = Problem{id, std::move(message), std::move(fix)};
}

/// A result without doubt, unless it has an axis twice.
void ExplicitRules::give(DimAxes dims)
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

std::string ExplicitRules::specOf(const TensorSharding& sharding) const
{
    TensorSharding placement = sharding;
    placement.unreduced.clear();
    const auto spec = toSpec(placement, m_op.mesh);
    return spec ? specText(*spec) : shardyText(placement, m_op.mesh);
}

std::string ExplicitRules::operandSpecs() const
{
    std::vector<std::string> specs;
    for (std::size_t i = 0; i < m_op.operands.size(); ++i) {
        if (m_op.operands[i] && !m_op.operandTypes[i].shape.empty())
            specs.push_back(specOf(*m_op.operands[i]));
    }
    return join(specs, ", ");
}

DimAxes ExplicitRules::operandAxes(std::size_t operand) const
{
    const ExplicitSharding& sharding = m_op.operands[operand];
    return sharding ? axesOf(*sharding) : DimAxes(m_op.operandTypes[operand].shape.size());
}

/// Adds a choice, if every dimension divides and no axis is used twice anywhere.
void ExplicitRules::choose(DimAxes result, std::vector<ExplicitSharding> operands, std::optional<TensorSharding> computed)
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

bool ExplicitRules::isLinear() const
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

std::string ExplicitRules::axisName(const AxisRef& axis) const
{
    const auto index = static_cast<std::size_t>(axis.axis);
    return axis == wholeAxis(m_op.mesh, index) ? m_op.mesh.axes()[index].name : axisText(axis, m_op.mesh);
}

std::string ExplicitRules::axisNames(const AxisRefs& axes) const
{
    std::vector<std::string> names;
    for (const AxisRef& axis : axes)
        names.push_back(axisName(axis));
    return fmt::format("{{{}}}", join(names, ", "));
}

const AxisRefs& ExplicitRules::unreducedOf(std::size_t operand) const
{
    static const AxisRefs kNone;
    return m_op.operands[operand] ? m_op.operands[operand]->unreduced : kNone;
}

/// What the operands' partial sums make of the result's, where the op is linear in them.
bool ExplicitRules::checkUnreducedOperands()
{
    const auto partial = std::find_if(
        m_op.operands.begin(), m_op.operands.end(), [](const ExplicitSharding& one) { return one && !one->unreduced.empty(); });
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
            return refuse(fmt::format("{} is unreduced while {} is not. `{}` operation does not allow this because there will be "
                                      "implicit communication. Please reduce {} via `reshard` before calling `{}`.",
                partialSide, unreducedOf(1).empty() ? "rhs" : "lhs", name, partialSide, name));
        }
        if (unreducedOf(0) != unreducedOf(1))
            return refuse(fmt::format("lhs and rhs to `{}` must be unreduced along the same mesh axes. Got lhs={}, rhs={}", name,
                axisNames(unreducedOf(0)), axisNames(unreducedOf(1))));
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
bool ExplicitRules::checkUnreducedOut()
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

std::string ExplicitRules::opText() const
{
    const auto* other = std::get_if<OtherAttributes>(&m_op.attributes);
    return other != nullptr ? std::string(baseName(other->name)) : std::string(opName(m_op.kind));
}

void ExplicitRules::infer()
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
    case OpKind::Convolution:
        return convolution();
    case OpKind::ReduceWindow:
        return resized("reduce_window", sameDims());
    case OpKind::Sort:
        return m_op.operands.empty() ? unknown() : alike(0, m_op.operands.size(), "All operands should have the same sharding");
    default:
        break;
    }
    const auto* other = std::get_if<OtherAttributes>(&m_op.attributes);
    return other != nullptr && otherClass(*other) == OtherClass::Elementwise ? broadcasting() : unknown();
}

void ExplicitRules::likeOperand(std::size_t operand)
{
    if (m_op.operands[operand])
        return give(operandAxes(operand));
    broadcasting();
}

/// JAX's `broadcasting_sharding_rule`: operands agree, or all but one say nothing.
void ExplicitRules::broadcasting()
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
void ExplicitRules::chooseOneForAll(std::size_t first, std::size_t count)
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
        const bool same = std::all_of(given.begin(), given.end(), [&](const DimAxes& one) { return one[dim] == common[dim]; });
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
            const bool takesPart = operand >= first && operand < first + count && m_op.operandTypes[operand].shape.size() == rank
                && operands[operand];
            if (takesPart
                || (operands[operand] && m_op.operandTypes[operand].shape.size() == rank && m_op.kind == OpKind::Select))
                operands[operand] = shardingWith(wanted[i], m_mesh);
        }
        choose(wanted[i], std::move(operands));
    }
}

/// Operands first .. first + count - 1 have one sharding, which is the result's.
void ExplicitRules::alike(std::size_t first, std::size_t count, const char* message)
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

void ExplicitRules::select()
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

void ExplicitRules::broadcastInDim()
{
    const auto& broadcast = *std::get_if<BroadcastAttributes>(&m_op.attributes);
    const DimAxes operand = operandAxes(0);
    DimAxes result(broadcast.shape.size());
    for (std::size_t dim = 0; dim < broadcast.dims.size(); ++dim)
        result[broadcast.dims[dim]] = operand[dim];
    give(std::move(result));
}

void ExplicitRules::transpose()
{
    const DimAxes operand = operandAxes(0);
    DimAxes result;
    for (const std::size_t dim : std::get_if<TransposeAttributes>(&m_op.attributes)->permutation)
        result.push_back(operand[dim]);
    give(std::move(result));
}

void ExplicitRules::reduce()
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

void ExplicitRules::reshape()
{
    const Shape& from = m_op.operandTypes[0].shape;
    const Shape& to = m_op.resultTypes[0].shape;
    const DimAxes operand = operandAxes(0);
    if (auto result = explicitReshape(from, operand, to))
        return give(*std::move(result));
    fail("MW1254",
        fmt::format("This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of "
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

std::vector<std::size_t> ExplicitRules::sameDims() const
{
    std::vector<std::size_t> dims(m_op.operandTypes[0].shape.size());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    return dims;
}

/// The operand's sharding, if dimensions of another size still divide. `dimOf`: of each operand dimension the result's.
void ExplicitRules::resized(const char* what, const std::vector<std::size_t>& dimOf)
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
            wrong = fmt::format("{} on sharded dims where out dim ({}) is not divisible by mesh axes ({}) with spec ({}) is not "
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

/// A result that has an axis twice: it goes to one of the dimensions, and the operands that bring the other are gathered.
void ExplicitRules::chooseWithoutDuplicates(const DimAxes& result)
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
    case OpKind::Convolution:
        return true;
    case OpKind::Reduce:
        return std::get_if<ReduceAttributes>(&attributes)->kind == ReduceKind::Sum;
    default:
        return false;
    }
}

ExplicitAnswer explicitTypes(const ExplicitOp& op)
{
    return ExplicitRules(op).answer();
}

} // namespace meshwright
