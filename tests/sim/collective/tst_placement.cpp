// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/placement.h"
#include "tests/test_class.h"

#include <algorithm>
#include <numeric>

namespace tst_placement {

using namespace meshwright;
using namespace meshwright::sim;

using Sizes = std::vector<std::int64_t>;
using Table = std::vector<Sizes>;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

Machine machine(const char* chip, Sizes topology)
{
    return valueOf(buildMachine(catalogue(), {chip, std::move(topology)}));
}

Machine hosts(const char* chip, std::int64_t count, std::int64_t perHost)
{
    return valueOf(buildMachine(catalogue(), {chip, {}, count, perHost}));
}

MeshPlacement placed(const char* mesh, const Machine& on)
{
    return valueOf(placeMesh(valueOf(parseMesh(mesh)), on));
}

/// `x4` is a line of 4 along x, `x4o` a ring; `/2` half of the link's bandwidth; joined by spaces.
QString text(const std::vector<GroupAxis>& axes, const Topology& topology)
{
    QStringList texts;
    for (const GroupAxis& axis : axes) {
        QString each = QString("%1%2%3").arg(QString::fromStdString(axis.name)).arg(axis.size).arg(axis.wraps ? "o" : "");
        const double share = topology.axes()[axis.physicalAxis].link.bytesPerSecond / axis.link.bytesPerSecond;
        if (share != 1.0)
            each += QString("/%1").arg(share);
        texts << each;
    }
    return texts.join(' ');
}

} // namespace

class TestPlacement : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void likeJax_data();
    void likeJax();
    void groups_data();
    void groups();
    void subAxes();
    void ownOrder();
    void ownOrderSeesTheSame_data();
    void ownOrderSeesTheSame();
    void everyDeviceOnce_data();
    void everyDeviceOnce();
    void partOfTheMachine();
    void slices_data();
    void slices();
    void scatteredGroups();
    void texts();
    void problems_data();
    void problems();
};

void TestPlacement::likeJax_data()
{
    QTest::addColumn<Sizes>("physical");
    QTest::addColumn<Sizes>("logical");
    QTest::addColumn<Table>("expected"); // [physical][logical]: the part of the physical axis that the logical one has

    // What JAX assigns: tests/mesh_utils_test.py of jax-ml/jax@cec06d116c05 (Apache-2.0), without and with splitting.
    const auto row = [](const char* name, Sizes physical, Sizes logical, Table expected) {
        QTest::newRow(name) << physical << logical << expected;
    };
    row("2x2x4", {2, 2, 4}, {1, 4, 4}, {{1, 1, 2}, {1, 1, 2}, {1, 4, 1}});
    row("4x4x4", {4, 4, 4}, {1, 16, 4}, {{1, 1, 4}, {1, 4, 1}, {1, 4, 1}});
    row("4x4x8a", {4, 4, 8}, {1, 16, 8}, {{1, 4, 1}, {1, 4, 1}, {1, 1, 8}});
    row("4x4x8b", {4, 4, 8}, {1, 8, 16}, {{1, 1, 4}, {1, 1, 4}, {1, 8, 1}});
    row("4x8x8", {4, 8, 8}, {1, 32, 8}, {{1, 4, 1}, {1, 1, 8}, {1, 8, 1}});
    row("8x8x8", {8, 8, 8}, {1, 64, 8}, {{1, 1, 8}, {1, 8, 1}, {1, 8, 1}});
    row("4x4x4 split a", {4, 4, 4}, {2, 1, 32}, {{1, 1, 4}, {1, 1, 4}, {2, 1, 2}});
    row("4x4x4 split b", {4, 4, 4}, {8, 8, 1}, {{1, 4, 1}, {2, 2, 1}, {4, 1, 1}});
    row("4x4x8 split a", {4, 4, 8}, {2, 2, 8, 4}, {{1, 1, 1, 4}, {2, 2, 1, 1}, {1, 1, 8, 1}});
    row("4x4x8 split b", {4, 4, 8}, {2, 4, 1, 16}, {{1, 1, 1, 4}, {1, 1, 1, 4}, {2, 4, 1, 1}});
    row("8x8x1 split", {8, 8, 1}, {2, 1, 32, 1}, {{1, 1, 8, 1}, {2, 1, 4, 1}, {1, 1, 1, 1}});
}

