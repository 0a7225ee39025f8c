// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/mesh.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace meshwright {

namespace {

bool isAxisName(std::string_view name)
{
    const auto isWordCharacter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0
        && std::all_of(name.begin(), name.end(), isWordCharacter);
}

Problems axisProblems(const std::vector<MeshAxis>& axes)
{
    Problems problems;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const Place place{{}, 0, 0, fmt::format("mesh.axes[{}]", i)};
        if (!isAxisName(axes[i].name))
            problems.push_back({"MW1110", fmt::format("\"{}\" is not a name for a mesh axis", axes[i].name),
                "use letters, digits and underscores, beginning with a letter", place});
        else if (!seen.insert(axes[i].name).second)
            problems.push_back(
                {"MW1111", fmt::format("two mesh axes are named \"{}\"", axes[i].name), "rename one of them", place});
        if (axes[i].size < 1)
            problems.push_back(
                {"MW1112", fmt::format("mesh axis \"{}\": the size must be at least 1, got {}", axes[i].name, axes[i].size),
                    "give the number of devices along the axis", place});
    }
    return problems;
}

std::optional<std::int64_t> devicesOf(const std::vector<MeshAxis>& axes)
{
    std::int64_t count = 1;
    for (const MeshAxis& axis : axes) {
        const auto next = checkedMultiply(count, axis.size);
        if (!next || *next > kLargestMesh)
            return std::nullopt;
        count = *next;
    }
    return count;
}

Problems orderProblems(const std::vector<DeviceId>& order, std::int64_t deviceCount)
{
    Problems problems;
    const Place place{{}, 0, 0, "mesh.device_order"};
    if (static_cast<std::int64_t>(order.size()) != deviceCount)
        problems.push_back(
            {"MW1114", fmt::format("the device order lists {} devices, the mesh axes need {}", order.size(), deviceCount),
                fmt::format("list {} devices", deviceCount), place});
    std::set<DeviceId> seen;
    for (const DeviceId device : order) {
        if (device < 0)
            problems.push_back(
                {"MW1115", fmt::format("the device order names device {}", device), "device ids begin at 0", place});
        else if (!seen.insert(device).second)
            problems.push_back(
                {"MW1115", fmt::format("the device order names device {} twice", device), "name each device once", place});
    }
    return problems;
}

} // namespace

Result<Mesh> Mesh::create(std::vector<MeshAxis> axes, std::vector<DeviceId> order)
{
    Problems problems = axisProblems(axes);
    if (!problems.empty())
        return problems;

    const auto deviceCount = devicesOf(axes);
    if (!deviceCount)
        return Problem{"MW1113", fmt::format("the mesh axes make more than {} devices", kLargestMesh), "use smaller axes",
            Place{{}, 0, 0, "mesh"}};
    if (!order.empty())
        append(problems, orderProblems(order, *deviceCount));
    if (!problems.empty())
        return problems;

    Mesh mesh;
    mesh.m_axes = std::move(axes);
    mesh.m_deviceCount = *deviceCount;
    mesh.m_order = std::move(order);
    bool isDefault = true;
    for (std::size_t k = 0; k < mesh.m_order.size(); ++k)
        isDefault = isDefault && mesh.m_order[k] == static_cast<DeviceId>(k);
    if (isDefault)
        mesh.m_order.clear();
    return mesh;
}

Result<Mesh> Mesh::fromArray(
    std::span<const std::int64_t> deviceShape, std::vector<DeviceId> devices, std::span<const std::string> names)
{
    if (deviceShape.size() != names.size())
        return Problem{"MW1116",
            fmt::format("the device array has rank {} (shape {}), but {} axis names are given ({})", deviceShape.size(),
                fmt::join(deviceShape, "x"), names.size(), fmt::join(names, ", ")),
            fmt::format("reshape the devices to {} dimensions, or give {} names", names.size(), deviceShape.size()),
            Place{{}, 0, 0, "mesh.axes"}, Severity::Error, "one axis name for each dimension of the device array"};
    std::vector<MeshAxis> axes;
    for (std::size_t i = 0; i < names.size(); ++i)
        axes.push_back({names[i], deviceShape[i]});
    return create(std::move(axes), std::move(devices));
}

std::vector<std::string> Mesh::axisNames() const
{
    std::vector<std::string> names;
    for (const MeshAxis& axis : m_axes)
        names.push_back(axis.name);
    return names;
}

std::optional<std::size_t> Mesh::findAxis(std::string_view name) const
{
    for (std::size_t i = 0; i < m_axes.size(); ++i) {
        if (m_axes[i].name == name)
            return i;
    }
    return std::nullopt;
}

std::optional<std::int64_t> Mesh::axisSize(std::string_view name) const
{
    const auto axis = findAxis(name);
    if (!axis)
        return std::nullopt;
    return m_axes[*axis].size;
}

DeviceId Mesh::deviceAt(std::int64_t position) const
{
    assert(position >= 0 && position < m_deviceCount);
    return m_order.empty() ? position : m_order[static_cast<std::size_t>(position)];
}

std::vector<DeviceId> Mesh::deviceOrder() const
{
    std::vector<DeviceId> devices;
    devices.reserve(static_cast<std::size_t>(m_deviceCount));
    for (std::int64_t position = 0; position < m_deviceCount; ++position)
        devices.push_back(deviceAt(position));
    return devices;
}

std::int64_t Mesh::stride(std::size_t axis) const
{
    assert(axis < m_axes.size());
    std::int64_t stride = 1;
    for (std::size_t i = axis + 1; i < m_axes.size(); ++i)
        stride *= m_axes[i].size;
    return stride;
}

std::int64_t Mesh::coordinate(std::int64_t position, std::size_t axis) const
{
    return position / stride(axis) % m_axes[axis].size;
}

std::string Mesh::text() const
{
    if (m_axes.empty())
        return "one device";
    std::string text;
    for (const MeshAxis& axis : m_axes)
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
    return text;
}

Result<Mesh> parseMesh(std::string_view text, std::vector<DeviceId> order)
{
    std::vector<MeshAxis> axes;
    Problems problems;
    if (!trimmed(text).empty()) {
        for (const std::string& part : split(text, ',')) {
            const auto equals = part.find('=');
            const auto size
                = equals == std::string::npos ? std::nullopt : parseInteger(trimmed(std::string_view(part).substr(equals + 1)));
            if (!size) {
                problems.push_back({"MW1117", fmt::format("\"{}\" is not an axis with a size", trimmed(part)),
                    "write a mesh as name=size,name=size: data=4,model=2", Place{{}, 0, 0, "mesh"}});
                continue;
            }
            axes.push_back({std::string(trimmed(std::string_view(part).substr(0, equals))), *size});
        }
    }
    if (!problems.empty())
        return problems;
    return Mesh::create(std::move(axes), std::move(order));
}

Result<std::vector<DeviceId>> parseDeviceOrder(std::string_view text)
{
    std::vector<DeviceId> order;
    Problems problems;
    for (const std::string& part : split(text, ',')) {
        if (const auto device = parseInteger(trimmed(part)))
            order.push_back(*device);
        else
            problems.push_back({"MW1118", fmt::format("\"{}\" is not a device id", trimmed(part)), "list device ids as 0,1,2,3"});
    }
    if (!problems.empty())
        return problems;
    return order;
}

} // namespace meshwright
