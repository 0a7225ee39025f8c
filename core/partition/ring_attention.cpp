// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/ring_attention.h"

#include "core/partition/device_program.h"
#include "core/reshard/reshard_steps.h"

#include <fmt/format.h>

namespace meshwright {

RingAttention::RingAttention(DeviceOps& ops, const Op& op, AxisRefs axes)
    : m_ops(ops)
    , m_op(op)
    , m_form(*attentionForm(op.as<OtherAttributes>()))
    , m_places(m_form, op.kind)
    , m_axes(std::move(axes))
    , m_parts(shardCount(m_axes))
{
}

std::vector<ValueId> RingAttention::emit(std::vector<Array> operands, const std::vector<Array>& results)
{
    const bool isGradient = m_op.kind == OpKind::AttentionGrad;
    const DType type = m_ops.type(operands[0].value).dtype;
    const std::int64_t keys = m_ops.type(operands[1].value).shape[operands[1].layout.dims.size() - 3];
    const std::vector<std::pair<std::size_t, const char*>> moving = m_form.segmented
        ? std::vector<std::pair<std::size_t, const char*>>{{1, "keys"}, {2, "values"}, {m_places.segments + 1, "segments"}}
        : std::vector<std::pair<std::size_t, const char*>>{{1, "keys"}, {2, "values"}};
    std::vector<ValueId> made;
    for (std::int64_t number = 0; number < m_parts; ++number) {
        std::vector<ValueId> values;
        for (const Array& operand : operands)
            values.push_back(operand.value);
        if (m_form.causal)
            values[m_places.positions + 1] = positions(number, operands[m_places.positions + 1], keys);
        for (const auto& [operand, name] : moving) { // before the part: they need not wait for it
            if (number + 1 < m_parts)
                operands[operand] = moved(operands[operand], name);
        }
        if (!isGradient) {
            if (number > 0)
                values.insert(values.begin() + static_cast<std::ptrdiff_t>(m_places.before), made.begin(), made.end());
            made = part(number, std::move(values), results);
            continue;
        }
        std::vector<ValueId> parts = part(number, std::move(values), results);
        for (std::size_t i = 0; i < parts.size() && number > 0; ++i) {
            const Array before{made[i], results[i].layout, results[i].whole};
            const ValueId arrived = i == 0 ? before.value : moved(before, i == 1 ? "key cotangents" : "value cotangents").value;
            parts[i] = sum(arrived, parts[i], results[i]);
        }
        made = std::move(parts);
    }
    if (!isGradient)
        return {converted(made[0], type, results[0]), made[1]};
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i] = converted(made[i], type, results[i]);
        if (i > 0)
            made[i] = moved({made[i], results[i].layout, results[i].whole}, i == 1 ? "key cotangents" : "value cotangents").value;
    }
    return made;
}

std::vector<ValueId> RingAttention::part(std::int64_t number, std::vector<ValueId> operands, const std::vector<Array>& results)
{
    std::vector<TensorType> types;
    for (const ValueId operand : operands)
        types.push_back(m_ops.type(operand));
    std::vector<ValueId> made
        = m_ops.builder().addMany(m_op.kind, std::move(operands), attentionPart(m_op.as<OtherAttributes>(), number, types));
    for (std::size_t i = 0; i < made.size(); ++i)
        m_ops.describe(made[i], results[i].layout, results[i].whole);
    return made;
}

/// What the device before along the axes has.
RingAttention::Array RingAttention::moved(const Array& array, const std::string& name)
{
    CollectiveAttributes attributes;
    attributes.axes = m_axes;
    attributes.resultShape = m_ops.type(array.value).shape;
    attributes.pieces = PieceExchange{};
    attributes.sources.assign(static_cast<std::size_t>(m_ops.mesh().deviceCount()), -1);
    for (const std::vector<std::int64_t>& group : deviceGroups(m_axes, m_ops.mesh())) {
        for (std::size_t to = 0; to < group.size(); ++to)
            attributes.sources[static_cast<std::size_t>(group[to])] = group[(to + group.size() - 1) % group.size()];
    }
    attributes.cause = {name, std::string(opName(m_op)),
        fmt::format("{} go round the {} devices along {}, so that each device's queries meet all keys", name, m_parts,
            axesText(m_axes, m_ops.mesh())),
        {}};
    return {m_ops.make(OpKind::CollectivePermute, {array.value}, std::move(attributes), array.layout, array.whole), array.layout,
        array.whole};
}

/// Of the keys of a part: those of the device so many places before.
ValueId RingAttention::positions(std::int64_t part, const Array& whole, std::int64_t length)
{
    std::vector<std::int64_t> starts;
    for (std::int64_t piece = 0; piece < m_parts; ++piece)
        starts.push_back((piece + m_parts - part) % m_parts * length);
    TensorSharding layout = whole.layout;
    layout.dims[0].axes = m_axes;
    return m_ops.make(OpKind::DynamicSlice, {whole.value, m_ops.perPiece(starts, m_axes, layout.mesh)},
        DynamicSliceAttributes{{length}}, layout, whole.whole);
}

ValueId RingAttention::converted(ValueId value, DType dtype, const Array& like)
{
    if (m_ops.type(value).dtype == dtype)
        return value;
    return m_ops.make(OpKind::Convert, {value}, ConvertAttributes{dtype}, like.layout, like.whole);
}

ValueId RingAttention::sum(ValueId a, ValueId b, const Array& like)
{
    return m_ops.make(OpKind::Add, {a, b}, {}, like.layout, like.whole);
}

} // namespace meshwright
