// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/page_output.h"
#include "app/terminal/files.h"
#include "app/terminal/interrupt.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/table.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace meshwright::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Lesson {
    std::string name; ///< of its file, without the ending: 3-products
    std::string title; ///< its first heading
    pages::Page page;

    std::size_t questions() const
    {
        return static_cast<std::size_t>(std::count_if(
            page.cells.begin(), page.cells.end(), [](const pages::Cell& cell) { return cell.question.has_value(); }));
    }
};

/// All lessons in their order. Problems: MW1006; those of `readFile` and `readPage`.
Result<std::vector<Lesson>> lessons()
{
    const auto folder = findResource("lessons");
    if (!folder)
        return folder.error();
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(*folder))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Lesson> all;
    for (const fs::path& file : files) {
        auto text = readFile(file);
        if (!text)
            return text.error();
        auto page = pages::readPage(*std::move(text), file.string());
        if (!page)
            return inFile(page.error(), file.string());
        const std::size_t heading = page->text.find("# ");
        const std::string title
            = heading == std::string::npos ? "" : page->text.substr(heading + 2, page->text.find('\n', heading) - heading - 2);
        all.push_back({file.stem().string(), title, *std::move(page)});
    }
    return all;
}

/// Which questions of each lesson were answered rightly, kept in one file of the user's.
class Progress {
public:
    Progress()
    {
        const char* data = std::getenv("XDG_DATA_HOME");
        const char* home = std::getenv("HOME");
        if (data != nullptr && *data == '/')
            m_file = fs::path(data) / "meshwright" / "lessons.json";
        else if (home != nullptr && *home == '/')
            m_file = fs::path(home) / ".local" / "share" / "meshwright" / "lessons.json";
        if (m_file.empty() || !fs::exists(m_file))
            return;
        const auto text = readFile(m_file);
        const Json read = text ? Json::parse(*text, nullptr, false) : Json();
        if (!read.is_object())
            return;
        for (const auto& [lesson, numbers] : read.items()) {
            for (const Json& number : numbers) {
                if (number.is_number_unsigned())
                    m_done[lesson].insert(number.get<std::size_t>());
            }
        }
    }

    std::size_t done(const Lesson& lesson) const
    {
        const auto found = m_done.find(lesson.name);
        return found == m_done.end() ? 0 : std::min(found->second.size(), lesson.questions());
    }

    /// Problems: those of writing the file.
    Result<Done> add(const Lesson& lesson, std::size_t question)
    {
        if (!m_done[lesson.name].insert(question).second || m_file.empty())
            return Done{};
        Json written = Json::object();
        for (const auto& [name, numbers] : m_done)
            written[name] = numbers;
        std::error_code error;
        fs::create_directories(m_file.parent_path(), error);
        return writeFileAtomically(m_file, written.dump(2) + "\n");
    }

private:
    fs::path m_file; ///< empty: there is no place for one
    std::map<std::string, std::set<std::size_t>> m_done;
};

/// Lines of standard input.
class Lines {
public:
    /// The next one; nothing at the end, or when a stop is asked for.
    std::optional<std::string> next(const std::stop_token& stop)
    {
        constexpr int kLook = 50; // milliseconds between looks at the token
        while (!stop.stop_requested()) {
            if (const std::size_t end = m_buffer.find('\n'); end != std::string::npos) {
                const std::string line = m_buffer.substr(0, end);
                m_buffer.erase(0, end + 1);
                return std::string(trimmed(line));
            }
            pollfd input{STDIN_FILENO, POLLIN, 0};
            if (poll(&input, 1, kLook) <= 0)
                continue;
            std::array<char, 4096> bytes;
            const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
            if (count > 0)
                m_buffer.append(bytes.data(), static_cast<std::size_t>(count));
            else if (m_buffer.empty())
                break;
            else
                m_buffer += '\n';
        }
        return std::nullopt;
    }

private:
    std::string m_buffer;
};

std::string indented(const std::string& text, const std::string& indent)
{
    return std::string(trimmed(text)).empty() ? ""
                                              : indent + join(split(std::string(trimmed(text)), '\n'), "\n" + indent) + "\n\n";
}

/// A lesson gone through from its first word to its last.
class Walk {
public:
    Walk(const Lesson& lesson, Progress& progress, Output& output, std::stop_token stop)
        : m_lesson(lesson)
        , m_progress(progress)
        , m_output(output)
        , m_stop(std::move(stop))
    {
    }

