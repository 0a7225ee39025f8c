// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/partition/partition.h"
#include "core/schedule/schedule.h"
#include "core/train/trainer.h"
#include "core/train/training_checkpoint.h"
#include "core/train/training_memory.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <limits>
#include <thread>

namespace tst_trainer {

using namespace meshwright;

namespace {

constexpr std::int64_t kBatch = 16;

MlpModel modelOf(std::int64_t width)
{
    MlpModel model;
    model.layers = {8, width, 4};
    model.loss = LossKind::CrossEntropy;
    return model;
}

/// Steps of training with the batch split over `devices`.
TrainingPhase phaseOf(std::int64_t steps, std::int64_t devices, std::int64_t width = 12, double learningRate = 0.1)
{
    TrainingOptions options;
    options.batch = kBatch;
    options.optimizer = SgdOptimizer{learningRate, 0.9};
    TrainingPhase phase;
    phase.steps = steps;
    phase.program = valueOf(buildMlpTraining(modelOf(width), options));
    Program annotated = phase.program;
    annotated.meshes = {{"mesh", valueOf(parseMesh(fmt::format("data={},rest={}", devices, 4 / devices)))}};
    for (Function& function : annotated.functions) {
        for (const ValueId id : function.arguments()) {
            if (function[id].name == "x" || function[id].name == "y")
                function[id].sharding
                    = valueOf(toTensorSharding(valueOf(parseSpec("P('data', None)")), 2, annotated.meshes.front().mesh));
        }
    }
    phase.scheduled = schedule(valueOf(propagateAndPartition(std::move(annotated))).device, SchedulePolicy::Host);
    return phase;
}

/// 40 rows, 5 of them held out.
Dataset rowsToLearn()
{
    Dataset data = randomDataset(40, 8, 4, keyOfSeed(3), true);
    data.targets.clear();
    for (std::int32_t row = 0; row < 40; ++row)
        data.labels.push_back(row % 4);
    data.trainingRows = 35;
    return data;
}

TrainerOptions optionsOf()
{
    TrainerOptions options;
    options.keepParameters = true;
    options.record = true;
    TrainingOptions training;
    training.batch = kBatch;
    for (const auto& [name, key] : initKeys(modelOf(12), training, keyOfSeed(0)))
        options.initKeys.push_back(key);
    return options;
}

TrainingResult trained(const std::vector<TrainingPhase>& phases, const std::stop_token& stop,
    const std::function<void(const TrainingProgress&)>& progress = {})
{
    auto result = train(phases, rowsToLearn(), optionsOf(), progress, stop);
    if (!result)
        qFatal("%s", describe(result.error()).c_str());
    return *std::move(result);
}

} // namespace

class TestTrainer : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void stopTokenChangesNoBits();
    void stepsAreWhatTrainDoes();
    void stoppedBetweenSteps();
    void stoppedInTheMiddleOfAStep();
    void stoppedBeforeTheFirstStep();
    void noSteps();
    void heldOutLoss();
    void lossThatIsNoNumber();
    void plannedBytes();
    void resumed_data();
    void resumed();
    void checkpointsAsPlanned();
    void resumedElsewhere();
    void refusesToResumeOtherTrainings_data();
    void refusesToResumeOtherTrainings();
};

void TestTrainer::stopTokenChangesNoBits()
{
    const std::vector<TrainingPhase> phases = {phaseOf(3, 4), phaseOf(4, 2)};
    const TrainingResult without = trained(phases, {});
    const std::stop_source stop;
    const TrainingResult with = trained(phases, stop.get_token());
    QVERIFY(!with.interrupted);
    QCOMPARE(with.losses.size(), std::size_t{8});
    QCOMPARE(with.losses, without.losses);
    QCOMPARE(with.accuracies, without.accuracies);
    QVERIFY(with.parameters == without.parameters);
    QCOMPARE(with.parameters.size(), std::size_t{4});
    QCOMPARE(with.heldOutExamples, 5);
    QVERIFY(with.heldOutAccuracy.has_value());
    QVERIFY(with.losses.back() < with.losses.front());
}

