// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/plan/launch_commands.h"
#include "sim/plan/planning_data.h"
#include "sim/report/report.h"
#include "sim/search/search.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What a whole training takes with one plan.
struct TrainingTime {
    double stepSeconds = 0.0;
    double tokensPerSecond = 0.0;
    double mfu = 0.0;
    Goodput goodput;
    double days = 0.0; ///< with failures
    std::optional<double> dollars = {}; ///< of all chips for all days; nothing: no price is known
};

/// The best plan with something changed, simulated.
struct PlanChange {
    std::string what; ///< "twice the network between hosts"
    std::string kind; ///< "memory", "recompute", "batch", "network"
    std::optional<FoundPlan> plan = {}; ///< nothing: none fits, or it was not simulated
    double tokensPerSecond = 0.0;
    double gain = 0.0; ///< of tokens a second against the best plan: 0.1 is a tenth more
    std::string whyNot = {};
};

/// One size of cluster that was looked at for a deadline, a budget, or the least that fits.
struct ClusterSize {
    std::string cluster;
    std::int64_t chips = 0;
    std::optional<FoundPlan> plan = {};
    TrainingTime time = {}; ///< where there is a plan
    std::string missing; ///< of what is wanted; empty: nothing
    std::string verdict; ///< "meets it", "too slow", "too expensive by the estimate"
    bool simulated = false; ///< or else plan and time are estimates
    bool chosen = false;
};

/// The answer to: what does training this model on these machines take?
struct PlanAnswer {
    std::string model;
    double parameters = 0.0;
    double activeParameters = 0.0; ///< of a token
    std::vector<std::string> ignoredKeys; ///< numbers and flags of the model's file whose meaning is not known
    std::vector<std::string> notes; ///< what of the model's file and of names was taken for what
    std::string cluster;
    std::string chip; ///< its name
    std::int64_t chips = 0;
    double tokens = 0.0; ///< of the whole training
    std::int64_t sequence = 0;
    std::int64_t globalBatch = 0; ///< sequences of a step
    std::vector<FoundPlan>
        plans; ///< the best, and the nearest of other kinds; empty: there is none. One that does not fit stands alone
    TrainingTime time = {};
    std::optional<ChipPrice> price = {};
    double daysLow = 0.0; ///< the range that published runs of such machines support
    double daysHigh = 0.0;
    std::string rangeFrom;
    std::vector<std::string> reliability; ///< where figures of failures come from
    std::vector<PlanChange> changes;
    std::vector<ClusterSize> sizes;
    std::string wanted; ///< "in 30 days", "for $2 M"; empty: nothing was asked
    bool meets = true; ///< what was wanted
    bool cutShort = false; ///< time was over before a plan was met: nothing is known of what fits
    std::vector<std::string> whyNone; ///< where no layout is legal: what of the choices forbids it
    std::vector<std::string> changesThatFit; ///< where no plan fits; simulated, where nothing else is said
    std::vector<std::string> assumptions;
    std::int64_t simulated = 0; ///< layouts
    std::vector<std::string> notSimulated;
    std::vector<LaunchCommand> launch; ///< of the best plan
    std::string study; ///< of the best plan; empty: there is none
    double wallSeconds = 0.0; ///< measured

    bool fits() const { return !plans.empty() && plans.front().fits; }
    /// "between 17.6 days and 23.2 days: 30 of 37 published runs ..", or how published runs were where that leaves out `time.days`. Precondition: there is a
    /// range.
    std::string rangeText() const;
};

/// Time and money of `tokens` with a plan. `chips`: of the machine. `stateBytes`: of a checkpoint.
TrainingTime trainingTimeOf(const FoundPlan& plan, double tokensPerStep, double tokens, double stateBytes,
    const PlanningData& data, const std::optional<ChipPrice>& price);

/// `1 d 3 h` and so on: `0.4 days`, `12.3 days`, `1,204 days`.
std::string formatDays(double days);
std::string formatDollars(double dollars); ///< `$812`, `$41.2 k`, `$3.05 M`

/// `meshwright.plan/1`. Equal for equal input but for `wall_s`, unless time was short.
std::string planJson(const PlanAnswer& answer);

/// What a person reads on a terminal.
std::string planText(const PlanAnswer& answer);

/// The page. `command` is what writes it.
Report planReport(const PlanAnswer& answer, const std::string& command);

/// The page that compares clusters: a table for each model with a row for each cluster, in the order of the answers, and which is quickest and cheapest.
/// `commands`: what gives the answers, a line each. Precondition: there is an answer.
Report planComparison(std::span<const PlanAnswer> answers, const std::string& commands);

/// What a row of such a table says at its end, for each answer: "quickest, cheapest", "needs 132 GiB of 80.0 GiB a device"; of clusters for one model.
std::vector<std::string> planVerdicts(std::span<const PlanAnswer> answers);

} // namespace meshwright::sim
