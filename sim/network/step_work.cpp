// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/step_work.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>

namespace meshwright::sim {

std::uint32_t StepProgram::add(Ticks ticks, std::uint32_t site, std::uint32_t meeting, std::span<const StepDependency> after)
{
    m_ticks.push_back(ticks);
    m_site.push_back(site);
    m_meeting.push_back(meeting);
    m_dependencies.insert(m_dependencies.end(), after.begin(), after.end());
    m_first.push_back(static_cast<std::uint32_t>(m_dependencies.size()));
    return static_cast<std::uint32_t>(m_ticks.size() - 1);
}

std::uint32_t StepProgram::compute(Ticks ticks, std::span<const StepDependency> after)
{
    return add(ticks, kNothing, kNothing, after);
}

std::uint32_t StepProgram::collective(std::uint32_t site, std::uint32_t meeting, std::span<const StepDependency> after)
{
    return add(0, site, meeting, after);
}

namespace {

/// Source: S. Vigna's splitmix64 (public domain).
std::uint64_t mixed(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b)
{
    return mixed(mixed(a) ^ (b * 0xff51afd7ed558ccdULL + 0x2545f4914f6cdd1dULL));
}

/// Numbers for colours, in the order in which they are first seen.
class ColourNumbers {
public:
    ColourNumbers()
        : m_slots(64, {0, kNothing})
    {
    }

    std::uint32_t size() const { return m_size; }

    std::uint32_t numberOf(std::uint64_t colour)
    {
        const std::size_t place = find(colour);
        if (m_slots[place].second != kNothing)
            return m_slots[place].second;
        m_slots[place] = {colour, m_size};
        if (2 * ++m_size > m_slots.size())
            grow();
        return m_size - 1;
    }

    /// kNothing when it was not seen.
    std::uint32_t known(std::uint64_t colour) const { return m_slots[find(colour)].second; }

private:
    std::size_t find(std::uint64_t colour) const
    {
        std::size_t place = colour & (m_slots.size() - 1);
        while (m_slots[place].second != kNothing && m_slots[place].first != colour)
            place = (place + 1) & (m_slots.size() - 1);
        return place;
    }

    void grow()
    {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> old(m_slots.size() * 2, {0, kNothing});
        old.swap(m_slots);
        for (const auto& slot : old) {
            if (slot.second != kNothing)
                m_slots[find(slot.first)] = slot;
        }
    }

    std::vector<std::pair<std::uint64_t, std::uint32_t>> m_slots;
    std::uint32_t m_size = 0;
};

/// What the lines of a lane (of a tree: both its directions) use of each link, as shares of the bytes on the busiest.
LaneFlows flowsOfLanes(std::span<const RoutedLane> lanes, std::uint32_t phase, std::uint32_t groupSize)
{
    const RoutedLane& lane = lanes.front();
    LaneFlows flows;
    flows.phase = phase;
    flows.linesPerGroup = groupSize / lane.lineLength;
    flows.shape.latency = lane.latency;
    flows.shape.volumeBytes = lane.plan.linkBytes;
    flows.shape.limitBytesPerSecond = lane.linkBytesPerSecond;
    std::vector<double> before{0.0}; // bytes of the steps before each
    for (const double bytes : lane.plan.stepBytes)
        before.push_back(before.back() + bytes);
    flows.firstUse.push_back(0);
    std::vector<std::pair<LinkId, double>> onLinks;
    for (std::size_t line = 0; line < lane.lineCount(); ++line) {
        onLinks.clear();
        for (const RoutedLane& part : lanes) {
            for (std::size_t slot = line * part.lineLength; slot < (line + 1) * part.lineLength; ++slot) {
                const LaneSlot& from = part.slots[slot];
                for (std::uint32_t i = 0; i < from.pathCount; ++i) {
                    const LanePath& path = part.paths[from.firstPath + i];
                    double bytes = before[path.step + 1] - before[path.step];
                    if (part.plan.shape == LaneShape::Tree)
                        bytes = before.back();
                    else if (from.pathCount == 1)
                        bytes = before[path.step + from.sends] - before[path.step];
                    for (std::uint32_t l = 0; l < path.linkCount; ++l)
                        onLinks.emplace_back(part.links[path.firstLink + l], bytes);
                }
            }
        }
        std::ranges::sort(onLinks);
        for (std::size_t i = 0; i < onLinks.size() && flows.shape.volumeBytes > 0.0;) {
            const LinkId link = onLinks[i].first;
            double bytes = 0.0;
            for (; i < onLinks.size() && onLinks[i].first == link; ++i)
                bytes += onLinks[i].second;
            const auto amount = std::max<std::int64_t>(std::llround(bytes / flows.shape.volumeBytes * kWholeLink), 1);
            const auto known = std::ranges::find(flows.amounts, amount);
            const auto place = static_cast<std::uint32_t>(known - flows.amounts.begin());
            if (known == flows.amounts.end())
                flows.amounts.push_back(amount);
            flows.uses.push_back({link, place});
        }
        flows.firstUse.push_back(static_cast<std::uint32_t>(flows.uses.size()));
    }
    return flows;
}

class Folder {
public:
    Folder(const StepWork& work, bool fold)
        : m_work(work)
        , m_fold(fold)
        , m_deviceColour(work.kindOf.size())
        , m_linkColour(work.links->count(), 0)
    {
    }

