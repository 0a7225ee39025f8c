// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/attention.h"
#include "core/program/other_op.h"
#include "core/propagate/rule_builder.h"

#include <array>

namespace meshwright {

namespace {

using Types = std::span<const TensorType>;
using Dims = std::vector<std::size_t>;

/// A kept op, without what only its blocks use.
struct Kept {
    OpKind kind;
    const OtherAttributes& other;
    Types operands;
    Types results;
    const RuleContext& context;
};

using Rule = std::optional<OpShardingRule>;

template <typename KindOf>
OpShardingRule pointwiseRule(const Kept& op, const Shape& shape, const KindOf& kindOf, bool blocked = false)
{
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        builder.pointwise(dim, shape[dim], kindOf(dim), blocked);
    return builder.finish();
}

OpShardingRule passThrough(const Kept& op)
{
    return pointwiseRule(op, op.results[0].shape, [](std::size_t) { return FactorKind::PassThrough; });
}

/// Collectives of the program's own that keep shapes.
Rule wholeRule(const Kept& op)
{
    return passThrough(op);
}

Rule bitcastRule(const Kept& op)
{
    const Shape& from = op.operands[0].shape;
    const Shape& to = op.results[0].shape;
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < std::min(from.size(), to.size()); ++dim)
        builder.pointwise(dim, from[dim]);
    if (from.size() < to.size())
        builder.addToResult(to.size() - 1, builder.factor(to.back(), FactorKind::NeedReplication));
    if (to.size() < from.size())
        builder.addToOperand(0, from.size() - 1, builder.factor(from.back(), FactorKind::NeedReplication));
    return builder.finish();
}

Rule batchNormRule(const Kept& op)
{
    const bool perElement = op.kind == OpKind::BatchNormInference;
    const auto feature = static_cast<std::size_t>(*integerAt(op.other.attributes, "feature_index"));
    const Shape& shape = op.operands[0].shape;
    RuleBuilder builder(op.operands, op.results);
    const auto add = [&](std::size_t dim, std::size_t factor, Types types, const auto& addTo) {
        for (std::size_t i = 0; i < types.size(); ++i) {
            if (types[i].shape.size() == shape.size() && (types[i].shape.size() > 1 || i == 0))
                addTo(i, dim, factor);
            else if (dim == feature)
                addTo(i, std::size_t{0}, factor);
        }
    };
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const bool whole = dim != feature && !perElement; // its statistics are over all of them
        const std::size_t factor = builder.factor(shape[dim], whole ? FactorKind::NeedReplication : FactorKind::PassThrough);
        add(dim, factor, op.operands, [&](std::size_t i, std::size_t d, std::size_t f) { builder.addToOperand(i, d, f); });
        add(dim, factor, op.results, [&](std::size_t i, std::size_t d, std::size_t f) { builder.addToResult(i, d, f); });
    }
    return builder.finish();
}

Rule choleskyRule(const Kept& op)
{
    const Shape& shape = op.operands[0].shape;
    return pointwiseRule(op, shape,
        [&](std::size_t dim) { return dim + 2 < shape.size() ? FactorKind::PassThrough : FactorKind::NeedReplication; });
}

