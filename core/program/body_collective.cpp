// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/body_collective.h"

#include "core/program/other_op.h"
#include "core/program/transform.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

namespace meshwright {

namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

struct Named {
    OpKind kind;
    OpKind own;
    const char* name;
};
constexpr Named kNames[] = {{OpKind::AllReduce, OpKind::OwnAllReduce, "all_reduce"},
    {OpKind::AllGather, OpKind::OwnAllGather, "all_gather"}, {OpKind::ReduceScatter, OpKind::OwnReduceScatter, "reduce_scatter"},
    {OpKind::AllToAll, OpKind::OwnAllToAll, "all_to_all"}, {OpKind::CollectivePermute, OpKind::OwnPermute, "collective_permute"}};

std::optional<OpKind> kindOf(const Op& op)
{
    const auto found = std::ranges::find(kNames, op.kind, &Named::own);
    return found == std::end(kNames) ? std::nullopt : std::optional(found->kind);
}

Problem unfit(const Op& op, const std::string& what)
{
    return {"MW1261", fmt::format("{}: {}", opName(op), what)};
}

Problem foreignDevices(const Op& op, const std::string& what, const Mesh& mesh)
{
    return {"MW1260", fmt::format("{}: {}", opName(op), what),
        fmt::format("list each of the {} devices of the mesh {} once", mesh.deviceCount(), mesh.text())};
}

/// The rows of an attribute such as `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`; nothing when it is of another form.
std::optional<Groups> rowsOf(const KeptAttribute& attribute)
{
    const std::size_t type = attribute.text.rfind("tensor<");
    if (type == std::string::npos)
        return std::nullopt;
    std::size_t sizes[2] = {0, 0};
    const char* at = attribute.text.c_str() + type + 7;
    for (std::size_t& size : sizes) {
        if (*at < '0' || *at > '9')
            return std::nullopt;
        while (*at >= '0' && *at <= '9' && size <= attribute.integers.size())
            size = size * 10 + static_cast<std::size_t>(*at++ - '0');
        if (*at++ != 'x')
            return std::nullopt;
    }
    if (*at != 'i' || sizes[0] * sizes[1] != attribute.integers.size())
        return std::nullopt;
    Groups rows(sizes[0]);
    for (std::size_t row = 0; row < sizes[0]; ++row)
        rows[row].assign(attribute.integers.begin() + static_cast<std::ptrdiff_t>(row * sizes[1]),
            attribute.integers.begin() + static_cast<std::ptrdiff_t>((row + 1) * sizes[1]));
    return rows;
}

std::map<DeviceId, std::int64_t> positionsOf(const Mesh& mesh)
{
    std::map<DeviceId, std::int64_t> positions;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        positions[mesh.deviceAt(position)] = position;
    return positions;
}

/// The groups of an op as positions. -1 fills up short groups.
Result<Groups> groupsOf(const Op& op, const Mesh& mesh)
{
    const KeptAttribute* attribute = findAttribute(op.as<OtherAttributes>().attributes, "replica_groups");
    if (attribute == nullptr)
        return unfit(op, "it has no replica_groups");
    auto rows = rowsOf(*attribute);
    if (!rows)
        return unfit(op, fmt::format("replica_groups {} are not a list of groups of devices", attribute->text));
    if (attribute->integers.empty()) {
        Groups one(1, std::vector<std::int64_t>(static_cast<std::size_t>(mesh.deviceCount())));
        std::iota(one.front().begin(), one.front().end(), std::int64_t{0});
        return one;
    }
    const auto positions = positionsOf(mesh);
    std::vector<bool> seen(static_cast<std::size_t>(mesh.deviceCount()), false);
    for (std::vector<std::int64_t>& group : *rows) {
        std::erase(group, std::int64_t{-1});
        for (std::int64_t& device : group) {
            const auto found = positions.find(device);
            if (found == positions.end())
                return foreignDevices(op, fmt::format("unknown device {}", device), mesh);
            if (seen[static_cast<std::size_t>(found->second)])
                return foreignDevices(op, fmt::format("device {} is in the groups twice", device), mesh);
            device = found->second;
            seen[static_cast<std::size_t>(found->second)] = true;
        }
        if (group.size() != rows->front().size())
            return unfit(op, "its groups differ in size");
    }
    if (const auto missing = std::find(seen.begin(), seen.end(), false); missing != seen.end())
        return foreignDevices(op, fmt::format("device {} is in no group", mesh.deviceAt(missing - seen.begin())), mesh);
    return *std::move(rows);
}

Result<std::vector<std::int64_t>> sourcesOf(const Op& op, const Mesh& mesh)
{
    const KeptAttribute* attribute = findAttribute(op.as<OtherAttributes>().attributes, "source_target_pairs");
    if (attribute == nullptr || attribute->integers.size() % 2 != 0)
        return unfit(op, "it has no source_target_pairs");
    const auto positions = positionsOf(mesh);
    std::vector<std::int64_t> sources(static_cast<std::size_t>(mesh.deviceCount()), -1);
    std::vector<bool> gives(sources.size(), false);
    for (std::size_t i = 0; i < attribute->integers.size(); i += 2) {
        const auto source = positions.find(attribute->integers[i]);
        const auto target = positions.find(attribute->integers[i + 1]);
        if (source == positions.end() || target == positions.end())
            return foreignDevices(
                op, fmt::format("unknown device {}", attribute->integers[source == positions.end() ? i : i + 1]), mesh);
        auto& known = sources[static_cast<std::size_t>(target->second)];
        if (known >= 0 || gives[static_cast<std::size_t>(source->second)])
            return foreignDevices(op,
                fmt::format("device {} {} twice", attribute->integers[known >= 0 ? i + 1 : i], known >= 0 ? "receives" : "sends"),
                mesh);
        known = source->second;
        gives[static_cast<std::size_t>(source->second)] = true;
    }
    return sources;
}

/// The dimension that an attribute names.
Result<std::size_t> dimOf(const Op& op, const char* name, std::size_t rank)
{
    const auto dims = dimsAt(op.as<OtherAttributes>().attributes, name, rank);
    if (!dims || dims->size() != 1)
        return unfit(op, fmt::format("{} is not a dimension of its operand", name));
    return dims->front();
}

std::int64_t coordinateOf(std::int64_t position, std::size_t axis, const Mesh& mesh)
{
    return shardIndex(position, {wholeAxis(mesh, axis)}, mesh);
}

std::string groupsText(const Groups& groups, const Mesh& mesh)
{
    std::vector<std::string> rows;
    for (const std::vector<std::int64_t>& group : groups) {
        std::vector<DeviceId> ids;
        for (const std::int64_t position : group)
            ids.push_back(mesh.deviceAt(position));
        rows.push_back(fmt::format("[{}]", fmt::join(ids, ", ")));
    }
    return fmt::format("dense<[{}]> : tensor<{}x{}xi64>", fmt::join(rows, ", "), groups.size(), groups.front().size());
}

KeptAttribute property(std::string name, std::string text, std::vector<std::int64_t> integers)
{
    KeptAttribute attribute;
    attribute.name = std::move(name);
    attribute.text = std::move(text);
    attribute.isProperty = true;
    attribute.integers = std::move(integers);
    return attribute;
}

KeptAttribute dimension(const char* name, std::size_t dim)
{
    return property(name, fmt::format("{} : i64", dim), {static_cast<std::int64_t>(dim)});
}

KeptAttributes attributesOf(const BodyCollective& collective, const Mesh& mesh)
{
    KeptAttributes attributes;
    if (collective.kind == OpKind::AllGather)
        attributes.push_back(dimension("all_gather_dim", collective.join));
    attributes.push_back(property("channel_handle", "#stablehlo.channel_handle<handle = 1, type = 1>", {}));
    if (collective.kind == OpKind::AllToAll)
        attributes.push_back(dimension("concat_dimension", collective.join));
    std::vector<std::int64_t> ids;
    if (collective.kind == OpKind::CollectivePermute) {
        std::vector<std::string> pairs;
        for (std::size_t target = 0; target < collective.sources.size(); ++target) {
            if (collective.sources[target] < 0)
                continue;
            ids.push_back(mesh.deviceAt(collective.sources[target]));
            ids.push_back(mesh.deviceAt(static_cast<std::int64_t>(target)));
            pairs.push_back(fmt::format("[{}, {}]", ids[ids.size() - 2], ids.back()));
        }
        attributes.push_back(property("source_target_pairs",
            pairs.empty() ? "dense<> : tensor<0x2xi64>"
                          : fmt::format("dense<[{}]> : tensor<{}x2xi64>", fmt::join(pairs, ", "), pairs.size()),
            std::move(ids)));
        return attributes;
    }
    for (const std::vector<std::int64_t>& group : collective.groups) {
        for (const std::int64_t position : group)
            ids.push_back(mesh.deviceAt(position));
    }
    attributes.push_back(property("replica_groups", groupsText(collective.groups, mesh), std::move(ids)));
    if (collective.kind == OpKind::ReduceScatter)
        attributes.push_back(dimension("scatter_dimension", collective.split));
    if (collective.kind == OpKind::AllToAll) {
        attributes.push_back(property("split_count", fmt::format("{} : i64", collective.groupSize()), {collective.groupSize()}));
        attributes.push_back(dimension("split_dimension", collective.split));
    } else {
        attributes.push_back(property("use_global_device_ids", {}, {}));
    }
    return attributes;
}

/// Whether the operands become the results.
bool makesResults(const BodyCollective& collective, const Function& function, const Op& op)
{
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const TensorType& operand = function[op.operands[i]].type;
        if (collective.kind == OpKind::ReduceScatter || collective.kind == OpKind::AllToAll) {
            if (operand.shape[collective.split] % collective.groupSize() != 0)
                return false;
        }
        if (resultType(collective, operand) != function[op.results[i]].type)
            return false;
    }
    return true;
}

} // namespace

