// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_part.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::ui {

/// A slice of a model: its group, and its number in that group's part.
struct SliceId {
    std::uint32_t group = 0;
    std::uint32_t slice = 0;

    friend auto operator<=>(const SliceId&, const SliceId&) = default;
};

/// One row as it is shown.
struct ModelRow {
    std::uint32_t row = 0; ///< of the part
    std::string device; ///< "device 3", "each device", "host"
    std::string stream;
    std::int64_t deviceId = 0;
    bool isFirstOfDevice = false;

    std::string text() const { return device + ", " + stream; }
};

/// The rows of one run: simulated, or measured by one clock.
struct ModelGroup {
    std::string name; ///< "simulated", "measured", "trace"
    std::string title; ///< "simulated on TPU v5e 4x2, each of 8 devices"
    std::shared_ptr<const TimelinePart> part;
    std::vector<ModelRow> rows; ///< by device and stream, the host's last
};

/// What a group is made of.
struct GroupSource {
    std::string name;
    std::string title;
    std::shared_ptr<const TimelinePart> part; ///< never null
    bool standsForAll = false; ///< the part's one device stands for all devices
};

/// Everything that the view shows, groups from top to bottom. Never changes; cheap to make from parts.
class TimelineModel {
public:
    TimelineModel() = default;
    explicit TimelineModel(std::vector<GroupSource> sources);

    const std::vector<ModelGroup>& groups() const { return m_groups; }
    bool isEmpty() const { return sliceCount() == 0; }
    std::size_t sliceCount() const;
    std::size_t byteCount() const; ///< of the parts

    /// Those that occur, in the order of their numbers.
    std::vector<SliceCategory> categories() const;

    const TimelinePart& partOf(SliceId id) const { return *m_groups[id.group].part; }
    const Slice& slice(SliceId id) const { return partOf(id).timeline().slices()[id.slice]; }
    const std::string& nameOf(SliceId id) const { return partOf(id).nameText(id.slice); }
    const ModelRow& rowOf(SliceId id) const;

    /// The number of a name in each group's table of texts; nothing where the group lacks it.
    std::vector<std::optional<std::uint32_t>> findName(const std::string& name) const;

    /// The earliest slice of that name, of the topmost group that has one.
    std::optional<SliceId> firstNamed(const std::string& name) const;

private:
    std::vector<ModelGroup> m_groups;
    std::vector<std::vector<std::uint32_t>> m_placeOfRow; ///< by group and the part's row: index into the group's rows
};

} // namespace meshwright::ui
