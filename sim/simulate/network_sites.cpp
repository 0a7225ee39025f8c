// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/network_sites.h"

#include "core/sharding/tensor_sharding.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr std::pair<const char*, CollectiveKind> kKinds[] = {{"all_reduce", CollectiveKind::AllReduce},
    {"all_gather", CollectiveKind::AllGather}, {"reduce_scatter", CollectiveKind::ReduceScatter},
    {"all_to_all", CollectiveKind::AllToAll}, {"collective_permute", CollectiveKind::Permute}};

/// Messages of one call in all groups, about: each device sends each of the steps.
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

NetworkSites::NetworkSites(
    const MeshPlacement& placement, const Faults& faults, const NetworkOptions& options, std::optional<std::size_t> stageAxis)
    : m_placement(placement)
    , m_faults(faults)
    , m_options(options)
    , m_stageAxis(stageAxis)
    , m_links(placement.topology(), faults)
    , m_devices(placement.deviceOrder())
{
}

std::int64_t NetworkSites::stageOf(std::int64_t position) const
{
    return m_stageAxis ? m_placement.mesh().coordinate(position, *m_stageAxis) : 0;
}

std::uint32_t NetworkSites::streamFor(Stream stream)
{
    const auto found = std::ranges::find(m_streams, stream);
    if (found != m_streams.end())
        return static_cast<std::uint32_t>(found - m_streams.begin());
    m_streams.push_back(std::move(stream));
    return static_cast<std::uint32_t>(m_streams.size() - 1);
}

void NetworkSites::beginFunction(std::uint32_t stage)
{
    m_stageOfFunction.push_back(stage);
}

std::uint32_t NetworkSites::add(OpKind kind, const AxisRefs& axes, std::int64_t payloadBytes)
{
    const auto function = static_cast<std::uint32_t>(m_stageOfFunction.size() - 1);
    const auto [known, isNew] = m_known.try_emplace({kind, axes, payloadBytes}, static_cast<std::uint32_t>(m_sites.size()));
    if (!isNew) {
        std::vector<std::uint32_t>& functions = m_sites[known->second].functions;
        if (functions.back() != function)
            functions.push_back(function);
        return known->second;
    }
    Site site;
    site.functions = {function};
    site.kind = kind;
    site.axes = axes;
    if (kind != OpKind::AllSlice)
        site.request = requestOn(m_placement, kind, axes, payloadBytes, m_options.algorithms);
    return addCollective(std::move(site));
}

std::uint32_t NetworkSites::add(CollectiveKind kind, std::shared_ptr<const DeviceGroups> groups, std::int64_t payloadBytes)
{
    std::vector<std::vector<DeviceId>> devices;
    for (auto member = groups->members.begin(); member != groups->members.end(); member += groups->size)
        devices.emplace_back(member, member + groups->size);
    Site site;
    site.own = std::move(groups);
    site.request = requestFor(m_placement, kind, m_placement.groupAxesOfDevices(devices), payloadBytes, m_options.algorithms);
    return addCollective(std::move(site));
}

/// `site` has all but its estimate and its stream.
std::uint32_t NetworkSites::addCollective(Site site)
{
    if (site.kind == OpKind::AllSlice && site.own == nullptr) {
        site.estimate = estimateOn(m_placement, site.kind, site.axes, 0);
    } else {
        if (m_options.algorithms.contains(site.request.kind))
            m_heeded[site.request.kind] |= std::ranges::count(algorithmsFor(site.request), site.request.algorithm) > 0;
        site.estimate = estimateCollective(site.request);
    }
    Stream stream{site.axes, {}, false, 0, site.own};
    for (const GroupAxis& axis : site.request.axes)
        stream.physical |= axis.kind == GroupKind::Scattered ? ~std::uint64_t{0} : std::uint64_t{1} << axis.physicalAxis;
    site.stream = streamFor(std::move(stream));
    m_sites.push_back(std::move(site));
    return static_cast<std::uint32_t>(m_sites.size() - 1);
}

std::uint32_t NetworkSites::add(const StageTransfer& transfer)
{
    assert(transfer.from != transfer.to);
    const auto [known, isNew] = m_knownTransfers.try_emplace(transfer, static_cast<std::uint32_t>(m_sites.size()));
    if (!isNew)
        return known->second;
    Site site;
    site.transfer = transfer;
    return addTransfer(std::move(site));
}

std::uint32_t NetworkSites::addMessages(std::shared_ptr<const DeviceGroups> pairs, std::int64_t payloadBytes)
{
    Site site;
    site.own = std::move(pairs);
    site.transfer.payloadBytes = payloadBytes;
    return addTransfer(std::move(site));
}

