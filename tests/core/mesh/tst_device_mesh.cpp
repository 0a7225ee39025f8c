// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/device_mesh.h"
#include "tests/test_class.h"

#include <algorithm>
#include <numeric>

namespace tst_device_mesh {

using namespace meshwright;

using Sizes = std::vector<std::int64_t>;

class TestDeviceMesh : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void kinds();
    void listedDevices();
    void physicalProblems();
    void smallSlices_data();
    void smallSlices();
    void largeSlices_data();
    void largeSlices();
    void withoutTorus();
    void assignmentProblems();
    void productsHold();
    void contiguous();
    void coresFirst();
    void hybrid();
    void hybridProblems();
};

namespace {

std::vector<PlacedDevice> devicesOf(DeviceKind kind, const Sizes& topology)
{
    return valueOf(tpuDevices(kind, topology));
}

template <typename T>
QString idsOf(const Result<T>& result)
{
    QStringList ids;
    if (!result) {
        for (const Problem& problem : result.error())
            ids += QString::fromStdString(problem.id);
    }
    return ids.join(" ");
}

} // namespace

void TestDeviceMesh::kinds()
{
    QCOMPARE(valueOf(deviceKindOf("TPU v5 lite")), DeviceKind::TpuV5e);
    QCOMPARE(valueOf(deviceKindOf("v5e")), DeviceKind::TpuV5e);
    QCOMPARE(valueOf(deviceKindOf("TPU7x")), DeviceKind::TpuV7x);
    QCOMPARE(valueOf(deviceKindOf("tpu-v4")), DeviceKind::TpuV4);
    QCOMPARE(valueOf(deviceKindOf("TPU v6e")), DeviceKind::TpuV6e);
    QCOMPARE(valueOf(deviceKindOf("gpu")), DeviceKind::Gpu);
    QCOMPARE(QString(deviceKindName(DeviceKind::TpuV5e)), QString("TPU v5 lite"));
    QCOMPARE(idsOf(deviceKindOf("v99")), QString("MW1170"));
}

void TestDeviceMesh::listedDevices()
{
    // 3x2 chips of v4: the first host has x 0 and 1, the second x 2; ids count x first.
    const auto devices = devicesOf(DeviceKind::TpuV4, {3, 2});
    std::vector<DeviceId> ids;
    for (const PlacedDevice& device : devices)
        ids.push_back(device.id);
    QCOMPARE(ids, (std::vector<DeviceId>{0, 1, 3, 4, 2, 5}));
    QCOMPARE(devices[4].process, std::int64_t{1});
    QCOMPARE(devicesOf(DeviceKind::TpuV7x, {2, 2, 2}).size(), std::size_t{16});
    QCOMPARE(idsOf(tpuDevices(DeviceKind::TpuV4, Sizes{})), QString("MW1171"));
    QCOMPARE(idsOf(tpuDevices(DeviceKind::TpuV4, Sizes{2, 0})), QString("MW1171"));
    QCOMPARE(idsOf(tpuDevices(DeviceKind::TpuV4, Sizes{2, 2, 2, 2})), QString("MW1171"));
    QCOMPARE(idsOf(tpuDevices(DeviceKind::TpuV4, Sizes{1 << 20, 1 << 20, 1 << 20})), QString("MW1171"));
}

void TestDeviceMesh::physicalProblems()
{
    auto devices = devicesOf(DeviceKind::TpuV4, {2, 2, 2});
    // Away from the origin and in any order.
    for (PlacedDevice& device : devices)
        device.chip[0] += 5;
    std::reverse(devices.begin(), devices.end());
    QCOMPARE(valueOf(physicalMesh(DeviceKind::TpuV4, devices)).shape, (Sizes{2, 2, 2}));
    // Row-major over x, y, z, while ids count x first.
    QCOMPARE(valueOf(physicalMesh(DeviceKind::TpuV4, devices)).devices, (std::vector<DeviceId>{0, 4, 2, 6, 1, 5, 3, 7}));

    auto hole = devices;
    hole.pop_back();
    QCOMPARE(idsOf(physicalMesh(DeviceKind::TpuV4, hole)), QString("MW1172"));
    auto twice = devices;
    twice[0].chip = twice[1].chip;
    QCOMPARE(idsOf(physicalMesh(DeviceKind::TpuV4, twice)), QString("MW1172"));
    auto cores = devices;
    cores[0].core = 1;
    QCOMPARE(idsOf(physicalMesh(DeviceKind::TpuV4, cores)), QString("MW1172"));
    QCOMPARE(idsOf(physicalMesh(DeviceKind::TpuV3, devices)), QString("MW1172"));
    QCOMPARE(idsOf(physicalMesh(DeviceKind::TpuV4, {})), QString("MW1172"));
    QCOMPARE(idsOf(createDeviceMesh(Sizes{8}, DeviceKind::TpuV7x, twice)), QString("MW1172"));
}

