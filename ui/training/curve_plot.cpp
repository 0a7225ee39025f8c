// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/training/curve_plot.h"

#include "ui/theme/theme.h"
#include "ui/training/thinning.h"

#include <qcustomplot.h>

#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QStyle>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright::ui {

namespace {

constexpr int kFrame = 2; ///< pixels around the charts: where the focus is shown
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// Powers of ten, the lowest of which may stand for zero.
class DecadeTicker : public QCPAxisTicker {
public:
    int equalAt = std::numeric_limits<int>::min(); ///< the exponent that stands for zero; none
    int most = 6; ///< ticks

protected:
    double getTickStep(const QCPRange& range) override { return std::max(1.0, std::ceil(range.size() / most)); }
    int getSubTickCount(double) override { return 0; }
    QString getTickLabel(double tick, const QLocale&, QChar, int) override
    {
        const int exponent = qRound(tick);
        return exponent == equalAt ? QCoreApplication::translate("CurvePlot", "equal") : QStringLiteral("1e%1").arg(exponent);
    }
    QVector<double> createTickVector(double tickStep, const QCPRange& range) override
    {
        QVector<double> ticks;
        const double lowest = equalAt == std::numeric_limits<int>::min() ? std::ceil(range.lower) : equalAt;
        for (double tick = lowest; tick <= range.upper; tick += tickStep)
            ticks.append(tick);
        return ticks;
    }
};

class PercentTicker : public QCPAxisTicker {
protected:
    QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override
    {
        return QCPAxisTicker::getTickLabel(tick, locale, format, precision) + QStringLiteral(" %");
    }
};

struct Panel {
    PlotPanel what;
    QCPAxisRect* rect = nullptr;
    QCPLegend* legend = nullptr;
    QCPItemLine* mark = nullptr;
    std::vector<QCPItemLine*> moments;
    std::vector<QCPGraph*> graphs;
    std::vector<std::vector<double>> values; ///< as drawn: percent, exponents of ten
    std::vector<std::vector<double>> given;
    QSharedPointer<DecadeTicker> decades;

    QCPAxis* x() const { return rect->axis(QCPAxis::atBottom); }
    QCPAxis* y() const { return rect->axis(QCPAxis::atLeft); }
};

QColor translucent(QColor colour)
{
    colour.setAlphaF(0.45F);
    return colour;
}

/// A range with some room at both ends, also for a single value.
QCPRange roomy(double lowest, double highest, double share)
{
    const double span = highest - lowest;
    const double room = span > 0.0 ? share * span : std::max(std::abs(highest) * share, 1e-12);
    return {lowest - room, highest + room};
}

} // namespace

class CurvePlot::Implementation {
public:
    Implementation(CurvePlot& owner, std::vector<PlotPanel> panels)
        : m_owner(owner)
        , m_plot(new QCustomPlot(&owner))
        , m_message(new QLabel(&owner))
    {
        m_plot->setFocusPolicy(Qt::NoFocus); // clicks give it to the owner
        m_plot->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
        m_plot->setAutoAddPlottableToLegend(false);
        m_plot->plotLayout()->clear();
        m_plot->plotLayout()->setRowSpacing(4);
        auto* left = new QCPMarginGroup(m_plot);
        for (PlotPanel& what : panels)
            addPanel(std::move(what), left);
        m_panels.back().x()->setLabel(QCoreApplication::translate("CurvePlot", "step"));
        m_panels.back().x()->setTickLabels(true);

        m_message->setAlignment(Qt::AlignCenter);
        m_message->setWordWrap(true);
        m_message->setAttribute(Qt::WA_TransparentForMouseEvents);
        m_message->hide();

        QObject::connect(m_plot, &QCustomPlot::mouseMove, &owner, [this](QMouseEvent* event) { markAt(event->position()); });
        QObject::connect(m_plot, &QCustomPlot::mouseDoubleClick, &owner, [this] { showAll(); });
    }