    /// Problems: those of `PageSession`, of writing the progress, and MW1507.
    Result<Done> run()
    {
        const auto machine = pages::machineOfPage(m_lesson.page);
        if (!machine)
            return machine.error();
        auto session = pages::PageSession::start(m_lesson.page, *machine, {.seconds = 3600.0});
        if (!session)
            return session.error();
        for (std::size_t i = 0; i < m_lesson.page.cells.size() && !m_leaves; ++i) {
            const pages::Cell& cell = m_lesson.page.cells[i];
            m_output.result(indented(cell.before, ""));
            const auto result = (*session)->run(i, m_stop);
            if (!result)
                return result.error();
            if (cell.question) {
                if (const auto asked = ask(**session, i, *cell.question, result->output); !asked)
                    return asked.error();
                continue;
            }
            m_output.result(indented(cell.source, "    ") + indented(result->output, "  | "));
            if (result->error)
                m_output.result(fmt::format("{}: {}\n\n", result->error->type, result->error->message));
        }
        if (!m_leaves)
            m_output.result(indented(m_lesson.page.after, ""));
        if (!m_answers.empty())
            m_output.result("# Answers\n\n" + m_answers);
        m_output.result(
            fmt::format("{} of {} questions of this lesson are answered\n", m_progress.done(m_lesson), m_lesson.questions()));
        return Done{};
    }

private:
    Result<Done> ask(pages::PageSession& session, std::size_t cell, const pages::Question& question, const std::string& answer)
    {
        ++m_number;
        m_output.result(fmt::format("Question {} of {}. {}\n\n", m_number, m_lesson.questions(), question.text));
        const std::size_t end = answer.find('\n');
        auto hint = question.hints.begin();
        while (!m_isEnd) {
            if (isatty(STDIN_FILENO) == 1)
                m_output.result("> ");
            static_cast<void>(m_output.finish());
            const auto line = m_lines.next(m_stop);
            if (m_stop.stop_requested())
                return Problem{"MW1507", "stopped"};
            m_isEnd = !line;
            m_leaves = line && (*line == "q" || *line == "quit");
            if (m_isEnd || m_leaves)
                break;
            if (isatty(STDIN_FILENO) != 1)
                m_output.result("> " + *line + "\n");
            const auto judged = line->empty() ? pages::Judgement{} : session.judge(cell, *line, m_stop);
            if (!judged)
                return judged.error();
            if (judged->isRight) {
                m_output.result("Right.\n\n" + indented(answer.substr(std::min(end, answer.size())), ""));
                return m_progress.add(m_lesson, m_number);
            }
            m_output.result((line->empty() ? "" : "Not so. ") + (judged->said.empty() ? "" : judged->said + "\n"));
            if (hint == question.hints.end()) {
                m_output.result("The answer: " + indented(answer, ""));
                return Done{};
            }
            m_output.result("Hint: " + *hint++ + "\n\n");
        }
        if (!m_leaves)
            m_answers += fmt::format("{}. {}", m_number, indented(answer, ""));
        return Done{};
    }

    const Lesson& m_lesson;
    Progress& m_progress;
    Output& m_output;
    std::stop_token m_stop;
    Lines m_lines;
    std::size_t m_number = 0; ///< of the question
    bool m_isEnd = false; ///< of standard input: the other answers are told at the end
    bool m_leaves = false;
    std::string m_answers;
};

int listLessons(const std::vector<Lesson>& all, const Progress& progress, Output& output)
{
    using Align = TextTable::Align;
    TextTable table({{"lesson", Align::Right}, {"about"}, {"answered", Align::Right}});
    for (std::size_t i = 0; i < all.size(); ++i)
        table.addRow(
            {fmt::format("{}", i + 1), all[i].title, fmt::format("{} of {}", progress.done(all[i]), all[i].questions())});
    output.result(table.text() + "\n`meshwright lesson 1` begins with the first. An empty answer asks for a hint, q leaves.\n");
    return kExitOk;
}

int writeLesson(const Lesson& lesson, const std::string& file, const std::stop_token& stop, Output& output)
{
    const auto machine = pages::machineOfPage(lesson.page);
    if (!machine)
        return fail(machine.error(), output);
    const auto run = pages::runPage(lesson.page, *machine, {}, stop);
    if (!run)
        return fail(run.error(), output);
    const int code = writeResult(pages::pageHtml({lesson.title, lesson.page, *machine, *run}), file, output);
    return run->stopped.empty() ? code : failAfterResult(run->stopped, output);
}

} // namespace

int runLesson(const LessonOptions& options, Output& output)
{
    const auto all = lessons();
    if (!all)
        return fail(all.error(), output);
    Progress progress;
    if (options.which.empty())
        return listLessons(*all, progress, output);
    const auto number = parseInteger(options.which);
    if (!number || *number < 1 || static_cast<std::size_t>(*number) > all->size())
        return fail({Problem{"MW1903", fmt::format("there is no lesson {}: there are 1 to {}", options.which, all->size()),
                        "`meshwright lesson` lists them"}},
            output);
    const Lesson& lesson = (*all)[static_cast<std::size_t>(*number) - 1];
    constexpr std::array kAllowed = {Format::Html};
    const bool writes = !options.result.empty() || output.format == Format::Html;
    if (const auto format = formatOfFile(options.result, output.format == Format::Html, output.format, kAllowed);
        writes && !format)
        return fail(format.error(), output);
    InterruptWatcher interrupt;
    if (writes)
        return writeLesson(lesson, options.result, interrupt.token(), output);
    const auto done = Walk(lesson, progress, output, interrupt.token()).run();
    return done ? int{kExitOk} : interrupt.exitCode() != 0 ? interrupt.fail(done.error(), output) : fail(done.error(), output);
}

} // namespace meshwright::cli
