// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/jobs/latest_worker.h"

#include <QMetaObject>

#include <new>
#include <utility>

namespace meshwright::ui {

namespace {

/// What a job wants delivered. One that runs out of memory delivers nothing: what was shown before stays.
std::function<void()> resultOf(const LatestWorker::Job& job, const std::stop_token& stop)
{
    try {
        return job(stop);
    } catch (const std::bad_alloc&) {
        return stop.stop_requested() ? std::function<void()>() : [] {};
    }
}

} // namespace

LatestWorker::~LatestWorker()
{
    cancel();
    m_thread = {}; // asks it to stop and waits, while everything that it uses is still there
}

void LatestWorker::start(Job job)
{
    cancel();
    m_isBusy = true;
    {
        const std::lock_guard lock(m_mutex);
        m_pending = {std::move(job), std::stop_source(), m_number};
    }
    if (!m_thread.joinable())
        m_thread = std::jthread([this](const std::stop_token& ends) { work(ends); });
    m_wakes.notify_one();
}

void LatestWorker::cancel()
{
    const std::lock_guard lock(m_mutex);
    ++m_number;
    m_isBusy = false;
    m_pending.job = nullptr;
    m_running.request_stop();
}

void LatestWorker::work(const std::stop_token& ends)
{
    while (true) {
        Request request;
        {
            std::unique_lock lock(m_mutex);
            if (!m_wakes.wait(lock, ends, [this] { return m_pending.job != nullptr; }))
                return;
            request = std::exchange(m_pending, {});
            m_running = request.stop;
        }
        std::function<void()> deliver = resultOf(request.job, request.stop.get_token());
        request.job = nullptr;
        if (!deliver)
            continue;
        {
            const std::lock_guard lock(m_mutex);
            m_done = {std::move(deliver), request.number}; // one that still waits is of an earlier request
        }
        QMetaObject::invokeMethod(
            &m_receiver, [this] { this->deliver(); }, Qt::QueuedConnection);
    }
}

void LatestWorker::deliver()
{
    Delivery done;
    {
        const std::lock_guard lock(m_mutex);
        done = std::exchange(m_done, {});
    }
    if (!done.deliver || done.number != m_number)
        return;
    m_isBusy = false;
    done.deliver();
}

} // namespace meshwright::ui
