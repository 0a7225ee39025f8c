// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_layout.h"

#include "core/draw/svg.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <map>
#include <set>

namespace tst_draw_layout {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawLayout : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cellsAreToScale();
    void coloursAndLabels();
    void copiesAreStacked();
    void partialSumsAreHatched();
    void selection();
    void smallMultiples();
    void limits();
    void extremeShapes_data();
    void extremeShapes();
    void tooltips();
    void cuts();
    void rulers();
    void devicesOfItems();
    void crowdedMeshes();
    void drawnIntoRoom();
    void labelsAreAlike();
    void manyHolders();
    void textIsReadable();
    void sameBytes();
};

namespace {

DisplayList drawn(const Shape& shape, const char* spec, const Mesh& mesh, const LayoutDrawing& drawing = {})
{
    return drawLayout(layoutOf(shape, shardingOf(spec, shape.size(), mesh), mesh), drawing);
}

std::map<std::string, RectShape> cellsOf(const DisplayList& list)
{
    std::map<std::string, RectShape> cells;
    for (const DisplayItem& item : list.items) {
        if (!item.id.empty())
            cells.emplace(item.id, std::get<RectShape>(item.shape));
    }
    return cells;
}

QStringList textsOf(const DisplayList& list)
{
    QStringList texts;
    for (const DisplayItem& item : list.items) {
        if (const auto* shape = std::get_if<TextShape>(&item.shape))
            texts << text(shape->text);
    }
    return texts;
}

} // namespace

void TestDrawLayout::cellsAreToScale()
{
    // 5 rows over 4 devices: 2, 2, 1, 0. A picture of 5 x 10 in 480 x 360 is 480 x 240: 48 pixels a row.
    const auto cells = cellsOf(drawn({5, 10}, "P('x')", meshOf("x=4")));
    QCOMPARE(cells.size(), std::size_t{3});
    QCOMPARE(cells.at("shard:0").height, 96.0);
    QCOMPARE(cells.at("shard:1").height, 96.0);
    QCOMPARE(cells.at("shard:2").height, 48.0);
    QCOMPARE(cells.at("shard:0").width, 480.0);
    QCOMPARE(cells.at("shard:1").topLeft.y, cells.at("shard:0").topLeft.y + 96.0); // they touch
    QVERIFY(textsOf(drawn({5, 10}, "P('x')", meshOf("x=4"))).contains("no elements on TPU 3"));
}

void TestDrawLayout::coloursAndLabels()
{
    LayoutDrawing drawing;
    drawing.caption = "P('x', 'y')";
    drawing.deviceColours = DeviceColours(meshOf("x=2,y=2"));
    const DisplayList list = drawn({128, 128}, "P('x', 'y')", meshOf("x=2,y=2"), drawing);
    const auto cells = cellsOf(list);
    QCOMPARE(cells.size(), std::size_t{4});
    for (DeviceId device = 0; device < 4; ++device)
        QVERIFY(cells.at("shard:" + std::to_string(device)).style.fill == Paint(drawing.deviceColours->of(device)));
    const QStringList texts = textsOf(list);
    QCOMPARE(texts.front(), QString("x: 128x128 P('x', 'y')"));
    QVERIFY(texts.contains("TPU 3"));
    QVERIFY(texts.contains("[64:128, 0:64]"));
    // Flat cells have one line for both.
    QVERIFY(textsOf(drawn({128, 512}, "P('x', 'y')", meshOf("x=4,y=2"))).contains("TPU 3  [32:64, 256:512]"));
    QCOMPARE(list.title, std::string("x: 128x128 P('x', 'y')"));
    // A click in the third cell finds it.
    const RectShape third = cells.at("shard:2");
    QCOMPARE(list.itemAt({third.topLeft.x + 5, third.topLeft.y + 5})->id, std::string("shard:2"));
}

