// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/pages/page_process.h"

#include "core/support/json_text.h"
#include "core/support/resources.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>

namespace meshwright::pages {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::size_t kMostAnswer = std::size_t{1} << 26; ///< bytes of the process's answers to one cell
constexpr std::size_t kMostWords = 4096; ///< bytes kept of what it says when it ends
constexpr int kLook = 50; ///< milliseconds between looks at the clock

Problem cannotStart(const std::string& what)
{
    return {"MW1565", "pages cannot be run: " + what,
        "build Meshwright with pybind11-dev, python3-dev, python3-numpy and libseccomp-dev"};
}

/// What the interpreter is to find: the packages, and the folder of the engine's module.
struct Installation {
    fs::path python;
    fs::path packages;
    fs::path module;
};

Result<Installation> installation()
{
#ifdef MESHWRIGHT_PYTHON
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    const fs::path resources = resourcesDirectory();
    Installation found{MESHWRIGHT_PYTHON, {}, {}};
    for (const fs::path& folder : {resources / "python", resources.parent_path() / "app" / "python" / "packages"}) {
        if (found.packages.empty() && fs::exists(folder / "meshwright_pages", error))
            found.packages = folder;
    }
    // Of a build the programs are in bin, and the tests in folders below another.
    for (fs::path folder = program; found.module.empty() && folder != folder.root_path(); folder = folder.parent_path()) {
        for (const char* below : {"python", "bin/python", "lib/meshwright"}) {
            if (found.module.empty() && fs::exists(folder / below / MESHWRIGHT_MODULE, error))
                found.module = folder / below;
        }
    }
    if (found.packages.empty() || found.module.empty())
        return cannotStart("their packages are not installed");
    return found;
#else
    return cannotStart("this build has no module for Python");
#endif
}

/// A folder for the page's files, gone with the run.
class OwnFolder {
public:
    OwnFolder()
    {
        std::error_code error;
        std::string name = (fs::temp_directory_path(error) / "meshwright-page-XXXXXX").string();
        if (mkdtemp(name.data()) != nullptr)
            m_path = name;
    }
    ~OwnFolder()
    {
        std::error_code error;
        if (!m_path.empty())
            fs::remove_all(m_path, error);
    }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    const fs::path& path() const { return m_path; }

private:
    fs::path m_path;
};

/// A pipe whose ends are closed with it, and in programs that are started.
class Pipe {
public:
    Pipe() { m_isGood = pipe2(m_ends.data(), O_CLOEXEC) == 0; }
    ~Pipe()
    {
        close(0);
        close(1);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    bool isGood() const { return m_isGood; }
    int end(std::size_t which) const { return m_ends[which]; }
    void close(std::size_t which)
    {
        if (m_ends[which] >= 0)
            ::close(m_ends[which]);
        m_ends[which] = -1;
    }

private:
    std::array<int, 2> m_ends = {-1, -1};
    bool m_isGood = false;
};

std::string machineJson(const PageMachine& machine, const PageChoices& choices)
{
    Json said = {{"platform", machine.platform}, {"kind", machine.kind}, {"topology", machine.topology},
        {"devices", machine.devices}, {"legacy_random", machine.legacyRandom}, {"most_flops", choices.mostFlops},
        {"hardware", machine.hardware}, {"measures", choices.measures}};
    return jsonLine(said);
}

std::string textOf(const Json& row, const char* name)
{
    const auto found = row.find(name);
    return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t wholeOf(const Json& row, const char* name)
{
    const auto found = row.find(name);
    return found != row.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::vector<std::string> textsOf(const Json& row, const char* name)
{
    std::vector<std::string> texts;
    for (const Json& text : row.value(name, Json::array())) {
        if (text.is_string())
            texts.push_back(text.get<std::string>());
    }
    return texts;
}

PageFinding findingOf(const Json& row)
{
    return {textOf(row, "id"), static_cast<int>(wholeOf(row, "line")), textOf(row, "message"), textOf(row, "fix")};
}

/// Compares what a cell printed, and where that differs what it printed without warnings. Nothing when lines were left out that print.
std::optional<Likeness> likenessOf(const Json& answer, const std::string& output, const std::string& page)
{
    if (answer.value("leaves_out", Json(false)) == Json(true))
        return std::nullopt;
    const Likeness whole = comparePrinted(output, page);
    return whole == Likeness::Different ? comparePrinted(textOf(answer, "printed"), page) : whole;
}

CellResult resultOf(const Json& answer, const Cell& cell)
{
    CellResult result;
    const std::string status = textOf(answer, "status");
    result.status = status == "ran" ? CellStatus::Ran : status == "not computed" ? CellStatus::NotComputed : CellStatus::Raised;
    result.output = textOf(answer, "output");
    if (const auto seconds = answer.find("seconds"); seconds != answer.end() && seconds->is_number())
        result.seconds = seconds->get<double>();
    if (const Json error = answer.value("error", Json()); error.is_object())
        result.error = {textOf(error, "class"), textOf(error, "message"), static_cast<int>(wholeOf(error, "line")),
            error.value("missing", Json(false)) == Json(true), textsOf(error, "notes")};
    for (const Json& row : answer.value("values", Json::array()))
        result.values.push_back(
            {textOf(row, "name"), textOf(row, "type"), textOf(row, "layout"), wholeOf(row, "bytes_per_device")});
    for (const Json& row : answer.value("collectives", Json::array()))
        result.collectives.push_back({textOf(row, "program"), textOf(row, "op"), textOf(row, "axes"), wholeOf(row, "count"),
            wholeOf(row, "bytes_per_device"), textOf(row, "value"), textOf(row, "cause")});
    for (const Json& row : answer.value("findings", Json::array()))
        result.findings.push_back(findingOf(row));
    if (const auto seconds = answer.find("simulated"); seconds != answer.end() && seconds->is_number())
        result.simulatedSeconds = seconds->get<double>();
    result.pictures = textsOf(answer, "pictures");
    result.notes = textsOf(answer, "notes");
    if (result.status == CellStatus::Ran && cell.printed)
        result.likeness = likenessOf(answer, result.output, *cell.printed);
    return result;
}

/// The process of a page, ended with this object.
class PageProcess {
public:
    static Result<std::unique_ptr<PageProcess>> start(
        const Installation& installed, const PageMachine& machine, const PageChoices& choices, const fs::path& own)
    {
        auto process = std::make_unique<PageProcess>();
        if (!process->m_input.isGood() || !process->m_answers.isGood() || !process->m_words.isGood())
            return cannotStart(std::strerror(errno));
        // Nothing of the user's environment: it may hold secrets.
        const std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + own.string(),
            "TMPDIR=" + own.string(), "PYTHONPATH=" + installed.packages.string() + ":" + installed.module.string(),
            "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1", "PYTHONSAFEPATH=1", "OPENBLAS_NUM_THREADS=1",
            "MESHWRIGHT_RESOURCES=" + resourcesDirectory().string(), "MESHWRIGHT_PAGE=" + machineJson(machine, choices)};
        std::vector<std::string> arguments = {installed.python.string(), "-m", "meshwright_pages"};
        const auto pointers = [](std::vector<std::string> const& texts) {
            std::vector<char*> all;
            for (const std::string& text : texts)
                all.push_back(const_cast<char*>(text.c_str())); // posix_spawn does not write to them
            all.push_back(nullptr);
            return all;
        };
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, process->m_input.end(0), 0);
        posix_spawn_file_actions_adddup2(&actions, process->m_answers.end(1), 1);
        posix_spawn_file_actions_adddup2(&actions, process->m_words.end(1), 2);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        sigset_t none;
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
        const int error = posix_spawn(&process->m_id, installed.python.c_str(), &actions, &attributes, pointers(arguments).data(),
            pointers(environment).data());
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        process->m_input.close(0);
        process->m_answers.close(1);
        process->m_words.close(1);
        if (error != 0) {
            process->m_id = -1;
            return cannotStart(fmt::format("{}: {}", installed.python.string(), std::strerror(error)));
        }
        return process;
    }

    PageProcess() = default;
    ~PageProcess() { finish(); }
    PageProcess(const PageProcess&) = delete;
    PageProcess& operator=(const PageProcess&) = delete;

    void give(const std::string& text)
    {
        for (std::size_t at = 0; at < text.size();) {
            const ssize_t written = write(m_input.end(1), text.data() + at, text.size() - at);
            if (written < 0 && errno != EINTR)
                break; // it ended: its answers say so
            at += written > 0 ? static_cast<std::size_t>(written) : 0;
        }
    }

    enum class Event : std::uint8_t { Answer, End, Nothing };

    /// The next line of the answers, if it comes before long.
    Event next(std::string& line)
    {
        for (;;) {
            if (const std::size_t end = m_buffer.find('\n'); end != std::string::npos) {
                line = m_buffer.substr(0, end);
                m_buffer.erase(0, end + 1);
                return Event::Answer;
            }
            if (m_buffer.size() > kMostAnswer)
                return Event::End;
            std::array<pollfd, 2> ends = {pollfd{m_answers.end(0), POLLIN, 0}, pollfd{m_words.end(0), POLLIN, 0}};
            const int ready = poll(ends.data(), m_words.end(0) < 0 ? 1 : 2, kLook);
            if (ready <= 0)
                return Event::Nothing;
            std::array<char, 1 << 16> bytes;
            if (ends[1].revents != 0) {
                const ssize_t count = read(m_words.end(0), bytes.data(), bytes.size());
                if (count <= 0)
                    m_words.close(0);
                else
                    m_said.append(bytes.data(), static_cast<std::size_t>(count));
                m_said.erase(0, m_said.size() > kMostWords ? m_said.size() - kMostWords : 0);
            }
            if (ends[0].revents != 0) {
                const ssize_t count = read(m_answers.end(0), bytes.data(), bytes.size());
                if (count <= 0)
                    return Event::End;
                m_buffer.append(bytes.data(), static_cast<std::size_t>(count));
            }
        }
    }

    struct Ending {
        std::string how; ///< "it was ended by signal 9", or its exit code, and what it said last
        bool mayLackMemory = false;
    };

    /// Ends it, and says how it ended.
    Ending finish(bool kills = true)
    {
        if (m_id < 0)
            return {};
        if (kills)
            kill(m_id, SIGKILL);
        int status = 0;
        while (waitpid(m_id, &status, 0) < 0 && errno == EINTR) { }
        m_id = -1;
        const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        Ending ending{signal != 0 ? fmt::format("it was ended by signal {} ({})", signal, strsignal(signal))
                                  : fmt::format("it ended with exit code {}", WEXITSTATUS(status)),
            signal == SIGKILL}; // as the system ends what takes too much
        const std::string last = split(std::string(trimmed(m_said)), '\n').back();
        if (!last.empty() && (signal == 0 || signal == SIGABRT)) {
            ending.how += ": " + last;
            ending.mayLackMemory = last.find("bad_alloc") != std::string::npos;
        }
        return ending;
    }

private:
    Pipe m_input;
    Pipe m_answers;
    Pipe m_words;
    pid_t m_id = -1;
    std::string m_buffer;
    std::string m_said; ///< the end of what it wrote to standard error
};

class RunningPage final : public PageSession {
public:
    RunningPage(const Page& page, PageChoices choices)
        : m_page(page)
        , m_choices(std::move(choices))
    {
    }

