// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/step_collectives.h"

#include <fmt/format.h>

#include <map>

namespace meshwright::ui {

namespace {

using Indices = std::vector<std::int32_t>;

/// What a slice says of the collective that it is a call of.
struct SliceKey {
    std::uint32_t row = 0;
    std::uint32_t name = 0;
    std::uint32_t detail = 0;
    std::int64_t bytes = 0;

    friend auto operator<=>(const SliceKey&, const SliceKey&) = default;
};

/// Those of the candidates that fulfil a condition; all of them where none does.
template <typename Condition>
Indices narrowed(const Indices& candidates, const Condition& fits)
{
    Indices left;
    std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(left), fits);
    return left.empty() ? candidates : left;
}

/// The candidates in the order of their calls.
Indices inOrderOfCalls(const Indices& candidates, const std::vector<sim::SimulatedCollective>& collectives)
{
    Indices calls;
    for (std::size_t begin = 0; begin < candidates.size();) {
        const CollectiveUse& first = collectives[static_cast<std::size_t>(candidates[begin])].use;
        std::size_t end = begin;
        for (; end < candidates.size(); ++end) {
            const CollectiveUse& use = collectives[static_cast<std::size_t>(candidates[end])].use;
            if (use.phase != first.phase || use.count != first.count)
                break;
        }
        for (std::int64_t turn = 0; turn < first.count; ++turn)
            calls.insert(calls.end(), candidates.begin() + static_cast<std::ptrdiff_t>(begin),
                candidates.begin() + static_cast<std::ptrdiff_t>(end));
        begin = end;
    }
    return calls;
}

} // namespace

std::vector<sim::SimulatedCollective> stepCollectives(const sim::Analysis& analysis)
{
    if (analysis.simulated)
        return analysis.simulated->simulation.collectives;
    std::vector<sim::SimulatedCollective> collectives;
    for (CollectiveUse& use : collectivesOf(analysis.scheduled->device, analysis.mesh()))
        collectives.emplace_back().use = std::move(use);
    return collectives;
}

std::vector<std::int32_t> collectivesOfSlices(const sim::Simulation& simulation)
{
    const Timeline& timeline = simulation.timeline;
    const auto& collectives = simulation.collectives;
    std::map<std::uint32_t, Indices> byName;
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        if (const auto name = timeline.find(collectives[i].label))
            byName[*name].push_back(static_cast<std::int32_t>(i));
    }
    const auto callsOf = [&](const Slice& slice, const Indices& named) {
        const auto at
            = [&](std::int32_t index) -> const sim::SimulatedCollective& { return collectives[static_cast<std::size_t>(index)]; };
        const std::string& stream = timeline.rows()[slice.row].stream;
        const std::string& detail = timeline.text(slice.detail);
        Indices left = narrowed(named, [&](std::int32_t i) { return stream.ends_with(" over " + at(i).use.axes); });
        left = narrowed(left, [&](std::int32_t i) { return at(i).use.payloadBytes == slice.bytes; });
        left = narrowed(left, [&](std::int32_t i) { return detail == at(i).algorithm + ": " + at(i).formula; });
        return inOrderOfCalls(left, collectives);
    };
    struct Calls {
        Indices order;
        std::size_t next = 0;
    };
    std::map<SliceKey, Calls> calls;
    std::vector<std::int32_t> found(timeline.slices().size(), kNoCollective);
    for (std::size_t i = 0; i < found.size(); ++i) {
        const Slice& slice = timeline.slices()[i];
        const auto named = byName.find(slice.name);
        if (named == byName.end())
            continue;
        const auto [of, isNew] = calls.try_emplace(SliceKey{slice.row, slice.name, slice.detail, slice.bytes});
        if (isNew)
            of->second.order = callsOf(slice, named->second);
        found[i] = of->second.order[of->second.next++ % of->second.order.size()];
    }
    return found;
}

} // namespace meshwright::ui
