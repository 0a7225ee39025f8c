// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/training.h"
#include "sim/search/search.h"
#include "sim/search/transformer_space.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// How a framework is told of a plan.
struct LaunchCommand {
    std::string framework; ///< "maxtext", "torchtitan", "megatron", "accelerate"
    std::string command; ///< empty: the framework has no such plan
    std::string whyNot;
    std::string warning = {}; ///< where the command does not fit as its framework runs it: what a device needs
};

/// What no plan says.
struct LaunchChoices {
    double dropout = 0.0;
    std::optional<bool> narrowGradients
        = {}; ///< summed over devices and microbatches in 16 bits; nothing: as the machine's stack does
    std::vector<std::string> kept = {}; ///< of a plan whose recomputation is "custom": values of a layer (keepableNames)
    std::vector<std::string> offloaded = {}; ///< likewise, in the host's memory (offloadableNames)
    Optimizer optimizer = AdamOptimizer();
    bool narrowWeights = false; ///< of 16 bits without masters
};

/// One for each framework, in this order: the layout, batch, recomputation and sizes of the plan in the options of its launcher. Data, tokenizer and
/// learning rate are the user's, and so are words in capitals: the name of a model that the framework knows and its options do not describe.
std::vector<LaunchCommand> launchCommands(
    const FoundPlan& plan, const SearchWork& work, const SearchMachine& machine, const LaunchChoices& choices = {});

} // namespace meshwright::sim
