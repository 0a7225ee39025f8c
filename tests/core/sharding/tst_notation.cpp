// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/notation.h"

#include "core/sharding/book_text.h"
#include "core/sharding/jax_spec.h"
#include "core/sharding/layout.h"
#include "core/sharding/placements.h"
#include "core/sharding/shardy_text.h"

#include "tests/random_shardings.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/tile_placement.h"
#include "tests/values.h"

namespace tst_notation {

using namespace meshwright;
using namespace meshwright::tests;

class TestNotation : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void names();
    void recognising_data();
    void recognising();
    void ownMeshes_data();
    void ownMeshes();
    void problems_data();
    void problems();
    void needsNoMesh();
    void oneShardingEverywhere_data();
    void oneShardingEverywhere();
    void meaningsThatAreMissing_data();
    void meaningsThatAreMissing();
    void typedMeshes_data();
    void typedMeshes();
    void whatSurroundsASpec();
    void rankPromotion_data();
    void rankPromotion();
    void longNames();
    void axesInTypes();
    void notes();
    void randomRoundTrips_data();
    void randomRoundTrips();
    void roundTheHouses_data();
    void roundTheHouses();
    void damagedTexts_data();
    void damagedTexts();
};

void TestNotation::names()
{
    for (const Notation notation : allNotations()) {
        QCOMPARE(valueOf(notationOf(notationName(notation))), notation);
        QVERIFY(!text(notationTitle(notation)).isEmpty());
    }
    QCOMPARE(idsOf(notationOf("sharded")), QString("MW1159"));
}

