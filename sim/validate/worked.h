// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/catalogue.h"
#include "sim/validate/record.h"

#include <map>
#include <optional>
#include <string>

namespace meshwright::sim {

/// Why a worked problem has no answer: the first of its inputs that is no positive number. Nothing when all are.
std::optional<std::string> impossibleInput(const Record& record);

/// The engine's answers to a worked problem, by the names that the record's `answer` has. Which question is asked shows in the names of its inputs
/// and answers, and the chip in the words of the question; nothing is looked up by id. Empty when the engine has no such question or the record
/// leaves out what it would take. Precondition: no impossibleInput.
std::map<std::string, double> workedAnswers(const Record& record, const Catalogue& catalogue);

} // namespace meshwright::sim
