// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright {

/// What an argument or a result of a pipeline stage's function is. Functions of one stage share such an array, and who fills it in, how long it
/// is kept and whether it goes to another stage follow from its kind. Values of programs have `text()` as their name.
struct StageArray {
    enum class Kind : std::uint8_t {
        Model, ///< a parameter, a state or anything else by its own name
        Gradient, ///< of a parameter: "grad.NAME"
        GradientSum, ///< of a parameter: the sum of a device's own parts, "acc.NAME"
        SharedPart, ///< of the gradient of a parameter that several stages have: what this stage knows of it, "shared.NAME"
        SharedCopy, ///< the same of stage `number`: "stage.N.shared.NAME"
        Batch, ///< "x" and "y" of a microbatch
        Metric, ///< "loss", "accuracy" and "predictions" of a microbatch
        Input, ///< what the piece before gives: "in"
        Output, ///< what the piece behind gets: "out"
        InputGradient, ///< what the piece before gets: "ct.in"
        OutputGradient, ///< what the piece behind gives: "ct.out"
        Residual, ///< number N that the forward function leaves for the backward one: "residual.N:NAME"
        WeightResidual, ///< the same that the gradients of inputs leave for those of weights: "residual.w.N"
        NormPart, ///< the stage's part of the gradients' squared norm: "norm.part"
        NormSquared, ///< all of it: "norm.squared"
        DropoutOn, ///< whether a step trains: "dropout.on"
        DropoutPart, ///< the number of a microbatch: "dropout.part"
    };

    Kind kind = Kind::Model;
    std::string name = {}; ///< of Model, Batch and Metric their own; of gradients the parameter; of residuals what they are
    std::size_t number = 0;

    std::string text() const;

    friend bool operator==(const StageArray&, const StageArray&) = default;
};

/// The array that a value of this name is.
StageArray stageArrayOf(std::string_view name);

} // namespace meshwright
