// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/logical_axes.h"
#include "core/support/result.h"

#include <string>
#include <string_view>

namespace meshwright {

/// The logical axis rules in a YAML document: a list of them, or a mapping with `logical_axis_rules` (as MaxText's configurations have) or
/// `rules`. A target is a mesh axis, a list of them, or null.
/// Problems: MW1180 there are no rules in it, or one is not a pair; those of `parseDocument` that make the text unreadable.
Result<LogicalRules> readLogicalRules(std::string_view text, const std::string& file);

} // namespace meshwright