void TestNotation::recognising_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("notation");
    QTest::addColumn<QString>("sharding"); // in Shardy's text, on x=4,y=2, for rank 2
    const auto row = [](const char* written, const char* notation, const char* sharding) {
        QTest::newRow(written) << written << notation << sharding;
    };

    row("P('x', 'y')", "jax", "[{\"x\"}, {\"y\"}]");
    row("P('x')", "jax", "[{\"x\"}, {}]");
    row("mhlo.sharding = \"{devices=[4,2]<=[8]}\"", "hlo", "[{\"x\"}, {\"y\"}]");
    row("{mhlo.sharding = \"{devices=[4,2]<=[8]}\"}", "hlo", "[{\"x\"}, {\"y\"}]");
    row("sharding={devices=[4,2]<=[8]}", "hlo", "[{\"x\"}, {\"y\"}]");
    row("{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}", "sdy", "[{\"x\"}, {}]");
    row("P()", "jax", "[{}, {}]");
    row("PartitionSpec(('x', \"y\"), None)", "jax", "[{\"x\", \"y\"}, {}]");
    row("jax.sharding.PartitionSpec(None, 'y')", "jax", "[{}, {\"y\"}]");
    row("jax.P('y', 'x')", "jax", "[{\"y\"}, {\"x\"}]");
    row("('x', None)", "jax", "[{\"x\"}, {}]");
    row("['x', null]", "jax", "[{\"x\"}, {}]");
    row("[x, y]", "jax", "[{\"x\"}, {\"y\"}]");
    row("P(P.UNCONSTRAINED, 'x')", "jax", "[{?}, {\"x\"}]");
    row("P('x', unreduced={'y'})", "jax", "[{\"x\"}, {}], unreduced={\"y\"}");
    row("P(None, None, unreduced=frozenset({'y', 'x'}), unreduced_kind=sum)", "jax", "[{}, {}], unreduced={\"x\", \"y\"}");
    row("NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec=PartitionSpec('x',))", "named", "[{\"x\"}, {}]");
    row("NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto)), spec=P('x', None), memory_kind=device)", "named",
        "[{\"x\"}, {}]");
    row("NamedSharding(mesh, P(None, 'y'))", "named", "[{}, {\"y\"}]");
    row("jax.sharding.NamedSharding(mesh=x=4,y=2, spec=P('y', None))", "named", "[{\"y\"}, {}]");
    row("NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(AxisType.Auto, AxisType.Explicit)), spec=P('x',), "
        "memory_kind='pinned_host')",
        "named", "[{\"x\"}, {}]");
    row("NamedSharding(mesh=DeviceMesh('cuda', [[0, 1], [2, 3], [4, 5], [6, 7]], mesh_dim_names=('x', 'y')), spec=P('y'))",
        "named", "[{\"y\"}, {}]");
    row("f32<host>[8@x,4]", "types", "[{\"x\"}, {}]");
    row("f32[8@x,4]", "types", "[{\"x\"}, {}]");
    row("float32[8@(x,y),4]", "types", "[{\"x\", \"y\"}, {}]");
    row("bf16[8,4@y]{U:x}", "types", "[{}, {\"y\"}], unreduced={\"x\"}");
    row("{devices=[4,2]<=[8]}", "hlo", "[{\"x\"}, {\"y\"}]");
    row("{devices=[2,4]0,2,4,6,1,3,5,7}", "hlo", "[{\"y\"}, {\"x\"}]");
    row("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "hlo", "[{\"x\":(1)2}, {}]");
    row("{replicated}", "hlo", "[{}, {}]");
    row("{unknown}", "hlo", "[{?}, {?}]");
    row("GSPMDSharding({devices=[4,2]<=[8]})", "hlo", "[{\"x\"}, {\"y\"}]");
    row("GSPMDSharding({devices=[4,2]<=[8]}, memory_kind=device)", "hlo", "[{\"x\"}, {\"y\"}]");
    row("{mesh['x'=4,'y'=2], [{'x'}, {?}]}", "hlo-named", "[{\"x\"}, {?}]");
    row("[{\"x\"}, {\"y\", ?}p1]", "sdy", "[{\"x\"}, {\"y\", ?}p1]");
    row("#sdy.sharding<@mesh, [{\"x\"}, {}], replicated={\"y\"}>", "sdy", "[{\"x\"}, {}], replicated={\"y\"}");
    row("<@mesh, [{\"x\"}, {}]>", "sdy", "[{\"x\"}, {}]");
    row("#sdy.sharding<mesh<[\"x\"=4, \"y\"=2]>, [{\"x\"}, {}]>", "sdy", "[{\"x\"}, {}]");
    row("[Shard(0), Replicate()]", "dtensor", "[{\"x\"}, {}]");
    row("(Shard(dim=1), Partial(sum))", "dtensor", "[{}, {\"x\"}], unreduced={\"y\"}");
    row("[Shard(-1), Shard(dim=0)]", "dtensor", "[{\"y\"}, {\"x\"}]");
    row("[Shard(0), Shard(0)]", "dtensor", "[{\"x\", \"y\"}, {}]");
    row("[_StridedShard(dim=0, split_factor=2), Shard(dim=0)]", "dtensor", "[{\"y\", \"x\"}, {}]");
    row("[S(0), R]", "dtensor", "[{\"x\"}, {}]");
    row("S(0)R", "dtensor-short", "[{\"x\"}, {}]");
    row("RP", "dtensor-short", "[{}, {}], unreduced={\"y\"}");
    row("S(1)P(sum)", "dtensor-short", "[{}, {\"x\"}], unreduced={\"y\"}");
    row("_S(0, 2)S(0)", "dtensor-short", "[{\"y\", \"x\"}, {}]");
    row("A[I_X, J_Y]", "book", "[{\"x\"}, {\"y\"}]");
    row("A[I_{XY}, J]", "book", "[{\"x\", \"y\"}, {}]");
    row("W_in[D_yx, F]", "book", "[{\"y\", \"x\"}, {}]");
    row("A[I, J_x] {U_Y}", "book", "[{}, {\"x\"}], unreduced={\"y\"}");
    row("PositionalSharding([[{TPU 0, 1}]\n                    [{TPU 2, 3}]\n [{TPU 4, 5}] [{TPU 6, 7}]], shape=(4, 1))",
        "positional", "[{\"x\"}, {}]");
    row("PositionalSharding([[{TPU 0} {TPU 1}]\n [{TPU 2} {TPU 3}]\n [{TPU 4} {TPU 5}]\n [{TPU 6} {TPU 7}]])", "positional",
        "[{\"x\"}, {\"y\"}]");
    row("PositionalSharding(8).reshape(4, 2)", "positional", "[{\"x\"}, {\"y\"}]");
    row("PositionalSharding(8).reshape((4, 2)).replicate(axis=0, keepdims=True)", "positional", "[{}, {\"y\"}]");
    row("PositionalSharding(8).reshape(4, 2).T", "positional", "[{\"y\"}, {\"x\"}]");
    row("PositionalSharding([0, 1, 2, 3, 4, 5, 6, 7]).reshape(1, 8, 1)", "positional", "[{\"x\", \"y\"}, {}]");
    row("PositionalSharding(8).reshape(4, 2).transpose(1, 0).replicate(-1)", "positional", "[{\"y\"}, {}]");
    row("PositionalSharding(8).replicate()", "positional", "[{}, {}]");
}

void TestNotation::recognising()
{
    QFETCH(QString, written);
    QFETCH(QString, notation);
    QFETCH(QString, sharding);
    const Mesh mesh = meshOf("x=4,y=2");
    const auto parsed = parseSharding(written.toStdString(), {mesh, 2});
    QVERIFY2(parsed, described(parsed).toUtf8());
    QCOMPARE(text(notationName(parsed->notation)), notation);
    QCOMPARE(text(shardyText(parsed->sharding, parsed->mesh)), sharding);
    QCOMPARE(parsed->mesh, mesh);
}

void TestNotation::ownMeshes_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("sharding");
    const auto row = [](const char* written, const char* mesh, const char* sharding) {
        QTest::newRow(written) << written << mesh << sharding;
    };
    row("NamedSharding(mesh=Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Auto, Auto)), spec=P('y'))", "x=2,y=4",
        "[{\"y\"}]");
    row("NamedSharding(mesh=Mesh(device_ids=array([[0, 1], [2, 3]]), axis_names=('x', 'y')), spec=P('y'))", "x=2,y=2",
        "[{\"y\"}]");
    row("NamedSharding(mesh=Mesh(device_ids=[[0 1]\n [2 3]], axis_names=('x', 'y')), spec=P('y'))", "x=2,y=2", "[{\"y\"}]");
    row("NamedSharding(mesh=AbstractMesh('x': 2), spec=P())", "x=2", "[]");
    row("NamedSharding(mesh=Mesh(OrderedDict([('x', 2), ('y', 4)])), spec=P('x'))", "x=2,y=4", "[{\"x\"}]");
    row("{devices=[4,8]<=[8,4]T(1,0)}", "axis_0=8,axis_1=4", "[{\"axis_1\"}, {\"axis_0\"}]");
    row("{mesh['a'=2], [{'a'}]}", "a=2", "[{\"a\"}]");
    row("<mesh<[\"a\"=2]>, [{\"a\"}]>", "a=2", "[{\"a\"}]");
    row("PositionalSharding(4).reshape(2, 2).replicate(0)", "axis_0=2,axis_1=2", "[{}, {\"axis_1\"}]");
    row("PositionalSharding([3, 1]).replicate(0)", "axis_0=2", "[{}]");
}

