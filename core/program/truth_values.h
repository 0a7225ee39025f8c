// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

namespace meshwright {

// StableHLO computes with truth values as with numbers of one bit.

/// The op on truth values that an op on numbers stands for: a sum or maximum is "or", a product or minimum "and". Other ops stay.
inline OpKind onTruths(OpKind kind)
{
    switch (kind) {
    case OpKind::Add:
    case OpKind::Maximum:
        return OpKind::Or;
    case OpKind::Multiply:
    case OpKind::Minimum:
        return OpKind::And;
    default:
        return kind;
    }
}

/// The reduction of truth values that a reduction of numbers stands for: a sum or maximum is true when one of them is, a product or minimum
/// when all are. Other reductions stay.
inline ReduceKind onTruths(ReduceKind kind)
{
    switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Max:
        return ReduceKind::Or;
    case ReduceKind::Product:
    case ReduceKind::Min:
        return ReduceKind::And;
    default:
        return kind;
    }
}

} // namespace meshwright
