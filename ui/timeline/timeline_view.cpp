// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_view.h"

#include "core/draw/draw_timeline.h"
#include "core/support/text.h"
#include "sim/session/analysis_state.h"
#include "ui/timeline/details_pane.h"
#include "ui/timeline/legend.h"

#include <QEvent>
#include <QFrame>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QShortcut>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::ui {

namespace {

/// Steps whose lengths differ by more than this are stretched to the same width, for the shorter would be too small to see.
constexpr double kMostDifference = 4.0;
constexpr int kLeastDetails = 110;

QString grouped(std::size_t count)
{
    return QLocale(QLocale::English).toString(static_cast<qulonglong>(count));
}

void setColour(QLabel& label, QColor colour)
{
    QPalette palette = label.palette();
    palette.setColor(QPalette::WindowText, colour);
    label.setPalette(palette);
}

bool hasTimeline(const sim::Analysis& analysis)
{
    return analysis.simulated && !analysis.simulated->simulation.timeline.slices().empty();
}

/// False where devices differ, by their pipeline stage or their speed: rows name them then.
bool standsForAll(const Timeline& timeline)
{
    const auto& rows = timeline.rows();
    return std::all_of(rows.begin(), rows.end(), [&](const TimelineRow& row) { return row.device == rows.front().device; });
}

std::string simulatedTitle(const sim::SimulatedStudy& study)
{
    const std::int64_t devices = study.mesh.deviceCount();
    const std::string whose = devices == 1        ? "the only device"
        : standsForAll(study.simulation.timeline) ? fmt::format("each of {} devices", devices)
                                                  : fmt::format("devices that differ, of {}", devices);
    return fmt::format("simulated on {}: {}, {}", study.simulation.machine, whose, formatSeconds(study.simulation.stepSeconds));
}

std::string measuredTitle(const TimelinePart& part, bool isStale)
{
    const bool isVirtual = part.timeline().clock() == Clock::Virtual;
    return fmt::format("measured{}, {}: {}", isStale ? ", of an earlier version of the study" : "",
        isVirtual ? "virtual clock, as if each device had its own core" : "wall clock, waiting for a core included",
        formatSeconds(part.endSeconds()));
}

} // namespace

TimelineView::TimelineView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_canvas(new TimelineCanvas(this))
    , m_details(new DetailsPane(this))
    , m_legend(new Legend(this))
    , m_splitter(new QSplitter(Qt::Vertical, this))
    , m_notice(new QLabel(this))
    , m_searchProblem(new QLabel(this))
{
    setAccessibleName(tr("Timeline of a step"));
    for (QLabel* label : {m_notice, m_searchProblem}) {
        label->setTextFormat(Qt::PlainText);
        label->setWordWrap(true);
        label->hide();
    }
    auto* rows = new QWidget(this);
    auto* rowsLayout = new QVBoxLayout(rows);
    rowsLayout->setContentsMargins(0, 0, 0, 0);
    rowsLayout->setSpacing(0);
    rowsLayout->addWidget(m_canvas, 1);
    auto* legendMargins = new QHBoxLayout;
    legendMargins->setContentsMargins(8, 6, 8, 4);
    legendMargins->addWidget(m_legend);
    rowsLayout->addLayout(legendMargins);
    m_splitter->addWidget(rows);
    m_splitter->addWidget(m_details);
    m_splitter->setChildrenCollapsible(false);
    m_splitter->setStretchFactor(0, 3);
    m_splitter->setStretchFactor(1, 1);
    connect(m_splitter, &QSplitter::splitterMoved, this, [this] { m_heightIsUsers = true; });

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(makeToolBar());
    for (QLabel* label : {m_searchProblem, m_notice}) {
        auto* margins = new QHBoxLayout;
        margins->setContentsMargins(8, 0, 8, 0);
        margins->addWidget(label);
        layout->addLayout(margins);
        label->setContentsMargins(0, 0, 0, 6);
    }
    layout->addWidget(m_splitter, 1);

    connectCanvas();
    connect(m_details, &DetailsPane::operationClicked, &m_selection, &Selection::setOperation);
    connect(&m_selection, &Selection::operationChanged, this, &TimelineView::onOperationChanged);
    connect(&m_selection, &Selection::collectiveChanged, this, &TimelineView::onCollectiveChanged);
    connect(&m_selection, &Selection::devicesChanged, this, [this] {
        std::set<std::int64_t> devices;
        for (const DeviceId device : m_selection.devices())
            devices.insert(static_cast<std::int64_t>(device));
        m_canvas->setMarkedDevices(std::move(devices));
    });
    setFocusProxy(m_canvas);
    showModel();
}

