// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/overlap.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace meshwright::sim {

OverlapEnd prefetchOverlap(std::span<const double> communication, std::span<const double> computation, std::int64_t window)
{
    assert(communication.size() == computation.size() && window >= 1);
    const auto ahead = static_cast<std::size_t>(window);
    std::vector<double> computed(computation.size(), 0.0);
    OverlapEnd end;
    for (std::size_t i = 0; i < computation.size(); ++i) {
        const double room = i >= ahead ? computed[i - ahead] : 0.0;
        end.communicationSeconds = std::max(end.communicationSeconds, room) + communication[i];
        end.computationSeconds = std::max(end.computationSeconds, end.communicationSeconds) + computation[i];
        computed[i] = end.computationSeconds;
    }
    return end;
}

OverlapEnd bucketOverlap(std::span<const double> ready, std::span<const double> reduction, double computationSeconds)
{
    assert(ready.size() == reduction.size());
    OverlapEnd end{0.0, computationSeconds};
    for (std::size_t i = 0; i < ready.size(); ++i)
        end.communicationSeconds = std::max(end.communicationSeconds, ready[i]) + reduction[i];
    return end;
}

double collectiveMatmulSeconds(double computeSeconds, std::int64_t pieces, double transferSeconds, double latencySeconds)
{
    assert(pieces >= 1);
    const double piece = computeSeconds / static_cast<double>(pieces);
    return piece + static_cast<double>(pieces - 1) * std::max(piece, transferSeconds + latencySeconds);
}

double slowedOverlapSeconds(double computeSeconds, double communicationSeconds, double slowdown)
{
    assert(slowdown >= 0.0 && slowdown <= 1.0);
    return std::max(communicationSeconds, computeSeconds + slowdown * communicationSeconds);
}

double pipelineSeconds(
    std::int64_t stages, std::int64_t microbatches, std::int64_t chunks, double forwardSeconds, double backwardSeconds)
{
    assert(stages >= 1 && microbatches >= 1 && chunks >= 1);
    const double both = forwardSeconds + backwardSeconds;
    return static_cast<double>(microbatches) * both + static_cast<double>(stages - 1) * both / static_cast<double>(chunks);
}

double pipelineBubbleShare(std::int64_t stages, std::int64_t microbatches, std::int64_t chunks)
{
    assert(stages >= 1 && microbatches >= 1 && chunks >= 1);
    return static_cast<double>(stages - 1) / static_cast<double>(chunks * microbatches + stages - 1);
}

} // namespace meshwright::sim
