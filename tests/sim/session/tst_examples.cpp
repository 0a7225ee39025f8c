// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/text/program_text.h"
#include "tests/test_class.h"

namespace tst_examples {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

Study exampleStudy(const QString& name)
{
    return valueOf(loadStudy(resourcesDirectory() / "examples" / (name.toStdString() + ".yaml")));
}

bool isScalar(const CollectiveUse& use)
{
    return use.phase == Phase::Metrics || use.cause.value.starts_with("loss");
}

/// What a phase's step moves, scalars of loss and metrics left out: `all_reduce data backward grad.layers.0.w`.
QStringList collectivesOfPhase(const Study& study, std::size_t phase)
{
    const auto built = buildPhase(study, phase);
    if (!built)
        return {QString::fromStdString(describe(built.error()))};
    const DeviceStage& stage = built->partitioned.device.stages.front();
    QStringList lines;
    for (const DeviceFunction& function : stage.functions) { // no op of an example is computed whole
        for (const Problem& warning : function.warnings)
            lines << QString::fromStdString(describe(warning));
    }
    for (const CollectiveUse& use : collectivesOf(*stage.find(built->mainFunction), stage.mesh())) {
        if (!isScalar(use))
            lines << QString::fromStdString(
                fmt::format("{} {} {} {}", opName(use.kind), use.axes, phaseName(use.phase), use.cause.value));
    }
    return lines;
}

/// One line for each gradient of layers 0 .. layers - 1, weights and biases.
QStringList forGradients(const QString& what, int layers, bool weights = true, bool biases = true)
{
    QStringList lines;
    for (int i = 0; i < layers; ++i) {
        if (weights)
            lines << QStringLiteral("%1 backward grad.layers.%2.w").arg(what).arg(i);
        if (biases)
            lines << QStringLiteral("%1 backward grad.layers.%2.b").arg(what).arg(i);
    }
    return lines;
}

const QStringList kPair
    = {"all_reduce model forward act.layers.2.product", "all_reduce model backward grad.act.layers.0.activated"};

} // namespace

class TestExamples : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void collectives_data();
    void collectives();
    void smallBatchShardsTheContraction();
    void trainsAsOneDevice_data();
    void trainsAsOneDevice();
    void transformerTrainsAsOneDevice_data();
    void transformerTrainsAsOneDevice();
    void fullyShardedHoldsAnEighth();
    void phasesKeepTheLoss();
    void countedEqualsPredicted_data();
    void countedEqualsPredicted();
    void digitsAreLearnt();
    void widthFlipsTheBound();
    void programLayoutsFollow_data();
    void programLayoutsFollow();
    void programsRunAsOneDevice_data();
    void programsRunAsOneDevice();
};

void TestExamples::collectives_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<int>("phase");
    QTest::addColumn<QStringList>("expected");

    QTest::newRow("data parallel: one all-reduce for each gradient")
        << "data_parallel" << 0 << forGradients("all_reduce data", 3);
    QTest::newRow("tensor parallel: one all-reduce each way for the pair")
        << "tensor_parallel" << 0 << kPair + forGradients("all_reduce data", 4);
    QTest::newRow("FSDP: L gathers forward, L - 1 backward, reduce-scatters")
        << "fsdp" << 0
        << QStringList{"all_gather data forward layers.0.w", "all_gather data forward layers.1.w",
               "all_gather data forward layers.2.w", "all_gather data backward layers.1.w", "all_gather data backward layers.2.w"}
            + forGradients("reduce_scatter data", 3, true, false) + forGradients("all_reduce data", 3, false, true);
    QStringList zero = forGradients("reduce_scatter data", 3);
    for (int i = 0; i < 3; ++i)
        zero << QStringLiteral("all_gather data update new.layers.%1.w").arg(i)
             << QStringLiteral("all_gather data update new.layers.%1.b").arg(i);
    QTest::newRow("ZeRO-1: gradients scattered, parameters gathered") << "zero1" << 0 << zero;
    QTest::newRow("2-D: the pair, gathers over data, gradients scattered over data")
        << "two_d" << 0
        << QStringList{"all_gather data forward layers.0.w", "all_gather data forward layers.1.w",
               "all_reduce model forward act.layers.1.product", "all_gather data forward layers.2.w",
               "all_gather data backward layers.2.w", "all_gather data backward layers.1.w"}
            + forGradients("reduce_scatter data", 3, true, false) + forGradients("all_reduce data", 3, false, true);
    QTest::newRow("replicated: none") << "replicated" << 0 << QStringList{};
    QTest::newRow("3-D: the pair, and one layer split over the third axis") << "three_d" << 0
                                                                            << kPair
            + QStringList{"all_gather pipeline forward layers.0.w", "reduce_scatter pipeline backward grad.layers.0.w",
                "all_reduce data backward grad.layers.0.w", "all_reduce data,pipeline backward grad.layers.0.b",
                "all_reduce data,pipeline backward grad.layers.1.w", "all_reduce data,pipeline backward grad.layers.1.b",
                "all_reduce data,pipeline backward grad.layers.2.w", "all_reduce data,pipeline backward grad.layers.2.b",
                "all_reduce data,pipeline backward grad.layers.3.w", "all_reduce data,pipeline backward grad.layers.3.b"};
    QTest::newRow("phases, first: data parallel") << "phases" << 0 << forGradients("all_reduce data", 4);
    QTest::newRow("phases, second: the pair") << "phases" << 1 << kPair + forGradients("all_reduce data", 4);
    QTest::newRow("digits") << "digits" << 0 << kPair + forGradients("all_reduce data", 3);
}