    FoldedStep run()
    {
        colour();
        if (m_fold)
            refine();
        classify();
        return std::move(m_result);
    }

private:
    std::span<const LaneFlows> flows(std::size_t site) const { return m_work.sites[site].lanes; }
    void colour();
    void refine();
    void round();
    void classify();
    void addGroup(std::uint32_t site, std::size_t group, ColourNumbers& flowClasses);
    std::uint64_t groupColour(std::uint32_t site, std::size_t group) const;
    std::uint64_t flowColour(std::uint32_t site, std::size_t lane, std::size_t line, std::uint64_t group) const;
    std::size_t distinct() const;

    const StepWork& m_work;
    bool m_fold;
    std::vector<std::uint64_t> m_deviceColour;
    std::vector<std::uint64_t> m_linkColour; ///< 0: no flow uses it
    FoldedStep m_result;
};

/// What can be told apart without looking at neighbours; when nothing is folded, everything.
void Folder::colour()
{
    for (std::size_t device = 0; device < m_deviceColour.size(); ++device) {
        const double speed = m_work.speed.empty() ? 1.0 : m_work.speed[device];
        m_deviceColour[device] = mixed(m_work.kindOf[device], std::bit_cast<std::uint64_t>(speed));
        if (!m_fold)
            m_deviceColour[device] = mixed(m_deviceColour[device], device + 1);
    }
    for (const StepSite& site : m_work.sites) {
        for (const LaneFlows& lane : site.lanes) {
            for (const LaneFlows::Use& use : lane.uses) {
                if (m_linkColour[use.link] == 0)
                    m_linkColour[use.link] = mixed(std::bit_cast<std::uint64_t>(m_work.links->bytesPerSecond(use.link)),
                        m_fold ? 0 : std::uint64_t{use.link} + 1);
            }
        }
    }
}

std::uint64_t Folder::flowColour(std::uint32_t site, std::size_t lane, std::size_t line, std::uint64_t group) const
{
    std::uint64_t sum = 0;
    const LaneFlows& laneFlows = flows(site)[lane];
    for (const LaneFlows::Use& use : laneFlows.usesOf(line))
        sum += mixed(m_linkColour[use.link], static_cast<std::uint64_t>(laneFlows.amounts[use.amount]));
    return mixed(mixed(sum, lane), group);
}

std::uint64_t Folder::groupColour(std::uint32_t site, std::size_t group) const
{
    const DeviceGroups& groups = m_work.sites[site].groups;
    std::uint64_t sum = 0;
    for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i)
        sum += mixed(m_deviceColour[groups.members[i]]);
    for (std::size_t lane = 0; lane < flows(site).size(); ++lane) {
        const std::size_t lines = flows(site)[lane].linesPerGroup;
        for (std::size_t line = group * lines; line < (group + 1) * lines; ++line)
            sum += flowColour(site, lane, line, 0);
    }
    return mixed(sum, site);
}

void Folder::round()
{
    std::vector<std::uint64_t> deviceSeen(m_deviceColour.size(), 0);
    std::vector<std::uint64_t> linkSeen(m_linkColour.size(), 0);
    for (std::uint32_t site = 0; site < m_work.sites.size(); ++site) {
        const DeviceGroups& groups = m_work.sites[site].groups;
        for (std::size_t group = 0; group < groups.count(); ++group) {
            const std::uint64_t colour = groupColour(site, group);
            for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i)
                deviceSeen[groups.members[i]] += mixed(colour);
            for (std::size_t lane = 0; lane < flows(site).size(); ++lane) {
                const std::size_t lines = flows(site)[lane].linesPerGroup;
                for (std::size_t line = group * lines; line < (group + 1) * lines; ++line) {
                    const std::uint64_t flow = flowColour(site, lane, line, colour);
                    const LaneFlows& laneFlows = flows(site)[lane];
                    for (const LaneFlows::Use& use : laneFlows.usesOf(line))
                        linkSeen[use.link] += mixed(flow, static_cast<std::uint64_t>(laneFlows.amounts[use.amount]));
                }
            }
        }
    }
    for (std::size_t device = 0; device < deviceSeen.size(); ++device)
        m_deviceColour[device] = mixed(m_deviceColour[device], deviceSeen[device]);
    for (std::size_t link = 0; link < linkSeen.size(); ++link) {
        if (m_linkColour[link] != 0)
            m_linkColour[link] = mixed(m_linkColour[link], linkSeen[link]);
    }
}

