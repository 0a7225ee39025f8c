// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/report/build_report.h"

#include <string>
#include <vector>

/// The parts of `buildReport`, a source each; not for others.
namespace meshwright::sim {

// Values as people read them, with the exact number.
ReportValue wordsValue(std::string text);
ReportValue secondsValue(double seconds);
ReportValue bytesValue(double bytes);
ReportValue countValue(std::int64_t count); ///< `1,048,576`
ReportValue shareValue(double share); ///< `42.5 %`; the number is the fraction
ReportValue rateValue(double perSecond, const std::string& what); ///< `805 k samples/s`

/// `42 %`; small shares with a decimal, and `< 0.1 %`.
std::string percentText(double share);

/// `42.5 %`, `< 0.1 %`.
std::string mfuText(double mfu);

/// The text of Simulation::boundBy, collectives with a hyphen: "all-reduce over data".
std::string spokenBound(const std::string& boundBy);

/// `catalogue: ` with source and note, or `assumed`.
std::string sourceText(const OptionalFigure& figure);

/// The colour role of a collective's op.
ColourRole roleOf(OpKind kind);

/// A picture for the report: coordinates rounded, never without a title.
ReportPicture pictureOf(std::string id, std::string title, DisplayList list, std::string caption = {});

/// What programs may use of a device's memory.
std::int64_t usableBytes(const Simulation& simulation);

/// How much of a device's memory is kept from them: Simulation::reserveBytes.
std::string reserveRule(const Machine& machine);

std::vector<ReportAnswer> reportAnswers(const ReportInputs& inputs);

ReportSection trialsSection(const ReportInputs& inputs);
ReportSection layoutsSection(const ReportInputs& inputs);
ReportSection machineSection(const ReportInputs& inputs);
ReportSection collectivesSection(const ReportInputs& inputs);
ReportSection breakdownSection(const ReportInputs& inputs);
ReportSection timelineSection(const ReportInputs& inputs);
ReportSection memorySection(const ReportInputs& inputs);
ReportSection trainingSection(const ReportInputs& inputs);
ReportSection problemsSection(const ReportInputs& inputs);
ReportSection originSection(const ReportInputs& inputs, const std::string& command);

} // namespace meshwright::sim
