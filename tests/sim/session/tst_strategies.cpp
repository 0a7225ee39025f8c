// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/support/resources.h"
#include "sim/search/transformer_search.h"
#include "tests/test_class.h"

#include <fmt/format.h>

#include <numeric>

namespace tst_strategies {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

Study exampleStudy(const QString& name, const std::vector<std::string>& settings = {})
{
    auto study = loadStudy(resourcesDirectory() / "examples" / (name.toStdString() + ".yaml"), settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *std::move(study);
}

/// Calls and payload bytes of one device in one step.
struct Traffic {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;

    Traffic& operator+=(const Traffic& more)
    {
        calls += more.calls;
        bytes += more.bytes;
        return *this;
    }
};

/// By kind and axes: `all_reduce data: 6 calls, 104488 B`; loss and accuracy left out.
using TrafficByAxes = std::map<std::string, Traffic>;

bool isScalar(const CollectiveUse& use)
{
    return use.payloadBytes == 4;
}

QString textOf(const TrafficByAxes& traffic)
{
    QStringList lines;
    for (const auto& [what, amount] : traffic)
        lines << QStringLiteral("%1: %2 calls, %3 B").arg(what.c_str()).arg(amount.calls).arg(amount.bytes);
    lines.sort();
    return lines.join('\n');
}

/// Bytes of f32 arrays.
std::int64_t f32(std::initializer_list<std::int64_t> elements)
{
    return 4 * std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
}

QString line(const char* what, std::int64_t calls, std::int64_t bytes)
{
    return textOf({{what, {calls, bytes}}});
}

} // namespace

/// Strategies follow from specs: each example moves what the literature says, and moves it when it is run.
class TestStrategies : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void traffic_data();
    void traffic();
    void expertsExchangeTokens_data();
    void expertsExchangeTokens();
    void ranksOfTensorsSendTheirPart();
    void loopsThatOnlyComputeAreOne();
    void sequenceParallelSavesMemory_data();
    void sequenceParallelSavesMemory();
    void initialisedSharded_data();
    void initialisedSharded();
};

