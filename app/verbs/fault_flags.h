// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/verbs/verbs.h"
#include "core/runtime/faults.h"

namespace meshwright::cli {

/// What the flags ask of the runtime. Problems: MW1520.
Result<FaultOptions> faultOptions(const FaultFlags& flags);

} // namespace meshwright::cli