void TestPlacement::likeJax()
{
    QFETCH(Sizes, physical);
    QFETCH(Sizes, logical);
    QFETCH(Table, expected);

    Machine torus;
    std::vector<PhysicalAxis> axes;
    Sizes strides;
    std::int64_t stride = 1;
    for (const std::int64_t length : physical) {
        axes.push_back({"xyz", AxisKind::Torus, length, false, {45e9, 1e-6, LinkKind::Ici}, 0.0});
        strides.push_back(stride);
        stride *= length;
    }
    torus.topology = Topology(axes, strides);
    std::vector<MeshAxis> names;
    for (std::size_t i = 0; i < logical.size(); ++i)
        names.push_back({std::string(1, char('a' + i)), logical[i]});

    const auto placement = placeMesh(valueOf(Mesh::create(names)), torus);
    QVERIFY(placement);
    Table found(physical.size(), Sizes(logical.size(), 1));
    for (std::size_t axis = 0; axis < logical.size(); ++axis) {
        for (const AxisPart& part : placement->parts(axis))
            found[part.physicalAxis][axis] = part.size;
    }
    QCOMPARE(found, expected);
}

void TestPlacement::groups_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Sizes>("size"); // chips along each axis, or {hosts, per host}
    QTest::addColumn<QStringList>("expected"); // for each mesh axis, then for all together

    const auto row = [](const char* mesh, const char* chip, Sizes size, QStringList expected) {
        QTest::addRow("%s on %s", mesh, chip) << mesh << chip << size << expected;
    };
    row("data=4,model=2", "v5e", {4, 2}, {"x4", "y2", "x4 y2"});
    row("data=2,model=4", "v5e", {4, 2}, {"y2", "x4", "x4 y2"});
    row("a=8", "v5e", {4, 2}, {"x4 y2", "x4 y2"});
    row("data=16,model=4", "v5e", {16, 4}, {"x16o", "y4", "x16o y4"});
    // v3: the two devices of a chip are closest.
    row("a=8", "v3", {2, 2}, {"x2 y2 core2", "x2 y2 core2"});
    row("a=4,b=2", "v3", {2, 2}, {"x2 y2", "core2", "x2 y2 core2"});
    row("a=2,b=4", "v3", {2, 2}, {"y2", "x2 core2", "x2 y2 core2"});
    row("a=64", "v4", {4, 4, 4}, {"x4o y4o z4o", "x4o y4o z4o"});
    row("a=16,b=4", "v4", {4, 4, 4}, {"y4o z4o", "x4o", "x4o y4o z4o"});
    // z is split: b has neighbours (a line of 2), a has opposite places of the ring: two ways of two hops, each shared by two groups.
    row("a=2,b=32", "v4", {4, 4, 4}, {"z2", "x4o y4o z2", "x4o y4o z4o"});
    // a: places 0, 4, 8, 12 of a ring of 16: hops of 4 shared by 4 groups.
    row("a=4,b=4,c=4", "v5e", {16, 4}, {"x4o/4", "x4", "y4", "x16o y4"});
    row("a=4,b=1,c=2", "v5e", {4, 2}, {"x4", "", "y2", "x4 y2"});
    row("data=2,model=4", "h100", {1, 8}, {"gpu2", "gpu4", "gpu8"});
    row("data=4,model=8", "h100", {4, 8}, {"host4", "gpu8", "host4 gpu8"});
    row("data=8,model=4", "h100", {4, 8}, {"host4 gpu2", "gpu4", "host4 gpu8"});
    row("pipe=2,data=2,model=8", "h100", {4, 8}, {"host2", "host2", "gpu8", "host4 gpu8"});
    row("data=2,model=16", "h100", {4, 8}, {"host2", "host2 gpu8", "host4 gpu8"});
    row("data=4,model=3", "h100", {2, 6}, {"host2 gpu2", "gpu3", "host2 gpu6"});
    row("data=2,model=4", "mi300x", {1, 8}, {"gpu2", "gpu4", "gpu8"});
}

void TestPlacement::groups()
{
    QFETCH(QString, mesh);
    QFETCH(QString, chip);
    QFETCH(Sizes, size);
    QFETCH(QStringList, expected);

    const std::string name = chip.toStdString();
    const bool gpu = name == "h100" || name == "mi300x";
    const Machine on = gpu ? hosts(name.c_str(), size[0], size[1]) : machine(name.c_str(), size);
    const MeshPlacement placement = placed(mesh.toStdString().c_str(), on);
    AxisRefs all;
    for (std::size_t axis = 0; axis < placement.mesh().axes().size(); ++axis) {
        const AxisRef whole = wholeAxis(placement.mesh(), axis);
        all.push_back(whole);
        const QString found = text(placement.groupAxes({{whole}}), placement.topology());
        QCOMPARE(found, expected[int(axis)]);
    }
    // Adjacent parts of one physical axis are joined.
    QCOMPARE(text(placement.groupAxes(all), placement.topology()), expected.back());
}

