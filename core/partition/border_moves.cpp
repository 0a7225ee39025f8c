// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/border_moves.h"

#include "core/program/builder.h"
#include "core/reshard/reshard_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

class BorderMover {
public:
    BorderMover(DeviceFunction& device, const std::vector<NamedMesh>& meshes)
        : m_device(device)
        , m_function(device.function)
        , m_meshes(meshes)
        , m_builder(device.function)
    {
    }

    void moveArgument(std::size_t index, std::int32_t order)
    {
        const ValueId argument = m_function.arguments()[index];
        TensorSharding inside = *m_function[argument].sharding;
        TensorSharding outside = inside;
        outside.mesh = order;
        const auto attributes = permute(argument, index, outside, inside);
        if (!attributes)
            return;
        m_function[argument].sharding = outside;
        const std::vector<OpId> ops = std::exchange(m_function.body().ops, {});
        m_builder.setPhase(Phase::Forward);
        const ValueId moved = add(argument, *attributes, std::move(inside));
        Block& body = m_function.body();
        for (const OpId op : ops)
            std::replace(m_function[op].operands.begin(), m_function[op].operands.end(), argument, moved);
        std::replace(body.results.begin(), body.results.end(), argument, moved);
        body.ops.insert(body.ops.end(), ops.begin(), ops.end());
    }

    void moveResult(std::size_t index, std::int32_t order)
    {
        const ValueId result = m_function.results()[index];
        TensorSharding outside = *m_function[result].sharding;
        outside.mesh = order;
        const auto attributes = permute(result, index, *m_function[result].sharding, outside);
        if (!attributes)
            return;
        const OpId producer = m_function[result].producer;
        m_builder.setPhase(producer.valid() ? m_function[producer].phase : Phase::Forward);
        const ValueId moved = add(result, *attributes, std::move(outside));
        m_function.body().results[index] = moved;
    }

private:
    const NamedMesh& meshOf(const TensorSharding& sharding) const { return m_meshes[static_cast<std::size_t>(sharding.mesh)]; }

    /// Nothing when every device has what it needs.
    std::optional<CollectiveAttributes> permute(
        ValueId value, std::size_t index, const TensorSharding& from, const TensorSharding& to) const
    {
        const TensorType& type = m_function[value].type;
        const Shape& whole = m_device.globalShapes[value.at()];
        const Mesh& mesh = meshOf(from).mesh;
        CollectiveAttributes attributes
            = reshardStep(OpKind::CollectivePermute, {}, {whole, byteSize(type.dtype)}, from, mesh, to, meshOf(to).mesh)
                  .attributes;
        std::vector<std::int64_t> own(attributes.sources.size());
        std::iota(own.begin(), own.end(), std::int64_t{0});
        if (attributes.sources == own)
            return std::nullopt;
        attributes.axes = unusedAxes({}, mesh); // any device may have what another one needs
        const bool enters = from.mesh != 0;
        attributes.cause.value = m_function[value].name.empty() ? fmt::format("{} {}", enters ? "argument" : "result", index)
                                                                : m_function[value].name;
        attributes.cause.op = enters ? "argument" : "return";
        attributes.cause.reason
            = fmt::format("{} {} on @{}, whose devices are in another order than those of @{}", attributes.cause.value,
                enters ? "comes" : "leaves", meshOf(enters ? from : to).name, meshOf(enters ? to : from).name);
        attributes.cause.annotation = m_function[value].annotation;
        return attributes;
    }

    ValueId add(ValueId value, CollectiveAttributes attributes, TensorSharding layout)
    {
        const ValueId moved = m_builder.add(OpKind::CollectivePermute, {value}, std::move(attributes));
        m_function[moved].role = m_function[value].role;
        m_function[moved].sharding = std::move(layout);
        m_device.globalShapes.resize(m_function.values.size());
        m_device.globalShapes[moved.at()] = Shape(m_device.globalShapes[value.at()]);
        return moved;
    }

    DeviceFunction& m_device;
    Function& m_function;
    const std::vector<NamedMesh>& m_meshes;
    Builder m_builder;
};

} // namespace

void moveAtBorders(DeviceFunction& device, const BorderOrders& orders, const std::vector<NamedMesh>& meshes)
{
    BorderMover mover(device, meshes);
    for (std::size_t i = 0; i < orders.arguments.size(); ++i) {
        if (orders.arguments[i] != 0)
            mover.moveArgument(i, orders.arguments[i]);
    }
    for (std::size_t i = 0; i < orders.results.size(); ++i) {
        if (orders.results[i] != 0)
            mover.moveResult(i, orders.results[i]);
    }
}

} // namespace meshwright
