// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/timeline/timeline.h"

#include <string>
#include <vector>

namespace meshwright::sim {

/// A timeline to be written, and what it is called in the viewer.
struct NamedTimeline {
    std::string name; ///< "simulated on TPU v5e 4x2"
    const Timeline* timeline = nullptr;
};

/// Trace events as Perfetto and chrome://tracing read them: a process for each device of each timeline, a thread for each stream, a complete
/// event for each slice (times in microseconds) with its category, bytes, CPU time and detail as arguments,
/// a counter for the memory in use. The same timelines give the same bytes.
/// Source: "Trace Event Format", the Chromium project's document on the JSON format.
std::string traceJson(const std::vector<NamedTimeline>& timelines);

} // namespace meshwright::sim
