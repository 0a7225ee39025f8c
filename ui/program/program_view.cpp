// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/program/program_view.h"

#include "core/study/arrays.h"
#include "core/support/counted.h"
#include "core/text/program_text.h"
#include "sim/session/analysis_state.h"
#include "ui/models/step_collectives.h"
#include "ui/program/nodes_model.h"
#include "ui/program/program_canvas.h"
#include "ui/program/program_why.h"
#include "ui/study/spec_edit.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QSlider>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTableView>
#include <QTextBrowser>
#include <QToolButton>
#include <QUrl>

namespace meshwright::ui {

namespace {

QToolButton* toolButton(const QString& text, const QString& meaning, QWidget* parent)
{
    auto* button = new QToolButton(parent);
    button->setText(text);
    button->setToolTip(meaning);
    button->setAccessibleName(meaning);
    button->setAutoRaise(true);
    return button;
}

/// The array of a value that has a name; null for others.
const sim::ProgramArray* arrayOf(const sim::Analysis& analysis, ValueId value)
{
    const auto found = std::find_if(
        analysis.arrays.begin(), analysis.arrays.end(), [&](const sim::ProgramArray& array) { return array.value == value; });
    return found == analysis.arrays.end() ? nullptr : &*found;
}

/// As specs may name it; nothing where the study cannot.
std::optional<StudyArray> constrainable(const sim::Analysis& analysis, const sim::ProgramArray& array)
{
    if (array.name.find('=') != std::string::npos)
        return {};
    for (const StudyArray& known : analysis.built->arrays.all) {
        if (known.name == array.name)
            return known;
    }
    if (analysis.study->trains())
        return {};
    StudyArray own;
    own.name = array.name;
    own.shape = array.type.shape;
    return own;
}

/// The value that a node is about; invalid where it is about several, or what moves.
ValueId firstValue(const sim::ProgramNode& node)
{
    const bool isValue = !node.values.empty() && node.kind != GraphNodeKind::Collective && node.layer.empty();
    return isValue ? node.values.front() : ValueId();
}

const Function& mainFunction(const sim::Analysis& analysis)
{
    return *analysis.built->partitioned.propagated.find(analysis.built->mainFunction);
}

/// Whether values and ops of one function have the same numbers in the other: specs and meshes may differ.
bool isSameProgram(const Function& a, const Function& b)
{
    return a.name == b.name && a.values.size() == b.values.size() && a.ops.size() == b.ops.size();
}

/// What stands in another graph of the same program where this node stood: what makes its value, or is opened from it.
std::optional<std::size_t> sameNode(const sim::ProgramNode& node, const sim::ProgramGraph& graph)
{
    if (!node.values.empty() && node.kind != GraphNodeKind::Collective) {
        if (const std::size_t now = graph.nodeOf[node.values.front().at()]; now != sim::ProgramGraph::kNoNode)
            return now;
    }
    const auto isSame = [&](const sim::ProgramNode& one) { return node.part.valid() && one.part == node.part; };
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), isSame);
    return found == graph.nodes.end() ? std::nullopt : std::optional<std::size_t>(found - graph.nodes.begin());
}

} // namespace

