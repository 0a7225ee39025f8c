// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/matrix_view.h"

#include <cstddef>
#include <cstdint>

namespace meshwright {

/// A matrix whose elements are rounded to bfloat16 before they are multiplied: stored in single precision, or rounded already (their bits).
struct Bfloat16Operand {
    explicit Bfloat16Operand(MatrixView<const float> view)
        : data(view.data)
        , stride(view.stride)
        , transposed(view.transposed)
    {
    }
    explicit Bfloat16Operand(MatrixView<const std::uint16_t> view)
        : data(view.data)
        , stride(view.stride)
        , transposed(view.transposed)
        , isRounded(true)
    {
    }

    const void* data;
    std::int64_t stride;
    bool transposed;
    bool isRounded = false;
};

/// The operand that begins so many elements further on.
inline Bfloat16Operand shifted(Bfloat16Operand operand, std::int64_t elements)
{
    if (operand.isRounded)
        operand.data = static_cast<const std::uint16_t*>(operand.data) + elements;
    else
        operand.data = static_cast<const float*>(operand.data) + elements;
    return operand;
}

/// Products of bfloat16 matrices summed in single precision, by the tiles of AMX. Each element of a result is summed in one order that depends on
/// the number of terms alone: parts of a product, in whatever order and by whomever they are computed, have the bits of the whole. They are not
/// the bits of the same operands multiplied in single precision: a tile sums even and odd terms of 32 on their own.
///
/// Operands are rounded to the nearest (ties to even) while they are packed, as `bfloat16Bits` does, but for subnormal numbers. Those count as
/// zero, in operands and sums, and NaNs stay NaNs. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS
/// ("denormals-are-zero", "flush-to-zero", round to nearest even, no exceptions) and VCVTNE2PS2BF16.
///
/// Of the two operands the one of fewer lines is packed for as many terms as 16 MiB hold; of the other one, block after block is packed into the
/// second-level cache, where the block's sums stay too. So each operand is read from memory once, or nearly.
struct Bfloat16Product {
    const char* name; ///< "amx"

    /// result[m, n] = lhs[m, k] times rhs[k, n]; m, n and k are positive. `workspace` has `workspaceBytes`, 64-byte aligned.
    void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t k, Bfloat16Operand lhs, Bfloat16Operand rhs,
        MatrixView<float> result, std::byte* workspace);
    std::int64_t workspaceBytes;
};

/// Those of this processor; nullptr when it has none, or the operating system does not let programs use it. The first call asks the system for
/// the whole process.
const Bfloat16Product* bfloat16Product();

} // namespace meshwright
