// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/pipeline_recording.h"

#include "core/schedule/label.h"
#include "core/schedule/pipeline_tasks.h"

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

namespace meshwright {

namespace {

class PipelineWriter {
public:
    PipelineWriter(const PipelineRecords& records, Clock clock)
        : m_records(records)
        , m_timeline(clock)
    {
        for (std::size_t device = 0; device < records.tasks.size(); ++device) {
            const auto id = static_cast<std::int64_t>(device);
            const std::uint32_t compute = m_timeline.addRow(id, "compute");
            const std::uint32_t collectives = m_timeline.addRow(id, "collectives");
            m_rows.push_back({compute, collectives, m_timeline.addRow(id, "transfers")});
        }
    }

    enum Row : std::size_t { Compute, Collectives, Transfers };

    struct Piece {
        std::int64_t device = 0;
        Row row = Compute;
        double start = 0.0;
        double end = 0.0;
        double cpu = 0.0;
        std::string name;
        SliceCategory category = SliceCategory::Compute;
        std::int64_t bytes = 0;
    };

    /// Waiting that took no time is left out.
    void add(const Piece& piece, const Task& task)
    {
        const bool isWaiting = piece.category == SliceCategory::Wait || piece.category == SliceCategory::WaitForCore;
        if (isWaiting && piece.end <= piece.start)
            return;
        Slice slice;
        slice.startSeconds = piece.start;
        slice.durationSeconds = std::max(0.0, piece.end - piece.start);
        slice.cpuSeconds = piece.cpu;
        slice.bytes = piece.bytes;
        slice.row = m_rows[static_cast<std::size_t>(piece.device)][piece.row];
        slice.name = m_timeline.intern(piece.name);
        slice.detail = m_timeline.intern(taskLabel(task, m_records.shape));
        slice.category = piece.category;
        m_timeline.add(slice);
    }

    Timeline finished()
    {
        m_timeline.sort();
        return std::move(m_timeline);
    }

private:
    const PipelineRecords& m_records;
    Timeline m_timeline;
    std::vector<std::array<std::uint32_t, 3>> m_rows; ///< by device
};

std::string receivedText(const Task& task)
{
    if (task.kind == TaskKind::Update)
        return "receive norms";
    if (task.kind == TaskKind::TotalGradients)
        return "receive gradients";
    return task.kind == TaskKind::Forward ? "receive activation" : "receive gradient";
}

std::string sentText(const Task& task)
{
    if (task.kind == TaskKind::ShareNorm)
        return "share norm";
    if (task.kind == TaskKind::ShareGradients)
        return "share gradients";
    return task.kind == TaskKind::Forward ? "send activation" : "send gradient";
}

using Row = PipelineWriter::Row;

void addMeasured(PipelineWriter& writer, const PipelineRecords& records, const LoadedFunction& function, std::int64_t device,
    std::int64_t position, const TaskRecord& task)
{
    const double zero = records.startSeconds;
    for (std::size_t i = task.first; i < task.last; ++i) {
        const Recorded& recorded = records.instructionsOf(function, static_cast<std::size_t>(position))[i];
        const RecordedInstruction& what = function.recordedInstructions()[recorded.instruction];
        if (what.isWait)
            continue; // the collective's own times say how long it took
        const CollectiveTimes& times = recorded.times;
        const bool meets = what.collective != nullptr;
        const Row row = meets ? Row::Collectives : Row::Compute;
        const double asked = meets ? times.arrived : recorded.askedCore;
        const double worked = meets ? times.moved : times.finished;
        writer.add({device, row, asked - zero, times.started - zero, 0.0, what.name,
                       meets ? SliceCategory::Wait : SliceCategory::WaitForCore, 0},
            task.task);
        writer.add({device, row, times.started - zero, worked - zero, times.cpuSeconds, what.name, what.category, what.bytes},
            task.task);
        if (meets)
            writer.add(
                {device, row, times.moved - zero, times.finished - zero, 0.0, what.name, SliceCategory::Wait, 0}, task.task);
    }
}

/// Plays the tasks of all stages with a core for every device.
class Replay : public TaskPlayer {
public:
    Replay(const PipelineRecords& records, const LoadedPipeline::TaskSeconds& taskSeconds, bool isTypical = false)
        : m_records(records)
        , m_taskSeconds(taskSeconds)
        , m_writer(records, Clock::Virtual)
    {
        for (const PipelineRecords::StageFunctions& stage : records.stages) {
            m_clock.emplace_back(stage.devices.size(), 0.0);
            for (const auto& [name, function] : stage.byName) {
                if (isTypical)
                    m_typical.emplace(function, function->typicalRecords());
            }
        }
    }

