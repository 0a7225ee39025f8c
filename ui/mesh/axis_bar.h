// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_topology.h"

#include <QAbstractButton>

#include <vector>

namespace meshwright::ui {

/// A mesh axis as a button: its name and size, what of the machine it lies on, its links' bandwidth. Lit while its links are.
class AxisCard : public QAbstractButton {
    Q_OBJECT

public:
    AxisCard(const DrawnMeshAxis& axis, QWidget* parent);

    const QString& axis() const { return m_axis; }
    void setLit(bool isLit);
    bool isLit() const { return m_isLit; }

    QSize sizeHint() const override;

Q_SIGNALS:
    void attended(); ///< the pointer or the keyboard came
    void left(); ///< or went

protected:
    void paintEvent(QPaintEvent* event) override;
    void enterEvent(QEnterEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    QFont titleFont() const;

    QString m_axis;
    QString m_title; ///< `data = 4`
    QString m_links; ///< `x, ICI 45.0 GB/s each way`
    QString m_notes; ///< `2 groups, shares links with model`
    bool m_needsLinks = true;
    bool m_isLit = false;
};

/// The cards of all mesh axes, from left to right, in as many rows as the width needs.
class AxisBar : public QWidget {
    Q_OBJECT

public:
    explicit AxisBar(QWidget* parent = nullptr);

    void setAxes(const std::vector<DrawnMeshAxis>& axes);
    void setLit(const QString& axis); ///< empty: none

    /// The axis whose card has the keyboard's focus; empty: none.
    QString focusedAxis() const;
    AxisCard* card(const QString& axis) const;

    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override { return arrange(width, false); }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void attended(const QString& axis);
    void left();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    int arrange(int width, bool moves) const;

    std::vector<DrawnMeshAxis> m_axes;
    std::vector<AxisCard*> m_cards;
};

} // namespace meshwright::ui