    void place()
    {
        const QRect inside = m_owner.rect().adjusted(kFrame, kFrame, -kFrame, -kFrame);
        m_plot->setGeometry(inside);
        m_message->setGeometry(inside.adjusted(40, 0, -40, 0));
        fitScales(inside.height());
    }

    /// Titles and numbers of the y axes, as many as the charts are high enough for.
    void fitScales(int height)
    {
        const QFontMetrics metrics(m_owner.font());
        const double forStepAxis = 3.2 * metrics.height();
        double shares = 0.0;
        for (const Panel& panel : m_panels)
            shares += panel.what.share;
        for (Panel& panel : m_panels) {
            const double room = (height - forStepAxis) * panel.what.share / shares - 0.6 * metrics.height();
            const int numbers = std::clamp(static_cast<int>(room / (1.3 * metrics.height())), 1, 6);
            if (panel.decades)
                panel.decades->most = numbers;
            else
                panel.y()->ticker()->setTickCount(std::min(numbers, 4));
            panel.y()->setLabel(metrics.elidedText(panel.what.title, Qt::ElideRight, std::max(0, static_cast<int>(room))));
        }
    }

    void setSteps(std::int64_t steps)
    {
        const double wanted = static_cast<double>(std::max<std::int64_t>(steps, 1));
        m_steps = wanted;
        if (m_showsAll)
            showSteps(allSteps());
    }

    void setValues(std::size_t panel, std::size_t curve, std::vector<double> values)
    {
        m_panels[panel].given[curve] = std::move(values);
        m_isStale = true;
    }

    void setMoments(std::vector<PlotMoment> moments)
    {
        if (moments == m_moments)
            return;
        m_moments = std::move(moments);
        for (QCPItemText* text : m_momentTexts)
            m_plot->removeItem(text);
        m_momentTexts.clear();
        for (Panel& panel : m_panels) {
            for (QCPItemLine* line : panel.moments)
                m_plot->removeItem(line);
            panel.moments.clear();
            for (const PlotMoment& moment : m_moments) {
                panel.moments.push_back(addLine(panel));
                panel.moments.back()->start->setCoords(static_cast<double>(moment.step), 0.0);
                panel.moments.back()->end->setCoords(static_cast<double>(moment.step), 1.0);
            }
        }
        for (std::size_t i = 0; i < m_moments.size(); ++i) {
            auto* text = new QCPItemText(m_plot);
            text->setClipAxisRect(m_panels.front().rect);
            placeOn(m_panels.front(), *text->position);
            text->setPadding(QMargins(5, 0, 5, 0));
            m_momentTexts.push_back(text);
        }
        applyTheme();
    }

    /// Lines, axes and, later, the picture.
    void refresh()
    {
        if (m_isStale) {
            for (Panel& panel : m_panels)
                convert(panel);
        }
        m_isStale = false;
        for (Panel& panel : m_panels)
            fill(panel);
        placeMarks();
        placeMoments();
        const bool isEmpty = std::all_of(m_panels.begin(), m_panels.end(), [](const Panel& panel) {
            return std::all_of(panel.given.begin(), panel.given.end(), [](const auto& values) { return values.empty(); });
        });
        m_message->setVisible(isEmpty);
        m_plot->setVisible(!isEmpty);
        m_plot->replot(QCustomPlot::rpQueuedReplot);
    }

    void setMessage(const QString& message)
    {
        m_message->setText(message);
        refresh();
    }