void TestExamples::collectives()
{
    QFETCH(QString, example);
    QFETCH(int, phase);
    QFETCH(QStringList, expected);
    QStringList actual = collectivesOfPhase(exampleStudy(example), static_cast<std::size_t>(phase));
    actual.sort();
    expected.sort();
    QCOMPARE(actual.join("\n"), expected.join("\n"));
}

/// Below the threshold no weight is gathered: partial sums of activations are scattered, and each cause says why.
void TestExamples::smallBatchShardsTheContraction()
{
    const auto built = buildPhase(exampleStudy("fsdp_small_batch"));
    QVERIFY(built);
    const DeviceStage& stage = built->partitioned.device.stages.front();
    int scattered = 0;
    for (const CollectiveUse& use : collectivesOf(*stage.find("step"), stage.mesh())) {
        QVERIFY2(!use.cause.value.starts_with("layers."), use.cause.value.c_str());
        scattered += use.kind == OpKind::ReduceScatter && use.phase == Phase::Forward ? 1 : 0;
        if (use.kind == OpKind::AllToAll && use.cause.value == "x" && use.phase == Phase::Forward)
            QVERIFY2(
                use.cause.reason.find("layers.0.w keeps its sharding (65.5 k elements), x and act.layers.0.product move (4.10 k)")
                    != std::string::npos,
                use.cause.reason.c_str());
    }
    QCOMPARE(scattered, 3);
}

void TestExamples::trainsAsOneDevice_data()
{
    QTest::addColumn<QString>("example");
    for (const char* name : {"data_parallel", "tensor_parallel", "fsdp", "fsdp_small_batch", "zero1", "two_d", "replicated",
             "three_d", "pipeline_gpipe", "pipeline_1f1b", "pipeline_interleaved"})
        QTest::newRow(name) << QString(name);
}

void TestExamples::trainsAsOneDevice()
{
    QFETCH(QString, example);
    const Study study = exampleStudy(example);
    const auto sharded = trainStudy(study, {.verify = true}, {}, {});
    QVERIFY2(sharded, sharded ? "" : describe(sharded.error()).c_str());
    QVERIFY(sharded->verification->passed);
    QCOMPARE(sharded->losses.size(), static_cast<std::size_t>(study.train.steps + 1));
    QVERIFY(sharded->losses.back() < sharded->losses.front());

    const auto alone = trainStudy(unshardedStudy(study), {}, {}, {});
    QVERIFY2(alone, alone ? "" : describe(alone.error()).c_str());
    for (std::size_t i = 0; i < sharded->losses.size(); ++i) {
        const double difference = std::abs(sharded->losses[i] - alone->losses[i]);
        QVERIFY2(difference <= 1e-5 * std::abs(alone->losses[i]),
            qPrintable(QString("step %1: %2 and %3").arg(i).arg(sharded->losses[i]).arg(alone->losses[i])));
    }
}