    /// Problems: those of `PageSession::start`.
    Result<Done> start(const PageMachine& machine)
    {
        const auto installed = installation();
        if (!installed)
            return installed.error();
        const fs::path& own = m_own.path();
        if (own.empty())
            return cannotStart("there is no folder for temporary files");
        Json cells = Json::array();
        for (const Cell& cell : m_page.cells) {
            cells.push_back({{"source", cell.source}, {"text", cell.before}});
            if (cell.printed)
                cells.back()["printed"] = *cell.printed;
            if (cell.question)
                cells.back()["question"] = {{"check", cell.question->check}, {"why", cell.question->why}};
        }
        Json readable = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom"};
        for (const fs::path& path : {installed->packages, installed->module})
            readable.push_back(path.string());
        Json writable = {own.string(), "/dev/null"};
        if (!m_choices.folder.empty())
            writable.push_back(m_choices.folder.string());
        auto process = PageProcess::start(*installed, machine, m_choices, own);
        if (!process)
            return process.error();
        m_process = *std::move(process);
        const std::int64_t computer = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
        const Json job = {{"cells", std::move(cells)}, {"after", m_page.after}, {"readable", std::move(readable)},
            {"writable", std::move(writable)}, {"confine", m_choices.isConfined},
            {"folder", m_choices.folder.empty() ? own.string() : m_choices.folder.string()},
            {"memory", m_choices.memoryBytes > 0 ? m_choices.memoryBytes : computer / 4 * 3}};
        const auto ready = ask(job, "its start", {});
        if (!ready)
            return cannotStart(ready.error().front().message);
        if (ready->contains("problem"))
            return Problem{textOf((*ready)["problem"], "id") == "MW1562" ? "MW1562" : "MW1565",
                textOf((*ready)["problem"], "message"), textOf((*ready)["problem"], "fix")};
        return Done{};
    }

