// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/workbench.h"

#include "ui/collectives/collectives_view.h"
#include "ui/layout/layout_view.h"
#include "ui/memory/memory_view.h"
#include "ui/mesh/mesh_view.h"
#include "ui/report/report_view.h"
#include "ui/study/study_panel.h"
#include "ui/timeline/timeline_view.h"
#include "ui/training/training_view.h"
#include "ui/window/headline.h"
#include "ui/window/view_dock.h"

namespace meshwright::ui {

namespace {

/// Two views stand above each other in a window of 700 pixels.
constexpr int kLeastViewHeight = 150;

/// What to look at first: an array that the specs do something to.
QString firstSplitArray(const sim::Analysis& analysis)
{
    const auto found = std::find_if(analysis.arrays.begin(), analysis.arrays.end(),
        [](const sim::ProgramArray& array) { return !array.sharding.isReplicated(); });
    return found == analysis.arrays.end() ? QString() : QString::fromStdString(found->name);
}

} // namespace

Workbench::Workbench(StudyDocument& document, std::shared_ptr<sim::Session> session, QWidget* parent)
    : QMainWindow(parent)
    , m_document(document)
    , m_session(std::move(session))
    , m_job(m_session)
    , m_headline(new Headline(this))
    , m_panel(new StudyPanel(m_selection, m_session->catalogue(), this))
    , m_panelDock(new QDockWidget(tr("Study"), this))
    , m_layout(new LayoutView(m_selection, this))
    , m_collectives(new CollectivesView(m_selection, this))
    , m_timeline(new TimelineView(m_selection, this))
    , m_training(new TrainingView(m_selection, this))
    , m_report(new ReportView(m_selection, this))
{
    setWindowFlags(Qt::Widget);
    setDockOptions(AllowNestedDocks | AllowTabbedDocks);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    setMenuWidget(m_headline);

    m_panelDock->setObjectName(QStringLiteral("study"));
    m_panelDock->setWidget(m_panel);
    m_panelDock->setFeatures(QDockWidget::DockWidgetMovable | QDockWidget::DockWidgetClosable);
    addView(tr("Layout"), QStringLiteral("layout"), m_layout);
    addView(tr("Mesh"), QStringLiteral("mesh"), new MeshView(m_selection, this));
    addView(tr("Collectives"), QStringLiteral("collectives"), m_collectives);
    addView(tr("Memory"), QStringLiteral("memory"), new MemoryView(m_selection, this));
    addView(tr("Report"), QStringLiteral("report"), m_report);
    addView(tr("Timeline"), QStringLiteral("timeline"), m_timeline);
    addView(tr("Training"), QStringLiteral("training"), m_training);
    resetArrangement();

    connect(&m_document, &StudyDocument::sourceChanged, this, &Workbench::analyse);
    connect(&m_job, &AnalysisJob::finished, this, &Workbench::show);
    connect(&m_document, &StudyDocument::sourceChanged, m_panel, [this] { m_panel->setSource(m_document.source()); });
    connect(m_panel, &StudyPanel::settingsChanged, this, [this](const QStringList& settings) {
        m_document.change(settings, tr("Edit %1").arg(settings.front().section(QLatin1Char('='), 0, 0)));
    });
    connect(m_headline, &Headline::problemsRequested, this, [this] {
        m_panelDock->show();
        m_panel->showProblems();
    });
    const auto showField = [this](const QString& path) {
        m_panelDock->show();
        m_panel->showField(path);
    };
    connect(m_collectives, &CollectivesView::specRequested, this, showField);
    connect(m_layout, &LayoutView::specRequested, this, showField);
    connect(m_collectives, &CollectivesView::removeSpecRequested, &m_document, &StudyDocument::removeSpec);
    connect(m_training, &TrainingView::trained, this, [this](const std::shared_ptr<const TrainingResult>& result) {
        m_timeline->setMeasured(std::shared_ptr<const Timeline>(result, &result->virtualTime),
            std::shared_ptr<const Timeline>(result, &result->wall));
        m_report->setTraining(result);
    });
    connect(m_report, &ReportView::saveRequested, this, &Workbench::saveReportRequested);
}

Workbench::~Workbench() = default;

ViewDock* Workbench::addView(const QString& title, const QString& id, View* view)
{
    auto* dock = new ViewDock(title, id, view, this);
    connect(dock, &ViewDock::commandRequested, this, [this, view] { Q_EMIT commandRequested(view); });
    connect(dock, &ViewDock::exportRequested, this, [this, view] { Q_EMIT exportRequested(view); });
    view->setMinimumHeight(kLeastViewHeight);
    m_docks.push_back(dock);
    return dock;
}

ViewDock* Workbench::findDock(const QString& id) const
{
    const auto found
        = std::find_if(m_docks.begin(), m_docks.end(), [&](const ViewDock* dock) { return dock->objectName() == id; });
    return found == m_docks.end() ? nullptr : *found;
}

void Workbench::resetArrangement()
{
    addDockWidget(Qt::LeftDockWidgetArea, m_panelDock);
    ViewDock* layout = findDock(QStringLiteral("layout"));
    ViewDock* timeline = findDock(QStringLiteral("timeline"));
    addDockWidget(Qt::RightDockWidgetArea, layout);
    splitDockWidget(layout, timeline, Qt::Vertical);
    for (const char* id : {"mesh", "collectives", "memory", "report"})
        tabifyDockWidget(layout, findDock(QString::fromLatin1(id)));
    tabifyDockWidget(timeline, findDock(QStringLiteral("training")));
    m_panelDock->show();
    for (ViewDock* dock : m_docks) {
        dock->setFloating(false);
        dock->show();
    }
    layout->raise();
    timeline->raise();
    shareSpace();
}

void Workbench::shareSpace()
{
    constexpr int kPanelWidth = 340;
    ViewDock* layout = findDock(QStringLiteral("layout"));
    resizeDocks({m_panelDock, layout}, {kPanelWidth, std::max(1, width() - kPanelWidth)}, Qt::Horizontal);
    resizeDocks({layout, findDock(QStringLiteral("timeline"))}, {9, 11}, Qt::Vertical);
}

bool Workbench::restoreArrangement(const QByteArray& state)
{
    m_isArranged = restoreState(state);
    return m_isArranged;
}

void Workbench::showEvent(QShowEvent* event)
{
    QMainWindow::showEvent(event);
    // Sizes that are given before the first show are forgotten.
    if (!std::exchange(m_isArranged, true))
        QMetaObject::invokeMethod(this, &Workbench::shareSpace, Qt::QueuedConnection);
}

sim::Report Workbench::currentReport() const
{
    return m_report->currentReport();
}

void Workbench::beginStudy()
{
    m_analysis.reset();
    m_selection.setArray({});
    m_selection.setOperation({});
    m_selection.setDevices({});
    m_headline->forget();
}

void Workbench::analyse()
{
    m_job.request(m_document.source());
}

void Workbench::show(const std::shared_ptr<const sim::Analysis>& analysis)
{
    m_analysis = analysis;
    if (m_selection.array().isEmpty())
        m_selection.setArray(firstSplitArray(*analysis));
    m_headline->setAnalysis(analysis);
    m_panel->setAnalysis(analysis);
    for (ViewDock* dock : m_docks)
        dock->view()->setAnalysis(analysis);
    Q_EMIT shown();
}

} // namespace meshwright::ui
