// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/tensor_sharding.h"

#include "core/sharding/shard_indices.h"

#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <algorithm>
#include <random>

namespace tst_tensor_sharding {

using namespace meshwright;
using namespace meshwright::tests;
using Groups = std::vector<std::vector<std::int64_t>>;

class TestTensorSharding : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void overlapOfParts_data();
    void overlapOfParts();
    void merging();
    void takingTheMajorPart_data();
    void takingTheMajorPart();
    void specs();
    void specsOnCutMeshes();
    void specProblems();
    void texts();
    void indices();
    void allIndices_data();
    void allIndices();
    void partsOfAnAxis();
    void unused_data();
    void unused();
    void groups();
    void groupsCoverTheMesh();
    void localShapes();
    void sameness();
};

void TestTensorSharding::overlapOfParts_data()
{
    QTest::addColumn<AxisRefs>("two");
    QTest::addColumn<bool>("overlap");
    QTest::addColumn<bool>("prefix"); // the first is the major part of the second
    QTest::addColumn<bool>("independent");

    // Axis 0 has size 8.
    QTest::newRow("same") << AxisRefs{{0, 1, 8}, {0, 1, 8}} << true << true << false;
    QTest::newRow("other axis") << AxisRefs{{0, 1, 8}, {1, 1, 8}} << false << false << true;
    QTest::newRow("neighbours") << AxisRefs{{0, 1, 2}, {0, 2, 4}} << false << false << true;
    QTest::newRow("major part") << AxisRefs{{0, 1, 2}, {0, 1, 8}} << true << true << false;
    QTest::newRow("whole and its major part") << AxisRefs{{0, 1, 8}, {0, 1, 2}} << true << false << false;
    QTest::newRow("in the middle") << AxisRefs{{0, 2, 2}, {0, 1, 8}} << true << false << false;
    QTest::newRow("partly") << AxisRefs{{0, 1, 4}, {0, 2, 4}} << true << false << false;
    QTest::newRow("apart") << AxisRefs{{0, 1, 2}, {0, 4, 2}} << false << false << true;
    QTest::newRow("in no one grid") << AxisRefs{{0, 1, 2}, {0, 3, 2}} << false << false << false; // of an axis of 6
}

void TestTensorSharding::overlapOfParts()
{
    QFETCH(AxisRefs, two);
    QFETCH(bool, overlap);
    QFETCH(bool, prefix);
    QFETCH(bool, independent);
    QCOMPARE(areIndependent(two[0], two[1]), independent);
    QCOMPARE(areIndependent(two[1], two[0]), independent);
    QCOMPARE(overlaps(two[0], two[1]), overlap);
    QCOMPARE(overlaps(two[1], two[0]), overlap);
    QCOMPARE(isPrefixOf(two[0], two[1]), prefix);
}

void TestTensorSharding::merging()
{
    AxisRefs axes;
    appendMerging(axes, {0, 1, 2});
    appendMerging(axes, {0, 2, 4});
    QCOMPARE(axes, (AxisRefs{{0, 1, 8}}));
    appendMerging(axes, {1, 1, 2});
    appendMerging(axes, {0, 8, 2});
    QCOMPARE(axes, (AxisRefs{{0, 1, 8}, {1, 1, 2}, {0, 8, 2}})); // not next to each other: stays apart
    QCOMPARE(shardCount(axes), std::int64_t{32});
    QCOMPARE(shardCount({}), std::int64_t{1});
}

void TestTensorSharding::takingTheMajorPart_data()
{
    QTest::addColumn<AxisRefs>("axes");
    QTest::addColumn<qint64>("pieces");
    QTest::addColumn<std::optional<SplitAxes>>("expected");
    using Answer = std::optional<SplitAxes>;

    const AxisRefs twoFour = {{0, 1, 2}, {1, 1, 4}};
    QTest::newRow("nothing") << twoFour << qint64{1} << Answer(SplitAxes{{}, twoFour});
    QTest::newRow("whole axis") << twoFour << qint64{2} << Answer(SplitAxes{{{0, 1, 2}}, {{1, 1, 4}}});
    QTest::newRow("through an axis") << twoFour << qint64{4} << Answer(SplitAxes{{{0, 1, 2}, {1, 1, 2}}, {{1, 2, 2}}});
    QTest::newRow("all") << twoFour << qint64{8} << Answer(SplitAxes{twoFour, {}});
    QTest::newRow("no such cut") << twoFour << qint64{6} << Answer();
    QTest::newRow("more than there is") << twoFour << qint64{16} << Answer();
}

