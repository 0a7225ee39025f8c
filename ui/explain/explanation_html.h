// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diagnose/explain_message.h"

#include <QString>

namespace meshwright::ui {

/// One explained message for a text browser: the message, what it means and says, the pictures, the ways out with their code.
QString explanationHtml(const Explanation& explanation);

/// "lines 12, 40 and 3 more".
QString linesText(const Explanation& explanation);

} // namespace meshwright::ui
