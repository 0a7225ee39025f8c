// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/chakra/replay.h"
#include "sim/chakra/step_traces.h"
#include "sim/collective/network_cost.h"
#include "sim/session/engine.h"
#include "sim/simulate/step_graph.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <map>
#include <set>

namespace tst_chakra_replay {

using namespace meshwright;
using namespace meshwright::sim;
using namespace std::string_literals;

/// Simulated steps as Chakra traces, and traces on machines.
class TestChakraReplay : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tracesAreTheStep_data();
    void tracesAreTheStep();
    void ownStepComesOut_data();
    void ownStepComesOut();
    void throughFolders();
    void tooLong();
    void slowDevicesComputeLonger();
    void collectivesTakeTheNetwork();
    void timesOfComputing();
    void groupsRunBesideEachOther();
    void messagesGoWhenTheSenderIsReady();
    void hostsRunBesideDevices();
    void whoIsReadyGoesFirst();
    void tooManyGroups();
    void wrong_data();
    void wrong();
};

namespace {

const Catalogue& catalogue()
{
    static const Catalogue kCatalogue = valueOf(defaultCatalogue());
    return kCatalogue;
}

struct Written {
    SimulatedStudy study;
    StepGraph graph;
    Machine machine;
};

Written written(const QString& example, const QStringList& settings)
{
    std::vector<std::string> texts;
    for (const QString& setting : settings)
        texts.push_back(setting.toStdString());
    const Study study = valueOf(loadStudy(resourcesDirectory() / "examples" / (example.toStdString() + ".yaml"), texts));
    Written result;
    result.study = valueOf(simulateStudy(study, catalogue(), {.graph = &result.graph}));
    result.machine = valueOf(machineOf(study, catalogue()));
    return result;
}

std::vector<ChakraTrace> tracesOf(const StepTraces& step)
{
    std::vector<ChakraTrace> traces;
    for (std::size_t rank = 0; rank < step.ranks(); ++rank)
        traces.push_back(valueOf(readChakra(step.bytesOf(rank), "rank")));
    return traces;
}

Machine machineFor(const std::string& chip, std::vector<std::int64_t> topology, std::int64_t perHost = 0)
{
    return valueOf(buildMachine(catalogue(), {chip, std::move(topology), 0, perHost}));
}

/// Traces by hand: nodes are numbered as they are added.
struct Rank {
    ChakraTrace trace;

    Rank& add(
        ChakraNodeType type, std::vector<std::uint64_t> after, std::uint64_t micros, std::vector<ChakraAttribute> attributes)
    {
        const std::uint64_t id = trace.nodes.size();
        trace.nodes.push_back(
            {id, "node " + std::to_string(id), type, {}, std::move(after), 0, micros, std::move(attributes), {}});
        return *this;
    }
    Rank& compute(std::uint64_t micros, std::vector<std::uint64_t> after = {})
    {
        return add(ChakraNodeType::Compute, std::move(after), micros, {});
    }
    Rank& host(std::uint64_t micros, std::vector<std::uint64_t> after = {})
    {
        return add(ChakraNodeType::Compute, std::move(after), micros, {{"is_cpu_op", true}});
    }
    Rank& collective(std::int64_t type, std::int64_t bytes, std::vector<std::uint64_t> after = {}, const std::string& group = "")
    {
        return add(
            ChakraNodeType::Collective, std::move(after), 0, {{"comm_type", type}, {"comm_size", bytes}, {"pg_name", group}});
    }
    Rank& send(std::int32_t to, std::int64_t bytes, std::vector<std::uint64_t> after = {}, std::int32_t tag = 0)
    {
        return add(ChakraNodeType::Send, std::move(after), 0, {{"comm_dst", to}, {"comm_size", bytes}, {"comm_tag", tag}});
    }
    Rank& receive(std::int32_t from, std::int64_t bytes, std::vector<std::uint64_t> after = {}, std::int32_t tag = 0)
    {
        return add(ChakraNodeType::Receive, std::move(after), 0, {{"comm_src", from}, {"comm_size", bytes}, {"comm_tag", tag}});
    }
};

Result<ReplayedStep> replayed(const std::vector<Rank>& ranks, const ProcessGroups& groups = {}, const Machine* machine = nullptr,
    const NetworkOptions& network = {})
{
    static const Machine kEight = machineFor("h100", {}, 8);
    std::vector<ChakraTrace> traces;
    for (const Rank& rank : ranks)
        traces.push_back(rank.trace);
    const Machine& on = machine == nullptr ? kEight : *machine;
    return replayTraces(traces, groups, on, valueOf(costOptionsOf(on.chip)), network);
}

double secondsOf(const std::vector<Rank>& ranks, const ProcessGroups& groups = {}, const Machine* machine = nullptr)
{
    return valueOf(replayed(ranks, groups, machine)).simulation.stepSeconds;
}

bool near(double a, double b, double relative = 1e-9)
{
    return qAbs(a - b) <= relative * qMax(qAbs(a), qAbs(b)) + 1e-12;
}

} // namespace

