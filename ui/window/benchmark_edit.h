// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace meshwright::ui {

class MainWindow;

/// Opens the first example and makes `edits` different edits (mesh, batch, specs, layer sizes), each timed from the edit until every view has
/// the new analysis and has drawn it; all views count, those behind tabs too. Gives `{"edits", "p50_ms", "p95_ms", "max_ms", "views"}` as JSON.
std::string benchmarkEdits(MainWindow& window, std::int64_t edits);

} // namespace meshwright::ui
