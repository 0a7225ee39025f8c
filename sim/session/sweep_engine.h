// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/catalogue.h"
#include "sim/session/session.h"
#include "sim/sweep/run_sweep.h"

namespace meshwright::sim {

/// Raised with every change that makes a prediction another: results of sweeps that were kept are then found out anew.
inline constexpr int kCostModelVersion = 2;

/// Simulates the points of a plan, as `meshwright simulate` does. Whatever is wrong with a point's study is its outcome.
///
/// A key covers the study as it is read with the point's settings (not its comments, nor how it is written), the content of the program and
/// hardware files that it names, the catalogue, this program's version and kCostModelVersion.
///
/// Problems: those of `defaultCatalogue`.
Result<SweepEngine> sweepEngine(const SweepPlan& plan);

/// Completes a plan with the text, the settings and the name of its study. Problems: those of `parseDocument`: a text that is not a document.
Result<Done> takeStudy(SweepPlan& plan, StudySource source);

} // namespace meshwright::sim
