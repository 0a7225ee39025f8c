// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// What is known of one problem id, whatever the case it arises in.
struct ProblemEntry {
    std::string id; ///< "MW1104"
    std::string title; ///< a few words
    std::string meaning; ///< why it is a problem
    std::string fix; ///< how it is mended
};

/// The ids of one part of the program.
struct ProblemRange {
    std::string from; ///< the first id
    std::string to; ///< the last id
    std::string part; ///< "meshes and shardings"
};

/// The one table of problem ids: resources/problems.yaml.
class ProblemTable {
public:
    /// Problems: MW1440 the file is no such table (an entry without id, title, meaning or fix; ids not ascending; an id in no range); those
    /// of `readFile` and `parseDocument`.
    static Result<ProblemTable> load(const std::filesystem::path& path);

    const std::vector<ProblemEntry>& entries() const { return m_entries; } ///< by ascending ids
    const std::vector<ProblemRange>& ranges() const { return m_ranges; }

    /// The entry of an id (`MW1104`, without regard to case); null when there is none.
    const ProblemEntry* find(std::string_view id) const;

    /// The part of the program that an id belongs to.
    const ProblemRange* rangeOf(std::string_view id) const;

    std::vector<std::string> ids() const;

private:
    std::vector<ProblemEntry> m_entries;
    std::vector<ProblemRange> m_ranges;
};

} // namespace meshwright
