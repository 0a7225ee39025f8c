// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/theme.h"

#include <QApplication>
#include <QPainter>
#include <QProxyStyle>
#include <QStyleOption>
#include <QToolTip>

namespace meshwright::ui {

namespace {

/// The palette that the program was started with, before any of ours.
const QPalette& startPalette()
{
    static const QPalette palette = QApplication::palette();
    return palette;
}

/// Between two colours: 0 is `a`, 1 is `b`.
QColor mixed(const QColor& a, const QColor& b, double share)
{
    const auto channel = [&](int x, int y) { return qRound(x + (y - x) * share); };
    return QColor(channel(a.red(), b.red()), channel(a.green(), b.green()), channel(a.blue(), b.blue()));
}

/// Fusion, with splitters that light up under the mouse, and with edges that are seen in high contrast. No style sheet does that: it would give widgets back the palettes of the theme in which they
/// were first shown.
class WindowStyle : public QProxyStyle {
public:
    WindowStyle()
        : QProxyStyle(QStringLiteral("Fusion"))
    {
    }

    /// Texts of tables and lists stand apart from those of the columns beside them.
    int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override
    {
        constexpr int kBesideText = 5;
        return metric == PM_FocusFrameHMargin || metric == PM_HeaderMargin ? kBesideText
                                                                           : QProxyStyle::pixelMetric(metric, option, widget);
    }

    /// Signs on buttons of dialogs are black on any ground, and say what the words beside them say.
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* returned) const override
    {
        return hint == SH_DialogButtonBox_ButtonsHaveIcons ? 0 : QProxyStyle::styleHint(hint, option, widget, returned);
    }

    void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override
    {
        if (element == CE_Splitter && option->state.testFlag(State_MouseOver))
            painter->fillRect(option->rect, option->palette.color(QPalette::Highlight));
        else
            QProxyStyle::drawControl(element, option, painter, widget);
    }

    void drawPrimitive(
        PrimitiveElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override
    {
        QProxyStyle::drawPrimitive(element, option, painter, widget);
        switch (element) {
        case PE_PanelButtonCommand:
        case PE_FrameLineEdit:
        case PE_Frame:
            return frame(option, painter);
        case PE_IndicatorCheckBox:
            return frame(option, painter, themeOf(option->palette) != Theme::Light);
        default:
            return;
        }
    }

    void drawComplexControl(
        ComplexControl control, const QStyleOptionComplex* option, QPainter* painter, const QWidget* widget) const override
    {
        QProxyStyle::drawComplexControl(control, option, painter, widget);
        const auto* combo = qstyleoption_cast<const QStyleOptionComboBox*>(option);
        const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option);
        if ((combo != nullptr && combo->frame) || (spin != nullptr && spin->frame))
            frame(option, painter);
        if (control == CC_Slider && themeOf(option->palette) == Theme::HighContrast)
            fillHandle(*option, proxy()->subControlRect(control, option, SC_SliderHandle, widget), painter);
    }

private:
    static void fillHandle(const QStyleOption& option, const QRect& handle, QPainter* painter)
    {
        const bool isEnabled = option.state.testFlag(State_Enabled);
        const Theme theme = themeOf(option.palette);
        painter->fillRect(handle.adjusted(1, 1, -1, -1), qtColour(isEnabled ? ColourRole::Outline : ColourRole::Grid, theme));
    }

    /// Fusion's edges are darker than what is around them: on black they are not seen, and an empty box on no dark ground.
    static void frame(const QStyleOption* option, QPainter* painter)
    {
        frame(option, painter, themeOf(option->palette) == Theme::HighContrast);
    }

    static void frame(const QStyleOption* option, QPainter* painter, bool isWanted)
    {
        if (!isWanted)
            return;
        const bool isEnabled = option->state.testFlag(State_Enabled);
        const bool hasFocus = option->state.testFlag(State_HasFocus);
        const ColourRole role = hasFocus ? ColourRole::Accent : isEnabled ? ColourRole::Outline : ColourRole::Grid;
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing, false);
        painter->setBrush(Qt::NoBrush);
        painter->setPen(QPen(qtColour(role, themeOf(option->palette)), 1.0));
        painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
        painter->restore();
    }
};

} // namespace