ProgramView::ProgramView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_notice(new Notice(this))
{
    auto* lower = new QSplitter(Qt::Horizontal, this);
    lower->setChildrenCollapsible(false);
    lower->addWidget(makeDetails());
    lower->addWidget(makeTable());
    auto* upper = new QWidget(this);
    auto* upperLayout = new QVBoxLayout(upper);
    upperLayout->setContentsMargins(0, 0, 0, 0);
    upperLayout->setSpacing(6);
    upperLayout->addWidget(makeTools());
    m_canvas = new ProgramCanvas(upper);
    upperLayout->addWidget(m_canvas, 1);
    upperLayout->addWidget(makeSteps());
    auto* halves = new QSplitter(Qt::Vertical, this);
    halves->setChildrenCollapsible(false);
    halves->addWidget(upper);
    halves->addWidget(lower);
    halves->setStretchFactor(0, 3);
    halves->setStretchFactor(1, 1);
    halves->setSizes({30'000, 15'000});
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_notice);
    layout->addWidget(halves, 1);

    connect(m_canvas, &ProgramCanvas::nodeChosen, this, &ProgramView::choose);
    connect(m_canvas, &ProgramCanvas::nothingChosen, this, &ProgramView::chooseNothing);
    connect(m_canvas, &ProgramCanvas::nodeOpened, this, &ProgramView::toggle);
    connect(m_open, &QToolButton::clicked, this, [this] {
        if (m_node)
            toggle(*m_node);
    });
    connect(&m_selection, &Selection::arrayChanged, this, &ProgramView::followSelection);
    connect(&m_selection, &Selection::collectiveChanged, this, &ProgramView::followSelection);
    showSummary();
    showWhy();
    showStep();
}

QWidget* ProgramView::makeTools()
{
    auto* tools = new QWidget(this);
    m_summary = new ElidedLabel(tools);
    m_open = toolButton(tr("Open"), tr("Show the ops of the selected loop or layer, or close it again (Return)"), tools);
    auto* smaller = toolButton(QStringLiteral("−"), tr("Zoom out (S)"), tools);
    auto* larger = toolButton(QStringLiteral("+"), tr("Zoom in (W)"), tools);
    auto* fit = toolButton(tr("Fit"), tr("Show all of the graph (0)"), tools);
    connect(smaller, &QToolButton::clicked, this, [this] { m_canvas->zoom(0.8); });
    connect(larger, &QToolButton::clicked, this, [this] { m_canvas->zoom(1.25); });
    connect(fit, &QToolButton::clicked, this, [this] { m_canvas->fit(); });
    auto* row = new QHBoxLayout(tools);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(m_summary, 1);
    for (QToolButton* button : {m_open, smaller, larger, fit})
        row->addWidget(button);
    return tools;
}

QWidget* ProgramView::makeSteps()
{
    auto* steps = new QWidget(this);
    auto* title = new QLabel(tr("Propagation"), steps);
    m_previous = toolButton(QStringLiteral("◀"), tr("One round of the propagation back"), steps);
    m_steps = new QSlider(Qt::Horizontal, steps);
    m_steps->setAccessibleName(tr("Steps of the propagation"));
    m_steps->setMinimumWidth(90);
    m_next = toolButton(QStringLiteral("▶"), tr("One round of the propagation on"), steps);
    m_step = new ElidedLabel(steps);
    connect(m_previous, &QToolButton::clicked, this, [this] { stepRound(-1); });
    connect(m_next, &QToolButton::clicked, this, [this] { stepRound(1); });
    connect(m_steps, &QSlider::valueChanged, this, [this] {
        showStep();
        redraw();
    });
    auto* row = new QHBoxLayout(steps);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(title);
    row->addWidget(m_previous);
    row->addWidget(m_steps, 1);
    row->addWidget(m_next);
    row->addWidget(m_step, 2);
    return steps;
}

QWidget* ProgramView::makeDetails()
{
    auto* details = new QWidget(this);
    m_why = new QTextBrowser(details);
    m_why->setOpenLinks(false);
    m_why->setFrameShape(QFrame::NoFrame);
    m_why->setAccessibleName(tr("Why the selected value is sharded this way"));
    m_why->setMinimumHeight(72);
    m_specTitle = new QLabel(tr("Spec"), details);
    m_spec = new SpecEdit(details);
    m_spec->setAccessibleName(tr("Spec of the selected value"));
    m_specTitle->setBuddy(m_spec);
    connect(m_why, &QTextBrowser::anchorClicked, this, &ProgramView::followLink);
    connect(m_spec, &QLineEdit::returnPressed, this, &ProgramView::applyConstraint);
    auto* row = new QHBoxLayout;
    row->addWidget(m_specTitle);
    row->addWidget(m_spec, 1);
    auto* layout = new QVBoxLayout(details);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    layout->addWidget(m_why, 1);
    layout->addLayout(row);
    return details;
}

