// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_memory.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_draw_memory {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawMemory : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void areasAreStacked();
    void momentsThatAreShorterThanAPixelShow();
    void peak();
    void limit();
    void farLimit();
    void frameAndMoments();
    void labelsWhereTheyFit();
    void tooltips();
    void emptySteps();
    void readable_data();
    void readable();
    void sameBytes();
};

namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// Parameters of 4 GiB; activations of 2, 6 and 1 GiB, each for a third of 9 ms.
MemoryDrawing steps()
{
    MemoryDrawing drawing;
    drawing.kinds = {{"parameters", ColourRole::Compute}, {"activations", ColourRole::ReduceScatter, Hatch::Rising}};
    drawing.moments = {{0.0, {4 * kGiB, 2 * kGiB}}, {3e-3, {4 * kGiB, 6 * kGiB}}, {6e-3, {4 * kGiB, kGiB}}};
    drawing.endSeconds = 9e-3;
    drawing.limitBytes = 16 * kGiB;
    drawing.reserveBytes = 2 * kGiB;
    drawing.peakBytes = 10 * kGiB;
    return drawing;
}

PolygonShape areaOf(const DisplayList& list, const std::string& kind)
{
    return std::get<PolygonShape>(itemOf(list, "kind:" + kind)->shape);
}

double topOf(const PolygonShape& area)
{
    return std::min_element(area.corners.begin(), area.corners.end(), [](Point a, Point b) { return a.y < b.y; })->y;
}

} // namespace

void TestDrawMemory::areasAreStacked()
{
    const MemoryDrawing drawing = steps();
    const MemoryFrame frame = memoryFrame(drawing);
    const DisplayList list = drawMemory(drawing);
    QCOMPARE(topOf(areaOf(list, "parameters")), frame.yOf(4.0 * kGiB));
    QCOMPARE(topOf(areaOf(list, "activations")), frame.yOf(10.0 * kGiB));
    // A point in a band is the band's, whatever lies below it.
    const auto idAt = [&](double seconds, double gib) {
        const DisplayItem* item = list.itemAt({frame.xOf(seconds), frame.yOf(gib * kGiB)});
        return item == nullptr ? std::string() : item->id;
    };
    QCOMPARE(idAt(1e-3, 3.0), std::string("kind:parameters"));
    QCOMPARE(idAt(1e-3, 5.0), std::string("kind:activations"));
    QCOMPARE(idAt(1e-3, 7.0), std::string());
    QCOMPARE(idAt(4e-3, 9.0), std::string("kind:activations"));
    QCOMPARE(idAt(8e-3, 5.5), std::string());
    QVERIFY(areaOf(list, "activations").style.hatch == Hatch::Rising);
}

void TestDrawMemory::momentsThatAreShorterThanAPixelShow()
{
    MemoryDrawing drawing = steps();
    drawing.moments.insert(drawing.moments.begin() + 1, {1e-3, {4 * kGiB, 9 * kGiB}}); // ends as it begins
    drawing.moments.insert(drawing.moments.begin() + 2, {1e-3, {4 * kGiB, 2 * kGiB}});
    drawing.peakBytes = 13 * kGiB;
    const MemoryFrame frame = memoryFrame(drawing);
    const PolygonShape area = areaOf(drawMemory(drawing), "activations");
    QCOMPARE(topOf(area), frame.yOf(13.0 * kGiB));
    const auto narrow = std::count_if(
        area.corners.begin(), area.corners.end(), [&](Point corner) { return corner.y == frame.yOf(13.0 * kGiB); });
    QCOMPARE(narrow, std::ptrdiff_t{2}); // one column of pixels
}

void TestDrawMemory::peak()
{
    MemoryDrawing drawing = steps();
    const MemoryFrame frame = memoryFrame(drawing);
    const RectShape dot = std::get<RectShape>(itemOf(drawMemory(drawing), "memory:peak")->shape);
    QVERIFY(std::fabs(dot.topLeft.x + 6.0 - frame.xOf(3e-3)) <= 1.0);
    QCOMPARE(dot.topLeft.y + 6.0, frame.yOf(10.0 * kGiB));
    QVERIFY(textsOf(drawMemory(drawing)).contains("peak 10.0 GiB"));

    drawing.peakBytes = 12 * kGiB; // the buffers leave gaps
    QVERIFY(textsOf(drawMemory(drawing)).contains("peak 12.0 GiB, 2.00 GiB of it gaps"));
    drawing.peakMoment = 0; // the plan says that it is another moment
    const DisplayList list = drawMemory(drawing);
    const RectShape moved = std::get<RectShape>(itemOf(list, "memory:peak")->shape);
    QVERIFY(moved.topLeft.x + 6.0 < memoryFrame(drawing).xOf(1e-3));
}

void TestDrawMemory::limit()
{
    const MemoryDrawing drawing = steps();
    const MemoryFrame frame = memoryFrame(drawing);
    const DisplayList list = drawMemory(drawing);
    std::vector<double> heights;
    for (const auto& [id, item] : itemsOf(list)) {
        if (const auto* line = std::get_if<LineShape>(&item.shape); line != nullptr && id == "memory:limit")
            heights.push_back(line->from.y);
    }
    QCOMPARE(heights, (std::vector<double>{frame.yOf(16.0 * kGiB), frame.yOf(14.0 * kGiB)}));
    QVERIFY(textsOf(list).contains("16.0 GiB a device, 14.0 GiB usable"));
    QCOMPARE(tooltipOf(list, "memory:limit"), QString("memory of a device 16.0 GiB\nreserve 2.00 GiB\nusable 14.0 GiB"));
}

