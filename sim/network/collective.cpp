// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/collective.h"

#include "core/support/text.h"
#include "sim/network/bounds.h"
#include "sim/network/switch.h"
#include "sim/network/torus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace meshwright::sim {

const char* collectiveKindName(CollectiveKind kind)
{
    switch (kind) {
    case CollectiveKind::AllReduce:
        return "all-reduce";
    case CollectiveKind::AllGather:
        return "all-gather";
    case CollectiveKind::ReduceScatter:
        return "reduce-scatter";
    case CollectiveKind::AllToAll:
        return "all-to-all";
    case CollectiveKind::Permute:
        return "permute";
    case CollectiveKind::Broadcast:
        return "broadcast";
    }
    return "";
}

namespace {

/// Pipelined broadcasts and trees cut the data in pieces of about this size, in at most so many.
constexpr double kChunkBytes = 64.0 * 1024.0;
constexpr std::int64_t kMostChunks = 256;
/// More axes than this are taken in the order given: a machine has four.
constexpr std::size_t kMostPermutedAxes = 5;

using Axes = std::vector<GroupAxis>;

std::int64_t chunkCount(double bytes)
{
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(bytes / kChunkBytes), 1, kMostChunks);
}

std::string rateText(double bytesPerSecond)
{
    return fmt::format("{:.4g} GB/s", bytesPerSecond / 1e9);
}

std::string linkText(const LinkSpec& link)
{
    return fmt::format("w={}, alpha={}", rateText(link.bytesPerSecond), formatSeconds(link.latencySeconds));
}

struct Candidate {
    double seconds = 0.0;
    double wireShare = 0.0; ///< wire bytes of a device, as a share of the payload
    std::string algorithm;
    std::string formula;
};

const Candidate& quickest(const std::vector<Candidate>& candidates)
{
    return *std::ranges::min_element(candidates, {}, &Candidate::seconds);
}

class Estimator {
public:
    explicit Estimator(const CollectiveRequest& request)
        : m_kind(request.kind)
        , m_pattern(request.pattern)
        , m_payload(request.payloadBytes)
        , m_bytes(static_cast<double>(request.payloadBytes))
    {
        assert(request.payloadBytes >= 0);
        for (const GroupAxis& axis : request.axes) {
            assert(axis.size >= 1);
            if (axis.size == 1)
                continue;
            assert(axis.link.bytesPerSecond > 0.0 && axis.link.latencySeconds >= 0.0);
            m_devices *= axis.size;
            m_axes.push_back(axis);
        }
    }

    CollectiveEstimate run();

private:
    bool gathers() const { return m_kind == CollectiveKind::AllGather || m_kind == CollectiveKind::ReduceScatter; }
    double othersShare() const { return static_cast<double>(m_devices - 1) / static_cast<double>(m_devices); }
    std::string bytesText() const { return fmt::format("B={}", formatBytes(m_bytes)); }

    Candidate torus() const;
    Candidate torusGather() const;
    Candidate torusPermute() const;
    std::string torusInputs(const Axes& axes) const;
    double torusBound() const;

    Candidate star(const GroupAxis& axis) const;
    std::vector<Candidate> switchAllReduce(const GroupAxis& axis, double bytes) const;
    Candidate fullMesh(const GroupAxis& axis) const;
    Candidate hosts(const GroupAxis& network, const GroupAxis& inner) const;
    Candidate hostsAllReduce(const GroupAxis& network, const GroupAxis& inner) const;
    double starBound(const GroupAxis* network, const GroupAxis* inner) const;

    CollectiveKind m_kind;
    PermutePattern m_pattern;
    std::int64_t m_payload;
    double m_bytes;
    std::int64_t m_devices = 1;
    Axes m_axes;
};

std::vector<TorusAxis> torusAxes(const Axes& axes)
{
    std::vector<TorusAxis> result;
    for (const GroupAxis& axis : axes)
        result.push_back({axis.size, axis.wraps, axis.link});
    return result;
}

std::string Estimator::torusInputs(const Axes& axes) const
{
    std::string text = bytesText();
    for (const GroupAxis& axis : axes)
        text += fmt::format("; {}: k={} ({}), {}", axis.name, axis.size, axis.wraps ? "ring" : "line", linkText(axis.link));
    return text;
}

