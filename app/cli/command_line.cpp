// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"

#include "app/terminal/overwrites.h"
#include "app/verbs/verb_table.h"
#include "core/program/verify.h"
#include "core/ranks/launch.h"
#include "core/support/file.h"
#include "core/support/host_memory.h"
#include "core/support/pattern.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <sstream>
#include <string_view>
#include <system_error>
#include <unordered_map>

namespace meshwright::cli {

namespace {

constexpr const char* kMainExamples = R"help(  meshwright tour
  meshwright train study.yaml --verify
  meshwright simulate study.yaml --set mesh.data=8
  meshwright search --model llama3_8b --hw v5e-64 --tokens 1M --seq 4096
  meshwright sweep study.yaml --vary mesh="data*model=8"
  meshwright report study.yaml -o report.html
  meshwright gui study.yaml
  meshwright open page.ipynb
  meshwright lesson 3
  meshwright show --mesh data=4,model=2 --shape 8192x8192 --spec "P('data', 'model')"
  meshwright mesh --hw v3 --topology 2x2 --mesh a=8
  meshwright partition program.mlir
  meshwright check study.yaml --set mesh.data=8
  meshwright explain MW1104
  meshwright list examples)help";

/// Help with the examples first; they are the footer of each App.
class ExamplesFirst final : public CLI::Formatter {
public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override
    {
        if (mode == CLI::AppFormatMode::Sub)
            return make_expanded(app);
        std::string help = make_description(app);
        help += "\nExamples:\n" + app->get_footer() + "\n" + make_usage(app, std::move(name));
        help += make_positionals(app) + make_groups(app, mode) + make_subcommands(app, mode);
        return help;
    }

    /// Without the `{false}` that CLI11 puts behind a flag which turns something off: the flag takes no value.
    std::string make_option_name(const CLI::Option* option, bool isPositional) const override
    {
        std::string name = CLI::Formatter::make_option_name(option, isPositional);
        constexpr std::string_view kOff = "{false}";
        if (const auto at = name.find(kOff); at != std::string::npos)
            name.erase(at, kOff.size());
        return name;
    }
};

class CommandLine {
public:
    CommandLine()
    {
        m_app.name("meshwright");
        m_app.description("Plans, runs and simulates sharded training: draws layouts, finds mistakes, shows why.");
        m_app.footer(kMainExamples);
        m_app.formatter(std::make_shared<ExamplesFirst>());
        m_app.set_version_flag("--version", std::string("meshwright ") + kVersion, "Print the version and exit");
        m_app.set_help_flag("-h,--help", "Print this help and exit");
        m_app.allow_extras(); // unknown arguments are ours to report, with the nearest name
        for (const auto add : {addShow, addMesh, addTrain, addSimulate, addSearch, addPlan, addSweep, addDiff, addReport,
                 addExport, addGui, addOpen, addLesson, addRun, addCheck, addConvert, addReshard, addPropagate, addPartition,
                 addProve, addExplain, addList, addTour, addCalibrate, addValidate, addConfig, addDoctor})
            add(m_verbs);
    }

    int run(std::span<const std::string> arguments);

private:
    Problem unknownVerb(const std::string& name) const;
    Problems unexpected(const Verb* verb) const;
    static Problems leaderless(const Verb& verb);
    static Problems unwritable(const Verb& verb, Output& output);
    static Problems lost(const Verb& verb, Output& output);
    Problems wrongFlags(const Verb& verb, Output& output);

    CLI::App m_app;
    VerbTable m_verbs{m_app};
};

std::string helpOf(const Verb& verb)
{
    return fmt::format("see the examples of `meshwright {} --help`", verb.app->get_name());
}

std::vector<std::string> flagsOf(const CLI::App& app)
{
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames())
            flags.push_back("--" + name);
    }
    return flags;
}

/// The name that is near, or where all of them are listed.
std::string nearOrHelp(const std::string& wrong, const std::vector<std::string>& names, const std::string& help)
{
    const auto near = nearestName(wrong, names);
    return near ? fmt::format("did you mean \"{}\"?", *near) : fmt::format("`{}` names all", help);
}

/// The flags among arguments that a verb does not have.
Problems unknownFlags(const Verb& verb, std::span<const std::string> arguments)
{
    const std::vector<std::string> known = flagsOf(*verb.app);
    const std::string help = fmt::format("meshwright {} --help", verb.app->get_name());
    Problems problems;
    for (const std::string& argument : arguments) {
        const std::string flag = argument.substr(0, argument.find('='));
        if (flag.size() > 1 && flag[0] == '-' && std::ranges::find(known, flag) == known.end())
            problems.push_back({"MW1901", fmt::format("unknown flag \"{}\"", flag), nearOrHelp(flag, known, help)});
    }
    return problems;
}

