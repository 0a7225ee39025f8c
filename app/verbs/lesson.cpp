// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"
#include "app/terminal/interrupt.h"
#include "app/verbs/verbs.h"

#include "core/support/table.h"
#include "core/support/text.h"
#include "sim/pages/lessons.h"
#include "sim/pages/page_output.h"

#include <fmt/format.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

namespace meshwright::cli {

namespace {

using pages::Lesson;
using pages::LessonProgress;

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
    Walk(const Lesson& lesson, LessonProgress& progress, Output& output, std::stop_token stop)
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
            if (!judged->isRead) {
                m_output.result("Not understood: " + judged->said + ".\n\n");
                continue;
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
    LessonProgress& m_progress;
    Output& m_output;
    std::stop_token m_stop;
    Lines m_lines;
    std::size_t m_number = 0; ///< of the question
    bool m_isEnd = false; ///< of standard input: the other answers are told at the end
    bool m_leaves = false;
    std::string m_answers;
};

int listLessons(const std::vector<Lesson>& all, const LessonProgress& progress, Output& output)
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
    const auto all = pages::lessons();
    if (!all)
        return fail(all.error(), output);
    LessonProgress progress;
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
