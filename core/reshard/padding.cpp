// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reshard/padding.h"

#include "core/program/other_op.h"

#include <algorithm>

namespace meshwright {

namespace {

template <typename Fits>
TensorSharding withFittingAxes(TensorSharding layout, const Shape& shape, const Fits& fits)
{
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        auto& axes = layout.dims[dim].axes;
        while (!axes.empty() && !fits(shape[dim], shardCount(axes)))
            axes.pop_back();
    }
    return layout;
}

bool divides(std::int64_t size, std::int64_t pieces)
{
    return size % pieces == 0;
}

/// True for ops each of whose factors' elements are made apart, or combined in a way that the partitioner can mask.
bool canBePadded(const Op& op)
{
    switch (op.kind) {
    case OpKind::BroadcastInDim:
    case OpKind::Reshape:
    case OpKind::Transpose:
    case OpKind::Slice:
    case OpKind::Pad:
    case OpKind::Concatenate:
    case OpKind::Reverse:
    case OpKind::DynamicSlice:
    case OpKind::DynamicUpdateSlice:
    case OpKind::Gather:
    case OpKind::Scatter:
    case OpKind::Reduce:
    case OpKind::DotGeneral:
    case OpKind::Sort:
    case OpKind::VariadicReduce:
    case OpKind::ReduceWindow:
    case OpKind::Convolution:
    case OpKind::Attention:
    case OpKind::AttentionGrad:
        return true;
    default:
        return isElementwise(op);
    }
}

/// True when a factor is all of every dimension that it is in.
bool isAlone(const Function& function, const Op& op, const OpShardingRule& rule, std::size_t factor)
{
    const auto alone = [&](const std::vector<ValueId>& values, const std::vector<DimFactors>& tensors) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            for (std::size_t dim = 0; dim < tensors[i].size(); ++dim) {
                const auto& factors = tensors[i][dim];
                const bool isIn = std::find(factors.begin(), factors.end(), factor) != factors.end();
                if (isIn && (factors.size() != 1 || function[values[i]].type.shape[dim] != rule.factors[factor].size))
                    return false;
            }
        }
        return true;
    };
    return alone(op.operands, rule.operands) && alone(op.results, rule.results);
}

} // namespace

TensorSharding evened(TensorSharding layout, const Shape& shape)
{
    return withFittingAxes(std::move(layout), shape, divides);
}

TensorSharding withoutIdlePieces(TensorSharding layout, const Shape& shape)
{
    return withFittingAxes(
        std::move(layout), shape, [](std::int64_t size, std::int64_t pieces) { return divides(size, pieces) || size >= pieces; });
}

Shape paddedShape(const Shape& shape, const TensorSharding& layout)
{
    Shape padded = localShape(shape, layout);
    for (std::size_t dim = 0; dim < padded.size(); ++dim)
        padded[dim] *= shardCount(layout.dims[dim].axes);
    return padded;
}

std::vector<bool> paddableFactors(const Function& function, OpId id, const OpShardingRule& rule)
{
    const Op& op = function[id];
    std::vector<bool> paddable(rule.factors.size(), false);
    if (!canBePadded(op))
        return paddable;
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        const FactorKind kind = rule.factors[f].kind;
        // Windows of exchanges know where the arrays end. Of a scatter, updates behind the end would be added to what is there.
        paddable[f] = kind == FactorKind::Permutation
            || (isAlone(function, op, rule, f)
                && (kind == FactorKind::PassThrough
                    || (kind == FactorKind::Reduction && op.kind != OpKind::Scatter && !isKept(op.kind))));
    }
    return paddable;
}

std::vector<PaddedMove> paddedMoves(const Shape& shape, const TensorSharding& from, const TensorSharding& to)
{
    const Shape start = paddedShape(shape, from);
    const Shape end = paddedShape(shape, to);
    if (start == end)
        return {{start, to, end}};
    TensorSharding middle = from;
    Shape before = start; // of the last part
    Shape cut = start;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (start[dim] == end[dim])
            continue;
        if (!from.dims[dim].axes.empty() && !to.dims[dim].axes.empty()) {
            middle.dims[dim].axes.clear();
            cut[dim] = shape[dim];
        }
        before[dim] = to.dims[dim].axes.empty() ? start[dim] : end[dim];
    }
    std::vector<PaddedMove> moves;
    if (middle != from)
        moves.push_back({start, middle, cut});
    moves.push_back({before, to, end});
    return moves;
}

} // namespace meshwright
