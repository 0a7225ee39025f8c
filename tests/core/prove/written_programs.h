// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

/// Programs that are partitioned, written and read again, and faults in what is written.
namespace meshwright::tests {

struct WrittenFault {
    const char* name;
    const char* right; ///< a part of the text of the device program, and ..
    const char* wrong; ///< .. what stands in its place, everywhere
};

struct WrittenProgram {
    const char* name;
    const char* mesh; ///< its axes; several meshes: whole lines
    const char* signature; ///< arguments and results
    const char* ops;
    std::vector<WrittenFault> faults;
};

#define ROWS(axes) "{sdy.sharding = #sdy.sharding<@mesh, [" axes "]>}"
#define POSITIVE_SUM(value)                                                                                                      \
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%one = stablehlo.constant dense<1.0> : tensor<f32>\n"                     \
    "%s = stablehlo.reduce(" value " init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, "            \
    "tensor<f32>) -> tensor<f32>\n"                                                                                              \
    "%c = stablehlo.compare GT, %s, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
#define BATCH_NORM(kind, operands, types, results)                                                                               \
    "%0:3 = \"stablehlo.batch_norm_" kind "\"(" operands ") <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (" types       \
    ") -> (" results ")\nreturn %0#0, %0#1, %0#2 : " results
#define ARRAY_AND_TWO "tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>"

inline std::vector<WrittenProgram> writtenPrograms()
{
    constexpr const char* kTwo = "\"a\"=2, \"b\"=2";
    constexpr const char* kEight = "\"a\"=8";
    return {
        {"while, its condition summed over devices", kTwo,
            "(%x: tensor<8x4xf32> " ROWS("{\"a\"}, {}") ", %y: tensor<8x4xf32> " ROWS(
                "{\"a\"}, {}") ") -> (tensor<8x4xf32>, tensor<8x4xf32>)",
            "%0:2 = stablehlo.while(%p = %x, %q = %y) : tensor<8x4xf32>, tensor<8x4xf32>\n cond {\n" POSITIVE_SUM(
                "%p") "stablehlo.return %c : tensor<i1>\n} do {\n"
                      "%t = stablehlo.tanh %p : tensor<8x4xf32>\n%u = stablehlo.add %q, %p : tensor<8x4xf32>\n"
                      "stablehlo.return %t, %u : tensor<8x4xf32>, tensor<8x4xf32>\n}\nreturn %0#0, %0#1 : tensor<8x4xf32>, "
                      "tensor<8x4xf32>",
            {{"another group", "all_reduce {\"a\"}", "all_reduce {\"b\"}"},
                {"no all-reduce", "compare GT, %2,", "compare GT, %1,"},
                {"carries exchanged", "stablehlo.return %1, %2 :", "stablehlo.return %2, %1 :"},
                {"starts exchanged", "(%iterArg = %arg0, %iterArg_0 = %arg1)", "(%iterArg = %arg1, %iterArg_0 = %arg0)"}}},
        {"while, a carry that nobody reads", kTwo,
            "(%x: tensor<8x4xf32> " ROWS("{\"a\"}, {}") ", %y: tensor<8x4xf32>) -> tensor<8x4xf32>",
            "%0:3 = stablehlo.while(%p = %x, %q = %y, %r = %x) : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>\n cond "
            "{\n" POSITIVE_SUM("%r") "stablehlo.return %c : tensor<i1>\n} do {\n"
                                     "%t = stablehlo.tanh %p : tensor<8x4xf32>\n%u = stablehlo.add %q, %p : tensor<8x4xf32>\n"
                                     "%v = stablehlo.negate %r : tensor<8x4xf32>\n"
                                     "stablehlo.return %t, %u, %v : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>\n}\n"
                                     "return %0#0 : tensor<8x4xf32>",
            {{"no all-reduce", "compare GT, %2,", "compare GT, %1,"},
                {"carries exchanged", "stablehlo.return %1, %2 :", "stablehlo.return %2, %1 :"}}},
        {"counted loop, a carry that nobody reads", kTwo,
            "(%x: tensor<8x4xf32> " ROWS("{\"a\"}, {}") ", %y: tensor<8x4xf32>) -> tensor<8x4xf32>",
            "%n = stablehlo.constant dense<0> : tensor<i32>\n%0:3 = stablehlo.while(%i = %n, %p = %x, %q = %y) : tensor<i32>, "
            "tensor<8x4xf32>, tensor<8x4xf32>\n cond {\n%m = stablehlo.constant dense<5> : tensor<i32>\n"
            "%c = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %c : "
            "tensor<i1>\n"
            "} do {\n%one = stablehlo.constant dense<1> : tensor<i32>\n%j = stablehlo.add %i, %one : tensor<i32>\n"
            "%t = stablehlo.tanh %p : tensor<8x4xf32>\n%u = stablehlo.negate %q : tensor<8x4xf32>\n"
            "stablehlo.return %j, %t, %u : tensor<i32>, tensor<8x4xf32>, tensor<8x4xf32>\n}\nreturn %0#1 : tensor<8x4xf32>",
            {{"another count", "dense<5>", "dense<4>"}, {"another body", "stablehlo.tanh", "stablehlo.cosine"}}},
        {"branches with collectives", kTwo,
            "(%i: tensor<i32>, %x: tensor<8x8xf32> " ROWS("{}, {\"a\"}") ", %w: tensor<8x8xf32> " ROWS(
                "{\"a\"}, {}") ") -> (tensor<8x8xf32> " ROWS("{}, {}") ")",
            "%0 = \"stablehlo.case\"(%i) ({\n%1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, "
            "tensor<8x8xf32>) -> tensor<8x8xf32>\nstablehlo.return %1 : tensor<8x8xf32>\n}, {\n"
            "%1 = stablehlo.tanh %x : tensor<8x8xf32>\nstablehlo.return %1 : tensor<8x8xf32>\n}, {\n"
            "stablehlo.return %w : tensor<8x8xf32>\n}) : (tensor<i32>) -> tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>",
            {{"another group", "reduce_scatter [{}, {\"a\"}]", "reduce_scatter [{}, {\"b\"}]"},
                {"another branch", "stablehlo.tanh", "stablehlo.cosine"},
                {"no exchange", "all_to_all [{\"a\"}: 0->1]", "all_to_all [{\"b\"}: 0->1]"}}},
        {"loops and branches inside each other, with what nobody reads", kTwo,
            "(%x: tensor<8x4xf32> " ROWS("{\"a\"}, {}") ") -> tensor<8x4xf32>",
            "%n = stablehlo.constant dense<0> : tensor<i32>\n%0:3 = stablehlo.while(%i = %n, %p = %x, %q = %x) : tensor<i32>, "
            "tensor<8x4xf32>, tensor<8x4xf32>\n cond {\n%m = stablehlo.constant dense<3> : tensor<i32>\n"
            "%c = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %c : "
            "tensor<i1>\n"
            "} do {\n" POSITIVE_SUM(
                "%p") "%r:2 = \"stablehlo.if\"(%c) ({\n"
                      "%t:2 = stablehlo.while(%u = %p, %v = %q) : tensor<8x4xf32>, tensor<8x4xf32>\n cond {\n"
                      "%e = stablehlo.reduce(%u init: %z) applies stablehlo.maximum across dimensions = [0, "
                      "1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>\n"
                      "%g = stablehlo.compare GT, %e, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
                      "stablehlo.return %g : tensor<i1>\n} do {\n"
                      "%h = stablehlo.tanh %u : tensor<8x4xf32>\n%k = stablehlo.negate %v : tensor<8x4xf32>\n"
                      "stablehlo.return %h, %k : tensor<8x4xf32>, tensor<8x4xf32>\n}\n"
                      "stablehlo.return %t#0, %t#1 : tensor<8x4xf32>, tensor<8x4xf32>\n}, {\n"
                      "stablehlo.return %p, %q : tensor<8x4xf32>, tensor<8x4xf32>\n"
                      "}) : (tensor<i1>) -> (tensor<8x4xf32>, tensor<8x4xf32>)\n"
                      "%d = stablehlo.constant dense<1> : tensor<i32>\n%j = stablehlo.add %i, %d : tensor<i32>\n"
                      "stablehlo.return %j, %r#0, %r#1 : tensor<i32>, tensor<8x4xf32>, tensor<8x4xf32>\n}\n"
                      "return %0#1 : tensor<8x4xf32>",
            {{"another group", "all_reduce max {\"a\"}", "all_reduce max {\"b\"}"},
                {"another body", "stablehlo.tanh", "stablehlo.cosine"}}},
        {"batch norm in training", kTwo,
            "(%x: tensor<8x4xf32> " ROWS("{\"a\"}, {}") ", %g: tensor<4xf32>, %b: tensor<4xf32>) -> (" ARRAY_AND_TWO ")",
            BATCH_NORM("training", "%x, %g, %b", ARRAY_AND_TWO, ARRAY_AND_TWO),
            {{"another group", "all_reduce {\"a\"}", "all_reduce {\"b\"}"},
                {"a device's own number of rows", "dense<1.250000e-01>", "dense<2.500000e-01>"}}},
        {"batch norm backward", kTwo,
            "(%x: tensor<8x4xf32> " ROWS("{\"a\"}, {}") ", %g: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %y: "
                                                        "tensor<8x4xf32>) -> (" ARRAY_AND_TWO ")",
            BATCH_NORM("grad", "%x, %g, %m, %v, %y", ARRAY_AND_TWO ", tensor<4xf32>, tensor<8x4xf32>", ARRAY_AND_TWO),
            {{"another group", "all_reduce {\"a\"}", "all_reduce {\"b\"}"}}},
        {"a result on parts of axes that may have more", kEight,
            "(%x: tensor<8x8xf32> " ROWS("{\"a\", ?}, {?}") ") -> (tensor<8x8xf32> " ROWS("{\"a\":(1)2, ?}, {}") ")",
            "%0 = stablehlo.tanh %x : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>",
            {{"another op", "stablehlo.tanh", "stablehlo.cosine"}}},
        {"arrays on two meshes", "sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\nsdy.mesh @n = <[\"c\"=8]>\n",
            "(%x: tensor<16x8xf32> " ROWS(
                "{\"a\"}, {\"b\"}") ", %y: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@n, [{\"c\"}, {}]>}) "
                                    "-> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@n, [{\"c\"}, {}]>})",
            "%0 = stablehlo.add %x, %y : tensor<16x8xf32>\nreturn %0 : tensor<16x8xf32>",
            {{"another op", "stablehlo.add", "stablehlo.multiply"}}},
        {"every other element of a split dimension, one a device", kTwo,
            "(%x: tensor<12x12xf32> " ROWS("{}, {\"b\"}") ", %w: tensor<12x6xf32> " ROWS("{}, {\"a\"}") ") -> tensor<2x6xf32>",
            "%0 = stablehlo.slice %x [0:12, 0:4:2] : (tensor<12x12xf32>) -> tensor<12x2xf32>\n"
            "%1 = stablehlo.dot_general %0, %w, contracting_dims = [0] x [0] : (tensor<12x2xf32>, tensor<12x6xf32>) -> "
            "tensor<2x6xf32>\nreturn %1 : tensor<2x6xf32>",
            {{"elements next to each other", "[0:12, 2:3]", "[0:12, 1:2]"}}},
        {"sums of all rows so far, which do not divide", kTwo, "(%x: tensor<9x4xf32>) -> tensor<9x4xf32>",
            "%y = sdy.sharding_constraint %x <@mesh, [{\"a\"}, {\"b\"}]> : tensor<9x4xf32>\n%z = stablehlo.constant dense<0.0> : "
            "tensor<f32>\n"
            "%0 = \"stablehlo.reduce_window\"(%y, %z) <{base_dilations = array<i64: 1, 1>, padding = dense<[[8, 0], [0, 0]]> : "
            "tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 9, 1>, window_strides = "
            "array<i64: 1, 1>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n"
            "stablehlo.return %s : tensor<f32>\n}) : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32>\nreturn %0 : "
            "tensor<9x4xf32>",
            {{"without the last row of a neighbour", "dense<[8, 3]>", "dense<[9, 3]>"}}},
        {"groups of features, on more devices", kEight,
            "(%x: tensor<4x8x8xf32> " ROWS("{}, {}, {\"a\"}") ", %w: tensor<3x4x8xf32>) -> tensor<4x6x8xf32>",
            "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, "
            "0]]} "
            "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<4x8x8xf32>, tensor<3x4x8xf32>) -> "
            "tensor<4x6x8xf32>\nreturn %0 : tensor<4x6x8xf32>",
            {{"no all-reduce", "return %1 : tensor<4x6x4xf32>", "return %0 : tensor<4x6x4xf32>"},
                {"another group", "all_reduce {\"a\":(2)4}", "all_reduce {\"a\":(1)4}"},
                {"weights of another part", "[{}, {\"a\":(2)4}, {\"a\":(1)2}]", "[{}, {\"a\":(1)4}, {\"a\":(4)2}]"}}},
        {"groups of the batch, on more devices", kEight,
            "(%x: tensor<8x8x4xf32> " ROWS("{\"a\"}, {}, {}") ", %w: tensor<3x4x8xf32>) -> tensor<4x6x8xf32>",
            "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, "
            "0]]} "
            "{batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<8x8x4xf32>, tensor<3x4x8xf32>) -> "
            "tensor<4x6x8xf32>\nreturn %0 : tensor<4x6x8xf32>",
            {{"weights of another part", "[{}, {}, {\"a\":(1)2}]", "[{}, {}, {\"a\":(2)2}]"}}},
        {"groups of the batch, on more devices by the features that are made", "\"a\"=4, \"b\"=2",
            "(%x: tensor<4x8x4xf32>, %w: tensor<3x4x8xf32> " ROWS("{}, {}, {\"a\", \"b\"}") ") -> tensor<2x6x8xf32>",
            "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, "
            "0]]} "
            "{batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x8x4xf32>, tensor<3x4x8xf32>) -> "
            "tensor<2x6x8xf32>\nreturn %0 : tensor<2x6x8xf32>",
            {{"images of another group", "[{\"a\":(1)2}, {}, {}]", "[{\"a\":(2)2}, {}, {}]"}}},
        {"a computation whose pieces are split further", kTwo, "(%x: tensor<8x4xf32>) -> tensor<8x4xf32>",
            "%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"a\", ?}, {}]>] out_shardings=[<@mesh, [{\"a\", ?}, {}]>] "
            "manual_axes={\"a\"} (%p: tensor<4x4xf32>) {\n%1 = stablehlo.add %p, %p {sdy.sharding = "
            "#sdy.sharding_per_value<[<@mesh, [{\"b\"}, {}]>]>} : tensor<4x4xf32>\nsdy.return %1 : tensor<4x4xf32>\n} : "
            "(tensor<8x4xf32>) -> tensor<8x4xf32>\nreturn %0 : tensor<8x4xf32>",
            {{"pieces of other devices", "[{\"a\", \"b\"}, {}]>}) -> tensor<2x4xf32> {",
                "[{\"b\", \"a\"}, {}]>}) -> tensor<2x4xf32> {"}}},
        {"rows of complex numbers that do not divide", "\"a\"=2", "(%x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>",
            "%0 = sdy.sharding_constraint %x <@mesh, [{\"a\"}]> : tensor<3xcomplex<f32>>\n"
            "%1 = stablehlo.negate %0 : tensor<3xcomplex<f32>>\nreturn %1 : tensor<3xcomplex<f32>>",
            {{"another op", "stablehlo.negate", "stablehlo.exponential"}}},
        {"how many elements each window of an array has", "\"a\"=4", "() -> (tensor<16xf32> " ROWS("{\"a\"}") ")",
            "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%x = stablehlo.constant dense<1.0> : tensor<16xf32>\n"
            "%0 = \"stablehlo.reduce_window\"(%x, %z) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = "
            "array<i64: 3>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n"
            "stablehlo.return %s : tensor<f32>\n}) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>\nreturn %0 : "
            "tensor<16xf32>",
            {{"without the first element", "dense<[1, 0, 0, 0]>", "dense<[2, 0, 0, 0]>"},
                {"without the last element", "dense<[6, 6, 6, 5]>", "dense<[6, 6, 6, 4]>"},
                {"nothing of a neighbour", "-1, 0, 1, 2>", "-1, 0, 1, -1>"}}},
        {"copies in pieces that do not divide", "\"a\"=4", "() -> (tensor<4x11xf32> " ROWS("{\"a\"}, {}") ")",
            "%x = stablehlo.constant dense<2> : tensor<4x11xi32>\n%0 = stablehlo.xor %x, %x : tensor<4x11xi32>\n"
            "%1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<4x11xi32>\n"
            "%2 = stablehlo.convert %1 : (tensor<4x11xi32>) -> tensor<4x11xf32>\n"
            "%3 = sdy.sharding_constraint %2 <@mesh, [{}, {\"a\"}]> : tensor<4x11xf32>\n"
            "%4 = stablehlo.reverse %3, dims = [0] : tensor<4x11xf32>\n%5 = stablehlo.cosine %4 : tensor<4x11xf32>\n"
            "return %5 : tensor<4x11xf32>",
            {{"another function", "stablehlo.cosine", "stablehlo.sine"}}},
        {"rows that do not divide times ones", "\"a\"=2", "(%x: tensor<13x2xf32>) -> tensor<2xf32>",
            "%0 = sdy.sharding_constraint %x <@mesh, [{\"a\"}, {}]> : tensor<13x2xf32>\n"
            "%1 = stablehlo.constant dense<1.0> : tensor<13xf32>\n%2 = stablehlo.dot_general %0, %1, contracting_dims = [0] x "
            "[0] "
            ": (tensor<13x2xf32>, tensor<13xf32>) -> tensor<2xf32>\nreturn %2 : tensor<2xf32>",
            {{"without the last row", "dense<13>", "dense<12>"}, {"of each device alone", "sdy.all_reduce", "stablehlo.negate"}}},
        {"a dimension regrouped beside some that do not divide", "\"a\"=5, \"b\"=2",
            "(%x: tensor<10x4x8xf32>) -> (tensor<5x2x4x8xf32> " ROWS("{}, {}, {\"b\"}, {}") ")",
            "%0 = stablehlo.reshape %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {\"b\"}, {\"a\"}]>]>} : "
            "(tensor<10x4x8xf32>) -> tensor<5x2x4x8xf32>\n%1 = stablehlo.negate %0 : tensor<5x2x4x8xf32>\nreturn %1 : "
            "tensor<5x2x4x8xf32>",
            {{"others in place of the first", "0:8] {", "1:9] {"}}},
        {"one row that was computed before others, in pieces", kTwo,
            "(%x: tensor<1x1x4xf32>, %y: tensor<7x1x4xf32>) -> (tensor<8x1x4xf32> " ROWS("{\"a\"}, {}, {}") ")",
            "%0 = stablehlo.tanh %x : tensor<1x1x4xf32>\n%1 = stablehlo.negate %y : tensor<7x1x4xf32>\n"
            "%2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x1x4xf32>, tensor<7x1x4xf32>) -> tensor<8x1x4xf32>\n"
            "return %2 : tensor<8x1x4xf32>",
            {{"nothing of a neighbour", "sources = array<i64: -1, -1, 0, 1>", "sources = array<i64: -1, -1, -1, -1>"},
                {"the first row behind the others", "dense<[0, 1]>", "dense<[1, 0]>"}}},
        {"copies that are turned round between devices", "\"a\"=3", "(%x: tensor<f32>) -> (tensor<9xf32> " ROWS("{\"a\"}") ")",
            "%0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<9xf32>\n"
            "%1 = sdy.sharding_constraint %0 <@mesh, [{\"a\"}]> : tensor<9xf32>\n"
            "%2 = stablehlo.reverse %1, dims = [0] : tensor<9xf32>\nreturn %2 : tensor<9xf32>",
            {{"a device receives nothing", "sources = array<i64: 2, 1, 0>", "sources = array<i64: 2, 1, -1>"}}},
    };
}

#undef ROWS
#undef POSITIVE_SUM
#undef BATCH_NORM
#undef ARRAY_AND_TWO

} // namespace meshwright::tests