void TestNotation::ownMeshes()
{
    QFETCH(QString, written);
    QFETCH(QString, mesh);
    QFETCH(QString, sharding);
    const auto parsed = parseSharding(written.toStdString());
    QVERIFY2(parsed, described(parsed).toUtf8());
    QCOMPARE(text(parsed->mesh.text()), mesh);
    QCOMPARE(text(shardyText(parsed->sharding, parsed->mesh)), sharding);
}

void TestNotation::problems_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<bool>("withMesh"); // x=4,y=2
    QTest::addColumn<QString>("ids");
    const auto row
        = [](const char* written, bool withMesh, const char* ids) { QTest::newRow(written) << written << withMesh << ids; };
    row("", true, "MW1158");
    row("!", true, "MW1158");
    row("hello", true, "MW1158");
    row("P('x')", false, "MW1157");
    row("S(0)R", false, "MW1157");
    row("A[I_X]", false, "MW1157");
    row("[{\"x\"}]", false, "MW1157");
    row("f32[8@x]", false, "MW1157");
    row("P('z')", true, "MW1102");
    row("P('x', 'x')", true, "MW1103");
    row("P('x', unreduced={'x'})", true, "MW1103");
    row("P('x', unreduced={'y', 'y'})", true, "MW1103");
    row("P('x', unreduced={'z'})", true, "MW1102");
    row("P('x', unreduced={None})", true, "MW1105");
    row("P('x', unreduced=3)", true, "MW1105");
    row("P('x', unreduced={'y')", true, "MW1105");
    row("P('x', unreduced={'y'}, unreduced_kind=mean)", true, "MW1105");
    row("P('x', unreduced=frozenset({'y'}", true, "MW1105");
    row("P(('x', ('y',)))", true, "MW1105");
    row("P('x' 'y')", true, "MW1105");
    row("P(('x' 'y'))", true, "MW1105");
    row("P('')", true, "MW1105");
    row("P('x') y", true, "MW1105");
    row("P(('x', None))", true, "MW1105");
    row("P(!)", true, "MW1105");
    row("P('x', 'y', None, None)", true, "MW1101");
    row("NamedSharding(mesh=Mesh('x': 4), spec=P('x')", true, "MW1105");
    row("NamedSharding(mesh=Mesh('x': 4))", true, "MW1105");
    row("NamedSharding(mesh=Mesh('x', 4), spec=P('x'))", true, "MW1119");
    row("NamedSharding(mesh=Mesh('x': 4, axis_names=3), spec=P('x'))", true, "MW1119");
    row("NamedSharding(mesh=Mesh(device_ids=[0 x], axis_names=('x',)), spec=P('x'))", true, "MW1119");
    row("NamedSharding(mesh=Mesh(axis_sizes=(2,), axis_names=('x', 'y')), spec=P('x'))", true, "MW1116");
    row("NamedSharding(mesh=x, spec=P('x'))", false, "MW1117");
    row("f32[8@x", true, "MW1167");
    row("f32[x]", true, "MW1167");
    row("f32[8@]", true, "MW1167");
    row("f32[8@(x,y]", true, "MW1167");
    row("f32[8 4]", true, "MW1167");
    row("f32[8,4]{W:x}", true, "MW1167");
    row("f32[8,4]{U_mean:x}", true, "MW1167");
    row("f32[8,4]{U x}", true, "MW1167");
    row("f32[8,4] x", true, "MW1167");
    row("f32<host[8,4]", true, "MW1167");
    row("f32[8@x,4@x]", true, "MW1103");
    row("f32[8,4]{V:z}", true, "MW1102");
    row("f32[8@x,4]{V:x}", true, "MW1103");
    row("{devices=[3,1]<=[3]}", true, "MW1156");
    row("{devices=[8]<=[8]}", true, "MW1154");
    row("{devices=[8,1]<=[9]}", true, "MW1151");
    row("{what}", true, "MW1150");
    row("{mesh['x'=4], [{'q'}]}", true, "MW1102");
    row("{mesh['x'=4,'y'=2], [{'x'}]}", true, "MW1145");
    row("[{\"x\"}]", true, "MW1145");
    row("#sdy.sharding<@mesh>", true, "MW1140");
    row("#sdy.sharding<mesh, [{}]>", true, "MW1140");
    row("#sdy.sharding<mesh<[\"x\"=4], [{}]", true, "MW1140");
    row("<mesh<[\"x\"]>, [{}]>", true, "MW1119");
    row("<mesh<\"x\"=2>, [{}]>", true, "MW1119");
    row("<mesh<[\"x\"=a]>, [{}]>", true, "MW1119");
    row("<mesh<[\"x\"=2], ids>, [{}]>", true, "MW1119");
    row("<mesh<[\"x\"=2], device_ids=[a]>, [{}]>", true, "MW1119");
    row("[Shard(0)]", true, "MW1164");
    row("[Shard(0), Shard(5)]", true, "MW1165");
    row("[_StridedShard(0, split_factor=3), Shard(0)]", true, "MW1165");
    row("[Partial('avg'), Replicate()]", true, "MW1163");
    row("[Partial('max'), Partial('min')]", true, "MW1163");
    row("[Shard(x), Replicate()]", true, "MW1162");
    row("[Shard(0), Other()]", true, "MW1162");
    row("[Shard(0), Replicate(]", true, "MW1162");
    row("[Shard(0), Partial('sum']", true, "MW1162");
    row("[Shard(0), _StridedShard(0)]", true, "MW1162");
    row("[Shard(0), _StridedShard(0, 0)]", true, "MW1162");
    row("[Shard(0), Replicate()] x", true, "MW1162");
    row("[Shard(0), Shard 1]", true, "MW1162");
    row("A[I_Z, J]", true, "MW1102");
    row("A[I_X, J_X]", true, "MW1103");
    row("A[I_X, J", true, "MW1168");
    row("A[_X, J]", true, "MW1168");
    row("A[I_, J]", true, "MW1168");
    row("A[I_{X, J]", true, "MW1168");
    row("A[I_{X,,Y}, J]", true, "MW1168");
    row("A[I J]", true, "MW1168");
    row("A[I, J]{X}", true, "MW1168");
    row("A[I, J]{U_X", true, "MW1168");
    row("A[I, J] x", true, "MW1168");
    row("A[I_X]", true, "MW1145");
    row("PositionalSharding(", true, "MW1134");
    row("PositionalSharding(0)", true, "MW1134");
    row("PositionalSharding([0, x])", true, "MW1134");
    row("PositionalSharding(8", true, "MW1134");
    row("PositionalSharding(8).T x", true, "MW1134");
    row("PositionalSharding(8).sum()", true, "MW1134");
    row("PositionalSharding(8).replicate(0, 1)", true, "MW1134");
    row("PositionalSharding(8).replicate(0", true, "MW1134");
    row("PositionalSharding(8).reshape((2, 4)", true, "MW1134");
    row("PositionalSharding(8).reshape(2 4)", true, "MW1134");
    row("PositionalSharding([{TPU 0} {TPU 1, 2}], shape=(2,))", true, "MW1134");
    row("PositionalSharding([{TPU 0} TPU], shape=(2,))", true, "MW1134");
    row("PositionalSharding([[{TPU 0} {TPU 1} {TPU 2}] [{TPU 3}] [{TPU 4} {TPU 5}]])", true, "MW1134");
    row("PositionalSharding([{TPU 0}]", true, "MW1134");
    row("PositionalSharding([{TPU 0}], shape=(1,)", true, "MW1134");
    row("PositionalSharding([0, 0])", true, "MW1130");
    row("PositionalSharding(8).reshape(3, 3)", true, "MW1131");
    row("PositionalSharding(8).replicate(4)", true, "MW1132");
}

