// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_totals.h"

#include "sim/report/read_trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>

namespace meshwright::ui {

namespace {

/// Durations are kept as floats, so gaps smaller than this share of a window are none.
constexpr double kRounding = 1e-6;

/// Slices of one row that touch a window.
struct Run {
    std::uint32_t next = 0;
    std::uint32_t last = 0; ///< one past
};

using RowsOfDevices
    = std::map<std::int64_t, std::vector<std::uint32_t>>; ///< device: rows of the part; without the host where there are devices

std::vector<RowsOfDevices> rowsByDevice(const TimelineModel& model, const TimelineArea& area)
{
    std::vector<RowsOfDevices> groups(model.groups().size());
    const auto add = [&](std::uint32_t group, const ModelRow& row) { groups[group][row.deviceId].push_back(row.row); };
    for (const auto& [group, place] : area.rows)
        add(group, model.groups()[group].rows[place]);
    for (std::uint32_t group = 0; group < groups.size() && area.rows.empty(); ++group) {
        for (const ModelRow& row : model.groups()[group].rows)
            add(group, row);
    }
    for (RowsOfDevices& rows : groups) {
        if (rows.size() > 1)
            rows.erase(sim::kHostRow);
    }
    return groups;
}

class Adder {
public:
    Adder(const TimelinePart& part, TimeWindow window, const std::stop_token& stop)
        : m_part(part)
        , m_window(window)
        , m_stop(stop)
    {
    }

    /// False when stopped.
    bool addDevice(const std::vector<std::uint32_t>& rows, GroupTotals& totals)
    {
        for (const Run& run : runsOf(rows)) {
            for (std::uint32_t slice = run.next; slice < run.last; ++slice) {
                if (isStopped())
                    return false;
                addSlice(slice);
            }
        }
        const auto isComputing = [](SliceCategory category) { return category == SliceCategory::Compute; };
        const auto isEither = [&](SliceCategory category) { return isComputing(category) || isCommunication(category); };
        const double compute = covered(rows, isComputing);
        const double communication = covered(rows, isCommunication);
        totals.computeSeconds += compute;
        totals.communicationSeconds += communication;
        totals.overlapSeconds += std::max(0.0, compute + communication - covered(rows, isEither));
        const double idle = m_window.length() - covered(rows, [](SliceCategory) { return true; });
        totals.idleSeconds += idle > kRounding * m_window.length() ? idle : 0.0;
        return !m_stop.stop_requested();
    }

    std::vector<NameTotal> longest() const
    {
        std::vector<std::pair<std::uint64_t, const CategoryTotal*>> all;
        for (const auto& [look, total] : m_names)
            all.emplace_back(look / kSliceCategoryCount, &total);
        const std::size_t count = std::min(all.size(), GroupTotals::kLongest);
        std::partial_sort(
            all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), [](const auto& a, const auto& b) {
                return std::tuple(-a.second->seconds, a.first) < std::tuple(-b.second->seconds, b.first);
            });
        std::vector<NameTotal> found;
        for (std::size_t i = 0; i < count; ++i)
            found.push_back({m_part.timeline().text(static_cast<std::uint32_t>(all[i].first)), *all[i].second});
        return found;
    }

    std::vector<CategoryTotal> categories() const
    {
        std::vector<CategoryTotal> found;
        for (const CategoryTotal& total : m_totals) {
            if (total.slices > 0)
                found.push_back(total);
        }
        return found;
    }

private:
    std::vector<Run> runsOf(const std::vector<std::uint32_t>& rows) const
    {
        std::vector<Run> runs;
        for (const std::uint32_t row : rows)
            runs.push_back({m_part.firstEndingAfter(row, m_window.begin), m_part.firstStartingFrom(row, m_window.end)});
        return runs;
    }

    double inside(std::uint32_t slice) const
    {
        return std::max(0.0, std::min(m_part.end(slice), m_window.end) - std::max(m_part.start(slice), m_window.begin));
    }