    Timeline run()
    {
        std::vector<std::vector<Task>> tasks(m_records.stages.size());
        for (std::size_t stage = 0; stage < tasks.size(); ++stage) {
            for (const TaskRecord& record : recordsOf(stage, 0))
                tasks[stage].push_back(record.task);
        }
        playTasks(m_records.shape, tasks, *this);
        return m_writer.finished();
    }

    void receive(const Task& task, std::size_t, const std::vector<double>& arrivals) override
    {
        for (std::size_t position = 0; position < arrivals.size(); ++position) {
            double& clock = m_clock[task.stage][position];
            m_writer.add({devicesOf(task)[position], Row::Transfers, clock, arrivals[position], 0.0, receivedText(task),
                             SliceCategory::Wait, 0},
                task);
            clock = std::max(clock, arrivals[position]);
        }
    }

    const std::vector<double>& carryOut(const Task& task, std::size_t number) override
    {
        if (m_taskSeconds)
            playInjected(task);
        else
            playMeasured(task, number);
        return m_clock[task.stage];
    }

    void send(const Task& task, std::size_t number) override
    {
        for (std::size_t position = 0; position < devicesOf(task).size(); ++position) {
            const double now = m_clock[task.stage][position];
            m_writer.add({devicesOf(task)[position], Row::Transfers, now, now, 0.0, sentText(task), SliceCategory::Transfer,
                             recordsOf(task.stage, position)[number].bytes},
                task);
        }
    }

private:
    const std::vector<std::int64_t>& devicesOf(const Task& task) const { return m_records.stages[task.stage].devices; }

    const std::vector<TaskRecord>& recordsOf(std::size_t stage, std::size_t position) const
    {
        return *m_records.tasks[static_cast<std::size_t>(m_records.stages[stage].devices[position])];
    }

    void playInjected(const Task& task)
    {
        const double seconds = m_taskSeconds(task);
        for (std::size_t position = 0; position < devicesOf(task).size(); ++position) {
            double& clock = m_clock[task.stage][position];
            m_writer.add({devicesOf(task)[position], Row::Compute, clock, clock + seconds, seconds, task.function,
                             SliceCategory::Compute, 0},
                task);
            clock += seconds;
        }
    }

