// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_topology.h"

#include "core/draw/svg.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <cmath>
#include <set>

namespace tst_draw_topology {

using namespace meshwright;
using namespace meshwright::tests;

class TestDrawTopology : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void devicesAndLinks();
    void hoveredAxisLightsUp();
    void hoveringMovesNothing();
    void sharedLinksAreMarked();
    void emptyPlaces();
    void selection();
    void wrapLinks();
    void layers();
    void devicesOfAChip();
    void hosts();
    void fullMesh();
    void largeMachines_data();
    void largeMachines();
    void texts_data();
    void texts();
    void readable_data();
    void readable();
    void sameBytes();
};

namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t product(const Sizes& sizes)
{
    std::int64_t all = 1;
    for (const std::int64_t size : sizes)
        all *= size;
    return all;
}

/// A torus, the first dimension fastest; mesh axis `a0` along the first dimension, `a1` along the second and so on.
TopologyDrawing torus(const Sizes& lengths, bool wraps = false, std::int64_t perChip = 1)
{
    static constexpr const char* kNames[] = {"x", "y", "z"};
    TopologyDrawing drawing;
    drawing.title = "a torus";
    drawing.platform = "TPU";
    Sizes all = {perChip};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        drawing.dimensions.push_back({kNames[i], DimensionKind::Torus, lengths[i], wraps, "a" + std::to_string(i)});
        drawing.meshAxes.push_back({"a" + std::to_string(i), lengths[i], 1, kNames[i], "ICI", 45e9, 1e-6, wraps, {}});
        all.push_back(lengths[i]);
    }
    if (perChip > 1)
        drawing.dimensions.push_back({"core", DimensionKind::InChip, perChip, false, {}});
    for (DeviceId device = 0; device < product(all); ++device) {
        DrawnDevice drawn{device, {}, {}};
        std::int64_t left = device / perChip;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            drawn.coordinates.push_back(left % lengths[i]);
            drawn.meshText += (i > 0 ? ", a" : "a") + std::to_string(i) + " " + std::to_string(left % lengths[i]);
            left /= lengths[i];
        }
        if (perChip > 1)
            drawn.coordinates.push_back(device % perChip);
        drawing.devices.push_back(drawn);
    }
    for (DeviceId device = 0; device < product(all); ++device) {
        std::int64_t stride = perChip;
        for (std::size_t i = 0; i < lengths.size(); stride *= lengths[i++]) {
            const std::int64_t place = drawing.devices[static_cast<std::size_t>(device)].coordinates[i];
            const bool isLast = place == lengths[i] - 1;
            if (!isLast || wraps)
                drawing.links.push_back({device, isLast ? device - place * stride : device + stride, i, isLast, "ICI", 45e9, 1e-6,
                    {"a" + std::to_string(i)}});
        }
        for (std::int64_t other = device % perChip + 1; other < perChip; ++other)
            drawing.links.push_back(
                {device, device + other - device % perChip, lengths.size(), false, "on-chip", 500e9, 1e-6, {}});
    }
    return drawing;
}

/// Hosts with a switch each (or a link between every two) and a network above; mesh axes `data` over hosts, `model` inside.
TopologyDrawing hostsOf(std::int64_t hosts, std::int64_t perHost, bool fullMesh = false)
{
    TopologyDrawing drawing;
    drawing.title = "hosts";
    drawing.platform = "GPU";
    drawing.dimensions = {{"host", DimensionKind::Network, hosts, false, "data"},
        {"gpu", fullMesh ? DimensionKind::FullMesh : DimensionKind::Switch, perHost, false, "model"}};
    drawing.meshAxes = {{"data", hosts, perHost, "host", "NIC", 50e9, 9e-6, false, {}},
        {"model", perHost, hosts, "gpu", "NVLink", 360e9, 3e-6, false, {}}};
    const std::int64_t devices = hosts * perHost;
    for (DeviceId device = 0; device < devices; ++device)
        drawing.devices.push_back({device, {device / perHost, device % perHost}, {}});
    for (std::int64_t host = 0; host < hosts && !fullMesh; ++host)
        drawing.switches.push_back({"switch of host " + std::to_string(host), host, {}});
    drawing.switches.push_back({"network", -1, "rails"});
    const std::int64_t network = devices + static_cast<std::int64_t>(drawing.switches.size()) - 1;
    for (DeviceId device = 0; device < devices; ++device) {
        if (!fullMesh)
            drawing.links.push_back({device, devices + device / perHost, 1, false, "NVLink", 360e9, 3e-6, {"model"}});
        for (DeviceId other = device + 1; fullMesh && other / perHost == device / perHost; ++other)
            drawing.links.push_back({device, other, 1, false, "peer link", 45e9, 3e-6, {"model"}});
        if (hosts > 1)
            drawing.links.push_back({device, network, 0, false, "NIC", 50e9, 9e-6, {"data"}});
    }
    return drawing;
}

