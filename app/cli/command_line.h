// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string>

namespace meshwright::cli {

/// Reads the command line (without the program's name), does what it asks for and gives the exit code.
///
/// Problems: MW1901 an unknown flag, MW1902 an unknown verb, MW1903 a value that a flag does not take, MW1904 something that the
/// verb needs is missing, MW1905 an argument too many, each with the nearest name; MW1912 a flag without the one it
/// belongs to; MW1005 a file that could not be written, before the verb does its work. And those of the verbs.
int runCommandLine(std::span<const std::string> arguments);

} // namespace meshwright::cli
