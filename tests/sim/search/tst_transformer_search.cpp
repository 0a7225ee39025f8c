// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/plan_trials.h"
#include "sim/search/search_output.h"
#include "sim/search/search_request.h"
#include "sim/search/transformer_search.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <random>

namespace tst_transformer_search {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue kCatalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return kCatalogue;
}

const Calibration& calibration()
{
    static const Calibration kCalibration = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    return kCalibration;
}

SearchMachine machine(const char* name)
{
    std::vector<std::string> notes;
    SearchWords words;
    words.hardware = {name};
    return valueOf(machinesOf(words, catalogue(), calibration(), notes)).front();
}

/// A model of about 0.4 G parameters: small spaces.
SearchWork smallWork(std::int64_t batch = 64)
{
    SearchWork work;
    work.model.name = "small";
    work.model.layers = 16;
    work.model.hidden = 1024;
    work.model.heads = work.model.keyValueHeads = 16;
    work.model.headDim = 64;
    work.model.ffn = 4096;
    work.model.vocabulary = 32000;
    work.model.maxPositions = 2048;
    work.sequence = 2048;
    work.globalBatch = batch;
    return work;
}

SearchWork workOfModel(const char* name, const char* tokens, const char* sequence)
{
    SearchWords words;
    words.model = name;
    words.tokens = tokens;
    words.sequence = sequence;
    return valueOf(workOf(words));
}

SearchOptions withThreads(unsigned threads)
{
    SearchOptions options;
    options.threads = threads;
    return options;
}

/// As if each step took what its estimate says.
SearchOptions asEstimated(unsigned threads)
{
    SearchOptions options = withThreads(threads);
    options.simulate = [](const FoundPlan& plan, const SearchMachine&, std::string&) {
        const auto reserve = std::ranges::find(plan.memory, std::string("reserve"), &NamedShare::name);
        return std::optional(PlanTrial{plan.modelSeconds, plan.peakBytes, reserve == plan.memory.end() ? 0.0 : reserve->amount,
            plan.capacityBytes, plan.fits, plan.mfu, plan.boundBy, plan.time, plan.memory, {}});
    };
    return options;
}

/// The result without what was measured.
std::string stable(SearchResult result)
{
    result.wallSeconds = result.firstPlanSeconds = 0.0;
    return searchJson(result);
}

} // namespace

/// The search over layouts of transformers.
class TestTransformerSearch : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void boundsAreNeverAbove_data();
    void boundsAreNeverAbove();
    void findsTheOptimum();
    void nothingIsBetterInSmallSpaces_data();
    void nothingIsBetterInSmallSpaces();
    void sameForAnyNumberOfThreads();
    void moreMemoryIsNeverSlower();
    void interruptedKeepsTheBest();
    void biasesLieAsTheirProducts_data();
    void biasesLieAsTheirProducts();
    void meshesMultiplyToTheDevices();
    void sixtyFourDevices();
    void sequencesAreSplitEvenly();
    void maxTextRecomputes();
    void refusedLayoutsAreNoPlans();
    void notSimulatedOnce_data();
    void notSimulatedOnce();
    void placesOfAxes_data();
    void placesOfAxes();
    void freerIsNeverSlower_data();
    void freerIsNeverSlower();
    void expertsAreSplitOnce_data();
    void expertsAreSplitOnce();
    void infeasibleSaysWhatWouldFit();
    void chipsAndPrices();
};

void TestTransformerSearch::boundsAreNeverAbove_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("hardware");

    QTest::newRow("dense on GPUs") << "llama3_8b"
                                   << "h100x64";
    QTest::newRow("dense on TPUs") << "llama3_8b"
                                   << "v5e-64";
    QTest::newRow("experts") << "mixtral_8x7b"
                             << "h100x64";
    QTest::newRow("deep") << "llama3_405b"
                          << "h100x512";
}

