// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/collectives.h"

#include "core/devices/clocks.h"
#include "core/kernels/stream_copy.h"
#include "core/kernels/tile_table.h"
#include "core/support/checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

namespace meshwright {

Result<DevicePositions> DevicePositions::create(std::vector<NamedMesh> meshes, std::int64_t virtualDevices)
{
    assert(!meshes.empty());
    DevicePositions positions;
    positions.m_meshes = std::move(meshes);
    const Mesh& first = positions.m_meshes.front().mesh;
    Problems problems;
    if (first.deviceCount() > virtualDevices)
        problems.push_back({"MW1510",
            fmt::format("the mesh {} has {} devices, but only {} virtual devices run", first.text(), first.deviceCount(),
                virtualDevices)});
    std::map<DeviceId, std::int64_t> deviceOf;
    for (std::int64_t position = 0; position < first.deviceCount(); ++position)
        deviceOf[first.deviceAt(position)] = position;
    for (const NamedMesh& named : positions.m_meshes) {
        std::vector<std::int64_t> byDevice(static_cast<std::size_t>(first.deviceCount()), -1);
        std::vector<std::int64_t> byPosition;
        for (std::int64_t position = 0; position < named.mesh.deviceCount(); ++position) {
            const auto found = deviceOf.find(named.mesh.deviceAt(position));
            if (found == deviceOf.end() || named.mesh.deviceCount() != first.deviceCount()) {
                problems.push_back(
                    {"MW1510", fmt::format("the meshes {} and {} differ in their devices", first.text(), named.mesh.text())});
                break;
            }
            byDevice[static_cast<std::size_t>(found->second)] = position;
            byPosition.push_back(found->second);
        }
        positions.m_positions.push_back(std::move(byDevice));
        positions.m_devices.push_back(std::move(byPosition));
    }
    if (!problems.empty())
        return problems;
    return positions;
}

IndexBox DevicePositions::boxOf(const Shape& whole, const TensorSharding& sharding, std::int64_t device) const
{
    return shardBox(whole, sharding, mesh(sharding.mesh), positionOf(sharding.mesh, device));
}

const std::vector<std::shared_ptr<Rendezvous>>& RendezvousTable::groups(const std::vector<std::vector<std::int64_t>>& groups)
{
    const auto [at, isNew] = m_groups.try_emplace(groups);
    if (isNew) {
        for (const std::vector<std::int64_t>& devices : groups) {
            auto group = std::make_shared<Rendezvous>();
            group->devices = devices;
            group->members.resize(devices.size());
            group->shares.resize(devices.size());
            for (std::size_t member = 0; member < devices.size(); ++member) {
                if (isHere(devices[member]))
                    group->here.push_back(member);
            }
            const int tag = m_devices.ranks() != nullptr ? m_devices.ranks()->newTag()
                                                         : 0; // also of those that need none: ranks count alike
            auto meeting = m_devices.makeMeeting(!group->here.empty() && group->here.size() < devices.size()); // likewise
            if (meeting != nullptr)
                group->elsewhere = meetingOf(devices, tag, std::move(meeting));
            group->posted = m_devices.makeBarrier(static_cast<std::int64_t>(group->here.size()));
            group->moved = m_devices.makeBarrier(static_cast<std::int64_t>(group->here.size()));
            at->second.push_back(std::move(group));
        }
    }
    return at->second;
}

std::unique_ptr<RankMeeting> RendezvousTable::meetingOf(
    const std::vector<std::int64_t>& devices, int tag, std::shared_ptr<Meeting> shared) const
{
    auto meeting = std::make_unique<RankMeeting>();
    meeting->meeting = std::move(shared);
    meeting->ranks = m_devices.ranks();
    meeting->tag = tag;
    for (const std::int64_t device : devices)
        meeting->rankOf.push_back(rankOf(device));
    meeting->operands.resize(devices.size());
    meeting->outgoing.resize(static_cast<std::size_t>(meeting->ranks->size()));
    meeting->incoming.resize(static_cast<std::size_t>(meeting->ranks->size()));
    meeting->agreements.resize(static_cast<std::size_t>(meeting->ranks->size()));
    return meeting;
}

Collective::Collective(const DeviceFunction& function, OpId id, const DevicePositions& positions, RendezvousTable& table)
    : m_devices(table.devices())
    , m_in(function.function[id].operands[0])
    , m_out(function.function[id].results[0])
    , m_seats(static_cast<std::size_t>(positions.count()))
    , m_kind(function.function[id].kind)
    , m_attributes(function.function[id].as<CollectiveAttributes>())
    , m_operandType(function.function[m_in].type)
    , m_resultType(function.function[m_out].type)
    , m_table(table)
{
    const Op& op = function.function[id];
    const auto& attributes = m_attributes;
    m_text = fmt::format("{} of {}", opName(op.kind),
        attributes.cause.value.empty() ? valueText(function.function, m_in) : attributes.cause.value);
    m_place = [this] { return description(); };
    m_payloadBytes = op.kind == OpKind::AllSlice ? 0 : meshwright::payloadBytes(function.function, id);

    const auto& sharding = function.function[m_in].sharding;
    const std::int32_t mesh = sharding ? sharding->mesh : 0;
    m_axesText = axesText(attributes.axes, positions.mesh(mesh));
    std::vector<std::vector<std::int64_t>> groups;
    if (attributes.pieces && !attributes.pieces->groups.empty()) {
        groups = attributes.pieces->groups;
        if (groups != deviceGroups(attributes.axes, positions.mesh(mesh)))
            m_axesText += fmt::format(", in groups {}", groups);
    } else if (op.kind == OpKind::CollectivePermute && attributes.axes.empty()) {
        groups.emplace_back(static_cast<std::size_t>(positions.count()));
        std::iota(groups.front().begin(), groups.front().end(), std::int64_t{0});
    } else {
        groups = deviceGroups(attributes.axes, positions.mesh(mesh));
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
        for (std::size_t m = 0; m < groups[g].size(); ++m) {
            groups[g][m] = positions.deviceAt(mesh, groups[g][m]);
            m_seats[static_cast<std::size_t>(groups[g][m])] = {g, m};
        }
    }
    m_groups = table.groups(groups);
    m_agreement = agreementOf(m_kind, m_operandType, m_resultType, m_attributes, m_text, description());
}

namespace {

constexpr std::int64_t kSmallCollectiveBytes = 128 * 1024; ///< of all members together

} // namespace

bool Collective::isSmall(bool isTimed) const
{
    const auto members = static_cast<std::int64_t>(m_groups.front()->members.size());
    return members > 1 && !isTimed && m_payloadBytes * members <= kSmallCollectiveBytes;
}

Result<Done> Collective::run(std::int64_t device, Addresses addresses, CollectiveTimes* times) const
{
    const Seat seat = m_seats[static_cast<std::size_t>(device)];
    Rendezvous& group = *m_groups[seat.group];
    if (meets() && group.elsewhere == nullptr && isSmall(times != nullptr)) {
        group.members[seat.member] = {addresses[m_in.at()], addresses[m_out.at()], addresses, this};
        return runSmall(device, group);
    }
    if (meets() && group.members.size() > 1) {
        const Result<Started> started = start(device, addresses, times != nullptr);
        if (!started)
            return started.error();
        return finish(device, *started, times);
    }
    // Touches nobody else's memory, so it needs no seat in the group.
    const double begun = times != nullptr ? wallSeconds() : 0.0;
    const double cpu = times != nullptr ? threadCpuSeconds() : 0.0;
    Rendezvous alone;
    alone.devices = {device};
    alone.members = {{addresses[m_in.at()], addresses[m_out.at()], addresses, this}};
    alone.here = {0};
    move(alone, 0);
    if (times != nullptr) {
        const double ended = wallSeconds();
        *times = {begun, begun, ended, ended, threadCpuSeconds() - cpu};
    }
    return Done{};
}

/// Little data is moved by whoever arrives last: the others are woken once, not twice. They look at no member, who may be on its way to the
/// next collective.
Result<Done> Collective::runSmall(std::int64_t device, Rendezvous& group) const
{
    const auto moveAll = [&] {
        group.isDone = checkMembers(group).has_value();
        for (std::size_t m = 0; m < group.members.size() && group.isDone; ++m)
            move(group, m);
    };
    if (!m_devices.wait(m_table.numberOf(device), *group.posted, m_place, moveAll))
        return VirtualDevices::interrupted();
    return group.isDone ? Result<Done>(Done{}) : checkMembers(group);
}

Result<Collective::Started> Collective::start(std::int64_t device, Addresses addresses, bool isTimed) const
{
    const Seat seat = m_seats[static_cast<std::size_t>(device)];
    Rendezvous& group = *m_groups[seat.group];
    group.members[seat.member] = {addresses[m_in.at()], addresses[m_out.at()], addresses, this};
    Started started;
    started.moved = group.moved->round();
    if (isTimed)
        started.arrived = wallSeconds();
    Result<Done> agreed = Done{};
    const Barrier::Arrival arrival = group.posted->arrive([&] {
        agreed = checkMembers(group);
        if (group.elsewhere != nullptr && agreed) {
            const VirtualDevices::WaitElsewhere waits(m_devices, m_table.numberOf(device), m_place);
            agreed = getOperands(group);
        }
        group.isDone = false;
        group.begun = isTimed ? wallSeconds() : 0.0;
        group.nextShare.store(agreed ? 0 : group.here.size(), std::memory_order_relaxed);
    });
    started.posted = arrival.round;
    if (arrival.isAborted)
        return VirtualDevices::interrupted();
    if (!agreed)
        return agreed.error();
    if (arrival.isLast)
        moveShares(m_table.numberOf(device), group, isTimed);
    return started;
}

Result<Done> Collective::finish(std::int64_t device, const Started& started, CollectiveTimes* times) const
{
    const Seat seat = m_seats[static_cast<std::size_t>(device)];
    Rendezvous& group = *m_groups[seat.group];
    const std::int64_t number = m_table.numberOf(device);
    if (!m_devices.await(number, *group.posted, started.posted, m_place))
        return VirtualDevices::interrupted();
    moveShares(number, group, times != nullptr);
    if (!m_devices.await(number, *group.moved, started.moved, m_place))
        return VirtualDevices::interrupted();
    if (group.elsewhere != nullptr && !group.elsewhere->failure.empty())
        return group.elsewhere->failure;
    if (times != nullptr) {
        const Rendezvous::Share& share = group.shares[seat.member];
        *times = {started.arrived, group.begun, share.moved, share.moved, share.cpuSeconds};
        for (const Rendezvous::Share& other : group.shares)
            times->finished = std::max(times->finished, other.moved);
        if (group.elsewhere != nullptr)
            times->finished = std::max(times->finished, group.elsewhere->ended);
    }
    return Done{};
}

/// Moves shares that nobody has taken yet. Who comes late finds none: those of the next collective wait for it.
void Collective::moveShares(std::int64_t number, Rendezvous& group, bool isTimed) const
{
    for (;;) {
        const std::size_t share = group.nextShare.fetch_add(1, std::memory_order_relaxed);
        if (share >= group.here.size())
            return;
        const std::size_t member = group.here[share];
        const double cpu = isTimed ? threadCpuSeconds() : 0.0;
        move(group, member);
        if (isTimed)
            group.shares[member] = {wallSeconds(), threadCpuSeconds() - cpu};
        if (group.elsewhere == nullptr)
            group.moved->arrive();
        else
            group.moved->arrive([&] {
                const VirtualDevices::WaitElsewhere waits(m_devices, number, m_place);
                passResults(group, isTimed);
            });
    }
}

namespace {

/// Memory for so many bytes, whatever was in it.
std::byte* grown(AlignedBytes& memory, std::int64_t bytes)
{
    if (memory.size() < bytes)
        memory = AlignedBytes(bytes);
    return memory.data();
}

template <typename T>
std::span<std::byte> bytesOf(T& value)
{
    return std::as_writable_bytes(std::span(&value, 1));
}

/// Messages to and from the other ranks of a group, packed piece by piece in an order that both ends know.
class RankMessages {
public:
    explicit RankMessages(RankMeeting& meeting)
        : m_meeting(meeting)
        , m_outgoing(meeting.outgoing.size(), 0)
        , m_incoming(meeting.incoming.size(), 0)
    {
    }