void TestNotation::problems()
{
    QFETCH(QString, written);
    QFETCH(bool, withMesh);
    QFETCH(QString, ids);
    SpellingContext context;
    if (withMesh)
        context = {meshOf("x=4,y=2"), 2};
    const auto parsed = parseSharding(written.toStdString(), context);
    QCOMPARE(idsOf(parsed), ids);
    for (const Problem& problem : parsed.error())
        QVERIFY2(!problem.message.empty() && !problem.fix.empty(), problem.message.c_str());
}

void TestNotation::needsNoMesh()
{
    for (const char* written : {"P(None, None)", "[{}, {?}]", "f32[8,4]", "A[I, J]"}) {
        const auto parsed = parseSharding(written);
        QVERIFY2(parsed, described(parsed).toUtf8());
        QCOMPARE(parsed->sharding.dims.size(), std::size_t{2});
        QVERIFY(parsed->meshInvented);
    }
    QCOMPARE(valueOf(parseSharding("{maximal device=3}")).mesh.deviceOrder(), std::vector<DeviceId>{3});
    for (const char* maximal : {"{maximal_mesh[device_id=3], []}", "#sdy.sharding<mesh<[], device_ids=[3]>, []>"})
        QCOMPARE(valueOf(parseSharding(maximal, {std::nullopt, 2})).sharding.dims.size(), std::size_t{2});
    QCOMPARE(idsOf(parseSharding("A[I_AB]", {meshOf("a=2,b=2,ab=2"), 1})), QString());
    QCOMPARE(idsOf(parseSharding("A[I_aab]", {meshOf("a=2,aa=2,b=2,ab=2"), 1})), QString("MW1169"));
}

void TestNotation::oneShardingEverywhere_data()
{
    QTest::addColumn<QString>("notation");
    QTest::addColumn<QString>("expected");
    QTest::newRow("jax") << "jax"
                         << "P(('y', 'x'), None)";
    QTest::newRow("named") << "named"
                           << "NamedSharding(mesh=Mesh('x': 2, 'y': 2, axis_types=(Auto, Auto)), spec=P(('y', 'x'), None))";
    QTest::newRow("types") << "types"
                           << "bf16[8@(y,x),4]";
    QTest::newRow("hlo") << "hlo"
                         << "{devices=[4,1]<=[2,2]T(1,0)}";
    QTest::newRow("hlo-named") << "hlo-named"
                               << "{mesh['x'=2,'y'=2], [{'y', 'x'}, {}]}";
    QTest::newRow("sdy") << "sdy"
                         << "[{\"y\", \"x\"}, {}]";
    QTest::newRow("dtensor") << "dtensor"
                             << "[_StridedShard(0, split_factor=2), Shard(0)]";
    QTest::newRow("dtensor-short") << "dtensor-short"
                                   << "_S(0, 2)S(0)";
    QTest::newRow("book") << "book"
                          << "A[I_{yx}, J]";
    QTest::newRow("positional") << "positional"
                                << "PositionalSharding([[{TPU 0}]\n                    [{TPU 2}]\n                    [{TPU 1}]\n"
                                   "                    [{TPU 3}]], shape=(4, 1))";
}

