// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/runtime/pipeline.h"
#include "core/schedule/pipeline_tasks.h"
#include "core/support/timed_stop.h"
#include "core/train/pipeline_program.h"
#include "core/train/trainer.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <cmath>

namespace tst_pipelined_training {

using namespace meshwright;

namespace {

constexpr std::int64_t kBatch = 24;
using Specs = std::map<std::string, std::string>;

/// As many equal layers as pieces can be cut from.
MlpModel modelOf(std::int64_t layers)
{
    MlpModel model;
    model.layers.assign(static_cast<std::size_t>(layers) + 1, 8);
    model.loss = LossKind::CrossEntropy;
    model.activation = Activation::Tanh;
    return model;
}

Program programOf(std::int64_t layers, std::int64_t batch, const Optimizer& optimizer, const Mesh& mesh, const Specs& specs)
{
    TrainingOptions options;
    options.batch = batch;
    options.optimizer = optimizer;
    Program program = valueOf(buildMlpTraining(modelOf(layers), options));
    program.meshes = {{"mesh", mesh}};
    for (Function& function : program.functions) {
        for (const ValueId id : function.arguments()) {
            if (const auto spec = specs.find(function[id].name); spec != specs.end())
                function[id].sharding
                    = valueOf(toTensorSharding(valueOf(parseSpec(spec->second)), function[id].type.shape.size(), mesh));
        }
    }
    return program;
}

/// Cuts after so many layers each.
PipelineCut cutOf(const PipelineShape& shape, const std::string& axis, const std::vector<std::int64_t>& layers)
{
    PipelineCut cut{shape, axis, {}};
    std::int64_t done = 0;
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
        done += layers[i];
        cut.after.push_back(fmt::format("act.layers.{}.activated", done - 1));
    }
    return cut;
}

struct Case {
    std::string mesh;
    PipelineShape shape;
    std::vector<std::int64_t> layers; ///< of each piece
    Specs specs;
    Optimizer optimizer = SgdOptimizer{0.1, 0.9};
};

std::int64_t sum(const std::vector<std::int64_t>& values)
{
    std::int64_t all = 0;
    for (const std::int64_t value : values)
        all += value;
    return all;
}

TrainingPhase phaseOf(const Case& made, std::int64_t steps)
{
    const Mesh mesh = valueOf(parseMesh(made.mesh));
    const std::int64_t layers = sum(made.layers);
    TrainingPhase phase;
    phase.steps = steps;
    phase.program = programOf(layers, kBatch, made.optimizer, mesh, made.specs);
    phase.scheduled = valueOf(pipelineOf(programOf(layers, kBatch / made.shape.microbatches, made.optimizer, mesh, made.specs),
        cutOf(made.shape, "pipe", made.layers)));
    return phase;
}

/// The same on one device.
TrainingPhase wholePhase(const Case& made, std::int64_t steps)
{
    const std::int64_t layers = sum(made.layers);
    TrainingPhase phase;
    phase.steps = steps;
    phase.program = programOf(layers, kBatch, made.optimizer, valueOf(parseMesh("data=1")), {});
    phase.scheduled = schedule(valueOf(propagateAndPartition(phase.program)).device, SchedulePolicy::Host);
    return phase;
}

Dataset rowsToLearn()
{
    Dataset data = randomDataset(60, 8, 8, keyOfSeed(3), true);
    data.targets.clear();
    for (std::int32_t row = 0; row < 60; ++row)
        data.labels.push_back(row % 8);
    data.trainingRows = 50;
    return data;
}

TrainerOptions optionsOf(std::int64_t layers)
{
    TrainerOptions options;
    options.keepParameters = true;
    options.record = true;
    options.verify = true;
    TrainingOptions training;
    training.batch = kBatch;
    for (const auto& [name, key] : initKeys(modelOf(layers), training, keyOfSeed(0)))
        options.initKeys.push_back(key);
    return options;
}

TrainingResult trained(const std::vector<TrainingPhase>& phases, const TrainerOptions& options)
{
    auto result = train(phases, rowsToLearn(), options, {}, {});
    if (!result)
        qFatal("%s", describe(result.error()).c_str());
    return *std::move(result);
}

constexpr PipelineOrder kOneByOne = PipelineOrder::OneForwardOneBackward;
const Specs kData{{"x", "P('data')"}, {"y", "P('data')"}};
const Specs kModel{{"layers.0.w", "P(None, 'model')"}, {"layers.1.w", "P('model', None)"}, {"layers.2.w", "P(None, 'model')"},
    {"layers.3.w", "P('model', None)"}};

} // namespace

