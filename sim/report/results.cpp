// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/results.h"

#include "core/support/counted.h"
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

Json header(const char* schema)
{
    return Json{{"schema", schema}, {"meshwright", kVersion}};
}

std::string dumped(const Json& json)
{
    return jsonText(json);
}

/// JSON has no infinities; what is not finite is null.
Json number(double value)
{
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json meshJson(const Mesh& mesh)
{
    Json axes = Json::array();
    for (const MeshAxis& axis : mesh.axes())
        axes.push_back({axis.name, axis.size});
    return axes;
}

/// Of a pipeline: which stage does it, or sends it.
void addStage(Json& entry, std::optional<std::size_t> stage)
{
    if (stage)
        entry["stage"] = *stage;
}

Json memoryJson(const std::vector<std::int64_t>& bytesByKind)
{
    Json json;
    for (std::size_t kind = 0; kind < bytesByKind.size(); ++kind)
        json[memoryKindName(static_cast<MemoryKind>(kind))] = bytesByKind[kind];
    return json;
}

Json proofObject(const Proof& proof)
{
    return Json{{"proved", proof.isProved()}, {"ops", proof.ops()}, {"devices", proof.devices},
        {"functions", proof.functions.size()}, {"obstacle", firstObstacle(proof)}};
}

/// Bytes that one device moves over its host's link in a step, in one direction.
std::int64_t movedBytes(const Simulation& s, bool toHost)
{
    std::int64_t bytes = 0;
    for (const SimulatedMove& move : s.moves)
        bytes += move.toHost == toHost ? move.bytes * move.count : 0;
    return bytes;
}

double moveSeconds(const Simulation& s)
{
    double seconds = 0.0;
    for (const SimulatedMove& move : s.moves)
        seconds += move.seconds;
    return seconds;
}

Json hostJson(const Simulation& s)
{
    return {{"bytes_per_device", s.hostBytes}, {"link_bytes_per_s", s.hostLinkBytesPerSecond},
        {"to_host_bytes", movedBytes(s, true)}, {"to_device_bytes", movedBytes(s, false)}, {"time_s", moveSeconds(s)},
        {"exposed_s", s.hostExposedSeconds}};
}

Json simulationObject(const SimulatedStudy& study)
{
    const Simulation& s = study.simulation;
    Json json = header("meshwright.simulation/1");
    json["study"] = study.name;
    json["file"] = study.file;
    json["mesh"] = meshJson(study.mesh);
    json["hardware"] = s.machine;
    json["collective_cost"] = study.collectiveCost;
    json["step_time_s"] = s.stepSeconds;
    json["call_s"] = s.callSeconds;
    json["compute_s"] = s.computeSeconds;
    json["launch_wait_s"] = s.launchSeconds;
    json["exposed_communication_s"] = s.exposedSeconds;
    json["communication_s"] = s.collectiveSeconds;
    json["contention_s"] = s.contentionSeconds;
    json["bubble_s"] = s.bubbleSeconds;
    json["stack_s"] = s.stackSeconds;
    json["model_flops"] = s.modelFlops;
    json["mfu"] = s.mfu;
    json["peak_flops_per_s"] = s.peakFlopsPerSecond;
    json["peak_flops_of"] = s.peakHow;
    json["peak_bytes_per_device"] = s.peakBytes;
    json["capacity_bytes"] = s.capacityBytes;
    json["reserve_bytes"] = s.reserveBytes;
    json["fits"] = s.fits;
    json["bound_by"] = s.boundBy.text();
    json["collectives"] = Json::array();
    for (const SimulatedCollective& collective : s.collectives) {
        Json entry = useJson(collective.use);
        entry["wire_bytes"] = collective.wireBytes;
        entry["time_s"] = collective.seconds;
        entry["alone_s"] = collective.aloneSecondsPerCall * static_cast<double>(collective.use.count);
        entry["exposed_s"] = collective.exposedSeconds;
        entry["algorithm"] = collective.algorithm;
        entry["formula"] = collective.formula;
        addStage(entry, collective.stage);
        json["collectives"].push_back(std::move(entry));
    }
    if (!s.otherStages.empty()) {
        json["other_stages"] = Json::array();
        for (const StageUse& other : s.otherStages) {
            Json entry = useJson(other.use);
            addStage(entry, other.stage);
            json["other_stages"].push_back(std::move(entry));
        }
    }
    if (s.hostLinkBytesPerSecond > 0.0)
        json["host"] = hostJson(s);
    json["arrays"] = Json::array();
    for (const ComparedArray& array : study.arrays) {
        json["arrays"].push_back(
            {{"name", array.name}, {"type", fmt::format("{}[{}]", array.dtype, fmt::join(array.shape.value_or(Shape{}), ","))},
                {"spec", array.spec}, {"bytes_per_device", array.pieceBytes.value_or(0)}});
        if (!array.stages.empty())
            json["arrays"].back()["stages"] = array.stages;
    }
    json["memory_at_peak"] = Json::array();
    for (const LiveValue& value : study.liveAtPeak)
        json["memory_at_peak"].push_back({{"name", value.name}, {"kind", memoryKindName(value.kind)}, {"bytes", value.bytes}});
    json["memory"] = Json::array();
    for (const MemoryPoint& point : s.memory) {
        Json entry = memoryJson(point.bytesByKind);
        entry["time_s"] = point.seconds;
        if (s.hostLinkBytesPerSecond > 0.0)
            entry["host"] = point.hostBytes;
        json["memory"].push_back(std::move(entry));
    }
    json["assumptions"] = s.assumptions;
    if (study.proof)
        json["proof"] = proofObject(*study.proof);
    json["simulator"] = {{"wall_s", study.wallSeconds}, {"events", s.events}, {"classes", s.classes}};
    return json;
}

std::string percent(double part, double whole)
{
    return whole > 0.0 ? fmt::format("{:.0f} %", 100.0 * part / whole) : "0 %";
}

std::string headline(const SimulatedStudy& study)
{
    const Simulation& s = study.simulation;
    return fmt::format("{} on {}, mesh {}\n", titleOf(study), s.machine, study.mesh.text());
}

/// A name without the numbers of layers and residuals: "act.layers.*.ffn", of a run of layers too.
std::string withoutNumbers(const std::string& name)
{
    std::vector<std::string> parts = split(name, '.');
    for (std::string& part : parts) {
        if (!part.empty() && part.find_first_not_of("0123456789-") == std::string::npos)
            part = "*";
    }
    return join(parts, ".");
}

/// Those of layers that are alike added up.
std::vector<SimulatedCollective> byLayer(const std::vector<SimulatedCollective>& all)
{
    std::vector<SimulatedCollective> rows;
    for (const SimulatedCollective& collective : all) {
        const std::string value = withoutNumbers(collective.use.cause.value);
        const auto same = std::find_if(rows.begin(), rows.end(), [&](const SimulatedCollective& row) {
            return row.use.kind == collective.use.kind && row.use.axes == collective.use.axes
                && row.use.phase == collective.use.phase && row.use.payloadBytes == collective.use.payloadBytes
                && row.use.cause.value == value;
        });
        if (same == rows.end()) {
            rows.push_back(collective);
            rows.back().use.cause.value = value;
            continue;
        }
        same->use.count += collective.use.count;
        same->seconds += collective.seconds;
        same->exposedSeconds += collective.exposedSeconds;
    }
    return rows;
}

std::string collectiveTable(const Simulation& simulation)
{
    constexpr std::size_t kMostRows = 60;
    using Align = TextTable::Align;
    const bool isLong = simulation.collectives.size() > kMostRows;
    TextTable table({{"collective"}, {"axes"}, {"phase"}, {"calls", Align::Right}, {"bytes/device", Align::Right},
        {"time", Align::Right}, {"exposed", Align::Right}, {"value"}});
    for (const SimulatedCollective& c : isLong ? byLayer(simulation.collectives) : simulation.collectives)
        table.addRow({opName(c.use.kind), c.use.axes, phaseName(c.use.phase), fmt::format("{}", c.use.count),
            formatBytes(c.use.payloadBytes), formatSeconds(c.seconds), formatSeconds(c.exposedSeconds), c.use.cause.value});
    return table.text(2)
        + (isLong ? fmt::format("  {} collectives, those of layers that are alike in one row; --format json lists each\n",
               simulation.collectives.size())
                  : std::string());
}

} // namespace

