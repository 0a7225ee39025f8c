// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

namespace meshwright::sim {

/// What a study's layout wastes of its machine, or has too little of, and is allowed: warnings with figures, placed in the study.
///
/// Problems: MW1752 an axis that splits parameters and no batch (tensor parallelism) crosses hosts, and the step waits for it; MW1753 half the devices or
/// more have nothing to do; MW1756 the step waits for the link to the host's memory; MW1757 a device's memory is too small. Preconditions: a machine
/// and a simulated step.
Problems lintsOnMachine(const Analysis& analysis);

} // namespace meshwright::sim
