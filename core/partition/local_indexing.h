// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_ops.h"

#include <optional>
#include <vector>

namespace meshwright {

/// Gathers and scatters on pieces of an array that is split along dimensions in which indices count.
///
/// Indices count from the first element of the whole array, a device's piece begins somewhere in it: the device takes where its piece begins
/// off the indices. A gather then looks up what lies in its piece and makes zeros of the rest, a partial sum; a scatter leaves out what
/// lies in other pieces by itself.
/// Source: openxla/shardy, docs (gather, "masked lookup, then all-reduce").
class LocalIndexing {
public:
    /// An operand on shards.
    struct Operand {
        ValueId local;
        TensorSharding layout;
        Shape whole;
    };

    explicit LocalIndexing(DeviceOps& ops)
        : m_ops(ops)
    {
    }

    /// The gather of one device: `attributes` are those of its piece, `whole` those on the whole arrays.
    ValueId gather(const Operand& from, const Operand& indices, const GatherAttributes& attributes, const GatherAttributes& whole,
        const TensorSharding& resultLayout, const Shape& resultWhole);

    /// The indices of a scatter into pieces of `into`. What they leave out lies in other pieces.
    ValueId scatterIndices(const Operand& into, const Operand& indices, const IndexingDims& dims);

    /// `into` on the first of the devices over `reduced`, which have updates of their own, and the identity of `combiner` on the others. As it is
    /// where combining it twice does no harm.
    ValueId inFirstOnly(const Operand& into, ReduceKind combiner, const AxisRefs& reduced);

private:
    ValueId spread(const std::vector<ValueId>& entries, const Operand& indices, const IndexingDims& dims);
    ValueId spread(const std::vector<std::int64_t>& entries, const Operand& indices, const IndexingDims& dims);
    Operand wide(const Operand& indices);
    ValueId shifted(const Operand& of, const Operand& indices, const IndexingDims& dims, const Shape& slices);

    DeviceOps& m_ops;
};

/// The dimensions of a gather's or scatter's operand in which indices count, which are split, and of which each slice has less than all. (Of
/// others, every slice begins with the first element.) `slices` are the sizes of the slices of the whole array.
std::vector<std::size_t> splitIndexedDims(
    const TensorSharding& layout, const IndexingDims& dims, const Shape& whole, const Shape& slices);

/// How a scatter's arrays go together, of one input or several; nothing for other ops.
std::optional<IndexingDims> scatterDims(const Op& op);

} // namespace meshwright
