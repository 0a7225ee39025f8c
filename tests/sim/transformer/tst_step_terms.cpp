// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/step.h"

#include "core/support/resources.h"
#include "sim/hardware/catalogue.h"
#include "tests/test_class.h"

#include <cmath>
#include <functional>

namespace tst_step_terms {

using namespace meshwright;
using namespace meshwright::sim;

/// What single facts of a stack, a network or a routing add to a step: each against its own formula.
class TestStepTerms : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void traits_data();
    void traits();
    void gathersOfManyRanks();
    void recomputedLayersAreGatheredAgain();
    void addedGradients();
    void stragglers_data();
    void stragglers();
    void stagedNetwork_data();
    void stagedNetwork();
    void groupedRows_data();
    void groupedRows();
    void rowsPickedOneByOne();
    void capacityIsComputedInFull();
    void noRankIsBusierWhereAllHaveAllExperts();
    void waitsOfExpertLayers();
    void scalesOfNarrowProducts();
    void gatheredContext_data();
    void gatheredContext();
    void hostKeepsActivations_data();
    void hostKeepsActivations();
};

namespace {

using Change = std::function<void(TrainingPlan&, StackTraits&)>;

const Chip& chip(const char* name)
{
    static const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return *valueOf(catalogue.find(name)).chip;
}

TrainingPlan dense()
{
    TrainingPlan plan;
    plan.model.layers = 24;
    plan.model.hidden = 4096;
    plan.model.heads = plan.model.keyValueHeads = 32;
    plan.model.headDim = 128;
    plan.model.ffn = 16384;
    plan.model.vocabulary = 51200;
    plan.model.maxPositions = 2048;
    plan.work.sequence = 2048;
    plan.work.globalBatch = 64;
    return plan;
}

TrainingPlan routed(std::int64_t ep)
{
    TrainingPlan plan = dense();
    plan.model.experts = 16;
    plan.model.expertsPerToken = 2;
    plan.model.expertFfn = 4096;
    plan.layout.dp = 16;
    plan.layout.ep = ep;
    return plan;
}

StepEstimate estimate(
    const TrainingPlan& plan, const char* name = "a100", const StackTraits& traits = {}, const StackConstants& constants = {})
{
    ClusterChoice choice;
    choice.devices = plan.layout.deviceCount();
    return StepModel(chip(name), choice, constants, traits).estimate(plan);
}

} // namespace

void TestStepTerms::traits_data()
{
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("zero");
    QTest::addColumn<Change>("change");
    QTest::addColumn<bool>("slower");

    QTest::newRow("attention beside feed-forward")
        << 4 << 0 << Change([](TrainingPlan& plan, StackTraits&) { plan.details.parallelBlock = true; }) << false;
    QTest::newRow("weights not gathered ahead")
        << 1 << 3 << Change([](TrainingPlan&, StackTraits& traits) { traits.gathersAhead = false; }) << true;
    QTest::newRow("gathered one by one") << 1 << 3 << Change([](TrainingPlan&, StackTraits& traits) {
        traits.gathersAhead = false;
        traits.gathersSingly = true;
    }) << true;
    const Change apart = [](TrainingPlan& plan, StackTraits&) { plan.work.weightsApart = true; };
    QTest::newRow("weights gathered apart") << 1 << 3 << apart << true;
    QTest::newRow("gradients summed apart") << 1 << 0 << apart << true;
    QTest::newRow("gradients and weights apart") << 1 << 1 << apart << true;
}

void TestStepTerms::traits()
{
    QFETCH(int, tp);
    QFETCH(int, zero);
    QFETCH(Change, change);
    QFETCH(bool, slower);
    TrainingPlan plan = dense();
    plan.layout.tp = tp;
    plan.layout.dp = 64 / tp;
    plan.layout.zeroStage = zero;
    StackTraits traits;
    const StepEstimate before = estimate(plan, "a100", traits);
    change(plan, traits);
    const StepEstimate after = estimate(plan, "a100", traits);
    QCOMPARE(after.seconds > before.seconds, slower);
    if (plan.details.parallelBlock) // one of two sums, and the ends' collectives as before
        QVERIFY(after.tensor < 0.55 * before.tensor && after.tensor > 0.45 * before.tensor);
}

