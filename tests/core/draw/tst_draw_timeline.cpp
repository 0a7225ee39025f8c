// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_timeline.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

#include <set>

namespace tst_draw_timeline {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawTimeline : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void slicesLieWhereTheirTimeIs();
    void everyCategoryLooksItsOwn();
    void tooltips();
    void aPart();
    void aSliverOfALongSlice();
    void shortSlicesAreFolded();
    void itemsAreBounded();
    void rowsAreChosenAndCounted();
    void emptyTimelines();
    void readable();
    void sameBytes();
};

namespace {

/// 10 ms: compute, a wait in the middle; an all-reduce beside it.
Timeline smallTimeline()
{
    Timeline timeline(Clock::Simulated);
    timeline.addRow(0, "compute");
    timeline.addRow(0, "collectives");
    const auto add = [&](std::uint32_t row, double start, double duration, const char* name, SliceCategory category) {
        Slice slice;
        slice.startSeconds = start;
        slice.durationSeconds = duration;
        slice.row = row;
        slice.name = timeline.intern(name);
        slice.category = category;
        if (category == SliceCategory::AllReduce) {
            slice.bytes = 4096;
            slice.detail = timeline.intern("ring: 2 (n - 1) / n * B / w");
        }
        timeline.add(slice);
    };
    add(0, 0.0, 4e-3, "dot_general act.layers.1.product", SliceCategory::Compute);
    add(0, 4e-3, 4e-3, "wait for grad.layers.1.w", SliceCategory::Wait);
    add(0, 8e-3, 2e-3, "update", SliceCategory::Compute);
    add(1, 3e-3, 5e-3, "all_reduce grad.layers.1.w", SliceCategory::AllReduce);
    timeline.sort();
    return timeline;
}

Timeline longTimeline(int rows, int slicesPerRow)
{
    Timeline timeline(Clock::Virtual);
    const auto name = timeline.intern("multiply");
    for (int row = 0; row < rows; ++row) {
        const auto index = timeline.addRow(row, "compute");
        for (int i = 0; i < slicesPerRow; ++i) {
            Slice slice;
            slice.startSeconds = 1e-6 * i;
            slice.durationSeconds = i % 100 == 0 ? 0.9e-6 : 0.5e-6;
            slice.row = index;
            slice.name = name;
            slice.category = i % 3 == 0 ? SliceCategory::AllGather : SliceCategory::Compute;
            timeline.add(slice);
        }
    }
    return timeline;
}

const RectShape& rectOf(const DisplayList& list, const std::string& id)
{
    return std::get<RectShape>(itemOf(list, id)->shape);
}

} // namespace

void TestDrawTimeline::slicesLieWhereTheirTimeIs()
{
    const DisplayList list = drawTimeline(smallTimeline(), {});
    const RectShape& compute = rectOf(list, "slice:0");
    const RectShape& wait = rectOf(list, "slice:1");
    const RectShape& update = rectOf(list, "slice:2");
    const RectShape& reduce = rectOf(list, "slice:3");
    QVERIFY(std::fabs(wait.width - 2.0 * update.width) < 1e-6);
    QVERIFY(std::fabs(compute.topLeft.x + compute.width - wait.topLeft.x) < 1e-6);
    QVERIFY(reduce.topLeft.y > wait.topLeft.y + 20.0);
    QVERIFY(std::fabs(reduce.topLeft.x - compute.topLeft.x - 0.75 * compute.width) < 1e-6);
    QVERIFY(compute.style.fill == Paint(ColourRole::Compute));
    QVERIFY(wait.style.hatch == Hatch::Rising);
    QVERIFY(textsOf(list).contains("device 0 collectives"));
    QVERIFY(textsOf(list).contains("all_reduce grad.layers.1.w"));
    QVERIFY(textsOf(list).contains("4 ms"));
    QVERIFY(textsOf(list).contains("all-reduce")); // the legend
    QVERIFY(!textsOf(list).contains("permute"));
}

void TestDrawTimeline::everyCategoryLooksItsOwn()
{
    std::set<std::pair<ColourRole, Hatch>> looks;
    for (int i = 0; i <= static_cast<int>(SliceCategory::Host); ++i) {
        const SliceLook look = sliceLook(static_cast<SliceCategory>(i));
        looks.insert({look.role, look.hatch});
    }
    QCOMPARE(looks.size(), std::size_t{10});
}