    /// As `replayedTimeline` of one function: each instruction takes its CPU time, groups of collectives wait for their last member.
    void playMeasured(const Task& task, std::size_t number)
    {
        const auto& devices = devicesOf(task);
        std::vector<double>& clocks = m_clock[task.stage];
        const LoadedFunction& function = *m_records.stages[task.stage].byName.at(task.function);
        const TaskRecord& first = recordsOf(task.stage, 0)[number];
        const auto typical = m_typical.find(&function);
        for (std::size_t i = 0; i < first.last - first.first; ++i) {
            const auto recorded = [&](std::size_t position) -> const Recorded& {
                const std::vector<Recorded>& records
                    = typical != m_typical.end() ? typical->second[position] : m_records.instructionsOf(function, position);
                return records[recordsOf(task.stage, position)[number].first + i];
            };
            const RecordedInstruction& what = function.recordedInstructions()[recorded(0).instruction];
            const std::size_t groups = what.collective == nullptr ? devices.size() : what.collective->groupCount();
            const auto groupOf = [&](std::size_t position) {
                return what.collective == nullptr ? position : what.collective->groupOf(static_cast<std::int64_t>(position));
            };
            std::vector<double> start(groups, 0.0);
            std::vector<double> duration(groups, 0.0);
            for (std::size_t position = 0; position < devices.size(); ++position) {
                const std::size_t group = groupOf(position);
                start[group] = std::max(start[group], clocks[position]);
                duration[group] = std::max(duration[group], recorded(position).times.cpuSeconds);
            }
            const Row row = what.collective == nullptr ? Row::Compute : Row::Collectives;
            for (std::size_t position = 0; position < devices.size(); ++position) {
                const std::size_t group = groupOf(position);
                double& clock = clocks[position];
                m_writer.add({devices[position], row, clock, start[group], 0.0, what.name, SliceCategory::Wait, 0}, task);
                clock = start[group] + duration[group];
                m_writer.add({devices[position], row, start[group], clock, recorded(position).times.cpuSeconds, what.name,
                                 what.category, what.bytes},
                    task);
            }
        }
    }

