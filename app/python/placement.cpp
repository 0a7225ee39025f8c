// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/placement.h"

#include "core/sharding/named_sharding.h"
#include "core/sharding/notation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <mutex>

namespace meshwright::python {

namespace {

/// `sharding` divides the shape, on devices with the numbers of `mesh`.
Result<PlacementPointer> dividing(Mesh mesh, TensorSharding sharding, bool isNamed, const Shape& shape)
{
    if (const auto layout = placedLayout(shape, sharding, mesh); !layout)
        return layout.error();
    return placementOf(std::move(mesh), std::move(sharding), isNamed);
}

} // namespace

PlacementPointer placementOf(Mesh mesh, TensorSharding sharding, bool isNamed)
{
    static std::mutex mutex;
    static std::map<std::string, PlacementPointer> known;
    sharding.mesh = 0;
    for (DimSharding& dim : sharding.dims)
        dim.open = false;
    std::string key = fmt::format("{}{} {} {}", isNamed, mesh.text(), shardyText(sharding, mesh), sharding.dims.size());
    if (!mesh.hasDefaultOrder())
        key += fmt::format(" {}", fmt::join(mesh.deviceOrder(), ","));
    const std::lock_guard lock(mutex);
    PlacementPointer& placement = known[key];
    if (placement == nullptr)
        placement = std::make_shared<const Placement>(
            Placement{std::move(mesh), std::move(sharding), isNamed, static_cast<int>(known.size())});
    return placement;
}

PlacementPointer onDevice(DeviceId device, std::size_t rank)
{
    return placementOf(valueOf(Mesh::create({}, {device})), TensorSharding::replicatedOf(rank), false);
}

Result<PlacementPointer> namedPlacement(const Mesh& mesh, const std::string& spec, const Shape& shape)
{
    const auto parsed = parseJaxSpec(spec);
    if (!parsed)
        return parsed.error();
    const auto placed = onMesh(*parsed, shape.size(), mesh);
    if (!placed)
        return placed.error();
    return dividing(mesh, placed->sharding, true, shape);
}

Result<PlacementPointer> positionalPlacement(const std::string& text, const std::vector<DeviceId>& devices, const Shape& shape)
{
    const auto parsed = parseSharding(text);
    if (!parsed)
        return parsed.error();
    if (parsed->sharding.dims.size() != shape.size())
        return Problem{"MW1101",
            fmt::format("the sharding has {} dimensions, the array has {}", parsed->sharding.dims.size(), shape.size())};
    std::vector<DeviceId> order;
    for (const DeviceId number : parsed->mesh.deviceOrder())
        order.push_back(devices[static_cast<std::size_t>(number)]);
    auto mesh = Mesh::create(parsed->mesh.axes(), std::move(order));
    if (!mesh)
        return mesh.error();
    return dividing(*std::move(mesh), parsed->sharding, false, shape);
}

bool sameLayout(const Shape& shape, const Placement& a, const Placement& b)
{
    if (&a == &b)
        return true;
    if (a.mesh.deviceOrder() != b.mesh.deviceOrder() || !equivalent(shape, a.sharding, a.mesh, b.sharding, b.mesh))
        return false;
    for (std::int64_t position = 0; position < a.deviceCount(); ++position) {
        if (a.partAt(position) != b.partAt(position))
            return false;
    }
    return true;
}

} // namespace meshwright::python
