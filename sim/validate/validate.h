// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/catalogue.h"
#include "sim/transformer/step.h"
#include "sim/validate/parts.h"
#include "sim/validate/record.h"
#include "sim/validate/statistics.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

struct SkippedRecord {
    std::string id;
    std::string why;
};

/// One training step, predicted.
struct StepPrediction {
    std::string id;
    std::string stack;
    std::string chip;
    StepEstimate estimate;
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

/// Predicts every record of the files and compares. Fits nothing.
/// Problems: those of `readRecords`.
Result<Validation> validateFiles(
    const std::vector<std::filesystem::path>& files, const Catalogue& catalogue, const Calibration& calibration);

/// The same of records in hand, of one file.
FileValidation validateRecords(
    const std::vector<Record>& records, const std::string& file, const Catalogue& catalogue, const Calibration& calibration);

/// The table for people.
std::string validationText(const Validation& validation);

/// `meshwright.validation/1`, with a newline at the end.
std::string validationJson(const Validation& validation);

/// A row for every prediction, with its parts, as CSV.
std::string validationCsv(const Validation& validation);

} // namespace meshwright::sim