/// Copies are a stack of sheets in their devices' colours, not pieces beside each other; many have a badge, and where a stack has no room a hatch.
void TestDrawLayout::copiesAreStacked()
{
    LayoutDrawing drawing;
    const Mesh four = meshOf("x=4");
    drawing.deviceColours = DeviceColours(four);
    const DisplayList stack = drawn({8, 8}, "P()", four, drawing);
    std::set<Colour> colours;
    std::set<double> lefts;
    for (const DisplayItem& item : stack.items) {
        const auto* rect = std::get_if<RectShape>(&item.shape);
        if (rect == nullptr || !std::holds_alternative<Colour>(rect->style.fill))
            continue;
        colours.insert(std::get<Colour>(rect->style.fill));
        lefts.insert(rect->topLeft.x);
        QCOMPARE(rect->height, 360.0 - 18.0); // three sheets of 6 pixels behind
    }
    QCOMPARE(colours.size(), std::size_t{4});
    QCOMPARE(lefts.size(), std::size_t{4});
    QVERIFY(textsOf(stack).contains("TPU 0,1,2,3"));
    QVERIFY(textsOf(stack).contains("stacked: 4 copies"));
    const RectShape cell = cellsOf(stack).at("shard:0");
    QCOMPARE(cell.height, 360.0);
    QCOMPARE(stack.itemAt({cell.topLeft.x + 350.0, cell.topLeft.y + 5.0})->id, std::string("shard:0")); // beside the sheets too

    const DisplayList badge = drawn({8, 8}, "P()", meshOf("x=8"));
    QVERIFY(textsOf(badge).contains("x8"));
    QCOMPARE(cellsOf(badge).size(), std::size_t{1});

    const DisplayList split = drawn({8, 8}, "P('x')", meshOf("x=4,y=2"));
    QVERIFY(textsOf(split).contains("stacked: 2 copies of each piece"));
    for (const QString& line : textsOf(drawn({8, 8}, "P('x')", four)))
        QVERIFY2(!line.contains("copies"), qPrintable(line));
    LayoutDrawing ofStage;
    ofStage.stages = 2; // a pipeline's: one of two holders has the piece
    QVERIFY(textsOf(drawn({8, 8}, "P('x')", meshOf("x=4,y=2"), ofStage)).contains("stacked: each piece in one of 2 stages"));
    drawing.deviceColours.reset();
    drawing.panelWidth = drawing.panelHeight = 112.0;
    const DisplayList small
        = drawn({4096, 4096}, "P('a', 'b')", meshOf("a=8,b=8,c=2,d=4"), drawing); // cells of 14 pixels, 8 holders
    QVERIFY2(textsOf(small).join(" ").contains("hatched: 8 copies of each piece"), qPrintable(textsOf(small).join(" ")));
    for (const auto& [id, one] : cellsOf(small))
        QVERIFY(one.style.hatch == Hatch::Falling);
}

void TestDrawLayout::partialSumsAreHatched()
{
    LayoutDrawing drawing;
    drawing.partialOver = "model";
    const DisplayList list = drawn({8, 8}, "P('x')", meshOf("x=2"), drawing);
    for (const auto& [id, cell] : cellsOf(list))
        QVERIFY(cell.style.hatch == Hatch::Rising);
    QVERIFY(textsOf(list).contains("hatched: partial sums over model"));
    for (const auto& [id, cell] : cellsOf(drawn({8, 8}, "P('x')", meshOf("x=2"))))
        QVERIFY(cell.style.hatch == Hatch::None);
}

