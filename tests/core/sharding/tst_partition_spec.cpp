// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/partition_spec.h"

#include "tests/test_class.h"
#include "tests/values.h"

#include <limits>

namespace tst_partition_spec {

using namespace meshwright;
using namespace meshwright::tests;

class TestPartitionSpec : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void printing_data();
    void printing();
    void reading_data();
    void reading();
    void readingErrors_data();
    void readingErrors();
    void canonical();
    void shardShape_data();
    void shardShape();
    void shardShapeErrors_data();
    void shardShapeErrors();
    void allProblemsAtOnce();
    void advice();
};

void TestPartitionSpec::printing_data()
{
    QTest::addColumn<PartitionSpec>("spec");
    QTest::addColumn<std::string>("expected");

    QTest::newRow("empty") << PartitionSpec{} << std::string("P()");
    QTest::newRow("one entry") << PartitionSpec{{{"data"}}} << std::string("P('data',)");
    QTest::newRow("None last") << PartitionSpec{{{"data"}, {}}} << std::string("P('data', None)");
    QTest::newRow("tuple") << PartitionSpec{{{"a", "b"}, {"c"}}} << std::string("P(('a', 'b'), 'c')");
}

void TestPartitionSpec::printing()
{
    QFETCH(PartitionSpec, spec);
    QFETCH(std::string, expected);
    QCOMPARE(specText(spec), expected);
    QCOMPARE(valueOf(parseSpec(expected)), spec); // and back
}

void TestPartitionSpec::reading_data()
{
    QTest::addColumn<std::string>("input");
    QTest::addColumn<PartitionSpec>("expected");

    const PartitionSpec dataNone{{{"data"}, {}}};
    QTest::newRow("long name") << std::string("PartitionSpec(\"data\", None)") << dataNone;
    QTest::newRow("qualified name") << std::string("jax.sharding.PartitionSpec('data', None)") << dataNone;
    QTest::newRow("no name") << std::string("('data', None)") << dataNone;
    QTest::newRow("JSON") << std::string("[\"data\", null]") << dataNone;
    QTest::newRow("bare words") << std::string("P(data, ~)") << dataNone;
    QTest::newRow("comma at the end") << std::string("P('data', None,)") << dataNone;
    QTest::newRow("spaces") << std::string("  P ( 'data' ,None )  ") << dataNone;
    QTest::newRow("tuple with comma") << std::string("P(('a', 'b',),)") << PartitionSpec{{{"a", "b"}}};
    QTest::newRow("list in list") << std::string("[[a, b], c]") << PartitionSpec{{{"a", "b"}, {"c"}}};
    QTest::newRow("empty tuple is None") << std::string("P((), 'a')") << PartitionSpec{{{}, {"a"}}};
    QTest::newRow("axis named P") << std::string("P('P')") << PartitionSpec{{{"P"}}};
}

void TestPartitionSpec::reading()
{
    QFETCH(std::string, input);
    QFETCH(PartitionSpec, expected);
    const auto spec = parseSpec(input);
    QVERIFY2(spec, spec ? "" : describe(spec.error()).c_str());
    QCOMPARE(*spec, expected);
}

void TestPartitionSpec::readingErrors_data()
{
    QTest::addColumn<std::string>("input");
    QTest::addColumn<int>("column");
    QTest::addColumn<std::string>("ending");

    QTest::newRow("nothing") << std::string() << 1 << std::string("expected \"P(\", \"(\" or \"[\", found the end");
    QTest::newRow("no bracket") << std::string("P data") << 3 << std::string("expected \"P(\", \"(\" or \"[\", found \"data\"");
    QTest::newRow("not closed") << std::string("P('data'") << 9 << std::string("expected \",\" or \")\", found the end");
    QTest::newRow("wrong bracket") << std::string("P('data']") << 9 << std::string("expected \",\" or \")\", found \"]\"");
    QTest::newRow("quote not closed") << std::string("P('data)") << 3
                                      << std::string("expected a closing quote, found \"'data)\"");
    QTest::newRow("empty quotes") << std::string("P('')") << 3
                                  << std::string("expected an axis name between the quotes, found \"'')\"");
    QTest::newRow("comma missing") << std::string("P('a' 'b')") << 7 << std::string("expected \",\" or \")\", found \"'b')\"");
    QTest::newRow("comma first") << std::string("P(,)") << 3 << std::string("expected an axis name or None, found \",)\"");
    QTest::newRow("nested tuple") << std::string("P(('a', ('b',)))") << 9
                                  << std::string("expected an axis name or None, found \"('b',)))\"");
    QTest::newRow("text after") << std::string("P('a') x") << 8 << std::string("expected the end of the spec, found \"x\"");
}

