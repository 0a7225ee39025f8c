// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/pipeline_tasks.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/network/step_run.h"
#include "sim/session/session.h"
#include "sim/simulate/step_graph.h"
#include "sim/transformer/pipeline.h"
#include "tests/test_class.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

namespace tst_pipeline_steps {

using namespace meshwright;

/// Pipelines on hardware: their tasks in order, sends and receives through the network, bubbles, memory; beside the closed forms.
class TestPipelineSteps : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void examples_data();
    void examples();
    void bubbleIsTheFormulas_data();
    void bubbleIsTheFormulas();
    void unevenStages();
    void memoryHoldsMicrobatchesUnderWay();
    void zeroBubbles_data();
    void zeroBubbles();
    void fidelitiesAgree();
    void slowStage();
    void sessionHasThem();
    void loopsAreCut();
    void microbatchesHoldNoMore();
    void wholeFunctionsChangeNothing_data();
    void wholeFunctionsChangeNothing();
    void gradientsAreReducedOnce_data();
    void gradientsAreReducedOnce();
    void tiedGradientsAreReducedOnce();
    void closedFormAgrees_data();
    void closedFormAgrees();
    void stopsInTheMiddle();
};

namespace {

/// Layers of equal width on v4 chips; every stage has two.
std::string deep(int stages, int microbatches, const std::string& schedule, const std::string& more = {})
{
    std::string layers = "16384";
    for (int i = 0; i < 8; ++i)
        layers += ", 16384";
    return "meshwright: 1\nhardware: {chip: v4, topology: [4, 1, 1]}\nmesh: {pipe: " + std::to_string(stages)
        + "}\nmodel: {mlp: {layers: [" + layers + "], activation: relu}}\nbatch: " + std::to_string(512 * microbatches)
        + "\noptimizer: {sgd: {learning_rate: 0.01}}\npipeline: {axis: pipe, stages: " + std::to_string(stages)
        + ", microbatches: " + std::to_string(microbatches) + ", schedule: " + schedule + more + "}\n";
}

sim::SimulatedStudy simulated(const std::string& text)
{
    return valueOf(
        sim::simulateStudy(valueOf(readStudy(text, "pipeline.yaml")), valueOf(sim::defaultCatalogue()), {.timeline = true}));
}

std::string example(const std::string& name)
{
    return valueOf(readFile(resourcesDirectory() / "examples" / name));
}

} // namespace

void TestPipelineSteps::examples_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("stages");
    QTest::newRow("gpipe") << "pipeline_gpipe.yaml" << 4;
    QTest::newRow("1f1b") << "pipeline_1f1b.yaml" << 2;
    QTest::newRow("interleaved") << "pipeline_interleaved.yaml" << 2;
}

/// What is executed can be simulated: time adds up, every stage has its rows, and what stages pass each other is listed.
void TestPipelineSteps::examples()
{
    QFETCH(QString, name);
    QFETCH(int, stages);
    const sim::SimulatedStudy study = simulated(example(name.toStdString()));
    const sim::Simulation& s = study.simulation;
    QVERIFY(s.bubbleSeconds > 0.0);
    QVERIFY(qAbs(s.stepSeconds - (s.computeSeconds + s.exposedSeconds + s.bubbleSeconds)) < 1e-10);
    std::set<std::int64_t> devices;
    for (const TimelineRow& row : s.timeline.rows())
        devices.insert(row.device);
    QCOMPARE(devices.size(), std::size_t(stages));
    QVERIFY(
        std::ranges::any_of(s.timeline.slices(), [](const Slice& slice) { return slice.category == SliceCategory::Transfer; }));
    QVERIFY(std::ranges::any_of(s.collectives, [](const sim::SimulatedCollective& c) { return c.use.axes == "pipe"; }));
    QVERIFY(s.fits && s.peakBytes > 0);
    std::int64_t live = 0;
    std::set<std::string> names;
    for (const sim::LiveValue& value : study.liveAtPeak) {
        live += value.bytes;
        const bool isKept = value.kind != MemoryKind::Temporary;
        QVERIFY2(
            !isKept || names.insert(value.name).second, value.name.c_str()); // once, however many functions of the stage read it
    }
    QCOMPARE(live, s.peakBytes);
    QVERIFY(s.classes >= stages);
}

