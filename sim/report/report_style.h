// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace meshwright::sim {

/// The style sheet of a report's page: colours of both themes from core/draw's roles, screen and paper.
std::string reportStyle();

/// What the page can do more where JavaScript runs: tables sorted by a column, everything opened before printing in browsers that need it.
const char* reportScript();

} // namespace meshwright::sim
