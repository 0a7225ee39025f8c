// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/tensor_sharding.h"

#include "core/sharding/shard_indices.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace meshwright {

AxisRef wholeAxis(const Mesh& mesh, std::size_t axis)
{
    return {static_cast<std::int32_t>(axis), 1, mesh.axes().at(axis).size};
}

bool overlaps(const AxisRef& a, const AxisRef& b)
{
    return a.axis == b.axis && a.pre < b.pre * b.size && b.pre < a.pre * a.size;
}

bool areIndependent(const AxisRef& a, const AxisRef& b)
{
    if (a.axis != b.axis)
        return true;
    const auto& [major, minor] = std::minmax(a, b);
    return minor.pre % (major.pre * major.size) == 0;
}

bool areIndependent(const AxisRefs& some, const AxisRefs& others)
{
    return std::all_of(some.begin(), some.end(), [&](const AxisRef& axis) {
        return std::all_of(others.begin(), others.end(), [&](const AxisRef& other) { return areIndependent(axis, other); });
    });
}

bool isPrefixOf(const AxisRef& prefix, const AxisRef& whole)
{
    return prefix.axis == whole.axis && prefix.pre == whole.pre && prefix.size <= whole.size;
}

void appendMerging(AxisRefs& axes, const AxisRef& more)
{
    if (!axes.empty() && axes.back().axis == more.axis && axes.back().pre * axes.back().size == more.pre)
        axes.back().size *= more.size;
    else
        axes.push_back(more);
}

std::optional<SplitAxes> takeMajor(const AxisRefs& axes, std::int64_t pieces)
{
    assert(pieces >= 1);
    SplitAxes split;
    for (AxisRef axis : axes) {
        if (pieces == 1) {
            split.left.push_back(axis);
        } else if (pieces % axis.size == 0) {
            pieces /= axis.size;
            split.taken.push_back(axis);
        } else if (axis.size % pieces == 0) {
            split.taken.push_back({axis.axis, axis.pre, pieces});
            split.left.push_back({axis.axis, axis.pre * pieces, axis.size / pieces});
            pieces = 1;
        } else {
            return std::nullopt;
        }
    }
    if (pieces > 1)
        return std::nullopt;
    return split;
}

std::int64_t shardCount(const AxisRefs& axes)
{
    std::int64_t count = 1;
    for (const AxisRef& axis : axes)
        count *= axis.size;
    return count;
}

const char* reduceKindName(ReduceKind kind)
{
    switch (kind) {
    case ReduceKind::Sum:
        return "sum";
    case ReduceKind::Max:
        return "max";
    case ReduceKind::Min:
        return "min";
    case ReduceKind::Product:
        return "product";
    case ReduceKind::And:
        return "and";
    case ReduceKind::Or:
        return "or";
    }
    return "sum";
}

TensorSharding TensorSharding::replicatedOf(std::size_t rank)
{
    TensorSharding sharding;
    sharding.dims.resize(rank);
    return sharding;
}

TensorSharding TensorSharding::openOf(std::size_t rank)
{
    TensorSharding sharding = replicatedOf(rank);
    for (DimSharding& dim : sharding.dims)
        dim.open = true;
    return sharding;
}

bool TensorSharding::isReplicated() const
{
    return unreduced.empty() && std::all_of(dims.begin(), dims.end(), [](const DimSharding& dim) { return dim.axes.empty(); });
}

bool sameSharding(const TensorSharding& a, const Mesh& meshA, const TensorSharding& b, const Mesh& meshB)
{
    const auto replicatesAll = [](const TensorSharding& sharding) {
        return sharding.isReplicated()
            && std::none_of(sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.open; });
    };
    if (replicatesAll(a) && replicatesAll(b))
        return true;
    if (meshA != meshB || a.unreduced != b.unreduced || (!a.unreduced.empty() && a.unreducedKind != b.unreducedKind))
        return false;
    return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
        [](const DimSharding& x, const DimSharding& y) { return x.axes == y.axes && x.open == y.open; });
}

Result<TensorSharding> toTensorSharding(const PartitionSpec& spec, std::size_t rank, const Mesh& mesh)
{
    // A shape that divides by everything: only the spec itself is in question here.
    const auto checked = shardShape(Shape(rank, 0), spec, mesh, Uneven::Pad);
    if (!checked)
        return checked.error();
    TensorSharding sharding = TensorSharding::replicatedOf(rank);
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
        for (const std::string& name : spec.dims[dim]) {
            const AxisRef axis = wholeAxis(mesh, *mesh.findAxis(name));
            if (axis.size > 1)
                sharding.dims[dim].axes.push_back(axis);
        }
    }
    return sharding;
}

