// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/local_indexing.h"

#include "core/partition/reshard_steps.h"

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

TensorSharding wholeLayout(std::size_t rank, std::int32_t mesh)
{
    TensorSharding layout = TensorSharding::replicatedOf(rank);
    layout.mesh = mesh;
    return layout;
}

/// The value that changes nothing when it is combined with another, as a double.
std::optional<double> neutral(ReduceKind kind)
{
    switch (kind) {
    case ReduceKind::Sum:
        return 0.0;
    case ReduceKind::Product:
        return 1.0;
    default:
        return std::nullopt; // combining twice with the same changes nothing
    }
}

} // namespace

std::vector<std::size_t> splitIndexedDims(
    const TensorSharding& layout, const IndexingDims& dims, const Shape& whole, const Shape& slices)
{
    std::vector<std::size_t> split;
    for (const std::size_t dim : dims.indexMap) {
        if (!layout.dims[dim].axes.empty() && slices[dim] < whole[dim])
            split.push_back(dim);
    }
    return split;
}

Shape scatteredSlices(const IndexingDims& dims, const Shape& whole)
{
    Shape slices = whole;
    for (const std::size_t dim : dims.collapsed)
        slices[dim] = 1;
    return slices;
}

ValueId LocalIndexing::make(
    OpKind kind, std::vector<ValueId> operands, OpAttributes attributes, const TensorSharding& layout, const Shape& whole)
{
    const ValueId made = m_builder.add(kind, std::move(operands), std::move(attributes));
    m_describe(made, layout, whole);
    return made;
}

ValueId LocalIndexing::integer(std::int64_t value, DType dtype)
{
    return make(OpKind::Constant, {}, ConstantAttributes{{dtype, {}}, {value}}, wholeLayout(0, 0), {});
}

/// Which of the pieces over these axes a device has, from 0: its part of 0, 1, 2 and so on.
ValueId LocalIndexing::pieceNumber(const AxisRefs& axes, std::int32_t mesh)
{
    const Shape pieces{shardCount(axes)};
    const TensorSharding from = wholeLayout(1, mesh);
    TensorSharding to = from;
    to.dims[0].axes = axes;
    const ValueId all = make(OpKind::Iota, {}, IotaAttributes{{DType::S32, pieces}, 0}, from, pieces);
    CollectiveAttributes attributes;
    attributes.perDim = {axes};
    ReshardStep step
        = reshardStep(OpKind::AllSlice, std::move(attributes), {pieces, byteSize(DType::S32)}, from, m_mesh, to, m_mesh);
    const ValueId own = make(OpKind::AllSlice, {all}, std::move(step.attributes), to, pieces);
    return make(OpKind::Reshape, {own}, ReshapeAttributes{{}}, wholeLayout(0, mesh), {});
}

/// One scalar for each entry of an index vector, at every index.
ValueId LocalIndexing::spread(const std::vector<ValueId>& entries, const Operand& indices, const IndexingDims& dims)
{
    const Shape local = m_builder.type(indices.local).shape;
    const auto everywhere = [&](ValueId value, std::vector<std::size_t> along) {
        return make(OpKind::BroadcastInDim, {value}, BroadcastAttributes{local, std::move(along)}, indices.layout, indices.whole);
    };
    if (entries.size() == 1)
        return local.empty() ? entries.front() : everywhere(entries.front(), {});
    const Shape one{1};
    const TensorSharding layout = wholeLayout(1, indices.layout.mesh);
    std::vector<ValueId> parts;
    for (const ValueId entry : entries)
        parts.push_back(make(OpKind::Reshape, {entry}, ReshapeAttributes{one}, layout, one));
    const Shape count{static_cast<std::int64_t>(entries.size())};
    return everywhere(
        make(OpKind::Concatenate, std::move(parts), ConcatenateAttributes{0}, layout, count), {dims.indexVectorDim});
}

ValueId LocalIndexing::spread(const std::vector<std::int64_t>& entries, const Operand& indices, const IndexingDims& dims)
{
    const DType dtype = m_builder.type(indices.local).dtype;
    const bool same = std::all_of(entries.begin(), entries.end(), [&](std::int64_t entry) { return entry == entries.front(); });
    std::vector<ValueId> values;
    for (const std::int64_t entry : same ? std::vector{entries.front()} : entries)
        values.push_back(integer(entry, dtype));
    return spread(values, indices, dims);
}

/// Indices in which the beginnings of pieces have room.
LocalIndexing::Operand LocalIndexing::wide(const Operand& indices)
{
    Operand made = indices;
    if (byteSize(m_builder.type(indices.local).dtype) < byteSize(DType::S32))
        made.local = make(OpKind::Convert, {indices.local}, ConvertAttributes{DType::S32}, indices.layout, indices.whole);
    return made;
}

