// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/tone_label.h"

#include "ui/theme/theme.h"

#include <QEvent>

namespace meshwright::ui {

QString breakable(const QString& text)
{
    constexpr qsizetype kLongWord = 30; ///< letters that fit beside the labels of the narrowest panel
    QString broken;
    qsizetype begin = 0;
    while (begin < text.size()) {
        qsizetype end = begin;
        while (end < text.size() && !text[end].isSpace())
            ++end;
        for (qsizetype i = begin; i < end; ++i) {
            broken += text[i];
            if (end - begin > kLongWord && i + 1 < end && QStringLiteral(".=_/").contains(text[i]))
                broken += QChar(0x200B);
        }
        if (end < text.size())
            broken += text[end];
        begin = end + 1;
    }
    return broken;
}

ToneLabel::ToneLabel(ColourRole tone, QWidget* parent)
    : QLabel(parent)
    , m_tone(tone)
{
    setWordWrap(true);
    setTextFormat(Qt::PlainText);
    applyTone();
}

void ToneLabel::setTone(ColourRole tone)
{
    m_tone = tone;
    applyTone();
}

void ToneLabel::setNote(const QString& text, ColourRole tone)
{
    setTone(tone);
    setText(breakable(text));
    setVisible(!text.isEmpty());
}

void ToneLabel::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::PaletteChange)
        applyTone();
    QLabel::changeEvent(event);
}

void ToneLabel::applyTone()
{
    const QColor colour = qtColour(m_tone, themeOf(palette()));
    if (palette().color(QPalette::WindowText) == colour)
        return; // setting it sends another change
    QPalette changed = palette();
    changed.setColor(QPalette::WindowText, colour);
    setPalette(changed);
}

} // namespace meshwright::ui

#include "moc_tone_label.cpp"
