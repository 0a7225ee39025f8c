// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

class QPainter;

namespace meshwright::ui {

/// Plays a display list: the same picture as `svgText` writes. Paints the background too. The painter's transform stays as it is.
void paint(QPainter& painter, const DisplayList& list, Theme theme);

/// Plays items only, without a background.
void paintItems(QPainter& painter, const std::vector<DisplayItem>& items, Theme theme);

} // namespace meshwright::ui
