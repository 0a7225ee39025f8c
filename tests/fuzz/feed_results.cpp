// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/report.h"
#include "sim/report/training_result.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// A report as page or JSON.
void feedReport(std::string_view text)
{
    (void)sim::isReport(text);
    const auto report = sim::readReport(text, "fuzz.html");
    if (!report)
        return;
    const auto again = sim::readReport(sim::reportJson(*report), "again.json");
    require(again.has_value(), "a report that is written can be read");
    (void)sim::reportHtml(*report);
}

/// What `train` writes.
void feedTrainingResult(std::string_view text)
{
    const auto result = sim::readTrainingResult(text, "fuzz.json");
    if (result)
        require(sim::readTrainingResult(result->json, "again.json").has_value(), "a result that was kept can be read");
}

} // namespace meshwright::fuzz