RectShape tileOf(const DisplayList& list, DeviceId device)
{
    const DisplayItem* item = itemOf(list, "device:" + std::to_string(device));
    return item == nullptr ? RectShape{} : std::get<RectShape>(item->shape);
}

std::vector<DisplayItem> linesOf(const DisplayList& list, const std::string& id)
{
    std::vector<DisplayItem> lines;
    for (const DisplayItem& item : list.items) {
        if (item.id == id && (std::holds_alternative<LineShape>(item.shape) || std::holds_alternative<PolylineShape>(item.shape)))
            lines.push_back(item);
    }
    return lines;
}

Paint paintOf(const DisplayItem& item)
{
    const auto* line = std::get_if<LineShape>(&item.shape);
    return line != nullptr ? line->paint : std::get<PolylineShape>(item.shape).paint;
}

double widthOf(const DisplayItem& item)
{
    const auto* line = std::get_if<LineShape>(&item.shape);
    return line != nullptr ? line->width : std::get<PolylineShape>(item.shape).width;
}

} // namespace

void TestDrawTopology::devicesAndLinks()
{
    TopologyDrawing drawing = torus({4, 2});
    drawing.deviceColours = DeviceColours(meshOf("a=4,b=2"));
    const DisplayList list = drawTopology(drawing);
    for (DeviceId device = 0; device < 8; ++device)
        QVERIFY(tileOf(list, device).style.fill == Paint(drawing.deviceColours->of(device)));
    // x runs across, y down, neighbours do not touch.
    QVERIFY(tileOf(list, 1).topLeft.x > tileOf(list, 0).topLeft.x + tileOf(list, 0).width + 10.0);
    QCOMPARE(tileOf(list, 1).topLeft.y, tileOf(list, 0).topLeft.y);
    QCOMPARE(tileOf(list, 4).topLeft.x, tileOf(list, 0).topLeft.x);
    QCOMPARE(linesOf(list, "axis:a0").size(), std::size_t{6}); // 3 in each of 2 rows
    QCOMPARE(linesOf(list, "axis:a1").size(), std::size_t{4});
    QVERIFY(textsOf(list).contains("TPU 5"));
    QVERIFY(textsOf(list).contains("a0 1, a1 1"));
    QCOMPARE(textsOf(list).front(), QString("a torus"));
    QCOMPARE(tooltipOf(list, "device:5"), QString("TPU 5\nin the mesh: a0 1, a1 1\non the machine: x 1, y 1"));
    QCOMPARE(QString::fromStdString(linesOf(list, "axis:a0").front().tooltip),
        QString("ICI link along x\nTPU 0 to TPU 1\n45.0 GB/s each way, 1.00 µs\nmesh axis a0"));
    // Under the pointer: the line between 0 and 1.
    const RectShape first = tileOf(list, 0);
    const Point between{first.topLeft.x + first.width + 8.0, first.topLeft.y + first.height / 2.0};
    QCOMPARE(list.itemAt(between)->id, std::string("axis:a0"));
}

void TestDrawTopology::hoveredAxisLightsUp()
{
    TopologyDrawing drawing = torus({4, 2});
    drawing.hoveredAxis = "a0";
    const DisplayList list = drawTopology(drawing);
    for (const DisplayItem& line : linesOf(list, "axis:a0")) {
        QVERIFY(paintOf(line) == Paint(ColourRole::Accent));
        QVERIFY(widthOf(line) >= 2.0);
    }
    for (const DisplayItem& line : linesOf(list, "axis:a1"))
        QVERIFY(paintOf(line) == Paint(ColourRole::Grid));
    QVERIFY(textsOf(list).contains("→ x: a0, 45.0 GB/s each way"));
    QVERIFY(textsOf(list).contains("↓ y: a1"));
    QVERIFY(textsOf(list).contains("45.0 GB/s")); // on a link
    drawing.hoveredAxis = "nobody";
    for (const DisplayItem& line : linesOf(drawTopology(drawing), "axis:a1"))
        QVERIFY(paintOf(line) == Paint(ColourRole::Outline));
}