TimelineView::~TimelineView() = default;

QToolButton* TimelineView::makeButton(const QString& text, const QString& toolTip)
{
    auto* button = new QToolButton(this);
    button->setText(text);
    button->setToolTip(toolTip);
    button->setAccessibleName(toolTip);
    button->setFocusPolicy(Qt::TabFocus);
    return button;
}

QWidget* TimelineView::makeToolBar()
{
    auto* bar = new QWidget(this);
    auto* layout = new QHBoxLayout(bar);
    layout->setContentsMargins(8, 8, 8, 6);
    layout->setSpacing(6);

    m_search = new QLineEdit(bar);
    m_search->setPlaceholderText(tr("Search slices (Ctrl+F)"));
    m_search->setAccessibleName(tr("Search the names of all slices"));
    m_search->setToolTip(
        tr("Searches the names of all slices of the whole trace; Enter goes to the next, Shift+Enter to the one before"));
    m_search->setClearButtonEnabled(true);
    m_search->setMinimumWidth(180);
    m_search->setMaximumWidth(320);
    m_search->installEventFilter(this);
    m_regularExpression = makeButton(QStringLiteral(".*"), tr("Regular expression"));
    m_regularExpression->setCheckable(true);
    m_previous = makeButton(QStringLiteral("\u2039"), tr("Previous match (Shift+F3)"));
    m_next = makeButton(QStringLiteral("\u203a"), tr("Next match (F3)"));
    m_count = new QLabel(bar);
    m_count->setAccessibleName(tr("Matches"));
    m_clockButton = makeButton({}, {});
    m_scaleButton
        = makeButton(tr("Same length"), tr("Each step over the whole width, with its own ruler; or one ruler for all (T)"));
    m_scaleButton->setCheckable(true);
    QToolButton* out = makeButton(QStringLiteral("\u2212"), tr("Zoom out (S)"));
    QToolButton* in = makeButton(QStringLiteral("+"), tr("Zoom in (W)"));
    QToolButton* fit = makeButton(tr("Fit"), tr("Whole step (0)"));
    m_helpButton = makeButton(QStringLiteral("?"), tr("Keys and gestures (?)"));

    layout->addWidget(m_search, 2);
    for (QWidget* widget : {static_cast<QWidget*>(m_regularExpression), static_cast<QWidget*>(m_previous),
             static_cast<QWidget*>(m_next), static_cast<QWidget*>(m_count)})
        layout->addWidget(widget);
    layout->addStretch(1);
    for (QToolButton* button : {m_clockButton, m_scaleButton, out, in, fit, m_helpButton})
        layout->addWidget(button);

    const auto middle = [this] { return (m_canvas->window().begin + m_canvas->window().end) / 2.0; };
    connect(m_search, &QLineEdit::textChanged, this, &TimelineView::startSearch);
    connect(m_regularExpression, &QToolButton::toggled, this, &TimelineView::startSearch);
    connect(m_previous, &QToolButton::clicked, this, [this] { goToMatch(-1); });
    connect(m_next, &QToolButton::clicked, this, [this] { goToMatch(1); });
    connect(m_clockButton, &QToolButton::clicked, this, [this] { setMeasuredClock(m_showsWall ? Clock::Virtual : Clock::Wall); });
    connect(m_scaleButton, &QToolButton::clicked, this, [this](bool isChecked) {
        m_stretch = isChecked;
        chooseStretch();
    });
    connect(out, &QToolButton::clicked, this, [this, middle] { m_canvas->zoomAt(middle(), 1.5, ZoomGesture::Keys); });
    connect(in, &QToolButton::clicked, this, [this, middle] { m_canvas->zoomAt(middle(), 1.0 / 1.5, ZoomGesture::Keys); });
    connect(fit, &QToolButton::clicked, m_canvas, &TimelineCanvas::fit);
    connect(m_helpButton, &QToolButton::clicked, this, &TimelineView::showHelp);
    return bar;
}

