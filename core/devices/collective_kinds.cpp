// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/collectives.h"

#include "core/kernels/stream_copy.h"
#include "core/kernels/tile_table.h"
#include "core/program/truth_values.h"
#include "core/support/checked.h"

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

constexpr std::int64_t kReducedTile
    = 256; ///< elements: the sums of the tile and the next tiles of eight members fit the first-level cache
constexpr std::int64_t kSpreadTile = 64; ///< when sums are stored past the caches: reading and writing memory alternate quickly

/// Combines the same stretch of all members' operands, in the group's order, tile by tile; `store` gets each finished tile.
class Combiner {
public:
    Combiner(ReduceKind kind, DType dtype)
        : m_dtype(dtype)
        , m_width(byteSize(dtype))
        , m_lane(laneOf(dtype))
    {
        if (dtype == DType::Pred)
            kind = onTruths(kind);
        m_combine = tileTable().combine(kind, m_lane);
        m_combineMembers = tileTable().combineMembers(kind, m_lane);
        assert(m_combine != nullptr && m_combineMembers != nullptr);
    }

    /// `sourceOf(member)` is the stretch in that member's operand; `store(tile, offset, bytes)` gets elements of the type.
    template <typename Source, typename Store>
    void run(std::size_t members, std::int64_t count, const StopFlag& stop, Source sourceOf, Store store,
        std::int64_t tileSize = kReducedTile) const
    {
        alignas(64) std::byte sum[kReducedTile * 8];
        alignas(64) std::byte next[kReducedTile * 8];
        std::vector<const std::byte*> sources(members);
        for (std::size_t member = 0; member < members; ++member)
            sources[member] = sourceOf(member);
        for (std::int64_t first = 0; first < count && !stop.isSet(); first += tileSize) {
            const std::int64_t size = std::min(tileSize, count - first);
            const std::int64_t offset = first * m_width;
            for (const std::byte* source : sources)
                fetchAhead(source + offset + size * m_width, std::min(tileSize, count - first - size) * m_width);
            if (isNarrow(m_dtype)) {
                for (std::size_t member = 0; member < members; ++member) {
                    tileTable().load(m_dtype)(member == 0 ? sum : next, sources[member] + offset, nullptr, nullptr, size);
                    if (member > 0)
                        m_combine(sum, sum, next, nullptr, size);
                }
                tileTable().store(m_dtype)(next, sum, nullptr, nullptr, size);
                store(next, offset, size * m_width);
                continue;
            }
            if (members == 1) {
                store(sources[0] + offset, offset, size * m_width);
                continue;
            }
            m_combineMembers(sum, sources.data(), members, offset, size);
            store(sum, offset, size * m_width);
        }
    }

private:
    DType m_dtype;
    std::int64_t m_width;
    Lane m_lane;
    TileStep m_combine = nullptr;
    MemberStep m_combineMembers = nullptr;
};

class AllReduce final : public Collective {
public:
    AllReduce(const DeviceFunction& function, OpId op, const DevicePositions& positions, RendezvousTable& table)
        : Collective(function, op, positions, table)
        , m_type(function.function[m_in].type)
        , m_combiner(function.function[op].as<CollectiveAttributes>().kind, m_type.dtype)
    {
    }

protected:
    /// This member owns one slice: it combines it and writes it to everybody, which is safe in place since nobody else touches it.
    void move(const Rendezvous& group, std::size_t member) const override
    {
        const auto members = static_cast<std::int64_t>(group.members.size());
        const std::int64_t width = byteSize(m_type.dtype);
        const Slice slice = sliceOf(members, member);
        const bool isLarge = members * m_type.elements() * width >= kStreamedBytes;
        std::vector<std::byte*> streamed;
        for (const std::size_t to : group.here) {
            const Rendezvous::Member& other = group.members[to];
            if (isLarge && other.out != other.in) // in place it has just been read
                streamed.push_back(other.out + slice.first * width);
        }
        m_combiner.run(
            group.members.size(), slice.count, m_devices.stopFlag(),
            [&](std::size_t m) { return group.members[m].in + slice.first * width; },
            [&](const std::byte* tile, std::int64_t offset, std::int64_t bytes) {
                streamToAll(streamed, offset, tile, bytes);
                for (const std::size_t to : group.here) {
                    const Rendezvous::Member& other = group.members[to];
                    std::byte* target = other.out + slice.first * width + offset;
                    if (target != tile && !(isLarge && other.out != other.in))
                        std::memcpy(target, tile, static_cast<std::size_t>(bytes));
                }
            },
            streamed.empty() ? kReducedTile : kSpreadTile);
        finishStreams();
    }