void TestChakraReplay::tracesAreTheStep_data()
{
    QTest::addColumn<QString>("example");
    QTest::newRow("FSDP") << "fsdp";
    QTest::newRow("two axes") << "two_d";
    QTest::newRow("a pipeline") << "pipeline_1f1b";
    QTest::newRow("chunks") << "pipeline_interleaved";
}

/// A node for each op of each rank, with its bytes and what it waits for; groups whose ranks agree.
void TestChakraReplay::tracesAreTheStep()
{
    QFETCH(QString, example);
    const Written step = written(example, {});
    const StepTraces made = valueOf(StepTraces::create(step.graph));
    const std::vector<ChakraTrace> traces = tracesOf(made);
    const ProcessGroups groups = valueOf(readProcessGroups(made.groupsJson(), "g"));
    QCOMPARE(traces.size(), static_cast<std::size_t>(step.study.mesh.deviceCount()));
    std::int64_t nodes = 0;
    std::map<std::string, std::int64_t> bytes; // of the first stage's collectives, by kind
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
        const auto& ops = step.graph.stages[step.graph.stageOf[rank]];
        QCOMPARE(traces[rank].nodes.size(), ops.size());
        nodes += static_cast<std::int64_t>(ops.size());
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const ChakraNode& node = traces[rank].nodes[i];
            QCOMPARE(node.id, static_cast<std::uint64_t>(i));
            QCOMPARE(node.name, ops[i].name);
            QVERIFY(std::ranges::equal(node.dataDependencies, ops[i].after));
            QVERIFY(std::ranges::all_of(node.dataDependencies, [&](std::uint64_t other) { return other < i; }));
            const bool computes = ops[i].kind == StepGraph::Op::Kind::Compute;
            QCOMPARE(node.type == ChakraNodeType::Compute, computes);
            if (computes) {
                QCOMPARE(node.integer(kChakraPicoseconds).value_or(-1), ops[i].ticks);
                QVERIFY(qAbs(static_cast<double>(node.durationMicros) - 1e-6 * static_cast<double>(ops[i].ticks)) <= 0.5);
                continue;
            }
            const StepGraph::Use& use = step.graph.uses[ops[i].use];
            const std::int64_t size = node.integer("comm_size").value_or(-1);
            QCOMPARE(size * (use.kind == OpKind::AllGather ? use.groups.size : 1), use.payloadBytes);
            if (node.type != ChakraNodeType::Collective)
                continue;
            if (const std::string group = node.text("pg_name").value_or(""); !group.empty())
                QVERIFY(std::ranges::count(groups.at(group), static_cast<std::int64_t>(rank)) == 1);
            if (step.graph.stageOf[rank] == step.graph.stageOf[0] && rank == 0)
                bytes[opName(use.kind)] += use.payloadBytes;
        }
    }
    QCOMPARE(made.nodes(), nodes);
    if (step.graph.stages.size() > 1)
        return; // collectives are told of another stage
    std::map<std::string, std::int64_t> simulated;
    for (const SimulatedCollective& collective : step.study.simulation.collectives)
        simulated[opName(collective.use.kind)] += collective.use.count * collective.use.payloadBytes;
    QVERIFY(!simulated.empty() && bytes == simulated);
}

