// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace meshwright {

// Arrays are named after their layers: "act.layers.3.ffn"; after those of a loop, or of a part of it, "act.layers.0-63.ffn"; and where a turn has
// several layers, after one of these, "act.layers.0-63.2.ffn".

/// "layers.3", "layers.0-63" and "layers.0-63.2" of these; empty: the name is of no layer that is written out.
std::string layerIn(const std::string& name);

/// "act.layers.*.ffn" of all of these.
std::string ofAnyLayer(const std::string& name);

/// The same of layers in loops. Others keep their numbers.
std::string ofAnyLoop(const std::string& name);

/// "act.layers.ffn" of "act.layers.0-63.ffn": as it is called where the loop is not in parts.
std::string ofWholeLoop(const std::string& name);

} // namespace meshwright
