// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/visualize.h"

#include "core/sharding/layout_grid.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <set>

namespace tst_visualize {

using namespace meshwright;
using namespace meshwright::tests;

// What JAX draws for ranks 1 and 2 is in tests/goldens; here is what goes beyond.
class TestVisualize : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void rankOne();
    void scalar();
    void scale();
    void uneven();
    void slices();
    void sliceLimits();
    void cellLimits();
    void colours();
    void deviceColours();
};

namespace {

QString drawn(const Shape& shape, const char* spec, const Mesh& mesh, const TextDrawing& drawing = {})
{
    return text(drawingText(layoutOf(shape, shardingOf(spec, shape.size(), mesh), mesh), drawing));
}

} // namespace

void TestVisualize::rankOne()
{
    // Base width int(10 / 8) = 1; each cell max(9, int(1/4 * 1 * 2.5)) = 9 wide, so 7 between the frames; 1 high.
    QCOMPARE(drawn({8}, "P('x')", meshOf("x=4")),
        QString("┌───────┬───────┬───────┬───────┐\n"
                "│ TPU 0 │ TPU 1 │ TPU 2 │ TPU 3 │\n"
                "└───────┴───────┴───────┴───────┘\n"));
}

void TestVisualize::scalar()
{
    // As wide as an array of 1 x 1: int(10 * 2.5) = 25 with the frame's 2; one line high.
    QCOMPARE(drawn({}, "P()", meshOf("x=2")),
        QString("┌───────────────────────┐\n│        TPU 0,1        │\n└───────────────────────┘\n"));
}

void TestVisualize::scale()
{
    // Base height 2; rows int(1/2 * 2) = 1 high; base width 2, cells max(9, int(2 * 2.5)) = 9 wide.
    TextDrawing small;
    small.scale = 0.2;
    small.platform = "CPU";
    QCOMPARE(drawn({8, 8}, "P('x')", meshOf("x=2"), small), QString("┌───────┐\n│ CPU 0 │\n├───────┤\n│ CPU 1 │\n└───────┘\n"));
    TextDrawing large;
    large.scale = 2.0;
    // Base height 20, two rows of 10: 9 lines each; 7 more for rules. Base width 20: int(50) wide, 48 between the frames.
    const QStringList lines = drawn({8, 8}, "P('x')", meshOf("x=2"), large).split('\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), qsizetype{21});
    QCOMPARE(lines.front().size(), qsizetype{50});
}

void TestVisualize::uneven()
{
    TextDrawing small;
    small.scale = 0.1;
    QCOMPARE(drawn({5, 5}, "P('x')", meshOf("x=4"), small),
        QString("┌───────┐\n│ TPU 0 │\n├───────┤\n│ TPU 1 │\n├───────┤\n│ TPU 2 │\n└───────┘\nTPU 3: no elements\n"));
}

void TestVisualize::slices()
{
    TextDrawing small;
    small.scale = 0.1;
    QCOMPARE(drawn({4, 2, 2}, "P('x', None, 'y')", meshOf("x=2,y=2"), small),
        QString("x[0:2, :, :]\n┌───────┬───────┐\n│ TPU 0 │ TPU 1 │\n└───────┴───────┘\n"
                "\nx[2:4, :, :]\n┌───────┬───────┐\n│ TPU 2 │ TPU 3 │\n└───────┴───────┘\n"));
    // Leading dimensions that are whole give one slice.
    QVERIFY(drawn({4, 2, 2}, "P(None, 'x')", meshOf("x=2"), small).startsWith("x[:, :, :]\n┌"));
    QVERIFY(drawn({4, 4, 2, 2}, "P('x', 'y')", meshOf("x=2,y=2"), small).contains("\nx[2:4, 0:2, :, :]\n"));
}

void TestVisualize::sliceLimits()
{
    TextDrawing drawing;
    drawing.mostSlabs = 2;
    const QString all = drawn({8, 2, 2}, "P('x')", meshOf("x=8"), drawing);
    QCOMPARE(all.count("┌"), qsizetype{2});
    QVERIFY(all.endsWith("\n(6 of 8 slices are left out)\n"));
}

void TestVisualize::cellLimits()
{
    TextDrawing drawing;
    drawing.mostRows = 3;
    drawing.mostColumns = 2;
    const QString all = drawn({64, 64}, "P('x', 'y')", meshOf("x=64,y=4"), drawing);
    QVERIFY(all.contains("(61 of 64 rows of pieces are left out)\n"));
    QVERIFY(all.endsWith("(2 of 4 columns of pieces are left out)\n"));
    QVERIFY(all.contains(" TPU 9 ") && !all.contains(" TPU 2 ") && !all.contains(" TPU 12 "));

    drawing.mostDevices = 4;
    QVERIFY(drawn({8, 8}, "P()", meshOf("x=100"), drawing).contains("TPU 0,1,2,3,...(100)"));
}

void TestVisualize::colours()
{
    TextDrawing drawing;
    drawing.scale = 0.1;
    const QString plain = drawn({4, 4}, "P('x')", meshOf("x=2"), drawing);
    for (const TerminalColours colours : {TerminalColours::Palette256, TerminalColours::TrueColour}) {
        drawing.colours = colours;
        QString coloured = drawn({4, 4}, "P('x')", meshOf("x=2"), drawing);
        QVERIFY(coloured.contains(colours == TerminalColours::Palette256 ? "\x1b[48;5;" : "\x1b[48;2;"));
        // The frame has no colour, and without the escapes it is the same drawing.
        coloured.remove(QRegularExpression("\x1b\\[[0-9;]*m"));
        QCOMPARE(coloured, plain);
    }
    drawing.colours = TerminalColours::TrueColour;
    drawing.deviceColours = DeviceColours(meshOf("x=2"));
    const Colour first = drawing.deviceColours->of(0);
    const Colour ink = readableOn(first);
    QVERIFY(drawn({4, 4}, "P('x')", meshOf("x=2"), drawing)
                .contains(QString("│\x1b[48;2;%1;%2;%3;38;2;%4;%5;%6m TPU 0 \x1b[0m│")
                              .arg(first.red)
                              .arg(first.green)
                              .arg(first.blue)
                              .arg(ink.red)
                              .arg(ink.green)
                              .arg(ink.blue)));
}

void TestVisualize::deviceColours()
{
    const Mesh mesh = meshOf("a=4,b=4");
    const DeviceColours colours(mesh);
    const auto distance = [&](DeviceId a, DeviceId b) {
        const Colour x = colours.of(a);
        const Colour y = colours.of(b);
        return std::abs(x.red - y.red) + std::abs(x.green - y.green) + std::abs(x.blue - y.blue);
    };
    std::set<Colour> seen;
    for (const DeviceId device : mesh.deviceOrder())
        seen.insert(colours.of(device));
    QCOMPARE(seen.size(), std::size_t{16});
    QVERIFY(distance(0, 1) < distance(0, 3)); // along b: further is less alike
    QVERIFY(distance(0, 4) < distance(0, 12)); // along a
    // The order of devices in the mesh counts, not their ids.
    QCOMPARE(DeviceColours(meshOf("x=2", {7, 3})).of(7), DeviceColours(meshOf("x=2")).of(0));
    QCOMPARE(colours.of(99), DeviceColours(std::vector<DeviceId>{}).of(0)); // unknown: grey
    QCOMPARE(DeviceColours(meshOf("one=1,x=2")).of(1), DeviceColours(meshOf("x=2")).of(1)); // axes of size 1 do not count
}

MESHWRIGHT_TEST(TestVisualize)

} // namespace tst_visualize

#include "tst_visualize.moc"
