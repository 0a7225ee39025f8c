// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/barrier.h"

#include <thread>

namespace meshwright {

Barrier::Barrier(std::int64_t members, Movement* movement)
    : m_members(members)
    , m_movement(movement)
{
}

Barrier::Outcome Barrier::wait(const std::function<void()>& atLast)
{
    constexpr int kYields = 8;
    const std::uint32_t round = m_round.load(std::memory_order_acquire);
    if (m_aborted.load()) // after the round: an abort that comes later changes the round
        return Outcome::Aborted;
    if (m_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_members) {
        if (atLast)
            atLast();
        if (m_movement != nullptr) // the others move again, from now on, not from when they wake
            m_movement->moving.fetch_add(m_members - 1, std::memory_order_acq_rel);
        m_arrived.store(0, std::memory_order_relaxed);
        m_round.fetch_add(1, std::memory_order_acq_rel);
        m_round.notify_all();
        return Outcome::Passed;
    }
    if (m_movement != nullptr && m_movement->moving.fetch_sub(1, std::memory_order_acq_rel) == 1)
        return Outcome::Stuck;
    for (int i = 0; i < kYields && m_round.load(std::memory_order_acquire) == round; ++i)
        std::this_thread::yield();
    while (m_round.load(std::memory_order_acquire) == round)
        m_round.wait(round, std::memory_order_acquire);
    return m_aborted.load() ? Outcome::Aborted : Outcome::Passed;
}

void Barrier::abort()
{
    m_aborted.store(true);
    m_round.fetch_add(1);
    m_round.notify_all();
}

void Barrier::reset()
{
    m_arrived.store(0);
    m_aborted.store(false);
}

} // namespace meshwright
