// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "sim/collective/collective.h"
#include "sim/hardware/catalogue.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::sim {

/// One row of nccl-tests.
struct NcclPoint {
    std::int64_t bytes = 0; ///< of the array, as the tool counts it
    std::optional<double> outOfPlaceSeconds = {};
    std::optional<double> inPlaceSeconds = {};

    double seconds() const { return outOfPlaceSeconds ? *outOfPlaceSeconds : inPlaceSeconds.value_or(0.0); }
};

/// What one run of all_reduce_perf and its like printed.
struct NcclLog {
    CollectiveKind operation = CollectiveKind::AllReduce;
    std::int64_t ranks = 0; ///< >= 2
    std::int64_t hosts = 1;
    std::string device; ///< `NVIDIA A100-SXM4-80GB`; empty: not said
    std::vector<NcclPoint> points; ///< rising in bytes, each with a time
    std::int64_t wrong = 0; ///< elements that were not right
};

/// A line through the points: seconds = latency + bytes * busFactor / bandwidth.
struct NcclFit {
    double latencySeconds = 0.0;
    double busBytesPerSecond = 0.0; ///< by nccl-tests' convention
    double busFactor = 1.0; ///< 2 (n-1)/n of an all-reduce, (n-1)/n of the others
    double kneeBytes = 0.0; ///< where latency and bandwidth weigh the same
    double worstError = 0.0; ///< of the line, over all points: how far it is from a measured time, in parts of that time
    std::int64_t worstBytes = 0; ///< of the point with that error
    std::vector<std::int64_t> slower; ///< sizes that took longer than a larger one: a change of protocol or algorithm

    double seconds(double bytes) const { return latencySeconds + bytes * busFactor / busBytesPerSecond; }
};

/// Reads the text that nccl-tests prints, also with the tags that mpirun and srun put before lines, or the JSON that its -J writes. The operation is that
/// of `Collective test starting`, of a program named in the text, of the file's name, or the only one whose busbw is so many times algbw, in this order; the
/// ranks are counted in the list of devices or else taken from the threads and GPUs of the header.
///
/// Problems: MW1712 there is no row of results (not such a file, or cut short before them); MW1713 the operation or the number of ranks is not
/// said; MW1714 a row is cut short or has no number where one must be, with its line. All that are found are reported.
Result<NcclLog> parseNcclLog(std::string_view text, const std::string& file);
Result<NcclLog> readNcclLog(const std::filesystem::path& path); ///< also the problems of `readFile`

/// Latency and bandwidth are those of the line with the least sum of relative errors; neither is below zero. Precondition: points is not empty, with times
/// above zero.
NcclFit fitNccl(const NcclLog& log);

/// A warning MW1716 where the line of `fitNccl` is far from a measured time. Precondition: as above.
Problems doubtfulFit(const NcclLog& log, const std::string& file);

/// Warnings of what a log cannot have measured: MW1717 more bandwidth than the links of the chip have, where the chip (`base`, or else the one that the
/// log names) is known; MW1718 rows of one size, through which any latency goes. Precondition: as above.
Problems doubtfulLinks(const NcclLog& log, const std::string& file, const std::string& base, const Catalogue& catalogue);

/// A hardware file (`meshwright_hardware: 1`, as JSON) whose links are as measured: a switch of the ranks, or hosts on a network. `base` is the
/// chip; empty: the one that the log of the most ranks names. The measurements stand under `links`.
/// Problems: MW1715 the log names no GPU of the catalogue; MW1701 the catalogue has no chip `base`.
Result<std::string> ncclProfileJson(const std::vector<NcclLog>& logs, const std::string& base, const Catalogue& catalogue);

/// A row for each log.
std::string ncclText(const std::vector<NcclLog>& logs);

} // namespace meshwright::sim