void TestTransformerSearch::boundsAreNeverAbove()
{
    QFETCH(QString, model);
    QFETCH(QString, hardware);
    const SearchMachine where = machine(hardware.toUtf8().constData());
    const TransformerSpace space(workOfModel(model.toUtf8().constData(), "1M", "4k"), where, {}, 1, {});
    QVERIFY(space.candidates().size() > 1000);
    StepModel stepModel(where.chip, where.cluster, where.constants, where.traits);
    TrainingPlan plan = space.emptyPlan();
    std::mt19937 random(7);
    constexpr int kLayouts = 5000; // of 20,000
    for (int i = 0; i < kLayouts; ++i) {
        const Candidate& candidate = space.candidates()[random() % space.candidates().size()];
        space.apply(candidate, plan);
        QVERIFY2(checkPlan(plan), qPrintable(QString::fromStdString(meshText(meshOf(candidate)))));
        QCOMPARE(plan.layout.deviceCount(), where.cluster.devices);
        const StepEstimate step = stepModel.estimate(plan);
        const QString what = QString(
            "%1 zero %7 shards %8 recompute=%9 sequence parallel %10 %11 pp %2 chunks %3 microbatch %4: bound %5, estimate %6")
                                 .arg(QString::fromStdString(meshText(meshOf(candidate))))
                                 .arg(candidate.pp)
                                 .arg(candidate.chunks)
                                 .arg(candidate.microbatch)
                                 .arg(candidate.seconds)
                                 .arg(step.seconds)
                                 .arg(candidate.zero)
                                 .arg(candidate.fsdp)
                                 .arg(space.recomputeName(candidate))
                                 .arg(candidate.sequenceParallel)
                                 .arg(scheduleName(candidate.schedule));
        QVERIFY2(candidate.seconds <= step.seconds, qPrintable(what));
        QVERIFY2(candidate.bytes <= step.memory.total(), qPrintable(what));
        QVERIFY2(candidate.seconds >= 0.25 * step.seconds, qPrintable("a bound that prunes nothing: " + what));
    }
}

void TestTransformerSearch::findsTheOptimum()
{
    for (const char* hardware : {"h100x8", "v5e-16"}) {
        const SearchMachine where = machine(hardware);
        const SearchResult result = searchTransformer(smallWork(), {where}, {}, withThreads(2));
        QVERIFY(result.complete);
        QVERIFY(!result.plans.empty());
        const TransformerSpace space(smallWork(), where, {}, 1, {});
        StepModel model(where.chip, where.cluster, where.constants, where.traits);
        TrainingPlan plan = space.emptyPlan();
        double best = 1e300;
        for (const Candidate& candidate : space.candidates()) {
            space.apply(candidate, plan);
            const StepEstimate step = model.estimate(plan);
            if (step.fits)
                best = std::min(best, step.seconds);
        }
        QCOMPARE(result.plans.front().modelSeconds, best);
        QCOMPARE(result.gap, 0.0);
        QVERIFY(result.lowerBoundSeconds <= best);
        QVERIFY(result.pruned > result.candidates / 2);
        double parts = 0.0;
        for (const NamedShare& share : result.plans.front().time)
            parts += share.amount;
        QVERIFY(std::abs(parts - best) < 1e-6 * best);
    }
}

void TestTransformerSearch::nothingIsBetterInSmallSpaces_data()
{
    QTest::addColumn<QString>("hardware");
    for (const char* hardware : {"h100x2", "h100x4", "h100x8", "a100x4", "v5e-4", "v5e-8", "v3-8", "h100x16"})
        QTest::newRow(hardware) << hardware;
}

