// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/layout.h"
#include "core/sharding/tile_assignment.h"

#include "tests/random_shardings.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/tile_placement.h"
#include "tests/values.h"

namespace tst_layout_model {

using namespace meshwright;
using namespace meshwright::tests;

/// Layouts against a model that asks of every element and every device whether the one is on the other, from the definition of sub-axes: an axis of size
/// n is `[pre, size, n / (pre * size)]`, the parts of a dimension count its tile, tiles have ceil(size / tiles) elements.
class TestLayoutModel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void elements_data();
    void elements();
    void tiles_data();
    void tiles();
    void partialSums_data();
    void partialSums();
    void equivalence_data();
    void equivalence();
};

namespace {

/// The coordinates of every position of a mesh, counted like an odometer whose last wheel is the fastest.
std::vector<std::vector<std::int64_t>> coordinatesOf(const Mesh& mesh)
{
    std::vector<std::vector<std::int64_t>> all;
    std::vector<std::int64_t> wheels(mesh.axes().size(), 0);
    for (;;) {
        all.push_back(wheels);
        std::size_t wheel = wheels.size();
        while (wheel > 0 && ++wheels[wheel - 1] == mesh.axes()[wheel - 1].size)
            wheels[--wheel] = 0;
        if (wheel == 0)
            return all;
    }
}

/// True when a device with these coordinates holds the element.
bool holds(const std::vector<std::int64_t>& coordinates, const std::vector<std::int64_t>& element, const Shape& shape,
    const TensorSharding& sharding, const Mesh& mesh)
{
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        std::int64_t tiles = 1;
        std::int64_t tile = 0;
        for (const AxisRef& part : sharding.dims[dim].axes) {
            const auto axis = static_cast<std::size_t>(part.axis);
            const std::int64_t post = mesh.axes()[axis].size / part.pre / part.size;
            tile = tile * part.size + coordinates[axis] / post % part.size;
            tiles *= part.size;
        }
        const std::int64_t length = (shape[dim] + tiles - 1) / tiles;
        if (element[dim] / length != tile)
            return false;
    }
    return true;
}

std::vector<std::vector<std::int64_t>> elementsOf(const Shape& shape)
{
    std::vector<std::vector<std::int64_t>> all = {{}};
    for (const std::int64_t size : shape) {
        std::vector<std::vector<std::int64_t>> longer;
        for (const auto& start : all) {
            for (std::int64_t i = 0; i < size; ++i) {
                longer.push_back(start);
                longer.back().push_back(i);
            }
        }
        all = std::move(longer);
    }
    return all;
}

/// The devices of an element by the model, in mesh order.
std::vector<DeviceId> modelDevices(const std::vector<std::int64_t>& element, const Shape& shape, const TensorSharding& sharding,
    const Mesh& mesh, const std::vector<std::vector<std::int64_t>>& coordinates)
{
    std::vector<DeviceId> devices;
    const auto order = mesh.deviceOrder();
    for (std::size_t position = 0; position < coordinates.size(); ++position) {
        if (holds(coordinates[position], element, shape, sharding, mesh))
            devices.push_back(order[position]);
    }
    return devices;
}

/// The devices of an element by a layout.
std::vector<DeviceId> layoutDevices(const std::vector<std::int64_t>& element, const Layout& layout)
{
    std::vector<DeviceId> devices;
    for (const Shard& shard : layout.shards) {
        bool inside = true;
        for (std::size_t dim = 0; dim < element.size(); ++dim)
            inside = inside && shard.box[dim].start <= element[dim] && element[dim] < shard.box[dim].stop;
        if (inside)
            devices.insert(devices.end(), shard.devices.begin(), shard.devices.end());
    }
    return devices;
}

const RandomLimits kLimits{
    .parts = true, .open = false, .unreduced = true, .replicated = true, .sizesOfOne = true, .ownOrder = true, .twelves = true};

Shape smallShape(Random& random, std::size_t rank)
{
    Shape shape;
    for (std::size_t dim = 0; dim < rank; ++dim)
        shape.push_back(pick(random, 0, rank > 2 ? 6 : 13));
    return shape;
}

QByteArray context(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh)
{
    return text(fmt::format("[{}] {} on {}", fmt::join(shape, ","), shardyText(sharding, mesh), mesh.text())).toUtf8();
}

} // namespace

void TestLayoutModel::elements_data()
{
    tests::addSeeds({1, 2});
}

/// Any rank, parts of axes, sizes that do not divide (and empty ones), orders of devices.
void TestLayoutModel::elements()
{
    QFETCH(quint64, seed);
    Random random(seed);
    for (int i = 0; i < 250; ++i) {
        const Mesh mesh = randomMesh(random, kLimits);
        const auto rank = static_cast<std::size_t>(pick(random, 0, 4));
        const TensorSharding sharding = randomSharding(random, rank, mesh, kLimits);
        const Shape shape = smallShape(random, rank);
        const Layout layout = layoutOf(shape, sharding, mesh);
        const auto coordinates = coordinatesOf(mesh);
        for (const auto& element : elementsOf(shape))
            QVERIFY2(layoutDevices(element, layout) == modelDevices(element, shape, sharding, mesh, coordinates),
                context(shape, sharding, mesh));
        std::size_t holders = 0;
        for (const Shard& shard : layout.shards)
            holders += shard.devices.size();
        QCOMPARE(static_cast<std::int64_t>(holders), mesh.deviceCount()); // those without elements too
    }
}

