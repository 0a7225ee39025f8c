// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/partition/partition.h"
#include "core/runtime/executor.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <numeric>
#include <thread>

namespace tst_executor {

using namespace meshwright;
using namespace meshwright::test;

namespace {

Mesh meshOf(const std::string& text)
{
    return valueOf(parseMesh(text));
}

TensorSharding specOf(const std::string& spec, std::size_t rank, const Mesh& mesh)
{
    return valueOf(toTensorSharding(valueOf(parseSpec(spec)), rank, mesh));
}

/// A training program with specs on arguments, by name, through all passes.
struct Study {
    Program program; ///< without shardings
    PartitionedProgram partitioned;
    ScheduledProgram scheduled;
};

using Specs = std::map<std::string, std::string>;

MlpModel smallModel()
{
    MlpModel model;
    model.layers = {12, 16, 16, 8};
    model.activation = Activation::Relu;
    model.loss = LossKind::CrossEntropy;
    return model;
}

TrainingOptions smallOptions(bool adam)
{
    TrainingOptions options;
    options.batch = 16;
    if (adam)
        options.optimizer = AdamOptimizer{};
    else
        options.optimizer = SgdOptimizer{0.1, 0.9};
    return options;
}

Study studyOf(const Mesh& mesh, const Specs& specs, bool adam, SchedulePolicy policy = SchedulePolicy::Host)
{
    Study study;
    study.program = valueOf(buildMlpTraining(smallModel(), smallOptions(adam)));
    Program annotated = study.program;
    annotated.meshes = {{"mesh", mesh}};
    for (Function& function : annotated.functions) {
        for (const ValueId argument : function.arguments()) {
            if (const auto spec = specs.find(function[argument].name); spec != specs.end())
                function[argument].sharding = specOf(spec->second, function[argument].type.shape.size(), mesh);
        }
    }
    auto partitioned = propagateAndPartition(std::move(annotated));
    if (!partitioned)
        qFatal("%s", describe(partitioned.error()).c_str());
    study.partitioned = *std::move(partitioned);
    study.scheduled = schedule(study.partitioned.device, policy);
    return study;
}

std::vector<HostArray> argumentsOf(const Function& function, std::uint64_t seed)
{
    std::vector<HostArray> arguments;
    for (const ValueId argument : function.arguments()) {
        HostArray array = randomArray(function[argument].type, seed++);
        if (function[argument].name == "opt.step")
            array = HostArray::filled(array.type(), 3.0);
        if (function[argument].name.starts_with("opt.v.")) {
            std::vector<double> values = array.values();
            for (double& value : values)
                value = std::abs(value);
            array = HostArray::of(array.type(), values);
        }
        arguments.push_back(std::move(array));
    }
    return arguments;
}

std::unique_ptr<LoadedFunction> load(const Study& study, const std::string& name, VirtualDevices& devices)
{
    const ScheduledStage& stage = study.scheduled.stages.front();
    auto loaded = LoadedFunction::load(*stage.find(name), stage.meshes, devices);
    if (!loaded)
        qFatal("%s", describe(loaded.error()).c_str());
    return *std::move(loaded);
}

std::unique_ptr<VirtualDevices> devicesOf(std::int64_t count, int permits = 0)
{
    return valueOf(VirtualDevices::create(count, {permits}));
}

void writeAll(LoadedFunction& loaded, const std::vector<HostArray>& arguments)
{
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto done = loaded.writeArgument(i, arguments[i]);
        QVERIFY2(done, done ? "" : describe(done.error()).c_str());
    }
}

std::vector<HostArray> resultsOf(const LoadedFunction& loaded)
{
    std::vector<HostArray> results;
    for (std::size_t i = 0; i < loaded.function().results().size(); ++i)
        results.push_back(loaded.readResult(i));
    return results;
}

const Specs kData{{"x", "P('data')"}, {"y", "P('data')"}};
const Specs kMegatron{{"x", "P('data', None)"}, {"y", "P('data', None)"}, {"layers.0.w", "P(None, 'model')"},
    {"layers.1.w", "P('model', None)"}, {"layers.2.w", "P(None, 'model')"}};
const Specs kFsdp{{"x", "P('data')"}, {"y", "P('data')"}, {"layers.0.w", "P(None, 'data')"}, {"layers.1.w", "P('data')"},
    {"layers.2.w", "P('data')"}, {"layers.1.b", "P('data')"}};

} // namespace

class TestExecutor : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void matmulWithAllReduce();
    void stepEqualsReference_data();
    void stepEqualsReference();
    void randomInitialValuesDoNotDependOnTheLayout();
    void trainingKeepsItsBits();
    void fusedUpdatesKeepTheBits_data();
    void fusedUpdatesKeepTheBits();
    void reductionsOverlapInVirtualTime();
    void loops_data();
    void loops();
    void changesLayout();
    void countsAndTimelines();
    void aTypicalRunOfSeveral();
    void manyDevices();
    void deadOpsDoNothing();
    void argumentsAmongResults();
    void reductionsOfPasses_data();
    void reductionsOfPasses();
    void numbersInReducedPasses();
    void arguments();
    void stopsInTheMiddle();
    void stoppedRunCountsForNothing();
};

