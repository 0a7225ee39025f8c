// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/jobs/analysis_job.h"

namespace meshwright::ui {

AnalysisJob::AnalysisJob(std::shared_ptr<sim::Session> session, QObject* parent)
    : QObject(parent)
    , m_session(std::move(session))
{
}

void AnalysisJob::request(sim::StudySource source)
{
    m_worker.start([this, source = std::move(source)](const std::stop_token& stop) -> std::function<void()> {
        auto analysis = m_session->analyse(source, stop);
        if (!analysis)
            return nullptr;
        return [this, analysis = std::move(analysis)] { Q_EMIT finished(analysis); };
    });
}

} // namespace meshwright::ui
