// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/barrier.h"

namespace meshwright {

Barrier::Barrier(std::int64_t members, Movement* movement, Parking& parking)
    : m_members(members)
    , m_movement(movement)
    , m_parking(parking)
{
}

namespace {

constexpr std::uint64_t kRoundShift = 32;

} // namespace

Barrier::Arrival Barrier::arrive(const std::function<void()>& atLast)
{
    Arrival arrival;
    arrival.round = m_round.load(std::memory_order_acquire);
    arrival.isAborted = m_aborted.load(); // after the round: an abort that comes later changes the round
    if (arrival.isAborted || m_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 != m_members)
        return arrival;
    arrival.isLast = true;
    if (atLast)
        atLast();
    // From here on nobody begins to wait for this round. Those who wait move again from now on, not from when they wake.
    const std::uint64_t next = std::uint64_t{arrival.round + 1} << kRoundShift;
    const std::uint64_t waiting = m_waiting.exchange(next, std::memory_order_acq_rel) & 0xffffffffU;
    if (m_movement != nullptr)
        m_movement->moving.fetch_add(static_cast<std::int64_t>(waiting), std::memory_order_acq_rel);
    m_arrived.store(0, std::memory_order_relaxed);
    m_round.fetch_add(1, std::memory_order_acq_rel);
    m_parking.changed(m_round);
    return arrival;
}

Barrier::Outcome Barrier::await(std::uint32_t round)
{
    if (m_round.load(std::memory_order_acquire) == round && !m_parking.linger(m_round, round)) {
        std::uint64_t waiting = m_waiting.load(std::memory_order_acquire);
        bool isCounted = false;
        while (!isCounted && static_cast<std::uint32_t>(waiting >> kRoundShift) == round)
            isCounted = m_waiting.compare_exchange_weak(waiting, waiting + 1, std::memory_order_acq_rel);
        if (isCounted && m_movement != nullptr && m_movement->moving.fetch_sub(1, std::memory_order_acq_rel) == 1)
            return Outcome::Stuck;
        m_parking.await(m_round, round);
    }
    return m_aborted.load() ? Outcome::Aborted : Outcome::Passed;
}

Barrier::Outcome Barrier::wait(const std::function<void()>& atLast)
{
    const Arrival arrival = arrive(atLast);
    return arrival.isAborted ? Outcome::Aborted : arrival.isLast ? Outcome::Passed : await(arrival.round);
}

void Barrier::abort()
{
    m_aborted.store(true);
    m_round.fetch_add(1);
    m_parking.changed(m_round);
}

void Barrier::reset()
{
    m_arrived.store(0);
    m_waiting.store(std::uint64_t{m_round.load()} << kRoundShift);
    m_aborted.store(false);
}

} // namespace meshwright
