// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_canvas.h"

#include "ui/timeline/slice_facts.h"
#include "ui/timeline/timeline_steps.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace meshwright::ui {

namespace {

constexpr double kZoomOfNotch = 1.25;
constexpr double kNotch = 120.0; ///< of QWheelEvent
constexpr double kPixelsOfNotch = 90.0; ///< that a turn of the wheel moves
constexpr double kSnapPixels = 6.0;
constexpr double kReach = 3.0; ///< pixels around the pointer in which short slices are picked
constexpr double kFramedShare = 0.8; ///< of the width that a framed slice takes
constexpr double kCentred = 0.01; ///< of the window: as good as in its centre

} // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent)
    : QWidget(parent)
    , m_scroll(new QScrollBar(Qt::Vertical, this))
{
    m_scene.model = std::make_shared<const TimelineModel>();
    m_scene.axis = TimeAxis(*m_scene.model, false);
    m_scene.window = m_scene.axis.whole();
    m_history = ZoomHistory(m_scene.window);
    m_clock.start();
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Timeline"));
    m_scroll->setAccessibleName(tr("Rows of the timeline"));
    m_scroll->setSingleStep(20);
    connect(m_scroll, &QScrollBar::valueChanged, this, [this](int value) {
        m_scene.scrolled = value;
        invalidateRows();
    });
    relayout();
}

void TimelineCanvas::invalidateRows()
{
    m_hasRows = false;
    update();
}

void TimelineCanvas::setModel(std::shared_ptr<const TimelineModel> model)
{
    const bool showedAll = m_scene.window == m_scene.axis.whole();
    m_scene.model = std::move(model);
    m_scene.axis = TimeAxis(*m_scene.model, m_scene.axis.isStretched());
    m_scene.window = showedAll ? m_scene.axis.whole() : m_scene.axis.clamped(m_scene.window);
    m_history = ZoomHistory(m_scene.window);
    m_selected.reset();
    m_counterpart.reset();
    m_selectedName.clear();
    m_hovered.reset();
    m_hoveredName.clear();
    m_headingCursor.reset();
    m_area.reset();
    m_matches.reset();
    m_minimap = QImage();
    std::erase_if(m_scene.collapsed, [&](std::uint32_t group) { return group >= m_scene.model->groups().size(); });
    relayout();
    Q_EMIT windowChanged();
}

void TimelineCanvas::setStretched(bool isStretched)
{
    if (isStretched == m_scene.axis.isStretched())
        return;
    const bool showedAll = m_scene.window == m_scene.axis.whole();
    const TimeAxis before = m_scene.axis;
    m_scene.axis = TimeAxis(*m_scene.model, isStretched);
    const auto converted = [&](TimeWindow window) {
        return m_scene.model->groups().empty() ? m_scene.axis.whole() : m_scene.axis.fromSeconds(0, before.toSeconds(0, window));
    };
    m_scene.window = showedAll ? m_scene.axis.whole() : m_scene.axis.clamped(converted(m_scene.window));
    m_history = ZoomHistory(m_scene.window);
    m_area.reset();
    m_minimap = QImage();
    relayout();
    Q_EMIT areaChanged();
    Q_EMIT windowChanged();
}

void TimelineCanvas::relayout()
{
    const int barWidth = m_scroll->sizeHint().width();
    const int height = std::max(1, this->height() - kTop);
    const bool hasOwnRulers = m_scene.axis.isStretched();
    m_scene.layout = RowLayout(*m_scene.model, m_scene.collapsed, hasOwnRulers, height);
    const bool scrolls = m_scene.layout.height() > height;
    m_scene.size = QSize(std::max(kGutterWidth + 1, width() - (scrolls ? barWidth : 0)), height);
    m_scroll->setVisible(scrolls);
    m_scroll->setGeometry(width() - barWidth, kTop, barWidth, height);
    m_scroll->setRange(0, scrolls ? static_cast<int>(std::ceil(m_scene.layout.height())) - height : 0);
    m_scroll->setPageStep(height);
    m_scene.scrolled = m_scroll->value();
    invalidateRows();
}

QSize TimelineCanvas::sizeHint() const
{
    const double rows = RowLayout::naturalHeight(*m_scene.model, m_scene.axis.isStretched());
    return {900, kTop + static_cast<int>(std::clamp(rows, 120.0, 700.0)) + 8};
}

QSize TimelineCanvas::minimumSizeHint() const
{
    return {kGutterWidth + 200, kTop + 90};
}

