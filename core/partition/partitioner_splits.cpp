// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partitioner.h"
#include "core/partition/split_exchange.h"
#include "core/program/other_op.h"
#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>

// Ops along split dimensions of which devices need more than they have, or which end in padding.
namespace meshwright {

namespace {

std::int64_t piecesAlong(const TensorSharding& layout, std::size_t dim)
{
    return shardCount(layout.dims[dim].axes);
}

/// What the pieces of a slice's result need of its operand along one dimension.
PieceWindow sliceWindow(const SliceAttributes& slice, std::size_t dim, std::int64_t resultSize, std::int64_t pieces)
{
    const std::int64_t piece = ceilDiv(resultSize, pieces);
    const std::int64_t stride = slice.strides[dim];
    return {slice.starts[dim], piece * stride, (piece - 1) * stride + 1, slice.starts[dim],
        slice.starts[dim] + (resultSize - 1) * stride + 1};
}

/// The same of an array before which others, or padding, come.
PieceWindow shiftedWindow(std::int64_t before, std::int64_t size, std::int64_t resultSize, std::int64_t pieces)
{
    const std::int64_t piece = ceilDiv(resultSize, pieces);
    return {-before, piece, piece, 0, size};
}

/// The same of a reversal: the elements that its pieces have, in their first order.
PieceWindow mirroredWindow(std::int64_t size, std::int64_t pieces)
{
    const std::int64_t piece = ceilDiv(size, pieces);
    return {size - piece, -piece, piece, 0, size};
}

/// The same of windows that slide.
PieceWindow pieceWindow(const SlidingWindow& window, std::int64_t size, std::int64_t resultSize, std::int64_t pieces)
{
    const std::int64_t piece = ceilDiv(resultSize, pieces);
    return {-window.low, piece * window.stride, (piece - 1) * window.stride + window.span, 0, size};
}

bool cuts(const SliceAttributes& slice, std::size_t dim, std::int64_t size)
{
    return slice.starts[dim] != 0 || slice.limits[dim] != size || slice.strides[dim] != 1;
}

/// Start indices in which the sizes of arrays have room, below zero too.
DType indexType(DType given)
{
    return given == DType::S64 || given == DType::U64 || given == DType::U32 ? DType::S64 : DType::S32;
}

} // namespace

std::optional<SlidingWindow> slidingWindow(const Function& function, const Op& op, std::size_t dim)
{
    const auto* other = std::get_if<OtherAttributes>(&op.attributes);
    if (other == nullptr || other->captures > 0)
        return std::nullopt;
    const Shape& shape = function[op.operands.front()].type.shape;
    if (op.kind == OpKind::ReduceWindow) {
        const auto windows = windowDims(other->attributes, shape.size());
        if (!windows || (*windows)[dim].baseDilation != 1)
            return std::nullopt;
        const WindowDim& window = (*windows)[dim];
        return SlidingWindow{
            dim, dim, (window.size - 1) * window.windowDilation + 1, window.stride, window.low, op.results.size()};
    }
    const auto dims = op.kind == OpKind::Convolution ? convolutionDims(other->attributes) : std::nullopt;
    if (!dims)
        return std::nullopt;
    const auto at = static_cast<std::size_t>(
        std::find(dims->input.spatial.begin(), dims->input.spatial.end(), dim) - dims->input.spatial.begin());
    const auto number = [&](const char* attribute, std::size_t index, std::int64_t otherwise) {
        const auto integers = integersAt(other->attributes, attribute);
        return index < integers.size() ? integers[index] : otherwise;
    };
    if (at == dims->input.spatial.size() || number("lhs_dilation", at, 1) != 1)
        return std::nullopt;
    const std::int64_t size = function[op.operands[1]].type.shape[dims->kernel.spatial[at]];
    return SlidingWindow{dims->result.spatial[at], at, (size - 1) * number("rhs_dilation", at, 1) + 1,
        number("window_strides", at, 1), number("padding", 2 * at, 0)};
}

DeviceOps Partitioner::deviceOps(const TensorSharding& layout)
{
    return DeviceOps(m_builder, meshOf(layout),
        [this](ValueId value, const TensorSharding& lies, const Shape& shape) { describe(value, lies, shape); });
}

/// Exchanges along a dimension must move less than what they save, gathering it.
OpLayout Partitioner::layoutFor(OpId id, OpShardingRule& rule) const
{
    const Op& op = m_source[id];
    const std::vector<bool> padded = pads() ? paddableFactors(m_source, id, rule) : std::vector<bool>();
    for (;;) {
        OpLayout layout = chooseOpLayout(m_source, id, rule, meshOfOp(op), padded);
        bool isGood = true;
        for (std::size_t f = 0; f < rule.factors.size(); ++f) {
            if (rule.factors[f].kind == FactorKind::Permutation && !layout.factorAxes[f].empty()
                && !isWorthExchanging(op, rule, layout, f)) {
                rule.factors[f].kind = FactorKind::NeedReplication;
                isGood = false;
            }
        }
        if (isGood)
            return layout;
    }
}

bool Partitioner::isWorthExchanging(const Op& op, const OpShardingRule& rule, const OpLayout& layout, std::size_t factor) const
{
    const DimFactors& dims = rule.operands.front();
    const auto dim = static_cast<std::size_t>(std::find_if(dims.begin(), dims.end(), [&](const auto& factors) {
        return !factors.empty() && factors.front() == factor;
    }) - dims.begin());
    const std::int64_t pieces = shardCount(layout.factorAxes[factor]);
    const auto sliding = slidingWindow(m_source, op, dim);
    const std::int64_t result = globalShape(op.results.front())[sliding ? sliding->resultDim : dim];
    std::int64_t sent = 0;
    std::int64_t gathered = 0;
    std::int64_t before = 0;
    const std::size_t arrays = op.kind == OpKind::Pad ? 1 : sliding ? sliding->operands : op.operands.size();
    for (std::size_t i = 0; i < arrays && result > 0; ++i) {
        const std::int64_t size = globalShape(op.operands[i])[dim];
        PieceWindow window;
        switch (op.kind) {
        case OpKind::Slice:
            window = sliceWindow(op.as<SliceAttributes>(), dim, result, pieces);
            break;
        case OpKind::Pad:
            window = shiftedWindow(op.as<PadAttributes>().low[dim], size, result, pieces);
            break;
        case OpKind::Concatenate:
            window = shiftedWindow(before, size, result, pieces);
            window.isExact = true;
            before += size;
            break;
        case OpKind::Convolution:
        case OpKind::ReduceWindow:
            window = pieceWindow(*sliding, size, result, pieces);
            break;
        default:
            window = mirroredWindow(size, pieces);
        }
        const std::int64_t piece = ceilDiv(size, pieces);
        sent += sentElements(roundsFor(window, pieces, piece));
        gathered += piece * pieces;
    }
    return result > 0 && sent < gathered;
}

/// What is combined along a dimension that ends in padding: there, what changes nothing.
void Partitioner::maskPadding(const Op& op, std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted)
{
    if (op.kind != OpKind::Reduce && op.kind != OpKind::DotGeneral)
        return;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const bool isReduce = op.kind == OpKind::Reduce;
        const auto& dims = isReduce ? op.as<ReduceAttributes>().dims
            : i == 0                ? op.as<DotAttributes>().lhsContracting
                                    : op.as<DotAttributes>().rhsContracting;
        const ReduceKind kind = isReduce ? op.as<ReduceAttributes>().kind : ReduceKind::Sum;
        for (const std::size_t dim : dims) {
            const std::int64_t size = globalShape(op.operands[i])[dim];
            if (size % piecesAlong(wanted[i], dim) == 0)
                continue;
            m_builder.setPhase(op.phase);
            DeviceOps ops = deviceOps(wanted[i]);
            const ValueId nothing = ops.make(
                OpKind::Constant, {}, reduceIdentity(kind, ops.type(operands[i]).dtype), wholeLayout(0, wanted[i].mesh), {});
            operands[i] = ops.outsideReplaced(operands[i], wanted[i], dim, 0, size, nothing);
        }
    }
}

