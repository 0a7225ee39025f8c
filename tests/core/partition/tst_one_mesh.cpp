// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/one_mesh.h"

#include "core/text/program_text.h"
#include "tests/test_class.h"

namespace tst_one_mesh {

using namespace meshwright;

namespace {

Program programOf(const QString& text)
{
    auto program = readProgram(text.toStdString(), "program.mlir");
    if (!program)
        qFatal("%s\n%s", qPrintable(text), describe(program.error()).c_str());
    return *std::move(program);
}

/// A function of arrays of 8x24 with these shardings, on meshes of these lines.
QString withArguments(const QStringList& meshes, const QStringList& shardings)
{
    QString text = meshes.join('\n') + "\nfunc.func @main(";
    for (qsizetype i = 0; i < shardings.size(); ++i)
        text += QString("%1%a%2: tensor<8x24xf32> {sdy.sharding = #sdy.sharding<%3>}")
                    .arg(i > 0 ? ", " : "")
                    .arg(i)
                    .arg(shardings[i]);
    return text + ") -> tensor<8x24xf32> {\n  return %a0 : tensor<8x24xf32>\n}\n";
}

} // namespace

class TestOneMesh : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void shardings_data();
    void shardings();
    void problems_data();
    void problems();
    void collectivesAndManualAxes();
};

