// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/peer_errors.h"

#include "core/mesh/device_mesh.h"
#include "core/sharding/jax_spec.h"
#include "core/sharding/named_sharding.h"
#include "core/sharding/shardy_text.h"
#include "core/sharding/tile_assignment.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

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

/// What is wrong with a text that is no spec.
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

PeerVerdict assemblyVerdict(const Shape& shape, const PartitionSpec& spec, const Mesh& mesh, std::span<const DeviceId> devices,
    const std::optional<Shape>& piece)
{
    const std::set<DeviceId> given(devices.begin(), devices.end());
    if (given.size() != devices.size())
        return valueError("duplicate_device",
            {fmt::format("When making an array from single-device arrays, the input arrays must be from distinct devices, but "
                         "got device IDs [{}]",
                fmt::join(devices, ", "))});
    const std::vector<DeviceId> order = mesh.deviceOrder();
    const std::set<DeviceId> wanted(order.begin(), order.end());
    std::vector<DeviceId> lacking;
    std::vector<DeviceId> superfluous;
    if (!devices.empty()) {
        std::set_difference(wanted.begin(), wanted.end(), given.begin(), given.end(), std::back_inserter(lacking));
        std::set_difference(given.begin(), given.end(), wanted.begin(), wanted.end(), std::back_inserter(superfluous));
    }
    std::string message;
    if (!lacking.empty())
        message += fmt::format(
            " Sharding contains devices {{{}}} that are not present in per-device arrays.", fmt::join(lacking, ", "));
    if (!superfluous.empty())
        message += fmt::format(
            " Per-device arrays contain devices {{{}}} that are not present in the sharding.", fmt::join(superfluous, ", "));
    if (!message.empty())
        return valueError("incompatible_devices", {"Addressable devices and per-device arrays devices do not match." + message});
    const auto expected = shardShape(shape, spec, mesh, Uneven::Refuse);
    if (!expected)
        return jaxVerdict({specText(spec), mesh, shape});
    if (piece && *piece != *expected)
        return valueError("shard_shape_mismatch",
            {fmt::format(
                "Expected shard shape {} doesn't match the single device array shape {}. Shape of Array is {} with spec {}",
                tupleText(*expected), tupleText(*piece), tupleText(shape), specText(spec))});
    return std::nullopt;
}

PeerVerdict combinationVerdict(std::span<const DeviceId> a, std::span<const DeviceId> b, const std::string& platform)
{
    const auto placed = [](std::span<const DeviceId> devices) {
        const auto mesh
            = Mesh::create({{"devices", static_cast<std::int64_t>(devices.size())}}, {devices.begin(), devices.end()});
        return mesh ? std::optional(PlacedArray{"array", {0}, {*mesh, {}}, true}) : std::nullopt;
    };
    const auto first = placed(a);
    const auto second = placed(b);
    if (first && second && placeComputation({*first, *second}))
        return std::nullopt;
    const std::string ours = fmt::format("[{}] on platform {}", fmt::join(a, ", "), platform);
    const std::string others = fmt::format("[{}] on platform {}", fmt::join(b, ", "), platform);
    return valueError("incompatible_devices",
        {fmt::format("Devices of all `Array` inputs and outputs should be the same. Got array device ids {} and another array's "
                     "device ids {}",
             ours, others),
            fmt::format("Received incompatible devices for jitted computation. Got argument a with device ids {} and argument b "
                        "with device ids {}",
                ours, others)});
}

std::set<std::string> varyingAxes(std::string_view body, std::set<std::string> ofArgument)
{
    // The names in quotes are axes; what they do is said by the function that they are arguments of.
    std::string function;
    std::string word;
    for (std::size_t i = 0; i < body.size(); ++i) {
        const char c = body[i];
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
            word += c;
            continue;
        }
        if (c == '(' && !word.empty())
            function = word;
        word.clear();
        if (c != '\'' && c != '"')
            continue;
        const std::size_t end = body.find(c, i + 1);
        if (end == std::string_view::npos)
            break;
        const std::string axis(body.substr(i + 1, end - i - 1));
        if (function == "psum" || function == "pmean" || function == "pmax" || function == "pmin")
            ofArgument.erase(axis);
        else if (function == "axis_index")
            ofArgument.insert(axis);
        i = end;
    }
    return ofArgument;
}

