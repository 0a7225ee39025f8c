// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace meshwright::pages {

/// Text as HTML shows it. Control characters are made visible.
std::string htmlEscaped(const std::string& text);

/// Bytes as base64, for the address of an image.
std::string base64(const std::string& bytes);

/// Words of a page as HTML, by the part of Markdown that pages use most: headings, paragraphs, lists, tables, fenced code, `code`,
/// **bold**, *emphasis* and links to https and http. All else is shown as it is written; no HTML of the page is passed on.
std::string wordsHtml(const std::string& markdown);

} // namespace meshwright::pages
