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

    void request(std::shared_ptr<const sim::Analysis> analysis, std::optional<sim::MeasuredTraining> training);

    /// True from a request until its report.
    bool isBusy() const { return m_worker.isBusy(); }

Q_SIGNALS:
    /// On the thread of this object. Never null.
    void finished(std::shared_ptr<const sim::Report> report);

private:
    LatestWorker m_worker;
};

} // namespace meshwright::ui