void TestDeviceMesh::smallSlices_data()
{
    QTest::addColumn<QString>("kind");
    QTest::addColumn<Sizes>("topology");
    QTest::addColumn<Sizes>("logical");
    QTest::addColumn<std::vector<DeviceId>>("expected");
    using Ids = std::vector<DeviceId>;
    // Rings: each device and the next are neighbours, and the last and the first.
    QTest::newRow("v3 2x2") << "v3" << Sizes{2, 2} << Sizes{8} << Ids{0, 1, 2, 3, 6, 7, 4, 5};
    QTest::newRow("v2 4x2, not 8 in a row") << "v2" << Sizes{4, 2} << Sizes{4, 4}
                                            << Ids{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};
    QTest::newRow("v5e 2x2") << "v5e" << Sizes{2, 2} << Sizes{4} << Ids{0, 1, 3, 2};
    QTest::newRow("v5e 2x4") << "v5e" << Sizes{2, 4} << Sizes{2, 4} << Ids{0, 1, 2, 3, 7, 6, 5, 4};
    QTest::newRow("v6e 4x4 in one axis") << "v6e" << Sizes{4, 4} << Sizes{16}
                                         << Ids{0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4};
    // The last logical axis takes x (with z, of size 1), the first one y.
    QTest::newRow("v5e 4x4 in two axes") << "v5e" << Sizes{4, 4} << Sizes{4, 4}
                                         << Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    QTest::newRow("v5p 2x2x2") << "v5p" << Sizes{2, 2, 2} << Sizes{8} << Ids{0, 1, 3, 2, 6, 7, 5, 4};
    QTest::newRow("v4 2x2x1") << "v4" << Sizes{2, 2, 1} << Sizes{2, 2} << Ids{0, 1, 2, 3};
}

void TestDeviceMesh::smallSlices()
{
    QFETCH(QString, kind);
    QFETCH(Sizes, topology);
    QFETCH(Sizes, logical);
    QFETCH(std::vector<DeviceId>, expected);
    const DeviceKind of = valueOf(deviceKindOf(kind.toStdString()));
    const auto mesh = createDeviceMesh(logical, of, devicesOf(of, topology));
    QVERIFY2(mesh, mesh ? "" : describe(mesh.error()).c_str());
    QCOMPARE(mesh->shape, logical);
    QCOMPARE(mesh->devices, expected);
}

void TestDeviceMesh::largeSlices_data()
{
    QTest::addColumn<QString>("kind");
    QTest::addColumn<Sizes>("topology");
    QTest::addColumn<Sizes>("logical");
    QTest::newRow("v4 4x4x4") << "v4" << Sizes{4, 4, 4} << Sizes{4, 16};
    QTest::newRow("v4 8x16x16") << "v4" << Sizes{8, 16, 16} << Sizes{1, 256, 8};
    QTest::newRow("v5p 4x4x8") << "v5p" << Sizes{4, 4, 8} << Sizes{8, 16};
    QTest::newRow("v5e 16x16") << "v5e" << Sizes{16, 16} << Sizes{16, 16};
    QTest::newRow("v6e 8x8") << "v6e" << Sizes{8, 8} << Sizes{64};
    QTest::newRow("v7x 4x4x4") << "v7x" << Sizes{4, 4, 4} << Sizes{4, 16, 2};
    QTest::newRow("v3 8x8") << "v3" << Sizes{8, 8} << Sizes{16, 8};
}

