// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_curves.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_draw_curves {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawCurves : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void gaps();
    void thinningKeepsExtremes();
    void logarithmic();
    void oddData_data();
    void oddData();
    void tooltips();
    void marks();
    void readable();
    void sameBytes();
};

namespace {

Curve curveOf(const std::vector<double>& values, const char* name = "loss")
{
    Curve curve;
    curve.name = name;
    for (std::size_t i = 0; i < values.size(); ++i) {
        curve.x.push_back(static_cast<double>(i));
        curve.y.push_back(values[i]);
    }
    return curve;
}

CurvesDrawing drawingOf(std::vector<Curve> curves)
{
    CurvesDrawing drawing;
    drawing.title = "Loss";
    drawing.xTitle = "step";
    drawing.yTitle = "loss";
    drawing.curves = std::move(curves);
    return drawing;
}

std::vector<PolylineShape> linesOf(const DisplayList& list)
{
    std::vector<PolylineShape> lines;
    for (const DisplayItem& item : list.items) {
        if (const auto* line = std::get_if<PolylineShape>(&item.shape))
            lines.push_back(*line);
    }
    return lines;
}

} // namespace

void TestDrawCurves::gaps()
{
    const double nan = std::nan("");
    const DisplayList list = drawCurves(drawingOf({curveOf({3, 2, nan, 1, INFINITY, 2, 1})}));
    const auto lines = linesOf(list);
    QCOMPARE(lines.size(), std::size_t{2}); // 0-1 and 5-6; 3 is a dot
    QCOMPARE(lines[0].points.size(), std::size_t{2});
    const auto dots = std::count_if(list.items.begin(), list.items.end(),
        [](const DisplayItem& item) { return item.id == "curve:0" && std::holds_alternative<RectShape>(item.shape); });
    QCOMPARE(dots, std::ptrdiff_t{1});
    QVERIFY(tooltipOf(list, "curve:0").contains("2 left out: not finite"));
}

void TestDrawCurves::thinningKeepsExtremes()
{
    std::vector<double> values(200000, 1.0);
    values[123456] = 9.0; // a single spike
    values[77777] = -5.0;
    const DisplayList list = drawCurves(drawingOf({curveOf(values)}));
    const auto lines = linesOf(list);
    QCOMPARE(lines.size(), std::size_t{1});
    QVERIFY(lines[0].points.size() < 4 * 480);
    double top = 1e9;
    double bottom = -1e9;
    for (const Point& point : lines[0].points) {
        top = std::min(top, point.y);
        bottom = std::max(bottom, point.y);
    }
    const double middle = lines[0].points.front().y; // of 1.0: 8 below the top, 6 above the bottom
    QVERIFY(std::fabs((middle - top) / (bottom - top) - 8.0 / 14.0) < 1e-9);
}

void TestDrawCurves::logarithmic()
{
    CurvesDrawing drawing = drawingOf({curveOf({1e-6, 1e-5, 0.0, 1e-4})});
    drawing.logarithmic = true;
    const DisplayList list = drawCurves(drawing);
    QVERIFY(textsOf(list).contains("1e-05"));
    const auto lines = linesOf(list);
    QCOMPARE(lines.size(), std::size_t{1}); // 0 has no logarithm
    // Equal steps for equal factors: the third point is a dot, as far above the second as that above the first.
    const double step = lines[0].points[0].y - lines[0].points[1].y;
    const auto dot = std::find_if(list.items.begin(), list.items.end(),
        [](const DisplayItem& item) { return item.id == "curve:0" && std::holds_alternative<RectShape>(item.shape); });
    QVERIFY(std::fabs(lines[0].points[1].y - (std::get<RectShape>(dot->shape).topLeft.y + 2.0) - step) < 1e-6);
}

