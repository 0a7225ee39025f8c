// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

namespace meshwright {

/// A constant whose complex numbers are all the same real one.
ConstantData complexSplat(DType dtype, double real);

} // namespace meshwright
