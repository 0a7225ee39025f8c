// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/executor.h"

#include "core/program/transform.h"
#include "core/runtime/clocks.h"
#include "core/runtime/collectives.h"
#include "core/runtime/numerics.h"
#include "core/runtime/recording.h"
#include "core/schedule/label.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <utility>

namespace meshwright {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// How the values of a Repeat op and of its body share memory: the carries live in the place of the results; slices and what stays
/// the same are read where they are.
struct LoopPlan {
    RepeatAttributes attributes;
    std::vector<ValueId> operands;
    std::vector<ValueId> results;
    std::vector<ValueId> arguments; ///< of the body
    std::vector<ValueId> yields; ///< of the body
    std::vector<std::int64_t> yieldBytes; ///< of a carry, or of one slice
    std::vector<std::int64_t> sliceBytes; ///< of each stacked operand
    std::vector<bool> direct; ///< for each yield: a slice that the body writes straight into the stack
};

/// An instruction made ready for the devices.
struct Ready {
    InstructionKind kind = InstructionKind::Compute;
    const Instruction* instruction = nullptr; ///< of the schedule
    std::uint32_t description = 0;
    std::vector<std::shared_ptr<const Kernel>> kernels; ///< one for all devices, or one for each
    std::unique_ptr<Collective> collective;
    std::size_t counter = kNone; ///< of a collective that moves data
    bool goesOn = false; ///< a collective that is finished by a later instruction
    const Collective* waitsFor = nullptr; ///< that started earlier
    std::optional<LoopPlan> loop;
    std::vector<Ready> body;
};

struct Count {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;
};

/// What belongs to one device only.
struct alignas(64) Device {
    AlignedBytes arena;
    std::vector<std::byte*> addresses; ///< by value
    std::vector<Count> counts; ///< by counter
    std::vector<Recorded> records; ///< of this run
    std::vector<Recorded> completeRecords; ///< of the last recorded run that was not stopped
};

} // namespace

class LoadedFunction::Implementation {
public:
    Implementation(const ScheduledFunction& scheduled, DevicePositions positions, VirtualDevices& devices, LoadPlace place)
        : m_scheduled(scheduled)
        , m_positions(std::move(positions))
        , m_virtual(devices)
        , m_meeting(
              place.meeting != nullptr ? std::move(place.meeting) : std::make_shared<RendezvousTable>(devices, place.devices))
        , m_localOf(static_cast<std::size_t>(devices.count()), -1)
    {
        for (std::int64_t device = 0; device < count(); ++device)
            m_localOf[static_cast<std::size_t>(m_meeting->numberOf(device))] = device;
    }

    const ScheduledFunction& scheduled() const { return m_scheduled; }
    const Function& function() const { return m_scheduled.device.function; }
    std::int64_t count() const { return m_positions.count(); }

    Problems prepare()
    {
        Problems problems = checkRunnable(function());
        const auto needsLayout = [&](ValueId value) {
            if (!function()[value].sharding)
                problems.push_back({"MW1512",
                    fmt::format("{} of function \"{}\" has no layout", valueText(function(), value), function().name)});
        };
        std::for_each(function().arguments().begin(), function().arguments().end(), needsLayout);
        std::for_each(function().results().begin(), function().results().end(), needsLayout);
        if (!problems.empty())
            return problems;
        placeValues();
        m_ready = readyList(m_scheduled.instructions, problems);
        for (Device& device : m_devices)
            device.counts.resize(m_counterOps.size());
        m_counted.resize(m_counterOps.size());
        return problems;
    }

    Result<Done> write(std::size_t argument, const HostArray& whole)
    {
        const ValueId value = function().arguments()[argument];
        const TensorType wanted{function()[value].type.dtype, m_scheduled.device.globalShapes[value.at()]};
        if (whole.type() != wanted)
            return Problem{"MW1503",
                fmt::format("argument {} ({}) is {}, got {}", argument, valueText(function(), value), typeText(wanted),
                    typeText(whole.type()))};
        for (std::int64_t device = 0; device < count(); ++device)
            writeBox(value, device, whole, startsOf(boxOf(value, device)));
        return Done{};
    }

