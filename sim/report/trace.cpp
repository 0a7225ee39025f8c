// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <map>

namespace meshwright::sim {

namespace {

std::string quoted(const std::string& text)
{
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class TraceWriter {
public:
    void add(const NamedTimeline& named)
    {
        const Timeline& timeline = *named.timeline;
        std::map<std::int64_t, std::size_t> processOf;
        std::vector<std::size_t> processOfRow;
        for (std::size_t row = 0; row < timeline.rows().size(); ++row) {
            const TimelineRow& what = timeline.rows()[row];
            const auto [at, isNew] = processOf.try_emplace(what.device, m_processes + 1);
            if (isNew) {
                ++m_processes;
                event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", at->second,
                    quoted(fmt::format("{}: device {}", named.name, what.device)));
                event(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", at->second, at->second);
            }
            processOfRow.push_back(at->second);
            event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", at->second, row + 1,
                quoted(what.stream));
        }
        for (const MemoryUse& point : timeline.memory())
            event(R"({{"ph":"C","pid":{},"ts":{:.3f},"name":"memory in use","args":{{"bytes":{}}}}})", processOf.at(point.device),
                point.seconds * 1e6, point.bytes);
        for (const Slice& slice : timeline.slices()) {
            std::string arguments = fmt::format(R"("clock":"{}","step":{})", clockName(timeline.clock()), slice.step);
            if (slice.bytes > 0)
                arguments += fmt::format(R"(,"bytes":{})", slice.bytes);
            if (timeline.clock() != Clock::Simulated)
                arguments += fmt::format(R"(,"cpu_us":{:.3f})", slice.cpuSeconds * 1e6);
            if (slice.detail != 0)
                arguments += fmt::format(R"(,"detail":{})", quoted(timeline.text(slice.detail)));
            event(R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"cat":"{}","args":{{{}}}}})",
                processOfRow[slice.row], slice.row + 1, slice.startSeconds * 1e6, slice.durationSeconds * 1e6,
                quoted(timeline.text(slice.name)), categoryName(slice.category), arguments);
        }
    }

    std::string finish() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + m_events + "\n]}\n"; }

private:
    template <typename... Args>
    void event(fmt::format_string<Args...> format, Args&&... args)
    {
        if (!m_events.empty())
            m_events += ",\n";
        fmt::format_to(std::back_inserter(m_events), format, std::forward<Args>(args)...);
    }

    std::string m_events;
    std::size_t m_processes = 0;
};

} // namespace

std::string traceJson(const std::vector<NamedTimeline>& timelines)
{
    TraceWriter writer;
    for (const NamedTimeline& timeline : timelines)
        writer.add(timeline);
    return writer.finish();
}

} // namespace meshwright::sim
