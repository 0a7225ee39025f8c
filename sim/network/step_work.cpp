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

std::uint32_t StepProgram::compute(Ticks ticks, std::span<const StepDependency> after, bool together)
{
    if (together)
        m_together.push_back(static_cast<std::uint32_t>(size()));
    return add(ticks, kNothing, kNothing, after);
}

std::uint32_t StepProgram::collective(std::uint32_t site, std::uint32_t meeting, std::span<const StepDependency> after)
{
    return add(0, site, meeting, after);
}

namespace {

/// How many ops wait for each op of a program, of which `after` is the next loop's; null: there is none.
std::vector<std::uint32_t> waitersOf(const StepProgram& program, const StepProgram* after)
{
    std::vector<std::uint32_t> waiters(program.size(), 0);
    const auto count = [&](const StepProgram& of, bool isNext) {
        for (std::uint32_t op = 0; op < of.size(); ++op) {
            for (const StepDependency& dependency : of.dependencies(op)) {
                if ((dependency.lag == StepLag::Loop) == isNext)
                    ++waiters[dependency.op];
            }
        }
    };
    count(program, false);
    if (after != nullptr)
        count(*after, true);
    return waiters;
}

/// Joins the runs of a program. `places`: of the loop before, where its ops went; then of this one.
StepProgram joined(const StepProgram& program, const StepProgram* after, std::vector<std::uint32_t>& places)
{
    const std::vector<std::uint32_t> waiters = waitersOf(program, after);
    std::vector<std::uint32_t> follower(program.size(), kNothing); // in its run
    std::vector<bool> follows(program.size(), false);
    for (std::uint32_t op = 0; op < program.size(); ++op) {
        const auto dependencies = program.dependencies(op);
        if (!program.computes(op) || dependencies.size() != 1 || dependencies.front().lag != StepLag::None
            || program.isTogether(op))
            continue;
        const std::uint32_t before = dependencies.front().op;
        if (program.computes(before) && waiters[before] == 1) {
            follower[before] = op;
            follows[op] = true;
        }
    }
    std::vector<std::uint32_t> own(program.size(), kNothing);
    std::uint32_t count = 0;
    for (std::uint32_t op = 0; op < program.size(); ++op) {
        if (follows[op])
            continue;
        for (std::uint32_t next = op; next != kNothing; next = follower[next])
            own[next] = count;
        ++count;
    }
    StepProgram result;
    std::vector<StepDependency> dependencies;
    for (std::uint32_t op = 0; op < program.size(); ++op) {
        if (follows[op])
            continue;
        dependencies.clear();
        for (const StepDependency& dependency : program.dependencies(op))
            dependencies.push_back({(dependency.lag == StepLag::Loop ? places : own)[dependency.op], dependency.lag});
        if (!program.computes(op)) {
            result.collective(program.site(op), program.meeting(op), dependencies);
            continue;
        }
        Ticks ticks = 0;
        for (std::uint32_t next = op; next != kNothing; next = follower[next])
            ticks += program.ticks(next);
        result.compute(ticks, dependencies, program.isTogether(op));
    }
    places = std::move(own);
    return result;
}

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

/// Numbers for what each device and link looks like, refined until members of a class see the same.
class Folder {
public:
    Folder(const StepWork& work, bool fold)
        : m_work(work)
        , m_fold(fold)
        , m_deviceClass(work.kindOf.size(), 0)
        , m_linkClass(work.links->count(), kNothing)
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
    /// Hashes of what a lane takes of links, by class of link and amount; empty where there are too many.
    using UseHashes = std::vector<std::vector<std::uint64_t>>;

    /// What the lines of one group look like, and the group.
    struct GroupHashes {
        std::vector<std::uint64_t> lines; ///< lane by lane
        std::uint64_t group = 0;
    };

    std::span<const LaneFlows> flows(std::size_t site) const { return m_work.sites[site].lanes; }
    void colour();
    void refine();
    std::uint32_t round();
    void classify();
    void classifyDevices();
    void addGroup(std::uint32_t site, std::size_t group, const GroupHashes& hashes, ColourNumbers& flowClasses);
    void addUses(const ColourNumbers& flowClasses, const std::vector<LinkId>& representatives);
    UseHashes useHashes(std::uint32_t site) const;
    std::uint64_t lineHash(const LaneFlows& lane, std::size_t line, const std::vector<std::uint64_t>& hashes) const;
    void hashGroup(std::uint32_t site, std::size_t group, const UseHashes& uses, GroupHashes& out) const;

