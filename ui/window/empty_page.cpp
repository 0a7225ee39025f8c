// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/empty_page.h"

#include <QBoxLayout>
#include <QLabel>
#include <QPushButton>

namespace meshwright::ui {

EmptyPage::EmptyPage(QWidget* parent)
    : QWidget(parent)
    , m_meaning(new QLabel(this))
{
    auto* title = new QLabel(tr("No study is open"), this);
    QFont large = title->font();
    large.setPointSizeF(large.pointSizeF() * 1.4);
    large.setBold(true);
    title->setFont(large);
    title->setAlignment(Qt::AlignCenter);
    m_meaning->setAlignment(Qt::AlignCenter);
    m_meaning->setWordWrap(true);
    m_meaning->setForegroundRole(QPalette::PlaceholderText);
    auto* start = new QPushButton(tr("&Plan a model or choose an example"), this);
    auto* open = new QPushButton(tr("&Open a file…"), this);
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(start);
    buttons->addWidget(open);
    buttons->addStretch();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(24, 24, 24, 24);
    column->setSpacing(12);
    column->addStretch(2);
    column->addWidget(title);
    column->addWidget(m_meaning);
    column->addLayout(buttons);
    column->addStretch(3);
    setFocusProxy(start);
    connect(start, &QPushButton::clicked, this, &EmptyPage::startRequested);
    connect(open, &QPushButton::clicked, this, &EmptyPage::openRequested);
}

void EmptyPage::setMeaning(const QString& meaning)
{
    m_meaning->setText(tr("Open a study to %1.").arg(meaning.left(1).toLower() + meaning.mid(1)));
}

} // namespace meshwright::ui

#include "moc_empty_page.cpp"
