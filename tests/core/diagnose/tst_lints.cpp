// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/fix_program.h"
#include "core/diagnose/lints.h"
#include "core/study/edit_text.h"
#include "core/text/program_text.h"
#include "sim/session/engine.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QDir>

namespace tst_lints {

using namespace meshwright;

/// Every lint: a study or a program that has it, and one that has not.
class TestLints : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void studies_data();
    void studies();
    void programs_data();
    void programs();
    void fixedPrograms_data();
    void fixedPrograms();
    void noFixBringsAnotherFinding();
    void manualComputations_data();
    void manualComputations();
    void examples_data();
    void examples();
};

namespace {

/// The problems of a study's step, or why there are none.
Problems lintsOf(const Study& study)
{
    const auto built = sim::buildPhase(study);
    if (!built)
        return built.error();
    const DeviceStage& stage = built->partitioned.device.stages.front();
    return lintStudy(study, built->arrays,
        {*built->partitioned.propagated.find(built->mainFunction), *stage.find(built->mainFunction), stage.meshes});
}

QString idsOf(const Problems& problems)
{
    QStringList ids;
    for (const Problem& problem : problems)
        ids << tests::text(problem.id);
    ids.removeDuplicates();
    ids.sort();
    return ids.join(' ');
}

const QByteArray kHead = "meshwright: 1\nmesh: {data: 4, model: 2}\nbatch: 96\ntrain: {steps: 1, data: random}\n";

} // namespace

