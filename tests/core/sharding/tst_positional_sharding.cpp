// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/positional_sharding.h"

#include "tests/positional_layout.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_positional_sharding {

using namespace meshwright;
using namespace meshwright::tests;
using Devices = std::vector<DeviceId>;

class TestPositionalSharding : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void reshaping();
    void replicating();
    void transposing();
    void printing();
    void printingWraps();
    void layouts();
    void ranks();
    void agreesWithNamedSharding();
    void problems_data();
    void problems();
};

namespace {

const Devices kSnake = {0, 1, 2, 3, 6, 7, 4, 5};

PositionalSharding snake()
{
    return valueOf(PositionalSharding::create(kSnake));
}

PositionalSharding snake(const Shape& shape)
{
    return valueOf(snake().reshape(shape));
}

} // namespace

void TestPositionalSharding::reshaping()
{
    QCOMPARE(snake().shape(), Shape{8});
    QCOMPARE(snake({4, 2}).devicesAt(4), Devices{6});
    QCOMPARE(snake({-1, 2}).shape(), (Shape{4, 2}));
    QCOMPARE(snake({2, -1, 2}).shape(), (Shape{2, 2, 2}));
    QCOMPARE(snake({8, -1}).shape(), (Shape{8, 1}));
    QCOMPARE(snake({4, 2}).devices(), kSnake);
}

void TestPositionalSharding::replicating()
{
    const auto rows = valueOf(snake({4, 2}).replicate(1));
    QCOMPARE(rows.shape(), (Shape{4, 1}));
    QCOMPARE(rows.devicesAt(2), (Devices{6, 7}));
    const auto columns = valueOf(snake({4, 2}).replicate(-2));
    QCOMPARE(columns.shape(), (Shape{1, 2}));
    QCOMPARE(columns.devicesAt(1), (Devices{1, 3, 5, 7}));
    QCOMPARE(valueOf(snake({4, 2}).replicate(0, false)).shape(), Shape{2});
    QVERIFY(!columns.isFullyReplicated());
    const auto all = snake({4, 2}).replicateAll();
    QCOMPARE(all.shape(), (Shape{1, 1}));
    QCOMPARE(all.devicesAt(0), (Devices{0, 1, 2, 3, 4, 5, 6, 7}));
    QVERIFY(all.isFullyReplicated());
    QCOMPARE(snake({4, 2}).replicateAll(false).shape(), Shape{});
    QCOMPARE(valueOf(columns.replicate(1)), all); // one axis after the other is the same as all at once
}

void TestPositionalSharding::transposing()
{
    const auto transposed = snake({4, 2}).transposed();
    QCOMPARE(transposed.shape(), (Shape{2, 4}));
    QCOMPARE(transposed.devicesAt(2), Devices{6}); // (0, 2) was (2, 0)
    QCOMPARE(transposed.transposed(), snake({4, 2}));
    const std::vector<std::int64_t> rotate = {2, 0, 1};
    const auto rotated = valueOf(valueOf(PositionalSharding::create({0, 1, 2, 3, 4, 5})).reshape({1, 2, 3})->transpose(rotate));
    QCOMPARE(rotated.shape(), (Shape{3, 1, 2}));
    QCOMPARE(rotated.devicesAt(3), Devices{4}); // (1, 0, 1) was (0, 1, 1)
}

void TestPositionalSharding::printing()
{
    QCOMPARE(snake({4, 2}).text(),
        std::string("PositionalSharding([[{TPU 0} {TPU 1}]\n"
                    "                    [{TPU 2} {TPU 3}]\n"
                    "                    [{TPU 6} {TPU 7}]\n"
                    "                    [{TPU 4} {TPU 5}]], shape=(4, 2))"));
    QCOMPARE(valueOf(snake({4, 2}).replicate(0)).text("CPU"),
        std::string("PositionalSharding([[{CPU 0, 2, 4, 6} {CPU 1, 3, 5, 7}]], shape=(1, 2))"));
    QCOMPARE(snake().text(),
        std::string("PositionalSharding([{TPU 0} {TPU 1} {TPU 2} {TPU 3} {TPU 6} {TPU 7} {TPU 4} {TPU 5}], shape=(8,))"));
    QCOMPARE(valueOf(PositionalSharding::create({0})).replicateAll(false).text(),
        std::string("PositionalSharding({TPU 0}, shape=())"));
    // A blank line between the planes, as NumPy has it.
    QCOMPARE(snake({2, 2, 2}).text(),
        std::string("PositionalSharding([[[{TPU 0} {TPU 1}]\n                     [{TPU 2} {TPU 3}]]\n\n"
                    "                    [[{TPU 6} {TPU 7}]\n                     [{TPU 4} {TPU 5}]]], shape=(2, 2, 2))"));
}

