// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/partition/partition.h"
#include "core/schedule/schedule.h"
#include "core/train/trainer.h"
#include "tests/folder_content.h"
#include "tests/rank_threads.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

namespace tst_rank_training {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kDevices = 4;

MlpModel modelOf()
{
    MlpModel model;
    model.layers = {8, 12, 4};
    model.loss = LossKind::CrossEntropy;
    return model;
}

/// Steps of training on four devices; `specs` are those of arguments by name.
TrainingPhase phaseOf(std::int64_t steps, const std::string& mesh, const std::map<std::string, std::string>& specs)
{
    TrainingOptions options;
    options.batch = kBatch;
    options.optimizer = AdamOptimizer{0.01};
    TrainingPhase phase;
    phase.steps = steps;
    phase.program = valueOf(buildMlpTraining(modelOf(), options));
    Program annotated = phase.program;
    annotated.meshes = {{"mesh", valueOf(parseMesh(mesh))}};
    for (Function& function : annotated.functions) {
        for (const ValueId id : function.arguments()) {
            const auto spec = specs.find(function[id].name);
            if (spec != specs.end())
                function[id].sharding = valueOf(toTensorSharding(
                    valueOf(parseSpec(spec->second)), function[id].type.shape.size(), annotated.meshes.front().mesh));
        }
    }
    phase.scheduled = schedule(valueOf(propagateAndPartition(std::move(annotated))).device, SchedulePolicy::Host);
    return phase;
}

const std::map<std::string, std::string> kData = {{"x", "P('data', None)"}, {"y", "P('data', None)"}};
const std::map<std::string, std::string> kFsdp
    = {{"x", "P('data', None)"}, {"y", "P('data', None)"}, {"layers.0.w", "P('data', None)"}, {"layers.1.w", "P('data', None)"}};
const std::map<std::string, std::string> kBoth = {{"x", "P('data', None)"}, {"y", "P('data', None)"},
    {"layers.0.w", "P(None, 'model')"}, {"layers.0.b", "P('model')"}, {"layers.1.w", "P('model', None)"}};

Dataset rowsToLearn()
{
    Dataset data = randomDataset(40, 8, 4, keyOfSeed(3), true);
    data.targets.clear();
    for (std::int32_t row = 0; row < 40; ++row)
        data.labels.push_back(row % 4);
    data.trainingRows = 35;
    return data;
}

TrainerOptions optionsOf(std::shared_ptr<Ranks> ranks = {})
{
    TrainerOptions options;
    options.keepParameters = true;
    options.permits = 1;
    options.evaluateEvery = 2;
    options.ranks = std::move(ranks);
    TrainingOptions training;
    training.batch = kBatch;
    for (const auto& [name, key] : initKeys(modelOf(), training, keyOfSeed(0)))
        options.initKeys.push_back(key);
    return options;
}

bool isSame(const TrainingResult& a, const TrainingResult& b)
{
    return a.losses == b.losses && a.accuracies == b.accuracies && a.parameters == b.parameters
        && a.heldOutAccuracy == b.heldOutAccuracy && a.heldOut.size() == b.heldOut.size() && !a.parameters.empty();
}

} // namespace

/// A training whose devices several processes share: the processes are threads here, and MPI is memory.
class TestRankTraining : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sameBits_data();
    void sameBits();
    void sameCheckpoints();
    void onlyTheFirstVerifiesAndRecords();
    void stopsTogether();
    void failureEndsAll();
    void moreProcessesThanDevices();
};

void TestRankTraining::sameBits_data()
{
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("layout");
    for (const int ranks : {2, 3, 4}) {
        QTest::addRow("data parallel, %d", ranks) << ranks << "data=4"
                                                  << "data";
        QTest::addRow("FSDP, %d", ranks) << ranks << "data=4"
                                         << "fsdp";
        QTest::addRow("data and model, %d", ranks) << ranks << "data=2,model=2"
                                                   << "both";
        QTest::addRow("changing, %d", ranks) << ranks << "data=2,model=2"
                                             << "changing";
    }
}

void TestRankTraining::sameBits()
{
    QFETCH(int, ranks);
    QFETCH(QString, mesh);
    QFETCH(QString, layout);
    std::vector<TrainingPhase> phases = {phaseOf(3, mesh.toStdString(),
        layout == "data"       ? kData
            : layout == "fsdp" ? kFsdp
                               : kBoth)};
    if (layout == "changing")
        phases.push_back(phaseOf(2, "data=4", kFsdp));
    const Dataset data = rowsToLearn();
    const auto alone = train(phases, data, optionsOf(), {}, {});
    QVERIFY2(alone, alone ? "" : describe(alone.error()).c_str());
    QVERIFY(onRanks(ranks, [&](const std::shared_ptr<Ranks>& own) {
        const auto together = train(phases, data, optionsOf(own), {}, {});
        if (!together)
            qWarning("%s", describe(together.error()).c_str());
        return together && isSame(*together, *alone) && together->phases.back().movedBytes == alone->phases.back().movedBytes;
    }));
}