    void countOutgoing(int rank, std::int64_t bytes) { m_outgoing[static_cast<std::size_t>(rank)] += bytes; }
    void countIncoming(int rank, std::int64_t bytes) { m_incoming[static_cast<std::size_t>(rank)] += bytes; }

    /// After all has been counted.
    void allocate()
    {
        for (std::size_t rank = 0; rank < m_outgoing.size(); ++rank) {
            grown(m_meeting.outgoing[rank], m_outgoing[rank]);
            grown(m_meeting.incoming[rank], m_incoming[rank]);
        }
        m_packed.assign(m_outgoing.size(), 0);
        m_unpacked.assign(m_incoming.size(), 0);
    }

    /// Where the next piece is.
    std::byte* pack(int rank, std::int64_t bytes) { return next(m_meeting.outgoing, m_packed, rank, bytes); }
    const std::byte* unpack(int rank, std::int64_t bytes) { return next(m_meeting.incoming, m_unpacked, rank, bytes); }

    Result<Done> exchange(const StopFlag& stop)
    {
        const auto [outgoing, incoming] = all();
        return m_meeting.ranks->exchange(m_meeting.tag, outgoing, incoming, &stop);
    }

    /// The same after all ranks of the group have met: `check` sees what they have come to, and says whether to go on.
    Result<Done> meet(const CollectiveAgreement& own, const std::function<Result<Done>()>& check, const StopFlag& stop)
    {
        const std::set<int> ranks(m_meeting.rankOf.begin(), m_meeting.rankOf.end());
        m_meeting.agreements[static_cast<std::size_t>(m_meeting.ranks->rank())] = own; // what is sent stays as it is
        std::vector<Ranks::Outgoing> coming;
        std::vector<Ranks::Incoming> others;
        for (const int rank : ranks) {
            if (rank == m_meeting.ranks->rank())
                continue;
            coming.push_back({rank, bytesOf(m_meeting.agreements[static_cast<std::size_t>(m_meeting.ranks->rank())])});
            others.push_back({rank, bytesOf(m_meeting.agreements[static_cast<std::size_t>(rank)])});
        }
        const auto [outgoing, incoming] = all();
        return m_meeting.ranks->exchangeAgreed(m_meeting.tag, {coming, others}, check, {outgoing, incoming}, &stop);
    }

private:
    std::pair<std::vector<Ranks::Outgoing>, std::vector<Ranks::Incoming>> all()
    {
        std::vector<Ranks::Outgoing> outgoing;
        std::vector<Ranks::Incoming> incoming;
        for (std::size_t rank = 0; rank < m_outgoing.size(); ++rank) {
            const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count); };
            outgoing.push_back({static_cast<int>(rank), {m_meeting.outgoing[rank].data(), bytes(m_outgoing[rank])}});
            incoming.push_back({static_cast<int>(rank), {m_meeting.incoming[rank].data(), bytes(m_incoming[rank])}});
        }
        return {std::move(outgoing), std::move(incoming)};
    }

