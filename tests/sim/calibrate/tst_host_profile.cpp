// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_fit.h"
#include "sim/calibrate/host_measure.h"
#include "sim/calibrate/host_predict.h"
#include "sim/calibrate/host_profile.h"
#include "sim/calibrate/host_reference.h"

#include "core/schedule/label.h"
#include "core/study/study.h"
#include "sim/hardware/hardware_file.h"
#include "sim/session/engine.h"
#include "tests/test_class.h"

namespace tst_host_profile {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

/// Rates that are easy to check: a product's is m * n * k.
HostProfile easyProfile()
{
    HostProfile profile;
    profile.name = "easy";
    profile.permits = 2;
    profile.sides = {1, 10, 100};
    for (const double m : {1.0, 10.0, 100.0}) {
        for (const double n : {1.0, 10.0, 100.0}) {
            for (const double k : {1.0, 10.0, 100.0})
                profile.productFlopsPerSecond.push_back(m * n * k);
        }
    }
    profile.aloneFlopsPerSecond = 1e9;
    profile.kernelSeconds = 1e-6;
    profile.streams = {{1000.0, 2e-6}, {1e6, 1e-3}};
    profile.costs.fill(1e-9);
    profile.costs[static_cast<std::size_t>(HostCost::PassStart)] = 1e-6;
    profile.costs[static_cast<std::size_t>(HostCost::WaitShare)] = 0.1;
    profile.reference = {1e-4, 2e-4};
    profile.barrierSeconds = 1e-5;
    profile.allReduce = {{1000.0, 1e-5}, {1e6, 1e-3}};
    profile.allGather = {{1000.0, 5e-6}, {1e6, 4e-4}};
    profile.memoryBytes = 1 << 30;
    return profile;
}

Study studyOf(const char* mesh, const char* sharding)
{
    const std::string text = std::string("meshwright: 1\nname: t\nmesh: ") + mesh
        + "\nmodel:\n  mlp: {layers: [16, 32, 10], activation: relu, bias: true, loss: cross_entropy}\nbatch: 32\n" + sharding
        + "\noptimizer: {adam: {learning_rate: 1.0e-3}}\ntrain: {steps: 4, seed: 0, data: random}\n";
    return valueOf(readStudy(text, "t.yaml"));
}

} // namespace

class TestHostProfile : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ratesBetweenPoints();
    void writtenAndRead();
    void isAHardwareFile();
    void badProfiles_data();
    void badProfiles();
    void measuredQuickly();
    void fitsCosts();
    void leavesOutWhatIsDisturbed();
    void farAndNearBytes();
    void workOfAProduct();
    void narrowProducts();
    void predictsPipelines();
    void asQuickAsNow();
    void measuringChangesNothing();
    void collectivesGoOnBesideComputing();
    void predictsClassesOfAStep();
    void collectivesExactly_data();
    void collectivesExactly();
    void fullyShardedMemory();
};

void TestHostProfile::ratesBetweenPoints()
{
    const HostProfile profile = easyProfile();
    for (const auto& [m, n, k] :
        std::vector<std::array<double, 3>>{{1.0, 1.0, 1.0}, {10.0, 100.0, 1.0}, {3.0, 30.0, 99.0}, {100.0, 100.0, 100.0}})
        QVERIFY(qAbs(profile.productRate(m, n, k) / (m * n * k) - 1.0) < 1e-9);
    QVERIFY(qAbs(profile.productRate(1000.0, 1.0, 1.0) - 100.0) < 1e-9); // as the nearest point
}

void TestHostProfile::writtenAndRead()
{
    const HostProfile profile = easyProfile();
    const HostProfile again = valueOf(parseHostProfile(hostProfileJson(profile), "host.json"));
    QCOMPARE(hostProfileJson(again), hostProfileJson(profile));
    QCOMPARE(again.permits, 2);
    QCOMPARE(again.allGather.size(), std::size_t(2));
    QCOMPARE(again.costs, profile.costs);
    QCOMPARE(again.reference.otherSeconds, profile.reference.otherSeconds);
    QCOMPARE(again.cacheBytes, profile.cacheBytes);
}

