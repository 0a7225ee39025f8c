// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"

#include <QColor>
#include <QFont>
#include <QPalette>

#include <cstdint>

class QApplication;

namespace meshwright::ui {

/// What the user asks for. System follows the palette that the program was started with (Qt 6.4 cannot ask for more).
enum class ThemeChoice : std::uint8_t { System, Light, Dark, HighContrast };

QColor qtColour(Colour colour);
QColor qtColour(ColourRole role, Theme theme);

/// Every role of QPalette, disabled and inactive groups included, from the theme's colour roles.
QPalette paletteOf(Theme theme);

/// The theme of a palette, by the colour of its windows. Views ask their own `palette()`, and repaint in `changeEvent` when it changes.
Theme themeOf(const QPalette& palette);

/// Sets the style and the palette. May be called at any time.
void applyTheme(QApplication& application, ThemeChoice choice);

/// Digits of equal width, for figures that change in place or stand under each other.
QFont tabularFont(const QFont& base);

} // namespace meshwright::ui
