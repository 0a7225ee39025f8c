// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/device_dependence.h"

#include <algorithm>

namespace meshwright {

namespace {

/// True when `whole` covers all of `part`.
bool covers(const AxisRef& whole, const AxisRef& part)
{
    return whole.axis == part.axis && part.pre % whole.pre == 0 && (whole.pre * whole.size) % (part.pre * part.size) == 0;
}

bool makesEqual(OpKind kind)
{
    return kind == OpKind::AllReduce || kind == OpKind::AllGather;
}

} // namespace

DeviceDependence::DeviceDependence(const Function& function)
    : m_function(function)
    , m_hidden(function.values.size())
{
    // Loops hand on what their bodies make; nothing is ever taken away, so this ends.
    for (bool changed = true; changed;) {
        changed = false;
        for (const Op& op : function.ops) {
            if (op.block.valid())
                changed = (op.bodies.empty() ? visit(op) : visitBodies(op)) || changed;
        }
    }
}

bool DeviceDependence::isEqualOver(ValueId value, const AxisRefs& axes, std::int32_t mesh) const
{
    const auto& sharding = m_function[value].sharding;
    if (!sharding || sharding->mesh != mesh || !areIndependent(sharding->unreduced, axes))
        return false;
    const bool isSplit = std::any_of(
        sharding->dims.begin(), sharding->dims.end(), [&](const DimSharding& dim) { return !areIndependent(dim.axes, axes); });
    return !isSplit && std::none_of(m_hidden[value.at()].begin(), m_hidden[value.at()].end(), [&](const Part& part) {
        return part.mesh != mesh || !areIndependent(AxisRefs{part.axis}, axes);
    });
}

DeviceDependence::Parts DeviceDependence::layoutOf(ValueId value) const
{
    Parts parts;
    const auto& sharding = m_function[value].sharding;
    if (!sharding)
        return parts;
    const auto take = [&](const AxisRefs& axes) {
        for (const AxisRef& axis : axes) {
            if (axis.size > 1)
                parts.push_back({sharding->mesh, axis});
        }
    };
    for (const DimSharding& dim : sharding->dims)
        take(dim.axes);
    take(sharding->unreduced);
    return parts;
}

/// True when the value did not have all of them.
bool DeviceDependence::add(ValueId value, const Parts& parts)
{
    Parts& hidden = m_hidden[value.at()];
    const std::size_t before = hidden.size();
    for (const Part& part : parts) {
        if (std::find(hidden.begin(), hidden.end(), part) == hidden.end())
            hidden.push_back(part);
    }
    return hidden.size() > before;
}

bool DeviceDependence::visit(const Op& op)
{
    Parts handed;
    for (const ValueId operand : op.operands) {
        const Parts layout = layoutOf(operand);
        handed.insert(handed.end(), layout.begin(), layout.end());
        handed.insert(handed.end(), m_hidden[operand.at()].begin(), m_hidden[operand.at()].end());
    }
    if (handed.empty())
        return false;
    bool changed = false;
    for (const ValueId result : op.results) {
        Parts covering = layoutOf(result);
        if (makesEqual(op.kind)) {
            const auto& sharding = m_function[result].sharding;
            for (const AxisRef& axis : op.as<CollectiveAttributes>().axes)
                covering.push_back({sharding ? sharding->mesh : 0, axis});
        }
        Parts hidden;
        std::copy_if(handed.begin(), handed.end(), std::back_inserter(hidden), [&](const Part& part) {
            return std::none_of(covering.begin(), covering.end(),
                [&](const Part& whole) { return whole.mesh == part.mesh && covers(whole.axis, part.axis); });
        });
        changed = add(result, hidden) || changed;
    }
    return changed;
}

/// Operands and arguments, results and results of bodies, have the same layouts: only what hides goes in and out, and to all of them.
bool DeviceDependence::visitBodies(const Op& op)
{
    Parts hidden;
    const auto take = [&](const std::vector<ValueId>& values) {
        for (const ValueId value : values)
            hidden.insert(hidden.end(), m_hidden[value.at()].begin(), m_hidden[value.at()].end());
    };
    take(op.operands);
    for (const BlockId body : op.bodies)
        take(m_function[body].results);
    bool changed = false;
    for (const ValueId result : op.results)
        changed = add(result, hidden) || changed;
    for (const BlockId body : op.bodies) {
        for (const ValueId argument : m_function[body].arguments)
            changed = add(argument, hidden) || changed;
    }
    return changed;
}

} // namespace meshwright
