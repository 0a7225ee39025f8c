// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/executor.h"

#include "core/devices/clocks.h"
#include "core/program/transform.h"
#include "core/runtime/device_arrays.h"
#include "core/runtime/device_run.h"
#include "core/runtime/loaded_instructions.h"
#include "core/runtime/recording.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace meshwright {

class LoadedFunction::Implementation {
public:
    Implementation(const ScheduledFunction& scheduled, DevicePositions positions, VirtualDevices& devices, LoadPlace place)
        : m_scheduled(scheduled)
        , m_positions(std::move(positions))
        , m_virtual(devices)
        , m_meeting(
              place.meeting != nullptr ? std::move(place.meeting) : std::make_shared<RendezvousTable>(devices, place.devices))
        , m_localOf(static_cast<std::size_t>(devices.count()), -1)
        , m_arrays(m_scheduled, m_positions, ranksOf(*m_meeting, m_positions.count()))
        , m_logs(static_cast<std::size_t>(m_positions.count()))
    {
        for (std::int64_t device = 0; device < m_positions.count(); ++device)
            m_localOf[static_cast<std::size_t>(m_meeting->numberOf(device))] = device;
        while (m_firstHere + 1 < m_logs.size() && !m_meeting->isHere(static_cast<std::int64_t>(m_firstHere)))
            ++m_firstHere;
    }

    const ScheduledFunction& scheduled() const { return m_scheduled; }
    DeviceArrays& arrays() { return m_arrays; }
    std::int64_t count() const { return m_positions.count(); }

    Result<Done> prepare()
    {
        const Function& function = m_scheduled.device.function;
        Problems problems = checkRunnable(function);
        const auto needsLayout = [&](ValueId value) {
            if (!function[value].sharding)
                problems.push_back(
                    {"MW1512", fmt::format("{} of function \"{}\" has no layout", valueText(function, value), function.name)});
        };
        std::for_each(function.arguments().begin(), function.arguments().end(), needsLayout);
        std::for_each(function.results().begin(), function.results().end(), needsLayout);
        if (!problems.empty())
            return problems;
        auto loaded = loadInstructions(m_scheduled, m_positions, *m_meeting);
        if (!loaded)
            return loaded.error();
        m_instructions = std::move(*loaded);
        for (DeviceLog& log : m_logs)
            log.counts.resize(m_instructions.counterOps.size());
        m_counted.resize(m_instructions.counterOps.size());
        return Done{};
    }

    Result<Done> run(const RunOptions& options)
    {
        begin(options);
        m_site.began = options.record ? m_recordStart : 0.0;
        Result<Done> done = m_virtual.run([this](std::int64_t device) { return runOn(device); }, options.stop);
        end(done.has_value());
        return done;
    }

    void begin(const RunOptions& options)
    {
        m_site.options = options;
        m_site.began = 0.0;
        if (!options.record)
            return;
        for (DeviceLog& log : m_logs) {
            log.records.clear();
            log.records.reserve(m_lastRecords);
        }
        m_recordStart = wallSeconds();
    }

    Result<Done> runOn(std::int64_t virtualDevice)
    {
        const std::int64_t device = m_localOf[static_cast<std::size_t>(virtualDevice)];
        return device < 0 ? Result<Done>(Done{}) : runOnDevice(m_site, device, m_logs[static_cast<std::size_t>(device)]);
    }

    void end(bool complete)
    {
        if (!complete) {
            m_logs[m_firstHere].counts = m_counted;
            return;
        }
        m_counted = m_logs[m_firstHere].counts;
        if (!m_site.options.record)
            return;
        m_completeStart = m_recordStart;
        m_lastRecords = std::max(m_lastRecords, m_logs[m_firstHere].records.size());
        for (DeviceLog& log : m_logs)
            std::swap(log.records, log.completeRecords);
        if (m_site.options.keep)
            keepSeconds();
    }

    std::size_t recordCount(std::int64_t device) const { return m_logs[static_cast<std::size_t>(device)].records.size(); }
    const std::vector<Recorded>& records(std::int64_t device) const
    {
        return m_logs[static_cast<std::size_t>(device)].completeRecords;
    }
    const std::vector<RecordedInstruction>& recordedInstructions() const { return m_instructions.descriptions; }

    std::vector<CountedCalls> countedCalls() const
    {
        std::vector<CountedCalls> counted;
        for (std::size_t i = 0; i < m_counted.size(); ++i)
            counted.push_back({m_instructions.counterOps[i], m_counted[i].calls, m_counted[i].bytes});
        return counted;
    }

    Timeline measured() const { return measuredTimeline(allRecords(), m_instructions.descriptions, m_completeStart); }
    Timeline replayed() const { return replayedTimeline(allRecords(), m_instructions.descriptions); }

    Timeline typical() const
    {
        if (m_kept.empty())
            return Timeline(Clock::Virtual);
        if (m_virtual.ranks() != nullptr) // of other processes' devices only the last run is known
            return replayed();
        return replayedTimeline(typicalRecords(), m_instructions.descriptions);
    }

