// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// A regular expression of ECMAScript's grammar, the library's, whose costly header stays in one source.
class Pattern {
public:
    /// The library takes a stack frame for each letter: longer texts match nothing, and stay as they are.
    static constexpr std::size_t kLongest = 4000;

    enum class Letters : std::uint8_t { AsWritten, InEitherCase };

    static bool isValid(const std::string& expression);

    /// Precondition: isValid(expression).
    explicit Pattern(const std::string& expression, Letters letters = Letters::AsWritten);

    struct Match {
        std::size_t begin = 0; ///< in the text
        std::size_t end = 0; ///< behind it
        std::vector<std::string> groups; ///< the match itself, then what is in parentheses; a group that took no part is empty
    };
    std::optional<Match> matchOf(const std::string& text) const; ///< of all of it
    std::optional<Match> firstIn(const std::string& text) const;
    std::vector<Match> allIn(const std::string& text) const; ///< without overlap, from left to right

    /// The text with each match replaced; "$1" in `by` stands for the first group.
    std::string replacedIn(const std::string& text, const std::string& by) const;

private:
    struct Compiled;
    std::shared_ptr<const Compiled> m_compiled;
};

} // namespace meshwright