void TestExecutor::matmulWithAllReduce()
{
    // By hand: x[6, 8] split along its columns, w[8, 4] along its rows, the product partial over the mesh.
    const Mesh mesh = meshOf("a=4");
    DeviceFunction device;
    Function& f = device.function;
    Builder b(f);
    const ValueId x = b.argument({DType::F32, {6, 2}}, "x");
    const ValueId w = b.argument({DType::F32, {2, 4}}, "w");
    const ValueId partial = b.matmul(x, w, DType::F32);
    CollectiveAttributes attributes;
    attributes.axes = {{0, 1, 4}};
    const ValueId y = b.add(OpKind::AllReduce, {partial}, attributes);
    b.setResults({y});
    f[x].sharding = specOf("P(None, 'a')", 2, mesh);
    f[w].sharding = specOf("P('a', None)", 2, mesh);
    f[y].sharding = TensorSharding::replicatedOf(2);
    f[partial].sharding = f[y].sharding;
    f[partial].sharding->unreduced = {{0, 1, 4}};
    device.globalShapes = {{6, 8}, {8, 4}, {6, 4}, {6, 4}};

    const auto devices = devicesOf(4);
    const auto loaded = LoadedFunction::load(schedule(device, SchedulePolicy::Host), {{"mesh", mesh}}, *devices);
    QVERIFY2(loaded, loaded ? "" : describe(loaded.error()).c_str());
    const std::vector<HostArray> arguments{randomArray({DType::F32, {6, 8}}, 1), randomArray({DType::F32, {8, 4}}, 2)};
    writeAll(**loaded, arguments);
    QVERIFY((*loaded)->run());

    const Function whole = functionOf({arguments[0].type(), arguments[1].type()},
        [](Builder& builder, const auto& a) { return builder.matmul(a[0], a[1], DType::F32); });
    const auto expected = evaluate(whole, arguments);
    QVERIFY(expected);
    QCOMPARE(difference((*loaded)->readResult(0), expected->front().values(), 1e-6), std::string());
    QVERIFY((*loaded)->replicasAgree(0));
    QVERIFY((*loaded)->readArgument(0) == arguments[0]);
    QCOMPARE((*loaded)->arenaBytes(), (*loaded)->scheduled().buffers.arenaBytes);
}

void TestExecutor::stepEqualsReference_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<Specs>("specs");
    QTest::newRow("one device") << "data=1" << Specs{};
    QTest::newRow("data 8") << "data=8" << kData;
    QTest::newRow("data 4, model 2") << "data=4,model=2" << kMegatron;
    QTest::newRow("data 2, model 4") << "data=2,model=4" << kMegatron;
    QTest::newRow("model 8") << "data=1,model=8" << kMegatron;
    QTest::newRow("fsdp") << "data=8" << kFsdp;
    QTest::newRow("three axes") << "data=2,model=2,rest=2"
                                << Specs{{"x", "P(('data', 'rest'), None)"}, {"y", "P('data', None)"},
                                       {"layers.0.w", "P('rest', 'model')"}, {"layers.1.w", "P('model', 'rest')"}};
}

void TestExecutor::stepEqualsReference()
{
    QFETCH(QString, mesh);
    QFETCH(Specs, specs);
    const auto devices = devicesOf(8);
    for (const bool adam : {false, true}) {
        for (const SchedulePolicy policy : {SchedulePolicy::Host, SchedulePolicy::Eager}) {
            const Study study = studyOf(meshOf(mesh.toStdString()), specs, adam, policy);
            for (const char* name : {"step", "loss", "evaluate"}) {
                const Function& whole = *study.program.find(name);
                const std::vector<HostArray> arguments = argumentsOf(whole, 31);
                const auto reference = evaluate(whole, arguments, {true});
                const auto single = evaluate(whole, arguments);
                QVERIFY(reference && single);
                const auto loaded = load(study, name, *devices);
                writeAll(*loaded, arguments);
                const auto done = loaded->run();
                QVERIFY2(done, done ? "" : describe(done.error()).c_str());
                const std::vector<HostArray> results = resultsOf(*loaded);
                QCOMPARE(results.size(), reference->size());
                for (std::size_t i = 0; i < results.size(); ++i) {
                    QVERIFY(loaded->replicasAgree(i));
                    const std::string label
                        = fmt::format("{} {} ", name, whole.resultNames.empty() ? std::to_string(i) : whole.resultNames[i]);
                    QVERIFY2(difference((*single)[i], (*reference)[i].values(), 1e-4).empty(),
                        (label + "unsharded: " + difference((*single)[i], (*reference)[i].values(), 1e-4)).c_str());
                    QVERIFY2(difference(results[i], (*reference)[i].values(), 1e-4).empty(),
                        (label + difference(results[i], (*reference)[i].values(), 1e-4)).c_str());
                }
                // What was donated has taken the place of its argument.
                for (const Donation& donation : loaded->function().donations)
                    QVERIFY(loaded->readArgument(donation.argument) == results[donation.result]);
            }
        }
    }
}