QRect TimelineCanvas::minimapRect() const
{
    return {kGutterWidth, 4, m_scene.size.width() - kGutterWidth, kMinimapHeight - 8};
}

QRect TimelineCanvas::rulerRect() const
{
    return {kGutterWidth, kMinimapHeight, m_scene.size.width() - kGutterWidth, kRulerHeight};
}

QRect TimelineCanvas::rowsRect() const
{
    return {kGutterWidth, kTop, m_scene.size.width() - kGutterWidth, m_scene.size.height()};
}

std::optional<std::size_t> TimelineCanvas::lineOf(SliceId slice) const
{
    const ModelGroup& group = m_scene.model->groups()[slice.group];
    const auto place = static_cast<std::uint32_t>(&m_scene.model->rowOf(slice) - group.rows.data());
    return m_scene.layout.lineOf(slice.group, place);
}

QRectF TimelineCanvas::rectOf(SliceId slice) const
{
    const auto index = lineOf(slice);
    if (!index)
        return {};
    const LayoutLine& line = m_scene.layout.lines()[*index];
    const TimelinePart& part = m_scene.model->partOf(slice);
    const double perUnit = m_scene.axis.secondsPerUnit(slice.group);
    const double left = m_scene.x(part.start(slice.slice) / perUnit);
    const double right = m_scene.x(part.end(slice.slice) / perUnit);
    return {left, kTop + line.top - m_scene.scrolled, right - left, line.height};
}

QRect TimelineCanvas::headingRect(std::uint32_t group) const
{
    for (const LayoutLine& line : m_scene.layout.lines()) {
        if (line.group == group && line.isHeading())
            return QRectF(0.0, kTop + line.top - m_scene.scrolled, m_scene.size.width(), line.height).toRect();
    }
    return {};
}

// The window

void TimelineCanvas::show(TimeWindow window, ZoomGesture gesture)
{
    window = m_scene.axis.clamped(window);
    if (window == m_scene.window)
        return;
    m_history.show(window, gesture, m_clock.elapsed());
    m_scene.window = window;
    invalidateRows();
    Q_EMIT windowChanged();
}

void TimelineCanvas::fit()
{
    show(m_scene.axis.whole());
}

void TimelineCanvas::zoomAt(double at, double factor, ZoomGesture gesture)
{
    show(m_scene.axis.zoomed(m_scene.window, at, factor), gesture);
}

void TimelineCanvas::undoZoom()
{
    m_history.undo();
    m_scene.window = m_history.window();
    invalidateRows();
    Q_EMIT windowChanged();
}

void TimelineCanvas::redoZoom()
{
    m_history.redo();
    m_scene.window = m_history.window();
    invalidateRows();
    Q_EMIT windowChanged();
}

void TimelineCanvas::reveal(SliceId slice)
{
    setCollapsed(slice.group, false);
    const TimelinePart& part = m_scene.model->partOf(slice);
    const TimeWindow units = m_scene.axis.fromSeconds(slice.group, {part.start(slice.slice), part.end(slice.slice)});
    const TimeWindow& window = m_scene.window;
    if (units.begin < window.begin || units.end > window.end) {
        if (units.length() > kFramedShare * window.length()) {
            const double margin = units.length() * (1.0 - kFramedShare) / 2.0;
            show({units.begin - margin, units.end + margin});
        } else {
            show(m_scene.axis.moved(window, (units.begin + units.end - window.begin - window.end) / 2.0));
        }
    }
    if (const auto line = lineOf(slice)) {
        const LayoutLine& row = m_scene.layout.lines()[*line];
        if (row.top < m_scene.scrolled)
            m_scroll->setValue(static_cast<int>(row.top - RowLayout::kDeviceGap));
        else if (row.bottom() > m_scene.scrolled + m_scene.size.height())
            m_scroll->setValue(static_cast<int>(std::ceil(row.bottom())) - m_scene.size.height());
    }
}

void TimelineCanvas::revealGroup(std::uint32_t group)
{
    setCollapsed(group, false);
    const auto& lines = m_scene.layout.lines();
    const auto heading = std::find_if(
        lines.begin(), lines.end(), [&](const LayoutLine& line) { return line.group == group && line.isHeading(); });
    if (heading != lines.end())
        m_scroll->setValue(static_cast<int>(heading->top));
}

