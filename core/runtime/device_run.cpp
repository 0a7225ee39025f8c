// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/device_run.h"

#include "core/devices/clocks.h"
#include "core/program/transform.h"
#include "core/runtime/numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace meshwright {

namespace {

class DeviceRun {
public:
    DeviceRun(const RunSite& site, std::int64_t device, DeviceLog& log)
        : m_site(site)
        , m_devices(site.meeting.devices())
        , m_id(device)
        , m_memory(site.arrays.memory(device))
        , m_log(log)
        , m_stop(m_devices.stopFlag())
        , m_announced(site.meeting.numberOf(device))
        , m_readySince(site.began)
    {
        const FaultOptions* faults = site.options.faults;
        if (faults == nullptr || !faults->any())
            return;
        m_faults.emplace(*faults, m_announced, site.options.step, m_stop);
        if (faults->checkNumerics)
            m_numerics.emplace(
                site.scheduled.device.function, [&site, device](ValueId value) { return site.arrays.validPart(value, device); });
    }
    ~DeviceRun() { release(); }
    DeviceRun(const DeviceRun&) = delete;
    DeviceRun& operator=(const DeviceRun&) = delete;

    Result<Done> run()
    {
        if (m_numerics) {
            if (auto found = m_numerics->checkArguments(m_memory.addresses))
                return notFinite(*found);
        }
        Result<Done> done = runList(m_site.instructions.list);
        if (done)
            finalCopies();
        return done;
    }

    /// "in step 10, at dot_general act.layers.1", as far as it is known. Steps count from 1, as in the progress.
    std::string place() const
    {
        const std::int64_t step = m_site.options.step;
        return fmt::format("{}in {}", step < 0 ? "" : fmt::format("in step {}, ", step + 1),
            m_at == nullptr ? m_site.scheduled.device.function.name : *m_at);
    }

private:
    /// Before an instruction that is not a loop.
    void enter(const Ready& ready, bool isFirstHalf)
    {
        m_at = &m_site.instructions.descriptions[ready.description].name;
        m_devices.announce(m_announced, *m_at);
        if (m_faults && !isFirstHalf && !std::exchange(m_struck, true)) {
            release(); // whatever happens here keeps nobody from a core
            m_faults->strike();
            if (m_faults->stalls())
                m_devices.standStill();
        }
        if (m_numerics)
            m_numerics->before(*ready.instruction, m_memory.addresses);
    }

    /// After it.
    Result<Done> leave(const Ready& ready)
    {
        if (m_faults && m_faults->wantsNan()) {
            for (const ValueId value : valuesMadeBy(m_site.scheduled.device.function, *ready.instruction)) {
                std::byte* at = m_memory.addresses[value.at()];
                if (at != nullptr && m_faults->wantsNan() && writeNan(at, m_site.scheduled.device.function[value].type))
                    m_faults->hasNan();
            }
        }
        if (m_numerics) {
            if (auto found = m_numerics->after(*ready.instruction, m_memory.addresses))
                return notFinite(*found);
        }
        return Done{};
    }

    Problem notFinite(const std::string& what) const
    {
        return {"MW1523", fmt::format("device {} {}: {}", m_announced, place(), what)};
    }

    void acquire()
    {
        if (m_scratch == nullptr)
            m_scratch = &m_devices.permits().acquire();
    }

    void release()
    {
        if (m_scratch != nullptr)
            m_devices.permits().release(*m_scratch);
        m_scratch = nullptr;
    }

