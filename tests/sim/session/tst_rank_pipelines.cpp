// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"
#include "tests/folder_content.h"
#include "tests/rank_threads.h"
#include "tests/ways_program.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <algorithm>
#include <array>
#include <tuple>

namespace tst_rank_pipelines {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

namespace {

/// A small network with as many equal layers as `parts` asks for, on four devices.
Study studyOf(const std::string& parts, const std::vector<std::string>& settings = {})
{
    return valueOf(
        readStudy("meshwright: 1\nname: small\nbatch: 24\nmodel: {mlp: {layers: [64, 16, 16, 16, 10], activation: tanh, "
                  "loss: cross_entropy}}\n"
                + parts,
            "small.yaml", settings));
}

std::string partsOf(
    const std::string& mesh, const std::string& pipeline, const std::string& sharding, const std::string& optimizer)
{
    return "mesh: {" + mesh + "}\npipeline: {axis: pipe, " + pipeline + "}\nsharding: {" + sharding + "}\noptimizer: {"
        + optimizer + "}\ntrain: {steps: 4, data: digits, evaluate: 2}\n";
}

const std::string kSgd = "sgd: {learning_rate: 0.1, momentum: 0.9}";
const std::string kClipped = "adamw: {learning_rate: 0.01, clip_norm: 0.05}";
const std::string kData = "x: P('data'), y: P('data')";
const std::string kModel = "layers.0: {w: \"P(None, 'model')\"}, layers.1: {w: \"P('model', None)\"}, layers.2: {w: \"P(None, "
                           "'model')\"}, layers.3: {w: \"P('model', None)\"}";
const std::string kFsdp = kData + ", layers.*: {w: \"P('data', None)\"}";

TrainChoices choicesOf(std::shared_ptr<Ranks> ranks = {})
{
    TrainChoices choices;
    choices.keepParameters = true;
    choices.permits = 1;
    choices.ranks = std::move(ranks);
    return choices;
}

/// A study made ready once, to be trained several times.
struct Training {
    Study study;
    std::vector<TrainingPhase> phases;
    Dataset data;

    explicit Training(Study read)
        : study(std::move(read))
        , phases(valueOf(trainingPhases(study)))
        , data(valueOf(datasetOf(study)))
    {
    }

    Result<TrainingResult> run(const TrainChoices& choices, const std::function<void(const TrainingProgress&)>& progress = {},
        const std::stop_token& stop = {}) const
    {
        return train(phases, data, valueOf(trainerOptions(study, choices)), progress, stop);
    }
};

/// What the devices counted.
std::vector<std::tuple<OpKind, std::string, std::int64_t, std::int64_t>> countedOf(const TrainingResult& result)
{
    std::vector<std::tuple<OpKind, std::string, std::int64_t, std::int64_t>> counted;
    for (const PhaseResult& phase : result.phases) {
        for (const CountedCollective& one : phase.collectives)
            counted.emplace_back(one.use.kind, one.use.cause.value, one.calls, one.totalPayloadBytes);
    }
    return counted;
}

/// The same bits, and the same counts.
bool isSame(const TrainingResult& a, const TrainingResult& b)
{
    const auto isSameMeasure = [](const HeldOutMeasure& one, const HeldOutMeasure& other) {
        return one.step == other.step && one.accuracy == other.accuracy && one.loss == other.loss;
    };
    return !a.parameters.empty() && a.losses == b.losses && a.accuracies == b.accuracies && a.parameters == b.parameters
        && std::ranges::equal(a.heldOut, b.heldOut, isSameMeasure) && !a.heldOut.empty() && countedOf(a) == countedOf(b)
        && a.phases.back().movedBytes == b.phases.back().movedBytes && a.stepArenaBytes == b.stepArenaBytes;
}

/// How many slices of each name a timeline has; those of devices.
std::map<std::string, int> slicesOf(const Timeline& timeline)
{
    std::map<std::string, int> count;
    for (const Slice& slice : timeline.slices()) {
        if (slice.category != SliceCategory::Wait && slice.category != SliceCategory::WaitForCore)
            ++count[timeline.text(slice.name)];
    }
    return count;
}

const std::string kFourStages = partsOf("pipe: 4", "stages: 4, microbatches: 4, schedule: 1f1b", "", kSgd);
const std::string kTwoByTwo = partsOf("data: 2, pipe: 2", "stages: 2, microbatches: 4, schedule: 1f1b", kData, kClipped);

} // namespace

/// Pipelines whose devices several processes share: the processes are threads here, and MPI is memory.
class TestRankPipelines : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sameBits_data();
    void sameBits();
    void tiedEmbeddings();
    void phases();
    void timelines();
    void checkpoints();
    void stopsTogether();
    void faults_data();
    void faults();
    void nobodyCanMove();
    void programs_data();
    void programs();
    void devicesThatDiffer_data();
    void devicesThatDiffer();
    void otherProgram();
};