void TestExamples::transformerTrainsAsOneDevice_data()
{
    QTest::addColumn<QString>("settings");
    const char* small = "batch=8;train.steps=4;model.transformer.hidden=16;model.transformer.ffn=32;";
    const auto row = [&](const char* name, const char* settings) { QTest::newRow(name) << QString(small) + settings; };
    row("data and tensor parallel", "");
    row("data parallel", "sharding={x: [data], y: [data]};mesh={data: 4}");
    row("tensor parallel", "mesh={data: 1, model: 2}");
    row("fully sharded",
        "sharding={x: [data], y: [data], match: [{path: '*', min_elements: 65, divisible: largest_dim, spec: "
        "[data]}]};mesh={data: 4}");
    row("sequence parallel", "sharding={x: [data], y: [data], act.layers: [data, model], layers.ffn.up.w: [null, null, model]}");
    row("vocabulary parallel",
        "sharding={x: [data], y: [data], head.w: [null, model], embedding.w: [model]};model.transformer.lookup=one_hot");
    row("accumulated", "train.accumulate=2");
    row("accumulated, clipped AdamW, recomputed",
        "train.accumulate=4;optimizer={adamw: {clip_norm: 0.5, schedule: cosine, warmup_steps: 2}};mesh={data: 2};"
        "sharding={x: [data], y: [data]};recompute=full");
    row("dropout", "dropout=0.2");
    row("dropout, accumulated, recomputed, sequence parallel",
        "dropout=0.2;train.accumulate=2;recompute=full;sharding={x: [data], y: [data], act.layers: [data, model]}");
    row("every token, recomputed", "model.transformer.predict=every_token;sharding.y=[data];recompute=full");
    row("plain attention", "model.transformer.attention=plain");
    row("queries split along the sequence", "sharding={x: [data], y: [data], act.layers.attention.q: [data, model]}");
    row("heads of one key and value split",
        "model.transformer={layers: 2, hidden: 16, heads: 4, kv_heads: 1, ffn: 32, vocabulary: 32, predict: last_token, window: "
        "5, "
        "window_layers: 1, attention_softcap: 4.0};sharding={x: [data], y: [data], act.layers.attention.q: [data, null, model]}");
    row("a loss in chunks, vocabulary split",
        "model.transformer.predict=every_token;model.transformer.loss={cross_entropy: {chunks: 4}};sharding={x: [data], y: "
        "[data], head.w: [null, model]}");
    row("a loss in chunks, sequence and accumulated batches split",
        "model.transformer.predict=every_token;model.transformer.loss={cross_entropy: {chunks: 8}};train.accumulate=2;"
        "sharding={x: [data], y: [data], act.layers: [data, model]}");
    row("kept by name", "recompute={keep: [attention.mixed, ffn.hidden]}");
    row("unrolled, grouped queries, rotary",
        "model.transformer={layers: 2, hidden: 16, heads: 4, kv_heads: 2, ffn: 32, gated: true, vocabulary: 32, unroll: true, "
        "predict: last_token};"
        "sharding={x: [data], y: [data], layers.*.attention.q.w: [null, model], layers.*.attention.k.w: [null, "
        "model]};recompute=selective");
    const QString latent
        = QStringLiteral("model.transformer={layers: 2, hidden: 16, heads: 4, ffn: 32, gated: true, vocabulary: 32, "
                         "query_rank: 8, kv_rank: 6, latent_rotary_dim: 2, value_head_dim: 3, predict: last_token};");
    row("latent attention, tensor parallel", qPrintable(latent + "mesh={data: 1, model: 4}"));
    row("latent attention, fully sharded, recomputed",
        qPrintable(latent
            + "mesh={data: 4};recompute=full;sharding={x: [data], y: [data], match: [{path: '*', min_elements: 65, divisible: "
              "largest_dim, spec: [data]}]}"));
    const auto pipeline = [&](const char* name, const char* axes, const char* shape, const char* settings = "") {
        QTest::addRow("pipeline, %s", name) << QString(small)
                + QStringLiteral(
                    "model.transformer={layers: 4, hidden: 16, heads: 4, ffn: 32, vocabulary: 32, position: learned, "
                    "predict: last_token, unroll: true};mesh=%1;pipeline={axis: pipe, stages: 2, %2};%3")
                      .arg(axes, shape, settings);
    };
    const char* whole = "sharding={}";
    const char* split = "sharding={x: [data], y: [data]}";
    const char* megatron = "sharding={layers.*.attention.q.w: [null, model], layers.*.attention.k.w: [null, model], "
                           "layers.*.attention.v.w: [null, model], layers.*.attention.o.w: [model], layers.*.ffn.up.w: [null, "
                           "model], layers.*.ffn.down.w: [model]}";
    pipeline("GPipe", "{pipe: 2}", "microbatches: 4, schedule: gpipe", whole);
    pipeline("1F1B", "{pipe: 2}", "microbatches: 4, schedule: 1f1b", whole);
    pipeline("interleaved", "{pipe: 2}", "microbatches: 4, schedule: interleaved, chunks: 2", whole);
    pipeline("data", "{pipe: 2, data: 2}", "microbatches: 4, schedule: 1f1b", split);
    pipeline("model", "{model: 2, pipe: 2}", "microbatches: 2, schedule: gpipe, layers: [1, 3]", megatron);
    pipeline("clipped AdamW, every token", "{pipe: 2, data: 2}", "microbatches: 2, schedule: interleaved, chunks: 2",
        "sharding={x: [data], y: [data]};model.transformer.predict=every_token;optimizer={adamw: {clip_norm: 0.3}};"
        "model.transformer.position=rotary");
    // Plain steps: Adam turns rounding noise where a gradient is zero (of experts that no token takes) into steps of its own.
    row("experts",
        "optimizer={sgd: {learning_rate: 0.1}};model.transformer={layers: 2, hidden: 16, heads: 2, vocabulary: 32, experts: 4, "
        "experts_per_token: 2, expert_ffn: 16, "
        "predict: last_token};"
        "sharding={x: [data], y: [data], layers.experts.up.w: [null, model], layers.experts.down.w: [null, model]}");
}

