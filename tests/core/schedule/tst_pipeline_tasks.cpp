// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/pipeline_tasks.h"
#include "core/schedule/stage_array.h"
#include "tests/test_class.h"

#include <array>
#include <set>

namespace tst_pipeline_tasks {

using namespace meshwright;

namespace {

/// "F0 F1 B0 ..": of several chunks "F1.0" is chunk 1, microbatch 0.
QString orderOf(const PipelineShape& shape, std::size_t stage)
{
    QStringList parts;
    for (const Task& task : pipelineTasks(shape)) {
        if (task.stage != stage)
            continue;
        const QString kind = task.kind == TaskKind::Forward ? "F"
            : task.passesGradients()                        ? "B"
            : task.kind == TaskKind::BackwardWeight         ? "W"
                                                            : "U";
        parts.append(kind == "U"    ? kind
                : shape.chunks == 1 ? QString("%1%2").arg(kind).arg(task.microbatch)
                                    : QString("%1%2.%3").arg(kind).arg(task.chunk).arg(task.microbatch));
    }
    return parts.join(' ');
}

/// Plays the orders with unbounded messages; false when stages wait for each other.
bool endsWithBlockingReceives(const PipelineShape& shape)
{
    std::vector<std::vector<Task>> lists(static_cast<std::size_t>(shape.stages));
    for (const Task& task : pipelineTasks(shape))
        lists[task.stage].push_back(task);
    std::set<std::tuple<TaskKind, std::int64_t, std::size_t>> done; // kind, piece, microbatch
    std::vector<std::size_t> next(lists.size(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t stage = 0; stage < lists.size(); ++stage) {
            while (next[stage] < lists[stage].size()) {
                const Task& task = lists[stage][next[stage]];
                const std::int64_t piece = shape.pieceOf(task);
                if (task.kind == TaskKind::Forward && piece > 0
                    && !done.contains({TaskKind::Forward, piece - 1, task.microbatch}))
                    break;
                if (task.passesGradients()
                    && (!done.contains({TaskKind::Forward, piece, task.microbatch})
                        || (piece + 1 < shape.pieces() && !done.contains({task.kind, piece + 1, task.microbatch}))))
                    break;
                if (task.kind == TaskKind::BackwardWeight && !done.contains({TaskKind::BackwardInput, piece, task.microbatch}))
                    break;
                done.insert({task.kind, piece, task.microbatch});
                ++next[stage];
                moved = true;
            }
        }
    }
    for (std::size_t stage = 0; stage < lists.size(); ++stage) {
        if (next[stage] != lists[stage].size())
            return false;
    }
    return true;
}

} // namespace

class TestPipelineTasks : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void orders_data();
    void orders();
    void nobodyWaitsInACircle();
    void whatComesBeforeTheUpdate();
    void namesOfArraysAreReadBack();
    void slotsAreTakenAnew_data();
    void slotsAreTakenAnew();
};

void TestPipelineTasks::orders_data()
{
    QTest::addColumn<int>("order");
    QTest::addColumn<int>("stages");
    QTest::addColumn<int>("chunks");
    QTest::addColumn<int>("microbatches");
    QTest::addColumn<int>("stage");
    QTest::addColumn<QString>("expected");
    const int gpipe = static_cast<int>(PipelineOrder::GPipe);
    const int one = static_cast<int>(PipelineOrder::OneForwardOneBackward);
    const int interleaved = static_cast<int>(PipelineOrder::Interleaved);
    QTest::newRow("one stage") << one << 1 << 1 << 2 << 0 << "F0 B0 F1 B1 U";
    QTest::newRow("GPipe") << gpipe << 2 << 1 << 3 << 0 << "F0 F1 F2 B0 B1 B2 U";
    QTest::newRow("1F1B, first of 3") << one << 3 << 1 << 4 << 0 << "F0 F1 F2 B0 F3 B1 B2 B3 U";
    QTest::newRow("1F1B, last of 3") << one << 3 << 1 << 4 << 2 << "F0 B0 F1 B1 F2 B2 F3 B3 U";
    QTest::newRow("1F1B, few microbatches") << one << 4 << 1 << 2 << 0 << "F0 F1 B0 B1 U";
    // p = 2, v = 2, m = 2: warm-up of stage 0 is 2 + 2 = 4 tasks, of stage 1 it is 2.
    QTest::newRow("interleaved, first") << interleaved << 2 << 2 << 2 << 0 << "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1 U";
    const int h1 = static_cast<int>(PipelineOrder::ZeroBubbleH1);
    const int h2 = static_cast<int>(PipelineOrder::ZeroBubbleH2);
    // Figure 3 of arXiv:2401.10241, with fewer microbatches: as in 1F1B, but weights wait for i later input gradients on stage i.
    QTest::newRow("ZB-H1, first of 3") << h1 << 3 << 1 << 4 << 0 << "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3 U";
    QTest::newRow("ZB-H1, last of 3") << h1 << 3 << 1 << 4 << 2 << "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 U";
    QTest::newRow("ZB-H1, one stage") << h1 << 1 << 1 << 2 << 0 << "F0 B0 W0 F1 B1 W1 U";
    QTest::newRow("ZB-H2, first of 2") << h2 << 2 << 1 << 4 << 0 << "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3 U";
    QTest::newRow("ZB-H2, last of 2") << h2 << 2 << 1 << 4 << 1 << "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 U";
    QTest::newRow("interleaved, last") << interleaved << 2 << 2 << 2 << 1 << "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1 U";
}