PeerVerdict replicationVerdict(const PartitionSpec& outSpec, const std::set<std::string>& varying, const Mesh& mesh)
{
    std::set<std::string> mentioned;
    for (const auto& axes : outSpec.dims)
        mentioned.insert(axes.begin(), axes.end());
    std::vector<std::string> unmentioned;
    std::vector<std::string> differing;
    std::vector<std::string> got;
    std::vector<std::string> needed;
    for (const std::string& axis : mesh.axisNames()) {
        if (!mentioned.contains(axis))
            unmentioned.push_back(axis);
        if (!mentioned.contains(axis) && varying.contains(axis))
            differing.push_back(axis);
        if (mentioned.contains(axis))
            needed.push_back(axis);
        if (varying.contains(axis))
            got.push_back(axis);
    }
    if (differing.empty())
        return std::nullopt;
    const std::string why = unmentioned.size() > 1
        ? fmt::format(
            "is only varying across mesh axes {{{}}} and not {{{}}}, but it was inferred to be possibly varying over {{{}}}",
            fmt::join(needed, ","), fmt::join(differing, ","), fmt::join(got, ","))
        : fmt::format("is replicated across mesh axis '{}', but could not infer replication over any axes", unmentioned.front());
    return valueError("out_spec_claims_replication",
        {fmt::format("shard_map was given out_specs which require replication which can't be statically inferred given the mesh: "
                     "out_specs is {} which implies that the "
                     "corresponding output value {}",
            specText(outSpec), why)});
}

PeerVerdict permuteVerdict(std::span<const std::string> axes, const Mesh& mesh)
{
    std::vector<std::size_t> places;
    for (const std::string& axis : axes) {
        const auto place = mesh.findAxis(axis);
        if (!place)
            return PeerError{"unknown_axis", "NameError", {fmt::format("unbound axis name: {}", axis)}};
        places.push_back(*place);
    }
    if (std::is_sorted(places.begin(), places.end()))
        return std::nullopt;
    return PeerError{"axis_order", "RuntimeError",
        {fmt::format("Make sure that the axis_name passed to jax.lax.ppermute {} has its axes in the order of the mesh {}",
            tupleText(quoted({axes.begin(), axes.end()})), tupleText(quoted(mesh.axisNames())))}};
}

PeerVerdict iotaVerdict(const Shape& dims, const Shape& reshape, std::span<const std::size_t> perm, std::size_t subgroups)
{
    const auto invalid = [](std::string kind, std::string message) {
        return PeerVerdict(PeerError{std::move(kind), "INVALID_ARGUMENT", {std::move(message)}});
    };
    if (dims.empty())
        return invalid("empty_dims", "`dims` should not be empty.");
    if (reshape.size() != perm.size())
        return invalid("perm_without_reshape",
            fmt::format("`reshape_dims` and `transpose_perm` should have the same size, saw [{}] vs [{}]",
                fmt::join(reshape, ","), fmt::join(perm, ",")));
    if (subgroups > dims.size())
        return invalid("too_many_subgroups",
            fmt::format("`subgroup_types`({}) should not have more dimensions than `dims`({}).", subgroups, dims.size()));
    const auto tiles = TileAssignment::iota(dims, reshape, {perm.begin(), perm.end()});
    if (tiles)
        return std::nullopt;
    const bool permutes = [&] {
        std::vector<std::size_t> sorted(perm.begin(), perm.end());
        std::sort(sorted.begin(), sorted.end());
        std::vector<std::size_t> iota(perm.size());
        std::iota(iota.begin(), iota.end(), std::size_t{0});
        return sorted == iota;
    }();
    if (!permutes)
        return invalid("bad_perm", fmt::format("`transpose_perm` [{}] is no permutation", fmt::join(perm, ",")));
    if (!reshape.empty())
        return invalid("size_mismatch",
            fmt::format("Cannot reshape from dims [{}] to reshape_dims [{}]", fmt::join(dims, ","), fmt::join(reshape, ",")));
    return invalid("bad_dims", describe(tiles.error()));
}

