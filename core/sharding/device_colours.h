// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/support/colour.h"

#include <unordered_map>
#include <vector>

namespace meshwright {

/// A colour for each device, the same in every drawing.
///
/// Hue follows one mesh axis and lightness the others, so that neighbours in the mesh look alike. The hues lie on a scale that
/// people with colour blindness can tell apart. Source of the scale: P. Tol, "Colour Schemes", SRON/EPS/TN/09-002, 2021, "sunset".
class DeviceColours {
public:
    /// Hue by the first mesh axis longer than 1, lightness by the position along all others.
    explicit DeviceColours(const Mesh& mesh);

    /// Hue by the place in this list.
    explicit DeviceColours(const std::vector<DeviceId>& devices);

    /// The colour of a device; grey for one that is not in the mesh.
    Colour of(DeviceId device) const;

private:
    std::unordered_map<DeviceId, Colour> m_colours;
};

} // namespace meshwright
