// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/derivatives.h"

namespace meshwright {

/// `operandCotangents` of fused attention, by one op that computes the scores again.
std::vector<ValueId> attentionCotangents(const DerivativeContext& context, ValueId cotangent);

} // namespace meshwright
