// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/positional_sharding.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

std::string tupleText(const Shape& shape)
{
    return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::vector<std::int64_t> stridesOf(const Shape& shape)
{
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t dim = shape.size(); dim > 1; --dim)
        strides[dim - 2] = strides[dim - 1] * shape[dim - 1];
    return strides;
}

} // namespace

Result<PositionalSharding> PositionalSharding::create(std::vector<DeviceId> devices)
{
    Problems problems;
    if (devices.size() > static_cast<std::size_t>(kLargestPositional))
        return Problem{"MW1130",
            fmt::format("a positional sharding of {} devices, at most {} can be listed", devices.size(), kLargestPositional),
            "use P(..) and a mesh"};
    if (devices.empty())
        problems.push_back({"MW1130", "a positional sharding needs at least one device", "list the devices"});
    std::set<DeviceId> seen;
    for (const DeviceId device : devices) {
        if (device < 0)
            problems.push_back({"MW1130", fmt::format("the sharding names device {}", device), "device ids begin at 0"});
        else if (!seen.insert(device).second)
            problems.push_back({"MW1130", fmt::format("the sharding names device {} twice", device), "name each device once"});
    }
    if (!problems.empty())
        return problems;

    PositionalSharding sharding;
    sharding.m_shape = {static_cast<std::int64_t>(devices.size())};
    for (std::size_t i = 0; i < devices.size(); ++i)
        sharding.m_cells.push_back({i});
    sharding.m_devices = std::move(devices);
    return sharding;
}

Result<PositionalSharding> PositionalSharding::reshape(Shape shape) const
{
    const auto cells = static_cast<std::int64_t>(m_cells.size());
    const Problem mismatch{"MW1131",
        fmt::format(
            "a sharding of shape {} has {} cells, which cannot be reshaped to {}", tupleText(m_shape), cells, tupleText(shape)),
        fmt::format("give sizes whose product is {}", cells)};
    std::int64_t known = 1;
    std::optional<std::size_t> open;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (shape[dim] == -1 && !open) {
            open = dim;
            continue;
        }
        const auto product = checkedMultiply(known, shape[dim]);
        if (shape[dim] < 1 || !product)
            return mismatch;
        known = *product;
    }
    if (open) {
        if (cells % known != 0)
            return mismatch;
        shape[*open] = cells / known;
    } else if (known != cells) {
        return mismatch;
    }
    PositionalSharding other = *this;
    other.m_shape = std::move(shape);
    return other;
}

Result<PositionalSharding> PositionalSharding::replicate(std::int64_t axis, bool keepDims) const
{
    const auto rank = static_cast<std::int64_t>(m_shape.size());
    if (axis < -rank || axis >= rank)
        return Problem{"MW1132",
            fmt::format("axis {} is out of range for a sharding of rank {} (shape {})", axis, rank, tupleText(m_shape)),
            rank == 0 ? "a sharding of rank 0 has no axes" : fmt::format("give an axis from {} to {}", -rank, rank - 1)};
    const auto dim = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);

    PositionalSharding other;
    other.m_devices = m_devices;
    other.m_shape = m_shape;
    other.m_shape[dim] = 1;
    other.m_cells.resize(static_cast<std::size_t>(elementCount(other.m_shape)));
    const std::int64_t stride = stridesOf(m_shape)[dim];
    for (std::size_t cell = 0; cell < m_cells.size(); ++cell) {
        const auto at = static_cast<std::int64_t>(cell);
        auto& target = other.m_cells[static_cast<std::size_t>(at / (stride * m_shape[dim]) * stride + at % stride)];
        target.insert(target.end(), m_cells[cell].begin(), m_cells[cell].end());
    }
    for (auto& cell : other.m_cells)
        std::sort(cell.begin(), cell.end());
    if (!keepDims)
        other.m_shape.erase(other.m_shape.begin() + static_cast<std::ptrdiff_t>(dim));
    return other;
}

