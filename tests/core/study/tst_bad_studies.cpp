// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_bad_studies {

using namespace meshwright;

/// Every mistake that a study can have: the id, the place, and that all of them are reported at once, each with a fix.
class TestBadStudies : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void problems_data();
    void problems();
    void words_data();
    void words();
    void settingIsThePlace();
    void meshLargerThanHardware();
    void missingFiles();
    void unreadableFiles();
    void madeByHand();
};

namespace {

/// The good study that each row breaks. Line 4 is the mesh, 5 the model, 6 the batch, 7 on the shardings.
const QString kGood = "meshwright: 1\n"
                      "name: good\n"
                      "hardware: {chip: v3, topology: [2, 2]}\n"
                      "mesh: {data: 4, model: 2}\n"
                      "model: {mlp: {layers: [64, 32, 16, 10], loss: cross_entropy}}\n"
                      "batch: 96\n"
                      "sharding:\n"
                      "  x: P('data', None)\n"
                      "  layers.1: {w: \"P(None, 'model')\", out: \"P('data', 'model')\"}\n"
                      "optimizer: {adam: {learning_rate: 0.001}}\n"
                      "train: {steps: 3, data: digits}\n";

QString listed(const Problems& problems)
{
    QStringList list;
    for (const Problem& problem : problems)
        list << QString("%1 %2:%3").arg(tests::text(problem.id)).arg(problem.place.line).arg(problem.place.column);
    return list.join(' ');
}

/// The study with one text in the place of another.
QString broken(const QString& what, const QString& by)
{
    QString text = kGood;
    return text.replace(what, by);
}

} // namespace

