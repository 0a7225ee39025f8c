// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/workbench.h"

#include "ui/collectives/collectives_view.h"
#include "ui/explain/explain_view.h"
#include "ui/layout/layout_view.h"
#include "ui/memory/memory_view.h"
#include "ui/mesh/mesh_view.h"
#include "ui/pages/page_view.h"
#include "ui/program/program_view.h"
#include "ui/report/report_view.h"
#include "ui/search/clusters_view.h"
#include "ui/search/search_view.h"
#include "ui/shapes/shapes_view.h"
#include "ui/study/source_edit.h"
#include "ui/study/study_panel.h"
#include "ui/timeline/timeline_canvas.h"
#include "ui/timeline/timeline_view.h"
#include "ui/training/checkpoint_view.h"
#include "ui/training/training_view.h"
#include "ui/why/causes_view.h"
#include "ui/why/compare_view.h"
#include "ui/why/what_if_view.h"
#include "ui/window/empty_page.h"
#include "ui/window/headline.h"
#include "ui/window/perspective_bar.h"
#include "ui/window/view_frame.h"

#include <QBoxLayout>
#include <QCoreApplication>
#include <QHash>
#include <QKeyEvent>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <QTabWidget>

namespace meshwright::ui {

namespace {

constexpr int kPanelWidth = 340;
const QString kPerspectiveKey = QStringLiteral("window/perspective");
const QString kGatesKey = QStringLiteral("compare/gates");

/// For those whose threads end after the workbench's own members are gone.
std::shared_ptr<const sim::Catalogue> catalogueOf(const std::shared_ptr<sim::Session>& session)
{
    return {session, &session->catalogue()};
}

/// Where a perspective's arrangement is remembered.
QString keyOf(const Perspective& perspective, const char* what)
{
    return QStringLiteral("window/%1/%2").arg(perspective.id, QString::fromLatin1(what));
}

/// What to look at first: an array that the specs do something to.
QString firstSplitArray(const sim::Analysis& analysis)
{
    const auto found = std::find_if(analysis.arrays.begin(), analysis.arrays.end(),
        [](const sim::ProgramArray& array) { return !array.sharding.isReplicated(); });
    return found == analysis.arrays.end() ? QString() : QString::fromStdString(found->name);
}

} // namespace

Workbench::Workbench(StudyDocument& document, std::shared_ptr<sim::Session> session, QWidget* parent)
    : QWidget(parent)
    , m_document(document)
    , m_session(std::move(session))
    , m_job(m_session)
    , m_headline(new Headline(this))
    , m_bar(new PerspectiveBar(this))
    , m_beside(new QSplitter(this))
    , m_side(new QTabWidget(this))
    , m_pages(new QStackedWidget(this))
    , m_empty(new EmptyPage(this))
    , m_panel(new StudyPanel(m_selection, m_session->catalogue(), this))
    , m_source(new SourceEdit(this))
    , m_layout(new LayoutView(m_selection, this))
    , m_collectives(new CollectivesView(m_selection, this))
    , m_timeline(new TimelineView(m_selection, this))
    , m_training(new TrainingView(m_selection, this))
    , m_causes(new CausesView(m_selection, this))
    , m_compare(new CompareView(m_baselines, this))
    , m_search(new SearchView(m_selection, catalogueOf(m_session), this))
    , m_clusters(new ClustersView(catalogueOf(m_session), this))
    , m_checkpoint(new CheckpointView(this))
    , m_explain(new ExplainView(m_selection, this))
    , m_page(new PageView(m_selection, this))
    , m_report(new ReportView(m_selection, this))
{
    m_side->setDocumentMode(true);
    m_side->tabBar()->setDrawBase(false);
    m_side->addTab(m_panel, tr("Study"));
    m_side->addTab(m_source, tr("Source"));
    m_beside->setChildrenCollapsible(false);
    m_beside->addWidget(m_side);
    m_beside->addWidget(m_pages);
    m_beside->setStretchFactor(0, 0);
    m_beside->setStretchFactor(1, 1);
    auto* row = new QHBoxLayout;
    row->setSpacing(0);
    row->addWidget(m_bar);
    row->addWidget(m_beside, 1);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(0, 0, 0, 0);
    all->setSpacing(0);
    all->addWidget(m_headline);
    all->addLayout(row, 1);

    ViewFrame* design = addFrame(addPerspective(QStringLiteral("design"), tr("Design"),
        tr("Change the mesh and the specs, and see where arrays lie"), Sign::Design, true));
    design->addView(tr("Layout"), QStringLiteral("layout"), m_layout);
    design->addView(tr("Mesh"), QStringLiteral("mesh"), new MeshView(m_selection, this));
    auto* program = new ProgramView(m_selection, this);
    design->addView(tr("Program"), QStringLiteral("program"), program);
    connect(program, &ProgramView::specChosen, this, [this](const QString& path, const QString& spec) {
        if (spec.trimmed().isEmpty())
            return m_document.removeSpec(path);
        m_document.change({path + QLatin1Char('=') + spec}, tr("Set %1").arg(path));
    });
    auto* shapes = new ShapesView(m_selection, catalogueOf(m_session), this);
    design->addView(tr("Shapes"), QStringLiteral("shapes"), shapes);
    connect(shapes, &ShapesView::meshChosen, this,
        [this](const QStringList& settings) { m_document.change(settings, tr("Take a mesh shape")); });
    Perspective& time = addPerspective(QStringLiteral("time"), tr("Time"),
        tr("See what a step's time goes to, and which specs its collectives come from"), Sign::Time, false);
    time.sizes = {35'000, 15'000}; // the timeline has details below its rows
    time.hasOwn = [this] { return m_timeline->hasForeign(); };
    time.timeline = m_timeline;
    addFrame(time)->addView(tr("Timeline"), QStringLiteral("timeline"), m_timeline);
    m_ofCollectives = addFrame(time);
    m_ofCollectives->addView(tr("Collectives"), QStringLiteral("collectives"), m_collectives);
    addFrame(addPerspective(QStringLiteral("memory"), tr("Memory"), tr("See what a device's memory is used for over a step"),
                 Sign::Memory, false))
        ->addView(tr("Memory"), QStringLiteral("memory"), new MemoryView(m_selection, this));
    addWhy();
    const auto always = [] { return true; };
    ViewFrame* search = addFrame(addPerspective(QStringLiteral("search"), tr("Search"),
        tr("Find the best plans for the model on its hardware, and compare clusters for models"), Sign::Search, false));
    m_perspectives.back().hasOwn = always;
    search->addView(tr("Plans"), QStringLiteral("plans"), m_search);
    search->addView(tr("Clusters"), QStringLiteral("clusters"), m_clusters);
    ViewFrame* train = addFrame(addPerspective(QStringLiteral("train"), tr("Train"),
        tr("Train the study on virtual devices, and see what it reads of a checkpoint"), Sign::Train, false));
    m_perspectives.back().hasOwn = [this] { return m_checkpoint->isOpened(); };
    train->addView(tr("Training"), QStringLiteral("training"), m_training);
    train->addView(tr("Checkpoint"), QStringLiteral("checkpoint"), m_checkpoint);
    addFrame(addPerspective(QStringLiteral("explain"), tr("Explain"), tr("Learn what an error or a log means, and what to do"),
                 Sign::Explain, false))
        ->addView(tr("Messages"), QStringLiteral("messages"), m_explain);
    m_perspectives.back().isOfStudy = false;
    m_perspectives.back().hasOwn = always;
    addFrame(addPerspective(QStringLiteral("pages"), tr("Pages"),
                 tr("Run pages with JAX on virtual devices, and go through lessons"), Sign::Pages, false))
        ->addView(tr("Page"), QStringLiteral("page"), m_page);
    m_perspectives.back().isOfStudy = false;
    m_perspectives.back().hasOwn = always;
    addFrame(
        addPerspective(QStringLiteral("report"), tr("Report"), tr("Read and save the report of the study"), Sign::Report, false))
        ->addView(tr("Report"), QStringLiteral("report"), m_report);
    m_perspectives.back().hasOwn = [this] { return m_report->isOpened(); };
    m_pages->addWidget(m_empty);
    connect(m_empty, &EmptyPage::startRequested, this, &Workbench::startRequested);
    connect(m_empty, &EmptyPage::openRequested, this, &Workbench::openRequested);
    resetArrangement();

    m_staleAfter.setSingleShot(true);
    m_staleAfter.setInterval(kStaleMilliseconds);
    connect(&m_staleAfter, &QTimer::timeout, this, [this] { m_headline->setStale(m_job.isBusy()); });
    connect(m_bar, &PerspectiveBar::chosen, this,
        [this](int index) { showPerspective(m_perspectives[static_cast<std::size_t>(index)].id); });
    connect(&m_document, &StudyDocument::sourceChanged, this, &Workbench::analyse);
    connect(&m_document, &StudyDocument::sourceChanged, this, [this] {
        if (m_pages->currentWidget() == m_empty)
            setCurrent(m_current);
        showWhatIsOfStudies();
        updatePanel();
    });
    connect(&m_job, &AnalysisJob::finished, this, &Workbench::show);
    connect(&m_job, &AnalysisJob::proved, this, &Workbench::showProof);
    connect(m_panel, &StudyPanel::settingsChanged, this, [this](const QStringList& settings) {
        m_document.change(settings, tr("Edit %1").arg(settings.front().section(QLatin1Char('='), 0, 0)));
    });
    connect(m_source, &SourceEdit::edited, this,
        [this](const std::string& text) { m_document.changeText(text, tr("Edit the source")); });
    connect(m_side, &QTabWidget::currentChanged, this, &Workbench::updatePanel);
    connect(m_headline, &Headline::problemsRequested, this, [this] {
        if (m_source->mistake())
            return showSource();
        showFields();
        m_panel->showProblems();
    });
    const auto showField = [this](const QString& path) {
        showFields();
        m_panel->showField(path);
    };
    connect(m_collectives, &CollectivesView::specRequested, this, showField);
    connect(m_layout, &LayoutView::specRequested, this, showField);
    connect(program, &ProgramView::specRequested, this, showField);
    connect(m_causes, &CausesView::specRequested, this, showField);
    connect(m_collectives, &CollectivesView::removeSpecRequested, &m_document, &StudyDocument::removeSpec);
    connect(m_training, &TrainingView::trained, this, [this](const std::shared_ptr<const TrainingResult>& result) {
        m_timeline->setMeasured(std::shared_ptr<const Timeline>(result, &result->virtualTime),
            std::shared_ptr<const Timeline>(result, &result->wall), m_training->runSource());
        m_report->setTraining(result);
    });
    connect(m_search, &SearchView::planChosen, this,
        [this](const std::string& text, const QString& name) { m_document.changeText(text, tr("Take the plan %1").arg(name)); });
    connect(m_report, &ReportView::saveRequested, this, &Workbench::saveReportRequested);
}

Workbench::~Workbench() = default;

void Workbench::addWhy()
{
    Perspective& why = addPerspective(QStringLiteral("why"), tr("Why"),
        tr("See what a figure is made of, what would change it, and how the study differs from a pinned state"), Sign::Why,
        false);
    addFrame(why)->addView(tr("Causes"), QStringLiteral("causes"), m_causes);
    ViewFrame* changes = addFrame(why);
    auto* whatIf = new WhatIfView(m_selection, this);
    changes->addView(tr("What if"), QStringLiteral("what-if"), whatIf);
    changes->addView(tr("Compare"), QStringLiteral("compare"), m_compare);
    connect(whatIf, &WhatIfView::changeChosen, &m_document, &StudyDocument::change);
    connect(m_compare, &CompareView::fileRequested, this, &Workbench::baselineRequested);
    connect(m_compare, &CompareView::pinRequested, this, &Workbench::pinBaseline);
    connect(m_compare, &CompareView::stateChosen, this,
        [this](const sim::StudySource& state, const QString& name) { m_document.changeState(state, tr("Go to %1").arg(name)); });
    connect(m_headline, &Headline::whyRequested, this, [this](const QString& figure) {
        showView(m_causes);
        m_causes->showFigure(figure);
    });
    connect(&m_baselines, &Baselines::changed, this, &Workbench::compareHeadline);
}

void Workbench::pinBaseline()
{
    if (!m_analysis || (!m_analysis->built && !m_analysis->simulated))
        return;
    m_baselines.pin(m_analysis, QString::fromStdString(m_analysis->study->name));
    showView(m_compare);
}

/// A state of another file is not what this study is measured by.
void Workbench::compareHeadline()
{
    const Baselines::Pinned* pinned = m_baselines.current();
    const bool isOfThis = pinned != nullptr && pinned->analysis && pinned->analysis->simulated
        && pinned->analysis->source.file == m_document.source().file;
    m_headline->setBaseline(isOfThis ? pinned->analysis : nullptr);
}

Perspective& Workbench::addPerspective(
    const QString& id, const QString& title, const QString& meaning, Sign sign, bool showsStudy)
{
    auto* splitter = new QSplitter(Qt::Vertical, m_pages);
    splitter->setChildrenCollapsible(false);
    m_pages->addWidget(splitter);
    m_bar->addPerspective(title, meaning, sign);
    m_perspectives.push_back({id, title, meaning, splitter, {}, showsStudy, showsStudy});
    return m_perspectives.back();
}

ViewFrame* Workbench::addFrame(Perspective& perspective)
{
    auto* frame = new ViewFrame(perspective.splitter);
    perspective.splitter->addWidget(frame);
    perspective.frames.push_back(frame);
    connect(frame, &ViewFrame::commandRequested, this, &Workbench::commandRequested);
    connect(frame, &ViewFrame::exportRequested, this, &Workbench::exportRequested);
    return frame;
}

void Workbench::setCurrent(std::size_t index)
{
    m_current = index;
    showPage(!hasSomething());
    m_bar->setCurrent(static_cast<int>(index)); // which may have got the focus of what is no longer shown
}

/// Of the current perspective: its views, or that they have nothing to show.
void Workbench::showPage(bool isEmpty)
{
    showWhatIsOfStudies();
    m_empty->setMeaning(perspective().meaning);
    m_pages->setCurrentWidget(isEmpty ? static_cast<QWidget*>(m_empty) : perspective().splitter);
    setStudyShown(perspective().showsStudy);
}

/// A trace that is opened alone has the room of what says nothing without a study.
void Workbench::showWhatIsOfStudies()
{
    m_headline->setVisible(hasStudy());
    m_ofCollectives->setVisible(hasStudy());
}

bool Workbench::hasStudy() const
{
    return m_document.source() != sim::StudySource{} || m_document.undoStack().canUndo();
}

bool Workbench::hasSomething() const
{
    return hasStudy() || (perspective().hasOwn && perspective().hasOwn());
}

void Workbench::showPerspective(const QString& id)
{
    for (std::size_t i = 0; i < m_perspectives.size(); ++i) {
        if (m_perspectives[i].id != id)
            continue;
        setCurrent(i);
        if (perspective().timeline != nullptr)
            perspective().timeline->setFocus(Qt::OtherFocusReason); // which is used by keys
    }
}

/// Keys that nobody has taken are the timeline's, wherever the focus is in its perspective.
void Workbench::keyPressEvent(QKeyEvent* event)
{
    event->ignore();
    TimelineView* timeline = perspective().timeline;
    if (timeline == nullptr || !timeline->isVisible() || m_isPassingOn || timeline->isAncestorOf(window()->focusWidget()))
        return;
    m_isPassingOn = true; // what the timeline does not take comes back here
    QCoreApplication::sendEvent(&timeline->canvas(), event);
    m_isPassingOn = false;
}

std::vector<View*> Workbench::views() const
{
    std::vector<View*> all;
    for (const Perspective& perspective : m_perspectives) {
        for (const ViewFrame* frame : perspective.frames)
            all.insert(all.end(), frame->views().begin(), frame->views().end());
    }
    return all;
}

View* Workbench::findView(const QString& id) const
{
    const std::vector<View*> all = views();
    const auto found = std::find_if(all.begin(), all.end(), [&](const View* view) { return view->objectName() == id; });
    return found == all.end() ? nullptr : *found;
}

QString Workbench::manualPage() const
{
    static const QHash<QString, QString> kPages = {{QStringLiteral("mesh"), QStringLiteral("network")},
        {QStringLiteral("program"), QStringLiteral("propagation")}, {QStringLiteral("timeline"), QStringLiteral("timeline")},
        {QStringLiteral("compare"), QStringLiteral("comparing")}, {QStringLiteral("plans"), QStringLiteral("search")},
        {QStringLiteral("clusters"), QStringLiteral("plan")}, {QStringLiteral("checkpoint"), QStringLiteral("checkpoints")},
        {QStringLiteral("messages"), QStringLiteral("mistakes")}, {QStringLiteral("page"), QStringLiteral("pages")},
        {QStringLiteral("report"), QStringLiteral("reports")}};
    const QWidget* focused = window()->focusWidget();
    if (m_side->isVisible() && m_side->isAncestorOf(focused))
        return QStringLiteral("study-files");
    const std::vector<ViewFrame*>& frames = perspective().frames;
    const auto found
        = std::find_if(frames.begin(), frames.end(), [&](const ViewFrame* frame) { return frame->isAncestorOf(focused); });
    const ViewFrame* frame = found == frames.end() ? frames.front() : *found;
    return kPages.value(frame->current()->objectName(), QStringLiteral("views"));
}

void Workbench::showView(const View* view)
{
    for (std::size_t i = 0; i < m_perspectives.size(); ++i) {
        for (ViewFrame* frame : m_perspectives[i].frames) {
            if (std::find(frame->views().begin(), frame->views().end(), view) == frame->views().end())
                continue;
            frame->raise(view);
            setCurrent(i);
            showPage(false);
        }
    }
}

void Workbench::setStudyShown(bool isShown)
{
    m_perspectives[m_current].showsStudy = isShown;
    m_side->setVisible(isShown && hasStudy());
    updatePanel();
    Q_EMIT arrangementChanged();
}

void Workbench::showFields()
{
    setStudyShown(true);
    m_side->setCurrentWidget(m_panel);
}

void Workbench::showSource()
{
    setStudyShown(true);
    m_side->setCurrentWidget(m_source);
    m_source->setFocus();
}

/// Fields and text that are not seen cost nothing.
void Workbench::updatePanel()
{
    if (!perspective().showsStudy)
        return;
    const auto update = [this](auto& part) {
        part.setSource(m_document.source());
        if (m_analysis)
            part.setAnalysis(m_analysis);
    };
    if (m_side->currentWidget() == m_panel)
        update(*m_panel);
    else
        update(*m_source);
}

void Workbench::resetArrangement()
{
    for (Perspective& perspective : m_perspectives) {
        perspective.showsStudy = perspective.showsStudyAtFirst;
        if (perspective.splitter->count() == 2)
            perspective.splitter->setSizes(perspective.sizes);
    }
    m_beside->setSizes({kPanelWidth, std::max(1, width() - kPanelWidth)});
    setCurrent(0);
}

void Workbench::saveArrangement(QSettings& settings) const
{
    settings.setValue(kPerspectiveKey, perspective().id);
    settings.setValue(kGatesKey, m_compare->gates());
    settings.setValue(QStringLiteral("window/fields"), m_beside->saveState());
    for (const Perspective& one : m_perspectives) {
        settings.setValue(keyOf(one, "study"), one.showsStudy);
        settings.setValue(keyOf(one, "sizes"), one.splitter->saveState());
    }
}

void Workbench::restoreArrangement(const QSettings& settings)
{
    m_compare->setGates(settings.value(kGatesKey).toString());
    m_beside->restoreState(settings.value(QStringLiteral("window/fields")).toByteArray());
    for (Perspective& one : m_perspectives) {
        one.showsStudy = settings.value(keyOf(one, "study"), one.showsStudy).toBool();
        one.splitter->restoreState(settings.value(keyOf(one, "sizes")).toByteArray());
    }
    showPerspective(settings.value(kPerspectiveKey, perspective().id).toString());
}

sim::Report Workbench::currentReport() const
{
    if (m_job.isProving() && !m_report->isOpened()) // a report says whether the study is proved
        m_report->present(m_session->analyse(m_analysis->source));
    m_report->bringUpToDate();
    return m_report->currentReport();
}

void Workbench::beginStudy()
{
    m_analysis.reset();
    m_selection.clear();
    m_headline->forget();
    m_headline->setBaseline(nullptr);
    for (View* view : views())
        view->beginStudy();
    if (!perspective().isOfStudy)
        showPerspective(QStringLiteral("design"));
}

void Workbench::analyse()
{
    m_job.request(m_document.source());
    if (!m_staleAfter.isActive())
        m_staleAfter.start();
}

void Workbench::show(const std::shared_ptr<const sim::Analysis>& analysis)
{
    m_staleAfter.stop();
    m_analysis = analysis;
    m_selection.setAnalysis(*analysis);
    if (m_selection.array().isEmpty())
        m_selection.setArray(firstSplitArray(*analysis));
    m_headline->setAnalysis(analysis);
    compareHeadline();
    updatePanel();
    for (View* view : views())
        view->present(analysis);
    Q_EMIT shown();
}

/// Of the views, the report alone says it.
void Workbench::showProof(const std::shared_ptr<const sim::Analysis>& analysis)
{
    m_analysis = analysis;
    m_headline->setProof(analysis);
    m_report->present(analysis);
    Q_EMIT proved();
}

} // namespace meshwright::ui

#include "moc_workbench.cpp"
