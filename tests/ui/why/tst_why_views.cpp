// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/session/comparable_of.h"
#include "tests/test_class.h"
#include "ui/why/causes_view.h"
#include "ui/why/compare_view.h"
#include "ui/why/what_if_view.h"
#include "ui/widgets/table.h"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabBar>

namespace tst_why_views {

using namespace meshwright;

/// A person asks why a figure is as large, what would change it, and what differs from a pinned state.
class TestWhyViews : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyCauseSelectsWhatItIs();
    void enterGoesToTheSpec();
    void aFigureIsOpenedAlone();
    void changesAreSimulatedAndOneIsChosen();
    void pipelinesHaveChangesOfTheirOwn();
    void sequenceParallelismIsAChange();
    void oneStageHasNoSchedules();
    void changesAreSeenAsTheyCome();
    void ofAnotherStudyTheChangesAreItsOwn();
    void onlyDifferencesAreListed();
    void pinnedStatesAreTabs();
    void aStateOfAnotherFileIsNotTaken();
    void resultsArePinned();
    void gatesAreJudged();
    void withoutHardwareSaysSo();
};

namespace {

std::shared_ptr<const sim::Analysis> analysed(const std::string& example, const std::vector<std::string>& settings = {})
{
    static const sim::Catalogue catalogue = valueOf(sim::defaultCatalogue());
    const std::string path = (resourcesDirectory() / "examples" / (example + ".yaml")).string();
    return sim::analysed({valueOf(readFile(path)), path, settings}, catalogue, {}, false);
}

ui::Table* tableOf(const QWidget& view)
{
    return view.findChild<ui::Table*>();
}

QTreeWidgetItem* rowOf(const ui::Table& table, const QString& beginning)
{
    for (QTreeWidgetItemIterator item(const_cast<ui::Table*>(&table)); *item != nullptr; ++item) {
        if ((*item)->text(0).startsWith(beginning))
            return *item;
    }
    return nullptr;
}

struct Shown {
    ui::Selection selection;
    ui::CausesView view{selection};

    explicit Shown(const std::shared_ptr<const sim::Analysis>& analysis)
    {
        view.resize(700, 400);
        view.show();
        selection.setAnalysis(*analysis);
        view.setAnalysis(analysis);
    }
};

} // namespace

void TestWhyViews::everyCauseSelectsWhatItIs()
{
    const auto analysis = analysed("wide_mlp");
    Shown shown(analysis);
    ui::Table* table = tableOf(shown.view);
    QCOMPARE(table->topLevelItemCount(), static_cast<int>(shown.view.figures().size()));
    int collectives = 0;
    for (int i = 0; i < table->topLevelItemCount(); ++i) {
        const sim::ExplainedFigure& figure = shown.view.figures()[static_cast<std::size_t>(i)];
        QCOMPARE(table->topLevelItem(i)->childCount(), static_cast<int>(figure.causes.size()));
        for (int row = 0; row < table->topLevelItem(i)->childCount(); ++row) {
            table->setCurrentItem(table->topLevelItem(i)->child(row));
            const sim::FigureCause& cause = figure.causes[static_cast<std::size_t>(row)];
            QCOMPARE(table->currentItem()->text(0).toStdString(), cause.what);
            if (cause.collective) {
                ++collectives;
                QCOMPARE(shown.selection.collective()->index, *cause.collective);
            }
            if (analysis->findArray(cause.array) != nullptr)
                QCOMPARE(shown.selection.array().toStdString(), cause.array);
        }
    }
    QVERIFY(collectives >= 4);
}

void TestWhyViews::enterGoesToTheSpec()
{
    Shown shown(analysed("wide_mlp"));
    QSignalSpy asked(&shown.view, &ui::CausesView::specRequested);
    ui::Table* table = tableOf(shown.view);
    QTreeWidgetItem* wait = rowOf(*table, "all-reduce of layers.2's output");
    QVERIFY(wait != nullptr);
    table->setCurrentItem(wait);
    QTest::keyClick(table, Qt::Key_Return);
    QCOMPARE(asked.value(0).value(0).toString(), QString("sharding.layers.1.w"));
}

void TestWhyViews::aFigureIsOpenedAlone()
{
    Shown shown(analysed("wide_mlp"));
    shown.view.showFigure("peak memory");
    for (int i = 0; i < 3; ++i)
        QCOMPARE(tableOf(shown.view)->topLevelItem(i)->isExpanded(), i == 2);
    shown.view.setAnalysis(analysed("wide_mlp", {"mesh.data=8", "mesh.model=1"}));
    QVERIFY(!tableOf(shown.view)->topLevelItem(0)->isExpanded()); // an edit leaves open what was open
    QVERIFY(!shown.view.picture().items.empty());
}