    void applyTheme()
    {
        const Theme theme = themeOf(m_owner.palette());
        const QColor text = qtColour(ColourRole::Text, theme);
        const QColor muted = qtColour(ColourRole::MutedText, theme);
        const QColor background = qtColour(ColourRole::Background, theme);
        const QPen frame(qtColour(ColourRole::Outline, theme), 1);
        const QPen grid(qtColour(ColourRole::Grid, theme), 1);
        m_plot->setBackground(QBrush(background));
        for (Panel& panel : m_panels) {
            panel.rect->setBackground(QBrush(background));
            for (QCPAxis* axis : panel.rect->axes()) {
                axis->setBasePen(frame);
                axis->setTickPen(frame);
                axis->setSubTickPen(frame);
                axis->setTickLabelColor(muted);
                axis->setLabelColor(text);
                axis->setTickLabelFont(m_owner.font());
                axis->setLabelFont(m_owner.font());
                axis->grid()->setPen(grid);
                axis->grid()->setZeroLinePen(grid);
                axis->grid()->setSubGridVisible(false);
            }
            panel.mark->setPen(QPen(qtColour(ColourRole::Accent, theme), 1));
            for (QCPItemLine* line : panel.moments)
                line->setPen(QPen(text, 1, Qt::DashLine));
            QColor plate = qtColour(ColourRole::Surface, theme);
            plate.setAlphaF(0.85F);
            panel.legend->setBrush(plate);
            panel.legend->setBorderPen(grid);
            panel.legend->setTextColor(text);
            panel.legend->setFont(m_owner.font());
            for (std::size_t i = 0; i < panel.graphs.size(); ++i) {
                const PlotCurve& curve = panel.what.curves[i];
                const QColor colour = qtColour(curve.role, theme);
                QPen pen(curve.translucent ? translucent(colour) : colour, curve.width);
                pen.setCapStyle(Qt::FlatCap);
                if (curve.dashed)
                    pen.setDashPattern({5, 4});
                panel.graphs[i]->setPen(pen);
            }
        }
        for (QCPItemText* moment : m_momentTexts) {
            QColor plate = background;
            plate.setAlphaF(0.85F);
            moment->setBrush(plate);
            moment->setColor(text);
            moment->setFont(m_owner.font());
        }
        QPalette palette = m_owner.palette();
        palette.setColor(QPalette::WindowText, muted);
        m_message->setPalette(palette);
        m_plot->replot(QCustomPlot::rpQueuedReplot);
    }

    void mark(std::int64_t step)
    {
        step = std::clamp<std::int64_t>(step, -1, longest() - 1);
        if (step == m_marked)
            return;
        m_marked = step;
        placeMarks();
        m_plot->replot(QCustomPlot::rpQueuedReplot);
        Q_EMIT m_owner.stepMarked(step);
    }

    void showAll()
    {
        showSteps(allSteps());
        refresh();
    }

    void zoom(double factor)
    {
        const QCPRange range = m_panels.front().x()->range();
        const double centre
            = m_marked >= 0 && range.contains(static_cast<double>(m_marked)) ? static_cast<double>(m_marked) : range.center();
        showSteps({centre - (centre - range.lower) * factor, centre + (range.upper - centre) * factor});
        refresh();
    }