    /// Of a line in a group; when nothing is folded, of this line alone.
    std::uint64_t flowHash(std::uint64_t lineHash, std::uint64_t group, std::size_t line) const
    {
        return m_fold ? mixed(lineHash, group) : mixed(mixed(lineHash, group), line);
    }

    const StepWork& m_work;
    bool m_fold;
    std::vector<std::uint32_t> m_deviceClass;
    std::vector<std::uint32_t> m_linkClass; ///< kNothing: no flow uses it
    std::uint32_t m_linkClasses = 0;
    std::uint32_t m_firstClasses = 0; ///< of devices and links, before any round
    FoldedStep m_result;
};

/// What can be told apart without looking at neighbours; when nothing is folded, everything.
void Folder::colour()
{
    ColourNumbers devices;
    for (std::size_t device = 0; device < m_deviceClass.size(); ++device) {
        const double speed = m_work.speed.empty() ? 1.0 : m_work.speed[device];
        const std::uint64_t seen = mixed(m_work.kindOf[device], std::bit_cast<std::uint64_t>(speed));
        m_deviceClass[device] = devices.numberOf(m_fold ? seen : mixed(seen, device + 1));
    }
    for (const StepSite& site : m_work.sites) {
        for (const LaneFlows& lane : site.lanes) {
            for (const LaneFlows::Use& use : lane.uses)
                m_linkClass[use.link] = 0;
        }
    }
    ColourNumbers links;
    for (LinkId link = 0; link < m_linkClass.size(); ++link) {
        if (m_linkClass[link] != kNothing)
            m_linkClass[link] = links.numberOf(
                mixed(std::bit_cast<std::uint64_t>(m_work.links->bytesPerSecond(link)), m_fold ? 0 : std::uint64_t{link} + 1));
    }
    m_linkClasses = links.size();
    m_firstClasses = devices.size() + links.size();
}

Folder::UseHashes Folder::useHashes(std::uint32_t site) const
{
    constexpr std::size_t kMostHashes = 1 << 16;
    UseHashes hashes(flows(site).size());
    for (std::size_t lane = 0; lane < hashes.size(); ++lane) {
        const std::vector<std::int64_t>& amounts = flows(site)[lane].amounts;
        if (amounts.size() * m_linkClasses > kMostHashes)
            continue;
        for (std::uint32_t link = 0; link < m_linkClasses; ++link) {
            for (const std::int64_t amount : amounts)
                hashes[lane].push_back(mixed(std::uint64_t{link} + 1, static_cast<std::uint64_t>(amount)));
        }
    }
    return hashes;
}

/// Lanes of one shape are told apart by their links alone: the two directions of a ring may be each other's reflection.
std::uint64_t Folder::lineHash(const LaneFlows& lane, std::size_t line, const std::vector<std::uint64_t>& hashes) const
{
    std::uint64_t sum = 0;
    const std::size_t amounts = lane.amounts.size();
    if (hashes.empty()) {
        for (const LaneFlows::Use& use : lane.usesOf(line))
            sum += mixed(std::uint64_t{m_linkClass[use.link]} + 1, static_cast<std::uint64_t>(lane.amounts[use.amount]));
    } else {
        for (const LaneFlows::Use& use : lane.usesOf(line))
            sum += hashes[m_linkClass[use.link] * amounts + use.amount];
    }
    const FlowTemplate& shape = lane.shape;
    const std::uint64_t rates
        = mixed(std::bit_cast<std::uint64_t>(shape.volumeBytes), std::bit_cast<std::uint64_t>(shape.limitBytesPerSecond));
    return mixed(mixed(sum, rates), mixed(static_cast<std::uint64_t>(shape.latency), lane.phase));
}

void Folder::hashGroup(std::uint32_t site, std::size_t group, const UseHashes& uses, GroupHashes& out) const
{
    const DeviceGroups& groups = m_work.sites[site].groups;
    std::uint64_t sum = 0;
    for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i)
        sum += mixed(std::uint64_t{m_deviceClass[groups.members[i]]} + 1);
    out.lines.clear();
    for (std::size_t lane = 0; lane < flows(site).size(); ++lane) {
        const LaneFlows& laneFlows = flows(site)[lane];
        for (std::size_t line = group * laneFlows.linesPerGroup; line < (group + 1) * laneFlows.linesPerGroup; ++line) {
            out.lines.push_back(lineHash(laneFlows, line, uses[lane]));
            sum += mixed(out.lines.back());
        }
    }
    out.group = mixed(sum, site);
}

