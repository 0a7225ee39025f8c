// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace meshwright::sim {

/// Of absolute relative errors, as fractions.
struct ErrorSummary {
    std::size_t count = 0;
    double median = 0.0;
    double mean = 0.0;
    double p90 = 0.0;
};
/// Nothing for no errors.
std::optional<ErrorSummary> summarise(std::vector<double> errors);

/// The middle value; the mean of the two middle ones. Precondition: not empty.
double median(std::vector<double> values);

/// Spearman's rank correlation; ties share their mean rank. Nothing for fewer than 3 pairs, or when all of one side are equal.
std::optional<double> spearman(std::span<const double> left, std::span<const double> right);

/// Kendall's tau-b. Nothing for fewer than 2 pairs, or when all of one side are equal.
std::optional<double> kendallTau(std::span<const double> left, std::span<const double> right);

/// What is lost by taking the predicted best: measured time of it over that of the measured best, less 1. Precondition: not empty, equal sizes.
double topRegret(std::span<const double> predicted, std::span<const double> measured);

/// Answers of a yes-or-no question.
struct Detection {
    std::size_t truePositive = 0;
    std::size_t falsePositive = 0;
    std::size_t falseNegative = 0;
    std::size_t trueNegative = 0;

    Detection& operator+=(const Detection& other);
    std::optional<double> precision() const; ///< nothing when none was predicted
    std::optional<double> recall() const; ///< nothing when there was none
};

} // namespace meshwright::sim
