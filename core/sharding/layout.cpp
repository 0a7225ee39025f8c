// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/layout.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

std::string boxText(const IndexBox& box)
{
    std::vector<std::string> ranges;
    for (const IndexRange& range : box)
        ranges.push_back(fmt::format("{}:{}", range.start, range.stop));
    return fmt::format("[{}]", join(ranges, ", "));
}

Shape extentsOf(const IndexBox& box)
{
    Shape extents;
    for (const IndexRange& range : box)
        extents.push_back(range.size());
    return extents;
}

Shape startsOf(const IndexBox& box)
{
    Shape starts;
    for (const IndexRange& range : box)
        starts.push_back(range.start);
    return starts;
}

Shape startIn(const IndexBox& part, const IndexBox& holder)
{
    Shape start;
    for (std::size_t dim = 0; dim < part.size(); ++dim)
        start.push_back(part[dim].start - holder[dim].start);
    return start;
}

IndexBox intersection(const IndexBox& a, const IndexBox& b)
{
    assert(a.size() == b.size());
    IndexBox common;
    for (std::size_t dim = 0; dim < a.size(); ++dim) {
        const std::int64_t start = std::max(a[dim].start, b[dim].start);
        common.push_back({start, std::max(start, std::min(a[dim].stop, b[dim].stop))});
    }
    return common;
}

std::int64_t boxElements(const IndexBox& box)
{
    std::int64_t count = 1;
    for (const IndexRange& range : box)
        count *= range.size();
    return count;
}

IndexBox shardBox(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh, std::int64_t position)
{
    assert(sharding.dims.size() == shape.size());
    IndexBox box;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const AxisRefs& axes = sharding.dims[dim].axes;
        const std::int64_t tile = ceilDiv(shape[dim], shardCount(axes));
        const std::int64_t start = std::min(shape[dim], tile * shardIndex(position, axes, mesh));
        box.push_back({start, start + std::min(tile, shape[dim] - start)});
    }
    return box;
}

Layout layoutOf(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh)
{
    std::map<IndexBox, std::vector<DeviceId>> holders;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        holders[shardBox(shape, sharding, mesh, position)].push_back(mesh.deviceAt(position));

    Layout layout;
    layout.shape = shape;
    layout.shardShape = localShape(shape, sharding);
    layout.fullyReplicated = holders.size() == 1;
    for (auto& [box, devices] : holders)
        layout.shards.push_back({box, std::move(devices)});
    return layout;
}

bool equivalent(const Shape& shape, const TensorSharding& a, const Mesh& meshA, const TensorSharding& b, const Mesh& meshB)
{
    if (meshA.deviceCount() != meshB.deviceCount() || meshA.deviceOrder() != meshB.deviceOrder())
        return false;
    for (std::int64_t position = 0; position < meshA.deviceCount(); ++position) {
        if (shardBox(shape, a, meshA, position) != shardBox(shape, b, meshB, position))
            return false;
    }
    return true;
}

} // namespace meshwright
