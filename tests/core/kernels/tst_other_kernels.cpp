// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "core/program/verify.h"
#include "core/text/program_text.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

namespace tst_other_kernels {

using namespace meshwright;
using namespace meshwright::test;

using Numbers = std::vector<double>;

/// Ops that are kept as the text has them, and run; expected values by hand.
class TestOtherKernels : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void values_data();
    void values();
    void notRun_data();
    void notRun();
};

namespace {

const char* const kAddBlock = "({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n  %s = stablehlo.add %x, %y : tensor<f32>\n  "
                              "stablehlo.return %s : tensor<f32>\n})";
const char* const kMaximumBlock = "({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n  %s = stablehlo.maximum %x, %y : tensor<f32>\n  "
                                  "stablehlo.return %s : tensor<f32>\n})";
const char* const kIsGreaterBlock = "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n  %ge = stablehlo.compare GE, %p, %q, FLOAT : "
                                    "(tensor<f32>, tensor<f32>) -> tensor<i1>\n  stablehlo.return %ge : tensor<i1>\n})";

std::string functionText(const std::string& arguments, const std::string& results, const std::string& ops)
{
    return fmt::format("module {{\n  func.func public @main({}) -> ({}) {{\n{}\n  }}\n}}\n", arguments, results, ops);
}

} // namespace

