// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/display_list.h"
#include "tests/test_class.h"

namespace tst_display_list {

using namespace meshwright;

class TestDisplayList : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void paints();
    void hits_data();
    void hits();
    void moving();
    void widths();
};

namespace {

/// A rectangle, a triangle over a part of it, a line, and things without an id on top of all.
DisplayList picture()
{
    DisplayList list{100.0, 100.0};
    list.items.push_back({RectShape{{10, 10}, 40, 40, {}, 0.0}, "rect"});
    list.items.push_back({PolygonShape{{{30, 30}, {70, 30}, {30, 70}}, {}}, "triangle"});
    list.items.push_back({LineShape{{80, 0}, {80, 100}}, "line"});
    list.items.push_back({RectShape{{0, 0}, 100, 100, {}, 0.0}});
    list.items.push_back({TextShape{{20, 20}, "text"}, "text"});
    return list;
}

} // namespace

void TestDisplayList::paints()
{
    QVERIFY(!colourOf(Paint{}, Theme::Light).has_value());
    QCOMPARE(colourOf(Paint{Colour{1, 2, 3}}, Theme::Dark), std::optional<Colour>(Colour{1, 2, 3}));
    QCOMPARE(colourOf(Paint{ColourRole::Text}, Theme::Dark), std::optional<Colour>(colourOf(ColourRole::Text, Theme::Dark)));
}

void TestDisplayList::hits_data()
{
    QTest::addColumn<double>("x");
    QTest::addColumn<double>("y");
    QTest::addColumn<QString>("id");

    QTest::newRow("rectangle, under a text") << 20.0 << 20.0 << "rect";
    QTest::newRow("its first pixel") << 10.0 << 10.0 << "rect";
    QTest::newRow("just past its end") << 50.0 << 15.0 << "";
    QTest::newRow("topmost") << 35.0 << 35.0 << "triangle";
    QTest::newRow("the triangle's longest side") << 60.0 << 45.0 << "";
    QTest::newRow("near the line") << 82.5 << 50.0 << "line";
    QTest::newRow("too far from the line") << 84.0 << 50.0 << "";
    QTest::newRow("outside") << -5.0 << 50.0 << "";
}

void TestDisplayList::hits()
{
    QFETCH(double, x);
    QFETCH(double, y);
    QFETCH(QString, id);
    const DisplayList list = picture();
    const DisplayItem* item = list.itemAt({x, y});
    QCOMPARE(item == nullptr ? QString() : QString::fromStdString(item->id), id);
}

void TestDisplayList::moving()
{
    DisplayList list{200.0, 200.0};
    addMoved(list, picture(), {100.0, 50.0});
    QCOMPARE(list.items.size(), std::size_t{5});
    QCOMPARE(list.width, 200.0);
    QCOMPARE(list.itemAt({120, 70})->id, std::string("rect"));
    QCOMPARE(list.itemAt({135, 85})->id, std::string("triangle"));
    QCOMPARE(list.itemAt({180, 100})->id, std::string("line"));
    QCOMPARE(std::get<TextShape>(list.items[4].shape).at, (Point{120, 70}));
    DisplayList same{200.0, 200.0};
    addMoved(same, picture(), {100.0, 50.0});
    QVERIFY(list == same); // a plain value
}

void TestDisplayList::widths()
{
    QCOMPARE(estimatedWidth("", 12.0), 0.0);
    QCOMPARE(estimatedWidth("µµ", 10.0), 12.0);
    QVERIFY(estimatedWidth("abc", 10.0, true) > estimatedWidth("abc", 10.0));
}

MESHWRIGHT_TEST(TestDisplayList)

} // namespace tst_display_list

#include "tst_display_list.moc"
