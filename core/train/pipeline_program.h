// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/autodiff/differentiate.h"
#include "core/models/training.h"
#include "core/partition/partition.h"
#include "core/schedule/schedule.h"

#include <stop_token>
#include <string>
#include <vector>

namespace meshwright {

/// How a training is cut into a pipeline.
struct PipelineCut {
    PipelineShape shape;
    std::string
        axis; ///< of the mesh, over which the stages lie; as long as there are stages. Empty: one stage over the whole mesh
    std::vector<std::string> after; ///< the values of the model after which it is cut: one fewer than pieces
    LossScale lossScale = {}; ///< the optimizer's
    SchedulePolicy policy = SchedulePolicy::Host; ///< in which order the stages' functions do their ops
    std::vector<Residual> residuals = {}; ///< of the loss' ops, see residualsOf; none: all is kept
    std::stop_token stop = {}; ///< asked: nothing more is cut, and the problem is `stoppedProblem`
};

/// The stages of a training, each over its part of the mesh, and their tasks, ready for `LoadedPipeline`.
///
/// `microbatch` has "init", "evaluate" and "step" for batches of one microbatch's size, with the study's shardings and its mesh, on which nothing
/// lies over the pipeline's axis. "evaluate", or where there is one "microbatch" (dropout), is cut at the values named, each piece differentiated
/// on its own and seeded so that the gradients add up to those of the mean over the whole batch, times the loss scale. Sums of gradients are kept as each device makes them, and reduced over the mesh's other axes
/// once, in the update. What two pieces both take part in computing is the same layout on both sides of the cut.
///
/// Problems: those of `differentiate` and `propagateAndPartition`; MW1543 a value to cut at that the model does not have, MW1544 one piece needs
/// more of another than the value between them, or the update of one stage needs arrays of another, MW1545 the training has no optimizer.
Result<ScheduledProgram> pipelineOf(const Program& microbatch, const PipelineCut& cut);

} // namespace meshwright