void TestDeviceMesh::largeSlices()
{
    QFETCH(QString, kind);
    QFETCH(Sizes, topology);
    QFETCH(Sizes, logical);
    const DeviceKind of = valueOf(deviceKindOf(kind.toStdString()));
    const auto devices = devicesOf(of, topology);
    const auto mesh = createDeviceMesh(logical, of, devices);
    QVERIFY2(mesh, mesh ? "" : describe(mesh.error()).c_str());
    QCOMPARE(mesh->shape, logical);
    auto sorted = mesh->devices;
    std::sort(sorted.begin(), sorted.end());
    std::vector<DeviceId> all(devices.size());
    std::iota(all.begin(), all.end(), DeviceId{0});
    QCOMPARE(sorted, all);
}

void TestDeviceMesh::withoutTorus()
{
    const std::vector<PlacedDevice> devices = {{3}, {1}, {2}, {0}};
    QCOMPARE(valueOf(createDeviceMesh(Sizes{2, 2}, DeviceKind::Gpu, devices)).devices, (std::vector<DeviceId>{0, 1, 2, 3}));
    QCOMPARE(valueOf(createDeviceMesh(Sizes{2, 2}, DeviceKind::Other, devices)).devices, (std::vector<DeviceId>{3, 1, 2, 0}));
    QCOMPARE(idsOf(createDeviceMesh(Sizes{2, 3}, DeviceKind::Gpu, devices)), QString("MW1173"));
    QCOMPARE(idsOf(createDeviceMesh(Sizes{-2, -2}, DeviceKind::Gpu, devices)), QString("MW1173"));
}

void TestDeviceMesh::assignmentProblems()
{
    const auto none = assignToTorus(Sizes{4, 4, 4}, Sizes{2, 32});
    QCOMPARE(idsOf(none), QString("MW1174"));
    QVERIFY2(none.error().front().message.find("logical axis 1 of size 32") != std::string::npos,
        none.error().front().message.c_str());
    QCOMPARE(idsOf(assignToTorus(Sizes{4, 4, 4}, Sizes{2, 8, 4})), QString("MW1174"));
    QVERIFY(valueOf(assignToTorus(Sizes{4, 4, 4}, Sizes{2, 32}, {.allowSplit = true})).splits);
    QVERIFY(!valueOf(assignToTorus(Sizes{4, 4, 4}, Sizes{4, 16}, {.allowSplit = true})).splits);
    QCOMPARE(idsOf(assignToTorus(Sizes{4, 4}, Sizes{4, 8}, {.allowSplit = true})), QString("MW1173"));
    const DeviceMeshOptions contiguous{.contiguousSubmeshes = true};
    QCOMPARE(idsOf(createDeviceMesh(Sizes{2, 32}, DeviceKind::TpuV4, devicesOf(DeviceKind::TpuV4, {4, 4, 4}), contiguous)),
        QString("MW1175"));
    QCOMPARE(
        idsOf(createDeviceMesh(Sizes{2, 32}, DeviceKind::TpuV4, devicesOf(DeviceKind::TpuV4, {4, 4, 4}))), QString("MW1174"));
    QCOMPARE(idsOf(contiguousTranspose(Sizes{3, 3, 3}, Sizes{27})), QString("MW1175"));
}

void TestDeviceMesh::productsHold()
{
    // Every split of 2^a 3^b over three axes: rows multiply to the physical axes, columns to the logical ones.
    const Sizes physical = {12, 4, 6};
    for (const Sizes& logical :
        {Sizes{288}, Sizes{2, 144}, Sizes{9, 32}, Sizes{3, 3, 32}, Sizes{2, 2, 2, 36}, Sizes{1, 16, 18}, Sizes{6, 6, 8}}) {
        const auto found = valueOf(assignToTorus(physical, logical, {.allowSplit = true}));
        for (std::size_t p = 0; p < physical.size(); ++p)
            QCOMPARE(
                std::accumulate(found.sizes[p].begin(), found.sizes[p].end(), std::int64_t{1}, std::multiplies<>()), physical[p]);
        for (std::size_t l = 0; l < logical.size(); ++l) {
            std::int64_t size = 1;
            for (const Sizes& row : found.sizes)
                size *= row[l];
            QCOMPARE(size, logical[l]);
        }
    }
}