/// Reduce-scatter or all-gather over torus axes: every order, the first axes one by one and the rest all at once.
Candidate Estimator::torusGather() const
{
    std::vector<std::size_t> order(m_axes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Candidate best;
    best.seconds = std::numeric_limits<double>::infinity();
    const bool permute = order.size() <= kMostPermutedAxes;
    do {
        Axes ordered;
        for (const std::size_t index : order)
            ordered.push_back(m_axes[index]);
        const auto axes = torusAxes(ordered);
        for (std::size_t atOnce = 0; atOnce <= axes.size(); ++atOnce) {
            const std::size_t oneByOne = axes.size() - atOnce;
            if (atOnce == 1)
                continue; // the same as one more in the sequence
            std::set<std::size_t> distinct;
            for (std::size_t i = oneByOne; i < ordered.size(); ++i)
                distinct.insert(ordered[i].physicalAxis);
            if (distinct.size() != atOnce)
                continue; // two parts of one physical axis would share its links
            double left = m_bytes;
            for (std::size_t i = 0; i < oneByOne; ++i)
                left /= static_cast<double>(axes[i].length);
            const double seconds = torusAllGatherSeconds(m_bytes, std::span(axes).first(oneByOne), Directions::Both)
                + torusAllGatherAtOnceSeconds(left, std::span(axes).subspan(oneByOne));
            if (seconds >= best.seconds)
                continue;
            best.seconds = seconds;
            if (axes.size() == 1) {
                best.algorithm = axes[0].wraps ? "ring, both directions" : "line";
                best.formula = axes[0].wraps ? "floor(k/2) alpha + (k-1)/(2k) B/w" : "(k-1)(alpha + B/(k w))";
            } else if (oneByOne == 0) {
                best.algorithm = fmt::format("all {} axes at once", atOnce);
                best.formula = "sum over phases of the slowest axis's [ring: floor(k/2) alpha + (k-1)/(2k) b/w; line: "
                               "(k-1)(alpha + b/(k w))], b from B/D";
            } else {
                std::vector<std::string> names;
                for (std::size_t i = 0; i < oneByOne; ++i)
                    names.push_back(ordered[i].name);
                best.algorithm = atOnce == 0 ? fmt::format("axis by axis: {}", join(names, ", "))
                                             : fmt::format("{}, then {} axes at once", join(names, ", "), atOnce);
                best.formula = "sum over axes of [ring: floor(k/2) alpha + (k-1)/(2k) b/w; line: (k-1)(alpha + b/(k w))], b "
                               "divided by k after each axis";
            }
            best.formula += ", " + torusInputs(ordered);
        }
    } while (permute && std::ranges::next_permutation(order).found);
    best.wireShare = othersShare();
    return best;
}

Candidate Estimator::torusPermute() const
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
    return {seconds + busiest, 1.0, m_pattern == PermutePattern::Shift ? "shift to the neighbour" : "half to half",
        fmt::format("{}, {}", formula, torusInputs(m_axes))};
}

Candidate Estimator::torus() const
{
    const auto axes = torusAxes(m_axes);
    switch (m_kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return torusGather();
    case CollectiveKind::AllReduce: {
        Candidate result = torusGather();
        result.seconds *= 2.0;
        result.wireShare *= 2.0;
        result.algorithm = "reduce-scatter and all-gather, " + result.algorithm;
        result.formula = "2 x " + result.formula;
        return result;
    }
    case CollectiveKind::AllToAll:
        return {torusAllToAllSeconds(m_bytes, axes), othersShare(), "dimension order, both directions",
            "sum of latencies + max over axes of k B/(8w) [ring, even k] or k B/(4w) [line, even k]; odd k: (k^2-1)/k for k, "
                + torusInputs(m_axes)};
    case CollectiveKind::Permute:
        return torusPermute();
    case CollectiveKind::Broadcast: {
        const std::int64_t chunks = chunkCount(m_bytes);
        return {torusBroadcastSeconds(m_bytes, axes, chunks), 1.0, "pipelined tree along the axes",
            fmt::format(
                "sum (k-1) alpha + (H-1+m) B/(m w'), w' = min of 2w [ring] or w [line], m={}, {}", chunks, torusInputs(m_axes))};
    }
    }
    return {};
}