    std::int64_t marked() const { return m_marked; }
    std::int64_t longest() const
    {
        std::size_t most = 0;
        for (const Panel& panel : m_panels) {
            for (std::size_t i = 0; i < panel.given.size(); ++i)
                most = std::max(most, panel.what.curves[i].level ? 0 : panel.given[i].size());
        }
        return static_cast<std::int64_t>(most);
    }
    const Panel& panel(std::size_t index) const { return m_panels[index]; }
    QPoint plotOrigin() const { return m_plot->pos(); }
    QCPRange shown() const { return m_panels.front().x()->range(); }

private:
    void addPanel(PlotPanel what, QCPMarginGroup* left)
    {
        Panel panel;
        panel.what = std::move(what);
        panel.rect = new QCPAxisRect(m_plot);
        panel.rect->setMarginGroup(QCP::msLeft | QCP::msRight, left);
        panel.rect->setMinimumMargins(QMargins(8, 6, 12, 4));
        panel.rect->setMinimumSize(60, 26); // three of them fit half a window of 700 pixels
        panel.rect->setRangeDrag(Qt::Horizontal);
        panel.rect->setRangeZoom(Qt::Horizontal);
        const int row = m_plot->plotLayout()->rowCount();
        m_plot->plotLayout()->addElement(row, 0, panel.rect);
        m_plot->plotLayout()->setRowStretchFactor(row, panel.what.share);
        panel.x()->setTickLabels(false);
        panel.x()->setRange(allSteps());
        panel.y()->setLabel(panel.what.title);
        panel.y()->setLabelPadding(4);
        for (QCPAxis* axis : panel.rect->axes())
            axis->setLayer(QStringLiteral("axes"));
        if (panel.what.scale == PlotPanel::Scale::Decades) {
            panel.decades.reset(new DecadeTicker);
            panel.y()->setTicker(panel.decades);
        } else {
            if (panel.what.scale == PlotPanel::Scale::Percent)
                panel.y()->setTicker(QSharedPointer<PercentTicker>::create());
            panel.y()->ticker()->setTickCount(4);
        }
        panel.y()->setNumberFormat(QStringLiteral("g"));
        panel.y()->setNumberPrecision(4);
        addLegend(panel);
        for (const PlotCurve& curve : panel.what.curves) {
            QCPGraph* graph = m_plot->addGraph(panel.x(), panel.y());
            graph->setName(curve.name);
            graph->setAdaptiveSampling(false); // the data is thinned already
            panel.graphs.push_back(graph);
        }
        panel.values.resize(panel.what.curves.size());
        panel.given.resize(panel.what.curves.size());
        panel.mark = addLine(panel);
        panel.mark->setVisible(false);
        QObject::connect(panel.x(), qOverload<const QCPRange&>(&QCPAxis::rangeChanged), &m_owner, [this](const QCPRange& range) {
            if (!m_isMoving) {
                showSteps(range);
                refresh();
            }
        });
        m_panels.push_back(std::move(panel));
    }

    /// By a step, and by a share of the panel's height from its top.
    static void placeOn(const Panel& panel, QCPItemPosition& position)
    {
        position.setAxisRect(panel.rect);
        position.setAxes(panel.x(), panel.y());
        position.setTypeX(QCPItemPosition::ptPlotCoords);
        position.setTypeY(QCPItemPosition::ptAxisRectRatio);
    }

    QCPItemLine* addLine(const Panel& panel)
    {
        auto* line = new QCPItemLine(m_plot);
        line->setClipAxisRect(panel.rect);
        for (QCPItemPosition* position : line->positions())
            placeOn(panel, *position);
        line->setAntialiased(false);
        return line;
    }

    void addLegend(Panel& panel)
    {
        panel.legend = new QCPLegend;
        const bool top = panel.what.legend == Qt::TopLeftCorner || panel.what.legend == Qt::TopRightCorner;
        const bool leftSide = panel.what.legend == Qt::TopLeftCorner || panel.what.legend == Qt::BottomLeftCorner;
        panel.rect->insetLayout()->addElement(
            panel.legend, (top ? Qt::AlignTop : Qt::AlignBottom) | (leftSide ? Qt::AlignLeft : Qt::AlignRight));
        panel.rect->insetLayout()->setMargins(QMargins(8, 6, 8, 6));
        panel.legend->setLayer(QStringLiteral("legend"));
        panel.legend->setFillOrder(QCPLegend::foColumnsFirst);
        panel.legend->setWrap(8);
        panel.legend->setMargins(QMargins(8, 3, 8, 3));
        panel.legend->setIconSize(26, 12);
        panel.legend->setVisible(false);
    }

