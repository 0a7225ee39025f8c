// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/chakra/replay.h"

#include <string>

namespace meshwright::sim {

/// What a person reads of a replayed step: `name` is what was replayed.
std::string replayText(const ReplayedStep& step, const std::string& name);

/// `meshwright.replay/1`. `wallSeconds` is measured.
std::string replayJson(const ReplayedStep& step, const std::string& name, double wallSeconds);

/// A row, after the names of its columns.
std::string replayCsv(const ReplayedStep& step, const std::string& name);

} // namespace meshwright::sim
