// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

namespace meshwright::sim {

/// True when formulas predicted the step (see `isOnlySimulated`): it has a time, a place on the machine and memory, but no layouts, collectives or
/// timeline.
bool isByFormulas(const Analysis& analysis);

/// What keeps a study from being built: the first error, or that it is only simulated; null when it is built, or names no hardware. Lives as long as
/// the analysis.
const Problem* whyNotBuilt(const Analysis& analysis);

} // namespace meshwright::sim
