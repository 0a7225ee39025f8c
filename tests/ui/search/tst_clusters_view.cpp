// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/session/session.h"
#include "tests/test_class.h"
#include "ui/search/clusters_view.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/table.h"

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>

namespace tst_clusters_view {

using namespace meshwright;

/// A person names models, clusters, tokens and prices, reads how long each takes and what it costs, and goes on with one of the plans.
class TestClustersView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void beginsWithTheStudy_data();
    void beginsWithTheStudy();
    void modelsAreComparedOnClusters();
    void whatIsMissingIsSaid_data();
    void whatIsMissingIsSaid();
    void aComparisonCanBeCancelled();

private:
    QTemporaryDir m_folder;
    QString m_model;
};

namespace {

std::shared_ptr<const sim::Catalogue> catalogue()
{
    static const auto all = std::make_shared<const sim::Catalogue>(valueOf(sim::defaultCatalogue()));
    return all;
}

std::shared_ptr<const sim::Analysis> analysed(const std::string& text, const std::string& file)
{
    return sim::analysed({text, file, {}}, *catalogue(), {}, false);
}

struct Shown {
    Shown()
    {
        view.resize(950, 560);
        view.show();
    }

    QLineEdit& field(const QString& name)
    {
        for (QLineEdit* one : view.findChildren<QLineEdit*>()) {
            if (one->accessibleName() == name)
                return *one;
        }
        qFatal("no field %s", qPrintable(name));
    }

    QPushButton& button(const QString& text)
    {
        for (QPushButton* one : view.findChildren<QPushButton*>()) {
            if (one->text().remove(QLatin1Char('&')) == text)
                return *one;
        }
        qFatal("no button %s", qPrintable(text));
    }

    ui::Table& table() { return *view.findChild<ui::Table*>(); }

    ui::ClustersView view{catalogue()};
};

enum Column { Cluster, Days, Cost, Step, Rate, Mfu, Memory, Plan, Note };

} // namespace

/// A model of four layers: each plan takes a fraction of a second.
void TestClustersView::initTestCase()
{
    m_model = m_folder.filePath("small.json");
    QVERIFY(writeFileAtomically(m_model.toStdString(),
        R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 4,
        "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096})"));
}

void TestClustersView::beginsWithTheStudy_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("models");
    QTest::addColumn<QString>("clusters");

    const QString rest = "\nhardware: {chip: v5e, topology: [4, 4]}\nmesh: {data: 16}\nbatch: 16\n";
    QTest::newRow("a model that comes with Meshwright") << "model: {transformer: {config: gpt2}}\nsequence: 64" + rest << "gpt2"
                                                        << "16xtpu-v5e";
    QTest::newRow("the sizes of one that does")
        << "model: {transformer: {layers: 32, hidden: 4096, heads: 32, ffn: 11008, vocabulary: 32000, max_positions: 4096, "
           "gated: true,\n"
           "  norm: rms, position: rotary, activation: silu, predict: every_token}}\nsequence: 64"
            + rest
        << "llama2_7b"
        << "16xtpu-v5e";
    QTest::newRow("a file beside the study")
        << "model: {transformer: {config: small.json}}\nsequence: 64" + rest << m_folder.filePath("small.json") << "16xtpu-v5e";
    QTest::newRow("another kind of model") << "model: {mlp: {layers: [64, 64]}}" + rest << "llama3_8b"
                                           << "16xtpu-v5e";
    QTest::newRow("no hardware") << "model: {mlp: {layers: [64, 64]}}\nmesh: {data: 4}\nbatch: 16\n"
                                 << "llama3_8b"
                                 << "";
}

void TestClustersView::beginsWithTheStudy()
{
    QFETCH(QString, model);
    QFETCH(QString, models);
    QFETCH(QString, clusters);
    Shown shown;
    const auto analysis = analysed("meshwright: 1\n" + model.toStdString(), m_folder.filePath("study.yaml").toStdString());
    QVERIFY2(analysis->study, describe(analysis->problems).c_str());
    shown.view.setAnalysis(analysis);
    QCOMPARE(shown.field("Models").text(), models);
    QCOMPARE(shown.field("Clusters").text(), clusters);
    shown.field("Clusters").setText("8xH100");
    shown.view.setAnalysis(analysis); // an edit of the study takes nothing back
    QCOMPARE(shown.field("Clusters").text(), QString("8xH100"));
    shown.view.setAnalysis(
        analysed("meshwright: 1\nmodel: {transformer: {config: llama2_7b}}\nsequence: 64\nmesh: {data: 4}\nbatch: 4\n",
            m_folder.filePath("other.yaml").toStdString()));
    QCOMPARE(shown.field("Models").text(), QString("llama2_7b")); // another study, another model
    QCOMPARE(shown.field("Clusters").text(), QString("8xH100"));
}

