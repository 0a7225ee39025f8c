// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/factor_propagation.h"
#include "core/propagate/projection.h"
#include "tests/core/propagate/sharding_text.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <QTest>

#include <random>

namespace tst_projection {

using namespace meshwright;
using namespace meshwright::testing;

namespace {

Mesh meshOf(const QString& text)
{
    return valueOf(parseMesh(text.toStdString()));
}

QString text(const AxisRefs& axes, const Mesh& mesh)
{
    std::vector<std::string> texts;
    for (const AxisRef& axis : axes)
        texts.push_back(axisText(axis, mesh));
    std::string joined = join(texts, ", ");
    std::erase(joined, '"');
    return QString::fromStdString(joined);
}

OpShardingRule reshapeRule(const Shape& from, const Shape& to)
{
    return *shardingRule(OpKind::Reshape, ReshapeAttributes{to}, std::vector{TensorType{DType::F32, from}},
        std::vector{TensorType{DType::F32, to}});
}

} // namespace

class TestProjection : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void projects_data();
    void projects();
    void missing();
    void strided();
    void roundTrip_data();
    void roundTrip();
    void merge_data();
    void merge();
    void direction();
    void withoutOverlap_data();
    void withoutOverlap();
    void basicAcrossFactors();
    void aggressivePrefersTheLargerTensor();
};

void TestProjection::projects_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<Shape>("from");
    QTest::addColumn<Shape>("to");
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("expected"); // of each factor: axes, then ! overflow

    const Shape flat{8, 32};
    const Shape split{2, 4, 32};
    QTest::newRow("an axis is cut at the border") << "x=4" << flat << split << "[{x}, {}]"
                                                  << "x:(1)2 | x:(2)2 | ";
    QTest::newRow("co-prime: overflow") << "x=3" << flat << split << "[{x}, {}]"
                                        << " ! x |  | ";
    QTest::newRow("the minor-most takes the rest") << "x=16" << flat << split << "[{x}, {}]"
                                                   << "x:(1)2 | x:(2)8 | ";
    QTest::newRow("part of an axis fits, its rest overflows") << "x=6" << Shape{32} << Shape{8, 4} << "[{x}]"
                                                              << "x:(1)2 ! x:(2)3 | ";
    QTest::newRow("two axes") << "x=2,y=2" << flat << split << "[{y, x}, {}]"
                              << "y | x | ";
    QTest::newRow("size one") << "x=1,y=2" << flat << split << "[{x, y}, {}]"
                              << "x, y |  | ";
}

void TestProjection::projects()
{
    QFETCH(QString, mesh);
    QFETCH(Shape, from);
    QFETCH(Shape, to);
    QFETCH(QString, sharding);
    QFETCH(QString, expected);
    const Mesh m = meshOf(mesh);
    const OpShardingRule rule = reshapeRule(from, to);
    const auto projected = project(shardingOf(sharding.toStdString(), m), rule.operands.front(), rule, MissingSharding::Open);
    QStringList found;
    for (const auto& factor : projected.factors)
        found << text(factor->axes, m) + (factor->overflow.empty() ? "" : " ! " + text(factor->overflow, m));
    QCOMPARE(found.join(" | "), expected);
}

void TestProjection::missing()
{
    const OpShardingRule rule = reshapeRule({8}, {2, 4});
    QVERIFY(!project(std::nullopt, rule.operands.front(), rule, MissingSharding::Open).factors[0]->closed);
    QVERIFY(project(std::nullopt, rule.operands.front(), rule, MissingSharding::Closed).factors[1]->closed);
    const auto result = project(std::nullopt, rule.results.front(), rule, MissingSharding::Open);
    QVERIFY(result.factors[0]->minorMost && result.factors[1]->minorMost);
}

void TestProjection::strided()
{
    // 2x4 to 8, the 4 split by x: every other half of the 8 is not a sharding. So nothing of it is said.
    const Mesh mesh = meshOf("x=2");
    const OpShardingRule rule = reshapeRule({2, 4}, {8});
    const auto projected = project(shardingOf("[{}, {x}]", mesh), rule.operands.front(), rule, MissingSharding::Open);
    QCOMPARE(backProject(projected, rule.results.front(), rule, std::nullopt, 0), TensorSharding::openOf(1));
}

void TestProjection::roundTrip_data()
{
    tests::addSeeds({7, 8});
}

