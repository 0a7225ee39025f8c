// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/device_memory.h"

#include "core/runtime/executor.h"
#include "core/support/resources.h"
#include "sim/session/engine.h"
#include "tests/test_class.h"

namespace tst_device_memory {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

Study studyOf(const std::string& example, const std::vector<std::string>& settings)
{
    return valueOf(loadStudy(resourcesDirectory() / "examples" / example, settings));
}

} // namespace

/// `--device-memory`: what does not fit is refused before it runs, and what would fit is said.
class TestDeviceMemory : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void fitsExactly_data();
    void fitsExactly();
    void refusesAndSaysWhatWouldFit();
    void namesTheLargestFunction_data();
    void namesTheLargestFunction();
    void evaluationInPhases();
    void arenasAreWhatIsPlanned_data();
    void arenasAreWhatIsPlanned();
};

void TestDeviceMemory::fitsExactly_data()
{
    QTest::addColumn<QString>("example");
    QTest::newRow("one layout") << "digits.yaml";
    QTest::newRow("phases") << "phases.yaml";
    QTest::newRow("fsdp") << "fsdp.yaml";
}

void TestDeviceMemory::fitsExactly()
{
    QFETCH(QString, example);
    const Study study = studyOf(example.toStdString(), {});
    const auto phases = valueOf(trainingPhases(study));
    const std::int64_t needed = deviceTrainingBytes(phases);
    QVERIFY(checkDeviceMemory(study, phases, needed));
    const auto refused = checkDeviceMemory(study, phases, needed - 1);
    QVERIFY(!refused);
    QCOMPARE(refused.error().front().id, std::string("MW1513"));
}

/// The batch that it names fits, and twice as much does not.
void TestDeviceMemory::refusesAndSaysWhatWouldFit()
{
    const auto bytesWith = [](std::int64_t batch) {
        return deviceTrainingBytes(valueOf(trainingPhases(studyOf("digits.yaml", {"batch=" + std::to_string(batch)}))));
    };
    const Study study = studyOf("digits.yaml", {"batch=1024"});
    const std::int64_t limit = bytesWith(256);
    QVERIFY(bytesWith(512) > limit);
    TrainChoices choices;
    choices.deviceMemoryBytes = limit;
    int steps = 0;
    const auto result = trainStudy(study, choices, [&](const TrainingProgress&) { ++steps; }, {});
    QVERIFY(!result);
    QCOMPARE(steps, 0);
    const Problem& problem = result.error().front();
    QCOMPARE(problem.id, std::string("MW1513"));
    QVERIFY2(problem.fix.find("a batch of 256") != std::string::npos, problem.fix.c_str());
    QVERIFY2(problem.fix.find("mesh axis ") != std::string::npos, problem.fix.c_str());
    QVERIFY2(problem.message.find("parameters") != std::string::npos, problem.message.c_str());
    QVERIFY2(problem.message.find("takes over the arrays of \"init\"") != std::string::npos, problem.message.c_str());
}

void TestDeviceMemory::namesTheLargestFunction_data()
{
    QTest::addColumn<QString>("example");
    for (const char* example : {"pipeline_1f1b", "pipeline_gpipe", "pipeline_interleaved"})
        QTest::newRow(example) << QString(example) + ".yaml";
}

/// Of a pipeline that does not fit, the function of the largest arena of any stage.
void TestDeviceMemory::namesTheLargestFunction()
{
    QFETCH(QString, example);
    const Study study = studyOf(example.toStdString(), {});
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledFunction* largest = &phases.front().scheduled.stages.front().functions.front();
    for (const ScheduledStage& stage : phases.front().scheduled.stages) {
        for (const ScheduledFunction& function : stage.functions)
            largest = function.buffers.arenaBytes > largest->buffers.arenaBytes ? &function : largest;
    }
    const auto refused = checkDeviceMemory(study, phases, 1);
    QVERIFY(!refused);
    const std::string& message = refused.error().front().message;
    QVERIFY2(message.find("\"" + largest->device.function.name + "\" needs the most") != std::string::npos, message.c_str());
}

/// A phase before the last one needs room for its evaluation too where accuracy is measured between steps.
void TestDeviceMemory::evaluationInPhases()
{
    for (const bool evaluates : {false, true}) {
        const Study study = studyOf("phases.yaml",
            {"batch=960", "optimizer={sgd: {learning_rate: 0.001}}",
                "phases=[{steps: 1, mesh: {data: 1, model: 1}}, {steps: 1, mesh: {data: 4, model: 2}}]",
                evaluates ? "train.evaluate=1" : "train.evaluate=0"});
        const auto phases = valueOf(trainingPhases(study));
        const ScheduledStage& first = phases.front().scheduled.stages.front();
        const std::int64_t together = first.find("step")->buffers.arenaBytes + first.find("evaluate")->buffers.arenaBytes;
        QCOMPARE(checkDeviceMemory(study, phases, together - 1).has_value(), !evaluates);
    }
}

void TestDeviceMemory::arenasAreWhatIsPlanned_data()
{
    QTest::addColumn<QString>("example");
    for (const char* example : {"digits", "data_parallel", "tensor_parallel", "two_d", "fsdp", "zero1", "zero2",
             "sequence_parallel", "hybrid_fsdp", "replicated", "transformer_digits"})
        QTest::newRow(example) << QString(example) + ".yaml";
}

/// What the devices used, counted while they ran, is the plan, to the byte.
void TestDeviceMemory::arenasAreWhatIsPlanned()
{
    QFETCH(QString, example);
    const auto phases = valueOf(trainingPhases(studyOf(example.toStdString(), {})));
    const ScheduledStage& stage = phases.front().scheduled.stages.front();
    const auto devices = valueOf(VirtualDevices::create(stage.mesh().deviceCount()));
    for (const ScheduledFunction& function : stage.functions) {
        const auto loaded = valueOf(LoadedFunction::load(function, stage.meshes, *devices));
        QCOMPARE(loaded->highWaterBytes(), std::int64_t{0});
        QVERIFY(loaded->run());
        QCOMPARE(loaded->highWaterBytes(), function.buffers.arenaBytes);
    }
}

MESHWRIGHT_TEST(TestDeviceMemory)

} // namespace tst_device_memory

#include "tst_device_memory.moc"
