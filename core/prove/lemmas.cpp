// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

constexpr std::array<Lemma, kOpKindCount> kLemmas = {{
    {OpKind::Constant, constantLemma},
    {OpKind::Iota, iotaLemma},
    {OpKind::RandomBits, randomBitsLemma},
    {OpKind::Negate, elementwiseLemma},
    {OpKind::Abs, elementwiseLemma},
    {OpKind::Sign, elementwiseLemma},
    {OpKind::Exp, elementwiseLemma},
    {OpKind::Log, elementwiseLemma},
    {OpKind::Log1p, elementwiseLemma},
    {OpKind::Tanh, elementwiseLemma},
    {OpKind::Logistic, elementwiseLemma},
    {OpKind::Sqrt, elementwiseLemma},
    {OpKind::Rsqrt, elementwiseLemma},
    {OpKind::Sine, elementwiseLemma},
    {OpKind::Cosine, elementwiseLemma},
    {OpKind::Tan, elementwiseLemma},
    {OpKind::Cbrt, elementwiseLemma},
    {OpKind::Expm1, elementwiseLemma},
    {OpKind::Square, elementwiseLemma},
    {OpKind::Floor, elementwiseLemma},
    {OpKind::Ceil, elementwiseLemma},
    {OpKind::RoundNearestEven, elementwiseLemma},
    {OpKind::RoundNearestAway, elementwiseLemma},
    {OpKind::IsFinite, elementwiseLemma},
    {OpKind::Not, elementwiseLemma},
    {OpKind::Erf, elementwiseLemma},
    {OpKind::Erfc, elementwiseLemma},
    {OpKind::ErfInv, elementwiseLemma},
    {OpKind::Convert, elementwiseLemma},
    {OpKind::BitcastConvert, elementwiseLemma},
    {OpKind::Add, elementwiseLemma},
    {OpKind::Subtract, elementwiseLemma},
    {OpKind::Multiply, elementwiseLemma},
    {OpKind::Divide, elementwiseLemma},
    {OpKind::Remainder, elementwiseLemma},
    {OpKind::Maximum, elementwiseLemma},
    {OpKind::Minimum, elementwiseLemma},
    {OpKind::Power, elementwiseLemma},
    {OpKind::Atan2, elementwiseLemma},
    {OpKind::And, elementwiseLemma},
    {OpKind::Or, elementwiseLemma},
    {OpKind::Xor, elementwiseLemma},
    {OpKind::ShiftLeft, elementwiseLemma},
    {OpKind::ShiftRightLogical, elementwiseLemma},
    {OpKind::ShiftRightArithmetic, elementwiseLemma},
    {OpKind::Compare, elementwiseLemma},
    {OpKind::Select, elementwiseLemma},
    {OpKind::Clamp, elementwiseLemma},
    {OpKind::BroadcastInDim, broadcastLemma},
    {OpKind::Reshape, reshapeLemma},
    {OpKind::Transpose, transposeLemma},
    {OpKind::Slice, sliceLemma},
    {OpKind::Pad, padLemma},
    {OpKind::Concatenate, concatenateLemma},
    {OpKind::Reverse, reverseLemma},
    {OpKind::DynamicSlice, dynamicSliceLemma},
    {OpKind::DynamicUpdateSlice, dynamicUpdateLemma},
    {OpKind::Gather, gatherLemma},
    {OpKind::Scatter, scatterLemma},
    {OpKind::Reduce, reduceLemma},
    {OpKind::DotGeneral, dotLemma},
    {OpKind::ShardingConstraint, identityLemma},
    {OpKind::PropagationBarrier, identityLemma},
    {OpKind::OptimizationBarrier, identityLemma},
    {OpKind::Repeat, nullptr}, // control: prove.cpp
    {OpKind::While, nullptr},
    {OpKind::Case, nullptr},
    {OpKind::Computation, nullptr},
    {OpKind::AllReduce, allReduceLemma},
    {OpKind::AllGather, allGatherLemma},
    {OpKind::AllSlice, allSliceLemma},
    {OpKind::ReduceScatter, reduceScatterLemma},
    {OpKind::AllToAll, allToAllLemma},
    {OpKind::CollectivePermute, permuteLemma},
    {OpKind::Reshard, identityLemma},
    {OpKind::Send, nullptr},
    {OpKind::Receive, nullptr},
    {OpKind::Other, keptLemma},
}};

constexpr bool isComplete()
{
    for (std::size_t i = 0; i < kLemmas.size(); ++i) {
        if (static_cast<std::size_t>(kLemmas[i].kind) != i)
            return false;
    }
    return true;
}
static_assert(isComplete(), "one row for each OpKind, in its order");

} // namespace

const std::array<Lemma, kOpKindCount>& lemmas()
{
    return kLemmas;
}

std::optional<Standing> wholeOp(Site& site, std::size_t result)
{
    std::string text = fmt::format("whole {} {} result {}", opName(site.op), attributesText(site.walk, site.op), result);
    std::uint64_t varies = 0;
    for (std::size_t i = 0; i < site.operands.size(); ++i) {
        const Framed operand = framed(site, i);
        for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
            if (!operand.isCopy(dim) && !operand.isWhole(dim))
                return site.refuse(fmt::format("operand {} is split along dimension {}", i, dim));
        }
        if (!operand.partial.empty())
            return site.refuse(fmt::format("operand {} is a partial result", i));
        Framed whole = operand;
        for (std::size_t dim = 0; dim < whole.dims.size(); ++dim) {
            if (whole.isCopy(dim))
                whole.shape[dim] = whole.local[dim];
        }
        text += whole.text();
        varies |= site.walk.globals[operand.global].varies;
    }
    const Shape& shape = site.localResult(result);
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(result), varies);
    return standingOf(global, shape, std::vector<StandingDim>(shape.size()), shape, 0);
}

} // namespace meshwright
