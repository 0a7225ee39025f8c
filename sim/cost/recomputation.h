// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// The share (0 .. 1) of each part of a layer's forward pass that the backward pass computes again. What is not computed again is kept.
struct Recomputation {
    double qkv = 0.0;
    double attention = 0.0; ///< the core: scores, softmax, weighted sum
    double attentionOut = 0.0;
    double ffnIn = 0.0;
    double ffnOut = 0.0;
    double elementwise = 0.0; ///< norms, activation functions, dropout, rotary positions
    bool communication = false; ///< the collectives of the layer's forward pass are run again
    bool layerInputOnly = false; ///< nothing but the layer's input is kept
    double offloaded = 0.0; ///< of what is kept, the share that lies in the host's memory
    bool offloadsInput = false; ///< the layer's input lies there too

    friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

/// A policy by its name: `none`, `selective` (the attention core), `full`, `selective_op` (every second product: PyTorch's), and JAX's as MaxText
/// names them: `minimal`, `minimal_with_context`, `save_dot_with_context_except_mlp`, `save_dot_except_mlpwi`, `save_dot_except_mlp`, `save_qkv_proj`,
/// `save_out_proj`, `qkv_proj_offloaded`, `minimal_offloaded`, `save_context` (what attention makes, alone: there `custom` with `context`), `custom` (values by name; without names as `qkv_proj_offloaded`). Nothing for a name that is
/// not known.
std::optional<Recomputation> recomputationOf(std::string_view policy);

/// The names that `recomputationOf` knows; of two for one policy the usual one comes first. Each ends in a zero byte.
const std::vector<const char*>& recomputationNames();

} // namespace meshwright::sim
