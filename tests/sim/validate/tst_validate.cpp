// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/record_step.h"
#include "sim/validate/validate.h"

#include "core/support/resources.h"
#include "sim/validate/step_case.h"
#include "tests/json_schema.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <cmath>

namespace tst_validate {

using namespace meshwright;
using namespace meshwright::sim;

/// Records as they are published: read, turned into plans, predicted, compared. The records here are made up.
class TestValidate : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void faults_data();
    void faults();
    void folders();
    void stepRecord();
    void skipsAndFlags();
    void refusesImpossibleFields_data();
    void refusesImpossibleFields();
    void slicesInWords();
    void candidatesOfPlans();
    void fittedRecordsAreNotScored();
    void namesDoNotMatter();
    void networkRates_data();
    void networkRates();
    void wordsOfRecords_data();
    void wordsOfRecords();
    void policiesInWords_data();
    void policiesInWords();
    void parts_data();
    void parts();
    void jsonKeepsToItsSchema();
};

namespace {

const Catalogue& catalogue()
{
    static const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return catalogue;
}

const Calibration& calibration()
{
    static const Calibration calibration = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    return calibration;
}

/// A GPT of 1.3 G parameters on 8 A100.
QByteArray recordOfStep(const char* id, const char* layout, const char* measured, const char* more = "")
{
    return QByteArray(R"({"id": ")") + id
        + R"(", "kind": "training_step", "system": "nvidia-a100-sxm-80gb", "chips": 8, "topology": "one node", "software": "Megatron-DeepSpeed",
  "model": {"layers": 24, "hidden": 2048, "heads": 16, "kv_heads": 16, "head_dim": 128, "ffn": 8192, "gated_mlp": false, "vocab": 51200, "tied_embeddings": true, "seq": 2048},
  "global_batch_sequences": 64, "microbatch_sequences": 4, "recompute": "none", "dtype": "mixed fp16", "parallel": )"
        + layout + R"(, "measured": )" + measured + more + "}";
}

std::vector<Record> recordsOf(const QByteArray& text)
{
    const auto records = parseRecords(text.toStdString(), "folder/made.json");
    return records ? *records : std::vector<Record>();
}

FileValidation validated(const QByteArray& text)
{
    return validateRecords(recordsOf(text), "made.json", catalogue(), calibration(), stepSimulator(catalogue(), calibration()));
}

} // namespace

void TestValidate::faults_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("id");

    QTest::newRow("not JSON") << QByteArray("[") << "MW1770";
    QTest::newRow("a number") << QByteArray("3") << "MW1771";
    QTest::newRow("an object") << QByteArray("{}") << "MW1771";
    QTest::newRow("no id") << QByteArray(R"([{"kind": "gemm"}])") << "MW1772";
    QTest::newRow("another type") << QByteArray(
        R"({"records": [{"id": "p", "kind": "sweep", "source": {"name": 1}, "candidates": [{}]}]})")
                                  << "MW1772";
    QTest::newRow("nested without end") << ("[{\"a\": " + QByteArray(500'000, '[')) << "MW1770";
    QTest::newRow("no record") << QByteArray("[1]") << "MW1772";
}

void TestValidate::faults()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, id);
    const auto records = parseRecords(text.toStdString(), "made.json");
    QVERIFY(!records);
    QCOMPARE(records.error().front().id, id.toStdString());
    QCOMPARE(records.error().front().place.file, std::string("made.json"));
}

