// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/table.h"

#include "core/draw/display_list.h"
#include "ui/theme/theme.h"

#include <QAbstractProxyModel>
#include <QHeaderView>
#include <QStyledItemDelegate>
#include <QTableView>

#include <numeric>

namespace meshwright::ui {

namespace {

constexpr int kLeastWords = 160; ///< pixels of the first column
constexpr int kLeastFigures = 60; ///< of another column
constexpr int kPadding = 12;
constexpr int kRowSpace = 6; ///< of a row, above and below its text together

/// Rows with room between them, as in other tables.
class RowDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        return QStyledItemDelegate::sizeHint(option, index) + QSize(0, kRowSpace);
    }
};

} // namespace

Table::Table(const QStringList& columns, const QString& accessibleName, QWidget* parent)
    : QTreeWidget(parent)
{
    setItemDelegate(new RowDelegate(this));
    setColumnCount(static_cast<int>(columns.size()));
    setHeaderLabels(columns);
    setAccessibleName(accessibleName);
    setAllColumnsShowFocus(true);
    setAlternatingRowColors(true);
    setUniformRowHeights(true);
    setIndentation(14);
    setFrameShape(QFrame::NoFrame);
    setMinimumHeight(90);
    header()->setStretchLastSection(false);
    header()->setSectionsMovable(false);
    for (int column = 1; column < columnCount(); ++column)
        headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
}

QTreeWidgetItem* Table::addGroup(const QStringList& cells)
{
    auto* group = new QTreeWidgetItem(this, cells);
    QFont bold = tabularFont(font());
    bold.setBold(true);
    for (int column = 0; column < columnCount(); ++column) {
        group->setFont(column, bold);
        if (column > 0)
            group->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    }
    group->setExpanded(true);
    return group;
}

void Table::fitColumns()
{
    std::vector<int> wanted;
    for (int column = 1; column < columnCount(); ++column)
        wanted.push_back(std::max(sizeHintForColumn(column), header()->sectionSizeHint(column)) + kPadding);
    const int room = viewport()->width() - kLeastWords;
    int most = std::max(kLeastFigures, room); // of a column: where room is short, the widest get less
    const auto widths = [&] {
        return std::accumulate(wanted.begin(), wanted.end(), 0, [&](int sum, int width) { return sum + std::min(width, most); });
    };
    while (widths() > room && most > kLeastFigures)
        --most;
    for (int column = 1; column < columnCount(); ++column)
        setColumnWidth(column, std::min(wanted[static_cast<std::size_t>(column - 1)], most));
    setColumnWidth(0, std::max(kLeastWords, viewport()->width() - widths()));
}

void Table::resizeEvent(QResizeEvent* event)
{
    QTreeWidget::resizeEvent(event);
    fitColumns();
}

void setUpRows(QTableView& table)
{
    table.setSelectionBehavior(QAbstractItemView::SelectRows);
    table.setSelectionMode(QAbstractItemView::SingleSelection);
    table.setTabKeyNavigation(false);
    table.setShowGrid(false);
    table.setAlternatingRowColors(true);
    table.setFrameShape(QFrame::NoFrame);
    table.verticalHeader()->hide();
    table.verticalHeader()->setDefaultSectionSize(table.fontMetrics().height() + 8);
    table.horizontalHeader()->setHighlightSections(false);
}

QVariant headingData(
    const QAbstractItemModel& model, std::span<const Heading> headings, int section, Qt::Orientation orientation, int role)
{
    if (orientation != Qt::Horizontal || section < 0 || static_cast<std::size_t>(section) >= headings.size())
        return {};
    const Heading& heading = headings[static_cast<std::size_t>(section)];
    if (role == Qt::DisplayRole)
        return model.metaObject()->tr(heading.name, nullptr);
    if (role == Qt::ToolTipRole && heading.meaning != nullptr)
        return model.metaObject()->tr(heading.meaning, nullptr);
    if (role == Qt::TextAlignmentRole)
        return int(heading.isFigures ? Qt::AlignRight : Qt::AlignLeft) | int(Qt::AlignVCenter);
    return {};
}

int selectedRow(const QAbstractItemView& view, const QAbstractProxyModel& proxy)
{
    const QModelIndexList rows = view.selectionModel()->selectedRows();
    return rows.isEmpty() ? -1 : proxy.mapToSource(rows.front()).row();
}

DisplayList tablePicture(const Table& table, const std::string& title, const std::string& nothing)
{
    constexpr double kMargin = 16.0;
    constexpr double kRow = 20.0;
    constexpr double kText = 12.0;
    constexpr double kGap = 20.0;
    std::vector<const QTreeWidgetItem*> rows;
    for (QTreeWidgetItemIterator item(const_cast<Table*>(&table)); *item != nullptr; ++item) {
        if ((*item)->parent() == nullptr || (*item)->parent()->isExpanded())
            rows.push_back(*item);
    }
    DisplayList picture;
    picture.title = title;
    picture.height = 2.0 * kMargin + kRow * static_cast<double>(std::max<std::size_t>(1, rows.size()));
    if (rows.empty()) {
        picture.items.push_back({TextShape{{kMargin, kMargin + kRow / 2.0}, nothing, kText}});
        picture.width = 2.0 * kMargin + estimatedWidth(nothing, kText);
        return picture;
    }
    double x = kMargin;
    for (int column = 0; column < table.columnCount(); ++column) {
        const auto textOf = [&](const QTreeWidgetItem* row) { return row->text(column).toStdString(); };
        double width = 0.0;
        for (const QTreeWidgetItem* row : rows)
            width
                = std::max(width, estimatedWidth(textOf(row), kText) + (column == 0 && row->parent() != nullptr ? kMargin : 0.0));
        double y = kMargin + kRow / 2.0;
        for (const QTreeWidgetItem* row : rows) {
            const double indent = column == 0 && row->parent() != nullptr ? kMargin : 0.0;
            if (const std::string text = textOf(row); !text.empty())
                picture.items.push_back({TextShape{{column == 0 ? x + indent : x + width, y}, text, kText,
                    column == 0 ? TextAnchor::Start : TextAnchor::End, ColourRole::Text}});
            y += kRow;
        }
        x += width + kGap;
    }
    picture.width = x - kGap + kMargin;
    return picture;
}

} // namespace meshwright::ui

#include "moc_table.cpp"