void TestWhyViews::changesAreSimulatedAndOneIsChosen()
{
    ui::Selection selection;
    ui::WhatIfView view(selection);
    QSignalSpy chosen(&view, &ui::WhatIfView::changeChosen);
    view.resize(700, 300);
    view.show();
    view.setAnalysis(analysed("wide_mlp"));
    QVERIFY(!tableOf(view)->isEnabled());
    QTRY_VERIFY(!view.isBusy());
    const std::vector<sim::ReportTrial>& trials = view.trials();
    QVERIFY(trials.size() >= 4);
    for (std::size_t i = 1; i < trials.size(); ++i) {
        if (trials[i - 1].whyNot.empty() && trials[i].whyNot.empty())
            QVERIFY(trials[i - 1].stepSeconds / static_cast<double>(trials[i - 1].batch)
                <= trials[i].stepSeconds / static_cast<double>(trials[i].batch));
    }
    // What it says of a change is what the study is with it.
    const double now = analysed("wide_mlp")->simulated->simulation.stepSeconds;
    QTreeWidgetItem* first = tableOf(view)->topLevelItem(0); // the study as it is, which is not a change
    QCOMPARE(first->text(1).toStdString(), formatSeconds(now));
    tableOf(view)->setCurrentItem(first);
    QTest::keyClick(tableOf(view), Qt::Key_Return);
    QVERIFY(chosen.empty());
    tableOf(view)->setCurrentItem(tableOf(view)->topLevelItem(1));
    QTest::keyClick(tableOf(view), Qt::Key_Return);
    QCOMPARE(chosen.size(), qsizetype{1});
    std::vector<std::string> settings;
    for (const QString& setting : chosen[0][0].toStringList())
        settings.push_back(setting.toStdString());
    QCOMPARE(analysed("wide_mlp", settings)->simulated->simulation.stepSeconds, trials.front().stepSeconds);
}

void TestWhyViews::pipelinesHaveChangesOfTheirOwn()
{
    const auto now = analysed("pipeline_1f1b"); // pipe=2, data=2, 8 microbatches of 12
    std::map<std::string, sim::ReportTrial> trials;
    for (const sim::ReportTrial& trial : sim::trialsOf(*now, 20))
        trials[trial.what] = trial;
    QVERIFY(!trials.contains("mesh pipe=1, data=4")); // the stages stay as many
    for (const char* what : {"4 microbatches", "schedule gpipe", "schedule zb_h1"}) {
        QVERIFY2(trials.contains(what) && trials[what].whyNot.empty(), what);
        QCOMPARE(analysed("pipeline_1f1b", trials[what].settings)->simulated->simulation.stepSeconds, trials[what].stepSeconds);
    }
}

/// Whether norms work on parts of the sequence is a choice of its own, both ways; the same as the example that says it, with split logits.
void TestWhyViews::sequenceParallelismIsAChange()
{
    const auto trialNamed = [](const sim::Analysis& analysis, const std::string& what) {
        const auto trials = sim::trialsOf(analysis, 40);
        const auto found = std::ranges::find(trials, what, &sim::ReportTrial::what);
        return found == trials.end() ? std::optional<sim::ReportTrial>() : std::optional(*found);
    };
    const auto with = analysed("sequence_parallel_transformer");
    const auto none = trialNamed(*with, "no sequence parallelism");
    QVERIFY(none && none->whyNot.empty());
    const auto without = analysed("sequence_parallel_transformer", none->settings);
    QCOMPARE(without->simulated->simulation.stepSeconds, none->stepSeconds);
    QVERIFY(none->stepSeconds != with->simulated->simulation.stepSeconds);
    const auto again = trialNamed(*without, "sequence parallelism over model");
    QVERIFY(again && again->whyNot.empty());
    std::vector<std::string> logits; // which the example leaves whole
    std::ranges::copy_if(again->settings, std::back_inserter(logits),
        [](const std::string& setting) { return setting.starts_with("sharding.act.logits="); });
    QCOMPARE(logits.size(), std::size_t{1});
    const auto split = analysed("sequence_parallel_transformer", logits);
    QCOMPARE(again->stepSeconds, split->simulated->simulation.stepSeconds);
    QCOMPARE(again->peakBytes, split->simulated->simulation.peakBytes);
    QVERIFY(!trialNamed(
        *analysed("transformer_64", {"model.transformer.layers=1", "mesh={data: 64}"}), "sequence parallelism over data"));
}

/// Microbatches one after the other have no order of stages to choose.
void TestWhyViews::oneStageHasNoSchedules()
{
    const auto now = analysed("transformer_64", {"model.transformer.layers=2", "pipeline.microbatches=2"});
    QStringList found; // each as soon as it is there
    const auto all
        = sim::trialsOf(*now, 20, {}, [&](const sim::ReportTrial& trial) { found << QString::fromStdString(trial.what); });
    QCOMPARE(static_cast<std::size_t>(found.size()), all.size());
    QVERIFY2(found.contains("1 microbatch") && found.contains("4 microbatches"), qPrintable(found.join(", ")));
    QVERIFY2(found.filter("schedule").isEmpty(), qPrintable(found.join(", ")));
}