void TestPipelineSteps::bubbleIsTheFormulas_data()
{
    QTest::addColumn<QString>("schedule");
    QTest::addColumn<int>("microbatches");
    QTest::addColumn<int>("chunks");
    QTest::newRow("GPipe") << "gpipe" << 8 << 1;
    QTest::newRow("1F1B") << "1f1b" << 8 << 1;
    QTest::newRow("1F1B, many microbatches") << "1f1b" << 64 << 1;
    QTest::newRow("interleaved") << "interleaved, chunks: 2" << 8 << 2;
}

/// Equal stages: idle for (p - 1) / (v m + p - 1) of the tasks' time, but for what sending takes.
/// Source: Narayanan et al., SC 21, section 2.2.
void TestPipelineSteps::bubbleIsTheFormulas()
{
    QFETCH(QString, schedule);
    QFETCH(int, microbatches);
    QFETCH(int, chunks);
    constexpr double kStages = 4.0;
    const sim::Simulation s = simulated(deep(4, microbatches, schedule.toStdString())).simulation;
    // The update is not a part of the pipeline.
    const sim::Simulation alone = simulated(deep(1, 1, "gpipe")).simulation;
    QVERIFY(alone.bubbleSeconds == 0.0);
    const double expected = (kStages - 1.0) / (chunks * microbatches + kStages - 1.0);
    const double idle = (s.bubbleSeconds + s.exposedSeconds) / s.stepSeconds;
    QVERIFY2(idle > 0.9 * expected && idle < 1.5 * expected + 0.01,
        qPrintable(QString("%1, by the formula %2").arg(idle).arg(expected)));
}

/// The longest stage is told of; a pipeline is as quick as its slowest stage.
void TestPipelineSteps::unevenStages()
{
    const sim::Simulation even = simulated(deep(4, 8, "1f1b")).simulation;
    const sim::Simulation uneven = simulated(deep(4, 8, "1f1b", ", layers: [1, 4, 2, 1]")).simulation;
    QVERIFY(uneven.computeSeconds > 1.8 * even.computeSeconds && uneven.computeSeconds < 2.2 * even.computeSeconds);
    QVERIFY(uneven.stepSeconds > even.stepSeconds);
    QVERIFY(std::ranges::any_of(
        uneven.assumptions, [](const std::string& text) { return text.find("stage 1 of 4") != std::string::npos; }));
}

/// GPipe holds all microbatches, 1F1B no more than there are stages.
void TestPipelineSteps::memoryHoldsMicrobatchesUnderWay()
{
    const auto peak = [](const std::string& schedule, int microbatches) {
        return simulated(deep(4, microbatches, schedule)).simulation.peakBytes;
    };
    QCOMPARE(peak("1f1b", 16), peak("1f1b", 8));
    const std::int64_t each = (peak("gpipe", 16) - peak("gpipe", 8)) / 8;
    QVERIFY(each > 0);
    QVERIFY(peak("gpipe", 8) > peak("1f1b", 8) + 2 * each);
}

void TestPipelineSteps::zeroBubbles_data()
{
    QTest::addColumn<int>("microbatches");
    QTest::newRow("few") << 8;
    QTest::newRow("many") << 16;
}