void TestChakraReplay::ownStepComesOut_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<double>("within");
    const QStringList gpus{"hardware={chip: h100, hosts: 1}"};
    constexpr double kExact = 1e-9;
    QTest::newRow("FSDP") << "fsdp" << QStringList{} << kExact;
    QTest::newRow("FSDP on GPUs") << "fsdp" << gpus << kExact;
    QTest::newRow("tensor parallel") << "tensor_parallel" << QStringList{} << kExact;
    QTest::newRow("data parallel") << "data_parallel" << QStringList{} << kExact;
    QTest::newRow("ZeRO-1") << "zero1" << QStringList{} << kExact;
    QTest::newRow("two axes") << "two_d" << QStringList{} << 0.02;
    QTest::newRow("three axes") << "three_d" << QStringList{} << 0.02;
    QTest::newRow("GPipe") << "pipeline_gpipe" << QStringList{} << 0.02;
    QTest::newRow("1F1B") << "pipeline_1f1b" << QStringList{} << 0.02;
    QTest::newRow("interleaved") << "pipeline_interleaved" << QStringList{} << 0.02;
    QTest::newRow("wide") << "wide_mlp" << QStringList{} << 0.02;
    QTest::newRow("layers in a loop") << "sequence_parallel_transformer" << QStringList{"model.transformer.layers=6"} << 0.02;
}

/// What is written and replayed on the same machine takes what was simulated.
void TestChakraReplay::ownStepComesOut()
{
    QFETCH(QString, example);
    QFETCH(QStringList, settings);
    QFETCH(double, within);
    const Written step = written(example, settings);
    const StepTraces made = valueOf(StepTraces::create(step.graph));
    const auto groups = valueOf(readProcessGroups(made.groupsJson(), "g"));
    const ReplayedStep again
        = valueOf(replayTraces(tracesOf(made), groups, step.machine, valueOf(costOptionsOf(step.machine.chip)), {}));
    const Simulation& before = step.study.simulation;
    const Simulation& after = again.simulation;
    QVERIFY2(near(before.stepSeconds, after.stepSeconds, within),
        qPrintable(QString("%1 was %2").arg(after.stepSeconds, 0, 'g', 12).arg(before.stepSeconds, 0, 'g', 12)));
    QVERIFY(near(before.computeSeconds, after.computeSeconds, within));
    QCOMPARE(again.nodes, made.nodes());
    QVERIFY(!after.timeline.slices().empty());
    QVERIFY(after.mfu > 0.0);
    // Equal ranks are one to the simulator, as they were.
    QVERIFY2(after.classes <= 2 * before.classes + static_cast<std::int64_t>(step.graph.stages.size()) * 2,
        qPrintable(QString("%1 classes were %2").arg(after.classes).arg(before.classes)));
}

void TestChakraReplay::throughFolders()
{
    QTemporaryDir directory;
    const std::filesystem::path folder = std::filesystem::path(directory.path().toStdString()) / "new" / "traces";
    const Written step = written("two_d", {});
    const StepTraces made = valueOf(StepTraces::create(step.graph));
    QVERIFY(writeChakraFolder(made, folder).has_value());
    const ReplayedStep again = valueOf(replayFolder(folder, step.machine, valueOf(costOptionsOf(step.machine.chip)), {}));
    QCOMPARE(again.nodes, made.nodes());
    QVERIFY(near(again.simulation.stepSeconds, step.study.simulation.stepSeconds, 0.02));
    QVERIFY(writeChakraFolder(made, folder).has_value()); // over itself
    const Written fewer = written("two_d", {"mesh={data: 2, model: 2}", "hardware.topology=[2, 2]"});
    const auto mixed = writeChakraFolder(valueOf(StepTraces::create(fewer.graph)), folder);
    QVERIFY(!mixed && mixed.error().front().id == "MW1783");
    const std::filesystem::path other = folder.parent_path() / "other";
    QVERIFY(writeChakraFolder(made, other).has_value());
    std::filesystem::rename(other / "step.0.et", other / "mine.0.et");
    const auto another = writeChakraFolder(made, other);
    QVERIFY(!another && another.error().front().id == "MW1783");
    const std::filesystem::path blocked = folder.parent_path() / "blocked";
    std::filesystem::create_directories(blocked / "step.2.et");
    const auto half = writeChakraFolder(made, blocked);
    QVERIFY(!half && half.error().front().id == "MW1005");
    QVERIFY(!std::filesystem::exists(blocked / "step.0.et") && !std::filesystem::exists(blocked / "comm_groups.json"));
    QVERIFY(std::filesystem::remove(folder / "step.3.et"));
    const auto missing = replayFolder(folder, step.machine, valueOf(costOptionsOf(step.machine.chip)), {});
    QVERIFY(!missing && missing.error().front().id == "MW1783");
}

