// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_heat_map.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

namespace tst_draw_heat_map {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawHeatMap : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cellsTile();
    void lessIsLighter();
    void cellsWithoutAValue();
    void manyCells();
    void oneCell();
    void readable();
    void sameBytes();
};

namespace {

HeatMapDrawing drawing(std::size_t columns = 3, std::size_t rows = 2)
{
    HeatMapDrawing drawing;
    drawing.title = "Step time by mesh and batch";
    drawing.xTitle = "batch";
    drawing.yTitle = "mesh";
    for (std::size_t i = 0; i < columns; ++i)
        drawing.columns.push_back(std::to_string(1024 << i % 10));
    for (std::size_t i = 0; i < rows; ++i)
        drawing.rows.push_back("data=" + std::to_string(i) + ",model=8");
    for (std::size_t i = 0; i < rows * columns; ++i)
        drawing.cells.push_back(
            {HeatMapCell::State::Value, 1e-3 * static_cast<double>(i + 1), {}, "cell " + std::to_string(i), i == 0});
    return drawing;
}

RectShape rectOf(const DisplayList& list, std::size_t cell)
{
    const DisplayItem* item = itemOf(list, "cell:" + std::to_string(cell));
    return item == nullptr ? RectShape{} : std::get<RectShape>(item->shape);
}

} // namespace

void TestDrawHeatMap::cellsTile()
{
    const DisplayList list = drawHeatMap(drawing());
    for (std::size_t cell = 0; cell < 6; ++cell) {
        const RectShape rect = rectOf(list, cell);
        QVERIFY(rect.width > 20.0 && rect.height > 10.0);
        if (cell % 3 > 0)
            QCOMPARE(rect.topLeft.x, rectOf(list, cell - 1).topLeft.x + rect.width + 2.0);
        if (cell >= 3)
            QCOMPARE(rect.topLeft.y, rectOf(list, cell - 3).topLeft.y + rect.height + 2.0);
    }
    QVERIFY(textsOf(list).contains("1.00 ms"));
    QVERIFY(textsOf(list).contains("6.00 ms"));
    QCOMPARE(tooltipOf(list, "cell:4"), QString("cell 4"));
}

void TestDrawHeatMap::lessIsLighter()
{
    const DisplayList list = drawHeatMap(drawing());
    for (std::size_t cell = 1; cell < 6; ++cell)
        QVERIFY(luminance(std::get<Colour>(rectOf(list, cell).style.fill))
            < luminance(std::get<Colour>(rectOf(list, cell - 1).style.fill)));
    QVERIFY(!std::holds_alternative<std::monostate>(rectOf(list, 0).style.outline)); // the best
    QVERIFY(std::holds_alternative<std::monostate>(rectOf(list, 1).style.outline));
}

void TestDrawHeatMap::cellsWithoutAValue()
{
    HeatMapDrawing some = drawing();
    some.cells[1] = {HeatMapCell::State::OutOfReach, 5.0, "too large", {}, false};
    some.cells[2] = {HeatMapCell::State::Refused, 0.0, "MW1104", {}, false};
    some.cells[3] = {};
    const DisplayList list = drawHeatMap(some);
    QVERIFY(rectOf(list, 1).style.hatch == Hatch::Rising);
    QVERIFY(rectOf(list, 2).style.hatch == Hatch::None);
    QVERIFY(textsOf(list).contains("MW1104") && textsOf(list).contains("too large"));
    QVERIFY(!textsOf(list).contains("5.00 s")); // what does not count is not on the scale
    QVERIFY(textsOf(list).contains("does not fit"));
    QVERIFY(textsOf(list).contains("refused, with the problem"));
}

void TestDrawHeatMap::manyCells()
{
    const DisplayList list = drawHeatMap(drawing(80, 20));
    const RectShape last = rectOf(list, 1599);
    QVERIFY(last.topLeft.x + last.width <= list.width);
    QVERIFY(last.topLeft.y + last.height <= list.height);
    QVERIFY(last.width >= 10.0);
}

void TestDrawHeatMap::oneCell()
{
    const DisplayList list = drawHeatMap(drawing(1, 1));
    QVERIFY(list.width > 0.0 && list.height > 0.0);
    QVERIFY(textsOf(list).contains("1.00 ms"));
}

void TestDrawHeatMap::readable()
{
    for (const DisplayList& list : {drawHeatMap(drawing()), drawHeatMap(drawing(12, 7)), drawHeatMap(drawing(60, 3))})
        QCOMPARE(faultsOf(list), QString());
}

void TestDrawHeatMap::sameBytes()
{
    QCOMPARE(svgText(drawHeatMap(drawing()), Theme::Dark), svgText(drawHeatMap(drawing()), Theme::Dark));
}

MESHWRIGHT_TEST(TestDrawHeatMap)

} // namespace tst_draw_heat_map

#include "tst_draw_heat_map.moc"
