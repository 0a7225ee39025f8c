// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "app/terminal/files.h"
#include "app/terminal/interrupt.h"
#include "core/support/file.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

namespace meshwright::cli {

namespace {

std::string writtenAs(const sim::PlanAnswer& answer, const std::string& command, Format format)
{
    switch (format) {
    case Format::Json:
        return sim::planJson(answer);
    case Format::Html:
        return sim::reportHtml(sim::planReport(answer, command));
    case Format::Markdown:
        return sim::reportMarkdown(sim::planReport(answer, command));
    default:
        return sim::planText(answer);
    }
}

bool isStudyFile(const std::string& file)
{
    const auto ending = std::filesystem::path(file).extension();
    return ending == ".yaml" || ending == ".yml";
}

} // namespace

int runPlan(const PlanVerbOptions& options, Output& output)
{
    static constexpr std::array kFormats = {Format::Text, Format::Json, Format::Html, Format::Markdown};
    const bool isStudy = isStudyFile(options.file);
    const auto format = formatOfFile(isStudy ? std::string() : options.file, options.formatGiven, output.format, kFormats);
    if (!format)
        return fail(format.error(), output);
    if (options.timeLimit && !(*options.timeLimit > 0.0))
        return fail({Problem{"MW1903", "--time-limit: expected a number of seconds above 0", "--time-limit 120"}}, output);
    InterruptWatcher interrupt;
    sim::PlanOptions choices;
    choices.threads = static_cast<unsigned>(options.threads);
    choices.stop = interrupt.token();
    choices.timeLimit = options.timeLimit;
    choices.progress = [&](const std::string& what) { output.narrate("looking at " + what); };
    const auto answer = sim::planTraining(options.words, choices);
    if (!answer)
        return fail(answer.error(), output);
    Problems unwritten; // what was found is shown all the same
    if (isStudy && !answer->study.empty()) {
        if (const auto file = writeFileAtomically(options.file, answer->study); !file)
            unwritten = file.error();
        else
            output.narrate(fmt::format("the study of the best plan is in {}", options.file));
    }
    const int written = writeResult(
        writtenAs(*answer, sim::planCommand(options.words), *format), isStudy ? std::string() : options.file, output);
    if (written != kExitOk)
        return written;
    if (!unwritten.empty())
        return failAfterResult(unwritten, output);
    if (interrupt.exitCode() != 0)
        return interrupt.exitCode();
    return answer->fits() && answer->meets ? kExitOk : kExitInfeasible;
}

} // namespace meshwright::cli
