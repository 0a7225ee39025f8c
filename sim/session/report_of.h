// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/report/build_report.h"
#include "sim/session/session.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

namespace meshwright::sim {

/// What a report is to have beside what an analysis holds.
struct ReportChoices {
    std::optional<MeasuredTraining> training = {}; ///< absent: the report says that training was not measured
    std::size_t mostTrials = 20; ///< changes that are simulated to find out what to do next; 0: none
    std::function<void(const ReportTrial&)> found = {}; ///< gets each change as soon as it is simulated
};

/// The changes worth simulating for advice, each simulated: other meshes of the same axes, nearest first; for the collectives that are waited for
/// longest, the spec behind them left out; other recomputations, sequence parallelism or none, microbatches and orders of a pipeline; a larger batch, or the largest smaller one that fits; products of bf16; when parameters or what goes
/// with them take the memory, splitting the largest of them further. Stops early, with those that are done, when `stop` is asked for.
/// Empty without a simulation. The same analysis gives the same trials. `found` is told of each as soon as it is there.
std::vector<ReportTrial> trialsOf(const Analysis& analysis, std::size_t most, const std::stop_token& stop = {},
    const std::function<void(const ReportTrial&)>& found = {});

/// True when a training that was measured is of another study: its step had other collectives than the analysed one has.
bool measuresAnotherStudy(const Analysis& analysis, const MeasuredTraining& training);

/// The report of an analysis, whatever is missing in it.
Report reportOf(const Analysis& analysis, const ReportChoices& choices = {}, const std::stop_token& stop = {});

/// The measured part of a report from a training that just ended.
MeasuredTraining measuredTraining(const TrainingResult& result);

} // namespace meshwright::sim