void TestHostProfile::isAHardwareFile()
{
    const Catalogue catalogue = valueOf(defaultCatalogue());
    const Machine machine = valueOf(parseHardware(hostProfileJson(easyProfile()), "host.json", catalogue));
    QCOMPARE(machine.deviceCount(), 8);
    QCOMPARE(machine.chip.chipClass, ChipClass::Cpu);
    QCOMPARE(machine.chip.peakFlopsPerSecond.at(MathFormat::Fp32).value, 1e6);
}

void TestHostProfile::badProfiles_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::newRow("no JSON") << "{"
                             << "[";
    QTest::newRow("no host") << "\"host\""
                             << "\"guest\"";
    QTest::newRow("a word") << "\"permits\": 2"
                            << "\"permits\": \"two\"";
    QTest::newRow("nought") << "\"kernel_s\": 1e-06"
                            << "\"kernel_s\": 0";
    QTest::newRow("another version") << "\"version\": 3"
                                     << "\"version\": 1";
    QTest::newRow("a cost below nought") << "\"pass_start\": 1e-06"
                                         << "\"pass_start\": -1e-06";
    QTest::newRow("a cost less") << "\"wait_share\""
                                 << "\"share\"";
    QTest::newRow("no reference") << "\"others\""
                                  << "\"other\"";
    QTest::newRow("one cache") << "\"cache_bytes\": [\n      500000.0,"
                               << "\"cache_bytes\": [";
    QTest::newRow("absent") << "\"barrier_s\""
                            << "\"barrier\"";
    QTest::newRow("sides that fall") << "      10,\n"
                                     << "      1000,\n";
    QTest::newRow("times that fall") << "\"bytes\": 1000.0"
                                     << "\"bytes\": 1e9";
}

void TestHostProfile::badProfiles()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QString text = QString::fromStdString(hostProfileJson(easyProfile()));
    QVERIFY2(text.contains(from), qPrintable(text));
    text.replace(text.indexOf(from), from.size(), to);
    const auto profile = parseHostProfile(text.toStdString(), "host.json");
    QVERIFY(!profile);
    QCOMPARE(profile.error().front().id, std::string("MW1711"));
    QCOMPARE(profile.error().front().place.file, std::string("host.json"));
}

void TestHostProfile::measuredQuickly()
{
    const HostProfile profile = valueOf(measureHost({.permits = 1, .devices = 2, .quick = true}));
    QCOMPARE(profile.productFlopsPerSecond.size(), std::size_t(8));
    QVERIFY(profile.productFlopsPerSecond.back() > profile.productFlopsPerSecond.front());
    QVERIFY(profile.streams.back().seconds > profile.streams.front().seconds);
    QVERIFY(profile.barrierSeconds > 0.0 && profile.memoryBytes > 0);
    double products = 0.0;
    for (const HostCost cost : {HostCost::ProductStart, HostCost::ProductFlop, HostCost::ProductCopied})
        products += profile.costs[static_cast<std::size_t>(cost)];
    QVERIFY(products > 0.0);
    QCOMPARE(profile.allReduce.size(), std::size_t(4));
    QVERIFY(parseHostProfile(hostProfileJson(profile), "host.json"));
}

/// Costs come back from samples that they make, and what does not matter is 0 and never below.
void TestHostProfile::fitsCosts()
{
    const auto at = [](HostCost cost) { return static_cast<std::size_t>(cost); };
    std::vector<HostSample> samples;
    for (int i = 1; i <= 12; ++i) {
        HostSample sample;
        sample.amounts[at(HostCost::ReduceStart)] = 1.0;
        sample.amounts[at(HostCost::ReduceRowElement)] = 1000.0 * i * i;
        sample.amounts[at(HostCost::ReduceByte)] = 4000.0 * i;
        sample.amounts[at(HostCost::PassStart)] = 1.0; // a cost that is not fitted
        sample.seconds = 5e-7 + 2e-6 + 1000.0 * i * i * 1e-9;
        samples.push_back(sample);
    }
    HostCosts costs{};
    costs[at(HostCost::PassStart)] = 5e-7;
    fitCosts(samples, HostCost::ReduceStart, HostCost::ReduceMemory, costs);
    QVERIFY(qAbs(costs[at(HostCost::ReduceStart)] / 2e-6 - 1.0) < 1e-3);
    QVERIFY(qAbs(costs[at(HostCost::ReduceRowElement)] / 1e-9 - 1.0) < 1e-3);
    QVERIFY(costs[at(HostCost::ReduceByte)] >= 0.0 && costs[at(HostCost::ReduceByte)] < 1e-13);
    QCOMPARE(costs[at(HostCost::ReduceColumnCall)], 0.0);
    QCOMPARE(costs[at(HostCost::PassStart)], 5e-7);
}