/// False for ops that devices compute on their pieces as they are.
bool Partitioner::emitExchange(const Op& op, const std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted,
    const std::vector<TensorSharding>& layouts)
{
    const auto isSplit = [&](const auto& moves) {
        for (std::size_t dim = 0; dim < wanted.front().dims.size(); ++dim) {
            if (piecesAlong(wanted.front(), dim) > 1 && moves(dim))
                return true;
        }
        return false;
    };
    const auto isCut = [&](const Shape& part) {
        return isSplit([&](std::size_t dim) { return globalShape(op.operands.front())[dim] != part[dim]; });
    };
    const auto isReversed = [&](std::size_t dim) {
        const auto& dims = op.as<ReverseAttributes>().dims;
        return std::find(dims.begin(), dims.end(), dim) != dims.end();
    };
    m_builder.setPhase(op.phase);
    ValueId result;
    switch (op.kind) {
    case OpKind::Slice:
        if (isSplit([&](std::size_t dim) { return cuts(op.as<SliceAttributes>(), dim, globalShape(op.operands.front())[dim]); }))
            result = exchangedSlice(op, operands.front(), layouts.front());
        break;
    case OpKind::Pad:
        if (isSplit(
                [&](std::size_t dim) { return op.as<PadAttributes>().low[dim] != 0 || op.as<PadAttributes>().high[dim] != 0; }))
            result = exchangedPad(op, operands, layouts.front());
        break;
    case OpKind::Concatenate:
        if (isSplit([&](std::size_t dim) { return op.as<ConcatenateAttributes>().dim == dim; }))
            result = exchangedConcatenation(op, operands, layouts.front());
        break;
    case OpKind::Reverse:
        if (isSplit(isReversed))
            result = exchangedReversal(op, operands.front(), layouts.front());
        break;
    case OpKind::DynamicSlice:
        if (isCut(op.as<DynamicSliceAttributes>().sizes))
            result = splitDynamicSlice(op, operands, wanted.front(), layouts.front());
        break;
    case OpKind::DynamicUpdateSlice:
        if (isCut(globalShape(op.operands[1])))
            result = splitDynamicUpdate(op, operands, layouts.front());
        break;
    default:
        break;
    }
    if (!result.valid())
        return false;
    const bool isOperand = std::find(operands.begin(), operands.end(), result) != operands.end();
    // A slice that cuts only padding off leaves every device what it has: a value of its own all the same.
    define(op.results.front(), layouts.front(), isOperand ? copied(result) : result);
    return true;
}

