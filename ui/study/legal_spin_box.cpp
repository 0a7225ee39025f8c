// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/legal_spin_box.h"

#include "core/mesh/mesh.h"
#include "ui/study/value_edit.h"

#include <QKeyEvent>

namespace meshwright::ui {

LegalSpinBox::LegalSpinBox(QWidget* parent)
    : QSpinBox(parent)
{
    setRange(1, static_cast<int>(kLargestMesh));
    setKeyboardTracking(false);
    setCorrectionMode(CorrectToPreviousValue);
    setFocusPolicy(Qt::StrongFocus);
    setAlignment(Qt::AlignRight);
    connect(lineEdit(), &QLineEdit::textEdited, this, [this] {
        m_typed = true;
        check();
    });
    connect(this, &QSpinBox::editingFinished, this, &LegalSpinBox::finish);
}

void LegalSpinBox::setLegal(const std::vector<std::int64_t>& values)
{
    m_legal.clear();
    for (const std::int64_t value : values) {
        if (value <= maximum())
            m_legal.push_back(static_cast<int>(value));
    }
    update();
}

void LegalSpinBox::setDocumentValue(int value)
{
    const bool changed = value != m_value;
    m_value = value;
    const bool typing = hasFocus() && m_typed;
    if (!typing && (changed || m_problem.isEmpty()))
        showDocumentValue();
}

void LegalSpinBox::showDocumentValue()
{
    m_typed = false;
    if (this->value() != m_value || typedValue() != m_value)
        setValue(m_value);
    lineEdit()->setText(textFromValue(m_value)); // also after a text that is not a number
    setProblem({});
}

void LegalSpinBox::stepBy(int steps)
{
    if (m_legal.empty() || steps == 0)
        return;
    const int from = typedValue();
    int next = from;
    if (steps > 0) {
        const auto above = std::upper_bound(m_legal.begin(), m_legal.end(), from);
        const auto left = static_cast<int>(m_legal.end() - above);
        if (left > 0)
            next = *(above + (std::min(steps, left) - 1));
    } else {
        const auto below = std::lower_bound(m_legal.begin(), m_legal.end(), from);
        const auto left = static_cast<int>(below - m_legal.begin());
        if (left > 0)
            next = *(below - std::min(-steps, left));
    }
    if (next == from)
        return;
    setValue(next);
    m_typed = false;
    setProblem({});
    if (next != m_value)
        Q_EMIT committed(next);
}

QAbstractSpinBox::StepEnabled LegalSpinBox::stepEnabled() const
{
    StepEnabled enabled = StepNone;
    const int value = typedValue();
    if (!m_legal.empty() && m_legal.back() > value)
        enabled |= StepUpEnabled;
    if (!m_legal.empty() && m_legal.front() < value)
        enabled |= StepDownEnabled;
    return enabled;
}

/// What stands in the line: not yet the value while it is typed.
int LegalSpinBox::typedValue() const
{
    bool isNumber = false;
    const int typed = cleanText().toInt(&isNumber);
    return isNumber ? typed : value();
}

void LegalSpinBox::check()
{
    const Verdict verdict = m_check && typedValue() != m_value ? m_check(typedValue()) : Verdict{};
    setProblem(verdict.problem);
}

void LegalSpinBox::setProblem(const QString& problem)
{
    if (problem == m_problem)
        return;
    m_problem = problem;
    Q_EMIT problemChanged(problem);
}

void LegalSpinBox::finish()
{
    if (!m_typed)
        return;
    check();
    const int typed = value();
    if (typed == m_value) {
        showDocumentValue();
        return;
    }
    if (m_check && !m_check(typed).allowed)
        return;
    m_typed = false;
    forgetTyping(*lineEdit());
    Q_EMIT committed(typed);
}

void LegalSpinBox::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Escape && typedValue() != m_value) {
        showDocumentValue();
        selectAll();
        event->accept();
        return;
    }
    QSpinBox::keyPressEvent(event);
}

void LegalSpinBox::wheelEvent(QWheelEvent* event)
{
    if (hasFocus())
        QSpinBox::wheelEvent(event);
    else
        event->ignore(); // the panel scrolls
}

} // namespace meshwright::ui

#include "moc_legal_spin_box.cpp"
