// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

namespace meshwright {

/// Takes out of a program the meshes without axes that stand for no device (`sdy.mesh @empty_mesh = <[]>`): an array that lies on one is whole
/// anywhere, and is then on the first mesh that has axes. Nothing is done to a program that has no such other mesh.
void dropEmptyMeshes(Program& program);

} // namespace meshwright