/// The input and kernel dimensions of a convolution share its windows' size, the input and the result the number of windows.
Rule convolutionRule(const Kept& op)
{
    const ConvolutionDims dims = *convolutionDims(op.other.attributes);
    const Shape& input = op.operands[0].shape;
    const Shape& kernel = op.operands[1].shape;
    const Shape& result = op.results[0].shape;
    constexpr std::size_t kInput = 0;
    constexpr std::size_t kKernel = 1;
    constexpr std::size_t kResult = 2;
    std::array<std::vector<bool>, 3> used{
        std::vector<bool>(input.size()), std::vector<bool>(kernel.size()), std::vector<bool>(result.size())};
    RuleBuilder builder(op.operands, op.results);
    using Place = std::pair<std::size_t, std::size_t>; // array, dimension
    // What is 1 does not split a dimension further.
    const auto add = [&](std::int64_t size, FactorKind kind, std::vector<Place> places) {
        if (size == 1)
            std::erase_if(places, [&](const Place& place) { return bool{used[place.first][place.second]}; });
        if (places.empty())
            return;
        const std::size_t factor = builder.factor(size, kind);
        for (const auto& [array, dim] : places) {
            used[array][dim] = true;
            if (array == kResult)
                builder.addToResult(dim, factor);
            else
                builder.addToOperand(array, dim, factor);
        }
    };
    if (dims.batchGroups > 1)
        add(dims.batchGroups, FactorKind::PassThrough,
            {{kInput, dims.input.outer}, {kKernel, dims.kernel.inner}, {kResult, dims.result.inner}});
    add(result[dims.result.outer], FactorKind::PassThrough, {{kInput, dims.input.outer}, {kResult, dims.result.outer}});
    for (std::size_t i = 0; i < dims.input.spatial.size() && !op.context.conservative; ++i) {
        const std::size_t inputDim = dims.input.spatial[i];
        const std::int64_t windows = result[dims.result.spatial[i]];
        const std::int64_t windowSize = kernel[dims.kernel.spatial[i]];
        std::int64_t rest = input[inputDim];
        const auto addSpatial = [&](std::int64_t size, bool contracts) {
            size = std::min(size, rest);
            if (size <= 1)
                return;
            add(size, contracts ? FactorKind::Reduction : FactorKind::Permutation,
                {{kInput, inputDim},
                    contracts ? Place{kKernel, dims.kernel.spatial[i]} : Place{kResult, dims.result.spatial[i]}});
            rest /= size;
        };
        // The larger one is the major part of the input's dimension.
        addSpatial(std::max(windows, windowSize), windows < windowSize);
        addSpatial(std::min(windows, windowSize), windows >= windowSize);
    }
    if (dims.featureGroups > 1)
        add(dims.featureGroups, FactorKind::PassThrough,
            {{kInput, dims.input.inner}, {kKernel, dims.kernel.inner}, {kResult, dims.result.inner}});
    add(kernel[dims.kernel.outer], FactorKind::Reduction, {{kInput, dims.input.inner}, {kKernel, dims.kernel.outer}});
    add(result[dims.result.inner] / (dims.batchGroups * dims.featureGroups), FactorKind::PassThrough,
        {{kKernel, dims.kernel.inner}, {kResult, dims.result.inner}});
    return builder.finish();
}

Rule fftRule(const Kept& op)
{
    const Shape& shape = op.operands[0].shape;
    const std::size_t whole = shape.size() - integersAt(op.other.attributes, "fft_length").size();
    const bool truncates = shape.back() != op.results[0].shape.back();
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        builder.pointwise(dim, shape[dim], dim < whole ? FactorKind::PassThrough : FactorKind::NeedReplication,
            dim + 1 == shape.size() && truncates);
    return builder.finish();
}

/// Inputs, then their initial values; what is reduced is gone from the results.
Rule reduceRule(const Kept& op)
{
    const std::size_t count = op.results.size();
    const Shape& shape = op.operands[0].shape;
    const Dims reduced = *dimsAt(op.other.attributes, "dimensions", shape.size());
    RuleBuilder builder(op.operands, op.results);
    std::size_t kept = 0;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const bool isReduced = contains(reduced, dim);
        const FactorKind kind = !isReduced    ? FactorKind::PassThrough
            : op.context.combiner.has_value() ? FactorKind::Reduction
                                              : FactorKind::NeedReplication;
        const std::size_t factor = builder.factor(shape[dim], kind);
        for (std::size_t i = 0; i < count; ++i) {
            builder.addToOperand(i, dim, factor);
            if (!isReduced)
                builder.addToResult(i, kept, factor);
        }
        kept += isReduced ? 0 : 1;
    }
    return builder.finish();
}