QWidget* ProgramView::makeTable()
{
    auto* side = new QWidget(this);
    auto* filter = new QLineEdit(side);
    filter->setPlaceholderText(tr("Filter nodes"));
    filter->setAccessibleName(tr("Filter nodes"));
    filter->setClearButtonEnabled(true);
    m_nodes = new NodesModel(this);
    m_filtered = new QSortFilterProxyModel(this);
    m_filtered->setSourceModel(m_nodes);
    m_filtered->setFilterKeyColumn(-1);
    m_filtered->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_table = new QTableView(side);
    m_table->setModel(m_filtered);
    m_table->setAccessibleName(tr("Nodes of the graph"));
    setUpRows(*m_table);
    m_table->horizontalHeader()->setStretchLastSection(true);
    connect(filter, &QLineEdit::textChanged, m_filtered, &QSortFilterProxyModel::setFilterFixedString);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
        const int row = selectedRow(*m_table, *m_filtered);
        if (row < 0 || m_isChanging)
            return;
        choose(static_cast<std::size_t>(row));
        m_canvas->bringIntoView(static_cast<std::size_t>(row));
    });
    auto* layout = new QVBoxLayout(side);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    layout->addWidget(filter);
    layout->addWidget(m_table, 1);
    return side;
}

void ProgramView::forgetStudy()
{
    m_worker.cancel();
    m_analysis.reset();
    m_shown.reset();
    m_opened.clear();
    m_rounds.clear();
    m_canvas->setGraph({}, {});
    m_nodes->setGraph({}, {});
    const QSignalBlocker blocker(m_steps);
    m_steps->setRange(0, 0);
    m_notice->show({});
    select({}, ValueId());
    showStep();
    m_summary->setWhole(tr("The study is being built…"));
}

void ProgramView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    if (!analysis->built) {
        if (const Problem* why = sim::whyNotBuilt(*analysis)) {
            const QString message = QString::fromStdString(why->message);
            m_notice->show(m_shown ? tr("Not up to date: %1").arg(message) : message);
            if (!m_shown)
                m_summary->setWhole(tr("The study has problems; there is no program to show."));
        }
        m_canvas->setEnabled(false);
        return;
    }
    if (!m_analysis || !isSameProgram(mainFunction(*m_analysis), mainFunction(*analysis)))
        m_opened = sim::openedAtFirst(*analysis);
    m_analysis = std::move(analysis);
    m_generation = m_selection.generation();
    build();
}

void ProgramView::build()
{
    m_worker.start([this, analysis = m_analysis, opened = m_opened](const std::stop_token& stop) -> std::function<void()> {
        auto shown = std::make_shared<Shown>();
        shown->graph = sim::programGraph(analysis, opened, stepCollectives(*analysis));
        if (stop.stop_requested())
            return nullptr;
        shown->drawing = sim::graphDrawing(shown->graph);
        shown->layout = graphLayout(shown->drawing);
        return [this, shown] { take(shown); };
    });
}

