// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/collectives.h"
#include "core/kernels/host_array.h"
#include "core/schedule/schedule.h"

#include <map>
#include <stop_token>
#include <vector>

namespace meshwright {

/// whole = whole combined with part, element by element. Precondition: both have one type, which is not complex.
void combineInto(HostArray& whole, const HostArray& part, ReduceKind kind);

/// What belongs to one device: its arena, and where every value lies, which is nowhere for those that are never in memory.
struct alignas(64) DeviceMemory {
    AlignedBytes arena;
    AlignedBytes hostArena; ///< its part of the host's memory
    std::vector<std::byte*> addresses; ///< by value
    std::int64_t touchedBytes = 0; ///< from the arena's start to the end of what was last in it of all that has been used

    /// Counts what is used, when it is used. Memory elsewhere does not count.
    void touch(const std::byte* at, std::int64_t bytes)
    {
        if (at >= arena.data() && at < arena.data() + arena.size())
            touchedBytes = std::max(touchedBytes, at - arena.data() + bytes);
    }
};

/// Which process has which of a function's devices.
struct DeviceRanks {
    Ranks* ranks = nullptr; ///< null: all are here
    std::vector<int> rankOf = {}; ///< by device, where there are ranks

    bool isHere(std::int64_t device) const
    {
        return ranks == nullptr || rankOf[static_cast<std::size_t>(device)] == ranks->rank();
    }
};

/// The memory of a function's devices, and the arrays in it. In a job of several processes each has the memory of its own devices only, and
/// all of them call what reads and copies together; what cannot be exchanged then shows in `Ranks::failure`, and content is undefined.
class DeviceArrays {
public:
    /// Both must outlive it. Throws std::bad_alloc.
    DeviceArrays(const ScheduledFunction& scheduled, const DevicePositions& positions, DeviceRanks ranks = {});

    DeviceMemory& memory(std::int64_t device) { return m_devices[static_cast<std::size_t>(device)]; }
    std::int64_t count() const { return m_positions.count(); }

    /// The largest of the devices' `touchedBytes`, up to the alignment of buffers.
    std::int64_t highWaterBytes() const;

    /// Cuts a whole array; of a sum over unreduced axes the first part is the whole. Problems: MW1503 not of the argument's type and whole shape.
    Result<Done> write(std::size_t argument, const HostArray& whole);

    /// One device's piece, without padding. Of a device that is elsewhere the readers get it.
    void writePiece(ValueId value, std::int64_t device, const HostArray& piece);
    HostArray readPiece(ValueId value, std::int64_t device, Ranks::Readers readers = Ranks::Readers::First) const;

    /// The whole, of equal pieces the first device's, parts of sums added up; all processes get it.
    HostArray read(ValueId value) const;
    bool replicasAgree(ValueId value) const; ///< on all processes, which get the same answer

    /// Brings a value of `from` into the layout of an argument. Returns the bytes that changed their device. Problems: MW1503, MW1507.
    Result<std::int64_t> copyFrom(std::size_t argument, const DeviceArrays& from, ValueId source, const std::stop_token& stop);

    /// Lets a value, and everything in its buffer, lie elsewhere.
    void place(ValueId value, std::int64_t device, std::byte* at);

    IndexBox boxOf(ValueId value, std::int64_t device) const
    {
        return m_positions.boxOf(m_scheduled.device.globalShapes[value.at()], *function()[value].sharding, device);
    }

    /// Which of the parts of a sum (or another reduction) over its unreduced axes a device holds of a value; 0 of a value that is whole.
    std::int64_t partOf(ValueId value, std::int64_t device) const
    {
        const auto& sharding = function()[value].sharding;
        return sharding
            ? shardIndex(m_positions.positionOf(sharding->mesh, device), sharding->unreduced, m_positions.mesh(sharding->mesh))
            : 0;
    }

    /// The part of the whole that a value's piece stands for; nothing is known of one without a layout.
    IndexBox validPart(ValueId value, std::int64_t device) const
    {
        return function()[value].sharding ? boxOf(value, device) : IndexBox{};
    }

    /// The distinct pieces of a value and the devices that hold each.
    std::map<IndexBox, std::vector<std::int64_t>> holdersOf(ValueId value) const;

private:
    const Function& function() const { return m_scheduled.device.function; }
    std::byte* addressOf(ValueId value, std::int64_t device) const
    {
        return m_devices[static_cast<std::size_t>(device)].addresses[value.at()];
    }
    HostArray readPart(ValueId value, std::int64_t part) const;
    HostArray heldPiece(ValueId value, std::int64_t device) const; ///< of a device that is here
    void writeBox(ValueId value, std::int64_t device, const HostArray& source, const Shape& start);

    std::int64_t bytesOf(ValueId value, const IndexBox& box) const;
    void bringPiece(ValueId value, const IndexBox& box, const std::vector<std::int64_t>& holders, HostArray& whole) const;

    const ScheduledFunction& m_scheduled;
    const DevicePositions& m_positions;
    DeviceRanks m_ranks;
    std::vector<DeviceMemory> m_devices;
    std::vector<std::vector<ValueId>> m_valuesIn; ///< by buffer
};

} // namespace meshwright