void TestDrawLayout::selection()
{
    LayoutDrawing drawing;
    drawing.selected = {3};
    const Mesh mesh = meshOf("x=2,y=2");
    const DisplayList list = drawn({8, 8}, "P('x')", mesh, drawing); // shard 1 is on devices 2 and 3
    const auto accented = std::count_if(list.items.begin(), list.items.end(), [](const DisplayItem& item) {
        const auto* rect = std::get_if<RectShape>(&item.shape);
        return rect != nullptr && rect->style.outline == Paint(ColourRole::Accent);
    });
    QCOMPARE(accented, std::ptrdiff_t{1});
    const auto isCell = [](const DisplayItem& item) { return std::holds_alternative<RectShape>(item.shape); };
    const auto last = std::find_if(list.items.rbegin(), list.items.rend(), isCell); // over everything else of the grid
    QVERIFY(last != list.items.rend());
    const auto* accent = std::get_if<RectShape>(&last->shape);
    QVERIFY(accent->style.outline == Paint(ColourRole::Accent));
    QCOMPARE(accent->topLeft, cellsOf(list).at("shard:1").topLeft);
}

void TestDrawLayout::smallMultiples()
{
    const DisplayList list = drawn({4, 8, 8}, "P('x', 'y')", meshOf("x=4,y=2"));
    const QStringList texts = textsOf(list);
    for (const char* heading : {"x[0:1, :, :]", "x[1:2, :, :]", "x[2:3, :, :]", "x[3:4, :, :]"})
        QVERIFY(texts.contains(heading));
    const auto cells = cellsOf(list);
    QCOMPARE(cells.size(), std::size_t{8});
    // Two panels across, two down: the third begins under the first.
    QCOMPARE(cells.at("shard:0").topLeft.x, cells.at("shard:4").topLeft.x);
    QVERIFY(cells.at("shard:4").topLeft.y > cells.at("shard:1").topLeft.y + cells.at("shard:1").height);
    for (const auto& [id, cell] : cells) {
        QVERIFY(cell.topLeft.x + cell.width <= list.width);
        QVERIFY(cell.topLeft.y + cell.height <= list.height);
    }
    // In little room headings neither overlap nor leave the picture.
    const Mesh mesh = meshOf("x=32");
    const DisplayList narrow = drawLayoutInto(layoutOf({32, 8, 8}, shardingOf("P('x')", 3, mesh), mesh), {}, 240.0, 240.0);
    QVERIFY2(narrow.width <= 240.0, std::to_string(narrow.width).c_str());
    std::map<double, double> ends; ///< of the headings so far, by their line
    for (const DisplayItem& item : narrow.items) {
        const auto* heading = std::get_if<TextShape>(&item.shape);
        if (heading == nullptr || !heading->text.starts_with("x["))
            continue;
        QVERIFY2(heading->at.x > ends[heading->at.y], heading->text.c_str());
        ends[heading->at.y] = heading->at.x + estimatedWidth(heading->text, heading->size);
    }
    QVERIFY(ends.size() > 3);
}

void TestDrawLayout::limits()
{
    LayoutDrawing drawing;
    drawing.mostPanels = 3;
    QVERIFY(textsOf(drawn({16, 4, 4}, "P('x')", meshOf("x=16"), drawing)).contains("13 of 16 slices are left out"));

    const DisplayList folded = drawn({1000, 8}, "P('x')", meshOf("x=1000"));
    const auto cells = cellsOf(folded);
    QCOMPARE(cells.size(), std::size_t{63}); // blocks of ceil(1000 / 64) = 16
    QVERIFY(cells.contains("block:16"));
    QVERIFY(textsOf(folded).contains("1000 x 1 pieces, neighbours drawn as one block"));
    QVERIFY(folded.items.size() < 1000);
}

void TestDrawLayout::extremeShapes_data()
{
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<std::string>("spec");
    QTest::addColumn<std::size_t>("cells");
    QTest::addColumn<bool>("outOfProportion");

    QTest::newRow("scalar") << Shape{} << std::string("P()") << std::size_t{1} << false;
    QTest::newRow("vector") << Shape{100} << std::string("P('x')") << std::size_t{4} << false;
    QTest::newRow("one element") << Shape{1, 1} << std::string("P()") << std::size_t{1} << false;
    QTest::newRow("no elements") << Shape{0, 8} << std::string("P('x')") << std::size_t{1} << false;
    QTest::newRow("no columns") << Shape{8, 0} << std::string("P('x')") << std::size_t{4} << true;
    QTest::newRow("very wide") << Shape{4, 10000} << std::string("P('x')") << std::size_t{4} << true;
    QTest::newRow("very tall") << Shape{10000, 4} << std::string("P('x')") << std::size_t{4} << true;
    QTest::newRow("room for labels") << Shape{8, 512} << std::string("P(('x', 'y'))") << std::size_t{8} << true;
    QTest::newRow("six to one") << Shape{24, 4} << std::string("P('x')") << std::size_t{4} << false;
}

