// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/read_trace.h"

#include "tests/fuzz/targets.h"

#include <cmath>
#include <sstream>

namespace meshwright::fuzz {

/// Trace events of another program.
void feedTrace(std::string_view text)
{
    (void)sim::isTraceJson(text);
    std::istringstream stream{std::string(text)};
    const auto trace = sim::readTraceJson(stream, "fuzz.json");
    if (!trace)
        return;
    require(!trace->timeline.rows().empty(), "a trace that can be read has rows");
    for (const TimelineRow& row : trace->timeline.rows())
        require(row.device >= sim::kHostRow, "a row is a device's or the host's");
    require(std::isfinite(trace->timeline.endSeconds()), "a trace ends");
}

} // namespace meshwright::fuzz