void TestLints::studies_data()
{
    QTest::addColumn<QByteArray>("rest");
    QTest::addColumn<QString>("id"); // that must be found; with a minus one that must not be
    QTest::addColumn<QString>("words"); // of the message or the rule
    QTest::addColumn<QString>("place");
    QTest::addColumn<bool>("fixed"); // the fix settings do away with it
    const QByteArray mse = "optimizer: {sgd: {learning_rate: 0.1}}\nmodel: {mlp: {layers: [64, 128, 128, 16], loss: mse}}\n";
    const QByteArray batch = "sharding: {x: [data, null], y: [data, null]";
    const QByteArray pair = ", layers.1.w: [null, model], layers.2.w: [model, null]";

    // A step of 64 x 128, 128 x 128 and 128 x 16 products: 8 devices do what 4 could.
    QTest::newRow("unused axis") << mse + batch + "}\n"
                                 << "MW1270"
                                 << "\"model\" splits nothing"
                                 << "mesh.model" << true;
    const QByteArray layers = "model: {transformer: {layers: 4, hidden: 64, heads: 4, vocabulary: 128, ffn: 128}}\nsequence: 16\n"
                              "optimizer: {adam: {learning_rate: 0.001}}\n";
    const QByteArray tokens = "sharding: {x: [data, null], y: [data, null]";
    QTest::newRow("layers split among devices")
        << layers + tokens + ", \"*.w\": [model]}\n"
        << "MW1280"
        << "6 arrays are split over model along dim 0, over which a loop of 4 turns runs: layers.attention.q.w"
        << "sharding" << false;
    QTest::newRow("one array of the layers") << layers + tokens + ", layers.ffn.up.w: [model]}\n"
                                             << "MW1280"
                                             << "1 array is split over model along dim 0"
                                             << "sharding.layers.ffn.up.w" << false;
    QTest::newRow("another dimension of the layers") << layers + tokens + ", \"layers.*.w\": [null, model]}\n"
                                                     << "-MW1280"
                                                     << ""
                                                     << "" << false;
    QTest::newRow("all axes used") << mse + batch + pair + "}\n"
                                   << "-MW1270"
                                   << ""
                                   << "" << false;
    QTest::newRow("no arrays are split") << mse + "sharding: {x: [], y: []}\n"
                                         << "MW1270"
                                         << "\"data\""
                                         << "mesh.data" << true;

    QTest::newRow("work done twice")
        << QByteArray("optimizer: {sgd: {learning_rate: 0.1}}\nmodel: {mlp: {layers: [1024, 1024, 64, 16], loss: mse}}\n") + batch
            + ", layers.2.w: [null, model]}\n"
        << "MW1271"
        << "computed twice"
        << "mesh.model" << false;
    QTest::newRow("little work done twice")
        << QByteArray("optimizer: {sgd: {learning_rate: 0.1}}\nmodel: {mlp: {layers: [64, 1024, 1024, 16], loss: mse}}\n") + batch
            + pair + "}\n"
        << "-MW1271"
        << ""
        << "" << false;

    QTest::newRow("gathered and split again")
        << mse + batch + ", layers.0.w: [null, model], layers.1.w: [model, null], layers.0.out: [data, null]}\n"
        << "MW1272"
        << "gathers it over \"model\""
        << "sharding.layers.0.out" << true;
    QTest::newRow("a constraint that agrees")
        << mse + batch + ", layers.0.w: [null, model], layers.1.w: [model, null], layers.0.out: [data, model]}\n"
        << "-MW1272"
        << ""
        << "" << false;

    const QByteArray adam = "optimizer: {adam: {}}\nmodel: {mlp: {layers: [64, 128, 128, 16], loss: mse}}\n";
    QTest::newRow("pinned state") << adam + batch + pair + ", opt.m.layers.1.w: []}\n"
                                  << "MW1274"
                                  << "64.0 KiB of state a device instead of 32.0 KiB"
                                  << "sharding.opt.m.layers.1.w" << true;
    QTest::newRow("states follow") << adam + batch + pair + "}\n"
                                   << "-MW1274"
                                   << ""
                                   << "" << false;
    QTest::newRow("ZeRO-1") << adam + "sharding: {x: [data, null], y: [data, null], 'opt.m.*': [data], 'opt.v.*': [data]}\n"
                            << "-MW1274"
                            << ""
                            << "" << false;

    QTest::newRow("large and whole")
        << QByteArray("optimizer: {sgd: {learning_rate: 0.1}}\nmodel: {mlp: {layers: [256, 256, 256, 16], loss: mse}}\n") + batch
            + ", layers.1.w: [null, model]}\n"
        << "MW1275"
        << "\"layers.0.w\" (f32[256,256]) is whole"
        << "sharding" << true;
    QTest::newRow("small and whole") << mse + batch + pair + "}\n"
                                     << "-MW1275"
                                     << ""
                                     << "" << false;
    QTest::newRow("all whole: data parallel") << mse + batch + "}\n"
                                              << "-MW1275"
                                              << ""
                                              << "" << false;

    const QByteArray logits
        = "optimizer: {sgd: {learning_rate: 0.1}}\nmodel: {mlp: {layers: [64, 128, 4096], loss: cross_entropy}}\n";
    // 24 rows of 4096 numbers of 4 bytes on each device, of which one number for each row is left.
    QTest::newRow("logits gathered") << logits + batch + ", layers.1.w: [null, model], layers.1.out: [data, null]}\n"
                                     << "MW1276"
                                     << "384 KiB on each device; the reduced values are 96 B"
                                     << "sharding.layers.1.out" << true;
    const QByteArray narrow
        = "optimizer: {sgd: {learning_rate: 0.1}}\nmodel: {mlp: {layers: [8, 8, 8], loss: mse, bias: false}}\n"
          "sharding: {layers.0.w: [[data, model], null], layers.1.w: [[data, model], null], ";
    // Two weights of 256 B, to be gathered twice and their gradients scattered once.
    QTest::newRow("a whole batch, all parameters split") << narrow + "x: [], y: []}\n"
                                                         << "MW1277"
                                                         << "would move about 1.50 KiB"
                                                         << "sharding.x" << false;
    QTest::newRow("all split") << narrow + "x: [[data, model]], y: [[data, model]]}\n"
                               << "-MW1277"
                               << ""
                               << "" << false;
    QTest::newRow("logits stay sharded") << logits + batch + ", layers.0.w: [null, model], layers.1.w: [null, model]}\n"
                                         << "-MW1276"
                                         << ""
                                         << "" << false;
}