void TestPartitionSpec::readingErrors()
{
    QFETCH(std::string, input);
    QFETCH(int, column);
    QFETCH(std::string, ending);
    const auto spec = parseSpec(input);
    QCOMPARE(idsOf(spec), QString("MW1105"));
    const Problem& problem = spec.error().front();
    QCOMPARE(problem.message, "\"" + input + "\" is not a PartitionSpec: " + ending);
    QCOMPARE(problem.place.column, column);
    QVERIFY(!problem.fix.empty());
}

void TestPartitionSpec::canonical()
{
    QCOMPARE((PartitionSpec{{{"data"}, {}, {}}}.canonical()), (PartitionSpec{{{"data"}}}));
    QCOMPARE((PartitionSpec{{{}, {"data"}}}.canonical()), (PartitionSpec{{{}, {"data"}}}));
    QCOMPARE((PartitionSpec{{{}}}.canonical()), PartitionSpec{});
}

void TestPartitionSpec::shardShape_data()
{
    QTest::addColumn<Shape>("global");
    QTest::addColumn<std::string>("spec");
    QTest::addColumn<std::string>("mesh");
    QTest::addColumn<Shape>("expected"); // by hand
    QTest::addColumn<bool>("uneven");
    const auto row = [](const char* name, const Shape& global, const char* spec, const char* mesh, const Shape& expected,
                         bool uneven = false) {
        QTest::newRow(name) << global << std::string(spec) << std::string(mesh) << expected << uneven;
    };

    const char* dataModel = "data=4,model=2";
    row("scalar", {}, "P()", dataModel, {});
    row("replicated", {8, 6}, "P()", dataModel, {8, 6});
    row("P(data)", {8, 6}, "P('data')", dataModel, {2, 6});
    row("P(None, model)", {8, 6}, "P(None, 'model')", dataModel, {8, 3});
    row("P((data, model))", {8, 6}, "P(('data', 'model'))", dataModel, {1, 6});
    row("empty dim", {0, 6}, "P('data')", dataModel, {0, 6});
    row("batch over 8", {128, 512}, "P('data')", "data=8", {16, 512});
    row("features over 8", {128, 512}, "P(None, 'data')", "data=8", {128, 64});
    row("both", {128, 512}, "P('data', 'model')", dataModel, {32, 256});
    row("weights over model", {512, 512}, "P(None, 'model')", "model=8", {512, 64});
    row("axis of size 1", {3, 5}, "P('x', 'y')", "x=1,y=1", {3, 5});
    row("rounded up", {11, 6}, "P('data')", dataModel, {3, 6}, true);
    row("fewer elements than devices", {3, 6}, "P('data')", dataModel, {1, 6}, true);
}

void TestPartitionSpec::shardShape()
{
    QFETCH(Shape, global);
    QFETCH(std::string, spec);
    QFETCH(std::string, mesh);
    QFETCH(Shape, expected);
    QFETCH(bool, uneven);
    const auto parsed = valueOf(parseSpec(spec));
    const auto local = meshwright::shardShape(global, parsed, meshOf(mesh), uneven ? Uneven::Pad : Uneven::Refuse);
    QVERIFY2(local, local ? "" : describe(local.error()).c_str());
    QCOMPARE(*local, expected);
    QCOMPARE(localShape(global, shardingOf(spec, global.size(), meshOf(mesh))), expected); // the other way to compute it
}

