// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/mesh.h"
#include "tests/test_class.h"

namespace tst_mesh {

using namespace meshwright;
using Order = std::vector<DeviceId>;

class TestMesh : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void axesAndPositions();
    void explicitOrder();
    void oneDevice();
    void fromArray();
    void parse_data();
    void parse();
    void order();
    void problems_data();
    void problems();
    void allProblemsAtOnce();
};

void TestMesh::axesAndPositions()
{
    const Mesh mesh = valueOf(Mesh::create({{"data", 4}, {"model", 2}}));
    QCOMPARE(mesh.deviceCount(), std::int64_t{8});
    QCOMPARE(mesh.text(), std::string("data=4,model=2"));
    QCOMPARE(mesh.axisNames(), (std::vector<std::string>{"data", "model"}));
    QCOMPARE(mesh.axisSize("model"), std::optional<std::int64_t>(2));
    QCOMPARE(mesh.axisSize("expert"), std::optional<std::int64_t>());
    QCOMPARE(mesh.findAxis("model"), std::optional<std::size_t>(1));
    QCOMPARE(mesh.stride(0), std::int64_t{2});
    QCOMPARE(mesh.stride(1), std::int64_t{1});
    // Position 5 is row 2, column 1.
    QCOMPARE(mesh.coordinate(5, 0), std::int64_t{2});
    QCOMPARE(mesh.coordinate(5, 1), std::int64_t{1});
    QCOMPARE(mesh.deviceAt(5), DeviceId{5});
    QVERIFY(mesh.hasDefaultOrder());
}

void TestMesh::explicitOrder()
{
    const Order snake = {0, 1, 2, 3, 6, 7, 4, 5};
    const Mesh mesh = valueOf(Mesh::create({{"a", 4}, {"b", 2}}, snake));
    QVERIFY(!mesh.hasDefaultOrder());
    QCOMPARE(mesh.deviceOrder(), snake);
    QCOMPARE(mesh.deviceAt(4), DeviceId{6});
    // The default order written out is the default order.
    QCOMPARE(valueOf(Mesh::create({{"a", 2}}, {0, 1})), valueOf(Mesh::create({{"a", 2}})));
    // Ids need not be 0..n-1: a mesh may use a part of the devices.
    QCOMPARE(valueOf(Mesh::create({{"a", 2}}, {4, 7})).deviceOrder(), (Order{4, 7}));
}

void TestMesh::oneDevice()
{
    const Mesh mesh;
    QCOMPARE(mesh.deviceCount(), std::int64_t{1});
    QCOMPARE(mesh.deviceAt(0), DeviceId{0});
    QCOMPARE(mesh.text(), std::string("one device"));
    QCOMPARE(valueOf(Mesh::create({}, {5})).deviceAt(0), DeviceId{5});
}

void TestMesh::fromArray()
{
    const std::vector<std::int64_t> shape = {2, 2};
    const std::vector<std::string> names = {"x", "y"};
    const Mesh mesh = valueOf(Mesh::fromArray(shape, {3, 1, 2, 0}, names));
    QCOMPARE(mesh.text(), std::string("x=2,y=2"));
    QCOMPARE(mesh.deviceAt(0), DeviceId{3});

    const std::vector<std::string> one = {"x"};
    const auto wrong = Mesh::fromArray(shape, {0, 1, 2, 3}, one);
    QVERIFY(!wrong);
    QCOMPARE(wrong.error().front().id, std::string("MW1116"));
    QCOMPARE(
        wrong.error().front().message, std::string("the device array has rank 2 (shape 2x2), but 1 axis names are given (x)"));
    QVERIFY(!wrong.error().front().fix.empty());
    QVERIFY(!wrong.error().front().rule.empty());
}

void TestMesh::parse_data()
{
    QTest::addColumn<std::string>("input");
    QTest::addColumn<std::string>("expected");

    QTest::newRow("two axes") << std::string("data=4,model=2") << std::string("data=4,model=2");
    QTest::newRow("spaces") << std::string(" data = 4 , model = 2 ") << std::string("data=4,model=2");
    QTest::newRow("one device") << std::string() << std::string("one device");
    QTest::newRow("size 1") << std::string("x=1") << std::string("x=1");
}