    /// Given values as they are drawn.
    static void convert(Panel& panel)
    {
        int equalAt = std::numeric_limits<int>::min();
        if (panel.what.scale == PlotPanel::Scale::Decades) {
            constexpr int kFloorOfNothing = -9; // when all is equal, there is no difference to be below of
            double lowest = std::numeric_limits<double>::infinity();
            bool hasZero = false;
            for (const auto& values : panel.given) {
                for (const double value : values) {
                    hasZero = hasZero || value == 0.0;
                    if (value > 0.0)
                        lowest = std::min(lowest, value);
                }
            }
            if (hasZero)
                equalAt = std::isfinite(lowest) ? static_cast<int>(std::floor(std::log10(lowest))) - 1 : kFloorOfNothing;
            panel.decades->equalAt = equalAt;
        }
        for (std::size_t i = 0; i < panel.given.size(); ++i) {
            panel.values[i] = panel.given[i];
            for (double& value : panel.values[i]) {
                if (panel.what.scale == PlotPanel::Scale::Percent)
                    value *= 100.0;
                else if (panel.what.scale == PlotPanel::Scale::Decades)
                    value = value > 0.0 ? std::log10(value) : value == 0.0 ? static_cast<double>(equalAt) : kNothing;
                if (!std::isfinite(value))
                    value = kNothing;
            }
        }
    }

    /// Puts the visible steps into the lines, and the y axis around them.
    void fill(Panel& panel)
    {
        const QCPRange steps = panel.x()->range();
        const int columns = std::max(panel.rect->width(), 100);
        double lowest = std::numeric_limits<double>::infinity();
        double highest = -lowest;
        for (std::size_t i = 0; i < panel.graphs.size(); ++i) {
            QVector<QCPGraphData> data;
            const std::vector<double>& values = panel.values[i];
            if (panel.what.curves[i].level && !values.empty()) {
                data = {{steps.lower, values.front()}, {steps.upper, values.front()}};
            } else if (!values.empty()) {
                // One step more on either side, so that lines go on to the edge.
                const double end = static_cast<double>(values.size() - 1);
                const auto first = static_cast<std::size_t>(std::clamp(std::floor(steps.lower) - 1.0, 0.0, end));
                const auto last
                    = static_cast<std::size_t>(std::clamp(std::ceil(steps.upper) + 1.0, static_cast<double>(first), end));
                for (const QPointF& point : thinned(values, first, last, columns))
                    data.append({point.x(), point.y()});
            }
            for (const QCPGraphData& point : data) {
                if (std::isfinite(point.value)) {
                    lowest = std::min(lowest, point.value);
                    highest = std::max(highest, point.value);
                }
            }
            panel.graphs[i]->data()->set(data, true);
            showInLegend(panel, i, !values.empty());
        }
        panel.y()->setRange(rangeFor(panel, lowest, highest));
        panel.legend->setVisible(panel.legend->itemCount() > 0);
        setSinglePoints(panel);
    }

    static void showInLegend(const Panel& panel, std::size_t curve, bool shown)
    {
        QCPGraph* graph = panel.graphs[curve];
        if (shown && panel.what.curves[curve].inLegend && panel.legend->itemWithPlottable(graph) == nullptr)
            graph->addToLegend(panel.legend);
        else if (!shown && panel.legend->itemWithPlottable(graph) != nullptr)
            graph->removeFromLegend(panel.legend);
    }

    static QCPRange rangeFor(const Panel& panel, double lowest, double highest)
    {
        const bool hasValues = lowest <= highest;
        switch (panel.what.scale) {
        case PlotPanel::Scale::Decades:
            return hasValues ? QCPRange(std::floor(lowest) - 0.4, std::max(std::ceil(highest), std::floor(lowest) + 1.0) + 0.2)
                             : QCPRange(-9.4, 0.2);
        case PlotPanel::Scale::Percent: {
            if (!hasValues)
                return {0.0, 100.0};
            const QCPRange range = roomy(lowest, highest, 0.08);
            return {std::max(range.lower, -4.0), std::min(std::max(range.upper, range.lower + 1.0), 104.0)};
        }
        case PlotPanel::Scale::Linear:
            break;
        }
        return hasValues ? roomy(lowest, highest, 0.08) : QCPRange(0.0, 1.0);
    }

