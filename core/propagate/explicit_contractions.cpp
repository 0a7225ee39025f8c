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

DimAxes ExplicitRules::dotResult(const DotAttributes& dot, const DotSides& sides)
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

DimAxes ExplicitRules::picked(const DimAxes& dims, const std::vector<std::size_t>& which)
{
    DimAxes axes;
    for (const std::size_t dim : which)
        axes.push_back(dims[dim]);
    return axes;
}

void ExplicitRules::dot()
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

void ExplicitRules::agree(DotSides& sides, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right, Side side)
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
void ExplicitRules::dropShared(
    DimAxes& from, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& summed, const AxisRefs& taken)
{
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        if (!contains(batch, dim) && !contains(summed, dim) && overlapAny(from[dim], taken))
            from[dim].clear();
    }
}

AxisRefs ExplicitRules::ownAxes(
    const DimAxes& dims, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& summed)
{
    AxisRefs own;
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
        if (!contains(batch, dim) && !contains(summed, dim))
            own.insert(own.end(), dims[dim].begin(), dims[dim].end());
    }
    return own;
}

void ExplicitRules::chooseForDot(const DotAttributes& dot, const DotSides& given)
{
    for (const Side batch : kSides) {
        for (const Side summed : kSides) {
            for (const Side own : {Side::Left, Side::Right}) {
                DotSides sides = given;
                agree(sides, dot.lhsBatch, dot.rhsBatch, batch);
                agree(sides, dot.lhsContracting, dot.rhsContracting, summed);
                if (own == Side::Left)
                    dropShared(sides.rhs, dot.rhsBatch, dot.rhsContracting, ownAxes(sides.lhs, dot.lhsBatch, dot.lhsContracting));
                else
                    dropShared(sides.lhs, dot.lhsBatch, dot.lhsContracting, ownAxes(sides.rhs, dot.rhsBatch, dot.rhsContracting));
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
void ExplicitRules::chooseSums(const DotAttributes& dot, const DotSides& sides, bool untouched)
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

void ExplicitRules::chooseOnce(
    DimAxes result, const std::vector<ExplicitSharding>& operands, const TensorSharding& computed, bool partial)
{
    const TensorSharding wanted = shardingWith(result, m_mesh);
    const bool known
        = !partial && std::any_of(m_answer.choices.begin(), m_answer.choices.end(), [&](const ExplicitChoice& choice) {
              return choice.result == wanted && choice.operands == operands && choice.computed == computed;
          });
    if (!known)
        choose(std::move(result), operands, computed);
}

} // namespace meshwright
