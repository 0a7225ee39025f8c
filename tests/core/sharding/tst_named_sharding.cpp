// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/named_sharding.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_named_sharding {

using namespace meshwright;
using namespace meshwright::tests;

class TestNamedSharding : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void printing();
    void placing();
    void placingProblems();
    void whereAComputationRuns();
    void uncommittedArraysMove();
    void differentDevices();
    void differentOrder();
    void allProblemsAtOnce();
};

namespace {

PlacedArray placed(const char* name, const Mesh& mesh, bool committed = true)
{
    return {name, {8, 8}, {mesh, valueOf(parseSpec("P('x')"))}, committed};
}

} // namespace

void TestNamedSharding::printing()
{
    const NamedSharding sharding{meshOf("data=4,model=2"), valueOf(parseSpec("P('data', None)"))};
    QCOMPARE(namedShardingText(sharding), std::string("NamedSharding(mesh=data=4,model=2, spec=P('data', None))"));
}

void TestNamedSharding::placing()
{
    const auto layout = placedLayout({8, 6}, {meshOf("data=4,model=2"), valueOf(parseSpec("P('data', 'model')"))});
    QVERIFY(layout);
    QCOMPARE(layout->shards.size(), std::size_t{8});
    QCOMPARE(layout->shardShape, (Shape{2, 3}));
}

void TestNamedSharding::placingProblems()
{
    const auto place = [](const char* spec) {
        return placedLayout({10, 6}, {meshOf("data=4,model=2"), valueOf(parseSpec(spec))});
    };
    QCOMPARE(idsOf(place("P('data')")), QString("MW1104"));
    QCOMPARE(idsOf(place("P(None, 'data', 'model')")), QString("MW1101 MW1104"));
    QCOMPARE(idsOf(place("P('x')")), QString("MW1102"));
    QCOMPARE(idsOf(place("P('model', 'model')")), QString("MW1103"));
}

void TestNamedSharding::whereAComputationRuns()
{
    const auto none = placeComputation({});
    QVERIFY(none && none->devices.empty() && none->moved.empty());
    const Mesh mesh = meshOf("x=2", {3, 1});
    const auto placement = placeComputation({placed("a", mesh), placed("b", mesh)});
    QVERIFY(placement);
    QCOMPARE(placement->devices, (std::vector<DeviceId>{3, 1}));
    QVERIFY(placement->moved.empty());
}

void TestNamedSharding::uncommittedArraysMove()
{
    const Mesh here = meshOf("x=2", {2, 3});
    const Mesh there = meshOf("x=2");
    const auto placement = placeComputation(
        {placed("zeros", there, false), placed("w", here), placed("iota", there, false), placed("same", here, false)});
    QVERIFY(placement);
    QCOMPARE(placement->devices, (std::vector<DeviceId>{2, 3}));
    QCOMPARE(placement->moved, (std::vector<std::size_t>{0, 2}));
    // Nothing committed: the first array decides.
    const auto loose = placeComputation({placed("zeros", there, false), placed("ones", here, false)});
    QCOMPARE(loose->devices, (std::vector<DeviceId>{0, 1}));
    QCOMPARE(loose->moved, (std::vector<std::size_t>{1}));
}

void TestNamedSharding::differentDevices()
{
    const auto placement = placeComputation({placed("a", meshOf("x=4")), placed("b", meshOf("x=4", {4, 5, 6, 7}))});
    QCOMPARE(described(placement),
        QString("error MW1120: committed arrays a and b are on different devices: [0, 1, 2, 3] and [4, 5, 6, 7]\n"
                "  rule: committed arrays of one computation need the same devices\n"
                "  fix: move b to the devices of a (jax.device_put), or leave it uncommitted"));
}

void TestNamedSharding::differentOrder()
{
    const auto placement = placeComputation({placed("a", meshOf("x=4", {0, 2, 1, 3})), placed("b", meshOf("x=4", {3, 0, 1, 2}))});
    // Entries 1, 3, 2, 0 of [3, 0, 1, 2] are 0, 2, 1, 3.
    QCOMPARE(described(placement),
        QString(
            "error MW1121: committed arrays a and b have the same devices in different orders: [0, 2, 1, 3] and [3, 0, 1, 2]\n"
            "  rule: committed arrays of one computation need one device order\n"
            "  fix: make both meshes with one device order; taking entries [1, 3, 2, 0] of the second gives the first"));
}

void TestNamedSharding::allProblemsAtOnce()
{
    const auto placement
        = placeComputation({placed("a", meshOf("x=2")), placed("b", meshOf("x=2", {1, 0})), placed("c", meshOf("x=2", {1, 2}))});
    QCOMPARE(idsOf(placement), QString("MW1121 MW1120"));
}

MESHWRIGHT_TEST(TestNamedSharding)

} // namespace tst_named_sharding

#include "tst_named_sharding.moc"