    Result<CellResult> run(std::size_t cell, const std::stop_token& stop) override
    {
        const auto answer = ask({{"run", cell}}, fmt::format("cell {}", cell + 1), stop);
        if (!answer)
            return answer.error();
        CellResult result = resultOf(*answer, m_page.cells[cell]);
        if (result.likeness == Likeness::Different) {
            for (std::size_t i = 0; i <= cell; ++i) {
                if (m_page.cells[i].isChangedSinceRun)
                    result.notes.push_back(fmt::format(
                        "cell {} was changed after the page was run (its run has no number, those around it have): what "
                        "the page printed may come from other code",
                        i + 1));
            }
        }
        return result;
    }

    Result<Done> change(std::size_t cell, const std::string& source, const std::stop_token& stop) override
    {
        const auto answer = ask({{"change", cell}, {"source", source}}, fmt::format("cell {}", cell + 1), stop);
        if (!answer)
            return answer.error();
        return Done{};
    }

    Result<Judgement> judge(std::size_t cell, const std::string& text, const std::stop_token& stop) override
    {
        const auto answer = ask({{"judge", cell}, {"answer", text}}, fmt::format("cell {}", cell + 1), stop);
        if (!answer)
            return answer.error();
        return Judgement{
            answer->value("right", Json()) == Json(true), answer->value("read", Json()) != Json(false), textOf(*answer, "said")};
    }

