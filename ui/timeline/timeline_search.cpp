// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace meshwright::ui {

namespace {

constexpr std::uint32_t kStopOften = 4096;

/// The order of matches.
auto placeOf(const TimelineModel& model, SliceId id)
{
    return std::tuple(id.group, model.partOf(id).start(id.slice), id.slice);
}

} // namespace

Result<QRegularExpression> searchPattern(const SearchQuery& query)
{
    const QString text = query.isRegularExpression ? query.text : QRegularExpression::escape(query.text);
    QRegularExpression pattern(text, QRegularExpression::CaseInsensitiveOption);
    if (!pattern.isValid())
        return Problem{"MW1840",
            fmt::format("not a regular expression: {} at character {}", pattern.errorString().toStdString(),
                pattern.patternErrorOffset() + 1),
            "fix the pattern, or switch regular expressions off to search for the literal text"};
    return pattern;
}

std::optional<SearchMatches> findSlices(
    const TimelineModel& model, const QRegularExpression& pattern, const std::stop_token& stop)
{
    SearchMatches matches;
    for (std::uint32_t group = 0; group < model.groups().size(); ++group) {
        const TimelinePart& part = *model.groups()[group].part;
        enum : std::uint8_t { NotAsked, No, Yes };
        std::vector<std::uint8_t> answers;
        const std::size_t begin = matches.slices.size();
        for (std::uint32_t slice = 0; slice < part.sliceCount(); ++slice) {
            if (slice % kStopOften == 0 && stop.stop_requested())
                return std::nullopt;
            const std::uint32_t name = part.name(slice);
            if (name >= answers.size())
                answers.resize(name + 1, NotAsked);
            if (answers[name] == NotAsked)
                answers[name] = pattern.match(QString::fromStdString(part.timeline().text(name))).hasMatch() ? Yes : No;
            if (answers[name] == Yes)
                matches.slices.push_back({group, slice});
        }
        std::sort(matches.slices.begin() + static_cast<std::ptrdiff_t>(begin), matches.slices.end(),
            [&](SliceId a, SliceId b) { return placeOf(model, a) < placeOf(model, b); });
        std::vector<bool>& names = matches.names.emplace_back();
        for (const std::uint8_t answer : answers)
            names.push_back(answer == Yes);
    }
    return matches;
}

std::size_t SearchMatches::next(const TimelineModel& model, std::optional<SliceId> from, int step) const
{
    if (!from)
        return step > 0 ? 0 : slices.size() - 1;
    const auto isBefore = [&](SliceId a, SliceId b) { return placeOf(model, a) < placeOf(model, b); };
    const auto at = step > 0 ? std::upper_bound(slices.begin(), slices.end(), *from, isBefore)
                             : std::lower_bound(slices.begin(), slices.end(), *from, isBefore);
    const auto place = static_cast<std::size_t>(at - slices.begin());
    if (step > 0)
        return place == slices.size() ? 0 : place;
    return place == 0 ? slices.size() - 1 : place - 1;
}

} // namespace meshwright::ui