    std::vector<Box> reads(const Rendezvous& group, std::size_t member, std::size_t) const override
    {
        const Slice slice = sliceOf(static_cast<std::int64_t>(group.members.size()), member);
        return {{{slice.first}, {slice.count}}};
    }

    std::vector<Stretch> makesForAll(const Rendezvous& group, std::size_t member) const override
    {
        const Slice slice = sliceOf(static_cast<std::int64_t>(group.members.size()), member);
        const std::int64_t width = byteSize(m_type.dtype);
        return {{m_out, slice.first * width, slice.count * width}};
    }

    Shape readShape() const override { return {m_type.elements()}; }

private:
    /// The elements that a member owns.
    struct Slice {
        std::int64_t first = 0;
        std::int64_t count = 0;
    };
    Slice sliceOf(std::int64_t members, std::size_t member) const
    {
        const std::int64_t total = m_type.elements();
        const std::int64_t slice = ceilDiv(ceilDiv(total, members), 64) * 64; // whole cache lines
        const std::int64_t first = std::min(total, slice * static_cast<std::int64_t>(member));
        return {first, std::min(total, first + slice) - first};
    }

    TensorType m_type;
    Combiner m_combiner;
};

/// An all-reduce whose sum goes on through an element-wise pass at once: this member combines its slice block by block, does the pass on
/// each block with its own operands, which are everybody's, and stores the results on all members.
class UpdatingAllReduce final : public Collective {
public:
    UpdatingAllReduce(const DeviceFunction& function, OpId op, const DevicePositions& positions, RendezvousTable& table,
        std::unique_ptr<const CollectiveUpdate> update)
        : Collective(function, op, positions, table)
        , m_type(function.function[m_in].type)
        , m_combiner(function.function[op].as<CollectiveAttributes>().kind, m_type.dtype)
        , m_update(std::move(update))
    {
    }

protected:
    void move(const Rendezvous& group, std::size_t member) const override
    {
        constexpr std::int64_t kBlock = 4096; // sums and operands of a block stay in the first- and second-level cache
        alignas(64) std::byte sums[kBlock * 8];
        const StopFlag& stop = m_devices.stopFlag();
        const auto members = static_cast<std::int64_t>(group.members.size());
        const std::int64_t width = byteSize(m_type.dtype);
        const std::int64_t total = m_type.elements();
        const std::int64_t grain = m_update->kernel->grain();
        const std::int64_t block = std::max(grain, kBlock / grain * grain);
        assert(block <= kBlock);
        const auto [begin, end] = sliceOf(members, member);
        const Rendezvous::Member& self = group.members[member];
        Scratch scratch;
        std::vector<std::byte*> targets;
        for (std::int64_t first = begin; first < end && !stop.isSet(); first += block) {
            const std::int64_t last = std::min(end, first + block);
            m_combiner.run(
                group.members.size(), last - first, stop, [&](std::size_t m) { return group.members[m].in + first * width; },
                [&](const std::byte* tile, std::int64_t offset, std::int64_t bytes) {
                    std::memcpy(sums + offset, tile, static_cast<std::size_t>(bytes));
                });
            m_update->kernel->run(self.addresses, scratch, stop, {first, last, sums});
            bool isFetching = true; // what is combined next, while the first output is written
            for (const CollectiveUpdate::Output& output : m_update->outputs) {
                const std::byte* made = self.addresses[output.value.at()] + first * output.width;
                targets.clear();
                for (const std::size_t to : group.here) {
                    const Rendezvous::Member& other = group.members[to];
                    std::byte* target = other.addresses[output.value.at()] + first * output.width;
                    if (target != made)
                        targets.push_back(target);
                }
                if (members * total * output.width < kStreamedBytes) {
                    for (std::byte* const target : targets)
                        std::memcpy(target, made, static_cast<std::size_t>((last - first) * output.width));
                    continue;
                }
                for (std::int64_t at = first; at < last; at += kSpreadTile) {
                    const std::int64_t next = last + at - first;
                    for (std::size_t m = 0; m < group.members.size() && isFetching; ++m)
                        fetchAhead(group.members[m].in + next * width, std::min(kSpreadTile, end - next) * width);
                    const std::int64_t offset = (at - first) * output.width;
                    streamToAll(targets, offset, made + offset, std::min(kSpreadTile, last - at) * output.width);
                }
                isFetching = false;
            }
        }
        finishStreams();
    }