void TimelineView::connectCanvas()
{
    connect(m_canvas, &TimelineCanvas::sliceClicked, this, &TimelineView::onSliceClicked);
    connect(m_canvas, &TimelineCanvas::areaChanged, this, &TimelineView::startTotals);
    connect(m_canvas, &TimelineCanvas::matchRequested, this, &TimelineView::goToMatch);
    connect(m_canvas, &TimelineCanvas::helpRequested, this, &TimelineView::showHelp);
    connect(m_canvas, &TimelineCanvas::clockRequested, m_clockButton, &QToolButton::click);
    connect(m_canvas, &TimelineCanvas::scaleRequested, this, [this] {
        if (m_scaleButton->isVisibleTo(this))
            m_scaleButton->click();
    });
    const auto search = [this] {
        m_search->setFocus(Qt::ShortcutFocusReason);
        m_search->selectAll();
    };
    connect(m_canvas, &TimelineCanvas::searchRequested, this, search);
    connect(new QShortcut(QKeySequence::Find, this), &QShortcut::activated, this,
        search); // wherever the focus is, while the view is seen
}

bool TimelineView::isBusy() const
{
    return m_simulatedReader.isBusy() || m_measuredReader.isBusy() || m_foreignReader.isBusy() || m_searcher.isBusy()
        || m_adder.isBusy();
}

void TimelineView::run(LatestWorker& worker, std::size_t slices, LatestWorker::Job job)
{
    worker.cancel();
    if (slices > kAtOnce)
        return worker.start(std::move(job));
    if (const std::function<void()> deliver = job(std::stop_token()))
        deliver();
}

// What is shown

void TimelineView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_analysis = std::move(analysis);
    const auto simulated = m_analysis->simulated;
    if (hasTimeline(*m_analysis)) {
        m_latestGeneration = m_selection.generation();
        if (simulated == m_simulated && !m_simulatedReader.isBusy())
            m_generation = m_latestGeneration;
    }
    if (hasTimeline(*m_analysis) && simulated != m_simulated) {
        m_simulated = simulated;
        const std::shared_ptr<const Timeline> timeline(simulated, &simulated->simulation.timeline);
        m_slicesRead = timeline->slices().size();
        run(m_simulatedReader, m_slicesRead, [this, simulated, timeline](const std::stop_token& stop) -> std::function<void()> {
            Part part = TimelinePart::build(timeline, stop);
            if (!part)
                return {};
            return [this, part = std::move(part), title = simulatedTitle(*simulated)] {
                m_simulatedPart = part;
                m_simulatedTitle = title;
                m_generation = m_latestGeneration;
                showModel();
            };
        });
    }
    if (isMeasuredStale() != m_measuredIsStale)
        showModel();
    showState();
}

/// A trace of another program stays.
void TimelineView::forgetStudy()
{
    m_simulatedReader.cancel();
    m_measuredReader.cancel();
    m_analysis.reset();
    m_simulated.reset();
    m_simulatedPart.reset();
    m_virtualPart.reset();
    m_wallPart.reset();
    m_measuredSource.reset();
    m_canvas->fit(); // the next step is shown whole
    showModel();
}

/// The file's name is not a part of it.
bool TimelineView::isMeasuredStale() const
{
    return m_measuredSource && m_analysis
        && (m_measuredSource->text != m_analysis->source.text || m_measuredSource->settings != m_analysis->source.settings);
}

void TimelineView::setMeasured(
    std::shared_ptr<const Timeline> virtualTime, std::shared_ptr<const Timeline> wall, std::optional<sim::StudySource> source)
{
    m_measuredSource = std::move(source);
    const std::size_t slices = (virtualTime ? virtualTime->slices().size() : 0) + (wall ? wall->slices().size() : 0);
    m_slicesRead = slices;
    run(m_measuredReader, slices, [this, virtualTime, wall](const std::stop_token& stop) -> std::function<void()> {
        const auto build = [&](const std::shared_ptr<const Timeline>& timeline) {
            return timeline ? TimelinePart::build(timeline, stop) : nullptr;
        };
        Part virtualPart = build(virtualTime);
        Part wallPart = build(wall);
        if (stop.stop_requested())
            return {};
        return [this, virtualPart = std::move(virtualPart), wallPart = std::move(wallPart)] {
            m_virtualPart = virtualPart;
            m_wallPart = wallPart;
            m_showsWall = !m_virtualPart && m_wallPart;
            showModel();
        };
    });
    showState();
}

