// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/report/report.h"
#include "ui/jobs/analysis_job.h"
#include "ui/models/baselines.h"
#include "ui/models/selection.h"
#include "ui/models/study_document.h"

#include <QList>
#include <QTimer>
#include <QWidget>

#include <functional>
#include <memory>
#include <vector>

class QSettings;
class QSplitter;
class QStackedWidget;
class QTabWidget;

namespace meshwright::ui {

class CausesView;
class CheckpointView;
class ClustersView;
class CollectivesView;
class CompareView;
class ExplainView;
class EmptyPage;
class Headline;
class LayoutView;
class PageView;
class PerspectiveBar;
enum class Sign;
class ReportView;
class SearchView;
class SourceEdit;
class StudyPanel;
class TimelineView;
class TrainingView;
class View;
class ViewFrame;

/// One way to look at a study: a large view and perhaps a second one, with the study's fields beside them or not.
struct Perspective {
    QString id; ///< "time"
    QString title;
    QString meaning; ///< what one does in it
    QSplitter* splitter = nullptr; ///< of its frames
    std::vector<ViewFrame*> frames; ///< the large one first
    bool showsStudy = false; ///< the fields are beside it
    bool showsStudyAtFirst = false;
    QList<int> sizes = {30'000, 20'000}; ///< of two frames at first; large numbers stand for all there is
    bool isOfStudy = true; ///< else it shows nothing of one
    std::function<bool()> hasOwn = {}; ///< there is something to see without a study; not set: never
    TimelineView* timeline = nullptr; ///< that takes the keys which nobody has taken
};

/// A study with all its views around it: the headline, the perspectives, the study's fields. Every edit goes to the document, every new analysis to
/// the views that are seen, to others once they are. All share one selection.
class Workbench : public QWidget {
    Q_OBJECT

public:
    Workbench(StudyDocument& document, std::shared_ptr<sim::Session> session, QWidget* parent = nullptr);
    ~Workbench() override;

    const std::vector<Perspective>& perspectives() const { return m_perspectives; }
    const Perspective& perspective() const { return m_perspectives[m_current]; } ///< the one that is seen

    /// Goes to the perspective of this name, if there is one.
    void showPerspective(const QString& id);

    /// All views of all perspectives.
    std::vector<View*> views() const;

    /// The view of this name ("timeline"); null when there is none.
    View* findView(const QString& id) const;

    /// Goes to the view's perspective and raises it there, also without a study.
    void showView(const View* view);

    /// The manual's page on what has the focus: a view, or the study's fields; else on the perspective's large view.
    QString manualPage() const;

    /// One was opened, or begun.
    bool hasStudy() const;

    /// The study's fields beside the perspective that is seen, where there is a study.
    void setStudyShown(bool isShown);

    /// The study's text, in the place of its fields.
    void showSource();

    Selection& selection() { return m_selection; }
    Baselines& baselines() { return m_baselines; }
    CompareView& compare() { return *m_compare; }
    ReportView& report() { return *m_report; }
    ExplainView& explain() { return *m_explain; }
    PageView& pages() { return *m_page; }
    SearchView& search() { return *m_search; }
    ClustersView& clusters() { return *m_clusters; }
    CheckpointView& checkpoint() { return *m_checkpoint; }
    TimelineView& timeline() { return *m_timeline; }
    TrainingView& training() { return *m_training; }
    Headline& headline() { return *m_headline; }
    const std::shared_ptr<const sim::Analysis>& analysis() const { return m_analysis; }

    /// The report of what is shown. Precondition: analysis().
    sim::Report currentReport() const;

    /// Keeps the study as it is shown, to compare with it: the headline does, and the comparison.
    void pinBaseline();

    /// Sizes, and which perspectives have the fields beside them, as they are at first.
    void resetArrangement();
    void saveArrangement(QSettings& settings) const;
    void restoreArrangement(const QSettings& settings);

    /// Forgets what was shown of the study before: another one is opened, and is seen.
    void beginStudy();

    /// How long an analysis may take before what is shown is marked as stale.
    static constexpr int kStaleMilliseconds = 100;

Q_SIGNALS:
    void commandRequested(View* view);
    void exportRequested(View* view);
    void saveReportRequested();
    void baselineRequested(); ///< what a file says is to be pinned
    void startRequested(); ///< the ways to begin
    void openRequested(); ///< a file that the user chooses
    void arrangementChanged(); ///< another perspective is seen, or the fields came or went

    /// Every view that is seen has the analysis of the document's latest state. Its proof may still be under way.
    void shown();

    /// The analysis that is shown has its proof.
    void proved();

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    Perspective& addPerspective(const QString& id, const QString& title, const QString& meaning, Sign sign, bool showsStudy);
    ViewFrame* addFrame(Perspective& perspective);
    void setCurrent(std::size_t index);
    void showPage(bool isEmpty);
    void showWhatIsOfStudies();
    bool hasSomething() const; ///< to show in this perspective
    void updatePanel();
    void showFields();
    void addWhy();
    void compareHeadline();
    void analyse();
    void show(const std::shared_ptr<const sim::Analysis>& analysis);
    void showProof(const std::shared_ptr<const sim::Analysis>& analysis);

    bool m_isPassingOn = false; ///< a key that nobody has taken
    StudyDocument& m_document;
    std::shared_ptr<sim::Session> m_session;
    Selection m_selection;
    Baselines m_baselines;
    AnalysisJob m_job;
    QTimer m_staleAfter;
    std::shared_ptr<const sim::Analysis> m_analysis;
    std::vector<Perspective> m_perspectives;
    std::size_t m_current = 0;
    Headline* m_headline;
    PerspectiveBar* m_bar;
    QSplitter* m_beside; ///< the fields, and the perspective
    QTabWidget* m_side;
    QStackedWidget* m_pages; ///< a splitter for each perspective, and the empty page
    EmptyPage* m_empty;
    StudyPanel* m_panel;
    SourceEdit* m_source;
    LayoutView* m_layout;
    CollectivesView* m_collectives;
    ViewFrame* m_ofCollectives = nullptr; ///< where they are shown
    TimelineView* m_timeline;
    TrainingView* m_training;
    CausesView* m_causes;
    CompareView* m_compare;
    SearchView* m_search;
    ClustersView* m_clusters;
    CheckpointView* m_checkpoint;
    ExplainView* m_explain;
    PageView* m_page;
    ReportView* m_report;
};

} // namespace meshwright::ui
