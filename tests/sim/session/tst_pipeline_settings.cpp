// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/study/study.h"
#include "core/train/training_memory.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <functional>

namespace tst_pipeline_settings {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

using Settings = std::vector<std::string>;

Study read(const char* text, const Settings& settings)
{
    auto study = readStudy(text, "study", settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *std::move(study);
}

/// Four layers in two stages of two devices, which share heads and widths.
Study transformerOf(const Settings& settings)
{
    return read(R"yaml(meshwright: 1
mesh: {pipe: 2, model: 2}
model:
  transformer: {layers: 4, hidden: 16, heads: 2, ffn: 32, vocabulary: 24, position: learned, activation: gelu_tanh, predict: last_token, unroll: true}
sequence: 8
batch: 12
sharding:
  layers.*.attention: {q.w: "P(None, 'model', None)", k.w: "P(None, 'model', None)", v.w: "P(None, 'model', None)", o.w: "P('model', None, None)"}
  layers.*.ffn: {up.w: "P(None, 'model')", down.w: "P('model', None)"}
optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9}}
train: {steps: 3, seed: 0, data: random}
pipeline: {axis: pipe, stages: 2, microbatches: 4}
)yaml",
        settings);
}

Study mlpOf(const Settings& settings)
{
    return read(R"yaml(meshwright: 1
mesh: {pipe: 2, data: 2}
model: {mlp: {layers: [16, 32, 32, 32, 8], activation: tanh, loss: mse}}
batch: 24
sharding: {x: [data], y: [data], match: [{path: '*', spec: []}]}
optimizer: {sgd: {learning_rate: 0.1, momentum: 0.9}}
train: {steps: 4, seed: 0, data: random}
pipeline: {axis: pipe, stages: 2, microbatches: 4}
)yaml",
        settings);
}

/// The same study, as one device takes it.
Settings alone(Settings settings)
{
    for (const char* setting : {"mesh={data: 1}", "sharding={}", "pipeline="})
        settings.emplace_back(setting);
    return settings;
}

TrainingResult trained(
    const Study& study, TrainChoices choices = {}, const std::function<void(const TrainingProgress&)>& progress = {})
{
    choices.keepParameters = true;
    auto result = trainStudy(study, choices, progress, {});
    if (!result)
        qFatal("%s", describe(result.error()).c_str());
    return *std::move(result);
}

std::string firstId(const Study& study)
{
    const auto phases = trainingPhases(study);
    return phases ? std::string() : phases.error().front().id;
}

const std::string kDynamic
    = "optimizer={sgd: {learning_rate: 0.1, momentum: 0.9, loss_scale: {first: 295147905179352825856, growth_steps: 2}}}";

} // namespace

/// What a study may ask for besides stages.
class TestPipelineSettings : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void asOneDevice_data();
    void asOneDevice();
    void masksDifferBySteps();
    void recomputedKeepsLess();
    void tiedGradientsAreSent();
    void fixedLossScaleChangesNoBit_data();
    void fixedLossScaleChangesNoBit();
    void dynamicLossScale_data();
    void dynamicLossScale();
    void resumesTheScale();
    void refused();
};