// Every layout gives the losses of one device.
void TestExamples::transformerTrainsAsOneDevice()
{
    QFETCH(QString, settings);
    std::vector<std::string> list;
    for (const QString& setting : settings.split(QLatin1Char(';'), Qt::SkipEmptyParts))
        list.push_back(setting.toStdString());
    const auto study = loadStudy(resourcesDirectory() / "examples" / "transformer_digits.yaml", list);
    QVERIFY2(study, study ? "" : describe(study.error()).c_str());
    const auto sharded = trainStudy(*study, {.verify = true}, {}, {});
    QVERIFY2(sharded, sharded ? "" : describe(sharded.error()).c_str());
    for (const VerifiedTensor& tensor : sharded->verification->tensors)
        QVERIFY2(tensor.passed,
            qPrintable(QString("%1: %2, allowed %3")
                           .arg(QString::fromStdString(tensor.name))
                           .arg(tensor.shardedError)
                           .arg(tensor.tolerance)));
    const auto alone = trainStudy(unshardedStudy(*study), {}, {}, {});
    QVERIFY2(alone, alone ? "" : describe(alone.error()).c_str());
    QCOMPARE(sharded->losses.size(), std::size_t{5});
    for (std::size_t i = 0; i < sharded->losses.size(); ++i)
        QVERIFY(std::abs(sharded->losses[i] - alone->losses[i]) <= 1e-4 * std::abs(alone->losses[i]));
}

void TestExamples::phasesKeepTheLoss()
{
    const Study study = exampleStudy("phases");
    const auto changed = trainStudy(study, {.verify = true}, {}, {});
    QVERIFY2(changed, changed ? "" : describe(changed.error()).c_str());
    QVERIFY(changed->verification->passed);
    QCOMPARE(changed->phases.size(), std::size_t{2});
    QVERIFY(changed->phases[1].movedBytes == 0); // every device already holds what its shards need: it was replicated before
    const auto alone = trainStudy(unshardedStudy(study), {}, {}, {});
    QVERIFY(alone);
    QCOMPARE(changed->losses.size(), alone->losses.size());
    for (std::size_t i = 0; i < alone->losses.size(); ++i)
        QVERIFY(std::abs(changed->losses[i] - alone->losses[i]) <= 1e-5 * std::abs(alone->losses[i]));
}

/// The model of 400 MB at an eighth of its width: a device holds an eighth of the weights and of their gradients, and of whole layers only those
/// that are gathered or reduced just now, as planned for hardware and as run.
void TestExamples::fullyShardedHoldsAnEighth()
{
    constexpr std::int64_t kWidth = 256;
    constexpr std::int64_t kLayers = 24;
    constexpr std::int64_t kBatch = 512;
    const std::string layers
        = fmt::format("model.mlp.layers=[{}]", fmt::join(std::vector<std::int64_t>(kLayers + 1, kWidth), ", "));
    const Study study = valueOf(loadStudy(resourcesDirectory() / "examples/fsdp_400mb.yaml",
        std::vector<std::string>{layers, fmt::format("batch={}", kBatch), "train.steps=2"}));
    const std::int64_t layer = 4 * kWidth * kWidth;
    const std::int64_t states = kLayers * layer / 8;
    const std::int64_t activations = 4 * kBatch / 8 * kWidth * (kLayers + 6);

    const auto simulated = simulateStudy(study, valueOf(defaultCatalogue()));
    QVERIFY2(simulated, simulated ? "" : describe(simulated.error()).c_str());
    std::int64_t parameters = 0;
    for (const MemoryPoint& point : simulated->simulation.memory)
        parameters = std::max(parameters, point.bytesByKind[static_cast<std::size_t>(MemoryKind::Parameter)]);
    QCOMPARE(parameters, states);
    const std::int64_t most = 2 * states + activations + 6 * layer;
    QVERIFY2(
        simulated->simulation.peakBytes <= most, qPrintable(QString("%1 of %2").arg(simulated->simulation.peakBytes).arg(most)));

    const auto trained = trainStudy(study, {}, {}, {});
    QVERIFY2(trained, trained ? "" : describe(trained.error()).c_str());
    QVERIFY(trained->losses.back() < trained->losses.front());
    QVERIFY2(trained->stepArenaBytes >= states && trained->stepArenaBytes <= most,
        qPrintable(QString("%1 of %2").arg(trained->stepArenaBytes).arg(most)));
}