void TestOneMesh::shardings_data()
{
    QTest::addColumn<QStringList>("meshes"); ///< as the text has them
    QTest::addColumn<QStringList>("before"); ///< of the arguments
    QTest::addColumn<QString>("mesh"); ///< the common one
    QTest::addColumn<QStringList>("after");
    QTest::addColumn<QStringList>("orders"); ///< of devices outside: the mesh of each argument's

    const QString a42 = "sdy.mesh @a = <[\"x\"=4, \"y\"=2]>";
    const QString b24 = "sdy.mesh @b = <[\"x\"=2, \"y\"=4]>";
    const QString line = "sdy.mesh @line = <[\"z\"=8]>";
    QTest::newRow("one mesh stays as it is") << QStringList{a42} << QStringList{"@a, [{\"x\":(1)2}, {?}]"} << "x=4,y=2"
                                             << QStringList{"[{\"x\":(1)2}, {?}]"} << QStringList{"a"};
    QTest::newRow("the finest is the common one")
        << QStringList{line, a42} << QStringList{"@line, [{\"z\"}, {}]", "@a, [{\"y\"}, {}]"} << "x=4,y=2"
        << QStringList{"[{\"x\", \"y\"}, {}]", "[{\"y\"}, {}]"} << QStringList{"a", "a"};
    // Positions of x=4,y=2 are 2 x + y, those of x=2,y=4 are 4 x + y: the first one's x is the other's x and the major half of its y.
    QTest::newRow("cut where another axis ends")
        << QStringList{a42, b24} << QStringList{"@a, [{\"x\"}, {\"y\"}]", "@b, [{\"x\"}, {\"y\"}]"} << "x_0=2,x_1=2,y=2"
        << QStringList{"[{\"x_0\", \"x_1\"}, {\"y\"}]", "[{\"x_0\"}, {\"x_1\", \"y\"}]"} << QStringList{"a", "a"};
    QTest::newRow("parts of axes") << QStringList{a42, line} << QStringList{"@line, [{\"z\":(2)2}, {\"z\":(4)2}]", "@a, [{}, {}]"}
                                   << "x=4,y=2" << QStringList{"[{\"x\":(2)2}, {\"y\"}]", "[{}, {}]"} << QStringList{"a", "a"};
    QTest::newRow("a transposed mesh has the same axes")
        << QStringList{a42, "sdy.mesh @t = <[\"y\"=2, \"x\"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>"}
        << QStringList{"@a, [{}, {}]", "@t, [{\"x\"}, {\"y\"}]"} << "x=4,y=2" << QStringList{"[{}, {}]", "[{\"x\"}, {\"y\"}]"}
        << QStringList{"a", "a"};
    QTest::newRow("another order of devices")
        << QStringList{a42, "sdy.mesh @ring = <[\"x\"=4, \"y\"=2], device_ids=[0, 1, 2, 3, 6, 7, 5, 4]>"}
        << QStringList{"@a, [{\"x\"}, {}]", "@ring, [{\"x\"}, {\"y\", ?}p1]"} << "x=4,y=2"
        << QStringList{"[{\"x\"}, {}]", "[{\"x\"}, {\"y\", ?}p1]"} << QStringList{"a", "ring"};
    // z goes along y, then x; sets of axes are written in the order of the mesh, or nobody could read them.
    QTest::newRow("axes of a set") << QStringList{a42, "sdy.mesh @t = <[\"z\"=8], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>"}
                                   << QStringList{"@a, [{\"x\"}, {}]", "@t, [{}, {}], replicated={\"z\"}", "@t, [{\"z\"}, {}]"}
                                   << "x=4,y=2"
                                   << QStringList{"[{\"x\"}, {}]", "[{}, {}], replicated={\"x\", \"y\"}", "[{\"y\", \"x\"}, {}]"}
                                   << QStringList{"a", "a", "a"};
    // Along each axis alone the devices are those of @a; 5 and 6 stand in each other's place.
    QTest::newRow("two devices swapped off the axes")
        << QStringList{"sdy.mesh @a = <[\"x\"=2, \"y\"=2, \"z\"=2]>",
               "sdy.mesh @b = <[\"x\"=2, \"y\"=2, \"z\"=2], device_ids=[0, 1, 2, 3, 4, 6, 5, 7]>"}
        << QStringList{"@a, [{\"x\"}, {}]", "@b, [{\"x\", \"y\"}, {\"z\"}]"} << "x=2,y=2,z=2"
        << QStringList{"[{\"x\"}, {}]", "[{\"x\", \"y\"}, {\"z\"}]"} << QStringList{"a", "b"};
    // 2x3 and 3x2 have no cuts in common: the axes of the other mesh stand for those of the same sizes, in another order.
    QTest::newRow("sizes that do not divide each other")
        << QStringList{"sdy.mesh @a = <[\"x\"=2, \"y\"=3]>", "sdy.mesh @b = <[\"x\"=3, \"y\"=2]>"}
        << QStringList{"@a, [{\"x\"}, {\"y\"}]", "@b, [{\"y\"}, {\"x\"}]"} << "x=2,y=3"
        << QStringList{"[{\"x\"}, {\"y\"}]", "[{\"x\"}, {\"y\"}]"} << QStringList{"a", "b"};
    QTest::newRow("on one of the devices") << QStringList{a42, "sdy.mesh @one = <[], device_ids=[5]>", "sdy.mesh @none = <[]>"}
                                           << QStringList{"@a, [{\"x\"}, {}]", "@one, []", "@none, [{?}, {}]"} << "x=4,y=2"
                                           << QStringList{"[{\"x\"}, {}]", "[{}, {}]", "[{?}, {}]"} << QStringList{"a", "a", "a"};
    QTest::newRow("a mesh that nothing names is none")
        << QStringList{"sdy.mesh @big = <[\"q\"=64]>", a42} << QStringList{"@a, [{\"x\"}, {}]"} << "x=4,y=2"
        << QStringList{"[{\"x\"}, {}]"} << QStringList{"a"};
}

void TestOneMesh::shardings()
{
    QFETCH(QStringList, meshes);
    QFETCH(QStringList, before);
    QFETCH(QString, mesh);
    QFETCH(QStringList, after);
    QFETCH(QStringList, orders);

    Program program = programOf(withArguments(meshes, before));
    const auto borders = ontoOneMesh(program);
    QVERIFY2(borders, borders ? "" : describe(borders.error()).c_str());
    QCOMPARE(QString::fromStdString(program.meshes.front().mesh.text()), mesh);
    const Function& function = program.functions.front();
    QStringList found;
    QStringList places;
    for (std::size_t i = 0; i < function.arguments().size(); ++i) {
        const TensorSharding& sharding = *function[function.arguments()[i]].sharding;
        QCOMPARE(sharding.mesh, 0);
        found << QString::fromStdString(shardyText(sharding, program.meshes.front().mesh));
        places << QString::fromStdString(program.meshes[static_cast<std::size_t>(borders->front().arguments[i])].name);
    }
    QCOMPARE(found, after);
    QCOMPARE(places, orders);
    for (const NamedMesh& named : program.meshes)
        QVERIFY(named.mesh.axes() == program.meshes.front().mesh.axes());
}

