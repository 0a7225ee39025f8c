// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/search.h"

#include <string>

namespace meshwright::sim {

/// `meshwright.search/2`. Equal for equal input, but for `wall_s` and `first_plan_s`.
std::string searchJson(const SearchResult& result);

/// One plan as it stands in there.
std::string foundPlanJson(const FoundPlan& plan);

/// What a person reads: the plans, why the best is the best, what the others lose, what memory is worth, the Pareto front.
std::string searchText(const SearchResult& result);

/// How many layouts there are, how many of them were simulated or pruned, and what no step is under.
std::string boundSentence(const SearchResult& result);

/// The plans, a row each.
std::string searchCsv(const SearchResult& result);
std::string searchMarkdown(const SearchResult& result);

} // namespace meshwright::sim
