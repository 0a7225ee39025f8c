// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/timeline/timeline.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace meshwright {

const char* clockName(Clock clock)
{
    constexpr std::array kNames = {"wall", "virtual", "simulated"};
    return kNames[static_cast<std::size_t>(clock)];
}

const char* categoryName(SliceCategory category)
{
    constexpr std::array kNames = {"compute", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "permute", "transfer",
        "wait", "waiting for a core", "host"};
    return kNames[static_cast<std::size_t>(category)];
}

Timeline::Timeline(Clock clock)
    : m_clock(clock)
    , m_texts{""}
    , m_textOrder{0}
{
}

std::uint32_t Timeline::addRow(std::int64_t device, std::string stream)
{
    m_rows.push_back({device, std::move(stream)});
    return static_cast<std::uint32_t>(m_rows.size() - 1);
}

std::vector<std::uint32_t>::const_iterator Timeline::placeOf(const std::string& text) const
{
    return std::lower_bound(m_textOrder.begin(), m_textOrder.end(), text,
        [&](std::uint32_t index, const std::string& wanted) { return m_texts[index] < wanted; });
}

std::optional<std::uint32_t> Timeline::find(const std::string& text) const
{
    const auto at = placeOf(text);
    if (at == m_textOrder.end() || m_texts[*at] != text)
        return std::nullopt;
    return *at;
}

std::uint32_t Timeline::intern(const std::string& text)
{
    const auto at = placeOf(text);
    if (at != m_textOrder.end() && m_texts[*at] == text)
        return *at;
    const auto index = static_cast<std::uint32_t>(m_texts.size());
    m_texts.push_back(text);
    m_textOrder.insert(at, index);
    return index;
}

void Timeline::setStep(std::int32_t step)
{
    for (Slice& slice : m_slices)
        slice.step = step;
}

void Timeline::renumberCollectives(const std::vector<std::int32_t>& numbers)
{
    for (Slice& slice : m_slices) {
        if (slice.collective != kNoCollective)
            slice.collective = numbers[static_cast<std::size_t>(slice.collective)];
    }
}

void Timeline::sort()
{
    std::stable_sort(m_slices.begin(), m_slices.end(),
        [](const Slice& a, const Slice& b) { return std::tie(a.row, a.startSeconds) < std::tie(b.row, b.startSeconds); });
    std::stable_sort(m_memory.begin(), m_memory.end(),
        [](const MemoryUse& a, const MemoryUse& b) { return std::tie(a.device, a.seconds) < std::tie(b.device, b.seconds); });
    const auto same = [](const MemoryUse& a, const MemoryUse& b) { return a.device == b.device && a.bytes == b.bytes; };
    m_memory.erase(std::unique(m_memory.begin(), m_memory.end(), same), m_memory.end());
}

double Timeline::endSeconds() const
{
    double end = 0.0;
    for (const Slice& slice : m_slices)
        end = std::max(end, slice.startSeconds + slice.durationSeconds);
    return end;
}

} // namespace meshwright
