// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/mailbox.h"

#include <cassert>

namespace meshwright {

void Mailbox::send(const MessageTag& tag, AlignedBytes message)
{
    if (m_forward) {
        m_forward(tag, std::move(message));
        return;
    }
    {
        const std::lock_guard lock(m_mutex);
        [[maybe_unused]] const bool isNew = m_messages.emplace(tag, std::move(message)).second;
        assert(isNew);
        if (m_awaited == nullptr || *m_awaited != tag)
            return;
        m_awaited = nullptr;
        if (m_movement != nullptr) // the receiver moves again, from now on, not from when it wakes
            m_movement->moving.fetch_add(1, std::memory_order_acq_rel);
        m_news.fetch_add(1, std::memory_order_acq_rel);
    }
    m_parking.changed(m_news);
}

Barrier::Outcome Mailbox::receive(const MessageTag& tag, AlignedBytes& message)
{
    std::unique_lock lock(m_mutex);
    if (!m_aborted && !m_messages.contains(tag)) {
        if (m_movement != nullptr && m_movement->moving.fetch_sub(1, std::memory_order_acq_rel) == 1)
            return Barrier::Outcome::Stuck;
        m_awaited = &tag;
        const std::uint32_t news = m_news.load(std::memory_order_relaxed); // changes under the mutex only
        lock.unlock();
        m_parking.await(m_news, news);
        lock.lock();
        m_awaited = nullptr;
    }
    if (m_aborted)
        return Barrier::Outcome::Aborted;
    const auto found = m_messages.find(tag);
    message = std::move(found->second);
    m_messages.erase(found);
    return Barrier::Outcome::Passed;
}

void Mailbox::abort()
{
    {
        const std::lock_guard lock(m_mutex);
        m_aborted = true;
        m_news.fetch_add(1, std::memory_order_acq_rel);
    }
    m_parking.changed(m_news);
}

void Mailbox::reset()
{
    const std::lock_guard lock(m_mutex);
    m_aborted = false;
    m_messages.clear();
}

} // namespace meshwright
