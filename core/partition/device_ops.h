// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/sharding/tensor_sharding.h"

#include <functional>
#include <vector>

namespace meshwright {

/// The layout of an array that every device has whole.
TensorSharding wholeLayout(std::size_t rank, std::int32_t mesh);

/// The shape of an array whose pieces have this shape, padding included.
Shape wholeOfPieces(Shape piece, const TensorSharding& layout);

/// Appends ops of one device's function that the program does not have, and notes how their results lie.
class DeviceOps {
public:
    /// Notes the layout of a new value of the device function, and the shape of the whole array that it is a piece of.
    using Describe = std::function<void(ValueId, const TensorSharding&, const Shape&)>;

    /// Layouts lie on `mesh`, which must outlive this.
    DeviceOps(Builder& builder, const Mesh& mesh, Describe describe)
        : m_builder(builder)
        , m_mesh(mesh)
        , m_describe(std::move(describe))
    {
    }

    Builder& builder() { return m_builder; }
    const Mesh& mesh() const { return m_mesh; }
    const TensorType& type(ValueId value) const { return m_builder.type(value); }
    void describe(ValueId value, const TensorSharding& layout, const Shape& whole) const { m_describe(value, layout, whole); }

    ValueId make(
        OpKind kind, std::vector<ValueId> operands, OpAttributes attributes, const TensorSharding& layout, const Shape& whole);

    /// A scalar that all devices have.
    ValueId integer(std::int64_t value, DType dtype, std::int32_t mesh = 0);

    /// Which of the pieces over these axes a device has, from 0; and the number that `values` has for that piece. Scalars i32.
    ValueId pieceNumber(const AxisRefs& axes, std::int32_t mesh);
    ValueId perPiece(const std::vector<std::int64_t>& values, const AxisRefs& axes, std::int32_t mesh);

    /// A scalar at every element of a piece of `like`'s shape.
    ValueId everywhere(ValueId scalar, const Shape& piece, const TensorSharding& layout);

    /// True for the elements of a piece whose index along `dim` is at least `first` and below `limit`, which are scalars i32.
    ValueId betweenInPiece(const Shape& piece, const TensorSharding& layout, std::size_t dim, ValueId first, ValueId limit);

    /// `value` with `other`, a scalar, where the index along a split dimension, counted from the first element of the whole array, is not in
    /// first .. limit - 1.
    ValueId outsideReplaced(
        ValueId value, const TensorSharding& layout, std::size_t dim, std::int64_t first, std::int64_t limit, ValueId other);

    /// Zeros in pieces of this type.
    ValueId zeros(const TensorType& piece, const TensorSharding& layout);

    /// Pieces of what changes nothing where others have the rest: `reduceIdentity`, but in sums of floats -0.0, since 0.0 + -0.0 is 0.0.
    ValueId nothing(ReduceKind kind, const TensorType& piece, const TensorSharding& layout);

private:
    ValueId compared(
        const Shape& piece, TensorSharding layout, std::size_t dim, bool inPiece, CompareDirection direction, ValueId bound);
    ValueId ownOf(ValueId all, const AxisRefs& axes, std::int32_t mesh);

    Builder& m_builder;
    const Mesh& m_mesh;
    Describe m_describe;
};

} // namespace meshwright
