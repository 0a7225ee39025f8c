// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/session.h"
#include "tests/bench/timeline_benchmark.h"
#include "tests/test_class.h"
#include "tests/ui/timeline/timelines.h"
#include "ui/timeline/details_pane.h"
#include "ui/timeline/legend.h"
#include "ui/timeline/timeline_view.h"
#include "ui/timeline/totals_model.h"

#include <fstream>
#include <sstream>

namespace tst_timeline_view {

using namespace meshwright;
using ui::SliceId;
using ui::TimelineCanvas;
using ui::TimelineView;
using ui::TimeWindow;

/// What people do with the timeline and see of it: mouse, keys, words and pixels.
class TestTimelineView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void anOpenedTraceIsBroughtIntoSight();
    void showsTheSimulatedStep();
    void oldStepsAreGreyed();
    void clickSelects();
    void clickBesideGivesUp();
    void selectionFromElsewhere();
    void hoverFramesTheSameOperation();
    void keysZoomAndMove();
    void controlWheelZoomsAtThePointer();
    void shiftWheelAndDragMove();
    void wheelScrollsRows();
    void framesTheSelection();
    void stepsThroughSlices();
    void zoomIsUndone();
    void rulerDragAddsUp();
    void shiftDragTakesRows();
    void searchCountsAndGoesOn();
    void showsBadPatternsInline();
    void manySlicesAreSearchedAside();
    void readsManySlicesAside();
    void clockOfTheMeasuredStep();
    void stretchesStepsOfDifferentLengths();
    void groupsCollapse();
    void tooltips();
    void minimapMovesTheWindow();
    void themeChangesAtRunTime();
    void waitArrows();
    void helpOpens();
    void totalsAreAProperModel();
    void pictureIsWhatIsVisible();
    void emptyAndTinySteps();
    void benchmarkRuns();
};

namespace {

/// A view of a measured step of two devices on screen.
struct Shown {
    ui::Selection selection;
    TimelineView view{selection};

    explicit Shown(const std::shared_ptr<const Timeline>& measured = nullptr)
    {
        view.resize(1000, 600);
        view.show();
        if (measured)
            view.setMeasured(nullptr, measured);
        if (!QTest::qWaitForWindowExposed(&view))
            qFatal("the view does not appear");
        QCoreApplication::processEvents();
    }

    TimelineCanvas& canvas() { return view.canvas(); }

    template <typename Widget>
    Widget* find(const QString& accessibleName)
    {
        for (Widget* widget : view.findChildren<Widget*>()) {
            if (widget->accessibleName() == accessibleName)
                return widget;
        }
        return nullptr;
    }
    QString count() { return find<QLabel>("Matches")->text(); }
    QLineEdit* search() { return find<QLineEdit>("Search the names of all slices"); }
    void key(int key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(&canvas(), static_cast<Qt::Key>(key), modifiers); }
    void click(QPointF at) { QTest::mouseClick(&canvas(), Qt::LeftButton, {}, at.toPoint()); }

    void drag(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {})
    {
        QTest::mousePress(&canvas(), Qt::LeftButton, modifiers, from);
        for (const QPoint at : {from + (to - from) / 2, to}) {
            QMouseEvent move(QEvent::MouseMove, at, canvas().mapToGlobal(at), Qt::NoButton, Qt::LeftButton, modifiers);
            QCoreApplication::sendEvent(&canvas(), &move);
        }
        QTest::mouseRelease(&canvas(), Qt::LeftButton, modifiers, to);
    }