class TestPipelinedTraining : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void equalsTheWhole_data();
    void equalsTheWhole();
    void reducesOnceAStep();
    void scatters_data();
    void scatters();
    void bubble_data();
    void bubble();
    void timelinesShowTransfers();
    void keepsItsBits();
    void failsCleanly_data();
    void failsCleanly();
    void phasesAndCheckpoints();
    void refusesInvalidCuts();
    void stopsBetweenPieces();
};

void TestPipelinedTraining::equalsTheWhole_data()
{
    QTest::addColumn<Case>("made");
    QTest::newRow("one stage, one microbatch") << Case{"pipe=1", {1, 1, 1, kOneByOne}, {4}, {}};
    QTest::newRow("one stage, 3 microbatches") << Case{"pipe=1", {1, 1, 3, kOneByOne}, {4}, {}};
    QTest::newRow("GPipe") << Case{"pipe=4", {4, 1, 6, PipelineOrder::GPipe}, {1, 1, 1, 1}, {}};
    QTest::newRow("1F1B") << Case{"pipe=4", {4, 1, 6, kOneByOne}, {1, 1, 1, 1}, {}};
    QTest::newRow("fewer microbatches than stages") << Case{"pipe=4", {4, 1, 2, kOneByOne}, {1, 1, 1, 1}, {}};
    QTest::newRow("uneven stages") << Case{"pipe=3", {3, 1, 4, kOneByOne}, {3, 1, 2}, {}};
    QTest::newRow("ZB-H1") << Case{"pipe=4", {4, 1, 6, PipelineOrder::ZeroBubbleH1}, {1, 1, 1, 1}, {}};
    QTest::newRow("ZB-H2") << Case{"pipe=3", {3, 1, 6, PipelineOrder::ZeroBubbleH2}, {3, 1, 2}, {}};
    QTest::newRow("ZB-H1, one stage") << Case{"pipe=1", {1, 1, 3, PipelineOrder::ZeroBubbleH1}, {4}, {}};
    QTest::newRow("interleaved") << Case{"pipe=2", {2, 2, 4, PipelineOrder::Interleaved}, {1, 1, 1, 1}, {}};
    QTest::newRow("interleaved, 3 chunks") << Case{"pipe=2", {2, 3, 4, PipelineOrder::Interleaved}, {1, 1, 2, 1, 1, 1}, {}};
    QTest::newRow("data x pipe") << Case{"pipe=2,data=2", {2, 1, 4, kOneByOne}, {2, 2}, kData};
    QTest::newRow("pipe is the minor axis") << Case{"data=2,pipe=2", {2, 1, 4, PipelineOrder::GPipe}, {2, 2}, kData};
    QTest::newRow("model x pipe") << Case{"pipe=2,model=2", {2, 1, 4, kOneByOne}, {2, 2}, kModel};
    Specs both = kModel;
    both.insert(kData.begin(), kData.end());
    QTest::newRow("data x model x pipe, Adam")
        << Case{"data=2,pipe=2,model=2", {2, 2, 2, PipelineOrder::Interleaved}, {1, 1, 1, 1}, both, AdamOptimizer{}};
    Specs fsdp = kData;
    for (int i = 0; i < 4; ++i)
        fsdp[fmt::format("layers.{}.w", i)] = "P('data')";
    AdamOptimizer clipped;
    clipped.update.clipNorm = 0.05;
    QTest::newRow("ZB-H1, data x model x pipe, clipped")
        << Case{"data=2,pipe=2,model=2", {2, 1, 4, PipelineOrder::ZeroBubbleH1}, {2, 2}, both, clipped};
    QTest::newRow("clipped by the norm of all stages")
        << Case{"data=2,pipe=2,model=2", {2, 2, 2, PipelineOrder::Interleaved}, {1, 1, 1, 1}, both, clipped};
    SgdOptimizer plain;
    plain.update.clipNorm = 0.05;
    QTest::newRow("clipped, one stage") << Case{"pipe=1", {1, 1, 3, kOneByOne}, {4}, {}, plain};
    QTest::newRow("ZB-H2, fsdp x pipe") << Case{
        "pipe=2,data=2", {2, 1, 4, PipelineOrder::ZeroBubbleH2}, {2, 2}, fsdp, AdamOptimizer{}};
    QTest::newRow("fsdp x pipe") << Case{"pipe=2,data=2", {2, 1, 4, kOneByOne}, {2, 2}, fsdp, AdamOptimizer{}};
}

