// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/tile_assignment.h"

#include "core/support/checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

/// The number of tiles, or what is wrong with the dims.
Result<std::int64_t> tileCount(const Shape& dims, const char* what)
{
    if (dims.empty())
        return Problem{"MW1151", fmt::format("{} should not be empty", what), "give at least one size, such as [1]"};
    std::int64_t count = 1;
    for (const std::int64_t size : dims) {
        if (size < 1)
            return Problem{"MW1151", fmt::format("{} [{}] have a size below 1", what, fmt::join(dims, ",")), "sizes begin at 1"};
        const auto next = checkedMultiply(count, size);
        if (!next || *next > kLargestMesh)
            return Problem{"MW1151", fmt::format("{} [{}] make more than {} tiles", what, fmt::join(dims, ","), kLargestMesh),
                "use smaller sizes"};
        count = *next;
    }
    return count;
}

/// A dimension of a list of devices in mixed radix: walking along it steps by `stride` in the device ids.
struct Digit {
    std::int64_t size = 1;
    std::int64_t stride = 1;
};

/// The digits that make `devices`, most major first; nothing when it is not an iota.
std::optional<std::vector<Digit>> digitsOf(const std::vector<DeviceId>& devices)
{
    const auto count = static_cast<std::int64_t>(devices.size());
    if (devices.empty() || devices.front() != 0)
        return std::nullopt;
    // From the minor end, each digit as long as it goes with one stride: a digit of another stride follows, so nothing longer fits.
    std::vector<Digit> digits;
    for (std::int64_t block = 1; block < count;) {
        const std::int64_t stride = devices[static_cast<std::size_t>(block)];
        std::int64_t size = 1;
        while (size * block < count && devices[static_cast<std::size_t>(size * block)] == size * stride)
            ++size;
        if (count % (block * size) != 0)
            return std::nullopt;
        digits.insert(digits.begin(), {size, stride});
        block *= size;
    }
    // The strides must be those of a reshape of 0..n-1 ..
    std::vector<Digit> byStride = digits;
    std::sort(byStride.begin(), byStride.end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
    std::int64_t expected = 1;
    for (const Digit& digit : byStride) {
        if (digit.stride != expected)
            return std::nullopt;
        expected *= digit.size;
    }
    // .. and every entry the sum of its digits.
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t rest = i;
        std::int64_t device = 0;
        for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
            device += rest % digit->size * digit->stride;
            rest /= digit->size;
        }
        if (device != devices[static_cast<std::size_t>(i)])
            return std::nullopt;
    }
    return digits;
}

} // namespace

Result<TileAssignment> TileAssignment::iota(Shape dims, Shape reshape, std::vector<std::size_t> perm)
{
    const auto count = tileCount(dims, "tile dims");
    if (!count)
        return count.error();
    if (reshape.empty() && perm.empty()) {
        reshape = {*count};
        perm = {0};
    } else if (perm.empty()) {
        perm.resize(reshape.size());
        std::iota(perm.begin(), perm.end(), std::size_t{0});
    }
    if (reshape.size() != perm.size())
        return Problem{"MW1151",
            fmt::format("the reshape [{}] and the transpose ({}) should have the same size", fmt::join(reshape, ","),
                fmt::join(perm, ",")),
            "name each dimension of the reshape once in the transpose"};
    const auto reshapeCount = tileCount(reshape, "reshape dims");
    if (!reshapeCount)
        return reshapeCount.error();
    if (*reshapeCount != *count)
        return Problem{"MW1151",
            fmt::format("cannot reshape from [{}] ({} devices) to [{}] ({} tiles)", fmt::join(reshape, ","), *reshapeCount,
                fmt::join(dims, ","), *count),
            "give both the same product"};
    const std::set<std::size_t> named(perm.begin(), perm.end());
    if (named.size() != perm.size() || *named.rbegin() != perm.size() - 1)
        return Problem{"MW1151",
            fmt::format("the transpose ({}) is not a permutation of 0 to {}", fmt::join(perm, ","), perm.size() - 1),
            "name each dimension of the reshape once"};

    // Canonical: without sizes of 1, and runs that stay together as one dimension.
    std::vector<std::size_t> rank(reshape.size(), 0);
    std::size_t kept = 0;
    for (std::size_t dim = 0; dim < reshape.size(); ++dim)
        rank[dim] = reshape[dim] > 1 ? kept++ : 0;
    struct Run {
        std::size_t first;
        std::size_t last;
        std::int64_t size;
    };
    std::vector<Run> runs;
    for (const std::size_t dim : perm) {
        if (reshape[dim] == 1)
            continue;
        if (!runs.empty() && runs.back().last + 1 == rank[dim]) {
            runs.back().last = rank[dim];
            runs.back().size *= reshape[dim];
        } else {
            runs.push_back({rank[dim], rank[dim], reshape[dim]});
        }
    }
    TileAssignment tiles;
    tiles.m_dims = std::move(dims);
    if (!runs.empty()) {
        std::vector<std::size_t> order(runs.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return runs[a].first < runs[b].first; });
        tiles.m_reshape.clear();
        tiles.m_perm.assign(runs.size(), 0);
        for (std::size_t dim = 0; dim < order.size(); ++dim) {
            tiles.m_reshape.push_back(runs[order[dim]].size);
            tiles.m_perm[order[dim]] = dim;
        }
    }
    return tiles;
}

