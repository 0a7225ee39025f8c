// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;

namespace meshwright::ui {

/// What is seen in the place of views that show a study while none is open: what they would show, and how to come to it.
class EmptyPage : public QWidget {
    Q_OBJECT

public:
    explicit EmptyPage(QWidget* parent = nullptr);

    /// What the views would show: "See what a step's time goes to".
    void setMeaning(const QString& meaning);

Q_SIGNALS:
    void startRequested();
    void openRequested();

private:
    QLabel* m_meaning;
};

} // namespace meshwright::ui
