// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/network_times.h"

#include "core/sharding/tensor_sharding.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr std::pair<const char*, CollectiveKind> kKinds[] = {{"all_reduce", CollectiveKind::AllReduce},
    {"all_gather", CollectiveKind::AllGather}, {"reduce_scatter", CollectiveKind::ReduceScatter},
    {"all_to_all", CollectiveKind::AllToAll}, {"collective_permute", CollectiveKind::Permute}};

/// Messages of one run, about: each device sends each of the steps.
double messagesOf(const RoutedCollective& collective)
{
    double messages = 0.0;
    for (const auto& phase : collective.phases) {
        for (const RoutedLane& lane : phase)
            messages += static_cast<double>(lane.slots.size()) * static_cast<double>(lane.plan.stepBytes.size());
    }
    return messages;
}

} // namespace

Result<ForcedAlgorithms> parseAlgorithms(std::string_view text)
{
    ForcedAlgorithms forced;
    Problems problems;
    for (const std::string& part : split(text, ',')) {
        const std::size_t equals = part.find('=');
        const std::string name = equals == std::string::npos ? part : part.substr(equals + 1);
        const auto algorithm = findAlgorithm(name);
        if (!algorithm) {
            problems.push_back({"MW1740", fmt::format("unknown algorithm: \"{}\"", name),
                "use auto, ring, both_ways, all_axes, tree, in_switch, halving_doubling, recursive_doubling, direct, pairwise, "
                "bruck, chain "
                "or binomial"});
            continue;
        }
        bool found = false;
        for (const auto& [word, kind] : kKinds) {
            if (equals != std::string::npos && part.substr(0, equals) != word)
                continue;
            forced[kind] = *algorithm;
            found = true;
        }
        if (!found)
            problems.push_back({"MW1740", fmt::format("unknown kind of collective: \"{}\"", part.substr(0, equals)),
                "use all_reduce, all_gather, reduce_scatter, all_to_all or collective_permute"});
    }
    if (!problems.empty())
        return problems;
    return forced;
}

NetworkTimes::NetworkTimes(const MeshPlacement& placement, const Faults& faults, const NetworkOptions& options)
    : m_placement(placement)
    , m_faults(faults)
    , m_options(options)
    , m_links(placement.topology(), faults)
{
}

DeviceGroups NetworkTimes::groupsOf(const AxisRefs& axes) const
{
    DeviceGroups result;
    for (const std::vector<DeviceId>& group : deviceGroups(axes, m_placement.mesh())) {
        result.size = static_cast<std::uint32_t>(group.size());
        for (const DeviceId position : group)
            result.members.push_back(static_cast<std::uint32_t>(m_placement.deviceAt(position)));
    }
    return result;
}

Result<NetworkTimes::Time> NetworkTimes::run(const CollectiveRequest& request, const AxisRefs& axes, CollectiveEstimate estimate)
{
    auto routed = routeCollective(request, groupsOf(axes), m_links);
    if (!routed)
        return routed.error();
    const StartedCollective started{&*routed, 0, nullptr};
    const bool messages = m_options.fidelity == Fidelity::Message && messagesOf(*routed) <= kMostMessages;
    const NetworkRun run = runCollectives({&started, 1}, m_links, messages ? Fidelity::Message : Fidelity::Fluid);
    // What the library adds to the links alone stays as it is.
    CollectiveRequest links = request;
    links.library = nullptr;
    estimate.seconds = secondsOf(run.ends.front()) + std::max(0.0, estimate.seconds - collectiveSeconds(links));
    if (!m_faults.empty())
        m_sites.push_back(flowsOf(*routed));
    return Time{std::move(estimate), run.events};
}

Result<NetworkTimes::Time> NetworkTimes::of(OpKind kind, const AxisRefs& axes, std::int64_t bytesPerDevice)
{
    const std::tuple key{kind, axes, bytesPerDevice};
    if (const auto known = m_known.find(key); known != m_known.end())
        return known->second;
    if (kind == OpKind::AllSlice)
        return Time{estimateOn(m_placement, kind, axes, bytesPerDevice), 0};
    const CollectiveRequest request = requestOn(m_placement, kind, axes, bytesPerDevice, m_options.algorithms);
    if (m_options.algorithms.contains(request.kind))
        m_heeded[request.kind] |= std::ranges::count(algorithmsFor(request), request.algorithm) > 0;
    CollectiveEstimate estimate = estimateCollective(request);
    const bool simulated
        = m_options.fidelity == Fidelity::Message || (m_options.fidelity == Fidelity::Fluid && !m_faults.empty());
    auto time = simulated && estimate.seconds > 0.0 ? run(request, axes, std::move(estimate))
                                                    : Result<Time>(Time{std::move(estimate), 0});
    if (time)
        m_known.emplace(key, *time);
    return time;
}

Problems NetworkTimes::unheeded() const
{
    Problems problems;
    for (const auto& [kind, heeded] : m_heeded) {
        if (!heeded)
            problems.push_back({"MW1740",
                fmt::format("no {} of the step can be done by the algorithm \"{}\" on this hardware", collectiveKindName(kind),
                    algorithmName(m_options.algorithms.at(kind))),
                "use auto, or another algorithm"});
    }
    return problems;
}

std::int64_t NetworkTimes::classes() const
{
    if (m_faults.empty())
        return 1;
    StepWork work;
    work.links = &m_links;
    work.kindOf.assign(static_cast<std::size_t>(m_placement.topology().deviceCount()), kNothing);
    work.speed.assign(work.kindOf.size(), 1.0);
    for (const DeviceId device : m_placement.deviceOrder())
        work.kindOf[static_cast<std::size_t>(device)] = 0;
    for (const SlowDevice& slow : m_faults.devices)
        work.speed[static_cast<std::size_t>(slow.device)] = slow.speed;
    work.sites = m_sites;
    return static_cast<std::int64_t>(foldStep(work).representative.size());
}

} // namespace meshwright::sim
