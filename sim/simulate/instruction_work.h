// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "sim/cost/op_cost.h"

#include <optional>

namespace meshwright::sim {

/// What one computing instruction does on one device: its product, if it is one, and the bytes of everything it reads and writes, each
/// value once (what a fused pass keeps to itself touches no memory). Products of f32 operands are taken at the highest precision; a program
/// that rounds its operands to bf16 says so in DotAttributes::operandType.
OpWork workOf(const Function& function, const Instruction& instruction);

/// The plain form of a dot_general with these operand types.
MatmulDims productDims(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs);

/// The number format in which a product of operands of this type runs; nothing for types that chips do not multiply fast.
std::optional<MathFormat> mathFormatOf(DType dtype);

} // namespace meshwright::sim