void TestValidate::folders()
{
    QTemporaryDir folder;
    const auto write = [&](const char* name) {
        QFile file(folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("[]");
    };
    const auto missing = recordFiles({folder.path().toStdString()});
    QVERIFY(!missing);
    QCOMPARE(missing.error().front().id, std::string("MW1773"));
    QCOMPARE(recordFiles({"/no/such/place"}).error().front().id, std::string("MW1773"));
    for (const char* name : {"b.json", "a.json", "stacks.json", "README.md"})
        write(name);
    const auto files = recordFiles({folder.path().toStdString()});
    QVERIFY(files);
    QCOMPARE(files->size(), std::size_t{2});
    QCOMPARE(files->front().filename().string(), std::string("a.json"));
}

void TestValidate::stepRecord()
{
    const auto file = validated("[" + recordOfStep("one", R"({"dp": 4, "tp": 2, "pp": 1})", R"({"step_time_s": 2.0})") + "]");
    QCOMPARE(file.steps.size(), std::size_t{1});
    const StepPrediction& step = file.steps.front();
    QCOMPARE(step.stack, std::string("megatron-deepspeed"));
    QVERIFY(step.simulated.seconds > 0.2 && step.simulated.seconds < 10.0);
    QVERIFY(step.simulated.fits);
    QCOMPARE(file.scored, std::size_t{1});
    QVERIFY(std::abs(file.stepTime->median - std::abs(step.simulated.seconds / 2.0 - 1.0)) < 1e-12);
}

void TestValidate::skipsAndFlags()
{
    const auto file = validated("[" + recordOfStep("whole", R"({"dp": 8})", R"({"step_time_s": 2.0})") + ","
        + recordOfStep("odd", R"({"dp": 8})", R"({"step_time_s": 2.0})", R"(, "flags": ["does not add up"])") + ","
        + recordOfStep("failed", R"({"dp": 8})", R"({"outcome": "kernel_unavailable"})") + ","
        + recordOfStep("heads", R"({"dp": 1, "tp": 8, "pp": 3})", R"({"step_time_s": 2.0})")
        + R"(,{"id": "other", "kind": "weather"},{"id": "shapeless", "kind": "training_step", "system": "a100", "chips": 8, "model": {"seq": 2048}}])");
    QCOMPARE(file.scored, std::size_t{1});
    QCOMPARE(file.flagged, std::size_t{1});
    QCOMPARE(file.skipped.size(), std::size_t{4});
    QCOMPARE(file.skipped[0].id, std::string("failed"));
    QVERIFY(file.skipped[1].why.find("= 24") != std::string::npos);
    QCOMPARE(file.skipped[2].why, std::string("\"weather\" is not a kind of record that can be predicted"));
    const auto unknown = stepCaseOf(
        recordsOf(R"([{"id": "x", "kind": "training_step", "system": "abacus"}])").front(), catalogue(), calibration());
    QVERIFY(!unknown);
    QCOMPARE(unknown.error().front().id, std::string("MW1774"));
}

void TestValidate::refusesImpossibleFields_data()
{
    QTest::addColumn<QByteArray>("field");
    QTest::addColumn<QString>("named");
    QTest::newRow("a long text") << ("\"topology\": \"" + QByteArray(300'000, '9') + "x2\"") << "`topology`";
    QTest::newRow("a size beyond all") << QByteArray(R"("chips": 1e300)") << "`chips`";
    QTest::newRow("a negative one") << QByteArray(R"("parallel": {"tp": -1e300})") << "`parallel.tp`";
    QTest::newRow("a message beyond all") << QByteArray(R"("points": [{"message_bytes": 1e30, "time_s": 1}])") << "a message";
}

void TestValidate::refusesImpossibleFields()
{
    QFETCH(QByteArray, field);
    QFETCH(QString, named);
    const auto file = validated(R"([{"id": "odd", "kind": "training_step", )" + field + "}]");
    QCOMPARE(file.scored, std::size_t{0});
    QCOMPARE(file.skipped.size(), std::size_t{1});
    QVERIFY2(file.skipped.front().why.starts_with(named.toStdString()), file.skipped.front().why.c_str());
}

void TestValidate::slicesInWords()
{
    using Slices = std::vector<std::vector<std::int64_t>>;
    QCOMPARE(sizesIn("16x16 torus, 2 pods of 4x4x8"), (Slices{{16, 16}, {4, 4, 8}}));
    QCOMPARE(sizesIn("99999999999999999999x2 or 0x4"), Slices{});
    QVERIFY(!networkRateOf("99999999999999999999 Gb/s per GPU", 8.0));
}

void TestValidate::candidatesOfPlans()
{
    const QByteArray plans = R"({"schema": 1, "records": [{"id": "p", "kind": "sweep", "source": {"name": "Narayanan et al."},
      "model": {"layers": 24, "hidden": 2048, "heads": 16, "ffn": 8192, "vocab": 51200, "seq_len": 2048},
      "cluster": {"accelerator": "A100-SXM-80GB", "chips": 8, "per_node": 8}, "workload": {"global_batch_seqs": 512},
      "candidates": [{"dp": 8, "tp": 1, "pp": 1, "micro_batch": 1, "recompute": "full", "status": "ok", "step_time_s": 1.5},
                     {"dp": 1, "tp": 8, "pp": 1, "micro_batch": 1, "recompute": "full", "status": "ok", "step_time_s": 2.5},
                     {"dp": 8, "tp": 1, "pp": 1, "micro_batch": 64, "recompute": "none", "status": "oom"}]}]})";
    const auto file = validated(plans);
    QCOMPARE(file.steps.size(), std::size_t{3});
    QCOMPARE(file.steps[0].id, std::string("p#0"));
    QCOMPARE(file.sweeps->count, std::size_t{1});
    QCOMPARE(file.sweeps->kendallTauMedian, 1.0); // tensor parallelism over 8 is the slower one
    QCOMPARE(file.sweeps->topRegretMedian, 0.0);
    QCOMPARE(*file.outOfMemory->recall(), 1.0);
    QCOMPARE(*file.outOfMemory->precision(), 1.0);
}