std::uint32_t NetworkSites::addTransfer(Site site)
{
    site.isTransfer = true;
    site.estimate = transferEstimate(site);
    Stream stream{{}, site.transfer, true, 0, site.own};
    stream.transfer.payloadBytes = 0;
    if (stream.transfer.what == StageMessage::SharedGradients)
        stream.transfer.what = StageMessage::Gradients; // all gradients are on one
    const DeviceGroups pairs = groupsOf(site);
    const Topology& topology = m_placement.topology();
    for (std::size_t axis = 0; axis < topology.axes().size(); ++axis) {
        for (std::size_t pair = 0; pair < pairs.count(); ++pair) {
            if (topology.coordinate(pairs.members[2 * pair], axis) != topology.coordinate(pairs.members[2 * pair + 1], axis))
                stream.physical |= std::uint64_t{1} << axis;
        }
    }
    if (site.own == nullptr)
        m_betweenStages |= stream.physical;
    site.stream = streamFor(std::move(stream));
    m_sites.push_back(std::move(site));
    return static_cast<std::uint32_t>(m_sites.size() - 1);
}

/// Of a transfer, pairs: the sender, then the receiver.
DeviceGroups NetworkSites::groupsOf(const Site& site) const
{
    if (site.own != nullptr)
        return *site.own;
    DeviceGroups result;
    if (!site.isTransfer) {
        for (const std::vector<DeviceId>& group : deviceGroups(site.axes, m_placement.mesh())) {
            result.size = static_cast<std::uint32_t>(group.size());
            for (const DeviceId position : group)
                result.members.push_back(static_cast<std::uint32_t>(m_devices[static_cast<std::size_t>(position)]));
        }
        return result;
    }
    // Stages have equally many devices, and their positions come in the same order.
    std::vector<std::uint32_t> senders;
    std::vector<std::uint32_t> receivers;
    for (std::int64_t position = 0; position < m_placement.mesh().deviceCount(); ++position) {
        const auto device = static_cast<std::uint32_t>(m_devices[static_cast<std::size_t>(position)]);
        if (stageOf(position) == site.transfer.from)
            senders.push_back(device);
        else if (stageOf(position) == site.transfer.to)
            receivers.push_back(device);
    }
    result.size = 2;
    for (std::size_t i = 0; i < senders.size(); ++i)
        result.members.insert(result.members.end(), {senders[i], receivers[i]});
    return result;
}

namespace {

/// One message from the first to the second device of each pair, over the shortest way.
RoutedLane transferLane(const DeviceGroups& pairs, std::int64_t bytes, const MachineLinks& links)
{
    RoutedLane lane;
    lane.plan.shape = LaneShape::AtOnce;
    lane.plan.stepBytes = {static_cast<double>(bytes)};
    lane.plan.linkBytes = static_cast<double>(bytes);
    lane.lineLength = 2;
    double slowest = std::numeric_limits<double>::infinity();
    double longest = 0.0;
    for (std::uint32_t slot = 0; slot < pairs.members.size(); slot += 2) {
        const auto firstLink = static_cast<std::uint32_t>(lane.links.size());
        double latency = 0.0;
        links.appendRoute(pairs.members[slot], pairs.members[slot + 1], lane.links, latency);
        const auto count = static_cast<std::uint32_t>(lane.links.size()) - firstLink;
        for (std::uint32_t link = firstLink; link < firstLink + count; ++link)
            slowest = std::min(slowest, links.bytesPerSecond(lane.links[link]));
        longest = std::max(longest, latency);
        lane.slots.push_back({pairs.members[slot], static_cast<std::uint32_t>(lane.paths.size()), 1, 1, 1, 1, 0});
        lane.slots.push_back({pairs.members[slot + 1], 0, 0, 0, 0, 1, 1});
        lane.paths.push_back({firstLink, count, slot + 1, 0, ticksOf(latency)});
    }
    lane.latency = ticksOf(longest);
    lane.plan.latencySeconds = longest;
    lane.plannedBytesPerSecond = lane.linkBytesPerSecond = slowest;
    return lane;
}

} // namespace

