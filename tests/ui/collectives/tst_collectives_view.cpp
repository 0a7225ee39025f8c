// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "tests/test_class.h"
#include "ui/collectives/collectives_model.h"
#include "ui/collectives/collectives_view.h"

#include <QAbstractItemModelTester>

namespace tst_collectives_view {

using namespace meshwright;

/// From the longest collective to the spec that causes it.
class TestCollectivesView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void modelIsAModel();
    void rowsAreTheStepsCollectives();
    void gradientsOfLoopsHaveTheirNames();
    void alikeAreOneRow_data();
    void alikeAreOneRow();
    void withoutHardwareThereAreNoTimes();
    void longestComesFirst();
    void selectingARowSelectsItsArray();
    void theFocusSelectsNothing();
    void buttonsNameTheSpec();
    void theSummarySaysWhose_data();
    void theSummarySaysWhose();
    void keepsTheLastGoodState();
    void pictureHasEveryRow();

private:
    std::shared_ptr<const sim::Analysis> analysed(
        std::vector<std::string> settings = {}, const std::string& example = "notebook_mlp.yaml");

    sim::Session m_session{valueOf(sim::defaultCatalogue())};
};

std::shared_ptr<const sim::Analysis> TestCollectivesView::analysed(std::vector<std::string> settings, const std::string& example)
{
    const auto path = resourcesDirectory() / "examples" / example;
    return m_session.analyse({valueOf(readFile(path)), path.string(), std::move(settings)});
}

void TestCollectivesView::modelIsAModel()
{
    ui::CollectivesModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.setAnalysis(analysed());
    QVERIFY(model.rowCount() > 5);
    model.setAnalysis(analysed({"mesh={data: 1, model: 1}"}));
    QCOMPARE(model.rowCount(), 0);
}

void TestCollectivesView::rowsAreTheStepsCollectives()
{
    const auto analysis = analysed();
    ui::CollectivesModel model;
    model.setAnalysis(analysis);
    const auto& collectives = analysis->simulated->simulation.collectives;
    QCOMPARE(model.collectiveCount(), static_cast<int>(collectives.size()));
    QCOMPARE(model.index(0, ui::CollectivesModel::Operation).data().toString(), QString("all-reduce"));
    QCOMPARE(model.index(0, ui::CollectivesModel::Axes).data().toString(), QString("model"));
    QCOMPARE(model.index(0, ui::CollectivesModel::Value).data().toString(), QString("act.layers.2.product"));
    QCOMPARE(model.index(0, ui::CollectivesModel::Cause).data().toString(), QString("sharding.layers.1.w"));
    QCOMPARE(model.index(0, ui::CollectivesModel::Bytes).data().toString(), QString("64.0 MiB"));
}

/// In a loop over layers a weight's gradient is a product without a name until the loop has stacked it.
void TestCollectivesView::gradientsOfLoopsHaveTheirNames()
{
    ui::CollectivesModel model;
    model.setAnalysis(analysed({"model.transformer.layers=2"}, "transformer_64.yaml"));
    QStringList values;
    for (int row = 0; row < model.rowCount(); ++row)
        values << model.index(row, ui::CollectivesModel::Value).data().toString();
    for (const char* name : {"grad.layers.ffn.up.w", "grad.layers.ffn.down.w", "grad.layers.attention.q.w", "grad.head.w"})
        QVERIFY2(values.contains(name), qPrintable(QString::fromLatin1(name) + " of " + values.join(", ")));
    QVERIFY2(values.filter("the result of dot_general").isEmpty(), qPrintable(values.join(", ")));
}

void TestCollectivesView::alikeAreOneRow_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<std::vector<std::string>>("settings");
    QTest::addColumn<QString>("value");

    QTest::newRow("layers that are copies") << "pipeline_transformer.yaml" << std::vector<std::string>{} << "act.layers.*.ffn";
    QTest::newRow("chunks of a loss") << "transformer_64.yaml"
                                      << std::vector<std::string>{"model.transformer.layers=2",
                                             "model.transformer.loss={cross_entropy: {chunks: 4}}"}
                                      << "reduce(act.logits, ..)";
}

