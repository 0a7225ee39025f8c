// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <optional>

namespace meshwright {

/// What is wrong with the blocks of a kept op that computes by them (a sort, a reduction, a scatter): MW1307. Each takes a scalar of each array, or two,
/// then what it uses of the outside, and gives a truth value (what compares) or a scalar for each result (what combines).
std::optional<Problem> blocksProblem(const Function& function, const Op& op);

} // namespace meshwright