void TestOtherKernels::values_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<std::vector<Numbers>>("arguments");
    QTest::addColumn<std::vector<Numbers>>("expected");

    const auto row
        = [](const char* name, const std::string& text, std::vector<Numbers> arguments, std::vector<Numbers> expected) {
              QTest::newRow(name) << QString::fromStdString(text) << std::move(arguments) << std::move(expected);
          };
    // Two updates of one place, in their order, and one of a place that is not there.
    row("scatter to two arrays",
        functionText("%a: tensor<4xf32>, %b: tensor<4xi32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>, %w: tensor<3xi32>",
            "tensor<4xf32>, tensor<4xi32>",
            "  %r:2 = \"stablehlo.scatter\"(%a, %b, %i, %u, %w) <{indices_are_sorted = false, scatter_dimension_numbers = "
            "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
            "unique_indices = false}> ({\n  ^bb0(%p: tensor<f32>, %q: tensor<i32>, %x: tensor<f32>, %y: tensor<i32>):\n"
            "    %0 = stablehlo.subtract %p, %x : tensor<f32>\n    %1 = stablehlo.maximum %q, %y : tensor<i32>\n"
            "    stablehlo.return %0, %1 : tensor<f32>, tensor<i32>\n  }) : (tensor<4xf32>, tensor<4xi32>, tensor<3x1xi32>, "
            "tensor<3xf32>, tensor<3xi32>) -> (tensor<4xf32>, tensor<4xi32>)\n  return %r#0, %r#1 : tensor<4xf32>, "
            "tensor<4xi32>"),
        {{10, 20, 30, 40}, {1, 2, 3, 4}, {1, 1, 9}, {1, 2, 3}, {7, 5, 9}}, {{10, 17, 30, 40}, {1, 7, 3, 4}});
    // Blocks may compute in a more precise type than their arrays have: 100 + 100 does not fit i8.
    row("a block of wider integers",
        functionText("%a: tensor<4xi8>", "tensor<i32>, tensor<3xi32>, tensor<2xi32>",
            "  %z = stablehlo.constant dense<0> : tensor<i8>\n"
            "  %s = \"stablehlo.reduce\"(%a, %z) <{dimensions = array<i64: 0>}> ({\n  ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
            "    %0 = stablehlo.add %x, %y : tensor<i32>\n    stablehlo.return %0 : tensor<i32>\n  }) : (tensor<4xi8>, "
            "tensor<i8>) -> tensor<i32>\n"
            "  %w = \"stablehlo.reduce_window\"(%a, %z) <{window_dimensions = array<i64: 2>}> ({\n  ^bb0(%x: tensor<i32>, %y: "
            "tensor<i32>):\n"
            "    %0 = stablehlo.add %x, %y : tensor<i32>\n    stablehlo.return %0 : tensor<i32>\n  }) : (tensor<4xi8>, "
            "tensor<i8>) -> tensor<3xi32>\n"
            "  %b = stablehlo.slice %a [0:2] : (tensor<4xi8>) -> tensor<2xi8>\n"
            "  %i = stablehlo.constant dense<0> : tensor<1x1xi32>\n  %u = stablehlo.slice %a [3:4] : (tensor<4xi8>) -> "
            "tensor<1xi8>\n"
            "  %c = \"stablehlo.scatter\"(%b, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = "
            "[0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n  ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
            "    %0 = stablehlo.add %x, %y : tensor<i32>\n    stablehlo.return %0 : tensor<i32>\n  }) : (tensor<2xi8>, "
            "tensor<1x1xi32>, tensor<1xi8>) -> tensor<2xi32>\n"
            "  return %s, %w, %c : tensor<i32>, tensor<3xi32>, tensor<2xi32>"),
        {{100, 100, -3, 120}}, {{317}, {200, 97, 117}, {220, 100}});
    // 1 ^ 3 ^ 6 ^ 1 = 5
    row("a reduction by an op without a kind of its own",
        functionText("%a: tensor<4xi32>", "tensor<i32>",
            "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
            "  %r = stablehlo.reduce(%a init: %z) applies stablehlo.xor across dimensions = [0] : (tensor<4xi32>, tensor<i32>) "
            "-> "
            "tensor<i32>\n"
            "  return %r : tensor<i32>"),
        {{1, 3, 6, 1}}, {{5}});
    row("a sort along the last dimension, which is not named",
        functionText("%a: tensor<2x3xf32>", "tensor<2x3xf32>",
            "  %r = \"stablehlo.sort\"(%a) " + std::string(kIsGreaterBlock)
                + " : (tensor<2x3xf32>) -> tensor<2x3xf32>\n  return %r : tensor<2x3xf32>"),
        {{1, 3, 2, 6, 4, 5}}, {{3, 2, 1, 6, 5, 4}});
    // One channel, a window of two: neighbours, the first weighted by 10.
    row("a convolution whose dimensions are named one by one",
        functionText("%a: tensor<1x4x1xf32>, %w: tensor<1x2x1xf32>", "tensor<1x1x3xf32>",
            "  %r = \"stablehlo.convolution\"(%a, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw\n"
            "    input_batch_dimension = 0,\n    input_feature_dimension = 2,\n    input_spatial_dimensions = [1],\n"
            "    kernel_input_feature_dimension = 2,\n    kernel_output_feature_dimension = 0,\n"
            "    kernel_spatial_dimensions = [1],\n    output_batch_dimension = 0,\n    output_feature_dimension = 1,\n"
            "    output_spatial_dimensions = [2]\n  >, feature_group_count = 1 : i64}> : (tensor<1x4x1xf32>, tensor<1x2x1xf32>) "
            "-> "
            "tensor<1x1x3xf32>\n  return %r : tensor<1x1x3xf32>"),
        {{1, 2, 3, 4}, {10, 1}}, {{12, 23, 34}});
    row("a constant in parentheses",
        functionText("%a: tensor<2xf32>", "tensor<2xf32>",
            "  %c = stablehlo.constant() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>\n"
            "  %r = stablehlo.add %a, %c : tensor<2xf32>\n  return %r : tensor<2xf32>"),
        {{5, 6}}, {{6, 8}});
    // As jnp.argmax: pairs of a value and its place; the larger value, of equal ones the first.
    row("argmax",
        functionText("%a: tensor<2x4xf32>", "tensor<2xf32>, tensor<2xi32>",
            "  %i = stablehlo.iota dim = 1 : tensor<2x4xi32>\n  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
            "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
            "  %r:2 = stablehlo.reduce(%a init: %m), (%i init: %z) across dimensions = [1] : (tensor<2x4xf32>, tensor<2x4xi32>, "
            "tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)\n"
            "   reducer(%v: tensor<f32>, %w: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>)  {\n"
            "    %0 = stablehlo.compare GT, %v, %w, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    %1 = stablehlo.compare EQ, %v, %w, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    %2 = stablehlo.compare LT, %j, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            "    %3 = stablehlo.and %1, %2 : tensor<i1>\n    %4 = stablehlo.or %0, %3 : tensor<i1>\n"
            "    %5 = stablehlo.select %0, %v, %w : tensor<i1>, tensor<f32>\n    %6 = stablehlo.select %4, %j, %k : tensor<i1>, "
            "tensor<i32>\n"
            "    stablehlo.return %5, %6 : tensor<f32>, tensor<i32>\n  }\n"
            "  return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>"),
        {{3, 5, 5, 1, -2, -7, -1, -4}}, {{5, -1}, {1, 2}});
    // By the first array; the second one follows.
    row("sort with a companion",
        functionText("%a: tensor<5xf32>, %b: tensor<5xi32>", "tensor<5xf32>, tensor<5xi32>",
            "  %r:2 = \"stablehlo.sort\"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({\n"
            "  ^bb0(%p: tensor<f32>, %q: tensor<f32>, %s: tensor<i32>, %t: tensor<i32>):\n"
            "    %0 = stablehlo.compare GT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    stablehlo.return %0 : tensor<i1>\n  }) : (tensor<5xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xi32>)\n"
            "  return %r#0, %r#1 : tensor<5xf32>, tensor<5xi32>"),
        {{2, 9, 2, 7, 1}, {0, 1, 2, 3, 4}}, {{9, 7, 2, 2, 1}, {1, 3, 0, 2, 4}});
    row("sort of columns",
        functionText("%a: tensor<3x2xf32>", "tensor<3x2xf32>",
            "  %r = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({\n"
            "  ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
            "    %0 = stablehlo.compare LT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    stablehlo.return %0 : tensor<i1>\n  }) : (tensor<3x2xf32>) -> tensor<3x2xf32>\n  return %r : tensor<3x2xf32>"),
        {{3, 1, 1, 2, 2, 0}}, {{1, 0, 2, 1, 3, 2}});
    // As jnp.sort has it: zeros are one number, NaNs too, and come last.
    row("sort of floating numbers",
        functionText("%a: tensor<4xf32>", "tensor<4xf32>",
            "  %r = \"stablehlo.sort\"(%a) <{dimension = 0 : i64, is_stable = true}> ({\n"
            "  ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
            "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n    %n = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
            "    %0 = stablehlo.compare EQ, %p, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    %1 = stablehlo.select %0, %z, %p : tensor<i1>, tensor<f32>\n"
            "    %2 = stablehlo.compare NE, %p, %p, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    %3 = stablehlo.select %2, %n, %1 : tensor<i1>, tensor<f32>\n"
            "    %4 = stablehlo.compare NE, %q, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    %5 = stablehlo.select %4, %n, %q : tensor<i1>, tensor<f32>\n"
            "    %6 = stablehlo.compare LT, %3, %5, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    stablehlo.return %6 : tensor<i1>\n  }) : (tensor<4xf32>) -> tensor<4xf32>\n  return %r : tensor<4xf32>"),
        {{3, std::nan(""), -1, 2}}, {{-1, 2, 3, std::nan("")}});
    row("the largest two",
        functionText("%a: tensor<2x4xf32>", "tensor<2x2xf32>, tensor<2x2xi32>",
            "  %v, %i = chlo.top_k(%a, k = 2) : tensor<2x4xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)\n"
            "  return %v, %i : tensor<2x2xf32>, tensor<2x2xi32>"),
        {{1, 4, 4, 2, -1, -5, -3, -2}}, {{4, 4, -1, -2}, {1, 2, 0, 3}});
    // In the total order: NaN above all, -NaN below.
    row("the largest of what is not a number",
        functionText("%a: tensor<5xf32>", "tensor<5xf32>, tensor<5xi32>",
            "  %v, %i = chlo.top_k(%a, k = 5) : tensor<5xf32> -> (tensor<5xf32>, tensor<5xi32>)\n"
            "  return %v, %i : tensor<5xf32>, tensor<5xi32>"),
        {{std::numeric_limits<double>::infinity(), std::nan(""), -std::nan(""), -std::numeric_limits<double>::infinity(), 3}},
        {{std::nan(""), std::numeric_limits<double>::infinity(), 3, -std::numeric_limits<double>::infinity(), -std::nan("")},
            {1, 0, 4, 3, 2}});
    row("fewer bits",
        functionText("%a: tensor<5xf32>", "tensor<5xf32>",
            "  %0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<5xf32>\n  return %0 : tensor<5xf32>"),
        {{0.1, 65505, 65520, 1e-8, -3}}, {{0.0999755859375, 65504, std::numeric_limits<double>::infinity(), 0, -3}});
    row("no bits of mantissa",
        functionText("%a: tensor<2xf32>", "tensor<2xf32>",
            "  %0 = stablehlo.reduce_precision %a, format = e5m0 : tensor<2xf32>\n  return %0 : tensor<2xf32>"),
        {{std::nan(""), 3}}, {{std::numeric_limits<double>::infinity(), 4}});
    // As numbers of one bit: a sum is "or", a product "and".
    row("truth values as numbers",
        functionText("%a: tensor<4xi1>, %b: tensor<4xi1>", "tensor<4xi1>, tensor<4xi1>, tensor<i1>",
            "  %0 = stablehlo.add %a, %b : tensor<4xi1>\n  %1 = stablehlo.multiply %a, %b : tensor<4xi1>\n"
            "  %f = stablehlo.constant dense<false> : tensor<i1>\n"
            "  %2 = stablehlo.reduce(%1 init: %f) applies stablehlo.maximum across dimensions = [0] : (tensor<4xi1>, tensor<i1>) "
            "-> tensor<i1>\n  return %0, %1, %2 : tensor<4xi1>, tensor<4xi1>, tensor<i1>"),
        {{0, 0, 1, 1}, {0, 1, 0, 1}}, {{0, 1, 1, 1}, {0, 0, 0, 1}, {1}});
    row("tangents, and parts of real numbers",
        functionText("%a: tensor<2xf32>", "tensor<2xf32>, tensor<2xf32>, tensor<2xf32>",
            "  %0 = chlo.tan %a : tensor<2xf32> -> tensor<2xf32>\n"
            "  %1 = stablehlo.real %a : (tensor<2xf32>) -> tensor<2xf32>\n"
            "  %2 = stablehlo.imag %a : (tensor<2xf32>) -> tensor<2xf32>\n"
            "  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>"),
        {{0.5, -1}}, {{0.5463024898, -1.5574077247}, {0.5, -1}, {0, 0}});
    // Windows that end at each element: 5 - 1 elements of padding before.
    row("running sums",
        functionText("%a: tensor<5xf32>", "tensor<5xf32>",
            fmt::format(
                "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                "  %r = \"stablehlo.reduce_window\"(%a, %z) <{{padding = dense<[[4, 0]]> : tensor<1x2xi64>, window_dimensions = "
                "array<i64: 5>}}> {} : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>\n  return %r : tensor<5xf32>",
                kAddBlock)),
        {{1, 2, 3, 4, 5}}, {{1, 3, 6, 10, 15}});
    row("largest of windows",
        functionText("%a: tensor<6xf32>", "tensor<3xf32>",
            fmt::format("  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
                        "  %r = \"stablehlo.reduce_window\"(%a, %z) <{{window_dimensions = array<i64: 2>, window_strides = "
                        "array<i64: 2>}}> {} : (tensor<6xf32>, tensor<f32>) -> tensor<3xf32>\n  return %r : tensor<3xf32>",
                kMaximumBlock)),
        {{1, 7, -3, -2, 4, 0}}, {{7, -2, 4}});
    row("their gradient",
        functionText("%a: tensor<6xf32>, %g: tensor<3xf32>", "tensor<6xf32>",
            fmt::format(
                "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                "  %r = \"stablehlo.select_and_scatter\"(%a, %g, %z) <{{window_dimensions = array<i64: 2>, window_strides = "
                "array<i64: 2>}}> ({}, {}) : (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32>\n  return %r : "
                "tensor<6xf32>",
                std::string(kIsGreaterBlock).substr(1, std::string(kIsGreaterBlock).size() - 2),
                std::string(kAddBlock).substr(1, std::string(kAddBlock).size() - 2))),
        {{1, 7, -3, -2, 4, 0}, {10, 20, 30}}, {{0, 10, 0, 20, 30, 0}});
    // [1, 4, 1] with [1, 10, 100]: 0 1 2 | 1 2 3 | 2 3 4 | 3 4 0.
    row("convolution",
        functionText("%a: tensor<1x4x1xf32>, %k: tensor<3x1x1xf32>", "tensor<1x4x1xf32>",
            "  %r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = "
            "[[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<3x1x1xf32>) -> "
            "tensor<1x4x1xf32>\n"
            "  return %r : tensor<1x4x1xf32>"),
        {{1, 2, 3, 4}, {1, 10, 100}}, {{210, 321, 432, 43}});
    // Each of two features has a kernel of its own, two elements apart.
    row("depthwise, dilated",
        functionText("%a: tensor<1x3x2xf32>, %k: tensor<2x1x2xf32>", "tensor<1x1x2xf32>",
            "  %r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = "
            "[[0, 0]], lhs_dilate = [1], rhs_dilate = [2], reverse = [false]} "
            "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x3x2xf32>, tensor<2x1x2xf32>) -> "
            "tensor<1x1x2xf32>\n"
            "  return %r : tensor<1x1x2xf32>"),
        {{1, 2, 3, 4, 5, 6}, {1, 10, 100, 1000}}, {{501, 6020}});
    row("bits",
        functionText("%a: tensor<3xi32>", "tensor<3xi32>, tensor<3xi32>",
            "  %0 = stablehlo.popcnt %a : tensor<3xi32>\n  %1 = stablehlo.count_leading_zeros %a : tensor<3xi32>\n  return %0, "
            "%1 : tensor<3xi32>, tensor<3xi32>"),
        {{0, 7, -1}}, {{0, 3, 32}, {32, 29, 0}});
    row("bits of narrow numbers",
        functionText("%a: tensor<3xi8>, %b: tensor<2xui16>", "tensor<3xi8>, tensor<3xi8>, tensor<2xui16>",
            "  %0 = stablehlo.popcnt %a : tensor<3xi8>\n  %1 = stablehlo.count_leading_zeros %a : tensor<3xi8>\n"
            "  %2 = stablehlo.count_leading_zeros %b : tensor<2xui16>\n"
            "  return %0, %1, %2 : tensor<3xi8>, tensor<3xi8>, tensor<2xui16>"),
        {{0, 7, -1}, {1, 65535}}, {{0, 3, 8}, {8, 5, 0}, {15, 0}});
    // Of four bits of mantissa, 1 + 1/32 is half way and goes to the even one, as 1 + 3/32 does.
    row("fewer bits of a narrow type",
        functionText("%a: tensor<3xf16>", "tensor<3xf16>",
            "  %0 = stablehlo.reduce_precision %a, format = e5m4 : tensor<3xf16>\n  return %0 : tensor<3xf16>"),
        {{1.0 + 0x1p-5, 1.0 + 0x3p-5, -3}}, {{1, 1.125, -3}});
    // -NaN, -infinity .. -0, +0 .. infinity, NaN.
    row("total order",
        functionText("%a: tensor<4xf32>, %b: tensor<4xf32>", "tensor<4xi1>, tensor<4xi1>",
            "  %0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>\n"
            "  %1 = stablehlo.compare NE, %a, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>\n"
            "  return %0, %1 : tensor<4xi1>, tensor<4xi1>"),
        {{-0.0, 1, std::nan(""), -std::nan("")}, {0.0, -1, std::nan(""), -5}}, {{1, 0, 0, 1}, {1, 1, 0, 1}});
    row("functions",
        functionText("%a: tensor<2xf32>", "tensor<2xf32>, tensor<2xf32>",
            "  %0 = chlo.sinh %a : tensor<2xf32> -> tensor<2xf32>\n  %1 = chlo.atan %a : tensor<2xf32> -> tensor<2xf32>\n  "
            "return %0, %1 : tensor<2xf32>, tensor<2xf32>"),
        {{0, 1}}, {{0, 1.17520119}, {0, 0.78539816}});
    row("the derivative of ln gamma", // psi(1) = -0.57721566 (Euler's constant), psi(1/2) = psi(1) - 2 ln 2, psi(-1/2) = psi(1/2) + 2
        functionText("%a: tensor<4xf32>", "tensor<4xf32>",
            "  %0 = chlo.digamma %a : tensor<4xf32> -> tensor<4xf32>\n  return %0 : tensor<4xf32>"),
        {{1, 0.5, -0.5, 20}}, {{-0.57721566, -1.96351003, 0.036489974, 2.97052399}});
    row("the next number",
        functionText("%a: tensor<3xf32>, %b: tensor<3xf32>", "tensor<3xi1>, tensor<3xi1>",
            "  %0 = chlo.next_after %a, %b : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>\n"
            "  %1 = stablehlo.compare GT, %0, %a, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>\n"
            "  %2 = stablehlo.compare LT, %0, %a, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>\n"
            "  return %1, %2 : tensor<3xi1>, tensor<3xi1>"),
        {{1, 1, 1}, {2, 0, 1}}, {{1, 0, 0}, {0, 1, 0}});
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    row("is_inf",
        functionText("%a: tensor<3xf32>", "tensor<3xi1>",
            "  %0 = chlo.is_inf %a : tensor<3xf32> -> tensor<3xi1>\n  return %0 : tensor<3xi1>"),
        {{1, kInfinity, -kInfinity}}, {{0, 1, 1}});
    // [[4, 2], [2, 10]] = l l', l = [[2, 0], [1, 3]].
    row("cholesky",
        functionText("%a: tensor<2x2xf32>", "tensor<2x2xf32>",
            "  %0 = stablehlo.cholesky %a, lower = true : tensor<2x2xf32>\n  return %0 : tensor<2x2xf32>"),
        {{4, 99, 2, 10}}, {{2, 0, 1, 3}});
    row("cholesky, upper",
        functionText("%a: tensor<2x2xf32>", "tensor<2x2xf32>",
            "  %0 = stablehlo.cholesky %a, lower = false : tensor<2x2xf32>\n  return %0 : tensor<2x2xf32>"),
        {{4, 2, 99, 10}}, {{2, 1, 0, 3}});
    const auto bits = [](const char* algorithm, const char* state, const char* type) {
        return functionText(fmt::format("%s: tensor<{}>", state), fmt::format("tensor<{}>, tensor<{}>", state, type),
            fmt::format("  %n, %b = stablehlo.rng_bit_generator %s, algorithm = {} : (tensor<{}>) -> (tensor<{}>, tensor<{}>)\n"
                        "  return %n, %b : tensor<{}>, tensor<{}>",
                algorithm, state, state, type, state, type));
    };
    // A test of JAX's exported programs states these, of its array of 60 rows each tenth (back_compat_test.py, rng_bit_generator on CPU).
    row("bits of the default algorithm, as XLA has them",
        functionText("%k: tensor<4xui32>", "tensor<6x4xui32>",
            "  %0 = stablehlo.reshape %k : (tensor<4xui32>) -> tensor<2x2xui32>\n"
            "  %1 = stablehlo.bitcast_convert %0 : (tensor<2x2xui32>) -> tensor<2xui64>\n"
            "  %n, %b = stablehlo.rng_bit_generator %1, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, "
            "tensor<60x4xui32>)\n"
            "  %2 = stablehlo.slice %b [0:60:10, 0:4] : (tensor<60x4xui32>) -> tensor<6x4xui32>\n  return %2 : tensor<6x4xui32>"),
        {{42, 43, 44, 45}},
        {{2427392780, 1458059130, 393278117, 4094008499, 2979149501, 2789479602, 236667834, 2209180022, 3272265009, 654898663,
            3518128447, 3522413436, 3152133794, 2429726816, 183393703, 2087683200, 2517633375, 3263052868, 344980918, 3676396031,
            3594828247, 2571774884, 3751275505, 2435848784}});
    // Blocks by Random123's known answers: of key and counter 0, and for Philox of all ones.
    row("bits of Threefry", bits("THREE_FRY", "2xui64", "2xui32"), {{0, 0}}, {{0, 1}, {0x6b200159, 0x99ba4efe}});
    row("pairs of Threefry lie along the first even dimension", bits("THREE_FRY", "2xui64", "2x1xui32"), {{0, 0}},
        {{0, 1}, {0x6b200159, 0x99ba4efe}});
    row("one number of Threefry", bits("THREE_FRY", "2xui64", "ui32"), {{0, 0}}, {{0, 1}, {0x6b200159}});
    row("narrow bits of Threefry", bits("THREE_FRY", "2xui64", "1xi8"), {{0, 0}}, {{0, 1}, {0x59}});
    row("wide bits of Threefry", bits("THREE_FRY", "2xui64", "1xui64"), {{0, 0}}, {{0, 1}, {0x99ba4efe6b200159p0}});
    row("bits of Philox", bits("PHILOX", "3xui64", "3xui32"), {{0, 0, 0}}, {{0, 1, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c}});
    row("five numbers of Philox are of two blocks", bits("PHILOX", "2xui64", "5xui16"), {{0, 0}},
        {{0, 2}, {0xe8d5, 0xc58d, 0xac4c, 0xdbd8, 0xcca4}});
    row("wide bits of Philox", bits("PHILOX", "3xui64", "2xui64"), {{0, 0, 0}},
        {{0, 1, 0}, {0xe169c58d6627e8d5p0, 0x9b00dbd8bc57ac4cp0}});
    row("a counter of 128 bits",
        functionText("%s: tensor<3xui64>", "tensor<3xui64>",
            "  %m = stablehlo.constant dense<[0, 18446744073709551615, 0]> : tensor<3xui64>\n  %0 = stablehlo.add %s, %m : "
            "tensor<3xui64>\n  %n, %b = stablehlo.rng_bit_generator %0, algorithm = PHILOX : (tensor<3xui64>) -> "
            "(tensor<3xui64>, "
            "tensor<8xi32>)\n  return %n : tensor<3xui64>"),
        {{7, 0, 5}}, {{7, 1, 6}});
    const auto solve = [](const char* left, const char* lower, const char* transpose) {
        return functionText("%a: tensor<2x2xf32>, %b: tensor<2x2xf32>", "tensor<2x2xf32>",
            fmt::format(
                "  %0 = \"stablehlo.triangular_solve\"(%a, %b) <{{left_side = {}, lower = {}, transpose_a = #stablehlo<transpose "
                "{}>, "
                "unit_diagonal = false}}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\n  return %0 : tensor<2x2xf32>",
                left, lower, transpose));
    };
    // x = [[1, 2], [3, 4]]; l = [[2, 0], [1, 3]], its transpose u = [[2, 1], [0, 3]].
    row("l x = b", solve("true", "true", "NO_TRANSPOSE"), {{2, 0, 1, 3}, {2, 4, 10, 14}}, {{1, 2, 3, 4}});
    row("l' x = b", solve("true", "true", "TRANSPOSE"), {{2, 0, 1, 3}, {5, 8, 9, 12}}, {{1, 2, 3, 4}});
    row("x l = b", solve("false", "true", "NO_TRANSPOSE"), {{2, 0, 1, 3}, {4, 6, 10, 12}}, {{1, 2, 3, 4}});
    row("x u = b", solve("false", "false", "NO_TRANSPOSE"), {{2, 1, 0, 3}, {2, 7, 6, 15}}, {{1, 2, 3, 4}});
}

