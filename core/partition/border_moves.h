// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_program.h"
#include "core/partition/one_mesh.h"

namespace meshwright {

/// Lets arguments come and results leave in their own orders of devices: a collective permute behind each such argument and before each such
/// result, unless every device has what it needs. `meshes` are those that `ontoOneMesh` made.
void moveAtBorders(DeviceFunction& device, const BorderOrders& orders, const std::vector<NamedMesh>& meshes);

} // namespace meshwright
