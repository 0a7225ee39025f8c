// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/tile_assignment.h"

#include "core/sharding/axis_sets.h"
#include "core/support/checked.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace meshwright {

namespace {

constexpr std::array<std::pair<const char*, Subgroup>, 3> kSubgroupNames
    = {{{"manual", Subgroup::Manual}, {"unreduced", Subgroup::Unreduced}, {"replicated", Subgroup::Replicated}}};

constexpr std::array<std::pair<const char*, TileKind>, 4> kKindNames = {{{"replicated", TileKind::Replicated},
    {"manual", TileKind::Manual}, {"unreduced", TileKind::Unreduced}, {"unknown", TileKind::Unknown}}};

/// Reads tile strings. After a failure `problems()` has at least one entry.
class TileReader {
public:
    explicit TileReader(std::string_view text)
        : m_cursor(text)
    {
    }

    std::optional<TileSharding> single()
    {
        if (!m_cursor.take("{"))
            return fail("\"{\"");
        return afterBrace();
    }

    std::optional<std::vector<TileSharding>> tuple()
    {
        std::vector<TileSharding> all;
        m_cursor.take("{");
        if (!m_cursor.peek("{") && !m_cursor.peek("}")) {
            auto one = afterBrace();
            if (!one)
                return std::nullopt;
            all.push_back(*std::move(one));
            return all;
        }
        while (!m_cursor.take("}")) {
            auto one = single();
            if (!one)
                return std::nullopt;
            all.push_back(*std::move(one));
            if (!m_cursor.take(",") && !m_cursor.peek("}")) {
                fail("\",\" or \"}\"");
                return std::nullopt;
            }
        }
        return all;
    }

    /// `[2,2]T(1,0)`, flattened.
    std::optional<TileAssignment> flatIota()
    {
        Shape reshape;
        std::vector<std::size_t> perm;
        if (!sizes(reshape) || !transpose(perm))
            return std::nullopt;
        const auto count = checkedProduct(reshape);
        return settle(TileAssignment::iota({count ? *count : kLargestMesh + 1}, std::move(reshape), std::move(perm)));
    }

    bool atEnd()
    {
        if (m_cursor.atEnd())
            return true;
        fail("the end of the sharding");
        return false;
    }

    Problems problems() && { return std::move(m_problems); }

private:
    std::nullopt_t fail(const char* wanted)
    {
        m_problems.push_back(m_cursor.expected("MW1150", "sharding with tiles", wanted,
            "write {devices=[2,1,4]<=[8] last_tile_dim_replicate}, {replicated}, {manual} or {maximal device=0}"));
        return std::nullopt;
    }

    std::optional<TileAssignment> settle(Result<TileAssignment> tiles)
    {
        if (tiles)
            return *std::move(tiles);
        for (Problem problem : tiles.error()) {
            problem.place = TextCursor::placeAt(m_cursor.at());
            m_problems.push_back(std::move(problem));
        }
        return std::nullopt;
    }

    std::optional<TileSharding> afterBrace()
    {
        TileSharding sharding;
        if (m_cursor.take("devices=")) {
            if (!tiled(sharding))
                return std::nullopt;
        } else if (m_cursor.take("maximal")) {
            if (!m_cursor.take("device="))
                return fail("\"device=\"");
            const auto device = m_cursor.integer();
            if (!device || *device < 0)
                return fail("a device id");
            sharding.kind = TileKind::Maximal;
            sharding.device = *device;
        } else {
            const std::size_t at = (m_cursor.atEnd(), m_cursor.at());
            const std::string_view name = m_cursor.word();
            const auto* kind
                = std::find_if(kKindNames.begin(), kKindNames.end(), [&](const auto& entry) { return entry.first == name; });
            if (kind == kKindNames.end()) {
                m_cursor.goTo(at);
                return fail("devices=[..], maximal, replicated, manual, unreduced or unknown");
            }
            sharding.kind = kind->second;
        }
        if (m_cursor.take("metadata=")) {
            if (!m_cursor.take("{") || !m_cursor.untilClosed())
                return fail("metadata in braces");
        }
        if (!m_cursor.take("}"))
            return fail("\"}\"");
        return sharding;
    }

