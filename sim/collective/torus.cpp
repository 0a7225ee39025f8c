// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/torus.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <vector>

namespace meshwright::sim {

namespace {

double axisAllGatherSeconds(double arrayBytes, const TorusAxis& axis, Directions directions)
{
    return axis.wraps ? ringAllGatherSeconds(arrayBytes, axis.length, axis.link, directions)
                      : lineAllGatherSeconds(arrayBytes, axis.length, axis.link);
}

} // namespace

double torusAllGatherSeconds(double arrayBytes, std::span<const TorusAxis> axes, Directions directions)
{
    double seconds = 0.0;
    double bytes = arrayBytes;
    for (const TorusAxis& axis : axes) {
        seconds += axisAllGatherSeconds(bytes, axis, directions);
        bytes /= static_cast<double>(axis.length);
    }
    return seconds;
}

double torusAllGatherAtOnceSeconds(double arrayBytes, std::span<const TorusAxis> axes)
{
    const std::size_t count = axes.size();
    std::vector<double> bytes(count, arrayBytes / static_cast<double>(std::max<std::size_t>(count, 1)));
    double seconds = 0.0;
    for (std::size_t phase = 0; phase < count; ++phase) {
        double slowest = 0.0;
        for (std::size_t part = 0; part < count; ++part) {
            const TorusAxis& axis = axes[(part + phase) % count];
            slowest = std::max(slowest, axisAllGatherSeconds(bytes[part], axis, Directions::Both));
            bytes[part] /= static_cast<double>(axis.length);
        }
        seconds += slowest;
    }
    return seconds;
}

double torusAllToAllSeconds(double arrayBytes, std::span<const TorusAxis> axes)
{
    double latency = 0.0;
    double busiest = 0.0;
    for (const TorusAxis& axis : axes) {
        LinkSpec noLatency = axis.link;
        noLatency.latencySeconds = 0.0;
        const double bandwidth = axis.wraps ? ringAllToAllSeconds(arrayBytes, axis.length, noLatency, Directions::Both)
                                            : lineAllToAllSeconds(arrayBytes, axis.length, noLatency);
        busiest = std::max(busiest, bandwidth);
        latency += static_cast<double>(axis.wraps ? axis.length / 2 : axis.length - 1) * axis.link.latencySeconds;
    }
    return latency + busiest;
}

double torusBroadcastSeconds(double arrayBytes, std::span<const TorusAxis> axes, std::int64_t chunks)
{
    assert(chunks >= 1);
    std::int64_t hops = 0;
    double latency = 0.0;
    double width = std::numeric_limits<double>::infinity();
    for (const TorusAxis& axis : axes) {
        if (axis.length == 1)
            continue;
        hops += axis.length - 1;
        latency += static_cast<double>(axis.length - 1) * axis.link.latencySeconds;
        width = std::min(width, axis.link.bytesPerSecond * (axis.wraps ? 2.0 : 1.0));
    }
    if (hops == 0)
        return 0.0;
    return latency + static_cast<double>(hops - 1 + chunks) * arrayBytes / (static_cast<double>(chunks) * width);
}

} // namespace meshwright::sim
