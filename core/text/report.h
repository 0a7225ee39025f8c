// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The lines of a text, for many places in it.
class TextLines {
public:
    TextLines(std::string_view text, std::string file);
    std::vector<Place> placesOf(const std::vector<std::size_t>& offsets) const;

private:
    std::string m_file;
    std::vector<std::size_t> m_starts; ///< of each line
};

/// Collects the problems of one text and finds their lines and columns.
class TextProblems {
public:
    TextProblems(std::string_view text, std::string file)
        : m_text(text)
        , m_file(std::move(file))
    {
    }

    /// Always false, so that `return report(..)` leaves a parser. Past kMost problems nothing more is kept.
    bool report(const char* id, std::size_t offset, std::string message, std::string fix = {});

    /// The same for problems of other parts, placed here.
    bool report(Problems problems, std::size_t offset);

    /// Something that the user should know, and that spoils nothing; kept apart.
    void warn(const char* id, std::size_t offset, std::string message, std::string fix = {});

    /// How many problems there are; `forgetFrom` takes back those that came later.
    std::size_t size() const { return m_problems.size(); }
    void forgetFrom(std::size_t size) { m_problems.resize(std::min(size, m_problems.size())); }

    bool empty() const { return m_problems.empty(); }
    bool full() const { return m_problems.size() >= kMost; }
    Problems take();
    Problems takeWarnings();

private:
    static constexpr std::size_t kMost = 100;
    Place placeOf(std::size_t offset) const;

    std::string_view m_text;
    std::string m_file;
    Problems m_problems;
    Problems m_warnings;
};

} // namespace meshwright
