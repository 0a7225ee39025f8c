// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "core/support/result.h"

#include <QString>

#include <vector>

namespace meshwright::ui {

/// Writes a picture as its file name says: `.svg`, `.png` (at twice the size) or `.pdf` (one page of the picture's size). Whole or not at all.
/// Problems: MW1801 another ending, MW1802 the picture is larger than can be drawn; those of `writeFileAtomically`.
Result<Done> exportPicture(const DisplayList& picture, Theme theme, const QString& path);

/// A PDF with a page for each list, each of the list's size (points = pixels * 0.75). The same lists give the same bytes apart from what Qt
/// puts in (none of it ours). Problems: those of `exportPicture`.
Result<Done> exportPages(const std::vector<DisplayList>& pages, Theme theme, const QString& title, const QString& path);

} // namespace meshwright::ui
