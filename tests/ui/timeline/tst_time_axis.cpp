// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/ui/timeline/timelines.h"
#include "ui/timeline/row_layout.h"
#include "ui/timeline/time_axis.h"
#include "ui/timeline/zoom_history.h"

namespace tst_time_axis {

using namespace meshwright;
using ui::RowLayout;
using ui::TimeAxis;
using ui::TimeWindow;

/// Rulers, zooming and its history, and where rows are.
class TestTimeAxis : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ticks_data();
    void ticks();
    void ticksAreFewAndInside_data();
    void ticksAreFewAndInside();
    void exactTimes();
    void zoomKeepsThePointer();
    void windowsStayInside();
    void stretchedAxesCountShares();
    void historyGoesBackAndForth();
    void gesturesJoin();
    void rowsShareTheHeight();
    void manyRowsScroll();
    void collapsedGroupsKeepTheirHeading();
};

namespace {

std::shared_ptr<const ui::TimelineModel> twoRuns()
{
    return test::modelOf({test::timelineOf(Clock::Simulated, 2, {{0, 0.0, 2e-3}, {1, 1e-3, 3e-3}}),
        test::timelineOf(Clock::Wall, 4, {{0, 0.0, 1.0}, {3, 0.0, 8.0}})});
}

} // namespace

void TestTimeAxis::ticks_data()
{
    QTest::addColumn<double>("begin");
    QTest::addColumn<double>("end");
    QTest::addColumn<int>("most");
    QTest::addColumn<QString>("base");
    QTest::addColumn<QStringList>("texts");

    QTest::newRow("seconds") << 0.0 << 10.0 << 5 << "" << QStringList{"0 s", "2 s", "4 s", "6 s", "8 s", "10 s"};
    QTest::newRow("milliseconds") << 0.0 << 0.0025 << 5 << ""
                                  << QStringList{"0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms", "2.0 ms", "2.5 ms"};
    QTest::newRow("microseconds") << 12e-6 << 19e-6 << 4 << "" << QStringList{"12 µs", "14 µs", "16 µs", "18 µs"};
    QTest::newRow("nanoseconds") << 0.0 << 40e-9 << 4 << "" << QStringList{"0 ns", "10 ns", "20 ns", "30 ns", "40 ns"};
    QTest::newRow("far from zero") << 1.234567009 << 1.234567041 << 4 << "1.2345670 s +"
                                   << QStringList{"+10 ns", "+20 ns", "+30 ns", "+40 ns"};
    QTest::newRow("one") << 0.0 << 1.0 << 1 << "" << QStringList{"0 s", "1 s"};
}

void TestTimeAxis::ticks()
{
    QFETCH(double, begin);
    QFETCH(double, end);
    QFETCH(int, most);
    QFETCH(QString, base);
    QFETCH(QStringList, texts);
    const ui::Ticks ticks = ui::timeTicks({begin, end}, most);
    QStringList actual;
    for (const ui::Tick& tick : ticks.marks)
        actual << QString::fromStdString(tick.text);
    QCOMPARE(actual, texts);
    QCOMPARE(QString::fromStdString(ticks.base), base);
}

void TestTimeAxis::ticksAreFewAndInside_data()
{
    tests::addSeeds({3, 4});
}

void TestTimeAxis::ticksAreFewAndInside()
{
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    std::uniform_real_distribution<double> share(0.0, 1.0);
    for (int i = 0; i < 2000; ++i) {
        const double length = std::pow(10.0, -10.0 + 12.0 * share(random));
        const double begin = i % 3 == 0 ? 0.0 : length * std::pow(10.0, 7.0 * share(random));
        const int most = 1 + static_cast<int>(random() % 20);
        const ui::Ticks ticks = ui::timeTicks({begin, begin + length}, most);
        QVERIFY(static_cast<int>(ticks.marks.size()) <= most + 1);
        std::set<std::string> different;
        for (const ui::Tick& tick : ticks.marks) {
            QVERIFY(tick.at >= begin - 1e-6 * length && tick.at <= begin + length * (1.0 + 1e-6));
            QVERIFY2(tick.text.size() <= 13, tick.text.c_str());
            different.insert(tick.text);
        }
        QCOMPARE(different.size(), ticks.marks.size());
    }
}

void TestTimeAxis::exactTimes()
{
    QCOMPARE(ui::exactTime(0.0123456, 1e-7), std::string("12.3456 ms"));
    QCOMPARE(ui::exactTime(0.0123456, 1e-3), std::string("12 ms"));
    QCOMPARE(ui::exactTime(2.5e-6, 1e-8), std::string("2.50 µs"));
    QCOMPARE(ui::exactTime(0.0, 1e-6), std::string("0 µs"));
}

void TestTimeAxis::zoomKeepsThePointer()
{
    const TimeAxis axis(*twoRuns(), false);
    QCOMPARE(axis.end(), 8.0);
    const TimeWindow window{2.0, 6.0};
    const TimeWindow in = axis.zoomed(window, 3.0, 0.5);
    QCOMPARE(in.length(), 2.0);
    QCOMPARE((3.0 - in.begin) / in.length(), (3.0 - window.begin) / window.length());
    QCOMPARE(axis.zoomed(in, 3.0, 2.0), window);
}

