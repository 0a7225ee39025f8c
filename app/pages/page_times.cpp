// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/page_times.h"

#include "core/text/program_text.h"
#include "sim/session/engine.h"

#include <map>

namespace meshwright::pages {

namespace {

Result<double> secondsOf(const std::string& text, const sim::Machine& machine, const sim::CostOptions& cost)
{
    const auto program = readProgram(text, "program");
    if (!program)
        return program.error();
    const auto simulated = sim::simulateProgram(*program, program->functions.front().name, machine, cost);
    if (!simulated)
        return simulated.error();
    return simulated->stepSeconds;
}

} // namespace

void addSimulatedTimes(PageRun& run, const sim::Machine& machine)
{
    const auto cost = sim::costOptionsOf(machine.chip);
    std::map<const std::string*, Result<double>> known;
    for (CellResult& cell : run.cells) {
        double seconds = 0.0;
        const Problem* problem = cost ? nullptr : &cost.error().front();
        for (const PageProgram& program : cell.programs) {
            if (problem != nullptr)
                break;
            auto found = known.find(program.text.get());
            if (found == known.end())
                found = known.emplace(program.text.get(), secondsOf(*program.text, machine, *cost)).first;
            if (found->second)
                seconds += *found->second * static_cast<double>(program.calls);
            else
                problem = &found->second.error().front();
        }
        if (problem != nullptr && !cell.programs.empty())
            cell.notes.push_back("no simulated time: " + problem->message);
        else if (!cell.programs.empty())
            cell.simulatedSeconds = seconds;
    }
}

} // namespace meshwright::pages
