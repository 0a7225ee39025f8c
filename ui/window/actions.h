// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <optional>
#include <vector>

class QAction;
class QMenuBar;

namespace meshwright::ui {

/// Something that the window can do. The menus are the one list of it: shortcuts, the palette and the help are made from them.
struct MenuAction {
    QAction* action = nullptr;
    QString menu; ///< "File", "View: Theme"

    QString text() const; ///< without the mark of its key: "Save as…"
    QString keys() const; ///< all its shortcuts; empty: none
};

/// Every action of the menus and of their submenus, in their order.
std::vector<MenuAction> menuActions(const QMenuBar& menus);

/// How well a query fits a text, regardless of case: its letters must stand in the text in that order. More is better; those at the beginning of words
/// and next to each other count more. Nothing: it does not fit. An empty query fits everything.
std::optional<int> matchScore(const QString& query, const QString& text);

} // namespace meshwright::ui
