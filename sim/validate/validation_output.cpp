// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/validate.h"

#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace meshwright::sim {

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson numberJson(const std::optional<double>& value)
{
    return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson errorsJson(const ErrorSummary& errors)
{
    return {{"median_abs_error", errors.median}, {"mean_abs_error", errors.mean}, {"p90_abs_error", errors.p90},
        {"count", errors.count}};
}

OrderedJson detectionJson(const Detection& detection)
{
    return {{"precision", numberJson(detection.precision())}, {"recall", numberJson(detection.recall())},
        {"true_positive", detection.truePositive}, {"false_positive", detection.falsePositive},
        {"false_negative", detection.falseNegative}, {"true_negative", detection.trueNegative}};
}

OrderedJson sweepsJson(const SweepScore& score)
{
    return {{"count", score.count}, {"kendall_tau_median", score.kendallTauMedian}, {"top1_regret_median", score.topRegretMedian},
        {"top1_regret_max", score.topRegretMax}};
}

OrderedJson fileJson(const FileValidation& file)
{
    OrderedJson skipped = OrderedJson::array();
    for (const SkippedRecord& record : file.skipped)
        skipped.push_back({{"id", record.id}, {"why", record.why}});
    OrderedJson json = {{"file", file.file}, {"kind", file.kind}, {"records", file.records}, {"scored", file.scored},
        {"flagged", file.flagged}, {"fitted", file.fitted}, {"skipped", std::move(skipped)}};
    if (file.stepTime) {
        json["step_time"] = errorsJson(*file.stepTime);
        json["step_time"]["constant_mfu_mean_abs_error"] = numberJson(file.constantMfuMeanError);
        json["step_time"]["spearman"] = numberJson(file.rankCorrelation);
    }
    if (file.time)
        json["time"] = errorsJson(*file.time);
    if (file.largeTime)
        json["time_from_16_mib"] = errorsJson(*file.largeTime);
    if (file.smallTime)
        json["time_below_1_mib"] = errorsJson(*file.smallTime);
    if (file.calibratedTime)
        json["time_calibrated_on_three_sizes"] = errorsJson(*file.calibratedTime);
    if (file.outOfMemory)
        json["out_of_memory"] = detectionJson(*file.outOfMemory);
    if (file.sweeps)
        json["sweeps"] = sweepsJson(*file.sweeps);
    return json;
}

std::string percent(double share)
{
    return fmt::format("{:.1f} %", 100.0 * share);
}

std::string percent(const std::optional<double>& share)
{
    return share ? percent(*share) : "-";
}

std::string plain(const std::optional<double>& value)
{
    return value ? fmt::format("{:.2f}", *value) : "-";
}

} // namespace

std::string validationJson(const Validation& validation)
{
    OrderedJson files = OrderedJson::array();
    for (const FileValidation& file : validation.files)
        files.push_back(fileJson(file));
    OrderedJson json = {{"schema", "meshwright.validation/1"}, {"meshwright", kVersion}, {"files", std::move(files)}};
    if (validation.sweeps)
        json["sweeps"] = sweepsJson(*validation.sweeps);
    json["out_of_memory"] = detectionJson(validation.outOfMemory);
    return jsonText(json);
}

std::string validationText(const Validation& validation)
{
    using Align = TextTable::Align;
    TextTable table({{"file"}, {"scored", Align::Right}, {"of", Align::Right}, {"median", Align::Right}, {"mean", Align::Right},
        {"p90", Align::Right}, {"constant MFU", Align::Right}, {"Spearman", Align::Right}, {"tau", Align::Right},
        {"regret", Align::Right}, {"OOM precision", Align::Right}, {"recall", Align::Right}});
    for (const FileValidation& file : validation.files) {
        const auto& errors = file.stepTime ? file.stepTime : file.time;
        std::vector<std::string> cells = {file.file, fmt::format("{}", file.scored), fmt::format("{}", file.records)};
        for (const double error : errors ? std::vector{errors->median, errors->mean, errors->p90} : std::vector<double>())
            cells.push_back(percent(error));
        cells.resize(6, "-");
        cells.push_back(percent(file.constantMfuMeanError));
        cells.push_back(plain(file.rankCorrelation));
        cells.push_back(file.sweeps ? plain(file.sweeps->kendallTauMedian) : "-");
        cells.push_back(file.sweeps ? percent(file.sweeps->topRegretMedian) : "-");
        cells.push_back(file.outOfMemory ? plain(file.outOfMemory->precision()) : "-");
        cells.push_back(file.outOfMemory ? plain(file.outOfMemory->recall()) : "-");
        table.addRow(std::move(cells));
    }
    std::string text = table.text();
    for (const FileValidation& file : validation.files) {
        if (file.largeTime || file.smallTime)
            text += fmt::format(
                "{}: median error {} from 16 MiB up, {} below 1 MiB; {} of the other sizes when calibrated on three\n", file.file,
                file.largeTime ? percent(file.largeTime->median) : "-", file.smallTime ? percent(file.smallTime->median) : "-",
                file.calibratedTime ? percent(file.calibratedTime->median) : "-");
    }
    if (validation.sweeps)
        text += fmt::format("{} sweeps: Kendall tau {:.2f} (median); the predicted best is {} slower than the measured best "
                            "(median), {} at most\n",
            validation.sweeps->count, validation.sweeps->kendallTauMedian, percent(validation.sweeps->topRegretMedian),
            percent(validation.sweeps->topRegretMax));
    const Detection& memory = validation.outOfMemory;
    if (memory.truePositive + memory.falseNegative > 0)
        text += fmt::format("out of memory: precision {}, recall {} over {} runs\n", plain(memory.precision()),
            plain(memory.recall()), memory.truePositive + memory.falsePositive + memory.falseNegative + memory.trueNegative);
    for (const FileValidation& file : validation.files) {
        for (const SkippedRecord& record : file.skipped)
            text += fmt::format("skipped {}: {}\n", record.id, record.why);
    }
    return text;
}

std::string validationCsv(const Validation& validation)
{
    std::string text
        = "file,id,stack,chip,scored,predicted,measured,error,compute,communication,bubble,launch,stack_s,other,peak_bytes,"
          "out_of_memory,predicted_out_of_memory\n";
    for (const FileValidation& file : validation.files) {
        for (const StepPrediction& one : file.steps) {
            const SimulatedStep& step = one.simulated;
            text += fmt::format("{},{},{},{},{},{:.6g},{},{},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{},{}\n",
                csvCell(file.file), csvCell(one.id), csvCell(one.stack), csvCell(one.chip), one.scored ? 1 : 0, step.seconds,
                one.measuredSeconds ? fmt::format("{:.6g}", *one.measuredSeconds) : "",
                one.measuredSeconds ? fmt::format("{:.4f}", step.seconds / *one.measuredSeconds - 1.0) : "", step.computeSeconds,
                step.communicationSeconds, step.bubbleSeconds, step.launchSeconds, step.stackSeconds, step.otherSeconds,
                step.peakBytes, one.outOfMemory ? (*one.outOfMemory ? "1" : "0") : "", step.fits ? 0 : 1);
        }
        for (const PredictedFigure& comparison : file.comparisons)
            text += fmt::format("{},{},,,1,{:.6g},{:.6g},{:.4f}\n", csvCell(file.file), csvCell(comparison.id),
                comparison.predicted, comparison.measured, comparison.predicted / comparison.measured - 1.0);
    }
    return text;
}

} // namespace meshwright::sim