std::string titleOf(const SimulatedStudy& study)
{
    if (!study.name.empty())
        return study.name;
    return study.file.empty() ? std::string("a study") : std::filesystem::path(study.file).filename().string();
}

std::string proofText(const Proof& proof)
{
    const std::string line = fmt::format("{} ({})", meshwright::headline(proof), formatSeconds(proof.seconds));
    return proof.isProved() ? line : fmt::format("{}: {}; `meshwright prove` shows it", line, firstObstacle(proof));
}

std::string proofJson(const Proof& proof)
{
    return dumped(proofObject(proof));
}

Json useJson(const CollectiveUse& use)
{
    return Json{{"op", opName(use.kind)}, {"axes", use.axes}, {"group_size", use.groupSize}, {"count", use.count},
        {"bytes_per_device", use.payloadBytes}, {"phase", phaseName(use.phase)},
        {"cause",
            {{"value", use.cause.value}, {"op", use.cause.op}, {"reason", use.cause.reason},
                {"annotation", use.cause.annotation}}}};
}

TextTable collectivesTable(const std::vector<CollectiveUse>& uses)
{
    using Align = TextTable::Align;
    TextTable table({{"collective"}, {"axes"}, {"calls", Align::Right}, {"bytes/device", Align::Right}, {"value"}, {"because"}});
    for (const CollectiveUse& use : uses)
        table.addRow({opName(use.kind), use.axes, fmt::format("{}", use.count), formatBytes(use.payloadBytes), use.cause.value,
            use.cause.reason});
    return table;
}