void TestLayoutModel::tiles_data()
{
    tests::addSeeds({2, 3});
}

/// XLA's tiles of a sharding put the same elements on every device.
void TestLayoutModel::tiles()
{
    QFETCH(quint64, seed);
    Random random(seed);
    for (int i = 0; i < 250; ++i) {
        const Mesh mesh = randomMesh(random, kLimits);
        const auto rank = static_cast<std::size_t>(pick(random, 1, 3));
        const TensorSharding sharding = randomSharding(random, rank, mesh, kLimits);
        const Shape shape = smallShape(random, rank);
        const auto layout = tileLayout(shape, valueOf(parseTileSharding(tileText(toTiles(sharding, mesh)))), mesh.deviceOrder());
        QVERIFY2(layout, described(layout).toUtf8());
        const auto coordinates = coordinatesOf(mesh);
        for (const auto& element : elementsOf(shape)) {
            std::vector<DeviceId> devices = layoutDevices(element, *layout);
            std::vector<DeviceId> expected = modelDevices(element, shape, sharding, mesh, coordinates);
            std::sort(devices.begin(), devices.end());
            std::sort(expected.begin(), expected.end());
            QVERIFY2(devices == expected, context(shape, sharding, mesh));
        }
    }
}

void TestLayoutModel::partialSums_data()
{
    tests::addSeeds({3, 4});
}

/// The devices whose partial values add up to a whole hold the same elements, differ along the unreduced axes alone, and there is one such group for each
/// setting of the others.
void TestLayoutModel::partialSums()
{
    QFETCH(quint64, seed);
    Random random(seed);
    int partial = 0;
    for (int i = 0; i < 400; ++i) {
        const Mesh mesh = randomMesh(random, kLimits);
        const TensorSharding sharding = randomSharding(random, 2, mesh, kLimits);
        if (sharding.unreduced.empty())
            continue;
        ++partial;
        const Shape shape = smallShape(random, 2);
        const auto coordinates = coordinatesOf(mesh);
        std::set<std::int64_t> seen;
        for (const auto& group : deviceGroups(sharding.unreduced, mesh)) {
            QCOMPARE(static_cast<std::int64_t>(group.size()), shardCount(sharding.unreduced));
            for (const std::int64_t position : group) {
                QVERIFY(seen.insert(position).second);
                QCOMPARE(shardBox(shape, sharding, mesh, position), shardBox(shape, sharding, mesh, group.front()));
                for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
                    const bool isUnreduced = std::any_of(sharding.unreduced.begin(), sharding.unreduced.end(),
                        [&](const AxisRef& part) { return static_cast<std::size_t>(part.axis) == axis; });
                    QVERIFY(isUnreduced
                        || coordinates[static_cast<std::size_t>(position)][axis]
                            == coordinates[static_cast<std::size_t>(group.front())][axis]);
                }
            }
        }
        QCOMPARE(static_cast<std::int64_t>(seen.size()), mesh.deviceCount());
    }
    QVERIFY(partial > 50);
}

void TestLayoutModel::equivalence_data()
{
    tests::addSeeds({4, 5});
}

/// Two shardings are equivalent as JAX has it when their tiles are: when every device holds the same of a shape that all tiles divide. Shardy's equality
/// implies that.
void TestLayoutModel::equivalence()
{
    QFETCH(quint64, seed);
    Random random(seed);
    const RandomLimits limits{.parts = true, .open = false, .unreduced = false, .replicated = true};
    int equal = 0;
    for (int i = 0; i < 1500; ++i) {
        const Mesh first = valueOf(parseMesh(chance(random, 50) ? "x=2,y=6" : "x=4,y=3"));
        const Mesh second = valueOf(parseMesh(chance(random, 50) ? "x=2,y=6" : "a=2,b=2,c=3"));
        const TensorSharding a = randomSharding(random, 2, first, limits);
        const TensorSharding b = randomSharding(random, 2, second, limits);
        const Shape shape = dividedBy(random, a, b);
        const auto ofFirst = coordinatesOf(first);
        const auto ofSecond = coordinatesOf(second);
        bool same = shardCount(a.dims[0].axes) == shardCount(b.dims[0].axes)
            && shardCount(a.dims[1].axes) == shardCount(b.dims[1].axes);
        for (const auto& element : elementsOf(shape))
            same = same && modelDevices(element, shape, a, first, ofFirst) == modelDevices(element, shape, b, second, ofSecond);
        const QByteArray both = context(shape, a, first) + " and " + context(shape, b, second);
        QVERIFY2(equivalent(shape, a, first, b, second) == same, both);
        QVERIFY2(samePlacement(toTiles(a, first), toTiles(b, second)) == same, both);
        QVERIFY2(!sameSharding(a, first, b, second) || same, both);
        equal += same ? 1 : 0;
    }
    QVERIFY2(equal > 10 && equal < 1400, QByteArray::number(equal));
}

MESHWRIGHT_TEST(TestLayoutModel)

} // namespace tst_layout_model

#include "tst_layout_model.moc"
