// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <cstdint>
#include <vector>

namespace meshwright {

/// The orders of devices in which a function's arguments come and its results leave: indices into the program's meshes, 0 for the mesh that
/// everything else is on.
struct BorderOrders {
    std::vector<std::int32_t> arguments;
    std::vector<std::int32_t> results;
};

/// Rewrites all shardings of a program onto one mesh, which is the first of its meshes then; what is on the way from arguments to results
/// knows no other.
///
/// 1. The mesh with the most axes gives its axes and its device order. An axis of it is cut, `x` of 4 into `x_0` and `x_1` of 2, where an
///    axis of another mesh ends inside it. An axis of another mesh becomes the axes over the same devices.
/// 2. Where an order of devices has no such axes, the axes of that mesh stand for axes of the same sizes, and the mesh stays behind the
///    first one as these axes in its own order. What lies in that order outside of a function is in the result; `moveAtBorders` moves it.
/// 3. A mesh without axes says that its arrays are whole, and so does one that names a single device of the others.
///
/// Meshes that no sharding names are dropped; the first one stays when none is named.
/// Example: `@a = <["x"=4, "y"=2]>` and `@b = <["z"=8]>`: z becomes (x, y). With `["x"=2, "y"=4]` as @b, @a becomes x_0=2, x_1=2, y=2.
///
/// Problems: MW1120 two meshes have different devices, MW1213 parts of axes that no cuts can tell apart, MW1214 manual computations on
/// meshes of different device orders.
Result<std::vector<BorderOrders>> ontoOneMesh(Program& program);

} // namespace meshwright