/// A ring's steps grow with its ranks: past some number more of them do not help, where every tensor has a ring of its own.
void TestStepTerms::gathersOfManyRanks()
{
    StackTraits traits;
    traits.gathersAhead = false;
    traits.gathersSingly = true;
    TrainingPlan plan = dense();
    plan.layout.zeroStage = 3;
    const auto perStep = [&](std::int64_t dp, bool singly) {
        traits.gathersSingly = singly;
        plan.layout.dp = plan.work.globalBatch = dp;
        return estimate(plan, "a100", traits).data;
    };
    // 2 gathers of 4 matrices and a scatter of these and 9 vectors a layer against 3 of the whole: the rest are starts, steps and lists.
    const double steps = perStep(1024, true) - perStep(1024, false);
    const double half = perStep(512, true) - perStep(512, false);
    QVERIFY(steps > 1.7 * half && steps < 2.3 * half);
}

void TestStepTerms::recomputedLayersAreGatheredAgain()
{
    StackTraits traits;
    traits.gathersAhead = false;
    traits.gathersSingly = true;
    TrainingPlan plan = dense();
    plan.layout.zeroStage = 3;
    plan.layout.dp = plan.work.globalBatch = 512;
    const auto perStep = [&](const char* policy) {
        plan.work.recompute = *recomputationOf(policy);
        return estimate(plan, "a100", traits).data;
    };
    const double kept = perStep("none");
    const double again = perStep("full");
    // One gather more than two gathers and a scatter, which has the vectors too.
    QVERIFY2(again > 1.15 * kept && again < 1.34 * kept, qPrintable(QString::number(again / kept)));
}

/// 32-bit sums beside 16-bit gradients: a wider copy of each (2 read, 4 written), then two read and one written, for each microbatch.
void TestStepTerms::addedGradients()
{
    StackTraits traits;
    traits.gradientBytes = 2.0;
    traits.addsGradients = true;
    TrainingPlan plan = dense();
    plan.model.tiedEmbeddings = true;
    const auto elementwise = [&](double accumulatorBytes) {
        traits.accumulatorBytes = accumulatorBytes;
        return estimate(plan, "a100", traits).elementwise;
    };
    const StackConstants constants;
    const DeviceCost curve(chip("a100"), {.constants = constants});
    const double layers = static_cast<double>(plan.model.layers) * rankParameters(plan).layer;
    const double inPlace = 6.0 * (plan.microbatches() - 1.0);
    const double expected = curve.streamSeconds(layers * (18.0 * plan.microbatches() - inPlace));
    QVERIFY(std::abs((elementwise(4.0) - elementwise(0.0)) / expected - 1.0) < 1e-9);
}

void TestStepTerms::stragglers_data()
{
    QTest::addColumn<double>("share");
    QTest::addColumn<double>("slowdown");
    QTest::addColumn<double>("hosts");
    QTest::addColumn<double>("expected");

    QTest::newRow("none is slow") << 0.0 << 0.1 << 1000.0 << 0.0;
    QTest::newRow("all are") << 1.0 << 0.1 << 1.0 << 0.1;
    QTest::newRow("one of two hundred, one host") << 0.005 << 0.1 << 1.0 << 0.0005;
    QTest::newRow("two hosts") << 0.5 << 0.1 << 2.0 << 0.075;
    QTest::newRow("very many") << 0.005 << 0.1 << 1e5 << 0.1;
}

void TestStepTerms::stragglers()
{
    QFETCH(double, share);
    QFETCH(double, slowdown);
    QFETCH(double, hosts);
    QFETCH(double, expected);
    StackConstants constants;
    constants.stragglerShare = share;
    constants.stragglerSlowdown = slowdown;
    QVERIFY(std::abs(stragglerDelay(constants, hosts) - expected) < 1e-12);
}

void TestStepTerms::stagedNetwork_data()
{
    QTest::addColumn<double>("share");

    QTest::newRow("three ways") << 1.0 / 3.0;
    QTest::newRow("half") << 0.5;
}

