// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/network/ticks.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace meshwright::sim {

/// Something that happens at a time. What the two numbers mean is the simulation's business.
struct Event {
    Ticks time = 0;
    std::uint64_t order = 0; ///< how many were pushed before it: of two events at one time the earlier pushed comes first
    std::uint32_t what = 0;
    std::uint32_t which = 0;
};
static_assert(sizeof(Event) == 24 && std::is_trivially_copyable_v<Event>);

/// Events by (time, order), so that a run is the same bit for bit whenever it is repeated. A heap of four children a node; in front of
/// it a sorted lane takes every event that is not earlier than the last one in the lane, which in regular traffic is nearly all.
class EventQueue {
public:
    EventQueue()
        : m_lane(kFirstLane)
    {
    }

    bool empty() const { return m_laneSize == 0 && m_heap.empty(); }
    std::size_t size() const { return m_laneSize + m_heap.size(); }

    void push(Ticks time, std::uint32_t what, std::uint32_t which)
    {
        const Event event{time, m_pushed++, what, which};
        if (m_laneSize == 0 || time >= m_lane[(m_laneFirst + m_laneSize - 1) & (m_lane.size() - 1)].time) {
            if (m_laneSize == m_lane.size())
                growLane();
            m_lane[(m_laneFirst + m_laneSize++) & (m_lane.size() - 1)] = event;
            return;
        }
        m_heap.push_back(event);
        siftUp(m_heap.size() - 1);
    }

    /// Precondition: not empty.
    const Event& top() const { return laneIsFirst() ? m_lane[m_laneFirst] : m_heap.front(); }

    /// Precondition: not empty.
    Event pop()
    {
        assert(!empty());
        if (laneIsFirst()) {
            const Event event = m_lane[m_laneFirst];
            m_laneFirst = (m_laneFirst + 1) & (m_lane.size() - 1);
            --m_laneSize;
            return event;
        }
        const Event event = m_heap.front();
        m_heap.front() = m_heap.back();
        m_heap.pop_back();
        if (!m_heap.empty())
            siftDown();
        return event;
    }

    /// Moves all events by the same time. Their order stays.
    void shift(Ticks by)
    {
        forEach([&](Event& event) { event.time += by; });
    }

    /// Calls `visit` with every event, in no order. It may change `what` and `which`.
    template <typename Visit>
    void forEach(Visit visit)
    {
        for (std::size_t i = 0; i < m_laneSize; ++i)
            visit(m_lane[(m_laneFirst + i) & (m_lane.size() - 1)]);
        for (Event& event : m_heap)
            visit(event);
    }

private:
    static constexpr std::size_t kFirstLane = 64; // a power of two, as every later size

    static bool before(const Event& a, const Event& b) { return a.time < b.time || (a.time == b.time && a.order < b.order); }

    bool laneIsFirst() const { return m_laneSize > 0 && (m_heap.empty() || before(m_lane[m_laneFirst], m_heap.front())); }

    void growLane()
    {
        std::vector<Event> larger(m_lane.size() * 2);
        for (std::size_t i = 0; i < m_laneSize; ++i)
            larger[i] = m_lane[(m_laneFirst + i) & (m_lane.size() - 1)];
        m_lane.swap(larger);
        m_laneFirst = 0;
    }

    void siftUp(std::size_t place)
    {
        const Event event = m_heap[place];
        while (place > 0) {
            const std::size_t parent = (place - 1) / 4;
            if (!before(event, m_heap[parent]))
                break;
            m_heap[place] = m_heap[parent];
            place = parent;
        }
        m_heap[place] = event;
    }

    void siftDown()
    {
        const std::size_t size = m_heap.size();
        const Event event = m_heap.front();
        std::size_t place = 0;
        for (;;) {
            const std::size_t first = 4 * place + 1;
            if (first >= size)
                break;
            const std::size_t end = first + 4 < size ? first + 4 : size;
            std::size_t least = first;
            for (std::size_t child = first + 1; child < end; ++child) {
                if (before(m_heap[child], m_heap[least]))
                    least = child;
            }
            if (!before(m_heap[least], event))
                break;
            m_heap[place] = m_heap[least];
            place = least;
        }
        m_heap[place] = event;
    }

    std::vector<Event> m_heap;
    std::vector<Event> m_lane; ///< a ring buffer, ascending from m_laneFirst
    std::size_t m_laneFirst = 0;
    std::size_t m_laneSize = 0;
    std::uint64_t m_pushed = 0;
};

} // namespace meshwright::sim