/// 25 models on each machine, 200 spaces in all: every layout of a space is estimated, and none that fits takes less than what the search
/// finds, by its memory, with and without choices that are fixed.
void TestTransformerSearch::nothingIsBetterInSmallSpaces()
{
    QFETCH(QString, hardware);
    SearchMachine where = machine(hardware.toUtf8().constData());
    std::mt19937 random(
        static_cast<std::mt19937::result_type>(where.cluster.devices) * 31U + static_cast<unsigned>(hardware[0].unicode()));
    const auto oneOf = [&](std::initializer_list<std::int64_t> values) { return *(values.begin() + random() % values.size()); };
    for (int i = 0; i < 25; ++i) {
        SearchWork work = smallWork(oneOf({1, 2, 4, 6, 8, 16}));
        work.model.layers = oneOf({1, 2, 3, 4, 6, 8});
        work.model.heads = oneOf({1, 2, 4, 6, 8});
        work.model.keyValueHeads = work.model.heads % 2 == 0 ? work.model.heads / oneOf({1, 2}) : work.model.heads;
        work.model.headDim = oneOf({64, 128});
        work.model.hidden = oneOf({256, 512, 1024});
        work.model.ffn = oneOf({1024, 1536, 4096});
        work.model.tiedEmbeddings = random() % 2 == 0;
        if (random() % 4 == 0) {
            work.model.experts = oneOf({2, 4, 8});
            work.model.expertsPerToken = 2;
            work.model.expertFfn = 512;
        }
        work.sequence = oneOf({256, 1024, 2048});
        std::vector<FixedChoice> fixed;
        if (random() % 3 == 0)
            fixed.push_back({"zero", std::to_string(random() % 4)});
        if (random() % 3 == 0)
            where.cluster.hbmBytes = static_cast<double>(oneOf({1, 2, 4, 16})) * 1e9;
        const SearchResult result = searchTransformer(work, {where}, fixed, withThreads(1));
        QVERIFY(result.complete);
        const TransformerSpace space(work, where, fixed, 1, {});
        StepModel model(where.chip, where.cluster, where.constants, where.traits);
        TrainingPlan plan = space.emptyPlan();
        double best = std::numeric_limits<double>::infinity();
        for (const Candidate& candidate : space.candidates()) {
            space.apply(candidate, plan);
            const StepEstimate step = model.estimate(plan);
            QVERIFY(candidate.seconds <= step.seconds && candidate.bytes <= step.memory.total());
            if (step.fits)
                best = std::min(best, step.seconds);
        }
        const bool found = !result.plans.empty() && result.plans.front().fits;
        QCOMPARE(found, best < std::numeric_limits<double>::infinity());
        if (!found)
            continue;
        QCOMPARE(result.plans.front().modelSeconds, best);
        QCOMPARE(result.gap, 0.0);
    }
}

void TestTransformerSearch::sameForAnyNumberOfThreads()
{
    const SearchWork work = workOfModel("llama3_8b", "1M", "4k");
    const std::string one = stable(searchTransformer(work, {machine("h100x32")}, {}, withThreads(1)));
    QCOMPARE(stable(searchTransformer(work, {machine("h100x32")}, {}, withThreads(3))), one);
    QVERIFY(one.find("\"plans\": []") == std::string::npos);
}

void TestTransformerSearch::moreMemoryIsNeverSlower()
{
    double before = 1e300;
    for (const double gigabytes : {20.0, 30.0, 40.0, 60.0, 80.0, 160.0}) {
        SearchMachine where = machine("h100x16");
        where.cluster.hbmBytes = gigabytes * 1e9;
        const SearchResult result = searchTransformer(workOfModel("llama3_8b", "256k", "4k"), {where}, {}, asEstimated(2));
        if (!result.plans.front().fits)
            continue;
        QVERIFY(result.plans.front().modelSeconds <= before);
        QVERIFY(result.plans.front().peakBytes <= gigabytes * 1e9);
        QVERIFY(result.secondsPerGib.value_or(-1.0) >= 0.0);
        before = result.plans.front().modelSeconds;
    }
    QVERIFY(before < 1e300);
}

void TestTransformerSearch::interruptedKeepsTheBest()
{
    std::stop_source source;
    SearchOptions options = withThreads(1);
    options.stop = source.get_token();
    options.top = 1000; // much to look at
    int rounds = 0;
    options.progress = [&](const SearchProgress& progress) {
        if (++rounds == 2 && progress.candidates > 0)
            source.request_stop();
    };
    const SearchResult result = searchTransformer(workOfModel("llama3_8b", "1M", "4k"), {machine("h100x64")}, {}, options);
    QVERIFY(!result.complete);
    QVERIFY(!result.plans.empty());
    QVERIFY(result.lowerBoundSeconds > 0.0);
    QVERIFY(result.lowerBoundSeconds <= result.plans.front().modelSeconds);
    QVERIFY(result.gap >= 0.0 && result.gap < 1.0);
}

