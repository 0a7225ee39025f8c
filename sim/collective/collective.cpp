// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/collective.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/collective/bounds.h"
#include "sim/collective/library_time.h"
#include "sim/collective/switch.h"
#include "sim/collective/torus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

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

constexpr std::pair<CollectiveAlgorithm, const char*> kAlgorithmNames[] = {
    {CollectiveAlgorithm::Automatic, "auto"},
    {CollectiveAlgorithm::Ring, "ring"},
    {CollectiveAlgorithm::BothWays, "both_ways"},
    {CollectiveAlgorithm::AllAxes, "all_axes"},
    {CollectiveAlgorithm::Tree, "tree"},
    {CollectiveAlgorithm::InSwitch, "in_switch"},
    {CollectiveAlgorithm::HalvingDoubling, "halving_doubling"},
    {CollectiveAlgorithm::RecursiveDoubling, "recursive_doubling"},
    {CollectiveAlgorithm::Direct, "direct"},
    {CollectiveAlgorithm::Pairwise, "pairwise"},
    {CollectiveAlgorithm::Bruck, "bruck"},
    {CollectiveAlgorithm::Chain, "chain"},
    {CollectiveAlgorithm::Binomial, "binomial"},
};

} // namespace

const char* algorithmName(CollectiveAlgorithm algorithm)
{
    for (const auto& [value, name] : kAlgorithmNames) {
        if (value == algorithm)
            return name;
    }
    return "";
}

std::optional<CollectiveAlgorithm> findAlgorithm(std::string_view name)
{
    if (name == "nvls" || name == "sharp")
        return CollectiveAlgorithm::InSwitch;
    for (const auto& [value, text] : kAlgorithmNames) {
        if (name == text)
            return value;
    }
    return std::nullopt;
}

std::int64_t pipelineChunks(double bytes)
{
    constexpr double kChunkBytes = 64.0 * 1024.0;
    constexpr std::int64_t kMostChunks = 256;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(bytes / kChunkBytes), 1, kMostChunks);
}

namespace {

/// More axes than this are taken in the order given: a machine has four.
constexpr std::size_t kMostPermutedAxes = 5;

using Axes = std::vector<GroupAxis>;

std::string rateText(double bytesPerSecond)
{
    return fmt::format("{:.4g} GB/s", bytesPerSecond / 1e9);
}

struct Candidate {
    double seconds = 0.0;
    double wireShare = 0.0; ///< wire bytes of a device, as a share of the payload
    std::string algorithm;
    std::string formula;
    ChosenAlgorithm chosen = {};
};

class Estimator {
public:
    Estimator(const CollectiveRequest& request, bool texts)
        : m_kind(request.kind)
        , m_pattern(request.pattern)
        , m_wanted(request.algorithm)
        , m_texts(texts)
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
            if (axis.kind == GroupKind::Torus) {
                m_axes.push_back(axis);
                continue;
            }
            // The parts of a switch are all alike: a device reaches each as well as any other.
            GroupAxis& tier = axis.kind == GroupKind::Network ? m_network : m_inner;
            const std::int64_t size = tier.size * axis.size;
            tier = axis;
            tier.size = size;
        }
        assert(m_axes.empty() || m_inner.size == 1);
        const auto possible = algorithms();
        if (std::ranges::find(possible, m_wanted) == possible.end())
            m_wanted = CollectiveAlgorithm::Automatic;
    }

    CollectiveEstimate run();
    std::vector<CollectiveAlgorithm> algorithms() const;

