// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/pipeline_tasks.h"

#include "core/schedule/zero_bubble.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

namespace meshwright {

namespace {

class StageOrder {
public:
    StageOrder(const PipelineShape& shape, std::int64_t stage)
        : m_shape(shape)
        , m_stage(stage)
        , m_all(shape.chunks * shape.microbatches)
    {
        assert(shape.chunks == 1 || shape.microbatches % shape.stages == 0);
    }

    std::int64_t count() const { return m_all; }

    /// Rounds of as many microbatches as there are stages go through the chunks one after the other.
    Task forward(std::int64_t at) const
    {
        std::int64_t chunk = 0;
        std::int64_t microbatch = at;
        if (m_shape.chunks > 1) {
            const std::int64_t round = at / (m_shape.stages * m_shape.chunks);
            const std::int64_t within = at % (m_shape.stages * m_shape.chunks);
            chunk = within / m_shape.stages;
            microbatch = round * m_shape.stages + within % m_shape.stages;
        }
        return task(chunk, microbatch, TaskKind::Forward);
    }

    Task backward(std::int64_t at) const
    {
        const Task mirrored = forward(at);
        return task(m_shape.chunks - 1 - static_cast<std::int64_t>(mirrored.chunk),
            static_cast<std::int64_t>(mirrored.microbatch), TaskKind::Backward);
    }

    /// Forward tasks before the first backward one.
    std::int64_t warmUp() const
    {
        if (m_shape.order == PipelineOrder::GPipe)
            return m_all;
        const std::int64_t behind = m_shape.stages - m_stage - 1;
        return std::min(m_shape.chunks == 1 ? behind : 2 * behind + (m_shape.chunks - 1) * m_shape.stages, m_all);
    }

    Task split(const SplitTask& step) const
    {
        return step.kind == SplitTask::Kind::Forward ? forward(step.microbatch)
            : step.kind == SplitTask::Kind::Input    ? task(0, step.microbatch, TaskKind::BackwardInput)
                                                     : task(0, step.microbatch, TaskKind::BackwardWeight);
    }

private:
    Task task(std::int64_t chunk, std::int64_t microbatch, TaskKind kind) const
    {
        return {static_cast<std::size_t>(m_stage), static_cast<std::size_t>(chunk), static_cast<std::size_t>(microbatch), kind,
            functionOf(kind, static_cast<std::size_t>(chunk))};
    }

    const PipelineShape& m_shape;
    std::int64_t m_stage;
    std::int64_t m_all;
};

void addSplitTasks(const PipelineShape& shape, std::int64_t stage, std::vector<Task>& tasks)
{
    assert(shape.chunks == 1);
    const StageOrder order(shape, stage);
    for (const SplitTask& step :
        zeroBubbleOrder(shape.stages, stage, shape.microbatches, shape.order == PipelineOrder::ZeroBubbleH2))
        tasks.push_back(order.split(step));
}

void addTasks(const PipelineShape& shape, std::int64_t stage, std::vector<Task>& tasks)
{
    const StageOrder order(shape, stage);
    std::int64_t forward = 0;
    while (forward < order.warmUp())
        tasks.push_back(order.forward(forward++));
    for (std::int64_t backward = 0; backward < order.count(); ++backward) {
        if (forward < order.count())
            tasks.push_back(order.forward(forward++));
        tasks.push_back(order.backward(backward));
    }
}

bool isShared(TaskKind kind)
{
    return kind == TaskKind::ShareGradients || kind == TaskKind::ShareNorm;
}

/// What has been sent and shared while tasks are played, and when.
class PlayedTasks {
public:
    PlayedTasks(const PipelineShape& shape, const std::vector<std::vector<Task>>& tasks, TaskPlayer& player)
        : m_shape(shape)
        , m_player(player)
    {
        for (const std::vector<Task>& ofStage : tasks) {
            for (const Task& task : ofStage)
                ++m_tasks[task.kind];
        }
    }

