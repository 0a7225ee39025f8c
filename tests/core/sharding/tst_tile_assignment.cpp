// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/tile_assignment.h"

#include "tests/random_shardings.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/tile_placement.h"
#include "tests/values.h"

namespace tst_tile_assignment {

using namespace meshwright;
using namespace meshwright::tests;

class TestTileAssignment : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void iotaDevices();
    void iotaProblems_data();
    void iotaProblems();
    void listsAsIotas();
    void transposing_data();
    void transposing();
    void smallestMeshes();
    void readingAndWriting_data();
    void readingAndWriting();
    void tuples();
    void readingProblems_data();
    void readingProblems();
    void normalForms_data();
    void normalForms();
    void placements();
    void fitting();
    void unevenLayout();
    void layoutsWithoutTiles();
    void importing_data();
    void importing();
    void importProblems_data();
    void importProblems();
    void inventedMeshes();
    void ownOrder();
    void randomRoundTrips_data();
    void randomRoundTrips();
};

namespace {

TileSharding tilesOf(std::string_view written)
{
    return valueOf(parseTileSharding(written));
}

} // namespace

void TestTileAssignment::iotaDevices()
{
    // 0..5 as 2x3 and transposed: 0 3 1 4 2 5.
    const auto tiles = TileAssignment::iota({3, 2}, {2, 3}, {1, 0});
    QVERIFY(tiles);
    QCOMPARE(tiles->devices(), (std::vector<DeviceId>{0, 3, 1, 4, 2, 5}));
    QCOMPARE(TileAssignment().devices(), std::vector<DeviceId>{0});
    // 2x2x2 transposed by (2, 0, 1): position (c, a, b) holds 4a + 2b + c.
    QCOMPARE(valueOf(TileAssignment::iota({8}, {2, 2, 2}, {2, 0, 1})).devices(), (std::vector<DeviceId>{0, 2, 4, 6, 1, 3, 5, 7}));
}

void TestTileAssignment::iotaProblems_data()
{
    QTest::addColumn<Shape>("dims");
    QTest::addColumn<Shape>("reshape");
    QTest::addColumn<std::vector<std::size_t>>("perm");
    QTest::addColumn<QString>("says");
    using Perm = std::vector<std::size_t>;
    QTest::newRow("no dims") << Shape{} << Shape{} << Perm{} << "should not be empty";
    QTest::newRow("zero") << Shape{2, 0} << Shape{} << Perm{} << "below 1";
    QTest::newRow("too many") << Shape{1 << 20, 1 << 20} << Shape{} << Perm{} << "more than";
    QTest::newRow("product") << Shape{2, 2} << Shape{2, 4} << Perm{1, 0}
                             << "cannot reshape from [2,4] (8 devices) to [2,2] (4 tiles)";
    QTest::newRow("perm alone") << Shape{2, 2} << Shape{} << Perm{1, 0} << "should have the same size";
    QTest::newRow("perm twice") << Shape{2, 2} << Shape{2, 2} << Perm{0, 0} << "not a permutation";
    QTest::newRow("perm beyond") << Shape{2, 2} << Shape{2, 2} << Perm{0, 2} << "not a permutation";
    QTest::newRow("reshape") << Shape{2, 2} << Shape{-2, -2} << Perm{0, 1} << "below 1";
}

void TestTileAssignment::iotaProblems()
{
    QFETCH(Shape, dims);
    QFETCH(Shape, reshape);
    QFETCH(std::vector<std::size_t>, perm);
    QFETCH(QString, says);
    const auto tiles = TileAssignment::iota(dims, reshape, perm);
    QCOMPARE(idsOf(tiles), QString("MW1151"));
    QVERIFY2(described(tiles).contains(says), described(tiles).toUtf8());
}

