// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/collective_estimator.h"

#include "sim/collective/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace meshwright::sim {

namespace {

/// More axes than this are taken in the order given: a machine has four.
constexpr std::size_t kMostPermutedAxes = 5;

} // namespace

std::vector<TorusAxis> torusAxes(const std::vector<GroupAxis>& axes)
{
    std::vector<TorusAxis> result;
    for (const GroupAxis& axis : axes)
        result.push_back({axis.size, axis.wraps, axis.link});
    return result;
}

std::string CollectiveEstimator::torusInputs(const std::vector<GroupAxis>& axes) const
{
    std::string text = payloadText();
    if (m_texts) {
        for (const GroupAxis& axis : axes)
            text += fmt::format("; {}: k={} ({}), {}", axis.name, axis.size, axis.wraps ? "ring" : "line", linkText(axis.link));
    }
    return text;
}

/// Reduce-scatter or all-gather over torus axes: every order, the first axes one by one and the rest all at once.
CollectiveCandidate CollectiveEstimator::torusGather(double bytes) const
{
    const std::size_t count = m_axes.size();
    const std::vector<TorusAxis> axes = torusAxes(m_axes);
    const Directions directions = wants(CollectiveAlgorithm::Ring) ? Directions::One : Directions::Both;
    const bool distinct = onePartAnAxis();
    const auto alike = [&](std::size_t a, std::size_t b) {
        return axes[a].length == axes[b].length && axes[a].wraps == axes[b].wraps && axes[a].link == axes[b].link && distinct;
    };
    std::vector<std::uint8_t> order(count);
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    CollectiveCandidate best;
    best.seconds = std::numeric_limits<double>::infinity();
    std::vector<TorusAxis> ordered(count);
    do {
        bool repeats = false; // another order of axes that are alike takes as long
        for (std::size_t i = 1; i < count && !repeats; ++i)
            repeats = order[i - 1] > order[i] && alike(order[i - 1], order[i]);
        if (repeats)
            continue;
        for (std::size_t i = 0; i < count; ++i)
            ordered[i] = axes[order[i]];
        for (std::size_t atOnce = 0; atOnce <= count; ++atOnce) {
            if (atOnce == 1)
                continue; // the same as one more in the sequence
            if (atOnce > 0 && (wants(CollectiveAlgorithm::Ring) || wants(CollectiveAlgorithm::BothWays)))
                continue;
            if (atOnce < count && wants(CollectiveAlgorithm::AllAxes))
                continue;
            const std::size_t oneByOne = count - atOnce;
            std::set<std::size_t> physical;
            for (std::size_t i = oneByOne; i < count && !distinct; ++i)
                physical.insert(m_axes[order[i]].physicalAxis);
            if (!distinct && physical.size() != atOnce)
                continue;
            double left = bytes;
            for (std::size_t i = 0; i < oneByOne; ++i)
                left /= static_cast<double>(ordered[i].length);
            const double seconds = torusAllGatherSeconds(bytes, std::span(ordered).first(oneByOne), directions)
                + torusAllGatherAtOnceSeconds(left, std::span(ordered).subspan(oneByOne));
            if (seconds >= best.seconds)
                continue;
            best.seconds = seconds;
            best.chosen = {wants(CollectiveAlgorithm::Ring) ? CollectiveAlgorithm::Ring
                    : atOnce == count && count > 1          ? CollectiveAlgorithm::AllAxes
                                                            : CollectiveAlgorithm::BothWays,
                order, oneByOne};
        }
    } while (count <= kMostPermutedAxes && std::ranges::next_permutation(order).found);
    best.wireShare = othersShare();
    if (!m_texts)
        return best;

    std::vector<GroupAxis> named;
    for (const std::uint8_t index : best.chosen.order)
        named.push_back(m_axes[index]);
    const bool oneWay = directions == Directions::One;
    const std::size_t oneByOne = best.chosen.oneByOne;
    const char* ring = oneWay ? "(k-1)(alpha + b/(k w))" : "floor(k/2) alpha + (k-1)/(2k) b/w";
    if (count == 1) {
        best.algorithm = !named[0].wraps ? "line" : oneWay ? "ring, one direction" : "ring, both directions";
        best.formula = named[0].wraps && !oneWay ? "floor(k/2) alpha + (k-1)/(2k) B/w" : "(k-1)(alpha + B/(k w))";
    } else if (oneByOne == 0) {
        best.algorithm = fmt::format("all {} axes at once", count);
        best.formula
            = fmt::format("sum over phases of the slowest axis's [ring: {}; line: (k-1)(alpha + b/(k w))], b from B/D", ring);
    } else {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < oneByOne; ++i)
            names.push_back(named[i].name);
        best.algorithm = oneByOne == count ? fmt::format("axis by axis{}: {}", oneWay ? ", one direction" : "", join(names, ", "))
                                           : fmt::format("{}, then {} axes at once", join(names, ", "), count - oneByOne);
        best.formula
            = fmt::format("sum over axes of [ring: {}; line: (k-1)(alpha + b/(k w))], b divided by k after each axis", ring);
    }
    best.formula += ", " + torusInputs(named);
    return best;
}

