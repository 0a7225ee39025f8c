// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/rule_builder.h"

namespace meshwright {

namespace {

using Types = std::span<const TensorType>;
using Dims = std::vector<std::size_t>;

constexpr auto kNone = static_cast<std::size_t>(-1);

/// Dimensions for which `moves` says so are kept in place only by an exchange between neighbours.
template <typename Moves>
OpShardingRule shiftRule(Types operands, Types results, const RuleContext& context, const Moves& moves)
{
    RuleBuilder builder(operands, results);
    const Shape& shape = operands.front().shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        builder.pointwise(
            dim, shape[dim], moves(dim) ? FactorKind::Permutation : FactorKind::PassThrough, moves(dim) && context.conservative);
    return builder.finish();
}

OpShardingRule concatenateRule(std::size_t along, Types operands, Types results, const RuleContext& context)
{
    RuleBuilder builder(operands, results);
    const Shape& shape = results.front().shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (dim != along)
            builder.pointwise(dim, shape[dim]);
        else if (!context.conservative)
            builder.pointwise(dim, shape[dim], context.joinsSlices ? FactorKind::Permutation : FactorKind::NeedReplication);
    }
    return builder.finish();
}

/// Of a slice at a place that is only known when it runs: what is not cut goes through.
OpShardingRule dynamicSliceRule(Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    const Shape& whole = operands.front().shape;
    for (std::size_t dim = 0; dim < whole.size(); ++dim) {
        const bool cut = whole[dim] != results.front().shape[dim];
        builder.pointwise(dim, whole[dim], cut ? FactorKind::NeedReplication : FactorKind::PassThrough, cut);
    }
    return builder.finish();
}

/// Of an update at such a place: along a cut dimension the array goes through, each device takes what of the update lies in its piece.
/// Source: openxla/shardy, op_sharding_rule_registry.cc (DynamicUpdateSliceOp).
OpShardingRule dynamicUpdateRule(Types operands, Types results, const RuleContext& context)
{
    RuleBuilder builder(operands, results);
    const Shape& whole = operands[0].shape;
    const Shape& part = operands[1].shape;
    for (std::size_t dim = 0; dim < whole.size(); ++dim) {
        const std::size_t factor = builder.factor(whole[dim]);
        builder.addToOperand(0, dim, factor);
        builder.addToResult(dim, factor);
        const FactorKind ofUpdate = context.startsAreConstant ? FactorKind::PassThrough : FactorKind::NeedReplication;
        builder.addToOperand(1, dim, whole[dim] == part[dim] ? factor : builder.factor(part[dim], ofUpdate));
    }
    return builder.finish();
}

/// One factor of a gather or a scatter: the dimensions that have it, kNone where an array has none.
struct IndexedFactor {
    std::size_t operand = kNone;
    std::size_t indices = kNone;
    std::size_t slices = kNone;
    std::int64_t size = 1;
    FactorKind kind = FactorKind::PassThrough;
    bool blocked = false;
};

/// The factors of a gather; of a scatter with `isScatter`, where those along the indices alone are of kind `batchKind`.
/// Source: openxla/shardy, op_sharding_rule_registry.cc (addGatherScatterFactors).
std::vector<IndexedFactor> indexedFactors(const IndexingDims& dims, const Shape& operand, const Shape& indices,
    const Shape& slices, bool isScatter, FactorKind batchKind)
{
    std::vector<IndexedFactor> factors;
    std::size_t operandDim = 0;
    std::size_t indicesDim = 0;
    for (std::size_t dim = 0; dim < slices.size(); ++dim) {
        if (!contains(dims.window, dim)) {
            indicesDim += indicesDim == dims.indexVectorDim ? 1 : 0;
            const auto batch = std::find(dims.indicesBatch.begin(), dims.indicesBatch.end(), indicesDim);
            const bool isExplicit = batch != dims.indicesBatch.end();
            const std::size_t own
                = isExplicit ? dims.operandBatch[static_cast<std::size_t>(batch - dims.indicesBatch.begin())] : kNone;
            factors.push_back({own, indicesDim, dim, slices[dim], isExplicit ? FactorKind::PassThrough : batchKind});
            ++indicesDim;
            continue;
        }
        while (contains(dims.collapsed, operandDim) || contains(dims.operandBatch, operandDim))
            ++operandDim;
        const std::int64_t whole = operand[operandDim];
        if (whole == slices[dim]) {
            factors.push_back({operandDim, kNone, dim, whole});
        } else if (isScatter) {
            factors.push_back({operandDim, kNone, kNone, whole, FactorKind::NeedReplication});
            factors.push_back({kNone, kNone, dim, slices[dim], FactorKind::NeedReplication});
        } else if (slices[dim] == 1) { // a masked look-up, then a sum
            factors.push_back({operandDim, kNone, kNone, whole, FactorKind::Reduction});
            factors.push_back({kNone, kNone, dim, 1, FactorKind::NeedReplication});
        } else {
            factors.push_back({operandDim, kNone, dim, whole, FactorKind::NeedReplication, true});
        }
        ++operandDim;
    }
    for (const std::size_t collapsed : dims.collapsed) {
        const FactorKind kind = isScatter ? FactorKind::PassThrough
            : operand[collapsed] > 1      ? FactorKind::Reduction
                                          : FactorKind::NeedReplication;
        factors.push_back({collapsed, kNone, kNone, operand[collapsed], kind});
    }
    if (dims.indexVectorDim < indices.size())
        factors.push_back({kNone, dims.indexVectorDim, kNone, indices[dims.indexVectorDim], FactorKind::NeedReplication});
    return factors;
}

OpShardingRule gatherRule(const GatherAttributes& gather, Types operands, Types results)
{
    RuleBuilder builder(operands, results);
    for (const IndexedFactor& each :
        indexedFactors(gather.dims, operands[0].shape, operands[1].shape, results[0].shape, false, FactorKind::PassThrough)) {
        const std::size_t factor = builder.factor(each.size, each.kind, each.blocked);
        if (each.operand != kNone)
            builder.addToOperand(0, each.operand, factor);
        if (each.indices != kNone)
            builder.addToOperand(1, each.indices, factor);
        if (each.slices != kNone)
            builder.addToResult(each.slices, factor);
    }
    return builder.finish();
}

} // namespace