void TestTrainer::stepsAreWhatTrainDoes()
{
    const std::vector<TrainingPhase> phases = {phaseOf(2, 4), phaseOf(0, 1), phaseOf(3, 2)};
    std::vector<std::int64_t> seen;
    const TrainingResult whole = trained(phases, {}, [&](const TrainingProgress& progress) { seen.push_back(progress.step); });
    QCOMPARE(seen, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
    QCOMPARE(whole.phases.size(), std::size_t{3});
    QVERIFY(whole.wall.slices().size() > 0 && whole.virtualTime.slices().size() > 0);

    const Dataset data = rowsToLearn();
    const auto trainer = valueOf(Trainer::create(phases, data, optionsOf()));
    QCOMPARE(trainer->steps(), 5);
    for (std::int64_t step = 0; step < 5; ++step) {
        QCOMPARE(trainer->stepsDone(), step);
        QVERIFY(valueOf(trainer->step({})));
        QCOMPARE(trainer->progress().step, step + 1);
        QCOMPARE(trainer->progress().loss, whole.losses[static_cast<std::size_t>(step)]);
        QCOMPARE(trainer->result().losses.size(), static_cast<std::size_t>(step + 1));
        QVERIFY(trainer->progress().samplesPerSecond > 0.0);
    }
    const TrainingResult result = valueOf(trainer->finish({}));
    QCOMPARE(result.losses, whole.losses);
    QVERIFY(result.parameters == whole.parameters);
}

void TestTrainer::stoppedBetweenSteps()
{
    const std::vector<TrainingPhase> phases = {phaseOf(2, 4), phaseOf(1000, 2)};
    std::stop_source stop;
    const TrainingResult result = trained(phases, stop.get_token(), [&](const TrainingProgress& progress) {
        if (progress.step == 5)
            stop.request_stop();
    });
    QVERIFY(result.interrupted);
    QCOMPARE(result.losses.size(), std::size_t{5});
    QCOMPARE(result.accuracies.size(), std::size_t{5});
    QVERIFY(!result.heldOutAccuracy);
    QVERIFY(result.parameters.empty());
    QCOMPARE(result.phases.size(), std::size_t{2});
    QCOMPARE(result.phases[1].steps, 3);
    QVERIFY(result.samplesPerSecond > 0.0);
    QVERIFY(result.wall.slices().size() > 0);
    for (const CountedCollective& counted : result.phases[1].collectives)
        QCOMPARE(counted.calls, 3 * counted.use.count);
}

/// Whenever the stop comes, what is there is what the whole run has up to that step.
void TestTrainer::stoppedInTheMiddleOfAStep()
{
    const std::vector<TrainingPhase> whole = {phaseOf(60, 4, 300)};
    const std::vector<TrainingPhase> endless = {phaseOf(std::int64_t{1} << 40, 4, 300)};
    const TrainingResult complete = trained(whole, {});
    for (int round = 0; round < 5; ++round) {
        std::stop_source stop;
        std::thread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(1 + 2 * round));
            stop.request_stop();
        });
        const TrainingResult result = trained(endless, stop.get_token());
        stopper.join();
        QVERIFY(result.interrupted);
        QCOMPARE(result.losses.size(), result.accuracies.size());
        if (!result.phases.empty()) {
            QCOMPARE(result.phases.front().steps, static_cast<std::int64_t>(result.losses.size()));
            for (const CountedCollective& counted : result.phases.front().collectives)
                QCOMPARE(counted.calls, result.phases.front().steps * counted.use.count);
        }
        const std::size_t common = std::min(result.losses.size(), complete.accuracies.size());
        for (std::size_t i = 0; i < common; ++i)
            QCOMPARE(result.losses[i], complete.losses[i]);
    }
}

void TestTrainer::stoppedBeforeTheFirstStep()
{
    std::stop_source stop;
    stop.request_stop();
    const TrainingResult result = trained({phaseOf(3, 4)}, stop.get_token());
    QVERIFY(result.interrupted);
    QVERIFY(result.losses.empty());
    QVERIFY(result.phases.empty());

    const std::vector<TrainingPhase> phases = {phaseOf(3, 4)};
    const Dataset data = rowsToLearn();
    const auto trainer = valueOf(Trainer::create(phases, data, optionsOf()));
    QVERIFY(!valueOf(trainer->step(stop.get_token())));
    QCOMPARE(trainer->stepsDone(), 0);
    QVERIFY(valueOf(trainer->finish(stop.get_token())).interrupted);
}