/// Stages are idle for (p - 1)(F + B + W) with 1F1B, (p - 1)(F + B - W) with ZB-H1 and (p - 1)(F + B - 2 W) with ZB-H2; the last keeps 2 p - 1
/// microbatches, the others p. Here F, B and W are a product each.
/// Source: Qi et al., arXiv:2401.10241, table 1.
void TestPipelineSteps::zeroBubbles()
{
    QFETCH(int, microbatches);
    const sim::Simulation plain = simulated(deep(4, microbatches, "1f1b")).simulation;
    const sim::Simulation h1 = simulated(deep(4, microbatches, "zb_h1")).simulation;
    const sim::Simulation h2 = simulated(deep(4, microbatches, "zb_h2")).simulation;
    const auto idle = [](const sim::Simulation& s) { return s.stepSeconds - s.computeSeconds; };
    QVERIFY(qAbs(h1.computeSeconds - plain.computeSeconds) < 1e-3 * plain.computeSeconds); // the same work
    QVERIFY(qAbs(h2.computeSeconds - plain.computeSeconds) < 1e-3 * plain.computeSeconds);
    QVERIFY2(
        qAbs(idle(h1) - idle(plain) / 3.0) < 0.1 * idle(plain), qPrintable(QString("%1 of %2").arg(idle(h1)).arg(idle(plain))));
    QVERIFY2(idle(h2) >= 0.0 && idle(h2) < 0.05 * idle(plain), qPrintable(QString("%1 of %2").arg(idle(h2)).arg(idle(plain))));
    // H1 keeps as many microbatches as 1F1B, and what its weights' gradients are made of; H2 keeps p - 1 = 3 more.
    const auto kept = [](int number) { return simulated(deep(4, number, "gpipe")).simulation.peakBytes; };
    const std::int64_t each = (kept(16) - kept(8)) / 8;
    const std::int64_t more = h1.peakBytes - plain.peakBytes;
    QVERIFY2(more >= 0 && more < 2 * each, qPrintable(QString("%1, a microbatch has %2").arg(more).arg(each)));
    const std::int64_t most = h2.peakBytes - h1.peakBytes;
    QVERIFY2(most > 2 * each && most < 4 * each, qPrintable(QString("%1, a microbatch has %2").arg(most).arg(each)));
}

/// One stage after the other on links that nobody else uses: all the same, to a tick for each message.
void TestPipelineSteps::fidelitiesAgree()
{
    const double closed = simulated(deep(4, 2, "gpipe") + "network: {fidelity: closed}\n").simulation.stepSeconds;
    const double fluid = simulated(deep(4, 2, "gpipe")).simulation.stepSeconds;
    const double message = simulated(deep(4, 2, "gpipe") + "network: {fidelity: message}\n").simulation.stepSeconds;
    QVERIFY2(qAbs(fluid - closed) < 1e-9, qPrintable(QString("%1 %2").arg(fluid).arg(closed)));
    QVERIFY2(qAbs(message - closed) < 1e-9, qPrintable(QString("%1 %2").arg(message).arg(closed)));
}

void TestPipelineSteps::slowStage()
{
    const sim::Simulation whole = simulated(deep(4, 8, "1f1b")).simulation;
    const sim::Simulation slow = simulated(deep(4, 8, "1f1b") + "faults: {slow: [{device: 2, speed: 0.5}]}\n").simulation;
    QVERIFY(qAbs(slow.computeSeconds - 2.0 * whole.computeSeconds) < 0.05 * whole.computeSeconds);
    QVERIFY(slow.stepSeconds > 1.5 * whole.stepSeconds);
}

void TestPipelineSteps::sessionHasThem()
{
    sim::Session session(valueOf(sim::defaultCatalogue()));
    const auto analysis = session.analyse({deep(4, 8, "1f1b"), "pipeline.yaml", {}});
    QVERIFY(analysis->simulated != nullptr && analysis->built != nullptr);
    QVERIFY(!hasErrors(analysis->problems));
    QCOMPARE(analysis->simulated->simulation.stepSeconds, simulated(deep(4, 8, "1f1b")).simulation.stepSeconds);
}

