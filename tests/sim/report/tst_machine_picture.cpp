// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/machine_picture.h"

#include "sim/session/engine.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <set>

namespace tst_machine_picture {

using namespace meshwright;
using meshwright::tests::faultsOf;
using namespace meshwright::sim;
using namespace meshwright::tests;

using Sizes = std::vector<std::int64_t>;

class TestMachinePicture : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void axesAndLinks_data();
    void axesAndLinks();
    void devicesAreThoseOfTheMesh();
    void ownOrder();
    void smallerMesh();
    void switchesAndNetwork();
    void slices_data();
    void slices();
    void withoutAMesh();
    void everyLinkHasItsNodes_data();
    void everyLinkHasItsNodes();
    void tooLarge();
};

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(defaultCatalogue());
    return loaded;
}

/// `v5e 4x2` or `h100 4*8` (hosts times devices).
Machine builtMachine(const std::string& words)
{
    const std::size_t space = words.find(' ');
    const std::string chip = words.substr(0, space);
    const std::string sizes = words.substr(space + 1);
    sim::HardwareChoice choice{chip};
    if (const std::size_t star = sizes.find('*'); star != std::string::npos) {
        choice.hosts = std::stoll(sizes.substr(0, star));
        choice.perHost = std::stoll(sizes.substr(star + 1));
    } else {
        for (const QString& size : QString::fromStdString(sizes).split('x'))
            choice.topology.push_back(size.toLongLong());
    }
    return valueOf(buildMachine(catalogue(), choice));
}

TopologyDrawing pictureOf(const std::string& words, const Mesh& mesh)
{
    const Machine machine = builtMachine(words);
    const MeshPlacement placement = valueOf(placeMesh(mesh, machine));
    return valueOf(machinePicture(machine, &placement));
}

/// How many links a mesh axis uses: `6`, and of them those that wrap: `8+2`.
QString linksOf(const TopologyDrawing& drawing, const std::string& axis)
{
    int plain = 0;
    int wrapping = 0;
    for (const DrawnLink& link : drawing.links) {
        if (std::ranges::find(link.meshAxes, axis) != link.meshAxes.end())
            ++(link.wraps ? wrapping : plain);
    }
    return wrapping > 0 ? QString("%1+%2").arg(plain).arg(wrapping) : QString::number(plain);
}

} // namespace