Result<RoutedCollective> NetworkSites::transferRoute(const Site& site) const
{
    RoutedCollective routed;
    routed.groups = groupsOf(site);
    RoutedLane lane = transferLane(routed.groups, site.transfer.payloadBytes, m_links);
    for (std::size_t pair = 0; pair < lane.paths.size(); ++pair) {
        const LanePath& path = lane.paths[pair];
        for (std::uint32_t link = path.firstLink; link < path.firstLink + path.linkCount; ++link) {
            if (m_links.failed(lane.links[link]))
                return Problem{"MW1741",
                    fmt::format("failed links leave no path from device {} to device {}", routed.groups.members[2 * pair],
                        routed.groups.members[2 * pair + 1]),
                    "remove the fault of the link, or leave the device out of the mesh"};
        }
    }
    routed.phases.resize(1);
    routed.phases.front().push_back(std::move(lane));
    return routed;
}

/// As if the links were whole and each pair had them for itself.
CollectiveEstimate NetworkSites::transferEstimate(const Site& site) const
{
    const std::int64_t bytes = site.transfer.payloadBytes;
    const MachineLinks whole(m_placement.topology());
    DeviceGroups pairs = groupsOf(site);
    pairs.members.resize(2); // stages lie alike
    const RoutedLane lane = transferLane(pairs, bytes, whole);
    CollectiveEstimate estimate;
    estimate.seconds = lane.plan.latencySeconds + static_cast<double>(bytes) / lane.linkBytesPerSecond;
    estimate.lowerBoundSeconds = estimate.seconds;
    estimate.wireBytes = bytes;
    estimate.algorithm = "send and receive";
    estimate.formula = fmt::format("latency of the way + bytes / bandwidth of its slowest link = {} + {} / {}/s",
        formatSeconds(lane.plan.latencySeconds), formatBytes(bytes), formatBytes(lane.linkBytesPerSecond));
    return estimate;
}

/// Whether both can be under way on the same links. Of two collectives: in one function, or in two stages that have links in common.
bool NetworkSites::canMeet(const Site& one, const Site& other) const
{
    const std::uint64_t shared = m_streams[one.stream].physical & m_streams[other.stream].physical;
    if (one.stream == other.stream || shared == 0)
        return false;
    if (one.functions.empty() || other.functions.empty())
        return true;
    const auto stage = m_stageOfFunction[one.functions.front()];
    const auto isElsewhere = [&](std::uint32_t function) { return m_stageOfFunction[function] != stage; };
    if ((shared & m_betweenStages) != 0
        && (std::ranges::any_of(one.functions, isElsewhere) || std::ranges::any_of(other.functions, isElsewhere)))
        return true;
    return std::ranges::any_of(
        one.functions, [&](std::uint32_t function) { return std::ranges::binary_search(other.functions, function); });
}

/// Something of weight on another stream can be on its links.
bool NetworkSites::contends(const Site& site) const
{
    constexpr std::int64_t kScalarBytes = 1024; // on links for nanoseconds
    const auto isHeavy
        = [](const Site& one) { return (one.isTransfer ? one.transfer.payloadBytes : one.request.payloadBytes) > kScalarBytes; };
    return isHeavy(site)
        && std::ranges::any_of(m_sites, [&](const Site& other) { return isHeavy(other) && canMeet(site, other); });
}

Result<StepSite> NetworkSites::routed(const Site& site, double& messagesPerCall) const
{
    StepSite result;
    if (m_fidelity == Fidelity::Message || site.isTransfer) {
        auto route = site.isTransfer ? transferRoute(site) : routeCollective(site.request, groupsOf(site), m_links);
        if (!route)
            return route.error();
        result = flowsOf(*route);
        if (m_fidelity == Fidelity::Message) {
            messagesPerCall = messagesOf(*route);
            result.messages = std::make_shared<const RoutedCollective>(*std::move(route));
        }
    } else {
        auto flows = routeFlows(site.request, groupsOf(site), m_links);
        if (!flows)
            return flows.error();
        result = *std::move(flows);
    }
    // What the library adds to the links alone stays as it is.
    if (!site.isTransfer && site.request.library != nullptr)
        delayStart(result, ticksOf(site.estimate.seconds - planCollective(site.request).secondsAlone()));
    return result;
}

/// One device for each stage, without links.
StepWork NetworkSites::representatives()
{
    StepWork work;
    const auto stages = static_cast<std::uint32_t>(m_stageAxis ? m_placement.mesh().axes()[*m_stageAxis].size : 1);
    for (std::uint32_t stage = 0; stage < stages; ++stage)
        work.kindOf.push_back(stage);
    for (const Site& site : m_sites) {
        DeviceGroups groups{1, work.kindOf};
        if (site.isTransfer)
            groups = {2, {static_cast<std::uint32_t>(site.transfer.from), static_cast<std::uint32_t>(site.transfer.to)}};
        work.sites.push_back(delaySite(std::move(groups), ticksOf(site.estimate.seconds)));
    }
    PhysicalAxis axis{"stage", AxisKind::Network, stages, false, {1.0, 0.0, LinkKind::Nic}, 0.0};
    m_stagesOnly = std::make_unique<Topology>(std::vector<PhysicalAxis>{axis}, std::vector<std::int64_t>{1});
    m_stageLinks = std::make_unique<MachineLinks>(*m_stagesOnly);
    work.links = m_stageLinks.get();
    return work;
}

