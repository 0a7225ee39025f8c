// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/training.h"
#include "sim/search/search.h"
#include "sim/search/transformer_space.h"

#include <cstdint>

namespace meshwright::sim {

/// A multilayer perceptron's training step.
struct MlpWork {
    std::string name;
    MlpModel model;
    std::int64_t batch = 1;
    double parameterBytes = 4.0; ///< of one
    double stateBytes = 0.0; ///< of the optimizer, for each parameter
    MathFormat format = MathFormat::Fp32; ///< of the products
};

/// Meshes and PartitionSpecs of every layer, the quickest first, one for each mesh.
///
/// Every factorisation of the devices into data x model is tried. On each axis a layer's product splits its batch, its contracting dimension, its output
/// dimension or nothing, and an axis that splits the batch may also split the weight, which is then gathered where it is used: strategies are
/// enumerated from the product's factors. Layers are the variables of a choice graph (elimination.h), reshards of the activations between them its
/// edges, bytes of states and kept activations its memory. Times are sums: nothing is hidden.
///
/// With a test these sums only say what is worth simulating: the best of the quickest meshes, of each template, and what makes one choice otherwise than
/// the best. What turns out quicker takes its place.
///
/// Preconditions: two layer sizes or more, all sizes >= 1.
SearchResult searchMlp(
    const MlpWork& work, const SearchMachine& machine, const SearchOptions& options, const PlanTest& test = {});

} // namespace meshwright::sim
