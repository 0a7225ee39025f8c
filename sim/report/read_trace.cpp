// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/read_trace.h"

#include "core/support/text.h"
#include "core/train/byte_stream.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace meshwright::sim {

namespace {

constexpr double kMicro = 1e-6;
constexpr std::size_t kMostLevels = 32; ///< of slices within slices
constexpr double kLatest = 1e16; ///< microseconds; some 300 years: profilers count from 1970

/// Process and thread; numbers and texts alike, as they are written.
using Track = std::pair<std::string, std::string>;

/// A slice of a thread, or a stretch of its time that the profiler names.
struct TracedSlice {
    Slice slice;
    bool isSpan = false;
};

/// Rows of XLA's profiler that sum up or annotate those of the operations.
constexpr std::array<std::string_view, 10> kSpansOfXla = {"Steps", "XLA Modules", "XLA TraceMe", "Framework Name Scope",
    "Framework Ops", "TensorFlow Name Scope", "TensorFlow Ops", "Source code", "Source", "Launch Stats"};

std::string textOf(const nlohmann::json& event, const char* key)
{
    const auto found = event.find(key);
    if (found == event.end())
        return {};
    return found->is_string() ? found->get<std::string>() : found->dump();
}

double numberOf(const nlohmann::json& event, const char* key)
{
    const auto found = event.find(key);
    return found != event.end() && found->is_number() ? found->get<double>() : std::nan("");
}

/// What a kernel of C++ is called: without the return type that the name of a template begins with.
std::string withoutReturnType(std::string name)
{
    constexpr std::string_view kType = "void ";
    return name.starts_with(kType) ? name.substr(kType.size()) : name;
}

/// Reads a file as it goes, unpacked.
class UnpackedBuffer : public std::streambuf {
public:
    explicit UnpackedBuffer(std::shared_ptr<OpenFile> file)
        : m_stream(std::move(file))
    {
    }

