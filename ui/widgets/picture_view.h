// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <QString>
#include <QWidget>

namespace meshwright::ui {

/// Shows a display list at its own size (the widget's minimum), centred where there is more room. Hovering shows an item's tooltip; items
/// with an id can be clicked, and reached by Tab and the arrow keys, Return being a click. Disabled, the picture is pale.
class PictureView : public QWidget {
    Q_OBJECT

public:
    explicit PictureView(QWidget* parent = nullptr);

    void setPicture(DisplayList picture);
    const DisplayList& picture() const { return m_picture; }

    /// Where the middle of the first item with this id is, in the widget; null when there is none.
    QPoint placeOf(const QString& id) const;

    /// Where the picture's top left corner is, in the widget.
    QPointF origin() const;

    /// A place in the widget, in the picture.
    Point toPicture(QPointF position) const;

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

Q_SIGNALS:
    void hovered(const QString& id); ///< empty: over nothing that has an id
    void clicked(const QString& id, Qt::KeyboardModifiers modifiers); ///< empty: beside everything

protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool event(QEvent* event) override;

private:
    void setHovered(const QString& id);
    void moveFocus(int step);

    DisplayList m_picture;
    QString m_hovered;
    QString m_focused; ///< the item that the keyboard is on; empty: none
};

/// The frame of an item in picture coordinates; empty for texts and lines without extent.
QRectF frameOf(const DisplayItem& item);

} // namespace meshwright::ui
