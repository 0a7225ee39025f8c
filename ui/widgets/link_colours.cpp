// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/link_colours.h"

#include <QLabel>

namespace meshwright::ui {

void recolourLinks(QLabel& label)
{
    const QString text = label.text();
    label.clear();
    label.setText(text);
}

} // namespace meshwright::ui
