// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

namespace meshwright {

/// A backward function in two parts, as zero-bubble pipelines take it.
struct SplitBackward {
    Function input; ///< what the piece before waits for: "ct.in", then "residual.w.N" for the other part
    Function weight; ///< the gradients, in the order in which the whole has them
};

/// Splits a backward function whose results are "grad.NAME" and, but for the first piece, "ct.in". What serves a single gradient and nothing else
/// goes to the second part: products and sums that make gradients of weights, which nobody waits for. What serves "ct.in" or several gradients
/// stays in the first part. Where that would leave the first part without any op, it has all of them, and the second hands on.
/// Arguments keep their names; both parts have those that they read. Functions get no names.
/// Precondition: no donations, one value for each result.
SplitBackward splitBackward(const Function& backward);

} // namespace meshwright
