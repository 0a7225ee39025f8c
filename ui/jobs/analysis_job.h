// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"
#include "ui/jobs/latest_worker.h"

#include <QObject>

#include <memory>

namespace meshwright::ui {

/// Analyses studies on a thread of its own, and proves them on another. The latest request wins: an earlier one is stopped, and its answers are never
/// delivered.
class AnalysisJob : public QObject {
    Q_OBJECT

public:
    explicit AnalysisJob(std::shared_ptr<sim::Session> session, QObject* parent = nullptr);

    void request(sim::StudySource source);

    /// True from a request until its answer.
    bool isBusy() const { return m_worker.isBusy(); }

    /// True from an answer without a proof until there is one.
    bool isProving() const { return m_prover.isBusy(); }

Q_SIGNALS:
    /// On the thread of this object. Never null. Its proof may still be under way.
    void finished(std::shared_ptr<const sim::Analysis> analysis);

    /// After `finished` where that had none: the same analysis with its proof, or without one where there is no memory for
    /// it. Not said where nothing was built.
    void proved(std::shared_ptr<const sim::Analysis> analysis);

private:
    void deliver(const std::shared_ptr<const sim::Analysis>& analysis);
    std::shared_ptr<const sim::Analysis> analysed(const sim::StudySource& source, const std::stop_token& stop);

    std::shared_ptr<sim::Session> m_session;
    LatestWorker m_prover; ///< of what the worker analysed; an edit does not wait for it
    LatestWorker m_worker; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
