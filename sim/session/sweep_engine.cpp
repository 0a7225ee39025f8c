// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/sweep_engine.h"

#include "core/study/document.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/sha256.h"
#include "core/support/version.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

namespace meshwright::sim {

namespace {

class PointSimulator {
public:
    PointSimulator(const SweepPlan& plan, Catalogue catalogue, const std::string& catalogueText)
        : m_text(plan.studyText)
        , m_file(plan.studyFile)
        , m_catalogue(std::move(catalogue))
        , m_model(fmt::format(
              "Meshwright {}, model of cost {}, catalogue {}\n", kVersion, kCostModelVersion, sha256Text(catalogueText)))
    {
    }

    std::string keyOf(const std::vector<std::string>& settings)
    {
        const auto study = readStudy(m_text, m_file, settings);
        std::string content = m_model;
        if (study) {
            content += writeStudy(*study);
            if (const auto* program = std::get_if<ProgramFile>(&study->model))
                content += "program " + digestOf(study->resolved(program->file));
            if (study->hardware && !study->hardware->profile.empty())
                content += "profile " + digestOf(study->resolved(study->hardware->profile));
        } else {
            content += m_text;
            for (const std::string& setting : settings)
                content += "\nset " + setting;
        }
        return sha256Text(content);
    }

    SweepOutcome outcomeOf(const std::vector<std::string>& settings) const
    {
        const auto study = readStudy(m_text, m_file, settings);
        if (!study)
            return refused(study.error());
        if (const Problems missing = checkFiles(*study); hasErrors(missing))
            return refused(missing);
        const auto simulated = simulateStudy(*study, m_catalogue);
        if (!simulated)
            return refused(simulated.error());
        const Simulation& s = simulated->simulation;
        SweepOutcome outcome;
        outcome.state = s.fits ? SweepState::Fits : SweepState::TooLarge;
        outcome.mesh = simulated->mesh.text();
        outcome.hardware = s.machine;
        outcome.devices = simulated->mesh.deviceCount();
        outcome.batch = std::max<std::int64_t>(1, study->batch);
        outcome.stepSeconds = s.stepSeconds;
        outcome.computeSeconds = s.computeSeconds;
        outcome.exposedSeconds = s.exposedSeconds;
        outcome.bubbleSeconds = s.bubbleSeconds;
        outcome.mfu = s.mfu;
        outcome.peakBytes = s.peakBytes;
        outcome.capacityBytes = s.capacityBytes;
        outcome.usableBytes = s.capacityBytes - s.reserveBytes;
        outcome.boundBy = s.boundBy.text();
        return outcome;
    }

private:
    static SweepOutcome refused(const Problems& problems)
    {
        const auto first = std::find_if(
            problems.begin(), problems.end(), [](const Problem& problem) { return problem.severity == Severity::Error; });
        const Problem& problem = first == problems.end() ? problems.front() : *first;
        SweepOutcome outcome;
        outcome.problem = problem.id;
        outcome.message = problem.message;
        outcome.fix = problem.fix;
        return outcome;
    }

    std::string digestOf(const std::filesystem::path& file)
    {
        const std::lock_guard lock(m_mutex);
        const auto [place, isNew] = m_digests.emplace(file.string(), std::string());
        if (isNew) {
            const auto text = readFile(file);
            place->second = text ? sha256Text(*text) : "unreadable";
        }
        return place->second;
    }

    std::string m_text;
    std::string m_file;
    Catalogue m_catalogue;
    std::string m_model;
    std::mutex m_mutex; ///< guards m_digests
    std::map<std::string, std::string> m_digests; ///< of files that studies name, by path
};

} // namespace

Result<SweepEngine> sweepEngine(const SweepPlan& plan)
{
    auto catalogue = defaultCatalogue();
    if (!catalogue)
        return catalogue.error();
    std::string model; // what points depend on besides their study
    for (const char* file : {"catalogue.json", "calibration.json"}) {
        const auto text = readFile(resourcesDirectory() / "hardware" / file);
        if (!text)
            return text.error();
        model += *text;
    }
    const auto simulator = std::make_shared<PointSimulator>(plan, *std::move(catalogue), model);
    return SweepEngine{[simulator](const std::vector<std::string>& settings) { return simulator->keyOf(settings); },
        [simulator](const std::vector<std::string>& settings) { return simulator->outcomeOf(settings); }};
}

Result<Done> takeStudy(SweepPlan& plan, StudySource source)
{
    StudyReading reading = readStudyInPart(source.text, source.file, source.settings);
    if (!reading.readable)
        return std::move(reading.problems);
    plan.studyText = std::move(source.text);
    plan.studyFile = source.file == "standard input" ? std::string() : std::move(source.file);
    plan.settings = std::move(source.settings);
    plan.name = std::move(reading.study.name);
    return Done{};
}

} // namespace meshwright::sim
