// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/collectives/collectives_view.h"

#include "core/support/counted.h"
#include "sim/session/analysis_state.h"
#include "ui/collectives/collectives_model.h"
#include "ui/models/step_collectives.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <QTableView>

namespace meshwright::ui {

namespace {

/// A time with a bar behind it, so that the longest stand out.
class TimeDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const QVariant share = index.data(CollectivesModel::kShareRole);
        QStyledItemDelegate::paint(painter, option, index);
        if (!share.isValid())
            return;
        const QRectF cell = option.rect.adjusted(4, 0, -4, -3);
        const QRectF bar(
            cell.right() - cell.width() * share.toDouble(), cell.bottom() - 2.0, cell.width() * share.toDouble(), 3.0);
        painter->fillRect(bar, qtColour(ColourRole::AllReduce, themeOf(option.palette)));
    }
};

/// The table as a picture: what is on screen is rows of text.
DisplayList tablePicture(const QAbstractItemModel& model, const QString& title)
{
    constexpr double kMargin = 16.0;
    constexpr double kRow = 22.0;
    constexpr double kText = 12.0;
    constexpr double kGap = 20.0;
    DisplayList picture;
    picture.title = title.toStdString();
    double x = kMargin;
    for (int column = 0; column < model.columnCount(); ++column) {
        const std::string head = model.headerData(column, Qt::Horizontal).toString().toStdString();
        double width = estimatedWidth(head, kText, true);
        for (int row = 0; row < model.rowCount(); ++row)
            width = std::max(width, estimatedWidth(model.index(row, column).data().toString().toStdString(), kText));
        const bool right = model.headerData(column, Qt::Horizontal, Qt::TextAlignmentRole).toInt() & Qt::AlignRight;
        const double at = right ? x + width : x;
        const TextAnchor anchor = right ? TextAnchor::End : TextAnchor::Start;
        picture.items.push_back({TextShape{{at, kMargin + kRow / 2}, head, kText, anchor, ColourRole::MutedText, true}});
        for (int row = 0; row < model.rowCount(); ++row)
            picture.items.push_back({TextShape{{at, kMargin + kRow * (row + 1.5)},
                model.index(row, column).data().toString().toStdString(), kText, anchor, ColourRole::Text}});
        x += width + kGap;
    }
    picture.width = x - kGap + kMargin;
    picture.height = 2 * kMargin + kRow * (model.rowCount() + 1);
    picture.items.push_back({LineShape{{kMargin, kMargin + kRow}, {picture.width - kMargin, kMargin + kRow}, ColourRole::Grid}});
    return picture;
}

} // namespace

CollectivesView::CollectivesView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_model(new CollectivesModel(this))
    , m_sorted(new QSortFilterProxyModel(this))
    , m_summary(new QLabel(this))
    , m_table(new QTableView(this))
    , m_details(new QLabel(this))
    , m_goToSpec(new QPushButton(tr("Go to spec"), this))
    , m_removeSpec(new QPushButton(tr("Remove spec"), this))
{
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(CollectivesModel::kSortRole);
    m_summary->setTextFormat(Qt::PlainText);
    m_summary->setWordWrap(true);

    m_table->setModel(m_sorted);
    m_table->setAccessibleName(tr("Collectives of a step"));
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(CollectivesModel::Time, Qt::DescendingOrder);
    setUpRows(*m_table);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->setItemDelegateForColumn(CollectivesModel::Time, new TimeDelegate(m_table));
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this,
        [this] { // a table that gets the focus has a current row only
            if (const int row = selectedRow(*m_table, *m_sorted); row >= 0 && !m_isListChanging) {
                const std::size_t first = m_model->members(row).front();
                const sim::SimulatedCollective collective = stepCollectives(*m_analysis)[first];
                m_selection.setCollective(CollectiveId{first, m_generation});
                m_selection.setOperation(QString::fromStdString(collective.label));
                m_selection.setArray(QString::fromStdString(collective.use.cause.value));
            }
            showDetails();
        });
    connect(&m_selection, &Selection::collectiveChanged, this, &CollectivesView::selectRow);

    m_details->setTextFormat(Qt::PlainText);
    m_details->setWordWrap(true);
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_details->setAccessibleName(tr("Details of the selected collective"));
    m_goToSpec->setToolTip(tr("Shows the spec that causes this collective in the study panel"));
    m_removeSpec->setToolTip(tr("Removes the spec from the study; Undo restores it"));
    connect(m_goToSpec, &QPushButton::clicked, this, [this] { Q_EMIT specRequested(currentAnnotation()); });
    connect(m_removeSpec, &QPushButton::clicked, this, [this] { Q_EMIT removeSpecRequested(currentAnnotation()); });

    m_summary->setText(tr("Open a study to see its collectives, and the specs that cause them."));
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_goToSpec);
    buttons->addWidget(m_removeSpec);
    buttons->addStretch();
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_summary);
    layout->addWidget(m_table, 1);
    layout->addWidget(m_details);
    layout->addLayout(buttons);
    showDetails();
}

