// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/study/study.h"
#include "sim/report/results.h"
#include "tests/test_class.h"

#include <functional>
#include <set>

namespace tst_optimizers {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

/// Eight devices train a small network; tests add what they are about.
Study studyOf(const QString& sharding, const QString& optimizer, const std::vector<std::string>& settings = {})
{
    const QString text = QStringLiteral("meshwright: 1\n"
                                        "mesh: {data: 4, model: 2}\n"
                                        "model: {mlp: {layers: [16, 32, 32, 8], activation: tanh, loss: mse}}\n"
                                        "batch: 96\n"
                                        "train: {steps: 6, seed: 0, data: random}\n"
                                        "sharding: %1\n"
                                        "optimizer: %2\n")
                             .arg(sharding, optimizer);
    auto study = readStudy(text.toStdString(), "study", settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *std::move(study);
}

const QString kDataParallel = QStringLiteral("{x: [data], y: [data]}");
const QString kTensorParallel
    = QStringLiteral("{x: [data], y: [data], layers.0: {w: [null, model], b: [model]}, layers.1: {w: [model]}}");
const QString kFullySharded
    = QStringLiteral("{x: [[data, model]], y: [[data, model]], match: [{path: '*.w', spec: [[data, model]]}]}");
const QString kZero1 = QStringLiteral("{x: [data], y: [data], opt.m.*: [data], opt.v.*: [data], match: [{path: '*', spec: []}]}");
const QString kZero2
    = QStringLiteral("{x: [data], y: [data], opt.m.*: [data], opt.v.*: [data], grad.*: [data], match: [{path: '*', spec: []}]}");

TrainingResult trained(const Study& study, bool verify, const std::function<void(const TrainingProgress&)>& progress = {})
{
    auto result = trainStudy(study, {.verify = verify, .keepParameters = true}, progress, {});
    if (!result)
        qFatal("%s", describe(result.error()).c_str());
    return *std::move(result);
}

} // namespace

/// What optimisers do, on devices.
class TestOptimizers : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void asOneDevice_data();
    void asOneDevice();
    void accumulationChangesNothing_data();
    void accumulationChangesNothing();
    void accumulationSavesMemory();
    void decayEndsWithTheLastPhase();
    void dropoutIsTheSameEverywhere_data();
    void dropoutIsTheSameEverywhere();
    void dropoutNeedsSteps();
    void fixedLossScaleChangesNoBit_data();
    void fixedLossScaleChangesNoBit();
    void dynamicLossScale_data();
    void dynamicLossScale();
    void smallGradientsKeepTheirBits();
    void masters_data();
    void masters();
    void mastersOfMicrobatches_data();
    void mastersOfMicrobatches();
    void eightBits_data();
    void eightBits();
};

void TestOptimizers::asOneDevice_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("optimizer");

    const std::pair<const char*, const char*> optimizers[] = {
        {"AdamW, clipped, cosine",
            "{adamw: {learning_rate: 0.01, weight_decay: 0.1, clip_norm: 0.1, schedule: cosine, warmup_steps: 2}}"},
        {"SGD, decay, linear",
            "{sgd: {learning_rate: 0.1, momentum: 0.9, weight_decay: 0.01, schedule: linear, clip_norm: 0.05}}"},
    };
    const std::pair<const char*, QString> layouts[] = {{"data parallel", kDataParallel}, {"tensor parallel", kTensorParallel},
        {"fully sharded", kFullySharded}, {"ZeRO-1", kZero1}, {"ZeRO-2", kZero2}};
    for (const auto& [layout, sharding] : layouts) {
        for (const auto& [name, optimizer] : optimizers) {
            const bool hasNoV = QString(optimizer).startsWith("{sgd");
            QTest::addRow("%s, %s", layout, name)
                << (hasNoV ? QString(sharding).replace("opt.v.*: [data], ", "") : sharding) << QString(optimizer);
        }
    }
}

/// Sharded as alone; each of the steps is checked against double precision too.
void TestOptimizers::asOneDevice()
{
    QFETCH(QString, sharding);
    QFETCH(QString, optimizer);
    const Study study = studyOf(sharding, optimizer, {{"train.grad_norm=true"}});
    const TrainingResult result = trained(study, true);
    for (const VerifiedTensor& tensor : result.verification->tensors)
        QVERIFY2(tensor.passed,
            qPrintable(QString("%1: %2, allowed %3").arg(tensor.name.c_str()).arg(tensor.shardedError).arg(tensor.tolerance)));
    const TrainingResult alone = trained(unshardedStudy(study), false);
    for (std::size_t i = 0; i < result.losses.size(); ++i)
        QVERIFY(std::abs(result.losses[i] - alone.losses[i]) <= 1e-5 * std::abs(alone.losses[i]));
    for (const CountedCollective& counted : result.phases.front().collectives) {
        QCOMPARE(counted.calls, 6 * counted.use.count);
        QCOMPARE(counted.totalPayloadBytes, 6 * counted.use.count * counted.use.payloadBytes);
    }
}

