// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/placement.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace meshwright::sim {

namespace {

using Sizes = std::vector<std::int64_t>;

/// True for the axis whose devices are closest: it is filled first.
bool isInner(const PhysicalAxis& axis)
{
    return axis.kind == AxisKind::Switch || axis.kind == AxisKind::FullMesh || axis.link.kind == LinkKind::OnChip;
}

std::optional<std::size_t> innerAxis(const Topology& topology)
{
    const auto found = std::ranges::find_if(topology.axes(), isInner);
    if (found == topology.axes().end())
        return std::nullopt;
    return static_cast<std::size_t>(found - topology.axes().begin());
}

/// Calls `visit` with every way to write `product` as one factor for each of `count` places, the largest first factor first.
/// `allowed(i, factor)` says which factors may stand at place i.
void forEachFactoring(std::int64_t product, std::size_t count, const std::function<bool(std::size_t, std::int64_t)>& allowed,
    const std::function<void(const Sizes&)>& visit)
{
    Sizes divisors;
    for (std::int64_t low = 1; low * low <= product; ++low) {
        if (product % low != 0)
            continue;
        divisors.push_back(low);
        if (low * low != product)
            divisors.push_back(product / low);
    }
    std::ranges::sort(divisors, std::greater{});
    Sizes factors(count, 1);
    const std::function<void(std::size_t, std::int64_t)> place = [&](std::size_t index, std::int64_t left) {
        if (index == count) {
            if (left == 1)
                visit(factors);
            return;
        }
        for (const std::int64_t factor : divisors) {
            if (left % factor != 0 || !allowed(index, factor))
                continue;
            factors[index] = factor;
            place(index + 1, left / factor);
        }
    };
    place(0, product);
}

/// How many hosts or slices a box of the machine, or a part of one, lies in.
std::int64_t overNetwork(const Topology& topology, const Sizes& sizes)
{
    const PhysicalAxis* network = topology.network();
    return network == nullptr ? 1 : sizes[static_cast<std::size_t>(network - topology.axes().data())];
}

/// The lengths of the box that `devices` devices take; nothing when there is none.
std::optional<Sizes> usedBox(const Topology& topology, std::int64_t devices)
{
    Sizes lengths;
    for (const PhysicalAxis& axis : topology.axes())
        lengths.push_back(axis.length);
    if (devices == topology.deviceCount())
        return lengths;
    const auto inner = innerAxis(topology);
    std::optional<Sizes> best;
    const std::int64_t most = inner ? lengths[*inner] : 1;
    for (std::int64_t near = most; near >= 1 && !best; --near) {
        if (devices % near != 0)
            continue;
        std::pair<std::int64_t, std::int64_t> bestRank;
        const auto allowed = [&](std::size_t index, std::int64_t factor) {
            return inner && index == *inner ? factor == near : factor <= lengths[index];
        };
        forEachFactoring(devices, lengths.size(), allowed, [&](const Sizes& box) {
            const std::pair rank(overNetwork(topology, box), std::accumulate(box.begin(), box.end(), std::int64_t{0}));
            if (!best || rank < bestRank) {
                bestRank = rank;
                best = box;
            }
        });
    }
    return best;
}

/// What one mesh axis of size `size` takes of each physical axis. `used` are the lengths there are, `taken` what later mesh axes hold.
Sizes takeAxis(
    const Topology& topology, const Sizes& used, const Sizes& taken, std::int64_t size, std::optional<std::size_t> inner)
{
    const std::int64_t near = inner ? std::gcd(size, used[*inner] / taken[*inner]) : 1;
    const auto allowed = [&](std::size_t index, std::int64_t factor) {
        return inner && index == *inner ? factor == near : used[index] / taken[index] % factor == 0;
    };
    Sizes best;
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t> bestRank;
    forEachFactoring(size, used.size(), allowed, [&](const Sizes& factors) {
        std::int64_t wholeSize = 1;
        std::int64_t wholeAxes = 0;
        std::int64_t fresh = 1;
        for (std::size_t i = 0; i < factors.size(); ++i) {
            if (factors[i] == used[i] && factors[i] > 1) {
                wholeSize *= factors[i];
                ++wholeAxes;
            }
            if (taken[i] == 1)
                fresh *= factors[i];
        }
        const auto rank = std::tuple{-overNetwork(topology, factors), wholeSize, wholeAxes, fresh};
        if (best.empty() || rank > bestRank) {
            best = factors;
            bestRank = rank;
        }
    });
    assert(!best.empty()); // the sizes of all mesh axes multiply to the box, so each prime finds room
    return best;
}

} // namespace

