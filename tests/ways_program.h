// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

/// Programs on four devices of which every second one goes another way, with other collectives on it.
namespace meshwright::tests {

/// A line that makes %`result` by an all-reduce over `groups`: "[[0, 1], [2, 3]]".
inline QString sumLine(
    const QString& result, const QString& of, const QString& type, const QString& groups, const QString& by = "add")
{
    const QString element = type.section('x', -1);
    return QString(R"(%%1 = "stablehlo.all_reduce"(%%2) <{replica_groups = dense<%4> : tensor<%5xi64>}> ({
          ^bb0(%p: tensor<%6>, %q: tensor<%6>):
            %s = stablehlo.%7 %p, %q : tensor<%6>
            stablehlo.return %s : tensor<%6>
          }) : (tensor<%3>) -> tensor<%3>
)")
        .arg(result, of, type, groups, groups.startsWith("[[0, 1, 2") ? "1x4" : "2x2", element, by);
}

/// `first` is what devices 0 and 2 do with %a, a f32[4,8], as %r; `second` devices 1 and 3.
inline QByteArray waysProgram(const QString& first, const QString& second)
{
    const QString end = "stablehlo.return %r : tensor<4x8xf32>\n";
    return R"(module @ways attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]>
  func.func public @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<16x8xf32>) {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data"} (%a: tensor<4x8xf32>) {
      %id = stablehlo.partition_id : tensor<ui32>
      %two = stablehlo.constant dense<2> : tensor<ui32>
      %odd = stablehlo.remainder %id, %two : tensor<ui32>
      %which = stablehlo.convert %odd : (tensor<ui32>) -> tensor<i32>
      %o = "stablehlo.case"(%which) ({
)" + (first + end + "}, {\n" + second + end).toUtf8()
        + R"(}) : (tensor<i32>) -> tensor<4x8xf32>
      sdy.return %o : tensor<4x8xf32>
    } : (tensor<16x8xf32>) -> tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
)";
}

} // namespace meshwright::tests
