// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/search_view.h"

#include "core/support/text.h"
#include "sim/search/search_output.h"
#include "ui/search/plan_copies.h"
#include "ui/search/plans_model.h"
#include "ui/search/plans_picture.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/picture_view.h"
#include "ui/widgets/table.h"

#include <QApplication>
#include <QBoxLayout>
#include <QClipboard>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTableView>

namespace meshwright::ui {

namespace {

constexpr int kLeastTable = 150; ///< pixels
constexpr int kLeastPicture = 190;
constexpr int kWidestNote = 460;
constexpr qsizetype kSentences = 3;

QString counted(std::int64_t count)
{
    return QString::fromStdString(formatCount(static_cast<double>(count)));
}

} // namespace

SearchView::SearchView(Selection&, std::shared_ptr<const sim::Catalogue> catalogue, QWidget* parent)
    : View(parent)
    , m_catalogue(std::move(catalogue))
    , m_job(m_catalogue)
    , m_search(new QPushButton(tr("&Search"), this))
    , m_cancel(new QPushButton(tr("Cancel"), this))
    , m_escape(new QShortcut(QKeySequence(Qt::Key_Escape), this))
    , m_status(new QLabel(this))
    , m_notice(new Notice(this))
    , m_plans(new PlansModel(this))
    , m_sorted(new QSortFilterProxyModel(this))
    , m_empty(new QLabel(this))
    , m_halves(new QSplitter(Qt::Vertical, this))
    , m_table(new QTableView(this))
    , m_picture(new PictureView)
    , m_details(new QLabel(this))
    , m_copy(new QPushButton(tr("Cop&y as"), this))
{
    m_search->setToolTip(tr("Finds the best meshes, specs and pipelines for the study's model on its hardware"));
    m_status->setTextFormat(Qt::PlainText);
    m_status->setAccessibleName(tr("How far the search is"));
    m_status->setWordWrap(true);
    m_details->setTextFormat(Qt::PlainText);
    m_details->setWordWrap(true);
    m_details->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_details->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored); // long reasons do not push the plans out of sight
    m_details->setAccessibleName(tr("Why the plan wins or loses"));
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_picture->setAccessibleName(tr("Plans by step time and memory"));
    m_copy->setToolTip(
        tr("Copies the chosen plan as a study, as JAX's mesh and specs, or as the command that starts it in a framework"));
    auto* copies = new QMenu(m_copy);
    m_copy->setMenu(copies);
    connect(copies, &QMenu::aboutToShow, this, [this, copies] {
        fillCopies(*copies, copiesOf(*m_found, m_found->plans[static_cast<std::size_t>(m_chosen)], *m_catalogue),
            [this](const PlanCopy& copy) { m_status->setText(tr("Copied: %1.").arg(copy.title)); });
    });

    m_sorted->setSourceModel(m_plans);
    m_sorted->setSortRole(PlansModel::kSortRole);
    m_table->setModel(m_sorted);
    m_table->setAccessibleName(tr("Plans"));
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(PlansModel::Step, Qt::AscendingOrder);
    setUpRows(*m_table);
    m_table->setMinimumHeight(kLeastTable);
    m_table->horizontalHeader()->setStretchLastSection(true);

    auto* controls = new QHBoxLayout;
    controls->addWidget(m_search);
    controls->addWidget(m_cancel);
    controls->addWidget(m_status, 1);
    auto* lower = new QWidget(this);
    auto* lowerLayout = new QHBoxLayout(lower);
    lowerLayout->setContentsMargins(0, 6, 0, 0);
    lowerLayout->addWidget(m_picture, 3);
    auto* beside = new QVBoxLayout;
    beside->addWidget(m_details, 1);
    beside->addWidget(m_copy, 0, Qt::AlignLeft);
    lowerLayout->addLayout(beside, 2);
    lower->setMinimumHeight(kLeastPicture);
    m_picture->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
    m_picture->setMinimumSize(240, 160);
    m_picture->installEventFilter(this);
    m_halves->setChildrenCollapsible(false);
    m_halves->addWidget(m_table);
    m_halves->addWidget(lower);
    m_halves->setSizes({30'000, 30'000});
    m_halves->hide();
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setForegroundRole(QPalette::PlaceholderText);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addLayout(controls);
    layout->addWidget(m_notice);
    layout->addWidget(m_halves, 1);
    layout->addWidget(m_empty, 1);