std::optional<PartitionSpec> toSpec(const TensorSharding& sharding, const Mesh& mesh)
{
    PartitionSpec spec;
    for (const DimSharding& dim : sharding.dims) {
        std::vector<std::string> names;
        for (const AxisRef& axis : dim.axes) {
            if (axis != wholeAxis(mesh, static_cast<std::size_t>(axis.axis)))
                return std::nullopt;
            names.push_back(mesh.axes()[static_cast<std::size_t>(axis.axis)].name);
        }
        spec.dims.push_back(std::move(names));
    }
    return spec;
}

namespace {

/// Where one axis is cut, as products of the sizes before each cut: 1, .., the axis's size. Nothing when they do not divide each other.
std::optional<std::vector<std::int64_t>> cutsOf(const TensorSharding& sharding, std::size_t axis, std::int64_t size)
{
    std::set<std::int64_t> cuts = {1, size};
    for (const DimSharding& dim : sharding.dims) {
        for (const AxisRef& part : dim.axes) {
            if (static_cast<std::size_t>(part.axis) == axis)
                cuts.insert({part.pre, part.pre * part.size});
        }
    }
    const std::vector<std::int64_t> all(cuts.begin(), cuts.end());
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (all[i] % all[i - 1] != 0)
            return std::nullopt;
    }
    return all;
}

} // namespace

std::optional<SpecOnMesh> toSpecOnCutMesh(const TensorSharding& sharding, const Mesh& mesh)
{
    std::vector<MeshAxis> axes;
    std::map<std::pair<std::size_t, std::int64_t>, std::size_t> startingAt; // (axis, cut) -> index into axes
    const std::vector<std::string> names = mesh.axisNames();
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        const auto cuts = cutsOf(sharding, axis, mesh.axes()[axis].size);
        if (!cuts)
            return std::nullopt;
        const std::string& name = mesh.axes()[axis].name;
        startingAt[{axis, 1}] = axes.size();
        if (cuts->size() <= 2) {
            axes.push_back(mesh.axes()[axis]);
            continue;
        }
        for (std::size_t i = 1; i < cuts->size(); ++i) {
            std::string part = fmt::format("{}_{}", name, i - 1);
            while (std::find(names.begin(), names.end(), part) != names.end())
                part += "_";
            startingAt[{axis, (*cuts)[i - 1]}] = axes.size();
            axes.push_back({std::move(part), (*cuts)[i] / (*cuts)[i - 1]});
        }
    }
    PartitionSpec spec;
    for (const DimSharding& dim : sharding.dims) {
        std::vector<std::string> entry;
        for (const AxisRef& part : dim.axes) {
            std::size_t at = startingAt.at({static_cast<std::size_t>(part.axis), part.pre});
            for (std::int64_t covered = 1; covered < part.size || entry.empty(); ++at) {
                entry.push_back(axes[at].name);
                covered *= axes[at].size;
            }
        }
        spec.dims.push_back(std::move(entry));
    }
    auto cut = Mesh::create(std::move(axes), mesh.hasDefaultOrder() ? std::vector<DeviceId>{} : mesh.deviceOrder());
    if (!cut)
        return std::nullopt;
    return SpecOnMesh{*std::move(cut), std::move(spec)};
}

std::string axisText(const AxisRef& axis, const Mesh& mesh)
{
    const auto index = static_cast<std::size_t>(axis.axis);
    const std::string name = fmt::format("\"{}\"", mesh.axes().at(index).name);
    return axis == wholeAxis(mesh, index) ? name : fmt::format("{}:({}){}", name, axis.pre, axis.size);
}

namespace {

std::string axesText(const AxisRefs& axes, const Mesh& mesh)
{
    std::vector<std::string> texts;
    for (const AxisRef& axis : axes)
        texts.push_back(axisText(axis, mesh));
    return join(texts, ", ");
}

} // namespace