ValueId Partitioner::exchangedSlice(const Op& op, ValueId operand, const TensorSharding& layout)
{
    const Shape& from = globalShape(op.operands.front());
    const Shape& to = globalShape(op.results.front());
    DeviceOps ops = deviceOps(layout);
    SliceAttributes rest = op.as<SliceAttributes>(); // what each device cuts of its window
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        const std::int64_t pieces = piecesAlong(layout, dim);
        if (pieces == 1)
            continue;
        if (cuts(op.as<SliceAttributes>(), dim, from[dim])) {
            const PieceWindow window = sliceWindow(op.as<SliceAttributes>(), dim, to[dim], pieces);
            operand
                = SplitExchange(ops, describeUnnamed(op.operands.front()), opName(op.kind)).window(operand, layout, dim, window);
        }
        rest.starts[dim] = 0;
        rest.limits[dim] = ops.type(operand).shape[dim];
    }
    const Shape piece = localShape(to, layout);
    return ops.type(operand).shape == piece ? operand : ops.make(OpKind::Slice, {operand}, std::move(rest), layout, to);
}

ValueId Partitioner::exchangedPad(const Op& op, const std::vector<ValueId>& operands, const TensorSharding& layout)
{
    const Shape& from = globalShape(op.operands.front());
    const Shape& to = globalShape(op.results.front());
    DeviceOps ops = deviceOps(layout);
    PadAttributes rest = op.as<PadAttributes>();
    ValueId value = operands.front();
    for (std::size_t dim = 0; dim < from.size(); ++dim) {
        if (piecesAlong(layout, dim) == 1 || (rest.low[dim] == 0 && rest.high[dim] == 0))
            continue;
        const std::int64_t low = rest.low[dim];
        value = SplitExchange(ops, describeUnnamed(op.operands.front()), opName(op.kind))
                    .window(value, layout, dim, shiftedWindow(low, from[dim], to[dim], piecesAlong(layout, dim)));
        value = ops.outsideReplaced(value, layout, dim, low, low + from[dim], operands[1]);
        rest.low[dim] = rest.high[dim] = 0;
    }
    const auto isNone
        = [](const Shape& sizes) { return std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size == 0; }); };
    if (isNone(rest.low) && isNone(rest.high) && isNone(rest.interior))
        return value;
    return ops.make(OpKind::Pad, {value, operands[1]}, std::move(rest), layout, to);
}

