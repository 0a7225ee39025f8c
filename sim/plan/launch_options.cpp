// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/launch_options.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace meshwright::sim {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 31; ///< of any number in a line

} // namespace

LaunchOptions::LaunchOptions(const LaunchLine& launch, std::string file)
    : m_launch(launch)
    , m_file(std::move(file))
{
}

const LaunchOption* LaunchOptions::find(std::string_view name)
{
    m_known.emplace(name);
    const auto found = std::find_if(
        m_launch.options.rbegin(), m_launch.options.rend(), [&](const LaunchOption& one) { return one.name == name; });
    return found == m_launch.options.rend() ? nullptr : &*found;
}

bool LaunchOptions::has(std::string_view name)
{
    const LaunchOption* option = find(name);
    return option != nullptr && lowerCase(option->value) != "false" && option->value != "0";
}

std::string LaunchOptions::word(std::string_view name, std::string usual)
{
    const LaunchOption* option = find(name);
    return option == nullptr ? std::move(usual) : option->value;
}

std::int64_t LaunchOptions::size(std::string_view name, std::int64_t usual, std::int64_t least)
{
    const LaunchOption* option = find(name);
    if (option == nullptr)
        return usual;
    std::string digits = option->value;
    std::erase(digits, '_');
    const auto value = parseInteger(digits);
    if (value && *value >= least && *value <= kLargest)
        return *value;
    if (digits.empty()) {
        problems.push_back(option->isKnown
                ? Problem{"MW1494", fmt::format("{} has no value", spelled(name)),
                    fmt::format("write a number behind {}", spelled(name)), place(option->line)}
                : Problem{"MW1494", fmt::format("the value of {} is known only when the script runs", spelled(name)),
                    "write the number itself, or set its variable in the script", place(option->line)});
        return std::max<std::int64_t>(usual, least);
    }
    refuse(*option, fmt::format("\"{}\" is not a whole number from {} to 2^31", option->value, least), "write the number itself");
    return std::max<std::int64_t>(usual, least);
}

std::int64_t LaunchOptions::neededSize(std::string_view name)
{
    if (find(name) != nullptr)
        return size(name, 1);
    problems.push_back({"MW1494", fmt::format("the line does not say {}", spelled(name)),
        fmt::format("add {}", spelled(name) + " N"), place(m_launch.line)});
    return 1;
}

double LaunchOptions::number(std::string_view name, double usual)
{
    const LaunchOption* option = find(name);
    if (option == nullptr)
        return usual;
    const auto value = parseNumber(option->value);
    if (!value)
        refuse(*option, fmt::format("\"{}\" is not a number", option->value), "write the number itself");
    return value.value_or(usual);
}

void LaunchOptions::refuse(const LaunchOption& option, const std::string& why, std::string fix)
{
    problems.push_back({"MW1495", fmt::format("{}: {}", spelled(option.name), why), std::move(fix), place(option.line)});
}

void LaunchOptions::refuseAll(std::initializer_list<std::string_view> names)
{
    for (const std::string_view name : names) {
        if (has(name))
            refuse(*find(name), "it changes the step, and Meshwright has no plan that does it",
                "leave it out, for the step without it");
    }
}

void LaunchOptions::know(std::initializer_list<std::string_view> names)
{
    for (const std::string_view name : names)
        m_known.emplace(name);
}

Place LaunchOptions::place(int line) const
{
    return {m_file, line, line > 0 ? 1 : 0, {}};
}

std::string LaunchOptions::spelled(std::string_view name) const
{
    return m_launch.framework == "maxtext" ? std::string(name) : fmt::format("--{}", name);
}

void LaunchOptions::noteUnread(std::span<const std::string_view> harmless, std::vector<std::string>& notes) const
{
    constexpr std::size_t kMostNames = 20;
    std::set<std::string> unread;
    std::set<std::string> others;
    for (const LaunchOption& option : m_launch.options) {
        if (m_known.contains(option.name))
            continue;
        const bool isHarmless
            = std::ranges::any_of(harmless, [&](std::string_view word) { return option.name.starts_with(word); });
        (isHarmless ? others : unread).insert(option.name);
    }
    if (!unread.empty()) {
        std::vector<std::string> names;
        for (const std::string& name : unread)
            names.push_back(spelled(name));
        const std::size_t shown = std::min(names.size(), kMostNames);
        notes.push_back(fmt::format("not read, though it may change the step: {}{}", join(std::span(names).first(shown), ", "),
            shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : std::string()));
    }
    if (!others.empty())
        notes.push_back(fmt::format("not read: {} option{} of data, logs, checkpoints and the learning rate", others.size(),
            others.size() == 1 ? "" : "s"));
    if (!m_launch.unknown.empty())
        notes.push_back(fmt::format("what {} adds to the line is known only when the script runs", join(m_launch.unknown, ", ")));
}

} // namespace meshwright::sim
