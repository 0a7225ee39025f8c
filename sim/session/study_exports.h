// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/search.h"
#include "sim/session/session.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// A study in the words of another program.
struct StudyExport {
    std::string
        to; ///< "study" (YAML), "jax", "flax" (Python), "maxtext", "torchtitan", "megatron", "accelerate" (a command), "perfetto"
    std::string text; ///< empty: that program cannot say it
    std::string whyNot;
    std::vector<std::string> notes = {}; ///< what the text leaves out, a sentence each

    bool isCommand() const { return to != "study" && to != "jax" && to != "flax" && to != "perfetto"; }
};

/// One for each, in the order above. Of an MLP, Python trains what the study trains; of other models "jax" has the mesh and the specs.
/// Precondition: analysis.study.
std::vector<StudyExport> exportsOf(const Analysis& analysis, const Catalogue& catalogue);

/// What a device needs in a step, simulated with a framework's stack, and what it has, where it does not fit; else empty.
std::string whyTooLarge(const Simulation& step, std::string_view framework);

/// The commands of a plan that was found for a transformer's study. Problems: those of `searchMachineOf`.
Result<std::vector<StudyExport>> commandsOf(
    const Study& study, const FoundPlan& plan, const Catalogue& catalogue, const Calibration& calibration);

} // namespace meshwright::sim