CollectiveCandidate CollectiveEstimator::torusPermute() const
{
    double seconds = 0.0;
    double busiest = 0.0;
    for (const GroupAxis& axis : m_axes) {
        const std::int64_t across = axis.wraps ? axis.size / 2 : axis.size - 1;
        if (m_pattern == PermutePattern::Shift) {
            // The last device of the axis sends to the first: over the wraparound, or back over the line on the opposite links.
            seconds += static_cast<double>(axis.wraps ? 1 : across) * axis.link.latencySeconds;
            busiest = std::max(busiest, m_bytes / axis.link.bytesPerSecond);
        } else {
            seconds += static_cast<double>(across) * axis.link.latencySeconds;
            const double crossing = static_cast<double>(axis.size / 2) / (axis.wraps ? 2.0 : 1.0);
            busiest = std::max(busiest, std::max(1.0, crossing) * m_bytes / axis.link.bytesPerSecond);
        }
    }
    const char* formula = m_pattern == PermutePattern::Shift
        ? "alpha [ring] or (k-1) alpha [line] for each axis + max B/w"
        : "diameter alpha + max over axes of floor(k/2) [line] or floor(k/2)/2 [ring] B/w";
    return {seconds + busiest, 1.0, say("{}", m_pattern == PermutePattern::Shift ? "shift to the neighbour" : "half to half"),
        say("{}, {}", formula, torusInputs(m_axes))};
}

CollectiveCandidate CollectiveEstimator::torus() const
{
    switch (m_kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return torusGather(m_bytes);
    case CollectiveKind::AllReduce: {
        CollectiveCandidate result = torusGather(m_bytes);
        result.seconds *= 2.0;
        result.wireShare *= 2.0;
        result.algorithm = "reduce-scatter and all-gather, " + result.algorithm;
        result.formula = "2 x " + result.formula;
        return result;
    }
    case CollectiveKind::AllToAll:
        return {torusAllToAllSeconds(m_bytes, torusAxes(m_axes)), othersShare(), say("dimension order, both directions"),
            say("sum of latencies + max over axes of k B/(8w) [ring, even k] or k B/(4w) [line, even k]; odd k: (k^2-1)/k for k, "
                "{}",
                torusInputs(m_axes))};
    case CollectiveKind::Permute:
        return torusPermute();
    case CollectiveKind::Broadcast: {
        const std::int64_t chunks = pipelineChunks(m_bytes);
        return {torusBroadcastSeconds(m_bytes, torusAxes(m_axes), chunks), 1.0, say("pipelined tree along the axes"),
            say("sum (k-1) alpha + (H-1+m) B/(m w'), w' = min of 2w [ring] or w [line], m={}, {}", chunks, torusInputs(m_axes))};
    }
    }
    return {};
}

namespace {

/// As if the groups between rested: stages of a pipeline take turns.
double wholeLink(const GroupAxis& axis)
{
    return axis.link.bytesPerSecond * static_cast<double>(axis.stride);
}

} // namespace

double CollectiveEstimator::torusBound(const std::vector<GroupAxis>& axes, std::int64_t devices) const
{
    const auto n = static_cast<double>(devices);
    double total = 0.0; // of all directed links
    double corner = 0.0; // into the device with the fewest links
    double diameter = 0.0; // seconds
    double neighbour = 0.0; // seconds of the shortest hop
    double radius = 0.0;
    bool regular = true;
    for (const GroupAxis& axis : axes) {
        const double w = wholeLink(axis);
        const auto k = static_cast<double>(axis.size);
        total += w * 2.0 * n * (axis.wraps ? 1.0 : (k - 1.0) / k);
        corner += axis.wraps ? 2.0 * w : w;
        diameter += latencyBound(static_cast<double>(axis.wraps ? axis.size / 2 : axis.size - 1), axis.link.latencySeconds);
        radius += latencyBound(static_cast<double>(axis.size / 2), axis.link.latencySeconds);
        neighbour = neighbour == 0.0 ? axis.link.latencySeconds : std::min(neighbour, axis.link.latencySeconds);
        regular = regular && (axis.wraps || axis.size == 2);
    }
    double bound = diameter;
    switch (m_kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        bound = std::max({bound, allGatherTrafficBound(m_bytes, devices, total), allGatherDeviceBound(m_bytes, devices, corner)});
        break;
    case CollectiveKind::AllReduce:
        bound = std::max({bound, allReduceTrafficBound(m_bytes, devices, total), allReduceCutBound(m_bytes, corner)});
        if (regular)
            bound = std::max(bound, allReduceDeviceBound(m_bytes, devices, corner));
        break;
    case CollectiveKind::AllToAll:
        bound = std::max(bound, allGatherDeviceBound(m_bytes, devices, corner));
        break;
    case CollectiveKind::Permute:
        return std::max(neighbour, m_bytes / corner);
    case CollectiveKind::Broadcast:
        return std::max(radius, m_bytes / corner);
    }
    for (const GroupAxis& axis : axes) {
        const std::int64_t lines = devices / axis.size;
        const std::int64_t side = axis.size / 2 * lines;
        const double cut = static_cast<double>(lines) * wholeLink(axis) * (axis.wraps ? 2.0 : 1.0);
        if (m_kind == CollectiveKind::AllToAll)
            bound = std::max(bound, allToAllCutBound(m_bytes, devices, side, cut));
        else if (m_kind == CollectiveKind::AllReduce)
            bound = std::max(bound, allReduceCutBound(m_bytes, cut));
        else
            bound = std::max(bound, allGatherCutBound(m_bytes, devices, side, cut));
    }
    return bound;
}

} // namespace meshwright::sim
