// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "core/sharding/shardy_text.h"
#include "core/support/file.h"
#include "core/text/program_text.h"
#include "tests/core/text/compare_programs.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <filesystem>
#include <map>

namespace tst_jax_programs {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

std::filesystem::path folder()
{
    return std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "tests" / "core" / "text" / "programs";
}

std::string textOf(const QString& name)
{
    return valueOf(readFile(folder() / name.toStdString()));
}

/// How often each op occurs, blocks included: "add 2, call 1".
QString countsOf(const Function& function)
{
    std::map<std::string, int> counts;
    forEachOp(function, [&](OpId op) { ++counts[std::string(opName(function[op]))]; });
    QStringList list;
    for (const auto& [name, count] : counts)
        list << QString("%1 %2").arg(name.c_str()).arg(count);
    return list.join(", ");
}

} // namespace

/// Programs in the form in which JAX prints them.
class TestJaxPrograms : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void read_data();
    void read();
    void roundTrip_data() { read_data(); }
    void roundTrip();
    void partitioned_data();
    void partitioned();
    void mlp();
    void decoder();
    void gspmd();
    void gspmdMeshes_data();
    void gspmdMeshes();
    void tilesOnAMesh();
    void gspmdShardMap();
    void gspmdPartlyManual();
    void exportedShardings_data();
    void exportedShardings();
    void gspmdShardMapsNotUnderstood_data();
    void gspmdShardMapsNotUnderstood();
    void noGspmdMesh();
    void dynamicSizes();
    void resources_data();
    void resources();
};

void TestJaxPrograms::read_data()
{
    QTest::addColumn<QString>("file");
    for (const char* file : {"mlp_step.mlir", "decoder_step.mlir", "shard_map.mlir", "gspmd_step.mlir", "gspmd_shard_map.mlir"})
        QTest::newRow(file) << QString(file);
}

void TestJaxPrograms::read()
{
    QFETCH(QString, file);
    Problems warnings;
    const auto program = readProgram(textOf(file), file.toStdString(), &warnings);
    QVERIFY2(program, qPrintable(described(program)));
    QVERIFY2(warnings.empty(), describe(warnings).c_str());
    QVERIFY2(verify(*program).empty(), describe(verify(*program)).c_str());
}

/// What is written is read as the same program, and written in the same words again.
void TestJaxPrograms::roundTrip()
{
    QFETCH(QString, file);
    const auto program = readProgram(textOf(file), file.toStdString());
    QVERIFY2(program, qPrintable(described(program)));
    const std::string written = writeProgram(*program);
    const auto again = readProgram(written, "written.mlir");
    QVERIFY2(again, qPrintable(described(again)));
    const std::string difference = differenceOf(*program, *again);
    QVERIFY2(difference.empty(), difference.c_str());
    QCOMPARE(text(writeProgram(*again)), text(written));
}

void TestJaxPrograms::partitioned_data()
{
    QTest::addColumn<QString>("file");
    for (const char* file : {"mlp_step.mlir", "decoder_step.mlir", "gspmd_step.mlir", "gspmd_shard_map.mlir"})
        QTest::newRow(file) << QString(file);
}

void TestJaxPrograms::partitioned()
{
    QFETCH(QString, file);
    const auto device = propagateAndPartition(valueOf(readProgram(textOf(file), file.toStdString())));
    QVERIFY2(device, qPrintable(described(device)));
}

void TestJaxPrograms::mlp()
{
    const Program program = valueOf(readProgram(textOf("mlp_step.mlir"), "mlp_step.mlir"));
    QCOMPARE(program.functions.size(), std::size_t{1});
    const Function& step = program.functions.front();
    QCOMPARE(text(step[step.arguments()[0]].name), QString("params['layers'][0]['w']"));
    QCOMPARE(text(step.resultNames[2]), QString("result[1]"));
    QCOMPARE(step.donations.size(), std::size_t{2});
    QVERIFY2(countsOf(step).contains("dot_general 2") && countsOf(step).contains("reduce 2"), qPrintable(countsOf(step)));
    QVERIFY(program.trailer.find("#loc12") != std::string::npos);
}