/// Layers that are a loop are cut as copies of them are: the same bytes, and the time but for what each turn of a loop waits for at its end.
void TestPipelineSteps::loopsAreCut()
{
    const auto path = resourcesDirectory() / "examples" / "pipeline_transformer.yaml";
    const auto analysed = [&](const char* unroll) {
        sim::Session session(valueOf(sim::defaultCatalogue()));
        const auto analysis = session.analyse({valueOf(readFile(path)), path.string(),
            {std::string("model.transformer.unroll=") + unroll, "recompute=none", "sharding={}"}});
        if (analysis->simulated == nullptr || analysis->pipeline == nullptr)
            qFatal("%s", describe(analysis->problems).c_str());
        return analysis;
    };
    const auto looped = analysed("false");
    const auto unrolled = analysed("true");
    const sim::Simulation& a = looped->simulated->simulation;
    const sim::Simulation& b = unrolled->simulated->simulation;
    QVERIFY(a.stepSeconds > 0.0 && a.bubbleSeconds > 0.0);
    QVERIFY2(qAbs(a.stepSeconds - b.stepSeconds) < 0.01 * b.stepSeconds,
        qPrintable(QString("%1 %2").arg(a.stepSeconds).arg(b.stepSeconds)));
    QVERIFY2(a.peakBytes >= b.peakBytes && 4 * a.peakBytes < 5 * b.peakBytes, // a turn makes its rows beside the stack of all
        qPrintable(QString("%1 %2").arg(a.peakBytes).arg(b.peakBytes)));
    const auto movedBytes = [](const sim::Simulation& simulation) {
        std::map<std::string, std::int64_t> moved;
        for (const sim::SimulatedCollective& collective : simulation.collectives)
            moved[fmt::format("{} {}", opName(collective.use.kind), collective.use.axes)]
                += collective.use.count * collective.use.payloadBytes;
        return moved;
    };
    QVERIFY(movedBytes(a) == movedBytes(b));
    QVERIFY(looped->arrays.size() < unrolled->arrays.size()); // one array of all layers
}

/// Two microbatches, one after the other, need what a step of one of them needs, and sums of gradients.
void TestPipelineSteps::microbatchesHoldNoMore()
{
    const auto peak = [](int batch, const std::string& more) {
        return simulated("meshwright: 1\nhardware: {chip: h100, hosts: 1}\nmesh: {data: 8}\nmodel:\n  transformer: {layers: 8, "
                         "hidden: 1024, heads: 16, "
                         "ffn: 4096, vocabulary: 4096, predict: every_token}\nsequence: 2048\nrecompute: none\nbatch: "
            + std::to_string(batch)
            + "\ndtype: {parameters: f32, matmul: bf16, activations: bf16}\nsharding:\n  x: \"P('data', None)\"\n  y: "
              "\"P('data', "
              "None)\"\noptimizer: {adam: {learning_rate: 0.001}}\n"
            + more)
            .simulation.peakBytes;
    };
    const std::int64_t one = peak(64, "");
    const std::int64_t two = peak(128, "pipeline: {stages: 1, microbatches: 2}\n");
    constexpr std::int64_t kParameters = 8 * 12 * 1024 * 1024 + 2 * 4096 * 1024;
    QVERIFY2(two < one + one / 10 + 4 * kParameters, qPrintable(QString("%1 and %2").arg(one).arg(two)));
    QVERIFY2(two > one - one / 10, qPrintable(QString("%1 and %2").arg(one).arg(two)));
}