void TimelineView::setForeign(std::shared_ptr<const Timeline> timeline, const std::string& title)
{
    m_slicesRead = timeline ? timeline->slices().size() : 0;
    run(m_foreignReader, m_slicesRead, [this, timeline, title](const std::stop_token& stop) -> std::function<void()> {
        Part part = timeline ? TimelinePart::build(timeline, stop) : nullptr;
        if (stop.stop_requested())
            return {};
        return [this, part = std::move(part), title] {
            m_foreignPart = part;
            m_foreignTitle = title;
            showModel();
            // What was just opened is what the person wants to see; the study's rows may fill the height.
            if (m_foreignPart)
                m_canvas->revealGroup(static_cast<std::uint32_t>(m_canvas->model().groups().size() - 1));
        };
    });
    showState();
}

void TimelineView::setMeasuredClock(Clock clock)
{
    const bool showsWall = clock == Clock::Wall;
    if (showsWall == m_showsWall || !(showsWall ? m_wallPart : m_virtualPart))
        return;
    m_showsWall = showsWall;
    showModel();
}

void TimelineView::showModel()
{
    m_measuredIsStale = isMeasuredStale();
    std::vector<GroupSource> sources;
    if (m_simulatedPart)
        sources.push_back({"simulated", m_simulatedTitle, m_simulatedPart, standsForAll(m_simulatedPart->timeline())});
    if (const Part& measured = m_showsWall ? m_wallPart : m_virtualPart)
        sources.push_back({"measured", measuredTitle(*measured, m_measuredIsStale), measured, false});
    if (m_foreignPart)
        sources.push_back({"trace", m_foreignTitle, m_foreignPart, false});
    m_canvas->setModel(std::make_shared<const TimelineModel>(std::move(sources)));
    m_legend->setCategories(m_canvas->model().categories());
    m_legend->parentWidget()->layout()->invalidate();

    const bool hasClocks = m_virtualPart && m_wallPart;
    m_clockButton->setVisible(hasClocks);
    m_clockButton->setText(m_showsWall ? tr("Measured: wall clock") : tr("Measured: virtual clock"));
    m_clockButton->setToolTip(m_showsWall
            ? tr("Shown: what happened, waiting for a core included. Click for the virtual clock, as if every device had a core "
                 "of its own (V)")
            : tr("Shown: CPU times as if each device had its own core. Click for the wall clock, what happened (V)"));
    m_clockButton->setAccessibleName(m_clockButton->text());
    m_scaleButton->setVisible(m_canvas->model().groups().size() > 1);
    chooseStretch();
    shareHeight();
    startSearch();
    onCollectiveChanged();
    onOperationChanged(m_selection.operation());
    showState();
}

void TimelineView::chooseStretch()
{
    const std::vector<ModelGroup>& groups = m_canvas->model().groups();
    bool isStretched = false;
    if (groups.size() > 1) {
        const auto [shortest, longest] = std::minmax_element(groups.begin(), groups.end(),
            [](const ModelGroup& a, const ModelGroup& b) { return a.part->endSeconds() < b.part->endSeconds(); });
        isStretched = m_stretch.value_or(longest->part->endSeconds() > kMostDifference * shortest->part->endSeconds());
    }
    m_scaleButton->setChecked(isStretched);
    m_canvas->setStretched(isStretched);
    startTotals();
}

void TimelineView::showState()
{
    if (m_simulatedReader.isBusy() || m_measuredReader.isBusy() || m_foreignReader.isBusy())
        m_canvas->setMessage(tr("Reading %1 slices\u2026").arg(grouped(m_slicesRead)));
    else if (m_canvas->model().isEmpty() && (!m_analysis || hasTimeline(*m_analysis)))
        m_canvas->setMessage(tr("Nothing to show yet."));
    else
        m_canvas->setMessage({});
    const bool isOld = m_analysis && !hasTimeline(*m_analysis);
    m_notice->setVisible(isOld && m_simulatedPart);
    m_canvas->setDimmed(isOld && m_simulatedPart);
    if (isOld)
        showProblem(*m_analysis);
}

