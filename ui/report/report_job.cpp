// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/report_job.h"

namespace meshwright::ui {

ReportJob::ReportJob(QObject* parent)
    : QObject(parent)
{
}

void ReportJob::request(
    std::shared_ptr<const sim::Analysis> analysis, std::optional<sim::MeasuredTraining> training, std::size_t mostTrials)
{
    sim::ReportChoices choices{.training = std::move(training), .mostTrials = mostTrials};
    choices.found = [this, trials = 0](const sim::ReportTrial&) mutable {
        m_worker.post([this, count = ++trials] { Q_EMIT progressed(count); });
    };
    m_worker.start([this, analysis = std::move(analysis), choices = std::move(choices)](
                       const std::stop_token& stop) -> std::function<void()> {
        auto report = std::make_shared<const sim::Report>(sim::reportOf(*analysis, choices, stop));
        if (stop.stop_requested())
            return nullptr; // it may lack changes that were not tried
        return [this, report = std::move(report)] { Q_EMIT finished(report); };
    });
}

} // namespace meshwright::ui

#include "moc_report_job.cpp"