void TestPartitionSpec::shardShapeErrors_data()
{
    QTest::addColumn<Shape>("global");
    QTest::addColumn<std::string>("spec");
    QTest::addColumn<std::string>("expected"); // all that the user reads

    QTest::newRow("rank") << Shape{8} << std::string("P(None, 'model')")
                          << std::string("error MW1101: the spec P(None, 'model') has 2 entries for an array of rank 1\n"
                                         "  rule: at most one entry for each dimension\n  fix: give at most 1 entry");
    QTest::newRow("unknown axis, near") << Shape{8, 6} << std::string("P('dat')")
                                        << std::string("error MW1102: unknown axis name: \"dat\"\n  fix: did you mean \"data\"?");
    QTest::newRow("unknown axis, far") << Shape{8, 6} << std::string("P('expert')")
                                       << std::string("error MW1102: unknown axis name: \"expert\"\n  fix: one of: data, model");
    QTest::newRow("axis twice") << Shape{8, 8} << std::string("P('data', 'data')")
                                << std::string("error MW1103: axis \"data\" is used twice in the spec P('data', 'data')\n"
                                               "  fix: use each axis for one dimension only");
    QTest::newRow("axis twice in a tuple") << Shape{16, 8} << std::string("P(('data', 'data'))")
                                           << std::string(
                                                  "error MW1103: axis \"data\" is used twice in the spec P(('data', 'data'),)\n"
                                                  "  fix: use each axis for one dimension only");
    QTest::newRow("not divisible") << Shape{10, 6} << std::string("P('data')")
                                   << std::string("error MW1104: dim 0 of size 10 is not divisible by 4\n"
                                                  "  rule: the axes (data) cut the dimension into 4 equal pieces\n"
                                                  "  fix: make it 8 or 12, or leave the dimension whole");
    QTest::newRow("smaller than the axes") << Shape{2, 3} << std::string("P(None, ('data', 'model'))")
                                           << std::string("error MW1104: dim 1 of size 3 is not divisible by 8\n"
                                                          "  rule: the axes (data, model) cut the dimension into 8 equal pieces\n"
                                                          "  fix: make it 8, or leave the dimension whole");
}

void TestPartitionSpec::shardShapeErrors()
{
    QFETCH(Shape, global);
    QFETCH(std::string, spec);
    QFETCH(std::string, expected);
    const auto local = meshwright::shardShape(global, valueOf(parseSpec(spec)), meshOf("data=4,model=2"), Uneven::Refuse);
    QCOMPARE(described(local), text(expected));
}

void TestPartitionSpec::allProblemsAtOnce()
{
    const auto local = meshwright::shardShape(
        {10, 7}, valueOf(parseSpec("P('data', ('model', 'model'), 'x')")), meshOf("data=4,model=2"), Uneven::Refuse);
    QCOMPARE(idsOf(local), QString("MW1101 MW1104 MW1103 MW1104 MW1102"));
    // Padding forgives only what does not divide.
    const auto padded = meshwright::shardShape(
        {10, 7}, valueOf(parseSpec("P('data', ('model', 'model'), 'x')")), meshOf("data=4,model=2"), Uneven::Pad);
    QCOMPARE(idsOf(padded), QString("MW1101 MW1103 MW1102"));
}

void TestPartitionSpec::advice()
{
    QCOMPARE(divisibleSizesText(10, 4), std::string("8 or 12"));
    QCOMPARE(divisibleSizesText(3, 4), std::string("4"));
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(); // nothing larger can be said
    QCOMPARE(divisibleSizesText(kMost, 2), std::to_string(kMost - 1));
    QCOMPARE(shapeText({}), std::string("scalar"));
    QCOMPARE(shapeText({784, 8192}), std::string("784x8192"));
    QCOMPARE(elementCount({}), std::int64_t{1});
    QCOMPARE(elementCount({3, 4}), std::int64_t{12});
}

MESHWRIGHT_TEST(TestPartitionSpec)

} // namespace tst_partition_spec

#include "tst_partition_spec.moc"
