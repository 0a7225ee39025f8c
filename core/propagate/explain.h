// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/propagate/propagate.h"

namespace meshwright {

/// For every axis of a value, in order of dimension and axis, the way back to the user: the reason why this value has it, then why the
/// neighbour has it that it came from, and so on to the annotation. As many links as the report knows.
std::vector<std::vector<ShardingReason>> shardingWays(const Function& function, const PropagationReport& report, ValueId value);

/// An axis as users write it: its name; of a part of an axis Shardy's text, `"x":(1)2`.
std::string axisName(const AxisRef& axis, const Mesh& mesh);

} // namespace meshwright
