// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/kernel.h"

namespace meshwright {

/// The kernel of mw.fft_of_pairs: real parts, and imaginary ones unless they are all zero, transformed along the last dimensions. Null when its
/// attributes or shapes are not understood.
std::unique_ptr<const Kernel> makeFftKernel(const Function& function, OpId op);

} // namespace meshwright