bool isBodyCollective(const Op& op)
{
    return kindOf(op).has_value();
}

bool isPartitionId(const Op& op)
{
    return op.kind == OpKind::PartitionId;
}

Result<BodyCollective> bodyCollective(const Function& function, const Op& op, const Mesh& mesh)
{
    BodyCollective collective;
    collective.kind = kindOf(op).value();
    if (collective.kind == OpKind::CollectivePermute) {
        auto sources = sourcesOf(op, mesh);
        if (!sources)
            return sources.error();
        collective.sources = *std::move(sources);
        return collective;
    }
    auto groups = groupsOf(op, mesh);
    if (!groups)
        return groups.error();
    collective.groups = *std::move(groups);

    const std::size_t rank = function[op.operands.front()].type.shape.size();
    Problems problems;
    const auto read = [&](const char* name, std::size_t& dim) {
        const auto found = dimOf(op, name, rank);
        if (found)
            dim = *found;
        else
            append(problems, found.error());
    };
    if (collective.kind == OpKind::AllGather)
        read("all_gather_dim", collective.join);
    if (collective.kind == OpKind::ReduceScatter)
        read("scatter_dimension", collective.split);
    if (collective.kind == OpKind::AllToAll) {
        read("split_dimension", collective.split);
        read("concat_dimension", collective.join);
    }
    if (collective.kind == OpKind::AllReduce || collective.kind == OpKind::ReduceScatter) {
        const auto reduction = op.bodies.size() == 1 ? combinerIn(function, op.bodies.front()) : std::nullopt;
        if (reduction)
            collective.reduction = *reduction;
        else
            problems.push_back(unfit(op, "its block is not one add, maximum, minimum, multiply, and, or"));
    }
    if (!problems.empty())
        return problems;
    if (!makesResults(collective, function, op))
        return unfit(op,
            fmt::format("groups of {} devices do not make {} of {}", collective.groupSize(),
                typeText(function[op.results.front()].type), typeText(function[op.operands.front()].type)));
    return collective;
}

