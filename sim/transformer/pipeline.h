// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/zero_bubble.h"
#include "sim/transformer/plan.h"

#include <cstdint>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// One chunk of a stage's layers, and what a microbatch takes on it, in seconds.
struct ChunkTime {
    double forward = 0.0;
    double backward = 0.0; ///< with what is computed again, and with `weight`
    double weight = 0.0; ///< of backward: the gradients of weights, which nobody waits for
};

/// Orders of work of pipelines, played task by task: a stage does its tasks in the schedule's order, a forward task waits for the chunk
/// before (of the stage before, or of the last stage in the round before), a backward task for the chunk after. Where the schedule splits the
/// backward pass, gradients of weights are tasks of their own (see `zeroBubbleOrder`), and a step is the time from a stage's first task to its last,
/// of the stage where that is longest: stages begin and end one after the other. Memory is kept between calls.
class PipelineClock {
public:
    /// After a stop the times are infinite: what was being played was not played to its end.
    explicit PipelineClock(std::stop_token stop = {})
        : m_stop(std::move(stop))
    {
    }

    /// The time of a step, in seconds. `chunks[chunk * stages + stage]`; a message between stages takes `sendSeconds`, of which the sender and the
    /// receiver each lose `busySeconds`.
    /// When microbatches are many the first are played and the rest follow at the pace that has set in; `microbatches` may be no whole number.
    /// Preconditions: chunks.size() is a multiple of stages >= 1, microbatches >= 1. Interleaving takes microbatches in rounds of `stages`.
    double seconds(std::span<const ChunkTime> chunks, std::int64_t stages, double microbatches, PipelineOrder schedule,
        double sendSeconds, double busySeconds);

    /// Every task of so many microbatches: no short cut.
    double playSeconds(std::span<const ChunkTime> chunks, std::int64_t stages, std::int64_t microbatches, PipelineOrder schedule,
        double sendSeconds, double busySeconds);

    /// The most microbatches (of one chunk each) that stage `stage` held at once in the last call of `playSeconds`.
    std::int64_t inFlight(std::int64_t stage) const { return m_peaks[static_cast<std::size_t>(stage)]; }

private:
    struct Task {
        std::int32_t microbatch = 0;
        std::int32_t chunk = 0;
        bool backward = false;
        bool weight = false; ///< the gradients of weights alone
    };
    Task taskAt(std::int64_t stage, std::int64_t index) const;
    void layOutOrders();

    std::stop_token m_stop;
    std::int64_t m_stages = 1;
    std::int64_t m_chunks = 1;
    std::int64_t m_microbatches = 1;
    PipelineOrder m_schedule = PipelineOrder::OneForwardOneBackward;
    std::vector<double> m_forwardEnd;
    std::vector<double> m_backwardEnd;
    std::vector<double> m_clock;
    std::vector<std::int64_t> m_next;
    std::vector<std::int64_t> m_held;
    std::vector<std::int64_t> m_peaks;
    std::vector<double> m_begin; ///< of a stage's first task; below 0: not yet
    std::vector<std::vector<SplitTask>> m_orders; ///< by stage, where the backward pass is split
};

/// Microbatches, each of one chunk (1 / virtualStages of a stage's layers), that a stage (0-based) holds at most.
/// Source: semantics of Megatron-LM's schedules: GPipe all; 1F1B min(p - i, m); interleaved min(2 (p - i - 1) + (v - 1) p + 1, m v);
/// ZB-H1 min(p, m) and ZB-H2 min(2p - 1, m) on all stages, until the gradients of weights are made.
double heldChunks(PipelineOrder schedule, double stages, double stage, double virtualStages, double microbatches);

} // namespace meshwright::sim