void TestNotation::oneShardingEverywhere()
{
    QFETCH(QString, notation);
    QFETCH(QString, expected);
    const auto parsed = parseSharding("bf16[8@(y,x),4]", {meshOf("x=2,y=2"), {}});
    QVERIFY(parsed);
    const auto written = printSharding(*parsed, valueOf(notationOf(notation.toStdString())));
    QVERIFY2(written, described(written).toUtf8());
    QCOMPARE(text(written->text), expected);
    QVERIFY(written->notes.empty());
}

void TestNotation::meaningsThatAreMissing_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("notation");
    QTest::addColumn<QString>("says");
    const char* part = "[{\"x\":(2)2}]";
    QTest::newRow("part, jax") << part << "jax"
                               << "a PartitionSpec has no name for a part of a mesh axis: \"x\":(2)2";
    QTest::newRow("part, named") << part << "named"
                                 << "split the axis x=8 of the mesh into x_0=2,x_1=2,x_2=2";
    QTest::newRow("part, dtensor") << part << "dtensor"
                                   << "a placement has no name";
    QTest::newRow("part, book") << part << "book"
                                << "no name for a part";
    QTest::newRow("shape") << "[{\"x\"}]"
                           << "types"
                           << "the sizes of the array, which are not known";
    QTest::newRow("too many devices") << "[{}]"
                                      << "positional of x=1048576"
                                      << "1048576 are too many";
    QTest::newRow("partial, positional") << "[{}], unreduced={\"x\"}"
                                         << "positional"
                                         << "partial result over \"x\"";
}

void TestNotation::meaningsThatAreMissing()
{
    QFETCH(QString, sharding);
    QFETCH(QString, notation);
    QFETCH(QString, says);
    const Mesh mesh = meshOf(notation.section(" of ", 1).isEmpty() ? "x=8" : notation.section(" of ", 1).toStdString());
    notation = notation.section(" of ", 0, 0);
    const auto written
        = printSharding(valueOf(parseShardy(sharding.toStdString(), mesh)), mesh, valueOf(notationOf(notation.toStdString())));
    QCOMPARE(idsOf(written), QString("MW1161"));
    QVERIFY2(described(written).contains(says), described(written).toUtf8());
}

void TestNotation::typedMeshes_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("expected"); // as JAX prints it, or the problem
    QTest::addColumn<QString>("order");
    const auto row = [](const char* written, const char* expected, const char* order = "") {
        QTest::newRow(written) << written << expected << order;
    };
    row("Mesh('x': 2, 'y': 4, axis_types=(Explicit, Auto))", "Mesh('x': 2, 'y': 4, axis_types=(Explicit, Auto))");
    row("Mesh('x': 2, axis_types=(AxisType.Manual,))", "Mesh('x': 2, axis_types=(Manual,))");
    row("Mesh(axis_sizes=(2, 2), axis_names=('x', 'y'), axis_types=(jax.sharding.AxisType.Explicit, AxisType.Auto))",
        "Mesh('x': 2, 'y': 2, axis_types=(Explicit, Auto))");
    row("Mesh('x': 2, axis_types={AxisTypes.Auto: ('x',)})", "Mesh('x': 2, axis_types=(Auto,))");
    row("AbstractMesh('x': 2, axis_types=(Explicit,), abstract_device=AbstractDevice(device_kind='TPU v5', num_cores=1))",
        "Mesh('x': 2, axis_types=(Explicit,))");
    row("AbstractMesh('x': 2, abstract_device=None)", "Mesh('x': 2, axis_types=(Auto,))");
    row("x=2,y=4", "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))");
    row("DeviceMesh('cuda', [[0, 2], [1, 3]], mesh_dim_names=('dp', 'tp'))", "Mesh('dp': 2, 'tp': 2, axis_types=(Auto, Auto))",
        "0,2,1,3");
    row("DeviceMesh('cpu', [0, 1, 2, 3])", "Mesh('dim_0': 4, axis_types=(Auto,))", "0,1,2,3");
    row("DeviceMesh((dp=2, tp=4), device: 'cuda', stride: (4, 1))", "Mesh('dp': 2, 'tp': 4, axis_types=(Auto, Auto))");
    row("DeviceMesh((2, 4), device: 'cuda', stride: (4, 1))", "Mesh('dim_0': 2, 'dim_1': 4, axis_types=(Auto, Auto))");
    row("Mesh('x': 2, axis_types=(Auto, Auto))", "MW1119");
    row("Mesh('x': 2, axis_types=(Automatic,))", "MW1119");
    row("DeviceMesh('cuda')", "MW1119");
    row("DeviceMesh((dp=2, 4))", "MW1119");
    row("DeviceMesh((dp=2), device 'cuda')", "MW1119");
}

void TestNotation::typedMeshes()
{
    QFETCH(QString, written);
    QFETCH(QString, expected);
    QFETCH(QString, order);
    const auto read = parseTypedMesh(written.toStdString());
    if (expected.startsWith("MW")) {
        QCOMPARE(idsOf(read), expected);
        return;
    }
    QVERIFY2(read, described(read).toUtf8());
    QCOMPARE(text(jaxMeshText(read->mesh, read->types)), expected);
    if (!order.isEmpty())
        QCOMPARE(read->mesh.deviceOrder(), valueOf(parseDeviceOrder(order.toStdString())));
}

