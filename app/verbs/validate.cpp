// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "sim/session/engine.h"
#include "sim/session/record_step.h"
#include "sim/validate/validate.h"

namespace meshwright::cli {

int runValidate(const ValidateOptions& options, Output& output)
{
    const auto files = sim::recordFiles(options.paths);
    if (!files)
        return fail(files.error(), output);
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error(), output);
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (!calibration)
        return fail(calibration.error(), output);
    const auto validation = sim::validateFiles(*files, *catalogue, *calibration, sim::stepSimulator(*catalogue, *calibration));
    if (!validation)
        return fail(validation.error(), output);
    output.result(output.format == Format::Json ? sim::validationJson(*validation)
            : output.format == Format::Csv      ? sim::validationCsv(*validation)
                                                : sim::validationText(*validation));
    return kExitOk;
}

} // namespace meshwright::cli