void TestChakraReplay::tooLong()
{
    StepGraph graph;
    graph.stages.resize(1);
    for (int i = 0; i < 1000; ++i)
        graph.stages[0].push_back({});
    for (std::uint32_t device = 0; device < 4001; ++device) {
        graph.devices.push_back(device);
        graph.stageOf.push_back(0);
        graph.speed.push_back(1.0);
    }
    const auto many = StepTraces::create(graph);
    QVERIFY(!many && many.error().front().id == "MW1767");
    graph.stages[0].resize(999);
    QVERIFY(StepTraces::create(graph).has_value());
    graph.tooLong = true;
    const auto longer = StepTraces::create(graph);
    QVERIFY(!longer && longer.error().front().id == "MW1767");
}

void TestChakraReplay::slowDevicesComputeLonger()
{
    const Written whole = written("data_parallel", {});
    const Written slow = written("data_parallel", {"faults={slow: [{device: 3, speed: 0.5}]}"});
    const StepTraces made = valueOf(StepTraces::create(slow.graph));
    const ReplayedStep again = valueOf(replayTraces(tracesOf(made), valueOf(readProcessGroups(made.groupsJson(), "g")),
        whole.machine, valueOf(costOptionsOf(whole.machine.chip)), {}));
    QVERIFY(slow.study.simulation.stepSeconds > whole.study.simulation.stepSeconds);
    QVERIFY(near(again.simulation.stepSeconds, slow.study.simulation.stepSeconds, 1e-6));
}

/// Alone on the machine a collective takes its closed form, of what each rank puts in.
void TestChakraReplay::collectivesTakeTheNetwork()
{
    const Machine machine = machineFor("h100", {}, 8);
    const MeshPlacement placement = valueOf(placeMesh(valueOf(parseMesh("a=8")), machine));
    const auto alone = [&](CollectiveKind kind, std::int64_t bytes) {
        return estimateCollective(requestFor(placement, kind, placement.groupAxesOfDevices({{0, 1, 2, 3, 4, 5, 6, 7}}), bytes))
            .seconds;
    };
    constexpr std::int64_t kBytes = 8 << 20;
    const auto all = [&](std::int64_t type) { return secondsOf(std::vector<Rank>(8, Rank().collective(type, kBytes))); };
    QVERIFY(near(all(0), alone(CollectiveKind::AllReduce, kBytes)));
    QVERIFY(near(all(2), alone(CollectiveKind::AllGather, 8 * kBytes)));
    // A trace says what a rank puts in, a report what it has in the end.
    const auto bytes = [&](std::int64_t type) {
        const ReplayedStep step = valueOf(replayed(std::vector<Rank>(8, Rank().collective(type, kBytes)), {}, nullptr));
        return step.simulation.collectives.front().use.payloadBytes;
    };
    QCOMPARE(bytes(2), 8 * kBytes);
    QCOMPARE(bytes(0), kBytes);
    QVERIFY(near(all(5), alone(CollectiveKind::Broadcast, kBytes)));
    QVERIFY(near(all(1), all(5)));
    QVERIFY(near(all(6), alone(CollectiveKind::AllToAll, kBytes)));
    QVERIFY(near(all(7), alone(CollectiveKind::ReduceScatter, kBytes)));
    QVERIFY(near(all(8), all(7)));
    QVERIFY(all(9) > 0.0 && all(9) < all(0));
    // Two of a group come one after the other, whatever waits for them.
    QVERIFY(near(secondsOf(std::vector<Rank>(8, Rank().collective(0, kBytes).collective(0, kBytes))), 2 * all(0)));
    QCOMPARE(secondsOf({Rank().collective(0, kBytes)}), 0.0); // with oneself
    // Groups as PyTorch writes them.
    std::vector<Rank> torch(8, Rank().add(ChakraNodeType::Metadata, {}, 0, {}).collective(0, kBytes, {}, "7"));
    for (Rank& rank : torch)
        rank.trace.nodes.front().inputs = R"(['[{"pg_name": "7", "ranks": [0, 1, 2, 3, 4, 5, 6, 7]}]'])";
    QVERIFY(near(secondsOf(torch), all(0)));
}