Rule reduceWindowRule(const Kept& op)
{
    const Shape& shape = op.results[0].shape;
    const std::vector<WindowDim> windows = *windowDims(op.other.attributes, shape.size());
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const bool moves = !windows[dim].isTrivial();
        builder.pointwise(
            dim, shape[dim], moves ? FactorKind::Permutation : FactorKind::PassThrough, moves && op.context.conservative);
    }
    return builder.finish();
}

/// operand, source (one element for each window), initial value.
Rule selectAndScatterRule(const Kept& op)
{
    const Shape& shape = op.operands[0].shape;
    const Shape& source = op.operands[1].shape;
    const std::vector<WindowDim> windows = *windowDims(op.other.attributes, shape.size());
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (windows[dim].isTrivial()) {
            builder.pointwise(dim, shape[dim]);
            continue;
        }
        builder.addToOperand(1, dim, builder.factor(source[dim], FactorKind::NeedReplication, op.context.conservative));
        const std::size_t factor = builder.factor(shape[dim], FactorKind::Permutation, op.context.conservative);
        builder.addToOperand(0, dim, factor);
        builder.addToResult(dim, factor);
    }
    return builder.finish();
}

/// The state is needed whole and the same on all devices; the bits may lie anyhow.
Rule randomRule(const Kept& op)
{
    RuleBuilder builder(op.operands, op.results);
    const Shape& state = op.operands[0].shape;
    for (std::size_t dim = 0; dim < state.size(); ++dim) {
        const std::size_t factor = builder.factor(state[dim], FactorKind::NeedReplication, true);
        builder.addToOperand(0, dim, factor);
        builder.addToResult(0, dim, factor);
    }
    const Shape& bits = op.results[1].shape;
    for (std::size_t dim = 0; dim < bits.size(); ++dim)
        builder.addToResult(1, dim, builder.factor(bits[dim]));
    return builder.finish();
}

/// What is made from scalars and small shapes may lie anyhow.
Rule drawRule(const Kept& op)
{
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        builder.needWhole(i, op.operands[i].shape);
    for (std::size_t dim = 0; dim < op.results[0].shape.size(); ++dim)
        builder.addToResult(dim, builder.factor(op.results[0].shape[dim]));
    return builder.finish();
}

Rule keptScatterRule(const Kept& op)
{
    return scatterRule(*indexingDims(op.other.attributes, true), op.operands, op.results, op.context.combiner.has_value());
}

Rule sortRule(const Kept& op)
{
    const Shape& shape = op.operands[0].shape;
    const std::int64_t given = *integerAt(op.other.attributes, "dimension");
    const auto along = static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(shape.size()) : given);
    bool alone = true;
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        alone = alone && (dim == along || shape[dim] == 1);
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        builder.pointwise(
            dim, shape[dim], dim == along ? FactorKind::NeedReplication : FactorKind::PassThrough, dim == along && alone);
    return builder.finish();
}

/// op(a) x = b from the left, x op(a) = b from the right: the matrices' dimensions must all be whole.
Rule triangularRule(const Kept& op)
{
    const Shape& a = op.operands[0].shape;
    const Shape& b = op.operands[1].shape;
    const std::string_view transpose = wordAt(op.other.attributes, "transpose_a");
    const bool transposed = transpose == "TRANSPOSE" || transpose == "ADJOINT";
    const bool left = integerAt(op.other.attributes, "left_side").value_or(1) != 0;
    const std::size_t row = a.size() - 2;
    const std::size_t column = a.size() - 1;
    const std::size_t free = left != transposed ? row : column; // of a, besides the dimension that is contracted
    const std::size_t contracted = left != transposed ? column : row;
    const std::size_t solved = left ? row : column; // of b and x
    const std::size_t other = left ? column : row;
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < row; ++dim)
        builder.pointwise(dim, a[dim]);
    const auto whole = [&](std::int64_t size) { return builder.factor(size, FactorKind::NeedReplication); };
    const std::size_t freeFactor = whole(a[free]);
    builder.addToOperand(0, free, freeFactor);
    builder.addToOperand(1, solved, freeFactor);
    const std::size_t otherFactor = whole(b[other]);
    builder.addToOperand(1, other, otherFactor);
    builder.addToResult(other, otherFactor);
    const std::size_t contractedFactor = whole(a[contracted]);
    builder.addToOperand(0, contracted, contractedFactor);
    builder.addToResult(solved, contractedFactor);
    return builder.finish();
}