void TestTensorSharding::takingTheMajorPart()
{
    QFETCH(AxisRefs, axes);
    QFETCH(qint64, pieces);
    QFETCH(std::optional<SplitAxes>, expected);
    QVERIFY(takeMajor(axes, pieces) == expected);
}

void TestTensorSharding::specs()
{
    const Mesh mesh = meshOf("x=2,y=4,one=1");
    const TensorSharding sharding = shardingOf("P(('y', 'x'), None, 'one')", 4, mesh);
    QCOMPARE(sharding.dims.size(), std::size_t{4});
    QCOMPARE(sharding.dims[0].axes, (AxisRefs{{1, 1, 4}, {0, 1, 2}}));
    QVERIFY(sharding.dims[2].axes.empty()); // an axis of size 1 shards nothing
    QVERIFY(std::none_of(sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.open; }));
    const auto spec = toSpec(sharding, mesh);
    QVERIFY(spec.has_value());
    QCOMPARE(specText(*spec), std::string("P(('y', 'x'), None, None, None)"));

    TensorSharding parts = TensorSharding::replicatedOf(1);
    QVERIFY(parts.isReplicated());
    parts.dims[0].axes = {{1, 1, 2}};
    QVERIFY(!parts.isReplicated());
    QVERIFY(!toSpec(parts, mesh).has_value());
    TensorSharding partial = TensorSharding::openOf(2);
    QVERIFY(partial.dims[1].open);
    partial.unreduced = {{0, 1, 2}};
    QVERIFY(!partial.isReplicated());
}

void TestTensorSharding::specsOnCutMeshes()
{
    const Mesh mesh = meshOf("x=8,y=2,x_1=1", {});
    TensorSharding sharding = TensorSharding::replicatedOf(2);
    sharding.dims[0].axes = {{1, 1, 2}, {0, 2, 2}}; // y, then the middle of x
    const auto cut = toSpecOnCutMesh(sharding, mesh);
    QVERIFY(cut.has_value());
    QCOMPARE(cut->mesh.text(), std::string("x_0=2,x_1_=2,x_2=2,y=2,x_1=1"));
    QCOMPARE(specText(cut->spec), std::string("P(('y', 'x_1_'), None)"));

    const auto whole = toSpecOnCutMesh(shardingOf("P(('y', 'x'))", 1, mesh), mesh);
    QVERIFY(whole.has_value());
    QCOMPARE(whole->mesh, mesh);
    QCOMPARE(specText(whole->spec), std::string("P(('y', 'x'),)"));

    TensorSharding apart = TensorSharding::replicatedOf(2);
    apart.dims[0].axes = {{0, 1, 2}};
    apart.dims[1].axes = {{0, 3, 4}};
    QVERIFY(!toSpecOnCutMesh(apart, meshOf("x=12")).has_value());
}

void TestTensorSharding::specProblems()
{
    const Mesh mesh = meshOf("x=2,y=4");
    const auto convert = [&](const char* spec) { return toTensorSharding(valueOf(parseSpec(spec)), 2, mesh); };
    QCOMPARE(idsOf(convert("P('x', 'x', 'y')")), QString("MW1101 MW1103"));
    QCOMPARE(idsOf(convert("P('z')")), QString("MW1102"));
    QCOMPARE(idsOf(convert("P('x', 'y')")), QString());
}

void TestTensorSharding::texts()
{
    const Mesh mesh = meshOf("a=2,b=8");
    TensorSharding sharding = TensorSharding::replicatedOf(3);
    sharding.dims[0].axes = {{0, 1, 2}, {1, 2, 4}};
    sharding.dims[0].open = true;
    sharding.dims[1].open = true;
    sharding.dims[2].priority = 2;
    QCOMPARE(axisText({1, 2, 4}, mesh), std::string("\"b\":(2)4"));
    QCOMPARE(shardyText(sharding, mesh), std::string("[{\"a\", \"b\":(2)4, ?}, {?}, {}p2]"));
    QCOMPARE(layoutText(sharding, mesh), std::string("[{\"a\", \"b\":(2)4, ?}, {?}, {}p2]"));

    TensorSharding partial = shardingOf("P('a', None)", 2, mesh);
    partial.unreduced = {{1, 1, 8}};
    QCOMPARE(layoutText(partial, mesh), std::string("P('a',) partial over b"));
    QCOMPARE(shardyText(partial, mesh), std::string("[{\"a\"}, {}], unreduced={\"b\"}"));
    partial.replicated = {{1, 4, 2}};
    partial.unreduced = {{1, 1, 4}};
    QCOMPARE(shardyText(partial, mesh), std::string("[{\"a\"}, {}], replicated={\"b\":(4)2}, unreduced={\"b\":(1)4}"));
    QCOMPARE(layoutText(partial, mesh), std::string("P('a',) partial over \"b\":(1)4"));
    QCOMPARE(std::string(reduceKindName(ReduceKind::Max)), std::string("max"));
}

