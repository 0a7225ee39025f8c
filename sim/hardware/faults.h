// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshwright::sim {

/// A device that computes slower than the others.
struct SlowDevice {
    DeviceId device = 0;
    double speed = 1.0; ///< of the others'; > 0

    friend bool operator==(const SlowDevice&, const SlowDevice&) = default;
};

/// A link that carries less than it should, both ways: of a torus that from the device to the next place of the axis, of a switch or
/// network the device's port, of a full mesh all links of the device.
struct LinkFault {
    DeviceId device = 0;
    std::size_t axis = 0; ///< into Topology::axes()
    double share = 0.0; ///< of the bandwidth that is left; 0: failed

    friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

/// What is wrong with a machine.
struct Faults {
    std::vector<SlowDevice> devices = {};
    std::vector<LinkFault> links = {};

    bool empty() const { return devices.empty() && links.empty(); }

    friend bool operator==(const Faults&, const Faults&) = default;
};

} // namespace meshwright::sim