void TestValidate::fittedRecordsAreNotScored()
{
    const auto constants
        = valueOf(Calibration::parse(R"({"classes": {}, "stacks": {"s": {"chips": {"c": {"fitted_on": ["one"]}}}}})", "x.json"));
    const auto records = recordsOf("[" + recordOfStep("one", R"({"dp": 8})", R"({"step_time_s": 2.0})") + ","
        + recordOfStep("two", R"({"dp": 8})", R"({"step_time_s": 2.0})") + "]");
    const auto file = validateRecords(records, "made.json", catalogue(), constants, stepSimulator(catalogue(), constants));
    QCOMPARE(file.scored, std::size_t{1});
    QCOMPARE(file.fitted, std::size_t{1});
}

/// Ids, files and models' names select nothing.
void TestValidate::namesDoNotMatter()
{
    QByteArray text = "[" + recordOfStep("one", R"({"dp": 4, "tp": 2})", R"({"step_time_s": 2.0})") + "]";
    const double before = validated(text).steps.front().simulated.seconds;
    text.replace("\"one\"", "\"vtrain-bloom\"").replace("\"layers\"", "\"name\": \"LLaMA\", \"layers\"");
    const auto renamed = parseRecords(text.toStdString(), "other.json");
    QVERIFY(renamed);
    const auto simulate = stepSimulator(catalogue(), calibration());
    QCOMPARE(
        validateRecords(*renamed, "other.json", catalogue(), calibration(), simulate).steps.front().simulated.seconds, before);
}

void TestValidate::networkRates_data()
{
    QTest::addColumn<QString>("topology");
    QTest::addColumn<double>("gigabytes"); // a second and device

    QTest::newRow("several a node") << "8-GPU nodes, 8x200 Gb/s HDR per node" << 25.0;
    QTest::newRow("links") << "Jean Zay: 8-GPU nodes, 4 Omni-Path 100 Gb/s links per node" << 6.25;
    QTest::newRow("each") << "8-GPU NVLink nodes, 400 Gb/s RDMA per GPU" << 50.0;
    QTest::newRow("a node") << "8-GPU NVSwitch nodes, 1600 Gb/s RoCE per node" << 25.0;
    QTest::newRow("between") << "nodes of 8, 100 Gb/s InfiniBand between nodes" << 1.5625;
    QTest::newRow("not said") << "inside one 8-GPU node" << 0.0;
}