    bool tiled(TileSharding& sharding)
    {
        sharding.kind = TileKind::Tiled;
        Shape dims;
        if (!sizes(dims))
            return false;
        std::optional<TileAssignment> tiles;
        if (m_cursor.take("<=")) {
            Shape reshape;
            std::vector<std::size_t> perm;
            if (!sizes(reshape) || !transpose(perm))
                return false;
            tiles = settle(TileAssignment::iota(dims, std::move(reshape), std::move(perm)));
        } else {
            std::vector<DeviceId> devices;
            do {
                const auto device = m_cursor.integer();
                if (!device) {
                    fail("a device id");
                    return false;
                }
                devices.push_back(*device);
            } while (m_cursor.take(","));
            tiles = settle(TileAssignment::list(dims, std::move(devices)));
        }
        if (!tiles)
            return false;
        sharding.tiles = *std::move(tiles);
        return groups(sharding);
    }

    bool groups(TileSharding& sharding)
    {
        if (m_cursor.take("last_tile_dim_replicate")) {
            sharding.subgroups = {Subgroup::Replicated};
        } else if (m_cursor.take("last_tile_dims=")) {
            if (!m_cursor.take("{")) {
                fail("\"{\"");
                return false;
            }
            while (!m_cursor.take("}")) {
                const std::size_t at = (m_cursor.atEnd(), m_cursor.at());
                const std::string_view name = m_cursor.word();
                const auto* group = std::find_if(
                    kSubgroupNames.begin(), kSubgroupNames.end(), [&](const auto& entry) { return entry.first == name; });
                if (group == kSubgroupNames.end()) {
                    m_cursor.goTo(at);
                    fail("manual, unreduced or replicated");
                    return false;
                }
                sharding.subgroups.push_back(group->second);
                if (!m_cursor.take(",") && !m_cursor.peek("}")) {
                    fail("\",\" or \"}\"");
                    return false;
                }
            }
        }
        if (sharding.subgroups.size() <= sharding.tiles.dims().size())
            return true;
        m_problems.push_back({"MW1155",
            fmt::format("{} subgroups should not have more dimensions than the {} tile dims", sharding.subgroups.size(),
                sharding.tiles.dims().size()),
            "give one subgroup for each of the last tile dims", TextCursor::placeAt(m_cursor.at())});
        return false;
    }

    bool sizes(Shape& found)
    {
        if (!m_cursor.take("[")) {
            fail("\"[\"");
            return false;
        }
        while (!m_cursor.take("]")) {
            const auto size = m_cursor.integer();
            if (!size) {
                fail("a size");
                return false;
            }
            found.push_back(*size);
            if (!m_cursor.take(",") && !m_cursor.peek("]")) {
                fail("\",\" or \"]\"");
                return false;
            }
        }
        return true;
    }

    bool transpose(std::vector<std::size_t>& perm)
    {
        if (!m_cursor.take("T("))
            return true;
        while (!m_cursor.take(")")) {
            const auto dim = m_cursor.integer();
            if (!dim || *dim < 0) {
                fail("a dimension of the reshape");
                return false;
            }
            perm.push_back(static_cast<std::size_t>(*dim));
            if (!m_cursor.take(",") && !m_cursor.peek(")")) {
                fail("\",\" or \")\"");
                return false;
            }
        }
        return true;
    }

    TextCursor m_cursor;
    Problems m_problems;
};

} // namespace

Result<TileSharding> parseTileSharding(std::string_view text)
{
    TileReader reader(text);
    auto sharding = reader.single();
    if (!sharding || !reader.atEnd())
        return std::move(reader).problems();
    return *std::move(sharding);
}

Result<std::vector<TileSharding>> parseTileShardings(std::string_view text)
{
    TileReader reader(text);
    auto shardings = reader.tuple();
    if (!shardings || !reader.atEnd())
        return std::move(reader).problems();
    return *std::move(shardings);
}

Result<std::vector<DeviceId>> parseDeviceIds(std::string_view text)
{
    if (!TextCursor(text).peek("["))
        return parseDeviceOrder(text);
    TileReader reader(text);
    const auto tiles = reader.flatIota();
    if (!tiles || !reader.atEnd())
        return std::move(reader).problems();
    return tiles->devices();
}

