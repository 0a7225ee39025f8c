// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// Which time a timeline shows.
enum class Clock : std::uint8_t {
    Wall, ///< measured: what happened, waiting for a core included
    Virtual, ///< measured CPU times replayed as if each device had its own core
    Simulated, ///< predicted for some hardware
};
const char* clockName(Clock clock);

enum class SliceCategory : std::uint8_t {
    Compute,
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Permute,
    Transfer, ///< between pipeline stages, or a change of layout
    Wait, ///< for other devices
    WaitForCore, ///< ready to run, but the host has no free core
    Host, ///< reading data, verifying, writing
};
const char* categoryName(SliceCategory category);

/// A row: what one stream of one device does.
struct TimelineRow {
    std::int64_t device = 0;
    std::string stream; ///< "compute", "collectives"
};

/// Of a slice that is not a call of a collective, or of which that is not known.
inline constexpr std::int32_t kNoCollective = -1;

struct Slice {
    double startSeconds = 0.0; ///< from the start of the timeline
    double durationSeconds = 0.0;
    double cpuSeconds = 0.0; ///< measured: of the thread; simulated: the same as the duration
    std::int64_t bytes = 0; ///< payload per device of a collective; else bytes touched, 0 when not known
    std::uint32_t row = 0; ///< index into rows
    std::uint32_t name = 0; ///< index into names
    std::uint32_t detail = 0; ///< index into names: the formula with its inputs, or the cause; 0 ("") when there is none
    std::int32_t step = 0;
    SliceCategory category = SliceCategory::Compute;
    std::int32_t collective = kNoCollective; ///< simulated: index into the simulation's, in space that the category leaves
};

/// How much of a device's memory is in use from a moment on.
struct MemoryUse {
    double seconds = 0.0; ///< from the start of the timeline
    std::int64_t device = 0;
    std::int64_t bytes = 0;
};

/// What devices did or would do: measured and predicted runs are the same type. Slices of one row do not overlap.
class Timeline {
public:
    explicit Timeline(Clock clock = Clock::Wall);

    Clock clock() const { return m_clock; }
    const std::vector<TimelineRow>& rows() const { return m_rows; }
    const std::vector<Slice>& slices() const { return m_slices; }
    const std::string& text(std::uint32_t index) const { return m_texts[index]; }

    std::uint32_t addRow(std::int64_t device, std::string stream);
    std::uint32_t intern(const std::string& text); ///< the same index for the same text
    std::optional<std::uint32_t> find(const std::string& text) const; ///< the index of a text that was interned
    void add(const Slice& slice) { m_slices.push_back(slice); }
    void setStep(std::int32_t step); ///< of all slices
    void renumberCollectives(const std::vector<std::int32_t>& numbers); ///< of all slices; by their numbers so far

    /// By device the points at which its use of memory changes, in the order of time; empty where it is not known.
    const std::vector<MemoryUse>& memory() const { return m_memory; }
    void addMemory(const MemoryUse& point) { m_memory.push_back(point); }

    /// Orders slices by row, then start, and memory by device, then time, and leaves out points at which nothing changes. Views and writers
    /// expect it.
    void sort();

    /// The end of the last slice.
    double endSeconds() const;

private:
    std::vector<std::uint32_t>::const_iterator placeOf(const std::string& text) const;

    Clock m_clock;
    std::vector<TimelineRow> m_rows;
    std::vector<Slice> m_slices;
    std::vector<MemoryUse> m_memory;
    std::vector<std::string> m_texts; ///< [0] is ""
    std::vector<std::uint32_t> m_textOrder; ///< indices into m_texts, sorted by text
};

} // namespace meshwright