PeerVerdict deviceMeshVerdict(std::span<const std::string> sizes, const Shape& topology, bool contiguousSubmeshes)
{
    Shape shape;
    for (const std::string& text : sizes) {
        const auto size = parseInteger(text);
        if (!size)
            return valueError("bad_mesh_shape",
                {fmt::format("`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got [{}]",
                    fmt::join(sizes, ", "))});
        shape.push_back(*size);
    }
    if (topology.empty())
        return std::nullopt;
    const auto devices = tpuDevices(DeviceKind::TpuV4, topology);
    if (!devices)
        return PeerError{"bad_topology", "ValueError", {describe(devices.error())}};
    const auto mesh = createDeviceMesh(shape, DeviceKind::TpuV4, *devices, {contiguousSubmeshes, false});
    if (mesh)
        return std::nullopt;
    const Problem& problem = mesh.error().front();
    if (problem.id == "MW1175")
        return valueError(
            "no_contiguous_submeshes", {"create_device_mesh cannot create contiguous submeshes: " + problem.message});
    if (problem.id == "MW1173")
        return valueError("bad_mesh_shape",
            {fmt::format("Number of devices {} must equal the product of mesh_shape {}", devices->size(), tupleText(shape))});
    return PeerError{"no_assignment", "NotImplementedError", {describe(mesh.error())}};
}

PeerVerdict shardyMeshVerdict(const std::vector<MeshAxis>& axes, std::span<const DeviceId> deviceIds)
{
    const auto wrong = [](std::string kind, std::string message) {
        return PeerVerdict(PeerError{std::move(kind), {}, {std::move(message)}});
    };
    std::set<std::string> seen;
    std::int64_t count = 1;
    for (const MeshAxis& axis : axes) {
        if (axis.size < 1)
            return wrong("bad_axis_size", fmt::format("axis size must be at least 1, got: {}", axis.size));
        if (!seen.insert(axis.name).second)
            return wrong("duplicate_axis", fmt::format("duplicate axis name: \"{}\"", axis.name));
        count *= std::min(axis.size, kLargestMesh / count + 1); // beyond the largest mesh it does not matter how far
    }
    if (deviceIds.empty())
        return std::nullopt;
    const std::string listed = fmt::format("{}", fmt::join(deviceIds, ", "));
    if (std::any_of(deviceIds.begin(), deviceIds.end(), [](DeviceId id) { return id < 0; }))
        return wrong("bad_device_ids", "device id must be non-negative, got: " + listed);
    if (axes.empty())
        return deviceIds.size() == 1 ? std::nullopt
                                     : wrong("bad_device_ids", "axes is empty and device_ids has more than one element");
    if (static_cast<std::int64_t>(deviceIds.size()) != count)
        return wrong("bad_device_ids",
            fmt::format(
                "total product of axis sizes must match total number of device ids, got: {} != {}", count, deviceIds.size()));
    std::vector<DeviceId> sorted(deviceIds.begin(), deviceIds.end());
    std::sort(sorted.begin(), sorted.end());
    const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (distinct && sorted.back() == count - 1)
        return std::nullopt;
    return wrong(distinct ? "bad_device_ids" : "duplicate_device",
        fmt::format("sorted device ids must be iota(product(axes)), got: {}", fmt::join(sorted, ", ")));
}

PeerVerdict shardyVerdict(
    std::string_view sharding, const std::string& meshName, const std::map<std::string, Mesh>& meshes, std::size_t rank)
{
    static const std::map<std::string, std::string> kKinds = {{"MW1102", "unknown_axis"}, {"MW1103", "duplicate_axis"},
        {"MW1141", "bad_sub_axis"}, {"MW1143", "axes_not_in_mesh_order"}, {"MW1144", "mergeable_sub_axes"},
        {"MW1145", "rank_mismatch"}, {"MW1146", "bad_maximal"}, {"MW1147", "bad_priority"}};
    const auto mesh = meshes.find(meshName);
    if (mesh == meshes.end())
        return PeerError{"unknown_mesh", {}, {"unknown mesh: @" + meshName}};
    const auto parsed = parseShardy(sharding, mesh->second);
    const Problems problems = parsed ? shardingProblems(*parsed, mesh->second, rank) : parsed.error();
    if (problems.empty())
        return std::nullopt;
    // Shardy looks for parts that continue each other before it looks at each part.
    const auto mergeable
        = std::find_if(problems.begin(), problems.end(), [](const Problem& problem) { return problem.id == "MW1144"; });
    const Problem& first = mergeable != problems.end() ? *mergeable : problems.front();
    const auto kind = kKinds.find(first.id);
    std::string name = kind == kKinds.end() ? "not_a_sharding" : kind->second;
    if (first.id == "MW1142")
        name = first.message.starts_with("both") ? "sub_axis_and_full_axis" : "overlapping_sub_axes";
    std::vector<std::string> messages;
    for (const Problem& problem : problems)
        messages.push_back(problem.message);
    return PeerError{name, {}, messages};
}

} // namespace meshwright