void TestDrawLayout::extremeShapes()
{
    QFETCH(Shape, shape);
    QFETCH(std::string, spec);
    QFETCH(std::size_t, cells);
    QFETCH(bool, outOfProportion);
    const DisplayList list = drawn(shape, spec.c_str(), meshOf("x=4,y=2"));
    QCOMPARE(cellsOf(list).size(), cells);
    if (shape != Shape{0, 8})
        QCOMPARE(textsOf(list).contains("the sides are not in proportion to each other"), outOfProportion);
    for (const auto& [id, cell] : cellsOf(list)) {
        QVERIFY(cell.width > 0.0 && cell.height > 0.0);
        QVERIFY(cell.topLeft.x >= 0.0 && cell.topLeft.x + cell.width <= list.width);
        QVERIFY(cell.topLeft.y >= 0.0 && cell.topLeft.y + cell.height <= list.height);
    }
}

void TestDrawLayout::tooltips()
{
    LayoutDrawing drawing;
    drawing.arrayName = "w";
    drawing.elementBytes = 4;
    drawing.partialOver = "y";
    const DisplayList list = drawn({64, 64}, "P('x')", meshOf("x=2,y=2"), drawing);
    const auto item = std::find_if(list.items.begin(), list.items.end(), [](const DisplayItem& i) { return i.id == "shard:1"; });
    QVERIFY(item != list.items.end());
    // 32 * 64 * 4 bytes = 8 KiB
    QCOMPARE(text(item->tooltip), QString("w[32:64, 0:64]\nTPU 2,3\n2 copies\n8.00 KiB\npartial sums over y"));

    // The last of 10 rows over 4 devices is alone in a piece of 3.
    drawing.caption = "P('x', None)";
    drawing.partialOver.clear();
    const DisplayList uneven = drawn({10, 4}, "P('x')", meshOf("x=4"), drawing);
    const auto last
        = std::find_if(uneven.items.begin(), uneven.items.end(), [](const DisplayItem& i) { return i.id == "shard:3"; });
    QVERIFY(last != uneven.items.end());
    QCOMPARE(text(last->tooltip), QString("w[9:10, 0:4]\nP('x', None)\nTPU 3\n16 B, padded to 3x4 (48 B) on the device"));
}

void TestDrawLayout::cuts()
{
    const Mesh mesh = meshOf("x=2,y=2,z=2");
    LayoutDrawing drawing;
    drawing.cut = LayoutCut{0, 2, {0, 3, 0}};
    // x and z split what is drawn, y what is cut: through the second half of dimension 1 one sees the devices with y = 1.
    const DisplayList list = drawn({6, 4, 12}, "P('x', 'y', 'z')", mesh, drawing);
    const auto cells = cellsOf(list);
    QCOMPARE(cells.size(), std::size_t{4});
    const QStringList texts = textsOf(list);
    QVERIFY(texts.contains("x[:, 2:4, :]"));
    for (const char* seen : {"TPU 2", "TPU 3", "TPU 6", "TPU 7"})
        QVERIFY2(texts.contains(seen), seen);
    // 12 across and 6 down: twice as wide as high.
    const RectShape& cell = cells.begin()->second;
    QCOMPARE(cell.width, 2.0 * cell.height);
}

