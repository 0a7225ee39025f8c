// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_scatter.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

#include <cmath>
#include <limits>

namespace tst_draw_scatter {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawScatter : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void lessIsLowerLeft();
    void frontIsAStaircase();
    void limit();
    void oddValues();
    void labelsDoNotCollide();
    void readable();
    void sameBytes();
};

namespace {

using Kind = ScatterPoint::Kind;

ScatterDrawing drawing()
{
    ScatterDrawing drawing;
    drawing.title = "Step time against memory";
    drawing.xTitle = "memory";
    drawing.yTitle = "step time";
    drawing.points = {{1e9, 9e-3, Kind::Front, false, "data=1", "first"}, {4e9, 3e-3, Kind::Front, true, "data=4", "second"},
        {5e9, 6e-3, Kind::Behind, false, "data=2", {}}, {9e9, 2e-3, Kind::OutOfReach, false, {}, {}}};
    drawing.limit = 8e9;
    drawing.limitText = "8 GB for programs";
    return drawing;
}

Point middleOf(const DisplayList& list, std::size_t point)
{
    const DisplayItem* item = itemOf(list, "point:" + std::to_string(point));
    if (item == nullptr)
        return {-1.0, -1.0};
    const RectShape rect = std::get<RectShape>(item->shape);
    return {rect.topLeft.x + rect.width / 2.0, rect.topLeft.y + rect.height / 2.0};
}

} // namespace

void TestDrawScatter::lessIsLowerLeft()
{
    const DisplayList list = drawScatter(drawing());
    QVERIFY(middleOf(list, 0).x < middleOf(list, 1).x);
    QVERIFY(middleOf(list, 0).y < middleOf(list, 1).y); // y runs down
    QCOMPARE(tooltipOf(list, "point:1"), QString("second"));
    QVERIFY(textsOf(list).contains("data=4"));
    QVERIFY(!textsOf(list).contains("data=2")); // only the front is named
}

void TestDrawScatter::frontIsAStaircase()
{
    const DisplayList list = drawScatter(drawing());
    const PolylineShape* stairs = nullptr;
    for (const DisplayItem& item : list.items) {
        if (const auto* line = std::get_if<PolylineShape>(&item.shape))
            stairs = line;
    }
    QVERIFY(stairs != nullptr);
    QCOMPARE(stairs->points.size(), std::size_t(3));
    QCOMPARE(stairs->points[1].y, stairs->points[0].y);
    QCOMPARE(stairs->points[1].x, stairs->points[2].x);
}

void TestDrawScatter::limit()
{
    QVERIFY(textsOf(drawScatter(drawing())).contains("8 GB for programs"));
    ScatterDrawing far = drawing();
    far.points[3].x = 1e12; // would squeeze the others
    const DisplayList list = drawScatter(far);
    QVERIFY(itemOf(list, "point:3") == nullptr);
    QVERIFY(middleOf(list, 1).x > list.width / 3.0);
}

void TestDrawScatter::oddValues()
{
    ScatterDrawing none = drawing();
    none.points.clear();
    QVERIFY(textsOf(drawScatter(none)).contains("no values"));
    ScatterDrawing odd = drawing();
    odd.points = {{std::numeric_limits<double>::quiet_NaN(), 1.0, Kind::Front, false, {}, {}},
        {1.0, 0.0, Kind::Front, false, {}, {}}, {0.0, 1e-9, Kind::Front, true, "x", {}}, {0.0, 1e9, Kind::Behind, false, {}, {}}};
    odd.limit = 0.0;
    const DisplayList list = drawScatter(odd);
    for (const std::size_t point : {2U, 3U})
        QVERIFY(std::isfinite(middleOf(list, point).x) && std::isfinite(middleOf(list, point).y));
}

void TestDrawScatter::labelsDoNotCollide()
{
    ScatterDrawing many = drawing();
    many.points.clear();
    for (int i = 0; i < 60; ++i)
        many.points.push_back(
            {1e9 + 1e6 * i, 1e-3 - 1e-7 * i, Kind::Front, i == 59, "data=" + std::to_string(i) + ",model=8", {}});
    const DisplayList list = drawScatter(many);
    std::vector<std::pair<double, double>> boxes; // of labels: their left ends and heights
    for (const DisplayItem& item : list.items) {
        if (const auto* text = std::get_if<TextShape>(&item.shape); text != nullptr && text->text.starts_with("data=")) {
            for (const auto& [x, y] : boxes)
                QVERIFY(std::fabs(x - text->at.x) > 20.0 || std::fabs(y - text->at.y) >= text->size);
            boxes.emplace_back(text->at.x, text->at.y);
        }
    }
    QVERIFY(!boxes.empty() && boxes.size() < 60);
    QVERIFY(textsOf(list).contains("data=59,model=8")); // the best has its label
}

void TestDrawScatter::readable()
{
    QCOMPARE(faultsOf(drawScatter(drawing())), QString());
}

void TestDrawScatter::sameBytes()
{
    QCOMPARE(svgText(drawScatter(drawing()), Theme::Light), svgText(drawScatter(drawing()), Theme::Light));
}

MESHWRIGHT_TEST(TestDrawScatter)

} // namespace tst_draw_scatter

#include "tst_draw_scatter.moc"
