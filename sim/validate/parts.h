// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/cost/stack.h"
#include "sim/hardware/catalogue.h"
#include "sim/validate/record.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// A predicted and a measured figure of the same thing, in the same unit.
struct PredictedFigure {
    std::string id;
    double predicted = 0.0;
    double measured = 0.0;
    double bytes = 0.0; ///< of a collective's message; else 0

    double error() const { return predicted > measured ? predicted / measured - 1.0 : 1.0 - predicted / measured; }
};

/// Predicts the records that are not training steps: collectives at every size (sim/network), products, memory operations, layers, the operations of
/// a layer, kept activations. Why not, where it cannot: MW1774.
Result<std::vector<PredictedFigure>> comparePart(
    const Record& record, const Catalogue& catalogue, const Calibration& calibration);

} // namespace meshwright::sim