    /// Puts what a device holds of a value there: a box of `source`, which starts at `start` in it.
    void writeBox(ValueId value, std::int64_t device, const HostArray& source, const Shape& start)
    {
        const TensorType& local = function()[value].type;
        const IndexBox box = boxOf(value, device);
        std::byte* target = addressOf(value, device);
        if (boxElements(box) < local.elements()) // padding: anything, but always the same
            std::memset(target, 0, static_cast<std::size_t>(local.bytes()));
        copyBox(target, {local.shape, Shape(local.shape.size(), 0)}, source.data(), {source.type().shape, start}, extentsOf(box),
            byteSize(local.dtype));
    }

    void writePiece(ValueId value, std::int64_t device, const HostArray& piece)
    {
        writeBox(value, device, piece, Shape(piece.type().shape.size(), 0));
    }

    HostArray readPiece(ValueId value, std::int64_t device) const
    {
        const TensorType& local = function()[value].type;
        const std::span held(addressOf(value, device), static_cast<std::size_t>(local.bytes()));
        return HostArray::fromBytes(local, held).slice(wholeBox(extentsOf(boxOf(value, device))));
    }

    HostArray read(ValueId value) const
    {
        HostArray whole(TensorType{function()[value].type.dtype, m_scheduled.device.globalShapes[value.at()]});
        const std::int64_t width = byteSize(whole.type().dtype);
        const Shape& local = function()[value].type.shape;
        const Shape origin(local.size(), 0);
        for (const auto& [box, holders] : holdersOf(value))
            copyBox(whole.data(), {whole.type().shape, startsOf(box)}, addressOf(value, holders.front()), {local, origin},
                extentsOf(box), width);
        return whole;
    }

    bool replicasAgree(ValueId value) const
    {
        for (const auto& [box, holders] : holdersOf(value)) {
            const HostArray first = readPiece(value, holders.front());
            for (const std::int64_t holder : holders) {
                if (!(readPiece(value, holder) == first))
                    return false;
            }
        }
        return true;
    }

    Result<std::int64_t> copyFrom(std::size_t argument, const Implementation& from, ValueId source, const std::stop_token& stop)
    {
        const ValueId target = function().arguments()[argument];
        const Shape& whole = m_scheduled.device.globalShapes[target.at()];
        const Shape& sourceWhole = from.m_scheduled.device.globalShapes[source.at()];
        const DType dtype = function()[target].type.dtype;
        if (dtype != from.function()[source].type.dtype || whole != sourceWhole) {
            return Problem{"MW1503",
                fmt::format("argument {} ({}) is {}, got {}", argument, valueText(function(), target), typeText({dtype, whole}),
                    typeText({from.function()[source].type.dtype, sourceWhole}))};
        }
        const std::int64_t width = byteSize(dtype);
        const auto holders = from.holdersOf(source);
        std::int64_t moved = 0;
        for (std::int64_t device = 0; device < count(); ++device) {
            if (stop.stop_requested())
                return VirtualDevices::interrupted();
            const IndexBox wanted = boxOf(target, device);
            const DeviceId self = m_positions.mesh(0).deviceAt(device);
            if (boxElements(wanted) < function()[target].type.elements())
                std::memset(addressOf(target, device), 0, static_cast<std::size_t>(function()[target].type.bytes()));
            for (const auto& [box, devices] : holders) {
                const IndexBox common = intersection(wanted, box);
                if (boxElements(common) == 0)
                    continue;
                const auto own = std::find_if(
                    devices.begin(), devices.end(), [&](std::int64_t d) { return from.m_positions.mesh(0).deviceAt(d) == self; });
                const std::int64_t giver = own != devices.end() ? *own : devices.front();
                if (own == devices.end())
                    moved += boxElements(common) * width;
                copyBox(addressOf(target, device), {function()[target].type.shape, startIn(common, wanted)},
                    from.addressOf(source, giver), {from.function()[source].type.shape, startIn(common, box)}, extentsOf(common),
                    width);
            }
        }
        return moved;
    }

    Result<Done> run(const RunOptions& options)
    {
        begin(options);
        Result<Done> done = m_virtual.run([this](std::int64_t device) { return runOn(device); }, options.stop);
        end(done.has_value());
        return done;
    }

    void begin(const RunOptions& options)
    {
        m_options = options;
        m_isRecording = options.record;
        if (m_isRecording) {
            for (Device& device : m_devices) {
                device.records.clear();
                device.records.reserve(m_lastRecords);
            }
            m_recordStart = wallSeconds();
        }
    }