void TestPipelineTasks::orders()
{
    QFETCH(int, order);
    QFETCH(int, stages);
    QFETCH(int, chunks);
    QFETCH(int, microbatches);
    QFETCH(int, stage);
    QFETCH(QString, expected);
    const PipelineShape shape{stages, chunks, microbatches, static_cast<PipelineOrder>(order)};
    QCOMPARE(orderOf(shape, static_cast<std::size_t>(stage)), expected);
}

void TestPipelineTasks::nobodyWaitsInACircle()
{
    for (const PipelineOrder order : {PipelineOrder::GPipe, PipelineOrder::OneForwardOneBackward, PipelineOrder::Interleaved,
             PipelineOrder::ZeroBubbleH1, PipelineOrder::ZeroBubbleH2}) {
        for (std::int64_t stages = 1; stages <= 6; ++stages) {
            for (std::int64_t chunks = 1; chunks <= (order == PipelineOrder::Interleaved ? 4 : 1); ++chunks) {
                for (std::int64_t microbatches = 1; microbatches <= 12; ++microbatches) {
                    if (chunks > 1 && microbatches % stages != 0)
                        continue;
                    const PipelineShape shape{stages, chunks, microbatches, order};
                    QVERIFY(endsWithBlockingReceives(shape));
                    QCOMPARE(pipelineTasks(shape).size(),
                        static_cast<std::size_t>(stages * ((splitsBackward(order) ? 3 : 2) * chunks * microbatches + 1)));
                }
            }
        }
    }
}

/// Stages that share gradients add these up before the norm, which all have.
void TestPipelineTasks::whatComesBeforeTheUpdate()
{
    std::array<QStringList, 3> functions;
    for (const Task& task : pipelineTasks({3, 1, 2, PipelineOrder::OneForwardOneBackward}, true, {0, 2})) {
        if (isOncePerStep(task.kind))
            functions[task.stage].append(QString::fromStdString(task.function));
    }
    QCOMPARE(functions[0], (QStringList{"shared", "total", "norm", "update"}));
    QCOMPARE(functions[1], (QStringList{"norm", "update"}));
    QCOMPARE(functions[2], functions[0]);
}

void TestPipelineTasks::namesOfArraysAreReadBack()
{
    using Kind = StageArray::Kind;
    for (int kind = 0; kind <= static_cast<int>(Kind::DropoutPart); ++kind) {
        StageArray array{static_cast<Kind>(kind)};
        if (array.kind <= Kind::SharedCopy)
            array.name = "layers.0.w";
        else if (array.kind == Kind::Batch)
            array.name = "y";
        else if (array.kind == Kind::Metric)
            array.name = "loss";
        if (array.kind == Kind::SharedCopy || array.kind == Kind::Residual || array.kind == Kind::WeightResidual)
            array.number = 12;
        QVERIFY2(stageArrayOf(array.text()) == array, array.text().c_str());
    }
    QVERIFY(stageArrayOf("opt.m.layers.0.w").kind == Kind::Model);
    QVERIFY(stageArrayOf("residual.slope").kind == Kind::Model);
    QVERIFY(stageArrayOf("residual.3:sine(x, ..)") == (StageArray{Kind::Residual, "sine(x, ..)", 3}));
}

void TestPipelineTasks::slotsAreTakenAnew_data()
{
    QTest::addColumn<int>("order");
    QTest::newRow("GPipe") << static_cast<int>(PipelineOrder::GPipe);
    QTest::newRow("1F1B") << static_cast<int>(PipelineOrder::OneForwardOneBackward);
    QTest::newRow("ZB-H1") << static_cast<int>(PipelineOrder::ZeroBubbleH1);
    QTest::newRow("ZB-H2") << static_cast<int>(PipelineOrder::ZeroBubbleH2);
}

void TestPipelineTasks::slotsAreTakenAnew()
{
    QFETCH(int, order);
    const PipelineShape shape{4, 1, 8, static_cast<PipelineOrder>(order)};
    const SlotPlan plan = slotPlan(shape, pipelineTasks(shape));
    // GPipe holds all microbatches; 1F1B min(p - i, m) on stage i (semantics of both: in-flight microbatches); ZB-H1 p and ZB-H2 2p - 1 on
    // all, until the gradients of weights are made.
    for (std::size_t stage = 0; stage < 4; ++stage) {
        const std::int64_t held = shape.order == PipelineOrder::GPipe ? 8
            : shape.order == PipelineOrder::ZeroBubbleH1              ? 4
            : shape.order == PipelineOrder::ZeroBubbleH2              ? 7
                                                                      : 4 - static_cast<std::int64_t>(stage);
        QCOMPARE(plan.slots[stage], held);
    }
}

MESHWRIGHT_TEST(TestPipelineTasks)

} // namespace tst_pipeline_tasks

#include "tst_pipeline_tasks.moc"
