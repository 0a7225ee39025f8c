// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/tensor_sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

/// Random meshes and shardings for properties that hold of all of them; the same for the same seed.
namespace meshwright::tests {

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t least, std::int64_t most)
{
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

inline bool chance(Random& random, int percent)
{
    return pick(random, 1, 100) <= percent;
}

/// What a random sharding may have.
struct RandomLimits {
    bool parts = true; ///< parts of axes
    bool open = true; ///< open dimensions and priorities
    bool unreduced = true;
    bool replicated = true; ///< explicitly
    bool sizesOfOne = false; ///< mesh axes of size 1
    bool ownOrder = false; ///< the mesh may have a device order of its own
    bool twelves = false; ///< mesh axes of 3, 6 and 12 devices too, often
};

/// 1 to 4 axes named x, y, z, w of sizes 2 to 8 (or 1, or 12), at most 192 devices.
inline Mesh randomMesh(Random& random, const RandomLimits& limits)
{
    const char* names[] = {"x", "y", "z", "w"};
    const std::int64_t sizes[] = {2, 2, 2, 3, 4, 4, 5, 6, 8};
    const std::int64_t oddSizes[] = {3, 6, 12};
    std::vector<MeshAxis> axes;
    std::int64_t count = 1;
    const std::int64_t rank = pick(random, 1, 4);
    for (std::int64_t i = 0; i < rank; ++i) {
        std::int64_t size = limits.sizesOfOne && chance(random, 15) ? 1 : sizes[pick(random, 0, 8)];
        if (limits.twelves && chance(random, 50))
            size = oddSizes[pick(random, 0, 2)];
        if (count * size > 96)
            size = 2;
        count *= size;
        axes.push_back({names[i], size});
    }
    std::vector<DeviceId> order;
    if (limits.ownOrder && chance(random, 50)) {
        order.resize(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), DeviceId{0});
        std::shuffle(order.begin(), order.end(), random);
    }
    return valueOf(Mesh::create(std::move(axes), std::move(order)));
}

/// A sound sharding of an array of `rank` dimensions, canonical as Shardy has it.
inline TensorSharding randomSharding(Random& random, std::size_t rank, const Mesh& mesh, const RandomLimits& limits)
{
    AxisRefs parts;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        const std::int64_t size = mesh.axes()[axis].size;
        if (size == 1)
            continue;
        std::int64_t pre = 1;
        while (pre < size) {
            // The rest of the axis, or a smaller factor of it.
            std::vector<std::int64_t> factors = {size / pre};
            for (std::int64_t f = 2; limits.parts && f < size / pre; ++f) {
                if (size / pre % f == 0)
                    factors.push_back(f);
            }
            const std::int64_t factor
                = factors[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(factors.size()) - 1))];
            parts.push_back({static_cast<std::int32_t>(axis), pre, factor});
            pre *= factor;
        }
    }
    std::shuffle(parts.begin(), parts.end(), random);
    TensorSharding sharding = TensorSharding::replicatedOf(rank);
    const auto addSet = [&](AxisRefs& axes, const AxisRef& part) {
        axes.push_back(part);
        std::sort(axes.begin(), axes.end());
        AxisRefs merged;
        for (const AxisRef& axis : axes)
            appendMerging(merged, axis);
        axes = std::move(merged);
    };
    for (const AxisRef& part : parts) {
        const std::int64_t place = pick(random, 0, 9);
        if (place < 6 && rank > 0)
            appendMerging(
                sharding.dims[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(rank) - 1))].axes, part);
        else if (place == 6 && limits.unreduced)
            addSet(sharding.unreduced, part);
        else if (place == 7 && limits.replicated)
            addSet(sharding.replicated, part);
    }
    for (DimSharding& dim : sharding.dims) {
        dim.open = limits.open && chance(random, 30);
        if (limits.open && (dim.open || !dim.axes.empty()) && chance(random, 20))
            dim.priority = static_cast<int>(pick(random, 1, 3));
    }
    return sharding;
}

/// A shape that both shardings divide evenly.
inline Shape dividedBy(Random& random, const TensorSharding& a, const TensorSharding& b)
{
    Shape shape;
    for (std::size_t dim = 0; dim < a.dims.size(); ++dim)
        shape.push_back(std::lcm(shardCount(a.dims[dim].axes), shardCount(b.dims[dim].axes)) * pick(random, 1, 2));
    return shape;
}

} // namespace meshwright::tests
