// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A picture as a self-contained SVG 1.1 document in UTF-8.
///
/// The same list and theme give the same bytes. Tooltips become `<title>` elements and ids `data-id` attributes; text is escaped,
/// and what XML cannot hold (control characters, broken UTF-8) becomes U+FFFD. Coordinates have at most two decimals.
std::string svgText(const DisplayList& list, Theme theme);

/// Pictures of one size as one SVG document that shows them one after the other, each for so many seconds, over and over. Where nothing is
/// animated (printed, or without SMIL) the last one is seen. One picture is as `svgText` has it.
/// Preconditions: at least one frame, all of the first one's size; secondsEach > 0.
std::string animatedSvgText(const std::vector<DisplayList>& frames, Theme theme, double secondsEach);

/// A picture as an `<svg>` element inside a page. Colours of the theme are classes (`fill-compute`, `line-outline`), which the page colours with
/// `svgClassRules` and `themeVariables`, so that the picture follows the page's theme; plain colours stay. Fonts are the page's, which should also
/// keep spaces (`svg.picture text{white-space:pre}`).
/// All ids in it begin with `idPrefix`, which must differ between the pictures of a page. The same list gives the same bytes.
std::string svgFragment(const DisplayList& list, const std::string& idPrefix);

/// CSS declarations, one for each role: `--background:#ffffff;--surface:...`.
std::string themeVariables(Theme theme);

/// The CSS rules of the classes that `svgFragment` uses; their colours are the variables of `themeVariables`.
std::string svgClassRules();

/// `text` with U+FFFD for what XML and HTML cannot hold: control characters, broken UTF-8.
std::string validXmlText(std::string_view text);

/// The same with `&`, `<`, `>` and `"` escaped, for text and attributes.
std::string escapedXml(std::string_view text);

} // namespace meshwright
