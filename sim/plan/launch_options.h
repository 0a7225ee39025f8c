// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/plan/launch_line.h"

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// The options of a launch line by name, and what is wrong with those that were asked for: MW1494 one is missing, MW1495 one has no such value.
class LaunchOptions {
public:
    /// The line must live as long.
    LaunchOptions(const LaunchLine& launch, std::string file);

    /// The last of this name; null: there is none.
    const LaunchOption* find(std::string_view name);
    bool has(std::string_view name);
    std::string word(std::string_view name, std::string usual);
    /// A whole number from `least` to 2^31.
    std::int64_t size(std::string_view name, std::int64_t usual, std::int64_t least = 1);
    std::int64_t neededSize(std::string_view name);
    double number(std::string_view name, double usual);
    void refuse(const LaunchOption& option, const std::string& why, std::string fix);
    /// Refuses those of these that are there and on: they change the step, and no plan of Meshwright's does what they ask for.
    void refuseAll(std::initializer_list<std::string_view> names);
    /// Was read, or has no effect on a step's time or memory.
    void know(std::initializer_list<std::string_view> names);

    Place place(int line) const;
    Place place() const { return place(m_launch.line); }

    /// As the framework's users write it.
    std::string spelled(std::string_view name) const;

    /// Says what was not asked for: by name, but for what begins with one of these words, which has no effect on a step: of that the number.
    void noteUnread(std::span<const std::string_view> harmless, std::vector<std::string>& notes) const;

    Problems problems;

private:
    const LaunchLine& m_launch;
    std::string m_file;
    std::set<std::string, std::less<>> m_known;
};

} // namespace meshwright::sim
