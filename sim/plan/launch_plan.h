// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/plan/launch_line.h"
#include "sim/search/search.h"
#include "sim/search/transformer_space.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// The training that a launch line starts, on a machine.
struct LaunchedPlan {
    SearchWork work;
    FoundPlan plan; ///< of which nothing is known but its layout
    std::vector<std::string> settings; ///< over the plan's study: what no plan says
    std::vector<std::string> notes; ///< what of the line is taken for what, and what is not read
    Problems warnings; ///< MW1497: what only some releases of the framework train
};

/// The model, the batch and the layout of a launch line on the devices of a machine, with the framework's own defaults where the line says nothing. Of
/// torchtitan's and MaxText's named models those that come with Meshwright are known; `model`, a configuration's file or name, takes their place.
/// Sources: NVIDIA/Megatron-LM, megatron/training/arguments.py; pytorch/torchtitan, torchtitan/config/configs.py and job_config.py (before 2026);
/// AI-Hypercomputer/maxtext, src/maxtext/configs/base.yml (all of August 2026).
/// Problems: MW1494 what the line must say is not there; MW1495 a value that is none, or that Meshwright has no plan for; MW1496 degrees that do not go into
/// the devices, a batch that the data ranks do not divide, or degrees that the framework refuses; those of `readTransformerConfig` and `transformerProblems`.
Result<LaunchedPlan> planOf(
    const LaunchLine& launch, const std::string& file, const SearchMachine& machine, const std::string& model = {});

} // namespace meshwright::sim
