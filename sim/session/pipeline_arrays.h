// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"

#include <cstddef>
#include <string>
#include <vector>

namespace meshwright::sim {

/// A named array of a pipeline's stages, of one microbatch where it has a batch, as it lies on a stage's devices.
struct PipelineArray {
    std::string name;
    Role role = Role::Activation;
    TensorType type; ///< of the whole array
    TensorSharding sharding;
    std::string spec; ///< "P('data', None)"
    std::string annotation; ///< where the user asked for it; empty: it follows from others
    std::vector<std::size_t> stages; ///< that have it, ascending
    const Mesh* mesh = nullptr; ///< of the first of them; lives as long as the pipeline
};

/// The arrays of the step that the model or the training names: without what stages' functions only hand each other. In the order of the stages'
/// functions; of several with one name the first.
std::vector<PipelineArray> arraysOf(const ScheduledProgram& pipeline);

} // namespace meshwright::sim
