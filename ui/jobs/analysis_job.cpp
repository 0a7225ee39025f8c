// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/jobs/analysis_job.h"

#include <QMetaObject>

namespace meshwright::ui {

AnalysisJob::AnalysisJob(std::shared_ptr<sim::Session> session, QObject* parent)
    : QObject(parent)
    , m_session(std::move(session))
    , m_thread([this](const std::stop_token& stop) { work(stop); })
{
}

AnalysisJob::~AnalysisJob()
{
    const std::lock_guard lock(m_mutex);
    m_current.request_stop();
    m_thread.request_stop();
}

void AnalysisJob::request(sim::StudySource source)
{
    ++m_requested;
    {
        const std::lock_guard lock(m_mutex);
        m_current.request_stop();
        m_waiting = Request{std::move(source), m_requested};
    }
    m_wake.notify_one();
}

void AnalysisJob::work(const std::stop_token& stop)
{
    while (true) {
        Request request;
        std::stop_token current;
        {
            std::unique_lock lock(m_mutex);
            if (!m_wake.wait(lock, stop, [this] { return m_waiting.has_value(); }))
                return;
            request = *std::exchange(m_waiting, std::nullopt);
            m_current = std::stop_source();
            current = m_current.get_token();
        }
        if (auto analysis = m_session->analyse(request.source, current))
            QMetaObject::invokeMethod(
                this, [this, analysis, number = request.number] { deliver(analysis, number); }, Qt::QueuedConnection);
    }
}

void AnalysisJob::deliver(const std::shared_ptr<const sim::Analysis>& analysis, std::uint64_t number)
{
    if (number != m_requested)
        return;
    m_answered = number;
    Q_EMIT finished(analysis);
}

} // namespace meshwright::ui