void TestLints::studies()
{
    QFETCH(QByteArray, rest);
    QFETCH(QString, id);
    QFETCH(QString, words);
    QFETCH(QString, place);
    QFETCH(bool, fixed);
    const std::string text = (kHead + rest).toStdString();
    const auto study = readStudy(text, "study.yaml");
    QVERIFY2(study, qPrintable(tests::described(study)));
    const Problems problems = lintsOf(*study);
    const QString said = tests::text(describe(problems));
    if (id.startsWith('-')) {
        QVERIFY2(!idsOf(problems).contains(id.mid(1)), qPrintable(said));
        return;
    }
    const auto found
        = std::find_if(problems.begin(), problems.end(), [&](const Problem& problem) { return tests::text(problem.id) == id; });
    QVERIFY2(found != problems.end(), qPrintable(said));
    QVERIFY2(said.contains(words), qPrintable(said));
    QVERIFY2(tests::text(found->place.path).startsWith(place) && found->place.line > 0, qPrintable(said));
    QVERIFY(!found->rule.empty() && !found->fix.empty());
    QVERIFY(found->severity != Severity::Error);
    QVERIFY2(found->fixSettings.empty() != fixed, qPrintable(said));
    if (!fixed)
        return;
    const auto edited = editedText(text, "study.yaml", found->fixSettings);
    QVERIFY2(edited, qPrintable(tests::described(edited)));
    const auto after = readStudy(edited->text, "study.yaml");
    QVERIFY2(after, edited->text.c_str());
    const Problems left = lintsOf(*after);
    const bool gone = std::none_of(left.begin(), left.end(),
        [&](const Problem& problem) { return problem.id == found->id && problem.message == found->message; });
    QVERIFY2(gone, qPrintable(tests::text(edited->text) + tests::text(describe(left))));
}

void TestLints::programs_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("ids");
    const QByteArray mesh = "module @m {\n  sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\n";
    const QByteArray drift = "  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, "
                             "{\"b\"}]>} loc(\"params['w']\")) -> (tensor<8x8xf32> "
                             "{jax.result_info = \"result['w']\"%1}) {\n    %0 = stablehlo.add %arg0, %arg0 : tensor<8x8xf32>\n  "
                             "  return %0 : tensor<8x8xf32>\n  }\n}\n";
    QByteArray drifts = mesh + drift;
    QByteArray stays = drifts;
    drifts.replace("%1", ", sdy.sharding = #sdy.sharding<@mesh, [{\"b\"}, {\"a\"}]>");
    stays.replace("%1", "");
    QTest::newRow("a parameter that drifts") << drifts << "MW1273";
    QTest::newRow("a parameter that stays") << stays << "";

    const QByteArray product = "  func.func public @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, "
                               "{}]>}, %w: tensor<8x8xf32> {sdy.sharding = "
                               "#sdy.sharding<@mesh, [{}, {%1}]>}) -> tensor<8x8xf32> {\n    %0 = stablehlo.dot_general %x, %w, "
                               "contracting_dims = [1] x [0] : (tensor<8x8xf32>, "
                               "tensor<8x8xf32>) -> tensor<8x8xf32>\n    return %0 : tensor<8x8xf32>\n  }\n}\n";
    QByteArray half = mesh + product;
    QByteArray full = half;
    half.replace("%1", "");
    full.replace("%1", "\"b\"");
    QTest::newRow("an axis that nothing uses") << half << "MW1270";
    QTest::newRow("both axes") << full << "";
    const auto inside = [&](const QByteArray& opens, const QByteArray& closes) {
        QByteArray text = full;
        text.replace("%x: ", "%p: tensor<i1>, %x: ");
        text.replace("%0 = ", opens + "%1 = ")
            .replace("    return %0", "    stablehlo.return %1 : tensor<8x8xf32>\n" + closes + "return %0");
        return text;
    };
    QTest::newRow("both axes in a branch") << inside("%0 = \"stablehlo.if\"(%p) ({\n",
        "}, {\n%2 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> "
        "tensor<8x8xf32>\nstablehlo.return %2 : tensor<8x8xf32>\n}) : (tensor<i1>) -> tensor<8x8xf32>\n")
                                           << "";
    QTest::newRow("both axes in a loop") << inside(
        "%0 = stablehlo.while(%y = %x) : tensor<8x8xf32>\ncond {\nstablehlo.return %p : tensor<i1>\n} do {\n", "}\n")
                                         << "MW1279"; // and nobody knows how often it runs

    const QByteArray constraint = "  func.func public @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, "
                                  "{\"b\"}]>}, %y: tensor<8x8xf32> {sdy.sharding = "
                                  "#sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>}) -> tensor<8x8xf32> {\n    %0 = stablehlo.sine %x : "
                                  "tensor<8x8xf32>\n    %1 = sdy.sharding_constraint %0 "
                                  "<@mesh, [{\"a\"}, {}]> : tensor<8x8xf32>\n    %2 = stablehlo.add %1, %y : tensor<8x8xf32>\n   "
                                  " return %2 : tensor<8x8xf32>\n  }\n}\n";
    QTest::newRow("gathered and split again") << mesh + constraint << "MW1272";
    const auto reshape = [&](const QByteArray& layout, const QByteArray& from, const QByteArray& to) {
        const QByteArray types = "(tensor<" + from + "xf32>) -> tensor<" + to + "xf32>";
        return mesh + "  func.func public @main(%x: tensor<" + from + "xf32> {sdy.sharding = #sdy.sharding<@mesh, " + layout
            + ">}) -> tensor<" + to + "xf32> {\n    %0 = stablehlo.reshape %x : " + types + "\n    return %0 : tensor<" + to
            + "xf32>\n  }\n}\n";
    };
    QTest::newRow("gathered to be reshaped") << reshape("[{}, {\"a\", \"b\"}]", "2x24", "4x12") << "MW1278";
    QTest::newRow("a dimension that a reshape takes apart") << reshape("[{}, {\"a\", \"b\"}]", "2x24", "2x8x3") << "";
    QByteArray needed = constraint;
    needed.replace(") -> tensor<8x8xf32> {", ") -> (tensor<8x8xf32>, tensor<8x8xf32>) {");
    needed.replace("return %2 : tensor<8x8xf32>",
        "%3 = stablehlo.tanh %1 : tensor<8x8xf32>\n    return %2, %3 : "
        "tensor<8x8xf32>, tensor<8x8xf32>");
    QTest::newRow("gathered, and split again by one of two users") << mesh + needed << "";
}