DeviceId MeshPlacement::deviceAt(std::int64_t position) const
{
    if (!m_mesh.hasDefaultOrder())
        return m_mesh.deviceAt(position);
    Sizes place(m_topology.axes().size(), 0);
    for (std::size_t axis = 0; axis < m_parts.size(); ++axis) {
        std::int64_t left = m_mesh.coordinate(position, axis);
        for (auto part = m_parts[axis].rbegin(); part != m_parts[axis].rend(); ++part) {
            place[part->physicalAxis] += left % part->size * part->stride;
            left /= part->size;
        }
    }
    return m_topology.deviceAt(place);
}

std::vector<DeviceId> MeshPlacement::deviceOrder() const
{
    std::vector<DeviceId> order;
    order.reserve(static_cast<std::size_t>(m_mesh.deviceCount()));
    for (std::int64_t position = 0; position < m_mesh.deviceCount(); ++position)
        order.push_back(deviceAt(position));
    return order;
}

GroupAxis MeshPlacement::groupAxis(std::size_t physicalAxis, std::int64_t size, std::int64_t stride) const
{
    const PhysicalAxis& axis = m_topology.axes()[physicalAxis];
    GroupAxis result;
    result.size = size;
    result.link = axis.link;
    result.physicalAxis = physicalAxis;
    result.name = axis.name;
    switch (axis.kind) {
    case AxisKind::Torus:
        result.kind = GroupKind::Torus;
        result.wraps = axis.wraps && size * stride == axis.length && size >= 3;
        result.link.bytesPerSecond /= static_cast<double>(stride);
        result.link.latencySeconds *= static_cast<double>(stride);
        result.stride = stride;
        result.opposite = axis.wraps && size == 2 && size * stride == axis.length;
        if (result.opposite)
            result.link.bytesPerSecond *= 2.0; // both ways round are equally long
        break;
    case AxisKind::Switch:
        result.kind = GroupKind::Switch;
        result.inSwitchBytesPerSecond = axis.inSwitchBytesPerSecond;
        break;
    case AxisKind::FullMesh:
        result.kind = GroupKind::FullMesh;
        break;
    case AxisKind::Network:
        result.kind = GroupKind::Network;
        result.inSwitchBytesPerSecond = axis.inSwitchBytesPerSecond;
        if (axis.perLeaf > 0 && axis.perLeaf < axis.length) {
            // The groups that interleave share the up-links of a leaf; a ring crosses each once for every group.
            result.perLeaf = std::clamp<std::int64_t>(axis.perLeaf / stride, 1, size);
            const double up = std::min(1.0, static_cast<double>(result.perLeaf) / axis.oversubscription);
            if (result.perLeaf < size) {
                result.link.bytesPerSecond *= up;
                result.oversubscription = std::max(1.0, axis.oversubscription * up);
            }
        }
        break;
    }
    return result;
}

/// Appends the parts of a mesh axis or sub-axis; false when it cuts across a part in a way that no part describes.
bool MeshPlacement::partsOf(const AxisRef& axis, std::vector<AxisPart>& parts) const
{
    const std::int64_t from = axis.pre;
    const std::int64_t to = axis.pre * axis.size;
    std::int64_t before = 1; // product of the sizes of the parts passed
    for (const AxisPart& part : m_parts[static_cast<std::size_t>(axis.axis)]) {
        const std::int64_t after = before * part.size;
        const std::int64_t low = std::max(from, before);
        const std::int64_t high = std::min(to, after);
        if (low < high) {
            if (low % before != 0 || high % low != 0 || after % high != 0)
                return false;
            parts.push_back({part.physicalAxis, high / low, part.stride * (after / high)});
        }
        before = after;
    }
    return true;
}

std::vector<GroupAxis> MeshPlacement::groupAxesOf(std::vector<AxisPart> parts) const
{
    std::ranges::stable_sort(parts, [](const AxisPart& a, const AxisPart& b) {
        return std::tuple{a.physicalAxis, -a.stride} < std::tuple{b.physicalAxis, -b.stride};
    });
    std::vector<AxisPart> merged;
    for (const AxisPart& part : parts) {
        if (!merged.empty() && merged.back().physicalAxis == part.physicalAxis
            && merged.back().stride == part.size * part.stride) {
            merged.back().size *= part.size;
            merged.back().stride = part.stride;
        } else {
            merged.push_back(part);
        }
    }
    std::vector<GroupAxis> result;
    for (const AxisPart& part : merged) {
        if (part.size > 1)
            result.push_back(groupAxis(part.physicalAxis, part.size, part.stride));
    }
    return result;
}

