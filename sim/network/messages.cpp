// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/messages.h"

#include "sim/network/event_queue.h"

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

namespace {

constexpr std::uint32_t kPaceBit = 0x80000000U; ///< Event::what: the slot may send its next message
constexpr std::uint32_t kStart
    = 0xffffffffU; ///< Event::what: a device is ready; Event::which counts the members of all collectives
constexpr std::uint32_t kNowhere = 0xffffffffU;

/// What an arrival touches of a slot, in half a cache line.
struct HotSlot {
    std::uint32_t target = 0; ///< of a slot with one path
    std::uint32_t link = 0; ///< of a slot with one path of one link
    std::uint32_t member = 0; ///< of the collective's groups
    std::uint32_t sent = 0;
    std::uint32_t sends = 0;
    std::uint32_t early = 0; ///< arrived before the device had begun the phase
    Ticks wire = 0;
};

struct Lane {
    std::vector<HotSlot> slots;
    std::vector<Ticks> hold; ///< for each step
    std::vector<std::uint32_t> slotOf; ///< for each member; kNowhere
    std::vector<std::uint32_t> arrived; ///< Tree: for each slot
    const RoutedLane* routed = nullptr;
    std::uint32_t collective = 0;
    std::uint32_t phase = 0;
    bool simple = false; ///< one path of one whole link a slot, and an arrival lets one message go
    bool plain = false; ///< every link has the bandwidth of the axis
    bool paced = false; ///< messages of a slot leave one after the other, though none waits for an arrival
};

struct DeviceState {
    std::uint32_t phase = kNowhere; ///< so that the first is next
    std::uint32_t remaining = 0; ///< messages still to receive in the phase
};

struct Running {
    const RoutedCollective* routed = nullptr;
    std::vector<DeviceState> devices; ///< for each member
    std::vector<std::vector<std::uint32_t>> receives; ///< for each phase and member
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lanes; ///< first and past the last, for each phase
    std::uint32_t firstMember = 0;
    Ticks end = 0;
};

class Runner {
public:
    Runner(std::span<const StartedCollective> collectives, const MachineLinks& links)
        : m_links(links)
        , m_free(links.count(), 0)
    {
        for (const StartedCollective& started : collectives)
            add(started);
    }

    MessageRun run()
    {
        while (!m_queue.empty()) {
            const Event event = m_queue.pop();
            ++m_result.events;
            if (event.what == kStart) {
                begin(event.which, event.time);
            } else if (event.what & kPaceBit) {
                Lane& lane = m_lanes[event.what & ~kPaceBit];
                sendNext(lane, event.which, event.time);
            } else {
                arrive(m_lanes[event.what], event.which, event.time);
            }
        }
        for (const Running& running : m_running)
            m_result.ends.push_back(running.end);
        return std::move(m_result);
    }

private:
    void add(const StartedCollective& started);
    void addLane(const RoutedLane& routed, std::uint32_t phase, const std::vector<std::uint32_t>& memberOf, Running& running);

    void begin(std::uint32_t which, Ticks now)
    {
        const auto after = std::ranges::upper_bound(m_running, which, {}, &Running::firstMember);
        Running& running = *(after - 1);
        enterPhases(running, which - running.firstMember, now);
    }

    void arrive(Lane& lane, std::uint32_t slot, Ticks now)
    {
        HotSlot& hot = lane.slots[slot];
        Running& running = m_running[lane.collective];
        DeviceState& device = running.devices[hot.member];
        if (device.phase != lane.phase) {
            ++hot.early;
            return;
        }
        answer(lane, hot, slot, now);
        if (--device.remaining == 0)
            enterPhases(running, hot.member, now);
    }

    /// What an arrival lets go.
    void answer(Lane& lane, HotSlot& hot, std::uint32_t slot, Ticks now)
    {
        if (lane.simple) {
            if (hot.sent < hot.sends)
                sendSimple(lane, hot, now);
            return;
        }
        answerSpecial(lane, hot, slot, now);
    }