std::size_t Folder::distinct() const
{
    ColourNumbers numbers;
    for (const std::uint64_t device : m_deviceColour)
        numbers.numberOf(mixed(device, 1));
    for (const std::uint64_t link : m_linkColour)
        numbers.numberOf(mixed(link, 2));
    return numbers.size();
}

/// A round only splits classes, so an equal number of them means the same ones.
void Folder::refine()
{
    for (std::size_t before = 0;;) {
        const std::size_t now = distinct();
        if (now == before)
            return;
        before = now;
        round();
    }
}

/// A group class of the result from its first group; its flows of one colour in a phase are one.
void Folder::addGroup(std::uint32_t site, std::size_t group, ColourNumbers& flowClasses)
{
    const DeviceGroups& groups = m_work.sites[site].groups;
    FoldedStep::GroupClass result;
    result.site = site;
    for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i)
        result.deviceClasses.push_back(m_result.classOf[groups.members[i]]);
    std::ranges::sort(result.deviceClasses);
    result.deviceClasses.erase(
        std::unique(result.deviceClasses.begin(), result.deviceClasses.end()), result.deviceClasses.end());
    m_result.groups.push_back(std::move(result));

    const std::uint64_t colour = groupColour(site, group);
    auto& phases = m_result.fluid.collectives.emplace_back(m_work.sites[site].phases);
    for (std::size_t lane = 0; lane < flows(site).size(); ++lane) {
        const LaneFlows& laneFlows = flows(site)[lane];
        auto& [first, last] = phases[laneFlows.phase];
        if (last == 0)
            first = static_cast<std::uint32_t>(m_result.fluid.flows.size());
        for (std::size_t line = group * laneFlows.linesPerGroup; line < (group + 1) * laneFlows.linesPerGroup; ++line) {
            const std::uint32_t number = flowClasses.numberOf(
                m_fold ? flowColour(site, lane, line, colour) : mixed(flowColour(site, lane, line, colour), line));
            if (number == m_result.fluid.flows.size())
                m_result.fluid.flows.push_back(laneFlows.shape);
        }
        last = static_cast<std::uint32_t>(m_result.fluid.flows.size());
    }
}

