// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/program_text.h"

#include <fmt/format.h>

#include <string>
#include <vector>

/// Programs with manual computations, as JAX lowers shard_map.
namespace meshwright::tests {

/// The op that sums over groups of devices: `groups` as `[[0, 1], [2, 3]]`, `sizes` as `2x2`.
inline std::string allReduce(const std::string& result, const std::string& operand, const std::string& type,
    const std::string& groups, const std::string& sizes, const std::string& combiner = "add")
{
    const std::string scalar = "tensor<" + type.substr(type.rfind('x') == std::string::npos ? 0 : type.rfind('x') + 1) + ">";
    return fmt::format(
        "      {0} = \"stablehlo.all_reduce\"({1}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
        "replica_groups = dense<{2}> : tensor<{3}xi64>, use_global_device_ids}}> ({{\n"
        "      ^bb0(%ra: {4}, %rb: {4}):\n"
        "        %rc = stablehlo.{6} %ra, %rb : {4}\n"
        "        stablehlo.return %rc : {4}\n"
        "      }}) : (tensor<{5}>) -> tensor<{5}>\n",
        result, operand, groups, sizes, scalar, type, combiner);
}

inline std::string reduceScatter(const std::string& result, const std::string& operand, const std::string& from,
    const std::string& to, int dim, const std::string& groups, const std::string& sizes)
{
    return fmt::format(
        "      {} = \"stablehlo.reduce_scatter\"({}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
        "replica_groups = dense<{}> : tensor<{}xi64>, scatter_dimension = {} : i64, use_global_device_ids}}> ({{\n"
        "      ^bb0(%ra: tensor<f32>, %rb: tensor<f32>):\n"
        "        %rc = stablehlo.add %ra, %rb : tensor<f32>\n"
        "        stablehlo.return %rc : tensor<f32>\n"
        "      }}) : (tensor<{}>) -> tensor<{}>\n",
        result, operand, groups, sizes, dim, from, to);
}

inline std::string allGather(const std::string& result, const std::string& operand, const std::string& from,
    const std::string& to, int dim, const std::string& groups, const std::string& sizes)
{
    return fmt::format("      {} = \"stablehlo.all_gather\"({}) <{{all_gather_dim = {} : i64, channel_handle = "
                       "#stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{}> : tensor<{}xi64>, "
                       "use_global_device_ids}}> : (tensor<{}>) -> tensor<{}>\n",
        result, operand, dim, groups, sizes, from, to);
}

inline std::string allToAll(const std::string& result, const std::string& operand, const std::string& from, const std::string& to,
    int split, int concat, const std::string& groups, const std::string& sizes)
{
    return fmt::format(
        "      {} = \"stablehlo.all_to_all\"({}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
        "concat_dimension = {} : i64, replica_groups = dense<{}> : tensor<{}xi64>, split_count = {} : i64, "
        "split_dimension = {} : i64}}> : (tensor<{}>) -> tensor<{}>\n",
        result, operand, concat, groups, sizes, sizes.substr(sizes.find('x') + 1), split, from, to);
}

inline std::string permute(
    const std::string& result, const std::string& operand, const std::string& type, const std::string& pairs, int count)
{
    return fmt::format(
        "      {} = \"stablehlo.collective_permute\"({}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = "
        "1>, source_target_pairs = dense<{}> : tensor<{}x2xi64>}}> : (tensor<{}>) -> tensor<{}>\n",
        result, operand, pairs, count, type, type);
}

/// An operand or a result of a manual computation: types without `tensor<..>`.
struct ManualArray {
    std::string name; ///< of an operand: `%NAME` outside, `%l.NAME` inside; of a result: what the body returns
    std::string whole;
    std::string piece;
    std::string sharding; ///< `[{"x"}, {}]`
};

struct ManualProgram {
    std::string name;
    std::string mesh; ///< `["x"=4]`
    std::string axes; ///< `{"x"}`
    std::vector<ManualArray> operands;
    std::string body;
    std::vector<ManualArray> results;
    std::vector<std::string> collectives; ///< of the program on shards: "all_gather data"
    std::vector<std::string> gradient; ///< of the backward run by all floating arguments, likewise