    Result<Done> runList(const std::vector<Ready>& list)
    {
        const bool isBody = &list == &m_site.instructions.list;
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (m_stop.isSet())
                return VirtualDevices::interrupted();
            touch(list[i]);
            const Kernel* merged = m_numerics ? nullptr : list[i].withNext.get(); // whoever looks at numbers looks at all
            if (merged != nullptr)
                touch(list[++i]);
            const Ready& ready = list[i];
            if (ready.kind == InstructionKind::CollectiveDone) {
                if (ready.waitsFor == nullptr) // nothing to do
                    continue;
                if (m_underWay && m_underWay->collective == ready.waitsFor) {
                    if (Result<Done> done = finish(); !done)
                        return done;
                }
                if (m_site.options.record)
                    m_log.records.push_back({ready.description, 0.0, {.started = wallSeconds()}});
                continue;
            }
            if (ready.loop || ready.branches) {
                if (Result<Done> done = runBlocks(ready); !done)
                    return done;
                continue;
            }
            enter(ready, !isBody || i < list.size() / 2);
            if (ready.collective != nullptr) {
                if (Result<Done> done = runCollective(ready); !done)
                    return done;
            } else {
                compute(ready, merged);
            }
            if (Result<Done> done = leave(ready); !done)
                return done;
        }
        return Done{};
    }

    void touch(const Ready& ready)
    {
        for (const auto& [value, bytes] : ready.uses)
            m_memory.touch(m_memory.addresses[value.at()], bytes);
    }

    /// By the instruction's own kernel where there is no `merged` one.
    void compute(const Ready& ready, const Kernel* merged)
    {
        const bool records = m_site.options.record;
        Recorded recorded;
        double cpu = 0.0;
        if (records)
            recorded.askedCore = m_readySince > 0.0 ? m_readySince : wallSeconds();
        m_readySince = 0.0;
        const bool hadCore = m_scratch != nullptr;
        acquire();
        if (records) {
            recorded.instruction = ready.description;
            recorded.times.started = hadCore ? recorded.askedCore : wallSeconds();
            cpu = threadCpuSeconds();
        }
        const std::size_t own = ready.kernels.size() == 1 ? 0 : static_cast<std::size_t>(m_id);
        const Kernel& kernel = merged != nullptr ? *merged : *ready.kernels[own];
        const double lagFrom = m_faults && m_faults->lags() ? threadCpuSeconds() : 0.0;
        kernel.run(m_memory.addresses, *m_scratch, m_stop);
        if (m_faults && m_faults->lags())
            m_faults->lag(threadCpuSeconds() - lagFrom);
        if (records) {
            recorded.times.cpuSeconds = threadCpuSeconds() - cpu;
            recorded.times.finished = wallSeconds();
            m_log.records.push_back(recorded);
        }
    }

    Result<Done> runCollective(const Ready& ready)
    {
        const Collective& collective = *ready.collective;
        const bool meets = ready.counter != kNoCounter;
        if (meets) {
            if (Result<Done> done = finish(); !done)
                return done;
            Count& count = m_log.counts[ready.counter];
            ++count.calls;
            count.bytes += collective.payloadBytes();
        }
        m_readySince = 0.0;
        const bool records = m_site.options.record;
        const std::size_t record = m_log.records.size();
        if (records) {
            m_log.records.emplace_back();
            m_log.records.back().instruction = ready.description;
        }
        // Faults look at what it makes, at once; who waits for other ranks gives its core to others first.
        if (ready.goesOn && !m_faults && !collective.isAcrossRanks(m_id)) {
            const Result<Collective::Started> started = collective.start(m_id, m_memory.addresses, records);
            if (!started)
                return started.error();
            m_underWay = UnderWay{&collective, *started, record};
            return Done{};
        }
        if (meets)
            release(); // others may compute while we wait
        CollectiveTimes times;
        Result<Done> done = collective.run(m_id, m_memory.addresses, records ? &times : nullptr);
        if (records)
            keepTimes(record, times);
        if (meets)
            m_readySince = times.finished;
        return done;
    }

