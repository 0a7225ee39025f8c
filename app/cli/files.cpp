// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/files.h"

#include "core/support/file.h"
#include "core/text/program_text.h"

namespace meshwright::cli {

Result<Program> readProgramFile(const std::string& file, ProgramPlaces* places)
{
    const auto text = readFile(file);
    if (!text)
        return text.error();
    return readProgram(*text, file == "-" ? "standard input" : file, nullptr, places);
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