    /// False when what the task waits for has not come.
    bool play(const Task& task, std::size_t number)
    {
        const std::int64_t piece = m_shape.pieceOf(task);
        const std::int64_t last = m_shape.pieces() - 1;
        const bool isBackward = task.passesGradients();
        std::vector<double> arrivals;
        if (task.passesOn() && piece != (isBackward ? last : 0)) {
            const auto sent = m_sent.find({isBackward, piece, task.microbatch});
            if (sent == m_sent.end())
                return false;
            arrivals = sent->second;
        } else if (task.kind == TaskKind::TotalGradients || task.kind == TaskKind::Update) {
            const TaskKind shared = task.kind == TaskKind::Update ? TaskKind::ShareNorm : TaskKind::ShareGradients;
            const std::vector<std::vector<double>>& parts = m_parts[shared];
            if (parts.size() < m_tasks[shared])
                return false;
            for (const std::vector<double>& part : parts) {
                arrivals.resize(part.size(), 0.0);
                std::ranges::transform(arrivals, part, arrivals.begin(), std::ranges::max);
            }
        }
        if (!arrivals.empty())
            m_player.receive(task, number, arrivals);
        const std::vector<double>& done = m_player.carryOut(task, number);
        if (isShared(task.kind))
            m_parts[task.kind].push_back(done);
        if (task.passesOn() && piece != (isBackward ? 0 : last)) {
            m_sent[{isBackward, isBackward ? piece - 1 : piece + 1, task.microbatch}] = done;
            m_player.send(task, number);
        }
        return true;
    }

private:
    const PipelineShape& m_shape;
    TaskPlayer& m_player;
    std::map<std::tuple<bool, std::int64_t, std::size_t>, std::vector<double>>
        m_sent; ///< by direction, receiving piece, microbatch
    std::map<TaskKind, std::vector<std::vector<double>>> m_parts; ///< of the stages that have come so far
    std::map<TaskKind, std::size_t> m_tasks; ///< how many there are
};

} // namespace

std::vector<Task> pipelineTasks(const PipelineShape& shape, bool sharesNorm, const std::vector<std::size_t>& sharing)
{
    std::vector<Task> tasks;
    const auto once = [&](std::int64_t stage, TaskKind kind) {
        tasks.push_back({static_cast<std::size_t>(stage), 0, 0, kind, functionOf(kind)});
    };
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
        if (splitsBackward(shape.order))
            addSplitTasks(shape, stage, tasks);
        else
            addTasks(shape, stage, tasks);
        if (std::find(sharing.begin(), sharing.end(), static_cast<std::size_t>(stage)) != sharing.end()) {
            once(stage, TaskKind::ShareGradients);
            once(stage, TaskKind::TotalGradients);
        }
        if (sharesNorm)
            once(stage, TaskKind::ShareNorm);
        once(stage, TaskKind::Update);
    }
    return tasks;
}

std::vector<Task> forwardTasks(const PipelineShape& shape)
{
    std::vector<Task> tasks;
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
        const StageOrder order(shape, stage);
        for (std::int64_t at = 0; at < order.count(); ++at)
            tasks.push_back(order.forward(at));
    }
    return tasks;
}

SlotPlan slotPlan(const PipelineShape& shape, const std::vector<Task>& tasks)
{
    const auto pieces = static_cast<std::size_t>(shape.pieces());
    SlotPlan plan;
    plan.slotOf.assign(pieces, std::vector<std::int64_t>(static_cast<std::size_t>(shape.microbatches), 0));
    plan.slots.assign(pieces, 0);
    std::vector<std::vector<std::int64_t>> free(pieces);
    for (const Task& task : tasks) {
        const auto piece = static_cast<std::size_t>(shape.pieceOf(task));
        if (task.kind == TaskKind::Forward) {
            if (free[piece].empty())
                free[piece].push_back(plan.slots[piece]++);
            plan.slotOf[piece][task.microbatch] = free[piece].back();
            free[piece].pop_back();
        } else if (task.kind == TaskKind::Backward || task.kind == TaskKind::BackwardWeight) {
            free[piece].push_back(plan.slotOf[piece][task.microbatch]);
        }
    }
    return plan;
}

void playTasks(const PipelineShape& shape, const std::vector<std::vector<Task>>& tasks, TaskPlayer& player)
{
    PlayedTasks played(shape, tasks, player);
    std::vector<std::size_t> next(tasks.size(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t stage = 0; stage < tasks.size(); ++stage) {
            while (next[stage] < tasks[stage].size() && played.play(tasks[stage][next[stage]], next[stage])) {
                ++next[stage];
                moved = true;
            }
        }
    }
}

} // namespace meshwright
