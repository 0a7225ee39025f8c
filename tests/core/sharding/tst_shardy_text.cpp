// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/shardy_text.h"

#include "tests/random_shardings.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_shardy_text {

using namespace meshwright;
using namespace meshwright::tests;

class TestShardyText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void readingAndWriting_data();
    void readingAndWriting();
    void otherSpellings();
    void problems_data();
    void problems();
    void column();
    void ranks();
    void builtByHand();
    void randomRoundTrips_data();
    void randomRoundTrips();
    void namedForm_data();
    void namedForm();
    void namedFormProblems_data();
    void namedFormProblems();
};

void TestShardyText::readingAndWriting_data()
{
    QTest::addColumn<QString>("written");
    for (const char* written : {"[]", "[{}]", "[{?}]", "[{}, {}]", "[{\"a\"}]", "[{\"a\", \"b\"}]", "[{\"b\", ?}, {}]",
             "[{\"b\":(1)2}]", "[{\"b\":(2)4, \"a\"}, {\"b\":(1)2, ?}p1]", "[{?}p3]", "[{\"a\"}p1, {}], replicated={\"b\"}",
             "[{}], unreduced={\"b\":(4)2}", "[{\"a\"}], replicated={\"b\":(1)2}, unreduced={\"b\":(2)4}", "[{\"one\"}]"})
        QTest::newRow(written) << QString(written);
}

void TestShardyText::readingAndWriting()
{
    QFETCH(QString, written);
    const Mesh mesh = meshOf("a=2,b=8,one=1");
    const auto sharding = parseShardy(written.toStdString(), mesh);
    QVERIFY2(sharding, described(sharding).toUtf8());
    QCOMPARE(text(shardyText(*sharding, mesh)), written);
}

void TestShardyText::otherSpellings()
{
    const Mesh mesh = meshOf("a=2,b=8");
    const auto expected = parseShardy("[{\"a\", ?}, {\"b\":(2)4}], unreduced={\"b\":(1)2}", mesh);
    QVERIFY(expected);
    for (const char* spelling :
        {"[{'a',?},{'b':(2)4}],unreduced={'b':(1)2}", " [ { a , ? } , { b : ( 2 ) 4 } ] , unreduced = { b:(1)2 } ",
            "[{\"a\", ?}p0, {\"b\":(2)4}], unreduced={\"b\":(1)2}, replicated={}"}) {
        const auto sharding = parseShardy(spelling, mesh);
        QVERIFY2(sharding, described(sharding).toUtf8());
        QCOMPARE(*sharding, *expected);
    }
}

