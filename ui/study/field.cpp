// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/field.h"

#include <QGridLayout>
#include <QLabel>

namespace meshwright::ui {

Field::Field(const QString& label, QWidget* editor, QWidget* parent)
    : QWidget(parent)
    , m_note(new ToneLabel(ColourRole::Error))
{
    auto* name = new QLabel(label);
    name->setBuddy(editor);
    name->setFixedWidth(labelWidth(*this));
    editor->setAccessibleName(label);
    m_note->hide();
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(6);
    grid->setVerticalSpacing(2);
    grid->setColumnStretch(1, 1);
    grid->addWidget(name, 0, 0);
    grid->addWidget(editor, 0, 1);
    grid->addWidget(m_note, 1, 1);
}

int Field::labelWidth(const QWidget& widget)
{
    return widget.fontMetrics().horizontalAdvance(QStringLiteral("Learning rate")) + 2;
}

void Field::setTyped(const QString& problem)
{
    m_typed = problem;
    update();
}

void Field::setProblem(const QString& problem, ColourRole tone)
{
    m_problem = problem;
    m_tone = tone;
    update();
}

void Field::setRemark(const QString& remark)
{
    m_remark = remark;
    update();
}

void Field::update()
{
    if (!m_typed.isEmpty())
        m_note->setNote(m_typed, ColourRole::Error);
    else if (!m_problem.isEmpty())
        m_note->setNote(m_problem, m_tone);
    else
        m_note->setNote(m_remark, ColourRole::MutedText);
}

} // namespace meshwright::ui

#include "moc_field.cpp"