void TestBadStudies::problems_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");

    QTest::newRow("good") << kGood << "";

    // the document
    QTest::newRow("unknown key") << broken("batch: 96", "batch: 96\nbatchsize: 3") << "MW1420 7:1";
    QTest::newRow("unknown keys everywhere") << "meshwright: 1\nnam: x\nmesh: {data: 4}\nmodel: {mlp: {layers: [64, 10], bais: "
                                                "true}}\nbatch: 96\ntrain: {stepz: 3}\noptimizer: {adam: {lr: 1}}\n"
                                             << "MW1420 2:1 MW1420 4:33 MW1420 6:9 MW1420 7:20";
    QTest::newRow("a pipeline of a model that cannot be read")
        << broken("layers: [64, 32, 16, 10], ", "") + "pipeline: {axis: model, microbatches: 2}\n"
        << "MW1421 5:14";
    QTest::newRow("a key twice") << broken("batch: 96", "batch: 96\nbatch: 97") << "MW1408 7:1";
    QTest::newRow("unquoted spec") << broken("\"P(None, 'model')\"", "P(None, 'model')") << "MW1409 9:17";
    QTest::newRow("unquoted specs") << broken(
        "\"P(None, 'model')\", out: \"P('data', 'model')\"", "P(None, 'model'), out: P('data', 'model')")
                                    << "MW1409 9:17 MW1409 9:40";
    QTest::newRow("unquoted and another") << broken("\"P(None, 'model')\"", "P(None, 'modle')") << "MW1409 9:17 MW1102 9:17";
    QTest::newRow("deep nesting") << broken("name: good", "name: " + QString(100, '[') + QString(100, ']')) << "MW1404 2:70";
    QTest::newRow("a bracket without end") << broken("name: good", "name: [good") << "MW1402 3:9";
    QTest::newRow("alias loop") << broken("name: good", "name: &a [*a]") << "MW1405 2:11";
    QTest::newRow("not a study") << "[1, 2]"
                                 << "MW1422 1:1";
    QTest::newRow("empty") << ""
                           << "MW1412 1:1";

    // kinds
    QTest::newRow("a text for a number") << broken("steps: 3", "steps: three") << "MW1422 11:16";
    QTest::newRow("a fraction for an integer") << broken("steps: 3", "steps: 3.5") << "MW1422 11:16";
    QTest::newRow("a number in quotes") << broken("steps: 3", "steps: \"3\"") << "MW1422 11:16";
    QTest::newRow("a list for a number") << broken("batch: 96", "batch: [96]") << "MW1422 6:8";
    QTest::newRow("a number for a mapping") << broken("{mlp: {layers: [64, 32, 16, 10], loss: cross_entropy}}", "3")
                                            << "MW1422 5:8";
    QTest::newRow("a truth value") << broken("loss:", "bias: maybe, loss:") << "MW1422 5:47";
    QTest::newRow("layers") << broken("[64, 32, 16, 10]", "64") << "MW1422 5:23";
    QTest::newRow("mesh") << broken("{data: 4, model: 2}", "[4, 2]") << "MW1422 4:7";
    QTest::newRow("several at once") << broken("{data: 4, model: 2}", "{data: four, model: 2}")
                                            .replace("batch: 96", "batch: x")
                                            .replace("steps: 3", "steps: []")
                                     << "MW1422 4:14 MW1422 6:8 MW1422 11:16";
    QTest::newRow("spec") << broken("P('data', None)", "{a: {b: c}}") << "MW1105 8:14";
    QTest::newRow("no spec") << broken("P('data', None)", "data") << "MW1105 8:6";
    QTest::newRow("half a spec") << broken("P('data', None)", "P('data', None") << "MW1105 8:20";
    QTest::newRow("a number in a spec") << broken("P('data', None)", "[[data, [model]]]") << "MW1422 8:14";

    // numbers
    QTest::newRow("NaN") << broken("0.001", "nan") << "MW1424 10:35";
    QTest::newRow("YAML's NaN") << broken("0.001", ".NaN") << "MW1424 10:35";
    QTest::newRow("infinity") << broken("0.001", "-.inf") << "MW1424 10:35";
    QTest::newRow("too large for a double") << broken("0.001", "1e999") << "MW1424 10:35";
    QTest::newRow("NaN for an integer") << broken("batch: 96", "batch: .nan") << "MW1424 6:8";
    QTest::newRow("negative rate") << broken("0.001", "-1") << "MW1425 10:35";
    QTest::newRow("beta of one") << broken("learning_rate: 0.001", "beta1: 1") << "MW1425 10:27";
    QTest::newRow("momentum") << broken("{adam: {learning_rate: 0.001}}", "{sgd: {momentum: 1.5}}") << "MW1425 10:29";
    QTest::newRow("scale of zero") << broken("data: digits", "data: {file: a.csv, scale: 0}") << "MW1425 11:46";

    // sizes
    QTest::newRow("batch of zero") << broken("batch: 96", "batch: 0") << "MW1401 6:8";
    QTest::newRow("negative batch") << broken("batch: 96", "batch: -96") << "MW1401 6:8";
    QTest::newRow("2^63") << broken("batch: 96", "batch: 9223372036854775808") << "MW1401 6:8";
    QTest::newRow("2^63 - 1") << broken("batch: 96", "batch: 9223372036854775807") << "MW1401 6:8";
    QTest::newRow("zero and negative layers") << broken("[64, 32, 16, 10]", "[64, 0, -16, 10]") << "MW1401 5:28 MW1401 5:31";
    QTest::newRow("2^63 in layers") << broken("[64, 32, 16, 10]", "[64, 9223372036854775808, 10]") << "MW1401 5:28";
    QTest::newRow("one layer") << broken("[64, 32, 16, 10]", "[64]") << "MW1401 5:23";
    QTest::newRow("no layers") << broken("[64, 32, 16, 10]", "[]") << "MW1401 5:23";
    QTest::newRow("negative steps") << broken("steps: 3", "steps: -3") << "MW1401 11:16";
    QTest::newRow("too many elements") << broken("[64, 32, 16, 10]", "[64, 1099511627776, 1099511627776, 10]") << "MW1435 5:23";
    QTest::newRow("axis of zero") << broken("data: 4", "data: 0") << "MW1112 4:14";
    QTest::newRow("axis of 2^63") << broken("data: 4", "data: 9223372036854775808") << "MW1401 4:14";
    QTest::newRow("axis of 2^62") << broken("data: 4", "data: 4611686018427387904") << "MW1113 4:7";
    QTest::newRow("axis without a name") << broken("data: 4", "\"\": 4") << "MW1110 4:12 MW1102 8:6 MW1102 9:42";
    QTest::newRow("topology of zero") << broken("[2, 2]", "[2, 0]") << "MW1401 3:36";
    QTest::newRow("too many axes") << broken(
        "{data: 4, model: 2}", "{" + [] {
            QStringList axes;
            for (int i = 0; i < 65; ++i)
                axes << QString("a%1: 1").arg(i);
            return axes.join(", ");
        }() + "}") << "MW1437 4:7";

    // names and choices
    QTest::newRow("activation") << broken("loss:", "activation: reul, loss:") << "MW1423 5:53";
    QTest::newRow("data") << broken("digits", "digit") << "MW1423 11:25";
    QTest::newRow("dtype") << broken("batch: 96", "batch: 96\ndtype: {parameters: f31, matmul: i32}")
                           << "MW1423 7:21 MW1423 7:34";
    QTest::newRow("optimizer") << broken("{adam: {learning_rate: 0.001}}", "adamx") << "MW1423 10:12";
    QTest::newRow("decay of Adam") << broken("learning_rate: 0.001", "weight_decay: 0.1") << "MW1420 10:20";
    QTest::newRow("loss scaled by nothing") << broken("learning_rate: 0.001", "loss_scale: 1.0e-50") << "MW1425 10:32";
    QTest::newRow("loss scale of a word") << broken("learning_rate: 0.001", "loss_scale: much") << "MW1422 10:32";
    QTest::newRow("loss scale that never grows")
        << broken("learning_rate: 0.001", "loss_scale: {growth_steps: 0}") << "MW1401 10:47";
    QTest::newRow("negative norm") << broken("learning_rate: 0.001", "clip_norm: -1") << "MW1425 10:31";
    QTest::newRow("schedule") << broken("learning_rate: 0.001", "schedule: cosinus") << "MW1423 10:30";
    QTest::newRow("decay before the warm-up ends")
        << broken("learning_rate: 0.001", "schedule: linear, warmup_steps: 5, decay_steps: 5") << "MW1425 10:68";
    QTest::newRow("microbatches") << broken("steps: 3", "steps: 3, accumulate: 5") << "MW1441 11:31";
    QTest::newRow("two optimizers") << broken("{adam: {learning_rate: 0.001}}", "{adam: {}, sgd: {}}") << "MW1427 10:12";
    QTest::newRow("an optimizer that is none") << broken("{adam: {learning_rate: 0.001}}", "{adafactor: {}}") << "MW1420 10:13";
    QTest::newRow("an optimizer that is empty") << broken("{adam: {learning_rate: 0.001}}", "{}") << "MW1427 10:12";
    QTest::newRow("two models") << broken("{mlp:", "{program: a.mlir, mlp:") << "MW1427 5:8";
    QTest::newRow("chip and profile") << broken("topology: [2, 2]", "profile: a.json") << "MW1427 3:11";
    QTest::newRow("slices and hosts") << broken("topology: [2, 2]", "slices: 2, hosts: 2") << "MW1427 3:11";
    QTest::newRow("no slice") << broken("topology: [2, 2]", "topology: [2, 2], slices: 0") << "MW1401 3:48";
    QTest::newRow("topology and hosts") << broken("topology: [2, 2]", "topology: [2, 2], hosts: 2") << "MW1427 3:11";
    QTest::newRow("order twice") << broken(
        "model: 2}", "model: 2, device_order: [0,1,2,3,4,5,6,7]}\ndevice_order: [0,1,2,3,4,5,6,7]")
                                 << "MW1427 5:15";
    QTest::newRow("version") << broken("meshwright: 1", "meshwright: 2\nfoo: 1") << "MW1426 1:13";
    QTest::newRow("the configuration of a model") << R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "heads": 4})"
                                                  << "MW1420 1:1";
    QTest::newRow("a trace") << R"({"displayTimeUnit": "ms", "traceEvents": [{"ph": "X", "ts": 1, "dur": 2}]})"
                             << "MW1420 1:1";
    QTest::newRow("a trace that is a list") << R"([{"name": "f", "ph": "B", "ts": 1}])"
                                            << "MW1420 1:1";
    QTest::newRow("measurements of links")
        << "# nThread 1 nGpus 2\n#  size  count  type  time  algbw  busbw\n  1024  256  float  9.1  0.11  0.11\n"
        << "MW1420 1:1";
    QTest::newRow("the index of a checkpoint") << R"({"metadata": {}, "weight_map": {"w": "model-1.safetensors"}})"
                                               << "MW1420 1:1";
    QTest::newRow("no version") << broken("meshwright: 1\n", "") << "MW1421 1:1";
    QTest::newRow("no model, no batch") << "meshwright: 1\n"
                                        << "MW1421 1:1";
    QTest::newRow("no batch") << broken("batch: 96\n", "") << "MW1421 1:1";
    QTest::newRow("no layers given") << broken("layers: [64, 32, 16, 10], ", "") << "MW1421 5:14";
    QTest::newRow("transformer") << broken(
        "mlp: {layers: [64, 32, 16, 10], loss: cross_entropy}", "transformer: {config: c.json}")
                                 << "MW1001 5:31";
    QTest::newRow("pipeline") << kGood + "pipeline: {axis: modle, stages: 2, microbatches: 4}\n"
                              << "MW1102 12:18";
    QTest::newRow("a pipeline beside accumulation")
        << broken("data: digits", "data: digits, accumulate: 2") + "pipeline: {microbatches: 4}\n"
        << "MW1466 11:45";
    QTest::newRow("stages that are an axis")
        << broken("model: 2}", "model: 2, turn: 3}") + "pipeline: {stages: turn, microbatches: 4}\n"
        << "MW1422 12:20";
    QTest::newRow("stages that are a name") << kGood + "pipeline: {stages: pipes, microbatches: 4}\n"
                                            << "MW1422 12:20";
    QTest::newRow("a pipeline without an axis") << kGood + "pipeline: {stages: 3, microbatches: 4}\n"
                                                << "MW1460 12:11";

    // meshes and specs
    QTest::newRow("unknown axis") << broken("P('data', None)", "P('dta', None)") << "MW1102 8:6";
    QTest::newRow("axis twice") << broken("P('data', None)", "P('data', 'data')") << "MW1103 8:6";
    QTest::newRow("rank") << broken("P('data', None)", "P('data', None, None)") << "MW1101 8:6";
    QTest::newRow("not divisible") << broken("batch: 96", "batch: 98") << "MW1104 8:6 MW1104 9:42";
    QTest::newRow("a microbatch not divisible") << broken("train: {", "train: {accumulate: 48, ") << "MW1104 8:6";
    QTest::newRow("microbatches that are") << broken("train: {", "train: {accumulate: 24, ") << "";
    QTest::newRow("several in one spec") << broken("P('data', None)", "P('dta', 'data', 'data')") << "MW1102 8:6 MW1103 8:6";
    QTest::newRow("no such array") << broken("  x:", "  layers.9.w: P()\n  w: P()\n  x:") << "MW1429 8:15 MW1429 9:6";
    QTest::newRow("no state without Adam")
        << broken("{adam: {learning_rate: 0.001}}", "sgd").replace("  x:", "  opt.m.*: P('data')\n  x:") << "MW1429 8:12";
    QTest::newRow("the same array twice") << broken("  x:", "  layers.1.w: P()\n  x:") << "MW1408 10:14";
    QTest::newRow("order too short") << broken("model: 2}", "model: 2, device_order: [0, 1]}") << "MW1114 4:41";
    QTest::newRow("order with a device twice")
        << broken("model: 2}", "model: 2, device_order: [0, 1, 2, 3, 4, 5, 6, 6]}") << "MW1115 4:41";
    QTest::newRow("a rule that catches nothing")
        << broken("  x:", "  match: [{path: '*.w', spec: []}, {path: 'layers.?.w', spec: [data]}]\n  x:") << "MW1431 8:36";
    QTest::newRow("a rule with an unknown axis")
        << broken("  x:", "  match: [{path: '*.b', spec: [dta]}]\n  x:") << "MW1102 8:31";
    QTest::newRow("a rule that does not divide")
        << broken("  x:", "  match: [{path: '*.3.b', spec: []}, {path: '*.b', spec: [data]}]\n  x:") << "MW1431 8:11 MW1104 8:38";
    QTest::newRow("largest_dim with two entries")
        << broken("  x:", "  match: [{path: '*.b', divisible: largest_dim, spec: [data, null]}]\n  x:") << "MW1427 8:55";
    QTest::newRow("a logical rule") << broken("  x:", "  rules: [[batch, data], [embed, null], [hidden, modle]]\n  x:")
                                    << "MW1102 8:41";
    QTest::newRow("no pair") << broken("  x:", "  rules: [[batch]]\n  x:") << "MW1422 8:11";

    // data, phases
    QTest::newRow("inputs of digits") << broken("[64, 32, 16, 10]", "[63, 32, 16, 12]") << "MW1436 5:24 MW1436 5:36";
    QTest::newRow("batch of digits") << broken("batch: 96", "batch: 1600") << "MW1436 6:8";
    QTest::newRow("phases that do not divide") << kGood + "phases: [{steps: 3, mesh: {data: 5}}]\n"
                                               << "MW1104 8:6 MW1104 9:42";
    QTest::newRow("phases") << kGood + "phases: [{steps: 2, mesh: {data: 5}}, {mesh: {data: 0}}, {steps: -1, mesh: {data: 8}}]\n"
                            << "MW1434 11:16 MW1421 12:39 MW1112 12:53 MW1401 12:66";
}