void TestTransformerSearch::biasesLieAsTheirProducts_data()
{
    QTest::addColumn<int>("tensor");
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("spec"); // empty: whole
    QTest::newRow("queries") << 4 << "layers.attention.q.b"
                             << "P(None, 'tensor', None)";
    QTest::newRow("up") << 4 << "layers.ffn.up.b"
                        << "P(None, 'tensor')";
    QTest::newRow("summed over devices before it is added") << 4 << "layers.ffn.down.b"
                                                            << "";
    QTest::newRow("no tensor parallelism") << 1 << "layers.ffn.up.b"
                                           << "";
}

/// A bias of what tensor parallelism splits is split with it: else its gradient is gathered, and summed over data ranks, in each microbatch.
void TestTransformerSearch::biasesLieAsTheirProducts()
{
    QFETCH(int, tensor);
    QFETCH(QString, name);
    QFETCH(QString, spec);
    Candidate candidate;
    candidate.dp = 2;
    candidate.tp = tensor;
    QString found;
    for (const auto& [array, text] : specsOf(candidate, workOfModel("gpt2", "64k", "1k").model)) {
        if (array == name.toStdString())
            found = QString::fromStdString(text);
    }
    QCOMPARE(found, spec);
}

void TestTransformerSearch::meshesMultiplyToTheDevices()
{
    const SearchResult result
        = searchTransformer(workOfModel("mixtral_8x7b", "1M", "4k"), {machine("h100x64")}, {}, asEstimated(2));
    QVERIFY(!result.plans.empty() && !result.front.empty());
    for (const std::vector<FoundPlan>& plans : {result.plans, result.front}) {
        for (const FoundPlan& plan : plans) {
            std::int64_t devices = 1;
            for (const MeshAxis& axis : plan.mesh)
                devices *= axis.size;
            QCOMPARE(devices, std::int64_t{64});
            QVERIFY(plan.fits);
            QVERIFY(!plan.why.empty());
            QVERIFY(!plan.specs.empty());
            QVERIFY(plan.modelSeconds >= result.lowerBoundSeconds);
        }
    }
    for (std::size_t i = 1; i < result.front.size(); ++i) {
        QVERIFY(result.front[i].modelSeconds >= result.front[i - 1].modelSeconds);
        QVERIFY(result.front[i].peakBytes < result.front[i - 1].peakBytes);
    }
}

/// The worked check: 64 devices, a transformer, meshes (64, 1), (32, 2), (16, 4), (8, 8), (1, 64).
void TestTransformerSearch::sixtyFourDevices()
{
    SearchWork work = smallWork(128);
    work.model.hidden = 8192;
    work.model.heads = work.model.keyValueHeads = 64;
    work.model.headDim = 128;
    work.model.ffn = 32768;
    work.model.layers = 8;
    std::vector<double> times;
    for (const char* tensor : {"1", "2", "4", "8", "64"}) {
        const SearchResult result = searchTransformer(
            work, {machine("h100x64")}, {{"tensor", tensor}, {"pipeline", "1"}, {"context", "1"}}, withThreads(2));
        QVERIFY2(!result.plans.empty() && result.plans.front().fits, tensor);
        times.push_back(result.plans.front().modelSeconds);
    }
    // 262,144 tokens keep the weights' collectives hidden: each step towards tensor parallelism costs exposed collectives of activations, and
    // those that leave the host cost most.
    QVERIFY2(times[0] < times[2] && times[2] < times[3] && times[3] < times[4],
        qPrintable(QString("%1 %2 %3 %4 %5").arg(times[0]).arg(times[1]).arg(times[2]).arg(times[3]).arg(times[4])));
    QVERIFY(times[4] > 2.0 * times[3]);
    // Found at once, the reasons are there.
    SearchOptions options = asEstimated(2);
    options.top = 40;
    const SearchResult all = searchTransformer(work, {machine("h100x64")}, {{"pipeline", "1"}, {"context", "1"}}, options);
    bool crosses = false;
    for (const FoundPlan& plan : all.plans) {
        if (plan.mesh.back().name == "tensor" && plan.mesh.back().size >= 16) {
            crosses = true;
            const auto spans = [](const std::string& sentence) { return sentence.find(" spans ") != std::string::npos; };
            QVERIFY2(std::ranges::any_of(plan.why, spans), plan.why.front().c_str());
        }
    }
    QVERIFY(crosses);
    bool megatron = false;
    for (const TemplateScore& score : all.templates) {
        QVERIFY2(!score.why.empty(), score.name.c_str());
        megatron = megatron || (score.name == "tensor x data" && score.loss > 0.0 && score.why.find('%') != std::string::npos);
    }
    QVERIFY(megatron);
}