void TestPipelinedTraining::equalsTheWhole()
{
    QFETCH(Case, made);
    const std::int64_t layers = sum(made.layers);
    const TrainingResult whole = trained({wholePhase(made, 4)}, optionsOf(layers));
    const TrainingResult pipelined = trained({phaseOf(made, 4)}, optionsOf(layers));
    QCOMPARE(pipelined.losses.size(), whole.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        QVERIFY2(std::abs(pipelined.losses[i] - whole.losses[i]) < 1e-5 * std::abs(whole.losses[i]),
            fmt::format("step {}: {} instead of {}", i, pipelined.losses[i], whole.losses[i]).c_str());
    for (std::size_t i = 0; i < whole.accuracies.size(); ++i)
        QVERIFY(std::abs(pipelined.accuracies[i] - whole.accuracies[i]) < 1e-6);
    QVERIFY(pipelined.heldOutAccuracy == whole.heldOutAccuracy);
    QVERIFY(pipelined.verification->passed);
    QCOMPARE(pipelined.parameters.size(), whole.parameters.size());
    for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
        QVERIFY(pipelined.parameters[i].type() == whole.parameters[i].type());
        const std::vector<double> expected = whole.parameters[i].values();
        const std::vector<double> actual = pipelined.parameters[i].values();
        for (std::size_t j = 0; j < expected.size(); ++j)
            QVERIFY(std::abs(actual[j] - expected[j]) < 2e-5);
    }
}

void TestPipelinedTraining::reducesOnceAStep()
{
    constexpr std::int64_t kSteps = 3;
    const Case made{"pipe=2,data=2", {2, 1, 4, kOneByOne}, {2, 2}, kData};
    const TrainingResult result = trained({phaseOf(made, kSteps)}, optionsOf(4));
    std::map<std::string, std::int64_t> calls;
    for (const CountedCollective& counted : result.phases.front().collectives) {
        if (counted.use.kind == OpKind::AllReduce && counted.use.cause.value.find("acc.") != std::string::npos) {
            QCOMPARE(counted.calls, kSteps); // not one for each of the 4 microbatches
            ++calls[counted.use.cause.value];
        }
        QCOMPARE(counted.calls, counted.use.count * kSteps);
        QCOMPARE(counted.totalPayloadBytes, counted.use.payloadBytes * counted.calls);
    }
    QCOMPARE(calls.size(), std::size_t{8}); // 4 weights, 4 biases
    const std::vector<CountedCollective>& collectives = result.phases.front().collectives;
    const std::array phases = {Phase::Forward, Phase::Backward};
    for (std::size_t i = 0; i < phases.size(); ++i) {
        const CountedCollective& sent = collectives[collectives.size() - phases.size() + i];
        QCOMPARE(sent.use.kind, OpKind::Send);
        QCOMPARE(sent.use.phase, phases[i]);
        QCOMPARE(sent.calls, 4 * kSteps); // of a device: activations of 4 microbatches, or their gradients
        QCOMPARE(sent.use.payloadBytes, kBatch / 4 / 2 * 8 * 4); // rows of a microbatch and device, 8 wide, f32
    }
}

