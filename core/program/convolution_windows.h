// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/other_op.h"

#include <optional>
#include <vector>

namespace meshwright {

/// The windows of a convolution along its spatial dimensions, for a kernel of this shape. Nothing when an attribute does not fit the number of
/// these dimensions, or a stride or a dilation is below 1.
std::optional<std::vector<WindowDim>> convolutionWindows(
    const KeptAttributes& attributes, const ConvolutionDims& dims, const Shape& kernel);

} // namespace meshwright
