// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/peer_errors.h"

#include "core/sharding/jax_spec.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

PeerVerdict valueError(std::string kind, std::vector<std::string> messages)
{
    return PeerError{std::move(kind), "ValueError", std::move(messages)};
}

/// Python's tuple: `(8, 3)`, `(8,)`, `()`.
template <typename T>
std::string tupleText(const std::vector<T>& items)
{
    return items.size() == 1 ? fmt::format("({},)", items.front()) : fmt::format("({})", fmt::join(items, ", "));
}

std::vector<std::string> quoted(std::vector<std::string> names)
{
    for (std::string& name : names)
        name = fmt::format("'{}'", name);
    return names;
}

std::string shardingText(const JaxSpec& spec, const Mesh& mesh)
{
    return fmt::format("NamedSharding(mesh={}, spec={})", jaxMeshText(mesh), jaxSpecText(spec));
}

// ---- the form of a spec ------------------------------------------------------------------------------------------------------

/// How deep brackets nest in a spec's text.
int depthOf(std::string_view text)
{
    int depth = 0;
    int deepest = 0;
    for (const char c : text) {
        if (c == '(' || c == '[')
            deepest = std::max(deepest, ++depth);
        else if (c == ')' || c == ']')
            --depth;
    }
    return deepest;
}

/// What is wrong with a text that is not a spec.
PeerVerdict formVerdict(const std::string& text, const Problems& problems)
{
    constexpr int kDeepest = 2; // P(..) and a tuple in it
    const std::size_t set = text.find("unreduced=");
    if (set != std::string::npos && text.find("None", set) != std::string::npos)
        return valueError(
            "none_in_unreduced", {"unreduced cannot contain None. All elements in unreduced should refer to the mesh axes."});
    if (std::any_of(problems.begin(), problems.end(), [](const Problem& problem) { return problem.id == "MW1103"; }))
        return valueError("axis_both_sharded_and_unreduced",
            {"partitions cannot overlap with unreduced axes passed to PartitionSpec. Got " + text});
    if (depthOf(text) > kDeepest)
        return valueError("nested_tuple", {"A tuple inside PartitionSpec cannot contain a nested tuple. Got " + text});
    return PeerError{"not_a_spec", "TypeError", {describe(problems)}};
}

// ---- a spec on a mesh ---------------------------------------------------------------------------------------------------------

PeerVerdict axesVerdict(const JaxSpec& spec, const Mesh& mesh, const std::string& argument)
{
    const std::vector<std::string> names = mesh.axisNames();
    std::vector<std::string> missing;
    for (const std::string& axis : spec.unreduced) {
        if (!mesh.findAxis(axis))
            missing.push_back(axis);
    }
    if (!missing.empty())
        return valueError("unknown_axis",
            {fmt::format("Unreduced axes {} not found in mesh: {}", tupleText(quoted(missing)), tupleText(quoted(names)))});
    std::set<std::string> seen;
    std::string duplicates;
    for (const JaxSpec::Entry& entry : spec.dims) {
        for (const std::string& axis : entry.axes) {
            if (!mesh.findAxis(axis))
                return valueError("unknown_axis",
                    {fmt::format(
                        "Resource axis: {} of {} is not found in mesh: {}.", axis, jaxSpecText(spec), tupleText(quoted(names)))});
            if (!seen.insert(axis).second)
                duplicates += fmt::format("{}`{}`", duplicates.empty() ? "" : ", ", axis);
        }
    }
    if (duplicates.empty())
        return std::nullopt;
    return PeerError{"duplicate_axis", "DuplicateSpecError",
        {fmt::format("A single {} specification can map every mesh axis to at most one positional dimension, but {} has "
                     "duplicate entries for {}",
            argument, jaxSpecText(spec), duplicates)}};
}

/// The sizes of the axes of an entry, multiplied.
std::int64_t piecesOf(const JaxSpec::Entry& entry, const Mesh& mesh)
{
    std::int64_t pieces = 1;
    for (const std::string& axis : entry.axes)
        pieces *= mesh.axisSize(axis).value_or(1); // a mesh is small: checked
    return pieces;
}

