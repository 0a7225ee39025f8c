// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/pages/page.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace meshwright::pages {

/// A page that asks before it answers.
struct Lesson {
    std::string name; ///< of its file, without the ending: 3-products
    std::string title; ///< its first heading
    std::filesystem::path file;
    Page page;

    std::size_t questions() const;
};

/// All lessons in their order. Problems: MW1006; those of `readFile` and `readPage`.
Result<std::vector<Lesson>> lessons();

/// Which questions of each lesson were answered rightly, kept in one file of the user's.
class LessonProgress {
public:
    LessonProgress();

    std::size_t done(const Lesson& lesson) const;

    /// Questions count from 1. Problems: those of writing the file.
    Result<Done> add(const Lesson& lesson, std::size_t question);

private:
    std::filesystem::path m_file; ///< empty: there is no place for one
    std::map<std::string, std::set<std::size_t>> m_done;
};

} // namespace meshwright::pages