    /// A line needs two points; a single one is drawn as a dot.
    static void setSinglePoints(const Panel& panel)
    {
        for (QCPGraph* graph : panel.graphs)
            graph->setScatterStyle(
                graph->dataCount() == 1 ? QCPScatterStyle(QCPScatterStyle::ssDisc, 7) : QCPScatterStyle(QCPScatterStyle::ssNone));
    }

    /// With some room at both ends, for thick lines and single points.
    QCPRange allSteps() const { return {-0.01 * m_steps, 1.01 * m_steps}; }

    /// All panels show the same steps, none beyond the ends.
    void showSteps(QCPRange range)
    {
        constexpr double kFewest = 4.0;
        const QCPRange all = allSteps();
        const double size = std::clamp(range.size(), std::min(kFewest, all.size()), all.size());
        const double lower
            = std::max(all.lower, std::min(range.lower, all.upper - size)); // the difference may round below all.lower
        m_showsAll = size >= all.size();
        m_isMoving = true;
        for (Panel& panel : m_panels)
            panel.x()->setRange(lower, lower + size);
        m_isMoving = false;
    }

    void markAt(QPointF position)
    {
        for (const Panel& panel : m_panels) {
            if (panel.rect->rect().contains(position.toPoint())) {
                const double step = panel.x()->pixelToCoord(position.x());
                return mark(std::clamp<std::int64_t>(std::llround(step), 0, std::max<std::int64_t>(longest() - 1, 0)));
            }
        }
        mark(-1);
    }

    void placeMarks()
    {
        for (Panel& panel : m_panels) {
            panel.mark->setVisible(m_marked >= 0);
            panel.mark->start->setCoords(static_cast<double>(m_marked), 0.0);
            panel.mark->end->setCoords(static_cast<double>(m_marked), 1.0);
        }
    }

