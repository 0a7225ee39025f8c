// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/search/plan_proof.h"
#include "sim/search/search_request.h"
#include "sim/search/step_bounds.h"
#include "sim/search/transformer_search.h"
#include "sim/session/search_study.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <limits>
#include <map>
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

SearchWork randomWork(int experts, std::mt19937_64& random)
{
    const auto oneOf = [&](std::initializer_list<std::int64_t> values) { return values.begin()[random() % values.size()]; };
    SearchWork work = workWith(experts);
    work.model.layers = oneOf({4, 6, 8, 16});
    work.model.heads = oneOf({8, 16, 32});
    work.model.keyValueHeads = oneOf({2, 8});
    work.model.hidden = oneOf({1024, 2048, 4096});
    work.model.ffn = work.model.hidden * oneOf({2, 4});
    work.model.vocabulary = oneOf({32000, 128256});
    work.model.tiedEmbeddings = random() % 2 == 0;
    work.sequence = oneOf({1024, 2048, 8192});
    work.model.maxPositions = work.sequence;
    work.globalBatch = oneOf({16, 32, 64});
    work.masters = random() % 2 == 0;
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
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<int>("experts");
    QTest::newRow("GPUs of a host") << "h100x8" << 0;
    QTest::newRow("GPUs of two hosts") << "h100x16" << 0;
    QTest::newRow("experts") << "h100x16" << 8;
    QTest::newRow("a torus of two axes") << "v5e-16" << 0;
    QTest::newRow("a torus of three axes") << "v5p-32" << 0;
    QTest::newRow("two slices") << "v5e-8x2" << 0;
}

/// Random layouts of random models, by the floor of their own pieces or of coarser ones: by more of them with MESHWRIGHT_DRAWS.
void TestPlanProof::boundsAreNeverAbove()
{
    QFETCH(QString, hardware);
    QFETCH(int, experts);
    const SearchMachine where = machine(hardware);
    const int draws = qEnvironmentVariableIsSet("MESHWRIGHT_DRAWS") ? qEnvironmentVariableIntValue("MESHWRIGHT_DRAWS") : 2;
    double tightness = 0.0;
    for (const quint64 seed : {quint64{1}, tests::freshSeed()}) {
        std::mt19937_64 random(seed);
        for (int model = 0; model < (draws + 7) / 8; ++model) {
            const SearchWork work = randomWork(experts, random);
            const TransformerSpace space(work, where, {}, 1, {});
            const StepBounds bounds(space);
            const FloorSimulator floorOf = floorSimulator(work, catalogue());
            std::map<Pieces, std::optional<StepFloor>> floors;
            for (int i = 0; i < std::min(draws, 8); ++i) {
                const Candidate& candidate = space.candidates()[random() % space.candidates().size()];
                const auto step = simulated(space, candidate);
                if (!step)
                    continue;
                double most = 0.0;
                for (const Pieces& pieces : bounds.piecesFor(candidate)) {
                    const auto [floor, isNew] = floors.try_emplace(pieces);
                    if (isNew)
                        floor->second = floorOf(bounds.layoutOf(pieces), bounds.fewestMicrobatches(pieces), where);
                    if (!floor->second)
                        continue;
                    const double least = bounds.leastSeconds(candidate, pieces, *floor->second);
                    most = std::max(most, least);
                    const FoundPlan plan = layoutOf(space, candidate);
                    std::string mesh;
                    for (const MeshAxis& axis : plan.mesh)
                        mesh += axis.name + "=" + std::to_string(axis.size) + " ";
                    QVERIFY2(least <= step->seconds * (1.0 + 1e-9),
                        qPrintable(QString(
                            "seed %1, model %2, draw %3: %4 > %5: %6, ZeRO %7, %8 x %9, %10 chunks, %11, sequences split: %12, "
                            "heads exchanged: %13; by stages %14, chunks %15, tensor %16, context %17, microbatch %18, recompute "
                            "%19")
                                       .arg(seed)
                                       .arg(model)
                                       .arg(i)
                                       .arg(least)
                                       .arg(step->seconds)
                                       .arg(QString::fromStdString(mesh))
                                       .arg(candidate.zero)
                                       .arg(plan.pipeline.microbatches)
                                       .arg(candidate.microbatch)
                                       .arg(candidate.chunks)
                                       .arg(QString::fromStdString(plan.recompute))
                                       .arg(candidate.sequenceParallel)
                                       .arg(candidate.ulysses)
                                       .arg(pieces.stages)
                                       .arg(pieces.chunks)
                                       .arg(pieces.tp)
                                       .arg(pieces.cp)
                                       .arg(pieces.microbatch)
                                       .arg(pieces.recompute)));
                }
                QVERIFY(most > 0.0);
                tightness = std::max(tightness, most / step->seconds);
            }
        }
    }
    QVERIFY2(tightness > 0.5, "bounds say something");
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
    options.floor
        = [](const FoundPlan&, std::optional<std::int64_t>, const SearchMachine&) { return std::optional<StepFloor>(); };
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
