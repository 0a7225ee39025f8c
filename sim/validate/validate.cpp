// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/validate.h"

#include "core/support/parallel_for.h"
#include "sim/validate/step_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

namespace meshwright::sim {

namespace {

constexpr double kLargeBytes = 16.0 * 1024.0 * 1024.0;
constexpr double kSmallBytes = 1024.0 * 1024.0;

class FileValidator {
public:
    FileValidator(const Catalogue& catalogue, const Calibration& calibration, const StepSimulator& simulate)
        : m_catalogue(catalogue)
        , m_calibration(calibration)
        , m_simulate(simulate)
    {
    }

    FileValidation run(const std::vector<Record>& records, const std::string& file);

private:
    /// A step in line to be simulated.
    struct Waiting {
        const Record* record = nullptr;
        StepCase stepCase;
        std::vector<Result<SimulatedStep>> plans; ///< of each of its plans
    };

    void enqueue(const Record& record);
    void simulateAll();
    void step(const Waiting& one);
    void part(const Record& record);
    void skip(const Record& record, std::string why) { m_result.skipped.push_back({record.id, std::move(why)}); }
    bool scores(const Record& record);
    void summariseSteps();
    void constantUtilisation();
    void summariseParts();
    void detections();
    void sweeps();

    const Catalogue& m_catalogue;
    const Calibration& m_calibration;
    const StepSimulator& m_simulate;
    std::vector<Waiting> m_waiting;
    FileValidation m_result;
};

/// Whether the record counts; it is noted why not.
bool FileValidator::scores(const Record& record)
{
    const auto& fitted = m_calibration.fittedIds();
    if (std::binary_search(fitted.begin(), fitted.end(), record.id)) {
        ++m_result.fitted;
        return false;
    }
    if (record.flagged) {
        ++m_result.flagged;
        return false;
    }
    return true;
}

void FileValidator::enqueue(const Record& record)
{
    auto stepCase = stepCaseOf(record, m_catalogue, m_calibration);
    if (!stepCase)
        return skip(record, stepCase.error().front().message);
    const std::size_t plans = stepCase->plans.size();
    m_waiting.push_back({&record, *std::move(stepCase), std::vector<Result<SimulatedStep>>(plans, Problem{})});
}

void FileValidator::simulateAll()
{
    std::vector<std::pair<Waiting*, std::size_t>> plans;
    for (Waiting& one : m_waiting) {
        for (std::size_t plan = 0; plan < one.plans.size(); ++plan)
            plans.emplace_back(&one, plan);
    }
    parallelFor(
        plans.size(), workerCount(0), {},
        [&](unsigned, std::size_t i) {
            const auto [one, plan] = plans[i];
            one->plans[plan] = m_simulate(one->stepCase, one->stepCase.plans[plan]);
        },
        1);
    for (const Waiting& one : m_waiting)
        step(one);
}

void FileValidator::step(const Waiting& one)
{
    const SimulatedStep* meant = nullptr; // the quickest that fits
    for (const Result<SimulatedStep>& plan : one.plans) {
        if (plan && (meant == nullptr || std::pair(!plan->fits, plan->seconds) < std::pair(!meant->fits, meant->seconds)))
            meant = &*plan;
    }
    if (meant == nullptr)
        return skip(*one.record, one.plans.front().error().front().message);
    const StepCase& stepCase = one.stepCase;
    const MatmulRate rate = matmulRate(*stepCase.chip, MathFormat::Bf16).value_or(MatmulRate{});
    StepPrediction prediction;
    prediction.id = one.record->id;
    prediction.stack = stepCase.stack;
    prediction.chip = stepCase.chip->key;
    prediction.simulated = *meant;
    prediction.measuredSeconds = stepCase.measuredSeconds;
    prediction.outOfMemory = stepCase.outOfMemory;
    prediction.flops = stepCase.flops;
    prediction.peakFlops = rate.flopsPerSecond * static_cast<double>(stepCase.cluster.devices);
    prediction.sweep = one.record->sweep;
    prediction.scored = scores(*one.record);
    m_result.scored += prediction.scored ? 1 : 0;
    m_result.steps.push_back(std::move(prediction));
}

void FileValidator::part(const Record& record)
{
    auto comparisons = comparePart(record, m_catalogue, m_calibration);
    if (!comparisons)
        return skip(record, comparisons.error().front().message);
    if (!scores(record))
        return;
    ++m_result.scored;
    m_result.comparisons.insert(m_result.comparisons.end(), comparisons->begin(), comparisons->end());
}

void FileValidator::summariseSteps()
{
    std::vector<double> errors;
    std::vector<double> predicted;
    std::vector<double> measured;
    for (const StepPrediction& step : m_result.steps) {
        if (!step.scored || !step.measuredSeconds)
            continue;
        errors.push_back(std::abs(step.simulated.seconds / *step.measuredSeconds - 1.0));
        predicted.push_back(step.simulated.seconds);
        measured.push_back(*step.measuredSeconds);
    }
    m_result.stepTime = summarise(errors);
    if (m_result.stepTime)
        m_result.rankCorrelation = spearman(predicted, measured);
}

/// One utilisation for each chip: of those that the records show, the one with the least mean error.
void FileValidator::constantUtilisation()
{
    std::map<std::string, std::vector<std::pair<double, double>>> byChip; // least possible seconds, measured
    for (const StepPrediction& step : m_result.steps) {
        if (step.scored && step.measuredSeconds)
            byChip[step.chip].emplace_back(step.flops / step.peakFlops, *step.measuredSeconds);
    }
    double sum = 0.0;
    std::size_t count = 0;
    for (const auto& [chip, runs] : byChip) {
        double best = -1.0;
        for (const auto& [least, seconds] : runs) {
            const double utilisation = least / seconds;
            double total = 0.0;
            for (const auto& [otherLeast, otherSeconds] : runs)
                total += std::abs(otherLeast / utilisation / otherSeconds - 1.0);
            if (best < 0.0 || total < best)
                best = total;
        }
        sum += best;
        count += runs.size();
    }
    if (count > 0)
        m_result.constantMfuMeanError = sum / static_cast<double>(count);
}

/// The errors of one curve once it is right at three of its sizes: the ratio of measured to predicted, straight between them in logarithms.
void addCalibrated(std::span<const PredictedFigure> curve, std::vector<double>& errors)
{
    constexpr std::size_t kFewest = 5;
    if (curve.size() < kFewest)
        return;
    const std::array<std::size_t, 3> known = {0, curve.size() / 2, curve.size() - 1};
    const auto correction = [&](std::size_t place) { return std::log(curve[place].measured / curve[place].predicted); };
    for (std::size_t i = 0; i < curve.size(); ++i) {
        if (std::ranges::find(known, i) != known.end())
            continue;
        const std::size_t low = i < known[1] ? known[0] : known[1];
        const std::size_t high = i < known[1] ? known[1] : known[2];
        const double share = std::log(curve[i].bytes / curve[low].bytes) / std::log(curve[high].bytes / curve[low].bytes);
        const double corrected = curve[i].predicted * std::exp(correction(low) + share * (correction(high) - correction(low)));
        errors.push_back(std::abs(corrected / curve[i].measured - 1.0));
    }
}

void FileValidator::summariseParts()
{
    std::vector<double> calibrated;
    const std::vector<PredictedFigure>& comparisons = m_result.comparisons;
    for (std::size_t first = 0; first < comparisons.size();) {
        std::size_t end = first + 1;
        while (end < comparisons.size() && comparisons[end].id == comparisons[first].id
            && comparisons[end].bytes > comparisons[end - 1].bytes)
            ++end;
        if (comparisons[first].bytes > 0.0)
            addCalibrated(std::span(comparisons).subspan(first, end - first), calibrated);
        first = end;
    }
    m_result.calibratedTime = summarise(calibrated);
    std::vector<double> all;
    std::vector<double> large;
    std::vector<double> small;
    for (const PredictedFigure& comparison : m_result.comparisons) {
        const double error = std::abs(comparison.predicted / comparison.measured - 1.0);
        all.push_back(error);
        if (comparison.bytes >= kLargeBytes)
            large.push_back(error);
        else if (comparison.bytes > 0.0 && comparison.bytes < kSmallBytes)
            small.push_back(error);
    }
    m_result.time = summarise(all);
    m_result.largeTime = summarise(large);
    m_result.smallTime = summarise(small);
}

void FileValidator::detections()
{
    const bool any = std::any_of(m_result.steps.begin(), m_result.steps.end(),
        [](const StepPrediction& step) { return step.scored && step.outOfMemory.value_or(false); });
    if (!any)
        return;
    const auto detected = [](Detection& detection, bool predicted, bool happened) {
        ++(predicted ? (happened ? detection.truePositive : detection.falsePositive)
                     : (happened ? detection.falseNegative : detection.trueNegative));
    };
    Detection detection;
    for (const StepPrediction& step : m_result.steps) {
        if (!step.scored || !step.outOfMemory)
            continue;
        detected(detection, !step.simulated.fits, *step.outOfMemory);
    }
    m_result.outOfMemory = detection;
}

struct SweepFigures {
    std::vector<double> taus;
    std::vector<double> regrets;
    std::size_t count = 0;

