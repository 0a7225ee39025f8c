// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"
#include "sim/report/results.h"
#include "sim/transformer/step.h"

namespace meshwright::sim {

/// The layout that a transformer's specs make: an axis that splits the batch of x is data parallel, its tokens context, the heads of the queries'
/// weight tensor, its other dimensions FSDP, the experts expert parallel; optimizer states and gradients that lie over more axes than their
/// parameter are ZeRO-1 and 2. Preconditions: study.transformer(), no problems of `checkStudy`.
/// Problems: MW1755 an axis of the mesh that none of these uses, a pipeline whose stages are not its axis, a batch that does not make whole microbatches.
Result<TrainingPlan> planOf(const Study& study);

/// The step of such a study by the closed form. Problems: those of `planOf`, `checkPlan`, `searchMachineOf`, `Calibration::load`.
Result<SimulatedStudy> closedFormStep(const Study& study, const Catalogue& catalogue);

} // namespace meshwright::sim
