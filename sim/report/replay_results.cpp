// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/replay_results.h"

#include "core/program/op.h"
#include "core/support/escape.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace meshwright::sim {

namespace {

constexpr std::size_t kMostCollectives = 40; ///< of the table; JSON has all

double share(double part, double whole)
{
    return whole > 0.0 ? 100.0 * part / whole : 0.0;
}

} // namespace

std::string replayText(const ReplayedStep& step, const std::string& name)
{
    using Align = TextTable::Align;
    const Simulation& s = step.simulation;
    std::string text = fmt::format("{} on {}: {} ranks, {} nodes, {} collectives, {} messages\n", name, s.machine, step.ranks,
        step.nodes, step.collectives, step.messages);
    text += fmt::format("  step {}  =  compute {} ({:.0f} %)  +  exposed communication {} ({:.0f} %)\n",
        formatSeconds(s.stepSeconds), formatSeconds(s.computeSeconds), share(s.computeSeconds, s.stepSeconds),
        formatSeconds(s.exposedSeconds), share(s.exposedSeconds, s.stepSeconds));
    if (s.bubbleSeconds > 0.0)
        text += fmt::format("  and waiting for other ranks {} ({:.0f} %)\n", formatSeconds(s.bubbleSeconds),
            share(s.bubbleSeconds, s.stepSeconds));
    if (s.contentionSeconds > 1e-9)
        text += fmt::format("  collectives take {} longer than each alone on whole links\n", formatSeconds(s.contentionSeconds));
    text += fmt::format("  bound by {}\n", s.boundBy.text());
    std::vector<const SimulatedCollective*> longest;
    for (const SimulatedCollective& collective : s.collectives)
        longest.push_back(&collective);
    std::ranges::stable_sort(longest, std::greater{}, &SimulatedCollective::seconds);
    TextTable table({{"collective"}, {"ranks"}, {"calls", Align::Right}, {"bytes/device", Align::Right}, {"time", Align::Right},
        {"exposed", Align::Right}, {"node"}});
    for (std::size_t i = 0; i < std::min(longest.size(), kMostCollectives); ++i) {
        const SimulatedCollective& c = *longest[i];
        table.addRow({opName(c.use.kind), c.use.axes, fmt::format("{}", c.use.count), formatBytes(c.use.payloadBytes),
            formatSeconds(c.seconds), formatSeconds(c.exposedSeconds), c.use.cause.value});
    }
    text += longest.empty() ? "  no collectives\n" : "\n" + table.text(2);
    if (longest.size() > kMostCollectives)
        text += fmt::format("  and {} more\n", longest.size() - kMostCollectives);
    for (const std::string& assumption : s.assumptions)
        text += "  assumed: " + assumption + "\n";
    return text;
}

std::string replayJson(const ReplayedStep& step, const std::string& name, double wallSeconds)
{
    using Json = nlohmann::ordered_json;
    const Simulation& s = step.simulation;
    Json json{{"schema", "meshwright.replay/1"}, {"meshwright", kVersion}, {"traces", name}, {"hardware", s.machine},
        {"ranks", step.ranks}, {"nodes", step.nodes}, {"collective_calls", step.collectives}, {"messages", step.messages},
        {"step_time_s", s.stepSeconds}, {"compute_s", s.computeSeconds}, {"exposed_communication_s", s.exposedSeconds},
        {"communication_s", s.collectiveSeconds}, {"contention_s", s.contentionSeconds}, {"bubble_s", s.bubbleSeconds},
        {"flops", s.modelFlops}, {"mfu", s.mfu}, {"peak_flops_of", s.peakHow}, {"bound_by", s.boundBy.text()}};
    json["collectives"] = Json::array();
    for (const SimulatedCollective& c : s.collectives)
        json["collectives"].push_back(
            {{"op", opName(c.use.kind)}, {"ranks", c.use.axes}, {"group_size", c.use.groupSize}, {"node", c.use.cause.value},
                {"count", c.use.count}, {"bytes_per_device", c.use.payloadBytes}, {"wire_bytes", c.wireBytes},
                {"time_s", c.seconds}, {"alone_s", c.aloneSecondsPerCall * static_cast<double>(c.use.count)},
                {"exposed_s", c.exposedSeconds}, {"algorithm", c.algorithm}, {"formula", c.formula}});
    json["assumptions"] = s.assumptions;
    json["simulator"] = {{"wall_s", wallSeconds}, {"events", s.events}, {"classes", s.classes}};
    return jsonText(json);
}

std::string replayCsv(const ReplayedStep& step, const std::string& name)
{
    const Simulation& s = step.simulation;
    return fmt::format(
        "traces,hardware,ranks,nodes,step_time_s,compute_s,exposed_communication_s,bubble_s,contention_s,bound_by\n"
        "{},{},{},{},{},{},{},{},{},{}\n",
        csvCell(name), csvCell(s.machine), step.ranks, step.nodes, s.stepSeconds, s.computeSeconds, s.exposedSeconds,
        s.bubbleSeconds, s.contentionSeconds, csvCell(s.boundBy.text()));
}

} // namespace meshwright::sim