std::string tileText(const TileSharding& sharding)
{
    for (const auto& [name, kind] : kKindNames) {
        if (kind == sharding.kind)
            return fmt::format("{{{}}}", name);
    }
    if (sharding.kind == TileKind::Maximal)
        return fmt::format("{{maximal device={}}}", sharding.device);
    std::string groups;
    if (sharding.subgroups == std::vector{Subgroup::Replicated}) {
        groups = " last_tile_dim_replicate";
    } else if (!sharding.subgroups.empty()) {
        for (const Subgroup group : sharding.subgroups)
            groups += fmt::format(
                "{}{}", groups.empty() ? " last_tile_dims={" : ", ", kSubgroupNames[static_cast<std::size_t>(group)].first);
        groups += '}';
    }
    return fmt::format("{{devices={}{}}}", sharding.tiles.text(), groups);
}

std::string tileText(std::span<const TileSharding> tuple)
{
    std::vector<std::string> texts;
    for (const TileSharding& sharding : tuple)
        texts.push_back(tileText(sharding));
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

TileSharding normalized(const TileSharding& sharding)
{
    if (sharding.kind != TileKind::Tiled)
        return sharding;
    const std::size_t rank = sharding.rank();
    const Shape& dims = sharding.tiles.dims();
    // The tile dims of the array, then the groups by kind.
    std::vector<std::size_t> order;
    for (std::size_t dim = 0; dim < rank; ++dim)
        order.push_back(dim);
    Shape newDims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(rank));
    std::vector<Subgroup> groups;
    for (const auto& [name, group] : kSubgroupNames) {
        std::int64_t size = 1;
        for (std::size_t i = 0; i < sharding.subgroups.size(); ++i) {
            if (sharding.subgroups[i] == group) {
                order.push_back(rank + i);
                size *= dims[rank + i];
            }
        }
        if (size > 1) {
            newDims.push_back(size);
            groups.push_back(group);
        }
    }
    const bool whole = std::all_of(
        dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(rank), [](std::int64_t size) { return size == 1; });
    if (whole && groups.empty())
        return {}; // one device, which holds all
    if (whole && groups.size() == 1) {
        constexpr std::array kKinds = {TileKind::Manual, TileKind::Unreduced, TileKind::Replicated};
        return {kKinds[static_cast<std::size_t>(groups.front())]};
    }
    TileSharding simple = sharding;
    simple.subgroups = std::move(groups);
    simple.tiles = sharding.tiles.transposed(order).withDims(std::move(newDims));
    return simple;
}

Problems tileProblems(const TileSharding& sharding, const Shape& shape, std::int64_t deviceCount)
{
    Problems problems;
    const auto beyond = [&](DeviceId device) {
        problems.push_back({"MW1153", fmt::format("device {} is not one of the {} devices", device, deviceCount),
            fmt::format("use device ids below {}", deviceCount)});
    };
    if (sharding.kind == TileKind::Maximal && sharding.device >= deviceCount)
        beyond(sharding.device);
    if (sharding.kind != TileKind::Tiled)
        return problems;
    if (sharding.rank() != shape.size())
        problems.push_back(
            {"MW1154", fmt::format("the tiles are for an array of rank {}, this one has rank {}", sharding.rank(), shape.size()),
                fmt::format("give {} tile dims before the subgroups", shape.size())});
    const std::vector<DeviceId> devices = sharding.tiles.devices();
    const DeviceId largest = *std::max_element(devices.begin(), devices.end());
    if (largest >= deviceCount)
        beyond(largest);
    if (sharding.tiles.count() < deviceCount)
        problems.push_back({"MW1153", fmt::format("the tiles use {} of the {} devices", sharding.tiles.count(), deviceCount),
            "name every device; add a last tile dim for replicas"});
    return problems;
}