    connect(m_search, &QPushButton::clicked, this, &SearchView::search);
    connect(m_cancel, &QPushButton::clicked, this, [this] {
        m_job.cancel();
        m_status->setText(tr("Cancelled."));
        showControls();
    });
    m_cancel->setToolTip(tr("Stops the search and keeps the plans found so far (Esc)"));
    connect(m_escape, &QShortcut::activated, m_cancel, &QPushButton::click);
    connect(&m_job, &SearchJob::progressed, this, &SearchView::showProgress);
    connect(&m_job, &SearchJob::found, this, &SearchView::showFound);
    const auto planAt = [this](const QModelIndex& index) { return m_plans->planOf(m_sorted->mapToSource(index).row()); };
    connect(m_table, &QTableView::clicked, this, [this, planAt](const QModelIndex& index) { choose(planAt(index)); });
    connect(m_table, &QTableView::activated, this, [this, planAt](const QModelIndex& index) { choose(planAt(index)); });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
        [this, planAt](const QModelIndex& index) { showPlan(planAt(index)); });
    connect(m_picture, &PictureView::clicked, this, [this](const QString& id) {
        if (id.startsWith(QLatin1String("plan:")))
            choose(id.mid(5).toInt());
    });
    showControls();
}

void SearchView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_analysis = std::move(analysis);
    showControls();
}

void SearchView::forgetStudy()
{
    m_job.cancel();
    m_analysis.reset();
    m_found.reset();
    m_plans->setPlans(nullptr);
    m_halves->hide();
    m_empty->show();
    showPlan(-1);
    m_status->clear();
    showControls();
}

void SearchView::showControls()
{
    const bool isBusy = m_job.isBusy();
    // The focus goes on to what can be done next, rather than anywhere.
    if (isBusy && m_search->hasFocus()) {
        m_cancel->setEnabled(true);
        m_cancel->setFocus();
    } else if (!isBusy && m_cancel->hasFocus()) {
        m_table->setFocus();
    }
    const bool hasStudy = m_analysis && m_analysis->study;
    const bool hasHardware = hasStudy && m_analysis->study->hardware;
    m_empty->setText(!hasStudy ? tr("Plan a model from the start page, or open a study, to search its plans.\n"
                                    "Clusters compares models and clusters without a study.")
            : hasHardware      ? tr("Search to see the best meshes, specs and pipelines for this model on its hardware")
                               : tr("The study has no hardware: choose a chip to search plans for it"));
    m_search->setEnabled(hasHardware && !isBusy);
    m_cancel->setEnabled(isBusy);
    m_escape->setEnabled(isBusy);
    if (!m_found && !isBusy && m_status->text().isEmpty())
        m_status->setText(
            tr("Finds the best plans for the study's model on its hardware. The study's own mesh and specs are not used."));
    m_notice->show(m_job.isBusy() || isOfStudy()
            ? QString()
            : tr("These plans are for another state of the study. Search again to update them."));
}

/// Whether the plans are those that a search of the study as it stands would find; its own layout does not count.
bool SearchView::isOfStudy() const
{
    if (!m_found || m_found->plans.empty() || !m_analysis || !m_analysis->study)
        return true;
    if (!m_found->study->trains() || !m_analysis->study->trains())
        return m_analysis->source == m_searched;
    const sim::FoundPlan& plan = m_found->plans.front();
    const auto before = SearchJob::studyOf(*m_found, plan, *m_catalogue);
    FoundPlans now = {.study = m_analysis->study, .result = {}, .plans = {}, .problems = {}};
    const auto after = SearchJob::studyOf(now, plan, *m_catalogue);
    return before && after && *before == *after;
}

void SearchView::search()
{
    if (!m_analysis || !m_analysis->study || m_job.isBusy())
        return;
    m_status->setText(tr("Searching…"));
    m_job.start(m_analysis->study);
    m_searched = m_analysis->source;
    showControls();
}

void SearchView::showProgress(const sim::SearchProgress& progress)
{
    const bool isSimulated = progress.simulated > 0; // else its times are the estimate's
    QString text = isSimulated ? tr("%1 layouts simulated").arg(progress.simulated)
                               : tr("%1 of %2 layouts").arg(counted(progress.looked), counted(progress.candidates));
    if (isSimulated && progress.bestSeconds > 0.0)
        text += tr(", best %1").arg(QString::fromStdString(formatSeconds(progress.bestSeconds)));
    if (isSimulated && progress.lowerBoundSeconds > 0.0)
        text += tr(", none is under %1").arg(QString::fromStdString(formatSeconds(progress.lowerBoundSeconds)));
    m_status->setText(text);
}