void TestMesh::parse()
{
    QFETCH(std::string, input);
    QFETCH(std::string, expected);
    const auto mesh = parseMesh(input);
    QVERIFY2(mesh, mesh ? "" : describe(mesh.error()).c_str());
    QCOMPARE(mesh->text(), expected);
}

void TestMesh::order()
{
    QCOMPARE(valueOf(parseDeviceOrder("0, 1,3,2")), (Order{0, 1, 3, 2}));
    const auto wrong = parseDeviceOrder("0,x,,2");
    QVERIFY(!wrong);
    QCOMPARE(wrong.error().size(), std::size_t{2});
    QCOMPARE(wrong.error().front().id, std::string("MW1118"));
    QCOMPARE(wrong.error().front().message, std::string("\"x\" is not a device id"));
}

void TestMesh::problems_data()
{
    QTest::addColumn<std::string>("input");
    QTest::addColumn<Order>("order");
    QTest::addColumn<std::string>("id");
    QTest::addColumn<std::string>("message");
    const auto row = [](const char* name, const char* input, const Order& order, const char* id, const char* message) {
        QTest::newRow(name) << std::string(input) << order << std::string(id) << std::string(message);
    };

    row("no name", "=4", {}, "MW1110", "\"\" is not a name for a mesh axis");
    row("digit first", "4d=4", {}, "MW1110", "\"4d\" is not a name for a mesh axis");
    row("space inside", "a b=4", {}, "MW1110", "\"a b\" is not a name for a mesh axis");
    row("name twice", "a=2,b=2,a=4", {}, "MW1111", "two mesh axes are named \"a\"");
    row("size 0", "a=0", {}, "MW1112", "mesh axis \"a\": the size must be at least 1, got 0");
    row("size negative", "a=-2", {}, "MW1112", "mesh axis \"a\": the size must be at least 1, got -2");
    row("too many devices", "a=16777216,b=2", {}, "MW1113", "the mesh axes make more than 16777216 devices");
    row("overflow", "a=9223372036854775807,b=9223372036854775807", {}, "MW1113", "the mesh axes make more than 16777216 devices");
    row("order too short", "a=4", {0, 1}, "MW1114", "the device order lists 2 devices, the mesh axes need 4");
    row("device twice", "a=2", {1, 1}, "MW1115", "the device order names device 1 twice");
    row("device negative", "a=2", {0, -1}, "MW1115", "the device order names device -1");
    row("no size", "data", {}, "MW1117", "\"data\" is not an axis with a size");
    row("size not a number", "data=four", {}, "MW1117", "\"data=four\" is not an axis with a size");
    row("comma at the end", "data=4,", {}, "MW1117", "\"\" is not an axis with a size");
}

void TestMesh::problems()
{
    QFETCH(std::string, input);
    QFETCH(Order, order);
    QFETCH(std::string, id);
    QFETCH(std::string, message);
    const auto mesh = parseMesh(input, order);
    QVERIFY(!mesh);
    QCOMPARE(mesh.error().size(), std::size_t{1});
    QCOMPARE(mesh.error().front().id, id);
    QCOMPARE(mesh.error().front().message, message);
    QVERIFY(!mesh.error().front().fix.empty());
}

void TestMesh::allProblemsAtOnce()
{
    const auto mesh = Mesh::create({{"", 0}, {"b", 2}, {"b", 2}});
    QVERIFY(!mesh);
    QStringList ids;
    for (const Problem& problem : mesh.error())
        ids << QString::fromStdString(problem.id + "@" + problem.place.path);
    QCOMPARE(ids.join(' '), QString("MW1110@mesh.axes[0] MW1112@mesh.axes[0] MW1111@mesh.axes[2]"));
}

MESHWRIGHT_TEST(TestMesh)

} // namespace tst_mesh

#include "tst_mesh.moc"
