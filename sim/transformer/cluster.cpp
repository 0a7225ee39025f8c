// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/cluster.h"

#include "sim/hardware/machine.h"
#include "sim/transformer/plan.h"

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

double figureOr(const OptionalFigure& figure, double otherwise)
{
    return figure ? figure->value : otherwise;
}

/// The sizes of the most compact slice of so many chips with a torus of `rank` axes.
std::vector<std::int64_t> compactSlice(std::int64_t chips, std::int64_t rank)
{
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank), 1);
    std::int64_t rest = chips;
    for (std::int64_t factor = 2; rest > 1;) {
        if (rest % factor != 0) {
            ++factor;
            continue;
        }
        *std::min_element(sizes.begin(), sizes.end()) *= factor;
        rest /= factor;
    }
    return sizes;
}

} // namespace

Cluster::Cluster(const Chip& chip, const ClusterChoice& choice, const StackConstants& constants)
    : m_torus(chip.interconnect.kind == InterconnectKind::Torus)
{
    const Interconnect& links = chip.interconnect;
    const auto perChip = static_cast<double>(chip.devicesPerChip);
    if (links.library)
        m_library = *links.library;
    m_capacityBytes = choice.hbmBytes ? *choice.hbmBytes : figureOr(chip.hbmBytes, 0.0) / perChip;
    const double link = figureOr(links.linkBytesPerSecond, 25e9);
    if (m_torus) {
        m_sliceDevices = static_cast<double>(choice.devices / std::max<std::int64_t>(1, choice.slices));
        const auto rank = std::max<std::int64_t>(1, links.torusRank);
        const auto chips
            = std::max<std::int64_t>(1, choice.devices / std::max<std::int64_t>(1, choice.slices) / chip.devicesPerChip);
        const auto slice = choice.slice.empty() ? compactSlice(chips, rank) : choice.slice;
        double wrapped = 0.0;
        double axes = 0.0;
        for (std::size_t axis = 0; axis < slice.size(); ++axis) {
            if (slice[axis] <= 1)
                continue;
            const bool whole = axis < chip.maxSlice.size() && slice[axis] >= chip.maxSlice[axis];
            const bool cubes = slice[axis] % 4 == 0 && *std::min_element(slice.begin(), slice.end()) >= 4;
            const bool ring = (links.wrapRule == WrapRule::FullAxis && whole) || (links.wrapRule == WrapRule::CubesOf4 && cubes)
                || (links.wrapRule == WrapRule::FullPod && whole);
            axes += 1.0;
            wrapped += ring ? 1.0 : 0.5;
        }
        m_axes = std::max(1.0, axes);
        m_fast = 2.0 * link * (axes > 0.0 ? wrapped / axes : 0.5) * constants.linkEfficiency / perChip;
        m_fastStep = figureOr(links.hopLatencySeconds, 1e-6);
        m_network
            = choice.networkBytesPerSecond ? *choice.networkBytesPerSecond : figureOr(chip.dcnBytesPerSecond, 6.25e9) / perChip;
        m_networkStep = kAssumedSliceStepSeconds;
        m_domain = std::max<std::int64_t>(1, choice.devices / std::max<std::int64_t>(1, choice.slices));
    } else {
        m_domain = choice.fastDomain ? *choice.fastDomain : chip.fastDomain ? *chip.fastDomain : 8;
        const double total = figureOr(links.totalBytesPerSecond, link * figureOr(links.linksPerChip, 1.0));
        m_fast = total * figureOr(links.achievableFraction, kAssumedRingFraction) * constants.linkEfficiency;
        m_network = choice.networkBytesPerSecond ? *choice.networkBytesPerSecond : figureOr(chip.nicBytesPerSecond, 12.5e9);
        m_fastStep = figureOr(links.hopLatencySeconds, kAssumedGpuStepSeconds);
        m_networkStep = figureOr(chip.networkLatencySeconds, kAssumedNetworkStepSeconds);
        m_addsInSwitch = links.reducesInSwitch;
    }
    m_network *= constants.networkEfficiency * (choice.stagesThroughHost ? constants.stagedShare : 1.0);
    m_hosts = std::ceil(static_cast<double>(choice.devices) / static_cast<double>(std::max<std::int64_t>(1, m_domain)));
}

