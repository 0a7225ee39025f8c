// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/models/config_fields.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// What a configuration calls each of its layers, in order, by whichever field says it: a list of names or letters, lists of layers' numbers, or a step
/// between layers of attention. Empty: nothing is said.
std::vector<std::string> layerWords(FieldReader& reader);

/// How many layers have a window, by "layer_types" as families of attention alone have it; nothing where there is no such list.
/// Problems: MW1351 a kind that is not one of attention, MW1353 a list that is not of the model's layers.
std::optional<std::int64_t> windowedLayers(FieldReader& reader, std::int64_t layers);

/// Experts of the layers that have some, and `denseLayers` 0: `readLayers` finds out which do not. Problems: MW1353 a shared expert that is no
/// multiple of an expert.
void readExperts(FieldReader& reader, TransformerConfig& config);

/// What each layer is: attention of which heads and window, a recurrence, experts or a dense block, or one of the two blocks alone. Sets windows,
/// denseLayers, or where that is not enough kinds and pattern. `words` as of layerWords; the other sizes of `config` are read already.
/// Problems: MW1351 a kind of layer that is not known, MW1352 a size of one missing, MW1353 lists that are not of the model's layers.
void readLayers(FieldReader& reader, TransformerConfig& config, std::vector<std::string> words);

} // namespace meshwright
