// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/jobs/analysis_job.h"

#include "core/support/host_memory.h"

#include <new>

namespace meshwright::ui {

AnalysisJob::AnalysisJob(std::shared_ptr<sim::Session> session, QObject* parent)
    : QObject(parent)
    , m_session(std::move(session))
{
}

void AnalysisJob::request(sim::StudySource source)
{
    m_prover.cancel();
    m_worker.start([this, source = std::move(source)](const std::stop_token& stop) -> std::function<void()> {
        auto analysis = analysed(source, stop);
        if (!analysis)
            return nullptr;
        return [this, analysis = std::move(analysis)] { deliver(analysis); };
    });
}

/// People see the figures, and the proof when it is there.
void AnalysisJob::deliver(const std::shared_ptr<const sim::Analysis>& analysis)
{
    if (analysis->built && !analysis->proof) {
        m_prover.start([this, analysis](const std::stop_token& stop) -> std::function<void()> {
            auto answer = analysis;
            try {
                answer = m_session->analyse(analysis->source, stop);
            } catch (const std::bad_alloc&) {
                // The figures stay without it.
            }
            if (!answer)
                return nullptr;
            return [this, answer = std::move(answer)] { Q_EMIT proved(answer); };
        });
    }
    Q_EMIT finished(analysis);
}

/// Null when stopped. A study for which there is no memory has an analysis that says so.
std::shared_ptr<const sim::Analysis> AnalysisJob::analysed(const sim::StudySource& source, const std::stop_token& stop)
{
    try {
        return m_session->analyse(source, stop, false);
    } catch (const std::bad_alloc&) {
        auto analysis = std::make_shared<sim::Analysis>();
        analysis->source = source;
        analysis->problems = {notEnoughMemory()};
        return analysis;
    }
}

} // namespace meshwright::ui

#include "moc_analysis_job.cpp"
