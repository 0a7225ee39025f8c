// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/library_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace meshwright::sim {

namespace {

constexpr double kTreeShare = 0.9; ///< of a ring's bandwidth, that trees reach (tuning.cc)

struct Steps {
    double inner = 0.0;
    double outer = 0.0;
};

double others(double n)
{
    return (n - 1.0) / n;
}

double ringShare(const LibraryGroup& group, const CollectiveLibrary& library)
{
    if (library.ringShares.empty() || group.inner < 2.0)
        return 1.0;
    const auto index = static_cast<std::size_t>(group.inner) - 2;
    return library.ringShares[std::min(index, library.ringShares.size() - 1)];
}

double insideSeconds(double bytes, const LibraryGroup& group, const CollectiveLibrary& library)
{
    if (group.inner <= 1.0)
        return 0.0;
    const double share = group.fullMesh ? 1.0 / group.inner : others(group.inner) / ringShare(group, library);
    return share * bytes / group.innerBytesPerSecond;
}

/// `share` of the bytes over all NICs of a host.
double betweenSeconds(double bytes, double share, const LibraryGroup& group)
{
    return group.outer > 1.0 ? share * bytes / (group.inner * group.outerBytesPerSecond) : 0.0;
}

/// Of a tree inside its host.
double hostSteps(const LibraryGroup& group)
{
    return group.fullMesh ? std::min(1.0, group.inner - 1.0) : group.inner - 1.0;
}

/// A ring visits every device: of its n - 1 steps g - 1 lead to another host.
Steps ringSteps(const LibraryGroup& group)
{
    return {group.outer * hostSteps(group), group.outer - 1.0};
}

/// The quickest protocol for bytes that take `moving` seconds at full bandwidth; without the start.
LibraryTime quickest(
    const CollectiveLibrary& library, const LibraryGroup& group, const Steps& steps, double moving, const char* algorithm)
{
    if (library.protocols.empty())
        return {steps.inner * group.innerStepSeconds + steps.outer * group.outerStepSeconds + moving, algorithm, {}};
    LibraryTime best{std::numeric_limits<double>::infinity(), algorithm, {}};
    for (const CollectiveProtocol& protocol : library.protocols) {
        const double seconds = steps.inner * protocol.stepSeconds
            + steps.outer * protocol.networkStepSeconds.value_or(group.outerStepSeconds) + moving / protocol.bandwidthShare;
        if (seconds < best.seconds) {
            best.seconds = seconds;
            best.protocol = protocol.name;
        }
    }
    return best;
}

/// Of large messages: the last protocol of the library.
double networkStep(const CollectiveLibrary& library, const LibraryGroup& group)
{
    return library.protocols.empty() ? group.outerStepSeconds
                                     : library.protocols.back().networkStepSeconds.value_or(group.outerStepSeconds);
}

double innerStep(const CollectiveLibrary& library, const LibraryGroup& group)
{
    return library.protocols.empty() ? group.innerStepSeconds : library.protocols.back().stepSeconds;
}

bool isNothing(double bytes, const LibraryGroup& group)
{
    return group.size() <= 1.0 || bytes <= 0.0;
}

} // namespace

LibraryTime libraryAllGather(double bytes, const LibraryGroup& group, const CollectiveLibrary& library)
{
    if (isNothing(bytes, group))
        return {};
    LibraryTime time = quickest(library, group, ringSteps(group),
        std::max(insideSeconds(bytes, group, library), betweenSeconds(bytes, others(group.size()), group)), "ring");
    time.seconds += library.startSeconds;
    return time;
}

LibraryTime libraryAllReduce(
    double bytes, const LibraryGroup& group, const CollectiveLibrary& library, LibraryAlgorithm algorithm)
{
    if (isNothing(bytes, group))
        return {};
    const double inside = 2.0 * insideSeconds(bytes, group, library);
    const double between = 2.0 * betweenSeconds(bytes, others(group.size()), group);
    const double treeBetween = betweenSeconds(bytes, group.outer > 2.0 ? 2.0 : 1.0, group);
    const double levels = std::ceil(std::log2(group.outer));
    const bool best = algorithm == LibraryAlgorithm::Best;
    LibraryTime time{std::numeric_limits<double>::infinity(), "ring", {}};
    const auto consider = [&](const LibraryTime& other) {
        if (other.seconds < time.seconds)
            time = other;
    };
    const Steps ring = ringSteps(group);
    if (best || algorithm == LibraryAlgorithm::Ring)
        consider(quickest(library, group, {2.0 * ring.inner, 2.0 * ring.outer}, std::max(inside, between), "ring"));
    if ((best && group.outer > 1.0) || algorithm == LibraryAlgorithm::Tree)
        consider(quickest(library, group, {2.0 * hostSteps(group), 2.0 * levels}, std::max(inside, treeBetween) / kTreeShare,
            "double binary tree"));
    if (group.inSwitchBytesPerSecond > 0.0 && (best || algorithm == LibraryAlgorithm::InSwitch)) {
        const double added = std::max(bytes / group.inSwitchBytesPerSecond, treeBetween);
        consider({library.inSwitchSeconds + 2.0 * levels * networkStep(library, group) + added, "in-switch reduction", {}});
    }
    time.seconds += library.startSeconds;
    return time;
}

LibraryTime libraryAllToAll(double bytes, const LibraryGroup& group, const CollectiveLibrary& library, double networkShare)
{
    if (isNothing(bytes, group))
        return {};
    const double n = group.size();
    const double inside = group.inner <= 1.0 ? 0.0
        : group.fullMesh                     ? bytes / (n * group.innerBytesPerSecond)
                         : (group.inner - 1.0) / n * bytes / (group.innerBytesPerSecond * ringShare(group, library));
    const double between = networkShare * (n - group.inner) / n * bytes / group.outerBytesPerSecond;
    const double steps
        = (group.inner > 1.0 ? innerStep(library, group) : 0.0) + (group.outer > 1.0 ? 2.0 * networkStep(library, group) : 0.0);
    return {library.startSeconds + steps + std::max(inside, between), "pairwise", {}};
}

} // namespace meshwright::sim