void TimelineCanvas::frameSelection()
{
    TimeWindow units;
    if (m_selected) {
        const TimelinePart& part = m_scene.model->partOf(*m_selected);
        units = m_scene.axis.fromSeconds(m_selected->group, {part.start(m_selected->slice), part.end(m_selected->slice)});
        reveal(*m_selected);
    } else if (m_area) {
        units = m_area->window;
    } else {
        return;
    }
    const double offset = (units.begin + units.end - m_scene.window.begin - m_scene.window.end) / 2.0;
    const TimeWindow centred = m_scene.axis.moved(m_scene.window, offset);
    if (std::abs(centred.begin - m_scene.window.begin) > kCentred * m_scene.window.length())
        return show(centred);
    const double length = std::max(units.length() / kFramedShare, 1e-9 * m_scene.axis.end());
    const double middle = (units.begin + units.end) / 2.0;
    show({middle - length / 2.0, middle + length / 2.0});
}

// What is selected

void TimelineCanvas::setSelected(std::optional<SliceId> slice)
{
    m_selected = slice;
    m_counterpart = slice ? waitingCounterpart(*m_scene.model, *slice) : std::nullopt;
    m_selectedName = slice ? m_scene.model->findName(m_scene.model->nameOf(*slice)) : std::vector<std::optional<std::uint32_t>>{};
    if (slice)
        m_headingCursor.reset();
    setAccessibleDescription(slice ? QString::fromStdString(shortFacts(*m_scene.model, *slice)) : QString());
    update();
}

void TimelineCanvas::setArea(std::optional<TimelineArea> area)
{
    if (area == m_area)
        return;
    m_area = std::move(area);
    update();
    Q_EMIT areaChanged();
}

void TimelineCanvas::setMatches(std::shared_ptr<const SearchMatches> matches)
{
    m_matches = std::move(matches);
    update();
}

void TimelineCanvas::setMarkedDevices(std::set<std::int64_t> devices)
{
    m_scene.markedDevices = std::move(devices);
    invalidateRows();
}

void TimelineCanvas::setDimmed(bool isDimmed)
{
    m_isDimmed = isDimmed;
    update();
}

void TimelineCanvas::setMessage(const QString& message)
{
    m_message = message;
    update();
}

void TimelineCanvas::setCollapsed(std::uint32_t group, bool isCollapsed)
{
    if (isCollapsed == this->isCollapsed(group))
        return;
    if (isCollapsed)
        m_scene.collapsed.insert(group);
    else
        m_scene.collapsed.erase(group);
    relayout();
}

// Under the pointer

TimeWindow TimelineCanvas::secondsAround(QPointF position, std::uint32_t group, double pixels) const
{
    return m_scene.axis.toSeconds(group, {m_scene.at(position.x() - pixels), m_scene.at(position.x() + pixels)});
}

TimelineCanvas::Hit TimelineCanvas::hitAt(QPointF position) const
{
    Hit hit;
    if (position.y() < kTop || position.y() >= height())
        return hit;
    hit.line = m_scene.layout.lineAt(toRows(position).y());
    if (!hit.line || m_scene.layout.lines()[*hit.line].isHeading() || position.x() < kGutterWidth)
        return hit;
    const LayoutLine& line = m_scene.layout.lines()[*hit.line];
    const TimelinePart& part = *m_scene.model->groups()[line.group].part;
    const std::uint32_t row = m_scene.model->groups()[line.group].rows[*line.place].row;
    const TimeWindow pixel = secondsAround(position, line.group, 0.5);
    const auto slice = part.sliceAt(row, (pixel.begin + pixel.end) / 2.0);
    if (slice && part.end(*slice) - part.start(*slice) >= pixel.length() / m_scene.ratio)
        hit.slice = SliceId{line.group, *slice};
    else
        hit.isFolded = longestIn(part, row, pixel).has_value();
    return hit;
}

std::optional<SliceId> TimelineCanvas::pickAt(QPointF position) const
{
    const Hit hit = hitAt(position);
    if (hit.slice || !hit.line || position.x() < kGutterWidth)
        return hit.slice;
    const LayoutLine& line = m_scene.layout.lines()[*hit.line];
    if (line.isHeading())
        return std::nullopt;
    const ModelGroup& group = m_scene.model->groups()[line.group];
    for (const double reach : {0.5, kReach}) {
        if (const auto slice = longestIn(*group.part, group.rows[*line.place].row, secondsAround(position, line.group, reach)))
            return SliceId{line.group, *slice};
    }
    return std::nullopt;
}

double TimelineCanvas::pointerOrMiddle() const
{
    const QPoint pointer = mapFromGlobal(QCursor::pos());
    if (m_guide && rect().contains(pointer))
        return *m_guide;
    return (m_scene.window.begin + m_scene.window.end) / 2.0;
}

