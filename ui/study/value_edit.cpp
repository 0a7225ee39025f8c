// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/value_edit.h"

#include "core/support/text.h"

#include <QKeyEvent>

namespace meshwright::ui {

void forgetTyping(QLineEdit& line)
{
    const int cursor = line.cursorPosition();
    line.setText(line.text()); // the same text, without what led to it
    line.setCursorPosition(cursor);
}

std::optional<std::vector<std::int64_t>> sizesIn(const QString& text)
{
    QString plain = text.toLower();
    for (const QChar mark : QStringLiteral("[],;x\u00D7"))
        plain.replace(mark, QLatin1Char(' '));
    std::vector<std::int64_t> sizes;
    for (const QString& part : plain.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        const auto size = parseInteger(part.trimmed().toStdString());
        if (!size)
            return std::nullopt;
        sizes.push_back(*size);
    }
    return sizes;
}

ValueEdit::ValueEdit(QWidget* parent)
    : QLineEdit(parent)
{
    connect(this, &QLineEdit::textEdited, this, &ValueEdit::check);
    connect(this, &QLineEdit::editingFinished, this, &ValueEdit::finish);
}

void ValueEdit::setValue(const QString& value)
{
    const bool typing = hasFocus() && isModified() && text() != m_value;
    const bool changed = value != m_value;
    m_value = value;
    if (text() == value || typing || (!changed && !m_problem.isEmpty()))
        return;
    revert();
}

void ValueEdit::revert()
{
    setText(m_value);
    setCursorPosition(hasFocus() ? static_cast<int>(m_value.size()) : 0);
    if (!m_problem.isEmpty()) {
        m_problem.clear();
        Q_EMIT problemChanged(m_problem);
    }
}

void ValueEdit::check()
{
    const QString problem = m_check && text() != m_value ? m_check(text()) : QString();
    if (problem == m_problem)
        return;
    m_problem = problem;
    Q_EMIT problemChanged(problem);
}

void ValueEdit::finish()
{
    check();
    if (!m_problem.isEmpty() || text() == m_value)
        return;
    forgetTyping(*this);
    Q_EMIT committed(text());
}

void ValueEdit::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Escape && text() != m_value) {
        revert();
        event->accept();
        return;
    }
    QLineEdit::keyPressEvent(event);
}

} // namespace meshwright::ui

#include "moc_value_edit.cpp"
