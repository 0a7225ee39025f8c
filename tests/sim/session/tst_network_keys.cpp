// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"
#include "tests/test_class.h"

namespace tst_network_keys {

using namespace meshwright;

/// `faults` and `network` of a study: read, written, checked, and what they do to a simulated step.
class TestNetworkKeys : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void readAndWritten();
    void wordsAreTheSimulators();
    void problems_data();
    void problems();
    void slowDeviceSlowsTheStep();
    void failedLinkIsGoneRound();
    void oversubscription();
    void fidelitiesAndAlgorithms();
    void hardwareFileTakesThemToo();
};

namespace {

const std::string kTpu = "meshwright: 1\n"
                         "name: study\n"
                         "hardware: {chip: v4, topology: [4, 4, 1]}\n"
                         "mesh: {data: 4, model: 4}\n"
                         "model: {mlp: {layers: [1024, 2048, 1024], activation: relu}}\n"
                         "batch: 256\n"
                         "sharding:\n"
                         "  x: P('data', None)\n"
                         "  y: P('data', None)\n"
                         "  layers.0.w: P(None, 'model')\n"
                         "  layers.0.b: P('model')\n"
                         "  layers.1.w: P('model', None)\n"; // line 12

const std::string kGpus = "meshwright: 1\n"
                          "hardware: {chip: h100, hosts: 8}\n"
                          "mesh: {data: 64}\n"
                          "model: {mlp: {layers: [1024, 2048, 1024], activation: relu}}\n"
                          "batch: 256\n"
                          "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}\n"; // line 6

Result<sim::SimulatedStudy> simulated(const std::string& text)
{
    auto study = readStudy(text, "study.yaml");
    if (!study)
        return study.error();
    return sim::simulateStudy(*study, valueOf(sim::defaultCatalogue()));
}

sim::Simulation step(const std::string& text)
{
    return valueOf(simulated(text)).simulation;
}

} // namespace

void TestNetworkKeys::readAndWritten()
{
    const Study study = valueOf(readStudy(kTpu
            + "faults:\n"
              "  slow: [{device: 3, speed: 0.8}]\n"
              "  links: [{device: 5, axis: x}, {device: 6, axis: y, share: 0.5}]\n"
              "network: {fidelity: message, algorithms: {all_reduce: ring, all_gather: both_ways}, oversubscription: 2, "
              "per_leaf: 4}\n",
        "study.yaml"));
    QCOMPARE(study.faults.slow.size(), std::size_t(1));
    QCOMPARE(study.faults.slow.front().device, std::int64_t(3));
    QCOMPARE(study.faults.slow.front().speed, 0.8);
    QCOMPARE(study.faults.links.size(), std::size_t(2));
    QCOMPARE(study.faults.links[0].share, 0.0);
    QCOMPARE(study.faults.links[1].axis, std::string("y"));
    QCOMPARE(study.network.fidelity, std::string("message"));
    QCOMPARE(study.network.algorithms.size(), std::size_t(2));
    QCOMPARE(study.network.oversubscription, std::optional(2.0));
    QCOMPARE(study.network.perLeaf, std::optional<std::int64_t>(4));
    QVERIFY(valueOf(readStudy(writeStudy(study), "again.yaml")) == study);

    const Study ring = valueOf(readStudy(kTpu + "network: {algorithms: ring}\n", "study.yaml"));
    QVERIFY(valueOf(readStudy(writeStudy(ring), "again.yaml")) == ring);
    const sim::NetworkOptions options = sim::networkOf(ring);
    QCOMPARE(options.algorithms.size(), std::size_t(5));
    QCOMPARE(options.fidelity, sim::Fidelity::Fluid);
}