void TestStrategies::traffic_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QStringList>("expected");
    const auto row = [](const char* name, const char* example, const char* setting, QStringList lines) {
        lines.sort();
        QTest::newRow(name) << QString(example) << QString(setting) << lines;
    };

    // All-reduce of every gradient, once: the bytes of the parameters.
    const std::int64_t dp = f32({64 * 128, 128, 128 * 128, 128, 128 * 10, 10});
    row("data parallel", "data_parallel", "", {line("all_reduce data", 6, dp)});
    // .. and not more with microbatches.
    row("data parallel, accumulated", "data_parallel", "train.accumulate=4", {line("all_reduce data", 6, dp)});
    // Megatron (Shoeybi et al. 2019, figure 3): one all-reduce of activations each way for the pair; gradients of shards over data.
    row("tensor parallel", "tensor_parallel", "",
        {line("all_reduce model", 2, 2 * f32({24 * 128})),
            line("all_reduce data", 8, f32({64 * 128, 128, 128 * 64, 64, 64 * 128, 128, 128 * 10, 10}))});
    // .. the activations' for each microbatch.
    row("tensor parallel, accumulated", "tensor_parallel", "train.accumulate=4",
        {line("all_reduce model", 8, 2 * f32({24 * 128})),
            line("all_reduce data", 8, f32({64 * 128, 128, 128 * 64, 64, 64 * 128, 128, 128 * 10, 10}))});
    // ZeRO (Rajbhandari et al. 2020, section 7): stages 1 and 2 move what data parallelism moves, an all-reduce being a reduce-scatter
    // and an all-gather.
    const std::int64_t zero = f32({64 * 128, 128, 128 * 128, 128, 128 * 8, 8});
    row("ZeRO-1", "zero1", "", {line("reduce_scatter data", 6, zero), line("all_gather data", 6, zero)});
    row("ZeRO-2", "zero2", "", {line("reduce_scatter data", 6, zero), line("all_gather data", 6, zero)});
    row("ZeRO-1, accumulated", "zero1", "train.accumulate=4",
        {line("reduce_scatter data", 6, zero), line("all_gather data", 6, zero)});
    row("ZeRO-2, accumulated", "zero2", "train.accumulate=4;batch=4096",
        {line("reduce_scatter data", 24, 4 * zero), line("all_gather data", 6, zero)});
    // Stage 3: weights are gathered forward and backward (but for the first layer, whose input has no gradient): at most 1.5 times as much.
    row("fully sharded", "fsdp", "",
        {line("all_gather data", 5, 5 * f32({64 * 64})), line("reduce_scatter data", 3, 3 * f32({64 * 64})),
            line("all_reduce data", 3, 3 * f32({64}))});
    // HSDP: the same inside a group; across groups an all-reduce of the shards.
    row("hybrid", "hybrid_fsdp", "",
        {line("all_gather fsdp", 5, 5 * f32({64 * 64})), line("reduce_scatter fsdp", 3, 3 * f32({64 * 64})),
            line("all_reduce replica", 3, 3 * f32({64 * 64 / 4})), line("all_reduce replica,fsdp", 3, 3 * f32({64}))});
    // Weights over both axes: gathers over data of what lies over model, forward and (but for the first layer) backward; the pair.
    const std::int64_t shards = f32({64 * 64, 64 * 128, 128 * 16});
    row("two-dimensional", "two_d", "",
        {line("all_gather data", 5, 2 * shards - f32({64 * 64})), line("reduce_scatter data", 3, shards),
            line("all_reduce model", 1, f32({128 * 128})), line("all_reduce data", 3, f32({64, 128, 16}))});
    // Korthikanti et al. 2022, section 4.2: the pair's all-reduces become gathers and scatters; the gathered input is not kept, but gathered
    // once more for the gradient of its weight.
    row("sequence parallel", "sequence_parallel", "",
        {line("all_gather model", 3, 3 * f32({24 * 128})), line("reduce_scatter model", 2, 2 * f32({24 * 128})),
            line("all_reduce data", 3, f32({128 * 64, 64, 64 * 128})),
            line("all_reduce data,model", 5, f32({64 * 128, 128, 128, 128 * 10, 10}))});
    // The same for a transformer: each of two layers has two blocks, each block gathers its input and scatters its result, and gathers
    // both the gradient and its input again for the backward run. The norms' gradients, the head's and the embedding's come from parts of
    // sequences.
    const std::int64_t stream = f32({4 * 64 * 32});
    const std::int64_t heads = f32({32 * 2 * 8}); // of half the heads
    const std::int64_t wide = f32({32 * 32});
    row("sequence parallel transformer", "sequence_parallel_transformer", "batch=8",
        {line("all_gather model", 2 * 2 * 3, 2 * 2 * 3 * stream), line("reduce_scatter model", 2 * 2 * 2, 2 * 2 * 2 * stream),
            line("all_reduce data", 2 * 6, 2 * (4 * heads + 2 * wide)),
            line("all_reduce data,model", 2 * 2 + 3, f32({5 * 32, 2 * 32 * 32}))});
    // ZeRO-1 of layers that are a loop: what each turn reduces is scattered at once, to where the layer's states lie.
    const std::int64_t states = 2 * f32({4 * 32 * 32, 2 * 32 * 64, 2 * 32}); // of both layers
    row("ZeRO-1 of a transformer", "transformer_digits",
        "mesh={data: 4};sharding={x: P('data'), y: P('data'), opt.m.layers.*: \"P(None, 'data')\", opt.v.layers.*: \"P(None, "
        "'data')\", "
        "match: [{path: '*', spec: []}]}",
        {line("reduce_scatter data", 2 * 8, states), line("all_gather data", 8, states),
            line("all_reduce data", 4, f32({32 * 32, 64 * 32, 32, 32 * 32}))});
    // Liu et al. 2023, section 3: on n devices keys and values move n - 1 times forward and again backward, their gradients n times. Tokens and
    // labels (these for the loss and for accuracy) are put in zigzag order.
    const std::int64_t keys = f32({4 * 16 * 4 * 8}); // of a quarter of the sequence, or values
    const std::int64_t tokens = f32({4 * 64});
    const std::int64_t layer = f32({4 * 32 * 32, 3 * 32 * 64, 2 * 32});
    row("ring attention", "ring_attention", "batch=8",
        {line("collective_permute context", 2 * 2 * (3 + 3 + 4), 2 * 2 * (3 + 3 + 4) * keys),
            line("all_gather context", 3, 3 * tokens),
            line("all_reduce data,context", 2 * 9 + 3, 2 * layer + f32({2 * 32 * 32, 32}))});
    // Jacobs et al. 2023, section 3.1: queries, keys, values and the result change from parts of sequences to parts of heads or back, forward and
    // backward. What the derivative reads is kept as parts of sequences, and changes once more: queries, keys, values, the result, and the statistics.
    const std::int64_t changed = f32({4 * 16 * 4 * 8});
    const std::int64_t statistics = f32({4 * 16 * 4});
    row("exchanged heads", "ring_attention", "batch=8;model.transformer.attention={context: ulysses}",
        {line("all_to_all context", 2 * (4 + 4 + 4 + 2), 2 * ((4 + 4 + 4) * changed + 2 * statistics)),
            line("all_reduce data,context", 2 * 9 + 3, 2 * layer + f32({2 * 32 * 32, 32}))});
}