void TestDeviceMesh::contiguous()
{
    // 4x4x4 as 16x4: the physical axes in the order x, z, y, and then assigned as a torus.
    const auto devices = devicesOf(DeviceKind::TpuV4, {4, 4, 4});
    const auto mesh = createDeviceMesh(Sizes{16, 4}, DeviceKind::TpuV4, devices, {.contiguousSubmeshes = true});
    QVERIFY(mesh);
    QCOMPARE(mesh->shape, (Sizes{16, 4}));
    // Last logical axis: the first axis, x. Then (z, y): devices 0, 1, 2, 3 along x, then y follows.
    QCOMPARE(
        std::vector<DeviceId>(mesh->devices.begin(), mesh->devices.begin() + 8), (std::vector<DeviceId>{0, 1, 2, 3, 4, 5, 6, 7}));
}

void TestDeviceMesh::coresFirst()
{
    // v7x 4x4x4 has 128 devices: an innermost axis of 2 is the pair of cores of a chip.
    const auto mesh = valueOf(createDeviceMesh(Sizes{4, 16, 2}, DeviceKind::TpuV7x, devicesOf(DeviceKind::TpuV7x, {4, 4, 4})));
    for (std::size_t i = 0; i < mesh.devices.size(); i += 2) {
        QCOMPARE(mesh.devices[i] % 2, 0);
        QCOMPARE(mesh.devices[i + 1], mesh.devices[i] + 1);
    }
    // An axis of 8 takes the cores and the first axis of four.
    QCOMPARE(valueOf(assignToTorus(Sizes{4, 4, 4, 2}, Sizes{16, 8}, {.coresFirst = true})).axesOf(1),
        (std::vector<std::size_t>{0, 3}));
}

void TestDeviceMesh::hybrid()
{
    // Two slices of 2x2: data spans the slices.
    std::vector<PlacedDevice> devices;
    for (std::int64_t slice = 1; slice >= 0; --slice) {
        for (PlacedDevice device : devicesOf(DeviceKind::TpuV4, {2, 2})) {
            device.id += slice * 4;
            device.slice = slice;
            device.process = slice;
            devices.push_back(device);
        }
    }
    const auto data = createHybridDeviceMesh(Sizes{1, 4}, Sizes{2, 1}, DeviceKind::TpuV4, devices);
    QVERIFY(data);
    QCOMPARE(data->shape, (Sizes{2, 4}));
    QCOMPARE(data->devices, (std::vector<DeviceId>{0, 2, 1, 3, 4, 6, 5, 7}));
    // The slices are the major part of an axis that both have.
    const auto both = createHybridDeviceMesh(Sizes{2, 2}, Sizes{1, 2}, DeviceKind::TpuV4, devices, Granule::Process);
    QVERIFY(both);
    QCOMPARE(both->shape, (Sizes{2, 4}));
    QCOMPARE(both->devices, (std::vector<DeviceId>{0, 1, 4, 5, 2, 3, 6, 7}));
}

void TestDeviceMesh::hybridProblems()
{
    const auto devices = devicesOf(DeviceKind::TpuV4, {2, 2});
    QCOMPARE(idsOf(createHybridDeviceMesh(Sizes{4}, Sizes{1, 1}, DeviceKind::TpuV4, devices)), QString("MW1176"));
    QCOMPARE(idsOf(createHybridDeviceMesh(Sizes{4}, Sizes{2}, DeviceKind::TpuV4, devices)), QString("MW1176"));
    QCOMPARE(idsOf(createHybridDeviceMesh(Sizes{8}, Sizes{1}, DeviceKind::TpuV4, devices)), QString("MW1173"));
}

MESHWRIGHT_TEST(TestDeviceMesh)

} // namespace tst_device_mesh

#include "tst_device_mesh.moc"
