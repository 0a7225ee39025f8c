// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/pipeline.h"
#include "tests/test_class.h"

#include <cmath>

namespace tst_pipeline {

using namespace meshwright;
using namespace meshwright::sim;

/// Schedules played task by task against what is known of them.
class TestPipeline : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void balanced_data();
    void balanced();
    void zeroBubble_data();
    void zeroBubble();
    void inFlight_data();
    void inFlight();
    void shortCutEqualsPlay_data();
    void shortCutEqualsPlay();
    void unequalStagesCatchUp_data();
    void unequalStagesCatchUp();
    void slowStageRules();
    void messagesDelay();
};

namespace {

constexpr double kForward = 1.0;
constexpr double kBackward = 2.0;

std::vector<ChunkTime> even(std::int64_t chunks)
{
    return std::vector<ChunkTime>(static_cast<std::size_t>(chunks), ChunkTime{kForward, kBackward, kBackward / 2.0});
}

} // namespace

void TestPipeline::balanced_data()
{
    QTest::addColumn<int>("stages");
    QTest::addColumn<int>("virtualStages");
    QTest::addColumn<int>("microbatches");
    QTest::addColumn<int>("schedule");

    for (const int stages : {1, 2, 4, 8}) {
        for (const int microbatches : {stages, 2 * stages, 4 * stages}) {
            QTest::addRow("GPipe %d %d", stages, microbatches) << stages << 1 << microbatches << int(PipelineOrder::GPipe);
            QTest::addRow("1F1B %d %d", stages, microbatches)
                << stages << 1 << microbatches << int(PipelineOrder::OneForwardOneBackward);
            for (const int chunks : {2, 3})
                QTest::addRow("interleaved %d x %d %d", stages, chunks, microbatches)
                    << stages << chunks << microbatches << int(PipelineOrder::Interleaved);
        }
    }
}

void TestPipeline::balanced()
{
    QFETCH(int, stages);
    QFETCH(int, virtualStages);
    QFETCH(int, microbatches);
    QFETCH(int, schedule);
    PipelineClock clock;
    const auto chunks = even(stages * virtualStages);
    const double seconds = clock.playSeconds(chunks, stages, microbatches, static_cast<PipelineOrder>(schedule), 0.0, 0.0);
    const double busy = microbatches * virtualStages * (kForward + kBackward);
    // The share that idles is (p - 1) / (v m + p - 1).
    const double share = (stages - 1.0) / (virtualStages * microbatches + stages - 1.0);
    QCOMPARE(seconds, busy / (1.0 - share));
}

void TestPipeline::zeroBubble_data()
{
    QTest::addColumn<int>("stages");
    QTest::addColumn<int>("microbatches");
    QTest::addColumn<double>("input");
    QTest::addColumn<double>("weight");
    for (const int stages : {2, 4, 8}) {
        for (const int microbatches : {2 * stages, 5 * stages}) {
            QTest::addRow("equal %d %d", stages, microbatches) << stages << microbatches << 1.0 << 1.0;
            QTest::addRow("weights quicker %d %d", stages, microbatches) << stages << microbatches << 1.25 << 0.75;
            QTest::addRow("inputs slow %d %d", stages, microbatches) << stages << microbatches << 2.0 << 1.0;
        }
    }
}

/// Equal stages are idle for (p - 1)(F + B - W) under ZB-H1, and for (p - 1)(F + B - 2 W) under ZB-H2 (arXiv:2401.10241, table 1).
void TestPipeline::zeroBubble()
{
    QFETCH(int, stages);
    QFETCH(int, microbatches);
    QFETCH(double, input);
    QFETCH(double, weight);
    const std::vector<ChunkTime> chunks(static_cast<std::size_t>(stages), ChunkTime{1.0, input + weight, weight});
    const double busy = microbatches * (1.0 + input + weight);
    PipelineClock clock;
    const double h1 = clock.playSeconds(chunks, stages, microbatches, PipelineOrder::ZeroBubbleH1, 0.0, 0.0);
    QCOMPARE(h1, busy + (stages - 1) * (1.0 + input - weight));
    for (int stage = 0; stage < stages; ++stage)
        QCOMPARE(clock.inFlight(stage), std::int64_t{stages});
    const double h2 = clock.playSeconds(chunks, stages, microbatches, PipelineOrder::ZeroBubbleH2, 0.0, 0.0);
    QCOMPARE(h2, busy + (stages - 1) * (1.0 + input - 2.0 * weight));
    for (int stage = 0; stage < stages; ++stage)
        QCOMPARE(clock.inFlight(stage), std::int64_t{2 * stages - 1});
    const double plain = clock.playSeconds(chunks, stages, microbatches, PipelineOrder::OneForwardOneBackward, 0.0, 0.0);
    QVERIFY(h2 < h1 && h1 < plain);
}

void TestPipeline::inFlight_data()
{
    QTest::addColumn<int>("schedule");
    QTest::addColumn<int>("virtualStages");

    QTest::newRow("GPipe") << int(PipelineOrder::GPipe) << 1;
    QTest::newRow("1F1B") << int(PipelineOrder::OneForwardOneBackward) << 1;
    QTest::newRow("interleaved") << int(PipelineOrder::Interleaved) << 3;
    QTest::newRow("ZB-H1") << int(PipelineOrder::ZeroBubbleH1) << 1;
    QTest::newRow("ZB-H2") << int(PipelineOrder::ZeroBubbleH2) << 1;
}