/// What a node says, exactly or in microseconds; else its FLOPs and bytes on the machine.
void TestChakraReplay::timesOfComputing()
{
    const auto one = [](std::uint64_t micros, std::vector<ChakraAttribute> attributes) {
        return secondsOf({Rank().add(ChakraNodeType::Compute, {}, micros, std::move(attributes))});
    };
    QVERIFY(near(one(7, {}), 7e-6));
    QVERIFY(near(one(7, {{kChakraPicoseconds, std::int64_t{6'600'001}}}), 6.600001e-6));
    QVERIFY(near(one(7, {{kChakraPicoseconds, std::int64_t{1}}}), 7e-6)); // somebody changed the other
    QVERIFY(near(one(7, {{"num_ops", std::int64_t{1} << 50}}), 7e-6));
    const double product = one(0, {{"num_ops", std::int64_t{1} << 40}});
    QVERIFY(product > double(std::int64_t{1} << 40) / 990e12 && product < double(std::int64_t{1} << 40) / 500e12);
    const double copy = one(0, {{"tensor_size", std::uint64_t{1} << 30}});
    QVERIFY(copy > double(1 << 30) / 3.4e12 && copy < double(1 << 30) / 2.2e12);
    QCOMPARE(one(0, {}), 0.0);
    QCOMPARE(one(0, {{"num_ops", std::int64_t{-5}}, {"tensor_size", std::int64_t{-5}}}), 0.0);
    QVERIFY(near(secondsOf({Rank().compute(3).compute(4)}), 7e-6)); // a rank computes one at a time

    // Which times are ours is said, of each and of all.
    const std::vector<ChakraAttribute> work{{"num_ops", std::int64_t{1} << 40}};
    const auto step = valueOf(replayed({Rank().compute(3).add(ChakraNodeType::Compute, {}, 0, work)}));
    const Timeline& timeline = step.simulation.timeline;
    QVERIFY(timeline.find("from its trace") && timeline.find("no time in its trace: estimated from FLOPs and bytes"));
    QVERIFY(std::ranges::count(step.simulation.assumptions,
                std::string("1 node of computing has no time in the traces: its time is estimated from FLOPs and bytes"))
        == 1);
    const Timeline whole = valueOf(replayed({Rank().compute(3)})).simulation.timeline;
    QVERIFY(!whole.find("no time in its trace: estimated from FLOPs and bytes"));
}

