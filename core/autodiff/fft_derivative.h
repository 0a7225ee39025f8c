// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/derivatives.h"

namespace meshwright {

/// `operandCotangents` of a Fourier transform of pairs, from `context.cotangents`: by the transform the other way, as a transform of n points times its
/// conjugate transpose is n times the identity.
std::vector<ValueId> fftCotangents(const DerivativeContext& context);

} // namespace meshwright
