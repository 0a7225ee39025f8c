// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

#include <string>
#include <vector>

namespace meshwright {

/// A function of the whole model, and what the stages of a pipeline compute in its place, as one function.
struct JoinedFunction {
    Function source; ///< its results once for each stage that gives them
    DeviceFunction device;
    std::vector<NamedMesh> meshes; ///< one stage's, with one more axis: the microbatches
    std::int32_t calls = 0; ///< that axis
    std::string obstacle = {}; ///< why the parts do not fit together; empty: they do
};

/// Joins the functions of a pipeline's stages: "init", "evaluate" or "step". Each function of a piece is there once and stands for its calls on all
/// microbatches, which lie along an axis of the mesh: each is given its rows of the batch, the sums of gradients and the means of metrics are
/// reductions over the axis. That every call is made, once and in time, is `taskFault`'s to say.
/// Precondition: `function` is one of `source`, the program for the whole batch.
JoinedFunction joinedPipeline(const Program& source, const Function& function, const ScheduledProgram& pipeline);

/// Which values differ along the axis of the calls: those that are made of the calls' pieces, until they are reduced over it.
std::vector<bool> variesByCall(const Function& function, std::int32_t axis);

/// What is wrong with the tasks of one step; empty where every piece takes every microbatch forward and then backward once, nothing waits for ever,
/// nothing is overwritten while it is needed, and each stage adds up and updates once, at its end.
std::string taskFault(const ScheduledProgram& pipeline);

} // namespace meshwright
