// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/widgets/view.h"

#include <QDockWidget>

namespace meshwright::ui {

/// A dock with a view in it. Its title bar has the buttons that every view has: show the command, export the picture.
class ViewDock : public QDockWidget {
    Q_OBJECT

public:
    /// `id` names the dock in saved arrangements.
    ViewDock(const QString& title, const QString& id, View* view, QWidget* parent = nullptr);

    View* view() const { return m_view; }

Q_SIGNALS:
    void commandRequested();
    void exportRequested();

private:
    View* m_view;
};

} // namespace meshwright::ui