private:
    bool gathers() const { return m_kind == CollectiveKind::AllGather || m_kind == CollectiveKind::ReduceScatter; }
    bool wants(CollectiveAlgorithm algorithm) const { return m_wanted == algorithm; }
    bool admits(CollectiveAlgorithm algorithm) const { return wants(CollectiveAlgorithm::Automatic) || wants(algorithm); }
    double othersShare() const { return static_cast<double>(m_devices - 1) / static_cast<double>(m_devices); }
    bool onePartAnAxis() const;

    // Texts are made only where they are asked for: planners ask for seconds.
    template <typename... Args>
    std::string say(fmt::format_string<Args...> text, Args&&... args) const
    {
        return m_texts ? fmt::format(text, std::forward<Args>(args)...) : std::string();
    }
    std::string bytesText(double bytes) const { return m_texts ? formatBytes(bytes) : std::string(); }
    std::string payloadText() const { return say("B={}", bytesText(m_bytes)); }
    std::string linkText(const LinkSpec& link) const
    {
        return m_texts ? fmt::format("w={}, alpha={}", rateText(link.bytesPerSecond), formatSeconds(link.latencySeconds))
                       : std::string();
    }

    Candidate torus() const;
    Candidate torusGather(double bytes) const;
    Candidate torusPermute() const;
    std::string torusInputs(const Axes& axes) const;
    double torusBound(const Axes& axes, std::int64_t devices) const;

    Candidate star(const GroupAxis& axis) const;
    Candidate switchAllReduce(const GroupAxis& axis, double bytes) const;
    Candidate switchGather(const GroupAxis& axis, double bytes) const;
    Candidate fullMesh(const GroupAxis& axis) const;
    Candidate hosts() const;
    Candidate innerGather() const;
    double networkAllToAllSeconds(double bytes) const;
    double starBound(const GroupAxis* network, const GroupAxis* inner) const;
    double slicesBound() const;

    CollectiveKind m_kind;
    PermutePattern m_pattern;
    CollectiveAlgorithm m_wanted;
    bool m_texts;
    std::int64_t m_payload;
    double m_bytes;
    std::int64_t m_devices = 1;
    Axes m_axes; ///< torus
    GroupAxis m_inner; ///< switch, full mesh or scattered
    GroupAxis m_network;
};

/// Two parts of one physical axis would share its links when both are used at once.
bool Estimator::onePartAnAxis() const
{
    std::set<std::size_t> distinct;
    for (const GroupAxis& axis : m_axes)
        distinct.insert(axis.physicalAxis);
    return distinct.size() == m_axes.size();
}

std::vector<CollectiveAlgorithm> Estimator::algorithms() const
{
    using enum CollectiveAlgorithm;
    std::vector<CollectiveAlgorithm> result{Automatic};
    const bool combines = gathers() || m_kind == CollectiveKind::AllReduce;
    if (m_devices == 1)
        return result;
    if (!m_axes.empty() && m_network.size == 1) {
        if (combines) {
            result.push_back(Ring);
            result.push_back(BothWays);
            if (m_axes.size() > 1 && onePartAnAxis())
                result.push_back(AllAxes);
        }
        return result;
    }
    const GroupAxis& axis = m_network.size > 1 ? m_network : m_inner;
    if (axis.kind == GroupKind::Scattered)
        return {Automatic, Ring};
    if (axis.kind == GroupKind::FullMesh)
        return {Automatic, Direct};
    const bool twoTiers = m_network.size > 1 && (m_inner.size > 1 || !m_axes.empty());
    const bool power = isPowerOfTwo(axis.size);
    switch (m_kind) {
    case CollectiveKind::AllReduce:
        result.push_back(Ring);
        if (axis.size > 2)
            result.push_back(Tree);
        if (axis.inSwitchBytesPerSecond > 0.0)
            result.push_back(InSwitch);
        result.push_back(HalvingDoubling);
        if (power)
            result.push_back(RecursiveDoubling);
        break;
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        result.push_back(Ring);
        if (power)
            result.push_back(HalvingDoubling);
        break;
    case CollectiveKind::AllToAll:
        result.push_back(Pairwise);
        if (power && !twoTiers)
            result.push_back(Bruck);
        break;
    case CollectiveKind::Permute:
        result.push_back(Direct);
        break;
    case CollectiveKind::Broadcast:
        result.push_back(Chain);
        if (!twoTiers)
            result.push_back(Binomial);
        break;
    }
    return result;
}

std::vector<TorusAxis> torusAxes(const Axes& axes)
{
    std::vector<TorusAxis> result;
    for (const GroupAxis& axis : axes)
        result.push_back({axis.size, axis.wraps, axis.link});
    return result;
}

std::string Estimator::torusInputs(const Axes& axes) const
{
    std::string text = payloadText();
    if (m_texts) {
        for (const GroupAxis& axis : axes)
            text += fmt::format("; {}: k={} ({}), {}", axis.name, axis.size, axis.wraps ? "ring" : "line", linkText(axis.link));
    }
    return text;
}