    void addSlice(std::uint32_t slice)
    {
        const auto category = static_cast<std::uint32_t>(m_part.category(slice));
        const double seconds = inside(slice);
        const double whole = m_part.end(slice) - m_part.start(slice);
        const double bytes = static_cast<double>(m_part.timeline().slices()[slice].bytes) * (whole > 0.0 ? seconds / whole : 1.0);
        for (CategoryTotal* total : {&m_totals[category], &m_names[m_part.name(slice) * kSliceCategoryCount + category]}) {
            total->category = m_part.category(slice);
            ++total->slices;
            total->seconds += seconds;
            total->bytes += bytes;
        }
    }

    /// Time in which at least one of the rows has a slice of the wanted categories.
    template <typename Wanted>
    double covered(const std::vector<std::uint32_t>& rows, Wanted wanted)
    {
        std::vector<Run> runs = runsOf(rows);
        const auto goOn = [&](Run& run) {
            while (run.next < run.last && !wanted(m_part.category(run.next)))
                ++run.next;
        };
        for (Run& run : runs)
            goOn(run);
        double sum = 0.0;
        double reached = m_window.begin;
        while (!isStopped()) {
            Run* earliest = nullptr;
            for (Run& run : runs) {
                if (run.next < run.last && (!earliest || m_part.start(run.next) < m_part.start(earliest->next)))
                    earliest = &run;
            }
            if (!earliest)
                break;
            const double from = std::max(reached, m_part.start(earliest->next));
            const double to = std::min(m_window.end, m_part.end(earliest->next));
            sum += std::max(0.0, to - from);
            reached = std::max(reached, to);
            ++earliest->next;
            goOn(*earliest);
        }
        return sum;
    }

    bool isStopped()
    {
        constexpr std::uint64_t kOften = 65536;
        return ++m_looks % kOften == 0 && m_stop.stop_requested();
    }

    const TimelinePart& m_part;
    TimeWindow m_window;
    const std::stop_token& m_stop;
    std::uint64_t m_looks = 0;
    std::array<CategoryTotal, kSliceCategoryCount> m_totals{};
    std::unordered_map<std::uint64_t, CategoryTotal> m_names; ///< by name * kSliceCategoryCount + category
};

} // namespace

std::optional<std::vector<GroupTotals>> totalsOf(
    const TimelineModel& model, const TimeAxis& axis, const TimelineArea& area, const std::stop_token& stop)
{
    std::vector<GroupTotals> all;
    const std::vector<RowsOfDevices> groups = rowsByDevice(model, area);
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
        if (groups[group].empty())
            continue;
        GroupTotals totals;
        totals.name = model.groups()[group].name;
        totals.seconds = axis.toSeconds(group, area.window);
        totals.seconds.end = std::min(totals.seconds.end, model.groups()[group].part->endSeconds());
        if (totals.seconds.length() <= 0.0)
            continue;
        totals.devices = groups[group].contains(sim::kHostRow) ? 0 : static_cast<std::int64_t>(groups[group].size());
        Adder adder(*model.groups()[group].part, totals.seconds, stop);
        for (const auto& [device, rows] : groups[group]) {
            if (!adder.addDevice(rows, totals))
                return std::nullopt;
        }
        totals.categories = adder.categories();
        totals.longest = adder.longest();
        const auto devices = static_cast<double>(groups[group].size());
        const auto toMean = [&](CategoryTotal& total) {
            total.seconds /= devices;
            total.bytes /= devices;
        };
        for (CategoryTotal& total : totals.categories)
            toMean(total);
        for (NameTotal& name : totals.longest)
            toMean(name.total);
        for (double* seconds :
            {&totals.computeSeconds, &totals.communicationSeconds, &totals.overlapSeconds, &totals.idleSeconds})
            *seconds /= devices;
        all.push_back(std::move(totals));
    }
    return all;
}

std::size_t slicesIn(const TimelineModel& model, const TimeAxis& axis, const TimelineArea& area)
{
    std::size_t count = 0;
    const std::vector<RowsOfDevices> groups = rowsByDevice(model, area);
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
        const TimelinePart& part = *model.groups()[group].part;
        const TimeWindow seconds = axis.toSeconds(group, area.window);
        for (const auto& [device, rows] : groups[group]) {
            for (const std::uint32_t row : rows) {
                const std::uint32_t first = part.firstEndingAfter(row, seconds.begin);
                count += std::max(first, part.firstStartingFrom(row, seconds.end)) - first;
            }
        }
    }
    return count;
}

} // namespace meshwright::ui