void TestDrawTopology::hoveringMovesNothing()
{
    for (TopologyDrawing drawing : {torus({4, 2}), torus({4, 4, 4}, true), torus({16, 16}, true), hostsOf(4, 8)}) {
        const DisplayList before = drawTopology(drawing);
        drawing.hoveredAxis = drawing.meshAxes.back().name;
        const DisplayList after = drawTopology(drawing);
        QCOMPARE(after.width, before.width);
        QCOMPARE(after.height, before.height);
        QCOMPARE(tileOf(after, 3).topLeft, tileOf(before, 3).topLeft);
    }
}

void TestDrawTopology::sharedLinksAreMarked()
{
    TopologyDrawing drawing = torus({8});
    for (DrawnLink& link : drawing.links)
        link.meshAxes = {"data", "model"};
    drawing.meshAxes = {{"data", 4, 2, "x (4 of 8, every 2)", "ICI", 22.5e9, 2e-6, false, {"model"}},
        {"model", 2, 4, "x (2 of 8)", "ICI", 45e9, 1e-6, false, {"data"}}};
    const DisplayList list = drawTopology(drawing);
    QVERIFY(textsOf(list).contains("double lines: links that several mesh axes share"));
    QVERIFY(textsOf(list).contains("data 4: x (4 of 8, every 2), ICI 22.5 GB/s each way, 2 groups, shares links with model"));
    QVERIFY(linesOf(list, "axis:data").front().tooltip.ends_with("shared by mesh axes data, model"));
    QVERIFY(tooltipOf(list, "axis:model").endsWith("shares links with data"));
}

void TestDrawTopology::emptyPlaces()
{
    TopologyDrawing drawing = torus({4});
    drawing.devices[3].id = -1;
    drawing.links[2].meshAxes.clear();
    const DisplayList list = drawTopology(drawing);
    QVERIFY(textsOf(list).contains("1 of 4 places are empty: the mesh is smaller than the machine"));
    QCOMPARE(itemOf(list, "device:3"), nullptr);
    QVERIFY(tooltipOf(list, "place:3").contains("the mesh has no device here"));
    QVERIFY(paintOf(linesOf(list, "link:2").front()) == Paint(ColourRole::Grid));
    QVERIFY(linesOf(list, "link:2").front().tooltip.ends_with("no mesh axis uses it"));
}

void TestDrawTopology::selection()
{
    TopologyDrawing drawing = torus({4, 2});
    drawing.selected = {6};
    const DisplayList list = drawTopology(drawing);
    const auto accent = std::find_if(list.items.begin(), list.items.end(), [](const DisplayItem& item) {
        const auto* rect = std::get_if<RectShape>(&item.shape);
        return rect != nullptr && rect->style.outline == Paint(ColourRole::Accent);
    });
    QVERIFY(accent != list.items.end());
    QCOMPARE(std::get<RectShape>(accent->shape).topLeft, tileOf(list, 6).topLeft);
}

void TestDrawTopology::wrapLinks()
{
    // With room the link goes round its row: from the last tile to the first, outside both.
    const DisplayList wide = drawTopology(torus({4, 4}, true));
    int loops = 0;
    for (const DisplayItem& line : linesOf(wide, "axis:a0")) {
        const auto* path = std::get_if<PolylineShape>(&line.shape);
        if (path == nullptr)
            continue;
        ++loops;
        const auto [left, right]
            = std::minmax_element(path->points.begin(), path->points.end(), [](Point a, Point b) { return a.x < b.x; });
        QVERIFY(left->x < tileOf(wide, 0).topLeft.x && left->x >= 0.0);
        QVERIFY(right->x > tileOf(wide, 3).topLeft.x + tileOf(wide, 3).width && right->x <= wide.width);
        QVERIFY(line.tooltip.find("wraps round") != std::string::npos);
    }
    QCOMPARE(loops, 4);

    // Without, both ends are stubs.
    const DisplayList small = drawTopology(torus({16, 16}, true));
    const auto lines = linesOf(small, "axis:a0");
    const auto stubs = std::count_if(
        lines.begin(), lines.end(), [](const DisplayItem& line) { return std::holds_alternative<PolylineShape>(line.shape); });
    QCOMPARE(stubs, std::ptrdiff_t{32});
    QVERIFY(textsOf(small).contains("bent ends outside: links that wrap round to the other side"));
}

