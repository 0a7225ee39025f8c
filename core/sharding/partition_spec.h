// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/sharding/shape.h"
#include "core/support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// How each dimension of an array is split over mesh axes, as in `jax.sharding.PartitionSpec`.
///
/// `dims[i]` lists the axes that split dimension i, major to minor; an empty list leaves it whole. A spec
/// may be shorter than the rank (the rest is whole). Axes in no list replicate the array.
/// Example: `{{"data"}, {}}` is `P('data', None)`.
struct PartitionSpec {
    std::vector<std::vector<std::string>> dims;

    /// Without whole dimensions at its end: `P('data', None)` becomes `P('data',)`.
    PartitionSpec canonical() const;

    friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

/// As JAX prints it: `P('data', None, ('a', 'b'))`; `P()` without entries.
std::string specText(const PartitionSpec& spec);

/// Reads `P('data', None)`, `PartitionSpec(("a", "b"),)`, `P()`; also a list without the name: `('data', None)`, `['data', null]`.
///
/// Problems: MW1105 the text is not a PartitionSpec; the place has the column (from 1) of what was not expected.
Result<PartitionSpec> parseSpec(std::string_view text);

/// Bytes [offset, offset + length) of a text.
struct TextRange {
    std::size_t offset = 0;
    std::size_t length = 0;

    friend bool operator==(const TextRange&, const TextRange&) = default;
};

/// A spec, and where its parts stand in the text that it was read from.
struct LocatedSpec {
    PartitionSpec spec;
    std::vector<TextRange> entries; ///< one for each dimension: `('a', 'b')`, `None`
    std::vector<std::vector<TextRange>> axes; ///< of each dimension, the names without their quotes
};

/// As `parseSpec`, with the places.
Result<LocatedSpec> parseLocatedSpec(std::string_view text);

/// The shape of the piece that one device holds: `global[i] / prod(size of the axes in spec.dims[i])`.
///
/// Shapes: `global` has rank R; the result has rank R. Sizes count elements, not bytes.
/// With `Uneven::Pad` a dimension that does not divide is rounded up: ceil(size / pieces), as GSPMD does.
/// Problems: MW1101 the spec is longer than R, MW1102 unknown axis, MW1103 an axis used twice, MW1104 (only with
/// `Uneven::Refuse`, as JAX places arrays) a dimension does not divide. All are reported, not only the first.
/// Source: jax-ml/jax, jax/_src/sharding.py (`_common_shard_shape` raises IndivisibleError).
Result<Shape> shardShape(const Shape& global, const PartitionSpec& spec, const Mesh& mesh, Uneven uneven);

/// The sizes next to `size` that divide by `pieces`, for advice: `8 or 12`; only the larger one when the smaller would be 0.
std::string divisibleSizesText(std::int64_t size, std::int64_t pieces);

/// A dimension that is cut into equal pieces but whose size they do not divide, and what a message adds to it.
struct UnequalPieces {
    std::size_t dim = 0;
    std::int64_t size = 0;
    std::int64_t pieces = 1; ///< does not divide `size`
    std::string array = {}; ///< named first: `"layers.0.w": dim 0 ..`; empty when the reader knows which array is meant
    std::string meaning = {}; ///< of the dimension, such as `batch`
    std::string where = {}; ///< ends the message, such as ` in phase 2`
    std::string cutBy = "the sharding cuts"; ///< begins the rule
};

/// MW1103: the axis occurs in the spec before. The place is the caller's.
Problem axisUsedTwice(std::string_view axis, const PartitionSpec& spec);

/// MW1104, the one text of the rule that a dimension is divisible by its number of pieces: `dim 0 of size 10 is not divisible by 4`, with
/// the sizes that are. The place is the caller's.
Problem notDivisible(const UnequalPieces& cut);

} // namespace meshwright
