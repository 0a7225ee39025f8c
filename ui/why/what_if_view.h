// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/report_of.h"
#include "ui/jobs/latest_worker.h"
#include "ui/models/selection.h"
#include "ui/widgets/view.h"

#include <QTimer>

class QLabel;

namespace meshwright::ui {

class Table;

/// Changes that are worth a thought, each simulated in the background: other meshes, specs left out, another batch. The first row is the study as it is
/// now, and each figure stands beside its difference from that. A double click applies a change.
class WhatIfView : public View {
    Q_OBJECT

public:
    explicit WhatIfView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;
    DisplayList picture() const override;

    /// `meshwright report wide_mlp.yaml`, whose advice has the same changes.
    QString command() const override;

    const std::vector<sim::ReportTrial>& trials() const { return m_trials; }
    bool isBusy() const { return m_still.isActive() || m_worker.isBusy(); }

Q_SIGNALS:
    /// The study is to have these settings: `path=value` each; `what` names the change.
    void changeChosen(const QStringList& settings, const QString& what);

protected:
    void forgetStudy() override;

private:
    void start();
    void showTrials(std::vector<sim::ReportTrial> trials, bool isAll);

    static constexpr std::size_t kMostTrials = 20;
    static constexpr int kRowsOfNow = 1; ///< above the changes

    std::shared_ptr<const sim::Analysis> m_analysis; ///< that the changes are of
    std::vector<sim::ReportTrial> m_trials; ///< as they come; of all the quickest first, then what cannot be
    QLabel* m_status;
    Table* m_table;
    QTimer m_still; ///< the study was not edited for a moment: what is being dragged is not simulated
    LatestWorker m_worker; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