void TestTileAssignment::listsAsIotas()
{
    const auto list = TileAssignment::list({2, 4}, {0, 2, 4, 6, 1, 3, 5, 7});
    QVERIFY(list);
    const auto iota = list->asIota();
    QVERIFY(iota);
    QCOMPARE(iota->text(), std::string("[2,4]<=[4,2]T(1,0)"));
    QCOMPARE(iota->devices(), list->devices());
    QVERIFY(!valueOf(TileAssignment::list({4}, {0, 1, 3, 2})).asIota());
    QVERIFY(!valueOf(TileAssignment::list({2}, {1, 0})).asIota());
    QVERIFY(!valueOf(TileAssignment::list({4}, {0, 2, 4, 6})).asIota());
    QVERIFY(!valueOf(TileAssignment::list({4}, {0, 3, 1, 5})).asIota());
    QCOMPARE(idsOf(TileAssignment::list({2}, {0, 0})), QString("MW1152"));
    QCOMPARE(idsOf(TileAssignment::list({2}, {0, -1})), QString("MW1152"));
    QCOMPARE(idsOf(TileAssignment::list({2}, {0, 1, 2})), QString("MW1152"));
    QCOMPARE(idsOf(TileAssignment::list({}, {})), QString("MW1151"));
}

void TestTileAssignment::transposing_data()
{
    tests::addSeeds({3, 4});
}

void TestTileAssignment::transposing()
{
    QFETCH(quint64, seed);
    Random random(seed);
    for (int i = 0; i < 200; ++i) {
        const Mesh mesh = randomMesh(random, {});
        const TileSharding sharding = toTiles(randomSharding(random, 3, mesh, {}), mesh);
        if (sharding.kind != TileKind::Tiled)
            continue;
        const TileAssignment& iota = sharding.tiles;
        const TileAssignment list = valueOf(TileAssignment::list(iota.dims(), iota.devices()));
        std::vector<std::size_t> order(iota.dims().size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        QVERIFY(iota.transposed(order).isIota());
        QCOMPARE(iota.transposed(order).devices(), list.transposed(order).devices());
    }
    // 6 tiles of 4 and 9: no cut divides, and still the transpose is right.
    const auto odd = valueOf(TileAssignment::iota({4, 9}, {6, 6}, {1, 0}));
    QVERIFY(!odd.pieces());
    const std::vector<std::size_t> swap = {1, 0};
    QCOMPARE(odd.transposed(swap).devices(), valueOf(TileAssignment::list({4, 9}, odd.devices())).transposed(swap).devices());
}

void TestTileAssignment::smallestMeshes()
{
    QCOMPARE(valueOf(TileAssignment::iota({6, 35}, {7, 10, 3}, {2, 1, 0})).smallestMesh(), std::optional(Shape{7, 2, 5, 3}));
    QCOMPARE(valueOf(TileAssignment::iota({2, 4})).smallestMesh(), std::optional(Shape{2, 4}));
    QCOMPARE(valueOf(TileAssignment::iota({1})).smallestMesh(), std::optional(Shape{}));
    QCOMPARE(valueOf(TileAssignment::list({2, 2}, {0, 2, 1, 3})).smallestMesh(), std::optional(Shape{2, 2}));
    QVERIFY(!valueOf(TileAssignment::list({4}, {3, 0, 1, 2})).smallestMesh());
}

void TestTileAssignment::readingAndWriting_data()
{
    QTest::addColumn<QString>("written");
    for (const char* written :
        {"{replicated}", "{manual}", "{unreduced}", "{unknown}", "{maximal device=3}", "{devices=[2,1,2]2,3,5,7}",
            "{devices=[2,4]<=[8]}", "{devices=[2,4]<=[4,2]T(1,0)}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
            "{devices=[1,2,2]0,1,2,3 last_tile_dims={manual, replicated}}", "{devices=[2,2]<=[4] last_tile_dims={unreduced}}"})
        QTest::newRow(written) << QString(written);
}

void TestTileAssignment::readingAndWriting()
{
    QFETCH(QString, written);
    const auto sharding = parseTileSharding(written.toStdString());
    QVERIFY2(sharding, described(sharding).toUtf8());
    QCOMPARE(text(tileText(*sharding)), written);
}

void TestTileAssignment::tuples()
{
    const char* written = "{{replicated}, {devices=[1,2]3,5}, {maximal device=3}}";
    const auto tuple = parseTileShardings(written);
    QVERIFY(tuple);
    QCOMPARE(tuple->size(), std::size_t{3});
    QCOMPARE(tileText(*tuple), std::string(written));
    QCOMPARE(valueOf(parseTileShardings("{replicated}")).size(), std::size_t{1});
    QVERIFY(valueOf(parseTileShardings("{}")).empty());
    QCOMPARE(tilesOf("{devices=[2]<=[2] metadata={op_name=\"jit(f)/{a}\"}}"), tilesOf("{devices=[2]<=[2]}"));
    // Not canonical: it is read all the same.
    QCOMPARE(tileText(tilesOf("{devices=[2,4]<=[2,2,2]T(0,1,2) last_tile_dims={replicated}}")),
        std::string("{devices=[2,4]<=[8] last_tile_dim_replicate}"));
}

void TestTileAssignment::readingProblems_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("ids");
    QTest::addColumn<int>("column");
    const auto row = [](const char* written, const char* ids, int column) { QTest::newRow(written) << written << ids << column; };
    row("", "MW1150", 1);
    row("replicated", "MW1150", 1);
    row("{replicate}", "MW1150", 2);
    row("{replicated", "MW1150", 12);
    row("{replicated} x", "MW1150", 14);
    row("{maximal}", "MW1150", 9);
    row("{maximal device=-1}", "MW1150", 19);
    row("{devices=2}", "MW1150", 10);
    row("{devices=[2}", "MW1150", 12);
    row("{devices=[2]}", "MW1150", 13);
    row("{devices=[2]0,}", "MW1150", 15);
    row("{devices=[x]0}", "MW1150", 11);
    row("{devices=[2]<=2}", "MW1150", 15);
    row("{devices=[2]<=[2]T(x)}", "MW1150", 20);
    row("{devices=[2]<=[2]T(0;)}", "MW1150", 21);
    row("{devices=[2]0,1 last_tile_dims={other}}", "MW1150", 33);
    row("{devices=[2]0,1 last_tile_dims={manual;}}", "MW1150", 39);
    row("{devices=[2]0,1 last_tile_dims=manual}", "MW1150", 32);
    row("{devices=[2]0,1 metadata=x}", "MW1150", 26);
    row("{devices=[2]0,1 last_tile_dims={manual, replicated}}", "MW1155", 52);
    row("{devices=[2]0,0}", "MW1152", 16);
    row("{devices=[2]0}", "MW1152", 14);
    row("{devices=[]<=[1]}", "MW1151", 17);
    row("{devices=[2]<=[3]}", "MW1151", 18);
}