    Result<Done> runOn(std::int64_t virtualDevice)
    {
        const std::int64_t device = m_localOf[static_cast<std::size_t>(virtualDevice)];
        if (device < 0)
            return Done{};
        Worker worker(*this, device);
        try {
            return worker.run();
        } catch (const std::bad_alloc&) {
            return Problem{"MW1521", fmt::format("device {} ran out of memory {}", virtualDevice, worker.place()),
                "use a smaller batch or model, or shard what is replicated"};
        } catch (const std::exception& error) {
            return Problem{"MW1508", fmt::format("device {} failed {}: {}", virtualDevice, worker.place(), error.what())};
        }
    }

    void end(bool complete)
    {
        if (!complete) {
            m_devices.front().counts = m_counted;
            return;
        }
        m_counted = m_devices.front().counts;
        if (m_isRecording) {
            m_completeStart = m_recordStart;
            m_lastRecords = std::max(m_lastRecords, m_devices.front().records.size());
            for (Device& device : m_devices)
                std::swap(device.records, device.completeRecords);
        }
    }

    /// Everything in the buffer of a value moves with it.
    void place(ValueId value, std::int64_t device, std::byte* at)
    {
        const std::vector<std::int32_t>& bufferOf = m_scheduled.buffers.bufferOf;
        const std::int32_t buffer = bufferOf[value.at()];
        std::vector<std::byte*>& addresses = m_devices[static_cast<std::size_t>(device)].addresses;
        if (buffer < 0)
            addresses[value.at()] = at;
        for (const ValueId other : buffer < 0 ? std::vector<ValueId>() : m_valuesIn[static_cast<std::size_t>(buffer)])
            addresses[other.at()] = at;
    }

    std::size_t recordCount(std::int64_t device) const { return m_devices[static_cast<std::size_t>(device)].records.size(); }
    const std::vector<Recorded>& records(std::int64_t device) const
    {
        return m_devices[static_cast<std::size_t>(device)].completeRecords;
    }
    const std::vector<RecordedInstruction>& recordedInstructions() const { return m_descriptions; }

    std::int64_t usedArenaBytes() const
    {
        std::int64_t used = 0;
        for (const Device& device : m_devices) {
            for (std::size_t value = 0; value < device.addresses.size(); ++value) {
                const std::byte* at = device.addresses[value];
                if (at < device.arena.data() || at >= device.arena.data() + device.arena.size())
                    continue; // not in memory, or in another function's
                const std::int64_t end = at - device.arena.data() + function().values[value].type.bytes();
                used = std::max(used, ceilDiv(end, kBufferAlignment) * kBufferAlignment);
            }
        }
        return used;
    }

    std::vector<CountedCalls> countedCalls() const
    {
        std::vector<CountedCalls> counted;
        for (std::size_t i = 0; i < m_counterOps.size(); ++i)
            counted.push_back({m_counterOps[i], m_counted[i].calls, m_counted[i].bytes});
        return counted;
    }

    Timeline measured() const { return measuredTimeline(allRecords(), m_descriptions, m_completeStart); }
    Timeline replayed() const { return replayedTimeline(allRecords(), m_descriptions); }

    IndexBox boxOf(ValueId value, std::int64_t device) const
    {
        return m_positions.boxOf(m_scheduled.device.globalShapes[value.at()], *function()[value].sharding, device);
    }

    /// The part of the whole that a value's piece stands for; nothing is known of one without a layout.
    IndexBox validPart(ValueId value, std::int64_t device) const
    {
        return function()[value].sharding ? boxOf(value, device) : IndexBox{};
    }

    std::byte* addressOf(ValueId value, std::int64_t device) const
    {
        return m_devices[static_cast<std::size_t>(device)].addresses[value.at()];
    }

