// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/named_sharding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

std::string namedShardingText(const NamedSharding& sharding)
{
    return fmt::format("NamedSharding(mesh={}, spec={})", sharding.mesh.text(), specText(sharding.spec));
}

namespace {

/// The positions in `order` of the devices of `wanted`: the permutation that turns one order into the other.
std::vector<std::size_t> permutationTo(const std::vector<DeviceId>& wanted, const std::vector<DeviceId>& order)
{
    std::vector<std::size_t> permutation;
    for (const DeviceId device : wanted)
        permutation.push_back(static_cast<std::size_t>(std::find(order.begin(), order.end(), device) - order.begin()));
    return permutation;
}

Problem incompatible(const PlacedArray& first, const std::vector<DeviceId>& firstDevices, const PlacedArray& second,
    const std::vector<DeviceId>& secondDevices)
{
    const bool sameSet
        = std::is_permutation(firstDevices.begin(), firstDevices.end(), secondDevices.begin(), secondDevices.end());
    if (sameSet)
        return Problem{"MW1121",
            fmt::format("committed arrays {} and {} have the same devices in different orders: [{}] and [{}]", first.name,
                second.name, fmt::join(firstDevices, ", "), fmt::join(secondDevices, ", ")),
            fmt::format("make both meshes with one device order; taking entries [{}] of the second gives the first",
                fmt::join(permutationTo(firstDevices, secondDevices), ", ")),
            {}, Severity::Error, "committed arrays of one computation need one device order"};
    return Problem{"MW1120",
        fmt::format("committed arrays {} and {} are on different devices: [{}] and [{}]", first.name, second.name,
            fmt::join(firstDevices, ", "), fmt::join(secondDevices, ", ")),
        fmt::format("move {} to the devices of {} (jax.device_put), or leave it uncommitted", second.name, first.name), {},
        Severity::Error, "committed arrays of one computation need the same devices"};
}

} // namespace

Result<ComputationPlacement> placeComputation(const std::vector<PlacedArray>& arrays)
{
    ComputationPlacement placement;
    if (arrays.empty())
        return placement;

    const auto firstCommitted
        = std::find_if(arrays.begin(), arrays.end(), [](const PlacedArray& array) { return array.committed; });
    const PlacedArray& anchor = firstCommitted == arrays.end() ? arrays.front() : *firstCommitted;
    placement.devices = anchor.sharding.mesh.deviceOrder();
    Problems problems;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        const std::vector<DeviceId> devices = arrays[i].sharding.mesh.deviceOrder();
        if (devices == placement.devices)
            continue;
        if (arrays[i].committed)
            problems.push_back(incompatible(anchor, placement.devices, arrays[i], devices));
        else
            placement.moved.push_back(i);
    }
    if (!problems.empty())
        return problems;
    return placement;
}

Result<Layout> placedLayout(const Shape& shape, const NamedSharding& sharding)
{
    const auto local = shardShape(shape, sharding.spec, sharding.mesh, Uneven::Refuse);
    if (!local)
        return local.error();
    const auto placement = toTensorSharding(sharding.spec, shape.size(), sharding.mesh);
    if (!placement)
        return placement.error();
    return layoutOf(shape, *placement, sharding.mesh);
}

Result<Layout> placedLayout(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh)
{
    Problems problems;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const std::int64_t pieces = shardCount(sharding.dims[dim].axes);
        if (shape[dim] % pieces != 0)
            problems.push_back(notDivisible({.dim = dim, .size = shape[dim], .pieces = pieces}));
    }
    if (!problems.empty())
        return problems;
    return layoutOf(shape, sharding, mesh);
}

} // namespace meshwright