void TimelineCanvas::hover(QPointF position)
{
    const bool isOverTime = position.x() >= kGutterWidth && position.y() >= kMinimapHeight;
    m_guide = isOverTime ? std::optional(m_scene.at(position.x())) : std::nullopt;
    const Hit hit = hitAt(position);
    if (hit.slice != m_hovered) {
        m_hovered = hit.slice;
        m_hoveredName = m_hovered ? m_scene.model->findName(m_scene.model->nameOf(*m_hovered))
                                  : std::vector<std::optional<std::uint32_t>>{};
    }
    const bool isOverHeading = hit.line && m_scene.layout.lines()[*hit.line].isHeading();
    const bool isOverRuler = isOverTime && position.y() < kTop;
    setCursor(isOverHeading || hit.slice ? Qt::PointingHandCursor : isOverRuler ? Qt::SplitHCursor : Qt::ArrowCursor);
    update();
}

void TimelineCanvas::leaveEvent(QEvent*)
{
    m_guide.reset();
    m_hovered.reset();
    m_hoveredName.clear();
    update();
}

bool TimelineCanvas::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const Hit hit = hitAt(help->pos());
    std::string text;
    if (hit.slice) {
        text = shortFacts(*m_scene.model, *hit.slice);
    } else if (hit.line) {
        const LayoutLine& line = m_scene.layout.lines()[*hit.line];
        const ModelGroup& group = m_scene.model->groups()[line.group];
        if (line.isHeading())
            text = group.title;
        else if (help->pos().x() < kGutterWidth)
            text = group.rows[*line.place].text();
        else if (hit.isFolded)
            text = foldedFacts(*m_scene.model, line.group, *line.place, secondsAround(help->pos(), line.group, 0.5));
    } else if (rulerRect().contains(help->pos())) {
        text = tr("Drag to select a span of time and add it up").toStdString();
    } else if (minimapRect().contains(help->pos())) {
        text = tr("The whole step; drag to move the window").toStdString();
    }
    if (text.empty())
        QToolTip::hideText();
    else
        QToolTip::showText(help->globalPos(), QString::fromStdString(text), this);
    return true;
}

// Mouse

void TimelineCanvas::mousePressEvent(QMouseEvent* event)
{
    const QPointF position = event->position();
    m_pressed = position;
    m_pressedWindow = m_scene.window;
    m_pressedScroll = m_scene.scrolled;
    m_showsFocus = false;
    if (event->button() == Qt::MiddleButton) {
        m_drag = Drag::Pan;
    } else if (event->button() == Qt::LeftButton) {
        m_drag = Drag::Pressed;
        m_areaHasAllRows = rulerRect().contains(position.toPoint());
        m_pressedForArea = m_areaHasAllRows || (event->modifiers() & Qt::ShiftModifier);
        if (position.y() < kMinimapHeight && position.x() >= kGutterWidth) {
            m_drag = Drag::Minimap;
            showFromMinimap(position.x());
        }
    }
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF position = event->position();
    if (m_drag == Drag::Pressed && (position - m_pressed).manhattanLength() >= QApplication::startDragDistance())
        m_drag = m_pressedForArea ? Drag::Area : Drag::Pan;
    switch (m_drag) {
    case Drag::Pan:
        setCursor(Qt::ClosedHandCursor);
        m_scroll->setValue(static_cast<int>(std::lround(m_pressedScroll + m_pressed.y() - position.y())));
        show(m_scene.axis.moved(m_pressedWindow, (m_pressed.x() - position.x()) * m_scene.unitsPerPixel()), ZoomGesture::Drag);
        break;
    case Drag::Area:
        dragArea(position);
        hover(position);
        break;
    case Drag::Minimap:
        showFromMinimap(position.x());
        break;
    case Drag::None:
    case Drag::Pressed:
        hover(position);
    }
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event)
{
    const Drag drag = m_drag;
    m_drag = Drag::None;
    if (drag == Drag::Pressed)
        click(event->position());
    hover(event->position());
}

void TimelineCanvas::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || event->position().y() < kTop)
        return mousePressEvent(event);
    if (const auto slice = pickAt(event->position())) {
        select(slice);
        frameSelection();
        frameSelection();
    }
}

