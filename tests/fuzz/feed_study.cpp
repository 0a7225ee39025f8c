// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/edit_text.h"
#include "core/study/fix_text.h"
#include "core/study/setting_path.h"
#include "core/study/study.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// A study's YAML or JSON: read, checked, fixed, written.
void feedStudy(std::string_view text)
{
    const StudyReading reading = readStudyInPart(text, "fuzz.yaml");
    if (!reading.readable)
        return;
    if (const auto fixed = fixedText(text, "fuzz.yaml"))
        require(parseDocument(fixed->text, "fuzz.yaml").readable, "a fixed study can be read");
    if (hasErrors(reading.problems))
        return;
    const auto again = readStudy(writeStudy(reading.study), "again.yaml");
    require(again.has_value(), "a study that is written can be read");
}

/// A setting on the first line, then the document that it is written into.
void feedSettings(std::string_view text)
{
    const std::string setting(takeLine(text));
    if (!parseSetting(setting))
        return;
    Document document = parseDocument(text, "fuzz.yaml");
    const std::vector<std::string> settings = {setting};
    const auto edited = editedText(text, "fuzz.yaml", settings);
    if (!edited || !document.readable)
        return;
    const Document again = parseDocument(edited->text, "fuzz.yaml");
    require(again.readable, "an edited document can be read");
    if (applySettings(document.root, settings).empty())
        require(sameContent(again.root, document.root), "an edited document is the one with the setting applied");
}

} // namespace meshwright::fuzz
