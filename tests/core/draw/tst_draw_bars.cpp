// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_bars.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_draw_bars {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawBars : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void partsAreInProportion();
    void tooltipsAndLegend();
    void oddValues_data();
    void oddValues();
    void listOnOneScale();
    void longLists();
    void emptyList();
    void readable();
    void sameBytes();
};

namespace {

StackedBarDrawing breakdown()
{
    StackedBarDrawing drawing;
    drawing.title = "Where the step's time goes";
    drawing.parts
        = {{"compute", 6e-3, ColourRole::Compute}, {"exposed communication", 3e-3, ColourRole::AllReduce, Hatch::Rising},
            {"bubble", 1e-3, ColourRole::Idle, Hatch::Falling}};
    return drawing;
}

RectShape rectOf(const DisplayList& list, const std::string& id)
{
    const DisplayItem* item = itemOf(list, id);
    return item == nullptr ? RectShape{} : std::get<RectShape>(item->shape);
}

BarsDrawing collectives(std::size_t count)
{
    BarsDrawing drawing;
    drawing.title = "Collectives by time";
    for (std::size_t i = 0; i < count; ++i) {
        const double value = 1e-3 * static_cast<double>(count - i);
        drawing.bars.push_back({"grad.layers." + std::to_string(i) + ".w over data",
            {{"hidden", value / 2.0, ColourRole::AllReduce}, {"exposed", value / 2.0, ColourRole::AllReduce, Hatch::Rising}},
            "1 call", {}, {}});
    }
    return drawing;
}

} // namespace

void TestDrawBars::partsAreInProportion()
{
    const DisplayList list = drawStackedBar(breakdown());
    QCOMPARE(list.width, 760.0);
    QCOMPARE(rectOf(list, "part:compute").width, 0.6 * 736.0); // 12 pixels of margin on both sides
    QCOMPARE(rectOf(list, "part:bubble").width, 0.1 * 736.0);
    QCOMPARE(rectOf(list, "part:exposed communication").topLeft.x, 12.0 + 0.6 * 736.0);
    QVERIFY(rectOf(list, "part:exposed communication").style.hatch == Hatch::Rising);
    QVERIFY(textsOf(list).contains("compute 6.00 ms"));
}

void TestDrawBars::tooltipsAndLegend()
{
    StackedBarDrawing drawing = breakdown();
    drawing.parts[1].detail = "all_reduce over data";
    const DisplayList list = drawStackedBar(drawing);
    QCOMPARE(
        tooltipOf(list, "part:exposed communication"), QString("exposed communication\n3.00 ms (30 %)\nall_reduce over data"));
    QVERIFY(textsOf(list).contains("bubble 1.00 ms (10 %)"));
}

void TestDrawBars::oddValues_data()
{
    QTest::addColumn<QVector<double>>("values");
    QTest::addColumn<int>("shapes"); ///< parts that are drawn in the bar
    QTest::newRow("nothing") << QVector<double>{} << 0;
    QTest::newRow("all zero") << QVector<double>{0.0, 0.0} << 0;
    QTest::newRow("not finite") << QVector<double>{std::nan(""), INFINITY, 2.0} << 1;
    QTest::newRow("tiny beside large") << QVector<double>{1e-9, 1.0, 1e-12} << 3;
}

void TestDrawBars::oddValues()
{
    QFETCH(QVector<double>, values);
    QFETCH(int, shapes);
    StackedBarDrawing drawing;
    for (const double value : values)
        drawing.parts.push_back({"p" + std::to_string(drawing.parts.size()), value, ColourRole::Compute});
    const DisplayList list = drawStackedBar(drawing);
    int found = 0;
    double width = 0.0;
    for (const auto& [id, item] : itemsOf(list)) {
        const RectShape& rect = std::get<RectShape>(item.shape);
        if (rect.height == drawing.barHeight) {
            ++found;
            width += rect.width;
            QVERIFY(rect.width >= 1.0 && std::isfinite(rect.width));
        }
    }
    QCOMPARE(found, shapes);
    if (shapes > 0)
        QVERIFY(std::fabs(width - 736.0) < 1e-6);
}

void TestDrawBars::listOnOneScale()
{
    const DisplayList list = drawBars(collectives(4));
    // Bars without ids: their fills, the first twice as long as the third.
    std::vector<double> widths;
    for (const DisplayItem& item : list.items) {
        const auto* rect = std::get_if<RectShape>(&item.shape);
        if (rect != nullptr && item.id.empty() && rect->height == 16.0)
            widths.push_back(rect->width);
    }
    QCOMPARE(widths.size(), std::size_t{8});
    QVERIFY(std::fabs(widths[0] - 2.0 * widths[4]) < 1e-6);
    QCOMPARE(tooltipOf(list, "bar:1"), QString("grad.layers.1.w over data\n3.00 ms, 1 call"));
    QVERIFY(textsOf(list).contains("hidden") && textsOf(list).contains("exposed"));
}

void TestDrawBars::longLists()
{
    BarsDrawing drawing = collectives(100);
    drawing.mostBars = 10;
    const DisplayList list = drawBars(drawing);
    QVERIFY(textsOf(list).contains("91 more"));
    // 91 + 90 + ... + 1 milliseconds
    QVERIFY(tooltipOf(list, "bars:rest").startsWith("91 more\n4.19 s"));
    QCOMPARE(itemOf(list, "bar:9"), nullptr);
}

void TestDrawBars::emptyList()
{
    QVERIFY(textsOf(drawBars({})).contains("nothing to show"));
}

void TestDrawBars::readable()
{
    QCOMPARE(faultsOf(drawStackedBar(breakdown())), QString());
    QCOMPARE(faultsOf(drawBars(collectives(12))), QString());
    StackedBarDrawing narrow = breakdown();
    narrow.width = 260.0;
    QCOMPARE(faultsOf(drawStackedBar(narrow)), QString());
}

void TestDrawBars::sameBytes()
{
    QCOMPARE(svgText(drawBars(collectives(5)), Theme::Dark), svgText(drawBars(collectives(5)), Theme::Dark));
}

MESHWRIGHT_TEST(TestDrawBars)

} // namespace tst_draw_bars

#include "tst_draw_bars.moc"
