// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_ops.h"
#include "core/program/attention.h"

#include <string>
#include <vector>

namespace meshwright {

/// Fused attention, or its derivative, of which the same axes split queries and keys. Each device meets its own keys and values first, then those of the
/// device before it along the axes, and so on: n parts on n devices, between which keys and values move n - 1 times. Cotangents of keys and values
/// move with them, n times: after the last part they are one device away from where they belong.
/// Source: as AttentionForm.
class RingAttention {
public:
    struct Array {
        ValueId value; ///< as operand: a piece; of the keys' positions the whole array
        TensorSharding layout;
        Shape whole;
    };

    /// `op`, on whole arrays, outlives this. Precondition: `axes` divide the sequences of queries and keys, and split nothing else.
    RingAttention(DeviceOps& ops, const Op& op, AxisRefs axes);

    /// The results, in the types of the op on whole arrays; `results` say how they lie.
    std::vector<ValueId> emit(std::vector<Array> operands, const std::vector<Array>& results);

private:
    std::vector<ValueId> part(std::int64_t number, std::vector<ValueId> operands, const std::vector<Array>& results);
    Array moved(const Array& array, const std::string& name);
    ValueId positions(std::int64_t part, const Array& whole, std::int64_t length);
    ValueId converted(ValueId value, DType dtype, const Array& like);
    ValueId sum(ValueId a, ValueId b, const Array& like);

    DeviceOps& m_ops;
    const Op& m_op;
    AttentionForm m_form;
    AttentionPlaces m_places;
    AxisRefs m_axes;
    std::int64_t m_parts;
};

} // namespace meshwright
