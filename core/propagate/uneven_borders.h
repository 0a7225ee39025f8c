// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// Takes from a propagated function the shardings of its arguments and results that cut a dimension into unequal pieces: values inside may have such pieces,
/// what comes in and goes out may not (MW1104), and without them propagation finds the same layouts again. What the user wrote stays. Returns a sentence for
/// each one, `result 0 is left open: dim 1 of size 31 is not divisible by 4`. `asked` are the results' shardings before propagation.
std::vector<std::string> openUnevenBorders(Function& function, std::span<const std::optional<TensorSharding>> asked = {});

} // namespace meshwright