double Estimator::torusBound() const
{
    const auto n = static_cast<double>(m_devices);
    double total = 0.0; // of all directed links
    double corner = 0.0; // into the device with the fewest links
    double diameter = 0.0; // seconds
    double neighbour = 0.0; // seconds of the shortest hop
    double radius = 0.0;
    bool regular = true;
    for (const GroupAxis& axis : m_axes) {
        const double w = axis.link.bytesPerSecond;
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
        bound = std::max(
            {bound, allGatherTrafficBound(m_bytes, m_devices, total), allGatherDeviceBound(m_bytes, m_devices, corner)});
        break;
    case CollectiveKind::AllReduce:
        bound = std::max({bound, allReduceTrafficBound(m_bytes, m_devices, total), allReduceCutBound(m_bytes, corner)});
        if (regular)
            bound = std::max(bound, allReduceDeviceBound(m_bytes, m_devices, corner));
        break;
    case CollectiveKind::AllToAll:
        bound = std::max(bound, allGatherDeviceBound(m_bytes, m_devices, corner));
        break;
    case CollectiveKind::Permute:
        return std::max(neighbour, m_bytes / corner);
    case CollectiveKind::Broadcast:
        return std::max(radius, m_bytes / corner);
    }
    for (const GroupAxis& axis : m_axes) {
        const std::int64_t lines = m_devices / axis.size;
        const std::int64_t side = axis.size / 2 * lines;
        const double cut = static_cast<double>(lines) * axis.link.bytesPerSecond * (axis.wraps ? 2.0 : 1.0);
        if (m_kind == CollectiveKind::AllToAll)
            bound = std::max(bound, allToAllCutBound(m_bytes, m_devices, side, cut));
        else if (m_kind == CollectiveKind::AllReduce)
            bound = std::max(bound, allReduceCutBound(m_bytes, cut));
        else
            bound = std::max(bound, allGatherCutBound(m_bytes, m_devices, side, cut));
    }
    return bound;
}

std::vector<Candidate> Estimator::switchAllReduce(const GroupAxis& axis, double bytes) const
{
    const std::int64_t n = axis.size;
    const std::string inputs = fmt::format("n={}, B={}, {}", n, formatBytes(bytes), linkText(axis.link));
    const double others = static_cast<double>(n - 1) / static_cast<double>(n);
    std::vector<Candidate> candidates;
    candidates.push_back(
        {switchRingAllReduceSeconds(bytes, n, axis.link), 2.0 * others, "ring", "2 (n-1)(alpha + B/(n w)), " + inputs});
    if (n > 2) {
        const double chunk = bytes / static_cast<double>(chunkCount(bytes));
        candidates.push_back({doubleTreeAllReduceSeconds(bytes, n, chunk, axis.link).most, 2.0, "double binary tree",
            fmt::format("2 B/w + 4 ceil(log2 n)(alpha + b/w), b={}, {}", formatBytes(chunk), inputs)});
    }
    if (axis.inSwitchBytesPerSecond > 0.0) {
        LinkSpec adding = axis.link;
        adding.bytesPerSecond = axis.inSwitchBytesPerSecond;
        candidates.push_back({inSwitchAllReduceSeconds(bytes, n, adding), 1.0, "in-switch reduction",
            fmt::format("alpha + B/w, n={}, B={}, {}", n, formatBytes(bytes), linkText(adding))});
    }
    return candidates;
}

/// One tier: a switch, the network between hosts of one device each, or a scattered group (a logical ring).
Candidate Estimator::star(const GroupAxis& axis) const
{
    const std::int64_t n = axis.size;
    const std::string inputs = fmt::format("n={}, {}, {}", n, bytesText(), linkText(axis.link));
    const char* ring = axis.kind == GroupKind::Scattered ? "logical ring over shared links" : "ring";
    switch (m_kind) {
    case CollectiveKind::AllReduce: {
        if (axis.kind != GroupKind::Scattered)
            return quickest(switchAllReduce(axis, m_bytes));
        return {
            switchRingAllReduceSeconds(m_bytes, n, axis.link), 2.0 * othersShare(), ring, "2 (n-1)(alpha + B/(n w)), " + inputs};
    }
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return {switchRingAllGatherSeconds(m_bytes, n, axis.link), othersShare(), ring, "(n-1)(alpha + B/(n w)), " + inputs};
    case CollectiveKind::AllToAll:
        if (axis.kind == GroupKind::Scattered)
            // Every piece travels round the ring to its place: half of the ring on average.
            return {ringAllToAllSeconds(m_bytes, n, axis.link, Directions::One), othersShare(), ring,
                "(n-1) alpha + (n-1)/2 B/w, " + inputs};
        return {pairwiseAllToAllSeconds(m_bytes, n, axis.link), othersShare(), "pairwise", "(n-1)(alpha + B/(n w)), " + inputs};
    case CollectiveKind::Permute:
        if (axis.kind == GroupKind::Scattered && m_pattern == PermutePattern::Any) {
            const std::int64_t half = n / 2;
            return {ringPermuteSeconds(m_bytes, n, half, axis.link, Directions::One), 1.0, ring, "n/2 (alpha + B/w), " + inputs};
        }
        return {axis.link.latencySeconds + m_bytes / axis.link.bytesPerSecond, 1.0, "direct", "alpha + B/w, " + inputs};
    case CollectiveKind::Broadcast: {
        const std::int64_t chunks = chunkCount(m_bytes);
        return {chainBroadcastSeconds(m_bytes, n, chunks, axis.link), 1.0, "pipelined chain",
            fmt::format("(n-1) alpha + (n-2+m) B/(m w), m={}, {}", chunks, inputs)};
    }
    }
    return {};
}