    /// What disturbs a run only makes it longer: a quarter of the runs were quicker than what is said.
    std::vector<std::vector<Recorded>> typicalRecords() const
    {
        constexpr std::size_t kQuicker = 4;
        std::vector<std::vector<Recorded>> records;
        std::vector<float> seconds;
        for (std::size_t device = 0; device < m_logs.size(); ++device) {
            records.push_back(m_logs[device].completeRecords);
            for (std::size_t i = 0; i < records[device].size(); ++i) {
                seconds.clear();
                for (const KeptSeconds& run : m_kept) {
                    if (run[device].size() == records[device].size())
                        seconds.push_back(run[device][i]);
                }
                if (seconds.empty())
                    continue;
                const auto chosen = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / kQuicker);
                std::ranges::nth_element(seconds, chosen);
                records[device][i].times.cpuSeconds = static_cast<double>(*chosen);
            }
        }
        return records;
    }

private:
    static constexpr std::size_t kMostKept = std::size_t{1} << 23; ///< times: 32 MiB
    using KeptSeconds = std::vector<std::vector<float>>; ///< of one run, by device and instruction: CPU seconds

    void keepSeconds()
    {
        const std::size_t times = m_logs.size() * std::max<std::size_t>(1, m_logs[m_firstHere].completeRecords.size());
        while (!m_kept.empty() && m_kept.size() >= std::min(kTypicalRuns, kMostKept / times + 1))
            m_kept.erase(m_kept.begin());
        KeptSeconds& seconds = m_kept.emplace_back();
        for (const DeviceLog& log : m_logs) {
            seconds.emplace_back();
            for (const Recorded& recorded : log.completeRecords)
                seconds.back().push_back(static_cast<float>(recorded.times.cpuSeconds));
        }
    }

    static DeviceRanks ranksOf(const RendezvousTable& meeting, std::int64_t devices)
    {
        DeviceRanks places{meeting.devices().ranks()};
        for (std::int64_t device = 0; places.ranks != nullptr && device < devices; ++device)
            places.rankOf.push_back(meeting.rankOf(device));
        return places;
    }

    /// Of a job of several processes the first one gets all devices' records, the others none.
    std::vector<std::vector<Recorded>> allRecords() const
    {
        std::vector<std::vector<Recorded>> records;
        for (const DeviceLog& log : m_logs)
            records.push_back(log.completeRecords);
        Ranks* ranks = m_virtual.ranks();
        return ranks == nullptr || gatherRecords(*ranks, records) ? records : std::vector<std::vector<Recorded>>();
    }

    /// Clocks of processes begin where they will: each run begins at 0 on the way. False but on the first rank.
    bool gatherRecords(Ranks& ranks, std::vector<std::vector<Recorded>>& records) const
    {
        static_assert(std::is_trivially_copyable_v<Recorded>);
        std::vector<Ranks::Outgoing> outgoing;
        std::vector<Ranks::Incoming> incoming;
        for (std::size_t device = 0; device < records.size(); ++device) {
            const auto number = static_cast<std::int64_t>(device);
            if (!ranks.isFirst() && m_meeting->isHere(number)) {
                shiftTimes(records[device], -m_completeStart);
                outgoing.push_back({0, std::as_bytes(std::span(records[device]))});
            } else if (ranks.isFirst() && !m_meeting->isHere(number)) {
                records[device].resize(records[m_firstHere].size()); // all devices do the same
                incoming.push_back({m_meeting->rankOf(number), std::as_writable_bytes(std::span(records[device]))});
            }
        }
        if (!ranks.exchange(Ranks::kHostTag, outgoing, incoming) || !ranks.isFirst())
            return false;
        for (std::size_t device = 0; device < records.size(); ++device) {
            if (!m_meeting->isHere(static_cast<std::int64_t>(device)))
                shiftTimes(records[device], m_completeStart);
        }
        return true;
    }

    ScheduledFunction m_scheduled;
    DevicePositions m_positions;
    VirtualDevices& m_virtual;
    std::shared_ptr<RendezvousTable> m_meeting;
    std::vector<std::int64_t> m_localOf; ///< by virtual device; -1: has no part in the function
    DeviceArrays m_arrays;
    LoadedInstructions m_instructions;
    RunSite m_site{m_scheduled, m_instructions, m_arrays, *m_meeting}; ///< with the options of the run that is under way
    std::vector<DeviceLog> m_logs; ///< by device
    std::size_t m_firstHere = 0; ///< device
    std::vector<Count> m_counted; ///< by counter, on the first device that is here, in complete runs
    double m_recordStart = 0.0; ///< of the run that is being recorded
    double m_completeStart = 0.0; ///< of the last complete one
    std::size_t m_lastRecords = 256;
    std::vector<KeptSeconds> m_kept; ///< the last runs that were to be kept, oldest first
};

LoadedFunction::LoadedFunction(std::unique_ptr<Implementation> implementation)
    : m_implementation(std::move(implementation))
{
}

