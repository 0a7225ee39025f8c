// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/collective.h"

#include "core/support/checked.h"
#include "core/support/text.h"
#include "sim/collective/collective_estimator.h"
#include "sim/collective/library_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
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

/// Two parts of one physical axis would share its links when both are used at once.
bool CollectiveEstimator::onePartAnAxis() const
{
    std::set<std::size_t> distinct;
    for (const GroupAxis& axis : m_axes)
        distinct.insert(axis.physicalAxis);
    return distinct.size() == m_axes.size();
}

std::vector<CollectiveAlgorithm> CollectiveEstimator::algorithms() const
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

CollectiveEstimate CollectiveEstimator::run()
{
    if (m_devices == 1)
        return {0.0, 0, say("none"), say("0, a group of one device"), 0.0};

    CollectiveCandidate chosen;
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

namespace {

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
    if (request.library == nullptr || request.payloadBytes == 0 || !group)
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
    CollectiveEstimate result = CollectiveEstimator(request, texts).run();
    if (request.library == nullptr || result.algorithm == "none" || result.seconds <= 0.0)
        return result;
    const CollectiveLibrary& library = *request.library;
    const auto time = libraryTime(request);
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

bool isPipelined(const CollectiveRequest& request)
{
    return libraryTime(request).has_value();
}

double collectiveSeconds(const CollectiveRequest& request)
{
    return estimate(request, false).seconds;
}

ChosenAlgorithm chosenAlgorithm(const CollectiveRequest& request)
{
    return CollectiveEstimator(request, false).run().chosen;
}

std::vector<CollectiveAlgorithm> algorithmsFor(const CollectiveRequest& request)
{
    return CollectiveEstimator(request, false).algorithms();
}

} // namespace meshwright::sim
