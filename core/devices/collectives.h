// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/collective_agreement.h"
#include "core/devices/virtual_devices.h"
#include "core/kernels/host_array.h"
#include "core/kernels/kernel.h"
#include "core/partition/device_program.h"

#include <atomic>
#include <map>
#include <memory>
#include <vector>

namespace meshwright {

/// How the devices of a run are numbered on the meshes of a function. Device k is what stands at position k of the first mesh.
class DevicePositions {
public:
    /// Problems: MW1510 the meshes differ in their devices, or there are fewer virtual devices than the mesh has.
    static Result<DevicePositions> create(std::vector<NamedMesh> meshes, std::int64_t virtualDevices);

    const Mesh& mesh(std::int32_t index) const { return m_meshes[static_cast<std::size_t>(index)].mesh; }
    const std::vector<NamedMesh>& meshes() const { return m_meshes; }
    std::int64_t count() const { return m_meshes.front().mesh.deviceCount(); }
    std::int64_t positionOf(std::int32_t mesh, std::int64_t device) const
    {
        return m_positions[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(device)];
    }
    std::int64_t deviceAt(std::int32_t mesh, std::int64_t position) const
    {
        return m_devices[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(position)];
    }

    /// The part of an array that a device holds.
    IndexBox boxOf(const Shape& whole, const TensorSharding& sharding, std::int64_t device) const;

private:
    std::vector<NamedMesh> m_meshes;
    std::vector<std::vector<std::int64_t>> m_positions; ///< by mesh, by device
    std::vector<std::vector<std::int64_t>> m_devices; ///< by mesh, by position
};

/// What a group whose members are on several ranks has besides: memory for what comes from the others.
struct RankMeeting {
    Ranks* ranks = nullptr;
    int tag = 0; ///< of the group's messages
    std::shared_ptr<Meeting> meeting;
    std::vector<int> rankOf; ///< by member
    std::vector<AlignedBytes> operands; ///< by member: of one elsewhere; only what the shares here read is there
    std::vector<AlignedBytes> outgoing; ///< by rank
    std::vector<AlignedBytes> incoming; ///< by rank
    std::vector<CollectiveAgreement> agreements; ///< by rank: of the collective that its members have come to
    Problems failure; ///< of the collective under way
    double ended = 0.0; ///< wall: results have been passed on
};

/// Where the devices of one group meet: what each brings along, and the barrier.
struct Rendezvous {
    struct alignas(64) Member {
        const std::byte* in = nullptr;
        std::byte* out = nullptr;
        Addresses addresses; ///< of everything that it holds
        const class Collective* collective = nullptr; ///< that it has arrived at
    };
    std::vector<std::int64_t> devices; ///< in the group's order
    std::vector<Member> members;
    std::vector<std::size_t> here; ///< the members in this process, in order: all of them but in a job of several processes
    std::unique_ptr<RankMeeting> elsewhere; ///< null: all members are here
    std::shared_ptr<Barrier> posted; ///< all members that are here have come with their operands
    bool isDone = false; ///< the member that arrived last has done everybody's share of a small collective

    // The shares of a larger one: whoever has nothing better to do takes the next one.
    struct alignas(64) Share {
        double moved = 0.0; ///< wall
        double cpuSeconds = 0.0;
    };
    std::vector<Share> shares;
    std::atomic<std::size_t> nextShare{0};
    double begun = 0.0; ///< wall
    std::shared_ptr<Barrier> moved; ///< where shares arrive that have been moved
};

/// All groups of one function; collectives over the same axes meet at the same places.
class RendezvousTable {
public:
    /// `numbers` are the virtual devices that stand for devices 0, 1 .. of the functions that meet here; empty: the same.
    explicit RendezvousTable(VirtualDevices& devices, std::vector<std::int64_t> numbers = {})
        : m_devices(devices)
        , m_numbers(std::move(numbers))
    {
    }

    VirtualDevices& devices() const { return m_devices; }

    std::int64_t numberOf(std::int64_t device) const
    {
        return m_numbers.empty() ? device : m_numbers[static_cast<std::size_t>(device)];
    }

    bool isHere(std::int64_t device) const { return m_devices.isHere(numberOf(device)); }
    int rankOf(std::int64_t device) const { return m_devices.rankOf(numberOf(device)); }

    /// The groups, each a list of devices; made at the first call.
    const std::vector<std::shared_ptr<Rendezvous>>& groups(const std::vector<std::vector<std::int64_t>>& groups);

private:
    std::unique_ptr<RankMeeting> meetingOf(
        const std::vector<std::int64_t>& devices, int tag, std::shared_ptr<Meeting> meeting) const;