void TestTensorSharding::indices()
{
    const Mesh mesh = meshOf("x=2,y=3"); // position = 3 x + y
    const AxisRef x = wholeAxis(mesh, 0);
    const AxisRef y = wholeAxis(mesh, 1);
    for (std::int64_t position = 0; position < 6; ++position) {
        QCOMPARE(shardIndex(position, {}, mesh), std::int64_t{0});
        QCOMPARE(shardIndex(position, {x, y}, mesh), position);
        QCOMPARE(shardIndex(position, {y, x}, mesh), position % 3 * 2 + position / 3);
        QCOMPARE(shardIndex(position, {y}, mesh), position % 3);
    }
}

void TestTensorSharding::allIndices_data()
{
    addSeeds({1, 2, 3});
}

/// Of drawn meshes and lists of parts of their axes, in any order.
void TestTensorSharding::allIndices()
{
    QFETCH(quint64, seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 40; ++round) {
        std::vector<MeshAxis> axes;
        AxisRefs parts;
        for (std::uint64_t axis = 0, count = 1 + random() % 4; axis < count; ++axis) {
            constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 6, 8};
            const std::int64_t size = kSizes[random() % std::size(kSizes)];
            axes.push_back({"x" + std::to_string(axis), size});
            std::int64_t pre = 1;
            while (pre < size) {
                const std::int64_t rest = size / pre;
                const std::int64_t part = rest % 2 == 0 && random() % 2 == 0 ? 2 : rest;
                if (random() % 3 != 0)
                    parts.push_back({static_cast<std::int32_t>(axis), pre, part});
                pre *= part;
            }
        }
        std::shuffle(parts.begin(), parts.end(), random);
        const Mesh mesh = valueOf(Mesh::create(axes));
        const std::vector<std::int64_t> indices = shardIndices(parts, mesh);
        QCOMPARE(std::ssize(indices), mesh.deviceCount());
        for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
            QCOMPARE(indices[static_cast<std::size_t>(position)], shardIndex(position, parts, mesh));
    }
}

void TestTensorSharding::partsOfAnAxis()
{
    // An axis of 8 as 2 x 2 x 2: coordinate 6 is 1, 1, 0.
    const Mesh mesh = meshOf("a=8");
    QCOMPARE(shardIndex(6, {{0, 1, 2}}, mesh), std::int64_t{1});
    QCOMPARE(shardIndex(6, {{0, 2, 2}}, mesh), std::int64_t{1});
    QCOMPARE(shardIndex(6, {{0, 4, 2}}, mesh), std::int64_t{0});
    QCOMPARE(shardIndex(6, {{0, 2, 4}}, mesh), std::int64_t{2}); // 1, 0
    QCOMPARE(shardIndex(6, {{0, 4, 2}, {0, 1, 2}}, mesh), std::int64_t{1}); // 0, 1
}

void TestTensorSharding::unused_data()
{
    QTest::addColumn<AxisRefs>("used");
    QTest::addColumn<AxisRefs>("expected");

    // Mesh a=2, b=8, c=1.
    QTest::newRow("all free") << AxisRefs{} << AxisRefs{{0, 1, 2}, {1, 1, 8}};
    QTest::newRow("all used") << AxisRefs{{1, 1, 8}, {0, 1, 2}} << AxisRefs{};
    QTest::newRow("minor part left") << AxisRefs{{1, 1, 2}} << AxisRefs{{0, 1, 2}, {1, 2, 4}};
    QTest::newRow("both ends left") << AxisRefs{{0, 1, 2}, {1, 2, 2}} << AxisRefs{{1, 1, 2}, {1, 4, 2}};
    QTest::newRow("middle left, listed backwards") << AxisRefs{{1, 4, 2}, {1, 1, 2}} << AxisRefs{{0, 1, 2}, {1, 2, 2}};
}