void TestRankPipelines::sameBits_data()
{
    QTest::addColumn<QString>("parts");
    const auto row = [](const char* name, const std::string& mesh, const std::string& pipeline, const std::string& sharding,
                         const std::string& optimizer) {
        QTest::newRow(name) << QString::fromStdString(partsOf(mesh, pipeline, sharding, optimizer));
    };
    row("GPipe", "pipe: 4", "stages: 4, microbatches: 6, schedule: gpipe", "", kSgd);
    row("1F1B", "pipe: 4", "stages: 4, microbatches: 6, schedule: 1f1b", "", kClipped);
    row("ZB-H1", "pipe: 4", "stages: 4, microbatches: 6, schedule: zb_h1", "", kSgd);
    row("ZB-H2", "pipe: 4", "stages: 4, microbatches: 6, schedule: zb_h2", "", kClipped);
    row("interleaved, data x pipe", "pipe: 2, data: 2", "stages: 2, microbatches: 4, schedule: interleaved, chunks: 2", kData,
        kSgd);
    // Each of two ranks has a device of each stage.
    row("pipe is the minor axis", "data: 2, pipe: 2", "stages: 2, microbatches: 4, schedule: gpipe", kData, kClipped);
    row("interleaved, minor", "data: 2, pipe: 2", "stages: 2, microbatches: 4, schedule: interleaved, chunks: 2", kData,
        kClipped);
    row("model x pipe", "pipe: 2, model: 2", "stages: 2, microbatches: 4, schedule: 1f1b", kModel, kClipped);
    row("model x pipe, minor", "model: 2, pipe: 2", "stages: 2, microbatches: 4, schedule: zb_h1", kModel, kClipped);
    row("dynamic loss scale", "data: 2, pipe: 2", "stages: 2, microbatches: 4, schedule: 1f1b", kData,
        "sgd: {learning_rate: 0.1, loss_scale: dynamic}");
    row("FSDP x pipe", "data: 2, pipe: 2", "stages: 2, microbatches: 4, schedule: zb_h2", kFsdp, kSgd);
}

void TestRankPipelines::sameBits()
{
    QFETCH(QString, parts);
    const Training training(studyOf(parts.toStdString()));
    const TrainingResult alone = valueOf(training.run(choicesOf()));
    for (const int ranks : {2, 3, 4}) {
        QVERIFY2(onRanks(ranks,
                     [&](const std::shared_ptr<Ranks>& own) {
                         const auto together = training.run(choicesOf(own));
                         if (!together)
                             qWarning("%s", describe(together.error()).c_str());
                         return together && isSame(*together, alone);
                     }),
            qPrintable(QString("%1 ranks").arg(ranks)));
    }
}

