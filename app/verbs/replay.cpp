// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "sim/chakra/replay.h"
#include "sim/hardware/machine.h"
#include "sim/report/replay_results.h"
#include "sim/report/trace.h"

#include <fmt/format.h>

#include <chrono>

namespace meshwright::cli {

int runReplay(const SimulateOptions& options, const sim::Catalogue& catalogue, const sim::NetworkOptions& network, Output& output)
{
    const auto start = std::chrono::steady_clock::now();
    const auto machine = sim::buildMachine(catalogue, {options.hardware});
    if (!machine)
        return fail(inFile(machine.error(), "--hw"), output);
    const auto cost = sim::costOptionsOf(machine->chip);
    if (!cost)
        return fail(cost.error(), output);
    const auto step = sim::replayFolder(options.chakraIn, *machine, *cost, network);
    if (!step)
        return fail(inFile(step.error(), options.chakraIn), output);
    Result<Done> written = Done{};
    if (!options.trace.empty()) {
        const std::string title = fmt::format("{} on {}", options.chakraIn, step->simulation.machine);
        written = writeFileAtomically(options.trace, sim::traceJson({{title, &step->simulation.timeline}}));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    output.result(output.format == Format::Json ? sim::replayJson(*step, options.chakraIn, seconds)
            : output.format == Format::Csv      ? sim::replayCsv(*step, options.chakraIn)
                                                : sim::replayText(*step, options.chakraIn));
    return written ? kExitOk : failAfterResult(written.error(), output);
}

} // namespace meshwright::cli