    /// The distinct pieces of a value and the devices that hold each.
    std::map<IndexBox, std::vector<std::int64_t>> holdersOf(ValueId value) const
    {
        std::map<IndexBox, std::vector<std::int64_t>> holders;
        for (std::int64_t device = 0; device < count(); ++device)
            holders[boxOf(value, device)].push_back(device);
        return holders;
    }

private:
    /// Runs the instructions of one device.
    class Worker {
    public:
        Worker(Implementation& owner, std::int64_t device)
            : m_owner(owner)
            , m_id(device)
            , m_device(owner.m_devices[static_cast<std::size_t>(device)])
            , m_stop(owner.m_virtual.stopFlag())
            , m_announced(owner.m_meeting->numberOf(device))
        {
            const FaultOptions* faults = owner.m_options.faults;
            if (faults == nullptr || !faults->any())
                return;
            m_faults.emplace(*faults, m_announced, owner.m_options.step, m_stop);
            if (faults->checkNumerics)
                m_numerics.emplace(owner.function(), [&owner, device](ValueId value) { return owner.validPart(value, device); });
        }
        ~Worker() { release(); }
        Worker(const Worker&) = delete;
        Worker& operator=(const Worker&) = delete;

        Result<Done> run()
        {
            if (m_numerics) {
                if (auto found = m_numerics->checkArguments(m_device.addresses))
                    return notFinite(*found);
            }
            Result<Done> done = runList(m_owner.m_ready);
            if (done)
                finalCopies();
            return done;
        }

        /// "in step 10, at dot_general act.layers.1", as far as it is known.
        std::string place() const
        {
            const std::int64_t step = m_owner.m_options.step;
            return fmt::format(
                "{}in {}", step < 0 ? "" : fmt::format("in step {}, ", step), m_at == nullptr ? m_owner.function().name : *m_at);
        }

    private:
        /// Before an instruction that is no loop.
        void enter(const Ready& ready, bool isFirstHalf)
        {
            m_at = &m_owner.m_descriptions[ready.description].name;
            m_owner.m_virtual.announce(m_announced, *m_at);
            if (m_faults && !isFirstHalf && !std::exchange(m_struck, true)) {
                release(); // whatever happens here keeps nobody from a core
                m_faults->strike();
            }
            if (m_numerics)
                m_numerics->before(*ready.instruction, m_device.addresses);
        }