void TestTileAssignment::readingProblems()
{
    QFETCH(QString, written);
    QFETCH(QString, ids);
    QFETCH(int, column);
    const auto sharding = parseTileSharding(written.toStdString());
    QCOMPARE(idsOf(sharding), ids);
    QCOMPARE(sharding.error().front().place.column, column);
    QVERIFY(!parseTileShardings(written.toStdString() + "{"));
}

void TestTileAssignment::normalForms_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("simple");
    const auto row = [](const char* written, const char* simple) { QTest::newRow(written) << written << simple; };
    row("{devices=[1,1,2]0,1 last_tile_dim_replicate}", "{replicated}");
    row("{devices=[1]0}", "{replicated}");
    row("{devices=[1,2,1]0,1 last_tile_dims={manual, replicated}}", "{manual}");
    row("{devices=[1,4]<=[4] last_tile_dims={unreduced}}", "{unreduced}");
    row("{devices=[2,1]0,1 last_tile_dim_replicate}", "{devices=[2]0,1}");
    row("{devices=[2,2,2]<=[8] last_tile_dims={replicated, manual}}",
        "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}}");
    row("{devices=[2,2,2]<=[8] last_tile_dims={replicated, replicated}}", "{devices=[2,4]<=[8] last_tile_dim_replicate}");
    row("{devices=[2,2,2,2]<=[16] last_tile_dims={manual, replicated, manual}}",
        "{devices=[2,4,2]<=[4,2,2]T(0,2,1) last_tile_dims={manual, replicated}}");
}

