// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// MaxText's name for a value of a layer that a policy "custom" keeps, of those in `offloadableNames`: "query_proj" for "attention.q"; empty: it has none.
/// A gated block has two products into its width, any other one.
/// Source: AI-Hypercomputer/maxtext, src/maxtext/configs/base.yml (August 2026: the list behind remat_policy).
std::string maxTextTensor(std::string_view value, bool isGated);

/// The values that MaxText's name stands for: attention.q, .k and .v for "qkv_proj"; empty: none of a layer as models here have it.
std::vector<std::string> valuesOfMaxText(std::string_view tensor, bool isGated);

/// All names that a policy "custom" may give, as MaxText has them.
const std::vector<const char*>& maxTextTensors();

} // namespace meshwright::sim