void TestShardyText::problems_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("ids");
    QTest::addColumn<QString>("says");

    const auto row
        = [](const char* written, const char* ids, const char* says) { QTest::newRow(written) << written << ids << says; };
    row("", "MW1140", "expected \"[\", found the end");
    row("[", "MW1140", "expected \"{\", found the end");
    row("[{]", "MW1140", "the name of an axis");
    row("[{\"a\"}", "MW1140", "\",\" or \"]\"");
    row("[{\"a\" \"b\"}]", "MW1140", "\",\" or \"}\"");
    row("[{?, \"a\"}]", "MW1140", "expected \"}\"");
    row("[{\"a\":2}]", "MW1140", "expected \"(\"");
    row("[{\"b\":(x)2}]", "MW1140", "the size before the part");
    row("[{\"b\":(1)}]", "MW1140", "the size of the part");
    row("[{\"a\"}px]", "MW1140", "a priority");
    row("[{}] trailing", "MW1140", "the end of the sharding");
    row("[{}], other={\"a\"}", "MW1140", "replicated={..} or unreduced={..}");
    row("[{}], unreduced={\"a\"}, unreduced={\"b\"}", "MW1140", "replicated={..} or unreduced={..}");
    row("[{\"c\"}]", "MW1102", "unknown axis name: \"c\"");
    row("[{\"c\"}, {\"d\"}]", "MW1102 MW1102", "unknown axis name: \"d\"");
    row("[{\"a\"}, {\"a\"}]", "MW1103", "duplicate axis ref: \"a\"");
    row("[{\"b\":(0)2}]", "MW1141", "pre-size must be at least 1: \"b\":(0)2");
    row("[{\"b\":(1)1}]", "MW1141", "sub-axis sizes must be greater than 1: \"b\":(1)1");
    row("[{\"b\":(2)3}]", "MW1141", "sub-axis next pre-size 6 doesn't divide the size of the full axis 8: \"b\":(2)3");
    row("[{\"b\":(2)2, \"b\":(4)4}]", "MW1141 MW1144", "two consecutive sub-axes can be merged: \"b\":(2)2, \"b\":(4)4");
    row("[{\"c\":(1)2, \"c\":(2)2}]", "MW1102 MW1102", "unknown axis name");
    row("[{\"b\":(9223372036854775807)9, \"b\":(9223372036854775807)9}]", "MW1141 MW1141", "doesn't divide");
    row("[{\"b\":(1)8}]", "MW1141", "sub-axis size is equal to the full axis size: \"b\":(1)8");
    row("[{\"b\":(9223372036854775807)9}]", "MW1141", "doesn't divide");
    row("[{\"b\"}, {\"b\":(2)2}]", "MW1142", "both sub-axis and full-axis are used for axis name: \"b\"");
    row("[{\"b\":(1)4}, {\"b\":(2)4}]", "MW1142", "overlapping sub-axes: \"b\":(1)4, \"b\":(2)4");
    row("[{\"n\":(1)4}, {\"n\":(6)2}]", "MW1142", "cannot coexist");
    row("[{}], replicated={\"b\", \"a\"}", "MW1143", "replicated axes are not ordered w.r.t. mesh");
    row("[{}], unreduced={\"b\":(4)2, \"b\":(1)2}", "MW1143", "unreduced axes are not ordered w.r.t. mesh");
    row("[{\"b\":(1)2, \"b\":(2)2}]", "MW1144", "two consecutive sub-axes can be merged: \"b\":(1)2, \"b\":(2)2");
    row("[{}p1]", "MW1147", "dim 0 is empty and closed but has a priority (1)");
}

void TestShardyText::problems()
{
    QFETCH(QString, written);
    QFETCH(QString, ids);
    QFETCH(QString, says);
    const auto sharding = parseShardy(written.toStdString(), meshOf("a=2,b=8,n=12"));
    QCOMPARE(idsOf(sharding), ids);
    QVERIFY2(described(sharding).contains(says), described(sharding).toUtf8());
}

void TestShardyText::column()
{
    const auto sharding = parseShardy("[{\"a\"}, {\"c\"}]", meshOf("a=2"));
    QVERIFY(!sharding);
    QCOMPARE(sharding.error().front().place.column, 10);
    QVERIFY(text(sharding.error().front().fix).contains("a"));
}

void TestShardyText::ranks()
{
    const Mesh mesh = meshOf("a=2");
    const auto sharding = parseShardy("[{}, {\"a\"}]", mesh);
    QVERIFY(sharding);
    QVERIFY(shardingProblems(*sharding, mesh, 2).empty());
    const Problems problems = shardingProblems(*sharding, mesh, 1);
    QCOMPARE(problems.size(), std::size_t{1});
    QCOMPARE(text(problems.front().id), QString("MW1145"));
    QCOMPARE(text(problems.front().message), QString("sharding doesn't match tensor rank: 2 != 1"));

    const Mesh maximal = valueOf(Mesh::create({}, {3}));
    QVERIFY(parseShardy("[]", maximal));
    QCOMPARE(idsOf(parseShardy("[{}, {}]", maximal)), QString("MW1146"));
    QCOMPARE(idsOf(parseShardy("[], replicated={\"a\"}", maximal)), QString("MW1146"));
    // A mesh without axes that is not a device goes with every other.
    const auto open = parseShardy("[{}, {?}]", maximal, false);
    QVERIFY2(open, described(open).toUtf8());
    QVERIFY(!open->dims[0].open && open->dims[1].open);
    QCOMPARE(idsOf(parseShardy("[{\"a\"}]", maximal, false)), QString("MW1102"));
    TensorSharding odd;
    odd.replicated = {{0, 1, 2}};
    QCOMPARE(shardingProblems(odd, maximal).size(), std::size_t{1});
}

void TestShardyText::builtByHand()
{
    const Mesh mesh = meshOf("a=2,b=8");
    TensorSharding sharding = TensorSharding::replicatedOf(1);
    sharding.dims[0].axes = {{1, 3, 2}};
    const Problems problems = shardingProblems(sharding, mesh);
    QCOMPARE(problems.size(), std::size_t{1});
    QCOMPARE(text(problems.front().id), QString("MW1141"));
}