void TestJaxPrograms::decoder()
{
    const Program program = valueOf(readProgram(textOf("decoder_step.mlir"), "decoder_step.mlir"));
    const Function& step = program.functions.front();
    const QString counts = countsOf(step);
    for (const char* op : {"gather 1", "scatter 1", "repeat 1", "case 1", "chlo.top_k 1", "stablehlo.sort 1", "concatenate 1",
             "optimization_barrier 1", "slice 3", "stablehlo.rng_bit_generator 1", "square 1"})
        QVERIFY2(counts.contains(op), qPrintable(QString(op) + " is not among " + counts));
    forEachOp(step, [&](OpId op) { // a scan over the layers' weights
        if (step[op].kind == OpKind::Repeat) {
            QCOMPARE(step[op].as<RepeatAttributes>().count, std::int64_t{4});
            QCOMPARE(step[op].as<RepeatAttributes>().stacked, std::size_t{1});
        }
    });
    QCOMPARE(program.meshes.front().mesh.deviceAt(1), DeviceId{2});
}

/// Shardings in XLA's tiled form become shardings on the one mesh that makes them all.
void TestJaxPrograms::gspmd()
{
    const Program program = valueOf(readProgram(textOf("gspmd_step.mlir"), "gspmd_step.mlir"));
    QCOMPARE(program.meshes.size(), std::size_t{1});
    const Mesh& mesh = program.meshes.front().mesh;
    QCOMPARE(text(mesh.text()), QString("axis_0=4,axis_1=2"));
    const Function& step = program.functions.front();
    const auto specOf = [&](ValueId value) { return text(shardyText(*step[value].sharding, mesh)); };
    QCOMPARE(specOf(step.arguments()[0]), QString("[{\"axis_0\", \"axis_1\"}, {}]"));
    QCOMPARE(specOf(step.arguments()[1]), QString("[{\"axis_0\"}, {}]"));
    QCOMPARE(specOf(step.arguments()[2]), QString("[{}]"));
    QVERIFY(step.resultShardings[0].has_value());
    QVERIFY(!step.resultShardings[1].has_value());
    int constraints = 0;
    forEachOp(step, [&](OpId op) {
        if (step[op].kind != OpKind::ShardingConstraint)
            return;
        const TensorSharding& sharding = step[op].as<ConstraintAttributes>().sharding;
        QCOMPARE(sharding.dims[1].open, constraints == 1); // the second one leaves dimension 1 open
        ++constraints;
    });
    QCOMPARE(constraints, 2);
}

void TestJaxPrograms::gspmdMeshes_data()
{
    QTest::addColumn<QString>("a");
    QTest::addColumn<QString>("b");
    QTest::addColumn<QString>("mesh");
    QTest::newRow("one") << "{devices=[8,1]<=[8]}"
                         << "{replicated}"
                         << "axis_0=8";
    QTest::newRow("parts of one") << "{devices=[8,1]<=[8]}"
                                  << "{devices=[2,4]<=[8]}"
                                  << "axis_0=2,axis_1=4";
    QTest::newRow("transposed") << "{devices=[4,2]<=[2,4]T(1,0)}"
                                << "{devices=[2,4]<=[8]}"
                                << "axis_0=2,axis_1=4";
    QTest::newRow("two cuts") << "{devices=[4,2]<=[8]}"
                              << "{devices=[2,4]<=[8]}"
                              << "axis_0=2,axis_1=2,axis_2=2";
    QTest::newRow("a list") << "{devices=[2,4]0,1,2,3,4,5,6,7}"
                            << "{replicated}"
                            << "axis_0=2,axis_1=4";
    QTest::newRow("no tiles") << "{replicated}"
                              << "{replicated}"
                              << "axis_0=8";
}

void TestJaxPrograms::gspmdMeshes()
{
    QFETCH(QString, a);
    QFETCH(QString, b);
    QFETCH(QString, mesh);
    const QString module = QString("module attributes {mhlo.num_partitions = 8 : i32} {\n"
                                   "func.func public @main(%arg0: tensor<8x8xf32> {mhlo.sharding = \"%1\"}, "
                                   "%arg1: tensor<8x8xf32> {mhlo.sharding = \"%2\"}) -> tensor<8x8xf32> {\n"
                                   "%sum = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>\nreturn %sum : tensor<8x8xf32>\n}\n}\n")
                               .arg(a, b);
    Problems warnings;
    const auto program = readProgram(module.toStdString(), "tiles.mlir", &warnings);
    QVERIFY2(program, qPrintable(described(program)));
    QVERIFY2(warnings.empty(), describe(warnings).c_str());
    QCOMPARE(program->meshes.size(), std::size_t{1});
    QCOMPARE(text(program->meshes.front().mesh.text()), mesh);
}

