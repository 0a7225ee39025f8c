// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/mesh_plan.h"

#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace meshwright::sim {

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kLargePayload = std::int64_t{1} << 30; ///< bytes; latencies hardly count
constexpr std::size_t kMostInPython = 64; ///< devices that are listed in the Python

bool isTpu(const Machine& machine)
{
    return machine.chip.chipClass == ChipClass::Tpu;
}

/// `(4, 2)`, `(8,)`: a tuple in Python.
std::string tupleText(const Sizes& sizes)
{
    return fmt::format("({}{})", fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
}

std::string namesText(const std::vector<MeshAxis>& axes)
{
    std::vector<std::string> names;
    for (const MeshAxis& axis : axes)
        names.push_back("'" + axis.name + "'");
    return fmt::format("({}{})", join(names, ", "), names.size() == 1 ? "," : "");
}

/// Nested lists: `[[0, 1], [2, 3]]`.
std::string listText(const DeviceArray& array)
{
    std::vector<std::string> level;
    for (const DeviceId device : array.devices)
        level.push_back(std::to_string(device));
    for (auto size = array.shape.rbegin(); size != array.shape.rend(); ++size) {
        std::vector<std::string> outer;
        for (std::size_t i = 0; i < level.size(); i += static_cast<std::size_t>(*size))
            outer.push_back("[" + join(std::span(level).subspan(i, static_cast<std::size_t>(*size)), ", ") + "]");
        level = std::move(outer);
    }
    return level.front();
}

Sizes sizesOf(const Mesh& mesh)
{
    Sizes sizes;
    for (const MeshAxis& axis : mesh.axes())
        sizes.push_back(axis.size);
    return sizes;
}

class MeshPlanner {
public:
    MeshPlanner(const MeshRequest& request, const Machine& machine, MeshPlacement placement)
        : m_request(request)
        , m_machine(machine)
        , m_placement(std::move(placement))
        , m_inner(sizesOf(request.mesh))
        , m_outer(request.outer.empty() ? Sizes(m_inner.size(), 1) : request.outer)
    {
        m_plan.machine = machine.text();
        m_plan.slices = std::accumulate(m_outer.begin(), m_outer.end(), std::int64_t{1}, std::multiplies<>());
        for (std::size_t axis = 0; axis < m_inner.size(); ++axis)
            m_plan.axes.push_back({request.mesh.axes()[axis].name, m_inner[axis] * m_outer[axis]});
        m_placedOrder = {m_inner, m_placement.deviceOrder()};
    }

    Result<MeshPlan> run()
    {
        const auto inner = innerOrder();
        if (!inner)
            return inner.error();
        const auto order = wholeOrder(*inner);
        if (!order)
            return order.error();
        m_plan.order = *order;
        m_plan.orderInSlice = *inner;
        m_plan.planned = axesOf(*inner);
        m_plan.jax = python(*inner);
        if (m_plan.slices > 1)
            m_plan.betweenSlicesBytesPerSecond = betweenSlices();
        addNotes(*inner);
        return std::move(m_plan);
    }

private:
    bool isWhole() const { return m_request.mesh.deviceCount() == m_machine.deviceCount(); }

    /// The devices of so many slices as JAX lists them; nothing for machines that JAX sees in another way (a part of a chip).
    std::optional<std::vector<PlacedDevice>> devices(std::int64_t slices) const
    {
        std::vector<PlacedDevice> all;
        for (std::int64_t slice = 0; slice < slices; ++slice) {
            std::vector<PlacedDevice> some = devicesOfSlice();
            if (static_cast<std::int64_t>(some.size()) != m_machine.deviceCount())
                return std::nullopt;
            for (PlacedDevice& device : some) {
                device.id += slice * m_machine.deviceCount();
                device.slice = slice;
                if (!isTpu(m_machine))
                    device.process = slice;
                all.push_back(device);
            }
        }
        return all;
    }

    std::vector<PlacedDevice> devicesOfSlice() const
    {
        if (isTpu(m_machine)) {
            const auto listed = tpuDevices(kind(), m_machine.choice.topology);
            return listed ? *listed : std::vector<PlacedDevice>{};
        }
        std::vector<PlacedDevice> some(static_cast<std::size_t>(m_machine.deviceCount()));
        for (std::size_t i = 0; i < some.size(); ++i)
            some[i].id = static_cast<DeviceId>(i);
        return some;
    }

    DeviceKind kind() const
    {
        const auto known = deviceKindOf(m_machine.chip.key);
        return known ? *known : isTpu(m_machine) ? DeviceKind::Other : DeviceKind::Gpu;
    }

    /// What `make` gives with whole physical axes, or with parts of them where that fails.
    template <typename Make>
    Result<DeviceArray> splitIfNeeded(Make make)
    {
        auto made = make(DeviceMeshOptions{m_request.contiguousSubmeshes, false});
        const auto needsSplit = [](const Problem& problem) { return problem.id == "MW1174"; };
        if (made || !m_request.allowSplit || std::none_of(made.error().begin(), made.error().end(), needsSplit))
            return made;
        auto split = make(DeviceMeshOptions{m_request.contiguousSubmeshes, true});
        m_splits = split.has_value();
        return split ? split : made;
    }

    /// The order within one slice; ids of the first.
    Result<DeviceArray> innerOrder()
    {
        const auto listed = devices(1);
        m_isJax = m_request.order == DeviceOrderBy::Jax && isWhole() && listed;
        if (m_request.contiguousSubmeshes && (!m_isJax || m_plan.slices > 1))
            return Problem{"MW1177",
                m_plan.slices > 1 ? "contiguous submeshes are for one slice, this mesh spans several"
                    : isWhole()   ? "contiguous submeshes are those of create_device_mesh, and another order is asked for"
                                  : "contiguous submeshes need a mesh of all devices of the slice",
                "leave --contiguous-submeshes out, or give --mesh for the whole slice"};
        if (!m_isJax)
            return m_placedOrder;
        return splitIfNeeded(
            [&](const DeviceMeshOptions& options) { return createDeviceMesh(m_inner, kind(), *listed, options); });
    }

    Result<DeviceArray> wholeOrder(const DeviceArray& inner)
    {
        if (m_plan.slices == 1)
            return inner;
        const auto listed = devices(m_plan.slices);
        if (m_isJax && listed)
            return splitIfNeeded([&](const DeviceMeshOptions& options) {
                return createHybridDeviceMesh(
                    m_inner, m_outer, kind(), *listed, isTpu(m_machine) ? Granule::Slice : Granule::Process, options);
            });
        return overSlices(inner);
    }

    /// The order of one slice repeated: slices are the more major part of each axis.
    DeviceArray overSlices(const DeviceArray& inner) const
    {
        const Mesh innerMesh = valueOf(Mesh::create(m_request.mesh.axes()));
        const Mesh whole = valueOf(Mesh::create(m_plan.axes));
        DeviceArray all{sizesOf(whole), {}};
        for (std::int64_t position = 0; position < whole.deviceCount(); ++position) {
            std::int64_t slice = 0;
            std::int64_t within = 0;
            for (std::size_t axis = 0; axis < m_inner.size(); ++axis) {
                const std::int64_t at = whole.coordinate(position, axis);
                slice = slice * m_outer[axis] + at / m_inner[axis];
                within += at % m_inner[axis] * innerMesh.stride(axis);
            }
            all.devices.push_back(inner.devices[static_cast<std::size_t>(within)] + slice * m_machine.deviceCount());
        }
        return all;
    }

    /// The groups of devices that differ along one axis of the mesh of a slice.
    std::vector<std::vector<DeviceId>> groupsAlong(std::size_t axis, const DeviceArray& order) const
    {
        const AxisRef whole = wholeAxis(m_request.mesh, axis);
        std::vector<std::vector<DeviceId>> groups = deviceGroups({whole}, m_request.mesh);
        for (auto& group : groups) {
            for (DeviceId& member : group)
                member = order.devices[static_cast<std::size_t>(member)];
        }
        return groups;
    }

    std::vector<PlannedAxis> axesOf(const DeviceArray& order) const
    {
        std::vector<PlannedAxis> axes;
        for (std::size_t axis = 0; axis < m_inner.size(); ++axis) {
            PlannedAxis planned{m_request.mesh.axes()[axis].name, m_inner[axis], {}, {}, {}, 0.0, 0.0, m_outer[axis]};
            if (planned.size > 1)
                measure(planned, groupsAlong(axis, order));
            axes.push_back(std::move(planned));
        }
        return axes;
    }

    void measure(PlannedAxis& axis, const std::vector<std::vector<DeviceId>>& groups) const
    {
        axis.group = m_placement.groupAxesOfDevices(groups);
        axis.shares = sharesOf(groups.front(), axis.group);
        for (const GroupAxis& part : axis.group) {
            if (part.kind == GroupKind::Torus && part.size > 2)
                axis.wraps = axis.wraps.value_or(true) && part.wraps;
            axis.hopSeconds = std::max(axis.hopSeconds, part.link.latencySeconds);
        }
        CollectiveRequest gather;
        gather.kind = CollectiveKind::AllGather;
        gather.payloadBytes = kLargePayload;
        gather.axes = axis.group;
        const double received
            = static_cast<double>(kLargePayload) * static_cast<double>(axis.size - 1) / static_cast<double>(axis.size);
        axis.bytesPerSecond = received / estimateCollective(gather).seconds;
    }

    std::vector<PhysicalShare> sharesOf(const std::vector<DeviceId>& group, const std::vector<GroupAxis>& parts) const
    {
        const std::vector<PhysicalAxis>& axes = m_machine.topology.axes();
        std::vector<PhysicalShare> shares;
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
            std::set<std::int64_t> places;
            for (const DeviceId device : group)
                places.insert(m_machine.topology.coordinate(device, axis));
            if (places.size() < 2)
                continue;
            const bool wraps = std::any_of(parts.begin(), parts.end(),
                [&](const GroupAxis& part) { return part.kind == GroupKind::Torus && part.physicalAxis == axis && part.wraps; });
            shares.push_back({axes[axis].name, static_cast<std::int64_t>(places.size()), axes[axis].length, wraps});
        }
        return shares;
    }

    std::string python(const DeviceArray& inner) const
    {
        const std::string split = std::string(m_request.contiguousSubmeshes ? ", contiguous_submeshes=True" : "")
            + (m_splits ? ", allow_split_physical_axes=True" : "");
        const std::string names = namesText(m_plan.axes);
        if (m_isJax && m_plan.slices == 1)
            return fmt::format("from jax.experimental import mesh_utils\n"
                               "mesh = jax.sharding.Mesh(mesh_utils.create_device_mesh({}{}), {})\n",
                tupleText(inner.shape), split, names);
        if (m_isJax)
            return fmt::format("from jax.experimental import mesh_utils\n"
                               "mesh = jax.sharding.Mesh(mesh_utils.create_hybrid_device_mesh({}, {}{}{}), {})\n",
                tupleText(m_inner), tupleText(m_outer), isTpu(m_machine) ? "" : ", process_is_granule=True", split, names);
        const bool isShort = m_plan.order.devices.size() <= kMostInPython;
        return fmt::format("devices = np.array(sorted(jax.devices(), key=lambda device: device.id))\n"
                           "mesh = jax.sharding.Mesh(devices[{}], {})\n",
                   isShort ? "np.array(" + listText(m_plan.order) + ")" : "order", names)
            + (isShort ? "" : "# order: the device order, as an array of numpy\n");
    }

    double betweenSlices() const
    {
        const OptionalFigure& figure = isTpu(m_machine) ? m_machine.chip.dcnBytesPerSecond : m_machine.chip.nicBytesPerSecond;
        return figure ? figure->value / static_cast<double>(m_machine.chip.devicesPerChip) : 0.0;
    }

    void addNotes(const DeviceArray& inner)
    {
        if (!isWhole())
            m_plan.notes.push_back(m_placement.text());
        if (m_splits)
            m_plan.notes.emplace_back("some physical axis serves several mesh axes");
        if (inner == m_placedOrder)
            return;
        const std::vector<PlannedAxis> placed = axesOf(m_placedOrder);
        std::vector<std::string> better;
        for (std::size_t axis = 0; axis < placed.size(); ++axis) {
            if (placed[axis].bytesPerSecond > 1.01 * m_plan.planned[axis].bytesPerSecond)
                better.push_back(fmt::format("{} has {}B/s", placed[axis].name, formatCount(placed[axis].bytesPerSecond)));
        }
        if (!better.empty())
            m_plan.notes.push_back(fmt::format(
                "in the order that follows the physical axes (--order axes, which simulate takes) {}", join(better, ", ")));
    }

    const MeshRequest& m_request;
    const Machine& m_machine;
    MeshPlacement m_placement;
    Sizes m_inner;
    Sizes m_outer;
    DeviceArray m_placedOrder; ///< of one slice, by physical axes
    bool m_isJax = false; ///< the order is create_device_mesh's
    bool m_splits = false;
    MeshPlan m_plan;
};

} // namespace

Result<MeshPlan> planMesh(const MeshRequest& request, const Machine& machine)
{
    const auto axesOnly = Mesh::create(request.mesh.axes());
    if (!axesOnly)
        return axesOnly.error();
    MeshRequest plain = request;
    plain.mesh = *axesOnly;
    auto placement = placeMesh(plain.mesh, machine);
    if (!placement)
        return placement.error();
    return MeshPlanner(plain, machine, *std::move(placement)).run();
}

Result<MeshPlacement> placementOf(const MeshPlan& plan, const MeshRequest& request, const Machine& machine)
{
    auto plain = Mesh::create(request.mesh.axes());
    if (!plain)
        return plain.error();
    auto byAxes = placeMesh(*plain, machine);
    if (byAxes && byAxes->deviceOrder() == plan.orderInSlice.devices)
        return byAxes;
    auto ordered = Mesh::create(request.mesh.axes(), plan.orderInSlice.devices);
    if (!ordered)
        return ordered.error();
    return placeMesh(*ordered, machine);
}

} // namespace meshwright::sim