/// The stages give each other gradients too, between processes; masks of dropout know their rows there.
void TestRankPipelines::tiedEmbeddings()
{
    const Training training(valueOf(readStudy(R"yaml(meshwright: 1
mesh: {pipe: 2, data: 2}
model:
  transformer: {layers: 2, hidden: 16, heads: 2, ffn: 32, vocabulary: 24, position: learned, predict: last_token, unroll: true, tied: true}
sequence: 8
batch: 16
dropout: 0.25
sharding: {x: [data], y: [data]}
optimizer: {adamw: {learning_rate: 0.01, clip_norm: 0.05}}
train: {steps: 3, data: random}
pipeline: {axis: pipe, stages: 2, microbatches: 4}
)yaml",
        "tied.yaml", {})));
    const TrainingResult alone = valueOf(training.run(choicesOf()));
    const auto counted = countedOf(alone);
    QVERIFY(std::ranges::any_of(counted, [](const auto& one) { return std::get<1>(one).starts_with("shared gradients"); }));
    for (const int ranks : {2, 3, 4}) {
        const auto done = onRanks(ranks, [&](const std::shared_ptr<Ranks>& own) {
            const TrainingResult together = valueOf(training.run(choicesOf(own)));
            return !own->isFirst()
                || (together.losses == alone.losses && together.parameters == alone.parameters && countedOf(together) == counted);
        });
        QVERIFY(done);
    }
}

/// A pipeline takes over from a whole step and the other way round, on the same four devices.
void TestRankPipelines::phases()
{
    const auto stepsOf = [](const std::string& parts, std::int64_t steps) {
        TrainingPhase phase = valueOf(trainingPhases(studyOf(parts))).front();
        phase.steps = steps;
        return phase;
    };
    Training training(studyOf(kTwoByTwo));
    const std::string whole
        = "mesh: {data: 4}\nsharding: {" + kFsdp + "}\noptimizer: {" + kClipped + "}\ntrain: {data: digits}\n";
    const std::string four = partsOf("pipe: 4", "stages: 4, microbatches: 4, schedule: 1f1b", "", kClipped);
    training.phases = {stepsOf(kTwoByTwo, 2), stepsOf(whole, 1), stepsOf(four, 2)};
    const TrainingResult alone = valueOf(training.run(choicesOf()));
    QVERIFY(alone.phases.size() == 3 && alone.phases.back().movedBytes > 0);
    QVERIFY(onRanks(3, [&](const std::shared_ptr<Ranks>& ranks) {
        const auto together = training.run(choicesOf(ranks));
        return together && isSame(*together, alone);
    }));
}

/// The first process has the times of all devices, the others none.
void TestRankPipelines::timelines()
{
    const Training training(studyOf(kTwoByTwo));
    const auto recorded = [&](std::shared_ptr<Ranks> ranks) {
        TrainChoices choices = choicesOf(std::move(ranks));
        choices.record = choices.typical = choices.verify = true;
        return training.run(choices);
    };
    const TrainingResult alone = valueOf(recorded({}));
    QVERIFY(alone.verification->passed && slicesOf(alone.wall)["send activation"] == 8);
    QVERIFY(onRanks(3, [&](const std::shared_ptr<Ranks>& ranks) {
        const auto together = recorded(ranks);
        if (!together || together->verification.has_value() != ranks->isFirst())
            return false;
        if (!ranks->isFirst())
            return together->wall.slices().empty() && together->virtualTime.slices().empty();
        return together->verification->passed && together->wall.rows().size() == 12
            && slicesOf(together->wall) == slicesOf(alone.wall) && slicesOf(together->virtualTime) == slicesOf(alone.virtualTime)
            && !together->typicalTime.slices().empty() && together->wall.endSeconds() < 60.0;
    }));
}

void TestRankPipelines::checkpoints()
{
    const Training training(studyOf(kTwoByTwo));
    const QTemporaryDir folder;
    const auto written = [&](const std::string& name, std::shared_ptr<Ranks> ranks) {
        TrainChoices choices = choicesOf(std::move(ranks));
        choices.checkpoints = CheckpointPlan{folder.filePath(QString::fromStdString(name)).toStdString(), 2, 0};
        return training.run(choices);
    };
    const TrainingResult alone = valueOf(written("alone", {}));
    QVERIFY(onRanks(3, [&](const std::shared_ptr<Ranks>& ranks) {
        const auto together = written("together", ranks);
        return together && isSame(*together, alone) && together->checkpoint.has_value() == ranks->isFirst();
    }));
    for (const char* step : {"step-000000002", "step-000000004"}) {
        const auto files = contentOf(folder.filePath("alone/") + step);
        QVERIFY(files.size() >= 2);
        QVERIFY(contentOf(folder.filePath("together/") + step) == files);
    }
    // On from the middle, to the same bits, also with another number of processes.
    for (const int ranks : {2, 4}) {
        QVERIFY(onRanks(ranks, [&](const std::shared_ptr<Ranks>& own) {
            TrainChoices choices = choicesOf(own);
            choices.resume = folder.filePath("together/step-000000002").toStdString();
            const auto resumed = training.run(choices);
            return resumed && resumed->losses == alone.losses && resumed->parameters == alone.parameters;
        }));
    }
}