    std::optional<SweepScore> score() const
    {
        if (regrets.empty())
            return std::nullopt;
        return SweepScore{
            count, taus.empty() ? 0.0 : median(taus), median(regrets), *std::max_element(regrets.begin(), regrets.end())};
    }
};

SweepFigures sweepFigures(const std::vector<FileValidation>& files)
{
    SweepFigures figures;
    for (const FileValidation& file : files) {
        std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> sweeps;
        for (const StepPrediction& step : file.steps) {
            if (!step.scored || !step.measuredSeconds || step.sweep.empty())
                continue;
            sweeps[step.sweep].first.push_back(step.simulated.seconds);
            sweeps[step.sweep].second.push_back(*step.measuredSeconds);
        }
        for (const auto& [name, pair] : sweeps) {
            const auto& [predicted, measured] = pair;
            if (measured.size() < 2)
                continue;
            ++figures.count;
            figures.regrets.push_back(topRegret(predicted, measured));
            if (const auto tau = kendallTau(predicted, measured))
                figures.taus.push_back(*tau);
        }
    }
    return figures;
}

FileValidation FileValidator::run(const std::vector<Record>& records, const std::string& file)
{
    m_result.file = file;
    m_result.records = records.size();
    std::set<std::string> kinds;
    for (const Record& record : records) {
        kinds.insert(record.kind);
        if (!record.fault.empty())
            skip(record, record.fault);
        else if (record.kind == "training_step")
            enqueue(record);
        else
            part(record);
    }
    simulateAll();
    m_result.kind = kinds.size() == 1 ? *kinds.begin() : kinds.empty() ? "none" : "mixed";
    summariseSteps();
    constantUtilisation();
    summariseParts();
    detections();
    m_result.sweeps = sweepFigures({m_result}).score();
    return std::move(m_result);
}

bool hasPlans(const FileValidation& file)
{
    return std::any_of(
        file.steps.begin(), file.steps.end(), [](const StepPrediction& step) { return step.id.find('#') != std::string::npos; });
}

} // namespace

FileValidation validateRecords(const std::vector<Record>& records, const std::string& file, const Catalogue& catalogue,
    const Calibration& calibration, const StepSimulator& simulate)
{
    return FileValidator(catalogue, calibration, simulate).run(records, file);
}

Result<Validation> validateFiles(const std::vector<std::filesystem::path>& files, const Catalogue& catalogue,
    const Calibration& calibration, const StepSimulator& simulate)
{
    Validation validation;
    Problems problems;
    for (const std::filesystem::path& path : files) {
        const auto records = readRecords(path);
        if (!records) {
            append(problems, records.error());
            continue;
        }
        validation.files.push_back(validateRecords(*records, path.filename().string(), catalogue, calibration, simulate));
        if (validation.files.back().outOfMemory)
            validation.outOfMemory += *validation.files.back().outOfMemory;
    }
    if (!problems.empty())
        return problems;
    std::vector<FileValidation> plans;
    std::copy_if(validation.files.begin(), validation.files.end(), std::back_inserter(plans), hasPlans);
    validation.sweeps = sweepFigures(plans.empty() ? validation.files : plans).score();
    return validation;
}

} // namespace meshwright::sim
