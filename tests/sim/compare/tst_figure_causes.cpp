// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/figure_causes.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/compare/alike_collectives.h"
#include "sim/session/session.h"
#include "tests/test_class.h"

#include <numeric>

namespace tst_figure_causes {

using namespace meshwright;
using namespace meshwright::sim;

/// A figure is the sum of its causes, whatever the study.
class TestFigureCauses : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void causesAddUp_data();
    void causesAddUp();
    void manySmallValuesAreToldTogether();
};

namespace {

double sumOf(const ExplainedFigure& figure)
{
    return std::accumulate(
        figure.causes.begin(), figure.causes.end(), 0.0, [](double sum, const FigureCause& cause) { return sum + cause.amount; });
}

} // namespace

void TestFigureCauses::causesAddUp_data()
{
    QTest::addColumn<QString>("example");

    for (const char* example : {"wide_mlp", "fsdp", "three_d", "zero2", "transformer_64", "pipeline_1f1b", "llama3_405b_h100"})
        QTest::newRow(example) << example;
}

void TestFigureCauses::causesAddUp()
{
    QFETCH(QString, example);
    const std::string path = (resourcesDirectory() / "examples" / (example.toStdString() + ".yaml")).string();
    static const Catalogue catalogue = valueOf(defaultCatalogue());
    const auto analysis = analysed({valueOf(readFile(path)), path, {}}, catalogue, {}, false);
    QVERIFY(analysis->simulated);
    const Simulation& simulation = analysis->simulated->simulation;
    const std::vector<ExplainedFigure> figures = explainFigures(simulation, analysis->simulated->liveAtPeak);

    QCOMPARE(figures.size(), std::size_t{3});
    QCOMPARE(figures[0].value, simulation.stepSeconds);
    QCOMPARE(figures[1].value, simulation.exposedSeconds);
    QCOMPARE(figures[2].value, static_cast<double>(simulation.peakBytes));
    for (const ExplainedFigure& figure : figures) {
        QVERIFY2(std::fabs(sumOf(figure) - figure.value) <= 1e-9 * figure.value, figure.name.c_str());
        QVERIFY(std::is_sorted(figure.causes.begin(), figure.causes.end(),
            [](const FigureCause& a, const FigureCause& b) { return a.amount > b.amount; }));
        for (const FigureCause& cause : figure.causes) {
            QVERIFY2(cause.amount > 0.0, cause.what.c_str());
            QVERIFY2(cause.what != "other waiting", qPrintable(QString("%1 s").arg(cause.amount)));
            if (!cause.collective)
                continue;
            const auto groups = alikeCollectives(simulation.collectives);
            const auto own = std::ranges::find_if(
                groups, [&](const AlikeCollectives& group) { return group.members.front() == *cause.collective; });
            QVERIFY(own != groups.end());
            QCOMPARE(own->all.exposedSeconds, cause.amount);
        }
    }
}

void TestFigureCauses::manySmallValuesAreToldTogether()
{
    std::vector<LiveValue> live;
    Simulation simulation;
    for (int i = 0; i < 100; ++i) {
        live.push_back({"v" + std::to_string(i), i % 2 == 0 ? MemoryKind::Parameter : MemoryKind::Gradient, 1000 - i});
        simulation.peakBytes += live.back().bytes;
    }
    simulation.peakBytes += 77;
    const ExplainedFigure memory = explainFigures(simulation, live)[2];
    QCOMPARE(memory.causes.size(), kLiveTold + 3);
    QCOMPARE(sumOf(memory), static_cast<double>(simulation.peakBytes));
    QCOMPARE(memory.causes.back().what, std::string("gaps between arrays"));
    QCOMPARE(memory.causes.back().amount, 77.0);
}

MESHWRIGHT_TEST(TestFigureCauses)

} // namespace tst_figure_causes

#include "tst_figure_causes.moc"
