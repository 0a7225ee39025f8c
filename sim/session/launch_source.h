// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/catalogue.h"
#include "sim/session/session.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// The study of the training that a launch line or script starts (`isLaunchText` of sim/plan); any other text stays as it is.
///
/// The settings say what a line does not: `hardware=h100x64`, or a chip alone for as many as the line starts; `stack=NAME`, else its framework's;
/// `model.transformer.config=FILE` in place of a named model. The others are settings over the study, as everywhere. `notes` gets what of the line is
/// taken for what, and what is not read; `warnings`, if any, what only some releases of the framework train, else `notes` gets that too.
///
/// Problems: MW1494 the chips are not said; those of `readLaunchLine`, `machinesOf`, `planOf` (sim/plan/launch_plan.h) and `studyText`.
Result<StudySource> studySourceOf(
    StudySource given, const Catalogue& catalogue, std::vector<std::string>& notes, Problems* warnings = nullptr);

} // namespace meshwright::sim