void TestProjection::roundTrip()
{
    const Mesh mesh = meshOf("a=2,b=3,c=4,d=6");
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    const std::vector<std::pair<Shape, Shape>> shapes
        = {{{24, 6}, {4, 6, 6}}, {{4, 6, 6}, {24, 6}}, {{12, 12}, {12, 12}}, {{144}, {3, 4, 12}}, {{6, 4}, {4, 6}}};
    for (int i = 0; i < 500; ++i) {
        const auto& [from, to] = shapes[random() % shapes.size()];
        const OpShardingRule rule = reshapeRule(from, to);
        TensorSharding sharding = TensorSharding::replicatedOf(from.size());
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
            const std::size_t where = random() % (from.size() + 2);
            const AxisRef whole = wholeAxis(mesh, axis);
            if (where < from.size())
                sharding.dims[where].axes.push_back(
                    random() % 3 == 0 && whole.size % 2 == 0 && whole.size > 2 ? AxisRef{whole.axis, 1, 2} : whole);
            else if (where == from.size())
                sharding.replicated.push_back(whole);
        }
        for (DimSharding& dim : sharding.dims)
            dim.open = random() % 2 == 0;
        const auto projected = project(sharding, rule.operands.front(), rule, MissingSharding::Open);
        // A factor that is split in part ends a dimension only if nothing follows it; then all comes back.
        QCOMPARE(QString::fromStdString(textOf(backProject(projected, rule.operands.front(), rule, sharding, 0), mesh)),
            QString::fromStdString(textOf(sharding, mesh)));
    }
}

void TestProjection::merge_data()
{
    QTest::addColumn<QString>("axes");
    QTest::addColumn<bool>("canExpand");
    QTest::addColumn<QString>("more");
    QTest::addColumn<QString>("expected");
    QTest::addColumn<bool>("stillExpands");

    QTest::newRow("longer") << "a" << true << "a, b"
                            << "a, b" << true;
    QTest::newRow("conflict") << "a, b" << true << "a, c"
                              << "a" << false;
    QTest::newRow("larger part") << "a:(1)2" << true << "a:(1)4"
                                 << "a:(1)4" << true;
    QTest::newRow("smaller part") << "a:(1)4" << true << "a:(1)2"
                                  << "a:(1)4" << true;
    QTest::newRow("a part, then another axis") << "a:(1)2, b" << true << "a:(1)4, b"
                                               << "a:(1)2" << false;
    QTest::newRow("a whole, then a part and another") << "a:(1)4" << true << "a:(1)2, b"
                                                      << "a:(1)2" << false;
    QTest::newRow("other parts") << "a:(1)2" << true << "a:(2)2"
                                 << "" << false;
    QTest::newRow("closed: no longer") << "a" << false << "a, b"
                                       << "a" << false;
    QTest::newRow("closed: keeps its own") << "a, b" << false << "a"
                                           << "a, b" << false;
    QTest::newRow("closed: no larger part") << "a:(1)2" << false << "a:(1)4"
                                            << "a:(1)2" << false;
}

void TestProjection::merge()
{
    QFETCH(QString, axes);
    QFETCH(bool, canExpand);
    QFETCH(QString, more);
    QFETCH(QString, expected);
    QFETCH(bool, stillExpands);
    const Mesh mesh = meshOf("a=8,b=2,c=2");
    AxisRefs merged = axesOf(axes.toStdString(), mesh);
    mergeCompatibleAxes(merged, canExpand, axesOf(more.toStdString(), mesh));
    QCOMPARE(text(merged, mesh), expected);
    QCOMPARE(canExpand, stillExpands);
}

void TestProjection::direction()
{
    const Mesh mesh = meshOf("a=2,b=2");
    const OpShardingRule rule = reshapeRule({8}, {8});
    const std::vector<TensorFactorShardings> tensors
        = {project(shardingOf("[{a, ?}]", mesh), rule.operands[0], rule, MissingSharding::Open),
            project(shardingOf("[{a, b, ?}]", mesh), rule.results[0], rule, MissingSharding::Open)};
    AxisRefs axes;
    compatibleMajorAxes(axes, tensors, 1, 0, FactorDirection::Both);
    QCOMPARE(text(axes, mesh), QString("a, b"));
    compatibleMajorAxes(axes, tensors, 1, 0, FactorDirection::Forward);
    QCOMPARE(text(axes, mesh), QString("a"));
    compatibleMajorAxes(axes, tensors, 1, 0, FactorDirection::Backward);
    QCOMPARE(text(axes, mesh), QString("a, b"));
    compatibleMajorAxes(axes, tensors, 1, 0, FactorDirection::None);
    QCOMPARE(text(axes, mesh), QString());
}

