// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"
#include "app/cli/output.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

int main(int argc, char** argv)
{
    // A file that may not grow is told where it is written, as a full disk is.
    std::signal(SIGXFSZ, SIG_IGN);
    try {
        const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
        return meshwright::cli::runCommandLine(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "internal error: %s\nPlease report it with the command line.\n", error.what());
        return meshwright::cli::kExitInternal;
    }
}
