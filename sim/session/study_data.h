// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"
#include "core/support/result.h"
#include "core/train/dataset.h"

#include <stop_token>

namespace meshwright::sim {

/// The rows that a study trains on, its held-out part set aside; anything once `stop` was asked for.
/// Problems: those of `readDataset`; MW1436 the model does not fit the data, MW1606 a batch is more than there is to train on.
Result<Dataset> datasetOf(const Study& study, const std::stop_token& stop = {});

} // namespace meshwright::sim
