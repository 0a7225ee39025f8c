// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QMenuBar;

namespace meshwright::ui {

/// Shows a command line, to be copied.
class CommandDialog : public QDialog {
    Q_OBJECT

public:
    /// `unsaved`: the study is in no file yet, so the command needs it to be saved first; the dialog says so.
    CommandDialog(const QString& command, bool unsaved, QWidget* parent);
};

/// All shortcuts: those of the menus, and those of the timeline.
class ShortcutsDialog : public QDialog {
    Q_OBJECT

public:
    ShortcutsDialog(const QMenuBar& menus, QWidget* parent);
};

/// The manual's pages, with links between them. Stays open beside the window.
class ManualDialog : public QDialog {
    Q_OBJECT

public:
    /// `folder` holds index.md and the pages and pictures that it leads to. `page` is opened, such as "timeline".
    ManualDialog(const QString& folder, const QString& page, QWidget* parent);
};

} // namespace meshwright::ui