    std::vector<Box> reads(const Rendezvous& group, std::size_t member, std::size_t) const override
    {
        const Slice slice = sliceOf(static_cast<std::int64_t>(group.members.size()), member);
        return {{{slice.begin}, {slice.end - slice.begin}}};
    }

    std::vector<Stretch> makesForAll(const Rendezvous& group, std::size_t member) const override
    {
        const Slice slice = sliceOf(static_cast<std::int64_t>(group.members.size()), member);
        std::vector<Stretch> made;
        for (const CollectiveUpdate::Output& output : m_update->outputs)
            made.push_back({output.value, slice.begin * output.width, (slice.end - slice.begin) * output.width});
        return made;
    }

    Shape readShape() const override { return {m_type.elements()}; }

private:
    /// The elements that a member owns.
    struct Slice {
        std::int64_t begin = 0;
        std::int64_t end = 0;
    };
    Slice sliceOf(std::int64_t members, std::size_t member) const
    {
        const std::int64_t total = m_type.elements();
        const std::int64_t grain = m_update->kernel->grain();
        const std::int64_t slice = ceilDiv(ceilDiv(total, members), grain) * grain;
        const std::int64_t begin = std::min(total, slice * static_cast<std::int64_t>(member));
        return {begin, std::min(total, begin + slice)};
    }

    TensorType m_type;
    Combiner m_combiner;
    std::unique_ptr<const CollectiveUpdate> m_update;
};

/// A rectangle that a device takes from a member's operand into its own result.
struct Part {
    std::size_t member = 0;
    Shape from; ///< start in the member's operand
    Shape to; ///< start in the result
    Shape extent;
};

/// AllGather, AllSlice, AllToAll and CollectivePermute: every device takes what its result needs from whoever holds it.
class Exchange final : public Collective {
public:
    Exchange(const DeviceFunction& function, OpId id, const DevicePositions& positions, RendezvousTable& table)
        : Collective(function, id, positions, table)
        , m_inType(function.function[m_in].type)
        , m_outType(function.function[m_out].type)
        , m_isLocal(function.function[id].kind == OpKind::AllSlice)
        , m_parts(m_seats.size())
    {
    }

    /// The parts from the layouts of operand and result. Problems: MW1511.
    Result<Done> planFromLayouts(const DeviceFunction& function, const DevicePositions& positions)
    {
        const Value& in = function.function[m_in];
        const Value& out = function.function[m_out];
        if (!in.sharding || !out.sharding)
            return Problem{"MW1511", fmt::format("{}: its operand or its result has no layout", text())};
        const Shape& whole = function.globalShapes[m_in.at()];
        for (std::size_t device = 0; device < m_parts.size(); ++device) {
            const IndexBox wanted = positions.boxOf(whole, *out.sharding, static_cast<std::int64_t>(device));
            const Rendezvous& group = *m_groups[m_seats[device].group];
            std::vector<IndexBox> taken; // members may hold the same box: the first gives it, but a device prefers its own
            std::int64_t found = 0;
            const auto take = [&](std::size_t member) {
                const IndexBox held = positions.boxOf(whole, *in.sharding, group.devices[member]);
                const IndexBox common = intersection(wanted, held);
                if (boxElements(common) == 0 || std::find(taken.begin(), taken.end(), held) != taken.end())
                    return;
                taken.push_back(held);
                found += boxElements(common);
                m_parts[device].push_back(
                    {m_isLocal ? 0 : member, startIn(common, held), startIn(common, wanted), extentsOf(common)});
            };
            take(m_seats[device].member);
            for (std::size_t member = 0; member < group.devices.size() && !m_isLocal; ++member)
                take(member);
            if (found != boxElements(wanted))
                return Problem{"MW1511",
                    fmt::format("{}: device {} needs {}, but its group holds {} of its {} elements", text(), device,
                        boxText(wanted), found, boxElements(wanted))};
        }
        return Done{};
    }