LoadedFunction::~LoadedFunction() = default;

std::int64_t LoadedFunction::highWaterBytes() const
{
    return m_implementation->arrays().highWaterBytes();
}

Result<std::unique_ptr<LoadedFunction>> LoadedFunction::load(
    const ScheduledFunction& scheduled, std::vector<NamedMesh> meshes, VirtualDevices& devices, LoadPlace place)
{
    auto positions = DevicePositions::create(std::move(meshes), devices.count());
    if (!positions)
        return positions.error();
    const std::int64_t count = positions->count();
    try {
        auto implementation = std::make_unique<Implementation>(scheduled, *std::move(positions), devices, std::move(place));
        if (Result<Done> prepared = implementation->prepare(); !prepared)
            return prepared.error();
        return std::unique_ptr<LoadedFunction>(new LoadedFunction(std::move(implementation)));
    } catch (const std::bad_alloc&) {
        return Problem{"MW1521",
            fmt::format("not enough memory for \"{}\" on {} devices, {} each", scheduled.device.function.name, count,
                formatBytes(scheduled.buffers.arenaBytes)),
            "use a smaller batch or model, or shard what is replicated"};
    }
}

const ScheduledFunction& LoadedFunction::scheduled() const
{
    return m_implementation->scheduled();
}

std::int64_t LoadedFunction::deviceCount() const
{
    return m_implementation->count();
}

Result<Done> LoadedFunction::writeArgument(std::size_t argument, const HostArray& whole)
{
    return m_implementation->arrays().write(argument, whole);
}

HostArray LoadedFunction::readArgument(std::size_t argument) const
{
    return m_implementation->arrays().read(function().arguments()[argument]);
}

HostArray LoadedFunction::readResult(std::size_t result) const
{
    return m_implementation->arrays().read(function().results()[result]);
}

std::map<IndexBox, std::vector<std::int64_t>> LoadedFunction::piecesOfArgument(std::size_t argument) const
{
    return m_implementation->arrays().holdersOf(function().arguments()[argument]);
}

HostArray LoadedFunction::readArgumentPiece(std::size_t argument, std::int64_t device, Ranks::Readers readers) const
{
    return m_implementation->arrays().readPiece(function().arguments()[argument], device, readers);
}

void LoadedFunction::writeArgumentPiece(std::size_t argument, std::int64_t device, const HostArray& piece)
{
    m_implementation->arrays().writePiece(function().arguments()[argument], device, piece);
}

void LoadedFunction::placeArgument(std::size_t argument, std::int64_t device, std::byte* at)
{
    m_implementation->arrays().place(function().arguments()[argument], device, at);
}

void LoadedFunction::placeResult(std::size_t result, std::int64_t device, std::byte* at)
{
    m_implementation->arrays().place(function().results()[result], device, at);
}

std::size_t LoadedFunction::recordCount(std::int64_t device) const
{
    return m_implementation->recordCount(device);
}

const std::vector<Recorded>& LoadedFunction::records(std::int64_t device) const
{
    return m_implementation->records(device);
}

const std::vector<RecordedInstruction>& LoadedFunction::recordedInstructions() const
{
    return m_implementation->recordedInstructions();
}

bool LoadedFunction::replicasAgree(std::size_t result) const
{
    return m_implementation->arrays().replicasAgree(function().results()[result]);
}

Result<std::int64_t> LoadedFunction::copyFromArgument(
    std::size_t argument, const LoadedFunction& from, std::size_t sourceArgument, const std::stop_token& stop)
{
    return m_implementation->arrays().copyFrom(
        argument, from.m_implementation->arrays(), from.function().arguments()[sourceArgument], stop);
}

Result<std::int64_t> LoadedFunction::copyFromResult(
    std::size_t argument, const LoadedFunction& from, std::size_t sourceResult, const std::stop_token& stop)
{
    return m_implementation->arrays().copyFrom(
        argument, from.m_implementation->arrays(), from.function().results()[sourceResult], stop);
}

Result<Done> LoadedFunction::run(const RunOptions& options)
{
    return m_implementation->run(options);
}

void LoadedFunction::begin(const RunOptions& options)
{
    m_implementation->begin(options);
}

Result<Done> LoadedFunction::runOn(std::int64_t virtualDevice)
{
    return m_implementation->runOn(virtualDevice);
}

void LoadedFunction::end(bool complete)
{
    m_implementation->end(complete);
}

std::vector<CountedCalls> LoadedFunction::countedCalls() const
{
    return m_implementation->countedCalls();
}

Timeline LoadedFunction::measured() const
{
    return m_implementation->measured();
}

Timeline LoadedFunction::virtualTimeline() const
{
    return m_implementation->replayed();
}

std::vector<std::vector<Recorded>> LoadedFunction::typicalRecords() const
{
    return m_implementation->typicalRecords();
}

Timeline LoadedFunction::typicalTimeline() const
{
    return m_implementation->typical();
}

} // namespace meshwright