Problem CommandLine::unknownVerb(const std::string& name) const
{
    return {"MW1902", fmt::format("unknown verb \"{}\"", name), suggestion(name, m_verbs.names())};
}

/// What is left over of the command line.
Problems CommandLine::unexpected(const Verb* verb) const
{
    if (verb == nullptr) {
        const std::vector<std::string> left = m_app.remaining();
        if (left.empty())
            return {Problem{"MW1904", "a verb is missing", "one of: " + join(m_verbs.names(), ", ")}};
        if (left.front().starts_with('-'))
            return {Problem{"MW1901", fmt::format("unknown flag \"{}\"", left.front()),
                nearOrHelp(left.front(), flagsOf(m_app), "meshwright --help")}};
        return {unknownVerb(left.front())};
    }
    std::vector<std::string> left = verb->app->remaining();
    for (const std::string& more : m_app.remaining())
        left.push_back(more);
    Problems problems = unknownFlags(*verb, left);
    // After an unknown flag, what follows may have been its value: only the flag is reported.
    if (problems.empty()) {
        for (const std::string& argument : left)
            problems.push_back({"MW1905", fmt::format("unexpected argument \"{}\"", argument),
                fmt::format("see `meshwright {} --help`", verb->app->get_name())});
    }
    return problems;
}

bool isOfAFile(const CLI::Option& option)
{
    constexpr std::array<std::string_view, 6> kTypes = {"FILE", "FOLDER", "PATH", "RESULT.json", "RUNS.sqlite", "A.npy,B.npy"};
    return std::ranges::find(kTypes, option.get_type_name()) != kTypes.end();
}

/// What the flags that all verbs share say, put into `output`.
Problems CommandLine::wrongFlags(const Verb& verb, Output& output)
{
    Problems problems;
    const CommonFlags& common = m_verbs.common();
    std::vector<std::string> formats;
    for (const Format format : verb.formats) {
        formats.emplace_back(formatName(format));
        if (common.format == formats.back())
            output.format = format;
    }
    const auto refuse = [&](const char* flag, const std::string& value, const std::vector<std::string>& allowed) {
        if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
            problems.push_back(
                {"MW1903", fmt::format("{}: \"{}\" is not allowed here", flag, value), "one of: " + join(allowed, ", ")});
    };
    if (common.format.empty())
        output.format = verb.formats.front();
    else
        refuse("--format", common.format, formats);
    refuse("--color", common.colour, {"auto", "always", "never"});
    for (const Choice& choice : verb.choices)
        refuse(choice.flag, *choice.value, choice.allowed);
    output.colour = common.colour == "always" ? ColourChoice::Always
        : common.colour == "never"            ? ColourChoice::Never
                                              : ColourChoice::Auto;
    output.quiet = common.quiet;
    if (common.verifyPasses)
        setVerifyPasses(true);
    for (const CLI::Option* option : verb.app->get_options()) {
        // An empty name, as of a variable that is not set, would be taken for a flag that was not given.
        if (isOfAFile(*option) && std::ranges::count(option->results(), std::string()) > 0)
            problems.push_back({"MW1903", fmt::format("{}: \"\" is not a file or folder", option->get_name()),
                fmt::format("name one, or leave {} out", option->get_name())});
    }
    for (const CLI::Option* option : verb.needed) {
        if (option->count() == 0)
            problems.push_back({"MW1904", fmt::format("{} is missing", option->get_name()), helpOf(verb)});
    }
    return problems;
}

/// Flags that say nothing as they stand.
Problems CommandLine::leaderless(const Verb& verb)
{
    Problems problems;
    for (const Follower& follower : verb.followers) {
        if (follower.option->count() > 0 && follower.leader->count() == 0)
            problems.push_back(
                {"MW1912", fmt::format("{} has no effect without {}", follower.option->get_name(), follower.leader->get_name()),
                    fmt::format("add {}, or leave {} out", follower.leader->get_name(), follower.option->get_name())});
    }
    return problems;
}

/// The files that could not be written. What goes to standard output as a file pushes the verb's own words off it.
Problems CommandLine::unwritable(const Verb& verb, Output& output)
{
    Problems problems;
    std::vector<std::string> onStandardOutput;
    for (const WrittenFile& file : verb.files) {
        const auto good = output.silent              ? Result<Done>(Done{}) // another process writes
            : file.kind == WrittenFile::Kind::Folder ? checkFolderWritable(*file.path)
                                                     : checkWritable(*file.path);
        if (!good)
            append(problems, good.error());
        if (file.kind == WrittenFile::Kind::Beside && *file.path == "-")
            onStandardOutput.push_back(file.flag);
    }
    if (onStandardOutput.size() > 1)
        problems.push_back(
            {"MW1903", join(onStandardOutput, " and ") + " cannot both write to standard output", "give one of them a file"});
    output.wordsOnError = !onStandardOutput.empty();
    return problems;
}