void TestOptimizers::accumulationChangesNothing_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::newRow("data parallel") << kDataParallel;
    QTest::newRow("tensor parallel") << kTensorParallel;
    QTest::newRow("fully sharded") << kFullySharded;
    QTest::newRow("ZeRO-2") << QString(kZero2).replace("opt.v.*: [data], ", "");
}

void TestOptimizers::accumulationChangesNothing()
{
    QFETCH(QString, sharding);
    const QString sgd = QStringLiteral("{sgd: {learning_rate: 0.1, momentum: 0.9}}");
    const TrainingResult whole = trained(studyOf(sharding, sgd), false);
    const TrainingResult parts = trained(studyOf(sharding, sgd, {{"train.accumulate=3"}}), true);
    QVERIFY(parts.verification->passed);
    QVERIFY(whole.losses.back() < whole.losses.front());
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        QVERIFY(std::abs(whole.losses[i] - parts.losses[i]) <= 1e-6 * whole.losses[i]);
    QCOMPARE(parts.accuracies.size(), whole.accuracies.size());
    for (std::size_t i = 0; i < whole.accuracies.size(); ++i)
        QVERIFY(std::abs(whole.accuracies[i] - parts.accuracies[i]) <= 1e-6);
    for (const CountedCollective& counted : parts.phases.front().collectives) {
        QCOMPARE(counted.calls, 6 * counted.use.count);
        QCOMPARE(counted.totalPayloadBytes, 6 * counted.use.count * counted.use.payloadBytes);
    }
}

/// Activations of a sixteenth of the rows, beside the sums of gradients.
void TestOptimizers::accumulationSavesMemory()
{
    const QString sgd = QStringLiteral("{sgd: {learning_rate: 0.1}}");
    const std::vector<std::string> large = {"batch=4096", "train.steps=1"};
    std::vector<std::string> parted = large;
    parted.emplace_back("train.accumulate=16");
    const TrainingResult whole = trained(studyOf(kDataParallel, sgd, large), false);
    const TrainingResult parts = trained(studyOf(kDataParallel, sgd, parted), false);
    QVERIFY2(10 * parts.stepArenaBytes < 6 * whole.stepArenaBytes,
        qPrintable(QString("%1 of %2").arg(parts.stepArenaBytes).arg(whole.stepArenaBytes)));
}

/// Two phases of three steps are one schedule of six.
void TestOptimizers::decayEndsWithTheLastPhase()
{
    const QString sgd = QStringLiteral("{sgd: {learning_rate: 0.1, schedule: cosine}}");
    const TrainingResult one = trained(studyOf(kDataParallel, sgd), false);
    Study study = studyOf(kDataParallel, sgd);
    study.phases = {{3, study.mesh, {}}, {3, study.mesh, {}}};
    const TrainingResult two = trained(study, false);
    QCOMPARE(two.losses, one.losses);
    QVERIFY(two.parameters == one.parameters);
}

void TestOptimizers::dropoutIsTheSameEverywhere_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("setting");
    QTest::newRow("data parallel") << kDataParallel << "";
    QTest::newRow("tensor parallel") << kTensorParallel << "";
    QTest::newRow("fully sharded") << kFullySharded << "";
    QTest::newRow("fully sharded, legacy") << kFullySharded << "init={random: legacy}";
    QTest::newRow("tensor parallel, accumulated") << kTensorParallel << "train.accumulate=3";
}

/// Every layout leaves out what one device does; another seed, and the next step, leave out something else.
void TestOptimizers::dropoutIsTheSameEverywhere()
{
    QFETCH(QString, sharding);
    QFETCH(QString, setting);
    const QString sgd = QStringLiteral("{sgd: {learning_rate: 0.1}}");
    std::vector<std::string> settings = {"dropout=0.25"};
    if (!setting.isEmpty())
        settings.push_back(setting.toStdString());
    const Study study = studyOf(sharding, sgd, settings);
    const TrainingResult result = trained(study, true);
    QVERIFY(result.verification->passed);
    const TrainingResult alone = trained(unshardedStudy(study), false);
    for (std::size_t i = 0; i < alone.losses.size(); ++i)
        QVERIFY(std::abs(result.losses[i] - alone.losses[i]) <= 1e-6 * alone.losses[i]);

    // The same weights and rows in each step: only the masks differ.
    settings.emplace_back("optimizer.sgd.learning_rate=1e-30");
    const TrainingResult still = trained(studyOf(sharding, sgd, settings), false);
    std::set<double> different(still.losses.begin(), still.losses.end());
    QCOMPARE(different.size(), std::size_t{7}); // six steps, and the evaluation, which leaves nothing out
    settings.front() = "dropout=0";
    const TrainingResult whole = trained(studyOf(sharding, sgd, settings), false);
    QVERIFY(std::abs(still.losses.back() - whole.losses.back()) <= 1e-6 * whole.losses.back());
}