void TestTileAssignment::normalForms()
{
    QFETCH(QString, written);
    QFETCH(QString, simple);
    const TileSharding sharding = tilesOf(written.toStdString());
    QCOMPARE(text(tileText(normalized(sharding))), simple);
    QVERIFY(samePlacement(sharding, tilesOf(simple.toStdString())));
    QCOMPARE(normalized(normalized(sharding)), normalized(sharding));
}

void TestTileAssignment::placements()
{
    const auto same = [](const char* a, const char* b) { return samePlacement(tilesOf(a), tilesOf(b)); };
    QVERIFY(same("{devices=[2,2]0,1,3,2 last_tile_dim_replicate}", "{devices=[2,2]1,0,2,3 last_tile_dim_replicate}"));
    QVERIFY(!same("{devices=[2,2]0,1,3,2}", "{devices=[2,2]1,0,2,3}"));
    QVERIFY(!same("{devices=[2,2]0,1,3,2 last_tile_dims={manual}}", "{devices=[2,2]1,0,2,3 last_tile_dims={manual}}"));
    QVERIFY(!same("{devices=[2]0,1}", "{devices=[2,1]0,1}"));
    QVERIFY(!same("{manual}", "{replicated}"));
    QVERIFY(same("{maximal device=1}", "{maximal device=1}"));
    QVERIFY(!same("{maximal device=1}", "{maximal device=2}"));
}

void TestTileAssignment::fitting()
{
    const auto ids = [](const char* written, const Shape& shape, std::int64_t devices) {
        QStringList all;
        for (const Problem& problem : tileProblems(tilesOf(written), shape, devices))
            all.push_back(text(problem.id));
        return all.join(" ");
    };
    QCOMPARE(ids("{devices=[2,2]0,3,2,1}", {3, 5}, 4), QString());
    QCOMPARE(ids("{devices=[2,2]0,1,2,3}", {4, 6}, 2), QString("MW1153"));
    QCOMPARE(ids("{devices=[2,2]0,1,2,3}", {4, 6}, 5), QString("MW1153"));
    QCOMPARE(ids("{devices=[2,2]0,1,2,3}", {4}, 4), QString("MW1154"));
    QCOMPARE(ids("{maximal device=5}", {4}, 5), QString("MW1153"));
    QCOMPARE(ids("{replicated}", {4}, 5), QString());
}

void TestTileAssignment::unevenLayout()
{
    // 11 rows in tiles of ceil(11 / 6) = 2: the last has 1. 5 columns in 4 tiles of 2: 2, 2, 1 and an empty one.
    const auto rows = tileLayout({11, 20}, tilesOf("{devices=[6,1]<=[6]}"), {});
    QVERIFY(rows);
    QCOMPARE(rows->shardShape, (Shape{2, 20}));
    QCOMPARE(rows->shards.back().box, (IndexBox{{10, 11}, {0, 20}}));
    const auto columns = tileLayout({5}, tilesOf("{devices=[4,2]<=[8] last_tile_dim_replicate}"), {});
    QVERIFY(columns);
    QCOMPARE(columns->shards.size(), std::size_t{4});
    QCOMPARE(columns->shards[2].box, (IndexBox{{4, 5}}));
    QCOMPARE(columns->shards[3].box, (IndexBox{{5, 5}}));
    QCOMPARE(columns->shards[3].devices, (std::vector<DeviceId>{6, 7}));
    QCOMPARE(idsOf(tileLayout({5, 5}, tilesOf("{devices=[4]<=[4]}"), {})), QString("MW1154"));
}

void TestTileAssignment::layoutsWithoutTiles()
{
    QCOMPARE(valueOf(tileLayout({5}, tilesOf("{replicated}"), {0, 1})).shards.front().devices, (std::vector<DeviceId>{0, 1}));
    QCOMPARE(valueOf(tileLayout({5}, tilesOf("{maximal device=7}"), {0, 1})).shards.front().devices, (std::vector<DeviceId>{7}));
    QCOMPARE(idsOf(tileLayout({5}, tilesOf("{unknown}"), {0, 1})), QString("MW1156"));
}