void TestMachinePicture::axesAndLinks_data()
{
    QTest::addColumn<std::string>("machine");
    QTest::addColumn<std::string>("mesh");
    QTest::addColumn<QStringList>("texts"); ///< of the mesh axes
    QTest::addColumn<QStringList>("links"); ///< that each uses

    QTest::newRow("v5e 4x2") << std::string("v5e 4x2") << std::string("data=4,model=2")
                             << QStringList{"data 4: x, ICI 45.0 GB/s each way, 2 groups",
                                    "model 2: y, ICI 45.0 GB/s each way, 4 groups"}
                             << QStringList{"6", "4"};
    QTest::newRow("whole v5e pod") << std::string("v5e 16x16") << std::string("data=16,model=16")
                                   << QStringList{"data 16: y, ICI 45.0 GB/s each way, rings, 16 groups",
                                          "model 16: x, ICI 45.0 GB/s each way, rings, 16 groups"}
                                   << QStringList{"240+16", "240+16"};
    // model has 4 neighbours along x, data every fourth: they share links, which data's groups also share among each other.
    QTest::newRow("split dimension")
        << std::string("v5e 16x16") << std::string("data=64,model=4")
        << QStringList{"data 64: x (4 of 16, every 4) and y, ICI 11.2 GB/s each way, rings, 4 groups, shares links with model",
               "model 4: x (4 of 16), ICI 45.0 GB/s each way, 64 groups, shares links with data"}
        << QStringList{"480+32", "192"};
    QTest::newRow("v4 cube") << std::string("v4 4x4x4") << std::string("data=4,fsdp=4,model=4")
                             << QStringList{"data 4: z, ICI 45.0 GB/s each way, rings, 16 groups",
                                    "fsdp 4: y, ICI 45.0 GB/s each way, rings, 16 groups",
                                    "model 4: x, ICI 45.0 GB/s each way, rings, 16 groups"}
                             << QStringList{"48+16", "48+16", "48+16"};
    QTest::newRow("one host") << std::string("h100 1*8") << std::string("data=4,model=2")
                              << QStringList{"data 4: gpu (4 of 8), NVLink 364 GB/s each way, 2 groups, shares links with model",
                                     "model 2: gpu (2 of 8), NVLink 364 GB/s each way, 4 groups, shares links with data"}
                              << QStringList{"8", "8"};
    QTest::newRow("hosts") << std::string("h100 4*8") << std::string("data=4,model=8")
                           << QStringList{"data 4: host, NIC 50.0 GB/s each way, 8 groups",
                                  "model 8: gpu, NVLink 364 GB/s each way, 4 groups"}
                           << QStringList{"32", "32"};
    QTest::newRow("axis over hosts and GPUs")
        << std::string("h100 2*8") << std::string("data=16")
        << QStringList{"data 16: host and gpu, NIC and NVLink 50.0 GB/s each way, 1 group"} << QStringList{"32"};
    QTest::newRow("full mesh") << std::string("mi300x 1*8") << std::string("data=2,model=4")
                               << QStringList{"data 2: gpu (2 of 8), peer link 44.8 GB/s each way, 4 groups",
                                      "model 4: gpu (4 of 8), peer link 44.8 GB/s each way, 2 groups"}
                               << QStringList{"4", "12"}; // 4 pairs; 6 links in each of 2 groups
    QTest::newRow("two devices a chip") << std::string("v3 2x2") << std::string("data=4,model=2")
                                        << QStringList{"data 4: x and y, ICI 41.0 GB/s each way, 2 groups",
                                               "model 2: core, on-chip 492 GB/s each way, 4 groups"}
                                        << QStringList{"8", "4"};
    QTest::newRow("axis of size 1") << std::string("v5e 4x2") << std::string("data=8,model=1")
                                    << QStringList{"data 8: x and y, ICI 45.0 GB/s each way, 1 group", "model 1: needs no links"}
                                    << QStringList{"10", "0"};
}

void TestMachinePicture::axesAndLinks()
{
    QFETCH(std::string, machine);
    QFETCH(std::string, mesh);
    QFETCH(QStringList, texts);
    QFETCH(QStringList, links);
    const TopologyDrawing drawing = pictureOf(machine, meshOf(mesh));
    QStringList foundTexts;
    QStringList foundLinks;
    for (const DrawnMeshAxis& axis : drawing.meshAxes) {
        foundTexts << text(meshAxisText(axis));
        foundLinks << linksOf(drawing, axis.name);
    }
    QCOMPARE(foundTexts, texts);
    QCOMPARE(foundLinks, links);
}

void TestMachinePicture::devicesAreThoseOfTheMesh()
{
    // JAX puts the last axis, model, along y: the device at x 1, y 0 is data 1, model 0, position 2 of the mesh.
    const TopologyDrawing drawing = pictureOf("v5e 4x2", meshOf("data=4,model=2"));
    QCOMPARE(drawing.devices[1].id, DeviceId{2});
    QCOMPARE(drawing.devices[1].meshText, std::string("data 1, model 0"));
    QCOMPARE(drawing.devices[1].coordinates, (Sizes{1, 0}));
    QCOMPARE(drawing.platform, std::string("TPU"));
    QCOMPARE(drawing.dimensions[0].meshText, std::string("data"));
    QVERIFY(drawing.deviceColours->of(2) == DeviceColours(meshOf("data=4,model=2")).of(2));
    const TopologyDrawing split = pictureOf("v5e 16x16", meshOf("data=64,model=4"));
    QCOMPARE(split.dimensions[0].meshText, std::string("data 4, model 4"));
    QCOMPARE(split.dimensions[1].meshText, std::string("data 16"));
}

