// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/slice_facts.h"

#include "core/support/text.h"
#include "ui/timeline/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright::ui {

namespace {

/// How often the slice's name occurs on its row, and which of these it is.
std::string occurrences(const TimelinePart& part, std::uint32_t slice)
{
    const std::uint32_t row = part.rowOf(slice);
    std::int64_t count = 0;
    std::int64_t place = 0;
    double seconds = 0.0;
    for (std::uint32_t other = part.rowBegin(row); other < part.rowEnd(row); ++other) {
        if (part.name(other) != part.name(slice) || part.category(other) != part.category(slice))
            continue;
        ++count;
        seconds += part.end(other) - part.start(other);
        if (other == slice)
            place = count;
    }
    return count == 1 ? "the only one on this row"
                      : fmt::format("{} of {} on this row, together {}", place, count, formatSeconds(seconds));
}

const char* bytesLabel(SliceCategory category)
{
    return isCommunication(category) ? "Payload" : "Memory traffic";
}

/// To a hundredth of the slice, so that neighbours can be told apart.
std::string startText(const Slice& slice)
{
    return slice.durationSeconds > 0.0 ? exactTime(slice.startSeconds, slice.durationSeconds / 100.0)
                                       : formatSeconds(slice.startSeconds);
}

/// A trace of another program may be of many steps.
std::string ofWhole(double seconds, const ModelGroup& group)
{
    const double whole = group.part->endSeconds();
    if (whole <= 0.0)
        return formatSeconds(seconds);
    return fmt::format(
        "{} ({} of the {})", formatSeconds(seconds), shareText(seconds / whole), group.name == "trace" ? "trace" : "step");
}

} // namespace

std::string bandwidthText(double bytesPerSecond)
{
    return formatCount(bytesPerSecond) + "B/s";
}

std::string shareText(double share)
{
    const double percent = 100.0 * share;
    return percent > 0.0 && percent < 0.1 ? "< 0.1 %" : fmt::format("{:.1f} %", percent);
}

SliceFacts factsOf(const TimelineModel& model, SliceId id)
{
    const TimelinePart& part = model.partOf(id);
    const Slice& slice = model.slice(id);
    SliceFacts facts;
    facts.name = model.nameOf(id);
    facts.category = slice.category;
    facts.how = part.timeline().text(slice.detail);
    facts.facts.push_back({"Kind", categoryName(slice.category)});
    facts.facts.push_back({"Where", fmt::format("{}, {}", model.rowOf(id).text(), model.groups()[id.group].name)});
    facts.facts.push_back({"Start", startText(slice)});
    facts.facts.push_back({"Duration", ofWhole(slice.durationSeconds, model.groups()[id.group])});
    if (part.timeline().clock() != Clock::Simulated && !isWaiting(slice.category))
        facts.facts.push_back({"CPU time", formatSeconds(slice.cpuSeconds)});
    if (slice.bytes > 0) {
        const auto bytes = static_cast<double>(slice.bytes);
        facts.facts.push_back({bytesLabel(slice.category), formatBytes(bytes) + " per device"});
        if (slice.durationSeconds > 0.0)
            facts.facts.push_back({"Bandwidth", bandwidthText(bytes / slice.durationSeconds)});
    }
    facts.facts.push_back({"Same name", occurrences(part, id.slice)});
    return facts;
}

std::string shortFacts(const TimelineModel& model, SliceId id)
{
    const Slice& slice = model.slice(id);
    std::string text
        = fmt::format("{}\n{}, {}", model.nameOf(id), categoryName(slice.category), formatSeconds(slice.durationSeconds));
    if (slice.bytes > 0)
        text += ", " + formatBytes(static_cast<double>(slice.bytes));
    return text + fmt::format("\nat {} on {}", startText(slice), model.rowOf(id).text());
}

std::string foldedFacts(const TimelineModel& model, std::uint32_t group, std::uint32_t place, TimeWindow seconds)
{
    const TimelinePart& part = *model.groups()[group].part;
    const std::uint32_t row = model.groups()[group].rows[place].row;
    const std::uint32_t first = part.firstEndingAfter(row, seconds.begin);
    const std::uint32_t beyond = std::max(first, part.firstStartingFrom(row, seconds.end));
    if (beyond == first)
        return {};
    if (beyond - first == 1)
        return shortFacts(model, {group, first});
    // A pixel can hold a million slices; a sample of them says what most are.
    constexpr std::uint32_t kSample = 2000;
    const std::uint32_t step = std::max(1U, (beyond - first) / kSample);
    std::array<double, kSliceCategoryCount> times{};
    for (std::uint32_t slice = first; slice < beyond; slice += step)
        times[static_cast<std::size_t>(part.category(slice))] += part.end(slice) - part.start(slice);
    const auto main = static_cast<SliceCategory>(std::max_element(times.begin(), times.end()) - times.begin());
    return fmt::format("{} slices in {}, too short to draw\nmostly {}; zoom in (W) to see them", beyond - first,
        formatSeconds(seconds.length()), categoryName(main));
}

} // namespace meshwright::ui
