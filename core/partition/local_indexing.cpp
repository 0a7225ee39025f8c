// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/local_indexing.h"

#include "core/program/other_op.h"

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

/// True where an element that is combined twice is another than once.
bool countsTwice(ReduceKind kind)
{
    return kind == ReduceKind::Sum || kind == ReduceKind::Product;
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

std::optional<IndexingDims> scatterDims(const Op& op)
{
    if (op.kind == OpKind::Scatter)
        return op.as<ScatterAttributes>().dims;
    return op.kind == OpKind::VariadicScatter ? indexingDims(op.as<OtherAttributes>().attributes, true) : std::nullopt;
}

/// One scalar for each entry of an index vector, at every index.
ValueId LocalIndexing::spread(const std::vector<ValueId>& entries, const Operand& indices, const IndexingDims& dims)
{
    const Shape local = m_ops.type(indices.local).shape;
    const auto everywhere = [&](ValueId value, std::vector<std::size_t> along) {
        return m_ops.make(
            OpKind::BroadcastInDim, {value}, BroadcastAttributes{local, std::move(along)}, indices.layout, indices.whole);
    };
    if (entries.size() == 1)
        return local.empty() ? entries.front() : everywhere(entries.front(), {});
    const Shape one{1};
    const TensorSharding layout = wholeLayout(1, indices.layout.mesh);
    std::vector<ValueId> parts;
    for (const ValueId entry : entries)
        parts.push_back(m_ops.make(OpKind::Reshape, {entry}, ReshapeAttributes{one}, layout, one));
    const Shape count{static_cast<std::int64_t>(entries.size())};
    return everywhere(
        m_ops.make(OpKind::Concatenate, std::move(parts), ConcatenateAttributes{0}, layout, count), {dims.indexVectorDim});
}

ValueId LocalIndexing::spread(const std::vector<std::int64_t>& entries, const Operand& indices, const IndexingDims& dims)
{
    const DType dtype = m_ops.type(indices.local).dtype;
    const bool same = std::all_of(entries.begin(), entries.end(), [&](std::int64_t entry) { return entry == entries.front(); });
    std::vector<ValueId> values;
    for (const std::int64_t entry : same ? std::vector{entries.front()} : entries)
        values.push_back(m_ops.integer(entry, dtype));
    return spread(values, indices, dims);
}

/// Indices in which the beginnings of pieces have room.
LocalIndexing::Operand LocalIndexing::wide(const Operand& indices)
{
    Operand made = indices;
    if (byteSize(m_ops.type(indices.local).dtype) < byteSize(DType::S32))
        made.local = m_ops.make(OpKind::Convert, {indices.local}, ConvertAttributes{DType::S32}, indices.layout, indices.whole);
    return made;
}

/// The indices, counted from the first element of a device's piece.
ValueId LocalIndexing::shifted(const Operand& of, const Operand& indices, const IndexingDims& dims, const Shape& slices)
{
    const TensorType type = m_ops.type(indices.local);
    const Shape piece = m_ops.type(of.local).shape; // a copy: the table of values grows
    const std::vector<std::size_t> split = splitIndexedDims(of.layout, dims, of.whole, slices);
    std::vector<ValueId> starts;
    for (const std::size_t dim : dims.indexMap) {
        const AxisRefs& axes = of.layout.dims[dim].axes;
        if (std::find(split.begin(), split.end(), dim) == split.end()) {
            starts.push_back(m_ops.integer(0, type.dtype));
            continue;
        }
        ValueId number = m_ops.pieceNumber(axes, of.layout.mesh);
        const TensorSharding scalar = wholeLayout(0, of.layout.mesh);
        if (type.dtype != DType::S32)
            number = m_ops.make(OpKind::Convert, {number}, ConvertAttributes{type.dtype}, scalar, {});
        starts.push_back(m_ops.make(OpKind::Multiply, {number, m_ops.integer(piece[dim], type.dtype)}, {}, scalar, {}));
    }
    return m_ops.make(OpKind::Subtract, {indices.local, spread(starts, indices, dims)}, {}, indices.layout, indices.whole);
}

ValueId LocalIndexing::gather(const Operand& from, const Operand& given, const GatherAttributes& attributes,
    const GatherAttributes& whole, const TensorSharding& resultLayout, const Shape& resultWhole)
{
    Operand indices = wide(given);
    const IndexingDims& dims = attributes.dims;
    const Shape piece = m_ops.type(from.local).shape;
    std::vector<std::int64_t> last; // the index of the last slice in the whole array
    std::vector<std::int64_t> lastOwn; // in the piece
    for (const std::size_t dim : dims.indexMap) {
        last.push_back(from.whole[dim] - whole.sliceSizes[dim]);
        lastOwn.push_back(piece[dim] - attributes.sliceSizes[dim]);
    }
    const auto ofIndices = [&](OpKind kind, std::vector<ValueId> operands, OpAttributes more = {}) {
        return m_ops.make(kind, std::move(operands), std::move(more), indices.layout, indices.whole);
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
        isOwn = m_ops.make(OpKind::Reduce, {isOwn}, ReduceAttributes{ReduceKind::And, {dims.indexVectorDim}}, layout, shape);
    }
    TensorSharding plain = resultLayout;
    plain.unreduced.clear();
    const ValueId found = m_ops.make(OpKind::Gather, {from.local, own}, attributes, plain, resultWhole);
    const TensorType type = m_ops.type(found);
    std::vector<std::size_t> batch;
    for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
        if (std::find(dims.window.begin(), dims.window.end(), dim) == dims.window.end())
            batch.push_back(dim);
    }
    const ValueId mask
        = m_ops.make(OpKind::BroadcastInDim, {isOwn}, BroadcastAttributes{type.shape, std::move(batch)}, plain, resultWhole);
    const ValueId none = m_ops.nothing(ReduceKind::Sum, type, plain);
    return m_ops.make(OpKind::Select, {mask, found, none}, {}, resultLayout, resultWhole);
}

ValueId LocalIndexing::scatterIndices(const Operand& into, const Operand& indices, const IndexingDims& dims)
{
    Shape slices = into.whole; // along split dimensions they are single elements or all
    for (const std::size_t dim : dims.collapsed)
        slices[dim] = 1;
    return splitIndexedDims(into.layout, dims, into.whole, slices).empty() ? indices.local
                                                                           : shifted(into, wide(indices), dims, slices);
}

ValueId LocalIndexing::inFirstOnly(const Operand& into, ReduceKind combiner, const AxisRefs& reduced)
{
    if (!countsTwice(combiner))
        return into.local;
    const TensorType type = m_ops.type(into.local);
    const ValueId isFirst
        = m_ops.make(OpKind::Compare, {m_ops.pieceNumber(reduced, into.layout.mesh), m_ops.integer(0, DType::S32)},
            CompareAttributes{CompareDirection::Equal}, wholeLayout(0, into.layout.mesh), {});
    const ValueId mask
        = m_ops.make(OpKind::BroadcastInDim, {isFirst}, BroadcastAttributes{type.shape, {}}, into.layout, into.whole);
    const ValueId none = m_ops.nothing(combiner, type, into.layout);
    return m_ops.make(OpKind::Select, {mask, into.local, none}, {}, into.layout, into.whole);
}

} // namespace meshwright
