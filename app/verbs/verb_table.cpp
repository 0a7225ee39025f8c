// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verb_table.h"

#include "app/verbs/verbs.h"
#include "core/study/study.h"
#include "core/support/quantity.h"
#include "core/support/text.h"
#include "core/support/timed_stop.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp> // these two have what the constructor of CLI::App calls
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace meshwright::cli {

namespace {

std::string secondsOrZero(const std::string& text)
{
    const auto number = parseNumber(text);
    return number && *number >= 0.0 && *number <= kLongestWaitSeconds
        ? std::string()
        : fmt::format("\"{}\" is not a number of seconds from 0 to {:.0f}", text, kLongestWaitSeconds);
}

/// Bytes with a unit, "512MiB", as their number.
std::string bytesOfText(std::string& text)
{
    const auto bytes = parseBytes(text);
    if (!bytes || *bytes < 1)
        return fmt::format("\"{}\" is not an amount of memory; write 512MiB, 2GB or a number of bytes", text);
    text = std::to_string(*bytes);
    return {};
}

} // namespace

CLI::Option* Verb::addFile(
    const char* names, std::string& target, const char* description, WrittenFile::Kind kind, const char* type)
{
    CLI::Option* option = app->add_option(names, target, description)->type_name(type);
    files.push_back({option->get_name(), &target, kind});
    return option;
}

Verb& VerbTable::add(
    const char* name, const char* description, const char* examples, std::vector<Format> formats, std::function<int(Output&)> run)
{
    CLI::App* app = m_app.add_subcommand(name, description);
    app->footer(examples);
    app->allow_extras();
    std::vector<std::string> words;
    for (const Format format : formats)
        words.emplace_back(formatName(format));
    app->add_option("--format", m_common.format, "What to write: " + join(words, ", "))->type_name("FORMAT");
    app->add_option("--color", m_common.colour, "Colours: auto (on a terminal, unless NO_COLOR is set), always or never")
        ->type_name("WHEN");
    app->add_flag("-q,--quiet", m_common.quiet, "No progress messages on standard error");
    app->add_flag("--verify-passes", m_common.verifyPasses, "Verify the program after each pass, to report faults of Meshwright");
    return m_verbs.emplace_back(Verb{app, std::move(formats), std::move(run)});
}

const Verb* VerbTable::find(const std::string& name) const
{
    const auto found
        = std::find_if(m_verbs.begin(), m_verbs.end(), [&](const Verb& verb) { return verb.app->get_name() == name; });
    return found == m_verbs.end() ? nullptr : &*found;
}

std::vector<std::string> VerbTable::names() const
{
    std::vector<std::string> names;
    for (const Verb& verb : m_verbs)
        names.push_back(verb.app->get_name());
    return names;
}

std::function<std::string(const std::string&)> wholeNumber(std::int64_t least, std::int64_t most)
{
    return [=](const std::string& text) {
        const auto number = parseInteger(text);
        if (number && *number >= least && *number <= most)
            return std::string();
        return most == kMostCounted ? fmt::format("\"{}\" is not a whole number of {} or more", text, least)
                                    : fmt::format("\"{}\" is not a whole number from {} to {}", text, least, most);
    };
}

std::string anyNumber(const std::string& text)
{
    return parseNumber(text) ? std::string() : fmt::format("\"{}\" is not a number", text);
}

void addSettings(CLI::App& app, std::vector<std::string>& settings)
{
    app.add_option("--set", settings, "Override a value of the study: train.steps=0, mesh.data=8")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
    app.add_flag_callback(
        "--shrink", [&settings] { settings.emplace_back("shrink=true"); },
        "Make the study small enough to run here: two devices an axis, small sizes, the same structure");
}

void addHardware(CLI::App& app, std::vector<std::string>& settings)
{
    app.add_option_function<std::string>(
           "--hw", [&settings](const std::string& name) { settings.insert(settings.begin(), "hardware=" + name); },
           "Chips or machines and how many, in place of the study's: v5e-64, h100x64, \"p5.48xlarge x 8\"")
        ->type_name("NAME");
}

void addMesh(CLI::App& app, std::vector<std::string>& settings)
{
    app.add_option_function<std::string>(
           "--mesh", [&settings](const std::string& axes) { settings.insert(settings.begin(), "mesh=" + axes); },
           "Axes with their sizes, in place of the mesh of the study or the program: data=8,model=4")
        ->type_name("AXES");
}

void addStack(CLI::App& app, std::vector<std::string>& settings)
{
    app.add_option_function<std::string>(
           "--stack", [&settings](const std::string& stack) { settings.push_back("stack=" + stack); },
           "Software to predict for: " + join(stackWords(), ", ") + " (default: the usual one on the chip)")
        ->type_name("NAME");
}

void addNoProve(CLI::App& app, bool& proves)
{
    app.add_flag("!--no-prove", proves, "Do not prove that the device program computes the program");
}

void addBytes(CLI::App& app, const char* flag, std::int64_t& bytes, const char* description)
{
    app.add_option(flag, bytes, description)->type_name("512MiB")->transform(CLI::Validator(bytesOfText, ""));
}

void addDeviceMemory(CLI::App& app, std::int64_t& bytes)
{
    addBytes(app, "--device-memory", bytes, "Memory limit of each device; what does not fit is refused before it runs");
}

void addEngine(CLI::App& app, std::string& engine)
{
    app.add_option(
           "--engine", engine, "Run devices as threads, or as fibers with one worker per core (default: fibers above 32 devices)")
        ->type_name("auto|threads|fibers");
}

void addFaultFlags(CLI::App& app, FaultFlags& faults)
{
    app.add_flag("--check-numerics", faults.checkNumerics, "Stop at the first op that makes NaN or infinity, and name it");
    app.add_option(
           "--stall-timeout", faults.stallTimeout, "Seconds to wait for a device at a collective (default 600; 0: no limit)")
        ->type_name("SECONDS")
        ->check(secondsOrZero);
    app.add_option("--inject", faults.inject,
           "Inject a fault: fail:device=3,step=10, memory:, nan:, stall:, slow:device=2,factor=3; steps count from 0")
        ->type_name("FAULT")
        ->allow_extra_args(false);
}

} // namespace meshwright::cli
