// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/plan/planning_data.h"
#include "sim/session/engine.h"
#include "sim/session/record_step.h"
#include "sim/validate/validate.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <map>

namespace tst_program_errors {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

/// The errors that `plan` shows beside a step are those of `validate`.
class TestProgramErrors : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tableIsWhatValidateSays_data();
    void tableIsWhatValidateSays();
};

void TestProgramErrors::tableIsWhatValidateSays_data()
{
    QTest::addColumn<QString>("file");
    const auto table = nlohmann::json::parse(valueOf(readFile(resourcesDirectory() / "hardware/planning.json")));
    std::string last;
    for (const auto& entry : table["program_errors"]["files"]) {
        const std::string file = entry["file"];
        if (file != last)
            QTest::newRow(file.c_str()) << text(file);
        last = file;
    }
}

/// Of the files in the folder that MESHWRIGHT_PUBLISHED names. A file that differs prints the rows that it should have.
void TestProgramErrors::tableIsWhatValidateSays()
{
    QFETCH(QString, file);
    const QByteArray folder = qgetenv("MESHWRIGHT_PUBLISHED");
    if (folder.isEmpty())
        QSKIP("MESHWRIGHT_PUBLISHED names no folder of records");
    const PlanningData data = valueOf(PlanningData::load(resourcesDirectory() / "hardware/planning.json"));
    const Result<Catalogue>& catalogue = defaultCatalogue();
    const Result<Calibration>& calibration = defaultCalibration();
    const Validation validation = valueOf(validateFiles({std::filesystem::path(folder.toStdString()) / file.toStdString()},
        *catalogue, *calibration, stepSimulator(*catalogue, *calibration)));
    std::map<std::string, std::vector<double>> ratios; // by chip
    for (const StepPrediction& step : validation.files.front().steps) {
        if (step.scored && step.measuredSeconds)
            ratios[step.chip].push_back(*step.measuredSeconds / step.simulated.seconds);
    }
    QVERIFY(!ratios.empty());
    bool isEqual = true;
    for (auto& [chip, found] : ratios) {
        std::sort(found.begin(), found.end());
        const std::vector<double> listed = data.errorsOf(file.toStdString(), chip);
        QString row;
        bool isRowEqual = listed.size() == found.size();
        for (std::size_t i = 0; i < found.size(); ++i) {
            isRowEqual = isRowEqual && std::abs(listed[i] - found[i]) < 0.002;
            row += QString(i == 0 ? "%1" : ", %1").arg(found[i], 0, 'f', 3);
        }
        if (!isRowEqual)
            qWarning("%s on %s: [%s]", qPrintable(file), chip.c_str(), qPrintable(row));
        isEqual = isEqual && isRowEqual;
    }
    QVERIFY(isEqual);
}

MESHWRIGHT_TEST(TestProgramErrors)

} // namespace tst_program_errors

#include "tst_program_errors.moc"
