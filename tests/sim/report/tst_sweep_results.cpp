// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/sweep_results.h"

#include "tests/test_class.h"

namespace tst_sweep_results {

using namespace meshwright::sim;

/// What a sweep prints.
class TestSweepResults : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void refusals_data();
    void refusals();
    void figures();
};

void TestSweepResults::refusals_data()
{
    QTest::addColumn<QStringList>("points"); ///< what refused each: "id: message"; empty: it fits
    QTest::addColumn<QStringList>("expected");

    QTest::newRow("none") << QStringList{"", ""} << QStringList{};
    QTest::newRow("one") << QStringList{"", "MW1104: 10 is not divisible by 4"}
                         << QStringList{"  1 refused, MW1104: 10 is not divisible by 4"};
    QTest::newRow("the most frequent first, told by its first point")
        << QStringList{"MW1104: 9", "MW1720: 16", "", "MW1720: 32", "MW1720: 64", "MW1430: 3", "MW1430: 5"}
        << QStringList{"  3 refused, MW1720: for one, 16", "  2 refused, MW1430: for one, 3", "  1 refused, MW1104: 9"};
}

void TestSweepResults::refusals()
{
    QFETCH(QStringList, points);
    QFETCH(QStringList, expected);
    SweepPlan plan;
    plan.parameters.push_back({"batch", {}});
    std::vector<std::optional<SweepOutcome>> outcomes;
    for (const QString& point : points) {
        const std::string value = std::to_string(outcomes.size() + 1);
        plan.parameters.front().values.push_back({value, {"batch=" + value}});
        SweepOutcome outcome;
        outcome.batch = 1;
        outcome.stepSeconds = 1.0;
        outcome.state = point.isEmpty() ? SweepState::Fits : SweepState::Refused;
        outcome.problem = point.section(": ", 0, 0).toStdString();
        outcome.message = point.section(": ", 1).toStdString();
        outcomes.emplace_back(std::move(outcome));
    }
    const QString text = QString::fromStdString(sweepText(sweepResult(std::move(plan), outcomes)));
    QCOMPARE(text.split('\n').filter(" refused, MW"), expected);
}

/// Rates of large models are small numbers; a refusal says what to do.
void TestSweepResults::figures()
{
    SweepPlan plan;
    plan.parameters.push_back({"batch", {{"64", {"batch=64"}}, {"65", {"batch=65"}}}});
    SweepOutcome fits;
    fits.state = SweepState::Fits;
    fits.batch = 64;
    fits.stepSeconds = 9.0;
    SweepOutcome refused;
    refused.problem = "MW1104";
    refused.message = "65 is not divisible by 16";
    refused.fix = "make it 64 or 80";
    const QString text = QString::fromStdString(sweepText(sweepResult(std::move(plan), {fits, refused})));
    QVERIFY2(text.contains("best: batch 64: step 9.00 s, 7.11 examples/s"), qPrintable(text));
    QVERIFY2(text.endsWith("  1 refused, MW1104: 65 is not divisible by 16\n    fix: make it 64 or 80\n"), qPrintable(text));
}

MESHWRIGHT_TEST(TestSweepResults)

} // namespace tst_sweep_results

#include "tst_sweep_results.moc"