std::string simulationJson(const std::vector<SimulatedStudy>& studies)
{
    if (studies.size() == 1)
        return dumped(simulationObject(studies.front()));
    Json all = Json::array();
    for (const SimulatedStudy& study : studies)
        all.push_back(simulationObject(study));
    return dumped(all);
}

std::string simulationText(const SimulatedStudy& study)
{
    const Simulation& s = study.simulation;
    std::string text = headline(study);
    text += fmt::format("  step {}  =  compute {} ({})  +  exposed communication {} ({})\n", formatSeconds(s.stepSeconds),
        formatSeconds(s.computeSeconds), percent(s.computeSeconds, s.stepSeconds), formatSeconds(s.exposedSeconds),
        percent(s.exposedSeconds, s.stepSeconds));
    if (s.bubbleSeconds > 0.0 && !s.collectives.empty())
        text += fmt::format(
            "  and waiting for other stages {} ({})\n", formatSeconds(s.bubbleSeconds), percent(s.bubbleSeconds, s.stepSeconds));
    if (s.launchSeconds > 0.01 * s.stepSeconds)
        text += fmt::format("  and waiting for the host to start kernels {} ({})\n", formatSeconds(s.launchSeconds),
            percent(s.launchSeconds, s.stepSeconds));
    if (s.stackSeconds > 0.0)
        text += fmt::format("  and the stack's {} ({}): between steps, and for slow hosts that are to be expected\n",
            formatSeconds(s.stackSeconds), percent(s.stackSeconds, s.stepSeconds));
    if (s.contentionSeconds > 1e-9)
        text += fmt::format("  collectives take {} longer than each alone on whole links\n", formatSeconds(s.contentionSeconds));
    if (s.callSeconds > s.stepSeconds)
        text += fmt::format("  one call from the host, waited for: {}\n", formatSeconds(s.callSeconds));
    text += fmt::format("  bound by {}; model FLOPs utilisation {:.1f} % of {}\n", s.boundBy.text(), 100.0 * s.mfu, s.peakHow);
    text += fmt::format("  memory {} of {} a device ({} kept for the runtime): {}\n", formatBytes(s.peakBytes),
        formatBytes(s.capacityBytes), formatBytes(s.reserveBytes), s.fits ? "fits" : "DOES NOT FIT");
    if (s.hostLinkBytesPerSecond > 0.0)
        text += fmt::format("  host memory {} a device; {} go there and {} come back over {}/s, and the step waits {} for that\n",
            formatBytes(s.hostBytes), formatBytes(movedBytes(s, true)), formatBytes(movedBytes(s, false)),
            formatBytes(s.hostLinkBytesPerSecond), formatSeconds(s.hostExposedSeconds));
    if (study.proof)
        text += fmt::format("  {}\n", proofText(*study.proof));
    if (!s.fits)
        text += "  `meshwright search` finds layouts that fit; `meshwright report` tries changes to this one\n";
    text += s.collectives.empty() ? "  no collectives\n" : "\n" + collectiveTable(s);
    text += "\n  live at the peak:";
    for (std::size_t i = 0; i < study.liveAtPeak.size() && i < 5; ++i)
        text += fmt::format("{} {} {}", i == 0 ? "" : ",", study.liveAtPeak[i].name, formatBytes(study.liveAtPeak[i].bytes));
    if (study.liveAtPeak.size() > 5)
        text += fmt::format(" and {} more", study.liveAtPeak.size() - 5);
    text += "\n";
    for (const std::string& assumption : s.assumptions)
        text += "  assumed: " + assumption + "\n";
    return text;
}