void TestDrawTopology::layers()
{
    const DisplayList list = drawTopology(torus({4, 4, 4}, true));
    for (const char* heading : {"z = 0", "z = 1", "z = 2", "z = 3"})
        QVERIFY(textsOf(list).contains(heading));
    const auto bundles = linesOf(list, "axis:a2");
    QCOMPARE(bundles.size(), std::size_t{4}); // three between neighbours, one round
    QVERIFY(QString::fromStdString(bundles.front().tooltip)
                .startsWith("16 ICI links along z\nlayer z = 0 to layer z = 1\neach 45.0 GB/s"));
    QVERIFY(tileOf(list, 16).topLeft.x > tileOf(list, 3).topLeft.x); // the next layer lies beside the first
    QCOMPARE(tileOf(list, 16).topLeft.y, tileOf(list, 0).topLeft.y);
}

void TestDrawTopology::devicesOfAChip()
{
    const DisplayList list = drawTopology(torus({4, 2}, false, 2));
    const RectShape first = tileOf(list, 0);
    const RectShape second = tileOf(list, 1);
    QVERIFY(second.topLeft.x > first.topLeft.x + first.width);
    QVERIFY(second.topLeft.x - first.topLeft.x - first.width < 12.0); // closer than chips are
    QVERIFY(linesOf(list, "link:1").size() == 1 || linesOf(list, "link:2").size() == 1); // on the chip
    // Links of the two devices of a chip lie beside each other.
    std::set<double> heights;
    for (const DisplayItem& line : linesOf(list, "axis:a0"))
        heights.insert(std::get<LineShape>(line.shape).from.y);
    QCOMPARE(heights.size(), std::size_t{4}); // 2 rows of 2
}

void TestDrawTopology::hosts()
{
    TopologyDrawing drawing = hostsOf(4, 8);
    const DisplayList list = drawTopology(drawing);
    QCOMPARE(linesOf(list, "axis:model").size(), std::size_t{32});
    QCOMPARE(linesOf(list, "axis:data").size(), std::size_t{32});
    QVERIFY(textsOf(list).contains("host 2: model, NVLink switch"));
    QVERIFY(textsOf(list).contains("network between hosts: data"));
    QCOMPARE(tooltipOf(list, "switch:4"), QString("rails"));
    QVERIFY(std::get<RectShape>(itemOf(list, "switch:0")->shape).topLeft.y > tileOf(list, 0).topLeft.y);

    drawing.hoveredAxis = "data";
    const DisplayList lit = drawTopology(drawing);
    QVERIFY(textsOf(lit).contains("network between hosts: data, 50.0 GB/s each way"));
    QVERIFY(paintOf(linesOf(lit, "axis:data").front()) == Paint(ColourRole::Accent));
    QVERIFY(paintOf(linesOf(lit, "axis:model").front()) == Paint(ColourRole::Grid));

    const DisplayList one = drawTopology(hostsOf(1, 8));
    QVERIFY(textsOf(one).contains("model, NVLink switch"));
    QVERIFY(linesOf(one, "axis:data").empty());
}

void TestDrawTopology::fullMesh()
{
    const DisplayList list = drawTopology(hostsOf(2, 8, true));
    QCOMPARE(linesOf(list, "axis:model").size(), std::size_t{2 * 28});
    QCOMPARE(linesOf(list, "axis:data").size(), std::size_t{2}); // a bundle for each host
    QVERIFY(linesOf(list, "axis:data").front().tooltip.starts_with("8 NIC links along host"));
}

void TestDrawTopology::largeMachines_data()
{
    QTest::addColumn<TopologyDrawing>("drawing");
    QTest::addColumn<bool>("isFolded");
    QTest::newRow("256 chips") << torus({16, 16}, true) << false;
    QTest::newRow("1024 chips in layers") << torus({8, 8, 16}, true) << false;
    QTest::newRow("4096 chips") << torus({64, 64}) << false;
    QTest::newRow("6144 chips") << torus({16, 16, 24}, true) << true;
    QTest::newRow("16384 chips") << torus({128, 128}) << true;
    QTest::newRow("256 GPUs") << hostsOf(32, 8) << false;
    QTest::newRow("16384 GPUs") << hostsOf(2048, 8) << true;
    QTest::newRow("65536 GPUs") << hostsOf(8192, 8) << true;
}

