// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/sharding/device_colours.h"
#include "core/sharding/layout.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// A part of an array that a device holds, and who gave it.
struct HeldPart {
    IndexBox box;
    std::vector<DeviceId> from; ///< itself; another device; or several, whose partial values were combined

    friend bool operator==(const HeldPart&, const HeldPart&) = default;
};

/// What all devices hold at one time.
struct ReshardFrame {
    std::string heading; ///< "1. all_to_all over x"
    std::string caption; ///< "P('x', None), 1 KiB a device"
    std::vector<std::vector<HeldPart>> held; ///< by device, in the order of `ReshardDrawing::devices`
};

struct ReshardDrawing {
    Shape shape;
    std::vector<DeviceId> devices;
    std::vector<ReshardFrame> frames; ///< before the first collective, then after each of them
    std::optional<DeviceColours> colours = {}; ///< without it, colours follow the device ids
    std::size_t mostDevices = 64; ///< panels; the rest is counted
    std::size_t mostSheets = 16; ///< parts of the leading dimensions of an array of rank 3 and up, likewise
};

/// The pictures of a change of layout, one for each frame, all of one size: who holds which slice, and who it came from.
///
/// Each device has a panel in which the whole array is an outline and what the device holds is filled, in the colour of the device that
/// gave it; what came from others says from whom, and combined partial sums are hatched. Rows and columns are the last two dimensions; parts
/// of the leading ones lie below each other. Items have the ids `device:N`, N being the device id, with a tooltip that says all ranges.
std::vector<DisplayList> drawReshard(const ReshardDrawing& drawing);

} // namespace meshwright