void TestPipelineSettings::asOneDevice_data()
{
    QTest::addColumn<bool>("isTransformer");
    QTest::addColumn<Settings>("settings");
    const auto network = [](const char* name, const Settings& settings) { QTest::newRow(name) << false << settings; };
    const auto transformer = [](const char* name, const Settings& settings) { QTest::newRow(name) << true << settings; };
    network("dropout", {"dropout=0.25"});
    network("dropout, legacy random numbers", {"dropout=0.25", "init.random=legacy"});
    network("dropout, GPipe", {"dropout=0.5", "pipeline.schedule=gpipe", "mesh={data: 2, pipe: 2}"});
    network("dropout, ZB-H1, clipped",
        {"dropout=0.25", "pipeline.schedule=zb_h1", "optimizer={adamw: {learning_rate: 0.01, clip_norm: 0.1}}"});
    network("dropout, interleaved", {"dropout=0.25", "pipeline.schedule=interleaved", "pipeline.chunks=2"});
    network("dropout, one stage", {"dropout=0.25", "mesh={data: 2}", "pipeline={microbatches: 3}"});
    network("dropout, one microbatch", {"dropout=0.25", "pipeline.microbatches=1"});
    network("loss scale", {"optimizer={sgd: {learning_rate: 0.1, loss_scale: 1000}}"});
    network("everything", {"dropout=0.25", "train.grad_norm=true", kDynamic});
    transformer("recompute: selective, ZB-H1", {"recompute=selective", "pipeline.schedule=zb_h1"});
    transformer(
        "recompute: dots, interleaved", {"recompute=dots_saveable", "pipeline.schedule=interleaved", "pipeline.chunks=2"});
    transformer(
        "a loss in chunks", {"model.transformer.predict=every_token", "model.transformer.loss={cross_entropy: {chunks: 4}}"});
    transformer("recompute and dropout", {"recompute=full", "dropout=0.25"});
    transformer(
        "tied, clipped, Adam", {"model.transformer.tied=true", "optimizer={adam: {learning_rate: 0.003, clip_norm: 0.5}}"});
    transformer("tied, four stages", {"model.transformer.tied=true", "mesh={pipe: 4}", "sharding={}", "pipeline.stages=4"});
    transformer("tied, data parallel, ZB-H1",
        {"model.transformer.tied=true", "mesh={pipe: 2, data: 3}", "sharding={x: [data], y: [data]}", "batch=24",
            "pipeline.schedule=zb_h1"});
    transformer("tied, vocabulary split",
        {"model.transformer.tied=true", "sharding.embedding.w=P('model', None)", "train.grad_norm=true"});
    // Stacked arrays, which the stages have layer by layer.
    const std::string looped = "model.transformer.unroll=false";
    const std::string stacked
        = "sharding={layers.attention: {q.w: [null, null, model], k.w: [null, null, model], v.w: [null, null, model], "
          "o.w: [null, model]}, layers.ffn: {up.w: [null, null, model], down.w: [null, model]}}";
    transformer("layers in a loop, uneven stages, ZB-H1, Adam",
        {looped, stacked, "pipeline.layers=[3, 1]", "pipeline.schedule=zb_h1",
            "optimizer={adam: {learning_rate: 0.003, clip_norm: 0.5}}"});
    transformer("layers in a loop, dropout, made again, tied, legacy random numbers",
        {looped, stacked, "dropout=0.25", "recompute=full", "model.transformer.tied=true", "init.random=legacy"});
    transformer("layers in a loop, interleaved, windows",
        {looped, "sharding={}", "mesh={pipe: 2}", "pipeline.schedule=interleaved", "pipeline.chunks=2",
            "model.transformer.window=3", "model.transformer.window_layers=2"});
    transformer(
        "everything", {"model.transformer.tied=true", "dropout=0.25", "recompute=full", kDynamic, "train.grad_norm=true"});
}