void TestOptimizers::dropoutNeedsSteps()
{
    const auto idOf = [](const QString& text) {
        const auto study = readStudy(text.toStdString(), "study");
        return study ? std::string() : study.error().front().id;
    };
    const QString text = QStringLiteral("meshwright: 1\nmesh: {data: 2}\nmodel: {mlp: {layers: [8, 8, 8], loss: mse}}\nbatch: 8\n"
                                        "dropout: %1\ntrain: {steps: 1, data: random}\n%2\n");
    QCOMPARE(idOf(text.arg("0.5", "optimizer: none")), std::string("MW1648"));
    QVERIFY(!idOf(text.arg("1.0", "optimizer: sgd")).empty());
    QCOMPARE(idOf(text.arg("0.5", "optimizer: sgd")), std::string());
}

void TestOptimizers::fixedLossScaleChangesNoBit_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("optimizer");
    QTest::newRow("SGD") << kDataParallel << "{sgd: {learning_rate: 0.1, momentum: 0.9%1}}";
    QTest::newRow("Adam") << kTensorParallel << "{adam: {learning_rate: 0.01%1}}";
    QTest::newRow("AdamW, clipped") << kFullySharded << "{adamw: {learning_rate: 0.01, clip_norm: 0.1%1}}";
    QTest::newRow("ZeRO-2") << kZero2 << "{adam: {learning_rate: 0.01%1}}";
}

/// A power of two only moves exponents.
void TestOptimizers::fixedLossScaleChangesNoBit()
{
    QFETCH(QString, sharding);
    QFETCH(QString, optimizer);
    const std::vector<std::string> settings = {"train.accumulate=3", "train.grad_norm=true"};
    std::vector<double> norms;
    const auto note = [&](const TrainingProgress& now) { norms.push_back(now.gradientNorm.value_or(-1.0)); };
    const TrainingResult plain = trained(studyOf(sharding, optimizer.arg(""), settings), false, note);
    const std::vector<double> expected = std::exchange(norms, {});
    const TrainingResult scaled = trained(studyOf(sharding, optimizer.arg(", loss_scale: 4096"), settings), false, note);
    QCOMPARE(scaled.losses, plain.losses);
    QCOMPARE(norms, expected);
    QVERIFY(expected.front() > 0.0);
    QVERIFY(scaled.parameters == plain.parameters);
    QCOMPARE(scaled.phases.front().collectives.size(), plain.phases.front().collectives.size());
}

void TestOptimizers::dynamicLossScale_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("optimizer");
    QTest::newRow("one device") << "{match: [{path: '*', spec: []}]}"
                                << "sgd: {learning_rate: 0.1, momentum: 0.9";
    QTest::newRow("data parallel") << kDataParallel << "sgd: {learning_rate: 0.1, momentum: 0.9";
    QTest::newRow("tensor parallel") << kTensorParallel << "adam: {learning_rate: 0.01";
    QTest::newRow("fully sharded, clipped") << kFullySharded << "adamw: {learning_rate: 0.01, clip_norm: 0.1";
    QTest::newRow("ZeRO-1, cosine") << kZero1 << "adam: {learning_rate: 0.01, schedule: cosine, decay_steps: 20";
}