    /// Waits for the collective under way, if there is one. Like a stream, a device has one at a time.
    Result<Done> finish()
    {
        if (!m_underWay)
            return Done{};
        const UnderWay underWay = *std::exchange(m_underWay, std::nullopt);
        release();
        CollectiveTimes times;
        const bool records = m_site.options.record;
        const double asked = records ? wallSeconds() : 0.0;
        Result<Done> done = underWay.collective->finish(m_id, underWay.started, records ? &times : nullptr);
        if (done && records)
            keepTimes(underWay.record, times);
        m_readySince = std::max(asked, times.finished);
        return done;
    }

    void keepTimes(std::size_t record, const CollectiveTimes& times)
    {
        m_log.records[record].times = times;
        m_log.records[record].askedCore = times.started;
    }

    Result<Done> runBlocks(const Ready& ready)
    {
        if (ready.branches)
            return runBranch(ready);
        return ready.loop->condition.valid() ? runWhile(ready) : runLoop(ready);
    }

    Result<Done> runWhile(const Ready& ready)
    {
        const LoopPlan& loop = *ready.loop;
        std::vector<std::byte*>& at = m_memory.addresses;
        const std::size_t carries = loop.attributes.carries;
        for (std::size_t i = 0; i < loop.operands.size(); ++i) {
            if (i < carries)
                copy(at[loop.results[i].at()], at[loop.operands[i].at()], loop.yieldBytes[i]);
            std::byte* const place = at[(i < carries ? loop.results[i] : loop.operands[i]).at()];
            at[loop.arguments[i].at()] = place;
            at[loop.conditionArguments[i].at()] = place;
        }
        while (true) {
            if (Result<Done> done = runList(ready.blocks.front()); !done)
                return done;
            if (*at[loop.condition.at()] == std::byte{0})
                return Done{};
            if (Result<Done> done = runList(ready.body); !done)
                return done;
            yield(loop, 0);
            if (m_stop.isSet()) // blocks may be empty
                return VirtualDevices::interrupted();
        }
    }

    Result<Done> runBranch(const Ready& ready)
    {
        const BranchPlan& plan = *ready.branches;
        std::vector<std::byte*>& at = m_memory.addresses;
        std::size_t branch = *at[plan.which.at()] == std::byte{0} ? 1 : 0;
        if (!plan.isTruth) {
            std::int32_t which = 0;
            std::memcpy(&which, at[plan.which.at()], sizeof which);
            branch = which < 0 ? ready.blocks.size() : static_cast<std::size_t>(which);
        }
        branch = std::min(branch, ready.blocks.size() - 1);
        for (std::size_t i = 0; i < plan.operands.size(); ++i)
            at[plan.arguments[branch][i].at()] = at[plan.operands[i].at()];
        Result<Done> done = runList(ready.blocks[branch]);
        for (std::size_t i = 0; done && i < plan.results.size(); ++i) {
            if (std::byte* const to = at[plan.results[i].at()]; to != nullptr) // else nobody reads it
                copy(to, at[plan.yields[branch][i].at()], plan.resultBytes[i]);
        }
        return done;
    }

    Result<Done> runLoop(const Ready& ready)
    {
        const LoopPlan& loop = *ready.loop;
        std::vector<std::byte*>& at = m_memory.addresses;
        const std::size_t carries = loop.attributes.carries;
        const std::size_t stacked = loop.attributes.stacked;
        for (std::size_t i = 0; i < carries; ++i) {
            copy(at[loop.results[i].at()], at[loop.operands[i].at()], loop.yieldBytes[i]);
            at[loop.arguments[i].at()] = at[loop.results[i].at()];
        }
        for (std::size_t i = carries + stacked; i < loop.operands.size(); ++i)
            at[loop.arguments[i].at()] = at[loop.operands[i].at()];
        for (std::int64_t round = 0; round < loop.attributes.count; ++round) {
            const std::int64_t slice = loop.attributes.reversed ? loop.attributes.count - 1 - round : round;
            for (std::size_t i = 0; i < stacked; ++i)
                at[loop.arguments[carries + i].at()] = at[loop.operands[carries + i].at()] + slice * loop.sliceBytes[i];
            for (std::size_t i = carries; i < loop.yields.size(); ++i) {
                if (loop.direct[i])
                    at[loop.yields[i].at()] = at[loop.results[i].at()] + slice * loop.yieldBytes[i];
            }
            if (Result<Done> done = runList(ready.body); !done)
                return done;
            yield(loop, slice);
        }
        return Done{};
    }