void TimelineView::showProblem(const sim::Analysis& analysis)
{
    const Problem* problem = sim::whyNotBuilt(analysis);
    const QString why = problem == nullptr
        ? tr("The study has no hardware: choose a chip to see its step.")
        : tr("The study cannot be simulated: %1").arg(QString::fromStdString(problem->message));
    if (m_simulatedPart)
        m_notice->setText(tr("%1 The last step that was simulated is shown.")
                              .arg(why.endsWith(QLatin1Char('.')) ? why : why + QLatin1Char('.')));
    else if (m_canvas->model().isEmpty())
        m_canvas->setMessage(why);
    setColour(*m_notice, colour(ColourRole::Error));
}

void TimelineView::shareHeight()
{
    if (m_heightIsUsers || m_splitter->height() <= 0)
        return;
    const int legend = m_legend->heightForWidth(std::max(100, width() - 16)) + 10;
    const int wanted = m_canvas->sizeHint().height() + legend;
    const int most = std::max(m_splitter->height() / 2, m_splitter->height() - kLeastDetails);
    const int rows = std::min(wanted, most);
    m_splitter->setSizes({rows, std::max(1, m_splitter->height() - rows)});
}

void TimelineView::resizeEvent(QResizeEvent* event)
{
    View::resizeEvent(event);
    shareHeight();
}

void TimelineView::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::PaletteChange) {
        setColour(*m_notice, colour(ColourRole::Error));
        setColour(*m_searchProblem, colour(ColourRole::Error));
    }
    View::changeEvent(event);
}

// Selection

void TimelineView::onSliceClicked()
{
    const auto slice = m_canvas->selected();
    m_details->setFacts(slice ? std::optional(factsOf(m_canvas->model(), *slice)) : std::nullopt);
    showCount();
    m_selection.setCollective(slice ? collectiveOf(*slice) : std::nullopt);
    m_selection.setOperation(slice ? QString::fromStdString(m_canvas->model().nameOf(*slice)) : QString());
}

/// Nothing for slices that are not calls of a collective, and for measured ones.
std::optional<CollectiveId> TimelineView::collectiveOf(SliceId slice) const
{
    const auto& part = m_canvas->model().groups()[slice.group].part;
    const std::int32_t collective = part->collective(slice.slice);
    if (part != m_simulatedPart || collective == kNoCollective)
        return std::nullopt;
    return CollectiveId{static_cast<std::size_t>(collective), m_generation};
}

/// The first call of the collective that is selected elsewhere.
void TimelineView::onCollectiveChanged()
{
    const auto& id = m_selection.collective();
    if (!id || id->generation != m_generation || !m_simulatedPart)
        return;
    if (const auto selected = m_canvas->selected(); selected && collectiveOf(*selected) == id)
        return;
    std::optional<std::uint32_t> first;
    for (std::uint32_t slice = 0; slice < m_simulatedPart->sliceCount(); ++slice) {
        if (isCommunication(m_simulatedPart->category(slice))
            && m_simulatedPart->collective(slice) == static_cast<std::int32_t>(id->index)
            && (!first || m_simulatedPart->start(slice) < m_simulatedPart->start(*first)))
            first = slice;
    }
    if (first)
        select(SliceId{0, *first}); // the simulated step is the first group
}

void TimelineView::select(std::optional<SliceId> slice)
{
    m_canvas->setSelected(slice);
    if (slice)
        m_canvas->reveal(*slice);
    m_details->setFacts(slice ? std::optional(factsOf(m_canvas->model(), *slice)) : std::nullopt);
    showCount();
}

void TimelineView::onOperationChanged(const QString& name)
{
    const auto selected = m_canvas->selected();
    const std::string wanted = name.toStdString();
    if (selected ? m_canvas->model().nameOf(*selected) == wanted : wanted.empty())
        return;
    select(m_canvas->model().firstNamed(wanted));
}

// Search