/// Of layers and chunks there is a row for each kind of collective, with the calls and the times of all.
void TestCollectivesView::alikeAreOneRow()
{
    QFETCH(QString, example);
    QFETCH(std::vector<std::string>, settings);
    QFETCH(QString, value);
    const auto analysis = analysed(settings, example.toStdString());
    QVERIFY(analysis->simulated);
    const auto& all = analysis->simulated->simulation.collectives;
    ui::CollectivesModel model;
    model.setAnalysis(analysis);
    std::set<std::pair<std::int64_t, QStringList>> kinds; // bytes are told rounded
    std::int64_t calls = 0;
    double seconds = 0.0;
    bool isFolded = false;
    for (int row = 0; row < model.rowCount(); ++row) {
        const auto text = [&](int column) { return model.index(row, column).data().toString(); };
        const QStringList words = {text(ui::CollectivesModel::Operation), text(ui::CollectivesModel::Axes),
            text(ui::CollectivesModel::Value), text(ui::CollectivesModel::Phase), text(ui::CollectivesModel::Cause)};
        QVERIFY2(kinds.insert({model.collective(row).use.payloadBytes, words}).second, qPrintable(words.join(", ")));
        calls += model.collective(row).use.count;
        seconds += model.collective(row).seconds;
        isFolded |= text(ui::CollectivesModel::Value) == value && model.members(row).size() > 1;
        for (const std::size_t member : model.members(row))
            QCOMPARE(model.rowOf(member), row);
    }
    QVERIFY(isFolded);
    QVERIFY(model.rowCount() < static_cast<int>(all.size()));
    for (const auto& one : all) {
        calls -= one.use.count;
        seconds -= one.seconds;
    }
    QCOMPARE(calls, std::int64_t{0});
    QVERIFY(std::abs(seconds) < 1e-9);
}

void TestCollectivesView::withoutHardwareThereAreNoTimes()
{
    ui::CollectivesModel model;
    model.setAnalysis(analysed({"hardware="}));
    QVERIFY(model.rowCount() > 5);
    QCOMPARE(model.index(0, ui::CollectivesModel::Time).data().toString(), QString());
    QCOMPARE(model.index(0, ui::CollectivesModel::Bytes).data().toString(), QString("64.0 MiB"));
}

void TestCollectivesView::longestComesFirst()
{
    ui::Selection selection;
    ui::CollectivesView view(selection);
    const auto analysis = analysed();
    view.setAnalysis(analysis);
    const auto* table = view.findChild<QTableView*>();
    double longest = 0.0;
    for (const auto& alike : sim::alikeCollectives(analysis->simulated->simulation.collectives))
        longest = std::max(longest, alike.all.seconds);
    QCOMPARE(table->model()->index(0, ui::CollectivesModel::Time).data(ui::CollectivesModel::kSortRole).toDouble(), longest);
}

void TestCollectivesView::selectingARowSelectsItsArray()
{
    ui::Selection selection;
    ui::CollectivesView view(selection);
    view.setAnalysis(analysed());
    view.resize(900, 500);
    view.show();
    auto* table = view.findChild<QTableView*>();
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(1, 2)).center());
    const QString value = table->model()->index(1, ui::CollectivesModel::Value).data().toString();
    QCOMPARE(selection.array(), value);
    QCOMPARE(selection.operation(), "all_reduce " + value);
}

