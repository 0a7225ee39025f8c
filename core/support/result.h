// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace meshwright {

enum class Severity : std::uint8_t { Note, Warning, Error };

/// "note", "warning" or "error".
const char* severityName(Severity severity);

/// Where a problem lies: a file and the position in it, and the path inside the document (`mesh.axes[1]`).
/// Lines and columns count from 1; 0 means unknown. Every part may be absent.
struct Place {
    std::string file = {};
    int line = 0;
    int column = 0;
    std::string path = {};

    friend bool operator==(const Place&, const Place&) = default;
};

/// One thing that is wrong, for a user who wants to mend it. The message names the offending item and both
/// sides of the broken rule, in the user's terms: `dim 0 of size 10 is not divisible by 4`.
struct Problem {
    std::string id; ///< stable, listed in resources/problems.yaml
    std::string message;
    std::string fix = {}; ///< what would mend it; empty when nothing is known
    Place place = {}; ///< filled in by whoever knows the document
    Severity severity = Severity::Error;
    std::string rule = {}; ///< the broken rule in one line, with its numbers; empty when the message says it all
    /// Settings of the study (`path=value`, see `applySettings`) that make the fix; empty when no machine can.
    std::vector<std::string> fixSettings = {};
};
using Problems = std::vector<Problem>;

/// `file:line:col: error MW1104: message [path]`, then the rule and the fix on indented lines of their own. No newline at the end.
std::string describe(const Problem& problem);

/// All problems, one after the other, each as `describe` has it, separated by newlines.
std::string describe(const Problems& problems);

/// True when at least one problem has severity Error.
bool hasErrors(const Problems& problems);

/// Appends `more` to `problems`.
void append(Problems& problems, Problems more);

/// Sets the file of every problem that has none.
Problems inFile(Problems problems, const std::string& file);

/// Ends the program: a result without a value was used as if it had one, which is a fault of ours. Says on stderr which problems the result
/// carried, in every build, and aborts (the command line exits with 70).
[[noreturn]] void stopOnProblems(const Problems& problems);

/// A value of type `T`, or everything that is wrong (never empty). The observers have the names of C++23's
/// std::expected, so that a later move to it touches only the places that return problems.
template <typename T>
class [[nodiscard]] Result {
public:
    // Implicit on purpose: `return value;`, `return Problem{...};` and `return problems;` all read as they should.
    Result(T value)
        : m_state(std::in_place_index<0>, std::move(value))
    {
    }
    Result(Problem problem)
        : m_state(std::in_place_index<1>, Problems{std::move(problem)})
    {
    }
    Result(Problems problems)
        : m_state(std::in_place_index<1>, std::move(problems))
    {
        assert(!std::get<1>(m_state).empty());
    }

    bool has_value() const { return m_state.index() == 0; }
    explicit operator bool() const { return has_value(); }

    /// The value. A result that has none ends the program (`stopOnProblems`).
    T& operator*() &
    {
        stopWithoutValue();
        return *std::get_if<0>(&m_state);
    }
    const T& operator*() const&
    {
        stopWithoutValue();
        return *std::get_if<0>(&m_state);
    }
    T&& operator*() &&
    {
        stopWithoutValue();
        return std::move(*std::get_if<0>(&m_state));
    }
    T* operator->() { return &**this; }
    const T* operator->() const { return &**this; }

    const Problems& error() const
    {
        assert(!has_value());
        return *std::get_if<1>(&m_state);
    }

private:
    void stopWithoutValue() const
    {
        if (!has_value()) [[unlikely]]
            stopOnProblems(*std::get_if<1>(&m_state));
    }

    std::variant<T, Problems> m_state;
};

/// For functions that yield nothing but may fail.
struct Done {
    friend bool operator==(const Done&, const Done&) = default;
};

/// The value of a computation whose input is known to be good (a table in the source, an already checked spec).
/// A result that has none ends the program (`stopOnProblems`).
template <typename T>
T valueOf(Result<T> result)
{
    return *std::move(result);
}

} // namespace meshwright