void TestMachinePicture::ownOrder()
{
    // A ring through the 4x2 chips: 0 1 2 3 and back 7 6 5 4. Every step is one link, and the way home is one too.
    const TopologyDrawing ring = pictureOf("v5e 4x2", meshOf("ring=8", {0, 1, 2, 3, 7, 6, 5, 4}));
    QCOMPARE(linksOf(ring, "ring"), QString("8"));
    QCOMPARE(ring.devices[7].id, DeviceId{7});
    QCOMPARE(ring.devices[7].meshText, std::string("ring 4"));
    QVERIFY(ring.dimensions[0].meshText.empty());
    QVERIFY(text(meshAxisText(ring.meshAxes[0])).startsWith("ring 8: in its own device order, ICI"));

    // The second row first: both ways from row to row run back along the row and over the one link at x 0.
    QCOMPARE(linksOf(pictureOf("v5e 4x2", meshOf("line=8", {4, 5, 6, 7, 0, 1, 2, 3})), "line"), QString("7"));
    // Hosts: from GPU to GPU inside, and over the network between.
    const TopologyDrawing gpus = pictureOf("h100 2*4", meshOf("a=8", {0, 4, 1, 5, 2, 6, 3, 7}));
    QCOMPARE(linksOf(gpus, "a"), QString("8"));
}

void TestMachinePicture::smallerMesh()
{
    const TopologyDrawing drawing = pictureOf("v5e 4x4", meshOf("data=2,model=4"));
    const auto empty = std::ranges::count_if(drawing.devices, [](const DrawnDevice& device) { return device.id < 0; });
    QCOMPARE(empty, std::ptrdiff_t{8});
    const auto unused = std::ranges::count_if(drawing.links, [](const DrawnLink& link) { return link.meshAxes.empty(); });
    QCOMPARE(unused, std::ptrdiff_t{24 - 6 - 4}); // of 24 links: 3 in each of 2 rows, 1 in each of 4 columns
}

void TestMachinePicture::switchesAndNetwork()
{
    const TopologyDrawing drawing = pictureOf("h100 4*8", meshOf("data=4,model=8"));
    QCOMPARE(drawing.switches.size(), std::size_t{5});
    const auto network = std::ranges::find(drawing.switches, std::int64_t{-1}, &DrawnSwitch::host);
    QVERIFY(network != drawing.switches.end());
    QVERIFY(network->tooltip.find("8 rails") != std::string::npos);
    const auto second = std::ranges::find(drawing.switches, std::int64_t{1}, &DrawnSwitch::host);
    QVERIFY(text(second->tooltip).startsWith("NVLink switch of host 1\n8 ports of 364 GB/s each way"));
    QVERIFY(text(second->tooltip).contains("adds up all-reduces itself"));
}

/// Slices are alike: one is drawn, without the links between them, under a box for each.
void TestMachinePicture::slices_data()
{
    QTest::addColumn<std::string>("chip");
    QTest::addColumn<std::vector<std::int64_t>>("topology");
    QTest::newRow("flat") << std::string("v5e") << std::vector<std::int64_t>{4, 2};
    QTest::newRow("two devices a chip") << std::string("v3") << std::vector<std::int64_t>{2, 2};
    QTest::newRow("layers") << std::string("v4") << std::vector<std::int64_t>{2, 2, 4};
}