void TestDrawLayout::rulers()
{
    LayoutDrawing drawing;
    drawing.heading = false;
    drawing.axesOfDims = {"x", ""};
    const DisplayList list = drawn({10, 16}, "P('x')", meshOf("x=4"), drawing); // rows of 3, 3, 3, 1
    const QStringList texts = textsOf(list);
    QCOMPARE(texts.front(), QString::fromUtf8("↓ dim 0: 10 over x     → dim 1: 16, not split"));
    for (const char* index : {"0", "3", "6", "9", "10", "16"})
        QVERIFY2(texts.contains(index), index);
    // A label stands where its cell begins.
    const auto cells = cellsOf(list);
    for (const DisplayItem& item : list.items) {
        const auto* shape = std::get_if<TextShape>(&item.shape);
        if (shape != nullptr && shape->text == "6" && shape->anchor == TextAnchor::End)
            QCOMPARE(shape->at.y, cells.at("shard:2").topLeft.y);
    }
    // Small multiples have none, nor has a scalar.
    drawing.axesOfDims = {"x", "", ""};
    QVERIFY(!textsOf(drawn({4, 4, 4}, "P('x')", meshOf("x=4"), drawing)).join(' ').contains("over x"));
    drawing.axesOfDims = {};
    QVERIFY(drawn({}, "P()", meshOf("x=4"), drawing).height < 140.0);
}

void TestDrawLayout::devicesOfItems()
{
    const Mesh mesh = meshOf("x=128,y=2");
    const Layout layout = layoutOf({1024, 8}, shardingOf("P('x')", 2, mesh), mesh);
    const LayoutDrawing drawing; // 64 cells across: two pieces a block, each on two devices
    QCOMPARE(devicesUnder(layout, drawing, "block:2"), (std::set<DeviceId>{4, 5, 6, 7}));
    QCOMPARE(devicesUnder(layout, drawing, "block:3"), std::set<DeviceId>{});
    const Layout plain = layoutOf({8, 8}, shardingOf("P(None, 'y')", 2, meshOf("x=2,y=2")), meshOf("x=2,y=2"));
    QCOMPARE(devicesUnder(plain, drawing, "shard:1"), (std::set<DeviceId>{1, 3}));
}

void TestDrawLayout::crowdedMeshes()
{
    // 1024 devices, 256 pieces with four copies each: cells without labels, which the picture says, and frames that leave colour to see.
    LayoutDrawing drawing;
    drawing.selected = {0};
    drawing.panelWidth = drawing.panelHeight = 128.0;
    const DisplayList list = drawn({4096, 4096}, "P('a', 'b')", meshOf("a=16,b=16,c=4"), drawing);
    QVERIFY(textsOf(list).join(" ").contains("cells too small for device ids: point at one to see them")); // in two lines
    for (const DisplayItem& item : list.items) {
        const auto* rect = std::get_if<RectShape>(&item.shape);
        if (rect != nullptr && rect->style.outline != Paint())
            QVERIFY(4.0 * rect->style.outlineWidth <= std::max(rect->width, 12.0));
    }
    drawing.panelWidth = drawing.panelHeight = 1000.0;
    QVERIFY(!textsOf(drawn({4096, 4096}, "P('a', 'b')", meshOf("a=16,b=16,c=4"), drawing))
                 .contains("cells too small for device ids: point at one to see them"));
}

void TestDrawLayout::drawnIntoRoom()
{
    LayoutDrawing drawing;
    drawing.axesOfDims = {"a", ""};
    const Mesh mesh = meshOf("a=16");
    for (const Shape& shape : {Shape{8192, 10}, Shape{784, 8192}, Shape{100, 100}}) {
        const Layout layout = layoutOf(shape, shardingOf("P('a')", 2, mesh), mesh);
        for (const auto& [width, height] : {std::pair(320.0, 600.0), std::pair(700.0, 500.0), std::pair(1600.0, 600.0)}) {
            drawing.heading = width > 400.0;
            const DisplayList list = drawLayoutInto(layout, drawing, width, height);
            QVERIFY2(
                list.width <= width && list.height <= height, qPrintable(QString("%1 x %2").arg(list.width).arg(list.height)));
            QVERIFY(list.width > 0.8 * width || list.height > 0.8 * height);
        }
    }
}