/// The memory kind, the types of axes and the logical device ids of a NamedSharding.
void TestNotation::whatSurroundsASpec()
{
    const char* printed
        = "NamedSharding(mesh=Mesh('x': 2, 'y': 2, axis_types=(Explicit, Auto)), spec=P('x', 'y'), memory_kind=pinned_host)";
    ParsedSharding parsed = valueOf(parseSharding(printed));
    QCOMPARE(text(valueOf(printSharding(parsed, Notation::JaxNamed)).text), QString(printed));
    parsed.shape = Shape{8, 4};
    const Spelling type = valueOf(printSharding(parsed, Notation::JaxType));
    QCOMPARE(text(type.text), QString("f32<host>[8@x,4]")); // an Auto axis is not in the type
    QCOMPARE(type.notes.size(), std::size_t{1});
    QVERIFY(text(valueOf(printSharding(parsed, Notation::Hlo)).notes.back()).contains("memory kind pinned_host"));
    QCOMPARE(text(valueOf(parseSharding("f32<host>[8]")).memoryKind), QString("pinned_host"));
    QCOMPARE(text(valueOf(parseSharding("GSPMDSharding({devices=[2]<=[2]}, memory_kind=device)")).memoryKind), QString("device"));

    const ParsedSharding ids
        = valueOf(parseSharding("NamedSharding(mesh=Mesh('x': 4), spec=P('x'), logical_device_ids=(0, 2, 1, 3))"));
    QCOMPARE(ids.mesh.deviceOrder(), (std::vector<DeviceId>{0, 2, 1, 3}));
    for (const char* wrong :
        {"NamedSharding(mesh=Mesh('x': 4), spec=P('x'), memory_kind)", "NamedSharding(mesh=Mesh('x': 4), spec=P('x') device)",
            "NamedSharding(mesh=Mesh('x': 4), spec=P('x'), memory_kind=device 3)"})
        QCOMPARE(idsOf(parseSharding(wrong)), QString("MW1105"));
    QCOMPARE(idsOf(parseSharding("NamedSharding(mesh=Mesh('x': 4), spec=P('x'), logical_device_ids=(0, 1))")), QString("MW1114"));
}

void TestNotation::rankPromotion_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<int>("rank");
    QTest::addColumn<QString>("expected"); // on x=4,y=2
    // JAX's tutorial puts a bias with `sharding.replicate(0)`: the vector takes what the trailing dimension has.
    QTest::newRow("a vector takes the trailing dimension")
        << "PositionalSharding(8).reshape(4, 2).replicate(0)" << 1 << "[{\"y\"}]";
    QTest::newRow("the matrix itself") << "PositionalSharding(8).reshape(4, 2).replicate(0)" << 2 << "[{}, {\"y\"}]";
    QTest::newRow("two leading ones") << "PositionalSharding(8).reshape(1, 1, 8)" << 1 << "[{\"x\", \"y\"}]";
    QTest::newRow("without keepdims") << "PositionalSharding(8).reshape(4, 2).replicate(1, keepdims=False)" << 1 << "[{\"x\"}]";
    QTest::newRow("transposed") << "PositionalSharding(8).reshape(4, 2).T.replicate(axis=0)" << 1 << "[{\"x\"}]";
    QTest::newRow("replicated, of every rank") << "PositionalSharding(8).replicate()" << 3 << "[{}, {}, {}]";
    QTest::newRow("a scalar as it is printed") << "PositionalSharding({TPU 0, 1, 2, 3, 4, 5, 6, 7}, shape=())" << 0 << "[]";
    QTest::newRow("a leading dimension that is split") << "PositionalSharding(8).reshape(4, 2)" << 1 << "MW1154";
    QTest::newRow("a trailing one") << "PositionalSharding(8).reshape(8, 1)" << 1 << "MW1154";
    QTest::newRow("a larger array") << "PositionalSharding(8).reshape(4, 2)" << 3 << "MW1154";
}

void TestNotation::rankPromotion()
{
    QFETCH(QString, sharding);
    QFETCH(int, rank);
    QFETCH(QString, expected);
    const Mesh mesh = meshOf("x=4,y=2");
    const auto parsed = parseSharding(sharding.toStdString(), {mesh, static_cast<std::size_t>(rank)});
    if (expected.startsWith("MW"))
        QCOMPARE(idsOf(parsed), expected);
    else
        QCOMPARE(parsed ? text(shardyText(parsed->sharding, mesh)) : described(parsed), expected);
}

void TestNotation::longNames()
{
    const Mesh mesh = meshOf("data-1=2,model.x=4");
    ParsedSharding parsed;
    parsed.mesh = mesh;
    parsed.shape = Shape{8, 8};
    parsed.dtype = "bfloat16";
    parsed.sharding = shardingOf("P(('model.x', 'data-1'), None)", 2, mesh);
    for (const Notation notation : allNotations()) {
        const auto spelling = printSharding(parsed, notation);
        QVERIFY2(spelling, described(spelling).toUtf8());
        const auto again = parseSharding(spelling->text, {mesh, 2});
        QVERIFY2(again, described(again).toUtf8());
        QVERIFY2(again->sharding == parsed.sharding, spelling->text.c_str());
    }
}

