// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <vector>

namespace meshwright {

/// Which values a backward run has to do with: those that depend on an argument in question and that a seeded result depends on.
/// Values added to the function later count as inactive.
class Activity {
public:
    Activity(const Function& function, const std::vector<std::size_t>& wrt, const std::vector<std::size_t>& seeds);

    bool operator()(ValueId value) const { return value.at() < m_varied.size() && m_varied[value.at()] && m_useful[value.at()]; }

private:
    bool mark(std::vector<bool>& marks, ValueId value);

    static bool any(const std::vector<bool>& marks, const std::vector<ValueId>& values);

    /// Marks each of `to` whose partner in `from` is marked; true when that changed one.
    bool markAlike(std::vector<bool>& marks, const std::vector<ValueId>& from, const std::vector<ValueId>& to, std::size_t count);

    void markVaried(BlockId block);

    void markUseful(BlockId block);

    const Function& m_function;
    std::vector<bool> m_varied;
    std::vector<bool> m_useful;
};

} // namespace meshwright