    void answerSpecial(Lane& lane, HotSlot& hot, std::uint32_t slot, Ticks now);

    void sendSimple(Lane& lane, HotSlot& hot, Ticks now)
    {
        const Ticks hold = lane.hold[hot.sent++];
        Ticks& free = m_free[hot.link];
        const Ticks start = std::max(now, free);
        free = start + hold;
        ++m_result.messages;
        m_queue.push(start + hold + hot.wire, laneIndex(lane), hot.target);
    }

    /// Sends the next message of a slot, and those after it when they are due.
    void sendNext(Lane& lane, std::uint32_t slot, Ticks now);

    /// The device's phase is over: begins the next, and those after it that bring it nothing more.
    void enterPhases(Running& running, std::uint32_t member, Ticks now);

    std::uint32_t laneIndex(const Lane& lane) const { return static_cast<std::uint32_t>(&lane - m_lanes.data()); }

    const MachineLinks& m_links;
    std::vector<Ticks> m_free; ///< when each link is done with what was sent so far
    EventQueue m_queue;
    std::vector<Lane> m_lanes;
    std::vector<Running> m_running;
    MessageRun m_result;
};

void Runner::add(const StartedCollective& started)
{
    const RoutedCollective& routed = *started.collective;
    Running running;
    running.routed = &routed;
    running.firstMember
        = m_running.empty() ? 0 : m_running.back().firstMember + static_cast<std::uint32_t>(m_running.back().devices.size());
    const std::vector<std::uint32_t>& members = routed.groups.members;
    running.devices.resize(members.size());
    running.end = started.start;
    std::vector<std::uint32_t> memberOf(static_cast<std::size_t>(m_links.topology().deviceCount()), kNowhere);
    for (std::uint32_t member = 0; member < members.size(); ++member)
        memberOf[members[member]] = member;
    for (std::uint32_t phase = 0; phase < routed.phases.size(); ++phase) {
        running.receives.emplace_back(members.size(), 0);
        const auto first = static_cast<std::uint32_t>(m_lanes.size());
        for (const RoutedLane& lane : routed.phases[phase])
            addLane(lane, phase, memberOf, running);
        running.lanes.emplace_back(first, static_cast<std::uint32_t>(m_lanes.size()));
    }
    for (std::uint32_t member = 0; member < members.size(); ++member) {
        const Ticks ready = started.ready == nullptr ? started.start : started.start + (*started.ready)[member];
        m_queue.push(ready, kStart, running.firstMember + member);
    }
    m_running.push_back(std::move(running));
}

void Runner::addLane(const RoutedLane& routed, std::uint32_t phase, const std::vector<std::uint32_t>& memberOf, Running& running)
{
    Lane lane;
    lane.routed = &routed;
    lane.collective = static_cast<std::uint32_t>(m_running.size());
    lane.phase = phase;
    lane.paced = routed.plan.shape == LaneShape::AtOnce && routed.plan.partner == Partner::Line;
    const double width = routed.links.empty() ? routed.linkBytesPerSecond : m_links.bytesPerSecond(routed.links.front());
    lane.plain = m_links.uniform()
        && std::ranges::all_of(routed.links, [&](LinkId link) { return m_links.bytesPerSecond(link) == width; });
    for (const double bytes : routed.plan.stepBytes)
        lane.hold.push_back(ticksOf(bytes / width));
    lane.simple = lane.plain && routed.plan.shape != LaneShape::Tree && routed.plan.shape != LaneShape::Exchange
        && routed.plan.shape != LaneShape::AtOnce;
    lane.slotOf.assign(running.devices.size(), kNowhere);
    lane.slots.resize(routed.slots.size());
    if (routed.plan.shape == LaneShape::Tree)
        lane.arrived.assign(routed.slots.size(), 0);
    for (std::uint32_t slot = 0; slot < routed.slots.size(); ++slot) {
        const LaneSlot& from = routed.slots[slot];
        HotSlot& hot = lane.slots[slot];
        hot.member = memberOf[from.device];
        hot.sends = from.sends;
        lane.slotOf[hot.member] = slot;
        running.receives[phase][hot.member] += from.receives;
        if (from.pathCount == 0)
            continue;
        const LanePath& path = routed.paths[from.firstPath];
        hot.target = path.target;
        hot.link = routed.links[path.firstLink];
        hot.wire = path.wire;
        lane.simple = lane.simple && from.pathCount == 1 && path.linkCount == 1;
    }
    m_lanes.push_back(std::move(lane));
}

void Runner::answerSpecial(Lane& lane, HotSlot& hot, std::uint32_t slot, Ticks now)
{
    const RoutedLane& routed = *lane.routed;
    if (routed.plan.shape == LaneShape::AtOnce)
        return;
    if (routed.plan.shape == LaneShape::Tree) {
        const LaneSlot& fixed = routed.slots[slot];
        if (++lane.arrived[slot] % fixed.need != 0)
            return;
        if (hot.sends == 0 && !routed.downward) { // the root: the sum is there, and goes down
            Lane& down = m_lanes[laneIndex(lane) + 1];
            for (std::uint32_t child = 0; child < down.routed->slots[slot].pathCount; ++child)
                sendNext(down, slot, now);
            return;
        }
        for (std::uint32_t path = 0; path < fixed.pathCount; ++path)
            sendNext(lane, slot, now);
        return;
    }
    const std::uint32_t all = routed.plan.partner == Partner::Double ? hot.sends : hot.sent + 1;
    while (hot.sent < std::min(all, hot.sends))
        sendNext(lane, slot, now);
}

void Runner::sendNext(Lane& lane, std::uint32_t slot, Ticks now)
{
    HotSlot& hot = lane.slots[slot];
    if (lane.simple) {
        sendSimple(lane, hot, now);
        return;
    }
    const RoutedLane& routed = *lane.routed;
    const LaneSlot& fixed = routed.slots[slot];
    const LanePath& path = routed.pathOf(fixed, hot.sent);
    const std::uint32_t step = routed.stepOf(fixed, hot.sent);
    ++hot.sent;
    Ticks head = now;
    Ticks tail = now;
    for (std::uint32_t i = 0; i < path.linkCount; ++i) {
        const LinkId link = routed.links[path.firstLink + i];
        const Ticks hold = lane.plain ? lane.hold[step] : ticksOf(routed.plan.stepBytes[step] / m_links.bytesPerSecond(link));
        head = std::max(head, m_free[link]);
        tail = std::max(tail, head + hold);
        m_free[link] = tail;
    }
    ++m_result.messages;
    m_queue.push(tail + path.wire, laneIndex(lane), path.target);
    if (lane.paced && hot.sent < hot.sends)
        m_queue.push(m_free[routed.links[path.firstLink]], laneIndex(lane) | kPaceBit, slot);
}

void Runner::enterPhases(Running& running, std::uint32_t member, Ticks now)
{
    DeviceState& device = running.devices[member];
    while (device.remaining == 0) {
        ++device.phase;
        if (device.phase == running.lanes.size()) {
            running.end = std::max(running.end, now);
            return;
        }
        device.remaining = running.receives[device.phase][member];
        const auto [first, last] = running.lanes[device.phase];
        for (std::uint32_t index = first; index < last; ++index) {
            Lane& lane = m_lanes[index];
            const std::uint32_t slot = lane.slotOf[member];
            if (slot == kNowhere)
                continue;
            HotSlot& hot = lane.slots[slot];
            const std::uint32_t free = lane.paced ? std::min(1U, hot.sends) : lane.routed->slots[slot].freeSends;
            for (std::uint32_t i = 0; i < free; ++i)
                sendNext(lane, slot, now);
            const std::uint32_t early = hot.early;
            hot.early = 0;
            for (std::uint32_t i = 0; i < early; ++i)
                answer(lane, hot, slot, now);
            device.remaining -= early;
        }
    }
}

} // namespace

MessageRun runMessages(std::span<const StartedCollective> collectives, const MachineLinks& links)
{
    return Runner(collectives, links).run();
}

} // namespace meshwright::sim
