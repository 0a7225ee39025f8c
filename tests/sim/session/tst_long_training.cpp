// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"
#include "tests/test_class.h"

#include <malloc.h>

#include <memory>
#include <vector>

namespace tst_long_training {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

/// Bytes that are allocated and not given back, in all of malloc's arenas. A sanitizer's allocator says 0: it looks for leaks itself.
std::size_t liveBytes()
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

Study studyOf(const QString& parts)
{
    const QString text = QStringLiteral("meshwright: 1\n"
                                        "model: {mlp: {layers: [16, 16, 16], activation: tanh, loss: mse}}\n"
                                        "batch: 16\n"
                                        "%1")
                             .arg(parts);
    auto study = readStudy(text.toStdString(), "study");
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *std::move(study);
}

constexpr int kSteps = 1000;
constexpr int kFirst = 250; ///< by now everything that is kept from step to step is there
constexpr std::size_t kSmallestArray = 64; ///< a bias of 16

/// What a run's lists of figures may take in the steps that are watched: three numbers for each, and as many in reserve.
constexpr std::size_t kFigures = 6 * 8 * (kSteps - kFirst);

} // namespace

/// Memory stays what it is, however long a training runs.
class TestLongTraining : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void keepsNothing_data();
    void keepsNothing();
    void aLeakWouldShow();
};

void TestLongTraining::keepsNothing_data()
{
    QTest::addColumn<QString>("parts");
    QTest::newRow("data parallel")
        << "mesh: {data: 2}\nsharding: {x: [data], y: [data]}\noptimizer: {sgd: {learning_rate: 0.01}}\n"
           "train: {steps: 1000, data: random}\n";
    QTest::newRow("fully sharded, clipped Adam, accumulated")
        << "mesh: {data: 2}\nsharding: {x: [data], y: [data], match: [{path: '*.w', spec: [data]}]}\n"
           "optimizer: {adam: {learning_rate: 0.001, clip_norm: 1.0}}\ntrain: {steps: 1000, data: random, accumulate: 2}\n";
    QTest::newRow("pipeline") << "mesh: {pipe: 2}\noptimizer: {sgd: {learning_rate: 0.01}}\n"
                                 "pipeline: {axis: pipe, stages: 2, microbatches: 2}\ntrain: {steps: 1000, data: random}\n";
}

/// One array that is left behind in each step would be 48,000 bytes; 36,000 are allowed.
void TestLongTraining::keepsNothing()
{
    QFETCH(QString, parts);
    static_assert(kFigures < kSmallestArray * (kSteps - kFirst));
    std::size_t before = 0;
    std::size_t after = 0;
    const auto result = trainStudy(studyOf(parts),
        {.permits = 1}, // the panels of a second product at once would be made whenever two first meet
        [&](const TrainingProgress& progress) {
            if (progress.step == kFirst)
                before = liveBytes();
            if (progress.step == kSteps)
                after = liveBytes();
        },
        {});
    QVERIFY2(result, result ? "" : describe(result.error()).c_str());
    QCOMPARE(result->losses.size(), std::size_t{kSteps + 1});
    QVERIFY2(after <= before + kFigures, qPrintable(QString("%1 bytes, then %2").arg(before).arg(after)));
}

void TestLongTraining::aLeakWouldShow()
{
    const std::size_t before = liveBytes();
    if (before == 0)
        QSKIP("this allocator does not count");
    std::vector<std::unique_ptr<char[]>> kept(kSteps - kFirst);
    const std::size_t list = liveBytes();
    for (auto& array : kept)
        array = std::make_unique<char[]>(kSmallestArray);
    QVERIFY(liveBytes() > list + kFigures);
}

MESHWRIGHT_TEST(TestLongTraining)

} // namespace tst_long_training

#include "tst_long_training.moc"
