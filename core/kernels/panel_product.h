// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/matrix_view.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace meshwright {

/// Products of single-precision matrices, compiled for one instruction set. Each element of a result is summed in one order that depends on the
/// number of terms alone: parts of a product, in whatever order and by whomever they are computed, have the bits of the whole.
///
/// Source of the method: K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008. Of the two
/// operands the longer one is packed block by block into the second-level cache; between the terms of a block's tiles the next one is fetched, and
/// copied a little later, so that operands that lie in memory, as every device's own weights do, cost hardly more than cached ones.
struct PanelProduct {
    const char* name; ///< "avx512", "avx2"

    /// result[m, n] = lhs[m, k] times rhs[k, n]; m, n and k are positive. `workspace` has `workspaceBytes`, 64-byte aligned.
    void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<const float> lhs, MatrixView<const float> rhs,
        MatrixView<float> result, std::byte* workspace);
    std::int64_t workspaceBytes;
};

/// Those that this processor can run, the fastest first. They have the same bits.
std::span<const PanelProduct* const> panelProducts();

/// The fastest one; nullptr when there is none.
const PanelProduct* panelProduct();

} // namespace meshwright
