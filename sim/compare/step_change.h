// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/simulate/simulation.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// One reason for which a step takes longer or shorter than another one.
struct StepDifference {
    std::string what; ///< "all-reduce of layers.2's output over model", "layers.1.w is no longer gathered over data"
    double beforeSeconds = 0.0; ///< what it took of the step: computing, or waiting that nothing hid
    double afterSeconds = 0.0;

    double seconds() const { return afterSeconds - beforeSeconds; }
};

/// Why a predicted step time is not the one of before.
struct StepChange {
    double beforeSeconds = 0.0; ///< of the whole step
    double afterSeconds = 0.0;
    std::string sentence; ///< "+3.1 ms: all-reduce of layers.2's output over model"; "no change"
    std::vector<StepDifference> parts; ///< that changed at all, the largest change first; their changes add up to seconds()

    double seconds() const { return afterSeconds - beforeSeconds; }
};

/// Explains the difference between two simulated steps of the same model.
///
/// A step is computing plus waiting that nothing hides, so the parts are: products, other computing, the exposed time of each collective,
/// and waiting for other pipeline stages. Collectives are the same when op, axes, phase and the value that moves are the same; what is left
/// on both sides with the same op, phase and value has changed its axes.
///
/// The sentence begins with the whole change and names the part that did most of it; parts of one kind (the gradients' all-reduces over one
/// axis, say) count together there. When that part alone is far from the whole change, its own change is added in parentheses, and the part
/// that explains most of the rest. A change below 0.05 % of the step, or 0.005 in the unit of its time, is none.
StepChange explainStepChange(const Simulation& before, const Simulation& after);

/// The name of a value in words: `act.layers.2.product` is "layers.2's output", `grad.layers.0.w` "the gradient of layers.0.w",
/// `new.layers.0.w` "the updated layers.0.w". What has no words stays as it is.
std::string valueInWords(std::string_view name);

} // namespace meshwright::sim
