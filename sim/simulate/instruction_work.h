// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

#include <cstdint>
#include <optional>

namespace meshwright::sim {

/// A product in its plain form: `batch` times [m, k] by [k, n].
struct ProductShape {
    std::int64_t batch = 1;
    std::int64_t m = 1;
    std::int64_t n = 1;
    std::int64_t k = 1;
};

/// What one computing instruction does on one device.
struct InstructionWork {
    double flops = 0.0; ///< a multiply-add counts two, every element of an element-wise op one
    std::int64_t bytesRead = 0; ///< of everything it reads from memory, each value once
    std::int64_t bytesWritten = 0;
    std::optional<ProductShape> product; ///< dot_general only
    DType operandType = DType::F32; ///< of a product's operands as they are multiplied
};

InstructionWork workOf(const Function& function, const Instruction& instruction);

/// The plain form of a dot_general with these operand types.
ProductShape productShape(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs);

} // namespace meshwright::sim