Result<TileAssignment> TileAssignment::list(Shape dims, std::vector<DeviceId> devices)
{
    const auto count = tileCount(dims, "tile dims");
    if (!count)
        return count.error();
    Problems problems;
    if (static_cast<std::int64_t>(devices.size()) != *count)
        problems.push_back({"MW1152",
            fmt::format("the tiles [{}] need {} devices, the list has {}", fmt::join(dims, ","), *count, devices.size()),
            fmt::format("list {} devices", *count)});
    std::set<DeviceId> seen;
    for (const DeviceId device : devices) {
        if (device < 0)
            problems.push_back({"MW1152", fmt::format("the tiles name device {}", device), "device ids begin at 0"});
        else if (!seen.insert(device).second)
            problems.push_back({"MW1152", fmt::format("the tiles name device {} twice", device), "name each device once"});
    }
    if (!problems.empty())
        return problems;
    TileAssignment tiles;
    tiles.m_dims = std::move(dims);
    tiles.m_devices = std::move(devices);
    return tiles;
}

std::vector<DeviceId> TileAssignment::devices() const
{
    if (!isIota())
        return m_devices;
    // Strides of the reshape dimensions in the device ids, then a count over the transposed dimensions.
    Shape strides(m_reshape.size(), 1);
    for (std::size_t dim = m_reshape.size(); dim > 1; --dim)
        strides[dim - 2] = strides[dim - 1] * m_reshape[dim - 1];
    std::vector<DeviceId> all = {0};
    all.reserve(static_cast<std::size_t>(count()));
    // Built from the minor end: each further dimension repeats what is there, moved by its stride.
    for (auto dim = m_perm.rbegin(); dim != m_perm.rend(); ++dim) {
        const std::size_t block = all.size();
        for (std::int64_t i = 1; i < m_reshape[*dim]; ++i) {
            for (std::size_t k = 0; k < block; ++k)
                all.push_back(all[k] + i * strides[*dim]);
        }
    }
    return all;
}

TileAssignment TileAssignment::withDims(Shape dims) const
{
    assert(elementCount(dims) == count());
    TileAssignment tiles = *this;
    tiles.m_dims = std::move(dims);
    return tiles;
}

