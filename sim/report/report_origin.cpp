// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/text.h"
#include "core/support/version.h"
#include "sim/cost/device_cost.h"
#include "sim/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

std::string whereText(const Place& place)
{
    std::string where = place.file;
    if (place.line > 0)
        where += fmt::format("{}{}:{}", where.empty() ? "" : ":", place.line, place.column);
    if (!place.path.empty())
        where += (where.empty() ? "" : ", ") + place.path;
    return where;
}

/// One constant of the model of a machine.
struct Constant {
    std::string what;
    ReportValue value;
    std::string source;
    bool assumed = false;
};

Constant fromCatalogue(std::string what, ReportValue value, const OptionalFigure& figure)
{
    return {std::move(what), std::move(value), sourceText(figure), !figure};
}

ReportValue fractionValue(double fraction)
{
    return {fmt::format("{:.0f} %", 100.0 * fraction), fraction, {}};
}

ReportValue bandwidthValue(double bytesPerSecond)
{
    return {fmt::format("{:.4g} GB/s", bytesPerSecond / 1e9), bytesPerSecond, "B/s"};
}

std::vector<Constant> constantsOf(const Machine& machine, const StackConstants& software)
{
    const Chip& chip = machine.chip;
    const std::string ofClass = fmt::format("what software makes of {}s: calibration.json", chipClassName(chip.chipClass));
    const std::string ofChip = chip.devicesPerChip > 1 ? fmt::format(", a chip ({} devices)", chip.devicesPerChip) : "";
    std::vector<Constant> constants;
    for (const MathFormat format : {MathFormat::Bf16, MathFormat::Fp16, MathFormat::Tf32, MathFormat::Fp32}) {
        if (const auto peak = chip.peakFlopsPerSecond.find(format); peak != chip.peakFlopsPerSecond.end())
            constants.push_back({fmt::format("Peak of {} products{}", mathFormatName(format), ofChip),
                {flopText(peak->second.value, "FLOP/s"), peak->second.value, "FLOP/s"}, sourceText(peak->second), false});
    }
    if (const auto cost = DeviceCost::create(machine, {.constants = software}))
        constants.push_back({"Large products reach of the peak", fractionValue(cost->matmulFraction()),
            chip.achievableMatmulFraction ? sourceText(chip.achievableMatmulFraction) + "; in long runs: " + ofClass : ofClass,
            !chip.achievableMatmulFraction});
    constants.push_back(
        fromCatalogue("Memory of a device", bytesValue(static_cast<double>(machine.hbmBytesPerDevice)), chip.hbmBytes));
    constants.push_back(fromCatalogue(
        "Memory bandwidth of a device", bandwidthValue(machine.hbmBytesPerSecondPerDevice), chip.hbmBytesPerSecond));
    constants.push_back({"Kernels reach of the memory bandwidth", fractionValue(software.memoryEfficiency), ofClass, true});
    constants.push_back({"Between two kernels", secondsValue(software.kernelSeconds), ofClass, true});

    const Interconnect& net = chip.interconnect;
    if (net.linkBytesPerSecond)
        constants.push_back(fromCatalogue(
            "A link between chips, each way", bandwidthValue(net.linkBytesPerSecond->value), net.linkBytesPerSecond));
    if (net.totalBytesPerSecond)
        constants.push_back(fromCatalogue(
            "All links of a chip, each way", bandwidthValue(net.totalBytesPerSecond->value), net.totalBytesPerSecond));
    if (net.achievableFraction)
        constants.push_back(fromCatalogue(
            "Collectives reach of the links", fractionValue(net.achievableFraction->value), net.achievableFraction));
    if (net.hopLatencySeconds)
        constants.push_back(
            fromCatalogue("A step between chips", secondsValue(net.hopLatencySeconds->value), net.hopLatencySeconds));
    if (machine.choice.hosts > 1 && chip.nicBytesPerSecond)
        constants.push_back(
            fromCatalogue("Network of a chip, each way", bandwidthValue(chip.nicBytesPerSecond->value), chip.nicBytesPerSecond));
    if (machine.choice.hosts > 1 && chip.networkLatencySeconds)
        constants.push_back(
            fromCatalogue("A step between hosts", secondsValue(chip.networkLatencySeconds->value), chip.networkLatencySeconds));
    return constants;
}