Candidate Estimator::fullMesh(const GroupAxis& axis) const
{
    const std::int64_t n = axis.size;
    const std::string inputs = fmt::format("n={}, {}, {}", n, bytesText(), linkText(axis.link));
    const Candidate pieces{directAllGatherSeconds(m_bytes, n, axis.link), othersShare(), "direct", "alpha + B/(n w), " + inputs};
    switch (m_kind) {
    case CollectiveKind::AllReduce:
        return {2.0 * pieces.seconds, 2.0 * othersShare(), "direct", "2 (alpha + B/(n w)), " + inputs};
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
        return pieces;
    case CollectiveKind::Permute:
        return {axis.link.latencySeconds + m_bytes / axis.link.bytesPerSecond, 1.0, "direct", "alpha + B/w, " + inputs};
    case CollectiveKind::Broadcast:
        return {2.0 * pieces.seconds, 2.0 * othersShare(), "scatter, then all-gather", "2 (alpha + B/(n w)), " + inputs};
    }
    return {};
}

Candidate Estimator::hostsAllReduce(const GroupAxis& network, const GroupAxis& inner) const
{
    const double perDevice = m_bytes / static_cast<double>(inner.size);
    const double within = inner.kind == GroupKind::FullMesh ? directAllGatherSeconds(m_bytes, inner.size, inner.link)
                                                            : switchRingAllGatherSeconds(m_bytes, inner.size, inner.link);
    const auto outer = switchAllReduce(network, perDevice);
    const Candidate& between = quickest(outer);
    const auto m = static_cast<double>(inner.size);
    return {2.0 * within + between.seconds, 2.0 * (m - 1.0) / m + between.wireShare / m,
        fmt::format("reduce-scatter in the host, {} between hosts, all-gather in the host", between.algorithm),
        fmt::format("2 {}, m={}, {}, {}; between hosts {}",
            inner.kind == GroupKind::FullMesh ? "(alpha + B/(m w))" : "(m-1)(alpha + B/(m w))", inner.size, bytesText(),
            linkText(inner.link), between.formula)};
}

/// Two tiers: m devices in each of g hosts.
Candidate Estimator::hosts(const GroupAxis& network, const GroupAxis& inner) const
{
    const auto m = static_cast<double>(inner.size);
    const std::int64_t g = network.size;
    const bool mesh = inner.kind == GroupKind::FullMesh;
    const auto innerGather = [&](double bytes) {
        return mesh ? directAllGatherSeconds(bytes, inner.size, inner.link)
                    : switchRingAllGatherSeconds(bytes, inner.size, inner.link);
    };
    const std::string innerTerm = mesh ? "alpha_i + B/(m w_i)" : "(m-1)(alpha_i + B/(m w_i))";
    const std::string inputs = fmt::format(
        "m={}, g={}, {}, inside {}, between {}", inner.size, g, bytesText(), linkText(inner.link), linkText(network.link));
    switch (m_kind) {
    case CollectiveKind::AllReduce:
        return hostsAllReduce(network, inner);
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return {innerGather(m_bytes) + switchRingAllGatherSeconds(m_bytes / m, g, network.link), othersShare(),
            "ring between hosts and in the host, one after the other", innerTerm + " + (g-1)(alpha_e + B/(m g w_e)), " + inputs};
    case CollectiveKind::AllToAll:
        return {innerGather(m_bytes) + pairwiseAllToAllSeconds(m_bytes, g, network.link),
            (m - 1.0) / m + static_cast<double>(g - 1) / static_cast<double>(g),
            "inside the host, then between hosts on each rail", innerTerm + " + (g-1)(alpha_e + B/(g w_e)), " + inputs};
    case CollectiveKind::Permute: {
        const double within = inner.link.latencySeconds + m_bytes / inner.link.bytesPerSecond;
        const double between = network.link.latencySeconds + m_bytes / network.link.bytesPerSecond;
        return {std::max(within, between), 1.0, "direct", "max of alpha + B/w inside and between hosts, " + inputs};
    }
    case CollectiveKind::Broadcast: {
        const std::int64_t chunks = chunkCount(m_bytes);
        const double within = mesh ? directAllReduceSeconds(m_bytes, inner.size, inner.link)
                                   : chainBroadcastSeconds(m_bytes, inner.size, chunks, inner.link);
        return {within + chainBroadcastSeconds(m_bytes, g, chunks, network.link), 1.0, "chain between hosts, then in each",
            fmt::format("(g-1) alpha_e + (g-2+c) B/(c w_e) + the same inside, c={}, {}", chunks, inputs)};
    }
    }
    return {};
}

