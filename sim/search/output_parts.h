// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

/// What the output of searches and of plans shares.
namespace meshwright::sim {

/// A line for each sentence, two columns to the right.
inline std::string indentedLines(const std::vector<std::string>& sentences)
{
    std::string text;
    for (const std::string& sentence : sentences)
        text += "  " + sentence + "\n";
    return text;
}

} // namespace meshwright::sim
