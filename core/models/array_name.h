// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright {

/// What an array of a training is, and of what: the front of its name says it. Values of programs, and specs of studies, have `text()` as their name.
struct ArrayName {
    enum class Family : std::uint8_t {
        Own, ///< a parameter, "x", "loss": nothing stands before its name
        Gradient, ///< of a parameter or an activation: "grad.NAME"
        Momentum, ///< a parameter's first moment: "opt.m.NAME"
        SecondMoment, ///< "opt.v.NAME"
        Master, ///< a parameter in f32: "opt.master.NAME"
        SharedState, ///< of the optimizer, one number for all parameters: "opt.step"
        Activation, ///< "act.NAME"
        Updated, ///< what takes the place of a parameter or a state: "new.NAME", "new.opt.m.NAME"
    };

    Family family = Family::Own;
    std::string base = {}; ///< what stands behind: the parameter's name, "layers.0.w"

    /// Of the optimizer.
    bool isState() const { return family >= Family::Momentum && family <= Family::SharedState; }
    std::string text() const;
};

/// The array that has this name.
ArrayName arrayNameOf(std::string_view name);

} // namespace meshwright
