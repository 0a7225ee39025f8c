// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/catalogue.h"
#include "sim/validate/parts.h"
#include "sim/validate/record.h"
#include "sim/validate/statistics.h"
#include "sim/validate/step_case.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What the simulator makes of a record's step, written as a program. Seconds are of the device that is busy longest; they add up to `seconds`.
struct SimulatedStep {
    double seconds = 0.0;
    double computeSeconds = 0.0;
    double communicationSeconds = 0.0; ///< waiting for collectives and for the host's memory
    double bubbleSeconds = 0.0; ///< waiting for other stages
    double launchSeconds = 0.0; ///< waiting for the host to start kernels
    double stackSeconds = 0.0; ///< the software's, of each step and pass; slow hosts
    double otherSeconds = 0.0; ///< sends, the call
    double peakBytes = 0.0; ///< of the device that needs most, without what the runtime keeps
    bool fits = false;
};

/// Simulates one plan of a record. Problems (messages alone): no program says it. May be called by several threads at once.
using StepSimulator = std::function<Result<SimulatedStep>(const StepCase& stepCase, const TrainingPlan& plan)>;

struct SkippedRecord {
    std::string id;
    std::string why;
};

/// One training step, predicted.
struct StepPrediction {
    std::string id;
    std::string stack;
    std::string chip;
    SimulatedStep simulated;
    std::optional<double> measuredSeconds;
    std::optional<bool> outOfMemory;
    double flops = 0.0;
    double peakFlops = 0.0; ///< of all devices, bf16
    std::string sweep;
    bool scored = false; ///< neither flagged nor fitted on
};

struct SweepScore {
    std::size_t count = 0;
    double kendallTauMedian = 0.0;
    double topRegretMedian = 0.0;
    double topRegretMax = 0.0;
};

struct FileValidation {
    std::string file;
    std::string kind; ///< of its records; `mixed` for several
    std::size_t records = 0;
    std::size_t scored = 0;
    std::size_t flagged = 0; ///< predicted, not scored
    std::size_t fitted = 0; ///< constants were fitted on them: not scored
    std::vector<SkippedRecord> skipped;
    std::optional<ErrorSummary> stepTime;
    std::optional<double>
        constantMfuMeanError; ///< of one utilisation for each chip of the file, the one that is best for its records
    std::optional<double> rankCorrelation; ///< Spearman
    std::optional<ErrorSummary> time; ///< of parts: collectives, products, memory operations, layers
    std::optional<ErrorSummary> largeTime; ///< of collectives of 16 MiB and more
    std::optional<ErrorSummary> smallTime; ///< of collectives below 1 MiB
    std::optional<ErrorSummary>
        calibratedTime; ///< of collectives when each curve is corrected at its first, middle and last size; of its other sizes
    std::optional<Detection> outOfMemory; ///< in files that have a run that did not fit
    std::optional<SweepScore> sweeps;
    std::vector<StepPrediction> steps;
    std::vector<PredictedFigure> comparisons;
};

struct Validation {
    std::vector<FileValidation> files;
    std::optional<SweepScore>
        sweeps; ///< of plan files; where none was given, of groups of measurements that differ in their layout only
    Detection outOfMemory; ///< of all files that have a run that did not fit
};

/// Predicts every record of the files and compares: training steps by `simulate`. Fits nothing.
/// Problems: those of `readRecords`.
Result<Validation> validateFiles(const std::vector<std::filesystem::path>& files, const Catalogue& catalogue,
    const Calibration& calibration, const StepSimulator& simulate);

/// The same of records in hand, of one file.
FileValidation validateRecords(const std::vector<Record>& records, const std::string& file, const Catalogue& catalogue,
    const Calibration& calibration, const StepSimulator& simulate);

/// The table for people.
std::string validationText(const Validation& validation);

/// `meshwright.validation/1`, with a newline at the end.
std::string validationJson(const Validation& validation);

/// A row for every prediction, with its parts, as CSV.
std::string validationCsv(const Validation& validation);

} // namespace meshwright::sim