/// Predicted, and counted by the devices in two steps.
void TestStrategies::traffic()
{
    QFETCH(QString, example);
    QFETCH(QString, setting);
    QFETCH(QStringList, expected);
    std::vector<std::string> settings = {"train.steps=2"};
    for (const QString& one : setting.split(QLatin1Char(';'), Qt::SkipEmptyParts))
        settings.push_back(one.toStdString());
    const Study study = exampleStudy(example, settings);
    const auto result = trainStudy(study, {.verify = true}, {}, {});
    QVERIFY2(result, result ? "" : describe(result.error()).c_str());
    QVERIFY(result->verification->passed);
    TrafficByAxes predicted;
    TrafficByAxes counted;
    for (const CountedCollective& collective : result->phases.front().collectives) {
        const CollectiveUse& use = collective.use;
        QCOMPARE(collective.calls, 2 * use.count);
        QCOMPARE(collective.totalPayloadBytes, 2 * use.count * use.payloadBytes);
        if (isScalar(use))
            continue;
        const std::string key = fmt::format("{} {}", opName(use.kind), use.axes);
        predicted[key] += {use.count, use.count * use.payloadBytes};
        counted[key] += {collective.calls / 2, collective.totalPayloadBytes / 2};
    }
    QCOMPARE(textOf(predicted), expected.join('\n'));
    QCOMPARE(textOf(counted), textOf(predicted));
}

void TestStrategies::expertsExchangeTokens_data()
{
    QTest::addColumn<QString>("setting");
    QTest::newRow("one pass") << "";
    QTest::newRow("microbatches") << "pipeline={stages: 1, microbatches: 2}";
    QTest::newRow("with biases, every layer's own") << "model.transformer.ffn_bias=true";
}

/// Lepikhin et al. 2020 (arXiv:2006.16668, section 3.2): where rows and experts lie on one axis, what is sent and what comes back are exchanged, forward
/// and backward: four all-to-alls in each layer, of as many rows as there is room for. Nothing else is: weights of experts stay where they are, and
/// parts of a row send their tokens by themselves.
void TestStrategies::expertsExchangeTokens()
{
    QFETCH(QString, setting);
    const std::string text = R"yaml(meshwright: 1
mesh: {data: 2, expert: 2, context: 2}
model:
  transformer: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, ffn: 24, vocabulary: 32, gated: true, experts: 4,
                experts_per_token: 2, expert_ffn: 8, predict: every_token, dispatch_groups: 2, attention: {context: ring}}
sequence: 16
batch: 8
sharding:
  x: "P(('data', 'expert'), 'context')"
  y: "P(('data', 'expert'), 'context')"
  layers.experts: {up.w: "P(None, 'expert')", gate.w: "P(None, 'expert')", down.w: "P(None, 'expert')"}
  act.layers.experts: {sent: "P(('data', 'expert'), 'context')", returned: "P(('data', 'expert'), 'context')",
                       received: "P('expert', 'data', 'context')", made: "P('expert', 'data', 'context')"}
train: {steps: 2}
)yaml";
    std::vector<std::string> settings;
    if (!setting.isEmpty())
        settings.push_back(setting.toStdString());
    const auto study = readStudy(text, "study.yaml", settings);
    QVERIFY2(study, study ? "" : describe(study.error()).c_str());
    const auto result = trainStudy(*study, {.verify = true}, {}, {});
    QVERIFY2(result, result ? "" : describe(result.error()).c_str());
    QVERIFY(result->verification->passed);
    Traffic exchanged;
    for (const CountedCollective& collective : result->phases.front().collectives) {
        if (collective.use.kind == OpKind::AllToAll) {
            QCOMPARE(QString::fromStdString(collective.use.axes), QString("expert"));
            exchanged += {collective.calls / 2, collective.totalPayloadBytes / 2};
        }
        QVERIFY(collective.use.kind != OpKind::AllGather || collective.use.axes == "context"); // the labels' parts
    }
    const std::int64_t passes = std::max<std::int64_t>(1, study->pipeline.microbatches);
    const std::int64_t room = 4 * 4; // of 4 experts, each with its share of 2 * 16 / 2 tokens
    QCOMPARE(exchanged.calls, 2 * 4 * passes);
    QCOMPARE(exchanged.bytes, 2 * 4 * f32({2 * room * 16}));
}

