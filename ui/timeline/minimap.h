// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/rows_painter.h"

namespace meshwright::ui {

/// All rows over the whole axis, squeezed into `pixels` device pixels; where there are more rows than lines, some are left out.
QImage minimapImage(const TimelineModel& model, const TimeAxis& axis, Theme theme, QSize pixels);

} // namespace meshwright::ui
