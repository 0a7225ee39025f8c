// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "sim/session/session.h"

#include <memory>
#include <optional>
#include <string>

namespace meshwright::sim {

/// All problems that the verbs find in a document before they work on it: what `check` reports.
///
/// The problems are those of the preparations that the verbs themselves go through (of a study `analysed` for simulate, report, diff and sweep,
/// `trainingPhases` and `datasetOf` for train, `checkSearch` for search; of a program `prepareRun` for run, `propagateAndPartition` for partition and
/// diff), so that a verb refuses nothing that is not here, with the same id and place. What this computer cannot do at the moment (memory, threads, a
/// full disk) is nobody's verdict on a document.
struct Verdict {
    Problems problems; ///< errors: it is wrong; warnings: it costs more than it should
    /// Nothing is wrong, and a verb is for other documents: MW1731 nothing is simulated without hardware, MW1733 a program file is not trained, MW1782
    /// a program for one mesh is not searched, MW1222 a program without a mesh is not partitioned. All are notes.
    Problems notFor;
    std::shared_ptr<const Study> study; ///< null: the text is not a study
    std::optional<Proof> proof; ///< of all that the verbs would run; absent: nobody asked, or nothing was built
};

Verdict verdictOf(const StudySource& source, const Catalogue& catalogue, bool proves = true);

/// The same of a program in StableHLO text that was read. Precondition: it has a function.
Verdict verdictOf(const Program& program, const std::string& file, bool proves = true);

/// MW1222.
Problem noMesh(const std::string& file);

} // namespace meshwright::sim