void TimelineView::startSearch()
{
    m_searcher.cancel();
    const SearchQuery query{m_search->text(), m_regularExpression->isChecked()};
    const auto pattern = searchPattern(query);
    m_searchProblem->setVisible(!pattern);
    if (!pattern) {
        m_searchProblem->setText(QString::fromStdString(pattern.error().front().message));
        m_searchProblem->setToolTip(QString::fromStdString(pattern.error().front().fix));
        setColour(*m_searchProblem, colour(ColourRole::Error));
    }
    setMatches(nullptr);
    if (!pattern || query.text.isEmpty())
        return;
    const auto model = m_canvas->sharedModel();
    run(m_searcher, model->sliceCount(), [this, model, pattern = *pattern](const std::stop_token& stop) -> std::function<void()> {
        auto found = findSlices(*model, pattern, stop);
        if (!found)
            return {};
        return [this, matches = std::make_shared<const SearchMatches>(std::move(*found))] { setMatches(matches); };
    });
    showCount();
}

void TimelineView::setMatches(std::shared_ptr<const SearchMatches> matches)
{
    m_matches = std::move(matches);
    m_canvas->setMatches(m_matches);
    showCount();
}

void TimelineView::showCount()
{
    const bool hasMatches = m_matches && !m_matches->slices.empty();
    m_previous->setEnabled(hasMatches);
    m_next->setEnabled(hasMatches);
    if (m_searcher.isBusy())
        return m_count->setText(tr("searching\u2026"));
    if (!m_matches)
        return m_count->clear();
    if (!hasMatches)
        return m_count->setText(tr("nothing found"));
    const QString count = grouped(m_matches->slices.size());
    const auto selected = m_canvas->selected();
    if (selected && m_matches->hasName(selected->group, m_canvas->model().partOf(*selected).name(selected->slice))) {
        // The match after the one before it is the slice itself.
        const std::size_t after = m_matches->next(m_canvas->model(), selected, 1);
        const std::size_t place = after == 0 ? m_matches->slices.size() : after;
        return m_count->setText(tr("%1 of %2").arg(grouped(place), count));
    }
    m_count->setText(tr("%1 found").arg(count));
}

void TimelineView::goToMatch(int step)
{
    if (!m_matches || m_matches->slices.empty())
        return;
    const SliceId match = m_matches->slices[m_matches->next(m_canvas->model(), m_canvas->selected(), step)];
    m_canvas->setSelected(match);
    m_canvas->reveal(match);
    onSliceClicked();
}

bool TimelineView::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != m_search || event->type() != QEvent::KeyPress)
        return View::eventFilter(watched, event);
    const auto* key = static_cast<QKeyEvent*>(event);
    switch (key->key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_F3:
        goToMatch(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
        return true;
    case Qt::Key_Escape:
        m_canvas->setFocus(Qt::OtherFocusReason);
        return true;
    default:
        return View::eventFilter(watched, event);
    }
}

// Totals

void TimelineView::startTotals()
{
    const auto model = m_canvas->sharedModel();
    const TimeAxis axis = m_canvas->axis();
    const bool isWhole = !m_canvas->area();
    const TimelineArea area = m_canvas->area().value_or(TimelineArea{axis.whole(), {}});
    QString heading = tr("Whole step");
    if (!isWhole) {
        const std::string length
            = axis.isStretched() ? shareText(area.window.length()) + " of each step" : formatSeconds(area.window.length());
        heading = area.rows.empty() ? tr("Selected: %1 of all rows").arg(QString::fromStdString(length))
            : area.rows.size() == 1 ? tr("Selected: %1 of one row").arg(QString::fromStdString(length))
                                    : tr("Selected: %1 of %2 rows").arg(QString::fromStdString(length)).arg(area.rows.size());
    }
    const std::size_t slices = slicesIn(*model, axis, area);
    if (slices > kAtOnce)
        m_details->setTotals(tr("%1: adding up %2 slices\u2026").arg(heading, grouped(slices)), std::nullopt);
    run(m_adder, slices, [this, model, axis, area, heading](const std::stop_token& stop) -> std::function<void()> {
        auto totals = totalsOf(*model, axis, area, stop);
        if (!totals)
            return {};
        return [this, heading, totals = std::move(totals)] { m_details->setTotals(heading, totals); };
    });
}

