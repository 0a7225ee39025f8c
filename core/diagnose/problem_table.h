// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

struct DocNode;

/// What is known of one problem id, whatever the case it arises in.
struct ProblemEntry {
    std::string id; ///< "MW1104"
    std::string title; ///< a few words
    std::string meaning; ///< why it is a problem
    std::string fix; ///< how to fix it
    int exitCode = 0; ///< of a command that ends with it as an error
};

/// An id that no problem has any more. It is never given to another problem.
struct RetiredId {
    std::string id; ///< such as MW1263
    std::string replacedBy; ///< the id of the entry that says it now; empty when the problem cannot arise any more
    std::string because; ///< why it cannot arise; empty when it was replaced
};

/// The ids of one part of the program.
struct ProblemRange {
    std::string from; ///< the first id
    std::string to; ///< the last id
    std::string part; ///< "meshes and shardings"
    int exitCode = 0; ///< of its entries that state none
};

/// The one table of problem ids: resources/problems.yaml.
///
/// `exit` of an entry is the exit code of a command that ends with the problem: 2 usage, 3 an invalid document or path, 4 infeasible, 6 failed
/// while running, 70 a fault of Meshwright. An entry without it has its range's; a range without it has 3.
class ProblemTable {
public:
    /// Problems: MW1440 the file is not such a table (an entry without id, title, meaning or fix; ids not ascending; an id in no range; an
    /// exit code other than those above; a retired id that is an entry, or neither says why nor names an entry that replaced it); those of `readFile` and `parseDocument`.
    static Result<ProblemTable> load(const std::filesystem::path& path);

    const std::vector<ProblemEntry>& entries() const { return m_entries; } ///< by ascending ids
    const std::vector<ProblemRange>& ranges() const { return m_ranges; }

    /// The entry of an id (`MW1104`, without regard to case); null when there is none.
    const ProblemEntry* find(std::string_view id) const;

    /// The retired id `MW1263`, without regard to case; null when it is none.
    const RetiredId* findRetired(std::string_view id) const;

    /// The part of the program that an id belongs to.
    const ProblemRange* rangeOf(std::string_view id) const;

    std::vector<std::string> ids() const;

private:
    RetiredId retiredOf(const DocNode& entry, Problems& problems) const;

    std::vector<ProblemEntry> m_entries;
    std::vector<RetiredId> m_retired;
    std::vector<ProblemRange> m_ranges;
};

} // namespace meshwright
