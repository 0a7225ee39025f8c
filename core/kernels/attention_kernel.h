// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/kernel.h"

namespace meshwright {

/// The kernel of fused attention or of its derivative (core/program/attention.h): blocks of queries meet blocks of keys, whose scores take the place
/// of the last ones. Its memory grows with the length of one head's rows, never with their square.
std::unique_ptr<const Kernel> makeAttentionKernel(const Function& function, OpId op);

} // namespace meshwright
