// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/pipeline.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace meshwright::sim {

void PipelineClock::layOutOrders()
{
    m_orders.clear();
    for (std::int64_t stage = 0; stage < m_stages && splitsBackward(m_schedule); ++stage)
        m_orders.push_back(zeroBubbleOrder(m_stages, stage, m_microbatches, m_schedule == PipelineOrder::ZeroBubbleH2));
}

/// The task that a stage does as its `index`-th, of 2 * chunks * microbatches, or 3 * microbatches where the backward pass is split.
PipelineClock::Task PipelineClock::taskAt(std::int64_t stage, std::int64_t index) const
{
    if (splitsBackward(m_schedule)) {
        const SplitTask& task = m_orders[static_cast<std::size_t>(stage)][static_cast<std::size_t>(index)];
        return {static_cast<std::int32_t>(task.microbatch), 0, task.kind != SplitTask::Kind::Forward,
            task.kind == SplitTask::Kind::Weight};
    }
    const std::int64_t all = m_chunks * m_microbatches;
    const auto forward = [&](std::int64_t at) -> Task {
        if (m_chunks == 1)
            return {static_cast<std::int32_t>(at), 0, false, false};
        const std::int64_t round = at / (m_stages * m_chunks);
        const std::int64_t within = at % (m_stages * m_chunks);
        return {static_cast<std::int32_t>(round * m_stages + within % m_stages), static_cast<std::int32_t>(within / m_stages),
            false, false};
    };
    const auto backward = [&](std::int64_t at) -> Task {
        Task task = forward(at);
        task.chunk = static_cast<std::int32_t>(m_chunks - 1 - task.chunk);
        task.backward = true;
        return task;
    };
    if (m_schedule == PipelineOrder::GPipe)
        return index < all ? forward(index) : backward(index - all);
    const std::int64_t warmup = m_chunks == 1 ? std::min(m_stages - stage - 1, all)
                                              : std::min((m_stages - stage - 1) * 2 + (m_chunks - 1) * m_stages, all);
    if (index < warmup)
        return forward(index);
    const std::int64_t after = index - warmup;
    const std::int64_t pairs = all - warmup;
    if (after < 2 * pairs)
        return after % 2 == 0 ? forward(warmup + after / 2) : backward(after / 2);
    return backward(pairs + (after - 2 * pairs));
}

double PipelineClock::playSeconds(std::span<const ChunkTime> chunks, std::int64_t stages, std::int64_t microbatches,
    PipelineOrder schedule, double sendSeconds, double busySeconds)
{
    m_stages = stages;
    m_chunks = static_cast<std::int64_t>(chunks.size()) / stages;
    m_schedule = schedule;
    // Rounds of interleaving are whole; the callers' last one may be part full, and is scaled there.
    m_microbatches = m_chunks > 1 ? (microbatches + stages - 1) / stages * stages : microbatches;
    const std::int64_t all = m_chunks * m_microbatches;
    const auto places = static_cast<std::size_t>(all * stages);
    m_forwardEnd.assign(places, -1.0);
    m_backwardEnd.assign(places, -1.0);
    m_clock.assign(static_cast<std::size_t>(stages), 0.0);
    m_next.assign(static_cast<std::size_t>(stages), 0);
    m_held.assign(static_cast<std::size_t>(stages), 0);
    m_peaks.assign(static_cast<std::size_t>(stages), 0);
    const auto at = [&](std::int64_t chunk, std::int64_t stage, std::int64_t microbatch) {
        return static_cast<std::size_t>((chunk * stages + stage) * m_microbatches + microbatch);
    };
    m_begin.assign(static_cast<std::size_t>(stages), -1.0);
    layOutOrders();
    const bool splits = splitsBackward(schedule);
    const std::int64_t each = (splits ? 3 : 2) * all; // tasks of a stage
    const std::int64_t last = m_chunks * stages - 1;
    for (std::int64_t left = each * stages; left > 0;) {
        [[maybe_unused]] const std::int64_t before = left;
        for (std::int64_t stage = 0; stage < stages; ++stage) {
            if (m_stop.stop_requested())
                return std::numeric_limits<double>::infinity();
            const auto s = static_cast<std::size_t>(stage);
            for (; m_next[s] < each; ++m_next[s], --left) {
                const Task task = taskAt(stage, m_next[s]);
                const std::int64_t place = task.chunk * stages + stage;
                double ready = 0.0;
                bool comes = false; // from another stage
                if (!task.backward && place > 0) {
                    ready = m_forwardEnd[static_cast<std::size_t>((place - 1) * m_microbatches + task.microbatch)];
                    comes = stages > 1;
                } else if (task.backward && !task.weight) {
                    ready = place == last
                        ? m_forwardEnd[at(task.chunk, stage, task.microbatch)]
                        : m_backwardEnd[static_cast<std::size_t>((place + 1) * m_microbatches + task.microbatch)];
                    comes = place != last && stages > 1;
                }
                if (ready < 0.0)
                    break;
                const ChunkTime& time = chunks[static_cast<std::size_t>(place)];
                const bool goes = stages > 1 && !task.weight && (task.backward ? place > 0 : place < last);
                const double start = std::max(m_clock[s], ready + (comes ? sendSeconds : 0.0));
                const double takes = task.weight ? time.weight
                    : task.backward              ? time.backward - (splits ? time.weight : 0.0)
                                                 : time.forward;
                const double end = start + takes;
                if (m_begin[s] < 0.0)
                    m_begin[s] = start;
                m_clock[s] = end + (goes ? busySeconds : 0.0) + (comes ? busySeconds : 0.0);
                if (!task.weight)
                    (task.backward ? m_backwardEnd : m_forwardEnd)[at(task.chunk, stage, task.microbatch)] = end;
                m_held[s] += !task.backward ? 1 : splits == task.weight ? -1 : 0;
                m_peaks[s] = std::max(m_peaks[s], m_held[s]);
            }
        }
        assert(left < before && "a schedule's order must not wait for itself");
    }
    if (!splits)
        return *std::max_element(m_clock.begin(), m_clock.end());
    double longest = 0.0;
    for (std::size_t stage = 0; stage < m_clock.size(); ++stage)
        longest = std::max(longest, m_clock[stage] - m_begin[stage]);
    return longest;
}