void TestOneMesh::problems_data()
{
    QTest::addColumn<QStringList>("meshes");
    QTest::addColumn<QStringList>("shardings");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("message");

    QTest::newRow("fewer devices")
        << QStringList{"sdy.mesh @a = <[\"x\"=4]>", "sdy.mesh @b = <[\"x\"=2]>"}
        << QStringList{"@a, [{\"x\"}, {}]", "@b, [{}, {}]"} << "MW1120"
        << "arrays are on different devices: the mesh @a has devices 0 to 3, and @b has devices 0 to 1";
    QTest::newRow("a device that is not there")
        << QStringList{"sdy.mesh @a = <[\"x\"=4]>", "sdy.mesh @one = <[], device_ids=[4]>"}
        << QStringList{"@a, [{\"x\"}, {}]", "@one, []"} << "MW1120"
        << "arrays are on different devices: the mesh @a has devices 0 to 3, and @one has device 4";
    // z is x_0, x_1 with a cut at 3; its halves end inside of x_0.
    QTest::newRow("a part across a cut")
        << QStringList{"sdy.mesh @z = <[\"z\"=6]>", "sdy.mesh @a = <[\"x\"=3, \"y\"=2]>"}
        << QStringList{"@z, [{\"z\":(1)2}, {}]", "@a, [{}, {\"x\"}]"} << "MW1213"
        << "\"z\":(1)2 of the mesh @z ends inside an axis of @a, in the middle of one of its pieces";
}

void TestOneMesh::problems()
{
    QFETCH(QStringList, meshes);
    QFETCH(QStringList, shardings);
    QFETCH(QString, id);
    QFETCH(QString, message);

    Program program = programOf(withArguments(meshes, shardings));
    const auto borders = ontoOneMesh(program);
    QVERIFY(!borders);
    QCOMPARE(QString::fromStdString(borders.error().front().id), id);
    QCOMPARE(QString::fromStdString(borders.error().front().message), message);
}

/// The axes of collectives and of manual computations are those of the mesh that their shardings are on.
void TestOneMesh::collectivesAndManualAxes()
{
    const QString text = R"(sdy.mesh @a = <["x"=4, "y"=2]>
sdy.mesh @b = <["u"=2, "v"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"v"} %x out_sharding=<@b, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@b, [{"v"}, {}]>] out_shardings=[<@b, [{"v"}, {}]>] manual_axes={"v"} (%p: tensor<2x8xf32>) {
    sdy.return %p : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
})";
    QString onA = text; // the collective's operand has no sharding there: it may be anything
    onA.replace("%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@a, [{\"x\"}, {}]>}", "%x: tensor<8x8xf32>");
    onA.replace("-> tensor<8x8xf32> {\n  %0", "-> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@a, [{\"x\"}, {}]>}) {\n  %0");
    Program program = programOf(onA);
    QVERIFY(ontoOneMesh(program));
    // The manual computation's mesh is the common one, cut where x of the other ends.
    const Mesh& mesh = program.meshes.front().mesh;
    QCOMPARE(QString::fromStdString(mesh.text()), QString("u=2,v_0=2,v_1=2"));
    const Function& function = program.functions.front();
    for (const OpId id : function.body().ops) {
        const Op& op = function[id];
        if (const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes))
            QCOMPARE(collective->axes, (AxisRefs{{1, 1, 2}, {2, 1, 2}}));
        if (const auto* computation = std::get_if<ComputationAttributes>(&op.attributes)) {
            QCOMPARE(computation->manualAxes, (std::vector<std::int32_t>{1, 2}));
            QCOMPARE(
                QString::fromStdString(shardyText(computation->inShardings.front(), mesh)), QString("[{\"v_0\", \"v_1\"}, {}]"));
        }
    }
    QCOMPARE(QString::fromStdString(shardyText(*function.resultShardings.front(), mesh)), QString("[{\"u\", \"v_0\"}, {}]"));
}

MESHWRIGHT_TEST(TestOneMesh)

} // namespace tst_one_mesh

#include "tst_one_mesh.moc"