PeerVerdict rankVerdict(const JaxSpec& spec, const PeerRequest& request)
{
    const std::size_t rank = request.shape->size();
    if (spec.dims.size() <= rank)
        return std::nullopt;
    if (request.place == PeerPlace::Array || request.place == PeerPlace::Type) {
        const std::string sharding = shardingText(spec, *request.mesh);
        return valueError("rank_too_small",
            {fmt::format("One of the arguments is incompatible with its sharding annotation {0}: Sharding {0} is only valid for "
                         "values of rank at least {1}, but was applied to "
                         "a value of rank {2}",
                sharding, spec.dims.size(), rank)});
    }
    const bool isInput = request.place == PeerPlace::ShardMapIn;
    return valueError("rank_too_small",
        {fmt::format("shard_map was given an {0}_specs entry which is too long to be compatible with the corresponding {0}put "
                     "value from the function: {0}_specs is {1} which has "
                     "length {2}, but the {0}put has shape {3}, which has rank {4} (and {4} < {2})",
            isInput ? "in" : "out", jaxSpecText(spec), spec.dims.size(), tupleText(*request.shape), rank)});
}

PeerVerdict divisionVerdict(const JaxSpec& spec, const PeerRequest& request)
{
    const Mesh& mesh = *request.mesh;
    const Shape& shape = *request.shape;
    std::vector<std::int64_t> factors(shape.size(), 1);
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim)
        factors[dim] = piecesOf(spec.dims[dim], mesh);
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim) {
        if (shape[dim] % factors[dim] == 0)
            continue;
        const std::string sharding = shardingText(spec, mesh);
        const std::vector<std::string> axes = quoted(spec.dims[dim].axes);
        if (request.place == PeerPlace::Type)
            return valueError("not_divisible",
                {fmt::format("Sharding spec {} implies that array axis {} is partitioned {} times, but does not evenly divide "
                             "the dimension size {}. Got shape: {} and sharding {}",
                    tupleText(axes), dim, factors[dim], shape[dim], tupleText(shape), sharding)});
        if (request.place == PeerPlace::ShardMapIn || request.place == PeerPlace::ShardMapOut)
            return valueError("not_divisible",
                {fmt::format("shard_map was given argument arrays with axis sizes that are not evenly divisible by the "
                             "corresponding mesh axis sizes: {} maps array axis {} (of size {}) "
                             "to mesh axes {} (of total size {}), but {} does not evenly divide {}",
                    jaxSpecText(spec), dim, shape[dim], tupleText(axes), factors[dim], factors[dim], shape[dim])});
        return PeerError{"not_divisible", "IndivisibleError",
            {fmt::format("Sharding {} implies that array axis {} is partitioned {} times, but the dimension size is {} (full "
                         "shape: {}, per-dimension tiling factors: [{}] should "
                         "evenly divide the shape)",
                 sharding, dim, factors[dim], shape[dim], tupleText(shape), fmt::join(factors, ", ")),
                fmt::format("One of the arguments was given the sharding of {}, which implies that the global size of its "
                            "dimension {} should be divisible by {}, but it is equal to {} "
                            "(full shape: {})",
                    sharding, dim, factors[dim], shape[dim], tupleText(shape))}};
    }
    return std::nullopt;
}

} // namespace

PeerVerdict jaxVerdict(const PeerRequest& request)
{
    const auto spec = parseJaxSpec(request.spec);
    if (!spec)
        return formVerdict(request.spec, spec.error());
    if (!request.meshInUse)
        return PeerError{"no_mesh", "RuntimeError",
            {"with_sharding_constraint requires a non-empty mesh in context if you are passing `PartitionSpec`s to shardings. "
             "Got an empty mesh in context.",
                "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put"}};
    if (!request.mesh)
        return std::nullopt;
    if (auto wrong = axesVerdict(*spec, *request.mesh, request.argument))
        return wrong;
    if (!request.shape)
        return std::nullopt;
    if (auto wrong = rankVerdict(*spec, request))
        return wrong;
    return divisionVerdict(*spec, request);
}

} // namespace meshwright
