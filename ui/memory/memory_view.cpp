// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/memory/memory_view.h"

#include "core/support/text.h"
#include "sim/report/memory_picture.h"
#include "sim/session/analysis_state.h"
#include "ui/memory/live_model.h"
#include "ui/memory/memory_chart.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/painter.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStackedLayout>
#include <QStyledItemDelegate>
#include <QTableView>

namespace meshwright::ui {

namespace {

constexpr int kSwatch = 11;
constexpr int kShareWidth = 130; ///< of the column, for its bars

/// The kind's colour and hatch before its name.
class KindDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override
    {
        QStyledItemDelegate::initStyleOption(option, index);
        const auto kind = static_cast<MemoryKind>(index.data(LiveModel::kKindRole).toInt());
        option->features |= QStyleOptionViewItem::HasDecoration;
        option->decorationSize = QSize(kSwatch, kSwatch);
        option->icon = swatch(kind, themeOf(option->palette), option->widget ? option->widget->devicePixelRatioF() : 1.0);
    }

private:
    static QIcon swatch(MemoryKind kind, Theme theme, double ratio)
    {
        const DrawnMemoryKind drawn = sim::drawnMemoryKind(kind);
        QPixmap pixels(qCeil(kSwatch * ratio), qCeil(kSwatch * ratio));
        pixels.setDevicePixelRatio(ratio);
        pixels.fill(Qt::transparent);
        QPainter painter(&pixels);
        ShapeStyle style;
        style.fill = drawn.role;
        style.hatch = drawn.hatch;
        style.hatchPaint = hatchPaintOn(drawn.role);
        paintItems(painter, {{RectShape{{0.0, 0.0}, kSwatch, kSwatch, style, 2.0}}}, theme);
        return QIcon(pixels);
    }
};

/// A share with a bar under it, so that the largest stand out.
class ShareDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        QStyledItemDelegate::paint(painter, option, index);
        const QRectF cell = option.rect.adjusted(4, 0, -4, -2);
        const double width = cell.width() * index.data(LiveModel::kShareRole).toDouble();
        const bool isSelected = option.state & QStyle::State_Selected;
        const QColor colour = isSelected ? option.palette.color(QPalette::HighlightedText)
                                         : qtColour(ColourRole::Accent, themeOf(option.palette));
        painter->fillRect(QRectF(cell.right() - width, cell.bottom() - 2.0, width, 2.0), colour);
    }
};

QString reasonOf(const sim::Analysis& analysis)
{
    if (const Problem* why = sim::whyNotBuilt(analysis))
        return QString::fromStdString(why->message);
    if (analysis.study && !analysis.study->hardware)
        return MemoryView::tr("The study has no hardware: choose a chip to see whether the step fits its memory.");
    return MemoryView::tr("The study has not been simulated.");
}

} // namespace

MemoryView::MemoryView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_pages(new QStackedLayout(this))
    , m_empty(new QLabel(tr("Open a study or an example\nto see how a step uses a device's memory."), this))
    , m_headline(new Notice(this))
    , m_devices(new QLabel(this))
    , m_notice(new Notice(this))
    , m_chart(new MemoryChart(this))
    , m_reading(new QLabel(this))
    , m_tableTitle(new QLabel(this))
    , m_live(new LiveModel(this))
    , m_sorted(new QSortFilterProxyModel(this))
    , m_table(new QTableView(this))
{
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setForegroundRole(QPalette::PlaceholderText);
    QFont bold = font();
    bold.setBold(true);
    m_headline->setFont(bold);
    m_headline->setAccessibleName(tr("Does the step fit in memory"));
    m_tableTitle->setFont(bold);
    m_devices->setForegroundRole(QPalette::PlaceholderText);
    m_reading->setTextFormat(Qt::PlainText);
    m_reading->setFont(tabularFont(font()));
    m_reading->setWordWrap(true);
    m_reading->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_reading->setMinimumHeight(2 * fontMetrics().lineSpacing()); // so that nothing jumps when the words get longer
    m_reading->setAccessibleName(tr("Memory at the moment under the pointer"));
    setUpTable();

    auto* upper = new QWidget(this);
    auto* upperLayout = new QVBoxLayout(upper);
    upperLayout->setContentsMargins(0, 0, 0, 0);
    upperLayout->setSpacing(6);
    upperLayout->addWidget(m_chart, 1);
    upperLayout->addWidget(m_reading);
    auto* lower = new QWidget(this);
    auto* lowerLayout = new QVBoxLayout(lower);
    lowerLayout->setContentsMargins(0, 0, 0, 0);
    lowerLayout->setSpacing(6);
    lowerLayout->addWidget(m_tableTitle);
    lowerLayout->addWidget(m_table, 1);
    auto* halves = new QSplitter(Qt::Vertical, this);
    halves->setChildrenCollapsible(false);
    halves->addWidget(upper);
    halves->addWidget(lower);
    halves->setStretchFactor(0, 3);
    halves->setStretchFactor(1, 2);

    auto* page = new QWidget(this);
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_headline);
    layout->addWidget(m_devices);
    layout->addWidget(m_notice);
    layout->addWidget(halves, 1);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(page);

    connect(m_chart, &MemoryChart::momentChanged, this, &MemoryView::showMoment);
    connect(m_chart, &PictureView::clicked, this, [this](const QString& id) {
        if (id != QLatin1String("memory:peak"))
            return;
        m_table->setFocus();
        if (selectedRow(*m_table, *m_sorted) < 0)
            m_table->selectRow(0);
    });
    connect(&m_selection, &Selection::arrayChanged, this, &MemoryView::selectRowOf);
    showMoment();
}