void TestDrawLayout::labelsAreAlike()
{
    // 256 devices in cells of 21 pixels: three figures only fit when they are small, so all ids are.
    LayoutDrawing drawing;
    drawing.panelWidth = drawing.panelHeight = 336.0;
    const DisplayList list = drawn({512, 512}, "P('a', 'b')", meshOf("a=16,b=16"), drawing);
    std::set<double> sizes;
    for (const DisplayItem& item : list.items) {
        const auto* shape = std::get_if<TextShape>(&item.shape);
        if (shape != nullptr && shape->anchor == TextAnchor::Middle)
            sizes.insert(shape->size);
    }
    QCOMPARE(sizes, std::set<double>{9.0});
    QVERIFY(textsOf(list).contains("255"));
    // Where not even that fits, no cell has one.
    drawing.panelWidth = drawing.panelHeight = 280.0;
    QVERIFY(!textsOf(drawn({512, 512}, "P('a', 'b')", meshOf("a=16,b=16"), drawing)).contains("1"));
    // Holders in short.
    drawing.panelWidth = drawing.panelHeight = 480.0;
    QVERIFY(
        textsOf(drawn({512, 512}, "P('a')", meshOf("a=8,b=32"), drawing)).contains("TPU 0,1,2,3,4,5,6,7,...(32)  [0:64, 0:512]"));
    QVERIFY(textsOf(drawn({512, 512}, "P('b')", meshOf("a=4,b=4"), drawing)).contains("TPU 0,4,8,12"));
    QVERIFY(textsOf(drawn({512, 512}, "P(None, 'b')", meshOf("a=4,b=12"), drawing)).contains("0 +3"));
    QVERIFY(textsOf(drawn({512, 512}, "P(None, 'b')", meshOf("b=12,a=4"), drawing)).contains("44-47"));
}

void TestDrawLayout::manyHolders()
{
    LayoutDrawing drawing;
    drawing.deviceColours = DeviceColours(meshOf("x=16"));
    const DisplayList list = drawn({8, 8}, "P()", meshOf("x=16"), drawing);
    std::set<Colour> colours;
    for (const DisplayItem& item : list.items) {
        const auto* rect = std::get_if<RectShape>(&item.shape);
        if (rect != nullptr && std::holds_alternative<Colour>(rect->style.fill))
            colours.insert(std::get<Colour>(rect->style.fill));
    }
    QCOMPARE(colours.size(), std::size_t{16}); // all of them are seen
    QVERIFY(textsOf(list).contains("x16"));
}

void TestDrawLayout::textIsReadable()
{
    // Every text lies on the background, on a plate, or on a plain cell in black or white.
    const DisplayList list = drawn({64, 64}, "P('x', 'y')", meshOf("x=4,y=4"));
    for (const DisplayItem& item : list.items) {
        const auto* shape = std::get_if<TextShape>(&item.shape);
        if (shape == nullptr)
            continue;
        const DisplayItem* cell = list.itemAt(shape->at);
        const Colour back = cell == nullptr ? colourOf(ColourRole::Background, Theme::Light)
                                            : *colourOf(std::get<RectShape>(cell->shape).style.fill, Theme::Light);
        QVERIFY(contrast(*colourOf(shape->paint, Theme::Light), back) >= 4.5);
    }
}

void TestDrawLayout::sameBytes()
{
    const auto svg = [] { return svgText(drawn({4, 8, 8}, "P('x', 'y')", meshOf("x=4,y=2")), Theme::Dark); };
    QCOMPARE(svg(), svg());
}

MESHWRIGHT_TEST(TestDrawLayout)

} // namespace tst_draw_layout

#include "tst_draw_layout.moc"
