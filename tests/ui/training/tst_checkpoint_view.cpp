// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/session/engine.h"
#include "tests/test_class.h"
#include "ui/training/checkpoint_view.h"
#include "ui/widgets/notice.h"
#include "ui/widgets/table.h"

#include <QLabel>
#include <QPushButton>
#include <QTemporaryDir>

namespace tst_checkpoint_view {

using namespace meshwright;

/// A checkpoint of eight devices beside studies on other meshes.
class TestCheckpointView : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void devicesReadWhatThePlanSays_data();
    void devicesReadWhatThePlanSays();
    void hostsAreGroups();
    void anotherModelSaysWhy();
    void saysWhatItWaitsFor();

private:
    QTemporaryDir m_folder;
};

namespace {

using Analysed = std::shared_ptr<const sim::Analysis>;

Analysed analysed(const std::string& example, const std::vector<std::string>& settings = {})
{
    static sim::Session session(valueOf(sim::defaultCatalogue()));
    const auto path = resourcesDirectory() / "examples" / example;
    return session.analyse({valueOf(readFile(path)), "examples/" + example, settings});
}

struct Shown {
    Shown()
    {
        view.resize(760, 500);
        view.show();
    }

    ui::Table& table() { return *view.findChild<ui::Table*>(); }

    QLabel* label(const QString& name)
    {
        for (QLabel* one : view.findChildren<QLabel*>()) {
            if (one->accessibleName() == name)
                return one;
        }
        return nullptr;
    }

    ui::CheckpointView view;
};

} // namespace

void TestCheckpointView::initTestCase()
{
    const Analysed analysis = analysed("tensor_parallel.yaml", {"train.steps=1"});
    sim::TrainChoices choices;
    choices.checkpoints = CheckpointPlan{m_folder.path().toStdString()};
    const auto trained = sim::trainStudy(*analysis->study, choices, {}, {});
    QVERIFY2(trained, trained ? "" : describe(trained.error()).c_str());
}

void TestCheckpointView::devicesReadWhatThePlanSays_data()
{
    QTest::addColumn<QStringList>("settings");

    QTest::newRow("the mesh that wrote it") << QStringList{};
    QTest::newRow("fewer devices") << QStringList{"mesh={data: 2, model: 1}"};
    QTest::newRow("another split") << QStringList{"mesh={data: 2, model: 4}", "sharding.layers.1.w=P('model', None)"};
}

void TestCheckpointView::devicesReadWhatThePlanSays()
{
    QFETCH(QStringList, settings);
    std::vector<std::string> asked;
    for (const QString& one : settings)
        asked.push_back(one.toStdString());
    const Analysed analysis = analysed("tensor_parallel.yaml", asked);
    Shown shown;
    shown.view.setAnalysis(analysis);
    shown.view.openCheckpoint(m_folder.path());
    QTRY_VERIFY(!shown.view.isBusy() && shown.table().topLevelItemCount() == 1);
    const auto reader = valueOf(CheckpointReader::open(m_folder.path().toStdString()));
    const auto phases = valueOf(sim::trainingPhases(*analysis->study));
    const auto shares = valueOf(restorePlan(*reader, phases.front()));
    const QTreeWidgetItem& all = *shown.table().topLevelItem(0);
    QCOMPARE(all.childCount(), static_cast<int>(shares.size()));
    std::int64_t sum = 0;
    for (int i = 0; i < all.childCount(); ++i) {
        const RestoreShare& share = shares[static_cast<std::size_t>(i)];
        std::int64_t bytes = 0;
        for (const ReadFromFile& file : share.files)
            bytes += file.bytes;
        sum += bytes;
        QCOMPARE(all.child(i)->text(0), QStringLiteral("device %1").arg(share.device));
        QCOMPARE(all.child(i)->text(1), QString::number(share.files.size()));
        QCOMPARE(all.child(i)->text(3).toStdString(), formatBytes(static_cast<double>(bytes)));
    }
    QCOMPARE(all.text(3).toStdString(), formatBytes(static_cast<double>(sum)));
    QVERIFY(shown.view.command().startsWith("meshwright reshard --from "));
    QVERIFY(shown.view.command().endsWith(" --dry-run"));
    QVERIFY(!shown.view.picture().items.empty());
}

/// Two hosts of two GPUs: each reads what its devices read.
void TestCheckpointView::hostsAreGroups()
{
    Shown shown;
    shown.view.openCheckpoint(m_folder.path());
    shown.view.setAnalysis(
        analysed("tensor_parallel.yaml", {"mesh={data: 2, model: 2}", "hardware={chip: h100, hosts: 2, per_host: 2}"}));
    QTRY_COMPARE(shown.table().topLevelItemCount(), 2);
    for (int host = 0; host < 2; ++host) {
        const QTreeWidgetItem& group = *shown.table().topLevelItem(host);
        QCOMPARE(group.text(0), QStringLiteral("host %1").arg(host));
        QCOMPARE(group.childCount(), 2);
        QCOMPARE(group.child(0)->text(0), QStringLiteral("device %1").arg(2 * host));
    }
}

void TestCheckpointView::anotherModelSaysWhy()
{
    Shown shown;
    shown.view.setAnalysis(analysed("wide_mlp.yaml"));
    shown.view.openCheckpoint(m_folder.path());
    auto* notice = shown.view.findChild<ui::Notice*>();
    QTRY_VERIFY(notice->text().contains("MW1646"));
    QVERIFY(notice->isVisible() && !shown.table().isVisible());
    QVERIFY(notice->text().count("MW1646") <= 4); // of many of a kind a few
    shown.view.setAnalysis(analysed("tensor_parallel.yaml")); // now it can
    QTRY_VERIFY(shown.table().isVisible() && !notice->isVisible());
}

void TestCheckpointView::saysWhatItWaitsFor()
{
    Shown shown;
    QVERIFY(!shown.table().isVisible());
    shown.view.openCheckpoint(m_folder.path());
    QTRY_VERIFY(shown.label("What is read")->text().endsWith(" Open the study that is to go on from it."));
    QVERIFY2(shown.label("What is read")->text().startsWith("Step 1 of a training with "),
        qPrintable(shown.label("What is read")->text()));
    QCOMPARE(shown.table().topLevelItem(0)->text(1).left(4), QString("f32[")); // what is in it is seen meanwhile
    QStringList layouts;
    for (int row = 0; row < shown.table().topLevelItemCount(); ++row)
        layouts << shown.table().topLevelItem(row)->text(2);
    QVERIFY2(layouts.contains("P(None, 'model')"), qPrintable(layouts.join("; "))); // in the notation of all views
    const auto buttons = shown.view.findChildren<QPushButton*>();
    QVERIFY2(!buttons.at(1)->isEnabled(), "without a study there is no layout to write a copy in");
    shown.view.openCheckpoint(m_folder.filePath("none"));
    shown.view.setAnalysis(analysed("tensor_parallel.yaml"));
    QTRY_VERIFY(shown.view.findChild<ui::Notice*>()->text().contains("MW1001"));
}

MESHWRIGHT_TEST(TestCheckpointView)

} // namespace tst_checkpoint_view

#include "tst_checkpoint_view.moc"