void TestBadStudies::problems()
{
    QFETCH(QString, text);
    QFETCH(QString, expected);

    const Problems problems = examineStudy(text.toStdString(), "s.yaml");
    QCOMPARE(listed(problems), expected);
    for (const Problem& problem : problems) {
        QVERIFY2(!problem.fix.empty(), describe(problem).c_str());
        QCOMPARE(problem.place.file, "s.yaml");
    }
    QCOMPARE(readStudy(text.toStdString(), "s.yaml").has_value(), !hasErrors(problems));
}

void TestBadStudies::words_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");

    QTest::newRow("unknown key") << broken("batch: 96", "bacth: 96\nbatch: 96")
                                 << "s.yaml:6:1: error MW1420: unknown key \"bacth\" [bacth]\n  fix: did you mean \"batch\"?";
    QTest::newRow("key of the study") << broken("loss: cross_entropy", "dtype: bf16")
                                      << "s.yaml:5:41: error MW1420: unknown key \"dtype\" [model.mlp.dtype]\n"
                                         "  fix: move it: \"dtype\" is a key of the study itself";
    QTest::newRow("word of another tool") << broken("learning_rate: 0.001",
        "lr: 0.001") << "s.yaml:10:20: error MW1420: unknown key \"lr\" [optimizer.adam.lr]\n  fix: write learning_rate";
    QTest::newRow("word of another tool, elsewhere")
        << broken("steps: 3,", "steps: 3, batch_size: 96,")
        << "s.yaml:11:19: error MW1420: unknown key \"batch_size\" [train.batch_size]\n"
           "  fix: move it: \"batch\" is a key of the study itself";
    QTest::newRow("weight decay of adam")
        << broken("learning_rate: 0.001", "weight_decay: 0.1")
        << "s.yaml:10:20: error MW1420: unknown key \"weight_decay\" [optimizer.adam.weight_decay]\n"
           "  fix: write adamw, which has it: optimizer: {adamw: {weight_decay: 0.1}}";
    QTest::newRow("almost a model") << broken(
        "{mlp: {layers: [64, 32, 16, 10], loss: cross_entropy}}", "{transformer: {config: lama3_8b}}")
                                    << "s.yaml:5:31: error MW1001: no such file: \"lama3_8b\" [model.transformer.config]\n"
                                       "  fix: did you mean \"llama3_8b\"? (`meshwright list models`), or a config.json";
    QTest::newRow("a model of the hub") << broken(
        "{mlp: {layers: [64, 32, 16, 10], loss: cross_entropy}}", "{transformer: {config: meta-llama/Llama-3.1-8B}}")
                                        << "s.yaml:5:31: error MW1001: no such file: \"meta-llama/Llama-3.1-8B\" "
                                           "[model.transformer.config]\n"
                                           "  fix: download its configuration: `hf download meta-llama/Llama-3.1-8B config.json "
                                           "--local-dir .`, and give config.json";
    QTest::newRow("key of a mapping beside")
        << broken("batch: 96", "batch: 96\nsteps: 3")
        << "s.yaml:7:1: error MW1420: unknown key \"steps\" [steps]\n  fix: move it: \"steps\" is a key of train";
    QTest::newRow("meaning of a dimension")
        << broken("batch: 96", "batch: 98").replace("out:", "b:").replace("\"P('data', 'model')\"", "P()")
        << "s.yaml:8:6: error MW1104: \"x\": dim 0 (batch) of size 98 is not divisible by 4 [sharding.x]\n"
           "  rule: mesh axis (data) cuts the dimension into 4 equal pieces\n"
           "  fix: make it 96 or 100, or leave the dimension whole";
    QTest::newRow("outputs")
        << broken("[64, 32, 16, 10]", "[64, 32, 17, 10]").replace("out:", "b:").replace("\"P('data', 'model')\"", "P()")
        << "s.yaml:9:17: error MW1104: \"layers.1.w\": dim 1 (outputs of layer 1) of size 17 is not divisible by 2 "
           "[sharding.layers.1.w]\n"
           "  rule: mesh axis (model) cuts the dimension into 2 equal pieces\n"
           "  fix: make it 16 or 18, or leave the dimension whole";
    QTest::newRow("array name") << broken("  x:", "  layer.1.w: P()\n  x:")
                                << "s.yaml:8:14: error MW1429: no array has the name \"layer.1.w\" [sharding.layer.1.w]\n  fix: "
                                   "did you mean \"layers.1.w\"?";
    QTest::newRow("unquoted")
        << broken("\"P(None, 'model')\"", "P(None, 'model')")
        << "s.yaml:9:17: error MW1409: P(None, 'model') needs quotes here: inside {...} and [...] its commas end the value\n"
           "  fix: write \"P(None, 'model')\"";
    QTest::newRow("wrong kind") << broken("batch: 96",
        "batch: many") << "s.yaml:6:8: error MW1422: expected an integer, found \"many\" [batch]\n  fix: give an integer";
}

