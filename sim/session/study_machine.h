// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"
#include "core/support/result.h"
#include "sim/hardware/catalogue.h"
#include "sim/simulate/network_sites.h"

#include <string>

namespace meshwright::sim {

/// The catalogue in the resources. Problems: MW1702.
Result<Catalogue> defaultCatalogue();

/// The machine that a study asks for: of the catalogue, or as a hardware file describes it (see sim/hardware/hardware_file.h), with the study's
/// faults and leaf switches.
/// Problems: those of `buildMachine` or `readHardware`; MW1731 the study names no hardware, MW1746 a fault of a device that the machine lacks,
/// MW1748 of an axis that it lacks, MW1749 of a link that is not there, MW1750 leaf switches of a machine without a network between hosts.
Result<Machine> machineOf(const Study& study, const Catalogue& catalogue);

/// Whose constants a study's kernels are timed by on a chip, in words.
std::string stackAssumption(const Study& study, const Chip& chip);

/// How the study wants its collectives timed. Precondition: no problems of `checkStudy`.
NetworkOptions networkOf(const Study& study);

} // namespace meshwright::sim
