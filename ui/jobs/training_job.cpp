// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/jobs/training_job.h"

#include <QThreadPool>

namespace meshwright::ui {

TrainingJob::TrainingJob(QObject* parent)
    : QObject(parent)
{
    m_timer.setInterval(kLookMilliseconds);
    connect(&m_timer, &QTimer::timeout, this, &TrainingJob::look);
}

TrainingJob::~TrainingJob() = default;

void TrainingJob::start(std::shared_ptr<const Study> study, const sim::TrainingRunOptions& options)
{
    forget(); // the snapshot is not that of the new run, which may be over by now: only look() sees its end, and says so
    m_run = std::make_shared<sim::TrainingRun>(std::move(study), options);
    m_timer.start();
    Q_EMIT started();
}

void TrainingJob::forget()
{
    giveUpRun();
    m_snapshot = {};
    m_curves = {};
}

/// Its threads end and its memory goes back elsewhere, so that nobody waits for it here.
void TrainingJob::giveUpRun()
{
    if (m_run == nullptr)
        return;
    m_timer.stop();
    m_run->cancel();
    QThreadPool::globalInstance()->start([run = std::move(m_run)]() mutable { run.reset(); });
    m_run = nullptr;
}

bool TrainingJob::isActive() const
{
    return m_run != nullptr && !isOver(m_snapshot.state);
}

void TrainingJob::pause()
{
    if (m_run != nullptr)
        m_run->pause();
    look();
}

void TrainingJob::resume()
{
    if (m_run != nullptr)
        m_run->resume();
    look();
}

void TrainingJob::cancel()
{
    if (m_run != nullptr)
        m_run->cancel();
    look();
}

void TrainingJob::look()
{
    if (!isActive())
        return;
    sim::TrainingSnapshot now = m_run->snapshot();
    const bool changed = now.state != m_snapshot.state || now.step != m_snapshot.step || now.steps != m_snapshot.steps
        || now.problems.size() != m_snapshot.problems.size();
    const bool timeGoesOn = now.state != sim::TrainingState::Paused;
    m_snapshot = std::move(now);
    if (!changed && !timeGoesOn)
        return;
    m_run->extend(m_curves);
    const bool over = isOver(m_snapshot.state);
    if (over)
        m_timer.stop();
    Q_EMIT progressed(m_snapshot);
    if (over)
        Q_EMIT finished(m_run->result());
}

} // namespace meshwright::ui

#include "moc_training_job.cpp"
