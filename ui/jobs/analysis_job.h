// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"
#include "ui/jobs/latest_worker.h"

#include <QObject>

#include <memory>

namespace meshwright::ui {

/// Analyses studies on a thread of its own. The latest request wins: an earlier one is stopped, and its answer is never delivered.
class AnalysisJob : public QObject {
    Q_OBJECT

public:
    explicit AnalysisJob(std::shared_ptr<sim::Session> session, QObject* parent = nullptr);

    void request(sim::StudySource source);

    /// True from a request until its answer.
    bool isBusy() const { return m_worker.isBusy(); }

Q_SIGNALS:
    /// On the thread of this object. Never null.
    void finished(std::shared_ptr<const sim::Analysis> analysis);

private:
    std::shared_ptr<const sim::Analysis> analysed(const sim::StudySource& source, const std::stop_token& stop);

    std::shared_ptr<sim::Session> m_session;
    LatestWorker m_worker; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
