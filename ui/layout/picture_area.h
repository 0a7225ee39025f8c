// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/widgets/picture_view.h"

#include <QScrollArea>

namespace meshwright::ui {

/// A picture that is drawn anew for the room it has, and for more room when it is zoomed into: texts keep their size, shapes grow.
/// Ctrl+wheel zooms at the pointer, + and - at the middle, 0 fits again.
class PictureArea : public QScrollArea {
    Q_OBJECT

public:
    explicit PictureArea(QWidget* parent = nullptr);

    static constexpr double kLargestZoom = 16.0;

    PictureView* view() const { return m_view; }

    /// 1: all of the picture is seen.
    double zoom() const { return m_zoom; }

    /// The size that the picture should have: the area's times the zoom.
    QSizeF wantedSize() const;

    void setPicture(DisplayList picture);

public Q_SLOTS:
    void zoomIn();
    void zoomOut();
    void fit();

Q_SIGNALS:
    void redrawWanted(); ///< the wanted size is another one; who listens calls setPicture at once
    void zoomChanged(double zoom);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    /// What is under `anchor` (a place in the viewport) stays there.
    void zoomTo(double zoom, QPointF anchor);
    void zoomAtMiddle(double factor);
    QRectF frameInView(const std::string& id) const; ///< empty: there is no such item
    void resizeView();
    void showFocused(const QString& id);

    PictureView* m_view;
    double m_zoom = 1.0;
    bool m_byKeyboard = false; ///< the last thing that moved the highlight was a key
};

} // namespace meshwright::ui
