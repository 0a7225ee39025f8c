// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/device_ops.h"

#include "core/reshard/reshard_steps.h"

#include <algorithm>
#include <memory>

namespace meshwright {

TensorSharding wholeLayout(std::size_t rank, std::int32_t mesh)
{
    TensorSharding layout = TensorSharding::replicatedOf(rank);
    layout.mesh = mesh;
    return layout;
}

Shape wholeOfPieces(Shape piece, const TensorSharding& layout)
{
    for (std::size_t dim = 0; dim < piece.size(); ++dim)
        piece[dim] *= shardCount(layout.dims[dim].axes);
    return piece;
}

ValueId DeviceOps::make(
    OpKind kind, std::vector<ValueId> operands, OpAttributes attributes, const TensorSharding& layout, const Shape& whole)
{
    const ValueId made = m_builder.add(kind, std::move(operands), std::move(attributes));
    m_describe(made, layout, whole);
    return made;
}

ValueId DeviceOps::integer(std::int64_t value, DType dtype, std::int32_t mesh)
{
    return make(OpKind::Constant, {}, ConstantAttributes{{dtype, {}}, {value}}, wholeLayout(0, mesh), {});
}

/// A device's own element of a list that has one for each piece.
ValueId DeviceOps::ownOf(ValueId all, const AxisRefs& axes, std::int32_t mesh)
{
    const Shape pieces{shardCount(axes)};
    const TensorSharding from = wholeLayout(1, mesh);
    TensorSharding to = from;
    to.dims[0].axes = axes;
    CollectiveAttributes attributes;
    attributes.perDim = {axes};
    ReshardStep step
        = reshardStep(OpKind::AllSlice, std::move(attributes), {pieces, byteSize(DType::S32)}, from, m_mesh, to, m_mesh);
    const ValueId own = make(OpKind::AllSlice, {all}, std::move(step.attributes), to, pieces);
    return make(OpKind::Reshape, {own}, ReshapeAttributes{{}}, wholeLayout(0, mesh), {});
}

ValueId DeviceOps::pieceNumber(const AxisRefs& axes, std::int32_t mesh)
{
    const Shape pieces{shardCount(axes)};
    return ownOf(make(OpKind::Iota, {}, IotaAttributes{{DType::S32, pieces}, 0}, wholeLayout(1, mesh), pieces), axes, mesh);
}

ValueId DeviceOps::perPiece(const std::vector<std::int64_t>& values, const AxisRefs& axes, std::int32_t mesh)
{
    if (std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values.front(); }))
        return integer(values.front(), DType::S32, mesh);
    std::vector<std::int32_t> narrow;
    for (const std::int64_t value : values)
        narrow.push_back(static_cast<std::int32_t>(value));
    auto blob
        = std::make_shared<const std::string>(reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(std::int32_t));
    const Shape pieces{static_cast<std::int64_t>(values.size())};
    const ValueId all
        = make(OpKind::Constant, {}, ConstantAttributes{{DType::S32, pieces}, {std::move(blob)}}, wholeLayout(1, mesh), pieces);
    return ownOf(all, axes, mesh);
}

ValueId DeviceOps::everywhere(ValueId scalar, const Shape& piece, const TensorSharding& layout)
{
    return make(OpKind::BroadcastInDim, {scalar}, BroadcastAttributes{piece, {}}, layout, wholeOfPieces(piece, layout));
}

ValueId DeviceOps::compared(
    const Shape& piece, TensorSharding layout, std::size_t dim, bool inPiece, CompareDirection direction, ValueId bound)
{
    layout.unreduced.clear();
    TensorSharding counted = layout;
    if (inPiece)
        counted.dims[dim].axes.clear();
    const ValueId index
        = make(OpKind::Iota, {}, IotaAttributes{{DType::S32, piece}, dim}, counted, wholeOfPieces(piece, counted));
    return make(OpKind::Compare, {index, everywhere(bound, piece, layout)}, CompareAttributes{direction}, layout,
        wholeOfPieces(piece, layout));
}

ValueId DeviceOps::betweenInPiece(const Shape& piece, const TensorSharding& layout, std::size_t dim, ValueId first, ValueId limit)
{
    const ValueId isBehind = compared(piece, layout, dim, true, CompareDirection::GreaterEqual, first);
    const ValueId isBefore = compared(piece, layout, dim, true, CompareDirection::Less, limit);
    return make(OpKind::And, {isBehind, isBefore}, {}, layout, wholeOfPieces(piece, layout));
}

ValueId DeviceOps::outsideReplaced(
    ValueId value, const TensorSharding& layout, std::size_t dim, std::int64_t first, std::int64_t limit, ValueId other)
{
    const Shape piece = type(value).shape; // a copy: the table of values grows
    const Shape whole = wholeOfPieces(piece, layout);
    const auto isOn = [&](CompareDirection side, std::int64_t bound) {
        return compared(piece, layout, dim, false, side, integer(bound, DType::S32, layout.mesh));
    };
    ValueId mask = isOn(CompareDirection::Less, limit);
    if (first > 0)
        mask = make(OpKind::And, {mask, isOn(CompareDirection::GreaterEqual, first)}, {}, layout, whole);
    return make(OpKind::Select, {mask, value, everywhere(other, piece, layout)}, {}, layout, whole);
}

ValueId DeviceOps::zeros(const TensorType& piece, const TensorSharding& layout)
{
    const ValueId made = m_builder.splat(piece, 0.0);
    m_describe(made, layout, wholeOfPieces(piece.shape, layout));
    return made;
}

ValueId DeviceOps::nothing(ReduceKind kind, const TensorType& piece, const TensorSharding& layout)
{
    ConstantAttributes constant = reduceIdentity(kind, piece.dtype);
    constant.type = piece;
    if (kind == ReduceKind::Sum && isFloating(piece.dtype))
        constant.data.value = -0.0;
    const ValueId made = m_builder.add(OpKind::Constant, {}, std::move(constant));
    m_describe(made, layout, wholeOfPieces(piece.shape, layout));
    return made;
}

} // namespace meshwright