void TestTrainer::noSteps()
{
    const TrainingResult result = trained({phaseOf(0, 4)}, {});
    QVERIFY(!result.interrupted);
    QCOMPARE(result.losses.size(), std::size_t{1});
    QVERIFY(result.accuracies.empty());
    QCOMPARE(result.phases.size(), std::size_t{1});
    QCOMPARE(result.samplesPerSecond, 0.0);
}

/// Rows held out need not fill a batch of 16: 5 and 11 of them have the losses that all 16 have.
void TestTrainer::heldOutLoss()
{
    const auto lossOf = [](std::int64_t first, std::size_t end) {
        Dataset data = rowsToLearn();
        data.trainingRows = first;
        data.inputs.resize(end * 8);
        data.labels.resize(end);
        const TrainingResult result = valueOf(train({phaseOf(0, 4)}, data, optionsOf(), {}, {}));
        return result.heldOut.back().loss * static_cast<double>(result.heldOutExamples);
    };
    const double all = lossOf(24, 40);
    QVERIFY(all > 16 * 0.5);
    QVERIFY(std::abs(all - lossOf(24, 35) - lossOf(35, 40)) < 1e-5 * all);
}

void TestTrainer::lossThatIsNoNumber()
{
    const auto result = train({phaseOf(50, 4, 12, 1e30)}, rowsToLearn(), optionsOf(), {}, {});
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1620"));
}

void TestTrainer::plannedBytes()
{
    const auto bytesOf = [](const TrainingPhase& phase, const char* name) {
        return 4 * phase.scheduled.stages.front().find(name)->buffers.arenaBytes;
    };
    const TrainingPhase split = phaseOf(1, 4, 64);
    const TrainingPhase whole = phaseOf(1, 1, 64);
    QCOMPARE(
        plannedTrainingBytes({split}), bytesOf(split, "step") + std::max(bytesOf(split, "init"), bytesOf(split, "evaluate")));
    QCOMPARE(plannedTrainingBytes({split, whole}), bytesOf(split, "step") + bytesOf(whole, "step"));
}

void TestTrainer::resumed_data()
{
    QTest::addColumn<int>("step");
    for (const int step : {0, 1, 2, 4, 6})
        QTest::addRow("step %d", step) << step;
}

/// Stopped after any step and resumed in another process' stead: the same bits as without a break.
void TestTrainer::resumed()
{
    QFETCH(int, step);
    const std::vector<TrainingPhase> phases = {phaseOf(2, 4), phaseOf(4, 2)};
    const Dataset data = rowsToLearn();
    const TrainingResult whole = trained(phases, {});
    const QTemporaryDir folder;
    TrainerOptions options = optionsOf();
    options.checkpoints = CheckpointPlan{folder.path().toStdString(), 0, 0};
    if (step == 0) {
        options.checkpoints->every = 1; // a checkpoint is of what was trained
        QVERIFY(train(phases, data, options, {}, {}).has_value());
        QCOMPARE(checkpointsIn(folder.path().toStdString()).size(), std::size_t{6});
        options.checkpoints->every = 0;
    } else {
        const auto first = valueOf(Trainer::create(phases, data, options));
        for (int i = 0; i < step; ++i)
            QVERIFY(valueOf(first->step({})));
        std::stop_source stop;
        stop.request_stop();
        const TrainingResult stopped = valueOf(first->finish(stop.get_token()));
        QVERIFY(stopped.interrupted);
        QVERIFY(stopped.checkpoint.has_value());
    }
    options.resumed = valueOf(CheckpointReader::open(std::filesystem::path(folder.path().toStdString())));
    const std::int64_t done = options.resumed->checkpoint().state.step;
    QCOMPARE(done, step == 0 ? 6 : step);
    const TrainingResult result = valueOf(train(phases, data, options, {}, {}));
    QCOMPARE(result.firstStep, done);
    QCOMPARE(result.losses, whole.losses);
    QCOMPARE(result.accuracies, whole.accuracies);
    QVERIFY(result.parameters == whole.parameters);
    QCOMPARE(result.heldOutAccuracy, whole.heldOutAccuracy);
    std::int64_t steps = 0;
    for (const PhaseResult& phase : result.phases) {
        steps += phase.steps;
        for (const CountedCollective& counted : phase.collectives)
            QCOMPARE(counted.calls, phase.steps * counted.use.count);
    }
    QCOMPARE(steps, 6 - done);
}