OpShardingRule scatterRule(const IndexingDims& dims, Types operands, Types results, bool combines)
{
    RuleBuilder builder(operands, results);
    const std::size_t count = results.size();
    for (const IndexedFactor& each : indexedFactors(dims, operands[0].shape, operands[count].shape, operands[count + 1].shape,
             true, combines ? FactorKind::Reduction : FactorKind::NeedReplication)) {
        const std::size_t factor = builder.factor(each.size, each.kind, each.blocked);
        if (each.indices != kNone)
            builder.addToOperand(count, each.indices, factor);
        for (std::size_t i = 0; i < count; ++i) {
            if (each.operand != kNone) {
                builder.addToOperand(i, each.operand, factor);
                builder.addToResult(i, each.operand, factor);
            }
            if (each.slices != kNone)
                builder.addToOperand(count + 1 + i, each.slices, factor);
        }
    }
    return builder.finish();
}

std::optional<OpShardingRule> partsRule(
    OpKind kind, const OpAttributes& attributes, Types operands, Types results, const RuleContext& context)
{
    switch (kind) {
    case OpKind::Slice:
        return shiftRule(
            operands, results, context, [&](std::size_t dim) { return operands[0].shape[dim] != results[0].shape[dim]; });
    case OpKind::Pad: {
        const auto& pad = std::get<PadAttributes>(attributes);
        return shiftRule(operands, results, context, [&](std::size_t dim) {
            return pad.low[dim] != 0 || pad.high[dim] != 0 || operands[0].shape[dim] != results[0].shape[dim];
        });
    }
    case OpKind::Reverse: {
        const Dims& dims = std::get<ReverseAttributes>(attributes).dims;
        return shiftRule(operands, results, {}, [&](std::size_t dim) { return contains(dims, dim); });
    }
    case OpKind::Concatenate:
        return concatenateRule(std::get<ConcatenateAttributes>(attributes).dim, operands, results, context);
    case OpKind::DynamicSlice:
        return dynamicSliceRule(operands, results);
    case OpKind::DynamicUpdateSlice:
        return dynamicUpdateRule(operands, results, context);
    case OpKind::Gather:
        return gatherRule(std::get<GatherAttributes>(attributes), operands, results);
    case OpKind::Scatter: {
        const auto& scatter = std::get<ScatterAttributes>(attributes);
        return scatterRule(scatter.dims, operands, results, scatter.combiner.has_value());
    }
    default:
        return std::nullopt;
    }
}

} // namespace meshwright
