// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/network/messages.h"

#include "sim/network/event_queue.h"

#include <algorithm>
#include <cassert>

namespace meshwright::sim {

namespace {

constexpr std::uint32_t kBit = MessageEngine::kBit;
constexpr std::uint32_t kPaceBit = 0x40000000U; ///< Event::what: the slot may send its next message
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

struct GroupRun {
    std::uint32_t node = 0;
    std::uint32_t iteration = 0;
    std::uint32_t left = 0; ///< devices that are not done
};

struct Running {
    const RoutedCollective* routed = nullptr;
    std::vector<GroupRun> groups;
    std::vector<DeviceState> devices; ///< for each member
    std::vector<std::vector<std::uint32_t>> receives; ///< for each phase and member
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lanes; ///< first and past the last, for each phase
    std::uint32_t firstMember = 0;
};

} // namespace

class MessageEngine::Impl {
public:
    Impl(const MachineLinks& links, EventQueue& queue)
        : m_links(links)
        , m_free(links.count(), 0)
        , m_queue(queue)
    {
    }

    void add(const RoutedCollective& routed);
    void expect(std::uint32_t collective, std::uint32_t group, std::uint32_t node, std::uint32_t iteration);

    void beginMember(std::uint32_t collective, std::uint32_t member, Ticks start)
    {
        m_queue.push(start, kStart, m_running[collective].firstMember + member);
    }

    std::uint32_t groupSize(std::uint32_t collective) const { return m_running[collective].routed->groups.size; }

    void handle(const Event& event)
    {
        if (event.what == kStart) {
            begin(event.which, event.time);
            return;
        }
        const std::uint32_t lane = event.what & ~(kBit | kPaceBit);
        if (event.what & kPaceBit)
            sendNext(m_lanes[lane], event.which, event.time);
        else
            arrive(m_lanes[lane], event.which, event.time);
    }

    std::vector<Finished>& finished() { return m_finished; }
    std::int64_t messages() const { return m_messages; }

private:
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
        ++m_messages;
        m_queue.push(start + hold + hot.wire, kBit | laneIndex(lane), hot.target);
    }

    /// Sends the next message of a slot, and those after it when they are due.
    void sendNext(Lane& lane, std::uint32_t slot, Ticks now);

    /// The device's phase is over: begins the next, and those after it that bring it nothing more.
    void enterPhases(Running& running, std::uint32_t member, Ticks now);

    std::uint32_t laneIndex(const Lane& lane) const { return static_cast<std::uint32_t>(&lane - m_lanes.data()); }

    const MachineLinks& m_links;
    std::vector<Ticks> m_free; ///< when each link is done with what was sent so far
    EventQueue& m_queue;
    std::vector<Lane> m_lanes;
    std::vector<Running> m_running;
    std::vector<Finished> m_finished;
    std::int64_t m_messages = 0;
};

void MessageEngine::Impl::add(const RoutedCollective& routed)
{
    Running running;
    running.routed = &routed;
    running.firstMember
        = m_running.empty() ? 0 : m_running.back().firstMember + static_cast<std::uint32_t>(m_running.back().devices.size());
    const std::vector<std::uint32_t>& members = routed.groups.members;
    running.devices.resize(members.size());
    running.groups.resize(routed.groups.count());
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
    m_running.push_back(std::move(running));
}

/// A group is as before its first call again.
void MessageEngine::Impl::expect(std::uint32_t collective, std::uint32_t group, std::uint32_t node, std::uint32_t iteration)
{
    Running& running = m_running[collective];
    const std::uint32_t size = running.routed->groups.size;
    assert(running.groups[group].left == 0);
    running.groups[group] = {node, iteration, size};
    const std::uint32_t firstLane = running.lanes.empty() ? 0 : running.lanes.front().first;
    const std::uint32_t lastLane = running.lanes.empty() ? 0 : running.lanes.back().second;
    for (std::uint32_t member = group * size; member < (group + 1) * size; ++member) {
        running.devices[member] = {};
        for (std::uint32_t index = firstLane; index < lastLane; ++index) {
            Lane& lane = m_lanes[index];
            const std::uint32_t slot = lane.slotOf[member];
            if (slot == kNowhere)
                continue;
            lane.slots[slot].sent = 0;
            lane.slots[slot].early = 0;
            if (!lane.arrived.empty())
                lane.arrived[slot] = 0;
        }
    }
}

void MessageEngine::Impl::addLane(
    const RoutedLane& routed, std::uint32_t phase, const std::vector<std::uint32_t>& memberOf, Running& running)
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

void MessageEngine::Impl::answerSpecial(Lane& lane, HotSlot& hot, std::uint32_t slot, Ticks now)
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

void MessageEngine::Impl::sendNext(Lane& lane, std::uint32_t slot, Ticks now)
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
    ++m_messages;
    m_queue.push(tail + path.wire, kBit | laneIndex(lane), path.target);
    if (lane.paced && hot.sent < hot.sends)
        m_queue.push(m_free[routed.links[path.firstLink]], kBit | kPaceBit | laneIndex(lane), slot);
}

void MessageEngine::Impl::enterPhases(Running& running, std::uint32_t member, Ticks now)
{
    DeviceState& device = running.devices[member];
    while (device.remaining == 0) {
        ++device.phase;
        if (device.phase == running.lanes.size()) {
            GroupRun& group = running.groups[member / running.routed->groups.size];
            if (--group.left == 0)
                m_finished.push_back({group.node, group.iteration});
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

MessageEngine::MessageEngine(const MachineLinks& links, EventQueue& queue)
    : m_impl(std::make_unique<Impl>(links, queue))
{
}

MessageEngine::~MessageEngine() = default;

void MessageEngine::add(const RoutedCollective& collective)
{
    m_impl->add(collective);
}

void MessageEngine::begin(std::uint32_t collective, std::uint32_t group, std::uint32_t node, std::uint32_t iteration, Ticks start)
{
    m_impl->expect(collective, group, node, iteration);
    const std::uint32_t size = m_impl->groupSize(collective);
    for (std::uint32_t member = group * size; member < (group + 1) * size; ++member)
        m_impl->beginMember(collective, member, start);
}

void MessageEngine::expect(std::uint32_t collective, std::uint32_t group, std::uint32_t node, std::uint32_t iteration)
{
    m_impl->expect(collective, group, node, iteration);
}

void MessageEngine::beginMember(std::uint32_t collective, std::uint32_t member, Ticks start)
{
    m_impl->beginMember(collective, member, start);
}

void MessageEngine::handle(const Event& event)
{
    m_impl->handle(event);
}

std::vector<MessageEngine::Finished>& MessageEngine::finished()
{
    return m_impl->finished();
}

std::int64_t MessageEngine::messages() const
{
    return m_impl->messages();
}

} // namespace meshwright::sim
