// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/report/report.h"
#include "sim/sweep/sweep_result.h"

#include <string>

namespace meshwright::sim {

/// What a sweep's rates count: "examples/s", "tokens/s" where sequences differ, of a program, which has no batch, "steps/s".
const char* sweepRateUnit(const SweepPlan& plan);

/// `meshwright.sweep/1`. The same points give the same bytes, however many threads or runs it took.
std::string sweepJson(const SweepResult& result);

/// The rows of `sweepJson`, one on each line, without what is the same for all.
std::string sweepJsonLines(const SweepResult& result);

/// A row for each point: a column for each parameter, then `state,step_time_s` and so on.
std::string sweepCsv(const SweepResult& result);

/// What a person reads: the best point, a row for each point, how many fit, what refused the others.
std::string sweepText(const SweepResult& result);

/// A report of a sweep: the best point, heat maps of two parameters, time against memory with the front, all rows.
/// Its study is that of the best point. `command` made it.
Report sweepReport(const SweepResult& result, const std::string& command);

} // namespace meshwright::sim