void TestHostProfile::leavesOutWhatIsDisturbed()
{
    std::vector<HostSample> samples(9);
    for (HostSample& sample : samples) {
        sample.amounts[static_cast<std::size_t>(HostCost::MoveStart)] = 1.0;
        sample.seconds = 1e-6;
    }
    samples[4].seconds = 1e-4;
    HostCosts costs{};
    fitCosts(samples, HostCost::MoveStart, HostCost::MoveMemory, costs);
    QVERIFY2(qAbs(costs[static_cast<std::size_t>(HostCost::MoveStart)] / 1e-6 - 1.0) < 0.1,
        qPrintable(QString::number(costs[static_cast<std::size_t>(HostCost::MoveStart)])));
}

/// A small step finds its operands near; where caches hold nothing, most bytes come from memory.
void TestHostProfile::farAndNearBytes()
{
    const Study study = studyOf("{data: 2}", "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}");
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledStage& stage = phases.back().scheduled.stages.front();
    const auto bytes = [&](double cache) {
        HostProfile profile = easyProfile();
        profile.cacheBytes = {cache, cache};
        HostCosts sum{};
        forEachWork(*stage.find("step"), stage.mesh(), profile,
            [&](const HostWork& work) { std::ranges::transform(sum, work.amounts, sum.begin(), std::plus{}); });
        return std::array{sum[static_cast<std::size_t>(HostCost::ProductFar)],
            sum[static_cast<std::size_t>(HostCost::ProductMemory)], sum[static_cast<std::size_t>(HostCost::PassByte)]};
    };
    const auto near = bytes(1e9);
    const auto far = bytes(0.0);
    QCOMPARE(near[0], 0.0);
    QCOMPARE(near[1], 0.0);
    QVERIFY(far[1] > 0.0);
    QCOMPARE(far[0], far[1]); // there is nothing between
    QVERIFY(near[2] > 0.0);
    QCOMPARE(far[2], near[2]);
}

/// What a product of 32 x 32 results over 16 terms does: whole register tiles, operands packed as they lie or across, an edge.
void TestHostProfile::workOfAProduct()
{
    const Study study = studyOf("{data: 1}", "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}");
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledStage& stage = phases.back().scheduled.stages.front();
    const ScheduledFunction& step = *stage.find("step");
    HostCosts found{};
    forEachWork(step, stage.mesh(), easyProfile(), [&](const HostWork& work) {
        if (instructionLabel(step.device.function, *work.instruction) == "dot_general act.layers.0.product")
            found = work.amounts;
    });
    const auto at = [&](HostCost cost) { return found[static_cast<std::size_t>(cost)]; };
    QCOMPARE(at(HostCost::ProductStart), 1.0);
    QCOMPARE(at(HostCost::ProductPart), 0.0);
    QCOMPARE(at(HostCost::ProductFlop), 2.0 * 36.0 * 32.0 * 16.0);
    QCOMPARE(at(HostCost::ProductTurned), 32.0 * 16.0); // the left side
    QCOMPARE(at(HostCost::ProductCopied), 32.0 * 16.0);
    QCOMPARE(at(HostCost::ProductResult), 32.0 * 32.0);
    QCOMPARE(at(HostCost::ProductEdge), 8.0 * 32.0);
    QCOMPARE(at(HostCost::NarrowStart), 0.0);
}

