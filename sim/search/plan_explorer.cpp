// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/plan_explorer.h"

#include "sim/search/search_limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

namespace meshwright::sim {

namespace {

constexpr std::size_t kFirstRound = 32;
constexpr std::size_t kRound = 256;

using MeshKey = std::array<std::int32_t, 6>;

MeshKey meshKey(const Candidate& c)
{
    return {c.pp, c.dp, c.zero >= 3 ? c.fsdp : 1, c.ep, c.cp, c.tp};
}

/// Below twice `kMostKinds`.
std::uint32_t shareKey(const Candidate& c)
{
    return 2 * kindKey(c) + (c.chunks > 1 ? 1 : 0);
}

} // namespace

std::uint32_t kindKey(const Candidate& c)
{
    const auto flag = [](std::int32_t size, int bit) { return size > 1 ? 1U << bit : 0U; };
    const std::uint32_t states = c.zero >= 3 && c.fsdp > 1 ? (c.fsdp < c.dp ? 4U : 3U) : c.dp > 1 && c.zero < 3 ? c.zero : 0U;
    return states << 5U | flag(c.dp, 4) | flag(c.tp, 3) | flag(c.cp, 2) | flag(c.ep, 1) | flag(c.pp, 0);
}

PlanExplorer::PlanExplorer(const TransformerSpace& space, Limits limits)
    : m_space(space)
    , m_limits(std::move(limits))
    , m_workers(workerCount(m_limits.threads))
    , m_seconds(space.candidates().size(), -1.0)
    , m_bytes(space.candidates().size(), 0.0)
    , m_recomputeShares(std::numeric_limits<std::uint8_t>::max() + 1, 0.0)
{
    const SearchMachine& machine = space.machine();
    for (unsigned worker = 0; worker < m_workers; ++worker) {
        m_models.emplace_back(machine.chip, machine.cluster, machine.constants, machine.traits, m_limits.stop);
        m_plans.push_back(space.emptyPlan());
    }
}

bool PlanExplorer::stopped() const
{
    return m_limits.stop.stop_requested();
}

void PlanExplorer::estimate(const std::vector<std::size_t>& indices)
{
    std::vector<std::size_t> fresh;
    for (const std::size_t index : indices) {
        if (m_seconds[index] < 0.0)
            fresh.push_back(index);
    }
    std::atomic<std::size_t> done = 0;
    parallelFor(
        fresh.size(), m_workers, m_limits.stop,
        [&](unsigned worker, std::size_t i) {
            TrainingPlan& plan = m_plans[worker];
            m_space.apply(m_space.candidates()[fresh[i]], plan);
            const StepEstimate step = m_models[worker].estimate(plan);
            if (stopped())
                return;
            m_seconds[fresh[i]] = step.seconds;
            m_bytes[fresh[i]] = step.memory.total();
            ++done;
        },
        1);
    m_count += done;
}

std::vector<Estimated> PlanExplorer::bestMeshes(std::size_t top)
{
    const auto& candidates = m_space.candidates();
    const double capacity = capacityBytes();
    std::map<MeshKey, Estimated> best;
    double worst = kInfinite; // of the meshes that will be told of
    double quickest = kInfinite;
    std::vector<std::size_t> round;
    std::size_t size = kFirstRound;
    std::size_t next = 0;
    m_complete = !m_space.cutShort();
    m_lowerBound = candidates.empty() ? 0.0 : candidates.front().seconds;
    while (next < candidates.size() && candidates[next].seconds < worst) {
        if (stopped()) {
            m_complete = false;
            break;
        }
        round.clear();
        for (; next < candidates.size() && round.size() < size && candidates[next].seconds < worst; ++next) {
            if (candidates[next].bytes > capacity)
                continue;
            const auto known = best.find(meshKey(candidates[next]));
            if (known == best.end() || candidates[next].seconds < known->second.seconds)
                round.push_back(next);
        }
        estimate(round);
        for (const std::size_t index : round) {
            if (!isEstimated(index) || m_bytes[index] > capacity)
                continue;
            if (!m_firstFit)
                m_firstFit = Clock::now();
            const auto [known, isNew]
                = best.try_emplace(meshKey(candidates[index]), Estimated{index, m_seconds[index], m_bytes[index]});
            if (!isNew && m_seconds[index] < known->second.seconds)
                known->second = {index, m_seconds[index], m_bytes[index]};
            quickest = std::min(quickest, m_seconds[index]);
        }
        if (best.size() >= top) {
            std::vector<double> times;
            for (const auto& [mesh, plan] : best)
                times.push_back(plan.seconds);
            std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(top - 1), times.end());
            worst = times[top - 1];
        }
        if (m_limits.progress)
            m_limits.progress(next, quickest, next < candidates.size() ? std::min(quickest, candidates[next].seconds) : quickest);
        size = std::min(kRound, 2 * size);
    }
    const double unseen = next < candidates.size() ? candidates[next].seconds : kInfinite;
    m_lowerBound = std::min(quickest, unseen);
    if (m_lowerBound == kInfinite)
        m_lowerBound = 0.0;
    std::vector<Estimated> plans;
    for (const auto& [mesh, plan] : best)
        plans.push_back(plan);
    std::sort(plans.begin(), plans.end(), [](const Estimated& a, const Estimated& b) {
        return a.seconds != b.seconds ? a.seconds < b.seconds : a.index < b.index;
    });
    if (plans.size() > top)
        plans.resize(top);
    return plans;
}