void TestExecutor::randomInitialValuesDoNotDependOnTheLayout()
{
    const auto devices = devicesOf(8);
    for (const auto& [mesh, specs] :
        std::vector<std::pair<std::string, Specs>>{{"data=8", kFsdp}, {"data=4,model=2", kMegatron}}) {
        Study study;
        study.program = valueOf(buildMlpTraining(smallModel(), smallOptions(true)));
        Program annotated = study.program;
        annotated.meshes = {{"mesh", meshOf(mesh)}};
        Function& init = *annotated.find("init");
        init.resultShardings.resize(init.results().size());
        for (std::size_t i = 0; i < init.results().size(); ++i) {
            std::string name = init.resultNames.empty() ? "" : init.resultNames[i];
            const std::size_t rank = init[init.results()[i]].type.shape.size();
            const auto spec = specs.find(name);
            init.resultShardings[i]
                = spec != specs.end() ? specOf(spec->second, rank, annotated.meshes[0].mesh) : TensorSharding::replicatedOf(rank);
        }
        study.partitioned = valueOf(propagateAndPartition(std::move(annotated)));
        study.scheduled = schedule(study.partitioned.device, SchedulePolicy::Host);

        std::vector<HostArray> keys;
        for (const ValueId argument : study.program.find("init")->arguments()) {
            keys.push_back(HostArray::of(study.program.find("init")->values[argument.at()].type,
                std::vector<double>{7.0, static_cast<double>(keys.size())}));
        }
        const auto loaded = load(study, "init", *devices);
        writeAll(*loaded, keys);
        QVERIFY(loaded->run());
        const auto expected = evaluate(*study.program.find("init"), keys);
        QVERIFY(expected);
        for (std::size_t i = 0; i < expected->size(); ++i)
            QVERIFY(loaded->readResult(i) == (*expected)[i]); // bit for bit: every element depends on its index only
    }
}

void TestExecutor::trainingKeepsItsBits()
{
    // Ten steps in place; the same bits with any number of permits, again and again.
    std::vector<HostArray> first;
    for (const int permits : {2, 1, 8, 2}) {
        const auto devices = devicesOf(8, permits);
        const Study study = studyOf(meshOf("data=4,model=2"), kMegatron, true);
        const auto loaded = load(study, "step", *devices);
        writeAll(*loaded, argumentsOf(*study.program.find("step"), 41));
        for (int step = 0; step < 10; ++step)
            QVERIFY(loaded->run());
        const std::vector<HostArray> results = resultsOf(*loaded);
        if (first.empty())
            first = results;
        QVERIFY(results == first);
    }
    // And what ten steps on one thread give, within rounding.
    const Program program = valueOf(buildMlpTraining(smallModel(), smallOptions(true)));
    const Function& step = *program.find("step");
    std::vector<HostArray> arguments = argumentsOf(step, 41);
    std::vector<HostArray> results;
    for (int i = 0; i < 10; ++i) {
        results = *evaluate(step, arguments);
        for (const Donation& donation : step.donations)
            arguments[donation.argument] = results[donation.result];
    }
    for (std::size_t i = 0; i < results.size(); ++i)
        QVERIFY2(
            difference(first[i], results[i].values(), 1e-3).empty(), difference(first[i], results[i].values(), 1e-3).c_str());
}

void TestExecutor::loops_data()
{
    QTest::addColumn<bool>("reversed");
    QTest::addColumn<int>("policy");
    for (const bool reversed : {false, true}) {
        for (const SchedulePolicy policy : {SchedulePolicy::Host, SchedulePolicy::Eager})
            QTest::addRow("%s, %s", reversed ? "reversed" : "forward", schedulePolicyName(policy))
                << reversed << static_cast<int>(policy);
    }
}

