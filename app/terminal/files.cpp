// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/files.h"

#include "core/study/program_study.h"
#include "core/support/file.h"
#include "core/support/text.h"
#include "core/text/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace meshwright::cli {

namespace {

/// True when the first line that says something is `key: value`, as every study begins and no program does.
bool looksLikeStudy(std::string_view text)
{
    for (const std::string& line : split(text, '\n')) {
        const std::string_view said = trimmed(line);
        if (said.empty() || said.starts_with('#'))
            continue;
        const std::size_t colon = said.find(':');
        return colon != std::string_view::npos && colon > 0
            && std::all_of(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(colon),
                [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
    }
    return false;
}

} // namespace

Result<Program> readProgramFile(const std::string& file, Output& output, ProgramPlaces* places)
{
    const auto text = readFile(file);
    if (!text)
        return text.error();
    const std::string name = file == "-" ? "standard input" : file;
    if (!isProgramText(file, *text) && looksLikeStudy(*text))
        return Problem{"MW1320", "this is a study, not a program in StableHLO text",
            "`train`, `simulate`, `search`, `report` and `prove` take studies", Place{name, 1, 1, {}}};
    Problems warnings;
    auto program = readProgram(*text, name, &warnings, places);
    output.warn(warnings);
    if (program && program->functions.empty())
        return noFunction(name);
    return program;
}

Problem noFunction(const std::string& name)
{
    return {"MW1732", "the program has no function", "is the file truncated? A program has at least one func.func", Place{name}};
}

Result<Format> formatOfFile(const std::string& file, bool formatGiven, Format asked, std::span<const Format> allowed)
{
    if (formatGiven || file.empty() || file == "-")
        return asked;
    const std::string ending = lowerCase(std::filesystem::path(file).extension().string());
    std::vector<std::string> endings;
    for (const Format format : allowed) {
        const std::string name = formatName(format);
        endings.push_back(format == Format::Text ? ".txt" : format == Format::Junit ? ".xml" : "." + name);
        if (ending == endings.back())
            return format;
    }
    return Problem{"MW1903", fmt::format("-o: the ending of \"{}\" names no format", file),
        fmt::format("end it in one of {}, or add --format", join(endings, ", "))};
}

int writeResult(const std::string& text, const std::string& file, Output& output)
{
    if (file.empty() || file == "-") {
        output.result(text);
        return kExitOk;
    }
    if (const auto written = writeFileAtomically(file, text); !written) {
        output.result(text); // it took its time to be found
        return failAfterResult(written.error(), output);
    }
    output.narrate("wrote " + file);
    return kExitOk;
}

} // namespace meshwright::cli
