// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/launch_source.h"

#include "core/study/program_study.h"
#include "sim/cost/stack.h"
#include "sim/hardware/hardware_name.h"
#include "sim/plan/launch_plan.h"
#include "sim/session/search_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace meshwright::sim {

namespace {

/// The value of the last such setting; empty: there is none.
std::string valueOfSetting(const std::vector<std::string>& settings, std::string_view path)
{
    std::string value;
    for (const std::string& setting : settings) {
        if (setting.size() > path.size() && setting.starts_with(path) && setting[path.size()] == '=')
            value = setting.substr(path.size() + 1);
    }
    return value;
}

void eraseSetting(std::vector<std::string>& settings, std::string_view path)
{
    std::erase_if(settings, [&](const std::string& setting) {
        return setting.size() > path.size() && setting.starts_with(path) && setting[path.size()] == '=';
    });
}

/// The one machine that is asked for; a chip without a count is as many as the line starts.
Result<SearchMachine> machineFor(const LaunchLine& launch, const std::vector<std::string>& settings, const Place& place,
    const Catalogue& catalogue, const Calibration& calibration, std::vector<std::string>& notes)
{
    const std::string given = valueOfSetting(settings, "hardware");
    const std::string& hardware = given.empty() ? launch.hardware : given;
    if (hardware.empty())
        return Problem{"MW1494", "a launch line does not say which chips it runs on",
            fmt::format("add --set hardware=h100x{0}, or --hw h100x{0}", launch.devices.value_or(64)), place};
    SearchWords words;
    words.hardware = {hardware};
    words.stack = valueOfSetting(settings, "stack");
    if (words.stack.empty())
        words.stack = stackOf(launch);
    const auto named = readMachineName(catalogue, hardware);
    if (named && !named->chips && !launch.devices)
        return Problem{
            "MW1494", "neither the line nor the machine's name says how many chips", fmt::format("write {}x64", hardware), place};
    if (named && !named->chips)
        words.chips = std::to_string(std::max<std::int64_t>(1, *launch.devices / named->match.chip->devicesPerChip));
    auto machines = machinesOf(words, catalogue, calibration, notes);
    if (!machines)
        return machines.error();
    return std::move(machines->front());
}

} // namespace

Result<StudySource> studySourceOf(
    StudySource given, const Catalogue& catalogue, std::vector<std::string>& notes, Problems* warnings)
{
    if (isProgramText(given.file, given.text) || !isLaunchText(given.file, given.text))
        return given;
    const std::string file = given.file.empty() ? std::string("standard input") : given.file;
    const auto launch = readLaunchLine(file, given.text);
    if (!launch)
        return launch.error();
    const Result<Calibration>& calibration = defaultCalibration();
    if (!calibration)
        return calibration.error();
    const auto machine = machineFor(
        *launch, given.settings, Place{file, launch->line, launch->line > 0 ? 1 : 0, {}}, catalogue, *calibration, notes);
    if (!machine)
        return machine.error();
    const auto launched = planOf(*launch, file, *machine, valueOfSetting(given.settings, "model.transformer.config"));
    if (!launched)
        return launched.error();
    const auto text = studyText(launched->plan, launched->work, *machine);
    if (!text)
        return inFile(text.error(), file);
    given.text = fmt::format("{}a launch line\n{}", kMadeStudy, *text);
    if (!launched->settings.empty()) {
        const auto study = readStudy(given.text, file, launched->settings);
        if (!study)
            return study.error();
        given.text = fmt::format("{}a launch line\n{}", kMadeStudy, writeStudy(*study));
    }
    notes.insert(notes.end(), launched->notes.begin(), launched->notes.end());
    for (const Problem& warning : launched->warnings) {
        if (warnings != nullptr)
            warnings->push_back(warning);
        else
            notes.push_back(warning.message);
    }
    for (const char* said : {"hardware", "stack", "model.transformer.config"})
        eraseSetting(given.settings, said);
    return given;
}

} // namespace meshwright::sim
