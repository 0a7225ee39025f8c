// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/run_sweep.h"

#include "core/support/thread_failure.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace meshwright::sim {

namespace {

/// Runs `work` on so many threads, this one among them. What it throws is thrown on, once.
template <typename Work>
void onThreads(int jobs, Work work)
{
    ThreadFailure failure;
    {
        std::vector<std::jthread> others;
        for (int i = 1; i < jobs; ++i)
            others.emplace_back([&] { failure.guard(work); });
        failure.guard(work);
    }
    failure.rethrow();
}

class Runner {
public:
    Runner(const SweepPlan& plan, const SweepEngine& engine, SweepDatabase& database,
        const std::function<void(const SweepProgress&)>& progress, const std::stop_token& stop)
        : m_plan(plan)
        , m_engine(engine)
        , m_database(database)
        , m_report(progress)
        , m_stop(stop)
        , m_outcomes(static_cast<std::size_t>(plan.pointCount()))
    {
        m_progress.points = plan.pointCount();
    }

    Result<SweepRun> run(int jobs)
    {
        const std::vector<std::string> keys = sweepKeys(m_plan, m_engine, jobs, m_stop);
        if (!m_stop.stop_requested()) {
            if (const auto added = m_database.addSweep(m_plan, keys); !added)
                return added.error();
            if (const auto known = takeKnown(keys); !known)
                return known.error();
            onThreads(jobs, [this] { work(); });
        }
        if (!m_problems.empty())
            return m_problems;
        SweepRun run;
        run.simulated = m_simulated;
        run.known = m_progress.known;
        run.stopped = m_progress.done < m_progress.points;
        run.result = sweepResult(m_plan, m_outcomes);
        return run;
    }

private:
    /// Points with one key: equal studies, whatever the settings that made them.
    struct Task {
        std::string key;
        std::vector<std::size_t> points;
    };

    Result<Done> takeKnown(const std::vector<std::string>& keys)
    {
        const auto known = m_database.outcomes();
        if (!known)
            return known.error();
        std::unordered_map<std::string, std::size_t> taskOf;
        for (std::size_t point = 0; point < keys.size(); ++point) {
            const auto [place, isNew] = taskOf.emplace(keys[point], m_tasks.size());
            if (isNew)
                m_tasks.push_back({keys[point], {}});
            m_tasks[place->second].points.push_back(point);
        }
        const std::lock_guard lock(m_mutex);
        for (std::size_t task = 0; task < m_tasks.size(); ++task) {
            if (const auto found = known->find(m_tasks[task].key); found != known->end())
                keep(task, found->second, true);
            else
                m_pending.push_back(task);
        }
        return Done{};
    }

    /// What a worker does: stores what it has, claims the next, simulates it.
    void work()
    {
        std::optional<SweepDatabase::Stored> finished;
        for (;;) {
            const auto task = next();
            if (!task && !finished)
                return;
            const auto claim
                = m_database.storeAndClaim(finished ? &*finished : nullptr, task ? m_tasks[*task].key : std::string());
            if (!claim) {
                fail(claim.error());
                return;
            }
            if (!task)
                return;
            finished.reset();
            if (claim->state == SweepDatabase::ClaimState::Others) {
                putBack(*task);
                continue;
            }
            if (claim->state == SweepDatabase::ClaimState::Done) {
                const std::lock_guard lock(m_mutex);
                keep(*task, *claim->outcome, true);
                continue;
            }
            const auto point = static_cast<std::int64_t>(m_tasks[*task].points.front());
            finished = SweepDatabase::Stored{m_tasks[*task].key, m_engine.outcomeOf(m_plan.settingsAt(point))};
            const std::lock_guard lock(m_mutex);
            ++m_simulated;
            keep(*task, finished->outcome, false);
        }
    }

    std::optional<std::size_t> next()
    {
        const std::lock_guard lock(m_mutex);
        if (m_pending.empty() || m_stop.stop_requested() || !m_problems.empty())
            return std::nullopt;
        const std::size_t task = m_pending.front();
        m_pending.pop_front();
        return task;
    }

    /// Another program is at it: it is asked for again after the others.
    void putBack(std::size_t task)
    {
        {
            const std::lock_guard lock(m_mutex);
            m_pending.push_back(task);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }

    void fail(Problems problems)
    {
        const std::lock_guard lock(m_mutex);
        if (m_problems.empty())
            m_problems = std::move(problems);
    }

    /// Precondition: the lock is held.
    void keep(std::size_t task, const SweepOutcome& outcome, bool known)
    {
        for (const std::size_t point : m_tasks[task].points) {
            m_outcomes[point] = outcome;
            ++m_progress.done;
            m_progress.known += known ? 1 : 0;
        }
        const auto point = static_cast<std::int64_t>(m_tasks[task].points.front());
        SweepOutcome found = outcome;
        found.units = m_plan.unitsAt(point);
        if (found.state == SweepState::Fits && (!m_best || found.secondsPerUnit() < m_best->secondsPerUnit())) {
            m_best = std::move(found);
            m_progress.best = &*m_best;
            m_progress.bestPoint = point;
        }
        if (m_report)
            m_report(m_progress);
    }

    const SweepPlan& m_plan;
    const SweepEngine& m_engine;
    SweepDatabase& m_database;
    const std::function<void(const SweepProgress&)>& m_report;
    const std::stop_token& m_stop;
    std::vector<Task> m_tasks;
    std::mutex m_mutex; ///< guards all below
    std::deque<std::size_t> m_pending;
    std::vector<std::optional<SweepOutcome>> m_outcomes;
    std::optional<SweepOutcome> m_best;
    SweepProgress m_progress;
    std::int64_t m_simulated = 0;
    Problems m_problems;
};

} // namespace

std::vector<std::string> sweepKeys(const SweepPlan& plan, const SweepEngine& engine, int jobs, const std::stop_token& stop)
{
    std::vector<std::string> keys(static_cast<std::size_t>(plan.pointCount()));
    std::atomic<std::size_t> next = 0;
    onThreads(jobs, [&] {
        for (std::size_t point = next++; point < keys.size() && !stop.stop_requested(); point = next++)
            keys[point] = engine.keyOf(plan.settingsAt(static_cast<std::int64_t>(point)));
    });
    return keys;
}

Result<SweepRun> runSweep(const SweepPlan& plan, const SweepEngine& engine, SweepDatabase& database, int jobs,
    const std::function<void(const SweepProgress&)>& progress, const std::stop_token& stop)
{
    assert(jobs >= 1 && checkPlan(plan).empty());
    return Runner(plan, engine, database, progress, stop).run(jobs);
}

} // namespace meshwright::sim