namespace {

/// The task list of core/schedule as a step: a receive, the task, a send; a stage forward takes `forward[stage]`, backward twice that.
sim::Ticks playedByTasks(const PipelineShape& shape, const std::vector<sim::Ticks>& forward, sim::Ticks send)
{
    using namespace sim;
    const auto stages = static_cast<std::uint32_t>(shape.stages);
    const Topology line({{"stage", AxisKind::Network, shape.stages, false, {1.0, 0.0, LinkKind::Nic}, 0.0}}, {1});
    const MachineLinks links(line);
    StepWork work;
    work.links = &links;
    std::vector<StepProgram> programs(stages);
    std::vector<std::uint32_t> computing(stages, kNothing);
    std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::uint32_t> sites;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> streams; // of a stage at a site: its last op
    const auto pass = [&](std::uint32_t stage, std::int64_t from, std::int64_t to, bool backward, std::size_t microbatch,
                          std::uint32_t after) {
        const auto sender = static_cast<std::uint32_t>(from % shape.stages);
        const auto receiver = static_cast<std::uint32_t>(to % shape.stages);
        const auto [site, isNew] = sites.try_emplace({sender, receiver, backward}, work.sites.size());
        if (isNew)
            work.sites.push_back(delaySite({2, {sender, receiver}}, send));
        std::vector<StepDependency> waits;
        if (after != kNothing)
            waits.push_back({after, StepLag::None});
        const auto [stream, first] = streams.try_emplace({stage, site->second}, 0);
        if (!first)
            waits.push_back({stream->second, StepLag::None});
        stream->second = programs[stage].collective(
            site->second, static_cast<std::uint32_t>(from * shape.microbatches) + static_cast<std::uint32_t>(microbatch), waits);
        return stream->second;
    };
    for (const Task& task : pipelineTasks(shape)) {
        if (task.kind == TaskKind::Update)
            continue;
        const auto stage = static_cast<std::uint32_t>(task.stage);
        const std::int64_t piece = shape.pieceOf(task);
        const bool backward = task.kind == TaskKind::Backward;
        const std::int64_t before = backward ? piece + 1 : piece - 1;
        const std::int64_t next = backward ? piece - 1 : piece + 1;
        const auto exists = [&](std::int64_t other) { return other >= 0 && other < shape.pieces(); };
        std::vector<StepDependency> waits;
        if (computing[stage] != kNothing)
            waits.push_back({computing[stage], StepLag::None});
        if (exists(before) && shape.stages > 1)
            waits.push_back({pass(stage, before, piece, backward, task.microbatch, kNothing), StepLag::None});
        computing[stage] = programs[stage].compute((backward ? 2 : 1) * forward[stage], waits);
        if (exists(next) && shape.stages > 1)
            pass(stage, piece, next, backward, task.microbatch, computing[stage]);
    }
    for (std::uint32_t stage = 0; stage < stages; ++stage)
        work.kindOf.push_back(stage);
    work.loops = {{std::move(programs), 1}};
    return runStep(work).end;
}

} // namespace

void TestPipelineSteps::wholeFunctionsChangeNothing_data()
{
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("schedule");
    QTest::addColumn<QString>("more");
    QTest::addColumn<bool>("isOneOp"); // of functions with collectives
    QTest::newRow("tensor inside of hosts") << "{chip: a100, hosts: 4, per_host: 4}"
                                            << "{pipe: 4, tensor: 4}"
                                            << "1f1b"
                                            << "" << true;
    QTest::newRow("data over the stages' network") << "{chip: a100, hosts: 8, per_host: 2}"
                                                   << "{pipe: 4, data: 2, tensor: 2}"
                                                   << "1f1b"
                                                   << "" << true;
    QTest::newRow("chunks") << "{chip: h100, hosts: 2, per_host: 4}"
                            << "{pipe: 2, tensor: 4}"
                            << "interleaved, chunks: 2"
                            << "" << true;
    QTest::newRow("stages in one host") << "{chip: a100, hosts: 1, per_host: 8}"
                                        << "{pipe: 2, data: 2, tensor: 2}"
                                        << "gpipe"
                                        << "" << false;
    QTest::newRow("split backward") << "{chip: h100, hosts: 4, per_host: 2}"
                                    << "{pipe: 4, tensor: 2}"
                                    << "zb_h1"
                                    << "" << true;
    QTest::newRow("a torus") << "{chip: v4, topology: [4, 4, 1]}"
                             << "{pipe: 4, tensor: 4}"
                             << "1f1b"
                             << "" << true;
    QTest::newRow("a stack's host") << "{chip: a100, hosts: 2, per_host: 2}"
                                    << "{pipe: 2, tensor: 2}"
                                    << "1f1b"
                                    << "stack: megatron\n"
                                    << true;
    QTest::newRow("a slow device") << "{chip: a100, hosts: 2, per_host: 4}"
                                   << "{pipe: 2, tensor: 4}"
                                   << "1f1b"
                                   << "faults: {slow: [{device: 1, speed: 0.5}]}\n"
                                   << false;
    QTest::newRow("a slow link") << "{chip: v4, topology: [4, 4, 1]}"
                                 << "{pipe: 4, tensor: 4}"
                                 << "1f1b"
                                 << "faults: {links: [{device: 1, axis: x, share: 0.5}]}\n"
                                 << false;
}