void TestDrawTopology::largeMachines()
{
    QFETCH(TopologyDrawing, drawing);
    QFETCH(bool, isFolded);
    const DisplayList list = drawTopology(drawing);
    QCOMPARE(!textsOf(list).filter("each cell is").isEmpty(), isFolded);
    QVERIFY2(list.items.size() < 20000, qPrintable(QString::number(list.items.size())));
    QVERIFY2(list.width <= 1.02 * drawing.width && list.height <= 2.2 * drawing.height,
        qPrintable(QString("%1 x %2").arg(list.width).arg(list.height)));
    std::size_t tiles = 0;
    for (const auto& [id, item] : itemsOf(list)) {
        if (!id.starts_with("device:") && !id.starts_with("block:"))
            continue;
        ++tiles;
        const RectShape& tile = std::get<RectShape>(item.shape);
        QVERIFY(tile.width >= 3.0 && tile.height >= 3.0);
        QVERIFY(tile.topLeft.x >= 0.0 && tile.topLeft.x + tile.width <= list.width);
        QVERIFY(tile.topLeft.y >= 0.0 && tile.topLeft.y + tile.height <= list.height);
    }
    QVERIFY(tiles <= drawing.mostCells);
    QVERIFY(isFolded || tiles == drawing.devices.size());
    QVERIFY(!linesOf(list, "axis:" + drawing.meshAxes.front().name).empty()); // links still there
    QCOMPARE(faultsOf(list), QString());
}

void TestDrawTopology::texts_data()
{
    QTest::addColumn<double>("bytesPerSecond");
    QTest::addColumn<QString>("expected");
    QTest::newRow("ICI") << 45e9 << "45.0 GB/s";
    QTest::newRow("slow") << 500.0 << "500 B/s";
    QTest::newRow("fast") << 1.2e12 << "1.20 TB/s";
}

void TestDrawTopology::texts()
{
    QFETCH(double, bytesPerSecond);
    QFETCH(QString, expected);
    QCOMPARE(QString::fromStdString(bandwidthText(bytesPerSecond)), expected);
    QCOMPARE(QString::fromStdString(meshAxisText({"one", 1, 8, {}, {}, 0.0, 0.0, false, {}})), QString("one 1: needs no links"));
}

void TestDrawTopology::readable_data()
{
    QTest::addColumn<TopologyDrawing>("drawing");
    const std::vector<std::pair<const char*, TopologyDrawing>> machines
        = {{"4x2", torus({4, 2})}, {"line", torus({8}, true)}, {"one", torus({1, 1})}, {"4x4 wraps", torus({4, 4}, true)},
            {"16x16", torus({16, 16}, true)}, {"4x4x4", torus({4, 4, 4}, true)}, {"two in a chip", torus({4, 4}, false, 2)},
            {"three dimensions, two in a chip", torus({4, 4, 4}, true, 2)}, {"8 GPUs", hostsOf(1, 8)}, {"one GPU", hostsOf(1, 1)},
            {"4 x 8 GPUs", hostsOf(4, 8)}, {"2 x 72 GPUs", hostsOf(2, 72)}, {"full mesh", hostsOf(4, 8, true)}};
    for (const auto& [name, machine] : machines) {
        for (const double width : {360.0, 760.0, 1500.0}) {
            for (const bool isHovered : {false, true}) {
                TopologyDrawing drawing = machine;
                drawing.width = width;
                drawing.height = width * 0.6;
                drawing.hoveredAxis = isHovered ? drawing.meshAxes.front().name : "";
                QTest::addRow("%s, %.0f wide%s", name, width, isHovered ? ", hovered" : "") << drawing;
            }
        }
    }
}

void TestDrawTopology::readable()
{
    QFETCH(TopologyDrawing, drawing);
    const DisplayList list = drawTopology(drawing);
    QCOMPARE(faultsOf(list), QString());
    QVERIFY2(list.width <= drawing.width + 1.0, qPrintable(QString::number(list.width)));
}

void TestDrawTopology::sameBytes()
{
    const auto svg = [] { return svgText(drawTopology(torus({4, 4, 4}, true, 2)), Theme::Dark); };
    QCOMPARE(svg(), svg());
}

MESHWRIGHT_TEST(TestDrawTopology)

} // namespace tst_draw_topology

#include "tst_draw_topology.moc"
