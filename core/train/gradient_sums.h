// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace meshwright {

/// The collectives of a backward function that make a gradient of the part which one device makes. A pipeline adds up the parts of all
/// microbatches and reduces the sum once.
struct Reduction {
    std::string name; ///< of the parameter
    ValueId part; ///< in the backward function
    std::vector<OpId> ops; ///< from the part to the gradient
};

/// The reduction of a gradient, which is a result of the function; without ops where nothing sums it over devices.
Reduction reductionOf(const Function& backward, std::size_t result);

/// The backward function that adds each gradient's part to an argument, the sum so far (StageArray::Kind::GradientSum), and returns that in its
/// place; the gradients are no results any more.
DeviceFunction accumulating(const DeviceFunction& backward, const std::vector<Reduction>& reductions);

/// A backward function and those of its gradients that are reduced elsewhere.
using ReducedPiece = std::pair<const DeviceFunction*, std::vector<Reduction>>;

/// A function of gradients that takes sums of their parts instead, and reduces them first. Nothing where that needs more than the parts.
std::optional<DeviceFunction> reducing(const DeviceFunction& function, const std::vector<ReducedPiece>& pieces);

} // namespace meshwright