TileSharding toTiles(const TensorSharding& sharding, const Mesh& mesh, const AxisRefs& manual, TileForm form)
{
    TileSharding tiled;
    if (mesh.axes().empty()) {
        tiled.kind = TileKind::Maximal;
        tiled.device = mesh.deviceAt(0);
        return tiled;
    }
    tiled.kind = TileKind::Tiled;

    // All parts of all axes in the order of the tiles.
    AxisRefs order;
    Shape dims;
    const auto add = [&](const AxisRefs& axes) {
        order.insert(order.end(), axes.begin(), axes.end());
        dims.push_back(shardCount(axes));
    };
    for (const DimSharding& dim : sharding.dims)
        add(dim.axes);
    const auto addGroup = [&](const AxisRefs& axes, Subgroup group) {
        if (shardCount(axes) > 1) {
            add(axes);
            tiled.subgroups.push_back(group);
        }
    };
    addGroup(manual, Subgroup::Manual);
    addGroup(sharding.unreduced, Subgroup::Unreduced);
    addGroup(unusedAxes(order, mesh), Subgroup::Replicated);
    if (dims.empty()) {
        tiled.kind = TileKind::Replicated;
        return tiled;
    }
    std::erase_if(order, [](const AxisRef& axis) { return axis.size == 1; });
    if (order.empty()) {
        tiled.tiles = valueOf(TileAssignment::iota(dims));
        return normalized(tiled);
    }

    // The parts in mesh order are the reshape.
    AxisRefs inMesh = order;
    std::sort(inMesh.begin(), inMesh.end());
    Shape reshape;
    for (const AxisRef& axis : inMesh)
        reshape.push_back(axis.size);
    std::vector<std::size_t> perm;
    for (const AxisRef& axis : order)
        perm.push_back(static_cast<std::size_t>(std::find(inMesh.begin(), inMesh.end(), axis) - inMesh.begin()));
    tiled.tiles = valueOf(TileAssignment::iota(dims, std::move(reshape), std::move(perm)));
    if (!mesh.hasDefaultOrder()) {
        std::vector<DeviceId> devices = tiled.tiles.devices();
        for (DeviceId& device : devices)
            device = mesh.deviceAt(device);
        tiled.tiles = valueOf(TileAssignment::list(dims, std::move(devices)));
        const auto iota = form == TileForm::IotaIfPossible ? tiled.tiles.asIota() : std::nullopt;
        if (iota)
            tiled.tiles = *iota;
    }
    return normalized(tiled);
}