    /// The texts stand under the legend, on the side of their line that has more room, one a line lower than the other.
    void placeMoments()
    {
        constexpr std::size_t kLines = 3;
        const Panel& panel = m_panels.front();
        const QFontMetrics metrics(m_owner.font());
        const QCPRange shown = panel.x()->range();
        for (std::size_t i = 0; i < m_moments.size(); ++i) {
            const auto step = static_cast<double>(m_moments[i].step);
            const bool isLeft = step > shown.center();
            const double room
                = std::abs(panel.x()->coordToPixel(isLeft ? shown.lower : shown.upper) - panel.x()->coordToPixel(step));
            const double down = metrics.height() * (2.2 + 1.3 * static_cast<double>(i % kLines));
            QCPItemText* text = m_momentTexts[i];
            text->setVisible(shown.contains(step));
            text->setText(metrics.elidedText(m_moments[i].text, Qt::ElideRight, std::max(0, static_cast<int>(room) - 12)));
            text->setPositionAlignment((isLeft ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
            text->position->setCoords(step, down / std::max(1, panel.rect->height()));
        }
    }

    CurvePlot& m_owner;
    QCustomPlot* m_plot;
    QLabel* m_message;
    std::vector<Panel> m_panels;
    std::vector<PlotMoment> m_moments;
    std::vector<QCPItemText*> m_momentTexts; ///< in the first panel
    double m_steps = 1.0;
    std::int64_t m_marked = -1;
    bool m_isStale = false; ///< values were given that are not converted yet
    bool m_showsAll = true; ///< so that the axis grows with the run
    bool m_isMoving = false; ///< the panels are being brought to one range
};

CurvePlot::CurvePlot(std::vector<PlotPanel> panels, QWidget* parent)
    : QWidget(parent)
    , m_implementation(std::make_unique<Implementation>(*this, std::move(panels)))
{
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    m_implementation->applyTheme();
    m_implementation->refresh();
}

CurvePlot::~CurvePlot() = default;

void CurvePlot::setSteps(std::int64_t steps)
{
    m_implementation->setSteps(steps);
}

void CurvePlot::setValues(std::size_t panel, std::size_t curve, std::vector<double> values)
{
    m_implementation->setValues(panel, curve, std::move(values));
}

void CurvePlot::setMoments(std::vector<PlotMoment> moments)
{
    m_implementation->setMoments(std::move(moments));
}

void CurvePlot::refresh()
{
    m_implementation->refresh();
}

void CurvePlot::setMessage(const QString& message)
{
    m_implementation->setMessage(message);
}

std::int64_t CurvePlot::markedStep() const
{
    return m_implementation->marked();
}

int CurvePlot::drawnPoints(std::size_t panel, std::size_t curve) const
{
    return m_implementation->panel(panel).graphs[curve]->dataCount();
}

std::pair<double, double> CurvePlot::shownSteps() const
{
    return {m_implementation->shown().lower, m_implementation->shown().upper};
}

QPoint CurvePlot::placeOf(std::size_t panel, double step, double value) const
{
    const auto& axes = m_implementation->panel(panel);
    const double shown = axes.what.scale == PlotPanel::Scale::Percent ? 100.0 * value
        : axes.what.scale == PlotPanel::Scale::Decades
        ? (value > 0.0 ? std::log10(value) : static_cast<double>(axes.decades->equalAt))
        : value;
    return m_implementation->plotOrigin() + QPointF(axes.x()->coordToPixel(step), axes.y()->coordToPixel(shown)).toPoint();
}

void CurvePlot::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
        m_implementation->applyTheme();
    QWidget::changeEvent(event);
}

void CurvePlot::keyPressEvent(QKeyEvent* event)
{
    const std::int64_t last = m_implementation->longest() - 1;
    const std::int64_t by = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
    switch (event->key()) {
    case Qt::Key_Left:
        return m_implementation->mark(std::max<std::int64_t>(markedStep() < 0 ? last : markedStep() - by, 0));
    case Qt::Key_Right:
        return m_implementation->mark(std::min(markedStep() < 0 ? 0 : markedStep() + by, last));
    case Qt::Key_Home:
        return m_implementation->mark(std::min<std::int64_t>(last, 0));
    case Qt::Key_End:
        return m_implementation->mark(last);
    case Qt::Key_Escape:
        return markedStep() >= 0 ? m_implementation->mark(-1) : event->ignore();
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        return m_implementation->zoom(0.5);
    case Qt::Key_Minus:
        return m_implementation->zoom(2.0);
    case Qt::Key_0:
        return m_implementation->showAll();
    default:
        QWidget::keyPressEvent(event);
    }
}

void CurvePlot::leaveEvent(QEvent* event)
{
    m_implementation->mark(-1);
    QWidget::leaveEvent(event);
}

void CurvePlot::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme theme = themeOf(palette());
    painter.fillRect(rect(), qtColour(ColourRole::Background, theme));
    painter.setPen(QPen(qtColour(hasFocus() ? ColourRole::Accent : ColourRole::Grid, theme), hasFocus() ? 2 : 1));
    const int inset = hasFocus() ? 1 : 0;
    painter.drawRect(rect().adjusted(inset, inset, -1 - inset, -1 - inset));
}

void CurvePlot::resizeEvent(QResizeEvent* event)
{
    m_implementation->place();
    m_implementation->refresh();
    QWidget::resizeEvent(event);
}

void CurvePlot::focusInEvent(QFocusEvent* event)
{
    update();
    QWidget::focusInEvent(event);
}

void CurvePlot::focusOutEvent(QFocusEvent* event)
{
    update();
    QWidget::focusOutEvent(event);
}

} // namespace meshwright::ui

#include "moc_curve_plot.cpp"
