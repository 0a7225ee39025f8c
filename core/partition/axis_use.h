// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/support/result.h"

#include <cstdint>
#include <set>
#include <vector>

namespace meshwright {

/// The axes, by index, along which devices hold different data, for each value of a device function: those that its layout names, and
/// inside of manual computations those along which what it is made of differs. Never too few.
std::vector<std::set<std::int32_t>> differingAxes(const DeviceFunction& device);

/// What devices along one mesh axis do alike.
struct AxisWork {
    std::size_t axis = 0;
    bool isUsed = false; ///< some value differs along it
    double flops = 0.0; ///< of one device's products, a multiply-add counting two; loops count as often as they run
    double alikeFlops = 0.0; ///< of those whose operands and result are the same all along the axis
};

/// For every axis of the mesh.
std::vector<AxisWork> axisWork(const DeviceFunction& device, const Mesh& mesh);

/// A warning MW1263 for each axis of more than one device along which nothing differs, with the FLOPs that are computed several times.
Problems unusedAxisWarnings(const DeviceFunction& device, const Mesh& mesh);

} // namespace meshwright