std::string simulationTable(const std::vector<SimulatedStudy>& studies)
{
    using Align = TextTable::Align;
    TextTable table({{"study"}, {"mesh"}, {"hardware"}, {"step", Align::Right}, {"compute", Align::Right},
        {"exposed", Align::Right}, {"MFU", Align::Right}, {"memory", Align::Right}, {"fits"}, {"bound by"}});
    for (const SimulatedStudy& study : studies) {
        const Simulation& s = study.simulation;
        table.addRow({titleOf(study), study.mesh.text(), s.machine, formatSeconds(s.stepSeconds), formatSeconds(s.computeSeconds),
            formatSeconds(s.exposedSeconds), fmt::format("{:.1f} %", 100.0 * s.mfu), formatBytes(s.peakBytes),
            s.fits ? "yes" : "NO", s.boundBy.text()});
    }
    return table.text();
}

std::string simulationCsv(const std::vector<SimulatedStudy>& studies)
{
    std::string csv = "study,file,mesh,hardware,step_time_s,compute_s,exposed_communication_s,bubble_s,mfu,peak_bytes_per_device,"
                      "capacity_bytes,fits,bound_by\n";
    for (const SimulatedStudy& study : studies) {
        const Simulation& s = study.simulation;
        csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csvCell(study.name), csvCell(study.file),
            csvCell(study.mesh.text()), csvCell(s.machine), s.stepSeconds, s.computeSeconds, s.exposedSeconds, s.bubbleSeconds,
            s.mfu, s.peakBytes, s.capacityBytes, s.fits, csvCell(s.boundBy.text()));
    }
    return csv;
}

std::string trainingJson(const TrainingResult& result)
{
    Json json = header("meshwright.training/1");
    json["losses"] = Json::array();
    for (const double loss : result.losses)
        json["losses"].push_back(number(loss));
    json["metrics"] = Json::object();
    json["metrics"]["accuracy"] = Json::array();
    for (const double accuracy : result.accuracies)
        json["metrics"]["accuracy"].push_back(number(accuracy));
    if (result.heldOutAccuracy)
        json["metrics"]["held_out_accuracy"] = number(*result.heldOutAccuracy);
    json["metrics"]["held_out_examples"] = result.heldOutExamples;
    if (!result.heldOut.empty()) {
        json["metrics"]["held_out"] = Json::array();
        for (const HeldOutMeasure& measured : result.heldOut)
            json["metrics"]["held_out"].push_back(
                {{"step", measured.step}, {"accuracy", number(measured.accuracy)}, {"loss", number(measured.loss)}});
    }
    json["step_time_s"]
        = {{"median", result.stepSeconds.median}, {"min", result.stepSeconds.min}, {"max", result.stepSeconds.max}};
    json["samples_per_s"] = result.samplesPerSecond;
    json["devices"] = result.devices;
    json["engine"] = engineName(result.engine);
    json["peak_bytes_per_device"] = result.stepArenaBytes;
    json["init_bytes_per_device"] = result.initArenaBytes;
    json["most_bytes_per_device"] = result.mostBytes.bytes;
    json["interrupted"] = result.interrupted;
    json["first_step"] = result.firstStep;
    json["checkpoint"] = result.checkpoint ? Json(result.checkpoint->string()) : Json(nullptr);
    json["collectives"] = Json::array();
    json["phases"] = Json::array();
    for (const PhaseResult& phase : result.phases) {
        json["phases"].push_back(
            {{"mesh", phase.mesh}, {"steps", phase.steps}, {"arena_bytes", phase.arenaBytes}, {"moved_bytes", phase.movedBytes}});
        for (const CountedCollective& counted : phase.collectives) {
            Json entry = useJson(counted.use);
            entry["mesh"] = phase.mesh;
            entry["counted_calls"] = counted.calls;
            entry["counted_bytes_per_device"] = counted.totalPayloadBytes;
            addStage(entry, counted.stage);
            json["collectives"].push_back(std::move(entry));
        }
    }
    if (result.proof)
        json["proof"] = proofObject(*result.proof);
    if (result.verification && !result.verification->checkedSteps.empty()) {
        const Verification& v = *result.verification;
        Json tensors = Json::array();
        for (const VerifiedTensor& tensor : v.tensors)
            tensors.push_back({{"name", tensor.name}, {"error", number(tensor.shardedError)},
                {"unsharded_error", number(tensor.unshardedError)}, {"tolerance", number(tensor.tolerance)},
                {"scale", number(tensor.scale)}, {"passed", tensor.passed}});
        json["verify"] = {{"verdict",
                              !v.passed                ? "different"
                                  : v.provesAnything() ? "equal"
                                                       : "nothing proved"},
            {"max_abs_error", number(v.maxAbsError())}, {"max_rel_error", number(v.maxRelError())},
            {"checked_steps", v.checkedSteps}, {"tensors", std::move(tensors)}};
    }
    return dumped(json);
}