    const Problems& problems() const { return m_problems; }

protected:
    int_type underflow() override
    {
        const auto next = m_problems.empty() ? m_stream.next() : std::string_view();
        if (!next)
            m_problems = next.error();
        m_bytes = next ? std::string(*next) : std::string();
        setg(m_bytes.data(), m_bytes.data(), m_bytes.data() + m_bytes.size());
        return m_bytes.empty() ? traits_type::eof() : traits_type::to_int_type(m_bytes.front());
    }

private:
    ByteStream m_stream;
    std::string m_bytes;
    Problems m_problems;
};

/// The numbers of tracks in their natural order: 9 before 10.
bool comesBefore(const std::string& a, const std::string& b)
{
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

struct ProcessOrder {
    bool operator()(const std::string& a, const std::string& b) const { return comesBefore(a, b); }
};

struct TrackOrder {
    bool operator()(const Track& a, const Track& b) const
    {
        return a.first != b.first ? comesBefore(a.first, b.first) : comesBefore(a.second, b.second);
    }
};

class TraceReader {
public:
    /// One event, whole.
    void take(const nlohmann::json& event)
    {
        if (!event.is_object())
            return;
        const std::string phase = textOf(event, "ph");
        const Track track{textOf(event, "pid"), textOf(event, "tid")};
        if (phase == "M")
            return takeName(event, track);
        if (phase != "X" && phase != "B" && phase != "E")
            return;
        const double at = numberOf(event, "ts");
        if (!(std::fabs(at) < kLatest))
            return;
        if (phase == "B") {
            m_open[track].push_back(sliceOf(event, at, 0.0));
        } else if (phase == "E") {
            std::vector<TracedSlice>& open = m_open[track];
            if (open.empty())
                return;
            Slice& last = open.back().slice;
            last.durationSeconds = std::max(0.0, at - last.startSeconds);
            add(track, open.back());
            open.pop_back();
        } else if (const double length = numberOf(event, "dur"); length >= 0.0 && length < kLatest) {
            add(track, sliceOf(event, at, length));
        }
    }

    ForeignTrace finish()
    {
        for (const auto& [track, open] : m_open)
            m_trace.leftOut += static_cast<std::int64_t>(open.size());
        for (const auto& [track, name] : m_names) {
            const auto process = m_processes.find(track.first);
            const bool isOfXla = process != m_processes.end() && process->second.name.starts_with("/device:");
            if (isOfXla && std::find(kSpansOfXla.begin(), kSpansOfXla.end(), name) != kSpansOfXla.end())
                m_spans[track] = std::exchange(m_slices[track], {});
        }
        double first = kLatest;
        std::map<std::string, std::int64_t, ProcessOrder> devices;
        for (auto* tracks : {&m_slices, &m_spans}) {
            for (const auto& [track, slices] : *tracks) {
                for (const Slice& slice : slices)
                    first = std::min(first, slice.startSeconds);
                if (tracks == &m_slices && isOfDevice(track.first, slices))
                    devices.try_emplace(track.first);
            }
        }
        std::int64_t count = 0;
        for (auto& [process, device] : devices)
            device = count++;
        for (auto& [track, slices] : m_slices) {
            const auto device = devices.find(track.first);
            addRows(device != devices.end() ? device->second : kHostRow, nameOf(track), slices, first);
        }
        for (auto& [track, slices] : m_spans) {
            const auto device = devices.find(track.first);
            addRows(kHostRow,
                device != devices.end() ? fmt::format("device {}, {}", device->second, nameOf(track)) : nameOf(track), slices,
                first);
        }
        m_trace.timeline.sort();
        return std::move(m_trace);
    }

private:
    void takeName(const nlohmann::json& event, const Track& track)
    {
        const auto arguments = event.find("args");
        if (arguments == event.end() || !arguments->is_object())
            return;
        const std::string what = textOf(event, "name");
        if (what == "thread_name")
            m_names[track] = textOf(*arguments, "name");
        else if (what == "process_name")
            m_processes[track.first].name = textOf(*arguments, "name");
        else if (what == "process_labels")
            m_processes[track.first].label = textOf(*arguments, "labels");
    }

    bool isOfDevice(const std::string& process, const std::vector<Slice>& slices) const
    {
        const auto named = m_processes.find(process);
        if (named != m_processes.end()
            && (named->second.name.starts_with("/host:") || named->second.label.find("CPU") != std::string::npos))
            return false;
        return std::any_of(slices.begin(), slices.end(), [](const Slice& slice) { return !isOfHost(slice.category); });
    }

    static bool isOfHost(SliceCategory category)
    {
        return category == SliceCategory::Host || category == SliceCategory::Wait || category == SliceCategory::WaitForCore;
    }

    TracedSlice sliceOf(const nlohmann::json& event, double at, double length)
    {
        TracedSlice traced;
        Slice& slice = traced.slice;
        slice.startSeconds = at;
        slice.durationSeconds = length;
        const std::string name = withoutReturnType(textOf(event, "name"));
        slice.name = m_trace.timeline.intern(name);
        const std::string category = textOf(event, "cat");
        slice.category = categoryOfName(name, category);
        traced.isSpan = category == "Trace" || category == "gpu_user_annotation";
        const auto arguments = event.find("args");
        if (arguments != event.end() && arguments->is_object()) {
            if (const double bytes = numberOf(*arguments, "bytes"); bytes > 0.0 && bytes < 1e18)
                slice.bytes = static_cast<std::int64_t>(bytes);
            slice.detail = m_trace.timeline.intern(textOf(*arguments, "detail"));
        }
        return traced;
    }

    void add(const Track& track, const TracedSlice& traced)
    {
        if (m_count == kMostTraceSlices) {
            ++m_trace.leftOut;
            return;
        }
        ++m_count;
        (traced.isSpan ? m_spans : m_slices)[track].push_back(traced.slice);
    }

    std::string nameOf(const Track& track) const
    {
        const auto named = m_names.find(track);
        return named != m_names.end() && !named->second.empty() ? named->second : "thread " + track.second;
    }

    /// Slices of a row do not overlap: each goes to the first row of its thread that is free.
    void addRows(std::int64_t device, const std::string& name, std::vector<Slice>& slices, double first)
    {
        std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
            return a.startSeconds != b.startSeconds ? a.startSeconds < b.startSeconds : a.durationSeconds > b.durationSeconds;
        });
        std::vector<double> freeFrom;
        std::vector<std::uint32_t> rows;
        for (Slice& slice : slices) {
            const auto free
                = std::find_if(freeFrom.begin(), freeFrom.end(), [&](double from) { return from <= slice.startSeconds; });
            const auto level = static_cast<std::size_t>(free - freeFrom.begin());
            if (level == kMostLevels) {
                ++m_trace.leftOut;
                continue;
            }
            if (free == freeFrom.end()) {
                freeFrom.push_back(0.0);
                rows.push_back(m_trace.timeline.addRow(device, level == 0 ? name : fmt::format("{}, within {}", name, level)));
            }
            freeFrom[level] = slice.startSeconds + slice.durationSeconds;
            slice.row = rows[level];
            slice.startSeconds = (slice.startSeconds - first) * kMicro;
            slice.durationSeconds *= kMicro;
            slice.cpuSeconds = slice.durationSeconds;
            if (device == kHostRow && !isOfHost(slice.category))
                slice.category = SliceCategory::Host;
            m_trace.timeline.add(slice);
        }
        slices = {};
    }