/// Products of rounded operands are costs of their own.
void TestHostProfile::narrowProducts()
{
    const Study study = studyOf(
        "{data: 1}", "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}\ndtype: {parameters: f32, matmul: bf16}");
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledStage& stage = phases.back().scheduled.stages.front();
    HostCosts sum{};
    forEachWork(*stage.find("step"), stage.mesh(), easyProfile(),
        [&](const HostWork& work) { std::ranges::transform(sum, work.amounts, sum.begin(), std::plus{}); });
    QCOMPARE(sum[static_cast<std::size_t>(HostCost::ProductFlop)], 0.0);
    QVERIFY(sum[static_cast<std::size_t>(HostCost::NarrowStart)] >= 3.0);
    QVERIFY(sum[static_cast<std::size_t>(HostCost::NarrowFlop)] > 0.0);
}

/// A pipeline's step is longer than what a device does in it, by the time in which stages wait for each other, and in proportion to all costs.
void TestHostProfile::predictsPipelines()
{
    const Study study = valueOf(readStudy(
        "meshwright: 1\nname: t\nmesh: {pipe: 2, data: 2}\nmodel:\n  mlp: {layers: [16, 32, 32, 10], activation: relu, loss: "
        "cross_entropy}\nbatch: 32\nsharding: {x: \"P('data', None)\", y: \"P('data', None)\"}\noptimizer: {adam: "
        "{learning_rate: 1.0e-3, clip_norm: 1.0}}\ntrain: {steps: 4, seed: 0, data: random}\n"
        "pipeline: {axis: pipe, stages: 2, microbatches: 4, schedule: 1f1b, layers: [1, 2]}\n",
        "t.yaml"));
    const auto result = valueOf(trainStudy(study, {.typical = true}, {}, {}));
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledProgram& scheduled = phases.back().scheduled;
    HostProfile profile = easyProfile();
    const HostSeconds once = predictHost(scheduled, profile);
    for (double& cost : profile.costs)
        cost *= 2.0;
    profile.costs[static_cast<std::size_t>(HostCost::WaitShare)] /= 2.0; // of seconds
    const HostSeconds twice = predictHost(scheduled, profile);
    QVERIFY(qAbs(twice.total / once.total - 2.0) < 1e-9);
    QVERIFY(once.of(HostClass::Waiting) > 0.05 * once.total);
    const HostSeconds measured = measuredHost(scheduled, result.typicalTime);
    for (const HostSeconds& seconds : {once, measured}) {
        double sum = 0.0;
        for (const double part : seconds.byClass)
            sum += part;
        QVERIFY(qAbs(sum / seconds.total - 1.0) < 1e-6);
        QVERIFY(seconds.of(HostClass::Products) > 0.0 && seconds.of(HostClass::Optimizer) > 0.0);
    }
}

/// Products and the rest are as much slower as they are in the reference; shares of time stay.
void TestHostProfile::asQuickAsNow()
{
    const HostProfile profile = easyProfile();
    const HostProfile now = atSpeed(profile, {2e-4, 1e-4});
    const auto cost = [](const HostProfile& of, HostCost which) { return of.costs[static_cast<std::size_t>(which)]; };
    for (const HostCost which : {HostCost::ProductStart, HostCost::ProductMemory, HostCost::NarrowFlop, HostCost::NarrowMemory})
        QCOMPARE(cost(now, which), 2.0 * cost(profile, which));
    for (const HostCost which : {HostCost::PassStart, HostCost::ReduceMemory, HostCost::MoveStart, HostCost::WaitMeeting})
        QCOMPARE(cost(now, which), 0.5 * cost(profile, which));
    QCOMPARE(cost(now, HostCost::WaitShare), cost(profile, HostCost::WaitShare));
    QCOMPARE(atSpeed(profile, HostSpeed()).costs, profile.costs); // nothing is known
    const auto reference = valueOf(HostReference::create(1));
    QCOMPARE(reference->speed().otherSeconds, 0.0);
    QVERIFY(reference->run({}));
    QVERIFY(reference->speed().otherSeconds > 0.0 && reference->speed().productSeconds > 0.0);
}