    void wheel(QPoint at, QPoint delta, Qt::KeyboardModifiers modifiers = {})
    {
        QWheelEvent event(at, canvas().mapToGlobal(at), {}, delta, Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(&canvas(), &event);
    }

    QRgb pixel(QPoint at)
    {
        const QImage image = canvas().grab().toImage();
        return image.pixel(at * image.devicePixelRatio());
    }
};

/// Two devices: "first" 0 to 4 ms and "second" 5 to 9 ms on each compute row, "all_reduce g" 3 to 8 ms on each row of collectives.
std::shared_ptr<const Timeline> twoDevices(Clock clock = Clock::Wall)
{
    std::vector<test::OneSlice> slices;
    for (const std::uint32_t row : {0U, 2U}) {
        slices.push_back({row, 0.0, 4e-3, SliceCategory::Compute, "first", 1000});
        slices.push_back({row, 5e-3, 4e-3, SliceCategory::Compute, "second"});
        slices.push_back({row + 1, 3e-3, 5e-3, SliceCategory::AllReduce, "all_reduce g", 1'000'000, "sum of g over data"});
    }
    return test::timelineOf(clock, 4, slices);
}

std::shared_ptr<const sim::Analysis> analysisOf(const std::string& text)
{
    static sim::Session session(*sim::defaultCatalogue());
    return session.analyse({text, "wide_mlp.yaml", {"mesh.data=8"}});
}

std::string exampleText()
{
    std::ifstream in(std::string(MESHWRIGHT_SOURCE_DIR) + "/resources/examples/wide_mlp.yaml");
    std::stringstream text;
    text << in.rdbuf();
    std::string study = text.str();
    study.replace(study.find("data: 4, model: 2"), 17, "data: 4, model: 1");
    return study;
}

bool isNear(double a, double b)
{
    return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

} // namespace

void TestTimelineView::showsTheSimulatedStep()
{
    Shown shown;
    const auto analysis = analysisOf(exampleText());
    QVERIFY2(analysis->simulated, analysis->problems.empty() ? "" : analysis->problems.front().message.c_str());
    shown.view.setAnalysis(analysis);
    QVERIFY(!shown.view.isBusy());
    const ui::TimelineModel& model = shown.canvas().model();
    QCOMPARE(model.groups().size(), std::size_t{1});
    const QString title = QString::fromStdString(model.groups()[0].title);
    QVERIFY2(title.startsWith("simulated on TPU v5e, 4x2 chips"), qPrintable(title));
    QVERIFY2(title.contains("each of 8 devices"), qPrintable(title));
    QCOMPARE(model.groups()[0].rows[0].text(), std::string("each device, compute"));
    QCOMPARE(shown.view.command(), QString("meshwright simulate wide_mlp.yaml --set mesh.data=8 --trace trace.json"));
    QVERIFY(shown.view.findChild<ui::Legend*>()->categories() == model.categories());
    shown.view.setMeasured(twoDevices(Clock::Virtual), twoDevices());
    QCOMPARE(shown.canvas().model().groups().size(), std::size_t{2});
    QCOMPARE(shown.view.command(), QString("meshwright train wide_mlp.yaml --set mesh.data=8 --trace trace.json"));

    const auto measured = [&] { return QString::fromStdString(shown.canvas().model().groups()[1].title); };
    QVERIFY2(measured().startsWith("measured, virtual clock"), qPrintable(measured()));
    const sim::StudySource ran{exampleText(), "elsewhere.yaml", {"mesh.data=8"}};
    shown.view.setMeasured(twoDevices(Clock::Virtual), twoDevices(), ran);
    QVERIFY2(measured().startsWith("measured, virtual clock"), qPrintable(measured()));
    shown.view.setAnalysis(analysisOf(exampleText() + "# an edit\n"));
    QVERIFY2(measured().startsWith("measured, of an earlier version of the study"), qPrintable(measured()));
    shown.view.setAnalysis(analysisOf(exampleText())); // undone
    QVERIFY2(measured().startsWith("measured, virtual clock"), qPrintable(measured()));
}

void TestTimelineView::oldStepsAreGreyed()
{
    Shown shown;
    shown.view.setAnalysis(analysisOf(exampleText()));
    const auto corner = [&] { return shown.pixel(shown.canvas().rowsRect().bottomRight() - QPoint(3, 3)); };
    const QRgb before = corner();
    std::string broken = exampleText();
    broken.replace(broken.find("chip: v5e"), 9, "chip: v99");
    const auto analysis = analysisOf(broken);
    QVERIFY(!analysis->simulated);
    shown.view.setAnalysis(analysis);
    QVERIFY(!shown.canvas().model().isEmpty());
    QVERIFY(corner() != before);
    QStringList words;
    for (const QLabel* label : shown.view.findChildren<QLabel*>()) {
        if (label->isVisible())
            words << label->text();
    }
    QVERIFY2(words.join('|').contains("The last step that was simulated is shown."), qPrintable(words.join('|')));
    shown.view.setAnalysis(analysisOf(exampleText()));
    QCOMPARE(corner(), before);
}

void TestTimelineView::clickSelects()
{
    Shown shown(twoDevices());
    const SliceId reduce{0, 2}; // slices go by row
    QCOMPARE(shown.canvas().model().nameOf(reduce), std::string("all_reduce g"));
    shown.click(shown.canvas().rectOf(reduce).center());
    QCOMPARE(shown.selection.operation(), QString("all_reduce g"));
    QCOMPARE(*shown.canvas().selected(), reduce);
    const QString facts = shown.view.details().factsText();
    for (const char* word : {"all_reduce g", "all-reduce", "device 0, collectives", "5.00 ms", "Payload", "977 KiB", "200 MB/s",
             "CPU time", "sum of g over data"})
        QVERIFY2(facts.contains(word), qPrintable(QString("%1 in %2").arg(word, facts)));
    QVERIFY(shown.canvas().accessibleDescription().contains("all_reduce g"));
    // A frame in the colour of the selection.
    const QPointF edge = shown.canvas().rectOf(reduce).topLeft() + QPointF(20.0, 1.0);
    QCOMPARE(shown.pixel(edge.toPoint()), ui::qtColour(ColourRole::Accent, Theme::Light).rgb());
}

void TestTimelineView::clickBesideGivesUp()
{
    Shown shown(twoDevices());
    shown.click(shown.canvas().rectOf({0, 0}).center());
    QCOMPARE(shown.selection.operation(), QString("first"));
    shown.click(shown.canvas().rowsRect().bottomRight() - QPoint(4, 4));
    QCOMPARE(shown.selection.operation(), QString());
    QVERIFY(!shown.canvas().selected());
    shown.click(shown.canvas().rectOf({0, 0}).center());
    shown.key(Qt::Key_Escape);
    QVERIFY(!shown.canvas().selected());
}

void TestTimelineView::selectionFromElsewhere()
{
    Shown shown(twoDevices());
    shown.canvas().show({0.0, 1e-3});
    shown.selection.setOperation("second");
    QCOMPARE(shown.canvas().model().nameOf(*shown.canvas().selected()), std::string("second"));
    QVERIFY(shown.view.details().factsText().contains("second"));
    QVERIFY(shown.canvas().window().begin > 1e-3); // brought into sight
    shown.selection.setOperation("no such");
    QVERIFY(!shown.canvas().selected());
}

void TestTimelineView::hoverFramesTheSameOperation()
{
    Shown shown(twoDevices());
    const SliceId here{0, 0};
    const SliceId there{0, 3};
    QCOMPARE(shown.canvas().model().nameOf(there), std::string("first"));
    const QPoint edge = (shown.canvas().rectOf(there).topLeft() + QPointF(60.0, 0.0)).toPoint();
    const QRgb before = shown.pixel(edge);
    QTest::mouseMove(&shown.canvas(), shown.canvas().rectOf(here).center().toPoint());
    QMouseEvent move(QEvent::MouseMove, shown.canvas().rectOf(here).center(), QCursor::pos(), Qt::NoButton, Qt::NoButton, {});
    QCoreApplication::sendEvent(&shown.canvas(), &move);
    QCOMPARE(shown.pixel(edge), ui::qtColour(ColourRole::Text, Theme::Light).rgb());
    QEvent leave(QEvent::Leave);
    QCoreApplication::sendEvent(&shown.canvas(), &leave);
    QCOMPARE(shown.pixel(edge), before);
}

void TestTimelineView::keysZoomAndMove()
{
    Shown shown(twoDevices());
    const TimeWindow whole = shown.canvas().window();
    QCOMPARE(whole, (TimeWindow{0.0, shown.canvas().axis().end()}));
    shown.key(Qt::Key_W);
    QVERIFY(isNear(shown.canvas().window().length(), whole.length() / 1.5));
    const TimeWindow zoomed = shown.canvas().window();
    shown.key(Qt::Key_D);
    QVERIFY(shown.canvas().window().begin > zoomed.begin);
    QVERIFY(isNear(shown.canvas().window().length(), zoomed.length()));
    shown.key(Qt::Key_Home);
    QCOMPARE(shown.canvas().window().begin, 0.0);
    shown.key(Qt::Key_End);
    QVERIFY(isNear(shown.canvas().window().end, whole.end));
    shown.key(Qt::Key_A);
    QVERIFY(shown.canvas().window().end < whole.end);
    shown.key(Qt::Key_S);
    shown.key(Qt::Key_S);
    QCOMPARE(shown.canvas().window(), whole);
    shown.key(Qt::Key_W);
    shown.key(Qt::Key_0);
    QCOMPARE(shown.canvas().window(), whole);
}

void TestTimelineView::controlWheelZoomsAtThePointer()
{
    Shown shown(twoDevices());
    const QRect rows = shown.canvas().rowsRect();
    const QPoint at(rows.left() + rows.width() / 4, rows.center().y());
    const double moment = 0.25 * shown.canvas().window().length();
    shown.wheel(at, {0, 240}, Qt::ControlModifier);
    const TimeWindow window = shown.canvas().window();
    QVERIFY(window.length() < 0.7 * shown.canvas().axis().end());
    QVERIFY(std::abs((moment - window.begin) / window.length() - 0.25) < 0.01);
    shown.wheel(at, {0, -2400}, Qt::ControlModifier);
    QCOMPARE(shown.canvas().window(), (TimeWindow{0.0, shown.canvas().axis().end()}));
}

void TestTimelineView::shiftWheelAndDragMove()
{
    Shown shown(twoDevices());
    shown.canvas().show({2e-3, 4e-3});
    const QPoint middle = shown.canvas().rowsRect().center();
    shown.wheel(middle, {0, -120}, Qt::ShiftModifier);
    QVERIFY(shown.canvas().window().begin > 2e-3);
    shown.canvas().show({2e-3, 4e-3});
    shown.drag(middle, middle + QPoint(100, 0));
    const double moved = 100.0 / shown.canvas().rowsRect().width() * 2e-3;
    QVERIFY2(isNear(shown.canvas().window().begin, 2e-3 - moved), qPrintable(QString::number(shown.canvas().window().begin)));
    QVERIFY(!shown.canvas().selected()); // a drag is not a click
}

void TestTimelineView::wheelScrollsRows()
{
    std::vector<test::OneSlice> slices;
    for (std::uint32_t row = 0; row < 120; ++row)
        slices.push_back({row, 0.0, 1e-3});
    Shown shown(test::timelineOf(Clock::Wall, 120, slices));
    const double before = shown.canvas().rectOf({0, 0}).top();
    shown.wheel(shown.canvas().rowsRect().center(), {0, -120});
    QVERIFY(shown.canvas().rectOf({0, 0}).top() < before);
    const TimeWindow window = shown.canvas().window();
    shown.key(Qt::Key_PageDown);
    QCOMPARE(shown.canvas().window(), window);
    shown.click(shown.canvas().rowsRect().center());
    QVERIFY(shown.canvas().selected()->slice > 10);
}

void TestTimelineView::framesTheSelection()
{
    Shown shown(twoDevices());
    shown.canvas().show({0.0, 5e-3});
    shown.click(shown.canvas().rectOf({0, 0}).center());
    shown.canvas().show({3e-3, 6e-3});
    shown.key(Qt::Key_F); // it lies at 0 to 4 ms: as central as the axis allows
    QVERIFY(shown.canvas().window().begin < 1e-3);
    shown.key(Qt::Key_F);
    QVERIFY(isNear(shown.canvas().window().length(), 4e-3 / 0.8));
    shown.canvas().fit();
    QTest::mouseDClick(&shown.canvas(), Qt::LeftButton, {}, shown.canvas().rectOf({0, 1}).center().toPoint());
    QVERIFY(isNear(shown.canvas().window().length(), 4e-3 / 0.8));
    QVERIFY(isNear(shown.canvas().window().end, 9e-3)); // the end of the step
}

void TestTimelineView::stepsThroughSlices()
{
    Shown shown(twoDevices());
    shown.key(Qt::Key_Period);
    QCOMPARE(*shown.canvas().selected(), (SliceId{0, 0}));
    shown.key(Qt::Key_Period);
    QCOMPARE(*shown.canvas().selected(), (SliceId{0, 1}));
    QCOMPARE(shown.selection.operation(), QString("second"));
    shown.key(Qt::Key_Right);
    QCOMPARE(*shown.canvas().selected(), (SliceId{0, 1})); // the last of its row
    shown.key(Qt::Key_Down);
    QCOMPARE(*shown.canvas().selected(), (SliceId{0, 2}));
    shown.key(Qt::Key_Down);
    QCOMPARE(shown.canvas().model().rowOf(*shown.canvas().selected()).text(), std::string("device 1, compute"));
    shown.key(Qt::Key_Up);
    QCOMPARE(*shown.canvas().selected(), (SliceId{0, 2}));
    shown.key(Qt::Key_Up);
    shown.key(Qt::Key_Up);
    shown.key(Qt::Key_Comma);
    QCOMPARE(shown.canvas().model().rowOf(*shown.canvas().selected()).text(), std::string("device 0, compute"));
    shown.canvas().show({0.0, 1e-3});
    shown.key(Qt::Key_Period);
    QVERIFY(shown.canvas().rectOf(*shown.canvas().selected()).intersects(QRectF(shown.canvas().rowsRect())));
}

void TestTimelineView::zoomIsUndone()
{
    Shown shown(twoDevices());
    const TimeWindow whole = shown.canvas().window();
    shown.canvas().show({1e-3, 2e-3});
    shown.canvas().show({1e-3, 1.5e-3});
    shown.key(Qt::Key_Backspace);
    QCOMPARE(shown.canvas().window(), (TimeWindow{1e-3, 2e-3}));
    shown.key(Qt::Key_Left, Qt::AltModifier);
    QCOMPARE(shown.canvas().window(), whole);
    shown.key(Qt::Key_Right, Qt::AltModifier);
    QCOMPARE(shown.canvas().window(), (TimeWindow{1e-3, 2e-3}));
    shown.key(Qt::Key_Backspace, Qt::ShiftModifier);
    QCOMPARE(shown.canvas().window(), (TimeWindow{1e-3, 1.5e-3}));
}

void TestTimelineView::rulerDragAddsUp()
{
    Shown shown(twoDevices());
    const QRect ruler = shown.canvas().rulerRect();
    const auto x = [&](double ms) { return ruler.left() + static_cast<int>(std::lround(ms / 9.0 * ruler.width())); };
    shown.drag({x(3.0) + 2, ruler.center().y()}, {x(5.0) - 2, ruler.center().y()});
    QVERIFY(shown.canvas().area());
    // It snaps to edges of slices: the collective begins at 3, "second" at 5.
    QVERIFY(isNear(shown.canvas().area()->window.begin, 3e-3));
    QVERIFY(isNear(shown.canvas().area()->window.end, 5e-3));
    QCOMPARE(shown.view.details().totalsHeading(), QString("Selected: 2.00 ms of all rows · rows overlap"));
    const ui::TotalsModel& totals = shown.view.details().totals();
    QStringList cells;
    for (int row = 0; row < totals.rowCount(); ++row)
        cells << totals.index(row, ui::TotalsModel::What).data().toString() + " "
                + totals.index(row, ui::TotalsModel::Time).data().toString();
    QCOMPARE(cells,
        (QStringList{"compute 1.00 ms", "all-reduce 2.00 ms", "idle 0 s", "hidden exchange 1.00 ms", "exposed exchange 1.00 ms",
            "longest operations ", "all_reduce g 2.00 ms", "first 1.00 ms"}));
    QTest::mouseClick(&shown.canvas(), Qt::LeftButton, {}, ruler.center());
    QVERIFY(!shown.canvas().area());
    QCOMPARE(shown.view.details().totalsHeading(), QString("Whole step · rows overlap"));
    shown.click(shown.canvas().rectOf({0, 0}).center());
    shown.key(Qt::Key_M);
    QVERIFY(isNear(shown.canvas().area()->window.end, 4e-3));
    shown.key(Qt::Key_Escape);
    QVERIFY(!shown.canvas().area());
    QVERIFY(shown.canvas().selected());
}

void TestTimelineView::shiftDragTakesRows()
{
    Shown shown(twoDevices());
    const QPoint from = shown.canvas().rectOf({0, 0}).center().toPoint();
    const QPoint to(from.x() + 200, static_cast<int>(shown.canvas().rectOf({0, 2}).center().y()));
    shown.drag(from, to, Qt::ShiftModifier);
    QVERIFY(shown.canvas().area());
    QCOMPARE(shown.canvas().area()->rows.size(), std::size_t{2});
    QVERIFY(shown.view.details().totalsHeading().endsWith(QStringLiteral("of 2 rows · rows overlap")));
    QCOMPARE(shown.canvas().window(), (TimeWindow{0.0, shown.canvas().axis().end()}));
}

void TestTimelineView::searchCountsAndGoesOn()
{
    Shown shown(twoDevices());
    shown.canvas().setFocus();
    shown.key(Qt::Key_F, Qt::ControlModifier);
    QTRY_VERIFY(shown.search()->hasFocus() || !shown.view.isActiveWindow());
    QTest::keyClicks(shown.search(), "S");
    QCOMPARE(shown.count(), QString("4 found")); // first and second, on two devices
    QTest::keyClick(shown.search(), Qt::Key_Return);
    QCOMPARE(shown.count(), QString("1 of 4"));
    QTest::keyClick(shown.search(), Qt::Key_Return);
    QTest::keyClick(shown.search(), Qt::Key_Return);
    QCOMPARE(shown.count(), QString("3 of 4"));
    QCOMPARE(shown.selection.operation(), QString("second"));
    QTest::keyClick(shown.search(), Qt::Key_Return, Qt::ShiftModifier);
    QCOMPARE(shown.count(), QString("2 of 4"));
    shown.key(Qt::Key_F3);
    shown.key(Qt::Key_N);
    QCOMPARE(shown.count(), QString("4 of 4"));
    shown.key(Qt::Key_N);
    QCOMPARE(shown.count(), QString("1 of 4"));
    shown.search()->setText("nothing like it");
    QCOMPARE(shown.count(), QString("nothing found"));
    shown.search()->clear();
    QCOMPARE(shown.count(), QString());
}

void TestTimelineView::showsBadPatternsInline()
{
    Shown shown(twoDevices());
    const auto visibleWords = [&] {
        QStringList words;
        for (const QLabel* label : shown.view.findChildren<QLabel*>()) {
            if (label->isVisible())
                words << label->text();
        }
        return words.join('|');
    };
    shown.search()->setText("fir(st");
    QCOMPARE(shown.count(), QString("nothing found"));
    QTest::mouseClick(shown.find<QToolButton>("Regular expression"), Qt::LeftButton);
    QVERIFY2(visibleWords().contains("not a regular expression: missing closing parenthesis"), qPrintable(visibleWords()));
    shown.search()->setText("fir(st)");
    QVERIFY(!visibleWords().contains("not a regular expression"));
    QCOMPARE(shown.count(), QString("2 found"));
}

void TestTimelineView::manySlicesAreSearchedAside()
{
    Shown shown(test::randomTimeline({.rows = 4, .slices = 20000}));
    QTRY_VERIFY(!shown.view.isBusy());
    shown.search()->setText("op 7");
    QCOMPARE(shown.count(), QString("searching\u2026"));
    QTRY_VERIFY(!shown.view.isBusy());
    QVERIFY2(shown.count().endsWith(" found"), qPrintable(shown.count()));
    shown.key(Qt::Key_N);
    QVERIFY2(shown.count().startsWith("1 of "), qPrintable(shown.count()));
    QVERIFY(shown.selection.operation().startsWith("op 7"));
    shown.search()->setText("op 8");
    shown.search()->setText("op 9$"); // the search before is given up
    QTRY_VERIFY(!shown.view.isBusy());
    QCOMPARE(shown.count(), QString("nothing found"));
}

void TestTimelineView::readsManySlicesAside()
{
    Shown shown;
    const auto large = test::randomTimeline({.rows = 4, .slices = 30000});
    const auto small = test::randomTimeline({.rows = 4, .slices = 20000});
    shown.view.setMeasured(nullptr, large);
    QVERIFY(shown.view.isBusy());
    QVERIFY(shown.canvas().model().isEmpty());
    shown.view.setMeasured(nullptr, small); // before the first is read
    QTRY_VERIFY(!shown.view.isBusy());
    QCOMPARE(shown.canvas().model().sliceCount(), std::size_t{80000});
    QTest::qWait(20);
    QCOMPARE(shown.canvas().model().sliceCount(), std::size_t{80000});
    QVERIFY(shown.view.details().totals().rowCount() > 0);
    shown.view.setMeasured(nullptr, large); // gone before it is read
}

void TestTimelineView::clockOfTheMeasuredStep()
{
    Shown shown;
    shown.view.setMeasured(twoDevices(Clock::Virtual), twoDevices());
    const auto title = [&] { return QString::fromStdString(shown.canvas().model().groups()[0].title); };
    auto* button = shown.find<QToolButton>("Measured: virtual clock");
    QVERIFY(button && button->isVisible());
    QVERIFY2(title().startsWith("measured, virtual clock, as if each device had its own core"), qPrintable(title()));
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(shown.view.measuredClock(), Clock::Wall);
    QCOMPARE(button->text(), QString("Measured: wall clock"));
    QVERIFY2(title().startsWith("measured, wall clock"), qPrintable(title()));
    shown.key(Qt::Key_V);
    QCOMPARE(shown.view.measuredClock(), Clock::Virtual);
    shown.view.setMeasured(nullptr, nullptr);
    QVERIFY(!button->isVisible());
    QVERIFY(shown.canvas().model().isEmpty());
}

void TestTimelineView::stretchesStepsOfDifferentLengths()
{
    Shown shown;
    shown.view.setAnalysis(analysisOf(exampleText()));
    auto* button = shown.find<QToolButton>("Each step over the whole width, with its own ruler; or one ruler for all (T)");
    QVERIFY(button && !button->isVisible());
    // A step a hundred times as long as the simulated one.
    const double simulated = shown.canvas().axis().end();
    const auto measured = test::timelineOf(Clock::Wall, 2, {{0, 0.0, 100.0 * simulated, SliceCategory::Compute, "long"}});
    shown.view.setMeasured(nullptr, measured);
    QVERIFY(button->isVisible() && button->isChecked());
    QVERIFY(shown.canvas().axis().isStretched());
    const QRectF whole = shown.canvas().rectOf({1, 0});
    QVERIFY(isNear(whole.width(), shown.canvas().rowsRect().width()));
    shown.key(Qt::Key_T);
    QVERIFY(!shown.canvas().axis().isStretched());
    const ui::TimelinePart& part = *shown.canvas().model().groups()[0].part;
    QVERIFY(shown.canvas().rectOf({0, part.rowEnd(0) - 1}).right() < shown.canvas().rowsRect().left() + 12.0);
    QVERIFY(isNear(shown.canvas().axis().end(), 100.0 * simulated));
}

void TestTimelineView::groupsCollapse()
{
    Shown shown(twoDevices());
    shown.click(shown.canvas().headingRect(0).center());
    QVERIFY(shown.canvas().isCollapsed(0));
    QVERIFY(shown.canvas().rectOf({0, 0}).isNull());
    QCOMPARE(shown.view.picture().items.size(), std::size_t{0});
    shown.key(Qt::Key_G);
    shown.key(Qt::Key_Right);
    QVERIFY(!shown.canvas().isCollapsed(0));
    shown.key(Qt::Key_Left);
    QVERIFY(shown.canvas().isCollapsed(0));
    shown.key(Qt::Key_Space);
    QVERIFY(!shown.canvas().isCollapsed(0));
    shown.key(Qt::Key_Escape);
    shown.key(Qt::Key_Right); // selects again
    QVERIFY(shown.canvas().selected());
    shown.click(shown.canvas().headingRect(0).center());
    shown.selection.setOperation("second"); // opens what it is in
    QVERIFY(!shown.canvas().isCollapsed(0));
}

void TestTimelineView::tooltips()
{
    const auto tip = [](Shown& shown, QPoint at) {
        QHelpEvent help(QEvent::ToolTip, at, shown.canvas().mapToGlobal(at));
        QCoreApplication::sendEvent(&shown.canvas(), &help);
        return QToolTip::text();
    };
    Shown shown(twoDevices());
    shown.pixel({0, 0});
    QVERIFY(tip(shown, shown.canvas().rectOf({0, 0}).center().toPoint()).startsWith("first\ncompute, 4.00 ms"));
    const QPoint label(20, static_cast<int>(shown.canvas().rectOf({0, 0}).center().y()));
    QCOMPARE(tip(shown, label), QString("device 0, compute"));
    QVERIFY(tip(shown, shown.canvas().rulerRect().center()).startsWith("Drag to select"));

    Shown many(test::randomTimeline({.rows = 2, .slices = 20000, .gapShare = 0.0}));
    many.pixel({0, 0});
    const QPoint at(many.canvas().rowsRect().center().x(), static_cast<int>(many.canvas().rectOf({0, 0}).center().y()));
    QVERIFY2(
        QRegularExpression("^\\d+ slices in .* too short to draw").match(tip(many, at)).hasMatch(), qPrintable(tip(many, at)));
    // A click takes one of them.
    many.click(at);
    QVERIFY(many.canvas().selected());
    many.key(Qt::Key_F);
    many.key(Qt::Key_F);
    QVERIFY(many.canvas().rectOf(*many.canvas().selected()).width() > 0.7 * many.canvas().rowsRect().width());
}

void TestTimelineView::minimapMovesTheWindow()
{
    Shown shown(twoDevices());
    shown.canvas().show({0.0, 1e-3});
    const QRect map = shown.canvas().minimapRect();
    QTest::mouseClick(&shown.canvas(), Qt::LeftButton, {}, map.center());
    QVERIFY(std::abs(shown.canvas().window().begin - 4e-3) < 5e-5); // 4 to 5 ms: the middle of 9
    shown.drag(map.center(), {map.right(), map.center().y()});
    QVERIFY(isNear(shown.canvas().window().end, 9e-3));
}

void TestTimelineView::themeChangesAtRunTime()
{
    Shown shown(twoDevices());
    const QPoint place = (shown.canvas().rectOf({0, 0}).bottomLeft() + QPointF(60.0, -3.0)).toPoint();
    for (const Theme theme : {Theme::Dark, Theme::Light}) {
        ui::applyTheme(*qApp, theme == Theme::Dark ? ui::ThemeChoice::Dark : ui::ThemeChoice::Light);
        QCoreApplication::processEvents();
        QCOMPARE(shown.pixel(place), ui::qtColour(ColourRole::Compute, theme).rgb());
        const QPoint below = shown.canvas().rowsRect().bottomRight() - QPoint(3, 3);
        QCOMPARE(shown.pixel(below), ui::qtColour(ColourRole::Background, theme).rgb());
    }
}

void TestTimelineView::waitArrows()
{
    Shown shown(test::timelineOf(Clock::Simulated, 2,
        {{0, 0.0, 2e-3, SliceCategory::Compute, "first"}, {0, 2e-3, 2e-3, SliceCategory::Wait, "wait for g"},
            {0, 4e-3, 2e-3, SliceCategory::Compute, "second"}, {1, 1e-3, 3e-3, SliceCategory::AllReduce, "all_reduce g"}}));
    const QRectF wait = shown.canvas().rectOf({0, 1});
    const QRectF reduce = shown.canvas().rectOf({0, 3});
    const QPoint between(static_cast<int>(reduce.right()) - 1, static_cast<int>((wait.bottom() + reduce.top()) / 2.0));
    shown.click(wait.center());
    QCOMPARE(shown.pixel(between), ui::qtColour(ColourRole::Text, Theme::Light).rgb());
    shown.key(Qt::Key_Escape);
    QVERIFY(shown.pixel(between) != ui::qtColour(ColourRole::Text, Theme::Light).rgb());
}

void TestTimelineView::helpOpens()
{
    Shown shown(twoDevices());
    shown.key(Qt::Key_Question);
    auto* help = shown.view.findChild<QFrame*>("timelineHelp");
    QVERIFY(help && help->isVisible());
    const QString text = help->findChild<QLabel*>()->text();
    for (const char* word : {"Ctrl+wheel", "drag on the ruler", "Shift+drag in the rows", "Backspace", "virtual or wall clock"})
        QVERIFY2(text.contains(word), word);
    QTest::keyClick(help, Qt::Key_Escape);
    QTRY_VERIFY(!shown.view.findChild<QFrame*>("timelineHelp"));
}

void TestTimelineView::totalsAreAProperModel()
{
    ui::TotalsModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    const auto timelines = test::modelOf({twoDevices(Clock::Simulated), twoDevices()});
    const ui::TimeAxis axis(*timelines, false);
    model.setTotals(*ui::totalsOf(*timelines, axis, {axis.whole(), {}}));
    QCOMPARE(model.headerData(0, Qt::Horizontal, Qt::DisplayRole).toString(), QString("Mean of the 2 devices shown"));
    QVERIFY(model.isHeading(0));
    QCOMPARE(model.index(0, 0).data().toString(), QString("simulated"));
    QCOMPARE(model.index(1, 0).data().toString(), QString("compute"));
    QCOMPARE(model.index(1, ui::TotalsModel::Share).data().toString(), QString("88.9 %"));
    QCOMPARE(model.index(2, ui::TotalsModel::Bandwidth).data().toString(), QString("200 MB/s"));
    QCOMPARE(model.operationOf(1), QString());
    QCOMPARE(model.operationOf(model.rowCount() - 3), QString("all_reduce g"));
    QVERIFY(!model.index(1, 0).data(Qt::DecorationRole).value<QPixmap>().isNull());
    model.setTheme(Theme::Dark);
    model.setTotals({});
    QCOMPARE(model.rowCount(), 0);
}

void TestTimelineView::pictureIsWhatIsVisible()
{
    Shown shown(twoDevices());
    const DisplayList whole = shown.view.picture();
    const auto slices = [](const DisplayList& list) {
        std::set<std::string> ids;
        for (const DisplayItem& item : list.items) {
            if (item.id.starts_with("slice:"))
                ids.insert(item.id);
        }
        return ids.size();
    };
    QCOMPARE(slices(whole), std::size_t{6});
    QVERIFY(whole.height > 60.0 && whole.width >= 480.0);
    shown.canvas().show({0.0, 2e-3});
    QCOMPARE(slices(shown.view.picture()), std::size_t{2});
}

void TestTimelineView::emptyAndTinySteps()
{
    Shown shown(test::timelineOf(Clock::Wall, 2, {}));
    for (const int key : {Qt::Key_W, Qt::Key_F, Qt::Key_Period, Qt::Key_Down, Qt::Key_G, Qt::Key_M, Qt::Key_N, Qt::Key_0})
        shown.key(key);
    shown.click(shown.canvas().rowsRect().center());
    shown.pixel({0, 0});
    shown.view.setMeasured(nullptr, test::timelineOf(Clock::Wall, 2, {{0, 0.0, 0.0}, {0, 0.0, 0.0}}));
    for (const int key : {Qt::Key_Period, Qt::Key_F, Qt::Key_F, Qt::Key_M, Qt::Key_Down})
        shown.key(key);
    shown.pixel({0, 0});
    shown.view.resize(300, 200);
    shown.pixel({0, 0});
}

void TestTimelineView::benchmarkRuns()
{
    const ui::TimelineBenchmark result = ui::benchmarkTimeline(6400, {500, 300});
    QCOMPARE(result.slices, std::int64_t{6400});
    QVERIFY(result.frames > 50);
    QVERIFY(result.frameMsMax >= result.frameMsMedian && result.frameMsMedian > 0.0);
    QVERIFY(result.bytesPerSlice >= 16.0);
    const QString json = QString::fromStdString(ui::timelineBenchmarkJson({1000000, 1.234, 5.678, 16.95, 10}));
    QCOMPARE(json, QString(R"({"slices": 1000000, "frame_ms_median": 1.23, "frame_ms_max": 5.68, "bytes_per_slice": 16.95})"));
}

/// The rows of the study may fill the height; those of what was just opened are seen all the same.
void TestTimelineView::anOpenedTraceIsBroughtIntoSight()
{
    Shown shown(test::timelineOf(Clock::Virtual, 60, {{0, 0.0, 1.0}}));
    const auto heightOfLast = [&] {
        const auto group = static_cast<std::uint32_t>(shown.canvas().model().groups().size() - 1);
        return shown.canvas().rectOf({group, 0}).top();
    };
    shown.view.setForeign(test::timelineOf(Clock::Wall, 3, {{0, 0.0, 1.0}}), "trace.json");
    QTRY_COMPARE(shown.canvas().model().groups().size(), std::size_t{2});
    QVERIFY(heightOfLast() < shown.canvas().height());
    QVERIFY(heightOfLast() >= 0.0);
}

MESHWRIGHT_TEST_RUN(TestTimelineView, [](int argc, char** argv) {
    ui::applyTheme(*qApp, ui::ThemeChoice::Light);
    TestTimelineView test;
    return QTest::qExec(&test, argc, argv);
})

} // namespace tst_timeline_view

#include "tst_timeline_view.moc"
