// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// What some of the memory is used for, and how it is drawn.
struct DrawnMemoryKind {
    std::string name; ///< `parameters`
    ColourRole role = ColourRole::Compute;
    Hatch hatch = Hatch::None; ///< kinds should differ in more than colour
};

/// Bytes in use on a device from a moment on, until the next.
struct DrawnMemoryMoment {
    double seconds = 0.0;
    std::vector<std::int64_t> bytesByKind; ///< index: the kind
};

/// A device's memory over a step, and how `drawMemory` draws it.
struct MemoryDrawing {
    std::string title = "Memory of a device over the step"; ///< over the picture; empty: no heading
    std::vector<DrawnMemoryKind> kinds; ///< the lowest first
    std::vector<DrawnMemoryMoment> moments; ///< in order of time; several may have the same time
    double endSeconds = 0.0; ///< of the step
    std::int64_t limitBytes = 0; ///< of a device; 0: unknown, no limit lines
    std::int64_t reserveBytes = 0; ///< of it, not for programs
    std::int64_t peakBytes = 0; ///< that the step needs; more than the largest sum when buffers leave gaps
    std::optional<std::size_t> peakMoment = {}; ///< index into moments; nothing: the first with the largest sum
    bool legend = true; ///< the kinds under the picture
    double width = 760.0; ///< pixels; > 0
    double height = 320.0;
};

/// Where time and bytes lie in a picture of `drawMemory`, for guides and read-outs over it.
struct MemoryFrame {
    Point topLeft; ///< of the plot
    double width = 0.0;
    double height = 0.0;
    double endSeconds = 0.0; ///< at the right edge
    double mostBytes = 0.0; ///< at the top edge

    double xOf(double seconds) const;
    double yOf(double bytes) const;
    double secondsAt(double x) const; ///< clamped to the step
};
MemoryFrame memoryFrame(const MemoryDrawing& drawing);

/// Index into moments of what is in use at a time; precondition: not empty.
std::size_t momentAt(const MemoryDrawing& drawing, double seconds);

/// The bytes of all kinds at a moment.
std::int64_t totalBytes(const DrawnMemoryMoment& moment);

/// A stacked area of memory in use: kinds in their colours and hatches with their names on them where they fit, the limit and what is usable
/// of it as lines (with a broken axis edge saying so when they are far above), the peak marked, axes in GiB and ms, a legend.
///
/// A moment that is shorter than a pixel still shows: each column of pixels has the largest of its moments. Items: `memory:peak`, `kind:NAME`,
/// `memory:limit`, with tooltips that give the figures. Preconditions: each moment has a size for each kind; sizes >= 0.
DisplayList drawMemory(const MemoryDrawing& drawing);

} // namespace meshwright