void TestTimeAxis::windowsStayInside()
{
    const TimeAxis axis(*twoRuns(), false);
    QCOMPARE(axis.zoomed({0.0, 4.0}, 1.0, 100.0), axis.whole());
    QCOMPARE(axis.moved({1.0, 2.0}, -5.0), (TimeWindow{0.0, 1.0}));
    QCOMPARE(axis.moved({1.0, 2.0}, 50.0), (TimeWindow{7.0, 8.0}));
    QVERIFY(axis.zoomed({1.0, 2.0}, 1.5, 1e-30).length() > 0.0);
    QCOMPARE(axis.clamped({-1.0, 20.0}), axis.whole());
}

void TestTimeAxis::stretchedAxesCountShares()
{
    const TimeAxis axis(*twoRuns(), true);
    QCOMPARE(axis.end(), 1.0);
    QCOMPARE(axis.toSeconds(0, {0.25, 0.5}), (TimeWindow{1e-3, 2e-3}));
    QCOMPARE(axis.toSeconds(1, {0.25, 0.5}), (TimeWindow{2.0, 4.0}));
    QCOMPARE(axis.fromSeconds(1, {2.0, 4.0}), (TimeWindow{0.25, 0.5}));
    QCOMPARE(ui::shareTicks({0.0, 1.0}, 5).marks[1].text, std::string("20 %"));
}

void TestTimeAxis::historyGoesBackAndForth()
{
    ui::ZoomHistory history({0.0, 8.0});
    QVERIFY(!history.canUndo());
    history.show({0.0, 4.0}, ui::ZoomGesture::Jump, 0);
    history.show({1.0, 2.0}, ui::ZoomGesture::Jump, 10);
    history.undo();
    QCOMPARE(history.window(), (TimeWindow{0.0, 4.0}));
    history.undo();
    QCOMPARE(history.window(), (TimeWindow{0.0, 8.0}));
    QVERIFY(!history.canUndo());
    history.redo();
    QCOMPARE(history.window(), (TimeWindow{0.0, 4.0}));
    history.show({3.0, 4.0}, ui::ZoomGesture::Jump, 20);
    QVERIFY(!history.canRedo());
    for (int i = 0; i < 1000; ++i)
        history.show({0.0, 1.0 + i}, ui::ZoomGesture::Jump, 30 + i);
    int steps = 0;
    for (; history.canUndo(); ++steps)
        history.undo();
    QCOMPARE(steps, static_cast<int>(ui::ZoomHistory::kMostSteps) - 1);
}

void TestTimeAxis::gesturesJoin()
{
    ui::ZoomHistory history({0.0, 8.0});
    history.show({0.0, 4.0}, ui::ZoomGesture::Wheel, 100);
    history.show({0.0, 2.0}, ui::ZoomGesture::Wheel, 200);
    history.undo();
    QCOMPARE(history.window(), (TimeWindow{0.0, 8.0}));
    history.redo();
    QCOMPARE(history.window(), (TimeWindow{0.0, 2.0}));
    history.show({0.0, 1.0}, ui::ZoomGesture::Wheel, 300); // after a redo, a step of its own
    history.show({0.5, 1.5}, ui::ZoomGesture::Keys, 310);
    history.show({0.6, 1.6}, ui::ZoomGesture::Keys, 310 + ui::ZoomHistory::kOneStepMs);
    history.undo();
    QCOMPARE(history.window(), (TimeWindow{0.5, 1.5}));
    history.undo();
    QCOMPARE(history.window(), (TimeWindow{0.0, 1.0}));
}

void TestTimeAxis::rowsShareTheHeight()
{
    const auto model = twoRuns();
    const RowLayout layout(*model, {}, false, 300.0);
    QCOMPARE(layout.lines().size(), std::size_t{8}); // two headings, two rows, four rows
    QVERIFY(layout.height() <= 300.0);
    QVERIFY(layout.height() > 280.0);
    double bottom = 0.0;
    for (const ui::LayoutLine& line : layout.lines()) {
        QVERIFY(line.top >= bottom);
        bottom = line.bottom();
    }
    const ui::LayoutLine& line = layout.lines()[4];
    QCOMPARE(*layout.lineAt(line.top + 1.0), std::size_t{4});
    QVERIFY(!layout.lineAt(line.bottom() + 1.0));
    QVERIFY(!layout.lineAt(layout.height() + 10.0));
    QCOMPARE(*layout.lineOf(1, 0), std::size_t{4});
    QCOMPARE(RowLayout(*model, {}, false, 5000.0).height(), RowLayout::naturalHeight(*model, false));
}

void TestTimeAxis::manyRowsScroll()
{
    const auto model = test::modelOf({test::timelineOf(Clock::Wall, 200, {{0, 0.0, 1.0}})});
    const RowLayout layout(*model, {}, false, 300.0);
    QVERIFY(layout.height() > 200 * RowLayout::kLeastRow);
    const auto [first, last] = layout.linesIn(1000.0, 1100.0);
    QVERIFY(layout.lines()[first].bottom() > 1000.0 && layout.lines()[first - 1].bottom() <= 1000.0);
    QVERIFY(layout.lines()[last - 1].top < 1100.0 && layout.lines()[last].top >= 1100.0);
}

void TestTimeAxis::collapsedGroupsKeepTheirHeading()
{
    const auto model = twoRuns();
    const RowLayout layout(*model, {1}, true, 300.0);
    QCOMPARE(layout.lines().size(), std::size_t{4});
    QVERIFY(layout.lines().back().isHeading());
    QCOMPARE(layout.lines().back().height, RowLayout::kHeadingHeight + RowLayout::kRulerHeight);
    QVERIFY(!layout.lineOf(1, 0));
}

MESHWRIGHT_TEST(TestTimeAxis)

} // namespace tst_time_axis

#include "tst_time_axis.moc"