void TestPlacement::subAxes()
{
    const MeshPlacement placement = placed("data=4,model=2", machine("v5e", {4, 2}));
    const Topology& topology = placement.topology();
    QCOMPARE(text(placement.groupAxes({{AxisRef{0, 1, 2}}}), topology), "x2/2"); // major half: places 0 and 2
    QCOMPARE(placement.groupAxes({{AxisRef{0, 1, 2}}}).front().link.latencySeconds, 2e-6);
    QCOMPARE(text(placement.groupAxes({{AxisRef{0, 2, 2}}}), topology), "x2"); // neighbours
    QCOMPARE(text(placement.groupAxes({{AxisRef{0, 2, 2}, AxisRef{1, 1, 2}}}), topology), "x2 y2");
    QVERIFY(placement.groupAxes({}).empty());

    const MeshPlacement cores = placed("a=8", machine("v3", {2, 2}));
    QCOMPARE(text(cores.groupAxes({{AxisRef{0, 4, 2}}}), cores.topology()), "core2");
    QCOMPARE(text(cores.groupAxes({{AxisRef{0, 1, 4}}}), cores.topology()), "x2 y2");
    QCOMPARE(text(cores.groupAxes({{AxisRef{0, 2, 4}}}), cores.topology()), "y2 core2");

    // 6 = 2 hosts of 3: the major third cuts across both parts.
    const MeshPlacement odd = placed("a=6", hosts("h100", 2, 3));
    QCOMPARE(text(odd.groupAxes({{AxisRef{0, 1, 2}}}), odd.topology()), "host2");
    const auto third = odd.groupAxes({{AxisRef{0, 1, 3}}});
    QCOMPARE(third.size(), std::size_t(1));
    QVERIFY(third.front().kind == GroupKind::Scattered);
}

void TestPlacement::ownOrder()
{
    // The order that JAX gives a v3 2x2: a ring over the chips.
    const Machine on = machine("v3", {2, 2});
    const std::vector<DeviceId> order{0, 1, 2, 3, 6, 7, 4, 5};
    const auto whole = valueOf(placeMesh(valueOf(parseMesh("a=8", order)), on));
    QCOMPARE(text(whole.groupAxes({{AxisRef{0, 1, 8}}}), on.topology), "x2 y2 core2");
    QCOMPARE(whole.deviceOrder(), order);
    const auto two = valueOf(placeMesh(valueOf(parseMesh("a=2,b=4", order)), on));
    QCOMPARE(text(two.groupAxes({{AxisRef{1, 1, 4}}}), on.topology), "x2 core2");
    // Along a: 0 and 6, chips (0, 0) and (1, 1): two hops, each link used once.
    const auto diagonal = two.groupAxes({{AxisRef{0, 1, 2}}});
    QCOMPARE(diagonal.size(), std::size_t(1));
    QVERIFY(diagonal.front().kind == GroupKind::Scattered);
    QCOMPARE(diagonal.front().link.latencySeconds, 2e-6);
    QCOMPARE(diagonal.front().link.bytesPerSecond, 41e9);
    QCOMPARE(diagonal.front().enteringBytesPerSecond, 2 * 41e9 + 6 * 82e9);
}

void TestPlacement::ownOrderSeesTheSame_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Sizes>("size");

    QTest::newRow("v5e") << "data=4,model=2"
                         << "v5e" << Sizes{4, 2};
    QTest::newRow("v3") << "a=2,b=4,c=4"
                        << "v3" << Sizes{4, 4};
    QTest::newRow("v4 split") << "a=2,b=32"
                              << "v4" << Sizes{4, 4, 4};
    QTest::newRow("v5e ring split") << "a=4,b=4,c=4"
                                    << "v5e" << Sizes{16, 4};
    QTest::newRow("v7x") << "a=4,b=2,c=16"
                         << "v7x" << Sizes{4, 4, 4};
    QTest::newRow("h100") << "data=4,model=8"
                          << "h100" << Sizes{4, 8};
}