std::string shardyText(const TensorSharding& sharding, const Mesh& mesh)
{
    std::vector<std::string> dims;
    for (const DimSharding& dim : sharding.dims) {
        std::string text = axesText(dim.axes, mesh);
        if (dim.open)
            text += text.empty() ? "?" : ", ?";
        dims.push_back(fmt::format("{{{}}}{}", text, dim.priority > 0 ? fmt::format("p{}", dim.priority) : ""));
    }
    std::string text = fmt::format("[{}]", join(dims, ", "));
    if (!sharding.replicated.empty())
        text += fmt::format(", replicated={{{}}}", axesText(sharding.replicated, mesh));
    if (!sharding.unreduced.empty())
        text += fmt::format(", unreduced={}{{{}}}",
            sharding.unreducedKind == ReduceKind::Sum ? "" : reduceKindName(sharding.unreducedKind),
            axesText(sharding.unreduced, mesh));
    return text;
}

std::string layoutText(const TensorSharding& sharding, const Mesh& mesh)
{
    TensorSharding placement = sharding;
    placement.unreduced.clear();
    const auto spec = toSpec(placement, mesh);
    std::string text = spec ? specText(spec->canonical()) : shardyText(placement, mesh);
    if (!sharding.unreduced.empty()) {
        std::vector<std::string> names;
        for (const AxisRef& axis : sharding.unreduced)
            names.push_back(axis == wholeAxis(mesh, static_cast<std::size_t>(axis.axis))
                    ? mesh.axes()[static_cast<std::size_t>(axis.axis)].name
                    : axisText(axis, mesh));
        text += " partial over " + join(names, ", ");
    }
    return text;
}

Shape localShape(const Shape& global, const TensorSharding& sharding)
{
    assert(sharding.dims.size() == global.size());
    Shape local = global;
    for (std::size_t dim = 0; dim < global.size(); ++dim)
        local[dim] = ceilDiv(global[dim], shardCount(sharding.dims[dim].axes));
    return local;
}

std::vector<UnequalPieces> unequalPieces(const Shape& shape, const TensorSharding& sharding)
{
    std::vector<UnequalPieces> unequal;
    for (std::size_t dim = 0; dim < std::min(shape.size(), sharding.dims.size()); ++dim) {
        const std::int64_t pieces = shardCount(sharding.dims[dim].axes);
        if (shape[dim] % pieces != 0)
            unequal.push_back({.dim = dim, .size = shape[dim], .pieces = pieces});
    }
    return unequal;
}

bool isEven(const TensorSharding& sharding, const Shape& shape)
{
    return unequalPieces(shape, sharding).empty();
}

std::int64_t shardIndex(std::int64_t position, const AxisRefs& axes, const Mesh& mesh)
{
    std::int64_t index = 0;
    for (const AxisRef& axis : axes) {
        const auto at = static_cast<std::size_t>(axis.axis);
        const std::int64_t post = mesh.axes()[at].size / (axis.pre * axis.size);
        index = index * axis.size + mesh.coordinate(position, at) / post % axis.size;
    }
    return index;
}

AxisRefs unusedAxes(std::span<const AxisRef> used, const Mesh& mesh)
{
    AxisRefs unused;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        const std::int64_t size = mesh.axes()[axis].size;
        std::vector<AxisRef> parts;
        std::copy_if(used.begin(), used.end(), std::back_inserter(parts),
            [&](const AxisRef& part) { return part.axis == static_cast<std::int32_t>(axis); });
        std::sort(parts.begin(), parts.end());
        std::int64_t pre = 1;
        const auto addUpTo = [&](std::int64_t end) {
            if (end > pre)
                unused.push_back({static_cast<std::int32_t>(axis), pre, end / pre});
        };
        for (const AxisRef& part : parts) {
            addUpTo(part.pre);
            pre = part.pre * part.size;
        }
        addUpTo(size);
    }
    return unused;
}

std::vector<std::vector<std::int64_t>> deviceGroups(const AxisRefs& axes, const Mesh& mesh)
{
    const AxisRefs rest = unusedAxes(axes, mesh); // in mesh order: so the groups come in the order of their first positions
    std::vector<std::vector<std::int64_t>> groups(
        static_cast<std::size_t>(shardCount(rest)), std::vector<std::int64_t>(static_cast<std::size_t>(shardCount(axes))));
    const std::vector<std::int64_t> groupOf = shardIndices(rest, mesh);
    const std::vector<std::int64_t> memberOf = shardIndices(axes, mesh);
    for (std::size_t position = 0; position < groupOf.size(); ++position)
        groups[static_cast<std::size_t>(groupOf[position])][static_cast<std::size_t>(memberOf[position])]
            = static_cast<std::int64_t>(position);
    return groups;
}

} // namespace meshwright
