// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/program/placement.h"
#include "core/prove/prove.h"
#include "core/study/study.h"
#include "core/train/training_memory.h"
#include "sim/report/results.h"
#include "sim/session/verdict.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <nlohmann/json.hpp>

namespace tst_offload {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

using Settings = std::vector<std::string>;

/// Four layers on four devices, which share rows and heads.
constexpr const char* kStudy = R"yaml(meshwright: 1
mesh: {data: 2, model: 2}
model:
  transformer: {layers: 4, hidden: 16, heads: 2, ffn: 32, vocabulary: 24, activation: gelu_tanh}
sequence: 8
batch: 4
sharding:
  x: "P('data', None)"
  y: "P('data', None)"
  layers.attention: {q.w: "P(None, None, 'model', None)", k.w: "P(None, None, 'model', None)", v.w: "P(None, None, 'model', None)", o.w: "P(None, 'model', None, None)"}
  layers.ffn: {up.w: "P(None, None, 'model')", down.w: "P(None, 'model', None)"}
optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
train: {steps: 3, seed: 0, data: random}
hardware: {chip: v5e, topology: 2x2}
)yaml";

Study studyOf(const Settings& settings)
{
    auto study = readStudy(kStudy, "study", settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *std::move(study);
}

const Settings kUnrolled = {"model.transformer.unroll=true",
    "sharding={x: [data], y: [data], layers.*.attention: {q.w: [null, model], k.w: [null, model], v.w: [null, model], o.w: "
    "[model]}, "
    "layers.*.ffn: {up.w: [null, model], down.w: [model]}}"};

Settings with(Settings settings, const std::string& setting)
{
    settings.push_back(setting);
    return settings;
}

Simulation simulationOf(const Settings& settings)
{
    return valueOf(simulateStudy(studyOf(settings), valueOf(defaultCatalogue()))).simulation;
}

std::int64_t movedBytes(const Simulation& simulation, bool toHost)
{
    std::int64_t bytes = 0;
    for (const SimulatedMove& move : simulation.moves)
        bytes += move.toHost == toHost ? move.bytes * move.count : 0;
    return bytes;
}

} // namespace

/// What is kept may lie in the host's memory.
class TestOffload : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sameBits_data();
    void sameBits();
    void bytesAndTime_data();
    void bytesAndTime();
    void devicesNeedLess();
    void anotherValueIsNotProved_data();
    void anotherValueIsNotProved();
    void needsALink();
    void warnsOfASlowLink();
};

void TestOffload::sameBits_data()
{
    QTest::addColumn<Settings>("settings");
    QTest::addColumn<QString>("kept");
    QTest::addColumn<QString>("offloaded");
    const auto row = [](const char* name, const Settings& settings, const char* kept, const char* offloaded) {
        QTest::newRow(name) << settings << QString(kept) << QString(offloaded);
    };
    row("some of a loop", {}, "{keep: [attention.q, ffn.hidden]}", "{keep: [attention.q], offload: [ffn.hidden]}");
    row("all of a loop", {}, "{keep: [attention.q, attention.k, attention.v, attention.mixed, ffn.hidden]}",
        "{offload: [attention.q, attention.k, attention.v, attention.mixed, ffn.hidden]}");
    row("inputs of a loop", {}, "full", "{offload: [input]}");
    row("products", {}, "dots_with_no_batch_dims_saveable", "offload_dot_with_no_batch_dims");
    row("unrolled", kUnrolled, "{keep: [attention.q, ffn.hidden]}", "{offload: [attention.q, ffn.hidden]}");
    row("inputs, unrolled", kUnrolled, "full", "{offload: [input]}");
    row("accumulated", {"train.accumulate=2"}, "{keep: [ffn.hidden]}", "{offload: [ffn.hidden, input]}");
    row("bf16", {"dtype={parameters: f32, matmul: bf16, activations: bf16}"}, "{keep: [ffn.hidden]}", "{offload: [ffn.hidden]}");
    row("a pipeline", {"mesh={pipe: 2, model: 2}", "sharding={}", "pipeline={axis: pipe, stages: 2, microbatches: 2}"},
        "{keep: [ffn.hidden]}", "{offload: [ffn.hidden]}");
}

/// Moved values are the same to the last bit, and the steps are checked and proved as they are.
void TestOffload::sameBits()
{
    QFETCH(Settings, settings);
    QFETCH(QString, kept);
    QFETCH(QString, offloaded);
    const auto trained = [&](const QString& recompute) {
        const Study study = studyOf(with(settings, "recompute=" + recompute.toStdString()));
        return valueOf(trainStudy(study, {.verify = true, .prove = true, .keepParameters = true}, {}, {}));
    };
    const TrainingResult onDevice = trained(kept);
    const TrainingResult onHost = trained(offloaded);
    QVERIFY(onHost.losses == onDevice.losses);
    QCOMPARE(onHost.parameters.size(), onDevice.parameters.size());
    QVERIFY(onHost.parameters == onDevice.parameters);
    for (const VerifiedTensor& tensor : onHost.verification->tensors)
        QVERIFY2(tensor.passed, tensor.name.c_str());
    QVERIFY(onHost.proof && onHost.proof->isProved());
}

void TestOffload::bytesAndTime_data()
{
    QTest::addColumn<Settings>("settings");
    QTest::addColumn<QString>("names");
    QTest::addColumn<qint64>("bytes"); // of one layer on one device
    const qint64 stream = 2 * 8 * 16 * 4; // two rows of eight tokens
    QTest::newRow("ffn.hidden") << Settings{} << "[ffn.hidden]" << stream;
    QTest::newRow("queries and hidden") << Settings{} << "[attention.q, ffn.hidden]" << stream + stream / 2;
    QTest::newRow("inputs") << Settings{} << "[input]" << stream;
    QTest::newRow("inputs, unrolled") << kUnrolled << "[input]" << stream;
    QTest::newRow("unrolled") << kUnrolled << "[ffn.hidden]" << stream;
}

