// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include <fmt/format.h>

namespace meshwright {

namespace {

struct OwnLemma {
    OpKind kind;
    LemmaFunction standing;
};

constexpr OwnLemma kOwnLemmas[] = {
    {OpKind::Constant, constantLemma},
    {OpKind::Iota, iotaLemma},
    {OpKind::RandomBits, randomBitsLemma},
    {OpKind::RngBitGenerator, bitGeneratorLemma},
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
    {OpKind::AllReduce, allReduceLemma},
    {OpKind::AllGather, allGatherLemma},
    {OpKind::AllSlice, allSliceLemma},
    {OpKind::ReduceScatter, reduceScatterLemma},
    {OpKind::AllToAll, allToAllLemma},
    {OpKind::CollectivePermute, permuteLemma},
    {OpKind::Reshard, identityLemma},
};

constexpr std::array<LemmaFunction, kOpKindCount> madeLemmas()
{
    std::array<LemmaFunction, kOpKindCount> lemmas{};
    for (const OpInfo& op : kOpTable) {
        LemmaFunction& lemma = lemmas[static_cast<std::size_t>(op.kind)];
        if (op.opClass == OpClass::Unary || op.opClass == OpClass::Binary || op.opClass == OpClass::Ternary)
            lemma = elementwiseLemma;
        else if (isKept(op.kind))
            lemma = keptLemma;
    }
    for (const OwnLemma& own : kOwnLemmas)
        lemmas[static_cast<std::size_t>(own.kind)] = own.standing;
    return lemmas;
}

constexpr std::array<LemmaFunction, kOpKindCount> kLemmas = madeLemmas();

/// Ops with blocks are walked by prove.cpp, and transfers join stages.
constexpr bool areComplete()
{
    for (const OpInfo& op : kOpTable) {
        const bool needsNone = op.opClass == OpClass::Control || op.opClass == OpClass::Transfer;
        if ((kLemmas[static_cast<std::size_t>(op.kind)] == nullptr) != needsNone)
            return false;
    }
    return true;
}
static_assert(areComplete(), "every op of device programs has a lemma: that of its class, or a row of its own");

} // namespace

LemmaFunction lemmaOf(OpKind kind)
{
    return kLemmas[static_cast<std::size_t>(kind)];
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
