// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

namespace meshwright {

/// True when some value of the function has complex elements.
bool hasComplexValues(const Function& function);

/// The same function on pairs of real arrays: each complex argument, value and result becomes two of its shape, the real parts and then the
/// imaginary ones, with the same sharding. Arithmetic, exponentials, roots and products are spelled out; what only moves elements, and sums, is
/// done with each part; stablehlo.fft becomes mw.fft_of_pairs, which takes and gives parts. Blocks of while, case, repeat and manual
/// computations follow.
///
/// Problems: MW1231 an op on complex numbers for which there is no such form; each is reported once.
Result<Function> withComplexPairs(const Function& function);

} // namespace meshwright