/// In a module with a mesh, tiles of as many devices are on it.
void TestJaxPrograms::tilesOnAMesh()
{
    const std::string module = R"(sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})";
    Problems warnings;
    const auto program = readProgram(module, "tiles.mlir", &warnings);
    QVERIFY2(program, qPrintable(described(program)));
    QVERIFY2(warnings.empty(), describe(warnings).c_str());
    QCOMPARE(countsOf(program->functions.front()), QString("sharding_constraint 1"));
}

/// Between the two calls each device has its own pieces: nothing is partitioned there.
void TestJaxPrograms::gspmdShardMap()
{
    const std::string module = R"(module attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%arg0: tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<2xf32>
    %2 = stablehlo.negate %1 : tensor<2xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<2xf32>) -> tensor<2xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<2xf32>) -> tensor<8xf32>
    return %4 : tensor<8xf32>
  }
})";
    Problems warnings;
    const auto program = readProgram(module, "manual.mlir", &warnings);
    QVERIFY2(program, qPrintable(described(program)));
    QVERIFY2(warnings.empty(), describe(warnings).c_str());
    QVERIFY2(verify(*program).empty(), describe(verify(*program)).c_str());
    QCOMPARE(countsOf(program->functions.front()), QString("manual_computation 1, negate 1, sharding_constraint 1"));
    const auto device = propagateAndPartition(*program);
    QVERIFY2(device, qPrintable(described(device)));
}

/// As JAX 0.4 lowers a shard_map that is manual over one axis of two, with a constant and the device's number in its body.
void TestJaxPrograms::gspmdPartlyManual()
{
    const std::string module = R"(module attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%arg0: tensor<8x6xf32> {mhlo.sharding = "{devices=[4,2]<=[8]}"}) -> tensor<8x6xf32> {
    %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<8x6xf32>) -> tensor<2x6xf32>
    %2 = call @shmap_body(%1) : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"} : (tensor<2x6xf32>) -> tensor<8x6xf32>
    %5 = stablehlo.negate %4 : tensor<8x6xf32>
    return %5 : tensor<8x6xf32>
  }
  func.func private @shmap_body(%arg0: tensor<2x6xf32>) -> (tensor<2x6xf32> {jax.result_info = "[('x',), None]"}) {
    %cst = stablehlo.constant dense<2.0> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x6xf32>
    %1 = stablehlo.partition_id : tensor<ui32>
    %c = stablehlo.constant dense<2> : tensor<ui32>
    %2 = stablehlo.divide %1, %c : tensor<ui32>
    %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x6xf32>
    %5 = stablehlo.multiply %arg0, %0 : tensor<2x6xf32>
    %6 = stablehlo.add %5, %4 : tensor<2x6xf32>
    return %6 : tensor<2x6xf32>
  }
})";
    Problems warnings;
    const auto program = readProgram(module, "manual.mlir", &warnings);
    QVERIFY2(program, qPrintable(described(program)));
    QVERIFY2(warnings.empty(), describe(warnings).c_str());
    QVERIFY2(verify(*program).empty(), describe(verify(*program)).c_str());
    const Function& main = program->functions.front();
    // Everything of the body is in it: outside are the two constraints that were there, the computation and one more op.
    QCOMPARE(main.body().ops.size(), std::size_t{3});
    const Op& computation = main[main.body().ops[1]];
    QCOMPARE(computation.kind, OpKind::Computation);
    const auto& attributes = computation.as<ComputationAttributes>();
    QCOMPARE(attributes.manualAxes, (std::vector<std::int32_t>{0}));
    QCOMPARE(text(layoutText(attributes.inShardings.front(), program->meshes.front().mesh)), QString("P('axis_0',)"));
    QVERIFY(attributes.inShardings.front().dims[1].open && attributes.outShardings.front().dims[1].open);
    const auto again = readProgram(writeProgram(*program), "written.mlir");
    QVERIFY2(again, qPrintable(described(again)));
    QCOMPARE(text(differenceOf(*program, *again)), QString());
    const auto device = propagateAndPartition(*program);
    QVERIFY2(device, qPrintable(described(device)));
}