void TestPlacement::ownOrderSeesTheSame()
{
    QFETCH(QString, mesh);
    QFETCH(QString, chip);
    QFETCH(Sizes, size);

    const Machine on = chip == "h100" ? hosts("h100", size[0], size[1]) : machine(chip.toStdString().c_str(), size);
    const MeshPlacement ours = placed(mesh.toStdString().c_str(), on);
    const auto given = valueOf(placeMesh(valueOf(Mesh::create(ours.mesh().axes(), ours.deviceOrder())), on));
    const std::size_t count = ours.mesh().axes().size();
    for (std::size_t subset = 1; subset < (std::size_t(1) << count); ++subset) {
        AxisRefs axes;
        for (std::size_t axis = 0; axis < count; ++axis) {
            if (subset >> axis & 1)
                axes.push_back(wholeAxis(ours.mesh(), axis));
        }
        QCOMPARE(text(given.groupAxes(axes), on.topology), text(ours.groupAxes(axes), on.topology));
        QVERIFY(given.groupAxes(axes) == ours.groupAxes(axes));
    }
}

void TestPlacement::everyDeviceOnce_data()
{
    ownOrderSeesTheSame_data();
}

void TestPlacement::everyDeviceOnce()
{
    QFETCH(QString, mesh);
    QFETCH(QString, chip);
    QFETCH(Sizes, size);

    const Machine on = chip == "h100" ? hosts("h100", size[0], size[1]) : machine(chip.toStdString().c_str(), size);
    auto order = placed(mesh.toStdString().c_str(), on).deviceOrder();
    std::ranges::sort(order);
    std::vector<DeviceId> all(std::size_t(on.deviceCount()));
    std::iota(all.begin(), all.end(), DeviceId(0));
    all.resize(order.size());
    QCOMPARE(order, all);
}

void TestPlacement::partOfTheMachine()
{
    const Machine v5e = machine("v5e", {4, 4});
    QCOMPARE(placed("a=4", v5e).used(), (Sizes{2, 2}));
    QCOMPARE(placed("a=8", v5e).used(), (Sizes{4, 2}));
    QCOMPARE(placed("a=6", v5e).used(), (Sizes{3, 2}));
    QCOMPARE(placed("a=1", v5e).used(), (Sizes{1, 1}));
    QCOMPARE(placed("a=4", v5e).deviceOrder(), (std::vector<DeviceId>{0, 4, 1, 5}));
    // Half of a ring is a line.
    QCOMPARE(
        text(placed("a=8", machine("v5e", {16, 1})).groupAxes({{AxisRef{0, 1, 8}}}), machine("v5e", {16, 1}).topology), "x8");
    QCOMPARE(placed("a=2", machine("v3", {2, 2})).used(), (Sizes{1, 1, 2}));
    QCOMPARE(placed("a=3", machine("v3", {4, 2})).used(), (Sizes{3, 1, 1}));
    QCOMPARE(placed("a=6", hosts("h100", 1, 8)).used(), (Sizes{1, 6}));
    QCOMPARE(placed("a=12", hosts("h100", 4, 8)).used(), (Sizes{2, 6}));
    QCOMPARE(placed("a=2,b=6", hosts("h100", 4, 8)).used(), (Sizes{2, 6}));
}

/// The network between slices carries what no slice can: of the outermost axis.
void TestPlacement::slices_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<Sizes>("overNetwork"); // slices that each axis spans
    QTest::newRow("the outer axis") << "data=2,fsdp=16,model=16" << Sizes{2, 1, 1};
    QTest::newRow("a part of it") << "fsdp=32,model=16" << Sizes{2, 1};
    QTest::newRow("one axis over all") << "fsdp=512" << Sizes{2};
    QTest::newRow("an axis as long as the slices' number inside") << "fsdp=256,model=2" << Sizes{2, 1};
    QTest::newRow("one slice is enough") << "fsdp=16,model=16" << Sizes{1, 1};
}

void TestPlacement::slices()
{
    QFETCH(QString, mesh);
    QFETCH(Sizes, overNetwork);
    const Machine machine = valueOf(buildMachine(catalogue(), {"v5e", {16, 16}, 0, 0, 2}));
    const auto placement = placeMesh(valueOf(parseMesh(mesh.toStdString())), machine);
    QVERIFY(placement);
    for (std::size_t axis = 0; axis < overNetwork.size(); ++axis) {
        std::int64_t found = 1;
        for (const AxisPart& part : placement->parts(axis))
            found *= machine.topology.axes()[part.physicalAxis].kind == AxisKind::Network ? part.size : 1;
        QCOMPARE(qint64{found}, qint64{overNetwork[axis]});
    }
}

