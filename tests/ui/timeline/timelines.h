// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/timeline_model.h"

#include <cmath>
#include <memory>
#include <random>

namespace meshwright::test {

struct RandomRows {
    std::uint32_t rows = 4;
    std::uint32_t slices = 1000; ///< of each row
    double gapShare = 0.2; ///< slices that have a gap before them
    double spread = 1.0; ///< of the logarithm of durations
    unsigned seed = 1;
};

/// Slices of about a microsecond, lognormal; names "op 0" to "op 39", categories at random.
inline std::shared_ptr<const Timeline> randomTimeline(const RandomRows& what)
{
    std::mt19937 random(what.seed);
    auto timeline = std::make_shared<Timeline>(Clock::Wall);
    std::lognormal_distribution<double> duration(std::log(1e-6), what.spread);
    std::uniform_real_distribution<double> share(0.0, 1.0);
    for (std::uint32_t row = 0; row < what.rows; ++row)
        timeline->addRow(row / 2, row % 2 == 0 ? "compute" : "collectives");
    for (std::uint32_t row = 0; row < what.rows; ++row) {
        double at = share(random) * 1e-6;
        for (std::uint32_t i = 0; i < what.slices; ++i) {
            if (share(random) < what.gapShare)
                at += duration(random);
            Slice slice;
            slice.startSeconds = at;
            slice.durationSeconds = duration(random);
            slice.cpuSeconds = slice.durationSeconds / 2.0;
            slice.bytes = static_cast<std::int64_t>(random() % 5000);
            slice.row = row;
            slice.name = timeline->intern("op " + std::to_string(random() % 40));
            slice.category = static_cast<SliceCategory>(random() % ui::kSliceCategoryCount);
            timeline->add(slice);
            at += slice.durationSeconds;
        }
    }
    return timeline;
}

struct OneSlice {
    std::uint32_t row = 0;
    double start = 0.0;
    double duration = 0.0;
    SliceCategory category = SliceCategory::Compute;
    const char* name = "op";
    std::int64_t bytes = 0;
    const char* detail = "";
};

/// Rows go in pairs: compute and collectives of each device.
inline std::shared_ptr<const Timeline> timelineOf(Clock clock, std::uint32_t rows, const std::vector<OneSlice>& slices)
{
    auto timeline = std::make_shared<Timeline>(clock);
    for (std::uint32_t row = 0; row < rows; ++row)
        timeline->addRow(row / 2, row % 2 == 0 ? "compute" : "collectives");
    for (const OneSlice& one : slices) {
        Slice slice;
        slice.row = one.row;
        slice.startSeconds = one.start;
        slice.durationSeconds = one.duration;
        slice.cpuSeconds = one.duration;
        slice.category = one.category;
        slice.name = timeline->intern(one.name);
        slice.detail = timeline->intern(one.detail);
        slice.bytes = one.bytes;
        timeline->add(slice);
    }
    timeline->sort();
    return timeline;
}

inline std::shared_ptr<const ui::TimelineModel> modelOf(const std::vector<std::shared_ptr<const Timeline>>& timelines)
{
    std::vector<ui::GroupSource> sources;
    for (const auto& timeline : timelines) {
        const bool isSimulated = timeline->clock() == Clock::Simulated;
        sources.push_back({isSimulated ? "simulated" : "measured",
            isSimulated ? "simulated on nothing, each of 8 devices" : "measured, wall clock", ui::TimelinePart::build(timeline),
            isSimulated});
    }
    return std::make_shared<const ui::TimelineModel>(std::move(sources));
}

} // namespace meshwright::test
