// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/routed_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <optional>

namespace meshwright::sim {

namespace {

/// The lines of a group axis within all groups: which device is at which member of which line.
struct Lines {
    std::uint32_t length = 1;
    std::vector<std::uint32_t> members; ///< line by line
};

class Router {
public:
    Router(const CollectiveRequest& request, const DeviceGroups& groups, const MachineLinks& links)
        : m_plan(planCollective(request))
        , m_groups(groups)
        , m_links(links)
        , m_topology(links.topology())
    {
    }

    Result<std::uint32_t> run(const std::function<void(std::uint32_t phase, RoutedLane lane)>& take)
    {
        for (std::size_t axis = 0; axis < m_plan.axes.size(); ++axis)
            m_lines.push_back(linesOf(axis));
        std::uint32_t number = 0;
        for (const PlanPhase& phase : m_plan.phases) {
            for (const PlanLane& lane : phase) {
                take(number, route(lane, false));
                if (lane.shape == LaneShape::Tree)
                    take(number, route(lane, true));
            }
            if (!m_plan.isPipelined)
                ++number;
        }
        if (m_blocked)
            return *m_blocked;
        return m_plan.isPipelined ? 1 : number;
    }

private:
    Lines linesOf(std::size_t axis) const;
    RoutedLane route(const PlanLane& plan, bool downward);
    void setSends(RoutedLane& lane);
    void setTree(RoutedLane& lane);
    void addPath(RoutedLane& lane, std::uint32_t from, std::uint32_t to, std::uint32_t step);