/// The steps that are repeated to be measured leave what was trained and counted as it is.
void TestHostProfile::measuringChangesNothing()
{
    const Study study = studyOf("{data: 4}", "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}");
    int times = 0;
    const auto plain = valueOf(trainStudy(study, {.keepParameters = true}, {}, {}));
    const auto measured
        = valueOf(trainStudy(study, {.typical = true, .besides = [&] { ++times; }, .keepParameters = true}, {}, {}));
    QVERIFY(!measured.typicalTime.slices().empty());
    QVERIFY(plain.typicalTime.slices().empty());
    QVERIFY(times > 0);
    QVERIFY(plain.losses == measured.losses);
    QVERIFY(plain.parameters == measured.parameters);
    const auto calls = [](const TrainingResult& result) {
        std::vector<std::pair<std::int64_t, std::int64_t>> list;
        for (const CountedCollective& collective : result.phases.back().collectives)
            list.emplace_back(collective.calls, collective.totalPayloadBytes);
        return list;
    };
    QVERIFY(!calls(plain).empty());
    QVERIFY(calls(plain) == calls(measured));
}

/// The total is no more than the sum of all classes, and less where a collective lies beside other work.
void TestHostProfile::collectivesGoOnBesideComputing()
{
    const Study study = studyOf("{data: 2}", "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}");
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledStage& stage = phases.back().scheduled.stages.front();
    HostProfile profile = easyProfile();
    profile.costs[static_cast<std::size_t>(HostCost::WaitShare)] = 0.0;
    profile.costs[static_cast<std::size_t>(HostCost::WaitMeeting)] = 0.0;
    bool anyBeside = false;
    forEachWork(
        *stage.find("step"), stage.mesh(), profile, [&](const HostWork& work) { anyBeside = anyBeside || work.isAsynchronous; });
    const HostSeconds predicted = predictHost(*stage.find("step"), stage.mesh(), profile);
    double sum = 0.0;
    for (const double seconds : predicted.byClass)
        sum += seconds;
    QVERIFY(predicted.total <= sum * (1.0 + 1e-9));
    QCOMPARE(predicted.total < sum * (1.0 - 1e-9), anyBeside);
}

/// Every class that the measured step has is predicted, and the parts make up the totals.
void TestHostProfile::predictsClassesOfAStep()
{
    const Study study = studyOf("{data: 2, model: 2}",
        "sharding: {x: \"P('data', None)\", y: \"P('data', None)\", layers.0: {w: \"P(None, 'model')\", b: \"P('model')\"}}");
    const auto result = valueOf(trainStudy(study, {.typical = true}, {}, {}));
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledStage& stage = phases.back().scheduled.stages.front();
    const ScheduledProgram& scheduled = phases.back().scheduled;
    HostProfile profile = easyProfile();
    profile.costs[static_cast<std::size_t>(HostCost::WaitMeeting)] = 1e-3; // more than goes on beside
    const HostComparison comparison{
        stage.mesh().text(), predictHost(scheduled, profile), measuredHost(scheduled, result.typicalTime)};
    for (const HostClass kind : {HostClass::Products, HostClass::Elementwise, HostClass::Reductions, HostClass::Optimizer,
             HostClass::Collectives, HostClass::Waiting}) {
        QVERIFY2(comparison.predicted.of(kind) > 0.0, hostClassName(kind));
        QVERIFY2(kind == HostClass::Waiting || comparison.measured.of(kind) > 0.0, hostClassName(kind));
    }
    double sum = 0.0; // of what one device does after the other; collectives, and waiting for them, lie beside it
    for (const HostClass kind : {HostClass::Products, HostClass::Elementwise, HostClass::Reductions, HostClass::Optimizer})
        sum += comparison.measured.of(kind);
    QVERIFY(sum <= comparison.measured.total * (1.0 + 1e-9));
    QVERIFY(hostComparisonText(comparison).find("collectives") != std::string::npos);
    QVERIFY(hostComparisonJson(comparison).find("\"error\":") != std::string::npos);
}