void TestPlacement::scatteredGroups()
{
    // A line of 4 in the order 0, 2, 1, 3: the ring 0-2-1-3-0 has hops 2, 1, 2, 3. Upward 0-1 carries 0>2; 1-2 carries 0>2 and 1>3;
    // 2-3 carries 1>3. Downward 3-2 and 1-0 carry 3>0, 2-1 carries 2>1 and 3>0. The busiest carries 2.
    const Machine on = machine("v5e", {4, 2});
    std::vector<DeviceId> order{0, 2, 1, 3, 4, 6, 5, 7};
    const auto placement = valueOf(placeMesh(valueOf(parseMesh("y=2,x=2,z=2", order)), on));
    // Along x and z together the groups are whole lines of 4: a box again.
    QCOMPARE(text(placement.groupAxes({{AxisRef{1, 1, 2}, AxisRef{2, 1, 2}}}), on.topology), "x4");
    // Along x: {0, 1}, {2, 3}: neighbours; along z: {0, 2}, {1, 3}: two apart.
    QCOMPARE(text(placement.groupAxes({{AxisRef{1, 1, 2}}}), on.topology), "x2");
    QCOMPARE(text(placement.groupAxes({{AxisRef{2, 1, 2}}}), on.topology), "x2/2");

    // Groups {0, 3} and {1, 2} differ: the link between 1 and 2 carries both.
    const auto nested
        = valueOf(placeMesh(valueOf(parseMesh("g=4,m=2", {0, 3, 1, 2, 4, 7, 5, 6})), on)).groupAxes({{AxisRef{1, 1, 2}}});
    QCOMPARE(nested.size(), std::size_t(1));
    QVERIFY(nested.front().kind == GroupKind::Scattered);
    QCOMPARE(nested.front().link.bytesPerSecond, 22.5e9);
    QCOMPARE(nested.front().link.latencySeconds, 3e-6);

    // Three GPUs of one host with one of another.
    const Machine gpus = hosts("h100", 2, 4);
    const auto mixed
        = valueOf(placeMesh(valueOf(parseMesh("g=2,m=4", {0, 1, 2, 4, 3, 5, 6, 7})), gpus)).groupAxes({{AxisRef{1, 1, 4}}});
    QVERIFY(mixed.front().kind == GroupKind::Scattered);
    QCOMPARE(mixed.front().link.bytesPerSecond, 50e9);
    QCOMPARE(mixed.front().link.latencySeconds, 9.6e-6);
}

void TestPlacement::texts()
{
    QCOMPARE(placed("data=4,model=2", machine("v5e", {4, 2})).text(), std::string("data: x; model: y"));
    QCOMPARE(
        placed("a=2,b=32", machine("v4", {4, 4, 4})).text(), std::string("a: 2 of 4 along z, every 2; b: x, y, 2 of 4 along z"));
    QCOMPARE(placed("a=8", machine("v5e", {4, 4})).text(), std::string("a: x, 2 of 4 along y (8 of 16 devices: 4x2 of 4x4)"));
    QCOMPARE(placed("data=8,model=4", hosts("h100", 4, 8)).text(),
        std::string("data: host, 2 of 8 along gpu; model: 4 of 8 along gpu"));
    QCOMPARE(placed("", machine("v5e", {1, 1})).text(), std::string("one device"));
}

void TestPlacement::problems_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<std::vector<DeviceId>>("order");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");

    using Order = std::vector<DeviceId>;
    QTest::newRow("too many") << "a=32" << Order{} << "MW1720"
                              << "the mesh a=32 has 32 devices; TPU v5e, 4x4 chips, no wraparound has 16";
    QTest::newRow("no such device") << "a=2" << Order{0, 16} << "MW1721"
                                    << "the device order names device 16; TPU v5e, 4x4 chips, no wraparound has devices 0 to 15";
    QTest::newRow("no box") << "a=7" << Order{} << "MW1722"
                            << "the mesh a=7 has 7 devices, and no block of TPU v5e, 4x4 chips, no wraparound has that many";
}

void TestPlacement::problems()
{
    QFETCH(QString, mesh);
    QFETCH(std::vector<DeviceId>, order);
    QFETCH(QString, id);
    QFETCH(QString, message);

    const auto placement = placeMesh(valueOf(parseMesh(mesh.toStdString(), order)), machine("v5e", {4, 4}));
    QVERIFY(!placement);
    QCOMPARE(QString::fromStdString(placement.error().front().id), id);
    QCOMPARE(QString::fromStdString(placement.error().front().message), message);
}

MESHWRIGHT_TEST(TestPlacement)

} // namespace tst_placement

#include "tst_placement.moc"