/// Every example that trains; large ones with narrower layers.
void TestExamples::countedEqualsPredicted_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QString>("settings");
    const QString narrow = "model.mlp.layers=[784, 64, 64, 64, 10];batch=64";
    const QMap<QString, QString> smaller = {{"jax_notebook", narrow}, {"notebook_mlp", narrow}, {"wide_mlp", narrow},
        {"transformer_digits", "batch=12"}, {"pipeline_transformer", "batch=12"}, {"sequence_parallel_transformer", "batch=12"},
        {"jax_gradient", narrow}, {"fsdp_400mb", "model.mlp.layers=[64, 64, 64, 64];batch=64"}};
    const QStringList onlySimulated = {"jax_product", "llama3_405b_h100", "transformer_64"};
    const QDir folder(QString::fromStdString((resourcesDirectory() / "examples").string()));
    for (const QString& file : folder.entryList({"*.yaml"}, QDir::Files, QDir::Name)) {
        const QString name = QFileInfo(file).completeBaseName();
        if (!onlySimulated.contains(name))
            QTest::newRow(qPrintable(name)) << name << smaller.value(name);
    }
}

/// Payload and calls of every collective, counted while training, are exactly the predicted ones: each for itself, and what `meshwright
/// propagate` and `simulate` say, summed up by axes.
void TestExamples::countedEqualsPredicted()
{
    constexpr std::int64_t kSteps = 2;
    QFETCH(QString, example);
    QFETCH(QString, settings);
    std::vector<std::string> list = {"train.steps=2"};
    for (const QString& setting : settings.split(QLatin1Char(';'), Qt::SkipEmptyParts))
        list.push_back(setting.toStdString());
    auto study = loadStudy(resourcesDirectory() / "examples" / (example.toStdString() + ".yaml"), list);
    QVERIFY2(study, study ? "" : describe(study.error()).c_str());
    for (StudyPhase& phase : study->phases)
        phase.steps = kSteps;
    const auto trained = trainStudy(*study, {}, {}, {});
    QVERIFY2(trained, trained ? "" : describe(trained.error()).c_str());
    using Amounts = std::map<std::string, std::pair<std::int64_t, std::int64_t>>; // calls and bytes by axes
    for (std::size_t phase = 0; phase < trained->phases.size(); ++phase) {
        Amounts counted;
        for (const CountedCollective& collective : trained->phases[phase].collectives) {
            QCOMPARE(collective.calls, kSteps * collective.use.count);
            QCOMPARE(collective.totalPayloadBytes, kSteps * collective.use.count * collective.use.payloadBytes);
            counted[collective.use.axes].first += collective.calls / kSteps;
            counted[collective.use.axes].second += collective.totalPayloadBytes / kSteps;
        }
        if (study->pipeline.stages > 1)
            continue; // what its pieces need is predicted piece by piece
        const auto built = buildPhase(*study, phase);
        QVERIFY(built);
        const DeviceStage& stage = built->partitioned.device.stages.front();
        Amounts predicted;
        for (const CollectiveUse& use : collectivesOf(*stage.find("step"), stage.mesh())) {
            predicted[use.axes].first += use.count;
            predicted[use.axes].second += use.count * use.payloadBytes;
        }
        QVERIFY(counted == predicted);
    }
}

