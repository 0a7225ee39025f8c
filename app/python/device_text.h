// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/partition.h"

#include <string>

namespace meshwright::python {

/// What each device does, in the notation in which XLA prints compiled modules: opcodes with pieces' types, groups of devices, turns of loops and where in
/// the page an op comes from, as pages look for them (`compiled.as_text()`), and `meshwright explain` reads them. XLA does not read it: a loop has its
/// arguments side by side, not as one tuple, and attributes that nobody looks for are left out.
std::string deviceText(const DeviceFunction& device, const std::vector<NamedMesh>& meshes);

} // namespace meshwright::python