/// A scale at which squares of gradients overflow: it halves until they do not, doubles again after two good steps, and so on. Steps left out
/// leave no trace: what is trained equals a training of the good steps alone.
void TestOptimizers::dynamicLossScale()
{
    QFETCH(QString, sharding);
    QFETCH(QString, optimizer);
    constexpr double kFirst = 0x1p68;
    const std::vector<std::string> steps = {"train.steps=12"};
    std::vector<TrainingProgress> seen;
    const QString dynamic = QStringLiteral("{%1, loss_scale: {first: 295147905179352825856, growth_steps: 2}}}").arg(optimizer);
    const TrainingResult scaled
        = trained(studyOf(sharding, dynamic, steps), false, [&](const TrainingProgress& now) { seen.push_back(now); });
    QCOMPARE(seen.size(), std::size_t{12});
    double scale = kFirst;
    std::int64_t good = 0;
    std::int64_t skipped = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        QCOMPARE(seen[i].lossScale.value_or(0.0), scale);
        if (seen[i].skipped) {
            scale /= 2;
            good = 0;
            ++skipped;
            QCOMPARE(scaled.losses[i + 1], scaled.losses[i]); // the same rows at each step
        } else if (++good == 2) {
            scale *= 2;
            good = 0;
        }
    }
    QVERIFY(seen.front().skipped && !seen.back().skipped);
    QVERIFY(skipped >= 3 && skipped <= 9);
    QCOMPARE(scaled.skippedSteps, skipped);

    seen.clear();
    const TrainingResult plain
        = trained(studyOf(sharding, QStringLiteral("{%1}}").arg(optimizer), {"train.steps=" + std::to_string(12 - skipped)}),
            false, [&](const TrainingProgress& now) { seen.push_back(now); });
    QVERIFY(scaled.parameters == plain.parameters);
    QCOMPARE(scaled.losses.back(), plain.losses.back());
    QVERIFY(!seen.front().lossScale && plain.skippedSteps == 0);
}

/// Products of f16 operands: the smaller the factor, the more of what the backward run hands on is below f16's smallest numbers.
void TestOptimizers::smallGradientsKeepTheirBits()
{
    const auto firstWeight = [](const char* scale, const char* type) {
        const QString sgd = QStringLiteral("{sgd: {learning_rate: 1%1}}").arg(scale);
        return trained(studyOf(kDataParallel, sgd, {"train.steps=1", std::string("dtype.matmul=") + type}), false)
            .parameters.front()
            .values();
    };
    const std::vector<double> expected = firstWeight("", "f32");
    const auto errorOf = [&](const char* scale) {
        const std::vector<double> values = firstWeight(scale, "f16");
        double sum = 0.0;
        for (std::size_t i = 0; i < values.size(); ++i)
            sum += std::abs(values[i] - expected[i]);
        return sum;
    };
    const double plain = errorOf("");
    const double scaled = errorOf(", loss_scale: 1024");
    const double vanished = errorOf(", loss_scale: 6.103515625e-05");
    QVERIFY2(scaled < 1.01 * plain && plain < 0.1 * vanished,
        qPrintable(QString("%1, %2 and %3").arg(scaled).arg(plain).arg(vanished)));
}

void TestOptimizers::masters_data()
{
    QTest::addColumn<QString>("sharding");
    QTest::addColumn<QString>("gradients");
    QTest::addColumn<QString>("gathered"); // types of what all-gathers move
    const QString zero1 = QString(kZero1).replace("opt.m.*: [data]", "opt.m.*: [data], opt.master.*: [data]");
    for (const QString gradients : {"", ", gradients: bf16"}) {
        QTest::addRow("data parallel%s", qPrintable(gradients)) << kDataParallel << gradients << "";
        QTest::addRow("ZeRO-1%s", qPrintable(gradients)) << zero1 << gradients << "bf16";
    }
}

/// Parameters in 16 bits whose masters are updated: many small steps add up, which rounded to 16 bits each would be lost; and with split states the
/// rounded parameters are what devices gather.
void TestOptimizers::masters()
{
    QFETCH(QString, sharding);
    QFETCH(QString, gradients);
    const QString optimizer = "{adam: {learning_rate: 1.0e-5, masters: true}}";
    const std::string dtype = "dtype={parameters: bf16, matmul: bf16" + gradients.toStdString() + "}";
    const Study study = studyOf(sharding, optimizer, {dtype, "train.steps=40"});
    const auto built = valueOf(buildPhase(study));
    const DeviceFunction& step = *built.partitioned.device.stages.front().find("step");
    std::set<std::string> gathered;
    for (const Op& op : step.function.ops) {
        if (op.kind == OpKind::AllGather)
            gathered.insert(dtypeName(step.function[op.results.front()].type.dtype));
    }
    QTEST(QString::fromStdString(gathered.empty() ? "" : *gathered.begin()), "gathered");
    QVERIFY(gathered.size() < 2);

    const auto moved = [&](const Study& of) {
        const TrainingResult result = trained(of, false);
        return std::abs(result.losses.back() - result.losses.front());
    };
    const Study without
        = studyOf(kDataParallel, "{adam: {learning_rate: 1.0e-5}}", {"dtype={parameters: bf16, matmul: bf16}", "train.steps=40"});
    const Study wide = studyOf(kDataParallel, "{adam: {learning_rate: 1.0e-5}}", {"train.steps=40"});
    const double exact = moved(wide);
    const double error = std::abs(moved(study) - exact);
    QVERIFY2(
        error < std::abs(moved(without) - exact) && error < 0.5 * exact, qPrintable(QString("%1 of %2").arg(error).arg(exact)));
}