void TestJaxPrograms::exportedShardings_data()
{
    QTest::addColumn<QString>("argument"); // its attributes
    QTest::addColumn<QString>("body"); // of %a, which makes %9
    QTest::addColumn<QString>("id"); // empty: it is read
    const QString frontend = R"mlir(mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22x\22}]>"})mlir";
    const QString negate = "%9 = stablehlo.negate %a : tensor<8xf32>\n";
    QTest::newRow("beside the tiles that say the same") << frontend + ", mhlo.sharding = \"{devices=[4]<=[4]}\"" << negate << "";
    QTest::newRow("alone") << frontend << negate << "MW1364";
    QTest::newRow("other attributes") << "mhlo.frontend_attributes = {inlineable = \"false\"}" << negate << "";
    QTest::newRow("the ends of a manual computation")
        << ""
        << "%1 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%a) : (tensor<8xf32>) -> tensor<2xf32>\n"
           "%2 = stablehlo.negate %1 : tensor<2xf32>\n"
           "%9 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%2) : (tensor<2xf32>) -> tensor<8xf32>\n"
        << "MW1364 MW1364";
}

/// Shardy's dialect as JAX exports it for XLA: what says nothing else than the tiles beside it is kept, the rest is refused.
void TestJaxPrograms::exportedShardings()
{
    QFETCH(QString, argument);
    QFETCH(QString, body);
    QFETCH(QString, id);
    const QString module = "module attributes {mhlo.num_partitions = 4 : i32} {\nfunc.func public @main(%a: tensor<8xf32> {"
        + argument + "}) -> tensor<8xf32> {\n" + body + "return %9 : tensor<8xf32>\n}\n}";
    const auto program = readProgram(module.toStdString(), "exported.mlir");
    QCOMPARE(program ? QString() : idsOf(program), id);
}

void TestJaxPrograms::gspmdShardMapsNotUnderstood_data()
{
    QTest::addColumn<QString>("body");
    QTest::addColumn<QString>("why");
    const QString enter
        = "%1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = \"{manual}\"} : (tensor<8xf32>) -> "
          "tensor<2xf32>\n";
    const QString cut = "%0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = \"{devices=[4]<=[4]}\"} : (tensor<8xf32>) -> "
                        "tensor<8xf32>\n";
    const QString leave = "%9 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = \"{devices=[4]<=[4]}\"} : "
                          "(tensor<2xf32>) -> tensor<8xf32>\n";
    const QString inside = "%2 = stablehlo.negate %1 : tensor<2xf32>\n";
    QTest::newRow("no layout of the operand") << "%0 = stablehlo.sine %a : tensor<8xf32>\n" + enter + inside + leave
                                              << "no mhlo.sharding states the sharding of the array";
    QTest::newRow("no manual axes") << cut + QString(enter).replace("{manual}", "{replicated}") + inside + leave
                                    << "its manual axes are not given";
    QTest::newRow("another piece") << cut + QString(enter).replace("tensor<2xf32>", "tensor<4xf32>")
            + "%3 = stablehlo.slice %1 [0:2] : (tensor<4xf32>) -> tensor<2xf32>\n%2 = stablehlo.negate %3 : tensor<2xf32>\n"
            + leave << "its sharding does not make f32[4] of f32[8]";
    QTest::newRow("pieces and wholes") << cut + enter
            + "%4 = stablehlo.slice %a [0:2] : (tensor<8xf32>) -> tensor<2xf32>\n%2 = stablehlo.add %1, %4 : tensor<2xf32>\n"
            + leave << "add takes a piece and a whole array";
    QTest::newRow("another whole") << cut + enter + inside
            + QString(leave).replace("[4]<=[4]", "[2,2]<=[4] last_tile_dim_replicate")
                                   << "its sharding does not make f32[8] of f32[2]";
    QTest::newRow("cut once more") << cut + enter
            + "%3 = stablehlo.custom_call @SPMDFullToShardShape(%1) {mhlo.sharding = \"{manual}\"} : (tensor<2xf32>) -> "
              "tensor<2xf32>\n"
              "%2 = stablehlo.negate %3 : tensor<2xf32>\n"
            + leave << "a piece is cut once more";
    QTest::newRow("nothing comes back") << cut + enter + inside
            + "%5 = stablehlo.concatenate %2, %2, %2, %2, dim = 0 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, "
              "tensor<2xf32>) -> tensor<8xf32>\n%9 = stablehlo.sine %5 : tensor<8xf32>\n"
                                        << "a piece leaves the block";
}