    std::string text() const
    {
        const auto list = [](const std::vector<ManualArray>& arrays, auto each) {
            std::string text;
            for (const ManualArray& array : arrays)
                text += (text.empty() ? "" : ", ") + each(array);
            return text;
        };
        const auto whole = [](const ManualArray& a) { return "tensor<" + a.whole + ">"; };
        const auto piece = [](const ManualArray& a) { return "tensor<" + a.piece + ">"; };
        const auto sharding = [](const ManualArray& a) { return "<@mesh, " + a.sharding + ">"; };
        std::string returned;
        for (std::size_t i = 0; i < results.size(); ++i)
            returned += (i > 0 ? ", " : "") + (results.size() == 1 ? std::string("%0") : fmt::format("%0#{}", i));
        return fmt::format(
            "module @{0} {{\n  sdy.mesh @mesh = <{1}>\n  func.func public @main({2}) -> ({3}) {{\n"
            "    %0{4} = sdy.manual_computation({5}) in_shardings=[{6}] out_shardings=[{7}] manual_axes={8} ({9}) {{\n"
            "{10}      sdy.return {11} : {12}\n    }} : ({13}) -> ({3})\n    return {14} : {3}\n  }}\n}}\n",
            name, mesh, list(operands, [&](const ManualArray& a) { return "%" + a.name + ": " + whole(a); }),
            list(results, whole), results.size() > 1 ? fmt::format(":{}", results.size()) : "",
            list(operands, [](const ManualArray& a) { return "%" + a.name; }), list(operands, sharding), list(results, sharding),
            axes, list(operands, [&](const ManualArray& a) { return "%l." + a.name + ": " + piece(a); }), body,
            list(results, [](const ManualArray& a) { return a.name; }), list(results, piece), list(operands, whole), returned);
    }
};

inline std::string dot(const std::string& result, const std::string& a, const std::string& b, const std::string& types)
{
    return fmt::format("      {} = stablehlo.dot_general {}, {}, contracting_dims = [1] x [0] : {}\n", result, a, b, types);
}

inline std::string op(const std::string& result, const std::string& what, const std::string& type)
{
    return fmt::format("      {} = stablehlo.{} : tensor<{}>\n", result, what, type);
}

/// JAX's axis_index of an axis of `size` devices, each `stride` apart, as f32.
inline std::string axisIndex(const std::string& result, int size, int stride)
{
    return fmt::format(
        "      %ai.c = stablehlo.constant dense<{}> : tensor<ui32>\n      %ai.d = stablehlo.constant dense<{}> : tensor<ui32>\n"
        "      %ai.0 = stablehlo.partition_id : tensor<ui32>\n"
        "      %ai.1 = stablehlo.divide %ai.0, %ai.c : tensor<ui32>\n"
        "      %ai.2 = stablehlo.remainder %ai.1, %ai.d : tensor<ui32>\n"
        "      {} = stablehlo.convert %ai.2 : (tensor<ui32>) -> tensor<f32>\n",
        stride, size, result);
}

/// Every collective, over axes and over groups of none, values that are the same everywhere and values that are not.
inline std::vector<ManualProgram> manualPrograms()
{
    const std::string data = "[[0, 2], [1, 3]]"; // of data=2, model=2
    const std::string model = "[[0, 1], [2, 3]]";
    const std::string both = R"(["data"=2, "model"=2])";
    const std::string four = R"(["x"=4])";
    const std::string all = "[[0, 1, 2, 3]]";
    std::vector<ManualProgram> programs;

    programs.push_back({"fsdp_matmul", both, R"({"data", "model"})",
        {{"x", "8x4xf32", "4x4xf32", R"([{"data"}, {}])"}, {"w", "4x6xf32", "2x6xf32", R"([{"data"}, {}])"}},
        allGather("%1", "%l.w", "2x6xf32", "4x6xf32", 0, data, "2x2")
            + dot("%2", "%l.x", "%1", "(tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>"),
        {{"%2", "8x6xf32", "4x6xf32", R"([{"data"}, {}])"}}, {"all_gather data"}, {"reduce_scatter data"}});

    programs.push_back({"tensor_parallel", both, R"({"data", "model"})",
        {{"x", "4x8xf32", "4x8xf32", "[{}, {}]"}, {"v", "8x4xf32", "8x2xf32", R"([{}, {"model"}])"},
            {"w", "4x6xf32", "2x6xf32", R"([{"model"}, {}])"}},
        dot("%1", "%l.x", "%l.v", "(tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>") + op("%2", "tanh %1", "4x2xf32")
            + dot("%3", "%2", "%l.w", "(tensor<4x2xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>")
            + allReduce("%4", "%3", "4x6xf32", model, "2x2"),
        {{"%4", "4x6xf32", "4x6xf32", "[{}, {}]"}}, {"all_reduce model"}, {"all_reduce model"}});

    programs.push_back({"megatron_pair", both, R"({"data", "model"})",
        {{"x", "4x10xf32", "4x5xf32", R"([{}, {"model"}])"}, {"v", "10x8xf32", "10x4xf32", R"([{}, {"model"}])"},
            {"w", "8x10xf32", "4x10xf32", R"([{"model"}, {}])"}},
        allGather("%1", "%l.x", "4x5xf32", "4x10xf32", 1, model, "2x2")
            + dot("%2", "%1", "%l.v", "(tensor<4x10xf32>, tensor<10x4xf32>) -> tensor<4x4xf32>")
            + dot("%3", "%2", "%l.w", "(tensor<4x4xf32>, tensor<4x10xf32>) -> tensor<4x10xf32>")
            + reduceScatter("%4", "%3", "4x10xf32", "4x5xf32", 1, model, "2x2"),
        {{"%4", "4x10xf32", "4x5xf32", R"([{}, {"model"}])"}}, {"all_gather model", "reduce_scatter model"},
        {"all_gather model", "reduce_scatter model"}});

    // A loss of replicated parameters: their gradient is summed over the batch's axis, once.
    programs.push_back({"replicated_parameters", four, R"({"x"})",
        {{"x", "8x3xf32", "2x3xf32", R"([{"x"}, {}])"}, {"w", "3xf32", "3xf32", "[{}]"}, {"s", "f32", "f32", "[]"}},
        "      %1 = stablehlo.dot_general %l.x, %l.w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3xf32>) -> "
        "tensor<2xf32>\n"
        "      %2 = stablehlo.broadcast_in_dim %l.s, dims = [] : (tensor<f32>) -> tensor<2xf32>\n"
            + op("%3", "multiply %1, %2", "2xf32") + op("%4", "multiply %3, %1", "2xf32")
            + "      %cst = stablehlo.constant dense<0.0> : tensor<f32>\n"
              "      %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, "
              "tensor<f32>) -> "
              "tensor<f32>\n"
            + allReduce("%6", "%5", "f32", all, "1x4") + op("%7", "multiply %6, %l.s", "f32"),
        {{"%7", "f32", "f32", "[]"}}, {"all_reduce x"}, {"all_reduce x", "all_reduce x"}});

    programs.push_back({"open_ring", four, R"({"x"})", {{"x", "8xf32", "2xf32", R"([{"x"}])"}, {"y", "2xf32", "2xf32", "[{}]"}},
        op("%1", "multiply %l.x, %l.y", "2xf32") + permute("%2", "%1", "2xf32", "[[0, 1], [1, 2], [3, 0]]", 3)
            + op("%3", "multiply %2, %l.x", "2xf32") + permute("%4", "%l.y", "2xf32", "[[2, 0]]", 1)
            + op("%5", "add %3, %4", "2xf32"),
        {{"%5", "8xf32", "2xf32", R"([{"x"}])"}}, {"collective_permute x", "collective_permute x"},
        {"collective_permute x", "collective_permute x", "all_reduce x"}});

    programs.push_back({"all_to_all", four, R"({"x"})", {{"x", "8x8xf32", "2x8xf32", R"([{"x"}, {}])"}},
        op("%1", "tanh %l.x", "2x8xf32") + allToAll("%2", "%1", "2x8xf32", "8x2xf32", 1, 0, all, "1x4")
            + op("%3", "multiply %2, %2", "8x2xf32"),
        {{"%3", "8x8xf32", "8x2xf32", R"([{}, {"x"}])"}}, {"all_to_all x"}, {"all_to_all x"}});

    programs.push_back({"all_to_all_in_place", four, R"({"x"})", {{"x", "8x8xf32", "2x8xf32", R"([{"x"}, {}])"}},
        allToAll("%1", "%l.x", "2x8xf32", "2x8xf32", 1, 1, all, "1x4") + op("%2", "sine %1", "2x8xf32"),
        {{"%2", "8x8xf32", "2x8xf32", R"([{"x"}, {}])"}}, {"all_to_all x"}, {"all_to_all x"}});

    programs.push_back({"axis_index", both, R"({"data", "model"})", {{"x", "4x6xf32", "2x3xf32", R"([{"data"}, {"model"}])"}},
        axisIndex("%1", 2, 2) + "      %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>\n"
            + op("%3", "multiply %l.x, %2", "2x3xf32") + op("%4", "multiply %3, %l.x", "2x3xf32"),
        {{"%4", "4x6xf32", "2x3xf32", R"([{"data"}, {"model"}])"}}, {}, {}});

    programs.push_back({"groups_of_no_axis", four, R"({"x"})",
        {{"x", "8xf32", "2xf32", R"([{"x"}])"}, {"y", "2xf32", "2xf32", "[{}]"}},
        op("%1", "multiply %l.x, %l.y", "2xf32") + allReduce("%2", "%1", "2xf32", "[[0, 2], [1, 3]]", "2x2")
            + allGather("%3", "%2", "2xf32", "4xf32", 0, "[[3, 0], [2, 1]]", "2x2")
            + reduceScatter("%4", "%3", "4xf32", "2xf32", 0, "[[0, 2], [1, 3]]", "2x2") + op("%5", "multiply %4, %l.x", "2xf32"),
        {{"%5", "8xf32", "2xf32", R"([{"x"}])"}}, {"all_reduce x", "all_gather x", "reduce_scatter x"},
        {"all_gather x", "reduce_scatter x", "all_reduce x", "all_reduce x"}});

    // What reaches the largest of all devices has a share of its cotangent.
    programs.push_back({"largest", both, R"({"data", "model"})", {{"x", "4x6xf32", "2x3xf32", R"([{"data"}, {"model"}])"}},
        allReduce("%1", "%l.x", "2x3xf32", data, "2x2", "maximum") + op("%2", "subtract %l.x, %1", "2x3xf32")
            + op("%3", "exponential %2", "2x3xf32") + allReduce("%4", "%3", "2x3xf32", data, "2x2")
            + op("%5", "divide %3, %4", "2x3xf32") + op("%6", "multiply %5, %1", "2x3xf32"),
        {{"%6", "4x6xf32", "2x3xf32", R"([{"data"}, {"model"}])"}}, {"all_reduce data", "all_reduce data"},
        {"all_reduce data", "all_reduce data", "all_reduce data"}});

    programs.push_back({"smallest_of_groups", four, R"({"x"})", {{"x", "8xf32", "2xf32", R"([{"x"}])"}},
        allReduce("%1", "%l.x", "2xf32", "[[0, 2], [1, 3]]", "2x2", "minimum") + op("%2", "multiply %1, %l.x", "2xf32"),
        {{"%2", "8xf32", "2xf32", R"([{"x"}])"}}, {"all_reduce x"}, {"all_reduce x", "all_reduce x"}});

    // The same sum in two steps of which neither is over an axis: the results agree, but nothing says so.
    programs.push_back({"sum_in_two_steps", four, R"({"x"})", {{"x", "8xf32", "2xf32", R"([{"x"}])"}},
        op("%1", "multiply %l.x, %l.x", "2xf32") + allReduce("%2", "%1", "2xf32", "[[0, 2], [1, 3]]", "2x2")
            + allReduce("%3", "%2", "2xf32", "[[0, 1], [2, 3]]", "2x2"),
        {{"%3", "2xf32", "2xf32", "[{}]"}}, {"all_reduce x", "all_reduce x"}, {"all_reduce x", "all_reduce x"}});

    // A sum that is put together as if it differed; its cotangents differ, then.
    programs.push_back({"equal_parts", four, R"({"x"})", {{"x", "8xf32", "2xf32", R"([{"x"}])"}},
        op("%1", "multiply %l.x, %l.x", "2xf32") + allReduce("%2", "%1", "2xf32", all, "1x4"),
        {{"%2", "8xf32", "2xf32", R"([{"x"}])"}, {"%2", "2xf32", "2xf32", "[{}]"}}, {"all_reduce x"}, {"all_reduce x"}});

    // Each device takes its own part of a gathered value's cotangent where all have the whole of it.
    programs.push_back({"gathered_result", four, R"({"x"})", {{"x", "8x2xf32", "2x2xf32", R"([{"x"}, {}])"}},
        op("%1", "sine %l.x", "2x2xf32") + allGather("%2", "%1", "2x2xf32", "8x2xf32", 0, all, "1x4")
            + op("%3", "multiply %2, %2", "8x2xf32"),
        {{"%3", "8x2xf32", "8x2xf32", "[{}, {}]"}}, {"all_gather x"}, {}});

    // Sums and gathers of what all have.
    programs.push_back({"sums_of_equals", four, R"({"x"})", {{"y", "2xf32", "2xf32", "[{}]"}},
        allReduce("%1", "%l.y", "2xf32", all, "1x4") + allGather("%2", "%l.y", "2xf32", "8xf32", 0, all, "1x4")
            + reduceScatter("%3", "%2", "8xf32", "2xf32", 0, all, "1x4") + op("%4", "multiply %1, %l.y", "2xf32"),
        {{"%4", "2xf32", "2xf32", "[{}]"}, {"%3", "8xf32", "2xf32", R"([{"x"}])"}},
        {"all_reduce x", "all_gather x", "reduce_scatter x"}, {"all_gather x", "reduce_scatter x", "all_reduce x"}});

    programs.push_back({"automatic_axis", both, R"({"data"})",
        {{"x", "8x4xf32", "4x4xf32", R"([{"data"}, {}])"}, {"w", "4x6xf32", "4x6xf32", R"([{}, {"model"}])"}},
        dot("%1", "%l.x", "%l.w", "(tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>") + op("%2", "tanh %1", "4x6xf32")
            + allReduce("%3", "%2", "4x6xf32", data, "2x2"),
        {{"%3", "4x6xf32", "4x6xf32", "[{}, {}]"}}, {"all_reduce data", "all_gather model"},
        {"all_reduce data", "all_reduce model"}});

    programs.push_back({"other_device_order", R"(["x"=2, "y"=2], device_ids=[0, 2, 1, 3])", R"({"x", "y"})",
        {{"x", "4xf32", "1xf32", R"([{"x", "y"}])"}},
        "      %1 = stablehlo.partition_id : tensor<ui32>\n"
        "      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<f32>\n"
        "      %3 = stablehlo.reshape %2 : (tensor<f32>) -> tensor<1xf32>\n"
            + op("%4", "multiply %3, %l.x", "1xf32") + allReduce("%5", "%4", "1xf32", "[[0, 1], [2, 3]]", "2x2"),
        {{"%5", "2xf32", "1xf32", R"([{"y"}])"}, {"%3", "4xf32", "1xf32", R"([{"x", "y"}])"}}, {"all_reduce x"}, {}});

    // Three rounds of a loop whose carry all have at first and nobody shares at the end.
    programs.push_back(
        {"loop", four, R"({"x"})", {{"h", "2x2xf32", "2x2xf32", "[{}, {}]"}, {"w", "8x2xf32", "2x2xf32", R"([{"x"}, {}])"}},
            "      %c0 = stablehlo.constant dense<0> : tensor<i32>\n"
            "      %c3 = stablehlo.constant dense<3> : tensor<i32>\n"
            "      %c1 = stablehlo.constant dense<1> : tensor<i32>\n"
            "      %1:3 = stablehlo.while(%i = %c0, %h1 = %l.h, %w1 = %l.w) : tensor<i32>, tensor<2x2xf32>, tensor<2x2xf32>\n"
            "      cond {\n"
            "        %lt = stablehlo.compare  LT, %i, %c3,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            "        stablehlo.return %lt : tensor<i1>\n"
            "      } do {\n"
            "        %next = stablehlo.add %i, %c1 : tensor<i32>\n"
                + dot("%p", "%h1", "%w1", "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>")
                + permute("%q", "%p", "2x2xf32", "[[0, 1], [1, 2], [2, 3], [3, 0]]", 4) + op("%t", "tanh %q", "2x2xf32")
                + "        stablehlo.return %next, %t, %w1 : tensor<i32>, tensor<2x2xf32>, tensor<2x2xf32>\n      }\n"
                + allReduce("%2", "%1#1", "2x2xf32", all, "1x4"),
            {{"%2", "2x2xf32", "2x2xf32", "[{}, {}]"}}, {"collective_permute x", "all_reduce x"},
            {"collective_permute x", "all_reduce x"}});
    return programs;
}

} // namespace meshwright::tests
