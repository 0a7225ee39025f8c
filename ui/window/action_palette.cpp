// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/action_palette.h"

#include <QAction>
#include <QBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTimer>

namespace meshwright::ui {

namespace {

constexpr int kIndexRole = Qt::UserRole; ///< into the actions
constexpr int kNoteRole = Qt::UserRole + 1; ///< the keys
constexpr QSize kPaletteSize(560, 380);

/// The name on the left, the keys on the right.
class ActionDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        QStyledItemDelegate::paint(painter, option, index);
        const bool isSelected = option.state & QStyle::State_Selected;
        painter->setPen(option.palette.color(isSelected ? QPalette::HighlightedText : QPalette::PlaceholderText));
        painter->drawText(option.rect.adjusted(0, 0, -8, 0), Qt::AlignRight | Qt::AlignVCenter, index.data(kNoteRole).toString());
    }
};

QString shownName(const MenuAction& action)
{
    return QStringLiteral("%1: %2").arg(action.menu, action.text());
}

} // namespace

ActionPalette::ActionPalette(const QMenuBar& menus, QWidget* parent)
    : QDialog(parent)
    , m_actions(menuActions(menus))
    , m_query(new QLineEdit(this))
    , m_list(new QListWidget(this))
{
    setWindowTitle(tr("Actions"));
    m_query->setPlaceholderText(tr("Type part of an action's name"));
    m_query->setAccessibleName(tr("Find an action"));
    m_query->installEventFilter(this);
    m_list->setAccessibleName(tr("Actions"));
    m_list->setItemDelegate(new ActionDelegate(m_list));
    m_list->setUniformItemSizes(true);
    m_list->setFocusPolicy(Qt::NoFocus);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(8, 8, 8, 8);
    all->addWidget(m_query);
    all->addWidget(m_list);
    resize(kPaletteSize);
    connect(m_query, &QLineEdit::textChanged, this, &ActionPalette::filter);
    connect(m_query, &QLineEdit::returnPressed, this, &ActionPalette::run);
    connect(m_list, &QListWidget::itemClicked, this, &ActionPalette::run);
    filter({});
}

void ActionPalette::filter(const QString& query)
{
    struct Found {
        int score;
        int index;
    };
    std::vector<Found> found;
    for (int i = 0; i < static_cast<int>(m_actions.size()); ++i) {
        const MenuAction& one = m_actions[static_cast<std::size_t>(i)];
        const auto byName = matchScore(query, one.text());
        const auto byAll = matchScore(query, shownName(one));
        if (byName || byAll)
            found.push_back({2 * byName.value_or(0) + byAll.value_or(0), i});
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
    m_list->clear();
    for (const Found& one : found) {
        const MenuAction& action = m_actions[static_cast<std::size_t>(one.index)];
        auto* item = new QListWidgetItem(shownName(action), m_list);
        item->setData(kIndexRole, one.index);
        item->setData(kNoteRole, action.keys());
        item->setToolTip(action.action->toolTip());
        if (!action.action->isEnabled())
            item->setFlags(Qt::NoItemFlags);
    }
    if (found.empty())
        (new QListWidgetItem(tr("No action has this name."), m_list))->setFlags(Qt::NoItemFlags);
    for (int row = 0; row < m_list->count(); ++row) {
        if (m_list->item(row)->flags() & Qt::ItemIsEnabled)
            return m_list->setCurrentRow(row);
    }
}

/// The action may open a dialog: it begins once this one is gone.
void ActionPalette::run()
{
    const QListWidgetItem* item = m_list->currentItem();
    if (item == nullptr || !(item->flags() & Qt::ItemIsEnabled))
        return;
    QAction* action = m_actions[static_cast<std::size_t>(item->data(kIndexRole).toInt())].action;
    accept();
    QTimer::singleShot(0, action, &QAction::trigger);
}

bool ActionPalette::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_query && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Up || key == Qt::Key_Down || key == Qt::Key_PageUp || key == Qt::Key_PageDown) {
            QCoreApplication::sendEvent(m_list, event);
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace meshwright::ui

#include "moc_action_palette.cpp"
