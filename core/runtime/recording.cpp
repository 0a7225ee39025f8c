// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/recording.h"

#include <algorithm>
#include <map>

namespace meshwright {

namespace {

struct Rows {
    std::uint32_t compute = 0;
    std::uint32_t collectives = 0;
};

std::vector<Rows> addRows(Timeline& timeline, std::size_t devices)
{
    std::vector<Rows> rows;
    for (std::size_t device = 0; device < devices; ++device) {
        const auto id = static_cast<std::int64_t>(device);
        const std::uint32_t compute = timeline.addRow(id, "compute");
        rows.push_back({compute, timeline.addRow(id, "collectives")});
    }
    return rows;
}

struct Names {
    std::uint32_t name = 0;
    std::uint32_t detail = 0;
};

std::vector<Names> addNames(Timeline& timeline, const std::vector<RecordedInstruction>& instructions)
{
    std::vector<Names> names;
    for (const RecordedInstruction& instruction : instructions)
        names.push_back({timeline.intern(instruction.name), timeline.intern(instruction.detail)});
    return names;
}

class Writer {
public:
    Writer(Timeline& timeline, const std::vector<RecordedInstruction>& instructions)
        : m_timeline(timeline)
        , m_instructions(instructions)
        , m_names(addNames(timeline, instructions))
    {
    }

    void add(std::uint32_t row, std::uint32_t instruction, double start, double duration, double cpu, SliceCategory category,
        std::int64_t bytes)
    {
        Slice slice;
        slice.startSeconds = start;
        slice.durationSeconds = duration;
        slice.cpuSeconds = cpu;
        slice.bytes = bytes;
        slice.row = row;
        slice.name = m_names[instruction].name;
        slice.detail = m_names[instruction].detail;
        slice.category = category;
        m_timeline.add(slice);
    }

    /// Waiting, if there was any.
    void addWait(std::uint32_t row, std::uint32_t instruction, double start, double end, SliceCategory category)
    {
        if (end > start)
            add(row, instruction, start, end - start, 0.0, category, 0);
    }

    void addWork(std::uint32_t row, std::uint32_t instruction, double start, double end, double cpu)
    {
        const RecordedInstruction& what = m_instructions[instruction];
        add(row, instruction, start, end - start, cpu, what.category, what.bytes);
    }

    void addMemory(std::size_t device, std::uint32_t instruction, double seconds)
    {
        m_timeline.addMemory({seconds, static_cast<std::int64_t>(device), m_instructions[instruction].bytesInUse});
    }

private:
    Timeline& m_timeline;
    const std::vector<RecordedInstruction>& m_instructions;
    std::vector<Names> m_names;
};

} // namespace

void shiftTimes(std::vector<Recorded>& records, double seconds)
{
    for (Recorded& record : records) {
        record.askedCore += seconds;
        for (double* time : {&record.times.arrived, &record.times.started, &record.times.moved, &record.times.finished})
            *time += seconds;
    }
}

Timeline measuredTimeline(
    const std::vector<std::vector<Recorded>>& devices, const std::vector<RecordedInstruction>& instructions, double startSeconds)
{
    Timeline timeline(Clock::Wall);
    const std::vector<Rows> rows = addRows(timeline, devices.size());
    Writer writer(timeline, instructions);
    for (std::size_t device = 0; device < devices.size(); ++device) {
        for (const Recorded& recorded : devices[device]) {
            const RecordedInstruction& what = instructions[recorded.instruction];
            const bool meets = what.collective != nullptr && !what.isWait;
            const double began = meets ? recorded.times.arrived : recorded.times.started;
            writer.addMemory(device, recorded.instruction, began - startSeconds);
            if (what.isWait)
                continue; // the collective's own times say how long it took
            const std::uint32_t row = meets ? rows[device].collectives : rows[device].compute;
            const CollectiveTimes& times = recorded.times;
            if (meets)
                writer.addWait(
                    row, recorded.instruction, times.arrived - startSeconds, times.started - startSeconds, SliceCategory::Wait);
            else
                writer.addWait(row, recorded.instruction, recorded.askedCore - startSeconds, times.started - startSeconds,
                    SliceCategory::WaitForCore);
            const double worked = meets ? times.moved : times.finished;
            writer.addWork(row, recorded.instruction, times.started - startSeconds, worked - startSeconds, times.cpuSeconds);
            if (meets)
                writer.addWait(
                    row, recorded.instruction, times.moved - startSeconds, times.finished - startSeconds, SliceCategory::Wait);
        }
    }
    timeline.sort();
    return timeline;
}

Timeline replayedTimeline(const std::vector<std::vector<Recorded>>& devices, const std::vector<RecordedInstruction>& instructions)
{
    Timeline timeline(Clock::Virtual);
    const std::vector<Rows> rows = addRows(timeline, devices.size());
    Writer writer(timeline, instructions);
    std::vector<double> clock(devices.size(), 0.0);
    std::vector<double> streamFree(devices.size(), 0.0); // when the stream of collectives is
    std::vector<std::map<const Collective*, double>> ends(devices.size()); // of those under way
    const std::size_t count = devices.empty() ? 0 : devices.front().size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t instruction = devices.front()[i].instruction;
        const Collective* collective = instructions[instruction].collective;
        for (std::size_t device = 0; device < devices.size(); ++device)
            writer.addMemory(device, instruction, clock[device]);
        if (collective == nullptr) {
            for (std::size_t device = 0; device < devices.size(); ++device) {
                const double cpu = devices[device][i].times.cpuSeconds;
                writer.addWork(rows[device].compute, instruction, clock[device], clock[device] + cpu, cpu);
                clock[device] += cpu;
            }
            continue;
        }
        if (instructions[instruction].isWait) {
            for (std::size_t device = 0; device < devices.size(); ++device) {
                const double end = ends[device][collective];
                writer.addWait(rows[device].compute, instruction, clock[device], end, SliceCategory::Wait);
                clock[device] = std::max(clock[device], end);
            }
            continue;
        }
        std::vector<double> start(collective->groupCount(), 0.0);
        std::vector<double> duration(collective->groupCount(), 0.0);
        for (std::size_t device = 0; device < devices.size(); ++device) {
            const std::size_t group = collective->groupOf(static_cast<std::int64_t>(device));
            start[group] = std::max({start[group], clock[device], streamFree[device]});
            duration[group] = std::max(duration[group], devices[device][i].times.cpuSeconds);
        }
        for (std::size_t device = 0; device < devices.size(); ++device) {
            const std::size_t group = collective->groupOf(static_cast<std::int64_t>(device));
            const std::uint32_t row = rows[device].collectives;
            const double end = start[group] + duration[group];
            writer.addWait(row, instruction, std::max(clock[device], streamFree[device]), start[group], SliceCategory::Wait);
            writer.addWork(row, instruction, start[group], end, devices[device][i].times.cpuSeconds);
            streamFree[device] = end;
            if (instructions[instruction].isAsynchronous)
                ends[device][collective] = end;
            else
                clock[device] = end;
        }
    }
    timeline.sort();
    return timeline;
}

} // namespace meshwright