void TestValidate::networkRates()
{
    QFETCH(QString, topology);
    QFETCH(double, gigabytes);
    QCOMPARE(networkRateOf(topology.toStdString(), 8.0).value_or(0.0) / 1e9, gigabytes);
}

void TestValidate::wordsOfRecords_data()
{
    QTest::addColumn<QByteArray>("old");
    QTest::addColumn<QByteArray>("words");
    QTest::addColumn<double>("capacity");
    QTest::addColumn<double>("imbalance");
    QTest::addColumn<bool>("staged");

    const QByteArray measured = R"("measured": {)";
    QTest::newRow("nothing said") << measured << measured << 0.0 << 1.1 << false;
    QTest::newRow("capacity in words") << measured << R"("notes": "Token dropping, capacity factor 1.25.", )" + measured << 1.25
                                       << 1.1 << false;
    QTest::newRow("capacity as a field") << QByteArray(R"("seq": 2048)") << QByteArray(R"("seq": 2048, "capacity_factor": 1.5)")
                                         << 1.5 << 1.1 << false;
    QTest::newRow("even routing") << measured << R"("notes": "Token-dropless, force-balanced experts.", )" + measured << 0.0
                                  << 1.0 << false;
    QTest::newRow("Omni-Path") << QByteArray("one node") << QByteArray("4 Omni-Path 100 Gb/s links per node") << 0.0 << 1.1
                               << true;
}

void TestValidate::wordsOfRecords()
{
    QFETCH(QByteArray, old);
    QFETCH(QByteArray, words);
    QFETCH(double, capacity);
    QFETCH(double, imbalance);
    QFETCH(bool, staged);
    QByteArray text = "[" + recordOfStep("one", R"({"dp": 8})", R"({"step_time_s": 2.0})") + "]";
    text.replace(R"("layers": 24)", R"("layers": 24, "experts": 8, "experts_per_token": 2)").replace(old, words);
    const StepCase step = valueOf(stepCaseOf(recordsOf(text).front(), catalogue(), calibration()));
    QCOMPARE(step.plans.front().details.expertCapacity, capacity);
    QCOMPARE(step.plans.front().layout.expertImbalance, imbalance);
    QCOMPARE(step.cluster.stagesThroughHost, staged);
}

void TestValidate::policiesInWords_data()
{
    QTest::addColumn<QString>("words");
    QTest::addColumn<QString>("policy");

    QTest::newRow("none") << "none (8k stage)"
                          << "none";
    QTest::newRow("core") << "selective"
                          << "selective";
    QTest::newRow("ops") << "selective (per op)"
                         << "selective_op";
    QTest::newRow("full") << "full (from the FLOP ratio; not stated)"
                          << "full";
    QTest::newRow("minimal") << "minimal (save matmul outputs)"
                             << "minimal";
    QTest::newRow("not said") << "not stated"
                              << "";
}

void TestValidate::policiesInWords()
{
    QFETCH(QString, words);
    QFETCH(QString, policy);
    const auto read = recomputationInWords(words.toStdString());
    QCOMPARE(read.has_value(), !policy.isEmpty());
    if (read)
        QVERIFY(*read == *recomputationOf(policy.toStdString()));
    const auto custom = recomputationInWords("custom: layer input, out and qkv projections offloaded");
    QVERIFY(custom->qkv == 0.0 && custom->attentionOut == 0.0 && custom->ffnIn == 1.0 && custom->offloaded == 1.0);
}

