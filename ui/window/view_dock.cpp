// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/view_dock.h"

#include <QBoxLayout>
#include <QLabel>
#include <QToolButton>

namespace meshwright::ui {

namespace {

QToolButton* smallButton(const QString& text, const QString& meaning, QWidget* parent)
{
    auto* button = new QToolButton(parent);
    button->setText(text);
    button->setToolTip(meaning);
    button->setAccessibleName(meaning);
    button->setAutoRaise(true);
    return button;
}

} // namespace

ViewDock::ViewDock(const QString& title, const QString& id, View* view, QWidget* parent)
    : QDockWidget(title, parent)
    , m_view(view)
{
    setObjectName(id);
    auto* bar = new QWidget(this);
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(8, 2, 4, 2);
    row->setSpacing(2);
    auto* command = smallButton(tr("Command"), tr("Show the command line for what %1 shows").arg(title), bar);
    auto* save = smallButton(tr("Export"), tr("Save %1 as SVG, PNG or PDF").arg(title), bar);
    auto* window = smallButton(tr("Window"), tr("Move %1 to its own window, or dock it again").arg(title), bar);
    connect(command, &QToolButton::clicked, this, &ViewDock::commandRequested);
    connect(save, &QToolButton::clicked, this, &ViewDock::exportRequested);
    connect(window, &QToolButton::clicked, this, [this] { setFloating(!isFloating()); });
    auto* name = new QLabel(title, bar);
    name->setForegroundRole(QPalette::PlaceholderText);
    row->addWidget(name);
    row->addStretch();
    for (QToolButton* button : {command, save, window})
        row->addWidget(button);
    setTitleBarWidget(bar);
    setWidget(view);
    view->setAccessibleName(title);
}

} // namespace meshwright::ui
