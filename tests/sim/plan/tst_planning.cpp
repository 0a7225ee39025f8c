// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/plan/changed_hardware.h"
#include "sim/plan/plan_answer.h"
#include "sim/report/report.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include "core/support/file.h"

#include <cmath>

namespace tst_planning {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

/// Time, money and failures of a training.
class TestPlanning : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void intervalIsBest();
    void dataThatComeAlong();
    void errorsInWords();
    void damagedData();
    void changedFigures();
    void timeAndMoney();
    void days_data();
    void days();
    void range_data();
    void range();
    void clustersAreCompared();
    void commandsThatDoNotFit();
};

/// No other interval leaves more of the time, by more than first order says.
void TestPlanning::intervalIsBest()
{
    const Goodput best = goodputOf(10'000.0, 60.0, 600.0);
    QCOMPARE(best.intervalSeconds, std::sqrt(2.0 * 60.0 * 10'000.0));
    const auto share = [](double t) { return 1.0 / ((1.0 + 60.0 / t) * (1.0 + (600.0 + 0.5 * (t + 60.0)) / 10'000.0)); };
    QCOMPARE(best.share, share(best.intervalSeconds));
    for (const double factor : {0.5, 0.8, 1.25, 2.0})
        QVERIFY(share(factor * best.intervalSeconds) < best.share);
    QCOMPARE(goodputOf(1000.0, 0.0, 0.0).share, 1.0);
}

void TestPlanning::dataThatComeAlong()
{
    const PlanningData data = valueOf(PlanningData::load(resourcesDirectory() / "hardware/planning.json"));
    const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    const Chip& h100 = *valueOf(catalogue.find("h100")).chip;
    QVERIFY(data.priceOf(h100));
    QVERIFY(!data.priceOf(h100)->date.empty() && !data.priceOf(h100)->source.empty());
    QVERIFY(!data.priceOf(*valueOf(catalogue.find("v2")).chip)); // none is made up
    QCOMPARE(data.errorsOf(h100)->of, h100.key);
    QVERIFY(data.errorsOf(h100)->low() < 1.0 && data.errorsOf(h100)->high() > 1.0);
    QCOMPARE(data.errorsOf(*valueOf(catalogue.find("mi300x")).chip)->of, std::string("gpu"));
    // 16,384 chips fail every three hours (arXiv:2407.21783).
    QVERIFY(std::abs(data.chipSecondsPerFailure().value / 16384.0 / 3600.0 - 3.09) < 0.01);
}

/// What is said of ten runs, by hand.
void TestPlanning::errorsInWords()
{
    const StepErrors ten{"gpu", {0.5, 0.8, 0.9, 0.95, 1.0, 1.0, 1.05, 1.1, 1.25, 2.0}};
    QCOMPARE(ten.low(), 0.5); // (10 - 1) / 10 runs are cut off: none
    QCOMPARE(ten.high(), 2.0);
    QCOMPARE(ten.most(), std::size_t{8});
    QVERIFY(std::abs(ten.share() - 0.25)
        < 1e-12); // |1 / ratio - 1|: 1, 0.25, 0.11, 0.05, 0, 0, 0.05, 0.09, 0.2, 0.5; the eighth is 1 / 0.8 - 1
}

void TestPlanning::damagedData()
{
    QCOMPARE(PlanningData::parse("[", "x.json").error().front().id, std::string("MW1702"));
    const auto missing = PlanningData::parse(R"({"prices": [{"chip": "a", "dollars_per_chip_hour": -1}]})", "x.json");
    QVERIFY(missing.error().size() > 5);
    for (const Problem& problem : missing.error())
        QCOMPARE(problem.id, std::string("MW1702"));
}

void TestPlanning::changedFigures()
{
    const std::string text = valueOf(readFile(resourcesDirectory() / "hardware/catalogue.json"));
    const Catalogue catalogue = valueOf(Catalogue::parse(text, "catalogue.json"));
    for (const char* name : {"h100", "p5.48xlarge"}) {
        const Chip& chip = *valueOf(catalogue.find(name)).chip;
        const Catalogue network = valueOf(changedCatalogue(text, chip, ChangedPart::Network, 2.0));
        const Chip& faster = *valueOf(network.find(name)).chip;
        QCOMPARE(faster.nicBytesPerSecond->value, 2.0 * chip.nicBytesPerSecond->value);
        QCOMPARE(faster.hbmBytes->value, chip.hbmBytes->value);
        const Catalogue memory = valueOf(changedCatalogue(text, chip, ChangedPart::Memory, 1.25));
        QCOMPARE(valueOf(memory.find(name)).chip->hbmBytes->value, 1.25 * chip.hbmBytes->value);
    }
    const Chip& v5e = *valueOf(catalogue.find("v5e")).chip;
    const Catalogue links = valueOf(changedCatalogue(text, v5e, ChangedPart::Network, 0.5));
    QCOMPARE(valueOf(links.find("v5e")).chip->interconnect.linkBytesPerSecond->value,
        0.5 * v5e.interconnect.linkBytesPerSecond->value);
}

void TestPlanning::timeAndMoney()
{
    const PlanningData data = valueOf(PlanningData::load(resourcesDirectory() / "hardware/planning.json"));
    FoundPlan plan;
    plan.chips = 512;
    plan.simulatedSeconds = 2.0;
    const TrainingTime time = trainingTimeOf(plan, 4e6, 4e12, 12.0 * 8e9, data, ChipPrice{2.0, {}, "own"});
    QCOMPARE(time.tokensPerSecond, 2e6);
    QVERIFY(std::abs(time.days * time.goodput.share - 2e6 / 86400.0) < 1e-9);
    QVERIFY(std::abs(*time.dollars - time.days * 24.0 * 512.0 * 2.0) < 1e-6);
    QVERIFY(time.goodput.share > 0.9 && time.goodput.share < 1.0);
    QVERIFY(!trainingTimeOf(plan, 4e6, 4e12, 1e9, data, std::nullopt).dollars);
    QCOMPARE(formatDollars(2.5e6), std::string("$2.50 M"));
}

void TestPlanning::days_data()
{
    QTest::addColumn<double>("seconds");
    QTest::addColumn<QString>("said");
    QTest::newRow("seconds") << 12.5 << "12.5 s";
    QTest::newRow("less than one") << 0.004 << "4.00 ms";
    QTest::newRow("minutes") << 144.0 << "2.4 minutes";
    QTest::newRow("an hour") << 3600.0 << "1.0 hours";
    QTest::newRow("hours") << 43'200.0 << "12.0 hours";
    QTest::newRow("days") << 259'200.0 << "3.0 days";
    QTest::newRow("years") << 1e9 << "11,574 days";
}

/// The time of a training in the unit that people would use.
void TestPlanning::days()
{
    QFETCH(const double, seconds);
    QFETCH(const QString, said);
    QCOMPARE(QString::fromStdString(formatDays(seconds / 86'400.0)), said);
}

void TestPlanning::range_data()
{
    QTest::addColumn<double>("days");
    QTest::addColumn<QString>("said");
    QTest::newRow("within") << 15.0 << "between 14.0 days and 16.0 days: 8 of 10 runs";
    QTest::newRow("at its end") << 14.0 << "between 14.0 days and 16.0 days: 8 of 10 runs";
    QTest::newRow("below it") << 13.5 << "14.0 days to 16.0 days, as runs were slower than simulated: 8 of 10 runs";
    QTest::newRow("above it") << 17.0 << "14.0 days to 16.0 days, as runs were quicker than simulated: 8 of 10 runs";
}

/// A range that leaves out the simulated time says so.
void TestPlanning::range()
{
    QFETCH(const double, days);
    QFETCH(const QString, said);
    PlanAnswer answer;
    answer.time.days = days;
    answer.daysLow = 14.0;
    answer.daysHigh = 16.0;
    answer.rangeFrom = "8 of 10 runs";
    QCOMPARE(QString::fromStdString(answer.rangeText()), said);
}

namespace {

PlanAnswer answerOf(const char* model, const char* cluster, double days, std::optional<double> dollars, bool fits = true)
{
    PlanAnswer answer;
    answer.model = model;
    answer.parameters = 8e9;
    answer.cluster = cluster;
    answer.tokens = 2e12;
    answer.sequence = 4096;
    answer.globalBatch = 1024;
    FoundPlan plan;
    plan.mesh = {{"fsdp", 64}};
    plan.peakBytes = 100.0 * 1024 * 1024 * 1024;
    plan.capacityBytes = 80.0 * 1024 * 1024 * 1024;
    plan.simulatedSeconds = 7.0;
    plan.fits = fits;
    answer.plans = {plan};
    answer.time.days = days;
    answer.time.dollars = dollars;
    return answer;
}

} // namespace

/// Rows model by model, in the order of the answers; what is quickest and cheapest is of those that fit and have a price.
void TestPlanning::clustersAreCompared()
{
    std::vector<PlanAnswer> answers = {answerOf("a", "64 H100", 40.0, 230e3), answerOf("a", "64 v5p", 50.0, 200e3),
        answerOf("a", "8 B200", 10.0, std::nullopt, false), answerOf("b", "64 H100", 20.0, std::nullopt),
        answerOf("b", "64 v5p", 30.0, std::nullopt)};
    answers[4].plans.front().simulatedSeconds.reset();
    const std::span all(answers);
    QCOMPARE(planVerdicts(all.subspan(0, 3)),
        (std::vector<std::string>{"quickest", "cheapest", "needs 100 GiB of 80.0 GiB a device"}));
    QCOMPARE(planVerdicts(all.subspan(3)), (std::vector<std::string>{"quickest", "estimated: there was no time to simulate it"}));
    QCOMPARE(planVerdicts(all.subspan(0, 1)), std::vector<std::string>{""}); // of one there is no best

    const Report report = planComparison(answers, "meshwright plan a");
    QCOMPARE(report.title, std::string("Training a and b"));
    QCOMPARE(report.findAnswer("fits")->headline, std::string("4 of 5"));
    QCOMPARE(report.findAnswer("speed")->headline, std::string("64 H100"));
    QCOMPARE(report.findAnswer("speed")->sentence, std::string("a: 40.0 days on 64 H100; b: 20.0 days on 64 H100."));
    QCOMPARE(report.findAnswer("cost")->headline, std::string("It depends on the model"));
    const ReportSection& clusters = *report.findSection("clusters");
    QCOMPARE(std::get<ReportTable>(clusters.blocks[0]).rows.size(), std::size_t{3});
    QCOMPARE(std::get<ReportTable>(clusters.blocks[1]).rows.size(), std::size_t{2});
    QCOMPARE(
        std::get<ReportTable>(clusters.blocks[0]).rows[2].cells[2].text, std::string("–")); // what does not fit takes no time
    for (const std::string& page : {reportHtml(report), reportJson(report)}) {
        const auto read = readReport(page, "clusters.html");
        QVERIFY(read);
        QCOMPARE(*read, report);
    }
}

/// What a framework's step needs stands beside its command.
void TestPlanning::commandsThatDoNotFit()
{
    PlanAnswer answer = answerOf("a", "64 H100", 40.0, std::nullopt);
    answer.launch = {{"torchtitan", "torchrun -m torchtitan.train", {}, "with torchtitan this does not fit"}};
    const std::string words = "torchrun -m torchtitan.train\n    with torchtitan this does not fit\n";
    QVERIFY2(planText(answer).find(words) != std::string::npos, planText(answer).c_str());
    QVERIFY(planJson(answer).find(R"("warning": "with torchtitan this does not fit")") != std::string::npos);
    QVERIFY(reportHtml(planReport(answer, "meshwright plan a")).find("with torchtitan this does not fit") != std::string::npos);
}

MESHWRIGHT_TEST(TestPlanning)

} // namespace tst_planning

#include "tst_planning.moc"