/// Tensor ranks split the sequence between products evenly, or not at all.
void TestTransformerSearch::sequencesAreSplitEvenly()
{
    SearchWork work = smallWork(24);
    work.model.heads = work.model.keyValueHeads = 24;
    work.model.ffn = 4608;
    const TransformerSpace space(work, machine("h100x24"), {}, 1, {});
    bool splits = false;
    for (const Candidate& c : space.candidates()) {
        splits = splits || c.tp % 3 == 0;
        QVERIFY(!c.sequenceParallel || work.sequence % (std::int64_t{c.tp} * c.cp) == 0);
    }
    QVERIFY(splits);
}

/// MaxText makes something of each layer again, whatever its policy: none is not among those that are tried.
void TestTransformerSearch::maxTextRecomputes()
{
    SearchMachine where = machine("v5e-8");
    where.stack = "maxtext";
    const TransformerSpace space(smallWork(), where, {}, 1, {});
    std::set<std::string> policies;
    for (const Candidate& c : space.candidates())
        policies.insert(space.recomputeName(c));
    QVERIFY(policies.contains("minimal_with_context") && policies.contains("save_context"));
    QVERIFY(!policies.contains("none"));
}

/// A layout whose program cannot be made is not a plan, and others take its place.
void TestTransformerSearch::refusedLayoutsAreNoPlans()
{
    SearchOptions options = asEstimated(1);
    const auto isRefused = [](const FoundPlan& plan) { return plan.kind.find("FSDP") != std::string::npos; };
    options.simulate
        = [simulate = options.simulate, isRefused](const FoundPlan& plan, const SearchMachine& machine, std::string& whyNot) {
              if (!isRefused(plan))
                  return simulate(plan, machine, whyNot);
              whyNot = "refused";
              return std::optional<PlanTrial>();
          };
    const SearchResult result = searchTransformer(smallWork(), {machine("h100x8")}, {}, options);
    QVERIFY(!result.plans.empty());
    for (const FoundPlan& plan : result.plans) {
        QVERIFY2(!isRefused(plan), plan.kind.c_str());
        QVERIFY(plan.simulatedSeconds);
    }
    QVERIFY(std::ranges::any_of(result.notSimulated, [](const std::string& why) { return why.ends_with(": refused"); }));
}

void TestTransformerSearch::notSimulatedOnce_data()
{
    QTest::addColumn<QString>("kind"); // of which no plan is simulated
    QTest::newRow("all") << "";
    QTest::newRow("pipelines") << "pipeline";
    QTest::newRow("tensors") << "tensor";
}

/// Each layout is named once, however often the search asks for its plans.
void TestTransformerSearch::notSimulatedOnce()
{
    QFETCH(const QString, kind);
    SearchOptions options = asEstimated(1);
    options.floor = {};
    options.simulate
        = [&, simulate = options.simulate](const FoundPlan& plan, const SearchMachine& machine, std::string& whyNot) {
              if (plan.kind.find(kind.toStdString()) == std::string::npos)
                  return simulate(plan, machine, whyNot);
              whyNot = "no time was left";
              return std::optional<PlanTrial>();
          };
    const SearchResult result = searchTransformer(smallWork(), {machine("h100x8")}, {}, options);
    QVERIFY(!result.notSimulated.empty());
    std::vector<std::string> lines = result.notSimulated;
    std::ranges::sort(lines);
    QVERIFY2(std::ranges::adjacent_find(lines) == lines.end(), qPrintable(QString::fromStdString(join(lines, "\n"))));
}