    /// The parts of a collective of a manual computation: everything goes by the members' places in their group. Problems: MW1511.
    Result<Done> planFromPieces(const PieceExchange& pieces, OpKind kind)
    {
        for (std::size_t device = 0; device < m_parts.size(); ++device) {
            const auto members = static_cast<std::int64_t>(m_groups[m_seats[device].group]->devices.size());
            Shape extent = m_inType.shape;
            Shape from(extent.size(), 0);
            if (kind == OpKind::AllToAll) {
                extent[pieces.split] /= members;
                from[pieces.split] = extent[pieces.split] * static_cast<std::int64_t>(m_seats[device].member);
            }
            Shape whole = extent;
            whole[pieces.join] *= members;
            if (whole != m_outType.shape || (kind == OpKind::AllToAll && m_inType.shape[pieces.split] % members != 0))
                return Problem{"MW1511",
                    fmt::format("{}: {} members do not make {} of {}", text(), members, typeText(m_outType), typeText(m_inType))};
            Shape to(extent.size(), 0);
            for (std::size_t member = 0; member < static_cast<std::size_t>(members); ++member) {
                to[pieces.join] = extent[pieces.join] * static_cast<std::int64_t>(member);
                m_parts[device].push_back({member, from, to, extent});
            }
        }
        return Done{};
    }

    /// The parts of a permutation of whole pieces. Problems: MW1511.
    Result<Done> planFromSources(const DeviceFunction& function, OpId id, const DevicePositions& positions)
    {
        const auto& sources = function.function[id].as<CollectiveAttributes>().sources;
        const auto& sharding = function.function[m_in].sharding;
        const std::int32_t mesh = sharding ? sharding->mesh : 0;
        if (sources.size() != m_parts.size())
            return Problem{"MW1511", fmt::format("{}: {} sources for {} devices", text(), sources.size(), m_parts.size())};
        Shape extent = m_inType.shape; // pieces may differ in padding
        for (std::size_t dim = 0; dim < extent.size(); ++dim)
            extent[dim] = std::min(extent[dim], m_outType.shape[dim]);
        const Shape origin(extent.size(), 0);
        for (std::size_t device = 0; device < m_parts.size(); ++device) {
            const std::int64_t position
                = sources[static_cast<std::size_t>(positions.positionOf(mesh, static_cast<std::int64_t>(device)))];
            if (position == -1 && function.function[id].as<CollectiveAttributes>().pieces)
                continue; // receives from nobody: zeros
            if (position < 0 || position >= positions.count())
                return Problem{"MW1511", fmt::format("{}: device {} cannot receive from position {}", text(), device, position)};
            const Rendezvous& group = *m_groups[m_seats[device].group];
            const auto member = std::find(group.devices.begin(), group.devices.end(), positions.deviceAt(mesh, position));
            if (member == group.devices.end())
                return Problem{"MW1511",
                    fmt::format("{}: device {} receives from position {}, which is not in its group", text(), device, position)};
            m_parts[device].push_back({static_cast<std::size_t>(member - group.devices.begin()), origin, origin, extent});
        }
        return Done{};
    }

protected:
    void move(const Rendezvous& group, std::size_t member) const override
    {
        std::byte* out = group.members[member].out;
        const std::int64_t width = byteSize(m_inType.dtype);
        if (m_parts[static_cast<std::size_t>(group.devices[member])].empty() && m_outType.bytes() > 0)
            std::memset(out, 0, static_cast<std::size_t>(m_outType.bytes()));
        for (const Part& part : m_parts[static_cast<std::size_t>(group.devices[member])]) {
            if (m_devices.stopFlag().isSet())
                return;
            copyBox(
                out, {m_outType.shape, part.to}, group.members[part.member].in, {m_inType.shape, part.from}, part.extent, width);
        }
    }

    std::vector<Box> reads(const Rendezvous& group, std::size_t member, std::size_t of) const override
    {
        std::vector<Box> boxes;
        for (const Part& part : m_parts[static_cast<std::size_t>(group.devices[member])]) {
            if (part.member == of)
                boxes.push_back({part.from, part.extent});
        }
        return boxes;
    }

    bool meets() const override { return !m_isLocal; }

private:
    TensorType m_inType;
    TensorType m_outType;
    bool m_isLocal;
    std::vector<std::vector<Part>> m_parts; ///< by device
};