PositionalSharding PositionalSharding::replicateAll(bool keepDims) const
{
    PositionalSharding other;
    other.m_devices = m_devices;
    if (keepDims)
        other.m_shape.assign(m_shape.size(), 1);
    std::vector<std::size_t> all(m_devices.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    other.m_cells.push_back(std::move(all));
    return other;
}

Result<PositionalSharding> PositionalSharding::transpose(std::span<const std::int64_t> axes) const
{
    std::vector<std::int64_t> sorted(axes.begin(), axes.end());
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int64_t> identity(m_shape.size());
    std::iota(identity.begin(), identity.end(), std::int64_t{0});
    if (sorted != identity)
        return Problem{"MW1132",
            fmt::format("({}) is not a permutation of the {} axes of a sharding of shape {}", fmt::join(axes, ", "),
                m_shape.size(), tupleText(m_shape)),
            "name every axis once, from 0"};

    PositionalSharding other;
    other.m_devices = m_devices;
    for (const std::int64_t axis : axes)
        other.m_shape.push_back(m_shape[static_cast<std::size_t>(axis)]);
    const auto fromStrides = stridesOf(m_shape);
    const auto toStrides = stridesOf(other.m_shape);
    other.m_cells.resize(m_cells.size());
    for (std::size_t cell = 0; cell < m_cells.size(); ++cell) {
        std::int64_t from = 0;
        for (std::size_t dim = 0; dim < axes.size(); ++dim)
            from += static_cast<std::int64_t>(cell) / toStrides[dim] % other.m_shape[dim]
                * fromStrides[static_cast<std::size_t>(axes[dim])];
        other.m_cells[cell] = m_cells[static_cast<std::size_t>(from)];
    }
    return other;
}

PositionalSharding PositionalSharding::transposed() const
{
    std::vector<std::int64_t> axes(m_shape.size());
    std::iota(axes.rbegin(), axes.rend(), std::int64_t{0});
    return valueOf(transpose(axes));
}

std::vector<DeviceId> PositionalSharding::devicesAt(std::int64_t cell) const
{
    assert(cell >= 0 && cell < static_cast<std::int64_t>(m_cells.size()));
    std::vector<DeviceId> devices;
    for (const std::size_t index : m_cells[static_cast<std::size_t>(cell)])
        devices.push_back(m_devices[index]);
    std::sort(devices.begin(), devices.end());
    return devices;
}

bool PositionalSharding::isFullyReplicated() const
{
    return std::all_of(m_shape.begin(), m_shape.end(), [](std::int64_t size) { return size == 1; });
}

Result<Layout> PositionalSharding::layout(const Shape& arrayShape, RankPromotion promotion) const
{
    // The tiles along each dimension of the array.
    Shape tiles(arrayShape.size(), 1);
    std::size_t missingDims = 0;
    if (!isFullyReplicated()) {
        missingDims = m_shape.size() > arrayShape.size() ? m_shape.size() - arrayShape.size() : 0;
        const bool leadingOnes = std::all_of(m_shape.begin(), m_shape.begin() + static_cast<std::ptrdiff_t>(missingDims),
            [](std::int64_t size) { return size == 1; });
        if (arrayShape.size() > m_shape.size() || (missingDims > 0 && (promotion == RankPromotion::Refuse || !leadingOnes)))
            return Problem{"MW1133",
                fmt::format("a sharding of shape {} (rank {}) does not fit an array of rank {}", tupleText(m_shape),
                    m_shape.size(), arrayShape.size()),
                fmt::format("reshape the sharding to rank {}", arrayShape.size()), {}, Severity::Error,
                "the sharding has one dimension for each dimension of the array"};
        tiles.assign(m_shape.begin() + static_cast<std::ptrdiff_t>(missingDims), m_shape.end());
    }

    Layout layout;
    layout.shape = arrayShape;
    Problems problems;
    for (std::size_t dim = 0; dim < arrayShape.size(); ++dim) {
        if (arrayShape[dim] % tiles[dim] != 0) {
            Problem problem = notDivisible({.dim = dim, .size = arrayShape[dim], .pieces = tiles[dim]});
            problem.fix = fmt::format("make it {}, or replicate the sharding along its axis {}",
                divisibleSizesText(arrayShape[dim], tiles[dim]), dim + missingDims);
            problems.push_back(std::move(problem));
        }
        layout.shardShape.push_back(arrayShape[dim] / tiles[dim]);
    }
    if (!problems.empty())
        return problems;

    std::map<IndexBox, std::vector<std::size_t>> holders;
    const auto strides = stridesOf(tiles);
    for (std::size_t cell = 0; cell < m_cells.size(); ++cell) {
        IndexBox box;
        for (std::size_t dim = 0; dim < tiles.size(); ++dim) {
            const std::int64_t start = static_cast<std::int64_t>(cell) / strides[dim] % tiles[dim] * layout.shardShape[dim];
            box.push_back({start, start + layout.shardShape[dim]});
        }
        auto& held = holders[box];
        held.insert(held.end(), m_cells[cell].begin(), m_cells[cell].end());
    }
    for (auto& [box, indices] : holders) {
        std::sort(indices.begin(), indices.end());
        Shard shard{box, {}};
        for (const std::size_t index : indices)
            shard.devices.push_back(m_devices[index]);
        layout.shards.push_back(std::move(shard));
    }
    layout.fullyReplicated = layout.shards.size() == 1;
    return layout;
}

namespace {

/// Prints nested lists as numpy.array2string does: brackets line up and lines longer than the width are wrapped.
class NestedListText {
public:
    NestedListText(const Shape& shape, std::vector<std::string> words)
        : m_shape(shape)
        , m_words(std::move(words))
    {
    }

    /// The list of the cells from `dim` on; every line after the first begins with `indent` spaces, and takes at most `width` columns.
    std::string text(std::size_t dim, std::size_t indent, std::size_t width)
    {
        if (dim == m_shape.size())
            return m_words[m_next++];
        return dim + 1 == m_shape.size() ? row(dim, indent, width - 1) : rows(dim, indent, width);
    }

private:
    std::string row(std::size_t dim, std::size_t indent, std::size_t width)
    {
        const std::string margin(indent, ' ');
        std::string out;
        std::string line = margin;
        for (std::int64_t i = 0; i < m_shape[dim]; ++i) {
            const std::string& word = m_words[m_next++];
            if (line.size() + word.size() > width && line.size() > margin.size()) {
                line.erase(line.find_last_not_of(' ') + 1);
                out += line + "\n";
                line = margin;
            }
            line += word;
            if (i + 1 < m_shape[dim])
                line += ' ';
        }
        out += line;
        return "[" + out.substr(indent) + "]";
    }

    std::string rows(std::size_t dim, std::size_t indent, std::size_t width)
    {
        std::string out = "[";
        for (std::int64_t i = 0; i < m_shape[dim]; ++i) {
            if (i > 0)
                out += std::string(m_shape.size() - dim - 1, '\n') + std::string(indent, ' ');
            out += text(dim + 1, indent + 1, width - 1);
        }
        return out + "]";
    }

    const Shape& m_shape;
    std::vector<std::string> m_words;
    std::size_t m_next = 0;
};

} // namespace

std::string PositionalSharding::text(const std::string& platform) const
{
    constexpr std::size_t kLineWidth = 100;
    const std::string name = "PositionalSharding(";
    std::vector<std::string> words;
    for (std::size_t cell = 0; cell < m_cells.size(); ++cell)
        words.push_back(fmt::format("{{{} {}}}", platform, fmt::join(devicesAt(static_cast<std::int64_t>(cell)), ", ")));
    const std::string body = NestedListText(m_shape, std::move(words)).text(0, name.size() + 1, kLineWidth - 1);
    return fmt::format("{}{}, shape={})", name, body, tupleText(m_shape));
}

} // namespace meshwright
