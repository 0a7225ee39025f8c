// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/sweep/sweep_result.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::sim {

struct SweepDatabaseOptions {
    int busyMilliseconds = 5000; ///< how long to wait for another program that writes
    int mostPages = 0; ///< of 4 KiB, that the file may have; 0: no limit
};

/// What sweeps have found out, kept in an SQLite file (in write-ahead mode) from which an interrupted sweep goes on.
///
/// Results are by key, a hash of the content of the point: a point that another sweep has done is not done again. A point is *claimed* before
/// it is simulated, and its result and the next claim are one transaction: whenever a program is killed, each point is either done or not, and
/// the claims of programs that are no more are void. Several programs may work on one file at once.
///
/// Tables for whoever asks by SQL: `results` (a row for each key), `rows` (sweep, position, key, values as JSON), `sweeps`, `claims`.
///
/// Thread-safe. All functions fail with: MW1785 the file is not a database, MW1786 it is another program's or of a version that this program does not
/// know, MW1787 another program holds it for longer than is waited, MW1788 it cannot be opened, read or written, MW1789 the disk is full, MW1790 it is damaged.
class SweepDatabase {
public:
    /// Opens a file, made if there is none.
    static Result<SweepDatabase> open(const std::filesystem::path& file, const SweepDatabaseOptions& options = {});

    /// Opens a file that must be there, to read from it. Problems: and MW1001, MW1791 it is empty, which it stays.
    static Result<SweepDatabase> openExisting(const std::filesystem::path& file, const SweepDatabaseOptions& options = {});

    /// A database that ends with the program.
    static Result<SweepDatabase> inMemory();

    SweepDatabase(SweepDatabase&&) noexcept;
    SweepDatabase& operator=(SweepDatabase&&) noexcept;
    ~SweepDatabase(); ///< gives back what is claimed and not done

    /// Writes down which points a sweep has, with the key of each; of a sweep that is there already nothing changes.
    Result<Done> addSweep(const SweepPlan& plan, const std::vector<std::string>& keys);

    /// The results of all keys that are done.
    Result<std::map<std::string, SweepOutcome>> outcomes();

    struct Stored {
        std::string key;
        SweepOutcome outcome;
    };
    enum class ClaimState : std::uint8_t {
        Mine, ///< to be simulated by the caller
        Done, ///< `outcome` is there
        Others, ///< another program (or another sweep of this one) is at it
    };
    struct Claim {
        ClaimState state = ClaimState::Others;
        std::optional<SweepOutcome> outcome = {};
    };

    /// Stores a result (null: none) and claims a key (empty: none), as one transaction. Claims of programs that have ended are void.
    Result<Claim> storeAndClaim(const Stored* finished, const std::string& next);

    /// The sweep that was last begun, with the outcomes of its points. Problems: MW1791 there is none.
    Result<SweepResult> lastSweep();

private:
    class Connection;
    explicit SweepDatabase(std::unique_ptr<Connection> connection);

    std::unique_ptr<Connection> m_connection;
};

} // namespace meshwright::sim
