// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/reshard/reshard.h"
#include "core/sharding/layout.h"

#include <vector>

namespace meshwright {

/// A part of what a device holds after a collective, and the mesh positions that it comes from: one, or several whose partial values are
/// combined.
struct MovedPart {
    IndexBox box;
    std::vector<std::int64_t> from;

    friend bool operator==(const MovedPart&, const MovedPart&) = default;
};

/// By mesh position, the parts of what it holds after one step of a change of layout. Of equal pieces that several devices of a group have, a
/// device takes its own, else the first one's, as devices do. Parts are ordered by who gives them.
/// Preconditions: the step leads on from `from`; both meshes' positions are the same.
std::vector<std::vector<MovedPart>> movedParts(
    const Shape& shape, const TensorSharding& from, const ReshardStep& step, const Mesh& mesh);

} // namespace meshwright
