// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/device_arrays.h"

#include "core/kernels/tile_table.h"
#include "core/partition/device_ops.h"
#include "core/program/truth_values.h"
#include "core/support/checked.h"
#include "core/support/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>

namespace meshwright {

namespace {

/// An array of the value that changes nothing when it is combined.
HostArray neutralArray(ReduceKind kind, const TensorType& type)
{
    const ConstantAttributes neutral = reduceIdentity(kind, type.dtype);
    if (const auto* real = std::get_if<double>(&neutral.data.value))
        return HostArray::filled(type, *real);
    HostArray made(type); // exact for integers of 64 bits too
    const auto* integer = std::get_if<std::int64_t>(&neutral.data.value);
    const void* one = integer != nullptr ? integer : static_cast<const void*>(std::get<2>(neutral.data.value)->data());
    const auto width = static_cast<std::size_t>(byteSize(type.dtype));
    for (std::size_t i = 0; i < static_cast<std::size_t>(type.elements()); ++i)
        std::memcpy(made.data() + i * width, one, width);
    return made;
}

/// Rectangles of arrays that go to other ranks, and those that come from them: a message for each rank, packed in an order that both ends
/// know.
class RankTransfers {
public:
    struct Rectangle {
        std::byte* array = nullptr;
        Shape shape;
        Shape start;
        Shape extent;
        std::int64_t width = 0; ///< bytes of an element

        std::int64_t bytes() const { return elementCount(extent) * width; }
    };

    explicit RankTransfers(Ranks* ranks)
        : m_ranks(ranks)
    {
    }

    void send(int to, Rectangle rectangle) { m_sent[to].push_back(std::move(rectangle)); }
    void receive(int from, Rectangle rectangle) { m_received[from].push_back(std::move(rectangle)); }

