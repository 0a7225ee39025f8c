// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
#ifndef __SANITIZE_ADDRESS__ // under which g++ takes no address of a function for a constant
static_assert(areComplete(), "every op of device programs has a lemma: that of its class, or a row of its own");
#endif

} // namespace

LemmaFunction lemmaOf(OpKind kind)
{
    return kLemmas[static_cast<std::size_t>(kind)];
}

std::optional<Standing> apart(Site& site, std::size_t result, const Passing& passing, std::string text)
{
    std::vector<Framed> operands;
    for (std::size_t i = 0; i < site.operands.size(); ++i)
        operands.push_back(framed(site, i));
    std::map<int, std::pair<std::size_t, std::size_t>> layoutOf; // of each index: the operand and dimension that has it
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i].partial.empty())
            return site.refuse(fmt::format("operand {} is a partial result", i));
        for (std::size_t dim = 0; dim < operands[i].dims.size(); ++dim) {
            const auto found = layoutOf.try_emplace(passing.operands[i][dim], i, dim).first;
            if (operands[found->second.first].isCopy(found->second.second) && !operands[i].isCopy(dim))
                found->second = {i, dim};
        }
    }
    text += fmt::format(" result {} along {} of", result, passing.operands);
    std::uint64_t varies = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Framed& operand = operands[i];
        for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
            const int index = passing.operands[i][dim];
            if (index >= 0) {
                const auto& [first, along] = layoutOf[index];
                adopt(operand, dim, operands[first], along);
                if (!sameAlong(operand, dim, operands[first], along))
                    return site.refuse(fmt::format("operand {} is split differently along dimension {}", i, dim));
                continue;
            }
            if (operand.isCopy(dim))
                operand.unclaim(dim);
            if (!operand.isWhole(dim))
                return site.refuse(fmt::format("operand {} is split along dimension {}, which it needs whole", i, dim));
        }
        text += " " + operand.text();
        varies |= site.walk.globals[operand.global].varies;
    }
    Shape shape = site.localResult(result);
    std::vector<StandingDim> dims(shape.size());
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (const int index = passing.results[result][dim]; index >= 0) {
            const auto& [first, along] = layoutOf[index];
            shape[dim] = operands[first].shape[along];
            dims[dim] = operands[first].dims[along];
            dims[dim].fill = kNoGlobal;
        }
    }
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(result), varies);
    return standingOf(global, shape, dims, site.localResult(result), site.mesh());
}

Passing wholePassing(const Site& site)
{
    Passing passing;
    for (const ValueId operand : site.op.operands)
        passing.operands.emplace_back(site.walk.local(operand).size(), -1);
    for (const ValueId result : site.op.results)
        passing.results.emplace_back(site.walk.local(result).size(), -1);
    return passing;
}

std::optional<Standing> wholeOp(Site& site, std::size_t result)
{
    return apart(site, result, wholePassing(site), fmt::format("{} {}", opName(site.op), attributesText(site.walk, site.op)));
}

} // namespace meshwright