void TestStepTerms::stagedNetwork()
{
    QFETCH(double, share);
    StackConstants constants;
    constants.stagedShare = share;
    ClusterChoice choice;
    choice.devices = 16;
    const Cluster direct(chip("a100"), choice, constants);
    choice.stagesThroughHost = true;
    const Cluster staged(chip("a100"), choice, constants);
    QCOMPARE(staged.sendSeconds(1e9, 1), direct.sendSeconds(1e9, 1)); // inside a host
    const double moving = direct.sendSeconds(2e9, 8) - direct.sendSeconds(1e9, 8);
    QCOMPARE(staged.sendSeconds(2e9, 8) - staged.sendSeconds(1e9, 8), moving / share);
}

void TestStepTerms::groupedRows_data()
{
    QTest::addColumn<QString>("on");
    QTest::addColumn<double>("groups");
    QTest::addColumn<double>("rows");
    QTest::addColumn<double>("computed"); // of all groups

    QTest::newRow("one group shares no tile") << "v5p" << 1.0 << 1024.0 << 1024.0;
    QTest::newRow("each border is computed twice") << "v5p" << 4.0 << 1024.0 << 4096.0 + 3 * 512.0;
    QTest::newRow("DeepSeek's: half as much again") << "tpu7x" << 256.0 << 1024.0 << 262144.0 + 255 * 512.0;
    QTest::newRow("GPUs start one product each") << "h100" << 4.0 << 1024.0 << 4096.0;
}

void TestStepTerms::groupedRows()
{
    QFETCH(QString, on);
    QFETCH(double, groups);
    QFETCH(double, rows);
    QFETCH(double, computed);
    const DeviceCost curve(chip(on.toUtf8().constData()));
    QCOMPARE(groups * curve.groupedRows(groups, rows), computed);
}

void TestStepTerms::rowsPickedOneByOne()
{
    QCOMPARE(DeviceCost(chip("v5p")).pickedRowShare(), 8.0); // a tile has 8 rows
    QCOMPARE(DeviceCost(chip("a100")).pickedRowShare(), 1.0);
    // Four passes, of which each reads 8 rows and writes one, where streaming reads one: 7 / 2 of it more.
    TrainingPlan plan = routed(1);
    plan.details.expertCapacity = 1.0;
    plan.details.dispatchesByProduct = true;
    const double without = estimate(plan, "v5p").elementwise;
    plan.details = {};
    const double with = estimate(plan, "v5p").elementwise;
    const double rows = 2.0 * 2048 * 64 / 16;
    const DeviceCost curve(chip("v5p"));
    const double expected = 24 * curve.streamSeconds(rows * 4096 * (4 * 2.0 * 9.0 + 4.0));
    QVERIFY2(std::abs((with - without) / expected - 1.0) < 1e-6, qPrintable(QString::number((with - without) / expected)));
}

void TestStepTerms::capacityIsComputedInFull()
{
    TrainingPlan plan = routed(1);
    plan.details.expertCapacity = 1.0;
    const double whole = estimate(plan).products;
    plan.details.expertCapacity = 2.0;
    const double twice = estimate(plan).products;
    QVERIFY(twice > 1.2 * whole && twice < 2.0 * whole);
    plan.details.dispatchesByProduct = true;
    QVERIFY(estimate(plan).products > 1.1 * twice);
}

void TestStepTerms::noRankIsBusierWhereAllHaveAllExperts()
{
    for (const std::int64_t ep : {1, 8}) {
        TrainingPlan plan = routed(ep);
        const double even = estimate(plan).products;
        plan.layout.expertImbalance = 1.5;
        const double uneven = estimate(plan).products;
        QCOMPARE(uneven > even, ep > 1);
    }
}

void TestStepTerms::waitsOfExpertLayers()
{
    StackConstants constants;
    TrainingPlan plan = routed(8);
    plan.model.denseLayers = 4;
    const double before = estimate(plan, "a100", {}, constants).seconds;
    constants.expertLayerSeconds = 2e-3;
    // 4 microbatches, 20 layers with experts.
    QVERIFY(std::abs(estimate(plan, "a100", {}, constants).seconds - before - 4 * 20 * 2e-3) < 1e-9);
    plan = dense();
    QCOMPARE(estimate(plan, "a100", {}, constants).seconds, estimate(plan).seconds);
}

