// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/study_file.h"

#include "app/terminal/overwrites.h"
#include "core/support/file.h"
#include "sim/plan/launch_line.h"
#include "sim/session/launch_source.h"
#include "sim/session/study_machine.h"

#include <utility>

namespace meshwright::cli {

namespace {

/// The source, unless the verb is to write a file that the study names.
Result<sim::StudySource> keepingInputs(sim::StudySource source, const Output& output)
{
    if (output.writes.empty())
        return source;
    const StudyReading reading = readStudyInPart(source.text, source.file, source.settings);
    if (Problems lost = overwrites(output.writes, reading.study); !lost.empty())
        return lost;
    return source;
}

} // namespace

Result<sim::StudySource> sourceOf(sim::StudySource given, const Output& output, Problems* warnings)
{
    if (!sim::isLaunchText(given.file, given.text))
        return keepingInputs(std::move(given), output);
    const auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return catalogue.error();
    std::vector<std::string> notes;
    auto source = sim::studySourceOf(std::move(given), *catalogue, notes, warnings);
    if (source) {
        for (const std::string& note : notes)
            output.narrate(note);
        return keepingInputs(*std::move(source), output);
    }
    return source;
}

Result<sim::StudySource> readSource(const std::string& file, std::vector<std::string> settings, const Output& output)
{
    auto text = readFile(file);
    if (!text)
        return text.error();
    if (Problems lost = file == "-" ? Problems{} : overwrites(output.writes, file, "the study"); !lost.empty())
        return lost;
    return sourceOf({*std::move(text), file == "-" ? std::string("standard input") : file, std::move(settings)}, output);
}

Result<Study> readStudyFile(const std::string& file, std::vector<std::string> settings, const Output& output, Problems* warnings)
{
    const auto source = readSource(file, std::move(settings), output);
    if (!source)
        return source.error();
    StudyReading reading = readStudyInPart(source->text, source->file, source->settings);
    if (hasErrors(reading.problems))
        return std::move(reading.problems);
    if (warnings != nullptr)
        *warnings = std::move(reading.problems);
    if (Problems missing = checkFiles(reading.study); !missing.empty())
        return missing;
    return std::move(reading.study);
}

} // namespace meshwright::cli
