// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/numerics.h"

#include "core/runtime/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace meshwright {

NumericsCheck::NumericsCheck(const Function& function, PartOf partOf)
    : m_function(function)
    , m_partOf(std::move(partOf))
{
}

std::vector<ValueId> valuesMadeBy(const Function& function, const Instruction& instruction)
{
    const Op& op = function[instruction.ops.back()];
    return isCollective(op.kind) && instruction.update.empty() ? op.results : instruction.writes;
}

std::optional<std::string> NumericsCheck::checkArguments(Addresses addresses) const
{
    for (const ValueId argument : m_function.arguments()) {
        if (auto found = problemOf(argument, addresses, false))
            return found;
    }
    return std::nullopt;
}

void NumericsCheck::before(const Instruction& instruction, Addresses addresses)
{
    m_infinityIsMeant = readsInfinity(instruction, addresses);
}

std::optional<std::string> NumericsCheck::after(const Instruction& instruction, Addresses addresses) const
{
    for (const ValueId value : valuesMadeBy(m_function, instruction)) {
        if (auto found = problemOf(value, addresses, m_infinityIsMeant))
            return found;
    }
    return std::nullopt;
}

std::optional<std::string> NumericsCheck::problemOf(ValueId value, Addresses addresses, bool infinityIsMeant) const
{
    if (addresses[value.at()] == nullptr)
        return std::nullopt;
    const auto found = firstNotFinite(addresses[value.at()], m_function[value].type, extentsOf(value));
    if (!found || (!found->isNan && infinityIsMeant))
        return std::nullopt;
    Shape whole = found->index;
    const IndexBox part = m_partOf(value);
    for (std::size_t dim = 0; dim < whole.size() && dim < part.size(); ++dim)
        whole[dim] += part[dim].start;
    return fmt::format("{} is {} at [{}]{}", valueText(m_function, value), found->isNan ? "NaN" : "infinite",
        fmt::join(whole, ", "),
        whole == found->index ? "" : fmt::format(", which is [{}] of the device's shard", fmt::join(found->index, ", ")));
}

bool NumericsCheck::readsInfinity(const Instruction& instruction, Addresses addresses) const
{
    const auto isInfinite = [&](ValueId value) {
        return addresses[value.at()] != nullptr
            && firstNotFinite(addresses[value.at()], m_function[value].type, extentsOf(value));
    };
    if (std::any_of(instruction.reads.begin(), instruction.reads.end(), isInfinite))
        return true;
    const auto hasInfiniteConstant = [this](OpId id) {
        const auto isConstant = [this](ValueId value) { return isInfiniteConstant(value); };
        const Op& op = m_function[id];
        return std::any_of(op.operands.begin(), op.operands.end(), isConstant)
            || std::any_of(op.results.begin(), op.results.end(), isConstant);
    };
    return std::any_of(instruction.ops.begin(), instruction.ops.end(), hasInfiniteConstant)
        || std::any_of(instruction.update.begin(), instruction.update.end(), hasInfiniteConstant);
}

/// A constant with an infinite element, also spread or converted: such are folded into the passes that read them.
bool NumericsCheck::isInfiniteConstant(ValueId value) const
{
    const OpId producer = m_function[value].producer;
    if (!producer.valid())
        return false;
    const Op& op = m_function[producer];
    if (op.kind == OpKind::BroadcastInDim || op.kind == OpKind::Convert || op.kind == OpKind::Reshape)
        return isInfiniteConstant(op.operands.front());
    if (op.kind != OpKind::Constant)
        return false;
    const ConstantData& data = op.as<ConstantAttributes>().data;
    if (const auto* splat = std::get_if<double>(&data.value))
        return std::isinf(*splat);
    return !data.isSplat() && isFloating(m_function[value].type.dtype); // whatever is in it is meant so
}

Shape NumericsCheck::extentsOf(ValueId value) const
{
    Shape extents = m_function[value].type.shape;
    const IndexBox part = m_partOf(value);
    for (std::size_t dim = 0; dim < extents.size() && dim < part.size(); ++dim)
        extents[dim] = std::min(extents[dim], part[dim].size());
    return extents;
}

} // namespace meshwright