/// A function that takes its course whenever it begins is one op of the network's; written out for other programs, it is all of its ops.
void TestPipelineSteps::wholeFunctionsChangeNothing()
{
    QFETCH(QString, hardware);
    QFETCH(QString, mesh);
    QFETCH(QString, schedule);
    QFETCH(QString, more);
    QFETCH(bool, isOneOp);
    QString sharding = QStringLiteral("layers.ffn.up.w: \"P(None, None, 'tensor')\", layers.ffn.down.w: \"P(None, 'tensor')\"");
    if (mesh.contains("data"))
        sharding += ", x: \"P('data')\", y: \"P('data')\"";
    const QString text = QStringLiteral(
        "meshwright: 1\nhardware: %1\nmesh: %2\n"
        "model: {transformer: {name: T, layers: 4, hidden: 2048, heads: 16, kv_heads: 16, head_dim: 128, ffn: 8192, "
        "vocabulary: 1024, tied: false}}\nsequence: 1024\nbatch: 32\ndtype: {parameters: f32, matmul: bf16, "
        "activations: bf16}\nsharding: {%3}\noptimizer: {adam: {learning_rate: 0.001}}\n"
        "pipeline: {axis: pipe, stages: %4, microbatches: 8, schedule: %5}\n%6")
                             .arg(hardware, mesh, sharding)
                             .arg(mesh.mid(7, 1))
                             .arg(schedule, more);
    const Study study = valueOf(readStudy(text.toStdString(), "pipeline.yaml"));
    const sim::Catalogue catalogue = valueOf(sim::defaultCatalogue());
    sim::StepGraph graph;
    const sim::Simulation whole = valueOf(sim::simulateStudy(study, catalogue, {.timeline = true})).simulation;
    const sim::Simulation written = valueOf(sim::simulateStudy(study, catalogue, {.graph = &graph, .timeline = true})).simulation;
    QCOMPARE(whole.stepSeconds, written.stepSeconds);
    QCOMPARE(whole.computeSeconds, written.computeSeconds);
    QCOMPARE(whole.launchSeconds, written.launchSeconds);
    QCOMPARE(whole.exposedSeconds, written.exposedSeconds);
    QCOMPARE(whole.bubbleSeconds, written.bubbleSeconds);
    QCOMPARE(whole.collectiveSeconds, written.collectiveSeconds);
    QCOMPARE(whole.timeline.slices().size(), written.timeline.slices().size());
    QCOMPARE(whole.collectives.size(), written.collectives.size());
    for (std::size_t i = 0; i < whole.collectives.size(); ++i) {
        QCOMPARE(whole.collectives[i].use.count, written.collectives[i].use.count);
        QCOMPARE(whole.collectives[i].seconds, written.collectives[i].seconds);
        QCOMPARE(whole.collectives[i].exposedSeconds, written.collectives[i].exposedSeconds);
    }
    // The curve is that of the stage that needs most, with and without the devices of a timeline.
    const sim::Simulation bare = valueOf(sim::simulateStudy(study, catalogue)).simulation;
    QCOMPARE(whole.memory.size(), written.memory.size());
    QCOMPARE(bare.memory.size(), whole.memory.size());
    for (std::size_t i = 0; i < whole.memory.size(); ++i) {
        QCOMPARE(whole.memory[i].seconds, written.memory[i].seconds);
        QCOMPARE(bare.memory[i].seconds, whole.memory[i].seconds);
        QVERIFY(whole.memory[i].total <= whole.peakBytes);
        QVERIFY(i == 0 || whole.memory[i].seconds >= whole.memory[i - 1].seconds);
    }
    QCOMPARE(whole.memory[whole.peakInstruction].total, whole.peakBytes);
    QCOMPARE(whole.events * 5 < written.events, isOneOp);
}