// For the window

DisplayList TimelineView::picture() const
{
    DisplayList all;
    all.title = "timeline";
    all.width = std::max(480, m_canvas->width());
    const TimelineModel& model = m_canvas->model();
    for (std::uint32_t group = 0; group < model.groups().size(); ++group) {
        if (m_canvas->isCollapsed(group))
            continue;
        const ModelGroup& shown = model.groups()[group];
        const TimeWindow seconds = m_canvas->axis().toSeconds(group, m_canvas->window());
        TimelineDrawing drawing;
        drawing.title = shown.title;
        drawing.fromSeconds = seconds.begin;
        drawing.toSeconds = seconds.end;
        drawing.width = all.width;
        for (const ModelRow& row : shown.rows)
            drawing.rows.push_back(row.row);
        const DisplayList part = drawTimeline(shown.part->timeline(), drawing);
        addMoved(all, part, {0.0, all.height});
        all.height += part.height;
    }
    all.height = std::max(all.height, 40.0);
    return all;
}

QString TimelineView::command() const
{
    const QString arguments = m_analysis ? studyArguments(m_analysis->source) : QStringLiteral("study.yaml");
    const bool isMeasured = m_virtualPart || m_wallPart;
    return (isMeasured ? QStringLiteral("meshwright train %1 --trace trace.json")
                       : QStringLiteral("meshwright simulate %1 --trace trace.json"))
        .arg(arguments);
}

QString TimelineView::help()
{
    static const std::vector<std::pair<QString, QString>> kKeys = {
        {tr("W, S; Ctrl+wheel"), tr("zoom in and out at the pointer")},
        {tr("A, D; drag; Shift+wheel"), tr("move along the step")},
        {tr("0; Home, End"), tr("whole step; its beginning, its end")},
        {tr("F, F again"), tr("centre the selected slice; let it fill the width (also a double click)")},
        {tr("Backspace, Alt+Left"), tr("the window before; with Shift or Alt+Right forward again")},
        {tr("click"), tr("select a slice; the same operation is framed on all devices")},
        {tr(". and , or Right and Left"), tr("next and previous slice on the row")},
        {tr("Up, Down"), tr("the slice above or below")},
        {tr("drag on the ruler"), tr("select a span of time on all rows and add it up")},
        {tr("Shift+drag in the rows"), tr("the same on the rows that are dragged over")},
        {tr("M"), tr("select the span of the selected slice")},
        {tr("Esc"), tr("clear the span, then the slice")},
        {tr("Ctrl+F; F3, N"), tr("search; next match, with Shift the one before")},
        {tr("V"), tr("virtual or wall clock of the measured step")},
        {tr("T"), tr("every step over the whole width, or one ruler for all")},
        {tr("G, then Left and Right"), tr("go to a heading, close and open its rows (also a click)")},
        {tr("wheel, Page Up, Page Down"), tr("scroll the rows")},
    };
    QString html = QStringLiteral("<table cellspacing='0' cellpadding='2'>");
    for (const auto& [keys, what] : kKeys)
        html += QStringLiteral(
            "<tr><td style='padding-right:14px; white-space:pre'><b>%1</b></td><td style='white-space:pre'>%2</td></tr>")
                    .arg(keys.toHtmlEscaped(), what.toHtmlEscaped());
    return html + QStringLiteral("</table>");
}

void TimelineView::showHelp()
{
    auto* popup = new QFrame(this, Qt::Popup);
    popup->setAttribute(Qt::WA_DeleteOnClose);
    popup->setObjectName(QStringLiteral("timelineHelp"));
    popup->setFrameShape(QFrame::StyledPanel);
    popup->setAccessibleName(tr("Keys and gestures of the timeline"));
    auto* text = new QLabel(help(), popup);
    auto* layout = new QVBoxLayout(popup);
    layout->setContentsMargins(12, 10, 12, 10);
    layout->addWidget(text);
    popup->adjustSize();
    const QPoint corner = m_helpButton->mapToGlobal(QPoint(m_helpButton->width(), m_helpButton->height() + 4));
    popup->move(corner - QPoint(popup->width(), 0));
    popup->show();
}

} // namespace meshwright::ui

#include "moc_timeline_view.cpp"
