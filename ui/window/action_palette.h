// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/window/actions.h"

#include <QDialog>

class QLineEdit;
class QListWidget;

namespace meshwright::ui {

/// Everything that the window can do, found by a few letters: Enter or a click does it. What cannot be done now is grey.
class ActionPalette : public QDialog {
    Q_OBJECT

public:
    ActionPalette(const QMenuBar& menus, QWidget* parent);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void filter(const QString& query);
    void run();

    std::vector<MenuAction> m_actions;
    QLineEdit* m_query;
    QListWidget* m_list;
};

} // namespace meshwright::ui