ValueId Partitioner::exchangedConcatenation(const Op& op, const std::vector<ValueId>& operands, const TensorSharding& layout)
{
    const std::size_t dim = op.as<ConcatenateAttributes>().dim;
    const std::int64_t size = globalShape(op.results.front())[dim];
    DeviceOps ops = deviceOps(layout);
    std::vector<SplitExchange::Source> sources;
    std::int64_t before = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::int64_t part = globalShape(op.operands[i])[dim];
        PieceWindow window = shiftedWindow(before, part, size, piecesAlong(layout, dim));
        window.isExact = true;
        if (part > 0)
            sources.push_back({operands[i], window});
        before += part;
    }
    return SplitExchange(ops, describeUnnamed(op.operands.front()), opName(op.kind)).merged(sources, layout, dim);
}

ValueId Partitioner::exchangedReversal(const Op& op, ValueId operand, const TensorSharding& layout)
{
    DeviceOps ops = deviceOps(layout);
    const Shape& shape = globalShape(op.results.front());
    for (const std::size_t dim : op.as<ReverseAttributes>().dims) {
        if (const std::int64_t pieces = piecesAlong(layout, dim); pieces > 1)
            operand = SplitExchange(ops, describeUnnamed(op.operands.front()), opName(op.kind))
                          .window(operand, layout, dim, mirroredWindow(shape[dim], pieces));
    }
    return ops.make(OpKind::Reverse, {operand}, op.attributes, layout, shape);
}

/// The elements that a device's windows are over, with what is padded in place of those that there are not.
ValueId Partitioner::slidWindow(
    const Op& op, ValueId operand, const TensorSharding& layout, std::size_t dim, const SlidingWindow& sliding, ValueId padding)
{
    const std::int64_t size = globalShape(op.operands.front())[dim];
    const std::int64_t pieces = piecesAlong(layout, dim);
    const PieceWindow window = pieceWindow(sliding, size, globalShape(op.results.front())[sliding.resultDim], pieces);
    DeviceOps ops = deviceOps(layout);
    const ValueId slid
        = SplitExchange(ops, describeUnnamed(op.operands.front()), std::string(opName(op))).window(operand, layout, dim, window);
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> limit;
    for (std::int64_t k = 0; k < pieces; ++k) {
        const std::int64_t start = window.first + k * window.step;
        first.push_back(std::clamp<std::int64_t>(-start, 0, window.length));
        limit.push_back(std::clamp<std::int64_t>(size - start, 0, window.length));
    }
    const auto allAre = [](const std::vector<std::int64_t>& values, std::int64_t value) {
        return std::all_of(values.begin(), values.end(), [&](std::int64_t other) { return other == value; });
    };
    if (allAre(first, 0) && allAre(limit, window.length))
        return slid;
    const Shape piece = ops.type(slid).shape;
    const AxisRefs& axes = layout.dims[dim].axes;
    const ValueId from = ops.perPiece(first, axes, layout.mesh);
    const ValueId mask = ops.betweenInPiece(piece, layout, dim, from, ops.perPiece(limit, axes, layout.mesh));
    return ops.make(
        OpKind::Select, {mask, slid, ops.everywhere(padding, piece, layout)}, {}, layout, wholeOfPieces(piece, layout));
}

