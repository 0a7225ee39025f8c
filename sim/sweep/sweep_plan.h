// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// The most points that one sweep may have.
inline constexpr std::int64_t kMostSweepPoints = 1'000'000;

/// One value of what is varied.
struct SweepValue {
    std::string text; ///< as tables show it: "data=8,model=8", "4096"
    std::vector<std::string> settings; ///< that make it, `path=value`

    friend bool operator==(const SweepValue&, const SweepValue&) = default;
};

/// What is varied, and the values that it takes in turn.
struct SweepParameter {
    std::string name; ///< the path of the study: "mesh", "batch", "hardware.chip"
    std::vector<SweepValue> values; ///< at least one

    friend bool operator==(const SweepParameter&, const SweepParameter&) = default;
};

/// A study and everything that is varied in it: a point for each combination, the last parameter's values changing fastest.
struct SweepPlan {
    std::string name = {}; ///< of the study
    std::string studyText = {};
    std::string studyFile = {}; ///< names relative files and problems; empty: not read from a file
    std::vector<std::string> settings = {}; ///< that all points have, `path=value`
    std::vector<SweepParameter> parameters = {}; ///< at least one

    /// Precondition: `checkPlan` finds nothing.
    std::int64_t pointCount() const;

    /// Which value each parameter has at a point. Precondition: 0 <= point < pointCount().
    std::vector<std::size_t> valuesAt(std::int64_t point) const;

    /// All settings of a point: the common ones, then those of its values.
    std::vector<std::string> settingsAt(std::int64_t point) const;

    /// Whether points have sequences of several lengths, so that only tokens compare them.
    bool variesSequence() const;
    /// Tokens of an example; 1 where all points have as many.
    std::int64_t unitsAt(std::int64_t point) const;

    friend bool operator==(const SweepPlan&, const SweepPlan&) = default;
};

/// `1 point`, `12 points`.
std::string pointsText(std::int64_t count);

/// Reads `path=values`. Values are separated by commas outside of brackets and quotes; each is
/// - a range of integers, `1..8`, or of powers, `2^0..2^6`;
/// - a number with a suffix (`parseCount`): `4k` is 4096, `0.5M` 524,288 (k, M, G and T count in 1024s, as batches and sequences are meant); with a unit
///   of bytes (`parseBytes`) it is what it says, `16GiB` 17,179,869,184 and `16GB` 16,000,000,000;
/// - `data*model=64`: every way to write 64 as a product of as many factors as there are axes, each a value; also several totals,
///   `data*model=2^4..2^6`. Axes of the path that are not named keep their sizes;
/// - anything else, as YAML: `bf16`, `P('data', None)`, `{adam: {learning_rate: 0.001}}`.
///
/// Problems: MW1775 the text is not of that form, MW1776 values that cannot be read (a range that is backwards, a number beyond 64 bits,
/// brackets that do not close, an empty value), MW1777 far more values than a sweep has points.
Result<SweepParameter> parseVary(std::string_view text);

/// The values of a parameter whose values are written out, as `parseVary` takes them one by one. Problems: MW1776, MW1777.
Result<std::vector<SweepValue>> sweepValues(const std::string& path, std::span<const std::string> texts);

/// What is wrong with a plan as a whole.
/// Problems: MW1778 something is varied twice (or as a part of what is varied), MW1777 more than kMostSweepPoints points, MW1781 nothing is varied.
Problems checkPlan(const SweepPlan& plan);

} // namespace meshwright::sim
