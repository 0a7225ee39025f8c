// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/session/report_of.h"

#include <QString>

#include <memory>
#include <string>
#include <vector>

/// Reports of the examples, for tests.
namespace meshwright::tests {

inline sim::StudySource exampleSource(const std::string& name, std::vector<std::string> settings = {})
{
    const std::filesystem::path file = resourcesDirectory() / "examples" / (name + ".yaml");
    return {valueOf(readFile(file)), file.string(), std::move(settings)};
}

inline std::shared_ptr<const sim::Analysis> analysed(const sim::StudySource& source)
{
    static sim::Session session(valueOf(sim::defaultCatalogue()));
    return session.analyse(source);
}

inline sim::Report exampleReport(
    const std::string& name, std::vector<std::string> settings = {}, const sim::ReportChoices& choices = {})
{
    return sim::reportOf(*analysed(exampleSource(name, std::move(settings))), choices);
}

/// What a few steps of an example measured, verified.
inline sim::MeasuredTraining trainedExample(const std::string& name, std::vector<std::string> settings = {"train.steps=3"})
{
    const sim::StudySource source = exampleSource(name, std::move(settings));
    const Study study = valueOf(readStudy(source.text, source.file, source.settings));
    return sim::measuredTraining(valueOf(sim::trainStudy(study, {.verify = true}, {}, {})));
}

/// The blocks of one kind in a section.
template <typename Block>
std::vector<Block> blocksOf(const sim::Report& report, const char* section)
{
    std::vector<Block> found;
    if (const sim::ReportSection* one = report.findSection(section)) {
        for (const sim::ReportBlock& block : one->blocks) {
            if (const Block* match = std::get_if<Block>(&block))
                found.push_back(*match);
        }
    }
    return found;
}

} // namespace meshwright::tests