void TestDrawMemory::farLimit()
{
    MemoryDrawing drawing = steps();
    drawing.limitBytes = 96 * kGiB;
    const DisplayList list = drawMemory(drawing);
    QVERIFY(textsOf(list).contains("↑ not to scale: 96.0 GiB a device, 94.0 GiB usable"));
    QVERIFY(memoryFrame(drawing).mostBytes < 16.0 * kGiB); // the areas fill the picture
    drawing.limitBytes = 0;
    QCOMPARE(itemOf(drawMemory(drawing), "memory:limit"), nullptr);
}

void TestDrawMemory::frameAndMoments()
{
    const MemoryDrawing drawing = steps();
    const MemoryFrame frame = memoryFrame(drawing);
    QCOMPARE(frame.xOf(0.0), frame.topLeft.x);
    QCOMPARE(frame.xOf(9e-3), frame.topLeft.x + frame.width);
    QCOMPARE(frame.secondsAt(frame.xOf(4e-3)), 4e-3);
    QCOMPARE(frame.secondsAt(-100.0), 0.0);
    QCOMPARE(frame.secondsAt(1e6), 9e-3);
    QCOMPARE(momentAt(drawing, 0.0), std::size_t{0});
    QCOMPARE(momentAt(drawing, 2.9e-3), std::size_t{0});
    QCOMPARE(momentAt(drawing, 3e-3), std::size_t{1});
    QCOMPARE(momentAt(drawing, 1.0), std::size_t{2});
    QCOMPARE(totalBytes(drawing.moments[1]), 10 * kGiB);
}

void TestDrawMemory::labelsWhereTheyFit()
{
    MemoryDrawing drawing = steps();
    drawing.legend = false;
    QVERIFY(textsOf(drawMemory(drawing)).contains("parameters"));
    QVERIFY(textsOf(drawMemory(drawing)).contains("activations"));
    // Where there is most room: a third of the step with 6 GiB, rather than two thirds with 2 GiB.
    const MemoryFrame frame = memoryFrame(drawing);
    for (const DisplayItem& item : drawMemory(drawing).items) {
        const auto* text = std::get_if<TextShape>(&item.shape);
        if (text != nullptr && text->text == "activations") {
            QVERIFY(std::fabs(text->at.x - frame.xOf(4.5e-3)) < 1.0);
            QVERIFY(std::fabs(text->at.y - frame.yOf(7.0 * kGiB)) < 1.0);
        }
    }
    drawing.moments[0].bytesByKind[1] = drawing.moments[1].bytesByKind[1] = drawing.moments[2].bytesByKind[1] = kGiB / 4;
    QVERIFY(!textsOf(drawMemory(drawing)).contains("activations")); // a thin band has none
}

void TestDrawMemory::tooltips()
{
    MemoryDrawing drawing = steps();
    drawing.peakBytes = 11 * kGiB;
    const DisplayList list = drawMemory(drawing);
    QCOMPARE(tooltipOf(list, "kind:activations"), QString("activations\nat the peak 6.00 GiB (60 %)\nat most 6.00 GiB"));
    QCOMPARE(tooltipOf(list, "memory:peak"),
        QString("peak 11.0 GiB at 3.00 ms\nactivations 6.00 GiB\nparameters 4.00 GiB\ngaps between buffers 1.00 GiB"));
}

void TestDrawMemory::emptySteps()
{
    MemoryDrawing drawing;
    QVERIFY(textsOf(drawMemory(drawing)).contains("nothing in use"));
    drawing.kinds = {{"parameters"}};
    drawing.moments = {{0.0, {0}}};
    QVERIFY(drawMemory(drawing).items.size() > 2); // no time, no bytes, no crash
    drawing = steps();
    drawing.endSeconds = 0.0;
    QVERIFY(!textsOf(drawMemory(drawing)).isEmpty());
}

void TestDrawMemory::readable_data()
{
    QTest::addColumn<double>("width");
    QTest::addColumn<double>("height");
    QTest::addColumn<qint64>("limitGib");
    QTest::addColumn<int>("peakMoment");
    for (const double width : {300.0, 760.0, 1400.0}) {
        for (const qint64 limit : {0, 11, 16, 200}) {
            for (const int moment : {0, 1, 2})
                QTest::addRow("%.0f wide, %lld GiB, peak %d", width, static_cast<long long>(limit), moment)
                    << width << width / 2.4 << limit << moment;
        }
    }
}

void TestDrawMemory::readable()
{
    QFETCH(double, width);
    QFETCH(double, height);
    QFETCH(qint64, limitGib);
    QFETCH(int, peakMoment);
    MemoryDrawing drawing = steps();
    drawing.width = width;
    drawing.height = height;
    drawing.limitBytes = limitGib * kGiB;
    drawing.peakMoment = static_cast<std::size_t>(peakMoment);
    drawing.peakBytes = 10 * kGiB + kGiB / 4;
    QCOMPARE(faultsOf(drawMemory(drawing)), QString());
}

void TestDrawMemory::sameBytes()
{
    QCOMPARE(svgText(drawMemory(steps()), Theme::Dark), svgText(drawMemory(steps()), Theme::Dark));
}

MESHWRIGHT_TEST(TestDrawMemory)

} // namespace tst_draw_memory

#include "tst_draw_memory.moc"
