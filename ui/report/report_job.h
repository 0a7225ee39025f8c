// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/report_of.h"
#include "ui/jobs/latest_worker.h"

#include <QObject>

#include <memory>
#include <optional>

namespace meshwright::ui {

/// Puts reports together on a thread of its own, as simulating what could be changed takes longer than a frame. The latest request wins: an
/// earlier one is stopped, and its report is never delivered.
class ReportJob : public QObject {
    Q_OBJECT

public:
    explicit ReportJob(QObject* parent = nullptr);

    /// `mostTrials`: changes that are simulated for advice.
    void request(std::shared_ptr<const sim::Analysis> analysis, std::optional<sim::MeasuredTraining> training,
        std::size_t mostTrials = sim::ReportChoices().mostTrials);

    /// Drops the report that is being put together.
    void cancel() { m_worker.cancel(); }

    /// True from a request until its report.
    bool isBusy() const { return m_worker.isBusy(); }

Q_SIGNALS:
    /// So many changes of the latest request have been simulated. On the thread of this object.
    void progressed(int trials);

    /// On the thread of this object. Never null.
    void finished(std::shared_ptr<const sim::Report> report);

private:
    LatestWorker m_worker; ///< last: its jobs use this
};

} // namespace meshwright::ui