    static std::byte* next(std::vector<AlignedBytes>& memory, std::vector<std::int64_t>& at, int rank, std::int64_t bytes)
    {
        const auto index = static_cast<std::size_t>(rank);
        std::byte* place = memory[index].data() + at[index];
        at[index] += bytes;
        return place;
    }

    RankMeeting& m_meeting;
    std::vector<std::int64_t> m_outgoing; ///< bytes by rank
    std::vector<std::int64_t> m_incoming;
    std::vector<std::int64_t> m_packed;
    std::vector<std::int64_t> m_unpacked;
};

} // namespace

/// Brings what the shares here read of operands elsewhere, and sends what shares elsewhere read of those here.
Result<Done> Collective::getOperands(Rendezvous& group) const
{
    RankMeeting& meeting = *group.elsewhere;
    meeting.failure.clear();
    const int self = meeting.ranks->rank();
    const Shape shape = readShape();
    const Shape origin(shape.size(), 0);
    const std::int64_t width = byteSize(m_operandType.dtype);
    // Calls `piece(reader, holder, box, bytes)` for all that passes between two ranks, in the order of the shares, then of the operands.
    const auto forEachPiece = [&](const auto& piece) {
        for (std::size_t reader = 0; reader < group.members.size(); ++reader) {
            for (std::size_t holder = 0; holder < group.members.size(); ++holder) {
                const bool isOurs = meeting.rankOf[reader] == self || meeting.rankOf[holder] == self;
                if (meeting.rankOf[reader] == meeting.rankOf[holder] || !isOurs)
                    continue;
                for (const Box& box : reads(group, reader, holder)) {
                    if (const std::int64_t bytes = elementCount(box.extent) * width; bytes > 0)
                        piece(reader, holder, box, bytes);
                }
            }
        }
    };
    RankMessages messages(meeting);
    forEachPiece([&](std::size_t reader, std::size_t holder, const Box&, std::int64_t bytes) {
        if (meeting.rankOf[holder] == self)
            messages.countOutgoing(meeting.rankOf[reader], bytes);
        else
            messages.countIncoming(meeting.rankOf[holder], bytes);
    });
    messages.allocate();
    forEachPiece([&](std::size_t reader, std::size_t holder, const Box& box, std::int64_t bytes) {
        if (meeting.rankOf[holder] == self)
            copyBox(messages.pack(meeting.rankOf[reader], bytes), {box.extent, origin}, group.members[holder].in,
                {shape, box.start}, box.extent, width);
    });
    std::optional<VirtualDevices::Meet> meets(std::in_place, m_devices, *meeting.meeting);
    const auto check = [&] {
        meets.reset();
        return checkRanks(group);
    };
    if (auto done = messages.meet(m_agreement, check, m_devices.stopFlag()); !done)
        return done;
    for (std::size_t member = 0; member < group.members.size(); ++member) {
        if (meeting.rankOf[member] != self)
            group.members[member].in = grown(meeting.operands[member], m_operandType.bytes());
    }
    forEachPiece([&](std::size_t, std::size_t holder, const Box& box, std::int64_t bytes) {
        if (meeting.rankOf[holder] != self)
            copyBox(meeting.operands[holder].data(), {shape, box.start}, messages.unpack(meeting.rankOf[holder], bytes),
                {box.extent, origin}, box.extent, width);
    });
    return Done{};
}