std::vector<GroupAxis> MeshPlacement::groupAxes(std::span<const AxisRef> axes) const
{
    if (m_mesh.hasDefaultOrder()) {
        std::vector<AxisPart> parts;
        if (std::ranges::all_of(axes, [&](const AxisRef& axis) { return partsOf(axis, parts); }))
            return groupAxesOf(std::move(parts));
    }
    std::vector<std::vector<DeviceId>> groups = deviceGroups(AxisRefs(axes.begin(), axes.end()), m_mesh);
    for (auto& group : groups) {
        for (DeviceId& member : group)
            member = deviceAt(member);
    }
    return groupAxesOfDevices(groups);
}

namespace {

/// How the members of a group lie along each physical axis: how many places, and how far apart. Nothing when they do not fill a box, or
/// not evenly spaced.
std::optional<std::vector<AxisPart>> boxOf(const std::vector<DeviceId>& group, const Topology& topology)
{
    std::vector<AxisPart> box;
    std::int64_t volume = 1;
    for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
        std::set<std::int64_t> places;
        for (const DeviceId device : group)
            places.insert(topology.coordinate(device, axis));
        const auto size = static_cast<std::int64_t>(places.size());
        std::int64_t stride = 1;
        if (size > 1 && topology.axes()[axis].kind == AxisKind::Torus) {
            stride = *std::next(places.begin()) - *places.begin();
            if (*places.rbegin() - *places.begin() != (size - 1) * stride)
                return std::nullopt;
            std::int64_t expected = *places.begin();
            for (const std::int64_t place : places) {
                if (place != expected)
                    return std::nullopt;
                expected += stride;
            }
        }
        volume *= size;
        box.push_back({axis, size, stride});
    }
    if (volume != static_cast<std::int64_t>(group.size()))
        return std::nullopt;
    return box;
}

} // namespace

std::vector<GroupAxis> MeshPlacement::groupAxesOfDevices(const std::vector<std::vector<DeviceId>>& groups) const
{
    if (groups.empty() || groups.front().size() <= 1)
        return {};
    const auto first = boxOf(groups.front(), m_topology);
    const bool alike = first && std::ranges::all_of(groups, [&](const auto& group) { return boxOf(group, m_topology) == first; });
    if (alike)
        return groupAxesOf(*first);
    return {scattered(groups)};
}

GroupAxis MeshPlacement::scattered(const std::vector<std::vector<DeviceId>>& groups) const
{
    const std::vector<PhysicalAxis>& axes = m_topology.axes();
    GroupAxis result;
    result.kind = GroupKind::Scattered;
    result.name = "scattered";
    result.size = static_cast<std::int64_t>(groups.front().size());
    result.link = {std::numeric_limits<double>::infinity(), 0.0, axes.front().link.kind};

    // Messages on the link that leaves a device along a torus axis, up or down.
    std::vector<std::int64_t> load(static_cast<std::size_t>(m_topology.deviceCount()) * axes.size() * 2, 0);
    const auto loadAt = [&](DeviceId device, std::size_t axis, bool up) -> std::int64_t& {
        return load[(static_cast<std::size_t>(device) * axes.size() + axis) * 2 + (up ? 1 : 0)];
    };
    const auto useSwitch = [&](const PhysicalAxis& axis) {
        result.link.bytesPerSecond = std::min(result.link.bytesPerSecond, axis.link.bytesPerSecond);
        return axis.link.latencySeconds;
    };
    for (const auto& group : groups) {
        for (std::size_t i = 0; i < group.size(); ++i) {
            Sizes place = m_topology.coordinates(group[i]);
            const Sizes target = m_topology.coordinates(group[(i + 1) % group.size()]);
            double hop = 0.0;
            for (std::size_t axis = 0; axis < axes.size(); ++axis) {
                if (place[axis] == target[axis])
                    continue;
                if (axes[axis].kind == AxisKind::Network) {
                    hop += useSwitch(axes[axis]); // the spine reaches every GPU of the other host
                    break;
                }
                if (axes[axis].kind != AxisKind::Torus) {
                    hop += useSwitch(axes[axis]);
                    place[axis] = target[axis];
                    continue;
                }
                const std::int64_t length = axes[axis].length;
                const std::int64_t ahead = (target[axis] - place[axis] + length) % length;
                const bool up = axes[axis].wraps ? 2 * ahead <= length : target[axis] > place[axis];
                while (place[axis] != target[axis]) {
                    ++loadAt(m_topology.deviceAt(place), axis, up);
                    hop += axes[axis].link.latencySeconds;
                    place[axis] = (place[axis] + (up ? 1 : length - 1)) % length;
                }
            }
            result.link.latencySeconds = std::max(result.link.latencySeconds, hop);
        }
    }
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        std::int64_t busiest = 0;
        for (DeviceId device = 0; device < m_topology.deviceCount(); ++device)
            busiest = std::max({busiest, loadAt(device, axis, false), loadAt(device, axis, true)});
        if (busiest > 0)
            result.link.bytesPerSecond
                = std::min(result.link.bytesPerSecond, axes[axis].link.bytesPerSecond / static_cast<double>(busiest));
    }
    for (const auto& group : groups) {
        for (const DeviceId device : group)
            result.enteringBytesPerSecond = std::max(result.enteringBytesPerSecond, m_topology.injectionBytesPerSecond(device));
    }
    return result;
}