/// Where the program has the same values as before, what was selected stays, and the step of the propagation is the last again.
void ProgramView::take(std::shared_ptr<const Shown> shown)
{
    const bool isSame = m_shown && isSameProgram(*m_shown->graph.function, *shown->graph.function);
    std::optional<ProgramCanvas::Kept> kept;
    if (const auto now = isSame && m_node ? sameNode(m_shown->graph.nodes[*m_node], shown->graph) : std::nullopt)
        kept = {*m_node, *now};
    m_shown = std::move(shown);
    const sim::ProgramGraph& graph = m_shown->graph;
    m_isChanging = true;
    m_notice->show({});
    m_canvas->setEnabled(true);
    if (isSame)
        m_canvas->exchangeGraph(m_shown->drawing, m_shown->layout, kept);
    else
        m_canvas->setGraph(m_shown->drawing, m_shown->layout);
    m_nodes->setGraph(graph, m_shown->drawing);
    m_table->resizeColumnToContents(NodesModel::Name);
    m_table->resizeColumnToContents(NodesModel::What);
    m_rounds = sim::propagationRounds(*graph.report);
    const QSignalBlocker blocker(m_steps);
    m_steps->setRange(0, static_cast<int>(graph.report->reasons.size()));
    m_steps->setValue(m_steps->maximum());
    m_isChanging = false;
    const ValueId before = isSame ? m_value : ValueId();
    select({}, ValueId());
    if (before.valid()) {
        const std::size_t node = graph.nodeOf[before.at()];
        select(node == sim::ProgramGraph::kNoNode ? std::nullopt : std::optional(node), before);
    } else if (kept) {
        select(kept->now, firstValue(graph.nodes[kept->now]));
    } else {
        followSelection();
    }
    showSummary();
    showStep();
    redraw();
}

void ProgramView::showSummary()
{
    if (!m_shown)
        return m_summary->setWhole(tr("Open a study or a program to see its ops and the specs of its values."));
    const sim::ProgramGraph& graph = m_shown->graph;
    const auto hidden = std::count_if(graph.nodes.begin(), graph.nodes.end(),
        [&](const sim::ProgramNode& node) { return node.kind == GraphNodeKind::Body && m_opened.count(node.part) == 0; });
    const bool isBeforeStages = m_analysis->built && m_analysis->built->study.pipeline.stages > 1;
    QString text
        = (isBeforeStages ? tr("%1 before stages: %2, %3") : tr("%1: %2, %3"))
              .arg(QString::fromStdString(graph.function->name), QString::fromStdString(counted(graph.nodes.size(), "node")),
                  QString::fromStdString(counted(graph.collectives.size(), "collective")));
    if (hidden > 0)
        text += hidden == 1 ? tr(", 1 closed: a double click opens it") : tr(", %1 closed: a double click opens one").arg(hidden);
    m_summary->setWhole(text);
}

/// By the user: all views follow.
void ProgramView::choose(std::size_t node)
{
    const sim::ProgramNode& chosen = m_shown->graph.nodes[node];
    m_isChanging = true;
    if (chosen.kind == GraphNodeKind::Collective) {
        const int index = m_shown->graph.stepCollective[chosen.collective];
        const sim::SimulatedCollective& collective = m_shown->graph.collectives[chosen.collective];
        if (index >= 0 && m_generation == m_selection.generation()) {
            m_selection.setCollective(CollectiveId{static_cast<std::size_t>(index), m_generation});
            m_selection.setOperation(QString::fromStdString(collective.label));
            if (m_analysis->findArray(collective.use.cause.value) != nullptr)
                m_selection.setArray(QString::fromStdString(collective.use.cause.value));
        }
    } else if (chosen.layer.empty()) {
        for (const ValueId value : chosen.values) {
            if (const sim::ProgramArray* array = arrayOf(*m_analysis, value)) {
                m_selection.setArray(QString::fromStdString(array->name));
                break;
            }
        }
    }
    m_isChanging = false;
    select(node, firstValue(chosen));
}

void ProgramView::chooseNothing()
{
    select({}, ValueId());
}

void ProgramView::chooseValue(ValueId value)
{
    const std::size_t node = m_shown->graph.nodeOf[value.at()];
    if (node == sim::ProgramGraph::kNoNode)
        return select({}, value);
    choose(node);
    m_value = value;
    m_canvas->bringIntoView(node);
    showWhy();
    redraw();
}

void ProgramView::select(std::optional<std::size_t> node, ValueId value)
{
    m_node = node;
    m_value = value;
    m_canvas->setCurrent(node);
    showRow();
    showWhy();
    redraw();
}

void ProgramView::toggle(std::size_t node)
{
    const OpId part = m_shown->graph.nodes[node].part;
    if (!part.valid())
        return;
    if (m_opened.erase(part) == 0)
        m_opened.insert(part);
    build();
}