/// Groups of a switch do not slow each other; those on the same links of a torus do.
void TestChakraReplay::groupsRunBesideEachOther()
{
    const ProcessGroups halves{{"1", {0, 1, 2, 3}}, {"2", {4, 5, 6, 7}}};
    constexpr std::int64_t kBytes = 64 << 20;
    std::vector<Rank> ranks;
    for (int rank = 0; rank < 8; ++rank)
        ranks.push_back(Rank().collective(0, kBytes, {}, rank < 4 ? "1" : "2"));
    std::vector<Rank> first = ranks;
    for (std::size_t rank = 4; rank < 8; ++rank)
        first[rank] = Rank();
    QVERIFY(near(secondsOf(ranks, halves), secondsOf(first, halves)));
    // The same ranks under two names, both at once: each takes its share.
    std::vector<Rank> both;
    for (int rank = 0; rank < 4; ++rank)
        both.push_back(Rank().collective(0, kBytes, {}, "1").collective(0, kBytes, {}, "3"));
    const double shared = secondsOf(both, {{"1", {0, 1, 2, 3}}, {"3", {0, 1, 2, 3}}});
    const double alone = secondsOf(first, halves);
    QVERIFY2(shared > 1.5 * alone && shared < 2.1 * alone, qPrintable(QString("%1 %2").arg(shared).arg(alone)));
}

/// A receiver takes a message as soon as it comes: two ranks that both send first do not wait for ever.
void TestChakraReplay::messagesGoWhenTheSenderIsReady()
{
    constexpr std::int64_t kBytes = 32 << 20;
    const std::vector<Rank> ranks{Rank().compute(100).send(1, kBytes, {0}).receive(1, kBytes, {1}).compute(10, {2}),
        Rank().compute(50).send(0, kBytes, {0}).receive(0, kBytes, {1}).compute(20, {2})};
    const ReplayedStep step = valueOf(replayed(ranks));
    QCOMPARE(step.messages, std::int64_t(2));
    const double message = secondsOf({Rank().send(1, kBytes), Rank().receive(0, kBytes)});
    QVERIFY(message > kBytes / 450e9);
    QVERIFY(near(step.simulation.stepSeconds, 120e-6 + message, 1e-6));
    // Messages of several tags are told apart, those of one come in order.
    const std::vector<Rank> tags{Rank().send(1, 8, {}, 5).send(1, 16, {}, 6).send(1, 24, {}, 5),
        Rank().receive(0, 16, {}, 6).receive(0, 8, {}, 5).receive(0, 24, {}, 5)};
    QVERIFY(replayed(tags).has_value());
    // Equal ones of two tags, which may come at once, are two messages at every fidelity.
    const std::vector<Rank> equal{Rank().receive(1, 1, {}, 2).receive(1, 1, {}, 0), Rank().send(0, 1, {}, 2).send(0, 1, {}, 0)};
    for (const Fidelity fidelity : {Fidelity::Closed, Fidelity::Fluid, Fidelity::Message}) {
        const ReplayedStep two = valueOf(replayed(equal, {}, nullptr, {.fidelity = fidelity}));
        QCOMPARE(two.messages, std::int64_t(2));
        QVERIFY(two.simulation.stepSeconds > 0.0);
    }
    QCOMPARE(secondsOf({Rank().send(0, kBytes).receive(0, kBytes)}), 0.0); // to oneself
}

void TestChakraReplay::hostsRunBesideDevices()
{
    QVERIFY(near(secondsOf({Rank().host(30).compute(20).host(5, {1})}), 35e-6));
    const ReplayedStep waits = valueOf(replayed({Rank().host(30).compute(20, {0})}));
    QVERIFY(near(waits.simulation.stepSeconds, 50e-6));
    QVERIFY(near(waits.simulation.computeSeconds, 20e-6));
}

/// Static orders by the files alone would let these two wait for each other.
void TestChakraReplay::whoIsReadyGoesFirst()
{
    const ProcessGroups groups{{"1", {0, 1}}, {"2", {1, 0}}};
    const std::vector<Rank> ranks{
        Rank().collective(0, 1 << 20, {}, "1").compute(10, {0}).compute(20).collective(0, 1 << 20, {2}, "2"),
        Rank().collective(0, 1 << 20, {}, "2").compute(10, {0}).collective(0, 1 << 20, {1}, "1")};
    const auto step = replayed(ranks, groups);
    QVERIFY2(step.has_value(), step ? "" : describe(step.error()).c_str());
    QVERIFY(step->simulation.stepSeconds > 40e-6);
}

