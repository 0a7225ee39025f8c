// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "ui/theme/theme.h"
#include "ui/training/curve_plot.h"
#include "ui/training/thinning.h"

#include <cmath>
#include <limits>

namespace tst_curve_plot {

using namespace meshwright;

/// The plot has its lines where the values say, in the colours of the theme, however many values there are.
class TestCurvePlot : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cleanup();
    void thins_data();
    void thins();
    void thinningKeepsExtremes();
    void bothLinesShowWhereEqual();
    void equalHasALineOfItsOwn();
    void themes();
    void longCurvesAreThinned();
    void marksAStep();
    void momentsAreLines();
    void keysMarkAndZoom();
    void wheelZooms();
    void saysWhatIsMissing();
};

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<ui::PlotPanel> panels()
{
    return {
        {"loss", ui::PlotPanel::Scale::Linear, 2, Qt::TopRightCorner,
            {{"thick", ColourRole::Compute, 6.0, false, true}, {"thin", ColourRole::AllReduce, 2.0}}},
        {"difference", ui::PlotPanel::Scale::Decades, 1, Qt::TopRightCorner, {{"", ColourRole::ReduceScatter, 3.0}}},
    };
}

std::unique_ptr<ui::CurvePlot> shownPlot()
{
    auto plot = std::make_unique<ui::CurvePlot>(panels());
    plot->resize(600, 400);
    plot->show();
    return plot;
}

/// The pixels of a rectangle around a place that have this colour, more or less.
int pixelsLike(const QImage& image, QPoint place, int radius, const QColor& colour)
{
    const qreal scale = image.devicePixelRatio();
    int found = 0;
    for (int y = -radius; y <= radius; ++y) {
        for (int x = -radius; x <= radius; ++x) {
            const QPoint at = place + QPoint(x, y);
            const QColor pixel = image.pixelColor((QPointF(at) * scale).toPoint());
            found += std::abs(pixel.red() - colour.red()) + std::abs(pixel.green() - colour.green())
                        + std::abs(pixel.blue() - colour.blue())
                    < 40
                ? 1
                : 0;
        }
    }
    return found;
}

QImage grabbed(ui::CurvePlot& plot)
{
    QCoreApplication::processEvents(); // the picture is drawn when the queue is empty
    return plot.grab().toImage();
}

/// Sends one turn of the wheel over a widget, as the window system does.
void turnWheel(QWidget& widget, QPoint place, int degrees)
{
    QWidget* under = widget.childAt(place) != nullptr ? widget.childAt(place) : &widget;
    const QPoint local = under->mapFrom(&widget, place);
    QWheelEvent event(
        local, under->mapToGlobal(local), {}, {0, 8 * degrees}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(under, &event);
}

} // namespace

void TestCurvePlot::cleanup()
{
    ui::applyTheme(*qApp, ui::ThemeChoice::Light);
}

void TestCurvePlot::thins_data()
{
    QTest::addColumn<std::vector<double>>("values");
    QTest::addColumn<int>("first");
    QTest::addColumn<int>("last");
    QTest::addColumn<int>("columns");
    QTest::addColumn<QList<double>>("steps");
    const std::vector<double> zigzag = {0, 9, 1, 8, 2, 7, 3, 6, 4, 5, 0, 1};
    QTest::newRow("few: all of them") << zigzag << 2 << 9 << 2 << QList<double>{2, 3, 4, 5, 6, 7, 8, 9};
    QTest::newRow("one point") << zigzag << 3 << 3 << 1 << QList<double>{3};
    // 12 points in 2 stretches of 6: first 0, lowest 0, highest 1, last 5; first 6, lowest 10, highest 7, last 11.
    QTest::newRow("many") << zigzag << 0 << 11 << 2 << QList<double>{0, 1, 5, 6, 7, 10, 11};
    QTest::newRow("with a gap at the end") << std::vector<double>{1, 5, 2, 3, kNan} << 0 << 4 << 1 << QList<double>{0, 1, 4};
}

void TestCurvePlot::thins()
{
    QFETCH(std::vector<double>, values);
    QFETCH(int, first);
    QFETCH(int, last);
    QFETCH(int, columns);
    QFETCH(QList<double>, steps);
    QList<double> kept;
    for (const QPointF& point : ui::thinned(values, static_cast<std::size_t>(first), static_cast<std::size_t>(last), columns))
        kept << point.x();
    QCOMPARE(kept, steps);
}