    const PipelineRecords& m_records;
    const LoadedPipeline::TaskSeconds& m_taskSeconds;
    PipelineWriter m_writer;
    std::vector<std::vector<double>> m_clock; ///< by stage, by position
    std::map<const LoadedFunction*, std::vector<std::vector<Recorded>>> m_typical; ///< by position; empty: what was recorded
};

/// A task's record on its way to another process, which knows the task.
struct TaskTimes {
    std::array<double, 4> times{};
    std::int64_t bytes = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};

TaskTimes timesOf(const TaskRecord& record, double zero)
{
    return {{record.began - zero, record.received - zero, record.computed - zero, record.sent - zero}, record.bytes, record.first,
        record.last};
}

TaskRecord recordOf(const Task& task, const TaskTimes& times, double zero)
{
    return {task, times.times[0] + zero, times.times[1] + zero, times.times[2] + zero, times.times[3] + zero, times.bytes,
        times.first, times.last};
}

/// What one device of a stage has recorded.
struct DeviceRecords {
    std::size_t stage = 0;
    std::size_t position = 0;
    std::int64_t device = 0;
    bool isHere = false;
    int rank = 0;
    std::vector<std::int64_t> sizes; ///< of `tasks`, then of each of `instructions`
    std::vector<TaskTimes> tasks;
    std::vector<std::vector<Recorded>> instructions; ///< by function, in the order of their names
};

template <typename T>
std::span<std::byte> bytesOf(std::vector<T>& values)
{
    static_assert(std::is_trivially_copyable_v<T>);
    return std::as_writable_bytes(std::span(values));
}

std::vector<DeviceRecords> recordsToShare(const VirtualDevices& devices, const PipelineRecords& records)
{
    std::vector<DeviceRecords> all;
    for (std::size_t s = 0; s < records.stages.size(); ++s) {
        const PipelineRecords::StageFunctions& stage = records.stages[s];
        for (std::size_t position = 0; position < stage.devices.size(); ++position) {
            const std::int64_t device = stage.devices[position];
            DeviceRecords& own = all.emplace_back();
            own = {s, position, device, devices.isHere(device), devices.rankOf(device), {}, {}, {}};
            for (const TaskRecord& task : *records.tasks[static_cast<std::size_t>(device)])
                own.tasks.push_back(timesOf(task, records.startSeconds));
            own.sizes.push_back(static_cast<std::int64_t>(own.tasks.size()));
            for (const auto& [name, function] : stage.byName) {
                own.instructions.push_back(function->records(static_cast<std::int64_t>(position)));
                shiftTimes(own.instructions.back(), -records.startSeconds);
                own.sizes.push_back(static_cast<std::int64_t>(own.instructions.back().size()));
            }
        }
    }
    return all;
}

bool isRecorded(const PipelineRecords& records)
{
    return std::any_of(records.tasks.begin(), records.tasks.end(), [](const auto* tasks) { return !tasks->empty(); });
}

} // namespace

bool gatherRecords(const VirtualDevices& devices, PipelineRecords& records)
{
    Ranks& ranks = *devices.ranks();
    std::vector<DeviceRecords> all = recordsToShare(devices, records);
    std::vector<Ranks::Shared> shared;
    for (DeviceRecords& one : all)
        shared.push_back({one.rank, bytesOf(one.sizes)});
    if (!ranks.share(shared, Ranks::Readers::First))
        return false;
    shared.clear();
    for (DeviceRecords& one : all) {
        if (ranks.isFirst())
            one.tasks.resize(static_cast<std::size_t>(one.sizes.front()));
        shared.push_back({one.rank, bytesOf(one.tasks)});
        for (std::size_t f = 0; f < one.instructions.size(); ++f) {
            if (ranks.isFirst())
                one.instructions[f].resize(static_cast<std::size_t>(one.sizes[f + 1]));
            shared.push_back({one.rank, bytesOf(one.instructions[f])});
        }
    }
    if (!ranks.share(shared, Ranks::Readers::First) || !ranks.isFirst())
        return false;
    records.tasksElsewhere.resize(records.tasks.size());
    for (DeviceRecords& one : all) {
        const PipelineRecords::StageFunctions& stage = records.stages[one.stage];
        const auto number = static_cast<std::size_t>(one.device);
        for (std::size_t task = 0; !one.isHere && task < one.tasks.size(); ++task)
            records.tasksElsewhere[number].push_back(recordOf(stage.tasks->at(task), one.tasks[task], records.startSeconds));
        if (!one.isHere)
            records.tasks[number] = &records.tasksElsewhere[number];
        std::size_t f = 0;
        for (const auto& [name, function] : stage.byName) {
            auto& instructions = records.instructions[function];
            instructions.resize(stage.devices.size());
            shiftTimes(one.instructions[f], records.startSeconds);
            instructions[one.position] = std::move(one.instructions[f++]);
        }
    }
    return true;
}

Timeline measuredTimeline(const PipelineRecords& records)
{
    if (!isRecorded(records))
        return Timeline(Clock::Wall);
    PipelineWriter writer(records, Clock::Wall);
    const double zero = records.startSeconds;
    for (const PipelineRecords::StageFunctions& stage : records.stages) {
        for (std::size_t position = 0; position < stage.devices.size(); ++position) {
            const std::int64_t device = stage.devices[position];
            for (const TaskRecord& record : *records.tasks[static_cast<std::size_t>(device)]) {
                const Task& task = record.task;
                if (task.passesOn())
                    writer.add({device, Row::Transfers, record.began - zero, record.received - zero, 0.0, receivedText(task),
                                   SliceCategory::Wait, 0},
                        task);
                addMeasured(
                    writer, records, *stage.byName.at(task.function), device, static_cast<std::int64_t>(position), record);
                if (record.bytes > 0)
                    writer.add({device, Row::Transfers, record.computed - zero, record.sent - zero, record.sent - record.computed,
                                   sentText(task), SliceCategory::Transfer, record.bytes},
                        task);
            }
        }
    }
    return writer.finished();
}

Timeline replayedTimeline(const PipelineRecords& records, const LoadedPipeline::TaskSeconds& taskSeconds)
{
    return isRecorded(records) ? Replay(records, taskSeconds).run() : Timeline(Clock::Virtual);
}

Timeline typicalTimelineOf(const PipelineRecords& records)
{
    return isRecorded(records) ? Replay(records, {}, true).run() : Timeline(Clock::Virtual);
}

} // namespace meshwright