void TestPipelineSteps::gradientsAreReducedOnce_data()
{
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<QString>("masters");
    QTest::addColumn<QString>("microbatches");
    QTest::addColumn<int>("bytes"); // that are sent of each number
    const QString pipeline = "pipeline: {stages: 1, microbatches: 4}\n";
    QTest::newRow("32 bits") << "parameters: f32"
                             << "" << pipeline << 4;
    QTest::newRow("16 bits") << "parameters: bf16"
                             << "" << pipeline << 2;
    QTest::newRow("16 bits, gradients of 32") << "parameters: bf16, gradients: f32"
                                              << "" << pipeline << 4;
    QTest::newRow("16 bits with masters") << "parameters: bf16"
                                          << ", masters: true" << pipeline << 4;
    QTest::newRow("16 bits with masters and gradients of 16") << "parameters: bf16, gradients: bf16"
                                                              << ", masters: true" << pipeline << 2;
    QTest::newRow("32 bits, gradients of 16") << "parameters: f32, gradients: bf16"
                                              << "" << pipeline << 2;
    for (const QString& accumulate : {QStringLiteral(""), QStringLiteral("train: {accumulate: 4}\n")}) {
        const auto row = [&](const char* name) -> QTestData& {
            return QTest::addRow("%s, %s", name, accumulate.isEmpty() ? "one batch" : "accumulated");
        };
        row("32 bits") << "parameters: f32"
                       << "" << accumulate << 4;
        row("16 bits") << "parameters: bf16"
                       << "" << accumulate << 2;
        row("16 bits with masters") << "parameters: bf16"
                                    << ", masters: true" << accumulate << 4;
        row("16 bits with masters and gradients of 16") << "parameters: bf16, gradients: bf16"
                                                        << ", masters: true" << accumulate << 2;
        row("16 bits, gradients of 32") << "parameters: bf16, gradients: f32"
                                        << "" << accumulate << 4;
        row("32 bits, gradients of 16") << "parameters: f32, gradients: bf16"
                                        << "" << accumulate << 2;
    }
}

/// Data parallel: each gradient is all-reduced once in a step, in its type, and moments and masters never are.
void TestPipelineSteps::gradientsAreReducedOnce()
{
    QFETCH(QString, dtype);
    QFETCH(QString, masters);
    QFETCH(QString, microbatches);
    QFETCH(int, bytes);
    const QString text = QStringLiteral("meshwright: 1\nhardware: {chip: a100, hosts: 1, per_host: 4}\nmesh: {data: 4}\n"
                                        "model: {mlp: {layers: [64, 128, 256, 64], activation: relu, loss: mse, bias: false}}\n"
                                        "batch: 64\ndtype: {%1, matmul: bf16}\nsharding: {x: [data], y: [data]}\n"
                                        "optimizer: {adam: {learning_rate: 0.001%2}}\n%3")
                             .arg(dtype, masters, microbatches);
    std::multiset<std::int64_t> payloads;
    for (const sim::SimulatedCollective& collective : simulated(text.toStdString()).simulation.collectives) {
        for (std::int64_t i = 0; i < collective.use.count && collective.use.payloadBytes > 4; ++i) // the loss is a scalar
            payloads.insert(collective.use.payloadBytes);
    }
    const std::multiset<std::int64_t> expected{64 * 128 * bytes, 128 * 256 * bytes, 256 * 64 * bytes};
    QVERIFY2(payloads == expected, qPrintable(QString::number(payloads.size())));
}

/// An array that is used twice has one gradient: the sum of two sums over devices, whose parts are added up first.
void TestPipelineSteps::tiedGradientsAreReducedOnce()
{
    const sim::SimulatedStudy study
        = simulated("meshwright: 1\nhardware: {chip: a100, hosts: 1, per_host: 4}\nmesh: {data: 4}\n"
                    "model: {transformer: {name: T, layers: 2, hidden: 64, heads: 4, kv_heads: 4, head_dim: 16, ffn: 128, "
                    "vocabulary: 512, tied: true}}\nsequence: 32\nbatch: 16\n"
                    "dtype: {parameters: f32, matmul: bf16, activations: bf16}\nsharding: {x: [data], y: [data]}\n"
                    "optimizer: {adam: {learning_rate: 0.001}}\npipeline: {stages: 1, microbatches: 4}\n");
    std::map<std::string, std::int64_t> repeated;
    for (const sim::SimulatedCollective& collective : study.simulation.collectives) {
        if (collective.use.payloadBytes > 4 && collective.use.count != 1)
            repeated[collective.use.cause.value] += collective.use.count;
    }
    QVERIFY2(repeated.empty(), repeated.empty() ? "" : repeated.begin()->first.c_str());
}