std::optional<Estimated> PlanExplorer::best(const Filter& filter, double capacityBytes, const Among& among)
{
    const auto& candidates = m_space.candidates();
    const std::size_t count = among.indices != nullptr ? among.indices->size() : candidates.size();
    std::optional<Estimated> found;
    double below = among.belowSeconds;
    std::vector<std::size_t> round;
    std::size_t looked = 0;
    for (std::size_t next = 0; next < count && looked < among.most && !stopped();) {
        round.clear();
        for (; next < count && round.size() < kFirstRound; ++next) {
            const std::size_t index = among.indices != nullptr ? (*among.indices)[next] : next;
            const Candidate& candidate = candidates[index];
            if (candidate.seconds >= below) {
                next = count;
                break;
            }
            if ((candidate.bytes <= capacityBytes || leastBytes(candidate) <= capacityBytes) && filter(candidate))
                round.push_back(index);
        }
        estimate(round);
        looked += round.size();
        for (const std::size_t index : round) {
            if (isEstimated(index) && expectedBytes(index) <= capacityBytes && m_seconds[index] < below) {
                found = Estimated{index, m_seconds[index], m_bytes[index]};
                below = found->seconds;
            }
        }
    }
    return found;
}

std::optional<Estimated> PlanExplorer::smallest(const Filter& filter, std::size_t most)
{
    const auto& candidates = m_space.candidates();
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < candidates.size(); ++index) {
        if (filter(candidates[index]))
            order.push_back(index);
    }
    std::stable_sort(
        order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return candidates[a].bytes < candidates[b].bytes; });
    std::optional<Estimated> found;
    for (std::size_t next = 0; next < order.size() && next < most && !stopped(); next += kFirstRound) {
        if (found && candidates[order[next]].bytes >= found->bytes)
            break;
        const std::vector<std::size_t> round(order.begin() + static_cast<std::ptrdiff_t>(next),
            order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), next + kFirstRound)));
        estimate(round);
        for (const std::size_t index : round) {
            if (isEstimated(index) && (!found || m_bytes[index] < found->bytes))
                found = Estimated{index, m_seconds[index], m_bytes[index]};
        }
    }
    return found;
}

bool PlanExplorer::mayFit(std::size_t index)
{
    estimate({index});
    constexpr double kDoubt = 0.1;
    return !isEstimated(index) || (1.0 - kDoubt) * expectedBytes(index) <= capacityBytes();
}

void PlanExplorer::learnBytes(std::size_t index, double simulatedBytes)
{
    const Candidate& candidate = m_space.candidates()[index];
    const double share = std::min(1.0, simulatedBytes / m_bytes[index]);
    for (double* known : {&m_kindShares[shareKey(candidate)], &m_recomputeShares[candidate.recompute]})
        *known = *known > 0.0 ? std::min(*known, share) : share;
}

double PlanExplorer::byteShare(const Candidate& candidate) const
{
    const double share = std::max(m_kindShares[shareKey(candidate)], m_recomputeShares[candidate.recompute]);
    return share > 0.0 ? share : 1.0;
}

StepEstimate PlanExplorer::details(std::size_t index)
{
    const auto [known, isNew] = m_details.try_emplace(index);
    if (isNew) { // though the search was stopped: it is told of
        const SearchMachine& machine = m_space.machine();
        m_space.apply(m_space.candidates()[index], m_plans.front());
        known->second = StepModel(machine.chip, machine.cluster, machine.constants, machine.traits).estimate(m_plans.front());
    }
    return known->second;
}

std::size_t PlanExplorer::tooLarge() const
{
    const double capacity = capacityBytes();
    const auto& candidates = m_space.candidates();
    return static_cast<std::size_t>(std::count_if(
        candidates.begin(), candidates.end(), [&](const Candidate& candidate) { return candidate.bytes > capacity; }));
}

} // namespace meshwright::sim
