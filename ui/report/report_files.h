// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/report/report.h"

#include <QString>

namespace meshwright::ui {

/// Writes a report as its file name says: `.html`, `.md`, `.csv`, `.json` or `.pdf` (A4, light). Whole or not at all.
/// Problems: MW1828 another ending; those of `writeFileAtomically`.
Result<Done> writeReport(const sim::Report& report, const QString& path);

/// Reads the report that a page holds and writes it as PDF: `meshwright-gui --print page -o pdf`. Needs a QGuiApplication, but no display.
/// Problems: those of `readFile`, `readReport` and `writeReport`.
Result<Done> printReport(const QString& page, const QString& pdf);

} // namespace meshwright::ui
