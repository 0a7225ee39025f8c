// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/layout.h"

#include "core/sharding/layout_grid.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <random>

namespace tst_layout {

using namespace meshwright;
using namespace meshwright::tests;

class TestLayout : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void permutedDevices();
    void replicas();
    void partsOfAnAxis();
    void uneven();
    void scalarAndEmpty();
    void equivalence_data();
    void equivalence();
    void boxesTileTheArray_data();
    void boxesTileTheArray();
    void grids();
    void gridsOfUnevenAndEmpty();
    void cuts();
    void cutsOfUnevenAndEmpty();
    void deviceLists();
};

namespace {

/// `[0:2, 0:4] on 0,1; ...`
std::string shardsText(const Layout& layout)
{
    std::string text;
    for (const Shard& shard : layout.shards) {
        text += (text.empty() ? "" : "; ") + boxText(shard.box) + " on ";
        for (std::size_t i = 0; i < shard.devices.size(); ++i)
            text += (i > 0 ? "," : "") + std::to_string(shard.devices[i]);
    }
    return text;
}

} // namespace

void TestLayout::permutedDevices()
{
    const Mesh mesh = meshOf("a=4,b=2", {0, 1, 2, 3, 6, 7, 4, 5});
    const Layout layout = layoutOf({8, 2}, shardingOf("P('a', 'b')", 2, mesh), mesh);
    QCOMPARE(text(shardsText(layout)),
        QString("[0:2, 0:1] on 0; [0:2, 1:2] on 1; [2:4, 0:1] on 2; [2:4, 1:2] on 3; "
                "[4:6, 0:1] on 6; [4:6, 1:2] on 7; [6:8, 0:1] on 4; [6:8, 1:2] on 5"));
    QCOMPARE(layout.shardShape, (Shape{2, 1}));
    QVERIFY(!layout.fullyReplicated);
}

void TestLayout::replicas()
{
    const Mesh mesh = meshOf("a=2,b=2", {3, 2, 1, 0});
    QCOMPARE(shardsText(layoutOf({4, 4}, shardingOf("P(None, 'b')", 2, mesh), mesh)),
        std::string("[0:4, 0:2] on 3,1; [0:4, 2:4] on 2,0"));
    const Layout whole = layoutOf({4}, shardingOf("P()", 1, mesh), mesh);
    QCOMPARE(shardsText(whole), std::string("[0:4] on 3,2,1,0"));
    QVERIFY(whole.fullyReplicated);
}

void TestLayout::partsOfAnAxis()
{
    // The minor half of an axis of 4 splits: devices 0 and 2 hold the same, and 1 and 3.
    const Mesh mesh = meshOf("a=4");
    TensorSharding sharding = TensorSharding::replicatedOf(1);
    sharding.dims[0].axes = {{0, 2, 2}};
    QCOMPARE(shardsText(layoutOf({6}, sharding, mesh)), std::string("[0:3] on 0,2; [3:6] on 1,3"));
}

void TestLayout::uneven()
{
    // ceil(11 / 6) = 2: five pieces of 2 and one of 1; ceil(5 / 4) = 2: the last device gets nothing.
    const Mesh six = meshOf("a=6");
    QCOMPARE(shardsText(layoutOf({11}, shardingOf("P('a')", 1, six), six)),
        std::string("[0:2] on 0; [2:4] on 1; [4:6] on 2; [6:8] on 3; [8:10] on 4; [10:11] on 5"));
    const Mesh four = meshOf("a=4");
    const Layout layout = layoutOf({5}, shardingOf("P('a')", 1, four), four);
    QCOMPARE(shardsText(layout), std::string("[0:2] on 0; [2:4] on 1; [4:5] on 2; [5:5] on 3"));
    QCOMPARE(layout.shardShape, Shape{2});
    QCOMPARE(emptyHandedDevices(layout), std::vector<DeviceId>{3});
}

void TestLayout::scalarAndEmpty()
{
    const Mesh mesh = meshOf("a=2");
    QCOMPARE(shardsText(layoutOf({}, TensorSharding{}, mesh)), std::string("[] on 0,1"));
    const Layout empty = layoutOf({0, 4}, shardingOf("P('a')", 2, mesh), mesh);
    QCOMPARE(shardsText(empty), std::string("[0:0, 0:4] on 0,1"));
    QVERIFY(emptyHandedDevices(empty).empty()); // nobody has elements, so nobody is left out
    QCOMPARE(layoutGrids(empty).size(), std::size_t{1});
}