void TestNotation::axesInTypes()
{
    const Mesh mesh = meshOf("a=2,b=2,c=2");
    const std::vector<AxisType> types = {AxisType::Explicit, AxisType::Auto, AxisType::Manual};
    const JaxSpec spec = valueOf(parseJaxSpec("P(('b', 'a'), P.UNCONSTRAINED, unreduced={'c'})"));
    QCOMPARE(text(jaxSpecText(specInType(spec, mesh, types, 3))), QString("P('a', None, None)"));
    QCOMPARE(text(jaxMeshText(mesh, types)), QString("Mesh('a': 2, 'b': 2, 'c': 2, axis_types=(Explicit, Auto, Manual))"));
    QCOMPARE(text(jaxMeshText(Mesh())), QString("Mesh()"));
    QCOMPARE(valueOf(parseJaxMesh("Mesh()")), Mesh());
    QCOMPARE(valueOf(parseJaxMesh("x=2,y=4")), meshOf("x=2,y=4"));
    for (const char* wrong :
        {"Mesh(device_ids=][0], axis_names=('x',))", "Mesh('x': )", "Mesh(('x'), 2)", "Mesh('x': 2", "Mesh(axis_sizes=2)"})
        QCOMPARE(idsOf(parseJaxMesh(wrong)), QString("MW1119"));
}

void TestNotation::notes()
{
    const Mesh mesh = meshOf("x=2,y=2", {0, 2, 1, 3});
    ParsedSharding parsed;
    parsed.mesh = mesh;
    parsed.sharding = valueOf(parseShardy("[{\"x\", ?}p1], replicated={\"y\"}", mesh));
    QCOMPARE(valueOf(printSharding(parsed, Notation::Hlo)).notes.size(), std::size_t{3});
    QCOMPARE(valueOf(printSharding(parsed, Notation::Jax)).notes.size(), std::size_t{4}); // the device order too
    QCOMPARE(valueOf(printSharding(parsed, Notation::HloNamed)).notes.size(), std::size_t{0});
    QCOMPARE(valueOf(printSharding(parsed, Notation::Shardy)).notes.size(), std::size_t{1});

    // Partial results that combine by the maximum.
    parsed.sharding = valueOf(parseSharding("P(None, unreduced={'x'}, unreduced_kind=max)", {mesh, {}})).sharding;
    QCOMPARE(text(valueOf(printSharding(parsed, Notation::DTensor)).text), QString("[Partial('max'), Replicate()]"));
    QCOMPARE(text(valueOf(printSharding(parsed, Notation::DTensorShort)).text), QString("P(max)R"));
    for (const Notation notation : {Notation::Hlo, Notation::HloNamed, Notation::Shardy, Notation::Book})
        QCOMPARE(idsOf(printSharding(parsed, notation)), QString("MW1161"));

    // Manual and reduced axes.
    parsed = valueOf(parseSharding("f32[8]{V:x, R:y}", {mesh, {}}));
    QCOMPARE(text(valueOf(printSharding(parsed, Notation::JaxType)).text), QString("f32[8]{V:x, R:y}"));
    QCOMPARE(text(valueOf(printSharding(parsed, Notation::Jax)).text), QString("P(None, reduced={'y'})"));
    QCOMPARE(text(valueOf(printSharding(parsed, Notation::Hlo)).text),
        QString("{devices=[1,2,2]0,2,1,3 last_tile_dims={manual, replicated}}"));
    QCOMPARE(idsOf(printSharding(parsed, Notation::Positional)), QString("MW1161"));
    QCOMPARE(valueOf(printSharding(parsed, Notation::Shardy)).notes.size(), std::size_t{3});
    QCOMPARE(idsOf(printSharding(TensorSharding::replicatedOf(1), Mesh(), Notation::DTensor)), QString("MW1161"));
}

void TestNotation::randomRoundTrips_data()
{
    tests::addSeeds({4, 5});
}

void TestNotation::randomRoundTrips()
{
    QFETCH(quint64, seed);
    Random random(seed);
    int written = 0;
    for (int i = 0; i < 1200; ++i) {
        const RandomLimits limits{
            .parts = chance(random, 30), .open = false, .replicated = false, .sizesOfOne = true, .ownOrder = true};
        ParsedSharding parsed;
        parsed.mesh = randomMesh(random, limits);
        const auto rank = static_cast<std::size_t>(pick(random, 1, 4));
        parsed.sharding = randomSharding(random, rank, parsed.mesh, limits);
        parsed.shape = Shape(rank, 96);
        parsed.dtype = "f32";
        for (const Notation notation : allNotations()) {
            const auto spelling = printSharding(parsed, notation);
            if (!spelling) {
                QCOMPARE(idsOf(spelling).left(6), QString("MW1161"));
                continue;
            }
            ++written;
            const auto again = parseSharding(spelling->text, {parsed.mesh, rank});
            QVERIFY2(again, (described(again) + " on " + text(parsed.mesh.text())).toUtf8());
            const QString context
                = text(spelling->text + " of " + shardyText(parsed.sharding, parsed.mesh) + " on " + parsed.mesh.text());
            QCOMPARE(again->notation, notation);
            QVERIFY2(again->sharding == parsed.sharding, context.toUtf8());
            QVERIFY2(again->mesh == parsed.mesh, context.toUtf8());
            // And once more to any other: the same text as directly.
            const auto direct = printSharding(parsed, Notation::Hlo);
            const auto around = printSharding(*again, Notation::Hlo);
            QVERIFY2(direct && around && direct->text == around->text, context.toUtf8());
        }
    }
    QVERIFY(written > 8000);
}

