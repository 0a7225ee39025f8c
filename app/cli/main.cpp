// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"
#include "app/terminal/output.h"
#include "core/support/escape.h"
#include "core/support/file.h"
#include "core/support/host_memory.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>
#include <vector>

namespace {

/// A broken precondition aborts after it has said what it is; the exit code is the documented one.
extern "C" void exitInternal(int)
{
    std::_Exit(meshwright::cli::kExitInternal);
}

/// What is said when there is no memory left, written while there still is.
const std::string& noMemoryText()
{
    static const std::string text = describe(meshwright::notEnoughMemory()) + "\n";
    return text;
}

int noMemory()
{
    meshwright::cli::say(noMemoryText());
    return meshwright::cli::kExitFailed;
}

int internalError(const std::exception& error)
{
    meshwright::cli::say(
        fmt::format("internal error: {}\nPlease report it with the command line.\n", meshwright::printable(error.what())));
    return meshwright::cli::kExitInternal;
}

/// The exit code after the exception that is being handled.
int codeOfException()
{
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return noMemory();
    } catch (const std::system_error& error) {
        return error.code() == std::errc::resource_unavailable_try_again ? noMemory() : internalError(error);
    } catch (const std::exception& error) {
        return internalError(error);
    }
}

/// What a thread throws ends the program as what `main` throws does.
[[noreturn]] void exitOnException()
{
    std::_Exit(std::current_exception() ? codeOfException() : int{meshwright::cli::kExitInternal});
}

} // namespace

int main(int argc, char** argv)
{
    meshwright::growHeapInLargeSteps();
    meshwright::reserveStandardStreams();
    // A file that may not grow is told where it is written, as a full disk is; so is a pipe that nobody reads.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGABRT, exitInternal);
    std::set_terminate(exitOnException);
    noMemoryText();
    try {
        const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
        return meshwright::cli::runCommandLine(arguments);
    } catch (...) {
        return codeOfException();
    }
}
