// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/jobs/latest_worker.h"

#include <QCoreApplication>
#include <QEvent>

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

void LatestWorker::Inbox::customEvent(QEvent* /*event*/)
{
    m_worker.deliver();
}

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
    m_running.stop.request_stop();
    m_deliveries.clear();
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
            m_running = {nullptr, request.stop, request.number};
        }
        std::function<void()> result = resultOf(request.job, request.stop.get_token());
        request.job = nullptr;
        if (result)
            send({std::move(result), true});
    }
}

void LatestWorker::post(std::function<void()> call)
{
    send({std::move(call), false});
}

void LatestWorker::send(Delivery delivery)
{
    {
        const std::lock_guard lock(m_mutex);
        if (m_running.number != m_number)
            return;
        m_deliveries.push_back(std::move(delivery));
    }
    QCoreApplication::postEvent(&m_inbox, new QEvent(QEvent::User));
}

void LatestWorker::deliver()
{
    Delivery next;
    {
        const std::lock_guard lock(m_mutex);
        if (m_deliveries.empty())
            return; // it was dropped
        next = std::move(m_deliveries.front());
        m_deliveries.pop_front();
    }
    if (next.isResult)
        m_isBusy = false;
    next.call(); // last: it may end the worker
}

} // namespace meshwright::ui