void TestShardyText::randomRoundTrips_data()
{
    tests::addSeeds({1, 2});
}

void TestShardyText::randomRoundTrips()
{
    QFETCH(quint64, seed);
    Random random(seed);
    for (int i = 0; i < 2000; ++i) {
        const Mesh mesh = randomMesh(random, {});
        const TensorSharding sharding = randomSharding(random, static_cast<std::size_t>(pick(random, 0, 4)), mesh, {});
        const std::string written = shardyText(sharding, mesh);
        QVERIFY2(shardingProblems(sharding, mesh, sharding.dims.size()).empty(), written.c_str());
        const auto read = parseShardy(written, mesh);
        QVERIFY2(read, described(read).toUtf8());
        QVERIFY2(*read == sharding, written.c_str());
        const auto named = parseXlaNamed(xlaNamedText(sharding, mesh));
        QVERIFY2(named, described(named).toUtf8());
        QVERIFY2(named->sharding == sharding && named->mesh == mesh, written.c_str());
    }
}

void TestShardyText::namedForm_data()
{
    QTest::addColumn<QString>("written");
    for (const char* written : {"{mesh['a'=2,'b'=4], [{'a'}, {'b':(2)2, ?}], unreduced={'b':(1)2}}",
             "{mesh['a'=2,'b'=2], device_ids=(0,2,1,3), [{'a'}, {}]}", "{maximal_mesh[device_id=3], []}", "{mesh['a'=2], []}"})
        QTest::newRow(written) << QString(written);
}

void TestShardyText::namedForm()
{
    QFETCH(QString, written);
    const auto named = parseXlaNamed(written.toStdString());
    QVERIFY2(named, described(named).toUtf8());
    QCOMPARE(text(xlaNamedText(named->sharding, named->mesh)), written);
    // Without quotes, and with the order as an iota.
    const auto iota = parseXlaNamed("{mesh[a=2,b=2], device_ids=([2,2]T(1,0)), [{a}, {}]}");
    QVERIFY2(iota, described(iota).toUtf8());
    QCOMPARE(iota->mesh, meshOf("a=2,b=2", {0, 2, 1, 3}));
}

void TestShardyText::namedFormProblems_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("ids");
    QTest::addColumn<int>("column");
    QTest::newRow("empty") << ""
                           << "MW1140" << 1;
    QTest::newRow("no mesh") << "{[{}]}"
                             << "MW1140" << 2;
    QTest::newRow("no size") << "{mesh['a'], [{}]}"
                             << "MW1140" << 10;
    QTest::newRow("size") << "{mesh['a'=x], [{}]}"
                          << "MW1140" << 11;
    QTest::newRow("separator") << "{mesh['a'=2;'b'=2], [{}]}"
                               << "MW1140" << 12;
    QTest::newRow("device") << "{maximal_mesh[device_id=x], []}"
                            << "MW1140" << 25;
    QTest::newRow("no sharding") << "{mesh['a'=2]}"
                                 << "MW1140" << 13;
    QTest::newRow("ids not closed") << "{mesh['a'=2], device_ids=(0,1"
                                    << "MW1140" << 27;
    QTest::newRow("ids") << "{mesh['a'=2], device_ids=(0,x), [{}]}"
                         << "MW1118" << 0;
    QTest::newRow("ids as iota") << "{mesh['a'=2], device_ids=([2]T(1)), [{}]}"
                                 << "MW1151" << 34;
    QTest::newRow("axis") << "{mesh['a'=2], [{'b'}]}"
                          << "MW1102" << 17;
    QTest::newRow("mesh") << "{mesh['a'=2,'a'=2], [{}]}"
                          << "MW1111" << 0;
}

void TestShardyText::namedFormProblems()
{
    QFETCH(QString, written);
    QFETCH(QString, ids);
    QFETCH(int, column);
    const auto named = parseXlaNamed(written.toStdString());
    QCOMPARE(idsOf(named), ids);
    QCOMPARE(named.error().front().place.column, column);
}

MESHWRIGHT_TEST(TestShardyText)

} // namespace tst_shardy_text

#include "tst_shardy_text.moc"