namespace {

/// The attributes of windows that need no padding along some of their dimensions any more.
void dropPadding(KeptAttributes& attributes, const std::vector<std::size_t>& places)
{
    for (KeptAttribute& attribute : attributes) {
        if (attribute.name != "padding")
            continue;
        for (const std::size_t place : places) {
            for (const std::size_t end : {2 * place, 2 * place + 1}) {
                if (end < attribute.integers.size())
                    attribute.integers[end] = 0;
            }
        }
        std::string rows;
        for (std::size_t i = 0; i + 1 < attribute.integers.size(); i += 2)
            rows += fmt::format("{}[{}, {}]", i == 0 ? "" : ", ", attribute.integers[i], attribute.integers[i + 1]);
        attribute.text = fmt::format("dense<[{}]> : tensor<{}x2xi64>", rows, attribute.integers.size() / 2);
    }
}

} // namespace

/// Convolutions and reductions of windows along split dimensions: with the halos of their pieces, which take the places of the operands,
/// devices compute them without padding. Nothing for other ops.
std::optional<Op> Partitioner::slidOp(const Op& op, std::vector<ValueId>& operands, const std::vector<TensorSharding>& wanted)
{
    if (!isKept(op.kind) || op.operands.empty())
        return std::nullopt;
    m_builder.setPhase(op.phase);
    std::vector<std::size_t> places;
    const TensorSharding& layout = wanted.front();
    for (std::size_t dim = 0; dim < layout.dims.size(); ++dim) {
        const auto sliding = piecesAlong(layout, dim) > 1 ? slidingWindow(m_source, op, dim) : std::nullopt;
        const bool isPlain = sliding && sliding->span == 1 && sliding->stride == 1 && sliding->low == 0
            && globalShape(op.operands.front())[dim] == globalShape(op.results.front())[sliding->resultDim];
        if (!sliding || isPlain)
            continue;
        places.push_back(sliding->place);
        DeviceOps ops = deviceOps(layout);
        for (std::size_t i = 0; i < sliding->operands; ++i) {
            const bool isReduction = op.operands.size() == 2 * op.results.size() && !op.bodies.empty();
            const ValueId padding = isReduction ? operands[sliding->operands + i]
                                                : ops.zeros({ops.type(operands[i]).dtype, {}}, wholeLayout(0, layout.mesh));
            operands[i] = slidWindow(op, operands[i], wanted[i], dim, *sliding, padding);
        }
    }
    if (places.empty())
        return std::nullopt;
    Op local = op;
    dropPadding(local.as<OtherAttributes>().attributes, places);
    return local;
}

/// Start indices of a part of `sizes`, held within the whole array as its op says; along dimensions with a margin counted from where a
/// device's piece begins, behind the margin.
std::vector<ValueId> Partitioner::startsInPiece(const Op& op, const std::vector<ValueId>& starts, const Shape& sizes,
    const Shape& piece, const TensorSharding& layout, const Shape& margins)
{
    DeviceOps ops = deviceOps(layout);
    const TensorSharding scalar = wholeLayout(0, layout.mesh);
    const Shape& whole = globalShape(op.operands.front());
    std::vector<ValueId> made;
    for (std::size_t dim = 0; dim < starts.size(); ++dim) {
        const DType dtype = indexType(ops.type(starts[dim]).dtype);
        const auto of = [&](OpKind kind, std::vector<ValueId> operands, OpAttributes attributes = {}) {
            return ops.make(kind, std::move(operands), std::move(attributes), scalar, {});
        };
        ValueId start = starts[dim];
        if (ops.type(start).dtype != dtype)
            start = of(OpKind::Convert, {start}, ConvertAttributes{dtype});
        if (margins[dim] > 0) {
            start = of(OpKind::Clamp, {ops.integer(0, dtype), start, ops.integer(whole[dim] - sizes[dim], dtype)});
            std::vector<std::int64_t> begins; // where the margin before each piece begins
            for (std::int64_t k = 0; k < piecesAlong(layout, dim); ++k)
                begins.push_back(k * piece[dim] - margins[dim]);
            ValueId begin = ops.perPiece(begins, layout.dims[dim].axes, layout.mesh);
            if (dtype != DType::S32)
                begin = of(OpKind::Convert, {begin}, ConvertAttributes{dtype});
            start = of(OpKind::Subtract, {start, begin});
        }
        made.push_back(start);
    }
    return made;
}

