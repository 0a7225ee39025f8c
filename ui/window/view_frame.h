// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/widgets/view.h"

#include <vector>

class QStackedWidget;
class QTabBar;

namespace meshwright::ui {

/// A place in the window for views, of which one is seen: their titles as tabs, the buttons that every view has (show the command, export the
/// picture), and under them the view, which scrolls where it gets less room than it needs.
class ViewFrame : public QWidget {
    Q_OBJECT

public:
    explicit ViewFrame(QWidget* parent = nullptr);

    /// `id` becomes the view's object name ("timeline"), `title` its accessible name.
    void addView(const QString& title, const QString& id, View* view);

    const std::vector<View*>& views() const { return m_views; }

    /// The view that is seen when the frame is. Precondition: a view was added.
    View* current() const;

    /// Precondition: the view is in this frame.
    void raise(const View* view);

Q_SIGNALS:
    void commandRequested(View* view);
    void exportRequested(View* view);

private:
    std::vector<View*> m_views;
    QTabBar* m_titles;
    QStackedWidget* m_pages;
};

} // namespace meshwright::ui
