// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/hardware/chip.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// What an hour of a chip costs, or cost.
struct ChipPrice {
    double dollarsPerHour = 0.0; ///< of one chip
    std::string date; ///< "2026-11-09"; empty: the user's own price
    std::string source;
};

/// How far steps of published runs were from their simulated programs.
struct StepErrors {
    std::string of; ///< a chip's key, or "gpu", "tpu"
    std::vector<double> ratios; ///< measured over simulated, in increasing order; not empty

    double low() const { return ratios[(ratios.size() - 1) / 10]; } ///< a tenth of the runs is below
    double high() const { return ratios[ratios.size() - 1 - (ratios.size() - 1) / 10]; } ///< a tenth is above
    /// Simulated and measured steps of so many of the runs, eight tenths, lie within `share` of the measured one.
    std::size_t most() const { return (8 * ratios.size() + 9) / 10; }
    double share() const;
};

/// A figure of a published run.
struct PublishedRate {
    double value = 0.0;
    std::string source;
};

/// What a plan reckons with besides chips and links: `resources/hardware/planning.json`.
class PlanningData {
public:
    /// Problems: MW1702 the file is not such data; those of `readFile`.
    static Result<PlanningData> load(const std::filesystem::path& path);
    static Result<PlanningData> parse(std::string_view text, const std::string& file);

    /// Nothing: no price of the chip is known.
    std::optional<ChipPrice> priceOf(const Chip& chip) const;

    /// Of the chip's own runs where there are five or more, or else of its class. Nothing: no run of either was simulated.
    std::optional<StepErrors> errorsOf(const Chip& chip) const;
    /// Measured over simulated, in increasing order, of one file's runs on one chip.
    std::vector<double> errorsOf(std::string_view file, std::string_view chip) const;

    const std::string& errorsSource() const { return m_errorsSource; }
    const PublishedRate& chipSecondsPerFailure() const { return m_chipSecondsPerFailure; } ///< of one chip; of n chips an n-th
    const PublishedRate& storageBytesPerSecond() const { return m_storage; } ///< for each chip
    const PublishedRate& restartSeconds() const { return m_restart; }

private:
    struct Priced {
        std::string chip;
        ChipPrice price;
    };
    std::vector<Priced> m_prices;
    struct FileErrors {
        std::string file;
        std::string chip;
        std::vector<double> ratios;
    };
    std::vector<FileErrors> m_errors;
    std::string m_errorsSource;
    PublishedRate m_chipSecondsPerFailure;
    PublishedRate m_storage;
    PublishedRate m_restart;
};

/// What failures cost a training, by the first-order optimum of the time between checkpoints.
struct Goodput {
    double failureSeconds = 0.0; ///< mean time between failures of the whole machine
    double checkpointSeconds = 0.0; ///< to write one
    double intervalSeconds = 0.0; ///< of work between two
    double restartSeconds = 0.0;
    double share = 1.0; ///< of the time that goes into steps that count; 0 .. 1
};

/// The best interval, sqrt(2 d m) for checkpoints of d seconds and failures every m seconds, and what is left then:
/// 1 / ((1 + d / t) (1 + (r + (t + d) / 2) / m)) for intervals t and restarts r: a failure loses half an interval and a restart.
/// Preconditions: all > 0, d and r may be 0.
/// Source: J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; J. T. Daly, "A higher order estimate of the
/// optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, equation 9 to first order.
Goodput goodputOf(double failureSeconds, double checkpointSeconds, double restartSeconds);

} // namespace meshwright::sim
