// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/sweep_plan.h"
#include "sim/sweep/sweep_result.h"

#include "core/support/text.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_sweep_plan {

using namespace meshwright;
using namespace meshwright::sim;

/// What --vary stands for, the points of a plan, and which of them are on the front.
class TestSweepPlan : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void values_data();
    void values();
    void settings();
    void factorisationsAreAll();
    void wrong_data();
    void wrong();
    void plansAsAWhole_data();
    void plansAsAWhole();
    void points();
    void front();
    void frontOfBatches();
    void frontOfSequences();
};

namespace {

QString valuesOf(const SweepParameter& parameter)
{
    QStringList words;
    for (const SweepValue& value : parameter.values)
        words << QString::fromStdString(value.text);
    return words.join(" | ");
}

SweepPlan planOf(const std::vector<std::string>& vary)
{
    SweepPlan plan;
    for (const std::string& text : vary)
        plan.parameters.push_back(valueOf(parseVary(text)));
    return plan;
}

SweepOutcome outcome(double seconds, std::int64_t bytes, std::int64_t batch = 1, SweepState state = SweepState::Fits)
{
    SweepOutcome o;
    o.state = state;
    o.stepSeconds = seconds;
    o.peakBytes = bytes;
    o.batch = batch;
    return o;
}

} // namespace

void TestSweepPlan::values_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("expected");
    QTest::newRow("list") << "batch=1,2,8"
                          << "1 | 2 | 8";
    QTest::newRow("sizes") << "batch=1k,4k,1M"
                           << "1024 | 4096 | 1048576";
    QTest::newRow("bytes") << "x=16GiB,16GB,4KiB,1.5MiB,12B"
                           << "17179869184 | 16000000000 | 4096 | 1572864 | 12";
    QTest::newRow("range") << "x=1..4"
                           << "1 | 2 | 3 | 4";
    QTest::newRow("range of one") << "x=3..3"
                                  << "3";
    QTest::newRow("powers") << "x=2^0..2^6"
                            << "1 | 2 | 4 | 8 | 16 | 32 | 64";
    QTest::newRow("powers of ten") << "x=10^1..10^3"
                                   << "10 | 100 | 1000";
    QTest::newRow("a power alone") << "x=2^10"
                                   << "1024";
    QTest::newRow("ranges and more") << "x=1..2,8,2^4..2^5"
                                     << "1 | 2 | 8 | 16 | 32";
    QTest::newRow("words") << "dtype.matmul=f32, bf16"
                           << "f32 | bf16";
    QTest::newRow("a number stays as written") << "lr=1.0e-3,0.1"
                                               << "1.0e-3 | 0.1";
    QTest::newRow("specs") << "sharding.x=P('data', None),P(('data', 'model'))"
                           << "P('data', None) | P(('data', 'model'))";
    QTest::newRow("lists") << "hardware.topology=[4,2],[4,4]"
                           << "[4,2] | [4,4]";
    QTest::newRow("mappings") << "optimizer={adam: {learning_rate: 1, beta1: 0.9}},none"
                              << "{adam: {learning_rate: 1, beta1: 0.9}} | none";
    QTest::newRow("quotes") << "name='a,b',\"c(\""
                            << "'a,b' | \"c(\"";
    QTest::newRow("a version is no range") << "x=1..b"
                                           << "1..b";
    QTest::newRow("factorisations") << "mesh=data*model=8"
                                    << "data=1,model=8 | data=2,model=4 | data=4,model=2 | data=8,model=1";
    QTest::newRow("of three") << "mesh=a*b*c=4"
                              << "a=1,b=1,c=4 | a=1,b=2,c=2 | a=1,b=4,c=1 | a=2,b=1,c=2 | a=2,b=2,c=1 | a=4,b=1,c=1";
    QTest::newRow("of a square") << "mesh=a*b=9"
                                 << "a=1,b=9 | a=3,b=3 | a=9,b=1";
    QTest::newRow("of several totals") << "mesh=a*b=2^0..2^1"
                                       << "a=1,b=1 | a=1,b=2 | a=2,b=1";
    QTest::newRow("of a prime") << "mesh= a * b = 7 "
                                << "a=1,b=7 | a=7,b=1";
}