/// Collectives of the program's own: the dimensions that they change are needed whole.
Rule exchangeRule(const Kept& op)
{
    const Shape& from = op.operands[0].shape;
    const Shape& to = op.results[0].shape;
    Dims changed;
    for (const char* name : {"all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension"}) {
        const auto dims = dimsAt(op.other.attributes, name, from.size()).value_or(Dims());
        changed.insert(changed.end(), dims.begin(), dims.end());
    }
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        if (!contains(changed, dim)) {
            builder.pointwise(dim, from[dim]);
            continue;
        }
        builder.addToOperands(dim, builder.factor(from[dim], FactorKind::NeedReplication));
        builder.addToResults(dim, builder.factor(to[dim], FactorKind::NeedReplication));
    }
    return builder.finish();
}

/// Takes the largest: what the results have less of is needed whole.
Rule topRule(const Kept& op)
{
    const Shape& from = op.operands[0].shape;
    const Shape& to = op.results[0].shape;
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        const bool cut = from[dim] != to[dim];
        builder.pointwise(dim, from[dim], cut ? FactorKind::NeedReplication : FactorKind::PassThrough, cut);
    }
    return builder.finish();
}

/// Batch, heads and queries may be split; keys are needed whole. Of a split of queries, or of heads that share a key's, each part makes a part of
/// the sums that are the keys' and values' cotangents.
Rule attentionRule(const Kept& op)
{
    const AttentionForm form = *attentionForm(op.other);
    const AttentionPlaces places(form, op.kind);
    const bool isGradient = op.kind == OpKind::AttentionGrad;
    const AttentionSizes sizes(op.operands);
    RuleBuilder builder(op.operands, op.results);
    const FactorKind summed = isGradient ? FactorKind::Reduction : FactorKind::PassThrough;
    Dims batch;
    for (std::size_t dim = 0; dim < sizes.batch.size(); ++dim)
        batch.push_back(builder.factor(sizes.batch[dim]));
    const std::size_t queries = builder.factor(sizes.queries, summed);
    const std::size_t keys = builder.factor(sizes.keys, FactorKind::NeedReplication);
    const std::size_t groups = builder.factor(sizes.groups);
    const std::size_t shares = builder.factor(sizes.shares, summed);
    const std::size_t dims = builder.factor(sizes.dims, FactorKind::NeedReplication);
    const std::size_t valueDims = builder.factor(sizes.valueDims, FactorKind::NeedReplication);
    const auto laid = [&](Dims rest) {
        rest.insert(rest.begin(), batch.begin(), batch.end());
        return rest;
    };
    const auto addTo = [](const Dims& factors, const auto& add) {
        for (std::size_t dim = 0; dim < factors.size(); ++dim)
            add(dim, factors[dim]);
    };
    const auto operand = [&](std::size_t i, const Dims& factors) {
        addTo(factors, [&](std::size_t dim, std::size_t factor) { builder.addToOperand(i, dim, factor); });
    };
    const auto result = [&](std::size_t i, const Dims& factors) {
        addTo(factors, [&](std::size_t dim, std::size_t factor) { builder.addToResult(i, dim, factor); });
    };
    const Dims ofQueries = laid({queries, groups, shares, dims});
    const Dims ofKeys = laid({keys, groups, dims});
    const Dims ofValues = laid({keys, groups, valueDims});
    const Dims made = laid({queries, groups, shares, valueDims});
    operand(0, ofQueries);
    operand(1, ofKeys);
    operand(2, ofValues);
    if (form.causal) {
        operand(places.positions, {queries});
        operand(places.positions + 1, {keys});
    }
    if (form.segmented) {
        operand(places.segments, laid({queries}));
        operand(places.segments + 1, laid({keys}));
    }
    if (!isGradient) {
        for (std::size_t i = places.before; i < places.end; i += 2) {
            operand(i, made);
            operand(i + 1, laid({queries, groups, shares}));
        }
        result(0, made);
        result(1, laid({queries, groups, shares}));
        return builder.finish();
    }
    operand(places.end, made);
    operand(places.end + 1, laid({queries, groups, shares}));
    operand(places.end + 2, made);
    result(0, ofQueries);
    result(1, ofKeys);
    result(2, ofValues);
    return builder.finish();
}