/// Such a program is read and written as it is, with a warning; it is not partitioned.
void TestJaxPrograms::gspmdShardMapsNotUnderstood()
{
    QFETCH(QString, body);
    QFETCH(QString, why);
    const std::string module
        = "module attributes {mhlo.num_partitions = 4 : i32} {\nfunc.func public @main(%a: tensor<8xf32>) -> "
          "(tensor<8xf32> {mhlo.sharding = \"{devices=[4]<=[4]}\"}) {\n"
        + body.toStdString() + "return %9 : tensor<8xf32>\n}\n}";
    Problems warnings;
    const auto program = readProgram(module, "manual.mlir", &warnings);
    QVERIFY2(program, qPrintable(described(program)));
    QCOMPARE(warnings.size(), std::size_t{1});
    QCOMPARE(text(warnings.front().id), QString("MW1356"));
    QVERIFY2(text(warnings.front().message).contains(why), warnings.front().message.c_str());
    QVERIFY(warnings.front().place.line > 2);
    const auto again = readProgram(writeProgram(*program), "written.mlir");
    QVERIFY2(again, qPrintable(described(again)));
    const auto device = propagateAndPartition(*program);
    QVERIFY(!device);
    QCOMPARE(text(device.error().front().id), QString("MW1241"));
}

void TestJaxPrograms::noGspmdMesh()
{
    const std::string module
        = R"(func.func public @main(%arg0: tensor<6xf32> {mhlo.sharding = "{devices=[2,3]<=[6] last_tile_dim_replicate}"},
    %arg1: tensor<6xf32> {mhlo.sharding = "{devices=[3,2]<=[6] last_tile_dim_replicate}"}) -> tensor<6xf32> {
  return %arg0 : tensor<6xf32>
})";
    Problems warnings;
    const auto program = readProgram(module, "tiles.mlir", &warnings);
    QVERIFY2(program, qPrintable(described(program)));
    QCOMPARE(warnings.size(), std::size_t{1});
    QCOMPARE(text(warnings.front().id), QString("MW1332"));
    QVERIFY(program->meshes.empty());
    QVERIFY(writeProgram(*program).find("{devices=[3,2]<=[6] last_tile_dim_replicate}") != std::string::npos); // kept
}

void TestJaxPrograms::dynamicSizes()
{
    const auto program = readProgram("func.func public @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {\n"
                                     "  return %arg0 : tensor<?x4xf32>\n}\n",
        "dynamic.mlir");
    QVERIFY(!program);
    QCOMPARE(text(program.error().front().id), QString("MW1322"));
    QCOMPARE(program.error().front().place.line, 1);
    QVERIFY2(
        program.error().front().message.find("tensor<?x4xf32>") != std::string::npos, program.error().front().message.c_str());
}

void TestJaxPrograms::resources_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("isThere");
    QTest::newRow("there") << "weights" << true;
    QTest::newRow("left out") << "__elided__" << false;
}

/// Data behind the module, little-endian, with four bytes before them that say how they are aligned.
void TestJaxPrograms::resources()
{
    QFETCH(QString, name);
    QFETCH(bool, isThere);
    const QString module
        = QString("module {\n  func.func public @main() -> tensor<2xf32> {\n"
                  "    %cst = stablehlo.constant dense_resource<%1> : tensor<2xf32>\n"
                  "    return %cst : tensor<2xf32>\n  }\n}\n\n{-#\n  dialect_resources: {\n    builtin: {\n"
                  "      other: \"0x0400000000000000\",\n      weights: \"0x040000000000803F00000040\"\n    }\n  }\n#-}\n")
              .arg(name);
    const auto program = readProgram(module.toStdString(), "resources.mlir");
    QVERIFY2(program, qPrintable(described(program)));
    const Function& function = program->functions.front();
    const auto& data = function[function.body().ops.front()].as<ConstantAttributes>().data;
    QCOMPARE(data.isElided(), !isThere);
    if (isThere)
        QVERIFY(writeProgram(*program).find("dense<[1.000000e+00, 2.000000e+00]>") != std::string::npos);
}

MESHWRIGHT_TEST(TestJaxPrograms)

} // namespace tst_jax_programs

#include "tst_jax_programs.moc"
