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

/// `TimelineRow::device` of rows that show no device: threads of the host, and stretches of time that a profiler names.
inline constexpr std::int64_t kHostRow = -1;

/// A trace of another program, as a measured timeline.
struct ForeignTrace {
    Timeline timeline{Clock::Wall};
    std::int64_t leftOut = 0; ///< slices beyond kMostTraceSlices, and events that begin and never end
};

/// Reads trace events as Perfetto, chrome://tracing, PyTorch's profiler, XLA's and `traceJson` write them: complete events (X) and pairs of begin and end (B, E).
/// A thread is a row; slices within others lie in further rows of their thread. Names and categories tell collectives, transfers and waits apart; the rest is
/// computing, and what the host does. Times are from the first slice on. Reads as a stream: an event that was read is forgotten; once `stop` is asked for
/// nothing is kept. Of a file that was cut off what comes before stays.
///
/// A process is a device, numbered in the order of processes, unless its label says "CPU", its name begins with "/host:", or all its slices are the host's by their
/// categories. Rows of all other processes are kHostRow's, and so are stretches that a profiler names, which span many kernels and the gaps between them: of the
/// categories "Trace" and "gpu_user_annotation", and of the threads "Steps", "XLA Modules" and their like of XLA's devices. Slices of kHostRow are of the host, or
/// wait. Example: of the processes "CPU", "GPU 0" and "Spans" of PyTorch's profiler the kernels of "GPU 0" are device 0's.
///
/// Problems: MW1792 it is not JSON, or has no slices.
/// Source: "Trace Event Format", the Chromium project's document on the JSON format.
Result<ForeignTrace> readTraceJson(std::istream& stream, const std::string& file, const std::stop_token& stop = {});

/// The same of a file, which gzip may have compressed. Problems: those, and those of ByteStream.
Result<ForeignTrace> readTraceFile(const std::filesystem::path& path, const std::stop_token& stop = {});

/// What a slice does, by its name and category, as other programs write them: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all-gather.12".
SliceCategory categoryOfName(std::string_view name, std::string_view category);

} // namespace meshwright::sim