void TestHostProfile::collectivesExactly_data()
{
    QTest::addColumn<QByteArray>("mesh");
    QTest::addColumn<QByteArray>("sharding");
    QTest::newRow("data") << QByteArray("{data: 4}") << QByteArray("sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}");
    QTest::newRow("data and model")
        << QByteArray("{data: 2, model: 2}")
        << QByteArray("sharding: {x: \"P('data', None)\", y: \"P('data', None)\", layers.0: {w: \"P(None, 'model')\", b: "
                      "\"P('model')\"}, layers.1: {w: \"P('model', None)\"}}");
    QTest::newRow("fully sharded")
        << QByteArray("{data: 4}")
        << QByteArray("sharding: {x: \"P('data', None)\", y: \"P('data', None)\", layers.0: {w: \"P('data', None)\"}}");
}

/// What simulating predicts of every collective, axis by axis, is what the devices counted.
void TestHostProfile::collectivesExactly()
{
    QFETCH(QByteArray, mesh);
    QFETCH(QByteArray, sharding);
    const Study study = studyOf(mesh.constData(), sharding.constData());
    const auto result = valueOf(trainStudy(study, {}, {}, {}));
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledStage& stage = phases.back().scheduled.stages.front();
    const auto uses = collectivesOf(stage.find("step")->device, stage.mesh());
    QVERIFY(!uses.empty());
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> predicted;
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> counted;
    constexpr std::int64_t kSteps = 4;
    for (const CollectiveUse& use : uses) {
        predicted[use.axes].first += kSteps * use.count;
        predicted[use.axes].second += kSteps * use.count * use.payloadBytes;
    }
    for (const CountedCollective& collective : result.phases.front().collectives) {
        counted[collective.use.axes].first += collective.calls;
        counted[collective.use.axes].second += collective.totalPayloadBytes;
    }
    QVERIFY(predicted == counted);
}

/// A model of 4 MB split over 8 devices (as 400 MB would be): an eighth of the weights on each, and whole layers only while they are used.
/// What the plan says is what a run needs.
void TestHostProfile::fullyShardedMemory()
{
    constexpr std::int64_t kSide = 320;
    constexpr std::int64_t kLayers = 10;
    constexpr std::int64_t kLayerBytes = kSide * kSide * 4;
    std::string layers = "320";
    for (std::int64_t i = 0; i < kLayers; ++i)
        layers += ", 320";
    const Study study = valueOf(readStudy("meshwright: 1\nname: t\nmesh: {data: 8}\nmodel:\n  mlp: {layers: [" + layers
            + "], activation: relu, bias: false, loss: sum_squared}\nbatch: 2048\nsharding:\n  x: P('data', None)\n  y: "
              "P('data', None)\n"
              "  match:\n    - {path: \"*.w\", spec: [data, null]}\n"
              "optimizer: {sgd: {learning_rate: 1.0e-6}}\ntrain: {steps: 1, seed: 0, data: random}\n",
        "t.yaml"));
    const auto phases = valueOf(trainingPhases(study));
    const ScheduledFunction& step = *phases.front().scheduled.stages.front().find("step");
    const auto moments = memoryOverTime(step);
    QCOMPARE(moments.front().bytesByKind[static_cast<std::size_t>(MemoryKind::Parameter)], kLayers * kLayerBytes / 8);
    std::int64_t gathered = 0;
    std::int64_t peak = 0;
    for (const MemoryMoment& moment : moments) {
        gathered = std::max(gathered, moment.bytesByKind[static_cast<std::size_t>(MemoryKind::Collective)]);
        peak = std::max(peak, moment.total);
    }
    QVERIFY(gathered >= kLayerBytes); // a whole layer, but not all of them
    QVERIFY(gathered < 5 * kLayerBytes);
    const auto result = valueOf(trainStudy(study, {}, {}, {}));
    QCOMPARE(result.phases.front().arenaBytes, step.buffers.arenaBytes);
    QVERIFY(result.stepArenaBytes >= peak);
}

MESHWRIGHT_TEST(TestHostProfile)

} // namespace tst_host_profile

#include "tst_host_profile.moc"
