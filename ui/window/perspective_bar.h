// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QAbstractButton;
class QButtonGroup;

namespace meshwright::ui {

/// What a perspective's sign shows, beside its name.
enum class Sign { Design, Time, Memory, Why, Search, Train, Explain, Pages, Report };

/// The perspectives, one below the other at the window's left edge: a sign and a name each; one of them is current.
class PerspectiveBar : public QWidget {
    Q_OBJECT

public:
    explicit PerspectiveBar(QWidget* parent = nullptr);

    void addPerspective(const QString& name, const QString& meaning, Sign sign);

    void setCurrent(int index);

    QSize sizeHint() const override;

Q_SIGNALS:
    void chosen(int index);

private:
    QButtonGroup* m_buttons;
};

} // namespace meshwright::ui