/// Each layer's values go to the host and come back once; no step is shorter than that takes on the link.
void TestOffload::bytesAndTime()
{
    QFETCH(Settings, settings);
    QFETCH(QString, names);
    QFETCH(qint64, bytes);
    const Simulation simulation = simulationOf(with(settings, "recompute={offload: " + names.toStdString() + "}"));
    QCOMPARE(movedBytes(simulation, true), 4 * bytes);
    QCOMPARE(movedBytes(simulation, false), 4 * bytes);
    QVERIFY(simulation.hostBytes >= 4 * bytes);
    QVERIFY(simulation.hostBytes <= 8 * bytes);
    QCOMPARE(simulation.hostLinkBytesPerSecond, 15e9);
    QVERIFY(simulation.stepSeconds >= static_cast<double>(4 * bytes) / simulation.hostLinkBytesPerSecond);
    double seconds = 0.0;
    for (const SimulatedMove& move : simulation.moves)
        seconds += move.seconds;
    QVERIFY(seconds >= static_cast<double>(8 * bytes) / simulation.hostLinkBytesPerSecond);
    const double sum = simulation.computeSeconds + simulation.exposedSeconds;
    QVERIFY(std::abs(sum - simulation.stepSeconds) < 1e-9 * sum + 1e-11);
    QVERIFY(simulation.hostExposedSeconds <= simulation.exposedSeconds);
}

/// Rows enough for the stacks to count.
void TestOffload::devicesNeedLess()
{
    const Settings wide = {"sequence=512", "model.transformer.layers=16"};
    const Simulation kept = simulationOf(with(wide, "recompute={keep: [ffn.hidden]}"));
    const Simulation offloaded = simulationOf(with(wide, "recompute={offload: [ffn.hidden]}"));
    const std::int64_t stack = std::int64_t{16} * 2 * 512 * 16 * 4;
    const std::int64_t ofALayer = stack / 16;
    QCOMPARE(kept.hostBytes, std::int64_t{0});
    QVERIFY(kept.moves.empty());
    QVERIFY2(kept.peakBytes - offloaded.peakBytes >= stack - 3 * ofALayer,
        qPrintable(QString("%1 and %2").arg(kept.peakBytes).arg(offloaded.peakBytes)));
    QVERIFY(offloaded.hostBytes >= stack);
    const auto planned = [&](const char* recompute) {
        return plannedDevicePeak(valueOf(trainingPhases(studyOf(with(wide, std::string("recompute=") + recompute))))).bytes;
    };
    QVERIFY(planned("{keep: [ffn.hidden]}") - planned("{offload: [ffn.hidden]}") >= stack - 3 * ofALayer);
    const auto json = nlohmann::json::parse(simulationJson(
        {valueOf(simulateStudy(studyOf(with(wide, "recompute={offload: [ffn.hidden]}")), valueOf(defaultCatalogue())))}));
    QCOMPARE(json["host"]["to_host_bytes"].get<std::int64_t>(), stack);
    QCOMPARE(json["host"]["to_device_bytes"].get<std::int64_t>(), stack);
}

void TestOffload::anotherValueIsNotProved_data()
{
    QTest::addColumn<bool>("toHost");
    QTest::newRow("another value goes to the host") << true;
    QTest::newRow("another value comes back") << false;
}

void TestOffload::anotherValueIsNotProved()
{
    QFETCH(bool, toHost);
    BuiltPhase built = valueOf(buildPhase(studyOf({"recompute={offload: [attention.q, attention.k]}"})));
    PartitionedProgram partitioned = built.partitioned;
    QVERIFY(proofOf(partitioned).isProved());
    for (DeviceFunction& function : partitioned.device.stages.front().functions) {
        std::vector<Op*> moves;
        for (Op& op : function.function.ops) {
            if (movedTo(op) == (toHost ? Placement::Host : Placement::Device))
                moves.push_back(&op);
        }
        if (moves.size() == 2)
            std::swap(moves[0]->operands, moves[1]->operands);
    }
    QVERIFY(!proofOf(partitioned).isProved());
}

void TestOffload::needsALink()
{
    const Study study = studyOf({"recompute={offload: [input]}", "hardware={chip: mi300x, hosts: 1, per_host: 4}"});
    const auto simulated = simulateStudy(study, valueOf(defaultCatalogue()));
    QVERIFY(!simulated);
    QCOMPARE(simulated.error().front().id, std::string("MW1755"));
}

void TestOffload::warnsOfASlowLink()
{
    const Settings wide = {"sequence=64", "batch=256",
        "recompute={offload: [input, attention.q, attention.k, attention.v, attention.mixed, ffn.hidden]}"};
    const Simulation simulation = simulationOf(wide);
    QVERIFY(simulation.hostExposedSeconds > 0.05 * simulation.stepSeconds);
    const Verdict verdict = verdictOf(StudySource{kStudy, "study.yaml", wide}, valueOf(defaultCatalogue()), false);
    const auto warning = std::ranges::find(verdict.problems, "MW1756", &Problem::id);
    QVERIFY(warning != verdict.problems.end());
    QVERIFY(warning->severity == Severity::Warning);
    QCOMPARE(warning->place.path, std::string("recompute"));
}

MESHWRIGHT_TEST(TestOffload)

} // namespace tst_offload

#include "tst_offload.moc"