void MemoryView::setUpTable()
{
    m_sorted->setSourceModel(m_live);
    m_sorted->setSortRole(LiveModel::kSortRole);
    m_table->setModel(m_sorted);
    m_table->setAccessibleName(tr("Arrays in memory at the peak"));
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(LiveModel::Bytes, Qt::DescendingOrder);
    setUpRows(*m_table);
    m_table->horizontalHeader()->setSectionResizeMode(LiveModel::Name, QHeaderView::Stretch);
    m_table->setItemDelegateForColumn(LiveModel::Kind, new KindDelegate(m_table));
    m_table->setItemDelegateForColumn(LiveModel::Share, new ShareDelegate(m_table));
    m_table->setMinimumHeight(4 * (fontMetrics().height() + 8));
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &MemoryView::onRowSelected);
}

void MemoryView::forgetStudy()
{
    m_analysis.reset();
    m_live->setSimulated(nullptr);
    m_empty->setText(tr("The study is being simulated…"));
    m_pages->setCurrentIndex(0);
}

void MemoryView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    const bool isComplete = analysis->simulated != nullptr;
    if (isComplete) {
        m_analysis = std::move(analysis);
        showSimulation();
    } else if (!m_analysis) {
        m_empty->setText(reasonOf(*analysis));
    } else {
        m_notice->show(tr("Not up to date: %1").arg(reasonOf(*analysis)));
        m_chart->setEnabled(false);
        m_table->setEnabled(false);
    }
}

void MemoryView::showSimulation()
{
    const sim::Simulation& simulation = m_analysis->simulated->simulation;
    m_headline->show(
        QString::fromStdString(sim::memorySentence(simulation)), simulation.fits ? Notice::Level::Plain : Notice::Level::Error);
    const std::int64_t devices = m_analysis->simulated->mesh.deviceCount();
    m_devices->setText(m_analysis->built->study.pipeline.stages > 1 ? tr("A device of the stage that needs most is shown")
            : devices == 1                                          ? tr("One device")
                                                                    : tr("All %1 devices are equal: one is shown").arg(devices));
    m_notice->show({});
    m_chart->setEnabled(true);
    m_table->setEnabled(true);
    m_chart->setMemory(sim::memoryPicture(simulation));
    m_live->setSimulated(m_analysis->simulated);
    const int room = 2 * fontMetrics().averageCharWidth();
    for (int column = LiveModel::Kind; column < LiveModel::ColumnCount; ++column) {
        m_table->resizeColumnToContents(column);
        m_table->setColumnWidth(
            column, std::max(m_table->columnWidth(column) + room, column == LiveModel::Share ? kShareWidth : 0));
    }
    m_tableTitle->setText(m_live->rowCount() == 1 ? tr("At the peak 1 array is in memory")
                                                  : tr("At the peak %1 arrays are in memory").arg(m_live->rowCount()));
    m_table->setAutoScroll(m_table->hasFocus()); // else what takes most is looked for, and not what happens to be selected
    selectRowOf(m_selection.array());
    m_table->setAutoScroll(true);
    if (!m_table->hasFocus())
        m_table->scrollToTop();
    m_pages->setCurrentIndex(1);
    showMoment();
}

void MemoryView::showMoment()
{
    const auto moment = m_chart->moment();
    if (!moment) {
        m_reading->setText(tr("Point at a moment in the picture, or step with ← and →, to read its figures."));
        return;
    }
    const MemoryDrawing& memory = m_chart->memory();
    const DrawnMemoryMoment& shown = memory.moments[*moment];
    const auto unbroken
        = [](const std::string& figure) { return QString::fromStdString(figure).replace(QLatin1Char(' '), QChar::Nbsp); };
    const auto bytes = [&](std::int64_t count) { return unbroken(formatBytes(static_cast<double>(count))); };
    QStringList parts;
    for (std::size_t kind = memory.kinds.size(); kind-- > 0;) {
        if (shown.bytesByKind[kind] > 0)
            parts << QString::fromStdString(memory.kinds[kind].name) + QChar::Nbsp + bytes(shown.bytesByKind[kind]);
    }
    m_reading->setText(
        tr("At %1 in use: %2 = %3")
            .arg(unbroken(formatSeconds(m_chart->seconds())), bytes(totalBytes(shown)), parts.join(QLatin1String(" + "))));
}

/// Names in the table that are not arrays of the program, such as those of unnamed steps, select nothing.
void MemoryView::onRowSelected()
{
    const int row = selectedRow(*m_table, *m_sorted);
    if (row < 0)
        return;
    const std::string& name = m_live->value(row).name;
    if (m_analysis->findArray(name))
        m_selection.setArray(QString::fromStdString(name));
}

void MemoryView::selectRowOf(const QString& array)
{
    const int selected = selectedRow(*m_table, *m_sorted);
    if (selected >= 0 && QString::fromStdString(m_live->value(selected).name) == array)
        return;
    for (int row = 0; row < m_live->rowCount() && !array.isEmpty(); ++row) {
        if (QString::fromStdString(m_live->value(row).name) != array)
            continue;
        m_table->selectRow(m_sorted->mapFromSource(m_live->index(row, 0)).row());
        return;
    }
    m_table->clearSelection();
    m_table->setCurrentIndex({});
}

DisplayList MemoryView::picture() const
{
    if (!m_analysis)
        return {320.0, 60.0, "No memory", ColourRole::Background, {{TextShape{{16.0, 30.0}, "nothing simulated", 12.0}}}};
    MemoryDrawing drawing = m_chart->memory();
    drawing.title = sim::memorySentence(m_analysis->simulated->simulation);
    return drawMemory(drawing);
}

QString MemoryView::command() const
{
    return QStringLiteral("meshwright simulate ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{});
}

} // namespace meshwright::ui

#include "moc_memory_view.cpp"
