// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"
#include "core/support/result.h"

#include <span>
#include <string>
#include <vector>

namespace meshwright {

// What the files of the shape rules share.

using ResultTypes = std::vector<TensorType>;
using OperandTypes = std::span<const TensorType>;

Problem wrongCount(std::string_view name, const std::string& needed, std::size_t given); ///< MW1301
Problem wrongShape(std::string_view name, const std::string& what); ///< MW1302
Problem wrongType(std::string_view name, const std::string& what); ///< MW1303
Problem wrongAttribute(std::string_view name, const std::string& what); ///< MW1304

/// Distinct and each below `rank`.
bool areDims(const std::vector<std::size_t>& dims, std::size_t rank);

/// The type alone, when its sizes are not negative and its bytes fit 64 bits.
Result<ResultTypes> checkedType(std::string_view name, const TensorType& type);

/// The results of the kinds from Slice to Scatter.
Result<ResultTypes> partsTypes(OpKind kind, const OpAttributes& attributes, OperandTypes operands);

} // namespace meshwright