void TestExamples::digitsAreLearnt()
{
    const auto trained = trainStudy(exampleStudy("digits"), {.verify = true}, {}, {});
    QVERIFY2(trained, trained ? "" : describe(trained.error()).c_str());
    QVERIFY(trained->verification->passed);
    QVERIFY2(trained->heldOutAccuracy.value_or(0.0) > 0.95, qPrintable(QString::number(trained->heldOutAccuracy.value_or(0.0))));
}

/// The small network waits for its collectives; at width 8192 computing takes longer.
void TestExamples::widthFlipsTheBound()
{
    const Catalogue catalogue = valueOf(defaultCatalogue());
    const auto narrow = simulateStudy(exampleStudy("digits"), catalogue);
    const auto wide = simulateStudy(exampleStudy("wide_mlp"), catalogue);
    QVERIFY2(narrow && wide, narrow ? "" : describe(narrow.error()).c_str());
    QVERIFY(narrow->simulation.exposedSeconds > narrow->simulation.computeSeconds);
    QVERIFY(wide->simulation.exposedSeconds < wide->simulation.computeSeconds);
    QCOMPARE(QString::fromStdString(wide->simulation.boundBy.text()), QString("compute"));
    QVERIFY(wide->simulation.fits);
    QVERIFY(wide->simulation.mfu > 0.0 && wide->simulation.mfu < 1.0);
}

void TestExamples::programLayoutsFollow_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QStringList>("layouts");
    QTest::addColumn<QStringList>("collectives");

    QTest::newRow("element-wise") << "elementwise.mlir"
                                  << "a=4,b=2" << QStringList{"P('a', 'b')"} << QStringList{};
    QTest::newRow("copy") << "copy.mlir"
                          << "a=4,b=2" << QStringList{"P('b', 'a')"} << QStringList{};
    QTest::newRow("P('a', None) by P(None, 'b')") << "matmul.mlir"
                                                  << "a=4,b=2" << QStringList{"P('a', 'b')"} << QStringList{};
    QTest::newRow("constraints inside a program: 4 x 2 to 2 x 4, and to replicated")
        << "constraint.mlir"
        << "a=2,b=2,c=2" << QStringList{"P('a', ('b', 'c'))", "P()"}
        << QStringList{
               "all_to_all c forward add(x, ..)", "all_to_all b,c forward add(x, ..)", "all_gather a,b,c forward sine(from x)"};
}

void TestExamples::programLayoutsFollow()
{
    QFETCH(QString, file);
    QFETCH(QString, mesh);
    QFETCH(QStringList, layouts);
    QFETCH(QStringList, collectives);
    Study study;
    study.model = ProgramFile{(resourcesDirectory() / "examples" / file.toStdString()).string(), {}};
    const Mesh devices = valueOf(parseMesh(mesh.toStdString()));
    study.mesh = devices.axes();
    const auto built = buildPhase(study);
    QVERIFY2(built, built ? "" : describe(built.error()).c_str());
    const Function& function = *built->partitioned.propagated.find(built->mainFunction);
    QStringList actual;
    for (const ValueId result : function.results())
        actual << QString::fromStdString(layoutText(*function[result].sharding, devices));
    QCOMPARE(actual, layouts);
    QCOMPARE(collectivesOfPhase(study, 0), collectives);
}

void TestExamples::programsRunAsOneDevice_data()
{
    QTest::addColumn<QString>("file");
    for (const char* file : {"elementwise.mlir", "copy.mlir", "matmul.mlir", "constraint.mlir", "mlp.mlir"})
        QTest::newRow(file) << QString(file);
}

/// The example programs at a size that runs in no time, on the mesh that they name.
void TestExamples::programsRunAsOneDevice()
{
    QFETCH(QString, file);
    std::string text = *readFile(resourcesDirectory() / "examples" / file.toStdString());
    for (std::size_t at = text.find("8192"); at != std::string::npos; at = text.find("8192", at))
        text.replace(at, 4, "64");
    const auto program = readProgram(text, file.toStdString());
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const auto run = runProgram(*program, program->functions.front().name, {.seed = 1, .verify = true}, {});
    QVERIFY2(run, run ? "" : describe(run.error()).c_str());
    QVERIFY(run->verification && run->verification->passed);
    for (const Problem& warning : run->warnings)
        QVERIFY2(warning.id != "MW1218", describe(warning).c_str());
    for (const CountedCollective& counted : run->collectives) {
        QCOMPARE(counted.calls, counted.use.count);
        QCOMPARE(counted.totalPayloadBytes, counted.use.count * counted.use.payloadBytes);
    }
}

MESHWRIGHT_TEST(TestExamples)

} // namespace tst_examples

#include "tst_examples.moc"