void TestRankPipelines::stopsTogether()
{
    const Study study = studyOf(kFourStages, {"train.steps=50"});
    std::array<std::size_t, 2> steps{};
    QVERIFY(onRanks(2, [&](const std::shared_ptr<Ranks>& ranks) {
        std::stop_source stop; // only one of them is asked
        const auto result = trainStudy(
            study, choicesOf(ranks),
            [&](const TrainingProgress& progress) {
                if (ranks->rank() == 1 && progress.step == 3)
                    stop.request_stop();
            },
            stop.get_token());
        steps[static_cast<std::size_t>(ranks->rank())] = result ? result->losses.size() : 0;
        return result && result->interrupted;
    }));
    QVERIFY((steps == std::array<std::size_t, 2>{3, 3}));
}

void TestRankPipelines::faults_data()
{
    QTest::addColumn<QString>("parts");
    QTest::addColumn<QString>("fault");
    QTest::addColumn<int>("sayer"); ///< the rank that knows
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("said");
    const QString four = QString::fromStdString(kFourStages);
    const QString whole = QString::fromStdString(
        "mesh: {data: 4}\nsharding: {" + kData + "}\noptimizer: {" + kSgd + "}\ntrain: {steps: 4, data: digits}\n");
    QTest::newRow("fail") << four << "fail:device=3,step=2" << 3 << "MW1508"
                          << "device 3 failed in step 3, in ";
    QTest::newRow("nan") << four << "nan:device=2,step=2" << 2 << "MW1523"
                         << "device 2 in step 3, in ";
    // Nobody but the first process sees who does not come.
    QTest::newRow("stall")
        << four << "stall:device=0,step=2" << 0 << "MW1522"
        << "device 0 has not arrived for 200 ms: device 1 waits in receiving the activation of microbatch 0 from "
           "device 0 for stage 1, ";
    QTest::newRow("stall elsewhere")
        << four << "stall:device=3,step=2" << 0 << "MW1522"
        << "device 3 has not arrived for 200 ms: device 0 waits in receiving the gradient of microbatch ";
    QTest::newRow("stall, no pipeline") << whole << "stall:device=2,step=2" << 0 << "MW1522"
                                        << "device 2 has not arrived for 200 ms: devices 0, 1 and 3 wait in all_reduce of ";
}

void TestRankPipelines::faults()
{
    QFETCH(QString, parts);
    QFETCH(QString, fault);
    QFETCH(int, sayer);
    QFETCH(QString, id);
    QFETCH(QString, said);
    const Training training(studyOf(parts.toStdString()));
    const QTemporaryDir folder;
    std::array<Problem, 4> problems;
    QVERIFY(!onRanks(4, [&](const std::shared_ptr<Ranks>& ranks) {
        TrainChoices choices = choicesOf(ranks);
        choices.faults.injected = {valueOf(parseInjectedFault(fault.toStdString()))};
        choices.faults.checkNumerics = true;
        if (id == "MW1522") // the others fail at once, however slow the computer is
            choices.stallSeconds = 0.2;
        choices.checkpoints = CheckpointPlan{folder.path().toStdString(), 1, 0};
        const auto result = training.run(choices);
        if (!result)
            problems[static_cast<std::size_t>(ranks->rank())] = result.error().front();
        return result.has_value();
    }));
    for (std::size_t rank = 0; rank < problems.size(); ++rank) {
        const Problem& problem = problems[rank];
        const bool knows = static_cast<int>(rank) == sayer;
        QCOMPARE(problem.id, knows ? id.toStdString() : std::string("MW1551"));
        QVERIFY2(!knows || problem.message.starts_with(said.toStdString()), problem.message.c_str());
        QVERIFY2(problem.fix.find("step-000000002 (after 2 steps)") != std::string::npos, problem.fix.c_str());
    }
}