namespace {

/// Along each cut dimension that is split, the size of the part: so far can it reach beyond a piece.
Shape marginsOf(const Shape& whole, const Shape& part, const TensorSharding& layout)
{
    Shape margins(whole.size(), 0);
    for (std::size_t dim = 0; dim < whole.size(); ++dim) {
        if (whole[dim] != part[dim] && piecesAlong(layout, dim) > 1)
            margins[dim] = part[dim];
    }
    return margins;
}

ValueId withMargins(DeviceOps& ops, ValueId value, const TensorSharding& layout, const Shape& margins)
{
    const TensorType type = ops.type(value);
    Shape wide = type.shape;
    for (std::size_t dim = 0; dim < wide.size(); ++dim)
        wide[dim] += 2 * margins[dim];
    const ValueId nothing = ops.nothing(ReduceKind::Sum, {type.dtype, {}}, wholeLayout(0, layout.mesh));
    return ops.make(OpKind::Pad, {value, nothing}, PadAttributes{margins, margins, Shape(wide.size(), 0)}, layout,
        wholeOfPieces(wide, layout));
}

} // namespace

/// Each device gives what of the slice lies in its piece, nothing for the rest: a partial sum.
ValueId Partitioner::splitDynamicSlice(
    const Op& op, const std::vector<ValueId>& operands, const TensorSharding& from, const TensorSharding& to)
{
    const Shape& sizes = op.as<DynamicSliceAttributes>().sizes;
    const Shape margins = marginsOf(globalShape(op.operands.front()), sizes, from);
    DeviceOps ops = deviceOps(from);
    const Shape piece = ops.type(operands.front()).shape;
    std::vector<ValueId> sliced = startsInPiece(op, {operands.begin() + 1, operands.end()}, sizes, piece, from, margins);
    sliced.insert(sliced.begin(), withMargins(ops, operands.front(), from, margins));
    const Shape& whole = globalShape(op.results.front());
    return ops.make(OpKind::DynamicSlice, std::move(sliced), DynamicSliceAttributes{localShape(whole, to)}, to, whole);
}

/// Each device puts the update where it belongs, in its piece or in the margins around it, which it then cuts off.
ValueId Partitioner::splitDynamicUpdate(const Op& op, const std::vector<ValueId>& operands, const TensorSharding& layout)
{
    const Shape& sizes = globalShape(op.operands[1]);
    const Shape margins = marginsOf(globalShape(op.operands.front()), sizes, layout);
    DeviceOps ops = deviceOps(layout);
    const Shape piece = ops.type(operands.front()).shape;
    std::vector<ValueId> updated = startsInPiece(op, {operands.begin() + 2, operands.end()}, sizes, piece, layout, margins);
    const ValueId wide = withMargins(ops, operands.front(), layout, margins);
    updated.insert(updated.begin(), {wide, operands[1]});
    const Shape wideShape = ops.type(wide).shape;
    const ValueId put = ops.make(OpKind::DynamicUpdateSlice, std::move(updated), {}, layout, wholeOfPieces(wideShape, layout));
    Shape limits = margins;
    for (std::size_t dim = 0; dim < limits.size(); ++dim)
        limits[dim] += piece[dim];
    return ops.make(OpKind::Slice, {put}, SliceAttributes{margins, std::move(limits), Shape(piece.size(), 1)}, layout,
        globalShape(op.results.front()));
}

} // namespace meshwright