void TestTrainer::checkpointsAsPlanned()
{
    const QTemporaryDir folder;
    TrainerOptions options = optionsOf();
    options.checkpoints = CheckpointPlan{folder.path().toStdString(), 3, 2};
    const TrainingResult result = valueOf(train({phaseOf(10, 4)}, rowsToLearn(), options, {}, {}));
    QStringList names;
    for (const auto& path : checkpointsIn(folder.path().toStdString()))
        names << QString::fromStdString(path.filename().string());
    QCOMPARE(names, (QStringList{"step-000000010", "step-000000009"}));
    QCOMPARE(*result.checkpoint, checkpointsIn(folder.path().toStdString()).front());
    for (const auto& path : checkpointsIn(folder.path().toStdString()))
        QVERIFY(CheckpointReader::open(path).has_value());
    QVERIFY(result.losses == trained({phaseOf(10, 4)}, {}).losses);
}

/// On another mesh the sums come in another order, but what is restored is what was written.
void TestTrainer::resumedElsewhere()
{
    const QTemporaryDir folder;
    TrainerOptions options = optionsOf();
    options.checkpoints = CheckpointPlan{folder.path().toStdString(), 0, 0};
    const TrainingResult first = valueOf(train({phaseOf(5, 4)}, rowsToLearn(), options, {}, {}));
    const TrainingPhase other = phaseOf(5, 1);
    const auto reader = valueOf(CheckpointReader::open(*first.checkpoint));
    const auto plan = restorePlan(*reader, other);
    QVERIFY2(plan, plan ? "" : describe(plan.error()).c_str());
    const auto& shares = *plan;
    QCOMPARE(shares.size(), std::size_t{4});
    for (const RestoreShare& share : shares) {
        std::int64_t bytes = 0;
        for (const ReadFromFile& file : share.files)
            bytes += file.bytes;
        QCOMPARE(bytes, 2 * 4 * (8 * 12 + 12 + 12 * 4 + 4)); // replicated: parameters and momentum, whole
    }
    const auto made = convertCheckpoint(*reader, other, folder.path().toStdString() + "/converted");
    QVERIFY2(made, made ? "" : describe(made.error()).c_str());
    const auto& converted = *made;
    for (const auto& path : {*first.checkpoint, converted}) {
        options.checkpoints.reset();
        options.resumed = valueOf(CheckpointReader::open(path));
        const auto trainedOn = train({other}, rowsToLearn(), options, {}, {});
        QVERIFY2(trainedOn, trainedOn ? "" : describe(trainedOn.error()).c_str());
        const TrainingResult& result = *trainedOn;
        QVERIFY(result.parameters == first.parameters);
        QCOMPARE(result.losses.size(), std::size_t{6});
    }
}

void TestTrainer::refusesToResumeOtherTrainings_data()
{
    QTest::addColumn<QString>("what");
    QTest::addColumn<QString>("id");
    QTest::newRow("another width") << "width"
                                   << "MW1646";
    QTest::newRow("another optimizer") << "optimizer"
                                       << "MW1646";
    QTest::newRow("another loss") << "loss"
                                  << "MW1646";
    QTest::newRow("another seed") << "seed"
                                  << "MW1647";
    QTest::newRow("fewer steps") << "steps"
                                 << "MW1647";
}

void TestTrainer::refusesToResumeOtherTrainings()
{
    QFETCH(QString, what);
    QFETCH(QString, id);
    const QTemporaryDir folder;
    TrainerOptions options = optionsOf();
    options.checkpoints = CheckpointPlan{folder.path().toStdString(), 0, 0};
    options.optimizer = "sgd";
    options.settings = {{"model.mlp.loss", "mse"}};
    QVERIFY(train({phaseOf(3, 4)}, rowsToLearn(), options, {}, {}).has_value());
    options.optimizer = what == "optimizer" ? "adam" : "sgd";
    options.settings["model.mlp.loss"] = what == "loss" ? "cross_entropy" : "mse";
    options.resumed = valueOf(CheckpointReader::open(std::filesystem::path(folder.path().toStdString())));
    options.seed = what == "seed" ? 1 : 0;
    const auto result = train({phaseOf(what == "steps" ? 2 : 5, 4, what == "width" ? 16 : 12)}, rowsToLearn(), options, {}, {});
    QVERIFY(!result);
    QCOMPARE(QString::fromStdString(result.error().front().id), id);
}

MESHWRIGHT_TEST(TestTrainer)

} // namespace tst_trainer

#include "tst_trainer.moc"