    ForeignTrace m_trace;
    struct Process {
        std::string name;
        std::string label;
    };

    std::map<Track, std::vector<Slice>, TrackOrder> m_slices; ///< in microseconds of the file
    std::map<Track, std::vector<Slice>, TrackOrder> m_spans; ///< stretches that a profiler names, likewise
    std::map<Track, std::vector<TracedSlice>> m_open;
    std::map<Track, std::string> m_names;
    std::map<std::string, Process> m_processes;
    std::size_t m_count = 0;
};

} // namespace

bool isTraceJson(std::string_view beginning)
{
    const std::size_t first = beginning.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first == std::string_view::npos)
        return false;
    const bool hasEvents = beginning.find("\"ph\"") != std::string_view::npos;
    return beginning[first] == '{' ? beginning.find("\"traceEvents\"") != std::string_view::npos
                                   : beginning[first] == '[' && hasEvents;
}

SliceCategory categoryOfName(std::string_view name, std::string_view category)
{
    std::string plain; // letters only: all-reduce, all_reduce and AllReduce are one
    std::ranges::copy_if(lowerCase(name), std::back_inserter(plain), [](char letter) { return letter >= 'a' && letter <= 'z'; });
    constexpr std::array<std::pair<std::string_view, SliceCategory>, 13> kWords = {{
        {"reducescatter", SliceCategory::ReduceScatter},
        {"allreduce", SliceCategory::AllReduce},
        {"allgather", SliceCategory::AllGather},
        {"alltoall", SliceCategory::AllToAll},
        {"collectivepermute", SliceCategory::Permute},
        {"ppermute", SliceCategory::Permute},
        {"sendrecv", SliceCategory::Permute},
        {"memcpy", SliceCategory::Transfer},
        {"infeed", SliceCategory::Transfer},
        {"outfeed", SliceCategory::Transfer},
        {"synchronize", SliceCategory::Wait},
        {"streamwait", SliceCategory::Wait},
        {"barrier", SliceCategory::Wait},
    }};
    for (std::size_t i = 0; i <= static_cast<std::size_t>(SliceCategory::Host); ++i) {
        const auto own = static_cast<SliceCategory>(i);
        if (category == categoryName(own)) // written by traceJson
            return own;
    }
    const auto word
        = std::find_if(kWords.begin(), kWords.end(), [&](const auto& one) { return plain.find(one.first) != std::string::npos; });
    if (category == "cuda_sync") // of a stream: "Stream Wait Event", "Context Sync"
        return SliceCategory::Wait;
    constexpr std::array<std::string_view, 8> kOfHost = {"cpu_op", "cuda_runtime", "cuda_driver", "python_function",
        "user_annotation", "cpu_instant_event", "Operator", "overhead"};
    const bool isOfHost = std::find(kOfHost.begin(), kOfHost.end(), category) != kOfHost.end();
    if (word != kWords.end() && (!isOfHost || word->second == SliceCategory::Wait))
        return word->second;
    return isOfHost ? SliceCategory::Host : SliceCategory::Compute;
}

Result<ForeignTrace> readTraceJson(std::istream& stream, const std::string& file, const std::stop_token& stop)
{
    TraceReader reader;
    bool isList = false; // the file is an array of events
    bool inEvents = false;
    const auto takeEvents = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        if (event == nlohmann::json::parse_event_t::array_start && depth == 0)
            isList = inEvents = true;
        if (event == nlohmann::json::parse_event_t::key && depth == 1 && !isList)
            inEvents = parsed == "traceEvents";
        if (event != nlohmann::json::parse_event_t::object_end || !inEvents || depth != (isList ? 1 : 2))
            return true;
        if (!stop.stop_requested())
            reader.take(parsed);
        return false; // it is forgotten
    };
    const nlohmann::json rest = nlohmann::json::parse(stream, takeEvents, false);
    ForeignTrace trace = reader.finish();
    if (!trace.timeline.slices().empty()) // a trace that was cut off has what comes before
        return trace;
    if (rest.is_discarded())
        return Problem{"MW1792", fmt::format("\"{}\" is not a JSON document", file), "save the trace again", Place{file}};
    return Problem{"MW1792", fmt::format("\"{}\" has no slices", file),
        "record complete events (\"ph\": \"X\"), or pairs of begin and end", Place{file}};
}

Result<ForeignTrace> readTraceFile(const std::filesystem::path& path, const std::stop_token& stop)
{
    const auto file = OpenFile::open(path);
    if (!file)
        return file.error();
    UnpackedBuffer buffer(*file);
    std::istream stream(&buffer);
    auto trace = readTraceJson(stream, path.string(), stop);
    if (!trace && !buffer.problems().empty())
        return buffer.problems();
    return trace;
}

} // namespace meshwright::sim
