// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/pages/page_machine.h"
#include "sim/pages/printed.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
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
    /// Of its programs on the page's machine, one after the other, as the simulator predicts it; nothing: there is none, or a note says why.
    std::optional<double> simulatedSeconds;
    std::optional<PageError> error;
    std::vector<PlacedValue> values;
    std::vector<PageCollective> collectives;
    std::vector<PageFinding> findings;
    std::vector<std::string> pictures; ///< SVG of values that have `_repr_svg_`, as the cell displayed them
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
    bool measures = false; ///< %timeit measures here
};

/// What a person's answer to a question is worth.
struct Judgement {
    bool isRight = false;
    bool isRead = true; ///< false: the words are not an answer of the question's kind, and do not count as a try
    std::string said; ///< what the answer raised, or what kind of words is expected; empty: nothing
};

/// A page's process, which may touch nothing else (app/python/confine.h), and which is ended with this object.
class PageSession {
public:
    /// The page outlives the session. Problems: MW1562 the kernel cannot confine it; MW1565 this build has no module for pages, or Python does not start.
    static Result<std::unique_ptr<PageSession>> start(const Page& page, const PageMachine& machine, const PageChoices& choices);
    PageSession() = default;
    virtual ~PageSession() = default;
    PageSession(const PageSession&) = delete;
    PageSession& operator=(const PageSession&) = delete;

    /// Runs a cell in the names that the cells before it made. What the cell raises is its result; of a question the result is the answer.
    /// Problems: MW1507 `stop` was asked for; MW1566 the time is over; MW1567 the process ended by itself. After one of them there is no session.
    virtual Result<CellResult> run(std::size_t cell, const std::stop_token& stop) = 0;

    /// Gives a cell another source, from its next run on. Problems: as `run`.
    virtual Result<Done> change(std::size_t cell, const std::string& source, const std::stop_token& stop) = 0;

    /// Compares an answer to the question of a cell with what the names give now. Problems: as `run`.
    virtual Result<Judgement> judge(std::size_t cell, const std::string& answer, const std::stop_token& stop) = 0;

    /// What is wrong with the page as a whole, by cell. Problems: as `run`.
    virtual Result<std::vector<std::pair<std::size_t, PageFinding>>> findings(const std::stop_token& stop) = 0;
};

/// Runs cells of a page in one session. Problems: those of `PageSession::start`; those of `run` are in `stopped`.
Result<PageRun> runPage(const Page& page, const PageMachine& machine, const PageChoices& choices, const std::stop_token& stop);

} // namespace meshwright::pages