void TestLints::programs()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, ids);
    auto program = readProgram(text.toStdString(), "program.mlir");
    QVERIFY2(program, qPrintable(tests::described(program)));
    const auto partitioned = propagateAndPartition(*std::move(program));
    QVERIFY2(partitioned, qPrintable(tests::described(partitioned)));
    const DeviceStage& stage = partitioned->device.stages.front();
    const Problems problems = lintFunction({partitioned->propagated.functions.front(), stage.functions.front(), stage.meshes});
    QVERIFY2(idsOf(problems) == ids, qPrintable(tests::text(describe(problems))));
}

void TestLints::fixedPrograms_data()
{
    QTest::addColumn<QByteArray>("function");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("written"); // what is in the fixed text
    const QByteArray sharding = "{sdy.sharding = #sdy.sharding<@mesh, [";
    QTest::newRow("a parameter that drifts")
        << "(%w: tensor<8x8xf32> " + sharding
            + "{\"a\"}, {\"b\"}]>, tf.aliasing_output = 0 : i32} loc(\"params['w']\")) -> "
              "(tensor<8x8xf32> {jax.result_info = \"['w']\", sdy.sharding = #sdy.sharding<@mesh, [{\"b\"}, {\"a\"}]>}) {\n"
              "%0 = stablehlo.sine %w : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>\n}\n"
        << "MW1273"
        << "jax.result_info = \"['w']\", sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>";
    QTest::newRow("gathered and split again")
        << "(%x: tensor<8x8xf32> " + sharding + "{\"a\"}, {\"b\"}]>}, %y: tensor<8x8xf32> " + sharding
            + "{\"a\"}, {\"b\"}]>}) -> tensor<8x8xf32> {\n%0 = stablehlo.sine %x : tensor<8x8xf32>\n%1 = sdy.sharding_constraint "
              "%0 "
              "<@mesh, [{\"a\"}, {}]> : tensor<8x8xf32>\n%2 = stablehlo.add %1, %y : tensor<8x8xf32>\nreturn %2 : "
              "tensor<8x8xf32>\n}\n"
        << "MW1272"
        << "stablehlo.add %0, %arg1 :";
    QTest::newRow("a whole parameter beside one that is not")
        << "(%x: tensor<8x64xf32> " + sharding + "{\"a\"}, {}]>}, %v: tensor<64x64xf32> " + sharding
            + "{}, {\"b\"}]>} loc(\"params['v']\"), %w: tensor<64x64xf32> " + sharding
            + "{}, {}]>} loc(\"params['w']\")) -> tensor<8x64xf32> {\n"
              "%0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> "
              "tensor<8x64xf32>\n"
              "%1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> "
              "tensor<8x64xf32>\n"
              "return %1 : tensor<8x64xf32>\n}\n"
        << "MW1275"
        << "[{\"b\"}, {}]";
    const QByteArray rows = "(%x: tensor<SIZEx8xf32> " + sharding + "{\"a\"}, {}]>}) -> (tensor<SIZEx8xf32> " + sharding
        + "{\"a\"}, {}]>}) {\n%0 = stablehlo.sine %x : tensor<SIZEx8xf32>\n%1 = sdy.sharding_constraint %0 <@mesh, [{\"a\"}, "
          "{}]> : tensor<SIZEx8xf32>\nreturn %1 : tensor<SIZEx8xf32>\n}\n";
    QTest::newRow("the batch over an axis that nothing uses") << QByteArray(rows).replace("SIZE", "8") << "MW1270"
                                                              << "sdy.sharding_constraint %0 <@mesh, [{\"a\", \"b\"}, {}]>";
    QTest::newRow("a batch that it does not divide") << QByteArray(rows).replace("SIZE", "4") << ""
                                                     << "sdy.sharding_constraint %0 <@mesh, [{\"a\"}, {}]>";
    QTest::newRow("an axis that no batch can take") << QByteArray(
        "(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {\n%0 = stablehlo.sine %x : tensor<8x8xf32>\nreturn %0 : "
        "tensor<8x8xf32>\n}\n") << ""
                                                    << "";
    // The logits' constraint keeps the vocabulary's axis: the sum over it then needs an all-reduce of one number for each row.
    QTest::newRow("logits gathered") << "(%x: tensor<8x16xf32> " + sharding + "{\"a\"}, {}]>}, %w: tensor<16x64xf32> " + sharding
            + "{}, {\"b\"}]>} loc(\"params['w']\")) -> tensor<8xf32> {\n"
              "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x64xf32>) -> "
              "tensor<8x64xf32>\n%1 = sdy.sharding_constraint %0 <@mesh, [{\"a\"}, {}]> : tensor<8x64xf32>\n%2 = "
              "stablehlo.exponential %1 : tensor<8x64xf32>\n%c = stablehlo.constant dense<0.0> : tensor<f32>\n%3 = "
              "stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> "
              "tensor<8xf32>\nreturn %3 : tensor<8xf32>\n}\n"
                                     << "MW1276"
                                     << "sdy.sharding_constraint %0 <@mesh, [{\"a\"}, {\"b\"}]>";
}

