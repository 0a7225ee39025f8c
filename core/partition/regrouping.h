// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <optional>

namespace meshwright {

/// The function with the shape of the factors between the two sides of reshapes that would otherwise gather more than they must: those whose
/// operand's layout the result cannot have, nor the operand the result's. Nothing where there is none. Precondition: values have shardings.
///
/// Example: 2x12 becomes 4x6, of the factors 2, 2 and 6. With x=4 on the 12, x:(1)2 splits the second factor and x:(2)2 the third. The result
/// cannot have the former, whose pieces would be strided, nor the operand the latter alone: all of x is gathered. Through 2x2x6, only x:(1)2 is.
std::optional<Function> withSplitRegroupings(const Function& function);

} // namespace meshwright
