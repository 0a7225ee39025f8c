// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/selection.h"
#include "ui/report/report_job.h"
#include "ui/widgets/view.h"

#include <optional>
#include <vector>

class QLabel;
class QPushButton;
class QScrollArea;

namespace meshwright::ui {

class PagesWidget;

/// The report of the study, on the pages that are printed. It is put together when the view is seen, and again after every edit. A report that was
/// opened from a file is shown as it was written until the reader goes on to the study's.
class ReportView : public View {
    Q_OBJECT

public:
    explicit ReportView(Selection& selection, QWidget* parent = nullptr);

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis) override;

    /// What training of the study measured; null: nothing. An edit of the study does not forget it: the report says when it is of another study.
    void setTraining(const std::shared_ptr<const TrainingResult>& result);

    /// Shows a report (never null) as it was written. `name`: of its file.
    void showOpened(std::shared_ptr<const sim::Report> report, const QString& name);

    /// Goes on to the study's report.
    void leaveOpened();
    bool isOpened() const { return m_opened != nullptr; }

    /// The page that fills most of the view.
    DisplayList picture() const override;
    QString command() const override;

    /// The report as it stands, put together now if need be. Precondition: an analysis was set.
    sim::Report currentReport() const;

    /// How many pages are shown; 0 before the first report.
    int pageCount() const;

Q_SIGNALS:
    void saveRequested(); ///< the user wants the report in a file: see `writeReport`
    void reportShown(); ///< the latest report is on the screen

protected:
    void forgetStudy() override;
    void showEvent(QShowEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    void skipTrials();
    void showReport(const std::shared_ptr<const sim::Report>& report);

    std::shared_ptr<const sim::Analysis> m_analysis;
    std::optional<sim::MeasuredTraining> m_training;
    std::shared_ptr<const sim::Report> m_report; ///< the one shown
    std::shared_ptr<const sim::Report> m_opened; ///< from a file, and shown; null: the study's is
    bool m_isStale = false; ///< the report shown is not of the latest analysis and training, and no other one was asked for
    ReportJob m_job;
    QLabel* m_summary;
    QPushButton* m_save;
    QPushButton* m_skip; ///< shows the report without what takes time; seen while that is under way
    QPushButton* m_own; ///< goes on to the study's report
    QScrollArea* m_scroll;
    PagesWidget* m_pages;
};

} // namespace meshwright::ui