TensorType resultType(const BodyCollective& collective, TensorType operand)
{
    const std::int64_t members = collective.groupSize();
    if (collective.kind == OpKind::ReduceScatter || collective.kind == OpKind::AllToAll)
        operand.shape[collective.split] /= members;
    if (collective.kind == OpKind::AllGather || collective.kind == OpKind::AllToAll)
        operand.shape[collective.join] *= members;
    return operand;
}

ValueId addBodyCollective(Builder& builder, const BodyCollective& collective, ValueId operand, const Mesh& mesh)
{
    const auto* name
        = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& row) { return row.kind == collective.kind; });
    const TensorType operandType = builder.type(operand);
    OtherAttributes attributes;
    attributes.name = fmt::format("stablehlo.{}", name->name);
    attributes.attributes = attributesOf(collective, mesh);
    attributes.results = {resultType(collective, operandType)};
    const std::vector<TensorType> results = attributes.results;
    const OpId op = builder.beginOp(OpKind::Other, {operand}, std::move(attributes));
    if (collective.kind == OpKind::AllReduce || collective.kind == OpKind::ReduceScatter) {
        constexpr OpKind kCombiners[]
            = {OpKind::Add, OpKind::Maximum, OpKind::Minimum, OpKind::Multiply, OpKind::And, OpKind::Or};
        const std::vector<TensorType> scalars(2, TensorType{operandType.dtype, {}});
        const std::vector<ValueId> arguments = builder.beginBody(op, scalars);
        builder.setResults(
            {builder.binary(kCombiners[static_cast<std::size_t>(collective.reduction)], arguments[0], arguments[1])});
    }
    return builder.endOp(op, results).front();
}