void TestTransformerSearch::placesOfAxes_data()
{
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<QList<int>>("degrees"); // pipeline, data x fsdp, fsdp, context, tensor
    QTest::addColumn<QStringList>("said");

    QTest::newRow("whole hosts") << "h100x64" << QList<int>{1, 32, 32, 1, 2}
                                 << QStringList{"tensor=2 stays inside a host", "fsdp=32 spans 8 hosts"};
    QTest::newRow("hosts of one") << "h100x11" << QList<int>{11, 1, 1, 1, 1} << QStringList{"pipeline=11 spans 11 hosts"};
    QTest::newRow("hosts of one, and data") << "h100x13" << QList<int>{1, 13, 1, 1, 1} << QStringList{"data=13 spans 13 hosts"};
    // 20 hosts of 5: the last axis gets hosts, as 5 does not divide by 2.
    QTest::newRow("pairs on hosts of five") << "h100x100" << QList<int>{2, 50, 2, 1, 1}
                                            << QStringList{"fsdp=2 spans 2 hosts", "pipeline=2 spans 2 hosts"};
    // 128 hosts of 4 chips, two devices each.
    QTest::newRow("two devices a chip") << "mi250xx512" << QList<int>{1, 512, 512, 1, 2}
                                        << QStringList{"tensor=2 stays inside a host", "fsdp=512 spans 128 hosts"};
    QTest::newRow("a slice") << "v5e-64" << QList<int>{1, 64, 64, 1, 1} << QStringList{"fsdp=64 stays inside a slice"};
    QTest::newRow("several slices") << "v5e-64x2" << QList<int>{1, 64, 64, 1, 2}
                                    << QStringList{"tensor=2 stays inside a slice", "fsdp=64 spans 2 slices"};
    QTest::newRow("contexts between tensors and shards")
        << "h100x64" << QList<int>{1, 8, 8, 4, 2}
        << QStringList{"tensor=2 stays inside a host", "context=4 stays inside a host", "fsdp x context=32 spans 8 hosts"};
}

/// Over how many hosts the groups of an axis go, where the mesh really lies.
void TestTransformerSearch::placesOfAxes()
{
    QFETCH(const QString, hardware);
    QFETCH(const QList<int>, degrees);
    QFETCH(const QStringList, said);
    Candidate candidate;
    candidate.pp = degrees[0];
    candidate.dp = degrees[1];
    candidate.fsdp = degrees[2];
    candidate.cp = degrees[3];
    candidate.tp = degrees[4];
    candidate.zero = degrees[2] > 1 ? 3 : 0;
    const SearchMachine on = machine(hardware.toUtf8().constData());
    QStringList sentences;
    for (const std::string& sentence : placeSentences(candidate, Cluster(on.chip, on.cluster, on.constants), on))
        sentences << QString::fromStdString(sentence);
    QCOMPARE(sentences, said);
}

/// A plan that needs less memory than its estimate says is found whether its choices are fixed or not.
void TestTransformerSearch::freerIsNeverSlower_data()
{
    QTest::addColumn<QStringList>("choices");
    QTest::newRow("nothing") << QStringList{};
    QTest::newRow("the mesh") << QStringList{"fsdp=64"};
}