namespace {

/// The tiles in positions of the mesh rather than device ids; nothing when the mesh has other devices.
std::optional<TileAssignment> inPositions(const TileAssignment& tiles, const Mesh& mesh)
{
    if (tiles.count() != mesh.deviceCount())
        return std::nullopt;
    if (tiles.isIota() && mesh.hasDefaultOrder())
        return tiles;
    std::map<DeviceId, std::int64_t> positionOf;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        positionOf[mesh.deviceAt(position)] = position;
    std::vector<DeviceId> positions = tiles.devices();
    for (DeviceId& device : positions) {
        const auto position = positionOf.find(device);
        if (position == positionOf.end())
            return std::nullopt;
        device = position->second;
    }
    return valueOf(TileAssignment::list(tiles.dims(), std::move(positions)));
}

/// With the devices of each replicated group ascending: which replica a device is makes no difference.
TileAssignment withSortedReplicas(const TileAssignment& tiles, std::int64_t replicas)
{
    std::vector<DeviceId> devices = tiles.devices();
    for (auto group = devices.begin(); group != devices.end(); group += replicas)
        std::sort(group, group + replicas);
    return valueOf(TileAssignment::list(tiles.dims(), std::move(devices)));
}

std::int64_t replicaCount(const TileSharding& sharding)
{
    return !sharding.subgroups.empty() && sharding.subgroups.back() == Subgroup::Replicated ? sharding.tiles.dims().back() : 1;
}

/// For each tile dimension the parts of mesh axes that make it; nothing when a boundary of the tiles and one of the axes do not divide.
std::optional<std::vector<AxisRefs>> axesOfTileDims(const TileAssignment& tiles, const Mesh& mesh)
{
    const auto pieces = tiles.pieces();
    if (!pieces)
        return std::nullopt;
    // Both the pieces and the axes cut the positions 0..n-1 into digits, most major first; cut at the boundaries of both.
    std::vector<std::vector<std::pair<std::size_t, AxisRefs>>> ofDim(tiles.dims().size()); // sub dim, axes
    std::size_t axis = 0;
    std::int64_t pre = 1;
    for (const TilePiece& piece : *pieces) {
        AxisRefs axes;
        std::int64_t left = piece.size;
        while (left > 1) {
            while (mesh.axes()[axis].size == pre) {
                ++axis;
                pre = 1;
            }
            const std::int64_t free = mesh.axes()[axis].size / pre;
            const std::int64_t size = std::min(left, free);
            if (left % size != 0 || free % size != 0)
                return std::nullopt;
            appendMerging(axes, {static_cast<std::int32_t>(axis), pre, size});
            pre *= size;
            left /= size;
        }
        ofDim[piece.tileDim].emplace_back(piece.tileSubDim, std::move(axes));
    }
    std::vector<AxisRefs> all(ofDim.size());
    for (std::size_t dim = 0; dim < ofDim.size(); ++dim) {
        std::sort(ofDim[dim].begin(), ofDim[dim].end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        for (const auto& entry : ofDim[dim]) {
            for (const AxisRef& part : entry.second)
                appendMerging(all[dim], part);
        }
    }
    return all;
}

AxisRefs allAxes(const Mesh& mesh)
{
    return unusedAxes({}, mesh);
}

} // namespace

Result<NamedTiles> fromTiles(const TileSharding& sharding, std::size_t rank, const Mesh& mesh)
{
    NamedTiles named;
    if (sharding.kind == TileKind::Tiled && sharding.rank() != rank)
        return Problem{"MW1154",
            fmt::format(
                "the tiles of {} are for an array of rank {}, this one has rank {}", tileText(sharding), sharding.rank(), rank),
            fmt::format("give {} tile dims before the subgroups", rank)};
    const TileSharding simple = normalized(sharding);
    named.sharding = simple.kind == TileKind::Unknown ? TensorSharding::openOf(rank) : TensorSharding::replicatedOf(rank);
    switch (simple.kind) {
    case TileKind::Replicated:
    case TileKind::Unknown:
        return named;
    case TileKind::Manual:
        named.manual = allAxes(mesh);
        return named;
    case TileKind::Unreduced:
        named.sharding.unreduced = allAxes(mesh);
        return named;
    case TileKind::Maximal:
        if (mesh.deviceCount() == 1 && mesh.deviceAt(0) == simple.device)
            return named;
        return Problem{"MW1156", fmt::format("{} is on one device, the mesh {} has others", tileText(sharding), mesh.text()),
            "name a mesh of that device alone"};
    case TileKind::Tiled:
        break;
    }
    const auto positions = inPositions(simple.tiles, mesh);
    if (!positions)
        return Problem{"MW1156",
            fmt::format(
                "{} has {} tiles on other devices than the mesh {}", tileText(sharding), simple.tiles.count(), mesh.text()),
            fmt::format("use a mesh of these {} devices", simple.tiles.count())};
    auto axes = axesOfTileDims(*positions, mesh);
    if (!axes && replicaCount(simple) > 1)
        axes = axesOfTileDims(withSortedReplicas(*positions, replicaCount(simple)), mesh);
    if (!axes) {
        const auto smallest = simple.tiles.smallestMesh();
        return Problem{"MW1156",
            fmt::format("no parts of the axes of the mesh {} make the tiles {}", mesh.text(), tileText(sharding)),
            smallest ? fmt::format("use a mesh with axes of sizes {}", fmt::join(*smallest, ", "))
                     : "use a mesh with the order of these devices"};
    }
    for (std::size_t dim = 0; dim < rank; ++dim)
        named.sharding.dims[dim].axes = std::move((*axes)[dim]);
    for (std::size_t group = 0; group < simple.subgroups.size(); ++group) {
        AxisRefs groupAxes = inMeshOrder(std::move((*axes)[rank + group]));
        if (simple.subgroups[group] == Subgroup::Manual)
            named.manual = std::move(groupAxes);
        else if (simple.subgroups[group] == Subgroup::Unreduced)
            named.sharding.unreduced = std::move(groupAxes);
    }
    return named;
}

Result<Mesh> meshOfTiles(const TileSharding& sharding)
{
    const TileSharding simple = normalized(sharding);
    if (simple.kind == TileKind::Maximal)
        return Mesh::create({}, {simple.device});
    if (simple.kind != TileKind::Tiled)
        return Mesh();
    auto sizes = simple.tiles.smallestMesh();
    if (!sizes && replicaCount(simple) > 1)
        sizes = withSortedReplicas(simple.tiles, replicaCount(simple)).smallestMesh();
    std::vector<DeviceId> order;
    if (!sizes) {
        order = simple.tiles.devices();
        sizes = Shape();
        std::copy_if(simple.tiles.dims().begin(), simple.tiles.dims().end(), std::back_inserter(*sizes),
            [](std::int64_t size) { return size > 1; });
    }
    std::vector<MeshAxis> axes;
    for (std::size_t i = 0; i < sizes->size(); ++i)
        axes.push_back({fmt::format("axis_{}", i), (*sizes)[i]});
    return Mesh::create(std::move(axes), std::move(order));
}

} // namespace meshwright
