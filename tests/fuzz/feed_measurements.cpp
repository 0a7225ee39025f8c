// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/calibrate/host_profile.h"
#include "sim/calibrate/nccl_log.h"
#include "sim/hardware/hardware_file.h"
#include "sim/sweep/sweep_file.h"
#include "sim/validate/validate.h"

#include "tests/fuzz/targets.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace meshwright::fuzz {

/// What nccl-tests print, as text or JSON: read, fitted, written as a machine.
void feedNcclLog(std::string_view text)
{
    const auto log = sim::parseNcclLog(text, "all_reduce_perf.txt");
    if (!log)
        return;
    require(log->ranks >= 2 && !log->points.empty(), "a log has ranks and points");
    require(std::ranges::is_sorted(log->points, {}, &sim::NcclPoint::bytes), "points rise");
    const sim::NcclFit fit = sim::fitNccl(*log);
    require(std::isfinite(fit.latencySeconds) && std::isfinite(fit.busBytesPerSecond), "a fit is finite");
    static const auto kCatalogue = sim::Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    require(kCatalogue.has_value(), "the catalogue is there");
    const auto profile = sim::ncclProfileJson({*log}, "h100", *kCatalogue);
    require(profile && nlohmann::json::accept(*profile), "a profile is JSON");
    require(!sim::ncclText({*log}).empty(), "a log can be told of");
}

/// A computer as `calibrate` measured it: read, written and read again.
void feedHostProfile(std::string_view text)
{
    const auto profile = sim::parseHostProfile(text, "fuzz.json");
    if (!profile)
        return;
    const std::string written = sim::hostProfileJson(*profile);
    const auto again = sim::parseHostProfile(written, "again.json");
    require(again.has_value(), "a profile that was written can be read");
    require(sim::hostProfileJson(*again) == written, "a profile is written as it was read");
}

/// Published records: read, predicted, summed up.
void feedRecords(std::string_view text)
{
    static const auto kCatalogue = sim::Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    static const auto kCalibration = sim::Calibration::load(resourcesDirectory() / "hardware" / "calibration.json");
    require(kCatalogue.has_value() && kCalibration.has_value(), "the catalogue and its constants are there");
    const auto records = sim::parseRecords(text, "fuzz.json");
    if (!records)
        return;
    // Programs have targets of their own; half of the steps have none.
    const sim::StepSimulator simulate
        = [](const sim::StepCase& step, const sim::TrainingPlan& plan) -> Result<sim::SimulatedStep> {
        if (step.plans.size() % 2 == 0)
            return Problem{"", "not simulated"};
        return sim::SimulatedStep{.seconds = plan.work.microbatch, .fits = true};
    };
    const sim::FileValidation file = sim::validateRecords(*records, "fuzz.json", *kCatalogue, *kCalibration, simulate);
    require(file.records == records->size(), "every record is counted");
    require(file.scored + file.flagged + file.fitted + file.skipped.size() == file.records,
        "a record is scored or it is said why not");
}

/// A sweep that is written down.
void feedSweep(std::string_view text)
{
    const bool meant = sim::isSweepFile(text);
    const auto sweep = sim::readSweepFile(text, "fuzz.yaml");
    if (!sweep)
        return;
    require(meant, "what can be read as a sweep is meant to be one");
    sim::SweepPlan plan;
    plan.settings = sweep->settings;
    plan.parameters = sweep->parameters;
    if (!sim::checkPlan(plan).empty())
        return;
    const std::int64_t points = plan.pointCount();
    require(points >= 1, "a sweep has points");
    for (const std::int64_t point : {std::int64_t{0}, points - 1})
        require(plan.settingsAt(point).size() >= plan.settings.size(), "a point has the settings of all");
}

/// A machine of the user's own.
void feedHardware(std::string_view text)
{
    static const auto kCatalogue = sim::Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
    require(kCatalogue.has_value(), "the catalogue is there");
    const auto machine = sim::parseHardware(text, "fuzz.yaml", *kCatalogue);
    if (!machine)
        return;
    require(machine->deviceCount() >= 1, "a machine has devices");
    for (const sim::SlowDevice& slow : machine->faults.devices)
        require(slow.device >= 0 && slow.device < machine->deviceCount() && slow.speed > 0.0, "slow devices are there");
    for (const sim::LinkFault& link : machine->faults.links)
        require(link.device < machine->deviceCount() && link.axis < machine->topology.axes().size(), "faulty links are there");
    require(!machine->text().empty(), "a machine can be told of");
}

} // namespace meshwright::fuzz