TileAssignment TileAssignment::transposed(std::span<const std::size_t> order) const
{
    Shape dims;
    for (const std::size_t dim : order)
        dims.push_back(m_dims[dim]);
    const auto parts = isIota() ? pieces() : std::nullopt;
    if (parts) {
        // The pieces keep their order within each tile dimension; the tile dimensions change places.
        Shape reshape;
        for (const TilePiece& piece : *parts)
            reshape.push_back(piece.size);
        std::vector<std::size_t> perm;
        for (const std::size_t dim : order) {
            std::vector<std::pair<std::size_t, std::size_t>> ofDim; // sub dim, piece
            for (std::size_t i = 0; i < parts->size(); ++i) {
                if ((*parts)[i].tileDim == dim)
                    ofDim.emplace_back((*parts)[i].tileSubDim, i);
            }
            std::sort(ofDim.rbegin(), ofDim.rend());
            for (const auto& entry : ofDim)
                perm.push_back(entry.second);
        }
        if (reshape.empty())
            return withDims(std::move(dims));
        return valueOf(iota(std::move(dims), std::move(reshape), std::move(perm)));
    }
    const std::vector<DeviceId> from = devices();
    Shape strides(m_dims.size(), 1);
    for (std::size_t dim = m_dims.size(); dim > 1; --dim)
        strides[dim - 2] = strides[dim - 1] * m_dims[dim - 1];
    std::vector<DeviceId> to;
    to.reserve(from.size());
    for (std::int64_t i = 0; i < count(); ++i) {
        std::int64_t rest = i;
        std::int64_t index = 0;
        for (std::size_t at = order.size(); at > 0; --at) {
            index += rest % dims[at - 1] * strides[order[at - 1]];
            rest /= dims[at - 1];
        }
        to.push_back(from[static_cast<std::size_t>(index)]);
    }
    const TileAssignment tiles = valueOf(list(std::move(dims), std::move(to)));
    if (!isIota())
        return tiles;
    const auto again = tiles.asIota();
    return again ? *again : tiles;
}

std::optional<TileAssignment> TileAssignment::asIota() const
{
    if (isIota())
        return *this;
    const auto digits = digitsOf(m_devices);
    if (!digits)
        return std::nullopt;
    std::vector<std::size_t> byStride(digits->size());
    std::iota(byStride.begin(), byStride.end(), std::size_t{0});
    std::sort(byStride.begin(), byStride.end(),
        [&](std::size_t a, std::size_t b) { return (*digits)[a].stride > (*digits)[b].stride; });
    Shape reshape;
    std::vector<std::size_t> perm(digits->size());
    for (std::size_t dim = 0; dim < byStride.size(); ++dim) {
        reshape.push_back((*digits)[byStride[dim]].size);
        perm[byStride[dim]] = dim;
    }
    return valueOf(iota(m_dims, std::move(reshape), std::move(perm)));
}

std::optional<std::vector<TilePiece>> TileAssignment::pieces() const
{
    if (!isIota()) {
        const auto iotaForm = asIota();
        return iotaForm ? iotaForm->pieces() : std::nullopt;
    }
    // Walk the transposed reshape dimensions and the tile dimensions together, cutting the major part off whichever is larger.
    std::vector<TilePiece> found;
    std::size_t tile = 0;
    std::int64_t tileLeft = m_dims.front();
    for (const std::size_t dim : m_perm) {
        std::int64_t left = m_reshape[dim];
        while (left > 1) {
            while (tileLeft == 1)
                tileLeft = m_dims[++tile];
            const std::int64_t size = std::min(left, tileLeft);
            if (left % size != 0 || tileLeft % size != 0)
                return std::nullopt;
            found.push_back({tile, 0, dim, size});
            left /= size;
            tileLeft /= size;
        }
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (std::size_t j = i + 1; j < found.size(); ++j)
            found[i].tileSubDim += found[j].tileDim == found[i].tileDim ? std::size_t{1} : std::size_t{0};
    }
    std::stable_sort(
        found.begin(), found.end(), [](const TilePiece& a, const TilePiece& b) { return a.reshapeDim < b.reshapeDim; });
    return found;
}

std::optional<Shape> TileAssignment::smallestMesh() const
{
    const auto parts = pieces();
    if (!parts)
        return std::nullopt;
    Shape sizes;
    for (const TilePiece& piece : *parts)
        sizes.push_back(piece.size);
    return sizes;
}

std::string TileAssignment::text() const
{
    if (!isIota())
        return fmt::format("[{}]{}", fmt::join(m_dims, ","), fmt::join(m_devices, ","));
    const std::string transpose = m_perm.size() > 1 ? fmt::format("T({})", fmt::join(m_perm, ",")) : "";
    return fmt::format("[{}]<=[{}]{}", fmt::join(m_dims, ","), fmt::join(m_reshape, ","), transpose);
}

} // namespace meshwright