void TestDrawTimeline::tooltips()
{
    const DisplayList list = drawTimeline(smallTimeline(), {});
    QCOMPARE(tooltipOf(list, "slice:3"),
        QString("all_reduce grad.layers.1.w\nall-reduce, 5.00 ms long, at 3.00 ms\n4.00 KiB\nring: 2 (n - 1) / n * B / w"));
    QCOMPARE(tooltipOf(list, "slice:2"), QString("update\ncompute, 2.00 ms long, at 8.00 ms"));
}

void TestDrawTimeline::aPart()
{
    TimelineDrawing drawing;
    drawing.fromSeconds = 3.5e-3;
    drawing.toSeconds = 4.5e-3;
    const DisplayList list = drawTimeline(smallTimeline(), drawing);
    const RectShape& compute = rectOf(list, "slice:0"); // cut at the left edge
    const RectShape& reduce = rectOf(list, "slice:3"); // as long as the part
    QVERIFY(std::fabs(reduce.width - 2.0 * compute.width) < 1e-6);
    QCOMPARE(itemOf(list, "slice:2"), nullptr);
    QVERIFY(textsOf(list).contains("4.0 ms"));
}

/// What is left of a long slice at the edge of a part is as wide as its time in the part.
void TestDrawTimeline::aSliverOfALongSlice()
{
    TimelineDrawing drawing;
    drawing.fromSeconds = 4e-3 - 1e-6; // "dot_general" ends at 4 ms
    drawing.toSeconds = 8e-3;
    const DisplayList list = drawTimeline(smallTimeline(), drawing);
    QVERIFY(rectOf(list, "slice:0").width < 1.0);
    QVERIFY(rectOf(list, "slice:1").width > 100.0);
}

void TestDrawTimeline::shortSlicesAreFolded()
{
    const DisplayList list = drawTimeline(longTimeline(1, 100000), {});
    QCOMPARE(itemOf(list, "slice:50"), nullptr);
    const DisplayItem* folded = itemOf(list, "folded:0");
    QVERIFY(folded != nullptr);
    QVERIFY2(QString::fromStdString(folded->tooltip).contains("slices too short to draw")
            && QString::fromStdString(folded->tooltip).contains("most of it compute"),
        folded->tooltip.c_str());
    // Half of the time is busy, so the shapes are half as high as a row's slices (18).
    QVERIFY(std::fabs(std::get<RectShape>(folded->shape).height - 9.0) < 1.0);
}

void TestDrawTimeline::itemsAreBounded()
{
    const Timeline timeline = longTimeline(16, 20000);
    TimelineDrawing drawing;
    drawing.mostSlices = 2000;
    const DisplayList list = drawTimeline(timeline, drawing);
    QVERIFY(list.items.size() < 2500);
    QVERIFY(list.items.size() > 500);
    for (const auto& [id, item] : itemsOf(list)) {
        const RectShape& rect = std::get<RectShape>(item.shape);
        QVERIFY(rect.topLeft.x >= 12.0 && rect.topLeft.x + rect.width <= list.width);
    }
}

void TestDrawTimeline::rowsAreChosenAndCounted()
{
    const Timeline timeline = longTimeline(40, 10);
    TimelineDrawing drawing;
    drawing.mostRows = 8;
    const DisplayList list = drawTimeline(timeline, drawing);
    QVERIFY(textsOf(list).contains("32 more rows"));
    QVERIFY(textsOf(list).contains("device 7 compute") && !textsOf(list).contains("device 8 compute"));

    drawing.rows = {30, 2};
    const QStringList texts = textsOf(drawTimeline(timeline, drawing));
    QVERIFY(texts.indexOf("device 30 compute") >= 0);
    QVERIFY(texts.indexOf("device 2 compute") > texts.indexOf("device 30 compute"));
    QVERIFY(!texts.contains("device 0 compute"));
}

void TestDrawTimeline::emptyTimelines()
{
    QVERIFY(drawTimeline(Timeline{}, {}).height > 0.0);
    Timeline rowsOnly;
    rowsOnly.addRow(0, "compute");
    QVERIFY(textsOf(drawTimeline(rowsOnly, {})).contains("device 0 compute"));
}

void TestDrawTimeline::readable()
{
    TimelineDrawing drawing;
    drawing.title = "One step";
    QCOMPARE(faultsOf(drawTimeline(smallTimeline(), drawing)), QString());
    drawing.width = 320.0;
    QCOMPARE(faultsOf(drawTimeline(smallTimeline(), drawing)), QString());
}

void TestDrawTimeline::sameBytes()
{
    const auto svg = [] { return svgText(drawTimeline(longTimeline(2, 5000), {}), Theme::Light); };
    QCOMPARE(svg(), svg());
}

MESHWRIGHT_TEST(TestDrawTimeline)

} // namespace tst_draw_timeline

#include "tst_draw_timeline.moc"
