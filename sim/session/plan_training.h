// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/plan/plan_answer.h"
#include "sim/search/search_request.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::sim {

/// What the command line says of a training, as text.
struct PlanWords {
    std::string model; ///< as `SearchWords::model`
    std::string machine; ///< "512xH100"; a chip without a number where a size is looked for
    std::string tokens; ///< of the whole training, with powers of 1000: "15T" is 15 x 10^12
    std::string sequence; ///< "8k"
    std::string batch; ///< tokens of a step, as searches count them: "4M" is 2^22; empty: about 4M
    std::string globalBatch; ///< sequences of a step, in place of it
    std::string format = "bf16";
    std::string recipe = {};
    std::string stack = {};
    std::string price = {}; ///< dollars an hour for a chip; empty: the last one that is known
    std::string deadline = {}; ///< "30d", "12h", "4w"
    std::string budget = {}; ///< dollars: "2M", "500k"
    bool leastChips = false; ///< the smallest cluster that the model fits
    std::vector<std::string> fixed = {}; ///< as `search --fix`
};

/// The command that asks this: `meshwright plan llama3_8b --on 64xH100 --tokens 2T`.
std::string planCommand(const PlanWords& words);

struct PlanOptions {
    unsigned threads = 0; ///< 0: one for each core
    std::stop_token stop = {};
    std::optional<double> timeLimit = {}; ///< seconds; nothing: all is simulated, however long it takes
    std::function<void(const std::string&)> progress = {}; ///< what is looked at
};

/// What training the model on the machine takes: the best plans by the simulator, time, money, failures, and what would change it.
///
/// Candidates are the search's; each plan that is told of is simulated as the study that `-o` writes. Three fifths of the time are the plans', the
/// rest belongs to the changes. With a deadline, a budget or `leastChips` sizes double from the smallest that could hold the model. The estimate says
/// where to begin; from there a few layouts of each size are simulated, to the smallest size that meets the wish, or for a budget alone
/// the largest. No size is chosen by an estimate, and what its search found are the plans of the answer.
///
/// Problems: those of `workOf`, `machinesOf` (search_request.h), `parseFixed` and `PlanningData::load`; MW1943 tokens, a deadline or a budget that is none; MW1944 a
/// machine without a number of chips where no size is looked for, or with one where one is, or a budget without a price.
Result<PlanAnswer> planTraining(const PlanWords& words, const PlanOptions& options);

} // namespace meshwright::sim