double PipelineClock::seconds(std::span<const ChunkTime> chunks, std::int64_t stages, double microbatches, PipelineOrder schedule,
    double sendSeconds, double busySeconds)
{
    assert(stages >= 1 && !chunks.empty() && microbatches >= 1.0);
    if (stages == 1) {
        double sum = 0.0;
        for (const ChunkTime& chunk : chunks)
            sum += chunk.forward + chunk.backward;
        return sum * microbatches;
    }
    const std::int64_t step = stages;
    const auto whole = static_cast<std::int64_t>(std::ceil(microbatches - 1e-9));
    const std::int64_t few = (splitsBackward(schedule) ? 5 : 3) * step;
    if (whole <= few + step && (chunks.size() == static_cast<std::size_t>(stages) || whole % stages == 0)
        && static_cast<double>(whole) - microbatches < 1e-6)
        return playSeconds(chunks, stages, whole, schedule, sendSeconds, busySeconds);
    // Once the pipeline is full a round of `stages` microbatches takes the same time each.
    const std::int64_t first = whole > few + step ? few : std::max(step, whole / step * step);
    const double early = playSeconds(chunks, stages, first, schedule, sendSeconds, busySeconds);
    const double later = playSeconds(chunks, stages, first + step, schedule, sendSeconds, busySeconds);
    if (m_stop.stop_requested())
        return std::numeric_limits<double>::infinity();
    // Stages of unequal length still catch up with the longest one while the first rounds are played: no round is shorter than its work.
    double longest = 0.0;
    for (std::int64_t stage = 0; stage < stages; ++stage) {
        double work = 0.0;
        for (auto place = static_cast<std::size_t>(stage); place < chunks.size(); place += static_cast<std::size_t>(stages))
            work += chunks[place].forward + chunks[place].backward;
        longest = std::max(longest, work);
    }
    const double pace = std::max((later - early) / static_cast<double>(step), longest);
    return early + (microbatches - static_cast<double>(first)) * pace;
}

double heldChunks(PipelineOrder schedule, double stages, double stage, double virtualStages, double microbatches)
{
    const double all = microbatches * virtualStages;
    if (schedule == PipelineOrder::GPipe)
        return all;
    if (splitsBackward(schedule))
        return std::min(schedule == PipelineOrder::ZeroBubbleH1 ? stages : 2.0 * stages - 1.0, all);
    if (virtualStages <= 1.0)
        return std::min(stages - stage, all);
    return std::min(2.0 * (stages - stage - 1.0) + (virtualStages - 1.0) * stages + 1.0, all);
}

} // namespace meshwright::sim
