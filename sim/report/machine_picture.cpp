// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/machine_picture.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace meshwright::sim {

namespace {

/// Mesh axes as bits; axes of size 1 need no links, so there are at most 24.
using AxisSet = std::uint32_t;

std::size_t at(std::int64_t index)
{
    return static_cast<std::size_t>(index);
}

const char* platformOf(const Chip& chip)
{
    return chip.chipClass == ChipClass::Tpu ? "TPU" : chip.chipClass == ChipClass::Gpu ? "GPU" : "CPU";
}

DimensionKind kindOf(const PhysicalAxis& axis)
{
    switch (axis.kind) {
    case AxisKind::Torus:
        return axis.link.kind == LinkKind::OnChip ? DimensionKind::InChip : DimensionKind::Torus;
    case AxisKind::Switch:
        return DimensionKind::Switch;
    case AxisKind::FullMesh:
        return DimensionKind::FullMesh;
    case AxisKind::Network:
        return DimensionKind::Network;
    }
    return DimensionKind::Torus;
}

/// Which mesh axes use which links.
class LinkUse {
public:
    LinkUse(const Topology& topology, const MeshPlacement& placement)
        : m_topology(topology)
        , m_placement(placement)
        , m_mesh(placement.mesh())
        , m_ports(at(topology.deviceCount()) * topology.axes().size(), 0)
        , m_inBox(at(topology.deviceCount()), 0)
    {
        for (std::size_t axis = 0; axis < m_mesh.axes().size(); ++axis) {
            if (m_mesh.axes()[axis].size > 1)
                m_axes.push_back(axis);
        }
        for (std::int64_t position = 0; position < m_mesh.deviceCount(); ++position)
            m_inBox[at(m_placement.deviceAt(position))] = 1;
        if (m_mesh.hasDefaultOrder())
            fromParts();
        else
            fromRoutes();
    }

    /// Of the link from a device upwards along a torus axis (from the last place: the wrap link), or of its port into a switch.
    std::vector<std::string> ofPort(DeviceId device, std::size_t axis) const { return names(m_ports[portIndex(device, axis)]); }

    /// Of the link between two devices, `first` the smaller number.
    std::vector<std::string> ofPair(DeviceId first, DeviceId second) const
    {
        const auto found = m_pairs.find({first, second});
        return found == m_pairs.end() ? std::vector<std::string>() : names(found->second);
    }

    /// Mesh axes that use a link which this one uses too.
    std::vector<std::string> sharing(std::size_t meshAxis) const
    {
        const auto found = std::find(m_axes.begin(), m_axes.end(), meshAxis);
        if (found == m_axes.end())
            return {};
        const auto bit = AxisSet{1} << (found - m_axes.begin());
        AxisSet together = 0;
        for (const AxisSet set : m_ports)
            together |= (set & bit) != 0 ? set : 0;
        for (const auto& [pair, set] : m_pairs)
            together |= (set & bit) != 0 ? set : 0;
        return names(together & ~bit);
    }

private:
    std::size_t portIndex(DeviceId device, std::size_t axis) const { return at(device) * m_topology.axes().size() + axis; }

    std::vector<std::string> names(AxisSet set) const
    {
        std::vector<std::string> result;
        for (std::size_t i = 0; i < m_axes.size(); ++i) {
            if ((set >> i & 1U) != 0)
                result.push_back(m_mesh.axes()[m_axes[i]].name);
        }
        return result;
    }

    void fromParts()
    {
        for (std::size_t i = 0; i < m_axes.size(); ++i) {
            for (const AxisPart& part : m_placement.parts(m_axes[i])) {
                for (DeviceId device = 0; device < m_topology.deviceCount(); ++device) {
                    if (m_inBox[at(device)] != 0)
                        addPart(device, part, AxisSet{1} << i);
                }
            }
        }
    }

    void addPart(DeviceId device, const AxisPart& part, AxisSet bit)
    {
        const PhysicalAxis& axis = m_topology.axes()[part.physicalAxis];
        const std::int64_t place = m_topology.coordinate(device, part.physicalAxis);
        const std::int64_t span = part.size * part.stride;
        switch (axis.kind) {
        case AxisKind::Torus: {
            const bool isLast = place == axis.length - 1;
            const bool inSpan = isLast ? axis.wraps && span == axis.length : place / span == (place + 1) / span;
            if (inSpan)
                m_ports[portIndex(device, part.physicalAxis)] |= bit;
            break;
        }
        case AxisKind::Switch:
        case AxisKind::Network:
            m_ports[portIndex(device, part.physicalAxis)] |= bit;
            break;
        case AxisKind::FullMesh:
            for (std::int64_t other = place + part.stride; other / span == place / span; other += part.stride)
                m_pairs[{device, along(device, part.physicalAxis, other)}] |= bit;
            break;
        }
    }