        /// After it.
        Result<Done> leave(const Ready& ready)
        {
            if (m_faults && m_faults->wantsNan()) {
                for (const ValueId value : valuesMadeBy(m_owner.function(), *ready.instruction)) {
                    std::byte* at = m_device.addresses[value.at()];
                    if (at != nullptr && m_faults->wantsNan() && writeNan(at, m_owner.function()[value].type))
                        m_faults->hasNan();
                }
            }
            if (m_numerics) {
                if (auto found = m_numerics->after(*ready.instruction, m_device.addresses))
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
                m_scratch = &m_owner.m_virtual.permits().acquire();
        }

        void release()
        {
            if (m_scratch != nullptr)
                m_owner.m_virtual.permits().release(*m_scratch);
            m_scratch = nullptr;
        }

        Result<Done> runList(const std::vector<Ready>& list)
        {
            const bool isBody = &list == &m_owner.m_ready;
            for (std::size_t i = 0; i < list.size(); ++i) {
                const Ready& ready = list[i];
                if (m_stop.isSet())
                    return VirtualDevices::interrupted();
                if (ready.kind == InstructionKind::CollectiveDone) {
                    if (ready.waitsFor == nullptr) // nothing to do
                        continue;
                    if (m_underWay && m_underWay->collective == ready.waitsFor) {
                        if (Result<Done> done = finish(); !done)
                            return done;
                    }
                    if (m_owner.m_isRecording)
                        m_device.records.push_back({ready.description, 0.0, {}});
                    continue;
                }
                if (ready.loop) {
                    if (Result<Done> done = runLoop(ready); !done)
                        return done;
                    continue;
                }
                enter(ready, !isBody || i < list.size() / 2);
                if (ready.collective != nullptr) {
                    if (Result<Done> done = runCollective(ready); !done)
                        return done;
                } else {
                    compute(ready);
                }
                if (Result<Done> done = leave(ready); !done)
                    return done;
            }
            return Done{};
        }

        void compute(const Ready& ready)
        {
            const bool records = m_owner.m_isRecording;
            Recorded recorded;
            double cpu = 0.0;
            if (records)
                recorded.askedCore = wallSeconds();
            const bool hadCore = m_scratch != nullptr;
            acquire();
            if (records) {
                recorded.instruction = ready.description;
                recorded.times.started = hadCore ? recorded.askedCore : wallSeconds();
                cpu = threadCpuSeconds();
            }
            const Kernel& kernel = *ready.kernels[ready.kernels.size() == 1 ? 0 : static_cast<std::size_t>(m_id)];
            const double lagFrom = m_faults && m_faults->lags() ? threadCpuSeconds() : 0.0;
            kernel.run(m_device.addresses, *m_scratch, m_stop);
            if (m_faults && m_faults->lags())
                m_faults->lag(threadCpuSeconds() - lagFrom);
            if (records) {
                recorded.times.cpuSeconds = threadCpuSeconds() - cpu;
                recorded.times.finished = wallSeconds();
                m_device.records.push_back(recorded);
            }
        }

        Result<Done> runCollective(const Ready& ready)
        {
            const Collective& collective = *ready.collective;
            const bool meets = ready.counter != kNone;
            if (meets) {
                if (Result<Done> done = finish(); !done)
                    return done;
                Count& count = m_device.counts[ready.counter];
                ++count.calls;
                count.bytes += collective.payloadBytes();
            }
            const bool records = m_owner.m_isRecording;
            const std::size_t record = m_device.records.size();
            if (records) {
                m_device.records.emplace_back();
                m_device.records.back().instruction = ready.description;
            }
            if (ready.goesOn && !m_faults) { // faults look at what it makes, at once
                const Result<Collective::Started> started = collective.start(m_id, m_device.addresses, records);
                if (!started)
                    return started.error();
                m_underWay = UnderWay{&collective, *started, record};
                return Done{};
            }
            if (meets)
                release(); // others may compute while we wait
            CollectiveTimes times;
            Result<Done> done = collective.run(m_id, m_device.addresses, records ? &times : nullptr);
            if (records)
                keepTimes(record, times);
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
            Result<Done> done = underWay.collective->finish(m_id, underWay.started, m_owner.m_isRecording ? &times : nullptr);
            if (done && m_owner.m_isRecording)
                keepTimes(underWay.record, times);
            return done;
        }

        void keepTimes(std::size_t record, const CollectiveTimes& times)
        {
            m_device.records[record].times = times;
            m_device.records[record].askedCore = times.started;
        }

        Result<Done> runLoop(const Ready& ready)
        {
            const LoopPlan& loop = *ready.loop;
            std::vector<std::byte*>& at = m_device.addresses;
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
            std::vector<std::byte*>& at = m_device.addresses;
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

        /// Donated results that were not made in the place of their argument. All are read before any is overwritten by one that needs it:
        /// the sources are results, the targets arguments, and a source that is an argument itself is saved.
        void finalCopies()
        {
            const Function& function = m_owner.function();
            std::vector<AlignedBytes> saved;
            for (const FinalCopy& final : m_owner.m_scheduled.finalCopies) {
                saved.emplace_back();
                if (!function[final.from].producer.valid()) {
                    saved.back() = AlignedBytes(function[final.from].type.bytes());
                    copy(saved.back().data(), m_device.addresses[final.from.at()], saved.back().size());
                }
            }
            for (std::size_t i = 0; i < saved.size(); ++i) {
                const FinalCopy& final = m_owner.m_scheduled.finalCopies[i];
                const std::byte* source = saved[i].data() != nullptr ? saved[i].data() : m_device.addresses[final.from.at()];
                copy(m_device.addresses[final.to.at()], source, function[final.to].type.bytes());
            }
        }

        static void copy(std::byte* to, const std::byte* from, std::int64_t bytes)
        {
            if (to != from && bytes > 0)
                std::memcpy(to, from, static_cast<std::size_t>(bytes));
        }

        Implementation& m_owner;
        std::int64_t m_id;
        Device& m_device;
        const StopFlag& m_stop;
        std::int64_t m_announced; ///< the virtual device's number
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

    static Shape startsOf(const IndexBox& box)
    {
        Shape starts;
        for (const IndexRange& range : box)
            starts.push_back(range.start);
        return starts;
    }

    static Shape extentsOf(const IndexBox& box)
    {
        Shape extents;
        for (const IndexRange& range : box)
            extents.push_back(range.size());
        return extents;
    }

    static Shape startIn(const IndexBox& part, const IndexBox& holder)
    {
        Shape start;
        for (std::size_t dim = 0; dim < part.size(); ++dim)
            start.push_back(part[dim].start - holder[dim].start);
        return start;
    }

    std::vector<std::vector<Recorded>> allRecords() const
    {
        std::vector<std::vector<Recorded>> records;
        for (const Device& device : m_devices)
            records.push_back(device.completeRecords);
        return records;
    }

    // ---- loading

    /// Arenas, and the address of every value that has a place in them.
    void placeValues()
    {
        const BufferPlan& plan = m_scheduled.buffers;
        m_devices = std::vector<Device>(static_cast<std::size_t>(count()));
        m_valuesIn.resize(plan.buffers.size());
        for (std::size_t value = 0; value < plan.bufferOf.size(); ++value) {
            if (plan.bufferOf[value] >= 0)
                m_valuesIn[static_cast<std::size_t>(plan.bufferOf[value])].push_back(ValueId{value});
        }
        for (Device& device : m_devices) {
            device.arena = AlignedBytes(plan.arenaBytes);
            device.addresses.assign(function().values.size(), nullptr);
            for (std::size_t value = 0; value < function().values.size(); ++value) {
                const std::int32_t buffer = plan.bufferOf[value];
                if (buffer >= 0)
                    device.addresses[value] = device.arena.data() + plan.buffers[static_cast<std::size_t>(buffer)].offset;
            }
        }
    }

    bool isInMemory(ValueId value) const
    {
        return m_scheduled.buffers.bufferOf[value.at()] >= 0 || !function()[value].producer.valid();
    }

    std::vector<Ready> readyList(const std::vector<Instruction>& instructions, Problems& problems)
    {
        std::vector<Ready> list;
        std::map<OpId, const Collective*> underWay;
        for (auto at = instructions.begin(); at != instructions.end(); ++at) {
            if (at->kind == InstructionKind::CollectiveDone) {
                if (const auto started = underWay.find(at->ops.front()); started != underWay.end())
                    list.push_back(waitFor(*at, started->second));
                continue;
            }
            const auto done = at->kind == InstructionKind::CollectiveStart ? doneOf(at, instructions.end()) : at;
            list.push_back(readyOf(*at, *done, problems));
            const Ready& made = list.back();
            if (made.counter != kNone && done - at > 1) {
                m_descriptions[made.description].isAsynchronous = true;
                list.back().goesOn = made.collective->canStart();
                underWay[at->ops.front()] = made.collective.get();
            }
        }
        return list;
    }

    /// The end of the collective that starts here.
    static std::vector<Instruction>::const_iterator doneOf(
        std::vector<Instruction>::const_iterator start, std::vector<Instruction>::const_iterator end)
    {
        const auto done = std::find_if(start, end,
            [&](const Instruction& other) { return other.kind == InstructionKind::CollectiveDone && other.ops == start->ops; });
        assert(done != end);
        return done;
    }

    /// The end of a collective that goes on beside other instructions.
    Ready waitFor(const Instruction& done, const Collective* collective)
    {
        Ready ready;
        ready.kind = InstructionKind::CollectiveDone;
        RecordedInstruction description;
        description.name = fmt::format("wait for {}", instructionLabel(function(), done));
        description.category = SliceCategory::Wait;
        description.collective = collective;
        description.isWait = true;
        m_descriptions.push_back(std::move(description));
        ready.description = static_cast<std::uint32_t>(m_descriptions.size() - 1);
        ready.waitsFor = collective;
        return ready;
    }

    /// What the devices do for an instruction; `done` is the end of the collective that it starts, else the instruction itself.
    Ready readyOf(const Instruction& instruction, const Instruction& done, Problems& problems)
    {
        Ready ready;
        ready.kind = instruction.kind;
        ready.instruction = &done;
        const Op& op = function()[instruction.ops.back()];
        if (instruction.kind == InstructionKind::Loop) {
            ready.loop = loopPlan(op);
            ready.body = readyList(instruction.body, problems);
            return ready;
        }
        if (!isTileOp(op.kind) && done.update.empty()
            && std::none_of(op.results.begin(), op.results.end(), [this](ValueId result) { return isInMemory(result); })) {
            ready.kind = InstructionKind::CollectiveDone; // nobody reads what it makes: nothing to do, on any device
            return ready;
        }
        ready.description = describe(done);
        if (isCollective(op.kind)) {
            auto made
                = Collective::create(m_scheduled.device, instruction.ops.back(), m_positions, *m_meeting, updateOf(done));
            if (!made) {
                append(problems, made.error());
                return ready;
            }
            ready.collective = std::move(*made);
            if (op.kind != OpKind::AllSlice) {
                ready.counter = m_counterOps.size();
                m_counterOps.push_back(instruction.ops.back());
                m_descriptions[ready.description].collective = ready.collective.get();
                m_descriptions[ready.description].bytes = ready.collective->payloadBytes();
            }
            return ready;
        }
        addKernels(instruction, ready, problems);
        return ready;
    }

    std::unique_ptr<const CollectiveUpdate> updateOf(const Instruction& done) const
    {
        if (done.update.empty())
            return nullptr;
        auto update = std::make_unique<CollectiveUpdate>();
        const KernelSite site{function(), [](ValueId) { return PieceOfWhole{}; }}; // such a pass has no part that knows its place
        update->kernel = makeStretchKernel(
            site, done.update, done.writes, [this](ValueId value) { return isInMemory(value); },
            function()[done.ops.front()].results.front());
        for (const ValueId value : done.writes)
            update->outputs.push_back({value, byteSize(function()[value].type.dtype)});
        return update;
    }

    /// One kernel for all devices, unless it makes something that depends on where the device stands.
    void addKernels(const Instruction& instruction, Ready& ready, Problems& problems)
    {
        bool dependsOnDevice = false;
        bool lacksLayout = false;
        for (std::int64_t device = 0; device == 0 || (dependsOnDevice && device < count()); ++device) {
            const KernelSite site{function(), [&](ValueId value) {
                                      dependsOnDevice = true;
                                      const Shape& whole = m_scheduled.device.globalShapes[value.at()];
                                      if (function()[value].sharding)
                                          return PieceOfWhole{whole, startsOf(boxOf(value, device))};
                                      lacksLayout = lacksLayout || whole != function()[value].type.shape;
                                      return wholePiece(function()[value].type.shape);
                                  }};
            const auto inMemory = [this](ValueId value) { return isInMemory(value); };
            ready.kernels.push_back(makeKernel(site, instruction.ops, instruction.writes, inMemory));
        }
        if (lacksLayout) {
            problems.push_back({"MW1512",
                fmt::format("{} of function \"{}\" makes a part of {} that depends on the device, but has no layout",
                    opName(function()[instruction.ops.back()].kind), function().name,
                    valueText(function(), function()[instruction.ops.back()].results.front()))});
        }
    }

    LoopPlan loopPlan(const Op& op) const
    {
        const Block& body = function()[op.bodies.front()];
        LoopPlan loop;
        loop.attributes = op.as<RepeatAttributes>();
        loop.operands = op.operands;
        loop.results = op.results;
        loop.arguments = body.arguments;
        loop.yields = body.results;
        for (std::size_t i = 0; i < loop.attributes.stacked; ++i)
            loop.sliceBytes.push_back(function()[loop.arguments[loop.attributes.carries + i]].type.bytes());
        for (std::size_t i = 0; i < loop.yields.size(); ++i) {
            const ValueId value = loop.yields[i];
            loop.yieldBytes.push_back(function()[value].type.bytes());
            const bool once = std::count(loop.yields.begin(), loop.yields.end(), value) == 1;
            loop.direct.push_back(i >= loop.attributes.carries && once && function()[value].producer.valid()
                && function()[value].block == op.bodies.front() && !isMadeInPlaceOf(value, loop));
        }
        return loop;
    }

    /// True when the value shares its buffer with another yield, so that both must stay where the plan has them.
    bool isMadeInPlaceOf(ValueId value, const LoopPlan& loop) const
    {
        const auto& bufferOf = m_scheduled.buffers.bufferOf;
        return std::any_of(loop.yields.begin(), loop.yields.end(),
            [&](ValueId other) { return other != value && bufferOf[other.at()] == bufferOf[value.at()]; });
    }

    std::uint32_t describe(const Instruction& instruction)
    {
        const Op& op = function()[instruction.ops.back()];
        RecordedInstruction description;
        description.category = categoryOf(op.kind);
        description.name = instructionLabel(function(), instruction);
        if (isCollective(op.kind))
            description.detail = op.as<CollectiveAttributes>().cause.reason;
        m_descriptions.push_back(std::move(description));
        return static_cast<std::uint32_t>(m_descriptions.size() - 1);
    }

    ScheduledFunction m_scheduled;
    DevicePositions m_positions;
    VirtualDevices& m_virtual;
    std::shared_ptr<RendezvousTable> m_meeting;
    std::vector<std::int64_t> m_localOf; ///< by virtual device; -1: has no part in the function
    RunOptions m_options; ///< of the run that is under way
    std::vector<Device> m_devices;
    std::vector<std::vector<ValueId>> m_valuesIn; ///< by buffer
    std::vector<Ready> m_ready;
    std::vector<OpId> m_counterOps;
    std::vector<Count> m_counted; ///< by counter, on the first device, in complete runs
    std::vector<RecordedInstruction> m_descriptions;
    bool m_isRecording = false;
    double m_recordStart = 0.0; ///< of the run that is being recorded
    double m_completeStart = 0.0; ///< of the last complete one
    std::size_t m_lastRecords = 256;
};

LoadedFunction::LoadedFunction(std::unique_ptr<Implementation> implementation)
    : m_implementation(std::move(implementation))
{
}

LoadedFunction::~LoadedFunction() = default;

std::int64_t LoadedFunction::usedArenaBytes() const
{
    return m_implementation->usedArenaBytes();
}

Result<std::unique_ptr<LoadedFunction>> LoadedFunction::load(
    const ScheduledFunction& scheduled, std::vector<NamedMesh> meshes, VirtualDevices& devices, LoadPlace place)
{
    auto positions = DevicePositions::create(std::move(meshes), devices.count());
    if (!positions)
        return positions.error();
    const std::int64_t count = positions->count();
    auto implementation = std::make_unique<Implementation>(scheduled, *std::move(positions), devices, std::move(place));
    try {
        if (Problems problems = implementation->prepare(); !problems.empty())
            return problems;
    } catch (const std::bad_alloc&) {
        return Problem{"MW1521",
            fmt::format("there is no memory for \"{}\" on {} devices, {} each", scheduled.device.function.name, count,
                formatBytes(static_cast<double>(scheduled.buffers.arenaBytes))),
            "use a smaller batch or model, or shard what is replicated"};
    }
    return std::unique_ptr<LoadedFunction>(new LoadedFunction(std::move(implementation)));
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
    return m_implementation->write(argument, whole);
}

HostArray LoadedFunction::readArgument(std::size_t argument) const
{
    return m_implementation->read(function().arguments()[argument]);
}

HostArray LoadedFunction::readResult(std::size_t result) const
{
    return m_implementation->read(function().results()[result]);
}

std::map<IndexBox, std::vector<std::int64_t>> LoadedFunction::piecesOfArgument(std::size_t argument) const
{
    return m_implementation->holdersOf(function().arguments()[argument]);
}

IndexBox LoadedFunction::boxOfArgument(std::size_t argument, std::int64_t device) const
{
    return m_implementation->boxOf(function().arguments()[argument], device);
}

HostArray LoadedFunction::readArgumentPiece(std::size_t argument, std::int64_t device) const
{
    return m_implementation->readPiece(function().arguments()[argument], device);
}

void LoadedFunction::writeArgumentPiece(std::size_t argument, std::int64_t device, const HostArray& piece)
{
    m_implementation->writePiece(function().arguments()[argument], device, piece);
}

void LoadedFunction::placeArgument(std::size_t argument, std::int64_t device, std::byte* at)
{
    m_implementation->place(function().arguments()[argument], device, at);
}

void LoadedFunction::placeResult(std::size_t result, std::int64_t device, std::byte* at)
{
    m_implementation->place(function().results()[result], device, at);
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
    return m_implementation->replicasAgree(function().results()[result]);
}

Result<std::int64_t> LoadedFunction::copyFromArgument(
    std::size_t argument, const LoadedFunction& from, std::size_t sourceArgument, const std::stop_token& stop)
{
    return m_implementation->copyFrom(argument, *from.m_implementation, from.function().arguments()[sourceArgument], stop);
}

Result<std::int64_t> LoadedFunction::copyFromResult(
    std::size_t argument, const LoadedFunction& from, std::size_t sourceResult, const std::stop_token& stop)
{
    return m_implementation->copyFrom(argument, *from.m_implementation, from.function().results()[sourceResult], stop);
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

} // namespace meshwright
