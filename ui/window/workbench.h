// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/report/report.h"
#include "ui/jobs/analysis_job.h"
#include "ui/models/selection.h"
#include "ui/models/study_document.h"

#include <QMainWindow>

#include <memory>
#include <vector>

namespace meshwright::ui {

class CollectivesView;
class Headline;
class LayoutView;
class ReportView;
class StudyPanel;
class TimelineView;
class TrainingView;
class View;
class ViewDock;

/// A study with all its views around it: every edit goes to the document, every new analysis to every view. All share one selection.
class Workbench : public QMainWindow {
    Q_OBJECT

public:
    Workbench(StudyDocument& document, std::shared_ptr<sim::Session> session, QWidget* parent = nullptr);
    ~Workbench() override;

    /// The views in docks, in the order of the View menu.
    const std::vector<ViewDock*>& docks() const { return m_docks; }

    /// The dock of this name ("timeline"); null when there is none.
    ViewDock* findDock(const QString& id) const;

    Selection& selection() { return m_selection; }
    TrainingView& training() { return *m_training; }
    Headline& headline() { return *m_headline; }
    const std::shared_ptr<const sim::Analysis>& analysis() const { return m_analysis; }

    /// The report of what is shown. Precondition: analysis().
    sim::Report currentReport() const;

    /// The sizes and places of the docks as they are at first.
    void resetArrangement();
    QByteArray arrangement() const { return saveState(); }
    bool restoreArrangement(const QByteArray& state);

    /// Forgets what was shown of the study before: another one is opened.
    void beginStudy();

Q_SIGNALS:
    void commandRequested(View* view);
    void exportRequested(View* view);
    void saveReportRequested();

    /// Every view has the analysis of the document's latest state.
    void shown();

protected:
    void showEvent(QShowEvent* event) override;

private:
    void shareSpace();
    ViewDock* addView(const QString& title, const QString& id, View* view);
    void analyse();
    void show(const std::shared_ptr<const sim::Analysis>& analysis);

    StudyDocument& m_document;
    std::shared_ptr<sim::Session> m_session;
    Selection m_selection;
    AnalysisJob m_job;
    std::shared_ptr<const sim::Analysis> m_analysis;
    Headline* m_headline;
    StudyPanel* m_panel;
    QDockWidget* m_panelDock;
    LayoutView* m_layout;
    CollectivesView* m_collectives;
    TimelineView* m_timeline;
    TrainingView* m_training;
    ReportView* m_report;
    std::vector<ViewDock*> m_docks;
    bool m_isArranged = false; ///< as the user left it, or as at first with its sizes
};

} // namespace meshwright::ui
