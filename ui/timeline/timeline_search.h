// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"
#include "ui/timeline/timeline_model.h"

#include <QRegularExpression>
#include <QString>

#include <cstddef>
#include <optional>
#include <stop_token>
#include <vector>

namespace meshwright::ui {

/// What to look for in the names of slices, upper and lower case alike.
struct SearchQuery {
    QString text;
    bool isRegularExpression = false;

    friend bool operator==(const SearchQuery&, const SearchQuery&) = default;
};

/// Problems: MW1840 not a regular expression.
Result<QRegularExpression> searchPattern(const SearchQuery& query);

/// Every slice of the whole trace that a search finds.
struct SearchMatches {
    std::vector<SliceId> slices; ///< group by group, in each in order of time
    std::vector<std::vector<bool>> names; ///< by group and name: whether it matches

    bool hasName(std::uint32_t group, std::uint32_t name) const
    {
        return group < names.size() && name < names[group].size() && names[group][name];
    }

    /// The match after (`step` 1) or before (-1) a slice, going round at the ends; without a slice, the first or the last.
    /// Precondition: slices is not empty.
    std::size_t next(const TimelineModel& model, std::optional<SliceId> from, int step) const;
};

/// Looks at every name once, then at every slice. Nothing when `stop` was asked for before it was done.
std::optional<SearchMatches> findSlices(
    const TimelineModel& model, const QRegularExpression& pattern, const std::stop_token& stop = {});

} // namespace meshwright::ui