void TestBadStudies::words()
{
    QFETCH(QString, text);
    QFETCH(QString, expected);
    QCOMPARE(tests::text(describe(examineStudy(text.toStdString(), "s.yaml"))), expected);
}

void TestBadStudies::settingIsThePlace()
{
    const Problems problems = examineStudy(
        kGood.toStdString(), "s.yaml", std::vector<std::string>{"mesh.data=5", "train.steps=x", "optimizer.adam.x=1"});
    QCOMPARE(listed(problems), "MW1104 8:6 MW1104 9:42 MW1422 0:0 MW1420 0:0");
    QCOMPARE(tests::text(problems[2].place.file), "--set train.steps=x");
    QCOMPARE(tests::text(problems[3].place.file), "--set optimizer.adam.x=1");
}

void TestBadStudies::meshLargerThanHardware()
{
    const auto study = readStudy((kGood + "phases: [{steps: 3, mesh: {data: 16}}]\n").toStdString(), "s.yaml");
    QVERIFY2(study, qPrintable(tests::described(study)));
    QCOMPARE(listed(checkMeshFits(*study, 16)), "");
    QCOMPARE(listed(checkMeshFits(*study, 8)), "MW1430 12:27");
    QCOMPARE(listed(checkMeshFits(*study, 4)), "MW1430 4:7 MW1430 12:27");
}