void TestValidate::parts_data()
{
    QTest::addColumn<QByteArray>("record");
    QTest::addColumn<double>("within"); // of the measured value

    QTest::newRow("product") << QByteArray(
        R"({"id": "a", "kind": "gemm", "system": "nvidia-a100-sxm-80gb", "m": 8192, "n": 8192, "k": 8192,
      "dtype": "fp16", "measured": {"flops_per_s": 2.6e14}})")
                             << 0.3;
    QTest::newRow("memory") << QByteArray(
        R"({"id": "a", "kind": "memory_op", "system": "nvidia-a100-sxm-80gb", "operation": "softmax",
      "shape": [65536, 8192], "dtype": "fp16", "measured": {"elements_per_s": 3e11}})")
                            << 0.5;
    QTest::newRow("all-reduce") << QByteArray(
        R"({"id": "a", "kind": "collective", "system": "nvidia-a100-sxm", "chips": 8, "operation": "all_reduce",
      "points": [{"message_bytes": 1073741824, "bus_bandwidth_bytes_per_s": 2.3e11}]})")
                                << 0.3;
    QTest::newRow("layer") << QByteArray(
        R"({"id": "a", "kind": "layer_time", "system": "nvidia-a100-sxm-80gb", "model": {"hidden": 6144, "heads": 64,
      "ffn": 24576, "seq": 2048}, "microbatch_sequences": 4, "parallel": {"tp": 8}, "recompute": "none", "software": "Megatron-LM",
      "measured": {"forward_time_s": 0.0077}})")
                           << 0.3;
    // 48 layers, s b h (10 + 24/t + 5as/(ht)): arXiv 2205.05198.
    QTest::newRow("activations") << QByteArray(
        R"({"id": "a", "kind": "activation_memory", "model": {"layers": 48, "hidden": 6144, "heads": 64, "ffn": 24576,
      "seq": 2048}, "parallel": {"tp": 8, "pp": 1}, "recompute": "none", "microbatch_sequences": 4, "answer": {"activation_bytes": 6.3619e10}})")
                                 << 0.02;
}

void TestValidate::parts()
{
    QFETCH(QByteArray, record);
    QFETCH(double, within);
    const auto file = validated("[" + record + "]");
    QVERIFY2(file.time, file.skipped.empty() ? "" : file.skipped.front().why.c_str());
    QVERIFY2(file.time->median <= within, qPrintable(QString::number(file.time->median)));
}

void TestValidate::jsonKeepsToItsSchema()
{
    Validation validation;
    validation.files.push_back(validated("[" + recordOfStep("a", R"({"dp": 8})", R"({"step_time_s": 2.0})") + ","
        + recordOfStep("b", R"({"dp": 4, "tp": 2})", R"({"step_time_s": 2.0})") + ","
        + recordOfStep("c", R"({"dp": 8})", R"({"outcome": "out_of_memory"})") + R"(,{"id": "other", "kind": "weather"}])"));
    validation.sweeps = validation.files.front().sweeps;
    QVERIFY(validation.sweeps);
    QFile file(QString::fromStdString((resourcesDirectory() / "schemas/validation-1.json").string()));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QJsonObject schema = QJsonDocument::fromJson(file.readAll()).object();
    QVERIFY(!schema.isEmpty());
    const QJsonDocument json = QJsonDocument::fromJson(QByteArray::fromStdString(validationJson(validation)));
    const QStringList errors = tests::schemaErrors(json.object(), schema);
    QVERIFY2(errors.isEmpty(), qPrintable(errors.join("\n")));
    QCOMPARE(json.object()["files"].toArray().at(0).toObject()["scored"].toInt(), 3);
    QVERIFY(validationText(validation).find("made.json") != std::string::npos);
    QVERIFY(validationCsv(validation).find("made.json,a,megatron-deepspeed,nvidia-a100-sxm-80gb,1,") != std::string::npos);
}

MESHWRIGHT_TEST(TestValidate)

} // namespace tst_validate

#include "tst_validate.moc"
