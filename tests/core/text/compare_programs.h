// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/transform.h"

#include <fmt/format.h>

#include <string>

namespace meshwright {

/// True when both keep the same of a text, or nothing.
inline bool sameKept(const std::shared_ptr<const KeptText>& a, const std::shared_ptr<const KeptText>& b)
{
    return (a == nullptr ? KeptText() : *a) == (b == nullptr ? KeptText() : *b);
}

/// The first difference between two functions in everything that a Function holds, or nothing.
inline std::string differenceOf(const Function& a, const Function& b)
{
    if (a.name != b.name || a.resultNames != b.resultNames || a.resultShardings != b.resultShardings
        || a.shardingGroups != b.shardingGroups || a.kept != b.kept || a.resultsKept != b.resultsKept)
        return "the name, the results' names or shardings, or the groups of " + a.name;
    if (a.donations.size() != b.donations.size())
        return "the number of donations";
    for (std::size_t i = 0; i < a.donations.size(); ++i) {
        if (a.donations[i].argument != b.donations[i].argument || a.donations[i].result != b.donations[i].result)
            return fmt::format("donation {}", i);
    }
    if (a.values.size() != b.values.size() || a.ops.size() != b.ops.size() || a.blocks.size() != b.blocks.size())
        return fmt::format("{} values, {} ops, {} blocks against {}, {}, {}", a.values.size(), a.ops.size(), a.blocks.size(),
            b.values.size(), b.ops.size(), b.blocks.size());
    for (std::size_t i = 0; i < a.ops.size(); ++i) {
        const Op& x = a.ops[i];
        const Op& y = b.ops[i];
        if (x.kind != y.kind || x.phase != y.phase || x.operands != y.operands || x.results != y.results || x.bodies != y.bodies
            || x.block != y.block)
            return fmt::format("op {}: {} against {}", i, opName(x.kind), opName(y.kind));
        const auto* dataX = std::get_if<ConstantAttributes>(&x.attributes);
        const auto* dataY = std::get_if<ConstantAttributes>(&y.attributes);
        if (!sameKept(x.kept, y.kept))
            return fmt::format("what is kept of op {}: {}", i, opName(x));
        const auto isBlob
            = [](const ConstantAttributes* data) { return data != nullptr && !data->data.isSplat() && !data->data.isElided(); };
        if (isBlob(dataX) && isBlob(dataY)) {
            if (dataX->type != dataY->type || *std::get<2>(dataX->data.value) != *std::get<2>(dataY->data.value))
                return fmt::format("the data of constant {}", i);
        } else if (x.attributes != y.attributes) {
            return fmt::format("the attributes of op {}: {}", i, opName(x));
        }
    }
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        const Value& x = a.values[i];
        const Value& y = b.values[i];
        if (x.type != y.type || x.block != y.block || x.producer != y.producer || x.index != y.index)
            return fmt::format("value {}: {} against {}", i, typeText(x.type), typeText(y.type));
        if (!sameKept(x.kept, y.kept))
            return fmt::format("what is kept of value {}", i);
        if (x.name != y.name || x.role != y.role || x.sharding != y.sharding || x.annotation != y.annotation)
            return fmt::format("the notes of value {}: '{}' against '{}'", i, x.name, y.name);
    }
    for (std::size_t i = 0; i < a.blocks.size(); ++i) {
        if (a.blocks[i].arguments != b.blocks[i].arguments || a.blocks[i].ops != b.blocks[i].ops
            || a.blocks[i].results != b.blocks[i].results)
            return fmt::format("block {}", i);
    }
    return {};
}

/// The same for programs; the functions of `a` are compacted first.
inline std::string differenceOf(const Program& a, const Program& b)
{
    if (a.meshes.size() != b.meshes.size() || a.functions.size() != b.functions.size())
        return "the number of meshes or functions";
    if (a.moduleName != b.moduleName || a.kept != b.kept || a.aliases != b.aliases || a.rest != b.rest || a.trailer != b.trailer)
        return "what is kept of the module";
    for (std::size_t i = 0; i < a.meshes.size(); ++i) {
        if (a.meshes[i].name != b.meshes[i].name || a.meshes[i].mesh != b.meshes[i].mesh
            || a.meshes[i].isMaximal != b.meshes[i].isMaximal)
            return "mesh " + a.meshes[i].name;
    }
    for (std::size_t i = 0; i < a.functions.size(); ++i) {
        if (const std::string difference = differenceOf(compacted(a.functions[i]), b.functions[i]); !difference.empty())
            return difference;
    }
    return {};
}

} // namespace meshwright