/// Sends what the shares here have made for everybody, and puts what others' have made into the results here.
void Collective::passResults(Rendezvous& group, bool isTimed) const
{
    RankMeeting& meeting = *group.elsewhere;
    const int self = meeting.ranks->rank();
    const std::set<int> ranks(meeting.rankOf.begin(), meeting.rankOf.end());
    const auto forEachStretch = [&](bool here, const auto& stretch) {
        for (std::size_t member = 0; member < group.members.size(); ++member) {
            if ((meeting.rankOf[member] == self) != here)
                continue;
            for (const Stretch& made : makesForAll(group, member)) {
                if (made.bytes > 0)
                    stretch(meeting.rankOf[member], made);
            }
        }
    };
    const auto forEachOther = [&](const auto& call) {
        for (const int rank : ranks) {
            if (rank != self)
                call(rank);
        }
    };
    RankMessages messages(meeting);
    forEachStretch(
        true, [&](int, const Stretch& made) { forEachOther([&](int rank) { messages.countOutgoing(rank, made.bytes); }); });
    forEachStretch(false, [&](int rank, const Stretch& made) { messages.countIncoming(rank, made.bytes); });
    messages.allocate();
    const Addresses first = group.members[group.here.front()].addresses;
    forEachStretch(true, [&](int, const Stretch& made) {
        forEachOther([&](int rank) {
            std::memcpy(
                messages.pack(rank, made.bytes), first[made.value.at()] + made.first, static_cast<std::size_t>(made.bytes));
        });
    });
    if (auto done = messages.exchange(m_devices.stopFlag()); !done) {
        meeting.failure = done.error();
        return;
    }
    forEachStretch(false, [&](int rank, const Stretch& made) {
        const std::byte* from = messages.unpack(rank, made.bytes);
        for (const std::size_t member : group.here)
            std::memcpy(
                group.members[member].addresses[made.value.at()] + made.first, from, static_cast<std::size_t>(made.bytes));
    });
    meeting.ended = isTimed ? wallSeconds() : 0.0;
}

