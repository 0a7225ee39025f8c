// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <string>

namespace meshwright {

/// A picture as a self-contained SVG 1.1 document in UTF-8.
///
/// The same list and theme give the same bytes. Tooltips become `<title>` elements and ids `data-id` attributes; text is escaped,
/// and what XML cannot hold (control characters, broken UTF-8) becomes U+FFFD. Coordinates have at most two decimals.
std::string svgText(const DisplayList& list, Theme theme);

} // namespace meshwright
