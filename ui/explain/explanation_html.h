// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diagnose/explain_message.h"
#include "core/draw/display_list.h"

#include <QSize>
#include <QString>

namespace meshwright::ui {

/// One explained message for a text browser: the message, what it means and says, the pictures, the ways out with their code. A picture of a layout is
/// the image `layout:N` of that size, N being its place among the pictures; the others are drawn with characters.
QString explanationHtml(const Explanation& explanation, QSize pictureSize);

/// A layout as the other views draw it.
DisplayList layoutPicture(const PicturedLayout& layout, QSize size);

/// "lines 12, 40 and 3 more".
QString linesText(const Explanation& explanation);

} // namespace meshwright::ui