/// The outputs that would take the place of something that the verb reads, or of each other. What the verb writes is put into `output`.
Problems CommandLine::lost(const Verb& verb, Output& output)
{
    for (const WrittenFile& file : verb.files) {
        if (file.kind != WrittenFile::Kind::Folder && !file.path->empty() && *file.path != "-")
            output.writes.push_back({file.flag, *file.path});
    }
    Problems problems = collisions(output.writes);
    for (const CLI::Option* option : verb.app->get_options()) {
        const bool isWritten
            = std::ranges::any_of(verb.files, [&](const WrittenFile& file) { return file.flag == option->get_name(); });
        if (isWritten || (!option->get_positional() && !isOfAFile(*option)))
            continue;
        for (const std::string& named : option->results()) {
            std::error_code error;
            const bool isFile = named != "-" && (!option->get_positional() || std::filesystem::exists(named, error));
            if (isFile)
                append(problems, overwrites(output.writes, named, option->get_name()));
        }
    }
    return problems;
}

/// Memory that runs out anywhere below ends the verb with a problem: what it had is free again by then.
int runVerb(const Verb& verb, Output& output)
{
    try {
        return verb.run(output);
    } catch (const std::bad_alloc&) {
        return fail({notEnoughMemory()}, output);
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::resource_unavailable_try_again)
            throw;
        return fail({notEnoughMemory()}, output); // for the stack of another thread
    }
}

int CommandLine::run(std::span<const std::string> arguments)
{
    std::vector<std::string> words(arguments.begin(), arguments.end());
    Output output;
    const auto launch = launched();
    output.silent = launch && launch->rank != 0; // of several processes one says what is wrong with the command
    if (!words.empty() && words.front() == "help") { // `help show` is `show --help`
        words.erase(words.begin());
        words.emplace_back("--help");
        if (words.front() != "--help" && m_verbs.find(words.front()) == nullptr)
            return fail({unknownVerb(words.front())}, output);
    }
    const Verb* named = words.empty() ? nullptr : m_verbs.find(words.front());
    std::reverse(words.begin(), words.end()); // CLI11 takes them from the back
    try {
        m_app.parse(words);
    } catch (const CLI::Success& request) {
        std::ostringstream text;
        const int code = m_app.exit(request, text, text);
        output.result(text.str());
        if (const auto written = output.finish(); !written)
            return failAfterResult(written.error(), output);
        return code == 0 ? kExitOk : kExitInvalid;
    } catch (const CLI::ArgumentMismatch& error) {
        std::vector<std::string> flags; // a misspelt one's value is taken for an argument, of which there are too many then
        std::ranges::copy_if(
            arguments, std::back_inserter(flags), [](const std::string& word) { return word.starts_with("--"); });
        if (const Problems unknown = named == nullptr ? Problems{} : unknownFlags(*named, flags); !unknown.empty())
            return fail(unknown, output);
        static const Pattern kTooMany(R"((.*): At Most 1 required but received (\d+))");
        const std::string said = error.what();
        const auto parts = kTooMany.matchOf(said);
        return fail({Problem{"MW1903", parts ? fmt::format("{} is given {} times", parts->groups[1], parts->groups[2]) : said,
                        parts        ? "give it once"
                            : !named ? "`meshwright --help` shows examples"
                                     : helpOf(*named)}},
            output);
    } catch (const CLI::ParseError& error) {
        return fail(
            {Problem{"MW1903", error.what(), named == nullptr ? "`meshwright --help` shows examples" : helpOf(*named)}}, output);
    }
    const auto chosen
        = std::find_if(m_verbs.verbs().begin(), m_verbs.verbs().end(), [](const Verb& verb) { return verb.app->parsed(); });
    const Verb* verb = chosen == m_verbs.verbs().end() ? nullptr : &*chosen;
    Problems problems = verb == nullptr ? Problems{} : wrongFlags(*verb, output);
    if (Problems left = unexpected(verb); verb == nullptr || !m_app.remaining(true).empty()) {
        // Something misspelt is why something else is missing.
        std::erase_if(problems, [](const Problem& problem) { return problem.id == "MW1904"; });
        append(problems, std::move(left));
    }
    if (verb != nullptr)
        append(problems, leaderless(*verb));
    if (!problems.empty())
        return fail(problems, output);
    if (Problems files = lost(*verb, output); !files.empty())
        return fail(files, output);
    if (Problems files = unwritable(*verb, output); !files.empty())
        return fail(files, output);
    output.silent = false;
    const int code = runVerb(*verb, output);
    if (const auto written = output.finish(); !written)
        return failAfterResult(written.error(), output);
    return code;
}

} // namespace

int runCommandLine(std::span<const std::string> arguments)
{
    CommandLine line;
    return line.run(arguments);
}

} // namespace meshwright::cli
