// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <vector>

namespace meshwright {

/// A function that gives the results of `function`, and then the gradient of the sum of all elements of its floating results by each of
/// its floating arguments, which lies as the argument is asked to. The name stays.
///
/// Problems: MW1264 no result or no argument is floating; those of `differentiate`.
Result<Function> withGradients(const Function& function, const std::vector<NamedMesh>& meshes);

} // namespace meshwright