/// A table that gets the focus makes its first row the current one; the selection, which all views share, stays.
void TestCollectivesView::theFocusSelectsNothing()
{
    const auto analysis = analysed();
    ui::Selection selection;
    selection.setAnalysis(*analysis);
    ui::CollectivesView view(selection);
    view.setAnalysis(analysis);
    selection.setArray("x");
    view.show();
    view.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&view));
    auto* table = view.findChild<QTableView*>();
    table->setFocus(Qt::TabFocusReason);
    QVERIFY(table->currentIndex().isValid());
    QCOMPARE(selection.array(), QString("x"));
    QVERIFY(!selection.collective());
    QTest::keyClick(table, Qt::Key_Down);
    QVERIFY(selection.collective());
    QVERIFY(selection.array() != "x");
}

void TestCollectivesView::buttonsNameTheSpec()
{
    ui::Selection selection;
    ui::CollectivesView view(selection);
    view.setAnalysis(analysed());
    QSignalSpy requested(&view, &ui::CollectivesView::specRequested);
    QSignalSpy removed(&view, &ui::CollectivesView::removeSpecRequested);
    const auto buttons = view.findChildren<QPushButton*>();
    QCOMPARE(buttons.size(), 2);
    QVERIFY(!buttons[0]->isEnabled()); // nothing is selected
    auto* table = view.findChild<QTableView*>();
    table->selectRow(0);
    const QString spec = table->model()->index(0, ui::CollectivesModel::Cause).data().toString();
    QVERIFY(spec.startsWith("sharding."));
    for (QPushButton* button : buttons) {
        QVERIFY(button->isEnabled());
        button->click();
    }
    QCOMPARE(requested.at(0).at(0).toString(), spec);
    QCOMPARE(removed.at(0).at(0).toString(), spec);
}

/// Those of a pipeline are of the stage whose times the other views show.
void TestCollectivesView::theSummarySaysWhose_data()
{
    QTest::addColumn<QString>("example");
    QTest::addColumn<QString>("says");

    QTest::newRow("all devices do the same") << "notebook_mlp.yaml"
                                             << "collectives in a step, ";
    QTest::newRow("a pipeline") << "pipeline_1f1b.yaml"
                                << "collectives in a step of the stage that computes longest, ";
}

void TestCollectivesView::theSummarySaysWhose()
{
    QFETCH(QString, example);
    QFETCH(QString, says);
    ui::Selection selection;
    ui::CollectivesView view(selection);
    view.setAnalysis(analysed({}, example.toStdString()));
    QVERIFY2(view.findChild<QLabel*>()->text().contains(says), qPrintable(view.findChild<QLabel*>()->text()));
}

void TestCollectivesView::keepsTheLastGoodState()
{
    ui::Selection selection;
    ui::CollectivesView view(selection);
    view.setAnalysis(analysed({"batch=none"}));
    QVERIFY2(view.findChild<QLabel*>()->text().contains("expected an integer"), qPrintable(view.findChild<QLabel*>()->text()));
    view.setAnalysis(analysed());
    const auto* table = view.findChild<QTableView*>();
    const int rows = table->model()->rowCount();
    view.setAnalysis(analysed({"batch=none"}));
    QCOMPARE(table->model()->rowCount(), rows);
    QVERIFY(!table->isEnabled());
    view.setAnalysis(analysed());
    QVERIFY(table->isEnabled());
}

void TestCollectivesView::pictureHasEveryRow()
{
    ui::Selection selection;
    ui::CollectivesView view(selection);
    view.setAnalysis(analysed());
    const DisplayList picture = view.picture();
    const auto words = std::count_if(picture.items.begin(), picture.items.end(),
        [](const DisplayItem& item) { return std::holds_alternative<TextShape>(item.shape); });
    const int rows = view.findChild<QTableView*>()->model()->rowCount();
    QCOMPARE(static_cast<int>(words), (rows + 1) * int(ui::CollectivesModel::ColumnCount));
    QVERIFY(picture.width > 400 && picture.height > 100);
}

MESHWRIGHT_TEST(TestCollectivesView)

} // namespace tst_collectives_view

#include "tst_collectives_view.moc"