void TestRankTraining::sameCheckpoints()
{
    const std::vector<TrainingPhase> phases = {phaseOf(4, "data=2,model=2", kBoth)};
    const Dataset data = rowsToLearn();
    const QTemporaryDir folder;
    const auto optionsFor = [&](const std::string& name, const std::shared_ptr<Ranks>& ranks) {
        TrainerOptions options = optionsOf(ranks);
        options.checkpoints = CheckpointPlan{folder.filePath(QString::fromStdString(name)).toStdString(), 2, 0};
        return options;
    };
    const auto alone = train(phases, data, optionsFor("alone", nullptr), {}, {});
    QVERIFY(alone);
    QVERIFY(onRanks(3, [&](const std::shared_ptr<Ranks>& ranks) {
        const auto together = train(phases, data, optionsFor("together", ranks), {}, {});
        return together && isSame(*together, *alone) && together->checkpoint.has_value() == ranks->isFirst();
    }));
    for (const char* step : {"step-000000002", "step-000000004"}) {
        const auto files = contentOf(folder.filePath("alone/") + step);
        QVERIFY(files.size() >= 2);
        QVERIFY(contentOf(folder.filePath("together/") + step) == files);
    }

    // On from the middle, to the same bits.
    QVERIFY(onRanks(2, [&](const std::shared_ptr<Ranks>& ranks) {
        TrainerOptions options = optionsOf(ranks);
        auto reader = CheckpointReader::open(folder.filePath("together/step-000000002").toStdString());
        if (!reader)
            return false;
        options.resumed = *std::move(reader);
        const auto resumed = train(phases, data, options, {}, {});
        return resumed && resumed->losses == alone->losses && resumed->parameters == alone->parameters;
    }));
}

void TestRankTraining::onlyTheFirstVerifiesAndRecords()
{
    const std::vector<TrainingPhase> phases = {phaseOf(2, "data=4", kData)};
    const Dataset data = rowsToLearn();
    QVERIFY(onRanks(2, [&](const std::shared_ptr<Ranks>& ranks) {
        TrainerOptions options = optionsOf(ranks);
        options.verify = true;
        options.record = true;
        const auto result = train(phases, data, options, {}, {});
        if (!result || result->verification.has_value() != ranks->isFirst())
            return false;
        // Two rows for every device of all processes.
        return ranks->isFirst() ? result->verification->passed && result->wall.rows().size() == std::size_t{2 * kDevices}
                && result->virtualTime.endSeconds() > 0.0
                                : result->wall.slices().empty();
    }));
}

void TestRankTraining::stopsTogether()
{
    const std::vector<TrainingPhase> phases = {phaseOf(50, "data=4", kData)};
    const Dataset data = rowsToLearn();
    std::array<std::size_t, 2> steps{};
    QVERIFY(onRanks(2, [&](const std::shared_ptr<Ranks>& ranks) {
        std::stop_source stop; // only one of them is asked
        const auto result = train(
            phases, data, optionsOf(ranks),
            [&](const TrainingProgress& progress) {
                if (ranks->rank() == 1 && progress.step == 3)
                    stop.request_stop();
            },
            stop.get_token());
        if (!result || !result->interrupted)
            return false;
        steps[static_cast<std::size_t>(ranks->rank())] = result->losses.size();
        return true;
    }));
    QCOMPARE(steps[0], std::size_t{3});
    QCOMPARE(steps[1], std::size_t{3});
}

void TestRankTraining::failureEndsAll()
{
    const std::vector<TrainingPhase> phases = {phaseOf(5, "data=4", kData)};
    const Dataset data = rowsToLearn();
    const QTemporaryDir folder;
    std::array<Problem, 2> said;
    QVERIFY(!onRanks(2, [&](const std::shared_ptr<Ranks>& ranks) {
        TrainerOptions options = optionsOf(ranks);
        options.checkpoints = CheckpointPlan{folder.path().toStdString(), 1, 0};
        options.faults.injected = {valueOf(parseInjectedFault("fail:device=3,step=3"))};
        const auto result = train(phases, data, options, {}, {});
        if (!result)
            said[static_cast<std::size_t>(ranks->rank())] = result.error().front();
        return result.has_value();
    }));
    // Device 3 is the second one's; the first one hears of it while it waits, and both name the last checkpoint.
    QCOMPARE(said[1].id, std::string("MW1508"));
    QVERIFY(said[1].message.find("device 3") != std::string::npos);
    QCOMPARE(said[0].id, std::string("MW1551"));
    for (const Problem& problem : said)
        QVERIFY2(problem.fix.find("step-000000003 (after 3 steps)") != std::string::npos, problem.fix.c_str());
}

void TestRankTraining::moreProcessesThanDevices()
{
    const std::vector<TrainingPhase> phases = {phaseOf(1, "data=4", kData)};
    const Dataset data = rowsToLearn();
    QVERIFY(onRanks(5, [&](const std::shared_ptr<Ranks>& ranks) {
        const auto result = train(phases, data, optionsOf(ranks), {}, {});
        return !result && result.error().front().id == "MW1553";
    }));
}

MESHWRIGHT_TEST(TestRankTraining)

} // namespace tst_rank_training

#include "tst_rank_training.moc"