/// Groups under so many names would be flows that all share two links: said at once, not after hours.
void TestChakraReplay::tooManyGroups()
{
    ProcessGroups groups;
    Rank rank;
    for (int group = 1; group <= 1025; ++group) {
        groups[std::to_string(group)] = {0, 1};
        rank.collective(0, 8, {}, std::to_string(group));
    }
    const auto step = replayed({rank, rank}, groups);
    QVERIFY(!step);
    QCOMPARE(step.error().front().id, "MW1767"s);
}

void TestChakraReplay::wrong_data()
{
    QTest::addColumn<int>("number");
    QTest::addColumn<QString>("said");
    const char* said[] = {"MW1769 node 0 waits for itself", "MW1769 ranks wait for each other",
        "MW1768 node 0 is of the group \"9\", which is not defined",
        "MW1768 node 0 is of the group \"1\", which does not contain rank 0",
        "MW1768 the group \"3\" has rank 5, which has no trace",
        "MW1768 node 0 of rank 0 sends to rank 1, which does not receive it",
        "MW1768 node 0 of rank 1 receives from rank 0, which does not send it", "MW1768 node 0 of rank 0 sends 8 bytes",
        "MW1768 rank 0 sends to rank 7", "MW1768 node 0 of rank 0 does not name the rank that it sends to",
        "MW1768 1 of the 2 ranks of the group \"\" take part", "MW1768 collective 0 of the group \"\" moves 8 bytes by kind 0",
        "MW1784 node 0 has no comm_size", "MW1784 node 0 has no comm_size", "MW1784 node 0 has no comm_type",
        "MW1784 node 0 gathers to one rank", "MW1784 node 0 takes 1.84e+13 seconds",
        "MW1784 all nodes together take more than 12 days", "MW1720 there are traces of 9 ranks",
        "MW1783 there are no Chakra traces"};
    for (int i = 0; i < static_cast<int>(std::size(said)); ++i)
        QTest::newRow(said[i]) << i << said[i];
}

void TestChakraReplay::wrong()
{
    QFETCH(int, number);
    QFETCH(QString, said);
    const ProcessGroups groups{{"1", {1}}, {"2", {0, 1}}, {"3", {0, 5}}, {"4", {1, 0}}};
    const Rank none;
    const std::vector<std::vector<Rank>> steps{
        {Rank().compute(1, {1}).compute(1, {0})},
        {Rank().collective(0, 8, {}, "2").collective(0, 8, {0}, "4"),
            Rank().collective(0, 8, {}, "4").collective(0, 8, {0}, "2")},
        {Rank().collective(0, 8, {}, "9")},
        {Rank().collective(0, 8, {}, "1")},
        {Rank().collective(0, 8, {}, "3")},
        {Rank().send(1, 8), none},
        {none, Rank().receive(0, 8)},
        {Rank().send(1, 8), Rank().receive(0, 9)},
        {Rank().send(7, 8), none},
        {Rank().add(ChakraNodeType::Send, {}, 0, {{"comm_size", std::int64_t{8}}})},
        {Rank().collective(0, 8), none},
        {Rank().collective(0, 8), Rank().collective(2, 8)},
        {Rank().add(ChakraNodeType::Collective, {}, 0, {{"comm_type", std::int64_t{0}}, {"comm_size", std::uint64_t{1} << 63}})},
        {Rank().collective(0, -1)},
        {Rank().collective(10, 8)},
        {Rank().collective(3, 8)},
        {Rank().compute(~std::uint64_t{0})},
        {Rank().compute(900'000'000'000).compute(900'000'000'000)},
        std::vector<Rank>(9, Rank().compute(1)),
        {},
    };
    const auto step = replayed(steps[static_cast<std::size_t>(number)], groups);
    QVERIFY(!step);
    const QString first = QString::fromStdString(step.error().front().id + " " + step.error().front().message);
    QVERIFY2(first.startsWith(said), qPrintable(first));
}

MESHWRIGHT_TEST(TestChakraReplay)

} // namespace tst_chakra_replay

#include "tst_chakra_replay.moc"
