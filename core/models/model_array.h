// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

/// What a dimension of a model's array is.
enum class DimRole : std::uint8_t {
    Batch,
    Sequence,
    Hidden,
    Vocabulary,
    Positions,
    Layers, ///< stacked, of a loop
    Heads,
    KeyValueHeads,
    HeadsOfEach, ///< of those of keys and values
    HeadSize,
    QueryRank,
    KeyValueRank,
    Tokens, ///< of a convolution
    Ffn,
    ExpertFfn,
    SharedFfn, ///< of the experts that all tokens take
    Experts,
    ExpertHidden, ///< between experts where that is not Hidden
    Groups, ///< that send their tokens to experts by themselves
    Capacity,
    LayerInputs, ///< of an MLP's layer
    LayerOutputs,
};

struct DimMeaning {
    DimMeaning(DimRole is, std::int64_t ofLayer = 0)
        : role(is)
        , layer(ofLayer)
    {
    }

    /// As people read it: "batch", "key and value heads", "outputs of layer 1".
    std::string text() const;

    friend bool operator==(const DimMeaning&, const DimMeaning&) = default;

    DimRole role;
    std::int64_t layer; ///< of LayerInputs and LayerOutputs
};

/// The first dimension of a role, where there is one.
std::optional<std::size_t> dimOf(DimRole role, std::span<const DimMeaning> meaning);

/// An array of a model that has a name.
struct ModelArray {
    enum class Kind : std::uint8_t { Weight, Bias, Scale, Activation };
    std::string name;
    Shape shape;
    std::vector<DimMeaning> meaning; ///< of each dimension
    std::int64_t fanIn = 1;
    Kind kind = Kind::Weight;
};

} // namespace meshwright
