// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <functional>

namespace meshwright {

/// Calls `visit` for every sharding in a program: of values and results, of constraints and computations.
void forEachSharding(Program& program, const std::function<void(TensorSharding&)>& visit);

} // namespace meshwright