void TestPositionalSharding::printingWraps()
{
    Devices devices(20);
    std::iota(devices.begin(), devices.end(), DeviceId{0});
    const QStringList lines = text(valueOf(PositionalSharding::create(devices)).text()).split('\n');
    QVERIFY(lines.size() > 1);
    for (const QString& line : lines.mid(0, lines.size() - 1)) {
        QVERIFY2(line.size() <= 100, qPrintable(line));
        QVERIFY(line.endsWith('}'));
    }
    QVERIFY(lines[1].startsWith("                    {TPU "));
}

void TestPositionalSharding::layouts()
{
    const auto layout = valueOf(positionalLayout(snake({4, 2}), {8, 4}));
    QCOMPARE(layout.shardShape, (Shape{2, 2}));
    QCOMPARE(layout.shards[5].box, (IndexBox{{4, 6}, {2, 4}}));
    QCOMPARE(layout.shards[5].devices, Devices{7});
    const auto replicated = valueOf(positionalLayout(valueOf(snake({4, 2}).replicate(0)), {8, 4}));
    QCOMPARE(replicated.shards[0].devices, (Devices{0, 2, 6, 4})); // in the order they were given
    QVERIFY(valueOf(positionalLayout(snake().replicateAll(), {3})).fullyReplicated);
}

void TestPositionalSharding::ranks()
{
    QVERIFY(positionalLayout(snake({1, 8}), {16}).has_value()); // leading 1: the array lacks that dimension
    QVERIFY(!positionalLayout(snake({8, 1}), {16}));
    QVERIFY(!positionalLayout(snake({8}), {16, 2}));
    QVERIFY(positionalLayout(snake().replicateAll(), {3, 5, 7}).has_value()); // replicated fits every rank
    QVERIFY(positionalLayout(snake().replicateAll(), {}).has_value());
}

void TestPositionalSharding::agreesWithNamedSharding()
{
    const Mesh mesh = meshOf("a=4,b=2", kSnake);
    const auto same = [&](const PositionalSharding& positional, const char* spec) {
        const Layout a = valueOf(positionalLayout(positional, {8, 16}));
        const Layout b = layoutOf({8, 16}, shardingOf(spec, 2, mesh), mesh);
        return a.shards == b.shards && a.shardShape == b.shardShape && a.fullyReplicated == b.fullyReplicated;
    };
    QVERIFY(same(snake({4, 2}), "P('a', 'b')"));
    QVERIFY(same(snake({4, 2}).transposed(), "P('b', 'a')"));
    QVERIFY(same(valueOf(snake({4, 2}).replicate(1)), "P('a')"));
    QVERIFY(same(valueOf(snake({4, 2}).replicate(0)), "P(None, 'b')"));
    QVERIFY(same(snake({8, 1}), "P(('a', 'b'))"));
    QVERIFY(same(snake().replicateAll(), "P()"));
}

void TestPositionalSharding::problems_data()
{
    QTest::addColumn<QString>("found");
    QTest::addColumn<QString>("expected");

    QTest::newRow("no devices") << described(PositionalSharding::create({}))
                                << "error MW1130: a positional sharding needs at least one device\n  fix: list the devices";
    QTest::newRow("device twice") << described(PositionalSharding::create({0, 1, 0}))
                                  << "error MW1130: the sharding names device 0 twice\n  fix: name each device once";
    QTest::newRow("device negative") << described(PositionalSharding::create({-1}))
                                     << "error MW1130: the sharding names device -1\n  fix: device ids begin at 0";
    QTest::newRow("reshape") << described(snake().reshape({3, 2}))
                             << "error MW1131: a sharding of shape (8,) has 8 cells, which cannot be reshaped to (3, 2)\n  fix: "
                                "give sizes whose product is 8";
    QTest::newRow("reshape to the rest") << described(snake().reshape({3, -1}))
                                         << "error MW1131: a sharding of shape (8,) has 8 cells, which cannot be reshaped to (3, "
                                            "-1)\n  fix: give sizes whose product is 8";
    QTest::newRow("two rests") << described(snake().reshape({-1, -1}))
                               << "error MW1131: a sharding of shape (8,) has 8 cells, which cannot be reshaped to (-1, -1)\n  "
                                  "fix: give sizes whose product is 8";
    QTest::newRow("replicate") << described(snake({4, 2}).replicate(
        2)) << "error MW1132: axis 2 is out of range for a sharding of rank 2 (shape (4, 2))\n  fix: give an axis from -2 to 1";
    const std::vector<std::int64_t> twice = {0, 0};
    QTest::newRow("transpose") << described(snake({4, 2}).transpose(twice))
                               << "error MW1132: (0, 0) is not a permutation of the 2 axes of a sharding of shape (4, 2)\n  fix: "
                                  "name every axis once, from 0";
}

void TestPositionalSharding::problems()
{
    QFETCH(QString, found);
    QFETCH(QString, expected);
    QCOMPARE(found, expected);
}

MESHWRIGHT_TEST(TestPositionalSharding)

} // namespace tst_positional_sharding

#include "tst_positional_sharding.moc"