/// Every device and link looks at its neighbours once. Returns how many classes there are then.
std::uint32_t Folder::round()
{
    std::vector<std::uint64_t> deviceSeen(m_deviceClass.size(), 0);
    std::vector<std::uint64_t> linkSeen(m_linkClass.size(), 0);
    GroupHashes hashes;
    std::vector<std::uint64_t> ofAmounts;
    for (std::uint32_t site = 0; site < m_work.sites.size(); ++site) {
        const DeviceGroups& groups = m_work.sites[site].groups;
        const UseHashes uses = useHashes(site);
        for (std::size_t group = 0; group < groups.count(); ++group) {
            hashGroup(site, group, uses, hashes);
            const std::uint64_t seen = mixed(hashes.group);
            for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i)
                deviceSeen[groups.members[i]] += seen;
            auto line = hashes.lines.begin();
            for (const LaneFlows& lane : flows(site)) {
                for (std::size_t i = group * lane.linesPerGroup; i < (group + 1) * lane.linesPerGroup; ++i) {
                    const std::uint64_t flow = mixed(*line++, hashes.group);
                    ofAmounts.clear();
                    for (const std::int64_t amount : lane.amounts)
                        ofAmounts.push_back(mixed(flow, static_cast<std::uint64_t>(amount)));
                    for (const LaneFlows::Use& use : lane.usesOf(i))
                        linkSeen[use.link] += ofAmounts[use.amount];
                }
            }
        }
    }
    ColourNumbers devices;
    for (std::size_t device = 0; device < deviceSeen.size(); ++device)
        m_deviceClass[device] = devices.numberOf(mixed(std::uint64_t{m_deviceClass[device]} + 1, deviceSeen[device]));
    ColourNumbers links;
    for (std::size_t link = 0; link < linkSeen.size(); ++link) {
        if (m_linkClass[link] != kNothing)
            m_linkClass[link] = links.numberOf(mixed(std::uint64_t{m_linkClass[link]} + 1, linkSeen[link]));
    }
    m_linkClasses = links.size();
    return devices.size() + links.size();
}

/// A round only splits classes, so an equal number of them means the same ones.
void Folder::refine()
{
    for (std::uint32_t before = m_firstClasses;;) {
        const std::uint32_t now = round();
        if (now == before)
            return;
        before = now;
    }
}

/// A group class of the result from its first group; its flows of one colour in a phase are one.
void Folder::addGroup(std::uint32_t site, std::size_t group, const GroupHashes& hashes, ColourNumbers& flowClasses)
{
    const DeviceGroups& groups = m_work.sites[site].groups;
    FoldedStep::GroupClass result;
    result.site = site;
    for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i)
        result.deviceClasses.push_back(m_result.classOf[groups.members[i]]);
    std::ranges::sort(result.deviceClasses);
    result.deviceClasses.erase(std::unique(result.deviceClasses.begin(), result.deviceClasses.end()), result.deviceClasses.end());
    m_result.groups.push_back(std::move(result));

    auto& phases = m_result.fluid.collectives.emplace_back(m_work.sites[site].phases);
    auto hash = hashes.lines.begin();
    for (const LaneFlows& lane : flows(site)) {
        auto& [first, last] = phases[lane.phase];
        if (last == 0)
            first = static_cast<std::uint32_t>(m_result.fluid.flows.size());
        for (std::size_t line = group * lane.linesPerGroup; line < (group + 1) * lane.linesPerGroup; ++line) {
            const std::uint32_t number = flowClasses.numberOf(flowHash(*hash++, hashes.group, line));
            if (number == m_result.fluid.flows.size())
                m_result.fluid.flows.push_back(lane.shape);
        }
        last = static_cast<std::uint32_t>(m_result.fluid.flows.size());
    }
}

void Folder::classifyDevices()
{
    ColourNumbers classes; // without devices that do nothing
    for (std::size_t device = 0; device < m_deviceClass.size(); ++device) {
        if (m_work.kindOf[device] == kNothing) {
            m_result.classOf.push_back(kNothing);
            continue;
        }
        const std::uint32_t number = classes.numberOf(mixed(m_deviceClass[device]));
        m_result.classOf.push_back(number);
        if (number == m_result.representative.size()) {
            m_result.representative.push_back(static_cast<std::uint32_t>(device));
            m_result.members.push_back(0);
        }
        ++m_result.members[number];
    }
}

