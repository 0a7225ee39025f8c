// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/body_collective.h"

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace meshwright {

/// Axes of a mesh, by index.
using AxisSet = std::set<std::int32_t>;

/// Over which manual axes each value of a manual computation's body may differ from device to device, by value; nothing is known, and the
/// set empty, outside of that body. Over the others all devices have the same: arguments that no sharding splits over an axis, sums and
/// gathers over one.
/// Precondition: the body's collectives fit the mesh.
/// Source: JAX's varying manual axes, jax-ml/jax, docs/notebooks/shard_map.ipynb; here a gather over whole axes counts as the same everywhere.
std::vector<AxisSet> varyingAxes(const Function& function, OpId computation, const Mesh& mesh);

/// Makes explicit where a value that is the same over an axis meets one that is not, or is returned as one that is split over it: there it
/// goes through a "varied" op, the identity, whose derivative is the sum of cotangents over those axes (JAX: pvary and psum). Only
/// `wanted` values do.
void insertVaried(Function& function, OpId computation, const Mesh& mesh, const std::function<bool(ValueId)>& wanted);

/// True for a "varied" op; its axes.
bool isVaried(const Op& op);
AxisRefs variedAxes(const Op& op, const Mesh& mesh);

/// Takes all "varied" ops out again.
void eraseVaried(Function& function);

} // namespace meshwright
