// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/notice.h"

#include "ui/theme/theme.h"

#include <QEvent>

namespace meshwright::ui {

Notice::Notice(QWidget* parent)
    : QLabel(parent)
{
    setTextFormat(Qt::PlainText);
    setWordWrap(true);
    hide();
}

void Notice::show(const QString& text, Level level)
{
    m_level = level;
    setText(text);
    applyColour();
    setVisible(!text.isEmpty());
}

void Notice::applyColour()
{
    const QWidget* parent = parentWidget();
    QPalette colours = parent ? parent->palette() : QPalette();
    const ColourRole role = m_level == Level::Error ? ColourRole::Error
        : m_level == Level::Warning                 ? ColourRole::Warning
                                                    : ColourRole::Text;
    const QColor wanted = qtColour(role, themeOf(colours));
    if (palette().color(QPalette::WindowText) == wanted)
        return;
    colours.setColor(QPalette::WindowText, wanted);
    setPalette(colours);
}

void Notice::changeEvent(QEvent* event)
{
    QLabel::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::ParentChange)
        applyColour();
}

} // namespace meshwright::ui

#include "moc_notice.cpp"