void TestCurvePlot::thinningKeepsExtremes()
{
    std::vector<double> values(100'000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<double>(i) * 0.37);
    values[77'777] = 50.0;
    values[12'345] = -50.0;
    const QList<QPointF> points = ui::thinned(values, 0, values.size() - 1, 500);
    QVERIFY(points.size() <= 2000);
    QVERIFY(points.contains(QPointF(77'777, 50.0)));
    QVERIFY(points.contains(QPointF(12'345, -50.0)));
    QCOMPARE(points.front().x(), 0.0);
    QCOMPARE(points.back().x(), 99'999.0);
    for (qsizetype i = 1; i < points.size(); ++i)
        QVERIFY(points[i - 1].x() < points[i].x());
}

/// The same values twice: the thin line in the middle of the thick one, which shines through on both sides.
void TestCurvePlot::bothLinesShowWhereEqual()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setSteps(10);
    const std::vector<double> flat(11, 3.0);
    plot->setValues(0, 0, flat);
    plot->setValues(0, 1, flat);
    plot->refresh();
    const QImage image = grabbed(*plot);
    const QPoint place = plot->placeOf(0, 4.6, 3.0);
    QColor thick = ui::qtColour(ColourRole::Compute, Theme::Light);
    const QColor ground = ui::qtColour(ColourRole::Background, Theme::Light);
    const auto mixed = [](int a, int b) { return qRound(0.45 * a + 0.55 * b); };
    thick = QColor(mixed(thick.red(), ground.red()), mixed(thick.green(), ground.green()), mixed(thick.blue(), ground.blue()));
    QVERIFY(pixelsLike(image, place, 2, ui::qtColour(ColourRole::AllReduce, Theme::Light)) > 0);
    QVERIFY(pixelsLike(image, place, 3, thick) > 0);
}

void TestCurvePlot::equalHasALineOfItsOwn()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setSteps(10);
    plot->setValues(1, 0, {1e-6, 0, 0, 0, 0, 2e-7, 0, 0, 0, 0, 0}); // the floor is a power of ten below 1e-7
    plot->refresh();
    const QImage image = grabbed(*plot);
    const QColor line = ui::qtColour(ColourRole::ReduceScatter, Theme::Light);
    QCOMPARE(plot->placeOf(1, 3, 0.0), plot->placeOf(1, 3, 1e-8));
    QVERIFY(plot->placeOf(1, 3, 0.0).y() > plot->placeOf(1, 3, 1e-7).y());
    QVERIFY(pixelsLike(image, plot->placeOf(1, 3, 0.0), 2, line) > 0);
    QVERIFY(pixelsLike(image, plot->placeOf(1, 5, 2e-7), 3, line) > 0);
    QCOMPARE(plot->drawnPoints(1, 0), 11);

    plot->setValues(1, 0, std::vector<double>(11, 0.0)); // nothing but equal
    plot->refresh();
    QVERIFY(pixelsLike(grabbed(*plot), plot->placeOf(1, 3, 0.0), 2, line) > 0);
}

void TestCurvePlot::themes()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setSteps(10);
    plot->setValues(0, 1, std::vector<double>(11, 3.0));
    plot->refresh();
    for (const Theme theme : {Theme::Light, Theme::Dark, Theme::Light}) {
        ui::applyTheme(*qApp, theme == Theme::Light ? ui::ThemeChoice::Light : ui::ThemeChoice::Dark);
        const QImage image = grabbed(*plot);
        const QPoint place = plot->placeOf(0, 4.6, 3.0);
        QVERIFY(pixelsLike(image, place, 2, ui::qtColour(ColourRole::AllReduce, theme)) > 0);
        QCOMPARE(image.pixelColor((QPointF(place + QPoint(5, 14)) * image.devicePixelRatio()).toPoint()).rgb(),
            ui::qtColour(ColourRole::Background, theme).rgb());
    }
}

void TestCurvePlot::longCurvesAreThinned()
{
    const auto plot = shownPlot();
    plot->setSteps(200'000);
    plot->setValues(0, 0, std::vector<double>(200'000, 1.0));
    plot->refresh();
    QVERIFY(plot->drawnPoints(0, 0) > 100);
    QVERIFY(plot->drawnPoints(0, 0) <= 4 * 600);
}

void TestCurvePlot::marksAStep()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setSteps(10);
    plot->setValues(0, 0, {5, 4, 3, 2, 1});
    plot->refresh();
    grabbed(*plot);
    QSignalSpy marked(plot.get(), &ui::CurvePlot::stepMarked);
    const auto moveTo = [&](QPoint place) { // not by QTest, whose pointer stays on the small screen
        QWidget* under = plot->childAt(place);
        const QPoint local = under->mapFrom(plot.get(), place);
        QMouseEvent event(QEvent::MouseMove, local, under->mapToGlobal(local), Qt::NoButton, Qt::NoButton, {});
        QCoreApplication::sendEvent(under, &event);
    };
    moveTo(plot->placeOf(0, 2.2, 3.0));
    QCOMPARE(plot->markedStep(), 2);
    QCOMPARE(marked.last().first().toLongLong(), 2);
    const QImage image = grabbed(*plot);
    QVERIFY(
        pixelsLike(image, plot->placeOf(1, 2, 1e-3), 2, ui::qtColour(ColourRole::Accent, Theme::Light)) > 0); // in every panel
    moveTo(plot->placeOf(0, 9.0, 3.0)); // beyond the last value
    QCOMPARE(plot->markedStep(), 4);
    QEvent leave(QEvent::Leave);
    QCoreApplication::sendEvent(plot.get(), &leave);
    QCOMPARE(plot->markedStep(), -1);
}

void TestCurvePlot::momentsAreLines()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setSteps(10);
    plot->setValues(0, 1, std::vector<double>(11, 3.0));
    plot->setValues(1, 0, std::vector<double>(11, 1e-3));
    plot->refresh();
    const QColor ink = ui::qtColour(ColourRole::Text, Theme::Light);
    const auto inkAt = [&](std::size_t panel, double step) {
        int found = 0;
        const QImage image = grabbed(*plot);
        for (const int dy : {-12, -10, -8, 8, 10, 12}) // dashes
            found += pixelsLike(image, plot->placeOf(panel, step, panel == 0 ? 3.0 : 1e-3) + QPoint(0, dy), 1, ink);
        return found;
    };
    QCOMPARE(inkAt(0, 4), 0);
    plot->setMoments({{4, "mesh data=8"}});
    plot->refresh();
    QVERIFY(inkAt(0, 4) > 0);
    QVERIFY(inkAt(1, 4) > 0); // in every panel
    plot->setMoments({});
    plot->refresh();
    QCOMPARE(inkAt(0, 4), 0);
}

void TestCurvePlot::keysMarkAndZoom()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setSteps(100);
    plot->setValues(0, 0, std::vector<double>(51, 1.0));
    plot->refresh();
    QTest::keyClick(plot.get(), Qt::Key_Right);
    QCOMPARE(plot->markedStep(), 0);
    QTest::keyClick(plot.get(), Qt::Key_Right, Qt::ShiftModifier);
    QCOMPARE(plot->markedStep(), 10);
    QTest::keyClick(plot.get(), Qt::Key_Left);
    QCOMPARE(plot->markedStep(), 9);
    QTest::keyClick(plot.get(), Qt::Key_End);
    QTest::keyClick(plot.get(), Qt::Key_Right);
    QCOMPARE(plot->markedStep(), 50);
    QTest::keyClick(plot.get(), Qt::Key_Plus);
    QCOMPARE(plot->shownSteps(), std::pair(24.5, 75.5)); // around the marked step
    QTest::keyClick(plot.get(), Qt::Key_Home);
    QCOMPARE(plot->markedStep(), 0);
    QTest::keyClick(plot.get(), Qt::Key_0);
    QCOMPARE(plot->shownSteps(), std::pair(-1.0, 101.0));
    QTest::keyClick(plot.get(), Qt::Key_Escape);
    QCOMPARE(plot->markedStep(), -1);
}

void TestCurvePlot::wheelZooms()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setSteps(1000);
    plot->setValues(0, 0, std::vector<double>(1000, 1.0));
    plot->refresh();
    grabbed(*plot);
    const QPoint place = plot->placeOf(0, 500, 1.0);
    turnWheel(*plot, place, 15);
    const auto [from, to] = plot->shownSteps();
    QVERIFY(to - from < 1000.0 && from < 500.0 && to > 500.0);
    plot->setSteps(2000); // a run that goes on does not take the picture away
    QCOMPARE(plot->shownSteps(), std::pair(from, to));
    for (int i = 0; i < 40; ++i)
        turnWheel(*plot, place, -15);
    QCOMPARE(plot->shownSteps(), std::pair(-20.0, 2020.0)); // no farther than all
    for (int i = 0; i < 60; ++i)
        turnWheel(*plot, place, 15);
    QVERIFY(plot->shownSteps().second - plot->shownSteps().first >= 4.0);
    QTest::mouseDClick(plot->childAt(place), Qt::LeftButton, {}, plot->childAt(place)->mapFrom(plot.get(), place));
    QCOMPARE(plot->shownSteps(), std::pair(-20.0, 2020.0));
}

void TestCurvePlot::saysWhatIsMissing()
{
    const auto plot = shownPlot();
    QVERIFY(QTest::qWaitForWindowExposed(plot.get()));
    plot->setMessage("nothing yet");
    const auto* label = plot->findChild<QLabel*>();
    QCOMPARE(label->text(), QString("nothing yet"));
    QVERIFY(label->isVisible());
    plot->setValues(0, 0, {1.0});
    plot->refresh();
    QVERIFY(!label->isVisible());
    QCOMPARE(plot->drawnPoints(0, 0), 1);
}

MESHWRIGHT_TEST(TestCurvePlot)

} // namespace tst_curve_plot

#include "tst_curve_plot.moc"
