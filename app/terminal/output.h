// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/visualize.h"
#include "core/support/result.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::cli {

/// What the program says when it ends. Design: the command line's contract.
enum ExitCode : int {
    kExitOk = 0,
    kExitFindings = 1, ///< findings at or above --fail-on
    kExitUsage = 2, ///< the command line is wrong
    kExitInvalid = 3, ///< a document or path is unreadable, unwritable or invalid
    kExitInfeasible = 4, ///< the mesh is larger than the slice, it does not fit, nothing was found
    kExitMismatch = 5, ///< --verify found a difference
    kExitFailed = 6, ///< failed while running
    kExitInternal = 70,
};

enum class Format : std::uint8_t { Text, Json, JsonLines, Csv, Markdown, Svg, Html, Sarif, Junit };

/// "text", "json" and so on.
const char* formatName(Format format);

enum class ColourChoice : std::uint8_t { Auto, Always, Never };

/// A file that a verb is to write.
struct WrittenPath {
    std::string flag; ///< that names it: "-o"
    std::string path;
};

/// Where a verb's words go: results to standard output, narration and problems to standard error.
struct Output {
    Format format = Format::Text;
    ColourChoice colour = ColourChoice::Auto;
    bool quiet = false; ///< no narration
    bool silent = false; ///< nothing at all: another process of the job speaks
    std::function<void(const Problems&)> onFailure = {}; ///< called by `fail` before it prints
    std::vector<WrittenPath> writes = {}; ///< the files that the verb is to write, which nothing that it reads may be
    bool wordsOnError = false; ///< standard output carries a file (`--trace -`): the result goes to standard error

    /// Adds to standard output, as text that a terminal may show (see `printable`; only our own colours stay). What cannot be written there
    /// (a closed pipe, a full disk) is remembered for `finish`.
    void result(std::string_view text);

    /// A line on standard error, unless quiet.
    void narrate(std::string_view line) const;

    /// Warnings on standard error, also when quiet, as text in every format.
    void warn(const Problems& warnings) const;

    /// The colours that standard output (or error) is to have: --color, then NO_COLOR, then CLICOLOR_FORCE, then whether it is a terminal.
    TerminalColours colours(bool ofErrors = false) const;

    /// Flushes standard output. That nobody reads on is not a problem. Problems: MW1005 something could not be written, MW1007 there was no room.
    Result<Done> finish();

private:
    int m_error = 0; ///< the system's, of the first words that standard output did not take
};

/// Writes words as they are to standard error. Where it takes none (it is closed, or a file on a full disk) they are lost, and nothing else.
void say(std::string_view words);

/// Problems for the user: as JSON (`meshwright.problems/1`) on standard output when that is the format, else as text on standard error.
void printProblems(const Problems& problems, Output& output);

/// The exit code that problems ask for, each by its entry in problems.yaml: a fault of ours (70) before usage (2) before invalid documents (3)
/// before infeasible studies (4) before failures while running (6); kExitOk without errors. Without a readable table it is 3 (MW1006).
int exitCodeOf(const Problems& problems);

/// Prints the problems and gives their exit code.
int fail(const Problems& problems, Output& output);

/// The same after the verb's result was printed: always as text, so that a result in JSON stays one document.
int failAfterResult(const Problems& problems, const Output& output);

/// What each problem id is in a few words, from the table of problems; empty when there is no table.
std::map<std::string, std::string> problemTitles();

/// `meshwright.problems/1`, with a newline at the end; `fixed` are those that were fixed and are no more, `notFor` what verbs for other documents say,
/// `proofs` those of the files' device programs as JSON, by file; `templates` a JSON array of plans that studies without specs could have.
std::string problemsJson(const Problems& problems, const Problems& fixed = {}, const Problems& notFor = {},
    const std::map<std::string, std::string>& proofs = {}, const std::string& templates = {});

} // namespace meshwright::cli
