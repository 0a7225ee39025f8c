// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

namespace meshwright {

/// Gives every value that an instruction reads or writes a place in the arena: values that are never in use at the same time share memory;
/// donated results, reductions and element-wise results take the place of an operand that ends there, where that is safe.
/// Fills `buffers` and `finalCopies` of a function whose instructions stand.
void planBuffers(ScheduledFunction& function, ArgumentPlace place);

} // namespace meshwright
