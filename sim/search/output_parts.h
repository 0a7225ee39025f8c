// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

/// What the output of searches and of plans shares.
namespace meshwright::sim {

/// The value as JSON; null where there is none.
template <typename T>
nlohmann::ordered_json orNull(const std::optional<T>& value)
{
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

/// A line for each sentence, two columns to the right.
inline std::string indentedLines(const std::vector<std::string>& sentences)
{
    std::string text;
    for (const std::string& sentence : sentences)
        text += "  " + sentence + "\n";
    return text;
}

} // namespace meshwright::sim