/// What other views selected.
void ProgramView::followSelection()
{
    if (m_isChanging || !m_shown)
        return;
    const sim::ProgramGraph& graph = m_shown->graph;
    const auto& collective = m_selection.collective();
    if (collective && collective->generation == m_generation) {
        for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
            const sim::ProgramNode& one = graph.nodes[node];
            if (one.kind == GraphNodeKind::Collective
                && graph.stepCollective[one.collective] == static_cast<int>(collective->index)) {
                m_canvas->bringIntoView(node);
                return select(node, ValueId());
            }
        }
    }
    const sim::ProgramArray* array = m_analysis->findArray(m_selection.array().toStdString());
    if (array == nullptr || m_shown->graph.analysis != m_analysis)
        return;
    const std::size_t node = graph.nodeOf[array->value.at()];
    if (node == sim::ProgramGraph::kNoNode)
        return select({}, array->value);
    m_canvas->bringIntoView(node);
    select(node, array->value);
}

sim::ProgramFocus ProgramView::focus() const
{
    sim::ProgramFocus focus;
    if (m_node)
        focus.selected.insert(*m_node);
    if (m_value.valid())
        focus.lit = valuesOnTheWay(m_shown->graph, m_value);
    if (const int step = m_steps->value(); step < m_steps->maximum()) {
        focus.steps = static_cast<std::size_t>(step);
        focus.lit.clear();
        if (step > 0) {
            const ShardingReason& reason = m_shown->graph.report->reasons[static_cast<std::size_t>(step) - 1];
            focus.lit.insert(reason.value);
            if (reason.from.valid())
                focus.lit.insert(reason.from);
        }
    }
    return focus;
}

void ProgramView::redraw()
{
    if (m_shown)
        m_canvas->setDrawing(sim::graphDrawing(m_shown->graph, focus()));
}

void ProgramView::showWhy()
{
    const sim::ProgramNode* node = m_node ? &m_shown->graph.nodes[*m_node] : nullptr;
    m_open->setEnabled(node != nullptr && node->part.valid());
    m_open->setText(node != nullptr && m_opened.count(node->part) != 0 ? tr("Close") : tr("Open"));
    if (m_value.valid())
        m_why->setHtml(valueWhyHtml(m_shown->graph, m_value));
    else if (node != nullptr && node->kind == GraphNodeKind::Collective)
        m_why->setHtml(collectiveWhyHtml(m_shown->graph, node->collective));
    else if (node != nullptr)
        m_why->setPlainText(QString::fromStdString(m_shown->drawing.nodes[*m_node].tooltip));
    else
        m_why->setHtml(tr("Select a value to see why it is sharded this way, or a collective to see what causes it."));
    showConstraint();
}

void ProgramView::showRow()
{
    m_isChanging = true;
    const QModelIndex row = m_node ? m_filtered->mapFromSource(m_nodes->index(static_cast<int>(*m_node), 0)) : QModelIndex();
    if (selectedRow(*m_table, *m_filtered) != (row.isValid() ? static_cast<int>(*m_node) : -1)) {
        m_table->clearSelection();
        m_table->setCurrentIndex(row);
    }
    m_table->scrollTo(row); // also where the table had no size yet
    m_isChanging = false;
}

/// The line for a spec, where the study can have one for the selected value.
void ProgramView::showConstraint()
{
    const sim::ProgramArray* array
        = m_value.valid() && m_shown->graph.analysis == m_analysis ? arrayOf(*m_analysis, m_value) : nullptr;
    const auto subject = array != nullptr ? constrainable(*m_analysis, *array) : std::nullopt;
    m_spec->setEnabled(subject.has_value());
    m_spec->setToolTip(subject ? tr("Return sets the spec in the study; an empty line removes it")
                               : tr("Only values that have a name can have a spec in the study"));
    if (!subject)
        return m_spec->clear();
    m_spec->setSubject(*subject, m_analysis->built->study.mesh);
    m_spec->setText(QString::fromStdString(array->spec));
}