void TestSweepPlan::values()
{
    QFETCH(QString, text);
    QFETCH(QString, expected);
    const auto parameter = parseVary(text.toStdString());
    QVERIFY2(parameter, parameter ? "" : describe(parameter.error()).c_str());
    QCOMPARE(valuesOf(*parameter), expected);
}

void TestSweepPlan::settings()
{
    const SweepParameter mesh = valueOf(parseVary("mesh=data*model=8"));
    QCOMPARE(tests::text(join(mesh.values[1].settings, " ")), "mesh.data=2 mesh.model=4");
    const SweepParameter batch = valueOf(parseVary("batch=4k"));
    QCOMPARE(tests::text(join(batch.values[0].settings, " ")), "batch=4096");
}

void TestSweepPlan::factorisationsAreAll()
{
    // Against all triples by brute force.
    for (std::int64_t total = 1; total <= 96; ++total) {
        std::vector<std::string> expected;
        for (std::int64_t a = 1; a <= total; ++a) {
            for (std::int64_t b = 1; b <= total; ++b) {
                if (total % (a * b) == 0)
                    expected.push_back(fmt::format("a={},b={},c={}", a, b, total / (a * b)));
            }
        }
        std::vector<std::string> found;
        for (const SweepValue& value : valueOf(parseVary(fmt::format("mesh=a*b*c={}", total))).values)
            found.push_back(value.text);
        QCOMPARE(found, expected);
    }
}

void TestSweepPlan::wrong_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");
    QTest::newRow("no values") << "batch"
                               << "MW1775";
    QTest::newRow("no path") << "=1,2"
                             << "MW1775";
    QTest::newRow("nothing") << ""
                             << "MW1775";
    QTest::newRow("an empty value") << "batch="
                                    << "MW1776";
    QTest::newRow("an empty value in the middle") << "batch=1,,2"
                                                  << "MW1776";
    QTest::newRow("backwards") << "batch=8..1"
                               << "MW1776";
    QTest::newRow("powers backwards") << "batch=2^6..2^0"
                                      << "MW1776";
    QTest::newRow("open bracket") << "x=[1,2"
                                  << "MW1776";
    QTest::newRow("closed too often") << "x=1)"
                                      << "MW1776";
    QTest::newRow("open quote") << "x='a"
                                << "MW1776";
    QTest::newRow("wrong bracket") << "x=(1]"
                                   << "MW1776";
    QTest::newRow("no total") << "mesh=data*model="
                              << "MW1776";
    QTest::newRow("no number") << "mesh=data*model=many"
                               << "MW1776";
    QTest::newRow("none") << "mesh=data*model=0"
                          << "MW1776";
    QTest::newRow("too large") << "mesh=data*model=2^50"
                               << "MW1776";
    QTest::newRow("an axis twice") << "mesh=data*data=4"
                                   << "MW1776";
    QTest::newRow("an axis twice, apart") << "mesh=data*model*data=4"
                                          << "MW1776";
    QTest::newRow("factorisations without end") << "mesh=a*b*c=2^6..7^6"
                                                << "MW1777";
    QTest::newRow("a long range") << "x=1..100000000"
                                  << "MW1777";
    QTest::newRow("a range beyond all numbers") << "x=1..9223372036854775808"
                                                << "MW1776";
    QTest::newRow("powers beyond all numbers") << "x=2^0..2^63"
                                               << "MW1776";
    QTest::newRow("the longest range") << "x=1..9223372036854775807"
                                       << "MW1777";
}

void TestSweepPlan::wrong()
{
    QFETCH(QString, text);
    QFETCH(QString, id);
    const auto parameter = parseVary(text.toStdString());
    QVERIFY(!parameter);
    QCOMPARE(tests::text(parameter.error().front().id), id);
}

