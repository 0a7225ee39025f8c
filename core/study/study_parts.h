// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <utility>

namespace meshwright {

/// What could not be read of a study, so that checks which need it are left out.
struct ReadGaps {
    bool axes = false; ///< the mesh's axes are not all known
    bool sizes = false; ///< some size of the mesh, the model or the batch is not known
};

/// `checkStudy` for what was read.
Problems checkStudyParts(const Study& study, const ReadGaps& gaps);

/// Gives the pattern the model's layers, cut off or from its beginning again, and counts those of each kind; kinds without layers leave.
void countKinds(TransformerConfig& config);

/// The words of the study file with their meanings, in the order of documentation.
template <typename T>
using Words = std::vector<std::pair<const char*, T>>;

const Words<Activation>& activationWords();
const Words<LossKind>& lossWords();
const Words<Initializer>& initializerWords();
const Words<LearningRateSchedule::Kind>& rateScheduleWords();
const Words<PipelineOrder>& scheduleWords();
const Words<Fp8Recipe>& fp8Words();
const Words<DType>& dtypeWords(); ///< those that a study may ask for

} // namespace meshwright
