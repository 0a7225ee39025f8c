// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/arrays.h"
#include "core/study/study_parts.h"

namespace meshwright {

/// The rows of the digits that come with Meshwright which are for training.
inline constexpr std::int64_t kDigitsTrainingRows = 1500;

/// What the checks of a study's sizes and meshes found out.
struct ShardingKnowns {
    const ReadGaps& gaps;
    const std::vector<std::string>& axisNames; ///< of the mesh and of all phases' meshes
    const std::vector<StudyArray>& arrays;
    const std::vector<AssignedSpec>* assigned; ///< null: some size is not sound
};

/// What a check of a study finds.
struct StudyFindings {
    /// The problem that was added, so that the settings which fix it can be.
    Problem& report(const char* id, std::string message, std::string fix, const std::string& path, std::string rule = {},
        Severity severity = Severity::Error)
    {
        return m_problems.emplace_back(
            Problem{id, std::move(message), std::move(fix), m_study.placeOf(path), severity, std::move(rule), {}});
    }

    const Study& m_study;
    Problems m_problems;
};

/// What is wrong with a study's specs and rules.
/// Problems: MW1101 to MW1104 of a spec, MW1401 and MW1427 of a rule, MW1429 a spec of an array that is not there, MW1431 (a warning) a rule that
/// decides nothing.
Problems checkSharding(const Study& study, const ShardingKnowns& known);

/// The batch next to the study's, if possible not larger, that divides wherever it is split and that the data can fill.
std::optional<std::int64_t> fittingBatch(const Study& study, const std::vector<AssignedSpec>& assigned);

} // namespace meshwright