void TestTileAssignment::importing_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("sharding");
    const auto row = [](const char* written, const char* mesh, const char* sharding) {
        QTest::newRow(written) << written << mesh << sharding;
    };
    row("{devices=[4,8]<=[8,4]T(1,0)}", "a=2,b=4,c=4", "[{\"c\"}, {\"a\", \"b\"}]");
    row("{devices=[4,2,4]<=[2,2,2,4]T(3,1,0,2) last_tile_dim_replicate}", "x=8,y=4", "[{\"y\"}, {\"x\":(2)2}]");
    row("{unknown}", "a=2", "[{?}, {?}]");
    row("{replicated}", "a=2", "[{}, {}]");
    row("{unreduced}", "a=2,b=2", "[{}, {}], unreduced={\"a\", \"b\"}");
    row("{devices=[2,1,2]<=[4] last_tile_dims={unreduced}}", "a=2,b=2", "[{\"a\"}, {}], unreduced={\"b\"}");
    // The replicas come in any order.
    row("{devices=[2,1,4]3,0,2,1,4,5,7,6 last_tile_dim_replicate}", "a=2,b=4", "[{\"a\"}, {}]");
}

void TestTileAssignment::importing()
{
    QFETCH(QString, written);
    QFETCH(QString, mesh);
    QFETCH(QString, sharding);
    const Mesh on = meshOf(mesh.toStdString());
    const auto named = fromTiles(tilesOf(written.toStdString()), 2, on);
    QVERIFY2(named, described(named).toUtf8());
    QCOMPARE(text(shardyText(named->sharding, on)), sharding);
    QVERIFY(named->manual.empty());
}

void TestTileAssignment::importProblems_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("ids");
    QTest::newRow("rank") << "{devices=[2]<=[2]}"
                          << "a=2"
                          << "MW1154";
    QTest::newRow("count") << "{devices=[2,2]<=[4]}"
                           << "a=2"
                           << "MW1156";
    QTest::newRow("devices") << "{devices=[2,1]3,4}"
                             << "a=2"
                             << "MW1156";
    QTest::newRow("axes") << "{devices=[3,2]<=[6]}"
                          << "a=2,b=3"
                          << "MW1156";
    QTest::newRow("order") << "{devices=[4,1]0,1,3,2}"
                           << "a=4"
                           << "MW1156";
    QTest::newRow("maximal") << "{maximal device=1}"
                             << "a=2"
                             << "MW1156";
}

void TestTileAssignment::importProblems()
{
    QFETCH(QString, written);
    QFETCH(QString, mesh);
    QFETCH(QString, ids);
    QCOMPARE(idsOf(fromTiles(tilesOf(written.toStdString()), 2, meshOf(mesh.toStdString()))), ids);
}

void TestTileAssignment::inventedMeshes()
{
    QCOMPARE(valueOf(meshOfTiles(tilesOf("{devices=[6,35]<=[7,10,3]T(2,1,0)}"))).text(),
        std::string("axis_0=7,axis_1=2,axis_2=5,axis_3=3"));
    QCOMPARE(valueOf(meshOfTiles(tilesOf("{replicated}"))), Mesh());
    QCOMPARE(valueOf(meshOfTiles(tilesOf("{maximal device=4}"))).deviceOrder(), std::vector<DeviceId>{4});
    // No mesh in order of the ids explains this list: the tiles themselves are the mesh.
    const TileSharding odd = tilesOf("{devices=[2,1,2]0,1,3,2}");
    const Mesh mesh = valueOf(meshOfTiles(odd));
    QCOMPARE(mesh, valueOf(Mesh::create({{"axis_0", 2}, {"axis_1", 2}}, {0, 1, 3, 2})));
    const auto named = fromTiles(odd, 3, mesh);
    QVERIFY(named);
    QCOMPARE(tileText(toTiles(named->sharding, mesh)), tileText(odd));
    QCOMPARE(valueOf(meshOfTiles(tilesOf("{devices=[2,4]3,0,2,1,4,5,7,6 last_tile_dim_replicate}"))).text(),
        std::string("axis_0=2,axis_1=4"));
}