class ReduceScatter final : public Collective {
public:
    ReduceScatter(const DeviceFunction& function, OpId id, const DevicePositions& positions, RendezvousTable& table)
        : Collective(function, id, positions, table)
        , m_inType(function.function[m_in].type)
        , m_outType(function.function[m_out].type)
        , m_combiner(function.function[id].as<CollectiveAttributes>().kind, m_inType.dtype)
        , m_starts(m_seats.size())
        , m_extents(m_seats.size())
    {
        const auto& perDim = function.function[id].as<CollectiveAttributes>().perDim;
        const auto& sharding = function.function[m_in].sharding;
        const std::int32_t mesh = sharding ? sharding->mesh : 0;
        if (const auto& pieces = function.function[id].as<CollectiveAttributes>().pieces) {
            for (std::size_t device = 0; device < m_seats.size(); ++device) {
                m_starts[device].assign(m_outType.shape.size(), 0);
                m_starts[device][pieces->split]
                    = m_outType.shape[pieces->split] * static_cast<std::int64_t>(m_seats[device].member);
                m_extents[device] = m_outType.shape;
            }
            return;
        }
        for (std::size_t device = 0; device < m_seats.size(); ++device) {
            const std::int64_t position = positions.positionOf(mesh, static_cast<std::int64_t>(device));
            for (std::size_t dim = 0; dim < perDim.size(); ++dim) {
                const std::int64_t piece = m_outType.shape[dim];
                const std::int64_t start
                    = std::min(m_inType.shape[dim], piece * shardIndex(position, perDim[dim], positions.mesh(mesh)));
                m_starts[device].push_back(start);
                m_extents[device].push_back(std::min(piece, m_inType.shape[dim] - start));
            }
        }
    }

protected:
    /// Combines this member's piece of all operands, one stretch of contiguous elements after the other.
    void move(const Rendezvous& group, std::size_t member) const override
    {
        const auto device = static_cast<std::size_t>(group.devices[member]);
        const Shape& start = m_starts[device];
        const Shape& extent = m_extents[device];
        if (elementCount(extent) == 0)
            return;
        const std::size_t rank = start.size();
        const std::int64_t width = byteSize(m_inType.dtype);
        std::size_t outer = rank; // dimensions from here on form one stretch
        std::int64_t run = 1;
        while (outer > 0) {
            --outer;
            run *= extent[outer];
            if (extent[outer] != m_inType.shape[outer] || extent[outer] != m_outType.shape[outer])
                break;
        }
        Shape index(outer, 0);
        for (;;) {
            std::int64_t from = 0;
            std::int64_t to = 0;
            for (std::size_t dim = 0; dim < rank; ++dim) {
                const std::int64_t at = dim < outer ? index[dim] : 0;
                from = from * m_inType.shape[dim] + start[dim] + at;
                to = to * m_outType.shape[dim] + at;
            }
            std::byte* target = group.members[member].out + to * width;
            m_combiner.run(
                group.members.size(), run, m_devices.stopFlag(),
                [&](std::size_t m) { return group.members[m].in + from * width; },
                [&](const std::byte* tile, std::int64_t offset, std::int64_t bytes) {
                    std::memcpy(target + offset, tile, static_cast<std::size_t>(bytes));
                });
            std::size_t dim = outer;
            while (dim > 0 && ++index[dim - 1] == extent[dim - 1])
                index[--dim] = 0;
            if (dim == 0)
                return;
        }
    }

    std::vector<Box> reads(const Rendezvous& group, std::size_t member, std::size_t) const override
    {
        const auto device = static_cast<std::size_t>(group.devices[member]);
        return {{m_starts[device], m_extents[device]}};
    }

private:
    TensorType m_inType;
    TensorType m_outType;
    Combiner m_combiner;
    std::vector<Shape> m_starts; ///< by device, in the operand
    std::vector<Shape> m_extents; ///< by device
};

} // namespace

Result<std::unique_ptr<Collective>> Collective::create(const DeviceFunction& function, OpId id, const DevicePositions& positions,
    RendezvousTable& table, std::unique_ptr<const CollectiveUpdate> update)
{
    const OpKind kind = function.function[id].kind;
    assert(update == nullptr || kind == OpKind::AllReduce);
    if (update != nullptr)
        return std::unique_ptr<Collective>(new UpdatingAllReduce(function, id, positions, table, std::move(update)));
    if (kind == OpKind::AllReduce)
        return std::unique_ptr<Collective>(new AllReduce(function, id, positions, table));
    if (kind == OpKind::ReduceScatter)
        return std::unique_ptr<Collective>(new ReduceScatter(function, id, positions, table));
    assert(
        kind == OpKind::AllGather || kind == OpKind::AllSlice || kind == OpKind::AllToAll || kind == OpKind::CollectivePermute);
    auto exchange = std::make_unique<Exchange>(function, id, positions, table);
    const auto& pieces = function.function[id].as<CollectiveAttributes>().pieces;
    const Result<Done> planned = kind == OpKind::CollectivePermute ? exchange->planFromSources(function, id, positions)
        : pieces                                                   ? exchange->planFromPieces(*pieces, kind)
                                                                   : exchange->planFromLayouts(function, positions);
    if (!planned)
        return planned.error();
    return std::unique_ptr<Collective>(std::move(exchange));
}

} // namespace meshwright