std::string metricsLine(const TrainingProgress& progress)
{
    Json json = {{"schema", "meshwright.metrics/1"}, {"step", progress.step}, {"loss", number(progress.loss)},
        {"accuracy", number(progress.accuracy)}, {"learning_rate", number(progress.learningRate)}};
    if (progress.gradientNorm)
        json["grad_norm"] = number(*progress.gradientNorm);
    if (progress.lossScale) {
        json["loss_scale"] = number(*progress.lossScale);
        json["skipped"] = progress.skipped;
    }
    if (progress.heldOut) {
        json["held_out_accuracy"] = number(progress.heldOut->accuracy);
        json["held_out_loss"] = number(progress.heldOut->loss);
    }
    json["measured"] = {{"samples_per_s", number(progress.samplesPerSecond)}};
    return jsonLine(json) + "\n";
}

std::string trainingText(const TrainingResult& result)
{
    std::string text;
    std::int64_t steps = 0;
    for (const PhaseResult& phase : result.phases)
        steps += phase.steps;
    text += fmt::format("{}{} on {}{}", result.interrupted ? "interrupted after " : "", counted(steps, "step"),
        counted(result.devices, "device"), result.engine == EngineKind::Fibers ? " (fibers)" : "");
    if (!result.losses.empty())
        text += fmt::format(": loss {:.6g} -> {:.6g}", result.losses.front(), result.losses.back());
    if (result.heldOutAccuracy)
        text += fmt::format(", {:.1f} % of {} held-out examples right", 100.0 * *result.heldOutAccuracy, result.heldOutExamples);
    if (result.skippedSteps > 0)
        text += fmt::format("; {} steps left out, whose gradients were not finite", result.skippedSteps);
    text += '\n';
    if (steps > 0)
        text += fmt::format("step {} (median; {} to {}), {} samples/s, ", formatSeconds(result.stepSeconds.median),
            formatSeconds(result.stepSeconds.min), formatSeconds(result.stepSeconds.max), formatCount(result.samplesPerSecond));
    text += fmt::format("{} a device", formatBytes(result.stepArenaBytes));
    if (result.mostBytes.bytes > result.stepArenaBytes)
        text += fmt::format(" for a step, {} at most{}", formatBytes(result.mostBytes.bytes),
            result.mostBytes.firstBytes > 0
                ? fmt::format(" (while \"{}\" takes over the arrays of \"{}\")", result.mostBytes.second, result.mostBytes.first)
                : std::string(" by the plan"));
    text += '\n';

    using Align = TextTable::Align;
    for (const PhaseResult& phase : result.phases) {
        text += fmt::format("\n{} ({} steps{})\n", phase.mesh, phase.steps,
            phase.movedBytes > 0 ? fmt::format(", {} moved between devices to get here", formatBytes(phase.movedBytes)) : "");
        TextTable table({{"collective"}, {"axes"}, {"phase"}, {"calls/step", Align::Right}, {"bytes/device", Align::Right},
            {"value"}, {"because"}});
        for (const CountedCollective& counted : phase.collectives)
            table.addRow(
                {opName(counted.use.kind), counted.use.axes, phaseName(counted.use.phase), fmt::format("{}", counted.use.count),
                    formatBytes(counted.use.payloadBytes), counted.use.cause.value, counted.use.cause.reason});
        text += table.rowCount() == 0 ? "  no collectives\n" : table.text(2);
    }
    if (result.proof)
        text += fmt::format("\n{}\n", proofText(*result.proof));
    if (result.verification) {
        const Verification& v = *result.verification;
        if (v.checkedSteps.empty())
            return text + "\nnot verified: the run ended before the first step that is checked\n";
        text += fmt::format("\nverified against one device at {}: {}\n", counted(v.checkedSteps.size(), "step"), v.text());
        for (const VerifiedTensor& tensor : v.tensors) {
            if (!tensor.passed)
                text += fmt::format("  {}: error {:.3e}, allowed {:.3e}{}\n", tensor.name, tensor.shardedError, tensor.tolerance,
                    tensor.shardedError <= tensor.tolerance
                        ? fmt::format(", but its update is {:.0f} % of the update on one device", 100.0 * tensor.change)
                        : std::string());
        }
    }
    return text;
}

} // namespace meshwright::sim