    DeviceId along(DeviceId device, std::size_t axis, std::int64_t place) const
    {
        std::vector<std::int64_t> coordinates = m_topology.coordinates(device);
        coordinates[axis] = place;
        return m_topology.deviceAt(coordinates);
    }

    void fromRoutes()
    {
        for (std::size_t i = 0; i < m_axes.size(); ++i) {
            const std::int64_t size = m_mesh.axes()[m_axes[i]].size;
            const std::int64_t stride = m_mesh.stride(m_axes[i]);
            for (std::int64_t position = 0; position < m_mesh.deviceCount(); ++position) {
                const std::int64_t place = m_mesh.coordinate(position, m_axes[i]);
                const std::int64_t next = place + 1 < size ? position + stride : position - (size - 1) * stride;
                addRoute(m_placement.deviceAt(position), m_placement.deviceAt(next), AxisSet{1} << i);
            }
        }
    }

    void addRoute(DeviceId from, DeviceId to, AxisSet bit)
    {
        for (std::size_t axis = 0; axis < m_topology.axes().size(); ++axis) {
            const PhysicalAxis& physical = m_topology.axes()[axis];
            const std::int64_t target = m_topology.coordinate(to, axis);
            const std::int64_t place = m_topology.coordinate(from, axis);
            if (place == target)
                continue;
            switch (physical.kind) {
            case AxisKind::Torus:
                from = addSteps(from, axis, target, bit);
                break;
            case AxisKind::Switch:
                m_ports[portIndex(from, axis)] |= bit;
                from = along(from, axis, target);
                m_ports[portIndex(from, axis)] |= bit;
                break;
            case AxisKind::FullMesh: {
                const DeviceId next = along(from, axis, target);
                m_pairs[std::minmax(from, next)] |= bit;
                from = next;
                break;
            }
            case AxisKind::Network: // reaches every device of the other host
                m_ports[portIndex(from, axis)] |= bit;
                m_ports[portIndex(to, axis)] |= bit;
                return;
            }
        }
    }

    /// Steps along a torus axis the shorter way; yields where they end.
    DeviceId addSteps(DeviceId from, std::size_t axis, std::int64_t target, AxisSet bit)
    {
        const std::int64_t length = m_topology.axes()[axis].length;
        std::int64_t place = m_topology.coordinate(from, axis);
        const std::int64_t ahead = (target - place + length) % length;
        const bool up = m_topology.axes()[axis].wraps ? 2 * ahead <= length : target > place;
        while (place != target) {
            const std::int64_t next = (place + (up ? 1 : length - 1)) % length;
            m_ports[portIndex(along(from, axis, up ? place : next), axis)] |= bit;
            place = next;
        }
        return along(from, axis, target);
    }

    const Topology& m_topology;
    const MeshPlacement& m_placement;
    const Mesh& m_mesh;
    std::vector<std::size_t> m_axes; ///< of the mesh, longer than 1
    std::vector<AxisSet> m_ports;
    std::vector<char> m_inBox; ///< for each device: the mesh has it
    std::map<std::pair<DeviceId, DeviceId>, AxisSet> m_pairs; ///< full meshes
};

class MachinePainter {
public:
    MachinePainter(const Machine& machine, const MeshPlacement* placement)
        : m_machine(machine)
        , m_topology(machine.topology)
        , m_placement(placement)
    {
        if (placement)
            m_use.emplace(m_topology, *placement);
    }