    Result<std::vector<std::pair<std::size_t, PageFinding>>> findings(const std::stop_token& stop) override
    {
        const auto answer = ask({{"findings", true}}, "the look at the whole page", stop);
        if (!answer)
            return answer.error();
        std::vector<std::pair<std::size_t, PageFinding>> found;
        for (const Json& row : answer->value("page", Json::array()))
            found.emplace_back(static_cast<std::size_t>(wholeOf(row, "cell")), findingOf(row));
        return found;
    }

private:
    /// Sends a line and waits for the answer to it. Problems: those of `run`; `what` is what it works on.
    Result<Json> ask(const Json& command, const std::string& what, const std::stop_token& stop)
    {
        if (!command.is_null())
            m_process->give(jsonLine(command) + "\n");
        const auto began = Clock::now();
        for (;;) {
            std::string line;
            const PageProcess::Event event = m_process->next(line);
            const double seconds = m_spent + std::chrono::duration<double>(Clock::now() - began).count();
            if (event == PageProcess::Event::Answer) {
                Json answer = parsedJson(line);
                if (!answer.is_object())
                    continue;
                m_spent = seconds;
                return answer;
            }
            const bool isAsked = stop.stop_requested();
            const bool isLate = seconds > m_choices.seconds;
            if (event == PageProcess::Event::Nothing && !isLate && !isAsked)
                continue;
            const PageProcess::Ending ending = m_process->finish(isLate || isAsked);
            if (isAsked)
                return Problem{"MW1507", "stopped in " + what};
            if (isLate)
                return Problem{"MW1566",
                    fmt::format("{} was stopped: the page's {} are over", what, formatSeconds(m_choices.seconds)),
                    "give it more with --timeout, or leave cells out with --cells"};
            return Problem{"MW1567", fmt::format("the page's process ended in {}: {}", what, ending.how),
                ending.mayLackMemory ? "leave the cell out with --cells, or give the page more --memory"
                                     : "leave the cell out with --cells"};
        }
    }

    const Page& m_page;
    PageChoices m_choices;
    OwnFolder m_own;
    std::unique_ptr<PageProcess> m_process;
    double m_spent = 0.0; ///< seconds that the process worked
};
} // namespace

const char* statusName(CellStatus status)
{
    constexpr std::array kNames = {"not run", "ran", "raised", "not computed", "stopped"};
    return kNames[static_cast<std::size_t>(status)];
}

Result<std::unique_ptr<PageSession>> PageSession::start(const Page& page, const PageMachine& machine, const PageChoices& choices)
{
    auto session = std::make_unique<RunningPage>(page, choices);
    if (const auto started = session->start(machine); !started)
        return started.error();
    return std::unique_ptr<PageSession>(std::move(session));
}

Result<PageRun> runPage(const Page& page, const PageMachine& machine, const PageChoices& choices, const std::stop_token& stop)
{
    auto session = PageSession::start(page, machine, choices);
    if (!session)
        return session.error();
    PageRun run;
    run.cells.resize(page.cells.size());
    for (std::size_t i = 0; i < page.cells.size(); ++i) {
        if (!choices.cells.empty() && !choices.cells.contains(i))
            continue;
        auto result = (*session)->run(i, stop);
        if (!result) {
            run.cells[i].status = CellStatus::Stopped;
            run.stopped = result.error();
            return run;
        }
        run.cells[i] = *std::move(result);
    }
    const auto findings = (*session)->findings(stop);
    for (const auto& [cell, finding] : findings ? *findings : std::vector<std::pair<std::size_t, PageFinding>>()) {
        if (cell < run.cells.size())
            run.cells[cell].findings.push_back(finding);
    }
    return run;
}

} // namespace meshwright::pages
