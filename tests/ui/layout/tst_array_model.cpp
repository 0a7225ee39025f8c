// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/array_model.h"

#include "tests/test_class.h"
#include "tests/ui/layout/example_analysis.h"

#include <QAbstractItemModelTester>

namespace tst_array_model {

using namespace meshwright;
using namespace meshwright::ui;
using tests::exampleAnalysis;

class TestArrayModel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void groups();
    void cells();
    void stagesHaveTheirShare();
    void staysWhereNamesStay();
    void everyExample_data();
    void everyExample();
};

namespace {

using Mode = QAbstractItemModelTester::FailureReportingMode;

QStringList titlesOf(const ArrayModel& model)
{
    QStringList titles;
    for (int row = 0; row < model.rowCount(); ++row)
        titles << model.index(row, 0).data().toString();
    return titles;
}

QStringList rowOf(const ArrayModel& model, const QString& name)
{
    QStringList cells;
    for (int column = 0; column < ArrayModel::ColumnCount; ++column)
        cells << model.indexOf(name).siblingAtColumn(column).data().toString();
    return cells;
}

} // namespace

void TestArrayModel::groups()
{
    ArrayModel model;
    const QAbstractItemModelTester tester(&model, Mode::QtTest);
    QCOMPARE(model.rowCount(), 0);
    model.setAnalysis(exampleAnalysis("digits")); // adam: two moments for each of three layers' weights and biases, and the step
    const QStringList titles = titlesOf(model);
    QCOMPARE(titles.mid(0, 4),
        (QStringList{"Parameters (6)", "Parameters, updated (6)", "Optimizer states (13)", "Optimizer states, updated (13)"}));
    QVERIFY(titles.value(4).startsWith("Gradients ("));
    QVERIFY(titles.value(5).startsWith("Inputs ("));
    QVERIFY(titles.value(6).startsWith("Activations ("));
    QVERIFY(model.arrayAt(model.index(0, 0)) == nullptr);
    QVERIFY(!model.index(0, 0).flags().testFlag(Qt::ItemIsSelectable));
    QVERIFY(!model.indexOf("no such array").isValid());
}

void TestArrayModel::cells()
{
    ArrayModel model;
    model.setAnalysis(exampleAnalysis("wide_mlp"));
    QCOMPARE(rowOf(model, "layers.1.w"), (QStringList{"layers.1.w", "P(None, 'model')", "8192x8192", "128 MiB"}));
    QCOMPARE(rowOf(model, "layers.0.b"), (QStringList{"layers.0.b", "P()", "8192", "32.0 KiB"}));
    const QModelIndex weight = model.indexOf("layers.1.w");
    QCOMPARE(
        weight.data(Qt::ToolTipRole).toString(), QString("layers.1.w: f32[8192,8192] as P(None, 'model'), 128 MiB a device"));
    QVERIFY(weight.siblingAtColumn(ArrayModel::Spec).data(ArrayModel::kIsShardedRole).toBool());
    QVERIFY(!model.indexOf("layers.0.b").siblingAtColumn(ArrayModel::Spec).data(ArrayModel::kIsShardedRole).toBool());
}

/// 126 layers of 16 stages: no device has more than 8. Of 2048 sequences, 16 for each of 128 data ranks pass in 16 microbatches, one at a time.
void TestArrayModel::stagesHaveTheirShare()
{
    ArrayModel model;
    model.setAnalysis(exampleAnalysis("llama3_405b_h100"));
    QCOMPARE(rowOf(model, "layers.ffn.up.w").mid(2), (QStringList{"126x16384x53248", "1.62 GiB"}));
    QCOMPARE(rowOf(model, "embedding.w").mid(2), (QStringList{"128256x16384", "501 MiB"}));
    QCOMPARE(rowOf(model, "act.layers").mid(2), (QStringList{"2048x8192x16384", "32.0 MiB"}));
    QCOMPARE(rowOf(model, "grad.act.layers.attention.input").mid(2), (QStringList{"2048x8192x16384", "32.0 MiB"}));
}

void TestArrayModel::staysWhereNamesStay()
{
    ArrayModel model;
    const QAbstractItemModelTester tester(&model, Mode::QtTest);
    model.setAnalysis(exampleAnalysis("wide_mlp"));
    const QPersistentModelIndex weight = model.indexOf("layers.1.w").siblingAtColumn(ArrayModel::Bytes);
    QSignalSpy changed(&model, &ArrayModel::dataChanged);
    model.setAnalysis(exampleAnalysis("wide_mlp", {"mesh.data=2", "mesh.model=4"}));
    QVERIFY(weight.isValid());
    QCOMPARE(weight.data().toString(), QString("64.0 MiB"));
    QVERIFY(changed.count() > 0);

    QSignalSpy reset(&model, &ArrayModel::modelReset);
    model.setAnalysis(exampleAnalysis("digits"));
    QCOMPARE(reset.count(), 1);
}

void TestArrayModel::everyExample_data()
{
    QTest::addColumn<QString>("example");
    for (const QFileInfo& file :
        QDir(QString::fromStdString((resourcesDirectory() / "examples").string())).entryInfoList({"*.yaml"}))
        QTest::newRow(qPrintable(file.baseName())) << file.baseName();
}

void TestArrayModel::everyExample()
{
    QFETCH(QString, example);
    ArrayModel model;
    const QAbstractItemModelTester tester(&model, Mode::QtTest);
    const auto analysis = exampleAnalysis(example);
    model.setAnalysis(analysis);
    int arrays = 0;
    for (int group = 0; group < model.rowCount(); ++group)
        arrays += model.rowCount(model.index(group, 0));
    QCOMPARE(static_cast<std::size_t>(arrays), analysis->arrays.size());
}

MESHWRIGHT_TEST(TestArrayModel)

} // namespace tst_array_model

#include "tst_array_model.moc"