QColor qtColour(Colour colour)
{
    return QColor(colour.red, colour.green, colour.blue);
}

QColor qtColour(ColourRole role, Theme theme)
{
    return qtColour(colourOf(role, theme));
}

QPalette paletteOf(Theme theme)
{
    const QColor background = qtColour(ColourRole::Background, theme);
    const QColor surface = qtColour(ColourRole::Surface, theme);
    const QColor text = qtColour(ColourRole::Text, theme);
    const QColor muted = qtColour(ColourRole::MutedText, theme);
    const QColor grid = qtColour(ColourRole::Grid, theme);
    const QColor accent = qtColour(ColourRole::Accent, theme);

    QPalette palette;
    palette.setColor(QPalette::Window, surface);
    palette.setColor(QPalette::WindowText, text);
    palette.setColor(QPalette::Base, background);
    palette.setColor(QPalette::AlternateBase, surface);
    palette.setColor(QPalette::Text, text);
    palette.setColor(QPalette::PlaceholderText, muted);
    palette.setColor(QPalette::Button, mixed(surface, background, theme == Theme::Light ? 0.5 : 0.0));
    palette.setColor(QPalette::ButtonText, text);
    palette.setColor(QPalette::BrightText, qtColour(ColourRole::Error, theme));
    palette.setColor(QPalette::ToolTipBase, surface);
    palette.setColor(QPalette::ToolTipText, text);
    palette.setColor(QPalette::Highlight, accent);
    palette.setColor(QPalette::HighlightedText, background);
    palette.setColor(QPalette::Link, accent);
    palette.setColor(QPalette::LinkVisited, mixed(accent, muted, 0.5));
    palette.setColor(QPalette::Light, mixed(surface, background, 0.8));
    palette.setColor(QPalette::Midlight, mixed(surface, grid, 0.5));
    palette.setColor(QPalette::Mid, grid);
    palette.setColor(QPalette::Dark, mixed(grid, muted, 0.4));
    palette.setColor(QPalette::Shadow, mixed(grid, text, 0.7));
    for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::HighlightedText})
        palette.setColor(QPalette::Disabled, role, mixed(muted, surface, 0.3));
    palette.setColor(QPalette::Disabled, QPalette::Highlight, grid);
    palette.setColor(QPalette::Disabled, QPalette::Base, surface);
    return palette;
}

Theme themeOf(const QPalette& palette)
{
    const QColor window = palette.color(QPalette::Window);
    if (window.rgb() == qtColour(ColourRole::Surface, Theme::HighContrast).rgb())
        return Theme::HighContrast;
    return window.lightness() < 128 ? Theme::Dark : Theme::Light;
}

void applyTheme(QApplication& application, ThemeChoice choice)
{
    const QPalette start = startPalette(); // asked for before any of ours is set
    const Theme theme = choice == ThemeChoice::Light ? Theme::Light
        : choice == ThemeChoice::Dark                ? Theme::Dark
        : choice == ThemeChoice::HighContrast        ? Theme::HighContrast
                                                     : themeOf(start);
    if (dynamic_cast<WindowStyle*>(application.style()) == nullptr)
        application.setStyle(new WindowStyle);
    application.setPalette(paletteOf(theme));
    QToolTip::setPalette(paletteOf(theme));
    QCoreApplication::sendPostedEvents(nullptr, QEvent::ApplicationPaletteChange); // all of the window changes at once
}

QFont tabularFont(const QFont& base)
{
    // The digits of the default fonts (DejaVu Sans, Noto Sans) have equal widths; others fall back to a fixed pitch.
    QFont font = base;
    const QFontMetrics metrics(font);
    if (metrics.horizontalAdvance(QLatin1Char('1')) != metrics.horizontalAdvance(QLatin1Char('0')))
        font.setStyleHint(QFont::Monospace);
    return font;
}

} // namespace meshwright::ui
