// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"

#include <QString>
#include <QWidget>

#include <cstdint>
#include <memory>
#include <vector>

namespace meshwright::ui {

/// A line of a panel.
struct PlotCurve {
    QString name;
    ColourRole role = ColourRole::Compute;
    double width = 2.0; ///< pixels
    bool dashed = false;
    bool translucent = false; ///< for a thick line under a thin one
    bool level = false; ///< one value, drawn over the whole width
    bool inLegend = true;
};

/// One chart.
struct PlotPanel {
    enum class Scale : std::uint8_t {
        Linear,
        Percent, ///< values from 0 to 1, shown as 0 to 100
        Decades, ///< logarithmic, values >= 0; zeros lie on a line at the bottom that is labelled "equal"
    };
    QString title; ///< of the y axis
    Scale scale = Scale::Linear;
    int share = 1; ///< of the height
    Qt::Corner legend = Qt::TopRightCorner;
    std::vector<PlotCurve> curves;
};

/// A moment of the run that all charts show: a dashed line, with its text in the first of them.
struct PlotMoment {
    std::int64_t step = 0;
    QString text;

    friend bool operator==(const PlotMoment&, const PlotMoment&) = default;
};

/// Charts over the steps of a run, one under the other on one axis of steps. The wheel zooms the steps, dragging moves them, 0 or a double
/// click shows all. The pointer, or the arrow keys, mark a step in all charts.
///
/// The lines are thinned to the width of the plot, so a change costs little whatever their length. The only place that knows QCustomPlot.
class CurvePlot : public QWidget {
    Q_OBJECT

public:
    explicit CurvePlot(std::vector<PlotPanel> panels, QWidget* parent = nullptr);
    ~CurvePlot() override;

    /// The last step that the axis shows; at least 1.
    void setSteps(std::int64_t steps);

    /// The values of a line at step 0, 1, ..; NaN leaves a gap. Shown with the next `refresh`.
    void setValues(std::size_t panel, std::size_t curve, std::vector<double> values);

    /// Moments to be seen; shown with the next `refresh`.
    void setMoments(std::vector<PlotMoment> moments);

    void refresh();

    /// What is said instead of the charts as long as there is nothing to plot.
    void setMessage(const QString& message);

    /// The step that is marked; -1: none.
    std::int64_t markedStep() const;

    /// Points that a line is drawn through; its colour. For tests.
    int drawnPoints(std::size_t panel, std::size_t curve) const;

    /// The steps at the left and right end.
    std::pair<double, double> shownSteps() const;

    /// The pixel of a step and a value in a panel, in this widget.
    QPoint placeOf(std::size_t panel, double step, double value) const;

    QSize sizeHint() const override { return {640, 420}; }
    QSize minimumSizeHint() const override { return {320, 240}; }

Q_SIGNALS:
    void stepMarked(qint64 step); ///< -1: none

protected:
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    class Implementation;
    std::unique_ptr<Implementation> m_implementation;
};

} // namespace meshwright::ui