void TestPipelineSteps::closedFormAgrees_data()
{
    QTest::addColumn<int>("order");
    QTest::addColumn<int>("stages");
    QTest::addColumn<int>("chunks");
    QTest::addColumn<int>("microbatches");
    for (const int stages : {2, 4, 8}) {
        for (const int rounds : {1, 2, 5}) {
            QTest::addRow("GPipe %d %d", stages, rounds * stages) << int(PipelineOrder::GPipe) << stages << 1 << rounds * stages;
            QTest::addRow("1F1B %d %d", stages, rounds * stages)
                << int(PipelineOrder::OneForwardOneBackward) << stages << 1 << rounds * stages;
            QTest::addRow("interleaved %d x 2 %d", stages, rounds * stages)
                << int(PipelineOrder::Interleaved) << stages << 2 << rounds * stages;
        }
    }
}

/// What transformers' closed form plays and what the task list of executed pipelines gives on the network simulator: the same on balanced
/// stages, m (f + b) + (p - 1)(f + b) / v; and on uneven ones, as long as sending is for free.
void TestPipelineSteps::closedFormAgrees()
{
    QFETCH(int, order);
    QFETCH(int, stages);
    QFETCH(int, chunks);
    QFETCH(int, microbatches);
    const PipelineShape shape{stages, chunks, microbatches, static_cast<PipelineOrder>(order)};
    constexpr sim::Ticks kForward = 10'000'000;
    const auto clockSeconds = [&](const std::vector<sim::Ticks>& forward) {
        std::vector<sim::ChunkTime> times;
        for (int piece = 0; piece < stages * chunks; ++piece) {
            const double seconds = sim::secondsOf(forward[static_cast<std::size_t>(piece % stages)]);
            times.push_back({seconds, 2.0 * seconds});
        }
        return sim::PipelineClock().playSeconds(times, stages, microbatches, shape.order, 0.0, 0.0);
    };
    std::vector<sim::Ticks> forward(static_cast<std::size_t>(stages), kForward);
    const sim::Ticks even = playedByTasks(shape, forward, 0);
    QCOMPARE(even, sim::Ticks{3} * kForward * (chunks * microbatches + stages - 1));
    QVERIFY(qAbs(sim::secondsOf(even) - clockSeconds(forward)) < 1e-12 * stages * microbatches);
    forward[1] *= 2;
    forward.back() += kForward / 2;
    QVERIFY(qAbs(sim::secondsOf(playedByTasks(shape, forward, 0)) - clockSeconds(forward)) < 1e-12 * stages * microbatches);
}

/// Each of the parts of a prediction that take long ends with a problem of nobody's when it is asked to stop, and nothing is predicted.
void TestPipelineSteps::stopsInTheMiddle()
{
    const Study study = valueOf(readStudy(deep(4, 8, "1f1b"), "pipeline.yaml"));
    std::stop_source source;
    const auto built = valueOf(sim::buildPhase(study));
    const auto pipeline = valueOf(sim::pipelineOfPhase(built, source.get_token()));
    QVERIFY(pipeline != nullptr);
    const auto scheduled = sim::scheduleStep(built);
    const auto machine = valueOf(sim::machineOf(study, valueOf(sim::defaultCatalogue())));
    QVERIFY(sim::simulateStep(built, scheduled, pipeline.get(), machine, {}, source.get_token()));
    QVERIFY(sim::simulateStep(built, scheduled, nullptr, machine, {}, source.get_token()));
    source.request_stop();
    const auto cut = sim::pipelineOfPhase(built, source.get_token());
    QVERIFY(!cut);
    QCOMPARE(cut.error().front().id, std::string());
    for (const TrainingPhase* stages : {pipeline.get(), static_cast<const TrainingPhase*>(nullptr)}) {
        const auto step = sim::simulateStep(built, scheduled, stages, machine, {}, source.get_token());
        QVERIFY(!step);
        QCOMPARE(step.error().front().id, std::string());
    }
}

MESHWRIGHT_TEST(TestPipelineSteps)

} // namespace tst_pipeline_steps

#include "tst_pipeline_steps.moc"