/// core/study knows the words, sim/network what they mean.
void TestNetworkKeys::wordsAreTheSimulators()
{
    for (const std::string& word : fidelityWords())
        QVERIFY(sim::findFidelity(word));
    for (const std::string& word : algorithmWords())
        QVERIFY2(sim::findAlgorithm(word), word.c_str());
    for (const std::string& kind : collectiveWords())
        QVERIFY2(sim::parseAlgorithms(kind + "=ring"), kind.c_str());
    for (int i = 0; i <= static_cast<int>(sim::CollectiveAlgorithm::Binomial); ++i) {
        const std::string name = sim::algorithmName(static_cast<sim::CollectiveAlgorithm>(i));
        QVERIFY2(std::ranges::count(algorithmWords(), name) == 1, name.c_str());
    }
}

void TestNetworkKeys::problems_data()
{
    QTest::addColumn<QString>("study");
    QTest::addColumn<QString>("added");
    QTest::addColumn<QString>("expected"); ///< ids, and the line and column of each

    const QString tpu = QString::fromStdString(kTpu);
    const QString gpus = QString::fromStdString(kGpus);
    const auto row = [](const char* name, const QString& study, const char* added, const char* expected) {
        QTest::newRow(name) << study << QString(added) << QString(expected);
    };
    row("a device that is not there", tpu, "faults: {slow: [{device: 16, speed: 0.5}]}\n", "MW1746 13:26");
    row("links of devices and axes that are not there", tpu, "faults: {links: [{device: 99, axis: x}, {device: 0, axis: w}]}\n",
        "MW1746 13:27 MW1748 13:59");
    row("no link after the last of a line", tpu, "faults: {links: [{device: 3, axis: x}]}\n", "MW1749 13:18");
    row("speed", tpu, "faults: {slow: [{device: 1, speed: 1.5}]}\n", "MW1425 13:36");
    row("share", tpu, "faults: {links: [{device: 1, axis: x, share: -1}]}\n", "MW1425 13:46");
    row("device", tpu, "faults: {slow: [{device: -1, speed: 0.5}]}\n", "MW1401 13:26");
    row("what is missing", tpu, "faults: {slow: [{device: 1}], links: [{axis: x}]}\n", "MW1421 13:17 MW1421 13:39");
    row("an unknown key", tpu, "faults: {slow: [{device: 1, speed: 0.5, until: 3}]}\n", "MW1420 13:41");
    row("no list", tpu, "faults: {slow: {device: 1, speed: 0.5}}\n", "MW1422 13:16");
    row("no mapping", tpu, "faults: [3]\nnetwork: fluid\n", "MW1422 13:9 MW1422 14:10");
    row("fidelity", tpu, "network: {fidelity: fluids}\n", "MW1423 13:21");
    row("algorithms", tpu, "network: {algorithms: {all_reduce: rings, reduce: ring}}\n", "MW1423 13:36 MW1423 13:51");
    row("an algorithm that the hardware lacks", tpu, "network: {algorithms: {all_reduce: tree}}\n", "MW1740 13:23");
    row("leaves without a network", tpu, "network: {per_leaf: 4}\n", "MW1750 13:21");
    row("oversubscription without leaves", gpus, "network: {oversubscription: 2}\n", "MW1421 7:29");
    row("oversubscription below one", gpus, "network: {oversubscription: 0.5, per_leaf: 2}\n", "MW1425 7:29");
    row("no hosts on a leaf", gpus, "network: {per_leaf: 0}\n", "MW1401 7:21");
    row("a line that is cut", gpus, "faults: {links: [{device: 0, axis: host}]}\n", "MW1741 7:17");
}

void TestNetworkKeys::problems()
{
    QFETCH(QString, study);
    QFETCH(QString, added);
    QFETCH(QString, expected);
    const auto result = simulated((study + added).toStdString());
    QVERIFY(!result);
    QStringList found;
    for (const Problem& problem : result.error()) {
        QVERIFY2(!problem.fix.empty(), problem.message.c_str());
        found << QString("%1 %2:%3").arg(QString::fromStdString(problem.id)).arg(problem.place.line).arg(problem.place.column);
    }
    QCOMPARE(found.join(' '), expected);
}

