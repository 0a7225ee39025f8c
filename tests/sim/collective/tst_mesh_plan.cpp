// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/collective/mesh_plan.h"

#include "core/support/resources.h"
#include "sim/collective/placement.h"
#include "tests/test_class.h"

#include <algorithm>
#include <set>

namespace tst_mesh_plan {

using namespace meshwright;
using namespace meshwright::sim;

using Sizes = std::vector<std::int64_t>;

/// The device order of a mesh on real machines, and what its axes get there.
class TestMeshPlan : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void orders_data();
    void orders();
    void axesOfTheTorus();
    void boardRingsCostBandwidth();
    void smallerThanTheMachine();
    void overSlices();
    void overHosts();
    void orderIsAPermutation();
    void devicesSitWhereJaxPutsThem();
    void largerThanTheMachine();
};

namespace {

Machine machineOf(const std::string& chip, const Sizes& topology, std::int64_t hosts = 0)
{
    static const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json"));
    return valueOf(buildMachine(catalogue, {chip, topology, hosts, 0}));
}

MeshPlan planOf(const char* mesh, const Machine& machine, DeviceOrderBy order = DeviceOrderBy::Jax, Sizes outer = {})
{
    return valueOf(planMesh({valueOf(parseMesh(mesh)), std::move(outer), order}, machine));
}

QString orderText(const MeshPlan& plan)
{
    return QString::fromStdString(arrayText(plan.order));
}

QStringList sharesOf(const PlannedAxis& axis)
{
    QStringList shares;
    for (const PhysicalShare& share : axis.shares)
        shares << QStringLiteral("%1 %2/%3%4")
                      .arg(share.axis.c_str())
                      .arg(share.devices)
                      .arg(share.length)
                      .arg(share.wraps ? " wraps" : "");
    return shares;
}

} // namespace

void TestMeshPlan::orders_data()
{
    QTest::addColumn<QString>("chip");
    QTest::addColumn<Sizes>("topology");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("order");

    // tests/goldens/device_mesh.json has the same from JAX.
    QTest::newRow("v3: a ring over the board") << "v3" << Sizes{2, 2} << "a=8"
                                               << "[0 1 2 3 6 7 4 5]";
    QTest::newRow("v3: its halves") << "v3" << Sizes{2, 2} << "a=2,b=4"
                                    << "[[0 1 2 3]\n [6 7 4 5]]";
    QTest::newRow("v3: four boards") << "v3" << Sizes{4, 4} << "a=4,b=8"
                                     << "[[ 0  1  2  3 10 11  8  9]\n [ 4  5  6  7 14 15 12 13]\n [16 17 18 19 26 27 24 25]\n"
                                        " [20 21 22 23 30 31 28 29]]";
    QTest::newRow("v7x: a ring over the board") << "v7x" << Sizes{2, 2, 1} << "a=4,b=1,c=2"
                                                << "[[[0 1]]\n\n [[2 3]]\n\n [[6 7]]\n\n [[4 5]]]";
    QTest::newRow("v7x: two layers") << "v7x" << Sizes{2, 2, 2} << "a=2,b=8"
                                     << "[[ 0  1  2  3  6  7  4  5]\n [ 8  9 10 11 14 15 12 13]]";
    // create_device_mesh gives whole axes of the torus, the last mesh axis choosing first.
    QTest::newRow("v4: axes of the cube") << "v4" << Sizes{2, 2, 2} << "data=4,model=2"
                                          << "[[0 1]\n [4 5]\n [2 3]\n [6 7]]";
    QTest::newRow("v5e: a ring of 4x2") << "v5e" << Sizes{4, 2} << "a=8"
                                        << "[0 1 2 3 7 6 5 4]";
    QTest::newRow("v5p: a ring of 2x2x2") << "v5p" << Sizes{2, 2, 2} << "a=8"
                                          << "[0 1 3 2 6 7 5 4]";
    QTest::newRow("v6e: a ring of 2x2") << "v6e" << Sizes{2, 2} << "a=4"
                                        << "[0 1 3 2]";
}