void TestLayout::equivalence_data()
{
    QTest::addColumn<std::string>("specA");
    QTest::addColumn<Mesh>("meshA");
    QTest::addColumn<std::string>("specB");
    QTest::addColumn<Mesh>("meshB");
    QTest::addColumn<bool>("expected");
    const auto row = [](const char* name, const char* a, const Mesh& meshA, const char* b, const Mesh& meshB, bool expected) {
        QTest::newRow(name) << std::string(a) << meshA << std::string(b) << meshB << expected;
    };

    const Mesh two = meshOf("x=2,y=2");
    row("None at the end", "P('x')", two, "P('x', None)", two, true);
    row("other names", "P('x', 'y')", two, "P('a', 'b')", meshOf("a=2,b=2"), true);
    row("other shape of mesh", "P(('x', 'y'))", two, "P('a')", meshOf("a=4"), true);
    row("axis of size 1", "P('x', 'z')", meshOf("x=4,z=1"), "P('x')", meshOf("x=4"), true);
    row("other order of axes", "P(('x', 'y'))", two, "P(('y', 'x'))", two, false);
    row("other dimension", "P('x')", two, "P(None, 'x')", two, false);
    row("other device order", "P('x')", two, "P('x')", meshOf("x=2,y=2", {0, 2, 1, 3}), false);
    row("other number of devices", "P()", two, "P()", meshOf("x=2"), false);
}

void TestLayout::equivalence()
{
    QFETCH(std::string, specA);
    QFETCH(Mesh, meshA);
    QFETCH(std::string, specB);
    QFETCH(Mesh, meshB);
    QFETCH(bool, expected);
    QCOMPARE(equivalent({8, 8}, shardingOf(specA, 2, meshA), meshA, shardingOf(specB, 2, meshB), meshB), expected);
    QCOMPARE(equivalent({8, 8}, shardingOf(specB, 2, meshB), meshB, shardingOf(specA, 2, meshA), meshA), expected);
}

void TestLayout::boxesTileTheArray_data()
{
    tests::addSeeds({20240229, 20240230});
}

void TestLayout::boxesTileTheArray()
{
    // Random meshes, random even shardings: every element is in exactly one box, all boxes have the shard shape, and every
    // device holds exactly one box.
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    const auto pick = [&](std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(high - low + 1));
    };
    for (int round = 0; round < 300; ++round) {
        std::vector<MeshAxis> axes;
        for (std::int64_t i = pick(0, 3); i > 0; --i)
            axes.push_back({"axis" + std::to_string(axes.size()), pick(1, 4)});
        Mesh mesh = valueOf(Mesh::create(axes));
        std::vector<DeviceId> order = mesh.deviceOrder();
        std::shuffle(order.begin(), order.end(), random);
        mesh = valueOf(Mesh::create(axes, order));

        const auto rank = static_cast<std::size_t>(pick(1, 3));
        TensorSharding sharding = TensorSharding::replicatedOf(rank);
        std::vector<std::size_t> shuffled(axes.size());
        std::iota(shuffled.begin(), shuffled.end(), std::size_t{0});
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        for (const std::size_t axis : shuffled) {
            AxisRef part = wholeAxis(mesh, axis);
            if (part.size == 4 && pick(0, 1) == 0)
                part = {part.axis, pick(1, 2), 2}; // either half of it
            const auto dim = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(rank)));
            if (dim < rank)
                appendMerging(sharding.dims[dim].axes, part);
        }
        Shape shape;
        for (const DimSharding& dim : sharding.dims)
            shape.push_back(shardCount(dim.axes) * pick(1, 3));

        // A mesh whose axes are cut says the same by a spec.
        const auto cut = toSpecOnCutMesh(sharding, mesh);
        QVERIFY(cut.has_value());
        const auto again = toTensorSharding(cut->spec, rank, cut->mesh);
        QVERIFY2(again && equivalent(shape, sharding, mesh, *again, cut->mesh), specText(cut->spec).c_str());

        const Layout layout = layoutOf(shape, sharding, mesh);
        QCOMPARE(layout.shardShape, localShape(shape, sharding));
        std::vector<int> covered(static_cast<std::size_t>(elementCount(shape)), 0);
        std::size_t holders = 0;
        for (const Shard& shard : layout.shards) {
            holders += shard.devices.size();
            Shape size;
            for (const IndexRange& range : shard.box)
                size.push_back(range.size());
            QCOMPARE(size, layout.shardShape);
            for (std::size_t element = 0; element < covered.size(); ++element) {
                auto rest = static_cast<std::int64_t>(element);
                bool inside = true;
                for (std::size_t dim = rank; dim-- > 0;) {
                    const std::int64_t index = rest % shape[dim];
                    rest /= shape[dim];
                    inside = inside && index >= shard.box[dim].start && index < shard.box[dim].stop;
                }
                covered[element] += inside ? 1 : 0;
            }
        }
        QVERIFY2(std::all_of(covered.begin(), covered.end(), [](int times) { return times == 1; }),
            shardyText(sharding, mesh).c_str());
        QCOMPARE(static_cast<std::int64_t>(holders), mesh.deviceCount());
        QCOMPARE(devicesOf(layout).size(), holders);
        QVERIFY(std::is_sorted(
            layout.shards.begin(), layout.shards.end(), [](const Shard& a, const Shard& b) { return a.box < b.box; }));
    }
}