/// What needs no decision is fixed, and gone; the rest stays.
void TestLints::fixedPrograms()
{
    QFETCH(QByteArray, function);
    QFETCH(QString, id);
    QFETCH(QString, written);
    const QByteArray text = "module @m {\n  sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\n  func.func public @main" + function + "}\n";
    const auto program = readProgram(text.toStdString(), "program.mlir");
    QVERIFY2(program, qPrintable(tests::described(program)));
    const FixedProgram fixed = fixedProgram(*program);
    QCOMPARE(idsOf(fixed.fixed), id);
    const QString after = tests::text(writeProgram(fixed.program));
    QVERIFY2(after.contains(written), qPrintable(after));
    const auto again = readProgram(after.toStdString(), "fixed.mlir");
    QVERIFY2(again, qPrintable(tests::described(again)));
    const auto partitioned = propagateAndPartition(*again);
    QVERIFY2(partitioned, qPrintable(tests::described(partitioned)));
    const QString left = idsOf(lintProgram(*partitioned));
    QVERIFY2(id.isEmpty() ? left.startsWith("MW1270") : !left.contains(id), qPrintable(left));
    for (const Problem& problem : lintProgram(*partitioned))
        QVERIFY2(problem.fix.find("check --fix leaves it") != std::string::npos, problem.fix.c_str());
}

