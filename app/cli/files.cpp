// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/files.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "core/text/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace meshwright::cli {

Result<Program> readProgramFile(const std::string& file, Output& output, ProgramPlaces* places)
{
    const auto text = readFile(file);
    if (!text)
        return text.error();
    Problems warnings;
    auto program = readProgram(*text, file == "-" ? "standard input" : file, &warnings, places);
    for (const Problem& warning : warnings)
        output.narrate(describe(warning));
    return program;
}

bool isProgramText(const std::string& file, std::string_view text)
{
    if (file.ends_with(".mlir"))
        return true;
    while (!text.empty()) {
        const std::string_view line = trimmed(text.substr(0, text.find('\n')));
        if (!line.empty() && !line.starts_with("//") && !line.starts_with('#'))
            return line.starts_with("module") || line.starts_with("func.func") || line.starts_with("sdy.mesh")
                || line.starts_with("\"builtin.module\"");
        text.remove_prefix(std::min(text.size(), text.find('\n') == std::string_view::npos ? text.size() : text.find('\n') + 1));
    }
    return false;
}

Result<Format> formatOfFile(const std::string& file, bool formatGiven, Format asked, std::span<const Format> allowed)
{
    if (formatGiven || file.empty() || file == "-")
        return asked;
    std::string ending = std::filesystem::path(file).extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(),
        [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
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
    if (const auto written = writeFileAtomically(file, text); !written)
        return fail(written.error(), output);
    output.narrate("wrote " + file);
    return kExitOk;
}

} // namespace meshwright::cli