    TopologyDrawing draw()
    {
        m_drawing.title = m_machine.text();
        m_drawing.platform = platformOf(m_machine.chip);
        addDimensions();
        addDevices();
        for (std::size_t axis = 0; axis < m_topology.axes().size(); ++axis) {
            if (m_topology.axes()[axis].length > 1)
                addLinks(axis);
        }
        if (m_placement)
            addMeshAxes();
        return std::move(m_drawing);
    }

private:
    /// `data`, or with the sizes where several mesh axes or parts of them lie along a physical one, the most major first.
    std::string meshTextAlong(std::size_t physicalAxis) const
    {
        if (!m_placement || !m_placement->mesh().hasDefaultOrder())
            return {};
        struct Entry {
            std::int64_t stride = 0;
            std::string text;
        };
        std::vector<Entry> entries;
        bool isWhole = true;
        const auto& axes = m_placement->mesh().axes();
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
            for (const AxisPart& part : m_placement->parts(axis)) {
                if (part.physicalAxis != physicalAxis)
                    continue;
                isWhole = isWhole && part.size == axes[axis].size;
                entries.push_back({part.stride, fmt::format("{} {}", axes[axis].name, part.size)});
            }
        }
        if (entries.size() == 1 && isWhole)
            return entries.front().text.substr(0, entries.front().text.rfind(' '));
        std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) { return a.stride > b.stride; });
        std::vector<std::string> texts;
        for (const Entry& entry : entries)
            texts.push_back(entry.text);
        return join(texts, ", ");
    }

    void addDimensions()
    {
        for (std::size_t axis = 0; axis < m_topology.axes().size(); ++axis) {
            const PhysicalAxis& physical = m_topology.axes()[axis];
            m_drawing.dimensions.push_back(
                {physical.name, kindOf(physical), physical.length, physical.wraps, meshTextAlong(axis)});
        }
    }

    void addDevices()
    {
        m_drawing.devices.reserve(at(m_topology.deviceCount()));
        for (DeviceId device = 0; device < m_topology.deviceCount(); ++device)
            m_drawing.devices.push_back({m_placement ? -1 : device, m_topology.coordinates(device), {}});
        if (!m_placement)
            return;
        const Mesh& mesh = m_placement->mesh();
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
            DrawnDevice& device = m_drawing.devices[at(m_placement->deviceAt(position))];
            device.id = mesh.deviceAt(position);
            for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
                if (mesh.axes()[axis].size == 1)
                    continue;
                if (!device.meshText.empty())
                    device.meshText += ", ";
                device.meshText += mesh.axes()[axis].name;
                device.meshText += ' ';
                device.meshText += std::to_string(mesh.coordinate(position, axis));
            }
        }
        m_drawing.deviceColours = DeviceColours(mesh);
    }

    void addLinks(std::size_t axis)
    {
        const PhysicalAxis& physical = m_topology.axes()[axis];
        std::vector<std::int64_t> unit(m_topology.axes().size(), 0);
        unit[axis] = 1;
        const DeviceId stride = m_topology.deviceAt(unit);
        m_drawing.links.reserve(m_drawing.links.size() + at(m_topology.deviceCount()));
        for (DeviceId device = 0; device < m_topology.deviceCount(); ++device) {
            const std::int64_t place = m_topology.coordinate(device, axis);
            switch (physical.kind) {
            case AxisKind::Torus:
                if (place + 1 < physical.length)
                    addLink(axis, device, device + stride, false);
                else if (physical.wraps)
                    addLink(axis, device, device - place * stride, true);
                break;
            case AxisKind::FullMesh:
                for (std::int64_t other = place + 1; other < physical.length; ++other)
                    addLink(axis, device, device + (other - place) * stride, false);
                break;
            case AxisKind::Switch:
                addLink(axis, device, hostSwitch(axis, device - place * stride), false);
                break;
            case AxisKind::Network:
                addLink(axis, device, network(axis), false);
                break;
            }
        }
    }

    void addLink(std::size_t axis, DeviceId device, std::int64_t to, bool isWrap)
    {
        const LinkSpec& spec = m_topology.axes()[axis].link;
        std::vector<std::string> meshAxes;
        if (m_use)
            meshAxes
                = m_topology.axes()[axis].kind == AxisKind::FullMesh ? m_use->ofPair(device, to) : m_use->ofPort(device, axis);
        m_drawing.links.push_back(
            {device, to, axis, isWrap, linkKindName(spec.kind), spec.bytesPerSecond, spec.latencySeconds, std::move(meshAxes)});
    }

    /// The node of the switch that joins the line of devices which begins with `first`.
    std::int64_t hostSwitch(std::size_t axis, DeviceId first)
    {
        const auto [found, isNew] = m_hostSwitches.try_emplace(first, nextSwitch());
        if (isNew) {
            const PhysicalAxis& physical = m_topology.axes()[axis];
            const std::int64_t host = first / physical.length;
            const std::string name = fmt::format("{} switch of host {}", linkKindName(physical.link.kind), host);
            std::string tooltip = fmt::format("{}\n{} ports of {} each way, {} through it", name, physical.length,
                bandwidthText(physical.link.bytesPerSecond), formatSeconds(physical.link.latencySeconds));
            if (physical.inSwitchBytesPerSecond > 0.0)
                tooltip += fmt::format("\nadds up all-reduces itself, {}", bandwidthText(physical.inSwitchBytesPerSecond));
            m_drawing.switches.push_back({name, host, tooltip});
        }
        return found->second;
    }

    std::int64_t network(std::size_t axis)
    {
        if (m_network < 0) {
            m_network = nextSwitch();
            const PhysicalAxis& physical = m_topology.axes()[axis];
            const std::int64_t rails = m_topology.deviceCount() / physical.length;
            m_drawing.switches.push_back({"network", -1,
                fmt::format("network between {} hosts\n{}\na port of {} each way for each device, {} through it", physical.length,
                    rails > 1 ? fmt::format("{} rails (a switch for each place in a host) and one switch above them", rails)
                              : std::string("one switch"),
                    bandwidthText(physical.link.bytesPerSecond), formatSeconds(physical.link.latencySeconds))});
        }
        return m_network;
    }

    std::int64_t nextSwitch() const { return m_topology.deviceCount() + static_cast<std::int64_t>(m_drawing.switches.size()); }

    void addMeshAxes()
    {
        const Mesh& mesh = m_placement->mesh();
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
            DrawnMeshAxis drawn;
            drawn.name = mesh.axes()[axis].name;
            drawn.size = mesh.axes()[axis].size;
            drawn.groups = mesh.deviceCount() / drawn.size;
            drawn.sharesWith = m_use->sharing(axis);
            addFigures(drawn, axis);
            m_drawing.meshAxes.push_back(std::move(drawn));
        }
    }

    void addFigures(DrawnMeshAxis& drawn, std::size_t axis) const
    {
        if (drawn.size == 1)
            return;
        const AxisRefs whole = {wholeAxis(m_placement->mesh(), axis)};
        std::vector<std::string> kinds;
        bool isTorus = false;
        bool allWrap = true;
        for (const GroupAxis& group : m_placement->groupAxes(whole)) {
            if (drawn.bytesPerSecond == 0.0 || group.link.bytesPerSecond < drawn.bytesPerSecond)
                drawn.bytesPerSecond = group.link.bytesPerSecond;
            drawn.latencySeconds = std::max(drawn.latencySeconds, group.link.latencySeconds);
            isTorus = isTorus || group.kind == GroupKind::Torus;
            allWrap = allWrap && (group.kind != GroupKind::Torus || group.wraps);
            if (const std::string kind = linkKindName(group.link.kind); std::ranges::find(kinds, kind) == kinds.end())
                kinds.push_back(kind);
        }
        drawn.wraps = isTorus && allWrap;
        drawn.kind = join(kinds, " and ");
        drawn.where = m_placement->mesh().hasDefaultOrder() ? placesOf(axis) : "in its own device order";
    }

    /// `x`, `y (4 of 16, every 2)`.
    std::string placesOf(std::size_t meshAxis) const
    {
        std::vector<std::string> places;
        for (const AxisPart& part : m_placement->parts(meshAxis)) {
            const PhysicalAxis& physical = m_topology.axes()[part.physicalAxis];
            if (part.size == physical.length)
                places.push_back(physical.name);
            else
                places.push_back(fmt::format("{} ({} of {}{})", physical.name, part.size, physical.length,
                    part.stride == 1 || physical.kind != AxisKind::Torus ? "" : fmt::format(", every {}", part.stride)));
        }
        return join(places, " and ");
    }

    const Machine& m_machine;
    const Topology& m_topology;
    const MeshPlacement* m_placement;
    std::optional<LinkUse> m_use;
    TopologyDrawing m_drawing;
    std::unordered_map<DeviceId, std::int64_t> m_hostSwitches; ///< by the first device of the host
    std::int64_t m_network = -1;
};

} // namespace

Result<TopologyDrawing> machinePicture(const Machine& machine, const MeshPlacement* placement)
{
    if (machine.deviceCount() > kLargestDrawnMachine)
        return Problem{"MW1810",
            fmt::format("a machine of {} devices is too large to draw; at most {}", machine.deviceCount(), kLargestDrawnMachine)};
    return MachinePainter(machine, placement).draw();
}

} // namespace meshwright::sim