/// Megatron-LM's dispatcher by all-to-alls, beside tensor and sequence parallelism: each rank exchanges its part of the sequence with the ranks of other
/// experts; those that share an expert gather what it takes, and scatter the sum of what they make. So too the gradients.
void TestStrategies::ranksOfTensorsSendTheirPart()
{
    TransformerConfig config;
    config.layers = 2;
    config.hidden = 16;
    config.heads = 4;
    config.keyValueHeads = 2;
    config.headDim = 4;
    config.ffn = 24;
    config.vocabulary = 32;
    config.gatedFfn = true;
    config.experts = 4;
    config.expertsPerToken = 2;
    config.expertFfn = 256; // wide enough that tokens move, and no weights
    Candidate candidate;
    candidate.dp = 4;
    candidate.ep = 2;
    candidate.tp = 2;
    candidate.sequenceParallel = true;
    std::string sharding;
    for (const auto& [array, spec] : specsOf(candidate, config))
        sharding += fmt::format("  {}: \"{}\"\n", array, spec);
    const auto study = readStudy(fmt::format(R"yaml(meshwright: 1
mesh: {{data: 2, expert: 2, tensor: 2}}
model:
  transformer: {{layers: 2, hidden: 16, heads: 4, kv_heads: 2, ffn: 24, vocabulary: 32, gated: true, experts: 4,
                experts_per_token: 2, expert_ffn: 256, predict: every_token, dispatch_groups: {}}}
sequence: 16
batch: 8
sharding:
{}train: {{steps: 2}}
)yaml",
                                     dispatchGroups(candidate.cp, candidate.tp, candidate.sequenceParallel), sharding),
        "study.yaml");
    QVERIFY2(study, study ? "" : describe(study.error()).c_str());
    const auto result = trainStudy(*study, {.verify = true}, {}, {});
    QVERIFY2(result, result ? "" : describe(result.error()).c_str());
    QVERIFY(result->verification->passed);
    TrafficByAxes ofTokens;
    for (const CountedCollective& collective : result->phases.front().collectives) {
        const std::string& value = collective.use.cause.value;
        if (value.find(".experts.") == std::string::npos && value.find("act.layers.ffn.hidden") == std::string::npos)
            continue;
        if (collective.use.phase != Phase::Update && value.find(".w") == std::string::npos)
            ofTokens[fmt::format("{} {}", opName(collective.use.kind), collective.use.axes)]
                += {collective.calls / 2, collective.totalPayloadBytes / 2};
    }
    const std::int64_t sent = f32({2 * 4 * 4 * 16}); // 2 rows, their share of 2 * 16 / 2 tokens for each of 4 experts
    const QStringList expected{
        line("all_to_all expert", 2 * 4, 2 * 4 * sent), // there and back, forward and backward
        line("all_gather tensor", 2 * 3,
            2 * 3 * 2 * sent), // what is taken, again for its weights' gradients; the gradients of what is made
        line("reduce_scatter tensor", 2 * 2, 2 * 2 * 2 * sent), // what is made; the gradients of what is taken
    };
    QStringList sorted = expected;
    sorted.sort();
    QCOMPARE(textOf(ofTokens), sorted.join('\n'));
}

/// The chunks of a recurrence: their ops stand once in the timeline, for as long as all of them take.
void TestStrategies::loopsThatOnlyComputeAreOne()
{
    const auto simulated = [](std::int64_t sequence) {
        const std::string text = fmt::format(R"yaml(meshwright: 1
hardware: {{chip: nvidia-h100-sxm-80gb, hosts: 1, per_host: 2}}
mesh: {{data: 2}}
model: {{transformer: {{layers: 6, hidden: 256, heads: 4, ffn: 512, vocabulary: 64, pattern: [0],
  kinds: [{{mixer: state_space, state_heads: 4, state_key_heads: 4, state_key_dim: 64, state_value_dim: 64}}]}}}}
sequence: {}
batch: 8
sharding: {{x: P('data'), y: P('data')}}
)yaml",
            sequence);
        return valueOf(simulateStudy(valueOf(readStudy(text, "study.yaml")), valueOf(defaultCatalogue()), {.timeline = true}))
            .simulation;
    };
    const Simulation shorter = simulated(1024);
    const Simulation longer = simulated(4096);
    const auto turns = [](const Simulation& simulation, const char* words) {
        double seconds = 0.0;
        for (const Slice& slice : simulation.timeline.slices())
            seconds += simulation.timeline.text(slice.detail).starts_with(words) ? slice.durationSeconds : 0.0;
        return seconds;
    };
    const auto written = [](const Simulation& simulation) { // how long collectives are waited for differs
        const std::vector<Slice>& slices = simulation.timeline.slices();
        return std::count_if(slices.begin(), slices.end(),
            [&](const Slice& slice) { return !simulation.timeline.text(slice.name).starts_with("wait for "); });
    };
    QCOMPARE(written(longer), written(shorter));
    QVERIFY(turns(shorter, "16 turns of ") > 0.0);
    QVERIFY(std::abs(turns(longer, "64 turns of ") / turns(shorter, "16 turns of ") - 4.0) < 1e-3);
}