std::string MeshPlacement::text() const
{
    std::vector<std::string> texts;
    for (std::size_t axis = 0; axis < m_parts.size(); ++axis) {
        if (m_mesh.axes()[axis].size == 1)
            continue;
        std::vector<std::string> places;
        for (const AxisPart& part : m_parts[axis]) {
            const PhysicalAxis& physical = m_topology.axes()[part.physicalAxis];
            if (part.size == physical.length)
                places.push_back(physical.name);
            else
                places.push_back(fmt::format("{} of {} along {}{}", part.size, physical.length, physical.name,
                    part.stride == 1 || physical.kind != AxisKind::Torus ? "" : fmt::format(", every {}", part.stride)));
        }
        texts.push_back(
            fmt::format("{}: {}", m_mesh.axes()[axis].name, m_mesh.hasDefaultOrder() ? join(places, ", ") : "as ordered"));
    }
    std::string result = texts.empty() ? "one device" : join(texts, "; ");
    Sizes lengths;
    for (const PhysicalAxis& axis : m_topology.axes())
        lengths.push_back(axis.length);
    if (lengths != m_used)
        result += fmt::format(" ({} of {} devices: {} of {})", m_mesh.deviceCount(), m_topology.deviceCount(), sizesText(m_used),
            sizesText(lengths));
    return result;
}

Result<MeshPlacement> placeMesh(const Mesh& mesh, const Machine& machine)
{
    const Topology& topology = machine.topology;
    if (mesh.deviceCount() > topology.deviceCount())
        return Problem{"MW1720",
            fmt::format(
                "the mesh {} has {} devices; {} has {}", mesh.text(), mesh.deviceCount(), machine.text(), topology.deviceCount()),
            "use a larger slice, or a smaller mesh"};

    MeshPlacement placement;
    placement.m_mesh = mesh;
    placement.m_topology = topology;
    placement.m_library = machine.chip.interconnect.library;
    placement.m_parts.resize(mesh.axes().size());
    if (!mesh.hasDefaultOrder()) {
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
            if (mesh.deviceAt(position) >= topology.deviceCount())
                return Problem{"MW1721",
                    fmt::format("the device order names device {}; {} has devices 0 to {}", mesh.deviceAt(position),
                        machine.text(), topology.deviceCount() - 1)};
        }
        for (const PhysicalAxis& axis : topology.axes())
            placement.m_used.push_back(axis.length);
        return placement;
    }

    const auto box = usedBox(topology, mesh.deviceCount());
    if (!box)
        return Problem{"MW1722",
            fmt::format(
                "the mesh {} has {} devices, and no block of {} has that many", mesh.text(), mesh.deviceCount(), machine.text()),
            fmt::format("use all {} devices, or give a device order", topology.deviceCount())};
    placement.m_used = *box;
    const auto inner = innerAxis(topology);
    Sizes taken(box->size(), 1);
    for (std::size_t axis = mesh.axes().size(); axis-- > 0;) {
        const Sizes factors = takeAxis(topology, *box, taken, mesh.axes()[axis].size, inner);
        for (std::size_t physical = 0; physical < factors.size(); ++physical) {
            if (factors[physical] > 1)
                placement.m_parts[axis].push_back({physical, factors[physical], taken[physical]});
            taken[physical] *= factors[physical];
        }
    }
    return placement;
}

} // namespace meshwright::sim