void TestWhyViews::changesAreSeenAsTheyCome()
{
    ui::Selection selection;
    ui::WhatIfView view(selection);
    view.show();
    view.setAnalysis(analysed("transformer_64"));
    QTRY_VERIFY_WITH_TIMEOUT(!view.trials().empty(), 60'000);
    QVERIFY(view.isBusy());
    QCOMPARE(static_cast<std::size_t>(tableOf(view)->topLevelItemCount()), view.trials().size() + 1);
    QVERIFY2(view.findChild<QLabel*>()->text().contains("so far"), qPrintable(view.findChild<QLabel*>()->text()));
}

void TestWhyViews::ofAnotherStudyTheChangesAreItsOwn()
{
    ui::Selection selection;
    ui::WhatIfView view(selection);
    view.show();
    view.setAnalysis(analysed("wide_mlp"));
    view.setAnalysis(analysed("pipeline_1f1b")); // before the first was ready
    QTRY_VERIFY(!view.isBusy() && !view.trials().empty());
    QVERIFY(std::ranges::any_of(view.trials(), [](const sim::ReportTrial& trial) { return trial.what == "schedule gpipe"; }));
    QCOMPARE(static_cast<std::size_t>(tableOf(view)->topLevelItemCount()), view.trials().size() + 1);
}

void TestWhyViews::onlyDifferencesAreListed()
{
    ui::Baselines baselines;
    ui::CompareView view(baselines);
    view.resize(700, 400);
    view.show();
    const auto before = analysed("wide_mlp");
    view.setAnalysis(before);
    QVERIFY(!view.comparison());
    baselines.pin(before, "wide MLP");
    QVERIFY(view.comparison()->same());

    view.setAnalysis(analysed("wide_mlp", {"sharding.layers.1.w=P()"}));
    const ui::Table& table = *tableOf(view);
    QVERIFY(rowOf(table, "layers.1.w") != nullptr);
    QCOMPARE(rowOf(table, "layers.1.w")->text(1), QString("P(None, 'model'), 128 MiB"));
    QCOMPARE(rowOf(table, "layers.1.w")->text(2), QString("P(), 256 MiB"));
    QVERIFY(rowOf(table, "layers.0.w") == nullptr);
    QVERIFY(rowOf(table, "mesh") == nullptr);
    QVERIFY(!rowOf(table, "step time")->text(3).isEmpty());
    QVERIFY(view.command().contains("--set-b 'sharding.layers.1.w=P()'"));
    QVERIFY(!view.picture().items.empty());
}

void TestWhyViews::pinnedStatesAreTabs()
{
    ui::Baselines baselines;
    ui::CompareView view(baselines);
    view.resize(700, 400);
    view.show();
    const auto first = analysed("wide_mlp");
    const auto second = analysed("wide_mlp", {"mesh.data=8", "mesh.model=1"});
    baselines.pin(first, "a");
    baselines.pin(second, "a");
    baselines.pin(first, "a"); // it is there: it becomes the baseline again
    auto* tabs = view.findChild<QTabBar*>();
    QCOMPARE(tabs->count(), 2);
    QCOMPARE(tabs->currentIndex(), 0);
    QCOMPARE(tabs->tabText(1), QString("2: a, data=8,model=1"));
    view.setAnalysis(second);
    QVERIFY(!view.comparison()->same());
    tabs->setCurrentIndex(1);
    QCOMPARE(baselines.current()->analysis, second);
    QVERIFY(view.comparison()->same());
    const auto saysOld = [&] {
        const auto labels = view.findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(),
            [](const QLabel* label) { return label->text().contains("last good state is compared"); });
    };
    QVERIFY(!saysOld());
    view.setAnalysis(analysed("wide_mlp", {"batch=none"}));
    QVERIFY(saysOld() && !tableOf(view)->isEnabled());
    view.setAnalysis(second);
    QVERIFY(!saysOld() && tableOf(view)->isEnabled());

    QSignalSpy taken(&view, &ui::CompareView::stateChosen);
    tabs->setCurrentIndex(0);
    QTest::mouseClick(view.findChildren<QPushButton*>().at(1), Qt::LeftButton);
    QCOMPARE(taken.size(), qsizetype{1});
    Q_EMIT tabs->tabCloseRequested(0);
    QCOMPARE(baselines.current()->analysis, second);
    Q_EMIT tabs->tabCloseRequested(0);
    QVERIFY(baselines.current() == nullptr);
    QVERIFY(!view.comparison());
}