/// The indices, counted from the first element of a device's piece.
ValueId LocalIndexing::shifted(const Operand& of, const Operand& indices, const IndexingDims& dims, const Shape& slices)
{
    const TensorType type = m_builder.type(indices.local);
    const Shape piece = m_builder.type(of.local).shape; // a copy: the table of values grows
    const std::vector<std::size_t> split = splitIndexedDims(of.layout, dims, of.whole, slices);
    std::vector<ValueId> starts;
    for (const std::size_t dim : dims.indexMap) {
        const AxisRefs& axes = of.layout.dims[dim].axes;
        if (std::find(split.begin(), split.end(), dim) == split.end()) {
            starts.push_back(integer(0, type.dtype));
            continue;
        }
        ValueId number = pieceNumber(axes, of.layout.mesh);
        const TensorSharding scalar = wholeLayout(0, of.layout.mesh);
        if (type.dtype != DType::S32)
            number = make(OpKind::Convert, {number}, ConvertAttributes{type.dtype}, scalar, {});
        starts.push_back(make(OpKind::Multiply, {number, integer(piece[dim], type.dtype)}, {}, scalar, {}));
    }
    return make(OpKind::Subtract, {indices.local, spread(starts, indices, dims)}, {}, indices.layout, indices.whole);
}

ValueId LocalIndexing::gather(const Operand& from, const Operand& given, const GatherAttributes& attributes,
    const GatherAttributes& whole, const TensorSharding& resultLayout, const Shape& resultWhole)
{
    Operand indices = wide(given);
    const IndexingDims& dims = attributes.dims;
    const Shape piece = m_builder.type(from.local).shape;
    std::vector<std::int64_t> last; // the index of the last slice in the whole array
    std::vector<std::int64_t> lastOwn; // in the piece
    for (const std::size_t dim : dims.indexMap) {
        last.push_back(from.whole[dim] - whole.sliceSizes[dim]);
        lastOwn.push_back(piece[dim] - attributes.sliceSizes[dim]);
    }
    const auto ofIndices = [&](OpKind kind, std::vector<ValueId> operands, OpAttributes more = {}) {
        return make(kind, std::move(operands), std::move(more), indices.layout, indices.whole);
    };
    const ValueId zero = spread(std::vector<std::int64_t>{0}, indices, dims);
    indices.local = ofIndices(OpKind::Clamp, {zero, indices.local, spread(last, indices, dims)});
    const ValueId own = shifted(from, indices, dims, whole.sliceSizes);
    ValueId isOwn = ofIndices(OpKind::And,
        {ofIndices(OpKind::Compare, {own, zero}, CompareAttributes{CompareDirection::GreaterEqual}),
            ofIndices(OpKind::Compare, {own, spread(lastOwn, indices, dims)}, CompareAttributes{CompareDirection::LessEqual})});
    if (dims.indexVectorDim < indices.whole.size()) { // true when all entries are
        const auto at = static_cast<std::ptrdiff_t>(dims.indexVectorDim);
        TensorSharding layout = indices.layout;
        Shape shape = indices.whole;
        layout.dims.erase(layout.dims.begin() + at);
        shape.erase(shape.begin() + at);
        isOwn = make(OpKind::Reduce, {isOwn}, ReduceAttributes{ReduceKind::And, {dims.indexVectorDim}}, layout, shape);
    }
    TensorSharding plain = resultLayout;
    plain.unreduced.clear();
    const ValueId found = make(OpKind::Gather, {from.local, own}, attributes, plain, resultWhole);
    const TensorType type = m_builder.type(found);
    std::vector<std::size_t> batch;
    for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
        if (std::find(dims.window.begin(), dims.window.end(), dim) == dims.window.end())
            batch.push_back(dim);
    }
    const ValueId mask
        = make(OpKind::BroadcastInDim, {isOwn}, BroadcastAttributes{type.shape, std::move(batch)}, plain, resultWhole);
    const ValueId none = m_builder.splat(type, 0.0);
    m_describe(none, plain, resultWhole);
    return make(OpKind::Select, {mask, found, none}, {}, resultLayout, resultWhole);
}

ValueId LocalIndexing::scatter(const Operand& into, const Operand& given, ValueId updates, const ScatterAttributes& attributes,
    const AxisRefs& reduced, bool intoIsIdentity)
{
    Operand indices = given;
    const Shape slices = scatteredSlices(attributes.dims, into.whole);
    if (!splitIndexedDims(into.layout, attributes.dims, into.whole, slices).empty()) {
        indices = wide(given);
        indices.local = shifted(into, indices, attributes.dims, slices);
    }
    ValueId base = into.local;
    TensorSharding layout = into.layout;
    const auto identity = attributes.combiner ? neutral(*attributes.combiner) : std::nullopt;
    if (!reduced.empty() && identity && !intoIsIdentity) {
        const TensorType type = m_builder.type(base);
        const TensorSharding scalar = wholeLayout(0, layout.mesh);
        const ValueId isFirst = make(OpKind::Compare, {pieceNumber(reduced, layout.mesh), integer(0, DType::S32)},
            CompareAttributes{CompareDirection::Equal}, scalar, {});
        const ValueId mask = make(OpKind::BroadcastInDim, {isFirst}, BroadcastAttributes{type.shape, {}}, layout, into.whole);
        const ValueId none = m_builder.splat(type, *identity);
        m_describe(none, layout, into.whole);
        base = make(OpKind::Select, {mask, base, none}, {}, layout, into.whole);
    }
    return m_builder.add(OpKind::Scatter, {base, indices.local, updates}, attributes);
}

} // namespace meshwright