void TestOptimizers::mastersOfMicrobatches_data()
{
    QTest::addColumn<QString>("optimizer");
    QTest::addColumn<std::string>("pipeline");
    for (const char* pipeline : {"{stages: 1, microbatches: 1}", "{stages: 1, microbatches: 4}"}) {
        for (const char* optimizer : {"{sgd: {learning_rate: 0.1, masters: true}}",
                 "{adam: {learning_rate: 0.01, masters: true}}", "{adam: {learning_rate: 0.01, masters: true, clip_norm: 1.0}}"})
            QTest::addRow("%s, %s", optimizer, pipeline) << QString(optimizer) << std::string(pipeline);
    }
}

/// A parameter that is made of its master takes the old one's place, though the update does not read that.
void TestOptimizers::mastersOfMicrobatches()
{
    QFETCH(QString, optimizer);
    QFETCH(std::string, pipeline);
    const Study study = studyOf(kDataParallel, optimizer,
        {"dtype={parameters: bf16, matmul: bf16}", "train.steps=4", "pipeline=" + pipeline, "mesh={data: 2}"});
    const TrainingResult result = trained(study, true);
    QVERIFY(result.verification && result.verification->passed && result.verification->provesAnything());
    QVERIFY2(
        result.losses.back() < result.losses.front(), qPrintable(QString::number(result.losses.back() - result.losses.front())));
}

void TestOptimizers::eightBits_data()
{
    QTest::addColumn<QString>("recipe");
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("sharding");
    const char* tensor
        = "{x: [data], y: [data], layers.attention: {q.w: [null, null, model], k.w: [null, null, model], v.w: [null, null, "
          "model], o.w: "
          "[null, model]}, layers.ffn: {up.w: [null, null, model], down.w: [null, model]}, match: [{path: '*', spec: []}]}";
    for (const char* recipe : {"current", "rowwise", "blockwise"}) {
        QTest::addRow("%s, tensor parallel", recipe) << recipe << "{data: 2, model: 2}" << tensor;
        QTest::addRow("%s, data parallel", recipe) << recipe << "{data: 4, model: 1}" << tensor;
    }
}

/// A transformer whose products are in 8 bits learns as one in 32 does, alike on one device and on four, and its program is proved.
void TestOptimizers::eightBits()
{
    QFETCH(QString, recipe);
    QFETCH(QString, mesh);
    QFETCH(QString, sharding);
    const auto studyIn = [&](const QString& dtype) {
        const QString text = QStringLiteral(
            "meshwright: 1\nmesh: %1\nmodel: {transformer: {layers: 2, hidden: 64, heads: 4, ffn: 128, vocabulary: 32}}\n"
            "sequence: 32\nbatch: 16\ndtype: %2\ntrain: {steps: 6, seed: 0, data: random}\nsharding: %3\n"
            "optimizer: {adam: {learning_rate: 0.003}}\n")
                                 .arg(mesh, dtype, sharding);
        auto study = readStudy(text.toStdString(), "study");
        if (!study)
            qFatal("%s", describe(study.error()).c_str());
        return *std::move(study);
    };
    const Study study = studyIn("{fp8: " + recipe + "}");
    const Proof proof = proofOf(valueOf(buildPhase(study)));
    QVERIFY2(proof.isProved(), proofText(proof).c_str());
    const TrainingResult narrow = trained(study, false);
    const TrainingResult alone = trained(unshardedStudy(study), false);
    const TrainingResult wide = trained(studyIn("{}"), false);
    const double fell = wide.losses.front() - wide.losses.back();
    QVERIFY(fell > 0.0);
    for (std::size_t i = 0; i < narrow.losses.size(); ++i) {
        // Sums in another order round to other numbers of 8 bits now and then.
        QVERIFY2(std::abs(narrow.losses[i] - alone.losses[i]) < 0.02 * fell,
            qPrintable(QString("step %1: %2 and alone %3").arg(i).arg(narrow.losses[i]).arg(alone.losses[i])));
        QVERIFY2(std::abs(narrow.losses[i] - wide.losses[i]) < 0.2 * fell,
            qPrintable(QString("step %1: %2 and in 32 bits %3").arg(i).arg(narrow.losses[i]).arg(wide.losses[i])));
    }
    QVERIFY(narrow.losses != wide.losses);
}

MESHWRIGHT_TEST(TestOptimizers)

} // namespace tst_optimizers

#include "tst_optimizers.moc"
