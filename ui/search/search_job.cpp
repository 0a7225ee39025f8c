// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/search_job.h"

#include "sim/cost/stack.h"
#include "sim/search/plan_trials.h"
#include "sim/session/search_study.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace meshwright::ui {

namespace {

constexpr std::size_t kRows = 10;
constexpr auto kBetweenReports = std::chrono::milliseconds(100);

std::shared_ptr<const FoundPlans> plansOf(std::shared_ptr<const Study> study, Result<sim::SearchResult> result)
{
    auto found = std::make_shared<FoundPlans>();
    found->study = std::move(study);
    if (!result) {
        found->problems = result.error();
        return found;
    }
    found->result = *std::move(result);
    found->plans = found->result.plans;
    for (const sim::FoundPlan& plan : found->result.front) {
        if (std::none_of(
                found->plans.begin(), found->plans.end(), [&](const sim::FoundPlan& one) { return isSamePlan(one, plan); }))
            found->plans.push_back(plan);
    }
    return found;
}

/// The plans with one that was just simulated: in the place of its estimate, or behind them.
std::shared_ptr<const FoundPlans> withTrial(const FoundPlans& known, sim::FoundPlan plan, const sim::PlanTrial& trial)
{
    sim::takeTrial(plan, trial);
    auto found = std::make_shared<FoundPlans>(known);
    const auto row = std::find_if(
        found->plans.begin(), found->plans.end(), [&](const sim::FoundPlan& one) { return isSamePlan(one, plan); });
    if (row == found->plans.end())
        found->plans.push_back(std::move(plan));
    else
        *row = std::move(plan);
    return found;
}

} // namespace

bool isSamePlan(const sim::FoundPlan& a, const sim::FoundPlan& b)
{
    return a.mesh == b.mesh && a.specs == b.specs && a.recompute == b.recompute && a.microbatch == b.microbatch
        && a.zeroStage == b.zeroStage && a.pipeline.schedule == b.pipeline.schedule && a.pipeline.stages == b.pipeline.stages
        && a.pipeline.chunks == b.pipeline.chunks && a.exchangesHeads == b.exchangesHeads && a.lossChunks == b.lossChunks;
}

SearchJob::SearchJob(std::shared_ptr<const sim::Catalogue> catalogue, QObject* parent)
    : QObject(parent)
    , m_catalogue(std::move(catalogue))
{
}

void SearchJob::start(std::shared_ptr<const Study> study)
{
    m_worker.start([this, study = std::move(study)](const std::stop_token& stop) -> std::function<void()> {
        const auto last = [this](std::shared_ptr<const FoundPlans> plans) {
            return [this, plans = std::move(plans)] { Q_EMIT found(plans, true); };
        };
        const Result<sim::Calibration>& calibration = sim::defaultCalibration();
        if (!calibration)
            return last(plansOf(study, calibration.error()));
        sim::SearchOptions options;
        options.top = kRows;
        options.threads = 1; // the window goes on beside it
        options.stop = stop;
        auto reported = std::chrono::steady_clock::now();
        options.progress = [&](const sim::SearchProgress& progress) {
            const auto now = std::chrono::steady_clock::now();
            if (now - reported < kBetweenReports)
                return;
            reported = now;
            m_worker.post([this, progress] { Q_EMIT progressed(progress); });
        };
        const bool hasMore = study->transformer() != nullptr;
        auto estimated = plansOf(study, sim::searchStudy(*study, *m_catalogue, *calibration, {}, options));
        if (!hasMore || !estimated->problems.empty() || estimated->plans.empty() || stop.stop_requested())
            return last(estimated);
        m_worker.post([this, estimated] { Q_EMIT found(estimated, false); });
        const sim::SearchWork work = sim::workOf(*study);
        options.simulate = [&, simulator = sim::planSimulator(work, *m_catalogue, stop)](const sim::FoundPlan& plan,
                               const sim::SearchMachine& machine, std::string& whyNot) { // by this thread alone
            auto trial = simulator(plan, machine, whyNot);
            if (trial) {
                estimated = withTrial(*estimated, plan, *trial);
                m_worker.post([this, estimated] { Q_EMIT found(estimated, false); });
            }
            return trial;
        };
        options.floor = sim::floorSimulator(work, *m_catalogue, stop); // for the bound that no plan's step is under
        options.pass = sim::passSimulator(work, *m_catalogue, stop);
        return last(plansOf(study, sim::searchStudy(*study, *m_catalogue, *calibration, {}, options)));
    });
}

Result<std::string> SearchJob::studyOf(const FoundPlans& found, const sim::FoundPlan& plan, const sim::Catalogue& catalogue)
{
    if (plan.program)
        return Problem{"MW1754", "the plan is a program with layouts of its own, and no file has it yet",
            "write it with `meshwright search STUDY -o plan.yaml`, and open that file"};
    const Result<sim::Calibration>& calibration = sim::defaultCalibration();
    if (!calibration)
        return calibration.error();
    return sim::planText(*found.study, plan, catalogue, *calibration);
}

} // namespace meshwright::ui

#include "moc_search_job.cpp"
