// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/op_table.h"

#include "core/program/other_op.h"
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
    table["stablehlo.dot"] = {OpSyntax::Items, OpKind::DotGeneral};
    table["chlo.tan"] = {OpSyntax::Items, OpKind::Tan};
    for (const char* name : {"sdy.manual_computation", "sdy.named_computation"})
        table[name] = {OpSyntax::Computation, std::nullopt};
    table["return"] = {OpSyntax::Return, std::nullopt};
    for (const char* name : {"call", "func.call", "sdy.sharding_group", "sdy.data_flow_edge", "sdy.func_data_flow_edge",
             "stablehlo.case", "stablehlo.composite", "stablehlo.if"})
        table[name] = {OpSyntax::Items, std::nullopt};
    return table;
}

/// By views of names that live as long as the program does.
const std::unordered_map<std::string_view, Row>& table()
{
    static const std::unordered_map<std::string, Row> kRows = makeTable();
    static const std::unordered_map<std::string_view, Row> kTable(kRows.begin(), kRows.end());
    return kTable;
}

const Row* find(std::string_view name)
{
    static const Row kReturn{OpSyntax::Return, std::nullopt};
    if (name.ends_with(".return"))
        return &kReturn;
    const auto found = table().find(name);
    return found == table().end() ? nullptr : &found->second;
}

} // namespace

bool isReadableOp(std::string_view name)
{
    if (find(name) != nullptr)
        return true;
    OtherAttributes other;
    other.name = name;
    const OtherClass known = name.starts_with("sdy.") ? OtherClass::Unknown : otherClass(other);
    return known == OtherClass::Elementwise || known == OtherClass::Named;
}

std::vector<std::string> readableOps()
{
    std::vector<std::string> names;
    for (const auto& [name, row] : table())
        names.emplace_back(name);
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

bool isReadAttribute(std::string_view name)
{
    // With the names that the generic form uses.
    static const std::unordered_set<std::string_view> kNames = [] {
        std::unordered_set<std::string_view> names
            = {"algorithm", "allowed_direction", "axes", "broadcast_dimensions", "callee", "compare_type", "comparison_direction",
                "dimension", "dimension_numbers", "dimensions", "dot_dimension_numbers", "edge_padding_high", "edge_padding_low",
                "gathering_axes", "group_id", "has_side_effect", "in_shardings", "indices_are_sorted", "interior_padding",
                "iota_dimension", "limit_indices", "manual_axes", "out_sharding", "out_shardings", "params", "permutation",
                "precision_config", "reduce_scatter_axes", "reduction_axes", "reduction_op", "scatter_dimension_numbers",
                "sharding", "slice_sizes", "slicing_axes", "start_indices", "strides", "unique_indices", "value"};
        for (const OpInfo& info : kOpTable)
            forEachNumber(info.attributes(), [&](const auto& number, const auto&) { names.insert(number.name); });
        return names;
    }();
    return kNames.contains(name) || isNote(name);
}

const Enumerators* enumeratorsOf(std::string_view op, std::string_view attribute)
{
    static const Enumerators kFft{"a kind of Fourier transform", {"FFT", "IFFT", "RFFT", "IRFFT"}};
    static const Enumerators kAlgorithm{"an algorithm of random bits", {"DEFAULT", "THREE_FRY", "PHILOX"}};
    static const Enumerators kDistribution{"a distribution", {"UNIFORM", "NORMAL"}};
    static const Enumerators kTranspose{"a transposition", {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}};
    static const Enumerators kPrecision{"a precision of products", {"DEFAULT", "HIGH", "HIGHEST"}};
    struct Row {
        std::string_view op; ///< without its dialect
        std::string_view attribute;
        const Enumerators* enumerators;
    };
    static constexpr Row kRows[] = {{"fft", "type", &kFft}, {"fft", "fft_type", &kFft},
        {"rng_bit_generator", "algorithm", &kAlgorithm}, {"rng_bit_generator", "rng_algorithm", &kAlgorithm},
        {"rng", "distribution", &kDistribution}, {"rng", "rng_distribution", &kDistribution},
        {"triangular_solve", "transpose_a", &kTranspose}, {"dot", "precision", &kPrecision},
        {"dot", "precision_config", &kPrecision}, {"dot_general", "precision", &kPrecision},
        {"dot_general", "precision_config", &kPrecision}, {"convolution", "precision_config", &kPrecision}};
    const std::string_view base = baseName(op);
    const auto found = std::ranges::find_if(kRows, [&](const Row& row) { return row.attribute == attribute && row.op == base; });
    return found == std::end(kRows) ? nullptr : found->enumerators;
}

bool isNote(std::string_view name)
{
    return name.starts_with("mw.") || name == "sdy.sharding";
}

} // namespace meshwright