void CollectivesView::forgetStudy()
{
    m_analysis.reset();
    m_isListChanging = true;
    m_model->setAnalysis(std::make_shared<const sim::Analysis>());
    m_isListChanging = false;
    m_summary->setText(tr("The study is being simulated…"));
    showDetails();
}

void CollectivesView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_analysis = std::move(analysis);
    if (!m_analysis->scheduled) {
        const Problem* why = sim::whyNotBuilt(*m_analysis);
        m_summary->setText(m_model->rowCount() == 0 && why != nullptr
                ? QString::fromStdString(why->message)
                : tr("The study has problems; these are the collectives of its last good state."));
        m_table->setEnabled(false);
        return;
    }
    m_isListChanging = true;
    m_generation = m_selection.generation();
    m_model->setAnalysis(m_analysis);
    m_isListChanging = false;
    m_table->setEnabled(true);
    m_table->resizeColumnsToContents();
    double bytes = 0.0;
    for (int row = 0; row < m_model->rowCount(); ++row) {
        const CollectiveUse& use = m_model->collective(row).use;
        bytes += static_cast<double>(use.payloadBytes * use.count);
    }
    if (m_model->rowCount() == 0)
        m_summary->setText(tr("No collectives: no device needs data from another one."));
    else
        m_summary->setText((m_analysis->built->study.pipeline.stages > 1
                ? tr("%1 in a step of the stage that computes longest, %2 per device of that stage.")
                : tr("%1 in a step, %2 per device."))
                               .arg(QString::fromStdString(counted(m_model->collectiveCount(), "collective")),
                                   QString::fromStdString(formatBytes(bytes))));
    selectRow();
}

/// The selected collective's, if it is one of these.
void CollectivesView::selectRow()
{
    const auto& id = m_selection.collective();
    const int own = id && id->generation == m_generation ? m_model->rowOf(id->index) : -1;
    const QModelIndex row = own >= 0 ? m_sorted->mapFromSource(m_model->index(own, 0)) : QModelIndex();
    if (own != selectedRow(*m_table, *m_sorted)) {
        m_isListChanging = true;
        m_table->clearSelection();
        m_table->setCurrentIndex(row);
        m_isListChanging = false;
    }
    showDetails();
}

QString CollectivesView::currentAnnotation() const
{
    const int row = selectedRow(*m_table, *m_sorted);
    return row < 0 ? QString() : QString::fromStdString(m_model->collective(row).use.cause.annotation);
}

void CollectivesView::showDetails()
{
    const int row = selectedRow(*m_table, *m_sorted);
    const bool hasSpec = currentAnnotation().startsWith(QLatin1String("sharding."));
    m_goToSpec->setEnabled(hasSpec);
    m_removeSpec->setEnabled(hasSpec);
    if (row < 0) {
        m_details->setText(tr("Select a collective to see why it exists and how its time is computed."));
        return;
    }
    const sim::SimulatedCollective& collective = m_model->collective(row);
    const CollectiveUse& use = collective.use;
    QStringList lines;
    if (const auto alike = m_model->members(row).size(); alike > 1)
        lines << tr("%1 collectives alike, of layers, pieces or chunks; this is the first of them.").arg(alike);
    lines << tr("Why: %1.").arg(QString::fromStdString(use.cause.reason));
    if (const QString written = writtenCause(use.cause.annotation); !written.isEmpty())
        lines << tr("You asked for it at %1.").arg(written);
    if (!collective.formula.empty())
        lines << tr("Time of a call: %1 = %2 (%3); each device sends %4.")
                     .arg(QString::fromStdString(collective.formula),
                         QString::fromStdString(formatSeconds(collective.secondsPerCall)),
                         QString::fromStdString(collective.algorithm),
                         QString::fromStdString(formatBytes(static_cast<double>(collective.wireBytes))));
    m_details->setText(lines.join(QLatin1Char('\n')));
}

DisplayList CollectivesView::picture() const
{
    return tablePicture(*m_sorted, tr("Collectives of a step"));
}

QString CollectivesView::command() const
{
    return QStringLiteral("meshwright simulate ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{});
}

} // namespace meshwright::ui

#include "moc_collectives_view.cpp"