RankGroup Cluster::group(std::int64_t size, std::int64_t stride) const
{
    const std::int64_t inside = stride >= m_domain ? 1 : std::clamp<std::int64_t>(m_domain / stride, 1, size);
    return {static_cast<double>(inside), static_cast<double>(size) / static_cast<double>(inside)};
}

RankGroup Cluster::expertShards(const ParallelLayout& layout, std::int64_t shards) const
{
    const std::int64_t size = std::max<std::int64_t>(1, shards / layout.ep);
    if (!layout.contextInside() || size % layout.cp != 0)
        return group(size, layout.tp * layout.ep);
    const RankGroup near = group(layout.cp, layout.tp);
    const RankGroup far = group(size / layout.cp, layout.expertStride * layout.ep);
    return {near.inner * far.inner, near.outer * far.outer};
}

double Cluster::axesOf(double size) const
{
    if (size <= 1.0 || m_sliceDevices <= 1.0)
        return 1.0;
    return std::clamp(std::round(m_axes * std::log(size) / std::log(m_sliceDevices)), 1.0, m_axes);
}

double Cluster::fastSeconds(double bytes, double size) const
{
    return (size - 1.0) / size * bytes / (m_torus ? m_fast * axesOf(size) : m_fast);
}

LibraryGroup Cluster::libraryGroup(const RankGroup& group) const
{
    return {group.inner, group.outer, m_fast, m_fastStep, m_network, m_networkStep,
        m_addsInSwitch ? m_fast * kInSwitchShareOfRing : 0.0, false};
}

double Cluster::allGatherSeconds(double bytes, const RankGroup& group) const
{
    if (!m_torus)
        return libraryAllGather(bytes, libraryGroup(group), m_library).seconds;
    if (group.size() <= 1.0 || bytes <= 0.0)
        return 0.0;
    const double hops = axesOf(group.inner) * std::pow(group.inner, 1.0 / axesOf(group.inner)) / 2.0;
    const double across = group.outer > 1.0
        ? m_networkStep * (group.outer - 1.0) + (group.outer - 1.0) / group.outer * bytes / (group.inner * m_network)
        : 0.0;
    return m_library.startSeconds + hops * m_fastStep + fastSeconds(bytes, group.inner) + across;
}

double Cluster::allReduceSeconds(double bytes, const RankGroup& group) const
{
    if (!m_torus)
        return libraryAllReduce(bytes, libraryGroup(group), m_library).seconds;
    if (group.size() <= 1.0 || bytes <= 0.0)
        return 0.0;
    const double atOnce = 2.0 * allGatherSeconds(bytes, group) - m_library.startSeconds;
    const double axes = m_library.reducesAxisByAxis ? axesOf(group.inner) : 1.0;
    return atOnce + 2.0 * (axes - 1.0) * fastSeconds(bytes, group.inner);
}

double Cluster::allToAllSeconds(double bytes, const RankGroup& group, double networkShare) const
{
    if (!m_torus)
        return libraryAllToAll(bytes, libraryGroup(group), m_library, networkShare).seconds;
    if (group.size() <= 1.0 || bytes <= 0.0)
        return 0.0;
    // A quarter of an all-gather of n times the bytes, both ways round each axis.
    const double along = std::pow(group.inner, 1.0 / axesOf(group.inner));
    const double inside = along * bytes / (4.0 * m_fast);
    const double across = group.outer > 1.0 ? (group.outer - 1.0) / group.outer * bytes / m_network : 0.0;
    return m_library.startSeconds + along / 2.0 * m_fastStep + inside + across;
}

double Cluster::sendSeconds(double bytes, std::int64_t stride) const
{
    if (bytes <= 0.0)
        return 0.0;
    const bool fast = stride < m_domain;
    const double fastStep = m_library.protocols.empty() ? m_fastStep : m_library.protocols.back().stepSeconds;
    return (fast ? fastStep : m_networkStep) + bytes / (fast ? m_fast : m_network);
}

} // namespace meshwright::sim
