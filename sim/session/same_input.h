// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ranks/ranks.h"
#include "core/support/result.h"

#include <string>

namespace meshwright::sim {

/// Whether all processes of a job are to compute the same: `input` is what they have read, `options` what else decides what they do together.
/// On all ranks. `kind` of input: "study". Problems: MW1554; those of `Ranks::exchange`.
Result<Done> checkSameInput(Ranks& ranks, const std::string& kind, const std::string& input, const std::string& options);

} // namespace meshwright::sim