    CollectivePlan m_plan;
    const DeviceGroups& m_groups;
    const MachineLinks& m_links;
    const Topology& m_topology;
    std::vector<Lines> m_lines;
    double m_longest = 0.0; ///< latency of the paths of the lane at hand
    std::optional<Problem> m_blocked;
};

/// Splits every group along one of its axes: members of a line differ in nothing else. Two parts of one torus axis are digits of the
/// place among the places that the group has there, the wider spaced one first.
Lines Router::linesOf(std::size_t axis) const
{
    const GroupAxis& along = m_plan.axes[axis];
    Lines lines;
    lines.length = static_cast<std::uint32_t>(along.size);
    const DeviceGroups& groups = m_groups;
    if (m_plan.axes.size() == 1 && along.kind == GroupKind::Scattered) {
        lines.members = groups.members;
        return lines;
    }
    std::int64_t below = 1; // of the parts of the same physical axis that are closer spaced
    for (std::size_t other = 0; other < m_plan.axes.size(); ++other) {
        if (other != axis && m_plan.axes[other].physicalAxis == along.physicalAxis && m_plan.axes[other].stride < along.stride)
            below *= m_plan.axes[other].size;
    }
    lines.members.reserve(groups.members.size());
    struct Placed {
        std::int64_t line;
        std::int64_t digit;
        std::uint32_t device;
    };
    std::vector<Placed> placed(groups.size);
    std::vector<std::int64_t> places;
    for (std::size_t group = 0; group < groups.count(); ++group) {
        const std::uint32_t* members = groups.members.data() + group * groups.size;
        places.clear();
        for (std::uint32_t i = 0; i < groups.size; ++i)
            places.push_back(m_topology.coordinate(members[i], along.physicalAxis));
        std::ranges::sort(places);
        places.erase(std::unique(places.begin(), places.end()), places.end());
        const std::int64_t axisStride = m_topology.stride(along.physicalAxis);
        for (std::uint32_t i = 0; i < groups.size; ++i) {
            const std::int64_t at = m_topology.coordinate(members[i], along.physicalAxis);
            const std::int64_t rank = std::ranges::lower_bound(places, at) - places.begin();
            const std::int64_t digit = rank / below % along.size;
            const std::int64_t first = places[static_cast<std::size_t>(rank - digit * below)];
            placed[i] = {static_cast<std::int64_t>(members[i]) - (at - first) * axisStride, digit, members[i]};
        }
        std::ranges::sort(
            placed, [](const Placed& a, const Placed& b) { return a.line < b.line || (a.line == b.line && a.digit < b.digit); });
        for (const Placed& one : placed)
            lines.members.push_back(one.device);
    }
    return lines;
}

RoutedLane Router::route(const PlanLane& plan, bool downward)
{
    const Lines& lines = m_lines[plan.axis];
    const GroupAxis& along = m_plan.axes[plan.axis];
    RoutedLane lane;
    lane.plan = plan;
    lane.downward = downward;
    lane.lineLength = lines.length;
    lane.latency = ticksOf(plan.latencySeconds);
    lane.plannedBytesPerSecond = along.link.bytesPerSecond;
    lane.linkBytesPerSecond
        = along.link.bytesPerSecond * (along.kind == GroupKind::Torus ? static_cast<double>(along.stride) : 1.0);
    lane.slots.resize(lines.members.size());
    for (std::size_t slot = 0; slot < lane.slots.size(); ++slot)
        lane.slots[slot].device = lines.members[slot];
    m_longest = 0.0;
    if (plan.shape == LaneShape::Tree)
        setTree(lane);
    else
        setSends(lane);
    for (const LaneSlot& s : lane.slots) {
        if (s.pathCount == 1) {
            lane.slots[lane.paths[s.firstPath].target].receives += s.sends;
            continue;
        }
        for (std::uint32_t send = 0; send < s.sends; ++send)
            ++lane.slots[lane.pathOf(s, send).target].receives;
    }
    // Detours are longer than planned.
    if (m_longest > along.link.latencySeconds && plan.shape != LaneShape::AtOnce)
        lane.latency += ticksOf(static_cast<double>(plan.stepBytes.size()) * (m_longest - along.link.latencySeconds));
    return lane;
}

/// The member that `member` sends to in a step of an exchange; nothing when the step is not its.
std::optional<std::uint32_t> partnerOf(const PlanLane& plan, std::uint32_t member, std::uint32_t k, std::int64_t distance)
{
    const auto d = static_cast<std::uint32_t>(distance);
    const std::uint32_t core = std::bit_floor(k);
    const auto within = [&](bool condition, std::uint32_t partner) { return condition ? std::optional(partner) : std::nullopt; };
    switch (plan.partner) {
    case Partner::Shift:
        return (member + d) % k;
    case Partner::Xor:
        return within(member < core && (member ^ d) < core, member ^ d);
    case Partner::FoldIn:
        return within(member >= d, member - d);
    case Partner::FoldOut:
    case Partner::Double:
        return within(member + d < k && (plan.partner == Partner::FoldOut || member < d), member + d);
    case Partner::Line:
        return plan.up ? within(member + d < k, member + d) : within(member >= d, member - d);
    }
    return std::nullopt;
}

/// How often and when each member sends, and to whom.
void Router::setSends(RoutedLane& lane)
{
    const std::uint32_t k = lane.lineLength;
    const auto steps = static_cast<std::uint32_t>(lane.plan.stepBytes.size());
    for (std::uint32_t slot = 0; slot < lane.slots.size(); ++slot) {
        LaneSlot& s = lane.slots[slot];
        const std::uint32_t member = slot % k;
        const std::uint32_t first = slot - member;
        const std::uint32_t place = lane.plan.up ? member : k - 1 - member; // from where a line's lane starts
        const bool last = place == k - 1;
        switch (lane.plan.shape) {
        case LaneShape::Ring:
            s.sends = steps;
            s.freeSends = 1;
            break;
        case LaneShape::LineGather:
            s.sends = last ? 0 : place + 1;
            s.freeSends = last ? 0 : 1;
            break;
        case LaneShape::LineScatter:
            s.sends = last ? 0 : k - 1 - place;
            s.freeSends = place == 0 ? s.sends : 0;
            break;
        case LaneShape::Chain: {
            // Down a ring the chain starts at member 0 as well.
            const std::uint32_t from = lane.plan.up ? member : (k - member) % k;
            s.sends = from == k - 1 ? 0 : steps;
            s.freeSends = from == 0 ? steps : 0;
            break;
        }
        case LaneShape::Exchange:
        case LaneShape::AtOnce:
            s.firstPath = static_cast<std::uint32_t>(lane.paths.size());
            for (std::uint32_t step = 0; step < steps; ++step) {
                if (const auto partner = partnerOf(lane.plan, member, k, lane.plan.distance[step]))
                    addPath(lane, slot, first + *partner, step);
            }
            s.sends = s.pathCount;
            s.freeSends = lane.plan.shape == LaneShape::AtOnce ? s.sends : std::min(s.sends, 1U);
            if (lane.plan.partner == Partner::Double)
                s.freeSends = member == 0 ? s.sends : 0;
            continue;
        case LaneShape::Tree:
            break;
        }
        if (s.sends > 0) {
            s.firstPath = static_cast<std::uint32_t>(lane.paths.size());
            addPath(lane, slot, first + (lane.plan.up ? member + 1 : member + k - 1) % k, 0);
        }
    }
}

/// The two trees of NCCL: a node's parent has its lowest bit cleared and the next one set, where there is such a node; the second
/// tree is the first mirrored (an even number of nodes) or turned by one. Who is inside one tree is a leaf of the other.
/// Source: NVIDIA/nccl, src/graph/trees.cc (ncclGetBtree, ncclGetDtree).
void Router::setTree(RoutedLane& lane)
{
    const std::uint32_t n = lane.lineLength;
    const auto pieces = static_cast<std::uint32_t>(lane.plan.stepBytes.size());
    const auto memberOf = [&](std::uint32_t node) { return lane.plan.up ? node : n % 2 == 0 ? n - 1 - node : (node + 1) % n; };
    std::vector<std::uint32_t> parent(n, 0);
    std::vector<std::vector<std::uint32_t>> children(n);
    for (std::uint32_t node = 1; node < n; ++node) {
        const std::uint32_t bit = node & (~node + 1);
        const std::uint32_t up = (node ^ bit) | (bit << 1);
        parent[node] = up < n ? up : node ^ bit;
        children[parent[node]].push_back(node);
    }
    for (std::uint32_t first = 0; first < lane.slots.size(); first += n) {
        for (std::uint32_t node = 0; node < n; ++node) {
            const std::uint32_t slot = first + memberOf(node);
            LaneSlot& s = lane.slots[slot];
            s.firstPath = static_cast<std::uint32_t>(lane.paths.size());
            if (lane.downward) {
                for (const std::uint32_t child : children[node])
                    addPath(lane, slot, first + memberOf(child), 0);
                s.sends = pieces * s.pathCount;
                continue;
            }
            s.need = static_cast<std::uint32_t>(children[node].size());
            if (node == 0)
                continue;
            addPath(lane, slot, first + memberOf(parent[node]), 0);
            s.sends = pieces;
            s.freeSends = children[node].empty() ? pieces : 0;
        }
    }
}

/// Adds the way of messages from one slot to another.
void Router::addPath(RoutedLane& lane, std::uint32_t from, std::uint32_t to, std::uint32_t step)
{
    const GroupAxis& along = m_plan.axes[lane.plan.axis];
    const std::uint32_t source = lane.slots[from].device;
    const std::uint32_t target = lane.slots[to].device;
    const auto firstLink = static_cast<std::uint32_t>(lane.links.size());
    double latency = 0.0;
    if (along.kind == GroupKind::Scattered)
        m_links.appendRoute(source, target, lane.links, latency);
    else
        m_links.appendPath(source, target, along.physicalAxis, lane.plan.up, lane.links, latency);
    lane.paths.push_back({firstLink, static_cast<std::uint32_t>(lane.links.size()) - firstLink, to, step, ticksOf(latency)});
    ++lane.slots[from].pathCount;
    m_longest = std::max(m_longest, latency);
    const bool blocked = std::any_of(lane.links.begin() + static_cast<std::ptrdiff_t>(firstLink), lane.links.end(),
        [&](LinkId link) { return m_links.failed(link); });
    if (blocked && !m_blocked)
        m_blocked = Problem{"MW1741", fmt::format("failed links leave no path from device {} to device {}", source, target),
            "remove the fault of the link, or leave the device out of the mesh"};
}

} // namespace

Result<RoutedCollective> routeCollective(const CollectiveRequest& request, DeviceGroups groups, const MachineLinks& links)
{
    RoutedCollective result;
    result.groups = std::move(groups);
    const auto phases = routeLanes(request, result.groups, links, [&](std::uint32_t phase, RoutedLane lane) {
        result.phases.resize(phase + 1);
        result.phases[phase].push_back(std::move(lane));
    });
    if (!phases)
        return phases.error();
    result.phases.resize(*phases);
    return result;
}

Result<std::uint32_t> routeLanes(const CollectiveRequest& request, const DeviceGroups& groups, const MachineLinks& links,
    const std::function<void(std::uint32_t phase, RoutedLane lane)>& take)
{
    assert(groups.size >= 1 && groups.members.size() % groups.size == 0);
    return Router(request, groups, links).run(take);
}

} // namespace meshwright::sim