void TestPipelinedTraining::scatters_data()
{
    QTest::addColumn<QString>("arrays");
    QTest::addColumn<int>("each"); ///< reductions of a weight in a step of 4 microbatches
    QTest::newRow("ZeRO-1: once, to where the moments lie") << "opt.m. opt.v." << 1;
    QTest::newRow("ZeRO-3: each time") << " opt.m. opt.v." << 4;
}

/// Gradients that devices share are scattered: those of parameters that each device has whole once a step.
void TestPipelinedTraining::scatters()
{
    QFETCH(QString, arrays);
    QFETCH(int, each);
    Case made{"pipe=2,data=2", {2, 1, 4, kOneByOne}, {2, 2}, kData, AdamOptimizer{}};
    for (const QString& family : arrays.split(' ')) {
        for (int i = 0; i < 4; ++i)
            made.specs[fmt::format("{}layers.{}.w", family.toStdString(), i)] = "P('data')";
    }
    const TrainingResult whole = trained({wholePhase(made, 3)}, optionsOf(4));
    const TrainingResult result = trained({phaseOf(made, 3)}, optionsOf(4));
    QVERIFY(std::abs(result.losses.back() - whole.losses.back()) < 1e-5 * std::abs(whole.losses.back()));
    int scattered = 0;
    for (const CountedCollective& counted : result.phases.front().collectives) {
        const bool isWeight = counted.use.payloadBytes > 8 * 4;
        if (counted.use.kind == OpKind::ReduceScatter) {
            QCOMPARE(counted.calls, each * 3);
            ++scattered;
        }
        QVERIFY2(counted.use.kind != OpKind::AllReduce || !isWeight, counted.use.cause.value.c_str());
    }
    QCOMPARE(scattered, 4);
}

void TestPipelinedTraining::bubble_data()
{
    QTest::addColumn<Case>("made");
    QTest::newRow("GPipe") << Case{"pipe=4", {4, 1, 6, PipelineOrder::GPipe}, {1, 1, 1, 1}, {}};
    QTest::newRow("1F1B") << Case{"pipe=4", {4, 1, 12, kOneByOne}, {1, 1, 1, 1}, {}};
    QTest::newRow("1F1B, 2 stages") << Case{"pipe=2", {2, 1, 3, kOneByOne}, {2, 2}, {}};
    QTest::newRow("interleaved") << Case{"pipe=2", {2, 3, 4, PipelineOrder::Interleaved}, {1, 1, 1, 1, 1, 1}, {}};
    QTest::newRow("interleaved, 4 stages") << Case{"pipe=4", {4, 2, 8, PipelineOrder::Interleaved}, {1, 1, 1, 1, 1, 1, 1, 1}, {}};
}

/// On balanced stages the devices are idle for (p - 1) / (v m + p - 1) of the step (semantics 6.7).
void TestPipelinedTraining::bubble()
{
    QFETCH(Case, made);
    const TrainingPhase phase = phaseOf(made, 1);
    const Mesh mesh = valueOf(parseMesh(made.mesh));
    const auto devices = valueOf(VirtualDevices::create(mesh.deviceCount()));
    const auto pipeline = valueOf(LoadedPipeline::load(phase.scheduled, mesh, *devices));
    pipeline->writeBatch(HostArray::filled({DType::F32, {kBatch, 8}}, 0.5), HostArray::filled({DType::F32, {kBatch, 8}}, 0.125));
    std::map<std::string, HostArray> keys;
    for (const ValueId argument : phase.program.find("init")->arguments())
        keys[phase.program.find("init")->values[argument.at()].name] = HostArray::filled({DType::U32, {2}}, 7.0);
    QVERIFY(pipeline->initialise(keys, {}));
    QVERIFY(pipeline->run({.record = true}));
    for (const double backward : {1.0, 2.0}) {
        const Timeline timeline = pipeline->virtualTimeline([&](const Task& task) {
            return task.kind == TaskKind::Forward ? 1.0 : task.kind == TaskKind::Backward ? backward : 0.0;
        });
        double busy = 0.0;
        for (const Slice& slice : timeline.slices())
            busy += slice.category == SliceCategory::Compute ? slice.durationSeconds : 0.0;
        const double idle = 1.0 - busy / (timeline.endSeconds() * static_cast<double>(mesh.deviceCount()));
        const auto p = static_cast<double>(made.shape.stages);
        const auto vm = static_cast<double>(made.shape.chunks * made.shape.microbatches);
        const double expected = (p - 1) / (vm + p - 1);
        QVERIFY2(std::abs(idle - expected) <= 0.1 * expected, fmt::format("{} instead of {}", idle, expected).c_str());
    }
}

