// SPDX-License-Identifier: GPL-3.0-or-later
// Predicts records with the constants of a file, one row of CSV each: what a fit is made with and looked at.
//   fit_constants CALIBRATION.json RECORDS.json...
#include "core/support/resources.h"
#include "sim/hardware/catalogue.h"
#include "sim/validate/validate.h"

#include <cstdio>

int main(int count, char** arguments)
{
    using namespace meshwright;
    if (count < 3) {
        std::fputs("usage: fit_constants CALIBRATION.json RECORDS.json...\n", stderr);
        return 2;
    }
    const auto catalogue = sim::Catalogue::load(resourcesDirectory() / "hardware/catalogue.json");
    const auto calibration = sim::Calibration::load(arguments[1]);
    const auto files = sim::recordFiles(std::vector<std::string>(arguments + 2, arguments + count));
    if (!catalogue || !calibration || !files) {
        const Problems& problems = !catalogue ? catalogue.error() : !calibration ? calibration.error() : files.error();
        std::fprintf(stderr, "%s\n", describe(problems).c_str());
        return 3;
    }
    const auto validation = sim::validateFiles(*files, *catalogue, *calibration);
    if (!validation) {
        std::fprintf(stderr, "%s\n", describe(validation.error()).c_str());
        return 3;
    }
    std::fputs(sim::validationCsv(*validation).c_str(), stdout);
    std::fputs(sim::validationText(*validation).c_str(), stderr);
}
