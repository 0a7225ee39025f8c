// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/program_study.h"

#include "core/study/document.h"
#include "core/study/yaml_text.h"
#include "core/text/program_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace meshwright {

namespace {

/// `mesh: {...}`, as a line; empty without a mesh.
std::string meshLine(const Mesh& mesh)
{
    std::string entries;
    for (const MeshAxis& axis : mesh.axes())
        entries += fmt::format("{}{}: {}", entries.empty() ? "" : ", ", keyText(axis.name), axis.size);
    const std::vector<DeviceId> order = mesh.deviceOrder();
    if (!std::is_sorted(order.begin(), order.end()))
        entries += fmt::format(", device_order: [{}]", fmt::join(order, ", "));
    return entries.empty() ? entries : fmt::format("mesh: {{{}}}\n", entries);
}

} // namespace

bool isProgramText(const std::string& file, std::string_view text)
{
    return file.ends_with(".mlir") || looksLikeProgram(text);
}

std::string entryFunctionOf(const Program& program)
{
    if (program.functions.size() == 1)
        return program.functions.front().name;
    return program.find("main") != nullptr ? "main" : std::string();
}

Result<std::string> programStudyText(const std::string& file, std::string_view text)
{
    if (file.empty() || file == "-" || file == "standard input")
        return Problem{"MW1492",
            "a program from standard input cannot stand in place of a study, which names its program by a file",
            "save the program, and name its file"};
    const std::filesystem::path path = file;
    Problems warnings; // told where the program is built
    const auto program = readProgram(text, file, &warnings);
    std::string model = inQuotes(path.filename().string());
    if (program && program->functions.size() > 1) {
        const std::string entry = entryFunctionOf(*program);
        model = fmt::format("{{file: {}{}}}", model, entry.empty() ? "" : ", function: " + inQuotes(entry));
    }
    std::string study = fmt::format("meshwright: 1\nname: {}\nmodel: {{program: {}}}\n", inQuotes(path.stem().string()), model);
    if (program && !program->meshes.empty())
        study += meshLine(program->meshes.front().mesh);
    return study;
}

} // namespace meshwright