    /// Slices first, then the carries; a carry that is another argument of the body is saved before any carry is overwritten.
    void yield(const LoopPlan& loop, std::int64_t slice)
    {
        std::vector<std::byte*>& at = m_memory.addresses;
        const std::size_t carries = loop.attributes.carries;
        for (std::size_t i = carries; i < loop.yields.size(); ++i) {
            if (!loop.direct[i])
                copy(at[loop.results[i].at()] + slice * loop.yieldBytes[i], at[loop.yields[i].at()], loop.yieldBytes[i]);
        }
        std::vector<std::pair<std::size_t, AlignedBytes>> saved;
        for (std::size_t i = 0; i < carries; ++i) {
            const auto argument = std::find(loop.arguments.begin(), loop.arguments.end(), loop.yields[i]);
            if (argument == loop.arguments.end() || loop.yields[i] == loop.arguments[i])
                continue;
            saved.emplace_back(i, AlignedBytes(loop.yieldBytes[i]));
            copy(saved.back().second.data(), at[loop.yields[i].at()], loop.yieldBytes[i]);
        }
        for (std::size_t i = 0; i < carries; ++i) {
            if (std::none_of(saved.begin(), saved.end(), [i](const auto& entry) { return entry.first == i; }))
                copy(at[loop.results[i].at()], at[loop.yields[i].at()], loop.yieldBytes[i]);
        }
        for (const auto& [i, bytes] : saved)
            copy(at[loop.results[i].at()], bytes.data(), loop.yieldBytes[i]);
    }

    /// Donated results that were not made in the place of their argument.
    void finalCopies()
    {
        const Function& function = m_site.scheduled.device.function;
        for (const FinalCopy& final : m_site.scheduled.finalCopies)
            copy(m_memory.addresses[final.to.at()], m_memory.addresses[final.from.at()], function[final.to].type.bytes());
    }

    static void copy(std::byte* to, const std::byte* from, std::int64_t bytes)
    {
        if (to != from && bytes > 0)
            std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }

    const RunSite& m_site;
    VirtualDevices& m_devices;
    std::int64_t m_id;
    DeviceMemory& m_memory;
    DeviceLog& m_log;
    const StopFlag& m_stop;
    std::int64_t m_announced; ///< the virtual device's number
    double m_readySince; ///< wall, when what it waited for was there; 0: it has not waited, or that is not known
    const std::string* m_at = nullptr; ///< the name of the instruction that it is at
    std::optional<DeviceFaults> m_faults;
    std::optional<NumericsCheck> m_numerics;
    struct UnderWay {
        const Collective* collective = nullptr;
        Collective::Started started;
        std::size_t record = 0; ///< index into the device's records
    };
    std::optional<UnderWay> m_underWay;
    bool m_struck = false;
    Scratch* m_scratch = nullptr; ///< while it has a permit
};

} // namespace

Result<Done> runOnDevice(const RunSite& site, std::int64_t device, DeviceLog& log)
{
    DeviceRun run(site, device, log);
    const std::int64_t number = site.meeting.numberOf(device);
    try {
        return run.run();
    } catch (const std::bad_alloc&) {
        return Problem{"MW1521", fmt::format("device {} ran out of memory {}", number, run.place()),
            "use a smaller batch or model, or shard what is replicated"};
    } catch (const std::exception& error) {
        return Problem{"MW1508", fmt::format("device {} failed {}: {}", number, run.place(), error.what())};
    }
}

} // namespace meshwright
