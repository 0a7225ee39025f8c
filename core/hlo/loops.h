// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/hlo/module.h"

#include <cstdint>
#include <optional>

namespace meshwright {

/// How often the body of a `while` runs: as its `known_trip_count` says, else from the counter's start, step and bound where all three are
/// integer constants, also through fusions, calls and copies; nothing where that cannot be told.
std::optional<std::int64_t> hloTripCount(const HloModule& module, const HloComputation& computation, const HloInstruction& loop);

/// The computation that an attribute names; null: there is none.
const HloComputation* hloCalled(const HloModule& module, std::string_view name);

} // namespace meshwright