void TestOtherKernels::values()
{
    QFETCH(QString, text);
    QFETCH(std::vector<Numbers>, arguments);
    QFETCH(std::vector<Numbers>, expected);
    const auto program = readProgram(text.toStdString(), "program.mlir");
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const Problems problems = verify(*program);
    QVERIFY2(problems.empty(), describe(problems).c_str());
    const Function& function = program->functions.front();
    std::vector<HostArray> given;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        given.push_back(HostArray::of(function[function.arguments()[i]].type, arguments[i]));
    for (const bool inDouble : {false, true}) {
        const auto results = evaluate(function, given, {inDouble, {}, {}});
        QVERIFY2(results, results ? "" : describe(results.error()).c_str());
        QCOMPARE(results->size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const std::string wrong = difference((*results)[i], expected[i], 1e-6);
            QVERIFY2(wrong.empty(), wrong.c_str());
        }
    }
}

void TestOtherKernels::notRun_data()
{
    QTest::addColumn<QString>("ops");

    QTest::newRow("nothing is known of it") << "  %0 = \"any.op\"(%a) : (tensor<4xf32>) -> tensor<4xf32>";
    const auto bits = [](const char* name, const char* algorithm, const char* state, const char* type) {
        QTest::newRow(name) << QString::fromStdString(fmt::format(
            "  %s = stablehlo.constant dense<0> : tensor<{1}>\n  %n, %b = stablehlo.rng_bit_generator %s, algorithm = {0} : "
            "(tensor<{1}>) -> (tensor<{1}>, tensor<4x{2}>)\n  %0 = stablehlo.convert %b : (tensor<4x{2}>) -> tensor<4xf32>",
            algorithm, state, type));
    };
    bits("random bits of a state that is not ui64", "DEFAULT", "2xui32", "ui32");
    bits("random bits of three words of Threefry", "THREE_FRY", "3xui64", "ui32");
    bits("random bits of one word", "PHILOX", "1xui64", "ui32");
    bits("random bits as floating numbers", "PHILOX", "2xui64", "f16");
    QTest::newRow("a block that uses a value from outside")
        << "  %s = stablehlo.slice %a [0:1] : (tensor<4xf32>) -> tensor<1xf32>\n"
           "  %v = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>\n  %0 = \"stablehlo.sort\"(%a) <{dimension = 0 : i64}> "
           "({\n  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %d = stablehlo.multiply %x, %v : tensor<f32>\n    %p = "
           "stablehlo.compare LT, %d, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %p : tensor<i1>\n  }) "
           ": (tensor<4xf32>) -> tensor<4xf32>";
    QTest::newRow("a custom call") << "  %0 = stablehlo.custom_call @attention(%a) : (tensor<4xf32>) -> tensor<4xf32>";
}

void TestOtherKernels::notRun()
{
    QFETCH(QString, ops);
    const std::string text
        = functionText("%a: tensor<4xf32>", "tensor<4xf32>", ops.toStdString() + "\n  return %0 : tensor<4xf32>");
    const auto program = readProgram(text, "program.mlir");
    QVERIFY2(program, program ? "" : describe(program.error()).c_str());
    const Problems problems = checkRunnable(program->functions.front());
    QCOMPARE(problems.size(), std::size_t{1});
    QCOMPARE(QString::fromStdString(problems.front().id), QString("MW1501"));
    QVERIFY(problems.front().fix.starts_with("simulate the program instead") || problems.front().fix.starts_with("use a state")
        || problems.front().fix.starts_with("make the value inside"));
}

MESHWRIGHT_TEST(TestOtherKernels)

} // namespace tst_other_kernels

#include "tst_other_kernels.moc"