void TestMachinePicture::slices()
{
    QFETCH(std::string, chip);
    QFETCH(std::vector<std::int64_t>, topology);
    const auto drawn = [&](std::int64_t slices, std::int64_t shown = 0) {
        const Machine machine = valueOf(buildMachine(catalogue(), {chip, topology, 0, 0, slices}));
        const MeshPlacement placement = valueOf(placeMesh(meshOf("data=" + std::to_string(machine.deviceCount())), machine));
        TopologyDrawing drawing = valueOf(machinePicture(machine, &placement));
        drawing.slice = shown;
        return drawTopology(drawing);
    };
    const auto tilesOf = [](const DisplayList& picture) {
        std::set<std::string> tiles;
        for (const DisplayItem& item : picture.items) {
            if (item.id.starts_with("device:"))
                tiles.insert(item.id);
        }
        return tiles;
    };
    QVERIFY(tilesOf(drawn(1)).size() > 1);
    QCOMPARE(tilesOf(drawn(3)).size(), tilesOf(drawn(1)).size());
    QVERIFY(tilesOf(drawn(3, 1)) != tilesOf(drawn(3)));
    std::set<std::string> boxes;
    for (const DisplayItem& item : drawn(3, 1).items) {
        if (item.id.starts_with("slice:"))
            boxes.insert(item.id);
    }
    QCOMPARE(boxes, (std::set<std::string>{"slice:0", "slice:1", "slice:2"}));
    QCOMPARE(faultsOf(drawn(3, 1)), QString());
    QCOMPARE(faultsOf(drawn(64, 63)), QString()); // boxes in several lines
}

void TestMachinePicture::withoutAMesh()
{
    const TopologyDrawing drawing = valueOf(machinePicture(builtMachine("v5e 4x2"), nullptr));
    QVERIFY(drawing.meshAxes.empty());
    QCOMPARE(drawing.devices[5].id, DeviceId{5});
    QCOMPARE(drawing.links.size(), std::size_t{10});
    QVERIFY(drawing.title.find("v5e") != std::string::npos);
}

void TestMachinePicture::everyLinkHasItsNodes_data()
{
    QTest::addColumn<std::string>("machine");
    for (const char* words :
        {"v5e 1x1", "v5e 4x2", "v5e 16x16", "v4 2x2x1", "v4 4x4x8", "v3 4x4", "h100 1*1", "h100 3*4", "mi300x 2*8"})
        QTest::newRow(words) << std::string(words);
}

/// Directed links: 2 k of each ring, 2 (k - 1) of each line, 2 of each port, one from every device of a full mesh to every other.
std::int64_t linksOf(const Topology& topology)
{
    std::int64_t links = 0;
    for (const PhysicalAxis& axis : topology.axes()) {
        const std::int64_t lines = topology.deviceCount() / axis.length;
        if (axis.length > 1 && axis.kind == AxisKind::Torus)
            links += 2 * lines * (axis.wraps ? axis.length : axis.length - 1);
        else if (axis.length > 1)
            links += topology.deviceCount() * (axis.kind == AxisKind::FullMesh ? axis.length - 1 : 2);
    }
    return links;
}

void TestMachinePicture::everyLinkHasItsNodes()
{
    QFETCH(std::string, machine);
    const Machine built = builtMachine(machine);
    const TopologyDrawing drawing = valueOf(machinePicture(built, nullptr));
    const auto nodes = static_cast<std::int64_t>(drawing.devices.size() + drawing.switches.size());
    std::int64_t directed = 0;
    for (const DrawnLink& link : drawing.links) {
        QVERIFY(link.from >= 0 && link.from < nodes && link.to >= 0 && link.to < nodes && link.from != link.to);
        QVERIFY(link.bytesPerSecond > 0.0 && !link.kind.empty());
        directed += 2;
    }
    QCOMPARE(directed, linksOf(built.topology));
    for (const DrawnDevice& device : drawing.devices)
        QCOMPARE(device.coordinates.size(), drawing.dimensions.size());
}

void TestMachinePicture::tooLarge()
{
    const auto result = machinePicture(builtMachine("h100 20000*8"), nullptr);
    QCOMPARE(idsOf(result), QString("MW1810"));
    QVERIFY(described(result).contains("a machine of 160000 devices is too large to draw; at most 32768"));
}

MESHWRIGHT_TEST(TestMachinePicture)

} // namespace tst_machine_picture

#include "tst_machine_picture.moc"
