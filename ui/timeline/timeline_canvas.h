// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/rows_painter.h"
#include "ui/timeline/timeline_search.h"
#include "ui/timeline/timeline_totals.h"
#include "ui/timeline/zoom_history.h"

#include <QElapsedTimer>
#include <QPointF>
#include <QString>
#include <QWidget>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

class QPainter;
class QScrollBar;

namespace meshwright::ui {

/// The rows of a timeline under a ruler and a map of the whole step: zoomed, moved, hovered and selected with mouse and keys. It shows a model;
/// what is selected is told to it by its owner.
class TimelineCanvas : public QWidget {
    Q_OBJECT

public:
    static constexpr int kMinimapHeight = 44;
    static constexpr int kRulerHeight = 26;
    static constexpr int kTop = kMinimapHeight + kRulerHeight; ///< where rows begin

    explicit TimelineCanvas(QWidget* parent = nullptr);

    /// Never null. The window stays where it was, or shows the whole step when it did so before.
    void setModel(std::shared_ptr<const TimelineModel> model);
    const TimelineModel& model() const { return *m_scene.model; }
    const std::shared_ptr<const TimelineModel>& sharedModel() const { return m_scene.model; }

    /// Each group's step over the whole width, with a ruler of its own; or one ruler for all.
    void setStretched(bool isStretched);
    const TimeAxis& axis() const { return m_scene.axis; }

    TimeWindow window() const { return m_scene.window; } ///< units of the axis
    void show(TimeWindow window, ZoomGesture gesture = ZoomGesture::Jump);
    void fit();
    void zoomAt(double at, double factor, ZoomGesture gesture);
    void undoZoom();
    void redoZoom();

    std::optional<SliceId> selected() const { return m_selected; }
    void setSelected(std::optional<SliceId> slice);

    /// Brings a slice into sight, moving no more than needed.
    void reveal(SliceId slice);

    /// Brings the rows of a group into sight, its heading on top. Precondition: the group exists.
    void revealGroup(std::uint32_t group);

    /// Centres the selection; when it is in the centre already, makes it fill most of the width. Without one, the area.
    void frameSelection();

    const std::optional<TimelineArea>& area() const { return m_area; }
    void setArea(std::optional<TimelineArea> area);

    void setMatches(std::shared_ptr<const SearchMatches> matches); ///< null: none
    void setMarkedDevices(std::set<std::int64_t> devices);
    void setDimmed(bool isDimmed); ///< what is shown is not the latest
    void setMessage(const QString& message); ///< in the middle, over everything; empty: none

    bool isCollapsed(std::uint32_t group) const { return m_scene.collapsed.contains(group); }
    void setCollapsed(std::uint32_t group, bool isCollapsed);
    const std::set<std::uint32_t>& collapsed() const { return m_scene.collapsed; }

    /// Where things are, in the widget's pixels.
    QRect minimapRect() const;
    QRect rulerRect() const;
    QRect rowsRect() const; ///< without the gutter
    QRectF rectOf(SliceId slice) const; ///< null when its row is not shown
    QRect headingRect(std::uint32_t group) const;

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    void sliceClicked(); ///< selected() is what was clicked, nothing beside all slices
    void areaChanged();
    void windowChanged();
    void searchRequested();
    void matchRequested(int step);
    void clockRequested();
    void scaleRequested();
    void helpRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool event(QEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    struct Hit {
        std::optional<std::size_t> line;
        std::optional<SliceId> slice;
        bool isFolded = false; ///< slices there are too short to be drawn
    };
    enum class Drag : std::uint8_t { None, Pressed, Pan, Area, Minimap };

    Hit hitAt(QPointF position) const;
    TimeWindow secondsAround(QPointF position, std::uint32_t group, double pixels) const;
    std::optional<SliceId> pickAt(QPointF position) const;
    std::optional<std::size_t> lineOf(SliceId slice) const;
    double snapped(double at) const;
    double pointerOrMiddle() const;
    QPointF toRows(QPointF position) const { return {position.x(), position.y() - kTop + m_scene.scrolled}; }

    void invalidateRows();
    void relayout();
    void click(QPointF position);
    void hover(QPointF position);
    void select(std::optional<SliceId> slice);
    void step(int direction, bool onRow);
    void moveHeadingCursor(int direction);
    void dragArea(QPointF position);
    void showFromMinimap(double x);
    bool keyOnHeading(QKeyEvent& event);
    bool zoomKey(QKeyEvent& event);
    bool stepKey(QKeyEvent& event);

    void ensureRows();
    void paintMinimap(QPainter& painter);
    struct Ruler {
        std::optional<std::uint32_t> group; ///< nothing: of the axis
        QRectF area; ///< right of the gutter
        int fontPixels = 11;
    };
    std::vector<Ruler> rulers() const;
    void paintRuler(QPainter& painter, const Ruler& ruler) const;
    QRectF guidePlate(const Ruler& ruler) const; ///< of the moment under the pointer; null without one
    QString guideText(const Ruler& ruler) const;
    void paintArea(QPainter& painter) const;
    void paintMatches(QPainter& painter) const;
    void paintNamed(QPainter& painter, const std::vector<std::optional<std::uint32_t>>& names, QColor colour) const;
    void paintSelection(QPainter& painter) const;
    void paintGuide(QPainter& painter) const;
    void paintMessage(QPainter& painter) const;
    QString lengthText(TimeWindow window) const;
    QColor colour(ColourRole role) const;
    template <typename Visit>
    void forEachDrawn(Visit visit) const;

    RowsScene m_scene;
    RowsPainter m_painter;
    RowsPicture m_picture;
    bool m_hasRows = false; ///< m_picture is of m_scene
    QImage m_minimap;
    QScrollBar* m_scroll = nullptr;
    ZoomHistory m_history;
    QElapsedTimer m_clock;

    std::optional<SliceId> m_selected;
    std::optional<SliceId> m_counterpart; ///< what waited for the selected slice, or what it waited for
    std::vector<std::optional<std::uint32_t>> m_selectedName; ///< by group
    std::optional<SliceId> m_hovered;
    std::vector<std::optional<std::uint32_t>> m_hoveredName;
    std::optional<double> m_guide; ///< units of the axis, under the pointer
    std::optional<std::uint32_t> m_headingCursor; ///< the heading that the keyboard is on
    std::optional<TimelineArea> m_area;
    std::shared_ptr<const SearchMatches> m_matches;
    bool m_isDimmed = false;
    bool m_showsFocus = false; ///< it came by keyboard
    QString m_message;

    Drag m_drag = Drag::None;
    QPointF m_pressed;
    TimeWindow m_pressedWindow;
    double m_pressedScroll = 0.0;
    bool m_pressedForArea = false;
    bool m_areaHasAllRows = false;
};

} // namespace meshwright::ui
