// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/files.h"
#include "app/cli/interrupt.h"
#include "app/cli/verbs.h"

#include "core/support/table.h"
#include "core/support/text.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::cli {

namespace {

std::string runText(const sim::RunResult& run)
{
    std::string text = fmt::format("ran on {} devices ({}) in {}, {} a device\n", run.mesh.deviceCount(), run.mesh.text(),
        formatSeconds(run.seconds), formatBytes(static_cast<double>(run.arenaBytes)));
    for (std::size_t i = 0; i < run.results.size(); ++i)
        text += fmt::format("  {}: {} {}\n", run.names[i], typeText(run.results[i].type()), run.layouts[i]);
    using Align = TextTable::Align;
    TextTable table({{"collective"}, {"axes"}, {"calls", Align::Right}, {"bytes/device", Align::Right}, {"value"}, {"because"}});
    for (const CountedCollective& counted : run.collectives)
        table.addRow({opName(counted.use.kind), counted.use.axes, fmt::format("{}", counted.calls),
            formatBytes(static_cast<double>(counted.use.bytesPerDevice)), counted.use.cause.value, counted.use.cause.reason});
    text += table.rowCount() == 0 ? "  no collectives\n" : table.text(2);
    if (run.verification)
        text += fmt::format("verified against one device: {} (largest error {:.2e} of the tensor's scale)\n",
            run.verification->passed ? "equal" : "DIFFERENT", run.verification->maxRelError());
    return text;
}

} // namespace

int runRun(const RunOptions& options, Output& output)
{
    const auto program = readProgramFile(options.file, output);
    if (!program)
        return fail(program.error(), output);
    std::vector<std::string> names;
    for (const Function& function : program->functions)
        names.push_back(function.name);
    const std::string name = options.function.empty() && names.size() == 1 ? names.front() : options.function;
    if (std::find(names.begin(), names.end(), name) == names.end())
        return fail({Problem{"MW1732",
                        name.empty() ? fmt::format("the program has {} functions", names.size())
                                     : fmt::format("the program has no function \"{}\"", name),
                        "name one with --function: " + join(names, ", "), Place{options.file}}},
            output);

    InterruptWatcher interrupt;
    const auto run = sim::runProgram(*program, name,
        {.seed = static_cast<std::uint64_t>(options.seed), .verify = options.verify, .permits = options.permits},
        interrupt.token());
    if (!run)
        return interrupt.exitCode() != 0 ? interrupt.exitCode() : fail(inFile(run.error(), options.file), output);
    output.result(runText(*run));
    return run->verification && !run->verification->passed ? kExitMismatch : kExitOk;
}

} // namespace meshwright::cli