void Folder::classify()
{
    ColourNumbers deviceClasses;
    for (std::size_t device = 0; device < m_deviceColour.size(); ++device) {
        if (m_work.kindOf[device] == kNothing) {
            m_result.classOf.push_back(kNothing);
            continue;
        }
        const std::uint32_t number = deviceClasses.numberOf(m_deviceColour[device]);
        m_result.classOf.push_back(number);
        if (number == m_result.representative.size()) {
            m_result.representative.push_back(static_cast<std::uint32_t>(device));
            m_result.members.push_back(0);
        }
        ++m_result.members[number];
    }

    ColourNumbers linkClasses;
    std::vector<LinkId> representativeLink;
    for (LinkId link = 0; link < m_linkColour.size(); ++link) {
        if (m_linkColour[link] == 0 || linkClasses.numberOf(m_linkColour[link]) != representativeLink.size())
            continue;
        representativeLink.push_back(link);
        m_result.fluid.capacity.push_back(m_work.links->bytesPerSecond(link));
    }

    ColourNumbers flowClasses;
    m_result.groupOf.resize(m_work.sites.size());
    for (std::uint32_t site = 0; site < m_work.sites.size(); ++site) {
        auto& groupOf = m_result.groupOf[site];
        groupOf.assign(m_result.representative.size(), kNothing);
        const DeviceGroups& groups = m_work.sites[site].groups;
        ColourNumbers groupClasses;
        const std::size_t firstGroup = m_result.groups.size();
        for (std::size_t group = 0; group < groups.count(); ++group) {
            const std::uint64_t colour = m_fold ? groupColour(site, group) : mixed(group + 1);
            const std::uint32_t number = groupClasses.numberOf(colour);
            if (firstGroup + number == m_result.groups.size())
                addGroup(site, group, flowClasses);
            for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i) {
                const std::uint32_t member = m_result.classOf[groups.members[i]];
                if (member != kNothing)
                    groupOf[member] = static_cast<std::uint32_t>(firstGroup + number);
            }
        }
    }

    // What each class of flows takes of one link of a class: all that its members take of the representative.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> amounts;
    for (std::uint32_t site = 0; site < m_work.sites.size(); ++site) {
        for (std::size_t lane = 0; lane < flows(site).size(); ++lane) {
            const LaneFlows& laneFlows = flows(site)[lane];
            for (std::size_t line = 0; line + 1 < laneFlows.firstUse.size(); ++line) {
                std::uint32_t number = kNothing;
                for (const LaneFlows::Use& use : laneFlows.usesOf(line)) {
                    const std::uint32_t linkClass = linkClasses.known(m_linkColour[use.link]);
                    if (representativeLink[linkClass] != use.link)
                        continue;
                    if (number == kNothing) {
                        const std::uint64_t colour
                            = flowColour(site, lane, line, groupColour(site, line / laneFlows.linesPerGroup));
                        number = flowClasses.known(m_fold ? colour : mixed(colour, line));
                    }
                    amounts[{number, linkClass}] += laneFlows.amounts[use.amount];
                }
            }
        }
    }
    for (const auto& [flowAndLink, amount] : amounts) {
        FlowTemplate& flow = m_result.fluid.flows[flowAndLink.first];
        if (flow.useCount == 0)
            flow.firstUse = static_cast<std::uint32_t>(m_result.fluid.uses.size());
        ++flow.useCount;
        m_result.fluid.uses.push_back({flowAndLink.second, amount});
    }
}

} // namespace

StepSite flowsOf(const RoutedCollective& collective)
{
    StepSite site;
    site.groups = collective.groups;
    site.phases = static_cast<std::uint32_t>(collective.phases.size());
    for (std::uint32_t phase = 0; phase < collective.phases.size(); ++phase) {
        const std::span<const RoutedLane> lanes(collective.phases[phase]);
        for (std::size_t lane = 0; lane < lanes.size();) {
            const std::size_t parts = lanes[lane].plan.shape == LaneShape::Tree ? 2 : 1;
            site.lanes.push_back(flowsOfLanes(lanes.subspan(lane, parts), phase, site.groups.size));
            lane += parts;
        }
    }
    return site;
}

Result<StepSite> routeFlows(const CollectiveRequest& request, DeviceGroups groups, const MachineLinks& links)
{
    StepSite site;
    site.groups = std::move(groups);
    std::vector<RoutedLane> waiting; // the upward half of a tree
    const auto phases = routeLanes(request, site.groups, links, [&](std::uint32_t phase, RoutedLane lane) {
        const bool half = lane.plan.shape == LaneShape::Tree && !lane.downward;
        waiting.push_back(std::move(lane));
        if (half)
            return;
        site.lanes.push_back(flowsOfLanes(waiting, phase, site.groups.size));
        waiting.clear();
    });
    if (!phases)
        return phases.error();
    site.phases = *phases;
    return site;
}

FoldedStep foldStep(const StepWork& work, bool fold)
{
    assert(work.links != nullptr);
    return Folder(work, fold).run();
}

} // namespace meshwright::sim
