// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

struct ShellWord {
    std::string text;
    std::int64_t line = 0; ///< from 1
    bool isKnown
        = true; ///< false: its value is known only when the script runs, and `text` is as it is written (`$@`, `$(command)`, a variable that is not set)
};

struct ShellScript {
    std::vector<std::vector<ShellWord>>
        commands; ///< in their order, expanded; no word is empty, but what is not known may come to none or several
    std::map<std::string, std::string> variables; ///< at its end; those before a command (`NGPU=8 ./run.sh`) are among them
};

/// The commands of a shell script, as far as they can be told without running any.
///
/// Followed: variables and arrays, `${X:-y}`, `$((a * b))`, quotes, lines that go on, here-documents, and `if` by tests of words and numbers. What is known
/// only when it runs has no text: arguments (`$1`), `$(command)`, the environment; files are taken as absent. Loops and `case` are left out. Of
/// `#SBATCH` lines, nodes and tasks are the variables that Slurm sets.
ShellScript readShellScript(std::string_view text);

} // namespace meshwright::sim
