// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/view_frame.h"

#include <QBoxLayout>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTabBar>
#include <QToolButton>

namespace meshwright::ui {

namespace {

QToolButton* addButton(QBoxLayout* row, const QString& text, const QString& meaning, QWidget* parent)
{
    auto* button = new QToolButton(parent);
    button->setText(text);
    button->setToolTip(meaning);
    button->setAccessibleName(meaning);
    button->setAutoRaise(true);
    row->addWidget(button);
    return button;
}

} // namespace

ViewFrame::ViewFrame(QWidget* parent)
    : QWidget(parent)
    , m_titles(new QTabBar(this))
    , m_pages(new QStackedWidget(this))
{
    m_titles->setDocumentMode(true);
    m_titles->setDrawBase(false);
    m_titles->setExpanding(false);
    m_titles->setAccessibleName(tr("Views"));
    auto* row = new QHBoxLayout;
    row->setContentsMargins(4, 2, 4, 0);
    row->setSpacing(2);
    row->addWidget(m_titles);
    row->addStretch();
    auto* command = addButton(row, tr("Command"), tr("Show the command line for what the view shows"), this);
    auto* save = addButton(row, tr("Export"), tr("Save the view as SVG, PNG or PDF"), this);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(0, 0, 0, 0);
    all->setSpacing(0);
    all->addLayout(row);
    all->addWidget(m_pages, 1);
    connect(m_titles, &QTabBar::currentChanged, m_pages, &QStackedWidget::setCurrentIndex);
    connect(command, &QToolButton::clicked, this, [this] { Q_EMIT commandRequested(current()); });
    connect(save, &QToolButton::clicked, this, [this] { Q_EMIT exportRequested(current()); });
}

void ViewFrame::addView(const QString& title, const QString& id, View* view)
{
    view->setObjectName(id);
    view->setAccessibleName(title);
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidgetResizable(true);
    scroll->setWidget(view);
    m_pages->addWidget(scroll);
    m_views.push_back(view);
    m_titles->addTab(title);
    m_titles->updateGeometry(); // which a hidden bar does not do by itself
}

View* ViewFrame::current() const
{
    return m_views[static_cast<std::size_t>(m_pages->currentIndex())];
}

void ViewFrame::raise(const View* view)
{
    m_titles->setCurrentIndex(static_cast<int>(std::find(m_views.begin(), m_views.end(), view) - m_views.begin()));
}

} // namespace meshwright::ui

#include "moc_view_frame.cpp"
