// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/sweep_database.h"

#include "core/support/json_text.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <new>
#include <thread>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kApplication = 0x4d575357; ///< "MWSW", in the file's header
constexpr std::int64_t kVersion = 1; ///< of the tables

constexpr const char* kTables = R"sql(
CREATE TABLE sweeps(id INTEGER PRIMARY KEY, plan TEXT NOT NULL UNIQUE, begun INTEGER NOT NULL);
CREATE TABLE rows(sweep INTEGER NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, "values" TEXT NOT NULL,
  PRIMARY KEY(sweep, position)) WITHOUT ROWID;
CREATE TABLE results(key TEXT PRIMARY KEY, state TEXT NOT NULL, mesh TEXT NOT NULL, hardware TEXT NOT NULL, devices INTEGER NOT NULL,
  batch INTEGER NOT NULL, step_time_s REAL NOT NULL, compute_s REAL NOT NULL, exposed_communication_s REAL NOT NULL, bubble_s REAL NOT NULL,
  mfu REAL NOT NULL, peak_bytes_per_device INTEGER NOT NULL, capacity_bytes INTEGER NOT NULL, usable_bytes INTEGER NOT NULL, bound_by TEXT NOT NULL,
  problem TEXT NOT NULL, message TEXT NOT NULL, fix TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE claims(key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
)sql";

/// When a process began, in the system's ticks: with its number it names one process for good. Empty when there is no such process.
std::string beginOfProcess(const std::string& pid)
{
    std::ifstream file("/proc/" + pid + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t afterName = line.rfind(')');
    if (afterName == std::string::npos)
        return {};
    const std::vector<std::string> fields
        = split(line.substr(afterName + 1), ' '); // the first is empty, the second field 3 of the manual
    const bool zombie = fields.size() > 1 && fields[1] == "Z"; // killed, and nobody asked yet
    return fields.size() > 20 && !zombie ? fields[20] : std::string();
}

/// Names one open database of this process.
std::string newOwner()
{
    static std::atomic<int> count = 0;
    const std::string pid = fmt::format("{}", getpid());
    return fmt::format("{}:{}:{}", pid, beginOfProcess(pid), ++count);
}

bool isAlive(const std::string& owner)
{
    const std::vector<std::string> parts = split(owner, ':');
    return parts.size() == 3 && !parts[1].empty() && beginOfProcess(parts[0]) == parts[1];
}

SweepState stateOf(const std::string& name)
{
    for (const SweepState state : {SweepState::Fits, SweepState::TooLarge}) {
        if (name == sweepStateName(state))
            return state;
    }
    return SweepState::Refused;
}

std::string planText(const SweepPlan& plan)
{
    Json json = {{"name", plan.name}, {"study", plan.studyText}, {"file", plan.studyFile}, {"settings", plan.settings},
        {"vary", Json::array()}};
    for (const SweepParameter& parameter : plan.parameters) {
        Json values = Json::array();
        for (const SweepValue& value : parameter.values)
            values.push_back({{"text", value.text}, {"settings", value.settings}});
        json["vary"].push_back({{"name", parameter.name}, {"values", std::move(values)}});
    }
    return jsonLine(json);
}

/// Nothing when the text is not what `planText` writes.
std::optional<SweepPlan> planOf(const std::string& text)
{
    const Json json = parsedJson(text);
    try { // any part may have another form
        SweepPlan plan;
        plan.name = json.at("name").get<std::string>();
        plan.studyText = json.at("study").get<std::string>();
        plan.studyFile = json.at("file").get<std::string>();
        plan.settings = json.at("settings").get<std::vector<std::string>>();
        for (const Json& one : json.at("vary")) {
            SweepParameter parameter{one.at("name").get<std::string>(), {}};
            for (const Json& value : one.at("values"))
                parameter.values.push_back(
                    {value.at("text").get<std::string>(), value.at("settings").get<std::vector<std::string>>()});
            if (parameter.values.empty())
                return std::nullopt;
            plan.parameters.push_back(std::move(parameter));
        }
        return hasErrors(checkPlan(plan)) ? std::nullopt : std::optional(std::move(plan));
    } catch (const Json::exception&) {
        return std::nullopt;
    }
}

} // namespace

/// A connection with the statements that are run often, prepared. All functions but `open` expect the lock to be held.
class SweepDatabase::Connection {
public:
    explicit Connection(std::string name)
        : m_name(std::move(name))
        , m_owner(newOwner())
    {
    }

    ~Connection()
    {
        if (m_db != nullptr && m_usable) {
            Statement drop(*this, "DELETE FROM claims WHERE owner = ?");
            drop.bind(m_owner);
            drop.step();
        }
        sqlite3_close_v2(m_db);
    }

    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// One run of an SQL statement. What goes wrong shows in `ok`.
    class Statement {
    public:
        Statement(Connection& connection, const char* sql)
            : m_connection(connection)
        {
            m_code = sqlite3_prepare_v2(connection.m_db, sql, -1, &m_statement, nullptr);
        }
        ~Statement() { sqlite3_finalize(m_statement); }
        Statement(const Statement&) = delete;
        Statement& operator=(const Statement&) = delete;

        void bind(const std::string& text)
        {
            sqlite3_bind_text(m_statement, ++m_bound, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
        }
        void bind(std::int64_t number) { sqlite3_bind_int64(m_statement, ++m_bound, number); }
        void bind(double number) { sqlite3_bind_double(m_statement, ++m_bound, number); }

        /// True while there is a row.
        bool step()
        {
            if (m_statement != nullptr)
                m_code = sqlite3_step(m_statement);
            // Noted now: the end of another statement would cover it up.
            if (!ok() && !m_connection.m_failure)
                m_connection.m_failure = m_connection.problem();
            return m_code == SQLITE_ROW;
        }
        void again()
        {
            sqlite3_reset(m_statement);
            m_bound = 0;
        }
        bool ok() const { return m_code == SQLITE_OK || m_code == SQLITE_ROW || m_code == SQLITE_DONE; }

        std::string text(int column) const
        {
            const unsigned char* words = sqlite3_column_text(m_statement, column);
            return words == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(words));
        }
        std::int64_t integer(int column) const { return sqlite3_column_int64(m_statement, column); }
        double number(int column) const { return sqlite3_column_double(m_statement, column); }

    private:
        Connection& m_connection;
        sqlite3_stmt* m_statement = nullptr;
        int m_code = SQLITE_OK;
        int m_bound = 0;
    };

    Result<Done> open(int flags, const SweepDatabaseOptions& options)
    {
        if (sqlite3_open_v2(m_name.c_str(), &m_db, flags, nullptr) != SQLITE_OK)
            return problem();
        sqlite3_extended_result_codes(m_db, 1);
        sqlite3_busy_timeout(m_db, options.busyMilliseconds);
        // Of one moment: another program may be making its tables.
        if (!run("BEGIN"))
            return problem();
        const auto application = pragma("application_id");
        const auto version = pragma("user_version");
        const auto tables = one("SELECT count(*) FROM sqlite_schema");
        if (!application || !version || !tables)
            return problem();
        run("COMMIT");
        if ((*application != kApplication && *tables > 0) || (*application == kApplication && *version > kVersion))
            return Problem{"MW1786",
                *application == kApplication
                    ? fmt::format("\"{}\" holds sweeps of version {}; this program knows version {}", m_name, *version, kVersion)
                    : fmt::format("\"{}\" is a database of another program", m_name),
                *application == kApplication ? "use a newer Meshwright, or another file" : "name another file with --db"};
        if (sqlite3_db_readonly(m_db, "main") == 1)
            return Problem{"MW1788", fmt::format("\"{}\" cannot be written", m_name),
                "check its permissions, or name another file with --db"};
        if (options.mostPages > 0 && !run(fmt::format("PRAGMA max_page_count = {}", options.mostPages).c_str()))
            return problem();
        if (!switchToWal(options.busyMilliseconds) || !run("PRAGMA synchronous = NORMAL"))
            return problem();
        if (*tables == 0) {
            const std::string make
                = fmt::format("BEGIN IMMEDIATE; {} PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT;", kTables,
                    kApplication, kVersion);
            // Another program may have been faster: then its tables are there.
            if (!run(make.c_str())) {
                const Problem reason = problem();
                run("ROLLBACK");
                if (pragma("application_id") != kApplication)
                    return reason;
            }
        }
        m_usable = true;
        return Done{};
    }

    /// SQLite itself does not wait for others that switch, or make tables, at the same time.
    bool switchToWal(int milliseconds)
    {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
        while (!run("PRAGMA journal_mode = WAL")) {
            if ((sqlite3_errcode(m_db) & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() >= end)
                return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        return true;
    }

    bool run(const char* sql) { return sqlite3_exec(m_db, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }

    std::optional<std::int64_t> one(const char* sql)
    {
        Statement statement(*this, sql);
        return statement.step() ? std::optional(statement.integer(0)) : std::nullopt;
    }

    std::optional<std::int64_t> pragma(const char* name) { return one(fmt::format("PRAGMA {}", name).c_str()); }

    /// What went wrong last.
    Problem problem() const
    {
        const int code = m_db == nullptr ? SQLITE_NOMEM : sqlite3_errcode(m_db);
        const std::string words = m_db == nullptr ? "" : sqlite3_errmsg(m_db);
        switch (code & 0xff) {
        case SQLITE_NOMEM:
            throw std::bad_alloc();
        case SQLITE_NOTADB:
            return {"MW1785", fmt::format("\"{}\" is not a database", m_name), "name another file with --db"};
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return {"MW1787", fmt::format("another program holds \"{}\"", m_name),
                "wait until it ends, or name another file with --db"};
        case SQLITE_FULL:
            return {"MW1789", fmt::format("no room to write \"{}\": {}", m_name, words),
                "make room and run the same command again: it goes on where it stopped"};
        case SQLITE_CORRUPT:
            return {"MW1790", fmt::format("\"{}\" is damaged: {}", m_name, words),
                "delete it and sweep again, or name another file with --db"};
        default:
            return {"MW1788", fmt::format("cannot use \"{}\": {}", m_name, words),
                "check that its folder exists and may be written, or name another file with --db"};
        }
    }

    /// Does `work` (true: it went well) as one transaction.
    template <typename Work>
    Result<Done> transaction(Work work)
    {
        if (!run("BEGIN IMMEDIATE"))
            return problem();
        m_failure.reset();
        if (work() && run("COMMIT"))
            return Done{};
        const Problem reason = m_failure.value_or(problem());
        run("ROLLBACK");
        return reason;
    }

    bool store(const Stored& finished)
    {
        const SweepOutcome& o = finished.outcome;
        Statement insert(*this, "INSERT OR IGNORE INTO results VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
        insert.bind(finished.key);
        insert.bind(std::string(sweepStateName(o.state)));
        insert.bind(o.mesh);
        insert.bind(o.hardware);
        insert.bind(o.devices);
        insert.bind(o.batch);
        for (const double seconds : {o.stepSeconds, o.computeSeconds, o.exposedSeconds, o.bubbleSeconds, o.mfu})
            insert.bind(seconds);
        insert.bind(o.peakBytes);
        insert.bind(o.capacityBytes);
        insert.bind(o.usableBytes);
        for (const std::string* words : {&o.boundBy, &o.problem, &o.message, &o.fix})
            insert.bind(*words);
        insert.step();
        Statement free(*this, "DELETE FROM claims WHERE key = ?");
        free.bind(finished.key);
        free.step();
        return insert.ok() && free.ok();
    }

    bool claim(const std::string& key, Claim& claim)
    {
        Statement done(*this, "SELECT * FROM results WHERE key = ?");
        done.bind(key);
        if (done.step()) {
            claim = {ClaimState::Done, outcomeOf(done)};
            return true;
        }
        Statement other(*this, "SELECT owner FROM claims WHERE key = ?");
        other.bind(key);
        if (other.step() && isAlive(other.text(0))) {
            claim = {ClaimState::Others, {}};
            return true;
        }
        Statement insert(*this, "INSERT OR REPLACE INTO claims VALUES(?,?)");
        insert.bind(key);
        insert.bind(m_owner);
        insert.step();
        claim = {ClaimState::Mine, {}};
        return done.ok() && other.ok() && insert.ok();
    }

    static SweepOutcome outcomeOf(const Statement& row)
    {
        SweepOutcome o;
        o.state = stateOf(row.text(1));
        o.mesh = row.text(2);
        o.hardware = row.text(3);
        o.devices = row.integer(4);
        o.batch = row.integer(5);
        o.stepSeconds = row.number(6);
        o.computeSeconds = row.number(7);
        o.exposedSeconds = row.number(8);
        o.bubbleSeconds = row.number(9);
        o.mfu = row.number(10);
        o.peakBytes = row.integer(11);
        o.capacityBytes = row.integer(12);
        o.usableBytes = row.integer(13);
        o.boundBy = row.text(14);
        o.problem = row.text(15);
        o.message = row.text(16);
        o.fix = row.text(17);
        return o;
    }

    /// Adds the sweep or, when it is there, makes it the last that was begun.
    bool addSweep(const SweepPlan& plan, const std::vector<std::string>& keys)
    {
        const std::string text = planText(plan);
        Statement begin(
            *this, "UPDATE sweeps SET begun = (SELECT coalesce(max(begun), 0) + 1 FROM sweeps) WHERE plan = ? RETURNING id");
        begin.bind(text);
        const bool known = begin.step();
        std::int64_t sweep = known ? begin.integer(0) : 0;
        while (begin.ok() && begin.step()) { }
        if (!begin.ok())
            return false;
        if (!known) {
            Statement insert(
                *this, "INSERT INTO sweeps(plan, begun) VALUES(?, (SELECT coalesce(max(begun), 0) + 1 FROM sweeps))");
            insert.bind(text);
            insert.step();
            if (!insert.ok())
                return false;
            sweep = sqlite3_last_insert_rowid(m_db);
        }
        // The same words may mean other points now: a file that the study names has changed, or the model of cost has.
        Statement row(*this, "INSERT OR REPLACE INTO rows VALUES(?,?,?,?)");
        for (std::size_t point = 0; point < keys.size(); ++point) {
            Json values = Json::object();
            const std::vector<std::size_t> chosen = plan.valuesAt(static_cast<std::int64_t>(point));
            for (std::size_t i = 0; i < chosen.size(); ++i)
                values[plan.parameters[i].name] = plan.parameters[i].values[chosen[i]].text;
            row.again();
            row.bind(sweep);
            row.bind(static_cast<std::int64_t>(point));
            row.bind(keys[point]);
            row.bind(jsonLine(values));
            row.step();
            if (!row.ok())
                return false;
        }
        return true;
    }

    std::mutex mutex;

private:
    std::string m_name;
    std::string m_owner;
    sqlite3* m_db = nullptr;
    bool m_usable = false;
    std::optional<Problem> m_failure; ///< of the first statement of a transaction that failed
};

SweepDatabase::SweepDatabase(std::unique_ptr<Connection> connection)
    : m_connection(std::move(connection))
{
}

SweepDatabase::SweepDatabase(SweepDatabase&&) noexcept = default;
SweepDatabase& SweepDatabase::operator=(SweepDatabase&&) noexcept = default;
SweepDatabase::~SweepDatabase() = default;

Result<SweepDatabase> SweepDatabase::open(const std::filesystem::path& file, const SweepDatabaseOptions& options)
{
    // SQLite takes "file:" and ":memory:" for something else than files of these names.
    const std::string name = file.string();
    auto connection = std::make_unique<Connection>(name.starts_with(':') || name.starts_with("file:") ? "./" + name : name);
    if (const auto opened = connection->open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, options); !opened)
        return opened.error();
    return SweepDatabase(std::move(connection));
}

Result<SweepDatabase> SweepDatabase::openExisting(const std::filesystem::path& file, const SweepDatabaseOptions& options)
{
    std::error_code error;
    if (!std::filesystem::exists(file, error))
        return Problem{"MW1001", fmt::format("no such file: \"{}\"", file.string()), "`meshwright sweep --db` makes one"};
    if (std::filesystem::is_regular_file(file, error) && std::filesystem::is_empty(file, error)) // SQLite would make tables in it
        return Problem{
            "MW1791", fmt::format("\"{}\" is empty", file.string()), "`meshwright sweep STUDY --vary ... --db FILE` makes one"};
    return open(file, options);
}

Result<SweepDatabase> SweepDatabase::inMemory()
{
    auto connection = std::make_unique<Connection>(":memory:");
    if (const auto opened = connection->open(SQLITE_OPEN_READWRITE, {}); !opened)
        return opened.error();
    return SweepDatabase(std::move(connection));
}

Result<Done> SweepDatabase::addSweep(const SweepPlan& plan, const std::vector<std::string>& keys)
{
    const std::lock_guard lock(m_connection->mutex);
    return m_connection->transaction([&] { return m_connection->addSweep(plan, keys); });
}

Result<std::map<std::string, SweepOutcome>> SweepDatabase::outcomes()
{
    const std::lock_guard lock(m_connection->mutex);
    std::map<std::string, SweepOutcome> found;
    Connection::Statement all(*m_connection, "SELECT * FROM results");
    while (all.step())
        found.emplace(all.text(0), Connection::outcomeOf(all));
    if (!all.ok())
        return m_connection->problem();
    return found;
}

Result<SweepDatabase::Claim> SweepDatabase::storeAndClaim(const Stored* finished, const std::string& next)
{
    const std::lock_guard lock(m_connection->mutex);
    Claim claim;
    const auto done = m_connection->transaction([&] {
        return (finished == nullptr || m_connection->store(*finished)) && (next.empty() || m_connection->claim(next, claim));
    });
    if (!done)
        return done.error();
    return claim;
}

Result<SweepResult> SweepDatabase::lastSweep()
{
    const std::lock_guard lock(m_connection->mutex);
    Connection::Statement last(*m_connection, "SELECT id, plan FROM sweeps ORDER BY begun DESC LIMIT 1");
    if (!last.step()) {
        if (!last.ok())
            return m_connection->problem();
        return Problem{"MW1791", "the database holds no sweep", "`meshwright sweep STUDY --vary ... --db FILE` makes one"};
    }
    auto plan = planOf(last.text(1));
    if (!plan)
        return Problem{"MW1790", "the sweep in the database cannot be read", "sweep again into another file"};
    std::vector<std::optional<SweepOutcome>> outcomes(static_cast<std::size_t>(plan->pointCount()));
    Connection::Statement rows(
        *m_connection, "SELECT results.*, rows.position FROM rows JOIN results ON results.key = rows.key WHERE rows.sweep = ?");
    rows.bind(last.integer(0));
    while (rows.step()) {
        const std::int64_t point = rows.integer(18);
        if (point >= 0 && point < plan->pointCount())
            outcomes[static_cast<std::size_t>(point)] = Connection::outcomeOf(rows);
    }
    if (!rows.ok())
        return m_connection->problem();
    return sweepResult(*std::move(plan), outcomes);
}

} // namespace meshwright::sim
