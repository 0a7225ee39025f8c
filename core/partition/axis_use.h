// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
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
    std::string largestAlike; ///< what the largest of these makes
};

/// For every axis of the mesh.
std::vector<AxisWork> axisWork(const DeviceFunction& device, const Mesh& mesh);

/// What is wasted along an axis: a warning MW1270 where nothing differs along it, MW1271 (a note below one half) where a third or more of the
/// products are made alike; nothing for axes of one device. The rule says the FLOPs; the place is `mesh.AXIS`.
std::optional<Problem> axisProblem(const AxisWork& work, const Mesh& mesh);

/// The warnings MW1270 of all axes.
Problems unusedAxisWarnings(const DeviceFunction& device, const Mesh& mesh);

} // namespace meshwright