void TestPipeline::inFlight()
{
    QFETCH(int, schedule);
    QFETCH(int, virtualStages);
    constexpr int kStages = 4;
    const auto order = static_cast<PipelineOrder>(schedule);
    for (const int microbatches : {4, 8, 16}) {
        PipelineClock clock;
        clock.playSeconds(even(kStages * virtualStages), kStages, microbatches, order, 0.0, 0.0);
        for (int stage = 0; stage < kStages; ++stage)
            QCOMPARE(static_cast<double>(clock.inFlight(stage)), heldChunks(order, kStages, stage, virtualStages, microbatches));
    }
}

void TestPipeline::shortCutEqualsPlay_data()
{
    QTest::addColumn<int>("stages");
    QTest::addColumn<int>("virtualStages");
    QTest::addColumn<int>("order");

    QTest::newRow("1F1B") << 4 << 1 << int(PipelineOrder::OneForwardOneBackward);
    QTest::newRow("interleaved") << 4 << 2 << int(PipelineOrder::Interleaved);
    QTest::newRow("ZB-H1") << 4 << 1 << int(PipelineOrder::ZeroBubbleH1);
    QTest::newRow("ZB-H2") << 4 << 1 << int(PipelineOrder::ZeroBubbleH2);
}

void TestPipeline::shortCutEqualsPlay()
{
    QFETCH(int, stages);
    QFETCH(int, virtualStages);
    std::vector<ChunkTime> chunks = even(stages * virtualStages);
    chunks.front().forward = 1.25; // uneven ends
    chunks.back().backward = 3.0;
    QFETCH(int, order);
    const auto schedule = static_cast<PipelineOrder>(order);
    PipelineClock clock;
    for (const int microbatches : {64, 96}) {
        const double played = clock.playSeconds(chunks, stages, microbatches, schedule, 0.125, 0.0625);
        const double short_ = clock.seconds(chunks, stages, microbatches, schedule, 0.125, 0.0625);
        QVERIFY2(std::abs(short_ / played - 1.0) < 1e-9, qPrintable(QString("%1 against %2").arg(short_).arg(played)));
    }
}

void TestPipeline::unequalStagesCatchUp_data()
{
    QTest::addColumn<int>("stages");
    QTest::addColumn<int>("turns");
    QTest::addColumn<double>("head");
    QTest::newRow("few layers less at the ends") << 4 << 2 << 0.2;
    QTest::newRow("a long head") << 4 << 2 << 3.0;
    QTest::newRow("many turns") << 4 << 4 << 0.2;
    QTest::newRow("eight stages") << 8 << 2 << 0.2;
}

/// One layer less at both ends, as 126 layers on 8 places have it: the stages between them are longest, and take their whole work in each
/// microbatch, however the first rounds went.
void TestPipeline::unequalStagesCatchUp()
{
    QFETCH(int, stages);
    QFETCH(int, turns);
    QFETCH(double, head);
    std::vector<ChunkTime> chunks(static_cast<std::size_t>(stages * turns), ChunkTime{16.0, 32.0, 16.0});
    chunks.front() = {15.0, 30.0, 15.0};
    chunks.back() = {15.0 + head, 30.0 + 2.0 * head, 15.0 + head};
    PipelineClock clock;
    constexpr int kMicrobatches = 512;
    const double quick = clock.seconds(chunks, stages, kMicrobatches, PipelineOrder::Interleaved, 0.0, 0.0);
    const double played = clock.playSeconds(chunks, stages, kMicrobatches, PipelineOrder::Interleaved, 0.0, 0.0);
    QVERIFY(quick >= kMicrobatches * turns * 48.0);
    QVERIFY2(std::abs(quick / played - 1.0) < 0.01, qPrintable(QString("%1 against %2").arg(quick).arg(played)));
}

void TestPipeline::slowStageRules()
{
    std::vector<ChunkTime> chunks = even(4);
    chunks[2] = {2.0, 4.0};
    PipelineClock clock;
    const double seconds = clock.playSeconds(chunks, 4, 100, PipelineOrder::OneForwardOneBackward, 0.0, 0.0);
    QVERIFY(seconds >= 100 * 6.0); // never less than the slow stage's own work
    QVERIFY(seconds <= 100 * 6.0 + 3 * 3.0); // and the passes through the others once
}

void TestPipeline::messagesDelay()
{
    PipelineClock clock;
    const auto chunks = even(4);
    const double without = clock.playSeconds(chunks, 4, 8, PipelineOrder::OneForwardOneBackward, 0.0, 0.0);
    const double with = clock.playSeconds(chunks, 4, 8, PipelineOrder::OneForwardOneBackward, 0.5, 0.0);
    QVERIFY(with >= without + 2 * 3 * 0.5); // the first microbatch there, its gradient back
}

MESHWRIGHT_TEST(TestPipeline)

} // namespace tst_pipeline

#include "tst_pipeline.moc"
