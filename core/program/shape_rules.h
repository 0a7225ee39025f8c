// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"
#include "core/support/result.h"

#include <optional>
#include <span>
#include <vector>

namespace meshwright {

/// The types of the results of an op of this kind. This is the one place that knows shapes. Of Repeat it checks the operands'
/// stacking only and returns nothing: its results follow from its body.
///
/// Problems: MW1301 the number of operands, MW1302 shapes that do not go together, MW1303 element types that do not go together,
/// MW1304 attributes that do not fit (a dimension out of range or named twice, a permutation that is none, wrong element counts).
Result<std::vector<TensorType>> resultTypes(OpKind kind, const OpAttributes& attributes, std::span<const TensorType> operands);

/// The piece of a value that one device has inside a Computation: split by the manual axes (indices, ascending) of its sharding. Nothing
/// when they do not divide it. Precondition: the sharding has as many dimensions.
std::optional<TensorType> manualPiece(
    TensorType type, const TensorSharding& sharding, const std::vector<std::int32_t>& manualAxes);

/// What is left of a sharding inside a Computation, where the manual axes (ascending) split nothing.
TensorSharding withoutManualAxes(TensorSharding sharding, const std::vector<std::int32_t>& manualAxes);

} // namespace meshwright