void TestStrategies::sequenceParallelSavesMemory_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QStringList>("tensorParallel");
    QTest::newRow("MLP") << "sequence_parallel"
                         << QStringList{"sharding.x=P('data')", "sharding.y=P('data')", "sharding.layers.2.out=P('data')"};
    QStringList stream;
    for (const char* name : {"embedding", "layers", "layers.attention", "layers.ffn"})
        stream << QStringLiteral("sharding.act.%1=P('data')").arg(name);
    QTest::newRow("transformer") << "sequence_parallel_transformer" << stream;
}

/// Between the blocks a device holds half the rows, or half of each.
void TestStrategies::sequenceParallelSavesMemory()
{
    QFETCH(QString, example);
    QFETCH(QStringList, tensorParallel);
    const auto peak = [&](const QStringList& list) {
        std::vector<std::string> settings = {"batch=960"};
        for (const QString& setting : list)
            settings.push_back(setting.toStdString());
        const auto built = buildPhase(exampleStudy(example, settings));
        return schedule(built->partitioned.device, SchedulePolicy::Host).stages.front().find("step")->buffers.arenaBytes;
    };
    QVERIFY(peak({}) < peak(tensorParallel));
}

void TestStrategies::initialisedSharded_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QString>("init");
    for (const char* example : {"fsdp", "zero1", "zero2", "two_d", "tensor_parallel", "hybrid_fsdp", "three_d"}) {
        for (const char* init : {"{w: lecun_normal, b: normal}", "{w: normal/sqrt(fan_in), b: normal, random: legacy}"})
            QTest::addRow("%s, %s", example, init) << QString(example) << QString(init);
    }
}

/// No device ever holds an array that its spec splits, not even while it is drawn; and the numbers are those of one device.
void TestStrategies::initialisedSharded()
{
    QFETCH(QString, example);
    QFETCH(QString, init);
    const Study study = exampleStudy(example, {"train.steps=0", "init=" + init.toStdString()});
    const auto built = buildPhase(study);
    QVERIFY2(built, built ? "" : describe(built.error()).c_str());
    const DeviceStage& stage = built->partitioned.device.stages.front();
    const DeviceFunction& device = *stage.find("init");
    QVERIFY(collectivesOf(device, stage.mesh()).empty());
    const ScheduledProgram scheduled = schedule(built->partitioned.device, SchedulePolicy::Host);
    const ScheduledFunction& plan = *scheduled.stages.front().find("init");

    std::int64_t held = 0; // what "init" gives each device
    std::int64_t largest = 0;
    std::int64_t whole = 0;
    for (const ValueId result : device.function.results()) {
        const Value& value = device.function[result];
        held += byteSize(value.type.dtype) * value.type.elements();
        largest = std::max(largest, byteSize(value.type.dtype) * value.type.elements());
        std::int64_t elements = 1;
        for (const std::int64_t size : device.globalShapes[result.at()])
            elements *= size;
        whole += byteSize(value.type.dtype) * elements;
    }
    for (const Value& value : device.function.values)
        QVERIFY2(byteSize(value.type.dtype) * value.type.elements() <= largest, value.name.c_str());
    QVERIFY(held < whole);
    // The high-water mark: the results, the keys, and no more than three pieces of the largest at work (bits, a number, its bounds).
    QVERIFY2(plan.buffers.arenaBytes <= held + 3 * largest + 4096,
        qPrintable(QString("%1 bytes for %2").arg(plan.buffers.arenaBytes).arg(held)));

    const auto sharded = trainStudy(study, {.keepParameters = true}, {}, {});
    const auto alone = trainStudy(unshardedStudy(study), {.keepParameters = true}, {}, {});
    QVERIFY2(sharded && alone, sharded ? "" : describe(sharded.error()).c_str());
    QCOMPARE(sharded->initArenaBytes, plan.buffers.arenaBytes);
    QVERIFY(sharded->parameters == alone->parameters); // to the bit
}

MESHWRIGHT_TEST(TestStrategies)

} // namespace tst_strategies

#include "tst_strategies.moc"