void TestPipelinedTraining::timelinesShowTransfers()
{
    const Case made{"pipe=2,data=2", {2, 1, 3, kOneByOne}, {2, 2}, kData};
    const TrainingResult result = trained({phaseOf(made, 2)}, optionsOf(4));
    for (const Timeline* timeline : {&result.wall, &result.virtualTime}) {
        QCOMPARE(timeline->rows().size(), std::size_t{12}); // 4 devices: compute, collectives, transfers
        std::map<std::string, int> transfers;
        std::set<std::string> details;
        std::uint32_t row = 0;
        double last = 0.0;
        for (const Slice& slice : timeline->slices()) {
            if (slice.category == SliceCategory::Transfer)
                ++transfers[timeline->text(slice.name)];
            details.insert(timeline->text(slice.detail));
            last = slice.row == row ? last : 0.0;
            QVERIFY2(slice.startSeconds >= last - 1e-9, "slices of a row overlap");
            row = slice.row;
            last = slice.startSeconds + slice.durationSeconds;
        }
        QCOMPARE(transfers["send activation"], 2 * 3); // two devices of the first stage, three microbatches
        QCOMPARE(transfers["send gradient"], 2 * 3);
        QVERIFY(details.contains("forward, microbatch 2") && details.contains("backward, microbatch 0")
            && details.contains("update"));
    }
}

void TestPipelinedTraining::keepsItsBits()
{
    const Case made{"data=2,pipe=2", {2, 2, 4, PipelineOrder::Interleaved}, {1, 1, 1, 1}, kData};
    std::vector<double> first;
    for (const int permits : {1, 4, 2}) {
        TrainerOptions options = optionsOf(4);
        options.permits = permits;
        options.verify = false;
        const TrainingResult result = trained({phaseOf(made, 5)}, options);
        if (first.empty())
            first = result.losses;
        QVERIFY(result.losses == first);
    }
}

void TestPipelinedTraining::failsCleanly_data()
{
    QTest::addColumn<QString>("fault");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("said");
    QTest::newRow("fail") << "fail:device=1,step=1"
                          << "MW1508"
                          << "device 1 failed in step 2, in ";
    QTest::newRow("nan") << "nan:device=3,step=1"
                         << "MW1523"
                         << "device 3 in step 2, in ";
    QTest::newRow("stall") << "stall:device=0,step=1"
                           << "MW1522"
                           << "device 0 has not arrived for 200 ms: ";
}

void TestPipelinedTraining::failsCleanly()
{
    QFETCH(QString, fault);
    QFETCH(QString, id);
    QFETCH(QString, said);
    const Case made{"pipe=4", {4, 1, 4, kOneByOne}, {1, 1, 1, 1}, {}};
    TrainerOptions options = optionsOf(4);
    options.faults.injected = {valueOf(parseInjectedFault(fault.toStdString()))};
    options.faults.checkNumerics = true;
    options.stallSeconds = 0.2;
    const auto result = train({phaseOf(made, 3)}, rowsToLearn(), options, {}, {});
    QVERIFY(!result);
    QCOMPARE(result.error().size(), std::size_t{1});
    QCOMPARE(result.error().front().id, id.toStdString());
    QVERIFY2(result.error().front().message.starts_with(said.toStdString()), result.error().front().message.c_str());
    if (id == "MW1522")
        QVERIFY2(result.error().front().message.find("waits in receiving the activation of microbatch 0 from device 0")
                != std::string::npos,
            result.error().front().message.c_str());
}

