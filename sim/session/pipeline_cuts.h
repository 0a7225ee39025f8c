// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// The values at which a study's pipeline cuts its model: one fewer than pieces. Behind layers of a loop all have the name of the layers' output.
/// Precondition: it has a pipeline, and was built.
std::vector<std::string> cutValues(const Study& study);

} // namespace meshwright::sim