void addPrediction(ReportSection& section, const ReportInputs& inputs)
{
    StackConstants software;
    if (inputs.simulated != nullptr)
        software = inputs.simulated->simulation.cost.constants;
    else if (const auto usual
        = costOptionsOf(inputs.machine->chip, MatmulPrecision::Highest, inputs.study != nullptr ? inputs.study->stack : ""))
        software = usual->constants;
    const std::vector<Constant> constants = constantsOf(*inputs.machine, software);
    const std::vector<std::string>& assumptions = inputs.machine->assumptions;
    const auto assumed = static_cast<std::size_t>(std::count_if(constants.begin(), constants.end(), [](const Constant& constant) {
        return constant.assumed;
    })) + assumptions.size();
    section.blocks.push_back(ReportParagraph{fmt::format("Times and memory are predicted by a model of the machine with {} "
                                                         "constants: {} come from the catalogue, {} are assumed. None was "
                                                         "calibrated against this machine, so no error bar can be derived. As a "
                                                         "yardstick: predictors that profile every kernel on the "
                                                         "machine itself report mean errors of 8 % on one node and 15 % on many "
                                                         "(vTrain, MICRO 2024); expect more here. The order of two "
                                                         "layouts is surer than either time.",
        constants.size() + assumptions.size(), constants.size() + assumptions.size() - assumed, assumed)});
    ReportTable table;
    table.title = "Constants of the model of the machine";
    table.columns = {{"Constant"}, {"Value", true}, {"Known from"}, {"Source"}};
    for (const Constant& constant : constants)
        table.rows.push_back({{wordsValue(constant.what), constant.value, wordsValue(constant.assumed ? "assumed" : "catalogue"),
                                  wordsValue(constant.source)},
            {}});
    for (const std::string& assumption : assumptions)
        table.rows.push_back({{wordsValue(assumption), wordsValue(""), wordsValue("assumed"), wordsValue("")}, {}});
    section.blocks.push_back(std::move(table));
    if (inputs.simulated != nullptr)
        section.blocks.push_back(ReportParagraph{fmt::format(
            "The order of a device is that of schedule policy \"{}\"; sequences of collectives were chosen by the cost \"{}\".",
            schedulePolicyName(SchedulePolicy::Overlapped), inputs.simulated->collectiveCost)});
}

} // namespace

ReportSection problemsSection(const ReportInputs& inputs)
{
    ReportSection section{"problems", "Problems", {}};
    if (inputs.problems.empty()) {
        section.blocks.push_back(ReportParagraph{"No problems were found in the study.", ReportTone::Good});
        return section;
    }
    ReportProblems list;
    for (const Problem& problem : inputs.problems)
        list.problems.push_back(
            {problem.severity, problem.id, whereText(problem.place), problem.message, problem.rule, problem.fix});
    section.blocks.push_back(std::move(list));
    return section;
}

ReportSection originSection(const ReportInputs& inputs, const std::string& command)
{
    ReportSection section{"origin", "How it was made", {}};
    if (inputs.machine != nullptr)
        addPrediction(section, inputs);
    if (inputs.phases > 1)
        section.blocks.push_back(ReportParagraph{
            fmt::format("The study has {} phases with their own meshes; everything except the training describes the first.",
                inputs.phases)});
    section.blocks.push_back(ReportCode{fmt::format("Command (Meshwright {})", kVersion), command});
    section.blocks.push_back(
        ReportCode{inputs.studyFile.empty() ? std::string("The study") : "The study, " + inputs.studyFile, inputs.studyText});
    return section;
}

} // namespace meshwright::sim
