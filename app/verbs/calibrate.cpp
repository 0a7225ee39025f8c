// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/interrupt.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/text.h"
#include "sim/calibrate/host_measure.h"
#include "sim/calibrate/nccl_log.h"
#include "sim/session/study_machine.h"

#include <fmt/format.h>

namespace meshwright::cli {

namespace {

std::string hostText(const sim::HostProfile& profile)
{
    const sim::SizedTime& stream = profile.streams.back();
    const auto side = static_cast<double>(profile.sides.back());
    std::string text = fmt::format("{}, {} devices compute at once\n", profile.name, profile.permits);
    text += fmt::format("products of side {}: {}FLOP/s a device ({}FLOP/s alone, of side 512)\n", profile.sides.back(),
        formatCount(profile.productRate(side, side, side)), formatCount(profile.aloneFlopsPerSecond));
    text += fmt::format("memory: {:.4g} GB/s a device; a kernel starts in {}; {} devices meet in {}\n",
        stream.bytes / stream.seconds / 1e9, formatSeconds(profile.kernelSeconds), profile.devices,
        formatSeconds(profile.barrierSeconds));
    for (const sim::SizedTime& time : profile.allReduce)
        text += fmt::format("all-reduce of {}: {} of each device\n", formatBytes(time.bytes), formatSeconds(time.seconds));
    return text;
}

/// The profile to the file, or to standard output in place of the text.
int finish(const CalibrateOptions& options, const std::string& profile, const std::string& text, Output& output)
{
    const auto written = options.file.empty() ? Result<Done>(Done{}) : writeFileAtomically(options.file, profile);
    output.result(output.format == Format::Json || !written ? profile : text); // what was measured is not lost
    return written ? kExitOk : failAfterResult(written.error(), output);
}

} // namespace

int runCalibrate(const CalibrateOptions& options, Output& output)
{
    if (options.logs.empty()) {
        InterruptWatcher interrupt;
        const auto profile = sim::measureHost(
            {.permits = options.permits, .devices = options.devices, .quick = options.quick}, interrupt.token());
        if (!profile)
            return interrupt.fail(profile.error(), output);
        return finish(options, sim::hostProfileJson(*profile), hostText(*profile), output);
    }
    std::vector<sim::NcclLog> logs;
    Problems problems;
    Problems doubts;
    const auto catalogue = sim::defaultCatalogue();
    for (const std::string& file : options.logs) {
        auto log = sim::readNcclLog(file);
        if (log) {
            append(doubts, sim::doubtfulFit(*log, file));
            if (catalogue)
                append(doubts, sim::doubtfulLinks(*log, file, options.base, *catalogue));
            logs.push_back(*std::move(log));
        } else {
            append(problems, log.error());
        }
    }
    if (!problems.empty())
        return fail(problems, output);
    if (options.file.empty() && options.base.empty() && output.format != Format::Json) { // the table alone needs no chip
        output.result(sim::ncclText(logs));
        return failAfterResult(doubts, output);
    }
    if (!catalogue)
        return fail(catalogue.error(), output);
    const auto profile = sim::ncclProfileJson(logs, options.base, *catalogue);
    if (!profile)
        return fail(profile.error(), output);
    const int code = finish(options, *profile, sim::ncclText(logs), output);
    const int doubtCode = failAfterResult(doubts, output);
    return code == kExitOk ? doubtCode : code;
}

} // namespace meshwright::cli