    Result<Done> exchange()
    {
        if (m_ranks == nullptr)
            return Done{};
        std::vector<Ranks::Outgoing> outgoing;
        std::vector<Ranks::Incoming> incoming;
        std::vector<AlignedBytes> memory;
        const auto memoryFor = [&](const std::vector<Rectangle>& rectangles) {
            std::int64_t bytes = 0;
            for (const Rectangle& rectangle : rectangles)
                bytes += rectangle.bytes();
            memory.emplace_back(bytes);
            return std::span(memory.back().data(), static_cast<std::size_t>(bytes));
        };
        for (const auto& [rank, rectangles] : m_sent) {
            const std::span bytes = memoryFor(rectangles);
            std::byte* at = bytes.data();
            for (const Rectangle& one : rectangles) {
                const Shape origin(one.shape.size(), 0);
                copyBox(at, {one.extent, origin}, one.array, {one.shape, one.start}, one.extent, one.width);
                at += one.bytes();
            }
            outgoing.push_back({rank, bytes});
        }
        for (const auto& [rank, rectangles] : m_received)
            incoming.push_back({rank, memoryFor(rectangles)});
        if (auto done = m_ranks->exchange(Ranks::kHostTag, outgoing, incoming); !done)
            return done;
        for (const Ranks::Incoming& message : incoming) {
            const std::byte* at = message.bytes.data();
            for (const Rectangle& one : m_received.at(message.from)) {
                const Shape origin(one.shape.size(), 0);
                copyBox(one.array, {one.shape, one.start}, at, {one.extent, origin}, one.extent, one.width);
                at += one.bytes();
            }
        }
        return Done{};
    }

private:
    Ranks* m_ranks;
    std::map<int, std::vector<Rectangle>> m_sent; ///< by rank
    std::map<int, std::vector<Rectangle>> m_received;
};

} // namespace

void combineInto(HostArray& whole, const HostArray& part, ReduceKind kind)
{
    const DType dtype = whole.type().dtype;
    const std::int64_t count = whole.type().elements();
    const Lane lane = laneOf(dtype);
    const TileStep combine = tileTable().combine(dtype == DType::Pred ? onTruths(kind) : kind, lane);
    if (!isNarrow(dtype)) {
        combine(whole.data(), whole.data(), part.data(), nullptr, count);
        return;
    }
    AlignedBytes a(count * laneBytes(lane));
    AlignedBytes b(count * laneBytes(lane));
    tileTable().load(dtype)(a.data(), whole.data(), nullptr, nullptr, count);
    tileTable().load(dtype)(b.data(), part.data(), nullptr, nullptr, count);
    combine(a.data(), a.data(), b.data(), nullptr, count);
    tileTable().store(dtype)(whole.data(), a.data(), nullptr, nullptr, count);
}

DeviceArrays::DeviceArrays(const ScheduledFunction& scheduled, const DevicePositions& positions, DeviceRanks ranks)
    : m_scheduled(scheduled)
    , m_positions(positions)
    , m_ranks(std::move(ranks))
    , m_devices(static_cast<std::size_t>(positions.count()))
{
    const BufferPlan& plan = m_scheduled.buffers;
    m_valuesIn.resize(plan.buffers.size());
    for (std::size_t value = 0; value < plan.bufferOf.size(); ++value) {
        if (plan.bufferOf[value] >= 0)
            m_valuesIn[static_cast<std::size_t>(plan.bufferOf[value])].push_back(ValueId{value});
    }
    for (std::int64_t number = 0; number < count(); ++number) {
        DeviceMemory& device = m_devices[static_cast<std::size_t>(number)];
        device.addresses.assign(function().values.size(), nullptr);
        if (!m_ranks.isHere(number))
            continue;
        device.arena = AlignedBytes(plan.arenaBytes);
        device.hostArena = AlignedBytes(plan.hostBytes);
        for (std::size_t value = 0; value < function().values.size(); ++value) {
            if (plan.bufferOf[value] < 0)
                continue;
            const Buffer& buffer = plan.buffers[static_cast<std::size_t>(plan.bufferOf[value])];
            device.addresses[value] = (buffer.onHost ? device.hostArena : device.arena).data() + buffer.offset;
        }
    }
}

std::int64_t DeviceArrays::highWaterBytes() const
{
    std::int64_t bytes = 0;
    for (const DeviceMemory& device : m_devices)
        bytes = std::max(bytes, ceilDiv(device.touchedBytes, kBufferAlignment) * kBufferAlignment);
    return bytes;
}

Result<Done> DeviceArrays::write(std::size_t argument, const HostArray& whole)
{
    const ValueId value = function().arguments()[argument];
    const TensorType wanted{function()[value].type.dtype, m_scheduled.device.globalShapes[value.at()]};
    if (whole.type() != wanted)
        return Problem{"MW1503",
            fmt::format("argument {} ({}) is {}, got {}", argument, valueText(function(), value), typeText(wanted),
                typeText(whole.type()))};
    std::optional<HostArray> nothing; // on all but the first device of those that hold parts of one sum
    for (std::int64_t device = 0; device < count(); ++device) {
        const bool isFirst = partOf(value, device) == 0;
        if (!isFirst && !nothing)
            nothing = neutralArray(function()[value].sharding->unreducedKind, wanted);
        writeBox(value, device, isFirst ? whole : *nothing, startsOf(boxOf(value, device)));
    }
    return Done{};
}

/// Puts what a device holds of a value there: a box of `source`, which starts at `start` in it.
void DeviceArrays::writeBox(ValueId value, std::int64_t device, const HostArray& source, const Shape& start)
{
    if (!m_ranks.isHere(device))
        return;
    const TensorType& local = function()[value].type;
    const IndexBox box = boxOf(value, device);
    std::byte* target = addressOf(value, device);
    m_devices[static_cast<std::size_t>(device)].touch(target, local.bytes());
    if (boxElements(box) < local.elements()) // padding: anything, but always the same
        std::memset(target, 0, static_cast<std::size_t>(local.bytes()));
    copyBox(target, {local.shape, Shape(local.shape.size(), 0)}, source.data(), {source.type().shape, start}, extentsOf(box),
        byteSize(local.dtype));
}

void DeviceArrays::writePiece(ValueId value, std::int64_t device, const HostArray& piece)
{
    writeBox(value, device, piece, Shape(piece.type().shape.size(), 0));
}

HostArray DeviceArrays::heldPiece(ValueId value, std::int64_t device) const
{
    const TensorType& local = function()[value].type;
    const std::span bytes(addressOf(value, device), static_cast<std::size_t>(local.bytes()));
    return HostArray::fromBytes(local, bytes).slice(wholeBox(extentsOf(boxOf(value, device))));
}

HostArray DeviceArrays::readPiece(ValueId value, std::int64_t device, Ranks::Readers readers) const
{
    HostArray piece = m_ranks.isHere(device)
        ? heldPiece(value, device)
        : HostArray(TensorType{function()[value].type.dtype, extentsOf(boxOf(value, device))});
    if (m_ranks.ranks == nullptr)
        return piece;
    const Ranks::Shared shared{
        m_ranks.rankOf[static_cast<std::size_t>(device)], {piece.data(), static_cast<std::size_t>(piece.bytes())}};
    static_cast<void>(m_ranks.ranks->share({&shared, 1}, readers));
    return piece;
}

HostArray DeviceArrays::read(ValueId value) const
{
    HostArray whole = readPart(value, 0);
    const std::int64_t parts = function()[value].sharding ? shardCount(function()[value].sharding->unreduced) : 1;
    for (std::int64_t part = 1; part < parts; ++part)
        combineInto(whole, readPart(value, part), function()[value].sharding->unreducedKind);
    return whole;
}

/// The whole of a value, or of one of the parts that combine to it.
HostArray DeviceArrays::readPart(ValueId value, std::int64_t part) const
{
    HostArray whole(TensorType{function()[value].type.dtype, m_scheduled.device.globalShapes[value.at()]});
    const std::int64_t width = byteSize(whole.type().dtype);
    const Shape& local = function()[value].type.shape;
    const Shape origin(local.size(), 0);
    std::map<IndexBox, std::vector<std::int64_t>> pieces;
    for (std::int64_t device = 0; device < count(); ++device) {
        if (partOf(value, device) == part)
            pieces[boxOf(value, device)].push_back(device);
    }
    for (const auto& [box, holders] : pieces) {
        const auto holder = std::find_if(holders.begin(), holders.end(), [this](std::int64_t d) { return m_ranks.isHere(d); });
        if (holder != holders.end())
            copyBox(whole.data(), {whole.type().shape, startsOf(box)}, addressOf(value, *holder), {local, origin}, extentsOf(box),
                width);
        if (m_ranks.ranks != nullptr)
            bringPiece(value, box, holders, whole);
    }
    return whole;
}

std::int64_t DeviceArrays::bytesOf(ValueId value, const IndexBox& box) const
{
    return boxElements(box) * byteSize(function()[value].type.dtype);
}

/// Sends a piece from the rank of its first holder to the ranks that have none.
void DeviceArrays::bringPiece(
    ValueId value, const IndexBox& box, const std::vector<std::int64_t>& holders, HostArray& whole) const
{
    std::set<int> having;
    for (const std::int64_t holder : holders)
        having.insert(m_ranks.rankOf[static_cast<std::size_t>(holder)]);
    const int self = m_ranks.ranks->rank();
    const int giver = m_ranks.rankOf[static_cast<std::size_t>(holders.front())];
    if (self != giver && having.contains(self))
        return;
    AlignedBytes memory(bytesOf(value, box));
    const std::span bytes(memory.data(), static_cast<std::size_t>(memory.size()));
    const Shape extents = extentsOf(box);
    const Shape origin(extents.size(), 0);
    const std::int64_t width = byteSize(whole.type().dtype);
    std::vector<Ranks::Outgoing> outgoing;
    std::vector<Ranks::Incoming> incoming;
    if (self == giver) {
        copyBox(memory.data(), {extents, origin}, whole.data(), {whole.type().shape, startsOf(box)}, extents, width);
        for (int rank = 0; rank < m_ranks.ranks->size(); ++rank) {
            if (!having.contains(rank))
                outgoing.push_back({rank, bytes});
        }
    } else {
        incoming.push_back({giver, bytes});
    }
    if (m_ranks.ranks->exchange(Ranks::kHostTag, outgoing, incoming) && self != giver)
        copyBox(whole.data(), {whole.type().shape, startsOf(box)}, memory.data(), {extents, origin}, extents, width);
}

bool DeviceArrays::replicasAgree(ValueId value) const
{
    std::map<std::pair<std::int64_t, IndexBox>, std::vector<std::int64_t>> holders;
    for (std::int64_t device = 0; device < count(); ++device)
        holders[{partOf(value, device), boxOf(value, device)}].push_back(device);
    const auto areEqual = [&](const auto& contentOf) {
        return std::all_of(holders.begin(), holders.end(), [&](const auto& piece) {
            const std::vector<std::int64_t>& devices = piece.second;
            const auto first = contentOf(devices.front());
            return std::all_of(
                devices.begin() + 1, devices.end(), [&](std::int64_t device) { return contentOf(device) == first; });
        });
    };
    if (m_ranks.ranks == nullptr)
        return areEqual([&](std::int64_t device) { return heldPiece(value, device); });
    // Processes exchange digests of the pieces.
    constexpr std::size_t kDigestBytes = 64;
    std::vector<std::string> digests(static_cast<std::size_t>(count()), std::string(kDigestBytes, ' '));
    std::vector<Ranks::Shared> shared;
    for (std::int64_t device = 0; device < count(); ++device) {
        std::string& digest = digests[static_cast<std::size_t>(device)];
        if (m_ranks.isHere(device)) {
            const HostArray piece = heldPiece(value, device);
            digest = sha256Text({reinterpret_cast<const char*>(piece.data()), static_cast<std::size_t>(piece.bytes())});
        }
        assert(digest.size() == kDigestBytes);
        shared.push_back({m_ranks.rankOf[static_cast<std::size_t>(device)], std::as_writable_bytes(std::span(digest))});
    }
    static_cast<void>(m_ranks.ranks->share(shared, Ranks::Readers::All));
    return areEqual([&](std::int64_t device) { return digests[static_cast<std::size_t>(device)]; });
}

Result<std::int64_t> DeviceArrays::copyFrom(
    std::size_t argument, const DeviceArrays& from, ValueId source, const std::stop_token& stop)
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
    RankTransfers transfers(m_ranks.ranks);
    for (std::int64_t device = 0; device < count(); ++device) {
        if (stop.stop_requested())
            return VirtualDevices::interrupted();
        const bool isHere = m_ranks.isHere(device);
        m_devices[static_cast<std::size_t>(device)].touch(addressOf(target, device), function()[target].type.bytes());
        const IndexBox wanted = boxOf(target, device);
        const DeviceId self = m_positions.mesh(0).deviceAt(device);
        if (isHere && boxElements(wanted) < function()[target].type.elements())
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
            const bool isGiverHere = from.m_ranks.isHere(giver);
            const Shape extents = extentsOf(common);
            const Shape at = startIn(common, wanted);
            const Shape givenAt = startIn(common, box);
            const CopyEnd to{function()[target].type.shape, at};
            const CopyEnd given{from.function()[source].type.shape, givenAt};
            if (isHere && isGiverHere)
                copyBox(addressOf(target, device), to, from.addressOf(source, giver), given, extents, width);
            else if (isHere)
                transfers.receive(from.m_ranks.rankOf[static_cast<std::size_t>(giver)],
                    {addressOf(target, device), function()[target].type.shape, at, extents, width});
            else if (isGiverHere)
                transfers.send(m_ranks.rankOf[static_cast<std::size_t>(device)],
                    {from.addressOf(source, giver), from.function()[source].type.shape, givenAt, extents, width});
        }
    }
    if (const auto done = transfers.exchange(); !done)
        return done.error();
    return moved;
}

/// Everything in the buffer of a value moves with it.
void DeviceArrays::place(ValueId value, std::int64_t device, std::byte* at)
{
    const std::vector<std::int32_t>& bufferOf = m_scheduled.buffers.bufferOf;
    const std::int32_t buffer = bufferOf[value.at()];
    std::vector<std::byte*>& addresses = m_devices[static_cast<std::size_t>(device)].addresses;
    if (buffer < 0)
        addresses[value.at()] = at;
    for (const ValueId other : buffer < 0 ? std::vector<ValueId>() : m_valuesIn[static_cast<std::size_t>(buffer)])
        addresses[other.at()] = at;
}

/// The distinct pieces of a value and the devices that hold each.
std::map<IndexBox, std::vector<std::int64_t>> DeviceArrays::holdersOf(ValueId value) const
{
    std::map<IndexBox, std::vector<std::int64_t>> holders;
    for (std::int64_t device = 0; device < count(); ++device)
        holders[boxOf(value, device)].push_back(device);
    return holders;
}

} // namespace meshwright