ValueId addPartitionId(Builder& builder)
{
    OtherAttributes attributes;
    attributes.name = "stablehlo.partition_id";
    attributes.results = {{DType::U32, {}}};
    return builder.add(OpKind::Other, {}, std::move(attributes));
}

ValueId addPlaceInGroup(Builder& builder, const Groups& groups, const Mesh& mesh, std::int64_t factor)
{
    DeviceId last = 0;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        last = std::max(last, mesh.deviceAt(position));
    std::vector<std::int32_t> places(static_cast<std::size_t>(last) + 1, 0);
    for (const std::vector<std::int64_t>& group : groups) {
        for (std::size_t member = 0; member < group.size(); ++member)
            places[static_cast<std::size_t>(mesh.deviceAt(group[member]))]
                = static_cast<std::int32_t>(static_cast<std::int64_t>(member) * factor);
    }
    const TensorType type{DType::S32, {static_cast<std::int64_t>(places.size())}};
    auto blob
        = std::make_shared<const std::string>(reinterpret_cast<const char*>(places.data()), places.size() * sizeof(std::int32_t));
    const ValueId table = builder.add(OpKind::Constant, {}, ConstantAttributes{type, {std::move(blob)}});
    const ValueId id = builder.convert(addPartitionId(builder), DType::S32);
    return builder.reshape(builder.add(OpKind::DynamicSlice, {table, id}, DynamicSliceAttributes{{1}}), {});
}

std::optional<std::vector<std::int32_t>> axesOfPlace(const Function& function, const Op& op, const Mesh& mesh)
{
    const auto producer = [&](ValueId value) -> const Op* {
        const OpId id = function[value].producer;
        return id.valid() ? &function[id] : nullptr;
    };
    if (op.kind != OpKind::DynamicSlice || op.operands.size() != 2)
        return std::nullopt;
    const Op* table = producer(op.operands[0]);
    const Op* id = producer(op.operands[1]);
    if (id != nullptr && id->kind == OpKind::Convert)
        id = producer(id->operands.front());
    if (table == nullptr || table->kind != OpKind::Constant || id == nullptr || !isPartitionId(*id))
        return std::nullopt;
    const auto& constant = table->as<ConstantAttributes>();
    if (constant.data.isSplat())
        return std::vector<std::int32_t>();
    if (constant.data.isElided() || constant.type.dtype != DType::S32)
        return std::nullopt;
    const std::string& bytes = *std::get<2>(constant.data.value);
    std::vector<std::int32_t> elements(bytes.size() / sizeof(std::int32_t));
    std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(std::int32_t));
    const auto elementOf = [&](std::int64_t position) {
        const auto device = static_cast<std::size_t>(mesh.deviceAt(position));
        return elements.empty() ? 0 : elements[std::min(device, elements.size() - 1)];
    };
    std::vector<std::int32_t> axes;
    std::int64_t stride = mesh.deviceCount();
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        stride /= mesh.axes()[axis].size;
        bool differs = false;
        for (std::int64_t position = 0; position < mesh.deviceCount() && !differs; ++position)
            differs = elementOf(position) != elementOf(position - coordinateOf(position, axis, mesh) * stride);
        if (differs)
            axes.push_back(static_cast<std::int32_t>(axis));
    }
    return axes;
}