void TestSweepPlan::plansAsAWhole_data()
{
    using Words = std::vector<std::string>;
    QTest::addColumn<Words>("vary");
    QTest::addColumn<QString>("id");
    QTest::newRow("good") << Words{"mesh=a*b=4", "batch=1,2"} << "";
    QTest::newRow("names that only begin alike") << Words{"train.steps=1", "train.steps_more=2"} << "";
    QTest::newRow("nothing") << Words{} << "MW1781";
    QTest::newRow("twice") << Words{"batch=1", "batch=2"} << "MW1778";
    QTest::newRow("a part") << Words{"mesh=a*b=4", "mesh.a=1,2"} << "MW1778";
    QTest::newRow("a part, the other way round") << Words{"phases[0].steps=1", "phases=[]"} << "MW1778";
    QTest::newRow("too many points") << Words{"a=1..2000", "b=1..2000"} << "MW1777";
}

void TestSweepPlan::plansAsAWhole()
{
    QFETCH(std::vector<std::string>, vary);
    QFETCH(QString, id);
    const Problems problems = checkPlan(planOf(vary));
    QCOMPARE(problems.empty() ? QString() : tests::text(problems.front().id), id);
}

void TestSweepPlan::points()
{
    SweepPlan plan = planOf({"mesh=a*b=2", "batch=8,16,32"});
    plan.settings = {"dtype.matmul=bf16"};
    QCOMPARE(plan.pointCount(), 6);
    QCOMPARE(tests::text(join(plan.settingsAt(0), " ")), "dtype.matmul=bf16 mesh.a=1 mesh.b=2 batch=8");
    QCOMPARE(tests::text(join(plan.settingsAt(1), " ")), "dtype.matmul=bf16 mesh.a=1 mesh.b=2 batch=16");
    QCOMPARE(tests::text(join(plan.settingsAt(5), " ")), "dtype.matmul=bf16 mesh.a=2 mesh.b=1 batch=32");
}

void TestSweepPlan::front()
{
    const SweepPlan plan = planOf({"x=0..7"});
    const SweepResult result = sweepResult(plan,
        {outcome(3.0, 10), outcome(2.0, 20), outcome(2.0, 20), outcome(4.0, 5), outcome(4.0, 20),
            outcome(1.0, 1, 1, SweepState::TooLarge), SweepOutcome{}, std::nullopt});
    QCOMPARE(result.rows.size(), std::size_t(7));
    QString marks;
    for (const SweepRow& row : result.rows)
        marks += row.onFront ? '*' : '.';
    QCOMPARE(marks, "****..."); // equal points are both on it; what does not fit is not
    QCOMPARE(*result.best, std::size_t(1)); // of equal ones the first
    QVERIFY(!result.complete());
    QCOMPARE(result.count(SweepState::Fits), 5);
    QCOMPARE(result.count(SweepState::Refused), 1);
}

void TestSweepPlan::frontOfBatches()
{
    // A larger batch takes longer a step and less an example.
    const SweepResult result = sweepResult(planOf({"batch=8,16"}), {outcome(1.0, 20, 8), outcome(1.5, 10, 16)});
    QVERIFY(!result.oneBatch);
    QCOMPARE(*result.best, std::size_t(1));
    QVERIFY(!result.rows[0].onFront && result.rows[1].onFront);
}

void TestSweepPlan::frontOfSequences()
{
    // Twice as long a sequence takes less than twice the time: more tokens a second, though fewer examples.
    const SweepPlan plan = planOf({"sequence=1k,2k"});
    QVERIFY(plan.variesSequence() && !planOf({"batch=8,16"}).variesSequence() && !planOf({"sequence=1k"}).variesSequence());
    QCOMPARE(plan.unitsAt(1), 2048);
    const SweepResult result = sweepResult(plan, {outcome(1.0, 20, 8), outcome(1.5, 10, 8)});
    QVERIFY(!result.oneBatch);
    QCOMPARE(*result.best, std::size_t(1));
    const SweepResult both = sweepResult(planOf({"sequence=1k,2k", "batch=8,16"}),
        {outcome(1.0, 1, 8), outcome(1.0, 1, 16), outcome(1.0, 1, 8), outcome(1.0, 1, 16)});
    QCOMPARE(*both.best, std::size_t(3));
}

MESHWRIGHT_TEST(TestSweepPlan)

} // namespace tst_sweep_plan

#include "tst_sweep_plan.moc"