void TestExecutor::loops()
{
    // h' = relu(h w_i + b), the old h stacked; two carries that change places; an inner loop; columns and rows of w_i over 'model'.
    QFETCH(bool, reversed);
    QFETCH(int, policy);
    const Mesh mesh = meshOf("data=2,model=4");
    const TensorType state{DType::F32, {8, 16}};
    Function function;
    function.name = "f";
    Builder b(function);
    const ValueId h = b.argument(state, "h");
    const ValueId other = b.argument(state, "other");
    const ValueId weights = b.argument({DType::F32, {3, 16, 16}}, "w");
    const ValueId bias = b.argument({DType::F32, {16}}, "b");
    const OpId outer = b.beginRepeat({3, 3, 1, reversed}, {h, h, other, weights, bias});
    const std::vector<ValueId> a = function[b.block()].arguments;
    const OpId inner = b.beginRepeat({2, 1, 0, false}, {a[0], a[3], a[4]});
    const std::vector<ValueId> c = function[b.block()].arguments;
    const ValueId sum = b.binary(OpKind::Add, b.matmul(c[0], c[1], DType::F32), b.broadcast(c[2], state.shape, {1}));
    b.setResults({b.unary(OpKind::Tanh, sum)});
    const ValueId next = b.endRepeat(inner).front();
    b.setResults({next, a[2], a[1], a[0], b.unary(OpKind::Negate, next), a[1]});
    const std::vector<ValueId> results = b.endRepeat(outer);
    b.setResults(results);
    function[h].sharding = specOf("P('data', None)", 2, mesh);
    function[weights].sharding = specOf("P(None, 'model', None)", 3, mesh);

    Function plain = function;
    for (Value& value : plain.values)
        value.sharding.reset();
    const std::vector<HostArray> arguments = argumentsOf(plain, 51);
    const auto expected = evaluate(plain, arguments);
    QVERIFY2(expected, expected ? "" : describe(expected.error()).c_str());

    Program program;
    program.meshes = {{"mesh", mesh}};
    program.functions = {function};
    const PartitionedProgram partitioned = valueOf(propagateAndPartition(std::move(program)));
    const auto devices = devicesOf(8);
    const ScheduledProgram scheduled = schedule(partitioned.device, static_cast<SchedulePolicy>(policy));
    const auto loaded = LoadedFunction::load(*scheduled.stages[0].find("f"), scheduled.stages[0].meshes, *devices);
    QVERIFY2(loaded, loaded ? "" : describe(loaded.error()).c_str());
    for (int round = 0; round < 2; ++round) {
        writeAll(**loaded, arguments);
        const auto done = (*loaded)->run();
        QVERIFY2(done, done ? "" : describe(done.error()).c_str());
        for (std::size_t i = 0; i < expected->size(); ++i) {
            const std::string wrong = difference((*loaded)->readResult(i), (*expected)[i].values(), 1e-5);
            QVERIFY2(wrong.empty(), fmt::format("result {}: {}", i, wrong).c_str());
        }
    }
}

void TestExecutor::changesLayout()
{
    const auto devices = devicesOf(8);
    const Study before = studyOf(meshOf("data=8"), kFsdp, false);
    const Study after = studyOf(meshOf("data=4,model=2"), kMegatron, false);
    const auto source = load(before, "step", *devices);
    const auto target = load(after, "step", *devices);
    const std::vector<HostArray> arguments = argumentsOf(*before.program.find("step"), 61);
    writeAll(*source, arguments);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto moved = target->copyFromArgument(i, *source, i);
        QVERIFY2(moved, moved ? "" : describe(moved.error()).c_str());
        QVERIFY(target->readArgument(i) == arguments[i]);
        const std::string& name = source->function()[source->function().arguments()[i]].name;
        if (name == "layers.1.w") {
            // [16, 16] f32: from 2 rows a device to 8 rows on every second one. Device k holds rows 2k, 2k+1 and then needs 8 rows, starting at
            // 0 (k even) or 8 (k odd); 2 of them are its own when they are among those: k = 0, 2 (rows 0, 4) and k = 5, 7 (rows 10, 14).
            QCOMPARE(*moved, (4 * 6 + 4 * 8) * 16 * 4);
        }
        if (name == "layers.2.b")
            QCOMPARE(*moved, 0); // replicated before
    }
    // Same layout: nothing changes its device.
    const auto again = load(after, "step", *devices);
    for (std::size_t i = 0; i < arguments.size(); ++i)
        QCOMPARE(valueOf(again->copyFromArgument(i, *target, i)), 0);

    QVERIFY(source->run());
    for (const Donation& donation : source->function().donations) {
        QVERIFY(target->copyFromResult(donation.argument, *source, donation.result));
        QVERIFY(target->readArgument(donation.argument) == source->readResult(donation.result));
    }
    const auto wrong = target->copyFromArgument(0, *source, 1);
    QVERIFY(!wrong);
    QCOMPARE(wrong.error().front().id, std::string("MW1503"));
}