/// "all_reduce of grad.layers.0.w over data (f32[4,8] to f32[4,8])".
std::string Collective::description() const
{
    const bool reduces = m_kind == OpKind::AllReduce || m_kind == OpKind::ReduceScatter;
    return fmt::format("{}{}{} ({} to {})", m_text,
        reduces && m_attributes.kind != ReduceKind::Sum ? fmt::format(" by {}", reduceKindName(m_attributes.kind)) : "",
        m_axesText.empty() ? "" : " over " + m_axesText, typeText(m_operandType), typeText(m_resultType));
}

namespace {

Problem differingProblem(
    const std::string& difference, std::int64_t first, const std::string& its, std::int64_t second, const std::string& others)
{
    return {"MW1505",
        fmt::format(
            "collectives of one group differ in {}: device {} is in {}, device {} in {}", difference, first, its, second, others),
        "the devices' programs must have the same collectives in the same order"};
}

} // namespace

/// All members of the group come to the same answer, so that it does not matter whose is heard.
Result<Done> Collective::checkMembers(const Rendezvous& group) const
{
    const Collective& first = *group.members[group.here.front()].collective;
    for (const std::size_t m : group.here) {
        const Collective& other = *group.members[m].collective;
        if (&other == &first) // what all but hand-made programs do
            continue;
        if (const std::string difference = differenceOf(first.m_agreement, other.m_agreement); !difference.empty())
            return differingProblem(difference, m_table.numberOf(group.devices[group.here.front()]), first.description(),
                m_table.numberOf(group.devices[m]), other.description());
    }
    return Done{};
}

/// The same for the other ranks, whose members agree with each other.
Result<Done> Collective::checkRanks(const Rendezvous& group) const
{
    const RankMeeting& meeting = *group.elsewhere;
    const std::size_t own = group.here.front();
    for (std::size_t m = 0; m < group.members.size(); ++m) {
        if (meeting.rankOf[m] == meeting.rankOf[own])
            continue;
        const CollectiveAgreement& theirs = meeting.agreements[static_cast<std::size_t>(meeting.rankOf[m])];
        const std::string difference = differenceOf(m_agreement, theirs);
        if (difference.empty())
            continue;
        const std::int64_t here = m_table.numberOf(group.devices[own]);
        const std::int64_t there = m_table.numberOf(group.devices[m]);
        return own < m ? differingProblem(difference, here, description(), there, descriptionOf(theirs))
                       : differingProblem(difference, there, descriptionOf(theirs), here, description());
    }
    return Done{};
}

} // namespace meshwright
