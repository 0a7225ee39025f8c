// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QLabel;

namespace meshwright::ui {

/// Gives the links of a label the colour of the theme: rich text keeps the one of when it was set.
void recolourLinks(QLabel& label);

} // namespace meshwright::ui