/// Reduce-scatter or all-gather over torus axes: every order, the first axes one by one and the rest all at once.
Candidate Estimator::torusGather(double bytes) const
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
    Candidate best;
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

    Axes named;
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
    return {seconds + busiest, 1.0, say("{}", m_pattern == PermutePattern::Shift ? "shift to the neighbour" : "half to half"),
        say("{}, {}", formula, torusInputs(m_axes))};
}

Candidate Estimator::torus() const
{
    switch (m_kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return torusGather(m_bytes);
    case CollectiveKind::AllReduce: {
        Candidate result = torusGather(m_bytes);
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

double Estimator::torusBound(const Axes& axes, std::int64_t devices) const
{
    const auto n = static_cast<double>(devices);
    double total = 0.0; // of all directed links
    double corner = 0.0; // into the device with the fewest links
    double diameter = 0.0; // seconds
    double neighbour = 0.0; // seconds of the shortest hop
    double radius = 0.0;
    bool regular = true;
    for (const GroupAxis& axis : axes) {
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
        const double cut = static_cast<double>(lines) * axis.link.bytesPerSecond * (axis.wraps ? 2.0 : 1.0);
        if (m_kind == CollectiveKind::AllToAll)
            bound = std::max(bound, allToAllCutBound(m_bytes, devices, side, cut));
        else if (m_kind == CollectiveKind::AllReduce)
            bound = std::max(bound, allReduceCutBound(m_bytes, cut));
        else
            bound = std::max(bound, allGatherCutBound(m_bytes, devices, side, cut));
    }
    return bound;
}

/// What NCCL weighs for an all-reduce by size and ranks, or the algorithm that is forced.
Candidate Estimator::switchAllReduce(const GroupAxis& axis, double bytes) const
{
    using enum CollectiveAlgorithm;
    const std::int64_t n = axis.size;
    const std::string inputs = say("n={}, B={}, {}", n, bytesText(bytes), linkText(axis.link));
    const double others = static_cast<double>(n - 1) / static_cast<double>(n);
    Candidate best;
    best.seconds = std::numeric_limits<double>::infinity();
    const auto consider = [&](CollectiveAlgorithm algorithm, double seconds, double wireShare, const char* name, auto formula) {
        if (seconds < best.seconds)
            best = {seconds, wireShare, say("{}", name), m_texts ? formula() : std::string(), {algorithm}};
    };
    if (admits(Ring))
        consider(Ring, switchRingAllReduceSeconds(bytes, n, axis.link), 2.0 * others, "ring",
            [&] { return "2 (n-1)(alpha + B/(n w)), " + inputs; });
    if (n > 2 && admits(Tree)) {
        const double chunk = bytes / static_cast<double>(pipelineChunks(bytes));
        consider(Tree, doubleTreeAllReduceSeconds(bytes, n, chunk, axis.link), 2.0, "double binary tree",
            [&] { return say("2 B/w + 4 ceil(log2 n)(alpha + b/w), b={}, {}", bytesText(chunk), inputs); });
    }
    if (axis.inSwitchBytesPerSecond > 0.0 && admits(InSwitch)) {
        LinkSpec adding = axis.link;
        adding.bytesPerSecond = axis.inSwitchBytesPerSecond;
        consider(InSwitch, inSwitchAllReduceSeconds(bytes, n, adding), 1.0, "in-switch reduction",
            [&] { return say("alpha + B/w, n={}, B={}, {}", n, bytesText(bytes), linkText(adding)); });
    }
    if (wants(HalvingDoubling))
        consider(HalvingDoubling, halvingDoublingAllReduceSeconds(bytes, n, axis.link), 2.0 * others, "halving and doubling",
            [&] { return "2 q alpha + 2 (n-1)/n B/w, q = floor(log2 n), + 2 (alpha + B/w) unless n = 2^q, " + inputs; });
    if (wants(RecursiveDoubling))
        consider(RecursiveDoubling, recursiveDoublingAllReduceSeconds(bytes, n, axis.link), std::log2(static_cast<double>(n)),
            "recursive doubling", [&] { return "log2 n (alpha + B/w), " + inputs; });
    return best;
}

Candidate Estimator::switchGather(const GroupAxis& axis, double bytes) const
{
    const std::int64_t n = axis.size;
    const std::string inputs = say("n={}, {}, {}", n, payloadText(), linkText(axis.link));
    if (wants(CollectiveAlgorithm::HalvingDoubling))
        return {doublingAllGatherSeconds(bytes, n, axis.link), othersShare(), say("halving and doubling"),
            say("log2 n alpha + (n-1)/n B/w, {}", inputs), {CollectiveAlgorithm::HalvingDoubling}};
    return {switchRingAllGatherSeconds(bytes, n, axis.link), othersShare(),
        say("{}", axis.kind == GroupKind::Scattered ? "logical ring over shared links" : "ring"),
        say("(n-1)(alpha + B/(n w)), {}", inputs), {CollectiveAlgorithm::Ring}};
}

double Estimator::networkAllToAllSeconds(double bytes) const
{
    if (m_network.perLeaf > 0 && m_network.perLeaf < m_network.size && m_network.oversubscription > 1.0)
        return fatTreeAllToAllSeconds(bytes, m_network.size, m_network.link, m_network.perLeaf, m_network.oversubscription);
    return pairwiseAllToAllSeconds(bytes, m_network.size, m_network.link);
}

/// One tier: a switch, the network between hosts of one device each, or a scattered group (a logical ring).
Candidate Estimator::star(const GroupAxis& axis) const
{
    using enum CollectiveAlgorithm;
    const std::int64_t n = axis.size;
    const std::string inputs = say("n={}, {}, {}", n, payloadText(), linkText(axis.link));
    const bool scattered = axis.kind == GroupKind::Scattered;
    const char* ring = scattered ? "logical ring over shared links" : "ring";
    switch (m_kind) {
    case CollectiveKind::AllReduce: {
        if (!scattered)
            return switchAllReduce(axis, m_bytes);
        return {switchRingAllReduceSeconds(m_bytes, n, axis.link), 2.0 * othersShare(), say("{}", ring),
            say("2 (n-1)(alpha + B/(n w)), {}", inputs), {Ring}};
    }
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return switchGather(axis, m_bytes);
    case CollectiveKind::AllToAll:
        if (scattered)
            // Every piece travels round the ring to its place: half of the ring on average.
            return {ringAllToAllSeconds(m_bytes, n, axis.link, Directions::One), othersShare(), say("{}", ring),
                say("(n-1) alpha + (n-1)/2 B/w, {}", inputs), {Ring}};
        if (wants(Bruck))
            return {bruckAllToAllSeconds(m_bytes, n, axis.link), std::log2(static_cast<double>(n)) / 2.0, say("Bruck"),
                say("log2 n (alpha + B/(2w)), {}", inputs), {Bruck}};
        if (axis.kind == GroupKind::Network)
            return {networkAllToAllSeconds(m_bytes), othersShare(), say("pairwise"),
                axis.oversubscription > 1.0 ? say(
                    "(n-1) alpha + [(r-1)/n + o (n-r)/n] B/w, r={}, o={:.3g}, {}", axis.perLeaf, axis.oversubscription, inputs)
                                            : say("(n-1)(alpha + B/(n w)), {}", inputs),
                {Pairwise}};
        return {pairwiseAllToAllSeconds(m_bytes, n, axis.link), othersShare(), say("pairwise"),
            say("(n-1)(alpha + B/(n w)), {}", inputs), {Pairwise}};
    case CollectiveKind::Permute:
        if (scattered && m_pattern == PermutePattern::Any) {
            const std::int64_t half = n / 2;
            return {ringPermuteSeconds(m_bytes, n, half, axis.link), 1.0, say("{}", ring), say("n/2 (alpha + B/w), {}", inputs),
                {Ring}};
        }
        return {axis.link.latencySeconds + m_bytes / axis.link.bytesPerSecond, 1.0, say("direct"), say("alpha + B/w, {}", inputs),
            {Direct}};
    case CollectiveKind::Broadcast: {
        if (wants(Binomial))
            return {binomialBroadcastSeconds(m_bytes, n, axis.link), 1.0, say("binomial tree"),
                say("ceil(log2 n)(alpha + B/w), {}", inputs), {Binomial}};
        const std::int64_t chunks = pipelineChunks(m_bytes);
        return {chainBroadcastSeconds(m_bytes, n, chunks, axis.link), 1.0, say("pipelined chain"),
            say("(n-1) alpha + (n-2+m) B/(m w), m={}, {}", chunks, inputs), {Chain}};
    }
    }
    return {};
}

Candidate Estimator::fullMesh(const GroupAxis& axis) const
{
    const std::int64_t n = axis.size;
    const std::string inputs = say("n={}, {}, {}", n, payloadText(), linkText(axis.link));
    const ChosenAlgorithm chosen{CollectiveAlgorithm::Direct};
    const Candidate pieces{
        directAllGatherSeconds(m_bytes, n, axis.link), othersShare(), say("direct"), say("alpha + B/(n w), {}", inputs), chosen};
    switch (m_kind) {
    case CollectiveKind::AllReduce:
        return {2.0 * pieces.seconds, 2.0 * othersShare(), say("direct"), say("2 (alpha + B/(n w)), {}", inputs), chosen};
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
        return pieces;
    case CollectiveKind::Permute:
        return {axis.link.latencySeconds + m_bytes / axis.link.bytesPerSecond, 1.0, say("direct"), say("alpha + B/w, {}", inputs),
            chosen};
    case CollectiveKind::Broadcast:
        return {2.0 * pieces.seconds, 2.0 * othersShare(), say("scatter, then all-gather"),
            say("2 (alpha + B/(n w)), {}", inputs), chosen};
    }
    return {};
}

/// A reduce-scatter or all-gather of all bytes within a host or slice.
Candidate Estimator::innerGather() const
{
    if (!m_axes.empty()) {
        Candidate gather = torusGather(m_bytes);
        gather.formula = "[" + gather.formula + "]";
        return gather;
    }
    Candidate gather;
    const bool mesh = m_inner.kind == GroupKind::FullMesh;
    gather.seconds = mesh ? directAllGatherSeconds(m_bytes, m_inner.size, m_inner.link)
                          : switchRingAllGatherSeconds(m_bytes, m_inner.size, m_inner.link);
    gather.formula = mesh ? "(alpha + B/(m w))" : "(m-1)(alpha + B/(m w))";
    return gather;
}

/// Two tiers: m devices in each of g hosts or slices.
Candidate Estimator::hosts() const
{
    using enum CollectiveAlgorithm;
    const std::int64_t g = m_network.size;
    const std::int64_t perHost = m_devices / g;
    const auto m = static_cast<double>(perHost);
    const bool slices = !m_axes.empty();
    const char* unit = slices ? "slice" : "host";
    const bool mesh = m_inner.kind == GroupKind::FullMesh;
    const std::string innerTerm = mesh ? "alpha_i + B/(m w_i)" : slices ? "[the slice's]" : "(m-1)(alpha_i + B/(m w_i))";
    const std::string within = slices ? torusInputs(m_axes) : linkText(m_inner.link);
    const std::string inputs
        = say("m={}, g={}, {}, inside {}, between {}", perHost, g, payloadText(), within, linkText(m_network.link));
    switch (m_kind) {
    case CollectiveKind::AllReduce: {
        const Candidate inner = innerGather();
        const Candidate between = switchAllReduce(m_network, m_bytes / m);
        ChosenAlgorithm chosen = inner.chosen;
        chosen.algorithm = between.chosen.algorithm;
        return {2.0 * inner.seconds + between.seconds, 2.0 * (m - 1.0) / m + between.wireShare / m,
            say("reduce-scatter in the {0}, {1} between {0}s, all-gather in the {0}", unit, between.algorithm),
            say("2 {}, m={}, {}, {}; between {}s {}", inner.formula, perHost, payloadText(), within, unit, between.formula),
            chosen};
    }
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter: {
        const Candidate inner = innerGather();
        const Candidate between = switchGather(m_network, m_bytes / m);
        ChosenAlgorithm chosen = inner.chosen;
        chosen.algorithm = between.chosen.algorithm;
        return {inner.seconds + between.seconds, othersShare(),
            wants(HalvingDoubling) ? say("halving and doubling between {0}s, then in the {0}", unit)
                                   : say("ring between {0}s and in the {0}, one after the other", unit),
            say("{} + (g-1)(alpha_e + B/(m g w_e)), {}", innerTerm, inputs), chosen};
    }
    case CollectiveKind::AllToAll: {
        const double inner = slices ? torusAllToAllSeconds(m_bytes, torusAxes(m_axes)) : innerGather().seconds;
        return {inner + networkAllToAllSeconds(m_bytes), (m - 1.0) / m + static_cast<double>(g - 1) / static_cast<double>(g),
            say("inside the {0}, then between {0}s on each rail", unit),
            say("{} + (g-1)(alpha_e + B/(g w_e)), {}", innerTerm, inputs), {Pairwise}};
    }
    case CollectiveKind::Permute: {
        const double between = m_network.link.latencySeconds + m_bytes / m_network.link.bytesPerSecond;
        const double inner
            = slices ? torusPermute().seconds : m_inner.link.latencySeconds + m_bytes / m_inner.link.bytesPerSecond;
        return {std::max(inner, between), 1.0, say("direct"), say("max of alpha + B/w inside and between {}s, {}", unit, inputs),
            {Direct}};
    }
    case CollectiveKind::Broadcast: {
        const std::int64_t chunks = pipelineChunks(m_bytes);
        const double inner = slices ? torusBroadcastSeconds(m_bytes, torusAxes(m_axes), chunks)
            : mesh                  ? directAllReduceSeconds(m_bytes, m_inner.size, m_inner.link)
                                    : chainBroadcastSeconds(m_bytes, m_inner.size, chunks, m_inner.link);
        return {inner + chainBroadcastSeconds(m_bytes, g, chunks, m_network.link), 1.0,
            say("chain between {}s, then in each", unit),
            say("(g-1) alpha_e + (g-2+c) B/(c w_e) + the same inside, c={}, {}", chunks, inputs), {Chain}};
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
    const bool adds = (inner && inner->inSwitchBytesPerSecond > 0.0) || (network && network->inSwitchBytesPerSecond > 0.0);
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

/// Slices: what enters a slice over the network, and a step over it.
double Estimator::slicesBound() const
{
    const std::int64_t perSlice = m_devices / m_network.size;
    const double slice = static_cast<double>(perSlice) * m_network.link.bytesPerSecond;
    const double latency = m_kind == CollectiveKind::Permute ? 0.0 : m_network.link.latencySeconds;
    switch (m_kind) {
    case CollectiveKind::AllReduce:
        return std::max(latency, allReduceDeviceBound(m_bytes, m_network.size, slice));
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return std::max(latency, allGatherDeviceBound(m_bytes, m_network.size, slice));
    case CollectiveKind::AllToAll:
        return std::max(latency, allToAllCutBound(m_bytes, m_devices, perSlice, slice));
    case CollectiveKind::Permute:
    case CollectiveKind::Broadcast:
        break;
    }
    double entering = m_network.link.bytesPerSecond;
    for (const GroupAxis& axis : m_axes)
        entering += 2.0 * axis.link.bytesPerSecond;
    return std::max(latency, m_bytes / entering);
}

CollectiveEstimate Estimator::run()
{
    if (m_devices == 1)
        return {0.0, 0, say("none"), say("0, a group of one device"), 0.0};

    Candidate chosen;
    double bound = 0.0;
    if (!m_axes.empty()) {
        chosen = m_network.size > 1 ? hosts() : torus();
        bound = m_network.size > 1 ? slicesBound() : torusBound(m_axes, m_devices);
    } else {
        const bool two = m_inner.size > 1 && m_network.size > 1;
        assert(!two || m_inner.kind != GroupKind::Scattered);
        if (two)
            chosen = hosts();
        else if (m_network.size > 1)
            chosen = star(m_network);
        else
            chosen = m_inner.kind == GroupKind::FullMesh ? fullMesh(m_inner) : star(m_inner);
        bound = starBound(m_network.size > 1 ? &m_network : nullptr, m_inner.size > 1 ? &m_inner : nullptr);
    }
    CollectiveEstimate estimate{chosen.seconds, static_cast<std::int64_t>(std::ceil(chosen.wireShare * m_bytes - 1e-6)),
        std::move(chosen.algorithm), std::move(chosen.formula), bound, std::move(chosen.chosen)};
    assert(estimate.seconds >= estimate.lowerBoundSeconds * (1.0 - 1e-9));
    estimate.lowerBoundSeconds = std::min(estimate.lowerBoundSeconds, estimate.seconds); // but for rounding
    return estimate;
}

/// The group as the library sees it; nothing where links lie in a way of their own (a torus, a logical ring over shared links).
std::optional<LibraryGroup> libraryGroup(const CollectiveRequest& request)
{
    LibraryGroup group;
    for (const GroupAxis& axis : request.axes) {
        if (axis.size == 1)
            continue;
        if (axis.kind == GroupKind::Torus || axis.kind == GroupKind::Scattered)
            return std::nullopt;
        const auto size = static_cast<double>(axis.size);
        if (axis.kind == GroupKind::Network) {
            group.outer *= size;
            group.outerBytesPerSecond = axis.link.bytesPerSecond;
            group.outerStepSeconds = axis.link.latencySeconds;
            continue;
        }
        group.inner *= size;
        group.innerBytesPerSecond = axis.link.bytesPerSecond;
        group.innerStepSeconds = axis.link.latencySeconds;
        group.inSwitchBytesPerSecond = axis.inSwitchBytesPerSecond;
        group.fullMesh = axis.kind == GroupKind::FullMesh;
    }
    return group;
}

/// What the library takes; nothing for what it does not model itself.
std::optional<LibraryTime> libraryTime(const CollectiveRequest& request)
{
    const auto group = libraryGroup(request);
    if (!group)
        return std::nullopt;
    const auto bytes = static_cast<double>(request.payloadBytes);
    using enum CollectiveAlgorithm;
    const bool ring = request.algorithm == Automatic || request.algorithm == Ring;
    switch (request.kind) {
    case CollectiveKind::AllReduce:
        if (request.algorithm == Automatic)
            return libraryAllReduce(bytes, *group, *request.library);
        if (ring)
            return libraryAllReduce(bytes, *group, *request.library, LibraryAlgorithm::Ring);
        if (request.algorithm == Tree)
            return libraryAllReduce(bytes, *group, *request.library, LibraryAlgorithm::Tree);
        if (request.algorithm == InSwitch && group->inSwitchBytesPerSecond > 0.0)
            return libraryAllReduce(bytes, *group, *request.library, LibraryAlgorithm::InSwitch);
        return std::nullopt;
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return ring ? std::optional(libraryAllGather(bytes, *group, *request.library)) : std::nullopt;
    case CollectiveKind::AllToAll:
        return request.algorithm == Automatic || request.algorithm == Pairwise
            ? std::optional(libraryAllToAll(bytes, *group, *request.library))
            : std::nullopt;
    case CollectiveKind::Permute:
    case CollectiveKind::Broadcast:
        break;
    }
    return std::nullopt;
}

CollectiveEstimate estimate(const CollectiveRequest& request, bool texts)
{
    CollectiveEstimate result = Estimator(request, texts).run();
    if (request.library == nullptr || result.algorithm == "none" || result.seconds <= 0.0)
        return result;
    const CollectiveLibrary& library = *request.library;
    const auto time = request.payloadBytes > 0 ? libraryTime(request) : std::nullopt;
    result.seconds = time ? time->seconds : result.seconds + library.startSeconds;
    result.lowerBoundSeconds = std::min(result.lowerBoundSeconds, result.seconds);
    if (!texts)
        return result;
    const std::string start = fmt::format("start of {}: {}", library.name, formatSeconds(library.startSeconds));
    if (!time) {
        result.formula = fmt::format("start + {}; {}", result.formula, start);
        return result;
    }
    result.algorithm = time->algorithm;
    result.formula = fmt::format(
        "start + steps + the slower of the bytes inside and between hosts, as {} does{}; {}; links alone: {}", library.name,
        time->protocol.empty() ? "" : fmt::format(" with its protocol {}", time->protocol), start, result.formula);
    return result;
}

} // namespace

CollectiveEstimate estimateCollective(const CollectiveRequest& request)
{
    return estimate(request, true);
}

double collectiveSeconds(const CollectiveRequest& request)
{
    return estimate(request, false).seconds;
}

ChosenAlgorithm chosenAlgorithm(const CollectiveRequest& request)
{
    return Estimator(request, false).run().chosen;
}

std::vector<CollectiveAlgorithm> algorithmsFor(const CollectiveRequest& request)
{
    return Estimator(request, false).algorithms();
}

} // namespace meshwright::sim
