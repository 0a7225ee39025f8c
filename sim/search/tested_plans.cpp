// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/tested_plans.h"

#include "core/support/counted.h"
#include "core/support/text.h"
#include "sim/search/plan_reasons.h"
#include "sim/search/plan_trials.h"
#include "sim/search/search_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

/// Parts of an MLP's and a program's step name what grew by themselves.
std::string noCause(const StepPart&, const FoundPlan&, const FoundPlan&)
{
    return {};
}

} // namespace

TestedPlans::TestedPlans(PlanTest test, std::size_t mostTests, std::stop_token stop)
    : m_test(std::move(test))
    , m_mostTests(mostTests)
    , m_stop(std::move(stop))
{
}

bool TestedPlans::take(FoundPlan& plan)
{
    if (!m_test) {
        setShares(plan, 0.0);
        return true;
    }
    const std::pair key(meshText(plan.mesh), Key(plan.specs, plan.modelSeconds));
    auto known = m_known.find(key);
    if (known == m_known.end()) {
        if (m_known.size() >= m_mostTests || m_stop.stop_requested())
            return false;
        auto trial = m_test(plan);
        if (!trial)
            return false;
        known = m_known.emplace(key, *std::move(trial)).first;
    }
    takeTrial(plan, known->second);
    return true;
}

std::vector<FoundPlan> TestedPlans::report(SearchResult& result, std::vector<FoundPlan> plans, std::size_t top) const
{
    result.simulated = static_cast<std::int64_t>(m_known.size());
    result.areAnswersSimulated = simulates();
    const FoundPlan smallest = *std::ranges::min_element(plans, {}, &FoundPlan::peakBytes);
    std::erase_if(plans, [](const FoundPlan& plan) { return !plan.fits; });
    result.plans = plans.empty() ? std::vector{smallest} : quickestOf(plans);
    result.plans.resize(std::min(result.plans.size(), std::max<std::size_t>(1, top)));
    for (std::size_t i = 1; i < result.plans.size(); ++i)
        result.plans[i].why.insert(result.plans[i].why.begin(), whySlower(result.plans[i], result.plans.front(), noCause));
    return plans;
}

std::string whyNoneOf(const std::vector<NoLayout>& meshes, std::int64_t devices)
{
    const auto said = [](const NoLayout& one) { return !one.why.empty(); };
    auto found = std::ranges::find_if(meshes, [&](const NoLayout& one) { return said(one) && one.isMemory; });
    if (found == meshes.end())
        found = std::ranges::find_if(meshes, said);
    return found != meshes.end() ? found->why : fmt::format("no mesh of {} is of this kind", counted(devices, "device"));
}

TemplateScore scoreOf(const char* name, const FoundPlan* found, const FoundPlan& best, const std::string& whyNone)
{
    TemplateScore score{name, "", false, 0.0, 0.0, whyNone};
    if (found == nullptr)
        return score;
    score.mesh = meshText(found->mesh);
    score.fits = found->fits;
    score.seconds = found->seconds();
    score.loss = found->seconds() / best.seconds() - 1.0;
    score.why = !found->fits                 ? found->why.front()
        : found->seconds() <= best.seconds() ? std::string("the best")
                                             : whySlower(*found, best, noCause);
    return score;
}

OtherChoice otherChoice(std::string choice, std::string other, const FoundPlan& found, const FoundPlan& best)
{
    return {std::move(choice), std::move(other), found.seconds(), found.seconds() / best.seconds() - 1.0,
        whySlower(found, best, noCause)};
}

void setMoreMemory(SearchResult& result, const FoundPlan& best, const FoundPlan& more, double moreBytes)
{
    const double gained = std::max(0.0, best.seconds() - more.seconds());
    result.secondsPerGib = gained / (moreBytes / kGiB);
    result.memoryNotes.push_back(gained > 0.0
            ? fmt::format("with a quarter more memory: {} a step ({:.2g} s less for each GiB)", formatSeconds(more.seconds()),
                *result.secondsPerGib)
            : std::string("with a quarter more memory no plan is quicker: memory does not bind"));
}

} // namespace meshwright::sim
