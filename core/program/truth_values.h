// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

namespace meshwright {

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