/// Two models on three clusters, one of which does not exist; the dearer one of the others costs more by its price.
void TestClustersView::modelsAreComparedOnClusters()
{
    Shown shown;
    shown.field("Models").setText(m_model + ", gpt2");
    shown.field("Clusters").setText("2xH100, 2xH200, 2xNone");
    shown.field("Tokens").setText("100B");
    shown.field("Sequence").setText("1k");
    shown.field("Price").setText("2, 3, 4");
    shown.button("Compare").click();
    QVERIFY(shown.view.job().isBusy());
    ui::Table& table = shown.table();
    connect(&shown.view.job(), &ui::ClustersJob::begun, &table, [&](std::size_t index) { // after the view
        const auto row = static_cast<int>(index);
        QCOMPARE(table.topLevelItem(row / 3)->child(row % 3)->text(Note), QString("searching…"));
    });
    QTRY_VERIFY_WITH_TIMEOUT(!shown.view.job().isBusy(), 240'000);
    QCOMPARE(table.topLevelItemCount(), 2);
    for (int model = 0; model < 2; ++model) {
        const QTreeWidgetItem& group = *table.topLevelItem(model);
        QCOMPARE(group.childCount(), 3);
        for (int cluster = 0; cluster < 2; ++cluster) {
            const QTreeWidgetItem& row = *group.child(cluster);
            for (const int column : {Days, Cost, Step, Rate, Mfu, Memory, Plan})
                QVERIFY2(!row.text(column).isEmpty(), qPrintable(QString::number(column)));
            QVERIFY2(row.text(Cost).startsWith('$'), qPrintable(row.text(Cost)));
        }
        const auto hasNote
            = [&](int cluster, const char* note) { return group.child(cluster)->text(Note).contains(QLatin1String(note)); };
        QVERIFY(hasNote(0, "quickest") != hasNote(1, "quickest"));
        QVERIFY(hasNote(0, "cheapest")); // as quick as the other or nearly so, at two thirds of the price
        QVERIFY2(hasNote(2, "2xNone"), qPrintable(group.child(2)->text(Note)));
    }

    const QStringList commands = shown.view.command().split('\n');
    QCOMPARE(commands.size(), 6);
    QCOMPARE(commands[1], QStringLiteral("meshwright plan %1 --on 2xH200 --tokens 100B --seq 1k --price 3").arg(m_model));
    QCOMPARE(shown.view.report().findAnswer("fits")->headline, std::string("Yes")); // of those that exist
    QVERIFY(!shown.view.picture().items.empty());

    QSignalSpy asked(&shown.view, &ui::ClustersView::studyRequested);
    QVERIFY(!shown.button("Open as a study").isEnabled());
    table.setCurrentItem(table.topLevelItem(0)->child(1));
    shown.button("Open as a study").click();
    QCOMPARE(asked.count(), 1);
    const auto study = analysed(asked.front().front().value<std::string>(), {});
    QVERIFY2(study->simulated, describe(study->problems).c_str());
    QCOMPARE(table.currentItem()->text(Step).toStdString(), formatSeconds(study->simulated->simulation.stepSeconds));
    table.setCurrentItem(table.topLevelItem(0)->child(2)); // there is no plan
    QVERIFY(!shown.button("Open as a study").isEnabled());
}

void TestClustersView::whatIsMissingIsSaid_data()
{
    QTest::addColumn<QString>("field");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("says");

    QTest::newRow("no model") << "Models"
                              << " , "
                              << "Name a model.";
    QTest::newRow("no cluster") << "Clusters"
                                << ""
                                << "Name a cluster: chips and how many, such as 64xH100.";
    QTest::newRow("no tokens") << "Tokens"
                               << " "
                               << "Say how many tokens the training has, such as 2T.";
    QTest::newRow("two prices") << "Price"
                                << "1, 2"
                                << "There are 2 prices for 1 cluster. Give one for all, or one each in their order.";
}

void TestClustersView::whatIsMissingIsSaid()
{
    QFETCH(QString, field);
    QFETCH(QString, text);
    QFETCH(QString, says);
    Shown shown;
    shown.field("Clusters").setText("8xH100");
    shown.field(field).setText(text);
    QTest::keyClick(&shown.field(field), Qt::Key_Return);
    QVERIFY(!shown.view.job().isBusy());
    QCOMPARE(shown.view.findChild<ui::Notice*>()->text(), says);
    QCOMPARE(shown.table().topLevelItemCount(), 0);
}

void TestClustersView::aComparisonCanBeCancelled()
{
    Shown shown;
    shown.field("Models").setText("llama3_405b");
    shown.field("Clusters").setText("1024xH100, 2048xH100");
    shown.button("Compare").click();
    QVERIFY(shown.view.job().isBusy() && !shown.button("Compare").isEnabled());
    shown.button("Cancel").click();
    QVERIFY(!shown.view.job().isBusy() && shown.button("Compare").isEnabled());
    QCOMPARE(shown.table().topLevelItem(0)->childCount(), 2);
    const QTreeWidgetItem* row = shown.table().topLevelItem(0)->child(1);
    QCOMPARE(row->text(shown.table().columnCount() - 1), QString("not looked at"));
    QVERIFY(!shown.view.hasReport() && !shown.button("Save page…").isEnabled());
}

MESHWRIGHT_TEST(TestClustersView)

} // namespace tst_clusters_view

#include "tst_clusters_view.moc"