    VirtualDevices& m_devices;
    std::vector<std::int64_t> m_numbers;
    std::map<std::vector<std::vector<std::int64_t>>, std::vector<std::shared_ptr<Rendezvous>>> m_groups;
};

/// When a device waited in a collective and when it worked, in seconds of its clocks; filled in only when asked for.
struct CollectiveTimes {
    double arrived = 0.0; ///< wall
    double started = 0.0; ///< wall: all members are there
    double moved = 0.0; ///< wall: this device's share of the data has been moved
    double finished = 0.0; ///< wall: everybody's
    double cpuSeconds = 0.0; ///< of the thread, while it moved data
};

/// What an all-reduce's members go on to do with each stretch of the sum (see `Instruction::update`).
struct CollectiveUpdate {
    std::unique_ptr<const StretchKernel> kernel;
    struct Output {
        ValueId value;
        std::int64_t width = 0; ///< bytes of an element
    };
    std::vector<Output> outputs; ///< what the kernel stores, which all members then get
};

/// One collective op, as every device of its function runs it. Data is moved between the devices' own buffers, each device moving (or
/// reducing) one share straight from where it lies to where it belongs; reductions go in the order of the group, so that their
/// bits depend on nothing else. No copies in between.
///
/// Where a group's members are on several ranks, each rank gets from the others what its members' shares read of their operands, moves its
/// members' shares as if all operands lay here, and passes on what these shares make for everybody. The bits are the same.
/// Source of the algorithm: the direct exchange that shared memory allows, instead of the rings and trees of distributed memory.
class Collective {
public:
    /// `update`, which may be null, is for an all-reduce. Problems: MW1511 the layouts of operand and result do not fit the op's groups.
    static Result<std::unique_ptr<Collective>> create(const DeviceFunction& function, OpId op, const DevicePositions& positions,
        RendezvousTable& table, std::unique_ptr<const CollectiveUpdate> update = nullptr);
    virtual ~Collective() = default;

    /// Does this device's part. Members may come with collectives of functions of their own, as long as these have the same op, attributes,
    /// types and value. Problems: MW1505 a member of the group arrived at another collective, and being interrupted.
    Result<Done> run(std::int64_t device, Addresses addresses, CollectiveTimes* times) const;

    /// The same in two parts, between which the device does something else: data moves as soon as all members have started. A device finishes
    /// one before it starts or runs another one. `times` are filled in by `finish`.
    struct Started {
        std::uint32_t posted = 0; ///< rounds of the group's barriers
        std::uint32_t moved = 0;
        double arrived = 0.0;
    };
    Result<Started> start(std::int64_t device, Addresses addresses, bool isTimed) const;
    Result<Done> finish(std::int64_t device, const Started& started, CollectiveTimes* times) const;
    bool canStart() const { return meets() && !isSmall(false); }

    /// True when it exchanges messages with other ranks: then it is run in one piece, without keeping others from a core.
    bool isAcrossRanks(std::int64_t device) const { return meets() && groupHere(device).elsewhere != nullptr; }

    const std::string& text() const { return m_text; } ///< "all_reduce of grad.layers.0.w"
    std::int64_t payloadBytes() const { return m_payloadBytes; } ///< of one device; 0 for AllSlice
    std::size_t groupOf(std::int64_t device) const
    {
        return m_seats[static_cast<std::size_t>(device)].group;
    } ///< among the op's groups
    std::size_t groupCount() const { return m_groups.size(); }

    /// A rectangle of an array, in elements.
    struct Box {
        Shape start;
        Shape extent;
    };

    /// A stretch of a value, in bytes.
    struct Stretch {
        ValueId value;
        std::int64_t first = 0;
        std::int64_t bytes = 0;
    };

protected:
    Collective(const DeviceFunction& function, OpId op, const DevicePositions& positions, RendezvousTable& table);

    /// Where a device sits.
    struct Seat {
        std::size_t group = 0;
        std::size_t member = 0;
    };

    /// Moves this member's share: from all members' operands to the results of those that are here. All members have arrived.
    virtual void move(const Rendezvous& group, std::size_t member) const = 0;

    /// What `move` of a member's share reads of another one's operand; empty boxes may be among them.
    virtual std::vector<Box> reads(const Rendezvous& group, std::size_t member, std::size_t of) const = 0;

    /// What it makes for all members alike.
    virtual std::vector<Stretch> makesForAll(const Rendezvous& group, std::size_t member) const
    {
        static_cast<void>(group);
        static_cast<void>(member);
        return {};
    }

    /// The shape in which `reads` counts.
    virtual Shape readShape() const { return m_operandType.shape; }

    /// False for those that touch only the device's own memory.
    virtual bool meets() const { return true; }

    VirtualDevices& m_devices;
    ValueId m_in;
    ValueId m_out;
    std::vector<std::shared_ptr<Rendezvous>> m_groups;
    std::vector<Seat> m_seats; ///< by device

private:
    bool isSmall(bool isTimed) const;
    Result<Done> runSmall(std::int64_t device, Rendezvous& group) const;
    void moveShares(std::int64_t number, Rendezvous& group, bool isTimed) const;
    Rendezvous& groupHere(std::int64_t device) const { return *m_groups[m_seats[static_cast<std::size_t>(device)].group]; }
    Result<Done> getOperands(Rendezvous& group) const;
    void passResults(Rendezvous& group, bool isTimed) const;
    Result<Done> checkMembers(const Rendezvous& group) const;
    Result<Done> checkRanks(const Rendezvous& group) const;
    std::string description() const;

    std::string m_text;
    VirtualDevices::Place m_place;
    std::int64_t m_payloadBytes = 0;

    // What members must agree on.
    OpKind m_kind;
    CollectiveAttributes m_attributes;
    TensorType m_operandType;
    TensorType m_resultType;
    std::string m_axesText;
    const RendezvousTable& m_table;
    CollectiveAgreement m_agreement;
};

} // namespace meshwright
