// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/shard_indices.h"

namespace meshwright {

namespace {

/// What each coordinate along an axis adds to an index.
std::vector<std::int64_t> addedAlong(std::size_t axis, const AxisRefs& axes, std::int64_t size)
{
    std::vector<std::int64_t> added(static_cast<std::size_t>(size), 0);
    std::int64_t weight = 1;
    for (auto ref = axes.rbegin(); ref != axes.rend(); ++ref) {
        if (static_cast<std::size_t>(ref->axis) == axis) {
            const std::int64_t post = size / (ref->pre * ref->size);
            for (std::int64_t at = 0; at < size; ++at)
                added[static_cast<std::size_t>(at)] += weight * (at / post % ref->size);
        }
        weight *= ref->size;
    }
    return added;
}

} // namespace

std::vector<std::int64_t> shardIndices(const AxisRefs& axes, const Mesh& mesh)
{
    std::vector<std::int64_t> indices{0};
    indices.reserve(static_cast<std::size_t>(mesh.deviceCount()));
    // From the minor axis on: the positions so far come again for each coordinate along the next one.
    for (std::size_t axis = mesh.axes().size(); axis-- > 0;) {
        const std::vector<std::int64_t> added = addedAlong(axis, axes, mesh.axes()[axis].size);
        const std::size_t count = indices.size();
        for (std::size_t at = 1; at < added.size(); ++at) {
            for (std::size_t i = 0; i < count; ++i)
                indices.push_back(indices[i] + added[at]);
        }
    }
    return indices;
}

} // namespace meshwright