// Custom calls -----------------------------------------------------------------------------------------------------------------

bool sameRanks(Types types, std::size_t rank)
{
    return std::all_of(types.begin(), types.end(), [&](const TensorType& type) { return type.shape.size() == rank; });
}

bool sameShapes(Types types, const Shape& shape)
{
    return std::all_of(
        types.begin(), types.end(), [&](const TensorType& type) { return type.shape.empty() || type.shape == shape; });
}

/// Arrays, indices and two scalars; the results are shorter along the dimension that is searched.
Rule partialReduceRule(const Kept& op)
{
    if (op.operands.size() != 4 || op.results.size() != 2 || !sameRanks(op.operands.first(2), op.results[0].shape.size())
        || !sameRanks(op.results, op.results[0].shape.size()) || !sameRanks(op.operands.last(2), 0))
        return std::nullopt;
    const Shape& from = op.operands[0].shape;
    const Shape& to = op.results[0].shape;
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        if (from[dim] == to[dim]) {
            builder.pointwise(dim, from[dim]);
            continue;
        }
        builder.addToOperands(dim, builder.factor(from[dim]));
        builder.addToResults(dim, builder.factor(to[dim], FactorKind::NeedReplication, true));
    }
    return builder.finish();
}

/// Batches of matrices; `vectors` of the results or operands lack the second last dimension.
Rule matrixRule(const Kept& op, std::string_view target)
{
    const Shape& shape = op.operands[0].shape;
    const bool eigen = target == "Eigh";
    const bool householder = target == "ProductOfElementaryHouseholderReflectors";
    const std::size_t rank = shape.size();
    const TensorType* vector = householder ? (op.operands.size() == 2 ? &op.operands[1] : nullptr)
                                           : (op.results.size() == 2 ? &op.results[1] : nullptr);
    if (rank < 2 || vector == nullptr || vector->shape.size() + 1 != rank || op.results[0].shape.size() != rank
        || op.operands.size() + op.results.size() != 3)
        return std::nullopt;
    RuleBuilder builder(op.operands, op.results);
    for (std::size_t dim = 0; dim + 2 < rank; ++dim)
        builder.pointwise(dim, shape[dim]);
    const FactorKind kind = eigen ? FactorKind::PassThrough : FactorKind::NeedReplication;
    std::size_t last = 0;
    for (const std::size_t dim : {rank - 2, rank - 1}) {
        last = builder.factor(shape[dim], kind);
        builder.addToOperand(0, dim, last);
        builder.addToResult(0, dim, last);
    }
    if (!eigen)
        last = builder.factor(vector->shape.back(), kind);
    if (householder)
        builder.addToOperand(1, rank - 2, last);
    else
        builder.addToResult(1, rank - 2, last);
    return builder.finish();
}