void TestDrawCurves::oddData_data()
{
    QTest::addColumn<QVector<double>>("values");
    QTest::addColumn<bool>("logarithmic");
    QTest::addColumn<bool>("isEmpty");
    const double nan = std::nan("");
    QTest::newRow("none") << QVector<double>{} << false << true;
    QTest::newRow("only nan") << QVector<double>{nan, nan} << false << true;
    QTest::newRow("not positive") << QVector<double>{0.0, -1.0} << true << true;
    QTest::newRow("one point") << QVector<double>{2.0} << false << false;
    QTest::newRow("one point, logarithmic") << QVector<double>{2e-7} << true << false;
    QTest::newRow("level") << QVector<double>{5.0, 5.0, 5.0} << false << false;
    QTest::newRow("level at zero") << QVector<double>{0.0, 0.0} << false << false;
    QTest::newRow("huge") << QVector<double>{1e300, -1e300} << false << false;
    QTest::newRow("tiny and huge") << QVector<double>{1e-300, 1e300} << true << false;
}

void TestDrawCurves::oddData()
{
    QFETCH(QVector<double>, values);
    QFETCH(bool, logarithmic);
    QFETCH(bool, isEmpty);
    CurvesDrawing drawing = drawingOf({curveOf(std::vector<double>(values.begin(), values.end()))});
    drawing.logarithmic = logarithmic;
    const DisplayList list = drawCurves(drawing);
    QCOMPARE(textsOf(list).contains("no values"), isEmpty);
    QVERIFY(list.items.size() < 200);
    for (const PolylineShape& line : linesOf(list)) {
        for (const Point& point : line.points)
            QVERIFY(std::isfinite(point.x) && std::isfinite(point.y) && point.y >= 0.0 && point.y <= list.height);
    }
}

void TestDrawCurves::tooltips()
{
    const DisplayList list = drawCurves(drawingOf({curveOf({4, 1, 2}, "sharded")}));
    QCOMPARE(tooltipOf(list, "curve:0"), QString("sharded\n3 values, 1 to 4\nlast: 2 at step 2"));
}

/// A mark stands at its x, with its text on the side that has room; one beyond the curve is left out.
void TestDrawCurves::marks()
{
    CurvesDrawing drawing = drawingOf({curveOf({4, 1, 2, 1, 0})});
    drawing.marks = {{1.0, "mesh data=8"}, {3.0, "mesh data=4,model=2"}, {9.0, "never"}};
    const DisplayList list = drawCurves(drawing);
    const auto find = [&]<typename Shape>(const char* id, const Shape*) -> const Shape* {
        for (const DisplayItem& item : list.items) {
            if (item.id == id && std::holds_alternative<Shape>(item.shape))
                return &std::get<Shape>(item.shape);
        }
        return nullptr;
    };
    const PolylineShape* curve = find("curve:0", static_cast<const PolylineShape*>(nullptr));
    const PolylineShape* first = find("mark:0", static_cast<const PolylineShape*>(nullptr));
    const TextShape* second = find("mark:1", static_cast<const TextShape*>(nullptr));
    QVERIFY(curve != nullptr && first != nullptr && second != nullptr);
    QVERIFY(first->dashed);
    QVERIFY(std::fabs(first->points[0].x - curve->points[1].x) < 1e-9);
    QVERIFY(second->anchor == TextAnchor::End && second->at.x < curve->points[3].x);
    QCOMPARE(tooltipOf(list, "mark:1"), QString("mesh data=4,model=2"));
    QVERIFY(find("mark:2", static_cast<const PolylineShape*>(nullptr)) == nullptr);
    QCOMPARE(faultsOf(list), QString());
}

void TestDrawCurves::readable()
{
    Curve second = curveOf({2, 3, 1}, "one device");
    second.dashed = true;
    second.paint = ColourRole::AllReduce;
    CurvesDrawing drawing = drawingOf({curveOf({4, 1, 2}, "sharded"), second});
    QCOMPARE(faultsOf(drawCurves(drawing)), QString());
    QVERIFY(textsOf(drawCurves(drawing)).contains("one device"));
    drawing.width = 220;
    drawing.height = 160;
    drawing.logarithmic = true;
    QCOMPARE(faultsOf(drawCurves(drawing)), QString());
}

void TestDrawCurves::sameBytes()
{
    const CurvesDrawing drawing = drawingOf({curveOf({4, 1, 2})});
    QCOMPARE(svgText(drawCurves(drawing), Theme::Light), svgText(drawCurves(drawing), Theme::Light));
}

MESHWRIGHT_TEST(TestDrawCurves)

} // namespace tst_draw_curves

#include "tst_draw_curves.moc"