/// One scale a tensor: what is gathered is half as wide. One a row: cast twice, and gathered as it was.
void TestStepTerms::scalesOfNarrowProducts()
{
    TrainingPlan plan = dense();
    plan.layout.tp = 8;
    plan.layout.sequenceParallel = true;
    plan.work.format = MathFormat::Fp8;
    const StepEstimate wide = estimate(plan, "h100");
    plan.layout.gathersNarrow = true;
    const StepEstimate narrow = estimate(plan, "h100");
    QCOMPARE(narrow.elementwise, wide.elementwise);
    // 64 microbatches and 24 layers, of which each gathers 6 times: forward 2, backward 2, and 2 again for the gradients of weights.
    ClusterChoice choice;
    choice.devices = 8;
    const Cluster cluster(chip("h100"), choice, {});
    const double bytes = 2.0 * 2048 * 4096;
    const double saved
        = cluster.allGatherSeconds(bytes, cluster.group(8, 1)) - cluster.allGatherSeconds(bytes / 2, cluster.group(8, 1));
    QVERIFY(saved > 0.0 && std::abs(wide.tensor - narrow.tensor - 64 * 24 * 6 * saved) < 1e-9);
    plan.work.recipe = Fp8Recipe::Rowwise;
    const StepEstimate rows = estimate(plan, "h100");
    QCOMPARE(rows.tensor, wide.tensor);
    QVERIFY(rows.elementwise > 1.1 * wide.elementwise);
    QVERIFY(rows.products > 1.1 * wide.products);
}

void TestStepTerms::gatheredContext_data()
{
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("keyHeads");
    QTest::addColumn<bool>("shows");

    QTest::newRow("inside a host") << 1 << 8 << false;
    QTest::newRow("between hosts, eight repeated for 32") << 8 << 8 << true;
    QTest::newRow("between hosts, none is repeated") << 8 << 32 << true;
}

/// One gather hides behind one part of attention, a ring's step behind each; and repeated heads are four times the bytes.
void TestStepTerms::gatheredContext()
{
    QFETCH(int, tp);
    QFETCH(int, keyHeads);
    QFETCH(bool, shows);
    TrainingPlan plan = dense();
    plan.model.keyValueHeads = keyHeads;
    plan.work.sequence = 524288;
    plan.layout.tp = tp;
    plan.layout.cp = 8;
    const double ring = estimate(plan, "h100").context;
    plan.layout.gathersContext = true;
    const double gathered = estimate(plan, "h100").context;
    QCOMPARE(gathered > ring, shows);
    plan.model.keyValueHeads = 32;
    QVERIFY(!shows || std::abs(estimate(plan, "h100").context / gathered - 1.0) < 1e-9); // whatever is repeated
}

void TestStepTerms::hostKeepsActivations_data()
{
    QTest::addColumn<double>("link");
    QTest::addColumn<bool>("waits");

    QTest::newRow("not known") << 0.0 << false;
    QTest::newRow("as quick as memory") << 1e12 << false;
    QTest::newRow("slow") << 1e8 << true;
}

/// What the host's memory keeps leaves beside the forward pass and comes back beside the backward one; past these the link rules.
void TestStepTerms::hostKeepsActivations()
{
    QFETCH(double, link);
    QFETCH(bool, waits);
    TrainingPlan plan = dense();
    plan.work.recompute = *recomputationOf("full");
    Chip kept = chip("v5e");
    kept.hostLinkBytesPerSecond.reset();
    StackConstants constants;
    constants.overlapSlowdown = 0.0;
    const double before = StepModel(kept, {}, constants, {}).estimate(plan).seconds;
    plan.work.recompute.offloaded = 1.0;
    if (link > 0.0)
        kept.hostLinkBytesPerSecond = Figure{link, {}};
    const double after = StepModel(kept, {}, constants, {}).estimate(plan).seconds;
    QCOMPARE(after > before, waits);
    // Then nothing else matters: 64 microbatches and 24 layers send and fetch their input, 2 bytes of 2,048 x 4,096 each.
    const double moving = 64.0 * 24.0 * 2.0 * (2.0 * 2048.0 * 4096.0) / 1e8;
    QVERIFY(!waits || (after > moving && after < 1.02 * moving));
}

MESHWRIGHT_TEST(TestStepTerms)

} // namespace tst_step_terms

#include "tst_step_terms.moc"
