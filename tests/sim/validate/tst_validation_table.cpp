// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/session/record_step.h"
#include "sim/validate/record.h"
#include "sim/validate/step_case.h"
#include "sim/validate/validate.h"
#include "tests/test_class.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace tst_validation_table {

using namespace meshwright;
using namespace meshwright::sim;

/// The table of resources/manual/validation.md: each row whose records are in the folder `published` says what validation finds today.
/// (The other rows are of records that may not be carried here.)
class TestValidationTable : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void rows_data();
    void rows();
    void mostRowsAreCompared();
    void collectivesFromTheCatalogue();
};

namespace {

const std::filesystem::path kFolder = std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "tests/sim/validate/published";

const Catalogue& catalogue()
{
    static const Catalogue all = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return all;
}

const Calibration& calibration()
{
    static const Calibration all = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    return all;
}

/// Files with more plans to simulate, or with deep pipelines, take a quarter of a minute and more: they are compared where MESHWRIGHT_ALL_RECORDS is set.
bool takesLong(const std::string& name)
{
    if (name == "palm_opt_neox_megascale")
        return true;
    constexpr std::size_t kMostPlans = 40;
    std::size_t plans = 0;
    for (const Record& record : valueOf(readRecords(kFolder / (name + ".json")))) {
        const Result<StepCase> step = record.kind == "training_step" ? stepCaseOf(record, catalogue(), calibration()) : Problem{};
        plans += step ? step->plans.size() : 0;
    }
    return plans > kMostPlans;
}

/// The cells of the table's rows, by the name of the file.
std::map<QString, QStringList> statedRows()
{
    std::map<QString, QStringList> rows;
    const std::string text = valueOf(readFile(resourcesDirectory() / "manual/validation.md"));
    for (const QString& line : QString::fromStdString(text).split('\n')) {
        QStringList cells = line.split('|');
        if (cells.size() != 12 || !cells[2].contains(" of ") || cells[1].contains("file"))
            continue;
        for (QString& cell : cells)
            cell = cell.trimmed();
        rows[cells[1]] = cells.mid(2, 9);
    }
    return rows;
}

QString percent(double fraction)
{
    return QString::number(100.0 * fraction, 'f', 1) + " %";
}

QString number(const std::optional<double>& value)
{
    return value ? QString::number(*value, 'f', 2) : QString("-");
}

FileValidation validated(const std::string& name)
{
    const Validation all = valueOf(
        validateFiles({kFolder / (name + ".json")}, catalogue(), calibration(), stepSimulator(catalogue(), calibration())));
    return all.files.front();
}

} // namespace

void TestValidationTable::rows_data()
{
    QTest::addColumn<QStringList>("stated");
    for (const auto& [name, cells] : statedRows()) {
        if (std::filesystem::exists(kFolder / (name + ".json").toStdString()))
            QTest::newRow(name.toUtf8().constData()) << cells;
    }
}

void TestValidationTable::rows()
{
    QFETCH(QStringList, stated);
    if (takesLong(QTest::currentDataTag()) && qEnvironmentVariableIsEmpty("MESHWRIGHT_ALL_RECORDS"))
        QSKIP("more plans than a test may simulate; set MESHWRIGHT_ALL_RECORDS");
    const FileValidation found = validated(QTest::currentDataTag());
    const auto& error = found.stepTime ? found.stepTime : found.time;
    QCOMPARE(QString("%1 of %2").arg(found.scored).arg(found.records), stated[0]);
    QCOMPARE(error ? percent(error->median) : "-", stated[1]);
    QCOMPARE(error ? percent(error->mean) : "-", stated[2]);
    QCOMPARE(error ? percent(error->p90) : "-", stated[3]);
    QCOMPARE(found.constantMfuMeanError ? percent(*found.constantMfuMeanError) : "-", stated[5]);
    QCOMPARE(number(found.rankCorrelation), stated[6]);
}

void TestValidationTable::mostRowsAreCompared()
{
    std::size_t compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
        if (entry.path().extension() != ".json")
            continue;
        ++compared;
        const QString name = QString::fromStdString(entry.path().stem().string());
        QVERIFY2(statedRows().contains(name), qPrintable(name + " has no row"));
    }
    QVERIFY(compared >= 20);
}

void TestValidationTable::collectivesFromTheCatalogue()
{
    const FileValidation found = validated("collectives");
    QVERIFY(found.largeTime && found.smallTime && found.calibratedTime);
    const QString stated = QString("median error %1 from 16 MiB up").arg(percent(found.largeTime->median));
    const QString text = QString::fromStdString(valueOf(readFile(resourcesDirectory() / "manual/validation.md")));
    QVERIFY2(text.contains(stated), qPrintable(stated));
    QVERIFY(text.contains(QString("%1 below 1 MiB").arg(percent(found.smallTime->median))));
    QVERIFY(text.contains(QString("%1 of the other sizes").arg(percent(found.calibratedTime->median))));
}

MESHWRIGHT_TEST(TestValidationTable)

} // namespace tst_validation_table

#include "tst_validation_table.moc"