void TestWhyViews::aStateOfAnotherFileIsNotTaken()
{
    ui::Baselines baselines;
    ui::CompareView view(baselines);
    baselines.pin(analysed("fsdp"), "fsdp");
    view.setAnalysis(analysed("wide_mlp"));
    QVERIFY(view.comparison()->comparesArrays);
    QVERIFY(!view.findChildren<QPushButton*>().at(1)->isEnabled());
}

/// What `simulate` wrote before a change is compared with the study after it.
void TestWhyViews::resultsArePinned()
{
    ui::Baselines baselines;
    ui::CompareView view(baselines);
    const auto before = analysed("wide_mlp");
    sim::Comparable result = sim::comparableOf(*before);
    result.file = "main.json";
    baselines.pin(result, "main.json");
    view.setAnalysis(before);
    QVERIFY(view.comparison()->same());
    QVERIFY(!view.findChildren<QPushButton*>().at(1)->isEnabled()); // the study cannot become a result
    view.setAnalysis(analysed("wide_mlp", {"sharding.layers.1.w=P()"}));
    QVERIFY(rowOf(*tableOf(view), "layers.1.w") != nullptr);
    QVERIFY2(view.command().startsWith("meshwright diff main.json "), qPrintable(view.command()));
    const auto* status = view.findChild<QLabel*>();
    QVERIFY2(!status->text().isEmpty(), "it says how the study differs");
    baselines.pin(result, "main.json"); // the file has changed
    QCOMPARE(baselines.all().size(), std::size_t{1});
    baselines.pin(before, "wide MLP");
    QCOMPARE(baselines.all().size(), std::size_t{2});
}

/// As `meshwright diff --fail-on` judges them, also of a result that CI keeps.
void TestWhyViews::gatesAreJudged()
{
    ui::Baselines baselines;
    ui::CompareView view(baselines);
    const auto before = analysed("wide_mlp");
    sim::Comparable result = sim::comparableOf(*before);
    result.file = "main.json";
    baselines.pin(result, "main.json");
    view.setAnalysis(before);
    view.resize(900, 400);
    view.show();
    auto* gates = view.findChild<QComboBox*>();
    const auto type = [&](const QString& text) {
        gates->lineEdit()->selectAll();
        QTest::keyClicks(gates->lineEdit(), text);
        QTest::keyClick(gates->lineEdit(), Qt::Key_Return);
    };
    type("fits, time>5%");
    QCOMPARE(gates->currentText(), QString("fits, time>5%")); // though the list has a longer one
    type("sharding, time>5%");
    QVERIFY(rowOf(*tableOf(view), "Gates: all pass") != nullptr);
    view.setAnalysis(analysed("wide_mlp", {"sharding.layers.1.w=P()"}));
    QVERIFY(rowOf(*tableOf(view), "Gates: 2 of 2 fail") != nullptr);
    const QTreeWidgetItem* sharding = rowOf(*tableOf(view), "sharding");
    QCOMPARE(sharding->text(3), QString("FAILS"));
    QVERIFY2(sharding->child(0)->text(0).startsWith("grad.layers.1.w: P("), qPrintable(sharding->child(0)->text(0)));
    QVERIFY2(view.command().endsWith(" --fail-on 'sharding,time>5%'"), qPrintable(view.command()));

    const auto says = [&](const QString& words) {
        const auto labels = view.findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(),
            [&](const QLabel* label) { return label->isVisible() && label->text().contains(words); });
    };
    type("tim>5%");
    QVERIFY(says("MW1941") || says("tim"));
    QVERIFY(rowOf(*tableOf(view), "Gates") == nullptr);
    type(" ");
    QVERIFY(!says("tim"));
    QVERIFY(!view.command().contains("--fail-on"));
}

void TestWhyViews::withoutHardwareSaysSo()
{
    const auto analysis = analysed("wide_mlp", {"hardware="});
    QVERIFY(!analysis->simulated);
    Shown shown(analysis);
    QVERIFY(!tableOf(shown.view)->isEnabled());
    QCOMPARE(tableOf(shown.view)->topLevelItemCount(), 0);
    ui::WhatIfView whatIf(shown.selection);
    whatIf.setAnalysis(analysis);
    QVERIFY(!whatIf.isBusy());
    for (const ui::View* view : {static_cast<const ui::View*>(&shown.view), static_cast<const ui::View*>(&whatIf)}) {
        const auto labels = view->findChildren<QLabel*>();
        QVERIFY(std::any_of(
            labels.begin(), labels.end(), [](const QLabel* label) { return label->text().contains("choose a chip"); }));
    }
}

MESHWRIGHT_TEST(TestWhyViews)

} // namespace tst_why_views

#include "tst_why_views.moc"