void TestNetworkKeys::slowDeviceSlowsTheStep()
{
    const sim::Simulation whole = step(kTpu);
    const sim::Simulation slow = step(kTpu + "faults: {slow: [{device: 3, speed: 0.5}]}\n");
    QVERIFY(qAbs(slow.computeSeconds - 2.0 * whole.computeSeconds) < 1e-10);
    QVERIFY(slow.stepSeconds > whole.stepSeconds);
    QVERIFY(slow.classes > whole.classes);
}

void TestNetworkKeys::failedLinkIsGoneRound()
{
    const sim::Simulation whole = step(kTpu);
    const sim::Simulation failed = step(kTpu + "faults: {links: [{device: 5, axis: x}]}\n");
    QVERIFY(failed.collectiveSeconds > whole.collectiveSeconds);
    QVERIFY(failed.contentionSeconds > 0.0);
    const sim::Simulation half = step(kTpu + "faults: {links: [{device: 5, axis: x, share: 0.5}]}\n");
    QVERIFY(half.stepSeconds > whole.stepSeconds);
    QVERIFY(half.stepSeconds <= failed.stepSeconds);
}

void TestNetworkKeys::oversubscription()
{
    const auto with = [](const char* keys) { return step(kGpus + keys).collectiveSeconds; };
    const double full = with("");
    QCOMPARE(with("network: {oversubscription: 1, per_leaf: 4}\n"), full);
    QVERIFY(with("network: {oversubscription: 8, per_leaf: 4}\n") > full);
}

void TestNetworkKeys::fidelitiesAndAlgorithms()
{
    const auto at = [](const std::string& fidelity) { return step(kTpu + "network: {fidelity: " + fidelity + "}\n"); };
    QVERIFY(at("closed").stepSeconds > 0.0);
    QVERIFY(at("message").events > 5 * at("fluid").events);
    QCOMPARE(step(kTpu).stepSeconds, at("fluid").stepSeconds);
    std::string oneHost = kGpus;
    oneHost.replace(oneHost.find("hosts: 8"), 8, "hosts: 1").replace(oneHost.find("data: 64"), 8, "data: 8");
    const sim::Simulation tree = step(oneHost + "network: {algorithms: {all_reduce: tree}}\n");
    for (const sim::SimulatedCollective& collective : tree.collectives) {
        if (collective.use.kind == OpKind::AllReduce)
            QVERIFY2(collective.algorithm.find("tree") != std::string::npos, collective.algorithm.c_str());
    }
}

/// A machine of the user's own, with faults of its own: the study's come on top.
void TestNetworkKeys::hardwareFileTakesThemToo()
{
    QTemporaryDir folder;
    QFile file(folder.filePath("mine.yaml"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("meshwright_hardware: 1\n"
               "chip: {name: mine, memory_bytes: 16e9, memory_bytes_per_s: 1e12, flops: {fp32: 1e14, bf16: 2e14}}\n"
               "topology:\n"
               "  - {name: ring, kind: torus, length: 8, wraps: true, bytes_per_s: 50e9, latency_s: 1e-6}\n"
               "faults: {slow: [{device: 1, speed: 0.9}]}\n");
    file.close();
    const std::string base = "meshwright: 1\nhardware: {profile: " + file.fileName().toStdString()
        + "}\nmesh: {data: 8}\nmodel: {mlp: {layers: [1024, 2048, 1024]}}\nbatch: 256\n"
          "sharding: {x: \"P('data', None)\", y: \"P('data', None)\"}\n";
    const sim::Simulation own = step(base);
    const sim::Simulation both = step(base + "faults: {slow: [{device: 2, speed: 0.5}], links: [{device: 7, axis: ring}]}\n");
    QVERIFY(both.computeSeconds > 1.5 * own.computeSeconds);
    QVERIFY(both.collectiveSeconds > own.collectiveSeconds);
    const auto missing = simulated(base + "faults: {links: [{device: 0, axis: rings}]}\n");
    QVERIFY(!missing);
    QCOMPARE(missing.error().front().fixSettings, std::vector<std::string>{"faults.links[0].axis=ring"});
}

MESHWRIGHT_TEST(TestNetworkKeys)

} // namespace tst_network_keys

#include "tst_network_keys.moc"