void SearchView::showFound(const std::shared_ptr<const FoundPlans>& found, bool isLast)
{
    const auto chosen
        = m_found && m_chosen >= 0 ? std::optional(m_found->plans[static_cast<std::size_t>(m_chosen)]) : std::nullopt;
    m_found = found;
    m_plans->setPlans(found);
    m_halves->setVisible(m_plans->rowCount() > 0);
    m_empty->setVisible(m_plans->rowCount() == 0);
    m_chosen = -1; // the table forgot it; rows that arrive do not take it away from its reader
    for (std::size_t i = 0; chosen && i < found->plans.size(); ++i) {
        if (isSamePlan(found->plans[i], *chosen))
            m_table->selectRow(m_sorted->mapFromSource(m_plans->index(static_cast<int>(i), 0)).row());
    }
    m_table->resizeColumnsToContents();
    m_table->setColumnWidth(PlansModel::Mesh, std::min(m_table->columnWidth(PlansModel::Mesh), kWidestNote));
    m_table->setColumnHidden(PlansModel::Pipeline,
        std::all_of(found->plans.begin(), found->plans.end(), [](const auto& plan) { return plan.pipeline.stages <= 1; }));
    m_table->setColumnHidden(PlansModel::Recompute,
        std::all_of(found->plans.begin(), found->plans.end(), [](const auto& plan) { return plan.recompute.empty(); }));
    const sim::SearchResult& result = found->result;
    if (!found->problems.empty())
        m_status->setText(QString::fromStdString(found->problems.front().message));
    else if (found->plans.empty())
        m_status->setText(tr("No plan fits. %1").arg(QString::fromStdString(join(result.changes, "; "))));
    else
        m_status->setText((isLast ? tr("%1. A click or Enter makes a plan the study.") : tr("%1; the best are being simulated…"))
                              .arg(QString::fromStdString(boundSentence(result))));
    showPlan(m_chosen);
    showControls();
}

void SearchView::showPlan(int plan)
{
    m_chosen = plan;
    m_copy->setEnabled(plan >= 0);
    if (!m_found || m_found->plans.empty())
        m_details->setText({});
    else if (plan < 0)
        m_details->setText(tr("Click a plan to make it the study; Undo goes back."));
    else {
        QStringList sentences;
        for (const std::string& why : m_found->plans[static_cast<std::size_t>(plan)].why)
            sentences << shownSentence(why);
        m_details->setText(sentences.mid(0, kSentences).join(QLatin1Char('\n')));
        m_details->setToolTip(sentences.join(QLatin1Char('\n')));
    }
    drawPlans();
}

void SearchView::choose(int plan)
{
    if (plan < 0)
        return;
    const sim::FoundPlan& chosen = m_found->plans[static_cast<std::size_t>(plan)];
    const auto text = SearchJob::studyOf(*m_found, chosen, *m_catalogue);
    if (!text)
        return m_notice->show(QString::fromStdString(describe(text.error())));
    const QModelIndex row = m_sorted->mapFromSource(m_plans->index(plan, 0));
    if (row.row() != m_table->currentIndex().row())
        m_table->selectRow(row.row());
    Q_EMIT planChosen(*text, QString::fromStdString(meshWords(chosen.mesh)));
}

void SearchView::drawPlans()
{
    if (m_found && isVisible())
        m_picture->setPicture(
            plansPicture(*m_found, m_chosen, std::max(240, m_picture->width()), std::max(160, m_picture->height())));
}

/// The picture fills the room that it gets.
bool SearchView::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_picture && event->type() == QEvent::Resize)
        drawPlans();
    return View::eventFilter(watched, event);
}

void SearchView::changeEvent(QEvent* event)
{
    View::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        drawPlans();
}

DisplayList SearchView::picture() const
{
    if (!m_found)
        return {320.0, 60.0, "No plans", ColourRole::Background, {{TextShape{{16.0, 30.0}, "nothing was searched", 12.0}}}};
    return plansPicture(*m_found, m_chosen, 720.0, 420.0);
}

QString SearchView::command() const
{
    return QStringLiteral("meshwright search ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{});
}

} // namespace meshwright::ui

#include "moc_search_view.cpp"
