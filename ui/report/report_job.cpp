// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/report_job.h"

#include <QMetaObject>

namespace meshwright::ui {

ReportJob::ReportJob(QObject* parent)
    : QObject(parent)
    , m_thread([this](const std::stop_token& stop) { work(stop); })
{
}

ReportJob::~ReportJob()
{
    const std::lock_guard lock(m_mutex);
    m_current.request_stop();
    m_thread.request_stop();
}

void ReportJob::request(std::shared_ptr<const sim::Analysis> analysis, std::optional<sim::MeasuredTraining> training)
{
    ++m_requested;
    {
        const std::lock_guard lock(m_mutex);
        m_current.request_stop();
        m_waiting = Request{std::move(analysis), {.training = std::move(training)}, m_requested};
    }
    m_wake.notify_one();
}

void ReportJob::work(const std::stop_token& stop)
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
        auto report = std::make_shared<const sim::Report>(sim::reportOf(*request.analysis, request.choices, current));
        if (current.stop_requested())
            continue; // it may lack changes that were not tried
        QMetaObject::invokeMethod(
            this, [this, report = std::move(report), number = request.number] { deliver(report, number); }, Qt::QueuedConnection);
    }
}

void ReportJob::deliver(const std::shared_ptr<const sim::Report>& report, std::uint64_t number)
{
    if (number != m_requested)
        return;
    m_answered = number;
    Q_EMIT finished(report);
}

} // namespace meshwright::ui