/// Bounds for one or two tiers; at least one is given.
double Estimator::starBound(const GroupAxis* network, const GroupAxis* inner) const
{
    const auto innerWidth = [&] {
        return inner->link.bytesPerSecond * (inner->kind == GroupKind::FullMesh ? static_cast<double>(inner->size - 1) : 1.0);
    };
    const bool scattered = inner && inner->kind == GroupKind::Scattered;
    double entering = 0.0;
    double latency = std::numeric_limits<double>::infinity();
    if (inner) {
        entering += scattered ? inner->enteringBytesPerSecond : innerWidth();
        latency = scattered ? 0.0 : inner->link.latencySeconds;
    }
    if (network) {
        entering += network->link.bytesPerSecond;
        latency = inner && m_kind == CollectiveKind::Permute ? std::min(latency, network->link.latencySeconds)
                                                             : network->link.latencySeconds;
    }
    const bool adds = inner && inner->inSwitchBytesPerSecond > 0.0;
    double bandwidth = 0.0;
    switch (m_kind) {
    case CollectiveKind::AllReduce:
        bandwidth = adds ? allReduceCutBound(m_bytes, entering) : allReduceDeviceBound(m_bytes, m_devices, entering);
        break;
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
        bandwidth = allGatherDeviceBound(m_bytes, m_devices, entering);
        break;
    case CollectiveKind::Permute:
    case CollectiveKind::Broadcast:
        bandwidth = m_bytes / entering;
        break;
    }
    if (network && inner) {
        // All the ports of one host together are what it can exchange with the rest.
        const double host = static_cast<double>(inner->size) * network->link.bytesPerSecond;
        if (m_kind == CollectiveKind::AllReduce)
            bandwidth = std::max(bandwidth, allReduceDeviceBound(m_bytes, network->size, host));
        else if (gathers())
            bandwidth = std::max(bandwidth, allGatherDeviceBound(m_bytes, network->size, host));
        else if (m_kind == CollectiveKind::AllToAll)
            bandwidth = std::max(bandwidth, allToAllCutBound(m_bytes, m_devices, inner->size, host));
    }
    return std::max(latency, bandwidth);
}

CollectiveEstimate Estimator::run()
{
    if (m_devices == 1)
        return {0.0, 0, "none", "0, a group of one device", 0.0};

    // The parts of a switch are all alike: a device reaches each as well as any other.
    Axes torusParts;
    GroupAxis inner;
    GroupAxis network;
    for (const GroupAxis& axis : m_axes) {
        if (axis.kind == GroupKind::Torus) {
            torusParts.push_back(axis);
            continue;
        }
        GroupAxis& tier = axis.kind == GroupKind::Network ? network : inner;
        const std::int64_t size = tier.size * axis.size;
        tier = axis;
        tier.size = size;
    }
    Candidate chosen;
    double bound = 0.0;
    if (!torusParts.empty()) {
        assert(inner.size == 1 && network.size == 1);
        chosen = torus();
        bound = torusBound();
    } else {
        const bool two = inner.size > 1 && network.size > 1;
        assert(!two || inner.kind != GroupKind::Scattered);
        if (two)
            chosen = hosts(network, inner);
        else if (network.size > 1)
            chosen = star(network);
        else
            chosen = inner.kind == GroupKind::FullMesh ? fullMesh(inner) : star(inner);
        bound = starBound(network.size > 1 ? &network : nullptr, inner.size > 1 ? &inner : nullptr);
    }
    CollectiveEstimate estimate{chosen.seconds, static_cast<std::int64_t>(std::ceil(chosen.wireShare * m_bytes - 1e-6)),
        std::move(chosen.algorithm), std::move(chosen.formula), bound};
    assert(estimate.seconds >= estimate.lowerBoundSeconds * (1.0 - 1e-9));
    estimate.lowerBoundSeconds = std::min(estimate.lowerBoundSeconds, estimate.seconds); // but for rounding
    return estimate;
}

} // namespace

CollectiveEstimate estimateCollective(const CollectiveRequest& request)
{
    return Estimator(request).run();
}

} // namespace meshwright::sim