Rule customCallRule(const Kept& op)
{
    constexpr std::array kPointwise = {"annotate_device_placement", "Cholesky", "CompactWyHelper", "InspectSharding",
        "InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular", "LayoutConstraint", "mhlo.erf", "MoveToDevice",
        "MoveToHost", "X64SplitHigh", "X64SplitLow", "xla.megascale.provide_metadata"};
    const std::string_view target = callTarget(op.other);
    if (op.results.empty() || op.operands.empty())
        return std::nullopt;
    const Shape& shape = op.results[0].shape;
    if (std::find(kPointwise.begin(), kPointwise.end(), target) != kPointwise.end())
        return sameShapes(op.operands, shape) && sameShapes(op.results, shape) ? Rule(passThrough(op)) : std::nullopt;
    if (target == "X64Combine") { // the state of a random generator stays whole
        const FactorKind kind = op.context.feedsRandomBits ? FactorKind::NeedReplication : FactorKind::PassThrough;
        return sameShapes(op.operands, shape) ? Rule(pointwiseRule(
                   op, shape, [&](std::size_t) { return kind; }, op.context.feedsRandomBits))
                                              : std::nullopt;
    }
    if (target == "Eigh" || target == "Qr" || target == "QrDecompositionBlock"
        || target == "ProductOfElementaryHouseholderReflectors")
        return matrixRule(op, target);
    if (target == "mhlo.topk")
        return op.operands.size() == 1 && sameRanks(op.operands, shape.size()) && sameRanks(op.results, shape.size())
            ? topRule(op)
            : std::nullopt;
    if (target == "ApproxTopK" || target == "PartialReduce")
        return partialReduceRule(op);
    return std::nullopt;
}

using MakeRule = Rule (*)(const Kept&);

/// By kind; nullptr: no rule is known.
constexpr std::pair<OpKind, MakeRule> kRules[] = {{OpKind::Sort, sortRule}, {OpKind::VariadicReduce, reduceRule},
    {OpKind::VariadicScatter, keptScatterRule}, {OpKind::ReduceWindow, reduceWindowRule},
    {OpKind::SelectAndScatter, selectAndScatterRule}, {OpKind::Convolution, convolutionRule}, {OpKind::TopK, topRule},
    {OpKind::Cholesky, choleskyRule}, {OpKind::TriangularSolve, triangularRule}, {OpKind::Fft, fftRule},
    {OpKind::FftOfPairs, fftRule}, {OpKind::RngBitGenerator, randomRule}, {OpKind::Rng, drawRule},
    {OpKind::BatchNormTraining, batchNormRule}, {OpKind::BatchNormInference, batchNormRule},
    {OpKind::BatchNormGrad, batchNormRule}, {OpKind::Attention, attentionRule}, {OpKind::AttentionGrad, attentionRule},
    {OpKind::BitcastRegroup, bitcastRule}, {OpKind::OwnAllReduce, wholeRule}, {OpKind::OwnAllGather, exchangeRule},
    {OpKind::OwnReduceScatter, exchangeRule}, {OpKind::OwnAllToAll, exchangeRule}, {OpKind::OwnPermute, wholeRule},
    {OpKind::OwnBroadcast, wholeRule}, {OpKind::CrossReplicaSum, wholeRule}, {OpKind::PartitionId, nullptr},
    {OpKind::ReplicaId, nullptr}, {OpKind::CustomCall, customCallRule}, {OpKind::Other, nullptr}};
static_assert(isTableOfKept(kRules), "every kept kind has its rule, in the order of the kinds");

} // namespace

Rule otherRule(OpKind kind, const OtherAttributes& other, Types operands, Types results, const RuleContext& context)
{
    const std::size_t own = operands.size() - other.captures;
    const Kept op{kind, other, operands.first(own), results, context};
    Rule rule;
    if (otherClass(other) == OtherClass::Elementwise)
        rule = passThrough(op);
    else if (const MakeRule make = keptRow(kRules, kind).second; make != nullptr)
        rule = make(op);
    if (!rule)
        return std::nullopt;
    for (const TensorType& captured : operands.last(other.captures)) {
        DimFactors& dims = rule->operands.emplace_back();
        for (const std::int64_t size : captured.shape) {
            dims.push_back({rule->factors.size()});
            rule->factors.push_back({size, FactorKind::NeedReplication, true});
        }
    }
    return rule;
}

} // namespace meshwright
