// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/search/plan_proof.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/search_limits.h"
#include "sim/search/search_request.h"
#include "sim/search/transformer_search.h"
#include "sim/session/search_study.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <limits>
#include <random>

namespace tst_plan_proof {

using namespace meshwright;
using namespace meshwright::sim;

/// Bounds of simulated steps: never above one, and enough to show which plan is the quickest of all.
class TestPlanProof : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void boundsAreNeverAbove_data();
    void boundsAreNeverAbove();
    void nothingIsQuicker_data();
    void nothingIsQuicker();
    void chunksOfLossBoundNoWholeOne();
    void cutShortItBoundsAllTheSame();
};

namespace {

const Catalogue& catalogue()
{
    static const Catalogue kCatalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return kCatalogue;
}

SearchMachine machine(const QString& name)
{
    static const Calibration kCalibration = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    std::vector<std::string> notes;
    SearchWords words;
    words.hardware = {name.toStdString()};
    return valueOf(machinesOf(words, catalogue(), kCalibration, notes)).front();
}

SearchWork workWith(int experts)
{
    SearchWork work;
    work.model.name = "small";
    work.model.layers = 4;
    work.model.hidden = 1024;
    work.model.heads = work.model.keyValueHeads = 8;
    work.model.headDim = 128;
    work.model.ffn = 4096;
    work.model.vocabulary = 32000;
    work.model.maxPositions = 2048;
    work.model.experts = experts;
    work.model.expertsPerToken = experts > 0 ? 2 : 0;
    work.model.expertFfn = experts > 0 ? 2048 : 0;
    work.sequence = 2048;
    work.globalBatch = 8;
    return work;
}

std::optional<PlanTrial> simulated(const TransformerSpace& space, const Candidate& candidate)
{
    std::string whyNot;
    return planSimulator(space.work(), catalogue())(layoutOf(space, candidate), space.machine(), whyNot);
}

void addMachines()
{
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<int>("experts");
    QTest::addColumn<QString>("choices"); // that are fixed where all plans are simulated
    QTest::newRow("dense on GPUs") << "h100x8" << 0 << "microbatch=1";
    QTest::newRow("experts on GPUs") << "h100x8" << 8 << "microbatch=1,recompute=none";
    QTest::newRow("dense on TPUs") << "v5e-8" << 0 << "tensor=1,microbatch=1";
}

} // namespace

void TestPlanProof::boundsAreNeverAbove_data()
{
    addMachines();
    QTest::newRow("dense on hosts of GPUs") << "h100x32" << 0 << "";
    QTest::newRow("experts on a torus") << "v5e-32" << 8 << "";
}

void TestPlanProof::boundsAreNeverAbove()
{
    QFETCH(QString, hardware);
    QFETCH(int, experts);
    SearchWork work = workWith(experts);
    work.globalBatch = 64; // several microbatches of most layouts
    const SearchMachine where = machine(hardware);
    const TransformerSpace space(work, where, {}, 1, {});
    PlanExplorer explorer(space, {});
    const TrialField field{&explorer, {}, {}};
    SearchOptions options;
    options.floor = floorSimulator(work, catalogue());
    options.pass = passSimulator(work, catalogue());
    options.gap = 0.0;
    const auto fresh = tests::freshSeed();
    const int layouts = qEnvironmentVariableIsSet("MESHWRIGHT_LAYOUTS") ? qEnvironmentVariableIntValue("MESHWRIGHT_LAYOUTS") : 2;
    for (const quint64 seed : {quint64{1}, fresh}) {
        std::mt19937_64 random(seed);
        for (int i = 0; i < layouts; ++i) {
            const std::size_t index = random() % space.candidates().size();
            const Candidate& candidate = space.candidates()[index];
            const auto step = simulated(space, candidate);
            const double least = boundOf(field, index, options);
            QVERIFY(step);
            const FoundPlan plan = layoutOf(space, candidate);
            const bool isTooLarge = least == kInfinite && !step->fits;
            QVERIFY2(least > 0.0 && (isTooLarge || least <= step->seconds),
                qPrintable(
                    QString("seed %1: %2 > %3: %4 of %5 microbatches, chunks %6, ZeRO %7, sequence parallel %8, ulysses %9, %10")
                        .arg(seed)
                        .arg(least)
                        .arg(step->seconds)
                        .arg(QString::fromStdString(meshText(meshOf(candidate))))
                        .arg(plan.pipeline.microbatches)
                        .arg(candidate.chunks)
                        .arg(candidate.zero)
                        .arg(candidate.sequenceParallel)
                        .arg(candidate.ulysses)
                        .arg(QString::fromStdString(plan.recompute))));
        }
    }
}

void TestPlanProof::nothingIsQuicker_data()
{
    addMachines();
}