namespace {

/// What each device holds.
std::map<DeviceId, IndexBox> boxesOf(const Shape& shape, const TensorSharding& sharding, const Mesh& mesh)
{
    std::map<DeviceId, IndexBox> boxes;
    for (const Shard& shard : layoutOf(shape, sharding, mesh).shards) {
        for (const DeviceId device : shard.devices)
            boxes[device] = shard.box;
    }
    return boxes;
}

} // namespace

void TestNotation::roundTheHouses_data()
{
    tests::addSeeds({41, 42});
}

/// From any notation to any other and on to a third: wherever the meaning exists the same layout comes back, with a mesh that is known and, for the
/// notations that bring their own, without one.
void TestNotation::roundTheHouses()
{
    QFETCH(quint64, seed);
    Random random(seed);
    int walks = 0;
    for (int i = 0; i < 400; ++i) {
        const RandomLimits limits{.parts = chance(random, 50),
            .open = false,
            .unreduced = chance(random, 30),
            .replicated = false,
            .sizesOfOne = false,
            .ownOrder = true,
            .twelves = true};
        ParsedSharding start;
        start.mesh = randomMesh(random, limits);
        const auto rank = static_cast<std::size_t>(pick(random, 1, 3));
        start.sharding = randomSharding(random, rank, start.mesh, limits);
        start.shape = Shape(rank, 97); // uneven in every way
        start.dtype = "f32";
        const TileSharding tiles = toTiles(start.sharding, start.mesh);
        ParsedSharding at = start;
        QString path;
        for (int step = 0; step < 5; ++step) {
            const auto notations = allNotations();
            const Notation notation
                = notations[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(notations.size()) - 1))];
            at.shape = start.shape;
            const auto spelling = printSharding(at, notation);
            if (!spelling) {
                QCOMPARE(idsOf(spelling).left(6), QString("MW1161"));
                continue;
            }
            path += text(std::string(" -> ") + notationName(notation) + " " + spelling->text);
            const bool bringsMesh
                = notation == Notation::Hlo || notation == Notation::HloNamed || notation == Notation::Positional;
            const bool alone = bringsMesh && chance(random, 40);
            const auto again = parseSharding(spelling->text, {alone ? std::nullopt : std::optional(at.mesh), rank});
            QVERIFY2(again, (described(again) + path).toUtf8());
            if (again->mesh.deviceCount() != start.mesh.deviceCount())
                continue; // {replicated} alone does not say over how many devices
            QVERIFY2(samePlacement(toTiles(again->sharding, again->mesh), tiles), path.toUtf8());
            QVERIFY2(boxesOf(*start.shape, again->sharding, again->mesh) == boxesOf(*start.shape, start.sharding, start.mesh),
                path.toUtf8());
            at = *again;
            ++walks;
        }
    }
    QVERIFY2(walks > 1200, QByteArray::number(walks));
}

void TestNotation::damagedTexts_data()
{
    tests::addSeeds({5, 6});
}

/// Whatever is done to a text, it is read or refused with a reason.
void TestNotation::damagedTexts()
{
    QFETCH(quint64, seed);
    Random random(seed);
    const Mesh mesh = meshOf("x=4,y=2");
    ParsedSharding parsed;
    parsed.mesh = mesh;
    parsed.shape = Shape{8, 8};
    parsed.sharding = shardingOf("P(('y', 'x'), None)", 2, mesh);
    std::vector<std::string> texts = {"P('x', unreduced={'y'}, unreduced_kind=sum)",
        "NamedSharding(mesh=Mesh(device_ids=[[0 1] [2 3]], axis_names=('x', 'y')), spec=P('y'))",
        "#sdy.sharding<mesh<[\"x\"=4, \"y\"=2], device_ids=[0, 1]>, [{\"x\":(1)2, ?}p1, {}], replicated={\"y\"}>",
        "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual, replicated}}",
        "PositionalSharding(8).reshape(4, 2).replicate(axis=1, keepdims=True).T",
        "{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), [{'x'}, {}]}", "A[I_{XY}, J]{U_X}"};
    for (const Notation notation : allNotations())
        texts.push_back(valueOf(printSharding(parsed, notation)).text);
    const std::string letters = "{}[]()<>,.:;='\"?@_-0123456789xyzPSRTU ";
    for (int i = 0; i < 20000; ++i) {
        std::string damaged = texts[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(texts.size()) - 1))];
        for (std::int64_t change = pick(random, 1, 4); change > 0 && !damaged.empty(); --change) {
            const auto at = static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(damaged.size()) - 1));
            const char letter = letters[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(letters.size()) - 1))];
            if (chance(random, 40))
                damaged[at] = letter;
            else if (chance(random, 50))
                damaged.erase(at, static_cast<std::size_t>(pick(random, 1, 8)));
            else
                damaged.insert(at, 1, letter);
        }
        SpellingContext context;
        if (chance(random, 70))
            context.mesh = mesh;
        if (chance(random, 50))
            context.rank = 2;
        const auto read = parseSharding(damaged, context);
        if (read) {
            for (const Notation notation : allNotations())
                static_cast<void>(printSharding(*read, notation).has_value());
        } else {
            QVERIFY2(!read.error().empty() && !read.error().front().message.empty(), damaged.c_str());
        }
    }
}

MESHWRIGHT_TEST(TestNotation)

} // namespace tst_notation

#include "tst_notation.moc"
