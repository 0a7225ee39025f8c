// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/kernel.h"

namespace meshwright {

/// The kernel of a Cholesky decomposition or of triangular systems, of floating numbers.
std::unique_ptr<const Kernel> makeMatrixKernel(const Function& function, OpId op);

} // namespace meshwright