void TimelineCanvas::click(QPointF position)
{
    if (m_areaHasAllRows)
        return setArea(std::nullopt);
    const Hit hit = hitAt(position);
    if (hit.line && m_scene.layout.lines()[*hit.line].isHeading()) {
        const std::uint32_t group = m_scene.layout.lines()[*hit.line].group;
        return setCollapsed(group, !isCollapsed(group));
    }
    if (position.x() >= kGutterWidth && position.y() >= kTop)
        select(pickAt(position));
}

void TimelineCanvas::select(std::optional<SliceId> slice)
{
    setSelected(slice);
    Q_EMIT sliceClicked();
}

double TimelineCanvas::snapped(double at) const
{
    double best = at;
    double distance = kSnapPixels * m_scene.unitsPerPixel();
    const auto [first, last] = m_scene.layout.linesIn(m_scene.scrolled, m_scene.scrolled + m_scene.size.height());
    for (std::size_t i = first; i < last; ++i) {
        const LayoutLine& line = m_scene.layout.lines()[i];
        if (line.isHeading())
            continue;
        const ModelGroup& group = m_scene.model->groups()[line.group];
        const double perUnit = m_scene.axis.secondsPerUnit(line.group);
        const auto slice = nearestOf(*group.part, group.rows[*line.place].row, at * perUnit);
        if (!slice)
            continue;
        for (const double edge : {group.part->start(*slice) / perUnit, group.part->end(*slice) / perUnit}) {
            if (std::abs(edge - at) < distance) {
                distance = std::abs(edge - at);
                best = edge;
            }
        }
    }
    return best;
}

void TimelineCanvas::dragArea(QPointF position)
{
    const double whole = m_scene.axis.end();
    const double from = std::clamp(snapped(m_scene.at(m_pressed.x())), 0.0, whole);
    const double to = std::clamp(snapped(m_scene.at(position.x())), 0.0, whole);
    TimelineArea area{{std::min(from, to), std::max(from, to)}, {}};
    if (area.window.length() <= 0.0)
        return;
    if (!m_areaHasAllRows) {
        const auto [top, bottom] = std::minmax({toRows(m_pressed).y(), toRows(position).y()});
        const auto [first, last] = m_scene.layout.linesIn(top, std::nextafter(bottom, 1e300));
        for (std::size_t i = first; i < last; ++i) {
            const LayoutLine& line = m_scene.layout.lines()[i];
            if (!line.isHeading())
                area.rows.emplace_back(line.group, *line.place);
        }
        if (area.rows.empty())
            return;
    }
    setArea(std::move(area));
}

void TimelineCanvas::showFromMinimap(double x)
{
    const double middle = (x - kGutterWidth) / minimapRect().width() * m_scene.axis.end();
    const double offset = middle - (m_scene.window.begin + m_scene.window.end) / 2.0;
    show(m_scene.axis.moved(m_scene.window, offset), ZoomGesture::Drag);
}

void TimelineCanvas::wheelEvent(QWheelEvent* event)
{
    const QPoint delta = event->angleDelta();
    if (event->modifiers() & Qt::ControlModifier) {
        const double at = m_scene.at(std::max<double>(kGutterWidth, event->position().x()));
        zoomAt(at, std::pow(kZoomOfNotch, -delta.y() / kNotch), ZoomGesture::Wheel);
    } else {
        const bool movesAlong = event->modifiers() & Qt::ShiftModifier;
        const int along = movesAlong ? (delta.y() != 0 ? delta.y() : delta.x()) : delta.x();
        if (along != 0)
            show(m_scene.axis.moved(m_scene.window, -along / kNotch * kPixelsOfNotch * m_scene.unitsPerPixel()),
                ZoomGesture::Wheel);
        if (!movesAlong)
            m_scroll->setValue(m_scroll->value() - static_cast<int>(std::lround(delta.y() / kNotch * kPixelsOfNotch)));
    }
    hover(event->position());
    event->accept();
}

// Keys

void TimelineCanvas::focusInEvent(QFocusEvent* event)
{
    m_showsFocus = event->reason() != Qt::MouseFocusReason;
    update();
    QWidget::focusInEvent(event);
}

void TimelineCanvas::focusOutEvent(QFocusEvent* event)
{
    m_showsFocus = false;
    m_headingCursor.reset();
    update();
    QWidget::focusOutEvent(event);
}

void TimelineCanvas::resizeEvent(QResizeEvent*)
{
    relayout();
}

void TimelineCanvas::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) {
        m_minimap = QImage();
        relayout();
    }
    QWidget::changeEvent(event);
}

} // namespace meshwright::ui

#include "moc_timeline_canvas.cpp"
