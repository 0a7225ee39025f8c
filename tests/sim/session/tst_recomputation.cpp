// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/study/study.h"
#include "sim/cost/recomputation.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_recomputation {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

/// Two layers on two devices, which share rows.
constexpr const char* kStudy = R"yaml(meshwright: 1
mesh: {data: 2}
model:
  transformer: {layers: 2, hidden: 64, heads: 4, ffn: 128, vocabulary: 256}
sequence: 64
batch: 4
sharding: {x: [data], y: [data]}
dtype: {parameters: f32, matmul: bf16, activations: bf16}
optimizer: {sgd: {learning_rate: 0.05}}
hardware: {chip: v5e, topology: 2x1}
)yaml";

} // namespace

/// What is computed again is time of the step and no work of the model.
class TestRecomputation : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void countsTheModelsOwnWork_data();
    void countsTheModelsOwnWork();
    void layersRunToTheirEnd_data();
    void layersRunToTheirEnd();
    void lossKernels_data();
    void lossKernels();
    void takesTheNamesOfSearch();
};

void TestRecomputation::countsTheModelsOwnWork_data()
{
    QTest::addColumn<QStringList>("settings");
    QTest::newRow("selective") << QStringList{"recompute=selective"};
    QTest::newRow("full") << QStringList{"recompute=full"};
    QTest::newRow("layer") << QStringList{"recompute=layer"};
    QTest::newRow("named") << QStringList{"recompute={keep: [ffn.hidden]}"};
    QTest::newRow("offloaded") << QStringList{"recompute={offload: [attention.q, attention.k, attention.v]}"};
    QTest::newRow("a loss in chunks") << QStringList{"model.transformer.loss={cross_entropy: {chunks: 4}}"};
    QTest::newRow("unrolled") << QStringList{"recompute=full", "model.transformer.unroll=true"};
    QTest::newRow("accumulated") << QStringList{"recompute=full", "train.accumulate=2"};
    QTest::newRow("a pipeline") << QStringList{
        "recompute=full", "mesh={pipe: 2}", "sharding={}", "pipeline={axis: pipe, stages: 2, microbatches: 2}"};
    QTest::newRow("layers of a pipeline") << QStringList{
        "recompute=layer", "mesh={pipe: 2}", "sharding={}", "pipeline={axis: pipe, stages: 2, microbatches: 2}"};
}

void TestRecomputation::countsTheModelsOwnWork()
{
    QFETCH(QStringList, settings);
    const auto flopsOf = [](const QStringList& of) {
        std::vector<std::string> list;
        for (const QString& one : of)
            list.push_back(one.toStdString());
        auto study = readStudy(kStudy, "study", list);
        if (!study)
            qFatal("%s", describe(study.error()).c_str());
        return valueOf(simulateStudy(*study, valueOf(defaultCatalogue()))).simulation.modelFlops;
    };
    QCOMPARE(flopsOf(settings), flopsOf({}));
}

void TestRecomputation::layersRunToTheirEnd_data()
{
    QTest::addColumn<QStringList>("settings");
    QTest::newRow("data parallel") << QStringList{};
    QTest::newRow("tensor parallel") << QStringList{"mesh={model: 2}",
        "sharding={layers.attention: {q.w: [null, null, model], k.w: [null, null, model], v.w: [null, null, model], o.w: [null, "
        "model]}, layers.ffn: {up.w: [null, null, model], down.w: [null, model]}, match: [{path: '*', spec: []}]}"};
    QTest::newRow("unrolled") << QStringList{"model.transformer.unroll=true"};
    QTest::newRow("a pipeline") << QStringList{
        "mesh={pipe: 2}", "sharding={}", "pipeline={axis: pipe, stages: 2, microbatches: 2}"};
}

/// The last product of a layer is run again, and its sum over devices, though nobody reads them: the step takes longer, and trains to the same losses.
void TestRecomputation::layersRunToTheirEnd()
{
    QFETCH(QStringList, settings);
    struct Step {
        double computeSeconds = 0.0;
        std::int64_t sums = 0; ///< all-reduces of activations
        std::vector<double> losses;
    };
    const auto stepWith = [&](const char* recompute) {
        std::vector<std::string> list{std::string("recompute=") + recompute, "train={steps: 3, seed: 1, data: random}"};
        for (const QString& one : settings)
            list.push_back(one.toStdString());
        const Study study = valueOf(readStudy(kStudy, "study", list));
        const Simulation simulated = valueOf(simulateStudy(study, valueOf(defaultCatalogue()))).simulation;
        Step step{simulated.computeSeconds, 0, {}};
        for (const SimulatedCollective& collective : simulated.collectives)
            step.sums += collective.use.axes == "model" && collective.use.payloadBytes > 4096 ? collective.use.count : 0;
        step.losses = valueOf(trainStudy(study, {}, {}, {})).losses;
        return step;
    };
    const Step full = stepWith("full");
    const Step layer = stepWith("layer");
    QVERIFY(layer.computeSeconds > full.computeSeconds);
    QCOMPARE(layer.sums, full.sums + (full.sums > 0 ? 2 : 0));
    QCOMPARE(layer.losses, full.losses);
}

void TestRecomputation::lossKernels_data()
{
    QTest::addColumn<QString>("kernels");
    QTest::addColumn<double>("logits"); // arrays of 16 bits as large as the logits at the peak, beyond those of `fused`
    QTest::newRow("the logits in 32 bits") << QString("in_place") << 2.0;
    QTest::newRow("and their log-softmax") << QString("separate") << 4.0;
}

/// What is wide at the peak of a step whose logits are most of its memory. The losses are the same.
void TestRecomputation::lossKernels()
{
    QFETCH(QString, kernels);
    QFETCH(double, logits);
    const auto simulated = [](const QString& words) {
        const std::vector<std::string> settings = {"sequence=1024", "model.transformer.vocabulary=32768",
            "model.transformer.loss={cross_entropy: {kernels: " + words.toStdString() + "}}"};
        const Study study = valueOf(readStudy(kStudy, "study.yaml", settings));
        return valueOf(simulateStudy(study, valueOf(defaultCatalogue()))).simulation;
    };
    const Simulation fused = simulated("fused");
    const Simulation apart = simulated(kernels);
    constexpr double kLogits = 2.0 * 1024 * 32768 * 2; // rows of a device, tokens, words, bytes
    const double more = static_cast<double>(apart.peakBytes - fused.peakBytes) / kLogits;
    QVERIFY2(std::abs(more - logits) < 0.1, qPrintable(QString::number(more)));
    QVERIFY(apart.stepSeconds > fused.stepSeconds); // written and read
    const auto losses = [](const QString& words) {
        const std::vector<std::string> settings = {"train={steps: 3, seed: 1, data: random}",
            "model.transformer.loss={cross_entropy: {kernels: " + words.toStdString() + "}}"};
        return valueOf(trainStudy(valueOf(readStudy(kStudy, "study.yaml", settings)), {}, {}, {})).losses;
    };
    QCOMPARE(losses(kernels), losses("fused"));
}

/// `selective_op` and `custom` are lists that depend on the model.
void TestRecomputation::takesTheNamesOfSearch()
{
    for (const std::string name : recomputationNames()) {
        const auto study = readStudy(kStudy, "study", std::vector{"recompute=" + name});
        QVERIFY2(study || name == "selective_op" || name == "custom", name.c_str());
    }
}

MESHWRIGHT_TEST(TestRecomputation)

} // namespace tst_recomputation

#include "tst_recomputation.moc"
