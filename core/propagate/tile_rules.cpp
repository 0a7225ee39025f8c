// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/tile_rules.h"

#include <algorithm>
#include <iterator>

namespace meshwright {

namespace {

/// The flat row-major index of an element after its coordinates.
std::int64_t flatIndex(const Shape& shape, const Shape& at)
{
    std::int64_t index = 0;
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        index = index * shape[dim] + at[dim];
    return index;
}

/// Calls `visit(coordinates)` for every element, in row-major order.
template <typename Visit>
void forEachTile(const Shape& shape, Visit visit)
{
    const std::int64_t count = elementCount(shape);
    Shape at(shape.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        visit(at);
        for (std::size_t dim = shape.size(); dim-- > 0;) {
            if (++at[dim] < shape[dim])
                break;
            at[dim] = 0;
        }
    }
}

/// The devices of one tile, sorted.
std::vector<DeviceId> devicesAt(const Tiling& tiling, const Shape& at)
{
    const auto begin = tiling.devices.begin() + static_cast<std::ptrdiff_t>(flatIndex(tiling.tiles, at) * tiling.copies);
    std::vector<DeviceId> devices(begin, begin + static_cast<std::ptrdiff_t>(tiling.copies));
    std::sort(devices.begin(), devices.end());
    return devices;
}

/// The tile of a coarser tiling that a tile lies in.
Shape coarserTile(const Shape& at, const Shape& fine, const Shape& coarse)
{
    Shape coarser = at;
    for (std::size_t dim = 0; dim < at.size(); ++dim)
        coarser[dim] = at[dim] / (fine[dim] / coarse[dim]);
    return coarser;
}

} // namespace

std::optional<Tiling> tilingOf(const TileSharding& sharding)
{
    if (sharding.kind != TileKind::Tiled)
        return std::nullopt;
    const bool onlyCopies = std::all_of(
        sharding.subgroups.begin(), sharding.subgroups.end(), [](Subgroup group) { return group == Subgroup::Replicated; });
    if (!onlyCopies)
        return std::nullopt;
    Tiling tiling;
    const Shape& dims = sharding.tiles.dims();
    tiling.tiles.assign(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(sharding.rank()));
    for (std::size_t dim = sharding.rank(); dim < dims.size(); ++dim)
        tiling.copies *= dims[dim];
    tiling.devices = sharding.tiles.devices();
    tiling.asList = !sharding.tiles.isIota();
    return tiling;
}

TileSharding shardingOf(const Tiling& tiling)
{
    if (tiling.count() == 1)
        return {};
    TileSharding sharding;
    sharding.kind = TileKind::Tiled;
    Shape dims = tiling.tiles;
    std::vector<DeviceId> devices;
    forEachTile(tiling.tiles, [&](const Shape& at) {
        const std::vector<DeviceId> here = devicesAt(tiling, at);
        devices.insert(devices.end(), here.begin(), here.end());
    });
    if (tiling.copies > 1) {
        dims.push_back(tiling.copies);
        sharding.subgroups = {Subgroup::Replicated};
    }
    sharding.tiles = valueOf(TileAssignment::list(std::move(dims), std::move(devices)));
    if (!tiling.asList) {
        if (auto iota = sharding.tiles.asIota())
            sharding.tiles = *std::move(iota);
    }
    return sharding;
}

Tiling carried(const Tiling& tiling, const std::vector<int>& source)
{
    Tiling result;
    result.asList = tiling.asList;
    std::vector<bool> kept(tiling.tiles.size(), false);
    for (const int dim : source) {
        result.tiles.push_back(dim < 0 ? 1 : tiling.tiles[static_cast<std::size_t>(dim)]);
        if (dim >= 0)
            kept[static_cast<std::size_t>(dim)] = true;
    }
    std::vector<std::vector<DeviceId>> holders(static_cast<std::size_t>(result.count()));
    forEachTile(tiling.tiles, [&](const Shape& at) {
        Shape to(source.size(), 0);
        for (std::size_t dim = 0; dim < source.size(); ++dim)
            to[dim] = source[dim] < 0 ? 0 : at[static_cast<std::size_t>(source[dim])];
        auto& here = holders[static_cast<std::size_t>(flatIndex(result.tiles, to))];
        const auto begin = tiling.devices.begin() + static_cast<std::ptrdiff_t>(flatIndex(tiling.tiles, at) * tiling.copies);
        here.insert(here.end(), begin, begin + static_cast<std::ptrdiff_t>(tiling.copies));
    });
    result.copies = static_cast<std::int64_t>(holders.front().size());
    for (const auto& here : holders)
        result.devices.insert(result.devices.end(), here.begin(), here.end());
    return result;
}

std::optional<Tiling> reshapedTiling(const Tiling& tiling, const Shape& from, const Shape& to)
{
    if (elementCount(from) == 0)
        return std::nullopt;
    // What is left of both shapes, and of the tiles, most major last.
    Shape source(from.rbegin(), from.rend());
    Shape tiles(tiling.tiles.rbegin(), tiling.tiles.rend());
    Shape target(to.rbegin(), to.rend());
    Tiling result;
    result.asList = tiling.asList;
    result.copies = tiling.copies;
    result.devices = tiling.devices;
    const auto take = [](Shape& stack) {
        const std::int64_t last = stack.empty() ? 1 : stack.back();
        if (!stack.empty())
            stack.pop_back();
        return last;
    };
    while (!target.empty() || !source.empty()) {
        if (elementCount(tiles) == 1) { // the rest is whole
            result.tiles.insert(result.tiles.end(), target.size(), 1);
            break;
        }
        const std::int64_t size = take(source);
        const std::int64_t parts = take(tiles);
        const bool noTarget = target.empty();
        const std::int64_t wanted = take(target);
        if (size == wanted && !noTarget) {
            result.tiles.push_back(parts);
        } else if (wanted == 1 && !noTarget) { // comes new
            result.tiles.push_back(1);
            source.push_back(size);
            tiles.push_back(parts);
        } else if (size == 1) { // goes
            if (parts != 1)
                return std::nullopt;
            if (!noTarget)
                target.push_back(wanted);
        } else if (size > wanted) { // is cut
            if (size % wanted != 0 || size % parts != 0)
                return std::nullopt;
            std::int64_t here = 0;
            if (wanted % parts == 0)
                here = parts;
            else if (parts % wanted == 0)
                here = wanted;
            else
                return std::nullopt;
            result.tiles.push_back(here);
            source.push_back(size / wanted);
            tiles.push_back(parts / here);
        } else { // merges with the next
            if (source.empty() || size % parts != 0 || (tiles.back() != 1 && size != parts))
                return std::nullopt;
            source.back() *= size;
            tiles.back() *= parts;
            target.push_back(wanted);
        }
    }
    return result.count() == tiling.count() ? std::optional(result) : std::nullopt;
}

Tiling reversedTiling(const Tiling& tiling, const std::vector<std::size_t>& dims)
{
    Tiling result = tiling;
    result.devices.clear();
    forEachTile(tiling.tiles, [&](Shape at) {
        for (const std::size_t dim : dims)
            at[dim] = tiling.tiles[dim] - 1 - at[dim];
        const std::vector<DeviceId> here = devicesAt(tiling, at);
        result.devices.insert(result.devices.end(), here.begin(), here.end());
    });
    return result;
}

Tiling tilesBetween(const Tiling& tiling, std::size_t dim, std::int64_t begin, std::int64_t end)
{
    Tiling part = tiling;
    part.tiles[dim] = end - begin;
    part.devices.clear();
    forEachTile(part.tiles, [&](Shape at) {
        at[dim] += begin;
        const std::vector<DeviceId> here = devicesAt(tiling, at);
        part.devices.insert(part.devices.end(), here.begin(), here.end());
    });
    return part;
}

std::optional<Tiling> mergedTiling(const Tiling& a, const Tiling& b)
{
    if (a.tiles.size() != b.tiles.size() || a.devices.size() != b.devices.size())
        return std::nullopt;
    Tiling merged;
    merged.asList = a.asList && b.asList;
    for (std::size_t dim = 0; dim < a.tiles.size(); ++dim) {
        const auto [fewer, more] = std::minmax(a.tiles[dim], b.tiles[dim]);
        if (more % fewer != 0)
            return std::nullopt;
        merged.tiles.push_back(more);
    }
    const auto devices = static_cast<std::int64_t>(a.devices.size());
    if (devices % merged.count() != 0)
        return std::nullopt;
    merged.copies = devices / merged.count();
    bool good = true;
    forEachTile(merged.tiles, [&](const Shape& at) {
        const std::vector<DeviceId> ofA = devicesAt(a, coarserTile(at, merged.tiles, a.tiles));
        const std::vector<DeviceId> ofB = devicesAt(b, coarserTile(at, merged.tiles, b.tiles));
        std::vector<DeviceId> both;
        std::set_intersection(ofA.begin(), ofA.end(), ofB.begin(), ofB.end(), std::back_inserter(both));
        good = good && static_cast<std::int64_t>(both.size()) == merged.copies;
        merged.devices.insert(merged.devices.end(), both.begin(), both.end());
    });
    return good ? std::optional(merged) : std::nullopt;
}

bool refines(const Tiling& fine, const Tiling& coarse)
{
    const auto merged = mergedTiling(fine, coarse);
    return merged && merged->tiles == fine.tiles;
}

} // namespace meshwright