void ProgramView::applyConstraint()
{
    const sim::ProgramArray* array = m_value.valid() ? arrayOf(*m_analysis, m_value) : nullptr;
    if (array == nullptr || !m_spec->problems().empty() || m_spec->isCompleting())
        return;
    const QString path = QString::fromStdString(ownSpecPath(*m_analysis->study, array->name));
    if (m_spec->text() != QString::fromStdString(array->spec))
        Q_EMIT specChosen(path, m_spec->text());
}

void ProgramView::showStep()
{
    const int step = m_steps->value();
    const bool canStep = m_shown && m_steps->maximum() > 0;
    m_steps->setEnabled(canStep);
    m_previous->setEnabled(canStep && step > 0);
    m_next->setEnabled(canStep && step < m_steps->maximum());
    if (!canStep)
        return m_step->setWhole(m_shown ? tr("Nothing is annotated.") : QString());
    if (step == 0)
        return m_step->setWhole(tr("Before the first round"));
    const auto round = std::find_if(m_rounds.begin(), m_rounds.end(),
        [&](const sim::PropagationRound& one) { return static_cast<std::size_t>(step) <= one.end; });
    const QString where = tr("Round %1 of %2, %3")
                              .arg(round - m_rounds.begin() + 1)
                              .arg(m_rounds.size())
                              .arg(QString::fromStdString(round->title));
    m_step->setWhole(step == m_steps->maximum()
            ? tr(m_rounds.size() == 1 ? "Complete: %1 round, %2 steps" : "Complete: %1 rounds, %2 steps")
                  .arg(m_rounds.size())
                  .arg(step)
            : tr("%1: %2").arg(where, stepText(m_shown->graph, static_cast<std::size_t>(step) - 1)));
}

void ProgramView::stepRound(int by)
{
    const auto step = static_cast<std::size_t>(m_steps->value());
    std::size_t next = by < 0 ? 0 : static_cast<std::size_t>(m_steps->maximum());
    for (const sim::PropagationRound& round : m_rounds) {
        if (by < 0 && round.end < step)
            next = round.end;
        if (by > 0 && round.end > step) {
            next = round.end;
            break;
        }
    }
    m_steps->setValue(static_cast<int>(next));
}

void ProgramView::followLink(const QUrl& target)
{
    const QString text = target.toString();
    if (text.startsWith(QLatin1String("spec:")))
        Q_EMIT specRequested(text.mid(5));
    else if (text.startsWith(QLatin1String("value:")))
        chooseValue(ValueId(text.mid(6).toInt()));
}

/// Links in HTML have the colour of when they were set.
void ProgramView::changeEvent(QEvent* event)
{
    View::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_shown)
        showWhy();
}

DisplayList ProgramView::picture() const
{
    if (!m_shown)
        return {320.0, 60.0, "No program", ColourRole::Background, {{TextShape{{16.0, 30.0}, "nothing is built", 12.0}}}};
    return drawGraph(m_canvas->drawing(), m_shown->layout, wholeGraph(m_shown->layout));
}

/// Of a program file its own verb, which explains values; studies have none.
QString ProgramView::command() const
{
    const auto* file = m_analysis ? std::get_if<ProgramFile>(&m_analysis->study->model) : nullptr;
    if (file == nullptr)
        return QStringLiteral("meshwright simulate ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{});
    QString command = QStringLiteral("meshwright propagate ") + shellQuoted(QString::fromStdString(file->file));
    if (m_value.valid()) {
        const Function& function = *m_shown->graph.function;
        const Program& program = m_shown->graph.analysis->built->partitioned.propagated;
        const std::string& name = function[m_value].name;
        const std::string wanted = name.empty() ? valueNames(program, function)[m_value.at()] : name;
        command += QStringLiteral(" --explain ") + shellQuoted(QString::fromStdString(wanted));
    }
    return command;
}

} // namespace meshwright::ui

#include "moc_program_view.cpp"
