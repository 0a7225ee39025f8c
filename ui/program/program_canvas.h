// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_graph.h"

#include <QWidget>

#include <memory>
#include <optional>

namespace meshwright::ui {

/// A graph that is moved and zoomed: the wheel zooms at the pointer, dragging and the scroll of a touchpad move it, a click selects a node, a
/// double click or Return opens it. Arrow keys go along edges and between neighbours, W and S zoom, 0 fits all, F centres what is selected.
/// Disabled, it is pale. Only what can be seen is drawn.
class ProgramCanvas : public QWidget {
    Q_OBJECT

public:
    explicit ProgramCanvas(QWidget* parent = nullptr);

    /// Another graph, all of it or its left end. Precondition: `layout` is that of `drawing`.
    void setGraph(GraphDrawing drawing, LayeredLayout layout);

    /// The same program drawn otherwise: nothing is zoomed, and a node stays where another one was.
    struct Kept {
        std::size_t before = 0; ///< of the graph that is shown
        std::size_t now = 0;
    };
    void exchangeGraph(GraphDrawing drawing, LayeredLayout layout, std::optional<Kept> kept);

    /// The same graph with other words and emphasis.
    void setDrawing(GraphDrawing drawing);

    const GraphDrawing& drawing() const { return m_drawing; }

    void setCurrent(std::optional<std::size_t> node); ///< where the keyboard is
    void fit(); ///< all of it, not larger than life
    void zoom(double factor); ///< about the middle
    void bringIntoView(std::size_t node);

    /// Moves the graph by pixels of the screen.
    void pan(QPointF by);

    /// Where the middle of a node is, in the widget.
    QPoint placeOf(std::size_t node) const;
    double scale() const { return m_scale; }

    QSize minimumSizeHint() const override { return {280, 150}; }

Q_SIGNALS:
    void nodeChosen(std::size_t node);
    void nodeOpened(std::size_t node); ///< the user wants to see what is in it, or no longer
    void nothingChosen();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool event(QEvent* event) override;

private:
    enum class Way { Left, Right, Up, Down };

    std::optional<std::size_t> nodeAt(QPointF place) const;
    QRectF frameOf(std::size_t node) const; ///< in the widget
    QPointF middleOf(std::size_t node) const; ///< in the layout
    void zoomAt(double factor, QPointF place);
    void keepInReach();
    void go(Way way);
    std::optional<std::size_t> neighbour(Way way) const;

    GraphDrawing m_drawing;
    LayeredLayout m_layout;
    QPointF m_topLeft; ///< of the widget, in the layout
    double m_scale = 1.0;
    bool m_isFitted = true; ///< it follows the size of the widget
    std::optional<std::size_t> m_current;
    QPointF m_pressed;
    QPointF m_last;
    bool m_isDragged = false;
};

} // namespace meshwright::ui