void TestExecutor::countsAndTimelines()
{
    const auto devices = devicesOf(8);
    const Study study = studyOf(meshOf("data=4,model=2"), kMegatron, false);
    const auto loaded = load(study, "step", *devices);
    writeAll(*loaded, argumentsOf(*study.program.find("step"), 71));
    QCOMPARE(loaded->measured().slices().size(), std::size_t{0});
    constexpr std::int64_t kRuns = 3;
    for (std::int64_t i = 0; i < kRuns; ++i)
        QVERIFY(loaded->run({.record = true}));

    // What was counted is what was predicted.
    const std::vector<CollectiveUse> predicted = collectivesOf(loaded->scheduled().device, study.scheduled.stages[0].mesh());
    QVERIFY(!predicted.empty());
    const std::vector<CountedCalls> counted = loaded->countedCalls();
    QCOMPARE(counted.size(), predicted.size());
    for (const CollectiveUse& use : predicted) {
        const auto found = std::find_if(counted.begin(), counted.end(), [&](const CountedCalls& c) { return c.op == use.op; });
        QVERIFY(found != counted.end());
        QCOMPARE(found->calls, use.count * kRuns);
        QCOMPARE(found->totalPayloadBytes, use.payloadBytes * use.count * kRuns);
    }

    for (const Timeline& timeline : {loaded->measured(), loaded->virtualTimeline()}) {
        QCOMPARE(timeline.rows().size(), std::size_t{16});
        QVERIFY(timeline.slices().size() >= 8 * loaded->scheduled().instructions.size() / 2);
        double last = 0.0;
        std::uint32_t row = 0;
        std::int64_t bytes = 0;
        for (const Slice& slice : timeline.slices()) {
            if (slice.row != row)
                last = 0.0;
            QVERIFY2(slice.startSeconds >= last - 1e-9, "slices of a row overlap");
            QVERIFY(slice.durationSeconds >= 0.0 && slice.cpuSeconds >= 0.0);
            row = slice.row;
            last = slice.startSeconds + slice.durationSeconds;
            bytes += slice.bytes;
        }
        std::int64_t expected = 0;
        for (const CollectiveUse& use : predicted)
            expected += use.payloadBytes * use.count * 8;
        QCOMPARE(bytes, expected);
        QVERIFY(timeline.endSeconds() > 0.0);

        // All devices do the same, so they need the same memory, and no more than was planned.
        std::map<std::int64_t, std::vector<std::int64_t>> used;
        for (const MemoryUse& point : timeline.memory()) {
            QVERIFY(point.seconds >= 0.0);
            if (timeline.clock() == Clock::Virtual) // others may make a device wait behind its last slice
                QVERIFY(point.seconds <= timeline.endSeconds() + 1e-9);
            used[point.device].push_back(point.bytes);
        }
        QCOMPARE(used.size(), std::size_t{8});
        for (const auto& [device, points] : used)
            QVERIFY(points == used.at(0));
        QVERIFY(used.at(0).size() > 5);
        QVERIFY(std::ranges::max(used.at(0)) <= loaded->scheduled().buffers.arenaBytes);
        QVERIFY(std::ranges::max(used.at(0)) > loaded->scheduled().buffers.arenaBytes / 2);
    }
    QCOMPARE(loaded->measured().clock(), Clock::Wall);
    QCOMPARE(loaded->virtualTimeline().clock(), Clock::Virtual);
}

void TestExecutor::fusedUpdatesKeepTheBits_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<Specs>("specs");
    QTest::addColumn<bool>("adam");
    QTest::addColumn<int>("fused");
    // Three weights and three biases; rows: all are replicated. Megatron: those of layers 0 and 2 are split over model, which is not the axis of
    // their sum; the product of layer 1 is summed over model and goes on to its bias and activation.
    QTest::newRow("momentum, data") << "data=8" << kData << false << 6;
    QTest::newRow("adam, data") << "data=8" << kData << true << 6;
    QTest::newRow("adam, uneven groups") << "data=2,model=4" << kData << true << 6;
    QTest::newRow("momentum, megatron") << "data=4,model=2" << kMegatron << false << 7;
    QTest::newRow("adam, megatron") << "data=2,model=2" << kMegatron << true << 7;
}

void TestExecutor::fusedUpdatesKeepTheBits()
{
    QFETCH(QString, mesh);
    QFETCH(Specs, specs);
    QFETCH(bool, adam);
    QFETCH(int, fused);
    std::vector<std::vector<HostArray>> results;
    for (const SchedulePolicy policy : {SchedulePolicy::Eager, SchedulePolicy::Host}) {
        const auto devices = devicesOf(meshOf(mesh.toStdString()).deviceCount());
        const Study study = studyOf(meshOf(mesh.toStdString()), specs, adam, policy);
        const auto loaded = load(study, "step", *devices);
        writeAll(*loaded, argumentsOf(*study.program.find("step"), 5));
        for (int step = 0; step < 3; ++step)
            QVERIFY(loaded->run());
        results.push_back(resultsOf(*loaded));
        for (std::size_t i = 0; i < results.back().size(); ++i)
            QVERIFY(loaded->replicasAgree(i));
        int updates = 0;
        for (const Instruction& instruction : loaded->scheduled().instructions) {
            const bool reducesWeights
                = !instruction.update.empty() && loaded->function()[instruction.writes.front()].type.shape.size() > 0;
            updates += reducesWeights ? 1 : 0;
        }
        QVERIFY2(updates >= (policy == SchedulePolicy::Host ? fused : 0), qPrintable(QString::number(updates)));
        QVERIFY(policy == SchedulePolicy::Host || updates == 0);
    }
    QCOMPARE(results[1].size(), results[0].size());
    for (std::size_t i = 0; i < results[0].size(); ++i)
        QVERIFY(results[0][i] == results[1][i]);
}

