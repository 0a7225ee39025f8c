// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

namespace meshwright {

/// What is wrong with a study's pipeline, whose numbers are all in their range, and how it fits the mesh, the batch, the layers and the specs.
/// Problems: MW1460 the axis is not as long as there are stages, MW1461 the batch cannot be cut into so many microbatches, MW1462 the layers
/// cannot be cut so, MW1463 chunks and schedule do not fit, MW1464 a spec has the pipeline's axis, MW1469 a program file, which is not cut,
/// MW1466 train.accumulate beside it, MW1467 more tasks than a step may have. What only training refuses of a loop of layers (MW1462, MW1463) is a
/// warning.
Problems checkPipelineFits(const Study& study);

} // namespace meshwright