void TestMeshPlan::orders()
{
    QFETCH(QString, chip);
    QFETCH(Sizes, topology);
    QFETCH(QString, mesh);
    const MeshPlan plan = planOf(mesh.toUtf8().constData(), machineOf(chip.toStdString(), topology));
    QTEST(orderText(plan), "order");
    QVERIFY2(plan.jax.find("create_device_mesh((") != std::string::npos, plan.jax.c_str());
}

void TestMeshPlan::axesOfTheTorus()
{
    const MeshPlan pod = planOf("data=16,model=16", machineOf("v5e", {16, 16}));
    QCOMPARE(sharesOf(pod.planned[0]), QStringList{"y 16/16 wraps"});
    QCOMPARE(sharesOf(pod.planned[1]), QStringList{"x 16/16 wraps"});
    QVERIFY(pod.planned[0].wraps == true);
    // 45 GB/s a link and direction (the catalogue), a ring has two directions.
    QVERIFY(std::abs(pod.planned[0].bytesPerSecond / 90e9 - 1.0) < 0.01);

    const MeshPlan slice = planOf("data=8,model=4", machineOf("v5e", {4, 8}));
    QVERIFY(slice.planned[0].wraps == false);
    QVERIFY(std::abs(slice.planned[0].bytesPerSecond / 45e9 - 1.0) < 0.01);

    // Two axes of a v4 cube for one mesh axis; its other axis shares one of them with a third.
    const MeshPlan split = planOf("data=32,model=2", machineOf("v4", {4, 4, 4}));
    QVERIFY(split.jax.find("allow_split_physical_axes=True") != std::string::npos);
    QCOMPARE(split.planned[0].shares.size(), std::size_t{3});
    QCOMPARE(sharesOf(split.planned[1]), QStringList{"x 2/4"});
    QVERIFY(!split.planned[1].wraps.has_value());
}

/// JAX lays a ring over a small slice and cuts it: the major axis then jumps. The plan says so, and what to do.
void TestMeshPlan::boardRingsCostBandwidth()
{
    const Machine machine = machineOf("v5e", {4, 2});
    const MeshPlan jax = planOf("data=4,model=2", machine);
    const MeshPlan axes = planOf("data=4,model=2", machine, DeviceOrderBy::Axes);
    QCOMPARE(orderText(jax), QString("[[0 1]\n [2 3]\n [7 6]\n [5 4]]"));
    QCOMPARE(orderText(axes), QString("[[0 4]\n [1 5]\n [2 6]\n [3 7]]"));
    QVERIFY(jax.planned[0].bytesPerSecond < axes.planned[0].bytesPerSecond);
    QCOMPARE(jax.notes.size(), std::size_t{1});
    QVERIFY2(jax.notes.front().find("--order axes") != std::string::npos, jax.notes.front().c_str());
    QVERIFY(axes.notes.empty());
    QVERIFY2(axes.jax.find("devices[np.array([[0, 4], [1, 5], [2, 6], [3, 7]])]") != std::string::npos, axes.jax.c_str());
    QCOMPARE(axes.order.devices, valueOf(placeMesh(valueOf(parseMesh("data=4,model=2")), machine)).deviceOrder());
}

void TestMeshPlan::smallerThanTheMachine()
{
    const MeshPlan plan = planOf("data=4,model=2", machineOf("v5e", {4, 4}));
    QCOMPARE(plan.order.devices.size(), std::size_t{8});
    QVERIFY2(plan.notes.front().find("8 of 16 devices") != std::string::npos, plan.notes.front().c_str());
    QVERIFY(plan.jax.find("devices[np.array(") != std::string::npos);
    // A hundred ids are not a line of Python.
    const MeshPlan large = planOf("data=64,model=2", machineOf("v5e", {16, 16}));
    QVERIFY(large.jax.find("devices[order]") != std::string::npos);
}

