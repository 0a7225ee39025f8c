// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study.h"
#include "sim/session/launch_source.h"
#include "sim/session/study_machine.h"

#include "tests/fuzz/targets.h"

#include <algorithm>

namespace meshwright::fuzz {

/// A launch script or a TOML: read, planned on 64 devices, written as a study and read again.
void feedLaunch(std::string_view text)
{
    static const auto kCatalogue = sim::defaultCatalogue();
    require(kCatalogue.has_value(), "the catalogue is there");
    std::vector<std::string> notes;
    const auto source = sim::studySourceOf({std::string(text), "fuzz.sh", {"hardware=h100x64"}}, *kCatalogue, notes);
    if (!source) {
        require(std::ranges::none_of(
                    source.error(), [](const Problem& problem) { return problem.message.empty() || problem.fix.empty(); }),
            "what is refused is refused with a reason and a way out");
        return;
    }
    if (source->text != text) {
        const StudyReading reading = readStudyInPart(source->text, source->file, source->settings);
        require(reading.readable && reading.study.transformer() != nullptr, "a launch line becomes a study of a transformer");
    }
}

} // namespace meshwright::fuzz
