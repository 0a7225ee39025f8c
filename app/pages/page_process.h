// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/pages/page_machine.h"
#include "app/pages/printed.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright::pages {

/// Where an array lies that a cell made.
struct PlacedValue {
    std::string name; ///< as the cell calls it: `params[0]`
    std::string type; ///< float32[8,128]
    std::string layout;
    std::int64_t bytesPerDevice = 0;
};

/// A collective that a cell's programs ran.
struct PageCollective {
    std::string program; ///< the function that was called
    std::string op;
    std::string axes;
    std::int64_t calls = 0;
    std::int64_t bytesPerDevice = 0; ///< of one call
    std::string value;
    std::string cause;
};

/// What a cell raised.
struct PageError {
    std::string type; ///< the Python class
    std::string message;
    int line = 0; ///< of the cell; 0: not known
    bool isMissing = false; ///< the page is not at fault: a name or an argument that Meshwright does not know
    std::vector<std::string> notes; ///< the rules and fixes of the problems behind it
};

/// What is wrong with a cell that ran, or why it did not.
struct PageFinding {
    std::string id; ///< of a problem: MW1571
    int line = 0; ///< of the cell; 0: none
    std::string message;
    std::string fix;
};

/// A program that a cell ran.
struct PageProgram {
    std::shared_ptr<const std::string> text; ///< propagated, as StableHLO with shardings; one object for equal programs
    std::int64_t calls = 0;
};

enum class CellStatus : std::uint8_t {
    NotRun, ///< it was not asked for, or the process ended before
    Ran,
    Raised,
    NotComputed, ///< it asked for a value that takes longer than a page may
    Stopped, ///< the process ended in it: time, memory, or a crash
};

/// "ran", "raised" and so on.
const char* statusName(CellStatus status);

struct CellResult {
    CellStatus status = CellStatus::NotRun;
    std::string output;
    /// Of the output and what the page printed; nothing: the page does not say, or the cell did not end.
    std::optional<Likeness> likeness;
    double seconds = 0.0;
    std::optional<double> simulatedSeconds; ///< of its programs on the page's machine; nothing: not known (see page_times.h)
    std::optional<PageError> error;
    std::vector<PlacedValue> values;
    std::vector<PageCollective> collectives;
    std::vector<PageProgram> programs; ///< where `PageChoices::keepsPrograms`
    std::vector<PageFinding> findings;
    std::vector<std::string> notes; ///< what was done otherwise than a notebook does it
};

struct PageRun {
    std::vector<CellResult> cells; ///< one for each of the page
    Problems stopped; ///< why the process did not reach the end; empty: it did
};

struct PageChoices {
    std::set<std::size_t> cells = {}; ///< counted from 0; empty: all
    /// What the page may read and write; empty: nothing but a folder of its own that is gone afterwards.
    std::filesystem::path folder = {};
    bool isConfined = true;
    double seconds = 600.0; ///< the process is ended after these
    std::int64_t memoryBytes
        = 0; ///< the process gets no more, and no file of it gets larger; 0: three quarters of the computer's
    double mostFlops = 1e12; ///< a value that takes more is not computed
    bool keepsPrograms = false; ///< cells come with the programs that they ran
};

/// Runs cells of a page in a process that may touch nothing else (app/python/confine.h).
///
/// What a cell raises is its result. Problems: MW1562 the kernel cannot confine it; MW1565 this build has no module for pages, or Python
/// does not start. In `stopped`: MW1507 `stop` was asked for; MW1566 the time is over; MW1567 the process ended by itself.
Result<PageRun> runPage(const Page& page, const PageMachine& machine, const PageChoices& choices, const std::stop_token& stop);

} // namespace meshwright::pages
