// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/spec_edit.h"

#include "ui/theme/theme.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QInputMethodEvent>
#include <QKeyEvent>
#include <QStringListModel>
#include <QTextLayout>

namespace meshwright::ui {

QList<QTextLayout::FormatRange> problemFormats(
    const QString& text, const std::vector<SpecProblem>& problems, const QColor& colour)
{
    const QByteArray utf8 = text.toUtf8();
    const auto characters
        = [&](std::size_t bytes) { return static_cast<int>(QString::fromUtf8(utf8.left(static_cast<qsizetype>(bytes))).size()); };
    QList<QTextLayout::FormatRange> formats;
    for (const SpecProblem& problem : problems) {
        QTextLayout::FormatRange range;
        range.start = characters(problem.range.offset);
        range.length = characters(problem.range.offset + problem.range.length) - range.start;
        range.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
        range.format.setUnderlineColor(colour);
        formats.append(range);
    }
    return formats;
}

SpecEdit::SpecEdit(QWidget* parent)
    : QLineEdit(parent)
    , m_completer(new QCompleter(this))
    , m_names(new QStringListModel(this))
{
    setAccessibleName(tr("PartitionSpec"));
    setPlaceholderText(tr("follows from other arrays"));
    m_completer->setModel(m_names);
    m_completer->setWidget(this);
    m_completer->setCaseSensitivity(Qt::CaseInsensitive);
    m_completer->setCompletionMode(QCompleter::PopupCompletion);
    connect(m_completer, qOverload<const QString&>(&QCompleter::activated), this, &SpecEdit::insertCompletion);
    connect(this, &QLineEdit::textChanged, this, &SpecEdit::check);
    connect(this, &QLineEdit::textEdited, this, &SpecEdit::complete);
}

void SpecEdit::setSubject(StudyArray array, std::vector<MeshAxis> mesh)
{
    m_array = std::move(array);
    m_mesh = std::move(mesh);
    QStringList names;
    for (const MeshAxis& axis : m_mesh)
        names << QString::fromStdString(axis.name);
    m_names->setStringList(names);
    check();
}

QString SpecEdit::corrected() const
{
    if (m_problems.empty())
        return {};
    return QString::fromStdString(correctedSpec(text().toStdString(), m_array, m_mesh).value_or(std::string()));
}

bool SpecEdit::isCompleting() const
{
    return m_completer->popup()->isVisible();
}

void SpecEdit::check()
{
    m_problems = text().trimmed().isEmpty() ? std::vector<SpecProblem>{} : checkSpecText(text().toStdString(), m_array, m_mesh);
    // QLineEdit has no formats of its own, but it shows those that an input method asks for.
    QList<QInputMethodEvent::Attribute> attributes;
    const QColor colour = qtColour(ColourRole::Error, themeOf(palette()));
    for (const QTextLayout::FormatRange& range : problemFormats(text(), m_problems, colour))
        attributes.append({QInputMethodEvent::TextFormat, range.start - cursorPosition(), range.length, QVariant(range.format)});
    QInputMethodEvent event(QString(), attributes);
    QCoreApplication::sendEvent(this, &event);
    Q_EMIT problemsChanged();
}

SpecEdit::Word SpecEdit::wordAtCursor() const
{
    const QString all = text();
    const auto isLetter
        = [&](int at) { return at >= 0 && at < all.size() && (all[at].isLetterOrNumber() || all[at] == QLatin1Char('_')); };
    Word word{cursorPosition(), cursorPosition()};
    while (isLetter(word.begin - 1))
        --word.begin;
    while (isLetter(word.end))
        ++word.end;
    return word;
}

/// Offers the axes whose names begin as the word before the cursor, once it has a letter and is not finished.
void SpecEdit::complete()
{
    const Word word = wordAtCursor();
    const QString prefix = text().mid(word.begin, cursorPosition() - word.begin);
    const bool isCall = word.begin == 0 || prefix.isEmpty(); // the P of P(...)
    m_completer->setCompletionPrefix(prefix);
    const int matches = isCall ? 0 : m_completer->completionCount();
    const bool finished = matches == 1 && m_completer->currentCompletion() == prefix;
    if (matches == 0 || finished) {
        m_completer->popup()->hide();
        return;
    }
    QAbstractItemView* list = m_completer->popup();
    list->setCurrentIndex(m_completer->completionModel()->index(0, 0));
    QRect place = cursorRect();
    place.setWidth(list->sizeHintForColumn(0) + 24);
    m_completer->complete(place);
}

void SpecEdit::insertCompletion(const QString& name)
{
    const Word word = wordAtCursor();
    setSelection(word.begin, word.end - word.begin);
    insert(name);
}

void SpecEdit::keyPressEvent(QKeyEvent* event)
{
    const int key = event->key();
    const bool chooses = key == Qt::Key_Return || key == Qt::Key_Enter || key == Qt::Key_Tab || key == Qt::Key_Escape;
    if (isCompleting() && chooses) {
        event->ignore(); // the list takes it
        return;
    }
    QLineEdit::keyPressEvent(event);
}

} // namespace meshwright::ui

#include "moc_spec_edit.cpp"
