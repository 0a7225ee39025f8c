// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/array_tree.h"

#include "ui/layout/array_model.h"
#include "ui/layout/spec_chip.h"

#include <QHeaderView>

#include <numeric>

namespace meshwright::ui {

ArrayTree::ArrayTree(QWidget* parent)
    : QTreeView(parent)
{
    setItemDelegate(new SpecChipDelegate(this));
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setUniformRowHeights(true);
    setAllColumnsShowFocus(true);
    setTextElideMode(Qt::ElideLeft); // the end of a name tells arrays of one layer apart
    setIndentation(10);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    header()->setStretchLastSection(false);
    header()->setMinimumSectionSize(40);
    header()->setSectionsMovable(false);
}

void ArrayTree::fitColumns()
{
    if (model() == nullptr)
        return;
    for (int group = 0; group < model()->rowCount(); ++group)
        setFirstColumnSpanned(group, {}, true);
    std::array<int, ArrayModel::ColumnCount> widths{};
    for (int column = 0; column < ArrayModel::ColumnCount; ++column) {
        setColumnHidden(column, false); // a hidden one has no size to ask for
        widths[static_cast<std::size_t>(column)] = std::max(sizeHintForColumn(column), header()->sectionSizeHint(column)) + 2;
    }
    m_wantedWidth = std::accumulate(widths.begin(), widths.end(), width() - viewport()->width());
    const int room = viewport()->width();
    int used = widths[ArrayModel::Name] + widths[ArrayModel::Spec];
    for (const int column : {ArrayModel::Sizes, ArrayModel::Bytes}) {
        const int width = widths[static_cast<std::size_t>(column)];
        const bool hasRoom = used + width <= room;
        setColumnHidden(column, !hasRoom);
        if (hasRoom)
            setColumnWidth(column, width);
        used += hasRoom ? width : 0;
    }
    // Where even names and specs are too long for the room, both are elided, specs first: the selected array's is above its picture too.
    const int sizes = used - widths[ArrayModel::Name] - widths[ArrayModel::Spec];
    const int specs
        = std::min(widths[ArrayModel::Spec], std::max(room - sizes - widths[ArrayModel::Name], 2 * (room - sizes) / 5));
    setColumnWidth(ArrayModel::Spec, specs);
    setColumnWidth(ArrayModel::Name, std::max(60, room - sizes - specs));
}

void ArrayTree::resizeEvent(QResizeEvent* event)
{
    QTreeView::resizeEvent(event);
    fitColumns();
}

void ArrayTree::showEvent(QShowEvent* event)
{
    QTreeView::showEvent(event);
    scrollToTop(); // until now the height was not known, and any scrolling wrong
    scrollTo(currentIndex());
}

} // namespace meshwright::ui

#include "moc_array_tree.cpp"