/// A gradient's sum is under way while the layer before it computes its own.
void TestExecutor::reductionsOverlapInVirtualTime()
{
    const auto devices = devicesOf(4);
    const Study study = studyOf(meshOf("data=4"), kData, false);
    const auto loaded = load(study, "step", *devices);
    writeAll(*loaded, argumentsOf(*study.program.find("step"), 5));
    QVERIFY(loaded->run({.record = true}));
    const Timeline timeline = loaded->virtualTimeline();
    int overlaps = 0;
    for (const Slice& reduction : timeline.slices()) {
        if (reduction.category != SliceCategory::AllReduce)
            continue;
        const std::int64_t device = timeline.rows()[reduction.row].device;
        for (const Slice& slice : timeline.slices()) {
            overlaps += slice.category == SliceCategory::Compute && timeline.rows()[slice.row].device == device
                && slice.startSeconds < reduction.startSeconds + reduction.durationSeconds
                && reduction.startSeconds < slice.startSeconds + slice.durationSeconds;
        }
    }
    QVERIFY(overlaps > 0);
}

/// Of the runs that are kept, one that took much longer does not show; of runs that are not kept there is none.
void TestExecutor::aTypicalRunOfSeveral()
{
    const auto devices = devicesOf(4);
    const Study study = studyOf(meshOf("data=4"), kData, false);
    const auto loaded = load(study, "step", *devices);
    writeAll(*loaded, argumentsOf(*study.program.find("step"), 5));
    QVERIFY(loaded->run({.record = true}));
    QVERIFY(loaded->typicalTimeline().slices().empty());
    for (int i = 0; i < 5; ++i)
        QVERIFY(loaded->run({.record = true, .keep = true}));
    const auto work = [](const Timeline& timeline) {
        return std::ranges::count_if(timeline.slices(), [](const Slice& slice) { return slice.category != SliceCategory::Wait; });
    };
    const Timeline typical = loaded->typicalTimeline();
    QCOMPARE(typical.clock(), Clock::Virtual);
    QCOMPARE(work(typical), work(loaded->virtualTimeline()));
    QVERIFY(typical.endSeconds() > 0.0);
    for (std::size_t i = 0; i < LoadedFunction::kTypicalRuns + 3; ++i) // more than are kept
        QVERIFY(loaded->run({.record = true, .keep = true}));
    QCOMPARE(work(loaded->typicalTimeline()), work(typical));
}

void TestExecutor::manyDevices()
{
    // 256 devices, one row of the batch each.
    const Mesh mesh = meshOf("data=256");
    Function function;
    function.name = "f";
    Builder b(function);
    const ValueId x = b.argument({DType::F32, {256, 40}}, "x");
    const ValueId w = b.argument({DType::F32, {40, 30}}, "w");
    const ValueId y = b.unary(OpKind::Tanh, b.matmul(x, w, DType::F32));
    b.setResults({b.reduce(ReduceKind::Sum, y, {0})});
    Function plain = function;
    function[x].sharding = specOf("P('data')", 2, mesh);
    Program program;
    program.meshes = {{"mesh", mesh}};
    program.functions = {function};
    const PartitionedProgram partitioned = valueOf(propagateAndPartition(std::move(program)));
    const ScheduledProgram scheduled = schedule(partitioned.device, SchedulePolicy::Host);
    const auto devices = devicesOf(256);
    const auto loaded = LoadedFunction::load(*scheduled.stages[0].find("f"), scheduled.stages[0].meshes, *devices);
    QVERIFY2(loaded, loaded ? "" : describe(loaded.error()).c_str());
    const std::vector<HostArray> arguments = argumentsOf(plain, 81);
    writeAll(**loaded, arguments);
    QVERIFY((*loaded)->run());
    const auto expected = evaluate(plain, arguments);
    QVERIFY(expected);
    QCOMPARE(difference((*loaded)->readResult(0), expected->front().values(), 1e-5), std::string());
}

void TestExecutor::deadOpsDoNothing()
{
    const Mesh mesh = meshOf("a=2");
    DeviceFunction device;
    Builder b(device.function);
    const ValueId x = b.argument({DType::F32, {4, 4}}, "x");
    b.matmul(x, x, DType::F32);
    CollectiveAttributes attributes;
    attributes.axes = {{0, 1, 2}};
    b.add(OpKind::AllReduce, {x}, attributes);
    b.unary(OpKind::Exp, x);
    b.setResults({b.unary(OpKind::Negate, x)});
    for (Value& value : device.function.values) {
        value.sharding = TensorSharding::replicatedOf(2);
        device.globalShapes.push_back(value.type.shape);
    }
    const auto devices = devicesOf(2);
    for (const SchedulePolicy policy : {SchedulePolicy::Host, SchedulePolicy::Eager}) {
        const auto loaded = LoadedFunction::load(schedule(device, policy), {{"mesh", mesh}}, *devices);
        QVERIFY2(loaded, loaded ? "" : describe(loaded.error()).c_str());
        writeAll(**loaded, {HostArray::filled({DType::F32, {4, 4}}, 2.0)});
        QVERIFY((*loaded)->run());
        QVERIFY((*loaded)->readResult(0) == HostArray::filled({DType::F32, {4, 4}}, -2.0));
    }
}

