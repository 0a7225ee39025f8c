// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/partition_spec.h"

#include "core/sharding/spec_reader.h"
#include "core/support/checked.h"
#include "core/support/text.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace meshwright {

std::string shapeText(const Shape& shape)
{
    return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

PartitionSpec PartitionSpec::canonical() const
{
    PartitionSpec shorter = *this;
    while (!shorter.dims.empty() && shorter.dims.back().empty())
        shorter.dims.pop_back();
    return shorter;
}

std::string specText(const PartitionSpec& spec)
{
    std::vector<std::string> entries;
    for (const auto& axes : spec.dims) {
        if (axes.empty())
            entries.emplace_back("None");
        else if (axes.size() == 1)
            entries.push_back("'" + axes.front() + "'");
        else
            entries.push_back("('" + join(axes, "', '") + "')");
    }
    return fmt::format("P({}{})", join(entries, ", "), entries.size() == 1 ? "," : "");
}

Result<LocatedSpec> parseLocatedSpec(std::string_view text)
{
    auto read = readSpecText(text);
    if (!read)
        return read.error();
    const JaxSpec& spec = read->spec;
    const auto open
        = std::find_if(spec.dims.begin(), spec.dims.end(), [](const JaxSpec::Entry& entry) { return entry.unconstrained; });
    if (open != spec.dims.end() || !spec.unreduced.empty() || !spec.reduced.empty()) {
        const std::size_t at
            = open == spec.dims.end() ? 0 : read->entries[static_cast<std::size_t>(open - spec.dims.begin())].offset;
        return Problem{"MW1105", fmt::format("{} does not say how a whole array lies", jaxSpecText(spec)),
            "write P('data', None): one entry for each dimension, each an axis, a tuple of axes or None",
            TextCursor::placeAt(at)};
    }
    LocatedSpec located{{}, std::move(read->entries), std::move(read->axes)};
    for (const JaxSpec::Entry& entry : spec.dims)
        located.spec.dims.push_back(entry.axes);
    return located;
}

Result<PartitionSpec> parseSpec(std::string_view text)
{
    auto located = parseLocatedSpec(text);
    if (!located)
        return located.error();
    return std::move(located->spec);
}

std::string divisibleSizesText(std::int64_t size, std::int64_t pieces)
{
    const std::int64_t below = size / pieces * pieces;
    const auto above = checkedMultiply(ceilDiv(size, pieces), pieces);
    if (!above)
        return fmt::format("{}", below);
    return below == 0 ? fmt::format("{}", *above) : fmt::format("{} or {}", below, *above);
}

Problem axisUsedTwice(std::string_view axis, const PartitionSpec& spec)
{
    return {"MW1103", fmt::format("axis \"{}\" is used twice in the spec {}", axis, specText(spec)),
        "use each axis for one dimension only"};
}

Problem notDivisible(const UnequalPieces& cut)
{
    return {"MW1104",
        fmt::format("{}dim {}{} of size {} is not divisible by {}{}", cut.array.empty() ? "" : cut.array + ": ", cut.dim,
            cut.meaning.empty() ? "" : fmt::format(" ({})", cut.meaning), cut.size, cut.pieces, cut.where),
        fmt::format("make it {}, or leave the dimension whole", divisibleSizesText(cut.size, cut.pieces)), {}, Severity::Error,
        fmt::format("{} the dimension into {} equal pieces", cut.cutBy, cut.pieces)};
}

Result<Shape> shardShape(const Shape& global, const PartitionSpec& spec, const Mesh& mesh, Uneven uneven)
{
    Problems problems;
    if (spec.dims.size() > global.size())
        problems.push_back({"MW1101",
            fmt::format("the spec {} has {} entries for an array of rank {}", specText(spec), spec.dims.size(), global.size()),
            fmt::format("give at most {} {}", global.size(), global.size() == 1 ? "entry" : "entries"), {}, Severity::Error,
            "at most one entry for each dimension"});

    std::set<std::string> seen;
    Shape local = global;
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
        std::int64_t pieces = 1;
        for (const std::string& axis : spec.dims[dim]) {
            const auto size = mesh.axisSize(axis);
            if (!size)
                problems.push_back(
                    {"MW1102", fmt::format("unknown axis name: \"{}\"", axis), suggestion(axis, mesh.axisNames())});
            else if (!seen.insert(axis).second)
                problems.push_back(axisUsedTwice(axis, spec));
            else
                pieces *= *size;
        }
        if (dim >= global.size())
            continue;
        if (uneven == Uneven::Refuse && global[dim] % pieces != 0)
            problems.push_back(notDivisible({.dim = dim,
                .size = global[dim],
                .pieces = pieces,
                .cutBy = fmt::format("the axes ({}) cut", join(spec.dims[dim], ", "))}));
        local[dim] = ceilDiv(global[dim], pieces);
    }
    if (!problems.empty())
        return problems;
    return local;
}

} // namespace meshwright
