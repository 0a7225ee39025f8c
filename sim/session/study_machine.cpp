// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/study_machine.h"

#include "core/study/resolve.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/cost/stack.h"
#include "sim/hardware/fitting_choice.h"
#include "sim/hardware/hardware_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

Result<Catalogue> defaultCatalogue()
{
    return Catalogue::load(resourcesDirectory() / "hardware" / "catalogue.json");
}

namespace {

/// The machine that the study names, whole.
Result<Machine> namedMachine(const Study& study, const Catalogue& catalogue)
{
    if (study.hardware && !study.hardware->profile.empty())
        return readHardware(study.resolved(study.hardware->profile), catalogue);
    if (!study.hardware || study.hardware->chip.empty())
        return Problem{"MW1731", "the study names no hardware from the catalogue",
            "add `hardware: {chip: v5e, topology: [4, 2]}`, or name chips and how many: --hw h100x8", study.placeOf("hardware")};
    const sim::HardwareChoice choice{study.hardware->chip, study.hardware->topology, study.hardware->hosts.value_or(0),
        study.hardware->chipsPerHost.value_or(0), study.hardware->slices.value_or(0)};
    auto machine = buildMachine(catalogue, choice);
    if (machine)
        return machine;
    std::int64_t devices = 1;
    for (const MeshAxis& axis : phaseStudy(study, 0).mesh)
        devices *= axis.size;
    const auto fitting = fittingChoice(catalogue, choice, devices);
    Problems problems = machine.error();
    for (Problem& problem : problems) {
        if (problem.place.line == 0)
            problem.place = study.placeOf(problem.id == "MW1701" ? "hardware.chip" : "hardware");
        if (fitting)
            problem.fixSettings = hardwareSettings(choice, *fitting);
    }
    return problems;
}

/// The machine's axis of this name, or a problem.
Result<std::size_t> axisNamed(const Study& study, const Machine& machine, const std::string& name, const std::string& path)
{
    std::vector<std::string> names;
    for (const PhysicalAxis& axis : machine.topology.axes())
        names.push_back(axis.name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end())
        return static_cast<std::size_t>(found - names.begin());
    Problem problem{"MW1748", fmt::format("{} names axis \"{}\", which {} does not have", path, name, machine.text()),
        "it has " + join(names, ", "), study.placeOf(path)};
    if (const auto near = nearestName(name, names))
        problem.fixSettings = {fmt::format("{}={}", path, *near)};
    return problem;
}

/// Puts the study's faults on its machine. Problems: MW1746, MW1748, MW1749.
Problems addFaults(const Study& study, Machine& machine)
{
    Problems problems;
    const Topology& topology = machine.topology;
    const auto isThere = [&](std::int64_t device, const std::string& path) {
        if (device < machine.deviceCount())
            return true;
        problems.push_back({"MW1746",
            fmt::format("{} names device {}; {} has devices 0 to {}", path, device, machine.text(), machine.deviceCount() - 1),
            "name one of those", study.placeOf(path)});
        return false;
    };
    for (std::size_t i = 0; i < study.faults.slow.size(); ++i) {
        const FaultsChoice::Slow& slow = study.faults.slow[i];
        if (isThere(slow.device, fmt::format("faults.slow[{}].device", i)))
            machine.faults.devices.push_back({slow.device, slow.speed});
    }
    for (std::size_t i = 0; i < study.faults.links.size(); ++i) {
        const FaultsChoice::Link& link = study.faults.links[i];
        const std::string path = fmt::format("faults.links[{}]", i);
        const auto axis = axisNamed(study, machine, link.axis, path + ".axis");
        if (!axis)
            append(problems, axis.error());
        if (!isThere(link.device, path + ".device") || !axis)
            continue;
        const PhysicalAxis& along = topology.axes()[*axis];
        if (along.kind == AxisKind::Torus && !along.wraps && topology.coordinate(link.device, *axis) + 1 == along.length) {
            problems.push_back({"MW1749",
                fmt::format("{}: device {} is the last along {}, which does not wrap: it has no link to a next one", path,
                    link.device, link.axis),
                "name the device before it; the link is that from a device to the next", study.placeOf(path)});
            continue;
        }
        machine.faults.links.push_back({link.device, *axis, link.share});
    }
    return problems;
}

/// Gives the network between hosts the study's leaf switches. Problems: MW1750.
Problems addLeaves(const Study& study, Machine& machine)
{
    const NetworkChoice& network = study.network;
    if (!network.oversubscription && !network.perLeaf)
        return {};
    const PhysicalAxis* hosts = machine.topology.network();
    const char* key = network.oversubscription ? "network.oversubscription" : "network.per_leaf";
    if (hosts == nullptr)
        return {{"MW1750", fmt::format("{}: {} has no network between hosts", key, machine.text()),
            "leave it out, or simulate several hosts", study.placeOf(key)}};
    PhysicalAxis leaves = *hosts;
    leaves.oversubscription = network.oversubscription.value_or(leaves.oversubscription);
    leaves.perLeaf = network.perLeaf.value_or(leaves.perLeaf);
    machine.topology = machine.topology.withNetwork(leaves);
    return {};
}

} // namespace

Result<Machine> machineOf(const Study& study, const Catalogue& catalogue)
{
    auto machine = namedMachine(study, catalogue);
    if (!machine)
        return machine;
    Problems problems = addLeaves(study, *machine);
    append(problems, addFaults(study, *machine));
    if (!problems.empty())
        return problems;
    return machine;
}

std::string stackAssumption(const Study& study, const Chip& chip)
{
    const Result<Calibration>& calibration = defaultCalibration();
    const char* chipClass = chipClassName(chip.chipClass);
    if (!study.stack.empty())
        return study.stack == "plain"
            ? fmt::format("no software stack is given: the constants are the defaults of a {}", chipClass)
            : fmt::format("the software is {}", study.stack);
    const std::string usual(calibration ? calibration->usualStack(chip) : std::string_view());
    return usual.empty() ? fmt::format("no software stack is given (--stack): the constants are the defaults of a {}", chipClass)
                         : fmt::format("the software is {}, as usual on a {}; --stack names another", usual, chipClass);
}

NetworkOptions networkOf(const Study& study)
{
    NetworkOptions options;
    options.fidelity = findFidelity(study.network.fidelity).value_or(Fidelity::Fluid);
    for (const auto& [kind, algorithm] : study.network.algorithms)
        options.algorithms.merge(valueOf(parseAlgorithms(kind.empty() ? algorithm : kind + "=" + algorithm)));
    return options;
}

} // namespace meshwright::sim