/// A pipeline takes over from a whole step, and the other way round; and goes on from its checkpoint.
void TestPipelinedTraining::phasesAndCheckpoints()
{
    const Case made{"pipe=2,data=2", {2, 1, 4, kOneByOne}, {2, 2}, kData, AdamOptimizer{}};
    Case four = made;
    four.mesh = "pipe=4";
    four.shape.stages = 4;
    four.layers = {1, 1, 1, 1};
    four.specs = {};
    TrainingPhase plain; // all on the same four devices
    plain.steps = 2;
    plain.program = programOf(4, kBatch, made.optimizer, valueOf(parseMesh("data=4")), kData);
    plain.scheduled = schedule(valueOf(propagateAndPartition(plain.program)).device, SchedulePolicy::Host);
    const TrainingResult mixed = trained({phaseOf(made, 2), plain, phaseOf(four, 2)}, optionsOf(4));
    const TrainingResult whole = trained({wholePhase(made, 6)}, optionsOf(4));
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        QVERIFY(std::abs(mixed.losses[i] - whole.losses[i]) < 1e-5 * std::abs(whole.losses[i]));
    QVERIFY(mixed.verification->passed);

    const QTemporaryDir folder;
    TrainerOptions options = optionsOf(4);
    options.verify = false;
    options.checkpoints = CheckpointPlan{folder.path().toStdString(), 2, 0};
    const TrainingResult unbroken = trained({phaseOf(made, 4)}, options);
    options.checkpoints.reset();
    options.resumed = valueOf(CheckpointReader::open(std::filesystem::path(folder.path().toStdString()) / "step-000000002"));
    QCOMPARE(trained({phaseOf(made, 4)}, options).losses, unbroken.losses); // the same bits
    const TrainingResult elsewhere = trained({phaseOf(four, 4)}, options);
    for (std::size_t i = 0; i < unbroken.losses.size(); ++i)
        QVERIFY(std::abs(elsewhere.losses[i] - unbroken.losses[i]) < 1e-5 * std::abs(unbroken.losses[i]));
}

void TestPipelinedTraining::stopsBetweenPieces()
{
    std::stop_source stop;
    PipelineCut cut = cutOf({2, 1, 2, kOneByOne}, "pipe", {2, 2});
    cut.stop = stop.get_token();
    const Program program = programOf(4, 12, SgdOptimizer{}, valueOf(parseMesh("pipe=2")), {});
    QVERIFY(pipelineOf(program, cut));
    stop.request_stop();
    const auto stopped = pipelineOf(program, cut);
    QVERIFY(!stopped);
    QCOMPARE(stopped.error().front().message, stoppedProblem().message);
}

void TestPipelinedTraining::refusesInvalidCuts()
{
    const Mesh mesh = valueOf(parseMesh("pipe=3"));
    const PipelineShape shape{2, 1, 2, kOneByOne};
    const auto idOf = [](const Result<ScheduledProgram>& result) { return result ? std::string() : result.error().front().id; };
    const Program program = programOf(4, 12, SgdOptimizer{}, mesh, {});
    QCOMPARE(idOf(pipelineOf(program, {shape, "pipe", {"act.layers.9.activated"}})), std::string("MW1543"));
    // The second cut is before the first one: what lies between needs x again.
    QCOMPARE(idOf(pipelineOf(program, {{3, 1, 2, kOneByOne}, "pipe", {"act.layers.2.activated", "act.layers.0.activated"}})),
        std::string("MW1544"));
    QCOMPARE(idOf(pipelineOf(programOf(4, 12, NoOptimizer{}, mesh, {}), cutOf(shape, "pipe", {2, 2}))), std::string("MW1545"));
}

MESHWRIGHT_TEST(TestPipelinedTraining)

} // namespace tst_pipelined_training

#include "tst_pipelined_training.moc"
