// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/device_colours.h"

#include <array>

namespace meshwright {

namespace {

constexpr Colour kUnknownDevice{0x99, 0x99, 0x99};

/// How far towards white the last device along the other axes goes.
constexpr double kLightest = 0.55;

Colour hue(std::int64_t at, std::int64_t count)
{
    // Tol's "sunset" without its two darkest ends, which would swallow the difference in lightness.
    static const std::array kScale = {colourFromHex(0x4a7bb7), colourFromHex(0x6ea6cd), colourFromHex(0x98cae1),
        colourFromHex(0xc2e4ef), colourFromHex(0xeaeccc), colourFromHex(0xfeda8b), colourFromHex(0xfdb366),
        colourFromHex(0xf67e4b), colourFromHex(0xdd3d2d)};
    return onScale(kScale, count > 1 ? static_cast<double>(at) / static_cast<double>(count - 1) : 0.0);
}

} // namespace

DeviceColours::DeviceColours(const Mesh& mesh)
{
    std::size_t hueAxis = 0;
    while (hueAxis < mesh.axes().size() && mesh.axes()[hueAxis].size == 1)
        ++hueAxis;
    if (hueAxis == mesh.axes().size()) {
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
            m_colours.emplace(mesh.deviceAt(position), hue(position, mesh.deviceCount()));
        return;
    }
    // All axes before the hue axis have size 1, so the rest of a position is what lies below its stride.
    const std::int64_t stride = mesh.stride(hueAxis);
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
        const double lightness
            = stride > 1 ? kLightest * static_cast<double>(position % stride) / static_cast<double>(stride - 1) : 0.0;
        m_colours.emplace(mesh.deviceAt(position), blend(hue(position / stride, mesh.axes()[hueAxis].size), kWhite, lightness));
    }
}

DeviceColours::DeviceColours(const std::vector<DeviceId>& devices)
{
    for (std::size_t i = 0; i < devices.size(); ++i)
        m_colours.emplace(devices[i], hue(static_cast<std::int64_t>(i), static_cast<std::int64_t>(devices.size())));
}

Colour DeviceColours::of(DeviceId device) const
{
    const auto found = m_colours.find(device);
    return found == m_colours.end() ? kUnknownDevice : found->second;
}

} // namespace meshwright
