// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/jax_spec.h"
#include "core/sharding/partition_spec.h"

namespace meshwright {

/// A PartitionSpec, and where its parts stand in the text that it was read from; the parts as in LocatedSpec.
struct SpecText {
    JaxSpec spec;
    std::vector<TextRange> entries;
    std::vector<std::vector<TextRange>> axes;
};

/// By the names that `reduceKindName` gives.
std::optional<ReduceKind> reduceKindOf(std::string_view name);

/// The one reader of PartitionSpecs: `parseSpec` and `parseJaxSpec` take from it what they need. Problems: MW1105.
Result<SpecText> readSpecText(std::string_view text);

} // namespace meshwright
