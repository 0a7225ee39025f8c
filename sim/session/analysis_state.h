// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

namespace meshwright::sim {

/// What keeps a study from being built: the first error; null when it is built, or names no hardware. Lives as long as the analysis.
const Problem* whyNotBuilt(const Analysis& analysis);

} // namespace meshwright::sim
