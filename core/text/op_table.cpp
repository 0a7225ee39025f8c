// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/op_table.h"

#include "core/text/notation.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace meshwright {

namespace {

struct Row {
    OpSyntax syntax = OpSyntax::Items;
    std::optional<OpKind> kind;
};

std::unordered_map<std::string, Row> makeTable()
{
    std::unordered_map<std::string, Row> table;
    for (std::size_t i = 0; i < kOpKindCount; ++i) {
        const auto kind = static_cast<OpKind>(i);
        const std::string name = dialectName(kind);
        if (name.empty())
            continue;
        const bool startsWithAxes = isCollective(kind) && kind != OpKind::CollectivePermute && kind != OpKind::Reshard;
        table[name] = {startsWithAxes ? OpSyntax::Collective : OpSyntax::Items, kind};
    }
    table["stablehlo.constant"].syntax = OpSyntax::Constant;
    table["sdy.constant"] = {OpSyntax::Constant, OpKind::Constant};
    for (const char* name : {"sdy.replicated_to_unreduced", "sdy.sharded_to_unreduced"})
        table[name] = {OpSyntax::Collective, OpKind::Reshard};
    table["stablehlo.reduce"].syntax = OpSyntax::Reduce;
    table["stablehlo.while"] = {OpSyntax::While, std::nullopt};
    for (const char* name : {"return", "func.return", "stablehlo.return"})
        table[name] = {OpSyntax::Return, std::nullopt};
    for (const char* name : {"call", "func.call", "stablehlo.custom_call", "stablehlo.dynamic_slice",
             "stablehlo.dynamic_update_slice", "sdy.sharding_group"})
        table[name] = {OpSyntax::Items, std::nullopt};
    return table;
}

const std::unordered_map<std::string, Row>& table()
{
    static const std::unordered_map<std::string, Row> kTable = makeTable();
    return kTable;
}

const Row* find(std::string_view name)
{
    const auto found = table().find(std::string(name));
    return found == table().end() ? nullptr : &found->second;
}

} // namespace

bool isReadableOp(std::string_view name)
{
    return find(name) != nullptr;
}

std::vector<std::string> readableOps()
{
    std::vector<std::string> names;
    for (const auto& [name, row] : table())
        names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
}

OpSyntax opSyntax(std::string_view name)
{
    const Row* row = find(name);
    return row == nullptr ? OpSyntax::Items : row->syntax;
}

std::optional<OpKind> opKindOf(std::string_view name)
{
    const Row* row = find(name);
    return row == nullptr ? std::nullopt : row->kind;
}

std::string_view attributeName(std::string_view name)
{
    // With the names that the generic form uses.
    static const std::unordered_set<std::string_view> kNames = {"mw.annotation", "mw.arguments", "mw.axes", "mw.carries",
        "mw.cause", "mw.channel", "mw.name", "mw.no_sharding", "mw.origin", "mw.partitionable", "mw.phase", "mw.reduction",
        "mw.results", "mw.reversed", "mw.role", "mw.sources", "mw.stacked", "mw.stage", "sdy.sharding", "broadcast_dimensions",
        "call_target_name", "callee", "compare_type", "comparison_direction", "dimensions", "dot_dimension_numbers", "algorithm",
        "group_id", "iota_dimension", "permutation", "sharding", "slice_sizes", "value"};
    const auto found = kNames.find(name);
    return found == kNames.end() ? std::string_view() : *found;
}

} // namespace meshwright