void TestTileAssignment::ownOrder()
{
    const Mesh mesh = meshOf("a=2,b=4", {0, 2, 4, 6, 1, 3, 5, 7});
    const TensorSharding sharding = shardingOf("P('a', 'b')", 2, mesh);
    QCOMPARE(tileText(toTiles(sharding, mesh)), std::string("{devices=[2,4]0,2,4,6,1,3,5,7}"));
    QCOMPARE(tileText(toTiles(sharding, mesh, {}, TileForm::IotaIfPossible)), std::string("{devices=[2,4]<=[4,2]T(1,0)}"));
    QCOMPARE(tileText(toTiles(TensorSharding::replicatedOf(2), Mesh())), std::string("{maximal device=0}"));
    QCOMPARE(tileText(toTiles(TensorSharding::replicatedOf(0), meshOf("a=2"))), std::string("{replicated}"));
    // Manual axes are a group of their own.
    const Mesh plain = meshOf("a=2,b=4");
    QCOMPARE(tileText(toTiles(shardingOf("P('b')", 1, plain), plain, {wholeAxis(plain, 0)})),
        std::string("{devices=[4,2]<=[2,4]T(1,0) last_tile_dims={manual}}"));
}

void TestTileAssignment::randomRoundTrips_data()
{
    tests::addSeeds({2, 3});
}

void TestTileAssignment::randomRoundTrips()
{
    QFETCH(quint64, seed);
    Random random(seed);
    for (int i = 0; i < 1500; ++i) {
        const RandomLimits limits{.open = false, .replicated = false, .sizesOfOne = true, .ownOrder = true};
        const Mesh mesh = randomMesh(random, limits);
        const auto rank = static_cast<std::size_t>(pick(random, 0, 4));
        const TensorSharding sharding = randomSharding(random, rank, mesh, limits);
        const TileSharding tiles = toTiles(sharding, mesh);
        const std::string written = tileText(tiles);
        const std::string context = written + " on " + mesh.text() + ": " + shardyText(sharding, mesh);
        QVERIFY2(tilesOf(written) == tiles, context.c_str());
        const auto named = fromTiles(tiles, rank, mesh);
        QVERIFY2(named, described(named).toUtf8());
        // What fills the whole mesh with one group has lost its axes, but for unreduced ones, which are then all of the mesh.
        QVERIFY2(named->sharding == sharding, context.c_str());

        // The same boxes on the same devices.
        Shape shape;
        for (std::size_t dim = 0; dim < rank; ++dim)
            shape.push_back(pick(random, 1, 20));
        const auto fromTiled = tileLayout(shape, tiles, mesh.deviceOrder());
        const Layout fromMesh = layoutOf(shape, sharding, mesh);
        QVERIFY(fromTiled);
        QCOMPARE(fromTiled->shardShape, fromMesh.shardShape);
        QCOMPARE(fromTiled->shards.size(), fromMesh.shards.size());
        for (std::size_t shard = 0; shard < fromMesh.shards.size(); ++shard) {
            QCOMPARE(fromTiled->shards[shard].box, fromMesh.shards[shard].box);
            auto a = fromTiled->shards[shard].devices;
            auto b = fromMesh.shards[shard].devices;
            std::sort(a.begin(), a.end());
            std::sort(b.begin(), b.end());
            QVERIFY2(a == b, context.c_str());
        }

        // The invented mesh explains it as well.
        const Mesh invented = valueOf(meshOfTiles(tiles));
        if (tiles.kind == TileKind::Tiled) {
            const auto again = fromTiles(tiles, rank, invented);
            QVERIFY2(again, described(again).toUtf8());
            QVERIFY2(samePlacement(toTiles(again->sharding, invented), tiles), context.c_str());
        }
    }
}

MESHWRIGHT_TEST(TestTileAssignment)

} // namespace tst_tile_assignment

#include "tst_tile_assignment.moc"