void TestTransformerSearch::freerIsNeverSlower()
{
    constexpr double kShare = 0.9; // of its estimate that a plan needs
    SearchOptions options = asEstimated(1);
    options.explains = false;
    options.simulate = [simulate = options.simulate](const FoundPlan& plan, const SearchMachine& machine, std::string& whyNot) {
        auto trial = simulate(plan, machine, whyNot);
        trial->peakBytes *= kShare;
        trial->reserveBytes *= kShare;
        for (NamedShare& share : trial->memory)
            share.amount *= kShare;
        trial->fits = trial->peakBytes + trial->reserveBytes <= trial->capacityBytes;
        return trial;
    };
    std::vector<std::string> notes;
    SearchWords words;
    words.hardware = {"h100x64"};
    words.stack = "torchtitan";
    const std::vector<SearchMachine> machines = valueOf(machinesOf(words, catalogue(), calibration(), notes));
    const auto bestOf = [&](const QStringList& choices) {
        std::vector<std::string> texts;
        for (const QString& choice : choices)
            texts.push_back(choice.toStdString());
        return searchTransformer(workOfModel("llama3_8b", "4M", "8k"), machines, valueOf(parseFixed(texts)), options)
            .plans.front();
    };
    QFETCH(QStringList, choices);
    const FoundPlan best = bestOf(choices);
    const FoundPlan narrow = bestOf({"fsdp=64", "recompute=none"});
    QVERIFY(narrow.fits && bytesOf(narrow) > kShare * narrow.capacityBytes);
    QVERIFY2(best.fits && best.seconds() <= narrow.seconds(),
        qPrintable(QString("%1 s on %2").arg(best.seconds()).arg(tests::text(meshText(best.mesh)))));
}

/// Experts' states are split over the ranks that share them: those of a ZeRO group that have other experts hold nothing of theirs.
void TestTransformerSearch::expertsAreSplitOnce_data()
{
    QTest::addColumn<int>("shardDegree");
    QTest::addColumn<int>("ep");
    QTest::addColumn<double>("shards");
    QTest::newRow("all ranks") << 0 << 8 << 2.0;
    QTest::newRow("a group as large as the experts'") << 8 << 8 << 1.0;
    QTest::newRow("a group within") << 4 << 8 << 1.0;
    QTest::newRow("no experts") << 8 << 1 << 8.0;
}

void TestTransformerSearch::expertsAreSplitOnce()
{
    QFETCH(int, shardDegree);
    QFETCH(int, ep);
    TrainingPlan plan;
    plan.layout.dp = 16;
    plan.layout.ep = ep;
    plan.layout.shardDegree = shardDegree;
    QTEST(plan.expertShards(), "shards");
}

void TestTransformerSearch::infeasibleSaysWhatWouldFit()
{
    const SearchMachine where = machine("h100x8");
    const SearchResult result = searchTransformer(
        workOfModel("llama3_70b", "32k", "4k"), {where}, {}, withThreads(2), largerMachines(where, catalogue(), calibration()));
    QVERIFY(!result.plans.empty());
    QVERIFY(!result.plans.front().fits);
    QVERIFY2(result.plans.front().why.front().starts_with("needs "), result.plans.front().why.front().c_str());
    bool more = false;
    for (const std::string& change : result.changes)
        more = more || change.find("chips in place of 8") != std::string::npos;
    QVERIFY(more);
    // A choice that does not fit, and the one that does.
    const SearchResult fixed = searchTransformer(workOfModel("llama3_8b", "64k", "4k"), {where},
        {{"zero", "0"}, {"tensor", "1"}, {"pipeline", "1"}, {"context", "1"}}, withThreads(2));
    QVERIFY(!fixed.plans.front().fits);
    QVERIFY(!fixed.changes.empty());
    QVERIFY2(fixed.changes.front().find("in place of zero=0") != std::string::npos, fixed.changes.front().c_str());
}

void TestTransformerSearch::chipsAndPrices()
{
    SearchMachine few = machine("h100x8");
    SearchMachine many = machine("h100x16");
    few.dollarsPerChipHour = many.dollarsPerChipHour = 2.0;
    const SearchResult result = searchTransformer(smallWork(), {few, many}, {}, asEstimated(2));
    QCOMPARE(result.plans.size(), std::size_t{2});
    QCOMPARE(result.plans.front().chips, std::int64_t{16});
    bool cheap = false;
    for (const FoundPlan& plan : result.front) {
        cheap = cheap || plan.chips == 8;
        QVERIFY(std::abs(*plan.dollarsPerStep - 2.0 * static_cast<double>(plan.chips) * plan.modelSeconds / 3600.0) < 1e-12);
    }
    QVERIFY(cheap);
}

MESHWRIGHT_TEST(TestTransformerSearch)

} // namespace tst_transformer_search

#include "tst_transformer_search.moc"