void TestLints::manualComputations_data()
{
    QTest::addColumn<QByteArray>("axis");
    QTest::addColumn<QByteArray>("size");
    QTest::addColumn<QString>("ids");
    QTest::newRow("over one axis") << QByteArray("{}") << QByteArray("8") << "MW1270";
    QTest::newRow("over both axes") << QByteArray("{\"b\"}") << QByteArray("4") << "";
}

/// shard_map names all axes; those that its specs use are used.
void TestLints::manualComputations()
{
    QFETCH(QByteArray, axis);
    QFETCH(QByteArray, size);
    QFETCH(QString, ids);
    QByteArray text
        = "module @m {\n  sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\n"
          "  func.func public @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, AXIS]>}) -> "
          "tensor<8x8xf32> {\n"
          "    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"a\"}, AXIS]>] out_shardings=[<@mesh, [{\"a\"}, AXIS]>] "
          "manual_axes={\"a\", \"b\"} (%arg0: tensor<2xSIZExf32>) {\n"
          "      %1 = stablehlo.sine %arg0 : tensor<2xSIZExf32>\n      sdy.return %1 : tensor<2xSIZExf32>\n"
          "    } : (tensor<8x8xf32>) -> tensor<8x8xf32>\n    return %0 : tensor<8x8xf32>\n  }\n}\n";
    text.replace("AXIS", axis).replace("SIZE", size);
    auto program = readProgram(text.toStdString(), "program.mlir");
    QVERIFY2(program, qPrintable(tests::described(program)));
    const auto partitioned = propagateAndPartition(*std::move(program));
    QVERIFY2(partitioned, qPrintable(tests::described(partitioned)));
    const DeviceStage& stage = partitioned->device.stages.front();
    const Problems problems = lintFunction({partitioned->propagated.functions.front(), stage.functions.front(), stage.meshes});
    QVERIFY2(idsOf(problems) == ids, qPrintable(tests::text(describe(problems))));
}

void TestLints::examples_data()
{
    QTest::addColumn<QString>("path");
    const QDir folder(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/examples");
    for (const QString& name : folder.entryList({"*.yaml"}))
        QTest::newRow(qPrintable(name)) << folder.filePath(name);
}

/// No false alarms: only the example that means to show it computes everything everywhere.
void TestLints::examples()
{
    QFETCH(QString, path);
    const auto study = loadStudy(path.toStdString());
    QVERIFY2(study, qPrintable(tests::described(study)));
    if (study->pipeline.stages > 1)
        return; // simulated by formulas: no step is laid out
    const Problems problems = lintsOf(*study);
    const QString expected = path.endsWith("replicated.yaml") ? "MW1270" : "";
    QVERIFY2(idsOf(problems) == expected, qPrintable(tests::text(describe(problems))));
}

/// Over both axes the batch would have to be gathered for the reshape: the axis that nothing uses stays as it is.
void TestLints::noFixBringsAnotherFinding()
{
    const QByteArray text
        = "module @m {\n  sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\n  func.func public @main(%x: tensor<8x6xf32> {sdy.sharding = "
          "#sdy.sharding<@mesh, [{\"a\"}, {}]>}) -> tensor<3x4x4xf32> {\n    %0 = stablehlo.reshape %x : (tensor<8x6xf32>) -> "
          "tensor<4x3x4xf32>\n    %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<4x3x4xf32>) -> tensor<3x4x4xf32>\n    "
          "return %1 : tensor<3x4x4xf32>\n  }\n}\n";
    for (const auto& [batch, ids] : {std::pair("{\"a\"}", "MW1270"), std::pair("{\"a\", \"b\"}", "MW1278")}) {
        const auto program = readProgram(QByteArray(text).replace("{\"a\"}", batch).toStdString(), "program.mlir");
        QVERIFY2(program, qPrintable(tests::described(program)));
        const auto partitioned = propagateAndPartition(*program);
        QVERIFY2(partitioned, qPrintable(tests::described(partitioned)));
        QCOMPARE(idsOf(lintProgram(*partitioned)), ids);
        QVERIFY(fixedProgram(*program).fixed.empty());
    }
}

MESHWRIGHT_TEST(TestLints)

} // namespace tst_lints

#include "tst_lints.moc"