void TestMeshPlan::overSlices()
{
    const Machine slice = machineOf("v4", {2, 2, 2});
    const MeshPlan plan = planOf("data=4,model=2", slice, DeviceOrderBy::Jax, {2, 1});
    QCOMPARE(plan.slices, std::int64_t{2});
    QCOMPARE(orderText(plan), QString("[[ 0  1]\n [ 4  5]\n [ 2  3]\n [ 6  7]\n [ 8  9]\n [12 13]\n [10 11]\n [14 15]]"));
    QCOMPARE(plan.axes, (std::vector<MeshAxis>{{"data", 8}, {"model", 2}}));
    QCOMPARE(plan.planned[0].size, std::int64_t{4});
    QCOMPARE(plan.planned[0].outer, std::int64_t{2});
    QVERIFY(plan.betweenSlicesBytesPerSecond > 0.0);
    QVERIFY2(plan.jax.find("create_hybrid_device_mesh((4, 2), (2, 1))") != std::string::npos, plan.jax.c_str());
    // The slices are the more major part of an axis, whoever orders them.
    QCOMPARE(planOf("data=4,model=2", slice, DeviceOrderBy::Axes, {1, 2}).order.devices[1], DeviceId{1});
    QCOMPARE(planOf("data=4,model=2", slice, DeviceOrderBy::Axes, {1, 2}).order.devices[2], DeviceId{8});
}

void TestMeshPlan::overHosts()
{
    const MeshPlan plan = planOf("data=1,model=8", machineOf("h100", {}, 1), DeviceOrderBy::Jax, {2, 1});
    QCOMPARE(orderText(plan), QString("[[ 0  1  2  3  4  5  6  7]\n [ 8  9 10 11 12 13 14 15]]"));
    QVERIFY(plan.jax.find("process_is_granule=True") != std::string::npos);
    QCOMPARE(sharesOf(plan.planned[1]), QStringList{"gpu 8/8"});
    QVERIFY(plan.planned[0].shares.empty());
    QCOMPARE(plan.planned[0].bytesPerSecond, 0.0);
}

void TestMeshPlan::orderIsAPermutation()
{
    const std::vector<std::pair<std::string, Sizes>> slices = {{"v2", {2, 2}}, {"v3", {4, 2}}, {"v4", {4, 4, 2}}, {"v5e", {4, 4}},
        {"v5e", {2, 4}}, {"v5p", {2, 2, 4}}, {"v6e", {8, 4}}, {"v7x", {2, 2, 4}}};
    for (const auto& [chip, topology] : slices) {
        const Machine machine = machineOf(chip, topology);
        const std::int64_t count = machine.deviceCount();
        for (std::int64_t model = 1; model <= count; model *= 2) {
            const std::string mesh = fmt::format("data={},model={}", count / model, model);
            for (const DeviceOrderBy order : {DeviceOrderBy::Jax, DeviceOrderBy::Axes}) {
                const MeshPlan plan = planOf(mesh.c_str(), machine, order);
                const std::set<DeviceId> devices(plan.order.devices.begin(), plan.order.devices.end());
                QCOMPARE(static_cast<std::int64_t>(devices.size()), count);
                QCOMPARE(*devices.rbegin(), count - 1);
                for (const PlannedAxis& axis : plan.planned)
                    QVERIFY2((axis.bytesPerSecond > 0.0) == (axis.size > 1), (chip + " " + mesh).c_str());
            }
        }
    }
}

/// Devices of the machine are numbered as JAX numbers them.
void TestMeshPlan::devicesSitWhereJaxPutsThem()
{
    const std::vector<std::pair<std::string, Sizes>> slices
        = {{"v3", {4, 2}}, {"v4", {2, 4, 2}}, {"v5e", {4, 8}}, {"v7x", {2, 4, 2}}};
    for (const auto& [chip, topology] : slices) {
        const Machine machine = machineOf(chip, topology);
        for (const PlacedDevice& device : valueOf(tpuDevices(valueOf(deviceKindOf(chip)), topology))) {
            const Sizes place = machine.topology.coordinates(device.id);
            for (std::size_t axis = 0; axis < topology.size(); ++axis)
                QCOMPARE(place[axis], device.chip[axis]);
            if (place.size() > topology.size())
                QCOMPARE(place.back(), device.core);
        }
    }
}

void TestMeshPlan::largerThanTheMachine()
{
    const auto plan = planMesh({valueOf(parseMesh("data=16")), {}, DeviceOrderBy::Jax}, machineOf("v5e", {4, 2}));
    QVERIFY(!plan);
    QCOMPARE(plan.error().front().id, std::string("MW1720"));
}

MESHWRIGHT_TEST(TestMeshPlan)

} // namespace tst_mesh_plan

#include "tst_mesh_plan.moc"
