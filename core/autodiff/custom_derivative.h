// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/program/program.h"

#include <cstddef>
#include <string>

namespace meshwright {

/// Values whose derivative somebody gave: a named computation that `differentiate` reads, and that nothing else needs to know.
///
/// Operands: the `results` values, then the `inputs` that they are derived by, then what the rule reads, then one cotangent for each of the values (zeros).
/// The block gives back the values, and behind them the cotangents of the inputs by the rule.
struct CustomDerivative {
    std::size_t results = 0;
    std::size_t inputs = 0;

    std::string name() const; ///< of the computation
};

/// What an op says of a derivative that was given; no results: it is none of these.
CustomDerivative customDerivative(const Op& op);

/// Adds values with a rule: (what it reads.., cotangents of the values.., more of what it reads) -> cotangents of the inputs, where `reads` counts the first
/// of these. Returns the values again, which have it.
std::vector<ValueId> addCustomDerivative(Builder& builder, const Function& rule, std::size_t reads,
    const std::vector<ValueId>& values, const std::vector<ValueId>& inputs, const std::vector<ValueId>& read);

/// Takes the rules away: for who runs the function they are nothing.
void dropCustomDerivatives(Function& function);

} // namespace meshwright
