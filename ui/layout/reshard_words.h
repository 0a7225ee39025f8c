// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/partition_spec.h"
#include "sim/session/session.h"

#include <QString>

namespace meshwright::ui {

/// What brings an array from its layout into that of a spec, in a sentence: the collectives with what a device moves in each and, where the study has
/// hardware, their time with the links for themselves; or why the array cannot lie so. Precondition: analysis.built.
QString reshardWords(const sim::Analysis& analysis, const sim::ProgramArray& array, const PartitionSpec& to);

} // namespace meshwright::ui