/// An argument is a result too, while another result takes its place: (a, b) -> a + b in a's place, a, b in c's place, c in b's, c.
void TestExecutor::argumentsAmongResults()
{
    const Mesh mesh = meshOf("x=2");
    const TensorType type{DType::F32, {4}};
    Program program;
    program.meshes = {{"mesh", mesh}};
    Function& main = program.functions.emplace_back();
    main.name = "main";
    Builder builder(main);
    const ValueId a = builder.argument(type, "a");
    const ValueId b = builder.argument(type, "b");
    const ValueId c = builder.argument(type, "c");
    builder.setResults({builder.binary(OpKind::Add, a, b), a, b, c, c});
    main.donations = {{0, 0}, {2, 2}, {1, 3}};
    for (const ValueId argument : {a, b, c})
        main[argument].sharding = specOf("P('x')", 1, mesh);
    const PartitionedProgram partitioned = valueOf(propagateAndPartition(std::move(program)));
    const auto devices = devicesOf(2);
    for (const SchedulePolicy policy : {SchedulePolicy::Host, SchedulePolicy::Eager}) {
        const ScheduledProgram scheduled = schedule(partitioned.device, policy);
        const auto loaded
            = LoadedFunction::load(*scheduled.stages.front().find("main"), scheduled.stages.front().meshes, *devices);
        QVERIFY2(loaded, loaded ? "" : describe(loaded.error()).c_str());
        writeAll(**loaded, {HostArray::filled(type, 1.0), HostArray::filled(type, 2.0), HostArray::filled(type, 4.0)});
        QVERIFY((*loaded)->run());
        const std::vector<double> expected = {3.0, 1.0, 2.0, 4.0, 4.0};
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY2((*loaded)->readResult(i) == HostArray::filled(type, expected[i]), qPrintable(QString::number(i)));
        QVERIFY((*loaded)->readArgument(0) == HostArray::filled(type, 3.0));
        QVERIFY((*loaded)->readArgument(1) == HostArray::filled(type, 4.0));
        QVERIFY((*loaded)->readArgument(2) == HostArray::filled(type, 2.0));
    }
}

void TestExecutor::reductionsOfPasses_data()
{
    QTest::addColumn<Shape>("shape");
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<ReduceKind>("kind");
    // A stretch has 65536 elements. One, one and one element, four whole ones, many and a rest.
    QTest::newRow("a stretch: left alone") << Shape{256, 256} << DType::F32 << ReduceKind::Sum;
    QTest::newRow("one more") << Shape{65537} << DType::F32 << ReduceKind::Sum;
    QTest::newRow("four") << Shape{512, 512} << DType::F32 << ReduceKind::Sum;
    QTest::newRow("seven and a rest") << Shape{700, 701} << DType::F32 << ReduceKind::Sum;
    QTest::newRow("in double") << Shape{300, 701} << DType::F64 << ReduceKind::Sum;
    QTest::newRow("largest") << Shape{300, 701} << DType::F32 << ReduceKind::Max;
    QTest::newRow("integers") << Shape{300, 701} << DType::S32 << ReduceKind::Sum;
    QTest::newRow("narrow: left alone") << Shape{300, 701} << DType::BF16 << ReduceKind::Sum;
}

