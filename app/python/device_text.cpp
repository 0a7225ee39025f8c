// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/device_text.h"

#include "core/program/other_op.h"
#include "core/program/type_names.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright::python {

namespace {

/// f32[8,4]{1,0}
std::string hloType(const TensorType& type)
{
    std::vector<std::size_t> order;
    for (std::size_t dim = type.shape.size(); dim > 0; --dim)
        order.push_back(dim - 1);
    return fmt::format("{}[{}]{}", hloTypeName(type.dtype), fmt::join(type.shape, ","),
        order.empty() ? std::string() : fmt::format("{{{}}}", fmt::join(order, ",")));
}

std::string opcodeOf(const Op& op)
{
    switch (op.kind) {
    case OpKind::DotGeneral:
        return "dot";
    case OpKind::BroadcastInDim:
        return "broadcast";
    case OpKind::Exp:
        return "exponential";
    case OpKind::Repeat:
    case OpKind::While:
        return "while";
    case OpKind::Case:
        return "conditional";
    case OpKind::AllSlice:
        return "dynamic-slice";
    default: {
        const auto* other = std::get_if<OtherAttributes>(&op.attributes);
        std::string name = other != nullptr ? std::string(baseName(other->name)) : opName(op.kind);
        std::replace(name.begin(), name.end(), '_', '-');
        return name;
    }
    }
}

class Writer {
public:
    Writer(const Function& function, const std::vector<NamedMesh>& meshes)
        : m_function(function)
        , m_meshes(meshes)
        , m_names(function.values.size())
    {
    }

    std::string module()
    {
        const std::string entry = computation(BlockId(std::int32_t{0}), "ENTRY %main", fmt::format("jit({})", m_function.name));
        return fmt::format("HloModule jit_{}, num_partitions={}\n\n{}{}", m_function.name, m_meshes.front().mesh.deviceCount(),
            fmt::join(m_before, "\n"), m_before.empty() ? entry : "\n" + entry);
    }

private:
    std::string typesOf(const std::vector<ValueId>& values) const
    {
        std::vector<std::string> types;
        for (const ValueId value : values)
            types.push_back(hloType(m_function[value].type));
        return types.size() == 1 ? types.front() : fmt::format("({})", fmt::join(types, ", "));
    }

    std::string namesOf(const std::vector<ValueId>& values) const
    {
        std::vector<std::string> names;
        for (const ValueId value : values)
            names.push_back(m_names[value.at()]);
        return fmt::format("{}", fmt::join(names, ", "));
    }

    /// A block, behind those that its ops have. `within` is where it stands in the page's function: "jit(step)/while/body".
    std::string computation(BlockId id, const std::string& head, const std::string& within)
    {
        const Block& block = m_function[id];
        std::vector<std::string> lines;
        for (std::size_t i = 0; i < block.arguments.size(); ++i) {
            const ValueId argument = block.arguments[i];
            m_names[argument.at()] = fmt::format("%Arg_{}.{}", i, ++m_count);
            lines.push_back(fmt::format("  {} = {} parameter({}), metadata={{op_name=\"{}\"}}", m_names[argument.at()],
                hloType(m_function[argument].type), i, m_function[argument].name));
        }
        for (const OpId op : block.ops)
            add(lines, m_function[op], within);
        lines.push_back(
            fmt::format("  ROOT %tuple.{} = ({}) tuple({})", ++m_count, typesOf(block.results), namesOf(block.results)));
        return fmt::format(
            "{} ({}) -> {} {{\n{}\n}}\n", head, typesOf(block.arguments), typesOf(block.results), fmt::join(lines, "\n"));
    }

    void add(std::vector<std::string>& lines, const Op& op, const std::string& within)
    {
        const std::string opcode = opcodeOf(op);
        std::string attributes = attributesOf(op);
        const char* names[] = {op.kind == OpKind::While ? "condition" : "body", "body"};
        for (std::size_t i = 0; i < op.bodies.size(); ++i) {
            const std::string part = op.kind == OpKind::Case ? fmt::format("branch_{}_fun", i) : i < 2 ? names[i] : "region";
            const std::string name = fmt::format("%{}.{}", part, ++m_count);
            m_before.push_back(computation(op.bodies[i], name, fmt::format("{}/{}/{}", within, opcode, part)));
            attributes += fmt::format(", {}={}", op.kind == OpKind::Case ? fmt::format("branch_{}", i) : part, name);
        }
        if (op.kind == OpKind::Repeat) {
            m_before.push_back(fmt::format(
                "%condition.{} () -> pred[] {{\n  ROOT %constant.{} = pred[] constant(true)\n}}\n", m_count + 1, m_count + 2));
            attributes += fmt::format(", condition=%condition.{}", m_count + 1);
            m_count += 2;
        }
        const std::string name = fmt::format("%{}.{}", opcode, ++m_count);
        const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes);
        const std::string cause = collective != nullptr ? collective->cause.op : std::string();
        lines.push_back(fmt::format("  {} = {} {}({}){}, metadata={{op_name=\"{}/{}\"}}", name, typesOf(op.results), opcode,
            namesOf(op.operands), attributes, within, cause.empty() ? opName(op.kind) : cause));
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            m_names[op.results[i].at()] = name;
            if (op.results.size() == 1)
                continue;
            m_names[op.results[i].at()] = fmt::format("%get-tuple-element.{}", ++m_count);
            lines.push_back(fmt::format("  {} = {} get-tuple-element({}), index={}", m_names[op.results[i].at()],
                hloType(m_function[op.results[i]].type), name, i));
        }
    }

    std::string attributesOf(const Op& op) const
    {
        if (const auto* dot = std::get_if<DotAttributes>(&op.attributes))
            return fmt::format(", lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", fmt::join(dot->lhsContracting, ","),
                fmt::join(dot->rhsContracting, ","));
        if (const auto* repeat = std::get_if<RepeatAttributes>(&op.attributes))
            return fmt::format(", backend_config={{\"known_trip_count\":{{\"n\":\"{}\"}}}}", repeat->count);
        const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes);
        if (collective == nullptr)
            return {};
        const auto& sharding = m_function[op.results.front()].sharding;
        const Mesh& mesh = m_meshes[sharding ? static_cast<std::size_t>(sharding->mesh) : 0].mesh;
        std::vector<std::string> groups;
        if (op.kind == OpKind::CollectivePermute) {
            for (std::size_t to = 0; to < collective->sources.size(); ++to) {
                if (collective->sources[to] >= 0)
                    groups.push_back(fmt::format("{{{},{}}}", collective->sources[to], to));
            }
            return fmt::format(", channel_id={}, source_target_pairs={{{}}}", m_count, fmt::join(groups, ","));
        }
        for (const std::vector<std::int64_t>& group : deviceGroups(collective->axes, mesh))
            groups.push_back(fmt::format("{{{}}}", fmt::join(group, ",")));
        // With a channel these are places in the mesh.
        return fmt::format(", channel_id={}, replica_groups={{{}}}, use_global_device_ids=true", m_count, fmt::join(groups, ","));
    }

    const Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    std::vector<std::string> m_names; ///< by value
    std::vector<std::string> m_before; ///< the blocks of ops
    int m_count = 0;
};

} // namespace

std::string deviceText(const DeviceFunction& device, const std::vector<NamedMesh>& meshes)
{
    return Writer(device.function, meshes).module();
}

} // namespace meshwright::python