/// Devices of the machine, and nothing that they do yet.
StepWork NetworkSites::wholeMachine() const
{
    StepWork work;
    work.links = &m_links;
    work.kindOf.assign(static_cast<std::size_t>(m_placement.topology().deviceCount()), kNothing);
    for (const auto& [device, stage] : stagesOfDevices())
        work.kindOf[device] = stage;
    if (!m_kindOfDevice.empty())
        work.kindOf = m_kindOfDevice;
    work.speed = speeds();
    return work;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> NetworkSites::stagesOfDevices() const
{
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stages;
    for (std::size_t position = 0; position < m_devices.size(); ++position)
        stages.emplace_back(static_cast<std::uint32_t>(m_devices[position]),
            static_cast<std::uint32_t>(stageOf(static_cast<std::int64_t>(position))));
    std::ranges::sort(stages);
    return stages;
}

std::vector<double> NetworkSites::speeds() const
{
    std::vector<double> speeds;
    if (m_faults.devices.empty())
        return speeds;
    speeds.assign(static_cast<std::size_t>(m_placement.topology().deviceCount()), 1.0);
    for (const SlowDevice& slow : m_faults.devices)
        speeds[static_cast<std::size_t>(slow.device)] = slow.speed;
    return speeds;
}

bool NetworkSites::isRouted(const Site& site, Fidelity fidelity) const
{
    if (site.estimate.seconds <= 0.0 || fidelity == Fidelity::Closed)
        return false;
    const bool isMessages = site.isTransfer && site.own != nullptr;
    return fidelity == Fidelity::Message || !m_faults.links.empty() || isMessages || contends(site);
}

/// At `m_fidelity`; nothing when there would be too many messages.
Result<std::optional<StepWork>> NetworkSites::workAs(const std::vector<std::int64_t>& calls)
{
    m_represented = m_faults.devices.empty() && m_kindOfDevice.empty()
        && std::ranges::none_of(m_sites, [&](const Site& site) { return isRouted(site, m_fidelity); });
    if (m_represented)
        return std::optional(representatives());
    StepWork work = wholeMachine();
    double messages = 0.0;
    for (std::size_t i = 0; i < m_sites.size(); ++i) {
        if (!isRouted(m_sites[i], m_fidelity)) {
            work.sites.push_back(delaySite(groupsOf(m_sites[i]), ticksOf(m_sites[i].estimate.seconds)));
            continue;
        }
        double perCall = 0.0;
        auto site = routed(m_sites[i], perCall);
        if (!site)
            return site.error();
        messages += perCall * static_cast<double>(calls[i]);
        if (messages > kMostMessages)
            return std::optional<StepWork>();
        work.sites.push_back(*std::move(site));
    }
    return std::optional(std::move(work));
}

Result<StepWork> NetworkSites::work(const std::vector<std::int64_t>& calls, std::int64_t opsPerDevice)
{
    if (Problems problems = unheeded(); !problems.empty())
        return problems;
    const double ops = static_cast<double>(m_devices.size()) * static_cast<double>(opsPerDevice);
    m_fidelity = m_options.fidelity == Fidelity::Message && ops > kMostMessageOps ? Fidelity::Fluid : m_options.fidelity;
    auto made = workAs(calls);
    if (made && !made->has_value()) {
        m_fidelity = Fidelity::Fluid;
        made = workAs(calls);
    }
    if (!made)
        return made.error();
    return **std::move(made);
}

bool NetworkSites::isSynchronous() const
{
    const CollectiveLibrary* library = m_placement.library();
    return library != nullptr && library->synchronous;
}

std::int64_t NetworkSites::collectiveStreams() const
{
    return std::ranges::count(m_streams, false, &Stream::isTransfer);
}

DeviceId NetworkSites::machineDevice(std::uint32_t device) const
{
    if (!m_represented)
        return device;
    for (std::size_t position = 0; position < m_devices.size(); ++position) {
        if (stageOf(static_cast<std::int64_t>(position)) == static_cast<std::int64_t>(device))
            return m_devices[position];
    }
    return 0;
}

Problems NetworkSites::unheeded() const
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

} // namespace meshwright::sim