std::optional<AxisRefs> axesOfGroups(const Groups& groups, const Mesh& mesh)
{
    BodyCollective whole;
    whole.groups = groups;
    std::vector<std::int32_t> order = axesTouched(whole, mesh);
    if (order.size() > 6)
        return std::nullopt;
    const std::map<std::int64_t, std::vector<std::int64_t>> wanted = [&] {
        std::map<std::int64_t, std::vector<std::int64_t>> byFirst;
        for (const std::vector<std::int64_t>& group : groups)
            byFirst[*std::min_element(group.begin(), group.end())] = group;
        return byFirst;
    }();
    do {
        AxisRefs axes;
        for (const std::int32_t axis : order)
            axes.push_back(wholeAxis(mesh, static_cast<std::size_t>(axis)));
        if (shardCount(axes) != whole.groupSize())
            return std::nullopt;
        const Groups found = deviceGroups(axes, mesh);
        const bool same = found.size() == wanted.size()
            && std::equal(found.begin(), found.end(), wanted.begin(),
                [](const auto& group, const auto& entry) { return group == entry.second; });
        if (same)
            return axes;
    } while (std::next_permutation(order.begin(), order.end()));
    return std::nullopt;
}

namespace {

/// Whether some position gets from another coordinate along an axis than its own, or not alike at all of them. `giverOf`: of each position.
bool touches(const std::vector<std::int64_t>& giverOf, std::int64_t stride, std::int64_t size)
{
    const auto count = static_cast<std::int64_t>(giverOf.size());
    const auto at = [&](std::int64_t position) { return giverOf[static_cast<std::size_t>(position)]; };
    for (std::int64_t block = 0; block < count; block += stride * size) {
        for (std::int64_t first = block; first < block + stride; ++first) {
            if (at(first) >= 0 && at(first) / stride % size != 0)
                return true;
            for (std::int64_t coordinate = 1; coordinate < size; ++coordinate) {
                if (at(first + coordinate * stride) != (at(first) < 0 ? at(first) : at(first) + coordinate * stride))
                    return true;
            }
        }
    }
    return false;
}

} // namespace

std::vector<std::int32_t> axesTouched(const BodyCollective& collective, const Mesh& mesh)
{
    // What a position gets comes from these, in this order.
    std::vector<std::vector<std::int64_t>> givers;
    if (!collective.sources.empty()) {
        givers.push_back(collective.sources);
    } else if (!collective.groups.empty()) {
        const std::vector<GroupPlace> places = groupPlaces(collective.groups, mesh);
        for (std::size_t member = 0; member < collective.groups.front().size(); ++member) {
            std::vector<std::int64_t>& giverOf = givers.emplace_back();
            for (const GroupPlace& place : places)
                giverOf.push_back(collective.groups[place.group][member]);
        }
    }
    std::vector<std::int32_t> axes;
    std::int64_t stride = mesh.deviceCount();
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        const std::int64_t size = mesh.axes()[axis].size;
        stride /= size;
        if (std::any_of(givers.begin(), givers.end(), [&](const auto& giverOf) { return touches(giverOf, stride, size); }))
            axes.push_back(static_cast<std::int32_t>(axis));
    }
    return axes;
}

std::vector<GroupPlace> groupPlaces(const Groups& groups, const Mesh& mesh)
{
    std::vector<GroupPlace> places(static_cast<std::size_t>(mesh.deviceCount()));
    for (std::size_t g = 0; g < groups.size(); ++g) {
        for (std::size_t m = 0; m < groups[g].size(); ++m)
            places[static_cast<std::size_t>(groups[g][m])] = {g, m};
    }
    return places;
}

bool isManual(const Op& op)
{
    return op.kind == OpKind::Computation && !op.as<ComputationAttributes>().manualAxes.empty();
}

bool hasManualComputation(const Function& function)
{
    bool found = false;
    forEachOp(function, [&](OpId id) { found = found || isManual(function[id]); });
    return found;
}

} // namespace meshwright