/// In stages as on one device, whose masks are of the whole batch; each step is checked against double precision too.
void TestPipelineSettings::asOneDevice()
{
    QFETCH(bool, isTransformer);
    QFETCH(Settings, settings);
    const auto studyOf = isTransformer ? transformerOf : mlpOf;
    TrainChoices verified;
    verified.verify = true;
    const TrainingResult whole = trained(studyOf(alone(settings)));
    const TrainingResult result = trained(studyOf(settings), verified);
    QCOMPARE(result.losses.size(), whole.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        QVERIFY2(std::abs(result.losses[i] - whole.losses[i]) < 1e-5 * std::abs(whole.losses[i]),
            qPrintable(QStringLiteral("step %1: %2 instead of %3").arg(i).arg(result.losses[i]).arg(whole.losses[i])));
    for (const VerifiedTensor& tensor : result.verification->tensors)
        QVERIFY2(tensor.passed, tensor.name.c_str());
    QCOMPARE(result.skippedSteps, whole.skippedSteps);
}

/// The same weights and rows in each step: only the masks differ, and the evaluation leaves nothing out.
void TestPipelineSettings::masksDifferBySteps()
{
    const Settings still = {"optimizer={sgd: {learning_rate: 1e-30}}"};
    Settings drops = still;
    drops.emplace_back("dropout=0.25");
    const TrainingResult dropped = trained(mlpOf(drops));
    const TrainingResult whole = trained(mlpOf(still));
    const std::set<double> different(dropped.losses.begin(), dropped.losses.end());
    QCOMPARE(different.size(), std::size_t{5}); // four steps and the evaluation
    QCOMPARE(dropped.losses.back(), whole.losses.back());
}

void TestPipelineSettings::recomputedKeepsLess()
{
    for (const char* dropout : {"dropout=0", "dropout=0.25"}) {
        const auto bytesOf = [&](const char* attention, const char* recompute) {
            const Study study = transformerOf({std::string("recompute=") + recompute, "sequence=32", dropout,
                std::string("model.transformer.attention=") + attention});
            return plannedDevicePeak(valueOf(trainingPhases(study))).bytes;
        };
        QVERIFY2(bytesOf("plain", "full") < bytesOf("plain", "selective"), dropout);
        QVERIFY2(bytesOf("plain", "selective") < bytesOf("plain", "none"), dropout);
        QVERIFY2(bytesOf("fused", "full") < bytesOf("fused", "minimal_with_context"), dropout);
        QVERIFY2(bytesOf("fused", "minimal_with_context") < bytesOf("fused", "none"), dropout);
        QVERIFY2(bytesOf("fused", "none") < bytesOf("plain", "none"), dropout);
    }
}

void TestPipelineSettings::tiedGradientsAreSent()
{
    TrainChoices recorded;
    recorded.record = true;
    const TrainingResult result = trained(transformerOf({"model.transformer.tied=true"}), recorded);
    const auto& collectives = result.phases.front().collectives;
    const auto sent = std::ranges::find_if(
        collectives, [](const CountedCollective& counted) { return counted.use.cause.value.starts_with("shared gradients"); });
    QVERIFY(sent != collectives.end());
    QCOMPARE(sent->calls, 3); // once a step, whatever the microbatches
    QCOMPARE(sent->use.payloadBytes, 24 * 16 * 4);
    for (const Timeline* timeline : {&result.wall, &result.virtualTime}) {
        std::set<std::string> names;
        for (const Slice& slice : timeline->slices())
            names.insert(timeline->text(slice.name));
        QVERIFY(timeline != &result.wall || names.contains("share gradients"));
    }
}

void TestPipelineSettings::fixedLossScaleChangesNoBit_data()
{
    QTest::addColumn<bool>("isTransformer");
    QTest::addColumn<Settings>("settings");
    QTest::addColumn<QString>("optimizer");
    QTest::newRow("SGD") << false << Settings{} << "{sgd: {learning_rate: 0.1, momentum: 0.9%1}}";
    QTest::newRow("AdamW, clipped") << false << Settings{"train.grad_norm=true"}
                                    << "{adamw: {learning_rate: 0.01, clip_norm: 0.1%1}}";
    QTest::newRow("ZB-H1") << false << Settings{"pipeline.schedule=zb_h1"} << "{sgd: {learning_rate: 0.1%1}}";
    QTest::newRow("transformer, tied") << true << Settings{"model.transformer.tied=true"} << "{adam: {learning_rate: 0.003%1}}";
}

/// A power of two only moves exponents.
void TestPipelineSettings::fixedLossScaleChangesNoBit()
{
    QFETCH(bool, isTransformer);
    QFETCH(Settings, settings);
    QFETCH(QString, optimizer);
    const auto runOf = [&](const char* scale, std::vector<double>& norms) {
        Settings own = settings;
        own.push_back("optimizer=" + optimizer.arg(scale).toStdString());
        return trained((isTransformer ? transformerOf : mlpOf)(own), {},
            [&](const TrainingProgress& now) { norms.push_back(now.gradientNorm.value_or(-1.0)); });
    };
    std::vector<double> expected;
    std::vector<double> norms;
    const TrainingResult plain = runOf("", expected);
    const TrainingResult scaled = runOf(", loss_scale: 4096", norms);
    QCOMPARE(scaled.losses, plain.losses);
    QCOMPARE(norms, expected);
    QVERIFY(scaled.parameters == plain.parameters);
}

void TestPipelineSettings::dynamicLossScale_data()
{
    QTest::addColumn<Settings>("settings");
    QTest::newRow("1F1B") << Settings{};
    QTest::newRow("ZB-H2") << Settings{"pipeline.schedule=zb_h2"};
    QTest::newRow("interleaved, dropout") << Settings{"pipeline.schedule=interleaved", "pipeline.chunks=2"};
    QTest::newRow("model parallel stages") << Settings{
        "mesh={pipe: 2, model: 2}", "sharding={layers.1: {w: [null, model]}, layers.2: {w: [model]}}"};
}

/// All stages leave out the same steps, and what is trained equals a training of the good steps alone.
void TestPipelineSettings::dynamicLossScale()
{
    QFETCH(Settings, settings);
    Settings dynamic = settings;
    dynamic.insert(dynamic.end(), {kDynamic, "train.steps=10"});
    std::vector<TrainingProgress> seen;
    const TrainingResult scaled = trained(mlpOf(dynamic), {}, [&](const TrainingProgress& now) { seen.push_back(now); });
    double scale = 0x1p68;
    std::int64_t good = 0;
    std::int64_t skipped = 0;
    for (const TrainingProgress& now : seen) {
        QCOMPARE(now.lossScale.value_or(0.0), scale);
        if (now.skipped) {
            scale /= 2;
            good = 0;
            ++skipped;
        } else if (++good == 2) {
            scale *= 2;
            good = 0;
        }
    }
    QVERIFY(seen.front().skipped);
    QVERIFY(skipped >= 3 && skipped <= 8);
    QCOMPARE(scaled.skippedSteps, skipped);

    Settings plain = settings;
    plain.insert(plain.end(), "train.steps=" + std::to_string(10 - skipped));
    const TrainingResult kept = trained(mlpOf(plain));
    QCOMPARE(scaled.losses.back(), kept.losses.back());
    QVERIFY(scaled.parameters == kept.parameters);
}

void TestPipelineSettings::resumesTheScale()
{
    const QTemporaryDir folder;
    const std::filesystem::path path = folder.path().toStdString();
    Settings settings = {kDynamic, "dropout=0.25", "train.steps=8"};
    TrainChoices writes;
    writes.checkpoints = CheckpointPlan{path, 4, 0};
    TrainChoices goesOn;
    goesOn.resume = path / "step-000000004";
    const TrainingResult unbroken = trained(mlpOf(settings), writes);
    const TrainingResult resumed = trained(mlpOf(settings), goesOn);
    QCOMPARE(resumed.losses, unbroken.losses);
    QVERIFY(resumed.parameters == unbroken.parameters);
    // On one device too, where masks and scale are the same.
    const TrainingResult whole = trained(mlpOf(alone(settings)), goesOn);
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        QVERIFY(std::abs(whole.losses[i] - unbroken.losses[i]) < 1e-5 * unbroken.losses[i]);
    QCOMPARE(whole.skippedSteps, resumed.skippedSteps);
}

void TestPipelineSettings::refused()
{
    // The first and the last piece on one stage: it would have the embedding twice.
    QCOMPARE(firstId(transformerOf({"model.transformer.tied=true", "mesh={model: 2}", "pipeline.axis=", "pipeline.stages=1",
                 "pipeline.schedule=interleaved", "pipeline.chunks=2"})),
        std::string("MW1544"));
    QCOMPARE(
        firstId(transformerOf({"model.transformer.unroll=false", "sharding={layers.ffn: {up.w: [model], down.w: [model]}}"})),
        std::string("MW1546"));
}

MESHWRIGHT_TEST(TestPipelineSettings)

} // namespace tst_pipeline_settings

#include "tst_pipeline_settings.moc"
