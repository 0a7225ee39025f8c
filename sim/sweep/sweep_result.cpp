// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/sweep_result.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

namespace meshwright::sim {

namespace {

void markFront(std::vector<SweepRow>& rows)
{
    std::vector<SweepRow*> order;
    for (SweepRow& row : rows) {
        if (row.outcome.state == SweepState::Fits)
            order.push_back(&row);
    }
    const auto objectives = [](const SweepRow* row) { return std::tuple(row->outcome.secondsPerUnit(), row->outcome.peakBytes); };
    std::stable_sort(
        order.begin(), order.end(), [&](const SweepRow* a, const SweepRow* b) { return objectives(a) < objectives(b); });
    std::tuple<double, std::int64_t> last{-1.0, std::numeric_limits<std::int64_t>::max()};
    for (SweepRow* row : order) {
        row->onFront = std::get<1>(objectives(row)) < std::get<1>(last) || objectives(row) == last;
        if (row->onFront)
            last = objectives(row);
    }
}

} // namespace

const char* sweepStateName(SweepState state)
{
    switch (state) {
    case SweepState::Fits:
        return "fits";
    case SweepState::TooLarge:
        return "does not fit";
    case SweepState::Refused:
        return "refused";
    }
    return "refused";
}

std::int64_t SweepResult::count(SweepState state) const
{
    return std::count_if(rows.begin(), rows.end(), [&](const SweepRow& row) { return row.outcome.state == state; });
}

SweepResult sweepResult(SweepPlan plan, const std::vector<std::optional<SweepOutcome>>& outcomes)
{
    assert(static_cast<std::int64_t>(outcomes.size()) == plan.pointCount());
    SweepResult result;
    std::optional<std::int64_t> work; // of a step
    for (std::size_t point = 0; point < outcomes.size(); ++point) {
        if (!outcomes[point])
            continue;
        SweepRow row{static_cast<std::int64_t>(point), {}, *outcomes[point], false};
        row.outcome.units = plan.unitsAt(row.point);
        const std::vector<std::size_t> values = plan.valuesAt(row.point);
        for (std::size_t i = 0; i < values.size(); ++i)
            row.values.push_back(plan.parameters[i].values[values[i]].text);
        if (row.outcome.simulated()) {
            const std::int64_t own = row.outcome.batch * row.outcome.units;
            result.oneBatch = result.oneBatch && (!work || *work == own);
            work = own;
        }
        result.rows.push_back(std::move(row));
    }
    markFront(result.rows);
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
        const SweepOutcome& outcome = result.rows[i].outcome;
        if (outcome.state == SweepState::Fits
            && (!result.best || outcome.secondsPerUnit() < result.rows[*result.best].outcome.secondsPerUnit()))
            result.best = i;
    }
    result.plan = std::move(plan);
    return result;
}

} // namespace meshwright::sim