/// A stage that leaves out a microbatch: the others wait for it, wherever they are, and it is seen at once.
void TestRankPipelines::nobodyCanMove()
{
    Training training(studyOf(kFourStages));
    std::erase_if(
        training.phases.front().scheduled.tasks, [](const Task& task) { return task.stage == 1 && task.microbatch == 3; });
    const auto problemOf = [&](const std::shared_ptr<Ranks>& ranks) {
        TrainChoices choices = choicesOf(ranks);
        choices.stallSeconds = 0.0;
        const auto result = training.run(choices);
        return result ? Problem{} : result.error().front();
    };
    const Problem alone = problemOf(nullptr);
    QCOMPARE(alone.id, std::string("MW1506"));
    for (const int count : {2, 3, 4}) {
        Problem first;
        QVERIFY(!onRanks(count, [&](const std::shared_ptr<Ranks>& ranks) {
            const Problem problem = problemOf(ranks);
            if (ranks->isFirst())
                first = problem;
            return false;
        }));
        QCOMPARE(first.id, alone.id);
        QCOMPARE(first.message, alone.message);
    }
}

void TestRankPipelines::programs_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<bool>("gradient");
    QTest::newRow("sharded") << "spmd_step.mlir" << false;
    QTest::newRow("manual") << "pmap_step.mlir" << false;
    QTest::newRow("gradient") << "spmd_step.mlir" << true;
}

/// Programs that processes run together.
void TestRankPipelines::programs()
{
    QFETCH(QString, file);
    QFETCH(bool, gradient);
    const Program program
        = valueOf(readProgram(valueOf(readFile(resourcesDirectory() / "examples" / file.toStdString())), file.toStdString()));
    const std::string name = program.functions.front().name;
    const auto run = [&](std::shared_ptr<Ranks> ranks) {
        RunChoices choices{.seed = 3, .verify = true, .permits = 1};
        choices.gradient = gradient;
        choices.timing = {2, 2};
        choices.ranks = std::move(ranks);
        return runProgram(program, name, choices, {});
    };
    const RunResult alone = valueOf(run({}));
    const auto callsOf = [](const RunResult& result) {
        std::vector<std::pair<std::int64_t, std::int64_t>> calls;
        for (const CountedCollective& one : result.collectives)
            calls.emplace_back(one.calls, one.totalPayloadBytes);
        return calls;
    };
    for (const int count : {2, 3}) {
        QVERIFY(onRanks(count, [&](const std::shared_ptr<Ranks>& ranks) {
            const auto together = run(ranks);
            if (!together)
                qWarning("%s", describe(together.error()).c_str());
            if (!together || together->results != alone.results || together->warnings.size() != alone.warnings.size())
                return false;
            if (!ranks->isFirst())
                return !together->verification && !together->times;
            return together->verification->passed && together->times && callsOf(*together) == callsOf(alone);
        }));
    }
}

