// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

namespace meshwright {

/// A study of a transformer whose layers are a loop, with a copy of the ops for each layer in its place, as pipelines cut them: each array of
/// all layers becomes one of each, with the same layout and the same first numbers ("layers.ffn.up.w" [layers, hidden, ffn] becomes
/// "layers.0.ffn.up.w" [hidden, ffn] and so on). Problems: MW1546 a spec splits the dimension of the layers over
/// another axis than the pipeline's.
Result<Study> withUnrolledLayers(const Study& study);

/// The same study with the loop cut behind some of the model's layers, so that each piece of a pipeline has a loop over its own: each array of all
/// layers becomes one of the rows of each part ("layers.0-7.ffn.up.w" [8, hidden, ffn]). Problems: as above.
Result<Study> withCutLoops(const Study& study, std::vector<std::int64_t> cuts);

} // namespace meshwright