void TestLayout::grids()
{
    const Mesh mesh = meshOf("a=2,b=2,c=2");
    const Layout layout = layoutOf({4, 6, 8}, shardingOf("P('a', 'b', 'c')", 3, mesh), mesh);
    const auto grids = layoutGrids(layout);
    QCOMPARE(grids.size(), std::size_t{2});
    QCOMPARE(grids[1].shown, (IndexBox{{2, 4}, {0, 6}, {0, 8}}));
    QCOMPARE(grids[1].rows, (std::vector<IndexRange>{{0, 3}, {3, 6}}));
    QCOMPARE(grids[1].columns, (std::vector<IndexRange>{{0, 4}, {4, 8}}));
    QCOMPARE(layout.shards[*grids[1].cellAt(1, 0)].devices, std::vector<DeviceId>{6});
    QCOMPARE(gridText("x", grids[1], layout), std::string("x[2:4, :, :]"));

    const Layout row = layoutOf({8}, shardingOf("P('a')", 1, mesh), mesh);
    QCOMPARE(layoutGrids(row).front().rows.size(), std::size_t{1});
    QCOMPARE(layoutGrids(row).front().columns.size(), std::size_t{2});
    QCOMPARE(gridText("w", layoutGrids(row).front(), row), std::string("w[:]"));
    const Layout scalar = layoutOf({}, TensorSharding{}, mesh);
    QCOMPARE(layoutGrids(scalar).front().cells.size(), std::size_t{1});
    QCOMPARE(gridText("loss", layoutGrids(scalar).front(), scalar), std::string("loss"));
}

void TestLayout::gridsOfUnevenAndEmpty()
{
    const Mesh mesh = meshOf("a=4");
    const Layout layout = layoutOf({5, 2}, shardingOf("P('a')", 2, mesh), mesh);
    const auto grids = layoutGrids(layout);
    QCOMPARE(grids.size(), std::size_t{1});
    QCOMPARE(grids.front().rows, (std::vector<IndexRange>{{0, 2}, {2, 4}, {4, 5}})); // the empty piece is not a row
    const Layout slabs = layoutOf({5, 2, 2}, shardingOf("P('a')", 3, mesh), mesh);
    QCOMPARE(layoutGrids(slabs).size(), std::size_t{3});
}

void TestLayout::cuts()
{
    const Mesh mesh = meshOf("a=2,b=2,c=2");
    const Layout layout = layoutOf({4, 6, 8}, shardingOf("P('a', 'b', 'c')", 3, mesh), mesh);
    // Rows are dimension 2, columns dimension 0, and the cut goes through index 5 of dimension 1: b's second half.
    const LayoutGrid grid = cutThrough(layout, {2, 0, {0, 5, 0}});
    QCOMPARE(grid.shown, (IndexBox{{0, 4}, {3, 6}, {0, 8}}));
    QCOMPARE(grid.rows, (std::vector<IndexRange>{{0, 4}, {4, 8}}));
    QCOMPARE(grid.columns, (std::vector<IndexRange>{{0, 2}, {2, 4}}));
    // Row 1 is c = 1, column 0 is a = 0, b = 1: device 0 * 4 + 1 * 2 + 1.
    QCOMPARE(layout.shards[*grid.cellAt(1, 0)].devices, std::vector<DeviceId>{3});
    QCOMPARE(gridText("x", grid, layout), std::string("x[:, 3:6, :]"));
    QCOMPARE(tilesAlong(layout, 1), (std::vector<IndexRange>{{0, 3}, {3, 6}}));
    // The default of a matrix is what layoutGrids gives.
    const Layout matrix = layoutOf({4, 6}, shardingOf("P('a', 'b')", 2, mesh), mesh);
    QCOMPARE(cutThrough(matrix, {0, 1, {0, 0}}).cells, layoutGrids(matrix).front().cells);
    // Transposed, the first row of cells is the first column of before.
    const LayoutGrid transposed = cutThrough(matrix, {1, 0, {0, 0}});
    QCOMPARE(transposed.cellAt(0, 1), layoutGrids(matrix).front().cellAt(1, 0));
}

void TestLayout::cutsOfUnevenAndEmpty()
{
    const Mesh mesh = meshOf("a=4");
    const Layout uneven = layoutOf({5, 2, 3}, shardingOf("P('a')", 3, mesh), mesh);
    QCOMPARE(tilesAlong(uneven, 0), (std::vector<IndexRange>{{0, 2}, {2, 4}, {4, 5}}));
    QCOMPARE(tilesAlong(uneven, 1), (std::vector<IndexRange>{{0, 2}}));
    QCOMPARE(gridText("x", cutThrough(uneven, {1, 2, {4, 0, 0}}), uneven), std::string("x[4:5, :, :]"));
    const Layout empty = layoutOf({0, 2, 3}, shardingOf("P('a')", 3, mesh), mesh);
    QCOMPARE(cutThrough(empty, {1, 2, {0, 0, 0}}).cells.size(), std::size_t{1});
    QCOMPARE(tilesAlong(empty, 0), (std::vector<IndexRange>{{0, 0}}));
}

void TestLayout::deviceLists()
{
    QCOMPARE(deviceListText({3, 1, 2}, 8), std::string("1,2,3"));
    QCOMPARE(deviceListText({3, 1, 2}, 3), std::string("1,2,3"));
    QCOMPARE(deviceListText({3, 1, 2, 0}, 2), std::string("0,1,...(4)"));
}

MESHWRIGHT_TEST(TestLayout)

} // namespace tst_layout

#include "tst_layout.moc"