/// What a pass makes for a reduction alone is reduced stretch by stretch, to the bits of the two after each other.
void TestExecutor::reductionsOfPasses()
{
    QFETCH(Shape, shape);
    QFETCH(DType, dtype);
    QFETCH(ReduceKind, kind);
    std::vector<std::size_t> all(shape.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    DeviceFunction device;
    Builder b(device.function);
    const ValueId x = b.argument({dtype, shape}, "x");
    const ValueId y = b.argument({dtype, shape}, "y");
    const ValueId alone = b.reduce(kind, b.binary(OpKind::Multiply, x, x), all);
    const ValueId kept = b.binary(OpKind::Subtract, x, y); // read by others too
    b.setResults({alone, b.reduce(kind, b.binary(OpKind::Multiply, x, y), all), b.reduce(kind, kept, all), kept});
    for (Value& value : device.function.values) {
        value.sharding = TensorSharding::replicatedOf(value.type.shape.size());
        device.globalShapes.push_back(value.type.shape);
    }
    const std::vector<HostArray> arguments = {randomArray({dtype, shape}, 1), randomArray({dtype, shape}, 2)};
    const auto expected = evaluate(device.function, arguments);
    QVERIFY2(expected, expected ? "" : describe(expected.error()).c_str());
    const auto devices = devicesOf(2);
    const auto loaded = LoadedFunction::load(schedule(device, SchedulePolicy::Host), {{"mesh", meshOf("a=2")}}, *devices);
    QVERIFY2(loaded, loaded ? "" : describe(loaded.error()).c_str());
    for (int round = 0; round < 2; ++round) {
        writeAll(**loaded, arguments);
        QVERIFY((*loaded)->run());
        for (std::size_t i = 0; i < expected->size(); ++i)
            QVERIFY2((*loaded)->readResult(i) == (*expected)[i], qPrintable(QString("result %1").arg(i)));
    }
}

/// What only a reduction reads is looked at like everything else, and is named.
void TestExecutor::numbersInReducedPasses()
{
    const TensorType type{DType::F32, {512, 512}};
    DeviceFunction device;
    Builder b(device.function);
    const ValueId x = b.argument(type, "x");
    b.setResults({b.reduce(ReduceKind::Min, b.binary(OpKind::Multiply, x, x), {0, 1})});
    for (Value& value : device.function.values) {
        value.sharding = TensorSharding::replicatedOf(value.type.shape.size());
        device.globalShapes.push_back(value.type.shape);
    }
    const auto devices = devicesOf(2);
    const auto loaded = LoadedFunction::load(schedule(device, SchedulePolicy::Host), {{"mesh", meshOf("a=2")}}, *devices);
    QVERIFY2(loaded, loaded ? "" : describe(loaded.error()).c_str());
    FaultOptions faults;
    faults.checkNumerics = true;
    std::vector<double> values(512 * 512, 1.0);
    for (const double large : {1.0, 1e30}) {
        values[700] = large;
        writeAll(**loaded, {HostArray::of(type, values)});
        const auto done = (*loaded)->run({.faults = &faults});
        QCOMPARE(done.has_value(), large != 1e30);
        if (!done) {
            QCOMPARE(done.error().front().id, std::string("MW1523"));
            QVERIFY2(done.error().front().message.find("multiply") != std::string::npos, done.error().front().message.c_str());
        }
    }
}

void TestExecutor::arguments()
{
    const auto devices = devicesOf(8);
    const Study study = studyOf(meshOf("data=8"), kData, false);
    const auto loaded = load(study, "loss", *devices);
    const auto done = loaded->writeArgument(0, HostArray::filled({DType::F32, {3, 3}}, 0.0));
    QVERIFY(!done);
    QCOMPARE(done.error().front().id, std::string("MW1503"));
    QCOMPARE(loaded->deviceCount(), 8);

    std::stop_source stopped;
    stopped.request_stop();
    writeAll(*loaded, argumentsOf(*study.program.find("loss"), 91));
    const auto interrupted = loaded->run({.record = false, .stop = stopped.get_token()});
    QVERIFY(!interrupted);
    QCOMPARE(interrupted.error().front().id, std::string("MW1507"));
    QVERIFY(loaded->run());
}

namespace {

/// x -> tanh(sum of x over the mesh), `rounds` times over, on two devices.
std::unique_ptr<LoadedFunction> loopOf(VirtualDevices& devices, std::int64_t rounds)
{
    DeviceFunction device;
    Builder b(device.function);
    const ValueId x = b.argument({DType::F32, {4}}, "x");
    const OpId loop = b.beginRepeat({rounds, 1, 0, false}, {x});
    CollectiveAttributes attributes;
    attributes.axes = {{0, 1, 2}};
    const ValueId carried = device.function[b.block()].arguments.front();
    b.setResults({b.unary(OpKind::Tanh, b.add(OpKind::AllReduce, {carried}, attributes))});
    b.setResults(b.endRepeat(loop));
    for (Value& value : device.function.values) {
        value.sharding = TensorSharding::replicatedOf(1);
        device.globalShapes.push_back(value.type.shape);
    }
    auto loaded = valueOf(LoadedFunction::load(schedule(device, SchedulePolicy::Host), {{"mesh", meshOf("a=2")}}, devices));
    writeAll(*loaded, {HostArray::filled({DType::F32, {4}}, 0.5)});
    return loaded;
}

} // namespace

/// A step that would take a day.
void TestExecutor::stopsInTheMiddle()
{
    const auto devices = devicesOf(2);
    const auto loaded = loopOf(*devices, std::int64_t{1} << 36);
    std::stop_source stop;
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20)); // in the middle, though any moment will do
        stop.request_stop();
    });
    const auto done = loaded->run({.record = false, .stop = stop.get_token()});
    stopper.join();
    QVERIFY(!done);
    QCOMPARE(done.error().front().id, std::string("MW1507"));
}

/// Counts and timelines are those of complete runs; a run that is stopped before it begins leaves even the arrays as they were.
void TestExecutor::stoppedRunCountsForNothing()
{
    const auto devices = devicesOf(8);
    const Study study = studyOf(meshOf("data=4,model=2"), kMegatron, true);
    const auto loaded = load(study, "step", *devices);
    writeAll(*loaded, argumentsOf(*study.program.find("step"), 71));
    QVERIFY(loaded->run({.record = true, .stop = std::stop_source().get_token()}));
    const std::vector<CountedCalls> counted = loaded->countedCalls();
    const std::size_t slices = loaded->measured().slices().size();
    const HostArray state = loaded->readArgument(0);
    std::stop_source stopped;
    stopped.request_stop();
    QVERIFY(!loaded->run({.record = true, .stop = stopped.get_token()}));
    QCOMPARE(loaded->countedCalls().front().calls, counted.front().calls);
    QCOMPARE(loaded->measured().slices().size(), slices);
    QCOMPARE(loaded->virtualTimeline().slices().size() > 0, true);
    QVERIFY(loaded->readArgument(0) == state);
}

MESHWRIGHT_TEST(TestExecutor)

} // namespace tst_executor

#include "tst_executor.moc"
