// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "core/timeline/timeline.h"

#include <filesystem>
#include <istream>
#include <stop_token>
#include <string>
#include <string_view>

namespace meshwright::sim {

/// True when a JSON text begins as trace events do: with a key "traceEvents", or as an array of events.
bool isTraceJson(std::string_view beginning);

/// The most slices that are read; what comes after is left out.
inline constexpr std::size_t kMostTraceSlices = 20'000'000;

/// A trace of another program, as a measured timeline.
struct ForeignTrace {
    Timeline timeline{Clock::Wall};
    std::int64_t leftOut = 0; ///< slices beyond kMostTraceSlices, and events that begin and never end
};

/// Reads trace events as Perfetto, chrome://tracing, PyTorch's profiler and `traceJson` write them: complete events (X) and pairs of begin and end (B, E), of which
/// a process is a device, in the order of their numbers, and a thread a row; slices within others lie in further rows of their thread. Names and categories
/// tell collectives, transfers and waits apart; the rest is computing, and what the host does. Times are from the first slice on. Reads as a
/// stream: an event that was read is forgotten; once `stop` is asked for nothing is kept. Of a file that was cut off what comes before stays.
///
/// Problems: MW1792 it is not JSON, or has no slices.
/// Source: "Trace Event Format", the Chromium project's document on the JSON format.
Result<ForeignTrace> readTraceJson(std::istream& stream, const std::string& file, const std::stop_token& stop = {});

/// The same of a file, which gzip may have compressed. Problems: those, and those of ByteStream.
Result<ForeignTrace> readTraceFile(const std::filesystem::path& path, const std::stop_token& stop = {});

/// What a slice does, by its name and category, as other programs write them: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all-gather.12".
SliceCategory categoryOfName(std::string_view name, std::string_view category);

} // namespace meshwright::sim