/// A space small enough to simulate all of it: the plan that is said to be the quickest is, and the bound is its step.
void TestPlanProof::nothingIsQuicker()
{
    QFETCH(QString, hardware);
    QFETCH(int, experts);
    const SearchWork work = workWith(experts);
    const SearchMachine where = machine(hardware);
    QFETCH(QString, choices);
    std::vector<FixedChoice> fixed = {{"context", "1"}, {"zero", "3"}, {"chunks", "1"}, {"schedule", "1f1b"}};
    for (const QString& choice : choices.split(','))
        fixed.push_back({choice.section('=', 0, 0).toStdString(), choice.section('=', 1).toStdString()});
    SearchOptions options;
    options.threads = 2;
    options.simulate = planSimulator(work, catalogue());
    options.floor = floorSimulator(work, catalogue());
    options.pass = passSimulator(work, catalogue());
    options.gap = 0.0;
    const SearchResult result = searchTransformer(work, {where}, fixed, options);
    QVERIFY(result.complete && result.isGapSimulated);
    QVERIFY(!result.plans.empty() && result.plans.front().simulatedSeconds);
    const double best = *result.plans.front().simulatedSeconds;
    QCOMPARE(result.lowerBoundSeconds, best);
    const TransformerSpace space(work, where, fixed, 1, {});
    QVERIFY2(result.simulated < static_cast<std::int64_t>(space.candidates().size()), "nothing was pruned");
    double quickest = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : space.candidates()) {
        const auto step = simulated(space, candidate);
        if (step && step->fits)
            quickest = std::min(quickest, step->seconds);
    }
    QCOMPARE(best, quickest);
}

/// The largest microbatches have their loss in chunks, whose logits are computed again: others compute less for a token.
void TestPlanProof::chunksOfLossBoundNoWholeOne()
{
    SearchWork work = workWith(0);
    work.model.vocabulary = 200000;
    work.globalBatch = 256;
    const SearchMachine where = machine("h100x8");
    const std::vector<FixedChoice> fixed
        = {{"context", "1"}, {"tensor", "1"}, {"pipeline", "1"}, {"fsdp", "8"}, {"recompute", "none"}};
    const TransformerSpace space(work, where, fixed, 1, {});
    PlanExplorer explorer(space, {});
    const auto planOf = [&](const Estimated& one) { return layoutOf(space, space.candidates()[one.index]); };
    SearchOptions options;
    options.simulate = planSimulator(work, catalogue());
    options.floor = floorSimulator(work, catalogue());
    std::optional<FoundPlan> slowest;
    std::optional<FoundPlan> quickest;
    std::int32_t chunks = 1;
    for (std::size_t i = 0; i < space.candidates().size(); ++i) {
        chunks = std::max(chunks, static_cast<std::int32_t>(space.lossChunks(space.candidates()[i])));
        FoundPlan plan = planOf({i});
        plan.candidate = i;
        const auto step = simulated(space, space.candidates()[i]);
        if (!step || !step->fits)
            continue;
        takeTrial(plan, *step);
        if (!slowest || plan.seconds() > slowest->seconds())
            slowest = plan;
        if (!quickest || plan.seconds() < quickest->seconds())
            quickest = plan;
    }
    QVERIFY(chunks > 1 && quickest && quickest->lossChunks == 1);
    const PlanProof proof = provedPlans({{&explorer, {}, planOf}}, {*slowest}, options);
    QVERIFY2(proof.lowerBoundSeconds <= quickest->seconds(),
        qPrintable(QString("%1 > %2").arg(proof.lowerBoundSeconds).arg(quickest->seconds())));
}

/// Where there is no time, the bound is that of nothing but products at the chip's peak.
void TestPlanProof::cutShortItBoundsAllTheSame()
{
    const SearchWork work = workWith(0);
    SearchOptions options;
    options.simulate = planSimulator(work, catalogue());
    options.floor = [](const FoundPlan&, const SearchMachine&) { return std::optional<ComputeFloor>(); };
    const SearchMachine where = machine("h100x8");
    const TransformerSpace space(work, where, {}, 1, {});
    PlanExplorer explorer(space, {});
    FoundPlan plan = layoutOf(space, space.candidates().front());
    const auto step = simulated(space, space.candidates().front());
    QVERIFY(step && step->fits);
    takeTrial(plan, *step);
    options.gap = 0.01;
    options.deadline = std::chrono::steady_clock::now();
    const auto planOf = [&](const Estimated& one) { return layoutOf(space, space.candidates()[one.index]); };
    const PlanProof proof = provedPlans({{&explorer, {}, planOf}}, {plan}, options);
    QVERIFY(!proof.complete);
    QVERIFY(proof.simulated.empty());
    QCOMPARE(proof.floors, std::int64_t{0});
    QVERIFY(proof.lowerBoundSeconds > 0.0 && proof.lowerBoundSeconds < step->seconds);
}

MESHWRIGHT_TEST(TestPlanProof)

} // namespace tst_plan_proof

#include "tst_plan_proof.moc"