void Folder::classify()
{
    classifyDevices();
    std::vector<LinkId> representatives; // of links; classes are numbered as they come
    for (LinkId link = 0; link < m_linkClass.size(); ++link) {
        if (m_linkClass[link] == representatives.size()) {
            representatives.push_back(link);
            m_result.fluid.capacity.push_back(m_work.links->bytesPerSecond(link));
        }
    }
    ColourNumbers flowClasses;
    GroupHashes hashes;
    m_result.groupOf.resize(m_work.sites.size());
    for (std::uint32_t site = 0; site < m_work.sites.size(); ++site) {
        auto& groupOf = m_result.groupOf[site];
        groupOf.assign(m_result.representative.size(), kNothing);
        const DeviceGroups& groups = m_work.sites[site].groups;
        const UseHashes uses = useHashes(site);
        ColourNumbers groupClasses;
        const std::size_t firstGroup = m_result.groups.size();
        for (std::size_t group = 0; group < groups.count(); ++group) {
            hashGroup(site, group, uses, hashes);
            const std::uint32_t number = groupClasses.numberOf(m_fold ? hashes.group : mixed(group + 1));
            if (firstGroup + number == m_result.groups.size())
                addGroup(site, group, hashes, flowClasses);
            for (std::size_t i = group * groups.size; i < (group + 1) * groups.size; ++i) {
                const std::uint32_t member = m_result.classOf[groups.members[i]];
                if (member != kNothing)
                    groupOf[member] = static_cast<std::uint32_t>(firstGroup + number);
            }
        }
    }
    addUses(flowClasses, representatives);
}

/// What each class of flows takes of one link of a class: all that its members take of the representative.
void Folder::addUses(const ColourNumbers& flowClasses, const std::vector<LinkId>& representatives)
{
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> amounts;
    GroupHashes hashes;
    for (std::uint32_t site = 0; site < m_work.sites.size(); ++site) {
        const UseHashes uses = useHashes(site);
        std::size_t hashed = std::numeric_limits<std::size_t>::max(); // the group
        std::size_t before = 0; // lines of a group in the lanes before
        for (const LaneFlows& lane : flows(site)) {
            for (std::size_t line = 0; line + 1 < lane.firstUse.size(); ++line) {
                const std::size_t group = line / lane.linesPerGroup;
                for (const LaneFlows::Use& use : lane.usesOf(line)) {
                    const std::uint32_t linkClass = m_linkClass[use.link];
                    if (representatives[linkClass] != use.link)
                        continue;
                    if (hashed != group) {
                        hashGroup(site, group, uses, hashes);
                        hashed = group;
                    }
                    const std::uint64_t hash = hashes.lines[before + line % lane.linesPerGroup];
                    const std::uint32_t number = flowClasses.known(flowHash(hash, hashes.group, line));
                    amounts[{number, linkClass}] += lane.amounts[use.amount];
                }
            }
            before += lane.linesPerGroup;
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

std::vector<StepLoop> joinRuns(std::span<const StepLoop> loops)
{
    std::vector<StepLoop> result;
    std::vector<std::vector<std::uint32_t>> places(loops.empty() ? 0 : loops.front().programs.size());
    for (std::size_t loop = 0; loop < loops.size(); ++loop) {
        StepLoop& added = result.emplace_back();
        added.repeat = loops[loop].repeat;
        for (std::size_t kind = 0; kind < loops[loop].programs.size(); ++kind) {
            const StepProgram* after = loop + 1 < loops.size() ? &loops[loop + 1].programs[kind] : nullptr;
            added.programs.push_back(joined(loops[loop].programs[kind], after, places[kind]));
        }
    }
    return result;
}

StepSite delaySite(DeviceGroups groups, Ticks ticks)
{
    StepSite site;
    LaneFlows& lane = site.lanes.emplace_back();
    lane.shape.latency = ticks;
    lane.firstUse.assign(groups.count() + 1, 0);
    site.groups = std::move(groups);
    site.phases = 1;
    return site;
}

void delayStart(StepSite& site, Ticks ticks)
{
    site.start = std::max<Ticks>(0, site.start + ticks);
    for (std::uint32_t phase = 0; phase < site.phases && ticks != 0; ++phase) {
        Ticks least = std::numeric_limits<Ticks>::max();
        for (const LaneFlows& lane : site.lanes) {
            if (lane.phase == phase)
                least = std::min(least, lane.shape.latency);
        }
        const Ticks here = std::max(ticks, -least); // what a phase cannot give is left to the next
        for (LaneFlows& lane : site.lanes) {
            if (lane.phase == phase)
                lane.shape.latency += here;
        }
        ticks -= here;
    }
}

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
