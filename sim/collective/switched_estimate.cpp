// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/collective_estimator.h"

#include "core/support/checked.h"
#include "sim/collective/bounds.h"
#include "sim/collective/switch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace meshwright::sim {

/// What NCCL weighs for an all-reduce by size and ranks, or the algorithm that is forced.
CollectiveCandidate CollectiveEstimator::switchAllReduce(const GroupAxis& axis, double bytes) const
{
    using enum CollectiveAlgorithm;
    const std::int64_t n = axis.size;
    const std::string inputs = say("n={}, B={}, {}", n, bytesText(bytes), linkText(axis.link));
    const double others = static_cast<double>(n - 1) / static_cast<double>(n);
    CollectiveCandidate best;
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

CollectiveCandidate CollectiveEstimator::switchGather(const GroupAxis& axis, double bytes) const
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

double CollectiveEstimator::networkAllToAllSeconds(double bytes) const
{
    if (m_network.perLeaf > 0 && m_network.perLeaf < m_network.size && m_network.oversubscription > 1.0)
        return fatTreeAllToAllSeconds(bytes, m_network.size, m_network.link, m_network.perLeaf, m_network.oversubscription);
    return pairwiseAllToAllSeconds(bytes, m_network.size, m_network.link);
}

/// One tier: a switch, the network between hosts of one device each, or a scattered group (a logical ring).
CollectiveCandidate CollectiveEstimator::star(const GroupAxis& axis) const
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

CollectiveCandidate CollectiveEstimator::fullMesh(const GroupAxis& axis) const
{
    const std::int64_t n = axis.size;
    const std::string inputs = say("n={}, {}, {}", n, payloadText(), linkText(axis.link));
    const ChosenAlgorithm chosen{CollectiveAlgorithm::Direct};
    const CollectiveCandidate pieces{
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
CollectiveCandidate CollectiveEstimator::innerGather() const
{
    if (!m_axes.empty()) {
        CollectiveCandidate gather = torusGather(m_bytes);
        gather.formula = "[" + gather.formula + "]";
        return gather;
    }
    CollectiveCandidate gather;
    const bool mesh = m_inner.kind == GroupKind::FullMesh;
    gather.seconds = mesh ? directAllGatherSeconds(m_bytes, m_inner.size, m_inner.link)
                          : switchRingAllGatherSeconds(m_bytes, m_inner.size, m_inner.link);
    gather.formula = mesh ? "(alpha + B/(m w))" : "(m-1)(alpha + B/(m w))";
    return gather;
}

/// Two tiers: m devices in each of g hosts or slices.
CollectiveCandidate CollectiveEstimator::hosts() const
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
        const CollectiveCandidate inner = innerGather();
        const CollectiveCandidate between = switchAllReduce(m_network, m_bytes / m);
        ChosenAlgorithm chosen = inner.chosen;
        chosen.algorithm = between.chosen.algorithm;
        return {2.0 * inner.seconds + between.seconds, 2.0 * (m - 1.0) / m + between.wireShare / m,
            say("reduce-scatter in the {0}, {1} between {0}s, all-gather in the {0}", unit, between.algorithm),
            say("2 {}, m={}, {}, {}; between {}s {}", inner.formula, perHost, payloadText(), within, unit, between.formula),
            chosen};
    }
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter: {
        const CollectiveCandidate inner = innerGather();
        const CollectiveCandidate between = switchGather(m_network, m_bytes / m);
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
double CollectiveEstimator::starBound(const GroupAxis* network, const GroupAxis* inner) const
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
double CollectiveEstimator::slicesBound() const
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

} // namespace meshwright::sim
