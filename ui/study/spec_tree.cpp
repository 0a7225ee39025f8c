// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/spec_tree.h"

#include "ui/study/spec_delegate.h"
#include "ui/study/spec_edit.h"

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QMenu>
#include <QScrollBar>

namespace meshwright::ui {

namespace {

constexpr int kMostRows = 40; ///< then the table scrolls
constexpr int kIndent = 12;

} // namespace

SpecTree::SpecTree(SpecModel& model, QWidget* parent)
    : QTreeView(parent)
    , m_model(model)
{
    setModel(&model);
    setItemDelegateForColumn(SpecModel::Spec, new SpecDelegate(*this));
    setAccessibleName(tr("Arrays and their specs"));
    setEditTriggers(EditKeyPressed);
    setSelectionMode(SingleSelection);
    setSelectionBehavior(SelectRows);
    setUniformRowHeights(true);
    setIndentation(kIndent);
    setTextElideMode(Qt::ElideLeft); // the end of a name tells arrays of one layer apart
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollMode(ScrollPerPixel);
    header()->setStretchLastSection(false);
    header()->setSectionsClickable(false);
    header()->setSectionResizeMode(QHeaderView::Fixed);
    header()->setMinimumSectionSize(20);

    connect(this, &QTreeView::clicked, this, [this](const QModelIndex& index) {
        if (m_model.arrayAt(index) == nullptr)
            setExpanded(index, !isExpanded(index));
        else if (index.column() == SpecModel::Spec)
            edit(index);
    });
    const auto remember = [this](bool open) {
        return [this, open](const QModelIndex& group) {
            m_open[group.data().toString()] = open;
            updateGeometry();
            layOutColumns();
        };
    };
    connect(this, &QTreeView::expanded, this, remember(true));
    connect(this, &QTreeView::collapsed, this, remember(false));
    connect(&model, &QAbstractItemModel::modelReset, this, &SpecTree::openGroups);
    connect(&model, &SpecModel::factsChanged, this, &SpecTree::layOutColumns);
}

/// All groups but those that follow their parameters nearly always.
void SpecTree::openGroups()
{
    for (int row = 0; row < m_model.rowCount(); ++row) {
        const QModelIndex group = m_model.index(row, 0);
        setFirstColumnSpanned(row, {}, true);
        const ArrayFacts* first = m_model.arrayAt(m_model.index(0, 0, group));
        const bool follows = first != nullptr && (first->role == Role::OptimizerState || first->role == Role::Gradient);
        const auto left = m_open.find(group.data().toString());
        setExpanded(group, left != m_open.end() ? left->second : !follows);
    }
    updateGeometry();
    layOutColumns();
}

void SpecTree::layOutColumns()
{
    const int width = viewport()->width();
    const int padding = 2 * (style()->pixelMetric(QStyle::PM_FocusFrameHMargin, nullptr, this) + 1) + 2; // beside a text
    int names = 0;
    int specs = 0;
    int sizes = fontMetrics().horizontalAdvance(m_model.headerData(SpecModel::PerDevice, Qt::Horizontal).toString());
    for (int g = 0; g < m_model.rowCount(); ++g) {
        const QModelIndex group = m_model.index(g, 0);
        constexpr int kMostMeasured = 200; // of very deep models
        for (int row = 0; isExpanded(group) && row < std::min(kMostMeasured, m_model.rowCount(group)); ++row) {
            const auto advance = [&](SpecModel::Column column) {
                return fontMetrics().horizontalAdvance(m_model.index(row, column, group).data().toString());
            };
            names = std::max(names, advance(SpecModel::Name));
            specs = std::max(specs, advance(SpecModel::Spec));
            sizes = std::max(sizes, advance(SpecModel::PerDevice));
        }
    }
    // Specs come first: long names can be told by their ends.
    const int left = width - sizes - padding;
    const int wanted = names + 2 * kIndent + padding;
    const int nameWidth = std::clamp(left - specs - padding, std::min(wanted, width / 3), wanted);
    header()->resizeSection(SpecModel::Name, nameWidth);
    header()->resizeSection(SpecModel::PerDevice, sizes + padding);
    header()->resizeSection(SpecModel::Spec, std::max(40, left - nameWidth));
}

int SpecTree::visibleRows() const
{
    int rows = m_model.rowCount();
    for (int g = 0; g < m_model.rowCount(); ++g) {
        const QModelIndex group = m_model.index(g, 0);
        rows += isExpanded(group) ? m_model.rowCount(group) : 0;
    }
    return rows;
}

bool SpecTree::showsWholeSpec(const ArrayFacts& array) const
{
    constexpr int kMargins = 8;
    return fontMetrics().horizontalAdvance(QString::fromStdString(array.spec))
        <= header()->sectionSize(SpecModel::Spec) - kMargins;
}

QSize SpecTree::sizeHint() const
{
    const int row = fontMetrics().height() + 6;
    return {280, header()->sizeHint().height() + std::clamp(visibleRows(), 3, kMostRows) * row + 2 * frameWidth()};
}

QSize SpecTree::minimumSizeHint() const
{
    return {100, sizeHint().height()};
}

bool SpecTree::showArray(const QString& name)
{
    const QModelIndex index = m_model.indexOf(name, SpecModel::Spec);
    if (!index.isValid())
        return false;
    expand(index.parent());
    setCurrentIndex(index);
    scrollTo(index);
    return true;
}

bool SpecTree::editSpec(const QString& name)
{
    if (!showArray(name))
        return false;
    setFocus();
    edit(currentIndex());
    return true;
}

void SpecTree::leaveEdit()
{
    QAbstractItemDelegate* delegate = itemDelegateForColumn(SpecModel::Spec);
    for (SpecEdit* editor : viewport()->findChildren<SpecEdit*>())
        Q_EMIT delegate->closeEditor(editor, QAbstractItemDelegate::RevertModelCache);
}

void SpecTree::currentChanged(const QModelIndex& current, const QModelIndex& previous)
{
    QTreeView::currentChanged(current, previous);
    const ArrayFacts* array = m_model.arrayAt(current);
    Q_EMIT currentArrayChanged(array != nullptr ? QString::fromStdString(array->array.name) : QString());
}

void SpecTree::keyPressEvent(QKeyEvent* event)
{
    if (state() == EditingState) { // what the line did not want
        event->accept();
        return;
    }
    const QModelIndex current = currentIndex();
    const ArrayFacts* array = m_model.arrayAt(current);
    const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (array != nullptr && (enter || event->key() == Qt::Key_F2)) {
        edit(current.siblingAtColumn(SpecModel::Spec));
    } else if (array == nullptr && current.isValid() && enter) {
        setExpanded(current, !isExpanded(current));
    } else if (array != nullptr && (event->key() == Qt::Key_Delete || event->key() == Qt::Key_Backspace)) {
        removeOwnSpec(current);
    } else {
        QTreeView::keyPressEvent(event);
        return;
    }
    event->accept();
}

void SpecTree::removeOwnSpec(const QModelIndex& index)
{
    m_model.setData(index.siblingAtColumn(SpecModel::Spec), QString());
}

void SpecTree::contextMenuEvent(QContextMenuEvent* event)
{
    const QModelIndex index = event->reason() == QContextMenuEvent::Keyboard ? currentIndex() : indexAt(event->pos());
    const ArrayFacts* array = m_model.arrayAt(index);
    if (array == nullptr)
        return;
    const QString spec = QString::fromStdString(array->spec);
    QMenu menu;
    menu.addAction(tr("Edit spec"), this, [&] { edit(index.siblingAtColumn(SpecModel::Spec)); });
    menu.addAction(tr("Remove its own spec"), this, [&] { removeOwnSpec(index); })->setEnabled(array->isOwn);
    menu.addAction(tr("Copy spec"), this, [&] { QApplication::clipboard()->setText(spec); })->setEnabled(!spec.isEmpty());
    menu.exec(event->reason() == QContextMenuEvent::Keyboard ? viewport()->mapToGlobal(visualRect(index).bottomLeft())
                                                             : event->globalPos());
}

void SpecTree::resizeEvent(QResizeEvent* event)
{
    QTreeView::resizeEvent(event);
    layOutColumns();
}

} // namespace meshwright::ui

#include "moc_spec_tree.cpp"