void TestTensorSharding::unused()
{
    QFETCH(AxisRefs, used);
    QFETCH(AxisRefs, expected);
    QCOMPARE(unusedAxes(used, meshOf("a=2,b=8,c=1")), expected);
}

void TestTensorSharding::groups()
{
    const Mesh mesh = meshOf("x=2,y=3");
    QCOMPARE(deviceGroups({wholeAxis(mesh, 0)}, mesh), (Groups{{0, 3}, {1, 4}, {2, 5}}));
    QCOMPARE(deviceGroups({wholeAxis(mesh, 1)}, mesh), (Groups{{0, 1, 2}, {3, 4, 5}}));
    QCOMPARE(deviceGroups({wholeAxis(mesh, 1), wholeAxis(mesh, 0)}, mesh), (Groups{{0, 3, 1, 4, 2, 5}}));
    QCOMPARE(deviceGroups({}, meshOf("x=2")), (Groups{{0}, {1}}));
    QCOMPARE(deviceGroups({{0, 1, 2}}, meshOf("a=4")), (Groups{{0, 2}, {1, 3}})); // the major half
}

void TestTensorSharding::groupsCoverTheMesh()
{
    const Mesh mesh = meshOf("a=4,b=2,c=3");
    for (const AxisRefs& axes : {AxisRefs{{0, 2, 2}, {2, 1, 3}}, AxisRefs{{1, 1, 2}}, AxisRefs{{2, 1, 3}, {0, 1, 4}}}) {
        std::vector<std::int64_t> all;
        for (const auto& group : deviceGroups(axes, mesh)) {
            QCOMPARE(static_cast<std::int64_t>(group.size()), shardCount(axes));
            for (std::size_t i = 0; i < group.size(); ++i)
                QCOMPARE(shardIndex(group[i], axes, mesh), static_cast<std::int64_t>(i));
            all.insert(all.end(), group.begin(), group.end());
        }
        std::sort(all.begin(), all.end());
        for (std::size_t i = 0; i < all.size(); ++i)
            QCOMPARE(all[i], static_cast<std::int64_t>(i));
        QCOMPARE(static_cast<std::int64_t>(all.size()), mesh.deviceCount());
    }
}

void TestTensorSharding::localShapes()
{
    const Mesh mesh = meshOf("a=4,b=2");
    TensorSharding sharding = TensorSharding::replicatedOf(2);
    sharding.dims[0].axes = {{0, 2, 2}, {1, 1, 2}};
    QCOMPARE(localShape({16, 3}, sharding), (Shape{4, 3}));
    QCOMPARE(localShape({9, 3}, sharding), (Shape{3, 3}));
    QCOMPARE(localShape({}, TensorSharding{}), Shape{});
}

void TestTensorSharding::sameness()
{
    const Mesh mesh = meshOf("a=2,b=4");
    const TensorSharding sharded = shardingOf("P('a', 'b')", 2, mesh);
    QVERIFY(sameSharding(sharded, mesh, sharded, mesh));
    QVERIFY(!sameSharding(sharded, mesh, sharded, meshOf("a=2,b=8")));
    QVERIFY(!sameSharding(sharded, mesh, shardingOf("P('b', 'a')", 2, mesh), mesh));
    TensorSharding other = sharded;
    other.dims[0].open = true;
    QVERIFY(!sameSharding(sharded, mesh, other, mesh));
    TensorSharding rows = shardingOf("P('a')", 2, mesh);
    TensorSharding fixed = rows;
    fixed.replicated = {{1, 1, 4}};
    QVERIFY(sameSharding(rows, mesh, fixed, mesh));
    TensorSharding partial = rows;
    partial.unreduced = {{1, 1, 4}};
    QVERIFY(!sameSharding(rows, mesh, partial, mesh));
    TensorSharding largest = partial;
    largest.unreducedKind = ReduceKind::Max;
    QVERIFY(!sameSharding(partial, mesh, largest, mesh));
    QVERIFY(sameSharding(TensorSharding::replicatedOf(2), mesh, TensorSharding::replicatedOf(3), meshOf("x=7")));
}

MESHWRIGHT_TEST(TestTensorSharding)

} // namespace tst_tensor_sharding

#include "tst_tensor_sharding.moc"