void TestBadStudies::missingFiles()
{
    QString text = broken("{mlp: {layers: [64, 32, 16, 10], loss: cross_entropy}}", "{program: missing.mlir}");
    text.replace("  layers.1:", "  w:")
        .replace("{w: \"P(None, 'model')\", out: \"P('data', 'model')\"}", "P()")
        .replace("digits", "/");
    const auto study = readStudy(text.toStdString(), "/nowhere/s.yaml");
    QVERIFY2(study, qPrintable(tests::described(study)));
    QCOMPARE(study->resolved("missing.mlir"), std::filesystem::path("/nowhere/missing.mlir"));
    QCOMPARE(listed(checkFiles(*study)), "MW1001 5:18 MW1002 11:25");
}

void TestBadStudies::unreadableFiles()
{
    QCOMPARE(tests::idsOf(loadStudy("/nonexistent/study.yaml")), "MW1001");
    QCOMPARE(tests::idsOf(loadStudy("/")), "MW1002");
}

/// A study that no file says, as a GUI may make one.
void TestBadStudies::madeByHand()
{
    Study study;
    QCOMPARE(listed(checkStudy(study)), "MW1421 0:0");
    study.model = MlpModel{{64, 0, 10}};
    study.batch = -1;
    study.mesh = {{"a", 2}, {"a", 2}};
    study.optimizer = SgdOptimizer{-1.0, 0.0};
    QCOMPARE(listed(checkStudy(study)), "MW1111 0:0 MW1401 0:0 MW1425 0:0");
    study.batch = 1;
    QCOMPARE(listed(checkStudy(study)), "MW1111 0:0 MW1401 0:0 MW1425 0:0");
}

MESHWRIGHT_TEST(TestBadStudies)

} // namespace tst_bad_studies

#include "tst_bad_studies.moc"