void TestRankPipelines::devicesThatDiffer_data()
{
    QTest::addColumn<QString>("first"); // what devices 0 and 2 do with %a, as %r
    QTest::addColumn<QString>("second"); // devices 1 and 3
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("said");
    const QString all = "[[0, 1, 2, 3]]";
    const QString usual = sumLine("r", "a", "4x8xf32", all);
    QTest::newRow("shape")
        << usual
        << "%h = stablehlo.slice %a [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>\n" + sumLine("g", "h", "2x8xf32", all)
            + "%r = stablehlo.concatenate %g, %g, dim = 0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>\n"
        << "MW1505"
        << "collectives of one group differ in shape: device 0 is in all_reduce of x over data (f32[4,8] to f32[4,8])";
    QTest::newRow("reduction")
        << usual << sumLine("r", "a", "4x8xf32", all, "maximum") << "MW1505"
        << "collectives of one group differ in attributes: device 0 is in all_reduce of x over data (f32[4,8] to "
           "f32[4,8]), device 1 in all_reduce of x by max over data (f32[4,8] to f32[4,8])";
    QTest::newRow("element type")
        << usual
        << "%h = stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<4x8xbf16>\n" + sumLine("g", "h", "4x8xbf16", all)
            + "%r = stablehlo.convert %g : (tensor<4x8xbf16>) -> tensor<4x8xf32>\n"
        << "MW1505"
        << "collectives of one group differ in element type: device 0 is in all_reduce of x over data (f32[4,8] to f32[4,8])";
    const auto pair = [&](const QString& one, const QString& other) {
        return sumLine("k", "a", "4x8xf32", one) + sumLine("r", "k", "4x8xf32", other);
    };
    const QString near = "[[0, 1], [2, 3]]";
    const QString far = "[[0, 2], [1, 3]]";
    QTest::newRow("order") << pair(near, far) << pair(far, near) << "MW1505"
                           << "collectives of one group differ in order: device 0 is in all_reduce of x over data";
    QTest::newRow("groups")
        << usual << sumLine("r", "a", "4x8xf32", "[[0, 1], [2, 3]]") << "MW1506"
        << "no device can proceed: devices 0 and 2 wait in all_reduce of x over data (f32[4,8] to f32[4,8]), "
           "devices 1 and 3 wait in all_reduce of x over data, in groups [[0, 1], [2, 3]] (f32[4,8] to f32[4,8])";
    QTest::newRow("none")
        << usual << "%r = stablehlo.add %a, %a : tensor<4x8xf32>\n"
        << "MW1506"
        << "no device can proceed: devices 0 and 2 wait in all_reduce of x over data (f32[4,8] to f32[4,8]), 2 of 4 "
           "have finished (devices 1 and 3)";
}

/// Every second device goes another way, with other collectives on it, whichever process has it: that is said, at once.
void TestRankPipelines::devicesThatDiffer()
{
    QFETCH(QString, first);
    QFETCH(QString, second);
    QFETCH(QString, id);
    QFETCH(QString, said);
    const Program program = valueOf(readProgram(waysProgram(first, second).toStdString(), "ways.mlir"));
    for (const int count : {2, 3, 4}) {
        std::vector<Problem> problems(static_cast<std::size_t>(count));
        QVERIFY(!onRanks(count, [&](const std::shared_ptr<Ranks>& ranks) {
            RunChoices choices{.permits = 1};
            choices.ranks = ranks;
            const auto result = runProgram(program, program.functions.front().name, choices, {});
            if (!result)
                problems[static_cast<std::size_t>(ranks->rank())] = result.error().front();
            return result.has_value();
        }));
        int sayers = 0;
        for (const Problem& problem : problems) {
            QVERIFY2(problem.id == id.toStdString() || problem.id == "MW1551", describe(problem).c_str());
            if (problem.id == "MW1551") // another one has said it
                continue;
            ++sayers;
            if (id == "MW1506" || &problem == &problems.front())
                QVERIFY2(problem.message.starts_with(said.toStdString()), problem.message.c_str());
        }
        QVERIFY(sayers > 0 && (id != "MW1506" || problems.front().id == "MW1506"));
    }
}

void TestRankPipelines::otherProgram()
{
    const Program program
        = valueOf(readProgram(valueOf(readFile(resourcesDirectory() / "examples/spmd_step.mlir")), "spmd_step.mlir"));
    QVERIFY(onRanks(2, [&](const std::shared_ptr<Ranks>& ranks) {
        RunChoices choices{.seed = static_cast<std::uint64_t>(ranks->rank())};
        choices.ranks = ranks;
        const auto result = runProgram(program, program.functions.front().name, choices, {});
        return !result && result.error().front().id == "MW1554";
    }));
}

MESHWRIGHT_TEST(TestRankPipelines)

} // namespace tst_rank_pipelines

#include "tst_rank_pipelines.moc"
