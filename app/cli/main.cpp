// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"
#include "app/cli/output.h"

#include <cstdio>
#include <exception>
#include <vector>

int main(int argc, char** argv)
{
    try {
        const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
        return meshwright::cli::runCommandLine(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "internal error: %s\nPlease report it with the command line.\n", error.what());
        return meshwright::cli::kExitInternal;
    }
}
