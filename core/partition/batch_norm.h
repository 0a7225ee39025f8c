// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

namespace meshwright {

/// Replaces batch_norm_training, batch_norm_inference and batch_norm_grad by the reductions and element-wise ops that they stand for. Their
/// statistics are then sums over the devices among which the batch is split, rather than over gathered arrays, and they have derivatives.
/// Elements narrower than f32 are computed in f32. Names, shardings and annotations of their results are kept.
/// Source: openxla/stablehlo, docs/spec.md (batch_norm_training, batch_norm_inference, batch_norm_grad).
void expandBatchNorms(Function& function);

} // namespace meshwright