void TestProjection::withoutOverlap_data()
{
    QTest::addColumn<QString>("axis");
    QTest::addColumn<QString>("others");
    QTest::addColumn<QString>("expected"); // "-": nothing

    QTest::newRow("other axes") << "a"
                                << "b, c"
                                << "a";
    QTest::newRow("itself") << "a"
                            << "b, a"
                            << "-";
    QTest::newRow("its minor part") << "a"
                                    << "a:(4)2"
                                    << "a:(1)4";
    QTest::newRow("its major part") << "a"
                                    << "a:(1)2"
                                    << "-";
    QTest::newRow("a part beside") << "a:(1)2"
                                   << "a:(2)4"
                                   << "a:(1)2";
    QTest::newRow("a part beside, in no grid with it") << "d:(3)2"
                                                       << "d:(1)2"
                                                       << "-";
    QTest::newRow("a part behind, in a grid with it") << "d:(2)3"
                                                      << "d:(1)2"
                                                      << "d:(2)3";
    QTest::newRow("two parts") << "a"
                               << "a:(4)2, a:(2)2"
                               << "a:(1)2";
}

void TestProjection::withoutOverlap()
{
    QFETCH(QString, axis);
    QFETCH(QString, others);
    QFETCH(QString, expected);
    const Mesh mesh = meshOf("a=8,b=2,c=2,d=6");
    const auto left = prefixWithoutOverlap(axesOf(axis.toStdString(), mesh).front(), axesOf(others.toStdString(), mesh));
    QCOMPARE(left ? text({*left}, mesh) : QString("-"), expected);
}

namespace {

/// Three tensors that all have the same three factors: the table of semantics 8.1.
struct ThreeTensors {
    Mesh mesh = meshOf("a=2,b=2,c=2,d=2,e=2,f=2,g=2");
    OpShardingRule rule = *shardingRule(OpKind::Add, {}, std::vector(2, TensorType{DType::F32, {64, 64, 64}}),
        std::vector(1, TensorType{DType::F32, {64, 64, 64}}));
    std::vector<TensorFactorShardings> tensors;
    FactorFlow flow;
    FactorScratch scratch;
    std::vector<std::int64_t> elements;
    std::vector<FactorDirection> directions = std::vector(3, FactorDirection::Both);

    ThreeTensors(const std::array<const char*, 3>& shardings, std::vector<std::int64_t> sizes)
        : elements(std::move(sizes))
    {
        for (const char* sharding : shardings)
            tensors.push_back(project(shardingOf(sharding, mesh), rule.operands.front(), rule, MissingSharding::Open));
        flow.rule = &rule;
        flow.mesh = &mesh;
        flow.operandCount = 2;
        flow.elements = elements;
        flow.directions = directions;
    }

    QString table() const
    {
        QStringList rows;
        for (const TensorFactorShardings& tensor : tensors) {
            QStringList row;
            for (const auto& factor : tensor.factors)
                row << "[" + text(factor->axes, mesh) + "]";
            rows << row.join(" ");
        }
        return rows.join("; ");
    }
};

} // namespace

void TestProjection::basicAcrossFactors()
{
    ThreeTensors t({"[{a, ?}, {?}, {f, ?}]", "[{a, b, ?}, {c, d, ?}, {g, ?}]", "[{?}, {c, e, ?}, {?}]"}, {1, 1, 1});
    QVERIFY(propagateBasic(t.flow, t.tensors, t.scratch));
    QCOMPARE(t.table(), QString("[a, b] [c] [f]; [a, b] [c, d] [g]; [a, b] [c, e] []"));
    QVERIFY(!propagateBasic(t.flow, t.tensors, t.scratch));
}

void TestProjection::aggressivePrefersTheLargerTensor()
{
    ThreeTensors t({"[{a, ?}, {?}, {}]", "[{?}, {a, ?}, {}]", "[{?}, {?}, {}]"}, {10, 20, 10});
    QVERIFY(!propagateBasic(t.flow, t.tensors, t.scratch));
    QVERIFY(propagateAggressive(t.flow, t.tensors, t.scratch));
    QCOMPARE(t.table(), QString("[a] [] []; [] [a] []; [] [a] []"));
}

MESHWRIGHT_TEST(TestProjection)

} // namespace tst_projection

#include "tst_projection.moc"
