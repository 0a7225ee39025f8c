// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// What PyTorch's DTensor says of one mesh dimension.
struct Placement {
    enum class Kind : std::uint8_t { Replicate, Shard, Partial };
    Kind kind = Kind::Replicate;
    std::int64_t dim = 0; ///< of Shard: the dimension of the tensor
    std::int64_t splitFactor = 1; ///< of Shard: above 1, `_StridedShard`
    ReduceKind reduce = ReduceKind::Sum; ///< of Partial

    friend bool operator==(const Placement&, const Placement&) = default;
};
using Placements = std::vector<Placement>; ///< one for each mesh dimension

/// `[Shard(0), Replicate(), Partial()]`, with `_StridedShard(0, split_factor=2)` and `Partial('max')`.
std::string placementsText(const Placements& placements);

/// As DTensor abbreviates: `S(0)RP`, with `_S(0, 2)` and `P(max)`.
std::string shortPlacementsText(const Placements& placements);

/// Reads both forms, in brackets or without, with or without the names of arguments.
///
/// Problems, with a column: MW1162 the text is not a list of placements, MW1163 a reduction that has no counterpart (avg, norms).
Result<Placements> parsePlacements(std::string_view text);

/// The sharding that placements say, of a tensor of `rank` dimensions (or as many as they name).
///
/// The mesh dimensions that shard one tensor dimension do so in mesh order, the first most major. A `_StridedShard` shards after some of
/// the mesh dimensions to its right: its split factor is the number of shards that those make.
/// Problems: MW1164 not one placement for each mesh dimension, MW1165 a tensor dimension beyond the rank, or a split factor that no
/// mesh dimensions to the right make, MW1163 partial sums of two kinds.
/// Source: pytorch/pytorch, torch/distributed/tensor/placement_types.py.
Result<TensorSharding> onMesh(const Placements& placements, std::optional<std::size_t> rank, const Mesh& mesh);

/// The placements that say the same. Openness, priorities and what is explicitly replicated are left out. Problems: MW1161 a part of an
/// axis occurs.
Result<Placements> placementsOf(const TensorSharding& sharding, const Mesh& mesh);

} // namespace meshwright
