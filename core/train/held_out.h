// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/training_batches.h"

#include <cstdint>
#include <stop_token>

namespace meshwright {

/// What the model makes of rows that are not trained on.
struct HeldOutMeasure {
    std::int64_t step = 0; ///< steps done
    double accuracy = 0.0;
    double loss = 0.0; ///< the mean over all of them
};

/// Runs "evaluate" on one batch. Problems: those of the runtime.
Result<Done> evaluateBatch(
    TrainingFunction& evaluation, const Function& evaluate, const TrainingBatches::Batch& batch, const std::stop_token& stop);

/// Runs `evaluation`, which computes `evaluate`, on the held-out rows of `data`, batch by batch. The last batch is filled up with its last row,
/// which counts once. The measure's step is left 0. Precondition: `data` has labels and held-out rows. Problems: those of the runtime and of
/// `RowFile::read`.
Result<HeldOutMeasure> measureHeldOut(TrainingFunction& evaluation, const Function& evaluate, const TrainingBatches& batches,
    const Dataset& data, const std::stop_token& stop);

} // namespace meshwright
